"""Opening the sensitive table: what the commands share that look at it. PRIVATE."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privmeasure.errors import DataError, SchemaError

if TYPE_CHECKING:
    from privmeasure.tables.schema import Schema
    from privmeasure.tables.texts import TextForm


STDIN = Path("-")
"""The input that is no file."""


@contextmanager
def opened(data: Path) -> Iterator[Path]:
    """Give the path of the sensitive table; what comes on stdin is spooled first, for it is read more than once.

    The copy is private: in a folder of its own that nobody else may enter, for as long as the command runs.
    """
    if data != STDIN:
        yield data
        return
    from privmeasure.sources.files import ENDING_OF, KINDS

    if sys.stdin is None:
        raise DataError("There is no stdin to read the table from. Give the path of a file, or a pipe.")

    with tempfile.TemporaryDirectory(prefix="privmeasure-") as folder:  # mode 0700
        begin = sys.stdin.buffer.read(max(map(len, KINDS)))
        ending = next((ENDING_OF[kind] for magic, kind in KINDS.items() if begin.startswith(magic)), ".csv")
        copy = Path(folder) / f"stdin{ending}"
        with copy.open("xb") as file:
            file.write(begin)
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield copy


def check_header(data: Path, schema: "Schema", form: "TextForm") -> Any:
    """Open a table, compare its header with the schema, and return it; no row is read."""
    from privmeasure.sources.files import open_table
    from privmeasure.tables.texts import with_decimals

    table = open_table(data, form, numbers=with_decimals(schema))
    schema.check(table.names, table.types)
    return table


def read_points(path: Path, schema: "Schema", form: "TextForm") -> Any:
    """Return all rows of a table as points. PRIVATE where the table is. Columns without data need not be there."""
    import numpy as np

    from privmeasure.sources.files import open_table

    present = set(open_table(path, form).names)
    try:
        table = check_header(path, schema.among(present), form)
    except SchemaError as error:  # of two tables, say which
        raise SchemaError(*(f"{path}: {problem}" for problem in error.problems)) from None
    columns = list(dict.fromkeys(source for name, column in schema.data.items() for source in column.sources(name)))
    parts = [schema.encode(batch) for batch in table.batches(columns)]
    if not sum(map(len, parts)):  # told to whoever sees the table itself: no release is made here
        raise DataError(f"{path} has no rows: there is nothing to compare.")
    return np.concatenate(parts)

"""Opening the sensitive table: what the commands share that look at it. PRIVATE."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privmeasure.errors import ArgumentError, DataError, SchemaError
from privmeasure.outputs import ADDRESS, path_here

if TYPE_CHECKING:
    from privmeasure.tables.schema import Schema
    from privmeasure.tables.texts import TextForm


STDIN = Path("-")
"""The input that is no file."""


@contextmanager
def opened(data: "Path | str") -> "Iterator[Any]":
    """Give the place of the sensitive table; what comes on stdin is spooled first, for it is read more than once.

    The copy is private: in a folder of its own that nobody else may enter, for as long as the command runs. A text may
    be a place in a database; commands that read files alone give a path.
    """
    from privmeasure.sources.databases import SCHEMES

    if isinstance(data, Path) and str(data).partition(":")[0] in SCHEMES and not data.exists():
        raise DataError(
            "This command reads the rows of a file, and the table lies in a database. Export it to Parquet first."
        )
    if Path(data) != STDIN:
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


def file_behind(data: str) -> Path | None:
    """Return the file that the sensitive table lies in, which no output may replace; None elsewhere."""
    from privmeasure.sources.databases import file_of, is_database

    return file_of(data) if is_database(data) else path_here(data)


def check_outside(data: str, *outputs: Path | None) -> None:
    """Refuse an output inside the folder that is read, or with a name that the pattern means: it would be read too."""
    from glob import escape

    from privmeasure.sources.databases import is_database
    from privmeasure.sources.folders import is_pattern, is_table, pattern_of

    place = None if is_database(data) else path_here(data)
    if place is None or not (place.is_dir() or is_pattern(place)):
        return
    whole = str(place) if place.is_absolute() else f"{escape(str(Path.cwd()))}/{place}"
    wanted = None if place.is_dir() else pattern_of(whole)
    for output in (output for output in outputs if output is not None and is_table(output.name)):
        meant = wanted is not None and wanted.fullmatch(str(output.absolute()))
        if meant or place.resolve() in output.resolve().parents:
            raise ArgumentError(
                f"{output} lies among the files that are read, and would be read as one of them the next time. Write "
                "elsewhere."
            )


def told(data: str) -> str:
    """Return how to speak of the place of a table: an address may hold a password."""
    from privmeasure.sources.databases import is_database

    return f"The table in {data.partition(':')[0]}" if is_database(data) or ADDRESS.match(data) else data


def check_columns_of(data: Any, schema: "Schema", form: "TextForm") -> None:
    """Compare the columns of a table, in a file or in a database, with the schema; no row is read."""
    from privmeasure.sources.databases import is_database, open_database

    if is_database(data):
        open_database(data, schema).close()
    else:
        check_header(data, schema, form)


def open_undeclared(data: Path, form: "TextForm") -> Any:
    """Open a table for which there is no schema yet; no row is read.

    A text file with one column is refused if the name has another delimiter in it, unless the delimiter was given.
    """
    from privmeasure.sources.files import open_table
    from privmeasure.tables.suffixes import ask_for_delimiter

    table = open_table(data, form)
    question = ask_for_delimiter(table.names) if table.kind == "csv" and form.delimiter is None else ""
    if question:
        alone = "If the file has one column, give a delimiter that its header does not contain."
        raise ArgumentError(f"The header of {data} names one column. {question} {alone}")
    return table


def check_header(data: Path, schema: "Schema", form: "TextForm") -> Any:
    """Open a table, compare its header with the schema, and return it; no row is read."""
    from privmeasure.sources.files import open_table
    from privmeasure.sources.folders import check_table
    from privmeasure.tables.texts import with_decimals

    table = open_table(data, form, numbers=with_decimals(schema))
    check_table(schema, table)
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

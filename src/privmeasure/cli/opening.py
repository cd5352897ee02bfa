"""Opening the sensitive table: what the commands share that look at it. PRIVATE."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from privmeasure.errors import DataError, SchemaError

if TYPE_CHECKING:
    from privmeasure.tables.schema import Schema


def check_header(data: Path, schema: "Schema", *, newlines_in_cells: bool = False) -> Any:
    """Open a table, compare its header with the schema, and return it; no row is read."""
    from privmeasure.sources.files import open_table

    table = open_table(data, newlines_in_cells=newlines_in_cells)
    schema.check(table.names, table.types)
    return table


def read_points(path: Path, schema: "Schema", *, newlines_in_cells: bool = False) -> Any:
    """Return all rows of a table as points. PRIVATE where the table is. Columns without data need not be there."""
    import numpy as np

    from privmeasure.sources.files import open_table

    present = set(open_table(path, newlines_in_cells=newlines_in_cells).names)
    try:
        table = check_header(path, schema.among(present), newlines_in_cells=newlines_in_cells)
    except SchemaError as error:  # of two tables, say which
        raise SchemaError(*(f"{path}: {problem}" for problem in error.problems)) from None
    columns = list(dict.fromkeys(source for name, column in schema.data.items() for source in column.sources(name)))
    parts = [schema.encode(batch) for batch in table.batches(columns)]
    if not sum(map(len, parts)):  # told to whoever sees the table itself: no release is made here
        raise DataError(f"{path} has no rows: there is nothing to compare.")
    return np.concatenate(parts)

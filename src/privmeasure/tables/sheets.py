"""Sheets of xlsx files: tables into them, and the library that knows the format, which is an extra."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from privmeasure.errors import ArgumentError
from privmeasure.extras import how_to_install
from privmeasure.outputs import PartialFile

if TYPE_CHECKING:
    import pyarrow as pa

SHEET_ROWS = (1 << 20) - 1
"""That a sheet holds beside its header."""
UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Characters that no xlsx file can hold."""


def library() -> Any:
    """Return openpyxl, or say how to get it."""
    try:
        import openpyxl  # type: ignore[import-untyped, unused-ignore, import-not-found]
    except ImportError:
        raise ArgumentError(f"xlsx files need openpyxl: {how_to_install('xlsx')}. Or use CSV or Parquet.") from None
    return openpyxl


class SheetSink:
    """A sheet that takes tables one after the other, and is written when it is closed."""

    def __init__(self, part: PartialFile, first: "pa.Table") -> None:
        """Begin with the names of the columns."""
        self._openpyxl, self._part, self._rows = library(), part, 0
        self._book = self._openpyxl.Workbook(write_only=True)
        self._sheet = self._book.create_sheet("rows")
        self._sheet.append([self._cell(name) for name in first.column_names])

    def encode(self, table: "pa.Table") -> "pa.Table":
        """Return the table: a sheet takes its cells one by one."""
        return table

    def write(self, table: "pa.Table") -> None:
        """Add the rows of a table."""
        self._rows += table.num_rows
        if self._rows > SHEET_ROWS:
            raise ArgumentError(
                f"A sheet holds {SHEET_ROWS:,} rows at most. Ask for fewer with -n, or write CSV or Parquet."
            )
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            self._sheet.append([self._cell(cell) for cell in row])

    def _cell(self, value: Any) -> Any:
        """Return a cell. A text is a text, also where it looks like a formula; a time with a zone is one."""
        if isinstance(value, datetime) and value.tzinfo is not None:
            value = value.isoformat()
        if not isinstance(value, str):
            return value
        cell = self._openpyxl.cell.WriteOnlyCell(self._sheet, UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", value))
        cell.data_type = "s"
        return cell

    def close(self) -> None:
        """Write the file."""
        with self._part.open() as file:
            self._book.save(file)

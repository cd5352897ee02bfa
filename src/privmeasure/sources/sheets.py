"""Sheets of xlsx files: the first one of a file, its first row the header. Every cell arrives as text, by itself."""

import io
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from privmeasure.errors import DataError
from privmeasure.sources.disk import DiskFile, Quarters, Told, check_columns, check_names, readable
from privmeasure.sources.lines import UnreadRows
from privmeasure.sources.stores import FilePath, StorePath
from privmeasure.tables.sheets import library
from privmeasure.threads import BLOCK

if TYPE_CHECKING:
    import pyarrow as pa


LAST_COLUMN = 1 << 14
"""Columns of a sheet, by the format. A row with a cell that is said to lie beyond them cannot be read."""
UNREADABLE_CELL = object()
"""Stands for the value of a cell that cannot be read, in a column that is known."""
Row = tuple[str | None, tuple[Any, ...] | None]
"""The number that a row has in the file, if any, and its cells; None if the column of a cell is not known."""


class SheetTable(DiskFile):
    """The first sheet of an xlsx file. A cell of any kind becomes text, so that no other cell decides how it is read.

    A cell that cannot be read is missing. A row that has something beyond the last name, or in a column that cannot be
    known, is a row in which every cell is missing; a row without a single cell is none. Formulas count as what they
    gave when the file was saved.
    """

    kind = "xlsx"
    types = None

    def __init__(self, path: FilePath) -> None:
        """Read the header."""
        super().__init__(path)
        with self._rows() as rows:
            number, header = next(rows, (None, ()))
        if header is None or UNREADABLE_CELL in header:
            raise self._broken()
        names = [cell_text(cell) for cell in header] if number in (None, "1") else []
        while names and names[-1] is None:
            names.pop()
        if not names or None in names:
            raise DataError(f"The first row of {path} must name the columns, without gaps. Add a header.")
        self.names: tuple[str, ...] = tuple(name for name in names if name is not None)
        check_names(path, self.names, first_row=True)

    def batches(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Yield columns as text, in pieces of at most 131,072 rows. Nothing is kept."""
        check_columns(self.path, self.names, columns)
        self.check_unchanged()
        places, held = [self.names.index(name) for name in columns], []
        missing = (None,) * len(places)
        with self._rows() as rows:
            next(rows, None)
            for _, row in rows:
                if row is not None and all(cell is None for cell in row):
                    continue
                # private cells, each by itself, in its own row
                sound = row is not None and all(cell is None for cell in row[len(self.names) :])
                if unread is not None:
                    unread.rows += not sound
                cells = (*(row or ()), *(None,) * len(self.names))
                held.append(tuple(cell_text(cells[place]) for place in places) if sound else missing)
                if len(held) == BLOCK:
                    yield _batch(held, columns)
                    held = []
        yield _batch(held, columns)
        self.check_unchanged()
        Quarters(progress).passed(1, 1)

    def _bytes(self) -> Any:
        return io.BytesIO(self.path.native().read()) if isinstance(self.path, StorePath) else self.path.open("rb")

    @contextmanager
    def _rows(self) -> Iterator[Iterator[Row]]:
        """Give the rows of the sheet; what the reader says of them, which may show cells, is not passed on."""
        openpyxl = library()
        with readable(self.path):
            file = self._bytes()
        with file:  # openpyxl leaves a damaged one open
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
                    rows = _rows_of(book.worksheets[0])
            except Exception:  # whatever a damaged file leads to
                raise self._broken() from None
            try:
                yield self._sound(rows)
            finally:
                rows.close()
                book.close()

    def _sound(self, rows: Iterator[Row]) -> Iterator[Row]:
        while True:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    row = next(rows, None)
            except Exception:  # XML that ends: a damaged file, whose message may show a cell
                raise self._broken() from None
            if row is None:
                return
            yield row

    def _broken(self) -> DataError:
        return DataError(
            f"{self.path} is not a complete xlsx file that can be read. It may be damaged, or protected by a password. "
            "Save it again, or as CSV."
        )


def _rows_of(sheet: Any) -> Generator[Row]:
    """Yield the rows of a sheet in the order of the file, each read by itself.

    openpyxl's own loop goes by the numbers of rows: after one with a large number it passes over all that have smaller
    ones. It ends at a cell that it cannot read, and takes a text with a negative number from the end of all texts.
    """
    from openpyxl.utils.cell import coordinate_to_tuple  # type: ignore[import-untyped, unused-ignore]
    from openpyxl.worksheet._reader import WorkSheetParser  # type: ignore[import-untyped, unused-ignore]

    class Texts(list[Any]):
        def __getitem__(self, place: Any) -> Any:
            if place < 0:
                raise IndexError
            return super().__getitem__(place)

    class Rows(WorkSheetParser):  # type: ignore[misc, unused-ignore]
        def parse_row(self, row: Any) -> Row:
            self.col_counter = 0
            try:
                cells = dict(map(self.parse_cell, row))  # private cells, each in its own row
                width = max(cells, default=0)
                found = tuple(map(cells.get, range(1, width + 1))) if width <= LAST_COLUMN else None
            except Exception:  # of a place that is none, which the message may show
                found = None
            return row.get("r"), found

        def parse_cell(self, cell: Any) -> tuple[int, Any]:
            place = cell.get("r")
            column = coordinate_to_tuple(place)[1] if place else self.col_counter + 1
            try:
                value = super().parse_cell(cell)["value"]
            except Exception:  # of a value that is none: this cell is missing, and no other
                value = UNREADABLE_CELL
            self.col_counter = column
            return column, value

    book = sheet.parent
    with sheet._get_source() as source:
        yield from Rows(
            source,
            Texts(sheet._shared_strings),
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        ).parse()


def cell_text(cell: Any) -> str | None:
    """Return a cell of a sheet as text; None if it is empty or cannot be read.

    Whole numbers have no decimals, and days no midnight.

    Examples:
        >>> cell_text(3.0), cell_text(0.1), cell_text(True), cell_text(datetime(2020, 1, 31)), cell_text("=x")
        ('3', '0.1', 'true', '2020-01-31', '=x')
    """
    if cell is None or cell is UNREADABLE_CELL:
        return None
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    return repr(cell / timedelta(days=1)) if isinstance(cell, timedelta) else str(cell)


def _batch(rows: list[tuple[str | None, ...]], columns: Sequence[str]) -> "pa.RecordBatch":
    import pyarrow as pa

    cells = list(zip(*rows, strict=True)) or [()] * len(columns)
    texts = [[None if c is None else c.encode("utf-8", "replace") for c in column] for column in cells]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, pa.binary()).view(pa.string()) for column in texts], list(columns)
    )

"""Sheets of xlsx files: the first one of a file, its first row the header. Every cell arrives as text, by itself."""

import io
import warnings
from collections.abc import Iterator, Sequence
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


class SheetTable(DiskFile):
    """The first sheet of an xlsx file. A cell of any kind becomes text, so that no other cell decides how it is read.

    A row that has something beyond the last name is a row whose cells are all missing; a row without a single cell is
    none. Formulas count as what they gave when the file was saved.
    """

    kind = "xlsx"
    types = None

    def __init__(self, path: FilePath) -> None:
        """Read the header."""
        super().__init__(path)
        with self._rows() as rows:
            header = next(rows, ())
        names = [cell_text(cell) for cell in header]
        while names and names[-1] is None:
            names.pop()
        if not names or None in names:
            raise DataError(f"The first row of {path} must name the columns, without gaps. Add a header.")
        self.names: tuple[str, ...] = tuple(name for name in names if name is not None)
        check_names(path, self.names)

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
            for row in rows:
                if all(cell is None for cell in row):
                    continue
                # private cells, each by itself, in its own row
                sound = all(cell is None for cell in row[len(self.names) :])
                if unread is not None:
                    unread.rows += not sound
                cells = (*row, *(None,) * (len(self.names) - len(row)))
                held.append(tuple(cell_text(cells[place]) for place in places) if sound else missing)
                if len(held) == BLOCK:
                    yield _batch(held, columns)
                    held = []
        yield _batch(held, columns)
        self.check_unchanged()
        Quarters(progress).passed(1, 1)

    def _place(self) -> Any:
        return io.BytesIO(self.path.native().read()) if isinstance(self.path, StorePath) else self.path

    @contextmanager
    def _rows(self) -> Iterator[Iterator[tuple[Any, ...]]]:
        """Give the rows of the sheet; what the reader says of them, which may show cells, is not passed on."""
        openpyxl = library()
        try:
            with readable(self.path), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                book = openpyxl.load_workbook(self._place(), read_only=True, data_only=True, keep_links=False)
                sheet = book.worksheets[0]
                sheet.reset_dimensions()  # what other programs say of them is often wrong
        except DataError:
            raise
        except Exception:  # whatever a damaged file leads to
            raise self._broken() from None
        try:
            yield self._sound(sheet.iter_rows(values_only=True))
        finally:
            book.close()

    def _sound(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        while True:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    row = next(rows, None)
            except Exception:  # XML that ends, a text that is not there: a damaged file, whose message may show a cell
                raise self._broken() from None
            if row is None:
                return
            yield row

    def _broken(self) -> DataError:
        return DataError(
            f"{self.path} is not a complete xlsx file that can be read. It may be damaged, or protected by a password. "
            "Save it again, or as CSV."
        )


def cell_text(cell: Any) -> str | None:
    """Return a cell of a sheet as text, None for an empty one. Whole numbers have no decimals, days no midnight.

    Examples:
        >>> cell_text(3.0), cell_text(0.1), cell_text(True), cell_text(datetime(2020, 1, 31)), cell_text("=x")
        ('3', '0.1', 'true', '2020-01-31', '=x')
    """
    if cell is None or isinstance(cell, str):
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

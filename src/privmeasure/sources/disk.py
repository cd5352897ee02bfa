"""What all files of tables share: one place on the disk, read more than once, and told of in quarters.

No message shows a value, a row number or a number of rows.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol

from privmeasure.errors import DataError
from privmeasure.sources.lines import UnreadRows
from privmeasure.sources.stores import FilePath
from privmeasure.threads import QUARTERS

if TYPE_CHECKING:
    import pyarrow as pa

Told = Callable[[float], None]
Piece = Callable[[], "Iterator[pa.RecordBatch]"]
"""Reads a part of a table, in whatever thread asks for its batches."""


class TableFile(Protocol):
    """A table in a file: its structure is known, its rows are read when asked for, as often as one likes."""

    @property
    def kind(self) -> str:
        """Either "csv", "parquet", "feather" or "xlsx"."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the file."""
        ...

    @property
    def types(self) -> "tuple[pa.DataType, ...] | None":
        """The storage types of the columns; None for text, which has none."""
        ...

    def batches(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Yield some columns of all rows, in pieces of bounded size; count rows that cannot be read in `unread`."""
        ...

    def check_unchanged(self) -> None:
        """Refuse a file that is not the one that was opened; `batches` does so at its beginning and its end."""
        ...


def portions_of(table: TableFile) -> list[TableFile]:
    """Return what can be read apart, on other machines too: files of a folder, groups of rows; else the table."""
    portions: Callable[[], list[TableFile]] | None = getattr(table, "portions", None)
    return [table] if portions is None else portions()


def pieces_of(
    table: TableFile, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
) -> Iterator[Piece]:
    """Yield what reads each part of a table, for threads to share; a table that has no parts is one."""
    pieces: Callable[..., Iterator[Piece]] | None = getattr(table, "pieces", None)
    if pieces is None:
        yield partial(table.batches, columns, progress=progress, unread=unread)
    else:
        yield from pieces(columns, progress=progress, unread=unread)


class Quarters:
    """Tells of each quarter that was passed, once.

    Examples:
        >>> quarters = Quarters(print)
        >>> quarters.passed(7, 10)
        0.25
        0.5
        >>> quarters.passed(8, 10)
        0.75
    """

    def __init__(self, tell: Told | None) -> None:
        """Take whom to tell."""
        self._tell, self._next = tell, 1

    def passed(self, part: int, whole: int) -> None:
        """Say how much of the whole is done; more than one quarter may have passed."""
        while self._next <= QUARTERS and part * QUARTERS >= self._next * whole:
            if self._tell is not None:
                self._tell(self._next / QUARTERS)
            self._next += 1


@contextmanager
def readable(path: FilePath) -> Iterator[None]:
    """Turn the system's refusals into one clear error."""
    try:
        yield
    except PermissionError:
        raise DataError(f"There is no permission to read {path}. Change its permissions, or copy it.") from None
    except FileNotFoundError:
        raise DataError(f"The file {path} does not exist. Check the path.") from None
    except ValueError as error:  # a path with a null character
        if isinstance(error, DataError):
            raise
        raise DataError("The path of the table is not one that the system knows. Check the path.") from None
    except OSError:
        raise DataError(f"{path} cannot be read from the disk. Check the disk, or copy the file again.") from None


class DiskFile:
    """A file that is read more than once, and must be the same each time: else each pass sees other rows."""

    def __init__(self, path: FilePath) -> None:
        """Note size, times and place on the disk."""
        self.path = path
        self._seen: tuple[int | None, ...] = self._look()

    def _look(self) -> tuple[int, ...]:
        with readable(self.path):
            status = self.path.stat()
        # the second time cannot be set back, as copying programs do with the first
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev

    def check_unchanged(self) -> None:
        """Refuse a file that is not the one that was opened."""
        if any(was not in (now, None) for was, now in zip(self._seen, self._look(), strict=True)):
            raise DataError(f"{self.path} changed after it was opened. Work on a copy that nobody writes to.")

    def __getstate__(self) -> dict[str, object]:
        """Travel to other machines, which know a shared file by its size and the time of its change alone."""
        size, changed, *_ = self._seen
        return vars(self) | {"_seen": (size, changed, None, None, None)}


def check_columns(path: FilePath, names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse columns that a file does not have."""
    for name in columns:
        if name not in names:
            raise DataError(f"{path} has no column {name!r}. Compare its header with the schema.")


def check_names(path: FilePath, names: Sequence[str], *, first_row: bool = False) -> None:
    """Refuse a header that names a column twice. One that is the first row of a file may be data, and is not shown."""
    twice = [repr(name) for name, count in Counter(names).items() if count > 1]
    if twice and first_row:
        raise DataError(
            f"The header of {path}, its first line, gives several columns one name. Every column needs its own name: "
            "rename them, or add a header if there is none."
        )
    if twice:
        raise DataError(
            f"{path} has several columns named {', '.join(twice[:5])}. Every column needs its own name: rename them."
        )


def check_plain(path: FilePath, types: "Mapping[str, pa.DataType]", columns: Sequence[str]) -> None:
    """Refuse columns of lists or records."""
    import pyarrow.types as pt

    for name in columns:
        if pt.is_nested(types[name]) and not pt.is_run_end_encoded(types[name]):
            raise DataError(
                f"Column {name!r} of {path} has the nested type {types[name]}. "
                "Spread it over plain columns, or declare it as Drop."
            )

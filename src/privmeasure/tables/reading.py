"""Tables in files as batches of columns: delimited text and Parquet.

What may raise is the structure of a file: its header, its types, its encoding, rows of unequal lengths, an end that is
missing. A cell may not. No message shows a value, a row number or a number of rows: the messages of the readers below
do, so none of them is passed on.
"""

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from privmeasure.blocks import BLOCK
from privmeasure.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 21
"""Bytes of text that are parsed at a time, and so the longest row. The reader holds about 40 blocks."""
HEADER_BYTES = 1 << 20
"""The longest header of a text file."""


QUARTERS = 4
"""Progress is told after each quarter of a table: four times whatever the number of rows, which may be private."""

Told = Callable[[float], None]


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


class TableFile(Protocol):
    """A table in a file: its structure is known, its rows are read when asked for, as often as one likes."""

    @property
    def kind(self) -> str:
        """Either "csv" or "parquet"."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the file."""
        ...

    @property
    def types(self) -> "tuple[pa.DataType, ...] | None":
        """The storage types of the columns; None for text, which has none."""
        ...

    def batches(self, columns: Sequence[str], *, progress: Told | None = None) -> "Iterator[pa.RecordBatch]":
        """Yield some columns of all rows, in pieces of bounded size."""
        ...


@contextmanager
def readable(path: Path) -> Iterator[None]:
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


def _check_columns(path: Path, names: Sequence[str], columns: Sequence[str]) -> None:
    for name in columns:
        if name not in names:
            raise DataError(f"{path} has no column {name!r}. Compare its header with the schema.")


def _check_names(path: Path, names: Sequence[str]) -> None:
    twice = [repr(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"{path} has several columns named {', '.join(twice[:5])}. Every column needs its own name: rename them."
        )


# ----------------------------------------------------------------------------------------------------------------- text


class TextTable:
    """A text file with a header. Every cell arrives as text; an empty one is missing, a quoted empty one is "".

    Lines without any character are not rows, except in a file of one column, where they are a missing cell.
    """

    kind = "csv"
    types = None

    def __init__(self, path: Path, delimiter: str, *, zipped: bool) -> None:
        """Read the header."""
        self.path, self.delimiter, self.zipped = path, delimiter, zipped
        self.names, self._empty = self._header()

    def _header(self) -> tuple[tuple[str, ...], bool]:
        """Return the names, and whether the file ends after them."""
        with readable(self.path), self._open() as file:
            try:
                head = file.read(HEADER_BYTES)
            except (EOFError, gzip.BadGzipFile, zlib.error):
                raise self._broken_zip() from None
        if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:2]:
            raise DataError(f"{self.path} seems to be UTF-16. Save it as UTF-8.")
        text = io.StringIO(head.decode("utf-8-sig", "surrogateescape"), newline="")
        try:
            names = next((names for names in csv.reader(text, delimiter=self.delimiter) if names), None)
        except csv.Error:
            names = None
        if names is None and not head.removeprefix(b"\xef\xbb\xbf").strip():
            raise DataError(f"{self.path} is empty: its first line must name the columns. Write the table again.")
        if names is None or (len(head) == HEADER_BYTES and text.read(1) == ""):
            raise DataError(
                f"The first line of {self.path} cannot be read as the names of columns: it is too long, or a quote "
                "does not end. Add a header."
            )
        try:
            "".join(names).encode()
        except UnicodeEncodeError:
            raise self._bad_encoding() from None
        _check_names(self.path, names)
        rest = text.read() if len(names) == 1 else text.read().strip("\r\n")
        return tuple(names), rest == "" and len(head) < HEADER_BYTES

    def _open(self) -> BinaryIO:
        return gzip.open(self.path) if self.zipped else self.path.open("rb")  # type: ignore[return-value]

    def batches(self, columns: Sequence[str], *, progress: Told | None = None) -> "Iterator[pa.RecordBatch]":
        """Yield columns as text. The pieces depend on the bytes of the file alone; nothing is kept."""
        import pyarrow as pa
        import pyarrow.csv as pc

        _check_columns(self.path, self.names, columns)
        quarters = Quarters(progress)
        one = len(self.names) == 1
        read = pc.ReadOptions(block_size=BLOCK_BYTES)
        parse = pc.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, ignore_empty_lines=not one)
        convert = pc.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        )
        with readable(self.path):
            raw = pa.OSFile(str(self.path))
        with raw as file, pa.CompressedInputStream(file, "gzip") if self.zipped else file as stream:
            try:
                for batch in () if self._empty else pc.open_csv(stream, read, parse, convert):
                    yield batch  # private cells as they are: whoever asked for them encodes and counts
                    quarters.passed(file.tell(), file.size())
            except (pa.ArrowException, OSError, UnicodeError) as error:
                raise self._fault(str(error)) from None  # the message may hold the text of a row: it ends here
        quarters.passed(1, 1)

    def _fault(self, message: str) -> DataError:
        """Return our own words for what a reader says; of its message only the kind of fault is used."""
        if "columns, got" in message:
            return DataError(
                f"{self.path} has a row with more or fewer cells than the header has names ({len(self.names)}). "
                "Quote cells that hold the delimiter or a quote, or write the table again."
            )
        if "UTF8" in message or "utf-8" in message:
            return self._bad_encoding()
        if "straddl" in message:
            return DataError(
                f"{self.path} has a row longer than {BLOCK_BYTES >> 20} MiB. A quote that does not end may be the "
                "cause; else leave long texts out of the file."
            )
        if self.zipped:
            return self._broken_zip()
        return DataError(f"{self.path} cannot be read as delimited text with a header. Write the table again.")

    def _bad_encoding(self) -> DataError:
        return DataError(f"{self.path} is not UTF-8. Convert it, for instance with: iconv -f latin1 -t utf-8.")

    def _broken_zip(self) -> DataError:
        return DataError(f"{self.path} is a gzip file that is truncated or damaged. Copy or compress it again.")


# -------------------------------------------------------------------------------------------------------------- parquet


class ParquetTable:
    """A Parquet file. Cells arrive in its own types; text arrives with its dictionary, which is faster to encode."""

    kind = "parquet"

    def __init__(self, path: Path) -> None:
        """Read the footer."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = path
        with readable(path), self._whole(), pq.ParquetFile(path) as file:
            schema = file.schema_arrow
        self.names: tuple[str, ...] = tuple(schema.names)
        self.types: tuple[pa.DataType, ...] = tuple(schema.types)
        _check_names(path, self.names)

    def batches(self, columns: Sequence[str], *, progress: Told | None = None) -> "Iterator[pa.RecordBatch]":
        """Yield columns in pieces of at most 131,072 rows. Nothing is kept."""
        import pyarrow.parquet as pq
        import pyarrow.types as pt

        types = dict(zip(self.names, self.types, strict=True))
        _check_columns(self.path, self.names, columns)
        for name in columns:
            if pt.is_nested(types[name]):
                raise DataError(
                    f"Column {name!r} of {self.path} has the nested type {types[name]}. "
                    "Spread it over plain columns, or declare it as Drop."
                )
        texts = [name for name in columns if pt.is_string(types[name]) or pt.is_large_string(types[name])]
        with readable(self.path), self._whole():
            file = pq.ParquetFile(self.path, read_dictionary=texts)
        with file:
            quarters, rows = Quarters(progress), 0
            pieces = file.iter_batches(batch_size=BLOCK, columns=list(columns))
            while True:
                with readable(self.path), self._whole():
                    piece = next(pieces, None)
                if piece is None:
                    break
                yield piece.select(list(columns))  # private cells, as above
                quarters.passed(rows := rows + piece.num_rows, file.metadata.num_rows)
            quarters.passed(1, 1)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Replace the reader's messages, which may show sizes or values."""
        import pyarrow as pa

        try:
            yield
        except (FileNotFoundError, PermissionError):
            raise
        except (OSError, UnicodeError, pa.ArrowException):
            raise DataError(
                f"{self.path} is not a complete Parquet file that can be read. It may be truncated, damaged or "
                "encrypted. Copy it or write it again."
            ) from None

"""Tables in files as batches of columns: delimited text and Parquet.

What may raise is the structure of a file: its header, its types, an end that is missing. A row or a cell may not. No
message shows a value, a row number or a number of rows: the messages of the readers below do, so none is passed on.
"""

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from privmeasure.errors import DataError
from privmeasure.sources.lines import CellReader, Grammar, UnreadRows, whole_records
from privmeasure.tables.suffixes import DELIMITERS, ENDINGS, kind_of, suffixes
from privmeasure.tables.texts import UTF8, TextForm, letters_of
from privmeasure.threads import BLOCK, QUARTERS

if TYPE_CHECKING:
    import pyarrow as pa

USUAL_TEXT = TextForm()
"""Commas or tabs by the end of the name, a decimal point, UTF-8."""
HEADER_BYTES = 1 << 20
"""The longest header of a text file."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some programs put it before the text."""


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

    def batches(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Yield some columns of all rows, in pieces of bounded size; count rows that cannot be read in `unread`."""
        ...

    def check_unchanged(self) -> None:
        """Refuse a file that is not the one that was opened; `batches` does so at its beginning and its end."""
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


class _File:
    """A file that is read more than once, and must be the same each time: else each pass sees other rows."""

    def __init__(self, path: Path) -> None:
        """Note size, times and place on the disk."""
        self.path = path
        self._seen = self._look()

    def _look(self) -> tuple[int, ...]:
        with readable(self.path):
            status = self.path.stat()
        # the second time cannot be set back, as copying programs do with the first
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev

    def check_unchanged(self) -> None:
        """Refuse a file that is not the one that was opened."""
        if self._look() != self._seen:
            raise DataError(f"{self.path} changed after it was opened. Work on a copy that nobody writes to.")


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


class TextTable(_File):
    """A text file with a header. Every cell arrives as text; an empty one is missing, a quoted empty one is "".

    See `sources/lines.py` for what a row is. Only the header may raise, or a gzip file that is damaged as a whole.
    """

    kind = "csv"
    types = None

    def __init__(self, path: Path, form: TextForm, *, zipped: bool, numbers: Collection[str] = ()) -> None:
        """Read the header; `numbers` are the columns in which a decimal mark may stand."""
        super().__init__(path)
        self.zipped, self._form, self._numbers = zipped, form, numbers
        delimiter = form.delimiter or DELIMITERS[suffixes(path)[1]]
        self.names, self._start = self._header(delimiter, form.newlines_in_cells)
        self._grammar = Grammar(delimiter, len(self.names), form.newlines_in_cells)

    def _header(self, delimiter: str, newlines_in_cells: bool) -> tuple[tuple[str, ...], int]:
        """Return the names, and at which byte the rows begin."""
        with readable(self.path), self._open() as file:
            try:
                head = file.read(HEADER_BYTES)
            except (EOFError, gzip.BadGzipFile, zlib.error):
                raise self._broken_zip() from None
        if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:2]:
            raise DataError(f"{self.path} seems to be UTF-16. Save it as UTF-8.")
        mark = len(BYTE_ORDER_MARK) if head.startswith(BYTE_ORDER_MARK) else 0
        if mark and self._form.codec != UTF8:
            raise DataError(f"{self.path} begins with the mark of UTF-8, and is said to be {self._form.encoding!r}.")
        blank = mark + len(head[mark:]) - len(head[mark:].lstrip(b"\r\n"))
        if not head[mark:].strip():
            raise DataError(f"{self.path} is empty: its first line must name the columns. Write the table again.")
        grammar = Grammar(delimiter, 1, newlines_in_cells)
        line = grammar.first(head[blank:])
        after = blank + len(line)
        whole = grammar.closed.fullmatch(line) and head[after : after + 1] in (b"", b"\r", b"\n")
        try:
            names = next(csv.reader([self._letters(line)], delimiter=delimiter))
        except csv.Error:
            names = []
        if not names or not whole or after == HEADER_BYTES:
            raise DataError(
                f"The first line of {self.path} cannot be read as the names of columns: it is too long, or a quote "
                "does not end. Add a header."
            )
        try:
            "".join(names).encode()
        except UnicodeEncodeError:
            raise DataError(
                f"{self.path} is not UTF-8. Say what it is, for instance with --encoding latin-1 or encoding='cp1252'."
            ) from None
        _check_names(self.path, names)
        return tuple(names), after + (2 if head[after : after + 2] == b"\r\n" else 1)

    def _letters(self, line: bytes) -> str:
        """Return the header's letters; what is none is half a character, or the sign for one."""
        letters = None if self._form.codec == UTF8 else letters_of(self._form.codec)
        if letters is None:
            return line.decode(UTF8, "surrogateescape")
        return "".join(letters[byte] for byte in line)

    def _open(self) -> BinaryIO:
        return gzip.open(self.path) if self.zipped else self.path.open("rb")  # type: ignore[return-value]

    def batches(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Yield columns as text. The pieces depend on the bytes of the file alone; nothing is kept."""
        import pyarrow as pa

        _check_columns(self.path, self.names, columns)
        self.check_unchanged()
        quarters = Quarters(progress)
        translations = {name: self._form.translation(number=name in self._numbers) for name in columns}
        reader = CellReader(self._grammar, self.names, columns, translations)
        with readable(self.path):
            raw = pa.OSFile(str(self.path))
        with raw as file, pa.CompressedInputStream(file, "gzip") if self.zipped else file as stream:
            blocks = whole_records(stream.read, self._grammar, start=self._start)
            while (block := self._next(blocks)) is not None:
                yield reader.read(block, unread)  # private cells: whoever asked for them encodes and counts
                quarters.passed(file.tell(), file.size())
        self.check_unchanged()
        quarters.passed(1, 1)

    def _next(self, blocks: Iterator[bytes]) -> bytes | None:
        import pyarrow as pa

        try:
            return next(blocks, None)
        except (pa.ArrowException, OSError):  # the disk, or a damaged gzip file: no row can cause it
            if self.zipped:
                raise self._broken_zip() from None
            raise DataError(
                f"{self.path} cannot be read from the disk. Check the disk, or copy the file again."
            ) from None

    def _broken_zip(self) -> DataError:
        return DataError(f"{self.path} is a gzip file that is truncated or damaged. Copy or compress it again.")


# -------------------------------------------------------------------------------------------------------------- parquet


class ParquetTable(_File):
    """A Parquet file. Cells arrive in its own types; text arrives with its dictionary, which is faster to encode."""

    kind = "parquet"

    def __init__(self, path: Path) -> None:
        """Read the footer."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        super().__init__(path)
        with readable(path), self._whole(), pq.ParquetFile(path) as file:
            schema, self._rows = file.schema_arrow, file.metadata.num_rows
        self.names: tuple[str, ...] = tuple(schema.names)
        self.types: tuple[pa.DataType, ...] = tuple(schema.types)
        _check_names(path, self.names)

    def batches(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Yield columns in pieces of at most 131,072 rows. Nothing is kept, and there is no row that cannot be read."""
        import pyarrow.types as pt

        types = dict(zip(self.names, self.types, strict=True))
        _check_columns(self.path, self.names, columns)
        for name in columns:
            if pt.is_nested(types[name]):
                raise DataError(
                    f"Column {name!r} of {self.path} has the nested type {types[name]}. "
                    "Spread it over plain columns, or declare it as Drop."
                )
        self.check_unchanged()
        texts = [name for name in columns if pt.is_string(types[name]) or pt.is_large_string(types[name])]
        quarters, rows = Quarters(progress), 0
        for piece in self._pieces(list(columns), texts):
            yield piece  # private cells, as above
            quarters.passed(rows := rows + piece.num_rows, self._rows)
        self.check_unchanged()
        quarters.passed(1, 1)

    def _pieces(self, columns: list[str], texts: list[str]) -> "Iterator[pa.RecordBatch]":
        """Yield batches, texts with their dictionaries; not where these take 2 GiB, for which one cell is enough."""
        import pyarrow as pa

        past = 0
        try:
            for piece in self._read(columns, texts):
                yield piece
                past += piece.num_rows
        except pa.ArrowCapacityError:  # its message tells a size
            for piece in self._read(columns, []):
                rest = piece.slice(past)
                past -= piece.num_rows - rest.num_rows
                if rest.num_rows:
                    yield rest

    def _read(self, columns: list[str], dictionaries: list[str]) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa
        import pyarrow.parquet as pq

        told = (pa.ArrowCapacityError,) if dictionaries else ()
        with readable(self.path), self._whole():
            file = pq.ParquetFile(self.path, read_dictionary=dictionaries)
        with file:
            pieces = file.iter_batches(batch_size=BLOCK, columns=columns)
            while True:
                with readable(self.path), self._whole(*told):
                    piece = next(pieces, None)
                if piece is None:
                    return
                yield piece.select(columns)

    @contextmanager
    def _whole(self, *told: type[Exception]) -> Iterator[None]:
        """Replace the reader's messages, which may show sizes or values; errors that are `told` pass."""
        import pyarrow as pa

        try:
            yield
        except (FileNotFoundError, PermissionError):
            raise
        except told:
            raise
        except (OSError, UnicodeError, pa.ArrowException):
            raise DataError(
                f"{self.path} is not a complete Parquet file that can be read. It may be truncated, damaged or "
                "encrypted. Copy it or write it again."
            ) from None


def open_table(path: str | Path, form: TextForm = USUAL_TEXT, *, numbers: Collection[str] = ()) -> TableFile:
    """Open a table by the end of its name. Reads the header or the footer, and no row.

    `form` says how a text file is written, `numbers` in which of its columns a decimal mark may stand.

    Examples:
        >>> open_table("nowhere.csv")
        Traceback (most recent call last):
        privmeasure.errors.DataError: The file nowhere.csv does not exist. Check the path.
    """
    path = Path(path)
    with readable(path):
        if path.is_dir():
            raise DataError(f"{path} is a folder, where a table file is expected. Give the path of one {ENDINGS} file.")
        if not path.exists():
            raise DataError(f"The file {path} does not exist. Check the path.")
        if not path.is_file():
            raise DataError(f"{path} is not a regular file. It is read more than once: save it as a file first.")
        with path.open("rb") as file:
            magic = file.read(4)
    if kind_of(path) == "parquet":
        if not magic:
            raise DataError(f"{path} is empty, where a Parquet file is expected. Write the table again.")
        if magic != b"PAR1":
            raise DataError(
                f"{path} is not a Parquet file by its first bytes. If it is text, rename it to .csv or .tsv."
            )
        return ParquetTable(path)
    if magic == b"PAR1":
        raise DataError(f"{path} is a Parquet file by its first bytes. Rename it to .parquet.")
    zipped = magic[:2] == b"\x1f\x8b"
    return TextTable(path, form, zipped=zipped, numbers=numbers)

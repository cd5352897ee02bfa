"""Tables in files as batches of columns: delimited text and Parquet.

What may raise is the structure of a file: its header, its types, an end that is missing. A row or a cell may not. No
message shows a value, a row number or a number of rows: the messages of the readers below do, so none is passed on.
"""

import csv
import gzip
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO

from privmeasure.errors import DataError
from privmeasure.sources.disk import (
    DiskFile,
    Piece,
    Quarters,
    TableFile,
    Told,
    check_columns,
    check_names,
    check_plain,
    readable,
)
from privmeasure.sources.feather import FeatherTable
from privmeasure.sources.folders import TableFolder, is_pattern
from privmeasure.sources.lines import CellReader, Grammar, UnreadRows, whole_records
from privmeasure.sources.sheets import SheetTable
from privmeasure.sources.stores import FilePath, StorePath, file_path, native_file
from privmeasure.tables.suffixes import DELIMITERS, kind_of, suffixes
from privmeasure.tables.texts import UTF8, TextForm, letters_of
from privmeasure.threads import BLOCK

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Quarters", "TableFile", "open_table"]

USUAL_TEXT = TextForm()
"""Commas or tabs by the end of the name, a decimal point, UTF-8."""
HEADER_BYTES = 1 << 20
"""The longest header of a text file."""
KINDS = {b"PAR1": "parquet", b"ARROW1": "feather", b"PK\x03\x04": "xlsx"}
"""The first bytes of files that are not text."""
TITLES = {"parquet": "Parquet", "feather": "Feather", "xlsx": "spreadsheet (xlsx)"}
ENDING_OF = {"parquet": ".parquet", "feather": ".feather", "xlsx": ".xlsx"}
PAGE_BYTES = 1 << 16
"""Bytes of a column of a Parquet file that are in memory at a time: several threads read, each its own rows."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some programs put it before the text."""


# ----------------------------------------------------------------------------------------------------------------- text


class TextTable(DiskFile):
    """A text file with a header. Every cell arrives as text; an empty one is missing, a quoted empty one is "".

    See `sources/lines.py` for what a row is. Only the header may raise, or a gzip file that is damaged as a whole.
    """

    kind = "csv"
    types = None

    def __init__(self, path: FilePath, form: TextForm, *, zipped: bool, numbers: Collection[str] = ()) -> None:
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
        check_names(self.path, names, first_row=True)
        return tuple(names), after + (2 if head[after : after + 2] == b"\r\n" else 1)

    def _letters(self, line: bytes) -> str:
        """Return the header's letters; what is none is half a character, or the sign for one."""
        letters = None if self._form.codec == UTF8 else letters_of(self._form.codec)
        if letters is None:
            return line.decode(UTF8, "surrogateescape")
        return "".join(letters[byte] for byte in line)

    def _open(self) -> BinaryIO:
        if not self.zipped:
            return self.path.open("rb")
        return gzip.open(native_file(self.path) if isinstance(self.path, StorePath) else self.path)  # type: ignore[return-value]

    def batches(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Yield columns as text. The pieces depend on the bytes of the file alone; nothing is kept."""
        for read in self.pieces(columns, progress=progress, unread=unread):
            yield from read()

    def pieces(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> Iterator[Piece]:
        """Yield what reads each batch: lines are found one after the other, but cells in whatever thread asks."""
        import pyarrow as pa

        check_columns(self.path, self.names, columns)
        self.check_unchanged()
        quarters = Quarters(progress)
        translations = {name: self._form.translation(number=name in self._numbers) for name in columns}
        reader = CellReader(self._grammar, self.names, columns, translations)
        with readable(self.path):
            raw = native_file(self.path)
        with raw as file, pa.CompressedInputStream(file, "gzip") if self.zipped else file as stream:
            blocks = whole_records(stream.read, self._grammar, start=self._start)
            while (block := self._next(blocks)) is not None:
                # private cells: whoever asks for them encodes and counts
                yield partial(map, reader.read, [block], [unread])
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


class ParquetTable(DiskFile):
    """A Parquet file. Cells arrive in its own types; text arrives with its dictionary, which is faster to encode."""

    kind = "parquet"

    def __init__(self, path: FilePath) -> None:
        """Read the footer."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        super().__init__(path)
        with readable(path), self._whole(), native_file(path) as raw, pq.ParquetFile(raw) as file:
            schema, self._all_groups = file.schema_arrow, file.num_row_groups
            self.names: tuple[str, ...] = tuple(schema.names)
            self.types: tuple[pa.DataType, ...] = tuple(schema.types)
        self._groups: range | None = None
        check_names(path, self.names)

    def batches(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Yield columns in pieces of at most 131,072 rows. Nothing is kept, and there is no row that cannot be read."""
        for read in self.pieces(columns, progress=progress, unread=unread):
            yield from read()

    def pieces(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> Iterator[Piece]:
        """Yield what reads each stretch of rows: to decode them is most of the work."""
        import pyarrow.parquet as pq
        import pyarrow.types as pt

        types = dict(zip(self.names, self.types, strict=True))
        check_columns(self.path, self.names, columns)
        check_plain(self.path, types, columns)
        self.check_unchanged()
        texts = [name for name in columns if pt.is_string(types[name]) or pt.is_large_string(types[name])]
        with readable(self.path), self._whole(), native_file(self.path) as raw, pq.ParquetFile(raw) as file:
            metadata = file.metadata
        stretches = list(_stretches(metadata, self._groups))
        quarters, rows, turn = Quarters(progress), 0, Lock()
        whole = sum(count for _, count in stretches)

        def read(groups: list[int]) -> "Iterator[pa.RecordBatch]":
            nonlocal rows
            for batch in self._piece(metadata, groups, list(columns), texts):
                yield batch
                with turn:  # several threads read
                    quarters.passed(rows := rows + batch.num_rows, whole)

        for groups, _ in stretches:
            yield partial(read, groups)
        if not whole:
            quarters.passed(1, 1)

    def portions(self) -> list[TableFile]:
        """Return the file in groups of rows, which can be read apart; `batches` of each yields its own rows."""
        if self._all_groups < 2:
            return [self]
        portions = [copy(self) for _ in range(self._all_groups)]
        for i, portion in enumerate(portions):
            portion._groups = range(i, i + 1)
        return list(portions)

    def _piece(
        self, metadata: Any, groups: list[int], columns: list[str], texts: list[str]
    ) -> "Iterator[pa.RecordBatch]":
        """Yield batches, texts with their dictionaries; not where these take 2 GiB, for which one cell is enough."""
        import pyarrow as pa

        past = 0
        try:
            for batch in self._read(metadata, groups, columns, texts):
                yield batch  # private cells, as above
                past += batch.num_rows
        except pa.ArrowCapacityError:  # its message tells a size
            for batch in self._read(metadata, groups, columns, []):
                rest = batch.slice(past)
                past -= batch.num_rows - rest.num_rows
                if rest.num_rows:
                    yield rest
        self.check_unchanged()

    def _read(
        self, metadata: Any, groups: list[int], columns: list[str], dictionaries: list[str]
    ) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa
        import pyarrow.parquet as pq

        told = (pa.ArrowCapacityError,) if dictionaries else ()
        far = isinstance(self.path, StorePath)  # where many small requests take long, all bytes are asked for at once
        with readable(self.path), self._whole():
            raw = native_file(self.path)
            file = pq.ParquetFile(
                raw, metadata=metadata, read_dictionary=dictionaries, pre_buffer=far, buffer_size=PAGE_BYTES
            )
        with raw, file:
            batches = file.iter_batches(batch_size=BLOCK, row_groups=groups, columns=columns)
            while True:
                with readable(self.path), self._whole(*told):
                    batch = next(batches, None)
                if batch is None:
                    break
                yield batch.select(columns)

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


def _stretches(metadata: Any, asked: Sequence[int] | None) -> Iterator[tuple[list[int], int]]:
    """Yield the groups of rows of a Parquet file, or those asked for, so many together that they have `BLOCK` rows."""
    groups: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups) if asked is None else asked:
        groups.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= BLOCK:
            yield groups, rows
            groups, rows = [], 0
    if groups:
        yield groups, rows


def open_table(
    place: str | Path, form: TextForm = USUAL_TEXT, *, numbers: Collection[str] = (), filesystem: Any = None
) -> TableFile:
    """Open a table by the end of its name, or all tables of a folder or a pattern. Reads headers, and no row.

    `form` says how a text file is written, `numbers` in which of its columns a decimal mark may stand. `filesystem` is
    one of pyarrow's; without it the place is on disk, or at an address such as s3://bucket/visits.

    Examples:
        >>> open_table("nowhere.csv")
        Traceback (most recent call last):
        privmeasure.errors.DataError: The file nowhere.csv does not exist. Check the path.
    """
    path = file_path(place, filesystem)
    with readable(path):
        if path.is_dir() or is_pattern(path):
            return TableFolder(path, lambda one: _open_file(one, form, numbers))
    return _open_file(path, form, numbers)


def _open_file(path: FilePath, form: TextForm, numbers: Collection[str]) -> TableFile:
    with readable(path):
        if not path.exists():
            raise DataError(f"The file {path} does not exist. Check the path.")
        if not path.is_file():
            raise DataError(f"{path} is not a regular file. It is read more than once: save it as a file first.")
        with path.open("rb") as file:
            magic = file.read(6)
    kind = kind_of(str(path))
    told = next((name for begin, name in KINDS.items() if magic.startswith(begin)), "csv")
    if kind != told and (told != "csv" or kind in KINDS.values()):
        if not magic:
            raise DataError(f"{path} is empty, where a {TITLES[kind]} file is expected. Write the table again.")
        if told == "csv":
            raise DataError(
                f"{path} is not a {TITLES[kind]} file by its first bytes. If it is text, rename it to .csv or .tsv."
            )
        raise DataError(f"{path} is a {TITLES[told]} file by its first bytes. Rename it to {ENDING_OF[told]}.")
    if kind == "parquet":
        return ParquetTable(path)
    if kind == "feather":
        return FeatherTable(path)
    if kind == "xlsx":
        return SheetTable(path)
    return TextTable(path, form, zipped=magic[:2] == b"\x1f\x8b", numbers=numbers)

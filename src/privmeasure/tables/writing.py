"""Tables into files, by the end of their names: CSV (comma, tab, gzip), Parquet, Feather, xlsx; whole or not at all."""

import csv
import errno
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from privmeasure.compiled import MOST_PLAIN
from privmeasure.errors import ArgumentError
from privmeasure.outputs import (
    TAKEN,
    PartialFile,
    check_folder,
    check_place,
    is_stream,
    part_beside,
    part_folder,
    put,
    put_folder,
)
from privmeasure.tables.arrow import number_cells, numbers, unroll, unwrap
from privmeasure.tables.parquet import GroupedParquet
from privmeasure.tables.sheets import SheetSink, library
from privmeasure.tables.suffixes import DELIMITERS, kind_of, suffixes
from privmeasure.tables.texts import UTF8, TextForm
from privmeasure.threads import Progress, ahead, thread_count

if TYPE_CHECKING:
    import pyarrow as pa


def write_table(
    path: str | Path,
    batches: "Iterable[pa.Table]",
    form: TextForm | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    rows: int | None = None,
    threads: int | None = None,
) -> int:
    """Write tables one after the other into one file, by the end of its name: CSV, TSV, Parquet, Feather or xlsx.

    `form` says how text is to be written. Returns how many rows were written. With the number of `rows` that will come
    at most, a public one, `progress` is told of them as ("write", fraction). The file does not depend on `threads`.

    The file is written beside its place and renamed when it is complete: nothing is left after an error or an
    interruption. Doubles are written with the fewest digits that give them back, text is quoted where it must be.

    Examples:
        >>> import pyarrow as pa, tempfile
        >>> path = Path(tempfile.mkdtemp()) / "small.csv"
        >>> write_table(path, [pa.table({"a": [0.1, None], "b": ["x", 'say "y"']})])
        2
        >>> print(path.read_text())
        a,b
        0.1,"x"
        ,"say ""y\"""
        <BLANKLINE>
    """
    path, workers = Path(path), min(thread_count(threads), MOST_PLAIN)
    check_target(path, overwrite=overwrite)
    batches = iter(batches)
    first = next(batches, None)  # outside of what follows: its errors are not those of the disk
    if first is None:
        raise ArgumentError("write_table needs at least one table, which may have no rows, for the names of columns.")
    with ExitStack() as stack:
        with _writable(path):
            part = stack.enter_context(part_beside(path))
            sink = _sink(path, part, first, form or TextForm())
        try:
            written = 0
            pieces = ahead(lambda table: (table.num_rows, sink.encode(table)), chain([first], batches), workers)
            with closing(pieces):
                for count, piece in pieces:
                    with _writable(path):
                        sink.write(piece)
                    written += count
                    if progress is not None and rows:
                        progress("write", min(1.0, written / rows))
        finally:
            with _writable(path):
                sink.close()
        with _writable(path):
            if not overwrite and path.exists() and not is_stream(path):  # it came into being while we wrote
                raise FileExistsError(TAKEN.format(path=path))
            put(part, path)
    return written


def write_parts(
    folder: str | Path,
    batches: "Iterable[pa.Table]",
    form: TextForm | None = None,
    *,
    rows_per_file: int,
    overwrite: bool = False,
    progress: Progress | None = None,
    rows: int | None = None,
    threads: int | None = None,
) -> int:
    """Write tables into a folder, at most so many rows in each file; its name ends as theirs do: rows.parquet.

    The folder is made beside its place and renamed when it is complete. One that is there is replaced only if it holds
    nothing but such files.

    Examples:
        >>> import pyarrow as pa, tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "small.csv"
        >>> write_parts(folder, [pa.table({"a": range(5)})], rows_per_file=2)
        5
        >>> sorted(path.name for path in folder.iterdir())
        ['part-00000.csv', 'part-00001.csv', 'part-00002.csv']
    """
    folder = Path(folder)
    check_parts(folder, overwrite=overwrite)
    ending, written = suffixes(folder)[0], 0
    with part_folder(folder) as beside:
        for i, pieces in enumerate(_parts(batches, rows_per_file)):
            written += write_table(beside / f"part-{i:05}{ending}", pieces, form, threads=threads)
            if progress is not None and rows:
                progress("write", min(1.0, written / rows))
        put_folder(beside, folder, PART_NAME)
    return written


PART_NAME = "part-[0-9]*"
"""The names of files that `write_parts` makes."""


def check_parts(folder: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a place where no folder of tables can be written, before any work is done."""
    check_kind(folder)
    check_folder(Path(folder), PART_NAME, overwrite=overwrite)


def _parts(batches: "Iterable[pa.Table]", most: int) -> "Iterator[list[pa.Table]]":
    """Yield lists of tables that have so many rows together; the last has fewer, and without rows there is one."""
    import pyarrow as pa

    held: list[pa.Table] = []
    room, any_yet = most, False
    for table in batches:
        start = 0
        while start < table.num_rows:
            held.append(table.slice(start, room))
            start += held[-1].num_rows
            room -= held[-1].num_rows
            if not room:
                yield held
                held, room, any_yet = [], most, True
        if not table.num_rows and not held and not any_yet:
            held = [table]
    if held:
        yield held


def check_target(path: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a place where no table can be written, before any work is done."""
    check_kind(path)
    check_place(Path(path), overwrite=overwrite)


def check_kind(path: str | Path) -> None:
    """Refuse a name that stands for no kind of table, or for one that needs a library which is not there."""
    if kind_of(path) == "xlsx":
        library()


class _Sink(Protocol):
    """An open file of one of the kinds."""

    def encode(self, table: "pa.Table") -> Any:
        """Return what is written for a table: made in threads, several tables at a time."""

    def write(self, piece: Any) -> None:
        """Write what `encode` returned, in the order of the tables."""

    def close(self) -> None: ...


def _sink(path: Path, part: PartialFile, first: "pa.Table", form: TextForm) -> _Sink:
    kind = kind_of(path)
    if kind == "csv":
        return _TextSink(path, part, first, form)
    if kind == "xlsx":
        return SheetSink(part, first)
    return _ParquetSink(part, first) if kind == "parquet" else _FeatherSink(part, first)


class _ParquetSink:
    """A Parquet file."""

    def __init__(self, part: PartialFile, first: "pa.Table") -> None:
        import pyarrow as pa

        first = _with(first, unroll)
        repeated = [name for name in first.column_names if _repeats(first.column(name))]
        self._file = pa.PythonFile(part.open(), "w")
        self._groups = GroupedParquet(self._file, first.schema, compression="zstd", use_dictionary=repeated)

    def encode(self, table: "pa.Table") -> Any:
        return self._groups.encode(_with(table, unroll))

    def write(self, piece: Any) -> None:
        self._groups.write(*piece)

    def close(self) -> None:
        self._groups.close()
        self._file.close()


class _FeatherSink:
    """A Feather file."""

    def __init__(self, part: PartialFile, first: "pa.Table") -> None:
        import pyarrow as pa

        self._file, schema = pa.PythonFile(part.open(), "w"), _with(first, unroll).schema
        self._writer = pa.ipc.new_file(self._file, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))

    def encode(self, table: "pa.Table") -> "pa.Table":
        return _with(table, unroll)

    def write(self, piece: "pa.Table") -> None:
        self._writer.write_table(piece)

    def close(self) -> None:
        self._writer.close()
        self._file.close()


def _repeats(column: "pa.ChunkedArray") -> bool:
    """Say whether a dictionary of a column's values may be worth it.

    Of doubles that hardly repeat it is not: Parquet's writer then builds one only to give it up, which takes most of
    its time, and the file is larger.
    """
    import pyarrow.types as pt

    if not pt.is_floating(column.type):
        return True
    values = np.sort(column.to_numpy())  # what is missing comes last, as NaN, and counts once
    present = int(np.searchsorted(values, np.inf, "right"))
    distinct = np.count_nonzero(values[1:present] != values[: max(0, present - 1)]) + (present > 0)
    return bool(2 * (distinct + (present < len(values))) <= len(values))


class _TextSink:
    """A text file, perhaps compressed."""

    def __init__(self, path: Path, part: PartialFile, first: "pa.Table", form: TextForm) -> None:
        import pyarrow as pa

        stem, suffix = suffixes(path)
        self._files = [pa.PythonFile(part.open(), "w")]
        if stem.endswith(".gz"):
            self._files.append(pa.CompressedOutputStream(self._files[0], "gzip"))
        self._form, self._delimiter = form, form.delimiter or DELIMITERS[suffix]
        header = io.StringIO()
        csv.writer(header, delimiter=self._delimiter, lineterminator="\n").writerow(first.column_names)
        self._files[-1].write(self._encoded(header.getvalue()))

    def encode(self, table: "pa.Table") -> Any:
        import pyarrow as pa
        import pyarrow.csv as pc

        table = _with(_with(table, unwrap), _seconds)
        if self._form.decimal != ".":
            table = _with(table, _with_commas)
        views = [i for i, field in enumerate(table.schema) if pa.types.is_string_view(field.type)]
        for i in views:  # the CSV writer does not know them
            table = table.set_column(i, table.field(i).name, table.column(i).cast(pa.large_string()))
        quotes = any(_needs_quotes(column, self._delimiter) for column in table.columns)
        options = pc.WriteOptions(
            include_header=False,
            delimiter=self._delimiter,
            quoting_style="needed" if quotes else "none",  # "needed" quotes all text, none the rest
            batch_size=1 << 14,
        )
        block = pa.BufferOutputStream()
        pc.write_csv(table, block, options)
        text = block.getvalue()
        return text if self._form.codec == UTF8 else self._encoded(text.to_pybytes().decode())

    def write(self, piece: Any) -> None:
        self._files[-1].write(piece)

    def _encoded(self, text: str) -> bytes:
        try:
            return text.encode(self._form.codec)
        except UnicodeEncodeError:  # public letters: of the schema
            raise ArgumentError(
                f"A name or a value of the table has a letter that {self._form.encoding!r} does not have. Write it as "
                "utf-8."
            ) from None

    def close(self) -> None:
        for file in reversed(self._files):
            file.close()


def _with(table: "pa.Table", change: "Callable[[pa.ChunkedArray], pa.ChunkedArray]") -> "pa.Table":
    """Return a table with every column changed."""
    return table.from_arrays([change(column) for column in table.columns], table.column_names)


def _seconds(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return durations as seconds; other columns as they are."""
    import pyarrow as pa

    if not pa.types.is_duration(column.type):
        return column
    return pa.chunked_array([number_cells(numbers(chunk), None) for chunk in column.chunks], pa.float64())


def _with_commas(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return numbers that have a decimal point as texts with a decimal comma; other columns as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as pt

    plain = column.type.value_type if pt.is_dictionary(column.type) else column.type
    if not (pt.is_floating(plain) or pt.is_decimal(plain)):
        return column
    return pc.replace_substring(column.cast(plain).cast(pa.string()), ".", ",")


def _needs_quotes(column: "pa.ChunkedArray", delimiter: str) -> bool:
    """Say whether a column has text with a delimiter, a quote or a line end, or an empty text, which is not missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for chunk in column.chunks:
        texts = chunk.dictionary if isinstance(chunk, pa.DictionaryArray) else chunk
        wide = pa.types.is_large_string(texts.type)
        if len(texts) == 0 or not (wide or pa.types.is_string(texts.type)):
            continue
        shortest = pc.min(pc.binary_length(texts)).as_py()
        ends = np.frombuffer(texts.buffers()[1], np.int64 if wide else np.int32)[texts.offset :]
        characters = bytes(
            memoryview(texts.buffers()[2] or b"")[ends[0] : ends[len(texts)]]
        )  # a memchr: no time at all
        if shortest == 0 or any(special in characters for special in (b'"', delimiter.encode(), b"\n", b"\r")):
            return True
    return False


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    """Say clearly why a file cannot be written."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error):
            raise OSError(f"The disk is full: {path} was not written. Free some space, or write elsewhere.") from None
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            raise PermissionError(f"There is no permission to write {path}. Write into another folder.") from None
        raise OSError(f"{path} could not be written (system error {error.errno}). Write elsewhere.") from None

"""Feather files (Arrow's own format): cells arrive in their own types."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from privmeasure.errors import DataError
from privmeasure.sources.disk import DiskFile, Quarters, Told, check_columns, check_names, check_plain, readable
from privmeasure.sources.lines import UnreadRows
from privmeasure.sources.stores import FilePath, native_file

if TYPE_CHECKING:
    import pyarrow as pa


class FeatherTable(DiskFile):
    """A Feather file of the second version. There is no row that cannot be read."""

    kind = "feather"

    def __init__(self, path: FilePath) -> None:
        """Read the footer."""
        import pyarrow as pa

        super().__init__(path)
        with readable(path), self._whole(), native_file(path) as file:
            schema = pa.ipc.open_file(file).schema
        self.names: tuple[str, ...] = tuple(schema.names)
        self.types: tuple[pa.DataType, ...] = tuple(schema.types)
        check_names(path, self.names)

    def batches(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Yield columns in the pieces of the file. Nothing is kept."""
        import pyarrow as pa

        check_columns(self.path, self.names, columns)
        check_plain(self.path, dict(zip(self.names, self.types, strict=True)), columns)
        self.check_unchanged()
        quarters = Quarters(progress)
        options = pa.ipc.IpcReadOptions(included_fields=[self.names.index(name) for name in columns])
        with readable(self.path), self._whole():
            file = native_file(self.path)
            reader = pa.ipc.open_file(file, options=options)
        with file:
            for i in range(reader.num_record_batches):
                with readable(self.path), self._whole():
                    piece = reader.get_batch(i)
                    piece.validate()  # lengths alone, which no value decides
                    for column in piece.columns:
                        _check_offsets(column)
                yield piece.select(list(columns))  # private cells: whoever asked for them encodes and counts
                quarters.passed(i + 1, reader.num_record_batches)
        self.check_unchanged()
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
                f"{self.path} is not a complete Feather file that can be read. It may be truncated or damaged, or of "
                "the first version of the format. Copy it or write it again."
            ) from None


def _check_offsets(array: "pa.Array") -> None:
    """Raise ArrowInvalid where the values of an array would be looked for in the memory of something else.

    A file says where each text begins and ends, and Arrow believes it. An index of a dictionary is left alone: one that
    has no value is a missing value (`arrow.by_distinct`), and so are letters, which need not be UTF-8.
    """
    import pyarrow as pa
    import pyarrow.types as pt

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        _check_offsets(array.storage)
    elif pt.is_dictionary(kind):
        _check_offsets(array.dictionary)
    elif pt.is_run_end_encoded(kind):
        pa.RunEndEncodedArray.from_arrays(array.run_ends, pa.nulls(len(array.run_ends))).validate(full=True)
        _check_offsets(array.values)
    elif pt.is_string(kind) or pt.is_large_string(kind):
        array.view(pa.large_binary() if pt.is_large_string(kind) else pa.binary()).validate(full=True)
    elif pt.is_string_view(kind):
        array.cast(pa.binary_view()).validate(full=True)
    elif pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind):
        array.validate(full=True)

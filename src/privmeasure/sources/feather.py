"""Feather files (Arrow's own format): cells arrive in their own types."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from privmeasure.errors import DataError
from privmeasure.sources.disk import DiskFile, Quarters, Told, check_columns, check_names, check_plain, readable
from privmeasure.sources.lines import UnreadRows
from privmeasure.sources.stores import FilePath, native_file
from privmeasure.tables.arrow import plain_type

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
            _check_types(self.types)
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
                        _check_structure(column)
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


MAX_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}
"""Digits of decimals, by their bits."""


def _check_types(types: "Sequence[pa.DataType]") -> None:
    """Raise ArrowInvalid for a decimal type with more places than digits: Arrow has no such powers of ten."""
    import pyarrow as pa
    import pyarrow.types as pt

    for plain in map(plain_type, types):
        if pt.is_decimal(plain) and abs(plain.scale) > MAX_DIGITS[plain.bit_width]:
            raise pa.ArrowInvalid("places of a decimal type")


def _check_structure(array: "pa.Array") -> None:
    """Raise ArrowInvalid if values would be read from memory that is not theirs, or if nulls are counted wrongly.

    A file says where each text begins and ends, and Arrow's quick check looks at the first and the last place alone.
    Content is not structure: an index of a dictionary that has no value is a missing value (`arrow.by_distinct`), and
    texts need not be UTF-8. So texts are validated as bytes, and indices, days and decimals as bytes of fixed width.
    """
    import pyarrow as pa
    import pyarrow.types as pt

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        _check_structure(array.storage)
    elif pt.is_dictionary(kind):
        _check_structure(array.indices)
        _check_structure(array.dictionary)
    elif pt.is_run_end_encoded(kind):
        pa.RunEndEncodedArray.from_arrays(array.run_ends, pa.nulls(len(array.run_ends))).validate(full=True)
        _check_structure(array.values)
    elif pt.is_string(kind) or pt.is_large_string(kind):
        array.view(pa.large_binary() if pt.is_large_string(kind) else pa.binary()).validate(full=True)
    elif pt.is_string_view(kind) or pt.is_binary_view(kind):
        _, *held = buffers = array.buffers()
        pa.Array.from_buffers(pa.binary_view(), len(array), buffers, array.null_count, array.offset).validate(full=True)
        # when it makes other texts of views, Arrow follows those of nulls as well
        pa.Array.from_buffers(pa.binary_view(), len(array), [None, *held], 0, array.offset).validate(full=True)
    elif (pt.is_primitive(kind) or pt.is_decimal(kind)) and not pt.is_boolean(kind):
        array.view(pa.binary(kind.bit_width // 8)).validate(full=True)
    else:
        array.validate(full=True)

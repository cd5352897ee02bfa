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
                    piece.validate()  # offsets and lengths alone, which no value decides
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

"""Parquet files whose groups of rows are encoded in threads.

Arrow's writer encodes and compresses on one thread, which is most of the time of writing a table. A file is a list of
groups of rows and a footer that says at which byte every column of every group begins. So each table becomes a small
file of its own, in memory and in any thread; the groups are put one after the other, and the footers become one, the
places in them moved. What comes out is, byte by byte, what Arrow's writer makes of the same tables: a test compares.

The footer is in the compact protocol of Thrift, of which this reads and writes what footers have.

References: the Parquet format, FileMetaData; Thrift, compact protocol
"""

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _INT16, _INT32, _INT64, _DOUBLE, _BINARY, _LIST, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
"""The types of Thrift's fields."""
_ROWS, _GROUPS = 3, 4
"""Fields of a footer: the number of rows, the groups of rows."""
_COLUMNS, _GROUP_START, _ORDINAL = 1, 5, 7
"""Fields of a group: its columns, where it begins, which one it is (16 bits)."""
_COLUMN_PLACES, _COLUMN, _PLACES = (2, 4, 6), 3, (9, 10, 11, 14)
"""Fields of a column: where its footers begin; what is known of it, in which: where its pages begin."""

_Fields = dict[int, tuple[int, Any]]
"""The fields of a struct: number, type and value."""


class GroupedParquet:
    """An open Parquet file that takes encoded tables, in their order."""

    def __init__(self, file: "pa.NativeFile", schema: "pa.Schema", **options: Any) -> None:
        """Begin a file; the options are those of pyarrow's ParquetWriter."""
        self._file, self._schema, self._options = file, schema, options
        self._footer: _Fields | None = None
        self._place = len(_MAGIC)
        file.write(_MAGIC)

    def encode(self, table: "pa.Table") -> tuple[memoryview, _Fields]:
        """Return the groups of a table as they are in a file of their own, and its footer."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        whole = pa.BufferOutputStream()
        with pq.ParquetWriter(whole, self._schema, **self._options) as writer:
            writer.write_table(table)
        content = memoryview(whole.getvalue())
        (size,) = struct.unpack("<I", content[-8:-4])
        footer = _Reader(bytes(content[-8 - size : -8])).fields()
        return content[len(_MAGIC) : -8 - size], footer

    def write(self, groups: memoryview, footer: _Fields) -> None:
        """Put encoded groups after those that are there."""
        if self._footer is None:
            self._footer = {**footer, _ROWS: (_INT64, 0), _GROUPS: (_LIST, (_STRUCT, []))}
        known = self._footer[_GROUPS][1][1]
        for group in footer[_GROUPS][1][1]:
            _move(group, self._place - len(_MAGIC), len(known))
            known.append(_written(group))  # now, while threads encode others: at the end they would wait
        self._footer[_ROWS] = _INT64, self._footer[_ROWS][1] + footer[_ROWS][1]
        self._file.write(groups)
        self._place += len(groups)

    def close(self) -> None:
        """Write the footer; a file without any group has none, and is no Parquet file."""
        if self._footer is not None:
            footer = _written(self._footer)
            self._file.write(footer + struct.pack("<I", len(footer)) + _MAGIC)
            self._footer = None


def _move(group: _Fields, by: int, ordinal: int) -> None:
    """Move all places of a group, and give it its number."""
    _shift(group, (_GROUP_START,), by)
    if _ORDINAL in group:
        group[_ORDINAL] = _INT16, ordinal
        if ordinal >= 1 << 15:  # beyond what fits there is none
            del group[_ORDINAL]
    for column in group[_COLUMNS][1][1]:
        _shift(column, _COLUMN_PLACES, by)
        _shift(column[_COLUMN][1], _PLACES, by)


def _shift(fields: _Fields, places: tuple[int, ...], by: int) -> None:
    for number in places:
        if number in fields and fields[number][1] > 0:  # 0 says that there is none
            kind, place = fields[number]
            fields[number] = kind, place + by


class _Reader:
    """Reads Thrift's compact protocol."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def fields(self) -> _Fields:
        """Return the fields of a struct."""
        found: _Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._whole()
            found[number] = head & 15, self._value(head & 15)
        return found

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._content[self._at - count : self._at]

    def _natural(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def _whole(self) -> int:
        natural = self._natural()
        return natural >> 1 ^ -(natural & 1)

    def _value(self, kind: int) -> Any:
        if kind in (_INT16, _INT32, _INT64):
            return self._whole()
        if kind == _BINARY:
            return self._bytes(self._natural())
        if kind == _STRUCT:
            return self.fields()
        if kind == _LIST:
            head = self._byte()
            size, inner = head >> 4, head & 15
            size = self._natural() if size == 15 else size
            # a truth value is in the type of a field, and a byte in a list
            return inner, [self._byte() if inner in (_TRUE, _FALSE) else self._value(inner) for _ in range(size)]
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in (_BYTE, _DOUBLE):
            return self._bytes(1 if kind == _BYTE else 8)
        raise ValueError(f"A footer of Parquet has no field of Thrift's type {kind}.")


def _written(fields: _Fields) -> bytes:
    """Return a struct in Thrift's compact protocol."""
    parts, before = [], 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - before
        parts.append(bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _whole_bytes(number))
        parts.append(b"" if kind in (_TRUE, _FALSE) else _value_bytes(kind, value))
        before = number
    return b"".join(parts) + b"\0"


def _value_bytes(kind: int, value: Any) -> bytes:
    if kind in (_INT16, _INT32, _INT64):
        return _whole_bytes(value)
    if kind == _BINARY:
        return _natural_bytes(len(value)) + bytes(value)
    if kind == _STRUCT:
        return value if isinstance(value, bytes) else _written(value)
    if kind == _LIST:
        inner, values = value
        head = (
            bytes([len(values) << 4 | inner])
            if len(values) < 15
            else bytes([240 | inner]) + _natural_bytes(len(values))
        )
        return head + (bytes(values) if inner in (_TRUE, _FALSE) else b"".join(_value_bytes(inner, v) for v in values))
    return bytes(value)


def _whole_bytes(value: int) -> bytes:
    return _natural_bytes(value << 1 if value >= 0 else ~(value << 1))


def _natural_bytes(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)

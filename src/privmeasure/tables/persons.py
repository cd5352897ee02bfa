"""Whose row it is: ids of persons, read cell by cell.

**An id is what its cell holds, whole.** Ids are bytes that are compared in full, never by a hash, and what a cell
becomes depends on the cell and the storage type of the column alone:

- a text is itself, byte for byte: "1", "01", "1.0" and " 1" are four persons, and so are "é" in one letter and in two;
- a number is the number, in its shortest form: 1 and 1.0 are one person (a Decimal has the places of its type);
- bytes are themselves; true and false are the words; dates and times are the whole number that stands for them;
- a cell without a value, NaN, no bytes or a text of spaces is no id. Its row belongs to nobody, and is not counted.

A column of Python objects is text (`tables/frames.py`): 1 and "1" are one person there, 1.0 is another.
"""

from typing import TYPE_CHECKING

import numpy as np

from privmeasure.tables.arrow import describe_type, is_text, plain_type

if TYPE_CHECKING:
    import pyarrow as pa


def refuses_ids(type: "pa.DataType") -> str | None:
    """Say why a file column of a type cannot hold ids, or return None. It looks at the type alone."""
    import pyarrow as pa
    import pyarrow.types as pt

    plain = plain_type(type)
    try:
        if not pt.is_nested(plain):
            read_ids(pa.nulls(1, type))
            return None
    except (pa.ArrowException, TypeError, ValueError):  # a type that Arrow cannot compare or write
        pass
    return (
        f"says whose row it is, and holds {describe_type(type)}, which are no ids. Cast it to text or to whole numbers."
    )


def read_ids(array: "pa.Array") -> "pa.Array":
    """Return the ids of cells as bytes, null where there is none. Never raises because of a value.

    Examples:
        >>> import pyarrow as pa
        >>> read_ids(pa.array(["1", "01", " ", None])).to_pylist()
        [b'1', b'01', None, None]
        >>> read_ids(pa.array([1.0, 0.5, float("nan")])).to_pylist(), read_ids(pa.array([1, 2])).to_pylist()
        ([b'1', b'0.5', None], [b'1', b'2'])
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as pt

    if isinstance(array, pa.ChunkedArray):
        parts = [read_ids(chunk) for chunk in array.chunks]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.large_binary())
    if isinstance(array.type, pa.BaseExtensionType):
        return read_ids(array.storage)
    kind = array.type
    if pt.is_run_end_encoded(kind):
        return read_ids(pc.run_end_decode(array))
    if pt.is_dictionary(kind):  # an index below 0 or beyond the values is none: it must not find what others put there
        values, indices = read_ids(array.dictionary), array.indices.cast(pa.int64(), safe=False)
        known = pc.and_(pc.greater_equal(indices, 0), pc.less(indices, len(values)))
        return values.take(pc.if_else(known, indices, pa.scalar(None, pa.int64())))
    if is_text(kind) or pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind):
        return _present(_raw(array), spaces=is_text(kind))
    if pt.is_fixed_size_binary(kind):
        return array.cast(pa.large_binary())
    if pt.is_floating(kind):
        return _texts_of_floats(array.cast(pa.float64()))
    if pt.is_temporal(kind):
        array = array.cast(pa.int32()).cast(pa.int64()) if kind.bit_width == 32 else array.cast(pa.int64())
    return array.cast(pa.large_string()).cast(pa.large_binary())


def _raw(array: "pa.Array") -> "pa.Array":
    """Return texts or bytes as bytes; not every text is UTF-8, and none is looked into."""
    import pyarrow as pa
    import pyarrow.types as pt

    if pt.is_string_view(array.type) or pt.is_binary_view(array.type):
        return array.cast(pa.binary_view()).cast(pa.large_binary())
    large = pt.is_large_string(array.type) or pt.is_large_binary(array.type)
    return array.view(pa.large_binary() if large else pa.binary()).cast(pa.large_binary())


def _present(ids: "pa.Array", *, spaces: bool) -> "pa.Array":
    """Return ids, null where one is empty or (with `spaces`) spaces alone: each by itself, whatever the others hold."""
    import pyarrow as pa
    import pyarrow.compute as pc

    nothing = pc.equal(pc.binary_length(ids), 0)
    if spaces:  # looked for where a text begins with one, or with what may be one beyond ASCII
        first = pc.binary_slice(ids, 0, 1)
        low, high = (pa.scalar(edge, first.type) for edge in (b" ", b"\x80"))
        odd = pc.fill_null(pc.or_(pc.less_equal(first, low), pc.greater_equal(first, high)), False)
        places = np.flatnonzero(odd.to_numpy(zero_copy_only=False))
        if len(places):
            blank = np.zeros(len(ids), bool)
            blank[places] = [
                not text.decode(errors="replace").strip() for text in ids.take(pa.array(places)).to_pylist()
            ]
            nothing = pc.or_(nothing, pa.array(blank))
    return pc.if_else(nothing, pa.scalar(None, ids.type), ids)


def _texts_of_floats(values: "pa.Array") -> "pa.Array":
    """Return floats as texts that no two of them share; whole ones as integers are written."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pc.and_(pc.equal(pc.trunc(values), values), pc.less(pc.abs(values), 2.0**63))
    integers = pc.if_else(whole, values, 0.0).cast(pa.int64(), safe=False).cast(pa.large_string())
    texts = pc.if_else(whole, integers, values.cast(pa.large_string()))
    return pc.if_else(pc.is_nan(values), pa.scalar(None, texts.type), texts).cast(pa.large_binary())

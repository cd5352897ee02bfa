"""Cells of any Arrow type, read as numbers or texts without ever raising, and cast back.

Arrow has no cast that turns what does not parse into null: one bad cell fails the whole array. `cast_texts` and
`cast_each` give every cell the result that it would have alone: the reading of a row never depends on other rows.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privmeasure.domains import Bools, Floats
from privmeasure.domains.bits import Words

if TYPE_CHECKING:
    import pyarrow as pa


NUMBER = r"^[+-]?(?:[0-9.]|[iI][nN][fF]|[nN][aA][nN])[0-9.eE+\-a-zA-Z()_]*$"
"""What every text that Arrow reads as a number looks like, and some that it does not."""
TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""Of a duration in each second."""
DATE = r"^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}$"
NAIVE = r"^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}(?:[ T][0-9:.]+)?$"
ZONED = r"^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}[ T][0-9:.]+ ?(?:Z|[+-][0-9:]+)$"


def is_text(type: "pa.DataType") -> bool:
    """Say whether a type holds text."""
    import pyarrow.types as pt

    return bool(pt.is_string(type) or pt.is_large_string(type) or pt.is_string_view(type))


def is_instant(type: "pa.DataType | None") -> bool:
    """Say whether a type holds dates or dates with times, perhaps in a dictionary."""
    import pyarrow.types as pt

    plain = None if type is None else plain_type(type)
    return plain is not None and bool(pt.is_date(plain) or pt.is_timestamp(plain))


def is_double(type: "pa.DataType | None") -> bool:
    """Say whether every engine turns the values of a type into the same doubles: integers and floats, not decimals."""
    import pyarrow.types as pt

    return type is not None and (pt.is_integer(type) or pt.is_floating(type))


def is_number(type: "pa.DataType") -> bool:
    """Say whether a type holds integers, floats or decimals."""
    import pyarrow.types as pt

    return bool(pt.is_integer(type) or pt.is_floating(type) or pt.is_decimal(type))


def plain_type(type: "pa.DataType") -> "pa.DataType":
    """Return the type of the values: of a dictionary, of runs, or under an extension."""
    import pyarrow.types as pt

    while True:
        if isinstance(type, _extension()):
            type = type.storage_type
        elif pt.is_dictionary(type) or pt.is_run_end_encoded(type):
            type = type.value_type
        else:
            return type


def describe_type(type: "pa.DataType") -> str:
    """Return a word that a person uses for a type."""
    import pyarrow.types as pt

    plain = plain_type(type)
    for test, word in (
        (is_text, "text"),
        (pt.is_boolean, "true/false"),
        (pt.is_integer, "whole numbers"),
        (pt.is_duration, "durations"),
        (is_number, "numbers"),
        (pt.is_date, "dates"),
        (pt.is_timestamp, "dates with times"),
        (pt.is_time, "times of day"),
        (pt.is_nested, "lists or records"),
    ):
        if test(plain):
            return word
    return str(plain)


def by_distinct(array: "pa.Array", read: "Callable[[pa.Array], Floats]") -> Floats:
    """Read an array, whatever it is wrapped in; the values of a dictionary are read once, not row by row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ChunkedArray):
        parts = [by_distinct(chunk, read) for chunk in array.chunks]
        return np.concatenate(parts) if parts else np.empty(0)
    if isinstance(array, _extension_array()):
        return by_distinct(array.storage, read)
    if pa.types.is_run_end_encoded(array.type):
        return by_distinct(pc.run_end_decode(array), read)
    if not pa.types.is_dictionary(array.type):
        return read(sound_texts(array) if is_text(array.type) else array)
    # the reading of null is appended, so that a row without an index finds it too
    values = np.append(by_distinct(array.dictionary, read), by_distinct(pa.nulls(1), read))
    indices = array.indices
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int64(), safe=False), len(values) - 1)
    # an index below 0 or beyond the values is none: it must not find what others put there
    places = indices.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    return np.asarray(values.take(np.minimum(places, np.uint64(len(values) - 1)).view(np.int64), mode="clip"))


def sound_texts(texts: "pa.Array") -> "pa.Array":
    """Return texts of a type that Arrow computes with; bytes that are no UTF-8 are replaced, cell by cell."""
    import pyarrow as pa

    if pa.types.is_string_view(texts.type):
        texts = texts.cast(pa.large_string())
    try:
        texts.validate(full=True)
    except (pa.ArrowException, UnicodeError):  # the message would tell where; it ends here
        cells = [
            None if cell is None else cell.decode(errors="replace") for cell in texts.view(_bytes(texts)).to_pylist()
        ]
        return pa.array(cells, pa.large_string())  # a replacement takes three bytes: 2 GiB may not hold them
    return texts


def _bytes(texts: "pa.Array") -> "pa.DataType":
    import pyarrow as pa

    return pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary()


def absent(array: "pa.Array") -> Bools:
    """Say which cells hold nothing: null, NaN, or a text of spaces."""

    def empty(plain: "pa.Array") -> Floats:
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.is_null(plain, nan_is_null=True)
        if is_text(plain.type):
            texts = plain.cast(pa.large_string())
            found = pc.or_(found, pc.fill_null(pc.equal(pc.utf8_trim_whitespace(texts), ""), True))
        return np.asarray(found.to_numpy(zero_copy_only=False), np.float64)

    return by_distinct(array, empty) > 0


def numbers(array: "pa.Array") -> Floats:
    """Return numbers, texts that are numbers, or the seconds of durations; NaN for null and whatever is no number."""
    import pyarrow as pa
    import pyarrow.types as pt

    kind = array.type
    if is_text(kind):
        return floats(cast_texts(array, pa.float64(), NUMBER))
    if pt.is_boolean(kind):
        return floats(array.cast(pa.uint8()).cast(pa.float64()))
    if pt.is_duration(kind):
        return floats(array.cast(pa.int64()).cast(pa.float64(), safe=False)) / TICKS[kind.unit]
    if is_number(kind):
        return floats(array if pt.is_float64(kind) else array.cast(pa.float64(), safe=False))
    return np.full(len(array), np.nan)


def floats(array: "pa.Array") -> Floats:
    """Return a float array as NumPy's, null as NaN."""
    return np.asarray(array.to_numpy(zero_copy_only=False), np.float64)


def integers(array: "pa.Array") -> tuple[Words, Bools]:
    """Return the integers behind an array of dates, times or integers, and which of them are null (these are 0)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    null = (
        np.asarray(array.is_null().to_numpy(zero_copy_only=False), bool)
        if array.null_count
        else np.zeros(len(array), bool)
    )
    if array.type.bit_width == 32:
        array = array.cast(pa.int32())
    words = array.cast(pa.int64())
    return np.asarray(pc.fill_null(words, 0).to_numpy(zero_copy_only=False), np.int64), null


def cast_texts(
    texts: "pa.Array",
    type: "pa.DataType",
    shape: str,
    mend: "Callable[[pa.Array], pa.Array] | None" = None,
) -> "pa.Array":
    """Cast every text on its own: null where it does not parse. Spaces around a text do not matter.

    A text that Arrow casts as it is must match `shape`, and `mend`, which brings others into a form that parses, must
    not change what it means: then all at once, the usual case, gives what each alone gives. tests/laws/test_cells.py
    looks for a text that breaks this.

    Examples:
        >>> import pyarrow as pa
        >>> cast_texts(pa.array(["1.5", " 2 ", "two", "", "1e"]), pa.float64(), NUMBER).to_pylist()
        [1.5, 2.0, None, None, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if (cells := _cast(texts, type)) is not None:
        return cells
    texts = pc.utf8_trim_whitespace(texts.cast(pa.large_string()))
    texts = texts if mend is None else mend(texts)
    texts = pc.if_else(pc.match_substring_regex(texts, shape), texts, pa.scalar(None, texts.type))
    return cast_each(texts, type)


def cast_each(array: "pa.Array", type: "pa.DataType") -> "pa.Array":
    """Cast every cell on its own: null where it cannot be. Arrow casts cell by cell, so all at once is the same."""
    if (cells := _cast(array, type)) is not None:
        return cells
    distinct = array.dictionary_encode()
    return _halves(distinct.dictionary, type).take(distinct.indices)


def _cast(array: "pa.Array", type: "pa.DataType") -> "pa.Array | None":
    import pyarrow as pa

    try:
        return array.cast(type)
    except (pa.ArrowException, UnicodeError):  # its message shows a cell, so it ends here
        return None


def _halves(array: "pa.Array", type: "pa.DataType") -> "pa.Array":
    """Cast as large parts as possible at once."""
    import pyarrow as pa

    if (cells := _cast(array, type)) is not None:
        return cells
    if len(array) == 1:
        return pa.nulls(1, type)
    middle = len(array) // 2
    return pa.concat_arrays([_halves(array[:middle], type), _halves(array[middle:], type)])


def cast(array: "pa.Array", type: "pa.DataType") -> "pa.Array":
    """Cast public cells to a storage type. What a type cannot hold is clamped to what it can."""
    import pyarrow as pa
    import pyarrow.types as pt

    if array.type == type or pt.is_null(type):
        return array
    if isinstance(type, _extension()):
        return pa.ExtensionArray.from_storage(type, cast(array, type.storage_type))
    if pt.is_run_end_encoded(type):
        import pyarrow.compute as pc

        return pc.run_end_encode(cast(array, type.value_type), run_end_type=type.run_end_type)
    if pt.is_dictionary(type):
        coded = array if pt.is_dictionary(array.type) else array.dictionary_encode()
        return recode(coded.indices, cast(coded.dictionary, type.value_type), type)
    if pt.is_dictionary(array.type):
        return cast(array.dictionary.take(array.indices), type)
    if is_number(array.type) and is_number(type):
        return number_cells(floats(array.cast(pa.float64(), safe=False)), type)
    return array.cast(type, safe=False)


def recode(indices: "pa.Array", values: "pa.Array", type: "pa.DataType") -> "pa.Array":
    """Return a dictionary array of a type; its index is widened where the values are too many for it."""
    import pyarrow as pa

    index = type.index_type
    if len(values) > np.iinfo(index.to_pandas_dtype()).max:
        index = pa.int32()
    return pa.DictionaryArray.from_arrays(indices.cast(index), values, ordered=type.ordered)


def number_cells(values: Floats, type: "pa.DataType | None") -> "pa.Array":
    """Return floats as an array of a number type, NaN as null, clamped to what the type can hold."""
    import pyarrow as pa
    import pyarrow.types as pt

    missing = np.isnan(values)
    mask = missing if missing.any() else None
    if type is not None and pt.is_duration(type):  # values are seconds
        with np.errstate(over="ignore"):
            ticks = values * TICKS[type.unit]
        return pa.array(round_within(ticks, -(1 << 62), 1 << 62), pa.int64(), mask=mask).cast(type)
    if type is None or pt.is_float64(type) or not is_number(type):
        return pa.array(values, pa.float64(), mask=mask)
    if pt.is_floating(type):
        numpy_type = type.to_pandas_dtype()
        largest = float(np.finfo(numpy_type).max)
        return pa.array(np.clip(values, -largest, largest).astype(numpy_type), type, mask=mask)
    if pt.is_decimal(type):
        # doubles above 2^53 units may round up beyond the precision: stay a little below
        largest = float(10**type.precision - 1) / 10**type.scale * (1 - 2.0**-50)
        return pa.array(np.clip(values, -largest, largest), pa.float64(), mask=mask).cast(type, safe=False)
    numpy_type = type.to_pandas_dtype()
    limits = np.iinfo(numpy_type)
    return pa.array(round_within(values, int(limits.min), int(limits.max)).astype(numpy_type), type, mask=mask)


def round_within(values: Floats, low: int, high: int) -> Words:
    """Return the integers nearest to the values, within [low, high] as far as 64-bit words go; NaN gives low."""
    top = min(high, (1 << 63) - 1024)  # the largest double below 2^63
    with np.errstate(all="ignore"):
        return np.fmin(np.fmax(np.rint(values), max(low, -(1 << 63))), top).astype(np.int64)


def unwrap(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return public cells without runs and without an extension, which many writers and libraries do not know."""
    import pyarrow as pa

    kind = column.type
    if isinstance(kind, _extension()):
        return unwrap(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    return unroll(column)


def unroll(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return public cells one by one where they were runs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_run_end_encoded(column.type):
        return column
    return pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type)


def nulls_where(values: Any, missing: Bools, type: "pa.DataType") -> "pa.Array":
    """Return an Arrow array of NumPy values, null where missing."""
    import pyarrow as pa

    return pa.array(values, type, mask=missing if missing.any() else None)


def join_texts(parts: "Sequence[pa.Array | str]") -> "pa.Array":
    """Return the texts of some parts one after the other; a plain str is repeated."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = next(part.type for part in parts if not isinstance(part, str))
    return pc.binary_join_element_wise(*[pa.scalar(p, kind) if isinstance(p, str) else p for p in [*parts, ""]])


def _extension() -> Any:
    import pyarrow as pa

    return pa.BaseExtensionType


def _extension_array() -> Any:
    import pyarrow as pa

    return pa.ExtensionArray

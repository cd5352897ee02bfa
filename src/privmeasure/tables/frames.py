"""Dataframes in, the same kind of dataframe out: pandas, polars and pyarrow, told apart by narwhals.

What a frame is converted to depends on its types, never on its values. A column of Python objects, whose type only its
values would tell, becomes text. So do the categories of a pandas column, which are often just the values that occur.
The float64 of pandas, which it also gives to a column without a single value, tells nothing about a column. An index of
a pandas frame that has a name is a column like any other, which the schema must declare, and comes out as an index. One
without a name is left behind, and the one that comes out is new: values of an index are never copied.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from privmeasure.errors import ArgumentError, DataError
from privmeasure.tables.arrow import cast_each, is_instant, is_text, plain_type, unwrap
from privmeasure.tables.layout import roomy

if TYPE_CHECKING:
    import pyarrow as pa

FRAME_KINDS = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class FrameKind:
    """What a frame was, without its rows: the library, its labels, and the types of its columns. All public.

    `types` are the storage types, None for a column that has none: Python objects, and float64 of pandas. A pandas
    column of categories is a dictionary of nulls: what its categories are, and of which type, depends on its values.
    """

    library: str
    names: tuple[str, ...] = ()
    labels: tuple[Any, ...] = ()
    types: "tuple[pa.DataType | None, ...]" = ()
    dtypes: tuple[Any, ...] = ()
    index: tuple[str, ...] = ()
    """The columns that were the index of a pandas frame."""

    def __str__(self) -> str:
        """Name the library."""
        return self.library


def to_arrow(frame: Any) -> "tuple[pa.Table, FrameKind]":
    """Return a frame as a pyarrow table, and what it takes to turn such a table into the same kind of frame.

    Examples:
        >>> import pyarrow as pa
        >>> table, kind = to_arrow(pa.table({"age": [37]}))
        >>> str(kind), from_arrow(table, kind).column_names
        ('pyarrow', ['age'])
    """
    import narwhals as nw
    import pyarrow as pa

    frame = nw.to_native(frame, pass_through=True)
    if isinstance(frame, pa.RecordBatch):
        frame = pa.table(frame)
    if isinstance(frame, pa.Table) or nw.dependencies.is_pandas_dataframe(frame):
        _check_labels(
            frame.column_names if isinstance(frame, pa.Table) else [*_index_levels(frame).values(), *frame.columns]
        )
    try:
        outer = nw.from_native(frame)
    except TypeError:
        raise DataError(
            f"The data must be a dataframe of pandas, polars or pyarrow, or the path of a file, got an object of type "
            f"{type(frame).__name__}."
        ) from None
    if isinstance(outer, nw.LazyFrame):
        outer = _collected(outer)
    native = outer.to_native()
    if outer.implementation.is_pandas():
        return _from_pandas(native)
    try:
        table = native.to_arrow() if outer.implementation.is_polars() else outer.to_arrow()
    except pa.ArrowException:  # a type that Arrow does not have, such as integers of 128 bits
        raise DataError("The data have a column of a type that cannot be converted. Cast it to a plain type.") from None
    names = tuple(table.column_names)
    if not outer.implementation.is_polars():
        return table, FrameKind("pyarrow", names, names, tuple(table.schema.types))
    dtypes = tuple(type(dtype).__name__ for dtype in native.dtypes)
    return table, FrameKind("polars", names, names, tuple(map(roomy, table.schema.types)), dtypes)


def _collected(frame: Any) -> Any:
    try:
        return frame.collect()
    except Exception:  # a fault of the query; its message may show a value
        raise DataError(
            "The lazy frame could not be collected. Collect it first, on data that are not private, to see why."
        ) from None


def from_arrow(table: "pa.Table", kind: FrameKind | str) -> Any:
    """Return a pyarrow table as a frame of a kind: just "pandas", "polars" or "pyarrow", or what `to_arrow` gave."""
    if isinstance(kind, str):
        kind = FrameKind(kind)
    if kind.library not in FRAME_KINDS:
        raise ArgumentError(f"frame must be one of {', '.join(map(repr, FRAME_KINDS))}, got {kind.library!r}.")
    if kind.library == "pandas":
        return _to_pandas(table, kind)
    return _to_polars(table, kind) if kind.library == "polars" else table


def _check_labels(labels: Sequence[Any]) -> None:
    twice = [repr(label) for label, count in Counter(map(str, labels)).items() if count > 1]
    if twice:
        raise DataError(
            f"The data have several columns named {', '.join(twice[:5])}. Every column needs its own name: rename them."
        )


# --------------------------------------------------------------------------------------------------------------- polars


def _to_polars(table: "pa.Table", kind: FrameKind) -> Any:
    import polars as pl

    frame = pl.DataFrame(table.from_arrays([unwrap(column) for column in table.columns], table.column_names))
    dtypes = dict(zip(kind.names, kind.dtypes, strict=True))
    for name in table.column_names:
        if dtypes.get(name) == "Enum":
            values = table.column(name).unify_dictionaries().chunk(0).dictionary.to_pylist()  # all declared ones
            frame = frame.with_columns(pl.col(name).cast(pl.Enum(values)))
    return frame


# --------------------------------------------------------------------------------------------------------------- pandas


def _from_pandas(frame: Any) -> "tuple[pa.Table, FrameKind]":
    import pyarrow as pa

    if frame.columns.nlevels > 1:
        raise DataError("The data have columns with several levels of names. Give each column one name.")
    levels = _index_levels(frame)
    _tell_of_index(frame.index)
    labels = (*levels.values(), *frame.columns)
    names = tuple(map(str, labels))
    cells = [_as_series(_level(frame.index, i)) for i in levels] + [frame.iloc[:, i] for i in range(frame.shape[1])]
    dtypes = tuple(series.dtype for series in cells)
    columns = [_pandas_column(series, name) for series, name in zip(cells, names, strict=True)]
    for at, level in enumerate(levels if hasattr(frame.index, "levels") else ()):
        values, type = columns[at]
        columns[at] = values.take(_places(frame.index.codes[level], len(values))), type
    hints = tuple("category" if hasattr(dtype, "categories") else dtype for dtype in dtypes)
    kind = FrameKind("pandas", names, labels, tuple(type for _, type in columns), hints, names[: len(levels)])
    return pa.table([array for array, _ in columns], names=list(names)), kind


def _index_levels(frame: Any) -> dict[int, Any]:
    """Return the levels of an index that have a name, by their number."""
    return {i: label for i, label in enumerate(frame.index.names) if label is not None}


def _level(index: Any, i: int) -> Any:
    """Return the values of a level of an index: of several, the distinct ones, in the dtype that the level has.

    Spread over the rows they would be of another dtype as soon as one row has none.
    """
    return index.levels[i] if hasattr(index, "levels") else index


def _as_series(level: Any) -> Any:
    """Return a level of an index as a column of its own dtype, which pandas would else infer from values."""
    import pandas as pd  # type: ignore[import-untyped]

    return pd.Series(level.array, dtype=level.dtype)


def _tell_of_index(index: Any) -> None:
    """Warn of an index that is left behind, unless it may be row numbers. By its types, which are public.

    Whether it is a RangeIndex must not matter: pandas makes one of the numbers of some rows if their distances happen
    to be equal.
    """
    levels = [_level(index, i) for i, label in enumerate(index.names) if label is None]
    if any(getattr(level.dtype, "kind", "O") not in "iu" for level in levels):
        warnings.warn(
            "The index of the dataframe has no name and was left behind. If it belongs to the data, name it "
            "(df.rename_axis) and declare it in the schema like a column.",
            UserWarning,
            stacklevel=2,
        )


def _pandas_column(series: Any, name: str) -> "tuple[pa.Array | pa.ChunkedArray, pa.DataType | None]":
    """Return the cells of a column, and its storage type: a function of its dtype, never of its values."""
    import pyarrow as pa

    if str(series.dtype) == "object":
        return _texts(series), None
    if hasattr(series.dtype, "categories"):
        texts = _texts(series.cat.categories, _category_text)
        ordered = bool(series.dtype.ordered)
        codes = _places(series.cat.codes, len(texts))
        array = pa.DictionaryArray.from_arrays(codes, texts, ordered=ordered)
        return array, pa.dictionary(pa.int32(), pa.null(), ordered)
    try:
        type = pa.array(series.iloc[:0], from_pandas=True).type
        if isinstance(type, pa.BaseExtensionType):
            raise TypeError
    except (pa.ArrowException, NotImplementedError, TypeError, ValueError):
        raise DataError(
            f"Column {name!r} has the type {series.dtype.name}, which cannot be converted. Cast it to a plain type."
        ) from None
    try:
        array = pa.array(series, from_pandas=True)
    except Exception:  # half a character in a text: a value, which may not raise
        array = _texts(series) if is_text(type) else cast_each(_texts(series), type)
    # pandas stores a column as float64 when all its cells are missing, whatever they would have been. A declaration
    # that numbers contradict (a date, text categories) must accept that. To look whether it holds a number, and refuse
    # then, would tell of the one person who has one: so no float64 is refused, and its numbers do not parse there.
    return array, None if str(series.dtype) == "float64" else roomy(type)


def _places(codes: Any, count: int) -> "pa.Array":
    """Return codes of pandas as places among `count` values, each by itself; null for a code that has no value.

    The code of a missing value is -1. pandas can be told not to check the others.
    """
    import pyarrow as pa

    places = np.asarray(codes, np.int64)
    return pa.array(places, mask=(places < 0) | (places >= count))


def _texts(cells: Iterable[Any], text: "Callable[[Any], bytes | None] | None" = None) -> "pa.Array":
    """Return Python objects as text, each by itself. Nothing that one is, or does when it is shown, raises or warns.

    Half a character is no text: its bytes stay, so that two ids that differ in it are two (`arrow.sound_texts` has a
    mark in its place where letters are read).
    """
    import pyarrow as pa

    text = _text if text is None else text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [cell if type(cell) is str and cell.isascii() else text(cell) for cell in cells]
    return pa.array(found, pa.large_binary()).view(pa.large_string())


def _text(cell: Any) -> bytes | None:
    """Return an object as the bytes of its text, None for what is missing and for what cannot be shown.

    Examples:
        >>> _text(1.5), _text(math.nan), _text(Decimal("sNaN"))
        (b'1.5', None, None)
    """
    try:
        if cell is None or _is_nan(cell):
            return None
        return str.encode(str(cell), "utf-8", "surrogatepass")  # a subclass of str may encode as it likes
    except Exception:
        return None


def _is_nan(cell: Any) -> bool:
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, float | np.floating):
        return math.isnan(cell)
    return type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, np.generic) and bool(cell != cell))


def _category_text(cell: Any) -> bytes | None:
    """Return a category as text. The same value is the same text, whatever pandas made of all categories together.

    Examples:
        >>> _category_text(2.0), _category_text(np.int8(2)), _category_text(2.5)
        (b'2', b'2', b'2.5')
        >>> _category_text(np.datetime64("2020-02-29")), _category_text(np.float32(0.1))
        (b'2020-02-29 00:00:00', b'0.10000000149011612')
        >>> import pandas as pd
        >>> _category_text(pd.Interval(0.0, 1.0)), _category_text(np.complex128(2))
        (b'(0, 1]', b'2')
    """
    import pandas as pd

    try:
        if isinstance(cell, pd.Interval):  # pandas gives all of them the type of one
            left, right = (_category_text(edge) or b"None" for edge in (cell.left, cell.right))
            begin, end = b"[" if cell.closed_left else b"(", b"]" if cell.closed_right else b")"
            return begin + left + b", " + right + end
        if isinstance(cell, complex | np.complexfloating) and cell.imag == 0:
            cell = cell.real
        if isinstance(cell, np.datetime64):
            cell = pd.Timestamp(cell)
        elif isinstance(cell, timedelta | np.timedelta64):
            cell = pd.Timedelta(cell)
        elif isinstance(cell, np.float16 | np.float32):
            cell = float(cell)
        if isinstance(cell, float | np.floating) and math.isfinite(cell) and cell == math.floor(cell):
            cell = int(cell)
    except Exception:  # a subclass may do as it likes
        return None
    return _text(cell)


def _to_pandas(table: "pa.Table", kind: FrameKind) -> Any:
    import pandas as pd

    dtypes = dict(zip(kind.names, kind.dtypes, strict=True))
    labels = dict(zip(kind.names, kind.labels, strict=True))
    columns = [_series(table.column(name), dtypes.get(name)) for name in table.column_names]
    frame = pd.DataFrame(dict(enumerate(columns)), index=pd.RangeIndex(table.num_rows))
    frame.columns = pd.Index([labels.get(name, name) for name in table.column_names])
    index = [labels[name] for name in kind.index if name in table.column_names]
    return frame.set_index(index) if index else frame


def _series(column: "pa.ChunkedArray", dtype: Any) -> Any:
    """Return a column with the type that it came with, where that can hold what it has now."""
    import pandas as pd
    import pyarrow as pa

    if dtype is None or dtype == "category" or (is_instant(column.type) and not _holds_instants(dtype)):
        return _plain_series(column)
    if hasattr(dtype, "__from_arrow__"):
        try:
            return pd.Series(dtype.__from_arrow__(column))
        except (pa.ArrowException, TypeError, ValueError):  # of nulls alone, or with an index that is too narrow now
            return _plain_series(column)
    series = _plain_series(column)
    if dtype.kind == "O":
        return series.astype(object).where(series.notna(), None)
    if series.dtype == dtype or (column.null_count and dtype.kind in "iub"):  # these cannot be missing
        return series
    if dtype.kind in "iuf" and series.dtype.kind in "iuf" and not np.can_cast(series.dtype, dtype):
        return series  # a derived column, for which the type has no room
    try:
        return series.astype(dtype)
    except (TypeError, ValueError):  # dates or texts in the place of float64, which held nothing: public cells by now
        return series


def _holds_instants(dtype: Any) -> bool:
    """Say whether a dtype of pandas is one of dates or of dates with times."""
    return dtype.kind == "M" or is_instant(getattr(dtype, "pyarrow_dtype", None))


def _plain_series(column: "pa.ChunkedArray") -> Any:
    """Return a column as pandas makes one: dates as datetime64, times of day as Python has them, to the microsecond."""
    import pyarrow as pa

    column = unwrap(column)
    if is_instant(column.type):
        return column.cast(plain_type(column.type)).to_pandas(date_as_object=False)
    wrapped = pa.types.is_dictionary(column.type)
    plain = column.type.value_type if wrapped else column.type
    if plain != pa.time64("ns"):
        return column.to_pandas()
    times = (column.cast(plain) if wrapped else column).cast(pa.time64("us"), safe=False).to_pandas()
    return times.astype("category") if wrapped else times

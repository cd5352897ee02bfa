"""Dataframes in, the same kind of dataframe out: pandas, polars and pyarrow, told apart by narwhals.

What a frame is converted to depends on its types, never on its values: a column of Python objects, whose type only its
values would tell, becomes text, and the float64 of pandas, which it also gives to a column without a single value,
tells nothing about a column. The index of a pandas frame is left behind, and the one that comes out is new.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privmeasure.errors import ArgumentError, DataError
from privmeasure.tables.layout import roomy

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class FrameKind:
    """What a frame was, without its rows: the library, its labels, and the types of its columns. All public.

    `types` are the storage types, None for a column that has none: Python objects, and float64 of pandas. Categories
    are left out of the types: they often are the values that occur.
    """

    library: str
    names: tuple[str, ...] = ()
    labels: tuple[Any, ...] = ()
    types: "tuple[pa.DataType | None, ...]" = ()
    dtypes: tuple[Any, ...] = ()

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
        _check_labels(frame.column_names if isinstance(frame, pa.Table) else list(frame.columns))
    try:
        outer = nw.from_native(frame)
    except TypeError:
        raise DataError(
            f"The data must be a dataframe of pandas, polars or pyarrow, or the path of a file, got an object of type "
            f"{type(frame).__name__}."
        ) from None
    if isinstance(outer, nw.LazyFrame):
        outer = outer.collect()
    native = outer.to_native()
    if outer.implementation.is_pandas():
        return _from_pandas(native)
    table = native.to_arrow() if outer.implementation.is_polars() else outer.to_arrow()
    names = tuple(table.column_names)
    if not outer.implementation.is_polars():
        return table, FrameKind("pyarrow", names, names, tuple(table.schema.types))
    dtypes = tuple(type(dtype).__name__ for dtype in native.dtypes)
    return table, FrameKind("polars", names, names, tuple(map(roomy, table.schema.types)), dtypes)


def from_arrow(table: "pa.Table", kind: FrameKind | str) -> Any:
    """Return a pyarrow table as a frame of a kind: just "pandas", "polars" or "pyarrow", or what `to_arrow` gave."""
    if isinstance(kind, str):
        kind = FrameKind(kind)
    if kind.library not in KINDS:
        raise ArgumentError(f"frame must be one of {', '.join(map(repr, KINDS))}, got {kind.library!r}.")
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

    frame = pl.DataFrame(table)
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
    labels = tuple(frame.columns)
    names, dtypes = tuple(map(str, labels)), tuple(frame.dtypes)
    columns = [_pandas_column(frame.iloc[:, i], names[i]) for i in range(len(names))]
    # pandas stores a column as float64 when all its cells are missing, whatever they would have been. A declaration
    # that numbers contradict (a date, text categories) must accept that. To look whether it holds a number, and refuse
    # then, would tell of the one person who has one: so no float64 is refused, and its numbers do not parse there.
    types = tuple(
        None if str(dtype) in ("object", "float64") else roomy(column.type)
        for dtype, column in zip(dtypes, columns, strict=True)
    )
    hints = tuple("category" if hasattr(dtype, "categories") else dtype for dtype in dtypes)
    return pa.table(columns, names=list(names)), FrameKind("pandas", names, labels, types, hints)


def _pandas_column(series: Any, name: str) -> "pa.Array":
    import pyarrow as pa

    if str(series.dtype) == "object":
        return _texts(series)
    try:
        array = pa.array(series, from_pandas=True)
        if isinstance(array.type, pa.BaseExtensionType):
            raise TypeError
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    except UnicodeError:  # half a character in a text: a value, which may not raise
        return _texts(series)
    except (pa.ArrowException, NotImplementedError, TypeError, ValueError):
        raise DataError(
            f"Column {name!r} has the type {series.dtype.name}, which cannot be converted. Cast it to a plain type."
        ) from None


def _texts(series: Any) -> "pa.Array":
    """Return Python objects as text. Nothing that an object is, or does when it is shown, raises."""
    import pyarrow as pa

    if series.map(type).isin([str, type(None)]).all():  # the common case, and a fast one
        try:
            return pa.array(series.to_numpy(), pa.large_string(), from_pandas=True)
        except (pa.ArrowException, UnicodeError):
            pass
    missing = series.isna().to_numpy()
    return pa.array(
        [None if gone else _text(cell) for cell, gone in zip(series, missing, strict=True)], pa.large_string()
    )


def _text(cell: object) -> str | None:
    try:
        return str(cell).encode("utf-8", "replace").decode()
    except Exception:
        return None


def _to_pandas(table: "pa.Table", kind: FrameKind) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    dtypes = dict(zip(kind.names, kind.dtypes, strict=True))
    labels = dict(zip(kind.names, kind.labels, strict=True))
    columns = [_series(table.column(name), dtypes.get(name)) for name in table.column_names]
    frame = pd.DataFrame(dict(enumerate(columns)), index=pd.RangeIndex(table.num_rows))
    frame.columns = pd.Index([labels.get(name, name) for name in table.column_names])
    return frame


def _series(column: "pa.ChunkedArray", dtype: Any) -> Any:
    """Return a column with the type that it came with, where that can hold what it has now."""
    import pandas as pd

    if dtype is None or dtype == "category":
        return column.to_pandas()
    if hasattr(dtype, "__from_arrow__"):
        return pd.Series(dtype.__from_arrow__(column))
    series = column.to_pandas()
    if dtype.kind == "O":
        return series.astype(object).where(series.notna(), None)
    if series.dtype == dtype or (column.null_count and dtype.kind in "iub"):  # these cannot be missing
        return series
    try:
        return series.astype(dtype)
    except (TypeError, ValueError):  # dates or texts in the place of float64, which held nothing: public cells by now
        return series

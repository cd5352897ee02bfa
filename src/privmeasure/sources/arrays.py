"""Rows in an array: counted in blocks that stay in the cache, in threads."""

import math
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure import compiled
from privmeasure.counts import CellCounts, Partition
from privmeasure.domains import Points
from privmeasure.errors import DataError
from privmeasure.sources.tally import Tally, merge_tallies
from privmeasure.tables.arrow import by_distinct, describe_type, is_number, numbers, plain_type
from privmeasure.tables.frames import to_arrow
from privmeasure.threads import BLOCK, QUARTERS, Progress, in_threads, thread_count

CROWDED, LARGE_BLOCK = 4, 4 * BLOCK
"""From so many threads on blocks are larger: they wait less for the lock of the interpreter, and lose the cache."""


class ArraySource:
    """A `Source` over the rows of a numeric array.

    Guarantee:  privacy  no error depends on a value: only the types and the number of columns may raise
                cost     one pass in blocks; 4 bytes per cell and thread, then 8 bytes per cell
    """

    def __init__(self, points: Any, *, width: int, threads: int | None = None) -> None:
        """Take an array of shape (rows, width), or (rows,) when width is 1."""
        self._points = check_points(points, width)
        self._threads = thread_count(threads)

    def count(self, partitions: Sequence[Partition], progress: Progress | None = None) -> list[CellCounts]:
        """Return the counts of each partition, in one pass."""
        compiled.load_kernels(len(self._points))
        located = any(partition.axes for partition in partitions)
        workers = self._threads if located else 1
        tallies = [Tally(partitions, among=workers) for _ in range(workers)]
        idle, rows = list(tallies), len(self._points)
        block = BLOCK if workers < CROWDED else LARGE_BLOCK
        quarters = 1 if progress is None else QUARTERS  # after each of them all threads wait for the last
        for quarter in range(quarters):
            first, last = (rows * i // quarters for i in (quarter, quarter + 1))
            each = round((last - first) / (workers * block))  # alike: a short one costs nearly as much
            blocks = workers * max(1, each) if last - first > BLOCK else int(last > first)

            def count_block(i: int, first: int = first, last: int = last, blocks: int = blocks) -> None:
                start, stop = (first + (last - first) * j // blocks for j in (i, i + 1))
                tally = idle.pop()
                tally.add(as_points(self._points[start:stop]))
                idle.append(tally)

            in_threads(count_block, blocks, workers)
            if progress is not None:
                progress("count", (quarter + 1) / QUARTERS)
        return merge_tallies(tallies)

    def __repr__(self) -> str:
        """Show nothing: the number of rows may be private."""
        return "ArraySource(private)"


def as_points(rows: NDArray[Any]) -> Points:
    """Return a block of an array as points."""
    with np.errstate(all="ignore"):  # a warning of this cast would tell of a private value
        return np.asarray(rows, np.float64)


def check_points(points: Any, width: int) -> NDArray[Any]:
    """Return points as an array of shape (rows, width), or say what is wrong with their type or shape.

    An array is not copied. Columns of dataframes go by their types: nulls are NaN, whatever the library makes of them.
    Lists have no types: a row of another length, or a cell that is not a number, is missing.
    """
    if isinstance(points, list | tuple):
        return _from_lists(points, width)
    array = points if isinstance(points, np.ndarray) else _from_columns(points)
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"The data must be an array of numbers, got type {array.dtype.type.__name__}. "  # <U9 would tell a length
            "Convert the columns to numbers first."
        )
    if isinstance(array, np.ma.MaskedArray):
        with np.errstate(all="ignore"):  # as in as_points
            array = np.ma.filled(array.astype(np.float64), np.nan)  # what is masked is missing
    if array.ndim == 1 and width == 1:
        array = array.reshape(-1, width)
    if array.ndim != 2 or array.shape[1] != width:
        columns = "a one-dimensional array" if array.ndim == 1 else f"{array.shape[1:]} after the rows"
        raise DataError(
            f"The data must have shape (rows, {width}), one column for each column of the domain, got {columns}. "
            "Give as many bounds as there are columns."
        )
    return array


def _from_columns(points: Any) -> NDArray[Any]:
    """Return a dataframe, or one of its columns, as an array; of other objects what they say of themselves."""
    import narwhals as nw
    import pyarrow as pa

    pandas = nw.dependencies.get_pandas()
    if pandas is not None and isinstance(points, pandas.Index | pandas.api.extensions.ExtensionArray):
        points = pandas.Series(points)
    if isinstance(points, pa.Array):
        points = pa.chunked_array([points])
    frame = nw.from_native(points, allow_series=True, pass_through=True)
    if isinstance(frame, nw.Series):
        frame, flat = frame.alias("points").to_frame(), True
    else:
        flat = False
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        if hasattr(points, "__array__"):
            return np.asarray(points)
        raise DataError(f"The data must be an array of numbers, got an object of type {type(points).__name__}.")
    table, _ = to_arrow(frame)
    columns = [_floats(column) for column in table.columns]
    return columns[0] if flat else np.column_stack(columns) if columns else np.empty((table.num_rows, 0))


def _floats(column: Any) -> Points:
    """Return a column of a table as floats; one that is not of numbers, by its type, is refused."""
    from pyarrow.types import is_boolean

    plain = plain_type(column.type)
    if not (is_number(plain) or is_boolean(plain)):
        raise DataError(
            f"The data must be numbers, got a column of {describe_type(plain)}. Convert it to numbers first."
        )
    return by_distinct(column, numbers)


def _from_lists(rows: Sequence[Any], width: int) -> Points:
    """Return lists as an array, row by row: none can raise, and none changes what another one becomes."""
    points = np.full((len(rows), width), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would tell that an odd value is there
        for i, row in enumerate(rows):
            with suppress(Exception):  # whatever an object does when it is looked at
                cells = row if isinstance(row, list | tuple) or getattr(row, "ndim", 0) == 1 else [row]
                if len(cells) == width:
                    points[i] = [_number(cell) for cell in cells]
    return points


def _number(cell: Any) -> float:
    with suppress(Exception):
        try:
            return float(cell)
        except OverflowError:
            return math.inf if cell > 0 else -math.inf
    return math.nan

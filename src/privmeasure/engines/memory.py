"""Rows in an array: counted in blocks that stay in the cache, in threads."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.blocks import BLOCK, in_threads, thread_count
from privmeasure.counts import CellCounts, Partition, Progress
from privmeasure.domains import Points
from privmeasure.engines.tally import Tally, merged
from privmeasure.errors import DataError

QUARTERS = 4
"""Progress is told after each quarter of the rows: four times whatever their number, which may be private."""


class ArraySource:
    """A `Source` over the rows of a numeric array.

    Guarantee:  privacy  no error depends on a value: only the array's type and number of columns may raise
                cost     one pass in blocks; 4 bytes a cell and thread, then 8 bytes a cell
    """

    def __init__(self, points: Any, *, width: int, threads: int | None = None) -> None:
        """Take an array of shape (rows, width), or (rows,) when width is 1."""
        self._points = checked_points(points, width)
        self._threads = thread_count(threads)

    def count(self, partitions: Sequence[Partition], progress: Progress | None = None) -> list[CellCounts]:
        """Return the counts of each partition, in one pass."""
        tallies = [Tally(partitions) for _ in range(self._threads)]
        rows, pieces = len(self._points), QUARTERS * self._threads
        edges = [rows * i // pieces for i in range(pieces + 1)]
        for quarter in range(QUARTERS):

            def count_piece(thread: int, quarter: int = quarter) -> None:
                piece = quarter * self._threads + thread
                for start in range(edges[piece], edges[piece + 1], BLOCK):
                    stop = min(start + BLOCK, edges[piece + 1])
                    tallies[thread].add(as_points(self._points[start:stop]))

            in_threads(count_piece, self._threads, self._threads)
            if progress is not None:
                progress("count", (quarter + 1) / QUARTERS)
        return merged(tallies)

    def __repr__(self) -> str:
        """Show nothing: the number of rows may be private."""
        return "ArraySource(private)"


def as_points(rows: NDArray[Any]) -> Points:
    """Return a block of an array as points."""
    with np.errstate(all="ignore"):  # a warning of this cast would tell of a private value
        return np.asarray(rows, np.float64)


def checked_points(points: Any, width: int) -> NDArray[Any]:
    """Return points as an array of shape (rows, width) without copying, or say what is wrong with its structure."""
    array = np.asarray(points) if hasattr(points, "__array__") else _from_lists(points)
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"The data must be an array of numbers, got type {array.dtype.type.__name__}. "  # <U9 would tell a length
            "Convert the columns to numbers first."
        )
    if isinstance(points, np.ma.MaskedArray):
        array = np.ma.filled(points.astype(np.float64), np.nan)  # what is masked is missing
    if array.ndim == 1 and (width == 1 or len(array) == 0):  # an empty list has no columns; it must not raise either
        array = array.reshape(-1, width)
    if array.ndim != 2 or array.shape[1] != width:
        columns = "a one-dimensional array" if array.ndim == 1 else f"{array.shape[1:]} after the rows"
        raise DataError(
            f"The data must have shape (rows, {width}), one column for each column of the domain, got {columns}. "
            "Give as many bounds as there are columns."
        )
    return array


def _from_lists(rows: Any) -> NDArray[np.float64]:
    """Return lists as an array. A list has no type of its own, so a cell that is not a number counts as missing."""
    if not isinstance(rows, list | tuple):
        raise DataError(f"The data must be an array of numbers, got an object of type {type(rows).__name__}.")
    try:
        cells = np.asarray(rows, object)
    except ValueError:  # NumPy's own message would show the number of rows
        cells = np.empty(1, object)
        cells[0] = []
    if any(isinstance(cell, list | tuple | np.ndarray) for cell in cells.ravel()):
        raise DataError("The data must be an array of numbers, got rows of unequal lengths. Pad them first.")
    return np.array([_number(cell) for cell in cells.ravel()], np.float64).reshape(cells.shape)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan

"""Loops as machine code, where numba is installed (the extra `fast`): the same numbers, on more cores at a time.

NumPy needs about twenty operations to locate or to draw a block of points. Between two of them a thread takes the lock
of the interpreter, and a few (adding at places, repeating) never let go of it: `make bench-cores` shows how far that
carries. One loop does all of it without the lock. Nothing but speed may depend on it: every loop gives, bit by bit,
what the operations beside which it is called give, and `tests/laws/test_compiled.py` compares them.

Loading numba and the loops, which are compiled once and kept in a cache, takes a process about 0.6 CPU seconds (2 the
first time): as much as they save on `MANY_ROWS`. So a process loads them when it has seen so many, in as many fits and
samples as it may be, and has never lost more by it than it had before. Whether they are loaded shows in time alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

MANY_ROWS = 1 << 25
"""Rows, counted and sampled by this process so far, from which on loading pays."""

MOST_PLAIN = 8
"""Threads that help where work is not compiled: more of them wait for the lock of the interpreter."""

ROWS_OF_ONE = 1 << 22
"""Rows to draw for each thread beyond these: operations on so many are long, and threads seldom meet."""

Array = NDArray[Any]


@dataclass(frozen=True)
class Kernels:
    """The loops; see the functions below."""

    count: Callable[..., bool]
    count_bytes: Callable[..., None]
    box_cells: Callable[..., None]
    box_points: Callable[..., None]
    scatter: Callable[..., None]


_loaded: list[Kernels] = []
_seen: list[int] = []


def kernels() -> Kernels | None:
    """Return the loops if they are loaded."""
    return _loaded[0] if _loaded else None


def load_kernels(rows: int) -> None:
    """Load the loops if, with so many more rows to come, they are worth it, and numba is there."""
    if _loaded:
        return
    _seen[:] = [sum(_seen) + rows]
    if _seen[0] >= MANY_ROWS and (found := _compiled()) is not None:
        _loaded.append(found)


def useful_threads(threads: int, rows: int) -> int:
    """Return how many of the threads help to draw points: all of them where the loops are loaded, or rows are many.

    Examples:
        >>> useful_threads(2, 10**6)
        2
    """
    return threads if kernels() is not None else min(threads, max(MOST_PLAIN, rows // ROWS_OF_ONE))


@cache
def _compiled() -> Kernels | None:
    try:
        return _compile()
    except Exception:  # not installed, or not able to work here: then everything is as without it
        return None


def _compile() -> Kernels:
    from numba import njit, types

    whole, real, word = types.int64, types.float64, types.uint32
    wholes, reals, words, codes = (kind[::1] for kind in (whole, real, word, types.uint64))
    points = types.Array(real, 2, "A", readonly=True)  # however they lie in memory
    signatures: dict[Any, list[Any]] = {  # nothing is compiled for other types, or later
        _count: [types.boolean(c, k) for c in (words, wholes) for k in (wholes, types.uint16[::1])],
        _count_bytes: [types.void(types.uint8[::1], wholes)],
        _box_cells: [types.void(points, reals, reals, wholes, whole[:, :, ::1], whole, wholes)],
        _box_points: [
            types.void(codes, words, reals, reals, wholes, wholes, whole[:, ::1], whole, real[:, ::1]),
        ],
        _scatter: [types.void(c, wholes, whole, whole, types.uint8[::1], wholes, c) for c in (words, codes)],
    }
    return Kernels(*(njit(kinds, nogil=True, cache=True)(loop) for loop, kinds in signatures.items()))


def _count(counts: Array, codes: Array) -> bool:
    """Add one at every code; say whether all of them are places of the counts, and add nothing if not."""
    largest = np.uint64(0)
    for i in range(len(codes)):
        largest = max(largest, np.uint64(codes[i]))  # one below 0 is huge
    if largest >= np.uint64(len(counts)):
        return len(codes) == 0
    for i in range(len(codes)):
        counts[codes[i]] += 1
    return True


def _count_bytes(values: Array, counts: Array) -> None:
    """Count how often each of the 256 bytes occurs."""
    counts[:] = 0
    for i in range(len(values)):
        counts[values[i]] += 1


def _box_cells(points: Array, lows: Array, factors: Array, cuts: Array, tables: Array, bits: int, codes: Array) -> None:
    """Locate points in a box: `Box._index` along each axis that is cut, then `Interleaving.join`."""
    for i in range(len(points)):
        code = np.int64(0)
        for axis in range(len(lows)):
            if cuts[axis]:
                u = (points[i, axis] - lows[axis]) * factors[axis]
                last = (np.int64(1) << cuts[axis]) - 1
                index = np.int64(0)  # also of what is not a number
                if u >= last:
                    index = last
                elif u > 0:
                    index = np.int64(u)
                for chunk in range(tables.shape[1]):
                    code |= tables[axis, chunk, (index >> (chunk * bits)) & ((1 << bits) - 1)]
        codes[i] = code


def _box_points(
    codes: Array, words: Array, lows: Array, widths: Array, cuts: Array, digits: Array, tables: Array, bits: int,
    points: Array,
) -> None:  # fmt: skip
    """Draw points of a box: `Interleaving.split`, then what `Box.draw` does along each axis."""
    count, level = len(codes), 0
    for axis in range(len(cuts)):
        level += cuts[axis]
    for i in range(count):
        code, gathered = np.int64(codes[i]), np.int64(0)
        for chunk in range(tables.shape[0]):
            gathered |= tables[chunk, (code >> (chunk * bits)) & ((1 << bits) - 1)]
        below = level
        for axis in range(len(cuts)):
            below -= cuts[axis]
            index = (gathered >> below) & ((np.int64(1) << cuts[axis]) - 1)
            word = np.int64(words[axis * count + i]) >> (32 - digits[axis])
            points[i, axis] = (np.float64(index << digits[axis] | word) + 0.5) * widths[axis] + lows[axis]


def _scatter(cells: Array, ends: Array, cell: int, start: int, buckets: Array, places: Array, scattered: Array) -> None:
    """Send the rows of a block, which begins inside `cell`, to the next free places of their buckets."""
    for i in range(len(buckets)):
        while ends[cell] <= start + i:
            cell += 1
        scattered[places[buckets[i]]] = cells[cell]
        places[buckets[i]] += 1

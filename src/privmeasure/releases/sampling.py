"""Turning masses into rows: in what order, and what they say about quantiles. Public values only."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privmeasure import compiled
from privmeasure.domains import Cells, Floats
from privmeasure.errors import ArgumentError, is_whole
from privmeasure.estimates.consistency import Mass
from privmeasure.threads import BLOCK, Made, ahead, in_threads

BUCKETS = 256
"""Random order: rows are dealt to this many buckets, each of which is then shuffled in the cache."""
GROUP = 2
"""Buckets that are worked on together, at least; more of them where they are small."""
ROW_CHUNK = BLOCK
"""Rows of a chunk in cell order."""

FEW_TASKS = 4
"""Tasks up to which threads cost more than they bring."""


def check_draw(n: int | None, seed: int | None, order: str, released: str) -> None:
    """Refuse what cannot be asked of a sample: how many rows (None for what was `released`), which, in what order."""
    if order not in ("random", "cell"):
        raise ArgumentError(f"order must be 'random' or 'cell', got {order!r}.")
    if n is not None and not (is_whole(n) and 0 <= n < 2**53):
        raise ArgumentError(f"n must be a whole number of at least 0, or None for the released {released}, got {n!r}.")
    if seed is not None and not (is_whole(seed) and seed >= 0):
        raise ArgumentError(f"seed must be a whole number of at least 0, or None for fresh randomness, got {seed!r}.")


def check_coordinate(column: Any, width: int) -> None:
    """Refuse what is no column of points."""
    if not is_whole(column) or not 0 <= column < width:
        raise ArgumentError(f"column must be from 0 to {width - 1}, got {column!r}.")


class Share(NamedTuple):
    """A part of a sample that is made by itself, on another machine perhaps: of one tree it has its own cells."""

    rows: int
    cells: Cells
    mass: Mass


NO_CELLS, NO_MASS = np.empty(0, np.uint64), np.empty(0, np.int64)


def even_sizes(rows: int, parts: int) -> list[int]:
    """Return how many rows each part has: as many as others, or one more.

    Examples:
        >>> even_sizes(10, 3)
        [4, 3, 3]
    """
    return [rows // parts + (i < rows % parts) for i in range(parts)]


def cut_shares(cells: Cells, mass: Mass, parts: int) -> Iterator[Share]:
    """Yield stretches of cells with equal numbers of rows; a cell on an edge is cut in two.

    Examples:
        >>> for share in cut_shares(np.array([3, 8], np.uint64), np.array([1, 4]), 2):
        ...     print(share.rows, share.cells, share.mass)
        3 [3 8] [1 2]
        2 [8] [2]
    """
    ends, start = np.cumsum(mass), 0
    for rows in even_sizes(int(ends[-1]) if len(ends) else 0, parts):
        first, last = np.searchsorted(ends, (start, start + rows - 1), "right") if rows else (0, -1)
        upto = np.minimum(ends[first : last + 1], start + rows) - start
        upto[1:] -= upto[:-1].copy()
        yield Share(rows, cells[first : last + 1], upto)
        start += rows


class Rows:
    """The rows of a sample as cells, in chunks that can be made one by one, in any order, in threads.

    In cell order a chunk is a stretch of rows. In random order every row first goes to one of 256 random buckets; a
    chunk is a few buckets, each small enough for the cache and in random order. Together that is a uniformly random
    permutation (Rao 1961, Sandelius 1962). The rows depend on the seed alone, not on threads.

    Examples:
        >>> cells, mass = np.array([3, 8], np.uint64), np.array([1, 2])
        >>> rows = Rows(cells, mass, np.random.SeedSequence(0), shuffled=False, threads=1)
        >>> rows.chunk(0, rows.stream(0))
        array([3, 8, 8], dtype=uint64)
    """

    def __init__(self, cells: Cells, mass: Mass, seed: np.random.SeedSequence, *, shuffled: bool, threads: int) -> None:
        """Prepare to expand each cell to as many rows as it has mass."""
        self._cells = cells if cells[-1] >> np.uint64(32) else cells.astype(np.uint32)  # half the memory where it fits
        self._ends = np.cumsum(mass)
        self.count = int(self._ends[-1])
        self.shuffled = shuffled
        self._scattered: NDArray[np.unsignedinteger] | None = None
        self.edges = [*range(0, self.count, ROW_CHUNK), self.count] if self.count else [0]
        pieces = len(self.edges) - 1
        self._buckets = [[0, self.count]]
        if shuffled and pieces > 1:
            self._scatter(seed.spawn(pieces), threads)
        self._streams = seed.spawn(len(self.edges) - 1)

    def stream(self, chunk: int) -> np.random.Generator:
        """Return the random numbers of one chunk."""
        return np.random.Generator(np.random.SFC64(self._streams[chunk]))

    def chunk(self, chunk: int, rng: np.random.Generator) -> Cells:
        """Return the rows of one chunk; in random order `rng` shuffles them."""
        start, stop = self.edges[chunk], self.edges[chunk + 1]
        if self._scattered is None:
            rows = self._expand(start, stop).astype(np.uint64)
        else:
            rows = self._scattered[start:stop].astype(np.uint64)
        if self.shuffled:
            for first, last in pairwise(self._buckets[chunk]):
                rng.shuffle(rows[first - start : last - start])  # twice as fast on 64-bit words as on 32
        return rows

    def _expand(self, start: int, stop: int) -> NDArray[np.unsignedinteger]:
        first, last = np.searchsorted(self._ends, (start, stop - 1), "right")
        ends = np.minimum(self._ends[first : last + 1], stop) - start
        ends[1:] -= ends[:-1].copy()
        return np.repeat(self._cells[first : last + 1], ends)

    def _scatter(self, streams: list[np.random.SeedSequence], threads: int) -> None:
        """Send every row to a random bucket, keeping the order within; groups of buckets become the chunks."""
        compiled.load_kernels(self.count)
        loops, starts = compiled.kernels(), range(0, self.count, BLOCK)
        threads = compiled.useful_threads(threads, self.count)
        buckets = np.empty(len(starts) * BLOCK, np.uint8)
        counts = np.empty((len(starts), BUCKETS), np.int64)

        def choose(piece: int) -> None:
            part = buckets[piece * ROW_CHUNK : (piece + 1) * ROW_CHUNK]
            part[:] = np.random.SFC64(streams[piece]).random_raw(len(part) // 8).view(np.uint8)
            for i, start in enumerate(range(0, len(part), BLOCK), piece * (ROW_CHUNK // BLOCK)):
                stop = min(start + BLOCK, self.count - piece * ROW_CHUNK)
                if loops is None:
                    counts[i] = np.bincount(part[start:stop], minlength=BUCKETS)
                else:
                    loops.count_bytes(part[start:stop], counts[i])

        in_threads(choose, len(streams), threads)
        ends = np.cumsum(counts.T.ravel()).reshape(BUCKETS, -1)  # where each block's share of each bucket ends
        scattered = np.empty(self.count, self._cells.dtype)

        def scatter(piece: int) -> None:
            for start in range(piece * ROW_CHUNK, min((piece + 1) * ROW_CHUNK, self.count), BLOCK):
                if loops is not None:
                    places = ends[:, start // BLOCK] - counts[start // BLOCK]
                    here = buckets[start : min(start + BLOCK, self.count)]
                    first = int(np.searchsorted(self._ends, start, "right"))
                    loops.scatter(self._cells, self._ends, first, start, here, places, scattered)
                    continue
                rows = self._expand(start, min(start + BLOCK, self.count))
                order = np.argsort(buckets[start : start + len(rows)], kind="stable")  # radix: linear time
                scattered[_places(ends[:, start // BLOCK], counts[start // BLOCK])] = rows.take(order)

        in_threads(scatter, len(streams), threads)
        self._scattered = scattered
        bounds = [0, *ends[:, -1].tolist()]
        group = max(
            GROUP, BUCKETS * ROW_CHUNK * 7 // (8 * self.count)
        )  # about as many rows as in a chunk of cell order
        self.edges = [*bounds[:-1:group], bounds[-1]]
        self._buckets = [bounds[i : i + group + 1] for i in range(0, BUCKETS, group)]


def _places(ends: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of some rows, of which `counts` are in each bucket, up to where that bucket `ends`.

    One step from row to row, and a jump where a bucket begins, added up: repeating would hold the interpreter's lock.

    Examples:
        >>> _places(np.array([2, 5, 9]), np.array([2, 0, 1]))
        array([0, 1, 8])
    """
    filled = np.flatnonzero(counts)
    first = np.cumsum(counts) - counts  # of each bucket, among these rows
    jumps = (ends - counts - first).take(filled)  # from a row's place among these to its place in all
    jumps[1:] -= jumps[:-1].copy() - 1
    places = np.ones(int(counts.sum()), np.int64)
    places[first.take(filled)] = jumps
    return np.cumsum(places)  # not in place, which would hold it too


def in_order(work: Callable[[int], Made], tasks: int, threads: int) -> Iterator[Made]:
    """Yield work(0), work(1), ... in this order, made a little ahead on `threads` threads: few are held at a time.

    Examples:
        >>> list(in_order(lambda task: task * task, 6, threads=2))
        [0, 1, 4, 9, 16, 25]
    """
    if threads <= 1 or tasks <= FEW_TASKS:
        yield from map(work, range(tasks))
        return
    yield from ahead(work, range(tasks), threads)


def interval_quantile(low: Floats, high: Floats, mass: NDArray[Any], q: float) -> float:
    """Return the q-quantile of masses spread evenly over intervals [low, high], or sitting at low where low = high.

    Examples:
        >>> interval_quantile(np.array([0.0, 1.0]), np.array([1.0, 3.0]), np.array([1, 1]), 0.75)
        2.0
    """
    ends = np.unique(np.concatenate((low, high)))
    wide = high > low
    density = mass[wide] / (high - low)[wide]
    slope, jump = np.zeros(len(ends)), np.zeros(len(ends))
    np.add.at(slope, np.searchsorted(ends, low[wide]), density)
    np.subtract.at(slope, np.searchsorted(ends, high[wide]), density)
    np.add.at(jump, np.searchsorted(ends, low[~wide]), mass[~wide])
    rise = np.cumsum(slope)[:-1] * np.diff(ends)
    before = np.cumsum(jump) - jump + np.concatenate(([0.0], np.cumsum(rise)))  # the mass strictly below each end
    goal = q * float(mass.sum())
    i = min(int(np.searchsorted(before + jump, goal)), len(ends) - 1)
    if i == 0 or goal >= before[i]:
        return float(ends[i])
    start = before[i - 1] + jump[i - 1]
    return float(ends[i - 1] + (ends[i] - ends[i - 1]) * (goal - start) / (before[i] - start))

"""A binary tree over finitely many public points: what Categories and Finite share.

Every point is one leaf. In the order of the leaves a cell is a range of consecutive points, so that two numbers
say which points it holds, and a cell without points is one that does not exist.
"""

from collections.abc import Sequence

import numpy as np

from privmeasure.domains.base import DEEPEST_LEVEL, Bools, Cells, Points
from privmeasure.domains.bits import Words
from privmeasure.domains.scales import Clamped, Codes, Reading, Rounded, Scale
from privmeasure.errors import ArgumentError

DENSE_CELLS_PER_POINT = 8
"""Cells per point up to which a table replaces binary searches: ten times faster."""


class PointTree:
    """Points 0..m-1 as the leaves of a binary tree; point i is reached by the `lengths[i]` bits of `codes[i]`.

    Notation:   m points    D depth of the deepest leaf; below its leaf a point goes on with bit 0
    Guarantee:  cost  O(m) memory per level; O(1) per point or cell, O(log m) per cell where cells are by far more

    Examples:
        >>> tree = PointTree([0b00, 0b01, 0b1], [2, 2, 1])
        >>> tree.locate(np.array([0, 1, 2]), 2), tree.size(2)
        (array([0, 1, 2], dtype=uint64), 3)
    """

    def __init__(self, codes: Sequence[int] | Words, lengths: Sequence[int] | Words) -> None:
        """Take the path to each point."""
        lengths = np.asarray(lengths, np.int64)
        self.depth = int(lengths.max())
        self.leaves: Words = np.asarray(codes, np.int64) << (self.depth - lengths)
        self.order: Words = np.argsort(self.leaves, kind="stable")
        """The points in the order of the leaves."""
        self._sorted = self.leaves[self.order]
        self._tables: dict[int, Words] = {}
        self._sizes: dict[int, int] = {}

    def locate(self, positions: Words, level: int) -> Cells:
        """Return the cell of each point."""
        return (self.leaves.take(positions) >> max(self.depth - level, 0) << max(level - self.depth, 0)).view(np.uint64)

    def scale(self, level: int, readings: Sequence[Reading]) -> Scale:
        """Return the table of the points' cells."""
        nearest = readings[0].then(Clamped(0, len(self.leaves) - 1), Rounded())
        return Codes(nearest, self.locate(np.arange(len(self.leaves)), level).view(np.int64))

    def ranges(self, cells: Cells, level: int) -> tuple[Words, Words]:
        """Return where in `order` the points of each cell start and stop; a cell that does not exist has none."""
        codes, up, below = cells.view(np.int64), max(self.depth - level, 0), max(level - self.depth, 0)
        possible = (codes >> level == 0) & ((codes & ((1 << below) - 1)) == 0)
        codes = np.where(possible, codes >> below, 0)
        edges = self._edges(level - below)
        if edges is not None:
            start, stop = edges[codes], edges[codes + 1]
        else:
            start, stop = np.searchsorted(self._sorted, codes << up), np.searchsorted(self._sorted, (codes + 1) << up)
        return start, np.where(possible, stop, start)

    def _edges(self, level: int) -> Words | None:
        """Return where the cells of a level start, also those that do not exist, or None if there are too many."""
        if level not in self._tables and 1 << level <= DENSE_CELLS_PER_POINT * len(self.order):
            codes = np.arange((1 << level) + 1, dtype=np.int64)
            self._tables[level] = np.searchsorted(self._sorted, codes << (self.depth - level))
        return self._tables.get(level)

    def starts(self, level: int) -> Words:
        """Return where in `order` the points of the existing cells of a level start, in the order of the cells."""
        prefixes = self._sorted >> max(self.depth - level, 0)
        return np.flatnonzero(np.concatenate([[True], prefixes[1:] != prefixes[:-1]]))

    def size(self, level: int) -> int:
        """Return how many cells hold a point."""
        if level not in self._sizes:
            self._sizes[level] = len(self.starts(level))
        return self._sizes[level]

    def exists(self, cells: Cells, level: int) -> Bools:
        """Say which cells hold a point."""
        start, stop = self.ranges(cells, level)
        return stop > start

    def extent(self, cells: Cells, level: int) -> tuple[Points, Points]:
        """Return the lowest and the highest point of each cell."""
        starts = self.starts(level)
        rank = np.searchsorted(starts, self.ranges(cells, level)[0], side="right") - 1
        lowest, highest = np.minimum.reduceat(self.order, starts), np.maximum.reduceat(self.order, starts)
        return lowest[rank].astype(np.float64)[:, None], highest[rank].astype(np.float64)[:, None]

    def draw(self, cells: Cells, level: int, rng: np.random.Generator) -> Points:
        """Draw one of the points of each cell, all equally likely."""
        start, stop = self.ranges(cells, level)
        if np.any(stop <= start):
            raise ArgumentError("cells must exist to be drawn from; ask `exists` first.")
        return self.order[rng.integers(start, stop)].astype(np.float64)[:, None]


def halve(codes: Words, lengths: Words, position: Words, count: Words) -> tuple[Words, Words]:
    """Lengthen paths by balanced halving, to element `position` of a range of `count`; the first half is the larger.

    Examples:
        >>> none = np.zeros(3, np.int64)
        >>> halve(none, none, np.arange(3), np.full(3, 3))
        (array([0, 1, 1]), array([2, 2, 1]))
    """
    while np.any(several := count > 1):
        half = (count + 1) // 2
        right = several & (position >= half)
        codes, lengths = np.where(several, codes << 1 | right, codes), lengths + several
        position, count = position - right * half, np.where(right, count - half, half)
        if lengths.max() > DEEPEST_LEVEL:
            raise ArgumentError(
                f"The tree of the points is deeper than {DEEPEST_LEVEL} levels. Declare fewer levels of the taxonomy."
            )
    return codes, lengths

"""Whole numbers cut at equal parts of their range: the cells that people look at."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privmeasure.domains.base import Bools, Cells, Points
from privmeasure.domains.bits import Words
from privmeasure.domains.line import Integers, nearest_integers
from privmeasure.domains.scales import Even, Reading, Scale
from privmeasure.errors import ArgumentError

MOST_STEPS = 1 << 31
"""Whole numbers: a product of two of them is exact in 64 bits. Wider ranges stay `Integers`, in padded blocks."""
FEWER_STEPS = 1 << 20
"""The most of them in releases that do not say otherwise."""
EXACT_BITS = 53
"""Of a double: engines compute with these."""


class Steps(Integers):
    """The integers of [low, high] as in `Integers`, but cut at equal parts of the range instead of padded blocks.

    The cell of v at level j <= K is min(floor((v - low) 2^j / (high - low)), 2^j - 1): the histogram of 2^j equal bins
    between low and high. `Integers` pads the range to a power of two, so that its cells lie askew to any such bins.

    Notation:   R = high - low    K first level with 2^K > R: every cell is one integer
    Guarantee:  diameters floor(R / 2^j) / R and Delta_j = (R + 1 - size(j)) / R are exact; every cell exists below K

    Examples:
        >>> ages = Steps(0, 120)
        >>> ages.locate(np.array([[29.0], [30.0], [59.9], [120.0]]), 2)
        array([0, 1, 2, 3], dtype=uint64)
        >>> ages.size(6), ages.size(7), ages.diameter(7)
        (64, 121, 0.0)
    """

    def __init__(self, low: int, high: int) -> None:
        """Take public bounds, both included, at most 2^31 - 1 apart."""
        super().__init__(low, high)
        if self.count > MOST_STEPS:
            raise ArgumentError(f"Steps are at most {MOST_STEPS:,} integers, got {self.count:,}. Use Integers.")
        self.cuts = (self.high - self.low).bit_length()

    def size(self, level: int) -> int:
        """Return 2^level, until the cells are single integers."""
        return self.count if level >= self.cuts else 1 << level

    def exists(self, cells: Cells, level: int) -> Bools:
        """Say which cells hold an integer."""
        codes, below = cells.view(np.int64), max(level - self.cuts, 0)
        first, last = self._range(cells, level)
        return np.asarray((first <= last) & (codes & ((1 << below) - 1) == 0) & (codes >= 0) & (codes >> level == 0))

    def locate(self, points: Points, level: int) -> Cells:
        """Return the cell of every point; NaN goes to the first."""
        offsets = nearest_integers(points[:, 0], self.low, self.high) - self.low
        cut, below = min(level, self.cuts), max(level - self.cuts, 0)
        parts: Words = np.minimum((offsets << cut) // max(self.high - self.low, 1), (1 << cut) - 1)
        return (parts << below).view(np.uint64)

    def scale(self, level: int, readings: Sequence[Reading]) -> Scale | None:
        """Return equal parts of the range, if (v - low) 2^j is below 2^53: its quotient then has the right floor."""
        cut = min(level, self.cuts)
        if cut + self.cuts > EXACT_BITS:
            return None
        parts = Even(self._nearest(readings), self.low, 2.0**cut, max(self.high - self.low, 1), cut)
        return self._dealt(parts, level)

    def to_json(self) -> dict[str, Any]:
        """Return the bounds."""
        return {"kind": "steps", "low": self.low, "high": self.high}

    def _fullest(self, level: int) -> int:
        # The last cell has both its ends: floor(R / 2^j) + 1 integers, and none has more.
        return ((self.high - self.low) >> min(level, self.cuts)) + 1

    def _range(self, cells: Cells, level: int) -> tuple[Words, Words]:
        cut, below = min(level, self.cuts), max(level - self.cuts, 0)
        codes, extent = cells.view(np.int64) >> below, self.high - self.low
        first, after = (-((-code * extent) >> cut) for code in (codes, codes + 1))  # the ceiling of code R / 2^j
        return first + self.low, np.where(codes == (1 << cut) - 1, self.high, after + self.low - 1)

    def __repr__(self) -> str:
        """Show what was given."""
        return f"Steps({self.low}, {self.high})"

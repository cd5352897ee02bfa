"""One-dimensional domains beside the interval (a Box with one axis): integers in a range, and the circle."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from privmeasure.domains.base import DEEPEST_LEVEL, Bools, Cells, Floats, Points
from privmeasure.domains.bits import Words
from privmeasure.domains.box import Box
from privmeasure.domains.scales import Clamped, Dealt, Even, Reading, Rounded, Scale, Turned
from privmeasure.errors import ArgumentError

LARGEST_INTEGER = 1 << 53
"""Beyond it, doubles skip integers."""


class Integers:
    """The integers of [low, high] with the distance |x - y| / (high - low).

    The N integers are numbered from 0; a cell of level j <= K = ceil(log2 N) holds 2^(K-j) consecutive numbers, of
    which those below N exist. Values are rounded to the nearest integer and clamped.

    Notation:   N number of integers    K levels until every cell is one integer
    Guarantee:  diameters and Delta_j = (N - size(j)) / (high - low) are exact

    Examples:
        >>> ages = Integers(0, 120)
        >>> ages.size(7), ages.exists(np.array([120, 121], np.uint64), 7)
        (121, array([ True, False]))
        >>> ages.locate(np.array([[36.6], [500.0]]), 7)
        array([ 37, 120], dtype=uint64)
    """

    def __init__(self, low: int, high: int) -> None:
        """Take public bounds, both included."""
        self.low, self.high = _checked_integer("low", low), _checked_integer("high", high)
        if self.low > self.high:
            raise ArgumentError(f"low must be at most high, got Integers({low}, {high}). Swap them.")
        self.count = self.high - self.low + 1
        self.cuts = (self.count - 1).bit_length()

    @property
    def width(self) -> int:
        """One column."""
        return 1

    @property
    def deepest(self) -> int:
        """No limit but that of the codes: below a single integer the cells no longer change."""
        return DEEPEST_LEVEL

    def diameter(self, level: int) -> float:
        """Return (n - 1) / (high - low), n being the number of integers in the fullest cell."""
        return (self._fullest(level) - 1) / max(self.count - 1, 1)

    def radius(self, level: int) -> float:
        """Return the distance from the lower middle of the fullest cell to its last integer."""
        return self._fullest(level) // 2 / max(self.count - 1, 1)

    def total_diameter(self, level: int) -> float:
        """Return (N - size) / (high - low): a cell of n integers has diameter (n - 1) / (high - low)."""
        return (self.count - self.size(level)) / max(self.count - 1, 1)

    def size(self, level: int) -> int:
        """Return the number of cells that hold an integer."""
        return ((self.count - 1) >> max(self.cuts - level, 0)) + 1

    def exists(self, cells: Cells, level: int) -> Bools:
        """Say which cells hold an integer."""
        codes, below = cells.view(np.int64), max(level - self.cuts, 0)
        return np.asarray((codes >> below < self.size(level)) & (codes & ((1 << below) - 1) == 0) & (codes >= 0))

    def locate(self, points: Points, level: int) -> Cells:
        """Return the cell of every point; NaN goes to the first."""
        offsets = nearest_integers(points[:, 0], self.low, self.high) - self.low
        up, down = max(self.cuts - level, 0), max(level - self.cuts, 0)
        return (offsets >> up << down).view(np.uint64)

    def scale(self, level: int, readings: Sequence[Reading]) -> Scale | None:
        """Return the blocks of 2^(K-j) numbers; a range that doubles cannot subtract exactly is not described."""
        if self.high - self.low > LARGEST_INTEGER:
            return None
        cut = min(level, self.cuts)
        return self._dealt(Even(self._nearest(readings), self.low, 2.0 ** (cut - self.cuts), 1.0, cut), level)

    def _nearest(self, readings: Sequence[Reading]) -> Reading:
        return readings[0].then(Clamped(self.low, self.high), Rounded())

    def _dealt(self, cells: Scale, level: int) -> Scale:
        """Return cells of the finest level that differs with zeros behind them, down to the level."""
        return Dealt((cells,), (tuple(range(level - 1, max(level - self.cuts, 0) - 1, -1)),))

    def extent(self, cells: Cells, level: int) -> tuple[Points, Points]:
        """Return the first and the last integer of each cell."""
        first, last = self._range(cells, level)
        return first.astype(np.float64)[:, None], last.astype(np.float64)[:, None]

    def centre(self, cells: Cells, level: int) -> Points:
        """Return the middle integer of each cell, the lower of two."""
        first, last = self._range(cells, level)
        return ((first + last) >> 1).astype(np.float64)[:, None]

    def draw(self, cells: Cells, level: int, rng: np.random.Generator) -> Points:
        """Draw one of the integers of each cell, all equally likely."""
        first, last = self._range(cells, level)
        if np.any(first > last):
            raise ArgumentError("cells must exist to be drawn from; ask `exists` first.")
        return rng.integers(first, last, endpoint=True).astype(np.float64)[:, None]

    def distance(self, x: Points, y: Points) -> Floats:
        """Return |x - y| / (high - low)."""
        with np.errstate(all="ignore"):
            return np.abs(x[..., 0] - y[..., 0]) / max(self.count - 1, 1)

    def to_json(self) -> dict[str, Any]:
        """Return the bounds."""
        return {"kind": "integers", "low": self.low, "high": self.high}

    def _fullest(self, level: int) -> int:
        return min(1 << max(self.cuts - level, 0), self.count)

    def _range(self, cells: Cells, level: int) -> tuple[Words, Words]:
        up, down = max(self.cuts - level, 0), max(level - self.cuts, 0)
        first = (cells.view(np.int64) >> down << up) + self.low
        return first, np.minimum(first + ((1 << up) - 1), self.high)

    def __repr__(self) -> str:
        """Show what was given."""
        return f"Integers({self.low}, {self.high})"


class Circle:
    """A circle: the values modulo a period, with the length of the shorter arc, antipodes being at distance 1.

    Values are wrapped into [low, low + period), for instance hours with period 24 or degrees with period 360. Cells are
    dyadic arcs. NaN and the infinities, which have no place on the circle, go to the first cell.

    Guarantee:  diameters are exact: 1 at levels 0 and 1 (a half circle holds antipodes), then 2^(1-j)

    Examples:
        >>> hours = Circle(24)
        >>> hours.distance(np.array([[23.0]]), np.array([[1.0]])) * 12
        array([2.])
        >>> hours.locate(np.array([[-1.0], [25.0]]), 3)
        array([7, 0], dtype=uint64)
    """

    def __init__(self, period: float = 1.0, *, low: float = 0.0) -> None:
        """Take the public period and the value at which the first arc starts."""
        try:
            self.period, self.low = float(period), float(low)
            self._arc = Box([(self.low, self.low + self.period)])  # the circle, cut open at low
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(
                "A circle needs a finite period above 0, and a low that is not too far from 0 for doubles to tell its "
                f"points apart, got period={period!r}, low={low!r}. Use for instance period=360, low=-180."
            ) from None

    @property
    def width(self) -> int:
        """One column."""
        return 1

    @property
    def deepest(self) -> int:
        """The deepest level at which doubles still tell two neighbouring arcs apart."""
        return self._arc.deepest

    def diameter(self, level: int) -> float:
        """Return the length of an arc over half the period, at most 1."""
        return min(1.0, 2.0 ** (1 - level))

    def radius(self, level: int) -> float:
        """Return half the length of an arc over half the period."""
        return 2.0**-level

    def total_diameter(self, level: int) -> float:
        """Return 2^level diameters."""
        return 2.0**level * self.diameter(level)

    def size(self, level: int) -> int:
        """Return 2^level: every arc exists."""
        return self._arc.size(level)

    def exists(self, cells: Cells, level: int) -> Bools:
        """Return all True."""
        return self._arc.exists(cells, level)

    def locate(self, points: Points, level: int) -> Cells:
        """Return the arc of every point, taken modulo the period."""
        return self._arc.locate(wrap(points, self.low, self.period), level)

    def scale(self, level: int, readings: Sequence[Reading]) -> Scale | None:
        """Return equal parts of the value modulo the period."""
        return self._arc.scale(level, [readings[0].then(describe_wrap(self.low, self.period))])

    def extent(self, cells: Cells, level: int) -> tuple[Points, Points]:
        """Return the ends of the arcs."""
        return self._arc.extent(cells, level)

    def centre(self, cells: Cells, level: int) -> Points:
        """Return the midpoints of the arcs."""
        return self._arc.centre(cells, level)

    def draw(self, cells: Cells, level: int, rng: np.random.Generator) -> Points:
        """Draw uniformly from each arc, strictly inside it."""
        return self._arc.draw(cells, level, rng)

    def distance(self, x: Points, y: Points) -> Floats:
        """Return the length of the shorter arc over half the period."""
        with np.errstate(all="ignore"):
            arc = np.mod(np.abs(x[..., 0] - y[..., 0]), self.period)
            return np.asarray(np.minimum(arc, self.period - arc) / (self.period / 2), np.float64)

    def to_json(self) -> dict[str, Any]:
        """Return period and low."""
        return {"kind": "circle", "period": self.period, "low": self.low}

    def __repr__(self) -> str:
        """Show what was given."""
        return f"Circle({self.period}, low={self.low})"


def nearest_integers(values: Floats, low: int, high: int) -> Words:
    """Return the integers of [low, high] nearest to the values; NaN gives low."""
    with np.errstate(all="ignore"):  # a warning would tell that an odd value is there
        return np.fmin(np.fmax(np.rint(values), low), high).astype(np.int64)


def wrap(values: Floats, low: float, period: float) -> Floats:
    """Return the values modulo the period in [low, low + period); those inside already stay bit for bit.

    Infinities become NaN. A value just below low may round up to low + period itself, which a Box clamps.
    """
    with np.errstate(all="ignore"):
        inside = (values >= low) & (values < low + period)
        return np.where(inside, values, np.mod(values - low, period) + low)


def describe_wrap(low: float, period: float) -> Turned:
    """Return the description of `wrap`."""
    return Turned(low, math.nextafter(low + period, -math.inf), period, math.inf)


def _checked_integer(name: str, value: int | float) -> int:
    try:
        integer = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        integer = int(value) if isinstance(value, float) and value.is_integer() else LARGEST_INTEGER + 1
    if abs(integer) > LARGEST_INTEGER:
        raise ArgumentError(f"{name} must be an integer between -2^53 and 2^53, got {value!r}.")
    return integer

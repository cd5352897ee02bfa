"""Axis-aligned boxes with the l_infinity metric."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from privmeasure import compiled
from privmeasure.domains.base import DEEPEST_LEVEL, Bools, Cells, Floats, Points, check_weights
from privmeasure.domains.bits import LOOKUP_BITS, Interleaving
from privmeasure.domains.scales import Reading, Scale, deal, even
from privmeasure.errors import ArgumentError


class Box:
    """A box [low_1, high_1] x ... x [low_d, high_d] with the distance max_i w_i |x_i - y_i| / (high_i - low_i).

    By default every axis has weight 1, so the box has diameter 1 whatever the units. Each cut halves the axis whose
    weighted side is the longest (the first of them), so that equal weights cut the axes in turn.

    Notation:   d dimension    k_i number of cuts of axis i    w_i weights
    Guarantee:  cells of a level are translates of one another: diameter max_i w_i 2^-k_i, Delta_j = 2^j times that

    Examples:
        >>> box = Box([(0, 1), (-10, 10)])
        >>> box.locate(np.array([[0.6, -10.0], [1.0, 10.0]]), 2)
        array([2, 3], dtype=uint64)
        >>> box.diameter(3)
        0.5
    """

    def __init__(self, bounds: Iterable[tuple[float, float]], weights: Sequence[float] | None = None) -> None:
        """Take public bounds, one (low, high) per axis, and optional weights."""
        if not isinstance(bounds, Iterable):
            raise ArgumentError(f"bounds must be a list of (low, high) pairs, one per column, got {bounds!r}.")
        self.bounds = tuple(_checked_bounds(i, pair) for i, pair in enumerate(bounds))
        if not self.bounds:
            raise ArgumentError("bounds must have at least one (low, high) pair, got none. Give one pair per column.")
        self.weights = check_weights(weights, len(self.bounds))

    @property
    def width(self) -> int:
        """The dimension d."""
        return len(self.bounds)

    @property
    def deepest(self) -> int:
        """The deepest level at which doubles still tell two neighbouring cells apart on every axis."""
        finest = [_resolution(low, high) - 1 for low, high in self.bounds]
        levels = range(DEEPEST_LEVEL, -1, -1)
        return next(j for j in levels if all(k <= f for k, f in zip(self.cuts(j), finest, strict=True)))

    def diameter(self, level: int) -> float:
        """Return max_i w_i 2^-k_i."""
        return _widest(self.weights, level)

    def radius(self, level: int) -> float:
        """Return half the diameter: centres are midpoints."""
        return self.diameter(level) / 2

    def total_diameter(self, level: int) -> float:
        """Return 2^level diameters."""
        return 2.0**level * self.diameter(level)

    def size(self, level: int) -> int:
        """Return 2^level: every cell exists."""
        return 1 << level

    def exists(self, cells: Cells, level: int) -> Bools:
        """Return all True."""
        return np.ones(len(cells), bool)

    def locate(self, points: Points, level: int) -> Cells:
        """Return the cell of every point; the upper face belongs to the last cell, NaN to the first."""
        deal = _interleaving(self.weights, level)
        if (loops := compiled.kernels()) is not None and points.shape[1:] == (self.width,):
            codes, axes = np.empty(len(points), np.int64), _axes(self.bounds, self.weights, level)
            rows = np.require(points, np.float64, "A")
            loops.box_cells(rows, axes.lows, axes.factors, axes.cuts, deal.packed[0], LOOKUP_BITS, codes)
            return codes.view(np.uint64)
        indices = [
            self._index(np.asarray(points[:, axis], np.float64), axis, cuts)
            if cuts
            else np.zeros(len(points), np.int64)
            for axis, cuts in enumerate(deal.cuts)
        ]
        return deal.join(indices).view(np.uint64)

    def scale(self, level: int, readings: Sequence[Reading]) -> Scale | None:
        """Return equal parts of every axis, dealt out: what `_index` does."""
        order = _interleaving(self.weights, level)
        parts = zip(readings, self.bounds, order.cuts, strict=True)
        return deal(
            [even(reading, low, 1 / (high - low) * 2.0**cuts, cuts) for reading, (low, high), cuts in parts],
            order.positions,
        )

    def _index(self, values: Floats, axis: int, cuts: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        # u = (x - low) * c is rounded, but c is a power of two times a fixed factor, so u at k cuts is exactly 2^-m
        # times u at k + m cuts: the prefix law holds whatever the rounding was.
        low, high = self.bounds[axis]
        with np.errstate(all="ignore"):  # a warning would tell that an odd value is there
            u = np.subtract(values, low)
            np.multiply(u, 1 / (high - low) * 2.0**cuts, out=u)
            np.clip(u, 0.0, 2.0**cuts - 1, out=u)
            index = u.astype(np.int64)
        # NaN became the lowest integer or 0, depending on the processor: either way 0, the first cell, in the bits kept
        return np.bitwise_and(index, (1 << cuts) - 1, out=index)

    def extent(self, cells: Cells, level: int) -> tuple[Points, Points]:
        """Return the corners of the cells."""
        return self._place(cells, level, 0.0), self._place(cells, level, 1.0)

    def centre(self, cells: Cells, level: int) -> Points:
        """Return the midpoints of the cells."""
        return self._place(cells, level, 0.5)

    def _place(self, cells: Cells, level: int, offset: float) -> Points:
        deal = _interleaving(self.weights, level)
        points = np.empty((len(cells), self.width))
        for axis, index in enumerate(deal.split(cells.view(np.int64))):
            low, high = self.bounds[axis]
            points[:, axis] = np.minimum(low + (index + offset) * ((high - low) * 2.0 ** -deal.cuts[axis]), high)
        return points

    def draw(self, cells: Cells, level: int, rng: np.random.Generator) -> Points:
        """Draw uniformly from each cell, on a fine lattice that keeps clear of the cell's faces.

        A lattice of 2^b points per side, offset by half a step, makes every rounding harmless: the drawn point is
        always located in its own cell. b is 32 unless the box is too deep or too far from 0 for doubles to tell.
        """
        deal = _interleaving(self.weights, level)
        points = np.empty((len(cells), self.width))
        words = rng.bit_generator.random_raw((len(cells) * self.width + 1) // 2).view(np.uint32)
        axes = _axes(self.bounds, self.weights, level)
        if (loops := compiled.kernels()) is not None:
            codes, packed = np.ascontiguousarray(cells, np.uint64), deal.packed[1]
            loops.box_points(codes, words, axes.lows, axes.widths, axes.cuts, axes.digits, packed, LOOKUP_BITS, points)
            return points
        for axis, index in enumerate(deal.split(cells.view(np.int64))):
            bits = int(axes.digits[axis])
            word = words[axis * len(cells) : (axis + 1) * len(cells)]
            # the integer (index 2^b + word) + 1/2 has at most 53 bits: the position is exact until it is scaled
            np.left_shift(index, bits, out=index)
            np.bitwise_or(index, word if bits == 32 else word >> np.uint32(32 - bits), out=index)
            u = np.add(index, 0.5)
            np.multiply(u, axes.widths[axis], out=u)
            np.add(u, axes.lows[axis], out=points[:, axis])
        return points

    def distance(self, x: Points, y: Points) -> Floats:
        """Return max_i w_i |x_i - y_i| / (high_i - low_i)."""
        scale = np.array([w / (high - low) for w, (low, high) in zip(self.weights, self.bounds, strict=True)])
        with np.errstate(all="ignore"):
            return np.asarray(np.max(np.abs(x - y) * scale, axis=-1), np.float64)

    def to_json(self) -> dict[str, Any]:
        """Return bounds and weights."""
        return {"kind": "box", "bounds": [list(pair) for pair in self.bounds], "weights": list(self.weights)}

    def cuts(self, level: int) -> tuple[int, ...]:
        """Return how often each axis is cut on the way to a level."""
        return _interleaving(self.weights, level).cuts

    def positions(self, cells: Cells, level: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return where each cell lies along every axis, counted from the low end."""
        return np.stack(_interleaving(self.weights, level).split(cells.view(np.int64)), axis=1)

    def __eq__(self, other: object) -> bool:
        """Say whether bounds and weights are the same: what was computed for one box then serves the other."""
        return type(other) is type(self) and (self.bounds, self.weights) == (other.bounds, other.weights)

    def __hash__(self) -> int:
        """Return a hash of bounds and weights."""
        return hash((self.bounds, self.weights))

    def __repr__(self) -> str:
        """Show what was given."""
        return f"Box({list(self.bounds)!r}, weights={list(self.weights)!r})"


@dataclass(frozen=True, eq=False)
class _Axes:
    """What `locate` and `draw` need of every axis at a level, as arrays."""

    lows: Floats
    factors: Floats
    """From a value above the low end to its position in units of cells."""
    cuts: np.ndarray[Any, np.dtype[np.int64]]
    digits: np.ndarray[Any, np.dtype[np.int64]]
    """Binary digits of a position inside a cell."""
    widths: Floats
    """The steps of these positions."""


@lru_cache(maxsize=1024)  # a plan asks a thousand times
def _widest(weights: tuple[float, ...], level: int) -> float:
    return max(w * 2.0**-k for w, k in zip(weights, _interleaving(weights, level).cuts, strict=True))


@lru_cache(maxsize=256)
def _axes(bounds: tuple[tuple[float, float], ...], weights: tuple[float, ...], level: int) -> _Axes:
    cuts = _interleaving(weights, level).cuts
    digits = [max(1, min(32, _resolution(low, high) - k)) for (low, high), k in zip(bounds, cuts, strict=True)]
    parts = list(zip(bounds, cuts, digits, strict=True))
    return _Axes(
        lows=np.array([low for low, _ in bounds]),
        factors=np.array([1 / (high - low) * 2.0**k for (low, high), k, _ in parts]),
        cuts=np.array(cuts, np.int64),
        digits=np.array(digits, np.int64),
        widths=np.array([(high - low) * 2.0 ** -(k + b) for (low, high), k, b in parts]),
    )


@lru_cache(maxsize=256)
def _interleaving(weights: tuple[float, ...], level: int) -> Interleaving:
    """Return the order of cuts: each level halves the longest weighted side."""
    sides, axes = list(weights), []
    for _ in range(level):
        axis = max(range(len(sides)), key=sides.__getitem__)  # the first of the longest
        axes.append(axis)
        sides[axis] /= 2
    return Interleaving(axes, len(sides))


def _resolution(low: float, high: float) -> int:
    """Return how many binary digits of a position in [low, high] survive all rounding of `draw` and `locate`.

    The drawn point is off by at most (max(|low|, |high|) + 4 (high - low)) 2^-53; two bits are kept in reserve.
    """
    return 51 - math.ceil(math.log2(max(abs(low), abs(high)) / (high - low) + 4))


def _checked_bounds(axis: int, pair: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"bounds[{axis}] must be a pair of numbers (low, high), got {pair!r}.") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise ArgumentError(
            f"bounds[{axis}] must be finite with low < high, got ({low}, {high}). "
            "Bounds are public: take them from knowledge of the subject, not from the data."
        )
    if _resolution(low, high) < 2 or not math.isfinite(1 / (high - low) * 2.0**DEEPEST_LEVEL):
        raise ArgumentError(
            f"bounds[{axis}] = ({low}, {high}) is too narrow for its distance from 0: doubles cannot tell its points "
            "apart. Shift or rescale the column by a public constant first."
        )
    return low, high

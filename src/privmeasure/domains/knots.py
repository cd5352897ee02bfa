"""Scales that are the same on every machine: increasing doubles, and a straight line between each and the next.

A logarithm or a sine is rounded by the library that computes it, and libraries differ in the last bit: between
processors, and between the middle and the end of one array. A scale that decides in which cell a private value lies
must not: what a row becomes depends on that row alone. So a curved scale is *defined* by its knots, public doubles that
are computed once, and a value is only compared with them. What lies between two knots is placed by IEEE subtraction
and division, which are rounded the same everywhere.
"""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains.base import Floats
from privmeasure.domains.bits import Words

NEAR_ONE = 1 - 2.0**-30
"""The last place before the next knot: adding a knot's number to it must not round up to that knot."""
SEARCHED = 32
"""Up to so many gaps a search is as fast as a table of guesses."""
MOST_BUCKETS = 1 << 20
MOST_HALVINGS = 16
"""A log scale has 2^16 gaps, where there are doubles enough."""


class Knots:
    """A scale from 0 to K, given by K + 1 increasing finite doubles: knot i lies at i, and it is even between knots.

    Notation:   k_0 < ... < k_K knots    i number of the last knot at or below x    f = (x - k_i) / (k_{i+1} - k_i)
    Guarantee:  `place` is increasing, and for every x a function of x alone: comparisons and single IEEE operations

    Examples:
        >>> scale = Knots(np.array([0.0, 10, 100, 1000]))
        >>> scale.place(np.array([-1.0, 5, 10, 55, 1000, np.nan]))
        array([0. , 0.5, 1. , 1.5, 3. , nan])
        >>> scale.values(np.array([0.5, 1.5, 3]))
        array([   5.,   55., 1000.])
    """

    def __init__(self, knots: Floats) -> None:
        """Take the knots, at least two of them."""
        self.knots = knots
        self.count = len(knots) - 1
        """How many gaps there are: K."""

    def index(self, values: Floats) -> Words:
        """Return the number of the last knot at or below each value, from 0 to K - 1."""
        guesses = self._guesses
        if guesses is None:
            found = np.searchsorted(self.knots, values, side="right")
            np.subtract(found, 1, out=found)
            return np.clip(found, 0, self.count - 1, out=found)
        shift, first, table = guesses
        # A bucket holds the doubles whose leading bits agree, and at most one knot: the guess is right or one short.
        bucket = np.right_shift(np.ascontiguousarray(values).view(np.int64), shift)
        np.clip(bucket, first, first + len(table) - 1, out=bucket)
        np.subtract(bucket, first, out=bucket)
        found = table.take(bucket, mode="clip").astype(np.int64)
        found += values >= self.knots[1:].take(found, mode="clip")
        return np.minimum(found, self.count - 1, out=found)

    def place(self, values: Floats) -> Floats:
        """Return where the values lie on the scale; those beyond the ends are clamped, NaN stays."""
        with np.errstate(all="ignore"):  # a warning would tell that an odd value is there
            index = self.index(values)
            below, above = (side.take(index, mode="clip") for side in (self.knots[:-1], self.knots[1:]))
            np.subtract(above, below, out=above)
            places = np.subtract(values, below, out=below)
            np.divide(places, above, out=places)
            np.clip(places, 0.0, NEAR_ONE, out=places)
            np.add(places, index, out=places)
            np.copyto(places, self.count, where=values >= self.knots[-1])
        return places

    def values(self, places: Floats) -> Floats:
        """Return the values at places of the scale, which grow with the places; NaN stays."""
        with np.errstate(all="ignore"):
            index = np.clip(np.floor(places), 0, self.count - 1).astype(np.int64)
            below, above = (side.take(index, mode="clip") for side in (self.knots[:-1], self.knots[1:]))
            values = (places - index) * (above - below) + below
            return np.clip(values, below, above)

    @cached_property
    def steepest(self) -> float:
        """The widest gap: by how much a value changes at most for a change of its place by 1."""
        return float(np.diff(self.knots).max())

    @cached_property
    def _guesses(self) -> tuple[int, int, NDArray[np.int32]] | None:
        """Return shift, first bucket and for each bucket of doubles the last knot at or below its first one.

        Only the inner knots decide, and they must not be negative: then doubles are ordered as their bits are.
        """
        inner = self.knots[1:-1]
        if self.count <= SEARCHED or inner[0] < 0:
            return None
        bits = (inner + 0.0).view(np.int64)  # no negative zero
        shift = int(np.diff(bits).min()).bit_length() - 1
        first, last = int(bits[0] >> shift) - 1, int(bits[-1] >> shift)
        if last - first >= MOST_BUCKETS:
            return None
        starts = np.arange(first, last + 1) << shift
        return shift, first, np.searchsorted(bits, starts, side="right").astype(np.int32)

    def __repr__(self) -> str:
        """Show the ends."""
        return f"Knots({self.count} gaps from {self.knots[0]} to {self.knots[-1]})"


@lru_cache(maxsize=16)
def log_knots(low: float, high: float) -> Knots:
    """Return a scale on which equal ratios are equally long: 2^16 gaps, or as many as there are doubles for.

    Knots are geometric means of knots: square roots and products are rounded the same on every machine. The number of
    gaps is a power of two, so cells of up to 16 cuts begin at knots.

    Guarantee:  a knot is off its true place by less than 2^-48 of itself

    Examples:
        >>> log_knots(1.0, 10.0**4).knots[:: 1 << 14]
        array([1.e+00, 1.e+01, 1.e+02, 1.e+03, 1.e+04])
        >>> log_knots(1.0, 1.0 + 2.0**-50)
        Knots(4 gaps from 1.0 to 1.0000000000000009)
    """
    knots = np.array([low, high], np.float64)
    for _ in range(MOST_HALVINGS):
        roots = np.sqrt(knots)
        finer = np.empty(2 * len(knots) - 1)
        finer[::2], finer[1::2] = knots, roots[:-1] * roots[1:]
        if not (np.diff(finer) > 0).all():
            break
        knots = finer
    return Knots(knots)


def ordered_bits(values: Floats) -> Words:
    """Return integers in the order of the doubles, one apart for neighbours; its own inverse on their bits.

    Examples:
        >>> ordered_bits(np.array([-5e-324, -0.0, 0.0, 5e-324]))
        array([-2, -1,  0,  1])
    """
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def from_ordered_bits(words: Any) -> Floats:
    """Return the doubles of `ordered_bits`."""
    bits = np.asarray(words, np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits).view(np.float64)

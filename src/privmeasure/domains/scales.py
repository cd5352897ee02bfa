"""Questions that can be read: how a stored value becomes a cell, as data that other engines can translate.

`Domain.locate` executes a question with NumPy. A database or a cluster must ask the same question in its own words, and
must give every row the same cell. So a domain of this package also *describes* what it does, in words that every engine
has: comparisons; sums, differences, products and quotients of doubles, each rounded once as in IEEE 754; the
floor; the nearest integer, half to even; a table; and bits that are moved.

**Values.** A `Reading` names a stored column and the steps that its value goes through. Missing values are mapped
first: NULL is NaN, NaN stays NaN through every step, and what a scale makes of NaN is its first number, 0.

**Scales.** A scale makes a whole number of readings: `Even`, `Edges` and `Codes` of one; `Dealt`, `Missing`, `Rings`
and `Grouped` put numbers together.

What is not described (`describe` returns None) is located by NumPy: a third party's domain, whole numbers that doubles
cannot subtract, and rings of a sphere so fine that a table of their edges would be larger than most data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains.base import Domain, Floats
from privmeasure.domains.bits import Words
from privmeasure.domains.knots import Knots, from_ordered_bits, ordered_bits

MOST_EDGES = 1 << 16
"""A scale with more edges is computed, or not described."""


# ------------------------------------------------------------------------------------------------- values


@dataclass(frozen=True)
class Clamped:
    """The nearest value of [low, high]."""

    low: float
    high: float


@dataclass(frozen=True)
class Filled:
    """A value in the place of NaN."""

    value: float


@dataclass(frozen=True)
class Rounded:
    """The nearest integer, half to even."""


@dataclass(frozen=True)
class Turned:
    """The value modulo `period`, in [low, low + period], where it is not in [low, high] already; infinities are NaN.

    t = (x - low mod period) + low takes the place of x, unless t is above `top`. The remainder is that of C's fmod,
    which is exact, plus the period where it is negative.
    """

    low: float
    high: float
    period: float
    top: float


@dataclass(frozen=True)
class Counted:
    """How many whole steps from `low` to the value: floor((x - low) / step), plus `offset`."""

    low: float
    step: float
    offset: float = 0.0


@dataclass(frozen=True)
class Listed:
    """The position of the value among those listed, which texts equal byte by byte; `other` for any other value.

    `missing` stands for NULL and, among numbers, for NaN.
    """

    values: tuple[str, ...] | tuple[float, ...]
    other: float
    missing: float


@dataclass(frozen=True, eq=False)
class Stretched:
    """The place of the value on a scale of knots: i + clip((x - k_i) / (k_(i+1) - k_i), 0, NEAR_ONE), and K at the end.

    i is how many of the inner knots are at or below x. Up to 2^16 parts of it are described by `Edges` instead, which
    leave nothing to compute.
    """

    knots: Knots


@dataclass(frozen=True, eq=False)
class Together:
    """NaN where another reading is NaN: two values that make sense together alone."""

    other: "Reading"


Step = Clamped | Filled | Rounded | Turned | Counted | Listed | Stretched | Together


@dataclass(frozen=True, eq=False)
class Reading:
    """One coordinate of a point: the stored column it comes from, and the steps on the way.

    `stored` says in which unit the engine hands the column over: "number", "text", "days" since 1970, "microseconds"
    since 1970, or "microseconds of the day".
    """

    column: int
    steps: tuple[Step, ...] = ()
    stored: str = "number"

    def then(self, *steps: Step) -> "Reading":
        """Return the reading after further steps."""
        return Reading(self.column, self.steps + steps, self.stored)

    @property
    def plain(self) -> "Reading":
        """The reading before it is stretched, which is NaN where it was."""
        stretched = bool(self.steps) and isinstance(self.steps[-1], Stretched)
        return Reading(self.column, self.steps[:-1], self.stored) if stretched else self


# ------------------------------------------------------------------------------------------------- scales


@dataclass(frozen=True, eq=False)
class Even:
    """Equal parts: floor((x - low) * factor / divisor), at least 0 and below 2^bits."""

    of: Reading
    low: float
    factor: float
    divisor: float
    bits: int


@dataclass(frozen=True, eq=False)
class Edges:
    """Breakpoints: how many of the increasing edges are at or below x."""

    of: Reading
    edges: Floats


@dataclass(frozen=True, eq=False)
class Codes:
    """A code table: the code of position x, a whole number from 0 on."""

    of: Reading
    codes: Words


@dataclass(frozen=True, eq=False)
class Dealt:
    """Bits that are dealt out: the i-th highest of the bits of each part goes to place `places[part][i]` of the code.

    Place 0 is the lowest, and a bit of place -1 is left out. Without parts the code is 0.
    """

    parts: "tuple[Scale, ...]"
    places: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Missing:
    """`code` where one of the readings is NaN, else the present scale."""

    of: tuple[Reading, ...]
    code: int
    present: "Scale"


@dataclass(frozen=True, eq=False)
class Rings:
    """Rings of a sphere: codes[r] + floor(turn * shares[r]), r being the ring and turn what the longitude adds.

    `shares` are powers of two, and at most 1.
    """

    ring: Edges
    codes: Words
    shares: Floats
    outer: "Scale"
    turn: "Scale"


@dataclass(frozen=True, eq=False)
class Grouped:
    """The group of the number that a scale gives."""

    of: "Scale"
    groups: NDArray[np.int64]


Scale = Even | Edges | Codes | Dealt | Missing | Rings | Grouped

NOTHING = Dealt((), ())
"""The code 0 of the only cell."""


def describe(domain: Domain, level: int, readings: Sequence[Reading] | None = None) -> Scale | None:
    """Return how the cells of a level follow from the coordinates, or None where `locate` alone knows.

    Examples:
        >>> from privmeasure.domains import Box
        >>> describe(Box([(0, 8)]), 2)
        Dealt(parts=(Even(of=Reading(...), low=0.0, factor=0.5, divisor=1.0, bits=2),), places=((1, 0),))
    """
    if readings is None:
        readings = [Reading(column) for column in range(domain.width)]
    scale: Any = getattr(domain, "scale", None)
    return NOTHING if level == 0 else None if scale is None else scale(level, readings)


def deal(parts: "Sequence[Scale | None]", places: Sequence[Sequence[int]]) -> Scale | None:
    """Return the parts with their bits dealt out; None where one of them is."""
    given = [(part, tuple(where)) for part, where in zip(parts, places, strict=True) if where]
    if any(part is None for part, _ in given):
        return None
    return Dealt(tuple(part for part, _ in given if part is not None), tuple(where for _, where in given))


def even(reading: Reading, low: float, factor: float, bits: int, divisor: float = 1.0) -> Scale:
    """Return equal parts of a reading; breakpoints where it is stretched and they are not too many."""
    stretch = reading.steps[-1] if reading.steps else None
    if not isinstance(stretch, Stretched) or 1 << bits > MOST_EDGES:
        return Even(reading, low, factor, divisor, bits)

    def cell(values: Floats) -> NDArray[Any]:
        parts = np.floor((stretch.knots.place(values) - low) * factor / divisor)
        return np.clip(parts, 0, 2.0**bits - 1)

    ends = stretch.knots.knots[[0, -1]]
    return Edges(reading.plain, find_edges(cell, 1 << bits, *ends))


def find_edges(cell: Any, count: int, low: float, high: float) -> Floats:
    """Return where each number from 1 to count - 1 is reached first: the least double of [low, high] with cell >= it.

    `cell` never decreases, so each edge is found by halving the doubles between low and high. A number that is never
    reached has an edge above `high`.
    """
    wanted = np.arange(1, count)
    first, last = (np.full(len(wanted), word) for word in ordered_bits(np.array([low, high], np.float64)))
    last += 1
    while (first < last).any():
        middle = (first & last) + ((first ^ last) >> 1)  # the lower middle, without overflow
        reached = cell(from_ordered_bits(middle)) >= wanted
        first, last = np.where(reached, first, np.minimum(middle + 1, last)), np.where(reached, middle, last)
    return from_ordered_bits(last) + 0.0  # no negative zero

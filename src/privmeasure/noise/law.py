"""What anyone may know of the noise, without drawing any: which laws and scales there are, how widely they spread.

A plan carries the name of its law. `facts_of` says what is known of it, `noise.draws.law_of` draws from it.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Cells
from privmeasure.errors import ArgumentError
from privmeasure.rounding import LAST_DIGITS

LawName = Literal["discrete laplace"]
LAPLACE: LawName = "discrete laplace"
SMALLEST_SCALE, LARGEST_SCALE = Fraction(1, 50), Fraction(10**6)


def check_scale(scale: Fraction) -> None:
    """Raise where a scale is out of reach."""
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        shown = Decimal(scale.numerator) / scale.denominator  # a float might overflow
        raise ArgumentError(
            f"The noise scale must be from {SMALLEST_SCALE} to {LARGEST_SCALE}, got {shown:.4g}. "
            "The scale is sensitivity / budget: choose an epsilon, a depth or rows_per_person within reach."
        )


class Facts(Protocol):
    """What is known of a law of integer noise. `LaplaceFacts` are ones."""

    @property
    def scale(self) -> Fraction:
        """The scale, an exact fraction."""
        ...

    @property
    def variance(self) -> float:
        """The variance of a draw."""
        ...

    def tail(self, size: int) -> float:
        """Return the chance that a draw is at least so large, on either side."""
        ...

    def limit(self, share: float) -> int:
        """Return the smallest q such that a draw is larger, on either side, with a chance of at most `share`."""
        ...

    def simulated(self, rng: np.random.Generator, count: int, *, terms: int = 1) -> NDArray[np.int64]:
        """Return so many sums of `terms` independent draws, for simulations: floats decide, so they protect no one."""
        ...


class Law(Facts, Protocol):
    """A law of integer noise, drawn by position. `DiscreteLaplace` is one."""

    def draw(self, key: Any, *, part: int, level: int, cells: Cells) -> NDArray[np.int64]:
        """Return noise for some cells: a function of the key, the part, the level and the cell alone."""
        ...


class LaplaceFacts:
    """What is known of Lap_Z(scale): P(Z = z) = (1 - p) / (1 + p) * p^|z| with p = exp(-1 / scale).

    Examples:
        >>> facts = LaplaceFacts(Fraction(2))
        >>> facts.tail(0), round(facts.tail(3), 4), round(facts.variance, 3), facts.limit(0.05)
        (1.0, 0.2778, 7.835, 6)
    """

    def __init__(self, scale: Fraction) -> None:
        """Take the scale, of any size."""
        self.scale = scale

    @property
    def variance(self) -> float:
        """The variance 2 p / (1 - p)^2."""
        x = float(1 / self.scale)
        if x < 1e-150:  # the variance is divided by its square, which doubles could hardly hold
            return math.inf
        return 2 * math.exp(-x) / math.expm1(-x) ** 2

    def tail(self, size: int) -> float:
        """Return the chance 2 p^size / (1 + p) that a draw is at least so large, on either side."""
        p = math.exp(-1 / self.scale)
        return 1.0 if size <= 0 else 2 * p**size / (1 + p)

    def limit(self, share: float) -> int:
        """Return the smallest q with P(|Z| > q) = 2 p^(q+1) / (1+p) <= share."""
        x = float(1 / self.scale)
        return max(0, math.ceil(-math.log(share * (1 + math.exp(-x)) / 2) / x - 1 - LAST_DIGITS))

    def simulated(self, rng: np.random.Generator, count: int, *, terms: int = 1) -> NDArray[np.int64]:
        """Return simulated sums: each is the difference of two sums of geometric variables."""
        p = -math.expm1(-float(1 / self.scale))
        if terms == 1:  # faster
            return np.asarray(rng.geometric(p, count) - rng.geometric(p, count), np.int64)
        return np.asarray(rng.negative_binomial(terms, p, count) - rng.negative_binomial(terms, p, count), np.int64)


FACTS: Mapping[LawName, Callable[[Fraction], Facts]] = {LAPLACE: LaplaceFacts}
"""What is known of each law."""


def facts_of(law: LawName, scale: Fraction) -> Facts:
    """Return what is known of a law at a scale, which need not be within reach."""
    return FACTS[law](scale)

"""What anyone may know of the noise, without drawing any: which laws and scales there are, how widely they spread.

A plan carries the name of its law. `facts_of` says what is known of it, `noise.draws.law_of` draws from it.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Cells
from privmeasure.errors import ArgumentError
from privmeasure.privacy import GAUSSIAN as GAUSSIAN
from privmeasure.privacy import LAPLACE as LAPLACE
from privmeasure.privacy import LawName as LawName
from privmeasure.rounding import LAST_DIGITS

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
        """The variance of a draw, or a bound of it, such that E|X| <= sqrt(2/pi) sd(X) for sums X of such draws."""
        ...

    @property
    def size(self) -> float:
        """A bound of E|Z|."""
        ...

    @property
    def larger(self) -> float:
        """A bound of E max(|Z|, |Z'|) of two independent draws."""
        ...

    @property
    def real_variance(self) -> float:
        """The variance of a real law that is above this one in convex order ..."""
        ...

    @property
    def steadiness(self) -> float:
        """... and b with E(C - E C)+ <= (weak deviation) / b for a supremum C of sums of such real noise."""
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

    @property
    def size(self) -> float:
        """The scale, which E|Z| never exceeds."""
        return float(self.scale)

    @property
    def larger(self) -> float:
        """3/2 of the scale: that of real Laplace noise, which is above this in convex order."""
        return 1.5 * float(self.scale)

    @property
    def real_variance(self) -> float:
        """That of real Laplace noise of the same scale."""
        return 2 * float(self.scale) ** 2

    @property
    def steadiness(self) -> float:
        """The square root of 2: the Poincare constant of Laplace noise is twice its variance."""
        return math.sqrt(2)

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


class GaussianFacts:
    """What is known of N_Z(0, scale^2): P(Z = z) ~ exp(-z^2 / (2 scale^2)).

    Examples:
        >>> facts = GaussianFacts(Fraction(2))
        >>> facts.tail(0), round(facts.tail(3), 4), facts.variance, facts.limit(0.05)
        (1.0, 0.2065, 4.0, 4)
    """

    def __init__(self, scale: Fraction) -> None:
        """Take the scale, of any size."""
        self.scale = scale

    @property
    def variance(self) -> float:
        """scale^2, which the variance never exceeds, and which it equals to 7 digits from scale 1 on [CKS20].

        It is also the variance of the normal law whose characteristic function is the smaller one everywhere: what
        bounds of sums of noise need (docs/proofs/gaussian.md).
        """
        return float(self.scale) ** 2

    @property
    def size(self) -> float:
        """sqrt(2/pi) of the scale."""
        return math.sqrt(2 / math.pi) * float(self.scale)

    @property
    def larger(self) -> float:
        """2 / sqrt(pi) of the scale: max(|a|, |b|) = (|a + b| + |a - b|) / 2."""
        return 2 / math.sqrt(math.pi) * float(self.scale)

    @property
    def real_variance(self) -> float:
        """(scale^2 + 1) 1.0005, of a normal law, from scale 1 on: docs/proofs/gaussian.md; below, that of scale 1.

        The larger the scale, the larger is |Z|, by its likelihood ratio. So the law of scale 1 is above those of
        smaller scales in convex order, the sign being a coin of its own.
        """
        return (max(float(self.scale), 1.0) ** 2 + 1) * 1.0005

    @property
    def steadiness(self) -> float:
        """2: the Poincare constant of normal noise is its variance."""
        return 2.0

    def tail(self, size: int) -> float:
        """Return the chance that a draw is at least so large, on either side; beyond scale 4096 a bound of it."""
        if size <= 0:
            return 1.0
        scale = float(self.scale)
        if scale > LARGEST_SUMMED:  # P(Z >= m) <= P(N(0, scale^2) >= m - 1) [CKS20]
            return math.erfc((size - 1) / (scale * math.sqrt(2)))
        sums = _tail_sums(self.scale)
        return float(2 * sums[size] / (2 * sums[1] + 1)) if size < len(sums) else 0.0

    def limit(self, share: float) -> int:
        """Return the smallest q with P(|Z| > q) <= share, beyond scale 4096 one that may be larger by 1."""
        low, high = 0, max(1, math.ceil(float(self.scale)))
        while self.tail(high + 1) > share:
            low, high = high, 2 * high
        if self.tail(low + 1) <= share:
            return low
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.tail(middle + 1) <= share else (middle, high)
        return high

    def simulated(self, rng: np.random.Generator, count: int, *, terms: int = 1) -> NDArray[np.int64]:
        """Return simulated sums: from scale 1 on a sum of such draws has the law of one draw, to 8 digits."""
        scale = float(self.scale)
        if scale < 1 and terms > 1:
            values, chances = _chances(scale)
            return np.asarray(rng.multinomial(terms, chances, count) @ values, np.int64)
        scale *= math.sqrt(terms)
        if scale < LARGEST_LISTED:
            values, chances = _chances(scale)
            return np.asarray(rng.choice(values, count, p=chances), np.int64)
        # a normal law of the same variance, rounded: 1/12 is what rounding adds
        return np.rint(rng.normal(0.0, math.sqrt(scale**2 - 1 / 12), count)).astype(np.int64)


LARGEST_LISTED = 32
"""Below this scale values are simulated by their chances: a rounded normal law has smaller tails."""


@lru_cache(maxsize=64)
def _chances(scale: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the values that doubles see, and their chances."""
    values = np.arange(-math.ceil(39 * scale) - 1, math.ceil(39 * scale) + 2)
    weights = np.exp(-(values.astype(np.float64) ** 2) / (2 * scale**2))
    return values, weights / weights.sum()


LARGEST_SUMMED = 4096
"""The largest scale whose tails are summed up, one by one."""


@lru_cache(maxsize=64)
def _tail_sums(scale: Fraction) -> NDArray[np.float64]:
    """Return sum_(z >= i) exp(-z^2 / (2 scale^2)) for i = 0, 1, ...: as far as doubles see anything."""
    values = np.arange(math.ceil(39 * float(scale)) + 2, dtype=np.float64)
    weights = np.exp(-(values**2) / (2 * float(scale) ** 2))
    return np.asarray(np.cumsum(weights[::-1])[::-1])


FACTS: Mapping[LawName, Callable[[Fraction], Facts]] = {LAPLACE: LaplaceFacts, GAUSSIAN: GaussianFacts}
"""What is known of each law."""


def agreement_variance(pairs: int, scale: Fraction, law: LawName) -> float:
    """Return the variance of the noise of each agreement of all pairs of columns, or 0 where there is no pair.

    With Gaussian noise that of the scale. Else noise is a difference of two draws of t C (noise/signs.py), and rounded.

    Notation:   d columns, p pairs    E t^2 = (p + 1) (p + 2)    E C_ij^2 = 1 / (d + 1)

    Examples:
        >>> round(agreement_variance(136, Fraction(1), LAPLACE) ** 0.5), round(136 * 2**0.5)  # all at once, one by one
        (46, 192)
    """
    if pairs == 0 or law == GAUSSIAN:
        return facts_of(law, scale).variance if pairs else 0.0
    columns = (1 + math.isqrt(1 + 8 * pairs)) // 2
    return 2 * float(scale) ** 2 * (pairs + 1) * (pairs + 2) / (columns + 1) + 1 / 12


def facts_of(law: LawName, scale: Fraction) -> Facts:
    """Return what is known of a law at a scale, which need not be within reach."""
    return FACTS[law](scale)

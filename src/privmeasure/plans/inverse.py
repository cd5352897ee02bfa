"""From a wanted accuracy back to what it takes: the smallest epsilon, or the fewest rows, that guarantee it."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from privmeasure.errors import ArgumentError

Candidate = TypeVar("Candidate", Fraction, int)

EPSILONS = [
    Fraction(digits) * Fraction(10) ** power
    for power in (-4, -3, -2, -1, 0)
    for digits in range(10, 51 if power == 0 else 100)
]
"""Candidates with two significant digits, from 0.001 to 50."""
ROWS = [digits * 10**power for power in range(12) for digits in range(1 if power == 0 else 10, 100)]
"""Candidates with two significant digits, from 1 to 10^13."""


BUMP = 140
"""Candidates over which a guarantee may rise again where the depth jumps: a factor of about 35."""


def smallest(
    candidates: Sequence[Candidate], guarantee: Callable[[Candidate], float], w1: float, what: str
) -> Candidate:
    """Return the smallest candidate whose guarantee is at most w1.

    A guarantee falls as candidates grow, but for bumps where the depth jumps. So a bisection finds the neighbourhood,
    and the candidates below it are tried one by one.

    Examples:
        >>> smallest([1, 2, 4, 8], lambda n: 1 / n, 0.3, "rows")
        4
    """
    if isinstance(w1, bool) or not isinstance(w1, int | float) or not w1 > 0:
        raise ArgumentError(f"w1 must be a number above 0, the W1 distance to guarantee, got {w1!r}.")
    near = bisect_left(candidates, True, key=lambda candidate: guarantee(candidate) <= w1)
    for candidate in candidates[max(0, near - BUMP) :]:
        if guarantee(candidate) <= w1:
            return candidate
    raise ArgumentError(
        f"No {what} up to {float(candidates[-1]):g} guarantees a W1 distance of {w1:g} on this domain. Ask for less, "
        f"use fewer columns, or give more {'rows' if what == 'epsilon' else 'epsilon'}."
    )

"""Numbers that keep floats harmless: room for rounding, and divisors that are never 0. None of them was tuned."""

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-9
"""Relative room for the rounding of sums and products of many doubles, each of which is wrong by about 1e-16.

So far two totals may differ that should be equal, a matrix may be from a metric, and a number above the whole one that
it stands for.
"""
LAST_DIGITS = 1e-12
"""Relative room for a few roundings in a row: what a logarithm or a quotient may be wrong by, and more."""
TINY = 1e-300
"""The least divisor: 0 over it is 0 and no warning, while anything that matters is far above. It is a normal double, as
is one over it."""


def inner(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the inner product of two vectors, with the same last digits on every processor.

    `a @ b` calls BLAS, which adds in an order that depends on the processor. If a mass lies between two integers, the
    last digit can decide how it is rounded, and the same key would give another release on another machine.

    Examples:
        >>> inner(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        11.0
    """
    return float((a * b).sum())

"""What a budget of rho promises in epsilon and delta, and back, certified: rho-zCDP, for those who may have a delta.

A mechanism is rho-zCDP if for every alpha > 1 the Renyi divergence of order alpha of its outputs on neighbouring tables
is at most alpha rho. Then, for every alpha > 1, it is (epsilon, delta)-DP with

    ln delta = (alpha - 1) (alpha rho - epsilon) + alpha ln(1 - 1/alpha) - ln(alpha - 1)

[CKS20, Proposition 12]. Any alpha is valid, the best one is best. So floats look for alpha, and decide nothing; what is
returned is computed with 40 decimal digits by `decimal`, whose logarithm is correctly rounded, and rounded outwards by
far more than the few operations can lose. Steps whose budgets depend on earlier releases may be added up as well, as
long as the sum cannot pass rho: docs/proofs/gaussian.md.
"""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

DIGITS = 40
"""Decimal digits of every operation ..."""
SPARE = Decimal("1e-25")
"""... and what is given away, relative to the largest term: a dozen operations lose less than 1e-37 of it."""
SHOWN = 6
"""Significant digits of what is returned, rounded to the safe side: short to print, the same everywhere."""
FINE = 40
"""How often the search for alpha halves its interval."""


@lru_cache(maxsize=4096)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho, nearly the largest, such that rho-zCDP implies (epsilon, delta)-DP.

    Guarantee:  privacy   the implication, certified

    Examples:
        >>> [float(largest_rho(Fraction(e), Fraction(1, 10**6))) for e in ("1/10", "1", "4")]
        [0.000321047, 0.0243559, 0.311064]
    """
    log_delta = _log_float(delta)

    def rho(u: float) -> float:
        return ((log_delta + _loss(u)) / u + float(epsilon)) / (1 + u)

    context = Context(prec=DIGITS)
    u, e = _best(lambda u: -rho(u)), _decimal(epsilon, context)
    alpha = context.add(1, u)
    log = context.add(context.ln(_decimal(delta, context)), _exact_loss(alpha, context))
    first = context.divide(log, u)
    least = context.subtract(context.add(first, e), context.multiply(max(context.abs(first), e), SPARE))
    return _rounded(context.divide(least, alpha), ROUND_FLOOR)


@lru_cache(maxsize=4096)
def smallest_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon, nearly the smallest, such that rho-zCDP implies (epsilon, delta)-DP.

    Guarantee:  privacy   the implication, certified

    Examples:
        >>> float(smallest_epsilon(Fraction(1, 40), Fraction(1, 10**6)))
        1.01408
    """
    log_delta = _log_float(delta)

    def epsilon(u: float) -> float:
        return (1 + u) * float(rho) - (log_delta + _loss(u)) / u

    context = Context(prec=DIGITS)
    alpha = context.add(1, _best(epsilon))
    log = context.add(context.ln(_decimal(delta, context)), _exact_loss(alpha, context))
    first, second = context.multiply(alpha, _decimal(rho, context)), context.divide(log, context.subtract(alpha, 1))
    most = context.add(context.subtract(first, second), context.multiply(max(first, context.abs(second)), SPARE))
    found = max(_rounded(most, ROUND_CEILING), Fraction(1, 10**SHOWN))
    while largest_rho(found, delta) < rho:  # the last digits of both roundings
        found += found / 10 ** (SHOWN - 1)
    return found


def _loss(u: float) -> float:
    """Return ln(alpha - 1) - alpha ln(1 - 1/alpha) for alpha = 1 + u, in floats."""
    return math.log(u) + (1 + u) * math.log1p(1 / u)


def _exact_loss(alpha: Decimal, context: Context) -> Decimal:
    """Return the same with all digits."""
    u = context.subtract(alpha, 1)
    return context.subtract(context.ln(u), context.multiply(alpha, context.ln(context.divide(u, alpha))))


def _best(value: Callable[[float], float]) -> Decimal:
    """Return alpha - 1 where a value is about least: to four digits, the same on every machine."""
    low, high = -20.0, 40.0  # of log2(alpha - 1)
    for _ in range(FINE):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if value(2.0**left) < value(2.0**right) else (left, high)
    return Decimal(f"{2.0 ** ((low + high) / 2):.4g}")


def _log_float(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)  # a float of x might be 0


def _decimal(x: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))


def _rounded(x: Decimal, rounding: str) -> Fraction:
    """Return a number with few digits, on the safe side; nothing where it is not positive."""
    return Fraction(Context(prec=SHOWN, rounding=rounding).plus(x)) if x > 0 else Fraction(0)

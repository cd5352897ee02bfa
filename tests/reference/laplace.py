"""Discrete Laplace noise, slowly: the sampler of Canonne, Kamath and Steinke, and the law itself to many digits.

Nothing here shares a method with the package: the sampler flips coins and counts, in integers; the law is computed by
the correctly rounded exponential of `decimal`.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import floor

Bits = Callable[[int], int]
"""Given k, k fresh random bits as an integer: `random.Random(seed).getrandbits`, or a script."""

GUARD = 20
"""Decimal digits given up to rounding; a few operations lose one or two."""


def cks_laplace(scale: Fraction, bits: Bits) -> int:
    """[CKS20] Algorithm 2, scale = t/s: a geometric variable of rate s/t with a random sign, -0 being drawn again."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = uniform(t, bits)
        if not bernoulli_exp(Fraction(u, t), bits):
            continue
        v = 0
        while bernoulli_exp(Fraction(1), bits):
            v += 1
        magnitude = (u + t * v) // s
        negative = bits(1) == 1
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def bernoulli_exp(x: Fraction, bits: Bits) -> bool:
    """[CKS20] Algorithm 1: true with probability exp(-x), 0 <= x <= 1, from exp(-x) = 1 - x + x^2/2 - ..."""
    k = 1
    while bernoulli(x / k, bits):
        k += 1
    return k % 2 == 1


def bernoulli(x: Fraction, bits: Bits) -> bool:
    """True with probability x, exactly."""
    return uniform(x.denominator, bits) < x.numerator


def uniform(n: int, bits: Bits) -> int:
    """One of 0, ..., n - 1, by rejection."""
    while True:
        candidate = bits((n - 1).bit_length()) if n > 1 else 0
        if candidate < n:
            return candidate


def power(scale: Fraction, k: int) -> Decimal:
    """p^k = exp(-k / scale), in the current context."""
    return (-Decimal(k) * scale.denominator / scale.numerator).exp()


def pmf(scale: Fraction, z: int, digits: int = 120) -> Decimal:
    """P(Z = z) = (1 - p) / (1 + p) p^|z|."""
    with localcontext() as context:
        context.prec = digits
        p = power(scale, 1)
        return (1 - p) / (1 + p) * power(scale, abs(z))


@lru_cache(maxsize=1 << 16)
def cdf(scale: Fraction, z: int, digits: int = 120) -> Decimal:
    """P(Z <= z), by the geometric series on the side where it is short."""
    with localcontext() as context:
        context.prec = digits
        p = power(scale, 1)
        return power(scale, -z) / (1 + p) if z < 0 else 1 - power(scale, z + 1) / (1 + p)


def share(scale: Fraction, first: int, last: int, whole: int, digits: int = 120) -> Decimal:
    """P(first <= Z <= last | first <= Z <= whole)."""
    with localcontext() as context:
        context.prec = digits
        before = cdf(scale, first - 1, digits)
        return (cdf(scale, last, digits) - before) / (cdf(scale, whole, digits) - before)


def binary_floor(x: Decimal, bits: int, digits: int = 120) -> int:
    """floor(2^bits x), or a failure where the digits given do not decide it."""
    exact, error = Fraction(x) * 2**bits, Fraction(2**bits, 10 ** (digits - GUARD))
    result = floor(exact)
    assert floor(exact - error) == floor(exact + error) == result, "more digits are needed"
    return result

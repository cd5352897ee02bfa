"""Discrete Gaussian noise, slowly: the sampler of Canonne, Kamath and Steinke, and the law itself to many digits.

Nothing here shares a method with the package: the sampler flips coins and counts, in integers; the law is computed by
the correctly rounded exponential of `decimal`.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import floor

from reference.laplace import Bits, bernoulli_exp, cks_laplace


def cks_gaussian(scale: Fraction, bits: Bits) -> int:
    """[CKS20] Algorithm 3: a discrete Laplace variable of scale t, kept with a chance that makes it Gaussian."""
    square, t = scale * scale, floor(scale) + 1
    while True:
        y = cks_laplace(Fraction(t), bits)
        if happens_exp((abs(y) - square / t) ** 2 / (2 * square), bits):
            return y


def happens_exp(x: Fraction, bits: Bits) -> bool:
    """True with probability exp(-x), x >= 0: e^-1 for every whole part."""
    while x > 1:
        if not bernoulli_exp(Fraction(1), bits):
            return False
        x -= 1
    return bernoulli_exp(x, bits)


def weight(scale: Fraction, z: int) -> Decimal:
    """exp(-z^2 / (2 scale^2)), in the current context."""
    x = z * z / (2 * scale * scale)
    return (-Decimal(x.numerator) / x.denominator).exp()


@lru_cache(maxsize=64)
def block_cdf(scale: Fraction, q: int, reach: int, digits: int = 120) -> list[Decimal]:
    """P(H <= h) for h = -reach, ..., reach - 1, H having the weight of the value of its block nearest to 0."""
    with localcontext() as context:
        context.prec = digits
        farthest = reach
        while weight(scale, q * farthest) > Decimal(10) ** -digits:
            farthest += max(1, reach // 8)
        weights = [weight(scale, q * h if h >= 0 else q * h + q - 1) for h in range(-farthest, farthest)]
        total, sums, below = sum(weights), [], Decimal(0)
        for h, w in zip(range(-farthest, farthest), weights, strict=True):
            below += w
            if -reach <= h < reach:
                sums.append(below / total)
        return sums

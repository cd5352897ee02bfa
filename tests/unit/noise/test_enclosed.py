"""What certified tables are computed from: intervals that hold the true chances, and are narrow.

The true values are computed with 90 decimal digits.
"""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from privmeasure.noise import gaussian, laplace
from privmeasure.noise.tables import Bracket, exp_minus, product

WORK = 72
SCALES = [(Fraction(1, 3), 1), (Fraction(5, 2), 1), (Fraction(40), 1), (Fraction(300), 4)]
"""Scales, and the blocks of values that a table looks up at them."""


def number(x: Fraction | int) -> Decimal:
    return Decimal(Fraction(x).numerator) / Decimal(Fraction(x).denominator)


def intervals_of(module, monkeypatch: pytest.MonkeyPatch, thresholds, *arguments) -> list[Bracket]:
    """The intervals that a table of thresholds is rounded from."""
    seen = []
    monkeypatch.setattr(module, "certified_floors", lambda intervals, bits: seen.extend(intervals(WORK)))
    thresholds(*arguments, 64)
    return seen


def check(found: list[Bracket], true: list[Decimal], width: int) -> None:
    assert len(found) == len(true)
    for (lower, upper), value in zip(found, true, strict=True):
        assert lower <= value * (1 << WORK) <= upper
        assert upper - lower <= width


@pytest.fixture(autouse=True)
def many_digits():
    with localcontext() as context:
        context.prec = 90
        yield


@pytest.mark.parametrize(("scale", "q"), SCALES)
def test_intervals_of_the_gaussian_table(scale, q, monkeypatch):
    """P(H <= h), H the block of q values that a draw lies in, by the weight of its value nearest to 0."""
    found = intervals_of(gaussian, monkeypatch, gaussian.thresholds, scale, q)
    reach = gaussian.reach(scale / q, 64)
    assert len(found) == 2 * reach
    weights = {}
    for h in range(-3 * reach, 3 * reach + 1):
        nearest = q * h if h >= 0 else -(q * h + q - 1)
        weights[h] = (-number(Fraction(nearest * nearest) / (2 * scale * scale))).exp()
    total, below, true = sum(weights.values()), Decimal(0), []
    for h in range(-3 * reach, reach):
        below += weights[h]
        if h >= -reach:
            true.append(below / total)
    check(found, true, 1 << 14)


@pytest.mark.parametrize(("scale", "q"), SCALES)
def test_intervals_of_the_laplace_tables(scale, q, monkeypatch):
    """P(H <= h) and P(R <= r) in closed form."""
    reach = 20
    p, base = (-number(1 / scale)).exp(), (-number(q / scale)).exp()
    high = intervals_of(laplace, monkeypatch, laplace.high_thresholds, scale, q, reach)
    left = [p * base ** (k - 1) / (1 + p) for k in range(reach, 0, -1)]
    right = [1 - base ** (h + 1) / (1 + p) for h in range(reach)]
    check(high, left + right, 1 << 8)
    low = intervals_of(laplace, monkeypatch, laplace.low_thresholds, scale, q)
    check(low, [(1 - p ** (r + 1)) / (1 - base) for r in range(q - 1)], 1 << 12)


@pytest.mark.parametrize(
    "x", [Fraction(1, 10**9), Fraction(1, 4), Fraction(1), Fraction(10, 3), Fraction(45), Fraction(400)]
)
def test_intervals_of_the_exponential(x):
    for work in (40, 64, 130):
        lower, upper = exp_minus(x, work)
        assert 0 <= lower <= (-number(x)).exp() * (1 << work) <= upper
        assert upper - lower <= 3


def test_intervals_of_products():
    one = 1 << 20
    for a, b in (((3, 5), (7, 9)), ((one // 3, one // 3 + 1), (one // 7, one // 7 + 1)), ((0, 1), (one, one))):
        lower, upper = product(a, b, 20)
        assert lower * one <= a[0] * b[0]
        assert a[1] * b[1] <= upper * one
        assert (upper - lower) * one <= a[1] * b[1] - a[0] * b[0] + 2 * one

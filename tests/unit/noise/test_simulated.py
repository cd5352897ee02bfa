"""Simulated noise, which certificates and plans rest on: its law, its sums, and the tails and limits beside it.

Statistical tests have a false-alarm rate of 1e-6, and their seeds are fixed.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privmeasure.errors import ArgumentError
from privmeasure.noise.law import (
    GAUSSIAN,
    LAPLACE,
    LARGEST_LISTED,
    LARGEST_SCALE,
    LARGEST_SUMMED,
    SMALLEST_SCALE,
    agreement_variance,
    check_scale,
    facts_of,
)

ALARM = 1e-6
SCALES = [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(LARGEST_LISTED), Fraction(50)]


def chances(law: str, scale: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Values and their chances, summed up from the definition of the law."""
    values = np.arange(-math.ceil(40 * scale) - 2, math.ceil(40 * scale) + 3)
    exponent = np.abs(values) / float(scale) if law == LAPLACE else values**2 / (2 * float(scale) ** 2)
    weights = np.exp(-exponent)
    return values, weights / weights.sum()


def fits(found: np.ndarray, values: np.ndarray, expected: np.ndarray) -> bool:
    """Whether draws have a law: by the numbers of draws in groups of values that are about equally likely."""
    groups = np.minimum((np.cumsum(expected) * 20).astype(int), 19)
    shares = np.bincount(groups, expected)
    counts = np.bincount(groups[found - values[0]], minlength=len(shares))
    there = shares > 0
    return stats.chisquare(counts[there], shares[there] * len(found)).pvalue > ALARM


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
def test_draws_have_the_law(law, scale):
    facts, rng = facts_of(law, scale), np.random.default_rng(1)
    found = facts.simulated(rng, 50_000)
    assert found.dtype == np.int64
    assert fits(found, *chances(law, scale))
    assert not fits(found, *chances(law, scale * Fraction(11, 10)))
    assert not fits(found + 1, *chances(law, scale)) or scale > 30


@pytest.mark.parametrize("terms", [2, 3, 64])
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
def test_sums_have_the_moments_of_the_sum(law, scale, terms):
    """Mean, variance and tails against sums of draws: both are simulated, independently."""
    facts, count = facts_of(law, scale), 20_000
    sums = facts.simulated(np.random.default_rng(2), count, terms=terms).astype(float)
    values, shares = chances(law, scale)
    variance = terms * (shares @ values**2)
    fourth = (terms * (shares @ values.astype(float) ** 4) + 3 * terms * (terms - 1) * (shares @ values**2) ** 2) ** 0.5
    assert len(sums) == count
    assert abs(sums.mean()) < 5 * math.sqrt(variance / count)
    assert abs((sums**2).mean() - variance) < 5 * math.sqrt((fourth**2 - variance**2) / count)
    one = facts.simulated(np.random.default_rng(3), terms * count).reshape(count, terms).sum(axis=1)
    assert stats.ks_2samp(sums, one).pvalue > ALARM


def test_rounded_normal_draws_have_the_variance_of_the_law():
    """From this scale on values are no longer listed: rounding adds 1/12, which is taken off before."""
    scale, count = LARGEST_LISTED, 2_000_000
    found = facts_of(GAUSSIAN, Fraction(scale)).simulated(np.random.default_rng(4), count).astype(float)
    assert abs((found**2).mean() / scale**2 - 1) < 5 * math.sqrt(2 / count)


@pytest.mark.parametrize("scale", [*SCALES, Fraction(300)], ids=str)
@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
def test_tails_limits_and_moments_are_those_of_the_law(law, scale):
    facts, (values, shares) = facts_of(law, scale), chances(law, scale)
    for size in (0, 1, 2, 3, math.ceil(scale), math.ceil(4 * scale)):
        assert facts.tail(size) == pytest.approx(shares[np.abs(values) >= size].sum(), rel=1e-9)
    for share in (0.9, 0.5, 0.05, 1e-4, 1e-9, float(shares[np.abs(values) > 1].sum()) * (1 + 1e-12)):
        limit = facts.limit(share)
        assert shares[np.abs(values) > limit].sum() <= share * (1 + 1e-9)
        assert limit == 0 or shares[np.abs(values) > limit - 1].sum() > share * (1 - 1e-9)
    assert shares @ np.abs(values) <= facts.size * (1 + 1e-12)
    variance = float(shares @ values**2)
    assert variance <= facts.variance * (1 + 1e-6)
    assert law == GAUSSIAN or variance == pytest.approx(facts.variance)


def test_beyond_what_is_summed_the_tail_is_a_bound():
    scale = Fraction(LARGEST_SUMMED + 1)
    facts = facts_of(GAUSSIAN, scale)
    for size in (1, 4000, 9000, 20_000):
        normal = 2 * stats.norm.sf(size / float(scale))
        assert normal <= facts.tail(size) <= 2 * stats.norm.sf((size - 1) / float(scale)) * (1 + 1e-9)
    for share in (0.5, 0.05, 1e-6):
        limit = facts.limit(share)
        assert facts.tail(limit + 1) <= share < facts.tail(limit)


@pytest.mark.parametrize("scale", [SMALLEST_SCALE, LARGEST_SCALE])
def test_the_ends_of_the_range_of_scales_are_inside(scale):
    check_scale(scale)
    for beyond in (SMALLEST_SCALE * Fraction(999, 1000), LARGEST_SCALE + 1):
        with pytest.raises(ArgumentError, match="scale"):
            check_scale(beyond)


@pytest.mark.parametrize("columns", [2, 3, 8, 17])
def test_the_variance_of_noise_on_sign_correlations_is_the_formula(columns):
    """2 s^2 (p + 1) (p + 2) / (d + 1), and 1/12 for the rounding."""
    pairs, scale = columns * (columns - 1) // 2, Fraction(7, 3)
    expected = 2 * Fraction(49, 9) * (pairs + 1) * (pairs + 2) / (columns + 1) + Fraction(1, 12)
    assert agreement_variance(pairs, scale, LAPLACE) == pytest.approx(float(expected), rel=1e-12)
    assert agreement_variance(pairs, scale, GAUSSIAN) == float(scale) ** 2
    assert agreement_variance(0, scale, LAPLACE) == agreement_variance(0, scale, GAUSSIAN) == 0.0

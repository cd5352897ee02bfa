"""The Gaussian noise has the law that it claims, and the test that says so can tell a wrong one.

Chi-square tests, as in test_noise_law.py: classes that expect at least 300 draws each.
"""

import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privmeasure.noise.entropy import Key
from privmeasure.noise.gaussian import discrete_gaussian
from privmeasure.noise.laplace import discrete_laplace
from reference.gaussian import cks_gaussian

ALPHA = 1e-6
"""The chance that a correct sampler fails one comparison of this file: small enough for fresh keys on every run."""

EXPECTED = 300
CLASSES = 200
SCALES = [Fraction(2, 5), Fraction(1), Fraction(20), Fraction(129), Fraction(1000)]

scales = pytest.mark.parametrize("scale", SCALES, ids=str)
wrong = pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(13, 10)], ids=str)
by_key = pytest.mark.parametrize("new_key", [lambda: Key.insecure(2024), Key.fresh], ids=["seed", "fresh"])


def draws(scale: Fraction, key: Key, size: int = 1 << 21, part: int = 0) -> np.ndarray:
    return discrete_gaussian(scale).draw(key, part=part, level=22, cells=np.arange(size, dtype=np.uint64))


def fit(noise: np.ndarray, scale: Fraction) -> float:
    """The p-value of a sample under N_Z(0, scale^2): classes of neighbouring values, each of about one chance."""
    values = np.arange(-int(12 * scale) - 5, int(12 * scale) + 6)
    weights = np.exp(-(values**2) / (2 * float(scale) ** 2))
    chances = weights / weights.sum()
    share = max(EXPECTED / len(noise) * 1.5, 1 / CLASSES)
    class_of, of, full = np.zeros(len(values), int), 0, 0.0
    for i, chance in enumerate(chances):
        class_of[i] = of
        full += chance
        if full >= share:
            of, full = of + 1, 0.0
    if full * len(noise) < EXPECTED:  # what is left joins the class before
        class_of = np.minimum(class_of, of - 1)
    expected = np.bincount(class_of, chances) * len(noise)
    assert len(expected) >= 3
    assert expected.min() >= EXPECTED
    place = np.clip(noise - values[0], 0, len(values) - 1)
    observed = np.bincount(class_of[place], minlength=len(expected))
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


@scales
@by_key
def test_the_noise_has_its_law(scale, new_key):
    assert fit(draws(scale, new_key()), scale) > ALPHA


@scales
@wrong
@by_key
def test_noise_of_another_scale_is_rejected(scale, factor, new_key):
    assert fit(draws(scale * factor, new_key()), scale) < ALPHA


@pytest.mark.parametrize("scale", SCALES[1:], ids=str)
@pytest.mark.parametrize("factor", [Fraction(98, 100), Fraction(102, 100)], ids=str)
def test_even_two_per_cent_are_noticed(scale, factor):
    assert fit(draws(scale * factor, Key.insecure(2024)), scale) < ALPHA


@scales
def test_laplace_noise_of_the_same_variance_is_rejected(scale):
    near = scale * Fraction(707, 1000)
    noise = discrete_laplace(near).draw(Key.insecure(1), part=0, level=0, cells=np.arange(1 << 20, dtype=np.uint64))
    assert fit(noise, scale) < ALPHA


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 7), Fraction(1), Fraction(20), Fraction(1000)], ids=str)
def test_the_twin_has_the_law_too(scale):
    bits = random.Random(f"twin {scale}").getrandbits
    twin = np.array([cks_gaussian(scale, bits) for _ in range(10_000)])
    assert fit(twin, scale) > ALPHA
    assert fit(twin, scale * Fraction(13, 10)) < ALPHA


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(1000)], ids=str)
def test_neighbouring_positions_are_independent(scale):
    """Signs and magnitudes of neighbouring cells, levels and parts fall together as often as chance has it."""
    key, size = Key.insecure(8), 1 << 20
    one, other = draws(scale, key, size), draws(scale, key, size, part=1)
    for a, b in ((one[:-1], one[1:]), (one, other)):
        rows, columns = (np.digitize(x, [-float(scale), 0.0, float(scale)]) for x in (a, b))
        table = np.bincount(4 * rows + columns, minlength=16).reshape(4, 4)
        assert stats.chi2_contingency(table).pvalue > ALPHA
    same = np.bincount(
        4 * np.digitize(one, [-float(scale), 0, float(scale)]) + np.digitize(one, [-float(scale), 0, float(scale)]),
        minlength=16,
    )
    assert stats.chi2_contingency(same.reshape(4, 4) + 1).pvalue < ALPHA

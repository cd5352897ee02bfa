"""The noise has the law that it claims, and the test that says so can tell a wrong one.

Every comparison is a chi-square test against exact probabilities or of independence. Values are joined to classes that
expect at least 300 draws each, so that the chi-square law holds far into its tail.
"""

import random
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from scipy import stats

from privmeasure.noise import laplace
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import DiscreteLaplace, discrete_laplace
from reference.laplace import cdf, cks_laplace

ALPHA = 1e-6
"""The chance that a correct sampler fails one comparison of this file: small enough for fresh keys on every run."""

EXPECTED = 300
CLASSES = 200
SCALES = [Fraction(1, 10), Fraction(1), Fraction(20), Fraction(1000)]

scales = pytest.mark.parametrize("scale", SCALES, ids=str)
wrong = pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(13, 10)], ids=str)
by_key = pytest.mark.parametrize("new_key", [lambda: Key.insecure(2024), Key.fresh], ids=["seed", "fresh"])


def enough(scale: Fraction) -> int:
    """At scale 1/10 a draw differs from 0 with probability 1e-4."""
    return 1 << 23 if scale < 1 else 1 << 21


def draws(scale: Fraction, key: Key, size: int, part: int = 0, level: int = 22) -> np.ndarray:
    cells = np.arange(size, dtype=np.uint64)
    return discrete_laplace(scale).draw(key, part=part, level=level, cells=cells)


def p_value(observed: np.ndarray, chances: np.ndarray) -> float:
    """Of the chi-square statistic of counts in classes of known probability."""
    expected = observed.sum() * chances
    assert abs(chances.sum() - 1) < 1e-9
    assert expected.min() >= EXPECTED * 0.99
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(chances) - 1))


@lru_cache
def classes(scale: Fraction, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The last value of each class but the last, and the probabilities.

    A class is closed at a share of 1 / CLASSES, or early where a value of that weight comes next, which stays alone.
    """
    limit = int(12 * scale) + 2
    values = np.unique(np.linspace(-limit, limit, 2001).round().astype(np.int64)).tolist()
    below = [float(cdf(scale, z, 30)) for z in values]
    above = [float(cdf(scale, -z - 1, 30)) for z in values]  # P(Z > z) by symmetry
    ends, chances, last = [], [], 0.0
    for i, z in enumerate(values[:-1]):
        full, next_is_heavy = below[i] - last >= 1 / CLASSES, below[i + 1] - below[i] >= 1 / CLASSES
        if (full or next_is_heavy) and min(below[i] - last, above[i]) * size >= EXPECTED:
            ends.append(z)
            chances.append(below[i] - last)
            last = below[i]
    return np.array(ends), np.array([*chances, 1 - last])


def fit(noise: np.ndarray, scale: Fraction) -> float:
    """The p-value of a sample under Lap_Z(scale)."""
    ends, chances = classes(scale, len(noise))
    assert len(chances) >= 3
    return p_value(np.bincount(np.searchsorted(ends, noise), minlength=len(chances)), chances)


# --- the law


@scales
@by_key
def test_the_noise_has_its_law(scale, new_key):
    assert fit(draws(scale, new_key(), enough(scale)), scale) > ALPHA


@scales
@wrong
@by_key
def test_noise_of_another_scale_is_rejected(scale, factor, new_key):
    assert fit(draws(scale * factor, new_key(), enough(scale)), scale) < ALPHA


@pytest.mark.parametrize("scale", SCALES[1:], ids=str)
@pytest.mark.parametrize("factor", [Fraction(98, 100), Fraction(102, 100)], ids=str)
def test_even_two_per_cent_are_noticed(scale, factor):
    assert fit(draws(scale * factor, Key.insecure(2024), 1 << 21), scale) < ALPHA


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(129), Fraction(1000003, 7), Fraction(10**6)], ids=str)
def test_the_noise_has_its_law_at_other_scales(scale):
    noise = draws(scale, Key.insecure(3), 1 << 20)
    if scale < Fraction(1, 20):
        assert not noise.any()  # another value has the chance 4e-22
    else:
        assert fit(noise, scale) > ALPHA
        assert fit(noise, scale * Fraction(7, 10)) < ALPHA
        assert fit(noise, scale * Fraction(13, 10)) < ALPHA


# --- the twin


def twin(scale: Fraction, size: int) -> np.ndarray:
    bits = random.Random(f"twin {scale}").getrandbits
    return np.array([cks_laplace(scale, bits) for _ in range(size)])


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 7), Fraction(1), Fraction(20), Fraction(1000)], ids=str)
def test_the_twin_has_the_law_too(scale):
    """Not at 1/10, where one draw in ten thousand differs from 0: it is too slow."""
    noise = twin(scale, 12_000)
    assert fit(noise, scale) > ALPHA
    assert fit(noise, scale * Fraction(7, 10)) < ALPHA
    assert fit(noise, scale * Fraction(13, 10)) < ALPHA


# --- rare branches, made common


@pytest.mark.parametrize(("scale", "largest"), [(Fraction(1), 128), (Fraction(20), 128), (Fraction(20), 4)], ids=str)
def test_the_tail_has_its_law(scale, largest, monkeypatch):
    """A table of one scale on either side leaves a third of all draws to the tail, some of them repeatedly."""
    monkeypatch.setattr(laplace, "TABLE_SCALES", 1)
    monkeypatch.setattr(laplace, "LARGEST_TABLE_SCALE", largest)
    law = DiscreteLaplace(scale)
    assert law.q == (8 if largest == 4 else 1)
    noise = law.draw(Key.insecure(4), part=0, level=16, cells=np.arange(1 << 15, dtype=np.uint64))
    assert np.mean(np.abs(noise // law.q) >= law.reach) > 0.05
    assert fit(noise, scale) > ALPHA
    assert fit(noise, scale * Fraction(7, 10)) < ALPHA
    assert fit(noise, scale * Fraction(13, 10)) < ALPHA


# --- independence


def joint_signs(one: np.ndarray, two: np.ndarray, scale: Fraction) -> float:
    """The p-value of the nine pairs of signs under independence and the exact law."""
    negative = float(cdf(scale, -1, 30))
    chances = np.array([negative, 1 - 2 * negative, negative])
    observed = np.bincount((3 * (np.sign(one) + 1) + np.sign(two) + 1).astype(np.int64), minlength=9)
    return p_value(observed, np.outer(chances, chances).ravel())


def joint_sizes(one: np.ndarray, two: np.ndarray, scale: Fraction) -> float:
    """The p-value of pairs of classes of |Z|: 0, small, medium, large."""
    ends = np.array([0, max(1, int(scale / 2)), max(2, int(scale))])
    inside = np.array([0.0] + [float(cdf(scale, int(z), 30) - cdf(scale, -int(z) - 1, 30)) for z in ends] + [1.0])
    chances = np.diff(inside)
    place = 4 * np.searchsorted(ends, np.abs(one)) + np.searchsorted(ends, np.abs(two))
    return p_value(np.bincount(place, minlength=16), np.outer(chances, chances).ravel())


def pairs(where: str, scale: Fraction, key: Key) -> tuple[np.ndarray, np.ndarray]:
    size = 1 << 20
    if where in ("attempts", "columns"):  # two words of one cell, which a draw may need both
        table, cells = discrete_laplace(scale).high, np.arange(size, dtype=np.uint64)
        words = [key.words(part=0, level=20, cells=cells, attempt=a) for a in (0, 1)]
        one, two = (words[0], 0), ((words[1], 0) if where == "attempts" else (words[0], 1))
        return table.look_up(*one)[0].astype(np.int64), table.look_up(*two)[0].astype(np.int64)
    here = draws(scale, key, size)
    if where == "levels":
        return here, draws(scale, key, size, level=23)
    if where == "parts":
        return here, draws(scale, key, size, part=1)
    if where == "parent and child":
        return here, draws(scale, key, 2 * size, level=23)[0::2]
    return here[0::2], here[1::2]  # disjoint, so that the pairs are independent of each other


WHERE = ["siblings", "levels", "parts", "parent and child", "attempts", "columns"]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(20)], ids=str)
@by_key
def test_noise_at_two_positions_is_independent(where, scale, new_key):
    one, two = pairs(where, scale, new_key())
    assert joint_signs(one, two, scale) > ALPHA
    assert joint_sizes(one, two, scale) > ALPHA


def test_dependence_is_noticed():
    """One pair in a hundred that shares its noise is enough."""
    scale = Fraction(20)
    one, two = pairs("levels", scale, Key.insecure(5))
    two[::100] = one[::100]
    assert joint_signs(one, two, scale) < ALPHA
    assert joint_sizes(one, two, scale) < ALPHA


# --- quotient and remainder


SPLIT = Fraction(520)
"""q = 8, and the scale of the quotient is 65, nearly the smallest: the remainder is as uneven as it gets."""


def remainder_fit(noise: np.ndarray, scale: Fraction, q: int) -> tuple[float, float]:
    """The p-values of the remainders given Z >= 0 and given Z < 0, each under its own law."""
    weights = np.array([float(cdf(scale, r, 30) - cdf(scale, r - 1, 30)) for r in range(q)])
    chances = weights / weights.sum()
    up, down = noise[noise >= 0] % q, q - 1 - noise[noise < 0] % q
    return p_value(np.bincount(up, minlength=q), chances), p_value(np.bincount(down, minlength=q), chances)


@by_key
def test_remainders_count_away_from_zero(new_key):
    q = discrete_laplace(SPLIT).q
    assert q == 8
    noise = draws(SPLIT, new_key(), 1 << 22)
    assert min(remainder_fit(noise, SPLIT, q)) > ALPHA
    quotient = noise // q
    backwards = quotient * q + (q - 1 - noise % q)
    assert max(remainder_fit(backwards, SPLIT, q)) < ALPHA


def independent(one: np.ndarray, two: np.ndarray, q: int) -> float:
    """The p-value of a contingency table."""
    table = np.bincount(one * q + two).reshape(-1, q)
    return float(stats.chi2_contingency(table).pvalue)


@by_key
@pytest.mark.parametrize("scale", [SPLIT, Fraction(1000)], ids=str)
def test_quotient_and_remainder_are_independent_given_the_sign(scale, new_key):
    q = discrete_laplace(scale).q
    noise = draws(scale, new_key(), 1 << 20)
    for side in (noise[noise >= 0], -1 - noise[noise < 0]):
        quotient, remainder = side // q, side % q
        group = np.searchsorted(np.quantile(quotient, np.arange(1, 16) / 16), quotient)
        assert independent(group, remainder, q) > ALPHA
        assert independent(quotient % 2, remainder, q) > ALPHA
        tied = np.where(np.arange(len(side)) % 20 == 0, group % q, remainder)  # one in twenty follows its quotient
        assert independent(group, tied, q) < ALPHA


def test_every_pair_of_quotient_and_remainder_has_its_chance():
    """Both digits together against the law of Z, on the thirty-two quotients around zero."""
    q = discrete_laplace(SPLIT).q
    noise = draws(SPLIT, Key.insecure(6), 1 << 22)
    near = noise[(noise >= -16 * q) & (noise < 16 * q)]
    weights = np.array([float(cdf(SPLIT, z, 30) - cdf(SPLIT, z - 1, 30)) for z in range(-16 * q, 16 * q)])
    observed = np.bincount(near + 16 * q, minlength=32 * q)
    assert p_value(observed, weights / weights.sum()) > ALPHA


def test_all_coordinates_at_once_give_one_sample_of_the_law():
    """Many short runs at many positions, as a release draws them."""
    scale, key = Fraction(20), Key.insecure(7)
    runs = [draws(scale, key, 512, part=p, level=j) for p, j in product(range(16), range(40))]
    assert fit(np.concatenate(runs), scale) > ALPHA

"""Exact normal deviates: their law, their digits, and what decides them.

Statistical tests have a false-alarm rate of 1e-6.
"""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from scipy import stats

from privmeasure.noise.entropy import Key
from privmeasure.noise.normal import TRIES, UNIT, WORD, Normals

ALARM = 1e-6


def values(deviates: Normals) -> np.ndarray:
    return (deviates.digits(1) / (UNIT << WORD)).astype(float)


def test_deviates_are_normal() -> None:
    found = values(Normals(Key.insecure(1), part=3, level=1, count=100_000))
    assert stats.kstest(found, "norm").pvalue > ALARM
    assert stats.kstest(found**2, stats.chi2(1).cdf).pvalue > ALARM
    assert stats.kstest(found * 1.05, "norm").pvalue < ALARM, "a scale that is 5 % off is seen"


@pytest.mark.parametrize("whole", [0, 40, 600, 1200])
def test_tries_are_kept_as_often_as_they_should_be(whole: int) -> None:
    """Whole and fraction are kept with the chance exp(-x), x = (2 K F + F^2) / (2 128^2), which is 1 at F = 0."""
    key, cells = Key.insecure(2), np.arange(100_000, dtype=np.uint64)
    deviates = Normals(key, part=0, level=1, count=1)
    words = key.words(part=0, level=2, cells=cells)
    kept = deviates._kept(np.full(len(cells), whole), words[:, 1] >> np.uint64(1), cells)
    fractions = words[:, 0] / 2.0**WORD
    chances = np.exp(-(2 * whole * fractions + fractions**2) / (2 * UNIT**2))
    spread = np.sqrt((chances * (1 - chances)).sum())
    assert abs(kept.sum() - chances.sum()) < stats.norm.isf(ALARM / 2) * spread
    if whole > 100:
        assert len(cells) - chances.sum() > 10 * spread, "to keep all of them would be seen"
    assert not deviates._kept(np.full(9, -1), np.zeros(9, np.uint64), cells[:9]).any()


def test_deviates_are_independent_of_their_number_and_of_each_other() -> None:
    key = Key.insecure(3)
    few, many = (Normals(key, part=5, level=1, count=count).digits(2) for count in (10, 1000))
    assert (few == many[:10]).all()
    other = Normals(key, part=5, level=3, count=1000).digits(2)
    assert not (other == many).any()
    one = values(Normals(key, part=6, level=1, count=100_000))
    assert abs(stats.pearsonr(one[:-1], one[1:]).statistic) < 5 / np.sqrt(len(one))


def test_more_digits_begin_with_fewer() -> None:
    deviates = Normals(Key.insecure(4), part=0, level=1, count=50)
    short, long = deviates.digits(1), deviates.digits(3)
    assert all(abs(b) >> 2 * WORD == abs(a) and a * b >= 0 for a, b in zip(short, long, strict=True))
    assert len({b & ((1 << 2 * WORD) - 1) for b in map(abs, long)}) == 50


class Played(Key):
    """A key whose words are a list for each column: what the test makes of them."""

    def __init__(self, fraction: list[int], coin: list[int]) -> None:
        super().__init__(bytes(32), private=False)
        self.columns, self.read = (fraction, coin), 0

    def words(self, *, part, level, cells, attempt=0):
        self.read = max(self.read, attempt + 1)
        return np.array([[column[attempt] for column in self.columns]] * len(cells), np.uint64)


def digits_of(x: Fraction, words: int) -> list[int]:
    whole = int(x * (1 << WORD * words))
    return [whole >> WORD * (words - 1 - i) & ((1 << WORD) - 1) for i in range(words)]


@pytest.mark.parametrize(("second", "kept"), [(0, True), ((1 << WORD) - 1, False)])
def test_a_coin_between_the_ends_of_a_fraction_takes_more_digits(second: int, kept: bool) -> None:
    """U lies between exp(-x) at both ends of what 64 digits say of F: the next word of F decides."""
    from privmeasure.noise.tables import exp_minus

    whole, first = 700, 1 << 62
    middle = Fraction((first << 1) + 1, 1 << WORD + 1)  # the middle of what 64 digits of F leave open
    x = (2 * whole * middle + middle**2) / (2 * UNIT**2)
    low, _ = exp_minus(x, 4 * WORD)
    coin = digits_of(Fraction(low, 1 << 4 * WORD), 4)  # of U; the first has 63 digits here
    bits = Fraction(low, 1 << 4 * WORD)
    head = int(bits * (1 << 63))
    tail = digits_of(bits * (1 << 63) - head, 3)
    key = Played([first, second, 5, 5], [0, *tail])
    deviates = object.__new__(Normals)
    deviates._key, deviates._part, deviates._level = key, 0, 1
    assert deviates._settled(whole, head, np.zeros(1, np.uint64)) is kept
    assert key.read >= 2
    assert abs(coin[0] / 2**64 - exp(-float(x))) < 1e-9


def test_tries_never_meet() -> None:
    deviates = Normals(Key.insecure(5), part=0, level=1, count=2000)
    assert (deviates._cells % TRIES == np.arange(2000)).all()
    assert 0.4 < np.mean(deviates._cells >= TRIES) < 0.6, "half of all draws are negative"

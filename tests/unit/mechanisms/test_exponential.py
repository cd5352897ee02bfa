"""The exponential mechanism by rejection: its law, its rare branches, its positions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from depth import some
from privmeasure.mechanisms import exponential
from privmeasure.mechanisms.exponential import POSITIONS, digit_chances, exponential_choice
from privmeasure.noise.entropy import Key
from privmeasure.noise.tables import exp_minus

ALPHA = 1e-6
"""The chance that a correct choice fails one comparison of this file."""
ROUNDS = 6_000


@pytest.fixture
def few_tries(monkeypatch):
    """Faster where there are few candidates, and more batches."""
    monkeypatch.setattr(exponential, "FIRST_TRIES", 16)


def chances_of(scores, scale) -> np.ndarray:
    weights = np.exp((np.array(scores, float) - max(scores)) / float(scale))
    return weights / weights.sum()


def p_value(scores, scale, wrong=None) -> float:
    key, scores = Key.insecure(3), np.array(scores)
    won = [exponential_choice(scores, scale=wrong or scale, key=key, round_=r, part=9) for r in range(ROUNDS)]
    expected = chances_of(scores.tolist(), scale) * ROUNDS
    few = expected < 50
    observed = np.bincount(won, minlength=len(scores)).astype(float)
    if few.sum() > 1:
        expected = np.append(expected[~few], expected[few].sum())
        observed = np.append(observed[~few], observed[few].sum())
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


@pytest.mark.usefixtures("few_tries")
@some("scale", 1, [Fraction(3), Fraction(1, 2), Fraction(100, 7)], ids=str)
@some("scores", 1, [[0, 1, 2, 5, 5], [-7, -3, -3, 0, 1, 2], list(range(12))])
def test_the_winner_has_its_law(scores, scale):
    assert p_value(scores, scale) > ALPHA


@pytest.mark.usefixtures("few_tries")
@some("factor", 1, [Fraction(7, 10), Fraction(13, 10)], ids=str)
def test_another_scale_is_rejected(factor):
    assert p_value([0, 1, 2, 5, 5], Fraction(3), wrong=Fraction(3) * factor) < ALPHA


def test_scores_far_apart_are_no_trouble():
    scores = np.array([-(2**61), 0, 2**61])
    assert exponential_choice(scores, scale=Fraction(10**6), key=Key.insecure(1), round_=0, part=0) == 2
    assert exponential_choice(np.array([5]), scale=Fraction(1), key=Key.insecure(1), round_=0, part=0) == 0


def test_thousands_of_candidates_and_one_good_one():
    scores = np.zeros(5000, np.int64)
    scores[1234] = 500
    won = [exponential_choice(scores, scale=Fraction(10), key=Key.insecure(1), round_=r, part=0) for r in range(20)]
    assert won == [1234] * 20


def test_rounds_have_words_of_their_own():
    scores, key = np.zeros(50, np.int64), Key.insecure(1)
    won = [exponential_choice(scores, scale=Fraction(1), key=key, round_=r, part=4) for r in range(600)]
    assert len(set(won[:300])) > 40
    assert won[:256] != won[256:512]
    assert won == [exponential_choice(scores, scale=Fraction(1), key=key, round_=r, part=4) for r in range(600)]


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1), Fraction(10**6)], ids=str)
def test_chances_of_digits_are_certified(scale):
    for digit, floor in enumerate(digit_chances(scale).tolist()):
        lower, upper = exp_minus(Fraction(1 << digit) / scale, 300)
        assert lower >> 236 == upper >> 236 == floor


class Script:
    """A key that gives prepared words by position and attempt; others say no."""

    def __init__(self, words: dict[tuple[int, int], int]) -> None:
        self.words_, self.read = words, []

    def words(self, *, part, level, cells, attempt=0):
        self.read += [(int(cell), attempt) for cell in cells if (int(cell), attempt) in self.words_]
        default = 2**64 - 1
        return np.array([[self.words_.get((int(cell), attempt), default), 0] for cell in cells], np.uint64)


def place(t: int, digit: int | None = None) -> int:
    return t * POSITIONS + (0 if digit is None else 1 + digit)


def test_a_word_that_equals_a_chance_is_decided_by_the_next(monkeypatch):
    """Candidate 0 has the gap 3 = 1 + 2: both events must happen."""
    monkeypatch.setattr(exponential, "FIRST_TRIES", 8)
    scale, scores = Fraction(2), np.array([0, 3])
    one, two = (exp_minus(Fraction(1 << digit) / scale, 128)[0] for digit in (0, 1))
    ones, first = 2**64 - 1, {(place(0), 0): 0, (place(1), 0): 1}  # candidate 0, then candidate 1
    for low, high, won in (
        ((one >> 64) - 1, (two >> 64) - 1, 0),
        ((one >> 64) + 1, (two >> 64) - 1, 1),
        ((one >> 64) - 1, (two >> 64) + 1, 1),
    ):
        words = first | {(place(0, 0), 0): low, (place(0, 1), 0): high}
        assert exponential_choice(scores, scale=scale, key=Script(words), round_=0, part=0) == won
    for second, won in (((one & ones) - 1, 0), ((one & ones) + 2, 1)):
        words = first | {(place(0, 0), 0): one >> 64, (place(0, 0), 1): second, (place(0, 1), 0): 0}
        assert exponential_choice(scores, scale=scale, key=Script(words), round_=0, part=0) == won


def test_words_that_would_favour_some_candidates_are_not_used(monkeypatch):
    """2^64 is no multiple of 3: the last word would make candidate 0 likelier than others."""
    monkeypatch.setattr(exponential, "FIRST_TRIES", 4)
    words = {(place(0), 0): 2**64 - 1, (place(1), 0): 2**64 - 2}
    assert (2**64 - 1) % 3 == 0
    assert exponential_choice(np.zeros(3, np.int64), scale=Fraction(1), key=Script(words), round_=0, part=0) == 2


def test_a_person_changes_the_law_by_no_more_than_its_price():
    """Renyi divergences of all orders, for scores that change by at most D in any directions: e^2 alpha / 8."""
    rng, scale, sensitivity = np.random.default_rng(0), 7.0, 2
    e, worst = 2 * sensitivity / scale, 0.0
    for _ in range(3000):
        scores = rng.integers(0, 30, rng.integers(2, 6))
        changed = scores + rng.integers(-sensitivity, sensitivity + 1, len(scores))
        p, q = chances_of(scores.tolist(), scale), chances_of(changed.tolist(), scale)
        for alpha in (1.01, 2.0, 10.0, 100.0):
            loss = math.log((p**alpha * q ** (1 - alpha)).sum()) / (alpha - 1)
            worst = max(worst, loss / (alpha * e**2 / 8))
    assert 0.9 < worst <= 1

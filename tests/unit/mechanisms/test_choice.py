"""The private choice: the law of its noise, its scores, its positions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privmeasure.mechanisms import choice
from privmeasure.mechanisms.choice import CANDIDATES, PART, noisy_max, one_sided, score, worth
from privmeasure.model.agreements import Agreements
from privmeasure.model.pairs import Pair
from privmeasure.model.unused import without_unused
from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import discrete_laplace
from privmeasure.privacy import Privacy

DRAWS = 40_000


def p_value(draws: np.ndarray, scale: float) -> float:
    """Chi-square of draws against P(Z = z) = (1 - p) p^z, in cells of at least 20 expected draws."""
    from scipy.stats import chi2

    p, last = math.exp(-1 / scale), int(scale * math.log(len(draws) / 40))
    chance = np.append((1 - p) * p ** np.arange(last), p**last)
    seen = np.bincount(np.minimum(draws, last), minlength=last + 1)
    return float(chi2.sf(((seen - len(draws) * chance) ** 2 / (len(draws) * chance)).sum(), last))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(41, 3), Fraction(1000, 7)])
def test_the_noise_is_geometric(scale):
    draws = one_sided(discrete_laplace(scale), DRAWS, key=Key.insecure(3), round_=0)
    assert draws.min() == 0
    assert p_value(draws, float(scale)) > 1e-6
    assert p_value(draws, 0.7 * float(scale)) < 1e-6
    assert p_value(draws, 1.3 * float(scale)) < 1e-6


def test_every_draw_has_a_position_of_its_own(monkeypatch):
    words, real = [], Key.words

    def recorded(self, *, part, level, cells, attempt=0):
        words.extend((part, level, int(cell), attempt) for cell in cells)
        return real(self, part=part, level=level, cells=cells, attempt=attempt)

    monkeypatch.setattr(Key, "words", recorded)
    key = Key.insecure(1)
    noise = [one_sided(discrete_laplace(Fraction(5)), 50, key=key, round_=r) for r in (0, 1, 255, 256, 511, 512)]
    assert len(words) == len(set(words))
    assert {part for part, *_ in words} == {PART}
    assert len({tuple(z.tolist()) for z in noise}) == 6
    assert max(cell // CANDIDATES % (1 << 16) for _, _, cell, _ in words) > 1, "some draws are below 0 and drawn again"


def test_the_scale_is_twice_the_sensitivity_over_epsilon(monkeypatch):
    scales = []
    monkeypatch.setattr(choice, "law_of", lambda name, scale: scales.append(scale) or law_of(name, scale))
    privacy = Privacy(1, "replace", rows_per_person=3)
    noisy_max(np.arange(3), privacy=privacy, budget=Fraction(1, 7), key=Key.insecure(1), round_=0)
    assert scales == [Fraction(84)]


def test_ties_go_to_the_first(monkeypatch):
    privacy = Privacy(1, "replace")
    monkeypatch.setattr(choice, "one_sided", lambda law, count, **_: np.zeros(count, np.int64))
    assert noisy_max(np.array([1, 5, 5, 5]), privacy=privacy, budget=Fraction(1), key=Key.insecure(1), round_=0) == 1


tables = st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=2, max_size=4)
expectations = st.lists(st.floats(0, 60), min_size=12, max_size=12)


def neighbour(true, cells, replaced):
    """The table to which one person adds rows in some cells, or moves them there from the next cell."""
    other = true.copy().ravel()
    for cell in cells:
        other[cell % true.size] += 1
        if replaced:
            other[(cell + 1) % true.size] -= 1
    return other.reshape(true.shape)


@given(tables, expectations, st.lists(st.integers(0, 11), min_size=1, max_size=4), st.booleans())
def test_a_person_changes_a_score_by_at_most_the_sensitivity(table, expected, cells, replaced):
    true = np.array(table, np.int64)
    expected = np.array(expected[: true.size]).reshape(true.shape)
    changed = abs(score(true, expected) - score(neighbour(true, cells, replaced), expected))
    assert changed <= len(cells) * (2 if replaced else 1)


@given(tables, expectations, st.lists(st.integers(0, 11), min_size=1, max_size=4), st.booleans(), st.floats(0, 9))
def test_a_person_changes_the_worth_of_a_table_by_at_most_the_sensitivity(table, expected, cells, replaced, noise):
    true = np.array(table, np.int64)
    expected = np.array(expected[: true.size]).reshape(true.shape)
    tables_of_both = true, neighbour(true, cells, replaced)
    one, two = (worth(counts, expected, noise, clear=2.0) for counts in tables_of_both)
    assert type(one) is int
    assert abs(one - two) <= len(cells) * (2 if replaced else 1)


def test_a_table_is_worth_what_is_clearly_off():
    true, expected = np.array([[50, 0], [1, 9]]), np.array([[2.0, 16.0], [1.0, 9.0]])
    told = (48 - round(10 + 0.8 * math.sqrt(2))) + (16 - round(10 + 0.8 * 4))
    assert worth(true, expected, 5.0, clear=2.0) == told - round(0.3 * math.exp(-2) * 5 * 4)
    assert worth(np.zeros((40, 40), np.int64), np.full((40, 40), 0.4), 5.0, clear=2.0) < 0


def test_rank_cells_that_nothing_tells_apart_are_one():
    ranks = [np.array([0, 0, 1, 2, 3, 3]), np.array([0, 1])]
    pair = Pair(0, 1, np.array([0, 0, 1, 1]), np.array([0, 1]), np.array([[5, 6], [7, 8]]), Fraction(1))
    halves = Agreements(((0, 1),), (np.array([0, 0, 0, 1]), np.array([0, 1])), np.array([3]), Fraction(1))
    nothing = [np.zeros(4, np.int64), np.zeros(2, np.int64)]
    fewer, (same,), agreements = without_unused(ranks, nothing, [pair], halves)
    assert [groups.tolist() for groups in fewer] == [[0, 0, 0, 1, 2, 2], [0, 1]]
    assert (same.first_groups.tolist(), same.second_groups.tolist()) == ([0, 1, 1], [0, 1])
    assert np.array_equal(same.noisy, pair.noisy)
    assert [half.tolist() for half in agreements.halves] == [[0, 0, 1], [0, 1]]
    fewer, (same,), agreements = without_unused(ranks, [np.array([0, 1, 0, 0]), nothing[1]], [pair], None)
    assert fewer[0].tolist() == [0, 0, 1, 2, 2, 2], "a fact tells the first two apart"
    assert same.first_groups.tolist() == [0, 0, 1]
    assert agreements is None


def test_a_score_is_a_whole_number_and_what_it_says():
    true, expected = np.array([[5, 0], [1, 9]]), np.array([[2.4, 2.6], [3.6, 6.4]])
    assert score(true, expected) == (3 + 3 + 3 + 3) - round(0.8 * float(np.sqrt(expected).sum()))
    assert type(score(true, expected)) is int
    assert score(np.array([[1]]), np.array([[0.1]])) == 1  # little is expected of a nearly empty cell

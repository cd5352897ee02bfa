"""Agreements: halves of columns, their exact sums, and what the model makes of noisy ones."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privmeasure.model.agreements import Agreements, agreement_of, surprising_tables, two_halves
from privmeasure.model.graph import Model
from privmeasure.model.pairs import Pair

TOTAL = 10_000
EVEN = np.full(4, TOTAL / 4)
HALVES = np.array([0, 0, 1, 1])


@given(arrays(np.float64, st.integers(2, 40), elements=st.floats(0, 1e6)), st.booleans())
def test_halves_are_two_and_about_equal(mass: np.ndarray, ordered: bool) -> None:
    halves = two_halves(mass, ordered=ordered)
    assert set(halves.tolist()) == {0, 1}
    if ordered:
        assert (np.diff(halves) >= 0).all()
    first = mass[halves == 0].sum()
    assert abs(first - mass.sum() / 2) <= mass.max() * (1 + 1e-9) + 1e-9


def test_one_cell_has_one_half() -> None:
    assert two_halves(np.array([3.0]), ordered=True).tolist() == [0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30))
def test_an_agreement_counts_rows_in_like_halves(rows: list[tuple[int, int]]) -> None:
    first, second = np.array([0, 1, 1, 0]), np.array([1, 0, 0])
    table = np.zeros((4, 3), np.int64)
    for i, j in rows:
        table[i, j] += 1
    assert agreement_of(table, first, second) == sum(1 if first[i] == second[j] else -1 for i, j in rows)


def noisy(values: dict[tuple[int, int], int], scale: Fraction = Fraction(1)) -> Agreements:
    return Agreements(tuple(values), (HALVES,) * 3, np.array(list(values.values())), scale)


def rows_of(model: Model) -> np.ndarray:
    return np.array([1 - 2 * HALVES[cells] for cells in model.sample(TOTAL, np.random.default_rng(1))])


def measured(first: int, second: int) -> Pair:
    """A table in which like cells go together."""
    table = np.full((4, 4), TOTAL // 80) + np.eye(4, dtype=np.int64) * TOTAL // 5
    return Pair(first, second, np.arange(4), np.arange(4), table, Fraction(1))


def test_rows_follow_agreements_that_no_table_tells() -> None:
    wanted = {(0, 1): 7500, (0, 2): 4000, (1, 2): 6000}
    tables = Model.of_pairs([EVEN] * 3, [measured(0, 1)], TOTAL)
    assert abs(rows_of(tables)[1] @ rows_of(tables)[2]) < 500
    rows = rows_of(Model.of_pairs([EVEN] * 3, [measured(0, 1)], TOTAL, agreements=noisy(wanted)))
    assert rows[0] @ rows[2] == pytest.approx(4000, abs=600)
    assert rows[1] @ rows[2] == pytest.approx(6000, abs=600)


def test_what_tables_tell_is_not_taken_for_independence() -> None:
    """The agreement of two ends follows from the tables along the path: it is no news, and changes nothing."""
    pairs = [measured(0, 1), measured(1, 2)]
    without = Model.of_pairs([EVEN] * 3, pairs, TOTAL)
    drawn = rows_of(without)
    values = {(i, j): int(drawn[i] @ drawn[j]) for i, j in ((0, 1), (0, 2), (1, 2))}
    assert values[0, 2] > 4000
    model = Model.of_pairs([EVEN] * 3, pairs, TOTAL, agreements=noisy(values))
    assert {(i, j) for i, j, _ in model.strengths()} == {(0, 1), (1, 2)}


def test_noise_is_not_followed() -> None:
    drawn = Model([EVEN] * 3, {}).sample(1 << 15, np.random.default_rng(0))
    loud = noisy({(0, 1): 900, (0, 2): -700, (1, 2): 400}, Fraction(500))
    assert surprising_tables(loud, [EVEN] * 3, drawn, ()) == {}
    clear = surprising_tables(noisy({(0, 1): 900}), [EVEN] * 3, drawn, ())
    table = clear[0, 1]
    assert table.sum(axis=0) == pytest.approx([TOTAL / 2] * 2)
    assert table.sum(axis=1) == pytest.approx([TOTAL / 2] * 2)
    assert np.trace(table) - np.trace(table[::-1]) == pytest.approx(900, rel=0.05)


@given(st.integers(-(2**61), 2**61), st.integers(1, 5))
def test_any_agreement_gives_a_possible_table(value: int, lowest: int) -> None:
    margins = [np.array([lowest, 0.0, 1.0, 3.0]), EVEN, np.array([0.0, 0.0, 1.0, 9.0])]
    drawn = [np.zeros(50, np.int32), np.zeros(50, np.int32), np.full(50, 3, np.int32)]
    for (i, j), table in surprising_tables(
        noisy({(0, 1): value, (0, 2): value, (1, 2): -value}), margins, drawn, ()
    ).items():
        assert (i, j) == (0, 1)  # the third column has all its mass in one half
        assert (table >= 0).all()
        assert np.isfinite(table).all()

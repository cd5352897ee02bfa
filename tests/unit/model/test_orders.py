"""Margins that an order allows, against linear programs, and the nearest table, against a slow twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.orders import nearest_table, without_place

from privmeasure.model.drawing import InsideGroups
from privmeasure.model.graph import Model
from privmeasure.model.orders import OrderMask, move_impossible, possible_margins
from privmeasure.model.pairs import rake_closely

masses = st.lists(st.integers(0, 20), min_size=1, max_size=6)


def staircase(edges: list[int], rows: int) -> np.ndarray:
    """Return a mask in which column j is allowed with the first edges[j] rows."""
    return np.arange(rows)[:, None] < np.array(edges)


@st.composite
def ordered_columns(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, OrderMask]:
    """Draw two columns of equal mass, in any order of their cells, each perhaps with a cell of missing values."""
    early, late = np.array(draw(masses), float), np.array(draw(masses), float)
    edges = draw(st.lists(st.integers(0, len(early)), min_size=len(late), max_size=len(late)))
    allowed = staircase(edges, len(early))
    free = np.zeros(len(early), bool), np.zeros(len(late), bool)
    for at, (own, axis) in enumerate(((early, 0), (late, 1))):
        if draw(st.booleans()):
            free[at][0] = True
            allowed[(0,) if axis == 0 else (slice(None), 0)] = True
            own[0] += 1
    early[-1], late[-1] = early[-1] + max(0, late.sum() - early.sum()), late[-1] + max(0, early.sum() - late.sum())
    rows, columns = np.random.default_rng(0).permutation(len(early)), np.random.default_rng(1).permutation(len(late))
    order = OrderMask(0, 1, allowed[np.ix_(rows, columns)], (free[0][rows], free[1][columns]))
    return early[rows], late[columns], order


@settings(max_examples=150, deadline=None)
@given(ordered_columns())
def test_just_the_mass_without_a_place_is_moved(drawn: tuple[np.ndarray, np.ndarray, OrderMask]) -> None:
    early, late, order = drawn
    excess = without_place(early, late, order.allowed)
    moved_early, moved_late = move_impossible(early, late, order)
    assert moved_early.min() >= -1e-9
    assert moved_late.min() >= -1e-9
    assert moved_early.sum() == pytest.approx(early.sum())
    assert moved_late.sum() == pytest.approx(late.sum())
    for column, moved, free in ((early, moved_early, order.free[0]), (late, moved_late, order.free[1])):
        assert (moved[free] == column[free]).all()  # missing values stay as they are
        assert np.abs(moved - column).sum() / 2 <= 2 * excess + 1e-9
    if order.allowed[~order.free[0]][:, ~order.free[1]].any():
        assert without_place(moved_early, moved_late, order.allowed) == pytest.approx(0, abs=1e-6)
    else:  # no value goes with any other: nothing can help
        assert (moved_early == early).all()


def test_half_of_it_moves_in_each_column_to_the_nearest_cells() -> None:
    order = OrderMask(0, 1, np.triu(np.ones((5, 5), bool)), (np.zeros(5, bool), np.zeros(5, bool)))
    early, late = move_impossible(np.array([1.0, 1, 1, 1, 6]), np.array([3.0, 1, 1, 1, 4]), order)
    assert early.tolist() == [2.0, 1, 1, 1, 5]
    assert late.tolist() == [2.0, 1, 1, 1, 5]


def test_margins_that_an_order_allows_stay() -> None:
    order = OrderMask(0, 1, np.triu(np.ones((3, 3), bool)), (np.zeros(3, bool), np.zeros(3, bool)))
    early, late = np.array([4.0, 3, 3]), np.array([2.0, 3, 5])
    assert [m.tolist() for m in possible_margins([early, late], [order])] == [early.tolist(), late.tolist()]


def test_chains_have_margins_that_all_their_orders_allow() -> None:
    rng, none = np.random.default_rng(0), (np.zeros(6, bool), np.zeros(6, bool))
    wide = np.triu(np.ones((6, 6), bool))
    orders = [OrderMask(*pair, wide, none) for pair in ((0, 1), (1, 2), (3, 2), (0, 3))]
    for _ in range(5):
        margins = possible_margins([1000 * rng.dirichlet(np.ones(6)) for _ in range(4)], orders)
        for order in orders:
            assert without_place(margins[order.early], margins[order.late], wide) < 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_the_table_is_the_nearest_one_with_these_margins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    allowed = np.triu(np.ones((6, 6), bool))
    model = rng.dirichlet(np.ones(36)).reshape(6, 6)
    rows, columns = move_impossible(
        rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6)), OrderMask(0, 1, allowed, (np.zeros(6, bool),) * 2)
    )
    table = rake_closely(model * allowed, rows, columns)
    assert np.abs(table.sum(axis=1) - rows).max() < 1e-3
    assert table == pytest.approx(nearest_table(model, rows, columns, allowed), abs=2e-3)


def test_rows_of_a_model_with_an_order_have_that_table_and_all_margins() -> None:
    rng = np.random.default_rng(3)
    rows, columns = np.array([30.0, 30, 25, 15]), np.array([15.0, 25, 25, 35])
    wide, groups = np.triu(np.ones((4, 4), bool)), np.arange(4)
    pair = 100 * rng.dirichlet(np.full(16, 2.0)).reshape(4, 4)
    third = np.array([40.0, 60.0])
    joined = 100 * rng.dirichlet(np.full(8, 1.0)).reshape(4, 2)
    model = Model(
        [rows, columns, third],
        {(0, 1): (pair, groups, groups), (1, 2): (joined, groups, np.arange(2))},
        disordered={(0, 1): ~wide},
    )
    drawn = model.sample(100_000, np.random.default_rng(0))
    counts = np.bincount(4 * drawn[0] + drawn[1], minlength=16).reshape(4, 4) / 1000
    assert counts == pytest.approx(nearest_table(pair, rows, columns, wide), abs=0.05)
    assert np.bincount(drawn[2]) / 1000 == pytest.approx(third, abs=0.01)
    assert (drawn[0] <= drawn[1]).all()


def test_cells_inside_groups_come_in_proportion_to_their_mass() -> None:
    groups = InsideGroups(np.array([1, 0, 0, 1, 0]), np.array([1.0, 3, 0, 3, 1]))
    assert np.bincount(groups.draw(np.zeros(40_000, int), np.random.default_rng(0)), minlength=5)[[1, 4]] == (
        pytest.approx([30_000, 10_000], abs=600)  # 6.9 deviations
    )
    assert set(groups.draw(np.ones(1000, int), np.random.default_rng(0)).tolist()) == {0, 3}

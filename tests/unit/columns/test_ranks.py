"""Ranks: groups of cells of about equal mass."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privmeasure.columns.ranks import merged, rank

MASSES = st.lists(st.integers(0, 50), min_size=1, max_size=64).map(np.array)


@settings(max_examples=200, deadline=None)
@given(MASSES, st.integers(1, 20), st.booleans(), st.data())
def test_laws_of_ranks(mass: np.ndarray, most: int, ordered: bool, data: st.DataObject) -> None:
    alone = data.draw(st.none() | st.integers(0, len(mass) - 1))
    groups = rank(mass, most, ordered=ordered, alone=alone)
    assert groups.dtype == np.int64
    assert groups.shape == mass.shape
    assert set(groups) == set(range(groups.max() + 1))
    assert groups.max() + 1 <= max(most, 3)  # one cell alone parts a single group in up to three
    if mass.any():
        assert (np.bincount(groups, weights=mass) > 0).all()
    if alone is not None and mass[alone] > 0:
        assert not mass[(groups == groups[alone]) & (np.arange(len(mass)) != alone)].any()
    if ordered and alone is None:
        assert (np.diff(groups) >= 0).all()


@settings(max_examples=100, deadline=None)
@given(MASSES, st.integers(4, 20), st.booleans(), st.data())
def test_sets_stay_apart(mass: np.ndarray, most: int, ordered: bool, data: st.DataObject) -> None:
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=len(mass), max_size=len(mass))))
    groups = rank(mass, most, ordered=ordered, apart=[inside])
    for group in range(groups.max() + 1):
        kinds = inside[(groups == group) & (mass > 0)]
        assert kinds.all() or not kinds.any()
    assert groups.max() + 1 <= most or not ordered or groups.max() < len(mass)


def test_many_even_cells_make_even_groups() -> None:
    groups = rank(np.full(1000, 7), 64, ordered=True)
    counts = np.bincount(groups)
    assert len(counts) == 64
    assert counts.max() - counts.min() <= 1


def test_heavy_categories_are_alone() -> None:
    mass = np.array([1000, 1, 1, 900, 1, 1, 1, 1])
    groups = rank(mass, 4, ordered=False)
    for heavy in (0, 3):
        assert (groups == groups[heavy]).sum() == 1


def test_few_cells_are_all_told_apart() -> None:
    assert rank(np.array([3, 0, 1, 2]), 8, ordered=True).tolist() == [0, 0, 1, 2]
    assert len(set(rank(np.array([3, 1, 2]), 3, ordered=False))) == 3


def test_merged_adds_up() -> None:
    rng = np.random.default_rng(0)
    table, rows, columns = rng.integers(-9, 9, (6, 8)), np.array([0, 1, 1, 2, 0, 2]), np.array([0, 0, 1, 1, 2, 2, 3, 3])
    slow = np.zeros((3, 4), np.int64)
    for i in range(6):
        for j in range(8):
            slow[rows[i], columns[j]] += table[i, j]
    assert np.array_equal(merged(table, rows, columns), slow)
    assert merged(table, rows, columns).dtype == table.dtype

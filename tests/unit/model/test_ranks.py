"""Ranks: groups of cells of about equal mass."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import examples
from privmeasure.model.ranks import Blocks, merge_groups, rank

CLEAR = 10.0
MASSES = st.lists(st.integers(0, 50), min_size=1, max_size=64).map(np.array)


@examples(50, 200)
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


@examples(30, 100)
@given(MASSES, st.integers(4, 20), st.booleans(), st.data())
def test_sets_stay_apart(mass: np.ndarray, most: int, ordered: bool, data: st.DataObject) -> None:
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=len(mass), max_size=len(mass))))
    groups = rank(mass, most, ordered=ordered, apart=[inside])
    for group in range(groups.max() + 1):
        kinds = inside[(groups == group) & (mass > 0)]
        assert kinds.all() or not kinds.any()
    assert groups.max() + 1 <= most or not ordered or groups.max() < len(mass)


@examples(50, 200)
@given(MASSES, st.integers(1, 20), st.integers(1, 5), st.floats(0.01, 100))
def test_a_block_is_cut_only_if_its_parts_are_heavy_and_clear(mass, most: int, shift: int, variance: float) -> None:
    blocks = np.arange(len(mass)) >> shift
    groups = rank(mass, most, ordered=True, blocks=Blocks(blocks, np.full(len(mass), variance), CLEAR))
    assert (np.diff(groups) >= 0).all()
    assert groups.max() + 1 <= most
    if most < np.count_nonzero(mass):
        for block in range(blocks.max() + 1):
            cells = (blocks == block) & (mass > 0)
            light = mass[cells].sum() < 1.5 * mass.sum() / most
            noise = CLEAR * np.sqrt(variance * (blocks == block).sum() / 2)
            hidden = mass[cells].sum() / 2 < noise * (1 - 1e-9)  # two parts of equal mass
            assert not ((light or hidden) and len(set(groups[cells])) > 1)


def test_cells_of_their_own_are_no_blocks() -> None:
    mass = np.random.default_rng(1).integers(0, 9, 200)
    alone = Blocks(np.arange(200), np.full(200, 5.0), CLEAR)
    assert (rank(mass, 20, ordered=True, blocks=alone) == rank(mass, 20, ordered=True)).all()


def test_clear_blocks_leave_as_many_groups_as_are_wanted() -> None:
    blocks = Blocks(np.arange(4096) >> 7, np.full(4096, 100.0), CLEAR)
    assert rank(np.full(4096, 1000), 64, ordered=True, blocks=blocks).max() + 1 == 64
    assert rank(np.full(4096, 5), 64, ordered=True, blocks=blocks).max() + 1 == 32
    assert rank(np.full(4096, 5), 64, ordered=True, blocks=replace(blocks, clear=1.0)).max() + 1 == 64


@pytest.mark.filterwarnings("error")
def test_floats_and_empty_blocks_are_quiet() -> None:
    mass = np.random.default_rng(0).random(12)
    mass[6:8] = 0
    blocks = Blocks(np.arange(12) // 2, np.zeros(12), CLEAR)
    assert rank(mass, 3, ordered=True, blocks=blocks).max() + 1 == 3


def test_whole_blocks_keep_the_precision_of_blocks() -> None:
    """Fine cells are noisy, blocks of 32 are exact: groups along blocks have the mass that the release says."""
    rng, cells, per_block = np.random.default_rng(5), 1024, 32
    blocks, errors = np.arange(cells) // per_block, {}
    true = rng.exponential(100, cells)
    released = np.maximum(true + rng.laplace(0, 60, cells), 0)
    released *= np.repeat(np.bincount(blocks, true) / np.bincount(blocks, released), per_block)
    for name, kept in (("cells", None), ("blocks", Blocks(blocks, np.full(cells, 2 * 60.0**2), CLEAR))):
        groups = rank(released, 20, ordered=True, blocks=kept)
        errors[name] = np.abs(np.bincount(groups, weights=released - true)).sum()
    assert errors["blocks"] < errors["cells"] / 2


def test_blocks_of_groups_begin_at_common_borders() -> None:
    cells = np.arange(12)
    groups, blocks = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4]), cells // 4
    found = Blocks(blocks, np.full(12, 2.0), CLEAR).of_groups(groups)
    assert found.of.tolist() == [0, 0, 0, 1, 1]
    assert found.variance.tolist() == [6, 4, 6, 4, 4]
    assert found.clear == CLEAR


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
    assert np.array_equal(merge_groups(table, rows, columns), slow)
    assert merge_groups(table, rows, columns).dtype == table.dtype

"""The space of a single column, and whole numbers cut at equal parts of their range."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmeasure.domains import Box, Categories, Finite, Integers, Nullable, Steps, from_json
from privmeasure.domains.traits import column_space, finest_level, is_ordered, missing_cell
from privmeasure.errors import ArgumentError
from privmeasure.testing import check_domain


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 0), (5, 6), (-3, 4), (0, 8), (0, 7), (0, 120), (-17, 200), (0, 2**20 - 1), (-7, 2 * 10**8), (0, 2**31 - 1)],
)
def test_steps_are_a_domain(low: int, high: int) -> None:
    check_domain(Steps(low, high))
    check_domain(Nullable(Steps(low, high)))


@settings(max_examples=60, deadline=None)
@given(st.integers(-1000, 1000), st.integers(0, 3000), st.integers(0, 14))
def test_cells_are_equal_bins_of_the_range(low: int, extent: int, level: int) -> None:
    space, values = Steps(low, low + extent), np.arange(low, low + extent + 1, dtype=np.float64)
    cells = space.locate(values[:, None], level)
    if 2**level <= extent:
        bins = np.minimum((values.astype(int) - low) * 2**level // extent, 2**level - 1)
        assert np.array_equal(cells, bins)
    else:
        assert len(np.unique(cells)) == extent + 1
    assert space.size(level) == len(np.unique(cells))
    widest = max(np.ptp(values[cells == cell]) for cell in np.unique(cells)) / max(extent, 1)
    assert space.diameter(level) == widest


def test_padded_integers_are_not_equal_bins() -> None:
    values = np.arange(121.0)[:, None]
    assert not np.array_equal(Integers(0, 120).locate(values, 5), Steps(0, 120).locate(values, 5))


def test_steps_in_a_file() -> None:
    assert from_json(Steps(3, 9).to_json()).to_json() == Steps(3, 9).to_json()
    with pytest.raises(ArgumentError, match="Use Integers"):
        Steps(0, 2**31)


def test_spaces() -> None:
    assert isinstance(column_space(Integers(0, 9)), Steps)
    assert type(column_space(Integers(0, 2**31))) is Integers
    assert type(column_space(Nullable(Integers(0, 2**20)), 2**20).domain) is Integers  # as in files of old
    assert repr(column_space(Nullable(Integers(0, 9)))) == "Nullable(Steps(0, 9))"
    box = Box([(0, 1)])
    assert column_space(box) is box


def test_order_and_missing() -> None:
    taxonomy = Categories(3, taxonomy=[(0.5, ["a", "a", "b"])])
    assert [is_ordered(s) for s in (Categories(3), Finite([[0, 1], [1, 0]]), Nullable(Categories(3)))] == [False] * 3
    assert [is_ordered(s) for s in (taxonomy, Box([(0, 1)]), Nullable(Steps(0, 9)))] == [True] * 3
    space = Nullable(Steps(0, 9))
    for level in range(1, 6):
        assert missing_cell(space, level) == space.locate(np.array([[np.nan]]), level)[0]
    assert missing_cell(space, 0) is None
    assert missing_cell(Steps(0, 9), 3) is None


def test_finest_level() -> None:
    assert [finest_level(s) for s in (Steps(0, 0), Steps(0, 1), Categories(5), Nullable(Categories(5)))] == [0, 1, 3, 4]
    assert finest_level(Box([(0, 1)])) == 40

"""The law of rows under a condition, where the order in which columns are drawn matters: a ring of pairs.

Seeds are fixed; tests reject at 1e-6.
"""

import numpy as np
import pytest
from scipy import stats

from privmeasure.conditions.sets import Condition
from privmeasure.domains import Categories, Points, Product
from privmeasure.mechanisms import ColumnTree
from privmeasure.model.graph import GroupedTable, Model
from privmeasure.noise.entropy import Key
from privmeasure.privacy import Privacy
from privmeasure.releases import rows
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.sources.arrays import ArraySource

NEAR = np.full((3, 3), 0.04) + 0.88 * np.eye(3)
"""Neighbours are mostly equal."""


def ring(sides: int, *, closed: bool) -> ColumnsMeasure:
    """Return columns that agree with the next, the last with the first but one step on: no row pleases all pairs."""
    data = np.repeat(np.arange(3.0), 1000)[:, None].repeat(sides, axis=1)
    domain = Product([Categories(3)] * sides)
    measure = ColumnTree(domain, Privacy(30, "replace")).release(ArraySource(data, width=sides), Key.insecure(0))
    order, one = np.arange(3), np.full(3, 1000.0)
    tables: dict[tuple[int, int], GroupedTable] = {
        (i, i + 1): (1000 * NEAR * (1 - 0.1 * i) + 100 * i / 3, order, order) for i in range(sides - 1)
    }
    if closed:
        tables[0, sides - 1] = 1000 * np.roll(NEAR, 1, axis=1), order, order
    vars(measure)["model"] = Model([one] * sides, tables)
    return measure


def p_value(one: Points, two: Points) -> float:
    """Return that of a chi-square test that rows of four columns have one law; rare combinations go together."""
    counts = np.array([np.bincount((r @ [27, 9, 3, 1]).astype(int), minlength=81) for r in (one, two)])
    few = counts.sum(axis=0) < 20
    counts = np.column_stack([counts[:, ~few], counts[:, few].sum(axis=1)])
    return float(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 0]).pvalue)


def filtered(measure: ColumnsMeasure, condition: Condition) -> Points:
    points = measure.sample(120_000, seed=1)
    return points[condition.holds(points[:, [condition.column]])]


@pytest.mark.parametrize("column", range(4))
def test_a_ring_has_the_law_of_rows_that_are_chosen(column: int, monkeypatch: pytest.MonkeyPatch) -> None:
    measure, condition = ring(4, closed=True), Condition(column, 0, ((2.0, 2.0),))
    chosen = filtered(measure, condition)
    assert p_value(chosen, measure.sample(40_000, seed=2, where=[condition])) > 1e-6
    assert measure.model.order() == [0, 1, 3, 2]
    assert [measure.model.same_law_from(j) for j in range(4)] == [True, False, False, False]
    monkeypatch.setattr(rows, "RAREST", 0)  # from the column on: the law of another order, but for one that begins 1, 0
    other = p_value(chosen, measure.sample(40_000, seed=2, where=[condition]))
    assert (other < 1e-6) == (column in (2, 3))


@pytest.mark.parametrize("column", range(4))
def test_a_path_has_one_law_from_all_ends(column: int) -> None:
    measure, condition = ring(4, closed=False), Condition(column, 0, ((0.0, 1.0),))
    assert all(measure.model.same_law_from(j) for j in range(4))
    chosen = filtered(measure, condition)
    assert p_value(chosen, measure.sample(40_000, seed=2, where=[condition])) > 1e-6


def test_rows_in_the_order_of_the_model_are_reproducible() -> None:
    measure, asked = ring(4, closed=True), [Condition(1, 0, ((2.0, 2.0),)), Condition(3, 0, ((0.0, 0.0),))]
    found = measure.sample(5000, seed=2, where=asked, threads=1)
    assert np.array_equal(found, measure.sample(5000, seed=2, where=asked, threads=2))
    assert (found[:, 1] == 2).all()
    assert (found[:, 3] == 0).all()
    assert len(measure.sample(1, seed=2, where=asked)) == 1


def test_among_may_keep_nothing() -> None:
    model = ring(4, closed=True).model
    for column in range(4):
        cells = model.among(column, 100, lambda cells: cells < 0, np.random.default_rng(0))
        assert [len(c) for c in cells] == [0] * 4

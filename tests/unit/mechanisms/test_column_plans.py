"""Wide tables: what the plan of the column tree says, and what its groups keep apart."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privmeasure.domains import Box, Categories, Integers, Nullable, Product, Sphere
from privmeasure.domains.traits import missing_cell
from privmeasure.errors import ArgumentError
from privmeasure.estimates.linear import noise_variance
from privmeasure.mechanisms import ColumnTree, pairs
from privmeasure.mechanisms.columns import _blocks
from privmeasure.noise.entropy import Key
from privmeasure.plans.column_schedule import is_listed, pair_cells
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource

SHORT = [Box([(0, 1)]), Integers(0, 100), Categories(6), Nullable(Categories(3))]
NUMBERS = [Box([(0, 1)]), Integers(0, 100), Box([(0, 5)]), Integers(0, 9)]
LISTED = [Box([(0, 1)]), Categories(300), Categories(20), Categories(1)]
RELATIONS = pytest.mark.parametrize("relation", ["replace", "add-remove"])


def test_missing_values_stay_in_a_group_of_their_own():
    """In every table, however few groups it has."""
    rng, rows = np.random.default_rng(3), 40_000
    x = rng.random((rows, 4)) * 100
    x[:, 1] = np.rint(x[:, 0])
    x[rng.random((rows, 4)) < 0.01] = np.nan
    factors = [Nullable(Box([(0, 100)])), Nullable(Integers(0, 100)), Nullable(Categories(80)), Categories(3)]
    tool = ColumnTree(Product(factors), Privacy(1, "add-remove"))
    measure = tool.release(ArraySource(x, width=4), Key.insecure(1))
    seen = 0
    for pair in measure.pairs:
        for j, groups in ((pair.first, pair.first_groups), (pair.second, pair.second_groups)):
            missing = missing_cell(tool.spaces[j], measure.columns[j].level)
            if missing is None:
                continue
            alone = measure.ranks[j][missing]
            assert (measure.ranks[j][measure.columns[j].cells.astype(int)] == alone).sum() == 1
            assert (groups == groups[alone]).sum() == 1
            seen += len(groups) > groups.max() + 1  # a table with fewer groups than rank cells
    assert seen


@RELATIONS
@pytest.mark.parametrize("factors", [SHORT, NUMBERS, LISTED], ids=["short", "numbers", "listed"])
def test_plans_hold_what_their_columns_need(factors, relation):
    tool = ColumnTree(Product(factors), Privacy(1, relation))
    plan = tool.plan(20_000)
    varied = [space for space in tool.spaces if space.size(space.deepest if space.deepest < 20 else 20) > 1]
    assert plan.list_room == (tool.tuning.list_room if any(map(is_listed, varied)) else 1)
    cells = pair_cells(varied, plan.pair_sides[0], tool.tuning, finer=plan.shape_budget > 0)
    assert plan.memory_bytes == 12 * cells + sum(column.memory_bytes for column in plan.columns)
    assert plan.rounds == (plan.tree_pairs + plan.extra_pairs if plan.round_budget else 0)
    assert plan.rows_are == "assumed"
    assert ColumnTree(Product(factors), Privacy(1, relation), rows=20_000).plan().rows_are == "public"
    assert ColumnTree(Product(factors), Privacy(1, relation), rows=20_000).plan(9).rows == 9
    assert plan.diameter == Product(factors).diameter(0)


def test_missing_values_of_a_list_stay_apart_from_values_that_no_table_distinguishes():
    """Where lists are long, rank cells that no measurement distinguishes become one."""
    rng, rows = np.random.default_rng(5), 4000
    x = np.column_stack([rng.integers(0, 300, rows), rng.integers(0, 2, (rows, 3))]).astype(float)
    x[rng.random((rows, 4)) < 0.3] = np.nan
    factors = [Nullable(Categories(300)), *[Nullable(Categories(2))] * 3]
    tool = ColumnTree(Product(factors), Privacy(Fraction(1, 2), "add-remove"))
    measure = tool.release(ArraySource(x, width=4), Key.insecure(2))
    assert measure.plan.shape_budget > 0
    column, ranks = measure.columns[0], measure.ranks[0]
    missing, cells = missing_cell(tool.spaces[0], column.level), column.cells.astype(int)
    assert ranks.max() + 1 < len(cells)
    assert (ranks[cells] == ranks[missing]).sum() == 1
    apart = tool._kept_apart(0, column, ranks)  # also where no table distinguishes them
    assert (apart == apart[ranks[missing]]).sum() == 1
    assert len(apart) == ranks.max() + 1


def test_coarse_cells_are_blocks_where_a_number_was_measured_at_two_levels():
    """Blocks of its finest cells, with the variance of their noise; none of a space of two coordinates."""
    factors = [Box([(0, 1)]), Sphere(), Categories(3), Categories(2)]
    x = np.random.default_rng(1).random((30_000, 5)) * [1, 90, 180, 3, 2]
    tool = ColumnTree(Product(factors), Privacy(2, "replace"))
    measure = tool.release(ArraySource(x, width=5), Key.insecure(1))
    assert tool.tuning.whole_blocks
    found = [_blocks(column, tool.tuning) for column in measure.columns]
    assert [blocks is not None for blocks in found] == [True, False, False, False]
    assert _blocks(measure.columns[0], replace(tool.tuning, whole_blocks=False)) is None
    column = measure.columns[0]
    coarse, fine = column.plan.levels[-2:]
    assert found[0].of.tolist() == [cell >> fine - coarse for cell in range(1 << column.level)]
    assert found[0].variance.tolist() == [noise_variance(column.plan.scales[-1])] * (1 << column.level)


def test_targets_are_numbers_of_factors():
    for targets in ((0,), (3,), (0, 3)):
        assert ColumnTree(Product(SHORT), Privacy(1, "replace"), targets=targets).targets == targets
    for targets in ((-1,), (4,), (0.5,), ("0",), (True,)):
        with pytest.raises(ArgumentError, match="targets"):
            ColumnTree(Product(SHORT), Privacy(1, "replace"), targets=targets)


@RELATIONS
@pytest.mark.parametrize("rows", [None, 3000])
def test_progress_and_the_number_of_rows(relation, rows):
    told, x = [], np.random.default_rng(0).random((3000, 4)) * [1, 100, 6, 3] // [1e-9, 1, 1, 1] * [1e-9, 1, 1, 1]
    tool = ColumnTree(Product(SHORT), Privacy(Fraction(2), relation), rows=rows)
    measure = tool.release(ArraySource(x, width=4), Key.insecure(1), lambda step, share: told.append((step, share)))
    assert told[-1] == ("release", 1.0)
    assert measure.plan.rows_are == ("public" if relation == "replace" else "released")
    assert all(column.plan.rows_are == measure.plan.rows_are for column in measure.columns)
    assert measure.plan.rows == 3000 or relation == "add-remove"
    assert abs(measure.plan.rows - 3000) < 300
    assert len(measure.pairs) == measure.plan.tree_pairs + measure.plan.extra_pairs
    assert measure.agreements is not None
    assert len(measure.agreements.noisy) == measure.plan.agreement_pairs > 0


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
def test_sign_correlations_carry_the_law_of_their_noise(delta):
    x = np.random.default_rng(0).random((3000, 4)) * [1, 100, 6, 3]
    tool = ColumnTree(Product(SHORT), Privacy(Fraction(2), "replace", delta=delta))
    measure = tool.release(ArraySource(x, width=4), Key.insecure(1))
    assert measure.agreements.law == measure.plan.law == tool.law
    assert measure.agreements.scale == measure.plan.agreement_scale


def test_choices_of_resolutions_cost_what_was_planned_for_all_pairs(monkeypatch):
    """Pairs without a choice leave their share to the others."""
    rng, rows, budgets = np.random.default_rng(5), 30_000, []
    code = np.minimum(rng.geometric(0.02, rows) - 1, 299)
    x = np.column_stack([code, code * 7 % 280, code * 11 % 290, rng.integers(0, 2, rows)]).astype(float)
    real = pairs.noisy_max

    def noisy_max(scores, *, privacy, budget, key, round_):
        budgets.append((round_, budget))
        return real(scores, privacy=privacy, budget=budget, key=key, round_=round_)

    monkeypatch.setattr(pairs, "noisy_max", noisy_max)
    factors = [Categories(300), Categories(280), Categories(290), Categories(2)]
    plan = ColumnTree(Product(factors), Privacy(2, "replace")).release(ArraySource(x, width=4), Key.insecure(2)).plan
    choices = [budget for round_, budget in budgets if round_ >= plan.rounds]
    assert len(choices) > 1
    assert 0 < sum(choices) <= plan.shape_budget * (plan.tree_pairs + plan.extra_pairs)

"""The plan of the column tree: budgets that add up, what is refused in a file, what it says."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import examples
from privmeasure.domains import Box, Categories, Integers, Nullable, Product, Sphere
from privmeasure.domains.traits import finest_level
from privmeasure.errors import ArgumentError, PrivmeasureError, ReleaseFileError
from privmeasure.estimates.linear import noise_variance
from privmeasure.mechanisms import ColumnTree, tree
from privmeasure.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from privmeasure.plans import columns as column_plan
from privmeasure.plans.columns import DEEPEST_COLUMN, ColumnPlan, table_weight, uneven
from privmeasure.plans.tuning import TUNED
from privmeasure.privacy import Privacy
from privmeasure.releases import files

FACTORS = [
    Box([(0, 1)]),
    Integers(0, 9),
    Integers(-500, 10**5),
    Categories(2),
    Categories(40),
    Categories(1),
    Nullable(Categories(3)),
    Nullable(Box([(0, 1)])),
    Sphere(),
    Box([(0, 1)] * 2),
]


def example(epsilon=1, neighbours="add-remove", rows=50_000) -> ColumnPlan:
    return ColumnTree(Product(FACTORS[:7]), Privacy(epsilon, neighbours)).plan(rows)


@given(
    st.lists(st.sampled_from(FACTORS), min_size=1, max_size=8),
    st.fractions(Fraction(1, 50), 50, max_denominator=10**6),
    st.sampled_from(["add-remove", "replace"]),
    st.integers(1, 3),
    st.integers(1, 10**9),
    st.one_of(st.none(), st.integers(1, 10**7)),
)
def test_budgets_add_up_exactly_and_scales_are_within_reach(factors, epsilon, neighbours, people, rows, public):
    privacy = Privacy(epsilon, neighbours, people)
    plan = ColumnTree(Product(factors), privacy, rows=public).plan(rows)
    constant = all(factor.size(1) == 1 for factor in factors)
    assert plan.spent == (0 if constant and neighbours == "replace" else epsilon)
    scales = [plan.selection_scale, plan.tree_scale, plan.extra_scale]
    scales += [scale for column in plan.columns for scale in column.scales]
    assert all(SMALLEST_SCALE <= scale <= LARGEST_SCALE for scale in scales if scale)
    for column in plan.columns:
        if column.levels:
            assert column.spent == column.privacy.epsilon
        assert column.guarantee <= column.diameter
    assert ColumnPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_it_speaks_plainly():
    text = str(example())
    assert "nothing is promised for the joint distribution" in text
    assert "for other pairs nothing is promised" in " ".join(text.split())
    assert "a private tree of columns: 6 in all" in text
    assert "and 1 with a single value, which costs nothing" in text
    assert "measured   columns: 6 " in text
    assert example().vacuous
    assert example().guarantee == example().diameter
    assert "the number of rows" not in str(example(neighbours="replace"))


def test_few_rows_buy_fewer_pairs_than_a_tree_has():
    """Nine columns: two fifths of them, then a pair for each 140 rows a noise scale, a tree, and pairs beyond it."""
    tool = ColumnTree(Product([Categories(5)] * 9), Privacy(1, "replace"))
    plans = [tool.plan(rows) for rows in (1, *range(1000, 30_000, 1000), 100_000)]
    pairs = [plan.tree_pairs for plan in plans]
    assert pairs == sorted(pairs)
    assert set(pairs) == {4, 5, 6, 7, 8}
    assert [plan.parts for plan in plans] == [9 - tree for tree in pairs]
    assert "5 groups are independent" in str(plans[0])
    assert "independent" not in str(plans[-1])
    assert plans[-1].extra_pairs > 0
    for plan in plans:
        assert plan.tree_pairs == 8 or plan.extra_pairs == 0
        assert plan.tree_pairs == 4 or plan.rows / plan.tree_scale >= TUNED.pair_rows


@pytest.mark.parametrize(("k", "pairs"), [(2, 1), (3, 2), (4, 3), (5, 3)])
def test_narrow_tables_are_joined_whatever_the_rows(k, pairs):
    assert ColumnTree(Product([Categories(5)] * k), Privacy(1, "replace")).plan(1).tree_pairs == pairs


@pytest.mark.parametrize("epsilon", [Fraction(1, 3000), Fraction(1, 2000), 50])
def test_what_is_in_reach_with_few_and_many_rows_is_in_reach_between(epsilon):
    tool = ColumnTree(Product(FACTORS), Privacy(epsilon, "add-remove"))
    for power in range(53):
        plan = tool.plan(1 << power)
        scales = [plan.selection_scale, plan.tree_scale, plan.extra_scale, plan.agreement_scale]
        assert all(SMALLEST_SCALE <= scale <= LARGEST_SCALE for scale in scales if scale)
        assert plan.spent == epsilon


def test_the_columns_promise_more_with_more_rows():
    few, many = example(rows=2000), example(rows=200_000)
    assert all(a.guarantee >= b.guarantee for a, b in zip(few.columns, many.columns, strict=True))
    assert few.extra_pairs < many.extra_pairs
    assert few.pair_error[0] / few.pair_cells[0] > many.pair_error[0] / many.pair_cells[0] > 0
    assert few.pair_error[1] == 0, "there is no extra pair"


@pytest.mark.parametrize("people", [1, 2])
def test_the_error_of_a_pair_is_that_of_its_noise_and_of_the_number_of_rows(people):
    for neighbours in ("add-remove", "replace"):
        tool = ColumnTree(Product(FACTORS[:7]), Privacy(1, neighbours, people))
        plan = tool.plan(50_000)
        assert (plan.rows_error > 0.5) == (neighbours == "add-remove")
        for kind, scale in enumerate((plan.tree_scale, plan.extra_scale)):
            usual, finer = plan.pair_cells[kind], plan.finer_cells[kind]
            assert finer == 0 or plan.shape_budget > 0
            for cells, error in ((usual, plan.pair_error), (finer, plan.finer_error)):
                larger = (max(usual, finer) / max(cells, 1)) ** plan.pair_power
                noise = 1.004 * 2 ** (plan.pair_power / 2) * larger * cells * float(scale)
                rows = (noise + plan.rows_error) / 2 if cells else 0
                assert error[kind] == pytest.approx(float(rows / plan.rows), rel=1e-12)


@examples(30, 100)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=30), st.floats(0, 0.9), st.sampled_from(["0", "1/1000000"]))
def test_pairs_share_their_budget_by_cells(cells, power, delta):
    """No more is spent than what the pairs have together, and no table has more noise than `pair_error` says."""
    privacy = Privacy(1, "replace", delta=Fraction(delta))
    plan, mean = replace(example(rows=2000), privacy=privacy, pair_power=power), privacy.budget / 100
    scales = plan.pair_scales(mean, cells)
    weights = [table_weight(size, power) for size in cells]
    budgets = [mean * len(cells) * weight / sum(weights) for weight in weights]
    assert sum(budgets) == len(cells) * mean
    assert scales == [privacy.scale(budget) for budget in budgets]
    for size, scale in zip(cells, scales, strict=True):
        assert size * scale <= uneven(power, len(cells), max(cells) / size) * size * privacy.scale(mean)
        assert size * scale <= uneven(power, len(cells)) * max(cells) * privacy.scale(mean)
    assert [scale for _, scale in sorted(zip(cells, scales, strict=True))] == sorted(scales, reverse=True)


def test_the_number_of_rows_is_what_the_size_and_the_column_say_together():
    plan = ColumnTree(Product([Categories(2)]), Privacy(1, "add-remove")).plan(50_000)
    size, total = noise_variance(1 / plan.size_budget), 2 * noise_variance(plan.columns[0].scales[0])
    assert plan.rows_error == pytest.approx((1 / size + 1 / total) ** -0.5 + 0.5)


def test_a_pair_of_few_values_has_few_cells():
    plan = ColumnTree(Product([Categories(2), Categories(3), Categories(1)]), Privacy(1, "replace")).plan(10**6)
    assert plan.pair_sides[0] > 3
    assert plan.pair_cells == (6, 0)
    assert plan.pair_error == (pytest.approx(float(6 * plan.tree_scale / (2 * plan.rows))), 0)


def steep(steps: int) -> Categories:
    """Values of which each is in a group with all that come before it: a taxonomy of as many levels."""
    groups = [(i / steps, [0] * (i + 1) + [*range(1, steps - i + 1)]) for i in range(1, steps)]
    return Categories(steps + 1, taxonomy=groups)


@pytest.mark.parametrize("wrapped", [False, True], ids=["", "with missing values"])
def test_a_column_that_a_file_could_not_hold_is_refused_before_anything_is_spent(wrapped):
    """Few values may need deep trees; the cells are only counted here, never made."""
    for depth in (DEEPEST_COLUMN, DEEPEST_COLUMN + 1):
        space = Nullable(steep(depth - 1)) if wrapped else steep(depth)
        assert finest_level(space) == depth
        factors = Product([Categories(2), space])
        if depth == DEEPEST_COLUMN:
            assert ColumnTree(factors, Privacy(1, "replace")).plan(100).columns[1].depth == depth
        else:
            with pytest.raises(ArgumentError, match=r"column 1 .*level 23, expected at most 22.* flatter taxonomy"):
                ColumnTree(factors, Privacy(1, "replace"))


def test_more_cells_than_a_file_lists_are_refused(monkeypatch):
    factors = Product([Categories(1000), Categories(1000)])  # each is listed twice: masses, and one noisy level
    monkeypatch.setattr(column_plan, "MOST_LISTED", 4000)
    plan = ColumnTree(factors, Privacy(1, "replace")).plan(100)
    monkeypatch.setattr(column_plan, "MOST_LISTED", 3999)
    with pytest.raises(ArgumentError, match="4,000 cells to list, expected at most 3,999"):
        ColumnTree(factors, Privacy(1, "replace"))
    with pytest.raises(ReleaseFileError, match="can be held"):
        ColumnPlan.from_json(plan.to_json())


def test_a_file_with_a_deep_column_is_refused():
    plan = ColumnTree(Product([Categories(2), steep(DEEPEST_COLUMN)]), Privacy(1, "replace")).plan(100)
    value = plan.to_json()
    value["columns"][1] |= {"depth": DEEPEST_COLUMN + 1, "levels": [DEEPEST_COLUMN + 1]}
    with pytest.raises(ReleaseFileError, match="can be held"):
        ColumnPlan.from_json(value)


def test_what_is_planned_is_what_a_file_may_hold():
    assert DEEPEST_COLUMN == files.DEEPEST_NOISY
    assert 1 << DEEPEST_COLUMN <= tree.MOST_KEPT, "noisy counts stay with every release of columns"
    assert column_plan.MOST_LISTED <= files.LARGEST_ROWS


def edits():
    return {
        "more than epsilon": {"tree_budget": "3/4"},
        "a free round": {"round_budget": "0"},
        "more pairs than columns": {"tree_pairs": 9},
        "extra pairs beyond no tree": {"tree_pairs": 4, "extra_pairs": example().extra_pairs + 1},
        "no pair at all": {"tree_pairs": 0, "tree_budget": "0"},
        "another mechanism": {"mechanism": "pmm"},
        "text for rows": {"rows": "12"},
        "no rows": {"rows": 0},
        "an unknown origin": {"rows_are": "guessed"},
        "endless": {"diameter": float("inf")},
        "three kinds of pairs": {"pair_sides": [1, 2, 3]},
        "a negative number": {"extra_pairs": -1},
        "no columns": {"columns": []},
        "a float": {"pair_sides": [2.5, 2]},
        "another promise": {"privacy": Privacy(1, "add-remove", 2).to_json()},
        "a size that is public": {"privacy": Privacy(1, "replace").to_json()},
    }


@pytest.mark.parametrize("edit", edits().values(), ids=edits())
def test_an_edited_file_is_refused(edit):
    with pytest.raises(ReleaseFileError):
        ColumnPlan.from_json(example().to_json() | edit)


def test_unknown_fields_are_no_plan():
    value = example().to_json()
    with pytest.raises(ReleaseFileError, match="unknown field 'surprise'"):
        ColumnPlan.from_json(value | {"surprise": 1})
    value["columns"][0]["bounds"][0] |= {"surprise": 1}
    with pytest.raises(ReleaseFileError, match="unknown field 'surprise'"):
        ColumnPlan.from_json(value)


def test_a_column_of_the_plan_must_fit_it():
    plan = example()
    other = replace(plan.columns[0], rows=plan.rows + 1)
    with pytest.raises(ReleaseFileError):
        ColumnPlan.from_json(replace(plan, columns=(other, *plan.columns[1:])).to_json())


@pytest.mark.parametrize("epsilon", ["1/1000000", "1/10000000"])
def test_an_epsilon_out_of_reach_is_refused_at_once(epsilon):
    with pytest.raises(PrivmeasureError, match="noise scale"):
        ColumnTree(Product(FACTORS), Privacy(epsilon, "add-remove"))


def test_a_small_epsilon_measures_fewer_levels():
    for epsilon, levels in ((Fraction(1, 1000), 2), (Fraction(1, 40_000), 1)):
        plan = ColumnTree(Product([FACTORS[0], FACTORS[2]]), Privacy(epsilon, "replace")).plan(10**12)
        assert all(len(column.levels) == levels for column in plan.columns)
        assert plan.spent == epsilon

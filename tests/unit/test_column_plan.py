"""The plan of the column tree: budgets that add up, what is refused in a file, what it says."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privmeasure.column_plan import ColumnPlan
from privmeasure.domains import Box, Categories, Integers, Nullable, Product, Sphere
from privmeasure.errors import PrivmeasureError, ReleaseFileError
from privmeasure.mechanisms import ColumnTree
from privmeasure.noise.laplace import LARGEST_SCALE, SMALLEST_SCALE
from privmeasure.privacy import Privacy

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
    assert "for other pairs nothing is promised" in text
    assert "columns: 7" in text
    assert example().vacuous
    assert example().guarantee == example().diameter
    assert "the number of rows" not in str(example(neighbours="replace"))


def test_the_columns_promise_more_with_more_rows():
    few, many = example(rows=2000), example(rows=200_000)
    assert all(a.guarantee >= b.guarantee for a, b in zip(few.columns, many.columns, strict=True))
    assert few.extra_pairs < many.extra_pairs
    assert few.pair_error[0] <= 1


def edits():
    return {
        "more than epsilon": {"tree_budget": "3/4"},
        "a free round": {"round_budget": "0"},
        "more pairs than columns": {"tree_pairs": 9},
        "another mechanism": {"mechanism": "pmm"},
        "text for rows": {"rows": "12"},
        "no rows": {"rows": 0},
        "an unknown origin": {"rows_are": "guessed"},
        "endless": {"diameter": float("inf")},
        "three kinds of pairs": {"pair_cells": [1, 2, 3]},
        "a negative number": {"extra_pairs": -1},
        "no columns": {"columns": []},
        "a float": {"rank_cells": 2.5},
        "another promise": {"privacy": Privacy(1, "add-remove", 2).to_json()},
        "a size that is public": {"privacy": Privacy(1, "replace").to_json()},
    }


@pytest.mark.parametrize("edit", edits().values(), ids=edits())
def test_an_edited_file_is_refused(edit):
    with pytest.raises(ReleaseFileError):
        ColumnPlan.from_json(example().to_json() | edit)


def test_unknown_fields_are_no_plan():
    with pytest.raises(TypeError):
        ColumnPlan.from_json(example().to_json() | {"surprise": 1})


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

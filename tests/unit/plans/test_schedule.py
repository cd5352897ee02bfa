"""Which levels are measured, what each costs, and how deep the tree is."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest

from depth import some
from privmeasure import PMM, Box, Privacy, Recipe
from privmeasure.domains import Categories, Integers
from privmeasure.plans.schedule import (
    DEEPEST_DEPTH,
    ROOT_SHARE,
    STEP,
    choose_depth,
    level_weights,
    paper_depth,
    sparse_levels,
    split_budget,
    useful_depth,
)

DOMAINS = {
    "d=1": Box([(0, 1)]),
    "d=2": Box([(0, 1)] * 2),
    "d=3": Box([(0, 1)] * 3),
    "d=5": Box([(0, 1)] * 5),
    "d=64": Box([(0, 1)] * 64),
    "weights": Box([(0, 1)] * 3, weights=[1, 2, 16]),
    "ages": Integers(0, 120),
    "categories": Categories(50),
}
EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(3), Fraction(10)]


@pytest.mark.parametrize("name", DOMAINS)
@some("depth", 5, range(1, 26))
def test_sparse_levels(name, depth):
    """From the leaves up: the next level 4 or more above the last where the diameter drops."""
    domain = DOMAINS[name]
    levels = sparse_levels(domain, depth)
    assert levels == sorted(set(levels))
    assert levels[-1] == depth
    assert min(levels) >= 1
    expected, last = [depth], depth
    while above := [j for j in range(1, last - 3) if domain.diameter(j) < domain.diameter(j - 1)]:
        last = max(above)
        expected.append(last)
    # a level within 4 of the root may be left out
    assert set(levels) - {1, 2, 3} == set(expected) - {1, 2, 3}
    assert set(levels) <= set(expected)
    assert all(b - a >= STEP == 4 for a, b in pairwise(levels))


def test_the_leaves_alone_if_no_level_remains():
    assert sparse_levels(Box([(0, 1)] * 64), 20) == [20]
    assert sparse_levels(Box([(0, 1)]), 4) == [4]
    assert sparse_levels(Box([(0, 1)]), 8) == [4, 8]
    assert sparse_levels(Box([(0, 1)] * 2), 8) == [4, 8]
    assert sparse_levels(Box([(0, 1)] * 5), 10) == [5, 10]


@pytest.mark.parametrize("name", DOMAINS)
def test_lazy_levels_are_never_far_apart(name):
    levels = [0, *sparse_levels(DOMAINS[name], 40, largest_gap=12)]
    assert max(b - a for a, b in pairwise(levels)) <= 12


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("rows", [1000, 20_000])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_papers_scales(epsilon, dimension, rows, relation):
    """sigma_j = S / (epsilon sqrt(Delta_(j-1))), the root included; twice that, without it, under replace."""
    domain = Box([(0, 1)] * dimension)
    for options in ({"rows": rows}, {"depth": 7}):
        plan = PMM.paper(domain, Privacy(epsilon, relation), **options).plan(rows)
        first, factor = (0, 1) if relation == "add-remove" else (1, 2)
        assert plan.levels == tuple(range(first, plan.depth + 1))
        roots = {j: math.sqrt(domain.total_diameter(max(j - 1, 0))) for j in plan.levels}
        for level, scale in zip(plan.levels, plan.scales, strict=True):
            expected = factor * sum(roots.values()) / (float(epsilon) * roots[level])
            assert float(scale) == pytest.approx(expected, rel=1e-3)
        assert plan.spent == epsilon


def test_the_papers_scales_for_a_private_number_of_rows():
    """The root is bought first, with its fixed share; the levels below share the rest as in the paper."""
    plan = PMM.paper(Box([(0, 1)] * 2), Privacy(1, "add-remove")).plan(5000)
    assert plan.budgets[0] == ROOT_SHARE
    roots = [math.sqrt(Box([(0, 1)] * 2).total_diameter(j - 1)) for j in plan.levels[1:]]
    for budget, root in zip(plan.budgets[1:], roots, strict=True):
        assert float(budget) == pytest.approx(7 / 8 * root / sum(roots), rel=1e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
@some("rows", 4, [1, 2, 3, 7, 8, 100, 1023, 1024, 1025, 10**5, 10**7])
def test_the_papers_depth(epsilon, dimension, rows):
    """floor(log2(epsilon n)), and one less in dimension 1; 0 where that is negative or epsilon n < 1."""
    product = int(epsilon * rows)
    expected = max(0, product.bit_length() - 1 - (dimension == 1))
    depth = paper_depth(Box([(0, 1)] * dimension), Privacy(epsilon, "replace"), rows, 40)
    assert depth == expected
    assert paper_depth(Box([(0, 1)] * dimension), Privacy(epsilon, "replace"), rows, 5) == min(expected, 5)


@pytest.mark.parametrize("schedule", ["sparse", "every level"])
@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_depth_never_falls_with_rows_or_epsilon(schedule, name, relation):
    sizes = [1, 2, 5, 10, 50, 100, 300, 1000, 1023, 1024, 3000, 10**4, 10**5, 10**6, 10**8, 10**12]
    epsilons = [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(8), Fraction(50)]
    depths = [
        [choose_depth(schedule, DOMAINS[name], Privacy(epsilon, relation), rows, 26) for rows in sizes]
        for epsilon in epsilons
    ]
    slack = 1 if schedule == "sparse" else 0  # the guarantee decides between neighbouring levels of tiny trees
    for line in [*depths, *zip(*depths, strict=True)]:
        assert all(after >= before - slack for before, after in pairwise(line))
    assert depths[0][0] == 0
    assert 0 < depths[-1][-1] <= 26


@pytest.mark.parametrize("schedule", ["sparse", "every level"])
@pytest.mark.parametrize("name", DOMAINS)
def test_depth_is_capped(schedule, name):
    domain = DOMAINS[name]
    inference, rule = ("blue", "signed") if schedule == "sparse" else ("none", "uniform")
    for max_cells in (2, 3, 4, 1000, 1024):
        mechanism = PMM(domain, Privacy(50, "replace"), Recipe(schedule, inference, rule), max_cells=max_cells)
        plan = mechanism.plan(2**52)
        assert 1 << plan.depth <= max_cells
        assert plan.evaluation == "whole tree"
    assert PMM(domain, Privacy(50, "replace"), Recipe(schedule, inference, rule)).plan(2**52).depth <= DEEPEST_DEPTH


@pytest.mark.parametrize("name", DOMAINS)
def test_where_cells_are_points_splitting_ends(name):
    domain = DOMAINS[name]
    depth = useful_depth(domain, 40)
    assert depth == 40 or domain.diameter(depth) == 0
    assert domain.diameter(depth - 1) > 0


@pytest.mark.parametrize("schedule", ["sparse", "every level"])
@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("epsilon", [*EPSILONS, Fraction(1, 3), Fraction(22, 7)])
def test_budgets_are_exact(schedule, name, epsilon):
    for depth in (1, 4, 7, 20, 40):
        depth = useful_depth(DOMAINS[name], depth)
        weights = level_weights(schedule, DOMAINS[name], depth, lazy=depth > 26)
        budgets = split_budget(epsilon, weights)
        assert list(budgets) == sorted(weights)
        assert sum(budgets.values()) == epsilon
        assert min(budgets.values()) > 0
        for level, budget in budgets.items():
            share = weights[level] / sum(weights.values())
            assert float(budget / epsilon) == pytest.approx(share, rel=1e-3, abs=41 / 2**20)


def test_the_default_favours_fine_levels_by_the_fourth_root():
    domain = Box([(0, 1)] * 2)
    weights = level_weights("sparse", domain, 12, lazy=False)
    assert weights == {j: domain.total_diameter(j - 1) ** 0.25 for j in (4, 8, 12)}


@pytest.mark.parametrize("weights", [{1: 1e-9, 2: 1.0, 3: 1e-9}, {1: 1.0, 2: 1e-300}, dict.fromkeys(range(1, 41), 1.0)])
def test_no_level_is_left_without_budget(weights):
    budgets = split_budget(Fraction(1, 3), weights)
    assert min(budgets.values()) > 0
    assert sum(budgets.values()) == Fraction(1, 3)


def test_no_levels_cost_nothing():
    assert split_budget(Fraction(1), {}) == {}
    assert PMM(Box([(0, 1)]), Privacy(1, "replace"), depth=0).plan(10).spent == 0
    assert PMM(Box([(0, 1)]), Privacy(1, "add-remove"), depth=0).plan(10).spent <= 1

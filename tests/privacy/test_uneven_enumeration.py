"""The audit on a tree with structural zeros: three categories in four cells, all noise enumerated, the real passes."""

import math
from itertools import product

import numpy as np
import pytest

from depth import some
from privmeasure import PMM, Categories, Privacy, Recipe
from privmeasure.estimates.consistency import RULES, distribute
from privmeasure.estimates.passes import uneven_blue, uneven_up_pass
from privmeasure.mechanisms.tree import consistent_leaves, existing
from privmeasure.plans.bounds import noise_variance

DOMAIN = Categories(3)
EXISTS = existing(DOMAIN, 2)
LEAVES = np.flatnonzero(EXISTS[2])
RECIPES = [
    Recipe(shrinkage="none"),
    Recipe(inference="none"),
    Recipe(inference="none", rule="uniform"),
    Recipe(inference="none", rule="proportional"),
    Recipe("every level", "blue"),
    Recipe("every level", "none", "uniform"),
]
PAIRS = {
    "replace": [((4, 0, 0), (3, 1, 0)), ((2, 0, 2), (2, 1, 1)), ((1, 1, 1), (2, 1, 0))],
    "add-remove": [((4, 0, 0), (3, 0, 0)), ((1, 1, 1), (1, 1, 0)), ((0, 0, 0), (0, 0, 1))],
}


def pmf(scale, reach):
    p = math.exp(-1 / float(scale))
    return {z: (1 - p) / (1 + p) * p ** abs(z) for z in range(-reach, reach + 1)}


def split(noisy, variances, total, recipe):
    """Return the leaves of a forest of trees side by side, one for each line of noise."""
    trees = len(noisy[2]) // 4
    exists = [np.tile(level, trees) for level in EXISTS]
    rule, roots = RULES[recipe.rule], np.full(trees, total)
    if recipe.inference == "none":
        prepared = uneven_up_pass(dict(noisy), 2, rule, exists)
    elif 0 in variances:
        prepared = uneven_blue({0: roots.astype(float), **noisy}, variances, 2, exists, None)
    else:
        prepared = uneven_blue(dict(noisy), variances, 2, exists, float(total))
    return distribute(roots, prepared, rule, exists).reshape(-1, 4)


def law(counts, recipe, scales, neighbours, reach):
    """Return the probabilities of the released leaves, and what was cut off."""
    single = {level: pmf(scale, reach) for level, scale in scales.items() if level > 0}
    shape = [(2, cell) for cell in LEAVES] + [(1, cell) for cell in range(2) if 1 in single]
    grids = [single[level].items() for level, _ in shape]
    lines = list(product(*grids))
    chance = np.array([math.prod(p for _, p in line) for line in lines])
    kept = chance > 1e-18
    noise = np.array([[z for z, _ in line] for line in lines])[kept]
    chance = chance[kept]
    leaf = np.zeros((len(noise), 4), np.int64)
    leaf[:, LEAVES] = np.array(counts) + noise[:, :3]
    noisy = {2: leaf.ravel()}
    if 1 in single:
        inner = np.zeros(4, np.int64)
        inner[LEAVES] = counts
        noisy[1] = (inner.reshape(2, 2).sum(axis=1) + noise[:, 3:]).ravel()
    n = sum(counts)
    totals = {n: 1.0}
    if neighbours == "add-remove":
        totals = {}
        for z, p in pmf(scales[0], 40).items():
            totals[max(1, n + z)] = totals.get(max(1, n + z), 0.0) + p
    variances = {level: noise_variance(scale) for level, scale in scales.items()}
    found: dict = {}
    for total, p in totals.items():
        leaves = split(noisy, variances, total, recipe)
        assert (leaves[:, ~EXISTS[2]] == 0).all()
        codes, place = np.unique(leaves @ [1, 1000, 10**6, 10**9], return_inverse=True)
        for code, weight in zip(codes, np.bincount(place, chance), strict=True):
            found[total, int(code)] = found.get((total, int(code)), 0.0) + p * weight
    return found, 1 - sum(found.values())


def worst(recipe, scales, neighbours, epsilon, reach):
    ratio, excess = 0.0, -math.inf
    for pair in PAIRS[neighbours]:
        laws = [law(counts, recipe, scales, neighbours, reach) for counts in pair]
        missing = max(cut for _, cut in laws) + 1e-12
        unsure = (1 + math.exp(epsilon)) * missing  # what was cut off may belong to either law
        for (p, _), (q, _) in (laws, laws[::-1]):
            excess = max(excess, sum(max(0.0, v - math.exp(epsilon) * q.get(k, 0.0)) for k, v in p.items()) - unsure)
            ratio = max([ratio, *(math.log(v / q[k]) for k, v in p.items() if min(v, q.get(k, 0)) > 100 * missing)])
    return ratio, excess


@some("neighbours", 1, PAIRS)
@some("recipe", 2, RECIPES, ids=lambda r: f"{r.schedule}/{r.inference}/{r.rule}")
def test_no_output_tells_neighbours_apart_by_more_than_epsilon(recipe, neighbours):
    every = recipe.schedule == "every level"
    epsilon, reach = (12, 4) if every else (6, 10)
    plan = PMM(DOMAIN, Privacy(epsilon, neighbours), recipe, depth=2).plan(3)
    scales = dict(zip(plan.levels, plan.scales, strict=True))
    ratio, excess = worst(recipe, scales, neighbours, epsilon, reach)
    assert ratio <= epsilon + 0.02  # outputs are 100 times as likely as what was cut off
    assert excess <= 0
    small = {level: scale / 3 if level else scale for level, scale in scales.items()}
    ratio, excess = worst(recipe, small, neighbours, epsilon, reach)
    assert ratio > 1.1 * epsilon or excess > 0


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: f"{r.schedule}/{r.inference}/{r.rule}")
def test_the_forest_is_the_mechanism(recipe):
    rng = np.random.default_rng(0)
    levels = (1, 2) if recipe.schedule == "every level" else (2,)
    for root in (True, False):
        variances = {level: 1.0 + level for level in ((0, *levels) if root else levels)}
        for _ in range(20):
            noisy = {level: rng.integers(-3, 9, 1 << level) for level in levels}
            noisy[2][~EXISTS[2]] = 0
            leaves = consistent_leaves(DOMAIN, {k: v.copy() for k, v in noisy.items()}, variances, 9, 2, recipe)
            assert leaves.tolist() == split(noisy, variances, 9, recipe)[0].tolist()

"""The default on tiny trees, by enumeration: shrunk splits and an estimated total keep epsilon.

The masses are a function of the noisy counts of the leaves and of the noisy number of rows. Groups of one parent are
allowed here, so that a tree of two or four leaves is shrunk at all. The method is that of test_enumeration.py: sums
over a box of noisy counts, which an epsilon-DP mechanism passes whatever was cut off.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privmeasure import PMM, Box, Privacy, Recipe
from privmeasure.estimates import shrinkage
from privmeasure.estimates.linear import noise_variance
from privmeasure.mechanisms import base, tree
from privmeasure.mechanisms.tree import consistent_leaves
from privmeasure.noise.entropy import Key
from privmeasure.plans import schedule
from privmeasure.plans.bounds import t7
from privmeasure.sources.arrays import ArraySource

ROUNDING = 1e-9


def pmf(scale, z):
    a = float(1 / scale)
    return math.tanh(a / 2) * math.exp(-a * abs(z))


def laws(plan, first, second, reach):
    """The probability of every output under two inputs, on the same box of noisy counts."""
    depth, scales = plan.depth, dict(zip(plan.levels, plan.scales, strict=True))
    variances = {level: noise_variance(scale) for level, scale in scales.items()}
    ranges = [
        range(min(a, b) - math.ceil(reach * scales[depth]), max(a, b) + math.ceil(reach * scales[depth]) + 1)
        for a, b in zip(first, second, strict=True)
    ]
    estimated = 0 in scales
    totals = [sum(first), sum(second)]
    roots = [totals[0]]
    if estimated:
        far = math.ceil(reach * scales[0])
        roots = range(min(totals) - far, max(totals) + far + 1)
    found: dict[tuple[int, ...], list[float]] = {}
    for leaves in product(*ranges):
        for root in roots:
            noisy = {depth: np.array(leaves)}
            mass = consistent_leaves(Box([(0, 1)]), noisy, variances, root, depth, Recipe(), estimated=estimated)
            chance = found.setdefault(tuple(mass.tolist()), [0.0, 0.0])
            for side, counts in enumerate((first, second)):
                p = math.prod(pmf(scales[depth], y - n) for y, n in zip(leaves, counts, strict=True))
                chance[side] += p * (pmf(scales[0], root - totals[side]) if estimated else 1.0)
    return np.array(list(found.values()))


def largest(chances):
    return float(np.abs(np.log(chances[:, 0]) - np.log(chances[:, 1])).max())


@pytest.mark.parametrize(
    ("relation", "depth", "first", "second", "reach"),
    [
        ("replace", 1, (5, 1), (4, 2), 12),
        ("replace", 1, (8, 0), (7, 1), 12),
        ("replace", 2, (2, 0, 1, 0), (1, 0, 2, 0), 3.4),
        ("add-remove", 1, (3, 1), (2, 1), 8),
        ("add-remove", 1, (1, 0), (0, 0), 8),
    ],
)
def test_no_output_tells_neighbours_apart_by_more_than_epsilon(monkeypatch, relation, depth, first, second, reach):
    epsilon = 2
    monkeypatch.setattr(shrinkage, "FEWEST", 1)
    monkeypatch.setattr(schedule, "CHEAP_ROOT_SHARE", Fraction(1, 3))  # a smaller box of noisy numbers of rows
    plan = PMM(Box([(0, 1)]), Privacy(epsilon, relation), depth=depth).plan(max(1, sum(first)))
    assert plan.spent == epsilon
    chances = laws(plan, first, second, reach)
    assert chances.sum(axis=0).min() > 0.9
    assert 0.5 * epsilon < largest(chances) <= epsilon + ROUNDING
    less = laws(PMM(Box([(0, 1)]), Privacy(2 * epsilon, relation), depth=depth).plan(4), first, second, reach)
    assert largest(less) > epsilon  # the audit can fail


class Scripted:
    def __init__(self, scale, script):
        self.script = script

    def draw(self, key, *, part, level, cells):
        return np.array([self.script[level][int(cell)] for cell in cells], np.int64)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_release_is_the_function_that_is_enumerated(monkeypatch, relation):
    monkeypatch.setattr(shrinkage, "FEWEST", 1)
    rng = np.random.default_rng(2)
    mechanism = PMM(Box([(0, 1)]), Privacy(1, relation), depth=2, threads=1)
    plan = mechanism.plan(9)
    variances = {j: noise_variance(s) for j, s in zip(plan.levels, plan.scales, strict=True)}
    for _ in range(40):
        counts = rng.integers(0, 9, 4) + np.array([1, 0, 0, 0])
        script = {0: rng.integers(-30, 30, 1), 2: rng.integers(-6, 7, 4)}
        for module in (base, tree):
            monkeypatch.setattr(module, "law_of", lambda law, scale, script=script: Scripted(scale, script=script))
        points = np.repeat((np.arange(4) + 0.5) / 4, counts)
        release = mechanism.release(ArraySource(points, width=1, threads=1), Key.fresh())
        estimated = relation == "add-remove"
        root = int(counts.sum()) + (int(script[0][0]) if estimated else 0)
        kept = t7(Box([(0, 1)]), dict(zip(plan.levels, plan.scales, strict=True)), 2, max(1, root))
        allowed = kept.allowed, kept.level
        mass = consistent_leaves(
            Box([(0, 1)]), {2: counts + script[2]}, variances, root, 2, Recipe(), estimated=estimated, allowed=allowed
        )
        leaves = np.zeros(4, np.int64)
        leaves[release.cells.astype(int)] = release.mass
        assert leaves.tolist() == mass.tolist()
        assert release.plan.rows == mass.sum() == max(1, release.plan.rows)

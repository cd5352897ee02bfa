"""The audit of the isotonic rule: the law of the output on neighbouring inputs, by enumeration at depth 2."""

import math
from itertools import product

import numpy as np
import pytest

from privmeasure import PMM, Box, Privacy, Recipe
from privmeasure.estimates.consistency import isotonic
from privmeasure.mechanisms.tree import consistent_leaves

RECIPE = Recipe(rule="isotonic")
REACH = 8
"""Noise beyond is cut off; what is missing is bounded below."""


def estimates(y, total):
    """Return the best linear estimates of four leaves, alone measured, whose sum is known."""
    return y + (total - y.sum()) / 4


def law(counts, scale, total):
    """Return the probabilities of outputs, and the probability that was cut off."""
    p = math.exp(-1 / float(scale))
    weight = {z: (1 - p) / (1 + p) * p ** abs(z) for z in range(-REACH, REACH + 1)}
    found: dict = {}
    for noise in product(weight, repeat=4):
        chance = math.prod(weight[z] for z in noise)
        if chance > 1e-9:
            y = np.array(counts) + np.array(noise)
            key = tuple((y - y[0]).tolist())  # the estimates do not change when all y move together
            found[key] = found.get(key, 0.0) + chance
    masses: dict = {}
    for key, chance in found.items():
        mass = tuple(isotonic(estimates(np.array(key, float), total), total).tolist())
        masses[mass] = masses.get(mass, 0.0) + chance
    return masses, 1 - sum(masses.values())


def largest(scale, epsilon):
    first, second = (law(counts, scale, 3) for counts in ((3, 0, 0, 0), (2, 0, 0, 1)))
    missing = max(first[1], second[1])
    excess = sum(max(0.0, p - math.exp(epsilon) * second[0].get(mass, 0.0)) for mass, p in first[0].items())
    ratios = [
        abs(math.log(p / second[0][m])) for m, p in first[0].items() if min(p, second[0].get(m, 0)) > 30 * missing
    ]
    return max(ratios), excess, missing


def test_no_output_tells_neighbours_apart_by_more_than_epsilon():
    plan = PMM(Box([(0, 1)]), Privacy(4, "replace"), RECIPE, depth=2).plan(3)
    (scale,) = plan.scales
    ratio, excess, missing = largest(scale, 4.0)
    assert ratio <= 4.0 + 0.07  # outputs are 30 times as likely as what was cut off
    assert excess <= missing
    ratio, excess, missing = largest(scale / 2, 4.0)
    assert ratio > 4.3 or excess > missing


def test_the_estimates_are_those_of_the_mechanism():
    rng = np.random.default_rng(0)
    for _ in range(20):
        y = rng.integers(-5, 9, 4)
        leaves = consistent_leaves(Box([(0, 1)]), {2: y.copy()}, {2: 1.7}, 9, 2, RECIPE)
        assert leaves.tolist() == isotonic(estimates(y.astype(float), 9), 9).tolist()


@pytest.mark.parametrize("total", [1, 7])
def test_all_outputs_are_masses(total):
    masses, _ = law((1, 0, 0, 0), 1, total)
    assert all(sum(mass) == total and min(mass) >= 0 for mass in masses)

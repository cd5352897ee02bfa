"""The isotonic rule and its bound T3."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privmeasure as pm
from privmeasure.errors import ArgumentError
from privmeasure.estimates.consistency import isotonic
from privmeasure.noise.entropy import Key
from privmeasure.plans.bounds import t3
from privmeasure.sources.arrays import ArraySource

LINE = pm.Box([(0, 1)])
ISOTONIC = pm.Recipe(rule="isotonic")
reals = st.floats(-50, 50, allow_nan=False)


def slow_isotonic(values):
    """Return the nearest monotone sequence: max over starts of min over ends of the means (the min-max formula)."""
    n = len(values)
    mean = lambda i, j: sum(values[i : j + 1]) / (j + 1 - i)  # noqa: E731
    return [max(min(mean(i, j) for j in range(k, n)) for i in range(k + 1)) for k in range(n)]


@given(st.lists(reals, min_size=1, max_size=9), st.integers(0, 60))
@settings(deadline=None)
def test_masses_are_those_of_the_nearest_monotone_function(estimates, total):
    mass = isotonic(np.array(estimates), total)
    assert mass.dtype == np.int64
    assert mass.sum() == total
    assert (mass >= 0).all()
    fitted = np.clip(slow_isotonic(np.cumsum(estimates[:-1]).tolist()), 0, total)
    assert np.abs(np.cumsum(mass)[:-1] - fitted).max(initial=0) <= 0.5 + 1e-9


@given(st.lists(st.tuples(st.integers(0, 9), reals), min_size=2, max_size=12))
@settings(deadline=None)
def test_the_projection_costs_no_more_than_rounding(cells):
    counts, noise = (np.array(column, float) for column in zip(*cells, strict=True))
    noise[-1] -= noise.sum()  # the total is known
    total = int(counts.sum())
    before = np.abs(np.cumsum(noise)[:-1]).sum()
    after = np.abs(np.cumsum(isotonic(counts + noise, total) - counts)[:-1]).sum()
    assert after <= before + 0.5 * (len(counts) - 1) + 1e-6


@pytest.mark.parametrize(
    ("depth", "step", "constant"), [(8, 4, 10.1), (12, 4, 18.4), (16, 4, 28.1), (12, 1, 30.1), (12, 3, 18.9)]
)
def test_t3_has_the_constants_of_the_mathematics(depth, step, constant):
    """Noise part times epsilon n under replace, equal budgets on every step-th level."""
    levels = range(depth, 0, -step)
    scales = {level: Fraction(2 * len(levels) * 1000) for level in levels}  # epsilon = 1/1000: far from rounding
    noise = t3(LINE, scales, depth, 10**6, 0.0) - 0.5 / 10**6
    assert noise * 10**6 / 1000 == pytest.approx(constant, abs=0.06)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("placement", ["centre", "uniform"])
@pytest.mark.parametrize("shape", ["uniform", "atom"])
def test_t3_holds_and_is_not_idle(neighbours, placement, shape):
    rows, runs = 2_000, 60
    recipe = pm.Recipe(rule="isotonic", placement=placement)
    mechanism = pm.PMM(LINE, pm.Privacy(1, neighbours), recipe)
    plan = mechanism.plan(rows)
    assert plan.best.name == "T3"
    x = np.random.default_rng(1).random((rows, 1)) if shape == "uniform" else np.full((rows, 1), 0.3)
    found = []
    for seed in range(runs):
        y = mechanism.release(ArraySource(x, width=1), Key.insecure(seed)).sample(seed=seed)
        grid = np.sort(np.concatenate((x, y)).ravel())
        f, g = (np.searchsorted(np.sort(z.ravel()), grid[:-1], "right") / len(z) for z in (x, y))
        found.append(np.abs(f - g) @ np.diff(grid))
    assert np.mean(found) <= plan.guarantee
    if shape == "uniform":
        assert np.mean(found) > plan.guarantee / 5


def test_integers_with_structural_zeros():
    ages = pm.Integers(0, 120)
    x = np.repeat(np.arange(121.0), 7)[:, np.newaxis]
    synth = pm.Synthesizer(ages, epsilon=1, neighbours="replace", recipe=ISOTONIC)
    y = synth.fit(x).sample()
    assert len(y) == len(x)
    assert y.min() >= 0
    assert y.max() <= 120
    assert synth.plan_.best is None  # nothing is proved where cells are uneven


def test_it_is_refused_where_there_is_no_line():
    with pytest.raises(ArgumentError, match="needs a line"):
        pm.PMM(pm.Box([(0, 1)] * 2), pm.Privacy(1, "replace"), ISOTONIC)
    with pytest.raises(ArgumentError, match="whole tree"):
        pm.PMM(LINE, pm.Privacy(1, "replace"), ISOTONIC, depth=30)
    with pytest.raises(ArgumentError, match="inference"):
        pm.Recipe(rule="isotonic", inference="none")

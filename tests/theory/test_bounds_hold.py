"""The guarantees hold: the mean W1 distance over many releases is at most what the plan promised.

In one dimension W1 is computed exactly; in two, by an assignment or a small linear programme.
"""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, sparse, stats

import privmeasure as pm
from privmeasure.engines.memory import ArraySource
from privmeasure.noise.entropy import Key

SHAPES = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "one atom": lambda rng, n, d: np.full((n, d), 0.3),
    "Gaussian": lambda rng, n, d: rng.normal(0.4, 0.1, (n, d)).clip(0, 1),
}
RECIPES = {
    "default": pm.Recipe(),
    "default, centres": pm.Recipe(placement="centre"),
    "paper": pm.Recipe("every level", "none", "uniform"),
    "paper, proportional": pm.Recipe("every level", "none", "proportional"),
    "paper, centres": pm.Recipe("every level", "none", "uniform", "centre"),
    "every level, signed": pm.Recipe("every level", "none", "signed"),
}
RELATIONS = ["add-remove", "replace"]


def w1_on_the_line(x, y):
    """The area between the two distribution functions, for lists of any lengths."""
    x, y = np.sort(x), np.sort(y)
    values = np.sort(np.concatenate((x, y)))
    below_x = np.searchsorted(x, values[:-1], "right") / len(x)
    below_y = np.searchsorted(y, values[:-1], "right") / len(y)
    return float(np.abs(below_x - below_y) @ np.diff(values))


def w1_in_the_cube(x, y):
    """The cheapest transport in the l_infinity metric: an assignment if sizes agree, else a linear programme."""
    cost = np.abs(x[:, None] - y[None]).max(axis=-1)
    n, m = cost.shape
    if n == m:
        rows, columns = optimize.linear_sum_assignment(cost)
        return float(cost[rows, columns].mean())
    supply = sparse.kron(sparse.eye(n), np.ones((1, m)))
    demand = sparse.kron(np.ones((1, n)), sparse.eye(m))
    goal = np.concatenate((np.full(n, 1 / n), np.full(m, 1 / m)))
    return float(optimize.linprog(cost.ravel(), A_eq=sparse.vstack((supply, demand)), b_eq=goal, method="highs").fun)


def errors(mechanism, points, runs, distance):
    """The W1 distances of several releases of the same points, and what each release then guarantees."""
    found, promised = [], []
    for seed in range(runs):
        source = ArraySource(points, width=points.shape[1], threads=1)
        measure = mechanism.release(source, Key.insecure(seed))
        found.append(distance(points, measure.sample(seed=seed)))
        promised.append(measure.plan.guarantee)
    return np.array(found), np.array(promised)


def on_the_line(x, y):
    return w1_on_the_line(x[:, 0], y[:, 0])


def check(dimension, epsilon, rows, relation, recipe, runs, *, public, depth=None, distance=on_the_line):
    box, privacy = pm.Box([(0, 1)] * dimension), pm.Privacy(epsilon, relation)
    mechanism = pm.PMM(box, privacy, RECIPES[recipe], depth=depth, rows=rows if public else None, threads=1)
    guarantee = mechanism.plan(rows).guarantee
    for shape, draw in SHAPES.items():
        points = draw(np.random.default_rng(rows), rows, dimension)
        found, promised = errors(mechanism, points, runs, distance)
        assert found.mean() <= guarantee, (shape, found.mean(), guarantee)
        if not public:  # the plan restated at the released number of rows promises it too, on average
            assert found.mean() <= promised.mean(), (shape, found.mean(), promised.mean())


# -------------------------------------------------------------------------------------- the yardsticks


@pytest.mark.parametrize("seed", range(20))
def test_w1_on_the_line_is_exact(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=rng.integers(1, 60)), rng.choice([0.0, 0.5, 1.0], rng.integers(1, 60))
    assert w1_on_the_line(x, y) == pytest.approx(stats.wasserstein_distance(x, y), rel=1e-9)
    assert w1_on_the_line(x, x + 0.25) == pytest.approx(0.25)


def test_w1_in_the_cube_is_exact():
    rng = np.random.default_rng(0)
    x, y = rng.random((30, 2)), rng.random((20, 2))
    assert w1_in_the_cube(x, x + np.array([0.1, 0.3])) == pytest.approx(0.3)
    assert w1_in_the_cube(x[:, :1], y[:, :1]) == pytest.approx(w1_on_the_line(x[:, 0], y[:, 0]))
    assert w1_in_the_cube(np.repeat(x, 2, axis=0), np.repeat(y, 3, axis=0)) == pytest.approx(w1_in_the_cube(x, y))


# --------------------------------------------------------------------------------------- one dimension


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize(("epsilon", "rows"), [(0.1, 200), (0.1, 5000), (1, 200), (1, 5000), (8, 300)])
@pytest.mark.parametrize("public", [False, True])
def test_on_the_line(relation, recipe, epsilon, rows, public):
    check(1, epsilon, rows, relation, recipe, runs=8, public=public)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_too_much_noise_breaks_the_guarantee(relation, recipe):
    """The same tree with a two-hundredth of the budget is caught: the comparison can fail."""
    box, rows = pm.Box([(0, 1)]), 5000
    points = SHAPES["uniform"](np.random.default_rng(0), rows, 1)
    good = pm.PMM(box, pm.Privacy(1, relation), RECIPES[recipe], rows=rows)
    noisy = pm.PMM(box, pm.Privacy(0.005, relation), RECIPES[recipe], depth=good.plan().depth)
    found, _ = errors(noisy, points, 8, on_the_line)
    assert found.mean() > good.plan().guarantee


def test_the_guarantee_is_not_vacuous_where_it_should_help():
    for relation, recipe in product(RELATIONS, RECIPES):
        mechanism = pm.PMM(pm.Box([(0, 1)]), pm.Privacy(1, relation), RECIPES[recipe])
        assert mechanism.plan(10**5).guarantee < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 4])
@pytest.mark.parametrize("rows", [50, 1000, 20_000])
def test_on_the_line_at_length(relation, recipe, epsilon, rows):
    for public in (False, True):
        check(1, epsilon, rows, relation, recipe, runs=15, public=public)


# -------------------------------------------------------------------------------------- two dimensions


SQUARES = {"replace": {"epsilon": 20, "rows": 300, "depth": 4}, "add-remove": {"epsilon": 50, "rows": 100, "depth": 4}}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("recipe", ["default", "default, centres", "paper", "paper, centres"])
def test_in_the_square(relation, recipe):
    check(2, relation=relation, recipe=recipe, runs=3, public=True, distance=w1_in_the_cube, **SQUARES[relation])


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_square_is_not_vacuous(relation):
    square = SQUARES[relation]
    mechanism = pm.PMM(pm.Box([(0, 1)] * 2), pm.Privacy(square["epsilon"], relation), depth=square["depth"])
    assert mechanism.plan(square["rows"]).guarantee < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize(("epsilon", "rows"), [(2, 600), (20, 600), (50, 300)])
def test_in_the_cube_at_length(dimension, recipe, epsilon, rows):
    check(dimension, epsilon, rows, "replace", recipe, runs=5, public=True, distance=w1_in_the_cube)


# ------------------------------------------------------------------------------ what is promised later


@pytest.mark.parametrize("epsilon", [0.3, 1])
def test_bounds_hold_for_a_fixed_depth_too(epsilon):
    for depth, relation in product((0, 1, 5, 9), RELATIONS):
        mechanism = pm.PMM(pm.Box([(0, 1)]), pm.Privacy(epsilon, relation), depth=depth, threads=1)
        points = SHAPES["Gaussian"](np.random.default_rng(1), 1000, 1)
        found, _ = errors(mechanism, points, 8, on_the_line)
        assert found.mean() <= mechanism.plan(1000).guarantee

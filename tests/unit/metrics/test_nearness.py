"""Quick W1 on cells is near the exact one, in every space; correlations and scores are what they say."""

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.metrics import wasserstein
from privmeasure.metrics.answers import correlations, linear_scores
from privmeasure.metrics.nearness import joined, rows_apart, share_of_range
from privmeasure.tables.variables import variables


def two_sets(space, seed=0):
    rng = np.random.default_rng(seed)
    cells = np.zeros(600, np.uint64)
    x, y = space.draw(cells, 0, rng), space.draw(cells, 0, rng)
    return x, np.where(rng.random((600, 1)) < 0.3, x[:1], y)  # some of it in one place


@pytest.mark.parametrize(
    "space",
    [
        pm.Box([(0, 5)]),
        pm.Box([(0, 5), (-1, 1)]),
        pm.Integers(3, 40),
        pm.Circle(24),
        pm.Categories(7),
        pm.Finite.from_points(np.random.default_rng(0).random((9, 2))),
        pm.Sphere(),
        pm.Product([pm.Box([(0, 1)]), pm.Categories(4)]),
    ],
    ids=repr,
)
def test_it_is_near_the_exact_distance(space):
    x, y = two_sets(space)
    exact = wasserstein(x, y, domain=space, method="exact").value / space.diameter(0)
    assert share_of_range(x, y, space) == pytest.approx(exact, rel=0.05, abs=0.01)
    assert share_of_range(x, x, space) == 0


def test_missing_values_are_as_far_as_the_space_says():
    space = pm.Nullable(pm.Box([(0, 1)]))
    x = np.full((10, 1), 0.5)
    y = x.copy()
    y[:3] = np.nan
    gap = float(space.distance(x[:1], y[:1])[0])
    assert share_of_range(x, y, space) == pytest.approx(0.3 * gap / space.diameter(0))


def test_joined_spaces_count_alike():
    space = joined([pm.Box([(0, 1)], weights=[5]), pm.Categories(3)])
    assert space.diameter(0) == 1
    assert float(space.distance(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]]))[0]) == 1


def test_rows_of_one_table_are_as_far_apart_as_their_floor():
    rows = np.random.default_rng(0).random((3000, 8))
    value, floor = rows_apart(rows, rows[::-1], pm.Box([(0, 1)] * 8), rows=200, seed=1)
    assert value == pytest.approx(floor, rel=0.2)
    moved, _ = rows_apart(rows, rows * 0.3, pm.Box([(0, 1)] * 8), rows=200, seed=1)
    assert moved > 1.5 * floor


def test_correlations_are_those_of_numpy():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3))
    assert correlations(matrix) == pytest.approx(np.corrcoef(matrix.T)[np.triu_indices(3, 1)])
    gaps = matrix.copy()
    gaps[rng.random(500) < 0.3, 1] = np.nan
    both = ~np.isnan(gaps[:, 1])
    assert correlations(gaps)[0] == pytest.approx(np.corrcoef(matrix[both, 0], matrix[both, 1])[0, 1])
    assert correlations(np.ones((5, 2)))[0] == 0


def test_scores_see_what_was_learned():
    rng = np.random.default_rng(0)
    x = rng.random(4000)
    rows = np.column_stack([x, (x + rng.normal(0, 0.1, 4000) > 0.5).astype(float), 3 * x + rng.normal(0, 0.1, 4000)])
    schema = pm.Schema({"x": pm.Number(0, 1), "high": pm.Boolean(), "y": pm.Number(-1, 4)})
    turned = np.column_stack([1 - rows[:, 0], rows[:, 1], 3 - rows[:, 2]])  # what goes with what is the other way round
    good = linear_scores(rows, rows, variables(schema))
    bad = linear_scores(rows, turned, variables(schema))
    assert [score.kind for score in good] == ["variance explained", "share right", "variance explained"]
    for score in good:
        assert score.synthetic == pytest.approx(score.real, abs=0.02)
        assert score.real > score.nothing + 0.3
    assert bad[1].synthetic < bad[1].nothing - 0.3
    assert linear_scores(rows[:, :1], rows[:, :1], variables(schema)[:1]) == []

"""The rivals of `make bench-peers` are what their papers say."""

import math

import numpy as np
import pytest

from depth import some
from methods import cells, hierarchy, histogram, privtree, walk

RELATIONS = ("add-remove", "replace")


# --------------------------------------------------------------------------------------------------- cells


@pytest.mark.parametrize("d", [1, 2, 3])
def test_points_are_inside_the_cells_that_their_codes_name(d):
    points = np.random.default_rng(d).random((500, d))
    for level in (0, 1, 5, 12):
        codes = cells.code(points, level)
        low, side = cells.corners(codes, level, d)
        assert ((points >= low) & (points < low + side)).all()
        assert (np.prod(side, axis=1) == 2.0**-level).all()
        assert cells.counts(points, level).sum() == 500


def test_a_point_at_the_upper_end_is_in_the_last_cell():
    assert cells.code(np.ones((1, 2)), 6) == 63


def test_shared_out_masses_are_the_nearest_that_sum_to_the_total():
    rng = np.random.default_rng(1)
    wanted, total = rng.normal(size=(50, 6)), rng.random(50) * 3
    found = cells.share_out(wanted, total)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), total)
    for _ in range(200):  # no other masses are nearer
        other = rng.dirichlet(np.ones(6), 50) * total[:, np.newaxis]
        assert (((found - wanted) ** 2).sum(axis=1) <= ((other - wanted) ** 2).sum(axis=1) + 1e-12).all()


def test_sampled_rows_are_as_many_as_the_masses_say():
    found = cells.whole_level(np.array([1.0, 0.0, 2.5, 0.5]), 1).points(4, np.random.default_rng(0))
    assert np.histogram(found, bins=4, range=(0, 1))[0].tolist() == [1, 0, 3, 0]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_every_rival_is_close_when_epsilon_is_large(d, relation):
    points = np.random.default_rng(5).random((4000, d)) ** 2
    mean = points.mean(axis=0)
    for release in (privtree.release, hierarchy.release, *([walk.release] if d == 1 else [])):
        found = release(points, 50.0, relation, np.random.default_rng(0))
        rows = found.points(4000, np.random.default_rng(1))
        assert np.abs(rows.mean(axis=0) - mean).max() < 0.01
        assert relation == "add-remove" or found.mass.sum() == pytest.approx(4000)


def test_a_flat_histogram_is_close_at_a_level_that_suits_it():
    points = np.random.default_rng(5).random((4000, 2)) ** 2
    found = histogram.release(points, 50.0, "replace", np.random.default_rng(0), level=8)
    assert np.abs(found.points(4000, np.random.default_rng(1)).mean(axis=0) - points.mean(axis=0)).max() < 0.02


# ------------------------------------------------------------------------------------------------- PrivTree


def laplace_above(x: float, scale: float) -> float:
    """Return P(Laplace > x)."""
    return 0.5 * math.exp(-x / scale) if x >= 0 else 1 - 0.5 * math.exp(x / scale)


def path_loss(counts: list[int], settings: privtree.Settings, *, leaf_splits: bool) -> float:
    """Return the privacy loss of the decisions on a path when one row is added to all its nodes."""
    loss = 0.0
    for depth, count in enumerate(counts):
        side = -1 if depth == len(counts) - 1 and not leaf_splits else 1
        before, after = (
            laplace_above(side * (privtree.THETA - float(settings.biased(np.float64(c), depth))), settings.scale)
            for c in (count, count + 1)
        )
        loss += abs(math.log(after / before))
    return loss


def worst_path(settings: privtree.Settings) -> float:
    """Return the largest loss found: counts stay as high as they can be and still be near to the threshold."""
    worst = 0.0
    for height in (1, 2, 5, 20, 60):
        for top in range(int(settings.decay * height) + 60):
            for shape in ([top] * height, [max(0, top - round(settings.decay * t)) for t in range(height)]):
                worst = max(worst, *(path_loss(shape, settings, leaf_splits=splits) for splits in (True, False)))
    return worst


@some("d", 1, [2, 1, 3])
@some("epsilon", 1, [0.5, 1.0])
def test_the_loss_of_a_privtree_is_at_most_epsilon_however_deep_it_is(d, epsilon):
    settings = privtree.Settings.of(d, epsilon)
    assert 0.6 * epsilon < worst_path(settings) <= epsilon
    bare = privtree.Settings(settings.fanout, 1 / epsilon, settings.decay)
    assert worst_path(bare) > epsilon  # the noise of one count alone does not pay for a path
    level = privtree.Settings(settings.fanout, settings.scale, settings.decay / 8)
    assert worst_path(level) > epsilon  # nor does the noise without the decay


def test_the_settings_of_privtree_are_those_of_its_paper():
    found = privtree.Settings.of(2, 1.0)  # a quadtree
    assert (found.fanout, found.scale) == (4, pytest.approx(7 / 3))
    assert found.decay == pytest.approx(7 / 3 * math.log(4))


def test_a_privtree_of_empty_space_stays_small():
    """Lemma of the paper: nodes that are far below the threshold are cut with a probability of 1 / (2 fanout)."""
    settings = privtree.Settings.of(2, 1.0)
    rng = np.random.default_rng(3)
    count = settings.biased(np.zeros(10**5), 7)
    share = float(np.mean(count + rng.laplace(0, settings.scale, 10**5) > privtree.THETA))
    assert share == pytest.approx(1 / 8, abs=0.01)
    sizes = [
        sum(len(codes) for codes, *_ in privtree.tree(np.empty(0, np.int64), 2, settings, rng)) for _ in range(2000)
    ]
    assert np.mean(sizes) == pytest.approx(5, abs=0.5)  # 1 + 4 P(the root is cut) / (1 - 4 / 8), however deep it may be


def test_a_privtree_goes_deep_where_the_rows_are():
    points = np.vstack((np.full((900, 2), 0.3), np.random.default_rng(0).random((100, 2))))
    found = privtree.release(points, 1.0, "add-remove", np.random.default_rng(0))
    inside = ((found.low <= 0.3) & (found.low + found.side > 0.3)).all(axis=1)
    assert found.side[inside].max() < 2.0**-15
    assert found.mass[inside].sum() == pytest.approx(900, abs=60)


# ------------------------------------------------------------------------------------------------ hierarchy


@pytest.mark.parametrize("fanouts", [(2, 2), (3, 2), (16,), (2, 3, 2), (4, 16)])
def test_the_two_passes_are_least_squares(fanouts):
    rng = np.random.default_rng(len(fanouts))
    sizes = np.cumprod(fanouts)
    noisy = [rng.normal(size=size) * 10 for size in sizes]
    leaves = int(sizes[-1])
    design = np.vstack([np.kron(np.eye(size), np.ones(leaves // size)) for size in sizes])
    free = np.linalg.lstsq(design, np.concatenate(noisy), rcond=None)[0]
    estimates = hierarchy.upwards(noisy)
    np.testing.assert_allclose(hierarchy.downwards(estimates, float(estimates[0].sum()))[-1], free, atol=1e-9)
    total = 7.0  # a public root: the same with a constraint
    solution = np.linalg.solve(
        np.block([[design.T @ design, np.ones((leaves, 1))], [np.ones((1, leaves)), np.zeros((1, 1))]]),
        np.append(design.T @ np.concatenate(noisy), total),
    )[:-1]
    np.testing.assert_allclose(hierarchy.downwards(estimates, total)[-1], solution, atol=1e-9)


def test_the_example_of_hay_et_al():
    """A root and its 2 children: the estimate of the root is (2 root + sum) / 3 (theorem 3 at k = 2, height 2)."""
    root, children = np.array([10.0]), np.array([3.0, 4.0])
    found = hierarchy.upwards([root, children])
    assert found[0][0] == pytest.approx((2 * 10 + 7) / 3)
    np.testing.assert_allclose(hierarchy.downwards(found, found[0][0])[-1], [4.0, 5.0])


# --------------------------------------------------------------------------------------------- random walk


def haar(level: int) -> np.ndarray:
    """Return the Haar functions of values +1 and -1, and the constant one, a row each."""
    size, rows = 1 << level, [np.ones(1 << level)]
    for half in (size >> k for k in range(1, level + 1)):
        for start in range(0, size, 2 * half):
            row = np.zeros(size)
            row[start : start + half], row[start + half : start + 2 * half] = 1, -1
            rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("closed", [True, False])
def test_the_coefficients_of_the_walk_are_independent_laplace_variables(closed):
    level = 3
    rng = np.random.default_rng(2)
    draws = np.array([walk.steps(level, rng, closed=closed) for _ in range(20_000)])
    functions = haar(level)
    found = draws @ functions.T
    scale = level + (not closed)
    np.testing.assert_allclose(np.abs(found[:, 1:]).mean(axis=0), scale, rtol=0.05)
    np.testing.assert_allclose(np.abs(found[:, 0]).mean(), 0 if closed else scale, rtol=0.05, atol=1e-9)
    correlation = np.corrcoef(found[:, closed:].T)
    assert np.abs(correlation - np.eye(len(correlation))).max() < 0.05
    # regularity: the potential changes by at most 1 with each step, as if the steps were independent Lap(1)
    potential = np.abs(functions).sum(axis=0) / (level + 1)
    assert (potential == 1).all()


def test_sums_of_the_walk_grow_like_a_power_of_the_logarithm():
    """Boundedness: the largest E|z_1 + ... + z_k| is of order log^(3/2) m; independent steps would give sqrt m."""
    rng = np.random.default_rng(4)
    constants = []
    for level in (4, 8, 12, 16):
        sums = [np.cumsum(walk.steps(level, rng, closed=False)) for _ in range(300)]
        constants.append(float(np.mean(np.abs(sums), axis=0).max()) / level**1.5)
        step = np.mean([np.abs(np.diff(each)).mean() for each in sums])
        assert 0.5 < step < level  # the steps themselves are not small: they hide a row
    assert max(constants) / min(constants) < 2.5
    assert max(constants) < 2

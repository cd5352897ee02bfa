"""The certificate covers: over many releases the true distance exceeds it in at most a share beta of them.

W1 is computed exactly: in closed form on the line, from one atom as a mean, otherwise by an assignment or a flow. A
test rejects when so many misses as it saw have a chance below `ALARM` under the stated beta, so a correct certificate
fails a test with at most that chance (and all seeds are fixed besides). The wrong form, which puts the noisy number of
rows for the true one, is rejected by the same test.
"""

import numpy as np
import pytest
from scipy import optimize, stats

import privmeasure as pm
from depth import some
from privmeasure.domains import Categories
from privmeasure.metrics import wasserstein
from privmeasure.noise.entropy import Key
from privmeasure.releases import certify
from privmeasure.sources.arrays import ArraySource

ALARM = 1e-6
BETA = 0.05
ATOM = 0.3
RELATIONS = ["replace", "add-remove"]
SHAPES = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "one atom": lambda rng, n, d: np.full((n, d), ATOM),
    "Gaussian": lambda rng, n, d: rng.normal(0.4, 0.1, (n, d)).clip(0, 1),
    "clusters": lambda rng, n, d: (rng.random((20, d))[rng.integers(0, 20, n)] + rng.normal(0, 0.01, (n, d))).clip(
        0, 1
    ),
}


def true_distance(shape, points, rows):
    if shape == "one atom":
        return float(np.abs(rows - ATOM).max(axis=1).mean())
    if points.shape[1] > 1 and len(points) == len(rows):
        cost = np.abs(points[:, None] - rows[None]).max(axis=-1)
        return float(cost[optimize.linear_sum_assignment(cost)].mean())
    return float(wasserstein(points, rows, method="exact"))


def misses(mechanism, shape, points, runs, beta=BETA):
    """How many of the certificates of several releases are below the true distance, and their mean."""
    found, missed = [], 0
    for seed in range(runs):
        source = ArraySource(points, width=points.shape[1], threads=1)
        measure = mechanism.release(source, Key.insecure(seed))
        value = measure.certificate(beta).value
        missed += true_distance(shape, points, measure.sample(seed=seed)) > value
        found.append(value)
    return missed, float(np.mean(found))


def covers(missed, runs, beta=BETA):
    """Whether so many misses are compatible with a chance of beta each."""
    return stats.binom.sf(missed - 1, runs, beta) >= ALARM


def box(dimension):
    return pm.Box([(0, 1)] * dimension)


def check(mechanism, dimension, rows, shape, runs, beta=BETA):
    points = SHAPES[shape](np.random.default_rng(rows), rows, dimension)
    missed, mean = misses(mechanism, shape, points, runs, beta)
    assert covers(missed, runs, beta), (shape, missed, runs)
    return mean


@pytest.mark.parametrize("relation", RELATIONS)
@some("shape", 1, ["uniform", "one atom"])
@pytest.mark.parametrize("make", [pm.PMM, pm.PMM.paper, pm.PSMM])
def test_on_the_line(make, shape, relation):
    mean = check(make(box(1), pm.Privacy(1, relation), rows=400), 1, 400, shape, 40)
    assert mean < 0.4  # and it is not empty


@pytest.mark.parametrize("relation", RELATIONS)
@some("dimension", 1, [2, 3])
@some("shape", 1, ["one atom", "uniform"])
def test_in_the_cube(dimension, shape, relation):
    depth, rows = 2 * dimension, 300 if relation == "replace" else 120
    mean = check(pm.PMM(box(dimension), pm.Privacy(8, relation), depth=depth), dimension, rows, shape, 20)
    assert mean < 0.6


def test_the_number_of_rows_may_be_read_off_the_noisy_counts():
    """PSMM with a depth of its own: no number of rows is bought, and the interval comes from the sum of the counts."""
    assert check(pm.PSMM(box(1), pm.Privacy(1, "add-remove"), depth=4), 1, 400, "one atom", 60) < 0.3


# -------------------------------------------------------------------------------------------------- the wrong form


def misses_in_one_category(runs, beta=BETA):
    """All rows are in the first of two categories, so W1 is the share of the second; cells have no size."""
    mechanism = pm.PMM(Categories(2), pm.Privacy(1, "add-remove"), pm.Recipe(shrinkage="none"), depth=1)
    missed = 0
    for seed in range(runs):
        measure = mechanism.release(ArraySource(np.zeros((200, 1)), width=1), Key.insecure(seed))
        missed += float(measure.sample(seed=1).mean()) > measure.certificate(beta).value
    return missed


def test_the_noisy_number_for_the_true_one_is_wrong(monkeypatch):
    runs = 150
    assert covers(misses_in_one_category(runs), runs)
    monkeypatch.setattr(certify, "_rows", lambda plan, *_: (plan.rows, plan.rows))
    missed = misses_in_one_category(runs)
    assert not covers(missed, runs)
    assert 0.6 < 1 - missed / runs < 0.91


def test_an_error_that_is_left_out_is_seen(monkeypatch):
    """With a tenth of the simulated noise the certificate on the line misses far too often."""
    points = SHAPES["uniform"](np.random.default_rng(1), 400, 1)
    mechanism = pm.PMM(box(1), pm.Privacy(0.3, "replace"), pm.Recipe(shrinkage="none"), rows=400, depth=6)
    assert covers(misses(mechanism, "uniform", points, 60)[0], 60)
    original = certify._Law.limits
    monkeypatch.setattr(certify._Law, "limits", lambda law, beta: 0.1 * original(law, beta))
    assert not covers(misses(mechanism, "uniform", points, 60)[0], 60)


# ----------------------------------------------------------------------------------------------- it is worth having


def ratio(dimension, rows, shape, seeds, bins=None):
    """The mean certificate over the mean true distance, default PMM under "replace" at epsilon = 1."""
    points = SHAPES[shape](np.random.default_rng(5), rows, dimension)
    mechanism, found, true = pm.PMM(box(dimension), pm.Privacy(1, "replace")), [], []
    for seed in range(seeds):
        measure = mechanism.release(ArraySource(points, width=dimension), Key.insecure(seed))
        synthetic = measure.sample(seed=seed)
        found.append(measure.certificate().value)
        if dimension == 1 or shape == "one atom":
            true.append(true_distance(shape, points, synthetic))
        else:
            true.append(float(wasserstein(points, synthetic, domain=measure.domain, method="grid", bins=bins)))
    return np.mean(found) / np.mean(true)


@pytest.mark.parametrize("rows", [10_000, pytest.param(100_000, marks=pytest.mark.deep)])
@pytest.mark.parametrize("shape", ["uniform", "Gaussian", "clusters"])
def test_at_most_ten_times_the_truth_on_the_line(shape, rows):
    assert 1 < ratio(1, rows, shape, 3) < 7


@pytest.mark.deep
@pytest.mark.parametrize("dimension", [2, 3])
def test_at_most_ten_times_the_truth_for_one_atom(dimension):
    assert 1 < ratio(dimension, 10_000, "one atom", 2) < 10


@pytest.mark.deep
@pytest.mark.parametrize(("dimension", "bins"), [(2, 256), (3, 32)])
@pytest.mark.parametrize("shape", ["uniform", "Gaussian", "clusters"])
def test_at_most_twelve_times_the_truth_in_the_cube(dimension, bins, shape):
    """The certificate does not know that noise was shrunk: the truth is nearer than it says."""
    assert 1 < ratio(dimension, 10_000, shape, 2, bins) < 12


@pytest.mark.deep
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [pm.PMM, pm.PMM.paper, pm.PSMM])
@pytest.mark.parametrize("beta", [0.05, 0.3])
def test_on_the_line_at_length(make, shape, relation, beta):
    for epsilon, rows, public in ((0.3, 1000, True), (1, 300, False), (4, 100, False)):
        mechanism = make(box(1), pm.Privacy(epsilon, relation), rows=rows if public else None)
        check(mechanism, 1, rows, shape, 150, beta)


@pytest.mark.deep
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [pm.PMM, pm.PMM.paper, pm.PSMM])
def test_in_the_cube_at_length(make, dimension, shape, relation):
    rows = 300 if relation == "replace" else 100
    for epsilon, depth in ((2, dimension), (10, 2 * dimension), (30, 3 * dimension)):
        mechanism = make(box(dimension), pm.Privacy(epsilon, relation), depth=depth)
        check(mechanism, dimension, rows, shape, 60, 0.1)

"""Shrinkage: what is noise is taken back, what is not stays, and nothing looks at the noise that it weighs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depth import some
from privmeasure.domains import Box, Categories, Integers, Product
from privmeasure.estimates import shrinkage
from privmeasure.estimates.consistency import distribute, signed
from privmeasure.estimates.linear import existing, total_estimate, uneven_difference_variances
from privmeasure.estimates.passes import up_pass
from privmeasure.estimates.shrinkage import (
    FEWEST,
    forecasts,
    group_factors,
    octaves,
    shrink_list,
    shrunk,
    shrunk_leaves,
    slopes,
)
from reference import shrinkage as twin
from reference.gls import DenseGLS

DOMAINS = {
    "interval": Box([(0, 1)]),
    "square": Box([(0, 1)] * 2),
    "oblong": Box([(0, 1)] * 2, weights=[1, 5]),
    "cube": Box([(0, 1)] * 3),
    "ages": Integers(0, 99),
    "categories": Categories(90),
    "product": Product([Integers(0, 4), Box([(0, 1)]), Categories(3)]),
}
DEPTH = 7


def tree(seed, domain, *, root):
    """Noisy counts of a few measured levels of data that are partly even, partly in few places."""
    rng = np.random.default_rng(seed)
    there = existing(domain, DEPTH)
    leaves = np.where(there[DEPTH], rng.poisson(rng.choice([0.5, 5, 40]), 1 << DEPTH), 0)
    leaves[np.flatnonzero(there[DEPTH])[rng.integers(there[DEPTH].sum())]] += rng.integers(0, 3000)
    levels = [level for level in (2, 3, 4, 5) if rng.random() < 0.4] + [DEPTH]
    variances = {level: float(10 ** rng.uniform(-1, 3)) for level in [*([0] if root else []), *levels]}
    noisy = {
        level: np.where(
            there[level],
            leaves.reshape(1 << level, -1).sum(axis=1) + np.rint(rng.laplace(0, math.sqrt(v / 2), 1 << level)),
            0,
        )
        for level, v in variances.items()
    }
    return rng, there, noisy, variances, int(leaves.sum())


def neighbours_of(domain):
    """Cells next to each other along the axis of the next cut, by where their middles are."""

    def neighbours(level, cell):
        cells = np.arange(1 << level, dtype=np.uint64)
        cuts = [domain.cuts(level), domain.cuts(level + 1)]
        axis = next(i for i in range(domain.width) if cuts[0][i] < cuts[1][i])
        centres = domain.centre(cells, level)
        found = []
        for side in (-1, 1):
            goal = centres[cell].copy()
            goal[axis] += side * 2.0 ** -cuts[0][axis]
            found.append(int(domain.locate(goal[np.newaxis], level)[0]))  # beyond the end: the cell itself
        return tuple(found)

    return neighbours


@pytest.mark.parametrize("name", DOMAINS)
@some("seed", 2, range(8))
@pytest.mark.parametrize("root", [False, True])
def test_it_equals_its_twin(name, seed, root):
    domain = DOMAINS[name]
    _, there, noisy, variances, total = tree(seed, domain, root=root)
    if root:
        total = max(1, round(total_estimate(noisy, variances, DEPTH, there[DEPTH])[0]))
    mass = shrunk_leaves(domain, dict(noisy), variances, total, DEPTH)
    beside = neighbours_of(domain) if isinstance(domain, Box) else None
    assert mass.tolist() == twin.leaves(noisy, variances, total, DEPTH, there, beside)
    assert mass.sum() == total
    assert mass.min() >= 0
    assert not mass[~there[DEPTH]].any()


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("seed", range(4))
def test_the_total_is_that_of_least_squares(name, seed):
    _, there, noisy, variances, _ = tree(seed, DOMAINS[name], root=True)
    gls = DenseGLS(variances, DEPTH, there[DEPTH])
    value, variance = total_estimate(noisy, variances, DEPTH, there[DEPTH])
    assert value == pytest.approx(float(gls.estimates(noisy)[0][0]), rel=1e-9)
    assert variance == pytest.approx(float(gls.covariance(0)[0, 0]), rel=1e-6)


@pytest.mark.parametrize("name", DOMAINS)
def test_the_variances_of_differences_are_those_of_least_squares(name):
    """Given the parent's total: take the root of each subtree as known."""
    _, there, _, variances, _ = tree(1, DOMAINS[name], root=False)
    found = uneven_difference_variances(variances, DEPTH, there)
    gls = DenseGLS(variances, DEPTH, there[DEPTH])
    cov = gls.covariance(1, exact_root=True)
    assert found[0][0] == pytest.approx(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1], rel=1e-6, abs=1e-6)


def test_without_noise_nothing_shrinks():
    """f = 1: the rule is the signed rule as it was."""
    rng = np.random.default_rng(5)
    leaves = rng.poisson(20, 128)
    noisy = {4: leaves.reshape(16, 8).sum(axis=1), 7: leaves}
    tiny = {4: 1e-12, 7: 1e-12}
    mass = shrunk_leaves(Box([(0, 1)]), dict(noisy), tiny, int(leaves.sum()), 7)
    plain = distribute(np.array([leaves.sum()]), up_pass(dict(noisy), tiny, 7, signed, blue=True), signed)
    assert mass.tolist() == plain.tolist() == leaves.tolist()
    e = rng.normal(size=20)
    assert shrunk(e, np.ones(20), np.full(20, 9.0), np.zeros(20)) == pytest.approx(e)


def test_few_parents_stay_as_they_were_estimated():
    e = np.arange(FEWEST - 1.0)
    assert shrunk(e, np.zeros(len(e)), np.full(len(e), 5.0), np.full(len(e), 1e9)) == pytest.approx(e)
    e = np.arange(float(FEWEST))
    assert shrunk(e, np.full(len(e), 2.0), np.full(len(e), 5.0), np.full(len(e), 1e9)) == pytest.approx(2)


def test_parents_without_noise_count_for_no_group():
    e, v = np.full(FEWEST, 3.0), np.ones(FEWEST)
    v[0] = 0
    assert group_factors(e, v, np.zeros(FEWEST, np.intp)) == pytest.approx(1)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_the_differences_of_a_group_move_by_no_more_than_its_noise(seed):
    """What T6 rests on, for any groups, forecasts and values: |x - e|_2 <= sqrt(sum V)."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 300))
    e, b = rng.laplace(0, 10 ** rng.uniform(-2, 3), n), rng.normal(0, 10 ** rng.uniform(-2, 3), n)
    v, m = rng.exponential(10 ** rng.uniform(-2, 4), n) * (rng.random(n) < 0.9), 10 ** rng.uniform(-1, 5, n)
    x, groups = shrunk(e, b, m, v), octaves(m)
    for group in np.unique(groups):
        here = groups == group
        assert np.linalg.norm((x - e)[here]) <= math.sqrt(v[here].sum()) * (1 + 1e-9) + 1e-9


def test_even_data_become_even_and_atoms_stay():
    rng = np.random.default_rng(0)
    n, v = 1 << 12, 50.0
    leaves = np.full(n, 20)
    leaves[700] += 5000
    noisy = {8: leaves.reshape(256, -1).sum(axis=1) + np.rint(rng.laplace(0, 5, 256)), 12: leaves + 0.0}
    noisy[12] = noisy[12] + np.rint(rng.laplace(0, 5, n))
    plain = distribute(np.array([leaves.sum()]), up_pass(dict(noisy), {8: v, 12: v}, 12, signed, blue=True), signed)
    mass = shrunk_leaves(Box([(0, 1)] * 2), dict(noisy), {8: v, 12: v}, int(leaves.sum()), 12)
    others = np.arange(n) >> 4 != 700 >> 4
    assert np.abs(mass - leaves)[others].mean() < 0.3 * np.abs(plain - leaves)[others].mean()
    assert abs(mass[700] - leaves[700]) < 60


@pytest.mark.parametrize("name", ["interval", "square", "ages"])
def test_groups_and_forecasts_never_see_the_noise_that_they_weigh(name, monkeypatch):
    """Other noise in a level changes what is expected of deeper levels alone."""
    domain, seen = DOMAINS[name], []

    def spy(difference, forecast, expected, variance):
        seen.append((forecast.tolist(), expected.tolist()))
        return shrunk(difference, forecast, expected, variance)

    monkeypatch.setattr(shrinkage, "shrunk", spy)
    there = existing(domain, 6)
    rng, records = np.random.default_rng(3), []
    noisy = {level: np.where(there[level], rng.integers(0, 50, 1 << level), 0) for level in (0, 3, 6)}
    noisy[0][:] = 300
    for changed in (None, 6, 3):
        seen.clear()
        these = {k: y + (rng.integers(-20, 20, len(y)) * there[k] if k == changed else 0) for k, y in noisy.items()}
        shrunk_leaves(domain, these, {0: 9.0, 3: 4.0, 6: 4.0}, 300, 6)
        assert len(seen) == 3 + 6
        records.append(list(seen))
    assert records[1] == records[0]  # the deepest level's noise is in no group and no forecast
    assert records[2][:3] == records[0][:3]
    assert records[2][3:6] == records[0][3:6]
    assert records[2][6:] != records[0][6:]


def test_slopes_of_a_plane_are_exact_inside():
    """A density that is linear in both directions is split as it is, but at the ends of the axes."""
    box, level = Box([(0, 1)] * 2), 6
    cells = np.arange(1 << level, dtype=np.uint64)
    middle = box.centre(cells, level)
    density = lambda x: 100 + 30 * x[:, 0] - 20 * x[:, 1]  # noqa: E731
    children = density(box.centre(np.arange(1 << (level + 1), dtype=np.uint64), level + 1)) / 2
    inside = (middle[:, 0] > 1 / 8) & (middle[:, 0] < 7 / 8)
    found = slopes(density(middle), level, box)
    assert found[inside] == pytest.approx((children[0::2] - children[1::2])[inside])
    assert np.abs(found) == pytest.approx(np.minimum(np.abs(found), density(middle)))


def test_expected_masses_are_kept_and_not_negative():
    there = existing(DOMAINS["ages"], 7)
    for domain, exists in ((Box([(0, 1)] * 3), None), (DOMAINS["ages"], there)):
        mass = np.random.default_rng(0).integers(0, 100, 8) * (1 if exists is None else exists[3])
        steps = forecasts(mass, 3, domain, exists)
        for level in range(3, 7):
            expected, forecast = next(steps)
            assert len(expected) == 1 << level
            assert expected.sum() == pytest.approx(mass.sum())
            assert expected.min() >= 0
            assert (np.abs(forecast) <= expected).all()


def test_a_list_that_noise_hides_is_drawn_to_its_mean_and_one_that_stands_out_is_not():
    """Forty values, 400 seeds: total variation after cutting off, with and without shrinkage."""
    rng, alike = np.random.default_rng(3), np.ones(40, bool)
    even, steep = rng.integers(80, 120, 40).astype(float), 4000 * 0.5 ** np.arange(40.0)

    def error(true, noise, variance):
        parts = []
        for _ in range(400):
            leaves = shrink_list(true + rng.laplace(0, noise, 40), np.full(40, variance), alike)
            kept = np.maximum(leaves, 0)
            parts.append(np.abs(kept / kept.sum() - true / true.sum()).sum() / 2)
        return np.mean(parts)

    assert error(even, 150, 2 * 150.0**2) < 0.5 * error(even, 150, 0.0)
    assert error(even, 1, 2.0) < 1.01 * error(even, 1, 0.0)
    assert error(steep, 20, 2 * 20.0**2) < 1.01 * error(steep, 20, 0.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(0, 1e12), st.integers(0, 19))
def test_shrinking_a_list_keeps_its_total_and_what_is_not_alike(values, variance, other):
    leaves, alike = np.array(values), np.arange(len(values)) != other
    found = shrink_list(leaves, np.full(len(leaves), variance), alike)
    assert found.sum() == pytest.approx(leaves.sum(), abs=1e-6)
    assert np.array_equal(found[~alike], leaves[~alike])
    if alike.any():
        assert np.ptp(found[alike]) <= np.ptp(leaves[alike]) + 1e-6

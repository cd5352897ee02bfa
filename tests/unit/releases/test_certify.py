"""The certificate T4: its norms, its bounds for one known noise, its words and its files."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privmeasure as pm
from depth import some
from privmeasure.domains import Categories, Circle, Finite, Integers, Nullable, Product, Sphere
from privmeasure.errors import ArgumentError
from privmeasure.estimates.linear import existing as there_are
from privmeasure.estimates.linear import noise_variance, total_coefficients, total_estimate
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import LaplaceFacts
from privmeasure.releases import certify
from privmeasure.releases.certificate import Certificate
from privmeasure.releases.certify import _Tree, estimate_tail, order_statistic
from privmeasure.sources.arrays import ArraySource
from privmeasure.transport import bounded_lipschitz
from privmeasure.transport.cells import cell_norm

UNIT = (0, 1)
TAXONOMY = [(0.25, [0, 0, 1, 1, 2, 2, 2]), (0.5, [0, 0, 0, 0, 1, 1, 1])]
DOMAINS = {
    "interval": (pm.Box([UNIT]), 5),
    "square": (pm.Box([UNIT] * 2), 5),
    "weighted square": (pm.Box([UNIT] * 2, weights=[1, 0.3]), 5),
    "cube": (pm.Box([UNIT] * 3), 6),
    "integers": (Integers(0, 20), 5),
    "circle": (Circle(24), 5),
    "categories": (Categories(11), 4),
    "taxonomy": (Categories(7, taxonomy=TAXONOMY), 3),
    "finite": (Finite.from_points(np.random.default_rng(0).random((17, 2))), 5),
    "product": (Product([Integers(0, 4), Categories(3)]), 5),
    "missing": (Product([Nullable(pm.Box([UNIT])), pm.Box([UNIT])]), 5),
    "sphere": (Sphere(), 5),
    "interval or missing": (Nullable(pm.Box([UNIT])), 5),
    "integers or missing": (Nullable(Integers(0, 20)), 6),
    "circle or missing": (Nullable(Circle(24)), 5),
    "taxonomy or missing": (Nullable(Categories(7, taxonomy=TAXONOMY)), 4),
}
ABOVE = {"interval or missing": 1.25, "integers or missing": 1.25, "circle or missing": 1.25}
"""By how much norms that are upper bounds may exceed transport."""
EVERY = pytest.mark.parametrize("name", DOMAINS)


def existing(domain, level):
    cells = np.arange(1 << level, dtype=np.uint64)
    return cells[domain.exists(cells, level)]


def distances(domain, level):
    centres = domain.centre(existing(domain, level), level)
    first, second = np.repeat(centres, len(centres), axis=0), np.tile(centres, (len(centres), 1))
    return domain.distance(first, second).reshape(len(centres), len(centres))


def exact(domain, level, mass):
    """W1 of whole masses on the cells, by a flow between all pairs."""
    there = existing(domain, level).astype(int)
    if len(there) == 1:
        return 0.0
    return bounded_lipschitz(mass[there], np.zeros_like(mass[there]), distances(domain, level))


def signed(domain, level, rng, size=9):
    """A random whole mass on the cells that exist, total 0."""
    there, mass = existing(domain, level).astype(int), np.zeros(1 << level, np.int64)
    mass[there] = rng.integers(-size, size + 1, len(there))
    mass[there[0]] -= mass.sum()
    return mass


# ------------------------------------------------------------------------------------------------------------- norms


@EVERY
def test_the_norm_of_cells_is_that_of_transport(name):
    domain, depth = DOMAINS[name]
    rng = np.random.default_rng(1)
    for level in {2, depth}:
        norm = cell_norm(domain, level)
        for _ in range(3):
            mass = signed(domain, level, rng)
            expected = exact(domain, level, mass)
            assert (
                expected * (1 - 1e-9) <= norm(mass.astype(float)) <= ABOVE.get(name, 1) * expected * (1 + 1e-6) + 1e-4
            )
        assert norm(np.zeros(1 << level)) <= 1e-4


@pytest.mark.parametrize("name", ["square", "product", "interval", "taxonomy"])
def test_real_masses_are_rounded_upwards(name):
    domain, depth = DOMAINS[name]
    norm, rng = cell_norm(domain, depth), np.random.default_rng(2)
    for _ in range(5):
        mass = signed(domain, depth, rng, 1000)
        expected = exact(domain, depth, mass) / 1000 / np.pi
        assert expected * (1 - 1e-9) <= norm(mass / 1000 / np.pi) <= expected * (1 + 1e-6) + 1e-5


# ------------------------------------------------------------------------------------------------------------ bounds


def plan_of(domain, depth, levels=None, neighbours="replace", rows=500):
    plan = pm.PMM(domain, pm.Privacy(1, neighbours), depth=depth).plan(rows)
    assert plan.depth == depth
    return plan


@EVERY
@pytest.mark.parametrize(("atom", "quick"), [(False, False), (True, False), (False, True)])
def test_every_bound_holds_if_the_noise_obeys_the_limits(name, atom, quick):
    """With limits that are the statistics of the noise itself: each pair of levels gives an upper bound, surely."""
    domain, depth = DOMAINS[name]
    tree, rng, rows = _Tree(domain, plan_of(domain, depth), quick=quick), np.random.default_rng(3), 60
    there = existing(domain, depth).astype(int)
    for _ in range(4):
        x, y = np.zeros(1 << depth, np.int64), np.zeros(1 << depth, np.int64)
        x[there] = rng.multinomial(rows, np.eye(len(there))[3] if atom else rng.dirichlet(np.ones(len(there))))
        y[there] = rng.multinomial(rows, x[there] / rows * 0.9 + 0.1 / len(there))
        noisy = {j: x.reshape(1 << j, -1).sum(axis=1) + rng.integers(-6, 7, 1 << j) for j in tree.laws}
        error = tree.leaves(noisy, rows) - x
        assert abs(error.sum()) < 1e-8
        limits = tree.statistics(error)
        bounds = tree.bounds(noisy, y.astype(float), rows, limits)
        assert depth in {leaf for _, leaf in bounds}
        for (k, leaf), (noise, gap) in bounds.items():
            between = (x - y).reshape(1 << leaf, -1).sum(axis=1)
            assert exact(domain, leaf, between) <= (noise + gap) * rows * (1 + 1e-9) + 1e-9, (k, leaf)


def test_limits_that_are_too_small_are_caught():
    """The same comparison fails if the error is left out: it can fail."""
    domain, depth = DOMAINS["square"]
    tree, rows = _Tree(domain, plan_of(domain, depth)), 60
    x = np.zeros(32, np.int64)
    x[5] = rows
    noisy = {j: x.reshape(1 << j, -1).sum(axis=1) for j in tree.laws}
    noisy[5] = np.roll(noisy[5], 9)
    y = np.roll(x, 9)
    noisy = {j: y.reshape(1 << j, -1).sum(axis=1) for j in tree.laws}
    silent = tree.bounds(noisy, y.astype(float), rows, 0 * tree.statistics(np.zeros(32)))
    assert min(noise + gap for noise, gap in silent.values()) * rows < exact(domain, depth, x - y)


def test_few_occupied_cells_may_lose_little():
    """One atom in the cube: the bound along the tree is a fraction of that by transport."""
    domain = pm.Box([UNIT] * 3)
    release = pm.PMM(domain, pm.Privacy(1, "replace"), depth=9).release(
        ArraySource(np.full((4000, 3), 0.3), width=3), Key.insecure(1)
    )
    tree = _Tree(domain, release.plan)
    released = np.zeros(1 << 9)
    released[release.cells.astype(int)] = release.mass
    bounds = tree.bounds(release.noisy, released, 4000, tree.simulated(0.05).limits(0.05))
    assert 2 * sum(bounds[0, 9]) < sum(bounds[9, 9])


@pytest.mark.parametrize("scale", [Fraction(1, 9), Fraction(1), Fraction(8), Fraction(100, 3)])
@pytest.mark.parametrize("share", [0.4, 0.025, 0.0005])
def test_the_tail_of_the_noise_is_exact(scale, share):
    p, z = np.exp(-1 / float(scale)), np.arange(-4000, 4001)
    law = (1 - p) / (1 + p) * p ** np.abs(z)
    q = LaplaceFacts(scale).limit(share)
    assert law[np.abs(z) > q].sum() <= share * (1 + 1e-9)
    assert q == 0 or law[np.abs(z) > q - 1].sum() > share


def test_order_statistics():
    draws = np.random.default_rng(0).permutation(99) + 1.0
    assert [order_statistic(draws, beta) for beta in (0.5, 0.05, 0.01)] == [50, 95, 99]


def test_simulated_noise_has_the_law_of_the_noise():
    rng, scale = np.random.default_rng(0), Fraction(5, 2)
    drawn = LaplaceFacts(scale).simulated(rng, 200_000)
    p = np.exp(-0.4)
    for z in range(-3, 4):
        expected = (1 - p) / (1 + p) * p ** abs(z)
        assert abs((drawn == z).mean() - expected) < 5 * (expected / 200_000) ** 0.5


def test_simulated_sums_have_the_law_of_the_sum():
    rng, scale = np.random.default_rng(0), Fraction(3)
    law = LaplaceFacts(scale)
    one, many = law.simulated(rng, 64 * 20_000), law.simulated(rng, 20_000, terms=64)
    sums = one.reshape(-1, 64).sum(axis=1)
    for q in (0.05, 0.5, 0.9, 0.99):
        assert abs(np.quantile(sums, q) - np.quantile(many, q)) < 0.05 * sums.std() / (1 - max(q, 0.5)) ** 0.5


# ---------------------------------------------------------------------------------------------------- certificates


def release(domain=None, neighbours="replace", rows=3000, mechanism=pm.PMM, seed=1, epsilon=1, **options):
    domain = domain or pm.Box([UNIT])
    low, high = domain.extent(np.zeros(1, np.uint64), 0)
    points = low + (high - low) * np.random.default_rng(seed).beta(2, 5, (rows, domain.width))
    made = mechanism(domain, pm.Privacy(epsilon, neighbours), **options)
    return made.release(ArraySource(points, width=domain.width), Key.insecure(seed))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", [pm.PMM, pm.PMM.paper, pm.PSMM])
@some("name", 2, ["interval", "square", "taxonomy", "circle", "product"])
def test_the_parts_add_up_and_the_file_brings_it_back(tmp_path, neighbours, mechanism, name):
    domain, depth = DOMAINS[name]
    measure = release(domain, neighbours, mechanism=mechanism, depth=depth)
    found = measure.certificate()
    assert found.value == pytest.approx(min(found.noise + found.gap + found.cell, found.diameter))
    assert 0 <= found.value <= found.diameter == domain.diameter(0)
    assert found.rows_low <= measure.total <= found.rows_high
    assert (found.rows_low == found.rows_high == 3000) or neighbours == "add-remove"
    assert json.loads(json.dumps(found.to_json(), allow_nan=False)) == found.to_json()
    assert Certificate(**found.to_json()) == found
    measure.save(tmp_path / "x")
    assert pm.load(tmp_path / "x").certificate() == found
    certify._laws.clear()
    assert measure.certificate() == found  # the simulation is a function of public values
    assert measure.certificate(0.3).value <= found.value


def test_it_says_which(monkeypatch):
    assert release().certificate().method == "exact"
    assert release(depth=16).certificate().method == "exact"  # on a line at any size
    square = release(pm.Box([UNIT] * 2), depth=6).certificate()
    assert (square.method, square.exact_level, square.level) == ("exact", 6, 6)
    words = str(square)
    assert f"at most {square.value:.4g} with probability 0.95" in words
    assert "exact transport" in words
    assert "says nothing" not in words
    monkeypatch.setattr(certify, "most_exact", lambda domain: 16)  # as if flows were dearer
    joined = release(pm.Box([UNIT] * 2), depth=8, rows=100_000).certificate()
    assert (joined.method, joined.exact_level, joined.level) == ("exact above tree", 4, 8)
    assert "exact transport at level 4, along the tree below" in str(joined)
    monkeypatch.setattr(certify, "most_exact", lambda domain: 1)
    along = release(pm.Box([UNIT] * 2), depth=8, rows=100_000).certificate()
    assert (along.method, along.exact_level) == ("tree", 0)
    assert joined.value < along.value < 1.5 * joined.value


@pytest.mark.parametrize("rows", [30, 200])
def test_a_certificate_that_stops_above_the_leaves_counts_a_whole_cell(rows):
    """A row of the data and a row of the release may lie at opposite ends of one cell of that level."""
    domain = pm.Box([UNIT] * 2)
    found = release(domain, depth=10, rows=rows).certificate()
    assert found.level < 10
    assert found.cell >= domain.diameter(found.level)
    assert found.value >= min(found.noise + found.gap + domain.diameter(found.level), 1)


@pytest.mark.deep
def test_it_is_below_the_guarantee():
    """Not always: on a line the guarantee is a mean, and nearer to it than a limit for all but 5 % of releases is."""
    measure = release(pm.Box([UNIT] * 2), rows=10_000)
    assert measure.certificate().value < measure.plan.guarantee


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("options", [{"rows": 1}, {"rows": 3, "epsilon": 0.01}, {"rows": 50, "depth": 0}])
def test_where_it_says_nothing_it_says_so(neighbours, options):
    found = release(Integers(0, 1), neighbours=neighbours, **options).certificate()
    assert found.vacuous
    assert found.value == 1.0
    assert "says nothing" in str(found)


def test_rows_that_are_spread_evenly_are_never_farther_than_a_corner():
    found = release(rows=10_000, depth=0).certificate()
    assert (found.noise, found.gap) == (0, 0)
    assert 0.5 < found.value < 0.52  # the mean distance from an end of the interval, and a little


@pytest.mark.parametrize("depth", [0, 3])
def test_a_flat_release_without_a_number_of_rows(depth):
    """PSMM with a depth of its own buys no number of rows: the interval comes from the sum of the noisy counts."""
    measure = release(neighbours="add-remove", mechanism=pm.PSMM, depth=depth)
    found = measure.certificate()
    assert found.rows_low < 3000 < found.rows_high
    assert found.rows_low + found.rows_high == 2 * measure.total


def test_centres_cost_half_a_cell():
    uniform, centre = (release(recipe=pm.Recipe(placement=place)) for place in ("uniform", "centre"))
    assert centre.certificate().cell == centre.domain.radius(centre.level)
    assert centre.certificate().cell < uniform.certificate().cell < 2 * uniform.domain.radius(uniform.level)


def test_without_noisy_counts_there_is_none():
    for measure in (release(depth=40, rows=20), replace(release(), noisy=None)):
        with pytest.raises(ArgumentError, match="noisy counts"):
            measure.certificate()


@pytest.mark.parametrize("beta", [0, 1, 0.51, 1e-4, -1, True, "0.05", None, float("nan")])
def test_wrong_betas_are_named(beta):
    with pytest.raises(ArgumentError, match="beta"):
        release(rows=10, depth=1).certificate(beta)


def test_nothing_is_remembered_for_ever(monkeypatch):
    monkeypatch.setattr(certify, "REMEMBERED", 3)
    for step in range(5):
        release(rows=10, depth=1, epsilon=1 + step / 100).certificate()
    assert len(certify._laws) == 3


# ------------------------------------------------------------------------------------------- an estimated total


@pytest.mark.parametrize("domain", [pm.Box([UNIT]), Integers(0, 20), Categories(11)], ids=repr)
def test_the_interval_of_an_estimated_number_of_rows_has_its_law(domain):
    """Against simulated noise: at most the stated share lies beyond, and the interval is not twice too wide."""
    scales = {0: Fraction(64), 2: Fraction(9, 2), 4: Fraction(3)}
    exists = there_are(domain, 4)
    variances = {level: noise_variance(scale) for level, scale in scales.items()}
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(4000):
        noisy = {
            level: LaplaceFacts(scale).simulated(rng, 1 << level) * exists[level] for level, scale in scales.items()
        }
        errors.append(total_estimate(noisy, variances, 4, exists[4])[0])
    weights = total_coefficients(variances, 4, None if exists[4].all() else exists)
    last = {level: np.broadcast_to(w, 1 << level) @ noisy[level] for level, w in weights.items()}
    assert sum(last.values()) == pytest.approx(errors[-1])
    for share in (0.2, 0.05, 0.0125):
        q = estimate_tail(scales, exists, share)
        assert np.mean(np.abs(np.rint(errors)) > q) <= share
        assert q <= 2 * np.quantile(np.abs(errors), 1 - share) + 2


def test_the_interval_is_that_of_the_estimate():
    """Far narrower than the noise of the cheap number that was bought first."""
    points = np.random.default_rng(0).random((3000, 1))
    measure = pm.PMM(pm.Box([UNIT]), pm.Privacy(1, "add-remove")).release(ArraySource(points, width=1), Key.insecure(3))
    found = measure.certificate()
    assert found.rows_low <= 3000 <= found.rows_high
    assert found.rows_high - found.rows_low < 0.5 * 2 * LaplaceFacts(measure.plan.scales[0]).limit(0.0125)

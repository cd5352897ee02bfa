"""The flat mechanism: sizes, spaces, budgets, optimality, bounds."""

from fractions import Fraction

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.domains import Categories, Circle, Finite, Integers, Nullable, Product, Sphere, is_ours
from privmeasure.errors import ArgumentError, DataError
from privmeasure.estimates import projection
from privmeasure.estimates.projection import cell_space, project
from privmeasure.mechanisms import base, psmm
from privmeasure.noise.entropy import Key
from privmeasure.sources.arrays import ArraySource
from privmeasure.transport import bounded_lipschitz, closest_measure, line_wasserstein

RNG = np.random.default_rng(3)
METRIC = RNG.random((40, 2))
DOMAINS = {
    "line": (pm.Box([(0, 1)]), RNG.random((900, 1))),
    "square": (pm.Box([(0, 1)] * 2), RNG.random((900, 2))),
    "cube": (pm.Box([(-1, 1)] * 3), RNG.normal(0, 0.3, (900, 3))),
    "weighted": (pm.Box([(0, 1)] * 2, weights=[1, 0.3]), RNG.random((900, 2))),
    "ages": (Integers(0, 120), RNG.integers(0, 121, (900, 1)).astype(float)),
    "categories": (Categories(11), RNG.integers(0, 11, (900, 1)).astype(float)),
    "circle": (Circle(24.0), RNG.random((900, 1)) * 24),
    "sphere": (Sphere(), RNG.normal(0, 30, (900, 2))),
    "finite": (Finite.from_points(METRIC), RNG.integers(0, 40, (900, 1)).astype(float)),
    "product": (Product([Nullable(Integers(0, 9)), Categories(3)]), RNG.integers(0, 3, (900, 2)).astype(float)),
}


def release(domain, points, neighbours="replace", **options):
    mechanism = pm.PSMM(domain, pm.Privacy(2, neighbours), **options)
    return mechanism.release(ArraySource(points, width=domain.width), Key.insecure(5))


@pytest.mark.parametrize("placement", ["uniform", "centre"])
@pytest.mark.parametrize("name", DOMAINS)
def test_it_works_on_every_domain(name, placement, tmp_path):
    domain, points = DOMAINS[name]
    released = release(domain, points, placement=placement)
    assert released.total == len(points)
    assert domain.exists(released.cells, released.level).all()
    rows = released.sample(seed=1)
    cells, counts = np.unique(domain.locate(rows, released.level), return_counts=True)
    assert (cells == released.cells).all()
    assert (counts == released.mass).all()
    released.save(tmp_path / "x.parquet")
    loaded = pm.load(tmp_path / "x.parquet")
    assert loaded.plan == released.plan
    assert loaded.plan.mechanism == "psmm"
    assert np.array_equal(loaded.sample(seed=1), rows, equal_nan=True)


@pytest.mark.parametrize("options", [{}, {"rows": 1000}, {"depth": 4}, {"depth": 0}])
@pytest.mark.parametrize("rows", [0, 1, 2, 1000])
def test_sizes_under_add_remove(options, rows):
    released = release(pm.Box([(0, 1)] * 2), np.full((rows, 2), 0.3), "add-remove", **options)
    assert released.total >= 1
    assert released.plan.rows == released.total
    assert released.plan.rows_are == "released"
    assert released.plan.spent <= 2


@pytest.mark.parametrize("options", [{}, {"rows": 1000}, {"depth": 4}, {"depth": 0}])
def test_sizes_under_replace(options):
    assert release(pm.Box([(0, 1)] * 2), np.full((77, 2), 0.3), **options).total == 77
    with pytest.raises(DataError):
        release(pm.Box([(0, 1)] * 2), np.empty((0, 2)), **options)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("options", [{}, {"rows": 500}, {"depth": 6}])
def test_what_is_drawn_is_what_was_planned(monkeypatch, neighbours, options):
    drawn, real = [], base.law_of

    class Recorder:
        def __init__(self, name, scale):
            self.name, self.scale = name, scale

        def draw(self, key, *, part, level, cells):
            drawn.extend((part, level, int(cell), self.scale) for cell in cells)
            return real(self.name, self.scale).draw(key, part=part, level=level, cells=cells)

    for module in (base, psmm):
        monkeypatch.setattr(module, "law_of", Recorder)
    privacy = pm.Privacy(2, neighbours, rows_per_person=3)
    mechanism = pm.PSMM(pm.Box([(0, 1)] * 2), privacy, **options)
    plan = mechanism.release(ArraySource(RNG.random((400, 2)), width=2), Key.fresh()).plan
    levels = zip(plan.levels, plan.scales, strict=True)
    assert sorted(drawn) == [(0, level, cell, scale) for level, scale in levels for cell in range(1 << level)]
    assert plan.spent == privacy.epsilon
    assert all(b * s == privacy.sensitivity for b, s in zip(plan.budgets, plan.scales, strict=True))


def test_the_level_depends_on_the_released_number_alone(monkeypatch):
    """With the noisy number forced equal, 1023 and 1024 rows give the same plan."""
    plans = []
    for rows in (1023, 1024):

        class Forced:
            def __init__(self, name, scale, rows=rows):
                self.noise = 1030 - rows

            def draw(self, key, **where):
                return np.full(1, self.noise)

        monkeypatch.setattr(base, "law_of", Forced)
        plans.append(release(pm.Box([(0, 1)] * 2), np.full((rows, 2), 0.3), "add-remove").plan)
    assert plans[0] == plans[1]


@pytest.mark.parametrize("name", ["line", "square", "cube", "ages", "finite", "sphere", "weighted"])
def test_the_projection_is_optimal_in_the_metric_of_the_cells(name):
    """Against the generic form with a matrix of distances between centres."""
    domain, _ = DOMAINS[name]
    level = {"cube": 6, "ages": 6}.get(name, 5)
    cells = np.arange(1 << level, dtype=np.uint64)
    cells = cells[domain.exists(cells, level)]
    centres = domain.centre(cells, level)
    pairs = domain.distance(np.repeat(centres, len(cells), axis=0), np.tile(centres, (len(cells), 1)))
    matrix = pairs.reshape(len(cells), len(cells))
    for seed in range(5):
        noisy = np.random.default_rng(seed).integers(-6, 9, len(cells))
        for total in (max(1, int(noisy.sum())), 40, 3 * len(cells)):
            mass = project(*cell_space(domain, cells, level), noisy, total)
            assert mass.sum() == total
            assert (mass >= 0).all()
            _, best = closest_measure(noisy, total, matrix)
            assert bounded_lipschitz(noisy, mass, matrix) == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_the_space_of_a_box_is_a_grid_in_the_right_order():
    domain = pm.Box([(0, 1), (5, 9)])
    cells = np.arange(32, dtype=np.uint64)
    space, place = cell_space(domain, cells, 5)
    assert space.shape == (8, 4)
    centres = domain.centre(cells, 5)
    rows, columns = np.divmod(place, 4)
    assert np.allclose(centres[:, 0], (rows + 0.5) / 8)
    assert np.allclose(centres[:, 1], 5 + 4 * (columns + 0.5) / 4)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("shape", ["uniform", "atom"])
def test_the_bounds_hold_and_the_simulated_one_is_sharper(neighbours, shape):
    domain, rows = pm.Box([(0, 1)]), 1500
    mechanism = pm.PSMM(domain, pm.Privacy(1, neighbours), placement="centre")
    plan = mechanism.plan(rows)
    simulated, error = mechanism.simulated_bound(rows, draws=30, seed=1)
    x = np.random.default_rng(1).random((rows, 1)) if shape == "uniform" else np.full((rows, 1), 0.3)
    found = []
    for seed in range(40):
        y = mechanism.release(ArraySource(x, width=1), Key.insecure(seed)).sample(seed=seed)
        ends = np.sort(np.concatenate((x, y)).ravel())
        f, g = (np.searchsorted(np.sort(z.ravel()), ends[:-1], "right") / len(z) for z in (x, y))
        found.append(np.abs(f - g) @ np.diff(ends))
    assert np.mean(found) <= simulated + 4 * error
    assert simulated - 4 * error <= plan.guarantee
    assert plan.guarantee <= 40 * np.mean(found) + 0.1


def test_the_facade_takes_it():
    synth = pm.Synthesizer(pm.Box([(0, 1)] * 2), epsilon=1, neighbours="replace", mechanism="psmm")
    assert synth.plan(1000).mechanism == "psmm"
    assert len(synth.fit(RNG.random((500, 2))).sample()) == 500
    assert synth.epsilon_for(w1=0.2, rows=20_000) < 10
    with pytest.raises(ArgumentError, match="recipe"):
        pm.Synthesizer(
            pm.Box([(0, 1)]), epsilon=1, neighbours="replace", mechanism="psmm", recipe=pm.Recipe(rule="isotonic")
        )


def test_too_many_cells_are_refused_before_anything_is_spent():
    with pytest.raises(ArgumentError, match="can project at most 65536"):
        pm.PSMM(pm.Box([(0, 1)] * 2), pm.Privacy(1, "replace"), depth=18)
    with pytest.raises(ArgumentError, match="can project at most 2048"):
        pm.PSMM(Sphere(), pm.Privacy(1, "replace"), depth=12)
    for wrong in ({"depth": -1}, {"depth": 99}, {"rows": 0}, {"placement": "corner"}):
        with pytest.raises(ArgumentError):
            pm.PSMM(pm.Box([(0, 1)]), pm.Privacy(1, "replace"), **wrong)
    with pytest.raises(ArgumentError, match="scale"):
        pm.PSMM(pm.Box([(0, 1)]), pm.Privacy(Fraction(1, 10**8), "replace"))


def test_a_grid_with_too_many_arcs_is_refused_or_avoided():
    """In high dimension a cell has 3^d - 1 neighbours: the level that is chosen has fewer cells, or pairs them."""
    box = pm.Box([(0, 1)] * 5)
    assert projection.most_cells(box) == 2**15
    with pytest.raises(ArgumentError, match="only where all axes are cut alike"):
        pm.PSMM(box, pm.Privacy(1, "replace"), depth=14)
    for d, level in ((8, 8), (20, 10), (40, 11)):
        box = pm.Box([(0, 1)] * d)
        assert projection.most_cells(box) == 2048
        assert release(box, RNG.random((300, d)), depth=level).total == 300
        assert pm.PSMM(box, pm.Privacy(1, "replace")).plan(10**9).cells <= 2048


class Skewed(pm.Box):
    """A third party's domain whose distances break the triangle inequality."""

    def distance(self, x, y):
        return super().distance(x, y) ** 2


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("options", [{}, {"rows": 500}, {"depth": 4}])
def test_a_domain_that_is_no_metric_space_is_refused_before_noise_is_drawn(neighbours, options):
    key = Key.fresh()
    drawn, words = [], key.words
    key.words = lambda **where: drawn.append(where) or words(**where)
    mechanism = pm.PSMM(Skewed([(0, 1)] * 2), pm.Privacy(1, neighbours), **options)
    with pytest.raises(ArgumentError, match="triangle inequality"):
        mechanism.release(ArraySource(RNG.random((500, 2)), width=2), key)
    assert not drawn
    honest = pm.PSMM(pm.Box([(0, 1)] * 2), pm.Privacy(1, neighbours), **options)
    key = Key.insecure(1)
    words = key.words
    key.words = lambda **where: drawn.append(where) or words(**where)
    honest.release(ArraySource(RNG.random((500, 2)), width=2), key)
    assert drawn  # the spy sees what is drawn


@pytest.mark.parametrize("name", DOMAINS)
def test_the_centres_of_our_own_domains_are_metric_spaces(name):
    """So PSMM need not check them: the check that it skips passes."""
    domain, _ = DOMAINS[name]
    assert is_ours(domain)
    for level in range(9):
        cells = np.arange(1 << level, dtype=np.uint64)
        cells = cells[domain.exists(cells, level)]
        centres = domain.centre(cells, level)
        pairs = domain.distance(np.repeat(centres, len(cells), axis=0), np.tile(centres, (len(cells), 1)))
        Finite(pairs.reshape(len(cells), len(cells)))


def test_a_domain_of_others_is_not_ours():
    assert not is_ours(Skewed([(0, 1)]))
    assert not is_ours(Product([pm.Box([(0, 1)]), Nullable(Skewed([(0, 1)]))]))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("options", [{}, {"depth": 6}])
def test_a_plan_can_carry_the_simulated_bound(neighbours, options):
    synth = pm.Synthesizer(pm.Box([(0, 1)] * 2), epsilon=1, neighbours=neighbours, mechanism="psmm", **options)
    plan = synth.plan(2000, simulate=20)
    closed, simulated = plan.bounds[0], plan.bounds[-1]
    assert (closed.name, simulated.name) == ("PSMM", "simulated")
    assert "3 standard errors" in simulated.about
    assert plan.best is simulated
    assert closed.value / 4 < simulated.value < closed.value
    assert plan == synth.plan(2000, simulate=20)
    assert pm.Plan.from_json(plan.to_json()) == plan
    assert plan.bounds[:-1] == synth.plan(2000).bounds
    with pytest.raises(ArgumentError, match="mechanism='psmm'"):
        pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours=neighbours).plan(10, simulate=20)
    with pytest.raises(ArgumentError, match="draws"):
        synth.plan(2000, simulate=1)


def test_the_simulated_bound_holds_where_the_total_is_read_off_the_noisy_counts():
    """Add-remove with a given level: the release has as many rows as the noisy counts say."""
    rows, domain = 300, pm.Box([(0, 1)])
    mechanism = pm.PSMM(domain, pm.Privacy(1, "add-remove"), depth=4, placement="centre")
    simulated, error = mechanism.simulated_bound(rows, draws=100, seed=1)
    x = np.where(np.arange(rows) < rows // 2, 0.01, 0.99)[:, None]
    found = []
    for seed in range(60):
        y = mechanism.release(ArraySource(x, width=1), Key.insecure(seed)).sample(seed=seed)
        found.append(line_wasserstein(x[:, 0], y[:, 0]))
    assert np.mean(found) + 4 * np.std(found) / 60**0.5 <= simulated - 4 * error <= mechanism.plan(rows).guarantee


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_largest_log_ratio_is_epsilon(neighbours):
    """Two cells, all outputs enumerated: the law of the masses on neighbouring inputs, and with half the scale."""
    domain, reach = pm.Box([(0, 1)]), 60
    privacy = pm.Privacy(2, neighbours)
    (scale,) = pm.PSMM(domain, privacy, depth=1).plan(4).scales
    first, second = ((4, 0), (3, 1)) if neighbours == "replace" else ((3, 1), (3, 0))

    def largest(scale):
        noise = np.arange(-reach, reach + 1)
        weights = np.exp(-np.abs(noise) / float(scale))
        weights /= weights.sum()
        space, laws = cell_space(domain, np.arange(2, dtype=np.uint64), 1), []
        for counts in (first, second):
            law = {}
            for a, p in zip(noise + counts[0], weights, strict=True):
                for b, q in zip(noise + counts[1], weights, strict=True):
                    if p * q > 1e-13:
                        total = 4 if neighbours == "replace" else max(1, int(a + b))
                        key = (max(min(a, 12), -12), max(min(b, 12), -12)), total if total < 12 else 12
                        law[key] = law.get(key, 0.0) + p * q
            masses = {}
            for ((a, b), total), p in law.items():
                mass = tuple(project(*space, np.array([a, b]), total).tolist())
                masses[mass] = masses.get(mass, 0.0) + p
            laws.append(masses)
        common = [m for m in laws[0] if min(laws[0][m], laws[1].get(m, 0)) > 1e-8]
        return max(abs(np.log(laws[0][m] / laws[1][m])) for m in common)

    assert largest(scale) <= 2 + 1e-3
    assert largest(scale / 2) > 2.2

"""W1 of point sets by every method: against POT, dense programs, closed forms and each other."""

import sys
import time

import numpy as np
import pytest

from privmeasure.domains import Box, Categories, Circle, Finite, Integers, Nullable, Product, Sphere
from privmeasure.errors import ArgumentError
from privmeasure.metrics import Distance, bounded_lipschitz, sliced_wasserstein, wasserstein
from privmeasure.transport import flow
from reference import transport as slow


def chebyshev(x, y):
    return np.abs(x[:, None] - y[None]).max(axis=2)


def even(points):
    return np.full(len(points), 1 / len(points))


@pytest.fixture(params=["ortools", "HiGHS"])
def solver(request, monkeypatch):
    if request.param == "HiGHS":
        monkeypatch.setitem(sys.modules, "ortools.graph.python", None)
    else:
        pytest.importorskip("ortools")
    return request.param


def test_exact_agrees_with_pot(solver):
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(1)
    for d in (1, 2, 3, 5):
        x, y, z = rng.random((60, d)), rng.random((60, d)) ** 2, rng.random((45, d))
        a, b = rng.dirichlet(np.ones(60)), rng.dirichlet(np.ones(45))
        for one, other, w, v in ((x, y, None, None), (x, z, None, None), (x, z, a, b), (x, z, None, b)):
            p, q = even(one) if w is None else w, even(other) if v is None else v
            expected = ot.emd2(p / p.sum(), q / q.sum(), chebyshev(one, other))
            found = wasserstein(one, other, weights_x=w, weights_y=v)
            assert found.method == "exact"
            assert found.value == pytest.approx(expected, abs=1e-8)
            assert abs(found.value - expected) <= found.error_bound + 1e-12


def test_exact_agrees_with_the_program_in_any_metric(solver):
    rng = np.random.default_rng(2)
    domains = [
        Box([(0, 2), (-1, 1)], weights=[1, 0.5]),
        Sphere(),
        Finite.from_points(rng.random((9, 2))),
        Product([Box([(0, 1)]), Categories(3)]),
        Nullable(Box([(0, 1), (0, 1)])),
        Circle(24),
        Integers(0, 9),
        Categories(5),
        Categories(9, taxonomy=[(0.2, "aabbccddd"), (0.5, "xxxxyyyyy")]),
    ]
    for domain in domains:
        level = min(domain.deepest, 12)
        cells = [c for c in range(1 << min(level, 12)) if domain.exists(np.array([c], np.uint64), min(level, 12))[0]]
        x, y = (domain.draw(rng.choice(np.array(cells, np.uint64), n), min(level, 12), rng) for n in (8, 6))
        a, b = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(6))
        cost = np.array([[domain.distance(p[None], q[None])[0] for q in y] for p in x])
        found = wasserstein(x, y, domain=domain, weights_x=a, weights_y=b)
        assert found.value == pytest.approx(slow.kantorovich(a, b, cost), abs=1e-7), domain
        assert wasserstein(x, y, domain=domain).value == pytest.approx(
            slow.kantorovich(even(x), even(y), cost), abs=1e-7
        )
        assert wasserstein(x, x[::-1], domain=domain).value == pytest.approx(0, abs=1e-12)


def test_whole_weights_need_no_rounding():
    rng = np.random.default_rng(3)
    x, y = rng.random((30, 2)), rng.random((20, 2))
    a, b = rng.multinomial(90, even(x)), rng.multinomial(90, even(y))
    found = wasserstein(x, y, weights_x=a, weights_y=b)
    assert found.value == pytest.approx(90 * wasserstein(x, y, weights_x=a / 90, weights_y=b / 90).value)
    repeated = wasserstein(np.repeat(x, a, axis=0), np.repeat(y, b, axis=0))
    assert found.value == pytest.approx(90 * repeated.value)


def test_translations():
    x = np.random.default_rng(4).random((500, 3))
    y = x + np.array([0.1, -0.3, 0.2])
    assert wasserstein(x, y).value == pytest.approx(0.3)
    assert wasserstein(x, y, domain=Box([(0, 2)] * 3)).value == pytest.approx(0.15)


def test_the_grid_is_within_its_bound(solver):
    rng = np.random.default_rng(5)
    for d, bins in ((1, 50), (2, 16), (3, 5), (4, 3)):
        x, y = rng.random((80, d)), rng.random((70, d)) ** 2
        for domain in (None, Box([(0, 1)] * d), Box([(-1, 1)] * d, weights=[1.0, *[0.6] * (d - 1)])):
            exact = wasserstein(x, y, domain=domain, method="exact")
            found = wasserstein(x, y, domain=domain, method="grid", bins=bins)
            assert found.method == "grid"
            assert abs(found.value - exact.value) <= found.error_bound
            assert 0 < found.error_bound <= 1 / bins + 1e-9


def test_the_grid_is_exact_on_centres():
    rng = np.random.default_rng(6)
    box = Box([(0, 1), (0, 1)])
    x, y = ((rng.integers(0, 16, (n, 2)) + 0.5) / 16 for n in (200, 150))
    weights = rng.dirichlet(np.ones(200))
    for w in (None, weights):
        grid = wasserstein(x, y, domain=box, method="grid", bins=16, weights_x=w)
        assert grid.value == pytest.approx(wasserstein(x, y, domain=box, weights_x=w).value, abs=1e-8)


def test_points_beyond_the_box_are_clamped_on_the_grid():
    box = Box([(0, 1), (0, 1)])
    assert wasserstein([[-5, 0.5]], [[0.99, 0.5]], domain=box, method="grid", bins=4).value == pytest.approx(0.75)


def test_sliced_agrees_with_pot():
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(7)
    x, y = rng.random((100, 3)), rng.random((80, 3)) ** 2
    a = rng.dirichlet(np.ones(100))
    found = sliced_wasserstein(x, y, weights_x=a, directions=500)
    expected = ot.sliced_wasserstein_distance(x, y, a, None, n_projections=5000, p=1, seed=1)
    assert found.standard_error > 0
    assert abs(found.value - expected) < 5 * found.standard_error
    assert wasserstein(x, y, weights_x=a, method="sliced", directions=500) == found


def test_the_subsample_has_a_floor():
    rng = np.random.default_rng(8)
    x, y = rng.random((4000, 2)), rng.random((3000, 2))
    same = wasserstein(x, y, method="subsample", samples=300, draws=8)
    moved = wasserstein(x, y + np.array([0.3, 0]), method="subsample", samples=300, draws=8)
    assert same.floor is not None
    assert abs(same.excess) < 6 * (same.standard_error + same.floor_error)
    assert moved.value == pytest.approx(0.3, abs=0.02)
    assert moved.value > 3 * moved.floor
    weighted = wasserstein(x, y, weights_x=even(x), weights_y=even(y), method="subsample", samples=300, draws=8)
    assert weighted.value == pytest.approx(same.value, rel=0.2)
    assert wasserstein(x, y, method="subsample", samples=300, draws=8) == same


def test_auto_chooses(monkeypatch):
    rng = np.random.default_rng(9)
    monkeypatch.setattr(sys.modules["privmeasure.metrics.wasserstein"], "AUTO_PAIRS", 100)
    assert wasserstein(rng.random(50), rng.random(50)).method == "exact"
    assert wasserstein(rng.random((50, 2)), rng.random((50, 2))).method == "grid"
    assert wasserstein(rng.random((50, 4)), rng.random((50, 4))).method == "subsample"
    assert wasserstein(rng.random((50, 2)), rng.random((50, 2)), domain=Sphere()).method == "subsample"
    few = rng.integers(0, 2, (50, 4))
    assert wasserstein(few, few[:33]).method == "exact"


def test_equal_sets_are_at_distance_0():
    x = np.random.default_rng(10).random((30, 2))
    for method in ("exact", "grid", "sliced"):
        assert wasserstein(x, x, method=method).value == pytest.approx(0, abs=1e-15)
    assert wasserstein(x, np.repeat(x, 3, axis=0)).value == 0
    assert wasserstein(x[:1], x[:1], method="grid").value == 0


def test_a_distance_is_a_number():
    found = wasserstein([0.0], [2.0])
    assert isinstance(found, Distance)
    assert float(found) == 2.0
    assert found.excess == 2.0


def test_100_000_points_on_128_by_128_cells():
    """Exact on the grid in under 10 s."""
    pytest.importorskip("ortools")
    rng = np.random.default_rng(11)
    x, y = rng.random((100_000, 2)), rng.random((100_000, 2))
    start = time.process_time()
    found = wasserstein(x, y, domain=Box([(0, 1)] * 2), method="grid", bins=128)
    assert time.process_time() - start < 10
    assert 0.001 < found.value < 0.01


P = [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: wasserstein(P, P, weights_x=[1, 1]), "weights_x and weights_y must have equal totals, got 2 and 1"),
        (lambda: wasserstein(P, P, weights_y=[0.5, 0.4]), "equal totals.*Divide each"),
        (lambda: wasserstein(P, P, weights_x=[0, 0]), "weights_x must be masses .* not all 0"),
        (lambda: wasserstein(P, P, weights_x=[2, -1]), "weights_x must be masses of at least 0"),
        (lambda: wasserstein(P, P, weights_y=[np.nan, 1]), "weights_y must be finite"),
        (lambda: wasserstein(P, P, weights_y=[1.0]), "weights_y must have one entry for each of 2"),
        (lambda: wasserstein(np.zeros((0, 2)), P), "x must have at least one row"),
        (lambda: wasserstein(P, []), "y must have at least one row"),
        (lambda: wasserstein(P, [["a", "b"]]), "y must be a matrix of numbers"),
        (lambda: wasserstein([[np.nan, 0.0]], P), "x must be finite.*Nullable"),
        (lambda: wasserstein(P, [[1.0]]), "x and y must have equally many columns"),
        (lambda: wasserstein(P, P, domain=Box([(0, 1)])), "x must have 1 columns"),
        (lambda: wasserstein(P, P, method="best"), "method must be one of auto, exact"),
        (lambda: wasserstein(P, P, method="grid", bins=0), "bins must be a whole number"),
        (lambda: wasserstein(np.eye(5), np.eye(5), method="grid"), "bins must be .* beyond 3 dimensions"),
        (lambda: wasserstein(P, P, method="grid", bins=10**5), "grid of shape .* arcs.*fewer cells"),
        (lambda: wasserstein(P, P, domain=Sphere(), method="grid"), "l_infinity metric of a Box"),
        (lambda: wasserstein(P, P, domain=Sphere(), method="sliced"), "domain must be a Box or None"),
        (lambda: wasserstein(P, P, method="sliced", directions=1), "directions must be"),
        (lambda: wasserstein(P, P, method="subsample", draws=1), "draws must be"),
        (lambda: wasserstein(P, P, method="subsample", samples=0), "samples must be"),
        (lambda: wasserstein(P[:1], P, method="subsample"), "x must have at least 2 rows"),
        (lambda: bounded_lipschitz([1, np.nan], [0, 1], [[0, 1], [1, 0]]), "mu must be finite"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(ArgumentError, match=match):
        call()


def test_too_many_pairs(monkeypatch):
    monkeypatch.setattr(flow, "MOST_ARCS", 3)
    for y in ([[2.0, 2.0], [3.0, 3.0]], [[2.0, 2.0], [3.0, 3.0], [4.0, 4.0]]):
        with pytest.raises(ArgumentError, match=r"2 by . .*points has . arcs.*subsample"):
            wasserstein(P, y, method="exact")

"""Every distance is a metric: 0 only between equals, symmetric, with the triangle inequality; and it scales."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmeasure.domains import Categories, Circle, Sphere
from privmeasure.metrics import bounded_lipschitz, sliced_wasserstein, wasserstein
from privmeasure.transport import Grid, Line, closest_measure

coordinates = st.integers(-20, 20).map(lambda k: k / 8)
TAXONOMY = Categories(6, taxonomy=[(0.25, "aabbcc"), (0.5, "xxxxyy")])
TREE = 1 - np.eye(6)
SPACES = [Grid((2, 3)), Grid((3, 2), (0.5, 0.25)), Grid((6,)), Line((0.0, 0.5, 1.0, 4.0, 4.5, 6.0)), TREE]


@st.composite
def clouds(draw, *, width=2, most=6):
    rows = draw(st.lists(st.tuples(*[coordinates] * width), min_size=1, max_size=most))
    weights = draw(st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    return np.array(rows), np.array(weights) / sum(weights)


def distance(a, b, **how):
    return wasserstein(a[0], b[0], weights_x=a[1], weights_y=b[1], **how).value


def measure(cloud):
    points, where = np.unique(cloud[0], axis=0, return_inverse=True)
    return {tuple(p): round(m, 9) for p, m in zip(points.tolist(), np.bincount(where.ravel(), cloud[1]), strict=True)}


WAYS = {
    "line": (1, {}),
    "plane": (2, {}),
    "grid": (2, {"method": "grid", "bins": 8, "domain": None}),
    "circle": (1, {"domain": Circle(2)}),
    "taxonomy": (1, {"domain": TAXONOMY}),
    "sphere": (2, {"domain": Sphere()}),
    "sliced": (2, {"method": "sliced", "directions": 20}),
}


@pytest.mark.parametrize("way", WAYS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_wasserstein_is_a_metric(way, data):
    width, how = WAYS[way]
    a, b, c = (data.draw(clouds(width=width)) for _ in range(3))
    ab, ba, bc, ac = distance(a, b, **how), distance(b, a, **how), distance(b, c, **how), distance(a, c, **how)
    assert ab >= 0
    assert distance(a, a, **how) == pytest.approx(0, abs=1e-9)
    assert ab == pytest.approx(ba, abs=1e-7)
    if way != "grid":  # without a domain the grid follows the two sets, so that each pair has its own
        assert ac <= ab + bc + 1e-7
    if way in ("line", "plane"):
        assert (ab < 1e-7) == (measure(a) == measure(b))


@given(a=clouds(), b=clouds(), factor=st.integers(1, 50), shift=coordinates)
@settings(max_examples=40, deadline=None)
def test_wasserstein_scales_and_does_not_see_shifts(a, b, factor, shift):
    scaled = (factor * a[0] + shift, a[1]), (factor * b[0] + shift, b[1])
    assert distance(*scaled) == pytest.approx(factor * distance(a, b), abs=1e-6)


@given(a=clouds(), b=clouds())
@settings(max_examples=40, deadline=None)
def test_distances_are_in_order(a, b):
    plane = distance(a, b)
    columns = [distance((a[0][:, [i]], a[1]), (b[0][:, [i]], b[1])) for i in (0, 1)]
    assert max(columns) - 1e-7 <= plane <= sum(columns) + 20
    mean = np.abs(a[1] @ a[0] - b[1] @ b[0])  # coordinates are 1-Lipschitz
    assert mean.max() <= plane + 1e-7
    sliced = sliced_wasserstein(a[0], b[0], weights_x=a[1], weights_y=b[1], directions=20).value
    assert sliced <= np.sqrt(2) * plane + 1e-7


masses = st.lists(st.integers(-9, 9), min_size=6, max_size=6).map(np.array)


@pytest.mark.parametrize("space", SPACES, ids=["cubes", "boxes", "even line", "line", "matrix"])
@given(mu=masses, nu=masses, rho=masses)
@settings(max_examples=40, deadline=None)
def test_bounded_lipschitz_is_a_norm(space, mu, nu, rho):
    def d(a, b):
        return bounded_lipschitz(a, b, space)

    assert d(mu, mu) == 0
    assert d(mu, nu) == pytest.approx(d(nu, mu), abs=1e-6)
    assert d(mu, rho) <= d(mu, nu) + d(nu, rho) + 1e-6
    assert (d(mu, nu) == 0) == np.array_equal(mu, nu)
    assert d(mu + rho, nu + rho) == pytest.approx(d(mu, nu), abs=1e-6)
    assert d(5 * mu, 5 * nu) == pytest.approx(5 * d(mu, nu), abs=1e-6)
    assert d(mu / 4, nu / 4) == pytest.approx(d(mu, nu) / 4, abs=1e-6)


@pytest.mark.parametrize("space", SPACES, ids=["cubes", "boxes", "even line", "line", "matrix"])
@given(nu=masses, rival=masses.map(np.abs))
@settings(max_examples=40, deadline=None)
def test_no_measure_is_closer(space, nu, rival):
    total = max(1, int(rival.sum()))
    mass, value = closest_measure(nu, total, space)
    assert mass.min() >= 0
    assert mass.sum() == total
    assert value == pytest.approx(bounded_lipschitz(mass, nu, space), abs=1e-6)
    if rival.sum() == total:
        assert value <= bounded_lipschitz(rival, nu, space) + 1e-6

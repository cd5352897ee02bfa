"""Every domain passes the shared laws, and the law suite rejects domains that break them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privmeasure.domains import Box, Categories, Circle, Finite, Integers, Nullable, Product, Sphere
from privmeasure.testing import check_domain

rng = np.random.default_rng(7)
cloud = rng.normal(size=(300, 3))
skewed = np.cumsum(2.0 ** np.arange(12))[:, None]
fine = [f"city {i // 3}" for i in range(40)]
coarse = [f"land {i // 12}" for i in range(40)]
hub = (np.arange(20) == 0).astype(float)
star = np.where(np.eye(20) == 1, 0, 2 - hub - hub[:, None])
shuffled = rng.permutation(40)

DOMAINS = {
    "interval": Box([(0, 1)]),
    "square": Box([(0, 1), (-10, 10)]),
    "weighted box": Box([(0, 1), (0, 1), (2, 3)], weights=[1, 0.3, 5]),
    "far box": Box([(1e9, 1e9 + 1)]),
    "tiny box": Box([(0, 1e-280), (-1e-3, 1e-3)]),
    "vast box": Box([(-8e307, 8e307)]),
    "box in 64 dimensions": Box([(0, 1)] * 64),
    "ages": Integers(0, 120),
    "one integer": Integers(5, 5),
    "two integers": Integers(-1, 0),
    "all integers": Integers(-(2**53), 2**53),
    "power of two": Integers(1, 64),
    "unit circle": Circle(),
    "degrees": Circle(360, low=-180),
    "hours far away": Circle(24, low=1e6),
    "one category": Categories(1),
    "three categories": Categories(["red", "green", "blue"]),
    "1000 categories": Categories(1000),
    "taxonomy": Categories(40, taxonomy=[(0.1, fine), (0.5, coarse)]),
    "shuffled taxonomy": Categories(
        40, taxonomy=[(0.2, [fine[i] for i in shuffled]), (0.6, [coarse[i] for i in shuffled])]
    ),
    "uneven taxonomy": Categories(9, taxonomy=[(0.5, "aabcccccc")]),
    "sphere": Sphere(),
    "one point": Finite([[0]]),
    "two points": Finite([[0, 3], [3, 0]]),
    "cloud": Finite.from_points(cloud),
    "cloud, manhattan": Finite.from_points(cloud[:50], metric="manhattan"),
    "chain of doubling gaps": Finite.from_points(skewed, metric="chebyshev"),
    "star": Finite(star),
    "nullable box": Nullable(Box([(0, 1), (0, 1)])),
    "nullable integer": Nullable(Integers(5, 5)),
    "nullable categories": Nullable(Categories(3)),
    "product": Product([Box([(0, 1)]), Categories(3), Integers(0, 120)]),
    "weighted product": Product([Sphere(), Circle(24)], weights=[1, 0.01]),
    "product with missing": Product([Nullable(Box([(0, 1)])), Categories(5), Nullable(Integers(0, 9))]),
    "nested products": Product([Product([Box([(0, 1)]), Nullable(Sphere())], weights=[2, 1]), Product([Circle()])]),
    "nullable product": Nullable(Product([Box([(0, 1)]), Categories(3)])),
    "product of points": Product([Categories(3), Integers(0, 4)]),
    "product with a shallow factor": Product([Box([(1e14, 1e14 + 1)]), Box([(0, 1)])]),
    "product of shallow factors": Product([Box([(1e14, 1e14 + 1)]), Box([(1e13, 1e13 + 1)])]),
}

CORNERS = {
    "sphere": [[0, 90], [0, -90], [-180, 0], [180, 0], [90, 0], [179.999999, -1e-300], [45, 30], [0, 89.9999999]],
    "interval": [[0], [1], [0.5], [0.25], [1 - 2**-53]],
    "degrees": [[-180], [180], [0], [540]],
    "ages": [[0], [120], [63.5], [64.5]],
}


@pytest.mark.parametrize("name", DOMAINS)
def test_domain_obeys_the_laws(name: str) -> None:
    points = np.array(CORNERS[name], float) if name in CORNERS else None
    check_domain(DOMAINS[name], points=points)


numbers = st.floats(-1e6, 1e6)
boxes = st.builds(
    lambda pairs: Box([(low, low + side) for low, side, _ in pairs], weights=[w for *_, w in pairs]),
    st.lists(st.tuples(numbers, st.floats(1e-3, 1e6), st.floats(1e-3, 1e3)), min_size=1, max_size=4),
)
integers = st.builds(
    lambda low, count: Integers(low, low + count),
    st.integers(-(2**50), 2**50),
    st.integers(0, 300) | st.integers(0, 2**51),
)
circles = st.builds(lambda period, low: Circle(period, low=low), st.floats(1e-2, 1e4), st.floats(-1e4, 1e4))


@st.composite
def categories(draw: st.DrawFn) -> Categories:
    count = draw(st.integers(1, 40))
    levels = draw(st.integers(0, 3))
    groups, taxonomy = list(range(count)), []
    for i in range(levels):
        merge = draw(st.lists(st.integers(0, min(5, count - 1)), min_size=count, max_size=count))
        groups = [merge[group] for group in groups]
        taxonomy.append(((i + 1) / (levels + 1), groups))
    return Categories(count, taxonomy=taxonomy)


@st.composite
def finites(draw: st.DrawFn) -> Finite:
    count, seed = draw(st.integers(1, 30)), draw(st.integers(0, 2**32))
    return Finite.from_points(np.random.default_rng(seed).standard_cauchy((count, 2)))


simple = boxes | integers | circles | categories() | finites() | st.just(Sphere())
factors = simple | st.builds(Nullable, simple)
products = st.builds(
    lambda pairs: Product([factor for factor, _ in pairs], weights=[w for _, w in pairs]),
    st.lists(st.tuples(factors, st.floats(0.01, 100)), min_size=1, max_size=4),
)
slow = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@slow
@given(factors | products, st.integers(0, 100))
def test_any_domain_obeys_the_laws(domain: Any, seed: int) -> None:
    check_domain(domain, seed=seed, levels=[0, 1, 2, 5, 7, min(13, domain.deepest), domain.deepest])


@slow
@given(factors | products, st.data())
def test_prefix_law_for_any_floats(domain: Any, data: st.DataObject) -> None:
    row = st.lists(st.floats(), min_size=domain.width, max_size=domain.width)
    points = np.array(data.draw(st.lists(row, min_size=1, max_size=20)))
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, domain.deepest)] * 2)))
    with np.errstate(all="raise"):
        deep = domain.locate(points, high)
    assert (domain.locate(points, low) == deep >> np.uint64(high - low)).all()
    assert domain.exists(deep, high).all()


@dataclass
class Broken:
    """A Box with some methods replaced."""

    changes: dict[str, Any]
    inner: Any = field(default_factory=lambda: Box([(0, 1), (0, 1)]))

    def __getattr__(self, name: str) -> Any:
        return self.changes[name] if name in self.changes else getattr(self.inner, name)


box, ages = Box([(0, 1), (0, 1)]), Integers(0, 120)


def noisy_locate(points, level):
    return box.locate(points * (1 + np.zeros_like(points) / np.where(np.isinf(points), 0.0, 1.0)), level)


def raising_locate(points, level):
    if np.isnan(points).any():
        raise ValueError("NaN")
    return box.locate(points, level)


def changing_locate(points, level):
    points[:] = np.clip(points, 0, 1)
    return box.locate(points, level)


def outside(cells, level, rng=None):
    points = box.draw(cells, level, np.random.default_rng(0))
    return points if level != 5 else 1 - points


BROKEN = {
    "prefix law": Broken({"locate": lambda x, j: box.locate(x, j) if j != 5 else box.locate(x[:, ::-1], j)}),
    "below 2\\^level": Broken({"locate": lambda x, j: box.locate(x, j) + np.uint64(1)}),
    "only give cells that exist": Broken(
        {"locate": lambda x, j: Integers(0, 127).locate(np.where(np.isfinite(x), x, 0), j)}, ages
    ),
    "without exception or warning.*RuntimeWarning": Broken({"locate": noisy_locate}),
    "without exception or warning.*ValueError": Broken({"locate": raising_locate}),
    "must not change its input": Broken({"locate": changing_locate}),
    "one uint64 per point": Broken({"locate": lambda x, j: box.locate(x, j).astype(np.int64)}),
    "first cell, 0, must exist": Broken({"exists": lambda c, j: c > 0}),
    "parent of an existing cell must exist": Broken(
        {"exists": lambda c, j: (c < 3) | (j != 2), "size": lambda j: 3 if j == 2 else 2**j}
    ),
    "child that exists": Broken(
        {
            "exists": lambda c, j: c == 0 if j == 3 else ages.exists(c, j),
            "size": lambda j: 1 if j == 3 else ages.size(j),
        },
        ages,
    ),
    "number of cells that exist": Broken({"size": lambda j: 2**j}, ages),
    "never grow": Broken({"diameter": lambda j: 3 * box.diameter(j) if j == 4 else box.diameter(j)}),
    "must bound the distance of two": Broken(
        {"diameter": lambda j: box.diameter(j) / 3, "total_diameter": lambda j: box.total_diameter(j) / 3}
    ),
    "must bound the sum": Broken({"total_diameter": lambda j: box.total_diameter(j) / 4}),
    "at most size times diameter": Broken({"total_diameter": lambda j: 3 * box.total_diameter(j)}),
    "finite and at least 0": Broken({"diameter": lambda j: float("nan")}),
    "draw of a cell": Broken({"draw": outside}),
    "centre of a cell": Broken(
        {
            "centre": lambda c, j: np.zeros((len(c), 2)),
            "radius": lambda j: 1.0,
            "diameter": lambda j: 1.0,
            "total_diameter": lambda j: 2.0**j,
        }
    ),
    "radius": Broken({"radius": lambda j: box.radius(j) / 3}),
    "extent": Broken({"extent": lambda c, j: (box.centre(c, j), box.centre(c, j))}),
    "symmetric": Broken({"distance": lambda x, y: np.where(x[:, 0] < y[:, 0], 1, 0.5) * box.distance(x, y)}),
    "to itself": Broken({"distance": lambda x, y: 0.5 * box.distance(x, y) + 2e-6 * (x == y).all(1)}),
    "triangle": Broken({"distance": lambda x, y: box.distance(x, y) ** 2}),
    "finite and at least 0; seen: -": Broken({"distance": lambda x, y: -box.distance(x, y)}),
    "not raise or warn": Broken(
        {"distance": lambda x, y: np.where((x == y).all(1), np.zeros(len(x)) / (x != y).sum(1), box.distance(x, y))}
    ),
    "columns per cell": Broken({"draw": lambda c, j, rng: box.draw(c, j, rng)[:, :1]}),
    "plain JSON": Broken({"to_json": lambda: {"kind": "mine", "bounds": np.zeros(2)}}),
    '"kind"': Broken({"to_json": lambda: {"bounds": 1}}),
    "read what to_json wrote": Broken({"to_json": lambda: {"kind": "box"}}),
    "same each time": Broken({"to_json": lambda: {"kind": "mine", "more": rng.random()}}),
    "int of Python": Broken({"size": lambda j: np.int64(box.size(j))}),
    "radius floats": Broken({"radius": lambda j: np.float32(box.radius(j))}),
    "same domain": Broken({"to_json": lambda: {**box.to_json(), "more": rng.random()}}),
    "same cells": Broken({"to_json": Box([(0, 2), (0, 1)]).to_json}),
    "deepest": Broken({"deepest": 63}),
    "width": Broken({"width": 0}),
}


@pytest.mark.parametrize("law", BROKEN)
def test_broken_law_is_named(law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_domain(BROKEN[law])


def test_a_domain_of_another_kind_may_keep_its_own_json() -> None:
    check_domain(Broken({"to_json": lambda: {"kind": "mine"}}))

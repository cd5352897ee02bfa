"""Closed-form facts about the domains, and errors that read well."""

import json
import math
from typing import Any

import numpy as np
import pytest

from privmeasure.domains import Box, Categories, Circle, Finite, Integers, Nullable, Product, Sphere, from_json
from privmeasure.errors import ArgumentError, ReleaseFileError


def column(*values: float) -> np.ndarray:
    return np.array(values, float)[:, None]


def codes(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


class TestBox:
    def test_last_point_of_a_closed_interval_is_in_the_last_cell(self) -> None:
        for level in (1, 5, 20, 40):
            assert Box([(-3, 7)]).locate(column(7.0, np.inf, 1e300), level).tolist() == [2**level - 1] * 3

    def test_nan_is_in_the_first_cell(self) -> None:
        assert Box([(0, 1)]).locate(column(np.nan, -np.inf), 9).tolist() == [0, 0]

    def test_weights_cut_the_longest_side(self) -> None:
        box = Box([(0, 1), (0, 1)], weights=[4, 1])
        assert [box.diameter(level) for level in range(5)] == [4, 2, 1, 1, 0.5 * 2 * 0.5]  # x, x, x, y

    def test_unusable_bounds_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match=r"bounds\[0\] must be finite with low < high"):
            Box([(1, 0)])
        with pytest.raises(ArgumentError, match="too narrow"):
            Box([(0, 1e-310)])
        with pytest.raises(ArgumentError, match="weights must be 1 numbers from"):
            Box([(0, 1)], weights=["a"])  # type: ignore[list-item]


class TestIntegers:
    def test_121_ages_in_128_cells(self) -> None:
        ages = Integers(0, 120)
        assert ages.size(7) == 121
        assert ages.exists(np.arange(128, dtype=np.uint64), 7).sum() == 121
        assert ages.locate(column(0, 120, 37), 7).tolist() == [0, 120, 37]
        assert [ages.size(level) for level in range(9)] == [1, 2, 4, 8, 16, 31, 61, 121, 121]
        assert ages.total_diameter(6) == pytest.approx(60 / 120)

    def test_rounding_and_clamping(self) -> None:
        dice = Integers(1, 6)
        assert dice.locate(column(0.2, 2.4, 2.6, 7, np.inf, np.nan), 3).tolist() == [0, 1, 2, 5, 5, 0]

    def test_a_single_integer_has_one_child(self) -> None:
        bit = Integers(0, 1)
        assert bit.exists(codes(0, 1, 2, 3), 2).tolist() == [True, False, True, False]
        assert Integers(5, 5).diameter(0) == 0
        assert Integers(5, 5).distance(column(5), column(5)).tolist() == [0]

    def test_neighbours_at_the_end_of_doubles_are_told_apart(self) -> None:
        whole = Integers(-(2**53), 2**53)
        points = column(2.0**53, 2.0**53 - 1, 2.0**53 - 2)
        assert len(set(whole.locate(points, whole.cuts).tolist())) == 3

    @pytest.mark.parametrize("bounds", [(1, 0), (0.5, 2), (0, 2**53 + 1), ("a", 3), (0, math.nan), (None, 1)])
    def test_bad_bounds(self, bounds: tuple[Any, Any]) -> None:
        with pytest.raises(ArgumentError, match=r"low|high"):
            Integers(*bounds)


class TestCircle:
    def test_wraps(self) -> None:
        clock = Circle(24)
        assert clock.locate(column(25, -1, 24, 1e6 * 24 + 13), 1).tolist() == [0, 1, 0, 1]
        assert clock.locate(column(np.nan, np.inf, -np.inf), 4).tolist() == [0, 0, 0]
        assert clock.distance(column(23, 0, 6), column(1, 12, 6)).tolist() == pytest.approx([1 / 6, 1, 0])

    def test_a_value_just_below_the_cut_is_in_the_last_arc(self) -> None:
        assert Circle(1.0).locate(column(-1e-300, -1e-17), 10).tolist() == [1023, 1023]

    def test_diameters(self) -> None:
        assert [Circle(7).diameter(level) for level in range(5)] == [1, 1, 0.5, 0.25, 0.125]

    @pytest.mark.parametrize("period", [0, -1, math.inf, math.nan, "day", 10**400])
    def test_bad_period(self, period: Any) -> None:
        with pytest.raises(ArgumentError, match="period above 0"):
            Circle(period)


class TestCategories:
    def test_three_in_four_cells(self) -> None:
        three = Categories(["a", "b", "c"])
        assert three.locate(column(0, 1, 2), 2).tolist() == [0, 1, 2]
        assert three.exists(codes(0, 1, 2, 3), 2).tolist() == [True, True, True, False]
        assert [three.diameter(level) for level in range(4)] == [1, 1, 0, 0]
        assert [three.total_diameter(level) for level in range(3)] == [1, 1, 0]
        assert {float(x) for x in three.draw(np.zeros(100, np.uint64), 1, np.random.default_rng(0))[:, 0]} == {0, 1}

    def test_taxonomy_diameters_drop_as_declared(self) -> None:
        labels = ["oak", "elm", "cod", "eel", "ash", "bat", "cat", "dog"]
        kinds = ["tree", "tree", "fish", "fish", "tree", "mammal", "mammal", "mammal"]
        realms = ["plant" if kind == "tree" else "animal" for kind in kinds]
        life = Categories(labels, taxonomy=[(0.2, kinds), (0.6, realms)])
        assert life.distance(column(0, 0, 2, 2), column(4, 2, 5, 3)).tolist() == [0.2, 1, 0.6, 0.2]
        assert [life.diameter(level) for level in range(5)] == [1, 0.6, 0.2, 0.2, 0]
        assert life.locate(column(0, 1, 4), 1).tolist() == [0, 0, 0]  # plants first, however scattered
        assert life.total_diameter(1) == pytest.approx(0.2 + 0.6)

    def test_ten_thousand_categories_are_quick(self) -> None:
        many = Categories(10_000, taxonomy=[(0.5, [i % 100 for i in range(10_000)])])
        points = np.arange(10_000.0)[:, None]
        cells = many.locate(points, 14)
        assert many.diameter(7) == 0.5
        assert many.size(14) == 10_000 == len(np.unique(cells))
        assert (many.centre(cells, 14) == points).all()

    def test_errors(self) -> None:
        with pytest.raises(ArgumentError, match="got 'a' twice"):
            Categories(["b", "a", "a"])
        with pytest.raises(ArgumentError, match="between 1 and"):
            Categories([])
        with pytest.raises(ArgumentError, match="number or a list"):
            Categories("abc")
        with pytest.raises(ArgumentError, match="of type str"):
            Categories([1, 2])  # type: ignore[list-item]
        with pytest.raises(ArgumentError, match="must increase from fine to coarse"):
            Categories(2, taxonomy=[(0.5, "ab"), (0.5, "aa")])
        with pytest.raises(ArgumentError, match=r"must nest.*'x' and 'y'"):
            Categories(3, taxonomy=[(0.2, "aab"), (0.5, "xyy")])
        with pytest.raises(ArgumentError, match="each of the 3 categories, got 2"):
            Categories(3, taxonomy=[(0.2, "aa")])
        with pytest.raises(ArgumentError, match=r"taxonomy\[0\] must be a pair"):
            Categories(3, taxonomy=[0.2])  # type: ignore[list-item]


class TestSphere:
    def test_distances(self) -> None:
        x = np.array([[0, 90], [10, 20], [0, 0], [-180, 5], [33, 90]])
        y = np.array([[0, -90], [-170, -20], [90, 0], [180, 5], [-99, 90]])
        assert Sphere().distance(x, y) == pytest.approx([1, 1, 0.5, 0, 0], abs=1e-15)

    def test_octants(self) -> None:
        points = np.array([[x, y] for x in (-135, -45, 45, 135) for y in (-40, 40)], float)
        assert Sphere().locate(points, 3).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]

    def test_poles_wrap_and_clamp(self) -> None:
        sphere = Sphere()
        points = np.array([[0, 90], [360, 90], [0, 1e9], [0, np.inf]])
        assert len(set(sphere.locate(points, 30).tolist())) == 1
        nowhere = np.array([[np.nan, 3], [3, np.nan], [np.inf, 3]])
        assert sphere.locate(nowhere, 30).tolist() == [0, 0, 0]

    def test_cells_have_equal_area(self) -> None:
        low, high = Sphere().extent(np.arange(2**9, dtype=np.uint64), 9)
        area = np.radians(high[:, 0] - low[:, 0]) * np.diff(np.sin(np.radians([low[:, 1], high[:, 1]])), axis=0)[0]
        assert area == pytest.approx(4 * np.pi / 2**9)

    def test_draws_from_the_whole_are_uniform_by_area(self) -> None:
        points = Sphere().draw(np.zeros(40_000, np.uint64), 0, np.random.default_rng(1))
        counts = np.bincount(Sphere().locate(points, 6).astype(int), minlength=64)
        assert ((counts - 625) ** 2 / 625).sum() < 63 + 6 * math.sqrt(126)

    @pytest.mark.parametrize("level", [3, 4, 7, 10, 12])
    def test_diameter_bounds_the_corners_of_every_cell(self, level: int) -> None:
        sphere = Sphere()
        low, high = sphere.extent(np.arange(2**level, dtype=np.uint64), level)
        corners = [np.stack([a[:, 0], b[:, 1]], axis=1) for a in (low, high) for b in (low, high)]
        width = np.stack([sphere.distance(x, y) for x in corners for y in corners]).max(axis=0)
        assert width.max() <= sphere.diameter(level) * (1 + 1e-9)
        assert width.sum() <= sphere.total_diameter(level) * (1 + 1e-9)
        assert width.max() >= 0.7 * sphere.diameter(level)
        assert sphere.diameter(level) <= 2.61 * 2 ** (-level / 2)


class TestFinite:
    def test_clusters_are_cut_first(self) -> None:
        points = np.array([0.0, 100, 1, 101, 2, 102])[:, None]
        space = Finite.from_points(points)
        assert space.locate(column(0, 2, 4, 1, 3, 5), 1).tolist() == [0, 0, 0, 1, 1, 1]
        assert [space.diameter(level) for level in range(4)] == [102, 2, 1, 0]
        assert space.centre(codes(0, 1), 1).tolist() == [[2], [3]]
        assert space.radius(1) == 1
        assert space.total_diameter(1) == 4

    @pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 1000])
    def test_depth_of_a_chain_of_halving_gaps(self, count: int) -> None:
        space = Finite.from_points(2.0 ** -np.arange(count)[:, None], metric="chebyshev")
        assert space._tree.depth <= 2 * math.log2(count)
        assert space.diameter(space._tree.depth) == 0

    def test_not_a_metric(self) -> None:
        for matrix, reason in [
            ([[0, 1], [2, 0]], "symmetric, but from 0 to 1"),
            ([[1, 1], [1, 0]], "0 on the diagonal"),
            ([[0, 0], [0, 0]], "above 0"),
            ([[0, -1], [-1, 0]], "above 0"),
            ([[0, 1, 5], [1, 0, 1], [5, 1, 0]], "triangle inequality, but from 0 to 2 it is 5.0, and over 1 only 2.0"),
            ([[0, 1]], "square"),
            ([[0, math.nan], [math.nan, 0]], "finite"),
            ([], "at least one row"),
            ([[0, 1], [1]], "matrix of numbers"),
        ]:
            with pytest.raises(ArgumentError, match=reason):
                Finite(matrix)

    def test_triangle_inequality_is_searched_everywhere(self) -> None:
        points = np.random.default_rng(0).random((60, 2))
        matrix = Finite.from_points(points).distances.copy()
        Finite(matrix)
        for i, j in [(0, 1), (58, 59), (3, 40)]:
            bad = matrix.copy()
            bad[i, j] = bad[j, i] = 1.01 * min(bad[i, k] + bad[k, j] for k in range(60) if k not in (i, j))
            with pytest.raises(ArgumentError, match="triangle"):
                Finite(bad)

    def test_points_are_checked(self) -> None:
        with pytest.raises(ArgumentError, match="Give every point once"):
            Finite.from_points([[1], [1]])
        with pytest.raises(ArgumentError, match="metric must be one of"):
            Finite.from_points([[1], [2]], metric="cosine")  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="at most 4096"):
            Finite.from_points(np.zeros((5000, 1)))
        with pytest.raises(ArgumentError, match="overflow"):
            Finite.from_points([[1e308], [-1e308]])
        with pytest.raises(ArgumentError, match="one row per point"):
            Finite([[0, 1], [1, 0]], points=[[0]])


class TestProduct:
    def test_cuts_the_widest_factor(self) -> None:
        product = Product([Box([(0, 1)]), Categories(3)], weights=[2, 1])
        assert [product.diameter(level) for level in range(6)] == [2, 1, 1, 1, 0.5, 0.25]  # box box cat cat box
        assert [product.size(level) for level in range(6)] == [1, 2, 4, 8, 12, 24]

    def test_agrees_with_a_box(self) -> None:
        box = Box([(0, 1), (2, 3), (0, 9)], weights=[1, 2, 1])
        product = Product([Box([pair]) for pair in box.bounds], weights=box.weights)
        points = np.random.default_rng(0).random((100, 3)) * [1, 4, 9]
        assert (product.locate(points, 17) == box.locate(points, 17)).all()
        assert product.diameter(17) == box.diameter(17)
        assert (product.distance(points, points[::-1]) == box.distance(points, points[::-1])).all()

    def test_single_points_are_cut_in_turn(self) -> None:
        product = Product([Integers(5, 5), Integers(6, 6)])
        assert product.deepest == 62
        assert product._axes[:4] == (0, 1, 0, 1)

    def test_a_factor_is_not_cut_below_its_deepest_level(self) -> None:
        shallow = Box([(1e14, 1e14 + 1)])
        product = Product([shallow, Box([(0, 1)])], weights=[1e9, 1])
        assert product.deepest == shallow.deepest + Box([(0, 1)]).deepest
        assert product._deal(product.deepest).cuts[0] == shallow.deepest

    def test_errors(self) -> None:
        with pytest.raises(ArgumentError, match="at least one domain"):
            Product([])
        with pytest.raises(ArgumentError, match="at least one domain"):
            Product([3])  # type: ignore[list-item]
        with pytest.raises(ArgumentError, match="weights must be 1 numbers"):
            Product([Categories(3)], weights=[0])


class TestNullable:
    def test_missing_branch(self) -> None:
        domain = Nullable(Categories(3))
        assert domain.locate(column(0, 2, np.nan), 3).tolist() == [0, 2, 4]
        assert domain.exists(np.arange(8, dtype=np.uint64), 3).tolist() == [True] * 3 + [False] + [True] + [False] * 3
        assert domain.distance(column(np.nan, 1, np.nan), column(np.nan, np.nan, 2)).tolist() == [0, 1, 1]
        assert np.isnan(domain.draw(codes(4), 3, np.random.default_rng(0))).all()

    def test_any_missing_column_makes_the_row_missing(self) -> None:
        domain = Nullable(Box([(0, 1), (0, 1)]))
        assert domain.locate(np.array([[0.5, np.nan], [0.5, 0.5]]), 1).tolist() == [1, 0]

    def test_missing_is_told_from_a_single_point(self) -> None:
        domain = Nullable(Integers(5, 5))
        assert [domain.diameter(level) for level in range(3)] == [1, 0, 0]
        assert domain.distance(column(5), column(np.nan)).tolist() == [1]

    def test_missing_once(self) -> None:
        for inner in (Nullable(Categories(3)), Product([Product([Nullable(Categories(3))])])):
            with pytest.raises(ArgumentError, match="not both"):
                Nullable(inner)
        with pytest.raises(ArgumentError, match="takes a domain"):
            Nullable(3)  # type: ignore[arg-type]


def nested(depth: int) -> dict[str, Any]:
    return {"kind": "product", "factors": [nested(depth - 1)], "weights": [1]} if depth else {"kind": "sphere"}


DAMAGED = [
    None,
    [],
    "box",
    {},
    {"kind": "torus"},
    {"kind": ["box"]},
    {"kind": "box"},
    {"kind": "box", "bounds": 5, "weights": [1]},
    {"kind": "box", "bounds": [[0, 1, 2]], "weights": [1]},
    {"kind": "box", "bounds": [[0, 1]], "weights": [1, 1]},
    {"kind": "box", "bounds": [[0, 10**400]], "weights": [1]},
    {"kind": "box", "bounds": [None], "weights": [None]},
    {"kind": "integers", "low": 0, "high": "x"},
    {"kind": "integers", "low": 0, "high": 10**400},
    {"kind": "circle", "period": 0, "low": 0},
    {"kind": "categories", "categories": 10**15, "taxonomy": []},
    {"kind": "categories", "categories": [[]], "taxonomy": []},
    {"kind": "categories", "categories": 3, "taxonomy": [[0.5, [[], [], []]]]},
    {"kind": "categories", "categories": 3, "taxonomy": [None]},
    {"kind": "finite", "points": [[0]] * 10_000, "metric": "euclidean"},
    {"kind": "finite", "points": [[0], [1]], "metric": "x"},
    {"kind": "finite", "points": [[0], [1, 2]], "metric": "euclidean"},
    {"kind": "finite", "distances": [[1, 2], [], []], "points": None},
    {"kind": "finite", "distances": [[1, 9], [1], []], "points": None},
    {"kind": "finite", "distances": [["a"], []], "points": None},
    {"kind": "finite", "distances": [1, 2], "points": None},
    {"kind": "finite", "distances": [[]] * 100_000, "points": None},
    {"kind": "finite", "distances": [[1], []], "points": {}},
    {"kind": "product", "factors": [], "weights": []},
    {"kind": "product", "factors": [{"kind": "sphere"}], "weights": [math.nan]},
    {"kind": "product", "factors": [3], "weights": [1]},
    {"kind": "nullable", "domain": {"kind": "nullable", "domain": {"kind": "sphere"}}},
    nested(500),
]


@pytest.mark.parametrize("value", DAMAGED, ids=[str(i) for i in range(len(DAMAGED))])
def test_edited_json_is_refused_with_one_error(value: Any) -> None:
    with pytest.raises(ReleaseFileError, match="domain"):
        from_json(value)


def test_json_keeps_labels_and_distances() -> None:
    colours = Categories(["red", "blue"], taxonomy=[(0.5, ["warm", "cold"])])
    towns = Finite([[0, 2], [2, 0]], points=[[0, 1], [3, 1]])
    for domain in (colours, towns):
        value = json.loads(json.dumps(domain.to_json()))
        assert from_json(value).to_json() == value
    assert colours.to_json()["categories"] == ["red", "blue"]


@pytest.mark.parametrize("domain", [Integers(0, 120), Categories(3), Finite([[0, 1], [1, 0]])])
def test_nothing_is_drawn_from_a_cell_that_does_not_exist(domain: Any) -> None:
    level = 10
    with pytest.raises(ArgumentError, match="must exist"):
        domain.draw(codes(2**level - 1), level, np.random.default_rng(0))

"""What a domain says of itself is what it does: a description, translated to SQL, gives the cells of `locate`."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from depth import some
from privmeasure.counts import Axis
from privmeasure.domains import Box, Categories, Circle, Domain, Finite, Integers, Nullable, Product, Sphere, Steps
from privmeasure.domains.scales import MOST_EDGES, Dealt, Even, describe
from privmeasure.domains.traits import column_space
from privmeasure.tables import Boolean, Category, Date, Datetime, Integer, Number, Place, Time
from reference.sql import Question

ENGINES = ("sqlite", "duckdb")
ODD = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 0.5, 1.5, 2.5, -0.5, 1e300, -1e300, 2.0**53, 2.0**63]

DOMAINS: list[tuple[Domain, tuple[int, ...]]] = [
    (Box([(0, 1)]), (0, 1, 7, 40)),
    (Box([(-3, 0.1)]), (5,)),
    (Box([(0, 1), (-10, 10), (1e6, 1e6 + 1)], weights=[1, 0.5, 3]), (1, 9, 20)),
    (Integers(0, 120), (1, 5, 7, 9)),
    (Integers(-7, 7), (3, 4)),
    (Integers(5, 5), (2,)),
    (Integers(-(2**52), 2**52), (3, 20)),
    (Steps(0, 120), (1, 2, 6, 7, 9)),
    (Steps(-3, 999_000), (12, 20)),
    (Steps(0, 200_000_000), (5, 12, 22)),
    (Steps(4, 4), (2,)),
    (Circle(360, low=-180), (1, 4, 12)),
    (Circle(0.3, low=0.1), (6,)),
    (Categories(5), (1, 3, 5)),
    (Categories(6, taxonomy=[(0.5, ["a", "b", "a", "b", "c", "c"])]), (2, 4)),
    (Finite([[0, 1, 5], [1, 0, 5], [5, 5, 0]]), (1, 2, 4)),
    (Sphere(), (1, 2, 3, 4, 5, 8, 13, 20)),
    (Nullable(Box([(0, 1), (0, 2)])), (1, 2, 9)),
    (Nullable(Circle(24)), (1, 5)),
    (Nullable(Sphere()), (1, 9)),
    (Product([Box([(0, 1)]), Nullable(Categories(3)), Integers(0, 9), Sphere()], weights=[1, 0.5, 2, 1]), (4, 11, 18)),
    (Nullable(Product([Steps(0, 9), Circle(7)])), (6, 50)),
]


def hostile(domain: Domain, level: int, rng: np.random.Generator) -> np.ndarray:
    """Return random points, what lies on and beside the corners of cells, and odd values in every column."""
    cells = np.unique(rng.integers(0, 1 << min(level, 40), 60, np.uint64) << np.uint64(max(level - 40, 0)))
    cells = cells[domain.exists(cells, level)]
    drawn, low, high = domain.draw(cells, level, rng), *domain.extent(cells, level)
    near = [corner for c in (low, high) for corner in (c, np.nextafter(c, -np.inf), np.nextafter(c, np.inf))]
    shifted = [drawn * 3, drawn + rng.normal(0, 500, drawn.shape), drawn + 0.5]
    odd = np.tile(drawn[:1], (len(ODD) * domain.width, 1))
    for column in range(domain.width):
        odd[column * len(ODD) : (column + 1) * len(ODD), column] = ODD
    both = np.tile(np.array(ODD)[:, None], (1, domain.width))
    return np.concatenate([drawn, *near, *shifted, odd, both])


@pytest.mark.parametrize("engine", ENGINES)
@some(("domain", "levels"), 8, DOMAINS, ids=[repr(domain)[:60] for domain, _ in DOMAINS])
def test_sql_gives_the_cells_of_locate(domain: Domain, levels: tuple[int, ...], engine: str) -> None:
    for level in levels:
        points = hostile(domain, level, np.random.default_rng(level))
        scale = describe(domain, level)
        assert scale is not None
        assert Question(scale, engine).ask(points.T.tolist()) == domain.locate(points, level).tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_axis_describes_its_columns_and_groups(engine: str) -> None:
    rng = np.random.default_rng(3)
    product = Product([Box([(0, 1)]), Nullable(Steps(0, 9))])
    axis = Axis(product.factors[1], 4, columns=product.columns[1], groups=rng.integers(0, 5, 16))
    points = hostile(product, 8, rng)
    assert axis.scale is not None
    assert Question(axis.scale, engine).ask(points.T.tolist()) == axis.index(points).tolist()


def test_what_is_not_described() -> None:
    class Own(Box):
        scale = None  # type: ignore[assignment]

    assert describe(Own([(0, 1)]), 3) is None
    assert describe(Product([Box([(0, 1)]), Own([(0, 1)])]), 3) is None
    assert describe(Nullable(Own([(0, 1)])), 3) is None
    assert describe(Integers(-(2**53), 2**53), 3) is None  # differences of its ends are no doubles
    assert describe(Sphere(), 60) is None
    assert MOST_EDGES < 1 << 20


def test_a_wrong_description_is_seen() -> None:
    right, points = describe(Box([(0, 1)]), 3), np.linspace(0, 1, 33)[:, None]
    assert isinstance(right, Dealt)
    even = right.parts[0]
    assert isinstance(even, Even)
    wrong = Dealt((Even(even.of, even.low, even.factor * (1 + 2.0**-52), even.divisor, even.bits),), right.places)
    wrong_bits = Dealt(right.parts, ((0, 1, 2),))
    below = np.nextafter(points, -1)
    cells = Box([(0, 1)]).locate(np.concatenate([points, below]), 3).tolist()
    for scale in (wrong, wrong_bits):
        assert Question(scale, "sqlite").ask(np.concatenate([points, below]).T.tolist()) != cells


def instants(unit: str, zone: str | None = None) -> pa.Array:
    ticks = [None, -1, 0, 1, 10**9, 86_399, 86_400, -86_400, 951_782_400, 2**40, -(2**40), 1_577_836_800, 1_609_459_199]
    per = {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    near = [None if t is None else t * per + d for t in ticks for d in (-1, 0, 1)]
    return pa.array(near, pa.int64()).cast(pa.timestamp(unit, zone))


FLOATS = pa.array(
    [None, *ODD, 3.49, 3.5, 4.5, 9.999, 10.0, 17.0, 55.5, 99.5, 100.5, 120.4, 999.0, 1e6, 180.0, -180 - 2**-45]
)
WHOLE = pa.array([None, -(2**63), -1, 0, 1, 2, 5, 9, 10, 11, 119, 120, 121, 2**53 + 1, 2**63 - 1], pa.int64())
TEXTS = pa.array([None, "", "red", "Red", "red ", "grün", "gru\u0308n", "blue", "1", "\U0001f600"])
DAYS = pa.array([None, -(2**31), -1, 0, 1, 10_957, 11_016, 18_627, 18_628, 2**31 - 1], pa.int32()).cast(pa.date32())
TIMES = pa.array([None, 0, 1, 59_999_999, 60_000_000, 43_200_000_000, 86_399_999_999], pa.int64()).cast(pa.time64("us"))
PLACES = [pa.array([*FLOATS.to_pylist(), None, 45.0, 91.0]), pa.array([*FLOATS.to_pylist()[::-1], 10.0, None, 370.0])]

COLUMNS: list[tuple[Any, list[pa.Array]]] = [
    (Number(0, 10), [FLOATS]),
    (Number(-1, 1000, nullable=True), [FLOATS]),
    (Number(0.5, 1e6, transform="log"), [FLOATS]),
    (Number(0, 1000, breaks=[10, 100], nullable=True), [FLOATS.cast(pa.float32())]),
    (Number(0, 120), [WHOLE]),
    (Integer(0, 120), [FLOATS]),
    (Integer(-3, 9, nullable=True), [WHOLE]),
    (Integer(1, 120, transform="log"), [FLOATS]),
    (Integer(0, 1000, breaks=[5, 100], nullable=True), [FLOATS]),
    (Category(["red", "grün", "blue", ""]), [TEXTS]),
    (Category(["red", "grün", "blue"], unknown="blue"), [TEXTS]),
    (Category(["red", "grün", "blue"], nullable=True, ordered=True), [TEXTS]),
    (Category(["red", "grün", "blue"], nullable=True, taxonomy={"warm": ["red"], "cold": ["grün", "blue"]}), [TEXTS]),
    (Category(["red", "grün", "blue"], distances=[[0, 1, 2], [1, 0, 2], [2, 2, 0]]), [TEXTS]),
    (Category([5, 1, 120], unknown=1, nullable=True), [WHOLE]),
    (Category([0.5, 2.5, 0]), [FLOATS]),
    (Boolean(), [pa.array([None, True, False])]),
    (Boolean(nullable=True), [FLOATS]),
    (Date("2000-01-01", "2020-12-31"), [DAYS]),
    (Date("1960-01-01", "2020-12-31", nullable=True), [DAYS]),
    (Datetime("2000-01-01", "2020-12-31T23:59:59", resolution="15min"), [instants("s")]),
    (Datetime("1969-01-01", "2020-12-31", nullable=True), [instants("us", "UTC")]),
    (Datetime("1969-01-01", "2020-12-31", timezone="Europe/Berlin"), [instants("ms", "America/New_York")]),
    (Time(resolution="1min"), [TIMES]),
    (Time(resolution="1s", nullable=True), [TIMES]),
    (Place(latitude="a", longitude="b"), PLACES),
    (Place(latitude="a", longitude="b", nullable=True), PLACES),
    (Place(latitude="a", longitude="b", low=[-10, 170], high=[60, 200]), PLACES),
    (Place(latitude="a", longitude="b", low=[-10, -20], high=[60, 20], nullable=True), PLACES),
]


def handed_over(array: pa.Array) -> list[Any]:
    """Return the cells as an engine hands them over: texts, or numbers in the units that `Reading.stored` names."""
    kind = array.type
    if pa.types.is_string(kind):
        return array.to_pylist()
    if pa.types.is_timestamp(kind):
        array = pa.compute.multiply(array.cast(pa.int64()), 10**6 // {"s": 1, "ms": 10**3, "us": 10**6}[kind.unit])
    elif pa.types.is_date32(kind) or pa.types.is_time(kind):
        array = array.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    return [None if cell is None else float(cell) for cell in array.to_pylist()]


@pytest.mark.parametrize("engine", ENGINES)
@some(("column", "arrays"), 8, COLUMNS, ids=[f"{i}-{type(c).__name__}" for i, (c, _) in enumerate(COLUMNS)])
def test_sql_gives_the_cells_of_stored_values(column: Any, arrays: list[pa.Array], engine: str) -> None:
    types, points = [array.type for array in arrays], column.encode(arrays)
    for space in (column.domain, column_space(column.domain)):
        curved = (19,) if getattr(column, "curved", False) else ()  # beyond what breakpoints describe
        for level in (1, 2, 3, 6, 9) if len(arrays) > 1 else (1, 2, 3, 6, 10, 14, *curved):
            scale = column.scale(space, level, types, first=1)
            assert scale is not None
            found = Question(scale, engine).ask([[0.0] * len(points), *map(handed_over, arrays)])
            assert found == space.locate(points, level).tolist()


def test_what_arrow_must_read() -> None:
    text, decimal = pa.string(), pa.decimal128(9, 2)
    for column, kind in [
        (Number(0, 1), None),
        (Number(0, 1), text),
        (Number(0, 1), decimal),
        (Integer(0, 1), text),
        (Category(["a"]), None),
        (Category(["1"]), pa.int64()),
        (Category([1]), text),
        (Boolean(), text),
        (Date("2000-01-01", "2001-01-01"), text),
        (Date("2000-01-01", "2001-01-01"), pa.timestamp("us")),
        (Datetime("2000-01-01", "2001-01-01"), text),
        (Datetime("2000-01-01", "2001-01-01"), pa.timestamp("ns")),
        (Datetime("2000-01-01", "2001-01-01", timezone="Europe/Berlin"), pa.timestamp("us")),
        (Time(), text),
        (Time(), pa.time64("ns")),
    ]:
        assert column.scale(column.domain, 1, [kind]) is None
    assert Place(latitude="a", longitude="b").scale(Sphere(), 1, [text, pa.float64()]) is None

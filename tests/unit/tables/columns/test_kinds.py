"""Single facts about columns: bad declarations, fallbacks, plain words."""

# ruff: noqa: E501 (messages stand on one line, as they are told)

import datetime as dt

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privmeasure.errors import SchemaError
from privmeasure.tables import Boolean, Category, Constant, Date, Datetime, Integer, Number, Place, Schema, Time
from privmeasure.tables.columns.fields import ColumnError
from privmeasure.tables.columns.kinds import from_fields, to_fields


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Number(1, 0), "low = 1 and high = 0; low must be below high. Swap them."),
        (lambda: Number("a", 0), "low = 'a'; it must be a number"),
        (lambda: Number(0, float("inf")), "high = inf; it must be finite"),
        (lambda: Number(0, 5e-324), "too narrow"),
        (lambda: Number(1e15, 1e15 + 0.125), "too narrow"),
        (lambda: Number(-1e308, 1e308), "finite"),
        (lambda: Number(0, 10, transform="log"), "a logarithm needs low above 0. Raise low"),
        (lambda: Number(0, 10, transform="sqrt"), 'write "log"'),
        (lambda: Number(1, 10, transform="log", breaks=[2]), "both transform and breaks"),
        (lambda: Number(0, 10, breaks=[20]), "not between low = 0 and high = 10"),
        (lambda: Number(0, 10, breaks=[]), "at least one value between"),
        (lambda: Number(0, 10, breaks=[5, 3]), "do not increase"),
        (lambda: Number(0, 1e300, breaks=[1]), "too uneven"),
        (lambda: Number(0.5, 0.7, decimals=0), "no such number lies between"),
        (lambda: Number(0, 1, decimals=16), "from 0 to 15"),
        (lambda: Number(0, 1, weight=0), "weight = 0.0; a weight lies between"),
        (lambda: Number(0, 1, nullable=None), "nullable = None; write true or false"),
        (lambda: Integer(0, 2**53 + 1), "beyond 2\\^53"),
        (lambda: Integer(0.5, 2), 'Use type = "number"'),
        (lambda: Integer(0, 10, transform="log"), "at least 1"),
        (lambda: Category([]), "has 0 values"),
        (lambda: Category("abc"), "write a list"),
        (lambda: Category(["a", 1]), "neither all text nor all numbers"),
        (lambda: Category([True, False]), 'type = "boolean"'),
        (lambda: Category(["a", "a"]), "'a' twice"),
        (lambda: Category([1, 1.0]), "twice"),
        (lambda: Category([2**60]), "Put all of them in quotes"),
        (lambda: Category([float("nan")]), "Put all of them in quotes"),
        (lambda: Category(["a"], taxonomy={"x": ["b"]}), "'b' in its taxonomy"),
        (lambda: Category(["a", "b"], taxonomy={"x": ["a"], "y": ["a"]}), "in two groups"),
        (lambda: Category(["a"], taxonomy={"x": "a"}), "a list of values"),
        (lambda: Category(["a"], taxonomy={"x": ["a"]}, diameters=[0.5, 0.2]), "2 diameters for a taxonomy of 1 level"),
        (lambda: Category(["a"], taxonomy={"x": ["a"]}, diameters=[2.0]), "between 0 and 1"),
        (lambda: Category(["a"], taxonomy={"x": ["a"]}, ordered=True), "both ordered and a taxonomy"),
        (lambda: Category(["a"], diameters=[0.5]), "diameters but no taxonomy"),
        (lambda: Boolean(true="yes"), "Give both, or neither"),
        (lambda: Boolean(true="A", false=["b", "a"]), "for both true and false"),
        (lambda: Boolean(true=1.5, false=0), "write a text"),
        (lambda: Boolean(true=1, false="no"), "a number for one"),
        (lambda: Boolean(true=2**60, false=0), "too large"),
        (lambda: Date("2020-02-30", "2021-01-01"), "write a date like"),
        (lambda: Date("2021-01-01", "2020-01-01"), "low must be below high"),
        (lambda: Date("2020-01-01", "2021-01-01", format="%d.%m"), "leaves out"),
        (lambda: Date("2020-01-01", "2021-01-01", format="%Q"), "format"),
        (lambda: Datetime("2020-01-01", "2021-01-01", resolution="5 parsecs"), "write a number and one of"),
        (lambda: Datetime("2020-01-01", "2021-01-01", resolution="1ns"), "too fine for so long a time"),
        (lambda: Datetime("2020-01-01", "2020-01-02", resolution="2d"), "longer than the time from low to high"),
        (lambda: Datetime("2020-01-01", "2021-01-01", timezone="Mars/Base"), "not known"),
        (lambda: Datetime("2021-01-01", "2020-01-01"), "low must be below high"),
        (lambda: Datetime("2020-01-01T00:00:00Z", "2019-01-01"), "low not before its high"),
        (lambda: Time(resolution="7min"), "does not divide a day"),
        (lambda: Time(format="%H"), "leaves out"),
        (lambda: Place("a", "a"), "both latitude and longitude"),
        (lambda: Place("a", "b", low=(0, 0)), "only one corner"),
        (lambda: Place("a", "b", low=(10, 0), high=(0, 10)), "low latitude 10 not below"),
        (lambda: Place("a", "b", low=(0, 170), high=(10, -170)), "ends at 190"),
        (lambda: Place("a", "b", low=(0, 0), high=(100, 10)), "no \\[latitude, longitude\\]"),
        (lambda: Constant([1]), "write a text, a number"),
        (lambda: Constant(float("nan")), "write a text, a number"),
    ],
)  # fmt: skip
def test_bad_declarations_say_what_to_do(make, expected):
    with pytest.raises(SchemaError, match=expected):
        make()


def positions(column, cells):
    return column.encode([pa.array(cells, pa.string())])[:, 0].tolist()


def test_where_unknown_and_missing_cells_go():
    cells = ["b", "x", None]
    assert positions(Category(["a", "b"]), cells) == [1, 0, 0]
    assert positions(Category(["a", "b"], unknown="b"), cells) == [1, 1, 1]
    found = positions(Category(["a", "b"], nullable=True), cells)
    assert found[0] == 1
    assert np.isnan(found[1:]).all()
    found = positions(Category(["a", "b"], nullable=True, unknown="b"), cells)
    assert found[:2] == [1, 1]
    assert np.isnan(found[2])
    assert positions(Number(3, 9), [None, "x"]) == [3, 3]
    assert positions(Boolean(), ["x", None, "TRUE"]) == [0, 0, 1]


def test_an_empty_text_is_a_value_if_it_is_declared():
    assert positions(Category(["a", ""], nullable=True), [""]) == [1]
    assert np.isnan(positions(Category(["a"], nullable=True), [""])).all()


def test_declared_order_of_a_pandas_categorical_comes_back():
    import pandas as pd

    series = pd.Series(pd.Categorical(["M", "S"], categories=["L", "M", "S"], ordered=True))
    array = pa.array(series)
    column = Category(["S", "M", "L"], ordered=True)
    (cells,) = column.decode(column.encode([array]), [array.type])
    back = cells.to_pandas()
    assert back.tolist() == ["M", "S"]
    assert back.cat.categories.tolist() == ["S", "M", "L"]
    assert back.cat.ordered


def test_decimals_never_leave_the_bounds():
    column = Number(0.15, 0.95, decimals=1)
    points = np.linspace(0.15, 0.95, 101)[:, None]
    found = set(column.decode(points, [None])[0].to_pylist())
    assert found == {0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
    assert column.decode(points, [pa.decimal128(3, 1)])[0].type == pa.decimal128(3, 1)
    assert str(Number(-1, 1, decimals=0).decode(np.array([[-0.2]]), [None])[0][0]) == "0.0"


def test_storage_that_is_too_narrow_is_filled_to_its_limits():
    column = Number(-1e6, 1e6)
    points = np.array([[-1e6], [1e6], [3.7]])
    assert column.decode(points, [pa.int8()])[0].to_pylist() == [-128, 127, 4]
    assert column.decode(points, [pa.uint8()])[0].to_pylist() == [0, 255, 4]
    assert column.decode(points, [pa.float16()])[0].to_pylist() == [-65504, 65504, pytest.approx(3.7, abs=1e-2)]
    assert [float(v) for v in column.decode(points, [pa.decimal128(4, 1)])[0].to_pylist()] == [-999.9, 999.9, 3.7]


def test_a_box_across_the_date_line():
    column = Place("a", "b", low=(-50, 165), high=(-30, 190))
    points = column.encode([pa.array([-40.0] * 4), pa.array([170.0, -175.0, 185.0, 0.0])])
    assert points[:, 0].tolist() == [170, 185, 185, 165]
    assert column.decode(points, [None, None])[1].to_pylist() == [170, -175, -175, 165]


def test_30_february_does_not_parse():
    column = Date("2000-01-01", "2030-01-01", format="%d/%m/%Y", nullable=True)
    found = positions(column, ["29/02/2020", "30/02/2020", "31/04/2020", "1/3/2020", "02/03/2020", "29/02/2021"])
    assert np.isnan(found).tolist() == [False, True, True, False, False, True]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Integer(17, 90, unit="year"), ["not at all", "about 64 years", "about 16 years", "single values"]),
        (Integer(17, 90, unit="year", nullable=True), ["not at all", "missing or not", "about 32 years", "about 2 years"]),
        (Number(0, 100), ["not at all", "about 50", "about 12", "about 0.78"]),
        (Number(1, 1e6, transform="log"), ["not at all", "a factor of about 1,000", "a factor of about 5.6", "within about 11 %"]),
        (Number(0, 1000, breaks=[10, 100]), ["not at all", "2 groups of stretches", "about 3.8 to 340", "about 0.23 to 21"]),
        (Category(["a", "b", "c"]), ["not at all", "2 groups of values", "single values", "single values"]),
        (Category(list("abcdefgh"), ordered=True), ["not at all", "about 4 ranks", "single values", "single values"]),
        (Boolean(), ["not at all", "true or false", "true or false", "true or false"]),
        (Date("2020-01-01", "2020-12-31"), ["not at all", "about 256 days", "about 64 days", "about 4 days"]),
        (Datetime("2020-01-01", "2020-01-02"), ["not at all", "about 18 hours", "about 4.6 hours", "about 17 minutes"]),
        (Time(), ["not at all", "about 12 hours", "about 3 hours", "about 11 minutes"]),
        (Place("a", "b"), ["not at all", "about 20,000 km", "about 10,000 km", "about 4,600 km"]),
        (Place("a", "b", low=(0, 0), high=(8, 16)), ["not at all", "about 8 by 8 degrees", "about 4 by 4 degrees", "about 1 by 1 degree"]),
        (Constant("x"), ["constant"] * 4),
    ],
)  # fmt: skip
def test_fineness_in_the_columns_own_units(column, expected):
    assert [column.fineness(level) for level in (0, 1, 3, 7)] == expected


def test_bounds_of_any_zone_can_be_written_down():
    from zoneinfo import ZoneInfo

    from privmeasure.tables import Schema

    low = dt.datetime(1880, 1, 1, tzinfo=ZoneInfo("Europe/Amsterdam"))  # 19 minutes and some seconds from UTC
    schema = Schema({"x": Datetime(low, dt.datetime(1990, 1, 1, tzinfo=ZoneInfo("Asia/Kolkata")))})
    assert Schema.from_text(schema.to_toml()) == schema


kinds = st.sampled_from([Number, Integer, Category, Boolean, Date, Datetime, Time, Place, Constant])
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates() | st.datetimes()
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=5
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(kinds, st.data())
def test_a_declaration_is_accepted_or_refused_with_reasons(kind, data):
    fields = msgspec.structs.fields(kind)
    given_fields = {f.name: data.draw(anything) for f in fields if f.required or data.draw(st.booleans())}
    try:
        column, reason = kind(**given_fields), "A column "
    except SchemaError as error:
        column, reason = None, str(error)
    assert reason.startswith("A column ")
    assert column is None or from_fields(to_fields(column)) == column


def test_nanoseconds_before_1970_go_down_to_the_step_not_towards_zero():
    column = Datetime("1960-01-01", "1980-01-01", resolution="1us")
    stamp = pa.array([-1], pa.int64()).view(pa.timestamp("ns"))  # 1 ns before 1970
    (cell,) = column.decode(column.encode([stamp]), [pa.timestamp("us")])[0].cast(pa.int64()).to_pylist()
    assert cell == -1


def test_spaces_around_a_cell_do_not_matter():
    assert positions(Number(0, 9), [" 1.5", "2 ", "\t3\n"]) == [1.5, 2, 3]
    assert positions(Date("1970-01-01", "1980-01-01"), [" 1970-01-03 "]) == [2]
    assert positions(Time(resolution="1h"), [" 7:30 "]) == [7.5]


@pytest.mark.parametrize("resolution", ["1min", "15min", "1h"])
def test_a_time_stays_in_its_step_wherever_it_lands_in_a_small_cell(resolution):
    """The start of a step would lie on a border: half of what lands around it would come out one step early."""
    column = Time(resolution=resolution)
    times = pa.array([dt.time(0, 0), dt.time(9, 45), dt.time(23, 59)])
    there = column.encode([times])
    exact = column.decode(there, [times.type])
    for shift in (-0.49, 0.49):
        assert column.decode(there + shift, [times.type]) == exact


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"type": "category", "values": []}, "has values = [], an empty list. Write at least one entry."),
        (
            {"type": "number", "low": 1, "high": 9, "transform": "lg"},
            "has transform = 'lg', which is unknown. Write transform = \"log\"",
        ),
    ],
)
def test_what_a_field_may_hold_is_told(fields, words):
    with pytest.raises(SchemaError) as caught:
        from_fields(fields)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("column", "cuts", "expected"),
    [
        (Integer(0, 99999, breaks=[1, 5000, 20000], unit="dollar"), 8, "single values to about 1,200 dollars"),
        (Integer(0, 99999, breaks=[1, 5000, 20000], unit="dollar"), 18, "single values to about 2 dollars"),
        (Integer(0, 99999, breaks=[1, 5000, 20000], unit="dollar"), 20, "single values"),
        (Integer(0, 1000, breaks=[200, 400]), 4, "about 38 to 110"),
        (Integer(0, 999, breaks=[500]), 4, "about 62"),
        (Number(0, 99999, breaks=[1, 5000, 20000]), 18, "about 1.5e-05 to 1.2"),
    ],
)
def test_no_cell_holds_less_than_one_integer(column, cuts, expected):
    assert column.fineness(cuts) == expected


def test_a_place_counts_once_however_many_of_its_cells_are_changed():
    town = Place("lat", "lon", low=(45, 5), high=(48, 11))
    latitudes = ["x", "", "x", "46", "99", "99", "46", ""]
    longitudes = ["y", "", "7", "y", "99", "7", "7", "y"]
    tally = town.count_changes([pa.array(latitudes), pa.array(longitudes)])
    assert (tally.missing, tally.unparsed, tally.clamped, tally.unknown) == (2, 3, 2, 0)


def test_a_category_may_have_any_finite_metric():
    hours = [[0, 1, 3], [1, 0, 2.5], [3, 2.5, 0]]
    town = Category(["Bern", "Basel", "Geneva"], distances=hours, nullable=True)
    assert town.domain.domain.distances.tolist() == (np.array(hours) / 3).tolist()
    schema = Schema({"town": town, "age": Integer(0, 9)})
    assert schema.to_json()["format"] == 2
    assert Schema.from_json(schema.to_json()) == schema == Schema.from_text(schema.to_toml())
    points = town.encode([pa.array(["Geneva", "Bern", None, "Rome"])])
    assert np.array_equal(points[:, 0], [2, 0, np.nan, np.nan], equal_nan=True)
    assert town.decode(points, [None])[0].to_pylist() == ["Geneva", "Bern", None, None]
    assert town.cell_size(2) == "single values"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"distances": [[0, 1], [1, 0]]}, "There must be 3 rows of 3 numbers"),
        ({"distances": [[0, 1, 9], [1, 0, 1], [9, 1, 0]]}, "triangle inequality"),
        ({"distances": [[0, 1, 1], [2, 0, 1], [1, 1, 0]]}, "symmetric"),
        ({"distances": "far"}, "a list of rows of numbers"),
        ({"distances": np.ones((3, 3)) - np.eye(3), "ordered": True}, "both distances and ordered"),
        ({"distances": np.ones((3, 3)) - np.eye(3), "taxonomy": {"x": ["a"]}}, "both distances and a taxonomy"),
    ],
)
def test_distances_that_cannot_be(fields, told):
    with pytest.raises(ColumnError, match=told):
        Category(["a", "b", "c"], **fields)


def test_booleans_that_are_numbers_come_out_as_the_same_numbers():
    sex = Boolean(true=1, false=2, nullable=True)
    for cells in (pa.array(["1", "2", "2.0", "0", None]), pa.array([1, 2, 2, 0, None]), pa.array([1.0, 2, 2, 0, None])):
        assert np.array_equal(sex.encode([cells])[:, 0], [1, 0, 0, np.nan, np.nan], equal_nan=True)
    points = np.array([[1.0], [0.0], [np.nan]])
    assert sex.decode(points, [None])[0].equals(pa.array([1, 2, None], pa.int64()))
    assert sex.decode(points, [pa.float32()])[0].to_pylist() == [1.0, 2.0, None]
    assert sex.decode(points, [pa.string()])[0].to_pylist() == ["1", "2", None]
    assert sex.decode(points, [pa.bool_()])[0].to_pylist() == [True, False, None]
    assert Boolean(true=1, false=0).decode(points[:2], [None])[0].to_pylist() == [1, 0]
    assert from_fields({"type": "boolean", "true": 1, "false": 0}) == Boolean(true=1, false=0)

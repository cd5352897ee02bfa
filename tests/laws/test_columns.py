"""Laws of columns: values and types come back. That rows are encoded one by one is in test_rows.py."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmeasure.tables import Boolean, Category, Constant, Date, Datetime, Drop, Integer, Number, Place, Time
from privmeasure.testing.hostile import TEXTS, hostile_arrays

quick = settings(max_examples=60, deadline=None)

COLUMNS = [
    Number(0, 10),
    Number(-5, 10, nullable=True, decimals=1),
    Number(0.5, 1e9, transform="log"),
    Number(0, 1e6, breaks=[10, 1000], nullable=True),
    Number(-1e308, 0.0),
    Integer(0, 100),
    Integer(-(2**53), 2**53, nullable=True),
    Integer(1, 1000, transform="log"),
    Integer(-3, 1000, breaks=[0, 10], nullable=True),
    Category(["F", "M", "Ω", ""]),
    Category(["F", "M", "1"], nullable=True, unknown="M"),
    Category(["S", "M", "L"], ordered=True, nullable=True),
    Category([1, 2.5, -3]),
    Category([str(i) for i in range(5000)], nullable=True),
    Category(["a", "b", "F"], taxonomy={"x": ["a", "b"]}),
    Category(["a", "b", "F"], distances=[[0, 1, 2], [1, 0, 2], [2, 2, 0]], nullable=True),
    Boolean(),
    Boolean(true=["J", "ja"], false="N", nullable=True),
    Date("1900-01-01", "2030-12-31"),
    Date("0001-01-01", "9999-12-31", nullable=True),
    Date("1900-01-01", "2030-12-31", format="%d.%m.%Y", nullable=True),
    Date("1900-01-01", "2030-12-31", format="%d %b %y", nullable=True),
    Datetime("2020-01-01", "2021-01-01"),
    Datetime("0001-01-01", "9999-12-31", nullable=True, timezone="Europe/Berlin"),
    Datetime("1960-01-01T00:00:00Z", "2021-01-01T00:00:00Z", resolution="15min", nullable=True),
    Datetime("2020-01-01", "2020-01-03", resolution="1ns", nullable=True),
    Datetime("2020-01-01", "2021-01-01", format="%d.%m.%Y %H:%M", nullable=True, timezone="America/New_York"),
    Datetime("2020-01-01", "2021-01-01", format="%Y-%m-%dT%H:%M:%S.%f", resolution="1us"),
    Time(),
    Time(resolution="1ns", nullable=True),
    Time(resolution="15min", format="%H:%M", nullable=True),
    Place("a", "b"),
    Place("a", "b", nullable=True, low=(40, 0), high=(50, 10), decimals=2),
    Place("a", "b", low=(-50, 165), high=(-30, 190)),
]
ids = [f"{type(column).__name__}-{i}" for i, column in enumerate(COLUMNS)]


def sources(column, array):
    return [array] * len(column.sources("x"))


@pytest.mark.parametrize("column", COLUMNS, ids=ids)
def test_what_is_not_refused_comes_back_in_its_type(column):
    accepted = 0
    for array in hostile_arrays():
        if column.refuses(array.type) is not None or pa.types.is_null(array.type):
            continue
        accepted += 1
        points = column.encode(sources(column, array))
        kinds = [array.type] * len(column.sources("x"))
        for cells in column.decode(points, kinds):
            if not (pa.types.is_dictionary(array.type) and len(getattr(column, "values", ())) > 127):
                assert cells.type == array.type  # an index too narrow for the declared values is widened
            assert len(cells) == len(array)
            assert column.nullable or cells.null_count == 0
            cells.validate(full=True)
        for cells, natural in zip(column.decode(points, [None] * len(kinds)), column.natural, strict=True):
            assert cells.type == natural
            cells.validate(full=True)
    assert accepted


@pytest.mark.parametrize("column", COLUMNS, ids=ids)
def test_decoded_cells_are_encoded_to_where_they_came_from(column):
    """Draw points of the domain; once written, they are read back as what was written (a projection)."""
    rng, level = np.random.default_rng(0), min(column.domain.deepest, 8)
    cells = column.domain.locate(column.encode(sources(column, pa.array(TEXTS))), level)
    points = column.domain.draw(cells, level, rng)
    kinds = [None] * len(column.sources("x"))
    first = column.decode(points, kinds)
    again = column.decode(column.encode(first), kinds)
    for a, b in zip(first, again, strict=True):
        if pa.types.is_floating(a.type):
            assert np.allclose(
                a.to_numpy(zero_copy_only=False), b.to_numpy(zero_copy_only=False), rtol=1e-12, equal_nan=True
            )
        else:
            assert a.equals(b)
    tally = column.count_changes(first)
    assert (tally.unparsed, tally.clamped, tally.unknown) == (0, 0, 0)


def back(column, array, kind=None):
    return column.decode(column.encode([array]), [kind or array.type])[0].to_pylist()


finite = st.floats(-1e6, 1e6)


@quick
@given(st.lists(st.none() | finite | st.sampled_from([0.0, -0.0, 5e-324, -1e6, 1e6]), min_size=1))
def test_numbers_come_back_exactly(values):
    column = Number(-1e6, 1e6, nullable=True)
    assert back(column, pa.array(values, pa.float64())) == values
    texts = pa.array([None if v is None else repr(v) for v in values], pa.string())
    assert back(column, texts, pa.float64()) == values


@quick
@given(st.lists(st.floats(1e-3, 1e9), min_size=1))
def test_stretched_numbers_come_back_up_to_rounding(values):
    for column in (Number(1e-3, 1e9, transform="log"), Number(1e-3, 1e9, breaks=[1, 10, 1e3, 1e6])):
        assert np.allclose(back(column, pa.array(values)), values, rtol=1e-6, atol=1e-6)
        assert all(1e-3 <= v <= 1e9 for v in back(column, pa.array(values)))


@quick
@given(st.integers(0, 6), st.lists(st.integers(-(10**6), 10**6), min_size=1))
def test_numbers_with_decimals_come_back_exactly(decimals, steps):
    values = [step / 10**decimals for step in steps]
    column = Number(-1e6, 1e6, decimals=decimals)
    assert back(column, pa.array(values)) == values
    exact = [Decimal(step).scaleb(-decimals) for step in steps]
    assert back(column, pa.array(exact, pa.decimal128(20, decimals))) == exact


@quick
@given(st.lists(st.none() | st.integers(-(2**53), 2**53), min_size=1))
def test_integers_come_back_exactly(values):
    column = Integer(-(2**53), 2**53, nullable=True)
    assert back(column, pa.array(values, pa.int64())) == values
    assert back(column, pa.array([None if v is None else str(v) for v in values], pa.string()), pa.int64()) == values


@quick
@given(st.lists(st.integers(1, 10**6), min_size=1))
def test_stretched_integers_come_back_exactly(values):
    for column in (Integer(1, 10**6, transform="log"), Integer(1, 10**6, breaks=[10, 1000])):
        assert back(column, pa.array(values)) == values


labels = st.lists(st.text(), min_size=1, max_size=20, unique=True)


@quick
@given(labels, st.data())
def test_categories_come_back_exactly_in_any_script(values, data):
    chosen = data.draw(st.lists(st.none() | st.sampled_from(values), min_size=1))
    for column in (Category(values, nullable=True), Category(values, nullable=True, ordered=True)):
        for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
            array = pa.array(chosen, pa.string()).cast(kind)
            assert back(column, array) == chosen


@quick
@given(st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=20, unique=True), st.data())
def test_categories_of_numbers_come_back_in_every_storage(values, data):
    chosen = data.draw(st.lists(st.sampled_from(values), min_size=1))
    for declared in (values, [str(v) for v in values]):
        column = Category(declared)
        assert back(column, pa.array(chosen, pa.int64())) == chosen
        assert back(column, pa.array(chosen, pa.float64())) == chosen
        assert back(column, pa.array([str(v) for v in chosen])) == [str(v) for v in chosen]


@quick
@given(st.lists(st.none() | st.booleans(), min_size=1))
def test_booleans_come_back_exactly(values):
    column = Boolean(nullable=True)
    assert back(column, pa.array(values, pa.bool_())) == values
    assert back(column, pa.array(values, pa.bool_()).cast(pa.int8())) == values
    words = Boolean(true="ÉTÉ", false="non", nullable=True)
    texts = [None if v is None else "ÉTÉ" if v else "non" for v in values]
    assert back(words, pa.array(texts, pa.string())) == texts


@quick
@given(st.lists(st.none() | st.dates() | st.sampled_from([dt.date(2000, 2, 29), dt.date(1969, 12, 31)]), min_size=1))
def test_dates_come_back_exactly(values):
    column = Date(dt.date.min, dt.date.max, nullable=True)
    assert back(column, pa.array(values, pa.date32())) == values
    assert back(column, pa.array(values, pa.date64())) == values
    iso = [None if v is None else v.isoformat() for v in values]
    assert back(column, pa.array(iso, pa.string())) == iso
    assert back(column, pa.array(iso, pa.string()), pa.date32()) == values
    for form in ("%d.%m.%Y", "%Y/%j", "%d %B %Y"):
        texts = [None if v is None else f"{v.replace(year=max(v.year, 1000)):{form}}" for v in values]
        assert back(Date(dt.date.min, dt.date.max, nullable=True, format=form), pa.array(texts, pa.string())) == texts


moments = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)) | st.sampled_from(
    [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2000, 2, 29), dt.datetime(2020, 12, 31, 23, 59, 59)]
)


@quick
@given(st.lists(st.none() | moments, min_size=1), st.sampled_from(["1us", "1ms", "1s", "15min", "1h", "1d"]))
def test_datetimes_come_back_up_to_the_resolution(values, resolution):
    low, high = dt.datetime(1, 1, 1), dt.datetime.max
    if resolution == "1us":  # 2^53 microseconds are 285 years
        low, high = dt.datetime(1900, 1, 1), dt.datetime(2170, 1, 1)
        values = [None if v is None else v.replace(year=1904 + v.year % 50 * 4) for v in values]
    column = Datetime(low, high, resolution=resolution, nullable=True)
    amount = int(resolution.rstrip("usmindh"))
    step = {"1us": dt.timedelta(microseconds=1), "1ms": dt.timedelta(milliseconds=1), "1s": dt.timedelta(seconds=1)}
    step |= {"15min": dt.timedelta(minutes=amount), "1h": dt.timedelta(hours=1), "1d": dt.timedelta(days=1)}
    floored = [None if v is None else low + (v - low) // step[resolution] * step[resolution] for v in values]
    assert back(column, pa.array(values, pa.timestamp("us"))) == floored
    iso = pa.array([None if v is None else v.isoformat() for v in values], pa.string())
    assert back(column, iso, pa.timestamp("us")) == floored


@quick
@given(
    st.lists(st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2037, 1, 1)), min_size=1),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC", "+05:30"]),
    st.sampled_from([None, "Europe/Berlin"]),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_zones_come_back(values, zone, declared, unit):
    column = Datetime("1900-01-01", "2040-01-01", timezone=declared)
    values = [v.replace(microsecond=0) for v in values]
    array = pa.array(values, pa.timestamp("s")).cast(pa.timestamp(unit, zone))  # instants
    assert column.decode(column.encode([array]), [array.type])[0].equals(array)
    offset = dt.timezone(dt.timedelta(hours=-7))
    texts = [v.replace(tzinfo=offset).isoformat() for v in values]
    expected = pa.array([v.replace(tzinfo=offset) for v in values], pa.timestamp("s", "UTC"))
    assert column.decode(column.encode([pa.array(texts)]), [pa.timestamp("s", "UTC")])[0].equals(expected)


def test_local_times_without_a_zone_come_back_also_when_the_clock_is_set_back():
    column = Datetime("2020-01-01", "2021-01-01", timezone="Europe/Berlin")
    twice = dt.datetime(2020, 10, 25, 2, 30)
    assert back(column, pa.array([twice, dt.datetime(2020, 7, 1)])) == [twice, dt.datetime(2020, 7, 1)]
    (cell,) = column.decode(column.encode([pa.array([twice])]), [None])[0].to_pylist()
    assert (cell.replace(tzinfo=None), cell.utcoffset()) == (twice, dt.timedelta(hours=2))  # the earlier of the two
    skipped = dt.datetime(2020, 3, 29, 2, 30)  # no clock showed it
    assert back(column, pa.array([skipped])) != [None]


@quick
@given(st.lists(st.none() | st.times() | st.sampled_from([dt.time.min, dt.time.max]), min_size=1))
def test_times_of_day_come_back_up_to_the_resolution(values):
    exact = Time(resolution="1us", nullable=True)
    assert back(exact, pa.array(values, pa.time64("us"))) == values
    assert (
        back(exact, pa.array([None if v is None else v.isoformat() for v in values], pa.string()), pa.time64("us"))
        == values
    )
    minutes = [None if v is None else v.replace(second=0, microsecond=0) for v in values]
    assert back(Time(resolution="1min", nullable=True), pa.array(values, pa.time64("us"))) == minutes
    texts = [None if v is None else f"{v:%H:%M}" for v in values]
    assert back(Time(resolution="1min", nullable=True, format="%H:%M"), pa.array(texts, pa.string())) == texts


@quick
@given(st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180, exclude_max=True)), min_size=1))
def test_places_come_back_exactly(values):
    latitudes, longitudes = (pa.array(list(part)) for part in zip(*values, strict=True))
    for column in (Place("a", "b"), Place("a", "b", low=(-90, -180), high=(90, 180))):
        points = column.encode([latitudes, longitudes])
        cells = column.decode(points, [pa.float64()] * 2)
        assert [tuple(v) for v in zip(*(c.to_pylist() for c in cells), strict=True)] == values


@quick
@given(st.one_of(st.text(), st.integers(-(2**63), 2**63 - 1), st.booleans(), finite))
def test_constants_do_not_depend_on_the_cells(value):
    column = Constant(value)
    (cells,) = column.decode(np.empty((3, 0)), [None])
    assert cells.to_pylist() == [value] * 3
    assert Drop().decode(np.empty((3, 0)), []) == []

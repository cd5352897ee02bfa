"""What cells become, value by value: the points of each kind of column, from texts and from stored types.

That no cell changes another is a law (tests/laws/test_rows.py); here are the values themselves, written down.
"""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from privmeasure.tables import Boolean, Category, Date, Datetime, Integer, Number, Place, Time

NAN, INF = np.nan, np.inf
NUMBERS = ["2.5", " 7 ", "1e1", "-3", "99", "inf", "-inf", "nan", "1e999", "x", "", "1,5", None]
FLOATS = pa.array([2.5, -3.0, 99.0, INF, -INF, NAN, None, -0.0])
WHOLE = pa.array([2.5, 3.5, 2.4, -0.6, 9.4, 9.6, NAN, INF])
DECIMALS = pa.array([Decimal("2.50"), Decimal("-3.00"), Decimal("99.99"), None], pa.decimal128(6, 2))
SECONDS = pa.array([2, 90, None], pa.duration("s"))
MILLISECONDS = pa.array([2500, -1, None], pa.duration("ms"))
DAYS = ["2020-02-29", "2021-02-29", "1850-01-01", "2050-01-01", "2020-02-29 23:59", " 1970-01-02 ", "x", None]
LEAP = (dt.date(2020, 2, 29) - dt.date(1970, 1, 1)).days
FIRST, LAST = ((dt.date(*day) - dt.date(1970, 1, 1)).days for day in ((1900, 1, 1), (2030, 12, 31)))
FORMATTED = ["29.02.2020", "30.02.2020", "31.04.2020", "1.3.2020", "01.03.2020 ", "2020-02-29"]
MOMENTS = pa.array([-1, 0, 86_400_000 - 1, 86_400_000, None])
HOUR = 3600

READINGS = {
    "number": (Number(0, 10, nullable=True), NUMBERS, [2.5, 7, 10, 0, 10, 10, 0, NAN, 10, NAN, NAN, NAN, NAN]),
    "not nullable": (Number(1, 10), NUMBERS, [2.5, 7, 10, 1, 10, 10, 1, 1, 10, 1, 1, 1, 1]),
    "floats": (Number(0, 10, nullable=True), FLOATS, [2.5, 0, 10, 10, 0, NAN, NAN, 0]),
    "decimals": (Number(0, 10, nullable=True), DECIMALS, [2.5, 0, 10, NAN]),
    "narrow floats": (Number(0, 10, nullable=True), pa.array([0.1, None], pa.float32()), [np.float32(0.1), NAN]),
    "true and false": (Number(0, 10, nullable=True), pa.array([True, False, None]), [1, 0, NAN]),
    "seconds": (Number(0, 60, nullable=True), SECONDS, [2, 60, NAN]),
    "milliseconds": (Number(-1, 60, nullable=True), MILLISECONDS, [2.5, -0.001, NAN]),
    "breaks": (Number(0, 1000, breaks=[10, 100]), [0, 5, 10, 55, 2000, -1], [0, 0.5, 1, 1.5, 3, 0]),
    "integer": (Integer(0, 9, nullable=True), ["2.5", "3.5", "2.4", "-1", "9.6", "x"], [2, 4, 2, 0, 9, NAN]),
    "rounded": (Integer(0, 9, nullable=True), WHOLE, [2, 4, 2, 0, 9, 9, NAN, 9]),
    "whole, not nullable": (Integer(3, 9), ["2", "4", "x", "", None, "nan", "99"], [3, 4, 3, 3, 3, 3, 9]),
    "category": (Category(["F", "M"], nullable=True), ["M", "F", "m", " M", "F\ufffd", "", None], [1, 0, *[NAN] * 5]),
    "empty": (Category(["F", ""], nullable=True), ["", None, " "], [1, NAN, NAN]),
    "unknown": (Category(["F", "M", "?"], unknown="?"), ["M", "x", "", None], [1, 2, 2, 2]),
    "unknown, nullable": (Category(["F", "M"], unknown="M", nullable=True), ["F", "x", None], [0, 1, NAN]),
    "neither": (Category(["F", "M"]), ["M", "x", None], [1, 0, 0]),
    "numbers": (Category([1, 2.5], nullable=True), ["1", "1.0", " 2.5", "2,5", "01", "3", None],
                [0, 0, 1, NAN, 0, NAN, NAN]),
    "stored numbers": (Category([1, 2.5], nullable=True), pa.array([2.5, 1, 2, NAN, None]), [1, 0, NAN, NAN, NAN]),
    "texts of numbers": (Category(["1", "2"], nullable=True), pa.array([2, 1, 3, None]), [1, 0, NAN, NAN]),
    "texts of floats": (Category(["1", "2"], nullable=True), pa.array([2.0, 1.0, 1.5, None]), [1, 0, NAN, NAN]),
    "boolean": (Boolean(nullable=True), ["true", "T", " On ", "1", "false", "NO", "0.0", "2", "ja", None],
                [1, 1, 1, 1, 0, 0, 0, NAN, NAN, NAN]),
    "boolean, not nullable": (Boolean(), ["yes", "no", "ja", None], [1, 0, 0, 0]),
    "stored booleans": (Boolean(nullable=True), pa.array([True, False, None]), [1, 0, NAN]),
    "boolean numbers": (Boolean(nullable=True), pa.array([1.0, 0.0, 7.0, -1.0, NAN]), [1, 0, NAN, NAN, NAN]),
    "other numbers": (Boolean(true=1, false=2, nullable=True), pa.array([1, 2, 0, None]), [1, 0, NAN, NAN]),
    "other words": (Boolean(true=["J", "ja"], false="N", nullable=True), ["j", "JA", "n", "true"], [1, 1, 0, NAN]),
    "date": (Date("1900-01-01", "2030-12-31", nullable=True), DAYS, [LEAP, NAN, FIRST, LAST, LEAP, 1, NAN, NAN]),
    "date, not nullable": (Date("1900-01-01", "2030-12-31"), ["2020-02-29", "x", None], [LEAP, FIRST, FIRST]),
    "format": (Date("1900-01-01", "2030-12-31", format="%d.%m.%Y", nullable=True), FORMATTED,
               [LEAP, NAN, NAN, LEAP + 1, LEAP + 1, NAN]),
    "day of a moment": (Date("1900-01-01", "2030-12-31", nullable=True), MOMENTS.cast(pa.timestamp("ms")),
                        [-1, 0, 0, 1, NAN]),
    "day in a zone": (Date("1900-01-01", "2030-12-31", nullable=True), MOMENTS.cast(pa.timestamp("ms", "Asia/Tokyo")),
                      [0, 0, 1, 1, NAN]),
    "days in milliseconds": (Date("1900-01-01", "2030-12-31", nullable=True), pa.array([LEAP, None], pa.int32())
                             .cast(pa.date32()).cast(pa.date64()), [LEAP, NAN]),
    "datetime": (Datetime("1970-01-01", "1970-01-02", nullable=True),
                 ["1970-01-01T01:00:00", "1970-01-01 00:00:01.9", "1969-12-31T23:00", "1970-01-01T02:00:00+01:00",
                  "1970-01-01", "1971-01-01", "x"], [HOUR, 1, 0, HOUR, 0, 24 * HOUR, NAN]),
    "steps": (Datetime("1970-01-01", "1970-01-02", resolution="15min"), ["1970-01-01T00:14:59", "1970-01-01T00:15"],
              [0, 1]),
    "local": (Datetime("2020-01-01", "2021-01-01", resolution="1h", timezone="Europe/Berlin", nullable=True),
              ["2020-01-01T01:00", "2020-03-29T02:30", "2020-03-29T03:00", "2020-10-25T02:30", "2020-10-25T03:00"],
              [1, 2113, 2114, 7153, 7155]),
    "stored moments": (Datetime("1970-01-01", "1970-01-02", nullable=True), MOMENTS.cast(pa.timestamp("ms")),
                       [0, 0, 24 * HOUR - 1, 24 * HOUR, NAN]),
    "moments in a zone": (Datetime("1970-01-01", "1970-01-02", nullable=True),
                          MOMENTS.cast(pa.timestamp("ms", "Asia/Tokyo")), [0, 0, 24 * HOUR - 1, 24 * HOUR, NAN]),
    "far instants": (Datetime("1970-01-01", "1970-01-02", nullable=True),
                     pa.array([1 << 62, -(1 << 62), 1, 1 << 45, -(1 << 45)]).cast(pa.timestamp("s")),
                     [24 * HOUR, 0, 1, 24 * HOUR, 0]),
    "time": (Time(resolution="1h", nullable=True), ["7", "07:59", "23:59:59.9", "24:00", "7:30 pm", "x"],
             [7.5, 7.5, 23.5, NAN, NAN, NAN]),
    "time, not nullable": (Time(resolution="1h"), ["7:00", "x", None], [7.5, 0.5, 0.5]),
    "time of a moment": (Time(resolution="1h", nullable=True), MOMENTS.cast(pa.timestamp("ms")),
                         [23.5, 0.5, 23.5, 0.5, NAN]),
    "stored times": (Time(resolution="1h", nullable=True), pa.array([dt.time(7, 59), None]), [7.5, NAN]),
}  # fmt: skip
"""A kind of column, its cells (as texts where they have no type), and their points."""


@pytest.mark.parametrize("name", READINGS)
def test_what_cells_become(name):
    column, cells, points = READINGS[name]
    if not isinstance(cells, pa.Array):
        cells = pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    np.testing.assert_array_equal(column.encode([cells])[:, 0], np.array(points, np.float64))
    np.testing.assert_array_equal(column.encode([cells.dictionary_encode()])[:, 0], np.array(points, np.float64))


PLACES = {
    "earth": (Place("a", "b", nullable=True),
              [(46.9, 7.4), (99, 7.4), (None, 7.4), (46.9, None), (46.9, 367.4), (1, INF), (1, 180)],
              [(7.4, 46.9), (7.4, 90), (NAN, NAN), (NAN, NAN), (7.4, 46.9), (NAN, NAN), (180, 1)]),
    "box": (Place("a", "b", low=(45, 5), high=(48, 11)), [(46.9, 7.4), (50, 4), (None, 7.4), (46.9, NAN), (46, 371)],
            [(7.4, 46.9), (5, 48), (5, 45), (5, 45), (11, 46)]),
    "date line": (Place("a", "b", low=(-50, 165), high=(-30, 190), nullable=True),
                  [(-40, 170), (-40, -175), (-40, 100)],
                  [(170, -40), (185, -40), (165, -40)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_what_places_become(name):
    column, cells, points = PLACES[name]
    arrays = [pa.array([pair[i] for pair in cells], pa.float64()) for i in range(2)]
    np.testing.assert_allclose(column.encode(arrays), np.array(points, np.float64), rtol=1e-12)


def test_bytes_that_are_no_utf_8_are_none_of_the_values():
    """They are neither left out of their text nor out of their row."""
    parts = [b"F", b"F\xff", b"\xff", b"\xffM", b"M"]
    texts = pa.array(parts).view(pa.string())
    column = Category(["F", "M", ""], nullable=True)
    np.testing.assert_array_equal(column.encode([texts])[:, 0], [0, NAN, NAN, NAN, 1])
    numbers = pa.array([b"7", b"7\xff"]).view(pa.string())
    np.testing.assert_array_equal(Number(0, 9, nullable=True).encode([numbers])[:, 0], [7, NAN])

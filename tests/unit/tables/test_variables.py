"""Variables: what is drawn and compared. Bins follow from the declaration, and every point lies in one."""

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.tables.variables import MOST_STEPS_DRAWN, variables

COLUMNS = {
    "number": pm.Number(0, 10),
    "ratio": pm.Number(1, 10_000, transform="log"),
    "stretched": pm.Number(0, 1000, breaks=[10, 100]),
    "whole": pm.Integer(17, 90, nullable=True),
    "many": pm.Integer(0, 10_007),
    "day": pm.Date("2020-01-01", "2021-12-31"),
    "instant": pm.Datetime("2020-01-01T00:00:00", "2020-02-01T00:00:00", resolution="1h"),
    "hour": pm.Time(resolution="1min"),
    "kind": pm.Category(["a", "b", "c"], nullable=True),
    "rank": pm.Category(["S", "M", "L"], ordered=True),
    "true": pm.Boolean(),
    "town": pm.Place("lat", "lon", low=(45, 5), high=(48, 11)),
    "anywhere": pm.Place("y", "x"),
}
SCHEMA = pm.Schema(COLUMNS)
KNOWN = {v.name: v for v in variables(SCHEMA)}
SCALES = ["number", "log", "uneven", "number", "number", "date", "date", "hour", "values", "values", "values"]
SCALES += ["place", "place"]


def test_every_kind_has_its_scale():
    assert [v.scale for v in KNOWN.values()] == SCALES
    assert [v.places.start for v in KNOWN.values()] == [*range(12), 13]


@pytest.mark.parametrize("name", COLUMNS)
def test_every_point_lies_in_a_bin(name):
    v, rng = KNOWN[name], np.random.default_rng(0)
    points = v.space.draw(np.zeros(500, np.uint64), 0, rng)
    points[:5] = np.nan
    codes = v.codes(points)
    assert codes.min() >= 0
    assert codes.max() < v.count
    assert (codes[:5] == (v.count - 1 if v.nullable else 0)).all()
    assert v.shares(points).sum() == pytest.approx(1)
    assert v.codes(points[7:8])[0] == codes[7]  # by that row alone
    ends = np.array([[low for low, _ in v.bounds], [high for _, high in v.bounds]])
    assert v.codes(ends).max() < v.count


def test_whole_numbers_are_shared_evenly():
    for name in ("whole", "many"):
        (edges,) = KNOWN[name].edges
        low, high = KNOWN[name].bounds[0]
        assert (edges[0], np.unique(np.diff(edges)).size) == (low - 0.5, 1)
        assert edges[-1] >= high + 0.5
        assert edges[-2] < high + 0.5
        assert len(edges) <= MOST_STEPS_DRAWN + 1


def test_axes_are_drawn_in_the_units_of_the_column():
    drawn = {name: KNOWN[name].drawn(np.array(KNOWN[name].bounds[0])) for name in ("ratio", "day", "instant", "hour")}
    assert drawn["ratio"] == pytest.approx([1, 10_000])
    assert drawn["hour"] == pytest.approx([0, 24])
    days = [np.datetime64(day).astype(int) for day in ("2020-01-01", "2021-12-31", "2020-02-01")]
    assert drawn["day"] == pytest.approx(days[:2])
    assert drawn["instant"] == pytest.approx([days[0], days[2]])


def test_times_of_day_go_around():
    v = KNOWN["hour"]
    points = COLUMNS["hour"].encode([pa.array(["00:10", "23:50"])])
    assert v.codes(points).tolist() == [0, v.count - 1]
    assert v.codes(points + v.bounds[0][1]).tolist() == [0, v.count - 1]


def test_values_are_said_as_people_write_them():
    assert KNOWN["day"].show(KNOWN["day"].bounds[0][0]) == "2020-01-01"
    assert KNOWN["true"].labels == ("false", "true")
    assert KNOWN["number"].show(2.5) == "2.5"


def test_spaces_of_points_have_names_too():
    space = pm.Product([pm.Box([(0, 1), (2, 3)]), pm.Nullable(pm.Categories(3)), pm.Sphere()])
    found = variables(space)
    assert [(v.name, v.scale) for v in found] == [
        ("x0", "number"),
        ("x1", "number"),
        ("x2", "values"),
        ("place", "place"),
    ]
    assert found[2].nullable
    assert found[2].labels == ("0", "1", "2")

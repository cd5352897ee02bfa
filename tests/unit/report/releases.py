"""Releases of every kind, small, for the tests of pages and pictures."""

import datetime
from functools import cache

import numpy as np
import pyarrow as pa

import privmeasure as pm

ROWS = 3000
HOSTILE = '<img src=x onerror="alert(1)">'
VALUES = ["</script><script>alert(1)</script>", "$x^2$ & 'q'", "日本語]]>", ""]
DAY = datetime.date(2023, 1, 1)


def points(space, rows, **options):
    return (
        pm.Synthesizer(space, **({"epsilon": 1, "neighbours": "replace"} | options)).fit(rows, insecure_seed=5).release_
    )


def wide_table():
    """Return a table with every kind of column, and names that try to break a page."""
    rng = np.random.default_rng(3)
    age = rng.integers(0, 100, ROWS)
    columns = {
        "lat": 46.8 + rng.normal(0, 0.4, ROWS),
        "lon": 8.2 + rng.normal(0, 0.8, ROWS),
        "born": [DAY - datetime.timedelta(int(days)) for days in rng.integers(0, 25_000, ROWS)],
        "seen": [DAY + datetime.timedelta(int(days)) for days in rng.integers(0, 500, ROWS)],
        "hour": pa.array((rng.normal(14, 3, ROWS) % 24 * 3600).astype(np.int32), pa.int32()).cast(pa.time32("s")),
        "food": rng.choice(["apple", "pear", "cod", "eel", "bread"], ROWS),
        HOSTILE: rng.choice(VALUES, ROWS),
        "age": pa.array(age, mask=rng.random(ROWS) < 0.1),
        "income": rng.lognormal(10, 1, ROWS),
        "gain": np.where(rng.random(ROWS) < 0.8, 0, rng.integers(1, 50_000, ROWS)),
        "size": rng.choice(["S", "M", "L"], ROWS),
        "smoker": rng.random(ROWS) < 0.3,
    }
    return pa.table(columns)


def wide_schema():
    food = {"fruit": ["apple", "pear"], "fish": {"white": ["cod"], "oily": ["eel"]}}
    return pm.Schema(
        {
            "home": pm.Place("lat", "lon", low=(45, 5), high=(48, 11)),
            "born": pm.Date("1950-01-01", "2023-12-31"),
            "seen": pm.Date("2023-01-01", "2024-06-30"),
            "hour": pm.Time(resolution="1min"),
            "food": pm.Category(["apple", "pear", "cod", "eel", "bread"], taxonomy=food),
            HOSTILE: pm.Category(VALUES),
            "age": pm.Integer(0, 120, unit="year", nullable=True),
            "income": pm.Number(100, 1e7, transform="log", unit="euro"),
            "gain": pm.Integer(0, 100_000, breaks=[1, 1000, 10_000]),
            "size": pm.Category(["S", "M", "L"], ordered=True),
            "smoker": pm.Boolean(),
        },
        never=["age < 10 and smoker = true"],
    )


def make_wide():
    return pm.Synthesizer(wide_schema(), epsilon=2, neighbours="add-remove").fit(wide_table(), insecure_seed=1).release_


def make_tree():
    rng = np.random.default_rng(0)
    table = pa.table(
        {"age": rng.integers(0, 90, ROWS), "sex": pa.array(rng.choice(["F", "M"], ROWS), mask=rng.random(ROWS) < 0.1)}
    )
    schema = pm.Schema({"age": pm.Integer(0, 120, unit="year"), "sex": pm.Category(["F", "M"], nullable=True)})
    return pm.Synthesizer(schema, epsilon=1, neighbours="add-remove").fit(table, insecure_seed=2).release_


def make_groups():
    """Columns of points without a schema, and a table with a group."""
    space = pm.Product([pm.Box([(0, 1)]), pm.Categories(4), pm.Circle(24), pm.Integers(0, 9), pm.Sphere()])
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [
            rng.random(ROWS),
            rng.integers(0, 4, ROWS),
            rng.random(ROWS) * 24,
            rng.integers(0, 10, ROWS),
            rng.normal(10, 9, ROWS),
            rng.normal(40, 9, ROWS),
        ]
    )
    return points(space, rows, mechanism="columns")


def rng():
    return np.random.default_rng(1)


KINDS = {
    "line": lambda: points(pm.Box([(0, 120)]), rng().gamma(9, 5, ROWS)),
    "square": lambda: points(
        pm.Box([(0, 10), (-1, 1)]), rng().normal((5, 0), (1, 0.3), (ROWS, 2)), neighbours="add-remove"
    ),
    "cube": lambda: points(pm.Box([(0, 1)] * 3), rng().beta(2, 5, (ROWS, 3))),
    "finite": lambda: points(
        pm.Finite.from_points(rng().random((12, 2))), rng().integers(0, 12, (ROWS, 1)), mechanism="psmm"
    ),
    "sphere": lambda: points(pm.Sphere(), np.column_stack([rng().normal(10, 30, ROWS), rng().uniform(-60, 60, ROWS)])),
    "few rows": lambda: points(pm.Box([(0, 1)] * 3), rng().random((3, 3)), epsilon=0.1, neighbours="add-remove"),
    "one value": lambda: points(pm.Categories(1), np.zeros((50, 1))),
    "columns of points": make_groups,
    "tree of a table": make_tree,
    "wide table": make_wide,
}


@cache
def release(kind):
    return KINDS[kind]()


@cache
def typical(kind):
    return pm.typical_error(release(kind), runs=3, seed=1)

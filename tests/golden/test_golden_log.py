"""Releases with log scales, written when the axis was the logarithm itself, still load, and mean what they meant.

Written once by `python tests/golden/test_golden_log.py`, with a seed for the noise, and not written again.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm

HERE = Path(__file__).parent
NAMES = ["log", "log-columns"]
QUANTILES = np.linspace(0.01, 0.99, 25)


def path_of(name):
    return HERE / f"format-1-{name}.parquet"


def make(name):
    """Write a golden file of a simulated table."""
    rng = np.random.default_rng(22)
    n = 1500
    student = rng.random(n) < 0.3
    data = {
        "pay": np.exp(rng.normal(6, 1, n)) * np.where(student, 0.05, 1),
        "visits": pa.array(rng.geometric(0.05, n), pa.int32(), mask=rng.random(n) < 0.1),
        "wealth": rng.exponential(5000, n),
        "student": student,
        "sex": pa.array(rng.choice(["F", "M"], n)),
    }
    columns = {
        "pay": pm.Number(1, 1e5, transform="log", decimals=2),
        "visits": pm.Integer(1, 1000, transform="log", nullable=True),
        "wealth": pm.Number(0, 1e6, breaks=[1e3, 1e4, 1e5]),
        "student": pm.Boolean(),
        "sex": pm.Category(["F", "M"]),
    }
    wide = name == "log-columns"
    kept = list(columns) if wide else ["pay", "visits", "wealth"]
    never = ["pay >= 5000 and student = true"] if wide else []
    schema = pm.Schema({column: columns[column] for column in kept}, never=never)
    mechanism = "columns" if wide else "pmm"
    synthesizer = pm.Synthesizer(schema, epsilon=4, neighbours="add-remove", mechanism=mechanism)
    synthesizer.fit(pa.table({c: data[c] for c in kept}), insecure_seed=22).save(path_of(name))


def numbers(rows, column):
    """Return the values of a column that are there."""
    return np.sort(rows[column].drop_null().to_numpy().astype(float))


if __name__ == "__main__":
    for each in NAMES:
        make(each)
        made = pm.load(path_of(each))
        drawn = made.sample(20_000, seed=7)
        seen = {c: np.quantile(numbers(drawn, c), QUANTILES).round(3).tolist() for c in ("pay", "visits", "wealth")}
        print(each, made.total, seen, made.mean(), path_of(each).stat().st_size)
        print(made.header()["domain"], made.header().get("facts"))
        print({c: made.quantile(0.5, column=c) for c in ("pay", "visits", "wealth")})
        print(made.sample(4, seed=7).to_pylist())

"""Release files of tables still load: one tree over all columns, and a tree of columns.

Written once by `python tests/golden/test_golden_tables.py`, with a seed for the noise, and not written again.
"""

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm

HERE = Path(__file__).parent
NAMES = ["table", "columns"]


def path_of(name):
    return HERE / f"format-1-{name}.parquet"


def make(name):
    """Write a golden file of a simulated table."""
    rng = np.random.default_rng(21)
    n = 800
    table = pa.table(
        {
            "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(i)) for i in rng.integers(0, 366, n)],
            "name": [f"person {i}" for i in range(n)],
            "sex": pa.array(rng.choice(["F", "M"], n)),
            "age": pa.array(rng.integers(18, 90, n), pa.int16(), mask=rng.random(n) < 0.1),
            "pregnant": pa.array([False] * n),
        }
    )
    schema = pm.Schema(
        {
            "day": pm.Date("2024-01-01", "2024-12-31"),
            "name": pm.Drop(),
            "sex": pm.Category(["F", "M"]),
            "age": pm.Integer(0, 120, nullable=True),
            "pregnant": pm.Boolean(),
        },
        never=["sex = 'M' and pregnant = true"],
    )
    mechanism = "columns" if name == "columns" else "pmm"
    synthesizer = pm.Synthesizer(schema, epsilon=2, neighbours="add-remove", mechanism=mechanism)
    synthesizer.fit(table, insecure_seed=21).save(path_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_it_loads_and_gives_rows(name):
    release = pm.load(path_of(name))
    assert not release.private
    assert release.total == release.plan.rows == TOTAL[name]
    assert release.plan.spent <= release.plan.privacy.epsilon == 2
    rows = release.sample(seed=7)
    types = {"day": pa.date32(), "sex": pa.string(), "age": pa.int16(), "pregnant": pa.bool_()}
    assert {field.name: field.type for field in rows.schema} == types  # in order, without the name
    assert rows.num_rows == TOTAL[name]
    assert not any(row["sex"] == "M" and row["pregnant"] for row in rows.to_pylist())


@pytest.mark.parametrize("name", NAMES)
def test_it_is_written_as_it_was_read(name, tmp_path):
    release = pm.load(path_of(name))
    release.save(tmp_path / "again.parquet")
    again = pm.load(tmp_path / "again.parquet")
    assert again.header() == release.header()
    assert again.sample(50, seed=1).to_pydict() == release.sample(50, seed=1).to_pydict()


def test_one_tree_gives_the_same_rows():
    assert pm.load(path_of("table")).sample(seed=7).slice(0, 2).to_pylist() == ROWS


def test_the_released_numbers_of_columns_come_back():
    """Rows of a tree of columns are fitted in floats, which may differ between machines; what is stored may not."""
    measure = pm.load(path_of("columns")).measure
    assert [column.mass[:3].tolist() for column in measure.columns] == MASSES
    assert [(pair.first, pair.second, pair.noisy[0, :2].tolist()) for pair in measure.pairs] == PAIRS


TOTAL = {"table": 799, "columns": 791}
ROWS = [
    {"day": datetime.date(2024, 5, 31), "sex": "F", "age": 30, "pregnant": False},
    {"day": datetime.date(2024, 6, 18), "sex": "M", "age": 120, "pregnant": False},
]
MASSES = [[27, 13, 7], [406, 385], [1, 3, 2], [791]]
PAIRS = [(1, 3, [431]), (2, 3, [135]), (0, 3, [116])]

if __name__ == "__main__":
    for each in NAMES:
        make(each)
        made = pm.load(path_of(each))
        print(each, made.total, made.sample(seed=7).slice(0, 2).to_pylist(), path_of(each).stat().st_size)

"""A release whose schema has format 2, with derived columns, still loads and derives the same.

Written once by `python tests/golden/test_golden_derived.py`, with a seed for the noise, and not written again.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

import privmeasure as pm

PLACE = Path(__file__).parent / "schema-2-derived.parquet"
COLUMNS = {
    "born": pm.Date("1920-01-01", "2019-12-31"),
    "city": pm.Category(["Bern", "Genf"], nullable=True),
    "decade": pm.Derived("year(born) // 10 * 10"),
    "canton": pm.Derived("lookup(city)", lookup={"Bern": "BE", "Genf": "GE"}),
}


def make():
    """Write the golden file of a simulated table."""
    rng = np.random.default_rng(22)
    born = np.datetime64("1920-01-01") + rng.integers(0, 36500, 800)
    table = pa.table({"born": born, "city": pa.array(rng.choice(["Bern", "Genf"], 800), mask=rng.random(800) < 0.1)})
    pm.Synthesizer(pm.Schema(COLUMNS), epsilon=2, neighbours="add-remove").fit(table, insecure_seed=22).save(PLACE)


def test_it_loads_and_gives_rows():
    release = pm.load(PLACE)
    assert release.schema == pm.Schema(COLUMNS)
    assert release.header()["schema"]["format"] == 2
    rows = release.sample(seed=7).to_pylist()
    assert len(rows) == release.total == TOTAL
    assert all(row["decade"] == row["born"].year // 10 * 10 for row in rows)
    assert all(row["canton"] == {"Bern": "BE", "Genf": "GE", None: None}[row["city"]] for row in rows)


TOTAL = 798

if __name__ == "__main__":
    make()
    print(pm.load(PLACE).total)

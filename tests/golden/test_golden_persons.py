"""A release file whose schema names a person, of schema format 2, still loads.

Written once by `python tests/golden/test_golden_persons.py`, with a seed for the noise, and not written again.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

import privmeasure as pm
from privmeasure.releases import files

PATH = Path(__file__).parent / "format-1-person.parquet"
SCHEMA = pm.Schema({"who": pm.Drop(), "age": pm.Integer(0, 120), "sex": pm.Category(["F", "M"])}, person="who")


def make():
    """Write a golden file of simulated visits."""
    rng = np.random.default_rng(8)
    who = rng.integers(0, 200, 1_500)
    table = pa.table({"who": who, "age": 20 + who % 60, "sex": pa.array(["F", "M"]).take(who % 2)})
    synthesizer = pm.Synthesizer(SCHEMA, epsilon=2, neighbours="add-remove", rows_per_person=4)
    synthesizer.fit(table, insecure_seed=8).save(PATH)


def test_it_loads_and_states_its_promise():
    release = pm.load(PATH)
    assert release.schema == SCHEMA
    assert release.plan.privacy == pm.Privacy(2, "add-remove", 4, "who")
    assert (release.total, release.plan.rows) == (TOTAL, TOTAL)
    assert release.sample(seed=7).column_names == ["age", "sex"]
    header, _ = files.read_release(PATH)
    assert release.header() == header


TOTAL = 762

if __name__ == "__main__":
    make()
    print(pm.load(PATH).total)

"""Few rows of a release with a constraint are drawn from all of its cells, in any order."""

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm


@pytest.mark.parametrize("order", ["random", "cell"])
def test_few_rows_that_keep_a_constraint_come_from_all_cells(order):
    """Ages are even over 0 to 100: the mean of the first cells alone would be near 0. False alarms: below 1e-6."""
    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.uniform(0, 100, 4000), "kind": rng.choice(["a", "b"], 4000)})
    columns = {"age": pm.Number(0, 100), "kind": pm.Category(["a", "b"])}
    schema = pm.Schema(columns, never=["age > 95 and kind = 'b'"])
    synthesizer = pm.Synthesizer(schema, epsilon=4, neighbours="replace").fit(table, insecure_seed=1)
    ages = [
        age for seed in range(5) for age in synthesizer.release_.sample(60, seed=seed, order=order)["age"].to_pylist()
    ]
    assert abs(np.mean(ages) - 49) < 5 * 29 / np.sqrt(len(ages)) + 1

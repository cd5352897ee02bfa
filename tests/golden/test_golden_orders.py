"""A release of format 2, with the distances of its rows, still loads and says the same.

Written once by `python tests/golden/test_golden_orders.py`, with a seed for the noise, and not written again.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

import privmeasure as pm

PLACE = Path(__file__).parent / "format-2-orders.parquet"
COLUMNS = {
    "came": pm.Integer(0, 365),
    "left": pm.Integer(0, 365, nullable=True),
    "ward": pm.Category(["surgery", "medicine", "other"]),
    "died": pm.Boolean(),
    "urgent": pm.Boolean(),
}


def make():
    """Write the golden file of a simulated table."""
    rng = np.random.default_rng(32)
    came, stay = rng.integers(0, 300, 800), rng.integers(0, 65, 800)
    table = pa.table(
        {
            "came": came,
            "left": pa.array(came + stay, mask=rng.random(800) < 0.1),
            "ward": np.array(["surgery", "medicine", "other"])[np.digitize(stay, [20, 40])],
            "died": rng.random(800) < 0.3,
            "urgent": rng.random(800) < 0.5,
        }
    )
    schema = pm.Schema(COLUMNS, never="left < came")
    pm.Synthesizer(schema, epsilon=3, neighbours="add-remove").fit(table, insecure_seed=32).save(PLACE)


def test_it_loads_and_states_how_far_its_rows_are():
    release = pm.load(PLACE)
    header = release.header()
    assert header["format"] == 2
    assert [*release.row_distances.values()] == header["row_distances"]["columns"]
    assert len(release.row_pair_distances) == len(header["row_distances"]["pairs"]) > 0
    rows = release.sample(seed=7)
    both = rows.select(["came", "left"]).drop_null()
    assert rows.num_rows == release.total == TOTAL
    assert (both["left"].to_numpy() >= both["came"].to_numpy()).all()


TOTAL = 797

if __name__ == "__main__":
    make()
    print(pm.load(PLACE).total)

"""MST and AIM of OpenDP (extra `mbi`), in the environment of that name.

Every column is given as whole numbers 0 .. m - 1 with the cuts 0 .. m - 2. So the domain is public, no cell is kept for
unknown keys, and each cell comes back as its own number: OpenDP's decoding of the two end bins (one unit wide, whatever
the bounds) does no harm. `method="sample"`: the default sampler of mbi 1.1 makes children of one parent move together.

OpenDP 0.16 splits the selection's budget over the rounds with one step of rounding, and then refuses the last round
("insufficient budget") for many budgets, for 9 columns always. A step of 1e-12 instead lets it end.
"""

from typing import Any

import jax  # noqa: F401 (imports are not timed)
import mbi  # noqa: F401
import numpy as np
import opendp.prelude as dp
import pandas as pd  # noqa: F401
import polars as pl
from job import run
from opendp.extras.mbi import _mst

_mst.prior = lambda x: x * (1 - 1e-12)
dp.enable_features("contrib")


def fit(cells: np.ndarray, sizes: list[int], settings: dict[str, Any]) -> np.ndarray:
    names = [f"c{j}" for j in range(len(sizes))]
    data = pl.LazyFrame({name: cells[:, j].astype(np.int32) for j, name in enumerate(names)})
    context = dp.Context.compositor(
        data=data,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=settings["rho"]),
        split_evenly_over=1,
    )
    algorithm = {"MST": dp.mbi.MST, "AIM": dp.mbi.AIM}[settings["method"]]()
    cuts = {name: list(range(size - 1)) for name, size in zip(names, sizes, strict=True)}
    table = context.query().contingency_table(cuts=cuts, algorithm=algorithm).release()
    synthetic = table.synthesize(len(cells), method="sample")
    return np.column_stack([synthetic[name].to_numpy() for name in names])


if __name__ == "__main__":
    run(fit, ("opendp", "mbi", "jax", "polars", "pandas", "numpy"))

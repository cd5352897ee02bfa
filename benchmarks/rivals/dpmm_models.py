"""MST and AIM of dpmm, in the environment of that name: its pipeline on cells, without its own private binning."""

from typing import Any

import numpy as np
import pandas as pd
from dpmm.pipelines.aim import AIMPipeline
from dpmm.pipelines.mst import MSTPipeline
from job import run


def fit(cells: np.ndarray, sizes: list[int], settings: dict[str, Any]) -> np.ndarray:
    names = [f"c{j}" for j in range(len(sizes))]
    frame = pd.DataFrame({name: cells[:, j] for j, name in enumerate(names)})
    kind = {"MST": MSTPipeline, "AIM": AIMPipeline}[settings["method"]]
    pipeline = kind(epsilon=settings["epsilon"], delta=settings["delta"], disable_processing=True, n_jobs=1)
    pipeline.fit(frame, domain=dict(zip(names, sizes, strict=True)), random_state=settings["seed"])
    synthetic = pipeline.generate(n_records=len(cells), random_state=settings["seed"])
    return synthetic[names].to_numpy()


if __name__ == "__main__":
    run(fit, ("dpmm", "opendp", "numpy", "pandas", "scipy"))

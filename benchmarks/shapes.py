"""The shapes of the evaluation, in the unit cube."""

import numpy as np


def shape(name: str, rows: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return points of the unit cube: the shapes of the evaluation."""
    match name:
        case "uniform":
            return rng.random((rows, d))
        case "gaussian":
            return np.clip(rng.normal(0.4, 0.1, (rows, d)), 0, 1)
        case "clusters":
            centres, widths, which = rng.random((20, d)), rng.gamma(2, 0.01, (20, 1)), rng.integers(0, 20, rows)
            return np.clip(centres[which] + rng.normal(size=(rows, d)) * widths[which], 0, 1)
        case "atom":
            return np.full((rows, d), 0.3)
    raise ValueError(name)

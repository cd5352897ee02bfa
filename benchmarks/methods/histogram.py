"""The flat histogram: noise on the cells of one level. Which level is best is seen afterwards only."""

import numpy as np

from methods.cells import Cells, counts, monotone, released_total, sensitivity, share_out, whole_level


def release(points: np.ndarray, epsilon: float, relation: str, rng: np.random.Generator, *, level: int) -> Cells:
    """Release a histogram: the whole budget on one level.

    On a line the sums are made monotone; above, the nearest masses that are not negative are taken.
    """
    rows, d = points.shape
    noisy = counts(points, level) + rng.laplace(0, sensitivity(relation) / epsilon, 1 << level)
    total = released_total(noisy.sum(), rows, relation)
    return whole_level(monotone(noisy, total) if d == 1 else share_out(noisy[np.newaxis], np.array([total]))[0], d)


def levels(d: int) -> list[int]:
    """Return the levels that hindsight chooses from: cubes, up to the resolution of the distance."""
    return list(range(2, 18)) if d == 1 else [d * k for k in range(2, 8 if d == 2 else 6)]

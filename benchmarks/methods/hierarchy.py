"""A hierarchy of fan-out 16 with constrained inference.

Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms through consistency", VLDB
2010: noisy counts of every node, and the least-squares estimate that is consistent, in two passes. Qardaji, Yang, Li,
"Understanding hierarchical methods for differentially private histograms", VLDB 2013: with inference a fan-out of about
16 and the same budget for every level are best, and the root is not measured.

Choices: a node has the 16 cells that four cuts make, whatever the dimension; the top node has fewer where the depth is
no multiple of four. There are LEAVES[d] times epsilon n / sensitivity leaves: the papers take them as given. On a line
the sums of the leaves are made monotone by least squares; in the square and the cube the masses are made non-negative
from the top, node by node, by least squares.
"""

import numpy as np

from methods.cells import Cells, counts, monotone, nearest_level, released_total, sensitivity, share_out, whole_level

BITS = 4
LEAVES = {1: 0.125, 2: 0.125, 3: 1.0}
"""The best of 1/16, 1/8, ..., 4 on the open tables and the shapes; Qardaji et al. have 1/10 as a rule for grids."""


def release(
    points: np.ndarray, epsilon: float, relation: str, rng: np.random.Generator, *, leaves: float | None = None
) -> Cells:
    """Release all levels of a hierarchy with equal budgets, made consistent."""
    rows, d = points.shape
    sensitive = sensitivity(relation)
    depth = nearest_level((LEAVES[d] if leaves is None else leaves) * epsilon * rows / sensitive)
    levels = [*range(depth, 0, -BITS)][::-1]
    scale = sensitive * len(levels) / epsilon
    true = counts(points, depth)
    noisy = [true.reshape(1 << level, -1).sum(axis=1) + rng.laplace(0, scale, 1 << level) for level in levels]
    root = float(rows) if relation == "replace" else None
    estimates = upwards(noisy)
    if root is None:
        root = released_total(estimates[0].sum(), rows, relation)
    if d == 1:
        return whole_level(monotone(downwards(estimates, root)[-1], root), d)
    mass = np.array([root])
    for level in estimates:
        mass = share_out(level.reshape(len(mass), -1), mass).ravel()
    return whole_level(mass, d)


def upwards(noisy: list[np.ndarray]) -> list[np.ndarray]:
    """Return the best estimate of every node from itself and what is below it; all counts have the same variance."""
    found, variance = [noisy[-1]], 1.0
    for level in noisy[-2::-1]:
        sums = found[0].reshape(len(level), -1)
        variance *= sums.shape[1]
        found.insert(0, (variance * level + sums.sum(axis=1)) / (variance + 1))
        variance /= variance + 1
    return found


def downwards(estimates: list[np.ndarray], root: float) -> list[np.ndarray]:
    """Return the consistent least-squares estimates: what a node has beyond its children is dealt out evenly."""
    above, found = np.array([root]), []
    for level in estimates:
        children = level.reshape(len(above), -1)
        above = (children + ((above - children.sum(axis=1)) / children.shape[1])[:, np.newaxis]).ravel()
        found.append(above)
    return found

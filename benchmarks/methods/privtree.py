"""PrivTree: a tree that is cut where the rows are, with noise that does not grow with its height.

Zhang, Xiao, Xie, "PrivTree: A Differentially Private Algorithm for Hierarchical Decompositions", SIGMOD 2016. A node at
depth t with count c is cut if max(c - t delta, theta - delta) + Lap(lambda) > theta. With lambda = (2 beta - 1) /
((beta - 1) epsilon) and delta = lambda ln beta the whole tree is epsilon-differentially private (adding or removing a
row), however deep it is. As in the paper, theta = 0, beta = 2^d (every axis is halved), half of the budget is for the
tree and half for the counts of its leaves.

Choices: cells are not cut below 2^-30 of an axis (2^-20 if d = 3); replacing a row is two steps of adding or removing;
noisy counts of leaves are made non-negative from the top, node by node, by least squares.
"""

import math
from dataclasses import dataclass

import numpy as np

from methods.cells import DEEPEST, Cells, code, corners, released_total, sensitivity, share_out

THETA = 0.0


@dataclass(frozen=True)
class Settings:
    """What the decisions depend on."""

    fanout: int
    scale: float
    decay: float

    @classmethod
    def of(cls, d: int, epsilon: float) -> "Settings":
        """Return the paper's settings for the tree alone."""
        fanout = 2**d
        scale = (2 * fanout - 1) / ((fanout - 1) * epsilon)
        return cls(fanout, scale, scale * math.log(fanout))

    def biased(self, count: np.ndarray, depth: int) -> np.ndarray:
        """Return the counts that noise is added to."""
        return np.maximum(count - depth * self.decay, THETA - self.decay)


def release(points: np.ndarray, epsilon: float, relation: str, rng: np.random.Generator) -> Cells:
    """Release the leaves of a tree with their noisy counts, made non-negative."""
    rows, d = points.shape
    budget = epsilon / 2 / sensitivity(relation)
    levels = tree(np.sort(code(points, d * deepest(d))), d, Settings.of(d, budget), rng)
    # from the leaves up: a leaf has its noisy count, a node the sum of its children
    wanted = [np.empty(0)] * len(levels)
    for depth in range(len(levels) - 1, -1, -1):
        _, count, cut = levels[depth]
        wanted[depth] = count + rng.laplace(0, 1 / budget, len(count))
        if cut.any():
            wanted[depth][cut] = wanted[depth + 1].reshape(-1, 2**d).sum(axis=1)
    mass, low, side, kept = np.array([released_total(wanted[0][0], rows, relation)]), [], [], []
    for depth, (codes, _, cut) in enumerate(levels):
        first, sides = corners(codes[~cut], d * depth, d)
        low.append(first), side.append(sides), kept.append(mass[~cut])
        if cut.any():
            mass = share_out(wanted[depth + 1].reshape(-1, 2**d), mass[cut]).ravel()
    found = np.concatenate(kept)
    return Cells(np.concatenate(low)[found > 0], np.concatenate(side)[found > 0], found[found > 0])


def deepest(d: int) -> int:
    """Return how often an axis is cut at most: a code has 62 bits."""
    return min(DEEPEST, 62 // d)


def tree(
    ordered: np.ndarray, d: int, settings: Settings, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return codes, true counts and decisions of the nodes, depth by depth."""
    last = deepest(d)
    codes, levels = np.zeros(1, np.int64), []
    for depth in range(last + 1):
        unseen = d * (last - depth)
        ends = np.searchsorted(ordered, np.stack((codes, codes + 1)) << unseen)
        count = (ends[1] - ends[0]).astype(np.float64)
        noise = rng.laplace(0, settings.scale, len(codes))
        cut = (settings.biased(count, depth) + noise > THETA) & (depth < last)
        levels.append((codes, count, cut))
        if not cut.any():
            break
        codes = (codes[cut, np.newaxis] * settings.fanout + np.arange(settings.fanout)).ravel()
    return levels

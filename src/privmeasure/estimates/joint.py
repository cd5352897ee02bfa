"""One column from everything that was measured of it: the levels of its own tree, and the margins of tables it is in.

A table of two columns, summed over the other one, is a noisy histogram of groups of cells. Least squares over all of
them is one linear system: its tree part is solved exactly, level inside level, and the groups, which cross the tree,
by conjugate gradients on top of that. All of it reads noisy counts and public variances: post-processing.

Notation:   w_l one over the variance of a count of level l    S_l sums over the cells of level l
            P = sum_l w_l S_l' S_l, the precision of the leaves by the tree alone
References: docs/mathematics.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Floats
from privmeasure.estimates.consistency import Prepared
from privmeasure.estimates.linear import Estimate, Variances
from privmeasure.rounding import inner

GRADIENT_STEPS = 50
"""Of conjugate gradients: groups are few, and each step settles one of their directions."""
SETTLED = 1e-15
"""The part of the first error, squared, at which the steps end: far below a row."""


@dataclass(frozen=True, eq=False)
class Margin:
    """Noisy sums over groups of leaves: `groups[i]` is that of leaf i, `variance` that of the noise of each sum."""

    groups: NDArray[np.int64]
    sums: Floats
    variance: float


def joint_leaves(
    noisy: Mapping[int, Estimate], measured: Variances, exists: Bools, margins: Sequence[Margin]
) -> Floats:
    """Return the best linear estimates of all leaves, from the levels of the tree and from margins together.

    `noisy` and `measured` may hold level 0, an estimate of the total; the deepest level is that of the leaves. Leaves
    that do not exist are 0.

    Examples:
        >>> margin = Margin(np.array([0, 0, 1, 1]), np.array([10.0, 2.0]), variance=2.0)
        >>> joint_leaves({2: np.array([4, 4, 3, 3])}, {2: 1.0}, np.ones(4, bool), [margin])
        array([4.5, 4.5, 2. , 2. ])
    """
    tree = _Tree(np.flatnonzero(exists), max(noisy), {level: 1 / measured[level] for level in noisy})
    pull = np.zeros(len(tree.leaves))
    for level, counts in noisy.items():
        pull += (tree.weights[level] * counts[tree.cells(level)].astype(np.float64))[tree.places[level]]
    x = tree.solved(pull)
    groups = [margin.groups[tree.leaves] for margin in margins]

    def pulled(values: Floats, *, towards: bool) -> Floats:
        out = np.zeros(len(values))
        for margin, group in zip(margins, groups, strict=True):
            have = np.bincount(group, weights=values, minlength=len(margin.sums))
            out += ((margin.sums * towards - have) / margin.variance)[group]
        return out

    residual = pulled(x, towards=True)
    ahead = direction = tree.solved(residual)
    size = first = inner(residual, ahead)
    for _ in range(GRADIENT_STEPS if margins else 0):
        if not size > SETTLED * first:
            break
        image = tree.applied(direction) - pulled(direction, towards=False)
        step = size / inner(direction, image)
        x, residual = x + step * direction, residual - step * image
        ahead, before = tree.solved(residual), size
        size = inner(residual, ahead)
        direction = ahead + (size / before) * direction
    leaves = np.zeros(len(exists))
    leaves[tree.leaves] = x
    return leaves


def splits(leaves: Floats) -> list[Prepared]:
    """Return the differences of siblings, level by level from the top, of estimates of all leaves.

    Examples:
        >>> splits(np.array([1.0, 2.0, 3.0, 5.0]))
        [(array([-5.]),), (array([-1., -2.]),)]
    """
    found: list[Prepared] = []
    while len(leaves) > 1:
        found.append((leaves[0::2] - leaves[1::2],))
        leaves = leaves[0::2] + leaves[1::2]
    return found[::-1]


class _Tree:
    """P and its inverse, in linear time: a level adds a rank-one term to each of its cells (Sherman and Morrison)."""

    def __init__(self, leaves: NDArray[np.int64], depth: int, weights: Mapping[int, float]) -> None:
        self.leaves, self.weights, self._depth = leaves, weights, depth
        self._above = sorted((level for level in weights if level < depth), reverse=True)
        self.places = {level: np.unique(leaves >> (depth - level), return_inverse=True)[1] for level in weights}
        spread, self._steps = np.full(len(leaves), 1 / weights[depth]), list[tuple[int, Floats, Floats]]()
        for level in self._above:  # `spread` is the inverse so far, applied to the cells of the level
            whole = self._sums(spread, level)
            self._steps.append((level, spread, weights[level] / (1 + weights[level] * whole)))
            spread = spread / (1 + weights[level] * whole)[self.places[level]]

    def cells(self, level: int) -> NDArray[np.int64]:
        """Return the cells of a level that exist."""
        return np.unique(self.leaves >> (self._depth - level))

    def _sums(self, x: Floats, level: int) -> Floats:
        return np.bincount(self.places[level], weights=x).astype(np.float64)

    def applied(self, x: Floats) -> Floats:
        """Return P x."""
        out = self.weights[self._depth] * x
        for level in self._above:
            out = out + (self.weights[level] * self._sums(x, level))[self.places[level]]
        return out

    def solved(self, b: Floats) -> Floats:
        """Return x with P x = b."""
        x = b / self.weights[self._depth]
        for level, spread, step in self._steps:
            x = x - spread * (step * self._sums(x, level))[self.places[level]]
        return x

"""The best linear estimates from the noisy counts of several levels: pure functions of released values.

A cell's own noisy count and the sum of its children's estimates are averaged on the way up, weighted by their
variances; on the way down what the parent knows goes to the children, in proportion to their variances.

Notation:   y noisy count    v_j variance of the noise of level j    z estimate    C variance of z    h final estimate
References: Hay et al. 2010 and Honaker 2015 with a variance for each level; docs/mathematics.md
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Domain, Floats
from privmeasure.noise.law import LAPLACE, LawName, facts_of
from privmeasure.threads import in_threads

Estimate = NDArray[Any]
"""int64 where nothing was averaged, float64 after inference."""
Variances = Mapping[int, float]

CELLS_TOGETHER = 1 << 16
"""Cells that are looked at together."""


def noise_variance(scale: Fraction, law: LawName = LAPLACE) -> float:
    """Return the variance of the noise of a scale.

    Examples:
        >>> round(noise_variance(Fraction(1)), 4)
        1.8413
    """
    return facts_of(law, scale).variance


def level_variances(measured: Variances, depth: int, *, blue: bool) -> list[float]:
    """Return C_j, the variance of one cell's estimate after the up pass in an even tree, for j = 0, ..., depth.

    Examples:
        >>> level_variances({2: 1.0}, 2, blue=True)
        [4.0, 2.0, 1.0]
        >>> level_variances({1: 2.0, 2: 1.0}, 2, blue=True)
        [2.0, 1.0, 1.0]
    """
    variance = [0.0] * depth + [measured[depth]]
    for level in range(depth - 1, -1, -1):
        children = 2 * variance[level + 1]
        own = measured.get(level)
        if own is None:
            variance[level] = children
        else:
            variance[level] = own * children / (own + children) if blue else own
    return variance


def blue_estimates(
    noisy: dict[int, Estimate],
    measured: Variances,
    depth: int,
    exists: Sequence[Bools],
    root: float | None,
    *,
    threads: int = 1,
) -> Iterator[Floats]:
    """Yield the final estimates h of the cells of levels 1, ..., depth of one tree, or of many alike, in both passes.

    A cell that does not exist is 0 with variance 0, so the variances are per cell. `root` is the total where that is
    known, else None. Takes the arrays out of `noisy` as it goes. Threads change nothing: cells are worked on by place.

    Notation:   h_child = z_child + (h_parent - z_left - z_right) C_child / (C_left + C_right)
    """

    def leaves(own: Estimate, part: slice) -> tuple[Floats, Floats]:
        there = exists[depth][part]
        return np.where(there, own[part], 0.0), np.where(there, measured[depth], 0.0)

    def up(level: int, own: Estimate | None, part: slice) -> tuple[Floats, Floats]:
        left, right = _children(part)
        total, spread = z[-1][left] + z[-1][right], c[-1][left] + c[-1][right]
        if own is None:
            return total, spread
        weight = spread / (measured[level] + spread)
        return weight * own[part] + (1 - weight) * total, measured[level] * weight

    def down(h: Floats, zs: Floats, cs: Floats, part: slice) -> tuple[Floats, Floats]:
        left, right = _children(part)
        spread = cs[left] + cs[right]
        share = np.divide(cs[left], spread, out=np.zeros_like(spread), where=spread > 0)
        gap = h[part] - zs[left] - zs[right]
        return zs[left] + gap * share, zs[right] + gap * (1 - share)

    both = _by_stretch(partial(leaves, noisy.pop(depth)), np.empty((2, len(exists[depth]))), threads)
    z, c = [both[0]], [both[1]]
    for level in range(depth - 1, -1, -1):  # z[-1] and c[-1] are the level below
        both = _by_stretch(partial(up, level, noisy.pop(level, None)), np.empty((2, len(z[-1]) // 2)), threads)
        z.append(both[0])
        c.append(both[1])
    h, _ = z.pop(), c.pop()
    if root is not None:
        h = np.full(len(h), float(root))
    while z:
        children = _by_stretch(partial(down, h, z.pop(), c.pop()), np.empty((len(h), 2)).T, threads)
        h = children.T.ravel()
        yield h


def _children(parents: slice) -> tuple[slice, slice]:
    """Return where the first and the second children of a stretch of parents lie."""
    return slice(2 * parents.start, 2 * parents.stop, 2), slice(2 * parents.start + 1, 2 * parents.stop, 2)


def _by_stretch(step: Callable[[slice], tuple[Floats, Floats]], both: Floats, threads: int) -> Floats:
    """Fill two rows with what `step` gives for each stretch of them: small enough for the cache, and in threads."""
    length = both.shape[1]

    def fill(task: int) -> None:
        part = slice(task * CELLS_TOGETHER, min((task + 1) * CELLS_TOGETHER, length))
        both[0, part], both[1, part] = step(part)

    if length <= CELLS_TOGETHER:
        fill(0)
    else:
        in_threads(fill, -(-length // CELLS_TOGETHER), threads)
    return both


def total_estimate(noisy: Mapping[int, Estimate], measured: Variances, depth: int, there: Bools) -> tuple[float, float]:
    """Return the best linear estimate of a tree's total, and its variance: the up pass alone.

    `there` says which cells of the deepest level exist; `noisy` may have a noisy total as level 0. In an even tree
    every level is a measurement of the total, and their sums are averaged.
    """
    if there.all():
        sums = {level: float(counts.sum(dtype=np.float64)) for level, counts in noisy.items() if level <= depth}
        weights = {level: 1 / (measured[level] * 2.0**level) for level in sums}
        variance = 1 / sum(weights.values())
        return variance * sum(weights[level] * total for level, total in sums.items()), variance
    z, c = np.where(there, noisy[depth], 0).astype(np.float64), np.where(there, measured[depth], 0.0)
    for level in range(depth - 1, -1, -1):
        z, c = z[0::2] + z[1::2], c[0::2] + c[1::2]
        if level in noisy:
            share = c / (measured[level] + c)
            z, c = share * noisy[level] + (1 - share) * z, measured[level] * share
    return float(z[0]), float(c[0])


def total_coefficients(measured: Variances, depth: int, exists: Sequence[Bools] | None) -> dict[int, Floats]:
    """Return what each noisy count of the measured levels weighs in the best linear estimate of the total.

    In an even tree (`exists` is None) one number a level stands for all its cells.
    """
    if exists is None:
        shares = {level: 1 / (variance * 2.0**level) for level, variance in measured.items()}
        return {level: np.full(1, share / sum(shares.values())) for level, share in shares.items()}
    c = np.where(exists[depth], measured[depth], 0.0)
    own: dict[int, Floats] = {}
    for level in range(depth - 1, -1, -1):
        c = c[0::2] + c[1::2]
        if level in measured:
            own[level] = c / (measured[level] + c)
            c = measured[level] * own[level]
    found: dict[int, Floats] = {}
    weight = np.ones(1)
    for level in range(depth + 1):
        if level == depth:
            found[level] = weight
        elif level in own:
            found[level] = weight * own[level]
            weight = weight * (1 - own[level])
        weight = np.repeat(weight, 2)
    return {level: np.where(exists[level], weights, 0.0) for level, weights in found.items()}


def uneven_difference_variances(measured: Variances, depth: int, exists: Sequence[Bools]) -> list[Floats]:
    """Return 4 C_0 C_1 / (C_0 + C_1) for the pairs of siblings of levels 1, ..., depth, given their parents' totals.

    It is the variance of the noise in the difference of two siblings that are known to sum to their parent, and 0 where
    a sibling does not exist; in an even tree it is V_j.
    """
    c = np.where(exists[depth], measured[depth], 0.0)
    variances: list[Floats] = []
    for level in range(depth - 1, -1, -1):
        left, right = c[0::2], c[1::2]
        c = left + right
        variances.append(np.divide(4 * left * right, c, out=np.zeros_like(c), where=c > 0))
        if level in measured:
            c = measured[level] * c / (measured[level] + c)
    return variances[::-1]


def ancestors(exists: Bools, depth: int) -> list[Bools]:
    """Return which cells of levels 0, ..., depth exist, given those of the deepest: a cell exists if a child does."""
    levels = [exists]
    for _ in range(depth):
        levels.append(levels[-1][0::2] | levels[-1][1::2])
    return levels[::-1]


def existing(domain: Domain, depth: int, *, threads: int = 1) -> list[Bools]:
    """Return which cells of levels 0, ..., depth exist."""
    there = np.empty(1 << depth, bool)

    def look(task: int) -> None:
        start = task * CELLS_TOGETHER
        cells = np.arange(start, min(start + CELLS_TOGETHER, len(there)), dtype=np.uint64)
        there[start : start + CELLS_TOGETHER] = domain.exists(cells, depth)

    in_threads(look, -(-len(there) // CELLS_TOGETHER), threads)
    return ancestors(there, depth)

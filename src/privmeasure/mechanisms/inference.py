"""The up pass: what the measured levels, taken together, say about every pair of siblings.

`none` uses the nearest measured descendants only. `blue` is the best linear unbiased estimate: on the way up each
cell's own noisy count and the sum of its children's estimates are averaged, weighted by their variances. In an even
tree the difference of two siblings after the up pass is final; in a tree with structural zeros a down pass in real
numbers moves what the parent knows to the children, in proportion to their variances.

All of it reads noisy counts and public variances: post-processing. It works on forests, one tree beside another.

Notation:   y noisy count    v_j variance of the noise of level j    z estimate    C variance of z    h final estimate
References: Hay et al. 2010 and Honaker 2015 with a variance for each level; docs/mathematics.md
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from privmeasure.domains import Bools, Floats
from privmeasure.mechanisms.consistency import Estimate, Prepared, Rule

Noisy = Mapping[int, Estimate]
"""Noisy counts of the measured levels, one array each; the deepest level is always measured."""
Variances = Mapping[int, float]


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


def up_pass(noisy: dict[int, Estimate], measured: Variances, depth: int, rule: Rule, *, blue: bool) -> list[Prepared]:
    """Return what `rule` needs of every pair of siblings, level by level from the top, in an even tree.

    Takes the arrays out of `noisy` as it goes, so that memory stays at one tree.
    """
    variance = level_variances(measured, depth, blue=blue)
    prepared: list[Prepared] = []
    z = noisy.pop(depth)
    for level in range(depth - 1, -1, -1):
        left, right = z[0::2], z[1::2]
        prepared.append(rule.prepare(left, right))
        if level not in noisy:
            z = left + right
        elif blue:
            children = 2 * variance[level + 1]
            weight = children / (measured[level] + children)
            z = weight * noisy.pop(level) + (1 - weight) * (left + right)
        else:
            z = noisy.pop(level)
    return prepared[::-1]


def uneven_up_pass(noisy: dict[int, Estimate], depth: int, rule: Rule, exists: Sequence[Bools]) -> list[Prepared]:
    """Return the same as `up_pass` without inference, where some cells do not exist and count as 0."""
    prepared: list[Prepared] = []
    z = np.where(exists[depth], noisy.pop(depth), 0)
    for level in range(depth - 1, -1, -1):
        left, right = z[0::2], z[1::2]
        prepared.append(rule.prepare(left, right))
        z = np.where(exists[level], noisy.pop(level), 0) if level in noisy else left + right
    return prepared[::-1]


def uneven_blue(
    noisy: dict[int, Estimate], measured: Variances, depth: int, exists: Sequence[Bools], root: float | None
) -> list[Prepared]:
    """Return the final estimates of the differences of siblings in one tree with structural zeros."""
    return [(h[0::2] - h[1::2],) for h in blue_estimates(noisy, measured, depth, exists, root)]


def blue_estimates(
    noisy: dict[int, Estimate], measured: Variances, depth: int, exists: Sequence[Bools], root: float | None
) -> Iterator[Floats]:
    """Yield the final estimates h of the cells of levels 1, ..., depth of one tree, in both passes.

    A cell that does not exist is 0 with variance 0, so the variances are per cell. `root` is the total where that is
    known, else None.

    Notation:   h_child = z_child + (h_parent - z_left - z_right) C_child / (C_left + C_right)
    """
    z: list[Floats] = [np.where(exists[depth], noisy.pop(depth), 0).astype(np.float64)]
    c: list[Floats] = [np.where(exists[depth], measured[depth], 0.0)]
    for level in range(depth - 1, -1, -1):  # z[-1] and c[-1] are the current level
        total, spread = z[-1][0::2] + z[-1][1::2], c[-1][0::2] + c[-1][1::2]
        if level in noisy:
            weight = spread / (measured[level] + spread)
            total = weight * noisy.pop(level) + (1 - weight) * total
            spread = measured[level] * weight
        z.append(total)
        c.append(spread)
    h, _ = z.pop(), c.pop()
    if root is not None:
        h = np.full(1, float(root))
    while z:
        zs, cs = z.pop(), c.pop()
        left, right, spread = zs[0::2], zs[1::2], cs[0::2] + cs[1::2]
        share = np.divide(cs[0::2], spread, out=np.zeros_like(spread), where=spread > 0)
        gap = h - left - right
        h = np.empty(2 * len(gap))
        h[0::2] = left + gap * share
        h[1::2] = right + gap * (1 - share)
        yield h

"""The up pass: what the measured levels, taken together, say about every pair of siblings.

`none` uses the nearest measured descendants only. `blue` is the best linear unbiased estimate: on the way up each
cell's own noisy count and the sum of its children's estimates are averaged, weighted by their variances. In an even
tree the difference of two siblings after the up pass is final; in a tree with structural zeros a down pass in real
numbers moves what the parent knows to the children, in proportion to their variances (`privmeasure.estimates.linear`).

All of it reads noisy counts and public variances: post-processing. It works on forests, one tree beside another.

Notation:   z estimate    h final estimate
References: docs/mathematics.md
"""

from collections.abc import Sequence

import numpy as np

from privmeasure.domains import Bools
from privmeasure.estimates.consistency import Prepared, Rule
from privmeasure.estimates.linear import Estimate, Variances, blue_estimates, level_variances


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
    noisy: dict[int, Estimate],
    measured: Variances,
    depth: int,
    exists: Sequence[Bools],
    root: float | None,
    *,
    threads: int = 1,
) -> list[Prepared]:
    """Return the final estimates of the differences of siblings in one tree with structural zeros."""
    return [(h[0::2] - h[1::2],) for h in blue_estimates(noisy, measured, depth, exists, root, threads=threads)]

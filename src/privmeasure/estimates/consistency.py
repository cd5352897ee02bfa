"""The down pass: mass flows from each cell to its two children, in integers, never negative, nothing lost.

A rule has two halves. `prepare` reduces the estimates (z0, z1) of two siblings to what the split needs, as the up pass
goes by; `split` divides a parent's mass M, already consistent, into m0 and M - m0. All of it is post-processing.

Below, division is floor division: truncation would break negative numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools
from privmeasure.estimates.linear import Estimate
from privmeasure.threads import in_threads

Mass = NDArray[np.int64]
Prepared = tuple[Estimate, ...]

PARENTS_TOGETHER = 1 << 16
"""Parents that are split together: they stay in the cache."""

PROPORTIONAL_LIMIT = 2**31 - 1
"""2 M x must fit 64 bits."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How a parent's mass is divided between its children."""

    name: str
    prepare: Callable[[Estimate, Estimate], Prepared]
    split: Callable[..., Mass]


def reconcile(parent: Mass, difference: Estimate) -> Mass:
    """Split each parent's mass as close to the estimated difference of its children as integers allow.

    Returns m0 with 0 <= m0 <= M:  m0 = clip(floor((M + e + 1) / 2), 0, M).

    Notation:   M parent (already consistent)    e difference (an estimate of n0 - n1, may be negative)
    Guarantee:  privacy   post-processing: reads no private value
                accuracy  mass moved between siblings <= ceil(|e - (n0 - n1)| / 2)
                cost      O(len(parent))
    References: [HVZ23] Algorithm 3; rule T2 of docs/mathematics.md

    Examples:
        >>> reconcile(np.array([10, 10, 10]), np.array([4, -30, 99]))
        array([ 7,  0, 10])
    """
    if difference.dtype.kind == "f":
        real: Estimate = np.floor((parent + difference + 1) * 0.5)
        np.maximum(real, 0, out=real)
        return np.minimum(real, parent).astype(np.int64)
    half: Mass = parent + difference
    half += 1
    half >>= 1  # an arithmetic shift is floor division by 2
    np.maximum(half, 0, out=half)
    return np.minimum(half, parent, out=half)


def _difference(left: Estimate, right: Estimate) -> Prepared:
    return (left - right,)


def _clipped_difference(left: Estimate, right: Estimate) -> Prepared:
    return (np.maximum(left, 0) - np.maximum(right, 0),)


def _clipped_pair(left: Estimate, right: Estimate) -> Prepared:
    left = np.maximum(left, 0)
    return left, left + np.maximum(right, 0)


def _proportional(parent: Mass, left: Estimate, both: Estimate) -> Mass:
    """Return m0 = floor((2 M x + s) / (2 s)), or half of M where s = 0."""
    if max(parent.max(initial=0), left.max(initial=0)) > PROPORTIONAL_LIMIT:
        parent, left, both = (array.astype(object) for array in (parent, left, both))  # whole numbers of any size
    share = np.maximum(both, 1)
    m0 = (2 * parent * left + share) // (2 * share)
    return np.where(both > 0, m0, (parent + 1) // 2).astype(np.int64)


signed = Rule("signed", _difference, reconcile)
"""T2: the difference is not clipped; the projection of both children onto {m0, m1 >= 0, m0 + m1 = M}."""

uniform = Rule("uniform", _clipped_difference, reconcile)
"""The first example of the paper (section 4.2): clip both children at 0, then share deficit or surplus equally."""

proportional = Rule("proportional", _clipped_pair, _proportional)
"""The second example of the paper (section 4.2): clip both children at 0, then scale them to the parent."""

RULES = {rule.name: rule for rule in (signed, uniform, proportional)}


def isotonic(estimates: Estimate, total: int) -> Mass:
    """Return the masses of consecutive cells of a line whose distribution function is nearest to the estimated one.

    The cumulative sums of the estimates are made monotone by least squares, clipped to [0, total] and rounded. Isotonic
    regression does not increase l_1 distances and fixes the true distribution function, so it costs nothing.

    Guarantee:  privacy   post-processing
                accuracy  the area between the distribution functions never grows, but for the rounding
                cost      linear
    References: T3 of docs/mathematics.md; Yang and Barber 2019

    Examples:
        >>> isotonic(np.array([3.2, -1.0, 2.9, 4.9]), 10)
        array([3, 0, 2, 5])
    """
    from scipy.optimize import isotonic_regression

    edges = np.zeros(len(estimates) + 1, np.int64)
    edges[-1] = total
    if len(estimates) > 1:
        fitted = isotonic_regression(np.cumsum(estimates[:-1])).x
        edges[1:-1] = np.floor(np.clip(fitted, 0, total) + 0.5)
    return edges[1:] - edges[:-1]


def distribute(
    roots: Mass, prepared: list[Prepared], rule: Rule, exists: Sequence[Bools] | None = None, *, threads: int = 1
) -> Mass:
    """Let mass flow from the roots of a forest of equal trees down to their leaves.

    `prepared[j]` belongs to the pairs of siblings of level j + 1. A child that does not exist gets nothing: with
    `exists[j]` (the cells of level j that exist) all of the parent's mass goes to its sibling. Takes the arrays out of
    `prepared` as it goes and works in chunks, so that memory stays at one tree.

    Guarantee:  privacy   post-processing
                accuracy  leaves are integers >= 0 and every subtree sums to its root exactly
    References: [HVZ23] Algorithm 3 (consistency)
    """

    def split(level: int, parents: Mass, estimate: Prepared, children: Mass, task: int) -> None:
        part = slice(task * PARENTS_TOGETHER, (task + 1) * PARENTS_TOGETHER)
        parent = parents[part]
        left = rule.split(parent, *(array[part] for array in estimate))
        if exists is not None:
            pairs = exists[level].reshape(-1, 2)[part]
            left = np.where(pairs[:, 0], np.where(pairs[:, 1], left, parent), 0)
        children[part, 0] = left
        np.subtract(parent, left, out=children[part, 1])

    mass, level = roots, 0
    while prepared:
        level += 1
        children = np.empty((len(mass), 2), np.int64)
        tasks = -(-len(mass) // PARENTS_TOGETHER)
        in_threads(partial(split, level, mass, prepared.pop(0), children), tasks, threads)
        mass = children.ravel()
    return mass

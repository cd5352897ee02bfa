"""From the true counts of one tree to its released masses: noise, inference, consistency.

This is the gate itself. It is a function of one tree, so that a mechanism with many trees (a part for each) can call it
for each of them.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.counts import CellCounts
from privmeasure.domains import Bools, Cells, Domain
from privmeasure.estimates.consistency import RULES, Mass, distribute, isotonic
from privmeasure.estimates.linear import (
    Estimate,
    Variances,
    blue_estimates,
    existing,
    noise_variance,
    total_estimate,
)
from privmeasure.estimates.passes import uneven_blue, uneven_up_pass, up_pass
from privmeasure.estimates.shrinkage import shrunk_leaves
from privmeasure.mechanisms.lazy import lazy_masses
from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import Law, LawName
from privmeasure.plans.recipe import Recipe
from privmeasure.releases.cells import Noisy
from privmeasure.threads import in_threads

TASK_CELLS = 1 << 16
"""Cells that one task works on."""
MOST_KEPT = 1 << 22
"""The largest tree whose noisy counts stay with the release, for its certificate: a public limit."""


def tree_masses(
    domain: Domain,
    counts: CellCounts,
    total: int,
    scales: Mapping[int, Fraction],
    depth: int,
    recipe: Recipe,
    law: LawName,
    key: Key,
    *,
    part: int,
    estimated: bool = False,
    allowed: tuple[float, int] | None = None,
    lazy: bool = False,
    threads: int = 1,
) -> tuple[Cells, Mass, Noisy | None]:
    """Return the cells of the deepest level that hold mass, sorted, their masses, and the noisy counts.

    The masses sum to `total`, or, where the total is `estimated`, to the best linear estimate of it, rounded and at
    least 1; `total` is then one of the measurements. The noisy counts are those of `keep_counts`; None for a lazy or a
    very large tree. `allowed` is that of `shrunk_leaves`.

    `counts` are the true counts of the deepest level; they are used up. `total` is public: the exact number of rows, or
    that number with the noise of level 0, which was drawn before; `scales` lists level 0 in the second case alone.

    Guarantee:  privacy   (sum over levels > 0 of sensitivity / scale)-DP; after the noise all is post-processing
                cost      O(2^depth) in about 16 bytes per cell; lazily, O(occupied cells)
    References: [HVZ23] Algorithms 3 and 4
    """
    if lazy:
        return *lazy_masses(domain, counts, total, scales, depth, RULES[recipe.rule], law, key, part=part), None
    noisy = noisy_levels(counts, scales, depth, law, key, part=part, threads=threads)
    variances = {level: noise_variance(scale, law) for level, scale in scales.items()}
    there = None if domain.size(depth) == 1 << depth else existing(domain, depth, threads=threads)
    kept = keep_counts(domain, noisy, depth, there=there)  # noise was added: nothing private is copied
    mass = consistent_leaves(
        domain,
        noisy,
        variances,
        total,
        depth,
        recipe,
        estimated=estimated,
        allowed=allowed,
        there=there,
        threads=threads,
    )
    cells = np.flatnonzero(mass)
    return cells.astype(np.uint64), mass[cells], kept


def noisy_levels(
    counts: CellCounts,
    scales: Mapping[int, Fraction],
    depth: int,
    law: LawName,
    key: Key,
    *,
    part: int,
    threads: int = 1,
) -> dict[int, Estimate]:
    """Return the counts of every measured level below the root, with noise. The true counts are used up.

    Guarantee:  privacy   (sum over levels > 0 of sensitivity / scale)-DP
    """
    leaves = counts.take()  # nobody else keeps the true counts alive
    return {
        level: add_noise(_sums(leaves, 1 << (depth - level)), level, law_of(law, scales[level]), key, part, threads)
        for level in sorted(scales)  # the deepest last: its noise is added in place
        if level > 0
    }


def keep_counts(
    domain: Domain, noisy: Mapping[int, Estimate], depth: int, *, there: Sequence[Bools] | None = None
) -> Noisy | None:
    """Return a copy of the noisy counts of every measured level, in 32 bits where they fit: released values.

    A cell that does not exist has 0: its noise says nothing. None beyond `MOST_KEPT` cells. `there` says which cells
    of an uneven tree exist, where that is known already.
    """
    if 1 << depth > MOST_KEPT:
        return None
    if there is None and domain.size(depth) < 1 << depth:
        there = existing(domain, depth)
    kept: dict[int, NDArray[np.signedinteger[Any]]] = {}
    for level, counts in noisy.items():
        narrow = not len(counts) or max(-int(counts.min()), int(counts.max())) < 1 << 31
        kept[level] = counts.astype(np.int32 if narrow else np.int64)
        if there is not None:
            kept[level][~there[level]] = 0
    return kept


def consistent_leaves(
    domain: Domain,
    noisy: dict[int, Estimate],
    variances: Variances,
    total: int,
    depth: int,
    recipe: Recipe,
    *,
    root: float | None = None,
    estimated: bool = False,
    allowed: tuple[float, int] | None = None,
    there: Sequence[Bools] | None = None,
    threads: int = 1,
) -> Mass:
    """Return the masses of all leaves: inference, then consistency. Post-processing.

    `variances` has level 0 where the total is itself a noisy count. `root` is the best estimate of the total where the
    total is that estimate rounded: estimates descend from the unrounded one. Where it is to be `estimated` here, the
    total is the noisy number of rows, a measurement like the others. `allowed` is that of `shrunk_leaves`, `there`
    that of `keep_counts`.
    """
    blue = recipe.inference == "blue"
    if estimated:
        first = {0: np.full(1, float(total))}
        root, _ = total_estimate(first | noisy, variances, depth, leaves_there(domain, depth))
        total = max(1, round(root))
    roots = np.full(1, total, np.int64)
    if depth == 0:
        return roots
    if recipe.rule == "isotonic":
        there = existing(domain, depth)
        *_, estimates = blue_estimates(noisy, variances, depth, there, float(total) if root is None else root)
        leaves = np.zeros(1 << depth, np.int64)
        leaves[there[depth]] = isotonic(estimates[there[depth]], total)
        return leaves
    if recipe.shrinkage == "groups":
        counts = noisy | (first if estimated else {})
        return shrunk_leaves(domain, counts, variances, total, depth, allowed=allowed)
    rule = RULES[recipe.rule]
    if domain.size(depth) == 1 << depth:
        return distribute(roots, up_pass(noisy, variances, depth, rule, blue=blue), rule)
    there = existing(domain, depth) if there is None else there
    if not blue:
        return distribute(roots, uneven_up_pass(noisy, depth, rule, there), rule, there)
    if root is None and 0 not in variances:
        root = float(total)
    if root is None:
        noisy[0] = roots.astype(np.float64)  # the noisy number of rows is a measurement like the others
    differences = uneven_blue(noisy, variances, depth, there, root, threads=threads)
    return distribute(roots, differences, rule, there, threads=threads)


def leaves_there(domain: Domain, depth: int) -> Bools:
    """Return which cells of the deepest level exist; a single True if all do."""
    return np.ones(1, bool) if domain.size(depth) == 1 << depth else existing(domain, depth)[depth]


def add_noise(counts: Mass, level: int, law: Law, key: Key, part: int, threads: int) -> Mass:
    """Add to every count of a level, in place, the noise of its position."""

    def add(task: int) -> None:
        cells = np.arange(task * TASK_CELLS, min((task + 1) * TASK_CELLS, len(counts)), dtype=np.uint64)
        counts[task * TASK_CELLS : task * TASK_CELLS + len(cells)] += law.draw(key, part=part, level=level, cells=cells)

    in_threads(add, -(-len(counts) // TASK_CELLS), threads)
    return counts


def _sums(leaves: Mass, width: int) -> Mass:
    """Return the counts of the ancestors that hold `width` leaves each, as a new array unless they are the leaves."""
    return leaves if width == 1 else leaves.reshape(-1, width).sum(axis=1)

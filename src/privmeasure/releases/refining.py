"""The second estimate of a released column, from all that was measured of it: post-processing of released values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from privmeasure.domains import Bools
from privmeasure.domains.traits import missing_cell
from privmeasure.estimates.consistency import Mass, distribute, signed
from privmeasure.estimates.joint import Margin, joint_leaves, splits
from privmeasure.estimates.linear import (
    Estimate,
    ancestors,
    existing,
    noise_variance,
    uneven_difference_variances,
)
from privmeasure.estimates.shrinkage import shrink_inside, shrink_list
from privmeasure.model.pairs import Pair
from privmeasure.model.ranks import Groups, strangers
from privmeasure.plans.column_schedule import is_listed, leeway
from privmeasure.releases.cells import CellMeasure
from privmeasure.transport.cells import cells_apart

EXACT = 1e-6
"""Stands for no variance, of a number of rows that is public: so many times the least variance of the column's counts.

Were it a number of its own, the counts of many rows with much noise would vanish beside it in the rounding of doubles.
"""
ROUNDING_ROOM = 0.98
"""How much of the way that the last estimate may be from the first is gone, at most, before masses are rounded."""


def refine(
    column: CellMeasure,
    ranks: Groups,
    noisy: Mapping[int, Estimate],
    variances: Mapping[int, float],
    total: tuple[float, float],
    margins: Sequence[Margin],
    told_apart: Sequence[Bools],
) -> CellMeasure:
    """Return a column as all that was measured says it, or as near to that as may be.

    `noisy` are the counts of its levels, with the variances of their noise, `total` the number of rows with its own, 0
    where it is public. Cells that facts tell apart, and the missing one, share no group with others.

    Guarantee:  privacy   reads released values alone
                accuracy  T8 of docs/mathematics.md
    """
    space, depth, levels = column.domain, column.level, sorted(variances)
    mass = cell_masses(column)
    missing = missing_cell(space, depth)
    there = existing(space, depth)[depth] & ~strangers(ranks, mass, missing, told_apart)
    exists = ancestors(there, depth)
    counts = {**noisy, 0: np.full(1, total[0])}
    leaves = joint_leaves(counts, {**variances, 0: total[1] or EXACT * min(variances.values())}, there, margins)
    if is_listed(space):
        alike = there.copy()
        if missing is not None:
            alike[missing] = False
        leaves = shrink_list(leaves, np.full(len(leaves), variances[depth]), alike)
    root, prepared = np.full(1, mass.sum()), splits(leaves)
    if len(levels) > 1 and not is_listed(space):
        coarse = levels[-2]
        upper = distribute(root, prepared[:coarse], signed, exists[: coarse + 1])
        noise = uneven_difference_variances(variances, depth, exists)
        prepared = shrink_inside(prepared, noise, upper, space, exists)
    refined, allowed = distribute(root, prepared, signed, exists), leeway(column.plan)
    if (moved := _apart(column, refined, mass)) > allowed:
        part_way = mass + max(ROUNDING_ROOM * allowed, 0.0) / moved * (refined - mass)
        refined = distribute(root, splits(part_way), signed, exists)
        if _apart(column, refined, mass) > allowed:
            return column
    cells = np.flatnonzero(refined)
    return replace(column, cells=cells.astype(np.uint64), mass=refined[cells])


def table_margins(j: int, ranks: Groups, pairs: Sequence[Pair]) -> Iterator[Margin]:
    """Yield what the noisy tables of pairs say of column j: sums over the groups of the other one."""
    for pair in pairs:
        for column, groups, other in ((pair.first, pair.first_groups, 1), (pair.second, pair.second_groups, 0)):
            if column == j:
                variance = pair.noisy.shape[other] * noise_variance(pair.scale, pair.law)
                yield Margin(groups[ranks], pair.noisy.sum(axis=other).astype(np.float64), variance)


def cell_masses(column: CellMeasure) -> Mass:
    """Return the released mass of every cell of a column, 0 where there is none."""
    mass = np.zeros(1 << column.level, np.int64)
    mass[column.cells.view(np.int64)] = column.mass
    return mass


def _apart(column: CellMeasure, one: Mass, two: Mass) -> float:
    return cells_apart(column.domain, column.level, (one - two).astype(np.float64))

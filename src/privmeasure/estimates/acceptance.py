"""A release is kept where it is near enough to what was measured; else the closest measure takes its place.

However a release was made from the noisy counts, its distance from the raw estimate (the best linear one, which may be
negative) can be computed: both are public. The truth is as near to the raw estimate as the noise is small. So a release
that is no farther than noise explains is within twice the noise of the truth, and where it is farther, the closest
measure is. This turns any rule into one with a guarantee, T7 of docs/mathematics.md. The fallback costs seconds, and is
rarely needed.

All of it is post-processing.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Box, Domain, Floats
from privmeasure.estimates.consistency import Mass, distribute, signed
from privmeasure.estimates.projection import can_project, cell_space
from privmeasure.transport import closest_measure
from privmeasure.transport.haar import haar_differences, haar_leaves, haar_norm

ROW_UNITS = 64
"""The closest measure is searched in 64ths of a row, and rounded to whole rows afterwards."""


def level_of_search(domain: Domain, depth: int) -> int:
    """Return the level at which a closest measure would be searched: the depth, or the finest that is affordable."""
    return next(level for level in range(depth, -1, -1) if can_project(domain, level))


def distance_from_raw(domain: Box, mass: Mass, differences: Sequence[Floats], level: int) -> float:
    """Return an upper bound of the norm, on the cells of a level, of masses minus the raw estimate with the same total.

    `differences` are the raw estimates of the differences of siblings, level by level from the top. Down to the level
    at which a closest measure would be searched the flows are added up before the norm is taken; below it each
    component counts by itself, which costs one pass over the cells.
    """
    mass = mass.reshape(1 << level, -1).sum(axis=1)
    exact = level_of_search(domain, level)
    own = haar_differences(mass.astype(np.float64))
    astray = [released - raw for released, raw in zip(own, differences[:level], strict=True)]
    value = haar_norm(domain, astray[:exact])
    for j in range(exact + 1, level + 1):
        value += side_of_cut(domain, j) / 4 * float(np.abs(astray[j - 1]).sum())
    return value


def keep_or_replace(
    domain: Box, mass: Mass, total: int, differences: Sequence[Floats], allowed: float, level: int
) -> Mass:
    """Return the masses if on the cells of a level they are at most `allowed` from the raw estimate.

    Else the closest measure to it; where in the cells of the level mass lies is left as it may be.

    Guarantee:  privacy   post-processing: reads released values alone
                accuracy  T7
                cost      linear; a min-cost flow where the masses are not kept
    """
    if distance_from_raw(domain, mass, differences, level) <= allowed:
        return mass
    search = level_of_search(domain, level)
    coarse = closest_rows(domain, haar_leaves(total, differences[:search]), total, search)
    return distribute(coarse, [(difference,) for difference in differences[search:]], signed)


def closest_rows(domain: Box, raw: Floats, total: int, level: int) -> Mass:
    """Return masses in whole rows near the closest measure to real masses of the same total on the cells of a level.

    Guarantee:  accuracy  at most 1 + 2/64 times half the length of `winding_order` farther, at centres, than the
                          closest measure
    """
    cells = np.arange(1 << level, dtype=np.uint64)
    space, place = cell_space(domain, cells, level)
    order = winding_order(domain, level)
    fine = np.empty(len(raw), np.int64)
    fine[order] = _rounded(raw[order] * ROW_UNITS, total * ROW_UNITS)
    on_space = np.empty_like(fine)
    on_space[place] = fine
    closest, _ = closest_measure(on_space, total * ROW_UNITS, space)
    rows = np.empty_like(fine)
    rows[order] = _rounded(closest[place][order] / ROW_UNITS, total)
    return rows


def winding_order(domain: Box, level: int) -> NDArray[np.int64]:
    """Return the cells of a level in an order in which each is next to the one before: there and back along the axes.

    Examples:
        >>> winding_order(Box([(0, 1)] * 2), 2)     # (0, 0), (0, 1), (1, 1), (1, 0)
        array([0, 1, 3, 2])
    """
    positions, cuts = domain.positions(np.arange(1 << level, dtype=np.uint64), level), domain.cuts(level)
    key = np.zeros(1 << level, np.int64)
    for axis in range(domain.width):
        back = key & 1 == 1  # an odd row of what came before is walked backwards
        place = positions[:, axis]
        key = (key << cuts[axis]) + np.where(back, (1 << cuts[axis]) - 1 - place, place)
    return np.argsort(key, kind="stable")


@lru_cache(maxsize=256)
def side_of_cut(domain: Box, level: int) -> float:
    """Return the length, in units of the metric, of a cell of level - 1 along the axis that the next cut halves."""
    before, after = domain.cuts(level - 1), domain.cuts(level)
    return next(w * 2.0**-a for w, a, b in zip(domain.weights, before, after, strict=True) if a < b)


def _rounded(mass: Floats, total: int) -> Mass:
    """Return whole numbers whose cumulative sums are those of the masses, rounded; their total is `total`."""
    sums = np.rint(np.cumsum(mass)).astype(np.int64)
    sums[-1] = total
    return np.diff(sums, prepend=0)

"""Shrinkage: splits that noise explains are taken back. Pure functions of released values.

Where data are even, the estimated difference of two siblings is mostly noise. The sum of squares of the differences of
many parents that are alike says how much of it is noise: with e_i the estimates, b_i what was forecast for them, V_i
the variances of their noise, a group of parents is split by

    b_i + f (e_i - b_i),   f = max(0, 1 - sum V_i / sum (e_i - b_i)^2),

James and Stein's estimate: f is near 0 where the deviations are as large as noise alone makes them, near 1 where they
are much larger. **Alike** are parents of about the same expected mass, in octaves. What is expected of the cells below
a measured level L comes from the masses of level L, made from the levels down to L alone: on a box their density is
interpolated (the difference of two neighbours along the cut axis, an eighth of it, is the difference of two halves), in
other spaces the mass of a cell is halved. So neither the groups nor the forecasts see the noise of what they shrink.

Notation:   e estimated difference of two siblings    b forecast    V variance of the noise of e    f factor
References: James and Stein 1961; docs/mathematics.md
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Box, Domain, Floats
from privmeasure.estimates.acceptance import keep_or_replace
from privmeasure.estimates.consistency import Mass, Prepared, distribute, signed
from privmeasure.estimates.linear import (
    Estimate,
    Variances,
    existing,
    level_variances,
    total_estimate,
    uneven_difference_variances,
)
from privmeasure.estimates.passes import uneven_blue, up_pass

FEWEST = 8
"""Parents of a group, at least: smaller groups stay as they were estimated."""


def shrunk_leaves(
    domain: Domain,
    noisy: Mapping[int, Estimate],
    measured: Variances,
    total: int,
    depth: int,
    *,
    allowed: tuple[float, int] | None = None,
) -> Mass:
    """Return the masses of all leaves: best linear estimates, shrunk, made consistent; they sum to `total`.

    From one measured level to the next: the masses of a level, made from the levels down to it, are what is expected of
    the levels below. `noisy` has level 0 where the number of rows is noisy; then each stage has its own estimate of it.
    Masses that are farther than `allowed` (how far, and on the cells of which level) from the raw estimate give way to
    the closest measure, on a box.

    Guarantee:  privacy   post-processing
                accuracy  T6, and with `allowed` T7, of docs/mathematics.md
                cost      O(2^depth); the stages above the last add an eighth or less
    """
    even = domain.size(depth) == 1 << depth
    there = None if even else existing(domain, depth)
    coarse: dict[int, Mass] = {0: np.full(1, total, np.int64)}
    for last in sorted(level for level in noisy if level > 0):
        stage = {level: counts for level, counts in noisy.items() if level <= last}
        exists = None if there is None else there[: last + 1]
        if 0 in noisy and last < depth:
            leaves = np.ones(1, bool) if exists is None else exists[last]
            total_here = max(0, round(total_estimate(stage, measured, last, leaves)[0]))
        else:
            total_here = total
        variances: Sequence[Floats | float]
        if exists is None:
            stage.pop(0, None)
            prepared = up_pass(stage, measured, last, signed, blue=True)
            variances = [2 * c for c in level_variances(measured, last, blue=True)[1:]]
        else:
            prepared = uneven_blue(stage, measured, last, exists, None if 0 in noisy else float(total_here))
            variances = uneven_difference_variances(measured, last, exists)
        shrunk_splits = shrink(prepared, variances, coarse, domain, exists)
        coarse[last] = distribute(np.full(1, total_here, np.int64), shrunk_splits, signed, exists)
    if allowed is None or not isinstance(domain, Box):
        return coarse[depth]
    return keep_or_replace(domain, coarse[depth], total, [difference for (difference,) in prepared], *allowed)


def shrunk(difference: Floats, forecast: Floats, expected: Floats, variance: Floats | float) -> Floats:
    """Return the differences of many parents, drawn towards their forecasts as far as noise explains the rest.

    `expected` is the mass of each parent that was forecast, `variance` that of the noise in each difference (one number
    where it is the same for all); parents whose difference has no noise (one child does not exist) are in no group.

    Guarantee:  privacy   post-processing: reads released values alone
                accuracy  the differences of a group move by at most sqrt(sum V_i) in l_2, whatever the groups are
                cost      linear

    Examples:
        >>> even = np.array([1.0, -1, 1, -1, 1, -1, 1, -1])
        >>> shrunk(even, np.zeros(8), np.full(8, 50.0), np.ones(8)) + 0
        array([0., 0., 0., 0., 0., 0., 0., 0.])
        >>> shrunk(10 * even, np.zeros(8), np.full(8, 50.0), np.ones(8))
        array([ 9.9, -9.9,  9.9, -9.9,  9.9, -9.9,  9.9, -9.9])
    """
    deviation = difference - forecast
    result = group_factors(deviation, variance, octaves(expected))
    result *= deviation
    result += forecast
    return result


def octaves(mass: Floats) -> NDArray[np.intp]:
    """Return the groups of parents by their expected mass: 0 below 1, then 1, 2, ... for [1, 3), [3, 7), ...

    Examples:
        >>> octaves(np.array([-3.0, 0.0, 0.9, 1.0, 2.9, 3.0, 100.0]))
        array([0, 0, 0, 1, 1, 2, 6])
    """
    bits = (np.maximum(mass, 0.0) + 1.0).view(np.int64)
    bits >>= 52  # the exponent of a double
    bits -= 1023
    return bits


def group_factors(deviation: Floats, variance: Floats | float, groups: NDArray[np.intp]) -> Floats:
    """Return f of each parent: that of its group, or 1 in a group of too few parents with noise."""
    if isinstance(variance, float):
        parents = np.bincount(groups) if variance > 0 else np.zeros(int(groups.max(initial=0)) + 1, np.intp)
        noise = parents.astype(np.float64) * variance
    else:
        noise = np.bincount(groups, variance).astype(np.float64)
        parents = np.bincount(groups[variance > 0], minlength=len(noise))
    signal = np.bincount(groups, deviation * deviation)
    ratios = np.ones(len(noise))
    np.divide(noise, signal, out=ratios, where=signal > noise)
    factors: Floats = np.where(parents < FEWEST, 1.0, 1.0 - ratios)
    return factors[groups]


def shrink(
    prepared: Sequence[Prepared],
    variances: Sequence[Floats | float],
    coarse: Mapping[int, Mass],
    domain: Domain,
    exists: Sequence[Bools] | None = None,
) -> list[Prepared]:
    """Return what the signed rule needs of every pair of siblings, shrunk level by level.

    `prepared[j]` are the differences of the siblings of level j + 1, `variances[j]` those of their noise (one number or
    one a parent). `coarse` has the masses of the root and of the measured levels, each made from the levels down to it.
    """
    result: list[Prepared] = []
    stages = sorted(level for level in coarse if level < len(prepared))
    for start, stop in zip(stages, [*stages[1:], len(prepared)], strict=True):
        for j, (expected, forecast) in zip(
            range(start, stop), forecasts(coarse[start], start, domain, exists), strict=False
        ):
            (difference,) = prepared[j]
            result.append((shrunk(difference, forecast, expected, variances[j]),))
    return result


def shrink_inside(
    prepared: Sequence[Prepared],
    variances: Sequence[Floats | float],
    mass: Mass,
    domain: Domain,
    exists: Sequence[Bools] | None = None,
) -> list[Prepared]:
    """Return the differences of siblings, shrunk inside each cell of a level by itself: `mass` is that of its cells.

    What the fine cells say is worth keeping where data lie in few places and is noise where they are spread, and that
    differs from cell to cell. In each cell, a level of its splits is drawn towards the forecasts by as much as noise
    explains of all splits of the cell down to the level below: few splits near the top borrow from those next to
    them, and what many splits far down say does not decide about those above.

    Notation:   u = sum of (e - forecast)^2 / V, c splits with noise    f = max(0, 1 - (c + sqrt(2 c)) / u)
    Guarantee:  privacy   post-processing: reads released values alone

    Examples:
        >>> from privmeasure.domains import Box
        >>> fine = [(np.array([0.0]),), (np.array([50.0, 1.0]),), (np.array([40.0, 0.0, 1.0, -1.0]),)]
        >>> shrunk = shrink_inside(fine, [1.0, 1.0, 1.0], np.array([80, 80]), Box([(0, 1)]))
        >>> [np.round(differences + 0, 1).tolist() for (differences,) in shrunk]
        [[0.0], [49.9, 0.0], [39.9, 0.0, 0.0, 0.0]]
    """
    level, result = len(mass).bit_length() - 1, list(prepared)
    below = list(zip(range(level, len(prepared)), forecasts(mass, level, domain, exists), strict=False))
    count, signal = np.zeros(len(mass)), np.zeros(len(mass))
    seen: list[tuple[Floats, Floats]] = []
    for j, (_, forecast) in below:
        variance = np.broadcast_to(variances[j], forecast.shape)
        noisy = variance > 0
        square = np.divide((prepared[j][0] - forecast) ** 2, variance, out=np.zeros(len(variance)), where=noisy)
        count = count + noisy.reshape(len(mass), -1).sum(axis=1)
        signal = signal + square.reshape(len(mass), -1).sum(axis=1)
        seen.append((count, signal))
    for i, (j, (_, forecast)) in enumerate(below):
        count, signal = seen[min(i + 1, len(seen) - 1)]
        explained = count + np.sqrt(2 * count)
        factor = 1.0 - np.divide(explained, signal, out=np.ones(len(mass)), where=signal > explained)
        own = np.where(np.broadcast_to(variances[j], forecast.shape) > 0, np.repeat(factor, 1 << i), 1.0)
        result[j] = (forecast + own * (prepared[j][0] - forecast),)
    return result


def shrink_list(leaves: Floats, variance: Floats, alike: Bools) -> Floats:
    """Return the masses of values without order, those that are `alike` drawn towards their mean as noise explains.

    Where noise is larger than most of the masses, what differs from the mean is mostly noise, and cutting off what is
    negative would keep the half of it that is positive.

    Guarantee:  privacy   post-processing: reads released values alone

    Examples:
        >>> masses = np.array([90.0, 30.0, -20.0, 60.0, 0.0])
        >>> shrink_list(masses, np.full(5, 1000.0), np.array([True] * 4 + [False])).round(1)
        array([67.3, 34.5,  7.3, 50.9,  0. ])
    """
    count = int(alike.sum())
    if count < 3:
        return leaves
    mean = float(leaves[alike].mean())
    signal = float(((leaves[alike] - mean) ** 2).sum())
    noise = float(variance[alike].sum()) * (count - 1) / count
    factor = max(0.0, 1.0 - noise / signal) if signal > 0 else 0.0
    return np.where(alike, mean + factor * (leaves - mean), leaves)


def forecasts(
    mass: Mass, level: int, domain: Domain, exists: Sequence[Bools] | None = None
) -> Iterator[tuple[Floats, Floats]]:
    """Yield the expected masses of the cells of a level, and the expected differences of their children; and so on.

    Endless: the children's expected masses are those of the next level.
    """
    expected = mass.astype(np.float64)
    while True:
        forecast = slopes(expected, level, domain) if isinstance(domain, Box) else np.zeros_like(expected)
        yield expected, forecast
        level += 1
        children = np.empty((len(expected), 2))
        np.add(expected, forecast, out=children[:, 0])
        np.subtract(expected, forecast, out=children[:, 1])
        if exists is None:
            children *= 0.5
        else:  # all of a parent goes to an only child
            pairs = exists[level].reshape(-1, 2)
            children *= np.where(pairs.all(axis=1), 0.5, 1.0)[:, np.newaxis]
            children[~pairs] = 0.0
        expected = children.ravel()


def slopes(mass: Floats, level: int, box: Box) -> Floats:
    """Return the differences of the children of the cells of a level if the density is linear between neighbours.

    With m_- and m_+ the masses of the two neighbours along the axis that is cut next, (m_- - m_+) / 8, at most the mass
    of the cell itself; at the ends of the axis the cell stands in for the neighbour that is missing.

    Examples:
        >>> slopes(np.array([8.0, 16.0, 32.0, 64.0]), 2, Box([(0, 1)]))
        array([-1., -3., -6., -4.])
    """
    before, after = box.cuts(level), box.cuts(level + 1)
    axis = next(i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a < b)
    mask = 0  # the bits of a cell's number that place it along the axis
    for above in range(level):
        mask = mask << 1 | (box.cuts(above + 1)[axis] > box.cuts(above)[axis])
    if not mask:
        return np.zeros_like(mass)
    if mask == len(mass) - 1:  # one axis: neighbours are next to each other
        lower, upper = np.concatenate((mass[:1], mass[:-1])), np.concatenate((mass[1:], mass[-1:]))
    else:
        down, up = _neighbours(level, mask)
        lower, upper = mass.take(down), mass.take(up)
    lower -= upper
    lower *= 0.125
    np.minimum(lower, mass, out=lower)
    return np.maximum(lower, np.negative(mass, out=upper), out=lower)


@lru_cache(maxsize=64)
def _neighbours(level: int, mask: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the cells before and after every cell of a level along the axis whose bits the mask has."""
    cells = np.arange(1 << level)
    along, others = cells & mask, cells & ~mask
    down = np.where(along == 0, 0, (along - 1) & mask) | others  # counting in the bits of the mask alone
    up = np.where(along == mask, mask, ((cells | ~mask) + 1) & mask) | others
    return down, up

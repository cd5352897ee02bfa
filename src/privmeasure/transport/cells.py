"""The size of a signed mass on the cells of a level, total 0: W1 between its positive and its negative part.

In closed form on lines, circles and categories, exact but where lines and circles have a missing branch; by a flow on
grids and on a few cells of any other space. Masses are real numbers here, and every result is an upper bound: what
rounding to whole numbers can cost is added.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Box, Categories, Cells, Circle, Domain, Floats, Integers, Nullable
from privmeasure.rounding import inner
from privmeasure.transport.flow import Grid, grid_arcs, min_cost_flow, whole_costs
from privmeasure.transport.line import hierarchy_wasserstein

Norm = Callable[[Floats], float]
"""Takes the masses of all 2^level cells, 0 where a cell does not exist."""

Indices = NDArray[np.int64]

MASS_UNITS = 1 << 34
"""Real masses become so many whole units in all."""
MOST_GRID = 1 << 12
"""Cells of a grid: up to a third of a second each time."""
MOST_PAIRED = 1 << 8
"""Cells of a space where all pairs are looked at."""


def has_closed_form(domain: Domain) -> bool:
    """Say whether `cell_norm` is cheap at any size: on lines, circles and categories, with a missing branch or not."""
    if isinstance(domain, Nullable):
        return has_closed_form(domain.domain)
    return isinstance(domain, Integers | Circle | Categories) or (isinstance(domain, Box) and domain.width == 1)


def most_exact(domain: Domain) -> int:
    """Return for how many cells `cell_norm` is affordable where there is no closed form."""
    if isinstance(domain, Box) and len(set(domain.weights)) == 1 and find_spec("ortools"):
        return MOST_GRID
    return MOST_PAIRED


def cell_norm(domain: Domain, level: int) -> Norm:
    """Return the function that takes a mass on the centres of the cells of a level to its norm.

    Examples:
        >>> cell_norm(Box([(0, 1)]), 2)(np.array([1.0, 0.0, 0.0, -1.0]))
        0.75
        >>> round(cell_norm(Box([(0, 1)] * 2), 2)(np.array([1.0, 0.0, -0.5, -0.5])), 6)
        0.5
    """
    cells = np.arange(1 << level, dtype=np.uint64)
    cells = cells[domain.exists(cells, level)]
    if len(cells) == 1:
        return lambda mass: 0.0
    if isinstance(domain, Nullable) and has_closed_form(domain):
        return _or_missing(domain, level)
    if isinstance(domain, Circle):
        return _circle(domain.diameter(0) * 2.0 ** (1 - level))
    if isinstance(domain, Categories):
        return _categories(domain, cells, level)
    if has_closed_form(domain):
        return _line(domain, cells, level)
    if isinstance(domain, Box) and len(set(domain.weights)) == 1:
        return _grid(domain, cells, level)
    return _pairs(domain, cells, level)


def cells_apart(domain: Domain, level: int, difference: Floats) -> float:
    """Return a bound of the W1 distance between two masses on the centres of cells, from their difference.

    Exact on lines, circles and categories; else along the tree: what is out of balance at a level moves at most the
    diameter of a cell above it.
    """
    return cell_norm(domain, level)(difference) if has_closed_form(domain) else tree_distance(domain, difference)


def tree_distance(domain: Domain, difference: Floats) -> float:
    """Return a bound of W1: what siblings settle between them moves at most the diameter of their parent.

    Examples:
        >>> tree_distance(Categories(4), np.array([0.5, -0.5, 0.0, 0.0]))
        0.5
    """
    level, total = len(difference).bit_length() - 1, 0.0
    while level:
        parents = difference.reshape(-1, 2).sum(axis=1)
        # of what is out of balance in two siblings, all but their sum is settled between them
        total += domain.diameter(level - 1) * float((np.abs(difference).sum() - np.abs(parents).sum()) / 2)
        difference, level = parents, level - 1
    return total


def corner_distance(domain: Box, level: int) -> float:
    """Return the mean distance from a corner of a cell to the points of the cell: no point of it is farther on average.

    The integral of P(max_i s_i U_i > t), s_i the sides; d / (d + 1) diameters for a cube.

    Examples:
        >>> corner_distance(Box([(0, 1)] * 3), 0), corner_distance(Box([(0, 1)]), 2)
        (0.75, 0.125)
    """
    return _corner(tuple(sorted(w * 2.0**-k for w, k in zip(domain.weights, domain.cuts(level), strict=True))))


@lru_cache(maxsize=256)
def _corner(sides: tuple[float, ...]) -> float:
    total, low = 0.0, 0.0
    for i, high in enumerate(sides):  # between two sides, P(max <= t) is a power of t
        power, longer = len(sides) - i, math.prod(sides[i] / side for side in sides[i:])
        part = high - low * (low / high) ** power if high > 0 else 0.0
        total += (high - low) - longer * part / (power + 1)
        low = high
    return total


def _line(domain: Domain, cells: Cells, level: int) -> Norm:
    centres, places = domain.centre(cells, level), cells.view(np.int64)
    gaps = domain.distance(centres[1:], centres[:-1])
    return lambda mass: inner(np.abs(np.cumsum(mass[places])[:-1]), gaps)


def _or_missing(domain: Nullable, level: int) -> Norm:
    """Return the norm of a missing branch beside a line, a circle or categories.

    Missing is as far from every point as two points are at most, so what is too much or too little in it, t, comes
    from anywhere at the same price: t gaps, and the norm of what is present less some mass r >= 0 of total t. Every r
    gives an upper bound. On a line the best r has the cumulative sums nearest to F, those of what is present, among all
    that grow from 0 to t; taken here is the middle between the least growing function above F and the greatest below.
    """
    inner, gap, half = domain.domain, domain.diameter(0), 1 << (level - 1)
    if isinstance(inner, Categories):  # one value more, that no group of the taxonomy has
        cells = np.arange(half, dtype=np.uint64)
        places = cells[inner.exists(cells, level - 1)].view(np.int64)
        centres = inner.centre(places.view(np.uint64), level - 1)[:, 0].astype(np.int64)
        groups = [(diameter, np.append(group[centres], group.max() + 1)) for diameter, group in inner.taxonomy]
        return _hierarchy(np.append(places, half), [*groups, (gap, np.zeros(len(places) + 1, np.int64))])
    present = cell_norm(inner, level - 1)

    def norm(mass: Floats) -> float:
        sums = np.cumsum(mass[:half])
        total = float(sums[-1])
        sums = sums if total >= 0 else -sums
        growing = (np.maximum.accumulate(sums) + np.minimum.accumulate(sums[::-1])[::-1]) / 2
        growing = np.clip(growing, 0.0, abs(total))
        growing[-1] = abs(total)
        taken = np.diff(growing, prepend=0.0)
        return gap * abs(total) + present(mass[:half] - (taken if total >= 0 else -taken))

    return norm


def _circle(arc: float) -> Norm:
    """Return min over c of arc sum_i |F_i - c|: the best c is a median of the cumulative sums F."""

    def norm(mass: Floats) -> float:
        cumulative = np.cumsum(mass)
        return arc * float(np.abs(cumulative - np.median(cumulative)).sum())

    return norm


def _categories(domain: Categories, cells: Cells, level: int) -> Norm:
    places, centres = cells.view(np.int64), domain.centre(cells, level)[:, 0].astype(np.int64)
    groups = [(diameter, group[centres]) for diameter, group in domain.taxonomy]
    return _hierarchy(places, [*groups, (1.0, np.zeros(len(cells), np.int64))])


def _hierarchy(places: Indices, partitions: Sequence[tuple[float, Indices]]) -> Norm:
    def norm(mass: Floats) -> float:
        balanced = mass[places]
        return hierarchy_wasserstein(balanced - balanced.mean(), partitions)  # the mean is 0 but for rounding

    return norm


def _grid(domain: Box, cells: Cells, level: int) -> Norm:
    shape = tuple(1 << cuts for cuts in domain.cuts(level))
    grid = Grid(shape, tuple(w / n for w, n in zip(domain.weights, shape, strict=True)))
    place = np.ravel_multi_index(tuple(domain.positions(cells, level).T), shape)
    arcs = grid_arcs(shape, grid.sides)

    def norm(mass: Floats) -> float:
        units, scale = _whole(mass)
        supplies = np.zeros(len(units), np.int64)
        supplies[place] = units
        cost = min_cost_flow(*arcs, None, supplies)[1] * grid.unit
        return (cost + len(units) / 2 * grid.diameter) / scale

    return norm


def _pairs(domain: Domain, cells: Cells, level: int) -> Norm:
    centres, places, diameter = domain.centre(cells, level), cells.view(np.int64), domain.diameter(0)

    def norm(mass: Floats) -> float:
        units, scale = _whole(mass[places])
        source, target = np.flatnonzero(units > 0), np.flatnonzero(units < 0)
        if not len(source):
            return len(units) / 2 * diameter / scale
        tails, heads = np.repeat(source, len(target)), np.tile(target, len(source))
        lengths = domain.distance(centres[tails], centres[heads])
        flows, _ = min_cost_flow(tails, heads, whole_costs(lengths), None, units)
        cost = inner(flows.astype(np.float64), lengths)
        return (cost + len(units) / 2 * diameter) / scale  # a flow that is feasible is never too short

    return norm


def _whole(mass: Floats) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], float]:
    """Return the mass in whole units that sum to 0, and how many units make a 1.

    The cumulative sums are rounded, so each is off by at most half a unit. What was changed can be moved from cell to
    cell along their order, half a unit at most per step: that costs at most half a diameter per cell.
    """
    scale = 2.0 ** min(30, math.floor(math.log2(MASS_UNITS / (float(np.abs(mass).sum()) + 1))))
    edges = np.rint(np.cumsum(mass) * scale).astype(np.int64)
    edges[-1] = 0
    return np.diff(edges, prepend=0), scale

"""One tree with order constraints: rows keep their cells if these hold rows in order, and go to the nearest if not.

Public values only. The mass of every cell stays, but for cells in which no row keeps the orders: noise put it there.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.conditions.orders import PlacedOrder
from privmeasure.domains import Bools, Cells, Domain, Floats, Points
from privmeasure.errors import NoRowsError
from privmeasure.releases.choosing import MOST_TRIES, NO_ROWS

TRIES_IN_PLACE = 100
"""The most times that the points of a row are drawn again in its cells until they keep the orders.

A row that breaks an order even then is left out and another one is drawn, which moves the margins: so there are many
tries. Few rows need more than three.
"""
TRIED_TOGETHER = 1 << 12
"""Points that are tried again at a time, at least."""

RowNumbers = NDArray[np.int64]


def draw_again(
    points: Points, wrong: RowNumbers, draw: Callable[[RowNumbers], Points], breaks: Callable[[Points], Bools]
) -> RowNumbers:
    """Draw the points of wrong rows again until they break nothing; return the rows that still do in the end.

    Where few rows are left, several tries of each are made together, and the first that breaks nothing counts.

    Examples:
        >>> rng, points = np.random.default_rng(0), np.array([[0.9], [0.2], [0.8]])
        >>> draw_again(points, np.array([0, 2]), lambda rows: rng.random((len(rows), 1)), lambda x: x[:, 0] > 0.5)
        array([], dtype=int64)
        >>> bool((points < 0.5).all()), points[1].tolist()
        (True, [0.2])
    """
    left = TRIES_IN_PLACE
    while left and len(wrong):
        tries = min(left, max(1, TRIED_TOGETHER // len(wrong)))
        tried = draw(np.tile(wrong, tries))
        kept = ~breaks(tried).reshape(tries, -1)
        found = kept.any(axis=0)
        if not found.any():  # nothing among thousands of tries: these rows have no place
            break
        points[wrong[found]] = tried.reshape(tries, len(wrong), -1)[kept.argmax(axis=0)[found], found]
        wrong, left = wrong[~found], left - tries
    return wrong


def nearest_parts(codes: Cells, filled: Cells, level: int) -> tuple[RowNumbers, RowNumbers]:
    """Return for cells the smallest part of the tree around each that holds some `filled` cells: their first and last.

    `filled` are sorted; the last one is not included, as in a slice.

    Examples:
        >>> nearest_parts(np.array([2, 7], np.uint64), np.array([0, 3, 4], np.uint64), 3)
        (array([1, 2]), array([2, 3]))
    """
    first, last = np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
    for up in range(level + 1):
        low = (codes >> np.uint64(up)) << np.uint64(up)
        ends = np.searchsorted(filled, low), np.searchsorted(filled, low + np.uint64(1 << up))
        found = (last == first) & (ends[1] > ends[0])
        first[found], last[found] = ends[0][found], ends[1][found]
    return first, last


def move_mass(mass: Floats, never: Bools) -> Floats:
    """Return the masses of all cells of a level without those of `never`, which go to the nearest others with mass.

    Nearest along the tree: they are shared out in proportion in the smallest part that holds mass elsewhere.

    Examples:
        >>> move_mass(np.array([1.0, 2.0, 3.0, 5.0]), np.array([False, True, False, False]))
        array([3., 0., 3., 5.])
    """
    level = len(mass).bit_length() - 1
    left = np.where(never, 0.0, mass)
    filled, away = np.flatnonzero(left > 0), np.flatnonzero(never & (mass > 0))
    if not len(filled):
        return left
    first, last = nearest_parts(away.astype(np.uint64), filled.astype(np.uint64), level)
    before = np.concatenate(([0.0], np.cumsum(left[filled])))
    more = np.zeros(len(filled) + 1)
    share = mass[away] / (before[last] - before[first])
    np.add.at(more, first, share)
    np.subtract.at(more, last, share)
    left[filled] *= 1 + np.maximum(np.cumsum(more[:-1]), 0.0)
    return left


class InOrder:
    """Draws rows of one tree again that break an order: in their cell, or if no row of it keeps it, in the nearest.

    `cells` and `mass` are those of the whole release, and orders come with the coordinates of their columns.
    """

    def __init__(
        self, domain: Domain, level: int, cells: Cells, mass: NDArray[Any], orders: Sequence[PlacedOrder]
    ) -> None:
        """Find the cells in which some rows keep all orders.

        If fewer than one in `MOST_TRIES` rows lies in one, the data contradict the orders, or noise decides everything.
        """
        self._domain, self._level, self._orders = domain, level, orders
        never = np.zeros(len(cells), bool)
        for order, columns in orders:
            never |= order.in_cells(domain, columns, cells, level)
        self._cells = cells[~never]
        self._before = np.concatenate(([0.0], np.cumsum(mass[~never], dtype=np.float64)))
        self._contradicted = bool(self._before[-1] * MOST_TRIES < mass.sum())

    def __call__(self, points: Points, rng: np.random.Generator) -> Points:
        """Return the points, drawn again where they break an order; those for which that fails still break it."""
        wrong = np.flatnonzero(self._breaks(points))
        if not len(wrong):
            return points
        if self._contradicted:
            raise NoRowsError(NO_ROWS)
        points, places = points.copy(), np.zeros(len(points), np.uint64)
        places[wrong] = self._nearest(self._domain.locate(points[wrong], self._level), rng)
        draw_again(points, wrong, lambda rows: self._domain.draw(places[rows], self._level, rng), self._breaks)
        return points

    def _breaks(self, points: Points) -> Bools:
        wrong = np.zeros(len(points), bool)
        for order, (one, two) in self._orders:
            wrong |= order.broken(points[:, one], points[:, two])
        return wrong

    def _nearest(self, codes: Cells, rng: np.random.Generator) -> Cells:
        """Return each cell if some of its rows keep the orders, else one of the nearest that do, by their mass."""
        first, last = nearest_parts(codes, self._cells, self._level)
        low, high = self._before[first], self._before[last]
        chosen = np.searchsorted(self._before, low + (high - low) * rng.random(len(codes)), "right") - 1
        return self._cells[np.clip(chosen, first, last - 1)]

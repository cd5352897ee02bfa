"""Margins of two compared columns that an order allows: mass that no allowed pair of cells can hold is moved first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privmeasure.domains import Bools, Floats

MAX_ROUNDS = 200
"""The most rounds over all orders: two orders that share a column undo part of each other's work."""
TOLERANCE = 1e-9
"""The share of the mass that may stay without an allowed pair."""


@dataclass(frozen=True, eq=False)
class OrderMask:
    """An order on the rank cells of two columns: which pairs of cells hold a row that keeps it.

    `early` and `late` are the numbers of the columns; the value of the early column is to be the smaller one. `allowed`
    has a row for each cell of the early column and a column for each cell of the late one. `free` says which cells of
    each column are compared with nothing, because their values are missing: they are allowed with every cell.
    """

    early: int
    late: int
    allowed: Bools
    free: tuple[Bools, Bools]


def possible_margins(margins: Sequence[Floats], orders: Sequence[OrderMask]) -> list[Floats]:
    """Return the margins, changed as little as needed for every order to have a table with these margins.

    Each order is served in turn, until all of them are.
    """
    found = [np.asarray(margin, np.float64) for margin in margins]
    for _ in range(MAX_ROUNDS):
        moved = 0.0
        for order in orders:
            early, late = move_impossible(found[order.early], found[order.late], order)
            moved = max(moved, np.abs(early - found[order.early]).sum(), np.abs(late - found[order.late]).sum())
            found[order.early], found[order.late] = early, late
        if not moved > TOLERANCE * float(found[0].sum()):
            break
    return found


def move_impossible(early: Floats, late: Floats, order: OrderMask) -> tuple[Floats, Floats]:
    """Return the masses of two columns after the mass that no allowed pair of cells can hold was moved.

    Half of it moves in each column, to the nearest cells that are allowed: down in the early column, up in the late
    one. If only one of the columns can give way, all of it moves there.

    Notation:   F(t) late mass of the cells up to t    G(t) early mass of the cells that are allowed with one of these,
                missing values included. A table with both margins exists if and only if F <= G (Hall's condition for
                nested sets), so max_t (F(t) - G(t))+ is what must move past some t. Where F > G both become the mean.

    Examples:
        >>> everywhere = np.triu(np.ones((3, 3), bool))
        >>> order = OrderMask(0, 1, everywhere, (np.zeros(3, bool), np.zeros(3, bool)))
        >>> move_impossible(np.array([2.0, 2.0, 4.0]), np.array([4.0, 0.0, 4.0]), order)
        (array([3., 1., 4.]), array([3., 1., 4.]))
    """
    (free_early, free_late), allowed = order.free, order.allowed
    rows, columns = np.flatnonzero(~free_early), np.flatnonzero(~free_late)
    inner = allowed[np.ix_(rows, columns)]
    rows = rows[np.argsort(-inner.sum(axis=1), kind="stable")]
    columns, reach = columns[np.argsort(inner.sum(axis=0), kind="stable")], np.sort(inner.sum(axis=0))
    if not len(columns) or not reach[-1]:
        return early, late  # no value of the one goes with any of the other
    missing = float(early[free_early].sum())
    up_to = np.concatenate(([0.0], np.cumsum(early[rows])))
    below = np.cumsum(late[columns])
    needed = np.zeros(len(up_to))
    np.maximum.at(needed, reach, below - missing)
    needed = np.maximum(np.maximum.accumulate(needed), up_to)
    given = (up_to + needed) / 2
    given[0] = 0.0
    given[reach[-1] :] = needed[reach[-1] :]
    kept = np.minimum(below, given[reach] + missing)
    early, late = early.copy(), late.copy()
    early[rows], late[columns] = np.diff(given), np.diff(kept, prepend=0.0)
    return early, late

"""How far rows are from a released column: on its cells, from public values."""

import numpy as np

from privmeasure.domains import Domain, Floats, Points
from privmeasure.errors import ArgumentError
from privmeasure.releases.cells import CellMeasure
from privmeasure.transport.cells import cell_norm, has_closed_form


def cell_distance(column: CellMeasure, mass: Floats, rows: Points) -> float:
    """Return a bound of the W1 distance between rows and the released masses of a column, both on its cells.

    Exact on lines, circles and categories; else along the tree: what is out of balance at a level moves at most the
    diameter of a cell above it.

    Examples:
        >>> from privmeasure.releases.drift import tree_distance
        >>> from privmeasure.domains import Categories
        >>> tree_distance(Categories(4), np.array([0.5, -0.5, 0.0, 0.0]))
        0.5
    """
    if not len(rows):
        raise ArgumentError("rows must not be empty: no rows have no distance to a measure.")
    cells = column.domain.locate(rows, column.level).view(np.int64)
    difference = np.bincount(cells, minlength=1 << column.level) / len(rows) - mass / mass.sum()
    if has_closed_form(column.domain):
        return cell_norm(column.domain, column.level)(difference)
    return tree_distance(column.domain, difference)


def tree_distance(domain: Domain, difference: Floats) -> float:
    """Return a bound of W1: what siblings settle between them moves at most the diameter of their parent."""
    level, total = len(difference).bit_length() - 1, 0.0
    while level:
        parents = difference.reshape(-1, 2).sum(axis=1)
        # of what is out of balance in two siblings, all but their sum is settled between them
        total += domain.diameter(level - 1) * float((np.abs(difference).sum() - np.abs(parents).sum()) / 2)
        difference, level = parents, level - 1
    return total

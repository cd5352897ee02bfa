"""W1 between two sets of rows in any space of ours, on the cells of a level: quick, for columns, pairs and whole rows.

What both sets have in common stays where it is. The rest is dealt in equal units, and moved by the best assignment. So
the result is W1 of the rows moved to the centres of their cells, to within a unit of what has to move.

The results depend on both sets: where one is real data, they are confidential.
"""

from collections.abc import Sequence

import numpy as np

from privmeasure.domains import Domain, Floats, Integers, Points, Product, Steps
from privmeasure.domains.box import Box
from privmeasure.metrics.wasserstein import wasserstein
from privmeasure.rounding import LAST_DIGITS
from privmeasure.transport import apportion

MOST_PLACES = 1 << 12
"""Cells on which rows are compared, at most: 64 along each axis of a pair."""
UNITS = 300
"""Equal parts of what has to move."""


def share_of_range(x: Points, y: Points, space: Domain) -> float:
    """Return W1 of two sets of points as a share of the diameter of their space; exact on a line.

    Examples:
        >>> from privmeasure.domains import Box
        >>> x = np.linspace(0, 10, 101)[:, None]
        >>> round(share_of_range(x, x * 0.9, Box([(0, 10)])), 3)
        0.05
    """
    wide = space.diameter(0)
    if wide == 0:
        return 0.0
    if isinstance(space, Integers | Steps) or (isinstance(space, Box) and space.width == 1):
        line = Box([(space.low, space.high)]) if isinstance(space, Integers | Steps) else space
        return wasserstein(x, y, domain=line, method="exact").value / line.diameter(0)
    return _on_cells(x, y, space) / wide


def joined(spaces: Sequence[Domain]) -> Product:
    """Return several spaces as one in which each counts alike: distances are shares of their diameters."""
    return Product(spaces, weights=[1 / (space.diameter(0) or 1.0) for space in spaces])


def rows_apart(x: Points, y: Points, space: Domain, *, rows: int, seed: int) -> tuple[float, float]:
    """Return W1 of some rows of each of two sets, as a share of the diameter, and the floor: of two parts of the first.

    Rows of many columns are far apart even where the distributions are equal: the floor says how far.
    """
    found = wasserstein(x, y, domain=space, method="subsample", samples=rows, draws=2, seed=seed)
    wide = space.diameter(0) or 1.0
    return found.value / wide, (found.floor or 0.0) / wide


def _on_cells(x: Points, y: Points, space: Domain) -> float:
    from scipy.optimize import linear_sum_assignment

    level = 0
    while level < space.deepest and space.size(level + 1) <= MOST_PLACES and space.diameter(level) > 0:
        level += 1
    # only cells that hold rows: a tree with gaps may be deep
    cells, where = np.unique(np.concatenate([space.locate(x, level), space.locate(y, level)]), return_inverse=True)
    share = np.concatenate([np.full(len(x), 1 / len(x)), np.full(len(y), -1 / len(y))])
    net = np.bincount(where.ravel(), weights=share)
    moved = float(np.maximum(net, 0).sum())
    if moved <= len(cells) * LAST_DIGITS:
        return 0.0
    ends = [
        space.centre(np.repeat(cells, apportion(mass, UNITS)), level)
        for mass in (np.maximum(net, 0), np.maximum(-net, 0))
    ]
    lengths: Floats = space.distance(ends[0][:, None, :], ends[1][None, :, :])
    rows, columns = linear_sum_assignment(lengths)
    return moved * float(lengths[rows, columns].mean())

"""How far rows are from a released column: on its cells, from public values."""

import numpy as np

from privmeasure.domains import Floats, Points
from privmeasure.errors import ArgumentError
from privmeasure.releases.cells import CellMeasure
from privmeasure.transport.cells import cells_apart


def cell_distance(column: CellMeasure, mass: Floats, rows: Points) -> float:
    """Return a bound of the W1 distance between rows and the released masses of a column, both on its cells."""
    if not len(rows):
        raise ArgumentError("rows must not be empty: no rows have no distance to a measure.")
    cells = column.domain.locate(rows, column.level).view(np.int64)
    difference = np.bincount(cells, minlength=1 << column.level) / len(rows) - mass / mass.sum()
    return cells_apart(column.domain, column.level, difference)

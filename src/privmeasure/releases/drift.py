"""How far rows are from a release: from its columns, on their cells, and from its noisy tables. Public values only."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.conditions.orders import PlacedOrder
from privmeasure.domains import Box, Cells, Domain, Floats, Points
from privmeasure.errors import ArgumentError, ReleaseFileError
from privmeasure.releases.files import DEEPEST_NOISY
from privmeasure.transport.cells import cells_apart, corner_distance, has_closed_form

PairDistances = tuple[tuple[int, int, float], ...]
MAX_MEASURED, MEASURED_SEED = 200_000, 0
"""The default rows, for which a release states how far they are from it: at most this many, with this public seed."""


@dataclass(frozen=True)
class RowDistances:
    """How far the default rows of a release are from it: what order constraints still move, as public numbers.

    `columns` has the W1 distance from each released column (of one tree, from the tree), `pairs` the total variation
    distance from each noisy table, by the numbers of the two columns. `sampled` is the number of rows, drawn with the
    seed that is always the same.
    """

    sampled: int
    columns: tuple[float, ...]
    pairs: PairDistances = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON value."""
        return {"sampled": self.sampled, "columns": list(self.columns), "pairs": [list(pair) for pair in self.pairs]}

    @classmethod
    def from_json(cls, value: Any, columns: int, pairs: Sequence[tuple[int, int]]) -> "RowDistances":
        """Read what `to_json` wrote; the numbers of columns and the pairs must be those of the release."""
        match value:
            case {"sampled": int(sampled), "columns": list(near), "pairs": list(tables)} if len(value) == 3:
                found = cls(sampled, tuple(near), tuple((i, j, far) for i, j, far in tables))
            case _:
                raise ReleaseFileError("the distances of the rows cannot be read")
        numbers = [*found.columns, *(far for _, _, far in found.pairs)]
        if (
            any(type(x) not in (int, float) or not 0 <= x <= sys.float_info.max for x in numbers)
            or any(type(i) is not int or type(j) is not int for i, j, _ in found.pairs)
            or type(sampled) is not int
            or not 1 <= sampled <= MAX_MEASURED
            or len(near) != columns
            or [(i, j) for i, j, _ in found.pairs] != list(pairs)
        ):
            raise ReleaseFileError("the distances of the rows are not those of its columns and pairs")
        return found


def check_rows(rows: Points) -> None:
    """Refuse no rows."""
    if not len(rows):
        raise ArgumentError("rows must not be empty: no rows have no distance to a measure.")


def cell_distance(domain: Domain, level: int, cells: Cells, mass: NDArray[Any], rows: Points) -> float:
    """Return a bound of the W1 distance between rows and masses on some cells of a level, both on the cells' centres.

    Examples:
        >>> cells, mass = np.array([0, 3], np.uint64), np.array([1, 1])
        >>> cell_distance(Box([(0, 1)]), 2, cells, mass, np.array([[0.1], [0.6]]))
        0.125
    """
    check_rows(rows)
    if has_closed_form(domain) and level <= DEEPEST_NOISY:
        difference = np.bincount(domain.locate(rows, level).view(np.int64), minlength=1 << level) / len(rows)
        difference[cells.view(np.int64)] -= mass / mass.sum()
        return cells_apart(domain, level, difference)
    codes, place = np.unique(np.concatenate((domain.locate(rows, level), cells)), return_inverse=True)
    weights = np.concatenate((np.full(len(rows), 1 / len(rows)), -mass / mass.sum()))
    return _along_tree(domain, level, codes, np.bincount(place.reshape(-1), weights=weights).astype(np.float64))


def _along_tree(domain: Domain, level: int, codes: Cells, difference: Floats) -> float:
    """Return `tree_distance` of a difference on a few cells: the others have none."""
    total = 0.0
    while level:
        parents, place = np.unique(codes >> np.uint64(1), return_inverse=True)
        above = np.bincount(place.reshape(-1), weights=difference).astype(np.float64)
        total += domain.diameter(level - 1) * float((np.abs(difference).sum() - np.abs(above).sum()) / 2)
        codes, difference, level = parents, above, level - 1
    return total


def inside_distance(domain: Domain, level: int, rows: Points, orders: Sequence[PlacedOrder]) -> float:
    """Return a bound of what orders move inside the cells of a box, in which rows are otherwise spread evenly.

    Guarantees and certificates count on that: a point of the data is on average no farther from the rows of its cell
    than a corner is. In other spaces they allow for the diameter of the cell, so 0 is added. On a line it is exact;
    in more dimensions it is the most that rows of the cells that an order cuts can add.
    """
    if not isinstance(domain, Box) or not orders:
        return 0.0
    codes = domain.locate(rows, level)
    if domain.width == 1:
        return _unevenness(domain, level, codes, rows)
    cut = np.zeros(len(rows), bool)
    for order, coordinates in orders:
        cut |= order.cuts(domain, coordinates, codes, level)
    return float(np.mean(cut)) * (domain.diameter(level) - corner_distance(domain, level))


def _unevenness(domain: Box, level: int, codes: Cells, rows: Points) -> float:
    """Return the mean over rows of W1 between the rows of each cell of a line and the even distribution on it.

    Notation:   u_1 <= ... <= u_k rows of a cell of length 1: sum over r of the integral of |u_r - q| dq over
                [(r - 1)/k, r/k]
    """
    low, high = (side[:, 0] for side in domain.extent(codes, level))
    place = np.clip((rows[:, 0] - low) / (high - low), 0.0, 1.0)
    order = np.lexsort((place, codes))
    place, codes = place[order], codes[order]
    starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    count = np.diff(np.append(starts, len(codes)))
    size = np.repeat(count, count)
    start = (np.arange(len(codes)) - np.repeat(starts, count)) / size
    stop = start + 1 / size
    inner = np.clip(place, start, stop)
    moved = ((inner - start) ** 2 + (stop - inner) ** 2) / 2 + (stop - start) * np.abs(place - inner)
    return float((moved * size).sum() / len(rows)) * domain.diameter(level)

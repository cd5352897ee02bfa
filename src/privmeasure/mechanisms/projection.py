"""From noisy counts of the cells of one level to the closest measure: the metric space of the cells, and the search.

The cells of a level become points (their centres) of a finite metric space: a line, a grid, or a matrix of distances.
All of it is post-processing.
"""

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Box, Cells, Domain, Finite, Integers
from privmeasure.errors import ArgumentError
from privmeasure.mechanisms.consistency import Mass
from privmeasure.transport import Grid, Line, closest_measure

MOST_CELLS = 1 << 16
"""Cells of a line or a grid."""
MOST_PAIRED_CELLS = 1 << 11
"""Cells of any other space: pairs of cells are looked at."""

Space = Finite | Grid | Line


def most_cells(domain: Domain) -> int:
    """Return how many cells of a domain can be projected in reasonable time."""
    return MOST_CELLS if _has_grid(domain) or isinstance(domain, Integers) else MOST_PAIRED_CELLS


def cell_space(domain: Domain, cells: Cells, level: int) -> tuple[Space, NDArray[np.int64]]:
    """Return the metric space of the centres of all cells that exist, and the place of each cell in it."""
    order = np.arange(len(cells))
    if isinstance(domain, Finite) and level == 0:
        return Line((0.0,)), order
    if isinstance(domain, Box) and domain.width > 1 and _has_grid(domain):
        index = domain.positions(cells, level)
        shape = tuple(1 << cuts for cuts in domain.cuts(level))
        sides = tuple(w / n for w, n in zip(domain.weights, shape, strict=True))
        return Grid(shape, sides), np.ravel_multi_index(tuple(index.T), shape)
    centres = domain.centre(cells, level)
    if domain.width == 1 and isinstance(domain, Box | Integers):
        return Line(tuple(domain.distance(centres, np.repeat(centres[:1], len(cells), axis=0)))), order
    first, second = np.repeat(centres, len(cells), axis=0), np.tile(centres, (len(cells), 1))
    return Finite(domain.distance(first, second).reshape(len(cells), len(cells))), order


def project(domain: Domain, noisy: Mass, cells: Cells, level: int, total: int) -> Mass:
    """Return the masses of the cells: the closest measure of a total to their noisy counts, in d_BL.

    Guarantee:  privacy   post-processing
                accuracy  optimal; hence W1 to the truth is at most twice the noise's own d_BL norm, over n
    References: [HVZ23] Algorithm 2, its linear program corrected
    """
    space, place = cell_space(domain, cells, level)
    signed = np.zeros(len(cells), np.int64)
    signed[place] = noisy
    mass, _ = closest_measure(signed, total, space)
    return mass[place]


def _has_grid(domain: Domain) -> bool:
    """Say whether every level of a box is a grid with sides 1 and 2: equal weights, or one axis."""
    return isinstance(domain, Box) and (domain.width == 1 or len(set(domain.weights)) == 1)


def check_cells(domain: Domain, level: int) -> None:
    """Refuse more cells than can be projected."""
    cells, most = domain.size(level), most_cells(domain)
    if cells > most:
        raise ArgumentError(
            f"level {level} has {cells} cells, and PSMM can project at most {most} on this domain. "
            "Use a smaller level, or PMM, which has no such limit."
        )

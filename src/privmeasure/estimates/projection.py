"""From noisy counts of the cells of one level to the closest measure: the metric space of the cells, and the search.

The cells of a level become points (their centres) of a finite metric space: a line, a grid, or a matrix of distances.
All of it is post-processing.
"""

from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Box, Cells, Domain, Finite, Integers, is_ours
from privmeasure.errors import ArgumentError
from privmeasure.estimates.consistency import Mass
from privmeasure.transport import Grid, Line, closest_measure
from privmeasure.transport.flow import MOST_ARCS

MOST_GRID_CELLS = 1 << 16
"""Cells of a line or a grid."""
MOST_PAIRED_CELLS = 1 << 11
"""Cells of any other space: pairs of cells are looked at."""

Space = Finite | Grid | Line


def most_cells(domain: Domain) -> int:
    """Return how many cells of a domain can be projected in reasonable time and memory."""
    levels = range(MOST_GRID_CELLS.bit_length() - 1, MOST_PAIRED_CELLS.bit_length() - 1, -1)
    return next((1 << level for level in levels if _is_light(domain, level)), MOST_PAIRED_CELLS)


def can_project(domain: Domain, level: int) -> bool:
    """Say whether the cells of a level can be projected: a finer level may be possible where this one is not."""
    cells = domain.size(level)
    return cells <= MOST_PAIRED_CELLS or (cells <= MOST_GRID_CELLS and _is_light(domain, level))


def check_cells(domain: Domain, level: int) -> None:
    """Refuse more cells than can be projected."""
    if not can_project(domain, level):
        cells, most = domain.size(level), most_cells(domain)
        where = "" if cells > most else ", and so many only where all axes are cut alike"
        raise ArgumentError(
            f"level {level} has {cells} cells, and PSMM can project at most {most} on this domain{where}. "
            "Use a smaller level, or PMM, which has no such limit."
        )


def cell_space(domain: Domain, cells: Cells, level: int) -> tuple[Space, NDArray[np.int64]]:
    """Return the metric space of the centres of all cells that exist, and the place of each cell in it.

    Raises where the centres are no metric space, or too many. A mechanism calls it before it draws noise, so that
    nothing is spent by then.
    """
    order = np.arange(len(cells))
    if len(cells) == 1:
        return Line((0.0,)), order
    if _is_grid(domain):
        arcs = _grid_arcs(domain, level)
        if arcs <= MOST_ARCS and (len(cells) > MOST_PAIRED_CELLS or arcs <= len(cells) ** 2):
            shape = tuple(1 << cuts for cuts in domain.cuts(level))
            place = np.ravel_multi_index(tuple(domain.positions(cells, level).T), shape)
            cut = [(n, w / n) for w, n in zip(domain.weights, shape, strict=True) if n > 1]
            return Grid(tuple(n for n, _ in cut), tuple(side for _, side in cut)), place
    centres = domain.centre(cells, level)
    if _is_line(domain):
        return Line(tuple(domain.distance(centres, np.repeat(centres[:1], len(cells), axis=0)))), order
    rows = (np.repeat(centre[None], len(cells), axis=0) for centre in centres)  # all pairs at once: too much memory
    matrix = np.stack([domain.distance(row, centres) for row in rows])
    return Finite.trusted(matrix) if is_ours(domain) else Finite(matrix), order


def project(space: Space, place: NDArray[np.int64], noisy: Mass, total: int) -> Mass:
    """Return the masses of the cells: the closest measure of a total to their noisy counts, in d_BL.

    `space` and `place` are those of `cell_space`.

    Guarantee:  privacy   post-processing
                accuracy  optimal; hence W1 to the truth is at most twice the noise's own norm, over n
    References: [HVZ23] Algorithm 2, its linear program corrected
    """
    signed = np.zeros(len(noisy), np.int64)
    signed[place] = noisy
    mass, _ = closest_measure(signed, total, space)
    return mass[place]


def _is_light(domain: Domain, level: int) -> bool:
    """Say whether the cells of a level are a line, or a grid with few enough arcs: 3^d - 1 per cell, or more."""
    return _is_line(domain) or (_is_grid(domain) and _grid_arcs(domain, level) <= MOST_ARCS)


def _is_line(domain: Domain) -> bool:
    return type(domain) is Integers or (type(domain) is Box and domain.width == 1)


def _is_grid(domain: Domain) -> TypeGuard[Box]:
    """Say whether every level of a box is a grid with sides 1 and 2: equal weights."""
    return type(domain) is Box and domain.width > 1 and len(set(domain.weights)) == 1


def _grid_arcs(domain: Box, level: int) -> int:
    """Return how many arcs the grid of a level has at most: see `transport.grid_arcs`."""
    cuts = [k for k in domain.cuts(level) if k]
    fine = sum(k == max(cuts) for k in cuts)
    arcs: int = 3**fine - 1 + (3 ** (len(cuts) - fine) - 1) * 5**fine
    return arcs << level

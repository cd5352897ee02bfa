"""Trees too large to hold: only the cells that received mass are looked at.

A cell without mass has children without mass, so its descendants' noise is never needed; and noise is addressed by
position, so what is not drawn changes nothing else. The mass of a cell is a released value, so which cells are visited
depends on released values alone. Each step goes from one measured level to the next, as a forest whose roots are the
occupied cells. There is no up pass across steps: inference needs the whole leaf level.
"""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privmeasure.counts import CellCounts
from privmeasure.domains import Bools, Cells, Domain
from privmeasure.mechanisms.consistency import Mass, Rule, distribute
from privmeasure.mechanisms.inference import uneven_up_pass, up_pass
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import discrete_laplace

FOREST_CELLS = 1 << 20
"""How many cells a step looks at together."""


def lazy_masses(
    domain: Domain, counts: CellCounts, total: int, scales: Mapping[int, Fraction], depth: int, rule: Rule, key: Key
) -> tuple[Cells, Mass]:
    """Return the occupied cells of the deepest level, sorted, and their masses.

    Guarantee:  privacy   reads true counts only to add their noise; the same noise as the whole tree
                cost      O(rows log rows + occupied cells * 2^gap) per measured level
    """
    true_cells, true_counts = _sparse(counts)
    cells, mass = np.zeros(1, np.uint64), np.full(1, total, np.int64)
    above = 0
    for level in sorted(level for level in scales if level > 0):
        shift = np.uint64(depth - level)
        starts = np.flatnonzero(np.diff(true_cells >> shift, prepend=~np.uint64(0)))  # ~0 is no cell: a first start
        occupied = (true_cells >> shift)[starts]
        sums = np.add.reduceat(true_counts, starts) if len(starts) else true_counts[:0]
        chunk = max(1, FOREST_CELLS >> (level - above))
        steps = [
            _step(
                domain,
                cells[i : i + chunk],
                mass[i : i + chunk],
                above,
                level,
                occupied,
                sums,
                scales[level],
                rule,
                key,
            )
            for i in range(0, len(cells), chunk)
        ]
        cells, mass = np.concatenate([step[0] for step in steps]), np.concatenate([step[1] for step in steps])
        above = level
    return cells, mass


def _step(
    domain: Domain,
    roots: Cells,
    mass: Mass,
    above: int,
    level: int,
    occupied: Cells,
    sums: NDArray[np.int64],
    scale: Fraction,
    rule: Rule,
    key: Key,
) -> tuple[Cells, Mass]:
    gap = level - above
    cells = ((roots << np.uint64(gap))[:, np.newaxis] | np.arange(1 << gap, dtype=np.uint64)).ravel()
    noisy = discrete_laplace(scale).draw(key, part=0, level=level, cells=cells)
    if len(occupied):
        place = np.minimum(np.searchsorted(occupied, cells), len(occupied) - 1)
        noisy += np.where(occupied[place] == cells, sums[place], 0)
    there = domain.exists(cells, level)
    if there.all():
        prepared, exists = up_pass({gap: noisy}, {gap: 1.0}, gap, rule, blue=False), None
    else:
        exists = ancestors(there, gap)
        prepared = uneven_up_pass({gap: noisy}, gap, rule, exists)
    leaves = distribute(mass, prepared, rule, exists)
    kept = leaves > 0
    return cells[kept], leaves[kept]


def ancestors(exists: Bools, depth: int) -> list[Bools]:
    """Return which cells of levels 0, ..., depth exist, given those of the deepest: a cell exists if a child does."""
    levels = [exists]
    for _ in range(depth):
        levels.append(levels[-1][0::2] | levels[-1][1::2])
    return levels[::-1]


def _sparse(counts: CellCounts) -> tuple[Cells, NDArray[np.int64]]:
    if counts.cells is not None:
        return counts.cells, counts.counts
    cells = np.flatnonzero(counts.counts)
    return cells.astype(np.uint64), counts.counts[cells]

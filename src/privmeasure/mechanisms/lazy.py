"""Trees too large to hold: only the cells that received mass are looked at.

A cell without mass has children without mass, so its descendants' noise is never needed; and noise is addressed by
position, so what is not drawn changes nothing else. The mass of a cell is a released value, so which cells are visited
depends on released values alone. Each step goes from one measured level to the next, as a forest whose roots are the
occupied cells. There is no up pass across steps: inference needs the whole leaf level.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privmeasure.counts import CellCounts
from privmeasure.domains import Cells, Domain
from privmeasure.estimates.consistency import Mass, Rule, distribute
from privmeasure.estimates.linear import ancestors
from privmeasure.estimates.passes import uneven_up_pass, up_pass
from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import Law, LawName

FOREST_CELLS = 1 << 20
"""How many cells a step looks at together."""


def lazy_masses(
    domain: Domain,
    counts: CellCounts,
    total: int,
    scales: Mapping[int, Fraction],
    depth: int,
    rule: Rule,
    law: LawName,
    key: Key,
    *,
    part: int,
) -> tuple[Cells, Mass]:
    """Return the occupied cells of the deepest level, sorted, and their masses.

    Guarantee:  privacy   reads true counts only to add their noise; the same noise as the whole tree
                cost      O(rows log rows + occupied cells * 2^gap) per measured level
    """
    leaves, sizes = _sparse(counts)
    cells, mass = np.zeros(1, np.uint64), np.full(1, total, np.int64)
    above = 0
    for level in sorted(level for level in scales if level > 0):
        true = _level_counts(leaves >> np.uint64(depth - level), sizes)
        drawn = law_of(law, scales[level])

        def noisy(asked: Cells, level: int = level, true: CellCounts = true, drawn: Law = drawn) -> Mass:
            return _counts_of(true, asked) + drawn.draw(key, part=part, level=level, cells=asked)

        chunk = max(1, FOREST_CELLS >> (level - above))
        steps = [
            _descend(domain, cells[i : i + chunk], mass[i : i + chunk], above, level, noisy, rule)
            for i in range(0, len(cells), chunk)
        ]
        cells, mass = (np.concatenate(parts) for parts in zip(*steps, strict=True))
        above = level
    return cells, mass


def _descend(
    domain: Domain, roots: Cells, mass: Mass, above: int, level: int, noisy: Callable[[Cells], Mass], rule: Rule
) -> tuple[Cells, Mass]:
    """Let the mass of some cells flow down to the next measured level; return the cells that received some."""
    gap = level - above
    cells = ((roots << np.uint64(gap))[:, np.newaxis] | np.arange(1 << gap, dtype=np.uint64)).ravel()
    exists = None
    if not (there := domain.exists(cells, level)).all():
        exists = ancestors(there, gap)
        prepared = uneven_up_pass({gap: noisy(cells)}, gap, rule, exists)
    else:
        prepared = up_pass({gap: noisy(cells)}, {gap: 1.0}, gap, rule, blue=False)
    leaves = distribute(mass, prepared, rule, exists)
    kept = leaves > 0
    return cells[kept], leaves[kept]


def _level_counts(cells: Cells, sizes: Mass) -> CellCounts:
    """Return the counts of sorted cells in which equal cells are added up."""
    starts = np.flatnonzero(np.concatenate((np.ones(min(1, len(cells)), bool), cells[1:] != cells[:-1])))
    sums = np.add.reduceat(sizes, starts) if len(starts) else sizes
    return CellCounts(len(starts), sums, cells[starts])


def _counts_of(true: CellCounts, asked: Cells) -> Mass:
    """Return the true counts of some cells: 0 where a cell is not listed."""
    if true.cells is None or len(true.cells) == 0:
        return np.zeros(len(asked), np.int64)
    place = np.minimum(np.searchsorted(true.cells, asked), len(true.cells) - 1)
    return np.where(true.cells[place] == asked, true.counts[place], 0)


def _sparse(counts: CellCounts) -> tuple[Cells, NDArray[np.int64]]:
    if counts.cells is not None:
        return counts.cells, counts.counts
    cells = np.flatnonzero(counts.counts)
    return cells.astype(np.uint64), counts.counts[cells]

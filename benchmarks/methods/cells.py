"""Masses on cells of the unit cube: what every rival releases, and the way from points to cells and back.

A cell of level r is what r cuts in the middle leave, the axes taking turns; its code is the r bits of these cuts.
"""

from dataclasses import dataclass

import numpy as np

DEEPEST = 30
"""Bits an axis is ever cut into."""


@dataclass(frozen=True)
class Cells:
    """Masses on boxes: lower corners, sides (a row each), and masses that are not negative."""

    low: np.ndarray
    side: np.ndarray
    mass: np.ndarray

    def points(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """Return rows, evenly spread inside their boxes: as many a box as its mass says, rounded along the boxes."""
        share = np.cumsum(self.mass) / self.mass.sum()
        count = np.diff(np.floor(share * rows + 0.5), prepend=0).astype(np.int64)
        low, side = np.repeat(self.low, count, axis=0), np.repeat(self.side, count, axis=0)
        return low + rng.random(low.shape) * side


def sensitivity(relation: str) -> int:
    """Return how many cells of one level change by 1 between neighbours."""
    return {"add-remove": 1, "replace": 2}[relation]


def bits(points: np.ndarray) -> np.ndarray:
    """Return every coordinate as a whole number of DEEPEST bits."""
    return np.clip((points * 2.0**DEEPEST).astype(np.int64), 0, 2**DEEPEST - 1)


def code(points: np.ndarray, level: int) -> np.ndarray:
    """Return the cell of a level that each point is in."""
    whole, d = bits(points), points.shape[1]
    found = np.zeros(len(points), np.int64)
    for cut in range(level):
        found = found << 1 | whole[:, cut % d] >> (DEEPEST - 1 - cut // d) & 1
    return found


def counts(points: np.ndarray, level: int) -> np.ndarray:
    """Return how many points are in every cell of a level."""
    return np.bincount(code(points, level), minlength=1 << level).astype(np.float64)


def corners(codes: np.ndarray, level: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower corners and sides of cells."""
    low = np.zeros((len(codes), d))
    for cut in range(level):
        low[:, cut % d] += (codes >> (level - 1 - cut) & 1) * 2.0 ** -(cut // d + 1)
    side = [2.0 ** -len(range(axis, level, d)) for axis in range(d)]
    return low, np.broadcast_to(side, low.shape)


def whole_level(mass: np.ndarray, d: int) -> Cells:
    """Return masses on all cells of a level."""
    kept = np.flatnonzero(mass > 0)
    return Cells(*corners(kept, len(mass).bit_length() - 1, d), mass[kept])


def share_out(wanted: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return, line by line, the masses that are nearest to those wanted, not negative, and sum to the line's total."""
    ordered = -np.sort(-wanted, axis=1)
    ranks = np.arange(1, wanted.shape[1] + 1)
    level = (np.cumsum(ordered, axis=1) - total[:, np.newaxis]) / ranks
    used = np.maximum((ordered > level).sum(axis=1), 1)
    return np.maximum(wanted - level[np.arange(len(wanted)), used - 1][:, np.newaxis], 0)


def monotone(mass: np.ndarray, total: float) -> np.ndarray:
    """Return masses along a line whose sums are the isotonic regression of the given ones' sums, within [0, total]."""
    from scipy.optimize import isotonic_regression

    sums = np.clip(isotonic_regression(np.cumsum(mass)).x, 0, total)
    sums[-1] = total
    return np.diff(sums, prepend=0.0)


def released_total(noisy: float, rows: int, relation: str) -> float:
    """Return the number of rows that is released: the true one if it is public, or else the noisy one, at least 1."""
    return float(rows) if relation == "replace" else max(1.0, float(noisy))


def nearest_level(cells: float, deepest: int = 20) -> int:
    """Return the level whose number of cells is nearest in ratio."""
    return int(np.clip(np.rint(np.log2(max(cells, 1.0))), 1, deepest))

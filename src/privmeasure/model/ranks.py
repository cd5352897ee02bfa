"""Ranks: the cells of a column in groups of about equal released mass. A function of released values alone.

Pairs of columns are measured on ranks. Coarser grids are groups of rank cells, so that the tables of one column nest,
whatever their resolution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Floats
from privmeasure.rounding import TINY

Groups = NDArray[np.int64]
"""For every cell the number of its group."""

EMPTY = 1e-9
"""Of the share of a group: a block with less mass is empty but for rounding, and has no parts."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Runs of cells whose mass together is known better than that of each one: `of[c]` is the block of cell c.

    `variance[c]` is that of the mass of cell c, given the mass of its block. A block may be cut into parts whose mass
    is at least `clear` standard deviations of their noise.
    """

    of: Groups
    variance: Floats
    clear: float

    def of_groups(self, groups: Groups) -> "Blocks":
        """Return blocks of groups of the cells: one begins where no group before it shares a block with it.

        Examples:
            >>> blocks = Blocks(np.array([0, 1, 1, 2, 2]), np.ones(5), clear=10)
            >>> blocks.of_groups(np.array([0, 0, 1, 2, 3])).of
            array([0, 0, 1, 1])
        """
        count = int(groups.max()) + 1
        first, last = np.full(count, int(self.of.max()) + 1), np.full(count, -1)
        np.minimum.at(first, groups, self.of)
        np.maximum.at(last, groups, self.of)
        begins = first[1:] > np.maximum.accumulate(last)[:-1]
        variance = np.bincount(groups, weights=self.variance).astype(np.float64)
        return Blocks(np.concatenate([[0], np.cumsum(begins)]), variance, self.clear)

    def __getitem__(self, cells: Groups) -> "Blocks":
        """Return the blocks of some of the cells."""
        return Blocks(self.of[cells], self.variance[cells], self.clear)


def rank(
    mass: NDArray[Any],
    most: int,
    *,
    ordered: bool,
    blocks: Blocks | None = None,
    alone: int | None = None,
    apart: Sequence[Bools] = (),
) -> Groups:
    """Return the group of every cell: at most `most` groups of about equal mass, numbered from 0, none without a cell.

    Cells without mass join a neighbour. Where cells are `ordered`, groups are runs of them, made of whole `blocks`
    where these are given and are not clearly heavier than a group; else heavy cells are alone and light ones are
    packed. The cell `alone` (that of missing values) shares its group with no cell that has mass, and no group has
    cells of mass both inside and outside a set of `apart`: this comes before all else.

    Examples:
        >>> rank(np.array([1, 1, 1, 3, 0, 2]), 3, ordered=True)
        array([0, 0, 0, 1, 1, 2])
        >>> rank(np.array([5, 1, 0, 6, 1]), 3, ordered=False)
        array([1, 2, 2, 0, 2])
        >>> rank(np.array([4, 1, 1, 0]), 2, ordered=True, alone=2)
        array([0, 0, 1, 1])
        >>> blocks = Blocks(np.array([0, 0, 1, 1, 1, 1]), np.ones(6), clear=10)
        >>> rank(np.array([3, 2, 1, 3, 2, 1]), 2, ordered=True, blocks=blocks)
        array([0, 0, 1, 1, 1, 1])
    """
    mass = np.asarray(mass, np.float64)
    if not (mass > 0).any():
        return np.zeros(len(mass), np.int64)
    labels = _labels(len(mass), alone, apart)
    for groups in range(max(1, most), 0, -1):  # sets that must stay apart take some of the groups
        cut = _runs(mass, groups, blocks) if ordered else _packed(mass, groups)
        number, found = _compact(cut, labels, mass > 0, ordered)
        if found <= most:
            return number
    return number


def _labels(cells: int, alone: int | None, apart: Sequence[Bools]) -> Groups:
    """Return a number for every cell: cells with different numbers must not share a group."""
    labels = np.zeros(cells, np.int64)
    for inside in apart:
        labels = np.unique(2 * labels + inside, return_inverse=True)[1].reshape(-1)
    if alone is not None:
        labels[alone] = labels.max() + 1
    return labels


def strangers(groups: Groups, mass: NDArray[Any], alone: int | None, apart: Sequence[Bools]) -> Bools:
    """Say which cells without mass are in a group that they must not share with what has mass there: see `rank`.

    They joined it as neighbours. Masses that are estimated anew must leave them empty.

    Examples:
        >>> strangers(np.array([0, 0, 1, 1]), np.array([4, 1, 1, 0]), alone=2, apart=())
        array([False, False, False,  True])
    """
    labels, filled = _labels(len(mass), alone, apart), np.asarray(mass) > 0
    of_group = np.full(int(groups.max()) + 1, -1)
    of_group[groups[filled]] = labels[filled]
    return np.asarray(~filled & (of_group[groups] != labels), bool)


def _runs(mass: NDArray[np.float64], groups: int, blocks: Blocks | None) -> Groups:
    """Return runs of cells, or of blocks of cells, of about equal mass."""
    if groups >= np.count_nonzero(mass):
        return np.asarray(np.maximum(np.cumsum(mass > 0) - 1, 0), np.int64)
    if blocks is not None:
        units = _units(mass, blocks, float(mass.sum()) / groups)
        return _shares(np.bincount(units, weights=mass).astype(np.float64), groups)[units]
    return _shares(mass, groups)


def _shares(mass: NDArray[np.float64], groups: int) -> Groups:
    """Return the group of every cell: where the middle of the cell falls among equal shares."""
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    return np.asarray(np.minimum((middle * groups).astype(np.int64), groups - 1), np.int64)


def _units(mass: NDArray[np.float64], blocks: Blocks, share: float) -> Groups:
    """Return a rising number for every cell: that of its block, or of a part of the block.

    A block is cut into parts of about a group's share, but fewer if noise would drown them: p equal parts of mass M
    and variance V have M / p >= clear sqrt(V / p) if p <= (M / clear)^2 / V.
    """
    block, noise = (np.bincount(blocks.of, weights=weights) for weights in (mass, blocks.variance))
    clear = (block / blocks.clear) ** 2 / np.maximum(noise, TINY)
    parts = np.maximum(np.floor(np.minimum(np.rint(block / share), clear)), 1.0)[blocks.of]
    before = (np.cumsum(block) - block)[blocks.of]
    inside = np.clip((np.cumsum(mass) - mass / 2 - before) / np.maximum(block[blocks.of], EMPTY * share), 0.0, 1.0)
    part = np.minimum((inside * parts).astype(np.int64), parts - 1)
    return np.unique(blocks.of * (parts.max() + 1) + part, return_inverse=True)[1].reshape(-1)


def _packed(mass: NDArray[np.float64], groups: int) -> Groups:
    """Return heavy cells alone, the light ones together in the order of their mass."""
    order = np.argsort(-mass, kind="stable")
    falling, number = mass[order], np.empty(len(mass), np.int64)
    heavy, rest, left = 0, float(mass.sum()), groups
    alone = np.count_nonzero(mass) if groups >= np.count_nonzero(mass) else 0
    while heavy < len(falling) and left > 1 and (heavy < alone or falling[heavy] >= rest / left):
        rest, left, heavy = rest - float(falling[heavy]), left - 1, heavy + 1
    tail = falling[heavy:]
    middle = (np.cumsum(tail) - tail / 2) / max(float(tail.sum()), TINY)
    number[order[:heavy]] = np.arange(heavy)
    number[order[heavy:]] = heavy + np.minimum((middle * left).astype(np.int64), left - 1)
    return number


def _compact(cut: Groups, labels: Groups, filled: Bools, ordered: bool) -> tuple[Groups, int]:
    """Number the groups that have mass from 0, in the order of their cells or of their mass; others join a neighbour.

    Returns the number of every cell, and how many groups there are.
    """
    key = cut * (int(labels.max()) + 1) + labels
    keys, first, inverse = np.unique(key[filled], return_index=True, return_inverse=True)
    order = np.argsort(first) if ordered else np.arange(len(keys))
    place = np.empty(len(keys), np.int64)
    place[order] = np.arange(len(keys))
    number = np.full(len(key), -1, np.int64)
    number[filled] = place[inverse.reshape(-1)]
    if ordered:  # the group of the last cell with mass before, or of the first one
        before = np.maximum.accumulate(np.where(filled, np.arange(len(key)), -1))
        return np.where(before >= 0, number[before], 0), len(keys)
    return np.where(filled, number, len(keys) - 1), len(keys)


def merge_groups(table: NDArray[Any], rows: Groups, columns: Groups) -> NDArray[Any]:
    """Return the table with its rows and columns added up by group; whole numbers stay whole.

    Examples:
        >>> merge_groups(np.array([[1, 2, 3], [4, 5, 6]]), np.array([0, 0]), np.array([0, 1, 1]))
        array([[ 5, 16]])
    """
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    place = rows[:, np.newaxis] * shape[1] + columns
    total = np.bincount(place.ravel(), weights=table.ravel(), minlength=shape[0] * shape[1]).reshape(shape)
    return total.astype(table.dtype)  # counts are below 2^53: exact

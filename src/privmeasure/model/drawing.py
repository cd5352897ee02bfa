"""Drawing many rows at once, evenly spread: fewer surprises than independent draws, the same law for every row."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Floats
from privmeasure.model.ranks import Groups
from privmeasure.threads import in_threads

SortKey = NDArray[np.signedinteger[Any]]
"""For every row the number of its group: all rows of a group are drawn from one distribution."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio less 1, in units of 2^-64: arithmetic modulo 1 is that of words."""
WEIGHTS_TOGETHER = 1 << 17
"""Weights of groups that are held at a time: they stay in the cache of a core."""


def by_group(key: SortKey, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows sorted by group, in a fresh random order inside each.

    Fresh for every column: two columns that are drawn given a third are then independent given it. With one order for
    both, a row that is high in its group for the one would be high for the other.
    """
    order = rng.permutation(len(key))
    for shift in range(0, (size - 1).bit_length(), 16):  # 16 bits at a time: words that are sorted in linear time
        digit = (key >> shift).astype(np.uint16) if size > 1 << 16 else key.astype(np.uint16)
        order = order.take(np.argsort(digit.take(order), kind="stable"))
    return order


def draw(
    key: SortKey,
    size: int,
    weights: Callable[[slice], NDArray[np.floating[Any]]],
    rng: np.random.Generator,
    *,
    threads: int = 1,
) -> NDArray[np.int32]:
    """Return for every row a number drawn in proportion to the weights of its group, whatever the number of threads.

    `weights(groups)` gives a matrix, a row for each group of the slice. Systematic: of the c rows of a group as many
    get a number as steps of 1/c, from a random start, fall on its share; which of them is up to their random order. The
    starts of the groups are multiples of the golden ratio, so that small groups are evenly spread together.
    """
    order = by_group(key, size, rng)
    counts, starts = np.bincount(key, minlength=size), _golden(size, rng)
    drawn, ends = np.empty(len(key), np.int32), np.concatenate(([0], np.cumsum(counts)))
    together = max(1, WEIGHTS_TOGETHER // weights(slice(0, 1)).shape[1])

    def fill(block: int) -> None:
        here = slice(block * together, min((block + 1) * together, size))
        rows = order[ends[here.start] : ends[here.stop]]
        if len(rows):
            # types are changed before, not by the operation itself, which would take twice as long
            ladder = np.cumsum(weights(here).astype(np.float64, copy=False), axis=1)
            ladder /= ladder[:, -1:]
            steps = _steps(ladder, counts[here], starts[here]).ravel()
            taken = np.flatnonzero(steps > 0)  # few of them: repeating holds the lock of the interpreter
            drawn[rows] = np.repeat((taken % ladder.shape[1]).astype(np.int32), steps.take(taken))

    in_threads(fill, -(-size // together), threads)
    return drawn


def _steps(ladder: Floats, counts: NDArray[np.int64], starts: Floats) -> NDArray[np.int32]:
    """Return how many of the rows of each group fall on each of its shares; ladders end at 1, and are used up."""
    ladder *= counts.astype(np.float64)[:, np.newaxis]
    ladder += starts[:, np.newaxis]
    reached = ladder.astype(np.int32)  # rounded down: nothing is negative, and rows are fewer than 2^31
    np.minimum(reached, counts.astype(np.int32)[:, np.newaxis], out=reached)
    reached[:, -1] = counts  # whatever the floats say, every row gets a number
    reached[:, 1:] -= reached[:, :-1].copy()
    return reached


def _golden(count: int, rng: np.random.Generator) -> Floats:
    """Return the multiples of the golden ratio modulo 1, from a random start, as multiples of 2^-53, in random order.

    The order is fresh for every column: where groups have a row or two each, two columns with the same groups would
    otherwise follow the same steps, and depend on each other.
    """
    words = np.arange(count, dtype=np.uint64)
    words *= GOLDEN
    words += rng.integers(0, 1 << 64, dtype=np.uint64)
    words >>= np.uint64(11)
    rng.shuffle(words)
    return np.asarray(words * 2.0**-53, np.float64)


def settle(cells: NDArray[np.int32], margin: Floats, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return the cells with the counts of the margin, rounded: rows of cells that have too many move where some lack.

    Several parents cannot all be met, and small groups are rounded: a column that is drawn given others has its margin
    but roughly. Which rows of a cell move is left to chance. Surplus and lack are matched in the order of the cells, so
    that nothing moves farther than it must.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> np.bincount(settle(np.array([0, 0, 0, 0, 0, 2], np.int32), np.array([3.0, 2.0, 1.0]), rng))
        array([3, 2, 1])
    """
    size, n = len(margin), len(cells)
    have, want = (
        np.bincount(cells, minlength=size),
        _steps(np.cumsum(margin)[np.newaxis] / margin.sum(), np.array([n]), rng.random(1)).ravel(),
    )
    surplus = np.maximum(have - want, 0)
    candidates = np.flatnonzero((surplus > 0).take(cells))
    candidates = candidates.take(by_group(cells.take(candidates), size, rng))
    there = cells.take(candidates)
    moving = candidates[np.arange(len(there)) - np.searchsorted(there, there) < surplus.take(there)]
    settled = cells.copy()
    settled[moving] = np.repeat(np.arange(size, dtype=np.int32), np.maximum(want - have, 0))
    return settled


def inside(ranks: Groups, mass: Floats, cell: SortKey, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return for every row, given its rank cell, one of the cells of that group, in proportion to the mass.

    Systematic inside each group, as in `draw`, so that cells come out in the proportions of the released column.
    """
    size = int(ranks.max()) + 1
    filled = np.flatnonzero(mass > 0)
    members = filled[np.argsort(ranks[filled], kind="stable")]
    groups = ranks[members]
    first = np.searchsorted(groups, np.arange(size + 1))
    if len(members) == size and (np.diff(first) == 1).all():
        return members.take(cell)
    counts, starts = np.bincount(cell, minlength=size), _golden(size, rng)
    ladder = np.concatenate(([0.0], np.cumsum(mass[members])))
    low, whole = ladder[first[:-1]], np.diff(ladder[first])
    share = (ladder[1:] - low.take(groups)) / whole.take(groups)
    reached = np.floor(share * counts.take(groups) + starts.take(groups)).astype(np.int64)
    np.minimum(reached, counts.take(groups), out=reached)
    reached[first[1:] - 1] = counts  # whatever the floats say, every row gets a cell
    before = np.concatenate(([0], reached[:-1]))
    before[first[:-1]] = 0
    drawn = np.empty(len(cell), np.int64)
    drawn[by_group(cell, size, rng)] = np.repeat(members, reached - before)
    return drawn


class InsideGroups:
    """Draws cells inside rank cells, in proportion to the mass: independent draws, quick for few rows at a time.

    Examples:
        >>> groups = InsideGroups(np.array([0, 0, 1]), np.array([0.0, 2.0, 5.0]))
        >>> groups.draw(np.array([0, 1, 0]), np.random.default_rng(0))
        array([1, 2, 1])
    """

    def __init__(self, ranks: Groups, mass: Floats) -> None:
        """Take the rank cell and the mass of every cell; every rank cell must have some mass."""
        filled = np.flatnonzero(mass > 0)
        self._members = filled[np.argsort(ranks[filled], kind="stable")]
        self._ladder = np.concatenate(([0.0], np.cumsum(mass[self._members])))
        self._first = np.searchsorted(ranks[self._members], np.arange(int(ranks.max()) + 2))

    def draw(self, cell: SortKey, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return for every row, given its rank cell, one of the cells of that group."""
        first, last = self._first.take(cell), self._first.take(cell + 1) - 1
        low, high = self._ladder.take(first), self._ladder.take(last + 1)
        places = np.searchsorted(self._ladder, low + (high - low) * rng.random(len(cell)), "right") - 1
        return self._members.take(np.clip(places, first, last))

"""Drawing many rows at once, evenly spread: fewer surprises than independent draws, the same law for every row."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.columns.ranks import Groups
from privmeasure.domains import Floats

Key = NDArray[np.signedinteger[Any]]
"""For every row the number of its group: all rows of a group are drawn from one distribution."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio less 1, in units of 2^-64: arithmetic modulo 1 is that of words."""
BLOCK = 1 << 14
"""Groups whose distributions are held at a time."""


def by_group(key: Key, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
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
    key: Key, size: int, weights: Callable[[slice], NDArray[np.floating[Any]]], rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return for every row a number drawn in proportion to the weights of its group.

    `weights(groups)` gives a matrix, a row for each group of the slice. The uniforms are multiples of the golden ratio
    along the sorted rows, from a random start: each is uniform, and every run of rows is evenly spread.
    """
    order = by_group(key, size, rng)
    groups = key.take(order)
    uniforms = _golden(len(key), rng)
    drawn = np.empty(len(key), np.int32)
    starts = range(0, size, BLOCK)
    edges = np.searchsorted(groups, [*starts, size]).tolist()
    for i, first in enumerate(starts):
        rows = slice(edges[i], edges[i + 1])
        if rows.start < rows.stop:
            here = slice(first, min(first + BLOCK, size))
            drawn[order[rows]] = _inverse(weights(here), groups[rows] - first, uniforms[rows])
    return drawn


def _golden(count: int, rng: np.random.Generator) -> Floats:
    """Return the multiples of the golden ratio modulo 1, from a random start, as multiples of 2^-53."""
    words = np.arange(count, dtype=np.uint64)
    words *= GOLDEN
    words += rng.integers(0, 1 << 64, dtype=np.uint64)
    words >>= np.uint64(11)
    return np.asarray(words * 2.0**-53, np.float64)


def _inverse(weights: NDArray[np.floating[Any]], groups: Key, uniforms: Floats) -> NDArray[np.int64]:
    """Return where each uniform falls in the cumulative weights of its group."""
    count, cells = weights.shape
    ladder = np.cumsum(weights, axis=1, dtype=np.float64)
    ladder /= ladder[:, -1:]
    ladder += np.arange(count)[:, np.newaxis]
    ladder[:, -1] = np.arange(1, count + 1)
    place = np.searchsorted(ladder.ravel(), groups + uniforms, side="right") - groups.astype(np.int64) * cells
    return np.asarray(np.minimum(place, cells - 1), np.int64)


def inside(ranks: Groups, mass: Floats, cell: Key, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return for every row, given its rank cell, one of the cells of that group, in proportion to the mass.

    Evenly spread inside each group, so that cells come out in the proportions of the released column.
    """
    size = int(ranks.max()) + 1
    filled = np.flatnonzero(mass > 0)
    members = filled[np.argsort(ranks[filled], kind="stable")]
    starts = np.searchsorted(ranks[members], np.arange(size + 1))
    if len(members) == size and (np.diff(starts) == 1).all():
        return members.take(cell)
    order = by_group(cell, size, rng)
    groups = cell.take(order)
    counts = np.bincount(cell, minlength=size)
    place = np.arange(len(cell)) - (np.cumsum(counts) - counts).take(groups)
    share = (place + rng.random(len(cell))) / counts.take(groups)
    ladder = np.concatenate(([0.0], np.cumsum(mass[members])))
    low, high = ladder[starts[:-1]].take(groups), ladder[starts[1:]].take(groups)
    found = np.searchsorted(ladder, low + share * (high - low), side="right") - 1
    drawn = np.empty(len(cell), np.int64)
    drawn[order] = members.take(np.clip(found, starts[:-1].take(groups), starts[1:].take(groups) - 1))
    return drawn

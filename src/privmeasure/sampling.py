"""Turning masses into rows: how many rows a cell gets, and in what order. Public values only."""

import numpy as np
from numpy.typing import NDArray

from privmeasure.blocks import BLOCK, in_threads
from privmeasure.domains import Cells, Floats

BUCKETS = 256
Mass = NDArray[np.int64]


def scale_mass(mass: Mass, rows: int) -> Mass:
    """Return whole numbers that sum to `rows`, in proportion to mass, by cumulative rounding along the cells.

    Every cell, and every run of cells, receives its share to within one row: c_k = floor(rows F_k + 1/2).

    Examples:
        >>> scale_mass(np.array([1, 1, 1]), 4)
        array([1, 2, 1])
    """
    cumulative = np.cumsum(mass)
    total = int(cumulative[-1])
    if 2 * rows * total >= 2**62:
        cumulative = cumulative.astype(object)  # whole numbers of any size
    edges = ((2 * rows * cumulative + total) // (2 * total)).astype(np.int64)
    edges[1:] -= edges[:-1].copy()
    return edges


def shuffle(cells: Cells, seed: np.random.SeedSequence, threads: int) -> Cells:
    """Return the cells in uniformly random order, each permutation equally likely, in two passes that suit the cache.

    Every cell goes to a random bucket; then each bucket, small enough for the cache, is shuffled. The result depends on
    the seed alone, not on the number of threads.

    References: Rao 1961, Sandelius 1962
    """
    if len(cells) <= BUCKETS * 64:
        rng = np.random.Generator(np.random.SFC64(seed))
        return rng.permutation(cells)
    blocks = -(-len(cells) // BLOCK)
    streams = seed.spawn(blocks + BUCKETS)
    counts = np.empty((blocks, BUCKETS), np.int64)
    buckets = np.empty(blocks * BLOCK, np.uint8)

    def choose(block: int) -> None:
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        buckets[part] = np.random.SFC64(streams[block]).random_raw(BLOCK // 8).view(np.uint8)
        counts[block] = np.bincount(buckets[part][: len(cells) - part.start], minlength=BUCKETS)

    in_threads(choose, blocks, threads)
    ends = np.cumsum(counts.T.ravel()).reshape(BUCKETS, blocks)  # where each block's share of each bucket ends
    starts = ends - counts.T
    result = np.empty_like(cells)

    def scatter(block: int) -> None:
        part = cells[block * BLOCK : (block + 1) * BLOCK]
        order = np.argsort(buckets[block * BLOCK : block * BLOCK + len(part)], kind="stable")  # radix: linear time
        first = np.cumsum(counts[block]) - counts[block]
        place = np.repeat(starts[:, block] - first, counts[block])
        place += np.arange(len(part))
        result[place] = part[order]

    in_threads(scatter, blocks, threads)

    def mix(bucket: int) -> None:
        rng = np.random.Generator(np.random.SFC64(streams[blocks + bucket]))
        rng.shuffle(result[starts[bucket, 0] : ends[bucket, -1]])

    in_threads(mix, BUCKETS, threads)
    return result


def interval_quantile(low: Floats, high: Floats, mass: Mass, q: float) -> float:
    """Return the q-quantile of masses spread evenly over intervals [low, high], or sitting at low where low = high.

    Examples:
        >>> interval_quantile(np.array([0.0, 1.0]), np.array([1.0, 3.0]), np.array([1, 1]), 0.75)
        2.0
    """
    ends = np.unique(np.concatenate((low, high)))
    wide = high > low
    density = mass[wide] / (high - low)[wide]
    slope, jump = np.zeros(len(ends)), np.zeros(len(ends))
    np.add.at(slope, np.searchsorted(ends, low[wide]), density)
    np.subtract.at(slope, np.searchsorted(ends, high[wide]), density)
    np.add.at(jump, np.searchsorted(ends, low[~wide]), mass[~wide])
    rise = np.cumsum(slope)[:-1] * np.diff(ends)
    before = np.cumsum(jump) - jump + np.concatenate(([0.0], np.cumsum(rise)))  # the mass strictly below each end
    goal = q * float(mass.sum())
    i = min(int(np.searchsorted(before + jump, goal)), len(ends) - 1)
    if i == 0 or goal >= before[i]:
        return float(ends[i])
    start = before[i - 1] + jump[i - 1]
    return float(ends[i - 1] + (ends[i] - ends[i - 1]) * (goal - start) / (before[i] - start))

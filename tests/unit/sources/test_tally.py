"""Tallies count the same whatever the width of their codes."""

import numpy as np
import pytest

from privmeasure.counts import Axis, Partition
from privmeasure.domains import Box
from privmeasure.sources.tally import Tally, merge_tallies

LEVEL = 17


def axis(groups: int) -> Axis:
    """The unit interval in so many groups of cells."""
    cells = 1 << LEVEL
    return Axis(Box([(0, 1)]), LEVEL, slice(0, 1), np.arange(cells) * groups // cells)


@pytest.mark.parametrize("rows", [0, 3, 70_000])
@pytest.mark.parametrize(
    "sides", [(64, 64), (255, 257), (256, 256), (65_535, 1), (1, 65_535), (65_536, 1), (1, 65_536), (70_000, 3), (1, 1)]
)
def test_pairs_of_axes_at_the_limit_of_narrow_codes(sides, rows):
    points = np.random.default_rng(1).random((rows, 1))
    axes = [axis(side) for side in sides]
    partitions = [Partition((axes[0], axes[1])), Partition((axes[1], axes[0])), Partition((axes[0],)), Partition(())]
    tallies = [Tally(partitions) for _ in range(2)]
    for start in range(0, rows, 20_000):
        tallies[start // 20_000 % 2].add(points[start : start + 20_000])
    first, second = (one.index(points) for one in axes)
    codes = [first * sides[1] + second, second * sides[0] + first, first, np.zeros(rows, np.int64)]
    for counts, partition, code in zip(merge_tallies(tallies), partitions, codes, strict=True):
        assert np.array_equal(counts.counts, np.bincount(code, minlength=partition.size))


def test_many_rows_of_one_cell_do_not_overflow():
    tally = Tally([Partition((axis(4),))])
    for _ in range(3):
        tally.add(np.full((1 << 17, 1), 0.9))
    (counts,) = merge_tallies([tally])
    assert counts.counts.tolist() == [0, 0, 0, 3 << 17]

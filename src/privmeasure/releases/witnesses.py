"""Between which numbers the quantiles, the mean, shares and correlations of the data lie: what rules out the others.

Counts say how many rows lie in a cell, and nothing about the places of the rows inside it. So a quantile may lie
anywhere between the low end of the first interval that may hold it and the high end of the last one.

Notation:   S_k rows below the k-th end    P rows whose value is present    T_k = S_k - q P, which is negative at the
            ends up to which the q-quantile was not reached, and at least 0 beyond it
Guarantee:  privacy   post-processing: reads released values alone
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from privmeasure.domains import Floats, Points
from privmeasure.model.ranks import Groups
from privmeasure.releases.base import Measure
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.releases.intervals import Intervals

HIDDEN = 0.5
"""By how much of its width a band that runs show is wider on each side, if it narrows that of the noisy counts.

Runs do not see what the release smoothed away, such as gaps between dates: at 50,000 rows their bands alone miss some.
The noisy counts alone do not see that a long tail without rows has none: their bands alone are up to 60 times wider
than errors are.
"""


class Moments:
    """The mean and the standard deviation of numbers that are added one array at a time."""

    def __init__(self) -> None:
        """Begin without numbers."""
        self.count = 0
        self.sums: Any = 0.0
        self.squares: Any = 0.0

    def add(self, values: Floats) -> None:
        """Take note of an array."""
        self.count += 1
        self.sums = self.sums + values
        self.squares = self.squares + values**2

    @property
    def mean(self) -> Floats:
        """The mean of each place."""
        return np.asarray(self.sums / self.count)

    @property
    def deviation(self) -> Floats:
        """The standard deviation of each place."""
        rest = np.maximum(self.squares - self.count * self.mean**2, 0.0)
        return np.asarray(np.sqrt(rest / max(self.count - 1, 1)))


def student(level: float, count: int) -> float:
    """Return how many standard deviations, estimated from `count` numbers, hold the share `level` of normal numbers.

    Examples:
        >>> round(student(0.9, 20), 2), round(student(0.9, 10_000), 2)
        (1.73, 1.65)
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    return z * (1 + (z * z + 1) / (4 * max(count - 1, 1)))


class Witness:
    """Counts of the intervals of an axis, and errors of what they say: of T_k for some quantiles, and of the mean."""

    def __init__(self, axis: Intervals, counts: Floats, quantiles: Sequence[float], *, biased: bool) -> None:
        """Begin without errors; `biased` says whether their mean is an error that the counts have."""
        self.axis, self.quantiles, self.biased = axis, np.asarray(quantiles), biased
        self.counts, self.errors = counts, Moments()

    def _says(self, counts: Floats) -> Floats:
        """Return T_k, one quantile after the other, and the mean."""
        ends = np.r_[0.0, np.cumsum(counts)]
        below = ends[None, :] - self.quantiles[:, None] * ends[-1]
        mean = float(counts @ self.axis.middle) / ends[-1] if ends[-1] > 0 else math.nan
        return np.append(below.ravel(), mean)

    def add_noise(self, cells: Floats) -> None:
        """Take note of errors of the rows of all cells; that of the mean is the first term of its series."""
        errors = self.axis.sums(cells)
        present = max(float(self.counts.sum()), 1.0)
        mean = self.counts @ self.axis.middle / present
        said = self._says(errors)
        said[-1] = errors @ (self.axis.middle - mean) / present
        self.errors.add(said)

    def add_run(self, truth: Floats, answer: Floats) -> None:
        """Take note of a run of the mechanism: the counts of the rows that went in, and of those that came out."""
        self.errors.add(self._says(answer) - self._says(truth))

    def limits(self, level: float) -> tuple[Floats, Floats]:
        """Return what T_k and the mean are at least and at most, each with the same chance, both with `level`.

        A bias is taken off. A release has lost some of what the mechanism loses already, so that runs of it show less
        of the bias than there is: it is taken off up to twice.
        """
        room = student(level, self.errors.count) * self.errors.deviation
        said, bias = self._says(self.counts), self.errors.mean if self.biased else 0.0
        return np.minimum(said - bias, said - 2 * bias) - room, np.maximum(said - bias, said - 2 * bias) + room


def quantile_bands(witnesses: Sequence[Witness], level: float) -> list[tuple[float, float]]:
    """Return between which values each quantile lies: in intervals that no witness rules out.

    The first witness decides if they contradict each other; the second one only narrows what it says: see `HIDDEN`.
    """
    axis, quantiles = witnesses[0].axis, len(witnesses[0].quantiles)
    limits = [one.limits(level) for one in witnesses]
    found = []
    for at in range(quantiles):
        first, last = 0, len(axis.low) - 1
        for low, high in limits:
            begins, ends = (side[:-1].reshape(quantiles, -1)[at] for side in (low, high))
            likely = np.flatnonzero((begins[:-1] < 0) & (ends[1:] >= 0))
            if not len(likely):
                continue
            wider = math.ceil(HIDDEN * (likely[-1] - likely[0] + 1)) if low is not limits[0][0] else 0
            ends_at = max(first, int(likely[0]) - wider), min(last, int(likely[-1]) + wider)
            if ends_at[0] <= ends_at[1]:
                first, last = ends_at
        found.append((float(axis.low[first]), float(axis.high[last])))
    return found


def mean_band(witnesses: Sequence[Witness], level: float) -> tuple[float, float]:
    """Return between which values the mean lies: where all witnesses place it, and as far as rows may move in cells."""
    axis = witnesses[0].axis
    least, most = float(axis.low[0]), float(axis.high[-1])
    low, high = -math.inf, math.inf
    for at, witness in enumerate(witnesses):
        below, above = (float(side[-1]) for side in witness.limits(level))
        low, high = narrowed((low, high), (below, above), HIDDEN if at else 0.0)
    down, up = axis.room()
    return min(max(low - down, least), most), max(min(high + up, most), least)


def narrowed(one: tuple[float, float], two: tuple[float, float], room: float = HIDDEN) -> tuple[float, float]:
    """Return what two bands have in common, the second one with room on both sides; the first if that is nothing.

    Examples:
        >>> narrowed((0.0, 9.0), (4.0, 6.0)), narrowed((0.0, 9.0), (40.0, 60.0))
        ((3.0, 7.0), (0.0, 9.0))
    """
    wider = room * (two[1] - two[0])
    low, high = max(one[0], two[0] - wider), min(one[1], two[1] + wider)
    return (low, high) if low <= high and not math.isnan(wider) else one


class ShareNoise:
    """The shares of listed values by the noisy counts, and their simulated errors; values share no cell.

    `codes` gives each cell of the deepest level its value, and is negative for cells of several values.
    """

    def __init__(self, codes: Groups, count: int, leaves: Floats) -> None:
        """Begin with the estimate of the rows of all cells."""
        self.codes, self.count = np.where(codes < 0, count, codes), count
        self.total = max(float(leaves.sum()), 1.0)
        self.shares, self.errors = self._sums(leaves) / self.total, Moments()

    def _sums(self, leaves: Floats) -> Floats:
        return np.bincount(self.codes, leaves, self.count + 1)[: self.count].astype(np.float64)

    def add(self, errors: Floats) -> None:
        """Take note of errors of the rows of all cells."""
        self.errors.add((self._sums(errors) - self.shares * errors.sum()) / self.total)

    def limits(self, level: float) -> tuple[Floats, Floats]:
        """Return between which numbers the share of each value lies."""
        room = student(level, self.errors.count) * self.errors.deviation
        return self.shares - room, self.shares + room


class CorrelationNoise:
    """The correlation of two columns of one tree by its noisy counts, and those that other noise would have made.

    `x` and `y` are the values of the cells of the deepest level, NaN for missing.
    """

    def __init__(self, x: Floats, y: Floats, leaves: Floats) -> None:
        """Begin with the estimate of the rows of all cells."""
        there = ~np.isnan(x + y)
        x, y = (np.where(there, v - np.nanmean(v[there]) if there.any() else 0.0, 0.0) for v in (x, y))
        self.weights = np.column_stack([there, x, y, x * x, y * y, x * y]).astype(np.float64)
        self.moments, self.others = leaves @ self.weights, Moments()
        self.value = _correlation(self.moments)

    def add(self, errors: Floats) -> None:
        """Take note of errors of the rows of all cells."""
        self.others.add(np.array(_correlation(self.moments - errors @ self.weights)))

    def limits(self, level: float) -> tuple[float, float]:
        """Return between which numbers the correlation lies; all of them, if noise may take away a variance."""
        room = student(level, self.others.count) * float(self.others.deviation)
        if not math.isfinite(self.value + room):
            return -1.0, 1.0
        return max(self.value - room, -1.0), min(self.value + room, 1.0)


def _correlation(moments: Floats) -> float:
    """Return the correlation of sums of 1, x, y, x^2, y^2 and xy; NaN where a variance is not above 0."""
    count, x, y, xx, yy, xy = moments.tolist()
    if not count > 0:
        return math.nan
    spread = (xx - x * x / count) * (yy - y * y / count)
    if not (xx > x * x / count and spread > 0):
        return math.nan
    return float(np.clip((xy - x * y / count) / math.sqrt(spread), -1.0, 1.0))


def counted_groups(measure: Measure, one: int, two: int, points: Points) -> tuple[Groups, Groups] | None:
    """Return in which groups of values two coordinates of rows were counted together; None if they were not."""
    if not isinstance(measure, ColumnsMeasure):
        column, _ = measure.part(one)
        cells = column.domain.locate(points, column.level).view(np.int64)
        return cells, cells
    (i, _), (j, _) = measure.factor(one), measure.factor(two)

    def located(factor: int) -> Groups:
        column, place = measure.columns[factor], measure.domain.columns[factor]
        return column.domain.locate(points[:, place], column.level).view(np.int64)

    if i == j:
        return located(i), located(i)
    for pair in measure.pairs:
        if {pair.first, pair.second} == {i, j}:
            codes = {
                factor: groups[measure.ranks[factor][located(factor)]]
                for factor, groups in ((pair.first, pair.first_groups), (pair.second, pair.second_groups))
            }
            return codes[i], codes[j]
    return None


def part_inside(values: Floats, groups: Groups) -> float:
    """Return the part of the variance of values that lies inside of groups.

    Examples:
        >>> part_inside(np.array([0.0, 2.0, 10.0, 12.0]), np.array([1, 1, 3, 3]))
        0.07692307692307693
    """
    present = ~np.isnan(values)
    values, codes = values[present], np.unique(groups[present], return_inverse=True)[1]
    if not len(values) or not (whole := float(((values - values.mean()) ** 2).sum())) > 0:
        return 0.0
    count = np.bincount(codes)
    from_mean = values - (np.bincount(codes, values) / count)[codes]
    inside = np.bincount(codes, from_mean**2) * count / np.maximum(count - 1, 1)  # of few rows, as of many
    return min(float(inside.sum()) / whole, 1.0)

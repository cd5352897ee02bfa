"""Between which values the quantiles and the mean of a column lie: bands from the noisy counts of a release.

Released masses are estimates with a bias: they cannot be negative, so that noise lifts the tails, and neighbouring
cells are evened out. The noisy counts have no bias. Their best linear estimates err by sums of noise alone, and the
distribution of the noise is public, so that these errors are simulated without any rows.

Counts say how many rows lie in a cell, and nothing about the places of the rows inside it. So a quantile may lie
anywhere between the low end of the first interval that may hold it and the high end of the last one.

Notation:   S_k rows below the k-th end    P rows whose value is present    T_k = S_k - q P, which is negative at the
            ends up to which the q-quantile was not reached, and at least 0 beyond it
Guarantee:  privacy   post-processing: reads released values alone
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Floats, Points
from privmeasure.estimates.joint import Margin, joint_leaves
from privmeasure.estimates.linear import Estimate, blue_estimates, existing, noise_variance, total_estimate
from privmeasure.model.ranks import Groups
from privmeasure.noise.law import facts_of
from privmeasure.releases.base import Measure
from privmeasure.releases.cells import CellMeasure
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.releases.refining import table_margins

SURE_OF_TOTAL = 1e-6
"""The variance of the number of rows in an estimate that keeps it, relative to that of a count of the last level."""

HIDDEN = 0.5
"""By how much of its width a band that runs show is wider on each side, if it narrows that of the noisy counts.

Runs do not see what the release smoothed away, such as gaps between dates: at 50,000 rows their bands alone miss some.
The noisy counts alone do not see that a long tail without rows has none: their bands alone are up to 60 times wider
than errors are.
"""

ROOT = np.zeros(1, np.uint64)
"""The one cell of level 0."""

Values = Callable[[Floats], Floats]
"""What a reader sees of places on an axis, as numbers."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured of a column: a measure with its noisy counts, sums of tables that it is in, and other columns.

    `elsewhere` is one over the variance of what the others say of the number of rows: 0 if there are none.
    """

    measure: CellMeasure
    margins: Sequence[Margin] = ()
    elsewhere: float = 0.0

    def counts(self, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield the best linear estimates of the rows of all cells of the deepest level, then `draws` errors of them.

        Nothing is yielded if the noisy counts were not kept.
        """
        plan, depth, noisy = self.measure.plan, self.measure.level, dict(self.measure.noisy or {})
        if not noisy:
            return
        laws = {level: facts_of(plan.law, scale) for level, scale in zip(plan.levels, plan.scales, strict=True)}
        variances = {level: law.variance for level, law in laws.items()}
        exists = existing(self.measure.domain, depth)

        def leaves(counts: dict[int, Estimate], margins: Sequence[Margin], total: float) -> Floats:
            below = {level: count for level, count in counts.items() if level}
            if not margins:
                *_, deepest = blue_estimates(below, variances, depth, exists, total)
                return deepest
            known = {level: variances[level] for level in below} | {0: SURE_OF_TOTAL * variances[depth]}
            return joint_leaves({0: np.full(1, total)} | below, known, exists[depth], margins)

        total = float(self.measure.total)
        if 0 in laws and self.measure.recipe.get("schedule") != "ladder":  # released as it was measured, at level 0
            total, _ = total_estimate({0: np.full(1, total)} | noisy, variances, depth, exists[depth])
        yield leaves(noisy, self.margins, total)
        for _ in range(draws):
            noise = {level: np.where(exists[level], law.simulated(rng, 1 << level), 0) for level, law in laws.items()}
            sums = [
                Margin(m.groups, rng.normal(0, math.sqrt(m.variance), len(m.sums)), m.variance) for m in self.margins
            ]
            yield leaves(noise, sums, self._total_error(noise, variances, exists[depth], rng))

    def _total_error(
        self, noise: dict[int, Estimate], variances: Mapping[int, float], there: Bools, rng: np.random.Generator
    ) -> float:
        """Return the error of the estimated number of rows, which this noise and that of other columns makes."""
        if self.measure.plan.rows_are == "public":
            return 0.0
        error, variance = total_estimate(noise, variances, self.measure.level, there)
        own = 1 / variance
        return (own * error + math.sqrt(self.elsewhere) * rng.normal()) / (own + self.elsewhere)


def measured(measure: Measure, place: int) -> tuple[Measured, int]:
    """Return what was measured of a coordinate of a release, and its place in the measure that it lies in."""
    column, at = measure.part(place)
    if not isinstance(measure, ColumnsMeasure):
        return Measured(column), at
    j, _ = measure.factor(place)
    known = [_row_knowledge(other) for other in measure.columns[:j] + measure.columns[j + 1 :]]
    if measure.plan.size_budget:
        plan = measure.plan
        known.append(1 / noise_variance(plan.privacy.scale(plan.size_budget), plan.law))
    return Measured(column, tuple(table_margins(j, measure.ranks[j], measure.pairs)), sum(known)), at


def _row_knowledge(column: CellMeasure) -> float:
    """Return one over the variance of what a column says of the number of rows."""
    plan = column.plan
    variances = {s: noise_variance(scale, plan.law) for s, scale in zip(plan.levels, plan.scales, strict=True)}
    if not column.noisy or not variances:
        return 0.0
    there = existing(column.domain, column.level)[-1]
    return 1 / total_estimate(column.noisy, variances, column.level, there)[1]


@dataclass(frozen=True, eq=False)
class Axis:
    """The intervals into which the cells of a release cut one column, in order, in the column's own units.

    `starts` are the places on the axis at which they begin, `masses` the rows that were released, `step` the difference
    of neighbouring values, which is 0 for real numbers. `cells` gives each cell of the deepest level its interval;
    cells without a value have the number of intervals. It is empty for trees that are too deep to have noisy counts.
    """

    starts: Floats
    low: Floats
    middle: Floats
    high: Floats
    masses: Floats
    step: float
    cells: NDArray[np.int64]

    @classmethod
    def of(cls, measure: CellMeasure, place: int, values: Values, *, step: float, curved: bool = False) -> "Axis":
        """Return the intervals of one coordinate of a measure."""
        ((lowest, highest),) = zip(*(side[:, place] for side in measure.domain.extent(ROOT, 0)), strict=True)
        every = measure.cells
        if measure.noisy:
            every = np.flatnonzero(existing(measure.domain, measure.level)[-1]).astype(np.uint64)
        first, last = (side[:, place] for side in measure.domain.extent(every, measure.level))
        there = ~np.isnan(first)
        inner = first[there]
        if not measure.noisy:  # cells without rows are not listed, so that an interval begins behind each one that is
            inner = np.union1d(inner, last[there] + step)
        starts = np.union1d([lowest], inner[(inner > lowest) & (inner <= highest - step if step else inner < highest)])
        ends = np.r_[starts[1:] - step, highest]
        at = np.where(there, np.searchsorted(starts, first, side="right") - 1, len(starts))
        cells = np.empty(0, np.int64)
        if measure.noisy:
            cells = np.full(1 << measure.level, len(starts))
            cells[every.view(np.int64)] = at
        held = at if not measure.noisy else at[np.searchsorted(every, measure.cells)]
        masses = np.bincount(held, measure.mass, len(starts) + 1)[: len(starts)].astype(np.float64)
        low, centre, high = values(starts), values((starts + ends) / 2), values(ends)
        middle = (low + 4 * centre + high) / 6 if curved else (low + high) / 2
        return cls(starts, low, middle, high, masses, step, cells)

    def sums(self, leaves: Floats) -> Floats:
        """Return the sum over the cells of each interval."""
        return np.bincount(self.cells, leaves, len(self.low) + 1)[: len(self.low)].astype(np.float64)

    def counts(self, places: Floats) -> Floats:
        """Return how many places lie in each interval; NaN is missing."""
        at = np.searchsorted(self.starts, places[~np.isnan(places)], side="right") - 1
        return np.bincount(np.maximum(at, 0), minlength=len(self.low)).astype(np.float64)

    def room(self) -> tuple[float, float]:
        """Return by how much the mean may lie below and above that of the middles, given the masses.

        An interval that is heavier, or lighter, than both its neighbours may hold its rows anywhere. In any other one
        the density of the rows grows towards the heavier neighbour and stays between the densities of the two.
        """
        width = self.high - self.low + self.step
        density = np.divide(self.masses, width, out=np.zeros_like(width), where=width > 0)
        left, right = np.r_[0.0, density[:-1]], np.r_[density[1:], 0.0]
        least, most = np.minimum(left, right), np.maximum(left, right)
        steady = (least <= density) & (density <= most)
        scale = np.where(steady, (most - least) * density, 0.0)
        tilt = np.divide((most - density) * (density - least), scale, out=np.zeros_like(scale), where=scale > 0)
        down = (self.middle - self.low) * np.where(steady, np.where(left > right, tilt, 0.0), 1.0)
        up = (self.high - self.middle) * np.where(steady, np.where(right > left, tilt, 0.0), 1.0)
        share = self.masses / max(float(self.masses.sum()), 1.0)
        return float(down @ share), float(up @ share)


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

    def __init__(self, axis: Axis, counts: Floats, quantiles: Sequence[float], *, biased: bool) -> None:
        """Begin without errors; `biased` says whether their mean is an error that the counts have."""
        self.axis, self.quantiles, self.biased = axis, np.asarray(quantiles), biased
        self.counts, self.errors = counts, Moments()

    def _says(self, counts: Floats) -> Floats:
        """Return T_k, one quantile after the other, and the mean."""
        ends = np.r_[0.0, np.cumsum(counts)]
        below = ends[None, :] - self.quantiles[:, None] * ends[-1]
        mean = float(counts @ self.axis.middle) / ends[-1] if ends[-1] > 0 else math.nan
        return np.append(below.ravel(), mean)

    def add_noise(self, errors: Floats) -> None:
        """Take note of errors of the counts; that of the mean is the first term of its series."""
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
    for witness in witnesses:
        below, above = (float(side[-1]) for side in witness.limits(level))
        wider = HIDDEN * (above - below) if witness is not witnesses[0] else 0.0
        if max(low, below - wider) <= min(high, above + wider):  # not of NaN, nor if they contradict each other
            low, high = max(low, below - wider), min(high, above + wider)
    down, up = axis.room()
    return min(max(low - down, least), most), max(min(high + up, most), least)


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
        0.07407407407407407
    """
    present = ~np.isnan(values)
    values, codes = values[present], np.unique(groups[present], return_inverse=True)[1]
    if not len(values) or not (whole := float(((values - values.mean()) ** 2).sum())) > 0:
        return 0.0
    count = np.bincount(codes)
    from_mean = values - (np.bincount(codes, values) / count)[codes]
    inside = np.bincount(codes, from_mean**2) * count / np.maximum(count - 1, 1)  # of few rows, as of many
    return min(float(inside.sum()) / whole, 1.0)

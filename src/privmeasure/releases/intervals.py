"""What the noisy counts of a release state about one column, how wrong they may be, and the intervals of its cells.

Released masses are estimates with a bias: they cannot be negative, so that noise lifts the tails, and neighbouring
cells are evened out. The noisy counts have no bias. Their best linear estimates err by sums of noise alone, and the
distribution of the noise is public, so that these errors are simulated without any rows.

Guarantee:  privacy   post-processing: reads released values alone
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Floats
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

ROOT = np.zeros(1, np.uint64)
"""The one cell of level 0."""

Amounts = Callable[[Floats], Floats]
"""What a reader sees of places on an axis, as numbers."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured of a column: a measure with its noisy counts, sums of tables that it is in, and other columns.

    `elsewhere` is one over the variance of what the others state about the number of rows: 0 if there are none.
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


def value_codes(measure: CellMeasure, place: int, count: int) -> Groups:
    """Return the number of the listed value of each cell of the deepest level: `count` for missing, -1 for several."""
    cells = np.flatnonzero(existing(measure.domain, measure.level)[-1])
    low, high = (side[:, place] for side in measure.domain.extent(cells.astype(np.uint64), measure.level))
    codes = np.full(1 << measure.level, -1)
    missing = np.isnan(low)
    codes[cells] = np.where(missing, count, np.where(low == high, np.where(missing, 0, low), -1)).astype(np.int64)
    return codes


@dataclass(frozen=True, eq=False)
class Intervals:
    """The intervals into which the cells of a release cut one column, in order, in the units of the column.

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
    def of(cls, measure: CellMeasure, place: int, values: Amounts, *, step: float, curved: bool = False) -> "Intervals":
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

    @property
    def values(self) -> Floats:
        """The middle value of each cell of the deepest level, NaN for missing."""
        return np.append(self.middle, np.nan)[self.cells]

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

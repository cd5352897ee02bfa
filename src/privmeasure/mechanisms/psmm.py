"""The Private Signed Measure Mechanism: a noisy histogram, and the closest measure to it.

Algorithms 1 and 2 of the paper, the linear program corrected: counts of the cells of one level, exact integer noise,
and the closest non-negative integer measure in bounded-Lipschitz distance (projection.py). For spaces that have a
metric but no natural tree, and for few rows.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privmeasure.blocks import thread_count
from privmeasure.counts import CellCounts, Partition, Progress, Source
from privmeasure.domains import Cells, Domain
from privmeasure.errors import ArgumentError
from privmeasure.mechanisms.base import gate, is_whole, public_total
from privmeasure.mechanisms.bounds import flat
from privmeasure.mechanisms.projection import cell_space, check_cells, most_cells, project
from privmeasure.mechanisms.recipe import PlacementName
from privmeasure.mechanisms.schedule import DEEPEST_DEPTH, ROOT_SHARE, flat_level
from privmeasure.mechanisms.tree import add_noise
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import check_scale, discrete_laplace
from privmeasure.plan import Bound, Plan, RowsAre
from privmeasure.privacy import Privacy
from privmeasure.release import CellMeasure
from privmeasure.transport import bounded_lipschitz


@dataclass(frozen=True)
class PSMM:
    """The flat mechanism on the cells of one level of a domain.

    The level (how many cells) is given, or chosen from a public number of rows, or, under "add-remove", from a noisy
    number that is bought first. The release has exactly n rows under "replace"; under "add-remove" the number bought,
    or else the sum of the noisy counts, at least 1.

    Guarantee:  privacy   epsilon-DP: one level of cells, noise Lap_Z(sensitivity / budget), post-processing
                accuracy  W1 at most twice the bounded-Lipschitz norm of the noise over n, plus the cells' size
                cost      a min-cost flow: seconds for 65,536 cells of a grid
    References: [HVZ23] Algorithms 1 and 2, corrected; docs/proofs/mechanisms.md

    Examples:
        >>> from privmeasure.domains import Box
        >>> plan = PSMM(Box([(0, 1), (0, 1)]), Privacy(1, "replace")).plan(10_000)
        >>> plan.depth, plan.cells, plan.spent
        (12, 4096, Fraction(1, 1))
    """

    domain: Domain
    privacy: Privacy
    depth: int | None = None
    rows: int | None = None
    placement: PlacementName = "uniform"
    threads: int | None = None

    def __post_init__(self) -> None:
        """Check everything that can be checked before data are touched."""
        deepest = min(DEEPEST_DEPTH, self.domain.deepest)
        if self.depth is not None:
            if not (is_whole(self.depth) and 0 <= self.depth <= deepest):
                raise ArgumentError(f"depth must be a whole number from 0 to {deepest}, got {self.depth!r}.")
            check_cells(self.domain, self.depth)
        if self.rows is not None and not (is_whole(self.rows) and 1 <= self.rows < 2**53):
            raise ArgumentError(f"rows must be a whole number from 1 to 2**53, got {self.rows!r}.")
        if self.placement not in ("uniform", "centre"):
            raise ArgumentError(f"placement must be 'uniform' or 'centre', got {self.placement!r}.")
        for name in ("depth", "rows"):
            value = getattr(self, name)
            object.__setattr__(self, name, value if value is None else int(value))
        thread_count(self.threads)
        for budget in self._budgets(1).values():
            check_scale(self.privacy.sensitivity / budget)

    def plan(self, rows: int | None = None) -> Plan:
        """Say what would be measured and guaranteed for a number of rows, from public values; changes nothing."""
        rows = self.rows if rows is None else rows
        if rows is None or not is_whole(rows) or not 1 <= rows < 2**53:
            raise ArgumentError(f"rows must be a whole number from 1 to 2**53, the number to plan for, got {rows!r}.")
        return self._plan(int(rows), "public" if rows == self.rows else "assumed")

    def release(self, source: Source, key: Key, progress: Progress | None = None) -> CellMeasure:
        """Spend the budget and return what anyone may see; the key is destroyed."""
        with gate(key):
            return self._release(source, key, progress or (lambda stage, fraction: None))

    def simulated_bound(self, rows: int, *, draws: int = 20, seed: int | None = None) -> tuple[float, float]:
        """Return a bound of the expected W1 distance by simulating the noise, and its standard error.

        Sharper than the closed form of `plan`: the norm of the noise is computed by transport, draw by draw. Reads
        nothing private: the law of the noise does not depend on the data.
        """
        plan = self.plan(rows)
        level, scale = plan.depth, plan.scales[-1]
        cells = self._cells(level)
        space, _ = cell_space(self.domain, cells, level)
        law, key = discrete_laplace(scale), Key.fresh() if seed is None else Key.insecure(seed)
        norms = []
        for draw in range(draws):
            noise = law.draw(key, part=draw, level=level, cells=cells)
            norms.append(bounded_lipschitz(noise, np.zeros_like(noise), space))
        root = 2 * float(plan.scales[0]) * self.domain.diameter(0) if plan.levels[0] == 0 else 0.0
        value = (2 * float(np.mean(norms)) + root) / rows + self._rho(level)
        return value, 2 * float(np.std(norms, ddof=1)) / math.sqrt(draws) / rows if draws > 1 else math.inf

    # ------------------------------------------------------------------------------------------------- planning

    @property
    def _buys_rows(self) -> bool:
        """Whether a noisy number of rows is bought first, to choose the level from."""
        return not self.privacy.rows_are_public and self.depth is None and self.rows is None

    def _budgets(self, level: int) -> dict[int, Fraction]:
        epsilon = self.privacy.epsilon
        if self._buys_rows:
            root = epsilon * ROOT_SHARE
            return {0: root, level: epsilon - root} if level else {0: root}
        return {level: epsilon} if level or not self.privacy.rows_are_public else {}

    def _plan(self, rows: int, rows_are: RowsAre) -> Plan:
        level = self.depth
        if level is None:
            fixed = self.rows if self.rows is not None else rows
            level = flat_level(self.domain, self.privacy, fixed, most_cells(self.domain))
        budgets = self._budgets(level)
        scales = {measured: self.privacy.sensitivity / budget for measured, budget in budgets.items()}
        value = flat(self.domain, scales, level, rows, self._rho(level), exact_total=self.privacy.rows_are_public)
        return Plan(
            mechanism="psmm",
            privacy=self.privacy,
            rows=rows,
            rows_are=rows_are,
            depth=level,
            levels=tuple(budgets),
            budgets=tuple(budgets.values()),
            scales=tuple(scales.values()),
            cells=self.domain.size(level),
            diameter=self.domain.diameter(0),
            leaf_diameter=self.domain.diameter(level),
            evaluation="whole tree",
            bounds=(Bound("PSMM", value, True, "closest measure; noise bounded by its tree"),),
            memory_bytes=64 * self.domain.size(level),
        )

    def _rho(self, level: int) -> float:
        """Return how far the data are from centres, and drawn points from theirs."""
        return self.domain.radius(level) * (1 if self.placement == "centre" else 2)

    def _cells(self, level: int) -> Cells:
        cells = np.arange(1 << level, dtype=np.uint64)
        return cells[self.domain.exists(cells, level)]

    # ------------------------------------------------------------------------------------------------- the gate

    def _release(self, source: Source, key: Key, progress: Progress) -> CellMeasure:
        counts: CellCounts | None = None
        if self.depth is not None or self.rows is not None:  # the level is public already
            (counts,) = source.count([Partition.of(self.domain, self._plan(self.rows or 1, "public").depth)], progress)
        total: int | None = None  # stays private unless it is public or bought; then it is read off the noisy counts
        rows_are: RowsAre = "released"
        if self.privacy.rows_are_public or self._buys_rows:
            true = source.count([Partition(())])[0].total if counts is None else counts.total
            total, rows_are = public_total(true, self.privacy, self.privacy.epsilon * ROOT_SHARE, key)
        level = self._plan(total or 1, rows_are).depth
        if counts is None:
            (counts,) = source.count([Partition.of(self.domain, level)], progress)
        cells = self._cells(level)
        if level == 0 and total is not None:
            noisy = np.full(1, total, np.int64)
        else:
            scale = self.privacy.sensitivity / self._budgets(level)[level]
            noisy = add_noise(counts.counts, level, scale, key, 0, thread_count(self.threads))[cells.view(np.int64)]
        if total is None:
            total = max(1, int(noisy.sum()))
        # From here on everything is public.
        mass = project(self.domain, noisy, cells, level, total)
        progress("release", 1.0)
        return CellMeasure(
            domain=self.domain,
            cells=cells[mass > 0],
            mass=mass[mass > 0],
            plan=self._plan(total, rows_are),
            recipe={"schedule": "flat", "inference": "none", "rule": "closest", "placement": self.placement},
            placement=self.placement,
            private=key.private,
        )

"""The Private Signed Measure Mechanism: a noisy histogram, and the closest measure to it.

Algorithms 1 and 2 of the paper, the linear program corrected: counts of the cells of one level, exact integer noise,
and the closest non-negative integer measure in bounded-Lipschitz distance (estimates/projection.py). For spaces that
have a metric but no natural tree, and for few rows.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.counts import CellCounts, Partition, Source
from privmeasure.domains import Cells, Domain, check_own, is_ours
from privmeasure.errors import ArgumentError, is_whole
from privmeasure.estimates.projection import Space, cell_space, check_cells, most_cells, project
from privmeasure.mechanisms.base import constructor_arguments, gate, public_total, whole_rows
from privmeasure.mechanisms.tree import add_noise, keep_counts
from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import LawName, check_scale
from privmeasure.origin import Origin
from privmeasure.plans.bounds import flat
from privmeasure.plans.compare import flat_bound, flat_budgets, flat_distance, tree_bound
from privmeasure.plans.complexity import diameter, discrete_norms
from privmeasure.plans.laws import REFERENCE_ROWS, choose_law
from privmeasure.plans.plan import Bound, Plan, RowsAre, tree_plan
from privmeasure.plans.recipe import PlacementName
from privmeasure.plans.schedule import DEEPEST_DEPTH, ROOT_SHARE, flat_level, useful_depth
from privmeasure.privacy import Privacy
from privmeasure.releases.cells import CellMeasure
from privmeasure.threads import Progress, thread_count


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
    given: dict[str, Any] = field(init=False, repr=False, compare=False)
    """The arguments that the mechanism was made with."""
    why: str = field(default="", init=False, repr=False, compare=False)
    """Why the noise has its law, where a delta was offered."""

    def __post_init__(self) -> None:
        """Check everything that can be checked before data are touched."""
        object.__setattr__(self, "given", constructor_arguments(self))
        check_own(self.domain)
        deepest = min(DEEPEST_DEPTH, self.domain.deepest)
        if self.depth is not None:
            if not (is_whole(self.depth) and 0 <= self.depth <= deepest):
                raise ArgumentError(f"depth must be a whole number from 0 to {deepest}, got {self.depth!r}.")
            check_cells(self.domain, self.depth)
        if self.rows is not None:
            whole_rows(self.rows)
        if self.placement not in ("uniform", "centre"):
            raise ArgumentError(f"placement must be 'uniform' or 'centre', got {self.placement!r}.")
        for name in ("depth", "rows"):
            value = getattr(self, name)
            object.__setattr__(self, name, value if value is None else int(value))
        thread_count(self.threads)
        chosen, why = choose_law(self.privacy, self._price)
        object.__setattr__(self, "privacy", chosen)
        object.__setattr__(self, "why", why)
        for budget in self._budgets(1).values():
            check_scale(self.privacy.scale(budget))

    def plan(self, rows: int | None = None, *, simulate: int = 0) -> Plan:
        """Say what would be measured and guaranteed for a number of rows, from public values; changes nothing.

        `simulate` is a number of draws for a sharper bound: see `simulated_bound`. It joins the others at its value
        plus 3 standard errors, so that chance seldom makes it too small.
        """
        rows = whole_rows(self.rows if rows is None else rows, ", the number to plan for")
        plan = self._plan(rows, "public" if rows == self.rows else "assumed")
        if not simulate:
            return plan
        value, error = self.simulated_bound(rows, draws=simulate, seed=0)  # a seed: plans can be compared
        about = f"noise simulated {simulate} times: {value:.4g} and 3 standard errors of {error:.2g}"
        return replace(plan, bounds=(*plan.bounds, Bound("simulated", value + 3 * error, True, about)))

    def release(self, source: Source, key: Key, progress: Progress | None = None) -> CellMeasure:
        """Spend the budget and return what anyone may see; the key is destroyed."""
        with gate(key):
            return self._release(source, key, progress)

    def simulated_bound(self, rows: int, *, draws: int = 20, seed: int | None = None) -> tuple[float, float]:
        """Return a bound of the expected W1 distance by simulating the noise, and its standard error.

        Sharper than the closed form of `plan`: the norm of the noise is computed by transport, draw by draw. Reads
        nothing private: the law of the noise does not depend on the data.
        """
        if not is_whole(draws) or draws < 2:
            raise ArgumentError(f"draws must be a whole number of at least 2, got {draws!r}.")
        plan = self._plan(rows, "assumed")
        if plan.depth == 0:
            return self._rho(0), 0.0
        space, _ = self._space(plan.depth)
        key = Key.fresh() if seed is None else Key.insecure(seed)
        norms, totals = discrete_norms(space, law_of(plan.law, plan.scales[-1]), draws, key)
        if self.privacy.rows_are_public or plan.levels[0] == 0:  # the total is not that of the noisy counts: see `flat`
            norms = norms - diameter(space) / 2 * np.abs(totals)
        root = self.domain.diameter(0) / 2 * float(plan.scales[0]) if plan.levels[0] == 0 else 0.0
        value = 2 * (float(norms.mean()) + root) / rows + self._rho(plan.depth)
        return value, 2 * float(norms.std(ddof=1)) / math.sqrt(draws) / rows

    # ------------------------------------------------------------------------------------------------- planning

    @property
    def law(self) -> LawName:
        """The law of the noise."""
        return self.privacy.law

    def _price(self, privacy: Privacy) -> float:
        """Return about what would be guaranteed."""
        rows, exact = self.rows or REFERENCE_ROWS, privacy.rows_are_public
        if self.depth is None:
            return flat_bound(self.domain, privacy, rows, self.placement, root_first=self.rows is None).value
        scales = {j: privacy.scale(b) for j, b in flat_budgets(privacy, self.depth, root_first=False).items()}
        return flat(self.domain, scales, self.depth, rows, self._rho(self.depth), exact_total=exact, law=privacy.law)

    @property
    def _buys_rows(self) -> bool:
        """Whether a noisy number of rows is bought first, to choose the level from."""
        return not self.privacy.rows_are_public and self.depth is None and self.rows is None

    def _budgets(self, level: int) -> dict[int, Fraction]:
        return flat_budgets(self.privacy, level, root_first=self._buys_rows)

    def _plan(self, rows: int, rows_are: RowsAre) -> Plan:
        level = self.depth
        if level is None:
            fixed = self.rows if self.rows is not None else rows
            level = flat_level(self.domain, self.privacy, fixed, most_cells(self.domain))
        budgets = self._budgets(level)
        scales = {measured: self.privacy.scale(budget) for measured, budget in budgets.items()}
        value = flat(
            self.domain, scales, level, rows, self._rho(level), exact_total=self.privacy.rows_are_public, law=self.law
        )
        other = tree_bound(self.domain, self.privacy, rows, self.placement, root_first=self.rows is None)
        return tree_plan(
            "psmm",
            self.domain,
            self.privacy,
            budgets,
            rows=rows,
            rows_are=rows_are,
            depth=level,
            law=self.law,
            why=self.why,
            bounds=(Bound("PSMM", value, True, "closest measure; noise bounded along axes or the tree"), other),
            memory_bytes=64 * self.domain.size(level),
        )

    def _rho(self, level: int) -> float:
        return flat_distance(self.domain, level, self.placement)

    def _cells(self, level: int) -> Cells:
        cells = np.arange(1 << level, dtype=np.uint64)
        return cells[self.domain.exists(cells, level)]

    def _space(self, level: int) -> tuple[Space, NDArray[np.int64]]:
        """Return the metric space of the cells of a level; refused if it is none."""
        return cell_space(self.domain, self._cells(level), level)

    def _check_spaces(self) -> None:
        """Build the space of every level that may be chosen, for a domain that is not ours: it may be no metric."""
        if not is_ours(self.domain):
            most = most_cells(self.domain)
            for level in range(useful_depth(self.domain, min(self.domain.deepest, DEEPEST_DEPTH)) + 1):
                if self.domain.size(level) > most:
                    break
                self._space(level)

    # ------------------------------------------------------------------------------------------------- the gate

    def _release(self, source: Source, key: Key, progress: Progress | None) -> CellMeasure:
        counts: CellCounts | None = None
        space: tuple[Space, NDArray[np.int64]] | None = None
        if self.depth is not None or self.rows is not None:  # the level is public already
            level = self._plan(self.rows or 1, "public").depth
            space = self._space(level)  # before noise is drawn: what is refused costs nothing
            (counts,) = source.count([Partition.of(self.domain, level)], progress)
        elif self._buys_rows:
            self._check_spaces()
        total: int | None = None  # stays private unless it is public or bought; then it is read off the noisy counts
        rows_are: RowsAre = "released"
        if self.privacy.rows_are_public or self._buys_rows:
            true = source.count([Partition(())])[0].total if counts is None else counts.total
            released, rows_are = public_total(true, self.privacy, self.privacy.budget * ROOT_SHARE, self.law, key)
            total = max(1, released)
        level = self._plan(total or 1, rows_are).depth
        space = space or self._space(level)
        if counts is None:
            (counts,) = source.count([Partition.of(self.domain, level)], progress)
        cells = self._cells(level)
        if level == 0 and total is not None:
            noisy = np.full(1, total, np.int64)
        else:
            law = law_of(self.law, self.privacy.scale(self._budgets(level)[level]))
            noisy = add_noise(counts.counts, level, law, key, 0, thread_count(self.threads))[cells.view(np.int64)]
        if total is None:
            total = max(1, int(noisy.sum()))
        # From here on everything is public.
        mass = project(*space, noisy, total)
        kept = np.zeros(1 << level, np.int64)
        kept[cells.view(np.int64)] = noisy
        if progress is not None:
            progress("release", 1.0)
        return CellMeasure(
            domain=self.domain,
            cells=cells[mass > 0],
            mass=mass[mass > 0],
            plan=self._plan(total, rows_are),
            recipe={"schedule": "flat", "inference": "none", "rule": "closest", "placement": self.placement},
            placement=self.placement,
            private=key.private,
            origin=Origin.of(key.release_id),
            noisy=keep_counts(self.domain, {level: kept} if level else {}, level),
        )

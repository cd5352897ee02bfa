"""The column tree: private columns, a private choice of pairs, private tables of the chosen pairs.

step        what is read                       noise                                       price
size        number of rows (if private)        Lap_Z(D / e_0)                              e_0
columns     a tree of counts of every column   Lap_Z(D / e) a level, e the level's budget  sum of all levels' budgets
ranks       nothing: groups of released cells                                              0
selection   a whole-number score of each pair  one-sided geometric, scale 2 D / e_s        e_s a round
resolution  what two tables of a pair tell     one-sided geometric, scale 2 D / e_z        e_z a pair, if a list is long
pairs       the table of each chosen pair      Lap_Z(D / e_t) or Lap_Z(D / e_x)            e_t or e_x a pair
agreements  a sum of signs for every pair      for rows of signs, scale D / e_a            e_a for all pairs
the rest    nothing: estimates/joint.py, model/                                            0

D is `Privacy.sensitivity`: in a partition of all possible rows a person changes the counts by at most D in l_1
(rows_per_person rows come or go; under "replace" each leaves one cell and enters another), and the sums of signs by D
rows that come or go. Every partition is fixed by public values and earlier releases, so the steps compose adaptively
and their prices add up: docs/proofs/selection.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from privmeasure.conditions.sets import Fact, apart
from privmeasure.counts import Axis, Partition, Source
from privmeasure.domains import Bools, Domain, Product, check_own
from privmeasure.domains.steps import MOST_STEPS
from privmeasure.domains.traits import column_space, finest_level, is_ordered, missing_cell
from privmeasure.errors import ArgumentError, is_whole
from privmeasure.estimates.linear import (
    Estimate,
    noise_variance,
    total_estimate,
)
from privmeasure.mechanisms.base import NOT_READ, constructor_arguments, gate, public_total, whole_rows
from privmeasure.mechanisms.pairs import FIRST_AIMED, RankedColumn, TruePairs
from privmeasure.mechanisms.tree import consistent_leaves, keep_counts, leaves_there, noisy_levels
from privmeasure.model.agreements import Agreements
from privmeasure.model.pairs import Pair
from privmeasure.model.ranks import Blocks, Groups, rank
from privmeasure.model.unused import without_unused
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import LawName, check_scale, facts_of
from privmeasure.origin import Origin
from privmeasure.plans.column_schedule import (
    Split,
    column_plan,
    is_listed,
    pair_cells,
    plan_pairs,
    rank_cells,
    split_over,
)
from privmeasure.plans.columns import MOST_COLUMNS, ColumnPlan, rows_error
from privmeasure.plans.laws import REFERENCE_ROWS, choose_law
from privmeasure.plans.plan import RowsAre
from privmeasure.plans.recipe import PLAIN
from privmeasure.plans.tuning import AIMED, GAUSSIAN_AIMED, GAUSSIAN_TUNED, TUNED, Tuning
from privmeasure.privacy import Privacy
from privmeasure.releases.cells import CellMeasure
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.releases.refining import cell_masses, refine, table_margins
from privmeasure.threads import Progress, thread_count

Masks = Callable[[int], Sequence[Bools]]
"""For a level, sets of its cells."""


@dataclass(frozen=True)
class ColumnTree:
    """The mechanism for wide tables: columns one by one, and the pairs of columns that tell most.

    `facts` are combinations of two columns that never occur: no rank cell straddles what one is about, so that rows can
    keep them exactly. With `neighbours="add-remove"` the number of rows is private: unless a public number `rows` is
    given, a noisy one is bought first; in both cases the released number is what that one and all columns say together.
    `targets` are factors that people will predict: pairs with them are chosen first. `tuning` is for tests and
    benchmarks.

    Guarantee:  privacy   epsilon-DP: the budgets of all steps sum to at most epsilon, in exact fractions
                accuracy  see `plan`: each column's own guarantee, nothing for the joint distribution
                cost      O(rows k^2) to count all pairs of k columns; at most 2^24 cells of pairs, or 2 by 2 each

    Examples:
        >>> from privmeasure.domains import Box, Categories
        >>> mechanism = ColumnTree(Product([Box([(0, 1)]), Categories(5), Categories(2)]), Privacy(1, "replace"))
        >>> plan = mechanism.plan(10_000)
        >>> plan.tree_pairs, plan.extra_pairs, plan.spent
        (2, 1, Fraction(1, 1))
    """

    domain: Product
    privacy: Privacy
    rows: int | None = None
    threads: int | None = None
    facts: tuple[Fact, ...] = ()
    targets: tuple[int, ...] = ()
    tuning: Tuning = TUNED
    given: dict[str, Any] = field(init=False, repr=False, compare=False)
    """The arguments that the mechanism was made with."""
    why: str = field(default="", init=False, repr=False, compare=False)
    """Why the noise has its law, where a delta was offered."""

    def __post_init__(self) -> None:
        """Check everything that can be checked before data are touched."""
        object.__setattr__(self, "given", constructor_arguments(self))
        if not isinstance(self.domain, Product) or len(self.domain.factors) > MOST_COLUMNS:
            raise ArgumentError(
                f"domain must be a Product of at most {MOST_COLUMNS} columns, got {type(self.domain).__name__}. "
                "Use Product([domain, ...]), a domain a column."
            )
        check_own(self.domain)
        object.__setattr__(self, "rows", self.rows if self.rows is None else whole_rows(self.rows))
        thread_count(self.threads)
        if not all(is_whole(j) and 0 <= j < len(self.domain.factors) for j in self.targets):
            raise ArgumentError(f"targets must be numbers of factors of the domain, got {self.targets!r}.")
        if not isinstance(self.tuning, Tuning):
            raise ArgumentError(f"tuning must be a Tuning, got {self.tuning!r}. Leave it out if in doubt.")
        chosen, why = choose_law(self.privacy, self._noise)
        object.__setattr__(self, "tuning", self._tuned(chosen, aims=self._aims))
        object.__setattr__(self, "privacy", chosen)
        object.__setattr__(self, "why", why)
        for rows in (1, 2**52):  # shares fall or rise with the rows: if both ends are within reach, all between are
            self.plan(rows)

    # ------------------------------------------------------------------------------------------------- planning

    @cached_property
    def spaces(self) -> tuple[Domain, ...]:
        """The space that each column is measured on."""
        return tuple(column_space(factor) for factor in self.domain.factors)

    @cached_property
    def _apart(self) -> Mapping[int, Masks]:
        """For a column and a level, the sets of cells that facts tell apart."""
        return apart(self.facts, self.spaces)

    @property
    def law(self) -> LawName:
        """The law of the noise."""
        return self.privacy.law

    @property
    def _aims(self) -> bool:
        """Whether few pairs may be enough: one or two targets that vary, and pairs to choose among."""
        varied = [j for j, space in enumerate(self.spaces) if space.size(finest_level(space)) > 1]
        return len(varied) > 2 and 0 < len({*self.targets}.intersection(varied)) <= FIRST_AIMED

    def _tuned(self, privacy: Privacy, *, aims: bool) -> Tuning:
        """Return the tuning for the law of a promise and for targets, unless another one than the usual was given."""
        if self.tuning not in (TUNED, GAUSSIAN_TUNED, AIMED, GAUSSIAN_AIMED):
            return self.tuning
        if privacy.delta:
            return GAUSSIAN_AIMED if aims else GAUSSIAN_TUNED
        return AIMED if aims else TUNED

    def _noise(self, privacy: Privacy) -> float:
        """Return about how much noise all columns would have together: cells times E|noise|, summed up.

        Targets do not count: they must not decide whether a delta is used.
        """
        rows, tuning = self.rows or REFERENCE_ROWS, self._tuned(privacy, aims=False)
        split = split_over(self.spaces, privacy, rows, buy_size=self._buys_size, tuning=tuning)
        budgets = (next(iter(levels.items()), None) for levels in split.columns)  # of a number, its coarse cells
        return sum(
            space.size(first[0]) * facts_of(privacy.law, privacy.scale(first[1])).size
            for space, first in zip(self.spaces, budgets, strict=True)
            if first
        )

    @property
    def _buys_size(self) -> bool:
        return self.rows is None and not self.privacy.rows_are_public

    def plan(self, rows: int | None = None) -> ColumnPlan:
        """Say what would be measured and guaranteed for a number of rows, from public values; changes nothing."""
        rows = whole_rows(self.rows if rows is None else rows, advice=NOT_READ)
        split = self._split(rows if self.rows is None else self.rows)
        return self._plan(
            split, rows, "public" if rows == self.rows else "assumed", rows if self.rows is None else self.rows
        )

    def _split(self, rows: int) -> Split:
        return split_over(self.spaces, self.privacy, rows, buy_size=self._buys_size, tuning=self.tuning)

    def _plan(self, split: Split, rows: int, rows_are: RowsAre, planned: int) -> ColumnPlan:
        """Return the plan for a number of rows; epsilon was split for the `planned` one."""
        scales = [{level: self.privacy.scale(e) for level, e in own.items()} for own in split.columns]
        error = rows_error(self.privacy, split.size, scales, self.law)
        columns = tuple(
            column_plan(
                space, budgets, self.privacy, rows, rows_are, error, planned=planned, law=self.law, tuning=self.tuning
            )
            for space, budgets in zip(self.spaces, split.columns, strict=True)
        )
        varied = [space for space in self.spaces if space.size(finest_level(space)) > 1]
        pairs = plan_pairs(varied, self.privacy, split, rows, tuning=self.tuning)
        plan = ColumnPlan(
            privacy=self.privacy,
            rows=rows,
            rows_are=rows_are,
            size_budget=split.size,
            columns=columns,
            rounds=pairs.tree + pairs.extra if pairs.round_budget else 0,
            round_budget=pairs.round_budget,
            tree_pairs=pairs.tree,
            tree_budget=pairs.tree_budget,
            extra_pairs=pairs.extra,
            extra_budget=pairs.extra_budget,
            shape_budget=pairs.shape_budget,
            agreement_pairs=pairs.agreements,
            agreements_budget=pairs.agreements_budget,
            pair_sides=pairs.sides,
            diameter=self.domain.diameter(0),
            law=self.law,
            why=self.why,
            list_room=self.tuning.list_room if any(map(is_listed, varied)) else 1,
            pair_power=pairs.power,
            most_steps=MOST_STEPS,
            memory_bytes=12  # bytes per cell of every pair
            * pair_cells(varied, pairs.sides[0], self.tuning, finer=pairs.shape_budget > 0)
            + sum(column.memory_bytes for column in columns),
        )
        checked = [self.privacy.scale(split.size)] if split.size else []
        checked += [plan.selection_scale, plan.shape_scale, plan.tree_scale, plan.extra_scale, plan.agreement_scale]
        for scale in [*checked, *(scale for column in columns for scale in column.scales)]:
            if scale:
                check_scale(scale)  # before anything is spent
        return plan

    # ------------------------------------------------------------------------------------------------- the gate

    def release(self, source: Source, key: Key, progress: Progress | None = None) -> ColumnsMeasure:
        """Spend the budget and return what anyone may see; the key is destroyed."""
        with gate(key):
            return self._release(source, key, progress)

    def _release(self, source: Source, key: Key, progress: Progress | None) -> ColumnsMeasure:
        first, known, split = self._size(source, key)
        noisy, variances = self._noisy_columns(source, split, key, progress)
        # From here on the noisy counts of the columns are public.
        if self.privacy.rows_are_public:
            rows, best = first, float(first)
        else:
            known += [
                total_estimate(noisy[j], variances[j], depth, leaves_there(self.spaces[j], depth))
                for j in range(len(noisy))
                if noisy[j] and (depth := max(variances[j]))
            ]
            best = sum(y / v for y, v in known) / sum(1 / v for _, v in known)
            rows = max(1, round(best))
        rows_are: RowsAre = "public" if self.privacy.rows_are_public else "released"
        plan = self._plan(split, rows, rows_are, self.rows or first)
        columns = tuple(
            self._column(j, plan, dict(noisy[j]), variances[j], best, private=key.private)
            for j in range(len(self.spaces))
        )
        side = max(1, plan.pair_sides[0])
        ranks = tuple(
            self._ranks(j, column, rank_cells(self.spaces[j], side, self.tuning, finer=plan.shape_budget > 0))
            for j, column in enumerate(columns)
        )
        pairs, agreements = tuple[Pair, ...](), None
        if plan.tree_pairs:
            pairs, agreements = self._pairs(source, columns, ranks, plan, key, progress)
        if plan.shape_budget:
            kept = [
                self._kept_apart(j, column, groups)
                for j, (column, groups) in enumerate(zip(columns, ranks, strict=True))
            ]
            ranks, pairs, agreements = without_unused(ranks, kept, pairs, agreements)
        # The noisy tables are public too, and say something of the columns.
        total = best, 1 / sum(1 / v for _, v in known) if known else 0.0
        columns = tuple(
            refine(
                column,
                ranks[j],
                noisy[j],
                variances[j],
                total,
                [*table_margins(j, ranks[j], pairs)],
                self._masks(j, column),
            )
            if column.level
            else column
            for j, column in enumerate(columns)
        )
        if progress is not None:
            progress("release", 1.0)
        return ColumnsMeasure(
            domain=self.domain,
            plan=plan,
            columns=columns,
            ranks=ranks,
            pairs=pairs,
            agreements=agreements,
            private=key.private,
            origin=Origin.of(key.release_id),
        )

    def _size(self, source: Source, key: Key) -> tuple[int, list[tuple[float, float]], Split]:
        """Return a public number of rows to plan with, its estimates with their variances, and the split of epsilon.

        PRIVATE: the number of rows is read here and nowhere else. Under "replace" it is public; else it is read only
        to be released with noise Lap_Z(D / e_0), which is e_0-DP as a person owns at most D rows.
        """
        public, budget = self.privacy.rows_are_public, self.privacy.budget
        if not public:
            split = self._split(self.rows or 1)  # what the size costs does not depend on the rows
            if not (budget := split.size):
                return self.rows or 1, [], split
        (everyone,) = source.count([Partition(())])
        total, _ = public_total(int(everyone.take().sum()), self.privacy, budget, self.law, key)
        known = [] if public else [(float(total), noise_variance(self.privacy.scale(budget), self.law))]
        return max(1, total), known, self._split(self.rows or max(1, total))

    def _noisy_columns(
        self, source: Source, split: Split, key: Key, progress: Progress | None
    ) -> tuple[list[dict[int, Estimate]], list[dict[int, float]]]:
        """Return the noisy counts of the measured levels of every column, and the variances of their noise.

        PRIVATE counts come in, in one pass, and are used up. Each level of each column is a histogram of disjoint cells
        that public values fixed: it changes by at most D in l_1, so noise of scale D / e makes it e-DP.
        """
        scales = [{level: self.privacy.scale(budget) for level, budget in levels.items()} for levels in split.columns]
        measured = [j for j, levels in enumerate(scales) if levels]
        axes = [Axis(self.spaces[j], max(scales[j]), columns=self.domain.columns[j]) for j in measured]
        counts = source.count([Partition((axis,)) for axis in axes], progress) if measured else []
        noisy: list[dict[int, Estimate]] = [{} for _ in scales]
        for j, true in zip(measured, counts, strict=True):
            noisy[j] = noisy_levels(
                true, scales[j], max(scales[j]), self.law, key, part=1 + j, threads=thread_count(self.threads)
            )
        return noisy, [{level: noise_variance(scale, self.law) for level, scale in levels.items()} for levels in scales]

    def _column(
        self,
        j: int,
        plan: ColumnPlan,
        noisy: dict[int, Estimate],
        variances: dict[int, float],
        best: float,
        *,
        private: bool,
    ) -> CellMeasure:
        """Return the released measure of one column: post-processing."""
        space, own = self.spaces[j], plan.columns[j]
        kept = keep_counts(space, noisy, own.depth)
        mass = consistent_leaves(space, noisy, variances, plan.rows, own.depth, PLAIN, root=best)
        cells = np.flatnonzero(mass)
        return CellMeasure(
            domain=space,
            cells=cells.astype(np.uint64),
            mass=mass[cells],
            plan=own,
            recipe=PLAIN.to_json(),
            placement=PLAIN.placement,
            private=private,
            noisy=kept,
        )

    def _ranks(self, j: int, column: CellMeasure, most: int) -> Groups:
        """Return the rank cell of every cell of a column: a function of released masses."""
        return rank(
            cell_masses(column).astype(np.float64),
            most,
            ordered=is_ordered(column.domain),
            blocks=_blocks(column, self.tuning),
            alone=missing_cell(column.domain, column.level),
            apart=self._masks(j, column),
        )

    def _kept_apart(self, j: int, column: CellMeasure, groups: Groups) -> Groups:
        """Return a number for every rank cell of a column: facts, and what is missing, tell different ones apart."""
        cells, size = column.cells.view(np.int64), int(groups.max()) + 1
        told = np.zeros(size, np.int64)
        for inside in self._masks(j, column):
            here = np.zeros(size, np.int64)
            here[groups[cells]] = inside[cells]
            told = np.unique(2 * told + here, return_inverse=True)[1].reshape(-1)
        missing = missing_cell(self.spaces[j], column.level)
        if missing is not None:
            told[groups[missing]] = told.max() + 1
        return told

    def _masks(self, j: int, column: CellMeasure) -> Sequence[Bools]:
        """Return the sets of cells of a column that facts tell apart."""
        return self._apart[j](column.level) if j in self._apart else ()

    def _pairs(
        self,
        source: Source,
        columns: Sequence[CellMeasure],
        ranks: Sequence[Groups],
        plan: ColumnPlan,
        key: Key,
        progress: Progress | None,
    ) -> tuple[tuple[Pair, ...], Agreements | None]:
        """Count all pairs on rank cells in one pass; return noisy tables of some and, if planned, agreements."""
        active = [j for j, column in enumerate(columns) if column.level > 0]
        axes = {j: Axis(self.spaces[j], columns[j].level, self.domain.columns[j], ranks[j]) for j in active}
        names = list(combinations(active, 2))
        counts = source.count([Partition((axes[i], axes[j])) for i, j in names], progress)
        ranked = [
            self._ranked(j, column, groups) for j, (column, groups) in enumerate(zip(columns, ranks, strict=True))
        ]
        try:
            true = TruePairs(names, counts, ranked, plan, self.tuning, self.targets)
            pairs = true.chosen(key)
            return pairs, true.agreements(key)
        finally:
            for each in counts:  # used up, whatever happened: nobody keeps the true counts alive
                each.take()

    def _ranked(self, j: int, column: CellMeasure, groups: Groups) -> RankedColumn:
        """Return the released masses of the rank cells of a column, with what its coarser groups must keep apart."""
        missing = missing_cell(self.spaces[j], column.level)
        cells, blocks = column.cells.view(np.int64), _blocks(column, self.tuning)
        margin = np.bincount(groups[cells], weights=column.mass, minlength=int(groups.max()) + 1)
        alone = None if missing is None or missing not in cells else int(groups[missing])
        return RankedColumn(
            margin.astype(np.float64),
            ordered=is_ordered(self.spaces[j]),
            listed=is_listed(self.spaces[j]),
            blocks=blocks and blocks[cells].of_groups(groups[cells]),
            alone=alone,
        )


def _blocks(column: CellMeasure, tuning: Tuning) -> Blocks | None:
    """Return the coarse cells of a number, which were measured with less noise than its fine cells: public."""
    plan = column.plan
    if not tuning.whole_blocks or column.domain.width > 1 or len(plan.levels) < 2:
        return None
    coarse = np.arange(1 << column.level) >> (column.level - plan.levels[-2])
    return Blocks(coarse, np.full(1 << column.level, noise_variance(plan.scales[-1], plan.law)), tuning.clear)

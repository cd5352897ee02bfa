"""The Private Measure Mechanism: noisy counts on a binary tree of cells, made consistent.

Algorithm 4 of the paper, step by step, and where each step lives:

1. true counts of the cells          counts.py, engines/
2. noise                             noise/laplace.py, scales from schedule.py
3. inference (not in the paper)      inference.py
4. consistency (Algorithm 3)         consistency.py, or lazy.py for trees too large to hold
5. points in the cells               release.py
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privmeasure.blocks import in_threads, thread_count
from privmeasure.counts import CellCounts, Partition, Progress, Source
from privmeasure.domains import Bools, Cells, Domain
from privmeasure.errors import ArgumentError, DataError
from privmeasure.mechanisms.bounds import hvz, noise_variance, t1, t2
from privmeasure.mechanisms.consistency import RULES, Mass, distribute
from privmeasure.mechanisms.inference import uneven_blue, uneven_up_pass, up_pass
from privmeasure.mechanisms.lazy import ancestors, lazy_masses
from privmeasure.mechanisms.recipe import DEFAULT, Recipe, RuleName, paper
from privmeasure.mechanisms.schedule import (
    DEEPEST_DEPTH,
    ROOT_SHARE,
    choose_depth,
    level_weights,
    split_budget,
    useful_depth,
)
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import LARGEST_SCALE, discrete_laplace
from privmeasure.plan import Bound, Plan, RowsAre
from privmeasure.privacy import Privacy
from privmeasure.release import CellMeasure

MAX_CELLS = 1 << 26
"""The public limit of the tree that is held in memory: about 1 GiB."""

CHUNK = 1 << 16
"""Cells that one task adds noise to."""


@dataclass(frozen=True)
class PMM:
    """The tree mechanism on a domain, under a privacy promise, by a recipe.

    With `neighbours="add-remove"` the number of rows is private. Unless a public number `rows` or a `depth` is given, a
    noisy number is bought first, with a fixed share of epsilon, and everything later is a function of that number.

    Guarantee:  privacy   epsilon-DP: the budgets of the levels sum to at most epsilon, each level's noise is
                          Lap_Z(sensitivity / budget), and all else is post-processing
                accuracy  see `plan`
                cost      O(rows) to count, O(2^depth) for the tree
    References: [HVZ23] Algorithms 3 and 4

    Examples:
        >>> from privmeasure.domains import Box
        >>> mechanism = PMM(Box([(0, 1)]), Privacy(1, "replace"))
        >>> plan = mechanism.plan(10_000)
        >>> plan.depth, plan.levels, plan.spent
        (9, (1, 5, 9), Fraction(1, 1))
    """

    domain: Domain
    privacy: Privacy
    recipe: Recipe = DEFAULT
    depth: int | None = None
    rows: int | None = None
    max_cells: int = MAX_CELLS
    threads: int | None = None

    def __post_init__(self) -> None:
        """Check everything that can be checked before data are touched."""
        deepest = min(DEEPEST_DEPTH, self.domain.deepest)
        if self.depth is not None and not (_is_whole(self.depth) and 0 <= self.depth <= deepest):
            raise ArgumentError(
                f"depth must be a whole number from 0 to {deepest} for this domain, got {self.depth!r}."
            )
        if self.rows is not None and not (_is_whole(self.rows) and 1 <= self.rows < 2**53):
            raise ArgumentError(f"rows must be a whole number of at least 1, got {self.rows!r}.")
        if not (_is_whole(self.max_cells) and 2 <= self.max_cells <= MAX_CELLS << 8):
            raise ArgumentError(f"max_cells must be a whole number from 2 to {MAX_CELLS << 8}, got {self.max_cells!r}.")
        thread_count(self.threads)
        if self._plan_is_fixed:
            self._plan(self.rows or 1, "assumed")  # refuses scales out of reach now, not after the budget is spent
        elif not self.privacy.rows_are_public:
            discrete_laplace(self.privacy.sensitivity / (self.privacy.epsilon * ROOT_SHARE))

    @classmethod
    def paper(cls, domain: Domain, privacy: Privacy, *, rule: RuleName = "uniform", **options: Any) -> "PMM":
        """Return the literal mechanism of the paper: every level, optimal scales for the relation, its own depth."""
        return cls(domain, privacy, paper(rule), **options)

    def plan(self, rows: int | None = None) -> Plan:
        """Say what would be measured and guaranteed for a number of rows, from public values; changes nothing."""
        rows = self.rows if rows is None else rows
        if rows is None or not _is_whole(rows) or not 1 <= rows < 2**53:
            raise ArgumentError(
                f"rows must be a whole number of at least 1, got {rows!r}. Give the number of rows to plan for: "
                "a public one, or a guess. It is not read from data."
            )
        return self._plan(rows, "public" if rows == self.rows else "assumed")

    def release(self, source: Source, key: Key, progress: Progress | None = None) -> CellMeasure:
        """Spend the budget and return what anyone may see; the key is destroyed."""
        try:
            return self._release(source, key, progress or (lambda stage, fraction: None))
        finally:
            key.destroy()

    # ------------------------------------------------------------------------------------------------- planning

    @property
    def _plan_is_fixed(self) -> bool:
        """Whether depth and budgets are known before anything is released."""
        return self.depth is not None or self.rows is not None

    def _plan(self, rows: int, rows_are: RowsAre) -> Plan:
        limit = min(DEEPEST_DEPTH, self.domain.deepest, int(math.log2(self.max_cells)))
        fixed = self.rows if self.rows is not None else rows
        depth = (
            self.depth
            if self.depth is not None
            else choose_depth(self.recipe.schedule, self.domain, self.privacy, fixed, limit)
        )
        depth = useful_depth(self.domain, depth)
        while True:
            lazy = 1 << depth > self.max_cells
            budgets = self._budgets(depth, lazy=lazy)
            scales = {level: self.privacy.sensitivity / budget for level, budget in budgets.items()}
            if self.depth is not None or depth == 0 or max(scales.values()) <= LARGEST_SCALE:
                break
            depth -= 1  # a tiny epsilon: fewer levels, so that the chosen scales are within reach
        for scale in scales.values():
            discrete_laplace(scale)  # raises where a scale is out of reach, before anything is spent
        return Plan(
            mechanism="pmm",
            privacy=self.privacy,
            rows=rows,
            rows_are=rows_are,
            depth=depth,
            levels=tuple(budgets),
            budgets=tuple(budgets.values()),
            scales=tuple(scales.values()),
            cells=self.domain.size(depth),
            diameter=self.domain.diameter(0),
            leaf_diameter=self.domain.diameter(depth),
            evaluation="lazy" if lazy else "whole tree",
            bounds=self._bounds(scales, depth, rows, lazy=lazy),
            memory_bytes=16 * min(self.max_cells, 1 << depth),
        )

    def _budgets(self, depth: int, *, lazy: bool) -> dict[int, Fraction]:
        weights = level_weights(self.recipe.schedule, self.domain, depth, lazy=lazy)
        if self.privacy.rows_are_public:
            return split_budget(self.privacy.epsilon, weights)
        if self.recipe.schedule == "every level" and self._plan_is_fixed:  # the paper measures the root like the rest
            return split_budget(self.privacy.epsilon, {0: math.sqrt(self.domain.total_diameter(0)), **weights})
        root = self.privacy.epsilon * ROOT_SHARE
        return {0: root} | split_budget(self.privacy.epsilon - root, weights)

    def _bounds(self, scales: dict[int, Fraction], depth: int, rows: int, *, lazy: bool) -> tuple[Bound, ...]:
        """Return the bounds of this recipe; where the paper's do not apply, those of the paper's recipe beside them."""
        centred = self.recipe.placement == "centre"
        rho = self.domain.radius(depth) if centred else self.domain.diameter(depth)
        blue = self.recipe.inference == "blue" and not lazy
        bounds = []
        if all(level in scales for level in range(1, depth + 1)) and not blue:
            bounds.append(
                Bound("HVZ23", hvz(self.domain, scales, depth, rows), True, "the paper's, constant corrected")
            )
            bounds.append(Bound("T1", t1(self.domain, scales, depth, rows, rho), True, "any comparable rule"))
        elif self.recipe.schedule == "sparse":
            literal = PMM.paper(self.domain, self.privacy, rows=rows, max_cells=self.max_cells)._plan(rows, "assumed")
            about = f"of PMM.paper at its depth {literal.depth}, for comparison"
            bounds += [Bound(bound.name, bound.value, False, about) for bound in literal.bounds if bound.name != "T2"]
        if self.recipe.rule == "signed":
            value = t2(self.domain, scales, depth, rows, rho, blue=blue)
            bounds.append(Bound("T2", value, True, "signed differences" + (", best linear inference" if blue else "")))
        return tuple(bounds)

    # ------------------------------------------------------------------------------------------------- the gate

    def _release(self, source: Source, key: Key, progress: Progress) -> CellMeasure:
        fixed = self._plan_is_fixed or self.privacy.rows_are_public
        counts: CellCounts | None = None
        if self._plan_is_fixed:
            plan = self._plan(self.rows or 1, "public")
            (counts,) = source.count([Partition.of(self.domain, plan.depth)], progress)
            total = counts.total
        else:
            (everyone,) = source.count([Partition(())])
            total = everyone.total
        if self.privacy.rows_are_public:
            if total == 0:
                raise DataError(
                    "The data have no rows. With neighbours='replace' the number of rows is public and kept exactly, "
                    "and there is no probability measure on nothing: give at least one row, or use 'add-remove'."
                )
            rows_are: RowsAre = "public"
        else:
            # the price of the root is known already: either the plan is fixed or it is ROOT_SHARE
            budget = plan.budgets[0] if fixed else self.privacy.epsilon * ROOT_SHARE
            law = discrete_laplace(self.privacy.sensitivity / budget)
            total = max(1, total + int(law.draw(key, part=0, level=0, cells=np.zeros(1, np.uint64))[0]))
            rows_are = "released"
        # From here on `total` is public. The true number of rows is not read again.
        plan = self._plan(total, rows_are)
        if counts is None:
            (counts,) = source.count([Partition.of(self.domain, plan.depth)], progress)
        cells, mass = self._masses(counts, plan, total, key)
        progress("release", 1.0)
        return CellMeasure(
            domain=self.domain,
            cells=cells,
            mass=mass,
            plan=plan,
            recipe=self.recipe.to_json(),
            placement=self.recipe.placement,
            private=key.private,
        )

    def _masses(self, counts: CellCounts, plan: Plan, total: int, key: Key) -> tuple[Cells, Mass]:
        depth, rule = plan.depth, RULES[self.recipe.rule]
        scales = dict(zip(plan.levels, plan.scales, strict=True))
        if plan.evaluation == "lazy":
            return lazy_masses(self.domain, counts, total, scales, depth, rule, key)
        noisy = {level: self._noisy(counts.counts, level, depth, scales[level], key) for level in scales if level > 0}
        del counts
        variances = {level: noise_variance(scale) for level, scale in scales.items()}
        blue = self.recipe.inference == "blue"
        roots = np.full(1, total, np.int64)
        exists = None if self.domain.size(depth) == 1 << depth else self._existing(depth)
        if depth == 0:
            leaves = roots
        elif exists is None:
            leaves = distribute(roots, up_pass(noisy, variances, depth, rule, blue=blue), rule)
        elif blue:
            # under add-remove the root is a measurement like the others; `total` is that same noisy number
            root = float(total) if self.privacy.rows_are_public else None
            if root is None:
                noisy[0] = roots.astype(np.float64)
            leaves = distribute(roots, uneven_blue(noisy, variances, depth, exists, root), rule, exists)
        else:
            leaves = distribute(roots, uneven_up_pass(noisy, depth, rule, exists), rule, exists)
        cells = np.flatnonzero(leaves)
        return cells.astype(np.uint64), leaves[cells]

    def _noisy(self, leaves: Mass, level: int, depth: int, scale: Fraction, key: Key) -> Mass:
        """Return the noisy counts of one level; the deepest level's noise is added in place, last."""
        counts = leaves if level == depth else leaves.reshape(-1, 1 << (depth - level)).sum(axis=1)
        law = discrete_laplace(scale)

        def add(task: int) -> None:
            cells = np.arange(task * CHUNK, min((task + 1) * CHUNK, len(counts)), dtype=np.uint64)
            counts[task * CHUNK : task * CHUNK + len(cells)] += law.draw(key, part=0, level=level, cells=cells)

        in_threads(add, -(-len(counts) // CHUNK), thread_count(self.threads))
        return counts

    def _existing(self, depth: int) -> list[Bools]:
        there = np.empty(1 << depth, bool)
        for start in range(0, len(there), CHUNK):
            cells = np.arange(start, min(start + CHUNK, len(there)), dtype=np.uint64)
            there[start : start + CHUNK] = self.domain.exists(cells, depth)
        return ancestors(there, depth)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)

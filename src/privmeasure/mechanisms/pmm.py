"""The Private Measure Mechanism: noisy counts on a binary tree of cells, made consistent.

Algorithm 4 of the paper, step by step, and where each step lives:

1. true counts of the cells          counts.py, sources/
2. noise                             mechanisms/tree.py, noise/laplace.py, scales from plans/schedule.py
3. inference (not in the paper)      estimates/linear.py, estimates/passes.py, estimates/shrinkage.py
4. consistency (Algorithm 3)         estimates/consistency.py, or mechanisms/lazy.py for trees too large to hold
5. points in the cells               releases/cells.py, releases/sampling.py
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from privmeasure.counts import DENSE_CELLS, CellCounts, Partition, Source
from privmeasure.domains import Box, Domain, Integers, check_own
from privmeasure.errors import ArgumentError, is_whole
from privmeasure.mechanisms.base import NOT_READ, constructor_arguments, gate, public_total, whole_rows
from privmeasure.mechanisms.tree import MOST_KEPT, tree_masses
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import LARGEST_SCALE, LawName, check_scale
from privmeasure.origin import Origin
from privmeasure.plans.bounds import Kept, hvz, t1, t2, t3, t5, t6, t7
from privmeasure.plans.compare import flat_bound, tree_bound
from privmeasure.plans.laws import REFERENCE_ROWS, choose_law
from privmeasure.plans.plan import Bound, Plan, RowsAre, tree_plan
from privmeasure.plans.recipe import DEFAULT, PLAIN, Recipe, RuleName, paper
from privmeasure.plans.schedule import (
    DEEPEST_DEPTH,
    PATIENCE,
    anchor_of,
    choose_depth,
    depth_guarantees,
    ladder_anchor,
    paper_depth,
    root_share,
    tree_budgets,
    tree_scales,
    useful_depth,
)
from privmeasure.privacy import Privacy
from privmeasure.releases.cells import CellMeasure
from privmeasure.threads import Progress, thread_count

MAX_CELLS = DENSE_CELLS
"""The public limit of the tree that is held in memory: about 1 GiB."""


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
        (13, (4, 7, 10, 13), Fraction(1, 1))
    """

    domain: Domain
    privacy: Privacy
    recipe: Recipe = DEFAULT
    depth: int | None = None
    rows: int | None = None
    max_cells: int = MAX_CELLS
    threads: int | None = None
    given: dict[str, Any] = field(init=False, repr=False, compare=False)
    """The arguments that the mechanism was made with."""
    why: str = field(default="", init=False, repr=False, compare=False)
    """Why the noise has its law, where a delta was offered."""

    def __post_init__(self) -> None:
        """Check everything that can be checked before data are touched."""
        object.__setattr__(self, "given", constructor_arguments(self))
        check_own(self.domain)
        placement = self.recipe.placement
        if self.recipe == replace(DEFAULT, placement=placement) and type(self.domain) is not Box:  # T7 is for boxes
            object.__setattr__(self, "recipe", replace(PLAIN, placement=placement))
        deepest = min(DEEPEST_DEPTH, self.domain.deepest)
        if self.depth is not None and not (is_whole(self.depth) and 0 <= self.depth <= deepest):
            raise ArgumentError(
                f"depth must be a whole number from 0 to {deepest} for this domain, got {self.depth!r}."
            )
        if self.rows is not None:
            whole_rows(self.rows)
        if not (is_whole(self.max_cells) and 2 <= self.max_cells <= MAX_CELLS):
            raise ArgumentError(
                f"max_cells must be a whole number from 2 to {MAX_CELLS}, got {self.max_cells!r}. Deeper trees are "
                "evaluated lazily."
            )
        for name in ("depth", "rows", "max_cells"):  # NumPy's integers would not go into a JSON header
            value = getattr(self, name)
            object.__setattr__(self, name, value if value is None else int(value))
        thread_count(self.threads)
        if self.recipe.rule == "isotonic":
            self._check_isotonic()
        chosen, why = choose_law(self.privacy, self._price)
        object.__setattr__(self, "privacy", chosen)
        object.__setattr__(self, "why", why)
        if self._plan_is_fixed:
            self._plan(self.rows or 1, "assumed")  # refuses scales out of reach now, not after the budget is spent
        elif not self.privacy.rows_are_public:
            check_scale(self.privacy.scale(self.privacy.budget * root_share(self.recipe.schedule, self.privacy)))

    def _check_isotonic(self) -> None:
        if not (isinstance(self.domain, Integers) or (isinstance(self.domain, Box) and self.domain.width == 1)):
            raise ArgumentError(
                f"rule 'isotonic' needs a line: a Box with one axis or Integers, got {type(self.domain).__name__} "
                f"with {self.domain.width} columns. Use rule='signed', which works on every domain."
            )
        if self.depth is not None and 1 << self.depth > self.max_cells:
            raise ArgumentError(
                f"rule 'isotonic' needs the whole tree, and depth {self.depth} is beyond max_cells = {self.max_cells}. "
                "Use a smaller depth, or rule='signed'."
            )

    @classmethod
    def paper(cls, domain: Domain, privacy: Privacy, *, rule: RuleName = "uniform", **options: Any) -> "PMM":
        """Return the mechanism of the paper, its errata corrected: every level, optimal scales, the paper's depth."""
        return cls(domain, privacy, paper(rule), **options)

    def plan(self, rows: int | None = None) -> Plan:
        """Say what would be measured and guaranteed for a number of rows, from public values; changes nothing."""
        rows = whole_rows(self.rows if rows is None else rows, advice=NOT_READ)
        return self._plan(rows, "public" if rows == self.rows else "assumed")

    def release(self, source: Source, key: Key, progress: Progress | None = None) -> CellMeasure:
        """Spend the budget and return what anyone may see; the key is destroyed."""
        with gate(key):
            return self._release(source, key, progress)

    # ------------------------------------------------------------------------------------------------- planning

    @property
    def law(self) -> LawName:
        """The law of the noise."""
        return self.privacy.law

    def _price(self, privacy: Privacy) -> float:
        """Return about what would be guaranteed: by the default recipe, the paper's, or at a depth that is given."""
        rows, schedule = self.rows or REFERENCE_ROWS, self.recipe.schedule
        if self.depth is None and schedule != "every level":
            return tree_bound(self.domain, privacy, rows, self.recipe.placement, root_first=self.rows is None).value
        depth = paper_depth(self.domain, privacy, rows, self._limit) if self.depth is None else self.depth
        depth = useful_depth(self.domain, depth)
        lazy, root_first = 1 << depth > self.max_cells, not self._plan_is_fixed
        scales = tree_scales(schedule, self.domain, privacy, depth, lazy=lazy, root_first=root_first)
        if schedule == "every level":
            return t1(self.domain, scales, rows, self.domain.diameter(depth), law=privacy.law)
        blue, estimated = self.recipe.inference == "blue" and not lazy, self._estimated(lazy=lazy)
        rho = self.domain.diameter(depth)
        return t2(self.domain, scales, depth, rows, rho, blue=blue, estimated=estimated, law=privacy.law)

    @property
    def _plan_is_fixed(self) -> bool:
        """Whether depth and budgets are known before anything is released."""
        return self.depth is not None or self.rows is not None

    def _plan(self, rows: int, rows_are: RowsAre, planned: int | None = None) -> Plan:
        """Return the plan at a number of rows; depth and budgets follow a public number, or the one bought first."""
        planned = self.rows or planned or rows
        budgets, lazy = self._budgets(planned)
        depth = max(budgets, default=0)
        scales = {level: self.privacy.scale(budget) for level, budget in budgets.items()}
        return tree_plan(
            "pmm",
            self.domain,
            self.privacy,
            budgets,
            rows=rows,
            rows_are=rows_are,
            depth=depth,
            law=self.law,
            why=self.why,
            bounds=self._bounds(scales, depth, rows, planned, lazy=lazy),
            memory_bytes=self._memory(depth, rows, lazy=lazy),
            lazy=lazy,
        )

    def _estimated(self, *, lazy: bool) -> bool:
        """Whether the number of rows is estimated from everything measured, not read off level 0 alone."""
        return self.recipe.schedule == "ladder" and not lazy and not self.privacy.rows_are_public

    def _memory(self, depth: int, rows: int, *, lazy: bool) -> int:
        """Return about how many bytes the tree takes beside the data: 16 per cell, 56 where it is uneven or shrunk.

        Up to `MOST_KEPT` cells the noisy counts stay with the release: 4 bytes more for each cell that is measured.
        """
        if lazy:
            return 64 * rows
        kept = 8 if 1 << depth <= MOST_KEPT else 0
        plain = self.domain.size(depth) == 1 << depth and self.recipe.shrinkage == "none"
        return ((16 if plain else 56) + kept) << depth

    def _budgets(self, rows: int) -> tuple[dict[int, Fraction], bool]:
        """Return the budget of every measured level, the deepest being the depth, and whether the tree is lazy."""
        schedule, root_first = self.recipe.schedule, not self._plan_is_fixed
        depth = self.depth
        if depth is None:
            depth = choose_depth(schedule, self.domain, self.privacy, rows, self._limit)
        depth = useful_depth(self.domain, depth)
        while True:
            lazy = 1 << depth > self.max_cells
            budgets = tree_budgets(
                schedule,
                self.domain,
                self.privacy,
                depth,
                lazy=lazy,
                root_first=root_first,
                anchor=self._anchor(depth, rows),
            )
            smallest = min(budgets.values(), default=self.privacy.budget)
            if self.depth is not None or depth == 0 or self.privacy.scale(smallest) <= LARGEST_SCALE:
                break
            depth -= 1  # a tiny epsilon: fewer levels, so that the chosen scales are within reach
        for budget in budgets.values():
            check_scale(self.privacy.scale(budget))  # before anything is spent
        return budgets, lazy

    @property
    def _limit(self) -> int:
        """The deepest tree that may be chosen: it is held in memory."""
        return min(DEEPEST_DEPTH, self.domain.deepest, int(math.log2(self.max_cells)))

    def _anchor(self, depth: int, rows: int) -> int:
        """Return the level down to which T7 looks, for a number of rows, or of a depth that was given."""
        if self.depth is None and self.recipe.schedule == "ladder" and isinstance(self.domain, Box):
            return min(depth, ladder_anchor(self.domain, self.privacy, rows, self._limit))
        return anchor_of(self.recipe.schedule, self.domain, depth)

    def _bounds(
        self, scales: dict[int, Fraction], depth: int, rows: int, planned: int, *, lazy: bool
    ) -> tuple[Bound, ...]:
        """Return the bounds of this recipe; where the paper's do not apply, those of the paper's recipe beside them."""
        domain, privacy = self.domain, self.privacy
        rho = domain.radius(depth) if self.recipe.placement == "centre" else domain.diameter(depth)
        blue = self.recipe.inference == "blue" and not lazy
        estimated = self._estimated(lazy=lazy)
        bounds = []
        if all(level in scales for level in range(1, depth + 1)) and not blue:
            if not privacy.delta:  # the paper's constant is that of Laplace noise
                bounds.append(Bound("HVZ23", hvz(domain, scales, depth, rows), True, "the paper's, constant corrected"))
            bounds.append(Bound("T1", t1(domain, scales, rows, rho, law=self.law), True, "any comparable rule"))
        else:
            literal = useful_depth(domain, paper_depth(domain, privacy, rows, min(DEEPEST_DEPTH, domain.deepest)))
            theirs = tree_scales("every level", domain, privacy.pure, literal, lazy=False, root_first=False)
            about = f"of PMM.paper at its depth {literal}, for comparison"
            bounds.append(Bound("HVZ23", hvz(domain, theirs, literal, rows), False, about))
            bounds.append(Bound("T1", t1(domain, theirs, rows, domain.diameter(literal)), False, about))
        if self.recipe.rule == "isotonic" and isinstance(domain, Box):  # Integers may be cut unevenly: nothing proved
            bounds.append(
                Bound(
                    "T3",
                    t3(domain, scales, depth, rows, rho, estimated=estimated, law=self.law),
                    True,
                    "isotonic distribution function",
                )
            )
        if self.recipe.shrinkage == "groups" and not lazy:
            value = t6(domain, scales, depth, rows, rho, estimated=estimated, law=self.law)
            kept = self._kept(scales, depth, planned, lazy=lazy)
            about = "signed differences, shrunk, best linear inference" + ("" if kept is None else ", if always kept")
            bounds.append(Bound("T6", value, kept is None, about))
            if kept is not None:
                value = replace(kept, rows=rows).guarantee
                bounds.append(Bound("T7", value, True, "kept near what was measured, else the closest measure"))
        elif self.recipe.rule == "signed":
            value = t2(domain, scales, depth, rows, rho, blue=blue, estimated=estimated, law=self.law)
            if self.depth is None and blue and self.recipe.schedule != "every level":  # as the depth was chosen
                least = min(depth_guarantees(self.recipe.schedule, domain, privacy, rows, self._limit))
                value = max(value, PATIENCE * least)
            bounds.append(Bound("T2", value, True, "signed differences" + (", best linear inference" if blue else "")))
        if isinstance(domain, Box) and self.recipe.rule in ("signed", "isotonic"):
            value = t5(domain, scales, depth, rows, blue=blue, estimated=estimated, law=self.law)
            bounds.append(Bound("T5", value, False, "of the raw estimate, spread over cells, before it is consistent"))
        bounds.append(flat_bound(domain, privacy, rows, self.recipe.placement, root_first=self.rows is None))
        return tuple(bounds)

    def _kept(self, scales: dict[int, Fraction], depth: int, planned: int, *, lazy: bool) -> Kept | None:
        """Return how far from what was measured a release is kept, where the closest measure can take its place.

        The level that is compared follows the number that the depth follows: known before the levels are measured.
        """
        if self.recipe.shrinkage != "groups" or lazy or not isinstance(self.domain, Box):
            return None
        estimated = self._estimated(lazy=lazy)
        return t7(self.domain, scales, self._anchor(depth, planned), planned, estimated=estimated, law=self.law)

    # ------------------------------------------------------------------------------------------------- the gate

    def _release(self, source: Source, key: Key, progress: Progress | None) -> CellMeasure:
        counts: CellCounts | None = None
        root = self.privacy.budget * root_share(self.recipe.schedule, self.privacy)
        lazy = False
        if self._plan_is_fixed:
            plan = self._plan(self.rows or 1, "public")
            root = plan.budgets[0] if plan.budgets else root
            lazy = plan.evaluation == "lazy"
            (counts,) = source.count([Partition.of(self.domain, plan.depth)], progress)
            total = counts.total
        else:
            (everyone,) = source.count([Partition(())])
            total = everyone.total
        total, rows_are = public_total(total, self.privacy, root, self.law, key)
        estimated = self._estimated(lazy=lazy)
        if not estimated:
            total = max(1, total)
        # From here on `total` is public. The true number of rows is not read again.
        first = max(1, total)
        plan = self._plan(first, rows_are)
        if counts is None:
            (counts,) = source.count([Partition.of(self.domain, plan.depth)], progress)
        scales = dict(zip(plan.levels, plan.scales, strict=True))
        kept = self._kept(scales, plan.depth, self.rows or first, lazy=lazy)
        cells, mass, noisy = tree_masses(
            self.domain,
            counts,
            total,
            scales,
            plan.depth,
            self.recipe,
            plan.law,
            key,
            part=0,
            estimated=estimated,
            allowed=None if kept is None else (kept.allowed, kept.level),
            lazy=lazy,
            threads=thread_count(self.threads),
        )
        if estimated:
            plan = self._plan(int(mass.sum()), rows_are, planned=first)
        if progress is not None:
            progress("release", 1.0)
        return CellMeasure(
            domain=self.domain,
            cells=cells,
            mass=mass,
            plan=plan,
            recipe=self.recipe.to_json() | ({"inference": "none", "shrinkage": "none"} if lazy else {}),
            placement=self.recipe.placement,
            private=key.private,
            origin=Origin.of(key.release_id),
            noisy=noisy,
        )

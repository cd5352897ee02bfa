"""What the column tree will do and what it promises, as a value: made from public numbers alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Annotated, Any

import msgspec

from privmeasure.domains.steps import FEWER_STEPS, MOST_STEPS
from privmeasure.errors import ArgumentError, ReleaseFileError
from privmeasure.estimates.linear import level_variances, noise_variance
from privmeasure.noise.law import LAPLACE, LawName, agreement_variance, facts_of
from privmeasure.notebook import html_words
from privmeasure.plans.plan import (
    Bound,
    Plan,
    Real,
    RowsAre,
    Whole,
    about_ledger,
    about_rows,
    read_fields,
    without_usual_law,
)
from privmeasure.privacy import Privacy
from privmeasure.rounding import TINY

MOST_COLUMNS = 4096
"""More columns are a mistake, or a hand-edited file."""
MOST_AGREED = 128
"""Columns that may have agreements: their noise takes columns^3 steps, half a second here, and hides them beyond."""
MOST_PAIR_POWER = 0.9
"""Of cells in the weights of budgets: beyond, small tables would have more noise in all than large ones."""
FINER = 4
"""How many times as many groups on a side a finer table may have, and of a list of values many more."""
FINEST_CELLS = 1 << 16
"""Of one finer table, at most."""
BUDGETS = ("size_budget", "round_budget", "shape_budget", "tree_budget", "extra_budget", "agreements_budget")
"""The fields of a plan that are parts of its budget."""
DEEPEST_COLUMN = 22
"""The deepest level of a column: a file of finer cells would not be read again, nor would memory hold them."""
MOST_LISTED = 1 << 28
"""Cells of all columns together that a file may list, each once for its mass and once for each measured level."""


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """The split of one budget over columns, selection and pairs. Frozen; `to_json` and `from_json` are inverse.

    `columns[j]` is the plan of column j by itself: its privacy is what the column costs, its guarantee is the column's
    own. A column with a single value costs nothing. `pair_sides` are the sides of a square table of the tree, and of an
    extra table: a column has at most so many groups of its values there, a list of values more where its partner has
    fewer, and `list_room` times as many on top of it. No table has more cells than these squares, or with a list
    `list_room` times as many. Where that packs values of a list together, each pair has its usual table or a finer one
    (`finer_cells`), which e_z chooses. Pairs of one kind share their budgets by (cells of their tables)^`pair_power`;
    e_t and e_x are the means. Whole numbers are cut at equal parts of their range where they are at most `most_steps`.
    `agreement_pairs` have one noisy number each (`Agreements`): all pairs of columns, or none. `ledger` says after a
    release whether it was recorded.

    Notation:   D sensitivity    n rows    e_0 size, e_j column j, r rounds of e_s, t tree pairs of e_t, x extra of e_x,
                e_z the resolution of each, e_a all agreements
    Guarantee:  privacy   spent = e_0 + sum_j e_j + r e_s + t e_t + x e_x + (t + x) e_z + e_a <= epsilon, exactly
                accuracy  each column's own; the tables of chosen pairs as they were measured (`pair_error`), in groups
                          of values; nothing for tables that were made consistent, for pairs that were not chosen, nor
                          for the joint distribution
    """

    privacy: Privacy
    rows: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    rows_are: RowsAre
    size_budget: Fraction
    columns: tuple[Plan, ...]
    rounds: Whole
    round_budget: Fraction
    tree_pairs: Whole
    tree_budget: Fraction
    extra_pairs: Whole
    extra_budget: Fraction
    pair_sides: tuple[Whole, Whole]
    diameter: Real
    memory_bytes: Whole
    law: LawName = LAPLACE
    why: str = ""
    list_room: Annotated[int, msgspec.Meta(ge=1, le=2**16)] = 1
    pair_power: Annotated[float, msgspec.Meta(ge=0, le=MOST_PAIR_POWER)] = 0.0
    most_steps: Annotated[int, msgspec.Meta(ge=1, le=MOST_STEPS)] = FEWER_STEPS
    agreement_pairs: Whole = 0
    agreements_budget: Fraction = Fraction(0)
    shape_budget: Fraction = Fraction(0)
    ledger: str = field(default="", compare=False)
    compared: bool = field(default=False, compare=False)
    """Whether a constraint of the schema compares two columns: said in words, and not written."""

    def __post_init__(self) -> None:
        """Refuse columns whose release could not be read again: before anything is spent."""
        for j, column in enumerate(self.columns):
            if column.depth > DEEPEST_COLUMN:
                raise ArgumentError(
                    f"column {j} (from 0, a group counts once) needs cells of level {column.depth}, expected at most "
                    f"{DEEPEST_COLUMN}: a release could not hold them. Every step of a taxonomy takes levels of its "
                    "own, and missing values take one: use a flatter taxonomy, or group values."
                )
        if _listed_cells(self.columns) > MOST_LISTED:
            raise ArgumentError(
                f"the columns have {_listed_cells(self.columns):,} cells to list, expected at most {MOST_LISTED:,}: a "
                "release could not hold them. Choose fewer columns, or group values."
            )

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        return "columns"

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Bounds of the joint distribution: there are none. Each column has its own in `columns`."""
        return ()

    @property
    def best(self) -> Bound | None:
        """None: nothing is proved for the joint distribution."""
        return None

    @property
    def rival(self) -> Bound | None:
        """None: no other mechanism is compared."""
        return None

    @property
    def guarantee(self) -> float:
        """The diameter of the whole space: nothing is promised for the joint distribution."""
        return self.diameter

    @property
    def vacuous(self) -> bool:
        """True: the joint guarantee says only that both measures live in one space. See `columns[j].guarantee`."""
        return True

    @property
    def spent(self) -> Fraction:
        """The exact sum of everything that is spent: at most epsilon."""
        return (
            self.size_budget
            + sum((column.spent for column in self.columns), Fraction(0))
            + self.rounds * self.round_budget
            + self.tables * self.shape_budget
            + self.tree_pairs * self.tree_budget
            + self.extra_pairs * self.extra_budget
            + self.agreements_budget
        )

    @property
    def tables(self) -> int:
        """How many pairs have tables."""
        return self.tree_pairs + self.extra_pairs

    @property
    def shape_scale(self) -> Fraction:
        """The same as `selection_scale` for what two resolutions of a table are worth; 0 where none is chosen."""
        return self.privacy.choice_scale(self.shape_budget) if self.shape_budget else Fraction(0)

    @property
    def selection_scale(self) -> Fraction:
        """How far apart scores must be to be told apart, 2 D / e_s; 0 where nothing is selected."""
        return self.privacy.choice_scale(self.round_budget) if self.rounds else Fraction(0)

    @property
    def tree_scale(self) -> Fraction:
        """The noise scale of a table of the tree that has the mean budget; 0 where there are none."""
        return self.privacy.scale(self.tree_budget) if self.tree_pairs else Fraction(0)

    @property
    def extra_scale(self) -> Fraction:
        """The noise scale of an extra table that has the mean budget; 0 where there are none."""
        return self.privacy.scale(self.extra_budget) if self.extra_pairs else Fraction(0)

    @property
    def agreement_scale(self) -> Fraction:
        """The scale of the noise of agreements: D / e_a; with a delta that of each; 0 where there are none."""
        if not self.agreement_pairs:
            return Fraction(0)
        return agreement_scale(self.agreement_pairs, self.privacy, self.agreements_budget)

    @property
    def agreement_noise(self) -> float:
        """The standard deviation of the noise of each agreement; 0 where there are none."""
        return math.sqrt(agreement_variance(self.agreement_pairs, self.agreement_scale, self.law))

    @property
    def all_pairs(self) -> int:
        """How many pairs the active columns have."""
        return self.active * (self.active - 1) // 2

    def pair_scales(self, budget: Fraction, cells: Sequence[int]) -> list[Fraction]:
        """Return the noise scales of tables of one kind with so many cells, whose mean budget is given.

        Guarantee:  privacy   their budgets sum to `len(cells) * budget`, in exact fractions
        """
        weights = [table_weight(size, self.pair_power) for size in cells]
        return [self.privacy.scale(budget * len(cells) * weight / sum(weights)) for weight in weights]

    @property
    def pair_cells(self) -> tuple[int, int]:
        """The most cells of a table of the tree and of an extra table; 0 where there are none."""
        tree, extra = (min(self.list_room * side * side, self._most_cells) for side in self.pair_sides)
        return tree, extra

    @property
    def finer_cells(self) -> tuple[int, int]:
        """The same for finer tables, which are chosen where they tell more; 0 where none can be chosen."""
        if not self.shape_budget:
            return 0, 0
        tree, extra = (min(finest_cells(side, self.list_room), self._most_cells) for side in self.pair_sides)
        return tree, extra

    @property
    def _most_cells(self) -> int:
        return math.prod(sorted(column.cells for column in self.columns)[-2:])

    @property
    def active(self) -> int:
        """How many columns have more than one value: the others cost nothing, and no pair has them."""
        return sum(1 for column in self.columns if column.depth > 0)

    @property
    def parts(self) -> int:
        """Into how many parts the active columns fall that no pair joins: 1 for a whole tree."""
        return max(1, self.active - self.tree_pairs)

    @property
    def rows_error(self) -> float:
        """A bound of E|N - n|, in rows: of the released number of rows N, which all columns share, from the true n.

        N is the inverse-variance mean of the noisy size and of the totals of all columns, rounded: its standard
        deviation, and a half. 0 where the number of rows is public. Where the size is bought, it is the bound for the
        split of epsilon that was made.
        """
        return rows_error(
            self.privacy, self.size_budget, [dict(zip(c.levels, c.scales, strict=True)) for c in self.columns], self.law
        )

    @property
    def pair_error(self) -> tuple[float, float]:
        """Bounds of the expected total variation error of a tree table and of an extra table, as they were measured.

        It is half the l_1 distance of (noisy table) / N from (true table) / n, on the groups that earlier releases
        fixed. It may exceed 1: noisy tables have negative cells. A table that was made consistent has no bound but
        this and its own distance from the noisy table, which can be computed. Finer tables have `finer_error`.

        Notation:   m cells at most, M of any table of its kind, noise of scale s for the mean budget, n true rows, N
                    released rows: `rows`, xi the noise, p `pair_power`; r = 1 for a single pair
                    (r m s + rows_error) / (2 N), r = 1.004 * 2^(p/2) (M / m)^p
        Guarantee:  | noisy/N - true/n |_1 <= (|xi|_1 + |N - n|) / N, and E|xi|_1 <= r m s given all earlier releases:
                    docs/proofs/selection.md
        """
        return self._errors(self.pair_cells)

    @property
    def finer_error(self) -> tuple[float, float]:
        """The same for a finer table of the tree, and for a finer extra table; 0 where none can be chosen."""
        return self._errors(self.finer_cells)

    def _errors(self, cells: tuple[int, int]) -> tuple[float, float]:
        kinds = (self.tree_pairs, self.tree_scale), (self.extra_pairs, self.extra_scale)
        any_cells = map(max, self.pair_cells, self.finer_cells)
        tree, extra = (
            (uneven(self.pair_power, pairs, most / m) * m * facts_of(self.law, scale).size + self.rows_error)
            / (2 * self.rows)
            if pairs and m
            else 0.0
            for m, most, (pairs, scale) in zip(cells, any_cells, kinds, strict=True)
        )
        return tree, extra

    @property
    def trees(self) -> tuple[Plan, ...]:
        """The plans of the columns, each with a tree of its own."""
        return self.columns

    @property
    def joint(self) -> bool:
        """Nothing is promised for the joint distribution."""
        return False

    @property
    def expected_rows(self) -> int:
        """How many rows the release is expected to stand for."""
        return max(1, self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; fractions are written as "p/q"."""
        value = {f.name: getattr(self, f.name) for f in fields(self) if f.compare}
        for name in BUDGETS:
            value[name] = str(value[name])
        columns = [column.to_json() for column in self.columns]
        privacy, sides = self.privacy.to_json(), list(self.pair_sides)
        value |= {"privacy": privacy, "columns": columns, "pair_sides": sides}
        return {"mechanism": self.mechanism} | without_usual_law(value)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "ColumnPlan":
        """Read what `to_json` wrote; a file may have been edited, so everything is checked."""
        if value["mechanism"] != "columns" or not 1 <= len(value["columns"]) <= MOST_COLUMNS:
            raise ReleaseFileError("the plan is not one of columns")
        rest = {name: item for name, item in value.items() if name != "mechanism"}
        columns = tuple(Plan.from_json(column) for column in value["columns"])
        if any(column.depth > DEEPEST_COLUMN for column in columns) or _listed_cells(columns) > MOST_LISTED:
            raise ReleaseFileError("every column must have cells of a level that can be held")
        plan: ColumnPlan = read_fields(cls, rest, privacy=Privacy.from_json(value["privacy"]), columns=columns)
        plan._check()
        return plan

    def _check(self) -> None:
        """Refuse budgets that are not what the promise allows."""
        bought = [
            (self.rounds, self.round_budget),
            (self.tree_pairs, self.tree_budget),
            (self.extra_pairs, self.extra_budget),
            (self.agreement_pairs, self.agreements_budget),
        ]
        resolved = not self.shape_budget or self.tables > 0
        active, free = self.active, self.all_pairs - self.tree_pairs - self.extra_pairs
        if not (
            all(self.privacy.at(column.privacy.epsilon) == column.privacy for column in self.columns)
            and all((c.rows, c.rows_are, c.law) == (self.rows, self.rows_are, self.law) for c in self.columns)
            and all(column.mechanism == "pmm" and 0 not in column.levels for column in self.columns)
            and all((number == 0) == (budget == 0) for number, budget in bought)
            and min(1, active - 1) <= self.tree_pairs <= max(0, active - 1)
            and free >= 0
            and resolved
            and (self.extra_pairs == 0 or self.tree_pairs == active - 1)
            and self.rounds in ((0,) if active <= 2 else (self.tree_pairs + self.extra_pairs,))
            and not (self.privacy.rows_are_public and self.size_budget > 0)
            and self.agreement_pairs in ((0, self.all_pairs) if active <= MOST_AGREED else (0,))
            and self.law == self.privacy.law
            and self.spent <= self.privacy.budget
        ):
            raise ReleaseFileError("the budgets of the plan do not fit the privacy promise")

    def __str__(self) -> str:
        """Say it in words."""
        return "\n".join(
            [
                *self._spending(),
                *self._promises(),
                *about_rows(self.privacy, compared=self.compared),
                *about_ledger(self.ledger),
            ]
        )

    def __repr__(self) -> str:
        """Show the outline."""
        promise = f"{self.privacy.short}, {self.privacy.neighbours}"
        return f"ColumnPlan({promise}, {self.rows:,} rows, {len(self.columns)} columns, {self.tree_pairs} pairs)"

    def _repr_html_(self) -> str:
        """Show the words as a table, in a notebook."""
        return html_words(str(self), title="Plan")

    def _spending(self) -> list[str]:
        source = {"public": "public", "assumed": "assumed for this plan", "released": "released, with noise"}
        each = [float(column.spent) for column in self.columns if column.levels]
        lines = [
            f"privacy    {self.privacy.stated}, neighbours: {self.privacy.neighbours}{self.privacy.owner}",
            f"{self.privacy.counted:<10} {self.rows:,} ({source[self.rows_are]})",
            f"mechanism  a private tree of columns: {self.active} in all, {self.tree_pairs} pairs to join them, "
            f"beyond that {self.extra_pairs} (about {max(1, round(self.memory_bytes / 2**20)):,} MiB)",
        ]
        if self.why:
            lines.append(f"noise      {self.why}")
        if single := len(self.columns) - self.active:
            lines.append(
                f"           and {single} with a single value, which {'costs' if single == 1 else 'cost'} nothing"
            )
        if self.parts > 1:
            lines.append(f"           too few rows to link all columns: {self.parts} groups are independent")
        if self.size_budget:
            lines.append(f"measured   {'the number of rows':<18}  {self.privacy.unit} {float(self.size_budget):<7.4g}")
        if each:
            lines.append(
                f"measured   {f'columns: {len(each)}':<18}  {self.privacy.unit} {sum(each):<7.4g} "
                f"({min(each):.3g} to {max(each):.3g} each)"
            )
        if self.rounds:
            chosen = float(self.rounds * self.round_budget)
            lines.append(
                f"selected   {f'pairs: {self.rounds}':<18}  {self.privacy.unit} {chosen:<7.4g} "
                f"({float(self.round_budget):.3g} each)"
            )
        if self.shape_budget:
            lines.append(
                f"selected   {f'resolutions: {self.tables}':<18}  {self.privacy.unit} "
                f"{float(self.tables * self.shape_budget):<7.4g} ({float(self.shape_budget):.3g} each)"
            )
        kinds = (
            ("tree pairs", self.tree_pairs, self.tree_budget, self.tree_scale),
            ("extra pairs", self.extra_pairs, self.extra_budget, self.extra_scale),
        )
        lines += [
            f"measured   {f'{what}: {number}':<18}  {self.privacy.unit} {float(number * budget):<7.4g} "
            f"noise scale {'about ' * (self.pair_power > 0)}{float(scale):.3g} on at most {cells:,} cells each"
            + (f", or {finer:,} where more is told so" if finer > cells else "")
            for (what, number, budget, scale), cells, finer in zip(
                kinds, self.pair_cells, self.finer_cells, strict=True
            )
            if number
        ]
        if self.agreement_pairs:
            lines.append(
                f"measured   {f'agreements: {self.agreement_pairs}':<18}  {self.privacy.unit} "
                f"{float(self.agreements_budget):<7.4g} noise about {self.agreement_noise:.3g} on each number"
            )
        return lines

    def _promises(self) -> list[str]:
        own = [column for column in self.columns if column.levels]
        lines = []
        if own:
            said = [column.guarantee / column.diameter if column.diameter else 0.0 for column in own]
            vague = sum(1 for column in own if column.vacuous)
            lines.append(
                f"columns    expected W1 distance of each column at most {min(said):.3g} to {max(said):.3g} "
                "of its diameter" + (f"; for {vague} of {len(own)} columns the bound says nothing" if vague else "")
            )
        if self.tree_pairs:
            tree, extra = self.pair_error
            also = f", {extra:.3g} for an extra pair" if self.extra_pairs else ""
            if self.shape_budget:
                also += f",\n           of a finer table {max(self.finer_error):.3g}"
            lines.append(
                f"pairs      expected total variation error of a chosen pair's noisy table at most {tree:.3g}{also},\n"
                "           on groups of values; for the table that is made consistent from it nothing is proved, and\n"
                "           for other pairs nothing is promised. Rows have the released columns, to a row a cell, and\n"
                "           the tables as nearly as these agree: pair_distances tells how nearly"
            )
        lines.append("guarantee  nothing is promised for the joint distribution: each column has its own guarantee")
        return lines


def table_weight(cells: int, power: float) -> int:
    """Return the weight of the budget of a table: about cells^power, and never less for more cells.

    Cells are rounded down to half octaves, so that many tables share one noise scale.

    Examples:
        >>> [table_weight(cells, 0.3) for cells in (4, 5, 64, 256)], table_weight(64, 0.0)
        ([1552, 1552, 3566, 5405], 1024)
    """
    half_octaves = (cells * cells).bit_length() - 1
    return round(1024 * 2 ** (power * half_octaves / 2))


def agreement_scale(pairs: int, privacy: Privacy, budget: Fraction) -> Fraction:
    """Return the scale of the noise that a budget buys for the agreements of all pairs: see `agreement_variance`.

    Noise for rows of signs is made for all pairs together; Gaussian noise is bought for each.
    """
    return privacy.sum_scale(budget / pairs if privacy.delta else budget)


def uneven(power: float, pairs: int, larger: float = 1.0) -> float:
    """Return how many times the cells of a table its cells are, counted by its noise beside that of the mean budget.

    Other tables may be so many times `larger`, and take what they weigh. Weights of neighbouring half octaves differ by
    2^(power/2), and by what rounding of weights and scales may add.
    """
    return 1.004 * 2 ** (power / 2) * larger**power if power and pairs > 1 else 1.0


def finest_cells(side: int, room: int) -> int:
    """Return the most cells of a finer table, where others have at most `room` times `side`^2.

    Examples:
        >>> finest_cells(8, 2), finest_cells(64, 2)
        (2048, 65536)
    """
    return max(room * side * side, min(FINEST_CELLS, FINER**2 * room * side * side))


def _listed_cells(columns: Sequence[Plan]) -> int:
    """Return how many cells a file may list for columns: masses, and the noisy counts of every measured level."""
    return sum(column.cells * (1 + len(column.levels)) for column in columns)


def rows_error(
    privacy: Privacy, size: Fraction, columns: Sequence[Mapping[int, Fraction]], law: LawName = LAPLACE
) -> float:
    """Return a bound of E|N - n| for columns with noise of these scales: see `ColumnPlan.rows_error`.

    Trees with structural zeros know their totals no worse.
    """
    if privacy.rows_are_public:
        return 0.0
    known = 1 / noise_variance(privacy.scale(size), law) if size else 0.0
    for scales in filter(None, columns):
        measured = {level: noise_variance(scale, law) for level, scale in scales.items()}
        known += 1 / max(level_variances(measured, max(scales), blue=True)[0], TINY)
    return 1 / math.sqrt(known) + 0.5 if known else 0.0

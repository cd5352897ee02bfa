"""How the column tree splits its budget over columns, selection and pairs, and into how many cells. Public values only.

Constants were chosen on four real tables and seven simulated shapes; those marked (flat) matter by less than 3 %.
Shares are exact fractions: floats decide how large they are, never what they sum to.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from privmeasure.columns.spaces import finest_level
from privmeasure.domains import Categories, Domain, Finite, Nullable
from privmeasure.mechanisms.base import tree_plan
from privmeasure.mechanisms.bounds import t2
from privmeasure.mechanisms.schedule import choose_depth, level_weights, split_budget
from privmeasure.noise.laplace import LARGEST_SCALE
from privmeasure.plan import Bound, Plan, RowsAre
from privmeasure.privacy import Privacy

SIZE_SHARE = Fraction(1, 64)
"""Of epsilon, for a private number of rows: it only chooses resolutions, later the columns know the number better."""
SELECTION_SHARE = 0.05
"""Of what is left, for choosing pairs: few bits, large signals. (flat: 0.03 to 0.1)"""
COLUMNS_SHARE = (0.42, 0.5, 0.65)
"""For the columns: least, at `USUAL` rows a column and noise scale, most; a tenth less for ten times the rows."""
USUAL = 3500.0
SPLIT = 0.4
"""A column's budget grows with (cells that matter)^SPLIT: 1/2 is best for total variation, 1/4 for W1. (flat: .3-.5)"""
COARSE = 5
"""A number is measured on 32 equal cells of its range, which is what people look at, ..."""
COARSE_SHARE = Fraction(4, 5)
"""... with this part of its budget, and with the rest on fine cells ..."""
ROWS_A_CELL = 8
"""... that would hold this many noise scales of rows each, if rows were spread evenly; ..."""
DEEPEST = 12
"""... at most 4096 of them."""
DEEPEST_JOINT = 16
"""The same for a place or a group of columns, which has no coarse cells that everyone looks at."""
TREE_ROWS, EXTRA_ROWS = 3, 6
"""Noise scales of rows a cell of a pair: pairs of the tree, extra pairs."""
EXTRA_WEIGHT = Fraction(7, 10)
"""Budget of an extra pair over that of a tree pair. (flat: .7 to 1)"""
LEAST_CELLS = 150
"""There are extra pairs as long as every pair affords so many cells, ..."""
MOST_EXTRA = 1.5
"""... and at most so many a column: beyond, tables contradict each other."""
MOST_RANKS = 64
"""Rank cells of a column. (flat: 40 to 64)"""
MOST_PAIR_CELLS = 1 << 24
"""Cells of the tables of all pairs together, which are counted in one pass: more columns, fewer rank cells."""


def is_listed(space: Domain) -> bool:
    """Say whether the points of a column are a list of values that are measured one by one, whatever their number."""
    return isinstance(space.domain if isinstance(space, Nullable) else space, Categories | Finite)


def weight(space: Domain) -> float:
    """Return the weight of a column's budget: (cells that matter)^SPLIT, 0 for a single value.

    The number of cells is rounded to half octaves, so that many columns share one noise scale and its tables.

    Examples:
        >>> from privmeasure.domains import Box
        >>> weight(Categories(1)), weight(Categories(32)) == weight(Box([(0, 1)]))
        (0.0, True)
    """
    cells = space.size(finest_level(space))
    if cells == 1:
        return 0.0
    if not is_listed(space):
        cells = min(cells, space.width << COARSE)
    return float(2 ** (round(2 * math.log2(cells)) / 2 * SPLIT))


def column_budgets(space: Domain, budget: Fraction, privacy: Privacy, rows: int) -> dict[int, Fraction]:
    """Return the budget of every measured level of one column, the deepest last; their sum is the column's budget."""
    finest, above = finest_level(space), int(isinstance(space, Nullable))  # the cut between present and missing
    if is_listed(space):
        return {finest: budget}
    if space.width > 1:
        own = Privacy(budget, privacy.neighbours, privacy.rows_per_person)
        depth = max(1, choose_depth("sparse", space, own, rows, min(DEEPEST_JOINT, finest)))
        split = split_budget(budget, level_weights("sparse", space, depth, lazy=False))
        return split if _in_reach(privacy, *split.values()) else {depth: budget}
    wanted = min(2.0**DEEPEST, float(budget * rows / (privacy.sensitivity * ROWS_A_CELL)))
    coarse, fine = COARSE + above, math.ceil(math.log2(max(wanted, 1.0))) + above
    if finest <= coarse or fine <= coarse or not _in_reach(privacy, budget * (1 - COARSE_SHARE)):
        return {min(coarse, finest): budget}
    return {coarse: budget * COARSE_SHARE, min(fine, finest): budget * (1 - COARSE_SHARE)}


def _in_reach(privacy: Privacy, *budgets: Fraction) -> bool:
    return all(privacy.sensitivity / budget <= LARGEST_SCALE for budget in budgets)


@dataclass(frozen=True, slots=True)
class Split:
    """What is fixed before columns are measured: the budgets of every column's levels, of selection and of pairs."""

    size: Fraction
    columns: tuple[Mapping[int, Fraction], ...]
    selection: Fraction
    pairs: Fraction


def split_over(spaces: Sequence[Domain], privacy: Privacy, rows: int, *, buy_size: bool) -> Split:
    """Split epsilon for a public number of rows: given, or bought as the first thing (`buy_size`).

    Notation:   x = epsilon n / (D k) rows a column and noise scale
    """
    weights = {j: w for j, space in enumerate(spaces) if (w := weight(space)) > 0}
    k, none = len(weights), Fraction(0)
    if k == 0:  # nothing to tell about the values: all of it goes to the number of rows, if that is private
        size = none if privacy.rows_are_public else privacy.epsilon
        return Split(size, tuple({} for _ in spaces), none, none)
    size = privacy.epsilon * SIZE_SHARE if buy_size else none
    least, usual, most = COLUMNS_SHARE
    x = float(privacy.epsilon * rows / (privacy.sensitivity * k))
    columns = min(most, max(least, usual - 0.1 * math.log10(max(x, 1.0) / USUAL)))
    choice = SELECTION_SHARE if k > 2 else 0.0
    wanted = {0: columns, 1: choice, 2: 1 - columns - choice} if k > 1 else {0: 1.0}
    shares = split_budget(privacy.epsilon - size, {i: share for i, share in wanted.items() if share > 0})
    each = split_budget(shares[0], weights)
    budgets = (column_budgets(s, each[j], privacy, rows) if j in each else {} for j, s in enumerate(spaces))
    return Split(size, tuple(budgets), shares.get(1, none), shares.get(2, none))


@dataclass(frozen=True, slots=True)
class Pairs:
    """What is fixed once the number of rows is known well: how many pairs, their budgets and their cells."""

    tree: int
    extra: int
    round_budget: Fraction
    tree_budget: Fraction
    extra_budget: Fraction
    cells: tuple[int, int]
    ranks: int


def plan_pairs(sizes: Sequence[int], privacy: Privacy, split: Split, rows: int) -> Pairs:
    """Return the pairs of columns that have `sizes` values each, no constant ones, for a public number of rows."""
    k, none = len(sizes), Fraction(0)
    if k < 2:
        return Pairs(0, 0, none, none, none, (0, 0), 1)
    tree = k - 1
    afford = float(split.pairs * rows / (privacy.sensitivity * TREE_ROWS * LEAST_CELLS))
    most = min(int(MOST_EXTRA * k), k * (k - 1) // 2 - tree)
    extra = int(min(max((afford - tree) / float(EXTRA_WEIGHT), 0), most))
    if extra and not _in_reach(privacy, split.selection / (2 * (tree + extra)), EXTRA_WEIGHT * split.pairs / k / 3):
        extra = 0  # a tiny epsilon with very many rows: scales must stay within reach
    budget = split.pairs / (tree + extra * EXTRA_WEIGHT)
    each = budget, budget * EXTRA_WEIGHT
    enough = [float(e * rows / (privacy.sensitivity * r)) for e, r in zip(each, (TREE_ROWS, EXTRA_ROWS), strict=True)]
    ranks = most_ranks(sizes, int(min(max(enough[0] / 2, 2), MOST_RANKS)))
    cells = [int(min(max(number, 4), ranks**2)) for number in enough]  # two groups a side at least
    return Pairs(
        tree=tree,
        extra=extra,
        round_budget=split.selection / (tree + extra),
        tree_budget=budget,
        extra_budget=each[1] if extra else none,
        cells=(cells[0], cells[1] if extra else 0),
        ranks=ranks,
    )


def most_ranks(sizes: Sequence[int], wanted: int) -> int:
    """Return how many rank cells columns may have, so that the tables of all pairs stay within `MOST_PAIR_CELLS`.

    Examples:
        >>> most_ranks([1000] * 50, 64), most_ranks([1000] * 200, 64)
        (64, 29)
    """
    for ranks in range(wanted, 2, -1):
        kept = [min(size, ranks) for size in sizes]
        if (sum(kept) ** 2 - sum(size**2 for size in kept)) // 2 <= MOST_PAIR_CELLS:
            return ranks
    return 2


def column_plan(
    space: Domain, budgets: Mapping[int, Fraction], privacy: Privacy, rows: int, rows_are: RowsAre, rows_error: float
) -> Plan:
    """Return the plan of one column with its guarantee: T2 for its levels, and the error of the number of rows.

    `rows_error` bounds E|N - n|, of the number of rows N that all columns share: it moves as much mass by at most the
    diameter. The estimates descend from the best linear estimate of n, so that T2's variances are upper bounds.
    """
    depth = max(budgets, default=0)
    spent = sum(budgets.values(), Fraction(0))
    own = Privacy(spent, privacy.neighbours, privacy.rows_per_person) if spent else privacy
    scales = {level: privacy.sensitivity / budget for level, budget in budgets.items()}
    value = t2(space, scales, depth, rows, space.diameter(depth), blue=True) + rows_error * space.diameter(0) / rows
    about = "signed differences, best linear inference, the total of all columns"
    bounds = (Bound("T2", value, True, about),)
    return tree_plan(
        "pmm", space, own, budgets, rows=rows, rows_are=rows_are, depth=depth, bounds=bounds, memory_bytes=64 << depth
    )

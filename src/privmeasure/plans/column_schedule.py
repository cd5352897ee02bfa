"""How the column tree splits its budget over columns, selection and pairs, and into how many cells. Public values only.

What was found by trying is handed in as a `Tuning`. Shares are exact fractions: floats decide how large they are, never
what they sum to.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privmeasure.domains import Categories, Domain, Finite, Nullable
from privmeasure.domains.traits import finest_level
from privmeasure.noise.law import LARGEST_SCALE, SMALLEST_SCALE, LawName, agreement_variance
from privmeasure.plans.bounds import t2
from privmeasure.plans.columns import FINER, MOST_AGREED, agreement_scale, finest_cells, table_weight
from privmeasure.plans.plan import Bound, Plan, RowsAre, tree_plan
from privmeasure.plans.schedule import choose_depth, level_weights, split_budget
from privmeasure.plans.tuning import Shares, Tuning
from privmeasure.privacy import Privacy

MOST_PAIR_CELLS = 1 << 24
"""Cells of the tables of all pairs together, which are counted in one pass: more columns, fewer groups.

Tables of 2 by 2 are the smallest: beyond 2896 columns these are more, at most 2^25.
"""

LONG_LIST = 16
"""Values of a list up to which usual tables are good enough: a group has few of them, if any are packed at all."""

RUNG_STEP, RUNG_SHARES = 4, (Fraction(1, 5), Fraction(2, 5))
"""How much further down a place or a group of columns may be measured, for which share of its budget.

Values of a group lie in few of its cells, and where a state's airports are is seen far below the level that is best for
the guarantee, which does without what is further down. The larger share is taken where the guarantee has room for it.
"""
COLUMN_PATIENCE = 1.2
"""How many times the least T2 of all ways to measure a column that of the way that is taken may be."""
STATED, LISTED_STATED = 1.4, 1.25
"""How many times that least T2 the guarantee is, of a list of values the second, which has but one way.

What is left is how far the last estimate may be from the first. More raises the guarantee, less lets the first estimate
stand where a better one is at hand: errors are an eighth of T2, and what is gained is part of the error.
"""


def is_listed(space: Domain) -> bool:
    """Say whether the points of a column are a list of values that are measured one by one, whatever their number."""
    return isinstance(space.domain if isinstance(space, Nullable) else space, Categories | Finite)


def weight(space: Domain, tuning: Tuning) -> float:
    """Return the weight of a column's budget: (cells that matter)^split_power, 0 for a single value.

    The number of cells is rounded to half octaves, so that many columns share one noise scale and its tables.

    Examples:
        >>> from privmeasure.domains import Box
        >>> from privmeasure.plans.tuning import TUNED
        >>> weight(Categories(1), TUNED), weight(Categories(32), TUNED) == weight(Box([(0, 1)]), TUNED)
        (0.0, True)
    """
    cells = space.size(finest_level(space))
    if cells == 1:
        return 0.0
    if not is_listed(space):
        cells = min(cells, space.width << tuning.coarse_level)
    return float(2 ** (round(2 * math.log2(cells)) / 2 * tuning.split_power))


def column_budgets(
    space: Domain, budget: Fraction, privacy: Privacy, rows: int, *, tuning: Tuning
) -> dict[int, Fraction]:
    """Return the budget of every measured level of one column, the deepest last; their sum is the column's budget.

    Of the ways to spend it, the one that is wanted, or the nearest whose T2 is at most `COLUMN_PATIENCE` times the
    least.
    """
    ways, wanted = _ways(space, budget, privacy, rows, tuning)
    values = [first_guarantee(space, way, privacy, rows) for way in ways]
    good = [i for i, value in enumerate(values) if value <= COLUMN_PATIENCE * min(values)]
    return ways[min(good, key=lambda i: abs(i - wanted))]


def _ways(
    space: Domain, budget: Fraction, privacy: Privacy, rows: int, tuning: Tuning
) -> tuple[list[dict[int, Fraction]], int]:
    """Return how one column may be measured, from coarse to fine, and the place of the way that is wanted.

    More budget and more rows add ways and take none away.
    """
    finest, above = finest_level(space), int(isinstance(space, Nullable))  # the cut between present and missing
    if is_listed(space):
        return [{finest: budget}], 0
    if space.width > 1:
        limit = min(tuning.deepest_joint_level, finest)
        deepest = max(1, choose_depth("sparse", space, privacy.part(budget), rows, limit))
        splits = [split_budget(budget, level_weights("sparse", space, d, lazy=False)) for d in range(1, deepest + 1)]
        ways = [way if _in_reach(privacy, *way.values()) else {max(way): budget} for way in splits]
        finer = [_with_rung(way, share) for share in RUNG_SHARES for way in ways if max(way) + RUNG_STEP <= limit]
        ways += [way for way in finer if _in_reach(privacy, *way.values())]
        return sorted(ways, key=max), len(ways) - 1  # of ways to one depth, that with the largest rung comes last
    wanted = min(2.0**tuning.deepest_level, float(privacy.signal(budget, rows) / tuning.rows_per_cell))
    coarse, fine = tuning.coarse_level + above, math.ceil(math.log2(max(wanted, 1.0))) + above
    rest = budget * (1 - tuning.coarse_share)
    ways = [{min(coarse, finest): budget}]
    if _in_reach(privacy, rest):
        ways += [{coarse: budget - rest, level: rest} for level in range(coarse + 1, min(fine, finest) + 1)]
    return ways, len(ways) - 1


def _with_rung(way: Mapping[int, Fraction], share: Fraction) -> dict[int, Fraction]:
    """Return a way to measure a column that also has a level further down, for a share of its budget."""
    return {
        **{level: budget * (1 - share) for level, budget in way.items()},
        max(way) + RUNG_STEP: sum(way.values(), Fraction(0)) * share,
    }


def first_guarantee(space: Domain, budgets: Mapping[int, Fraction], privacy: Privacy, rows: int) -> float:
    """Return T2 of the first estimate of a column for a known number of rows, cells being two radii wide."""
    depth, scales = max(budgets, default=0), {level: privacy.scale(budget) for level, budget in budgets.items()}
    radius = space.radius(depth)
    return t2(space, scales, depth, rows, radius, blue=True, law=privacy.law) + radius


def _in_reach(privacy: Privacy, *budgets: Fraction) -> bool:
    return all(privacy.scale(budget) <= LARGEST_SCALE for budget in budgets)


@dataclass(frozen=True, slots=True)
class Split:
    """What is fixed before columns are measured: the budgets of every column's levels, of selection and of pairs."""

    size: Fraction
    columns: tuple[Mapping[int, Fraction], ...]
    selection: Fraction
    pairs: Fraction
    agreements: Fraction = Fraction(0)


def split_over(spaces: Sequence[Domain], privacy: Privacy, rows: int, *, buy_size: bool, tuning: Tuning) -> Split:
    """Split epsilon for a public number of rows: given, or bought as the first thing (`buy_size`).

    Notation:   x = epsilon n / (D k) rows per column and noise scale
    """
    weights = {j: w for j, space in enumerate(spaces) if (w := weight(space, tuning)) > 0}
    k, none = len(weights), Fraction(0)
    if k == 0:  # nothing to tell about the values: all of it goes to the number of rows, if that is private
        size = none if privacy.rows_are_public else privacy.budget
        return Split(size, tuple({} for _ in spaces), none, none)
    size = privacy.budget * tuning.size_share if buy_size else none
    x = float(privacy.signal(privacy.budget / k, rows))
    fewer = tuning.usual_rows / max(x, 1.0)
    columns = _share(tuning.columns_share, tuning.columns_slope, fewer)
    choice = tuning.selection_share if k > 2 else 0.0  # of two columns, that of the resolution of a list alone
    if k == 2 and any(is_listed(spaces[j]) and spaces[j].size(finest_level(spaces[j])) > LONG_LIST for j in weights):
        choice = tuning.selection_share * float(tuning.shape_share)
    left = 1 - columns - choice
    agreed = _agreement_share(k, privacy, privacy.budget - size, min(tuning.agreement_share, left / 3), rows, tuning)
    wanted = {0: columns, 1: choice, 2: left - agreed, 3: agreed} if k > 1 else {0: 1.0}
    shares = split_budget(privacy.budget - size, {i: share for i, share in wanted.items() if share > 0})
    each = split_budget(shares[0], weights)
    budgets = (
        column_budgets(s, each[j], privacy, rows, tuning=tuning) if j in each else {} for j, s in enumerate(spaces)
    )
    return Split(size, tuple(budgets), *(shares.get(i, none) for i in (1, 2, 3)))


def _agreement_share(k: int, privacy: Privacy, budget: Fraction, share: float, rows: int, tuning: Tuning) -> float:
    """Return the part of a budget for the agreements of k columns: the share that is given, or none."""
    if share == 0 or not 3 <= k <= MOST_AGREED:
        return 0.0
    pairs = math.comb(k, 2)
    scale = agreement_scale(pairs, privacy, budget * Fraction(share))
    enough = math.sqrt(agreement_variance(pairs, scale, privacy.law)) * tuning.agreement_rows <= rows
    return share if enough and scale <= LARGEST_SCALE else 0.0


def _share(shares: Shares, slope: float, fewer: float) -> float:
    """Return a share for so many times fewer rows than usual."""
    least, usual, most = shares
    return min(most, max(least, usual + slope * math.log10(fewer)))


@dataclass(frozen=True, slots=True)
class Pairs:
    """What is fixed once the number of rows is known well: how many pairs, their budgets and their groups."""

    tree: int
    extra: int
    round_budget: Fraction
    tree_budget: Fraction
    extra_budget: Fraction
    sides: tuple[int, int]
    power: float = 0.0
    shape_budget: Fraction = Fraction(0)
    agreements: int = 0
    agreements_budget: Fraction = Fraction(0)


def plan_pairs(spaces: Sequence[Domain], privacy: Privacy, split: Split, rows: int, *, tuning: Tuning) -> Pairs:
    """Return the pairs of columns of these spaces, no constant ones, for a public number of rows.

    Where tables leave no pair for agreements, their budget goes to the tables.
    """
    pairs = _plan_tables(spaces, privacy, split, rows, tuning=tuning)
    if not split.agreements:
        return pairs
    free = math.comb(len(spaces), 2) - pairs.tree - pairs.extra
    if free == 0:
        whole = replace(split, pairs=split.pairs + split.agreements)
        return _plan_tables(spaces, privacy, whole, rows, tuning=tuning)
    return replace(pairs, agreements=math.comb(len(spaces), 2), agreements_budget=split.agreements)


def _plan_tables(spaces: Sequence[Domain], privacy: Privacy, split: Split, rows: int, *, tuning: Tuning) -> Pairs:
    """Return the pairs that have tables."""
    k, none = len(spaces), Fraction(0)
    if k < 2:
        return Pairs(0, 0, none, none, none, (0, 0))
    fewest = min(k - 1, max(math.ceil(tuning.fewest_pairs * k), tuning.narrow_pairs))
    tree = min(k - 1, max(fewest, int(privacy.afford(split.pairs, rows, tuning.pair_rows))))
    most = min(int(tuning.most_extra * k), k * (k - 1) // 2 - tree) if tree == k - 1 else 0
    ratio = tuning.extra_weight
    extra = int(min(max((float(privacy.afford(split.pairs, rows, tuning.least_rows)) - tree) / float(ratio), 0), most))
    # a tiny epsilon with very many rows: scales must stay within reach
    if extra and not _in_reach(
        privacy, split.selection / (2 * (tree + extra)), ratio * split.pairs / (tree + extra * ratio)
    ):
        extra = 0
    if tree > fewest and not _in_reach(privacy, split.selection / (2 * tree), split.pairs / tree):
        tree, extra = fewest, 0
    budget = split.pairs / (tree + extra * ratio)
    wanted = [
        math.isqrt(int(privacy.signal(e, rows) / r))
        for e, r in zip((budget, budget * ratio), (tuning.tree_rows, tuning.extra_rows), strict=True)
    ]
    side = most_groups(spaces, min(max(wanted[0], 2), tuning.most_groups), tuning)
    shapes = split.selection * tuning.shape_share if k > 2 else split.selection
    if not (
        shapes
        and has_finer(spaces, side, tuning)
        and _in_reach(privacy, *(part / (2 * (tree + extra)) for part in (shapes, split.selection - shapes) if part))
    ):
        shapes = none
    if k == 2 and not shapes:  # nothing to choose
        budget += split.selection / (tree + extra * ratio)
    each = budget, budget * ratio
    # however the cells of the tables come out: no budget is further from the mean than this
    cells = finest_cells(side, tuning.list_room) if shapes else tuning.list_room * side * side
    apart = Fraction(table_weight(cells, tuning.pair_power), table_weight(1, 0.0))
    extremes = [privacy.scale(e * times) for e in each for times in (apart, 1 / apart)]
    return Pairs(
        tree=tree,
        extra=extra,
        round_budget=(split.selection - shapes) / (tree + extra) if k > 2 else none,
        shape_budget=shapes / (tree + extra),
        tree_budget=budget,
        extra_budget=each[1] if extra else none,
        sides=(side, min(max(wanted[1], 2), side) if extra else 0),
        power=tuning.pair_power if SMALLEST_SCALE <= min(extremes) <= max(extremes) <= LARGEST_SCALE else 0.0,
    )


def rank_cells(space: Domain, side: int, tuning: Tuning, *, finer: bool = False) -> int:
    """Return the most rank cells of a column, for tables of `side` groups by `side`, or for `finer` ones too.

    A list of values may have more where its partner has fewer: a table of 4 by 64 has the cells of one of 16 by 16, and
    values that have no order lose all that tells them apart when they are packed together.

    Examples:
        >>> from privmeasure.domains import Box
        >>> from privmeasure.plans.tuning import TUNED
        >>> [rank_cells(space, 16, TUNED) for space in (Categories(100), Categories(1000), Box([(0, 1)]))]
        [100, 128, 16]
        >>> [rank_cells(space, 8, TUNED, finer=True) for space in (Categories(1000), Box([(0, 1)]))]
        [1000, 32]
    """
    most = min(FINER * side, max(side, tuning.most_groups)) if finer else side
    if is_listed(space):
        most = max(most, tuning.longest_list if finer else min(side * side // 2, tuning.longest_list))
    return min(space.size(finest_level(space)), most)


def table_sides(cells: tuple[int, int], listed: tuple[bool, bool], side: int, room: int) -> tuple[int, int]:
    """Return the most groups of two columns in their table, whose cells are at most `side`^2, or `room` times as many.

    `cells` are their rank cells; a list takes what the other column leaves, and the room.

    Examples:
        >>> table_sides((4, 100), (True, True), 16, 1), table_sides((30, 100), (False, True), 16, 2)
        ((4, 64), (16, 32))
    """
    most = room * side * side
    if all(listed):
        short = min(*cells, math.isqrt(most))
        return (short, most // short) if cells[0] <= cells[1] else (most // short, short)
    first, second = (
        most // min(other, side) if long else side for other, long in zip(cells[::-1], listed, strict=True)
    )
    return first, second


def finer_sides(cells: tuple[int, int], listed: tuple[bool, bool], side: int, room: int, most: int) -> tuple[int, int]:
    """Return the most groups of two columns in the finer table: `FINER` times as many on a side, `most` if not a list.

    Examples:
        >>> finer_sides((20, 1000), (True, True), 16, 2, 64), finer_sides((52, 64), (True, False), 8, 2, 64)
        ((20, 409), (64, 32))
    """
    wide = min(FINER * side, max(side, most))
    return table_sides(cells, listed, wide, max(1, finest_cells(side, room) // (wide * wide)))


def has_finer(spaces: Sequence[Domain], side: int, tuning: Tuning) -> bool:
    """Say whether the table of some pair packs values of a list together that a finer one would tell apart.

    Short lists are no reason for them. Packed most is the list whose partner is longest. Tables of all pairs must stay
    within reach.
    """
    kept = [rank_cells(space, side, tuning, finer=True) for space in spaces]
    longest = sorted(range(len(spaces)), key=lambda j: -kept[j])
    for i in (i for i in longest if is_listed(spaces[i]) and kept[i] > LONG_LIST):
        for numbers in (False, True):
            j = next((j for j in longest if j != i and is_listed(spaces[j]) is not numbers), None)
            if j is None:
                continue
            pair, listed = (kept[i], kept[j]), (True, not numbers)
            packed = table_sides(pair, listed, side, tuning.list_room)[0]
            if packed < min(kept[i], finer_sides(pair, listed, side, tuning.list_room, tuning.most_groups)[0]):
                return pair_cells(spaces, side, tuning, finer=True) <= MOST_PAIR_CELLS
    return False


def most_groups(spaces: Sequence[Domain], wanted: int, tuning: Tuning) -> int:
    """Return how many groups columns may have, so that the tables of all pairs stay within `MOST_PAIR_CELLS`.

    Examples:
        >>> from privmeasure.domains import Box
        >>> from privmeasure.plans.tuning import TUNED
        >>> [most_groups([Box([(0, 1)])] * k, 64, TUNED) for k in (50, 200)]
        [64, 29]
    """
    return next((side for side in range(wanted, 2, -1) if pair_cells(spaces, side, tuning) <= MOST_PAIR_CELLS), 2)


def pair_cells(spaces: Sequence[Domain], side: int, tuning: Tuning, *, finer: bool = False) -> int:
    """Return the cells of the tables of all pairs of columns, on rank cells."""
    kept = [rank_cells(space, side, tuning, finer=finer) for space in spaces]
    return (sum(kept) ** 2 - sum(size**2 for size in kept)) // 2


def column_plan(
    space: Domain,
    budgets: Mapping[int, Fraction],
    privacy: Privacy,
    rows: int,
    rows_are: RowsAre,
    rows_error: float,
    *,
    planned: int,
    law: LawName,
    tuning: Tuning,
) -> Plan:
    """Return the plan of one column with its guarantee: T8 for its levels, and the error of the number of rows.

    `rows_error` bounds E|N - n|, of the number of rows N that all columns share: it moves as much mass by at most the
    diameter. The estimates descend from the best linear estimate of n, so that T2's variances are upper bounds.
    `planned` is the number of rows that the budgets were made for: what the last estimate may differ by from the first
    follows it, and so is known before the column is measured. The guarantee is stated by the least T2 of all ways to
    measure the column, and so falls with epsilon and with the rows; `rows_error` does not, where a place or a group of
    columns beside it is measured more finely.
    """
    depth = max(budgets, default=0)
    spent = sum(budgets.values(), Fraction(0))
    own = privacy.part(spent) if spent else privacy
    error = rows_error * space.diameter(0) / rows
    first, allowed = first_guarantee(space, budgets, privacy, rows) + error, 0.0
    if spent:
        ways, _ = _ways(space, spent, privacy, planned, tuning)
        least = min(first_guarantee(space, way, privacy, planned) for way in ways)
        stated = LISTED_STATED if is_listed(space) else STATED
        allowed = (stated * least - first_guarantee(space, budgets, privacy, planned)) * planned / rows
    bounds = (
        Bound("T2", first, False, "of the first estimate: signed differences, best linear inference"),
        Bound("T8", first + allowed, True, "all that was measured, kept near the first estimate"),
    )
    return tree_plan(
        "pmm",
        space,
        own,
        budgets,
        rows=rows,
        rows_are=rows_are,
        depth=depth,
        law=law,
        bounds=bounds,
        memory_bytes=64 << depth,
    )


def leeway(plan: Plan) -> float:
    """Return how far, in rows times distance, the last estimate of a column may be from its first one."""
    values = {bound.name: bound.value for bound in plan.bounds}
    return (values["T8"] - values["T2"]) * plan.rows

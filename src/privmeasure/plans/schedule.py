"""Which levels are measured and what each costs; how deep the tree is. From public values alone.

A schedule gives weights to levels; budgets are exact fractions of epsilon in proportion to them, so that their sum is
epsilon exactly. A level without weight is not measured.
"""

import math
from fractions import Fraction
from functools import lru_cache

from privmeasure.domains import Box, Domain
from privmeasure.noise.law import LARGEST_SCALE
from privmeasure.plans.bounds import t2, t7
from privmeasure.plans.recipe import ScheduleName
from privmeasure.privacy import Privacy

ROOT_SHARE = Fraction(1, 8)
"""What a private number of rows costs: a fixed public share of epsilon, spent before anything else is known."""

STEP = 4
"""Measured levels are at least this many levels apart: a finer ladder spends more than it learns."""

LAZY_GAP = 12
"""A lazy evaluation looks at 2^gap descendants of an occupied cell, so it needs measured levels closer together."""

DEEPEST_DEPTH = 40

DENOMINATOR = 1 << 20
"""Shares are multiples of 2^-20: within a thousandth of the optimum at any depth, and short to print."""

PATIENCE = 1.4
"""How many times the best guarantee of any depth that of the default may be, for the sake of data in few places.

So many times the best is what a plan states: it falls with epsilon and with the rows, whatever depth is taken.
"""

CHEAP_ROOT_SHARE = Fraction(1, 64)
"""The same where the number of rows is estimated from everything measured: what is bought first only sets the depth."""

LINE_STEP = 3
"""`STEP` of the ladder on a line, where the levels of a tree add up to less noise."""

FEWEST_CELLS = 8
"""The ladder measures no level of fewer cells, its deepest apart: a whole share for a few differences."""

LARGEST_LADDER_DEPTH = 18
"""The ladder goes no deeper by itself (262,144 cells, which are shrunk in the time that 10^6 rows take) ..."""

ROWS_PER_DEEP_CELL = 32
"""... unless there are so many rows to a cell."""

DEEPEST_RUNG = 16
"""An anchor has no rung below it where that would be deeper: its cells are small enough for any data."""

ROWS_PER_CELL, SPACE_ROWS_PER_CELL = 1.15, 0.6
"""The ladder's deepest cells hold so many rows a noise scale, were rows spread evenly; from three axes on the second.

There a round of cuts is three levels, the rung before is far too coarse for data in few places, and shrinkage takes
back most of what the deeper one costs even data. Where the depth changes, W1 of clusters is 0.4 to 1.0 of that at
1.15, of even data 1.0 to 1.2; with 0.3 one real table of three is 1.3 times as far off.
"""

FINE_SHARE, LINE_FINE_SHARE = Fraction(2, 5), Fraction(1, 10)
"""What the rungs below the anchor have of the budget together, on a line the second: for data in few places."""

LARGEST_DEFAULT_DEPTH = 21
"""The default never holds more than 2^21 cells; a `depth` that is given may go further."""


def sparse_levels(domain: Domain, depth: int, *, largest_gap: int | None = None) -> list[int]:
    """Return the measured levels of the default: from the leaves up, `STEP` apart, only where the diameter drops.

    With the l_infinity metric the cuts of one round share one diameter, so levels inside a round cannot pay.

    Examples:
        >>> from privmeasure.domains import Box
        >>> sparse_levels(Box([(0, 1)]), 12), sparse_levels(Box([(0, 1)] * 3), 12)
        ([4, 8, 12], [6, 12])
    """
    levels = [depth]
    for level in range(depth - 1, 1, -1):  # level 1 would spend a share on a single difference
        gap = levels[-1] - level
        drops = domain.diameter(level) < domain.diameter(level - 1)
        if (gap >= STEP and drops) or gap == largest_gap:
            levels.append(level)
    return levels[::-1]


def rungs(domain: Domain, limit: int) -> list[int]:
    """Return the levels that suit as the deepest: a ladder from the root down, `STEP` apart, where the diameter drops.

    The first rung has at most 8 cells where the space allows: what is lost at the top travels farthest. The level at
    which every cell is a single point is a rung as well.

    Examples:
        >>> from privmeasure.domains import Box
        >>> [rungs(Box([(0, 1)] * d), 20) for d in (1, 2, 3)]
        [[3, 7, 11, 15, 19], [2, 6, 10, 14, 18], [3, 9, 15]]
    """
    ladder: list[int] = []
    for level in range(1, limit + 1):
        if domain.diameter(level) < domain.diameter(level - 1):
            if len(ladder) == 1 and level <= 3:
                ladder = [level]
            elif not ladder or level >= ladder[-1] + STEP or domain.diameter(level) == 0:
                ladder.append(level)
    return ladder


def sparse_depth(domain: Domain, privacy: Privacy, rows: int, limit: int, *, schedule: ScheduleName = "sparse") -> int:
    """Return the default depth: the rung whose number of cells is nearest, in ratio, to epsilon n / D.

    So a cell of even data holds about one noise scale of rows. That is finer than even data need, but a tree loses
    little by being too deep, while data in few places lose much when it is too shallow. Two conditions come before:

    - Where no rung is within a factor of 8, the nearest level is taken.
    - The guarantee T2 must be at most `PATIENCE` times the best that any depth gives, by which the plan states it; else
      the nearest level where it is. Never beyond 2^21 cells, which would cost more time than 10^7 rows.

    Notation:   D sensitivity    n rows
    """
    limit = useful_depth(domain, min(limit, LARGEST_DEFAULT_DEPTH))
    wanted = min(max(1.0, signal_share(privacy) * rows), float(domain.size(limit)))

    def misfit(level: int) -> float:
        return abs(math.log2(domain.size(level) / wanted))

    rung = min((0, *rungs(domain, limit)), key=misfit)
    depth = min(range(limit + 1), key=misfit) if misfit(rung) > 3 else rung
    guarantees = depth_guarantees(schedule, domain, privacy, rows, limit)
    good = [level for level, value in enumerate(guarantees) if value <= PATIENCE * min(guarantees)]
    return min(good, key=lambda level: abs(level - depth))


def depth_guarantees(
    schedule: ScheduleName, domain: Domain, privacy: Privacy, rows: int, limit: int
) -> tuple[float, ...]:
    """Return T2 for every depth up to a limit: each falls with epsilon and with the rows, and so does the least."""

    def guarantee(level: int) -> float:
        scales = tree_scales(schedule, domain, privacy, level, lazy=False, root_first=True)
        estimated = schedule == "ladder" and not privacy.rows_are_public
        return t2(domain, scales, level, rows, domain.diameter(level), blue=True, estimated=estimated, law=privacy.law)

    return tuple(map(guarantee, range(useful_depth(domain, min(limit, LARGEST_DEFAULT_DEPTH)) + 1)))


def signal_share(privacy: Privacy) -> float:
    """Return 1 / (noise scale) if the whole budget went to one level: epsilon / D."""
    return 1 / float(privacy.scale(privacy.budget)) if privacy.delta else float(privacy.epsilon) / privacy.sensitivity


def on_a_line(domain: Domain) -> bool:
    """Whether cells become smaller as fast as they become more, as on a line: Delta_j does not grow."""
    return domain.total_diameter(min(8, domain.deepest)) <= domain.total_diameter(0)


def ladder_levels(domain: Domain, depth: int, anchor: int) -> list[int]:
    """Return the measured levels of the ladder: rungs from the depth up to the anchor, and from the anchor up.

    Rungs are 3 (on a line) or 4 levels apart or more, next to the anchor 3. All are levels where the diameter drops:
    inside a round of cuts a level cannot pay.

    Examples:
        >>> from privmeasure.domains import Box
        >>> [ladder_levels(Box([(0, 1)] * d), 12, 12) for d in (1, 2, 3)]
        [[3, 6, 9, 12], [4, 8, 12], [6, 12]]
        >>> [ladder_levels(Box([(0, 1)] * d), 15, 6) for d in (1, 2, 3)]
        [[3, 6, 9, 12, 15], [6, 10, 15], [6, 9, 15]]
    """
    levels, step = [depth], LINE_STEP if on_a_line(domain) else STEP
    for level in reversed(drops_of(domain, depth)):
        fits = levels[-1] - level >= step and not anchor < level < anchor + LINE_STEP
        if level < depth and (level == anchor or (fits and domain.size(level) >= FEWEST_CELLS)):
            levels.append(level)
    return levels[::-1]


def anchor_of(schedule: ScheduleName, domain: Domain, depth: int) -> int:
    """Return the anchor of a tree whose depth was given: the rung above, or the depth itself.

    An anchor is the level down to which T7 looks. What rungs below it are good for depends on the data.
    """
    if schedule != "ladder" or depth > DEEPEST_RUNG:
        return depth
    return [depth, *ladder_levels(domain, depth, depth)][-2]


@lru_cache(maxsize=64)  # a plan asks several times
def ladder_anchor(domain: Box, privacy: Privacy, rows: int, limit: int) -> int:
    """Return the anchor of the ladder: the level with the least guarantee, rungs below it left out of account.

    So more budget or more rows never have a larger guarantee: each anchor by itself gets better with both. Only levels
    where the diameter drops come into question, and the root.
    """
    largest = max(LARGEST_LADDER_DEPTH, (rows // ROWS_PER_DEEP_CELL).bit_length() - 1)
    limit = useful_depth(domain, min(limit, largest, LARGEST_DEFAULT_DEPTH))

    def guarantee(anchor: int) -> float:
        fine = rung_below(domain, anchor, limit)
        scales = tree_scales("ladder", domain, privacy, fine, lazy=False, root_first=True, anchor=anchor)
        reachable = all(scale <= LARGEST_SCALE for scale in scales.values())
        return t7(domain, scales, anchor, rows, law=privacy.law).guarantee if reachable else math.inf

    return min((0, *drops_of(domain, limit)), key=guarantee)


def drops_of(domain: Domain, limit: int) -> tuple[int, ...]:
    """Return the levels where the diameter drops: the ends of rounds of cuts."""
    return tuple(level for level in range(1, limit + 1) if domain.diameter(level) < domain.diameter(level - 1))


def rung_below(domain: Domain, anchor: int, limit: int) -> int:
    """Return the first rung below an anchor, or the anchor itself: at the root, and where cells are small enough."""
    limit = min(limit, DEEPEST_RUNG)
    return next((level for level in drops_of(domain, limit) if 0 < anchor <= level - LINE_STEP), anchor)


def ladder_depth(domain: Domain, privacy: Privacy, rows: int, limit: int) -> int:
    """Return the depth of the ladder: the level whose number of cells is nearest, in ratio, to epsilon n / (1.15 D).

    1.15 is `ROWS_PER_CELL`; from three axes on it is `SPACE_ROWS_PER_CELL`. Above epsilon = D it is n / 1.15: more
    cells would only cost roundings. There is a rung below the anchor, if not at the root or where cells are small
    enough for any data: a tree with shrinkage loses little by being too deep, and data in few places lose much when it
    is too shallow.

    Notation:   D sensitivity    n rows
    """
    if not isinstance(domain, Box):
        return sparse_depth(domain, privacy, rows, limit, schedule="ladder")
    anchor = ladder_anchor(domain, privacy, rows, limit)
    first, limit = rung_below(domain, anchor, limit), min(limit, LARGEST_LADDER_DEPTH)
    if first == anchor:
        return anchor
    each = ROWS_PER_CELL if domain.width < 3 else SPACE_ROWS_PER_CELL
    wanted = math.log2(max(1.0, min(1.0, signal_share(privacy)) * rows / each))
    return min((level for level in drops_of(domain, limit) if level >= first), key=lambda level: abs(level - wanted))


def paper_depth(domain: Domain, privacy: Privacy, rows: int, limit: int) -> int:
    """Return the depth that the paper chooses: log2(epsilon n) rounded down, one less in dimension 1.

    Dimension 1 is recognised by Delta_j not growing with the level.

    References: [HVZ23] Corollary 4.4
    """
    depth = max(0, math.floor(math.log2(max(1.0, float(privacy.epsilon) * rows))))
    if depth > 0 and domain.total_diameter(depth) <= domain.total_diameter(0):
        depth -= 1
    return min(depth, limit)


def flat_level(domain: Domain, privacy: Privacy, rows: int, most: int) -> int:
    """Return the level of a flat histogram: the finest with at most the wanted cells, where the diameter drops.

    Wanted are epsilon n / D cells, or on a line, where noise adds up along the way, (epsilon n / D)^(2/3).
    """
    wanted = max(1.0, signal_share(privacy) * rows)
    wanted = min(float(most), wanted ** (2 / 3) if on_a_line(domain) else wanted)
    levels = range(1, useful_depth(domain, min(domain.deepest, DEEPEST_DEPTH)) + 1)
    drops = [level for level in levels if domain.diameter(level) < domain.diameter(level - 1)]
    return max((level for level in drops if domain.size(level) <= wanted), default=0)


def useful_depth(domain: Domain, limit: int) -> int:
    """Return the first level whose cells are all single points, where splitting ends, or the limit."""
    return next((level for level in range(limit) if domain.diameter(level) == 0), limit)


def choose_depth(schedule: ScheduleName, domain: Domain, privacy: Privacy, rows: int, limit: int) -> int:
    """Return the depth of a schedule for a public number of rows (given, or released with noise)."""
    rules = {"ladder": ladder_depth, "sparse": sparse_depth, "every level": paper_depth}
    return rules[schedule](domain, privacy, rows, limit)


def level_weights(
    schedule: ScheduleName, domain: Domain, depth: int, *, lazy: bool, anchor: int | None = None
) -> dict[int, float]:
    """Return the weights of the measured levels below the root.

    ``every level``: sqrt(Delta_(j-1)), which minimises the paper's bound; ``sparse``: Delta_(j-1)^(1/4) on few levels;
    ``ladder``: that times the sixth root of the diameter of level j - 1, for shrinkage forgives noise in fine cells; a
    fixed share for all levels below the anchor.

    References: [HVZ23] equation (A.4), the optimal noise; docs/mathematics.md
    """
    if schedule == "ladder" and not lazy:
        anchor = anchor_of(schedule, domain, depth) if anchor is None else anchor
        levels = [level for level in ladder_levels(domain, depth, anchor) if level > 0]
        weights = {j: domain.total_diameter(j - 1) ** 0.25 * domain.diameter(j - 1) ** (1 / 6) for j in levels}
        share = float(LINE_FINE_SHARE if on_a_line(domain) else FINE_SHARE)
        above, below = (sum(w for j, w in weights.items() if (j > anchor) == fine) for fine in (False, True))
        return {j: w * (share / below if j > anchor else (1 - share) / above) for j, w in weights.items()}
    if schedule == "every level":
        levels, exponent = list(range(1, depth + 1)), 0.5
    else:
        levels, exponent = sparse_levels(domain, depth, largest_gap=LAZY_GAP if lazy else None), 0.25
    return {level: domain.total_diameter(level - 1) ** exponent for level in levels if level > 0}


def tree_budgets(
    schedule: ScheduleName,
    domain: Domain,
    privacy: Privacy,
    depth: int,
    *,
    lazy: bool,
    root_first: bool,
    anchor: int | None = None,
) -> dict[int, Fraction]:
    """Return the budget of every measured level: exact fractions whose sum is epsilon.

    Under "replace" the root is public and costs nothing. Under "add-remove" it costs `root_share` if it must be bought
    before the depth is known (`root_first`) and always in the default's schedules; the paper weighs it like the others.
    """
    weights = level_weights(schedule, domain, depth, lazy=lazy, anchor=anchor)
    if privacy.rows_are_public:
        return split_budget(privacy.budget, weights)
    if schedule == "every level" and not root_first:
        return split_budget(privacy.budget, {0: math.sqrt(domain.total_diameter(0)), **weights})
    root = privacy.budget * root_share(schedule, privacy, lazy=lazy)
    return {0: root} | split_budget(privacy.budget - root, weights)


def root_share(schedule: ScheduleName, privacy: Privacy, *, lazy: bool = False) -> Fraction:
    """Return what a private number of rows costs: less where it is estimated from everything measured.

    For a tiny epsilon the cheap price would be out of the sampler's reach.
    """
    cheap = schedule == "ladder" and not lazy
    reachable = cheap and privacy.scale(privacy.budget * CHEAP_ROOT_SHARE) <= LARGEST_SCALE
    return CHEAP_ROOT_SHARE if reachable else ROOT_SHARE


def tree_scales(
    schedule: ScheduleName,
    domain: Domain,
    privacy: Privacy,
    depth: int,
    *,
    lazy: bool,
    root_first: bool,
    anchor: int | None = None,
) -> dict[int, Fraction]:
    """Return the noise scale of every measured level: sensitivity / budget."""
    budgets = tree_budgets(schedule, domain, privacy, depth, lazy=lazy, root_first=root_first, anchor=anchor)
    return {level: privacy.scale(budget) for level, budget in budgets.items()}


def split_budget(epsilon: Fraction, weights: dict[int, float]) -> dict[int, Fraction]:
    """Split epsilon in proportion to weights, in exact fractions above 0 that sum to epsilon.

    The level of the largest weight (the deepest of them) takes what rounding leaves.

    Examples:
        >>> split_budget(Fraction(1), {1: 1.0, 2: 1.0, 3: 2.0})
        {1: Fraction(1, 4), 2: Fraction(1, 4), 3: Fraction(1, 2)}
    """
    if not weights:
        return {}
    total, largest = sum(weights.values()), max(weights, key=lambda level: (weights[level], level))
    shares = {level: max(1, int(DENOMINATOR * weight / total)) for level, weight in weights.items() if level != largest}
    shares[largest] = DENOMINATOR - sum(shares.values())
    return {level: epsilon * Fraction(share, DENOMINATOR) for level, share in sorted(shares.items())}

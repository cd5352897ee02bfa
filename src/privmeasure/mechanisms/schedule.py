"""Which levels are measured and what each costs; how deep the tree is. From public values alone.

A schedule gives weights to levels; budgets are exact fractions of epsilon in proportion to them, so that their sum is
epsilon exactly. A level without weight is not measured.
"""

import math
from fractions import Fraction

from privmeasure.domains import Domain
from privmeasure.mechanisms.recipe import ScheduleName
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

LARGEST_DEFAULT_DEPTH = 22
"""The default never holds more than 2^22 cells; a `depth` that is given may go further."""


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


def sparse_depth(domain: Domain, privacy: Privacy, rows: int, limit: int) -> int:
    """Return the default depth: the first level with at least epsilon n / D cells.

    So a cell of even data holds about one noise scale of rows: too fine to be seen, but the tree loses little by being
    too deep, while data in few places lose much when it is too shallow. If the diameter drops at one of the next two
    levels, the round of cuts is completed. Never beyond 2^22 cells, which cost more than they tell.

    Notation:   D sensitivity    n rows
    """
    wanted = float(privacy.epsilon) / privacy.sensitivity * rows
    limit = min(limit, LARGEST_DEFAULT_DEPTH)
    depth = 0
    while depth < limit and domain.diameter(depth) > 0 and domain.size(depth) < wanted:
        depth += 1
    for level in range(max(depth, 1), min(depth + 2, limit) + 1):
        if domain.diameter(level) < domain.diameter(level - 1):
            return level if depth else 0
    return depth


def paper_depth(domain: Domain, privacy: Privacy, rows: int, limit: int) -> int:
    """Return the depth of the paper's corollary: log2(epsilon n), one less in dimension 1.

    Dimension 1 is recognised by Delta_j not growing with the level.
    """
    depth = max(0, math.floor(math.log2(max(1.0, float(privacy.epsilon) * rows))))
    if depth > 0 and domain.total_diameter(depth) <= domain.total_diameter(0):
        depth -= 1
    return min(depth, limit)


def useful_depth(domain: Domain, limit: int) -> int:
    """Return the first level whose cells are all single points, where splitting ends, or the limit."""
    return next((level for level in range(limit) if domain.diameter(level) == 0), limit)


def choose_depth(schedule: ScheduleName, domain: Domain, privacy: Privacy, rows: int, limit: int) -> int:
    """Return the depth of a schedule for a public number of rows (given, or released with noise)."""
    rule = sparse_depth if schedule == "sparse" else paper_depth
    return rule(domain, privacy, rows, limit)


def level_weights(schedule: ScheduleName, domain: Domain, depth: int, *, lazy: bool) -> dict[int, float]:
    """Return the weights of the measured levels below the root.

    ``every level``: sqrt(Delta_(j-1)), which minimises the paper's bound; ``sparse``: Delta_(j-1)^(1/4) on few levels.

    References: [HVZ23] the remark on optimal noise (with its constant corrected); docs/mathematics.md
    """
    if schedule == "every level":
        levels, exponent = list(range(1, depth + 1)), 0.5
    else:
        levels, exponent = sparse_levels(domain, depth, largest_gap=LAZY_GAP if lazy else None), 0.25
    return {level: domain.total_diameter(level - 1) ** exponent for level in levels if level > 0}


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

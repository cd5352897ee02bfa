"""How a single column is cut: its space, the cell of missing values, the level of single points."""

from privmeasure.domains import Categories, Domain, Finite, Integers, Nullable, Steps
from privmeasure.domains.steps import MOST_STEPS

DEEPEST = 40
"""Cells of a column are never finer than this level."""


def column_space(factor: Domain, most_steps: int = MOST_STEPS) -> Domain:
    """Return the space that a factor of a table is measured on: whole numbers are cut at equal parts of their range.

    At most `most_steps` of them: a release says how many.

    Examples:
        >>> column_space(Nullable(Integers(0, 120)))
        Nullable(Steps(0, 120))
    """
    if isinstance(factor, Nullable):
        return Nullable(column_space(factor.domain, most_steps))
    if type(factor) is Integers and factor.count <= most_steps:
        return Steps(factor.low, factor.high)
    return factor


def is_ordered(space: Domain) -> bool:
    """Say whether cells that follow each other are near each other, so that grouping neighbours makes sense.

    Examples:
        >>> is_ordered(Categories(3)), is_ordered(Nullable(Steps(0, 9)))
        (False, True)
    """
    if isinstance(space, Nullable):
        return is_ordered(space.domain)
    return not (isinstance(space, Finite) or (isinstance(space, Categories) and not space.taxonomy))


def missing_cell(space: Domain, level: int) -> int | None:
    """Return the code of the cell of missing values at a level, or None where there is none.

    Examples:
        >>> missing_cell(Nullable(Steps(0, 9)), 3), missing_cell(Steps(0, 9), 3)
        (4, None)
    """
    return 1 << (level - 1) if isinstance(space, Nullable) and level > 0 else None


def finest_level(space: Domain) -> int:
    """Return the first level whose cells are single points, or the deepest that is used.

    Examples:
        >>> finest_level(Steps(0, 120)), finest_level(Categories(5))
        (7, 3)
    """
    limit = min(space.deepest, DEEPEST)
    return next((level for level in range(limit) if space.diameter(level) == 0), limit)

"""Whether facts leave any row at all: a search over the few kinds of values that facts tell apart."""

import math
from collections.abc import Sequence

import numpy as np

from privmeasure.conditions.sets import Condition, Fact, part_of
from privmeasure.domains import Domain, Nullable, Product
from privmeasure.domains.traits import finest_level

FactPlace = tuple[int, int]
"""A factor of the table and a coordinate of it: columns of a group take their values independently of each other."""

MOST_SEARCHED = 100_000
"""Of the search. Beyond it facts are taken to be possible: rows are checked in any case."""


def some_row(facts: Sequence[Fact], domain: Product) -> bool:
    """Say whether a row exists that contradicts no fact.

    Examples:
        >>> from privmeasure.domains import Categories
        >>> every = [Condition(j, 0, ((0.0, 1.0),)) for j in range(2)]
        >>> some_row([(every[0], every[1])], Product([Categories(2), Categories(2)]))
        False
    """
    columns = sorted({_place(condition) for fact in facts for condition in fact})
    kinds = [
        _kinds(domain.factors[place[0]], place[1], [c for fact in facts for c in fact if _place(c) == place])
        for place in columns
    ]
    steps = 0

    def search(chosen: dict[FactPlace, frozenset[Condition]]) -> bool:
        nonlocal steps
        steps += 1
        if steps > MOST_SEARCHED or len(chosen) == len(columns):
            return True
        for kind in kinds[len(chosen)]:
            row = chosen | {columns[len(chosen)]: kind}
            if not any(_holds(one, row) and _holds(two, row) for one, two in facts) and search(row):
                return True
        return False

    return search({})


def _place(condition: Condition) -> FactPlace:
    return condition.column, condition.coordinate


def _holds(condition: Condition, row: dict[FactPlace, frozenset[Condition]]) -> bool:
    return condition in row.get(_place(condition), frozenset())


def _kinds(factor: Domain, coordinate: int, conditions: Sequence[Condition]) -> set[frozenset[Condition]]:
    """Return which sets of the conditions a value of one column can satisfy together."""
    _, space, at = part_of(factor, coordinate)
    inner = space.domain if isinstance(space, Nullable) else space
    low, high = (side[0] for side in inner.extent(np.zeros(1, np.uint64), 0))
    edges = [edge for c in conditions for pair in c.intervals for edge in pair]
    near = [
        near for e in edges for near in (e, e - 1, e + 1, math.nextafter(e, -math.inf), math.nextafter(e, math.inf))
    ]
    points = np.tile(low, (len(near) + 2, 1))
    points[:, at] = np.clip([*near, low[at], high[at]], low[at], high[at])
    level = finest_level(inner)
    if inner.diameter(level) == 0:  # the points that there are
        points = inner.centre(inner.locate(points, level), level)
    values = points[:, at]
    if isinstance(space, Nullable):
        values = np.append(values, np.nan)
    # a condition counts coordinates in its factor, of which the others do not matter here
    rows = np.full((len(values), factor.width), np.nan)
    rows[:, coordinate] = values
    held = np.array([condition.holds(rows) for condition in conditions]).T
    kinds = {frozenset(c for c, yes in zip(conditions, row, strict=True) if yes) for row in held}
    return kinds if inner.width == 1 else kinds | {frozenset()}  # of a place not all kinds were tried

"""Whether facts leave any row at all: a search over the few kinds of values that facts tell apart."""

import math
from collections.abc import Sequence

import numpy as np

from privmeasure.conditions.sets import Condition, Fact, part_of
from privmeasure.domains import Domain, Nullable, Product
from privmeasure.domains.traits import finest_level

FactPlace = tuple[int, int]
"""A factor of the table and a coordinate of it: columns of a group take their values independently of each other."""

MOST_SEARCHED = 1_000_000
"""The most facts that the search compares with a choice. Beyond it facts are taken to be possible: rows are checked."""
MOST_COMPARED = 3_000_000
"""The most values times conditions of a column that are tried; beyond it facts are taken to be possible, too."""
EDGES = 10
"""Values that are tried for each interval: near its two ends."""


def some_row(facts: Sequence[Fact], domain: Product) -> bool:
    """Say whether a row exists that contradicts no fact.

    Examples:
        >>> from privmeasure.domains import Categories
        >>> every = [Condition(j, 0, ((0.0, 1.0),)) for j in range(2)]
        >>> some_row([(every[0], every[1])], Product([Categories(2), Categories(2)]))
        False
    """
    named: dict[FactPlace, dict[Condition, None]] = {}
    for condition in (condition for fact in facts for condition in fact):
        named.setdefault(_place(condition), {})[condition] = None
    if sum(len(those) * EDGES * sum(len(c.intervals) for c in those) for those in named.values()) > MOST_COMPARED:
        return True
    columns = sorted(named)
    kinds = [_kinds(domain.factors[place[0]], place[1], list(named[place])) for place in columns]
    number = {place: k for k, place in enumerate(columns)}
    earlier: list[list[tuple[int, Condition, Condition]]] = [[] for _ in columns]  # facts, at the later of two columns
    for fact in facts:
        one, two = sorted(fact, key=_place)
        earlier[number[_place(two)]].append((number[_place(one)], one, two))

    chosen: list[frozenset[Condition]] = []
    choices, steps = [iter(kinds[0])], 0
    while choices:
        kind = next(choices[-1], None)
        if kind is None:  # no value of this column goes with those of the columns before it: change the last of them
            choices.pop()
            del chosen[-1:]
            continue
        steps += 1 + len(earlier[len(chosen)])
        if steps > MOST_SEARCHED:
            return True
        chosen.append(kind)
        if any(one in chosen[i] and two in kind for i, one, two in earlier[len(chosen) - 1]):
            chosen.pop()
        elif len(chosen) == len(columns):
            return True
        else:
            choices.append(iter(kinds[len(chosen)]))
    return False


def _place(condition: Condition) -> FactPlace:
    return condition.column, condition.coordinate


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
    kinds = {frozenset(conditions[i] for i in np.flatnonzero(row).tolist()) for row in np.unique(held, axis=0)}
    return kinds if inner.width == 1 else kinds | {frozenset()}  # of a place not all kinds were tried

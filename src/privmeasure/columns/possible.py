"""Whether facts leave any row at all: a search over the few kinds of values that facts tell apart."""

import math
from collections.abc import Sequence

import numpy as np

from privmeasure.columns.conditions import Condition, Fact
from privmeasure.columns.spaces import finest_level
from privmeasure.domains import Domain, Nullable, Product

MOST_STEPS = 100_000
"""Of the search. Beyond it facts are taken to be possible: rows are checked in any case."""


def some_row(facts: Sequence[Fact], domain: Product) -> bool:
    """Say whether a row exists that contradicts no fact.

    Examples:
        >>> from privmeasure.domains import Categories
        >>> every = [Condition(j, 0, ((0.0, 1.0),)) for j in range(2)]
        >>> some_row([(every[0], every[1])], Product([Categories(2), Categories(2)]))
        False
    """
    columns = sorted({condition.column for fact in facts for condition in fact})
    kinds = {j: _kinds(domain.factors[j], [c for fact in facts for c in fact if c.column == j]) for j in columns}
    steps = 0

    def search(chosen: dict[int, frozenset[Condition]]) -> bool:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS or len(chosen) == len(columns):
            return True
        j = columns[len(chosen)]
        for kind in kinds[j]:
            row = chosen | {j: kind}
            if not any(_holds(one, row) and _holds(two, row) for one, two in facts) and search(row):
                return True
        return False

    return search({})


def _holds(condition: Condition, row: dict[int, frozenset[Condition]]) -> bool:
    return condition in row.get(condition.column, frozenset())


def _kinds(space: Domain, conditions: Sequence[Condition]) -> set[frozenset[Condition]]:
    """Return which sets of the conditions a value of the column can satisfy together; the fewest first matter most."""
    inner = space.domain if isinstance(space, Nullable) else space
    low, high = (side[0] for side in inner.extent(np.zeros(1, np.uint64), 0))
    level = finest_level(inner)
    single = inner.diameter(level) == 0
    values: list[list[float]] = [[] for _ in range(inner.width)]
    for at in range(inner.width):
        edges = [edge for c in conditions if c.coordinate == at for pair in c.intervals for edge in pair]
        near = [
            near for e in edges for near in (e, e - 1, e + 1, math.nextafter(e, -math.inf), math.nextafter(e, math.inf))
        ]
        values[at] = [float(np.clip(v, low[at], high[at])) for v in [*near, low[at], high[at]]]
    tried = [
        np.array([[*low[:at].tolist(), v, *low[at + 1 :].tolist()]]) for at in range(inner.width) for v in values[at]
    ]
    points = np.concatenate(tried)
    if single:  # the points that there are
        points = inner.centre(inner.locate(points, level), level)
    if isinstance(space, Nullable):
        points = np.concatenate([points, np.full((1, space.width), np.nan)])
    held = np.array([condition.holds(points) for condition in conditions]).T
    kinds = {frozenset(c for c, yes in zip(conditions, row, strict=True) if yes) for row in held}
    return kinds if inner.width == 1 else kinds | {frozenset()}  # of a group not all kinds were tried

"""Conditions on columns in the terms of points, and the facts made of two of them. Public: what a user asks or knows.

A condition is a set of values of one column: closed intervals of its points, and perhaps missing. Comparisons are never
true of a missing value, as in SQL.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from privmeasure.domains import Bools, Domain, Nullable, Points, Product
from privmeasure.errors import ReleaseFileError

Interval = tuple[float, float]
MOST_INTERVALS = 1 << 20

CELLS_AT_A_TIME = 1 << 16


@dataclass(frozen=True)
class Condition:
    """The values of one column that are meant. `column` is a factor of the table, `coordinate` one of its columns.

    Examples:
        >>> adults = Condition(0, 0, ((18.0, 120.0),))
        >>> adults.holds(np.array([[17.0], [18.0], [np.nan]]))
        array([False,  True, False])
    """

    column: int
    coordinate: int
    intervals: tuple[Interval, ...]
    missing: bool = False

    def holds(self, points: Points) -> Bools:
        """Say which points of the factor are meant."""
        values = points[:, self.coordinate]
        return self._in_intervals(values, values) | (np.isnan(values) & self.missing)

    def _in_intervals(self, low: Points, high: Points) -> Bools:
        """Say which of the ranges [low, high] lie in one interval."""
        if not self.intervals:
            return np.zeros(len(low), bool)
        starts, ends = np.array(self.intervals).T
        place = np.maximum(np.searchsorted(starts, low, side="right") - 1, 0)
        return np.asarray((starts[place] <= low) & (high <= ends[place]), bool)

    def _meets_intervals(self, low: Points, high: Points) -> Bools:
        """Say which of the ranges [low, high] share a point with an interval."""
        if not self.intervals:
            return np.zeros(len(low), bool)
        starts, ends = np.array(self.intervals).T
        place = np.minimum(np.searchsorted(ends, low), len(ends) - 1)  # the first interval that is not all below
        return np.asarray((starts[place] <= high) & (low <= ends[place]), bool)

    def cells(self, space: Domain, level: int) -> tuple[Bools, Bools]:
        """Return which cells of a level may hold a point that is meant, and which hold no other points.

        Where cells mix missing and present values all are possible and none is certain.
        """
        possible, certain = np.ones(1 << level, bool), np.zeros(1 << level, bool)
        if mixes(space, self.coordinate, level):
            return possible, certain
        for start in range(0, 1 << level, CELLS_AT_A_TIME):
            codes = np.arange(start, min(start + CELLS_AT_A_TIME, 1 << level), dtype=np.uint64)
            there = space.exists(codes, level)
            low, high = (side[:, self.coordinate] for side in space.extent(codes[there], level))
            nothing = np.isnan(low) & self.missing
            here = slice(start, start + len(codes))
            possible[here], certain[here] = False, False
            possible[here][there] = self._meets_intervals(low, high) | nothing
            certain[here][there] = self._in_intervals(low, high) | nothing
        return possible, certain

    def both(self, other: "Condition") -> "Condition":
        """Return the values that this and another condition on the same column mean."""
        pairs, mine, its = [], list(self.intervals), list(other.intervals)
        i = j = 0
        while i < len(mine) and j < len(its):  # both are sorted, and the interval that ends first meets no other
            low, high = max(mine[i][0], its[j][0]), min(mine[i][1], its[j][1])
            if low <= high:
                pairs.append((low, high))
            if mine[i][1] <= its[j][1]:
                i += 1
            else:
                j += 1
        return Condition(self.column, self.coordinate, tuple(pairs), self.missing and other.missing)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON value."""
        return {
            "column": self.column,
            "coordinate": self.coordinate,
            "intervals": [list(pair) for pair in self.intervals],
            "missing": self.missing,
        }

    @classmethod
    def from_json(cls, value: Any, domain: Product) -> "Condition":
        """Read what `to_json` wrote; everything is checked."""
        match value:
            case {"column": column, "coordinate": at, "intervals": list(pairs), "missing": bool(missing)} if (
                type(column) is type(at) is int  # true and false are whole numbers of Python, and no columns
                and 0 <= column < len(domain.factors)
                and 0 <= at < domain.factors[column].width
                and len(pairs) <= MOST_INTERVALS
                and all(map(_is_interval, pairs))
                and all(a[1] < b[0] for a, b in pairwise(pairs))
            ):
                return cls(column, at, tuple((float(low), float(high)) for low, high in pairs), missing)
        raise ReleaseFileError("a fact must be two conditions on columns of the table")


def _is_interval(pair: Any) -> bool:
    """Say whether a JSON value is a list of two finite numbers, the lower one first."""
    numbers = isinstance(pair, list) and len(pair) == 2 and all(type(end) in (int, float) for end in pair)
    return numbers and -sys.float_info.max <= pair[0] <= pair[1] <= sys.float_info.max


Fact = tuple[Condition, Condition]
"""Two conditions on different columns, perhaps of one group, that never hold together."""


def part_of(space: Domain, coordinate: int) -> tuple[int, Domain, int]:
    """Return the factor of a product that a coordinate lies in: its number, itself, and the coordinate in it.

    A space that is no product is its own factor.
    """
    if not isinstance(space, Product):
        return 0, space, coordinate
    i = next(i for i, place in enumerate(space.columns) if coordinate < place.stop)
    return i, space.factors[i], coordinate - space.columns[i].start


def mixes(space: Domain, coordinate: int, level: int) -> bool:
    """Say whether a cell of a level holds missing and present values of a coordinate: its part was not cut yet."""
    if not isinstance(space, Product):
        return isinstance(space, Nullable) and level == 0
    i, factor, at = part_of(space, coordinate)
    return mixes(factor, at, space.cuts(level)[i])


def apart(facts: Sequence[Fact], spaces: Sequence[Domain]) -> dict[int, Any]:
    """Return for each column that a fact names the function that gives, for a level, the cells that facts tell apart.

    No group of cells then straddles what a fact is about. Facts inside one group of columns need no such thing: its
    cells lose their mass one by one.
    """
    named: dict[int, list[Condition]] = {}
    for condition in (condition for fact in facts for condition in fact if fact[0].column != fact[1].column):
        named.setdefault(condition.column, []).append(condition)

    return {column: partial(_inside, conditions, spaces[column]) for column, conditions in named.items()}


def _inside(conditions: Sequence[Condition], space: Domain, level: int) -> list[Bools]:
    """Return for each condition which cells of a level lie inside it."""
    return [condition.cells(space, level)[1] for condition in conditions]


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Return the values that all of some conditions on one column mean; two by two, so that few are long."""
    while len(conditions) > 1:
        pairs = zip(conditions[::2], conditions[1::2], strict=False)
        conditions = [one.both(two) for one, two in pairs] + list(conditions[len(conditions) // 2 * 2 :])
    return conditions[0]


def by_column(conditions: Sequence[Condition]) -> Mapping[int, tuple[Condition, ...]]:
    """Return for each factor that is named all that is said of it: one condition for each of its columns."""
    found: dict[int, dict[int, Condition]] = {}
    for condition in conditions:
        said, at = found.setdefault(condition.column, {}), condition.coordinate
        said[at] = said[at].both(condition) if at in said else condition
    return {column: tuple(said.values()) for column, said in found.items()}

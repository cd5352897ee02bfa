"""Orders between two columns that no row has, such as "discharged < admitted". Public: what a user knows.

A fact of two conditions forbids a product of two sets; an order is no such thing. It compares values as they are
written, so it is handed the functions that give them: points alone do not tell how a value is rounded.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.conditions.sets import CELLS_AT_A_TIME, Fact, mixes
from privmeasure.domains import Bools, Cells, Domain, Floats, Points, Product

WrittenAs = Callable[[Floats], Sequence[NDArray[Any]]]
"""From points of a column to its values as they are written: numbers, in every form in which they may be compared."""
Ranges = tuple[Floats, Floats]
"""The lowest and the highest points of some cells."""

ENDS = 0.2
"""The share of a range of values at either end that does not count when it is decided whether rows can keep an order.

If only the ends of two cells keep an order, a random point of them hardly ever does. So in every pair of cells that is
allowed, at least one in 1 / ENDS^2 = 25 points keeps it. Fixed, as files do not hold it.
"""

COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}


@dataclass(frozen=True, eq=False)
class ColumnOrder:
    """What never holds: the value of `one` compared by `sign` with that of `two` plus a `shift`.

    Both are a factor of the table and a coordinate of it. Of a missing value it never holds, as in SQL. `steady` says
    that values grow with points.

    Examples:
        >>> exact = lambda points: [points]
        >>> order = ColumnOrder((0, 0), (1, 0), "<", 0, (exact, exact))
        >>> order.broken(np.array([1.0, 3.0, np.nan]), np.array([2.0, 2.0, 2.0]))
        array([ True, False, False])
    """

    one: tuple[int, int]
    two: tuple[int, int]
    sign: str
    shift: float
    values: tuple[WrittenAs, WrittenAs]
    steady: bool = True

    def broken(self, one: Floats, two: Floats) -> Bools:
        """Say which rows break it, by their points in the two columns."""
        wrong = self._holds(*(of(points) for of, points in zip(self.values, (one, two), strict=True)))
        return np.asarray(wrong & ~np.isnan(one) & ~np.isnan(two), bool)

    def certain(self, one: Ranges, two: Ranges, *, every_pair: bool = False) -> Bools:
        """Say which ranges of the two columns have no point that keeps it: side by side, or every one with every one.

        Where values do not grow with points, nothing is certain.
        """
        high = self.sign in ("<", "<=")
        x, y = one[high], two[not high]  # the points that are likeliest to keep it
        found = [list(of(points)) for of, points in zip(self.values, (x, y), strict=True)]
        missing = np.isnan(x), np.isnan(y)
        if every_pair:
            found[0], missing = [form[:, None] for form in found[0]], (missing[0][:, None], missing[1])
        there = np.asarray(~missing[0] & ~missing[1], bool)
        if not self.steady or self.sign == "=":
            return np.zeros(there.shape, bool)
        return np.asarray(self._holds(*found) & there, bool)

    def _holds(self, one: Sequence[NDArray[Any]], two: Sequence[NDArray[Any]]) -> Any:
        """Say where the comparison is true, in any form of the values and however doubles are added: none is to be."""
        compare, shift, wrong = COMPARE[self.sign], self.shift, np.bool_(False)
        with np.errstate(all="ignore"):
            for x, y in product(one, two):
                wrong = wrong | compare(x, y + shift)
                if shift and not np.issubdtype(np.result_type(x, y), np.integer):
                    wrong = wrong | compare(x - y, shift) | compare(x - shift, y)
        return wrong

    def cells(self, space: Domain, level: int) -> Bools:
        """Return the cells of a factor that hold both columns in which hardly any row keeps it, or none."""
        whole = np.zeros(1 << level, bool)
        for start in range(0, 1 << level, CELLS_AT_A_TIME):
            codes = np.arange(start, min(start + CELLS_AT_A_TIME, 1 << level), dtype=np.uint64)
            there = space.exists(codes, level)
            whole[start : start + len(codes)][there] = self.in_cells(
                space, (self.one[1], self.two[1]), codes[there], level
            )
        return whole

    def in_cells(self, space: Domain, columns: tuple[int, int], codes: Cells, level: int) -> Bools:
        """Say in which cells of a space, that has the two values in these columns, hardly any row keeps it, or none.

        The `ENDS` of a cell do not count.
        """
        if any(mixes(space, at, level) for at in columns):
            return np.zeros(len(codes), bool)
        low, high = space.extent(codes, level)
        ends = ENDS * (high - low)
        low, high = low + ends, high - ends
        one, two = ((low[:, at], high[:, at]) for at in columns)
        return self.certain(one, two)

    def cuts(self, space: Domain, columns: tuple[int, int], codes: Cells, level: int) -> Bools:
        """Say in which cells of a space, that has the two values in these columns, some rows break it."""
        if not self.steady or self.sign == "=":
            return np.ones(len(codes), bool)
        low, high = space.extent(codes, level)
        above = self.sign in (">", ">=")
        one, two = (high, low) if above else (low, high)
        return self.broken(one[:, columns[0]], two[:, columns[1]])


AnyFact = Fact | ColumnOrder
"""What never occurs: two conditions together, or an order."""


PlacedOrder = tuple[ColumnOrder, tuple[int, int]]
"""An order, and the coordinates of a space that hold its two columns."""


def place_of(order: ColumnOrder, table: Product) -> tuple[int, int]:
    """Return the coordinates of a table that hold the two columns of an order."""
    one, two = (table.columns[factor].start + at for factor, at in (order.one, order.two))
    return one, two


def factors_of(fact: AnyFact) -> tuple[int, int]:
    """Return the factors of the table that a fact is about."""
    if isinstance(fact, ColumnOrder):
        return fact.one[0], fact.two[0]
    return fact[0].column, fact[1].column


def breaks(fact: AnyFact, points: Callable[[int], Points]) -> Bools:
    """Say which rows contradict a fact, given the points of each factor."""
    if isinstance(fact, ColumnOrder):
        return fact.broken(*(points(factor)[:, at] for factor, at in (fact.one, fact.two)))
    one, two = fact
    return one.holds(points(one.column)) & two.holds(points(two.column))


def broken(facts: Sequence[AnyFact], points: Points, domain: Product) -> Bools:
    """Say which rows contradict a fact."""
    wrong = np.zeros(len(points), bool)
    for fact in facts:
        wrong |= breaks(fact, lambda factor: points[:, domain.columns[factor]])
    return wrong


def forbidden_cells(fact: AnyFact, space: Domain, level: int) -> Bools:
    """Return the cells of a factor in which every row contradicts a fact about the factor itself."""
    if isinstance(fact, ColumnOrder):
        return fact.cells(space, level)
    one, two = (condition.cells(space, level)[1] for condition in fact)
    return np.asarray(one & two, bool)

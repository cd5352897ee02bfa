"""From rank cells to rows: cells inside the rank cells, points inside the cells; facts and conditions kept exactly."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privmeasure.conditions.orders import (
    ENDS,
    AnyFact,
    ColumnOrder,
    Ranges,
    breaks,
    broken,
    factors_of,
    forbidden_cells,
)
from privmeasure.conditions.sets import Condition, by_column, mixes
from privmeasure.domains import Bools, Floats, Points, Product
from privmeasure.errors import ArgumentError, NoRowsError
from privmeasure.model.drawing import InsideGroups, draw, inside
from privmeasure.model.graph import Model, RankCells
from privmeasure.model.orders import OrderMask, possible_margins
from privmeasure.model.ranks import Groups
from privmeasure.releases.cells import CellMeasure
from privmeasure.releases.choosing import FEWEST_TRIED, MOST_TRIES, NEXT_TIME, NO_ROWS, hopeless, keep_rows
from privmeasure.releases.ordered import draw_again, move_mass
from privmeasure.releases.sampling import interval_quantile
from privmeasure.threads import in_threads

MOST_AT_ONCE = 1 << 19
"""Rows that are tried together."""
RAREST = 64
"""Conditions that fewer than one in so many rows satisfy are not waited for where another way exists.

More means the model's own law for rarer conditions, and a longer wait. Files do not hold it, so it is fixed: a release
gives the same rows wherever it is loaded.
"""
ESTIMATED_ON = 1 << 14
"""Points on which the share of a condition is estimated."""
TOO_FEW = (
    f"Too few rows satisfy the conditions together with what can never occur: fewer than one in {MOST_TRIES}. Ask for "
    "something more likely, or sample without conditions and choose."
)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows as rank cells, one list per column; `points` are the columns whose points are there already."""

    cells: list[RankCells]
    points: dict[int, Points] | None = None


class RowMaker:
    """Makes points of rank cells, as the released columns spread them, and keeps facts in every row.

    Facts about two columns of one group come before its released measure: cells that lie inside what is forbidden lose
    their mass to the others, in proportion (for an order to the nearest, see `move_mass`), and points of cells that do
    so in part are drawn again in the same cell.

    Orders between columns of different groups keep the released margins: pairs of rank cells in which no row keeps the
    order are never drawn, mass that has no other place is moved to the nearest one first (`possible_margins`), and
    points are drawn in a pair of rank cells until they keep the order.
    """

    def __init__(
        self,
        domain: Product,
        columns: Sequence[CellMeasure],
        ranks: Sequence[Groups],
        masses: Sequence[Floats],
        facts: Sequence[AnyFact] = (),
    ) -> None:
        """Take the released columns, their ranks, the masses of all their cells, and what can never occur."""
        self._domain, self._columns, self._ranks, self._facts = domain, columns, ranks, facts
        self._own = [[fact for fact in facts if factors_of(fact) == (j, j)] for j in range(len(columns))]
        self._orders = [f for f in facts if isinstance(f, ColumnOrder) and f.one[0] != f.two[0]]
        self._compared = sorted({j for order in self._orders for j in factors_of(order)})
        self._masses = [self._left(j, mass) for j, mass in enumerate(masses)]
        margins = [np.bincount(g, weights=m).astype(np.float64) for g, m in zip(ranks, self._masses, strict=True)]
        # a rank cell that has nothing left is never drawn, but must have cells: its own masses, or any
        self._spread = [
            np.where(margin[g] > 0, left, np.where(np.bincount(g, weights=mass)[g] > 0, mass, 1.0))
            for g, margin, left, mass in zip(ranks, margins, self._masses, masses, strict=True)
        ]
        self._inside = {j: InsideGroups(ranks[j], self._spread[j]) for j in self._compared}
        self._order_masks = [mask for order in self._orders if (mask := self._mask(order)) is not None]
        self.margins = possible_margins(margins, self._order_masks)
        """The masses of the rank cells of each column, as rows have them."""

    def _left(self, j: int, mass: Floats) -> Floats:
        """Return the masses of a column without cells that its own facts forbid as a whole."""
        if not self._own[j]:
            return mass
        column, left = self._columns[j], mass.copy()
        for fact in self._own[j]:
            if not isinstance(fact, ColumnOrder):
                left[forbidden_cells(fact, column.domain, column.level)] = 0
        orders = [fact for fact in self._own[j] if isinstance(fact, ColumnOrder)]
        if orders:
            left = move_mass(left, np.logical_or.reduce([o.cells(column.domain, column.level) for o in orders]))
        if not left.any():
            raise NoRowsError(
                "The release has rows only where the facts of its schema (never) forbid them: the data contradict the "
                f"facts, or the noise is larger than what the facts leave. No row can be sampled. {NEXT_TIME}"
            )
        return np.asarray(left * (mass.sum() / left.sum()), np.float64)

    def points(self, drawn: Drawn, rng: np.random.Generator, threads: int) -> Points:
        """Return a point for every row that breaks no order between columns.

        Each column has a stream of its own, so threads change nothing. Compared columns come first: their points are
        drawn again in the same rank cells until they keep every order. Rows in which that fails are left out.
        """
        ready, streams = drawn.points or {}, rng.spawn(len(self._columns))
        points, rows = np.empty((len(drawn.cells[0]), self._domain.width)), np.arange(len(drawn.cells[0]))

        def place(j: int) -> None:
            where = points[:, self._domain.columns[j]]
            whole = len(rows) == len(drawn.cells[j])
            if j in ready:
                where[:] = ready[j] if whole else ready[j].take(rows, axis=0)
            else:
                where[:] = self._in_ranks(j, drawn.cells[j] if whole else drawn.cells[j].take(rows), streams[j])

        first = self._compared
        if first:
            in_threads(lambda i: place(first[i]), len(first), threads)
            rows = self._in_order(points, drawn, streams)
            points = points.take(rows, axis=0)
        rest = [j for j in range(len(self._columns)) if j not in first]
        in_threads(lambda i: place(rest[i]), len(rest), threads)
        return points

    def _in_order(self, points: Points, drawn: Drawn, streams: Sequence[np.random.Generator]) -> NDArray[np.int64]:
        """Draw points of compared columns again in the rank cells of their rows; return the rows that keep orders."""
        again = [j for j in self._compared if j not in (drawn.points or {})]
        wrong = np.flatnonzero(broken(self._orders, points, self._domain))

        def draw_points(rows: NDArray[np.int64]) -> Points:
            tried = points.take(rows, axis=0)
            for j in again:
                cells = self._inside[j].draw(drawn.cells[j].take(rows), streams[j])
                tried[:, self._domain.columns[j]] = self._in_cells(j, cells, streams[j])
            return tried

        wrong = draw_again(points, wrong, draw_points, lambda tried: broken(self._orders, tried, self._domain))
        return np.delete(np.arange(len(points)), wrong)

    def _in_ranks(self, j: int, ranked: RankCells, rng: np.random.Generator) -> Points:
        return self._in_cells(j, inside(self._ranks[j], self._spread[j], ranked, rng), rng)

    def _in_cells(self, j: int, cells: NDArray[np.int64], rng: np.random.Generator) -> Points:
        """Return a point of each cell; those that a fact about the column itself forbids are drawn again.

        A cell in which that fails too often (little of it is allowed) keeps them: rows that break facts are left out.
        """
        column, codes = self._columns[j], cells.astype(np.uint64)
        if column.placement == "centre":
            points = column.domain.centre(codes, column.level)
        else:
            points = column.domain.draw(codes, column.level, rng)
        if self._own[j]:

            def draw_points(rows: NDArray[np.int64]) -> Points:
                return column.domain.draw(codes[rows], column.level, rng)

            wrong = np.flatnonzero(_breaks(self._own[j], points))
            draw_again(points, wrong, draw_points, lambda tried: _breaks(self._own[j], tried))
        return points

    def accepted(
        self,
        n: int,
        drawn: Callable[[int], Drawn],
        rng: np.random.Generator,
        threads: int,
        *,
        where: Sequence[Condition],
    ) -> Points:
        """Return n rows that break no fact and satisfy all conditions; further ones are drawn for those that do not."""
        points = self.points(drawn(n), rng, threads)
        if not self._facts and not where:
            return points
        points, tried, found = points[self._fine(points, where)], n, []
        left = n - len(points)
        found.append(points)
        while left > 0:
            if hopeless(tried, n - left, n):
                raise ArgumentError(TOO_FEW) if where else NoRowsError(NO_ROWS)
            share = max(1 / MOST_TRIES, 1 - left / max(1, tried))
            tries = left / share
            tries += 5 * math.sqrt(tries) if self._orders else 0.2 * tries  # orders leave out many, so not a fifth more
            count = min(max(FEWEST_TRIED, int(tries)), MOST_AT_ONCE)
            more = self.points(drawn(count), rng, threads)
            more = more[self._fine(more, where)][:left]
            found.append(more)
            tried, left = tried + count, left - len(more)
        return np.concatenate(found)

    def _fine(self, points: Points, where: Sequence[Condition]) -> Bools:
        """Say which rows break no other fact, and satisfy all conditions."""
        return keep_rows(points, [fact for fact in self._facts if fact not in self._orders], where, self._domain)

    # ---------------------------------------------------------------------------------------------------- conditions

    def checked(self, where: Sequence[Condition], *, alone: bool) -> tuple[Condition, ...]:
        """Return the conditions, or refuse them; where only such rows are asked for (`alone`), some cell must do."""
        factors = self._domain.factors
        if isinstance(where, str) or not all(
            isinstance(c, Condition) and 0 <= c.column < len(factors) and 0 <= c.coordinate < factors[c.column].width
            for c in where
        ):
            raise ArgumentError(
                "where must be a list of Condition on columns of the table. A text, with names and values, is for a "
                "release of a table with a schema."
            )
        for conditions in by_column(where).values() if alone else ():
            if not self._possible(conditions).any():
                raise ArgumentError(
                    "No row of the release can satisfy the condition: its column has no mass there. Ask for less, or "
                    "sample without it."
                )
        return tuple(where)

    def _possible(self, conditions: Sequence[Condition]) -> Floats:
        """Return the masses of the cells that may hold a value that is meant; all conditions are about one factor."""
        j = conditions[0].column
        column, mass = self._columns[j], self._masses[j]
        for condition in conditions:
            mass = mass * condition.cells(column.domain, column.level)[0]
        return mass

    def _meant(self, conditions: Sequence[Condition], points: Points) -> Bools:
        """Say which points of one factor satisfy the conditions and break no fact about the factor itself."""
        meant = ~_breaks(self._own[conditions[0].column], points)
        for condition in conditions:
            meant &= condition.holds(points)
        return meant

    def given(self, model: Model, where: Sequence[Condition], n: int, rng: np.random.Generator) -> Drawn:
        """Return rows that satisfy what is asked of one factor, the least likely thing; the rest is left to rejection.

        Where the order of columns does not matter to the model, the factor comes first, as it is released, restricted
        to what is meant, and all others are drawn given it. Elsewhere rows are drawn in the model's own order, and
        those that are not meant are left out. In both cases the law is exactly that of the model given the condition,
        its conditionals being fitted to rows of the whole model. Only where the order matters and fewer than one in
        `RAREST` rows are meant the factor comes first all the same: its own law is still exact, and what depends on it
        follows the measured pairs in another order.
        """
        shares = {conditions: self._share(conditions) for conditions in by_column(where).values()}
        rarest = min(shares, key=lambda conditions: shares[conditions])
        j = rarest[0].column
        if shares[rarest] * RAREST >= 1 and j in self._compared:
            return Drawn(model.sample(n, rng))
        if shares[rarest] * RAREST >= 1 and not model.same_law_from(j):
            return self._kept(model, rarest, shares[rarest], n, rng)
        cells, points = self._restricted(rarest, n, rng)
        return Drawn(model.given(j, self._ranks[j].take(cells).astype(np.int32), rng), {j: points})

    def _share(self, conditions: Sequence[Condition]) -> float:
        """Return the released share of what is meant; inside cells it is estimated, always in the same way."""
        mass, rng = self._possible(conditions), np.random.default_rng(0)
        points = self._in_cells(conditions[0].column, _drawn_cells(mass, ESTIMATED_ON, rng), rng)
        share = mass.sum() / self._masses[conditions[0].column].sum()
        return float(share * np.mean(self._meant(conditions, points)))

    def _kept(
        self, model: Model, conditions: Sequence[Condition], share: float, n: int, rng: np.random.Generator
    ) -> Drawn:
        """Return n rows that are meant, of rows in the model's own order."""
        j, tried = conditions[0].column, 0
        found: list[list[RankCells]] = []
        points: list[Points] = []

        def meant(ranked: RankCells) -> Bools:
            at = self._in_ranks(j, ranked, rng)
            keep = self._meant(conditions, at)
            points.append(at[keep])
            return keep

        while (left := n - sum(map(len, points))) > 0:
            if tried > MOST_TRIES * max(n, FEWEST_TRIED):
                raise ArgumentError(TOO_FEW)
            count = min(max(FEWEST_TRIED, int(1.1 * left / share)), MOST_AT_ONCE)
            found.append(model.among(j, count, meant, rng))
            tried += count
        cells = [np.concatenate(pieces)[:n] for pieces in zip(*found, strict=True)]
        return Drawn(cells, {j: np.concatenate(points)[:n]})

    def _restricted(
        self, conditions: Sequence[Condition], n: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], Points]:
        """Return n cells and points of one factor, all of which are meant; cells that are partly so by rejection."""
        j, mass = conditions[0].column, self._possible(conditions)
        cells, points = np.empty(0, np.int64), np.empty((0, self._columns[j].domain.width))
        tried = 0
        while len(cells) < n:
            if tried > MOST_TRIES * max(n, FEWEST_TRIED):
                raise ArgumentError(
                    f"Fewer than one in {MOST_TRIES} values of the released cells satisfy the condition: it is finer "
                    "than the release. Ask for a wider range."
                )
            count = max(FEWEST_TRIED, n - len(cells)) if tried else n
            more = _drawn_cells(mass, count, rng)
            at = self._in_cells(j, more, rng)
            keep = self._meant(conditions, at)
            cells, points = np.concatenate([cells, more[keep]]), np.concatenate([points, at[keep]])
            tried += count
        return cells[:n], points[:n]

    # --------------------------------------------------------------------------------------------------------- facts

    def forbidden(self) -> dict[tuple[int, int], Bools]:
        """Return for pairs of columns which combinations of rank cells contradict two conditions in all their rows."""
        masks: dict[tuple[int, int], Bools] = {}
        for fact in self._facts:
            if not isinstance(fact, ColumnOrder) and len(set(factors_of(fact))) == 2:
                _join(masks, factors_of(fact), np.outer(*map(self._whole_ranks, fact)))
        return masks

    def disordered(self) -> dict[tuple[int, int], Bools]:
        """Return for pairs of columns which combinations of rank cells contradict an order in all their rows."""
        masks: dict[tuple[int, int], Bools] = {}
        for mask in self._order_masks:
            _join(masks, (mask.early, mask.late), ~mask.allowed)
        return masks

    def _mask(self, order: ColumnOrder) -> OrderMask | None:
        """Return which pairs of rank cells an order allows; None if that cannot be said of whole cells."""
        one, two = map(self._rank_ranges, (order.one, order.two))
        allowed = ~order.certain(one, two, every_pair=True)
        if allowed.all():
            return None
        free = np.isnan(one[0]), np.isnan(two[0])
        (j, _), (k, _) = order.one, order.two
        if order.sign in ("<", "<="):  # the first column must not be below the second: it is the late one
            return OrderMask(k, j, allowed.T, (free[1], free[0]))
        return OrderMask(j, k, allowed, free)

    def _rank_ranges(self, place: tuple[int, int]) -> Ranges:
        """Return the range of the points of each rank cell of a column without the ends: NaN where some are missing."""
        j, at = place
        column, masses, ranks = self._columns[j], self._masses[j], self._ranks[j]
        lows, highs = np.full((2, int(ranks.max()) + 1), np.nan)
        if mixes(column.domain, at, column.level):
            return lows, highs
        cells = np.flatnonzero(masses > 0)
        cells = cells[np.argsort(ranks[cells], kind="stable")]
        low, high = (side[:, at] for side in column.domain.extent(cells.astype(np.uint64), column.level))
        first = np.flatnonzero(np.diff(ranks[cells], prepend=-1))
        for start, stop in pairwise([*first, len(cells)]):
            here, r = slice(start, stop), ranks[cells[start]]
            if not np.isnan(low[here]).any():
                lows[r], highs[r] = (
                    interval_quantile(low[here], high[here], masses[cells[here]], q) for q in (ENDS, 1 - ENDS)
                )
        return lows, highs

    def _whole_ranks(self, condition: Condition) -> Bools:
        """Return the rank cells all of whose mass is meant."""
        j = condition.column
        _, certain = condition.cells(self._columns[j].domain, self._columns[j].level)
        other = np.bincount(self._ranks[j], weights=self._masses[j] * ~certain)
        return np.asarray((other == 0) & (np.bincount(self._ranks[j], weights=self._masses[j]) > 0), bool)


def _join(masks: dict[tuple[int, int], Bools], pair: tuple[int, int], never: Bools) -> None:
    """Add what is forbidden for a pair of columns, with the lower column first."""
    if not never.any():
        return
    if pair[0] > pair[1]:
        pair, never = (pair[1], pair[0]), never.T
    masks[pair] = masks[pair] | never if pair in masks else never


def _breaks(facts: Sequence[AnyFact], points: Points) -> Bools:
    """Say which points of one factor contradict a fact about two of its columns."""
    wrong = np.zeros(len(points), bool)
    for fact in facts:
        wrong |= breaks(fact, lambda _: points)
    return wrong


def _drawn_cells(mass: Floats, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return n cells in proportion to their mass."""
    filled = np.flatnonzero(mass > 0)
    weights = mass[filled][np.newaxis]
    return filled[draw(np.zeros(n, np.int32), 1, lambda _: weights, rng)]

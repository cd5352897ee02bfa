"""From rank cells to rows: cells inside the rank cells, points inside the cells; facts and conditions kept exactly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privmeasure.blocks import in_threads
from privmeasure.columns.conditions import Condition, Fact, broken, by_column
from privmeasure.columns.drawing import draw, inside
from privmeasure.columns.model import Cells, Model
from privmeasure.columns.ranks import Groups
from privmeasure.domains import Bools, Floats, Points, Product
from privmeasure.errors import ArgumentError
from privmeasure.release import CellMeasure

MOST_TRIES = 100
"""Rows that are tried for each row that is asked for."""
FEW = 1024
"""Rows that are tried at least."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows as rank cells, a list a column; `points` are the columns whose points are there already."""

    cells: list[Cells]
    points: dict[int, Points] | None = None


class RowMaker:
    """Makes points of rank cells, as the released columns spread them."""

    def __init__(
        self,
        domain: Product,
        columns: Sequence[CellMeasure],
        ranks: Sequence[Groups],
        masses: Sequence[Floats],
    ) -> None:
        """Take the released columns, their ranks and the masses of all their cells."""
        self._domain, self._columns, self._ranks, self._masses = domain, columns, ranks, masses

    def points(self, drawn: Drawn, rng: np.random.Generator, threads: int) -> Points:
        """Return a point for every row; each column has a stream of its own, so threads change nothing."""
        count = len(drawn.cells[0])
        points, ready = np.empty((count, self._domain.width)), drawn.points or {}
        streams = rng.spawn(len(self._columns))

        def place(j: int) -> None:
            own, where = streams[j], points[:, self._domain.columns[j]]
            if j in ready:
                where[:] = ready[j]
                return
            cells = inside(self._ranks[j], self._masses[j], drawn.cells[j], own)
            where[:] = self._in_cells(j, cells, own)

        in_threads(place, len(self._columns), threads)
        return points

    def _in_cells(self, j: int, cells: NDArray[np.int64], rng: np.random.Generator) -> Points:
        column = self._columns[j]
        codes = cells.astype(np.uint64)
        if column.placement == "centre":
            return column.domain.centre(codes, column.level)
        return column.domain.draw(codes, column.level, rng)

    def accepted(
        self,
        n: int,
        drawn: Callable[[int], Drawn],
        rng: np.random.Generator,
        threads: int,
        *,
        facts: Sequence[Fact],
        where: Sequence[Condition],
    ) -> Points:
        """Return n rows that break no fact and satisfy all conditions; further ones are drawn for those that do not."""
        points = self.points(drawn(n), rng, threads)
        if not facts and not where:
            return points
        points, tried, found = points[self._fine(points, facts, where)], n, []
        left = n - len(points)
        found.append(points)
        while left > 0:
            if tried > MOST_TRIES * max(n, FEW):
                raise ArgumentError(
                    "Too few rows satisfy the conditions together with what can never occur: fewer than one in "
                    f"{MOST_TRIES}. Ask for something more likely, or sample without conditions and choose."
                )
            share = max(1 / MOST_TRIES, 1 - left / max(1, tried))
            count = min(max(FEW, int(1.2 * left / share)), 1 << 19)
            more = self.points(drawn(count), rng, threads)
            more = more[self._fine(more, facts, where)][:left]
            found.append(more)
            tried, left = tried + count, left - len(more)
        return np.concatenate(found)

    def _fine(self, points: Points, facts: Sequence[Fact], where: Sequence[Condition]) -> Bools:
        return ~broken(facts, points, self._domain) & self.satisfied(points, where)

    def satisfied(self, points: Points, where: Sequence[Condition]) -> Bools:
        """Say which rows satisfy all conditions."""
        fine = np.ones(len(points), bool)
        for condition in where:
            fine &= condition.holds(points[:, self._domain.columns[condition.column]])
        return fine

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
        for condition in by_column(where).values() if alone else ():
            if not self._possible(condition).any():
                raise ArgumentError(
                    "No row of the release can satisfy the condition: its column has no mass there. Ask for less, or "
                    "sample without it."
                )
        return tuple(where)

    def _possible(self, condition: Condition) -> Floats:
        """Return the masses of the cells that may hold a value that is meant."""
        column = self._columns[condition.column]
        possible, _ = condition.cells(column.domain, column.level)
        return self._masses[condition.column] * possible

    def given(self, model: Model, where: Sequence[Condition], n: int, rng: np.random.Generator) -> Drawn:
        """Return rows that satisfy one of the conditions, the least likely one; the others are left to rejection.

        The column comes first, as it is released, restricted to what is meant; all others are drawn given it. So for
        a condition on one column the law of rows is exactly that of the model given the condition.
        """
        conditions = list(by_column(where).values())
        rarest = min(conditions, key=lambda c: float(self._possible(c).sum()) / float(self._masses[c.column].sum()))
        cells, points = self._restricted(rarest, n, rng)
        j = rarest.column
        return Drawn(model.given(j, self._ranks[j].take(cells).astype(np.int32), rng), {j: points})

    def _restricted(self, condition: Condition, n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], Points]:
        """Return n cells and points of one column, all of which are meant; cells that are partly so by rejection."""
        mass = self._possible(condition)
        filled = np.flatnonzero(mass > 0)
        weights = mass[filled][np.newaxis]
        cells, points = np.empty(0, np.int64), np.empty((0, self._columns[condition.column].domain.width))
        tried = 0
        while len(cells) < n:
            if tried > MOST_TRIES * max(n, FEW):
                raise ArgumentError(
                    f"Fewer than one in {MOST_TRIES} values of the released cells satisfy the condition: it is finer "
                    "than the release. Ask for a wider range."
                )
            count = max(FEW, n - len(cells)) if tried else n
            more = filled[draw(np.zeros(count, np.int32), 1, lambda _: weights, rng)]
            at = self._in_cells(condition.column, more, rng)
            keep = condition.holds(at)
            cells, points = np.concatenate([cells, more[keep]]), np.concatenate([points, at[keep]])
            tried += count
        return cells[:n], points[:n]

    # --------------------------------------------------------------------------------------------------------- facts

    def forbidden(self, facts: Sequence[Fact]) -> dict[tuple[int, int], Bools]:
        """Return for pairs of columns which combinations of rank cells contradict a fact in all their rows."""
        masks: dict[tuple[int, int], Bools] = {}
        for one, two in facts:
            mask = np.outer(self._whole_ranks(one), self._whole_ranks(two))
            if mask.any():
                pair = one.column, two.column
                if pair[0] > pair[1]:
                    pair, mask = (pair[1], pair[0]), mask.T
                masks[pair] = masks[pair] | mask if pair in masks else mask
        return masks

    def _whole_ranks(self, condition: Condition) -> Bools:
        """Return the rank cells all of whose mass is meant."""
        j = condition.column
        _, certain = condition.cells(self._columns[j].domain, self._columns[j].level)
        other = np.bincount(self._ranks[j], weights=self._masses[j] * ~certain)
        return np.asarray((other == 0) & (np.bincount(self._ranks[j], weights=self._masses[j]) > 0), bool)

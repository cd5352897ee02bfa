"""Columns as a graph: released margins, and the tables of measured pairs. Columns are drawn one after the other."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Floats
from privmeasure.estimates.linear import noise_variance
from privmeasure.model.agreements import Agreements, surprising_tables
from privmeasure.model.conditional import Combinations, Conditional, Parent, Weights, conditional
from privmeasure.model.drawing import SortKey, draw, settle
from privmeasure.model.pairs import Pair, pair_table, rake, rake_closely
from privmeasure.model.ranks import Groups
from privmeasure.noise.law import facts_of
from privmeasure.rounding import TINY

GroupedTable = tuple[Floats, Groups, Groups]
"""Masses of a pair, and the maps from rank cells of its two columns to rows and columns of the masses."""
RankCells = NDArray[np.int32]
"""A rank cell for every row."""

DrawnGiven = tuple[list[int], Conditional] | None
"""The parents of a column and its distribution given them; None for a column without parents."""

COMPARED_ON = 1 << 15
"""Rows of the model that agreements are compared with: more take longer and scatter less. Fixed, as above all here."""
TRIED_ON = 1 << 13
"""The same for orders that are tried: all have the same scatter."""
STARTS_TRIED, CELLS_TRIED = 12, 1 << 18
"""Columns that are tried as the first one, those that others depend on most, and the cells of all their tables: fewer
are tried where tables are larger, as each takes so long."""
CLEARLY_LESS = 0.8
"""Times the misfit of the usual order, which that of another must be below: see `Model.misfit`. Fixed, as above."""
FITTED_ON = 1 << 16
"""Rows of the model that conditionals are fitted on where the rows at hand are not those of the model.

More take longer and scatter less. Fixed, as files do not hold it: see `privmeasure.model`.
"""


class Model:
    """A distribution of rank cells with the released margins and, as nearly as they allow, the tables of the pairs.

    Columns come along the spanning tree of the strongest pairs: drawn before both of its neighbours there, a column
    would have to fit two that know nothing of each other. Of those that the tree allows, next is the one with most
    measured pairs among those before it, ties going to the strongest dependence. Each is drawn given all of these at
    once, so children of one parent are independent given it. `forbidden[i, j]` (rank cells of i by those of j) are
    combinations that are never drawn; so are those of `disordered`, for which the margins have a table without them.

    Examples:
        >>> half = np.array([5.0, 5.0])
        >>> model = Model([half, half], {(0, 1): (np.diag(half), np.arange(2), np.arange(2))})
        >>> first, second = model.sample(1000, np.random.default_rng(0))
        >>> bool((first == second).all()), abs(int(first.sum()) - 500) <= 1
        (True, True)
    """

    def __init__(
        self,
        margins: Sequence[Floats],
        tables: Mapping[tuple[int, int], GroupedTable],
        *,
        forbidden: Mapping[tuple[int, int], Bools] | None = None,
        disordered: Mapping[tuple[int, int], Bools] | None = None,
    ) -> None:
        """Take masses of the rank cells of each column, and those of pairs of columns."""
        self.margins = [np.asarray(margin, np.float64) for margin in margins]
        self._tables: dict[tuple[int, int], GroupedTable] = {}
        self._allowed: dict[tuple[int, int], Bools] = {}
        self._strength: dict[tuple[int, int], float] = {}
        self._fitted: dict[int, dict[int, DrawnGiven]] = {}
        self.first: int | None = None
        for (i, j), table in tables.items():
            self._add(i, j, table)
        for (i, j), never in (forbidden or {}).items():
            self._forbid(i, j, never, rake)
        for (i, j), never in (disordered or {}).items():
            self._forbid(i, j, never, rake_closely)
        self._near = [{j for j in range(len(margins)) if (i, j) in self._tables} for i in range(len(margins))]

    @classmethod
    def of_pairs(
        cls,
        margins: Sequence[Floats],
        pairs: Sequence[Pair],
        total: int,
        *,
        agreements: Agreements | None = None,
        forbidden: Mapping[tuple[int, int], Bools] | None = None,
        disordered: Mapping[tuple[int, int], Bools] | None = None,
    ) -> "Model":
        """Return the model of measured pairs: of their tables, made consistent with the margins.

        Agreements that it does not explain become tables as well, of halves.
        """
        tables: dict[tuple[int, int], GroupedTable] = {
            (pair.first, pair.second): (
                pair_table(pair, margins[pair.first], margins[pair.second], float(total)),
                pair.first_groups,
                pair.second_groups,
            )
            for pair in pairs
        }
        model = cls(margins, tables, forbidden=forbidden, disordered=disordered)
        if agreements is None and not model._has_rings:
            return model
        drawn = model.sample(COMPARED_ON, np.random.default_rng(0))  # always the same, as in `_laws`
        if model.drifts(pairs, drawn):
            model.first = model._best_first(pairs)
            drawn = model.sample(COMPARED_ON, np.random.default_rng(0))
        if agreements is None:
            return model
        halves = agreements.halves
        known = surprising_tables(agreements, margins, drawn, tables.keys())
        tables |= {(i, j): (table, halves[i], halves[j]) for (i, j), table in known.items()}
        whole = cls(margins, tables, forbidden=forbidden, disordered=disordered)
        whole.first = model.first
        return whole

    @property
    def _has_rings(self) -> bool:
        """Whether some column has several parents: with one each, pairs come out as they were measured."""
        return sum(map(len, self._near)) // 2 > sum(map(len, self._tree)) // 2

    def drifts(self, pairs: Sequence[Pair], drawn: Sequence[RankCells]) -> bool:
        """Say whether rows are further from some measured table than its noise and their own scatter explain."""
        return any(
            apart > 0.5 * (table.size * facts_of(pair.law, pair.scale).size / max(float(table.sum()), TINY) + scatter)
            for pair, table, apart, scatter in self._compared(pairs, drawn)
        )

    def misfit(self, pairs: Sequence[Pair], drawn: Sequence[RankCells]) -> float:
        """Return how far rows are from all measured tables, each in units of its noise.

        Tables that contradict each other cannot all be met: those with little noise should be. Of orders of drawing,
        the one with the least misfit is the nearest to the data, in simulations and on open tables.

        Notation:   sum over pairs of (N TV)^2 / (cells s^2), N rows, s^2 the variance of the noise of a cell
        """
        return sum(
            (apart * float(table.sum())) ** 2 / (table.size * noise_variance(pair.scale, pair.law))
            for pair, table, apart, _ in self._compared(pairs, drawn)
        )

    def _compared(
        self, pairs: Sequence[Pair], drawn: Sequence[RankCells]
    ) -> Iterator[tuple[Pair, Floats, float, float]]:
        """Yield pairs with their tables, how far rows are from these, and twice how far rows scatter by themselves."""
        count = len(drawn[0])
        for pair in pairs:
            table, rows, columns = self._tables[pair.first, pair.second]
            code = rows.take(drawn[pair.first]) * table.shape[1] + columns.take(drawn[pair.second])
            shares = table.ravel() / max(float(table.sum()), TINY)
            apart = float(np.abs(np.bincount(code, minlength=table.size) / count - shares).sum()) / 2
            yield pair, table, apart, float(np.sqrt(shares / count).sum())

    def _best_first(self, pairs: Sequence[Pair]) -> int | None:
        """Return the column to begin with, if rows are then clearly nearer to the tables; None for the usual one."""
        total = [sum(self._strength[i, j] for j in near) for i, near in enumerate(self._near)]
        misfits = dict[int, float]()
        tried = min(STARTS_TRIED, CELLS_TRIED // sum(pair.noisy.size for pair in pairs))
        if tried < 2:
            return None
        for c in sorted(range(len(total)), key=lambda c: -total[c])[:tried]:
            drawn = self._sample(self.order(c), TRIED_ON, np.random.default_rng(0))[0]
            misfits[c] = self.misfit(pairs, drawn)
        usual, best = next(iter(misfits)), min(misfits, key=lambda c: misfits[c])  # the usual one is tried first
        return best if misfits[best] < CLEARLY_LESS * misfits[usual] else None

    def _add(self, i: int, j: int, table: GroupedTable) -> None:
        masses, rows, columns = table
        self._tables[i, j], self._tables[j, i] = (masses, rows, columns), (masses.T, columns, rows)
        independent = np.outer(masses.sum(axis=1), masses.sum(axis=0)) / max(masses.sum(), TINY)
        self._strength[i, j] = self._strength[j, i] = float(np.abs(masses - independent).sum())

    def _forbid(self, i: int, j: int, never: Bools, raked: Callable[[Floats, Floats, Floats], Floats]) -> None:
        """Put zeros in the table of a pair, over rank cells; what was there goes where the margins allow.

        The result is the table with these margins that is nearest to the one before (in relative entropy) among those
        with the zeros, as far as it is `raked`.
        """
        allowed = ~never & self._allowed.get((i, j), np.bool_(True))
        shares = [margin / max(float(margin.sum()), TINY) for margin in (self.margins[i], self.margins[j])]
        masses = np.outer(self.margins[i], shares[1])
        if (i, j) in self._tables:
            table, rows, columns = self._tables[i, j]
            inside = [
                margin / np.maximum(np.bincount(groups, weights=margin)[groups], TINY)
                for margin, groups in ((self.margins[i], rows), (self.margins[j], columns))
            ]
            masses = table[np.ix_(rows, columns)] * np.outer(*inside)
        masses = raked(masses * allowed, self.margins[i], self.margins[j])
        self._add(i, j, (masses, np.arange(len(masses)), np.arange(masses.shape[1])))
        self._allowed[i, j], self._allowed[j, i] = allowed, allowed.T

    def strengths(self) -> Iterator[tuple[int, int, float]]:
        """Yield the measured pairs, with how far their tables are from independence: mass in the wrong place, twice."""
        return ((i, j, strength) for (i, j), strength in self._strength.items() if i < j)

    def order(self, first: int | None = None) -> list[int]:
        """Return the order in which columns are drawn; `first` puts a column at its head."""
        first = self.first if first is None else first
        total = [sum(self._strength[i, j] for j in near) for i, near in enumerate(self._near)]
        order = [int(np.argmax(total)) if first is None else first]
        rest = [c for c in range(len(self.margins)) if c != order[0]]
        placed = [{order[0]} & near for near in self._near]
        strongest = [max((self._strength[c, s] for s in placed[c]), default=0.0) for c in range(len(self.margins))]
        reached = {*order, *self._tree[order[0]]}
        while rest:
            column = max(rest, key=lambda c: (c in reached, len(placed[c]), strongest[c], total[c]))
            rest.remove(column)
            order.append(column)
            reached |= {column, *self._tree[column]}
            for c in self._near[column]:
                placed[c].add(column)
                strongest[c] = max(strongest[c], self._strength[c, column])
        return order

    @cached_property
    def _tree(self) -> list[set[int]]:
        """The neighbours of every column in the spanning tree of the strongest pairs, or forest."""
        near: list[set[int]] = [set() for _ in self.margins]
        part = np.arange(len(self.margins))
        for i, j, _ in sorted(self.strengths(), key=lambda pair: -pair[2]):
            if part[i] != part[j]:
                near[i].add(j)
                near[j].add(i)
                part[part == part[j]] = part[i]
        return near

    def sample(self, n: int, rng: np.random.Generator, *, threads: int = 1) -> list[RankCells]:
        """Return n rows: for each column the rank cells, whatever the number of threads."""
        return self._sample(self.order(), n, rng, threads=threads)[0]

    def given(self, column: int, cells: RankCells, rng: np.random.Generator) -> list[RankCells]:
        """Return rows whose rank cells in one column are given, the others drawn given these.

        Columns come in the order that begins with that one. Where some column has several parents another order is
        another law: see `same_law_from`.
        """
        order = self.order(column)
        drawn = {column: cells}
        self._draw_next(order[1:], self._laws(order), drawn, len(cells), rng)
        return [drawn[c] for c in range(len(self.margins))]

    def among(
        self, column: int, n: int, meant: Callable[[RankCells], Bools], rng: np.random.Generator
    ) -> list[RankCells]:
        """Return those of n rows that are meant, as their rank cells in one column tell.

        Columns come in the order of `sample`; after that one, only rows that are kept go on.
        """
        order = self.order()
        laws, head = self._laws(order), order.index(column) + 1
        drawn: dict[int, RankCells] = {}
        self._draw_next(order[:head], laws, drawn, n, rng)
        keep = np.flatnonzero(meant(drawn[column]))
        drawn = {c: cells.take(keep) for c, cells in drawn.items()}
        self._draw_next(order[head:], laws, drawn, len(keep), rng)
        return [drawn[c] for c in range(len(self.margins))]

    def same_law_from(self, column: int) -> bool:
        """Say whether rows drawn from one column on have the law of those of `sample`.

        They do where no column has several parents (pairs then are as measured in any direction), or where the column
        comes first anyhow.
        """
        order = self.order()
        several = any(len(self._near[c].intersection(order[:i])) > 1 for i, c in enumerate(order))
        return column == order[0] or not several

    def _laws(self, order: Sequence[int]) -> dict[int, DrawnGiven]:
        """Return conditionals that are fitted to rows of the whole model: rows that are chosen are not like them."""
        if order[0] not in self._fitted:  # always the same rows: what is drawn depends on the seed alone
            self._fitted[order[0]] = self._sample(order, FITTED_ON, np.random.default_rng(0))[1]
        return self._fitted[order[0]]

    def _draw_next(
        self,
        columns: Sequence[int],
        laws: Mapping[int, DrawnGiven],
        drawn: dict[int, RankCells],
        n: int,
        rng: np.random.Generator,
    ) -> None:
        """Add these columns to those that n rows have already."""
        for c in columns:
            law = laws[c]
            if law is None:
                drawn[c] = self._alone(c, n, rng)
                continue
            names, conditional_ = law
            parents = self._parents(c, names, drawn)
            rows = Combinations.of([p.key for p in parents], [len(p.table) for p in parents])
            drawn[c] = _drawn(conditional_, rows, rng)

    def _sample(
        self, order: Sequence[int], n: int, rng: np.random.Generator, *, threads: int = 1
    ) -> tuple[list[RankCells], dict[int, DrawnGiven]]:
        """Return rows, and for each column its parents and its distribution given them."""
        drawn: dict[int, RankCells] = {}
        fitted: dict[int, DrawnGiven] = {}
        for c in order:
            names = [s for s in order if s in drawn and s in self._near[c]]
            # the largest table first, as the conditional has them
            names.sort(key=lambda s: -self._tables[s, c][0].size)
            if not names:
                drawn[c], fitted[c] = self._alone(c, n, rng), None
                continue
            parents = self._parents(c, names, drawn)
            law, rows = conditional(self.margins[c], parents)
            drawn[c], fitted[c] = _drawn(law, rows, rng, threads), (names, law)
            if all(parent.allowed is None for parent in parents):  # what moves might land where facts forbid it
                drawn[c] = settle(drawn[c], self.margins[c], rng)
        return [drawn[c] for c in range(len(self.margins))], fitted

    def _parents(self, column: int, names: Sequence[int], drawn: Mapping[int, RankCells]) -> list[Parent]:
        parents = []
        for s in names:
            table, rows, columns = self._tables[s, column]
            key: SortKey = drawn[s] if len(rows) == len(table) else rows.take(drawn[s])
            parents.append(Parent(table, key, columns, self._allowed.get((s, column))))
        return parents

    def _alone(self, column: int, n: int, rng: np.random.Generator) -> RankCells:
        margin = self.margins[column][np.newaxis]
        return draw(np.zeros(n, np.int32), 1, lambda _: margin, rng)


def _drawn(law: Conditional, rows: Combinations, rng: np.random.Generator, threads: int = 1) -> RankCells:
    def weights(here: slice) -> Weights:
        return law.weights([group[here] for group in rows.groups])

    return draw(rows.of_row, len(rows.groups[0]), weights, rng, threads=threads)

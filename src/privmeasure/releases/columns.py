"""The release of a wide table: its columns, the pairs that were measured, and rows that follow from them.

This room is public. It cannot reach counts, sources or the data: nothing here can leak, however it is used.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.compiled import MOST_PLAIN
from privmeasure.conditions.orders import AnyFact, ColumnOrder, PlacedOrder, factors_of
from privmeasure.conditions.sets import Condition, Fact
from privmeasure.domains import Domain, Floats, Points, Product, write_domain
from privmeasure.domains.own import tell_how_to_load
from privmeasure.domains.traits import column_space
from privmeasure.errors import ArgumentError, ReleaseFileError
from privmeasure.hints import hinted
from privmeasure.model.agreements import Agreements
from privmeasure.model.graph import Model
from privmeasure.model.independence import agreement_scores, depends, table_scores, unlinked
from privmeasure.model.pairs import Pair, mutual_information, pair_table
from privmeasure.model.ranks import Groups
from privmeasure.notebook import html_words
from privmeasure.origin import Origin
from privmeasure.plans.columns import ColumnPlan
from privmeasure.releases import files
from privmeasure.releases.base import Order
from privmeasure.releases.capacity import CELL_BYTES, Memory
from privmeasure.releases.cells import CellMeasure, read_domain
from privmeasure.releases.certificate import ColumnCertificates
from privmeasure.releases.certify import MIN_BETA_SHARE, SMALLEST_BETA, rounded_down
from privmeasure.releases.choosing import satisfy
from privmeasure.releases.drift import cell_distance, check_rows, inside_distance
from privmeasure.releases.refining import cell_masses
from privmeasure.releases.rows import Drawn, RowMaker
from privmeasure.releases.sampling import (
    FEW_TASKS,
    NO_CELLS,
    NO_MASS,
    Share,
    check_coordinate,
    check_draw,
    even_sizes,
    in_order,
)
from privmeasure.releases.storing import (
    agreement_parts,
    column_parts,
    from_runs,
    pair_parts,
    read_agreements,
    read_columns,
    read_pairs,
    to_runs,
)
from privmeasure.threads import BLOCK, in_threads, thread_count

BATCH = 1 << 19
"""Rows that are drawn together: memory is bounded, and larger samples are made of independent batches."""


@dataclass(frozen=True, eq=False)
class ColumnsMeasure:
    """Released measures of the columns of a table, and noisy tables of some pairs of them.

    `ranks[j]` gives every cell of column j its rank cell, on which pairs were measured. `facts` are combinations of two
    columns that never occur: they are public, are kept in every row, and come before released margins where the two
    contradict each other. Two columns of one group may be meant too: see `RowMaker`. Orders between columns are about
    values, which a schema knows: they are not in the file, and a release of a table brings them (`keeping`).

    Guarantee:  each column has its own, `plan.columns[j].guarantee`, about the released measure of the column, from
                which rows differ where facts override it; nothing is promised for the joint distribution
    """

    domain: Product
    plan: ColumnPlan
    columns: tuple[CellMeasure, ...]
    ranks: tuple[NDArray[np.int64], ...]
    pairs: tuple[Pair, ...]
    private: bool
    facts: tuple[AnyFact, ...] = ()
    origin: Origin | None = None
    agreements: Agreements | None = None

    @property
    def total(self) -> int:
        """The released number of rows."""
        return self.plan.rows

    @cached_property
    def masses(self) -> tuple[Floats, ...]:
        """The released mass of every cell of each column, 0 where there is none."""
        return tuple(cell_masses(column).astype(np.float64) for column in self.columns)

    @cached_property
    def model(self) -> Model:
        """The distribution of rank cells that follows from columns, pairs and facts."""
        maker = self._maker
        margins = maker.margins  # of the columns as they are released, but for what facts and orders leave no place
        return Model.of_pairs(
            margins,
            self.pairs,
            self.total,
            agreements=self.agreements,
            forbidden=maker.forbidden(),
            disordered=maker.disordered(),
        )

    @cached_property
    def _maker(self) -> RowMaker:
        return RowMaker(self.domain, self.columns, self.ranks, self.masses, self.facts)

    # ----------------------------------------------------------------------------------------------------------- rows

    @hinted
    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        order: Order = "random",
        threads: int | None = None,
        where: Sequence[Condition] = (),
    ) -> Points:
        """Return synthetic rows: without `n` as many as were released.

        Rows are in random order, whatever `order` says. A seed makes them reproducible, whatever the number of
        threads. With conditions, rows that satisfy them all: `n` of them, or those of a whole sample. Their law is that
        of the model given the conditions, but for rare ones: see `RowMaker.given`.
        """
        if n is None and not where:
            Memory.of_machine().check_rows(self.total, CELL_BYTES * self.domain.width)
        pieces = list(self.blocks(n, seed=seed, order=order, threads=threads, where=where))
        return np.concatenate(pieces) if pieces else np.empty((0, self.domain.width))

    def blocks(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        order: Order = "random",
        threads: int | None = None,
        then: Callable[[Points], Any] | None = None,
        where: Sequence[Condition] = (),
    ) -> Iterator[Any]:
        """Yield the rows of `sample` in pieces of at most 131,072, in its order; `then` is applied to each.

        Guarantee:  cost  memory for one batch of at most 2^19 rows per thread
        """
        check_draw(n, seed, order, "rows")
        workers, count = min(thread_count(threads), MOST_PLAIN), self.total if n is None else int(n)
        conditions = self._maker.checked(where, alone=n is not None)
        batches = -(-count // BATCH)
        root = np.random.SeedSequence(seed)
        self.model  # noqa: B018 - made once, before threads ask for it
        few = batches <= FEW_TASKS  # then threads work inside each of them, one after the other
        last = batches % workers  # of the last round, for which there are more threads than batches

        def make(batch: int) -> list[Any]:
            inner = workers if few else workers // last if batch >= batches - last else 1
            size = count // batches + (batch < count % batches)
            stream = np.random.SeedSequence(root.entropy, spawn_key=(batch,))  # what spawn would give, of any number
            points = self._batch(size, np.random.SFC64(stream), inner, conditions, filtered=n is None)
            pieces = [points[start : start + BLOCK] for start in range(0, len(points), BLOCK)]
            results: list[Any] = list(pieces)
            if then is not None:
                in_threads(lambda i: results.__setitem__(i, then(pieces[i])), len(pieces), inner)
            return results

        return (piece for pieces in in_order(make, batches, 1 if few else workers) for piece in pieces)

    def _batch(
        self, n: int, bits: np.random.SFC64, threads: int, where: Sequence[Condition], *, filtered: bool
    ) -> Points:
        """Return the rows of one batch: they honour the facts, and satisfy the conditions."""
        rng, maker = np.random.Generator(bits), self._maker

        def drawn(count: int) -> Drawn:
            if where and not filtered:
                return maker.given(self.model, where, count, rng)
            return Drawn(self.model.sample(count, rng, threads=threads))

        conditions = () if filtered else where
        points = maker.accepted(n, drawn, rng, threads, where=conditions)
        return points[satisfy(points, where, self.domain)] if where and filtered else points

    def chosen(
        self,
        n: int | None = None,
        *,
        seed: int | None,
        order: Order,
        threads: int | None,
        then: Callable[[Points], Any],
        where: Sequence[Condition],
        facts: Sequence[AnyFact],
        factors: Product,
    ) -> Iterator[Any]:
        """Yield `then` of rows that satisfy conditions, in pieces; all keep the facts that the measure knows."""
        return self.blocks(n, seed=seed, order=order, threads=threads, then=then, where=where)

    def shares(self, n: int | None, parts: int) -> Iterator[Share]:
        """Yield a sample in shares of rows: each is drawn from the whole model."""
        return (Share(rows, NO_CELLS, NO_MASS) for rows in even_sizes(self.total if n is None else int(n), parts))

    def lean(self, facts: Sequence[AnyFact]) -> "ColumnsMeasure":
        """Return the model and the columns, without noisy counts and without noisy pairs, which went into the model."""
        bare = tuple(replace(column, noisy=None) for column in self.columns)
        found = replace(self, columns=bare, pairs=(), agreements=None)
        vars(found)["model"] = self.model  # made once, and not again on every machine
        return found

    def made(
        self,
        share: Share,
        *,
        seed: int,
        then: Callable[[Points], Any],
        where: Sequence[Condition],
        facts: Sequence[AnyFact],
        factors: Product,
    ) -> Iterator[Any]:
        """Yield `then` of the rows of a share, in pieces; of those that satisfy conditions, if there are any."""
        rows = self.blocks(share.rows, seed=seed, threads=1)
        return (then(points[satisfy(points, where, self.domain)]) for points in rows)

    def keeping(self, facts: tuple[AnyFact, ...], factors: Product) -> "ColumnsMeasure":
        """Return the measure whose rows keep the facts: those of its file, if it has any, and all orders."""
        orders = tuple(fact for fact in facts if isinstance(fact, ColumnOrder))
        if self.facts and not orders:
            return self
        known, told = (tuple(f for f in all_ if not isinstance(f, ColumnOrder)) for all_ in (self.facts, facts))
        return replace(self, facts=(*(known or told), *orders)) if facts else self

    # -------------------------------------------------------------------------------------------------------- answers

    def mean(self) -> Floats:
        """Return the mean of every column of points, from the released columns; missing values do not count."""
        return np.concatenate([column.mean() for column in self.columns])

    def quantile(self, q: float, *, column: int = 0) -> float:
        """Return the q-quantile of one column of points, from its released measure."""
        factor, at = self.factor(column)
        return self.columns[factor].quantile(q, column=at)

    def error_bar(self, *, lipschitz: float | None = None, column: int | None = None) -> float:
        """Return how far the mean of a column is from that of the data, in expectation, in the column's own units."""
        if lipschitz is not None or column is None:
            raise ArgumentError(
                "error_bar of a release of columns needs column=: each column has its own guarantee, and nothing is "
                "promised for statistics of several columns. Use mechanism='pmm' for those."
            )
        factor, at = self.factor(column)
        return self.columns[factor].error_bar(column=at)

    def certificate(self, beta: float = 0.05, *, quick: bool = False) -> ColumnCertificates:
        """Return for each column a bound of the W1 distance to its data; all hold at once but for a chance beta.

        They are about the released columns, to which rows of a sample agree to within rounding and what facts and
        pairs shift. See `CellMeasure.certificate`.
        """
        measured = [column for column in self.columns if column.level > 0]
        if isinstance(beta, bool) or not isinstance(beta, int | float) or not 0 < beta <= 0.5:
            raise ArgumentError(f"beta must be a number above 0 and at most 0.5, got {beta!r}.")
        share = rounded_down(Fraction(beta) / max(1, len(measured)))
        if share < MIN_BETA_SHARE:
            raise ArgumentError(
                f"beta is shared by {len(measured)} columns and so must be at least {len(measured) * SMALLEST_BETA:g}, "
                f"got {beta!r}."
            )
        certificates = [column.certificate(share, quick=quick) if column.level > 0 else None for column in self.columns]
        return ColumnCertificates(float(beta), tuple(map(str, range(len(self.columns)))), tuple(certificates))

    def distances(self, rows: Points) -> tuple[float, ...]:
        """Return for each column a bound of the W1 distance between some rows and the released column.

        Rows of a sample follow the columns only as far as rounding, pairs and facts allow. A column's guarantee or
        certificate plus this distance holds for the rows themselves, as long as rows lie in their cells as the release
        places them. Where an order constraint moves them inside their cells, that is included: see `inside_distance`.
        """
        check_rows(rows)
        found = []
        for j, (column, place) in enumerate(zip(self.columns, self.domain.columns, strict=True)):
            cells = np.flatnonzero(self.masses[j] > 0)
            far = cell_distance(
                column.domain, column.level, cells.astype(np.uint64), self.masses[j][cells], rows[:, place]
            )
            orders = self._orders_of(j) if column.placement == "uniform" else []
            found.append(far + inside_distance(column.domain, column.level, rows[:, place], orders))
        return tuple(found)

    def _orders_of(self, j: int) -> list[PlacedOrder]:
        """Return the orders that name a column, or columns of a group."""
        orders = [fact for fact in self.facts if isinstance(fact, ColumnOrder) and j in factors_of(fact)]
        return [(order, (order.one[1], order.two[1])) for order in orders]

    def pair_distances(self, rows: Points, *, noisy: bool = False) -> tuple[tuple[int, int, float], ...]:
        """Return the measured pairs, with the total variation of some rows from the released table, made consistent.

        With `noisy` it is the distance from the noisy table as it was released: added to the bound of that table, which
        a plan states (`pair_error`), it bounds the error of the rows. It is about the groups of values in which a pair
        was measured. Columns of a sample come out as they were released; pairs that contradict each other, or facts,
        cannot all do so.
        """
        check_rows(rows)
        located = [
            groups.take(column.domain.locate(rows[:, place], column.level).view(np.int64))
            for groups, column, place in zip(self.ranks, self.columns, self.domain.columns, strict=True)
        ]
        found = []
        for pair in self.pairs:
            table = pair.noisy / self.total if noisy else self._consistent(pair)
            shares = table.ravel() if noisy else table.ravel() / table.sum()
            code = pair.first_groups.take(located[pair.first]) * table.shape[1]
            code += pair.second_groups.take(located[pair.second])
            drawn = np.bincount(code, minlength=table.size) / len(rows)
            found.append((pair.first, pair.second, float(np.abs(drawn - shares).sum() / 2)))
        return tuple(found)

    def _consistent(self, pair: Pair) -> Floats:
        margins = self._maker.margins
        return pair_table(pair, margins[pair.first], margins[pair.second], float(self.total))

    def pair_information(self) -> tuple[tuple[int, int, float], ...]:
        """Return the measured pairs, with what one tells of the other in bits: by the released tables, made consistent.

        It is about the groups of values in which a pair was measured, and noise may make some of it.
        """
        return tuple((p.first, p.second, mutual_information(self._consistent(p))) for p in self.pairs)

    @cached_property
    def standing_alone(self) -> tuple[int, ...]:
        """The columns that depend on no other one in the model, or by no more than noise explains.

        See `model.independence`. Groups, columns with one value and columns that a fact compares are not named.
        """
        varied = [j for j, column in enumerate(self.plan.columns) if column.depth > 0]
        if len(varied) < 2:
            return ()
        margins = self._maker.margins
        links = {
            (pair.first, pair.second): table_scores(pair, margins[pair.first], margins[pair.second])
            for pair in self.pairs
            if depends(self._consistent(pair))
        }
        if self.agreements is not None:
            measured = {(pair.first, pair.second) for pair in self.pairs}
            followed = {(i, j) for i, j, _ in self.model.strengths()}
            links |= agreement_scores(self.agreements, margins, measured, followed)
        alone = unlinked(len(margins), links, [factors_of(fact) for fact in self.facts])
        return tuple(j for j in varied if j in alone and not isinstance(self.domain.factors[j], Product))

    def to_frame(self) -> Any:
        """Return the released columns as a pyarrow table: column, cell, mass, lowest and highest value."""
        import pyarrow as pa

        frames = []
        for j, column in enumerate(self.columns):
            for at in range(column.domain.width):
                low, high = (side[:, at] for side in column.domain.extent(column.cells, column.level))
                number = np.full(len(column.cells), self.domain.columns[j].start + at)
                frames.append(
                    pa.table({"column": number, "cell": column.cells, "mass": column.mass, "low": low, "high": high})
                )
        return pa.concat_tables(frames)

    def factor(self, column: int) -> tuple[int, int]:
        """Return in which factor of the table a column of points lies, and where in it."""
        check_coordinate(column, self.domain.width)
        places = self.domain.columns
        j = next(j for j, place in enumerate(places) if column < place.stop)
        return j, int(column) - places[j].start

    # ----------------------------------------------------------------------------------------------------------- file

    def part(self, column: int) -> tuple[CellMeasure, int]:
        """Return the measure that a column of points lies in, and its place there."""
        factor, place = self.factor(column)
        return self.columns[factor], place

    def header(self) -> dict[str, Any]:
        """Return what the file says about the release."""
        header = {
            "format": files.FILE_FORMAT,
            "kind": "columns",
            "private": self.private,
            "domain": write_domain(self.domain),
            "parts": files.number_parts([about for about, _ in self._parts()]),
            "ranks": [to_runs(groups) for groups in self.ranks],
            "plan": self.plan.to_json(),
            "recipe": self.columns[0].recipe,
        } | ({} if self.origin is None else self.origin.to_json())
        facts = [[c.to_json() for c in fact] for fact in self.facts if not isinstance(fact, ColumnOrder)]
        return header | {"facts": facts} if facts else header

    def _parts(self) -> list[tuple[dict[str, Any], files.Part]]:
        return column_parts(self.columns) + agreement_parts(self.agreements) + pair_parts(self.pairs)

    def columns_of_file(self) -> files.FileTable:
        """Return the columns of the file: part, cell and mass."""
        return files.join_parts([part for _, part in self._parts()])

    def save(self, path: str | Path) -> None:
        """Write the release to one Parquet file, which `load` reads; see `CellMeasure.save`."""
        files.write_release(path, self.header(), self.columns_of_file())
        tell_how_to_load(self.domain)

    @classmethod
    def from_file(
        cls, header: dict[str, Any], table: files.FileTable, domain: Domain | None = None
    ) -> "ColumnsMeasure":
        """Return what `save` wrote, if header, columns and pairs fit together."""
        space, plan = read_domain(header, domain), ColumnPlan.from_json(header["plan"])
        if not isinstance(space, Product):
            raise ReleaseFileError("a release of columns must have a product as its domain")
        parts = list(
            zip(files.describe_parts(header["parts"]), files.separate_parts(header["parts"], table), strict=True)
        )
        spaces = [column_space(factor, plan.most_steps) for factor in space.factors]
        columns, rest = read_columns(spaces, plan, header["recipe"], header["private"], parts)
        if len(header["ranks"]) != len(columns):
            raise ReleaseFileError("every column must have its ranks")
        ranks: tuple[Groups, ...] = tuple(
            from_runs(value, 1 << column.level) for value, column in zip(header["ranks"], columns, strict=True)
        )
        agreements, rest = read_agreements(plan, ranks, rest)
        pairs = read_pairs(plan, ranks, rest)
        facts = tuple(_read_fact(fact, space) for fact in header.get("facts", []))
        return cls(space, plan, columns, ranks, pairs, header["private"], facts, Origin.from_header(header), agreements)

    def __repr__(self) -> str:
        """Show the outline."""
        mark = "" if self.private else ", NOT PRIVATE"
        return f"ColumnsMeasure({len(self.columns)} columns, {len(self.pairs)} pairs, {self.total} rows{mark})"

    def _repr_html_(self) -> str:
        """Show what was promised and measured, in a notebook."""
        return html_words(str(self.plan), title=repr(self))


def _read_fact(value: Any, domain: Product) -> Fact:
    one, two = (Condition.from_json(condition, domain) for condition in value)
    return one, two

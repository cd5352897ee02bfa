"""A release of a table: a measure on points, and the public schema that turns points back into rows.

This room is public. It cannot reach counts, sources or the data.
"""

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privmeasure.conditions.orders import AnyFact, ColumnOrder
from privmeasure.domains import Points
from privmeasure.errors import ArgumentError, NoRowsError, PrivmeasureError, ReleaseFileError
from privmeasure.hints import hinted
from privmeasure.notebook import html_words
from privmeasure.origin import Origin
from privmeasure.plans.promise import Promise
from privmeasure.releases import files
from privmeasure.releases.base import Measure, Order
from privmeasure.releases.capacity import Memory, row_bytes
from privmeasure.releases.cells import CellMeasure
from privmeasure.releases.choosing import enough
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.releases.drift import MAX_MEASURED, MEASURED_SEED, PairDistances, RowDistances
from privmeasure.releases.sampling import check_draw
from privmeasure.tables import Layout, Schema
from privmeasure.tables.columns.fields import did_you_mean
from privmeasure.tables.facts import asked, column_orders, forbidden_pairs
from privmeasure.tables.frames import FrameKind, from_arrow, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class TableRelease:
    """What anyone may see of a table: rows, answers by column, one file. Asking costs nothing: it was paid for already.

    `layout` says in which order, with which names and storage types columns came in, and so how they go out.
    """

    schema: Schema
    layout: Layout
    measure: Measure
    measured: RowDistances | None = None
    """The distances of the default rows, where an order constraint moves them and a file or a fit brought them."""

    def __post_init__(self) -> None:
        """Let the measure know the facts of the schema, where its rows follow from them too."""
        object.__setattr__(self, "measure", self.measure.keeping(self.facts, self.schema.node_domain))

    @cached_property
    def facts(self) -> tuple[AnyFact, ...]:
        """What the schema says can never occur, which every sampled row honours, as it is written."""
        return (*forbidden_pairs(self.schema), *column_orders(self.schema, types=self.storage_types))

    @property
    def plan(self) -> Promise:
        """What was measured and what is guaranteed, restated at the released number of rows."""
        plan = self.measure.plan
        if not any(isinstance(fact, ColumnOrder) for fact in self.facts):
            return plan
        return cast(Promise, replace(cast(Any, plan), compared=True))

    @property
    def private(self) -> bool:
        """False when the noise came from a seed: such a release protects no one."""
        return self.measure.private

    @property
    def origin(self) -> Origin | None:
        """The id of the release and the version that made it; None in files of versions that did not keep them."""
        return self.measure.origin

    @property
    def total(self) -> int:
        """The released number of rows."""
        return self.measure.total

    @hinted
    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        order: Order = "random",
        frame: FrameKind | str = "pyarrow",
        threads: int | None = None,
        where: str | None = None,
    ) -> Any:
        """Return synthetic rows as a table of pyarrow, or as the kind of frame that is asked for.

        Without `n` there are as many as were released; they are refused if they cannot fit in memory. A seed makes rows
        reproducible, whatever the number of threads. `where` is a condition on columns, "age >= 30 and sex = 'F'":
        there are then `n` rows that satisfy it, or without `n` those of a whole sample. Their law is that of all rows
        given the condition. The one exception is a condition that fewer than one in 64 rows satisfy, in a release of
        columns, if the pairs form rings or an order constraint compares its column: that column is as released, the
        others are drawn given it in another order than usual.
        """
        import pyarrow as pa

        if n is None and where is None:
            Memory.of_machine().check_rows(self.total, row_bytes(self.layout.types))
        layout = self.schema.layout_for(str(frame), self.layout)
        tables = list(self._tables(layout, n, seed=seed, order=order, threads=threads, where=where))
        return from_arrow(pa.concat_tables(tables), frame)

    def batches(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        order: Order = "random",
        threads: int | None = None,
        where: str | None = None,
    ) -> "Iterator[pa.Table]":
        """Yield the rows of `sample` as tables of at most 131,072 rows; there is at least one, which may be empty."""
        return self._tables(self.layout, n, seed=seed, order=order, threads=threads, where=where)

    def _tables(
        self,
        layout: Layout,
        n: int | None,
        *,
        seed: int | None,
        order: Order,
        threads: int | None,
        where: str | None,
    ) -> "Iterator[pa.Table]":
        """Yield the rows of `batches` in a layout; which rows these are does not depend on it."""
        wanted = asked(self.schema, where, types=self.storage_types)
        check_draw(n, seed, order, "rows")
        if wanted.clauses and n is not None:
            order = "random"  # the first rows that are fine must not all come from the first cells

        def rows(count: int | None, seed: int | None, then: Callable[[Points], Any]) -> "Iterator[pa.Table]":
            return self.measure.chosen(
                count,
                seed=seed,
                order=order,
                threads=threads,
                then=then,
                where=wanted.conditions,
                facts=self.facts,
                factors=self.schema.node_domain,
            )

        def met(points: Points) -> "pa.Table":
            return self.schema.decode(points[wanted.holds(self.schema, points)] if wanted.clauses else points, layout)

        if wanted.clauses and n is not None:
            tables = enough(rows, met, int(n), seed)
        else:
            tables = rows(None if wanted.clauses else n, seed, met)
        return self._some(tables, met)

    def blocks(
        self, n: int | None = None, *, seed: int | None = None, order: Order = "random", threads: int | None = None
    ) -> "Iterator[pa.Table]":
        """Yield the rows of `sample`, as every release does: see `batches`."""
        return self.batches(n, seed=seed, order=order, threads=threads)

    def _some(self, tables: "Iterator[pa.Table]", decoded: Callable[[Points], "pa.Table"]) -> "Iterator[pa.Table]":
        """Yield the tables, or an empty one if there is none."""
        first = next(tables, None)
        yield decoded(np.empty((0, self.measure.domain.width))) if first is None else first
        yield from tables

    @property
    def storage_types(self) -> list[Any]:
        """Return the storage type of each column of data, None where it has none or several."""
        types = dict(zip(self.layout.names, self.layout.types, strict=True))
        return [types.get(name) for name in self.schema.data]

    # -------------------------------------------------------------------------------------------------------- answers

    def mean(self) -> dict[str, float]:
        """Return the mean of every column of numbers, and the share of true of every boolean one.

        Mass is spread evenly over each cell; missing values do not count.
        """
        result = {}
        for name, place in self._places().items():
            column = self.schema.data[name]
            released, place = self._released(place)
            cells, level = released.cells, released.level
            sides = (*released.domain.extent(cells, level), released.domain.centre(cells, level))
            low, high, centre = (column.averages(points[:, place]) for points in sides)
            if low is None or high is None or centre is None:
                continue
            # Simpson's rule where values do not grow evenly; elsewhere the middle of a cell is exact
            value = (low + 4 * centre + high) / 6 if column.curved else (low + high) / 2
            present = ~np.isnan(value)
            mass = released.mass[present]
            result[name] = float(value[present] @ mass / mass.sum()) if len(mass) else math.nan
        return result

    def quantile(self, q: float, *, column: str) -> Any:
        """Return the q-quantile of a column in its own type: a number, a date, a rank; None if all is missing."""
        place = self._place(column)
        kind = self.schema.data[column]
        if not kind.has_quantiles:
            raise ArgumentError(f"Column {column!r} has no order, and so no quantiles. Count its values in a sample.")
        point = self.measure.quantile(q, column=place)
        return kind.decode(np.array([[point]]), [None])[0][0].as_py()

    def error_bar(self, *, column: str | None = None, lipschitz: float | None = None) -> float:
        """Return how far the mean of a column is from that of the data, in expectation, in the units of the column.

        See `CellMeasure.error_bar`. Infinite where the column jumps between rows that are near.
        """
        if column is None:
            return self.measure.error_bar(lipschitz=lipschitz)
        if lipschitz is not None:
            raise ArgumentError("error_bar needs one of lipschitz= (a Lipschitz constant) and column= (its mean).")
        return self.measure.error_bar(column=self._place(column)) * self.schema.data[column].steepness

    def certificate(self, beta: float = 0.05, *, quick: bool = False) -> Any:
        """Return a bound of the W1 distance that holds but for a chance beta; see `CellMeasure.certificate`.

        A release of columns has one for each column, or group of columns, by name; see `ColumnsMeasure.certificate`.
        If the schema has an order constraint, `row_distances` are added, so that it holds for the default rows.
        """
        found = self.measure.certificate(beta, quick=quick).named([", ".join(node) for node in self.schema.nodes])
        return found if self._moved is None else found.of_rows(self._moved.columns)

    @property
    def row_distances(self) -> dict[str, float] | None:
        """How far the default rows are from each released column, in W1; None without an order constraint.

        The default rows are those of `sample(seed=0)`, at most 200,000. Of one tree there is one number, for all
        columns together. The mean error of the rows is at most the guarantee plus this distance. Public, from the
        release alone: it cannot show that the data break a constraint, unless the release contradicts it.
        """
        return None if self._moved is None else dict(zip(self._trees, self._moved.columns, strict=True))

    @property
    def row_pair_distances(self) -> list[tuple[str, str, float]] | None:
        """The measured pairs with the total variation of the default rows from the noisy table, largest first.

        None without an order constraint. See `row_distances`.
        """
        return None if self._moved is None else self._named_pairs(self._moved.pairs)

    @cached_property
    def _moved(self) -> RowDistances | None:
        """The distances of the default rows; those of older files are computed."""
        return self.measured if self.measured is not None else self._row_distances()

    def _row_distances(self) -> RowDistances | None:
        """Return how far the default rows are from what was released; None without an order, or without rows."""
        if not any(isinstance(fact, ColumnOrder) for fact in self.facts) or not self.total:
            return None
        try:
            rows = self.sample(min(self.total, MAX_MEASURED), seed=MEASURED_SEED)
        except NoRowsError:  # the release contradicts a constraint: sampling says so
            return None
        points = self.schema.encode(rows)
        return RowDistances(
            len(points), self.measure.distances(points), self.measure.pair_distances(points, noisy=True)
        )

    def with_row_distances(self) -> "TableRelease":
        """Return the release with `row_distances` in its file, if its schema has an order constraint."""
        if self._moved is None:
            return self
        release = copy.copy(self)  # with the model that was made for these rows
        object.__setattr__(release, "measured", self._moved)
        return release

    @property
    def _trees(self) -> list[str]:
        """What each tree of the release is about: a column, or several."""
        nodes = [tuple(self.schema.data)] if self.plan.joint else self.schema.nodes
        return [" and ".join(node) for node in nodes]

    def distances(self, rows: Any) -> dict[str, float]:
        """Return for each column (or group) how far rows are from what was released; of one tree, one number.

        Public. A column's guarantee or certificate plus this distance, in W1, holds for the rows themselves.
        """
        table, _ = to_arrow(rows)
        return dict(zip(self._trees, self.measure.distances(self.schema.encode(table)), strict=True))

    def pair_distances(self, rows: Any, *, noisy: bool = False) -> list[tuple[str, str, float]]:
        """Return the measured pairs, by name, with the total variation of rows from the released table, largest first.

        From the tables made consistent, or with `noisy` from those that were released. Public: it compares released
        values with rows that anyone may draw. See `ColumnsMeasure.pair_distances`.
        """
        table, _ = to_arrow(rows)
        return self._named_pairs(self.measure.pair_distances(self.schema.encode(table), noisy=noisy))

    def _named_pairs(self, pairs: PairDistances) -> list[tuple[str, str, float]]:
        names = [" and ".join(node) for node in self.schema.nodes]
        return sorted(((names[i], names[j], distance) for i, j, distance in pairs), key=lambda pair: -pair[2])

    def pair_information(self) -> list[tuple[str, str, float]]:
        """Return the pairs of columns that were measured together, by name, those that tell most of each other first.

        In bits, by the released tables: see `ColumnsMeasure.pair_information`.
        """
        names = [" and ".join(node) for node in self.schema.nodes]
        found = [(names[one], names[two], bits) for one, two, bits in self.measure.pair_information()]
        return sorted(found, key=lambda pair: -pair[2])

    @property
    def standing_alone(self) -> list[str]:
        """The columns that depend on no other one in the rows, or by no more than noise explains.

        A model that is trained on the rows cannot predict them. Only a release of columns has any, and only if rows can
        be drawn: see `ColumnsMeasure.standing_alone`.
        """
        try:
            found = self.measure.standing_alone if isinstance(self.measure, ColumnsMeasure) else ()
        except NoRowsError:  # facts leave no row; `sample` says so
            found = ()
        return [self.schema.nodes[j][0] for j in found]

    def to_frame(self) -> "pa.Table":
        """Return the measure as a pyarrow table of cells; see `CellMeasure.to_frame`."""
        return self.measure.to_frame()

    def _places(self) -> dict[str, slice]:
        """Return where in a point each column lies."""
        places, start = {}, 0
        for name, column in self.schema.data.items():
            places[name] = slice(start, start + column.domain.width)
            start += column.domain.width
        return places

    def _released(self, place: slice) -> tuple[CellMeasure, slice]:
        """Return the measure that a column of points lies in, and where in it."""
        released, at = self.measure.part(place.start)
        return released, slice(at, at + place.stop - place.start)

    def _place(self, column: str) -> int:
        places = self._places()
        if column not in places:
            hint = did_you_mean(str(column), list(places))
            raise ArgumentError(f"column must be one of the released columns, got {column!r}.{hint}")
        if places[column].stop - places[column].start > 1:
            raise ArgumentError(f"Column {column!r} has two coordinates: ask its measure for each of them.")
        start: int = places[column].start
        return start

    # ----------------------------------------------------------------------------------------------------------- file

    def header(self) -> dict[str, Any]:
        """Return what the file says about the release: what its measure says, the schema and the layout."""
        header = {**self.measure.header(), "schema": self.schema.to_json(), "layout": self.layout.to_json()}
        if self.measured is None:
            return header
        return header | {"format": files.ROW_DISTANCES_FORMAT, "row_distances": self.measured.to_json()}

    def save(self, path: str | Path) -> None:
        """Write the release to one Parquet file, which `load` reads; see files.py."""
        files.write_release(path, self.header(), self.measure.columns_of_file())

    @classmethod
    def from_file(cls, header: dict[str, Any], measure: Measure) -> "TableRelease":
        """Return what `save` wrote, if schema, layout and measure fit together."""
        try:
            schema, layout = Schema.from_json(header["schema"]), Layout.from_json(header["layout"])
            domain = (schema.domain if measure.plan.joint else schema.node_domain).to_json()
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            detail = f": {error}" if isinstance(error, PrivmeasureError) else ""
            raise ReleaseFileError(f"the schema or the layout cannot be read{detail}") from None
        if domain != header["domain"]:
            raise ReleaseFileError("the schema is not the one that the domain was made of")
        if schema.person != measure.plan.privacy.person:
            raise ReleaseFileError("the schema and the plan name different persons")
        release = cls(schema, layout, measure, _read_measured(header, measure))
        release._check()
        return release

    def _check(self) -> None:
        """Refuse a layout that is not one of the schema, by decoding no rows at all."""
        try:
            empty = self.schema.decode(np.empty((0, self.measure.domain.width)), self.layout)
            fits = tuple(empty.column_names) == self.layout.names
        except Exception:  # whatever an edited layout leads to
            fits = False
        if not fits or len(set(self.layout.names)) < len(self.layout.names):
            raise ReleaseFileError("the layout does not fit the schema")

    def __repr__(self) -> str:
        """Show the outline."""
        mark = "" if self.private else ", NOT PRIVATE"
        return f"TableRelease({len(self.layout.names)} columns, {self.total} rows{mark})"

    def _repr_html_(self) -> str:
        """Show what was promised and measured, and the columns, in a notebook."""
        return html_words(str(self.plan), title=repr(self)) + self.schema._repr_html_()


def _read_measured(header: dict[str, Any], measure: Measure) -> RowDistances | None:
    """Return the distances of the default rows, if the file has them."""
    if "row_distances" not in header:
        return None
    if header["format"] < files.ROW_DISTANCES_FORMAT:
        raise ReleaseFileError("the distances of the rows belong to a newer format than the one that is stated")
    trees = 1 if measure.plan.joint else len(measure.plan.trees)
    pairs = [(pair.first, pair.second) for pair in getattr(measure, "pairs", ())]
    return RowDistances.from_json(header["row_distances"], trees, pairs)

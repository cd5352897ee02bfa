"""What anyone may see: released measures, their points, their answers.

This room is public. It cannot reach counts, sources or the data: nothing here can leak, however it is used.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privmeasure import compiled, domains
from privmeasure.conditions.orders import AnyFact, ColumnOrder, PlacedOrder, place_of
from privmeasure.conditions.sets import Condition
from privmeasure.domains import Cells, Domain, Floats, Points, Product, column_units
from privmeasure.domains.own import tell_how_to_load
from privmeasure.errors import ArgumentError, ReleaseFileError
from privmeasure.estimates.consistency import Mass
from privmeasure.estimates.linear import existing
from privmeasure.hints import hinted
from privmeasure.notebook import html_words
from privmeasure.origin import Origin
from privmeasure.plans.plan import Plan
from privmeasure.releases import files
from privmeasure.releases.base import Order
from privmeasure.releases.capacity import CELL_BYTES, Memory
from privmeasure.releases.certificate import Certificate
from privmeasure.releases.certify import certify
from privmeasure.releases.choosing import choose_rows, replace_rows
from privmeasure.releases.drift import cell_distance, inside_distance
from privmeasure.releases.ordered import InOrder
from privmeasure.releases.sampling import (
    NO_CELLS,
    NO_MASS,
    Rows,
    Share,
    check_coordinate,
    check_draw,
    cut_shares,
    in_order,
    interval_quantile,
)
from privmeasure.threads import BLOCK, in_threads, thread_count
from privmeasure.transport import apportion

Noisy = Mapping[int, NDArray[np.signedinteger[Any]]]
"""The noisy counts of all cells of the measured levels below the root; 0 for cells that do not exist."""


@dataclass(frozen=True, eq=False)
class CellMeasure:
    """Whole-number masses on the cells of one level of a domain: what PMM releases.

    `cells` are sorted and distinct, `mass` is above 0 and sums to the released number of rows. `noisy` are the counts
    that the noise was added to, as they were released: what `certificate` needs. It is None after a lazy evaluation,
    for more than 2^22 cells, and in files of versions that did not keep them. `origin` is the id of the release and the
    version that made it; None in older files, and for a column of a release of columns, which has its own. `orders`
    between columns of a table are not in the file: a release of a table brings them (`keeping`).
    """

    domain: Domain
    cells: Cells
    mass: Mass
    plan: Plan
    recipe: dict[str, Any]
    placement: Literal["uniform", "centre"]
    private: bool
    noisy: Noisy | None = None
    origin: Origin | None = None
    orders: tuple[PlacedOrder, ...] = ()

    @property
    def level(self) -> int:
        """The level of the cells."""
        return self.plan.depth

    @property
    def total(self) -> int:
        """The released number of rows."""
        return int(self.mass.sum())

    @hinted
    def sample(
        self, n: int | None = None, *, seed: int | None = None, order: Order = "random", threads: int | None = None
    ) -> Points:
        """Return synthetic rows: without `n` exactly the released masses, with it their proportions to within one row.

        Rows come in random order, or cell by cell with ``order="cell"``, which is faster. A seed makes the rows
        reproducible, whatever the number of threads; it weakens nothing, since the release is public. All released rows
        are refused if they cannot fit in memory.
        """
        if n is None:
            Memory.of_machine().check_rows(self.total, CELL_BYTES * self.domain.width)
        count = thread_count(threads)
        rows = self._rows(n, seed, order, count)
        points = np.empty((rows.count, self.domain.width))

        def place(chunk: int) -> None:
            first = rows.edges[chunk]
            for drawn in self._drawn(rows, chunk):
                points[first : first + len(drawn)] = drawn
                first += len(drawn)

        in_threads(place, len(rows.edges) - 1, compiled.useful_threads(count, rows.count))
        return points

    def blocks(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        order: Order = "random",
        threads: int | None = None,
        then: Callable[[Points], Any] | None = None,
    ) -> Iterator[Any]:
        """Yield the rows of `sample` in pieces of at most 131,072, in its order; `then` is applied to each in a thread.

        Guarantee:  cost  memory for a few pieces, and in random order for one integer per row
        """
        count = thread_count(threads)
        rows = self._rows(n, seed, order, count)

        def make(chunk: int) -> list[Any]:
            return [drawn if then is None else then(drawn) for drawn in self._drawn(rows, chunk)]

        makers = min(count, compiled.MOST_PLAIN)  # what follows is not compiled, and others write meanwhile
        return (piece for pieces in in_order(make, len(rows.edges) - 1, makers) for piece in pieces)

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
        """Yield `then` of rows that satisfy conditions and break no fact, in pieces; others are left out."""
        if not where and not facts:
            return self.blocks(n, seed=seed, order=order, threads=threads, then=then)
        rows = choose_rows(
            self,
            n,
            seed=seed,
            order=order,
            threads=threads,
            where=where,
            facts=facts,
            factors=factors,
            redraw=self._in_order,
        )
        return map(then, rows)

    def shares(self, n: int | None, parts: int) -> Iterator[Share]:
        """Yield a sample in shares of cells: each has its own, but for those on an edge."""
        return cut_shares(self.cells, self.mass if n is None else apportion(self.mass, int(n)), parts)

    def lean(self, facts: Sequence[AnyFact]) -> "CellMeasure":
        """Return the measure without cells, which shares bring; with all where rows that break facts are replaced."""
        if facts:
            return replace(self, noisy=None)
        return replace(self, cells=NO_CELLS, mass=NO_MASS, noisy=None)

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
        """Yield `then` of the rows of a share, in pieces; rows that break facts are replaced by some of all cells."""
        if not share.rows:
            return iter(())
        own = replace(self, cells=share.cells, mass=share.mass)
        vars(own)["_in_order"] = self._in_order  # rows go to the nearest cells of all, not of the share alone
        if where or not facts:
            return own.chosen(
                seed=seed, order="random", threads=1, then=then, where=where, facts=facts, factors=factors
            )
        rows = replace_rows(own, self._any_rows, seed=seed, facts=facts, factors=factors, redraw=self._in_order)
        return map(then, rows)

    def _any_rows(self, n: int, rng: np.random.Generator) -> Points:
        """Return independent rows."""
        ends = np.cumsum(self.mass)
        cells = self.cells[np.searchsorted(ends, rng.integers(0, ends[-1], n), "right")]
        return (
            self.domain.centre(cells, self.level)
            if self.placement == "centre"
            else self.domain.draw(cells, self.level, rng)
        )

    def keeping(self, facts: tuple[AnyFact, ...], factors: Product) -> "CellMeasure":
        """Return the measure that knows the orders, for which points are drawn again: see `InOrder`.

        Rows that break another fact are left out: see `chosen`.
        """
        orders = tuple((fact, place_of(fact, factors)) for fact in facts if isinstance(fact, ColumnOrder))
        return replace(self, orders=orders) if orders else self

    @cached_property
    def _in_order(self) -> InOrder | None:
        """What draws points again that break an order; None without orders."""
        return InOrder(self.domain, self.level, self.cells, self.mass, self.orders) if self.orders else None

    def distances(self, rows: Points) -> tuple[float, ...]:
        """Return a bound of the W1 distance between some rows and the released cells: one number.

        Rows of a sample are the cells exactly, to a row, unless an order or a fact moves some. The guarantee or the
        certificate plus this distance holds for the rows themselves.
        """
        orders = self.orders if self.placement == "uniform" else ()
        far = cell_distance(self.domain, self.level, self.cells, self.mass, rows)
        return (far + inside_distance(self.domain, self.level, rows, orders),)

    def _rows(self, n: int | None, seed: int | None, order: Order, threads: int) -> Rows:
        check_draw(n, seed, order, "masses")
        mass = self.mass if n is None else apportion(self.mass, int(n))
        return Rows(self.cells, mass, np.random.SeedSequence(seed), shuffled=order == "random", threads=threads)

    def _drawn(self, rows: Rows, chunk: int) -> Iterator[Points]:
        """Yield the points of one chunk in pieces that stay in the cache."""
        rng = rows.stream(chunk)
        cells = rows.chunk(chunk, rng)
        for start in range(0, len(cells), BLOCK):
            block = cells[start : start + BLOCK]
            if self.placement == "centre":
                yield self.domain.centre(block, self.level)
            else:
                yield self.domain.draw(block, self.level, rng)

    def mean(self) -> Floats:
        """Return the mean of every column, over the centres of the cells; missing values do not count."""
        centres = self.domain.centre(self.cells, self.level)
        present = ~np.isnan(centres)
        weight = present * self.mass[:, np.newaxis]
        with np.errstate(invalid="ignore"):  # a column without any value has mean NaN
            return np.asarray(np.where(present, centres, 0.0).T @ self.mass / weight.sum(axis=0), np.float64)

    def quantile(self, q: float, *, column: int = 0) -> float:
        """Return the q-quantile of one column, mass spread evenly over each cell's extent; missing does not count."""
        if not isinstance(q, int | float | np.number) or not 0 <= q <= 1:
            raise ArgumentError(f"q must be from 0 to 1, got {q!r}.")
        check_coordinate(column, self.domain.width)
        low, high = (side[:, column] for side in self.domain.extent(self.cells, self.level))
        present = ~np.isnan(low)
        if not present.any():
            return float("nan")
        return interval_quantile(low[present], high[present], self.mass[present], q)

    def error_bar(self, *, lipschitz: float | None = None, column: int | None = None) -> float:
        """Return how far a statistic of the release is from that of the data, in expectation: L times the guarantee.

        W1 bounds every statistic that is the mean of a function f with |f(x) - f(y)| <= L d(x, y), also those that
        nobody planned. Give L as `lipschitz`; or a `column` for the mean of that column, or of anything that changes no
        faster (clipped values, the loss of a quantile), in the column's own units. Infinite where the column jumps
        between points that are near.

        References: Kantorovich-Rubinstein duality
        """
        if (lipschitz is None) == (column is None):
            raise ArgumentError("error_bar needs one of lipschitz= (a Lipschitz constant) and column= (its mean).")
        if column is not None:
            check_coordinate(column, self.domain.width)
            lipschitz = column_units(self.domain)[column]
        if not isinstance(lipschitz, int | float) or not lipschitz >= 0:
            raise ArgumentError(f"lipschitz must be a number of at least 0, got {lipschitz!r}.")
        return float(lipschitz * self.plan.guarantee)

    def certificate(self, beta: float = 0.05, *, quick: bool = False) -> Certificate:
        """Return an upper bound of the W1 distance between the data and these rows, which holds but for a chance beta.

        It reads released values and the law of the noise alone, so it costs no privacy. It is about this very release;
        the guarantee of the plan, which had to hold before anything was released, is about the mean over all that might
        have been, and may be smaller. It speaks of the rows of one `sample()`; another number of rows adds their
        rounding. The chance is over the noise and the places of the rows in their cells. Takes seconds the first time
        for a plan, since the law of the noise is simulated; `quick` takes less, and gives a bound that holds as well
        and is often larger.

        References: T4 of docs/mathematics.md; docs/proofs/certificate.md
        """
        if self.noisy is None:
            raise ArgumentError(
                "A certificate needs the noisy counts, and this release does not have them: it was evaluated lazily, "
                "has more than 2^22 cells, or comes from a file of an older version. Use plan.guarantee, or release "
                "with a smaller depth."
            )
        return certify(
            self.domain,
            self.plan,
            self.noisy,
            self.cells,
            self.mass,
            placement=self.placement,
            beta=beta,
            quick=quick,
            estimated=self.recipe.get("schedule") == "ladder" and 0 in self.plan.levels,
        )

    def pair_distances(self, rows: Points, *, noisy: bool = False) -> tuple[tuple[int, int, float], ...]:
        """Return nothing: all columns were measured together."""
        return ()

    def pair_information(self) -> tuple[tuple[int, int, float], ...]:
        """Return nothing: all columns were measured together."""
        return ()

    def to_frame(self) -> Any:
        """Return the measure as a pyarrow table: cell, mass, and the lowest and highest value of each column."""
        import pyarrow as pa

        low, high = self.domain.extent(self.cells, self.level)
        columns: dict[str, Any] = {"cell": self.cells, "mass": self.mass}
        for i in range(self.domain.width):
            columns[f"low_{i}"], columns[f"high_{i}"] = low[:, i], high[:, i]
        return pa.table(columns)

    def part(self, column: int) -> tuple["CellMeasure", int]:
        """Return the measure that a column of points lies in, this one, and its place there."""
        return self, column

    def header(self) -> dict[str, Any]:
        """Return what the file says about the release."""
        return {
            "format": files.FILE_FORMAT,
            "kind": "cells",
            "private": self.private,
            "domain": domains.write_domain(self.domain),
            "parts": files.number_parts([part for part, _ in self.parts()]),
            "plan": self.plan.to_json(),
            "recipe": self.recipe,
        } | ({} if self.origin is None else self.origin.to_json())

    def parts(self) -> list[tuple[dict[str, Any], files.Part]]:
        """Return the parts of the file and what each is: the released masses, then the noisy counts by level."""
        parts: list[tuple[dict[str, Any], files.Part]] = [
            ({"kind": "cells", "level": self.level}, (self.cells, self.mass))
        ]
        for level, counts in sorted((self.noisy or {}).items()):
            there = existing(self.domain, level)[level]
            part = np.flatnonzero(there).astype(np.uint64), counts[there].astype(np.int64)
            parts.append(({"kind": "noisy", "level": level}, part))
        return parts

    def columns_of_file(self) -> files.FileTable:
        """Return the columns of the file: part, cell and mass."""
        return files.join_parts([part for _, part in self.parts()])

    def save(self, path: str | Path) -> None:
        """Write the release to one Parquet file, which `load` reads; see files.py.

        A domain of your own does not fit into a file: a UserWarning then says to read it by `load(path, domain=...)`.
        """
        files.write_release(path, self.header(), self.columns_of_file())
        tell_how_to_load(self.domain)

    @classmethod
    def from_file(cls, header: dict[str, Any], table: files.FileTable, domain: Domain | None = None) -> "CellMeasure":
        """Return what `save` wrote, if header and cells fit together."""
        parts = list(
            zip(files.describe_parts(header["parts"]), files.separate_parts(header["parts"], table), strict=True)
        )
        plan = Plan.from_json(header["plan"])
        measure = cls.from_parts(read_domain(header, domain), plan, header["recipe"], header["private"], parts)
        return replace(measure, origin=Origin.from_header(header))

    @classmethod
    def from_parts(
        cls,
        domain: Domain,
        plan: Plan,
        recipe: dict[str, Any],
        private: bool,
        parts: Sequence[tuple[dict[str, Any], files.Part]],
    ) -> "CellMeasure":
        """Return the measure that `parts` wrote, if everything fits together."""
        level, (first, (cells, mass)) = plan.depth, parts[0]
        if first != {"kind": "cells", "level": level}:
            raise ReleaseFileError("the first part must be the cells of the level of the plan")
        if not 0 <= level <= domain.deepest or plan.cells != domain.size(level):
            raise ReleaseFileError("the level is not one of the domain")
        if len(cells) == 0 or (cells[1:] <= cells[:-1]).any() or cells[-1] >> np.uint64(level):
            raise ReleaseFileError("the cells must be sorted, distinct and of the stated level")
        if (mass <= 0).any() or not domain.exists(cells, level).all():
            raise ReleaseFileError("masses must be above 0 and lie on cells that exist")
        if float(mass.sum(dtype=np.float64)) >= 2**53:
            raise ReleaseFileError("the masses sum to 2^53 or more, where a release has fewer rows than that")
        if int(mass.sum()) != plan.rows:
            raise ReleaseFileError("the number of rows is not that of the plan")
        if recipe["placement"] not in ("uniform", "centre") or not all(
            isinstance(name, str) for name in recipe.values()
        ):
            raise ReleaseFileError("the recipe is unknown")
        if not isinstance(private, bool):
            raise ReleaseFileError("private must be true or false")
        noisy = _read_noisy(domain, plan, parts[1:])
        return cls(domain, cells, mass, plan, recipe, recipe["placement"], private, noisy)

    def __repr__(self) -> str:
        """Show the outline."""
        mark = "" if self.private else ", NOT PRIVATE"
        return f"CellMeasure({len(self.cells)} cells of level {self.level}, mass {self.total}{mark})"

    def _repr_html_(self) -> str:
        """Show what was promised and measured, in a notebook."""
        return html_words(str(self.plan), title=repr(self))


def read_domain(header: dict[str, Any], domain: Domain | None) -> Domain:
    """Return the domain of a file, or the one that is given if it is the same."""
    if domain is None:
        return domains.from_json(header["domain"])
    if domains.write_domain(domain) != header["domain"]:
        raise ReleaseFileError("the domain that was given is not the one that the file was written with")
    return domain


def _read_noisy(domain: Domain, plan: Plan, parts: Sequence[tuple[dict[str, Any], files.Part]]) -> Noisy | None:
    """Return the noisy counts of a file if those of all measured levels are there; None if there are none at all."""
    levels = [level for level in plan.levels if level > 0]
    if not parts and (levels or plan.evaluation == "lazy"):
        return None
    wanted = [{"kind": "noisy", "level": level} for level in levels]
    if (
        [part for part, _ in parts] != wanted
        or plan.evaluation == "lazy"
        or (levels and levels[-1] > files.DEEPEST_NOISY)
    ):
        raise ReleaseFileError("the noisy counts must be those of the measured levels")
    noisy: dict[int, NDArray[np.signedinteger[Any]]] = {}
    for level, (_, (cells, counts)) in zip(levels, parts, strict=True):
        there = existing(domain, level)[level] if len(cells) == domain.size(level) else np.zeros(0, bool)
        if not len(there) or not np.array_equal(cells, np.flatnonzero(there)):
            raise ReleaseFileError("the noisy counts must be those of all cells that exist, sorted")
        largest = float(np.abs(counts.astype(np.float64)).max())
        if largest >= 2**62:
            raise ReleaseFileError("a noisy count is out of reach")
        noisy[level] = np.zeros(1 << level, np.int32 if largest < 1 << 31 else np.int64)
        noisy[level][there] = counts
    return noisy

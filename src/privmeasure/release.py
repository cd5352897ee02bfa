"""What anyone may see: released measures, their points, their answers.

This room is public. It cannot reach counts, engines or the data: nothing here can leak, however it is used.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from privmeasure import domains, files
from privmeasure.blocks import BLOCK, in_threads, thread_count
from privmeasure.domains import Cells, Domain, Floats, Points, column_units
from privmeasure.errors import ArgumentError, PrivmeasureError, ReleaseFileError
from privmeasure.plan import Plan
from privmeasure.sampling import Mass, Rows, interval_quantile
from privmeasure.transport import apportion

Order = Literal["random", "cell"]


class Release(Protocol):
    """A released measure. Sampling, saving and asking are free: the privacy was paid for already."""

    @property
    def plan(self) -> Plan:
        """What was measured and what is guaranteed, restated at the released number of rows."""
        ...

    @property
    def private(self) -> bool:
        """False when the noise came from a seed: such a release protects no one."""
        ...

    def sample(
        self, n: int | None = None, *, seed: int | None = None, order: Order = "random", threads: int | None = None
    ) -> Points:
        """Return synthetic rows."""
        ...

    def save(self, path: str | Path) -> None:
        """Write the release to one file."""
        ...

    def to_frame(self) -> Any:
        """Return the measure as a table of cells."""
        ...

    def mean(self) -> Floats:
        """Return the mean of every column."""
        ...

    def quantile(self, q: float, *, column: int = 0) -> float:
        """Return a quantile of one column."""
        ...


@dataclass(frozen=True, eq=False)
class CellMeasure:
    """Whole-number masses on the cells of one level of a domain: what PMM releases.

    `cells` are sorted and distinct, `mass` is above 0 and sums to the released number of rows.
    """

    domain: Domain
    cells: Cells
    mass: Mass
    plan: Plan
    recipe: dict[str, Any]
    placement: Literal["uniform", "centre"]
    private: bool

    @property
    def level(self) -> int:
        """The level of the cells."""
        return self.plan.depth

    @property
    def total(self) -> int:
        """The released number of rows."""
        return int(self.mass.sum())

    def sample(
        self, n: int | None = None, *, seed: int | None = None, order: Order = "random", threads: int | None = None
    ) -> Points:
        """Return synthetic rows: without `n` exactly the released masses, with it their proportions to within one row.

        Rows come in random order, or cell by cell with ``order="cell"``, which is faster. A seed makes the rows
        reproducible, whatever the number of threads; it weakens nothing, since the release is public.
        """
        if order not in ("random", "cell"):
            raise ArgumentError(f"order must be 'random' or 'cell', got {order!r}.")
        if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n < 2**53):
            raise ArgumentError(f"n must be a whole number of at least 0, or None for the released masses, got {n!r}.")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise ArgumentError(
                f"seed must be a whole number of at least 0, or None for fresh randomness, got {seed!r}."
            )
        count = thread_count(threads)
        mass = self.mass if n is None else apportion(self.mass, int(n))
        points = np.empty((int(mass.sum()), self.domain.width))
        if len(points) == 0:
            return points
        rows = Rows(self.cells, mass, np.random.SeedSequence(seed), shuffled=order == "random", threads=count)

        def place(chunk: int) -> None:
            rng, first = rows.stream(chunk), rows.edges[chunk]
            cells = rows.chunk(chunk, rng)
            for start in range(0, len(cells), BLOCK):
                block = cells[start : start + BLOCK]
                if self.placement == "centre":
                    drawn = self.domain.centre(block, self.level)
                else:
                    drawn = self.domain.draw(block, self.level, rng)
                points[first + start : first + start + len(block)] = drawn

        in_threads(place, len(rows.edges) - 1, count)
        return points

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
        if not isinstance(column, int | np.integer) or not 0 <= column < self.domain.width:
            raise ArgumentError(f"column must be from 0 to {self.domain.width - 1}, got {column!r}.")
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
            if not isinstance(column, int | np.integer) or not 0 <= column < self.domain.width:
                raise ArgumentError(f"column must be from 0 to {self.domain.width - 1}, got {column!r}.")
            lipschitz = column_units(self.domain)[column]
        if not isinstance(lipschitz, int | float) or not lipschitz >= 0:
            raise ArgumentError(f"lipschitz must be a number of at least 0, got {lipschitz!r}.")
        return float(lipschitz * self.plan.guarantee)

    def to_frame(self) -> Any:
        """Return the measure as a pyarrow table: cell, mass, and the lowest and highest value of each column."""
        import pyarrow as pa

        low, high = self.domain.extent(self.cells, self.level)
        columns: dict[str, Any] = {"cell": self.cells, "mass": self.mass}
        for i in range(self.domain.width):
            columns[f"low_{i}"], columns[f"high_{i}"] = low[:, i], high[:, i]
        return pa.table(columns)

    def header(self) -> dict[str, Any]:
        """Return what the file says about the release."""
        return {
            "format": files.FORMAT,
            "kind": "cells",
            "private": self.private,
            "domain": self.domain.to_json(),
            "parts": [{"part": 0, "kind": "cells", "level": self.level}],
            "plan": self.plan.to_json(),
            "recipe": self.recipe,
        }

    def save(self, path: str | Path) -> None:
        """Write the release to one Parquet file, which `load` reads; see files.py."""
        files.write(path, self.header(), (np.zeros(len(self.cells), np.uint16), self.cells, self.mass))

    @classmethod
    def from_file(cls, header: dict[str, Any], table: files.Table, domain: Domain | None = None) -> "CellMeasure":
        """Return what `save` wrote, if header and cells fit together."""
        part, cells, mass = table
        if domain is None:
            domain = domains.from_json(header["domain"])
        elif domain.to_json() != header["domain"]:
            raise ReleaseFileError("the domain that was given is not the one that the file was written with")
        plan, recipe = Plan.from_json(header["plan"]), header["recipe"]
        level = plan.depth
        if header["parts"] != [{"part": 0, "kind": "cells", "level": level}] or part.any():
            raise ReleaseFileError("there must be one part, of the level of the plan")
        if not 0 <= level <= domain.deepest or plan.cells != domain.size(level):
            raise ReleaseFileError("the level is not one of the domain")
        if len(cells) == 0 or (cells[1:] <= cells[:-1]).any() or cells[-1] >> np.uint64(level):
            raise ReleaseFileError("the cells must be sorted, distinct and of the stated level")
        if (mass <= 0).any() or float(mass.sum(dtype=np.float64)) >= 2**62 or not domain.exists(cells, level).all():
            raise ReleaseFileError("masses must be above 0 and lie on cells that exist")
        if int(mass.sum()) != plan.rows:
            raise ReleaseFileError("the number of rows is not that of the plan")
        if recipe["placement"] not in ("uniform", "centre") or not all(
            isinstance(name, str) for name in recipe.values()
        ):
            raise ReleaseFileError("the recipe is unknown")
        if not isinstance(header["private"], bool):
            raise ReleaseFileError("private must be true or false")
        return cls(domain, cells, mass, plan, recipe, recipe["placement"], header["private"])

    def __repr__(self) -> str:
        """Show the outline."""
        mark = "" if self.private else ", NOT PRIVATE"
        return f"CellMeasure({len(self.cells)} cells of level {self.level}, mass {self.total}{mark})"


KINDS = {"cells": CellMeasure.from_file}
"""How each kind of release is read."""


def load(path: str | Path, *, domain: Domain | None = None) -> CellMeasure:
    """Read a release file; everything in it is checked before it is used.

    A domain of your own cannot be made from a file: give it as `domain`, equal to the one that was released.
    """
    header, table = files.read(path)
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ReleaseFileError(
            f"{path} holds a release of kind {kind!r}, which this version cannot read. It is damaged, or was written "
            "by a newer version: update privmeasure, or get it again."
        )
    try:
        return KINDS[kind](header, table, domain)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        detail = f" ({error})" if isinstance(error, PrivmeasureError) else ""
        raise ReleaseFileError(
            f"{path} is damaged or was edited: its header and its cells do not fit together{detail}. Get it again."
        ) from None

"""What anyone may see: released measures, their points, their file.

This room is public. It cannot reach counts, engines or the data: nothing here can leak, however it is used.

**The file** is Parquet with the columns `part` (uint16), `cell` (uint64) and `mass` (int64), sorted by part and cell,
and one JSON header in its metadata: format, what each part is (domain and level), the plan with the privacy promise,
the recipe, and whether the release is private. No timestamps, no names, nothing that was not released.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from privmeasure import domains
from privmeasure.blocks import BLOCK, in_threads, thread_count
from privmeasure.domains import Cells, Domain, Floats, Points
from privmeasure.errors import ArgumentError, PrivmeasureError, ReleaseFileError
from privmeasure.plan import Plan
from privmeasure.sampling import Mass, interval_quantile, scale_mass, shuffle

FORMAT = 1
HEADER_KEY = b"privmeasure"
LARGEST_HEADER = 1 << 28
LARGEST_ROWS = 1 << 31
"""Cells that a release file may list; checked before memory is taken."""

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
        shuffling, drawing = np.random.SeedSequence(seed).spawn(2)
        rows = np.repeat(self.cells, self.mass if n is None else scale_mass(self.mass, int(n)))
        if order == "random":
            rows = shuffle(rows, shuffling, count)
        points = np.empty((len(rows), self.domain.width))
        streams = drawing.spawn(-(-len(rows) // BLOCK))

        def place(block: int) -> None:
            part = slice(block * BLOCK, (block + 1) * BLOCK)
            if self.placement == "centre":
                points[part] = self.domain.centre(rows[part], self.level)
            else:
                rng = np.random.Generator(np.random.SFC64(streams[block]))
                points[part] = self.domain.draw(rows[part], self.level, rng)

        in_threads(place, len(streams), count)
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
        if not 0 <= q <= 1:
            raise ArgumentError(f"q must be from 0 to 1, got {q!r}.")
        if not 0 <= column < self.domain.width:
            raise ArgumentError(f"column must be from 0 to {self.domain.width - 1}, got {column!r}.")
        low, high = (side[:, column] for side in self.domain.extent(self.cells, self.level))
        present = ~np.isnan(low)
        if not present.any():
            return float("nan")
        return interval_quantile(low[present], high[present], self.mass[present], q)

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
            "format": FORMAT,
            "private": self.private,
            "parts": [{"part": 0, "kind": "cells", "domain": self.domain.to_json(), "level": self.level}],
            "plan": self.plan.to_json(),
            "recipe": self.recipe,
        }

    def save(self, path: str | Path) -> None:
        """Write the release to one Parquet file: written beside it first, so that no half file is ever left."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(
            {"part": pa.array(np.zeros(len(self.cells), np.uint16)), "cell": self.cells, "mass": self.mass},
            metadata={HEADER_KEY: json.dumps(self.header(), sort_keys=True).encode()},
        )
        path = Path(path)
        beside = path.with_name(path.name + ".part")
        try:
            pq.write_table(table, beside, compression="zstd")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    def __repr__(self) -> str:
        """Show the outline."""
        mark = "" if self.private else ", NOT PRIVATE"
        return f"CellMeasure({len(self.cells)} cells of level {self.level}, mass {self.total}{mark})"


def load(path: str | Path) -> CellMeasure:
    """Read a release file; everything in it is checked before memory is taken, and again before it is used."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            header = _checked_header(path, file)
            table = file.read(columns=["part", "cell", "mass"])
    except (OSError, UnicodeError, pa.ArrowException) as error:
        if isinstance(error, FileNotFoundError | IsADirectoryError | PermissionError):
            raise
        raise ReleaseFileError(f"{path} is not a complete Parquet file. Was it truncated? Copy it again.") from None
    try:
        return _measure(header, table)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        detail = f" ({error})" if isinstance(error, PrivmeasureError) else ""
        raise ReleaseFileError(
            f"{path} is damaged or was edited: its header and its cells do not fit together{detail}. Get it again."
        ) from None


def _checked_header(path: str | Path, file: Any) -> dict[str, Any]:
    text = (file.schema_arrow.metadata or {}).get(HEADER_KEY)
    if text is None or len(text) > LARGEST_HEADER:
        raise ReleaseFileError(f"{path} is a Parquet file, but not a privmeasure release: it has no header of ours.")
    try:
        header = json.loads(text)
        version = header["format"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ReleaseFileError(f"{path} has a header that cannot be read. Get the file again.") from None
    if version != FORMAT:
        raise ReleaseFileError(f"{path} has format {version!r}, this version reads {FORMAT}. Update privmeasure.")
    names = [(field.name, str(field.type)) for field in file.schema_arrow]
    if names != [("part", "uint16"), ("cell", "uint64"), ("mass", "int64")]:
        raise ReleaseFileError(f"{path} must have the columns part (uint16), cell (uint64), mass (int64), got {names}.")
    if file.metadata.num_rows > LARGEST_ROWS:
        raise ReleaseFileError(f"{path} lists {file.metadata.num_rows} cells, more than {LARGEST_ROWS}.")
    result: dict[str, Any] = header
    return result


def _measure(header: dict[str, Any], table: Any) -> CellMeasure:
    (part,) = header["parts"]
    if part["kind"] != "cells" or part["part"] != 0 or not isinstance(header["private"], bool):
        raise ReleaseFileError("the parts are of an unknown kind")
    domain, plan = domains.from_json(part["domain"]), Plan.from_json(header["plan"])
    if any(column.null_count for column in table.columns):
        raise ReleaseFileError("a value is missing")
    cells = table["cell"].to_numpy().astype(np.uint64)
    mass = table["mass"].to_numpy().astype(np.int64)
    level = plan.depth
    if part["level"] != level or not 0 <= level <= domain.deepest:
        raise ReleaseFileError("the level is not that of the plan")
    if (
        len(cells) == 0
        or (np.diff(cells) == 0).any()
        or (cells[1:] < cells[:-1]).any()
        or cells[-1] >> np.uint64(level)
    ):
        raise ReleaseFileError("the cells must be sorted, distinct and of the stated level")
    if (mass <= 0).any() or float(mass.sum(dtype=np.float64)) >= 2**62 or not domain.exists(cells, level).all():
        raise ReleaseFileError("masses must be above 0 and lie on cells that exist")
    if table["part"].to_numpy().any():
        raise ReleaseFileError("there is a part that the header does not name")
    if int(mass.sum()) != plan.rows or plan.cells != domain.size(level):
        raise ReleaseFileError("the number of rows or of cells is not that of the plan")
    recipe = header["recipe"]
    placement = recipe["placement"]
    if placement not in ("uniform", "centre") or not all(isinstance(name, str) for name in recipe.values()):
        raise ReleaseFileError("the recipe is unknown")
    return CellMeasure(domain, cells, mass, plan, recipe, placement, header["private"])

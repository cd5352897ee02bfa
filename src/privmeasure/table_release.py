"""A release of a table: a measure on points, and the public schema that turns points back into rows.

This room is public. It cannot reach counts, engines or the data.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privmeasure import files
from privmeasure.domains import Points
from privmeasure.errors import ArgumentError, PrivmeasureError, ReleaseFileError
from privmeasure.plan import Plan
from privmeasure.release import CellMeasure, Order
from privmeasure.tables import Boolean, Category, Integer, Layout, Number, Schema
from privmeasure.tables.base import did_you_mean
from privmeasure.tables.frames import FrameKind, from_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from privmeasure.certificate import Certificate


@dataclass(frozen=True, eq=False)
class TableRelease:
    """What anyone may see of a table: rows, answers by column, one file. Asking costs nothing: it was paid for already.

    `layout` says in which order, with which names and storage types columns came in, and so how they go out.
    """

    schema: Schema
    layout: Layout
    measure: CellMeasure

    @property
    def plan(self) -> Plan:
        """What was measured and what is guaranteed, restated at the released number of rows."""
        return self.measure.plan

    @property
    def private(self) -> bool:
        """False when the noise came from a seed: such a release protects no one."""
        return self.measure.private

    @property
    def total(self) -> int:
        """The released number of rows."""
        return self.measure.total

    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        order: Order = "random",
        frame: FrameKind | str = "pyarrow",
        threads: int | None = None,
    ) -> Any:
        """Return synthetic rows as a table of pyarrow, or as the kind of frame that is asked for.

        Without `n` there are as many as were released. A seed makes rows reproducible, whatever the number of threads.
        """
        import pyarrow as pa

        return from_arrow(pa.concat_tables(self.batches(n, seed=seed, order=order, threads=threads)), frame)

    def batches(
        self, n: int | None = None, *, seed: int | None = None, order: Order = "random", threads: int | None = None
    ) -> "Iterator[pa.Table]":
        """Yield the rows of `sample` as tables of at most 131,072 rows; there is at least one, which may be empty."""
        tables = self.measure.blocks(n, seed=seed, order=order, threads=threads, then=self._decoded)
        return tables if n is None or n > 0 else iter([self._decoded(np.empty((0, self.measure.domain.width)))])

    def _decoded(self, points: Points) -> "pa.Table":
        return self.schema.decode(points, self.layout)

    # -------------------------------------------------------------------------------------------------------- answers

    def mean(self) -> dict[str, float]:
        """Return the mean of every column of numbers, and the share of true of every boolean one.

        Mass is spread evenly over each cell; missing values do not count.
        """
        domain, cells, level = self.measure.domain, self.measure.cells, self.measure.level
        lows, highs = domain.extent(cells, level)
        centres = domain.centre(cells, level)
        result = {}
        for name, place in self._places().items():
            column = self.schema.data[name]
            if not isinstance(column, Number | Integer | Boolean):
                continue
            low, centre, high = (_numbers(column, points[:, place]) for points in (lows, centres, highs))
            # Simpson's rule where the column is stretched; elsewhere the middle of a cell is exact
            value = (low + 4 * centre + high) / 6 if _is_stretched(column) else (low + high) / 2
            present = ~np.isnan(value)
            mass = self.measure.mass[present]
            result[name] = float(value[present] @ mass / mass.sum()) if len(mass) else math.nan
        return result

    def quantile(self, q: float, *, column: str) -> Any:
        """Return the q-quantile of a column in its own type: a number, a date, a rank; None if all is missing."""
        place = self._place(column)
        kind = self.schema.data[column]
        if isinstance(kind, Category) and not kind.ordered:
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
        return self.measure.error_bar(column=self._place(column)) * _steepness(self.schema.data[column])

    def certificate(self, beta: float = 0.05) -> "Certificate":
        """Return a bound of the W1 distance that holds but for a chance beta; see `CellMeasure.certificate`."""
        return self.measure.certificate(beta)

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
        return {**self.measure.header(), "schema": self.schema.to_json(), "layout": self.layout.to_json()}

    def save(self, path: str | Path) -> None:
        """Write the release to one Parquet file, which `load` reads; see files.py."""
        files.write(path, self.header(), self.measure.columns())

    @classmethod
    def from_file(cls, header: dict[str, Any], measure: CellMeasure) -> "TableRelease":
        """Return what `save` wrote, if schema, layout and measure fit together."""
        try:
            schema, layout = Schema.from_json(header["schema"]), Layout.from_json(header["layout"])
            domain = schema.domain.to_json()
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            detail = f": {error}" if isinstance(error, PrivmeasureError) else ""
            raise ReleaseFileError(f"the schema or the layout cannot be read{detail}") from None
        if domain != header["domain"]:
            raise ReleaseFileError("the schema is not the one that the domain was made of")
        release = cls(schema, layout, measure)
        release._check()
        return release

    def _check(self) -> None:
        """Refuse a layout that is not one of the schema, by decoding no rows at all."""
        try:
            empty = self._decoded(np.empty((0, self.measure.domain.width)))
            fits = tuple(empty.column_names) == self.layout.names
        except Exception:  # whatever an edited layout leads to
            fits = False
        if not fits or len(set(self.layout.names)) < len(self.layout.names):
            raise ReleaseFileError("the layout does not fit the schema")

    def __repr__(self) -> str:
        """Show the outline."""
        mark = "" if self.private else ", NOT PRIVATE"
        return f"TableRelease({len(self.layout.names)} columns, {self.total} rows{mark})"


def _is_stretched(column: Any) -> bool:
    return isinstance(column, Number | Integer) and (column.transform is not None or column.breaks is not None)


def _numbers(column: Any, points: Points) -> Points:
    """Return the values of points of a column of numbers or booleans, NaN for missing."""
    import pyarrow as pa

    if isinstance(column, Number | Integer) and not _is_stretched(column):
        return points[:, 0]
    (array,) = column.decode(points, [None])
    return np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _steepness(column: Any) -> float:
    """Return by how much a value changes at most, for a change of its point by 1."""
    if not _is_stretched(column):
        return 1.0
    if isinstance(column, Integer):
        return math.inf  # rounding after the stretching jumps
    if column.transform == "log":
        return float(column.high)
    return float(np.diff(sorted({column.low, *column.breaks, column.high})).max())

"""The laws of sources, for those who count rows where ours do not: in another engine, on a cluster.

A mechanism's proof begins with counts, and takes them for what they say: how many rows lie in each cell. A source that
gives one row another cell than `Domain.locate` does, or another row's cell, or that fails because of a value, takes the
ground from under it. `check_source` puts hostile tables into a source and compares every count with that of NumPy:

    from privmeasure.testing import check_source

    def test_my_source():
        check_source(lambda table: MySource(upload(table)), schema)

It is a search for counterexamples with a fixed seed, not a proof.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from privmeasure.counts import DENSE_CELLS, Axis, CellCounts, Partition, Source
from privmeasure.domains import Points
from privmeasure.domains.traits import column_space
from privmeasure.tables import Schema

if TYPE_CHECKING:
    import pyarrow as pa

ODD_DOUBLES = (
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    0.5,
    1.5,
    2.5,
    -0.5,
    1e300,
    -1e300,
    2.0**53,
    2.0**63,
)
ODD_TEXTS = ("", " ", "a", "A", "it's", '"', "\\", "é", "e\u0301", "%s", "$1", "?", "--", "\U0001f600", "null")
EARLIEST, LATEST = -719_162, 2_932_896
"""The days of the years 1 and 9999."""


def check_source(
    make: "Callable[[pa.Table], Source]",
    schema: Schema,
    *,
    rows: int = 300,
    seed: int = 0,
    close: Callable[[Any], None] | None = None,
) -> None:
    """Check the laws of a source over tables of a schema, or raise an AssertionError that names the broken one.

    Laws:
        counts    every partition has the counts of the encoded points: one cell, coarse and fine ones, so many that
                  they come as a list, single columns and pairs, with groups and without
        again     the same questions have the same answers, in any order, one by one or together
        alone     a table has the counts of its parts, added; the order of rows does not matter; no rows are no counts
        quiet     nothing is raised because of a value, and the source shows nothing of itself

    `make` puts a table into the source; its columns have the natural types of the schema's. `close` lets go of it.

    Examples:
        >>> from privmeasure.counts import Axis
        >>> from privmeasure.tables import Integer
        >>> class Slow:
        ...     def __init__(self, schema, table):
        ...         self.points = schema.encode(table)
        ...     def count(self, partitions, progress=None):
        ...         return [true_counts(partition, self.points) for partition in partitions]
        ...     def __repr__(self):
        ...         return "Slow(private)"
        >>> schema = Schema({"age": Integer(0, 120, nullable=True)})
        >>> check_source(lambda table: Slow(schema, table), schema)
    """
    rng = np.random.default_rng(seed)
    table = hostile_table(schema, rows, rng)
    asked = _partitions(schema, rng)

    def counted(part: "pa.Table", partitions: Sequence[Partition]) -> list[CellCounts]:
        source = make(part)
        shown = repr(source)
        assert not any(str(cell) in shown for cell in (part.num_rows, *ODD_TEXTS[4:]) if part.num_rows > 9), (
            "the source shows something of itself"
        )
        try:
            found = source.count(partitions)
            assert len(found) == len(partitions), "count must give one answer for each partition"
            again = [source.count([partition])[0] for partition in reversed(partitions[:4])][::-1]
        finally:
            if close is not None:
                close(source)
        for first, second in zip(found, again, strict=False):
            assert _outline(first) == _outline(second), "the same question has another answer"
        return found

    def compare(part: "pa.Table", what: str) -> list[CellCounts]:
        points = schema.encode(part)
        found = counted(part, asked)
        for partition, counts in zip(asked, found, strict=True):
            levels = [axis.level for axis in partition.axes]
            assert _outline(counts) == _outline(true_counts(partition, points)), (
                f"{what}: the counts of a partition with axes of levels {levels} are not those of the points"
            )
        return found

    whole = compare(table, "a table")
    compare(table.slice(0, 0), "no rows")
    compare(table.take(rng.permutation(rows)), "rows in another order")
    halves = compare(table.slice(0, rows // 2), "one part"), compare(table.slice(rows // 2), "the other part")
    for one, first, second in zip(whole, *halves, strict=True):
        assert _outline(one) == _outline(first + second), "a table has not the counts of its parts"


def true_counts(partition: Partition, points: Points) -> CellCounts:
    """Return the counts of some points: what every source must give. PRIVATE where the points are."""
    codes = np.zeros(len(points), np.int64)
    for axis in partition.axes:
        codes = codes * axis.size + axis.index(points)
    if partition.size <= DENSE_CELLS:
        return CellCounts(partition.size, np.bincount(codes, minlength=partition.size).astype(np.int64))
    cells, counts = np.unique(codes, return_counts=True)
    return CellCounts(partition.size, counts.astype(np.int64), cells.view(np.uint64))


def hostile_table(schema: Schema, rows: int, rng: np.random.Generator) -> "pa.Table":
    """Return random rows of a schema, in natural types: usual cells, odd ones, and some beyond what is declared."""
    import pyarrow as pa

    points = schema.domain.draw(np.zeros(rows, np.uint64), 0, rng)
    columns: dict[str, Any] = {}
    end = 0
    for name, column in schema.data.items():
        start, end = end, end + column.domain.width
        usual = column.decode(points[:, start:end], [None] * len(column.natural))
        for source, cells in zip(column.sources(name), usual, strict=True):
            odd = _odd_cells(cells.type, rng, rows)
            columns[source] = pa.array(np.where(rng.random(rows) < 0.7, cells.to_pylist(), odd.to_pylist()), cells.type)
    return pa.table(columns)


def _odd_cells(kind: "pa.DataType", rng: np.random.Generator, rows: int) -> "pa.Array":
    import pyarrow as pa
    import pyarrow.types as pt

    if pt.is_floating(kind):
        pool: list[Any] = [*ODD_DOUBLES, *rng.normal(0, 1000, 20), None]
    elif pt.is_integer(kind):
        pool = [-(2**31), -1, 0, 1, 7, 1000, 2**31 - 1, *rng.integers(-200, 200, 20).tolist(), None]
    elif pt.is_boolean(kind):
        pool = [True, False, None]
    elif pt.is_temporal(kind):
        ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.get(getattr(kind, "unit", ""), 1)
        if pt.is_time(kind):
            whole = rng.integers(0, 86_400 * ticks, 20)
        else:
            days = np.array([EARLIEST, LATEST, -1, 0, 1, *rng.integers(-20_000, 40_000, 20)])
            whole = days if pt.is_date(kind) else days[2:] * 86_400 * ticks + rng.integers(0, 86_400 * ticks, 23)
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array([*whole.tolist(), None], width).take(pa.array(rng.integers(0, len(whole) + 1, rows))).cast(kind)
    else:
        pool = [*ODD_TEXTS, None]
    return pa.array(pool, kind).take(pa.array(rng.integers(0, len(pool), rows)))


def _partitions(schema: Schema, rng: np.random.Generator) -> list[Partition]:
    domain = schema.domain
    asked = [Partition(()), *(Partition.of(domain, level) for level in (0, 1, 7, 18, 40))]
    axes = []
    for factor, columns in zip(domain.factors, domain.columns, strict=True):
        for space in (factor, column_space(factor)):
            for level in (1, 5, 10):
                axes.append(Axis(space, level, columns))
            groups = rng.integers(0, 6, 1 << 5)
            axes += [Axis(space, 5, columns, groups), Axis(space, 5, columns, np.sort(groups))]
    asked += [Partition((axis,)) for axis in axes]
    chosen = [axes[i] for i in rng.integers(0, len(axes), 8)]
    one = Axis(axes[0].domain, 1, axes[0].columns, np.zeros(2, np.int64))
    chosen = [one, *chosen, one, chosen[0]]  # one group, and two axes in both orders
    return asked + [Partition((first, second)) for first, second in pairwise(chosen)]


def _outline(counts: CellCounts) -> tuple[Any, ...]:
    """Return counts as something to compare; of a list the cells that are occupied."""
    if counts.cells is None:
        return counts.size, counts.counts.tolist()
    there = counts.counts > 0
    return counts.size, counts.cells[there].tolist(), counts.counts[there].tolist()

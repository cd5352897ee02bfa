"""Databases count alike: what is asked in SQL has, row by row, the cells of NumPy, in every engine."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from laws.test_questions import COLUMNS, DOMAINS, hostile
from privmeasure.counts import Axis, Partition
from privmeasure.domains import Domain, Integers, Product
from privmeasure.domains.traits import column_space
from privmeasure.tables import Integer, Schema
from servers import Bases


def with_numbers(table: pa.Table) -> pa.Table:
    """Return a table whose first column numbers the rows: a count of (row, cell) then tells the cell of every row."""
    return table.add_column(0, "row", pa.array(np.arange(table.num_rows), pa.int64()))


def cells_by_row(source: Any, rows: Axis, axes: list[Axis], count: int) -> list[list[int]]:
    found = []
    for axis, counts in zip(axes, source.count([Partition((rows, axis)) for axis in axes]), strict=True):
        codes = np.flatnonzero(counts.counts) if counts.cells is None else counts.cells.astype(np.int64)
        assert counts.take().sum() == count
        found.append((codes % axis.size).tolist())
        assert (codes // axis.size).tolist() == list(range(count))
    return found


ENGINES = ("duckdb", "sqlite", "postgres")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("domain", "levels"), DOMAINS, ids=[repr(domain)[:60] for domain, _ in DOMAINS])
def test_points_have_the_cells_of_locate(bases: Bases, domain: Domain, levels: tuple[int, ...], engine: str) -> None:
    bases.need(engine)
    for level in levels:
        points = hostile(domain, min(level, 40), np.random.default_rng(level))
        table = with_numbers(pa.table({f"x{i}": column for i, column in enumerate(points.T)}))
        bits = math.ceil(math.log2(len(points)))
        level = min(level, 62 - bits)
        space = Product([Integers(0, (1 << bits) - 1), domain])
        rows = Axis(space.factors[0], bits, space.columns[0])
        axis = Axis(domain, level, space.columns[1])
        source = bases.query(engine, table).source(space)
        (found,) = cells_by_row(source, rows, [axis], len(points))
        source.close()
        assert found == domain.locate(points, level).tolist()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("column", "arrays"), COLUMNS, ids=[f"{i}-{type(c).__name__}" for i, (c, _) in enumerate(COLUMNS)]
)
def test_stored_values_have_the_cells_of_their_points(
    bases: Bases, column: Any, arrays: list[pa.Array], engine: str
) -> None:
    bases.need(engine)
    names = column.sources("a")
    arrays = [bases.within_years(engine, array) for array in arrays]
    if engine == "sqlite" and pa.types.is_timestamp(arrays[0].type) and column.timezone:
        pytest.skip("SQLite has no zones")
    table = with_numbers(pa.table(dict(zip(names, arrays, strict=True))))
    bits = math.ceil(math.log2(table.num_rows))
    schema = Schema({"row": Integer(0, (1 << bits) - 1), "place" if len(names) > 1 else "a": column})
    points = schema.encode(table)
    first, second = schema.domain.columns
    rows, rng = Axis(schema.domain.factors[0], bits, first), np.random.default_rng(1)
    axes = []
    for space in (column.domain, column_space(column.domain)):
        curved = (19,) if getattr(column, "curved", False) else ()  # beyond what breakpoints describe
        if engine == "sqlite" and getattr(column, "transform", None):
            curved = ()  # 2^16 knots take SQLite a minute to compile
        for level in (1, 2, 3, 6, 9) if len(names) > 1 else (1, 2, 3, 6, 10, 14, *curved):
            axes.append(Axis(space, level, second))
            if level < 11:
                groups = rng.integers(0, 5, 1 << level)
                axes += [Axis(space, level, second, groups), Axis(space, level, second, np.sort(groups))]
    axes.append(Axis(schema.domain, 12))
    source = bases.query(engine, table).source(schema)
    for found, axis in zip(cells_by_row(source, rows, axes, table.num_rows), axes, strict=True):
        assert found == axis.index(points).tolist()
    source.close()

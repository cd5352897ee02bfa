"""Databases count alike: what is asked in SQL has, row by row, the cells of NumPy, in every engine."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from depth import some
from laws.test_questions import COLUMNS, DOMAINS, hostile
from privmeasure.counts import Axis, Partition
from privmeasure.domains import Domain, Integers, Product
from privmeasure.domains.traits import column_space
from privmeasure.sources.databases import Query
from privmeasure.tables import Date, Datetime, Integer, Number, Place, Schema
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
KEPT = {"1-Number", "2-Number", "5-Integer", "25-Place", "27-Place"}
"""Columns that show planted faults: they are always tried."""
KEPT_DOMAINS = {"Nullable(Product([Steps(0, 9), Circle(7.0, low=0.0)], weight"}
"""The same for domains."""


@pytest.mark.parametrize("engine", ENGINES)
@some(("domain", "levels"), 8, DOMAINS, ids=[repr(domain)[:60] for domain, _ in DOMAINS], keep=KEPT_DOMAINS)
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
@some(("column", "arrays"), 6, COLUMNS, ids=[f"{i}-{type(c).__name__}" for i, (c, _) in enumerate(COLUMNS)], keep=KEPT)
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


def encoded_cells(column: Any, stored: np.ndarray, level: int) -> np.ndarray:
    """Return the cells of stored doubles, as they are in memory."""
    points = column.encode([pa.array(stored)])
    return column.domain.locate(points, level).astype(np.int64)


EDGED = [Number(0, 10), Number(-3, 0.1), Number(0.5, 1e6, transform="log"), Number(0, 1000, breaks=[10, 100])]
EDGED += [Integer(0, 120), Integer(1, 120, transform="log"), Integer(0, 1000, breaks=[5, 100])]


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
@pytest.mark.parametrize("column", EDGED, ids=[f"{i}-{type(c).__name__}" for i, c in enumerate(EDGED)])
def test_the_first_value_of_a_bin_lies_in_it(bases: Bases, column: Any, engine: str) -> None:
    """Each edge is found to the double, in memory: the value there, and the one just below, have two cells in SQL."""
    level = 5
    low, high = float(column.low), float(column.high)
    grid = np.linspace(low - 1, high + 1, 4001)
    cells = encoded_cells(column, grid, level)
    at = np.flatnonzero(np.diff(cells))
    below, above, under = grid[at], grid[at + 1], cells[at]
    for _ in range(80):
        middle = below + (above - below) / 2
        same = encoded_cells(column, middle, level) == under
        below, above = np.where(same, middle, below), np.where(same, above, middle)
    values = np.concatenate([above, np.nextafter(above, -np.inf)])
    bits = math.ceil(math.log2(len(values)))
    schema = Schema({"row": Integer(0, (1 << bits) - 1), "a": column})
    source = bases.query(engine, with_numbers(pa.table({"a": values}))).source(schema)
    rows, axis = Axis(schema.domain.factors[0], bits, slice(0, 1)), Axis(column.domain, level, slice(1, 2))
    (found,) = cells_by_row(source, rows, [axis], len(values))
    source.close()
    expected = encoded_cells(column, values, level)
    assert len(np.unique(expected)) > 10
    wrong = [(values[i], found[i], cell) for i, cell in enumerate(expected.tolist()) if found[i] != cell]
    assert not wrong, f"(value, cell in SQL, cell in memory): {wrong[:3]}"


@pytest.mark.parametrize("nullable", [False, True])
def test_nan_of_single_floats_is_missing_where_more_is_computed(bases: Bases, nullable: bool) -> None:
    """A place is computed from two coordinates: NaN in one of them, of either width, is the missing value."""
    column = Place(latitude="a", longitude="b", low=[-10, -20], high=[60, 20], nullable=nullable)
    cells = [math.nan, None, 45.0, -10.0, math.inf, 0.0, -0.0, 60.0]
    table = pa.table({"a": [x for x in cells for _ in cells], "b": cells * len(cells)})
    schema = Schema({"row": Integer(0, 63), "place": column})
    axis, rows = Axis(column.domain, 7, schema.domain.columns[1]), Axis(schema.domain.factors[0], 6, slice(0, 1))
    for kinds in ((pa.float64(), pa.float64()), (pa.float32(), pa.float64()), (pa.float32(), pa.float32())):
        stored = table.cast(pa.schema(list(zip("ab", kinds, strict=True))))
        source = bases.query("duckdb", with_numbers(stored)).source(schema)
        (found,) = cells_by_row(source, rows, [axis], len(table))
        source.close()
        assert found == axis.index(schema.encode(with_numbers(stored))).tolist(), kinds


@pytest.mark.parametrize("nullable", [False, True])
def test_infinite_days_and_instants_of_duckdb_are_clamped(bases: Bases, nullable: bool) -> None:
    """They are the first and the last cell, and no error: an error that depends on a value tells it."""
    schema = Schema(
        {
            "day": Date("2000-01-01", "2020-12-31", nullable=nullable),
            "moment": Datetime("2000-01-01", "2020-12-31", nullable=nullable),
        }
    )
    axes = [Axis(part, 6, at) for part, at in zip(schema.domain.factors, schema.domain.columns, strict=True)]

    def counted(days: list[str | None]) -> list[list[int]]:
        cells = [("NULL" if day is None else f"'{day}'") for day in days]
        rows = ", ".join(f"(CAST({cell} AS DATE), CAST({cell} AS TIMESTAMP))" for cell in cells)
        source = Query(bases.duckdb, f"SELECT * FROM (VALUES {rows}) AS t(day, moment)").source(schema)
        found = [counts.counts.tolist() for counts in source.count([Partition((axis,)) for axis in axes])]
        source.close()
        return found

    between = ["2000-01-01", "2010-07-05", None]
    assert counted(["infinity", "-infinity", *between]) == counted(["9999-12-31", "0001-01-01", *between])
    assert counted(["infinity"]) == counted(["2020-12-31"]) != counted([None])
    assert counted(["-infinity"]) == counted(["2000-01-01"]) != counted(["infinity"])


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/New_York"])
def test_instants_of_a_zone_have_their_local_time(bases: Bases, zone: str) -> None:
    """The zone of the session decides nothing: the hours around both changes of the clock, in DuckDB as in memory."""
    column = Datetime("2020-01-01", "2020-12-31", resolution="1h", timezone="Europe/Berlin", nullable=True)
    begins = [1_585_440_000, 1_603_580_400, 1_577_836_800, 1_609_459_199]
    ticks = [None, *((begin + 1_800 * i) * 10**6 for begin in begins for i in range(10))]
    table = with_numbers(pa.table({"a": pa.array(ticks, pa.int64()).cast(pa.timestamp("us", "UTC"))}))
    schema = Schema({"row": Integer(0, 63), "a": column})
    bases.duckdb.execute(f"SET TimeZone = '{zone}'")
    try:
        source = bases.query("duckdb", table).source(schema)
        axis = Axis(column.domain, 14, schema.domain.columns[1])
        (found,) = cells_by_row(source, Axis(schema.domain.factors[0], 6, slice(0, 1)), [axis], len(ticks))
        source.close()
    finally:
        bases.duckdb.execute("RESET TimeZone")
    assert found == axis.index(schema.encode(table)).tolist()

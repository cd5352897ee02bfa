"""All engines count alike: a table, in a file or in memory, has the counts of its encoded points."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmeasure.counts import Axis, Partition
from privmeasure.sources import files as reading
from privmeasure.sources import lines, tally
from privmeasure.sources import tables as engine
from privmeasure.sources.arrays import ArraySource
from privmeasure.sources.files import open_table
from privmeasure.sources.tables import TableSource
from privmeasure.tables import Boolean, Category, Drop, Integer, Number, Schema
from privmeasure.tables.texts import TextForm
from privmeasure.tables.writing import write_table

SCHEMA = Schema(
    {
        "x": Number(0, 10, nullable=True),
        "id": Drop(),
        "k": Integer(0, 7),
        "c": Category(["a", "b", "c"], unknown="c"),
        "b": Boolean(nullable=True),
    }
)

CELL = {
    "x": st.none() | st.floats(-1, 11) | st.sampled_from([np.nan, np.inf, 0.0, -0.0, 10.0, 5e-324]),
    "id": st.just("someone"),
    "k": st.none() | st.integers(-3, 12),
    "c": st.none() | st.sampled_from(["a", "b", "c", "", "d,", 'é"\n']),
    "b": st.none() | st.booleans(),
}
TYPES = pa.schema({"x": pa.float64(), "id": pa.string(), "k": pa.int64(), "c": pa.string(), "b": pa.bool_()})
TABLES = st.lists(st.fixed_dictionaries(CELL), max_size=40).map(lambda rows: pa.Table.from_pylist(rows, TYPES))


def partitions():
    domain = SCHEMA.domain
    first = Axis(domain.factors[0], 3, columns=slice(0, 1))
    second = Axis(domain.factors[1], 2, columns=slice(1, 2), groups=np.array([0, 1, 1, 0]))
    return [
        Partition(()),
        Partition.of(domain, 7),
        Partition((first, second)),
        Partition((first,)),
        Partition.of(domain, 40),
    ]


def outline(counts):
    return [(c.size, c.counts.tolist(), None if c.cells is None else c.cells.tolist()) for c in counts]


def expected(points):
    return outline(ArraySource(points, width=SCHEMA.domain.width, threads=1).count(partitions()))


@settings(max_examples=60, deadline=None)
@given(
    rows=TABLES,
    threads=st.integers(1, 3),
    pieces=st.lists(st.integers(0, 40), max_size=4),
    kept=st.booleans(),
    few=st.integers(0, 4),
)
def test_a_table_in_memory_has_the_counts_of_its_points(rows, threads, pieces, kept, few):
    edges = sorted({0, rows.num_rows, *(piece for piece in pieces if piece <= rows.num_rows)})
    parts = [rows.slice(a, b - a) for a, b in pairwise(edges)]
    table = pa.concat_tables(parts) if parts else rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "CACHE_BYTES", 1 << 20 if kept else 50)
        patch.setattr(engine, "BLOCK", 7)
        patch.setattr(engine, "FEW_BATCHES", few)
        patch.setattr(tally, "PENDING", 5)
        source = TableSource(table, SCHEMA, threads=threads)
        for _ in range(3):  # reading, then from what was kept, or reading again
            assert outline(source.count(partitions())) == expected(SCHEMA.encode(rows))


@settings(max_examples=25, deadline=None)
@given(rows=TABLES, threads=st.integers(1, 3), block=st.sampled_from([64, 200, 1 << 20]))
@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet"])
def test_a_file_has_the_counts_of_its_points(tmp_path_factory, name, rows, threads, block):
    path = tmp_path_factory.mktemp("law") / name
    write_table(path, [rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        patch.setattr(reading, "BLOCK", 7)
        source = TableSource(open_table(path, TextForm(newlines_in_cells=True)), SCHEMA, threads=threads)
        assert outline(source.count(partitions())) == expected(SCHEMA.encode(rows))
        assert outline(source.count(partitions()[:2])) == expected(SCHEMA.encode(rows))[:2]


def test_the_law_rejects_a_source_that_loses_a_row(monkeypatch):
    rows = pa.Table.from_pylist([{"x": 1.0, "id": "", "k": 1, "c": "a", "b": True}] * 5, TYPES)
    add = tally.Tally.add
    monkeypatch.setattr(tally.Tally, "add", lambda self, points: add(self, points[1:]))
    found = outline(TableSource(rows, SCHEMA, threads=1).count(partitions()))
    monkeypatch.undo()
    assert found != expected(SCHEMA.encode(rows))


def test_more_rows_than_small_integers_hold_are_counted(monkeypatch):
    monkeypatch.setattr(tally, "SMALL", 10)
    points = np.full((30, 1), 0.5)
    domain = Schema({"x": Number(0, 1)}).domain
    part = tally.Tally([Partition.of(domain, 1)])
    for _ in range(3):
        part.add(points)
    assert part.parts[0]._counts.dtype == np.int64
    (counts,) = tally.merge_tallies([part])
    assert counts.counts.tolist() == [0, 90]

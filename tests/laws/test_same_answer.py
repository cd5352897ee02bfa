"""The same answer everywhere: a release does not tell where its rows lay, nor in which pieces or which order."""

import sqlite3

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import privmeasure as pm
from privmeasure.sources import files as reading
from privmeasure.sources import lines
from privmeasure.sources.arrays import ArraySource
from privmeasure.sources.tables import TableSource
from privmeasure.tables.writing import write_table
from privmeasure.testing import check_source
from privmeasure.testing.sources import hostile_table
from servers import Bases

NULLABLE = st.booleans()
LABELS = st.lists(st.sampled_from(["a", "A", "it's", "é", "", "b c", "10", "x,y", '"']), min_size=1, unique=True)
COLUMNS = st.one_of(
    st.builds(pm.Number, st.just(0.0), st.sampled_from([1.0, 1e6, 0.3]), nullable=NULLABLE),
    st.builds(pm.Number, st.just(0.5), st.just(1e5), transform=st.just("log"), nullable=NULLABLE),
    st.builds(pm.Number, st.just(0.0), st.just(100.0), breaks=st.just([5.0, 20.0]), nullable=NULLABLE),
    st.builds(pm.Integer, st.integers(-5, 0), st.integers(1, 300), nullable=NULLABLE),
    st.builds(pm.Category, LABELS, nullable=NULLABLE),
    st.builds(pm.Category, LABELS, nullable=NULLABLE, ordered=st.just(True)),
    st.builds(pm.Boolean, nullable=NULLABLE),
    st.builds(pm.Date, st.just("1990-01-01"), st.just("2020-12-31"), nullable=NULLABLE),
    st.builds(pm.Datetime, st.just("1990-01-01"), st.just("2020-12-31"), resolution=st.just("1h"), nullable=NULLABLE),
    st.builds(pm.Time, resolution=st.sampled_from(["1min", "1h"]), nullable=NULLABLE),
)
SCHEMAS = st.lists(COLUMNS, min_size=1, max_size=6).map(
    lambda columns: pm.Schema({f"column {i}": column for i, column in enumerate(columns)})
)
EVERY_KIND = pm.Schema(
    {
        "number": pm.Number(0, 10, nullable=True),
        "ratio": pm.Number(0.5, 1e5, transform="log"),
        "integer": pm.Integer(-3, 99, nullable=True),
        "text": pm.Category(["a", "A", "it's", "é", "b", "c"], nullable=True),
        "flag": pm.Boolean(nullable=True),
        "day": pm.Date("1990-01-01", "2020-12-31", nullable=True),
        "moment": pm.Datetime("1990-01-01", "2020-12-31"),
        "time": pm.Time(nullable=True),
        "place": pm.Place(latitude="lat", longitude="lon", low=[-10, -20], high=[60, 20]),
        "globe": pm.Place(latitude="north", longitude="east", nullable=True),
    }
)


def outline(synthesizer: pm.Synthesizer) -> list[list[int]]:
    """Return all that was released: masses on cells, and noisy pairs."""
    measure = (
        synthesizer.release_._measure if hasattr(synthesizer.release_, "_measure") else synthesizer.release_.measure
    )
    parts = getattr(measure, "columns", (measure,))
    found = [[*part.cells.tolist(), *part.mass.tolist()] for part in parts]
    return found + [[pair.first, pair.second, *pair.noisy.ravel().tolist()] for pair in getattr(measure, "pairs", ())]


def released(schema: pm.Schema, data: object, threads: int = 1) -> list[list[int]]:
    synthesizer = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", threads=threads)
    return outline(synthesizer.fit(data, insecure_seed=7, newlines_in_cells=True))


@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    schema=SCHEMAS,
    seed=st.integers(0, 99),
    rows=st.integers(1, 200),
    threads=st.integers(1, 3),
    block=st.just(7) | st.just(64),
)
def test_a_release_does_not_tell_where_its_rows_lay(tmp_path_factory, bases: Bases, schema, seed, rows, threads, block):
    rng = np.random.default_rng(seed)
    table = hostile_table(schema, rows, rng)
    expected = released(schema, table)
    shuffled = table.take(rng.permutation(rows))
    folder = tmp_path_factory.mktemp("same")
    for name in ("t.csv", "t.parquet"):
        write_table(folder / name, [shuffled])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "BLOCK", block)
        patch.setattr(lines, "BLOCK_BYTES", 16 * block)
        assert released(schema, folder / "t.csv", threads) == expected
        assert released(schema, folder / "t.parquet", threads) == expected
    assert (
        released(schema, ArraySource(schema.encode(shuffled), width=schema.domain.width, threads=threads)) == expected
    )
    for engine in bases.engines:
        assert released(schema, bases.query(engine, shuffled), threads) == expected, engine


@pytest.mark.parametrize("engine", ["duckdb", "sqlite", "postgres"])
def test_databases_keep_the_laws_of_sources(bases: Bases, engine: str) -> None:
    bases.need(engine)
    check_source(
        lambda table: bases.query(engine, table).source(EVERY_KIND), EVERY_KIND, close=lambda source: source.close()
    )


def test_tables_keep_the_laws_of_sources() -> None:
    check_source(lambda table: TableSource(table, EVERY_KIND), EVERY_KIND)


def test_single_floats_are_widened_exactly(bases: Bases, tmp_path) -> None:
    rng = np.random.default_rng(3)
    schema = pm.Schema({"x": pm.Number(0, 1), "y": pm.Number(0.1, 1000, transform="log")})
    table = pa.table({"x": rng.random(500).astype(np.float32), "y": rng.gamma(2, 20, 500).astype(np.float32)})
    wide = table.cast(pa.schema({"x": pa.float64(), "y": pa.float64()}))
    expected = released(schema, wide)
    write_table(tmp_path / "t.parquet", [table])
    assert released(schema, table) == released(schema, tmp_path / "t.parquet") == expected
    for engine in set(bases.engines) - {"sqlite"}:
        assert released(schema, bases.query(engine, table)) == expected


def broken(change):
    class Broken(TableSource):
        def count(self, partitions, progress=None):
            return change(super().count(partitions, progress))

    return Broken


def lose_a_row(found):
    for counts in found:
        counts.counts[int(np.argmax(counts.counts))] -= counts.total > 9
    return found


@pytest.mark.parametrize("change", [lose_a_row, lambda found: found[:-1]])
def test_the_suite_refuses_a_source_that_is_wrong(change) -> None:
    with pytest.raises(AssertionError):
        check_source(lambda table: broken(change)(table, EVERY_KIND), EVERY_KIND)


def test_the_suite_refuses_a_source_that_rounds(bases: Bases) -> None:
    base = sqlite3.connect(":memory:")

    def rounded(table):
        base.execute("DROP TABLE IF EXISTS t")
        base.execute("CREATE TABLE t (x REAL)")
        cells = [None if x is None or x != x else x for x in table.column("x").to_pylist()]
        base.executemany("INSERT INTO t VALUES (?)", [(c,) for c in cells])
        base.commit()
        return pm.Query(base, "SELECT CAST(round(x, 3) AS REAL) AS x FROM t").source(schema)

    schema = pm.Schema({"x": pm.Number(0, 1)})
    with pytest.raises(AssertionError, match="not those of the points"):
        check_source(rounded, schema, close=lambda source: source.close())

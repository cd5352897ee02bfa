"""What executors do with Arrow batches gives every row the cell that it has in memory. No Spark and no Java is needed.

`executors.py` plays the cluster. `test_spark.py` asks real Spark the same questions, where it is installed.
"""

import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privmeasure as pm
from executors import Executors, shipped
from laws.test_same_answer import EVERY_KIND, SCHEMAS, outline
from laws.test_spark import ODD, ODD_SCHEMA
from privmeasure.counts import Axis, Partition
from privmeasure.domains import Box, Circle, Domain, Nullable, Product, Steps
from privmeasure.errors import DataError, SchemaError
from privmeasure.releases.spark import plain_cells
from privmeasure.sources import spark as counting
from privmeasure.sources.arrays import ArraySource
from privmeasure.sources.files import open_table
from privmeasure.sources.spark import NO_PERSONS, SparkSource, count_rows, executor_steps, spark_files
from privmeasure.sources.tables import TableSource
from privmeasure.tables.writing import write_table
from privmeasure.testing import check_source
from privmeasure.testing.sources import hostile_table

NAN, INF = float("nan"), float("inf")
EDGES = [NAN, None, INF, -INF, 0.0, -0.0, 5e-324, -5e-324, 0.25, np.nextafter(0.25, 0), 0.5, 1.0, np.nextafter(1, 2)]
EDGES += [-1.0, 1e308, -1e308, 2.0**53, 3.0, 9.5]


def released(schema: pm.Schema | Domain, data: object, **options: object) -> list[list[int]]:
    synthesizer = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", threads=1)
    return outline(synthesizer.fit(data, insecure_seed=7, **options))


def cells_of(source: object, space: Domain, rows: int, level: int = 9) -> list[list[int]]:
    """Return for each column but the first, which numbers the rows, the cell of every row."""
    assert isinstance(space, Product)
    bits = max(1, (rows - 1).bit_length())
    number = Axis(space.factors[0], bits, space.columns[0])
    axes = [Axis(part, level, at) for part, at in zip(space.factors[1:], space.columns[1:], strict=True)]
    found = []
    for axis, counts in zip(axes, source.count([Partition((number, axis)) for axis in axes]), strict=True):
        codes = np.flatnonzero(counts.counts) if counts.cells is None else counts.cells.astype(np.int64)
        assert (codes // axis.size).tolist() == list(range(rows)), "not every row was counted, or some twice"
        found.append((codes % axis.size).tolist())
    return found


def numbered(table: pa.Table) -> pa.Table:
    return table.add_column(0, "row", pa.array(np.arange(table.num_rows), pa.int64()))


def with_rows(schema: pm.Schema, rows: int) -> pm.Schema:
    bits = max(1, (rows - 1).bit_length())
    return pm.Schema({"row": pm.Integer(0, (1 << bits) - 1), **schema.columns})


def compare_cells(table: pa.Table, schema: pm.Schema, session: Executors | None = None) -> None:
    """Compare the cells of every row on executors with those in memory, and with those of its point."""
    table, schema = numbered(table), with_rows(schema, table.num_rows)
    expected = cells_of(TableSource(table, schema, threads=1), schema.domain, table.num_rows)
    found = cells_of((session or Executors()).source(table, schema), schema.domain, table.num_rows)
    for name, here, there in zip(table.schema.names[1:], found, expected, strict=False):
        wrong = [i for i, (one, other) in enumerate(zip(here, there, strict=True)) if one != other]
        values = [table.column(name)[i] for i in wrong[:5]] if name in table.schema.names else []
        assert not wrong, f"column {name!r}: rows {wrong[:5]} with {values} have other cells on executors"
    assert len(found) == len(expected)


# ------------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("repeats", [False, True])
def test_executors_keep_the_laws_of_sources(repeats: bool) -> None:
    """Every kind of column, hostile values, empty parts, small batches; tasks that fail once are done again."""
    session = Executors(parts=4, batch=31, repeats=repeats)
    check_source(lambda table: session.source(table, EVERY_KIND), EVERY_KIND, rows=90, close=lambda s: s.close())


@settings(max_examples=15, deadline=None)
@given(
    schema=SCHEMAS, seed=st.integers(0, 99), rows=st.integers(1, 60), parts=st.integers(1, 5), some=st.integers(1, 9)
)
def test_a_release_does_not_tell_that_executors_counted(schema, seed, rows, parts, some) -> None:
    table = hostile_table(schema, rows, np.random.default_rng(seed))
    source = Executors(parts, some).source(table, schema)
    synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", threads=1)
    synth._open = lambda *args, **options: (source, pm.tables.Layout.natural(schema))
    assert outline(synth.fit(table, insecure_seed=7)) == released(schema, table)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_numbers_that_are_none_or_beyond_the_bounds(kind: pa.DataType) -> None:
    """NaN and NULL are missing, infinities and large numbers are clamped, both zeros are one; none is another."""
    cells = pa.array(EDGES).cast(kind, safe=False)
    schema = pm.Schema(
        {
            "a": pm.Number(0, 1, nullable=True),
            "b": pm.Number(0, 1),
            "c": pm.Number(-1, 9, nullable=True),
            "d": pm.Number(0.25, 8, transform="log", nullable=True),
            "e": pm.Integer(0, 9, nullable=True),
        }
    )
    compare_cells(pa.table(dict.fromkeys(schema.columns, cells)), schema)
    alone = with_rows(pm.Schema({"a": schema.columns["a"]}), len(cells))
    (a,) = cells_of(Executors().source(numbered(pa.table({"a": cells})), alone), alone.domain, len(cells))
    of = dict(zip(map(repr, EDGES), a, strict=True))
    assert of["nan"] == of["None"]
    assert of["nan"] not in (of["0.0"], of["inf"], of["-inf"])
    assert of["0.0"] == of["-0.0"] == of["-inf"] == of["-1.0"]
    assert of["inf"] == of["1.0"] == of["1e+308"]


def test_odd_values_of_every_type() -> None:
    for batch in (1, 3, 100):
        compare_cells(pa.table(ODD), ODD_SCHEMA, Executors(parts=20, batch=batch))
    assert released(ODD_SCHEMA, pa.table(ODD))  # the table is one that is fitted


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Pacific/Apia", "+05:45"])
def test_instants_of_every_unit_and_zone(unit: str, zone: str | None) -> None:
    """The hour that is twice in autumn, the one that is not there in spring, leap days, the ends of the range."""
    seconds = [0, 1_585_443_599, 1_585_443_600, 1_603_584_000, 1_603_587_600, 1_603_591_199, 951_782_400, 1_609_459_199]
    seconds += [631_152_000, 631_151_999, -(10**9), 4 * 10**9]
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    ticks = [None, *(second * per for second in seconds), *(second * per - 1 for second in seconds)]
    table = pa.table({name: pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, zone)) for name in ("berlin", "hours")})
    schema = pm.Schema(
        {
            "berlin": pm.Datetime(
                "1990-01-01", "2020-12-31", timezone="Europe/Berlin" if zone else None, nullable=True
            ),
            "hours": pm.Datetime(
                "2020-03-01", "2020-11-30", resolution="1h", timezone="America/New_York" if zone else None
            ),
        }
    )
    compare_cells(table, schema)


def test_dates_times_texts_and_dictionaries() -> None:
    """A dictionary of a batch is its own: the same code stands for another value in the next batch."""
    days = [None, 0, -1, 11_016, 18_627, 18_628, 7_305, 2**31 - 1, -(2**31)]
    words = ["a", None, "é", "e\u0301", "", " a", "A", "a\0", "x" * 3000]
    schema = pm.Schema(
        {
            "day": pm.Date("1990-01-01", "2020-12-31", nullable=True),
            "written": pm.Date("1990-01-01", "2020-12-31", format="%d.%m.%Y", nullable=True),
            "word": pm.Category(["a", "A", "é", ""], nullable=True),
            "coded": pm.Category(["a", "A", "é", ""], nullable=True),
            "flag": pm.Boolean(nullable=True),
            "clock": pm.Time(nullable=True),
        }
    )
    written = ["01.02.2003", "1.2.2003", " 08.09.2010 ", "x", "", None, "31.02.2003", "01.01.1900", "31.12.2020"]
    coded = pa.chunked_array([pa.array(words[i : i + 2]).dictionary_encode() for i in range(0, 9, 2)])
    flags, clocks = [True, False, None] * 3, [None, 0, 1, 86_399_999_999, 43_200_000_000, 7, 60_000_000, 59_999_999, 2]
    table = pa.table(
        {
            "day": pa.array(days, pa.int32()).cast(pa.date32()),
            "written": written,
            "word": words,
            "coded": coded,
            "flag": flags,
            "clock": pa.array(clocks, pa.int64()).cast(pa.time64("us")),
        }
    )
    for batch in (1, 2, 100):
        compare_cells(table, schema, Executors(batch=batch))


def test_cells_for_spark_encode_as_the_originals() -> None:
    """A table that becomes a Spark frame loses nothing that a cell depends on: no dictionary, no unit, no zone."""
    table = pa.table(ODD)
    table = table.append_column("coded", table.column("text").dictionary_encode())
    schema = pm.Schema({**ODD_SCHEMA.columns, "coded": pm.Category(["a", "A", "é", ""], nullable=True)})
    for times in (False, True):
        plain = plain_cells(table, times=times)
        assert np.array_equal(schema.encode(plain), schema.encode(table), equal_nan=True)
        plain = plain_cells(hostile_table(EVERY_KIND, 200, np.random.default_rng(2)), times=times)
        again = hostile_table(EVERY_KIND, 200, np.random.default_rng(2))
        assert np.array_equal(EVERY_KIND.encode(plain), EVERY_KIND.encode(again), equal_nan=True)


# ------------------------------------------------------------------------------------------------------------- points


@pytest.mark.parametrize(
    "kinds",
    [(pa.float64(),) * 2, (pa.float32(), pa.float64()), (pa.int64(), pa.float64()), (pa.bool_(), pa.int8())],
    ids=str,
)
def test_points_on_executors_have_the_cells_of_arrays(kinds: tuple[pa.DataType, ...]) -> None:
    """NaN and NULL are missing, and not 0: both are cells of their own where the space has one."""
    space = Product([Steps(0, 31), Nullable(Box([(-1, 3)])), Nullable(Circle(24))])
    columns = []
    for kind in kinds:
        if pa.types.is_floating(kind):
            columns.append(pa.array(EDGES).cast(kind, safe=False))
        else:
            whole = [None if x is None or x != x else int(max(min(x, 100), -100)) for x in EDGES]
            columns.append(pa.array([x if x is None else bool(x) for x in whole]) if pa.types.is_boolean(kind)
                           else pa.array(whole, kind))  # fmt: skip
    table = numbered(pa.table(dict(zip("xy", columns, strict=True))))
    points = np.column_stack([
        np.array([NAN if x is None else float(x) for x in column.to_pylist()]) for column in table.columns
    ])  # fmt: skip
    expected = cells_of(ArraySource(points, width=3, threads=1), space, len(EDGES))
    for batch in (1, 7, 100):
        found = cells_of(Executors(batch=batch).source(table, space), space, len(EDGES))
        assert found == expected, "rows have other cells on executors than in an array"
    missing = [i for i, value in enumerate(table.column("x").to_pylist()) if value is None or value != value]
    zeros = [i for i, value in enumerate(table.column("x").to_pylist()) if value == 0]
    assert {expected[0][i] for i in missing}.isdisjoint({expected[0][i] for i in zeros})


def test_points_that_are_no_numbers_are_refused_by_their_types() -> None:
    with pytest.raises(DataError, match="numbers"):
        Executors().source(pa.table({"x": ["1"]}), Box([(0, 1)]))
    with pytest.raises(DataError, match="shape"):
        Executors().source(pa.table({"x": [1.0], "y": [1.0]}), Box([(0, 1)]))


# -------------------------------------------------------------------------------------------------------------- files


def test_files_are_counted_piece_by_piece(tmp_path) -> None:
    """Parquet by groups of rows, text files, folders: every row once, with the cell that it has on one machine."""
    schema = pm.Schema({"number": pm.Number(0, 10, nullable=True), "text": pm.Category(["a", "é", "b"], nullable=True)})
    rng = np.random.default_rng(4)
    table = pa.table(
        {
            "number": pa.array([*EDGES, *rng.uniform(-1, 11, 101).tolist()]),
            "text": pa.array(["a", "é", None, "b", "x"]).take(rng.integers(0, 5, 120)),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=17)
    write_table(tmp_path / "t.csv", [table])
    (tmp_path / "folder").mkdir()
    pq.write_table(table.slice(0, 50), tmp_path / "folder" / "1.parquet", row_group_size=9)
    pq.write_table(table.slice(50), tmp_path / "folder" / "2.parquet")
    asked = [Partition(()), Partition.of(schema.domain, 9), Partition.of(schema.domain, 40)]
    expected = [counts.total for counts in TableSource(table, schema, threads=1).count(asked)]
    for name in ("t.parquet", "t.csv", "folder"):
        here = TableSource(open_table(tmp_path / name), schema, threads=1).count(asked)
        source = spark_files(Executors(parts=2, repeats=True), open_table(tmp_path / name), schema)
        for found, other, total in zip(source.count(asked), here, expected, strict=True):
            assert found.total == other.total == total == 120, name
            assert found.counts.tolist() == other.counts.tolist(), name
            assert (found.cells is None) or found.cells.tolist() == other.cells.tolist(), name


def test_files_that_changed_are_noticed_by_every_pass(tmp_path) -> None:
    schema = pm.Schema({"x": pm.Integer(0, 9)})
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    source = spark_files(Executors(), open_table(tmp_path / "t.parquet"), schema)
    assert source.count([Partition(())])[0].total == 3
    pq.write_table(pa.table({"x": [1, 2, 3, 4]}), tmp_path / "t.parquet")
    with pytest.raises(pm.errors.ReleaseError, match=r"changed.*count epsilon as spent"):
        source.count([Partition(())])


def test_a_file_in_the_place_of_another_is_noticed_by_every_pass(tmp_path) -> None:
    """It has the size and the time of the one that was opened, as a copying program leaves them."""
    schema, path, other = pm.Schema({"x": pm.Integer(0, 9)}), tmp_path / "t.parquet", tmp_path / "other.parquet"
    for place, values in ((path, [1, 2, 3]), (other, [1, 2, 4])):
        pq.write_table(pa.table({"x": values}), place)
    source = spark_files(Executors(), open_table(path), schema)
    assert source.count([Partition(())])[0].total == 3
    seen = path.stat()
    assert seen.st_size == other.stat().st_size
    os.utime(other, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    other.replace(path)
    with pytest.raises(pm.errors.ReleaseError, match=r"changed.*count epsilon as spent"):
        source.count([Partition.of(schema.domain, 4)])


def test_long_batches_of_files_are_counted_to_their_end(tmp_path, monkeypatch) -> None:
    """A batch of a reader is cut into blocks, however many rows it has: one less than a block, a block, one more."""
    schema = pm.Schema({"x": pm.Integer(0, 9)})
    monkeypatch.setattr(counting, "BLOCK", 10)
    for rows in (0, 1, 9, 10, 11, 19, 20, 21, 30):
        write_table(tmp_path / f"{rows}.feather", [pa.table({"x": pa.array([5] * rows, pa.int64())})])
        source = spark_files(Executors(), open_table(tmp_path / f"{rows}.feather"), schema)
        assert source.count([Partition.of(schema.domain, 4)])[0].total == rows


# ------------------------------------------------------------------------------------------------------------- source


def test_a_frame_is_kept_by_the_first_question_and_let_go_of_at_the_end() -> None:
    schema, session = pm.Schema({"x": pm.Integer(0, 9)}), Executors()
    source = session.source(pa.table({"x": list(range(10)) * 3}), schema, persists=True)
    assert [counts.total for counts in source.count([Partition(()), Partition(())])] == [30, 30]
    assert source.count([Partition.of(schema.domain, 4)])[0].total == 30
    source.close()
    source.close()
    assert session.notes.count("persisted") == session.notes.count("let go of") == 1
    assert set(session.notes) == {"persisted", "let go of", "privmeasure: counts of cells"}


def test_huge_partitions_and_dense_ones_in_one_question(monkeypatch) -> None:
    """Counts that are handed over before the end of a part are added, and no cell is given to another partition."""
    monkeypatch.setattr(counting, "HELD_ROWS", 5)
    monkeypatch.setattr(counting, "BLOCK", 4)
    schema = pm.Schema({"x": pm.Number(0, 1, nullable=True), "y": pm.Number(0, 1)})
    table = hostile_table(schema, 80, np.random.default_rng(1))
    asked = [
        Partition.of(schema.domain, 40),
        Partition(()),
        Partition.of(schema.domain, 5),
        Partition.of(schema.domain, 41),
    ]
    here = TableSource(table, schema, threads=1).count(asked)
    there = Executors(batch=3).source(table, schema).count(asked)
    for one, other in zip(here, there, strict=True):
        assert (one.size, one.counts.tolist()) == (other.size, other.counts.tolist())
        assert (one.cells is None) == (other.cells is None)
        assert one.cells is None or one.cells.tolist() == other.cells.tolist()


def test_executors_of_another_version_are_refused_before_anything_is_counted(monkeypatch) -> None:
    schema = pm.Schema({"x": pm.Integer(0, 9)})
    monkeypatch.setattr(counting, "__version__", "0.0.1")
    source = Executors().source(pa.table({"x": [1]}), schema)
    monkeypatch.setattr(counting, "_version", lambda batches: iter([pa.record_batch({"version": ["9.9.9"]})]))
    with pytest.raises(DataError, match=r"have privmeasure 9\.9\.9.*has 0\.0\.1.*Nothing was spent"):
        source.count([Partition(())])


def test_what_executors_are_sent_is_public() -> None:
    """The questions and the schema travel, and nothing else: no rows, no key."""
    schema = pm.Schema({"x": pm.Integer(0, 9)})
    _, reads, encodes = executor_steps(schema, ["x"], [pa.int64()])
    work = counting._counting(reads, encodes, (Partition.of(schema.domain, 4),))
    held = [type(cell.cell_contents).__name__ for cell in work.__closure__]
    assert sorted(held) == ["_Blocks", "method", "tuple"]
    assert b"Key" not in b"".join(pickle.dumps(cell.cell_contents) for cell in work.__closure__)
    answer = pa.Table.from_batches(shipped(work)(iter([pa.record_batch({"c0": [3, 3, 7]})])))
    assert answer.to_pydict() == {"partition": [0, 0], "cell": [3, 7], "rows": [2, 1]}


def test_persons_are_refused_on_a_cluster(tmp_path) -> None:
    """Executors see parts of the rows: contributions cannot be bounded there, so a schema with a person is refused."""
    schema = pm.Schema({"who": pm.Drop(), "x": pm.Integer(0, 9)}, person="who")
    table = pa.table({"who": ["ann"] * 5, "x": [1] * 5})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(SchemaError) as caught:
        spark_files(Executors(), open_table(tmp_path / "t.parquet"), schema)
    assert NO_PERSONS in str(caught.value)
    with pytest.raises(SchemaError) as caught:
        Executors().source(table, schema)
    assert NO_PERSONS in str(caught.value)


def test_the_law_rejects_executors_that_read_nan_as_zero(monkeypatch) -> None:
    """The fault that once passed: it is seen in points and in tables."""
    monkeypatch.setattr(counting, "count_rows", lambda blocks, asked: count_rows(map(np.nan_to_num, blocks), asked))
    with pytest.raises(AssertionError):
        test_points_on_executors_have_the_cells_of_arrays((pa.float64(), pa.float64()))
    with pytest.raises(AssertionError):
        test_numbers_that_are_none_or_beyond_the_bounds(pa.float64())


def test_sources_show_nothing() -> None:
    schema = pm.Schema({"x": pm.Integer(0, 9)})
    assert repr(Executors().source(pa.table({"x": [1]}), schema)) == "SparkSource(private)"
    assert isinstance(Executors().source(pa.table({"x": [1]}), schema), SparkSource)

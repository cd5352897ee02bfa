"""Rows that executors draw: as many as were released, from each part's own cells, once however often it is tried."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure import cli
from privmeasure.cli.cluster import Cluster
from privmeasure.errors import ArgumentError, NoRowsError
from privmeasure.releases import spark as drawing
from privmeasure.releases.sampling import cut_shares
from privmeasure.releases.spark import (
    check_address,
    draw_part,
    plain_cells,
    sample_on_spark,
    write_address,
    write_folder,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of pandas and of sockets, by PySpark

ROWS = 3000
RNG = np.random.default_rng(5)
TABLE = pa.table(
    {
        "age": RNG.integers(0, 100, ROWS),
        "paid": RNG.gamma(2, 50, ROWS),
        "ward": pa.array(np.array(["A", "B", "C"])[RNG.integers(0, 3, ROWS)]),
        "sex": pa.array(np.array(["F", "M"])[RNG.integers(0, 2, ROWS)]),
        "day": pa.array(RNG.integers(10_000, 18_000, ROWS).astype(np.int32)).cast(pa.date32()),
    }
)
COLUMNS = {
    "age": pm.Integer(0, 99),
    "paid": pm.Number(0, 500),
    "ward": pm.Category(["A", "B", "C"]),
    "sex": pm.Category(["F", "M"]),
    "day": pm.Date("1990-01-01", "2020-12-31"),
}
TREE = pm.Schema({name: COLUMNS[name] for name in ("age", "paid")})
WIDE = pm.Schema(COLUMNS)
NEVER = pm.Schema({name: COLUMNS[name] for name in ("age", "ward")}, never=["age < 50 and ward = 'A'"])


def released(schema: pm.Schema) -> pm.TableRelease:
    synthesizer = pm.Synthesizer(schema, epsilon=4, neighbours="add-remove")
    return synthesizer.fit(TABLE.select(list(schema.columns)), insecure_seed=3).release_


@pytest.fixture(scope="module")
def tree() -> pm.TableRelease:
    return released(TREE)


@pytest.fixture
def parts(monkeypatch) -> None:
    """Parts of few rows, so that there are several."""
    monkeypatch.setattr(drawing, "PART_ROWS", 700)


def rows_of(release: pm.TableRelease, entropy: int, part: int, parts: int = 3) -> pa.Table:
    made = drawing._drawing(release, None, None)
    share = list(release.measure.shares(None, parts))[part]
    return pa.Table.from_batches(draw_part(made, pickle.loads(pickle.dumps(share)), entropy, part))


@pytest.mark.parametrize("schema", [TREE, WIDE, NEVER], ids=["tree", "columns", "never"])
def test_a_part_that_is_made_again_has_the_same_rows(schema: pm.Schema) -> None:
    release = released(schema)
    once, again, other = rows_of(release, 9, 1), rows_of(release, 9, 1), rows_of(release, 8, 1)
    assert once.equals(again)
    assert once.num_rows == other.num_rows
    assert not once.equals(other)
    assert not once.equals(rows_of(release, 9, 2))
    assert sum(rows_of(release, 9, part).num_rows for part in range(3)) == release.total


def test_shares_are_cut_where_the_rows_are() -> None:
    cells, mass = np.array([2, 5, 9, 11], np.uint64), np.array([3, 1, 10, 2])
    shares = list(cut_shares(cells, mass, 5))
    assert [share.rows for share in shares] == [4, 3, 3, 3, 3]
    assert all(int(share.mass.sum()) == share.rows for share in shares)
    together = np.zeros(12, int)
    for share in shares:
        np.add.at(together, share.cells.astype(int), share.mass)
    assert together[cells.astype(int)].tolist() == mass.tolist()
    assert [share.rows for share in cut_shares(cells, mass, 20)].count(0) == 4
    assert next(iter(cut_shares(cells, np.zeros(4, int), 1))).rows == 0


def test_each_part_has_its_own_cells(tree) -> None:
    domain, level = tree.measure.domain, tree.measure.level
    seen = []
    for part, share in enumerate(tree.measure.shares(None, 3)):
        points = TREE.encode(rows_of(tree, 1, part))
        located = domain.locate(points, level)
        cells, counts = np.unique(located, return_counts=True)
        assert cells.tolist() == share.cells.tolist()
        assert counts.tolist() == share.mass.tolist()
        seen.append(cells)
    assert len(np.unique(np.concatenate(seen))) >= len(tree.measure.cells)
    assert sum(map(len, seen)) <= len(tree.measure.cells) + 2  # those on an edge are in two


def test_executors_get_the_model_and_no_noisy_counts(tree) -> None:
    assert tree.measure.noisy is not None
    sent = drawing._drawing(tree, None, None)
    assert sent.measure.noisy is None
    assert len(sent.measure.cells) == 0  # they come with the shares
    wide = drawing._drawing(released(WIDE), None, None).measure
    assert wide.pairs == ()
    assert all(column.noisy is None for column in wide.columns)
    assert "noisy" in vars(tree.measure)


def test_a_frame_has_the_rows_of_the_release(spark, tree, parts) -> None:
    frame = sample_on_spark(tree, seed=4, session=spark)
    assert frame.rdd.getNumPartitions() == -(-tree.total // 700) > 2
    first, second = frame.toArrow(), frame.toArrow()  # computed twice
    assert first.equals(second)
    cells = tree.measure.domain.locate(TREE.encode(first), tree.measure.level)
    found, counts = np.unique(cells, return_counts=True)
    assert found.tolist() == tree.measure.cells.tolist()
    assert counts.tolist() == tree.measure.mass.tolist()
    assert sample_on_spark(tree, seed=4, session=spark).toArrow().equals(first)
    assert not sample_on_spark(tree, session=spark).toArrow().equals(first)
    assert sample_on_spark(tree, 1234, session=spark).count() == 1234
    assert sample_on_spark(tree, 0, session=spark).columns == ["age", "paid"]
    assert sample_on_spark(tree, 0, session=spark).count() == 0


@pytest.mark.parametrize("schema", [TREE, WIDE], ids=["tree", "columns"])
def test_a_killed_task_doubles_no_row(spark, schema, parts, tmp_path) -> None:
    release = released(schema)
    frame = sample_on_spark(release, seed=4, session=spark)

    def dies_once(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        for batch in batches:
            yield batch
            if context.partitionId() == 1 and context.attemptNumber() == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    expected = frame.toArrow()
    assert expected.num_rows == release.total
    write_folder(frame.mapInArrow(dies_once, frame.schema), tmp_path / "my rows é%.parquet")
    files = sorted((tmp_path / "my rows é%.parquet").iterdir())
    assert [path.name for path in files] == [f"part-{i:05}.parquet" for i in range(len(files))]
    assert len(files) == frame.rdd.getNumPartitions()
    written = pa.concat_tables([pq.read_table(path) for path in files])
    assert written.cast(expected.schema).equals(expected)


def test_facts_are_kept_and_their_law_is_that_of_one_machine(spark, parts) -> None:
    release = released(NEVER)
    frame = sample_on_spark(release, 20_000, seed=2, session=spark).toArrow()
    assert frame.num_rows == 20_000
    age, ward = frame.column("age").to_numpy(), np.array(frame.column("ward").to_pylist())
    assert not ((age < 50) & (ward == "A")).any()
    here = release.sample(20_000, seed=3)
    for label in "ABC":
        shares = [np.mean(np.array(rows.column("ward").to_pylist()) == label) for rows in (frame, here)]
        # two shares of 20,000 rows: 5 standard deviations are 0.025 at most, a false alarm of 6e-7 each
        assert abs(shares[0] - shares[1]) < 0.025
    # were rows replaced by those of their own part alone, the parts below 50 would have no "A" for others to have
    old = [np.mean(rows.column("age").to_numpy() >= 50) for rows in (frame, here)]
    assert abs(old[0] - old[1]) < 0.025


def test_conditions(spark, tree, parts) -> None:
    some = sample_on_spark(tree, seed=4, where="age >= 50", session=spark).toArrow()
    everything = sample_on_spark(tree, seed=4, session=spark).toArrow()
    assert 0 < some.num_rows == int((everything.column("age").to_numpy() >= 50).sum())
    assert some.column("age").to_numpy().min() >= 50
    wide = sample_on_spark(released(WIDE), where="ward = 'A'", session=spark).toArrow()
    assert set(wide.column("ward").to_pylist()) == {"A"}
    with pytest.raises(ArgumentError, match="exclude each other"):
        sample_on_spark(tree, 5, where="age >= 50", session=spark)
    with pytest.raises(ArgumentError, match="named columns"):
        sample_on_spark(tree.measure, where="age >= 50", session=spark)


def test_cells_are_of_types_that_spark_knows() -> None:
    table = pa.table(
        {
            "dictionary": pa.array(["a", None]).dictionary_encode(),
            "unsigned": pa.array([255, None], pa.uint8()),
            "large": pa.array([2**64 - 1, 0], pa.uint64()),
            "moment": pa.array([0, 1], pa.timestamp("s", "UTC")),
            "time": pa.array([3600, 1], pa.time32("s")),
            "half": pa.array(np.array([0.5, 1], np.float16)),
            "runs": pa.RunEndEncodedArray.from_arrays([1, 2], ["x", "y"]),
        }
    )
    plain = plain_cells(table, times=False)
    kinds = [str(kind) for kind in plain.schema.types]
    assert kinds[:4] == ["string", "int16", "decimal128(20, 0)", "timestamp[us, tz=UTC]"]
    assert kinds[4:] == ["string", "float", "string"]
    assert plain.column("time").to_pylist() == ["01:00:00", "00:00:01"]
    assert plain.column("large").to_pylist()[0] == 2**64 - 1
    assert plain_cells(table, times=True).schema.field("time").type == pa.time64("ns")


def test_no_rows_is_said_as_such(spark, tmp_path, monkeypatch) -> None:
    frame = sample_on_spark(released(TREE), 10, session=spark)

    def fails(batches):
        raise NoRowsError("none")

    with pytest.raises(NoRowsError, match="facts"):
        write_folder(frame.mapInArrow(fails, frame.schema), tmp_path / "rows.parquet")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_executors_write_ends_their_work(spark, tree, tmp_path, capfd) -> None:
    """Not only that of the driver: they went on, and their folder came back after it was removed."""
    frame = sample_on_spark(tree, 100, session=spark)
    begun = tmp_path / "begun"

    def slow(batches):
        begun.touch()
        for batch in batches:
            time.sleep(8)
            yield batch

    def interrupt() -> None:
        while not begun.exists():
            time.sleep(0.1)
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)

    hand = threading.Thread(target=interrupt, daemon=True)
    hand.start()
    with pytest.raises(KeyboardInterrupt):
        write_folder(frame.mapInArrow(slow, frame.schema), tmp_path / "rows.parquet")
    hand.join()
    assert capfd.readouterr().err == ""
    time.sleep(9)
    assert [path.name for path in tmp_path.iterdir()] == ["begun"]
    assert spark.range(3).count() == 3


def test_columns_that_differ_in_their_case_are_written(spark, tmp_path) -> None:
    """They were refused by Spark when the rows were to be written: after epsilon was spent."""
    schema = pm.Schema({"a": pm.Integer(0, 9), "A": pm.Integer(0, 9)})
    synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove")
    release = synth.fit(pa.table({"a": [1] * 9, "A": [2] * 9}), insecure_seed=1).release_
    write_folder(sample_on_spark(release, 10, session=spark), tmp_path / "rows.parquet")
    assert pq.read_schema(next((tmp_path / "rows.parquet").iterdir())).names == ["a", "A"]
    assert spark.conf.get("spark.sql.caseSensitive") == "false"


def test_an_address_is_looked_at_before_anything_is_spent(spark, tree, tmp_path, monkeypatch) -> None:
    place = f"file://{tmp_path}/rows.parquet"
    check_address(spark, place, overwrite=False)
    frame = sample_on_spark(tree, 100, session=spark)
    write_address(frame, place)
    with pytest.raises(FileExistsError, match="exists already"):
        write_address(frame, place)
    (tmp_path / "rows.parquet" / "_temporary").mkdir()  # of one that was killed
    write_address(frame, place, overwrite=True)
    assert not (tmp_path / "rows.parquet" / "_temporary").exists()
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 100
    (tmp_path / "rows.parquet" / "diary.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="other files"):
        write_address(frame, place, overwrite=True)
    assert (tmp_path / "rows.parquet" / "diary.txt").read_text() == "mine"
    with pytest.raises(OSError, match="does not reach") as caught:
        check_address(spark, "nowhere://key:secret@bucket/rows.parquet", overwrite=True)
    assert "secret" not in str(caught.value)
    monkeypatch.setattr("privmeasure.cli.cluster.path_here", lambda place: None)
    with pytest.raises(FileExistsError, match="exists already"):
        Cluster.check_rows(spark, place, overwrite=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--master", "local[2]"], "--engine spark"),
        (["--engine", "dask"], "must be spark"),
        (["--engine", "spark", "-o", "rows.csv"], "Parquet"),
        (["--engine", "spark", "-o", "s3a://bucket/rows.parquet"], "--release"),
        (["-o", "s3a://bucket/rows.parquet"], "--engine spark"),
    ],
)
def test_options_that_do_not_go_together(tmp_path, monkeypatch, capsys, options, words) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE.select(["age", "paid"]), "t.parquet")
    (tmp_path / "t.toml").write_text(TREE.to_toml())
    promise = ["-s", "t.toml", "-e", "1", "--neighbours", "add-remove"]
    out = [] if "-o" in options else ["-o", "rows.parquet"]
    assert cli.run(["synthesize", "t.parquet", *promise, *options, *out]) == 2
    assert words in capsys.readouterr().err


def test_synthesize_on_spark(spark, tmp_path, monkeypatch, capsys) -> None:
    """From a folder of files to a folder of files; the session of the tests serves in the place of its own."""
    from contextlib import contextmanager

    @contextmanager
    def session(master):
        assert master == "local[2]"
        yield spark

    monkeypatch.setattr("privmeasure.sources.spark.own_session", session)
    monkeypatch.setattr(drawing, "PART_ROWS", 1000)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for i in range(3):
        pq.write_table(TABLE.slice(i * 1000, 1000), f"in/{i}.parquet")
    (tmp_path / "t.toml").write_text(WIDE.to_toml())
    promise = ["-s", "t.toml", "-e", "1", "--neighbours", "add-remove", "--engine", "spark", "--master", "local[2]"]
    assert cli.run(["synthesize", "in", *promise, "-o", "rows.parquet", "-n", "2500", "--seed", "1", "--json"]) == 0
    assert '"rows": 2500' in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "rows.parquet").iterdir()) == [
        f"part-0000{i}.parquet" for i in range(3)
    ]
    rows = pq.read_table("rows.parquet")
    assert rows.num_rows == 2500
    assert rows.schema.names == TABLE.schema.names
    assert [str(t) for t in rows.schema.types] == [str(t) for t in TABLE.schema.types]
    assert pm.load("rows.parquet.release").total > 0
    assert cli.run(["synthesize", "in", *promise, "-o", "rows.parquet"]) == 3
    again = ["-o", "rows.parquet", "--overwrite", "--rows-per-file", "400", "-n", "900", "--quiet"]
    assert cli.run(["synthesize", "in", *promise, *again]) == 0
    assert len(list((tmp_path / "rows.parquet").iterdir())) == 3

"""Rows on Spark: what is refused, one state, killed tasks, errors without values, what executors are sent."""

import logging
import os
import signal
import threading
import time
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure.counts import Partition
from privmeasure.domains import Box
from privmeasure.errors import ArgumentError, DataError, ReleaseError, SchemaError
from privmeasure.noise.entropy import Key
from privmeasure.sources import spark as counting
from privmeasure.sources.spark import LOGGERS, count_rows, spark_source

pytestmark = pytest.mark.filterwarnings("ignore")  # of pandas and of sockets, by PySpark

SCHEMA = pm.Schema({"age": pm.Integer(0, 120), "ward": pm.Category(["A", "B", "it's", "C"], unknown="A")})
TABLE = pa.table({"age": [31, 52, None, 200] * 50, "ward": ["A", "it's", None, "nowhere"] * 50})
JOINT = Partition.of(SCHEMA.domain, 9)
CANARY = "canary 8271"


@pytest.fixture
def frame(spark):
    return spark.createDataFrame(TABLE).repartition(4)


def counted(source, partition=JOINT):
    try:
        return source.count([partition])[0].counts.tolist()
    finally:
        source.close()


def in_memory():
    codes = JOINT.axes[0].index(SCHEMA.encode(TABLE))
    return np.bincount(codes, minlength=JOINT.size).tolist()


def dies_once(part):
    """Return a step of a plan whose worker is killed the first time that it works on a partition."""

    def work(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        for i, batch in enumerate(batches):
            yield batch
            if i == 0 and context.partitionId() == part and context.attemptNumber() == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return work


def test_a_killed_task_changes_no_count(spark, frame, tmp_path) -> None:
    killed = frame.mapInArrow(dies_once(1), frame.schema)
    assert counted(spark_source(killed, SCHEMA)) == counted(spark_source(frame, SCHEMA)) == in_memory()


def test_a_task_that_is_killed_while_it_counts_changes_no_count(frame, monkeypatch) -> None:
    mark = [2]

    def dying(reads, encodes, partitions):
        def work(batches):
            from pyspark import TaskContext

            context = TaskContext.get()
            for batch in count_rows(map(encodes, reads(batches)), partitions):
                yield batch  # some counts are handed over already
                if context.partitionId() == mark[0] and context.attemptNumber() == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        return work

    monkeypatch.setattr(counting, "_counting", dying)
    assert counted(spark_source(frame, SCHEMA)) == in_memory()


def test_huge_partitions_are_handed_over_now_and_then(monkeypatch) -> None:
    monkeypatch.setattr(counting, "HELD_ROWS", 64)
    points = np.random.default_rng(0).random((1000, 2))
    deep = Partition.of(Box([(0, 1)] * 2), 40)
    blocks = [points[start : start + 50] for start in range(0, 1000, 50)]
    answers = list(count_rows(iter(blocks), [deep, Partition(())]))
    assert len(answers) > 2
    found = counting._counts(pa.Table.from_batches(answers).group_by(["partition", "cell"]).aggregate(
        [("rows", "sum")]
    ), [deep, Partition(())])  # fmt: skip
    cells, counts = np.unique(deep.axes[0].index(points), return_counts=True)
    assert found[0].cells.tolist() == cells.tolist()
    assert found[0].counts.tolist() == counts.tolist()
    assert found[1].counts.tolist() == [1000]


def test_long_texts_are_not_held_by_the_block(monkeypatch) -> None:
    monkeypatch.setattr(counting, "BLOCK_SIZE", 1000)
    batches = [pa.record_batch({"c0": ["x" * 400]}) for _ in range(7)]
    tables = list(counting._Blocks(("ward",))(iter(batches)))
    assert [table.num_rows for table in tables] == [3, 3, 1]
    assert {tuple(table.column_names) for table in tables} == {("ward",)}


def test_all_questions_see_one_state_and_nothing_stays(spark, tmp_path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    held = spark.sparkContext._jsc.getPersistentRDDs
    before = held().size()
    source = spark_source(frame, SCHEMA)
    first = source.count([JOINT])[0].counts.tolist()
    assert held().size() == before + 1
    pq.write_table(TABLE.slice(0, 10), tmp_path / "other.parquet")
    os.replace(tmp_path / "other.parquet", tmp_path / "t.parquet")
    assert source.count([JOINT])[0].counts.tolist() == first
    source.close()
    assert held().size() == before


def test_what_somebody_else_has_persisted_stays_so(spark) -> None:
    frame = spark.createDataFrame(TABLE).toDF("age", "ward").persist()
    frame.count()
    synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove").fit(frame)
    assert synth.spent
    assert frame.storageLevel.useMemory
    assert frame.is_cached
    assert not spark_source(frame, SCHEMA)._persists  # nor is there a second copy
    frame.unpersist()


def test_two_fits_of_one_frame_keep_rows_of_their_own(spark, frame) -> None:
    """Spark knows persisted rows by their plan: the end of one fit let go of those of the other."""
    held = spark.sparkContext._jsc.getPersistentRDDs
    before = held().size()
    one, two = spark_source(frame, SCHEMA), spark_source(frame, SCHEMA)
    one.count([Partition(())])
    late = spark_source(frame, SCHEMA)  # made while the first has rows of its own
    two.count([Partition(())])
    assert late._persists
    assert held().size() == before + 2
    one.close()
    assert two._frame.storageLevel.useMemory
    assert counted(two) == in_memory()
    assert held().size() == before


def test_plans_that_give_other_rows_each_time_are_refused(frame) -> None:
    with pytest.raises(DataError, match="not deterministic"):
        counted(spark_source(frame.selectExpr("cast(rand() * 100 as bigint) as age", "ward"), SCHEMA))
    schema = pm.Schema({**SCHEMA.columns, "draw": pm.Drop()})
    source = spark_source(frame.selectExpr("*", "rand() as draw"), schema)  # nobody looks at it
    assert counted(source) == in_memory()


@pytest.mark.parametrize("parts", [0, 2])
def test_an_error_of_spark_shows_no_value(spark, parts: int) -> None:
    wards = spark.createDataFrame(pa.table({"ward": [CANARY]}))  # small: the driver may cast it as it plans
    (wards.repartition(parts) if parts else wards).createOrReplaceTempView("wards")
    shown = []
    handler = logging.Handler()
    handler.emit = lambda record: shown.append(record.getMessage())
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        with pytest.raises(DataError, match="Spark could not answer") as caught:
            pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove").fit(
                spark.sql("SELECT cast(ward AS int) AS age, ward FROM wards")
            )
        assert not shown
        with pytest.raises(Exception, match=CANARY):  # it does quote the value, and the loggers work again
            spark.sql("SELECT cast(ward AS int) AS age FROM wards").collect()
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
    assert CANARY not in str(caught.value)
    assert "try_cast" in str(caught.value)
    assert "Nothing was spent" in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_an_error_after_the_first_question_says_what_was_spent(frame) -> None:
    source = spark_source(frame, SCHEMA)
    source.count([Partition(())])
    kept, source._frame = source._frame, None
    with pytest.raises(ReleaseError, match="count epsilon as spent"):
        source.count([JOINT])
    source._frame = kept
    source.close()


def test_what_executors_are_sent_holds_no_key(frame, monkeypatch) -> None:
    from pyspark import cloudpickle

    secrets, sent = [], []
    made, work = Key.__init__, counting._counting

    def key(self, secret, **options):
        secrets.append(bytes(secret))
        made(self, secret, **options)

    def counting_work(*arguments):
        sent.append(cloudpickle.dumps(work(*arguments)))
        return work(*arguments)

    monkeypatch.setattr(Key, "__init__", key)
    monkeypatch.setattr(counting, "_counting", counting_work)
    pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove").fit(frame)
    assert len(secrets) == 1
    assert len(secrets[0]) >= 16
    assert len(sent) == 1  # how many rows there are needs no code of ours
    assert all(secrets[0] not in text and b"entropy" not in text for text in sent)
    assert all(b"Partition" in text for text in sent)  # that is what they are sent


@pytest.mark.parametrize("column", ["array(1)", "'x'", "named_struct('a', 1)", "interval 1 month", "parse_json('1')"])
def test_types_decide_what_is_refused(spark, column: str) -> None:
    with pytest.raises(SchemaError, match="age"):
        spark_source(spark.sql(f"SELECT {column} AS age, 'A' AS ward"), SCHEMA)
    schema = pm.Schema({"age": pm.Drop(), "ward": pm.Category(["A", "B"])})
    assert counted(spark_source(spark.sql(f"SELECT {column} AS age, 'A' AS ward"), schema), Partition(())) == [1]


def test_names_are_those_of_the_frame(spark) -> None:
    schema = pm.Schema({"a.b": pm.Integer(0, 3), "A.B": pm.Integer(0, 3), "`": pm.Integer(0, 3), "x": pm.Drop()})
    table = pa.table({"a.b": [0, 1], "x": [0.5, 0.5], "A.B": [2, 3], "`": [3, 3]})
    frame = spark.createDataFrame(table.rename_columns(["p", "q", "r", "s"])).toDF("a.b", "x", "A.B", "`")
    partition = Partition.of(schema.domain, 6)
    assert (
        counted(spark_source(frame, schema), partition)
        == np.bincount(partition.axes[0].index(schema.encode(table)), minlength=64).tolist()
    )
    with pytest.raises(DataError, match="several columns"):
        spark_source(frame.toDF("x", "x", "y", "z"), schema)
    with pytest.raises(SchemaError, match=r"A\.B"):
        spark_source(frame.drop("`").toDF("a.b", "x", "c"), schema)


def test_points_on_a_cluster(spark) -> None:
    points = np.random.default_rng(0).random((400, 2))
    frame = spark.createDataFrame(pa.table({"east": points[:, 0], "north": points[:, 1]})).repartition(3)
    one, two = (pm.Synthesizer(Box([(0, 1)] * 2), epsilon=1, neighbours="replace") for _ in range(2))
    assert (one.fit(frame, insecure_seed=1).release_.mass == two.fit(points, insecure_seed=1).release_.mass).all()
    assert one.sample().columns == ["east", "north"]
    with pytest.raises(DataError, match="numbers"):
        pm.Synthesizer(Box([(0, 1)]), epsilon=1, neighbours="replace").fit(spark.sql("SELECT 'a' AS x"))
    with pytest.raises(DataError, match="shape"):
        pm.Synthesizer(Box([(0, 1)]), epsilon=1, neighbours="replace").fit(frame)


def test_a_person_and_a_stream_are_refused(spark, frame) -> None:
    schema = pm.Schema({**SCHEMA.columns, "id": pm.Drop()}, person="id")
    with pytest.raises(SchemaError, match="person"):
        spark_source(frame.selectExpr("*", "1 as id"), schema)
    with pytest.raises(DataError, match="stream"):
        spark_source(spark.readStream.format("rate").load(), SCHEMA)
    with pytest.raises(ArgumentError, match="paths"):
        pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove").fit(frame, spark=spark)


def test_executors_must_have_this_version(frame, monkeypatch) -> None:
    monkeypatch.setattr(counting, "__version__", "0.0.1")
    with pytest.raises(DataError, match=r"the driver has 0\.0\.1.*Nothing was spent"):
        spark_source(frame, SCHEMA).count([JOINT])

    def fails(batches):
        import a_library_that_nobody_has  # noqa: F401

        yield from batches

    monkeypatch.setattr(counting, "_version", fails)
    with pytest.raises(DataError, match="not installed for the Python of the executors"):
        spark_source(frame, SCHEMA).count([JOINT])


def test_text_files_and_folders_are_read_by_our_own_readers(spark, tmp_path) -> None:
    for ward in ("A", "it's"):
        folder = tmp_path / f"ward={ward}"
        folder.mkdir()
        (folder / "part.csv").write_text('age\n31\nx\n\n52,7\n"4\n')
    expected = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove").fit(tmp_path, insecure_seed=3).release_
    found = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove").fit(tmp_path, insecure_seed=3, spark=spark)
    assert found.release_.measure.mass.tolist() == expected.measure.mass.tolist()
    assert found.release_.layout == expected.layout


def test_files_that_change_end_the_fit(spark, tmp_path) -> None:
    from privmeasure.sources.files import open_table

    pq.write_table(TABLE, tmp_path / "t.parquet")
    source = counting.spark_files(spark, open_table(tmp_path / "t.parquet"), SCHEMA)
    assert source.count([JOINT])[0].counts.tolist() == in_memory()
    pq.write_table(TABLE.slice(1), tmp_path / "t.parquet")
    with pytest.raises(ReleaseError, match="changed"):
        source.count([JOINT])


def interrupted(spark, slow) -> pm.Synthesizer:
    synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove")
    seconds = threading.Timer(2.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    seconds.start()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            synth.fit(slow)
    finally:
        seconds.cancel()
    assert caught.value.args == ()
    assert time.monotonic() - begun < 40
    return synth


def test_ctrl_c_stops_the_job(spark, frame) -> None:
    def slow(batches):
        for batch in batches:
            time.sleep(60)
            yield batch

    assert not interrupted(spark, frame.mapInArrow(slow, frame.schema)).spent  # no noise was drawn
    assert spark.range(3).count() == 3


def test_ctrl_c_after_the_noise_counts_as_spent(spark, frame, monkeypatch) -> None:
    source = spark_source(frame, SCHEMA)
    count, asked = source.count, []

    def second(partitions, progress=None):
        asked.append(partitions)
        if len(asked) > 1:
            raise KeyboardInterrupt(CANARY)
        return count(partitions, progress)

    monkeypatch.setattr(source, "count", second)
    monkeypatch.setattr("privmeasure.synthesizer.spark_source", lambda data, space: source)
    synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove")
    with pytest.raises(KeyboardInterrupt) as caught:
        synth.fit(frame)
    assert caught.value.args == ()
    assert synth.spent
    assert not source._persisted  # it was let go of


def test_the_driver_needs_no_memory_for_rows(spark) -> None:
    """Four million rows, whose points alone are 64 MB: the driver sees 512 counts."""
    frame = spark.range(4_000_000).selectExpr("id % 121 as age", "'B' as ward")
    held = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove", depth=9).fit(frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert synth.release_.total > 3_900_000
    assert peak < 24 << 20  # 16 MiB are what `threads` reserves
    assert pa.total_allocated_bytes() - held < 1 << 20


def test_a_source_shows_nothing(frame) -> None:
    assert repr(spark_source(frame, SCHEMA)) == "SparkSource(private)"


def test_frames_of_others_are_none_of_ours() -> None:
    assert spark_source(TABLE, SCHEMA) is None

"""Spark gives the release that memory gives, cell by cell: whatever the kinds, the parts and their order."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import privmeasure as pm
from laws.test_same_answer import EVERY_KIND, SCHEMAS, outline
from privmeasure.releases.spark import has_times, plain_cells
from privmeasure.sources.files import open_table
from privmeasure.sources.spark import spark_files, spark_source
from privmeasure.testing import check_source
from privmeasure.testing.sources import hostile_table

pytestmark = pytest.mark.filterwarnings("ignore")  # of pandas and of sockets, by PySpark


def framed(spark, table: pa.Table, parts: int = 3):
    """Return a table as a Spark frame with several partitions."""
    return spark.createDataFrame(plain_cells(table, times=has_times(spark))).repartition(parts)


def released(schema: pm.Schema, data: object, **options: object) -> list[list[int]]:
    synthesizer = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", threads=1)
    return outline(synthesizer.fit(data, insecure_seed=7, **options))


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(schema=SCHEMAS, seed=st.integers(0, 99), rows=st.integers(1, 200), parts=st.integers(1, 5))
def test_a_release_does_not_tell_that_spark_counted(tmp_path_factory, spark, schema, seed, rows, parts) -> None:
    rng = np.random.default_rng(seed)
    table = hostile_table(schema, rows, rng)
    expected = released(schema, table)
    shuffled = table.take(rng.permutation(rows))
    assert released(schema, framed(spark, shuffled, parts)) == expected
    folder = tmp_path_factory.mktemp("same")
    pq.write_table(shuffled.slice(0, rows // 2), folder / "one.parquet", row_group_size=1 + rows // 5)
    pq.write_table(shuffled.slice(rows // 2), folder / "two.parquet")
    assert released(schema, folder, spark=spark) == expected


def test_frames_keep_the_laws_of_sources(spark) -> None:
    check_source(
        lambda table: spark_source(framed(spark, table, 2), EVERY_KIND), EVERY_KIND, close=lambda source: source.close()
    )


def test_files_keep_the_laws_of_sources(spark, tmp_path) -> None:
    schema = pm.Schema({"number": pm.Number(0, 10, nullable=True), "text": pm.Category(["a", "é", "b"], nullable=True)})

    def source(table):
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
        return spark_files(spark, open_table(tmp_path / "t.parquet"), schema)

    check_source(source, schema, rows=120)


def test_single_floats_are_widened_exactly(spark) -> None:
    rng = np.random.default_rng(3)
    schema = pm.Schema({"x": pm.Number(0, 1), "y": pm.Number(0.1, 1000, transform="log")})
    table = pa.table({"x": rng.random(500).astype(np.float32), "y": rng.gamma(2, 20, 500).astype(np.float32)})
    wide = table.cast(pa.schema({"x": pa.float64(), "y": pa.float64()}))
    frame = framed(spark, table)
    assert dict(frame.dtypes) == {"x": "float", "y": "float"}
    assert released(schema, frame) == released(schema, wide)


@pytest.mark.parametrize("kind", ["decimal", "zone", "text", "bytes", "small"])
def test_types_that_sql_would_read_in_its_own_way(spark, kind: str) -> None:
    """Decimals, instants of a zone, dates as text, texts that are no UTF-8, small integers: as in memory."""
    schema = pm.Schema({"x": pm.Date("2000-01-01", "2020-12-31", format="%d.%m.%Y", nullable=True)})
    table = pa.table({"x": ["01.02.2003", "1.2.2003", " 08.09.2010 ", "x", "", None, "31.02.2003", "01.01.1900"]})
    if kind == "decimal":
        schema = pm.Schema({"x": pm.Number(0, 10, nullable=True)})
        table = pa.table({"x": pa.array([1, 7, None, -3, 999], pa.int32()).cast(pa.decimal128(12, 2))})
    elif kind == "zone":
        schema = pm.Schema({"x": pm.Datetime("2020-01-01", "2020-12-31", timezone="Europe/Berlin", nullable=True)})
        whole = pa.array([1_600_000_000 * 10**6, 1_585_443_600 * 10**6, None, -(10**15), 10**16])
        table = pa.table({"x": whole.cast(pa.timestamp("us", "UTC"))})
    elif kind == "bytes":
        schema = pm.Schema({"x": pm.Category(["a", "\ufffda", "b"], nullable=True)})
        raw = pa.array([b"a", b"\xffa", "\ufffda".encode(), b"b\x00", None, b"\xf0\x9f"])
        frame = spark.createDataFrame(pa.table({"x": raw})).selectExpr("cast(x as string) as x")
        expected = released(schema, pa.table({"x": raw.view(pa.string())}))
        assert released(schema, frame.repartition(2)) == expected
        return
    elif kind == "small":
        schema = pm.Schema({"x": pm.Integer(-5, 99, nullable=True)})
        table = pa.table({"x": pa.array([-128, 127, 5, None], pa.int8())})
    assert released(schema, framed(spark, table)) == released(schema, table)


ODD = {
    "number": pa.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308, None, 5.0]),
    "exact": pa.array([1, 7, None, -3, 10**17, 0, 2, 3]).cast(pa.decimal128(30, 2)),
    "large": pa.array([2**63 - 1, -(2**63), 2**53 - 1, 2**53, 2**53 + 1, None, 0, 5]),
    "text": pa.array([b"a", b"a\0", b"\xff", "é".encode(), b"", None, b"x" * 9999, b"A"]).view(pa.string()),
    "day": pa.array([0, -719_162, 2_932_896, 2**31 - 1, -(2**31), None, 11_000, -141_428], pa.int32()).cast(
        pa.date32()
    ),
    "moment": pa.array([0, -62_135_596_800, 253_402_300_799, 2**42, -(2**42), None, 1_585_443_600, 10**9])
    .cast(pa.timestamp("s", "UTC"))
    .cast(pa.timestamp("us", "UTC")),
}
"""Cells of a row each; a partition may have one of them alone."""
ODD_SCHEMA = pm.Schema(
    {
        "number": pm.Number(0, 10, nullable=True),
        "exact": pm.Number(0, 10, decimals=2, nullable=True),
        "large": pm.Integer(2**53 - 1000, 2**53, nullable=True),
        "text": pm.Category(["a", "A", "é", ""], nullable=True),
        "day": pm.Date("1990-01-01", "2020-12-31", nullable=True),
        "moment": pm.Datetime("1990-01-01", "2020-12-31", timezone="Europe/Berlin", nullable=True),
    }
)
ZONE, BATCH = "spark.sql.session.timeZone", "spark.sql.execution.arrow.maxRecordsPerBatch"


@pytest.mark.parametrize(
    ("setting", "value"),
    [(ZONE, zone) for zone in ("CTT", "+01:30:30", "UTC+18:00", "Pacific/Apia")]
    + [(BATCH, "1"), (BATCH, "-1")]
    + [("spark.sql.ansi.enabled", "false"), ("spark.sql.caseSensitive", "true")]
    + [("spark.sql.execution.arrow.useLargeVarTypes", "true")],
)
def test_settings_of_a_session_change_no_count(spark, setting: str, value: str) -> None:
    table = pa.table(ODD)
    frame = framed(spark, table, parts=20)  # most of them empty
    before = spark.conf.get(setting)
    spark.conf.set(setting, value)
    try:
        assert released(ODD_SCHEMA, frame) == released(ODD_SCHEMA, table)
    finally:
        spark.conf.set(setting, before)


def test_the_code_of_the_page_runs(spark, tmp_path, monkeypatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "spark.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    written = str(tmp_path / "synthetic.parquet")  # Spark works in the folder in which it was started
    exec(compile("\n".join(blocks).replace("synthetic.parquet", written), str(page), "exec"), names)
    assert len(pq.read_table(written)) == names["synth"].release_.total

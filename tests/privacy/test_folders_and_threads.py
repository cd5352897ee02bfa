"""Attacks on tables in many places: rows that would count twice or not at all, outputs over inputs, threads."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure import cli, threads
from privmeasure.cli.cluster import Cluster
from privmeasure.errors import ArgumentError, DataError
from privmeasure.sources.files import open_table
from privmeasure.sources.folders import leads_into
from privmeasure.sources.spark import spark_files
from privmeasure.sources.stores import file_path
from privmeasure.tables.writing import write_parts

SCHEMA = pm.Schema({"age": pm.Integer(0, 120, nullable=True), "ward": pm.Category(["A", "B"], nullable=True)})
CANARY = "canary-8271"


def counted(place: object, **options: object) -> int:
    """Return how many rows a fit counts: under `replace` the number is public, and is the mass of the release."""
    synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="replace")
    return int(synth.fit(place, insecure_seed=1, **options).release_.measure.mass.sum())


def table(path: Path, text: str = "age,ward\n31,A\n52,B\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# ------------------------------------------------------------------------------------- rows that count twice, or not


def ways_to(folder: Path) -> list[tuple[object, dict[str, object]]]:
    """Return the same folder in the words that `fit` takes."""
    local = pyarrow.fs.LocalFileSystem()
    return [
        (folder, {}),
        (f"file://{folder}", {}),
        (str(folder), {"filesystem": local}),
        (folder.name, {"filesystem": pyarrow.fs.SubTreeFileSystem(str(folder.parent), local)}),
    ]


def test_no_row_counts_twice_behind_a_link(tmp_path) -> None:
    """A loop let pyarrow's file system find each file some forty times: one row, forty times the noise's promise."""
    table(tmp_path / "visits" / "a.csv")
    for place, options in ways_to(tmp_path / "visits"):
        assert counted(place, **options) == 2
    (tmp_path / "visits" / "again").symlink_to(tmp_path / "visits")
    for place, options in ways_to(tmp_path / "visits"):
        with pytest.raises(DataError, match="link to a folder"):
            counted(place, **options)


def test_file_systems_of_this_machine_are_known_by_whatever_name(tmp_path) -> None:
    handler = pyarrow.fs.FSSpecHandler(SimpleNamespace(protocol=("file", "local")))
    assert file_path("/data/visits", pyarrow.fs.PyFileSystem(handler)) == Path("/data/visits")
    other = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(SimpleNamespace(protocol="memory")))
    assert not isinstance(file_path("/data/visits", other), Path)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_one_file_under_two_names_is_refused(tmp_path, link) -> None:
    one = table(tmp_path / "visits" / "a.csv")
    link(one, tmp_path / "visits" / "b.csv")
    with pytest.raises(DataError, match="several names"):
        counted(tmp_path / "visits")
    assert counted(f"{tmp_path}/visits/a*.csv") == 2


def test_a_folder_that_cannot_be_opened_is_not_left_out(tmp_path, monkeypatch) -> None:
    table(tmp_path / f"ward={CANARY}" / "a.csv", "age\n31\n")
    table(tmp_path / "ward=B" / "a.csv", "age\n31\n")
    scan = os.scandir

    def closed(path="."):
        if CANARY in os.fspath(path):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", closed)
    for place in (tmp_path, f"{tmp_path}/*/a.csv", f"{tmp_path}/**/*.csv"):
        with pytest.raises(DataError, match="cannot be opened") as caught:
            counted(place)
        assert CANARY not in str(caught.value)
    assert counted(f"{tmp_path}/*=B/*.csv") == 1


def test_a_pattern_leaves_no_folder_out_without_a_word(tmp_path) -> None:
    pq.write_table(pa.table({"age": [31], "ward": ["A"]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").mkdir()
    pq.write_table(pa.table({"age": [52], "ward": ["B"]}), tmp_path / "b.parquet" / "part-0.parquet")
    with pytest.raises(DataError, match="means folders"):
        counted(f"{tmp_path}/*.parquet")
    assert counted(tmp_path) == counted(f"{tmp_path}/**") == 2
    (tmp_path / "linked").symlink_to(tmp_path / "b.parquet")
    with pytest.raises(DataError, match="link to a folder"):
        counted(f"{tmp_path}/*/part-0.parquet")


def test_relative_places_are_the_same_places(tmp_path, monkeypatch) -> None:
    table(tmp_path / "a.csv")
    table(tmp_path / "in" / "b.csv")
    monkeypatch.chdir(tmp_path)
    assert counted(".") == counted("**") == 4
    assert (
        counted("*.csv") == counted("./*.csv") == counted("in") == counted("in/../in/*.csv") == counted("*/b.csv") == 2
    )


def test_names_with_line_ends_are_names(tmp_path) -> None:
    table(tmp_path / "a\nb.csv")
    table(tmp_path / "c\nd" / "e.csv")
    assert counted(tmp_path) == counted(f"{tmp_path}/**/*.csv") == 4


def test_a_column_that_two_folders_name_is_refused(tmp_path) -> None:
    table(tmp_path / f"ward={CANARY}" / "ward=B" / "a.csv", "age\n31\n")
    with pytest.raises(DataError, match="two folders") as caught:
        counted(tmp_path)
    assert CANARY not in str(caught.value)


def test_folders_that_name_a_column_are_read_whatever_its_name(tmp_path) -> None:
    """One that began with an underscore was left out; and one that said all needed a first column that is no list."""
    for name in ("ward=A", "_ward=A"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"items": [[1], [2]], "age": [3, 4]}), tmp_path / name / "a.parquet")
        schema = pm.Schema({name[:-2]: pm.Category(["A", "B"]), "items": pm.Drop(), "age": pm.Drop()})
        synth = pm.Synthesizer(schema, epsilon=1, neighbours="replace").fit(f"{tmp_path}/{name[0]}*/*", insecure_seed=1)
        assert int(synth.release_.measure.mass.sum()) == 2


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("*.csv", [], ["a", "a/b"]),
        ("a*/*.csv", ["a", "ab"], ["b", "a/b"]),
        ("a/**/*.csv", ["a", "a/b", "a/b/c"], ["b", "b/a"]),
        ("**", ["a", "a/b/c"], [".a", "a/_b", "a/.b/c"]),
        ("**/x.csv", ["a", "a/b"], ["_a"]),
    ],
)
def test_only_folders_that_a_pattern_leads_into_are_entered(pattern, inside, outside) -> None:
    assert all(leads_into(pattern, folder) for folder in inside)
    assert not any(leads_into(pattern, folder) for folder in outside)


# ------------------------------------------------------------------------------------------------ outputs over inputs


@pytest.fixture
def private(tmp_path, monkeypatch):
    """A folder of private rows, with the names that our own folders have; nobody gets as far as to start Spark."""

    def session(self):
        raise AssertionError("the command went on")

    monkeypatch.setattr(Cluster, "session", session)
    folder = tmp_path / "visits.parquet"
    folder.mkdir()
    pq.write_table(pa.table({"age": [31], "ward": ["A"]}), folder / "part-00000.parquet")
    (tmp_path / "visits.toml").write_text(SCHEMA.to_toml())
    return folder


def synthesize(folder: Path, data: str, out: str) -> int:
    promise = ["-s", str(folder.parent / "visits.toml"), "-e", "1", "--neighbours", "add-remove", "--engine", "spark"]
    release = ["--release", str(folder.parent / "r.release"), "--overwrite", "-n", "7"]
    return cli.run(["synthesize", data, *promise, "-o", out, *release])


OUTS = ["{}", "file://{}", "file://{}/rows.parquet", "{}/rows.parquet"]


@pytest.mark.parametrize(
    ("data", "out"),
    [(data, out) for data in ("{}", "file://{}", "{}/*", "file://{}/*") for out in OUTS]
    + [(data, out) for data in ("{}/part-*.parquet", "file://{}/part-*.parquet") for out in OUTS[:2]],
)
def test_synthetic_rows_are_not_written_over_the_table(private, capsys, data: str, out: str) -> None:
    """A path and an address are two words for one folder: the private table was replaced, and gone."""
    assert synthesize(private, data.format(private), out.format(private)) == 2
    assert "Give another --out" in (words := capsys.readouterr().err) or "Write elsewhere" in words
    assert pq.read_table(private).num_rows == 1


@pytest.mark.parametrize(
    "out",
    [
        "s3a://bucket/all.parquet",
        "s3a://bucket/all.parquet/visits.parquet",
        "s3a://bucket/all.parquet/other/../visits.parquet",
        "s3n://bucket/all.parquet/visits.parquet/rows.parquet",
    ],
)
@pytest.mark.parametrize("data", ["s3://bucket/{}", "S3://key:secret@bucket/{}?region=eu", "s3://bucket/{}/**"])
def test_addresses_of_one_store_are_compared(data: str, out: str) -> None:
    with pytest.raises(ArgumentError, match="written over the table"):
        Cluster("spark").check(data.format("all.parquet/visits.parquet"), out, kept=True)


def test_other_addresses_are_apart() -> None:
    for out in ("s3a://bucket/rows.parquet", "gs://bucket/visits/rows.parquet", "s3a://other/visits/rows.parquet"):
        Cluster("spark").check("s3://bucket/visits", out, kept=True)
    Cluster("spark").check("abfs://one@account/visits", "abfss://two@account/visits/rows.parquet", kept=True)


def test_what_a_killed_process_left_is_in_nobodys_way(tmp_path) -> None:
    """In a container processes have the same few numbers: the next one failed, after epsilon was spent."""
    for ending in ("part", "old"):
        left = tmp_path / f"rows.csv.{os.getpid()}.{ending}"
        left.mkdir()
        (left / "part-00000.csv").write_text("half")
    for rows in (3, 2):
        write_parts(tmp_path / "rows.csv", [pa.table({"a": list(range(rows))})], rows_per_file=1, overwrite=True)
        assert len(list((tmp_path / "rows.csv").iterdir())) == rows


# ------------------------------------------------------------------------------------------------------------ threads


def test_what_is_no_session_is_said_to_be_none(tmp_path) -> None:
    opened = open_table(table(tmp_path / "a.csv"))
    stopped = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    for session in (stopped, "local[2]", object()):
        with pytest.raises(DataError, match=r"not stopped, got \w+\. Nothing was spent"):
            spark_files(session, opened, SCHEMA)


def test_ctrl_c_stops_what_an_engine_does_before_it_is_raised(monkeypatch) -> None:
    """It is asked again: the first time the work may not have begun."""
    monkeypatch.setattr(threads, "LOOK_SECONDS", 0.02)
    ended, asked = threading.Event(), []

    def stop() -> None:
        asked.append(None)
        if len(asked) == 1:
            raise RuntimeError("there is nothing to stop yet")
        if len(asked) == 3:
            ended.set()

    def work() -> None:
        assert ended.wait(30)

    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        threads.interruptible(work, stop)
    assert len(asked) == 3
    assert caught.value.args == ()
    assert threads.interruptible(lambda: 7, stop) == 7
    with pytest.raises(ZeroDivisionError):
        threads.interruptible(lambda: 1 // 0, stop)


FORKED = """
import os, signal, sys, numpy as np, privmeasure as pm
points = np.random.default_rng(0).random((600_000, 2))
def mass():
    synth = pm.Synthesizer(pm.Box([(0, 1)] * 2), epsilon=1, neighbours="replace", threads=3)
    return synth.fit(points, insecure_seed=1).release_.mass
here = mass()
child = os.fork()
if not child:
    signal.alarm(60)  # threads that are waited for, and did not come along
    os._exit(0 if (mass() == here).all() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_after_threads_counts_the_same() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(pm.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], env=environment, timeout=120, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("odd", [0, -1, True, 1.5, "2", "all", 99_999_999_999])
def test_odd_numbers_of_threads_are_refused_before_anything_is_spent(odd: object) -> None:
    with pytest.raises(ArgumentError, match="threads"):
        pm.Synthesizer(SCHEMA, epsilon=1, neighbours="replace", threads=odd)


def test_an_error_in_one_thread_ends_the_fit_and_nobody_goes_on(tmp_path, monkeypatch) -> None:
    """What a worker raises is not shown; no batch is begun after it, and no thread is left."""
    rng = np.random.default_rng(0)
    for i in range(40):
        pq.write_table(pa.table({"age": rng.integers(0, 99, 100), "ward": ["A"] * 100}), tmp_path / f"{i:02}.parquet")
    encode, begun = pm.Schema.encode, []

    def failing(self, batch):
        begun.append(None)
        if len(begun) == 9:
            raise MemoryError(CANARY)
        time.sleep(0.002)
        return encode(self, batch)

    monkeypatch.setattr(pm.Schema, "encode", failing)
    before = threading.active_count()
    synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove", threads=7)
    with pytest.raises(DataError, match="nothing was spent") as caught:
        synth.fit(tmp_path)
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None
    assert len(begun) < 9 + 7
    assert threading.active_count() <= before
    assert not synth.spent

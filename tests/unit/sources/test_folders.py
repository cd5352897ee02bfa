"""Tables in many files: each is read by its own types, folders name columns, stores are file systems like others."""

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure.cli.opening import check_outside, told
from privmeasure.counts import Partition
from privmeasure.errors import ArgumentError, DataError, ReleaseError, SchemaError
from privmeasure.sources.files import open_table
from privmeasure.sources.folders import check_table, pattern_of
from privmeasure.sources.stores import StorePath, file_path
from privmeasure.sources.tables import TableSource
from privmeasure.tables.writing import write_parts, write_table

SCHEMA = pm.Schema({"age": pm.Integer(0, 120), "ward": pm.Category(["A", "B"], nullable=True)})


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table({"age": rng.integers(0, 120, n), "ward": np.array(["A", "B"])[rng.integers(0, 2, n)]})


def released(data, **options):
    synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove")
    return synth.fit(data, insecure_seed=4, **options).sample(seed=1).to_pylist()


@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".parquet", ".feather"])
def test_a_folder_is_its_rows(tmp_path, ending):
    table = rows()
    folder = tmp_path / f"visits{ending}"
    write_parts(folder, [table], rows_per_file=90)
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden.csv").write_text("x\n1\n")
    assert len(list(folder.glob("part-*"))) == 5
    expected = released(table)
    assert released(folder) == released(str(folder)) == expected
    assert released(f"{folder}/part-*{ending}") == expected
    assert released(f"{tmp_path}/**/*{ending}") == expected


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_folders_name_a_column(tmp_path, ending):
    table = rows()
    for ward in "AB":
        folder = tmp_path / f"ward={ward}"
        folder.mkdir()
        write_table(folder / f"x{ending}", [table.filter(pa.compute.equal(table["ward"], ward)).select(["age"])])
    nowhere = tmp_path / "ward=__HIVE_DEFAULT_PARTITION__"
    nowhere.mkdir()
    write_table(nowhere / f"x{ending}", [pa.table({"age": [3, 4]})])
    whole = pa.concat_tables([table, pa.table({"age": [3, 4], "ward": pa.array([None, None], pa.string())})])
    assert released(tmp_path) == released(whole)
    only = pm.Schema({"ward": pm.Category(["A", "B"], nullable=True), "age": pm.Drop()})
    source = TableSource(open_table(tmp_path), only)
    from privmeasure.counts import Partition

    assert source.count([Partition(())])[0].total == 402


def test_what_pyarrow_partitions_is_read(tmp_path):
    table = rows()
    pq.write_to_dataset(table, tmp_path / "set", partition_cols=["ward"])
    assert released(tmp_path / "set") == released(table)


def test_no_file_decides_how_another_is_read(tmp_path):
    whole, single = pa.table({"age": pa.array([1, 2], pa.int8()), "ward": ["A", "B"]}), rows(50)
    write_table(tmp_path / "a.parquet", [whole])
    write_table(tmp_path / "b.parquet", [single.set_column(0, "age", single["age"].cast(pa.float64()))])
    reordered = rows(30, seed=3).select(["ward", "age"])
    write_table(tmp_path / "c.parquet", [reordered])
    table = open_table(tmp_path)
    assert table.types == (None, pa.string())
    joined = pa.concat_tables([whole.cast(single.schema), single, reordered.select(["age", "ward"])])
    assert released(tmp_path) == released(joined)
    for name in "abc":
        shutil.copy(tmp_path / f"{name}.parquet", tmp_path / f"z{name}.parquet")
        (tmp_path / f"{name}.parquet").unlink()


def test_every_file_must_be_what_the_schema_declares(tmp_path):
    write_table(tmp_path / "a.parquet", [rows(5)])
    write_table(tmp_path / "b.parquet", [pa.table({"age": ["1"], "ward": ["A"]})])
    with pytest.raises(SchemaError, match="'age'"):
        check_table(SCHEMA, open_table(tmp_path))
    write_table(tmp_path / "b.parquet", [pa.table({"age": [1]})], overwrite=True)
    with pytest.raises(DataError, match="columns differ"):
        open_table(tmp_path)
    write_table(tmp_path / "b.csv", [rows(5)])
    with pytest.raises(DataError, match="several kinds"):
        open_table(tmp_path)
    (tmp_path / "ward=A").mkdir()
    write_table(tmp_path / "ward=A" / "c.parquet", [rows(5)])
    with pytest.raises(DataError, match="names of their folders"):
        open_table(f"{tmp_path}/**/c.parquet")
    with pytest.raises(DataError, match="No table"):
        open_table(f"{tmp_path}/*.feather")
    with pytest.raises(DataError, match="does not exist"):
        open_table(f"{tmp_path}/none/*.csv")


class Store(pyarrow.fs.FileSystemHandler):
    """A file system of which nobody knows that it lies on the disk: what readers ask of an object store."""

    def __init__(self, inner):
        self.inner = inner

    def get_type_name(self):
        return "store"

    def get_file_info(self, paths):
        return self.inner.get_file_info(paths)

    def get_file_info_selector(self, selector):
        return self.inner.get_file_info(selector)

    def open_input_file(self, path):
        return self.inner.open_input_file(path)

    def normalize_path(self, path):
        return path

    def _written(self, *_, **__):
        raise AssertionError("readers write nothing")

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = _written
    move = open_append_stream = open_input_stream = open_output_stream = _written


def test_a_folder_in_a_store(tmp_path):
    table = rows()
    for name in ("visits.csv", "visits.parquet", "visits.feather", "visits.tsv.gz"):
        write_parts(tmp_path / name, [table], rows_per_file=150)
    store = pyarrow.fs.PyFileSystem(Store(pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())))
    assert isinstance(file_path("visits.csv", store), StorePath)
    expected = released(table)
    for name in ("visits.csv", "visits.parquet", "visits.feather", "visits.tsv.gz"):
        ending = name.partition(".")[2]
        assert released(name, filesystem=store) == expected
        assert released(f"{name}/part-*.{ending}", filesystem=store) == expected
        assert released(f"file://{tmp_path}/{name}") == expected
    write_table(tmp_path / "one.xlsx", [table])
    assert released("one.xlsx", filesystem=store) == expected
    with pytest.raises(ArgumentError, match="pyarrow"):
        released("one.xlsx", filesystem=object())
    with pytest.raises(DataError, match="nowhere"):
        released("nowhere://key:secret@bucket/visits")
    with pytest.raises(DataError, match="does not exist"):
        released("none.csv", filesystem=store)


class Vanishing(TableSource):
    """Loses a file, or has one damaged, between two questions."""

    damage = None

    def count(self, partitions, progress=None):
        if self._read_once and self.damage is not None:
            type(self).damage()
        return super().count(partitions, progress)


@pytest.mark.parametrize("moment", ["before", "between"])
@pytest.mark.parametrize("fault", ["gone", "damaged", "more"])
def test_a_fault_says_what_was_spent_and_shows_no_value(tmp_path, monkeypatch, moment, fault):
    folder = tmp_path / "visits.parquet"
    write_parts(folder, [rows()], rows_per_file=100)

    def damage():
        victim = sorted(folder.iterdir())[2]
        if fault == "gone":
            victim.unlink()
        elif fault == "damaged":
            content = bytearray(victim.read_bytes())
            content[8:400] = b"\x00canary" * 56
            victim.write_bytes(content)
        else:
            write_table(folder / "part-99999.parquet", [rows(5)])

    synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove")
    if moment == "between":
        import privmeasure.synthesizer as facade

        monkeypatch.setattr(Vanishing, "damage", staticmethod(damage))
        monkeypatch.setattr(facade, "TableSource", Vanishing)
        with pytest.raises(ReleaseError, match="count epsilon as spent") as caught:
            synth.fit(folder)
        assert synth.spent
    else:
        table = open_table(folder)
        damage()
        monkeypatch.setattr("privmeasure.synthesizer.open_table", lambda *a, **k: table)
        with pytest.raises(DataError, match="Nothing was spent") as caught:
            synth.fit(folder)
        assert not synth.spent
    assert "canary" not in str(caught.value)


def test_a_damaged_row_group_is_told_before_anything_is_spent(tmp_path):
    path = tmp_path / "visits.parquet"
    pq.write_table(rows(5000), path, row_group_size=500, compression="snappy")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 300] = b"\xff" * 300
    path.write_bytes(content)
    synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove")
    with pytest.raises(DataError, match=r"complete Parquet file.*Nothing was spent"):
        synth.fit(path)
    assert not synth.spent


def test_patterns():
    assert pattern_of("a[!b].csv").fullmatch("ac.csv")
    assert not pattern_of("a[!b].csv").fullmatch("ab.csv")
    assert pattern_of("**").fullmatch("a/b/c")
    assert not pattern_of("*.csv").fullmatch("a/b.csv")
    assert pattern_of("a?c").fullmatch("abc")


def test_parts_are_whole_or_not_there(tmp_path):
    folder = tmp_path / "rows.csv"

    def failing():
        yield rows(10)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_parts(folder, failing(), rows_per_file=4)
    assert list(tmp_path.iterdir()) == []
    assert write_parts(folder, [rows(0)], rows_per_file=4) == 0
    assert [path.name for path in folder.iterdir()] == ["part-00000.csv"]
    with pytest.raises(FileExistsError):
        write_parts(folder, [rows(3)], rows_per_file=4)
    assert write_parts(folder, [rows(9)], rows_per_file=4, overwrite=True) == 9
    (folder / "notes.md").write_text("mine")
    with pytest.raises(FileExistsError, match="other files"):
        write_parts(folder, [rows(9)], rows_per_file=4, overwrite=True)
    assert (folder / "notes.md").exists()
    (tmp_path / "file.csv").write_text("")
    with pytest.raises(FileExistsError, match="is a file"):
        write_parts(tmp_path / "file.csv", [rows(9)], rows_per_file=4, overwrite=True)


def test_an_error_shows_no_value_that_a_folder_says(tmp_path):
    folder = tmp_path / "visits" / "ward=canary 8271"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("")
    with pytest.raises(DataError, match=r"visits/ward=\.\.\./a\.csv is empty") as caught:
        open_table(tmp_path / "visits")
    assert "canary" not in str(caught.value)
    (folder / "a.csv").write_text("age\n1\n")
    table = open_table(tmp_path / "visits")
    (folder / "a.csv").write_text("age\n1\n2\n")
    with pytest.raises(DataError, match="changed after it was opened") as caught:
        list(table.batches(["age"]))
    assert "canary" not in str(caught.value)


@pytest.mark.skipif(os.name == "nt", reason="names of files are texts there")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_folder_whose_name_is_no_utf8_is_a_value_like_others(tmp_path, ending):
    """A cell of a text file that is no UTF-8 is an undeclared value; a folder that says it does not end the fit."""
    whole = pa.table({"age": [1, 2]})
    for name in (b"ward=A", b"ward=\xff"):
        folder = os.fsencode(tmp_path) + b"/visits/" + name
        os.makedirs(folder)
        write_table(Path(tmp_path / f"a{ending}"), [whole])
        (tmp_path / f"a{ending}").rename(Path(os.fsdecode(folder)) / f"a{ending}")
    source = TableSource(open_table(tmp_path / "visits"), SCHEMA)
    (counts,) = source.count([Partition.of(SCHEMA.domain, 10)])
    twin = pa.table({"age": [1, 2, 1, 2], "ward": ["A", "A", "other", "other"]})
    cells = SCHEMA.domain.locate(SCHEMA.encode(twin), 10).astype(np.int64)
    assert counts.counts.tolist() == np.bincount(cells, minlength=1 << 10).tolist()


@pytest.mark.parametrize(
    "address", ["jdbc:postgresql://joe:{}@host/x?table=t", " postgresql://joe:{}@host/x", "my://{}@h"]
)
def test_an_address_that_nobody_knows_is_not_repeated(address):
    with pytest.raises(DataError, match="none that pyarrow knows") as caught:
        open_table(address.format("canary8271"))
    assert "canary" not in str(caught.value)
    assert "canary" not in told(address.format("canary8271"))


def test_what_is_no_file_is_not_left_out_silently(tmp_path):
    folder = tmp_path / "visits"
    (folder / "ward=secret").mkdir(parents=True)
    (folder / "ward=secret" / "a.csv").write_text("age\n3\n")
    open_table(folder)
    pipe = folder / "ward=secret" / "b.csv"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a pipe") as caught:
        open_table(folder)
    assert "secret" not in str(caught.value)
    pipe.unlink()
    pipe.symlink_to(folder / "nowhere")
    for place in (folder, f"{folder}/*/*.csv"):
        with pytest.raises(DataError, match="link that leads nowhere"):
            open_table(place)
    assert open_table(f"{folder}/*/a.csv").names == ("age", "ward")  # nobody asked for the other
    pipe.unlink()
    (folder / "_old").symlink_to(tmp_path)
    open_table(folder)
    (folder / "ward=hidden").symlink_to(folder / "ward=secret")
    with pytest.raises(DataError, match="link to a folder") as caught:
        open_table(folder)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "words"), [("[.csv", "cannot be read"), ("[z-a].csv", "cannot be read"), ("q*.csv", "has a name like")]
)
def test_a_pattern_that_means_nothing_is_told_as_such(tmp_path, pattern, words):
    (tmp_path / "a.csv").write_text("age\n3\n")
    with pytest.raises(DataError, match=words):
        open_table(f"{tmp_path}/{pattern}")
    assert open_table(f"{tmp_path}/[!b].csv").names == ("age",)


@pytest.mark.parametrize("data", ["in", "in/*.csv", "in/**/*.csv"])
def test_an_output_among_the_files_that_are_read_is_refused(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("age\n3\n")
    for output in ("in/rows.csv", "../" + tmp_path.name + "/in/rows.csv") if data == "in" else ("in/rows.csv",):
        with pytest.raises(ArgumentError, match="among the files"):
            check_outside(data, Path("out.csv"), None, Path(output))
    check_outside(data, Path("in/a.release"), Path("out/rows.csv"), Path("in.csv"))
    check_outside("in/a.csv", Path("in/rows.csv"))
    check_outside("in/b*.csv", Path("in/rows.csv"))

"""The rows of a table behind the counting interface: what may raise, when, and what anyone can see."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privmeasure import PMM, Privacy
from privmeasure.counts import Partition
from privmeasure.errors import DataError, ReleaseError
from privmeasure.noise.entropy import Key
from privmeasure.sources import files
from privmeasure.sources import tables as engine
from privmeasure.sources.files import open_table
from privmeasure.sources.tables import TableSource
from privmeasure.tables import Category, Drop, Integer, Number, Schema
from privmeasure.tables.writing import write_table

SCHEMA = Schema({"x": Number(0, 1), "k": Integer(0, 9), "name": Drop()})
ALL = [Partition(())]


def table(rows):
    return pa.table(
        {"name": ["someone"] * rows, "k": [i % 10 for i in range(rows)], "x": [i / rows for i in range(rows)]}
    )


def file(folder, rows, name="t.csv"):
    write_table(folder / name, [table(rows)], overwrite=True)
    return open_table(folder / name)


@pytest.mark.parametrize("rows", [0, 1, 5, 300_000])
@pytest.mark.parametrize("form", ["t.csv", "t.parquet", "table"])
@pytest.mark.parametrize("threads", [1, 3])
def test_progress_does_not_tell_the_number_of_rows(tmp_path, rows, form, threads):
    told = []
    data = table(rows) if form == "table" else file(tmp_path, rows, form)
    source = TableSource(data, SCHEMA, threads=threads, progress=lambda *what: told.append(what))
    (counts,) = source.count(ALL)
    assert counts.total == rows
    quarters = [0.25, 0.5, 0.75, 1.0]
    assert told == [("read", quarter) for quarter in quarters]
    told.clear()
    source.count(ALL, lambda *what: told.append(what))  # from what was kept
    assert told == [("count", quarter) for quarter in quarters]


def test_it_shows_nothing(tmp_path):
    assert repr(TableSource(table(7), SCHEMA)) == "TableSource(private)"


class Watched:
    """A file that remembers what it was asked for."""

    def __init__(self, inner):
        self.inner, self.asked = inner, []

    def batches(self, columns, *, progress=None, unread=None):
        self.asked.append(list(columns))
        return self.inner.batches(columns, progress=progress)

    def check_unchanged(self):
        self.inner.check_unchanged()


def test_dropped_columns_are_not_read(tmp_path):
    watched = Watched(file(tmp_path, 5))
    TableSource(watched, SCHEMA).count(ALL)
    assert watched.asked == [["x", "k"]]


def test_what_is_small_is_read_once_and_what_is_large_again(tmp_path, monkeypatch):
    for limit, readings in ((engine.CACHE_BYTES, 1), (1000, 3)):
        monkeypatch.setattr(engine, "CACHE_BYTES", limit)
        watched = Watched(file(tmp_path, 100))
        source = TableSource(watched, SCHEMA)
        for _ in range(3):
            assert source.count(ALL)[0].total == 100
        assert len(watched.asked) == readings


@pytest.mark.parametrize("groups", [1, 2, 7])
def test_threads_read_the_groups_of_a_parquet_file(tmp_path, monkeypatch, groups):
    """Each its own, or all of them the only one; whoever fails stops the others."""
    monkeypatch.setattr(files, "BLOCK", 100)
    rng, path = np.random.default_rng(groups), tmp_path / "t.parquet"
    table = pa.table({"name": ["a"] * 1400, "k": rng.integers(0, 10, 1400), "x": rng.random(1400)})
    pq.write_table(table, path, row_group_size=1400 // groups)
    partitions = [Partition.of(SCHEMA.domain, 6)]
    (one,), (many,) = (TableSource(open_table(path), SCHEMA, threads=t).count(partitions) for t in (1, 5))
    assert one.total == 1400
    assert (one.counts == many.counts).all()
    whole, turn = pq.ParquetFile.iter_batches, iter(range(99))

    def failing(self, **options):
        for batch in whole(self, **options):
            if next(turn) == 8:
                raise pa.ArrowInvalid("secretvalue")
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", failing)
    with pytest.raises(DataError, match="Nothing was spent") as caught:
        TableSource(open_table(path), SCHEMA, threads=5).count(partitions)
    assert "secretvalue" not in str(caught.value)
    assert next(turn) < 14


def test_a_broken_file_is_a_data_error_at_first(tmp_path):
    for _ in range(2):
        source = TableSource(file(tmp_path, 5), SCHEMA, threads=2)
        (tmp_path / "t.csv").write_text("name,k,x\na,1,0.5\nsecretvalue\n")
        with pytest.raises(DataError, match="changed") as caught:
            PMM(SCHEMA.domain, Privacy(1, "add-remove")).release(source, Key.fresh())
        assert "secretvalue" not in str(caught.value)


@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_a_file_that_changes_after_noise_was_drawn_counts_as_spent(tmp_path, monkeypatch, kept):
    monkeypatch.setattr(engine, "CACHE_BYTES", kept)
    source = TableSource(file(tmp_path, 100), SCHEMA)
    source.count(ALL)
    (tmp_path / "t.csv").write_text("name,k,x\nsecretvalue\n")
    with pytest.raises(ReleaseError, match="count epsilon as spent") as caught:
        source.count(ALL)
    assert "secretvalue" not in str(caught.value)


def test_a_fault_of_our_own_shows_nothing(monkeypatch):
    def faulty(self, batch):
        raise ValueError("cannot encode secretvalue of row 17")

    monkeypatch.setattr(Schema, "encode", faulty)
    monkeypatch.setattr(engine, "FEW_BATCHES", 0)
    with pytest.raises(DataError, match="nothing was spent") as caught:
        PMM(SCHEMA.domain, Privacy(1, "add-remove")).release(TableSource(table(50), SCHEMA, threads=2), Key.fresh())
    assert "secretvalue" not in str(caught.value)


def test_an_interruption_stops_all_threads(monkeypatch):
    seen = []

    def interrupted(self, batch):
        seen.append(batch.num_rows)
        raise KeyboardInterrupt

    monkeypatch.setattr(Schema, "encode", interrupted)
    monkeypatch.setattr(engine, "BLOCK", 10)
    monkeypatch.setattr(engine, "FEW_BATCHES", 0)
    with pytest.raises(KeyboardInterrupt):
        TableSource(table(1000), SCHEMA, threads=2).count(ALL)
    assert len(seen) <= 2


@pytest.mark.parametrize("neighbours", ["add-remove"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_table_without_rows_succeeds(tmp_path, neighbours, name):
    source = TableSource(file(tmp_path, 0, name), SCHEMA)
    release = PMM(SCHEMA.domain, Privacy(1, neighbours)).release(source, Key.fresh())
    assert release.total >= 1


def test_odd_cells_never_raise(tmp_path):
    cells = ["", '""', "x", "-1", "1e999", "nan", "∞", "0x10", '"1,5"', " 1 ", "\0", "9" * 400, "'", '"a""b"', "true"]
    lines = [f"someone,{cell},{cell}\n" for cell in cells]
    (tmp_path / "t.csv").write_text("name,k,x\n" + "".join(lines))
    (counts,) = TableSource(open_table(tmp_path / "t.csv"), SCHEMA).count([Partition.of(SCHEMA.domain, 6)])
    assert counts.total == len(cells)


def test_dictionaries_that_change_from_batch_to_batch(tmp_path):
    schema = Schema({"c": Category(["a", "b", "c"])})
    with pq.ParquetWriter(tmp_path / "t.parquet", pa.schema({"c": pa.string()})) as writer:
        for texts in (["a", "b"], ["c", "b", None], ["zzz"] * 3):
            writer.write_table(pa.table({"c": pa.array(texts, pa.string())}))
    (counts,) = TableSource(open_table(tmp_path / "t.parquet"), schema).count([Partition.of(schema.domain, 2)])
    cells = schema.domain.locate(np.array([[0.0], [1.0], [2.0]]), 2)
    assert counts.counts[cells.astype(int)].tolist() == [5, 2, 1]

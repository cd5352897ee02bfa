"""A second attack on the law of rows, and on what must work once epsilon is spent: what worked, and what did not."""

import io
import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import privmeasure as pm
from laws.test_rows import check_neighbours, frame, observed, schema_of
from privmeasure.cli import app
from privmeasure.errors import ArgumentError, DataError
from privmeasure.sources import arrays as memory
from privmeasure.sources import files as reading
from privmeasure.sources import lines, tally
from privmeasure.sources import tables as table
from privmeasure.sources.files import open_table
from privmeasure.sources.lines import CellReader, Grammar, whole_records
from privmeasure.tables import Boolean, Category, Date, Datetime, Drop, Integer, Number, Schema, Time
from privmeasure.tables.columns.fields import ColumnError
from privmeasure.tables.writing import write_table

LETTERS = [b"a", b",", b'"', b"\r", b"\n", b"\r\n", b'""', b',"', b'",', b'"\n', b"\xff", b"aaaa"]


def fitted(column, data, **options):
    return pm.Synthesizer(Schema({"x": column}), epsilon=1, neighbours="add-remove", **options).fit(
        data, insecure_seed=1
    )


# ---------------------------------------------------------------------------------------------------- those that worked


@pytest.mark.parametrize(("value", "other"), [(pd.Interval(0, 1), pd.Interval(0.5, 2)), (1, 1j), (1.5, 1j)], ids=str)
def test_a_category_is_the_same_text_beside_one_of_a_wider_type(value, other):
    """Pandas gives all categories one type: (0, 1] became (0.0, 1.0] beside (0.5, 2], and 1 became (1+0j) beside 1j."""
    column = Category(["(0, 1]", "(0.0, 1.0]", "1", "(1+0j)", "1.5", "(1.5+0j)"], nullable=True)
    one, more = (frame(pd.Series(pd.Categorical(cells))) for cells in ([value], [value, other]))
    check_neighbours(schema_of(column), one, more)


@pytest.mark.parametrize("count", [1, 5000])  # of so many, only a block of one row raised
def test_a_declaration_that_the_first_row_would_find_at_fault_is_refused(count):
    with pytest.raises(ColumnError, match="half a character"):
        Category([*map(str, range(count)), "\ud800"])
    with pytest.raises(ColumnError, match="half a character"):
        Boolean(true="\ud800", false="n")
    with pytest.raises(ColumnError, match="cannot be read back"):
        Date("2020-01-01", "2021-01-01", format="%d%d.%m.%Y")


def test_a_file_that_is_written_over_in_its_place_is_not_read_again(tmp_path):
    """With its size and its time of change set back it was taken for the same."""
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n")
    table, status = open_table(path), path.stat()
    path.write_text("x\n7\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(DataError, match="changed"):
        list(table.batches(["x"]))


def test_runs_of_a_narrow_type_can_be_sampled_beyond_its_end(tmp_path):
    """No more than 32,767 rows could be drawn, which only showed when epsilon was spent."""
    data = pa.table({"x": pa.RunEndEncodedArray.from_arrays(pa.array([500], pa.int16()), pa.array([3.5]))})
    synthesizer = fitted(Number(0, 10), data)
    assert synthesizer.sample(40_000).num_rows == 40_000
    assert synthesizer.release_.sample(9, frame="polars").height == 9
    for name in ("t.csv", "t.parquet"):
        assert write_table(tmp_path / name, [synthesizer.sample(9)]) == 9


@pytest.mark.parametrize("storage", [pa.string(), pa.dictionary(pa.int8(), pa.string())], ids=["plain", "narrow"])
def test_a_release_of_an_extension_type_can_be_loaded(tmp_path, storage):
    """Its file named a type that nobody can read; and 128 texts did not fit an index that could not be widened."""
    kind, cells = pa.opaque(storage, "a", "b"), pa.array(["2020-01-01"] * 500).cast(storage)
    synthesizer = fitted(Date("1900-01-01", "2030-12-31"), pa.table({"x": pa.ExtensionArray.from_storage(kind, cells)}))
    assert synthesizer.sample(3000).num_rows == 3000
    synthesizer.save(tmp_path / "r.pm")
    assert pm.load(tmp_path / "r.pm").sample(3000).num_rows == 3000


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (Number(0, 1), pd.ArrowDtype(pa.null())),
        (Category([str(i) for i in range(300)]), pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
        *((Time(resolution="1ns"), dtype) for dtype in ("object", "category")),
    ],
    ids=["nulls", "narrow", "times", "categories"],
)
def test_pandas_gets_a_sample_whatever_its_own_type_can_hold(column, dtype):
    assert len(fitted(column, pd.DataFrame({"x": pd.Series([None] * 500, dtype=dtype)})).sample(2000)) == 2000


def test_a_polars_type_that_arrow_lacks_is_refused():
    with pytest.raises(DataError, match="cannot be converted"):
        fitted(Integer(0, 9), pl.DataFrame({"x": pl.Series([1], dtype=pl.Int128)}))


@pytest.mark.parametrize("column", [Datetime("2020-01-01", "2021-01-01"), Time()], ids=["2020-06-01T00:00Z", "10:00Z"])
def test_a_condition_with_an_offset_is_refused(column, request):
    """It was compared with times that have none: a TypeError."""
    synthesizer = fitted(column, pd.DataFrame({"x": pd.Series([None] * 9, dtype=object)}))
    with pytest.raises(ArgumentError, match="no value of that column"):
        synthesizer.sample(5, where=f"x > '{request.node.callspec.id}'")


def test_a_check_does_not_read_what_is_dropped(tmp_path):
    """A column of lists that was declared as Drop had to be declared as Drop."""
    pq.write_table(pa.table({"x": [1.0], "l": [[1]]}), tmp_path / "t.parquet")
    (tmp_path / "s.toml").write_text(Schema({"x": Number(0, 1), "l": Drop()}).to_toml())
    options = ["--data", str(tmp_path / "t.parquet")]
    assert CliRunner().invoke(app, ["schema", "check", str(tmp_path / "s.toml"), *options]).exit_code == 0


# ------------------------------------------------------------------------------------------------- those that never did


def rows_of(data, width, longest):
    """The rows of a text whose quoted cells may hold line ends: one letter after the other."""
    rows, cells, cell, state, length, text = [], [], b"", "start", 0, data.replace(b"\r\n", b"\0")
    for letter in (text[i : i + 1] for i in range(len(text) + 1)):
        if letter in b"\r\n\0" and (state != "quoted" or not letter):  # the last is none
            if (length or width == 1) and (letter or length):
                fine = state != "quoted" and length <= longest and len(cells) + 1 == width
                last = cell or (None if state in ("start", "plain") else b"")
                rows.append((*cells, last) if fine else (None,) * width)
            cells, cell, state, length = [], b"", "start", 0
            continue
        length += 2 if letter == b"\0" else 1
        if state == "quoted":
            cell, state = (cell, "after") if letter == b'"' else (cell + letter.replace(b"\0", b"\r\n"), state)
        elif letter == b'"' and state in ("start", "after"):
            cell, state = cell + letter * (state == "after"), "quoted"
        elif letter == b",":
            cells, cell, state = [*cells, cell or (b"" if state == "after" else None)], b"", "start"
        else:
            cell, state = cell + letter, "beside" if state == "after" else "plain"
    return rows


def test_quoted_line_ends_and_long_records_are_the_same_rows_in_every_block(monkeypatch):
    """Against a reading letter by letter: open quotes, ends that are cut in two, records about as long as allowed."""
    rng = np.random.default_rng(0)
    for _ in range(600):
        data = b"".join(LETTERS[i] for i in rng.integers(0, len(LETTERS), rng.integers(1, 25)))
        grammar, longest = Grammar(",", int(rng.integers(1, 4)), True), int(rng.choice([3, 5, 8, 12, 1 << 24]))
        monkeypatch.setattr(lines, "BLOCK_BYTES", int(rng.choice([1, 2, 3, 5, 7, 16, 1 << 20])))
        monkeypatch.setattr(lines, "LONGEST_LINE", longest)
        names = [str(i) for i in range(grammar.width)]
        batches = map(CellReader(grammar, names, names).read, whole_records(io.BytesIO(data).read, grammar))
        columns = [[c.cast(pa.binary()).to_pylist() for c in batch.columns] for batch in batches]
        found = [row for cells in columns for row in zip(*cells, strict=True)]
        assert found == rows_of(data, grammar.width, longest), data


@pytest.mark.parametrize(("mechanism", "depth"), [("pmm", None), ("pmm", 30), ("psmm", 5), ("columns", None)])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_no_threshold_and_no_thread_shows(tmp_path, monkeypatch, mechanism, depth, neighbours):
    """With one seed the release is the same wherever blocks, caches and threads begin; so is all that is told."""
    schema, seen, told = Schema({"a": Number(0, 1), "b": Integer(0, 9, nullable=True)}), {}, []
    everyone = pa.table({"a": np.linspace(0, 1, 61), "b": np.arange(61) % 10})
    options = {"epsilon": 1, "neighbours": neighbours, "mechanism": mechanism, "depth": depth}
    for rows in (61, 60):
        pq.write_table(everyone[:rows], tmp_path / "t.parquet", row_group_size=20)
        for cache, few, block, pending in ((1 << 29, 4, 1 << 17, 1 << 22), (16 * 60, 1, 7, 3), (0, 0, 1, 0)):
            limits = {(table, "CACHE_BYTES"): cache, (table, "FEW_BATCHES"): few, (tally, "PENDING"): pending}
            for place, value in (limits | {(module, "BLOCK"): block for module in (table, memory, reading)}).items():
                monkeypatch.setattr(*place, value)
            for data, threads in ((everyone[:rows], 3), (tmp_path / "t.parquet", 1), (tmp_path / "t.parquet", 3)):
                made, steps = pm.Synthesizer(schema, threads=threads, **options), []
                made.fit(data, progress=lambda *step, steps=steps: steps.append(step), insecure_seed=2)
                told.append(steps)
                found = made.sample(50, seed=3).to_pydict(), str(made.plan_)
                assert seen.setdefault(rows, found) == found
    assert all(steps == told[0] for steps in told)


@pytest.mark.parametrize("at", [0, 1, 2, 5])
def test_texts_are_read_without_their_dictionary_from_any_batch_on(tmp_path, monkeypatch, at):
    schema, path = Schema({"x": Category(["F", "M"], nullable=True)}), tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": ["F", "M", None, "zz", "F"] * 21}), path, row_group_size=20)
    monkeypatch.setattr(reading, "BLOCK", 8)
    wanted, plain = observed(schema, path), pq.ParquetFile

    class Full(plain):
        def iter_batches(self, **options):
            for i, batch in enumerate(super().iter_batches(**options)):
                if i == at and pa.types.is_dictionary(batch.schema.types[0]):
                    raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")
                yield batch

    monkeypatch.setattr(pq, "ParquetFile", Full)
    found = observed(schema, path)
    assert wanted[0] == found[0]
    assert np.array_equal(wanted[1], found[1])

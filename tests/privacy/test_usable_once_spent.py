"""What must work once epsilon is spent, or be refused before: declarations, storage types, conditions."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import privmeasure as pm
from privmeasure.cli import app
from privmeasure.errors import ArgumentError, DataError
from privmeasure.tables import Boolean, Category, Date, Datetime, Drop, Integer, Number, Schema, Time
from privmeasure.tables.columns.fields import ColumnError
from privmeasure.tables.writing import write_table


def fitted(column, data, **options):
    return pm.Synthesizer(Schema({"x": column}), epsilon=1, neighbours="add-remove", **options).fit(
        data, insecure_seed=1
    )


@pytest.mark.parametrize("count", [1, 5000])  # of so many, only a block of one row raised
def test_a_declaration_that_the_first_row_would_find_at_fault_is_refused(count):
    with pytest.raises(ColumnError, match="half a character"):
        Category([*map(str, range(count)), "\ud800"])
    with pytest.raises(ColumnError, match="half a character"):
        Boolean(true="\ud800", false="n")
    with pytest.raises(ColumnError, match="cannot be read back"):
        Date("2020-01-01", "2021-01-01", format="%d%d.%m.%Y")


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

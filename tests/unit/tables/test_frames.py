"""Dataframes: the same kind comes out, with the types that came in, and no value decides a type or raises."""

import copy
import datetime as dt
import pickle
import warnings
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from privmeasure import Synthesizer
from privmeasure.errors import ArgumentError, DataError, SchemaError
from privmeasure.tables import Boolean, Category, Date, Datetime, Drop, Integer, Layout, Number, Schema, Time
from privmeasure.tables.frames import from_arrow, to_arrow
from privmeasure.tables.persons import read_ids

SECRET = "secretvalue"

PANDAS = {
    "int64": pd.Series([1, 2]),
    "int8": pd.Series([1, 2], dtype="int8"),
    "uint32": pd.Series([1, 2], dtype="uint32"),
    "float64": pd.Series([0.5, np.nan]),
    "float32": pd.Series([0.5, 1.5], dtype="float32"),
    "bool": pd.Series([True, False]),
    "object": pd.Series(["x", None], dtype=object),
    "str": pd.Series(["x", "y"]),
    "string": pd.Series(["x", None], dtype="string"),
    "category": pd.Series(pd.Categorical(["u", "v"], ["v", "u"])),
    "ordered": pd.Series(pd.Categorical(["u", "v"], ["v", "u"], ordered=True)),
    "Int64": pd.Series([1, None], dtype="Int64"),
    "boolean": pd.Series([True, None], dtype="boolean"),
    "arrow": pd.Series([1, None], dtype="int64[pyarrow]"),
    "naive": pd.Series(pd.to_datetime(["2020-01-01", None])),
    "nanoseconds": pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])).dt.as_unit("ns"),
    "zoned": pd.Series(pd.to_datetime(["2020-01-01", "2020-07-01"]).tz_localize("Europe/Berlin")),
}


def test_pandas_types_come_back():
    frame = pd.DataFrame(PANDAS)
    table, kind = to_arrow(frame)
    back = from_arrow(pa.Table.from_arrays(table.columns, names=table.column_names), kind)  # without pandas' own notes
    assert str(kind) == "pandas"
    assert back.dtypes.to_dict() == frame.dtypes.to_dict()
    pd.testing.assert_frame_equal(back, frame)


DATED = {
    "day": [dt.date(2020, 1, 2), None] * 200,
    "text": ["03.04.2020", "05.06.2020"] * 200,
    "when": ["2020-02-03T04:05:06", None] * 200,
    "clock": [dt.time(1, 2, 3), dt.time(4, 5, 6)] * 200,
}
"""Dates in the forms that Python objects have."""
DATED_SCHEMA = Schema(
    {
        "day": Date("2020-01-01", "2020-12-31", nullable=True),
        "text": Date("2020-01-01", "2020-12-31", format="%d.%m.%Y"),
        "when": Datetime("2020-01-01", "2021-01-01", nullable=True),
        "clock": Time(),
    }
)


def _dated_files(folder):
    frame = pd.DataFrame(DATED)
    frame.to_csv(folder / "d.csv", index=False)
    pa.parquet.write_table(pa.table(DATED), folder / "d.parquet")
    texts = frame.astype({"day": "category", "text": "str", "when": "string"})
    return [frame, texts, frame.assign(day=pd.to_datetime(frame["day"])), folder / "d.csv", folder / "d.parquet"]


@pytest.mark.parametrize("form", range(5), ids=["objects", "texts", "datetime64", "csv", "parquet"])
def test_dates_in_pandas_are_datetime64_whatever_they_came_from(form, tmp_path):
    release = Synthesizer(DATED_SCHEMA, epsilon=9, neighbours="replace").fit(_dated_files(tmp_path)[form]).release_
    made = release.sample(60, seed=1, frame="pandas")
    assert [made[name].dtype.kind for name in DATED] == ["M", "M", "M", "O"]
    assert made["text"].dt.year.eq(2020).all()
    assert made["day"].isna().any()
    assert set(map(type, made["clock"])) == {dt.time}
    plain = release.sample(60, seed=1)  # the same rows as Arrow has them
    texts = plain["text"].to_pylist()
    known = texts if isinstance(texts[0], str) else [f"{day:%d.%m.%Y}" for day in texts]
    assert list(made["text"].dt.strftime("%d.%m.%Y")) == known


def test_a_frame_of_arrow_types_keeps_its_dates():
    day = pd.Series([dt.date(2020, 1, 2), None] * 200, dtype=pd.ArrowDtype(pa.date32()))
    schema = Schema({"day": Date("2020-01-01", "2020-12-31", nullable=True)})
    made = Synthesizer(schema, epsilon=9, neighbours="replace").fit(pd.DataFrame({"day": day})).sample(20)
    assert made["day"].dtype == day.dtype


def test_an_index_of_pandas_without_a_name_stays_behind_with_a_word():
    frame = pd.DataFrame({"a": [1, 2, 3]}, index=pd.Index(["anna", SECRET, "carl"]))
    with pytest.warns(UserWarning, match="has no name and was left behind") as told:
        table, kind = to_arrow(frame.iloc[::-1])
    assert SECRET not in str(told[0].message)
    assert table.column_names == ["a"]
    assert table["a"].to_pylist() == [3, 2, 1]
    assert SECRET not in str(table.schema)
    assert from_arrow(table, kind).index.equals(pd.RangeIndex(3))


@pytest.mark.parametrize("index", [pd.RangeIndex(3), pd.RangeIndex(0, 6, 2), pd.Index([5, 1, 9]), pd.Index([0, 2, 4])])
def test_numbers_of_rows_are_left_behind_alike(index):
    """Whether pandas keeps them as a range depends on which rows there are: nobody may see it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table, _ = to_arrow(pd.DataFrame({"a": [1, 2, 3]}, index=index))
    assert table.column_names == ["a"]


def test_an_index_with_a_name_is_a_column_and_comes_out_as_an_index():
    index = pd.MultiIndex.from_arrays([["x", "y", "x"], [1, 2, 3]], names=["kind", 7])
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5]}, index=index)
    table, kind = to_arrow(frame)
    assert table.column_names == ["kind", "7", "a"]
    again = from_arrow(table, kind)
    assert list(again.index.names) == ["kind", 7]
    assert again.reset_index().equals(frame.reset_index())
    schema = Schema({"a": Number(0, 5)})
    with pytest.raises(SchemaError, match="column 'kind', which the schema does not declare"):
        schema.check(table.column_names, kind.types)
    with pytest.raises(DataError, match="several columns named 'a'"):
        to_arrow(frame["a"].rename_axis(["a", "b"]).to_frame())
    dropped = Schema({"kind": Drop(), "7": Integer(0, 9), "a": Number(0, 5)})
    made = Synthesizer(dropped, epsilon=9, neighbours="replace").fit(frame).sample(4)
    assert list(made.index.names) == [7]
    assert list(made.columns) == ["a"]


def test_decimals_and_durations_come_out_as_they_were():
    wait = pd.Series(pd.to_timedelta([90, 5400, None], unit="s"))
    cost = pd.Series([Decimal("1.50"), Decimal("99.95"), None], dtype=pd.ArrowDtype(pa.decimal128(8, 2)))
    frame = pd.DataFrame({"wait": wait, "cost": cost})
    schema = Schema({"wait": Number(0, 7200, nullable=True), "cost": Number(0, 100, nullable=True)})
    points = schema.encode(to_arrow(frame)[0])
    assert np.array_equal(points, [[90, 1.5], [5400, 99.95], [np.nan, np.nan]], equal_nan=True)
    made = Synthesizer(schema, epsilon=9, neighbours="replace").fit(frame).sample(200)
    assert list(made.dtypes) == list(frame.dtypes)
    assert made["wait"].dropna().between(pd.Timedelta(0), pd.Timedelta("2h")).all()
    for kind in ("wait", "cost"):
        assert made[kind].notna().any()


def test_objects_say_nothing_of_their_type_so_that_decimals_among_them_come_out_as_floats():
    frame = pd.DataFrame({"cost": pd.Series([Decimal("1.50"), Decimal("99.95")] * 300, dtype=object)})
    schema = Schema({"cost": Number(0, 100, decimals=2)})
    made = Synthesizer(schema, epsilon=1, neighbours="replace").fit(frame, insecure_seed=1).sample(seed=1)
    assert made["cost"].dtype == object
    assert {type(cell) for cell in made["cost"]} == {float}  # docs/schema.md: an Arrow type would say it


def test_labels_of_pandas_that_are_no_text_come_back():
    table, kind = to_arrow(pd.DataFrame({7: [1], "b": [2]}))
    assert table.column_names == ["7", "b"]
    assert list(from_arrow(table, kind).columns) == [7, "b"]
    assert list(from_arrow(table.select(["b"]), kind).columns) == ["b"]


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        (["x", None, float("nan"), pd.NA], ["x", None, None, None]),
        ([1, "x", 2.5, True], ["1", "x", "2.5", "True"]),
        ([dt.date(2020, 1, 31), None], ["2020-01-31", None]),
        ([None, None], [None, None]),
    ],
)
def test_objects_are_text_whatever_they_are(cells, texts):
    table, kind = to_arrow(pd.DataFrame({"a": pd.Series(cells, dtype=object)}))
    assert table["a"].to_pylist() == texts
    assert table.schema.types == [pa.large_string()]
    assert kind.types == (None,)


@pytest.mark.parametrize("dtype", [object, pd.StringDtype("python")])
def test_halves_of_characters_are_no_text_and_stay_apart_as_ids(dtype):
    cells = ["\ud800", "\ud801", "?", "\ufffd", "x", "\ud800"]
    table, _ = to_arrow(pd.DataFrame({"a": pd.Series(cells, dtype=object).astype(dtype)}))
    ids = read_ids(table["a"]).to_pylist()
    assert ids[0] == ids[-1]
    assert len(set(ids)) == 5
    schema = Schema({"a": Category(["?", "x"], nullable=True)})
    np.testing.assert_array_equal(schema.encode(table)[:, 0], [np.nan, np.nan, 0, np.nan, 1, np.nan])


def test_an_object_that_cannot_be_shown_is_missing():
    class Odd:
        def __str__(self):
            raise ValueError(SECRET)

    table, _ = to_arrow(pd.DataFrame({"a": pd.Series([Odd(), "x"], dtype=object)}))
    assert table["a"].to_pylist() == [None, "x"]


UNLIKE_NUMBERS = {
    "c": Category(["a", "b"], nullable=True),
    "d": Date("2020-01-01", "2021-01-01", nullable=True),
    "t": Time(nullable=True),
    "z": Datetime("2020-01-01", "2021-01-01", nullable=True),
}


@pytest.mark.parametrize("name", UNLIKE_NUMBERS)
@pytest.mark.parametrize("cells", [[], [np.nan, np.nan], [np.nan, 5.0]], ids=["none", "missing", "a number"])
def test_float64_of_pandas_contradicts_nothing(name, cells):
    """It is what pandas calls a column without a value; whether it holds a number is private, and may not raise."""
    schema = Schema({name: UNLIKE_NUMBERS[name]})
    table, kind = to_arrow(pd.DataFrame({name: pd.Series(cells, dtype="float64")}))
    schema.check(table.column_names, kind.types)
    assert np.isnan(schema.encode(table)).all() or name == "c"
    layout = Layout.of(schema, table.column_names, kind.types)
    points = np.array([[1.0], [np.nan]])
    back = from_arrow(schema.decode(points, layout), kind)[name]  # cells that float64 cannot hold
    assert back.isna().tolist() == [False, True]
    with pytest.raises(SchemaError):  # integers are what they are
        schema.check([name], to_arrow(pd.DataFrame({name: pd.Series([5])}))[1].types)


def test_numbers_go_back_into_float64():
    schema = Schema(
        {"i": Integer(0, 9, nullable=True), "code": Category(["1", "2"]), "b": Boolean(), "x": Number(0, 1, decimals=1)}
    )
    frame = pd.DataFrame({"i": [1.0, np.nan], "code": [2.0, 1.0], "b": [1.0, 0.0], "x": [0.5, 0.1]})
    table, kind = to_arrow(frame)
    layout = Layout.of(schema, table.column_names, kind.types)
    pd.testing.assert_frame_equal(from_arrow(schema.decode(schema.encode(table), layout), kind), frame)


def test_integers_that_now_may_be_missing_become_floats():
    _, kind = to_arrow(pd.DataFrame({"a": [1, 2]}))
    assert from_arrow(pa.table({"a": [1, None]}), kind)["a"].dtype == np.float64


POLARS = pl.DataFrame(
    {
        "i": pl.Series([1, 2], dtype=pl.Int8),
        "u": pl.Series([1, None], dtype=pl.UInt64),
        "f": pl.Series([0.5, 1.5], dtype=pl.Float32),
        "s": ["a", None],
        "c": pl.Series(["a", "b"], dtype=pl.Categorical),
        "e": pl.Series(["b", "a"], dtype=pl.Enum(["a", "b"])),
        "b": [True, None],
        "d": [dt.date(2020, 1, 1), None],
        "t": [dt.time(1, 2, 3), None],
        "m": pl.Series([dt.datetime(2020, 1, 1)] * 2, dtype=pl.Datetime("ms")),
        "z": pl.Series([dt.datetime(2020, 1, 1)] * 2, dtype=pl.Datetime("us", "Europe/Berlin")),
        "x": pl.Series([1, 2], dtype=pl.Decimal(10, 2)),
    }
)


@pytest.mark.parametrize("lazy", [False, True])
def test_polars_types_come_back(lazy):
    table, kind = to_arrow(POLARS.lazy() if lazy else POLARS)
    back = from_arrow(pa.Table.from_arrays(table.columns, names=table.column_names), kind)
    assert str(kind) == "polars"
    assert back.schema == POLARS.schema
    assert back.equals(POLARS)


def test_pyarrow_stays_as_it_is():
    table = pa.table({"a": pa.array(["x", "y"]).dictionary_encode(), "b": pa.array([1, 2], pa.uint8())})
    back, kind = to_arrow(table)
    assert back.equals(table)
    assert from_arrow(back, kind) is back
    assert to_arrow(table.to_batches()[0])[0].equals(table)
    assert to_arrow(nw.from_native(table))[0].equals(table)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_kind_may_be_a_name(library):
    table = pa.table({"a": [1, 2]})
    assert str(to_arrow(from_arrow(table, library))[1]) == library
    with pytest.raises(ArgumentError, match="'pandas', 'polars', 'pyarrow', got 'excel'"):
        from_arrow(table, "excel")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ([[SECRET]], "object of type list"),
        ({"a": [SECRET]}, "object of type dict"),
        (np.array([SECRET]), "object of type ndarray"),
        (pd.Series([SECRET]), "object of type Series"),
        (pd.DataFrame([[SECRET, 1]], columns=["a", "a"]), "several columns named 'a'"),
        (pd.DataFrame([[SECRET, 1]], columns=["1", 1]), "several columns named '1'"),
        (pa.table([[SECRET], [1]], names=["a", "a"]), "several columns named 'a'"),
        (pd.DataFrame([[SECRET]], columns=pd.MultiIndex.from_tuples([("a", "b")])), "several levels"),
        (pd.DataFrame({"a": [1j]}), "Column 'a' has the type complex128"),
        (pd.DataFrame({"a": pd.period_range("2020", periods=2, freq="D")}), "Column 'a' has the type period"),
    ],
)
def test_what_is_no_table_is_refused_by_its_type(frame, words):
    with pytest.raises(DataError) as caught:
        to_arrow(frame)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_categories_that_occur_do_not_reach_the_types():
    """Neither the categories of a column nor how many of them there are: both depend on its values."""
    few = pd.DataFrame({"a": pd.Categorical([SECRET])})
    many = pd.DataFrame({"a": pd.Categorical([str(i) for i in range(1000)])})
    kinds = [to_arrow(frame)[1] for frame in (few, many)]
    assert kinds[0] == kinds[1]
    assert SECRET not in repr(kinds[0])
    kinds = [to_arrow(pl.from_pandas(frame))[1] for frame in (few, many)]
    assert kinds[0] == kinds[1]
    schema = Schema({"a": Category(["a", "b"])})  # a table of Arrow, or a Parquet file, made from pandas
    tables = [pa.Table.from_pandas(frame) for frame in (few, many)]
    assert tables[0].schema.types != tables[1].schema.types
    layouts = [Layout.of(schema, table.column_names, table.schema.types) for table in tables]
    assert layouts[0] == layouts[1]


def test_schemas_are_copied_and_pickled():
    assert copy.deepcopy(DECLARED) == DECLARED
    assert pickle.loads(pickle.dumps(DECLARED)) == DECLARED


DECLARED = Schema(
    {
        "n": Number(0, 10, nullable=True),
        "i": Integer(0, 99),
        "c": Category(["a", "b", "c"]),
        "b": Boolean(),
        "d": Date(dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
        "t": Time(),
        "z": Datetime(dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)),
    }
)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_types_survive_encoding_and_decoding(library):
    frame = pl.DataFrame(
        {
            "n": pl.Series([1.5, None], dtype=pl.Float32),
            "i": pl.Series([1, 2], dtype=pl.Int16),
            "c": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b", "c"])),
            "b": [True, False],
            "d": [dt.date(2020, 2, 29)] * 2,
            "t": [dt.time(1, 2, 3)] * 2,
            "z": [dt.datetime(2020, 6, 1, 12)] * 2,
        }
    )
    frame = {"pandas": frame.to_pandas, "pyarrow": frame.to_arrow, "polars": frame.clone}[library]()
    table, kind = to_arrow(frame)
    DECLARED.check(table.column_names, kind.types)
    layout = Layout.of(DECLARED, table.column_names, kind.types)
    back = from_arrow(DECLARED.decode(DECLARED.encode(table), layout), kind)
    if library == "pandas":
        categories = pd.CategoricalDtype(["a", "b", "c"], ordered=frame["c"].dtype.ordered)
        pd.testing.assert_frame_equal(back, frame.astype({"c": categories}))
    elif library == "polars":
        assert back.schema == frame.schema
        assert back.equals(frame)
    else:
        assert back.to_pydict() == frame.to_pydict()

"""Schema files and objects: errors by line, round trips, the structure of tables."""

# ruff: noqa: E501 (messages stand on one line, as they are told)

import json
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmeasure.domains import Product
from privmeasure.errors import ArgumentError, DataError, ReleaseFileError, SchemaError
from privmeasure.sources.changes import count_changes
from privmeasure.tables import (
    Boolean,
    Category,
    Constant,
    Date,
    Datetime,
    Drop,
    Integer,
    Layout,
    Number,
    Place,
    Schema,
    Time,
)
from privmeasure.tables.advice import schema_advice as advice
from privmeasure.tables.toml import key_lines

EVERYTHING = Schema(
    {
        "id": Drop(),
        "age": Integer(17, 90, nullable=True, unit="year", weight=2),
        "income": Number(0, 1e6, breaks=[1e3, 1e4, 1e5], decimals=2),
        "wealth": Number(1, 1e9, transform="log"),
        'odd "name" \\ \n\x7f ü 北京': Category(["F", "M", "", 'a"b', "\t\x00\x7f", "北京"], unknown="M"),
        "size": Category([1, 2, 3.5], ordered=True),
        "food": Category(
            ["apple", "cod", "pear", "eel"],
            taxonomy={"fruit": ["apple", "pear"], "fish": {"white": ["cod"], "oily one": ["eel"]}},
            diameters=(0.6, 0.2),
        ),
        "smoker": Boolean(true=["yes", "y"], false="no"),
        "plain": Boolean(nullable=True),
        "born": Date("1900-01-01", "2020-12-31", format="%d.%m.%Y"),
        "seen": Datetime("2020-01-01", "2021-01-01T12:00:00.5", resolution="1ms", timezone="Europe/Berlin"),
        "sent": Datetime("2020-01-01T00:00:00+02:00", "2021-01-01T00:00:00Z"),
        "slot": Time(resolution="15min"),
        "home": Place("lat", "lon", low=(45, 5.5), high=(48, 11), decimals=3),
        "where": Place("y", "x"),
        "country": Constant("CH"),
        "edition": Constant(1.0),
    },
    groups=[["age", "income"], ["food", "smoker", "home"]],
    never=["age < 18 and smoker"],
)


def test_toml_and_json_are_inverse_to_each_other():
    assert Schema.from_text(EVERYTHING.to_toml()) == EVERYTHING
    assert Schema.from_json(EVERYTHING.to_json()) == EVERYTHING
    header = json.loads(json.dumps(EVERYTHING.to_json(), sort_keys=True))  # as a release file keeps it
    assert Schema.from_json(header) == EVERYTHING
    assert list(Schema.from_json(header).columns) == list(EVERYTHING.columns)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(), st.lists(st.text(), min_size=1, max_size=40, unique=True), min_size=1, max_size=5))
def test_any_unicode_survives_toml(columns):
    schema = Schema({name: Category(values) for name, values in columns.items()})
    assert Schema.from_text(schema.to_toml()) == schema


def test_domain_is_the_product_of_the_data_columns_with_their_weights():
    assert isinstance(EVERYTHING.domain, Product)
    assert len(EVERYTHING.domain.factors) == len(EVERYTHING.data) == 14
    assert EVERYTHING.domain.weights[0] == 2
    assert isinstance(Schema({"a": Integer(0, 1)}).domain, Product)


TEXT = """\
format = 1
# a comment with [brackets] and = signs

[columns.age]
type = "integer"
{age}

[columns."odd name"]
type = "category"
values = [
  "F",   # "quoted ] bracket"
  "M",
]
{odd}
[columns]
short = {{ type = "number", low = 0, high = {high} }}
dotted.type = "boolean"
{top}
"""
FINE = {"age": "low = 17\nhigh = 90", "odd": "", "high": "1", "top": ""}


def problem(**changes: str) -> str:
    with pytest.raises(SchemaError) as caught:
        Schema.from_text(TEXT.format(**(FINE | changes)), "people.toml")
    return str(caught.value)


def test_the_file_as_such_is_fine():
    assert list(Schema.from_text(TEXT.format(**FINE)).columns) == ["age", "odd name", "short", "dotted"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"age": "low = 90\nhigh = 17"}, "people.toml, line 6: column 'age' has low = 90 and high = 17; low must be below high. Swap them."),
        ({"age": "low = 5\nhigh = 5"}, "people.toml, line 6: column 'age' has low = high = 5"),
        ({"age": "low = 5\nheigh = 7"}, "people.toml, line 7: column 'age' has an unknown field 'heigh'. Did you mean 'high'?"),
        ({"age": "low = 5"}, "people.toml, line 4: column 'age' has no high. Add the largest value"),
        ({"age": 'low = "?"\nhigh = "?"'}, "people.toml, line 6: column 'age' still has to be filled in: low, high."),
        ({"age": "low = 0.5\nhigh = 7"}, "people.toml, line 6: column 'age' has low = 0.5; it must be a whole number"),
        ({"age": "low = 0\nhigh = 1e300"}, "people.toml, line 7: column 'age' has high = 1e+300; it must be a whole number"),
        ({"age": "low = 0\nhigh = 9007199254740993"}, "people.toml, line 7: column 'age' has high = 9007199254740993, beyond 2^53"),
        ({"odd": 'unknown = "f"'}, "people.toml, line 15: column 'odd name' has unknown = 'f', which is not one of its values. Did you mean 'F'?"),
        ({"odd": "nullable = 1"}, "people.toml, line 15: column 'odd name' has nullable = 1; it must be true or false"),
        ({"high": '"x"'}, "people.toml, line 17: column 'short' has high = 'x'; it must be a number, got text."),
        ({"high": "nan"}, "people.toml, line 17: column 'short' has high = nan; it must be finite."),
        ({"high": "-1"}, "people.toml, line 17: column 'short' has low = 0 and high = -1"),
        ({"top": "[colums.x]"}, "people.toml, line 19: 'colums' is unknown. Did you mean 'columns'?"),
        ({"top": "[age]"}, "people.toml, line 19: 'age' is unknown. Columns are declared as [columns.NAME]."),
        ({"top": "[[group]]\ncolumns = ['age', 'shrt']"}, "people.toml, line 19: a group names 'shrt', which is no column of the schema. Did you mean 'short'?"),
        ({"top": "[[group]]\ncolumns = ['age']"}, "people.toml, line 19: a group needs at least two different columns."),
        ({"top": "[columns.here]\ntype = 'place'\nlatitude = 'age'\nlongitude = 'x'"}, "people.toml, line 19: column 'here' reads the file's column 'age', which column 'age' reads already."),
        ({"top": "x = ["}, "people.toml, the last line: this is not TOML"),
        ({"age": "low = 1\nlow = 2"}, "people.toml, line 7: this is not TOML: Cannot overwrite a value. A key or a table stands there twice."),
        ({"top": "[columns.t]\ntype = 'intger'"}, "people.toml, line 20: column 't' has type = 'intger', which is unknown. Did you mean 'integer'?"),
    ],
)  # fmt: skip
def test_errors_tell_line_column_and_what_to_do(changes, expected):
    assert problem(**changes).startswith(expected)


def test_all_problems_are_told_at_once():
    text = problem(age="low = 9\nhigh = 1", high='"x"')
    assert [line.split(":")[0] for line in text.splitlines()] == ["people.toml, line 6", "people.toml, line 17"]


def test_lines_of_keys_behind_strings_arrays_and_dotted_keys():
    text = 'a = """\nb = 1\n"""\nc = [\n 1, # ]\n]\n[[t]]\nx = 1\n[[t]]\nx = 2\nd."e.f" = \'\'\'\n\'\'\'\ng = {h = 1}'
    lines = key_lines(text)
    assert lines[("a",)] == 1
    assert ("b",) not in lines
    assert lines[("c",)] == 4
    assert lines[("t", "1", "x")] == 10
    assert lines[("t", "1", "d", "e.f")] == 11
    assert lines[("t", "1", "g", "h")] == 13


@pytest.mark.parametrize(
    "text",
    ["", "format = 2\n[columns.a]\ntype='drop'", "columns = 3", "format = 1\n[columns]", "format = 1\ncolumns = 3"],
)
def test_files_that_are_no_schema(text):
    with pytest.raises(SchemaError, match=r"schema, line [12]: "):
        Schema.from_text(text)


def test_reading_from_a_path(tmp_path):
    path = tmp_path / "people.toml"
    path.write_text("\ufeff" + EVERYTHING.to_toml(), encoding="utf-8")
    assert Schema.from_toml(path) == EVERYTHING
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="not a text in UTF-8"):
        Schema.from_toml(path)
    with pytest.raises(FileNotFoundError):
        Schema.from_toml(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    "value",
    [
        3, {}, {"format": 1}, {"format": 9, "columns": []}, {"format": 1, "columns": []}, {"format": 1, "columns": [3]},
        {"format": 1, "columns": [{"type": "drop"}]}, {"format": 1, "columns": [{"name": "a", "type": "x"}]},
        {"format": 1, "columns": [{"name": "a", "type": "boolean"}] * 2},
        {"format": 1, "columns": [{"name": "a", "type": "boolean"}], "groups": 3},
        {"format": 1, "columns": [{"name": "a", "type": "boolean"}], "groups": [[3]]},
        {"format": 1, "columns": [{"name": "a", "type": "boolean"}], "never": [3]},
    ],
)  # fmt: skip
def test_edited_json_is_a_schema_error(value):
    with pytest.raises(SchemaError):
        Schema.from_json(value)


SMALL = Schema({"age": Integer(0, 120), "sex": Category(["F", "M"]), "name": Drop()})


def test_a_table_that_fits_is_accepted_in_any_order():
    SMALL.check(["name", "age", "sex"], None)
    SMALL.check(["name", "age", "sex"], [pa.binary(), pa.float32(), pa.dictionary(pa.int8(), pa.string())])
    SMALL.check(["name", "age", "sex"], [pa.null()] * 3)  # the type of a column of nulls tells about values


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["age", "sex"], "The table has no column 'name', which the schema declares. Correct the name"),
        (["age", "sx", "name"], "The table has no column 'sex', which the schema declares. Did you mean 'sx'?"),
        (["age", "sex", "name", "pin"], "The table has a column 'pin', which the schema does not declare. Declare it, with type = \"drop\""),
    ],
)  # fmt: skip
def test_missing_and_extra_columns(names, expected):
    with pytest.raises(SchemaError) as caught:
        SMALL.check(names, None)
    assert str(caught.value).startswith(expected)


def test_duplicate_headers_and_many_problems():
    with pytest.raises(DataError, match="more than one column named 'age'"):
        SMALL.check(["age", "age", "sex", "name"], None)
    with pytest.raises(SchemaError) as caught:
        SMALL.check(["age", *(f"c{i}" for i in range(1000))], None)
    assert len(caught.value.problems) == 21


@pytest.mark.parametrize("names", [["31", "F"], ["canary", "canary"], ["canary;F"], ["ward", "canary"], ["Age", "Sex"]])
def test_where_no_declared_column_is_there_nothing_of_the_first_line_is_shown(names):
    schema = Schema({**SMALL.columns, "ward": Category(["A", "B"])})
    for types in (None, [pa.string()] * len(names)):
        with pytest.raises(SchemaError, match="Does the file have a header") as caught:
            schema.check(names, types, by_folders=["ward"])
        told = str(caught.value)
        assert not any(name in told for name in ("31", "canary", "Age", "Sex"))
        assert "'age', 'sex'" in told
        assert ("Is the delimiter ';'?" in told) == (len(names) == 1)


@pytest.mark.parametrize(
    ("column", "type", "expected"),
    [
        (Integer(0, 1), pa.string(), "column 'x' must be numeric, got text. Cast it, or declare it as a category."),
        (Number(0, 1), pa.dictionary(pa.int8(), pa.string()), "column 'x' must be numeric, got text."),
        (Number(0, 1), pa.bool_(), "column 'x' must be numeric, got true/false. Cast it, or declare it as boolean."),
        (Category(["a"]), pa.int64(), "column 'x' is a category with values that whole numbers cannot hold"),
        (Category(["1", "other"]), pa.float64(), "column 'x' is a category with values that numbers cannot hold"),
        (Category(["a"]), pa.list_(pa.string()), "column 'x' must hold text or numbers to be a category, got lists or records."),
        (Boolean(), pa.date32(), "column 'x' must be true or false, got dates."),
        (Date("2020-01-01", "2020-01-02"), pa.int64(), "column 'x' must be dates or text, got whole numbers."),
        (Datetime("2020-01-01", "2020-01-02"), pa.time32("s"), "column 'x' must be dates with times or text, got times of day."),
        (Time(), pa.timestamp("s"), "column 'x' must be times of day or text, got dates with times."),
        (Constant("a"), pa.int64(), "column 'x' is declared constant with a value that whole numbers cannot hold."),
    ],
)  # fmt: skip
def test_contradicted_types(column, type, expected):
    schema = Schema({"x": column, "y": Boolean()})
    with pytest.raises(SchemaError) as caught:
        schema.check(["x", "y"], [type, pa.bool_()])
    assert str(caught.value).startswith(expected)


def test_encode_and_decode_keep_order_names_and_types():
    table = pa.table(
        {
            "lon": pa.array([7.0, 8.0], pa.float32()),
            "id": ["a", "b"],
            "sex": pa.array(["M", "F"]).dictionary_encode(),
            "lat": pa.array([46, 47], pa.int16()),
            "age": pa.array([3, None], pa.uint8()),
            "k": pa.array([1, 2], pa.int8()),
        }
    )
    schema = Schema(
        {
            "age": Integer(0, 100, nullable=True),
            "id": Drop(),
            "home": Place("lat", "lon", low=(45, 5), high=(48, 11)),
            "sex": Category(["F", "M"]),
            "k": Constant(1),
        }
    )
    schema.check(table.column_names, table.schema.types)
    layout = Layout.of(schema, table.column_names, table.schema.types)
    assert Layout.from_json(json.loads(json.dumps(layout.to_json()))) == layout
    points = schema.encode(table)
    assert np.array_equal(points, [[3, 7, 46, 1], [np.nan, 8, 47, 0]], equal_nan=True)
    back = schema.decode(points, layout)
    assert back.schema == table.drop_columns("id").schema
    assert back.drop_columns("k").to_pydict() == table.drop_columns(["id", "k"]).to_pydict()
    assert back["k"].to_pylist() == [1, 1]
    batches = table.to_batches(max_chunksize=1)
    assert np.array_equal(np.concatenate([schema.encode(b) for b in batches]), points, equal_nan=True)
    assert schema.encode(table.slice(0, 0)).shape == (0, 4)
    assert schema.decode(np.empty((0, 4)), layout).schema == back.schema
    natural = schema.decode(points, Layout.natural(schema))
    assert natural.column_names == ["age", "lat", "lon", "sex", "k"]


TYPES = [
    pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(),
    pa.string_view(), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.timestamp("us"),
    pa.timestamp("ns", "America/New_York"), pa.timestamp("s", "+05:30"), pa.decimal128(10, 2), pa.decimal256(50, -3),
    pa.dictionary(pa.uint32(), pa.large_string(), ordered=True), pa.dictionary(pa.int8(), pa.timestamp("s", "UTC")),
    pa.run_end_encoded(pa.int32(), pa.string()),
]  # fmt: skip


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_types_survive_json(type):
    layout = Layout(("x",), (type,))
    assert Layout.from_json(layout.to_json()) == layout


@pytest.mark.parametrize(
    "value",
    [
        3,
        {},
        {"names": ["a"], "types": []},
        {"names": [3], "types": [None]},
        {"names": ["a"], "types": ["int65"]},
        {"names": ["a"], "types": [{}]},
    ],
)
def test_edited_layouts_are_refused(value):
    with pytest.raises(ReleaseFileError):
        Layout.from_json(value)


def test_a_layout_of_another_schema_is_refused():
    layout = Layout(("age",), (None,))
    with pytest.raises(SchemaError, match="not in the layout"):
        SMALL.decode(np.zeros((1, 2)), layout)
    with pytest.raises(SchemaError, match="does not write"):
        SMALL.decode(np.zeros((1, 2)), Layout(("age", "sex", "more"), (None,) * 3))
    with pytest.raises(SchemaError, match="storage type"):
        Schema({"a": Category(["x"])}).decode(np.zeros((1, 1)), Layout(("a",), (pa.int64(),)))


def test_only_drops_the_others():
    small = EVERYTHING.only(["age", "income"])
    assert list(small.data) == ["age", "income"]
    assert set(small.sources) == set(EVERYTHING.sources)
    assert small.groups == (("age", "income"),)
    with pytest.raises(ArgumentError, match="Did you mean 'age'"):
        EVERYTHING.only(["agee"])


@pytest.mark.parametrize(
    ("columns", "keywords"),
    [
        ({}, {}), ({"a": Drop()}, {}), ({"a": 3}, {}), ({3: Boolean()}, {}), ([], {}),
        ({"a": Boolean()}, {"groups": [["a", "b"]]}), ({"a": Boolean(), "b": Drop()}, {"groups": [["a", "b"]]}),
    ],
)  # fmt: skip
def test_schemas_that_cannot_be(columns, keywords):
    with pytest.raises(SchemaError):
        Schema(columns, **keywords)


def test_changes_are_counted_and_kept_confidential():
    schema = Schema({"age": Integer(0, 100), "sex": Category(["F", "M"]), "home": Place("a", "b"), "x": Drop()})
    table = pa.table(
        {
            "age": ["1", "x", "", None, "200"],
            "sex": ["F", "X", None, "M", ""],
            "a": [1.0, 95, None, 3, 4],
            "b": [1.0, 2, 3, 400, 5],
            "x": [1] * 5,
        }
    )
    changes = count_changes(schema, table.to_batches(max_chunksize=2))
    found = changes.to_json()
    assert found["rows"] == 5
    assert found["columns"]["age"] == {"missing": 2, "unparsed": 1, "clamped": 1, "unknown": 0}
    assert found["columns"]["sex"] == {"missing": 1, "unparsed": 0, "clamped": 0, "unknown": 2}
    assert found["columns"]["home"] == {"missing": 1, "unparsed": 0, "clamped": 1, "unknown": 0}
    assert found["confidential"].startswith("CONFIDENTIAL")
    assert repr(changes) == "ConfidentialChanges(...)"
    assert len(advice(schema)) == 1


def test_json_schema_fits_what_is_written():
    found = Schema.json_schema()
    assert found["$defs"]["Column"]["properties"]["type"]["enum"][:2] == ["number", "integer"]
    for column in EVERYTHING.to_json()["columns"]:
        kind = next(
            k
            for k in found["$defs"].values()
            if column["type"] in k["properties"]["type"].get("enum", []) and "allOf" not in k
        )
        assert set(column) - {"name"} <= set(kind["properties"])
        assert set(kind["required"]) <= set(column)
    assert "null" not in json.dumps(found).replace('"nullable"', "")
    json.dumps(found)


def test_a_million_categories():
    start = time.process_time()
    column = Category([f"value {i}" for i in range(10**6)])
    assert column.domain.size(20) == 10**6
    points = column.encode([pa.array(["value 999999", "value 0", "x"])])
    assert points[:, 0].tolist() == [999999, 0, 0]
    assert column.decode(points, [None])[0].to_pylist() == ["value 999999", "value 0", "value 0"]
    assert time.process_time() - start < 10  # about 1 s on a free machine
    with pytest.raises(SchemaError, match="Group the rare ones"):
        Category([str(i) for i in range(2**20 + 1)])

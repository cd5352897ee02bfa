"""Templates: from names and storage types alone."""

import re

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privmeasure.errors import DataError, SchemaError
from privmeasure.tables import Category, Drop, Integer, Schema
from privmeasure.tables.template import template

TYPES = {
    "age": pa.int32(),
    "income": pa.float64(),
    "cost": pa.decimal128(10, 2),
    "sex": pa.string(),
    "kind": pa.dictionary(pa.int8(), pa.string()),
    "smoker": pa.bool_(),
    "born": pa.date32(),
    "seen": pa.timestamp("us", "UTC"),
    "at": pa.time64("us"),
    "blob": pa.binary(),
}


def test_every_gap_is_listed_by_line_and_once_filled_in_the_schema_fits():
    text = template(list(TYPES), list(TYPES.values()))
    with pytest.raises(SchemaError) as caught:
        Schema.from_text(text, "t.toml")
    assert len(caught.value.problems) == 10  # of all columns with data, and the advice
    assert caught.value.problems[9].endswith("`privmeasure schema edit t.toml` asks for all of it, one by one.")
    for told in caught.value.problems[:9]:
        line = int(re.search(r"line (\d+)", told)[1])
        assert text.splitlines()[line - 1].endswith('= "?"')
    for kind, low, high in (("date", "2000-01-01", "2020-01-01"), ("datetime", "2000-01-01", "2020-01-01")):
        text = re.sub(rf'(type = "{kind}"\n)low = "\?"\nhigh = "\?"', rf"\1low = {low}\nhigh = {high}", text)
    text = (
        text.replace('low = "?"', "low = 0").replace('high = "?"', "high = 9").replace('values = "?"', 'values = ["a"]')
    )
    with pytest.raises(SchemaError, match="nullable: true where"):
        Schema.from_text(text)
    schema = Schema.from_text(text.replace('nullable = "?"', "nullable = true"))
    schema.check(list(TYPES), list(TYPES.values()))


def test_without_types_the_kind_is_asked_for_and_whether_cells_may_be_missing():
    text = template(["a b", "ü"])
    assert "no value was looked at" in text
    with pytest.raises(SchemaError) as caught:
        Schema.from_text(text, "t.toml")
    assert len(caught.value.problems) == 3
    assert "one of number, integer, category" in str(caught.value)
    filled = text.replace('type = "?"', 'type = "boolean"').replace('nullable = "?"', "nullable = false", 1)
    with pytest.raises(SchemaError, match="column 'ü' still has to be filled in: nullable"):
        Schema.from_text(filled)
    filled = filled.replace('nullable = "?"', "nullable = true")
    assert [c.nullable for c in Schema.from_text(filled).columns.values()] == [False, True]


def test_of_a_column_without_data_nothing_is_to_be_decided():
    dropped = template(["a", "b"]).replace('type = "?"', 'type = "drop"', 1)
    kept = dropped.replace('type = "?"\nnullable = "?"', 'type = "boolean"\nnullable = false')
    assert list(Schema.from_text(kept).data) == ["b"]


def test_duplicate_names():
    with pytest.raises(SchemaError, match="'a'"):
        template(["a", "a"])


def frames(ages, sexes):
    pandas = pd.DataFrame({"age": ages, "x": [float(a) for a in ages], "sex": sexes, "who": ["a", "b"]})
    pandas["sex"] = pandas["sex"].astype("category")
    enum = pl.Enum(["F", "M", "X"])
    return (
        pandas,
        pl.DataFrame({"age": ages, "sex": sexes}, schema={"age": pl.Int8, "sex": enum}),
        pa.table({"a": ages}),
    )


def test_a_draft_of_a_frame_knows_its_types_and_none_of_its_values():
    for one, two in zip(frames([1, 2], ["F", "F"]), frames([7, 9], ["M", "X"]), strict=True):
        assert Schema.template(one) == Schema.template(two)
        assert Schema.template(one, guess=True) == Schema.template(two, guess=True)
    pandas, polars, arrow = (Schema.template(frame) for frame in frames([1, 2], ["F", "M"]))
    assert pandas.columns == {
        "age": {"type": "integer", "low": "?", "high": "?"},
        "x": {"type": "number", "low": "?", "high": "?"},
        "sex": {"type": "category", "values": "?"},
        "who": {"type": "category", "values": "?"},
    }
    assert "whole numbers" in pandas.notes["x"]
    assert polars.columns["sex"] == {"type": "category", "values": ["F", "M", "X"]}  # they belong to the type
    assert Schema.template(pl.DataFrame({"a": [1]}).lazy()).columns == arrow.columns
    assert repr(arrow) == arrow.to_toml()


def test_categories_of_pandas_are_values_unless_they_are_said_to_be_declared():
    frame, _, _ = frames([1, 2], ["F", "M"])
    assert "F" not in str(Schema.template(frame).columns)
    assert Schema.template(frame, declared_categories=True).columns["sex"] == {"type": "category", "values": ["F", "M"]}


def test_a_draft_is_completed_by_columns_and_by_fields():
    draft = Schema.template(pa.table({"age": [1], "sex": ["F"]}))
    columns = draft.complete({"age": {"low": 0, "high": 120}, "sex": Category(["F", "M"]), "id": Drop()})
    assert Schema(columns) == Schema({"age": Integer(0, 120), "sex": Category(["F", "M"]), "id": Drop()})
    with pytest.raises(SchemaError, match="column 'sex' still has to be filled in: values"):
        draft.complete({"age": {"low": 0, "high": 120}})
    with pytest.raises(DataError, match="must be a dataframe"):
        Schema.template(3)
    with pytest.raises(DataError, match="privmeasure schema init"):
        Schema.template("people.csv")

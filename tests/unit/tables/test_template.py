"""Templates: from names and storage types alone."""

import re

import pyarrow as pa
import pytest

from privmeasure.errors import SchemaError
from privmeasure.tables import Schema
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
    assert len(caught.value.problems) == 9  # of all columns with data
    for told in caught.value.problems:
        line = int(re.search(r"line (\d+)", told)[1])
        assert text.splitlines()[line - 1].endswith('= "?"')
    for kind, low, high in (("date", "2000-01-01", "2020-01-01"), ("datetime", "2000-01-01", "2020-01-01")):
        text = re.sub(rf'(type = "{kind}"\n)low = "\?"\nhigh = "\?"', rf"\1low = {low}\nhigh = {high}", text)
    text = (
        text.replace('low = "?"', "low = 0").replace('high = "?"', "high = 9").replace('values = "?"', 'values = ["a"]')
    )
    with pytest.raises(SchemaError, match=r"nullable \(true where"):
        Schema.from_text(text)
    schema = Schema.from_text(text.replace('nullable = "?"', "nullable = true"))
    schema.check(list(TYPES), list(TYPES.values()))


def test_without_types_the_kind_is_asked_for_and_whether_cells_may_be_missing():
    text = template(["a b", "ü"])
    assert "no value was looked at" in text
    with pytest.raises(SchemaError) as caught:
        Schema.from_text(text, "t.toml")
    assert len(caught.value.problems) == 2
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

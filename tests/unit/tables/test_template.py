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
    assert len(caught.value.problems) == 7
    for told in caught.value.problems:
        line = int(re.search(r"line (\d+)", told)[1])
        assert text.splitlines()[line - 1].endswith('= "?"')
    for kind, low, high in (("date", "2000-01-01", "2020-01-01"), ("datetime", "2000-01-01", "2020-01-01")):
        text = re.sub(rf'(type = "{kind}"\n)low = "\?"\nhigh = "\?"', rf"\1low = {low}\nhigh = {high}", text)
    text = (
        text.replace('low = "?"', "low = 0").replace('high = "?"', "high = 9").replace('values = "?"', 'values = ["a"]')
    )
    schema = Schema.from_text(text)
    schema.check(list(TYPES), list(TYPES.values()))


def test_without_types_only_the_kind_is_asked_for():
    text = template(["a b", "ü"])
    assert "no value was looked at" in text
    with pytest.raises(SchemaError) as caught:
        Schema.from_text(text, "t.toml")
    assert len(caught.value.problems) == 2
    assert "one of number, integer, category" in str(caught.value)
    filled = text.replace('type = "?"', 'type = "boolean"')
    assert list(Schema.from_text(filled).columns) == ["a b", "ü"]


def test_duplicate_names():
    with pytest.raises(SchemaError, match="'a'"):
        template(["a", "a"])

"""A schema as a form, and back: nothing is lost but comments, and nothing is guessed from values."""

import tomllib

import pytest

from privmeasure.app.forms import check_schema_text, needed_fields, read_form, to_form
from privmeasure.errors import SchemaError
from privmeasure.tables.columns.kinds import COLUMN_KINDS
from privmeasure.tables.schema import Schema

TEXT = """format = 2
person = "id"
target = "sex"
never = ["age < 18 and sex = 'M'"]

[columns.id]
type = "drop"

[columns.age]   # of a person
type = "integer"
low = 0
high = 120
unit = "year"
nullable = true

[columns.sex]
type = "category"
values = ["F", "M", "1"]
nullable = false

[columns.code]
type = "category"
values = ["1", "2"]
nullable = false

[columns.day]
type = "date"
low = 1900-01-01
high = 2029-12-31
nullable = true

[columns.rate]
type = "number"
low = 0.5
high = 1e6
breaks = [1.0, 10.0]
nullable = true

[[group]]
columns = ["age", "sex"]
"""


def typed(form, **changes):
    """Return a form as a browser sends it: line ends of two letters."""
    sent = {"person": form.person}
    for i, fields in enumerate(form.columns.values()):
        sent |= {f"c{i}-{key}": value.replace("\n", "\r\n") for key, value in fields.items()}
    return sent | {key.replace("_", "-"): value for key, value in changes.items()}


def test_what_is_not_changed_stays_as_it_is(tmp_path):
    text, form = read_form(TEXT, typed(to_form(TEXT)))
    assert form.faults == form.open == []
    assert tomllib.loads(text) == tomllib.loads(TEXT)
    (tmp_path / "a.toml").write_text(text)
    (tmp_path / "b.toml").write_text(TEXT)
    assert Schema.from_toml(tmp_path / "a.toml").to_json() == Schema.from_toml(tmp_path / "b.toml").to_json()


@pytest.mark.parametrize(
    ("changes", "column", "expected"),
    [
        ({"c1_high": "99"}, "age", {"high": 99}),
        ({"c1_more": ""}, "age", {"unit": None}),
        ({"c1_more": 'unit = "month"\r\nweight = 2'}, "age", {"unit": "month", "weight": 2}),
        ({"c2_values": "F; M"}, "sex", {"values": ["F", "M"]}),
        ({"c2_values": "F\r\nM\r\n\r\nX; Y"}, "sex", {"values": ["F", "M", "X; Y"]}),
        ({"c2_values": "1\r\n2"}, "sex", {"values": [1, 2]}),
        ({"c2_values": "01\r\n2"}, "sex", {"values": ["01", "2"]}),
        ({"c4_low": "2000-02-29"}, "day", {"low": tomllib.loads("d = 2000-02-29")["d"]}),
        ({"c5_low": "0.25"}, "rate", {"low": 0.25}),
        ({"c5_nullable": "no"}, "rate", {"nullable": False}),
        ({"c1_type": "drop"}, "age", {"type": "drop", "low": None, "unit": None, "nullable": None}),
        ({"c1_type": "boolean"}, "age", {"type": "boolean", "low": None, "unit": None, "nullable": True}),
        ({"c5_type": "integer", "c5_low": "0"}, "rate", {"type": "integer", "low": 0, "breaks": None}),
        ({"c0_type": "constant", "c0_value": "x", "person": ""}, "id", {"type": "constant", "value": "x"}),
    ],
)
def test_what_is_typed_is_what_is_written(changes, column, expected):
    text, form = read_form(TEXT, typed(to_form(TEXT), **changes))
    assert form.faults == []
    found = tomllib.loads(text)["columns"][column]
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"c1_low": "200"}, "c1-low", "low must be below high"),
        ({"c1_low": "x"}, "c1-low", "low"),
        ({"c1_low": "a\x00b"}, "c1-low", "no text"),
        ({"c1_more": "unit = year"}, "c1-more", "Texts need quotes"),
        ({"c1_more": "high = 3"}, "c1-more", "field of its own"),
        ({"c1_more": "colour = 3"}, "c1-more", "unknown field"),
        ({"c4_low": "yesterday"}, "c4-low", "low"),
        ({"person": "age"}, "person", "must be of kind drop"),
        ({"person": "nobody"}, "person", "must be of kind drop"),
        ({"c2_nullable": "perhaps"}, "c2-nullable", "answer yes or no"),
    ],
)
def test_what_is_wrong_is_told_at_its_field_and_nothing_is_saved(changes, field, words):
    text, form = read_form(TEXT, typed(to_form(TEXT), **changes))
    assert text == TEXT
    assert [fault.at for fault in form.faults] == [field]
    assert words in form.faults[0].text


def test_gaps_are_saved_and_listed():
    text, form = read_form(TEXT, typed(to_form(TEXT), c1_high="", c2_values="", c3_type="", c5_nullable=""))
    assert form.faults == []
    assert [fault.at for fault in form.open] == ["c1-high", "c2-values", "c3-type", "c5-nullable"]
    assert [fault.at for fault in to_form(text).open] == [fault.at for fault in form.open]
    text, form = read_form(text, typed(to_form(text)), missing=True)
    assert tomllib.loads(text)["columns"]["rate"]["nullable"] is True
    assert tomllib.loads(text)["columns"]["sex"]["nullable"] is False


def test_a_derived_column_brings_the_format_that_has_it():
    plain = 'format = 1\n[columns.a]\ntype = "date"\nlow = 2000-01-01\nhigh = 2001-01-01\nnullable = true\n'
    plain += '[columns.b]\ntype = "?"\n'
    text, form = read_form(plain, typed(to_form(plain), c1_type="derived", c1_derive="year(a)"))
    assert form.faults == form.open == []
    assert text.startswith("format = 2\n")
    short = 'format = 2\n[columns.a]\ntype = "boolean"\nnullable = true\n'
    short += '[columns.b]\nderive = "lookup(a)"\nlookup = {true = "x"}\notherwise = "y"\n'
    text, form = read_form(short, typed(to_form(short)))
    assert form.faults == []
    assert tomllib.loads(text)["columns"]["b"] == {
        "type": "derived", "derive": "lookup(a)", "lookup": {"true": "x"}, "otherwise": "y",
    }  # fmt: skip


def test_every_field_that_a_kind_needs_is_in_the_form():
    needed = {(kind, name) for name, _, _, kinds in needed_fields() for kind in kinds}
    assert needed == {(tag, need) for tag, kind in COLUMN_KINDS.items() for need, _ in kind.needs}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = [",
        "columns = 3",
        "[columns]",
        "columns.a = 3",
        "x = " + "[" * 5000,
        "group = 3\n[columns.a]",
        "person = 3\n[columns.a]",
        "[[group]]\nx = 1\n[columns.a]",
    ],
)
def test_what_is_no_schema_is_refused(text):
    with pytest.raises(SchemaError):
        check_schema_text(text)

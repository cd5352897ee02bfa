"""Gaps of a template, found and filled in one by one."""

import tomllib

import pytest

from privmeasure.errors import SchemaError
from privmeasure.tables import Boolean, Category, Date, Integer, Schema
from privmeasure.tables.columns.fields import ColumnError
from privmeasure.tables.completing import fill_gap, find_gaps, reopen_gap

TEXT = """\
# a comment
format = 1
[columns."the age"]   # of a person
type = "?"            # what is it?
[columns.sex]
type = "category"
values = '?'
nullable = "?"
[columns.smoker]
type = "?"
[columns.born]
type = "date"
low = "?"
high = "?"
weight = 2
"""


def replies(text, *given):
    for reply in given:
        text = fill_gap(text, find_gaps(text)[0], reply)
    return text


def test_a_file_keeps_its_comments_and_its_order():
    assert [gap.field for gap in find_gaps(TEXT)] == ["type", "values", "nullable", "type", "low", "high"]
    filled = replies(TEXT, "Integer", "0", "120", "F, M", "yes", "boolean", "1900-01-01", "2020-12-31")
    assert find_gaps(filled) == []
    assert filled.startswith('# a comment\nformat = 1\n[columns."the age"]   # of a person\n')
    assert 'type = "integer"            # what is it?\nlow = 0\nhigh = 120\n[columns.sex]' in filled
    columns = Schema.from_text(filled).columns
    assert columns["the age"] == Integer(0, 120)
    assert columns["sex"] == Category(["F", "M"], nullable=True)
    assert columns["born"] == Date("1900-01-01", "2020-12-31", weight=2)
    assert columns["smoker"] == Boolean()


def test_inline_tables_and_a_file_without_a_last_line_end():
    text = 'format = 1\n[columns]\nage = {type = "?", unit = "year"}'
    filled = replies(text, "integer", "0", "9")
    assert filled.endswith('age = {type = "integer", low = 0, high = 9, unit = "year"}')
    assert replies('[columns.a]\ntype = "?"', "constant", "CH").endswith('value = "CH"')


def test_what_is_asked_says_what_to_write():
    asked = {
        gap.field: gap.what for gap in find_gaps('[columns.a]\ntype="category"\nvalues="?"\nnullable="?"\nunknown="?"')
    }
    assert asked["values"].startswith("the list of values")
    assert asked["nullable"].startswith("Whether cells may be missing")
    assert "unknown" not in asked  # there it is a value


@pytest.mark.parametrize(
    ("text", "reply", "told"),
    [
        ('[columns.a]\ntype="?"', "intger", "Did you mean 'integer'"),
        ('[columns.a]\ntype="boolean"\nnullable="?"', "perhaps", "answer yes or no"),
        ('[columns.a]\ntype="integer"\nlow=90\nhigh="?"', "17", "low must be below high"),
        ('[columns.a]\ntype="integer"\nlow=90\nhigh="?"', "old", "it must be a whole number"),
        ('[columns.a]\ntype="category"\nvalues="?"', "a, a", "twice"),
    ],
)
def test_a_reply_that_cannot_be(text, reply, told):
    with pytest.raises(ColumnError, match=told):
        fill_gap(text, find_gaps(text)[0], reply)


def test_a_derived_column_brings_its_format():
    text = 'format = 1\n[columns.a]\ntype = "boolean"\n[columns.b]\ntype = "?"\n'
    filled = replies(text, "derived", "text(a)")
    assert filled.startswith("format = 2\n")
    assert filled.endswith('type = "derived"\nderive = "text(a)"\n')


def test_a_field_is_opened_again():
    text = '[columns.a]\ntype = "integer"\nlow = 90 # years\nhigh = "?"'
    assert reopen_gap(text, "a", "low") == text.replace("90", '"?"')
    assert reopen_gap(text, "a", "weight") == text


def test_files_that_are_not_toml():
    with pytest.raises(SchemaError, match="not TOML"):
        find_gaps("x = [")


@pytest.mark.parametrize("reply", ["\ud800", "a\nb = 5", "\x00", "9" * 5000, "[" * 5000, "'" * 3, 'a" # "', "nan"])
@pytest.mark.parametrize("field", ["type", "low", "value"])
def test_no_reply_breaks_the_file(reply, field):
    kind = {"type": "?", "low": "integer", "value": "constant"}[field]
    text = f'format = 1\n[columns.a]\ntype = "{kind}"\n' + (f'{field} = "?"\n' if field != "type" else "")
    try:
        made = fill_gap(text, find_gaps(text)[0], reply)
    except ColumnError:
        return
    tomllib.loads(made)
    made.encode()


@pytest.mark.parametrize("key", ["columns.a.type", "  columns.a.type", "columns . a . type"])
def test_dotted_keys_bring_dotted_gaps(key):
    text = f'format = 1\n{key} = "?"\n'
    made = fill_gap(text, find_gaps(text)[0], "integer")
    assert tomllib.loads(made)["columns"] == {"a": {"type": "integer", "low": "?", "high": "?"}}


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\u2029"])
def test_only_line_feeds_end_lines(mark):
    text = f'format = 1\n[columns.a]\nunit = "x{mark}y"\ntype = "?"\n'
    assert [gap.line for gap in find_gaps(text)] == [4]
    with pytest.raises(ColumnError, match="control character"):
        fill_gap(text, find_gaps(text)[0], "drop\x07")
    text = text.replace('unit = "x', '# unit = "x')
    assert tomllib.loads(fill_gap(text, find_gaps(text)[0], "boolean"))["columns"]["a"]["type"] == "boolean"


@pytest.mark.parametrize("text", ["columns = 5", "[[columns]]\ntype = '?'", "[columns]\na = 5", "x = 1"])
def test_files_without_columns_have_no_gaps(text):
    assert find_gaps(text) == []


def test_a_type_that_is_no_word_is_no_fault_of_ours():
    assert [gap.field for gap in find_gaps('[columns.a]\ntype = ["?"]\nlow = "?"\n')] == ["low"]
    with pytest.raises(SchemaError, match="not TOML"):
        find_gaps("x = " + "[" * 5000 + "]" * 5000)

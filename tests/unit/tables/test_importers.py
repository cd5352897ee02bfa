"""Schemas of other tools, and templates."""

import pytest

from privmeasure.errors import SchemaError
from privmeasure.tables import Boolean, Category, Date, Datetime, Drop, Integer, Number, Time
from privmeasure.tables.foreign import from_foreign
from privmeasure.tables.importers import from_frictionless, from_sdv

FRICTIONLESS = {
    "primaryKey": "id",
    "fields": [
        {"name": "id", "type": "integer"},
        {"name": "age", "type": "integer", "constraints": {"required": True, "minimum": 17, "maximum": "90"}},
        {"name": "income", "type": "number", "constraints": {"minimum": 0, "maximum": 1e6}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"], "required": True}},
        {"name": "grade", "type": "string", "categories": ["low", "high"], "categoriesOrdered": True},
        {"name": "code", "type": "integer", "categories": [{"value": 1, "label": "one"}, {"value": 2, "label": "two"}]},
        {"name": "smoker", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
        {
            "name": "born",
            "type": "date",
            "format": "%d.%m.%Y",
            "constraints": {"minimum": "1900-01-01", "maximum": "2020-12-31"},
        },
        {
            "name": "seen",
            "type": "datetime",
            "constraints": {"minimum": "2020-01-01T00:00:00Z", "maximum": "2021-01-01T00:00:00Z"},
        },
        {"name": "at", "type": "time"},
        {"name": "mail", "type": "string", "format": "email"},
    ],
}


def test_frictionless_with_all_bounds():
    columns = from_foreign(FRICTIONLESS).complete()
    assert columns == {
        "id": Drop(),
        "age": Integer(17, 90),
        "income": Number(0, 1e6, nullable=True),
        "sex": Category(["F", "M"]),
        "grade": Category(["low", "high"], ordered=True, nullable=True),
        "code": Category([1, 2], nullable=True),
        "smoker": Boolean(true=["ja"], false=["nein"], nullable=True),
        "born": Date("1900-01-01", "2020-12-31", format="%d.%m.%Y", nullable=True),
        "seen": Datetime("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", nullable=True),
        "at": Time(nullable=True),
        "mail": Drop(),
    }
    package = {"resources": [{"name": "people", "schema": FRICTIONLESS}]}
    assert from_foreign(package).complete() == from_foreign(FRICTIONLESS).complete()


def test_what_is_missing_is_left_to_fill_in_and_listed():
    draft = from_frictionless(
        {
            "fields": [
                {"name": "a", "type": "integer", "constraints": {"minimum": 0}},
                {"name": "b"},
                {"name": "g", "type": "geojson"},
            ]
        }
    )
    with pytest.raises(SchemaError) as caught:
        draft.complete()
    problems = caught.value.problems
    assert problems[:3] == (
        "column 'a' still has to be filled in: high.",
        "column 'b' still has to be filled in: values.",
        "column 'g' still has to be filled in: type.",
    )
    assert problems[3].startswith("What to write: high: the largest value")
    assert "low" not in problems[3]
    text = draft.to_toml()
    assert 'low = 0\nhigh = "?"' in text
    assert "no counterpart of the Frictionless type 'geojson'" in text


SDV = {
    "METADATA_SPEC_VERSION": "V1",
    "tables": {
        "people": {
            "primary_key": "id",
            "column_relationships": [{"type": "gps", "column_names": ["lat", "lon"]}],
            "columns": {
                "id": {"sdtype": "id"},
                "age": {"sdtype": "numerical", "computer_representation": "Int64", "range_min": 17, "range_max": 90},
                "income": {
                    "sdtype": "numerical",
                    "range_min": 0.0,
                    "range_max": 1e6,
                    "decimal_places": 2,
                    "range_is_nullable": True,
                },
                "sex": {"sdtype": "categorical", "range_values": ["F", "M", None], "range_is_nullable": True},
                "smoker": {"sdtype": "boolean"},
                "born": {
                    "sdtype": "datetime",
                    "datetime_format": "%d.%m.%Y",
                    "range_min": "01.02.1900",
                    "range_max": "31.12.2020",
                },
                "seen": {
                    "sdtype": "datetime",
                    "datetime_format": "%Y-%m-%d %H:%M:%S",
                    "range_min": "2020-01-01 00:00:00",
                    "range_max": "2021-01-01 00:00:00",
                },
                "lat": {"sdtype": "latitude", "pii": True},
                "lon": {"sdtype": "longitude", "pii": True},
                "ssn": {"sdtype": "ssn", "pii": True},
            },
        }
    },
}


def test_sdv_ranges_are_not_taken_over_because_detection_reads_them_off_the_data():
    draft = from_foreign(SDV)
    assert draft.columns == {
        "id": {"type": "drop"},
        "age": {"type": "integer", "low": "?", "high": "?", "nullable": "?"},
        "income": {"type": "number", "low": "?", "high": "?", "decimals": 2, "nullable": "?"},
        "sex": {"type": "category", "values": "?", "nullable": "?"},
        "smoker": {"type": "boolean", "nullable": "?"},
        "born": {"type": "date", "low": "?", "high": "?", "format": "%d.%m.%Y", "nullable": "?"},
        "seen": {"type": "datetime", "low": "?", "high": "?", "format": "%Y-%m-%d %H:%M:%S", "nullable": "?"},
        "ssn": {"type": "drop"},
        "lat and lon": {"type": "place", "latitude": "lat", "longitude": "lon", "nullable": "?"},
    }
    assert from_sdv(SDV, table="people").columns == draft.columns
    text = draft.to_toml()
    assert "Not taken over: range_min, range_max, range_is_nullable. SDV's detection reads them off the data" in text
    assert not any(value in text for value in ("17", "1900", "1e6", "1000000", '"F"'))
    assert sorted(draft.notes) == ["age", "born", "id", "income", "seen", "sex", "ssn"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"sdtype": "numerical", "decimal_places": 0}, {"type": "integer", "low": "?", "high": "?", "nullable": "?"}),
        ({"sdtype": "datetime"}, {"type": "datetime", "low": "?", "high": "?", "nullable": "?"}),
        ({"sdtype": "categorical", "range_values": ["F", "M"]}, {"type": "category", "values": "?", "nullable": "?"}),
        (
            {"sdtype": "ordinal", "range_values": [1, 2, 3]},
            {"type": "category", "values": "?", "ordered": True, "nullable": "?"},
        ),
        ({"sdtype": "ordinal", "high_cardinality": True}, {"type": "category", "values": "?", "ordered": True}),
        ({"sdtype": "boolean", "range_is_nullable": False}, {"type": "boolean", "nullable": "?"}),
        ({"sdtype": "id", "regex_format": "[0-9]{4}"}, {"type": "drop"}),
        ({"sdtype": "latitude"}, {"type": "number", "low": -90, "high": 90, "nullable": "?"}),
        ({"sdtype": "email", "pii": True}, {"type": "drop"}),
        ({"sdtype": "postcode"}, {"type": "drop"}),
        ({"sdtype": "country_code", "pii": False}, {"type": "category", "values": "?", "nullable": "?"}),
        ({"sdtype": "unknown", "pii": True}, {"type": "?"}),
        ({"sdtype": "isbn13", "pii": True}, {"type": "?"}),
        ({"sdtype": "never heard of"}, {"type": "?"}),
        ({"sdtype": ["categorical"]}, {"type": "?"}),
        ({}, {"type": "?"}),
    ],
)
def test_every_sdtype_keeps_its_column(entry, expected):
    assert expected.items() <= from_sdv({"columns": {"a": entry}}).columns["a"].items()


def test_columns_without_a_type_and_dropped_ones_are_named():
    entries = {
        "id": {"sdtype": "id"},
        "mail": {"sdtype": "email"},
        "age": {"sdtype": "numerical"},
        "mood": {"sdtype": "mood"},
        "more": {"sdtype": "unknown", "range_values": ["secret"]},
    }
    losses = from_sdv({"columns": entries}).losses()
    assert losses[0] == "Column 'mood' needs a type. The sdtype 'mood' of SDV is unknown here."
    assert losses[1].startswith("Column 'more' needs a type. SDV does not say what the column holds. Not taken over")
    assert losses[2] == "Dropped: 'id', 'mail'. Such a column is not in the release."
    assert "secret" not in "".join(losses)


def test_sdv_without_ranges_lists_every_gap():
    columns = {"a": {"sdtype": "numerical"}, "b": {"sdtype": "categorical"}, "c": {"sdtype": "datetime"}}
    with pytest.raises(SchemaError) as caught:
        from_sdv({"columns": columns}).complete()
    assert len(caught.value.problems) == 4  # the last says what to write
    assert "nullable" in caught.value.problems[0]


@pytest.mark.parametrize(
    "value",
    [
        3,
        [],
        {},
        {"fields": 3},
        {"fields": [{"type": "x"}]},
        {"resources": []},
        {"schema": 3},
        {"columns": 3},
        {"columns": {"a": 3}},
        {"tables": {}},
        {"tables": {"a": {}, "b": {}}},
        {"tables": 3},
        {"fields": [{"name": "a"}, {"name": "a"}]},
    ],
)
def test_files_of_neither_kind(value):
    with pytest.raises(SchemaError):
        from_foreign(value)


def test_an_unknown_table_of_sdv():
    with pytest.raises(SchemaError, match="Did you mean 'people'"):
        from_sdv(SDV, table="peple")

"""Data dictionaries, JSON Schema and CREATE TABLE as schemas."""

import datetime as dt

import pytest

from privmeasure.errors import SchemaError
from privmeasure.tables import Boolean, Category, Constant, Date, Datetime, Drop, Integer, Number, Time
from privmeasure.tables.dictionaries import from_dictionary
from privmeasure.tables.foreign import from_file_text, from_foreign
from privmeasure.tables.json_schemas import from_json_schema
from privmeasure.tables.sql_tables import from_sql

DICTIONARY = """\
Variable,Type,Min,Max,Values,Label,Units,Decimals,Required
pid,identifier,,,,"A number,
for each person",,,
age,integer,0,120,,Age at entry,year,,yes
pay,continuous,0,1e6,,,,2,
sex,factor,,,"1 = male; 2 = female",,,,yes
grade,ordinal,,,low|mid|high,,,,yes
code,,,,"01,02",,,,yes
ward,integer,,,"1, North | 2, South",,,,yes
smoker,yes/no,,,"ja;nein",,,,yes
drinker,yes/no,,,"0, No | 1, Yes",,,,yes
born,date,1900-01-01,2020-12-31,,,,,yes
seen,datetime,2020-01-01T00:00:00,2021-01-01T00:00:00,,,,,yes
at,time,,,,,,,yes
site,constant,,,CH,,,,
"""


def test_one_column_of_a_dictionary_says_whose_row_it_is():
    draft = from_dictionary("name,type\npid,person\nsmoker,yes/no\n")
    assert draft.person == "pid"
    assert 'format = 2\nperson = "pid"\n' in draft.to_toml()
    with pytest.raises(SchemaError, match="2 columns of type person"):
        from_dictionary("name,type\npid,person\nqid,Person\n")


def test_a_data_dictionary():
    draft = from_file_text(DICTIONARY, "dictionary.csv")
    assert draft.complete() == {
        "pid": Drop(),
        "age": Integer(0, 120, unit="year"),
        "pay": Number(0, 1e6, decimals=2, nullable=True),
        "sex": Category([1, 2]),
        "grade": Category(["low", "mid", "high"], ordered=True),
        "code": Category(["01", "02"]),
        "ward": Category([1, 2]),
        "smoker": Category(["ja", "nein"]),
        "drinker": Boolean(),
        "born": Date("1900-01-01", "2020-12-31"),
        "seen": Datetime("2020-01-01", "2021-01-01"),
        "at": Time(),
        "site": Constant("CH"),
    }
    text = draft.to_toml()
    assert "# A number, for each person\n[columns.pid]" in text  # a label never becomes a line of its own
    assert from_dictionary(text_of(";")).complete() == draft.complete()


def text_of(delimiter):
    """The same dictionary with other delimiters; cells that hold one are in quotes."""
    import csv
    import io

    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(csv.reader(io.StringIO(DICTIONARY)))
    return out.getvalue()


def test_a_dictionary_of_a_form():
    text = (
        "Variable / Field Name,Form Name,Field Type,Field Label,"
        '"Choices, Calculations, OR Slider Labels",Text Validation Type,Text Validation Min,Text Validation Max,'
        "Required Field?\n"
        'sex,base,radio,Sex at birth,"1, Female | 2, Male",,,,y\n'
        "weight,base,text,In kg,,number,0,300,\n"
        "smoker,base,yesno,,,,,,y\n"
        "remarks,base,notes,,,,,,\n"
    )
    draft = from_dictionary(text)
    assert draft.complete() == {
        "sex": Category([1, 2]),
        "weight": Number(0, 300, nullable=True),
        "smoker": Boolean(),
        "remarks": Drop(),
    }
    assert draft.notes == {"sex": "Sex at birth", "weight": "In kg"}


def test_what_a_dictionary_leaves_open():
    draft = from_dictionary("name,type,low\na,int,3\nb,,\nc,text,\nd,float,\n")
    assert draft.columns == {
        "a": {"type": "integer", "low": 3, "high": "?", "nullable": True},
        "b": {"type": "?"},
        "c": {"type": "category", "values": "?", "nullable": True},
        "d": {"type": "number", "low": "?", "high": "?", "nullable": True},
    }
    assert from_dictionary("name,nullable,type\na,no,boolean\nb,yes,boolean\n").complete()["a"] == Boolean()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no column of names"),
        ("kind,low\nint,3\n", "no column of names"),
        ("name\n", "describes no column"),
        ("name,type\na,intger\n", "line 2: column 'a' has the type 'intger', which is unknown. Did you mean 'integer'"),
        ("name,type,low\na,int,few\n", "line 2: low = 'few' is not a number"),
        ("name\na\na\n", "line 3: column 'a' stands there twice"),
        ("name,type\n,int\n", "line 2: a row has no name"),
        ('name\n"a', "a quote does not end"),
    ],
)
def test_what_is_wrong_with_a_dictionary_is_told_by_line(text, told):
    with pytest.raises(SchemaError) as caught:
        from_dictionary(text, "d.csv")
    assert told in str(caught.value)


JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["age", "sex", "born", "smoker", "kind", "mail", "size", "site", "choice"],
    "properties": {
        "age": {"type": "integer", "exclusiveMinimum": -1, "maximum": 120, "description": "In\nyears"},
        "pay": {"type": ["number", "null"], "minimum": 0, "maximum": 1e6, "multipleOf": 0.01},
        "sex": {"enum": ["F", "M"]},
        "born": {"type": "string", "format": "date"},
        "seen": {"type": "string", "format": "date-time"},
        "smoker": {"type": "boolean"},
        "kind": {"$ref": "#/$defs/kind"},
        "level": {"anyOf": [{"$ref": "#/$defs/kind"}, {"type": "null"}]},
        "mail": {"type": "string", "format": "email"},
        "size": {"type": "number", "minimum": 0, "maximum": 3},
        "site": {"const": "CH"},
        "choice": {"oneOf": [{"const": 1, "title": "one"}, {"const": 2, "title": "two"}]},
        "parts": {"type": "array"},
        "anything": True,
    },
    "$defs": {"kind": {"type": "string", "enum": ["a", "b"]}},
}


def test_json_schema():
    draft = from_foreign(JSON_SCHEMA)
    gaps = {name: fields for name, fields in draft.columns.items() if "?" in fields.values()}
    assert gaps == {
        "born": {"type": "date", "low": "?", "high": "?", "nullable": False},
        "seen": {"type": "datetime", "low": "?", "high": "?", "nullable": True},
        "parts": {"type": "?"},
        "anything": {"type": "?"},
    }
    bounds = {"low": dt.date(2000, 1, 1), "high": dt.date(2020, 1, 1)}
    filled = draft.complete({"born": bounds, "seen": bounds, "parts": Drop(), "anything": {"type": "drop"}})
    assert {name: column for name, column in filled.items() if name not in gaps} == {
        "age": Integer(0, 120),
        "pay": Number(0, 1e6, decimals=2, nullable=True),
        "sex": Category(["F", "M"]),
        "smoker": Boolean(),
        "kind": Category(["a", "b"]),
        "level": Category(["a", "b"], nullable=True),
        "mail": Drop(),
        "size": Number(0, 3),
        "site": Constant("CH"),
        "choice": Category([1, 2]),
    }
    assert filled["born"] == Date("2000-01-01", "2020-01-01")
    assert "# In years\n[columns.age]" in draft.to_toml()
    assert (
        from_json_schema({"type": "array", "items": JSON_SCHEMA | {"$defs": {}}, "$defs": JSON_SCHEMA["$defs"]})
        == draft
    )


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"$schema": "x"}, "an object of properties"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "which it does not have"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "outside of its file"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "go in circles"),
        ({"properties": {"a": 3}}, "an object of properties"),
    ],
)
def test_json_schemas_that_cannot_be_read(value, told):
    with pytest.raises(SchemaError, match=told):
        from_foreign(value)


SQL = """
-- people; and more
CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
/* a comment (with a bracket */
CREATE TABLE IF NOT EXISTS "public"."people" (
    id BIGSERIAL,
    "the age" smallint NOT NULL CHECK ("the age" BETWEEN 0 AND 120) COMMENT 'in years',
    pay NUMERIC(9, 2) DEFAULT (0.0) CHECK (pay >= 0 AND pay <= 1000000.0),
    sex CHAR(1) NOT NULL CHECK (sex IN ('F', 'M')),
    state mood NOT NULL,
    size ENUM('S', 'M') NOT NULL,
    smoker tinyint(1) NOT NULL,
    whole DECIMAL(5) NOT NULL,
    delta REAL NOT NULL,
    born DATE NOT NULL,
    seen TIMESTAMP WITH TIME ZONE NOT NULL,
    at TIME NOT NULL,
    photo BYTEA,
    told text,
    PRIMARY KEY (id),
    CONSTRAINT fine CHECK (delta > -1.5 AND delta < 1.5),
    CHECK (pay > 3 OR told IS NULL),
    CHECK (born >= DATE '1900-01-01'),
    FOREIGN KEY (state) REFERENCES states (id)
);
"""


def test_create_table():
    draft = from_file_text(SQL, "people.SQL")
    assert draft.columns == {
        "id": {"type": "drop"},
        "the age": {"type": "integer", "low": 0, "high": 120, "nullable": False},
        "pay": {"type": "number", "low": 0, "high": 1000000.0, "decimals": 2, "nullable": True},
        "sex": {"type": "category", "values": ["F", "M"], "nullable": False},
        "state": {"type": "category", "values": ["sad", "it's ok"], "nullable": False},
        "size": {"type": "category", "values": ["S", "M"], "nullable": False},
        "smoker": {"type": "boolean", "nullable": False},
        "whole": {"type": "integer", "low": "?", "high": "?", "nullable": False},
        "delta": {"type": "number", "low": -1.5, "high": 1.5, "nullable": False},
        "born": {"type": "date", "low": "1900-01-01", "high": "?", "nullable": False},
        "seen": {"type": "datetime", "low": "?", "high": "?", "nullable": False},
        "at": {"type": "time", "nullable": False},
        "photo": {"type": "drop"},
        "told": {"type": "category", "values": "?", "nullable": True},
    }
    assert draft.notes["the age"] == "in years"


def test_a_dump_of_a_database():
    text = """
    CREATE TABLE public.visits (
        id integer GENERATED ALWAYS AS IDENTITY,
        name character varying(20) DEFAULT 'serial not null'::character varying,
        age double precision NOT NULL,
        seen timestamp without time zone DEFAULT now() NOT NULL,
        CONSTRAINT ages CHECK (((age >= (0)::double precision) AND (age <= (120)::double precision))),
        CONSTRAINT odd CHECK ((name ~ 'x'::text))
    );
    ALTER TABLE public.visits OWNER TO somebody;
    """
    assert from_sql(text).columns == {
        "id": {"type": "drop"},
        "name": {"type": "category", "values": "?", "nullable": True},
        "age": {"type": "number", "low": 0, "high": 120, "nullable": False},
        "seen": {"type": "datetime", "low": "?", "high": "?", "nullable": False},
    }


def test_the_table_that_is_meant():
    two = "create table a (x int); create table b (y boolean not null, primary key (y, z));"
    with pytest.raises(SchemaError, match=r"'a', 'b'. Say which: --table NAME"):
        from_sql(two)
    assert from_sql(two, table="b").columns == {"y": {"type": "boolean", "nullable": False}}
    with pytest.raises(SchemaError, match="no table 'bb'"):
        from_sql(two, table="bb")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no CREATE TABLE"),
        ("select 1", "no CREATE TABLE"),
        ("create table a (x int", "does not close"),
        ("create table a ()", "declares no column"),
        ("create table a (x int, x int)", "declared twice"),
    ],
)
def test_sql_that_cannot_be_read(text, told):
    with pytest.raises(SchemaError, match=told):
        from_sql(text)


def test_a_file_of_no_known_form():
    with pytest.raises(SchemaError, match=r"is not a JSON file. What can be read is a data dictionary"):
        from_file_text("x", "x.json")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("circle.json", '{"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}'),
        ("null.json", '{"properties": {"a": {"$ref": "#/x"}}, "x": {"anyOf": [{"$ref": "#/x"}, {"type": "null"}]}}'),
        ("nest.json", '{"properties":' * 50_000),
        ("half.json", '{"properties": {"\\ud800": {"type": "boolean"}}}'),
        ("digits.json", '{"properties": {"a": {"type": "integer", "maximum": ' + "9" * 5000 + "}}}"),
        ("quote.csv", 'name,type\n"a,b\n'),
        ("bracket.sql", "CREATE TABLE t (a INT CHECK (a IN (1)"),
    ],
)
def test_hostile_files_are_refused(name, text):
    with pytest.raises(SchemaError):
        from_file_text(text, name)


@pytest.mark.parametrize(
    "column",
    [
        "a INT CHECK (a > " + "9" * 5000 + ")",
        "a NUMERIC(5, " + "9" * 5000 + ")",
        "a NUMERIC(5, \u00b2)",
        "a INT CHECK (a > \u00b2 and a < \u0663)",
        "a INT CHECK (a > - - - 5)",
        "a ENUM((1), (2))",
    ],
)
def test_odd_numbers_of_sql_are_left_to_fill_in(column):
    assert "a" in from_file_text(f"CREATE TABLE t ({column})", "t.sql").columns


def test_or_null_is_said_of_what_a_reference_leads_to():
    or_null = {"anyOf": [{"$ref": "#/$defs/age"}, {"type": "null"}]}
    age = {"type": "integer", "minimum": 0, "maximum": 9}
    draft = from_json_schema({"properties": {"a": or_null}, "required": ["a"], "$defs": {"age": age}})
    assert draft.columns == {"a": {"type": "integer", "low": 0, "high": 9, "nullable": True}}

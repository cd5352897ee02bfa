"""What others say of a table, in whatever form: which one it is shows itself."""

import json
from collections.abc import Mapping
from typing import Any

from privmeasure.errors import SchemaError
from privmeasure.tables.dictionaries import from_dictionary
from privmeasure.tables.importers import from_frictionless, from_sdv
from privmeasure.tables.json_schemas import from_json_schema
from privmeasure.tables.sql_tables import from_sql
from privmeasure.tables.template import Draft

FORMS = (
    "a data dictionary (.csv or .tsv), CREATE TABLE of SQL (.sql), a JSON Schema, a Frictionless Table Schema or SDV "
    "metadata (.json)"
)


def from_file_text(text: str, name: str, *, table: str | None = None) -> Draft:
    """Read the text of a file, by the end of its name; `table` says which one of several is meant.

    Examples:
        >>> from_file_text("CREATE TABLE t (smoker BOOLEAN NOT NULL)", "t.sql").columns
        {'smoker': {'type': 'boolean', 'nullable': False}}
    """
    suffix = name.lower().rpartition(".")[2]
    if suffix == "sql":
        return from_sql(text, table=table)
    if suffix in ("csv", "tsv", "txt"):
        return from_dictionary(text, name)
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # an escape such as \ud800 alone
        raise SchemaError(f"{name} has half a character in a text. Write the character as a whole.") from None
    except (ValueError, RecursionError):
        raise SchemaError(f"{name} is not a JSON file. What can be read is {FORMS}.") from None
    return from_foreign(value, table=table)


def from_foreign(value: Any, *, table: str | None = None) -> Draft:
    """Read the JSON value of a Frictionless Table Schema (or package), of SDV metadata or of a JSON Schema."""
    if isinstance(value, Mapping):
        if "fields" in value or "schema" in value or "resources" in value:
            return from_frictionless(value)
        if "columns" in value or "tables" in value:
            return from_sdv(value, table=table)
        if {"properties", "items", "$ref", "$schema"} & set(value):
            return from_json_schema(value)
    raise SchemaError(
        "The file is no Frictionless Table Schema (an object with fields), no SDV metadata (with columns or tables) "
        f"and no JSON Schema (with properties). What can be read is {FORMS}."
    )

"""The JSON Schema of schema files, by which editors complete and check them."""

from typing import Any

import msgspec

from privmeasure.tables.columns.kinds import COLUMN_KINDS, SCHEMA_FORMATS

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the TOML format.

    Examples:
        >>> sorted(json_schema()["properties"])
        ['columns', 'format', 'group', 'never', 'person', 'target']
    """
    (_, *_), definitions = msgspec.json.schema_components(list(COLUMN_KINDS.values()), ref_template="#/$defs/{name}")
    for kind in COLUMN_KINDS.values():
        definition = definitions[kind.__name__]
        definition["description"] = (kind.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
        for field in definition["properties"].values():
            _plain(field)
    return {
        "$schema": DRAFT,
        "title": "A schema of privmeasure",
        "description": "What may occur in each column of a table. Public: from knowledge, not from the data.",
        "type": "object",
        "required": ["format", "columns"],
        "additionalProperties": False,
        "properties": {
            "format": {"description": "The version of this format.", "enum": list(SCHEMA_FORMATS)},
            "person": {
                "description": "The dropped column that says whose row it is. Needs format = 2.",
                "type": "string",
            },
            "target": {
                "description": "The columns that people will predict from others. Needs format = 2.",
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
            },
            "columns": {
                "description": "The columns, by name, in the order of the output.",
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"$ref": "#/$defs/Column"},
            },
            "group": {
                "description": "Columns that are to be released jointly.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["columns"],
                    "additionalProperties": False,
                    "properties": {"columns": {"type": "array", "items": {"type": "string"}, "minItems": 2}},
                },
            },
            "never": {
                "description": "Combinations of values, and orders of two columns, that cannot occur, as text.",
                "type": "array",
                "items": {"type": "string"},
            },
        },
        "$defs": {"Column": _one_of(), **definitions},
    }


def _one_of() -> dict[str, Any]:
    """Return a choice that names every type, so that an editor can offer them before one is written."""
    kinds = list(COLUMN_KINDS.items())
    return {
        "type": "object",
        "anyOf": [{"required": ["type"]}, {"required": ["derive"]}],  # what is derived need not say so
        "properties": {"type": {"description": "What the column holds.", "enum": [tag for tag, _ in kinds]}},
        "allOf": [
            {
                "if": {"properties": {"type": {"const": tag}}, "required": ["type"]},
                "then": {"$ref": f"#/$defs/{kind.__name__}"},
            }
            for tag, kind in kinds
        ],
    }


def _plain(field: dict[str, Any]) -> None:
    """Take out null, which TOML does not have: such a field is left out instead."""
    options = [option for option in field.get("anyOf", []) if option.get("type") != "null"]
    if len(options) < len(field.get("anyOf", [])):
        del field["anyOf"]
        field.update(options[0] if len(options) == 1 else {"anyOf": options})
        if field.get("default", 0) is None:
            del field["default"]

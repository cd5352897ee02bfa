"""JSON Schema: the properties of an object become the columns of a table.

A property is said again in the words of Frictionless, which kinds of columns know already.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from privmeasure.errors import SchemaError
from privmeasure.tables.columns.fixed import Constant
from privmeasure.tables.importers import from_frictionless
from privmeasure.tables.template import Draft

MOST_REFERENCES = 32
"""That are followed from one property: more go in circles."""
FORMATS = {"date": "date", "date-time": "datetime", "time": "time"}
"""Formats of texts that are kinds of their own."""
IDENTIFY = {"email": "email", "idn-email": "email", "uri": "uri", "iri": "uri", "uuid": "uuid"}


def from_json_schema(value: Mapping[str, Any]) -> Draft:
    """Read the JSON Schema of a row, or of a list of rows.

    Examples:
        >>> age = {"type": "integer", "minimum": 0, "maximum": 120}
        >>> from_json_schema({"type": "object", "properties": {"age": age}, "required": ["age"]}).columns
        {'age': {'type': 'integer', 'low': 0, 'high': 120, 'nullable': False}}
    """
    row = _resolved(value, value)
    if "properties" not in row and isinstance(row.get("items"), Mapping):
        row = _resolved(row["items"], value)
    properties, required = row.get("properties"), row.get("required", [])
    if not isinstance(properties, Mapping) or not all(isinstance(p, Mapping | bool) for p in properties.values()):
        raise SchemaError("A JSON Schema must have an object of properties, one for each column of the table.")
    required = required if isinstance(required, list) else []
    fields: list[dict[str, Any]] = []
    fixed: dict[str, dict[str, Any]] = {}
    notes: dict[str, str] = {}
    for name, stated in properties.items():
        told = _resolved(stated, value) if isinstance(stated, Mapping) else {}
        fields.append({"name": name} | _field(told, required=name in required))
        if isinstance(told.get("const"), str | int | float):
            fixed[name] = Constant.sketch(value=told["const"])
        words = [told[key] for key in ("title", "description") if isinstance(told.get(key), str)]
        notes |= {name: ". ".join(words)} if words else {}
    draft = from_frictionless({"fields": fields})
    draft.columns.update(fixed)
    for name, note in notes.items():
        draft.notes[name] = " ".join([note, draft.notes.get(name, "")]).strip()
    return draft


def _field(told: Mapping[str, Any], *, required: bool) -> dict[str, Any]:
    """Return a property in the words of Frictionless."""
    kinds = told.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    values = _listed(told)
    missing = "null" in kinds or (values is not None and None in values)
    kind = next((k for k in kinds if k != "null"), "string" if values is not None else "any")
    form = told.get("format")
    limits: dict[str, Any] = {"required": required and not missing}
    if values is not None:
        limits["enum"] = [v for v in values if v is not None]
    whole = 1 if kind == "integer" else 0  # above 3 is 4 and more
    for ours, open_end, step in (("minimum", "exclusiveMinimum", whole), ("maximum", "exclusiveMaximum", -whole)):
        if _is_number(told.get(ours)):
            limits[ours] = told[ours]
        elif _is_number(told.get(open_end)):
            limits[ours] = told[open_end] + step
    field: dict[str, Any] = {"type": kind, "constraints": limits}
    if kind == "string" and isinstance(form, str) and values is None:
        field |= {"type": FORMATS[form]} if form in FORMATS else {"format": IDENTIFY[form]} if form in IDENTIFY else {}
    if kind == "number" and _is_number(grain := told.get("multipleOf")):
        exponent = Decimal(str(grain)).normalize().as_tuple().exponent
        field |= {"decimal_places": -exponent} if isinstance(exponent, int) and -15 <= exponent <= 0 else {}
    return field


def _listed(told: Mapping[str, Any]) -> list[Any] | None:
    """Return the values that are listed: an enum, or a choice of constants, each with a title perhaps."""
    if isinstance(told.get("enum"), list):
        return list(told["enum"])
    for choice in (told.get("oneOf"), told.get("anyOf")):
        if isinstance(choice, list) and choice and all(isinstance(one, Mapping) and "const" in one for one in choice):
            return [one["const"] for one in choice]
    return None


def _resolved(told: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its references inside the file followed, and what `allOf` and "or null" add to it."""
    found, or_null = dict(told), False
    for _ in range(MOST_REFERENCES):
        parts = []
        if "$ref" in found:
            parts.append(_referred(found.pop("$ref"), whole))
        if isinstance(every := found.pop("allOf", None), list):
            parts += every
        choice = found.get("anyOf", found.get("oneOf"))
        if isinstance(choice, list) and len(others := [one for one in choice if one != {"type": "null"}]) == 1:
            found = {name: v for name, v in found.items() if name not in ("anyOf", "oneOf")}
            parts.append(others[0])
            or_null |= len(others) < len(choice)
        if not parts:
            return found | {"type": ["null", *_as_list(found.get("type", []))]} if or_null else found
        for part in (part for part in parts if isinstance(part, Mapping)):
            found = {**part, **found}
    raise SchemaError(
        f"A JSON Schema follows more than {MOST_REFERENCES} references from one place: they go in circles."
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _referred(path: Any, whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a reference such as #/$defs/age leads to."""
    found: Any = whole
    if not isinstance(path, str) or not path.startswith("#"):
        raise SchemaError(f"A JSON Schema refers to {path!r}, outside of its file. Put that into the file.")
    for step in path.lstrip("#/").split("/") if path.strip("#/") else []:
        step = step.replace("~1", "/").replace("~0", "~")
        found = found.get(step) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping):
        raise SchemaError(f"A JSON Schema refers to {path!r}, which it does not have. Correct the reference.")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

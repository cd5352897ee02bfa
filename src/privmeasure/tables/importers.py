"""Schemas of other tools: Frictionless Table Schema and SDV metadata.

What they say about bounds is taken over; what they leave open is left to fill in.
"""

from collections.abc import Mapping
from typing import Any

from privmeasure.errors import SchemaError
from privmeasure.tables.columns.base import did_you_mean
from privmeasure.tables.columns.kinds import TO_FILL_IN
from privmeasure.tables.template import Draft, blank

IMPORTED = (
    "bounds of other tools\n# must be checked: some of them read ranges off the data, and these are then not public."
)
IDENTIFYING = ("email", "uri", "uuid", "binary")
"""Formats of Frictionless texts that name someone or something."""


def from_foreign(value: Any) -> Draft:
    """Read the JSON value of a Frictionless Table Schema (or package) or of SDV metadata; which one shows itself."""
    if isinstance(value, Mapping):
        if "fields" in value or "schema" in value or "resources" in value:
            return from_frictionless(value)
        if "columns" in value or "tables" in value:
            return from_sdv(value)
    raise SchemaError(
        "The file is neither a Frictionless Table Schema (an object with fields) nor SDV metadata (an object with "
        "columns or tables). Give one of these, as JSON."
    )


def from_frictionless(value: Mapping[str, Any]) -> Draft:
    """Read a Frictionless Table Schema, or a resource or package with one.

    Examples:
        >>> age = {"name": "age", "type": "integer", "constraints": {"required": True, "minimum": 17, "maximum": 90}}
        >>> from_frictionless({"fields": [age]}).schema()
        Schema({'age': Integer})
    """
    if "resources" in value:
        value = _single(value["resources"], "resource", "the package")
    schema = value.get("schema", value)
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    if not isinstance(fields, list) or not all(
        isinstance(f, Mapping) and isinstance(f.get("name"), str) for f in fields
    ):
        raise SchemaError("A Frictionless Table Schema must have a list of fields, each with a name.")
    keys = schema.get("primaryKey", [])
    keys = [keys] if isinstance(keys, str) else keys if isinstance(keys, list) else []
    columns: dict[str, dict[str, Any]] = {}
    notes = {}
    for entry in fields:
        name = entry["name"]
        if name in columns:
            raise SchemaError(f"The field {name!r} stands twice in the Frictionless Table Schema. Remove one of them.")
        if name in keys:
            columns[name], notes[name] = {"type": "drop"}, "The primary key: it identifies rows."
        else:
            columns[name], notes[name] = _frictionless_column(entry)
    return Draft(columns, origin=IMPORTED, notes={name: note for name, note in notes.items() if note})


def _frictionless_column(entry: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    limits = entry.get("constraints")
    limits = limits if isinstance(limits, Mapping) else {}
    kind, form = entry.get("type", "string"), entry.get("format", "default")
    common = {} if limits.get("required") is True else {"nullable": True}
    form = {} if form in ("default", "any", None) else {"format": form}
    values = limits.get("enum") or _categories(entry.get("categories"))
    if isinstance(values, list) and kind != "boolean":
        ordered = {"ordered": True} if entry.get("categoriesOrdered") is True else {}
        return blank("category", "values", values=[v for v in values if v is not None], **ordered, **common), ""
    bounds = {
        ours: limits[theirs]
        for ours, theirs in (("low", "minimum"), ("high", "maximum"))
        if limits.get(theirs) is not None
    }
    if kind in ("integer", "year", "number"):
        bounds = {name: _number(bound) for name, bound in bounds.items()}
        return blank("number" if kind == "number" else "integer", "low", "high", **bounds, **common), ""
    if kind == "boolean":
        texts = {
            ours: entry[theirs]
            for ours, theirs in (("true", "trueValues"), ("false", "falseValues"))
            if theirs in entry
        }
        return {"type": "boolean"} | texts | common, ""
    if kind in ("date", "datetime"):
        return blank(kind, "low", "high", **bounds, **form, **common), ""
    if kind == "time":
        return {"type": "time"} | form | common, ""
    if kind == "string":
        if entry.get("format") in IDENTIFYING:
            return {"type": "drop"}, ""
        return blank("category", "values", **common), 'Free text, names and identifiers: type = "drop".'
    return {"type": TO_FILL_IN}, f"There is no counterpart of the Frictionless type {kind!r}."


def from_sdv(value: Mapping[str, Any], *, table: str | None = None) -> Draft:
    """Read SDV metadata, of one table or of several, of which `table` names one.

    Examples:
        >>> from_sdv({"columns": {"age": {"sdtype": "numerical", "range_min": 17}}}).columns
        {'age': {'type': 'number', 'low': 17, 'high': '?'}}
    """
    if "tables" in value:
        tables = value["tables"]
        if table is None:
            value = _single(list(tables.values()) if isinstance(tables, Mapping) else tables, "table", "the metadata")
        elif not isinstance(tables, Mapping) or table not in tables:
            hint = did_you_mean(table, list(tables)) if isinstance(tables, Mapping) else ""
            raise SchemaError(f"The metadata have no table {table!r}.{hint}")
        else:
            value = tables[table]
    columns = value.get("columns") if isinstance(value, Mapping) else None
    if not isinstance(columns, Mapping) or not all(isinstance(entry, Mapping) for entry in columns.values()):
        raise SchemaError("SDV metadata must have an object of columns, each an object with an sdtype.")
    found = {name: _sdv_column(entry) for name, entry in columns.items()}
    places = _places(value.get("column_relationships"), columns)
    drafted = {name: fields for name, (fields, _) in found.items() if not any(name in pair for pair in places)}
    for latitude, longitude in places:
        drafted[f"{latitude} and {longitude}"] = blank("place", latitude=latitude, longitude=longitude)
    return Draft(
        drafted, origin=IMPORTED, notes={name: note for name, (_, note) in found.items() if note and name in drafted}
    )


def _sdv_column(entry: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    kind = entry.get("sdtype")
    common = {"nullable": True} if entry.get("range_is_nullable") is True else {}
    bounds = {
        ours: entry[theirs]
        for ours, theirs in (("low", "range_min"), ("high", "range_max"))
        if entry.get(theirs) is not None
    }
    if kind == "numerical":
        whole = str(entry.get("computer_representation", "")).lstrip("U").startswith("Int")
        places = entry.get("decimal_places")
        decimals = {"decimals": places} if isinstance(places, int) and not whole else {}
        return blank("integer" if whole else "number", "low", "high", **bounds, **decimals, **common), ""
    if kind == "categorical":
        values = entry.get("range_values")
        known = {"values": [v for v in values if v is not None]} if isinstance(values, list) else {}
        return blank("category", "values", **known, **common), ""
    if kind == "boolean":
        return {"type": "boolean"} | common, ""
    if kind == "datetime":
        form = entry.get("datetime_format")
        form = form if isinstance(form, str) else None
        days = form is not None and not any(part in form for part in ("%H", "%I", "%c", "%X", "%T"))
        bounds = {name: _sdv_time(bound, form) for name, bound in bounds.items()}
        bounds = {name: bound[:10] if days and isinstance(bound, str) else bound for name, bound in bounds.items()}
        return blank(
            "date" if days else "datetime", "low", "high", **bounds, **({"format": form} if form else {}), **common
        ), ""
    if kind in ("latitude", "longitude"):
        limit = 90 if kind == "latitude" else 180
        return blank("number", **({"low": -limit, "high": limit} | bounds), **common), ""
    if kind in ("id", "unknown") or entry.get("pii") is True or isinstance(kind, str):
        return {"type": "drop"}, f"SDV calls it {kind!r}."
    return {"type": TO_FILL_IN}, ""


def _sdv_time(bound: Any, form: str | None) -> Any:
    """Return a bound, written in the column's own format, in ISO form."""
    from datetime import datetime

    if isinstance(bound, str) and form is not None:
        try:
            return datetime.strptime(bound, form).isoformat()
        except ValueError:
            return bound  # in ISO form already, or the check of the schema will say what is wrong
    return bound


def _places(relationships: Any, columns: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the pairs (latitude, longitude) that are declared to belong together."""
    pairs = []
    for relationship in relationships if isinstance(relationships, list) else []:
        names = relationship.get("column_names") if isinstance(relationship, Mapping) else None
        if not isinstance(names, list) or relationship.get("type") != "gps":
            continue
        by_kind = {str(columns[name].get("sdtype")): name for name in columns if name in names}
        if {"latitude", "longitude"} <= set(by_kind):
            pairs.append((by_kind["latitude"], by_kind["longitude"]))
    return pairs


def _single(parts: Any, what: str, whole: str) -> Mapping[str, Any]:
    if not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], Mapping):
        count = len(parts) if isinstance(parts, list) else 0
        raise SchemaError(
            f"There must be one {what} in {whole}, got {count}. Put the one that you mean into a file of its own."
        )
    return parts[0]


def _categories(categories: Any) -> Any:
    """Return the values of Frictionless categories: plain ones, or objects with a value and a label."""
    if isinstance(categories, list):
        return [c.get("value") if isinstance(c, Mapping) else c for c in categories]
    return None


def _number(bound: Any) -> Any:
    if isinstance(bound, str):
        try:
            return float(bound) if not bound.strip().lstrip("+-").isdigit() else int(bound)
        except ValueError:
            return bound
    return bound

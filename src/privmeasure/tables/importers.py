"""Schemas of other tools: Frictionless Table Schema and SDV metadata.

What they say about bounds is taken over; what they leave open is left to fill in.
"""

from collections.abc import Mapping
from typing import Any

from privmeasure.errors import SchemaError
from privmeasure.tables.columns.base import TO_FILL_IN, Foreign, Sketch
from privmeasure.tables.columns.categories import Category
from privmeasure.tables.columns.fields import did_you_mean
from privmeasure.tables.columns.fixed import Drop
from privmeasure.tables.columns.kinds import COLUMN_KINDS, first_answer
from privmeasure.tables.template import Draft

READ_OFF_DATA = ("range_min", "range_max", "range_values", "range_is_nullable")
"""What the detection of SDV reads off the data. Metadata do not say which of these a person wrote."""
SENSITIVE = (
    "address administrative_unit bban city company country country_code credit_card_expire credit_card_number "
    "credit_card_provider credit_card_security_code currency_code email first_name iban ipv4_address ipv6_address job "
    "last_name license_plate mac_address name phone_number postcode secondary_address ssn state state_abbr "
    "street_address swift11 swift8 url user_agent_string user_name vin"
)
"""The sdtypes of SDV that may identify a person, unless `pii` is false."""
IMPORTED = (
    "bounds of other tools\n# must be checked: some of them read ranges off the data, and these are then not public."
)


def from_frictionless(value: Mapping[str, Any]) -> Draft:
    """Read a Frictionless Table Schema, or a resource or package with one.

    Examples:
        >>> age = {"name": "age", "type": "integer", "constraints": {"required": True, "minimum": 17, "maximum": 90}}
        >>> from_frictionless({"fields": [age]}).columns
        {'age': {'type': 'integer', 'low': 17, 'high': 90, 'nullable': False}}
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
            columns[name], notes[name] = Drop.sketch(), "The primary key: it identifies rows."
        else:
            columns[name], notes[name] = _frictionless_column(entry)
    return Draft(columns, origin=IMPORTED, notes={name: note for name, note in notes.items() if note})


def _frictionless_column(entry: Mapping[str, Any]) -> Sketch:
    limits = entry.get("constraints")
    limits = limits if isinstance(limits, Mapping) else {}
    kind, form = entry.get("type", "string"), entry.get("format", "default")
    values = limits.get("enum") or _categories(entry.get("categories"))
    field = Foreign(
        f"frictionless {kind}",
        entry,
        bounds=_stated(limits, low="minimum", high="maximum"),
        values=values if isinstance(values, list) and kind != "boolean" else None,
        format={} if form in ("default", "any", None) else {"format": form},
        common={"nullable": limits.get("required") is not True},
    )
    return first_answer(lambda kind: kind.imported(field)) or (
        (Drop.sketch(), "")
        if field.identifies
        else ({"type": TO_FILL_IN}, f"There is no counterpart of the Frictionless type {kind!r}.")
    )


def from_sdv(value: Mapping[str, Any], *, table: str | None = None) -> Draft:
    """Read SDV metadata, of one table or of several, of which `table` names one.

    Every column is kept. Ranges and lists of values are not taken over, because SDV's detection reads them off the
    data; a column with an unknown sdtype has its type to fill in.

    Examples:
        >>> draft = from_sdv({"columns": {"age": {"sdtype": "numerical", "range_min": 17}, "sex": {"sdtype": "xyz"}}})
        >>> draft.columns["age"]
        {'type': 'number', 'low': '?', 'high': '?', 'nullable': '?'}
        >>> draft.columns["sex"], draft.notes["sex"]
        ({'type': '?'}, "The sdtype 'xyz' of SDV is unknown here.")
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
    joined = _joined(value.get("column_relationships"), columns)
    drafted = {name: fields for name, (fields, _) in found.items() if not any(name in parts for parts in joined)}
    drafted |= {" and ".join(parts): fields for parts, fields in joined.items()}
    return Draft(
        drafted, origin=IMPORTED, notes={name: note for name, (_, note) in found.items() if note and name in drafted}
    )


def _sdv_column(entry: Mapping[str, Any]) -> Sketch:
    kind, form = entry.get("sdtype"), entry.get("datetime_format")
    field = Foreign(
        f"sdv {kind}",
        entry,
        bounds={},
        values=None,
        format={"format": form} if isinstance(form, str) else {},
        common={"nullable": TO_FILL_IN},
    )
    fields, note = first_answer(lambda kind: kind.imported(field)) or _sdv_text(kind, entry.get("pii"))
    left_out = [key for key in READ_OFF_DATA if key in entry]
    if left_out and fields != Drop.sketch():
        reason = (
            f"Not taken over: {', '.join(left_out)}. SDV's detection reads them off the data, and a schema is public. "
            "Write what may occur, from knowledge of the subject."
        )
        note = f"{note} {reason}".strip()
    return fields, note


def _sdv_text(sdtype: Any, pii: Any) -> Sketch:
    """Begin a column whose sdtype is none of numbers, dates, categories and booleans."""
    if sdtype == "id":
        return Drop.sketch(), "SDV calls it 'id': it identifies rows."
    if sdtype in SENSITIVE.split():
        if pii is False:
            return Category.sketch("values", nullable=TO_FILL_IN), f"SDV calls it {sdtype!r}, with pii = false."
        return Drop.sketch(), f"SDV calls it {sdtype!r}, which may identify a person."
    if sdtype is None or sdtype == "unknown":
        return {"type": TO_FILL_IN}, "SDV does not say what the column holds."
    hint = ' SDV marks it as personal: type = "drop" is likely right.' if pii is True else ""
    return {"type": TO_FILL_IN}, f"The sdtype {sdtype!r} of SDV is unknown here.{hint}"


def _joined(relationships: Any, columns: Mapping[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the columns that are made of several which are declared to belong together, by the names of those."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for relationship in relationships if isinstance(relationships, list) else []:
        names = relationship.get("column_names") if isinstance(relationship, Mapping) else None
        if isinstance(names, list):
            roles = {str(columns[name].get("sdtype")): name for name in columns if name in names}
            relation = f"sdv {relationship.get('type')}"
            found |= {
                tuple(parts.values()): kind.sketch(**parts, nullable=TO_FILL_IN)
                for kind in COLUMN_KINDS.values()
                if (parts := kind.joined(relation, roles)) is not None
            }
    return found


def _stated(entry: Mapping[str, Any], **theirs: str) -> dict[str, Any]:
    """Return what an entry states, by our names for it."""
    return {ours: entry[name] for ours, name in theirs.items() if entry.get(name) is not None}


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

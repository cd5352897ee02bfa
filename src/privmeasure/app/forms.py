"""What a person typed into the form of a schema, and back: fields of columns, with "?" where something is open. Public.

The schema itself is the text of a schema file, as everywhere. The form shows what every kind needs; all other fields of
a column stand below it as lines of the file, so that nothing of a schema is lost in the form but its comments.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from privmeasure.errors import SchemaError
from privmeasure.tables.columns.base import TO_FILL_IN
from privmeasure.tables.columns.derived import Derived
from privmeasure.tables.columns.fields import ColumnError, UnfilledError, show_value
from privmeasure.tables.columns.fixed import Drop
from privmeasure.tables.columns.kinds import COLUMN_KINDS, NULLABLE, SECOND_FORMAT, from_fields, lacks_data
from privmeasure.tables.completing import read_reply
from privmeasure.tables.toml import key_text, table_text, value_text

YES_NO = {"true": "yes", "false": "no"}
LABELS = {
    "low": "Smallest value",
    "high": "Largest value",
    "values": "Values, one on each line",
    "latitude": "Column with the latitude",
    "longitude": "Column with the longitude",
    "value": "Value",
    "derive": "Follows from",
}
"""What the form calls the fields that kinds need."""
ANSWERS = ("type", "nullable", *LABELS)
OTHER = "more"
"""What the form calls all other fields of a column."""


@dataclass(frozen=True)
class Fault:
    """Something wrong, or open, in a form: the id of the field that it is about, and what to do."""

    at: str
    text: str


@dataclass
class SchemaForm:
    """A schema as a form: for each column the texts of its fields, by the names of `ANSWERS` and `OTHER`."""

    columns: dict[str, dict[str, str]]
    person: str = ""
    faults: list[Fault] = field(default_factory=list)
    """What cannot be used, so that nothing was saved."""
    open: list[Fault] = field(default_factory=list)
    """What is still to be filled in."""

    def at(self, name: str) -> str:
        """Return the id of a column in the page."""
        return f"c{list(self.columns).index(name)}"


def to_form(text: str) -> SchemaForm:
    """Return the form of a schema file that was read before.

    Examples:
        >>> to_form('format = 1\\n[columns.age]\\ntype = "integer"\\nlow = 0\\nhigh = "?"\\nunit = "year"').columns
        {'age': {'type': 'integer', 'low': '0', 'high': '', 'more': 'unit = "year"'}}
    """
    tree = tomllib.loads(text)
    form = SchemaForm({name: _texts(fields) for name, fields in tree["columns"].items()}, tree.get("person", ""))
    form.open = list(_gaps(form, tree["columns"]))
    return form


def _gaps(form: SchemaForm, columns: Mapping[str, Mapping[str, Any]]) -> Iterator[Fault]:
    for name, fields in columns.items():
        try:
            from_fields(fields)
        except UnfilledError as fault:
            for gap, what in fault.gaps.items():
                asks = "may cells be missing? Choose yes or no" if gap == "nullable" else what
                yield Fault(f"{form.at(name)}-{gap}", f"{name}: {asks}.")
        except ColumnError as fault:
            yield Fault(_spot(form, name, fault), f"{name} {fault.predicate}")


def _spot(form: SchemaForm, name: str, fault: ColumnError) -> str:
    known = fault.field if fault.field in ANSWERS else OTHER if fault.field else "type"
    return f"{form.at(name)}-{known}"


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a column as the form shows them."""
    shown = {"type": Derived.tag()} if "derive" in fields else {}  # what is derived need not say so
    shown |= {key: _text(value) for key, value in fields.items() if key in ANSWERS}
    others = "\n".join(f"{key_text(key)} = {value_text(value)}" for key, value in fields.items() if key not in ANSWERS)
    return shown | {OTHER: others}


def _text(value: Any) -> str:
    if value == TO_FILL_IN:
        return ""
    if isinstance(value, bool):
        return YES_NO[str(value).lower()]
    if isinstance(value, list) and all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in value):
        return "\n".join(map(str, value))
    return value if isinstance(value, str) else show_value(value) if isinstance(value, float) else value_text(value)


def read_form(text: str, typed: Mapping[str, str], *, missing: bool = False) -> tuple[str, SchemaForm]:
    """Return the schema file that was typed into a form over another, and the form, with what is wrong and open.

    Where something is wrong the file is the old one. What was not changed keeps its value: "1" stays a text.
    With `missing`, cells of all columns that leave it open may be missing.
    """
    tree = tomllib.loads(text)
    form = SchemaForm({}, typed.get("person", ""))
    columns: dict[str, dict[str, Any]] = {}
    for i, name in enumerate(tree["columns"]):
        form.columns[name] = {key: typed.get(f"c{i}-{key}", "").replace("\r\n", "\n").strip() for key in ANSWERS}
        form.columns[name][OTHER] = typed.get(f"c{i}-{OTHER}", "").replace("\r\n", "\n").strip()
    for name, old in tree["columns"].items():
        if missing and not form.columns[name]["nullable"]:
            form.columns[name]["nullable"] = YES_NO["true"]
        columns[name] = _read_column(form, name, old)
    if form.person and not (form.person in columns and columns[form.person]["type"] == Drop.tag()):
        form.faults.append(
            Fault(
                "person",
                "The column that says whose row it is must be of kind drop: it is neither measured nor written.",
            )
        )
    if form.faults:
        return text, form
    top = {key: tree[key] for key in ("target", "never") if key in tree} | (
        {"person": form.person} if form.person else {}
    )
    newer = {"person", "target"} & top.keys() or any(fields["type"] == Derived.tag() for fields in columns.values())
    lines = [f"format = {max(tree.get('format', 1), SECOND_FORMAT if newer else 1)}\n"]
    lines += [f"{key} = {value_text(value)}\n" for key, value in top.items()]
    lines += ["\n" + table_text(name, fields) for name, fields in columns.items()]
    lines += [f"\n[[group]]\ncolumns = {value_text(group['columns'])}\n" for group in tree.get("group", [])]
    form.open = list(_gaps(form, columns))
    return "".join(lines), form


def _read_column(form: SchemaForm, name: str, old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a column as they were typed; what is wrong with them is noted in the form."""
    typed, before = form.columns[name], _texts(old)
    kind = typed["type"] if typed["type"] in COLUMN_KINDS else TO_FILL_IN
    needed = [need for need, _ in COLUMN_KINDS[kind].needs] if kind in COLUMN_KINDS else []
    fields: dict[str, Any] = {"type": kind}
    for key in [*needed, *(() if lacks_data(kind) or kind not in COLUMN_KINDS else ("nullable",))]:
        try:
            kept = key in old and typed[key] == before[key] and kind == before.get("type")
            fields[key] = old[key] if kept else _read(key, typed[key])
        except ColumnError as fault:
            form.faults.append(Fault(f"{form.at(name)}-{key}", f"{name} {fault.predicate}"))
    if kind not in COLUMN_KINDS:
        fields["nullable"] = old.get("nullable", TO_FILL_IN)
    elif kind == before.get("type") or typed[OTHER] != before[OTHER]:  # another kind has other fields
        fields |= _read_others(form, name)
    else:
        typed[OTHER] = ""
    if not any(fault.at.startswith(f"{form.at(name)}-") for fault in form.faults):
        _check_column(form, name, fields)
    return fields


def _check_column(form: SchemaForm, name: str, fields: Mapping[str, Any]) -> None:
    settled = {key: value for key, value in fields.items() if not (key == "nullable" and value == TO_FILL_IN)}
    try:
        from_fields(settled)
    except UnfilledError:
        pass
    except ColumnError as fault:
        form.faults.append(Fault(_spot(form, name, fault), f"{name} {fault.predicate}"))


def _read(key: str, text: str) -> Any:
    if not text:
        return TO_FILL_IN
    if key == "values" and "\n" in text:
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        whole = all(isinstance(value, int) for line in lines for value in read_reply("values", line))
        return [int(line) for line in lines] if whole else lines
    if key in ("derive", "latitude", "longitude"):
        return text
    return read_reply(key, text)


def _read_others(form: SchemaForm, name: str) -> dict[str, Any]:
    try:
        others = tomllib.loads(form.columns[name][OTHER])
    except (ValueError, RecursionError):
        others, told = {}, 'write one field on each line, like unit = "year". Texts need quotes.'
        form.faults.append(Fault(f"{form.at(name)}-{OTHER}", f"{name}: {told}"))
    twice = sorted(set(others) & set(ANSWERS))
    if twice:
        form.faults.append(Fault(f"{form.at(name)}-{OTHER}", f"{name}: {twice[0]} has a field of its own above."))
    return others


def check_schema_text(text: str) -> None:
    """Refuse a text that is no schema file, with gaps or without: what the form needs of it."""
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError(
            "This is not TOML: texts need quotes, lists square brackets, and no key stands twice."
        ) from None
    columns, groups = tree.get("columns"), tree.get("group", [])
    if not isinstance(tree.get("format", 1), int):
        raise SchemaError("format is a whole number without quotes: write format = 1 on the first line.")
    if not isinstance(groups, list) or not all(isinstance(g, dict) and list(g) == ["columns"] for g in groups):
        raise SchemaError('Groups are written as [[group]], each with columns = ["a", "b"] and nothing else.')
    if not isinstance(tree.get("person", ""), str):
        raise SchemaError("person is the name of the column that says whose row it is: a text in quotes.")
    if not isinstance(columns, dict) or not columns or not all(isinstance(c, dict) for c in columns.values()):
        raise SchemaError("The schema has no columns. Declare each of them as a table [columns.NAME].")


def kind_lines() -> list[tuple[str, str]]:
    """Return the kinds of columns, each with what there is to say of it."""
    return [(tag, kind.guide[1]) for tag, kind in COLUMN_KINDS.items()]


def needed_fields() -> list[tuple[str, str, str, list[str]]]:
    """Return the fields that kinds need: name, label, what to write, and which kinds need it."""
    found: dict[str, tuple[str, list[str]]] = {}
    for tag, kind in COLUMN_KINDS.items():
        for need, what in kind.needs:
            found.setdefault(need, (what, []))[1].append(tag)
    return [(need, LABELS.get(need, need), what, kinds) for need, (what, kinds) in found.items()]


def kinds_with_cells() -> list[str]:
    """Return the kinds whose cells may be missing; `NULLABLE` says what to answer."""
    return [tag for tag in COLUMN_KINDS if not lacks_data(tag)]


__all__ = [
    "NULLABLE",
    "Fault",
    "SchemaForm",
    "check_schema_text",
    "kind_lines",
    "kinds_with_cells",
    "needed_fields",
    "read_form",
    "to_form",
]

"""Filling in a template, gap by gap: the file keeps its comments and its order. Public: no data are looked at."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import category

import msgspec

from privmeasure.errors import SchemaError
from privmeasure.tables.columns.base import TO_FILL_IN
from privmeasure.tables.columns.derived import Derived
from privmeasure.tables.columns.fields import ColumnError, UnfilledError, did_you_mean
from privmeasure.tables.columns.kinds import COLUMN_KINDS, from_fields, lacks_data
from privmeasure.tables.dictionaries import NO, YES, read_values
from privmeasure.tables.toml import key_lines, value_text


@dataclass(frozen=True, slots=True)
class Gap:
    """A "?" of a schema file: of which column and field, what to write there, and its line."""

    column: str
    field: str
    what: str
    line: int


def find_gaps(text: str) -> list[Gap]:
    """Return what is still to be filled in, in the order of the file.

    Examples:
        >>> [(gap.field, gap.line) for gap in find_gaps('format = 1\\n[columns.age]\\ntype = "integer"\\nlow = "?"')]
        [('low', 4)]
    """
    lines = key_lines(text)
    found = [
        Gap(name, field, _what(fields, field), lines["columns", name, field])
        for name, fields in _columns(text).items()
        for field, value in fields.items()
        if value == TO_FILL_IN and field in _needed() and not (field == "nullable" and lacks_data(fields.get("type")))
    ]
    return sorted(found, key=lambda gap: gap.line)


def fill_gap(text: str, gap: Gap, reply: str) -> str:
    """Return the file with a gap filled in as a person replied; a ColumnError says what is wrong with the reply.

    Where a column is complete and something is wrong between its fields, the error tells it and names the field.

    Examples:
        >>> text = '[columns.age]\\ntype = "?"  # of a person'
        >>> text = fill_gap(text, find_gaps(text)[0], "integer")
        >>> print(fill_gap(text, find_gaps(text)[0], "0"))
        [columns.age]
        type = "integer"  # of a person
        low = 0
        high = "?"
    """
    fields = _columns(text)[gap.column]
    value = read_reply(gap.field, reply)
    settled = {field: v for field, v in fields.items() if v != TO_FILL_IN or field != "nullable"}
    try:
        from_fields({**settled, gap.field: value})
    except UnfilledError:
        pass
    except ColumnError as fault:
        if gap.field != "type" or fault.field == "type":  # a new type has fields of its own, which are asked for next
            raise
    if value == Derived.tag() and gap.field == "type":
        text = re.sub(r"(?m)^format\s*=\s*1\b", "format = 2", text, count=1)
    needs = [need for need, _ in COLUMN_KINDS[value].needs if need not in fields] if gap.field == "type" else []
    return _replaced(text, gap, value_text(value), needs)


def reopen_gap(text: str, column: str, field: str) -> str:
    """Return the file with a field that was filled in as a gap again."""
    found = _columns(text)[column].get(field)
    if found is None or found == TO_FILL_IN:
        return text
    line = key_lines(text)["columns", column, field]
    lines = _lines(text)
    shown = re.escape(value_text(found))
    lines[line - 1] = re.sub(rf"({_key(field)}\s*=\s*){shown}", r'\g<1>"?"', lines[line - 1], count=1)
    return "".join(lines)


def _needed() -> set[str]:
    """Return the fields whose "?" is a gap; elsewhere it may be a value like any other."""
    return {"type", "nullable"} | {need for kind in COLUMN_KINDS.values() for need, _ in kind.needs}


def _columns(text: str) -> dict[str, dict[str, Any]]:
    try:
        declared = tomllib.loads(text).get("columns", {})
    except (ValueError, RecursionError):  # no TOML; numbers of thousands of digits and nests without end, too
        raise SchemaError("The file is not TOML: `privmeasure schema check` says where. Mend it first.") from None
    columns = declared.items() if isinstance(declared, dict) else ()
    return {name: fields for name, fields in columns if isinstance(fields, dict)}


def _what(fields: Mapping[str, Any], field: str) -> str:
    """Return what to write into a field: what a kind says that it needs, or what it says of the field."""
    if field == "type":
        return f"what the column is: one of {', '.join(COLUMN_KINDS)}"
    tag = fields.get("type")
    kinds = [COLUMN_KINDS[tag]] if isinstance(tag, str) and tag in COLUMN_KINDS else list(COLUMN_KINDS.values())
    for kind in kinds:
        if field in dict(kind.needs):
            return dict(kind.needs)[field]
        described = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"].get(field, {})
        if "description" in described:
            return str(described["description"]).rstrip(".")
    return "what it is"


def read_reply(field: str, reply: str) -> Any:
    """Return what a person typed as a value of a field."""
    reply = reply.strip()
    if any(category(letter) in ("Cc", "Cs") for letter in reply):  # whoever is no terminal may send anything
        raise ColumnError("cannot have what is no text: a control character, or half of a letter.", field)
    if field == "type":
        if reply.lower() not in COLUMN_KINDS:
            known = list(COLUMN_KINDS)
            hint = did_you_mean(reply, known)
            raise ColumnError(f"cannot be of type {reply!r}.{hint} Write one of {', '.join(known)}.", "type")
        return reply.lower()
    if field == "values":
        return read_values(reply.strip("[]"))
    if field in ("nullable", "ordered"):
        if reply.lower() not in (*YES, *NO):
            raise ColumnError(f"has {field} = {reply!r}; answer yes or no.", field)
        return reply.lower() in YES
    try:
        return tomllib.loads(f"reply = {reply}")["reply"]
    except (ValueError, KeyError, RecursionError):
        return reply  # a text without its quotes


def _lines(text: str) -> list[str]:
    """Return the lines of a file with their ends, as TOML has them: other marks than a line feed end none."""
    return re.split(r"(?<=\n)", text)


def _key(field: str) -> str:
    return rf"(?<![\w-]){re.escape(field)}"


def _replaced(text: str, gap: Gap, value: str, needs: list[str]) -> str:
    """Return the file with another value on the line of a gap; a type brings the gaps of its kind."""
    lines = _lines(text)
    match = re.search(rf"""{_key(gap.field)}\s*=\s*("\?"|'\?')""", lines[gap.line - 1])
    if match is None:
        raise SchemaError(f"Line {gap.line} cannot be edited here. Fill in {gap.field} of {gap.column!r} by hand.")
    line, (start, end) = lines[gap.line - 1], match.span(1)
    before = line[: match.start()]  # spaces, the names before the dots of a dotted key, or the begin of {...}
    inline = "{" in before
    after = "".join(f', {need} = "?"' for need in needs) if inline else ""
    lines[gap.line - 1] = line[:start] + " ".join(value.split("\n")) + after + line[end:]
    if needs and not inline:
        closed = lines[gap.line - 1]
        lines[gap.line - 1] = closed if closed.endswith("\n") else closed + "\n"
        rest = [f'{before}{need} = "?"\n' for need in needs]
        rest[-1] = rest[-1] if closed.endswith("\n") else rest[-1].rstrip("\n")
        lines[gap.line : gap.line] = rest
    made = "".join(lines)
    _columns(made)  # what is saved can be read again
    return made

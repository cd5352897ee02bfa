"""Data dictionaries: a CSV file with a row about each column of a table, as studies publish them.

Known are the columns name, type, low, high, values, label, unit, decimals, format and nullable, under their usual other
names too; all but the name may be absent or empty. The type `person` says whose row it is. What a dictionary leaves
open is left to fill in.
"""

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

from privmeasure.errors import SchemaError
from privmeasure.tables.columns.base import TO_FILL_IN, DataColumn
from privmeasure.tables.columns.booleans import FALSE, TRUE
from privmeasure.tables.columns.fields import did_you_mean
from privmeasure.tables.columns.kinds import COLUMN_KINDS
from privmeasure.tables.importers import IMPORTED
from privmeasure.tables.template import Draft

HEADS = {
    "name": "name column variable field",
    "type": "type kind",
    "low": "low min minimum lower",
    "high": "high max maximum upper",
    "values": "values categories levels codes choices enum",
    "label": "label description title question",
    "unit": "unit units",
    "decimals": "decimals digits",
    "format": "format",
    "nullable": "nullable missing optional",
    "required": "required",
}
"""The columns of a dictionary, and what else they are called."""
TYPE_WORDS = {
    "number": "number numeric float double real decimal continuous calc slider",
    "integer": "integer int count whole discrete",
    "category": "category categorical factor nominal ordinal ordered enum radio dropdown string text char character",
    "boolean": "boolean bool logical binary flag yesno checkbox truefalse",
    "date": "date",
    "datetime": "datetime timestamp",
    "time": "time",
    "constant": "constant",
    "drop": "drop id identifier key name freetext notes file descriptive person",
}
"""Our kinds, and what dictionaries call them."""
YES, NO = ("yes", "y", "true", "1", "x"), ("no", "n", "false", "0", "")


def from_dictionary(text: str, name: str = "The dictionary") -> Draft:
    """Read the text of a data dictionary; a SchemaError says by line what is wrong.

    Examples:
        >>> draft = from_dictionary("name,type,low,high,values\\nage,int,0,120,\\nsex,factor,,,F;M\\n")
        >>> draft.columns["age"], draft.columns["sex"]["values"]
        ({'type': 'integer', 'low': 0, 'high': 120, 'nullable': True}, ['F', 'M'])
    """
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff")), delimiter=_delimiter(text), strict=True)
    columns: dict[str, dict[str, Any]] = {}
    notes: dict[str, str] = {}
    problems: list[str] = []
    persons: list[str] = []
    try:
        heads = _heads(next(rows, []), name)
        for cells in (cells for cells in rows if any(cell.strip() for cell in cells)):
            entry = {head: cell.strip() for head, cell in zip(heads, cells, strict=False) if head and cell.strip()}
            column = entry.get("name", "")
            try:
                if not column or column in columns:
                    raise SchemaError(f"column {column!r} stands there twice." if column else "a row has no name.")
                columns[column] = _fields(entry)
                if entry.get("type", "").lower() == "person":
                    persons.append(column)
            except SchemaError as error:
                problems.append(f"{name}, line {rows.line_num}: {error}")
            if "label" in entry:
                notes[column] = entry["label"]
    except csv.Error:
        raise SchemaError(f"{name} is not a CSV file: a quote does not end. Close every quote.") from None
    if len(persons) > 1:
        problems.append(f"{name} has {len(persons)} columns of type person. One of them can say whose row it is.")
    if problems:
        raise SchemaError(*problems)
    if not columns:
        raise SchemaError(f"{name} describes no column. Write a row for each column of the table.")
    return Draft(columns, origin=IMPORTED, notes=notes, person=persons[0] if persons else None)


def _delimiter(text: str) -> str:
    header = text.split("\n", 1)[0]
    return max(",;\t", key=header.count)


def _heads(header: list[str], name: str) -> list[str | None]:
    """Return what each column of the dictionary is, None for what we do not use."""
    heads = [_head(cell) for cell in header]
    if "name" not in heads:
        raise SchemaError(
            f"{name} has no column of names. A data dictionary is a CSV file with a header such as "
            "name,type,low,high,values,label and a row for each column of the table."
        )
    return [head if head not in heads[:i] else None for i, head in enumerate(heads)]


def _head(cell: str) -> str | None:
    """Return what a column of the dictionary is called here: "Field Type" is a type, "Required Field?" required."""
    known = {word: head for head, words in HEADS.items() for word in words.split()}
    found = [known[word] for word in re.findall(r"[a-z]+", cell.lower()) if word in known]
    return next((head for head in reversed(found) if head != "name"), found[0] if found else None)


def _fields(entry: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a column that a row of the dictionary describes."""
    values = read_values(entry.get("values", ""))
    word = re.sub(r"[^a-z]", "", entry.get("type", "").lower())
    kind = _kind(word, entry, values)
    if kind is None:
        return {"type": TO_FILL_IN}
    common: dict[str, Any] = {}
    if issubclass(COLUMN_KINDS[kind], DataColumn):
        stated = _yes(entry, "nullable"), _yes(entry, "required")
        if stated[0] or not (stated[1] or stated[0] is False):  # what may be missing, unless it is said not to be
            common = {"nullable": True}
    known: dict[str, Any] = {}
    if kind in ("number", "integer"):
        known = {bound: _number(entry[bound], bound) for bound in ("low", "high") if bound in entry}
        known |= {"unit": entry["unit"]} if "unit" in entry else {}
        if kind == "number" and "decimals" in entry:
            known["decimals"] = _number(entry["decimals"], "decimals")
    elif kind in ("date", "datetime", "time"):
        stated_here = ("format",) if kind == "time" else ("low", "high", "format")
        known = {field: entry[field] for field in stated_here if field in entry}
    elif kind == "category" and values:
        known = {"values": values} | ({"ordered": True} if word in ("ordinal", "ordered") else {})
    elif kind == "constant" and values:
        known = {"value": values[0]}
    return COLUMN_KINDS[kind].sketch(*dict(COLUMN_KINDS[kind].needs), **known, **common)


def _kind(word: str, entry: Mapping[str, str], values: list[Any]) -> str | None:
    """Return the kind that a dictionary's word means; without one, what the other cells speak for."""
    if not word:
        return "category" if values else "number" if {"low", "high"} <= set(entry) else None
    known = {other: kind for kind, words in TYPE_WORDS.items() for other in words.split()}
    if word not in known:
        hint = did_you_mean(word, list(known))
        raise SchemaError(
            f"column {entry['name']!r} has the type {entry['type']!r}, which is unknown.{hint} Write one of "
            f"{', '.join(TYPE_WORDS)}."
        )
    if known[word] == "boolean" and any(str(value).lower() not in (*TRUE, *FALSE) for value in values):
        return "category"  # which of them is true, only a person knows
    if known[word] == "category" and not values and {"low", "high"} <= set(entry):
        return "number"  # a field of a form, in which numbers are typed
    return "category" if values and known[word] in ("number", "integer") else known[word]


def read_values(text: str) -> list[Any]:
    """Return the values of a list such as "F;M" or "1 = yes | 2 = no": codes without their labels.

    Examples:
        >>> read_values("F; M"), read_values("1 = yes | 2 = no"), read_values("1, Female | 2, Male")
        (['F', 'M'], [1, 2], [1, 2])
        >>> read_values("01,02")
        ['01', '02']
    """
    mark = next((mark for mark in ("|", ";", "\n", ",") if mark in text), ",")
    parts = [part.strip() for part in text.split(mark) if part.strip()]
    for between in ("=", ",") if mark != "," else ("=",):
        if parts and all(between in part for part in parts):
            parts = [part.split(between, 1)[0].strip() for part in parts]
    parts = [part.strip("\"'") for part in parts]
    return [int(part) for part in parts] if all(re.fullmatch(r"-?(0|[1-9]\d{0,14})", part) for part in parts) else parts


def _yes(entry: Mapping[str, str], head: str) -> bool | None:
    word = entry.get(head, "").lower()
    return None if head not in entry else True if word in YES else False if word in NO else None


def _number(text: str, field: str) -> int | float:
    try:
        return int(text) if re.fullmatch(r"[-+]?\d{1,18}", text) else float(text.replace("_", ""))
    except ValueError:
        raise SchemaError(f"{field} = {text!r} is not a number.") from None

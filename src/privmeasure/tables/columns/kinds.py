"""All kinds of columns, and how one is read from a table of a schema file."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from functools import cache
from typing import Any, TypeVar, get_args

import msgspec

from privmeasure.tables.columns.base import TO_FILL_IN, AnyColumn, DataColumn, Types
from privmeasure.tables.columns.booleans import Boolean
from privmeasure.tables.columns.categories import Category
from privmeasure.tables.columns.dates import Date
from privmeasure.tables.columns.derived import Derived
from privmeasure.tables.columns.fields import ColumnError, UnfilledError, did_you_mean
from privmeasure.tables.columns.fixed import Constant, Drop
from privmeasure.tables.columns.integers import Integer
from privmeasure.tables.columns.numbers import Number
from privmeasure.tables.columns.places import Place
from privmeasure.tables.columns.times import Datetime, Time
from privmeasure.tables.deriving import derivations
from privmeasure.tables.limits import MAX_PROBLEMS, size_problem
from privmeasure.tables.orders import is_order

__all__ = [
    "COLUMN_KINDS",
    "SCHEMA_FORMATS",
    "Column",
    "Spot",
    "Types",
    "as_target",
    "disagreements",
    "format_problem",
    "from_fields",
    "register",
    "to_fields",
]

Answer = TypeVar("Answer")
Spot = tuple[str, ...]
"""Where something stands in a schema file: its keys from the outside in."""

Column = Number | Integer | Category | Boolean | Date | Datetime | Time | Place | Constant | Derived | Drop

OURS: tuple[type[AnyColumn], ...] = get_args(Column)
COLUMN_KINDS: dict[str, type[AnyColumn]] = {kind.tag(): kind for kind in OURS}
SCHEMA_FORMATS = (1, 2)
"""Of schema files. A schema says the lowest that has what it uses, so that older versions read what they can."""
NULLABLE = "true where cells may be missing, false where none can be"
"""What to write for it."""
LARGEST_GROUP = 3
"""Columns that are released jointly: more would be told apart too coarsely."""
LARGEST_BITS = 1023
"""Of a whole number that a float holds."""
_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "str": "a text in quotes",
    "array": "a list in square brackets",
    "object": "a table",
    "null": "nothing",
    "date": "a date",
    "datetime": "a date with a time",
}
_CHOICES = {"transform": 'transform = "log", or leave it out'}
"""What a field with few choices may say."""


def register(kind: type[AnyColumn]) -> type[AnyColumn]:
    """Let schemas have another kind of column, by the tag of its class; `testing.check_column` states its laws."""
    COLUMN_KINDS[kind.tag()] = kind
    return kind


def lacks_data(tag: Any) -> bool:
    """Say whether a kind, by its tag, has no cells of its own that could be missing."""
    kind = COLUMN_KINDS.get(tag) if isinstance(tag, str) else None
    return kind is not None and not issubclass(kind, DataColumn)


def first_answer(question: Callable[[type[AnyColumn]], Answer | None]) -> Answer | None:
    """Return the answer of the first kind that has one; kinds of one's own are asked before ours."""
    asked = sorted(COLUMN_KINDS.values(), key=lambda kind: kind in OURS)
    return next((answer for kind in asked if (answer := question(kind)) is not None), None)


def from_fields(fields: Any) -> Column:
    """Read a column from the fields of a TOML or JSON table; a ColumnError says what is wrong with it.

    Examples:
        >>> from_fields({"type": "integer", "low": 17, "high": 90})
        Integer(low=17, high=90, transform=None, breaks=None, unit=None, weight=1.0, nullable=False)
    """
    if not isinstance(fields, Mapping):
        raise ColumnError(f"is {_word(fields)}; write a table with a type.")
    if huge := next((field for field, value in fields.items() if _is_huge(value)), None):
        raise ColumnError(f"has {huge} with a whole number of hundreds of digits. No cell holds one: correct it.", huge)
    if "type" not in fields and "derive" in fields:
        fields = {"type": Derived.tag(), **fields}
    needs = {"type": f"what the column is: one of {', '.join(COLUMN_KINDS)}", "nullable": NULLABLE}
    for known in COLUMN_KINDS.values():
        needs |= known.needs
    if fields.get("nullable") in (TO_FILL_IN, True, False) and lacks_data(fields.get("type")):  # nothing to decide
        fields = {field: value for field, value in fields.items() if field != "nullable"}
    unfilled = [field for field, value in fields.items() if value == TO_FILL_IN and field in needs]
    if unfilled:
        raise UnfilledError({field: needs[field] for field in unfilled})
    if "type" not in fields:
        raise ColumnError(f"has no type. Write {needs['type']}.")
    kind: Any = COLUMN_KINDS.get(fields["type"]) if isinstance(fields["type"], str) else None
    if kind is None:
        hint = did_you_mean(str(fields["type"]), list(COLUMN_KINDS))
        raise ColumnError(
            f"has type = {fields['type']!r}, which is unknown.{hint} Write one of {', '.join(COLUMN_KINDS)}.", "type"
        )
    names = [field.encode_name for field in _fields(kind)]
    for field in fields:
        if field not in names and field != "type":
            hint = did_you_mean(str(field), names)
            raise ColumnError(
                f"has an unknown field {field!r}.{hint} A column of type {fields['type']!r} has {', '.join(names)}.",
                str(field),
            )
    for field in _fields(kind):
        if field.required and field.encode_name not in fields:
            raise ColumnError(f"has no {field.encode_name}. Add {needs.get(field.encode_name, 'it')}.")
    try:
        column: Column = msgspec.convert(dict(kind.prepared(fields)), type=kind, builtin_types=(date, datetime, time))
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ColumnError):
            raise error.__cause__ from None
        raise _fault(error, fields) from None
    return column


@cache
def _fields(kind: type[AnyColumn]) -> tuple[Any, ...]:
    """Return the fields of a kind, which msgspec looks up in its annotations: slowly."""
    return msgspec.structs.fields(kind)


def to_fields(column: Column, *, native: bool = False) -> dict[str, Any]:
    """Return the fields of a column as JSON has them, or (native) with dates as TOML has them."""
    kept = (date, datetime, time) if native else ()
    fields = msgspec.to_builtins(column, builtin_types=kept)
    return {name: _lists(value) for name, value in fields.items()}


def _lists(value: Any) -> Any:
    return [_lists(v) for v in value] if isinstance(value, tuple) else value


SECOND_FORMAT = 2
"""The format that has `person`, `target` and orders of columns: an older version would not honour them."""


def schema_format(
    columns: Mapping[str, Column],
    person: str | None = None,
    target: Sequence[str] = (),
    never: Sequence[str] = (),
) -> int:
    """Return the lowest format that has what a schema uses."""
    plain = person is None and not target and not any(is_order(rule, columns) for rule in never)
    return max([SCHEMA_FORMATS[0] if plain else SECOND_FORMAT, *(column.since for column in columns.values())])


def format_problem(stated: Any, person: Any = None, target: Any = None) -> str:
    """Return what is wrong with the stated format of a schema, by what it names; nothing if it can be read.

    Examples:
        >>> format_problem(3)
        'has format = 3, and this version reads formats 1 and 2: update privmeasure.'
    """
    if not isinstance(stated, bool) and stated in SCHEMA_FORMATS:
        named = "a person" if person is not None else "a target" if target is not None else ""
        if not named or stated >= SECOND_FORMAT:
            return ""
        return (
            f"names {named}, which is of format {SECOND_FORMAT}: an older version would not honour it. Write format = "
            f"{SECOND_FORMAT} on the first line."
        )
    newer = isinstance(stated, int) and not isinstance(stated, bool) and stated > max(SCHEMA_FORMATS)
    known = " and ".join(map(str, SCHEMA_FORMATS))
    told = (
        "no format"
        if stated is None
        else f"as its format {_word(stated)}"
        if _is_huge(stated)
        else f"format = {stated!r}"
    )
    return f"has {told}, and this version reads formats {known}: " + (
        "update privmeasure." if newer else "write format = 1 on the first line."
    )


def disagreements(
    columns: Mapping[str, Column],
    groups: Sequence[tuple[str, ...]],
    never: Sequence[str],
    person: str | None = None,
    target: Sequence[str] = (),
) -> list[tuple[Spot, str]]:
    """Return everything that is wrong between columns, each with its place in a schema file."""
    if problem := size_problem(len(columns), len(never)):
        return [(("never",) if "never" in problem else ("columns",), problem)]
    problems: list[tuple[Spot, str]] = []
    owner: dict[str, str] = {}
    for name, column in columns.items():
        if not isinstance(name, str) or not isinstance(column, AnyColumn):
            got = type(column).__name__
            problems.append(((), f"column {name!r} must be a column such as Integer(17, 90), got {got}."))
            continue
        for source in column.sources(name):
            if source in owner:
                told = (
                    f"column {name!r} reads the file's column {source!r}, which column {owner[source]!r} reads already."
                )
                problems.append((("columns", name), f"{told} Remove one of the two."))
            owner.setdefault(source, name)
    if not problems and not any(isinstance(column, DataColumn) for column in columns.values()):
        problems.append((("columns",), "no column of the schema has data: all are dropped, constant or derived."))
    taken: set[str] = set()
    for i, group in enumerate(groups):
        problems += [(("group", str(i)), problem) for problem in _group_problems(group, columns)]
        problems += [
            (("group", str(i)), f"column {name!r} is in two groups. Take it out of one, or join the two.")
            for name in dict.fromkeys(group)
            if name in taken
        ]
        if len(problems) > MAX_PROBLEMS:
            return problems
        taken.update(group)
    if not problems:
        problems += [(("columns", name, "derive"), problem) for name, problem in derivations(columns)[1]]
    if not all(isinstance(rule, str) for rule in never):
        problems.append((("never",), "never must be a list of texts."))
    if person is not None and not isinstance(columns.get(person) if isinstance(person, str) else None, Drop):
        problems.append((("person",), _person_problem(person, columns)))
    problems += [(("target",), problem) for problem in _target_problems(target, columns, person)]
    return problems


def as_target(named: Any) -> Any:
    """Return the columns that people will predict as a tuple: of one name, of a list of them, of nothing.

    What is none of these is left as it is, for `disagreements` to refuse.
    """
    if named is None or isinstance(named, str):
        return () if named is None else (named,)
    return named if isinstance(named, Mapping) or not isinstance(named, Iterable) else tuple(named)


def _target_problems(target: Any, columns: Mapping[str, Column], person: Any) -> list[str]:
    if not isinstance(target, Sequence) or not all(isinstance(name, str) for name in target):
        return ['target must be the name of a column, or a list of names: target = "death".']
    problems: list[str] = []
    for name in dict.fromkeys(target):
        if len(problems) > MAX_PROBLEMS:
            break
        column = columns.get(name)
        if name == person:
            problems.append(
                f"target names {name!r}, which says whose row it is. Name a column that people will predict."
            )
        elif column is None:
            problems.append(
                f"target names {name!r}, which is no column of the schema.{did_you_mean(name, list(columns))}"
            )
        elif isinstance(column, Derived):
            problems.append(
                f"target names {name!r}, which is derived, and follows from other columns. Name those of them that "
                "people will predict."
            )
        elif not isinstance(column, DataColumn):
            told = "dropped" if isinstance(column, Drop) else "constant"
            problems.append(
                f"target names {name!r}, which is {told}: nothing of it is measured. Name a column with data."
            )
    if len(set(target)) < len(target):
        problems.append("target names a column twice. Name it once.")
    return problems


def _person_problem(person: Any, columns: Mapping[str, Column]) -> str:
    if not isinstance(person, str):
        return f"person is {_word(person)}; write the name of the column that says whose row it is."
    if person not in columns:
        hint = did_you_mean(person, list(columns))
        return f'person names {person!r}, which is no column of the schema.{hint} Declare it, with type = "drop".'
    return (
        f'person names {person!r}, which must have type = "drop": an id says whose row it is, and is neither measured '
        "nor written."
    )


def _group_problems(group: tuple[str, ...], columns: Mapping[str, Column]) -> list[str]:
    problems = []
    for name in group:
        if name not in columns:
            hint = did_you_mean(str(name), list(columns))
            problems.append(f"a group names {name!r}, which is no column of the schema.{hint}")
        elif not isinstance(columns[name], DataColumn):
            problems.append(f"a group names {name!r}, which has no data. Take it out of the group.")
    if len(set(group)) < max(len(group), 2):
        problems.append("a group needs at least two different columns.")
    if len(group) > LARGEST_GROUP:
        problems.append(
            f"a group of {len(group)} columns is too coarse to be of use; it has at most {LARGEST_GROUP}. Divide it."
        )
    return problems


def _fault(error: msgspec.ValidationError, fields: Mapping[str, Any]) -> ColumnError:
    """Tell in plain words what msgspec found."""
    text = str(error)
    where = re.search(r"`\$\.(\w+)(.*?)`", text)
    field, deeper = (where[1], where[2]) if where else ("", "")
    expected = re.search(r"Expected `([^`]*)`", text)
    if field and re.search("Expected `array` of length", text) and not fields[field]:
        return ColumnError(f"has {field} = [], an empty list. Write at least one entry.", field)
    if field and expected:
        words = " or ".join(
            _WORDS.get(word.strip(), word.strip()) for word in expected[1].split("|") if word.strip() != "null"
        )
        inside = f"{field}{deeper}" if deeper else field
        got = "" if deeper else f" = {fields[field]!r}" if not isinstance(fields[field], list | dict) else ""
        return ColumnError(
            f"has {inside}{got}; it must be {words}, got {_word(fields[field]) if not deeper else 'something else'}.",
            field,
        )
    if field and "Invalid enum value" in text:
        choices = _CHOICES.get(field, "one of the documented words")
        return ColumnError(f"has {field} = {fields[field]!r}, which is unknown. Write {choices}.", field)
    return ColumnError(f"has {field or 'something'} that cannot be used: {text.split(' - at')[0]}.", field)


def _is_huge(value: Any) -> bool:
    """Say whether a declared value has a whole number that no float holds, which Python may not even write."""
    if isinstance(value, list | dict):
        return any(map(_is_huge, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and value.bit_length() > LARGEST_BITS


def _word(value: Any) -> str:
    for kind, word in (
        (bool, "true or false"),
        (str, "text"),
        (int | float, "a number"),
        (list, "a list"),
        (dict, "a table"),
        (datetime, "a date with a time"),
        (date, "a date"),
    ):
        if isinstance(value, kind):
            return word
    return type(value).__name__

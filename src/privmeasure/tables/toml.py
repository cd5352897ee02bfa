"""Schema files: TOML, read with errors by line, and written."""

import csv
import io
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any, NamedTuple

from privmeasure.errors import SchemaError
from privmeasure.tables.columns.base import TO_FILL_IN
from privmeasure.tables.columns.fields import ColumnError, UnfilledError, did_you_mean, told_on_a_screen
from privmeasure.tables.columns.kinds import (
    SECOND_FORMAT,
    Column,
    Spot,
    as_target,
    disagreements,
    format_problem,
    from_fields,
    lacks_data,
    schema_format,
    to_fields,
)
from privmeasure.tables.limits import MAX_KEY_PARTS, MAX_LOOKUP_BYTES, MAX_SCHEMA_BYTES
from privmeasure.tables.orders import is_order

TOP = ("format", "person", "target", "columns", "group", "never")
TABLES = ("columns", "group")
"""What of it is written as tables."""


class Declared(NamedTuple):
    """What a schema file declares: what `Schema` takes, by its names."""

    columns: dict[str, Column]
    groups: list[tuple[str, ...]]
    never: list[str]
    person: str | None
    target: tuple[str, ...]


def read_schema(path: str | Path) -> Declared:
    """Read a schema file."""
    path = Path(path)
    return parse_schema(_text(path), path.name, path.parent)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MAX_SCHEMA_BYTES + 1)
    if len(content) > MAX_SCHEMA_BYTES:
        raise SchemaError(_too_large(str(path)))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError(f"{path} is not a text in UTF-8. Is it the data? Give the schema, a TOML file.") from None


def _too_large(name: str) -> str:
    return (
        f"{name} is larger than a schema can be ({MAX_SCHEMA_BYTES:,} bytes). Is it the data? Give the schema, a TOML "
        "file. A long table of a lookup belongs into a CSV file that the schema names."
    )


def undecided_columns(path: str | Path) -> list[str]:
    """Return the columns of a valid schema file that do not say whether cells may be missing: false is taken."""
    tree = tomllib.loads(_text(Path(path)))
    return [
        name
        for name, fields in tree["columns"].items()
        if not {"nullable", "derive"} & fields.keys() and not lacks_data(fields.get("type"))
    ]


def parse_schema(text: str, name: str, folder: Path | None = None) -> Declared:
    """Read the text of a schema file, and say everything that is wrong with it at once.

    Files of lookups lie beside it, in `folder`; a text that came from no file has none.

    Examples:
        >>> parse_schema('''format = 1
        ... [columns.age]
        ... type = "integer"
        ... low = 90
        ... high = 17''', "people.toml")
        Traceback (most recent call last):
        privmeasure.errors.SchemaError: people.toml, line 4: column 'age' has low = 90 and high = 17; low must be below
        high. Swap them.
    """
    if len(text) > MAX_SCHEMA_BYTES:
        raise SchemaError(_too_large(name))
    _check_keys(text, name)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(_broken(str(error), name)) from None
    except (ValueError, RecursionError):  # limits of the interpreter
        raise SchemaError(f"{name} has a number of thousands of digits, or lists in lists without end.") from None
    problems = list(_top_problems(tree))
    columns: dict[str, Column] = {}
    gaps: dict[str, str] = {}
    declared, stated = tree.get("columns", {}), tree.get("format", 0)
    for column, fields in declared.items() if isinstance(declared, dict) else ():
        try:
            columns[column] = from_fields(_with_lookup(fields, folder))
            if isinstance(stated, int) and columns[column].since > stated:  # what is no number is told above
                since = columns[column].since
                raise ColumnError(f"is of a kind that format {since} has. Write format = {since} on the first line.")
        except ColumnError as fault:
            problems.append((("columns", column, fault.field), f"column {column!r} {fault.predicate}"))
            gaps |= fault.gaps if isinstance(fault, UnfilledError) else {}
    if not problems:
        groups = [tuple(group["columns"]) for group in tree.get("group", [])]
        found = Declared(columns, groups, tree.get("never", []), tree.get("person"), as_target(tree.get("target")))
        problems = disagreements(*found)
        if tree["format"] < SECOND_FORMAT and any(is_order(rule, columns) for rule in found.never):
            told = f"the schema compares two columns, which is of format {SECOND_FORMAT}: write it on the first line."
            problems.append((("never",), told))
        if not problems:
            return found
    lines = key_lines(text)
    placed = sorted((_line(lines, place), problem) for place, problem in problems)
    raise SchemaError(*told_on_a_screen([f"{name}, line {line}: {told}" for line, told in placed], gaps, name=name))


def _check_keys(text: str, name: str) -> None:
    """Refuse a dotted key of very many parts before it is parsed, which takes time and memory for every two of them."""
    parts, dotted, line = 0, False, 1
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == ".":
            dotted = True
            continue
        parts, dotted = parts + 1 if dotted else 1, False
        if parts > MAX_KEY_PARTS:
            raise SchemaError(
                f"{name}, line {line}: a key has more than {MAX_KEY_PARTS} parts. Keys of a schema have at most three, "
                "like columns.age.low."
            )
        line += token.count("\n")


def _top_problems(tree: Mapping[str, Any]) -> Iterator[tuple[Spot, str]]:
    for key in tree:
        if key not in TOP:
            is_table = isinstance(tree[key], dict)
            hint = did_you_mean(key, TABLES if is_table else TOP) or (
                " Columns are declared as [columns.NAME]." if is_table else ""
            )
            yield (key,), f"{key!r} is unknown.{hint} A schema has {', '.join(TOP)}."
    if problem := format_problem(tree.get("format"), tree.get("person"), tree.get("target")):
        yield ("format",), f"the schema {problem}"
    if not isinstance(tree.get("columns"), dict) or not tree["columns"]:
        yield ("columns",), "the schema has no columns. Declare each of them as a table [columns.NAME]."
    groups = tree.get("group", [])
    if not isinstance(groups, list):
        yield ("group",), 'groups are written as [[group]], each with columns = ["a", "b"].'
        groups = []
    for i, group in enumerate(groups):
        names = group.get("columns") if isinstance(group, dict) and len(group) == 1 else None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            yield ("group", str(i)), 'a [[group]] has columns = ["a", "b"] and nothing else.'
    never = tree.get("never", [])
    if not isinstance(never, list) or not all(isinstance(rule, str) for rule in never):
        yield ("never",), "never must be a list of texts."


def _with_lookup(fields: Any, folder: Path | None) -> Any:
    """Return the fields of a column with the contents of its lookup, which may be a file: public, like the schema."""
    if folder is None or not isinstance(fields, Mapping) or not isinstance(fields.get("lookup"), str):
        return fields
    place = folder / fields["lookup"]
    try:
        rows = list(csv.reader(io.StringIO(_lookup_text(place, folder)), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise ColumnError(
            f"has lookup = {fields['lookup'][:80]!r}, which cannot be read beside the schema. It is a CSV file in "
            "UTF-8 with a header and two columns: what is looked up, and what it gives.",
            "lookup",
        ) from None
    table: dict[str, Any] = {}
    for line, row in enumerate(rows[1:], 2):
        if len(row) != 2 or row[0] in table:
            told = "stands there twice" if len(row) == 2 else "has not two cells"
            raise ColumnError(f"has a lookup, {place.name}, in which line {line} {told}.", "lookup")
        table[row[0]] = row[1]
    whole = all(re.fullmatch(r"-?(0|[1-9][0-9]{0,14})", value) for value in table.values())
    return {**fields, "lookup": {key: int(value) if whole else value for key, value in table.items()}}


def _lookup_text(place: Path, folder: Path) -> str:
    """Return the text of a lookup; a schema of a stranger names no file but those that came with it."""
    if "\0" in str(place) or not place.resolve().is_relative_to(folder.resolve()) or not place.is_file():
        raise FileNotFoundError
    if place.stat().st_size > MAX_LOOKUP_BYTES:
        raise ColumnError(
            f"has a lookup, {place.name[:80]}, that is larger than one can be ({MAX_LOOKUP_BYTES:,} bytes).", "lookup"
        )
    return place.read_bytes().decode("utf-8-sig")


def _broken(message: str, name: str) -> str:
    at = re.search(r"line (\d+)", message)
    line = f"line {at[1]}" if at else "the last line"
    fault = re.sub(r"\s*\(at .*\)$", "", message)
    twice = "overwrite a value" in fault or "declare" in fault
    advice = "A key or a table stands there twice." if twice else "Texts need quotes, lists square brackets."
    return f"{name}, {line}: this is not TOML: {fault}. {advice}"


def _line(lines: Mapping[Spot, int], place: Spot) -> int:
    """Return the line of a place, or of what holds it."""
    while place:
        if place in lines:
            return lines[place]
        place = place[:-1]
    return 1


_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)|\'\'\'.*?(?:\'\'\'|\Z)|"(?:[^"\\\n]|\\.)*"?|\'[^\'\n]*\'?|#[^\n]*|[\[\]{}=.,\n]'
    r'|[^\s"\'#\[\]{}=.,]+',
    re.DOTALL,
)
"""What a TOML text is made of. A quote that does not close ends the text: no part of it is read twice."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def key_lines(text: str) -> dict[Spot, int]:
    """Return the line of every key of a valid TOML text; the tables of an array are numbered.

    Examples:
        >>> key_lines('a = 1\\n[columns."x y"]\\nlow = [1,\\n 2]\\nhigh = 3')
        {('a',): 1, ('columns',): 2, ('columns', 'x y'): 2, ('columns', 'x y', 'low'): 3, ('columns', 'x y', 'high'): 5}
    """
    lines: dict[Spot, int] = {}
    arrays: dict[Spot, int] = {}
    table: Spot = ()
    for line, tokens in _statements(text):
        if tokens[0] == "[":
            double = tokens[1] == "["
            table = _keys(tokens[2:-2] if double else tokens[1:-1])
            if double:
                arrays[table] = arrays.get(table, -1) + 1
                lines.setdefault(table, line)
                table = (*table, str(arrays[table]))
            here = table
        else:
            here = (*table, *_keys(tokens[: tokens.index("=")]))
            _inline(lines, here, tokens[tokens.index("=") + 1 :], line)
        for length in range(1, len(here) + 1):
            lines.setdefault(here[:length], line)
    return lines


def _inline(lines: dict[Spot, int], here: Spot, tokens: list[str], line: int) -> None:
    """Note the keys of an inline table, which stand on the line of its key."""
    if tokens and tokens[0] == "{":
        for i, token in enumerate(tokens):
            if token == "=":
                lines.setdefault((*here, _keys([tokens[i - 1]])[0]), line)


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the headers and the assignments of a TOML text, as tokens, with the lines where they start."""
    tokens: list[str] = []
    line, start, depth = 1, 1, 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "\n" and (depth == 0 or not tokens):
            if tokens:
                yield start, tokens
            depth, tokens = 0, []
        elif token[0] != "#" and token != "\n":
            if not tokens:
                start = line
            tokens.append(token)
            depth += (token in "[{") - (token in "]}")
        line += token.count("\n")
    if tokens:
        yield start, tokens


def _keys(tokens: list[str]) -> Spot:
    """Return a dotted key."""
    return tuple(
        token if _BARE_KEY.fullmatch(token) else next(iter(tomllib.loads(f"{token} = 0")))
        for token in tokens
        if token != "."
    )


def write_schema(
    columns: Mapping[str, Column],
    groups: Sequence[tuple[str, ...]],
    never: Sequence[str],
    person: str | None,
    target: Sequence[str],
) -> str:
    """Return the text of a schema file."""
    parts = [f"format = {schema_format(columns, person, target, never)}\n"]
    if person is not None:
        parts.append(f"person = {value_text(person)}\n")
    if target:
        parts.append(f"target = {value_text(target[0] if len(target) == 1 else list(target))}\n")
    if never:
        parts.append(f"never = {value_text(list(never))}\n")
    for name, column in columns.items():
        parts.append("\n" + table_text(name, to_fields(column, native=True), floats=not column.exact))
    parts += [f"\n[[group]]\ncolumns = {value_text(list(group))}\n" for group in groups]
    return "".join(parts)


def table_text(name: str, fields: Mapping[str, Any], *, floats: bool = False) -> str:
    """Return a column as a table of TOML. With `floats`, 3.0 is written 3: the field says that it is a float."""
    lines = [f"[columns.{key_text(name)}]"]
    lines += [f"{key_text(field)} = {value_text(_short(v) if floats else v)}" for field, v in fields.items()]
    return "\n".join(lines) + "\n"


def _short(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return [_short(v) for v in value] if isinstance(value, list) else value


def key_text(key: str) -> str:
    """Return a key of TOML, in quotes where it needs them."""
    return key if _BARE_KEY.fullmatch(key) else value_text(key)


def value_text(value: Any) -> str:
    """Return a value of TOML.

    Examples:
        >>> value_text(["a", 'say "b"', True, 1.5, {"x y": []}])
        '["a", "say \\\\"b\\\\"", true, 1.5, {"x y" = []}]'
    """
    if value is None:  # TOML has none: it is to be filled in
        return value_text(TO_FILL_IN)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + re.sub(r'[\x00-\x1f"\\\x7f]', _escape, value) + '"'
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key_text(str(k))} = {value_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        texts = [value_text(v) for v in value]
        if sum(map(len, texts)) + 2 * len(texts) < 100:
            return f"[{', '.join(texts)}]"
        return "[\n" + "".join(f"  {text},\n" for text in texts) + "]"
    return repr(value)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return "\\" + character if character in '"\\' else f"\\u{ord(character):04x}"

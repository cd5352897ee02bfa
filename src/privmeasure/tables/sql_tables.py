"""CREATE TABLE of SQL: types, NOT NULL, keys, enums, and CHECKs that state bounds or list values.

Only what declares columns is read, in any of the usual dialects; what else a statement says is passed over. A column is
said again in the words of Frictionless, which kinds of columns know already.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from privmeasure.errors import SchemaError
from privmeasure.tables.columns.fields import did_you_mean
from privmeasure.tables.importers import from_frictionless
from privmeasure.tables.template import Draft

SQL_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*"|`[^`]*`|\[[^\]\[]*\])"""
    r"""|(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+)|(?P<word>[^\W\d][\w$]*)|(?P<sign><=|>=|<>|!=|::|[-+(),;.=<>*/%|&^~!?:@\#])""",
    re.DOTALL,
)
SQL_TYPES = {
    "integer": "int integer bigint smallint tinyint mediumint int2 int4 int8 serial bigserial smallserial identity",
    "number": "decimal numeric number dec float float4 float8 real double money smallmoney",
    "boolean": "bool boolean bit",
    "date": "date",
    "datetime": "datetime datetime2 timestamp timestamptz smalldatetime datetimeoffset",
    "time": "time timetz",
    "year": "year",
    "string": "char character varchar varchar2 nvarchar nchar nvarchar2 text tinytext mediumtext longtext clob string "
    "enum set bpchar citext",
    "uuid": "uuid uniqueidentifier",
    "binary": "blob bytea binary varbinary tinyblob mediumblob longblob image raw",
}
"""The words of Frictionless (two of them formats of a text), and what SQL calls them."""
COUNTED = ("serial", "bigserial", "smallserial", "identity", "auto_increment", "autoincrement")
"""Words for columns that number the rows."""
TABLE_PARTS = ("constraint", "primary", "unique", "foreign", "check", "key", "index", "exclude", "period", "like")
"""Words that begin what is no column."""


@dataclass
class _Column:
    """What a statement says of one column."""

    type: str
    sizes: list[str] = field(default_factory=list)
    values: list[Any] | None = None
    bounds: dict[str, Any] = field(default_factory=dict)
    required: bool = False
    key: bool = False
    note: str = ""


Token = tuple[str, str]
"""What a word is, and itself; quoted names without their quotes."""


def from_sql(text: str, *, table: str | None = None) -> Draft:
    """Read the CREATE TABLE of a file of SQL, or the one of several that `table` names.

    Examples:
        >>> from_sql("CREATE TABLE people (age INT NOT NULL CHECK (age BETWEEN 0 AND 120), pay NUMERIC(9, 2))").columns
        {'age': {'type': 'integer', 'low': 0, 'high': 120, 'nullable': False},
         'pay': {'type': 'number', 'low': '?', 'high': '?', 'decimals': 2, 'nullable': True}}
    """
    enums: dict[str, list[Any]] = {}
    tables: dict[str, list[Token]] = {}
    for statement in _statements(_tokens(text)):
        words = [token.lower() for _, token in statement]
        if words[:2] == ["create", "type"] and "enum" in words:
            at = words.index("enum")
            enums[words[at - 2]] = [token for kind, token in statement[at:] if kind == "text"]
        elif words[:1] == ["create"] and "table" in words[:6] and "(" in words:
            start = words.index("(")
            tables[statement[start - 1][1]] = _inside(statement, start)
    if not tables:
        raise SchemaError("The file has no CREATE TABLE with a list of columns. Give the SQL that declares the table.")
    if table is None and len(tables) > 1:
        raise SchemaError(
            f"The file declares the tables {', '.join(map(repr, list(tables)[:20]))}. Say which: --table NAME."
        )
    name = table if table is not None else next(iter(tables))
    if name not in tables:
        raise SchemaError(f"The file declares no table {name!r}.{did_you_mean(name, list(tables))}")
    return _draft(tables[name], enums)


def _draft(body: list[Token], enums: Mapping[str, list[Any]]) -> Draft:
    columns: dict[str, _Column] = {}
    for part in _split(body):
        kind, word = part[0]
        if kind == "word" and word.lower() in TABLE_PARTS and len(part) > 1:
            _constrain(part, columns)
        elif len(part) > 1:
            if word in columns:
                raise SchemaError(f"The column {word!r} is declared twice. Remove one of the two.")
            columns[word] = _column(part, enums)
            _checks(part, columns)
    if not columns:
        raise SchemaError("The CREATE TABLE declares no column.")
    draft = from_frictionless({"fields": [{"name": name} | _field(column) for name, column in columns.items()]})
    for name, column in columns.items():
        if column.key:
            draft.columns[name], draft.notes[name] = {"type": "drop"}, "A key: it identifies rows."
        elif column.note:
            draft.notes[name] = column.note
    return draft


def _column(part: list[Token], enums: Mapping[str, list[Any]]) -> _Column:
    words = ["" if kind == "text" else token.lower() for kind, token in part]
    sizes = [token for _, token in _inside(part, 2) if token != ","] if words[2:3] == ["("] else []
    found = _Column(words[1], sizes, required=_follows(words, "not", "null"), key=_follows(words, "primary", "key"))
    found.required |= found.key
    found.key |= any(word in COUNTED for word in words)
    if words[1] == "enum" and sizes:
        found.values = list(sizes)
    elif words[1] in enums:
        found.type, found.values = "enum", enums[words[1]]
    if "comment" in words[:-1] and part[words.index("comment") + 1][0] == "text":
        found.note = part[words.index("comment") + 1][1]
    return found


def _field(column: _Column) -> dict[str, Any]:
    """Return a column in the words of Frictionless."""
    known = {word: ours for ours, words in SQL_TYPES.items() for word in words.split()}
    kind = known.get(column.type, column.type)
    if kind == "integer" and column.type == "tinyint" and column.sizes == ["1"]:
        kind = "boolean"
    if kind == "number" and column.type in ("decimal", "numeric", "number", "dec") and len(column.sizes) == 1:
        kind = "integer"
    limits: dict[str, Any] = {"required": column.required, **column.bounds}
    if column.values is not None and kind != "boolean":
        limits["enum"] = column.values
    entry: dict[str, Any] = {"type": "string" if kind in ("uuid", "binary") else kind, "constraints": limits}
    if kind in ("uuid", "binary"):
        entry["format"] = kind
    if kind == "number" and len(column.sizes) == 2 and re.fullmatch("[0-9]|1[0-5]", column.sizes[1]):
        entry["decimal_places"] = int(column.sizes[1])
    return entry


def _constrain(part: list[Token], columns: Mapping[str, _Column]) -> None:
    """Take in what a constraint of the table says of its columns."""
    words = [token.lower() for _, token in part]
    if _follows(words, "primary", "key") and "(" in words:
        keys = [token for kind, token in _inside(part, words.index("(")) if kind != "sign"]
        for name in (name for name in keys if name in columns):
            columns[name].required = True
            columns[name].key |= len(keys) == 1  # of a key of several columns, each may be an attribute
    _checks(part, columns)


def _checks(part: list[Token], columns: Mapping[str, _Column]) -> None:
    """Take in the bounds and lists of CHECKs that are joined by AND alone; others are passed over."""
    for i, (kind, word) in enumerate(part):
        if kind == "word" and word.lower() == "check" and i + 1 < len(part):
            _compare(_inside(part, i + 1), columns)


def _compare(tokens: list[Token], columns: Mapping[str, _Column]) -> None:
    tokens = _without_casts(tokens)
    words = [token.lower() if kind == "word" else token for kind, token in tokens]
    if "or" in words or "not" in words:
        return
    tokens = [token for token, word in zip(tokens, words, strict=True) if word not in ("(", ")") or "in" in words]
    found: dict[str, dict[str, Any]] = {}
    while tokens:
        name, rest = tokens[0][1], tokens[1:]
        sign = rest[0][1].lower() if rest else ""
        said: dict[str, Any] = {}
        if sign == "between":
            low, rest = _value(rest[1:])
            high, rest = _value(rest[1:])
            said = {"minimum": low, "maximum": high}
        elif sign in ("<", "<=", ">", ">="):
            value, rest = _value(rest[1:])
            said = {"minimum" if sign[0] == ">" else "maximum": value}
        elif sign == "in" and len(rest) > 1 and rest[1][1] == "(":
            inside = _inside(rest, 1)
            said, rest = (
                {"values": [_value([token])[0] for token in inside if token[1] != ","]},
                rest[len(inside) + 3 :],
            )
        if name not in columns or not said or any(value is None for value in said.values()):
            return
        found.setdefault(name, {}).update(said)
        if rest and rest[0][1].lower() != "and":
            return
        tokens = rest[1:]
    for name, said in found.items():
        columns[name].values = said.pop("values", columns[name].values)
        columns[name].bounds |= said


def _without_casts(tokens: list[Token]) -> list[Token]:
    """Return the words without types after two colons, as dumps have them: 0::double precision."""
    kept: list[Token] = []
    cast = False
    for kind, token in tokens:
        cast = token == "::" or (cast and kind == "word" and token.lower() not in ("and", "or"))
        kept += [] if cast else [(kind, token)]
    return kept


def _value(tokens: list[Token]) -> tuple[Any, list[Token]]:
    """Return the constant that some words begin with, None if there is none, and the words after it."""
    sign = 1
    while tokens and (tokens[0][1] in "+-" or tokens[0][1].lower() in ("date", "timestamp")):
        sign, tokens = -sign if tokens[0][1] == "-" else sign, tokens[1:]
    if not tokens or tokens[0][0] not in ("number", "text"):
        return None, tokens
    kind, word = tokens[0]
    if kind == "text":
        return word, tokens[1:]
    return sign * (int(word) if re.fullmatch("[0-9]{1,18}", word) else float(word)), tokens[1:]


def _follows(words: list[str], *wanted: str) -> bool:
    return any(tuple(words[i : i + len(wanted)]) == wanted for i in range(len(words)))


def _tokens(text: str) -> list[Token]:
    found = []
    for match in SQL_TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        if kind in ("text", "quoted"):
            found.append((kind, token[1:-1].replace(token[-1] * 2, token[-1])))
        elif kind is not None:
            found.append((kind, token))
    return found


def _statements(tokens: list[Token]) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token == ("sign", ";"):
            statements.append([])
        else:
            statements[-1].append(token)
    return statements


def _inside(tokens: list[Token], start: int) -> list[Token]:
    """Return what stands between the bracket at `start` and the one that closes it."""
    depth = 0
    for i, (kind, token) in enumerate(tokens[start:], start):
        depth += (kind, token) == ("sign", "(")
        depth -= (kind, token) == ("sign", ")")
        if depth == 0:
            return tokens[start + 1 : i]
    raise SchemaError("A bracket of the SQL does not close. Give the whole CREATE TABLE.")


def _split(tokens: list[Token]) -> list[list[Token]]:
    """Return the parts of a list, at the commas outside of brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for kind, token in tokens:
        depth += (kind, token) == ("sign", "(")
        depth -= (kind, token) == ("sign", ")")
        if (kind, token) == ("sign", ",") and depth == 0:
            parts.append([])
        else:
            parts[-1].append((kind, token))
    return [part for part in parts if part]

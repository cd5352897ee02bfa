"""The small language of conditions: "age >= 30 and sex = 'F'". Text in, clauses out; nothing is known of a schema here.

condition = clause { "and" clause }
clause    = name ( "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) ( value | name ( "+" | "-" ) number [ word ] )
          | name [ "not" ] "in" "(" value { "," value } ")"  |  name "is" [ "not" ] ( "null" | "missing" )
name      = a word, or any text in double quotes or backticks
value     = a number, true, false, a word, or text in quotes (a quote inside is written twice)
"""

import re
from dataclasses import dataclass

from privmeasure.errors import ArgumentError


class Word(str):
    """A value that may be meant as the name of a column: a bare word, or text in double quotes or backticks."""

    __slots__ = ()


@dataclass(frozen=True)
class Shifted:
    """The value of another column, plus a number of units: "admitted + 30 min"."""

    name: str
    by: float
    unit: str = ""

    def __str__(self) -> str:
        """Show it as it was written."""
        return f"{self.name} {'-' if self.by < 0 else '+'} {abs(self.by):g} {self.unit}".rstrip()


Value = str | float | int | bool | Shifted

SIGNS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`)|(?P<sign><=|>=|<>|!=|==|=|<|>)|(?P<mark>[(),])"""
    r"""|(?P<word>[^\s'"`<>=!(),]+))"""
)
SHIFT = re.compile(r"([+-])\s*(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})\s*([^\W\d_]*)")
LONGEST_CONDITION = 10_000
"""Characters of a condition."""


class ConditionError(ArgumentError):
    """What is wrong with a condition, told as a predicate that its text can be put before."""


@dataclass(frozen=True)
class Clause:
    """One comparison: a name, a sign ("=", "!=", "<", "<=", ">", ">=", "is" for missing, "is not"), and its values."""

    name: str
    sign: str
    values: tuple[Value, ...]


def parse_condition(text: str) -> list[Clause]:
    """Return the clauses of a condition; all must hold. A ConditionError says what is wrong.

    Examples:
        >>> parse_condition("age >= 30 and sex in ('F', 'X')")
        [Clause(name='age', sign='>=', values=(30,)), Clause(name='sex', sign='=', values=('F', 'X'))]
    """
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_CONDITION:
        raise ConditionError("must be a text such as \"age >= 30 and sex = 'F'\".")
    tokens, clauses = _tokens(text), []
    while True:
        clauses.append(_clause(tokens, text))
        if not tokens:
            return clauses
        kind, word = tokens.pop(0)
        if kind != "word" or word.lower() != "and":
            raise ConditionError(f'has {word!r} where "and" was expected. Comparisons are joined by "and" alone.')


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ConditionError(f"cannot be read at {text[at:].strip()[:20]!r}. Close every quote.")
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind]))
        at = match.end()
    return tokens


def _next(tokens: list[tuple[str, str]], wanted: str) -> tuple[str, str]:
    if not tokens:
        raise ConditionError(f"ends where {wanted} was expected.")
    return tokens.pop(0)


def _clause(tokens: list[tuple[str, str]], text: str) -> Clause:
    kind, name = _next(tokens, "the name of a column")
    if kind not in ("word", "quoted"):
        raise ConditionError(f"has {name!r} where the name of a column was expected.")
    name = _unquoted(name) if kind == "quoted" else name
    kind, sign = _next(tokens, "a comparison such as =")
    if kind == "sign":
        return Clause(name, SIGNS[sign], (_shifted(_value(*_next(tokens, "a value")), tokens),))
    if kind == "word" and sign.lower() == "is":
        return _missing(name, tokens)
    negated = kind == "word" and sign.lower() == "not"
    if negated:
        kind, sign = _next(tokens, '"in"')
    if kind == "word" and sign.lower() == "in":
        return Clause(name, "!=" if negated else "=", _list(tokens))
    raise ConditionError(f"has {sign!r} after {name!r}, where =, !=, <, <=, >, >=, in or is was expected.")


def _shifted(value: Value, tokens: list[tuple[str, str]]) -> Value:
    """Return a value, or a column plus a number if such a thing follows: "+ 30 min", "+30 min", "+30min"."""
    if not isinstance(value, Word) or not tokens or tokens[0][0] != "word" or tokens[0][1][0] not in "+-":
        return value
    _, text = tokens.pop(0)
    if text in "+-":
        text += _next(tokens, "a number")[1]
    if tokens and tokens[0][0] == "word" and tokens[0][1].lower() != "and":
        text += f" {tokens.pop(0)[1]}"
    found = SHIFT.fullmatch(text)
    if found is None:
        raise ConditionError(f'has {text!r} after {value!r}, where a number was expected, like "+ 30" or "+ 30 min".')
    return shifted(value, found)


def shifted(name: str, found: re.Match[str]) -> Shifted:
    """Return a column plus the number that `SHIFT` found."""
    by = float(found[2]) if "." in found[2] else int(found[2])
    return Shifted(str(name), -by if found[1] == "-" else by, found[3])


def _missing(name: str, tokens: list[tuple[str, str]]) -> Clause:
    _, word = _next(tokens, '"null"')
    negated = word.lower() == "not"
    if negated:
        _, word = _next(tokens, '"null"')
    if word.lower() not in ("null", "missing"):
        raise ConditionError(f'has {word!r} after "is", where null or missing was expected.')
    return Clause(name, "is not" if negated else "is", ())


def _list(tokens: list[tuple[str, str]]) -> tuple[Value, ...]:
    values: list[Value] = []
    _, mark = _next(tokens, "(")
    while mark in ("(" if not values else ","):
        values.append(_value(*_next(tokens, "a value")))
        _, mark = _next(tokens, ")")
    if not values or mark != ")":
        raise ConditionError("must have a list in round brackets after in, like ('a', 'b').")
    return tuple(values)


def _value(kind: str, token: str) -> Value:
    if kind == "quoted":
        return _unquoted(token) if token[0] == "'" else Word(_unquoted(token))
    if kind != "word":
        raise ConditionError(f"has {token!r} where a value was expected.")
    if token.lower() in ("true", "false"):
        return token.lower() == "true"
    if re.fullmatch(r"[-+]?\d{1,18}", token):
        return int(token)
    if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", token):
        return float(token)
    return Word(token)


def _unquoted(token: str) -> str:
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)

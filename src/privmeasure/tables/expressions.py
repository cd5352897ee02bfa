"""The small language of derived columns: "floor(age / 10) * 10", "year(seen)". Text in, a tree out; nothing is run.

sum     = product { ( "+" | "-" ) product }
product = signed { ( "*" | "/" | "//" | "%" ) signed }
signed  = [ "-" ] part
part    = number | text | name | function "(" sum { "," sum } ")" | "(" sum ")"
text    = in single quotes (a quote inside is written twice)
name    = a word, or any text in double quotes or backticks
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Union

from privmeasure.errors import ArgumentError

EXPRESSION_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*"|`[^`]*`)|(?P<sign>//|[-+*/%(),])"""
    r"""|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?(?![\w.]))|(?P<word>[^\W\d]\w*))"""
)
LONGEST_EXPRESSION = 2_000
"""Characters of an expression."""
DEEPEST_EXPRESSION = 30
"""Brackets and functions inside each other."""
MOST_TOKENS = 300
"""Numbers, names and signs: a sum of many parts is a deep tree, and must be no deeper than Python goes."""


WRITE_POWER = "A power is power(x, y)."


class ExpressionError(ArgumentError):
    """What is wrong with an expression, told as a predicate that its text can be put before."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A number or a text."""

    value: int | float | str


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column, by the name that it has in the output."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function, or a sign such as +, of some parts."""

    function: str
    parts: tuple["Expression", ...]


Expression = Union[Literal, ColumnName, Call]  # noqa: UP007 - the name of a class that comes later is in it


def parse_expression(text: str) -> Expression:
    """Return the tree of an expression; an ExpressionError says what is wrong.

    Examples:
        >>> parse_expression("year(seen) - 1")
        Call(function='-', parts=(Call(function='year', parts=(ColumnName(name='seen'),)), Literal(value=1)))
    """
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_EXPRESSION:
        raise ExpressionError("must be a text such as 'year(seen)' or 'floor(age / 10) * 10'.")
    reader = _Reader(_tokens(text))
    found = reader.sum(0)
    if reader.tokens:
        raise ExpressionError(f"has {reader.tokens[0][1]!r} where it should end. Are two parts without a sign between?")
    return found


def names_in(expression: Expression) -> tuple[str, ...]:
    """Return the columns that an expression is about, each once.

    Examples:
        >>> names_in(parse_expression("a + b * a"))
        ('a', 'b')
    """
    return tuple(dict.fromkeys(_names(expression)))


def calls(expression: Expression, function: str) -> bool:
    """Say whether an expression has a function in it."""
    return isinstance(expression, Call) and (
        expression.function == function or any(calls(part, function) for part in expression.parts)
    )


def _names(expression: Expression) -> Iterator[str]:
    if isinstance(expression, ColumnName):
        yield expression.name
    elif isinstance(expression, Call):
        for part in expression.parts:
            yield from _names(part)


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, at, text = [], 0, text.rstrip()
    while at < len(text):
        match = EXPRESSION_TOKEN.match(text, at)
        if match is None:
            advice = WRITE_POWER if text[at:].lstrip().startswith("^") else "Close every quote."
            raise ExpressionError(f"cannot be read at {text[at:].strip()[:20]!r}. {advice}")
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind]))
        at = match.end()
    if len(tokens) > MOST_TOKENS:
        raise ExpressionError(f"has more than {MOST_TOKENS} numbers, names and signs. Derive a part of it first.")
    return tokens


class _Reader:
    """Takes tokens from the left; each method reads one rule of the grammar."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens

    def sum(self, depth: int) -> Expression:
        return self._chain(("+", "-"), self._product, depth)

    def _product(self, depth: int) -> Expression:
        return self._chain(("*", "/", "//", "%"), self._signed, depth)

    def _chain(self, signs: tuple[str, ...], part: Callable[[int], Expression], depth: int) -> Expression:
        found = part(depth)
        while self.tokens and self.tokens[0][0] == "sign" and self.tokens[0][1] in signs:
            _, sign = self.tokens.pop(0)
            found = Call(sign, (found, part(depth)))
        return found

    def _signed(self, depth: int) -> Expression:
        if self.tokens and self.tokens[0] == ("sign", "-"):
            self.tokens.pop(0)
            return Call("-", (Literal(0), self._part(depth)))
        return self._part(depth)

    def _part(self, depth: int) -> Expression:
        if depth > DEEPEST_EXPRESSION:
            raise ExpressionError(f"has more than {DEEPEST_EXPRESSION} brackets inside each other.")
        kind, token = self._next("a number, a name or a bracket")
        if kind == "number":
            if math.isinf(float(token)):
                raise ExpressionError(f"has the number {token[:20]!r}, which is too large.")
            return Literal(int(token) if re.fullmatch(r"\d{1,15}", token) else float(token))
        if kind == "text":
            return Literal(token[1:-1].replace("''", "'"))
        if kind == "quoted":
            return ColumnName(token[1:-1].replace(token[0] * 2, token[0]))
        if kind == "word":
            bracket = self.tokens[:1] == [("sign", "(")]
            return Call(token, self._parts(depth + 1)) if bracket else ColumnName(token)
        if token == "(":
            found = self.sum(depth + 1)
            self._close()
            return found
        advice = f" {WRITE_POWER}" if token == "*" else ""
        raise ExpressionError(f"has {token!r} where a number, a name or a bracket was expected.{advice}")

    def _parts(self, depth: int) -> tuple[Expression, ...]:
        self.tokens.pop(0)
        parts = [self.sum(depth)]
        while self.tokens and self.tokens[0] == ("sign", ","):
            self.tokens.pop(0)
            parts.append(self.sum(depth))
        self._close()
        return tuple(parts)

    def _close(self) -> None:
        if self._next(")") != ("sign", ")"):
            raise ExpressionError("has a bracket that does not close.")

    def _next(self, wanted: str) -> tuple[str, str]:
        if not self.tokens:
            raise ExpressionError(f"ends where {wanted} was expected.")
        return self.tokens.pop(0)

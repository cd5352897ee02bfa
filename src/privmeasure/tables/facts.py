"""From what people write to conditions on points: names and values of a schema, `where` and `never`.

Every column decodes points to values in one direction (numbers, dates) or to a list of values (categories), so a
comparison is a set of intervals of points: those that decode to a value for which it is true. Nothing here sees data.
"""

import math
import operator
from collections.abc import Callable, Sequence
from datetime import date, time
from typing import Any

import numpy as np

from privmeasure.conditions.language import Clause, ConditionError, Value, parse_condition
from privmeasure.conditions.possible import some_row
from privmeasure.conditions.sets import Condition, Fact, Interval
from privmeasure.domains import Circle, Domain, Integers, Nullable
from privmeasure.errors import ArgumentError, SchemaError
from privmeasure.tables import Schema
from privmeasure.tables.columns.base import DataColumn, Types
from privmeasure.tables.columns.fields import did_you_mean

HALVINGS = 1100
"""Of an interval of doubles until its ends are neighbours: at most one for each of their 2^64."""


def conditions(schema: Schema, text: str, *, types: Types | None = None) -> tuple[Condition, ...]:
    """Return what a text such as "age >= 30 and sex = 'F'" says of each column; an ArgumentError says what is wrong.

    `types` are the storage types of the outputs, which may round values.

    Examples:
        >>> from privmeasure.tables import Integer
        >>> conditions(Schema({"age": Integer(17, 90)}), "age >= 30")
        (Condition(column=0, coordinate=0, intervals=((30.0, 90.0),), missing=False),)
    """
    try:
        return tuple(_conditions(schema, text, types))
    except ConditionError as fault:
        raise ArgumentError(f"where = {_quoted(text)} {fault}") from None


def forbidden_pairs(schema: Schema) -> tuple[Fact, ...]:
    """Return what a schema says can never occur, or a SchemaError that says what is wrong with it.

    Each text is about exactly two columns. Facts that leave no row at all are refused. They are read once: a schema
    keeps them, as it keeps its domain, for whoever plans, releases or samples.

    Examples:
        >>> from privmeasure.tables import Boolean, Category
        >>> schema = Schema({"sex": Category(["F", "M"]), "pregnant": Boolean()}, never="sex = 'M' and pregnant = true")
        >>> [[condition.intervals for condition in fact] for fact in forbidden_pairs(schema)]
        [[((1.0, 1.0),), ((1.0, 1.0),)]]
    """
    if "_facts" not in vars(schema):
        vars(schema)["_facts"] = _facts(schema)
    found: tuple[Fact, ...] = vars(schema)["_facts"]
    return found


def _facts(schema: Schema) -> tuple[Fact, ...]:
    problems, facts = [], []
    for text in schema.never:
        try:
            facts.append(_fact(schema, text))
        except ConditionError as fault:
            problems.append(f"never = {_quoted(text)} {fault}")
    if problems:
        raise SchemaError(*problems)
    domain = schema.node_domain
    if facts and not some_row(facts, domain):
        raise SchemaError(
            "The facts of the schema (never) contradict each other: together they forbid every row. Take one out, or "
            "make it narrower."
        )
    return tuple(facts)


def _fact(schema: Schema, text: str) -> Fact:
    found = _conditions(schema, text, None)
    if len(found) != 2:
        raise ConditionError(
            f"is about {len(found)} column{'' if len(found) == 1 else 's'}; a fact is about exactly two."
        )
    one, two = found
    return one, two


def _conditions(schema: Schema, text: str, types: Types | None) -> list[Condition]:
    found: dict[str, Condition] = {}
    for clause in parse_condition(text):
        condition = _condition(schema, clause, types)
        found[clause.name] = found[clause.name].both(condition) if clause.name in found else condition
    return list(found.values())


def _condition(schema: Schema, clause: Clause, types: Types | None) -> Condition:
    name, data = clause.name, schema.data
    if name not in data:
        if name in schema.columns:
            raise ConditionError(f"names the column {name!r}, which is constant or dropped: it has no data.")
        raise ConditionError(
            f"names the column {name!r}, which the schema does not have.{did_you_mean(name, list(data))}"
        )
    column = data[name]
    if column.domain.width > 1:
        raise ConditionError(f"names {name!r}, which is a place. Conditions on places cannot be expressed.")
    node = next(j for j, node in enumerate(schema.nodes) if name in node)
    at = sum(data[other].domain.width for other in schema.nodes[node][: schema.nodes[node].index(name)])
    if clause.sign in ("is", "is not"):
        missing = clause.sign == "is"
        return Condition(node, at, () if missing else (_ends(column.domain),), missing)
    storage = None if types is None else types[list(data).index(name)]
    return Condition(node, at, tuple(_intervals(column, clause, storage)))


def _inner(domain: Domain) -> Domain:
    return domain.domain if isinstance(domain, Nullable) else domain


def _ends(domain: Domain) -> Interval:
    """Return the lowest and the highest point of a column."""
    low, high = (float(side[0, 0]) for side in _inner(domain).extent(np.zeros(1, np.uint64), 0))
    return low, math.nextafter(high, low) if isinstance(_inner(domain), Circle) else high  # its end is its start again


def _intervals(column: DataColumn, clause: Clause, storage: Any) -> list[Interval]:
    """Return the points that decode to a value for which the clause is true."""
    if column.listed is None:
        return _ordered(column, clause, storage)
    if clause.sign not in ("=", "!=") and column.unordered:
        raise ConditionError(f"compares {clause.name!r} by {clause.sign}{column.unordered}")
    positions = [column.position(clause.name, value) for value in clause.values]
    return _merged([i for i in range(len(column.listed)) if _is_true(clause.sign, i, positions)])


def _is_true(sign: str, position: int, others: Sequence[int]) -> bool:
    """Say whether a comparison is true of a position."""
    if sign in ("=", "!="):
        return (position in others) == (sign == "=")
    orders = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    return bool(orders[sign](position, others[0]))


def _merged(positions: Sequence[int]) -> list[Interval]:
    """Return whole numbers as intervals of neighbours.

    Examples:
        >>> _merged([0, 1, 2, 5])
        [(0.0, 2.0), (5.0, 5.0)]
    """
    runs: list[list[float]] = []
    for position in positions:
        if runs and runs[-1][1] == position - 1:
            runs[-1][1] = float(position)
        else:
            runs.append([float(position), float(position)])
    return [(low, high) for low, high in runs]


def _ordered(column: DataColumn, clause: Clause, storage: Any) -> list[Interval]:
    """Return the intervals of a column whose values grow with its points."""
    low, high = _ends(column.domain)

    kind = column.comparable(storage)

    def value_at(point: float) -> Any:
        return column.decode(np.array([[point]]), [kind])[0][0].as_py()

    sample = value_at(low)
    bounds = [_like(clause.name, value, sample) for value in clause.values]
    reached = [_first(lambda x, b=b: value_at(x) >= b, low, high) for b in bounds]  # type: ignore[misc]
    passed = [_first(lambda x, b=b: value_at(x) > b, low, high) for b in bounds]  # type: ignore[misc]
    equal = sorted((a, _before(b)) for a, b in zip(reached, passed, strict=True) if a < b)
    pieces = {
        "=": equal,
        "!=": _without(equal, low, high),
        "<": [(low, _before(reached[0]))],
        "<=": [(low, _before(passed[0]))],
        ">": [(passed[0], high)],
        ">=": [(reached[0], high)],
    }[clause.sign]
    pieces = [(max(a, low), min(b, high)) for a, b in pieces]
    if isinstance(_inner(column.domain), Integers):  # the points that there are
        pieces = [(float(math.ceil(a)), float(math.floor(b))) for a, b in pieces if a <= b]
    return [(a, b) for a, b in pieces if a <= b]


def _first(reached: Callable[[float], bool], low: float, high: float) -> float:
    """Return the first double of [low, high] from which on something is true; infinity where it never is."""
    if reached(low):
        return low
    if not reached(high):
        return math.inf
    for _ in range(HALVINGS):
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _before(point: float) -> float:
    return math.inf if math.isinf(point) else math.nextafter(point, -math.inf)


def _without(intervals: Sequence[Interval], low: float, high: float) -> list[Interval]:
    """Return what is left of [low, high]."""
    rest, start = [], low
    for a, b in intervals:
        rest.append((start, _before(a)))
        start = math.nextafter(b, math.inf)
    return [*rest, (start, high)]


def _like(name: str, value: Value, sample: Any) -> Any:
    """Return a value that people wrote in the type of the column's own values."""
    try:
        if isinstance(sample, date | time):  # a datetime is a date
            bound = type(sample).fromisoformat(str(value))
            if getattr(bound, "tzinfo", None) is not None:  # the values are local times, which have none
                raise ValueError
            return bound
        if isinstance(value, bool):
            raise ValueError
        return float(value) if isinstance(sample, int | float) else type(sample)(str(value))
    except (TypeError, ValueError, ArithmeticError):
        example = sample.isoformat() if hasattr(sample, "isoformat") else sample
        raise ConditionError(
            f"compares {name!r} with {value!r}, which is no value of that column; one is {example!r}."
        ) from None


def _quoted(text: Any) -> str:
    return repr(text if not isinstance(text, str) or len(text) <= 80 else text[:77] + "...")

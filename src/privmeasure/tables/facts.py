"""From what people write to conditions on points: names and values of a schema, `where` and `never`.

Every column decodes points to values in one direction (numbers, dates) or to a list of values (categories), so a
comparison is a set of intervals of points: those that decode to a value for which it is true. Nothing here sees data.
"""

import contextlib
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, NoReturn

import numpy as np

from privmeasure.conditions.language import Clause, ConditionError, Shifted, Value, parse_condition
from privmeasure.conditions.orders import AnyFact, ColumnOrder, WrittenAs
from privmeasure.conditions.possible import some_row
from privmeasure.conditions.sets import Condition, Fact, Interval, all_of, part_of
from privmeasure.domains import Bools, Categories, Circle, Domain, Floats, Integers, Nullable, Points
from privmeasure.errors import ArgumentError, SchemaError
from privmeasure.tables import Schema
from privmeasure.tables.arrow import plain_type
from privmeasure.tables.columns.base import DataColumn, Types
from privmeasure.tables.columns.clock import nanoseconds
from privmeasure.tables.columns.fields import did_you_mean
from privmeasure.tables.deriving import Derivation
from privmeasure.tables.expressions import names_in
from privmeasure.tables.limits import MAX_PROBLEMS
from privmeasure.tables.orders import is_order, other_column, shift_in

MOST_TRIED_VALUES = 1 << 20
"""Of a column from which another one is derived, to find those that a comparison means."""
COMPARISONS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
"""What Arrow calls them."""
NOT_REACHED = (math.inf, math.inf)
"""Where a column turns at a value that it does not reach, or that is no number."""
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
        return _conditions(schema, text, types)
    except ConditionError as fault:
        raise ArgumentError(f"where = {_quoted(text)} {fault}") from None


@dataclass(frozen=True)
class Turns:
    """Where an ordered column turns: for each value, the first point that reaches it and the first that passes it.

    `sample` is a value of the column, in whose type values are written.
    """

    sample: Any
    places: Mapping[Any, tuple[float, float]]


@dataclass(frozen=True)
class Wanted:
    """What `where` asks for: conditions on columns, and comparisons of derived columns, which only rows can answer."""

    conditions: tuple[Condition, ...] = ()
    clauses: tuple[Clause, ...] = ()

    def holds(self, schema: Schema, points: Points) -> Bools:
        """Say which rows satisfy the comparisons of derived columns."""
        derived, fine = schema.derive(points), np.ones(len(points), bool)
        for clause in self.clauses:
            fine &= _compared(schema.derived[clause.name], derived[clause.name], clause)
        return fine


def asked(schema: Schema, text: str | None, *, types: Types | None = None) -> Wanted:
    """Return what a text asks for, of derived columns too; an ArgumentError says what is wrong.

    A comparison of a derived column that follows from one column with few values is a condition on that one: the values
    are tried, all of them. Others are left to rows.

    Examples:
        >>> from privmeasure.tables import Derived, Integer
        >>> schema = Schema({"age": Integer(17, 90), "decade": Derived("age // 10 * 10")})
        >>> asked(schema, "decade = 30").conditions
        (Condition(column=0, coordinate=0, intervals=((30.0, 39.0),), missing=False),)
    """
    if text is None:
        return Wanted()
    try:
        clauses = parse_condition(text)
        tried = {c: _enumerated(schema, c) for c in clauses if c.name in schema.derived}
        for clause in tried:  # a comparison that makes no sense is refused before any row is made
            _compared(schema.derived[clause.name], schema.derive(_no_rows(schema))[clause.name], clause)
        turns = _turns(schema, clauses, types)
        found = [tried[c] if c in tried else _condition(schema, c, turns) for c in clauses]
    except ConditionError as fault:
        raise ArgumentError(f"where = {_quoted(text)} {fault}") from None
    left = tuple(c for c, condition in tried.items() if condition is None)
    return Wanted(_joined([condition for condition in found if condition is not None]), left)


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
    problems: list[str] = []
    rules: dict[int, list[Clause]] = {}
    for i, text in enumerate(schema.never):
        with _told(text, problems):
            rules[i] = parse_condition(text)
    compared = {i for i, clauses in rules.items() if any(other_column(c, schema.columns) for c in clauses)}
    turns = _turns(schema, [c for i, clauses in rules.items() if i not in compared for c in clauses], None)
    facts: list[Fact] = []
    for i, clauses in rules.items():
        with _told(schema.never[i], problems):
            if i in compared:
                _check_order(schema, _order(schema, clauses, {}))
            else:
                facts.append(_fact(schema, clauses, turns))
        if len(problems) > MAX_PROBLEMS:
            break
    if problems:
        raise SchemaError(*problems)
    domain = schema.node_domain
    if facts and not some_row(facts, domain):
        raise SchemaError(
            "The facts of the schema (never) contradict each other: together they forbid every row. Take one out, or "
            "make it narrower."
        )
    return tuple(facts)


@contextlib.contextmanager
def _told(text: str, problems: list[str]) -> Iterator[None]:
    """Note what is wrong with a rule, and go on."""
    try:
        yield
    except ConditionError as fault:
        problems.append(f"never = {_quoted(text)} {fault}")


def facts_by_rule(schema: Schema) -> dict[str, AnyFact]:
    """Return what each rule of a schema forbids, by its text; a SchemaError says what is wrong with them."""
    pairs: Iterator[AnyFact] = iter(forbidden_pairs(schema))
    orders: Iterator[AnyFact] = iter(column_orders(schema))
    return {text: next(orders if is_order(text, schema.columns) else pairs) for text in schema.never}


def column_orders(schema: Schema, *, types: Types | None = None) -> tuple[ColumnOrder, ...]:
    """Return the orders between columns that a schema says can never be, of values as storage types have them.

    Examples:
        >>> from privmeasure.tables import Integer
        >>> schema = Schema({"low": Integer(0, 9), "high": Integer(0, 9)}, never="high < low + 2")
        >>> (order,) = column_orders(schema)
        >>> order.broken(np.array([5.0, 5.0]), np.array([3.0, 4.0]))
        array([False,  True])
    """
    rules = [parse_condition(text) for text in schema.never if is_order(text, schema.columns)]
    stored = {} if types is None else dict(zip(schema.data, types, strict=True))
    return tuple(_order(schema, clauses, stored) for clauses in rules)


def _order(schema: Schema, clauses: Sequence[Clause], stored: Mapping[str, Any]) -> ColumnOrder:
    data = schema.data
    clause = next(c for c in clauses if other_column(c, schema.columns))
    other = other_column(clause, schema.columns)
    assert other is not None
    name, sign = clause.name, clause.sign
    if len(clauses) > 1:
        raise ConditionError(f"compares {name!r} with {other.name!r} and says more. Such a comparison stands alone.")
    if other.name not in data:
        _refuse_name(schema, other.name)
    one, two = data[name], data[other.name]
    if name == other.name:
        raise ConditionError(f"compares {name!r} with itself. Name two columns.")
    if two.sort != one.sort:
        raise ConditionError(
            f"compares {name!r} ({one.tag()}) with {other.name!r} ({two.tag()}). Numbers can be compared with "
            "numbers, dates with dates, datetimes with datetimes, times with times. Put a text in single quotes."
        )
    if sign == "!=":
        raise ConditionError(
            f"leaves only rows in which {name!r} follows from {other.name!r}. Declare one of them with derive."
        )
    if getattr(one, "timezone", None) != getattr(two, "timezone", None):
        raise ConditionError(f"compares {name!r} with {other.name!r}, which is in another time zone. Use one for both.")
    for column in (one, two) if one.sort in ("datetime", "time") else ():
        if nanoseconds(getattr(column, "resolution", "1s")) % 1000:
            raise ConditionError("compares times of a resolution in nanoseconds. Use one of at least a microsecond.")
    return ColumnOrder(
        schema.places[name],
        schema.places[other.name],
        sign,
        shift_in(one, two, other),
        _written((one, two), [stored.get(name), stored.get(other.name)]),
        steady=one.steady and two.steady,
    )


def _written(columns: Sequence[DataColumn], stored: Types) -> tuple[WrittenAs, WrittenAs]:
    """Return how points become values that are written; of times, if one alone has a zone, instants of both."""
    import pyarrow as pa

    kinds = [column.natural[0] if kind is None else kind for column, kind in zip(columns, stored, strict=True)]
    if len({getattr(plain_type(kind), "tz", None) is None for kind in kinds}) > 1:
        kinds = [pa.timestamp("us", "UTC")] * 2

    def of(column: DataColumn, kind: pa.DataType) -> WrittenAs:
        return lambda points: column.written(points[:, None], kind)

    return of(columns[0], kinds[0]), of(columns[1], kinds[1])


def _check_order(schema: Schema, order: ColumnOrder) -> None:
    """Refuse an order that every row has: the ends of both columns are tried."""
    spaces = [schema.node_domain.factors[j] for j, _ in (order.one, order.two)]
    parts = [part_of(space, at)[1] for space, (_, at) in zip(spaces, (order.one, order.two), strict=True)]
    ends = np.array([(x, y) for x in _ends(parts[0]) for y in _ends(parts[1])])
    nullable = any(isinstance(part, Nullable) for part in parts)
    if order.steady and not nullable and order.broken(ends[:, 0], ends[:, 1]).all():
        raise ConditionError("forbids every row, by the bounds of the two columns. Turn the sign, or widen the bounds.")


def _fact(schema: Schema, clauses: Sequence[Clause], turns: Mapping[str, Turns]) -> Fact:
    found = _joined([_condition(schema, clause, turns) for clause in clauses])
    if len(found) != 2:
        raise ConditionError(
            f"is about {len(found)} column{'' if len(found) == 1 else 's'}; a fact is about exactly two."
        )
    one, two = found
    return one, two


def _conditions(schema: Schema, text: str, types: Types | None) -> tuple[Condition, ...]:
    clauses = parse_condition(text)
    turns = _turns(schema, clauses, types)
    return _joined([_condition(schema, clause, turns) for clause in clauses])


def _joined(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return one condition for each column."""
    found: dict[tuple[int, int], list[Condition]] = {}
    for condition in conditions:
        found.setdefault((condition.column, condition.coordinate), []).append(condition)
    return tuple(all_of(those) for those in found.values())


def _condition(schema: Schema, clause: Clause, turns: Mapping[str, Turns]) -> Condition:
    name, data = clause.name, schema.data
    if name not in data:
        _refuse_name(schema, name)
    if (other := other_column(clause, schema.columns)) is not None:
        raise ConditionError(
            f"compares {name!r} with the column {other.name!r}, which only never can. Put a text in single quotes."
        )
    if any(isinstance(value, Shifted) for value in clause.values):
        raise ConditionError(f"compares {name!r} with {clause.values[0]}; only numbers, dates and times are added to.")
    column = data[name]
    if column.domain.width > 1:
        raise ConditionError(f"names {name!r}, which is a place. Conditions on places cannot be expressed.")
    node, at = schema.places[name]
    if clause.sign in ("is", "is not"):
        missing = clause.sign == "is"
        return Condition(node, at, () if missing else (_ends(column.domain),), missing)
    return Condition(node, at, tuple(_intervals(column, clause, turns.get(name))))


def _refuse_name(schema: Schema, name: str) -> NoReturn:
    """Say why a name is none of a column with data."""
    if name in schema.derived:
        raise ConditionError(f"names the derived column {name!r}. Say it of the columns that it follows from.")
    if name in schema.columns:
        raise ConditionError(f"names the column {name!r}, which is constant or dropped: it has no data.")
    names = [*schema.data, *schema.derived]
    raise ConditionError(f"names the column {name!r}, which the schema does not have.{did_you_mean(name, names)}")


def _enumerated(schema: Schema, clause: Clause) -> Condition | None:
    """Return the condition on the one column that a derived one follows from; None for several, or many values."""
    name, needed = clause.name, {clause.name}
    while derived := needed & set(schema.derived):
        needed = (needed - derived).union(*(names_in(schema.derived[d].column.tree) for d in derived))
    varying = [other for other in needed if other in schema.data]
    if len(varying) != 1 or any(other not in schema.columns for other in needed):
        return None
    column = schema.data[varying[0]]
    if not isinstance(_inner(column.domain), Integers | Categories):
        return None
    low, high = _ends(column.domain)
    if high - low >= MOST_TRIED_VALUES:
        return None
    values = np.append(np.arange(low, high + 1), np.nan if column.nullable else low)
    points = np.repeat(_no_rows(schema, 1), len(values), axis=0)
    before = list(schema.data)[: list(schema.data).index(varying[0])]
    points[:, sum(schema.data[other].domain.width for other in before)] = values
    holds = _compared(schema.derived[name], schema.derive(points)[name], clause)
    node, at = schema.places[varying[0]]
    met = [int(value) for value in values[:-1][holds[:-1]]]
    return Condition(node, at, tuple(_merged(met)), bool(column.nullable and holds[-1]))


def _no_rows(schema: Schema, rows: int = 0) -> Points:
    """Return points for questions about the schema itself: none, or some at the first cell."""
    cells = np.zeros(rows, np.uint64)
    return schema.domain.centre(cells, 0)


def _compared(derivation: Derivation, value: Any, clause: Clause) -> Bools:
    """Say for which rows a comparison of a derived column is true; it never is of what is missing."""
    import pyarrow.compute as pc

    cells = derivation.cells(value)
    missing = np.asarray(cells.is_null().to_numpy(zero_copy_only=False), bool)
    if clause.sign in ("is", "is not"):
        return np.asarray(missing == (clause.sign == "is"), bool)
    if derivation.sort in ("boolean", "text") and clause.sign not in ("=", "!="):
        raise ConditionError(f"compares {clause.name!r} by {clause.sign}, but its values have no order. Use = or in.")
    others = [_as_sort(clause.name, derivation, other) for other in clause.values]
    found = np.zeros(len(cells), bool)
    for other in others:
        truth = pc.call_function(COMPARISONS.get(clause.sign, "equal"), [cells, other])
        found |= np.asarray(pc.fill_null(truth, False).to_numpy(zero_copy_only=False), bool)
    return np.asarray((~found if clause.sign == "!=" else found) & ~missing, bool)


def _as_sort(name: str, derivation: Derivation, value: Value) -> Any:
    """Return a value that people wrote as a scalar that derived cells can be compared with."""
    import pyarrow as pa

    sample: dict[str, Any] = {
        "date": date(2000, 1, 31),
        "datetime": datetime(2000, 1, 31, 12, 30),
        "time": time(12, 30),
        "text": "a",
        "boolean": True,
    }
    if derivation.sort == "boolean":
        if not isinstance(value, bool):
            raise ConditionError(f"compares {name!r} with {value!r}; it is true or false.")
        return pa.scalar(value)
    like = _like(name, value, sample.get(derivation.sort, 0))
    return pa.scalar(like) if derivation.sort in ("whole", "number") else pa.scalar(like, derivation.type)


def _inner(domain: Domain) -> Domain:
    return domain.domain if isinstance(domain, Nullable) else domain


def _ends(domain: Domain) -> Interval:
    """Return the lowest and the highest point of a column."""
    low, high = (float(side[0, 0]) for side in _inner(domain).extent(np.zeros(1, np.uint64), 0))
    return low, math.nextafter(high, low) if isinstance(_inner(domain), Circle) else high  # its end is its start again


def _intervals(column: DataColumn, clause: Clause, turns: Turns | None) -> list[Interval]:
    """Return the points that decode to a value for which the clause is true."""
    if turns is not None:
        return _ordered(column, clause, turns)
    assert column.listed is not None
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


def _ordered(column: DataColumn, clause: Clause, turns: Turns) -> list[Interval]:
    """Return the intervals of a column whose values grow with its points."""
    low, high = _ends(column.domain)
    bounds = [_like(clause.name, value, turns.sample) for value in clause.values]
    found = [turns.places.get(bound, NOT_REACHED) for bound in bounds]
    reached, passed = found[0]
    equal = sorted({(a, _before(b)) for a, b in found if a < b})
    pieces = {
        "=": equal,
        "!=": _without(equal, low, high),
        "<": [(low, _before(reached))],
        "<=": [(low, _before(passed))],
        ">": [(passed, high)],
        ">=": [(reached, high)],
    }[clause.sign]
    pieces = [(max(a, low), min(b, high)) for a, b in pieces]
    if isinstance(_inner(column.domain), Integers):  # the points that there are
        pieces = [(float(math.ceil(a)), float(math.floor(b))) for a, b in pieces if a <= b]
    return [(a, b) for a, b in pieces if a <= b]


def _turns(schema: Schema, clauses: Sequence[Clause], types: Types | None) -> dict[str, Turns]:
    """Return where ordered columns turn at what clauses compare them with; all values of a column are sought at once.

    A value that a column cannot have is left out: the clause that names it is refused later.
    """
    stored = {} if types is None else dict(zip(schema.data, types, strict=True))
    named: dict[str, list[Value]] = {}
    for clause in clauses:
        column = schema.data.get(clause.name)
        if column is not None and column.listed is None and column.domain.width == 1:
            named.setdefault(clause.name, []).extend(clause.values)
    return {name: _turns_of(name, schema.data[name], values, stored.get(name)) for name, values in named.items()}


def _turns_of(name: str, column: DataColumn, values: Sequence[Value], storage: Any) -> Turns:
    """Return where one column turns at some values."""
    kind, (low, high) = column.comparable(storage), _ends(column.domain)
    (sample,) = _values_at(column, kind, np.array([low]))
    read = set()
    for value in values:
        with contextlib.suppress(ConditionError):
            read.add(_like(name, value, sample))
    bounds = list(read)

    def answers(points: Floats) -> Bools:
        """Say which values are at least their bounds, and which are above them."""
        values = _values_at(column, kind, points)
        signs = [operator.ge] * len(bounds) + [operator.gt] * len(bounds)
        return np.array([sign(*pair) for sign, pair in zip(signs, zip(values, bounds * 2, strict=True), strict=True)])

    found = _firsts(answers, low, high, 2 * len(bounds), whole=isinstance(_inner(column.domain), Integers))
    return Turns(sample, dict(zip(bounds, zip(found[: len(bounds)], found[len(bounds) :], strict=True), strict=True)))


def _values_at(column: DataColumn, kind: Any, points: Floats) -> list[Any]:
    """Return the values of some points as Python has them."""
    values: list[Any] = column.decode(points[:, None], [kind])[0].to_pylist()
    return values


def _firsts(
    answers: Callable[[Floats], Bools], low: float, high: float, count: int, *, whole: bool = False
) -> list[float]:
    """Return for each of some questions the first point of [low, high] from which on it is true; infinity if none is.

    `answers` answers all of them, each at a point of its own. The points are doubles, or whole numbers alone.
    """
    below, above = np.full(count, low), np.full(count, high)
    always, never = (answers(below), ~answers(above)) if count else (np.zeros(0, bool),) * 2
    for _ in range(HALVINGS):
        middle = below + (above - below) / 2
        middle = np.floor(middle) if whole else middle
        inside = (middle != below) & (middle != above) & ~always & ~never
        if not inside.any():
            break
        yes = answers(middle)
        above, below = np.where(inside & yes, middle, above), np.where(inside & ~yes, middle, below)
    found: list[float] = np.where(always, low, np.where(never, math.inf, above)).tolist()
    return found


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
        return float(str(value)) if isinstance(sample, int | float) else type(sample)(str(value))
    except (TypeError, ValueError, ArithmeticError):
        example = sample.isoformat() if hasattr(sample, "isoformat") else sample
        raise ConditionError(
            f"compares {name!r} with {value!r}, which is no value of that column; one is {example!r}."
        ) from None


def _quoted(text: Any) -> str:
    return repr(text if not isinstance(text, str) or len(text) <= 80 else text[:77] + "...")

"""What sort of value a derived column has, and what is wrong with its expression. Nothing is computed here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

from privmeasure.tables.arrow import (
    describe_type,
    is_number,
    is_text,
    number_cells,
    plain_type,
)
from privmeasure.tables.columns.base import AnyColumn, DataColumn
from privmeasure.tables.columns.derived import Derived
from privmeasure.tables.columns.fields import did_you_mean
from privmeasure.tables.columns.fixed import Constant
from privmeasure.tables.expressions import Call, Expression, ExpressionError, Literal, names_in
from privmeasure.tables.limits import MAX_PROBLEMS

if TYPE_CHECKING:
    import pyarrow as pa

Sort = OneOf["whole", "number", "text", "boolean", "date", "datetime", "time"]
"""What a value of the language is."""
Values = Any
"""The values of all rows: floats with NaN for whole and number, an Arrow array for all other sorts."""

NUMERIC_SORTS = ("whole", "number")
DAYS = ("date", "datetime")
DATE_PARTS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "week": "iso_week",
    "dayofyear": "day_of_year",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}
"""Parts of dates and times, and what Arrow calls them."""
FUNCTIONS = (
    "+, -, *, / (a number), // and % (whole, towards minus infinity)",
    "abs, floor, ceil, round(x), round(x, digits), min, max, power(x, y), sqrt, exp, log (natural)",
    "year, quarter, month, day, week, weekday (Monday is 1), dayofyear of a date; hour, minute, second of a time",
    "date(datetime), days_between(a, b), years_between(a, b)",
    "text(x), left(text, n), concat(a, b, ...), coalesce(a, b, ...): the first that is not missing",
    "lookup(x)",
)
"""All there is, for errors and pages."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """How one derived column is computed, and what its values are."""

    column: Derived
    sort: Sort

    @property
    def type(self) -> "pa.DataType":
        """The storage type of its cells where a table has none."""
        import pyarrow as pa

        return {
            "whole": pa.int64(),
            "number": pa.float64(),
            "text": pa.string(),
            "boolean": pa.bool_(),
            "date": pa.date32(),
            "datetime": pa.timestamp("us"),
            "time": pa.time64("us"),
        }[self.sort]

    def refuses(self, type: "pa.DataType") -> str | None:
        """Say why a typed file column cannot hold the values, or return None."""
        import pyarrow.types as pt

        plain = plain_type(type)
        holds: dict[Sort, Callable[[Any], bool]] = {
            "whole": is_number,
            "number": is_number,
            "text": is_text,
            "boolean": pt.is_boolean,
            "date": lambda t: pt.is_date(t) or pt.is_timestamp(t),
            "datetime": pt.is_timestamp,
            "time": pt.is_time,
        }
        if pt.is_null(plain) or holds[self.sort](plain):
            return None
        return f"is derived as {self.sort}, got {describe_type(plain)}. Correct derive, or cast the column."

    def has_room(self, type: "pa.DataType") -> bool:
        """Say whether a storage type holds every value that may be derived, as it is: nobody declared bounds.

        Parts of dates have some: a year has four digits at most.
        """
        import pyarrow as pa

        plain, tree = plain_type(type), self.column.tree
        of_date = isinstance(tree, Call) and (tree.function in DATE_PARTS or tree.function == "weekday")
        short = [pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.uint64()] if of_date else []
        wide: dict[Sort, list[pa.DataType]] = {
            "whole": [pa.int64(), pa.float64(), *short],
            "number": [pa.float64()],
            "date": [pa.date32(), pa.date64(), *map(pa.timestamp, ("s", "ms", "us"))],
            "datetime": [pa.timestamp("us", getattr(plain, "tz", None))],
            "time": [pa.time64("us"), pa.time64("ns")],
        }
        return self.sort not in wide or plain in wide[self.sort]

    def cells(self, value: Values) -> "pa.Array":
        """Return values as cells."""
        return number_cells(value, self.type) if self.sort in NUMERIC_SORTS else value.cast(self.type)


def derivations(columns: Mapping[str, AnyColumn]) -> tuple[dict[str, Derivation], list[tuple[str, str]]]:
    """Return how the derived columns are computed, each after those that it needs, and what is wrong, by column."""
    derived = {name: column for name, column in columns.items() if isinstance(column, Derived)}
    if not derived:
        return {}, []
    known = {name: sort for title, column in columns.items() for name, sort in _sorts(title, column).items()}
    places = {name: i for i, name in enumerate(derived)}
    lacking = {name: set(names_in(column.tree)) & derived.keys() for name, column in derived.items()}
    users: dict[str, list[str]] = {name: [] for name in derived}
    for name, needed in lacking.items():
        for other in needed:
            users[other].append(name)
    found: dict[str, Derivation] = {}
    problems: list[tuple[str, str]] = []
    ready, waiting = [name for name in derived if not lacking[name]], set(derived)
    while ready:
        freed = []
        for name in ready:
            if len(problems) >= MAX_PROBLEMS:
                return found, problems
            column = derived[name]
            try:
                found[name] = Derivation(column, _sort(column.tree, known, column))
                known[name] = found[name].sort
            except ExpressionError as fault:
                problems.append((name, f"column {name!r} has derive = {column.derive[:80]!r}, which {fault}"))
            waiting.remove(name)
            for user in users[name]:
                lacking[user].remove(name)
                freed += [] if lacking[user] else [user]
        ready = sorted(freed, key=places.__getitem__)
    if waiting and not ready:
        first = min(waiting, key=places.__getitem__)
        problems.append((first, f"column {first!r} is derived from itself, through other columns perhaps."))
    return found, problems


def needed_names(found: Mapping[str, Derivation]) -> set[str]:
    """Return the columns that are not derived and that derived ones need."""
    return {name for derivation in found.values() for name in names_in(derivation.column.tree)} - set(found)


def _sorts(title: str, column: AnyColumn) -> dict[str, Sort]:
    """Return the sorts of what a column writes, by name."""
    if isinstance(column, DataColumn):
        return {n: s for n, t in zip(column.outputs(title), column.value_types, strict=True) if (s := _sort_of(t))}
    sort = _sort_of(column.natural[0]) if isinstance(column, Constant) else None
    return {title: sort} if sort else {}


def _sort_of(type: "pa.DataType") -> Sort | None:
    """Return the sort of an Arrow type, None for one that the language does not know."""
    import pyarrow.types as pt

    tests: list[tuple[Callable[[Any], bool], Sort]] = [
        (pt.is_integer, "whole"),
        (pt.is_floating, "number"),
        (is_text, "text"),
        (pt.is_boolean, "boolean"),
        (pt.is_date, "date"),
        (pt.is_timestamp, "datetime"),
        (pt.is_time, "time"),
    ]
    return next((sort for test, sort in tests if test(type)), None)


def _sort(expression: Expression, known: Mapping[str, Sort], column: Derived) -> Sort:
    """Return what an expression gives, or say why it gives nothing."""
    if isinstance(expression, Literal):
        kinds: dict[type, Sort] = {str: "text", int: "whole", float: "number"}
        return kinds[type(expression.value)]
    if not isinstance(expression, Call):
        if expression.name not in known:
            hint = did_you_mean(expression.name, list(known))
            raise ExpressionError(f"names {expression.name!r}, which is no column with values.{hint}")
        return known[expression.name]
    sorts = [_sort(part, known, column) for part in expression.parts]
    return _result(expression, sorts, column)


def _result(call: Call, sorts: Sequence[Sort], column: Derived) -> Sort:
    name, count = call.function, len(sorts)
    numeric = all(sort in NUMERIC_SORTS for sort in sorts)
    whole: Sort = "whole" if all(sort == "whole" for sort in sorts) else "number"
    literal = call.parts[-1].value if isinstance(call.parts[-1], Literal) else None
    rules: dict[str, tuple[bool, str, Sort]] = {
        "+": (numeric, "numbers", whole),
        "-": (numeric, "numbers", whole),
        "*": (numeric, "numbers", whole),
        "/": (numeric, "numbers", "number"),
        "//": (numeric, "numbers", "whole"),
        "%": (numeric, "numbers", whole),
        "abs": (count == 1 and numeric, "a number", whole),
        "floor": (count == 1 and numeric, "a number", "whole"),
        "ceil": (count == 1 and numeric, "a number", "whole"),
        "power": (count == 2 and numeric, "two numbers", "number"),
        "sqrt": (count == 1 and numeric, "a number", "number"),
        "exp": (count == 1 and numeric, "a number", "number"),
        "log": (count == 1 and numeric, "a number", "number"),
        "round": (
            numeric and (count == 1 or (count == 2 and type(literal) is int and literal <= 15)),
            "a number, and how many digits (0 to 15)",
            "whole" if count == 1 else "number",
        ),
        "min": (numeric, "numbers", whole),
        "max": (numeric, "numbers", whole),
        "weekday": (count == 1 and sorts[0] in DAYS, "a date", "whole"),
        "date": (count == 1 and sorts[0] in DAYS, "a date with a time", "date"),
        "days_between": (count == 2 and all(sort in DAYS for sort in sorts), "two dates", "whole"),
        "years_between": (count == 2 and all(sort in DAYS for sort in sorts), "two dates", "whole"),
        "text": (
            count == 1 and sorts[0] not in ("datetime", "time"),
            "a text, a number, a date, true or false",
            "text",
        ),
        "left": (count == 2 and sorts[0] == "text" and type(literal) is int, "a text, and how many letters", "text"),
        "concat": (all(sort == "text" for sort in sorts), "texts", "text"),
        "coalesce": (numeric or len(set(sorts)) == 1, "values of one sort", whole if numeric else sorts[0]),
        "lookup": (count == 1 and sorts[0] not in ("datetime", "time"), "one value", looked_up(column)),
    }
    for part in DATE_PARTS:
        clock = part in ("hour", "minute", "second")
        allowed = ("datetime", "time") if clock else DAYS
        rules[part] = (count == 1 and sorts[0] in allowed, "a time" if clock else "a date", "whole")
    if name not in rules:
        hint = " Did you mean 'log'?" if name == "ln" else did_you_mean(name, list(rules))
        raise ExpressionError(f"has the function {name!r}, which is unknown.{hint} There are: {'; '.join(FUNCTIONS)}.")
    fits, wanted, result = rules[name]
    if not fits:
        raise ExpressionError(f"gives {name} {', '.join(sorts)}; it takes {wanted}.")
    return result


def looked_up(column: Derived) -> Sort:
    """Return what a lookup gives."""
    values = list(column.lookup.values()) if isinstance(column.lookup, dict) else [""]
    if isinstance(values[0], bool):
        return "boolean"
    if isinstance(values[0], str):
        return "text"
    given = [*values, *([] if column.otherwise is None else [column.otherwise])]
    return "whole" if all(isinstance(value, int) for value in given) else "number"

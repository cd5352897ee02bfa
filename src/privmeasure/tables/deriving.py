"""Derived columns computed: what sort of value an expression gives, and the values. Total: no row raises.

A missing value gives a missing value. So do a division by zero, a result that is not finite and a whole number beyond
2^53. Everything is a function of one row, and on output it is public.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

import numpy as np

from privmeasure.domains import Bools, Floats
from privmeasure.domains.line import LARGEST_INTEGER
from privmeasure.tables.arrow import (
    describe_type,
    floats,
    is_number,
    is_text,
    nulls_where,
    number_cells,
    numbers,
    plain_type,
)
from privmeasure.tables.columns.base import AnyColumn, DataColumn
from privmeasure.tables.columns.booleans import Boolean
from privmeasure.tables.columns.clock import floor_days
from privmeasure.tables.columns.dates import Date
from privmeasure.tables.columns.derived import Derived
from privmeasure.tables.columns.fields import did_you_mean
from privmeasure.tables.columns.fixed import Constant
from privmeasure.tables.columns.times import Datetime, Time
from privmeasure.tables.expressions import Call, Expression, ExpressionError, Literal, names_in

if TYPE_CHECKING:
    import pyarrow as pa

Sort = OneOf["whole", "number", "text", "boolean", "date", "datetime", "time"]
"""What a value of the language is."""
Values = Any
"""The values of all rows: floats with NaN for whole and number, an Arrow array for all other sorts."""

LONGEST_DERIVED_TEXT = 1_000
"""Letters: longer texts are missing."""
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
    "abs, floor, ceil, round(x), round(x, digits), min, max",
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

    def cells(self, value: Values) -> "pa.Array":
        """Return values as cells."""
        return number_cells(value, self.type) if self.sort in NUMERIC_SORTS else value.cast(self.type)


def derivations(columns: Mapping[str, AnyColumn]) -> tuple[dict[str, Derivation], list[tuple[str, str]]]:
    """Return how the derived columns are computed, each after those that it needs, and what is wrong, by column."""
    known = {name: sort for title, column in columns.items() for name, sort in _sorts(title, column).items()}
    found: dict[str, Derivation] = {}
    problems: list[tuple[str, str]] = []
    waiting = {name: column for name, column in columns.items() if isinstance(column, Derived)}
    while waiting:
        ready = [name for name, column in waiting.items() if not set(names_in(column.tree)) & set(waiting)]
        if not ready:
            first = next(iter(waiting))
            problems.append((first, f"column {first!r} is derived from itself, through other columns perhaps."))
            break
        for name in ready:
            column = waiting.pop(name)
            try:
                found[name] = Derivation(column, _sort(column.tree, known, column))
                known[name] = found[name].sort
            except ExpressionError as fault:
                problems.append((name, f"column {name!r} has derive = {column.derive[:80]!r}, which {fault}"))
    return found, problems


def derive(found: Mapping[str, Derivation], cells: "Mapping[str, pa.Array]", rows: int) -> dict[str, Values]:
    """Return the values of the derived columns from the cells of all others, in the types of `value_types`."""
    values: dict[str, Values] = {name: _of_cells(array) for name, array in cells.items()}
    for name, derivation in found.items():
        value = _Rows(values, derivation.column, rows).value(derivation.column.tree)
        whole = derivation.sort == "whole"
        values[name] = np.where(np.abs(value) <= LARGEST_INTEGER, value, np.nan) if whole else value
    return {name: values[name] for name in found}


def needed_names(found: Mapping[str, Derivation]) -> set[str]:
    """Return the columns that are not derived and that derived ones need."""
    return {name for derivation in found.values() for name in names_in(derivation.column.tree)} - set(found)


# ---------------------------------------------------------------------------------------------------------------- sorts


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
        "lookup": (count == 1 and sorts[0] not in ("datetime", "time"), "one value", _looked_up(column)),
    }
    for part in DATE_PARTS:
        clock = part in ("hour", "minute", "second")
        allowed = ("datetime", "time") if clock else DAYS
        rules[part] = (count == 1 and sorts[0] in allowed, "a time" if clock else "a date", "whole")
    if name not in rules:
        hint = did_you_mean(name, list(rules))
        raise ExpressionError(f"has the function {name!r}, which is unknown.{hint} There are: {'; '.join(FUNCTIONS)}.")
    fits, wanted, result = rules[name]
    if not fits:
        raise ExpressionError(f"gives {name} {', '.join(sorts)}; it takes {wanted}.")
    return result


def _looked_up(column: Derived) -> Sort:
    values = list(column.lookup.values()) if isinstance(column.lookup, dict) else [""]
    if isinstance(values[0], bool):
        return "boolean"
    if isinstance(values[0], str):
        return "text"
    given = [*values, *([] if column.otherwise is None else [column.otherwise])]
    return "whole" if all(isinstance(value, int) for value in given) else "number"


# --------------------------------------------------------------------------------------------------------------- values


def _of_cells(array: "pa.Array") -> Values:
    """Return decoded cells as values of the language."""
    return floats(array.cast("float64", safe=False)) if is_number(array.type) else array


class _Rows:
    """Computes an expression for all rows at once."""

    def __init__(self, values: Mapping[str, Values], column: Derived, rows: int) -> None:
        self._values, self._column, self._rows = values, column, rows

    def value(self, expression: Expression) -> Values:
        import pyarrow as pa

        if isinstance(expression, Literal):
            if isinstance(expression.value, str):
                return pa.repeat(pa.scalar(expression.value), self._rows)
            return np.full(self._rows, float(expression.value))
        if not isinstance(expression, Call):
            return self._values[expression.name]
        with np.errstate(all="ignore"):
            found = self._called(expression, [self.value(part) for part in expression.parts])
        return np.where(np.isfinite(found), found, np.nan) if isinstance(found, np.ndarray) else found

    def _called(self, call: Call, parts: Sequence[Values]) -> Values:
        import pyarrow as pa
        import pyarrow.compute as pc

        name, first = call.function, parts[0]
        if name in ARITHMETIC:
            return ARITHMETIC[name](*parts)
        if name in ("min", "max"):
            return (np.minimum if name == "min" else np.maximum).reduce(list(parts))
        if name == "round":
            digits = int(parts[1][0]) if len(parts) > 1 and self._rows else 0
            return np.round(first, digits)
        if name in DATE_PARTS:
            return _floats(getattr(pc, DATE_PARTS[name])(first))
        if name == "weekday":
            return _floats(pc.day_of_week(first, count_from_zero=False))
        if name == "date":
            return _days(first)
        if name == "days_between":
            early, late = (_floats(_days(part).cast(pa.int32())) for part in parts)
            return late - early
        if name == "years_between":
            return _years_between(*(_days(part) for part in parts))
        if name == "text":
            return _texts(first)
        if name == "left":
            return pc.utf8_slice_codeunits(first, 0, int(parts[1][0]) if self._rows else 0)
        if name == "concat":
            return _concatenated(parts)
        if name == "coalesce":
            return _coalesce(parts)
        return self._look_up(_texts(first))

    def _look_up(self, keys: "pa.Array") -> Values:
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self._column.lookup
        assert isinstance(table, dict)  # what a Derived holds
        coded = keys.dictionary_encode()
        sort = _looked_up(self._column)
        type = pa.float64() if sort in NUMERIC_SORTS else pa.bool_() if sort == "boolean" else pa.string()
        found = pa.array([table.get(key, self._column.otherwise) for key in coded.dictionary.to_pylist()], type)
        values = pc.take(found, coded.indices)
        return _floats(values) if sort in NUMERIC_SORTS else values


ARITHMETIC: dict[str, Callable[..., Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
}


def _floats(array: "pa.Array") -> Floats:
    return floats(array.cast("float64"))


def _days(array: "pa.Array") -> "pa.Array":
    """Return dates, of instants the day."""
    import pyarrow as pa

    return array if pa.types.is_date32(array.type) else floor_days(array)


def _years_between(early: "pa.Array", late: "pa.Array") -> Floats:
    """Return how many whole years have passed: birthdays, the 29th of February being over on the 1st of March."""
    import pyarrow.compute as pc

    (y0, m0, d0), (y1, m1, d1) = (
        tuple(_floats(part(days)) for part in (pc.year, pc.month, pc.day)) for days in (early, late)
    )
    before = (m1 < m0) | ((m1 == m0) & (d1 < d0))
    return np.asarray(y1 - y0 - before, np.float64)


def _concatenated(parts: "Sequence[pa.Array]") -> "pa.Array":
    """Return texts one after the other; missing where that would be too long, so that no schema fills the memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = np.sum([_floats(pc.utf8_length(part)) for part in parts], axis=0)
    fits = pa.array(lengths <= LONGEST_DERIVED_TEXT)
    kept = [pc.if_else(fits, part, pa.scalar(None, part.type)) for part in parts]
    return pc.binary_join_element_wise(*kept, "")


def _coalesce(parts: Sequence[Values]) -> Values:
    import pyarrow.compute as pc

    if not isinstance(parts[0], np.ndarray):
        return pc.coalesce(*parts)
    found = parts[0]
    for part in parts[1:]:
        found = np.where(np.isnan(found), part, found)
    return found


def _texts(value: Values) -> "pa.Array":
    """Return values as texts; a number that is whole without a point."""
    import pyarrow as pa

    if not isinstance(value, np.ndarray):
        return value.cast(pa.string())
    missing = np.isnan(value)
    if (missing | (np.abs(value) <= LARGEST_INTEGER) & (np.floor(value) == value)).all():
        return nulls_where(np.where(missing, 0, value).astype(np.int64), missing, pa.int64()).cast(pa.string())
    return pa.array(
        [None if np.isnan(v) else str(int(v)) if v.is_integer() else repr(v) for v in value.tolist()], pa.string()
    )


# ----------------------------------------------------------------------------------------------------- what a table has


def differs(derivation: Derivation, value: Values, real: "pa.Array") -> Bools:
    """Say for which rows the table has another value than the one that is derived. CONFIDENTIAL."""
    import pyarrow as pa

    made = derivation.cells(value)
    if derivation.sort == "text":
        texts = (
            real.cast(pa.string())
            if not pa.types.is_dictionary(real.type)
            else real.cast(real.type.value_type).cast(pa.string())
        )
        one, two = (np.asarray(array.to_numpy(zero_copy_only=False), object) for array in (made, texts))
        return np.asarray(one != two, bool)
    reader = _reader(derivation.sort)
    one, two = (reader(array) for array in (made, real))
    same = np.isclose(one, two, rtol=1e-9, atol=1e-12) | (np.isnan(one) & np.isnan(two))
    return np.asarray(~same, bool)


def _reader(sort: Sort) -> "Callable[[pa.Array], Floats]":
    """Return how cells of any type are read as a sort: by the kinds of columns that know it."""
    if sort in NUMERIC_SORTS:
        return numbers
    columns: dict[Sort, DataColumn] = {
        "boolean": Boolean(nullable=True),
        "date": Date("0001-01-01", "9999-12-31", nullable=True),
        "datetime": Datetime("1700-01-01", "2200-12-31", resolution="1s", nullable=True),
        "time": Time(resolution="1s", nullable=True),
    }
    return lambda array: columns[sort].encode([array])[:, 0]

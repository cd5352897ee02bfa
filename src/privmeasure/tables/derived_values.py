"""The values of derived columns, for all rows at once. Total: no row raises, and none depends on another.

A missing value gives a missing value. So do a division by zero, a result that is not finite, a whole number beyond 2^53
and a text of more than a thousand letters. On output all of it is public.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from privmeasure.domains import Bools, Floats
from privmeasure.domains.line import LARGEST_INTEGER
from privmeasure.tables.arrow import by_distinct, floats, is_number, nulls_where
from privmeasure.tables.columns.base import DataColumn
from privmeasure.tables.columns.booleans import Boolean
from privmeasure.tables.columns.categories import Category
from privmeasure.tables.columns.clock import floor_days
from privmeasure.tables.columns.dates import Date
from privmeasure.tables.columns.derived import Derived
from privmeasure.tables.columns.numbers import Number
from privmeasure.tables.columns.times import Datetime, Time
from privmeasure.tables.deriving import DATE_PARTS, NUMERIC_SORTS, Derivation, Sort, Values, looked_up
from privmeasure.tables.expressions import Call, Expression, Literal

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_DERIVED_TEXT = 1_000
"""Letters: longer texts are missing."""


def derive(found: Mapping[str, Derivation], cells: "Mapping[str, pa.Array]", rows: int) -> dict[str, Values]:
    """Return the values of the derived columns from the cells of all others, in the types of `value_types`."""
    values: dict[str, Values] = {name: _of_cells(array) for name, array in cells.items()}
    for name, derivation in found.items():
        value = _Rows(values, derivation.column, rows).value(derivation.column.tree)
        whole = derivation.sort == "whole"
        values[name] = np.where(np.abs(value) <= LARGEST_INTEGER, value, np.nan) if whole else value
    return {name: values[name] for name in found}


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
        sort = looked_up(self._column)
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
    "power": lambda x, y: np.power(x, y) + 0 * (x + y),  # what is missing stays so: NaN to the power of 0 would be 1
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
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


def differs(derivation: Derivation, value: Values, real: "pa.Array") -> Bools:
    """Say for which rows the table has another value than the one that is derived. CONFIDENTIAL."""
    made = derivation.cells(value)
    column = _reader(derivation.sort, made)
    one, two = (by_distinct(array, lambda plain: column.read(plain, 0)) for array in (made, real))
    # each row by itself: one huge value must not hide what is wrong with the others
    same = np.isclose(one, two, rtol=_digits(real.type), atol=1e-15) | (np.isnan(one) & np.isnan(two))
    return np.asarray(~same, bool)


def _digits(type: "pa.DataType") -> float:
    """Return how near numbers of a storage type must be to be the same: a narrow one has rounded them."""
    import pyarrow.types as pt

    return 1e-3 if pt.is_float16(type) else 1e-6 if pt.is_float32(type) else 1e-9


def _reader(sort: Sort, made: "pa.Array") -> DataColumn:
    """Return the kind of column that reads cells of a sort, of any type; of texts, those that were made."""
    match sort:
        case "text":
            return Category(tuple(made.unique().drop_null().to_pylist()) or ("",))
        case "boolean":
            return Boolean()
        case "date":
            return Date("0001-01-01", "9999-12-31")
        case "datetime":
            return Datetime("1700-01-01", "2200-12-31", resolution="1s")
        case "time":
            return Time(resolution="1s")
    return Number(-1e300, 1e300)

"""Rules that compare two columns, as people write them: "discharged < admitted", "paid < billed + 30". Public.

A word stands for another column where it names one and the column before the sign is a number, a date or a time. The
values of a category stay values.
"""

from collections.abc import Mapping

from privmeasure.conditions.language import SHIFT, Clause, ConditionError, Shifted, Word, parse_condition, shifted
from privmeasure.tables.columns.base import AnyColumn, DataColumn

DAY_UNITS = {"": 1, "d": 1, "day": 1, "days": 1, "week": 7, "weeks": 7}
MICROSECONDS = 10**6
"""Of a second: dates with times are compared in them."""
TIME_UNITS = {
    "us": 1,
    "ms": 1000,
    **dict.fromkeys(("s", "sec", "second", "seconds"), MICROSECONDS),
    **dict.fromkeys(("min", "minute", "minutes"), 60 * MICROSECONDS),
    **dict.fromkeys(("h", "hour", "hours"), 3600 * MICROSECONDS),
    **dict.fromkeys(("d", "day", "days"), 86400 * MICROSECONDS),
    **dict.fromkeys(("week", "weeks"), 7 * 86400 * MICROSECONDS),
}


def other_column(clause: Clause, columns: Mapping[str, AnyColumn]) -> Shifted | None:
    """Return the column that a clause compares with, and how it is shifted; None where it compares with values.

    Examples:
        >>> from privmeasure.tables import Date
        >>> stay = {"admitted": Date("2020-01-01", "2029-12-31"), "discharged": Date("2020-01-01", "2029-12-31")}
        >>> (clause,) = parse_condition("discharged < admitted + 2 days")
        >>> other_column(clause, stay)
        Shifted(name='admitted', by=2, unit='days')
    """
    column = columns.get(clause.name)
    if not isinstance(column, DataColumn) or not column.sort or len(clause.values) != 1:
        return None
    (value,) = clause.values
    if isinstance(value, Shifted):
        return value
    if not isinstance(value, Word):
        return None
    if value in columns:
        return Shifted(str(value), 0)
    found = SHIFT.search(value)  # billed+30
    if found is not None and found.end() == len(value) and value[: found.start()] in columns:
        return shifted(value[: found.start()], found)
    return None


def is_order(rule: str, columns: Mapping[str, AnyColumn]) -> bool:
    """Say whether a rule compares two columns; one that cannot be read does not."""
    try:
        return any(other_column(clause, columns) is not None for clause in parse_condition(rule))
    except ConditionError:
        return False


def rule_names(rule: str, columns: Mapping[str, AnyColumn]) -> set[str]:
    """Return the columns that a rule names; one that cannot be read names none, so that it is kept and told of."""
    try:
        clauses = parse_condition(rule)
    except ConditionError:
        return set()
    others = [other_column(clause, columns) for clause in clauses]
    return {clause.name for clause in clauses} | {other.name for other in others if other is not None}


def shift_in(one: DataColumn, two: DataColumn, by: Shifted) -> float:
    """Return how far a column is shifted, in what values of its sort are compared in; or say what is wrong."""
    if one.sort == "number":
        units = [unit for column in (one, two) if (unit := getattr(column, "unit", None))]
        if by.unit and by.unit not in (*units, *(f"{unit}s" for unit in units)):
            raise ConditionError(
                f"adds {by.by:g} {by.unit!r} to {by.name!r}: leave the unit out, numbers have their own."
            )
        return by.by
    known = DAY_UNITS if one.sort == "date" else TIME_UNITS
    if by.by and by.unit.lower() not in known:
        listed = "day, days, week" if one.sort == "date" else "s, min, h, day"
        raise ConditionError(
            f"adds {by.by:g} {by.unit}".rstrip() + f" to {by.name!r}: say a unit, one of {listed}, like "
            f'"{by.name} + {abs(by.by):g} {"days" if one.sort == "date" else "min"}".'
        )
    length = by.by * known.get(by.unit.lower(), 1)
    if length != round(length):
        raise ConditionError(f"adds {by.by:g} {by.unit} to {by.name!r}, which is no whole number of them. Round it.")
    return round(length)

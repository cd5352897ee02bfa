"""What is wrong with a declaration, and the words for it: fields of a column that a person wrote. Public."""

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from privmeasure.errors import SchemaError
from privmeasure.tables.limits import MAX_HINT_LENGTH, MAX_HINT_NAMES

MOST_TOLD = 12
"""Problems of a schema file that one error lists: with what to write they fit on a screen."""


class ColumnError(SchemaError):
    """Something wrong with one column, told as a predicate ("has low = 9 ...") that its name can be put before."""

    def __init__(self, predicate: str, field: str = "") -> None:
        """Take the predicate and the field that it is about, by which a file's line is found."""
        super().__init__(f"A column {predicate}")
        self.predicate, self.field = predicate, field


class UnfilledError(ColumnError):
    """A column of a template in which something is still to be filled in: `gaps` says for each field what to write."""

    def __init__(self, gaps: Mapping[str, str]) -> None:
        """Take the fields with a gap."""
        super().__init__(f"still has to be filled in: {', '.join(gaps)}.", next(iter(gaps)))
        self.gaps = dict(gaps)


def told_on_a_screen(
    problems: Sequence[str], gaps: Mapping[str, str], *, most: int = MOST_TOLD, name: str = ""
) -> list[str]:
    """Return the first problems, how many more there are, and what to write into the gaps, each said once.

    Examples:
        >>> told_on_a_screen(["a", "b", "c"], {"low": "the smallest value"}, most=2)
        ['a', 'b', 'And 1 more of the kind.', 'What to write: low: the smallest value.']
    """
    told, more = list(problems[:most]), len(problems) - most
    if more > 0:
        told.append(f"And {more} more of the kind.")
    if gaps:
        file = name.endswith(".toml")
        asks = f" `privmeasure schema edit {name}` asks for all of it, one by one." if file else ""
        told.append("What to write: " + "; ".join(f"{gap}: {what}" for gap, what in gaps.items()) + f".{asks}")
    return told


def number_field(column: Any, field: str) -> float:
    """Check that a field is a finite number, keep it as a float, and return it."""
    value = getattr(column, field)
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ColumnError(f"has {field} = {value!r}; it must be a number.", field) from None
    if not math.isfinite(number):
        raise ColumnError(
            f"has {field} = {value}; it must be finite. Bounds are public: choose one that is surely enough.", field
        )
    msgspec.structs.force_setattr(column, field, number)
    return number


def has_half_characters(texts: Iterable[Any]) -> bool:
    """Say whether a declared text has half a character, which no file holds; a private row would be first to raise.

    Examples:
        >>> has_half_characters(["ü", 1]), has_half_characters(["\\ud800"])
        (False, True)
    """
    try:
        "".join(text for text in texts if isinstance(text, str)).encode()
    except UnicodeEncodeError:
        return True
    return False


def decimals_field(column: Any) -> None:
    """Check `decimals`: None, or a whole number from 0 to 15."""
    value = column.decimals
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 15):
        raise ColumnError(f"has decimals = {value!r}; write a whole number from 0 to 15, or leave it out.", "decimals")


def low_below_high(column: Any, *, equal: bool = False) -> None:
    """Check low < high (or <=)."""
    if not (column.low <= column.high if equal else column.low < column.high):
        low, high = (show_value(value) for value in (column.low, column.high))
        if column.low > column.high:
            raise ColumnError(f"has low = {low} and high = {high}; low must be below high. Swap them.", "low")
        raise ColumnError(
            f'has low = high = {low}; low must be below high. Widen the bounds, or declare type = "constant".', "low"
        )


def show_value(value: Any) -> str:
    """Return a declared (public) value as a schema file would show it."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return (
        value.isoformat()
        if hasattr(value, "isoformat")
        else str(value)
        if isinstance(value, int | float)
        else repr(value)
    )


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return " Did you mean 'x'?" for the known word that is nearest, or nothing.

    Examples:
        >>> did_you_mean("heigth", ["height", "weight"])
        " Did you mean 'height'?"
        >>> did_you_mean("x", ["height", "weight"])
        ''
    """
    if len(word) > MAX_HINT_LENGTH:  # comparing two long texts takes time for every two of their letters
        return ""
    likely = [name for name in known if len(name) <= MAX_HINT_LENGTH][:MAX_HINT_NAMES]
    lowered = {name.lower(): name for name in reversed(likely)}
    close = get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return f" Did you mean {lowered[close[0]]!r}?" if close else ""


def plural(count: float, unit: str) -> str:
    """Return a count with its unit; floats are rounded to two digits.

    Examples:
        >>> plural(12.4, "year"), plural(1, "day"), plural(0.034, "degree"), plural(20015.0, "mile"), plural(256, "day")
        ('12 years', '1 day', '0.034 degrees', '20,000 miles', '256 days')
    """
    text = (
        f"{count:,}" if isinstance(count, int) else f"{count:.2g}" if count < 99.5 else f"{float(f'{count:.2g}'):,.0f}"
    )
    return f"{text} {unit}{'' if text == '1' else 's'}" if unit else text

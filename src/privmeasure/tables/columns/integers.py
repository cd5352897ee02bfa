"""Integers, evenly spaced or stretched for heavy tails."""

import math
import operator
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from privmeasure.domains import Box, Domain, Floats, Integers, Points
from privmeasure.domains.line import LARGEST_INTEGER
from privmeasure.tables.arrow import is_number, number_cells, numbers, plain_type, round_within
from privmeasure.tables.columns.base import Foreign, Types
from privmeasure.tables.columns.fields import ColumnError, low_below_high, plural
from privmeasure.tables.columns.numbers import Numeric, Unit, bounds_of, check_breaks, check_numeric, holds_integers
from privmeasure.tables.columns.stretch import Stretch

if TYPE_CHECKING:
    import pyarrow as pa


class Integer(Numeric, frozen=True, tag="integer"):
    """An integer of [low, high], both included; other numbers are rounded and clamped.

    `transform` and `breaks` are those of `Number`; a break is the first integer of a stretch.

    Examples:
        >>> import pyarrow as pa
        >>> Integer(17, 90).encode([pa.array(["37", "16", "old"])])[:, 0]
        array([37., 17., 17.])
        >>> Integer(17, 90, unit="year").fineness(3)
        'about 16 years'
    """

    whole = True
    guide = ("low, high", 'ages, counts; unit = "year" makes plans easier to read')
    stored = ("integer",)
    caution = 'Codes: type = "category". Identifiers: type = "drop".'

    low: Annotated[
        int, Meta(description="The smallest integer that may occur. Public: from knowledge, not from the data.")
    ]
    high: Annotated[int, Meta(description="The largest integer that may occur; larger ones are clamped to it.")]
    unit: Unit = None

    def __post_init__(self) -> None:
        """Check everything that is declared, before any data are touched."""
        self._check_common()
        check_numeric(self)
        for field in ("low", "high"):
            _integer_field(self, field)
        low_below_high(self)
        check_breaks(self)
        if self.transform == "log" and self.low < 1:
            raise ColumnError(
                f'has transform = "log" and low = {self.low}; a logarithm needs low of at least 1. Raise low (smaller '
                "values are clamped to it), or use breaks instead.",
                "low",
            )

    @cached_property
    def domain(self) -> Domain:
        """The integers, or the interval of the axis on which they are stretched."""
        return self._or_missing(Box([self.stretch.bounds]) if self.curved else Integers(self.low, self.high))

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """64-bit integers."""
        import pyarrow as pa

        return (pa.int64(),)

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return the numbers, rounded to integers."""
        with np.errstate(all="ignore"):  # a warning would tell of a signalling NaN
            return np.rint(numbers(array))

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Undo the stretching and round to the nearest integer."""
        import pyarrow as pa

        axis = self.stretch.values(np.ascontiguousarray(points[:, 0]))
        plain = None if types[0] is None else plain_type(types[0])
        if plain is not None and (is_number(plain) or pa.types.is_duration(plain)):
            return [number_cells(np.clip(np.rint(axis), self.low, self.high), plain)]
        missing = np.isnan(axis)
        return [pa.array(round_within(axis, self.low, self.high), mask=missing if missing.any() else None)]

    @property
    def steepness(self) -> float:
        """Without bound where whole numbers are stretched: rounding after the stretching jumps."""
        return math.inf if self.curved else 1.0

    @cached_property
    def stretch(self) -> Stretch:
        """How the values are stretched before they are cut."""
        # half a unit of room at both ends, so that the first and the last integer get as much of it as the others
        low, high = self.low - 0.5, self.high + 0.5
        starts = {b - 0.5 for b in self.breaks or () if self.low < b <= self.high}
        breaks = None if self.breaks is None else np.array(sorted({low, *starts, high}), np.float64)
        return Stretch(low, high, log=self.transform == "log", breaks=breaks)

    def cell_size(self, cuts: int) -> str:
        """Say how many integers a cell holds."""
        if not self.curved:
            fullest = round(Integers(self.low, self.high).diameter(cuts) * (self.high - self.low)) + 1
            return "single values" if fullest == 1 else f"about {plural(fullest, self.unit or '')}"
        if self.stretch.widest(cuts) <= 1:
            return "single values"
        return self.stretch.cell_size(cuts, self.unit or "", whole=True)

    @classmethod
    def recognized(cls, field: Foreign) -> dict[str, Any] | None:
        """Take over bounds."""
        return bounds_of(field) if holds_integers(field) and field.values is None else None


def _integer_field(column: Integer, field: str) -> None:
    value = getattr(column, field)
    try:
        if isinstance(value, bool):
            raise TypeError
        whole_number = operator.index(int(value) if isinstance(value, float) and value.is_integer() else value)
    except (TypeError, ValueError, OverflowError):
        hint = ' Use type = "number" for other numbers.' if isinstance(value, float) else ""
        raise ColumnError(f"has {field} = {value!r}; it must be a whole number.{hint}", field) from None
    if abs(whole_number) > LARGEST_INTEGER:
        raise ColumnError(
            f"has {field} = {whole_number}, beyond 2^53, where doubles no longer tell integers apart. Use a smaller "
            'bound, or declare identifiers as type = "drop".',
            field,
        )
    msgspec.structs.force_setattr(column, field, whole_number)

"""Numbers and integers, evenly spaced or stretched for heavy tails."""

import math
import operator
from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from privmeasure.domains import Box, Domain, Floats, Integers, Nullable, Points
from privmeasure.domains.scales import Clamped, Filled, Reading, Rounded, Step, Stretched
from privmeasure.errors import ArgumentError
from privmeasure.tables.arrow import described, is_double, is_number, number_cells, numbers, plain_type, whole
from privmeasure.tables.columns.axes import Axis
from privmeasure.tables.columns.base import (
    ColumnError,
    DataColumn,
    Types,
    decimals_field,
    low_below_high,
    number_field,
    plural,
    shown,
)

if TYPE_CHECKING:
    import pyarrow as pa

MOST_UNEVEN, SHORTEST = 1e15, 1e-300
"""How much longer than the shortest stretch between breaks the longest may be, and how short a stretch may be: doubles
have 16 digits, and few of them below 1e-308."""
LARGEST = 1 << 53
"""Beyond it, doubles skip integers."""

Low = Annotated[
    float, Meta(description="The smallest value that may occur. Public: from knowledge, not from the data.")
]
High = Annotated[float, Meta(description="The largest value that may occur; larger ones are clamped to it.")]
Transform = Annotated[
    Literal["log"] | None,
    Meta(description='"log": tell values apart by their ratio instead of their difference. Needs low above 0.'),
]
Breaks = Annotated[
    tuple[float, ...] | None,
    Meta(
        description="Values between low and high; each stretch between two of them gets an equal share of the detail."
    ),
]
Decimals = Annotated[int | None, Meta(description="Digits after the decimal point in the output.")]
Unit = Annotated[str | None, Meta(description='What the numbers count, for plans and reports: "year".')]


class Number(DataColumn, frozen=True, tag="number"):
    """A number of [low, high].

    Two numbers are as far apart as their difference over high - low. For heavy tails such as incomes,
    `transform="log"` compares by ratio, and `breaks` gives each stretch between two breaks an equal share of the
    distance 1: Number(0, 1e6, breaks=[1e3, 1e4, 1e5]) tells 200 from 400 about as well as 20,000 from 40,000.
    Values beyond the bounds are clamped. `decimals` rounds the output, which stays within the bounds.

    Examples:
        >>> import pyarrow as pa
        >>> Number(0, 10, nullable=True).encode([pa.array(["2.5", "x", "99"])])[:, 0]
        array([ 2.5,  nan, 10. ])
        >>> Number(0, 1000, breaks=[10, 100]).encode([pa.array([5, 55, 1000])])[:, 0]
        array([0.5, 1.5, 3. ])
    """

    low: Low
    high: High
    transform: Transform = None
    breaks: Breaks = None
    decimals: Decimals = None
    unit: Unit = None

    def __post_init__(self) -> None:
        """Check everything that is declared, before any data are touched."""
        self._check_common()
        _check_numeric(self)
        number_field(self, "low"), number_field(self, "high")
        low_below_high(self)
        decimals_field(self)
        if self.decimals is not None and _lattice(self, self.decimals) is None:
            raise ColumnError(
                f"has decimals = {self.decimals}, but no such number lies between low = {shown(self.low)} and "
                f"high = {shown(self.high)}. Allow more decimals, or widen the bounds.",
                "decimals",
            )
        _check_breaks(self)
        if self.transform == "log" and self.low <= 0:
            raise ColumnError(
                f'has transform = "log" and low = {shown(self.low)}; a logarithm needs low above 0. Raise low to the '
                "smallest amount that matters (smaller values are clamped to it), or use breaks instead.",
                "low",
            )
        try:
            self.domain  # noqa: B018
        except ArgumentError as error:
            raise ColumnError(f"has low = {shown(self.low)} and high = {shown(self.high)}: {error}", "low") from None

    @cached_property
    def domain(self) -> Domain:
        """An interval: of the values, or of the axis on which they are stretched."""
        return _nullable(self, Box([self.axis.bounds]))

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """Doubles."""
        import pyarrow as pa

        return (pa.float64(),)

    def refuses(self, type: "pa.DataType") -> str | None:
        """Refuse whatever is no number."""
        return _refuses_other_than_numbers(type)

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return the numbers themselves."""
        return numbers(array)

    def settle(self, readings: Sequence[Floats]) -> Points:
        """Clamp, then stretch."""
        return self.axis.place(_clamped(readings[0], self.low, self.high, self.nullable))[:, None]

    def readings(self, types: Types, first: int = 0) -> tuple[Reading, ...] | None:
        """Return the number, clamped and stretched."""
        return _readings(self, types, first, Clamped(self.low, self.high))

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        """Count the numbers beyond the bounds."""
        return int(np.count_nonzero((reading < self.low) | (reading > self.high))), 0

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Undo the stretching, round, and keep within the bounds."""
        plain = None if types[0] is None else plain_type(types[0])
        values = self.axis.values(np.ascontiguousarray(points[:, 0]))
        decimals = _storage_decimals(plain, self.decimals)
        if decimals is not None and (ends := _lattice(self, decimals)) is not None:
            values = _rounded(values, decimals, *ends)
        return [number_cells(values, plain)]

    def comparable(self, storage: "pa.DataType | None") -> "pa.DataType | None":
        """Return the stored type, if that is a number: it may round values."""
        return storage if storage is not None and is_number(plain_type(storage)) else self.natural[0]

    def averages(self, points: Points) -> Floats:
        """Return the values themselves."""
        return numbers(self.decode(points, [None])[0]) if self.curved else points[:, 0]

    @property
    def curved(self) -> bool:
        """Whether values are stretched before they are cut."""
        return self.transform is not None or self.breaks is not None

    @property
    def steepness(self) -> float:
        """The widest gap between two knots of the axis."""
        return float(self.axis.steepest)

    @cached_property
    def axis(self) -> Axis:
        """How the values are stretched before they are cut."""
        breaks = None if self.breaks is None else np.array(sorted({self.low, *self.breaks, self.high}), np.float64)
        return Axis(self.low, self.high, log=self.transform == "log", breaks=breaks)

    def cell_size(self, cuts: int) -> str:
        """Say the width of a cell."""
        return self.axis.cell_size(cuts, self.unit or "")


class Integer(DataColumn, frozen=True, tag="integer"):
    """An integer of [low, high], both included; other numbers are rounded and clamped.

    `transform` and `breaks` are those of `Number`; a break is the first integer of a stretch.

    Examples:
        >>> import pyarrow as pa
        >>> Integer(17, 90).encode([pa.array(["37", "16", "old"])])[:, 0]
        array([37., 17., 17.])
        >>> Integer(17, 90, unit="year").fineness(3)
        'about 16 years'
    """

    low: Annotated[
        int, Meta(description="The smallest integer that may occur. Public: from knowledge, not from the data.")
    ]
    high: Annotated[int, Meta(description="The largest integer that may occur; larger ones are clamped to it.")]
    transform: Transform = None
    breaks: Breaks = None
    unit: Unit = None

    def __post_init__(self) -> None:
        """Check everything that is declared, before any data are touched."""
        self._check_common()
        _check_numeric(self)
        for field in ("low", "high"):
            _integer_field(self, field)
        low_below_high(self)
        _check_breaks(self)
        if self.transform == "log" and self.low < 1:
            raise ColumnError(
                f'has transform = "log" and low = {self.low}; a logarithm needs low of at least 1. Raise low (smaller '
                "values are clamped to it), or use breaks instead.",
                "low",
            )

    @cached_property
    def domain(self) -> Domain:
        """The integers, or the interval of the axis on which they are stretched."""
        if self.transform is None and self.breaks is None:
            return _nullable(self, Integers(self.low, self.high))
        return _nullable(self, Box([self.axis.bounds]))

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """64-bit integers."""
        import pyarrow as pa

        return (pa.int64(),)

    def refuses(self, type: "pa.DataType") -> str | None:
        """Refuse whatever is no number."""
        return _refuses_other_than_numbers(type)

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return the numbers, rounded to integers."""
        with np.errstate(all="ignore"):  # a warning would tell of a signalling NaN
            return np.rint(numbers(array))

    def settle(self, readings: Sequence[Floats]) -> Points:
        """Clamp, then stretch."""
        return self.axis.place(_clamped(readings[0], self.low, self.high, self.nullable))[:, None]

    def readings(self, types: Types, first: int = 0) -> tuple[Reading, ...] | None:
        """Return the number, clamped, rounded and stretched."""
        return _readings(self, types, first, Clamped(self.low, self.high), Rounded())

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        """Count the integers beyond the bounds."""
        return int(np.count_nonzero((reading < self.low) | (reading > self.high))), 0

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Undo the stretching and round to the nearest integer."""
        import pyarrow as pa

        axis = self.axis.values(np.ascontiguousarray(points[:, 0]))
        plain = None if types[0] is None else plain_type(types[0])
        if plain is not None and is_number(plain):
            return [number_cells(np.clip(np.rint(axis), self.low, self.high), plain)]
        missing = np.isnan(axis)
        return [pa.array(whole(axis, self.low, self.high), mask=missing if missing.any() else None)]

    def comparable(self, storage: "pa.DataType | None") -> "pa.DataType | None":
        """Return the stored type, if that is a number: it may round values."""
        return storage if storage is not None and is_number(plain_type(storage)) else self.natural[0]

    def averages(self, points: Points) -> Floats:
        """Return the values themselves."""
        return numbers(self.decode(points, [None])[0]) if self.curved else points[:, 0]

    @property
    def curved(self) -> bool:
        """Whether values are stretched before they are cut."""
        return self.transform is not None or self.breaks is not None

    @property
    def steepness(self) -> float:
        """Without bound where whole numbers are stretched: rounding after the stretching jumps."""
        return math.inf if self.curved else 1.0

    @cached_property
    def axis(self) -> Axis:
        """How the values are stretched before they are cut."""
        # half a unit of room at both ends, so that the first and the last integer get as much of it as the others
        low, high = self.low - 0.5, self.high + 0.5
        starts = {b - 0.5 for b in self.breaks or () if self.low < b <= self.high}
        breaks = None if self.breaks is None else np.array(sorted({low, *starts, high}), np.float64)
        return Axis(low, high, log=self.transform == "log", breaks=breaks)

    def cell_size(self, cuts: int) -> str:
        """Say how many integers a cell holds."""
        if self.transform is None and self.breaks is None:
            fullest = round(Integers(self.low, self.high).diameter(cuts) * (self.high - self.low)) + 1
            return "single values" if fullest == 1 else f"about {plural(fullest, self.unit or '')}"
        if self.axis.widest(cuts) <= 1:
            return "single values"
        return self.axis.cell_size(cuts, self.unit or "", whole=True)


def _nullable(column: DataColumn, domain: Domain) -> Domain:
    return Nullable(domain) if column.nullable else domain


def _readings(column: "Number | Integer", types: Types, first: int, *steps: Step) -> tuple[Reading, ...] | None:
    if not is_double(types[0]):
        return None
    reading = Reading(first, steps if column.nullable else (Filled(column.low), *steps))
    knots = column.axis.knots
    return (reading if knots is None else reading.then(Stretched(knots)),)


def _clamped(values: Floats, low: float, high: float, nullable: bool) -> Floats:
    with np.errstate(all="ignore"):  # a warning would tell that an odd value is there
        clamped = np.clip(values, low, high)  # NaN, the missing, stays
        # not fmax: a signalling NaN is low in the middle of its loop, and NaN in the last few rows
        return clamped if nullable else np.where(np.isnan(clamped), low, clamped)


def _check_numeric(column: "Number | Integer") -> None:
    if column.transform not in (None, "log"):
        raise ColumnError(f'has transform = {column.transform!r}; write "log", or leave it out.', "transform")
    if column.transform is not None and column.breaks is not None:
        raise ColumnError("has both transform and breaks. Keep one of them.", "breaks")
    if column.unit is not None and not isinstance(column.unit, str):
        raise ColumnError(f'has unit = {column.unit!r}; write a word like "year".', "unit")


def _check_breaks(column: "Number | Integer") -> None:
    if column.breaks is None:
        return
    try:
        breaks = tuple(float(b) for b in column.breaks)
    except (TypeError, ValueError, OverflowError):
        raise ColumnError(f"has breaks = {column.breaks!r}; write a list of numbers.", "breaks") from None
    inner = [b for b in breaks if column.low < b < column.high]
    if not inner or any(not column.low <= b <= column.high for b in breaks):
        raise ColumnError(
            f"has breaks that are not between low = {shown(column.low)} and high = {shown(column.high)}. Give at least "
            "one value between them.",
            "breaks",
        )
    if any(b >= c for b, c in pairwise(breaks)):
        raise ColumnError("has breaks that do not increase. Sort them, and write each of them once.", "breaks")
    knots = sorted({float(column.low), *inner, float(column.high)})
    gaps = [b - a for a, b in pairwise(knots)]
    if max(gaps) > MOST_UNEVEN * min(gaps) or not math.isfinite(knots[-1] - knots[0]) or min(gaps) < SHORTEST:
        raise ColumnError("has breaks that are too uneven for doubles to tell the values of a stretch apart.", "breaks")
    msgspec.structs.force_setattr(column, "breaks", breaks)


def _integer_field(column: Integer, field: str) -> None:
    value = getattr(column, field)
    try:
        if isinstance(value, bool):
            raise TypeError
        whole_number = operator.index(int(value) if isinstance(value, float) and value.is_integer() else value)
    except (TypeError, ValueError, OverflowError):
        hint = ' Use type = "number" for other numbers.' if isinstance(value, float) else ""
        raise ColumnError(f"has {field} = {value!r}; it must be a whole number.{hint}", field) from None
    if abs(whole_number) > LARGEST:
        raise ColumnError(
            f"has {field} = {whole_number}, beyond 2^53, where doubles no longer tell integers apart. Use a smaller "
            'bound, or declare identifiers as type = "drop".',
            field,
        )
    msgspec.structs.force_setattr(column, field, whole_number)


def _refuses_other_than_numbers(type: "pa.DataType") -> str | None:
    import pyarrow.types as pt

    plain = plain_type(type)
    if is_number(plain) or pt.is_null(plain):
        return None
    advice = {"text": "declare it as a category", "true/false": "declare it as boolean", "dates": "declare it as date"}
    advice |= {"dates with times": "declare it as datetime", "times of day": "declare it as time"}
    word = described(plain)
    return f"must be numeric, got {word}. Cast it, or {advice.get(word, 'drop it')}."


def _lattice(column: Number, decimals: int) -> tuple[float, float] | None:
    """Return the first and the last number with so many decimals in [low, high], or None if there is none."""
    scale = Decimal(10) ** decimals
    # through the shortest decimal form: 1.1 was meant as 1.1, not as the double just above it
    first, last = math.ceil(Decimal(repr(column.low)) * scale), math.floor(Decimal(repr(column.high)) * scale)
    return (float(first / scale), float(last / scale)) if first <= last else None


def _storage_decimals(plain: "pa.DataType | None", decimals: int | None) -> int | None:
    """Return to how many decimals to round: as declared, and no more than the storage type has."""
    import pyarrow.types as pt

    if plain is None or pt.is_floating(plain) or not is_number(plain):
        return decimals
    digits = min(max(plain.scale, 0), 15) if pt.is_decimal(plain) else 0
    return digits if decimals is None else min(digits, decimals)


def _rounded(values: Floats, decimals: int, first: float, last: float) -> Floats:
    scale = 10.0**decimals
    with np.errstate(all="ignore"):
        steps = np.rint(values * scale)
        near = np.where(np.abs(steps) < LARGEST, steps / scale, values)  # larger ones have no such decimals
        return np.clip(near, first, last) + 0.0  # no negative zero

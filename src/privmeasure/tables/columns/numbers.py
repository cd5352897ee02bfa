"""Numbers, evenly spaced or stretched for heavy tails."""

import math
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from privmeasure.domains import Box, Domain, Floats, Points
from privmeasure.domains.line import LARGEST_INTEGER
from privmeasure.domains.scales import Clamped, Filled, Reading, Rounded, Stretched
from privmeasure.errors import ArgumentError
from privmeasure.tables.arrow import describe_type, is_double, is_number, number_cells, numbers, plain_type
from privmeasure.tables.columns.base import BOUNDS, DataColumn, Foreign, Types
from privmeasure.tables.columns.fields import ColumnError, decimals_field, low_below_high, number_field, show_value
from privmeasure.tables.columns.stretch import Stretch

if TYPE_CHECKING:
    import pyarrow as pa

MOST_UNEVEN, SHORTEST = 1e15, 1e-300
"""How much longer than the shortest stretch between breaks the longest may be, and how short a stretch may be: doubles
have 16 digits, and few of them below 1e-308."""
DEGREES = {"sdv latitude": 90, "sdv longitude": 180}
"""How far the degrees of other tools reach."""

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


class Numeric(DataColumn, frozen=True):
    """What numbers and integers share: bounds, and an axis that may be stretched."""

    needs = BOUNDS
    whole: ClassVar[bool] = False
    """Whether values are rounded to integers."""

    low: Low
    high: High
    transform: Transform = None
    breaks: Breaks = None

    @property
    def stretch(self) -> Stretch:
        """How the values are stretched before they are cut."""
        raise NotImplementedError

    @property
    def decimal_marks(self) -> bool:
        """Texts are numbers."""
        return True

    def refuses(self, type: "pa.DataType") -> str | None:
        """Refuse whatever is no number."""
        import pyarrow.types as pt

        plain = plain_type(type)
        if is_number(plain) or pt.is_null(plain) or pt.is_duration(plain):  # a duration is its seconds
            return None
        advice = {"text": "a category", "true/false": "boolean", "dates": "date"}
        advice |= {"dates with times": "datetime", "times of day": "time"}
        word = describe_type(plain)
        told = f"declare it as {advice[word]}" if word in advice else "drop it"
        return f"must be numeric, got {word}. Cast it, or {told}."

    def settle(self, readings: Sequence[Floats]) -> Points:
        """Clamp, then stretch."""
        with np.errstate(all="ignore"):  # a warning would tell that an odd value is there
            clamped = np.clip(readings[0], self.low, self.high)  # NaN, the missing, stays
            # not fmax: a signalling NaN is low in the middle of its loop, and NaN in the last few rows
            present = clamped if self.nullable else np.where(np.isnan(clamped), self.low, clamped)
        return self.stretch.place(present)[:, None]

    def readings(self, types: Types, first: int = 0) -> tuple[Reading, ...] | None:
        """Return the number, clamped and stretched."""
        if not is_double(types[0]):
            return None
        reading = Reading(first, () if self.nullable else (Filled(self.low),)).then(Clamped(self.low, self.high))
        if self.whole:
            reading = reading.then(Rounded())
        return (reading if self.stretch.knots is None else reading.then(Stretched(self.stretch.knots)),)

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        """Count the numbers beyond the bounds."""
        return int(np.count_nonzero((reading < self.low) | (reading > self.high))), 0

    def in_units(self, share: float) -> str:
        """Say it in the unit that is declared, or as a ratio."""
        return self.stretch.distance(share, getattr(self, "unit", None) or "") or super().in_units(share)

    def comparable(self, storage: "pa.DataType | None") -> "pa.DataType | None":
        """Return the stored type, if that is a number: it may round values."""
        return storage if storage is not None and is_number(plain_type(storage)) else self.natural[0]

    sort = "number"

    def written(self, points: Points, storage: "pa.DataType | None") -> list[NDArray[Any]]:
        """Return doubles; a narrower float and a decimal may be read as they are, or as the digits that are shown."""
        import pyarrow as pa
        import pyarrow.types as pt

        plain = self.natural[0] if storage is None else plain_type(storage)
        cells = self.decode(points, [plain])[0]
        values = numbers(cells)
        if pt.is_decimal(plain):
            return [values, numbers(cells.cast(pa.string()))]
        if not pt.is_floating(plain) or pt.is_float64(plain):
            return [values]
        narrow = values.astype(plain.to_pandas_dtype())
        return [values, narrow, narrow.astype(str).astype(np.float64)]

    def averages(self, points: Points) -> Floats:
        """Return the values themselves."""
        return numbers(self.decode(points, [None])[0]) if self.curved else points[:, 0]

    @property
    def curved(self) -> bool:
        """Whether values are stretched before they are cut."""
        return self.transform is not None or self.breaks is not None

    @property
    def older_bounds(self) -> tuple[float, float] | None:
        """The logarithms of the bounds, where there is such a scale."""
        return (math.log(self.stretch.low), math.log(self.stretch.high)) if self.stretch.log else None


class Number(Numeric, frozen=True, tag="number"):
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

    guide = ("low, high", 'amounts; transform = "log" or breaks = [1e3, 1e4] for heavy tails, decimals')
    stored = ("floating", "decimal")

    decimals: Decimals = None
    unit: Unit = None

    def __post_init__(self) -> None:
        """Check everything that is declared, before any data are touched."""
        self._check_common()
        check_numeric(self)
        number_field(self, "low"), number_field(self, "high")
        low_below_high(self)
        decimals_field(self)
        if self.decimals is not None and _lattice(self, self.decimals) is None:
            raise ColumnError(
                f"has decimals = {self.decimals}, but no such number lies between low = {show_value(self.low)} and "
                f"high = {show_value(self.high)}. Allow more decimals, or widen the bounds.",
                "decimals",
            )
        check_breaks(self)
        if self.transform == "log" and self.low <= 0:
            raise ColumnError(
                f'has transform = "log" and low = {show_value(self.low)}; a logarithm needs low above 0. Raise low to '
                "the smallest amount that matters (smaller values are clamped to it), or use breaks instead.",
                "low",
            )
        try:
            self.domain  # noqa: B018
        except ArgumentError as error:
            raise ColumnError(
                f"has low = {show_value(self.low)} and high = {show_value(self.high)}: {error}", "low"
            ) from None

    @cached_property
    def domain(self) -> Domain:
        """An interval: of the values, or of the axis on which they are stretched."""
        return self._or_missing(Box([self.stretch.bounds]))

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """Doubles."""
        import pyarrow as pa

        return (pa.float64(),)

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return the numbers themselves."""
        return numbers(array)

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Undo the stretching, round, and keep within the bounds."""
        plain = None if types[0] is None else plain_type(types[0])
        values = self.stretch.values(np.ascontiguousarray(points[:, 0]))
        decimals = _storage_decimals(plain, self.decimals)
        if decimals is not None and (ends := _lattice(self, decimals)) is not None:
            values = _rounded(values, decimals, *ends)
        return [number_cells(values, plain)]

    @property
    def steepness(self) -> float:
        """The widest gap between two knots of the axis."""
        return float(self.stretch.steepest)

    @cached_property
    def stretch(self) -> Stretch:
        """How the values are stretched before they are cut."""
        breaks = None if self.breaks is None else np.array(sorted({self.low, *self.breaks, self.high}), np.float64)
        return Stretch(self.low, self.high, log=self.transform == "log", breaks=breaks)

    def cell_size(self, cuts: int) -> str:
        """Say the width of a cell."""
        return self.stretch.cell_size(cuts, self.unit or "")

    @classmethod
    def recognized(cls, field: Foreign) -> dict[str, Any] | None:
        """Take over bounds and decimals."""
        if field.word in DEGREES:
            return {"low": -DEGREES[field.word], "high": DEGREES[field.word]}
        if (
            field.word not in ("frictionless number", "sdv numerical")
            or holds_integers(field)
            or field.values is not None
        ):
            return None
        places = field.entry.get("decimal_places")
        return bounds_of(field) | ({"decimals": places} if isinstance(places, int) else {})


def holds_integers(field: Foreign) -> bool:
    """Say whether another tool's type holds whole numbers alone."""
    stored = str(field.entry.get("computer_representation", "")).lstrip("U")
    return field.word in ("frictionless integer", "frictionless year") or (
        field.word == "sdv numerical" and (stored.startswith("Int") or field.entry.get("decimal_places") == 0)
    )


def bounds_of(field: Foreign) -> dict[str, Any]:
    """Return the bounds that another tool states; texts that are numbers become numbers."""
    bounds = dict(field.bounds)
    for name, bound in bounds.items():
        with suppress(ValueError):  # what is no number stays, for the schema's check
            if isinstance(bound, str):
                bounds[name] = int(bound) if bound.strip("+- ").isdigit() else float(bound)
    return bounds


def check_numeric(column: Any) -> None:
    """Check what is said of the axis and the unit."""
    if column.transform not in (None, "log"):
        raise ColumnError(f'has transform = {column.transform!r}; write "log", or leave it out.', "transform")
    if column.transform is not None and column.breaks is not None:
        raise ColumnError("has both transform and breaks. Keep one of them.", "breaks")
    if column.unit is not None and not isinstance(column.unit, str):
        raise ColumnError(f'has unit = {column.unit!r}; write a word like "year".', "unit")


def check_breaks(column: Numeric) -> None:
    """Check the breaks, and keep them as floats."""
    if column.breaks is None:
        return
    try:
        breaks = tuple(float(b) for b in column.breaks)
    except (TypeError, ValueError, OverflowError):
        raise ColumnError(f"has breaks = {column.breaks!r}; write a list of numbers.", "breaks") from None
    inner = [b for b in breaks if column.low < b < column.high]
    if not inner or any(not column.low <= b <= column.high for b in breaks):
        raise ColumnError(
            f"has breaks that are not between low = {show_value(column.low)} and high = {show_value(column.high)}. "
            "Give at least one value between them.",
            "breaks",
        )
    if any(b >= c for b, c in pairwise(breaks)):
        raise ColumnError("has breaks that do not increase. Sort them, and write each of them once.", "breaks")
    knots = sorted({float(column.low), *inner, float(column.high)})
    gaps = [b - a for a, b in pairwise(knots)]
    if max(gaps) > MOST_UNEVEN * min(gaps) or not math.isfinite(knots[-1] - knots[0]) or min(gaps) < SHORTEST:
        raise ColumnError("has breaks that are too uneven for doubles to tell the values of a stretch apart.", "breaks")
    msgspec.structs.force_setattr(column, "breaks", breaks)


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
        near = np.where(np.abs(steps) < LARGEST_INTEGER, steps / scale, values)  # larger ones have no such decimals
        return np.clip(near, first, last) + 0.0  # no negative zero

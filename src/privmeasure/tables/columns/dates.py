"""Dates."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from privmeasure.domains import Domain, Floats, Integers, Points
from privmeasure.domains.scales import Clamped, Reading
from privmeasure.tables.arrow import integers, is_text, nulls_where, plain_type, round_within
from privmeasure.tables.columns import clock
from privmeasure.tables.columns.base import BOUNDS, DataColumn, Foreign, Types
from privmeasure.tables.columns.fields import low_below_high, plural

if TYPE_CHECKING:
    import pyarrow as pa

DAY_FORM = {"type": "string", "format": "date"}


class Date(DataColumn, frozen=True, tag="date"):
    """A day of [low, high], both included. Timestamps count as their day; texts are ISO dates or of a `format`.

    Examples:
        >>> import pyarrow as pa
        >>> born = Date("1900-01-01", "2020-12-31", nullable=True)
        >>> points = born.encode([pa.array(["2000-02-29", "1850-01-01", "soon"])])
        >>> [str(day) for day in born.decode(points, [None])[0].to_pylist()]
        ['2000-02-29', '1900-01-01', 'None']
    """

    guide = ("low, high", 'format = "%d.%m.%Y" if it is not like 2020-01-31')
    stored = ("date",)
    needs = BOUNDS

    low: Annotated[Any, Meta(description="The first day that may occur. Public.", extra_json_schema=DAY_FORM)]
    high: Annotated[Any, Meta(description="The last day that may occur. Public.", extra_json_schema=DAY_FORM)]
    format: clock.Format = None

    def __post_init__(self) -> None:
        """Check everything that is declared, before any data are touched."""
        self._check_common()
        for field in ("low", "high"):
            msgspec.structs.force_setattr(self, field, clock.as_date(self, field))
        low_below_high(self)
        clock.check_format(self, needs="day month year", what="%d.%m.%Y")

    @property
    def _days(self) -> tuple[int, int]:
        first = clock.EPOCH.date()
        return (self.low - first).days, (self.high - first).days

    @cached_property
    def domain(self) -> Domain:
        """The days, counted from 1970."""
        return self._or_missing(Integers(*self._days))

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """Dates, or text where a format is declared."""
        import pyarrow as pa

        return (pa.date32(),) if self.format is None else (pa.string(),)

    @property
    def instants(self) -> "pa.DataType":
        """Midnights, in the coarsest unit that both Parquet and pandas have."""
        import pyarrow as pa

        return pa.timestamp("ms")

    def refuses(self, type: "pa.DataType") -> str | None:
        """Refuse numbers, times of day and the like."""
        return clock.refuses(type, "dates", "date timestamp")

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return days from 1970."""
        import pyarrow as pa
        import pyarrow.types as pt

        kind = array.type
        if is_text(kind):
            array = clock.parse_dates(array, self.format)
        elif pt.is_timestamp(kind):
            array = clock.floor_days(clock.from_utc(array.cast(pa.timestamp(kind.unit)), kind.tz))
        elif pt.is_date64(kind):
            array = clock.floor_days(array.cast(pa.int64()).cast(pa.timestamp("ms")))
        elif not pt.is_date32(kind):
            return np.full(len(array), np.nan)
        days, null = integers(array)
        return np.where(null, np.nan, days)

    def settle(self, readings: Sequence[Floats]) -> Points:
        """Clamp."""
        return clock.settle_days(readings[0], *self._days, self.nullable)

    def readings(self, types: Types, first: int = 0) -> tuple[Reading, ...] | None:
        """Return the day, clamped."""
        import pyarrow.types as pt

        if types[0] is None or not pt.is_date32(types[0]):
            return None
        return (Reading(first, (Clamped(*self._days),), "days"),)

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        """Count the days beyond the bounds."""
        first, last = self._days
        return int(np.count_nonzero((reading < first) | (reading > last))), 0

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Count the days back."""
        import pyarrow as pa
        import pyarrow.types as pt

        plain = self.natural[0] if types[0] is None else plain_type(types[0])
        missing, days = np.isnan(points[:, 0]), round_within(points[:, 0], *self._days)
        cells = nulls_where(days.astype(np.int32), missing, pa.int32()).cast(pa.date32())
        if is_text(plain) and self.format is not None:
            return [clock.write_instants(cells.cast(pa.timestamp("s")), self.format)]
        if pt.is_timestamp(plain):
            stamps = nulls_where(days * 86400, missing, pa.int64()).cast(pa.timestamp("s"))
            return [clock.in_zone(clock.to_utc(stamps, plain.tz), plain)]
        return [cells]

    def comparable(self, storage: "pa.DataType | None") -> "pa.DataType | None":
        """Return one type for all storages."""
        import pyarrow as pa

        return pa.date32()

    sort = "date"

    def written(self, points: Points, storage: "pa.DataType | None") -> list[NDArray[Any]]:
        """Return the days, whatever the storage."""
        return [integers(self.decode(points, [self.comparable(None)])[0])[0]]

    def in_units(self, share: float) -> str:
        """Say how many days."""
        first, last = self._days
        return plural(share * (last - first), "day")

    def cell_size(self, cuts: int) -> str:
        """Say how many days a cell holds."""
        first, last = self._days
        days = round(Integers(first, last).diameter(cuts) * (last - first)) + 1
        return "single days" if days == 1 else f"about {plural(days, 'day')}"

    @classmethod
    def recognized(cls, field: Foreign) -> dict[str, Any] | None:
        """Take over bounds and format; of SDV, which has no dates, times whose format shows no hour."""
        if field.word != "frictionless date" and not (field.word == "sdv datetime" and clock.has_no_hour(field)):
            return None
        bounds = {name: bound[:10] if isinstance(bound, str) else bound for name, bound in clock.in_iso(field).items()}
        return bounds | field.format

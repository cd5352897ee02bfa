"""Instants, and times of day."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from privmeasure.domains import Circle, Domain, Floats, Integers, Points
from privmeasure.domains.line import LARGEST_INTEGER
from privmeasure.domains.scales import Clamped, Counted, Filled, Reading
from privmeasure.tables.arrow import integers, is_text, nulls_where, plain_type, round_within
from privmeasure.tables.columns import clock
from privmeasure.tables.columns.base import BOUNDS, DataColumn, Foreign, Sketch, Types
from privmeasure.tables.columns.fields import ColumnError, low_below_high

if TYPE_CHECKING:
    import pyarrow as pa

TIME_FORM = {"type": "string", "format": "date-time"}
Resolution = Annotated[
    str, Meta(description='The smallest step that is told apart and written, like "1s", "15min", "1h".')
]


class Datetime(DataColumn, frozen=True, tag="datetime"):
    """An instant of [low, high], told apart in steps of `resolution` from low on; the output is the start of a step.

    Without a `timezone`, bounds and times without a zone are read as UTC. With one they are local times there; where
    the clock is set back and shows a time twice, it is the earlier one. Texts are ISO 8601, with or without an offset,
    or of a `format`. Columns of timestamps keep their own zone.

    Examples:
        >>> import pyarrow as pa
        >>> taken = Datetime("2020-01-01", "2020-12-31T23:59:59", resolution="15min")
        >>> points = taken.encode([pa.array(["2020-02-29 12:59:30", "2020-02-29T12:59:30+02:00"])])
        >>> [str(cell) for cell in taken.decode(points, [None])[0].to_pylist()]
        ['2020-02-29 12:45:00', '2020-02-29 10:45:00']
    """

    guide = ("low, high", 'resolution = "15min", timezone = "Europe/Berlin", format')
    stored = ("timestamp",)
    needs = BOUNDS

    low: Annotated[Any, Meta(description="The first instant that may occur. Public.", extra_json_schema=TIME_FORM)]
    high: Annotated[Any, Meta(description="The last instant that may occur. Public.", extra_json_schema=TIME_FORM)]
    resolution: Resolution = "1s"
    format: clock.Format = None
    timezone: Annotated[
        str | None, Meta(description='The zone of times that have none, like "Europe/Berlin"; UTC if left out.')
    ] = None

    def __post_init__(self) -> None:
        """Check everything that is declared, before any data are touched."""
        self._check_common()
        if self.timezone is not None:
            clock.zone(self.timezone)
        for field in ("low", "high"):
            msgspec.structs.force_setattr(self, field, clock.as_datetime(self, field))
        first, last = (clock.instant(bound, self.timezone) for bound in (self.low, self.high))
        if (self.low.tzinfo is None) == (self.high.tzinfo is None):
            low_below_high(self)
        if first >= last:
            raise ColumnError("has its low not before its high. Swap them.", "low")
        step = clock.nanoseconds(self.resolution)
        if (last - first) // step < 1 or (last - first) // step >= 1 << 53:
            word = "longer than the time from low to high" if last - first < step else "too fine for so long a time"
            raise ColumnError(
                f"has resolution = {self.resolution!r}, which is {word}. Change it, or the bounds.", "resolution"
            )
        limit = (1 << 63) // 4
        if step % 1000 and not -limit < first < last < limit:
            raise ColumnError(
                "has a resolution in nanoseconds, which needs bounds between 1900 and 2040.", "resolution"
            )
        clock.check_format(self, needs="day month year hour", what="%d.%m.%Y %H:%M:%S")

    @cached_property
    def _ticks(self) -> tuple[int, int, int, str]:
        """Return low in ticks, ticks per step, the last step, and the unit of a tick: ns if steps need it, else us."""
        first, last = (clock.instant(bound, self.timezone) for bound in (self.low, self.high))
        step = clock.nanoseconds(self.resolution)
        unit = "ns" if step % 1000 else "us"
        size = clock.NANOSECONDS[unit]
        return first // size, step // size, (last - first) // step, unit

    @cached_property
    def domain(self) -> Domain:
        """The steps, counted from low."""
        return self._or_missing(Integers(0, self._ticks[2]))

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """Timestamps, or text where a format is declared."""
        import pyarrow as pa

        return (self.instants,) if self.format is None else (pa.string(),)

    @property
    def instants(self) -> "pa.DataType":
        """Timestamps as fine as the resolution, in the declared zone."""
        import pyarrow as pa

        return pa.timestamp(self._written_unit, self.timezone or (None if self.low.tzinfo is None else "UTC"))

    @property
    def _written_unit(self) -> str:
        low, step, _, unit = self._ticks
        size = clock.NANOSECONDS[unit]
        return max(clock.coarsest_unit(low * size), clock.coarsest_unit(step * size), key=clock.PER_SECOND.__getitem__)

    def refuses(self, type: "pa.DataType") -> str | None:
        """Refuse numbers, times of day and the like."""
        return clock.refuses(type, "dates with times", "date timestamp")

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return steps from low; -1 and one too many beyond the bounds."""
        import pyarrow as pa
        import pyarrow.types as pt

        kind, (low, step, last, unit) = array.type, self._ticks
        if is_text(kind):
            array = clock.parse_instants(array, self.format, unit, self.timezone)
        elif pt.is_date(kind):
            seconds, null = integers(array)
            seconds = seconds * 86400 if pt.is_date32(kind) else seconds // 1000
            array = clock.to_utc(pa.array(seconds, pa.int64(), mask=null).cast(pa.timestamp("s")), self.timezone)
        elif pt.is_timestamp(kind):
            array = array.cast(pa.timestamp(kind.unit)) if kind.tz else clock.to_utc(array, self.timezone)
        else:
            return np.full(len(array), np.nan)
        raw, null = integers(array)
        ticks = clock.scale_ticks(raw, array.type.unit, low - step, low + (last + 1) * step, clock.PER_SECOND[unit])
        return np.where(null, np.nan, (ticks - low) // step)

    def settle(self, readings: Sequence[Floats]) -> Points:
        """Clamp."""
        return clock.settle_days(readings[0], 0, self._ticks[2], self.nullable)

    def readings(self, types: Types, first: int = 0) -> tuple[Reading, ...] | None:
        """Return the step of the instant, where doubles hold its microseconds and no zone has to be known."""
        import pyarrow.types as pt

        kind, (low, step, last, unit) = types[0], self._ticks
        if kind is None or not pt.is_timestamp(kind) or "ns" in (kind.unit, unit):
            return None
        ends = low - step, low + (last + 1) * step
        if (kind.tz is None and self.timezone is not None) or max(map(abs, ends)) > LARGEST_INTEGER:
            return None
        return (Reading(first, (Clamped(*ends), Counted(low, step), Clamped(0, last)), "microseconds"),)

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        """Count the instants beyond the bounds."""
        return int(np.count_nonzero((reading < 0) | (reading > self._ticks[2]))), 0

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Count the steps back."""
        import pyarrow as pa
        import pyarrow.types as pt

        plain = self.natural[0] if types[0] is None else plain_type(types[0])
        low, step, last, unit = self._ticks
        ticks = low + round_within(points[:, 0], 0, last) * step
        stamps = nulls_where(ticks, np.isnan(points[:, 0]), pa.int64()).cast(pa.timestamp(unit))
        if pt.is_timestamp(plain):
            return [clock.in_zone(stamps if plain.tz else clock.from_utc(stamps, self.timezone), plain)]
        local = clock.from_utc(stamps, self.timezone)
        if is_text(plain):
            local = clock.in_zone(local, pa.timestamp(self._written_unit))
            return [local.cast(pa.string()) if self.format is None else clock.write_instants(local, self.format)]
        return [clock.floor_days(local)]

    def comparable(self, storage: "pa.DataType | None") -> "pa.DataType | None":
        """Return one type for all storages."""
        import pyarrow as pa

        return pa.timestamp("us")

    sort = "datetime"

    def written(self, points: Points, storage: "pa.DataType | None") -> list[NDArray[Any]]:
        """Return microseconds: of instants where the storage has a zone, else of what clocks show."""
        import pyarrow as pa
        import pyarrow.types as pt

        plain = self.natural[0] if storage is None else plain_type(storage)
        cells = self.decode(points, [plain])[0]
        if is_text(plain):
            cells = clock.parse_instants(cells, self.format, "us", None)
        elif not pt.is_timestamp(plain):
            cells = cells.cast(pa.timestamp("s"))
        return [_microseconds(cells)]

    @property
    def steady(self) -> bool:
        """Clocks are set back."""
        return self.timezone is None

    def in_units(self, share: float) -> str:
        """Say how long."""
        return clock.speak(share * self._ticks[2] * clock.nanoseconds(self.resolution))

    def cell_size(self, cuts: int) -> str:
        """Say how long a cell lasts."""
        last = self._ticks[2]
        steps = round(Integers(0, last).diameter(cuts) * last) + 1
        return f"about {clock.speak(steps * clock.nanoseconds(self.resolution))}"

    @classmethod
    def guess(cls, name: str, type: "pa.DataType") -> Sketch | None:
        """Take timestamps, with their zone."""
        found = super().guess(name, type)
        if found is not None:
            found[0].update({"resolution": "1s"} | ({"timezone": type.tz} if type.tz else {}))
        return found

    @classmethod
    def recognized(cls, field: Foreign) -> dict[str, Any] | None:
        """Take over bounds and format."""
        mine = field.word == "frictionless datetime" or (field.word == "sdv datetime" and not clock.has_no_hour(field))
        return clock.in_iso(field) | field.format if mine else None


class Time(DataColumn, frozen=True, tag="time"):
    """A time of day, on a circle: 23:59 is next to 00:00. The output is the start of a step of `resolution`.

    Examples:
        >>> import pyarrow as pa
        >>> Time(resolution="1min").encode([pa.array(["00:01", "7:30", "23:59:59"])])[:, 0]
        array([   1.5,  450.5, 1439.5])
    """

    guide = ("", 'a time of day; resolution = "1min"')

    resolution: Resolution = "1s"
    format: clock.Format = None

    def __post_init__(self) -> None:
        """Check everything that is declared, before any data are touched."""
        self._check_common()
        step = clock.nanoseconds(self.resolution)
        if clock.DAY % step or step == clock.DAY:
            raise ColumnError(
                f'has resolution = {self.resolution!r}, which does not divide a day. Use one like "1s", "15min", "1h".',
                "resolution",
            )
        clock.check_format(self, needs="hour minute", what="%H:%M:%S")

    @property
    def _steps(self) -> int:
        return clock.DAY // clock.nanoseconds(self.resolution)

    @cached_property
    def domain(self) -> Domain:
        """A circle whose unit is one step."""
        return self._or_missing(Circle(self._steps))

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """Times as fine as the resolution; text where a format is declared."""
        import pyarrow as pa

        if self.format is not None:
            return (pa.string(),)
        unit = clock.coarsest_unit(clock.nanoseconds(self.resolution))
        return (pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit),)

    def refuses(self, type: "pa.DataType") -> str | None:
        """Refuse numbers, dates and the like."""
        return clock.refuses(type, "times of day", "time")

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return the middle of the step, in steps from midnight."""
        import pyarrow.types as pt

        kind, step = array.type, clock.nanoseconds(self.resolution)
        unit = "ns" if step % 1000 else "us"
        if is_text(kind):
            array = clock.parse_times(array, self.format, unit)
            kind = array.type
        elif not (pt.is_time(kind) or pt.is_timestamp(kind)):
            return np.full(len(array), np.nan)
        raw, null = integers(array)
        size = clock.NANOSECONDS[kind.unit]
        of_day = np.mod(raw, clock.DAY // size)
        # a start would lie on a border: most of a small cell around it belongs to the step before
        return np.where(null, np.nan, of_day * size // step + 0.5)

    def settle(self, readings: Sequence[Floats]) -> Points:
        """There is nothing to clamp on a circle."""
        return (readings[0] if self.nullable else np.nan_to_num(readings[0], nan=0.5))[:, None]

    def readings(self, types: Types, first: int = 0) -> tuple[Reading, ...] | None:
        """Return the middle of the step, where microseconds tell it."""
        import pyarrow.types as pt

        kind, step = types[0], clock.nanoseconds(self.resolution)
        if kind is None or not pt.is_time(kind) or kind.unit == "ns" or step % 1000:
            return None
        counted = Reading(first, (Counted(0, step // 1000, 0.5),), "microseconds of the day")
        return (counted if self.nullable else counted.then(Filled(0.5)),)

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        """Nothing is clamped on a circle."""
        return 0, 0

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Return the start of the step that each point lies in."""
        import pyarrow as pa
        import pyarrow.types as pt

        plain = self.natural[0] if types[0] is None else plain_type(types[0])
        steps = np.mod(round_within(np.floor(points[:, 0]), -(1 << 53), 1 << 53), self._steps)
        length = steps * clock.nanoseconds(self.resolution)
        missing = np.isnan(points[:, 0])
        if is_text(plain) and self.format is not None:
            stamps = nulls_where(length // 1000, missing, pa.int64()).cast(pa.timestamp("us"))
            return [clock.write_instants(stamps, self.format)]
        kind = plain if pt.is_time(plain) else Time(resolution=self.resolution).natural[0]
        ticks = length // clock.NANOSECONDS[kind.unit]
        words = ticks.astype(np.int32) if kind.bit_width == 32 else ticks
        return [nulls_where(words, missing, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)]

    def comparable(self, storage: "pa.DataType | None") -> "pa.DataType | None":
        """Return one type for all storages."""
        import pyarrow as pa

        return pa.time64("us")

    sort = "time"

    def written(self, points: Points, storage: "pa.DataType | None") -> list[NDArray[Any]]:
        """Return microseconds from midnight."""
        plain = self.natural[0] if storage is None else plain_type(storage)
        cells = self.decode(points, [plain])[0]
        return [_microseconds(clock.parse_times(cells, self.format, "us") if is_text(plain) else cells)]

    @property
    def steady(self) -> bool:
        """A circle has no first point."""
        return False

    def in_units(self, share: float) -> str:
        """Say how long: two times of day are half a day apart at most."""
        return clock.speak(share * clock.DAY / 2)

    def cell_size(self, cuts: int) -> str:
        """Say how long a cell lasts."""
        return f"about {clock.speak(max(clock.DAY * 2.0**-cuts, clock.nanoseconds(self.resolution)))}"

    @classmethod
    def guess(cls, name: str, type: "pa.DataType") -> Sketch | None:
        """Take times of day."""
        import pyarrow.types as pt

        return (cls.sketch(resolution="1s"), "") if pt.is_time(type) else None

    @classmethod
    def recognized(cls, field: Foreign) -> dict[str, Any] | None:
        """Take over the format."""
        return field.format if field.word == "frictionless time" else None


def _microseconds(cells: "pa.Array") -> NDArray[np.int64]:
    """Return times of day, or timestamps, in microseconds."""
    ticks, unit = integers(cells)[0], clock.NANOSECONDS[cells.type.unit]
    return ticks * (unit // 1000) if unit >= 1000 else ticks // 1000

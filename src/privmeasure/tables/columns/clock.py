"""Instants and dates as integers: reading them from any Arrow type, and writing them in any format.

Everything is counted from 1970 in UTC. Times without a zone are read as if they were in UTC, or in the zone that the
column declares.
"""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import numpy as np
from msgspec import Meta

from privmeasure.domains import Floats, Points
from privmeasure.domains.bits import Words
from privmeasure.tables.arrow import (
    DATE,
    NAIVE,
    ZONED,
    cast_texts,
    describe_type,
    integers,
    is_text,
    join_texts,
    nulls_where,
    plain_type,
)
from privmeasure.tables.columns.base import Foreign
from privmeasure.tables.columns.fields import ColumnError, plural

if TYPE_CHECKING:
    import pyarrow as pa

Format = Annotated[
    str | None, Meta(description='How the text is written, like "%d.%m.%Y %H:%M"; as in ISO 8601 if left out.')
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
SPOKEN = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second", "min": "minute", "h": "hour"}
DAY = 86400 * 10**9
FIRST_DAY = "1970-01-01T"
TIME = rf"^{FIRST_DAY}[0-9]{{2}}(?::[0-9:.]+)?$"
NUMERIC = {"%Y": (0, 4), "%m": (5, 7), "%d": (8, 10), "%H": (11, 13), "%M": (14, 16), "%S": (17, 19)}
"""Directives that are plain numbers, and where they stand in YYYY-MM-DD hh:mm:ss."""


def nanoseconds(resolution: Any) -> int:
    """Return the length of a resolution such as "1s", "15min", "1h", "1d".

    Examples:
        >>> nanoseconds("15min") // 10**9, nanoseconds("1ms")
        (900, 1000000)
    """
    match = (
        re.fullmatch(r"\s*([1-9][0-9]{0,8})\s*(ns|us|ms|s|min|h|d)\s*", resolution)
        if isinstance(resolution, str)
        else None
    )
    if match is None:
        raise ColumnError(
            f'has resolution = {resolution!r}; write a number and one of ns, us, ms, s, min, h, d, like "15min".',
            "resolution",
        )
    return int(match[1]) * NANOSECONDS[match[2]]


def coarsest_unit(length: int) -> str:
    """Return the coarsest Arrow unit that holds multiples of so many nanoseconds."""
    return next(unit for unit in ("s", "ms", "us", "ns") if length % NANOSECONDS[unit] == 0)


def speak(length: float) -> str:
    """Return a number of nanoseconds in the unit that people would use.

    Examples:
        >>> speak(5400e9), speak(86400e9 * 40)
        ('1.5 hours', '40 days')
    """
    if length >= DAY:
        return plural(length / DAY, "day")
    unit = next(u for u in ("h", "min", "s", "ms", "us", "ns") if length >= NANOSECONDS[u] or u == "ns")
    return plural(length / NANOSECONDS[unit], SPOKEN[unit])


def zone(name: Any) -> ZoneInfo:
    """Return a time zone by its name."""
    try:
        return _zone(name)
    except (OSError, TypeError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise ColumnError(
            f'has timezone = {name!r}, which is not known. Write a name like "Europe/Berlin" or "UTC".', "timezone"
        ) from None


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    """Return a zone that Arrow knows too: otherwise the first private row, and not the declaration, would raise."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = ZoneInfo(name)
    pc.assume_timezone(pa.array([0]).cast(pa.timestamp("s")), name)  # ArrowInvalid is a ValueError
    return found


def as_date(column: Any, field: str) -> date:
    """Return a bound as a date, from a date or an ISO text."""
    value = getattr(column, field)
    if isinstance(value, datetime) or not isinstance(value, date | str):
        raise ColumnError(f"has {field} = {value!r}; write a date like 2020-01-31.", field)
    try:
        return value if isinstance(value, date) else date.fromisoformat(value)
    except ValueError:
        raise ColumnError(f"has {field} = {value!r}; write a date like 2020-01-31.", field) from None


def as_datetime(column: Any, field: str) -> datetime:
    """Return a bound as a datetime, from a date (midnight), a datetime or an ISO text."""
    value = getattr(column, field)
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time())
        if isinstance(value, datetime):
            offset = value.utcoffset()
            if offset is not None and offset % timedelta(minutes=1):  # as before 1900; TOML cannot write it
                return value.astimezone(UTC)
            return value if offset is None else value.replace(tzinfo=timezone(offset))
    except (ValueError, OverflowError):
        pass
    raise ColumnError(f"has {field} = {value!r}; write a time like 2020-01-31T12:00:00.", field)


def instant(bound: datetime, zone_name: str | None) -> int:
    """Return a bound in nanoseconds from 1970 in UTC."""
    if bound.tzinfo is None:
        bound = bound.replace(tzinfo=zone(zone_name) if zone_name else UTC)
    since = bound.replace(tzinfo=None) - EPOCH.replace(tzinfo=None) - (bound.utcoffset() or timedelta())
    return since // timedelta(microseconds=1) * 1000


def check_format(column: Any, *, needs: str, what: str) -> None:
    """Check a strptime format by writing a date with it and reading it back."""
    if column.format is None:
        return
    sample = datetime(2023, 11, 25, 21, 43, 56, 123456)
    try:
        back = datetime.strptime(sample.strftime(column.format), column.format)
    except (TypeError, ValueError, re.error):  # the last for a directive that stands twice
        raise ColumnError(
            f'has format = {column.format!r}, which cannot be read back. Write one like "{what}".', "format"
        ) from None
    if any(getattr(back, part) != getattr(sample, part) for part in needs.split()):
        raise ColumnError(
            f'has format = {column.format!r}, which leaves out the {needs.split()[0]} or more. Use one like "{what}".',
            "format",
        )


def parse_instants(texts: "pa.Array", pattern: str | None, unit: str, zone_name: str | None) -> "pa.Array":
    """Return texts as timestamps in UTC without a zone, null where they do not parse."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pattern is not None:
        return _with_format(texts, pattern, unit, zone_name)
    naive = cast_texts(texts, pa.timestamp(unit), NAIVE, mend=lambda t: _shorter(t, unit))
    naive = to_utc(naive, zone_name)
    if naive.null_count == texts.null_count:
        return naive
    rest = pc.if_else(pc.is_null(naive), texts, pa.scalar(None, texts.type))
    zoned = cast_texts(rest, pa.timestamp(unit, "UTC"), ZONED, mend=lambda t: _shorter(t, unit))
    return pc.coalesce(naive, zoned.cast(pa.timestamp(unit)))


def parse_dates(texts: "pa.Array", pattern: str | None) -> "pa.Array":
    """Return texts as date32, null where they do not parse; a time of day after the date is passed over."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pattern is not None:
        return floor_days(_with_format(texts, pattern, "s", None))
    day = r"^(-?[0-9]{4,}-[0-9]{2}-[0-9]{2})[ T][0-9:.]+ ?(?:Z|[+-][0-9:]+)?$"
    return cast_texts(texts, pa.date32(), DATE, mend=lambda t: pc.replace_substring_regex(t, day, r"\1"))


def floor_days(stamps: "pa.Array") -> "pa.Array":
    """Return the dates of timestamps without a zone."""
    import pyarrow as pa

    raw, null = integers(stamps)
    days = np.clip(raw // (86400 * PER_SECOND[stamps.type.unit]), -(2**31), 2**31 - 1)
    return pa.array(days.astype(np.int32), pa.int32(), mask=null).cast(pa.date32())


def parse_times(texts: "pa.Array", pattern: str | None, unit: str) -> "pa.Array":
    """Return texts as timestamps on the first day of 1970, null where they do not parse."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pattern is not None:
        return _with_format(texts, pattern, unit, None)

    def padded(times: "pa.Array") -> "pa.Array":  # 7:05 as 07:05, 7 as 07
        times = pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(times, len(FIRST_DAY)))
        times = pc.replace_substring_regex(times, r"^([0-9](?::|$))", r"0\1")
        return _shorter(join_texts([FIRST_DAY, times]), unit)

    dated = join_texts([FIRST_DAY, texts.cast(pa.large_string())])
    return cast_texts(dated, pa.timestamp(unit), TIME, mend=padded)


def _shorter(texts: "pa.Array", unit: str) -> "pa.Array":
    """Cut the digits of a second that a unit cannot hold; Arrow would refuse them."""
    import pyarrow.compute as pc

    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    kept = rf"\.[0-9]{{{digits}}}" if digits else ""
    return pc.replace_substring_regex(texts, rf"(:[0-9]{{2}}:[0-9]{{2}}{kept})[0-9.]*", r"\1")


def _with_format(texts: "pa.Array", pattern: str, unit: str, zone_name: str | None) -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(texts.cast(pa.large_string()))
    if not set(re.findall(r"%.", pattern)) <= set(NUMERIC) or "%Y" not in pattern:
        return _by_python(texts, pattern, unit, zone_name)
    stamps = pc.strptime(texts, format=pattern, unit=unit, error_is_null=True)
    # Arrow reads 30 February as 1 March. That can only be where the result is among the first days of a month.
    early = pc.and_(pc.less_equal(pc.day(stamps), 3), pc.is_valid(stamps))
    shape = "".join(
        r"(?:29|30|31)" if part == "%d" else r"\s*[0-9]+" if part in NUMERIC else re.escape(part)
        for part in re.split(r"(%.)", pattern)
    )
    late = pc.match_substring_regex(pc.if_else(early, texts, pa.scalar(None, texts.type)), f"^{shape}$")
    stamps = pc.if_else(pc.fill_null(late, False), pa.scalar(None, stamps.type), stamps)
    return to_utc(stamps, zone_name)


def _by_python(texts: "pa.Array", pattern: str, unit: str, zone_name: str | None) -> "pa.Array":
    """Parse each distinct text; for formats with names of months, fractions, zones."""
    import pyarrow as pa

    distinct = texts.dictionary_encode()
    per = PER_SECOND[unit]

    def one(cell: Any) -> int | None:
        try:
            moment = datetime.strptime(cell.as_py(), pattern)
            if moment.year == 1900 and "%Y" not in pattern and "%y" not in pattern:
                moment = moment.replace(year=1970)  # only a time of day
            ticks = instant(moment, zone_name) * per // 10**9
            return ticks if -(1 << 63) < ticks < 1 << 63 else None  # as Arrow's own parsers do
        except (ValueError, OverflowError, TypeError):  # the message would show the cell
            return None

    values = pa.array([one(cell) for cell in distinct.dictionary], pa.int64()).cast(pa.timestamp(unit))
    return values.take(distinct.indices)


def to_utc(stamps: "pa.Array", zone_name: str | None) -> "pa.Array":
    """Read times without a zone as local times of a zone; the earlier where a clock shows the same time twice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if zone_name is None or zone_name == "UTC" or not len(stamps):
        return stamps
    # the tables of time zones end somewhere: keep away from the ends of what 64 bits can hold
    raw, null = integers(stamps)
    limit = min(2**62, 250_000 * 366 * 86400 * PER_SECOND[stamps.type.unit])
    stamps = pa.array(np.clip(raw, -limit, limit), pa.int64(), mask=null).cast(stamps.type)
    zoned = pc.assume_timezone(stamps, zone_name, ambiguous="earliest", nonexistent="earliest")
    return zoned.cast(pa.timestamp(stamps.type.unit))


def from_utc(stamps: "pa.Array", zone_name: str | None) -> "pa.Array":
    """Return the local times of a zone, without it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if zone_name is None or zone_name == "UTC":
        return stamps
    return pc.local_timestamp(stamps.cast(pa.timestamp(stamps.type.unit, zone_name)))


def scale_ticks(raw: Words, unit: str, low: int, high: int, per: int) -> Words:
    """Return instants of a unit as ticks of `per` a second, floored and clamped to [low, high] ticks."""
    ratio = per // PER_SECOND[unit]
    if ratio > 1:  # clamp first: the product could leave 64 bits
        limit = ((1 << 63) - 1) // ratio
        first, last = max(low // ratio, -limit), min(high // ratio + 1, limit)
        raw = np.clip(raw, first, last) * ratio
    elif ratio == 0:
        raw = raw // (PER_SECOND[unit] // per)
    return np.clip(raw, low, high)


def write_instants(stamps: "pa.Array", pattern: str) -> "pa.Array":
    """Return timestamps without a zone as texts of a format."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = re.split(r"(%.)", pattern)
    seconds = stamps.cast(pa.timestamp("s"), safe=False) if stamps.type.unit != "s" else stamps
    if set(parts[1::2]) <= set(NUMERIC) and parts[1::2] and _four_digit_years(seconds):
        iso = seconds.cast(pa.string())
        slices = [
            pc.binary_slice(iso.cast(pa.binary()), *NUMERIC[p]).cast(pa.string()) if p in NUMERIC else p for p in parts
        ]
        return join_texts([part for part in slices if not isinstance(part, str) or part])
    distinct = stamps.dictionary_encode()
    texts = [
        None if cell is None else cell.strftime(pattern)
        for cell in distinct.dictionary.cast(pa.timestamp("us"), safe=False).to_pylist()
    ]
    return pa.array(texts, pa.string()).take(distinct.indices)


def _four_digit_years(stamps: "pa.Array") -> bool:
    import pyarrow.compute as pc

    ends = pc.min_max(pc.year(stamps)).as_py()
    return ends["min"] is None or (ends["min"] >= 1000 and ends["max"] <= 9999)


def has_no_hour(field: Foreign) -> bool:
    """Say whether another tool's format writes days alone."""
    form = field.format.get("format")
    return form is not None and not any(part in form for part in ("%H", "%I", "%c", "%X", "%T"))


def in_iso(field: Foreign) -> dict[str, Any]:
    """Return the bounds in ISO form, where another tool wrote them in the column's own format."""
    bounds = dict(field.bounds)
    for name, bound in bounds.items():
        with suppress(LookupError, TypeError, ValueError):  # in ISO form already, or the schema's check tells
            bounds[name] = datetime.strptime(bound, field.format["format"]).isoformat()
    return bounds


def settle_days(reading: Floats, low: int, high: int, nullable: bool) -> Points:
    """Return the points of readings on a line of integers: clamped, the missing at its start unless they may be."""
    if nullable:
        return np.clip(reading, low, high)[:, None]  # NaN, the missing, stays
    return np.fmin(np.fmax(reading, low), high)[:, None]  # NaN becomes low


def refuses(type: "pa.DataType", wanted: str, kinds: str) -> str | None:
    """Say why a storage type is neither text nor one of Arrow's `kinds` of times, or return None."""
    import pyarrow.types as pt

    plain = plain_type(type)
    if is_text(plain) or pt.is_null(plain) or any(getattr(pt, f"is_{kind}")(plain) for kind in kinds.split()):
        return None
    advice = (
        "declare it as a number or an integer" if describe_type(plain) in ("numbers", "whole numbers") else "drop it"
    )
    return f"must be {wanted} or text, got {describe_type(plain)}. Cast it, or {advice}."


def in_zone(stamps: "pa.Array", kind: "pa.DataType") -> "pa.Array":
    """Return timestamps in UTC, or local ones, as a timestamp type; floored to its unit, clamped to its range."""
    import pyarrow as pa

    raw, null = integers(stamps)
    limit = (1 << 63) - 1
    ticks = scale_ticks(raw, stamps.type.unit, -limit, limit, PER_SECOND[kind.unit])
    return nulls_where(ticks, null, pa.int64()).cast(kind)

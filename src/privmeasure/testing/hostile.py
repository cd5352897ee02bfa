"""Cells that somebody could put into a table to change what becomes of others: texts, lines, objects, typed values.

One hostile row is all that an attacker has. Whatever is in it, every other row must become what it would have become
without it, and nothing that can be seen may tell that it is there.
"""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_WORD = (1 << 63) - 1

NUMBERS = (
    "0", "-0", "+0", "1", " 1 ", "1 ", "\t1", "1\u00a0", "\u20031", "+1.5", "-2.5", "1.", ".5", ".", "-.5e-3", "1e3",
    "1E+3", "1e", "1e+", "e5", "1e999", "-1e999", "1e-999", "1e-320", "nan", "NaN", "-nan", "nan(1)", "inf", "-inf",
    "Infinity", "-Infinity", "INF", "infinit", "0x10", "0b1", "1_000", "1,5", "1.5.2", "1 000", "1'000", "--1", "+-1",
    "1-", "(1)", "$1", "1%", "½", "²", "①", "١٢", "\uff11\uff12", "Ⅷ", "1\u0301", "\u22121", "1\x00", "\x001", "1\n",
    "\n1", "1\r", "1\x0b", "1\x1c", "1\u2028", "true1", "9" * 19, "9" * 400, "0" * 400 + "1", "0." + "0" * 400 + "1",
    "9007199254740993", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e308", "1.8e308",
    "4.9e-324", "2.5", "10", "100", "-3", "007", "1.0", "1.00", "None", "null", "NULL", "NA", "N/A", "#N/A", "?", "-",
)  # fmt: skip
DATES = (
    "2020-02-29", "2021-02-29", "2020-02-30", "2020-2-9", "2020-02-29 ", " 2020-02-29", "2020/02/29", "20200229",
    "2020-W09-6", "2020-060", "0000-01-01", "0001-01-01", "9999-12-31", "10000-01-01", "99999-01-01", "-0001-01-01",
    "+2020-01-01", "2020-13-01", "2020-00-10", "2020-01-00", "2020-01-32", "1969-12-31", "1582-10-10", "29.02.2020",
    "30.02.2020", "31.02.2020", "1.1.2020", "01.01.20", "29 Feb 20", "29 feb 20", "29 Fév 20", "1 Jan 1969",
    "2020-02-29T", "2020-02-29T10", "2020-02-29T10:30", "2020-02-29 10:30:05", "2020-02-29  10:30:05",
    "2020-02-29t10:30:05", "2020-02-29T10:30:05.1", "2020-02-29T10:30:05.123456789", "2020-02-29T10:30:05,123",
    "2020-02-29T10:30:05.1234567890123", "2020-02-29T24:00:00", "2020-02-29T23:59:60", "2020-02-29T10:60:00",
    "2020-02-29T10:30:05Z", "2020-02-29T10:30:05z", "2020-02-29T10:30:05 Z", "2020-02-29T10:30:05+02:00",
    "2020-02-29T10:30:05+0200", "2020-02-29T10:30:05+02", "2020-02-29T10:30:05+99:99", "2020-02-29T10:30:05-00:00",
    "2020-03-29T02:30:00", "2020-10-25T02:30:00", "2262-04-11T23:47:16.854775808", "1677-09-21T00:12:43",
    "294247-01-10T04:00:54.775807", "1.1.2020 10:30", "29.02.2020 24:00", "2020-02-29T10:30:05.999999999+14:00",
)  # fmt: skip
TIMES = (
    "07", "7", "7:30", "07:30", "07:3", "7:3", "0730", "07:30:05", "07:30:05.5", "07:30:05.999999999", " 07:30 ",
    "07:30Z", "07:30+02:00", "24:00", "23:59:60", "23:59:59.9999999999", "25:00", "-1:00", "07:60", "07:30:61",
    "7:30 pm", "T07:30", "07.30", "07h30", "00", "00:00", ":", "7:", ":30",
)  # fmt: skip
WORDS = (
    "", " ", "\t", "\n", "\r\n", "\x00", "a\x00b", "true", "TRUE", " true ", "T", "t", "tRuE", "yes", "y", "on",
    "off", "No", "f", "FALSE", "ja", "J", "n", "\u0131f", "ﬀ", "\u017f", "ß", "SS", "İ", "F", "f ", " F", "M", "m",
    "S", "L", "Ω", "\u2126", "é", "e\u0301", "北京", "\U0001d518", "\U0001d518" * 50, "a\u202eb", "\ufeffF", "F\ufeff",
    "\u200bF", "\ufffd", '"', '""', '"F"', "'F'", "F,M", "F;M", "F\tM", "F\nM", "=1+1", "@SUM(A1)", "<b>F</b>", "\\N",
    "\\", "\\n", "%d", "{0}", "[1, 2]", '{"a": 1}', "x" * 10_000, "éa" * 3000, "a", "b", "c", "A", "1.0.0.0",
    "F" * 300, "\uff26",
)  # fmt: skip
TEXTS: tuple[str, ...] = NUMBERS + DATES + TIMES + WORDS
"""Texts that look nearly like numbers, dates, times, categories or words for true and false, and some that do."""

LINES: tuple[bytes, ...] = (
    b"", b",", b",,", b",,,,,,,,", b"1", b"1,2,3,4,5,6", b'"', b'""', b'"""', b'""""', b'"a', b'a"', b'"a"b', b'"a""b',
    b'"a""', b'a"b,"c', b'"a,b', b'"a",b"', b"'a,b'", b'",",",', b'\\",a', b'"\\"', b'"a\\",b', b"\xff", b"\xff\xfe",
    b"\xfe\xff1,2", b"\xef\xbb\xbf1,2", b"\xc0\x80", b"\xed\xa0\x80,1", b"\xf5\x80\x80\x80", b"\xe2\x82", b"1,\xe9",
    b"\xe9,1", b"\x00", b"\x00,\x00", b"1\x00,2", b"1,2\x00", b"\x1a", b"\x0b", b"\x0c", b"\x1c\x1d\x1e", b"\x85",
    b"\xc2\x85", b"\xe2\x80\xa8", b"\x1f\x8b\x08", b"PAR1", b"#comment", b"#1,2", b"//", b"--", b" ", b"\t", b"1\t2",
    b"1;2", b"1|2", b"NA,NA", b"x" * 100_000, b'"' * 1001, b'"' + b"y" * 70_000, b"," * 5000, b"1," + b"\xff" * 300,
)  # fmt: skip
"""Lines of text files, without their ends: ragged ones, odd quotes, bytes that are no UTF-8."""


class Explosive:
    """An object that fails at whatever it is asked."""

    def __str__(self) -> str:
        """Fail."""
        raise RuntimeError("explosive")

    __repr__ = __str__

    def __float__(self) -> float:
        """Fail otherwise."""
        raise ZeroDivisionError("explosive")

    def __eq__(self, other: object) -> bool:
        """Fail."""
        raise RuntimeError("explosive")

    def __hash__(self) -> int:
        """Be usable as a key."""
        return 7


def hostile_objects() -> tuple[Any, ...]:
    """Return Python objects that a column of objects, or a list, may hold."""
    return (
        None, True, False, 0, -1, 2**53 + 1, 2**63, 2**70, -(2**70), 10**400, 10**5000, 1.5, -0.0, 1e308, float("nan"),
        float("inf"), -float("inf"), 1j, Decimal("1.5"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"),
        Decimal("1e999999"), Fraction(1, 3), Fraction(10**400, 3), b"1", b"\xff", bytearray(b"x"), "1", "\ud800",
        "F\udfff", "\udcff", (), (1,), (1, 2), [], [1], [1, 2], [1, 2, 3], [[1]], {}, {"a": 1}, {1}, frozenset(),
        range(3), object, Ellipsis, NotImplemented, Explosive(), [Explosive()], Explosive, type(None), np.int8(1),
        np.float32(1.5), np.float64("nan"), np.bool_(True), np.str_("F"), np.datetime64("NaT"),
        np.datetime64("2020-02-29"), np.timedelta64(1, "s"), np.array(1.0), np.array([1.0]), np.array([1.0, 2.0]),
        np.array([["x"]]), dt.date(2020, 2, 29), dt.datetime(2020, 2, 29, 10, 30), dt.time(7, 30), dt.date.min,
        dt.datetime.max.replace(tzinfo=dt.UTC), dt.timedelta(days=1), *TEXTS[::9],
    )  # fmt: skip


def hostile_arrays() -> "Iterator[pa.Array]":
    """Yield Arrow arrays of every type, with the oddest values that it can hold."""
    import pyarrow as pa

    texts = pa.array([None, *TEXTS])
    yield from (texts, texts.cast(pa.large_string()), texts.cast(pa.string_view()), texts.dictionary_encode())
    yield pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 2], pa.int8()), pa.array(["1", None, "x"]))
    yield pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.uint64()), pa.array([2.5, None]))
    odd = pa.array([line for line in LINES if len(line) < 1000])
    yield pa.Array.from_buffers(pa.string(), len(odd), odd.buffers())  # not UTF-8
    yield pa.array([None, b"", b"1", b"\xff"])
    yield pa.array([None, b"1234"], pa.binary(4))
    yield pa.array([None, True, False])
    yield pa.nulls(3)
    yield pa.array([], pa.int64())
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        limits = np.iinfo(name)
        yield pa.array([None, 0, 1, 2, int(limits.min), int(limits.max)], name)
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        yield pa.array([None, 0.0, -0.0, 1.0, 0.1, np.nan, np.inf, -np.inf, 5e-324, 6e4]).cast(kind, safe=False)
    yield pa.array([None, 1e308, -1e308, 2.5, 2.0**63])
    yield pa.array([None, Decimal("1.50"), Decimal("-999.99")], pa.decimal128(5, 2))
    yield pa.array([None, Decimal(10) ** 37], pa.decimal256(60, 3))
    yield from _temporal_arrays()
    yield pa.array([None, [1], []])
    yield pa.array([None, {"a": 1}])
    yield pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["1", None]))
    yield pa.ExtensionArray.from_storage(pa.uuid(), pa.array([None, b"0" * 16], pa.binary(16)))


def _temporal_arrays() -> "Iterator[pa.Array]":
    import pyarrow as pa

    yield pa.array([None, 0, -1, 18321, 2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())
    yield pa.array([None, 0, -1, LARGEST_WORD, -LARGEST_WORD]).view(pa.date64())
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Berlin", "+05:30") if unit == "us" else (None, "Europe/Berlin"):
            yield pa.array([None, 0, -1, LARGEST_WORD, -LARGEST_WORD, 1_600_000_000, 1 << 55]).view(
                pa.timestamp(unit, zone)
            )
        yield pa.array([None, 0, -1, LARGEST_WORD]).view(pa.duration(unit))
    yield pa.array([None, 0, 86399], pa.int32()).view(pa.time32("s"))
    yield pa.array([None, 0, -1, 2**31 - 1], pa.int32()).view(pa.time32("ms"))
    yield pa.array([None, 0, -1, LARGEST_WORD]).view(pa.time64("us"))
    yield pa.array([None, 0, -1, LARGEST_WORD]).view(pa.time64("ns"))

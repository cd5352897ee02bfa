"""How DuckDB, PostgreSQL and SQLite say what differs from one to the other: the words of `sources/sql.py`."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """How an engine says what differs from engine to engine."""

    title: str
    double: str
    """The name of 64-bit floats."""
    casts: dict[str, str]
    """What to cast a column to, by the word for its type: for advice."""
    exact_decimals: bool
    """Whether decimal digits are read as the nearest double."""
    barrier: str
    """What keeps an optimizer from writing a subquery's expressions into those that use them, again and again."""
    remainder: str | None
    """C's fmod; None where there is none."""
    array: str | None
    """The literal of an array, of values and their type; None where there are none."""
    buckets: str | None = None
    """How many of an array of edges are at or below a value."""
    branches: int = 2
    """Of a tree of comparisons at every node; SQLite does not read deep trees."""
    grouping_sets: bool = True
    cast: str = "CAST"
    """The cast to advise: one that does not fail because of a value, where there is one."""
    collate: str = ""
    """What makes a comparison of texts one of bytes."""
    unicode: Callable[[str], str | None] = lambda text: "'" + text.replace("'", "''") + "'"
    """The literal of a text; None for one that the engine cannot hold."""

    def name(self, name: str) -> str:
        """Return a quoted name.

        Examples:
            >>> SQLITE_DIALECT.name('a "b"')
            '"a ""b""\"'
        """
        return '"' + name.replace('"', '""') + '"'

    def number(self, value: float) -> str:
        """Return the literal of a double, which the engine reads as that double and no other.

        Examples:
            >>> DUCKDB.number(0.1), SQLITE_DIALECT.number(0.1)
            ("CAST('0.1' AS DOUBLE)", '(3602879701896397.0 / 36028797018963968.0)')
        """
        value = float(value)
        if self.exact_decimals:
            text = repr(value) if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
            return f"CAST('{text}' AS {self.double})"
        if math.isinf(value):
            return "9e999" if value > 0 else "-9e999"
        top, bottom = value.as_integer_ratio()  # powers of two below 2^63 are read exactly, and divided by exactly
        shift, sign = max(abs(top).bit_length() - 53, 0), "-" if top < 0 else ""
        parts = [f"{sign}{abs(top) >> shift}.0", *_powers("*", shift), *_powers("/", bottom.bit_length() - 1)]
        return parts[0] if len(parts) == 1 else f"({' '.join(parts)})"

    def items(self, values: Sequence[float]) -> str:
        """Return the literal of an array of doubles or of integers."""
        assert self.array is not None
        kind = "BIGINT" if all(isinstance(value, int) for value in values) else self.double
        return self.array.format(", ".join(map(repr, values)), kind)

    def floor(self, expression: str, most: int) -> str:
        """Return the floor of a number that is not negative, as an integer that is at most so large."""
        if self is SQLITE_DIALECT:
            return f"CAST({expression} AS INTEGER)"
        return f"CAST(floor({expression}) AS {'INTEGER' if most < 1 << 31 else 'BIGINT'})"


def _powers(operator: str, exponent: int) -> Iterator[str]:
    while exponent > 0:
        yield f"{operator} {1 << min(exponent, 62)}.0"
        exponent -= 62


def _duckdb_text(text: str, nul: str = "chr(0)") -> str:
    quoted = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return quoted[0] if len(quoted) == 1 else f"({f' || {nul} || '.join(quoted)})"


def _sqlite_text(text: str) -> str:
    return _duckdb_text(text, "char(0)")  # no cast of bytes: what they say depends on the encoding of the database


def _postgres_text(text: str) -> str | None:
    if "\0" in text:
        return None
    escaped = text.replace("\\", "\\\\").replace("'", "''")  # E'' means the same under all settings
    return f"E'{escaped}'"


DUCKDB = Dialect(
    "DuckDB",
    "DOUBLE",
    {"number": "DOUBLE", "integer": "BIGINT", "text": "VARCHAR", "boolean": "BOOLEAN"}
    | {"date": "DATE", "timestamp": "TIMESTAMP", "time": "TIME"},
    exact_decimals=True,
    barrier="",
    remainder="({0} % {1})",
    array="CAST('[{0}]' AS {1}[])",
    cast="TRY_CAST",
    collate=' COLLATE "C"',
    unicode=_duckdb_text,
)
POSTGRES = Dialect(
    "PostgreSQL",
    "double precision",
    {"number": "double precision", "integer": "bigint", "text": "text", "boolean": "boolean"}
    | {"date": "date", "timestamp": "timestamp", "time": "time"},
    exact_decimals=True,
    barrier=" OFFSET 0",
    remainder=None,
    array="(CAST('{{{0}}}' AS {1}[]))",
    buckets="width_bucket({0}, {1})",
    collate=' COLLATE "C"',
    unicode=_postgres_text,
)
SQLITE_DIALECT = Dialect(
    "SQLite",
    "REAL",
    {"number": "REAL", "integer": "INTEGER", "text": "TEXT"},
    exact_decimals=False,
    barrier=" LIMIT -1 OFFSET 0",
    remainder="mod({0}, {1})",
    array=None,
    branches=16,
    grouping_sets=False,
    collate=" COLLATE BINARY",
    unicode=_sqlite_text,
)

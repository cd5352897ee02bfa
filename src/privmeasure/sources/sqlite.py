"""SQLite, through the standard library: counted by the engine, inside this process.

Cells of SQLite have types of their own, whatever the column declares. What is read depends on the cell and on the
declared type alone: in a column of numbers a text is missing, and so is a blob. Dates and times are texts there, in the
form 2020-01-31 12:30:59.5, with a T in the place of the space or without the time; what has another form is missing.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from privmeasure.errors import DataError
from privmeasure.sources.dialects import SQLITE_DIALECT
from privmeasure.sources.sql import StoredColumn, masked_columns, subquery

STEPS_BETWEEN = 1_000_000
"""Of the engine between two looks at whether someone pressed Ctrl-C."""
_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
PROBE = "privmeasure_columns"

_NUMBERS = "CASE WHEN typeof({0}) IN ('integer', 'real') THEN CAST({0} AS REAL) END"
_TEXTS = "CAST({} AS TEXT)"


def _days(text: str) -> str:
    """Return the days since 1970 of a text that is a day; NULL of any other."""
    return f"CASE WHEN {text} GLOB '{_DAY}' AND date(julianday({text})) = {text} THEN julianday({text}) - 2440587.5 END"


def _ticks(text: str) -> str:
    """Return the microseconds of the day of a text that is a time; NULL of any other.

    12:30, 12:30:59 and 12:30:59.5 are. Digits after the sixth are cut off.
    """
    clock = f"3600 * substr({text}, 1, 2) + 60 * substr({text}, 4, 2) + CAST('0' || substr({text}, 7, 2) AS INTEGER)"
    tail = f"substr({text}, 10)"
    fraction = f"CAST(substr({tail} || '000000', 1, 6) AS INTEGER)"
    form = (
        f"({text} GLOB '[0-2][0-9]:[0-5][0-9]' OR {text} GLOB '[0-2][0-9]:[0-5][0-9]:[0-5][0-9]' OR ("
        f"substr({text}, 1, 9) GLOB '[0-2][0-9]:[0-5][0-9]:[0-5][0-9].' AND {tail} != '' "
        f"AND {tail} NOT GLOB '*[^0-9]*'))"
    )
    return f"CASE WHEN {form} AND substr({text}, 1, 2) < '24' THEN 1000000.0 * ({clock}) + {fraction} END"


def _moments(text: str) -> str:
    """Return the microseconds since 1970 of a text that is a day, or a day and a time; NULL of any other."""
    day, rest = _days(f"substr({text}, 1, 10)"), _ticks(f"substr({text}, 12)")
    time = f"CASE WHEN length({text}) = 10 THEN 0.0 WHEN substr({text}, 11, 1) IN (' ', 'T') THEN {rest} END"
    return f"86400000000.0 * ({day}) + ({time})"


def _only_text(value: str) -> str:
    return f"CASE WHEN typeof({{0}}) = 'text' THEN {value} END"


class SQLiteDriver:
    """A query on a connection of sqlite3, or a table."""

    dialect = SQLITE_DIALECT

    def __init__(self, connection: Any, query: str | None, table: str | None) -> None:
        """Take a connection; nothing runs yet."""
        self._connection = connection
        self._ours = False
        self.given = subquery(SQLITE_DIALECT, query, table)

    def columns(self) -> Sequence[Sequence[StoredColumn]]:
        """Return the columns of the result: their declared types, or what a CAST makes of them."""
        self._check_functions()
        if self._connection.in_transaction:
            return self._probed()
        self._connection.execute("BEGIN")
        try:
            return self._probed()
        finally:
            self._connection.execute("ROLLBACK")

    def _check_functions(self) -> None:
        try:
            self._connection.execute("SELECT floor(1.5), mod(1.5, 1.0)").fetchall()
        except sqlite3.Error:
            raise DataError(
                "This SQLite was built without mathematical functions. Use a Python whose SQLite has them (since 3.35, "
                "with SQLITE_ENABLE_MATH_FUNCTIONS), or export the rows to a file."
            ) from None

    def _probed(self) -> list[tuple[StoredColumn, ...]]:
        """Look at a view and at an empty table of the result, both temporary: one knows columns, the other casts."""
        run, probe = self._connection.execute, SQLITE_DIALECT.name(PROBE)
        run(f"CREATE TEMP VIEW {probe} AS SELECT * FROM {self.given} AS given")
        try:
            declared = [(name, word) for _, name, word, *_ in run(f"PRAGMA temp.table_info({probe})").fetchall()]
        finally:
            run(f"DROP VIEW temp.{probe}")
        run(f"CREATE TEMP TABLE {probe} AS SELECT * FROM {self.given} AS given LIMIT 0")
        try:
            made = [word for _, _, word, *_ in run(f"PRAGMA temp.table_info({probe})").fetchall()]
        finally:
            run(f"DROP TABLE temp.{probe}")
        return [_stored(name, word or cast) for (name, word), cast in zip(declared, made, strict=True)]

    def begin(self) -> None:
        """Begin a transaction, unless one is open."""
        self._ours = not self._connection.in_transaction
        if self._ours:
            self._connection.execute("BEGIN")
        self._connection.set_progress_handler(lambda: 0, STEPS_BETWEEN)  # Python looks at its signals there

    def ask(self, statement: str) -> Sequence[Any]:
        """Run a statement."""
        cursor = self._connection.cursor()
        cursor.row_factory = None
        cursor.execute(statement)
        return masked_columns(cursor.fetchall(), len(cursor.description))

    def end(self) -> None:
        """End the transaction, if it is ours: nothing was changed."""
        self._connection.set_progress_handler(None, 0)
        if self._ours:
            self._connection.execute("ROLLBACK")

    def was_interrupted(self, error: Exception) -> bool:
        """Say whether it is what SQLite makes of Ctrl-C."""
        return isinstance(error, sqlite3.OperationalError) and "interrupted" in str(error)


def _stored(name: str, word: str) -> tuple[StoredColumn, ...]:
    """Return how a column is read, by the word that declares it, and in which other ways its texts may be."""
    import pyarrow as pa

    upper = word.upper()
    day = StoredColumn(name, word, pa.date32(), _only_text(_days("{0}")), whole=True)
    moment = StoredColumn(name, word, pa.timestamp("us"), _only_text(_moments("{0}")), whole=True)
    time = StoredColumn(name, word, pa.time64("us"), _only_text(_ticks("{0}")), whole=True)
    if "INT" in upper:
        return (StoredColumn(name, word, pa.int64(), _NUMBERS),)  # a cell may still hold 1.5
    if any(part in upper for part in ("CHAR", "CLOB", "TEXT")):
        return StoredColumn(name, word, pa.string(), _TEXTS), day, moment, time
    if any(part in upper for part in ("REAL", "FLOA", "DOUB", "NUM", "DECIMAL")):
        return (StoredColumn(name, word, pa.float64(), _NUMBERS),)
    if upper.startswith("BOOL"):
        return (StoredColumn(name, word, pa.bool_(), _NUMBERS),)
    if upper == "DATE":
        return (day,)
    if upper.startswith(("DATETIME", "TIMESTAMP")):
        return (moment,)
    return (time,) if upper == "TIME" else (StoredColumn(name, word, None),)


def connect_sqlite(path: Path) -> Any:
    """Open a file of SQLite for reading."""
    connection = None
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        with suppress(AttributeError, sqlite3.Error):
            connection.close()  # type: ignore[union-attr]
        raise DataError(f"{path} cannot be opened as an SQLite file ({type(error).__name__}).") from None
    return connection

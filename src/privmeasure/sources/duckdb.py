"""DuckDB: relations and queries, counted in the engine. Needs the extra `duckdb`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privmeasure.errors import ArgumentError, DataError
from privmeasure.extras import how_to_install
from privmeasure.sources.dialects import DUCKDB
from privmeasure.sources.sql import StoredColumn, subquery
from privmeasure.threads import interruptible

if TYPE_CHECKING:
    import pyarrow as pa

VIEW = "privmeasure_rows"
"""What statements call the rows of a relation."""

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
GUESSES = re.compile(r"READ_(CSV|JSON|NDJSON|XLSX)|PANDAS_SCAN|SQLITE_SCAN")
"""What a plan calls the readers that look at rows to find types, or refuse a cell that is not of its column's type."""


class DuckDBDriver:
    """A relation of DuckDB, or a query on a connection."""

    dialect = DUCKDB

    def __init__(self, relation: Any, connection: Any = None, given: str = VIEW) -> None:
        """Take a relation; or a connection and what is `given` to it, which the relation describes."""
        self._relation, self.given = relation, given
        self._runs = None if given == VIEW else connection
        self._connection = getattr(relation, "_con", None) if connection is None else connection
        self._ours = False

    @classmethod
    def of(cls, connection: Any, query: str | None, table: str | None) -> "DuckDBDriver":
        """Return the driver of a query or of a table."""
        given = subquery(DUCKDB, query, table)
        text = f"SELECT * FROM {given} AS given"
        try:
            statements = len(connection.extract_statements(text))  # DuckDB would run the first ones at once
            relation = connection.sql(text) if statements == 1 else None
        except Exception as error:  # its words may quote a literal of the query
            raise DataError(
                f"DuckDB does not understand the query, or has no such table ({type(error).__name__}). Try it alone."
            ) from None
        if relation is None:
            raise ArgumentError("A query must be one SELECT, and this text is several statements. Give the last alone.")
        return cls(relation, connection, given)

    def columns(self) -> Sequence[Sequence[StoredColumn]]:
        """Return the columns; they are known before anything runs."""
        self._check_readers()
        types = map(str, self._relation.types)
        return [(stored_column(name, word),) for name, word in zip(self._relation.columns, types, strict=True)]

    def _check_readers(self) -> None:
        """Refuse files and frames whose types DuckDB guesses: one row would decide how all others are read."""
        if GUESSES.search(self._relation.explain()):
            raise DataError(
                "DuckDB looks at the rows of text files, spreadsheets and frames of pandas to find the types of their "
                "columns, and at single cells of SQLite: one row would decide how all others are read. Give the file, "
                "the frame or the SQLite table itself, not through DuckDB; or insert its rows into a table whose types "
                "you declare."
            )

    def begin(self) -> None:
        """Begin a transaction, unless one is open: then two looks at its number show the same."""
        one, other = (self.ask("SELECT txid_current()")[0][0] for _ in range(2))
        self._ours = one != other
        if self._ours:
            self._control("BEGIN TRANSACTION")

    def ask(self, statement: str) -> Sequence[Any]:
        """Run a statement."""
        if self._connection is None:
            return self._answers(statement)
        return interruptible(lambda: self._answers(statement), self._connection.interrupt)

    def _answers(self, statement: str) -> list[Any]:
        if self._runs is not None:
            return list(self._runs.execute(statement).fetchnumpy().values())
        return list(self._relation.query(VIEW, statement).fetchnumpy().values())

    def end(self) -> None:
        """End the transaction, if it is ours: nothing was changed."""
        if self._ours:
            self._control("ROLLBACK")

    def _control(self, statement: str) -> None:
        if self._connection is None:
            self._relation.query(VIEW, statement)
        else:  # also after an error, where a relation can no longer be asked
            self._connection.execute(statement)

    def was_interrupted(self, error: Exception) -> bool:
        """Say whether it is what DuckDB makes of Ctrl-C."""
        return type(error).__name__ == "InterruptException" or (
            type(error) is RuntimeError and "interrupted" in str(error).lower()
        )


def stored_column(name: str, word: str) -> StoredColumn:
    """Return how a column of a type of DuckDB is read.

    Examples:
        >>> stored_column("age", "SMALLINT").type, stored_column("age", "SMALLINT").value
        (DataType(int16), 'CAST({} AS DOUBLE)')
    """
    import pyarrow as pa

    doubles = "CAST({} AS DOUBLE)"
    infinities = (
        "WHEN {0} > CAST('2000-01-01' AS %s) THEN CAST('Infinity' AS DOUBLE) "
        "WHEN {0} IS NOT NULL THEN CAST('-Infinity' AS DOUBLE) END"
    )
    unsigned = word.startswith("U")
    if (plain := word.removeprefix("U")) in INTEGERS and (plain == word or unsigned):
        bits = 8 << INTEGERS.index(plain)
        return StoredColumn(name, word, getattr(pa, f"{'u' * unsigned}int{bits}")(), doubles, whole=True)
    if word in ("FLOAT", "DOUBLE"):
        type = pa.float32() if word == "FLOAT" else pa.float64()
        return StoredColumn(name, word, type, doubles, nan=True)
    if word == "BOOLEAN":
        return StoredColumn(name, word, pa.bool_(), doubles, whole=True)
    if word == "VARCHAR" or word.startswith("ENUM("):
        return StoredColumn(name, word.split("(")[0], pa.string(), "CAST({} AS VARCHAR)")
    if word == "DATE":
        days = "CASE WHEN isfinite({0}) THEN CAST({0} - DATE '1970-01-01' AS DOUBLE) "
        return StoredColumn(name, word, pa.date32(), days + infinities % word, whole=True)
    if word == "TIME":
        return StoredColumn(name, word, pa.time64("us"), "CAST(epoch_us({}) AS DOUBLE)", whole=True)
    if word in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
        type = pa.timestamp("us", None if word == "TIMESTAMP" else "UTC")
        ticks = "CASE WHEN isfinite({0}) THEN CAST(epoch_us({0}) AS DOUBLE) "
        return StoredColumn(name, word, type, ticks + infinities % word, whole=True)
    if word in ("TIMESTAMP_S", "TIMESTAMP_MS"):  # years that microseconds have no room for are as good as infinite
        unit, last = ("s", "59") if word == "TIMESTAMP_S" else ("ms", "59.999")
        ends = f"CAST('0001-01-01' AS {word}) AND CAST('9999-12-31 23:59:{last}' AS {word})"
        ticks = f"CASE WHEN {{0}} BETWEEN {ends} THEN CAST(epoch_us({{0}}) AS DOUBLE) "
        return StoredColumn(name, word, pa.timestamp(unit), ticks + infinities % word, whole=True)
    return StoredColumn(name, word, _unread(word))


def _unread(word: str) -> "pa.DataType | None":
    """Return the type of a column that can be declared but not counted; None where there is none of the kind."""
    import pyarrow as pa

    if word == "TIMESTAMP_NS":
        return pa.timestamp("ns")
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", word)
    return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else None


def connect_duckdb(path: Path) -> Any:
    """Open a file of DuckDB for reading."""
    try:
        import duckdb
    except ImportError:
        raise DataError(f"duckdb: needs the package duckdb: {how_to_install('duckdb')}.") from None
    try:
        return duckdb.connect(str(path), read_only=True)
    except duckdb.Error as error:
        raise DataError(
            f"{path} cannot be opened as a DuckDB file ({type(error).__name__}). Is another program writing to it?"
        ) from None

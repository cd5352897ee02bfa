"""PostgreSQL, through psycopg 3: counted in the server. Needs the extra `postgres`."""

from collections.abc import Sequence
from typing import Any

from privmeasure.errors import DataError
from privmeasure.extras import how_to_install
from privmeasure.sources.dialects import POSTGRES
from privmeasure.sources.sql import StoredColumn, masked_columns, subquery

DOUBLES = "CAST({} AS double precision)"
INFINITIES = (
    "WHEN {0} > CAST('2000-01-01' AS %s) THEN CAST('Infinity' AS double precision) "
    "WHEN {0} IS NOT NULL THEN CAST('-Infinity' AS double precision) END"
)


class PostgresDriver:
    """A query on a connection of psycopg, or a table."""

    dialect = POSTGRES

    def __init__(self, connection: Any, query: str | None, table: str | None) -> None:
        """Take a connection; nothing runs yet."""
        self._connection = connection
        self._ours = False
        self.given = subquery(POSTGRES, query, table)

    def columns(self) -> Sequence[Sequence[StoredColumn]]:
        """Return the columns of the result: it is asked for without a row."""
        self._enter()
        try:
            self._run("SET LOCAL client_encoding = 'UTF8'")  # else names of types may come as bytes
            cursor = self._run(f"SELECT * FROM {self.given} AS given LIMIT 0")
            described = [(column.name, column.type_code, column) for column in cursor.description or ()]
            listed = ", ".join(str(int(code)) for _, code, _ in described) or "0"
            kinds = self._run(
                f"SELECT oid::bigint, typname::text, typtype::text FROM pg_catalog.pg_type WHERE oid IN ({listed})"
            ).fetchall()
        finally:
            self.end()
        words = {code: (name, kind) for code, name, kind in kinds}
        return [(_stored(name, *words[code], column),) for name, code, column in described]

    def begin(self) -> None:
        """Begin a transaction that sees one state; one that is open must do so too."""
        self._enter()
        if not self._ours:
            (level,) = self._run("SHOW transaction_isolation").fetchone()
            if level not in ("repeatable read", "serializable"):
                raise DataError(
                    f"The connection is in a transaction that sees a new state with every statement ({level}). End it "
                    "before the fit, which begins one of its own, or begin it as REPEATABLE READ."
                )
        self._run("SET LOCAL client_encoding = 'UTF8'")

    def _enter(self) -> None:
        idle = self._connection.info.transaction_status == 0
        self._ours = idle
        if idle and self._connection.autocommit:
            self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        elif idle:  # psycopg begins one before the first statement
            self._run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    def ask(self, statement: str) -> Sequence[Any]:
        """Run a statement."""
        cursor = self._run(statement)
        return masked_columns(cursor.fetchall(), len(cursor.description))

    def _run(self, statement: str) -> Any:
        from psycopg.rows import tuple_row

        # binary answers come by a protocol that takes one statement alone: a query cannot end our transaction
        return self._connection.cursor(row_factory=tuple_row).execute(statement, prepare=False, binary=True)

    def end(self) -> None:
        """End the transaction, if it is ours: nothing was changed."""
        if self._ours:
            self._run("ROLLBACK")
            self._ours = False

    def was_interrupted(self, error: Exception) -> bool:
        """Ctrl-C comes as it is, after the server was told to stop."""
        return False


def _stored(name: str, word: str, kind: str, column: Any) -> StoredColumn:
    """Return how a column is read, by the name of its type."""
    import pyarrow as pa

    integers = {"int2": pa.int16(), "int4": pa.int32(), "int8": pa.int64()}
    if word in integers:
        return StoredColumn(name, word, integers[word], DOUBLES, whole=True)
    if word in ("float4", "float8"):
        type = pa.float32() if word == "float4" else pa.float64()
        return StoredColumn(name, word, type, DOUBLES, nan=True)
    if word == "bool":
        return StoredColumn(name, word, pa.bool_(), DOUBLES.format("CAST({} AS integer)"), whole=True)
    if word in ("text", "varchar", "bpchar", "name") or kind == "e":
        return StoredColumn(name, word, pa.string(), "CAST({} AS text)")
    if word == "date":
        days = "CASE WHEN isfinite({0}) THEN CAST({0} - DATE '1970-01-01' AS double precision) "
        return StoredColumn(name, word, pa.date32(), days + INFINITIES % word, whole=True)
    ticks = "CAST(round(CAST(extract(epoch FROM {0}) AS numeric) * 1000000) AS double precision)"
    if word in ("timestamp", "timestamptz"):
        type = pa.timestamp("us", None if word == "timestamp" else "UTC")
        return StoredColumn(
            name, word, type, f"CASE WHEN isfinite({{0}}) THEN {ticks} " + INFINITIES % word, whole=True
        )
    if word == "time":
        return StoredColumn(name, word, pa.time64("us"), ticks, whole=True)
    if word == "numeric" and column.precision is not None and 0 <= (column.scale or 0) <= column.precision <= 38:
        return StoredColumn(name, word, pa.decimal128(column.precision, column.scale or 0))
    return StoredColumn(name, word, None)


def connect_postgres(address: str) -> Any:
    """Connect to a server for reading; what the address leaves out comes from the environment, as with psql."""
    try:
        import psycopg
    except ImportError:
        raise DataError(f"postgresql: needs the package psycopg: {how_to_install('postgres')}.") from None
    try:
        return psycopg.connect(address)
    except psycopg.Error as error:
        raise DataError(
            f"The PostgreSQL server could not be reached, or refused the connection ({type(error).__name__}). Try the "
            "same address with psql, which says why."
        ) from None

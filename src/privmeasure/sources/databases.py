"""Tables in databases: counted where they lie. Private.

A `Query` says which rows; a driver (`sources/duckdb.py`, `sources/postgres.py`, `sources/sqlite.py`) knows the columns
of its result and carries statements to the engine; `DatabaseSource` asks one GROUP BY for each list of partitions. What
leaves the engine is a count for each occupied cell.

**Whose promise.** Neighbouring means rows of the query's result. A query that joins, limits, samples or ranks rows can
let one person's row change many rows of its result; that it does not is promised by whoever wrote it.

**One snapshot.** All questions of a fit are about the same rows: the source begins a transaction, and ends it.

**No words of the engine.** Its errors quote values. Of an error its class is told, and nothing else.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, unquote, urlencode

from privmeasure.counts import CellCounts, Partition
from privmeasure.domains import Domain
from privmeasure.domains.scales import Reading, describe
from privmeasure.errors import ArgumentError, DataError, SchemaError
from privmeasure.sources.dialects import Dialect
from privmeasure.sources.engines import engine_words, spending_told
from privmeasure.sources.sql import Question, StoredColumn, trial
from privmeasure.tables import Schema
from privmeasure.tables.arrow import is_double
from privmeasure.tables.columns.base import DataColumn
from privmeasure.threads import Progress

QUERY_ADVICE = (
    "Run the query by itself, where its errors may be seen. A query must not fail because of a value: cast so that "
    "what cannot be cast is NULL."
)
SCHEMES = ("duckdb", "sqlite", "postgresql", "postgres")
"""How the place of a table in a database begins, before a colon."""
IBIS_BACKENDS = ("duckdb", "sqlite", "postgres")
"""What Ibis calls the engines that have a driver here."""


class Driver(Protocol):
    """An engine with a query: what its result looks like, and how it is asked."""

    dialect: Dialect

    @property
    def given(self) -> str:
        """The table or the query, as it stands after FROM."""
        ...

    def columns(self) -> Sequence[Sequence[StoredColumn]]:
        """Return the columns of the result, each with all ways in which it may be read, the usual one first."""
        ...

    def begin(self) -> None:
        """Begin to see one state of the database."""
        ...

    def ask(self, statement: str) -> Sequence[Any]:
        """Return the columns of the answer, masked where they are NULL."""
        ...

    def end(self) -> None:
        """Let go of what `begin` began."""
        ...

    def was_interrupted(self, error: Exception) -> bool:
        """Say whether an error of the engine stands for Ctrl-C."""
        ...


class Query:
    """The rows of a query or of a table in a database, for `Synthesizer.fit`: they are counted there.

    The connection is one of `duckdb`, of `psycopg` (PostgreSQL) or of `sqlite3`. It is used in the thread of the fit,
    inside a transaction that is ended after it, unless one is open already.

    Examples:
        >>> import sqlite3, privmeasure as pm
        >>> base = sqlite3.connect(":memory:")
        >>> _ = base.execute("CREATE TABLE visits (age INTEGER, ward TEXT)")
        >>> _ = base.executemany("INSERT INTO visits VALUES (?, ?)", [(31, "A"), (52, "B")] * 500)
        >>> schema = pm.Schema({"age": pm.Integer(0, 120), "ward": pm.Category(["A", "B"])})
        >>> synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove")
        >>> synth.fit(pm.Query(base, "SELECT age, ward FROM visits WHERE age >= 18")).sample(3).num_rows
        3
        >>> pm.Query(base, table="visits")
        Query(SQLite)
    """

    def __init__(self, connection: Any, query: str | None = None, *, table: str | None = None) -> None:
        """Take a connection and either a SELECT or the name of a table; dots part the names of schema and table."""
        if (query is None) == (table is None):
            raise ArgumentError("A Query needs either a query, such as 'SELECT age FROM visits', or table='visits'.")
        if not isinstance(query or table, str):
            raise ArgumentError("The query, or the name of the table, must be a text.")
        self._driver = _driver_of(connection, query, table)

    def source(self, space: Schema | Domain) -> "DatabaseSource":
        """Return the rows behind the counting interface; names and types are compared with the space, and no row."""
        return DatabaseSource(self._driver, space)

    def __repr__(self) -> str:
        """Name the engine: a connection may hold a password."""
        return f"Query({self._driver.dialect.title})"


def _driver_of(connection: Any, query: str | None, table: str | None) -> Driver:
    """Return the driver of a connection, by its class; no library is loaded that the caller has not."""
    if (module := _loaded("duckdb")) is not None and isinstance(connection, module.DuckDBPyConnection):
        from privmeasure.sources.duckdb import DuckDBDriver

        return DuckDBDriver.of(connection, query, table)
    if (module := _loaded("psycopg")) is not None and isinstance(connection, module.Connection):
        from privmeasure.sources.postgres import PostgresDriver

        return PostgresDriver(connection, query, table)
    if (module := _loaded("sqlite3")) is not None and isinstance(connection, module.Connection):
        from privmeasure.sources.sqlite import SQLiteDriver

        return SQLiteDriver(connection, query, table)
    raise ArgumentError(
        f"The connection must be one of duckdb, psycopg (version 3) or sqlite3, got {type(connection).__module__}."
        f"{type(connection).__name__}."
    )


def _loaded(name: str) -> Any:
    return sys.modules.get(name)


def lazy_source(data: Any, space: Schema | Domain) -> "DatabaseSource | None":
    """Return a lazy frame whose rows lie in a database behind the counting interface; None if data are none.

    A relation of DuckDB, or a table of Ibis on one of our engines; each bare or in narwhals.
    """
    if not any(map(_loaded, ("duckdb", "ibis"))):
        return None
    import narwhals as nw

    native = nw.to_native(data, pass_through=True)
    if (module := _loaded("duckdb")) is not None and isinstance(native, module.DuckDBPyRelation):
        from privmeasure.sources.duckdb import DuckDBDriver

        return DatabaseSource(DuckDBDriver(native), space)
    if nw.dependencies.is_ibis_table(native) and (query := _ibis_query(native)) is not None:
        return query.source(space)
    return None


def _ibis_query(table: Any) -> Query | None:
    """Return the rows of an Ibis table as a query of the connection below; None on other engines than ours.

    None also where a part of it lies in the memory of this process, and not in the database.
    """
    from ibis.expr.operations import InMemoryTable

    if table.op().find(InMemoryTable):
        return None
    backend = table.get_backend()
    if backend.name not in IBIS_BACKENDS:
        return None
    return Query(backend.con, str(backend.compile(table)))


class DatabaseSource:
    """A `Source` over the rows of a query: one GROUP BY for each list of partitions, in the engine.

    The first question also looks at every value, so that a query which fails does so before any noise is drawn.

    Guarantee:  privacy  statements depend on public values alone, and so do our errors. What the engine itself keeps
                         (logs, statistics, plans, what lies on its disks) is the affair of whoever runs it
                cost     one pass of the engine per question; memory here for the occupied cells
    """

    def __init__(self, driver: Driver, space: Schema | Domain, *, close: Callable[[], None] | None = None) -> None:
        """Compare the columns with the space; `close` is called at the end, for a connection that is nobody else's."""
        self._driver, self._close = driver, close
        self._begun = self._asked_once = False
        with self._words():
            ways = driver.columns()
        self.names = tuple(usual[0].name for usual in ways)
        self.types = tuple(usual[0].type for usual in ways)
        if isinstance(space, Schema):
            space.check(self.names, self.types)
            self._stored, self._readings = _schema_readings(space, ways, driver.dialect)
            _check_described(space.domain.factors)
        else:
            self._stored, self._readings = _point_readings(space, ways, driver.dialect)
            _check_described([space])

    def count(self, partitions: Sequence[Partition], progress: Progress | None = None) -> list[CellCounts]:
        """Return the counts of each partition, in one pass."""
        with spending_told(first=not self._asked_once):
            question = Question(self._driver.dialect, self._driver.given, self._stored, self._readings, partitions)
            with self._words():
                if not self._begun:
                    self._driver.begin()
                    self._begun = True
                    self._driver.ask(trial(self._driver.dialect, self._driver.given, self._stored))
                for statement in question.statements:
                    statement.take(self._driver.ask(statement.text))  # private counts, which die in the mechanism
        self._asked_once = True
        if progress is not None:
            progress("count", 1.0)
        return question.counts()

    def close(self) -> None:
        """End the transaction, and the connection where it is our own."""
        with suppress(Exception):  # an engine that is gone has ended it
            if self._begun:
                self._driver.end()
        self._begun = False
        if self._close is not None:
            with suppress(Exception):
                self._close()

    def _words(self) -> AbstractContextManager[None]:
        return engine_words(self._driver.dialect.title, QUERY_ADVICE, self._driver.was_interrupted)

    def __repr__(self) -> str:
        """Show nothing but the engine."""
        return f"DatabaseSource({self._driver.dialect.title}, private)"


def _schema_readings(
    schema: Schema, ways: Sequence[Sequence[StoredColumn]], dialect: Dialect
) -> tuple[list[StoredColumn], list[Reading]]:
    """Return the columns that are handed over, and a reading for each coordinate; or say what to cast.

    Decided by the declared types alone.
    """
    if schema.person is not None:
        raise SchemaError(
            f"The schema has a person, and which rows of each are kept cannot be decided in {dialect.title} as it is "
            "elsewhere. Export the rows to a Parquet file, or fetch them as an Arrow table, and fit that. Or keep to "
            "rows_per_person in the query itself, and give a schema without person: it is then your promise."
        )
    by_name = {usual[0].name: usual for usual in ways}
    stored: list[StoredColumn] = []
    readings: list[Reading] = []
    problems: list[str] = []
    for name, column in schema.data.items():
        sources = [by_name[source] for source in column.sources(name)]
        found = _readable(column, sources, len(stored))
        if found is None:
            problems += [_advice(column, i, source[0], dialect) for i, source in enumerate(sources)]
            continue
        stored += found[0]
        readings += found[1]
    if problems:
        raise SchemaError(*problems)
    return stored, readings


def _readable(
    column: DataColumn, sources: list[Sequence[StoredColumn]], first: int
) -> tuple[list[StoredColumn], tuple[Reading, ...]] | None:
    """Return the first way of reading a column's sources that it understands."""
    for i in range(max(map(len, sources))):
        chosen = [ways[min(i, len(ways) - 1)] for ways in sources]
        if i and getattr(column, "format", None) is not None:
            return None  # a text in a format of its own, which only Arrow reads
        readings = column.readings([source.type for source in chosen], first)
        if readings is not None:
            return chosen, readings
    return None


def _advice(column: DataColumn, source: int, stored: StoredColumn, dialect: Dialect) -> str:
    import pyarrow.types as pt

    tests = {"boolean": pt.is_boolean, "integer": pt.is_integer, "number": pt.is_floating}
    tests |= {"date": pt.is_date, "timestamp": pt.is_timestamp, "time": pt.is_time}
    word = next((word for word, test in tests.items() if test(column.natural[source])), "text")
    to = dialect.casts.get(word)
    if word == "timestamp" and getattr(column, "timezone", None) is not None and to is not None:
        to = f"{to} WITH TIME ZONE"
    cast = f"{dialect.cast}({dialect.name(stored.name)} AS {to})" if to else "a text such as 2020-01-31 12:30:00"
    return (
        f"column {stored.name!r} is {stored.word or 'of no declared type'} in {dialect.title}, which cannot be counted "
        f"there as {column.tag()}: engines read such values in ways of their own. Make it {cast} in the query."
    )


def _point_readings(
    domain: Domain, ways: Sequence[Sequence[StoredColumn]], dialect: Dialect
) -> tuple[list[StoredColumn], list[Reading]]:
    stored = [usual[0] for usual in ways]
    if len(stored) != domain.width:
        raise DataError(
            f"The query must have {domain.width} columns, one for each column of the domain, got {len(stored)}."
        )
    for column in stored:
        import pyarrow.types as pt

        if not (is_double(column.type) or (column.type is not None and pt.is_boolean(column.type))):
            raise DataError(
                f"The data must be numbers, and column {column.name!r} is {column.word or 'of no declared type'} in "
                f"{dialect.title}. Make it {dialect.cast}({dialect.name(column.name)} AS {dialect.double}) in the "
                "query."
            )
    return stored, [Reading(i) for i in range(len(stored))]


def _check_described(factors: Sequence[Domain]) -> None:
    """Refuse spaces that only NumPy can locate, before anything is spent."""
    for factor in factors:
        if describe(factor, 1) is None:
            raise DataError(
                f"The space {type(factor).__name__} cannot be asked for in a database: it does not describe its cells, "
                "or has integers beyond 2^53. Fit a file or an array instead."
            )


# ------------------------------------------------------------------------------------------------------------ places


def is_database(place: object) -> bool:
    """Say whether a text is the place of a table in a database.

    Examples:
        >>> is_database("duckdb:visits.db?table=visits"), is_database("visits.csv"), is_database("c:visits.csv")
        (True, False, False)
    """
    return isinstance(place, str) and place.partition(":")[0] in SCHEMES and ":" in place


def file_of(place: str) -> Path | None:
    """Return the file that a place in a database lies in, if it is one."""
    scheme, _, rest = place.partition(":")
    path = rest.partition("?")[0]
    return Path(unquote(path)) if scheme in ("duckdb", "sqlite") and path else None


def open_database(place: str, space: Schema | Domain) -> DatabaseSource:
    """Return the table or the query of a place, such as "sqlite:visits.db?table=visits", for reading alone.

    After the question mark stands either table= or query=, in which %20 is a space. All else goes to the driver.
    """
    scheme, _, rest = place.partition(":")
    body, _, options = rest.partition("?")
    pairs = parse_qsl(options, keep_blank_values=True)
    wanted = [(name, value) for name, value in pairs if name in ("table", "query")]
    if len(wanted) != 1 or not wanted[0][1]:
        raise DataError(
            f"After the question mark of {scheme}:... there must be either table=NAME or query=SELECT..., for instance "
            f"'{scheme}:{'//user@host/base' if scheme.startswith('postgres') else 'file.db'}?table=visits'."
        )
    rest_of = [(name, value) for name, value in pairs if name not in ("table", "query")]
    if scheme.startswith("postgres"):
        more = f"?{urlencode(rest_of, quote_via=quote)}" if rest_of else ""
        connect = _postgres(f"postgresql:{body}{more}")
    elif rest_of:
        raise DataError(f"{scheme}: takes table= or query= alone, got {rest_of[0][0]!r} as well.")
    else:
        connect = _file_base(scheme, Path(unquote(body)))
    connection = connect()
    try:
        return DatabaseSource(
            _driver_of(connection, **{"query": None, "table": None} | dict(wanted)), space, close=connection.close
        )
    except BaseException:
        connection.close()
        raise


def _file_base(scheme: str, path: Path) -> Callable[[], Any]:
    if not path.is_file():
        raise DataError(f"The file {path} does not exist. Check the path.")
    if scheme == "sqlite":
        from privmeasure.sources.sqlite import connect_sqlite

        return lambda: connect_sqlite(path)
    from privmeasure.sources.duckdb import connect_duckdb

    return lambda: connect_duckdb(path)


def _postgres(address: str) -> Callable[[], Any]:
    from privmeasure.sources.postgres import connect_postgres

    return lambda: connect_postgres(address)

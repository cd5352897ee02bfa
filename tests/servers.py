"""Servers for tests: PostgreSQL in a temporary folder, on a socket of its own, as a user without privileges; Spark."""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm

NOT_RUN = "NOT RUN"
"""How a line begins that names an engine that is missing; tests/conftest.py prints such lines at the end of a run."""


def need(missing: str | None) -> None:
    """Skip a test, or a whole module, if the engine that it needs is missing."""
    if missing:
        pytest.skip(f"{NOT_RUN}: {missing}", allow_module_level=True)


def why_elsewhere(engine: str, target: str) -> str | None:
    """Say which target runs the tests of an engine, or return None if that target runs: it sets TEST_ENGINE."""
    return None if os.environ.get("TEST_ENGINE") == engine else f"{target} runs these tests"


def why_no_postgres() -> str | None:
    """Say why there is no server to test with, or return None."""
    if elsewhere := why_elsewhere("postgres", "make test-databases"):
        return elsewhere
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if _program("initdb") is None or _program("postgres") is None:
        return "PostgreSQL is not installed: apt-get install postgresql"
    return None if os.getuid() or _plain_user() else "PostgreSQL does not run as root, and there is no user for it"


def _program(name: str) -> str | None:
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *os.get_exec_path()]
    return next((str(Path(folder, name)) for folder in folders if Path(folder, name).is_file()), None)


def _plain_user() -> str | None:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server, give the address of its only database, and stop it."""
    user = _plain_user() if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pm-pg-"))  # short: paths of sockets are limited
    if user:
        shutil.chown(folder, user)
    run = {"user": user, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    server = None
    try:
        data = folder / "data"
        initdb = [_program("initdb"), "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"]
        subprocess.run(initdb, check=True, **run)
        options = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "jit=off"]
        server = subprocess.Popen([_program("postgres"), "-D", data, "-k", folder, *options], **run)
        address = f"postgresql://tester@/postgres?host={folder}"
        _wait(address, server)
        yield address
    finally:
        if server is not None:
            server.terminate()
            server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(address: str, server: "subprocess.Popen[bytes]") -> None:
    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None:
                raise RuntimeError("the PostgreSQL server ended before it began") from None
            time.sleep(0.1)
    raise RuntimeError("the PostgreSQL server did not begin")


# -------------------------------------------------------------------------------------------------------------- spark


def why_no_spark() -> str | None:
    """Say why there is no Spark to test with, or return None."""
    if elsewhere := why_elsewhere("spark", "make test-spark"):
        return elsewhere
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed: make test-spark installs it"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Java is not installed: apt-get install default-jre-headless"
    return None


@contextmanager
def spark_session() -> Iterator[Any]:
    """Start a real Spark in this process: two cores, four tries for each task, times of day and of no zone."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    source = str(Path(pm.__file__).parents[1])  # the executors run what is tested here
    os.environ["PYTHONPATH"] = os.pathsep.join([source, str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.timeType.enabled": "true",
    }
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


HOSTS = ("127.0.0.1", "127.0.0.2")
"""Two machines, as Spark sees it, which starts no task twice on one: so slow ones are done again nowhere else."""


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """Start a master of Spark and two workers with two cores each, give the master's address, and stop them."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind((HOSTS[0], 0))
        port = free.getsockname()[1]
    master = f"spark://{HOSTS[0]}:{port}"
    paths = [str(Path(pm.__file__).parents[1]), str(Path(__file__).parent)]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_WORKER_DIR": str(folder),
        "PYTHONPATH": ":".join(paths),
    }
    environment |= {"SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
    started = []

    def start(kind: str, *options: object) -> None:
        command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *options, "--webui-port", 0]
        with (folder / f"{len(started)}.log").open("wb") as log:
            words = list(map(str, command))
            started.append(subprocess.Popen(words, env=environment, cwd=folder, stdout=log, stderr=log))

    try:
        start("master.Master", "--host", HOSTS[0], "--port", port)
        for host in HOSTS:  # workers ask for their master until it is there
            start("worker.Worker", master, "--host", host, "--cores", 2, "--memory", "1g")
        yield master
    finally:
        for server in reversed(started):
            server.terminate()  # a worker ends its executors
        for server in started:
            server.wait(60)


# ---------------------------------------------------------------------------------------------- tables in databases


class Bases:
    """One connection to each engine, and the way of an Arrow table into it.

    Every test has its own: databases that are empty, and connections that are in no transaction.
    """

    def __init__(self, address: str | None) -> None:
        """Connect; without an address PostgreSQL is left out."""
        self._kept: list[Any] = []
        import sqlite3

        import duckdb

        self.duckdb, self.sqlite, self.postgres = duckdb.connect(), sqlite3.connect(":memory:"), None
        if address is not None:
            self.postgres = _empty_postgres(address)

    def keep(self, connection: Any) -> Any:
        """Return a connection that is closed after the test, however it ends: one left open fails a later test."""
        self._kept.append(connection)
        return connection

    @property
    def engines(self) -> list[str]:
        """The engines that are there."""
        return ["duckdb", "sqlite", *(["postgres"] if self.postgres else [])]

    def need(self, engine: str) -> None:
        """Skip a test whose engine is not there."""
        if engine not in self.engines:
            need(why_no_postgres())

    @staticmethod
    def within_years(engine: str, array: "pa.Array") -> "pa.Array":
        """Return an array with its instants clamped to what an engine can hold: in SQLite, years of four digits."""
        if engine == "postgres" and pa.types.is_date32(array.type):
            cells = array.cast(pa.int32()).to_pylist()
            kept = [None if cell is None else min(max(cell, -2_440_588), 2_145_031_948) for cell in cells]
            return pa.array(kept, pa.int32()).cast(array.type)
        unit = {"s": 1, "ms": 10**3, "us": 10**6}.get(getattr(array.type, "unit", ""), 1)
        if pa.types.is_timestamp(array.type) and engine != "duckdb":
            low, high, whole = -62_135_596_800 * unit, 253_402_300_799 * unit, array.cast(pa.int64())
            if engine == "postgres":
                low, high = -210_866_803_200 * unit, 9_224_318_015_999 * unit
        elif engine != "sqlite":
            return array
        elif pa.types.is_date32(array.type):
            low, high, whole = -719_162, 2_932_896, array.cast(pa.int32())
        else:
            return array
        kept = [None if cell is None else min(max(cell, low), high) for cell in whole.to_pylist()]
        return pa.array(kept, whole.type).cast(array.type)

    def query(self, engine: str, table: "pa.Table") -> "pm.Query":
        """Put a table into an engine, in the place of the one before, and return the query of all its rows."""
        getattr(self, f"_fill_{engine}")(table)
        return pm.Query(getattr(self, engine), table="rows of a test")

    def close(self) -> None:
        """Close the connections."""
        for connection in (*self._kept, self.duckdb, self.sqlite, self.postgres):
            if connection is not None:
                connection.close()

    def _fill_duckdb(self, table: "pa.Table") -> None:
        self.duckdb.register("arrow_rows", table)
        self.duckdb.execute('CREATE OR REPLACE TABLE "rows of a test" AS SELECT * FROM arrow_rows')
        self.duckdb.unregister("arrow_rows")

    def _fill_sqlite(self, table: "pa.Table") -> None:
        names = ", ".join(f"{_quoted(f.name)} {_sqlite_word(f.type)}" for f in table.schema)
        self.sqlite.execute('DROP TABLE IF EXISTS "rows of a test"')
        self.sqlite.execute(f'CREATE TABLE "rows of a test" ({names})')
        columns = [[_sqlite_cell(cell) for cell in _cells(column)] for column in table.columns]
        marks = ", ".join("?" * table.num_columns)
        rows = zip(*columns, strict=True)
        self.sqlite.executemany(f'INSERT INTO "rows of a test" VALUES ({marks})', rows)
        self.sqlite.commit()

    def _fill_postgres(self, table: "pa.Table") -> None:
        names = ", ".join(f"{_quoted(f.name)} {_postgres_word(f.type)}" for f in table.schema)
        with self.postgres.cursor() as cursor:
            cursor.execute('DROP TABLE IF EXISTS "rows of a test"')
            cursor.execute(f'CREATE TABLE "rows of a test" ({names})')
            marks = ", ".join(_postgres_mark(f.type) for f in table.schema)
            columns = [[_postgres_cell(cell) for cell in _cells(column)] for column in table.columns]
            rows = list(zip(*columns, strict=True))
            if rows:
                cursor.executemany(f'INSERT INTO "rows of a test" VALUES ({marks})', rows)


def _empty_postgres(address: str) -> Any:
    """Connect to a server of tests: what an earlier test left there, open transactions and tables, is removed."""
    import psycopg

    connection = psycopg.connect(address, autocommit=True)
    others = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    connection.execute(f"SELECT pg_terminate_backend(pid) {others}")
    connection.execute("DROP SCHEMA public CASCADE")
    connection.execute("CREATE SCHEMA public")
    return connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cells(column: "pa.ChunkedArray") -> list[Any]:
    """Return cells of Python; instants as (type, whole number), for Python has not all of them."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        per = 10**6 // {"s": 1, "ms": 10**3, "us": 10**6}[kind.unit]
        return [None if c is None else ("us", c * per) for c in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_date32(kind):
        return [None if c is None else ("day", c) for c in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_time(kind):
        per = 10**6 // {"s": 1, "ms": 10**3, "us": 10**6}[kind.unit]
        words = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
        return [None if c is None else ("time", c * per) for c in words.to_pylist()]
    return column.to_pylist()


def _sqlite_word(kind: "pa.DataType") -> str:
    tests = [(pa.types.is_integer, "INTEGER"), (pa.types.is_floating, "REAL"), (pa.types.is_boolean, "BOOLEAN")]
    tests += [(pa.types.is_date, "DATE"), (pa.types.is_timestamp, "TIMESTAMP"), (pa.types.is_time, "TIME")]
    return next((word for test, word in tests if test(kind)), "TEXT")


def _sqlite_cell(cell: Any) -> Any:
    if not isinstance(cell, tuple):
        return cell
    unit, number = cell
    if unit == "day":
        return str(np.datetime64(number, "D"))
    if unit == "time":
        return str(np.datetime64(number, "us")).partition("T")[2]
    return str(np.datetime64(number, "us")).replace("T", " ")


def _postgres_word(kind: "pa.DataType") -> str:
    exact = {pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint", pa.float32(): "real"}
    tests = [(pa.types.is_floating, "double precision"), (pa.types.is_boolean, "boolean"), (pa.types.is_date, "date")]
    tests += [(pa.types.is_time, "time"), (pa.types.is_string, "text")]
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    return exact.get(kind) or next(word for test, word in tests if test(kind))


def _postgres_mark(kind: "pa.DataType") -> str:
    if pa.types.is_timestamp(kind):
        zone = " AT TIME ZONE 'UTC'" if kind.tz else ""
        parts = "interval '1 day' * (n / 86400000000) + interval '1 microsecond' * (n % 86400000000)"
        return f"(SELECT (timestamp 'epoch' + {parts}){zone} FROM (SELECT %s::bigint AS n) AS one)".replace(
            "n % 8", "n %% 8"
        )
    if pa.types.is_date32(kind):
        return "(date '1970-01-01' + %s::integer)"
    if pa.types.is_time(kind):
        return "(time '00:00' + interval '1 microsecond' * %s::bigint)"
    return f"%s::{_postgres_word(kind)}"


def _postgres_cell(cell: Any) -> Any:
    return cell if not isinstance(cell, tuple) else cell[1]

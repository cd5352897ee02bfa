"""What several rooms of tests share."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from servers import Bases, postgres, spark_session, why_no_postgres, why_no_spark

collect_ignore = ["conftest.py"]
"""There are no doctests here, and another room has a file of this name."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # run in the background of a script: tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[str | None]:
    """The address of a private PostgreSQL server, or None, loudly, where there is none."""
    if reason := why_no_postgres():
        print(f"\n*** NOT TESTED WITH POSTGRESQL: {reason} ***", flush=True)
        yield None
        return
    with postgres() as address:
        yield address


@pytest.fixture(scope="session")
def bases(postgres_address: str | None) -> Iterator[Bases]:
    """Connections to DuckDB, SQLite and PostgreSQL."""
    opened = Bases(postgres_address)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A real Spark on two cores; where there is none, a loud line, and the test is skipped."""
    if reason := why_no_spark():
        print(f"\n*** NOT TESTED WITH SPARK: {reason} ***", flush=True)
        pytest.skip(f"NOT TESTED WITH SPARK: {reason}")
    with spark_session() as session:
        yield session

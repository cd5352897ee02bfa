"""What several rooms of tests share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import (  # noqa: F401
    pytest_assertrepr_compare,
    pytest_runtest_makereport,
    pytest_runtest_setup,
    pytest_terminal_summary,
)
from servers import Bases, need, postgres, spark_session, why_no_postgres, why_no_spark

collect_ignore = ["conftest.py"]
"""There are no doctests here, and another room has a file of this name."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # run in the background of a script: tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def data_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in the place of the user's data folder, so that no test writes there."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def hasty_disk() -> Iterator[None]:
    """Do not wait for the disk: no machine fails here, and thousands of files are saved."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[str | None]:
    """The address of a private PostgreSQL server, or None if there is none."""
    if why_no_postgres():
        yield None
        return
    with postgres() as address:
        yield address


@pytest.fixture
def bases(postgres_address: str | None) -> Iterator[Bases]:
    """Empty databases of DuckDB, SQLite and PostgreSQL, with connections for this test alone."""
    opened = Bases(postgres_address)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A real Spark on two cores; if there is none, the test is skipped."""
    need(why_no_spark())
    with spark_session() as session:
        yield session

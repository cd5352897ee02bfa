"""Engines of tests: what is missing is installed if that is possible, or named; every test has databases of its own."""

import sys

import engines
import pytest

from servers import NOT_RUN, Bases, need, why_no_postgres


def test_an_engine_that_cannot_be_installed_is_said_and_one_that_can_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    missing, ran = ["the engine is missing"], []

    def run(*command: str) -> None:
        ran.append(command[:2])
        missing[:] = [] if "install" in command else missing

    monkeypatch.setattr(engines, "run", run)
    monkeypatch.setattr(engines.shutil, "which", lambda name: name)
    engine = engines.Engine(lambda: missing[0] if missing else None, "a-package")
    monkeypatch.setattr(engines.os, "getuid", lambda: 1000)
    assert engines.install(engine) == "the engine is missing (only root can install it)"
    assert ran == []
    monkeypatch.setattr(engines.os, "getuid", lambda: 0)
    assert engines.install(engine) is None
    assert ran == [("apt-get", "update"), ("apt-get", "install")]
    assert engines.install(engine) is None
    assert len(ran) == 2, "what is there is not installed again"


def test_an_installation_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "SECONDS", 0.1)
    assert engines.run(sys.executable, "-c", "import time; time.sleep(9)").endswith("TimeoutExpired")
    monkeypatch.setattr(engines, "SECONDS", 60)
    assert engines.run(sys.executable, "-c", "import sys; sys.exit('no such package')").endswith("no such package")
    assert engines.run("no-such-program-8271") == "no-such-program-8271: FileNotFoundError"
    assert engines.run(sys.executable, "-c", "pass") is None


def test_every_engine_says_why_it_is_missing_or_is_there() -> None:
    for engine in engines.ENGINES.values():
        reason = engine.why_missing()
        assert reason is None or "\n" not in reason
    with pytest.raises(pytest.skip.Exception, match=f"^{NOT_RUN}: nothing is there$"):
        need("nothing is there")
    need(None)


def test_what_a_failed_test_leaves_in_a_database_does_not_reach_the_next_one(postgres_address: str | None) -> None:
    """An open transaction that holds locks, one that has failed, tables, another connection."""
    import psycopg

    need(why_no_postgres())
    first = Bases(postgres_address)
    other = psycopg.connect(postgres_address)
    for base in (first.duckdb, first.sqlite, first.postgres):
        base.execute("CREATE TABLE left_over (x INTEGER)")
        base.execute("BEGIN")
        base.execute("INSERT INTO left_over VALUES (1)")
    other.execute("LOCK TABLE left_over IN ACCESS SHARE MODE")
    with pytest.raises(psycopg.Error):
        first.postgres.execute("SELECT 1 / 0")
    second = Bases(postgres_address)
    for base in (second.duckdb, second.sqlite, second.postgres):
        base.execute("CREATE TABLE left_over (x INTEGER)")
        assert base.execute("SELECT count(*) FROM left_over").fetchall() == [(0,)]
    other.close()
    first.close()
    second.close()

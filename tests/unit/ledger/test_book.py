"""The ledger: exact sums, one lock, reserve then confirm, clear refusals."""

import multiprocessing
import os
import re
import signal
import sqlite3
import stat
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privmeasure as pm
from privmeasure.errors import ArgumentError, BudgetError, DataError, LedgerFileError
from privmeasure.ledger import Ledger, file, fraction_text, schema_digest
from privmeasure.privacy import Privacy

NAME = "survey 2024"


def promise(epsilon, neighbours="add-remove", rows_per_person=1):
    return Privacy(epsilon, neighbours, rows_per_person)


def synthesizer(epsilon=1, **options):
    return pm.Synthesizer(pm.Box([(0, 1)]), epsilon=epsilon, neighbours="add-remove", **options)


def left(reservation, error):
    """Leave the context of a reservation with an error, or without."""
    try:
        with reservation:
            if error is not None:
                raise error
    except BaseException as raised:
        assert raised is error  # noqa: PT017 - whatever was raised inside comes out


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_account(NAME, cap=1, neighbours="add-remove")
    return ledger


# ------------------------------------------------------------------------------------------------------------- sums


def test_spends_add_up_exactly_and_stop_at_the_cap(ledger):
    for _ in range(10):
        ledger.reserve(NAME, promise("1/10")).confirm()  # ten floats 0.1 are not 1
    assert ledger.spent(NAME) == 1
    assert ledger.remaining(NAME) == 0
    with pytest.raises(BudgetError, match=r"1 of 1 is spent. Nothing is left"):
        ledger.reserve(NAME, promise("1/1000000000"))
    assert len(ledger.history(NAME)) == 10


def test_a_cap_is_passed_by_the_least_that_can_be_written(ledger):
    """What is above the cap by 1e-30 is above it: sums are exact, and no float is asked."""
    ledger.reserve(NAME, promise(1 - Fraction(1, 10**30))).confirm()
    for more in (Fraction(2, 10**30), Fraction(1, 10**29)):
        with pytest.raises(BudgetError, match="would pass the cap"):
            ledger.reserve(NAME, promise(more))
    ledger.reserve(NAME, promise(Fraction(1, 10**30)))
    assert ledger.remaining(NAME) == 0
    with pytest.raises(BudgetError, match="would pass the cap"):
        ledger.reserve(NAME, promise(Fraction(1, 10**30)))


def test_what_another_process_books_at_the_last_moment_counts(ledger, monkeypatch):
    """Just before the lock is taken the other one books the rest: no sum from before that may decide."""
    writing, others = file.writing, []

    def late(path, **options):
        if not others:
            others.append(None)
            Ledger(path).reserve(NAME, promise("3/5"))
        return writing(path, **options)

    monkeypatch.setattr(file, "writing", late)
    with pytest.raises(BudgetError, match=r"0\.6 of 1 is spent"):
        ledger.reserve(NAME, promise("3/5"))
    assert ledger.spent(NAME) == Fraction(3, 5)


def test_who_writes_holds_the_file_from_the_first_look(ledger, monkeypatch):
    """Nobody else may even look with the intention to write: two who have looked could not both go on."""
    monkeypatch.setattr(file, "LOCK_PATIENCE", 0.05)
    looked = []
    with file.writing(ledger.path):  # as another process would
        with pytest.raises(LedgerFileError, match="another process"), file.writing(ledger.path) as connection:
            looked.append(file.contents(connection))
        assert not looked
        assert ledger.spent(NAME) == 0  # to read is always allowed
    ledger.reserve(NAME, promise(1))


def test_a_check_says_what_a_reservation_would_and_books_nothing(ledger):
    assert ledger.check(NAME.upper(), promise(1)).dataset == NAME
    assert ledger.history(NAME) == []
    ledger.reserve(NAME, promise("1/2"))
    for wrong in (promise(1), promise("1/4", "replace"), promise(Fraction(1, 10**31 + 1))):
        told = []
        for ask in (ledger.check, ledger.reserve):
            with pytest.raises((BudgetError, ArgumentError)) as raised:
                ask(NAME, wrong)
            told.append(str(raised.value))
        assert told[0] == told[1]
    assert len(ledger.history(NAME)) == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.fractions(min_value=Fraction(1, 10**9), max_value=1, max_denominator=10**12), max_size=12))
def test_what_counts_never_passes_the_cap(tmp_path_factory, epsilons):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "l")
    ledger.open_account("d", cap=2, neighbours="replace")
    expected = Fraction(0)
    for epsilon in epsilons:
        if epsilon <= 0:
            continue
        if expected + epsilon <= 2:
            ledger.reserve("d", promise(epsilon, "replace"))
            expected += epsilon
        else:
            with pytest.raises(BudgetError):
                ledger.reserve("d", promise(epsilon, "replace"))
    assert ledger.spent("d") == expected
    assert ledger.remaining("d") == 2 - expected


def spend(path, times, barrier, results):
    ledger, booked = Ledger(path), 0
    barrier.wait()
    for i in range(times):
        try:
            with ledger.reserve(NAME, promise(Fraction(1, 100 + i % 2))):
                booked += 1
        except BudgetError:
            pass
    results.put(booked)


@pytest.mark.deep
def test_two_processes_with_a_hundred_spends_each_add_up_exactly(tmp_path):
    """The cap allows fewer than both ask for: what is booked is what both say, and never passes the cap."""
    path = tmp_path / "ledger.sqlite"
    Ledger(path).open_account(NAME, cap="3/2", neighbours="add-remove")
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    runs = [context.Process(target=spend, args=(path, 100, barrier, results)) for _ in range(2)]
    for run in runs:
        run.start()
    booked = [results.get(timeout=60) for _ in runs]
    for run in runs:
        run.join()
    history = Ledger(path).history(NAME)
    assert len(history) == sum(booked)
    assert all(booked)
    assert Fraction(3, 2) - Fraction(1, 101) < Ledger(path).spent(NAME) <= Fraction(3, 2)
    assert {entry.state for entry in history} == {"spent"}


# ------------------------------------------------------------------------------------------------ reserve and confirm


def test_a_reservation_counts_until_it_is_freed(ledger):
    reservation = ledger.reserve(NAME, synthesizer("0.9"))
    with pytest.raises(BudgetError, match=r"0\.9 of 1 is spent. Ask for at most 0\.1\."):
        ledger.reserve(NAME, promise("0.2"))
    reservation.cancel()
    ledger.reserve(NAME, promise("0.2")).confirm()
    assert [entry.state for entry in ledger.history(NAME)] == ["freed", "spent"]
    for ask in (reservation.confirm, reservation.cancel):
        with pytest.raises(ArgumentError, match="settled already"):
            ask()


@pytest.mark.parametrize("error", [None, DataError("no such column"), OSError("disk"), KeyboardInterrupt()], ids=repr)
def test_nothing_frees_a_bare_promise(ledger, error):
    """Nobody can know whether noise was drawn."""
    reservation = ledger.reserve(NAME, promise(1))
    with pytest.raises(ArgumentError, match="made for a promise"):
        reservation.cancel()
    left(reservation, error)
    assert [entry.state for entry in ledger.history(NAME)] == ["spent"]


def killed(path):
    with Ledger(path).reserve(NAME, promise(1)):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_counts_as_spent(ledger):
    run = multiprocessing.get_context("spawn").Process(target=killed, args=(ledger.path,))
    run.start()
    run.join()
    assert run.exitcode == -signal.SIGKILL
    assert ledger.remaining(NAME) == 0
    assert ledger.history(NAME)[0].state == "pending"


def test_a_ledger_that_fails_does_not_hide_the_error(ledger):
    def release():
        with ledger.reserve(NAME, promise(1)):
            ledger.path.unlink()
            raise DataError("no such column")

    with pytest.raises(DataError):
        release()


# ---------------------------------------------------------------------------------------------------------- promises


def test_promises_that_do_not_add_up_are_refused(tmp_path):
    ledger = Ledger(tmp_path / "l")
    ledger.open_account("d", cap=1, neighbours="replace", rows_per_person=3)
    with pytest.raises(BudgetError, match="do not add up"):
        ledger.reserve("d", promise("0.1", "add-remove", 3))
    with pytest.raises(BudgetError, match="up to 3 rows"):
        ledger.reserve("d", promise("0.1", "replace", 2))
    ledger.reserve("d", promise("0.1", "replace", 5), schema=schema_digest({"a": 1}), note="for the annual report")
    (entry,) = ledger.history("d")
    assert (entry.rows_per_person, entry.note, len(entry.schema)) == (5, "for the annual report", 64)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry.time)
    assert re.fullmatch(r"[0-9a-f]{32}", entry.id)
    assert (entry.release, entry.files) == ("", ())


@pytest.mark.parametrize("name", ["", "  ", "data/survey.csv", "C:\\data", "a" * 101, "two\nlines", "0" * 64, None])
def test_a_name_is_not_a_path_or_a_hash(tmp_path, name):
    with pytest.raises(ArgumentError, match="dataset"):
        Ledger(tmp_path / "l").open_account(name, cap=1, neighbours="replace")
    assert not (tmp_path / "l").exists()


@pytest.mark.parametrize("cap", [0, -1, "much", 51, None, Fraction(1, 10**40)])
def test_caps_that_cannot_be(tmp_path, cap):
    with pytest.raises(ArgumentError, match="cap"):
        Ledger(tmp_path / "l").open_account("d", cap=cap, neighbours="replace")


def test_an_account_is_opened_once_and_must_be_there(ledger):
    with pytest.raises(ArgumentError, match="opened once"):
        ledger.open_account(NAME, cap=2, neighbours="add-remove")
    for ask in (ledger.spent, ledger.remaining, ledger.history, ledger.account):
        with pytest.raises(ArgumentError, match="no account for 'other'"):
            ask("other")
    with pytest.raises(ArgumentError, match=NAME):
        ledger.reserve("other", promise(1))
    with pytest.raises(ArgumentError, match="30 digits"):
        ledger.reserve(NAME, promise(Fraction(1, 10**31)))
    with pytest.raises(ArgumentError, match="note"):
        ledger.reserve(NAME, promise("0.1"), note="two\nlines")
    assert [account.dataset for account in ledger.accounts()] == [NAME]


# -------------------------------------------------------------------------------------------------------------- files


def test_a_missing_file_is_not_made_by_looking(tmp_path):
    ledger = Ledger(tmp_path / "none")
    for ask in (ledger.accounts, lambda: ledger.spent("d"), lambda: ledger.reserve("d", promise(1))):
        with pytest.raises(LedgerFileError, match="no ledger"):
            ask()
    assert not ledger.path.exists()
    with pytest.raises(LedgerFileError, match="folder"):
        Ledger(tmp_path / "no" / "l").open_account("d", cap=1, neighbours="replace")


def test_foreign_damaged_and_newer_files(tmp_path, ledger):
    text = tmp_path / "text"
    text.write_text("not a database, but long enough to look like a page of something" * 50)
    with pytest.raises(LedgerFileError, match="not a ledger"):
        Ledger(text).accounts()
    with pytest.raises(LedgerFileError, match="not a ledger"):
        Ledger(text).open_account("d", cap=1, neighbours="replace")
    assert text.read_text().startswith("not a database")
    foreign = tmp_path / "foreign"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE other (a)")
    connection.close()
    with pytest.raises(LedgerFileError, match="another program"):
        Ledger(foreign).open_account("d", cap=1, neighbours="replace")
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("PRAGMA user_version = 5")
    connection.close()
    with pytest.raises(LedgerFileError, match="format 5"):
        ledger.spent(NAME)
    (tmp_path / "empty").touch()
    with pytest.raises(LedgerFileError, match="empty"):
        Ledger(tmp_path / "empty").accounts()
    with pytest.raises(LedgerFileError):
        Ledger(tmp_path).accounts()


def test_a_truncated_file(ledger):
    content = ledger.path.read_bytes()
    ledger.path.write_bytes(content[: len(content) // 2])
    with pytest.raises(LedgerFileError, match="damaged"):
        ledger.reserve(NAME, promise("0.1"))


def test_an_edited_epsilon(ledger):
    ledger.reserve(NAME, promise("0.1"))
    for column, value in (("epsilon", "1e999999999"), ("id", "x"), ("files", "abc")):
        content = ledger.path.read_bytes()
        with sqlite3.connect(ledger.path) as connection:
            connection.execute(f"UPDATE entry SET {column} = ?", (value,))
        connection.close()
        with pytest.raises(LedgerFileError, match="edited"):
            ledger.spent(NAME)
        ledger.path.write_bytes(content)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_only_be_read(ledger):
    ledger.path.chmod(stat.S_IREAD)
    assert ledger.spent(NAME) == 0
    with pytest.raises(LedgerFileError, match="cannot be written"):
        ledger.reserve(NAME, promise("0.1"))


def test_errors_of_sqlite_in_words(ledger, monkeypatch):
    """Read-only, full and busy files, whoever runs the tests."""
    for name, words in (
        ("SQLITE_READONLY_DIRECTORY", "cannot be written"),
        ("SQLITE_FULL", "disk is full"),
        ("SQLITE_CORRUPT", "damaged"),
    ):
        error = sqlite3.OperationalError("x")
        error.sqlite_errorname = name
        assert words in file.explain_refusal(ledger.path, error)
    monkeypatch.setattr(file, "LOCK_PATIENCE", 0.05)
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerFileError, match="another process"):
        ledger.reserve(NAME, promise("0.1"))
    holder.close()


def test_an_odd_path(tmp_path):
    ledger = Ledger(tmp_path / "a ledger?mode=memory#100%.sqlite")
    ledger.open_account("d", cap=1, neighbours="replace")
    assert ledger.path.exists()
    assert ledger.remaining("d") == 1


def test_fractions_in_words():
    assert fraction_text(Fraction(1, 4)) == "0.25"
    assert fraction_text(Fraction(22, 7)) == "22/7"
    assert fraction_text(Fraction(0)) == "0"


def test_a_sum_that_could_not_be_written_is_refused(ledger):
    """Thirty digits of denominator each: the sum of many would be longer than Python writes."""
    ledger.open_account("long", cap="1", neighbours="add-remove")
    primes = [10**29 + n for n in (319, 331, 337, 349, 361, 379, 397, 403, 421, 447, 459, 481)]
    for prime in primes[:10]:
        ledger.reserve("long", Privacy(Fraction(1, prime), "add-remove"))
    with pytest.raises(ArgumentError, match="too long to write"):
        ledger.reserve("long", Privacy(Fraction(1, primes[-1]), "add-remove"))
    assert len(str(ledger.spent("long"))) < 4300


def test_the_book_knows_k_and_the_person(ledger):
    ledger.open_account("visits", cap=1, neighbours="add-remove", rows_per_person=16)
    kept = Privacy("1/4", "add-remove", 2, "patient_id")  # protects people with any number of rows, 16 included
    ledger.reserve("visits", kept).confirm()
    ledger.reserve("visits", Privacy("1/4", "add-remove", 16)).confirm()
    entries = ledger.history("visits")
    assert [(entry.rows_per_person, entry.person) for entry in entries] == [(2, "patient_id"), (16, "")]
    assert entries[0].to_json()["person"] == "patient_id"
    with pytest.raises(BudgetError, match=r"'patient_id'.*'visit_id'"):
        ledger.reserve("visits", Privacy("1/4", "add-remove", 2, "visit_id"))
    with pytest.raises(BudgetError, match="up to 16 rows"):
        ledger.reserve("visits", Privacy("1/4", "add-remove", 2))

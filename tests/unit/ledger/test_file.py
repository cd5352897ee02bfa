"""Books of the first format: read as they are, migrated when something is booked, whatever kills it."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction

import pytest

from privmeasure.errors import ArgumentError, BudgetError, LedgerFileError
from privmeasure.ledger import Ledger, file
from privmeasure.privacy import Privacy

FIRST = """
CREATE TABLE account (dataset TEXT PRIMARY KEY, cap TEXT NOT NULL, neighbours TEXT NOT NULL,
    rows_per_person INTEGER NOT NULL, day TEXT NOT NULL) STRICT;
CREATE TABLE entry (number INTEGER PRIMARY KEY, dataset TEXT NOT NULL REFERENCES account, epsilon TEXT NOT NULL,
    rows_per_person INTEGER NOT NULL, schema TEXT NOT NULL, note TEXT NOT NULL, day TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'spent', 'freed'))) STRICT;
INSERT INTO account VALUES ('people', '2', 'add-remove', 1, '2024-05-01');
INSERT INTO account VALUES ('People ', '1', 'add-remove', 1, '2024-05-02');
INSERT INTO account VALUES ('other', '1', 'replace', 2, '2024-05-03');
INSERT INTO entry VALUES (1, 'people', '1/3', 1, 'abc', 'first', '2024-05-04', 'spent');
INSERT INTO entry VALUES (2, 'people', '1/3', 1, 'abc', 'first', '2024-05-04', 'spent');
INSERT INTO entry VALUES (3, 'people', '1', 1, '', '', '2024-05-05', 'freed');
INSERT INTO entry VALUES (7, 'other', '1/2', 2, '', '', '2024-05-06', 'pending');
PRAGMA application_id = 1886219367;
PRAGMA user_version = 1;
"""
"""As the first version wrote it; two of its names mean the same."""


@pytest.fixture
def old(tmp_path):
    with sqlite3.connect(tmp_path / "book.sqlite") as connection:
        connection.executescript(FIRST)
    connection.close()
    return Ledger(tmp_path / "book.sqlite")


def version(path):
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return connection.execute("PRAGMA user_version").fetchone()[0]
    finally:
        connection.close()


def told(ledger):
    """What the old entries say, without what the first format did not have."""
    return [(e.number, e.dataset, e.epsilon, e.rows_per_person, e.schema, e.note, e.time, e.state)
            for e in ledger.contents().entries]  # fmt: skip


def spend(ledger, epsilon="1/10", neighbours="add-remove"):
    ledger.reserve("people", Privacy(epsilon, neighbours)).confirm()


def test_it_is_read_as_it_is(old):
    before = old.path.read_bytes()
    assert [account.dataset for account in old.accounts()] == ["people", "People ", "other"]
    assert old.spent("people") == Fraction(2, 3)
    assert (old.spent("People "), old.spent("OTHER")) == (0, Fraction(1, 2))
    assert [entry.time for entry in old.history("other")] == ["2024-05-06"]
    assert old.raises("people") == []
    assert old.collisions() == [["people", "People "]]
    with pytest.raises(ArgumentError, match="'people', 'People '"):
        old.account("PEOPLE")
    assert old.path.read_bytes() == before
    assert [path.name for path in old.path.parent.iterdir()] == ["book.sqlite"]


def test_it_is_migrated_when_something_is_booked(old):
    before, entries = old.path.read_bytes(), told(old)
    spend(old)
    assert version(old.path) == 4
    assert told(old)[:-1] == entries
    ids = [entry.id for entry in old.contents().entries]
    assert len(set(ids)) == 5
    assert all(len(one) == 32 for one in ids)
    backup = Ledger(old.path.with_name("book.sqlite.format-1.backup"))
    assert version(backup.path) == 1
    assert told(backup) == entries
    assert sorted(path.name for path in old.path.parent.iterdir()) == ["book.sqlite", "book.sqlite.format-1.backup"]
    spend(old)
    assert [entry.id for entry in old.contents().entries][:5] == ids
    assert old.collisions() == [["people", "People "]]
    assert (old.path.stat().st_mode, before[:6]) == (backup.path.stat().st_mode, b"SQLite")


def test_a_book_of_the_second_format_gets_the_column_of_persons(tmp_path):
    book = Ledger(tmp_path / "book.sqlite")
    book.open_account("people", cap=1, neighbours="add-remove")
    spend(book)
    with closing(sqlite3.connect(book.path)) as connection:  # as format 2 has it
        connection.execute("ALTER TABLE entry DROP COLUMN person")
        connection.execute("ALTER TABLE entry DROP COLUMN delta")
        connection.execute("ALTER TABLE account DROP COLUMN delta")
        connection.execute("PRAGMA user_version = 2")
        connection.commit()
    before = book.contents()
    assert (version(book.path), before.entries[0].person) == (2, "")
    book.reserve("people", Privacy("1/10", "add-remove", 4, "patient_id")).confirm()
    assert (version(book.path), version(tmp_path / "book.sqlite.format-2.backup")) == (4, 2)
    assert book.contents().entries[:1] == before.entries
    assert [entry.person for entry in book.contents().entries] == ["", "patient_id"]


def test_accounts_and_entries_of_the_third_format_are_pure(tmp_path):
    book = Ledger(tmp_path / "book.sqlite")
    book.open_account("people", cap=1, neighbours="add-remove")
    spend(book)
    with closing(sqlite3.connect(book.path)) as connection:  # as format 3 has it
        connection.execute("ALTER TABLE entry DROP COLUMN delta")
        connection.execute("ALTER TABLE account DROP COLUMN delta")
        connection.execute("PRAGMA user_version = 3")
        connection.commit()
    before = book.contents()
    assert (before.entries[0].delta, before.accounts[0].delta) == (0, 0)
    with pytest.raises(BudgetError, match="without a delta"):
        book.reserve("people", Privacy("1/10", "add-remove", delta="1e-9"))
    book.reserve("people", Privacy("1/10", "add-remove")).confirm()
    assert (version(book.path), version(tmp_path / "book.sqlite.format-3.backup")) == (4, 3)
    assert (book.contents().entries[:1], book.contents().accounts) == (before.entries, before.accounts)


def test_a_refused_booking_changes_nothing(old):
    before = old.path.read_bytes()
    with pytest.raises(BudgetError):
        spend(old, 2)
    with pytest.raises(ArgumentError, match="has an account"):
        old.open_account("PEOPLE", cap=1, neighbours="replace")
    assert version(old.path) == 1
    assert old.path.read_bytes() == before
    spend(old)
    assert len(list(old.path.parent.glob("*backup*"))) == 1  # the same copy will do


def test_a_backup_is_never_overwritten(old):
    (old.path.parent / "book.sqlite.format-1.backup").write_text("mine")
    old.migrate()
    assert (old.path.parent / "book.sqlite.format-1.backup").read_text() == "mine"
    assert version(old.path.parent / "book.sqlite.format-1.backup-2") == 1
    old.migrate()
    assert len(list(old.path.parent.iterdir())) == 3


def test_a_copy_that_cannot_be_written(old, monkeypatch):
    def fail(*args):
        raise PermissionError

    monkeypatch.setattr(file.shutil, "copymode", fail)
    with pytest.raises(LedgerFileError, match="copy that is kept"):
        spend(old)
    assert version(old.path) == 1
    assert len(list(old.path.parent.iterdir())) == 1


def test_a_link_keeps_its_backup_beside_the_book(old, tmp_path):
    (tmp_path / "far").mkdir()
    link = tmp_path / "far" / "link"
    link.symlink_to(old.path)
    Ledger(link).migrate()
    assert (tmp_path / "book.sqlite.format-1.backup").exists()
    assert list((tmp_path / "far").iterdir()) == [link]


KILLED = """
import os, signal, sqlite3, sys
from privmeasure.ledger import Ledger, file
from privmeasure.privacy import Privacy

left = int(sys.argv[2])
real = sqlite3.connect

def step(*_):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

def connect(*args, **kwargs):
    connection = real(*args, **kwargs)
    connection.set_trace_callback(step)
    return connection

sqlite3.connect = connect
for name in ("rename", "unlink"):
    def watched(*args, inner=getattr(file.Path, name), **kwargs):
        step()
        return inner(*args, **kwargs)
    setattr(file.Path, name, watched)
with Ledger(sys.argv[1]).reserve("people", Privacy("1/10", "add-remove")):
    step()
"""


@pytest.mark.deep
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_at_any_moment_the_book_is_readable(old, tmp_path):
    """Before every statement, and around the copy: it is of one format or the other, and nothing is lost."""
    content, entries = old.path.read_bytes(), told(old)
    seen, moment, code = set(), 0, None
    while code != 0:
        for path in tmp_path.iterdir():
            path.unlink()
        old.path.write_bytes(content)
        code = subprocess.run([sys.executable, "-c", KILLED, str(old.path), str(moment)], check=False).returncode
        assert code in (0, -signal.SIGKILL)
        assert told(old)[:4] == entries
        state = (version(old.path), [entry.state for entry in old.contents().entries[4:]][-1:])
        seen.add((state[0], *state[1]))
        if state[0] == 4:
            assert told(Ledger(tmp_path / "book.sqlite.format-1.backup")) == entries
        spend(old)  # whatever was left behind, the next one can go on
        assert version(old.path) == 4
        moment += 2
    assert seen >= {(1,), (4, "pending"), (4, "spent")}


def migrate(path, barrier, results):
    barrier.wait()
    try:
        with Ledger(path).reserve("people", Privacy("1/10", "add-remove")):
            results.put(True)
    except Exception as error:
        results.put(repr(error))


def test_two_processes_that_migrate_at_once(old):
    entries = told(old)
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(3), context.Queue()
    runs = [context.Process(target=migrate, args=(old.path, barrier, results)) for _ in range(3)]
    for run in runs:
        run.start()
    assert [results.get(timeout=60) for _ in runs] == [True] * 3
    for run in runs:
        run.join()
    assert version(old.path) == 4
    assert told(old)[:4] == entries
    assert [entry.state for entry in old.contents().entries[4:]] == ["spent"] * 3
    assert len(list(old.path.parent.glob("*backup*"))) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everything")
def test_a_book_that_may_only_be_read(old):
    old.path.chmod(0o400)
    assert old.spent("people") == Fraction(2, 3)
    with pytest.raises(LedgerFileError, match="cannot be written"):
        spend(old)

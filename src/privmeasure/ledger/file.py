"""The SQLite file: who may hold it, what its tables are, and how a book of an older format becomes one of the present.

Everything happens in one transaction of SQLite, which a process that is killed leaves undone. A book of an older format
is read as it is. The first time that something is booked in it, it is migrated in the same transaction, after a copy
was put beside it. Format 2 brought ids, users, times and digests, format 3 the column of persons, format 4 deltas.
"""

import os
import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

from privmeasure.errors import ArgumentError, LedgerFileError
from privmeasure.ledger.checking import check_records, check_size, check_tables
from privmeasure.ledger.records import Account, Contents, Entry, Raise
from privmeasure.origin import new_id
from privmeasure.outputs import part_beside, put
from privmeasure.privacy import read_fraction

LEDGER_FORMAT, FIRST = 4, 1
APPLICATION = 0x70_6D_6C_67
"""Marks an SQLite file as one of ours ("pmlg")."""
LOCK_PATIENCE = 60.0
"""Seconds to wait for another process that holds the file."""

ACCOUNTS = """CREATE TABLE account (dataset TEXT PRIMARY KEY, cap TEXT NOT NULL, neighbours TEXT NOT NULL,
    rows_per_person INTEGER NOT NULL, day TEXT NOT NULL, delta TEXT NOT NULL DEFAULT '0') STRICT"""
ENTRIES = """CREATE TABLE {name} (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    dataset TEXT NOT NULL REFERENCES account, epsilon TEXT NOT NULL, rows_per_person INTEGER NOT NULL,
    schema TEXT NOT NULL, note TEXT NOT NULL, time TEXT NOT NULL, user TEXT NOT NULL, release TEXT NOT NULL,
    files TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('pending', 'spent', 'freed')),
    person TEXT NOT NULL DEFAULT '', delta TEXT NOT NULL DEFAULT '0') STRICT"""
RAISES = """CREATE TABLE raised (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    dataset TEXT NOT NULL REFERENCES account, before TEXT NOT NULL, cap TEXT NOT NULL, time TEXT NOT NULL,
    user TEXT NOT NULL, reason TEXT NOT NULL) STRICT"""
ENTRY = "number, id, dataset, epsilon, rows_per_person, schema, note, time, user, release, files, state, person, delta"
STORED_ENTRY = {
    1: "number, '', dataset, epsilon, rows_per_person, schema, note, day, '', '', '', state, '', '0'",
    2: ENTRY.removesuffix("person, delta") + "'', '0'",
    3: ENTRY.removesuffix("delta") + "'0'",
    4: ENTRY,
}
"""What the entries of each format hold."""

# ------------------------------------------------------------------------------------------------------- connecting


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Look at one state of the book, of any format; nothing is changed."""
    with _connected(path, create=False) as connection:
        connection.execute("BEGIN")
        _check_kind(path, connection, create=False)
        yield connection
        connection.execute("ROLLBACK")


@contextmanager
def writing(path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Hold the file's one writing lock, from before the first look to the end: sums cannot go stale."""
    with _connected(path, create=create) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            _check_kind(path, connection, create=create)
            if _is_empty(connection):
                _make_tables(connection)
            elif _version(connection) < LEDGER_FORMAT:
                _migrate(path, connection)
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def _connected(path: Path, *, create: bool) -> Iterator[sqlite3.Connection]:
    if not create and not path.is_file():
        raise LedgerFileError(f"There is no ledger at {path}. `privmeasure ledger open` begins one.")
    if not path.parent.is_dir():
        raise LedgerFileError(f"The folder {path.parent} does not exist: create it, or choose another place.")
    if path.is_file():
        check_size(path)
    address = f"file:{quote(os.fspath(path))}?mode={'rwc' if create else 'rw'}"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=LOCK_PATIENCE, isolation_level=None)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            yield connection
    except sqlite3.Error as error:
        raise LedgerFileError(explain_refusal(path, error)) from None


def explain_refusal(path: Path, error: sqlite3.Error) -> str:
    """Say what an SQLite error means; its own text could only show the names of our tables."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return f"{path} or its folder cannot be written. Ask for write access: every release must be booked."
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"{path} has been held by another process for {LOCK_PATIENCE:g} s. Try again when that one is done."
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return f"{path} could not be written: the disk is full or fails. Nothing was booked. Make room, then try again."
    return f"{path} is not a ledger, or is damaged. Check the path, or take it from a backup."


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _check_kind(path: Path, connection: sqlite3.Connection, *, create: bool) -> None:
    if _is_empty(connection):
        if not create:
            raise LedgerFileError(f"{path} is empty. Begin a ledger with `privmeasure ledger open`.")
    elif connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise LedgerFileError(f"{path} is an SQLite file of another program, not a ledger. Check the path.")
    elif not FIRST <= (version := _version(connection)) <= LEDGER_FORMAT:
        raise LedgerFileError(f"{path} has format {version}, this version reads {LEDGER_FORMAT}. Update privmeasure.")
    else:
        check_tables(path, connection)


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in (ACCOUNTS, ENTRIES.format(name="entry"), RAISES):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {LEDGER_FORMAT}")


# -------------------------------------------------------------------------------------------------------- migration


def _migrate(path: Path, connection: sqlite3.Connection) -> None:
    """Turn a book of an older format into one of the present, in the transaction that holds it.

    Entries of the first format get random ids: ids that followed from what they say would make one of two entries that
    say the same.
    """
    version = _version(connection)
    _keep_copy(path, version)
    connection.execute("ALTER TABLE account ADD COLUMN delta TEXT NOT NULL DEFAULT '0'")
    if version == 2:
        connection.execute("ALTER TABLE entry ADD COLUMN person TEXT NOT NULL DEFAULT ''")
    if has_ids(connection):
        connection.execute("ALTER TABLE entry ADD COLUMN delta TEXT NOT NULL DEFAULT '0'")
    else:
        rows = _stored_entries(connection)
        connection.execute(ENTRIES.format(name="entry_new"))
        marks = ", ".join("?" * 14)
        connection.executemany(
            f"INSERT INTO entry_new VALUES ({marks})", [(row[0], new_id(), *row[2:]) for row in rows]
        )
        connection.execute("DROP TABLE entry")
        connection.execute("ALTER TABLE entry_new RENAME TO entry")
        connection.execute(RAISES)
    connection.execute(f"PRAGMA user_version = {LEDGER_FORMAT}")


def _keep_copy(path: Path, version: int) -> None:
    """Put a copy beside the book, complete or not at all, under a name that is free; one that is there already will do.

    The book is held, so no other migration can take the name meanwhile.
    """
    real = path.resolve()
    try:
        with part_beside(real) as part:
            # opened a second time: SQLite cannot copy from the connection that holds the lock
            address = f"file:{quote(os.fspath(real))}?mode=ro"
            with closing(sqlite3.connect(address, uri=True)) as source, closing(sqlite3.connect(part.path)) as copy:
                source.backup(copy)
            shutil.copymode(real, part.path)
            for number in count(1):
                ending = "backup" + (f"-{number}" if number > 1 else "")
                backup = real.with_name(f"{real.name}.format-{version}.{ending}")
                if not backup.exists():
                    put(part, backup)
                    return
                if backup.read_bytes() == part.path.read_bytes():
                    return
    except OSError:
        raise LedgerFileError(
            f"{path} is of format {version}, and is migrated when something is booked in it. The copy that is kept of "
            f"it cannot be written to {real.parent}. Make room, or ask for write access there."
        ) from None


# ----------------------------------------------------------------------------------------------------------- tables


def contents(connection: sqlite3.Connection) -> Contents:
    """Return all that a book holds, whatever its format."""
    first, present = _version(connection) == FIRST, _version(connection) == LEDGER_FORMAT
    columns = "dataset, cap, neighbours, rows_per_person, day, " + ("delta" if present else "'0'")
    accounts = connection.execute(f"SELECT {columns} FROM account ORDER BY rowid").fetchall()
    entries = _stored_entries(connection)
    columns = "id, dataset, before, cap, time, user, reason"
    raises = [] if first else connection.execute(f"SELECT {columns} FROM raised ORDER BY number").fetchall()
    path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
    try:
        found = Contents(
            tuple(
                Account(row[0], read_fraction(row[1]), row[2], row[3], row[4], read_fraction(row[5]))
                for row in accounts
            ),
            tuple(_entry(row, first=first) for row in entries),
            tuple(Raise(_id(row[0]), row[1], read_fraction(row[2]), read_fraction(row[3]), *row[4:]) for row in raises),
        )
    except (ArgumentError, ArithmeticError, TypeError, AttributeError):
        raise LedgerFileError(
            f"{path} is damaged: it has an epsilon, a delta or a cap that is not written p/q, an id that is not 32 "
            "hexadecimal digits, or a digest that is not 64. The file was edited. Take it from a backup."
        ) from None
    check_records(path, found)
    return found


def _stored_entries(connection: sqlite3.Connection) -> list[Any]:
    return connection.execute(f"SELECT {STORED_ENTRY[_version(connection)]} FROM entry ORDER BY number").fetchall()


def _entry(row: Sequence[Any], *, first: bool) -> Entry:
    values = list(row)
    values[1], values[3], values[10] = _id(row[1], first), read_fraction(row[3]), _digests(row[10])
    values[13] = read_fraction(row[13])
    return Entry(*values)


def has_ids(connection: sqlite3.Connection) -> bool:
    """Say whether entries have ids, as they do since format 2."""
    return _version(connection) > FIRST


def put_account(connection: sqlite3.Connection, account: Account) -> None:
    """Write an account, or its cap."""
    values: list[Any] = [account.dataset, str(account.cap), account.neighbours, account.rows_per_person, account.day]
    values.append(str(account.delta))
    connection.execute(
        "INSERT INTO account (dataset, cap, neighbours, rows_per_person, day, delta) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (dataset) DO UPDATE SET cap = excluded.cap, day = excluded.day, delta = excluded.delta",
        values,
    )


def put_entry(connection: sqlite3.Connection, entry: Entry) -> int:
    """Write an entry, or what may change of one that is there, and return its number."""
    values: list[Any] = [entry.id, entry.dataset, str(entry.epsilon), entry.rows_per_person, entry.schema, entry.note]
    values += [entry.time, entry.user, entry.release, " ".join(entry.files), entry.state, entry.person]
    values.append(str(entry.delta))
    connection.execute(
        f"INSERT INTO entry ({ENTRY}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
        "SET release = excluded.release, files = excluded.files, state = excluded.state",
        values,
    )
    return int(connection.execute("SELECT number FROM entry WHERE id = ?", (entry.id,)).fetchone()[0])


def put_raise(connection: sqlite3.Connection, raised: Raise) -> None:
    """Write a raise that is not there yet."""
    values = (raised.id, raised.dataset, str(raised.before), str(raised.cap), raised.time, raised.user, raised.reason)
    connection.execute("INSERT OR IGNORE INTO raised VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", values)


def _id(text: str, first: bool = False) -> str:
    if not first and not re.fullmatch(r"[0-9a-f]{32}", text):
        raise ArgumentError("an id must be 32 hexadecimal digits")
    return text


def _digests(text: str) -> tuple[str, ...]:
    digests = tuple(text.split())
    if not all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in digests):
        raise ArgumentError("a digest must be 64 hexadecimal digits")
    return digests

"""What was spent on which data set: an optional SQLite file that refuses to pass a cap.

**Sequential composition, in plain words.** Whoever sees two releases of the same data sees both noises, and can average
them. The promises then add up: two releases at epsilon 1 protect as one at epsilon 2 would. Neither time nor deleting a
release gives epsilon back. So a steward sets a cap for each data set, and every release is booked here.

**One promise an account.** Epsilons add only if they speak of the same thing. An account has one neighbouring relation
and one number of rows a person, fixed when it is opened. "replace" and "add-remove" are not mixed: replacing a row is
removing one and adding one, so an add-remove epsilon counts twice under "replace", and a replace promise says nothing
about tables of different lengths. An entry that promises for more rows a person than the account asks is welcome; one
for fewer is refused.

**Reserve, then confirm.** A release is booked before the data are opened. An error before noise was drawn frees the
reservation; a run that is killed leaves it, and it counts, because nobody knows what was seen.

**What is in the file.** Names that the steward gives, epsilons as exact fractions, a digest of the public schema, notes
and dates; never a path or a hash of the data. It is a book, not a lock: who can write the file can change it.
"""

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from privmeasure.errors import ArgumentError, BudgetError, DataError, LedgerFileError, SchemaError
from privmeasure.privacy import LARGEST_EPSILON, Neighbours, Privacy, exact_epsilon, read_fraction

FORMAT = 1
APPLICATION = 0x70_6D_6C_67
"""Marks an SQLite file as one of ours ("pmlg")."""
PATIENCE = 60.0
"""Seconds to wait for another process that holds the file."""
LONGEST_NAME, LONGEST_NOTE, LARGEST_TERM = 100, 500, 10**30

TABLES = """
CREATE TABLE account (dataset TEXT PRIMARY KEY, cap TEXT NOT NULL, neighbours TEXT NOT NULL,
    rows_per_person INTEGER NOT NULL, day TEXT NOT NULL) STRICT;
CREATE TABLE entry (number INTEGER PRIMARY KEY, dataset TEXT NOT NULL REFERENCES account, epsilon TEXT NOT NULL,
    rows_per_person INTEGER NOT NULL, schema TEXT NOT NULL, note TEXT NOT NULL, day TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'spent', 'freed'))) STRICT;
"""

State = Literal["pending", "spent", "freed"]

BEFORE_NOISE = (ArgumentError, DataError, SchemaError)
"""Errors that are raised before any noise is drawn: nothing was spent."""


@dataclass(frozen=True, slots=True)
class Account:
    """A data set with its cap, and what its epsilons promise."""

    dataset: str
    cap: Fraction
    neighbours: Neighbours
    rows_per_person: int
    day: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; fractions as "p/q"."""
        return asdict(self) | {"cap": str(self.cap)}


@dataclass(frozen=True, slots=True)
class Entry:
    """One release: reserved ("pending", counts as spent), "spent", or "freed" because nothing was drawn."""

    number: int
    dataset: str
    epsilon: Fraction
    rows_per_person: int
    schema: str
    note: str
    day: str
    state: State

    @property
    def counts(self) -> bool:
        """Whether it counts against the cap."""
        return self.state != "freed"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; fractions as "p/q"."""
        return asdict(self) | {"epsilon": str(self.epsilon)}


class Ledger:
    """The book of one file.

    Examples:
        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(pathlib.Path(folder.name) / "ledger.sqlite")
        >>> account = ledger.open_account("survey 2024", cap="1", neighbours="add-remove")
        >>> with ledger.reserve("survey 2024", Privacy("1/3", "add-remove")):
        ...     pass                      # the release: an error before noise frees the reservation
        >>> ledger.spent("survey 2024"), ledger.remaining("survey 2024")
        (Fraction(1, 3), Fraction(2, 3))
        >>> ledger.reserve("survey 2024", Privacy(0.7, "add-remove"))
        Traceback (most recent call last):
        ...
        privmeasure.errors.BudgetError: A release at epsilon 0.7 would pass the cap of 'survey 2024': ...
        >>> folder.cleanup()
    """

    def __init__(self, path: str | Path) -> None:
        """Name the file; `open_account` makes it, everything else expects it."""
        self.path = Path(path)

    def open_account(self, dataset: str, *, cap: Any, neighbours: Neighbours, rows_per_person: int = 1) -> Account:
        """Begin to account for a data set, under a name of the steward's; a cap is set once."""
        _check_name(dataset)
        promise = Privacy(_exact_cap(cap), neighbours, rows_per_person)  # the cap as one promise for all releases
        account = Account(dataset, promise.epsilon, promise.neighbours, promise.rows_per_person, _today())
        with self._writing(create=True) as connection:
            if any(other.dataset == dataset for other in _accounts(connection)):
                raise ArgumentError(
                    f"{dataset!r} has an account already, and a cap is set once. Another name for the same data would "
                    "hide what was spent. `privmeasure ledger show` says what is left."
                )
            values = (dataset, str(account.cap), account.neighbours, account.rows_per_person, account.day)
            connection.execute("INSERT INTO account VALUES (?, ?, ?, ?, ?)", values)
        return account

    def reserve(self, dataset: str, privacy: Privacy, *, schema: str = "", note: str = "") -> "Reservation":
        """Book a release before the data are opened, or refuse it. `schema`: a digest of the public schema.

        Guarantee:  over any number of processes, what counts never passes the cap: exact sums under one lock
        """
        _check_terms(privacy.epsilon, "epsilon")
        _check_text("note", note, LONGEST_NOTE)
        _check_text("schema", schema, LONGEST_NAME)
        with self._writing() as connection:
            account = self._find(connection, dataset)
            _check_promise(account, privacy)
            spent = _total(_entries(connection, dataset))
            if spent + privacy.epsilon > account.cap:
                raise BudgetError(_refusal(account, spent, privacy.epsilon))
            values = (dataset, str(privacy.epsilon), privacy.rows_per_person, schema, note, _today(), "pending")
            number = connection.execute("INSERT INTO entry VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid
        return Reservation(self, number or 0)  # an INSERT has a number: never 0

    def settle(self, number: int, state: Literal["spent", "freed"]) -> None:
        """Close a pending entry."""
        with self._writing() as connection:
            statement = "UPDATE entry SET state = ? WHERE number = ? AND state = 'pending'"
            if connection.execute(statement, (state, number)).rowcount != 1:
                raise ArgumentError(f"Entry {number} of {self.path} is not pending: it was settled already.")

    def accounts(self) -> list[Account]:
        """Return all accounts, in the order in which they were opened."""
        with self._connected() as connection:
            return _accounts(connection)

    def account(self, dataset: str) -> Account:
        """Return the account of a data set."""
        with self._connected() as connection:
            return self._find(connection, dataset)

    def history(self, dataset: str) -> list[Entry]:
        """Return what was booked on a data set, in order."""
        with self._connected() as connection:
            self._find(connection, dataset)
            return _entries(connection, dataset)

    def spent(self, dataset: str) -> Fraction:
        """Return the sum of what counts: by sequential composition, the epsilon of all releases together."""
        return _total(self.history(dataset))

    def remaining(self, dataset: str) -> Fraction:
        """Return what is left below the cap."""
        return self.account(dataset).cap - self.spent(dataset)

    def _find(self, connection: sqlite3.Connection, dataset: str) -> Account:
        accounts = {account.dataset: account for account in _accounts(connection)}
        if dataset not in accounts:
            known = ", ".join(map(repr, accounts)) or "none yet"
            raise ArgumentError(
                f"{self.path} has no account for {dataset!r}; its accounts: {known}. Open one with "
                "`privmeasure ledger open`, with a cap that you would defend."
            )
        return accounts[dataset]

    # ----------------------------------------------------------------------------------------------- the file

    @contextmanager
    def _writing(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Hold the file's one writing lock, from before the first look to the end: sums cannot go stale."""
        with self._connected(create=create) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if create and _is_empty(connection):
                    for statement in filter(str.strip, TABLES.split(";")):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _connected(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        if not create and not self.path.is_file():
            raise LedgerFileError(f"There is no ledger at {self.path}. `privmeasure ledger open` begins one.")
        if not self.path.parent.is_dir():
            raise LedgerFileError(f"The folder {self.path.parent} does not exist: create it, or choose another place.")
        address = f"file:{quote(os.fspath(self.path))}?mode={'rwc' if create else 'rw'}"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None)) as connection:
                connection.execute("PRAGMA foreign_keys = ON")
                self._check_kind(connection, create=create)
                yield connection
        except sqlite3.Error as error:
            raise LedgerFileError(_explain(self.path, error)) from None

    def _check_kind(self, connection: sqlite3.Connection, *, create: bool) -> None:
        kind = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if _is_empty(connection):
            if not create:
                raise LedgerFileError(f"{self.path} is empty. Begin a ledger with `privmeasure ledger open`.")
        elif kind != APPLICATION:
            raise LedgerFileError(f"{self.path} is an SQLite file of another program, not a ledger. Check the path.")
        elif version != FORMAT:
            raise LedgerFileError(f"{self.path} has format {version}, this version reads {FORMAT}. Update privmeasure.")


class Reservation:
    """A booked release. As a context: left without an error it is confirmed; an error before noise frees it.

    Any other error, Ctrl-C included, leaves it counted, because noise may have been drawn.
    """

    def __init__(self, ledger: Ledger, number: int) -> None:
        """Hold the number of the entry."""
        self._ledger, self.number, self._open = ledger, number, True

    def confirm(self) -> None:
        """Say that epsilon was spent."""
        self._settle("spent")

    def cancel(self) -> None:
        """Give it back: only if no noise was drawn."""
        self._settle("freed")

    def _settle(self, state: Literal["spent", "freed"]) -> None:
        self._ledger.settle(self.number, state)
        self._open = False

    def __enter__(self) -> "Reservation":
        """Begin the release."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Settle what is open."""
        if not self._open:
            return
        if kind is None:
            self.confirm()
            return
        with suppress(LedgerFileError):  # what happened first is what matters; a pending entry counts
            self._settle("freed" if issubclass(kind, BEFORE_NOISE) else "spent")


def schema_digest(value: Mapping[str, Any]) -> str:
    """Return a digest of a public schema, so that entries can tell which declaration they used."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def fraction_text(value: Fraction) -> str:
    """Return an exact fraction as people write it: a decimal where that is short and exact, else p/q.

    Examples:
        >>> fraction_text(Fraction(7, 10)), fraction_text(Fraction(1, 3)), fraction_text(Fraction(1, 10**12 + 39))
        ('0.7', '1/3', 'about 1e-12')
    """
    decimal = f"{float(value):.9g}"
    if Fraction(decimal) == value:
        return decimal
    return str(value) if value.denominator < 10**9 and value.numerator < 10**9 else f"about {float(value):.6g}"


# ---------------------------------------------------------------------------------------------------- the checks


def _exact_cap(cap: Any) -> Fraction:
    try:
        exact = exact_epsilon(cap)
    except ArgumentError:
        raise ArgumentError(
            f"cap must be a number above 0 and at most {LARGEST_EPSILON}, got {cap!r}. It is the most epsilon that all "
            "releases of the data may spend together."
        ) from None
    _check_terms(exact, "cap")
    return exact


def _check_terms(value: Fraction, name: str) -> None:
    """Keep sums of thousands of entries small."""
    if value.denominator > LARGEST_TERM:
        raise ArgumentError(f"{name} must have a denominator of at most 30 digits. Write it as a short decimal or p/q.")


def _check_text(name: str, text: str, longest: int) -> None:
    if not isinstance(text, str) or len(text) > longest or not text.isprintable():
        raise ArgumentError(f"{name} must be one line of at most {longest} printable characters.")


def _check_name(dataset: str) -> None:
    _check_text("dataset", dataset, LONGEST_NAME)
    if not dataset.strip() or re.search(r"[/\\]", dataset) or re.fullmatch(r"[0-9a-fA-F]{32,}", dataset):
        raise ArgumentError(
            f"dataset must be a name that you give to the data, like 'survey 2024', got {dataset!r}. A path or a hash "
            "of the data does not belong into a ledger that others may read."
        )


def _check_promise(account: Account, privacy: Privacy) -> None:
    if privacy.neighbours != account.neighbours:
        raise BudgetError(
            f"The account of {account.dataset!r} adds up promises with neighbours '{account.neighbours}', and this "
            f"release promises '{privacy.neighbours}': the two do not add up. Use --neighbours {account.neighbours}."
        )
    if privacy.rows_per_person < account.rows_per_person:
        raise BudgetError(
            f"The account of {account.dataset!r} protects people with up to {account.rows_per_person} rows, and this "
            f"release only those with up to {privacy.rows_per_person}. Use --rows-per-person {account.rows_per_person}."
        )


def _refusal(account: Account, spent: Fraction, asked: Fraction) -> str:
    left = account.cap - spent
    advice = f"Ask for at most {fraction_text(left)}" if left > 0 else "Nothing is left: use the releases that exist"
    return (
        f"A release at epsilon {fraction_text(asked)} would pass the cap of {account.dataset!r}: "
        f"{fraction_text(spent)} of {fraction_text(account.cap)} is spent. {advice}. Sampling from an earlier release "
        "is free. The data were not opened."
    )


def _explain(path: Path, error: sqlite3.Error) -> str:
    """Say what an SQLite error means; its own text could only show the names of our tables."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return f"{path} or its folder cannot be written. Ask for write access: every release must be booked."
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"{path} has been held by another process for {PATIENCE:g} s. Try again when that one is done."
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return f"{path} could not be written: the disk is full or fails. Nothing was booked. Make room, then try again."
    return f"{path} is not a ledger, or is damaged. Check the path, or take it from a backup."


# ---------------------------------------------------------------------------------------------------- the tables


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _accounts(connection: sqlite3.Connection) -> list[Account]:
    rows = connection.execute("SELECT * FROM account ORDER BY rowid").fetchall()
    with _edited():
        return [Account(row[0], read_fraction(row[1]), row[2], row[3], row[4]) for row in rows]


def _entries(connection: sqlite3.Connection, dataset: str) -> list[Entry]:
    rows = connection.execute("SELECT * FROM entry WHERE dataset = ? ORDER BY number", (dataset,)).fetchall()
    with _edited():
        return [Entry(row[0], row[1], read_fraction(row[2]), *row[3:]) for row in rows]


@contextmanager
def _edited() -> Iterator[None]:
    try:
        yield
    except (ArgumentError, ArithmeticError, TypeError):
        raise LedgerFileError("The ledger has an epsilon that is no fraction: it was edited. Use a backup.") from None


def _total(entries: list[Entry]) -> Fraction:
    return sum((entry.epsilon for entry in entries if entry.counts), Fraction(0))


def _today() -> str:
    return datetime.now(UTC).date().isoformat()

"""What a ledger file must be before anything in it is used: tables without code, records that fit together.

A ledger of a stranger is a program: SQLite runs its triggers whenever something is written, and its views whenever
something is read. A trigger could delete the entry that was just booked. So a file that holds any is refused, and so
are records that this package never writes. Nothing is repaired and nothing is skipped: an entry that is skipped would
not be counted.
"""

import math
import re
import sqlite3
from collections.abc import Collection, Iterable
from fractions import Fraction
from pathlib import Path
from typing import get_args

from privmeasure.errors import LedgerFileError
from privmeasure.ledger.records import Account, Contents, Entry, Raise, State
from privmeasure.privacy import LARGEST_DELTA, LARGEST_EPSILON, Neighbours

MAX_LEDGER_BYTES = 100_000_000
"""The largest ledger file that is read."""
MAX_RECORDS = 100_000
"""The most accounts, entries or raises that a ledger may hold, each."""
MAX_TEXT_BYTES = 1_000_000
"""The longest row of a table: SQLite refuses to read or compute a longer one."""
MAX_DENOMINATOR = 10**300
"""The largest denominator of an epsilon, a delta or a cap."""
MAX_COMMON_DENOMINATOR = 10**2000
"""The largest common denominator of the epsilons of an account: Python writes numbers of up to 4,300 digits."""

LEDGER_TABLES = ("account", "entry", "raised")
STATEMENTS = """
create table account entry raised entry_new (dataset text primary key cap not null neighbours rows_per_person integer
day delta default 0) strict number id unique references epsilon schema note time user release files person before reason
state check in (pending spent freed)
"""
TABLE_WORDS = frozenset(re.findall(r"\w+", STATEMENTS))
"""The words of the tables of every format. A clause like ON CONFLICT REPLACE, which deletes entries, needs others."""
UNIQUE = {"account": {("dataset",)}, "entry": {("id",)}, "raised": {("id",)}}
"""The columns of each table that may have to be unique."""


def check_size(path: Path) -> None:
    """Refuse a file that is too large to be a ledger."""
    if path.stat().st_size > MAX_LEDGER_BYTES:
        raise LedgerFileError(
            f"{path} is larger than a ledger can be ({MAX_LEDGER_BYTES:,} bytes). Check the path: is it the data?"
        )


def check_tables(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file that holds anything but the tables of a ledger: code in it would run when it is read or written."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT_BYTES)
    rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    for kind, name, sql in rows:
        is_table = kind == "table" and name in LEDGER_TABLES and sql.upper().startswith("CREATE TABLE")
        if not is_table and not (kind == "index" and not sql):  # SQLite makes an index for each key by itself
            raise _edited(path, f"holds the {kind} {name!r}, which no ledger has and which could change its entries")
        if not TABLE_WORDS.issuperset(re.findall(r"\w+", sql.lower())):
            raise _edited(path, f"has a rule of its own for the table {name!r}, which could change its entries")
    for table in {name for kind, name, _ in rows if kind == "table"}:
        columns = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
        if any(hidden for *_, hidden in columns):
            raise _edited(path, f"computes a column of the table {table!r} instead of storing it")
        if any(name == "number" and (type.upper(), key) != ("INTEGER", 1) for _, name, type, _, _, key, _ in columns):
            raise _edited(path, f"does not number the rows of the table {table!r} by itself")
        indexes = connection.execute(f"PRAGMA index_list({table})").fetchall()
        for _, index, *_ in indexes:
            unique = tuple(name for *_, name in connection.execute("SELECT * FROM pragma_index_info(?)", (index,)))
            if unique not in UNIQUE[table]:
                raise _edited(path, f"has a rule of its own for the table {table!r}")
        count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if count > MAX_RECORDS:
            raise LedgerFileError(
                f"{path} has {count:,} rows in the table {table!r}, and a ledger has at most {MAX_RECORDS:,}. Open a "
                "new one for further data sets."
            )


def check_records(path: Path, contents: Contents) -> None:
    """Refuse records that no version of this package writes, or that do not fit together."""
    names = {account.dataset for account in contents.accounts}
    denominators = dict.fromkeys(names, (1, 1))
    for account in contents.accounts:
        _check(path, f"the account {account.dataset!r}", _account_problem(account))
    for entry in contents.entries:
        _check(path, f"entry {entry.number!r}", _entry_problem(entry, names))
        ours = zip(denominators[entry.dataset], (entry.epsilon, entry.delta), strict=True)
        common = tuple(math.lcm(before, value.denominator) for before, value in ours)
        if max(common) > MAX_COMMON_DENOMINATOR:
            raise _edited(path, f"has epsilons or deltas of {entry.dataset!r} whose exact sum is too long to write")
        denominators[entry.dataset] = common[0], common[1]
    for raised in contents.raises:
        _check(path, f"the raise of a cap of {raised.dataset!r}", _raise_problem(raised, names))


def _check(path: Path, record: str, problem: str) -> None:
    if problem:
        raise _edited(path, f"is damaged: {record} {problem}")


def _edited(path: Path, fault: str) -> LedgerFileError:
    return LedgerFileError(
        f"{path} {fault}. The file was edited, or written by another program. Take it from a backup."
    )


def _account_problem(account: Account) -> str:
    return (
        _text_problem((account.dataset, account.day))
        or _value_problem("cap", account.cap, LARGEST_EPSILON)
        or _value_problem("delta", account.delta, LARGEST_DELTA, least=True)
        or _rows_problem(account.rows_per_person)
        or ("" if account.neighbours in get_args(Neighbours) else "has neighbours that are unknown")
    )


def _entry_problem(entry: Entry, names: Collection[str]) -> str:
    texts = (entry.id, entry.dataset, entry.schema, entry.note, entry.time, entry.user, entry.release, entry.person)
    return (
        _text_problem(texts)
        or _name_problem(entry.dataset, names)
        or _value_problem("epsilon", entry.epsilon, LARGEST_EPSILON)
        or _value_problem("delta", entry.delta, LARGEST_DELTA, least=True)
        or _rows_problem(entry.rows_per_person)
        or ("" if entry.state in get_args(State) else f"has a state other than {', '.join(get_args(State))}")
        or ("" if isinstance(entry.number, int) else "has a number that is not whole")
    )


def _raise_problem(raised: Raise, names: Collection[str]) -> str:
    return (
        _text_problem((raised.id, raised.dataset, raised.time, raised.user, raised.reason))
        or _name_problem(raised.dataset, names)
        or _value_problem("cap", raised.cap, LARGEST_EPSILON)
        or _value_problem("earlier cap", raised.before, LARGEST_EPSILON)
    )


def _text_problem(values: Iterable[object]) -> str:
    return "" if all(isinstance(value, str) for value in values) else "has a text that is none"


def _name_problem(dataset: str, names: Collection[str]) -> str:
    return "" if dataset in names else f"belongs to the account {dataset!r}, which the ledger does not have"


def _value_problem(name: str, value: Fraction, most: Fraction | int, *, least: bool = False) -> str:
    """Return what is wrong with an exact value: it is above 0, or with `least` at least 0, and at most `most`."""
    if 0 <= value <= most and (value or least) and value.denominator <= MAX_DENOMINATOR:
        return ""
    return f"has {'an' if name[0] == 'e' else 'a'} {name} that is not from 0 to {most}, or has too many digits"


def _rows_problem(rows: object) -> str:
    return "" if isinstance(rows, int) and rows >= 1 else "has a number of rows per person below 1"

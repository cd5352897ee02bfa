"""Ledger files of strangers: code in them never runs, and what does not fit together is refused, whatever is asked."""

import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from privmeasure.cli.exporting import to_csv, to_json
from privmeasure.errors import LedgerFileError
from privmeasure.ledger import Ledger, checking
from privmeasure.ledger.checking import TABLE_WORDS
from privmeasure.ledger.file import ACCOUNTS, ENTRIES, RAISES
from privmeasure.privacy import Privacy

ENTRY = "100 + value, lower(hex(randomblob(16))), 'people', '{}', 1, '', '', '', '', '', '', 'spent', '', '0'"
"""The columns of an entry with an epsilon, for the number `value`."""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with two accounts, two entries and a cap that was raised."""
    ledger = Ledger(tmp_path / "book.sqlite")
    ledger.open_account("people", cap=4, neighbours="add-remove", delta="1e-6")
    ledger.open_account("census", cap=1, neighbours="replace")
    ledger.reserve("people", Privacy("1/3", "add-remove"))
    ledger.reserve("people", Privacy("1/3", "add-remove", delta=1e-7))
    ledger.raise_cap("people", cap=5, reason="approved")
    return ledger


def edit(ledger: Ledger, *statements: str) -> None:
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement)


def refusals(ledger: Ledger, other: Path) -> list[str]:
    """Ask everything that reads entries, and return how each was refused."""
    mine = Ledger(other)
    mine.open_account("people", cap=4, neighbours="add-remove", delta="1e-6")
    asked: list[Callable[[], object]] = [
        lambda: to_csv(ledger.contents()),
        lambda: to_json(ledger.contents()),
        lambda: ledger.remaining("people"),
        lambda: ledger.reserve("people", Privacy("1/7", "add-remove")),
        lambda: ledger.raise_cap("people", cap=7, reason="approved"),
        lambda: ledger.open_account("more", cap=1, neighbours="replace"),
        lambda: ledger.merge(mine),
        lambda: mine.merge(ledger),
    ]
    found = []
    for ask in asked:
        with pytest.raises(LedgerFileError) as caught:
            ask()
        found.append(str(caught.value))
    return found


@pytest.mark.parametrize(
    "code",
    [
        "CREATE TRIGGER gone AFTER INSERT ON entry BEGIN DELETE FROM entry; END",
        "CREATE TRIGGER gone AFTER UPDATE ON account BEGIN DELETE FROM entry; END",
        "CREATE TRIGGER gone AFTER INSERT ON entry BEGIN UPDATE entry SET state = 'freed'; END",
        "CREATE TRIGGER gone BEFORE INSERT ON entry BEGIN SELECT raise(ignore); END",
        "CREATE VIEW more AS SELECT 1",
        "CREATE TABLE more (one TEXT)",
        "CREATE INDEX more ON entry (abs(epsilon))",
        "ALTER TABLE entry ADD COLUMN more TEXT AS (hex(zeroblob(100)))",
    ],
)
def test_a_ledger_that_holds_code_is_refused_before_it_runs(ledger: Ledger, tmp_path: Path, code: str) -> None:
    edit(ledger, code)
    before = ledger.path.read_bytes()
    assert all("edited" in refusal and "backup" in refusal for refusal in refusals(ledger, tmp_path / "other"))
    assert ledger.path.read_bytes() == before


def test_a_view_without_an_end_is_not_read(ledger: Ledger) -> None:
    endless = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS number FROM c"
    edit(ledger, "PRAGMA foreign_keys = OFF", "ALTER TABLE entry RENAME TO hidden", f"CREATE VIEW entry AS {endless}")
    with pytest.raises(LedgerFileError, match="edited"):
        ledger.contents()


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE entry SET epsilon = '1' || '" + "0" * 307 + "'", "entry 1 has an epsilon"),
        ("UPDATE entry SET epsilon = '1/' || '" + "9" * 308 + "'", "entry 1 has an epsilon"),
        ("UPDATE entry SET epsilon = '0'", "entry 1 has an epsilon"),
        ("UPDATE entry SET epsilon = '51'", "entry 1 has an epsilon"),
        ("UPDATE entry SET epsilon = 'none'", "p/q"),
        ("UPDATE entry SET delta = '1/2' WHERE number = 2", "entry 2 has a delta"),
        ("UPDATE entry SET state = 'forgotten' WHERE number = 2", "entry 2 has a state"),
        ("UPDATE entry SET rows_per_person = 0", "entry 1 has a number of rows per person"),
        ("UPDATE entry SET dataset = 'other' WHERE number = 2", "entry 2 belongs to the account 'other'"),
        ("UPDATE raised SET dataset = 'other'", "the raise of a cap of 'other' belongs to"),
        ("UPDATE raised SET before = '1" + "0" * 308 + "'", "the raise of a cap of 'people' has an earlier cap"),
        ("UPDATE account SET neighbours = 'both'", "the account 'people' has neighbours"),
        ("UPDATE account SET cap = '" + "9" * 308 + "'", "the account 'people' has a cap"),
        ("DELETE FROM account WHERE dataset = 'people'", "entry 1 belongs to the account 'people'"),
        ("UPDATE entry SET note = CAST(x'61ff' AS TEXT)", "damaged"),
        ("UPDATE account SET dataset = CAST(x'ff' AS TEXT) WHERE dataset = 'census'", "damaged"),
        ("UPDATE entry SET note = printf('%.2000000c', 'a')", "damaged"),
    ],
    ids=lambda value: value[:60],
)
def test_records_that_do_not_fit_together_are_refused(
    ledger: Ledger, tmp_path: Path, statement: str, told: str
) -> None:
    edit(ledger, "PRAGMA foreign_keys = OFF", statement)
    assert all(told in refusal and str(ledger.path) in refusal for refusal in refusals(ledger, tmp_path / "other"))


def test_columns_that_are_not_typed_are_refused(ledger: Ledger) -> None:
    names = "dataset TEXT PRIMARY KEY, cap TEXT, neighbours TEXT, rows_per_person INTEGER, day TEXT, delta TEXT"
    fill_again = ["INSERT INTO account SELECT * FROM typed", "DROP TABLE typed"]
    renamed = ["PRAGMA legacy_alter_table = ON", "ALTER TABLE account RENAME TO typed"]
    edit(ledger, *renamed, f"CREATE TABLE account ({names})", *fill_again)
    edit(ledger, "UPDATE account SET day = x'00' WHERE dataset = 'census'")
    with pytest.raises(LedgerFileError, match="the account 'census' has a text"):
        ledger.contents()


def fill(ledger: Ledger, count: int, *, epsilon: str = "1/1000000") -> None:
    """Add entries to a ledger as fast as SQLite can."""
    numbers = f"WITH RECURSIVE c (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM c LIMIT {count})"
    edit(ledger, f"INSERT INTO entry SELECT {ENTRY.format(epsilon)} FROM ({numbers} SELECT value FROM c)")


def test_sums_that_are_too_long_to_write_are_refused_at_once(ledger: Ledger) -> None:
    fill(ledger, 2000, epsilon="1/' || (1000000007 * value + 1) || '")
    start = time.perf_counter()
    with pytest.raises(LedgerFileError, match="too long to write"):
        ledger.contents()
    assert time.perf_counter() - start < 2


def test_a_ledger_has_at_most_so_many_entries_and_bytes(ledger: Ledger) -> None:
    fill(ledger, checking.MAX_RECORDS // 10)
    assert len(ledger.contents().entries) == checking.MAX_RECORDS // 10 + 2
    edit(ledger, "DELETE FROM entry WHERE number > 99")
    fill(ledger, checking.MAX_RECORDS)
    with pytest.raises(LedgerFileError, match="100,002 rows in the table 'entry'"):
        ledger.contents()
    with ledger.path.open("ab") as file:
        file.truncate(checking.MAX_LEDGER_BYTES + 1)
    with pytest.raises(LedgerFileError, match="larger than a ledger"):
        ledger.contents()


CHANGED_TABLES = {
    "a clause that deletes entries": ("dataset TEXT NOT NULL", "dataset TEXT NOT NULL UNIQUE ON CONFLICT REPLACE"),
    "a clause that leaves entries out": ("id TEXT NOT NULL UNIQUE", "id TEXT NOT NULL UNIQUE ON CONFLICT IGNORE"),
    "one entry for each account": ("dataset TEXT NOT NULL", "dataset TEXT NOT NULL UNIQUE"),
    "numbers that are not given by SQLite": ("number INTEGER PRIMARY KEY", "number INTEGER"),
    "names that are compared otherwise": ("id TEXT NOT NULL UNIQUE", "id TEXT NOT NULL COLLATE NOCASE UNIQUE"),
}


@pytest.mark.parametrize("change", CHANGED_TABLES)
def test_a_ledger_whose_tables_have_other_rules_is_refused(ledger: Ledger, tmp_path: Path, change: str) -> None:
    """With ON CONFLICT REPLACE every entry would delete the one before, and the cap could be passed without limit."""
    old, new = CHANGED_TABLES[change]
    assert ENTRIES.count(old) == 1
    edit(ledger, "DROP TABLE entry", ENTRIES.format(name="entry").replace(old, new))
    assert all("edited" in refusal and "backup" in refusal for refusal in refusals(ledger, tmp_path / "other"))


def test_the_statements_of_this_package_use_the_words_that_are_allowed() -> None:
    for statement in (ACCOUNTS, ENTRIES.format(name="entry"), ENTRIES.format(name="entry_new"), RAISES):
        assert TABLE_WORDS.issuperset(re.findall(r"\w+", statement.lower()))

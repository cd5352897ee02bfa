"""One book of two: a union by id, the smaller cap, and nothing at all where the two contradict each other."""

import shutil
import sqlite3
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privmeasure as pm
from depth import examples
from privmeasure.errors import ArgumentError, BudgetError, LedgerFileError
from privmeasure.ledger import Ledger
from privmeasure.ledger.merging import union
from privmeasure.ledger.records import Account, Contents, Entry, Raise
from privmeasure.privacy import Privacy


def opened(path, name="people", cap=1, neighbours="add-remove", rows_per_person=1):
    ledger = Ledger(path)
    ledger.open_account(name, cap=cap, neighbours=neighbours, rows_per_person=rows_per_person)
    return ledger


def book(ledger, epsilon="1/4", name="people"):
    return ledger.reserve(name, Privacy(epsilon, "add-remove"), note="x")


def edit(ledger, statement, *values):
    with sqlite3.connect(ledger.path) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.fixture
def two(tmp_path):
    """Two machines that began with the same book and went on alone."""
    one = opened(tmp_path / "one", cap=1)
    shared = book(one)
    shutil.copy(one.path, tmp_path / "two")
    other = Ledger(tmp_path / "two")
    shared.confirm()
    book(one).confirm()
    book(other, "1/3").confirm()
    book(other, "1/3")
    other.open_account("census", cap=2, neighbours="replace")
    return one, other


def told(contents):
    """What a book says, whatever the order and the spelling of names."""
    return (
        {(a.dataset.casefold(), a.cap, a.neighbours, a.rows_per_person, a.day) for a in contents.accounts},
        {(e.id, e.dataset.casefold(), e.epsilon, e.release, e.files, e.state) for e in contents.entries},
        {(r.id, r.dataset.casefold(), r.before, r.cap, r.reason) for r in contents.raises},
    )


def test_the_union_of_two_books(two, tmp_path):
    one, other = two
    shutil.copy(one.path, tmp_path / "three")
    before = other.path.read_bytes()
    merged = one.merge(other)
    assert other.path.read_bytes() == before
    assert (merged.accounts, merged.entries, merged.settled) == (1, 2, 0)
    assert one.spent("people") == Fraction(1, 4) * 2 + Fraction(1, 3) * 2
    assert merged.over == ("people",)
    assert one.remaining("people") < 0
    with pytest.raises(BudgetError, match="Nothing is left"):
        book(one, "1/1000")
    again = one.merge(other.path)
    assert (again.accounts, again.entries, again.settled, again.raises) == (0, 0, 0, 0)
    reverse = other.merge(tmp_path / "three")
    assert reverse.settled == 1  # the shared entry was pending there
    assert told(one.contents()) == told(other.contents())


def test_a_book_with_itself(two, tmp_path):
    one, _ = two
    before = one.contents()
    (tmp_path / "link").symlink_to(one.path)
    for path in (one.path, tmp_path / "link"):
        merged = one.merge(path)
        assert (merged.accounts, merged.entries, merged.settled, merged.over) == (0, 0, 0, ())
    assert one.contents() == before
    shutil.copy(one.path, tmp_path / "copy")
    assert one.merge(tmp_path / "copy").entries == 0
    assert one.contents() == before


@pytest.mark.parametrize("column", ["epsilon", "rows_per_person", "schema", "note", "time", "user"])
def test_an_entry_that_was_edited_is_refused(two, column):
    one, other = two
    edit(other, f"UPDATE entry SET {column} = ? WHERE number = 1", 2 if column == "rows_per_person" else "1/9")
    before = [ledger.path.read_bytes() for ledger in two]
    for mine, theirs in ((one, other), (other, one)):
        with pytest.raises(LedgerFileError, match="edited"):
            mine.merge(theirs)
    assert [ledger.path.read_bytes() for ledger in two] == before


def test_an_entry_that_moved_to_another_account_is_refused(two):
    one, other = two
    edit(other, "UPDATE entry SET dataset = 'census' WHERE number = 1")
    with pytest.raises(LedgerFileError, match="different things"):
        one.merge(other)


@pytest.mark.parametrize("promise", [{"neighbours": "replace"}, {"rows_per_person": 2}])
def test_different_promises_are_refused(tmp_path, promise):
    one, other = opened(tmp_path / "one"), opened(tmp_path / "two", "PEOPLE", **promise)
    one_before = one.contents()
    with pytest.raises(LedgerFileError, match="different things"):
        one.merge(other)
    assert one.contents() == one_before


def test_the_smaller_cap_and_all_raises(tmp_path):
    one = opened(tmp_path / "one", cap=1)
    shutil.copy(one.path, tmp_path / "two")
    other = Ledger(tmp_path / "two")
    raised = one.raise_cap("people", cap=2, reason="board", user="ada")
    one.merge(other)
    assert one.account("people").cap == 1  # the other book never heard of it
    assert one.raises("people") == [raised]
    again = one.raise_cap("people", cap=2, reason="board, again")
    other.merge(one)
    assert other.account("people").cap == 1
    assert other.raises("people") == [raised, again]
    other.raise_cap("people", cap=3, reason="more")
    one.merge(other)
    assert one.account("people").cap == 2
    edit(other, "UPDATE raised SET reason = 'forged' WHERE number = 1")
    with pytest.raises(LedgerFileError, match=r"raise.*different things"):
        one.merge(other)


def test_names_that_mean_the_same_are_one_account(tmp_path):
    one, other = opened(tmp_path / "one", "People"), opened(tmp_path / "two", "people", cap="1/2")
    book(other).confirm()
    one.merge(other)
    assert [(account.dataset, account.cap) for account in one.accounts()] == [("People", Fraction(1, 2))]
    assert one.spent("PEOPLE") == Fraction(1, 4)


def test_the_states_of_one_entry(tmp_path):
    """Spent beats freed beats pending, in either direction; digests of files are gathered."""
    one = opened(tmp_path / "one")
    synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon="1/2", neighbours="add-remove")
    reservation = one.reserve("people", synth)
    shutil.copy(one.path, tmp_path / "pending")
    shutil.copy(one.path, tmp_path / "freed")
    edit(Ledger(tmp_path / "freed"), "UPDATE entry SET state = 'freed'")
    with reservation:
        synth.fit(np.linspace(0, 1, 50)).save(tmp_path / "release")
    reservation.record(tmp_path / "release")
    for name in ("pending", "freed"):
        shutil.copy(one.path, tmp_path / "spent")
        Ledger(tmp_path / "spent").merge(tmp_path / name)
        assert Ledger(tmp_path / "spent").history("people") == one.history("people")
    Ledger(tmp_path / "pending").merge(tmp_path / "freed")
    assert Ledger(tmp_path / "pending").history("people")[0].state == "freed"
    assert Ledger(tmp_path / "pending").merge(one).settled == 1
    assert Ledger(tmp_path / "pending").history("people") == one.history("people")


def test_a_book_without_ids_is_not_merged(tmp_path):
    from unit.ledger.test_file import FIRST

    for name in ("one", "two"):
        with sqlite3.connect(tmp_path / name) as connection:
            connection.executescript(FIRST)
        connection.close()
    one, other = Ledger(tmp_path / "one"), Ledger(tmp_path / "two")
    with pytest.raises(ArgumentError, match="ledger migrate"):
        one.merge(other)
    other.migrate()
    one.merge(other)  # made apart, the two have different ids: what may be the same counts twice, never not at all
    assert one.spent("people") == Fraction(4, 3)
    assert one.merge(other).entries == 0
    with pytest.raises(LedgerFileError, match="several accounts"):
        one.merge(opened(tmp_path / "three", "PEOPLE"))
    one.merge(one)
    with pytest.raises(LedgerFileError, match="no ledger"):
        one.merge(tmp_path / "nowhere")


NAMES = ["a", "A", "b"]
IDS = [f"{i:032x}" for i in range(6)]


@st.composite
def contents(draw):
    """A book about up to three names; what an id stands for follows from the id, its state does not."""
    names = draw(st.lists(st.sampled_from(NAMES), unique_by=str.casefold))
    accounts = tuple(
        Account(name, Fraction(draw(st.integers(1, 3))), "replace", 1, draw(st.sampled_from(["x", "y"])))
        for name in names
    )
    keys = {name.casefold(): name for name in names}
    entries = tuple(
        Entry(i, one, keys["ab"[int(one, 16) % 2]], Fraction(1, 2), 1, "", "", "t", "", "",
              tuple(sorted(draw(st.sets(st.sampled_from(["d" * 64, "e" * 64]))))),
              draw(st.sampled_from(["pending", "freed", "spent"])))
        for i, one in enumerate(sorted(draw(st.sets(st.sampled_from(IDS))))) if "ab"[int(one, 16) % 2] in keys
    )  # fmt: skip
    raises = tuple(Raise(one, keys["a"], Fraction(1), Fraction(2), "t", "", "r")
                   for one in sorted(draw(st.sets(st.sampled_from(IDS)))) if "a" in keys)  # fmt: skip
    return Contents(accounts, entries, raises)


@examples(50, 200)
@given(contents(), contents(), contents())
def test_merging_is_commutative_associative_and_idempotent(one, two, three):
    assert told(union(one, two)) == told(union(two, one))
    assert told(union(union(one, two), three)) == told(union(one, union(two, three)))
    assert union(one, one) == one
    assert told(union(union(one, two), two)) == told(union(one, two))

"""One book of two: what two machines booked on the same data sets, added up.

The union of entries and of raises by their random ids, so merging twice, or in the other direction, gives the same.

- An entry that both books have may have gone on in one of them: spent beats freed, which beats pending. In everything
  else that was booked the two must agree, or one of them was edited and nothing is merged.
- An account that both have gets the smaller of the two present caps, of epsilon and of delta. A raise counts in the
  book where it was made: after merging with a book that does not know it, the cap is the smaller one again, and the
  raise stays in the history. Raise it once more, and then merge in the other direction.
- Accounts must make the same promise. Names that are spelled differently but mean the same data set are one account,
  under the name of the book that is merged into.

What counts may pass the cap afterwards: each book kept to it alone. That is said, and no further release is allowed.
"""

from dataclasses import dataclass, replace
from typing import Any

from privmeasure.errors import LedgerFileError
from privmeasure.ledger.names import fold
from privmeasure.ledger.records import Account, Contents, Entry, Raise, State

RANK: dict[State, int] = {"pending": 0, "freed": 1, "spent": 2}
"""Which state wins when two books differ: what is spent stays spent; what was freed had drawn nothing."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge brought: new accounts, entries and raises, entries that were settled, and names beyond their cap."""

    accounts: int
    entries: int
    raises: int
    settled: int
    over: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        names = ("accounts", "entries", "raises", "settled")
        return {name: getattr(self, name) for name in names} | {"over_the_cap": list(self.over)}


def union(mine: Contents, other: Contents) -> Contents:
    """Return what both books say together, under the names of the first; a new entry has the number 0."""
    names = _same_names(mine, other)
    accounts = {account.dataset: account for account in mine.accounts}
    for account in other.accounts:
        renamed = replace(account, dataset=names[account.dataset])
        there = accounts.get(renamed.dataset)
        accounts[renamed.dataset] = renamed if there is None else _account(there, renamed)
    entries = {entry.id: entry for entry in mine.entries}
    for entry in other.entries:
        there_entry, new = entries.get(entry.id), replace(entry, number=0, dataset=names[entry.dataset])
        entries[entry.id] = new if there_entry is None else _entry(there_entry, new)
    raises = {raised.id: raised for raised in mine.raises}
    for raised in other.raises:
        raises[raised.id] = _raise(raises.get(raised.id), replace(raised, dataset=names[raised.dataset]))
    return Contents(tuple(accounts.values()), tuple(entries.values()), tuple(raises.values()))


def _same_names(mine: Contents, other: Contents) -> dict[str, str]:
    """Return for each name of the other book the name that it has in the first, or will have there."""
    sides: dict[str, tuple[set[str], set[str]]] = {}
    for side, book in enumerate((mine, other)):
        for account in book.accounts:
            sides.setdefault(fold(account.dataset), (set(), set()))[side].add(account.dataset)
    names: dict[str, str] = {}
    for one, two in sides.values():
        if not one or one <= two or two <= one:
            names |= {name: name for name in two}
        elif len(one) == len(two) == 1:
            names[two.pop()] = next(iter(one))
        else:
            listed = ", ".join(map(repr, sorted(one | two)))
            raise LedgerFileError(
                f"The books have several accounts for what may be one data set: {listed}. Nothing was merged: it "
                "cannot be said which belong together. Keep the two books apart, each with a cap of its own."
            )
    return names


def _account(mine: Account, other: Account) -> Account:
    if (mine.neighbours, mine.rows_per_person) != (other.neighbours, other.rows_per_person):
        raise LedgerFileError(
            f"The accounts of {mine.dataset!r} promise different things: neighbours '{mine.neighbours}' with up to "
            f"{mine.rows_per_person} rows per person, and '{other.neighbours}' with up to {other.rows_per_person}. "
            "Their epsilons do not add up, and nothing was merged."
        )
    return replace(mine, cap=min(mine.cap, other.cap), delta=min(mine.delta, other.delta), day=min(mine.day, other.day))


def _entry(mine: Entry, other: Entry) -> Entry:
    release = mine.release or other.release
    state = max(mine.state, other.state, key=RANK.__getitem__)
    files = tuple(sorted({*mine.files, *other.files}))
    both = (replace(entry, number=0, release=release, state=state, files=files) for entry in (mine, other))
    if len(set(both)) > 1 or (other.release and other.release != release):
        raise LedgerFileError(
            f"Entry {mine.number} of {mine.dataset!r} is in both books, by its id, but says different things: one of "
            "them was edited. Nothing was merged. Take that book from a backup."
        )
    return replace(mine, release=release, state=state, files=files)


def _raise(mine: Raise | None, other: Raise) -> Raise:
    if mine is not None and mine != other:
        raise LedgerFileError(
            f"A raise of the cap of {mine.dataset!r} is in both books, by its id, but says different things: one of "
            "them was edited. Nothing was merged. Take that book from a backup."
        )
    return other

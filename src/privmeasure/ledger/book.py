"""The book: accounts are opened, releases reserved and settled, caps raised, books merged."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from privmeasure.errors import ArgumentError, BudgetError, ReleaseFileError
from privmeasure.ledger import file, names
from privmeasure.ledger.merging import Merged, union
from privmeasure.ledger.records import (
    LONGEST_NAME,
    Account,
    Contents,
    Entry,
    Raise,
    fraction_text,
    login_name,
    now,
    schema_digest,
    total,
    total_delta,
)
from privmeasure.ledger.reservation import Reservation, Spender
from privmeasure.origin import Origin, new_id
from privmeasure.privacy import LARGEST_EPSILON, Neighbours, Privacy, exact_epsilon

LARGEST_TERM = 10**30
"""The largest denominator of an epsilon or a cap ..."""
LARGEST_ACCOUNT = 10**300
"""... and of all epsilons of an account together: beyond, Python would not write the sum."""


class Ledger:
    """The book of one file.

    Examples:
        >>> import tempfile, pathlib
        >>> import numpy as np, privmeasure as pm
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(pathlib.Path(folder.name) / "ledger.sqlite")
        >>> account = ledger.open_account("survey 2024", cap="1", neighbours="add-remove")
        >>> synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon="1/3", neighbours="add-remove")
        >>> with ledger.reserve("survey 2024", synth):
        ...     release = synth.fit(np.linspace(0, 1, 100)).release_       # an error before noise frees the entry
        >>> ledger.spent("survey 2024"), ledger.remaining("Survey 2024 ")
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

    # ---------------------------------------------------------------------------------------------------- booking

    def open_account(
        self, dataset: str, *, cap: Any, neighbours: Neighbours, rows_per_person: int = 1, delta: Any = 0
    ) -> Account:
        """Begin to account for a data set, under a name of the steward's; spelled differently, it is the same.

        Releases with a delta are refused unless the account is opened with one: it caps the sum of their deltas.
        """
        names.check_name(dataset)
        promise = Privacy(_exact_cap(cap), neighbours, rows_per_person, delta=delta)  # one promise for all releases
        _check_terms(promise.delta, "delta")
        account = Account(dataset.strip(), promise.epsilon, neighbours, rows_per_person, now()[:10], promise.delta)
        with file.writing(self.path, create=True) as connection:
            for other in file.contents(connection).accounts:
                if names.fold(other.dataset) == names.fold(dataset):
                    raise ArgumentError(
                        f"{other.dataset!r} has an account already, and is opened once. Another name for the same "
                        "data would hide what was spent. `privmeasure ledger show` says what is left, and "
                        "`privmeasure ledger raise` raises a cap, with a reason."
                    )
            file.put_account(connection, account)
        return account

    def reserve(
        self, dataset: str, what: Spender | Privacy, *, schema: str = "", note: str = "", user: str | None = None
    ) -> Reservation:
        """Book a release before the data are opened, or refuse it. `what`: the synthesizer that will make it.

        The synthesizer brings its promise, the digest of its schema and the id of its release; from here on it cannot
        change, and an error frees the entry if it drew no noise. A bare `Privacy` books a release that is made
        elsewhere: nothing frees it, and its delta says nothing of rho. `user` is the login name unless it is given.

        Guarantee:  over any number of processes, what counts never passes the cap: exact sums under one lock
        """
        if isinstance(what, Privacy):
            entry = self._reserved(dataset, what, release="", schema=schema, note=note, user=user)
            return Reservation(entry, None, settle=self._settle, record=self._record)
        if not isinstance(what, Spender):
            raise ArgumentError(f"A ledger books a Synthesizer, or a Privacy, got {type(what).__name__}.")
        own = "" if what.schema is None else schema_digest(what.schema.to_json())
        if schema not in ("", own):
            raise ArgumentError("schema must be left out for a synthesizer: it brings the digest of its own.")
        promise = what.hold()
        try:
            entry = self._reserved(dataset, promise, release=what.release_id, schema=own, note=note, user=user)
        except BaseException:
            what.give_back()
            raise
        return Reservation(entry, what, settle=self._settle, record=self._record)

    def _reserved(
        self, dataset: str, privacy: Privacy, *, release: str, schema: str, note: str, user: str | None
    ) -> Entry:
        names.check_text("note", note)
        names.check_text("schema", schema, LONGEST_NAME)
        user = _user(user)
        with file.writing(self.path) as connection:
            entry = self._accepted(file.contents(connection), dataset, privacy)
            entry = replace(entry, id=new_id(), schema=schema, note=note, time=now(), user=user, release=release)
            return replace(entry, number=file.put_entry(connection, entry))

    def check(self, dataset: str, privacy: Privacy) -> Account:
        """Refuse a release as `reserve` would at this moment, and return its account; nothing is booked."""
        book = self.contents()
        return names.find(book.accounts, self._accepted(book, dataset, privacy).dataset, str(self.path))

    def _accepted(self, book: Contents, dataset: str, privacy: Privacy) -> Entry:
        """Return what would be booked for a promise, as far as it says it, or refuse it."""
        _check_terms(privacy.epsilon, "epsilon")
        _check_terms(privacy.delta, "delta")
        account = names.find(book.accounts, dataset, str(self.path))
        entries = book.of(account.dataset)[0]
        _check_promise(account, entries, privacy)
        entry = Entry(
            number=0,
            id="",
            dataset=account.dataset,
            epsilon=privacy.epsilon,
            rows_per_person=privacy.rows_per_person,
            schema="",
            note="",
            time="",
            user="",
            release="",
            files=(),
            state="pending",
            person=privacy.person or "",
            delta=privacy.delta,
        )
        _check_caps(account, entries, entry)
        return entry

    def close(self, path: str | Path) -> Entry:
        """Turn the pending entry of a release into a spent one, given the file of the release; its digest is kept.

        For a run that was killed after it had saved. An entry that is spent already stays so, and gets the digest.
        """
        found = _release_file(Path(path))
        with file.writing(self.path) as connection:
            book = file.contents(connection)
            entries = [entry for entry in book.entries if entry.release == found.origin.id]
            if not entries:
                raise ArgumentError(
                    f"{self.path} has no entry for the release {found.origin.id} of {path}. Is it the right ledger? A "
                    "release that was made without one cannot be booked as if it had asked: reserve its epsilon, and "
                    "note it."
                )
            entry = min(entries, key=lambda entry: ("pending", "spent", "freed").index(entry.state))
            closed = replace(found.recorded(book, entry), state="spent")
            file.put_entry(connection, closed)
            return closed

    def raise_cap(self, dataset: str, *, cap: Any, reason: str, user: str | None = None) -> Raise:
        """Raise the cap of a data set, with a reason that is kept: who, when, from what, to what, why."""
        names.check_text("reason", reason)
        if not reason.strip():
            raise ArgumentError("reason must say why the cap is raised: it is kept, and shown to whoever asks.")
        exact, user = _exact_cap(cap), _user(user)
        with file.writing(self.path) as connection:
            account = names.find(file.contents(connection).accounts, dataset, str(self.path))
            if exact <= account.cap:
                raise ArgumentError(
                    f"cap must be above the present one of {account.dataset!r}, {fraction_text(account.cap)}, got "
                    f"{fraction_text(exact)}. A cap is only raised: what was allowed may be spent."
                )
            raised = Raise(new_id(), account.dataset, account.cap, exact, now(), user, reason.strip())
            file.put_account(connection, replace(account, cap=exact))
            file.put_raise(connection, raised)
        return raised

    def merge(self, other: "Ledger | str | Path") -> Merged:
        """Add what another book holds: a union by ids, and for each account the smaller cap; see merging.py."""
        other = other if isinstance(other, Ledger) else Ledger(other)
        theirs = other._with_ids() if not self._is_same(other) else None
        with file.writing(self.path) as connection:
            mine = file.contents(connection)
            both = mine if theirs is None else union(mine, theirs)
            for account in both.accounts:
                file.put_account(connection, account)
            for entry in both.entries:
                file.put_entry(connection, entry)
            for raised in both.raises:
                file.put_raise(connection, raised)
        states = {entry.id: entry.state for entry in mine.entries}
        return Merged(
            accounts=len(both.accounts) - len(mine.accounts),
            entries=len(both.entries) - len(mine.entries),
            raises=len(both.raises) - len(mine.raises),
            settled=sum(states.get(entry.id, entry.state) != entry.state for entry in both.entries),
            over=tuple(a.dataset for a in both.accounts if _is_over(a, both.of(a.dataset)[0])),
        )

    def migrate(self) -> None:
        """Bring a book of the first format to the present one, after a copy; whatever books something does so too."""
        with file.writing(self.path):
            pass

    def _is_same(self, other: "Ledger") -> bool:
        return self.path.exists() and other.path.exists() and self.path.samefile(other.path)

    def _with_ids(self) -> Contents:
        with file.reading(self.path) as connection:
            if not file.has_ids(connection):
                raise ArgumentError(
                    f"{self.path} is of the first format, whose entries have no ids: merged twice, they would count "
                    f"twice. Migrate it once with `privmeasure ledger migrate {self.path}`, and only then copy it."
                )
            return file.contents(connection)

    # --------------------------------------------------------------------------------------------------- settling

    def _settle(self, entry: Entry, state: Literal["spent", "freed"]) -> None:
        def settled(book: Contents, there: Entry) -> Entry:
            if there.state != "pending" and (there.state, state) != ("freed", "spent"):  # who spent knows better
                raise ArgumentError(f"Entry {there.number} of {self.path} is not pending: it was settled already.")
            return replace(there, state=state)

        self._change(entry, settled)

    def _record(self, entry: Entry, path: Path) -> Entry:
        return self._change(entry, _release_file(path).recorded)

    def _change(self, entry: Entry, change: Callable[[Contents, Entry], Entry]) -> Entry:
        """Change an entry as it is now in the file, under the lock."""
        with file.writing(self.path) as connection:
            book = file.contents(connection)
            there = next((e for e in book.entries if e.id == entry.id), None)
            if there is None:
                raise ArgumentError(f"Entry {entry.number} is not in {self.path} any more: was the file replaced?")
            changed = change(book, there)
            file.put_entry(connection, changed)
            return changed

    # ---------------------------------------------------------------------------------------------------- reading

    def contents(self) -> Contents:
        """Return all that the book holds, as it is at one moment."""
        with file.reading(self.path) as connection:
            return file.contents(connection)

    def accounts(self) -> list[Account]:
        """Return all accounts, in the order in which they were opened."""
        return list(self.contents().accounts)

    def collisions(self) -> list[list[str]]:
        """Return the names that mean the same data set but have accounts of their own; only older books have them."""
        return names.collisions(self.accounts())

    def account(self, dataset: str) -> Account:
        """Return the account of a data set."""
        return names.find(self.accounts(), dataset, str(self.path))

    def history(self, dataset: str) -> list[Entry]:
        """Return what was booked on a data set, in order."""
        book = self.contents()
        return book.of(names.find(book.accounts, dataset, str(self.path)).dataset)[0]

    def raises(self, dataset: str) -> list[Raise]:
        """Return how the cap of a data set was raised, in order."""
        book = self.contents()
        return book.of(names.find(book.accounts, dataset, str(self.path)).dataset)[1]

    def spent(self, dataset: str) -> Fraction:
        """Return the epsilon of all releases together that count: see `total`."""
        book = self.contents()
        account = names.find(book.accounts, dataset, str(self.path))
        return total(book.of(account.dataset)[0], account.delta)

    def spent_delta(self, dataset: str) -> Fraction:
        """Return the sum of the deltas that count."""
        return total_delta(self.history(dataset))

    def remaining(self, dataset: str) -> Fraction:
        """Return what is left below the cap; below 0 where books that were merged passed it together."""
        book = self.contents()
        account = names.find(book.accounts, dataset, str(self.path))
        return account.cap - total(book.of(account.dataset)[0], account.delta)


# ---------------------------------------------------------------------------------------------------- the checks


@dataclass(frozen=True, slots=True)
class _ReleaseFile:
    """What a ledger asks of a release file."""

    path: Path
    digest: str
    origin: Origin
    privacy: Privacy

    def recorded(self, book: Contents, entry: Entry) -> Entry:
        """Return the entry with the digest of this file, if the file holds its release and promises what was booked."""
        if entry.release not in ("", self.origin.id):
            raise ArgumentError(
                f"{self.path} holds another release than the one of entry {entry.number}. Check the path."
            )
        account = next(account for account in book.accounts if account.dataset == entry.dataset)
        if self.privacy != Privacy(
            entry.epsilon, account.neighbours, entry.rows_per_person, entry.person or None, entry.delta
        ):
            raise ArgumentError(
                f"Entry {entry.number} was booked with epsilon {_terms(entry.epsilon, entry.delta)}, "
                f"'{account.neighbours}' and {_owner(entry.rows_per_person, entry.person)}, but {self.path} promises "
                f"{_terms(self.privacy.epsilon, self.privacy.delta)}, '{self.privacy.neighbours}' and "
                f"{_owner(self.privacy.rows_per_person, self.privacy.person or '')}: what is booked must be what is "
                "spent. Nothing was changed."
            )
        return replace(entry, release=self.origin.id, files=tuple(sorted({*entry.files, self.digest})))


def _release_file(path: Path) -> _ReleaseFile:
    """Read what a release file says of itself; its cells are not looked at."""
    from privmeasure.releases import files

    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist. Check the path of the release.")
    try:
        header, _ = files.read_release(path)
        origin, privacy = Origin.from_header(header), Privacy.from_json(header["plan"]["privacy"])
    except (LookupError, TypeError, AttributeError, ArgumentError):
        raise ReleaseFileError(f"{path} has a header that cannot be read. Get the file again.") from None
    if origin is None:
        raise ReleaseFileError(f"{path} was written by a version that gave releases no id: no entry can be its own.")
    if header.get("private") is not True:
        raise ArgumentError(f"{path} is NOT PRIVATE: its noise came from a seed, and no epsilon stands for it.")
    return _ReleaseFile(path, hashlib.sha256(path.read_bytes()).hexdigest(), origin, privacy)


def _user(user: str | None) -> str:
    if user is None:
        return login_name()
    names.check_text("user", user, LONGEST_NAME)
    return user.strip()


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
    if value.denominator > LARGEST_TERM:
        raise ArgumentError(f"{name} must have a denominator of at most 30 digits. Write it as a short decimal or p/q.")


def _terms(epsilon: Fraction, delta: Fraction) -> str:
    return fraction_text(epsilon) + (f" and delta {fraction_text(delta)}" if delta else "")


def _is_over(account: Account, entries: list[Entry]) -> bool:
    return total(entries, account.delta) > account.cap or total_delta(entries) > account.delta


def _check_caps(account: Account, entries: list[Entry], asked: Entry) -> None:
    """Refuse a release that would pass the cap of epsilon or that of delta."""
    if asked.delta and not account.delta:
        raise BudgetError(
            f"The account of {account.dataset!r} was opened without a delta, so that all its releases are pure, and "
            f"this one has delta {fraction_text(asked.delta)}. Leave --delta out. Whether a delta may be spent on data "
            "is decided once, with `privmeasure ledger open --delta`. The data were not opened."
        )
    deltas = total_delta(entries)
    if asked.delta and deltas + asked.delta > account.delta:
        raise BudgetError(
            f"A release at delta {fraction_text(asked.delta)} would pass what {account.dataset!r} may spend of it: "
            f"{fraction_text(deltas)} of {fraction_text(account.delta)} is spent. Ask for a smaller delta, or none. "
            "The data were not opened."
        )
    spent, then = total(entries, account.delta), total([*entries, asked], account.delta)
    if then > account.cap:
        raise BudgetError(_refusal(account, spent, asked.epsilon))
    written = (then, total([*entries, asked]), deltas + asked.delta)
    if max(value.denominator for value in written) > LARGEST_ACCOUNT:
        raise ArgumentError(
            "epsilon or delta would make the exact sum of the account too long to write. Use short decimals: 0.1, 1e-6."
        )


def _owner(most: int, person: str) -> str:
    return f"up to {most} rows per person" + (f" by {person!r}" if person else "")


def _check_promise(account: Account, entries: list[Entry], privacy: Privacy) -> None:
    """Refuse a promise that does not add up with the others.

    A release that keeps at most k rows of each person protects people with any number of rows: its k may be smaller
    than what the account says people have. But all must mean the same by a person.
    """
    if privacy.neighbours != account.neighbours:
        raise BudgetError(
            f"The account of {account.dataset!r} adds up promises with neighbours '{account.neighbours}', and this "
            f"release promises '{privacy.neighbours}': the two do not add up. Use --neighbours {account.neighbours}."
        )
    if privacy.person is None and privacy.rows_per_person < account.rows_per_person:
        raise BudgetError(
            f"The account of {account.dataset!r} protects people with up to {account.rows_per_person} rows, and this "
            f"release only those with up to {privacy.rows_per_person}. Use --rows-per-person {account.rows_per_person}."
        )
    others = sorted({entry.person for entry in entries if entry.counts} - {"", privacy.person})
    if privacy.person is not None and others:
        raise BudgetError(
            f"The account of {account.dataset!r} adds up promises to persons by {others[0]!r}, and this release is "
            f"about persons by {privacy.person!r}: the two do not add up. Name the same column in the schema."
        )


def _refusal(account: Account, spent: Fraction, asked: Fraction) -> str:
    left = account.cap - spent
    advice = f"Ask for at most {fraction_text(left)}" if left > 0 else "Nothing is left: use the releases that exist"
    return (
        f"A release at epsilon {fraction_text(asked)} would pass the cap of {account.dataset!r}: "
        f"{fraction_text(spent)} of {fraction_text(account.cap)} is spent. {advice}. Sampling from an earlier release "
        "is free. The data were not opened."
    )

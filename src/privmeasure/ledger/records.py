"""What is in the book: accounts, entries and raises, as values."""

import getpass
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Literal

from privmeasure.accounting import largest_rho, smallest_epsilon
from privmeasure.privacy import Neighbours

State = Literal["pending", "spent", "freed"]
LONGEST_NAME, LONGEST_NOTE = 100, 500


@dataclass(frozen=True, slots=True)
class Account:
    """A data set with its cap, and what its epsilons promise; `delta` caps the sum of deltas, 0 forbids them."""

    dataset: str
    cap: Fraction
    neighbours: Neighbours
    rows_per_person: int
    day: str
    delta: Fraction = Fraction(0)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; fractions as "p/q"."""
        return asdict(self) | {"cap": str(self.cap), "delta": str(self.delta)}


@dataclass(frozen=True, slots=True)
class Entry:
    """One release: reserved ("pending", counts as spent), "spent", or "freed" because nothing was drawn.

    `number` is its place in this file, `id` is random and the same in every book. `release` is the id of the release,
    and `files` are the SHA-256 digests of the files that hold it; either may be unknown. Entries of the first format
    have no id until their book is migrated, no user, and a day as their time. `person` is the column that says whose
    row it is, of which at most `rows_per_person` were kept; empty where `rows_per_person` was trusted.
    """

    number: int
    id: str
    dataset: str
    epsilon: Fraction
    rows_per_person: int
    schema: str
    note: str
    time: str
    user: str
    release: str
    files: tuple[str, ...]
    state: State
    person: str = ""
    delta: Fraction = Fraction(0)

    @property
    def counts(self) -> bool:
        """Whether it counts against the cap."""
        return self.state != "freed"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; fractions as "p/q"."""
        return asdict(self) | {"epsilon": str(self.epsilon), "delta": str(self.delta), "files": list(self.files)}

    @property
    def rho(self) -> Fraction | None:
        """What it costs in zCDP: epsilon^2 / 2 of a pure release, the rho that a release with a delta has spent.

        None of one that was made elsewhere, whatever made it: an epsilon and a delta alone say nothing of rho.
        """
        if not self.delta:
            return self.epsilon**2 / 2
        return largest_rho(self.epsilon, self.delta) if self.release else None


@dataclass(frozen=True, slots=True)
class Raise:
    """A cap that was raised: from what to what, by whom, when and why."""

    id: str
    dataset: str
    before: Fraction
    cap: Fraction
    time: str
    user: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; fractions as "p/q"."""
        return asdict(self) | {"before": str(self.before), "cap": str(self.cap)}


@dataclass(frozen=True, slots=True)
class Contents:
    """All that a book holds."""

    accounts: tuple[Account, ...]
    entries: tuple[Entry, ...]
    raises: tuple[Raise, ...]

    def of(self, dataset: str) -> tuple[list[Entry], list[Raise]]:
        """Return the entries and the raises of an account, by the name that it has in the book."""
        return [e for e in self.entries if e.dataset == dataset], [r for r in self.raises if r.dataset == dataset]

    def by_account(self) -> "list[tuple[Account, list[Entry], list[Raise]]]":
        """Return each account with its entries and raises, in one pass over all of them."""
        found: dict[str, tuple[Account, list[Entry], list[Raise]]] = {a.dataset: (a, [], []) for a in self.accounts}
        for entry in self.entries:
            found[entry.dataset][1].append(entry)
        for raised in self.raises:
            found[raised.dataset][2].append(raised)
        return list(found.values())


def total(entries: Iterable[Entry], delta: Fraction = Fraction(0)) -> Fraction:
    """Return the epsilon of all releases together that count, at the delta of their account.

    By sequential composition the sum of their epsilons; where some have a delta, what the sum of their rho costs, if
    that is less. Those whose rho is not known add their epsilons to it, and take their deltas off what it has. Either
    bound holds of releases that were planned together. Of releases that were chosen after seeing earlier ones both hold
    at once with twice the delta: docs/proofs/gaussian.md.

    Examples:
        >>> pure = Entry(1, "", "d", Fraction(1, 2), 1, "", "", "", "", "", (), "spent")
        >>> total([pure, pure])
        Fraction(1, 1)
    """
    counted = [entry for entry in entries if entry.counts]
    plain = sum((entry.epsilon for entry in counted), Fraction(0))
    known = [rho for entry in counted if (rho := entry.rho) is not None]
    others = [entry for entry in counted if entry.rho is None]
    left = delta - total_delta(others)
    if left <= 0 or total_delta(counted) == 0 or len(known) < 2:
        return plain
    return min(plain, sum((e.epsilon for e in others), smallest_epsilon(sum(known, Fraction(0)), left)))


def total_delta(entries: Iterable[Entry]) -> Fraction:
    """Return the sum of the deltas that count."""
    return sum((entry.delta for entry in entries if entry.counts), Fraction(0))


def now() -> str:
    """Return the time: UTC, in whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def login_name() -> str:
    """Return the name under which this process runs, or nothing where it has none that can be written down."""
    try:
        name = getpass.getuser()
    except Exception:  # no such user, no such module, no environment: a name is a courtesy
        return ""
    return name if name.isprintable() and len(name) <= LONGEST_NAME else ""


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
    return str(value) if value.denominator < 10**9 and abs(value.numerator) < 10**9 else f"about {float(value):.6g}"

"""What the page asks of the command line: a protocol, and the values that go over it. `cli/serving.py` is behind it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from privmeasure.ledger import Account
from privmeasure.plans.promise import Promise
from privmeasure.tables.advice import ColumnResolution
from privmeasure.tables.columns.base import Types
from privmeasure.tables.schema import Schema
from privmeasure.tables.texts import TextForm
from privmeasure.threads import Progress


@dataclass(frozen=True)
class Terms:
    """What is promised, as it was typed, and how many rows to plan for."""

    epsilon: str
    neighbours: str
    rows: int
    rows_per_person: int = 1


@dataclass(frozen=True)
class Planned:
    """A plan, and what there is to say of it. Public."""

    schema: Schema
    plan: Promise
    choice: str
    resolved: Sequence[ColumnResolution]
    warnings: Sequence[str]


@dataclass(frozen=True, repr=False)
class ConfidentialCounts:
    """CONFIDENTIAL. What a schema would change in a table, in words, for the owner of the table."""

    stamp: str
    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: Sequence[str]


@dataclass(frozen=True)
class SpendOrder:
    """All that a release needs, fixed when it is confirmed: what is shown is what is spent."""

    table: Path
    name: str
    """What to call the table."""
    form: TextForm
    schema: Path
    terms: Terms
    ledger: Path
    dataset: str
    note: str
    release: Path
    """Where the release goes."""
    release_stays: bool
    """Whether that place is still there after the visit."""


@dataclass(frozen=True)
class Outcome:
    """What there is to say after epsilon was spent. Public."""

    cost: str
    plan: str
    choice: str
    rows: int
    """How many rows the release stands for."""
    warnings: Sequence[str]


class Commands(Protocol):
    """The commands, as a page needs them. What is private stays behind them, but for `count`, which is stamped."""

    def columns(self, table: Path, form: TextForm) -> tuple[tuple[str, ...], Types | None]:
        """Return the names and the storage types of a table's columns; no row is read."""
        ...

    def check(self, table: Path, schema: Path, form: TextForm) -> list[str]:
        """Compare a schema with the header of a table, and return what there is to warn of; no row is read."""
        ...

    def count(self, table: Path, schema: Path, form: TextForm) -> ConfidentialCounts:
        """Count what a schema would change in a table. CONFIDENTIAL."""
        ...

    def plan(self, schema: Path, terms: Terms) -> Planned:
        """Return a plan. No data are opened."""
        ...

    def compare(self, schema: Path, terms: Terms) -> list[Promise]:
        """Return the plans at other epsilons. No data are opened."""
        ...

    def open_account(self, ledger: Path, dataset: str, cap: str, terms: Terms) -> Account:
        """Open the account of a data set."""
        ...

    def check_order(self, order: SpendOrder) -> None:
        """Refuse what could not be carried out, before it is confirmed: the promise, the header, the place."""
        ...

    def spend(self, order: SpendOrder) -> Outcome:
        """Spend epsilon, once, booked in the ledger, and save the release."""
        ...

    def keep(self, release: Path) -> Path:
        """Copy a release to the data folder of the user, for its owner alone, and return where it is."""
        ...

    def report(self, release: Path, page: Path) -> list[str]:
        """Write the page of a release, and return what there is to warn of."""
        ...

    def sample(self, release: Path, out: Path, number: int | None, where: str | None, form: TextForm) -> int:
        """Write synthetic rows of a release to a file, and return how many."""
        ...

    def explain(self, error: BaseException) -> str:
        """Return the paragraph of an error: no value of the data is in it."""
        ...

    def watched(self, advance: Progress) -> AbstractContextManager[None]:
        """Let the page follow what is done inside."""
        ...

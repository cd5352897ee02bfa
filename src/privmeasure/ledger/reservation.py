"""An entry until it is settled: who may say that it was spent, and who that it was not."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from privmeasure.errors import ArgumentError, LedgerFileError, SpentError
from privmeasure.ledger.records import Entry
from privmeasure.privacy import Privacy


@runtime_checkable
class Spender(Protocol):
    """Who makes a release, and alone knows whether noise was drawn for it: a `Synthesizer`."""

    @property
    def release_id(self) -> str:
        """The id that the release will have."""
        ...

    @property
    def schema(self) -> Any:
        """The public schema, or None."""
        ...

    def hold(self) -> Privacy:
        """Fix what will be spent, and return it; refused if a release has begun or is booked already."""
        ...

    def give_back(self) -> bool:
        """Say whether no noise was drawn, and make sure that none will be without a new entry."""
        ...


class Reservation:
    """A booked release. As a context: left without an error it is spent, even if nothing was fitted.

    An error, Ctrl-C included, frees it only if the synthesizer that it was made for has drawn no noise. One that was
    made for a bare promise stays: nobody can know. An error that leaves without noise ends with a note on the entry.
    """

    def __init__(
        self,
        entry: Entry,
        spender: Spender | None,
        *,
        settle: Callable[[Entry, Literal["spent", "freed"]], None],
        record: Callable[[Entry, Path], Entry],
    ) -> None:
        """Hold an entry, and what the ledger does with it."""
        self.entry = entry
        self._spender, self._settle_entry, self._record_file = spender, settle, record
        self._open, self._entered = True, 0

    @property
    def number(self) -> int:
        """The number of the entry in its book."""
        return self.entry.number

    def confirm(self) -> None:
        """Say that epsilon was spent."""
        self._settle("spent")

    def cancel(self) -> None:
        """Give it back: only for a synthesizer that drew no noise, and that then draws none without a new entry."""
        self._check_open()
        if self._spender is None:
            raise ArgumentError(
                f"Entry {self.number} was made for a promise, not for a synthesizer, so nobody can know that no noise "
                "was drawn: it counts. Reserve with the synthesizer. If you can vouch for it, raise the cap with a "
                "reason."
            )
        if not self._spender.give_back():
            raise SpentError(f"Noise was drawn for entry {self.number}: it counts as spent. Confirm it.")
        self._settle("freed")

    def record(self, path: str | Path) -> Entry:
        """Note the SHA-256 of the file that holds the release, after saving; the file must hold this very release."""
        self.entry = self._record_file(self.entry, Path(path))
        return self.entry

    def _check_open(self) -> None:
        if not self._open:
            raise ArgumentError(f"Entry {self.number} is not pending: it was settled already.")

    def _settle(self, state: Literal["spent", "freed"]) -> None:
        self._check_open()
        self._settle_entry(self.entry, state)
        self._open, self.entry = False, replace(self.entry, state=state)

    def __enter__(self) -> "Reservation":
        """Begin the release, once."""
        if self._entered or not self._open:
            raise SpentError(f"Entry {self.number} was used for a release already: reserve another.")
        self._entered = os.getpid()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Settle what is open; a fork that leaves the block of its parent leaves the entry to the parent."""
        if not self._open or os.getpid() != self._entered:
            return
        if kind is None:
            self.confirm()
            return
        unspent = self._spender is not None and self._spender.give_back()
        with suppress(LedgerFileError, ArgumentError):  # what happened first is what matters; a pending entry counts
            self._settle("freed" if unspent else "spent")
        if unspent and error is not None:
            freed = f"Entry {self.number} was freed."
            stays = f"Entry {self.number} could not be freed: it stays pending, and counts."
            error.add_note(freed if self.entry.state == "freed" else stays)

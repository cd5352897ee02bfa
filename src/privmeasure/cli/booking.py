"""Booking a release in a ledger, around the fit that spends it, and what a run says of its cost."""

from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from privmeasure.cli import options
from privmeasure.cli.keeping import command_to_move
from privmeasure.cli.terminal import progress
from privmeasure.errors import ArgumentError, LedgerFileError, PrivmeasureError

if TYPE_CHECKING:
    from privmeasure.ledger import Reservation
    from privmeasure.synthesizer import Synthesizer
    from privmeasure.tables.texts import TextForm


class Booking(NamedTuple):
    """The book that is to count a release, if any, and what it is told."""

    ledger: options.LedgerFile = None
    dataset: options.Dataset = None
    note: options.Note = ""
    user: options.User = None

    def reserve(self, synthesizer: "Synthesizer") -> "Reservation | None":
        """Make an entry for a release, before the data are opened; None without a book."""
        if (self.ledger is None) != (self.dataset is None):
            raise ArgumentError("--ledger and --dataset go together: the file, and the name of the data set in it.")
        if self.ledger is None or self.dataset is None:
            for name in ("note", "user"):
                if getattr(self, name):
                    raise ArgumentError(f"--{name} is for the ledger: give --ledger and --dataset as well.")
            return None
        from privmeasure.ledger import Ledger

        return Ledger(self.ledger).reserve(self.dataset, synthesizer, note=self.note, user=self.user)


@dataclass
class Cost:
    """What a run has cost, as far as it is known: what was spent, which ledger counts it, where the release is."""

    synthesizer: "Synthesizer"
    booking: Booking
    place: Path | None
    """Where the release goes; None if it is not kept."""
    overwrite: bool = False
    stays: bool = True
    """Whether that place is still there when the command has ended."""
    reservation: "Reservation | None" = None
    reserving: bool = False
    """Whether an entry is being made: after an interruption it is not known whether it was."""
    settled: bool = True
    """Whether the ledger took note that the fit was finished; if not, its entry is pending, and counts."""
    saved: Path | None = None
    """Where the release was written."""

    @property
    def finished(self) -> bool:
        """Whether there is a release."""
        return self.synthesizer.finished

    def reserve(self) -> "Reservation | None":
        """Make an entry in the ledger, if there is one, before the data are opened."""
        self.reserving = self.booking.ledger is not None
        try:
            self.reservation = self.booking.reserve(self.synthesizer)
        except Exception:  # a refusal: nothing was booked
            self.reserving = False
            raise
        self.reserving = False
        return self.reservation

    def unsettled(self) -> list[str]:
        """Warn of an entry that is still pending, when no release is kept that could settle it."""
        if self.settled:
            return []
        return [f"the entry in {self.booking.ledger} could not be settled: it stays pending, and counts."]

    def settle(self) -> None:
        """Settle what an error or an interruption has left pending, if the ledger can be written."""
        if self.reservation is None or self.reservation.entry.state != "pending":
            return
        with suppress(PrivmeasureError, OSError):
            self.reservation.confirm() if self.synthesizer.spent else self.reservation.cancel()

    def record(self) -> list[str]:
        """Note the SHA-256 of the release file in the ledger; a failure is a warning, as the release is written."""
        if self.reservation is None or self.saved is None:
            return []
        try:
            self.reservation.record(self.saved) if self.settled else self._close(self.saved)
        except (PrivmeasureError, OSError):
            ledger = self.booking.ledger
            return [
                f"{self.saved} was written and its epsilon counts, but its digest could not be noted. When {ledger} "
                f"can be written, run `privmeasure ledger close {ledger} {self.saved}`."
            ]
        return []

    def _close(self, release: Path) -> None:
        from privmeasure.ledger import Ledger

        if self.booking.ledger is not None:
            closed = Ledger(self.booking.ledger).close(release)
            if self.reservation is not None:
                self.reservation.entry = closed

    def words(self) -> str:
        """Say what was spent, in one line."""
        from privmeasure.ledger import fraction_text

        promise = self.synthesizer.privacy
        spent = f"epsilon = {fraction_text(promise.epsilon)}"
        spent += f", delta = {fraction_text(promise.delta)}" if promise.delta else ""
        if self.reservation is None:
            return f"{spent}, not recorded in a ledger: keep a record, or use --ledger next time"
        return (
            f"{spent}: entry {self.reservation.number} of {self.reservation.entry.dataset!r} in {self.booking.ledger}"
        )

    def sentence(self) -> str:
        """Say what is known of the cost of a run that has ended early, without a full stop."""
        reservation = self.reservation
        if not self.synthesizer.spent:
            if self.reserving:
                return f"nothing was spent, but an entry that was being made in {self.booking.ledger} may count"
            if reservation is None:
                return "nothing was spent"
            if reservation.entry.state == "freed":
                return f"nothing was spent, and entry {reservation.number} was freed"
            return f"nothing was spent, but entry {reservation.number} could not be freed, and counts"
        from privmeasure.ledger import fraction_text

        promise = self.synthesizer.privacy
        delta = f", delta {fraction_text(promise.delta)}" if promise.delta else ""
        counted = "it is not recorded in a ledger"
        if reservation is not None:
            settled = reservation.entry.state == "spent"
            counted = f"entry {reservation.number} {'counts it' if settled else 'could not be settled'}"
        return f"epsilon {fraction_text(promise.epsilon)}{delta} is spent; {self._release_words()}, and {counted}"

    def _release_words(self) -> str:
        if self.saved is None:
            lost = "the release is not kept" if self.place is None else "the release could not be saved anywhere"
            return lost if self.finished else "there is no release"
        saved = f"the release is saved at {self.saved}"
        if self.place is None or self.saved == self.place:
            return saved
        return f"{saved} (`{command_to_move(self.saved, self.place)}` moves it)"

    def to_json(self) -> dict[str, Any]:
        """Return the fields of a machine-readable outcome; "booked" is null if no ledger counts what was spent."""
        booked = None
        if self.reservation is not None:
            entry, ledger = self.reservation.entry, str(self.booking.ledger)
            booked = {"ledger": ledger, "dataset": entry.dataset, "number": entry.number, "id": entry.id}
        promise = self.synthesizer.privacy
        delta = {"spent_delta": str(promise.delta)} if promise.delta else {}
        return {"spent": str(promise.epsilon), **delta, "booked": booked}


def fit_booked(cost: Cost, data: Path | str, form: "TextForm", *, shown: bool, spark: Any = None) -> None:
    """Spend epsilon on a table: booked before it is opened, with a bar while it is read; freed if nothing was spent.

    A ledger that cannot be written after the fit is no reason to end with an error: the entry counts as it is. A
    ledger that is gone, or was replaced by another, is one.
    """
    ledger = cost.booking.ledger
    try:
        with cost.reserve() or nullcontext(), progress("reading", shown=shown) as advance:
            cost.synthesizer.fit(data, progress=advance, spark=spark, **asdict(form))
    except LedgerFileError:
        if not cost.finished or ledger is None or not ledger.is_file():  # gone: nothing counts what was spent
            raise
        cost.settled = False

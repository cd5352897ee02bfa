"""Booking a release in a ledger, around the fit that spends it, and what a run says of its cost."""

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from privmeasure.cli import options
from privmeasure.cli.terminal import progress
from privmeasure.errors import ArgumentError, LedgerFileError, PrivmeasureError

if TYPE_CHECKING:
    from privmeasure.ledger import Reservation
    from privmeasure.privacy import Privacy
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
    """What a run spent, and which book counts it, if any."""

    promise: "Privacy"
    ledger: Path | None = None
    reservation: "Reservation | None" = None
    settled: bool = True
    """Whether the book could be told that the fit was finished; if not, its entry is pending, and counts."""

    def unsettled(self) -> list[str]:
        """Warn of an entry that is still pending, where no release is kept that could settle it."""
        return (
            [] if self.settled else [f"the entry in {self.ledger} could not be settled: it stays pending, and counts."]
        )

    def record(self, release: Path) -> list[str]:
        """Note the digest of the file in the book; what goes wrong is told as a warning: the release is written."""
        if self.reservation is None:
            return []
        try:
            self.reservation.record(release) if self.settled else self._close(release)
        except (PrivmeasureError, OSError):
            return [
                f"{release} was written and its epsilon counts, but its digest could not be noted. When {self.ledger} "
                f"can be written, run `privmeasure ledger close {self.ledger} {release}`."
            ]
        return []

    def _close(self, release: Path) -> None:
        from privmeasure.ledger import Ledger

        if self.ledger is not None:
            Ledger(self.ledger).close(release)

    def words(self) -> str:
        """Say what was spent, in one line."""
        from privmeasure.ledger import fraction_text

        spent = f"epsilon = {fraction_text(self.promise.epsilon)}"
        spent += f", delta = {fraction_text(self.promise.delta)}" if self.promise.delta else ""
        if self.reservation is None:
            return f"{spent}, and no ledger counts it: note it yourself, or book the next one with --ledger"
        return f"{spent}: entry {self.reservation.number} of {self.reservation.entry.dataset!r} in {self.ledger}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields of a machine-readable outcome; "booked" is null if no book counts what was spent."""
        booked = None
        if self.reservation is not None:
            entry = self.reservation.entry
            booked = {"ledger": str(self.ledger), "dataset": entry.dataset, "number": entry.number, "id": entry.id}
        delta = {"spent_delta": str(self.promise.delta)} if self.promise.delta else {}
        return {"spent": str(self.promise.epsilon), **delta, "booked": booked}


def fit_booked(
    synthesizer: "Synthesizer", data: Path | str, booking: Booking, form: "TextForm", *, shown: bool, spark: Any = None
) -> Cost:
    """Spend epsilon on a table: booked before it is opened, with a bar while it is read; freed if nothing was spent.

    A book that cannot be written after the fit is no reason to lose what epsilon bought: the entry counts as it is.
    A book that is gone, or was replaced by another, is one.
    """
    ledger, reservation, finished = booking.ledger, booking.reserve(synthesizer), False
    try:
        with reservation or nullcontext(), progress("reading", shown=shown) as advance:
            synthesizer.fit(data, progress=advance, spark=spark, **asdict(form))
            finished = True
    except LedgerFileError:
        if not finished or ledger is None or not ledger.is_file():  # gone: nothing counts what was spent
            raise
        return Cost(synthesizer.privacy, ledger, reservation, settled=False)
    return Cost(synthesizer.privacy, ledger, reservation)

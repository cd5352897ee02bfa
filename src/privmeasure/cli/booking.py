"""Booking a release in a ledger, around the fit that spends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from privmeasure.cli.terminal import progress
from privmeasure.errors import ArgumentError

if TYPE_CHECKING:
    from privmeasure.synthesizer import Synthesizer


def fit_booked(
    synthesizer: "Synthesizer", data: Path, *, ledger: Path | None, dataset: str | None, note: str, shown: bool
) -> None:
    """Spend epsilon on a table: booked before it is opened, with a bar while it is read."""
    with booked(ledger, dataset, synthesizer, note=note), progress("reading", shown=shown) as advance:
        synthesizer.fit(data, progress=advance)


@contextmanager
def booked(ledger: Path | None, dataset: str | None, synthesizer: "Synthesizer", *, note: str) -> Iterator[None]:
    """Book a release in the ledger, if there is one, around the fit that spends it; free it if nothing was spent."""
    if (ledger is None) != (dataset is None):
        raise ArgumentError("--ledger and --dataset go together: the file, and the name of the data set in it.")
    if ledger is None or dataset is None or synthesizer.schema is None:
        if note:
            raise ArgumentError("--note is a line for the ledger: give --ledger and --dataset as well.")
        yield
        return
    from privmeasure.ledger import Ledger, schema_digest

    digest = schema_digest(synthesizer.schema.to_json())
    with Ledger(ledger).reserve(dataset, synthesizer.privacy, schema=digest, note=note) as reservation:
        try:
            yield
        except BaseException:
            if not synthesizer.spent:  # the synthesizer knows whether noise was drawn
                reservation.cancel()
            else:
                reservation.confirm()
            raise

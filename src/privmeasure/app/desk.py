"""One visit: the table, its schema, the promise, what was confirmed and what was released. All of it goes at the end.

Nothing here opens the table: the commands do. What was typed is public, as it is on a command line, but the files of
the folder, uploads above all, are private: nobody else may enter it, and it is deleted when the page stops.
"""

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from privmeasure.app.commands import Commands, ConfidentialCounts, Outcome, SpendOrder, Terms
from privmeasure.app.jobs import Job, Jobs
from privmeasure.errors import ArgumentError, SpentError
from privmeasure.tables.columns.base import Types
from privmeasure.tables.suffixes import ENDINGS, kind_of, suffixes
from privmeasure.tables.template import open_draft
from privmeasure.tables.texts import TextForm

MOST_CONFIRMATIONS = 100


@dataclass(frozen=True)
class OpenTable:
    """The sensitive table: where it lies, what to call it, how its text is written, and its header, which is public."""

    place: Path
    name: str
    form: TextForm
    names: tuple[str, ...]
    types: Types | None
    uploaded: bool


@dataclass
class Confirmation:
    """What a person is asked to confirm. Its key spends once: whoever sends it again is shown what came of it."""

    key: str
    order: SpendOrder
    job: Job | None = None


@dataclass
class MadeRelease:
    """A release of this visit, its page and the tables that were drawn from it."""

    number: int
    path: Path
    kept: bool
    """Whether it lies where a person said, and stays there."""
    outcome: Outcome
    drawing: Job | None = None
    """The work on its report."""
    report: Path | None = None
    remarks: list[str] = field(default_factory=list)
    tables: list[tuple[str, Path, int]] = field(default_factory=list)
    taken: bool = False
    """Whether its file was downloaded."""


class Desk:
    """The state of a visit; every change is made under one lock."""

    def __init__(self, commands: Commands, folder: Path) -> None:
        """Begin with an empty desk, over a folder that nobody else may enter."""
        self.commands, self.folder = commands, folder
        self.jobs = Jobs(commands.watched, self.explain)
        self.lock = threading.RLock()
        self.table: OpenTable | None = None
        self.opened = 0
        """How many tables were opened: a form of an older one is refused."""
        self.text = ""
        """The schema, as the text of its file."""
        self.notes: dict[str, str] = {}
        self.ready = False
        """Whether the schema is complete and fits the header."""
        self.warnings: list[str] = []
        self.counts: ConfidentialCounts | None = None
        self.terms: Terms | None = None
        self.ledger: tuple[Path, str] | None = None
        self.made: list[MadeRelease] = []
        self._confirmations: dict[str, Confirmation] = {}
        self._files, self._closed = 0, False
        self._schema: tuple[str, Path] | None = None

    # ------------------------------------------------------------------------------------------------------ the table

    def new_file(self, ending: str, *, stem: str = "table") -> Path:
        """Return a place for a file of this visit, in a folder of its own."""
        with self.lock:
            if self._closed:
                raise ArgumentError("The page is being stopped.")
            self._files += 1
            folder = self.folder / f"{self._files}"
            folder.mkdir(mode=0o700)
        return folder / f"{stem}{ending}"

    def close(self) -> None:
        """Take no more files: the folder is about to be deleted."""
        with self.lock:
            self._closed = True

    def open_table(self, place: Path, form: TextForm, *, name: str, uploaded: bool) -> None:
        """Look at the header of a table, and begin a schema by its names and types."""
        names, types = self.commands.columns(place, form)
        draft = open_draft(names, types, guess=True)
        with self.lock:
            old = self.table
            self.table = OpenTable(place, name, form, names, types, uploaded)
            self.text, self.notes, self.ready = draft.to_toml(), dict(draft.notes), False
            self.warnings, self.counts, self.terms = [], None, None
            self.opened += 1
            if old is not None and old.uploaded and not self._in_use(old):
                old.place.unlink(missing_ok=True)

    def _in_use(self, table: OpenTable) -> bool:
        return any(order.table == table.place for order in self.spending)

    def check_opened(self, number: str) -> None:
        """Refuse the form of a table in the place of which another was opened meanwhile, in another tab."""
        if number != str(self.opened):
            raise ArgumentError("Another table was opened meanwhile: nothing was saved. Load the page again.")

    def the_table(self) -> OpenTable:
        """Return the table, or say that there is none yet."""
        if self.table is None:
            raise ArgumentError("Choose a table first.")
        return self.table

    # ----------------------------------------------------------------------------------------------------- the schema

    def set_schema(self, text: str, notes: dict[str, str] | None = None) -> None:
        """Take the text of a schema, and what there is to say of its columns; `check` finds whether it fits."""
        with self.lock:
            self.notes = self.notes if notes is None else notes
            if text != self.text:
                self.text, self.ready, self.counts, self.warnings = text, False, None, []

    def check(self) -> None:
        """Check the schema by itself and against the header of the table; a SchemaError says what is wrong."""
        with self.lock:
            table, text, schema = self.the_table(), self.text, self.schema_file()
        warnings = self.commands.check(table.place, schema, table.form)
        with self.lock:
            if table is self.table and text == self.text:  # else another tab was faster, and has its own answer
                self.warnings, self.ready = warnings, True

    def schema_file(self) -> Path:
        """Return the schema as a file, for the commands."""
        with self.lock:
            if self._schema is None or self._schema[0] != self.text:  # a file is never changed: an order may name it
                place = self.new_file(".toml", stem="schema")
                place.write_text(self.text, encoding="utf-8")
                self._schema = self.text, place
            return self._schema[1]

    def start_count(self, back: str, leads_to: str) -> Job:
        """Count what the schema would change, for the owner of the table. CONFIDENTIAL."""
        with self.lock:
            table, text, schema = self.the_table(), self.text, self.schema_file()

        def work() -> str:
            counts = self.commands.count(table.place, schema, table.form)
            with self.lock:
                if table is not self.table or text != self.text:
                    raise ArgumentError("The table or its schema was changed meanwhile: count again.")
                self.counts = counts
            return leads_to

        return self._start("Counting what the schema would change", work, back=back)

    def _start(self, title: str, work: Callable[[], str], *, back: str) -> Job:
        if self.jobs.full:
            raise ArgumentError("Too much is waiting already. Let it finish first.")
        return self.jobs.add(title, work, back=back)

    # ---------------------------------------------------------------------------------------------------- the release

    def confirm(self, order: SpendOrder) -> Confirmation:
        """Fix what is to be spent, and return it with a new key. Nothing is spent yet."""
        self.commands.check_order(order)
        made = Confirmation(secrets.token_urlsafe(16), order)
        with self.lock:
            idle = [key for key, one in self._confirmations.items() if one.job is None]
            for key in idle[: max(0, len(idle) - MOST_CONFIRMATIONS)]:
                del self._confirmations[key]
            self._confirmations[made.key] = made
        return made

    def confirmation(self, key: str) -> Confirmation | None:
        """Return what a key stands for."""
        return self._confirmations.get(key)

    def spend(self, key: str, *, back: str, leads_to: str) -> Job:
        """Spend what a key stands for, once: whoever comes later, or at the same time, gets the same work.

        Guarantee:  privacy  at most one release for each key, and no two at a time: decided under one lock
        """
        with self.lock:
            found = self._confirmations.get(key)
            if found is None:
                raise ArgumentError("This confirmation is not known any more, and nothing was spent. Confirm it again.")
            if found.job is not None:
                return found.job
            if self.spending:
                raise SpentError("Another release is being made. Wait for it; nothing was spent for this one.")
            if found.order.table.is_relative_to(self.folder) and not found.order.table.exists():
                raise ArgumentError(
                    f"{found.order.name} was deleted when another table was opened instead, and nothing was spent. "
                    "Choose it again, and confirm it again."
                )
            found.job = self._start("Making the release", lambda: self._spend(found.order, leads_to), back=back)
            return found.job

    @property
    def spending(self) -> list[SpendOrder]:
        """What is being spent, or about to be: one at the most."""
        found = list(self._confirmations.values())
        return [one.order for one in found if one.job is not None and not one.job.done]

    def _spend(self, order: SpendOrder, leads_to: str) -> str:
        outcome = self.commands.spend(order)
        with self.lock:
            kept = not order.release.is_relative_to(self.folder)
            made = MadeRelease(len(self.made) + 1, order.release, kept, outcome)
            self.made.append(made)
        back = f"{leads_to}{made.number}"
        made.drawing = self.jobs.add("Drawing the report", lambda: self._draw(made, back), back=back, gives_way=True)
        return back

    def _draw(self, made: MadeRelease, leads_to: str) -> str:
        place = self.new_file(".html", stem="report")
        remarks = self.commands.report(made.path, place)
        with self.lock:
            made.report = place if place.exists() else None
            made.remarks += remarks
        return leads_to

    def start_sample(
        self, made: MadeRelease, ending: str, number: int | None, where: str | None, *, back: str, leads_to: str
    ) -> Job:
        """Draw a table from a release: free, as often as wanted."""
        place = self.new_file(ending, stem="synthetic")
        form = self.table.form if self.table is not None else TextForm()

        def work() -> str:
            rows = self.commands.sample(made.path, place, number, where, replace(form, newlines_in_cells=False))
            with self.lock:
                made.tables.append((place.name, place, rows))
            return leads_to

        return self._start("Drawing synthetic rows", work, back=back)

    # ------------------------------------------------------------------------------------------------------ the words

    def explain(self, error: BaseException) -> str:
        """Return what to say of an error; an upload goes by the name that it came with."""
        told = self.commands.explain(error)
        if self.table is not None and self.table.uploaded:
            told = told.replace(str(self.table.place), self.table.name)
        return told.replace(f"{self.folder}/", "")

    @property
    def lost(self) -> list[MadeRelease]:
        """The releases that lie in the folder of this visit, and were not downloaded."""
        return [made for made in self.made if not made.kept and not made.taken]


def ending_of(name: str) -> str:
    """Return the ending of a table's name, for a place of our own, or refuse one that stands for no table.

    Examples:
        >>> ending_of("../People of 2024.CSV.gz")
        '.csv.gz'
    """
    if "." not in name:
        raise ArgumentError(f"The file has no ending that says what it is. It must be one of {ENDINGS}.")
    kind_of(name)
    return suffixes(Path(name))[0]

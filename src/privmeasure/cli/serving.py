"""What the commands do, for the page of `privmeasure app`: the same routines, in the same order. PRIVATE behind it."""

import re
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privmeasure.cli import failures, options, terminal
from privmeasure.cli.booking import Booking, Cost, fit_booked
from privmeasure.cli.missing import schema_remarks, undecided
from privmeasure.cli.opening import check_header, open_undeclared, opened
from privmeasure.cli.outcome import save, stated
from privmeasure.cli.plan import SHOWN_EPSILONS, make_plan
from privmeasure.cli.preparing import check_out, check_table_out, open_release, open_schema, write_rows
from privmeasure.cli.promise import Asked, Chosen, promise
from privmeasure.cli.reporting import page_along_the_way
from privmeasure.cli.schema import CHANGED, changed_cells, changed_rows, changes_of
from privmeasure.errors import ArgumentError

if TYPE_CHECKING:
    from privmeasure.app.commands import ConfidentialCounts, Outcome, Planned, SpendOrder, Terms
    from privmeasure.ledger import Account
    from privmeasure.tables.columns.base import Types
    from privmeasure.tables.texts import TextForm
    from privmeasure.threads import Progress


class LocalCommands:
    """The `Commands` of the page."""

    def columns(self, table: Path, form: "TextForm") -> "tuple[tuple[str, ...], Types | None]":
        """Return the names and the storage types of a table's columns; no row is read."""
        with opened(table) as place:
            found = open_undeclared(place, form)
        return tuple(found.names), found.types

    def check(self, table: Path, schema: Path, form: "TextForm") -> list[str]:
        """Compare a schema with the header of a table, and return what there is to warn of; no row is read."""
        declared = open_schema(schema)
        check_header(table, declared, form)
        form.check_letters(declared)
        return schema_remarks(schema, declared)

    def count(self, table: Path, schema: Path, form: "TextForm") -> "ConfidentialCounts":
        """Count what a schema would change in a table. CONFIDENTIAL."""
        from privmeasure.app.commands import ConfidentialCounts
        from privmeasure.sources.changes import COUNTS_STAMP

        declared = open_schema(schema)
        changes = changes_of(table, declared, form, shown=False)
        title = f"What would be changed, of {changes.rows:,} rows"
        return ConfidentialCounts(COUNTS_STAMP, title, CHANGED, changed_cells(declared, changes), changed_rows(changes))

    def plan(self, schema: Path, terms: "Terms") -> "Planned":
        """Return a plan. No data are opened."""
        from privmeasure.app.commands import Planned

        declared, synthesizer, plan, resolved, warnings = make_plan(*_typed(schema, terms), terms.rows)
        return Planned(declared, plan, synthesizer.choice, resolved, warnings)

    def compare(self, schema: Path, terms: "Terms") -> list[Any]:
        """Return the plans at other epsilons. No data are opened."""
        _, synthesizer = promise(*_typed(schema, terms))
        return synthesizer.guarantees(terms.rows, SHOWN_EPSILONS)

    def open_account(self, ledger: Path, dataset: str, cap: str, terms: "Terms") -> "Account":
        """Open the account of a data set."""
        from privmeasure.ledger import Ledger

        return Ledger(ledger).open_account(
            dataset,
            cap=options.read_epsilon(cap, "cap"),
            neighbours=options.read_neighbours(terms.neighbours),
            rows_per_person=terms.rows_per_person,
        )

    def check_order(self, order: "SpendOrder") -> None:
        """Refuse what could not be carried out, before it is confirmed: the promise, the header, the place."""
        from privmeasure.ledger import Ledger
        from privmeasure.ledger.names import check_text

        check_text("note", order.note)
        declared, synthesizer = promise(*_typed(order.schema, order.terms))
        check_header(order.table, declared, order.form)
        _check_release_place(order)
        Ledger(order.ledger).check(order.dataset, synthesizer.privacy)

    def spend(self, order: "SpendOrder") -> "Outcome":
        """Spend epsilon, once, booked in the ledger, and save the release."""
        from privmeasure.app.commands import Outcome
        from privmeasure.tables.advice import advice, standing_alone_advice

        declared, synthesizer = promise(*_typed(order.schema, order.terms))
        _check_release_place(order)
        booking = Booking(order.ledger, order.dataset, order.note)
        cost = Cost(synthesizer, booking, order.release, stays=order.release_stays)
        with stated(cost):
            with opened(order.table) as table:
                fit_booked(cost, table, order.form, shown=False)
            warnings = [*save(cost), *undecided(order.schema, declared)]
        plan = synthesizer.plan_
        return Outcome(
            cost=cost.words(),
            plan=str(plan),
            choice=f"{plan.mechanism}: {synthesizer.choice}",
            rows=plan.rows,
            warnings=[
                *standing_alone_advice(declared, plan, synthesizer.release_.standing_alone),
                *warnings,
                *advice(declared, plan),
            ],
        )

    def keep(self, release: Path) -> Path:
        """Copy a release to the data folder of the user, for its owner alone, and return where it is."""
        from privmeasure.cli.keeping import save_elsewhere

        return save_elsewhere(lambda path: shutil.copyfile(release, path), open_release(release).origin.id)

    def report(self, release: Path, page: Path) -> list[str]:
        """Write the page of a release, and return what there is to warn of."""
        return page_along_the_way(open_release(release), page, release, shown=False)[1]

    def sample(self, release: Path, out: Path, number: int | None, where: str | None, form: "TextForm") -> int:
        """Write synthetic rows of a release to a file, and return how many."""
        check_table_out(out, overwrite=False, beside=[release])
        return write_rows(out, open_release(release), number, None, form, overwrite=False, shown=False, where=where)

    def explain(self, error: BaseException) -> str:
        """Return the paragraph of an error: no value of the data is in it. A page has no options, but fields.

        Examples:
            >>> from privmeasure.errors import ArgumentError
            >>> LocalCommands().explain(ArgumentError("--rows-per-person must be above 0."))
            'rows per person must be above 0.'
        """
        told, _ = failures.explain(error)
        return re.sub(r"(?<!\S)--([a-z][a-z-]+)", lambda option: option[1].replace("-", " "), told)

    def watched(self, advance: "Progress") -> AbstractContextManager[None]:
        """Let the page follow what is done inside."""
        return terminal.watched(advance)


def _check_release_place(order: "SpendOrder") -> None:
    """Refuse a place that cannot keep a release: a device forgets the bytes, a pipe may wait for ever."""
    from privmeasure.outputs import is_stream

    if is_stream(order.release):
        raise ArgumentError(f"{order.release} is no file, and would not keep the release. Give the path of a file.")
    check_out(order.release, overwrite=False, beside=[order.table, order.schema, order.ledger])


def _typed(schema: Path, terms: "Terms") -> tuple[Asked, Chosen]:
    return Asked(schema, terms.epsilon, terms.neighbours), Chosen(rows_per_person=terms.rows_per_person)

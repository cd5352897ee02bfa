"""The pages that spend, and after: the ledger, the confirmation, the work, the release and its files, the end."""

import json
from collections.abc import Mapping
from pathlib import Path

from privmeasure.app.commands import SpendOrder, Terms
from privmeasure.app.desk import Confirmation, Desk, MadeRelease
from privmeasure.app.forms import Fault
from privmeasure.app.frame import Frame
from privmeasure.app.server import HTML, JSON, REPORT_POLICY, PageReply, PageRequest, Route, download, see
from privmeasure.app.terms import RELATIONS, headline, read_path, read_whole, weak_words
from privmeasure.errors import ArgumentError, LedgerFileError, SpentError
from privmeasure.ledger import Entry, Ledger, fraction_text
from privmeasure.ledger.names import fold

ENDINGS_OUT = (".csv", ".parquet", ".tsv", ".feather", ".xlsx")


class Releasing:
    """From a ledger to a release and its files."""

    def __init__(self, frame: Frame, desk: Desk) -> None:
        """Work at a desk."""
        self.frame, self.desk = frame, desk
        self.routes: list[Route] = [
            ("GET", r"ledger", self._show_ledger),
            ("POST", r"ledger", self._take_ledger),
            ("GET", r"confirm/([\w-]{1,64})", self._show_confirmation),
            ("POST", r"spend", self._spend),
            ("GET", r"work/(\d{1,9})", self._show_work),
            ("GET", r"work/(\d{1,9})\.json", self._tell_work),
            ("GET", r"releases", self._show_releases),
            ("GET", r"release/(\d{1,9})", self._show_release),
            ("GET", r"release/(\d{1,9})/report", self._show_report),
            ("GET", r"release/(\d{1,9})/(release|report|table)(?:/(\d{1,9}))?/download", self._download),
            ("POST", r"release/(\d{1,9})/table", self._sample),
            ("GET", r"stop", self._show_stop),
            ("POST", r"stop", self._stop),
        ]

    # ---------------------------------------------------------------------------------------------------- the ledger

    def _show_ledger(self, request: PageRequest, typed: Mapping[str, str] | None = None, *errors: Fault) -> PageReply:
        desk = self.desk
        if not desk.ready or desk.terms is None:
            return self.frame.to("plan")
        known = {} if desk.ledger is None else {"ledger": str(desk.ledger[0]), "dataset": desk.ledger[1]}
        return self.frame.page(
            "ledger.html",
            "Who counts what is spent",
            step="ledger",
            typed={"ledger": "", "dataset": "", "cap": "", "note": "", "out": ""} | known | dict(typed or {}),
            errors=list(errors),
            status=422 if errors else 200,
            terms=desk.terms,
        )

    def _take_ledger(self, request: PageRequest) -> PageReply:
        desk, typed = self.desk, request.form
        with desk.lock:  # of one moment: a table, its own schema and what is promised of it
            table, terms, ready = desk.the_table(), desk.terms, desk.ready
            schema = desk.schema_file()
        if not ready or terms is None:
            return self.frame.to("plan")
        path, dataset, cap = (typed.get(key, "").strip() for key in ("ledger", "dataset", "cap"))
        empty = [("ledger", path, "Give the path of a ledger."), ("dataset", dataset, "Give the data set a name.")]
        errors = [Fault(at, what) for at, value, what in empty if not value]
        if errors:
            return self._show_ledger(request, typed, *errors)
        out = typed.get("out", "").strip()
        try:
            place = read_path(path)
            if fault := self._open_account(place, dataset, cap, terms):
                return self._show_ledger(request, typed, fault)
            release = read_path(out) if out else desk.new_file(".release", stem="the")
            order = SpendOrder(
                table.place,
                table.name,
                table.form,
                schema,
                terms,
                place,
                dataset,
                typed.get("note", "").strip(),
                release,
                release_stays=bool(out),
            )
            confirmation = desk.confirm(order)
        except Exception as error:
            told = desk.explain(error)
            named = told.split(" ")[0]  # "cap must be ..."
            place_of_it = "out" if out and isinstance(error, OSError) else "ledger"
            return self._show_ledger(request, typed, Fault(named if named in typed else place_of_it, told))
        with desk.lock:
            desk.ledger = (place, dataset)
        return self.frame.to(f"confirm/{confirmation.key}")

    def _open_account(self, place: Path, dataset: str, cap: str, terms: Terms) -> Fault | None:
        """Make sure that the data set has an account: one that is there, or a new one with a cap."""
        accounts = Ledger(place).accounts() if place.exists() else []
        there = next((one for one in accounts if fold(one.dataset) == fold(dataset)), None)
        if there is not None and cap and cap != fraction_text(there.cap):  # the same form, sent again, is no fault
            told = f"{dataset!r} has an account already, and its cap is set. Leave this empty."
            return Fault("cap", told)
        if there is not None:
            return None
        if not cap:
            told = f"{place} has no account for {dataset!r} yet. Give a cap to open one, or mend the path or the name."
            return Fault("cap", told)
        if not place.parent.is_dir():
            raise LedgerFileError(f"The folder {place.parent} does not exist: create it, or choose another.")
        self.desk.commands.open_account(place, dataset, cap, terms)
        return None

    # --------------------------------------------------------------------------------------------------- the release

    def _show_confirmation(self, request: PageRequest, key: str) -> PageReply:
        found = self.desk.confirmation(key)
        if found is None:
            return self.frame.to("ledger")
        if found.job is not None:  # it was sent already: a reload, or the way back
            return see(found.job.leads_to or f"{self.frame.base}work/{found.job.number}")
        return self.frame.page(
            "confirm.html", "Spend epsilon, once", step="ledger", key=key, facts=self._facts(found), order=found.order,
            name=found.order.name, weak=weak_words(found.order.terms), entries=self._entries(found.order),
        )  # fmt: skip

    def _entries(self, order: SpendOrder) -> list[list[str]]:
        """Return what the ledger holds of the data set, the last first."""
        entries = reversed(Ledger(order.ledger).history(order.dataset))
        return [[e.time, _epsilon(e), e.state, e.user, e.note] for e in entries]

    def _facts(self, found: Confirmation) -> list[tuple[str, str]]:
        order = found.order
        planned = self.desk.commands.plan(order.schema, order.terms)
        privacy, book = planned.plan.privacy, Ledger(order.ledger)
        account, left = book.account(order.dataset), book.remaining(order.dataset)
        kept = (
            "one row of each person"
            if privacy.rows_per_person == 1
            else f"up to {privacy.rows_per_person} rows of each person"
        )
        whose = (
            f"{kept}, by {privacy.person!r}; no more are kept" if privacy.person else f"{kept} (trusted, not counted)"
        )
        keep = not order.release.is_relative_to(self.desk.folder)
        return [
            ("Epsilon", fraction_text(privacy.epsilon)),
            ("One person changes", f"{privacy.neighbours}: {RELATIONS[privacy.neighbours]}"),
            ("Protected", whose),
            ("Guaranteed", headline(planned)),
            ("Ledger", f"{order.ledger}, {account.dataset!r}"),
            ("Left of the cap", f"{fraction_text(left)} of {fraction_text(account.cap)}"),
            ("Left afterwards", "at least " * bool(account.delta) + fraction_text(left - privacy.epsilon)),
            ("The release", f"goes to {order.release}" if keep else "is here until the page stops: download it"),
        ]

    def _spend(self, request: PageRequest) -> PageReply:
        job = self.desk.spend(
            request.form.get("key", ""), back=f"{self.frame.base}ledger", leads_to=f"{self.frame.base}release/"
        )
        return see(job.leads_to or f"{self.frame.base}work/{job.number}")

    def _show_work(self, request: PageRequest, number: str) -> PageReply:
        job = self.desk.jobs.get(int(number))
        if job is None:
            return self.frame.to("")
        if job.done and not job.error:
            return see(job.leads_to)
        if job.done:
            return self.frame.page("error.html", "This could not be done", text=job.error, back=job.back, status=400)
        return self.frame.page("work.html", job.title, job=job)

    def _tell_work(self, request: PageRequest, number: str) -> PageReply:
        job = self.desk.jobs.get(int(number))
        if job is None:
            return PageReply("{}", status=404, type=JSON)
        return PageReply(json.dumps({"stage": job.stage, "fraction": job.fraction, "done": job.done}), type=JSON)

    def _show_releases(self, request: PageRequest) -> PageReply:
        return self.frame.to(f"release/{self.desk.made[-1].number}" if self.desk.made else "ledger")

    def _made(self, number: str) -> MadeRelease:
        if not 0 < int(number) <= len(self.desk.made):
            raise ArgumentError("There is no such release here.")
        return self.desk.made[int(number) - 1]

    def _show_release(
        self, request: PageRequest, number: str, typed: Mapping[str, str] | None = None, *errors: Fault
    ) -> PageReply:
        made = self._made(number)
        return self.frame.page(
            "release.html",
            f"Release {made.number}",
            step="releases",
            made=made,
            others=[one.number for one in self.desk.made if one is not made],
            typed={"number": "", "where": "", "ending": ".csv"} | dict(typed or {}),
            endings=ENDINGS_OUT,
            errors=list(errors),
            status=422 if errors else 200,
        )

    def _show_report(self, request: PageRequest, number: str) -> PageReply:
        made = self._made(number)
        if made.report is None:
            return self.frame.to(f"release/{number}")
        return PageReply(made.report, type=HTML, policy=REPORT_POLICY)

    def _download(self, request: PageRequest, number: str, what: str, table: str | None) -> PageReply:
        made = self._made(number)
        if what == "release":
            reply = download(made.path, made.path.name)
            made.taken = True
            return reply
        if what == "report" and made.report is not None:
            return download(made.report, "report.html")
        if what == "table" and table is not None and 0 < int(table) <= len(made.tables):
            name, place, _ = made.tables[int(table) - 1]
            return download(place, name)
        raise ArgumentError("There is no such file here.")

    def _sample(self, request: PageRequest, number: str) -> PageReply:
        made, typed = self._made(number), request.form
        back = f"{self.frame.base}release/{number}"
        rows, where = typed.get("number", "").strip(), typed.get("where", "").strip()
        if rows and read_whole(rows) is None:
            return self._show_release(request, number, typed, Fault("number", "Give a whole number of rows, or none."))
        if typed.get("ending") not in ENDINGS_OUT:
            return self._show_release(request, number, typed, Fault("ending", "Choose a kind of file."))
        job = self.desk.start_sample(
            made, typed["ending"], read_whole(rows), where or None, back=back, leads_to=f"{back}#tables"
        )
        return self.frame.to(f"work/{job.number}")

    # ------------------------------------------------------------------------------------------------------- the end

    def _show_stop(self, request: PageRequest) -> PageReply:
        return self.frame.page("stop.html", "Stop the page", lost=self.desk.lost)

    def _stop(self, request: PageRequest) -> PageReply:
        with self.desk.lock:  # as `Desk.spend`: nothing begins between the look and the stop
            if self.desk.spending:
                raise SpentError(
                    "A release is being made, and would be lost. Wait for it, or press Ctrl-C in the terminal."
                )
            self.desk.jobs.stop()
        return self.frame.page("stopped.html", "The page is stopped")


def _epsilon(entry: Entry) -> str:
    """Say what an entry spent."""
    return fraction_text(entry.epsilon) + (f", delta {fraction_text(entry.delta)}" if entry.delta else "")

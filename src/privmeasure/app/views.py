"""Addresses and pages. What is shown before a release is for the one who holds the table; nothing of it is logged."""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from privmeasure.app.commands import Planned, SpendOrder, Terms
from privmeasure.app.desk import Confirmation, Desk, MadeRelease, ending_of
from privmeasure.app.door import Door
from privmeasure.app.forms import (
    NULLABLE,
    Fault,
    check_schema_text,
    kind_lines,
    kinds_with_cells,
    needed_fields,
    read_form,
    to_form,
)
from privmeasure.app.server import HTML, JSON, PIECE, REPORT_POLICY, PageReply, PageRequest, download, see
from privmeasure.errors import ArgumentError, LedgerFileError, SchemaError, SpentError
from privmeasure.ledger import Ledger, fraction_text
from privmeasure.ledger.names import fold
from privmeasure.privacy import Privacy
from privmeasure.report.promises import shares_of_columns
from privmeasure.report.words import WEAK, WEAK_ABOVE, belief_heads, belief_rows, promise_words
from privmeasure.tables.advice import lost_cells
from privmeasure.tables.foreign import from_file_text
from privmeasure.tables.texts import TextForm
from privmeasure.version import __version__

PAGE_STEPS = (("", "Table"), ("schema", "Schema"), ("plan", "Plan"), ("ledger", "Ledger"), ("releases", "Release"))
OFFERED_EPSILONS = ("0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "4", "5", "7", "10")
"""The steps of the slider; any other can be typed."""
ENDINGS_OUT = (".csv", ".parquet", ".tsv", ".feather", ".xlsx")
STATIC = {"app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
RELATIONS = {
    "add-remove": "one person more or less: all rows of a person are in the table, or none of them. The number of rows "
    "is private, and gets noise.",
    "replace": "one person's rows become others. The number of rows is public, and exact.",
}
LARGEST_NUMBER = 15
"""Digits of a whole number in a form."""


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("privmeasure.app"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


class Site:
    """The pages of a visit, by address."""

    def __init__(self, door: Door, desk: Desk, upload_limit: int) -> None:
        """Serve a desk behind a door."""
        self.door, self.desk, self.upload_limit = door, desk, upload_limit
        self._routes: list[tuple[str, str, Callable[..., PageReply]]] = [
            ("GET", r"", self._show_table),
            ("POST", r"table", self._take_table),
            ("GET", r"schema", self._show_schema),
            ("POST", r"schema", self._take_schema),
            ("GET", r"text", self._show_text),
            ("POST", r"text", self._take_text),
            ("POST", r"count", self._count),
            ("GET", r"counts", self._show_counts),
            ("GET", r"plan", self._show_plan),
            ("GET", r"plan/live", self._show_live),
            ("POST", r"plan", self._take_terms),
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
            ("GET", r"static/([\w.-]{1,40})", self._static),
        ]

    # ----------------------------------------------------------------------------------------------------- the frame

    def respond(self, request: PageRequest) -> PageReply:
        """Return the page of an address, or say what is wrong."""
        try:
            for method, pattern, view in self._routes:
                if method == request.method and (found := re.fullmatch(pattern, request.path)):
                    return view(request, *found.groups())
            return self._page("error.html", "Not found", text="There is no such page.", back="", status=404)
        except Exception as error:
            return self._page(
                "error.html", "This could not be done", text=self.desk.explain(error), back=_back(request), status=400
            )

    def _page(self, template: str, title: str, *, step: str = "", status: int = 200, **values: Any) -> PageReply:
        common = {
            "base": self.door.path,
            "form_token": self.door.form_token,
            "steps": [(name, label, self._reached(name), name == step) for name, label in PAGE_STEPS],
            "version": __version__,
            "title": title,
            "step": step,
            "errors": [],
        }
        text: str = _environment().get_template(template).render(common | values)
        return PageReply(text, status=status)

    def _reached(self, step: str) -> bool:
        desk = self.desk
        reached = {"schema": desk.table is not None, "plan": desk.ready, "releases": bool(desk.made)}
        return reached.get(step, desk.ready and desk.terms is not None) if step else True

    def _to(self, place: str) -> PageReply:
        return see(f"{self.door.path}{place}")

    def _static(self, request: PageRequest, name: str) -> PageReply:
        if name == "style.css":  # one look for pages and reports
            return PageReply(_text("privmeasure.report", "templates/style.css"), type=STATIC["app.css"])
        if name not in STATIC:
            return PageReply("", status=404)
        return PageReply(_text("privmeasure.app", f"static/{name}"), type=STATIC[name])

    # ----------------------------------------------------------------------------------------------------- the table

    def _show_table(self, request: PageRequest, typed: Mapping[str, str] | None = None, *errors: Fault) -> PageReply:
        return self._page(
            "table.html",
            "Choose the table",
            typed={"path": "", "delimiter": "", "decimal": ".", "encoding": "", "newlines": ""} | dict(typed or {}),
            errors=list(errors),
            status=422 if errors else 200,
            table=self.desk.table,
            limit=self.upload_limit,
            limit_words=f"{self.upload_limit >> 20:,} MB",
        )

    def _take_table(self, request: PageRequest) -> PageReply:
        typed = request.form
        place = typed.get("path", "").strip()
        if not place:
            return self._show_table(request, typed, Fault("path", "Give the path of the table, or choose a file."))
        try:
            path = _path(place)
            self.desk.open_table(path, _text_form(typed), name=path.name, uploaded=False)
        except Exception as error:
            return self._show_table(request, typed, Fault("path", self.desk.explain(error)))
        return self._to("schema")

    def upload(self, query: Mapping[str, str], body: BufferedIOBase, length: int) -> PageReply:
        """Take the bytes of a table into the private folder, piece by piece, and look at its header."""
        desk, place = self.desk, None
        name = re.split(r"[/\\]", query.get("name", ""))[-1][:200]
        try:
            form, ending = _text_form(query), ending_of(name)
            with desk.lock:
                place = desk.new_file(ending)
                file = place.open("xb")
            with file:
                while length and (piece := body.read(min(PIECE, length))):
                    file.write(piece)
                    length -= len(piece)
            if length:
                raise ArgumentError("The file did not arrive as a whole. Choose it again.")
            desk.open_table(place, form, name=name, uploaded=True)
        except Exception as error:
            told = desk.explain(error)
            if place is not None:
                told = told.replace(str(place.relative_to(desk.folder)), name)
                place.unlink(missing_ok=True)
            return PageReply(json.dumps({"error": told}), status=422, type=JSON)
        return PageReply(json.dumps({"next": f"{self.door.path}schema"}), type=JSON)

    # ---------------------------------------------------------------------------------------------------- the schema

    def _show_schema(self, request: PageRequest, form: Any = None) -> PageReply:
        desk, table = self.desk, self.desk.the_table()
        shown = to_form(desk.text) if form is None else form
        errors = shown.faults or ([] if form is None else shown.open)
        return self._page(
            "schema.html",
            "Say what may occur in each column",
            step="schema",
            status=422 if errors else 200,
            form=shown,
            errors=errors,
            wrong={fault.at for fault in errors},
            notes=desk.notes,
            kinds=kind_lines(),
            needed=needed_fields(),
            with_cells=kinds_with_cells(),
            nullable=NULLABLE,
            table=table,
            opened=desk.opened,
            ready=desk.ready,
            warnings=desk.warnings,
        )

    def _take_schema(self, request: PageRequest) -> PageReply:
        desk, typed = self.desk, request.form
        desk.check_opened(typed.get("opened", ""))
        text, form = read_form(desk.text, typed, missing=typed.get("then") == "missing")
        if form.faults:
            return self._show_schema(request, form)
        desk.set_schema(text)
        if typed.get("then") == "missing":
            return self._to("schema")
        if form.open:
            return self._show_schema(request, form)
        return self._checked(lambda fault: self._show_schema(request, _with(form, fault)), "schema")

    def _checked(self, otherwise: Callable[[Fault], PageReply], place: str) -> PageReply:
        try:
            self.desk.check()
        except Exception as error:
            return otherwise(Fault("main", self.desk.explain(error)))
        return self._to(f"{place}#done")

    def _show_text(self, request: PageRequest, text: str | None = None, *errors: Fault) -> PageReply:
        self.desk.the_table()
        shown = self.desk.text if text is None else text
        return self._page(
            "text.html",
            "The schema as a file",
            step="schema",
            text=shown,
            opened=self.desk.opened,
            errors=list(errors),
            status=422 if errors else 200,
        )

    def _take_text(self, request: PageRequest) -> PageReply:
        text = request.form.get("text", "").replace("\r\n", "\n").lstrip("\ufeff")
        name = request.form.get("name", "")
        self.desk.check_opened(request.form.get("opened", ""))
        try:
            if name and not name.lower().endswith(".toml"):
                text = from_file_text(text, name).to_toml()
            check_schema_text(text)
        except SchemaError as error:
            return self._show_text(request, text, Fault("text", self.desk.explain(error)))
        self.desk.set_schema(text)
        if to_form(text).open:
            return self._to("schema")
        return self._checked(lambda fault: self._show_text(request, text, Fault("text", fault.text)), "schema")

    def _count(self, request: PageRequest) -> PageReply:
        if not self.desk.ready:
            raise ArgumentError("Complete the schema first.")
        job = self.desk.start_count(f"{self.door.path}schema", f"{self.door.path}counts")
        return self._to(f"work/{job.number}")

    def _show_counts(self, request: PageRequest) -> PageReply:
        if self.desk.counts is None:
            return self._to("schema")
        return self._page("counts.html", "What the schema would change", step="schema", counts=self.desk.counts)

    # ------------------------------------------------------------------------------------------------------ the plan

    def _show_plan(self, request: PageRequest) -> PageReply:
        if not self.desk.ready:
            return self._to("schema")
        typed = dict(request.query) or _typed(self.desk.terms)
        terms, errors = _read_terms(typed)
        planned = None if terms is None else self._planned(terms, errors)
        compared: list[list[str]] = []
        if planned is not None and terms is not None:
            compared = _compared(self.desk.commands.compare(self.desk.schema_file(), terms))
        return self._page(
            "plan.html",
            "See the plan, before anything is spent",
            step="plan",
            status=422 if errors and request.query else 200,
            typed={"epsilon": "1", "rows": "", "rows_per_person": "1", "neighbours": ""} | typed,
            errors=errors if request.query else [],
            offered=OFFERED_EPSILONS,
            relations=RELATIONS,
            person=to_form(self.desk.text).person,
            planned=None if planned is None or terms is None else _told(planned, terms),
            compared=compared,
        )

    def _show_live(self, request: PageRequest) -> PageReply:
        """Return the part of the page that changes as epsilon moves."""
        terms, errors = _read_terms(request.query)
        planned = None if terms is None or not self.desk.ready else self._planned(terms, errors)
        told = None if planned is None or terms is None else _told(planned, terms)
        return self._page("live.html", "", planned=told, errors=errors)

    def _planned(self, terms: Terms, errors: list[Fault]) -> Planned | None:
        try:
            return self.desk.commands.plan(self.desk.schema_file(), terms)
        except Exception as error:
            errors.append(Fault("epsilon", self.desk.explain(error)))
            return None

    def _take_terms(self, request: PageRequest) -> PageReply:
        terms, _ = _read_terms(request.form)
        if terms is None or not self.desk.ready or self._planned(terms, []) is None:
            return self._to("plan")
        with self.desk.lock:
            self.desk.terms = terms
        return self._to("ledger")

    # ---------------------------------------------------------------------------------------------------- the ledger

    def _show_ledger(self, request: PageRequest, typed: Mapping[str, str] | None = None, *errors: Fault) -> PageReply:
        desk = self.desk
        if not desk.ready or desk.terms is None:
            return self._to("plan")
        known = {} if desk.ledger is None else {"ledger": str(desk.ledger[0]), "dataset": desk.ledger[1]}
        return self._page(
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
        table, terms = desk.the_table(), desk.terms
        if not desk.ready or terms is None:
            return self._to("plan")
        path, dataset, cap = (typed.get(key, "").strip() for key in ("ledger", "dataset", "cap"))
        empty = [("ledger", path, "Give the path of a ledger."), ("dataset", dataset, "Give the data set a name.")]
        errors = [Fault(at, what) for at, value, what in empty if not value]
        if errors:
            return self._show_ledger(request, typed, *errors)
        out = typed.get("out", "").strip()
        at = "ledger"
        try:
            place = _path(path)
            if fault := self._open_account(place, dataset, cap, terms):
                return self._show_ledger(request, typed, fault)
            at = "out" if out else "ledger"
            release = _path(out) if out else desk.new_file(".release", stem="the")
            order = SpendOrder(
                table.place,
                table.name,
                table.form,
                desk.schema_file(),
                terms,
                place,
                dataset,
                typed.get("note", "").strip(),
                release,
            )
            confirmation = desk.confirm(order)
        except Exception as error:
            return self._show_ledger(request, typed, Fault(at, desk.explain(error)))
        with desk.lock:
            desk.ledger = (place, dataset)
        return self._to(f"confirm/{confirmation.key}")

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
            return self._to("ledger")
        if found.job is not None:  # it was sent already: a reload, or the way back
            return see(found.job.leads_to or f"{self.door.path}work/{found.job.number}")
        return self._page(
            "confirm.html", "Spend epsilon, once", step="ledger", key=key, facts=self._facts(found), order=found.order,
            name=found.order.name, weak=_weak(found.order.terms),
        )  # fmt: skip

    def _facts(self, found: Confirmation) -> list[tuple[str, str]]:
        order = found.order
        planned = self.desk.commands.plan(order.schema, order.terms)
        privacy, book = planned.plan.privacy, Ledger(order.ledger)
        account, spent = book.account(order.dataset), book.spent(order.dataset)
        left = account.cap - spent
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
            ("Guaranteed", _headline(planned)),
            ("Ledger", f"{order.ledger}, {account.dataset!r}"),
            ("Left of the cap", f"{fraction_text(left)} of {fraction_text(account.cap)}"),
            ("Left afterwards", fraction_text(left - privacy.epsilon)),
            ("The release", f"goes to {order.release}" if keep else "is here until the page stops: download it"),
        ]

    def _spend(self, request: PageRequest) -> PageReply:
        job = self.desk.spend(
            request.form.get("key", ""), back=f"{self.door.path}ledger", leads_to=f"{self.door.path}release/"
        )
        return see(job.leads_to or f"{self.door.path}work/{job.number}")

    def _show_work(self, request: PageRequest, number: str) -> PageReply:
        job = self.desk.jobs.get(int(number))
        if job is None:
            return self._to("")
        if job.done and not job.error:
            return see(job.leads_to)
        if job.done:
            return self._page("error.html", "This could not be done", text=job.error, back=job.back, status=400)
        return self._page("work.html", job.title, job=job)

    def _tell_work(self, request: PageRequest, number: str) -> PageReply:
        job = self.desk.jobs.get(int(number))
        if job is None:
            return PageReply("{}", status=404, type=JSON)
        return PageReply(json.dumps({"stage": job.stage, "fraction": job.fraction, "done": job.done}), type=JSON)

    def _show_releases(self, request: PageRequest) -> PageReply:
        return self._to(f"release/{self.desk.made[-1].number}" if self.desk.made else "ledger")

    def _made(self, number: str) -> MadeRelease:
        if not 0 < int(number) <= len(self.desk.made):
            raise ArgumentError("There is no such release here.")
        return self.desk.made[int(number) - 1]

    def _show_release(
        self, request: PageRequest, number: str, typed: Mapping[str, str] | None = None, *errors: Fault
    ) -> PageReply:
        made = self._made(number)
        return self._page(
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
            return self._to(f"release/{number}")
        return PageReply(made.report, type=HTML, policy=REPORT_POLICY)

    def _download(self, request: PageRequest, number: str, what: str, table: str | None) -> PageReply:
        made = self._made(number)
        if what == "release":
            made.taken = True
            return download(made.path, made.path.name)
        if what == "report" and made.report is not None:
            return download(made.report, "report.html")
        if what == "table" and table is not None and 0 < int(table) <= len(made.tables):
            name, place, _ = made.tables[int(table) - 1]
            return download(place, name)
        raise ArgumentError("There is no such file here.")

    def _sample(self, request: PageRequest, number: str) -> PageReply:
        made, typed = self._made(number), request.form
        back = f"{self.door.path}release/{number}"
        rows, where = typed.get("number", "").strip(), typed.get("where", "").strip()
        if rows and _whole(rows) is None:
            return self._show_release(request, number, typed, Fault("number", "Give a whole number of rows, or none."))
        if typed.get("ending") not in ENDINGS_OUT:
            return self._show_release(request, number, typed, Fault("ending", "Choose a kind of file."))
        job = self.desk.start_sample(
            made, typed["ending"], _whole(rows), where or None, back=back, leads_to=f"{back}#tables"
        )
        return self._to(f"work/{job.number}")

    # ------------------------------------------------------------------------------------------------------- the end

    def _show_stop(self, request: PageRequest) -> PageReply:
        return self._page("stop.html", "Stop the page", lost=self.desk.lost)

    def _stop(self, request: PageRequest) -> PageReply:
        if self.desk.spending:
            raise SpentError(
                "A release is being made, and would be lost. Wait for it, or press Ctrl-C in the terminal."
            )
        self.desk.jobs.stop()
        return self._page("stopped.html", "The page is stopped")


def _path(typed: str) -> Path:
    """Return the file that a person names; "~" is home."""
    if not typed.isprintable():
        raise ArgumentError("The path has a character that cannot be printed. Type it again.")
    try:
        return Path(typed).expanduser().absolute()
    except RuntimeError:
        raise ArgumentError("The path begins with ~ and a name that this computer does not know.") from None


def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _back(request: PageRequest) -> str:
    return request.path if request.method == "GET" and request.path in dict(PAGE_STEPS) else ""


def _with(form: Any, fault: Fault) -> Any:
    form.faults.append(fault)
    return form


def _text_form(typed: Mapping[str, str]) -> TextForm:
    delimiter = typed.get("delimiter", "")
    return TextForm(
        delimiter or None,
        typed.get("decimal", "") or ".",
        typed.get("encoding", "").strip() or "utf-8",
        bool(typed.get("newlines")),
    )


def _whole(text: str) -> int | None:
    plain = text.replace(",", "").replace(" ", "").replace("_", "")
    return int(plain) if re.fullmatch(rf"[0-9]{{1,{LARGEST_NUMBER}}}", plain) else None


def _typed(terms: Terms | None) -> dict[str, str]:
    """Return what was typed for a promise before."""
    if terms is None:
        return {}
    return {
        "epsilon": terms.epsilon,
        "neighbours": terms.neighbours,
        "rows": f"{terms.rows}",
        "rows_per_person": f"{terms.rows_per_person}",
    }


def _read_terms(typed: Mapping[str, str]) -> tuple[Terms | None, list[Fault]]:
    """Return what is promised as far as a form says it whole, and what is wrong or missing in it."""
    errors = []
    if not typed.get("epsilon", "").strip():
        errors.append(Fault("epsilon", "Give epsilon, a number like 0.5 or 1/3."))
    if typed.get("neighbours") not in RELATIONS:
        errors.append(Fault("neighbours-add-remove", "Choose what one person can change: it is your promise."))
    numbers = {}
    for key, what in (("rows", "how many rows the table has, about"), ("rows_per_person", "the most rows of a person")):
        found = _whole(typed.get(key, "1" if key == "rows_per_person" else "").strip())
        if not found:
            errors.append(Fault(key, f"Give {what}: a whole number of at least 1."))
        numbers[key] = found or 1
    if errors:
        return None, errors
    return Terms(typed["epsilon"].strip(), typed["neighbours"], numbers["rows"], numbers["rows_per_person"]), []


def _weak(terms: Terms) -> str:
    privacy = Privacy(terms.epsilon, "replace" if terms.neighbours == "replace" else "add-remove")
    return f"Epsilon above {WEAK_ABOVE} is a weak promise: {WEAK}" if privacy.epsilon > WEAK_ABOVE else ""


def _shares(planned: Planned) -> list[float]:
    return [min(1.0, c.guarantee / c.range) if c.range > 0 else 0.0 for c in planned.resolved]


def _headline(planned: Planned) -> str:
    """Say in one sentence what is guaranteed, from the best column to the worst."""
    shares = _shares(planned)
    order = sorted(range(len(shares)), key=shares.__getitem__)
    best, worst = planned.resolved[order[0]], planned.resolved[order[-1]]
    said = " to ".join(dict.fromkeys(f"{c.in_units(c.guarantee)} ({c.name})" for c in (best, worst)))
    return f"values are moved, on average over the rows and at the most, by {said}"


def _told(planned: Planned, terms: Terms) -> dict[str, Any]:
    """Return what the page says of a plan."""
    lost = {cells.name: cells for cells in lost_cells(planned.schema)}
    columns = []
    for column, share in zip(planned.resolved, _shares(planned), strict=True):
        cells = lost[column.name]
        gone = cells.missing if cells.missing == cells.unread else f"{cells.missing}; unread: {cells.unread}"
        columns.append((column.name, column.text, column.in_units(column.guarantee), 100 * share, gone))
    return {
        "terms": terms,
        "headline": _headline(planned),
        "columns": columns,
        "warnings": planned.warnings,
        "words": str(planned.plan),
        "choice": f"{planned.plan.mechanism}: {planned.choice}",
        "promise": promise_words(planned.plan.privacy, released=False),
        "belief_heads": belief_heads(planned.plan.privacy, "before"),
        "beliefs": belief_rows([planned.plan.privacy], (0.01, 0.1, 0.5, 0.9)),
    }


def _compared(plans: list[Any]) -> list[list[str]]:
    rows = []
    for plan in plans:
        shares = shares_of_columns(plan)
        ends = [min(shares, default=0.0), max(shares, default=0.0)]
        words = ["says nothing" if share >= 1 else f"{100 * share:.2g} %" for share in ends]
        rows.append([f"{float(plan.privacy.epsilon):g}", *words])
    return rows

"""The pages before anything is spent: the table, its schema, the plan. They are for the one who holds the table."""

import json
import re
from collections.abc import Callable, Mapping
from io import BufferedIOBase
from typing import Any

from privmeasure.app.commands import Planned, Terms
from privmeasure.app.desk import Desk, ending_of
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
from privmeasure.app.frame import Frame
from privmeasure.app.server import JSON, PIECE, PageReply, PageRequest, Route
from privmeasure.app.terms import (
    OFFERED_EPSILONS,
    RELATIONS,
    compared_rows,
    plan_values,
    read_path,
    read_terms,
    typed_terms,
)
from privmeasure.errors import ArgumentError, SchemaError
from privmeasure.tables.foreign import from_file_text
from privmeasure.tables.texts import TextForm


class Declaring:
    """From a table to a plan."""

    def __init__(self, frame: Frame, desk: Desk, upload_limit: int) -> None:
        """Work at a desk; uploads are at most so long."""
        self.frame, self.desk, self.upload_limit = frame, desk, upload_limit
        self.routes: list[Route] = [
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
        ]

    # ----------------------------------------------------------------------------------------------------- the table

    def _show_table(self, request: PageRequest, typed: Mapping[str, str] | None = None, *errors: Fault) -> PageReply:
        return self.frame.page(
            "table.html",
            "Choose the table",
            step="",
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
            path = read_path(place)
            self.desk.open_table(path, _text_form(typed), name=path.name, uploaded=False)
        except Exception as error:
            return self._show_table(request, typed, Fault("path", self.desk.explain(error)))
        return self.frame.to("schema")

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
        return PageReply(json.dumps({"next": f"{self.frame.base}schema"}), type=JSON)

    # ---------------------------------------------------------------------------------------------------- the schema

    def _show_schema(self, request: PageRequest, form: Any = None) -> PageReply:
        desk, table = self.desk, self.desk.the_table()
        shown = to_form(desk.text) if form is None else form
        errors = shown.faults or ([] if form is None else shown.open)
        return self.frame.page(
            "schema.html",
            "Say what may occur in each column",
            step="schema",
            status=422 if errors else 200,
            form=shown,
            errors=errors,
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
            return self.frame.to("schema")
        if form.open:
            return self._show_schema(request, form)
        return self._checked(lambda fault: self._show_schema(request, _with(form, fault)), "schema")

    def _checked(self, otherwise: Callable[[Fault], PageReply], place: str) -> PageReply:
        try:
            self.desk.check()
        except Exception as error:
            return otherwise(Fault("main", self.desk.explain(error)))
        return self.frame.to(f"{place}#done")

    def _show_text(self, request: PageRequest, text: str | None = None, *errors: Fault) -> PageReply:
        self.desk.the_table()
        shown = self.desk.text if text is None else text
        return self.frame.page(
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
        notes: dict[str, str] = {}
        try:
            if name and not name.lower().endswith(".toml"):
                draft = from_file_text(text, name)
                text, notes = draft.to_toml(), draft.notes
            check_schema_text(text)
        except SchemaError as error:
            return self._show_text(request, text, Fault("text", self.desk.explain(error)))
        before, proposed = self.desk.text, self.desk.notes
        self.desk.set_schema(text, notes if text != before else proposed)
        if to_form(text).open:
            return self.frame.to("schema")

        def refuse(fault: Fault) -> PageReply:
            with self.desk.lock:
                if self.desk.text == text:  # else another tab was faster, and what it saved stays
                    self.desk.set_schema(before, proposed)
            return self._show_text(request, text, Fault("text", fault.text))

        return self._checked(refuse, "schema")

    def _count(self, request: PageRequest) -> PageReply:
        if not self.desk.ready:
            raise ArgumentError("Complete the schema first.")
        job = self.desk.start_count(f"{self.frame.base}schema", f"{self.frame.base}counts")
        return self.frame.to(f"work/{job.number}")

    def _show_counts(self, request: PageRequest) -> PageReply:
        if self.desk.counts is None:
            return self.frame.to("schema")
        return self.frame.page("counts.html", "What the schema would change", step="schema", counts=self.desk.counts)

    # ------------------------------------------------------------------------------------------------------ the plan

    def _show_plan(self, request: PageRequest) -> PageReply:
        if not self.desk.ready:
            return self.frame.to("schema")
        typed = dict(request.query) or typed_terms(self.desk.terms)
        terms, errors = read_terms(typed)
        planned = None if terms is None else self._planned(terms, errors)
        compared: list[list[str]] = []
        if planned is not None and terms is not None:
            compared = compared_rows(self.desk.commands.compare(self.desk.schema_file(), terms))
        return self.frame.page(
            "plan.html",
            "See the plan, before anything is spent",
            step="plan",
            status=422 if errors and request.query else 200,
            typed={"epsilon": "1", "rows": "", "rows_per_person": "1", "neighbours": ""} | typed,
            errors=errors if request.query else [],
            offered=OFFERED_EPSILONS,
            relations=RELATIONS,
            person=to_form(self.desk.text).person,
            planned=None if planned is None or terms is None else plan_values(planned, terms),
            compared=compared,
        )

    def _show_live(self, request: PageRequest) -> PageReply:
        """Return the part of the page that changes as epsilon moves."""
        terms, errors = read_terms(request.query)
        planned = None if terms is None or not self.desk.ready else self._planned(terms, errors)
        told = None if planned is None or terms is None else plan_values(planned, terms)
        return self.frame.page("live.html", "", planned=told, errors=errors)

    def _planned(self, terms: Terms, errors: list[Fault]) -> Planned | None:
        try:
            return self.desk.commands.plan(self.desk.schema_file(), terms)
        except Exception as error:
            errors.append(Fault("epsilon", self.desk.explain(error)))
            return None

    def _take_terms(self, request: PageRequest) -> PageReply:
        terms, _ = read_terms(request.form)
        if terms is None or not self.desk.ready or self._planned(terms, []) is None:
            return self.frame.to("plan")
        with self.desk.lock:
            self.desk.terms = terms
        return self.frame.to("ledger")


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

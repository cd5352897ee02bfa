"""What is promised, as it is typed, and what a page says of a plan. Public values alone."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privmeasure.app.commands import Planned, Terms
from privmeasure.app.forms import Fault
from privmeasure.errors import ArgumentError
from privmeasure.privacy import Privacy
from privmeasure.report.promises import shares_of_columns
from privmeasure.report.words import WEAK, WEAK_ABOVE, belief_heads, belief_rows, promise_words
from privmeasure.tables.advice import lost_cells

OFFERED_EPSILONS = ("0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "4", "5", "7", "10")
"""The steps of the slider; any other can be typed."""
RELATIONS = {
    "add-remove": "one person more or less: all rows of a person are in the table, or none of them. The number of rows "
    "is private, and gets noise.",
    "replace": "one person's rows become others. The number of rows is public, and exact.",
}
LARGEST_NUMBER = 15
"""Digits of a whole number in a form."""


def read_whole(text: str) -> int | None:
    """Return a whole number that a person typed, 5000 or 5,000; None for anything else."""
    plain = text.replace(",", "").replace(" ", "").replace("_", "")
    return int(plain) if re.fullmatch(rf"[0-9]{{1,{LARGEST_NUMBER}}}", plain) else None


def typed_terms(terms: Terms | None) -> dict[str, str]:
    """Return what was typed for a promise before."""
    if terms is None:
        return {}
    return {
        "epsilon": terms.epsilon,
        "neighbours": terms.neighbours,
        "rows": f"{terms.rows}",
        "rows_per_person": f"{terms.rows_per_person}",
    }


def read_terms(typed: Mapping[str, str]) -> tuple[Terms | None, list[Fault]]:
    """Return what is promised as far as a form says it whole, and what is wrong or missing in it."""
    errors = []
    if not typed.get("epsilon", "").strip():
        errors.append(Fault("epsilon", "Give epsilon, a number like 0.5 or 1/3."))
    if typed.get("neighbours") not in RELATIONS:
        errors.append(Fault("neighbours-add-remove", "Choose what one person can change: it is your promise."))
    numbers = {}
    for key, what in (("rows", "how many rows the table has, about"), ("rows_per_person", "the most rows of a person")):
        found = read_whole(typed.get(key, "1" if key == "rows_per_person" else "").strip())
        if not found:
            errors.append(Fault(key, f"Give {what}: a whole number of at least 1."))
        numbers[key] = found or 1
    if errors:
        return None, errors
    return Terms(typed["epsilon"].strip(), typed["neighbours"], numbers["rows"], numbers["rows_per_person"]), []


def weak_words(terms: Terms) -> str:
    """Say that a promise is weak, where it is."""
    privacy = Privacy(terms.epsilon, "replace" if terms.neighbours == "replace" else "add-remove")
    return f"Epsilon above {WEAK_ABOVE} is a weak promise: {WEAK}" if privacy.epsilon > WEAK_ABOVE else ""


def _shares(planned: Planned) -> list[float]:
    return [min(1.0, c.guarantee / c.range) if c.range > 0 else 0.0 for c in planned.resolved]


def headline(planned: Planned) -> str:
    """Say in one sentence what is guaranteed, from the best column to the worst."""
    shares = _shares(planned)
    order = sorted(range(len(shares)), key=shares.__getitem__)
    best, worst = planned.resolved[order[0]], planned.resolved[order[-1]]
    said = " to ".join(dict.fromkeys(f"{c.in_units(c.guarantee)} ({c.name})" for c in (best, worst)))
    return f"values are moved, on average over the rows and at the most, by {said}"


def plan_values(planned: Planned, terms: Terms) -> dict[str, Any]:
    """Return what the page says of a plan."""
    lost = {cells.name: cells for cells in lost_cells(planned.schema)}
    columns = []
    for column, share in zip(planned.resolved, _shares(planned), strict=True):
        cells = lost[column.name]
        gone = cells.missing if cells.missing == cells.unread else f"{cells.missing}; unread: {cells.unread}"
        columns.append((column.name, column.text, column.in_units(column.guarantee), 100 * share, gone))
    return {
        "terms": terms,
        "headline": headline(planned),
        "columns": columns,
        "warnings": planned.warnings,
        "words": str(planned.plan),
        "choice": f"{planned.plan.mechanism}: {planned.choice}",
        "promise": promise_words(planned.plan.privacy, released=False),
        "belief_heads": belief_heads(planned.plan.privacy, "before"),
        "beliefs": belief_rows([planned.plan.privacy], (0.01, 0.1, 0.5, 0.9)),
    }


def compared_rows(plans: list[Any]) -> list[list[str]]:
    """Return a line for each plan: what is guaranteed of the best column and the worst."""
    rows = []
    for plan in plans:
        shares = shares_of_columns(plan)
        ends = [min(shares, default=0.0), max(shares, default=0.0)]
        words = ["says nothing" if share >= 1 else f"{100 * share:.2g} %" for share in ends]
        rows.append([f"{float(plan.privacy.epsilon):g}", *words])
    return rows


def read_path(typed: str) -> Path:
    """Return the file that a person names; "~" is home."""
    if not typed.isprintable():
        raise ArgumentError("The path has a character that cannot be printed. Type it again.")
    try:
        return Path(typed).expanduser().absolute()
    except RuntimeError:
        raise ArgumentError("The path begins with ~ and a name that this computer does not know.") from None

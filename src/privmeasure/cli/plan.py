"""`privmeasure plan`: the guarantee, before any data are opened."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from privmeasure.cli import options, terminal
from privmeasure.cli.missing import missing_cells, show_missing_cells, undecided
from privmeasure.cli.preparing import write_text
from privmeasure.cli.promise import Asked, Chosen, promise
from privmeasure.cli.reporting import HtmlFile, check_page

if TYPE_CHECKING:
    from pathlib import Path

    from privmeasure.plans.columns import ColumnPlan
    from privmeasure.plans.plan import Plan
    from privmeasure.plans.promise import Promise
    from privmeasure.synthesizer import Synthesizer
    from privmeasure.tables import Schema
    from privmeasure.tables.advice import ColumnResolution

SHOWN_FACTORS = (0.1, 0.2, 0.5, 1, 2, 5, 10)
"""Of the number of rows, for the curve of a page."""
SHOWN_EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "5", "10")


def plan(
    *,
    asked: Asked,
    rows: Annotated[int, typer.Option("--rows", min=1, help="The number of rows to plan for: public, or a guess.")],
    chosen: Chosen,
    epsilons: Annotated[str, typer.Option("--epsilons", help="The epsilons of the table, to compare.")] = ",".join(
        SHOWN_EPSILONS
    ),
    html: HtmlFile = None,
    overwrite: options.Overwrite = False,
    voice: terminal.Voice,
) -> None:
    """Show what would be measured and guaranteed. Reads the schema alone: nothing private, nothing spent.

    The guarantee bounds the expected 1-Wasserstein distance between the table and its release: how far a row has to
    move, on average, as a share of the declared range. Each column shows how finely it will be told apart.

    Examples:

      privmeasure plan --schema people.toml --epsilon 1 --neighbours add-remove --rows 5000
      privmeasure plan --schema people.toml --epsilon 1 --neighbours add-remove --rows 5000 --html plan.html
      privmeasure plan --schema people.toml --epsilon 1/2 --neighbours replace --rows 5000 --columns age,sex --json
    """
    check_page(html, overwrite=overwrite, beside=[asked.schema], option="--html")
    with terminal.progress("planning", shown=voice.in_words):
        declared, synthesizer, planned, resolved, warnings = make_plan(asked, chosen, rows)
        compared = synthesizer.guarantees(
            rows, [options.read_epsilon(text, "epsilons") for text in epsilons.split(",")]
        )
        per_person = [] if declared.person is None else synthesizer.guarantees_per_person(rows)
    if html is not None:
        _write_page(html, declared, synthesizer, planned, compared, warnings)
    found = {
        "plan": planned.to_json(),
        "choice": synthesizer.choice,
        "guarantee": planned.guarantee,
        "vacuous": planned.vacuous,
        "independent_groups": synthesizer.independent_groups(rows),
        "columns": [column.to_json() for column in resolved],
        "missing_cells": missing_cells(declared),
        "warnings": warnings,
        "epsilons": [_figures(other) for other in compared],
    }
    if html is not None:
        found["html"] = str(html)
    if per_person:
        found["rows_per_person"] = [{"k": other.privacy.rows_per_person} | _figures(other) for other in per_person]
    voice.answer(found, f"{planned}\nchosen     {planned.mechanism!r}: {synthesizer.choice}")
    if voice.in_words:
        lines = [[column.name, f"{column.cuts}", column.resolved] for column in resolved]
        terminal.table("\nHow finely each column is told apart", ["column", "cuts", "resolved to"], lines)
        if declared.groups:
            print("Columns of a group share the cuts of one tree: above, a group counts as one column.")
        show_missing_cells(declared, voice)
        terminal.table(*(_of_trees if planned.joint else _of_columns)(compared, "epsilon"))
        if per_person:
            terminal.table(*(_of_trees if planned.joint else _of_columns)(per_person, "rows per person"))
            print(
                f"All of them are for {rows:,} kept rows: a larger number keeps more rows of each person. Choose it as "
                "bounds are chosen, from knowledge of the subject: it is published."
            )
        if html is not None:
            print(f"{html} written")
    voice.warn(*warnings)


def make_plan(
    asked: Asked, chosen: Chosen, rows: int
) -> "tuple[Schema, Synthesizer, Promise, list[ColumnResolution], list[str]]":
    """Return a plan, with whose it is, what it knows of each column, and what to warn of. No data are opened."""
    from privmeasure.tables.advice import advice, resolutions

    declared, synthesizer = promise(asked, chosen)
    planned = synthesizer.plan(rows)
    warnings = [*_independent_groups(synthesizer, planned), *advice(declared, planned)]
    warnings += undecided(asked.schema, declared)
    return declared, synthesizer, planned, resolutions(declared, planned), warnings


def _independent_groups(synthesizer: "Synthesizer", plan: "Promise") -> list[str]:
    """Say how many groups of columns will be independent, and how many with a delta."""
    from privmeasure.tables.advice import USUAL_DELTA, independent_groups_advice

    groups = synthesizer.independent_groups(plan.rows)
    asked = groups > 1 and not plan.privacy.delta
    return independent_groups_advice(
        groups, synthesizer.independent_groups(plan.rows, delta=USUAL_DELTA) if asked else None
    )


def _write_page(
    path: "Path",
    schema: "Schema",
    synthesizer: "Synthesizer",
    plan: "Promise",
    epsilons: "list[Any]",
    warnings: list[str],
) -> None:
    """Write the page of a plan, with plans around it: other numbers of rows, other rows per person."""
    from privmeasure.report.planning import plan_page

    around = sorted({max(1, round(plan.rows * factor)) for factor in SHOWN_FACTORS})
    page = plan_page(
        schema,
        plan,
        epsilons=epsilons,
        rows=[synthesizer.plan(rows) for rows in around],
        per_person=synthesizer.guarantees_per_person(plan.rows),
        choice=synthesizer.choice,
        warnings=warnings,
    )
    write_text(path, page)


def _figures(plan: "Promise") -> dict[str, Any]:
    """Return what a table of plans says of one; a tree of columns has no depth of its own, but columns."""
    found: dict[str, Any] = {"epsilon": str(plan.privacy.epsilon), "guarantee": plan.guarantee, "vacuous": plan.vacuous}
    if plan.joint:
        return found | {"depth": plan.trees[0].depth}
    best, worst = _shares(plan)
    return found | {"best_column": best, "worst_column": worst}


def _shares(plan: "Promise") -> tuple[float, float]:
    """Return the guarantees of the best and the worst column, as shares of their ranges."""
    own = [column.guarantee / column.diameter for column in plan.trees if column.levels]
    return min(own, default=0.0), max(own, default=0.0)


def _varied(plan: "Promise", what: str) -> str:
    return f"{float(plan.privacy.epsilon):g}" if what == "epsilon" else f"{plan.privacy.rows_per_person}"


def _of_trees(plans: "list[Plan]", what: str) -> tuple[str, list[str], list[list[str]]]:
    lines = [
        [_varied(other, what), f"{other.depth}", f"{other.guarantee:.4g}{' (says nothing)' * other.vacuous}"]
        for other in plans
    ]
    return f"What another {_called(what)} would guarantee", [what, "depth", "expected W1 at most"], lines


def _of_columns(plans: "list[ColumnPlan]", what: str) -> tuple[str, list[str], list[list[str]]]:
    lines = []
    for other in plans:
        best, worst = (f"{share:.3g}" for share in _shares(other))
        lines.append([_varied(other, what), best, worst, f"{other.tree_pairs + other.extra_pairs}"])
    title = f"What another {_called(what)} would guarantee: expected W1 of a column, as a share of its range"
    return title, [what, "best column", "worst column", "pairs"], lines


def _called(what: str) -> str:
    return what if what == "epsilon" else "number of rows per person"

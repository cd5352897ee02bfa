"""`privmeasure plan`: the guarantee, before any data are opened."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from privmeasure.cli import options, terminal
from privmeasure.cli.missing import missing_cells, show_missing_cells, undecided
from privmeasure.cli.promise import Asked, Chosen, promise

if TYPE_CHECKING:
    from privmeasure.plans.columns import ColumnPlan
    from privmeasure.plans.plan import Plan
    from privmeasure.plans.promise import Promise

SHOWN_EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "5", "10")


def plan(
    *,
    asked: Asked,
    rows: Annotated[int, typer.Option("--rows", min=1, help="The number of rows to plan for: public, or a guess.")],
    chosen: Chosen,
    epsilons: Annotated[str, typer.Option("--epsilons", help="The epsilons of the table, to compare.")] = ",".join(
        SHOWN_EPSILONS
    ),
    voice: terminal.Voice,
) -> None:
    """Show what would be measured and guaranteed. Reads the schema alone: nothing private, nothing spent.

    The guarantee bounds the expected 1-Wasserstein distance between the table and its release: how far a row has to
    move, on average, as a share of the declared range. Each column shows how finely it will be told apart.

    Examples:

      privmeasure plan --schema people.toml --epsilon 1 --neighbours add-remove --rows 5000
      privmeasure plan --schema people.toml --epsilon 1/2 --neighbours replace --rows 5000 --columns age,sex --json
    """
    from privmeasure.tables.advice import advice, resolutions

    with terminal.progress("planning", shown=voice.in_words):
        declared, synthesizer = promise(asked, chosen)
        planned = synthesizer.plan(rows)
        compared = synthesizer.guarantees(
            rows, [options.read_epsilon(text, "epsilons") for text in epsilons.split(",")]
        )
        resolved = resolutions(declared, planned)
        warnings = [*advice(declared, planned), *undecided(asked.schema, declared)]
    found = {
        "plan": planned.to_json(),
        "choice": synthesizer.choice,
        "guarantee": planned.guarantee,
        "vacuous": planned.vacuous,
        "columns": [column.to_json() for column in resolved],
        "missing_cells": missing_cells(declared),
        "warnings": warnings,
        "epsilons": [_figures(other) for other in compared],
    }
    voice.answer(found, f"{planned}\nchosen     {planned.mechanism!r}: {synthesizer.choice}")
    if voice.in_words:
        lines = [[column.name, f"{column.cuts}", column.resolved] for column in resolved]
        terminal.table("\nHow finely each column is told apart", ["column", "cuts", "resolved to"], lines)
        if declared.groups:
            print("Columns of a group share the cuts of one tree: above, a group counts as one column.")
        show_missing_cells(declared, voice)
        terminal.table(*(_of_trees(compared) if planned.joint else _of_columns(compared)))
    voice.warn(*warnings)


def _figures(plan: "Promise") -> dict[str, Any]:
    """Return what the table of epsilons says of one plan; a tree of columns has no depth of its own."""
    found: dict[str, Any] = {"epsilon": str(plan.privacy.epsilon), "guarantee": plan.guarantee, "vacuous": plan.vacuous}
    return found | ({"depth": plan.trees[0].depth} if plan.joint else {})


def _of_trees(plans: "list[Plan]") -> tuple[str, list[str], list[list[str]]]:
    lines = [
        [
            f"{float(other.privacy.epsilon):g}",
            f"{other.depth}",
            f"{other.guarantee:.4g}{' (says nothing)' * other.vacuous}",
        ]
        for other in plans
    ]
    return "What another epsilon would guarantee", ["epsilon", "depth", "expected W1 at most"], lines


def _of_columns(plans: "list[ColumnPlan]") -> tuple[str, list[str], list[list[str]]]:
    lines = []
    for other in plans:
        own = [column.guarantee / column.diameter for column in other.columns if column.levels]
        best, worst = (f"{pick(own, default=0.0):.3g}" for pick in (min, max))
        lines.append([f"{float(other.privacy.epsilon):g}", best, worst, f"{other.tree_pairs + other.extra_pairs}"])
    heads = ["epsilon", "best column", "worst column", "pairs"]
    return "What another epsilon would guarantee: expected W1 of a column, as a share of its range", heads, lines

"""The page of a plan: what would be guaranteed, for which epsilon and how many rows. Public: no data are opened."""

from collections.abc import Sequence
from typing import Any

from privmeasure.plans.columns import ColumnPlan
from privmeasure.plans.promise import Promise
from privmeasure.report import promises
from privmeasure.report.canvas import percent
from privmeasure.report.pages import NONE, Album, Picture, render
from privmeasure.report.public import belief_picture
from privmeasure.report.words import belief_heads, belief_rows, promise_words, strength
from privmeasure.tables.advice import ColumnResolution, lost_cells, resolutions
from privmeasure.tables.schema import Schema


def plan_page(
    schema: Schema,
    plan: Promise,
    *,
    epsilons: Sequence[Promise],
    rows: Sequence[Promise],
    per_person: Sequence[Promise] = (),
    choice: str = "",
    warnings: Sequence[str] = (),
) -> str:
    """Return the page of a plan as HTML: one file, nothing to load.

    `epsilons`, `rows` and `per_person` are plans at other epsilons, numbers of rows and rows per person.
    """
    album, privacy = Album(), plan.privacy
    resolved = resolutions(schema, plan)
    lost = {cells.name: cells for cells in lost_cells(schema)}
    shares = [_promise(column) for column in resolved]
    return render(
        "plan.html",
        title=f"A plan: {len(schema.data)} columns, {plan.rows:,} rows, epsilon {float(privacy.epsilon):g}",
        lead=_lead(plan),
        contents=_contents(bool(warnings), bool(per_person)),
        warnings=list(warnings),
        promise_words=promise_words(privacy, released=False),
        odds=belief_picture(album, privacy),
        epsilon_words="A larger epsilon blurs less and protects less: choose the smallest one whose distances you can "
        "live with.",
        **_by_epsilon(schema, epsilons),
        far_below=FAR_BELOW,
        epsilons=_curve(album, epsilons, "epsilon", plan),
        rows_words="The number of rows is a guess here, or public. The same epsilon protects every person alike, "
        "however many they are: more rows only make it more accurate.",
        rows=_curve(album, rows, "rows", plan),
        **_tables(schema, rows, "rows", "rows"),
        column_rows=[_column_row(c, p, lost[c.name]) for c, p in zip(resolved, shares, strict=True)],
        errors=album.add(
            promises.errors(shares),
            "How far values are moved at the most, on average over the rows, as a share of each column's range.",
            "A bar for each column. " + "; ".join(f"{p.name}: {p.words(p.guarantee)}" for p in shares[:12]),
        ),
        pairs_words=_pairs_words(plan),
        pair_rows=[_pair_row(other) for other in epsilons if isinstance(other, ColumnPlan)],
        persons_words=_persons_words(schema),
        persons=_curve(album, per_person, "rows_per_person", plan) if per_person else None,
        **_tables(schema, per_person, "rows_per_person", "persons"),
        budget=album.add(
            promises.budget(plan),
            "How epsilon would be divided among what is measured.",
            "Bars: " + "; ".join(f"{what}: {value:.3g}" for what, value, _ in promises.spending(plan)),
        ),
        budget_rows=[[what, f"{value:.4g}", noise] for what, value, noise in promises.spending(plan)],
        mechanism=_mechanism(plan, choice),
        said=str(plan),
    )


FAR_BELOW = (
    "Guarantees hold for whatever data, the worst included, so errors are usually far below them. How far cannot be "
    "said of these data before they are released: that would be a look at them. The page of the release then says what "
    "is proved of it, and what is typical."
)


def _by_epsilon(schema: Schema, plans: Sequence[Promise]) -> dict[str, Any]:
    """Return one table of what each epsilon protects, and what it guarantees."""
    errors = _tables(schema, plans, "epsilon", "epsilon")
    rows = []
    for plan, row in zip(plans, errors["epsilon_rows"], strict=True):
        rows.append([row[0], strength(plan.privacy), *belief_rows([plan.privacy], (0.5,))[0][1:], *row[1:]])
    beliefs = [f"50 % sure of {what}: afterwards" for what in belief_heads(plans[0].privacy, "")[1:]]
    heads = ["epsilon", "in words", *beliefs, *(f"{name}: guaranteed" for name in errors["epsilon_heads"][1:])]
    return {"epsilon_heads": heads, "epsilon_rows": rows}


def _lead(plan: Promise) -> str:
    privacy = plan.privacy
    hidden = "whether a person is in the table" if privacy.neighbours == "add-remove" else "what a person's rows say"
    protects = f"which protects {hidden}"
    return (
        f"What a release would measure and guarantee with epsilon = {float(privacy.epsilon):g} "
        f"({protects}{privacy.owner}) and {plan.rows:,} {privacy.counted}"
        f" ({'a public number' if plan.rows_are == 'public' else 'assumed for this plan'})."
    )


def _mechanism(plan: Promise, choice: str) -> str:
    why = f", because {choice}" if choice else ""
    return f"Mechanism: {plan.mechanism}{why}. Neighbouring tables: {plan.privacy.neighbours}."


def _contents(warned: bool, persons: bool) -> list[tuple[str, str]]:
    contents = [("warnings", "Before you spend")] * warned
    contents += [("promise", "One person"), ("epsilon", "Epsilon"), ("rows", "Rows"), ("columns", "Columns")]
    return [
        *contents,
        ("pairs", "Pairs"),
        *([("persons", "Rows per person")] * persons),
        ("budget", "Budget"),
        ("experts", "For experts"),
    ]


def _persons_words(schema: Schema) -> str:
    if schema.person is None:
        return (
            "Where a person may have several rows, epsilon protects all of them together, and the noise grows with "
            "their number. All lines are for the same number of rows in all. The number is published, and you vouch "
            "for it; a schema that names the person makes it true."
        )
    return (
        "All lines are for the same number of kept rows. Keeping more rows of each person keeps more rows in all, "
        "which is private, and multiplies the noise. Choose it from knowledge of the subject: it is published."
    )


def _promise(column: ColumnResolution) -> promises.ColumnPromise:
    share = min(1.0, column.guarantee / column.range) if column.range > 0 else 0.0
    return promises.ColumnPromise(column.name, column.text, share, None, None, column.column)


def _column_row(column: ColumnResolution, promise: promises.ColumnPromise, lost: Any) -> list[str]:
    gone = lost.missing if lost.missing == lost.unread else f"{lost.missing}; unread: {lost.unread}"
    return [column.name, column.text, promise.words(promise.guarantee), gone]


def _curve(album: Album, plans: Sequence[Promise], against: str, chosen: Promise) -> Picture:
    told = {"epsilon": "epsilon", "rows": "the number of rows"}.get(against, "the rows per person")
    ends = [max(promises.shares_of_columns(plan), default=0.0) for plan in (plans[0], plans[-1])]
    whole = "of the whole space" if chosen.joint else "of the columns, the best and the worst at the edges of the band"
    return album.add(
        promises.guarantees(plans, against=against, chosen=chosen),
        f"The guarantee {whole}, against {told}: how far values are moved at most, as a share of the range. At 100 % "
        "it says nothing.",
        f"Curve that goes from {percent(ends[0])} to {percent(ends[1])} of the range as {told} grows.",
    )


def _tables(schema: Schema, plans: Sequence[Promise], against: str, name: str) -> dict[str, Any]:
    """Return a table with a line for each plan: what is guaranteed of the first columns, in their own units."""
    shown = list(schema.data)[:6]
    heads = [{"epsilon": "epsilon", "rows": "rows"}.get(against, "rows per person"), *shown]
    rows = []
    for plan in plans:
        own = {column.name: _promise(column) for column in resolutions(schema, plan)}
        value = {"epsilon": f"{float(plan.privacy.epsilon):g}", "rows": f"{plan.rows:,}"}
        first = value.get(against, f"{plan.privacy.rows_per_person}")
        rows.append([first, *(own[column].words(own[column].guarantee) for column in shown)])
    return {f"{name}_heads": heads, "person_rows" if name == "persons" else f"{name}_rows": rows}


def _pairs_words(plan: Promise) -> str:
    if not isinstance(plan, ColumnPlan):
        return (
            "One tree of cells measures all columns together, so every pair is there, as finely as the columns are cut."
        )
    if not plan.tree_pairs:
        return "No pair of columns can be afforded: columns would be released one by one, as if they were independent."
    number = f" Of all {plan.agreement_pairs} pairs one number tells whether like halves of two columns go together."
    agreed = number if plan.agreement_pairs else ""
    parts = f" They leave {plan.parts} groups of columns that are independent of each other." if plan.parts > 1 else ""
    return (
        f"{plan.tree_pairs + plan.extra_pairs} pairs of columns would be measured together, chosen privately as those "
        f"that tell most of each other: {plan.tree_pairs} that join the columns, and {plan.extra_pairs} more."
        f"{parts}{agreed} Of other pairs, and of three columns together, nothing is promised."
    )


def _pair_row(plan: ColumnPlan) -> list[str]:
    possible = plan.active * (plan.active - 1) // 2
    error = f"{plan.pair_error[0]:.2g}" if plan.tree_pairs else NONE
    return [f"{float(plan.privacy.epsilon):g}", f"{plan.tree_pairs}", f"{plan.extra_pairs}", f"{possible}", error]

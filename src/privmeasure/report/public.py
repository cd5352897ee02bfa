"""The page of a release: what was released, under which promise, how far it is from the data, what it looks like.

Public: it reads the release alone, and cannot reach counts, sources, mechanisms or comparisons with the data. So it may
be published with the release, or in its place.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from privmeasure.domains import Points
from privmeasure.errors import ArgumentError
from privmeasure.ledger.records import schema_digest
from privmeasure.plans.promise import Promise
from privmeasure.privacy import Privacy
from privmeasure.releases.bands import BLIND, TypicalError
from privmeasure.report import distributions, promises
from privmeasure.report.pages import NONE, Album, Picture, render
from privmeasure.report.words import (
    GLOSSARY,
    belief_rows,
    describe_shares,
    exact,
    not_promised,
    plus_minus,
    promise_words,
    what_is_lost,
)
from privmeasure.tables.advice import lost_cells
from privmeasure.tables.columns.kinds import to_fields
from privmeasure.tables.variables import Variable, variables

MOST_PICTURED = 30
"""Columns with a picture of their own; a page of more would be too long, and too large."""
MOST_HEAT_MAPS = 12
MOST_SAMPLED = 1 << 18
"""Rows that pictures are drawn from."""


def release_page(release: Any, *, typical: TypicalError | None = None, name: str = "the.release") -> str:
    """Return the page of a release as HTML: one file, nothing to load, under a megabyte.

    `typical` is what `typical_error` says of the release; without it there are no bands. `name` is that of the file,
    for the commands that are shown.
    """
    schema, plan = getattr(release, "schema", None), release.plan
    found = variables(release.domain if schema is None else schema)
    certified = quick_certificate(release)
    columns = promises.column_promises(release, certified, typical)
    points = _points(release)
    album = Album()
    pictured = found[:MOST_PICTURED]
    pairs = _pairs(release, found)
    return render(
        "public.html",
        title=_title(release, found),
        private=release.private,
        lead=_lead(release, found),
        contents=_contents(has_pairs=bool(pairs), has_schema=schema is not None),
        cards=_cards(release, columns, typical),
        promise_words=promise_words(plan.privacy),
        odds=belief_picture(album, plan.privacy),
        beliefs=belief_rows(plan.privacy),
        not_promised=not_promised(plan.privacy),
        **_distances(album, release, found, columns, certified, typical),
        columns_title="Every column" if schema is not None else "Every coordinate",
        columns_words=_columns_words(typical),
        columns=[_column(album, v, points, typical) for v in pictured],
        columns_left=_left(len(found)),
        pairs=[_pair(album, one, two, points) for one, two, _ in pairs[:MOST_HEAT_MAPS]],
        pairs_words=_pairs_words(plan, len(pairs)),
        pair_heads=["pair", "bits that one tells of the other", "typical W1 of the pair", "seldom above"],
        pair_rows=[] if plan.joint else [_pair_row(pair, typical) for pair in pairs],
        budget=album.add(
            promises.budget(plan),
            "How epsilon was divided among what was measured. What was not measured cost nothing.",
            "Bars: " + "; ".join(f"{what}: {value:.3g}" for what, value, _ in promises.spending(plan)),
        ),
        budget_words=_budget_words(plan),
        budget_rows=[[what, f"{value:.4g}", noise] for what, value, noise in promises.spending(plan)],
        declared=[] if schema is None else _declared(schema),
        schema_lists=[] if schema is None else _schema_lists(schema),
        use_shell=f"privmeasure inspect {name}\nprivmeasure sample {name} -o synthetic.csv",
        use_python=f'import privmeasure as pm\n\nrelease = pm.load("{name}")\nrows = release.sample()',
        identity=_identity(release, schema),
        citation=_citation(release, found),
        glossary=GLOSSARY,
    )


# --------------------------------------------------------------------------------------------------- the promise


def belief_picture(album: Album, privacy: Privacy) -> Picture:
    """Return the picture of beliefs before and after a release."""
    low, high = (100 * float(end[0]) for end in promises.beliefs(privacy, np.array([0.5])))
    return album.add(
        promises.odds(privacy),
        "From a belief before the release (below) to what it can become after it (left), for epsilon = "
        f"{float(privacy.epsilon):g}. The nearer to the dashed line, the less anybody learns.",
        f"Band around the diagonal: a belief of 50 % becomes {low:.2g} % at least and {high:.2g} % at most.",
    )


# -------------------------------------------------------------------------------------------------- the first look


def _title(release: Any, found: Sequence[Variable]) -> str:
    what = "columns" if hasattr(release, "schema") else "coordinates"
    return f"A private release: {len(found)} {what if len(found) > 1 else what[:-1]}, {release.total:,} rows"


def _lead(release: Any, found: Sequence[Variable]) -> str:
    plan, privacy = release.plan, release.plan.privacy
    together = "One tree of cells holds all columns" if plan.joint else "Columns were measured one by one, and in pairs"
    names = [distributions.short(v.name, 30) for v in found]
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return (
        f"Synthetic rows with {listed}. They were drawn from noisy counts of a sensitive table, under pure "
        "differential "
        f"privacy with epsilon = {float(privacy.epsilon):g} ({privacy.neighbours}{privacy.owner}); no row of the "
        "table is "
        "in it. "
        f"{together}."
    )


def _contents(*, has_pairs: bool, has_schema: bool) -> list[tuple[str, str]]:
    contents = [("short", "In short"), ("promise", "One person"), ("distance", "Distance"), ("columns", "Columns")]
    contents += [("pairs", "Pairs")] * has_pairs + [("budget", "Budget")] + [("schema", "Declared")] * has_schema
    return [*contents, ("use", "Use and cite"), ("words", "Words")]


def _cards(
    release: Any, columns: Sequence[promises.ColumnPromise], typical: TypicalError | None
) -> list[dict[str, Any]]:
    privacy = release.plan.privacy
    _, high = promises.beliefs(privacy, np.array([0.5]))
    safe = [
        "This page, the release, and whatever is made of them: publish them as you like."
        if release.private
        else "Nothing: the noise came from a seed, for a test.",
        "The sensitive table itself is not in it, and no further question to it is answered by it.",
    ]
    meant = [
        f"Epsilon = {float(privacy.epsilon):g}: who was 50 % sure of something about one person can be "
        f"{100 * float(high[0]):.2g} % sure afterwards, at the most.",
        "Smaller protects better, and blurs more. It is spent, once and for all; more rows from this release "
        "cost nothing.",
    ]
    return [
        {"title": "What is safe", "texts": safe},
        {"title": "What is lost", "texts": what_is_lost(release, columns, typical)},
        {"title": "What epsilon meant", "texts": meant},
    ]


# ---------------------------------------------------------------------------------------------------- distances


def quick_certificate(release: Any) -> Any:
    """Return the quick certificate, or None for a release that does not hold what it needs."""
    measured = sum(1 for tree in release.plan.trees if tree.levels)
    beta = 0.05 if release.plan.joint or measured < 50 else (measured // 10 + 1) / 100
    try:
        return release.certificate(min(beta, 0.5), quick=True)
    except ArgumentError:
        return None


def _distances(
    album: Album,
    release: Any,
    found: Sequence[Variable],
    columns: Sequence[promises.ColumnPromise],
    certified: Any,
    typical: TypicalError | None,
) -> dict[str, Any]:
    plan = release.plan
    words = [
        "The distance on this page is the 1-Wasserstein distance: how far values would have to be moved, on "
        "average over "
        "the rows, to turn the released ones into those of the table. Every statistic that changes slowly with "
        "the values, "
        "such as a mean, is as near as that.",
    ]
    if plan.joint and not plan.vacuous:
        words.append(
            f"For whole rows the guarantee is {plan.guarantee:.3g}, where the whole space has diameter "
            f"{plan.diameter:.3g}. "
            "It holds for each column as well, and is what the table says of one of them."
        )
    elif plan.joint:
        words.append("At this number of rows, dimension and epsilon nothing is guaranteed of whole rows.")
    else:
        words.append("Each column has a guarantee of its own; nothing is promised for whole rows.")
    by_name = {v.name: v for v in found}
    even = [c for c in columns if 0 < c.best < 1 and by_name[c.name].scale in ("number", "date")]
    chosen = dict.fromkeys(
        sorted(even, key=lambda c: not by_name[c.name].unit)[:1] + sorted(even, key=lambda c: -c.best)[:1]
    )
    scales = [_scale(album, c, by_name[c.name]) for c in chosen]
    heads = ["column", "told apart to", "guaranteed"]
    heads += ["certified"] * (certified is not None) + ["typical"] * (typical is not None)
    rows = []
    for c in columns:
        row = [c.name, c.resolved or NONE, c.words(c.guarantee)]
        row += [c.words(c.certificate)] * (certified is not None) + [c.words(c.typical)] * (typical is not None)
        rows.append(row)
    notes = ["Guaranteed: the expected distance at most, known before anything was measured."]
    if certified is not None:
        notes.append(
            f"Certified: the distance of this very release at most, with probability {1 - certified.beta:.3g}"
            + ("" if plan.joint else " for all columns at once")
            + ". Where it is above the guarantee, use the guarantee."
        )
    if typical is not None:
        notes.append(f"Typical: from {typical.runs} runs. {BLIND}")
    joint = []
    if typical is not None:
        floor = "" if typical.joint.floor is None else f"; two samples of one table: {typical.joint.floor:.3g}"
        joint.append(["whole rows, typical" + floor, f"{typical.joint.typical:.3g}", f"{typical.joint.high:.3g}"])
        if plan.joint:
            for names, spread in typical.pairs.items():
                joint.append([" and ".join(names) + ", typical", f"{spread.typical:.3g}", f"{spread.high:.3g}"])
    shown = [f"{c.name}: {c.words(c.best)} at most" for c in columns[:12]]
    return {
        "distance_words": words,
        "scales": scales,
        "errors": album.add(
            promises.errors(columns),
            "How far values are moved, column by column, as a share of the column's range; further left is "
            "nearer to the "
            "data. The bar ends at the better of the two bounds.",
            "A line for each column. " + "; ".join(shown),
        ),
        "promise_heads": heads,
        "promise_rows": rows,
        "distance_notes": notes,
        "joint_rows": joint,
    }


def _scale(album: Album, c: promises.ColumnPromise, v: Variable) -> Picture:
    low, high = (v.show(end) for end in v.bounds[0])
    unit = f" {v.unit}" if v.unit else ""
    return album.add(
        promises.distance_in_units(c, f"{low}{unit}", f"{high}{unit}"),
        f"What that means for {c.name}: the green bar is as long as values are moved at most, on average over the "
        "rows, "
        f"{c.words(c.best)}, on the whole range from {low} to {high}{unit}.",
        f"A bar of {c.words(c.best)} on the range of {c.name}, from {low} to {high}{unit}.",
    )


# ------------------------------------------------------------------------------------------------ columns and pairs


def _points(release: Any) -> Points:
    schema, number = getattr(release, "schema", None), min(release.total, MOST_SAMPLED)
    rows = release.sample(number, seed=0)
    points: Points = rows if schema is None else schema.encode(rows.combine_chunks())
    return points


def _columns_words(typical: TypicalError | None) -> str:
    if typical is None:
        return "Shares of the released rows."
    return (
        "Shares of the released rows. The thin lines are bands: the share in the data lies there about "
        f"{round(10 * typical.level)} times in 10, by estimate."
    )


def _left(count: int) -> str:
    if count <= MOST_PICTURED:
        return ""
    return f"And {count - MOST_PICTURED} more columns, which are in the tables. `privmeasure.report.plots` draws them."


def _column(album: Album, v: Variable, points: Points, typical: TypicalError | None) -> dict[str, Any]:
    own = points[:, v.places]
    shares = v.shares(own)
    bands = None if typical is None else typical.bins[v.name]
    shown = shares if bands is None else bands.shares
    alt = describe_shares(v, shares, own)
    pictures = [album.add(distributions.distribution(v, shown, bands), _caption(v), alt)]
    if v.scale == "date" and len(own):
        pictures.append(
            album.add(
                distributions.calendar(v, own), "The same as a calendar: the darker, the more rows.", f"Calendar. {alt}"
            )
        )
    return {"name": v.name, "facts": _facts_of(v, own, typical), "pictures": pictures}


def _caption(v: Variable) -> str:
    return {
        "values": f"Share of rows with each value of {v.name}.",
        "place": f"Where the rows of {v.name} lie. There are no outlines: the map shows released cells alone.",
    }.get(v.scale, f"Distribution of {v.name} in the released rows.")


def _facts_of(v: Variable, own: Points, typical: TypicalError | None) -> str:
    if typical is None or v.name not in typical.means:
        return ""
    unit = f" {v.unit}" if v.unit else ""
    mean = typical.means[v.name]
    if v.scale == "values":
        return f"Mean {plus_minus(mean)}." if v.has_quantiles else ""
    return f"Mean {plus_minus(mean)}{unit}; median {plus_minus(typical.quantiles[v.name][0.5])}{unit}."


def _pairs(release: Any, found: Sequence[Variable]) -> list[tuple[Variable, Variable, float]]:
    """Return the pairs that were measured together, or all of one tree; places have maps of their own."""
    flat = {v.name: v for v in found if v.scale != "place"}
    if release.plan.joint:
        return [(one, two, math.nan) for one, two in combinations(flat.values(), 2)]
    if not hasattr(release, "schema"):
        by_factor = [
            next((v for v in found if v.places.start == place.start), None) for place in release.domain.columns
        ]
        told = sorted(release.pair_information(), key=lambda pair: -pair[2])
        return [
            (a, b, bits)
            for i, j, bits in told
            if (a := by_factor[i]) and (b := by_factor[j]) and {a.name, b.name} <= set(flat)
        ]
    return [(flat[a], flat[b], bits) for a, b, bits in release.pair_information() if a in flat and b in flat]


def _pair(album: Album, one: Variable, two: Variable, points: Points) -> dict[str, Any]:
    table, (rows, columns) = distributions.pair_shares(one, two, points)
    i, j = np.unravel_index(int(np.argmax(table)), table.shape)
    first = rows[i] if rows else one.show(float(one.edges[0][i : i + 2].mean()))
    second = columns[j] if columns else two.show(float(two.edges[0][j : j + 2].mean()))
    return {
        "name": f"{one.name} and {two.name}",
        "picture": album.add(
            distributions.heat_map(one, two, points),
            "The darker, the more of the released rows.",
            f"Heat map of {one.name} and {two.name}; the fullest cell has {one.name} {first} and {two.name} {second}, "
            f"{100 * float(table.max()):.2g} % of the rows.",
        ),
    }


def _pairs_words(plan: Promise, count: int) -> str:
    if plan.joint:
        return "One tree of cells measured all columns together. Heat maps of the released rows:"
    more = f" The {MOST_HEAT_MAPS} that tell most of each other have a picture." if count > MOST_HEAT_MAPS else ""
    return (
        f"{count} pairs of columns were chosen, privately, as those that tell most of each other, and measured "
        "together. "
        f"Other pairs follow from these, as far as they do.{more}"
    )


def _pair_row(pair: tuple[Variable, Variable, float], typical: TypicalError | None) -> list[str]:
    one, two, bits = pair
    spread = None if typical is None else typical.pairs.get((one.name, two.name))
    said = [NONE, NONE] if spread is None else [f"{spread.typical:.3g}", f"{spread.high:.3g}"]
    return [f"{one.name} and {two.name}", f"{bits:.3f}", *said]


# --------------------------------------------------------------------------------------------------------- the rest


def _budget_words(plan: Promise) -> str:
    spent, epsilon = plan.spent, plan.privacy.epsilon
    part = "all of it" if spent == epsilon else f"{exact(spent)} of it"
    return (
        f"Epsilon is {exact(epsilon)}; {part} was spent, in exact fractions. Every count got whole-number "
        "noise from "
        "a key of the operating system, which was destroyed. What is measured with more of epsilon has less noise."
    )


def _declared(schema: Any) -> list[list[str]]:
    lost = {cells.name: cells for cells in lost_cells(schema)}
    rows = []
    for name, column in schema.columns.items():
        fields = {field: value for field, value in to_fields(column).items() if field not in ("type", "nullable")}
        told = "; ".join(f"{field}: {_shown(value)}" for field, value in fields.items())
        gone = lost.get(name)
        where = (
            ""
            if gone is None
            else gone.missing
            if gone.missing == gone.unread
            else f"{gone.missing}; unread: {gone.unread}"
        )
        rows.append([name, column.tag(), told or NONE, where or NONE])
    return rows


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{len(value)} groups"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 160 else f"{len(value)} in all" if isinstance(value, list) else text[:160] + "…"


def _schema_lists(schema: Any) -> list[tuple[str, list[str]]]:
    found = []
    if schema.never:
        found.append(("Facts: what never occurs, in any row", list(schema.never)))
    if schema.groups:
        found.append(("Groups of columns that were released together", [", ".join(group) for group in schema.groups]))
    if schema.person is not None:
        found.append(("Whose row it is", [f"{schema.person!r} says it; it is neither measured nor written."]))
    return found


def _identity(release: Any, schema: Any) -> list[tuple[str, str]]:
    origin, plan = release.origin, release.plan
    unknown = "unknown: an older version made it"
    found = [
        ("id", unknown if origin is None else origin.id),
        ("made with", unknown if origin is None else f"privmeasure {origin.version}"),
        ("mechanism", f"{plan.mechanism}, noise: {plan.law}"),
        (
            "promise",
            f"epsilon = {exact(plan.privacy.epsilon)}, delta = 0, {plan.privacy.neighbours}{plan.privacy.owner}",
        ),
        (
            plan.privacy.counted,
            f"{release.total:,} ({'public' if plan.rows_are == 'public' else 'released, with noise'})",
        ),
    ]
    if schema is not None:
        found.append(("digest of the schema", schema_digest(schema.to_json())))
    return found


def _citation(release: Any, found: Sequence[Variable]) -> str:
    origin, privacy = release.origin, release.plan.privacy
    what = "unknown id" if origin is None else f"id {origin.id}"
    by = "privmeasure" if origin is None else f"privmeasure {origin.version}"
    return (
        f"Synthetic data of {release.total:,} rows and {len(found)} {'column' if len(found) == 1 else 'columns'}, "
        "released "
        f"under pure differential privacy (epsilon = {float(privacy.epsilon):g}, {privacy.neighbours}), {by}, {what}."
    )

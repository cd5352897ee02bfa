"""The page of a release: what was released, under which promise, how far it is from the data, what it looks like.

Public: it reads the release alone, and cannot reach counts, sources, mechanisms or comparisons with the data. So it may
be published with the release, or in its place.
"""

import shlex
from collections.abc import Sequence
from functools import partial
from typing import Any

from privmeasure.errors import ArgumentError
from privmeasure.privacy import Privacy
from privmeasure.releases.bands import BLIND, TypicalError
from privmeasure.report import promises, sections
from privmeasure.report.canvas import percent, short
from privmeasure.report.pages import NONE, Album, Picture, render
from privmeasure.report.words import (
    WEAK,
    WEAK_ABOVE,
    belief_heads,
    belief_rows,
    compared_beliefs,
    not_promised,
    promise_words,
    rows_of_noise,
    show_percent,
    strength,
    what_is_lost,
    words_on,
)
from privmeasure.tables.variables import Variable, variables


def release_page(release: Any, *, typical: TypicalError | None = None, name: str = "the.release") -> str:
    """Return the page of a release as HTML: one file, nothing to load, under a megabyte.

    `typical` is what `typical_error` says of the release; without it there are no bands. `name` is that of the file,
    for the commands that are shown.
    """
    schema, plan = getattr(release, "schema", None), release.plan
    found = variables(release.domain if schema is None else schema)
    certified = quick_certificate(release)
    points = sections.drawn_points(release)
    columns = promises.column_promises(release, certified, typical, sections.medians(release, found))
    album = Album()
    pictured = found[: sections.MOST_PICTURED]
    noise = rows_of_noise(plan) / max(1, release.total)
    pairs, told = sections.drawn_pairs(release, found), sections.pair_rows(release, found, typical)
    page = partial(
        render,
        "public.html",
        title=_title(release, found),
        private=release.private,
        lead=_lead(release, found),
        contents=_contents(has_pairs=bool(pairs or told), has_schema=schema is not None),
        cards=_cards(release, columns, certified, typical),
        promise_words=promise_words(plan.privacy),
        odds=belief_picture(album, plan.privacy),
        belief_heads=belief_heads(plan.privacy, "before the release"),
        beliefs=belief_rows([plan.privacy], (0.01, 0.1, 0.5, 0.9)),
        compared_heads=["epsilon", "in words", *belief_heads(plan.privacy, "")[1:]],
        compared_beliefs=compared_beliefs(plan.privacy),
        not_promised=not_promised(plan.privacy),
        **_distances(album, release, found, columns, certified, typical),
        columns_title="Every column" if schema is not None else "Every coordinate",
        columns_words=sections.columns_words(typical),
        columns=[
            sections.column_section(album, v, points, typical, sections.stated_quantiles(release, v)) for v in pictured
        ],
        columns_left=sections.columns_left(len(found)),
        pairs=[sections.pair_section(album, one, two, points, noise) for one, two in pairs[: sections.MOST_HEAT_MAPS]],
        pairs_words=sections.pairs_words(release, found, len(pairs)),
        pair_heads=sections.pair_heads(release),
        pair_rows=told,
        budget=album.add(
            promises.budget(plan),
            "How epsilon was divided among what was measured. What was not measured cost nothing.",
            "Bars: " + "; ".join(f"{what}: {value:.3g}" for what, value, _ in promises.spending(plan)),
        ),
        budget_words=sections.budget_words(plan),
        budget_rows=[[what, f"{value:.4g}", noise] for what, value, noise in promises.spending(plan)],
        declared=[] if schema is None else sections.declared_rows(schema),
        schema_lists=[] if schema is None else sections.schema_lists(schema),
        use_shell=f"privmeasure inspect {shlex.quote(name)}\nprivmeasure sample {shlex.quote(name)} -o synthetic.csv",
        use_python=f"import privmeasure as pm\n\nrelease = pm.load({name!r})\nrows = release.sample()",
        identity=sections.identity(release, schema),
        citation=sections.citation(release, found),
    )
    return page(glossary=words_on(page(glossary=[])))


# --------------------------------------------------------------------------------------------------- the promise


def belief_picture(album: Album, privacy: Privacy) -> Picture:
    """Return the picture of beliefs before and after a release."""
    return album.add(
        promises.odds(privacy),
        "From a belief before the release (below) to what it can become after it (left), for epsilon = "
        f"{float(privacy.epsilon):g}. The nearer to the dashed line, the less anybody learns.",
        "Bands around the diagonal. A belief of 50 %: "
        + "; ".join(
            f"{what}: {show_percent(low)} to {show_percent(high)}"
            for what, (low, high) in promises.beliefs(privacy, 0.5).items()
        ),
    )


# -------------------------------------------------------------------------------------------------- the first look


def _title(release: Any, found: Sequence[Variable]) -> str:
    what = "columns" if hasattr(release, "schema") else "coordinates"
    rows = f"{release.total:,} row{'s' * (release.total != 1)}"
    return f"A private release: {len(found)} {what if len(found) > 1 else what[:-1]}, {rows}"


def _lead(release: Any, found: Sequence[Variable]) -> str:
    plan, privacy = release.plan, release.plan.privacy
    together = "All columns were measured together" if plan.joint else "Columns were measured one by one, and in pairs"
    names = [short(v.name, 30) for v in found]
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return (
        f"Synthetic rows with {listed}. They were drawn from noisy counts of a sensitive table; no row was copied "
        f"from it. Every person in it is protected by differential privacy with {privacy.told}{privacy.owner}. "
        f"{together}."
    )


def _contents(*, has_pairs: bool, has_schema: bool) -> list[tuple[str, str]]:
    contents = [("short", "In short"), ("promise", "One person"), ("distance", "Distance"), ("columns", "Columns")]
    contents += [("pairs", "Pairs")] * has_pairs + [("budget", "Budget")] + [("schema", "Declared")] * has_schema
    return [*contents, ("use", "Use and cite"), ("words", "Words")]


def _cards(
    release: Any, columns: Sequence[promises.ColumnPromise], certified: Any, typical: TypicalError | None
) -> list[dict[str, Any]]:
    privacy = release.plan.privacy
    proved = None if certified is None else 1 - certified.beta
    sure = [f"{show_percent(high)} sure {what}" for what, (_, high) in promises.beliefs(privacy, 0.5).items()]
    safe = [
        "This page, the release, and whatever is made of them: publish them as you like."
        if release.private
        else "Nothing: the noise came from a seed, for a test.",
        "The sensitive table itself is not in it, and no further question to it is answered by it.",
    ]
    safe += [f"But epsilon is large, and the promise weak: {WEAK}"] if privacy.epsilon > WEAK_ABOVE else []
    meant = [
        f"How strong the promise is: {strength(privacy)}.",
        f"Epsilon = {float(privacy.epsilon):g}: somebody who was 50 % sure of something about one person can be, "
        f"afterwards and at the most, {' and '.join(sure)}.",
        "Smaller protects better, and blurs more. It is spent, once and for all; more rows from this release "
        "cost nothing.",
    ]
    return [
        {"title": "What is safe", "texts": safe},
        {"title": "What is lost", "texts": what_is_lost(release, columns, proved, typical)},
        {"title": "What epsilon meant", "texts": meant},
    ]


# ---------------------------------------------------------------------------------------------------- distances


ROWS_MOVED = (
    "How far constraints that compare two columns move the rows from the released column, measured on the default "
    "rows. Guarantees are about the released column: on average over the noise, the error of the rows is at most the "
    "guarantee plus this distance. Certificates include it."
)


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
        "The distance on this page is the 1-Wasserstein distance: how far values would have to be moved, on average "
        "over the rows, to turn the released ones into those of the table. Every statistic that changes slowly with "
        "the values, such as a mean, is as near as that.",
    ]
    if plan.joint and not plan.vacuous:
        words.append(
            f"For whole rows the guarantee is {percent(plan.guarantee / plan.diameter)} of the widest range: on "
            "average a row is moved by no more than that part of how far two rows can be apart at all. It holds for "
            "each column as well, and is what the table says of one of them."
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
    heads = ["column", "told apart to"] + ["typical"] * (typical is not None)
    moved = any(c.moved is not None for c in columns)
    heads += ["certified"] * (certified is not None) + ["guaranteed"] + ["rows moved"] * moved
    rows = []
    for c in columns:
        row = [c.name, c.resolved or NONE] + [c.words(c.typical)] * (typical is not None)
        row += [c.words(c.certificate)] * (certified is not None) + [c.words(c.guarantee)]
        rows.append([*row, *([c.words(c.moved)] * moved)])
    terms = []
    if typical is not None:
        terms.append(("typical", f"What to expect, from {typical.runs} rehearsals. {BLIND}"))
    if certified is not None:
        all_columns = "" if plan.joint else " for all columns at once"
        terms.append(
            (
                "certified",
                f"This very release is no farther away than that; {percent(1 - certified.beta)} sure{all_columns}, "
                "whatever the data are. Where it is above the guarantee, use the guarantee.",
            )
        )
    terms.append(
        (
            "guaranteed",
            "No farther away than that on average over the noise, whatever the data are; known before anything was "
            "measured.",
        )
    )
    if moved:
        terms.append(("rows moved", ROWS_MOVED))
    notes = []
    if stretched := [short(c.name, 30) for c in columns if c.stretched]:
        notes.append(
            f"No one amount can be given for {', '.join(stretched)}, because the scale is stretched: the same "
            "distance is a small amount where values are small, and a large one where they are large. In brackets "
            "is what it means for a value at the median, moved down or up."
        )
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
        "distance_terms": terms,
        "scales": scales,
        "errors": album.add(
            promises.errors(columns),
            "How far values are moved, column by column, as a share of the column's range; further left is nearer to "
            "the data. The pale bar ends at the better of the two bounds.",
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
    bounds = (("guaranteed", c.guarantee), ("certified", c.certificate), ("typical", c.typical))
    said = "; ".join(f"{what}: {c.words(share)}" for what, share in bounds if share is not None)
    return album.add(
        promises.distance_in_units(c, f"{low}{unit}", f"{high}{unit}"),
        f"What that means for {c.name}: how far its values are moved, on average over the rows, beside its whole "
        "range. The bars are lengths: they begin at the left end to be compared, and say nothing of where on the "
        "range values are moved.",
        f"Bars beside the range of {c.name}, from {low} to {high}{unit}. {said}.",
    )

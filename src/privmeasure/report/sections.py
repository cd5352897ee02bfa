"""The sections of the page of a release: columns, pairs, budgets, what was declared, which release it is. Public."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from privmeasure.domains import Points
from privmeasure.ledger.records import schema_digest
from privmeasure.origin import ledger_words
from privmeasure.plans.promise import Promise
from privmeasure.releases.bands import TypicalError
from privmeasure.report import distributions, heat
from privmeasure.report.canvas import percent
from privmeasure.report.pages import NONE, Album
from privmeasure.report.words import Quantile, describe_shares, exact, with_band
from privmeasure.tables.advice import ASSUMED, lost_cells
from privmeasure.tables.columns.kinds import to_fields
from privmeasure.tables.variables import Variable, plain_number

MOST_PICTURED = 30
"""Columns with a picture of their own; a page of more would be too long, and too large."""
MOST_HEAT_MAPS = 12
MOST_SAMPLED = 1 << 18
"""Rows that pictures are drawn from."""


def drawn_points(release: Any) -> Points:
    """Return the rows that pictures are drawn from."""
    schema, number = getattr(release, "schema", None), min(release.total, MOST_SAMPLED)
    rows = release.sample(number, seed=0)
    points: Points = rows if schema is None else schema.encode(rows.combine_chunks())
    return points


def stated_quantiles(release: Any, v: Variable) -> Quantile:
    """Return what gives the quantiles of a variable that a release states, as places on its axis."""
    measure = getattr(release, "measure", release)
    return partial(measure.quantile, column=v.places.start)


def medians(release: Any, found: Sequence[Variable]) -> dict[str, float]:
    """Return the medians that a release states, on the axes of the variables that have an order."""
    known = {v.name: stated_quantiles(release, v)(0.5) for v in found if v.has_quantiles}
    return {name: median for name, median in known.items() if not math.isnan(median)}


def columns_words(typical: TypicalError | None) -> str:
    """Say what the pictures of columns show."""
    if typical is None:
        return "Shares of the released rows."
    return (
        "Shares of the released rows. The thin lines are bands: the share in the data lies there about "
        f"{round(10 * typical.level)} times in 10, by estimate."
    )


def columns_left(count: int) -> str:
    """Say how many columns have no picture."""
    if count <= MOST_PICTURED:
        return ""
    return f"And {count - MOST_PICTURED} more columns, which are in the tables. `privmeasure.report.plots` draws them."


def column_section(
    album: Album, v: Variable, points: Points, typical: TypicalError | None, stated: Quantile | None = None
) -> dict[str, Any]:
    """Return the section of a column: its mean, and its pictures. `stated` gives the quantiles of its release."""
    own = points[:, v.places]
    shares = v.shares(own)
    bands = None if typical is None else typical.bins[v.name]
    shown = shares if bands is None else bands.shares
    alt = describe_shares(v, shares, own, stated)
    pictures = [album.add(distributions.distribution(v, shown, bands), _caption(v), alt)]
    if v.scale == "date" and len(own):
        pictures.append(
            album.add(
                heat.calendar(v, own),
                "The same as a calendar: the stronger the colour, the more rows.",
                f"Calendar. {alt}",
            )
        )
    return {"name": v.name, "facts": _facts_of(v, typical), "pictures": pictures}


def _caption(v: Variable) -> str:
    said = {
        "values": f"Share of rows with each value of {v.name}.",
        "place": f"Where the rows of {v.name} lie. There are no outlines: the map shows released cells alone.",
    }.get(v.scale, f"Distribution of {v.name} in the released rows.")
    return " ".join([said, *_axis_words(v)])


def _axis_words(v: Variable) -> list[str]:
    """Say what an axis does that the eye does not expect: stretches, ratios, what lies beyond its ends."""
    texts = []
    breaks = getattr(v.column, "breaks", None)
    if v.scale == "uneven" and breaks:
        knots = [plain_number(float(value)) for value in breaks]
        listed = " and ".join([", ".join(knots[:-1]), knots[-1]] if len(knots) > 1 else knots)
        texts.append(
            f"The axis changes its scale at {listed}: compare the heights of bars between two of these alone, since "
            "bars elsewhere stand for wider or narrower ranges of values."
        )
    elif v.scale == "log":
        texts.append(
            "The axis goes by ratios: bars on the right stand for wider ranges of values than those on the left."
        )
    if v.scale in ("number", "log", "uneven", "date") and hasattr(v.column, "low"):
        low, high = (v.show(end) for end in v.bounds[0])
        after, before = ("after", "before") if v.scale == "date" else ("above", "below")
        texts.append(f"Values {after} {high} are counted at {high}, and values {before} {low} at {low}.")
    return texts


FAR_WIDER, UNSURE = 3, 0.1
"""A mean is worse than the median where its band is so much wider, and wider than that share of the mean itself."""


def _facts_of(v: Variable, typical: TypicalError | None) -> str:
    if typical is None or v.name not in typical.means or v.scale == "values":
        return ""
    unit = f" {v.unit}" if v.unit else ""
    mean, median = typical.means[v.name], typical.quantiles[v.name][0.5]
    often = ("nine" if typical.level == 0.9 else f"{10 * typical.level:g}") + " times in ten"
    said = (
        f"Mean {with_band(mean)}{unit}; median {with_band(median)}{unit}: what the data have lies between the two "
        f"numbers in brackets {often}, by estimate."
    )
    outside = [what for what, band in (("mean", mean), ("median", median)) if not band.low <= band.value <= band.high]
    if outside:
        said += f" The noise has moved the released {' and the '.join(outside)} out of the brackets: use these instead."
    if mean.error > FAR_WIDER * median.error and mean.error > UNSURE * abs(mean.value):
        said += " The mean is far less certain, since few large values decide it: use the median."
    return said


def drawn_pairs(release: Any, found: Sequence[Variable]) -> list[tuple[Variable, Variable]]:
    """Return the pairs that are drawn: measured together, or inside one tree; places have maps of their own."""
    flat = {v.name: v for v in found if v.scale != "place"}
    if release.plan.joint:
        return list(combinations(flat.values(), 2))
    groups = release.schema.groups if hasattr(release, "schema") else ()
    inside = [pair for group in groups for pair in combinations(group, 2)]
    told = [(one, two) for one, two, _ in _measured(release, found)]
    return [(flat[one], flat[two]) for one, two in dict.fromkeys([*told, *inside]) if one in flat and two in flat]


def _measured(release: Any, found: Sequence[Variable]) -> list[tuple[str, str, float]]:
    """Return the pairs of a release of columns by name, those that tell most of each other first."""
    if hasattr(release, "schema"):
        told: list[tuple[str, str, float]] = release.pair_information()
        return told
    starts = {v.places.start: v.name for v in found}
    names = [starts[place.start] for place in release.domain.columns]
    return sorted(((names[i], names[j], bits) for i, j, bits in release.pair_information()), key=lambda pair: -pair[2])


def pair_section(album: Album, one: Variable, two: Variable, points: Points, noise: float) -> dict[str, Any]:
    """Return the section of a pair: its heat map; `noise` is that of a count, as a share of the rows."""
    table, (rows, columns) = heat.pair_shares(one, two, points)
    i, j = np.unravel_index(int(np.argmax(table)), table.shape)
    first = rows[i] if rows else one.show(float(one.edges[0][i : i + 2].mean()))
    second = columns[j] if columns else two.show(float(two.edges[0][j : j + 2].mean()))
    return {
        "name": f"{one.name} and {two.name}",
        "picture": album.add(
            heat.heat_map(one, two, points),
            f"The stronger the colour, the more of the released rows.{_below_noise(table, noise)}",
            f"Heat map of {one.name} and {two.name}; the fullest cell has {one.name} {first} and {two.name} {second}, "
            f"{percent(float(table.max()))} of the rows.",
        ),
    }


def _below_noise(table: Any, noise: float) -> str:
    """Say how many cells of a picture may be noise alone."""
    filled = int(np.count_nonzero(table))
    pale = int(np.count_nonzero(table[table > 0] < noise))
    if not pale:
        return ""
    if pale == filled:
        return (
            f" Every cell has less than {percent(noise)} of the rows, which noise alone may give: read large patches."
        )
    return (
        f" Cells with less than {percent(noise)} of the rows may be noise alone: {pale:,} of {filled:,} here. Read "
        "large patches, not single pale cells."
    )


def pairs_words(release: Any, found: Sequence[Variable], drawn: int) -> str:
    """Say which pairs there are, and why."""
    if release.plan.joint:
        return "All columns were measured together, in one tree of cells. Heat maps of the released rows:"
    count = len(_measured(release, found))
    said = "1 pair of columns was" if count == 1 else f"{count} pairs of columns were"
    more = f" The {MOST_HEAT_MAPS} that tell most of each other have a picture." if drawn > MOST_HEAT_MAPS else ""
    places = " Places have maps of their own instead." if any(v.scale == "place" for v in found) else ""
    return (
        f"{said} chosen, privately, as those that tell most of each other, and measured together. Other pairs follow "
        f"from these, as far as they do.{more}{places}"
    )


def pair_heads(release: Any) -> list[str]:
    """Return the heads of the table of pairs: how far rows are from a noisy table only if a constraint moves them."""
    moved = ["rows from noisy table"] * bool(getattr(release, "row_pair_distances", None))
    return ["pair", "bits that one tells of the other", "typical W1 of the pair", "seldom above", *moved]


def pair_rows(release: Any, found: Sequence[Variable], typical: TypicalError | None) -> list[list[str]]:
    """Return all pairs that were measured, with what one tells of the other and the typical distance."""
    rows = []
    apart = {(one, two): far for one, two, far in getattr(release, "row_pair_distances", None) or ()}
    for one, two, bits in [] if release.plan.joint else _measured(release, found):
        spread = None if typical is None else typical.pairs.get((one, two))
        said = [NONE, NONE] if spread is None else [f"{spread.typical:.3g}", f"{spread.high:.3g}"]
        said += [f"{apart[one, two]:.3g}"] if apart else []
        rows.append([f"{one} and {two}", f"{bits:.3f}", *said])
    return rows


# --------------------------------------------------------------------------------------------------------- the rest


def budget_words(plan: Promise) -> str:
    """Say how much was spent."""
    privacy, spent = plan.privacy, plan.spent
    part = "all of it" if spent == privacy.budget else f"{exact(spent)} of it"
    allowed = (
        f"; with delta = {float(privacy.delta):g} it allows rho = {exact(privacy.budget)}" if privacy.delta else ""
    )
    why = f" {plan.why}." if plan.why else ""
    return (
        f"Epsilon is {exact(privacy.epsilon)}{allowed}; {part} was spent, in exact fractions. Every count got "
        "whole-number noise from a key of the operating system, which was destroyed. What is measured with more of "
        f"{privacy.unit} has less noise.{why}"
    )


def declared_rows(schema: Any) -> list[list[str]]:
    """Return what the schema says of each column."""
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
    if isinstance(value, int | float) and not isinstance(value, bool):
        return plain_number(value)
    text = ", ".join(map(_shown, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 160 else f"{len(value)} in all" if isinstance(value, list) else text[:160] + "…"


def schema_lists(schema: Any) -> list[tuple[str, list[str]]]:
    """Return what the schema says beside its columns."""
    found = []
    if schema.never:
        found.append(("Constraints: what never occurs, in any row", [*schema.never, ASSUMED]))
    if schema.groups:
        found.append(("Groups of columns that were released together", [", ".join(group) for group in schema.groups]))
    if schema.person is not None:
        found.append(("Whose row it is", [f"{schema.person!r} says it; it is neither measured nor written."]))
    return found


def identity(release: Any, schema: Any) -> list[tuple[str, str]]:
    """Return which release it is."""
    origin, plan = release.origin, release.plan
    unknown = "unknown: an older version made it"
    found = [
        ("id", unknown if origin is None else origin.id),
        ("made with", unknown if origin is None else f"privmeasure {origin.version}"),
        ("ledger", ledger_words(None if origin is None else origin.recorded)),
        ("mechanism", f"{plan.mechanism}, noise: {plan.law}"),
        (
            "promise",
            f"epsilon = {exact(plan.privacy.epsilon)}, delta = {float(plan.privacy.delta):g}, "
            f"{plan.privacy.neighbours}{plan.privacy.owner}",
        ),
        (
            plan.privacy.counted,
            f"{release.total:,} ({'public' if plan.rows_are == 'public' else 'released, with noise'})",
        ),
    ]
    if schema is not None:
        found.append(("digest of the schema", schema_digest(schema.to_json())))
    return found


def citation(release: Any, found: Sequence[Variable]) -> str:
    """Return how to cite a release."""
    origin, privacy = release.origin, release.plan.privacy
    what = "unknown id" if origin is None else f"id {origin.id}"
    by = "privmeasure" if origin is None else f"privmeasure {origin.version}"
    return (
        f"Synthetic data of {release.total:,} rows and {len(found)} {'column' if len(found) == 1 else 'columns'}, "
        f"released under {privacy.kind} ({privacy.told}, {privacy.neighbours}), "
        f"{by}, {what}."
    )

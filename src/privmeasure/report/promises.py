"""Pictures of what is promised: to a person, of a distance, for a budget. From plans and public values alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privmeasure.domains import column_units
from privmeasure.plans.columns import ColumnPlan
from privmeasure.plans.promise import Promise
from privmeasure.privacy import Privacy
from privmeasure.releases.bands import TypicalError
from privmeasure.report.canvas import BLUE, FAINT, GREEN, INK, ORANGE, axes_for, percent, short, styled
from privmeasure.tables.advice import resolutions
from privmeasure.tables.variables import plain_number, variables

MOST_LINES = 40
"""Columns of a picture that has a line for each; the rest are in the table beside it."""


@dataclass(frozen=True)
class ColumnPromise:
    """What is known of the error of one column: distances as shares of its range, and how to say them in its units."""

    name: str
    resolved: str
    guarantee: float
    certificate: float | None
    typical: float | None
    column: Any
    middle: float | None = None
    """Where the median of the released values lies on the axis; None where there is none, or it is not needed."""
    moved: float | None = None
    """How far constraints that compare columns move the rows from the released column; None without any."""

    def words(self, share: float | None) -> str:
        """Say a share of the range in the units of the column; of a stretched scale, what it means at the median."""
        if share is None:
            return "\N{EN DASH}"
        if share >= 1:
            return "says nothing"
        if share <= 0:
            return "exact"
        if self.column is None:
            return f"{percent(share)} of its range"
        if not self.stretched:
            return str(self.column.in_units(share))
        said = f"{percent(share)} of its stretched scale"
        if self.middle is None:
            return said
        return f"{said} ({self._at_the_median(self.middle, share)})"

    def _at_the_median(self, middle: float, share: float) -> str:
        """Say how far a value at the median would be moved, down or up, as far as the scale goes."""
        column, unit = self.column, getattr(self.column, "unit", None)
        low, high = column.stretch.bounds
        places = np.clip(middle + np.array([0.0, -1.0, 1.0]) * share * (high - low), low, high)
        values = column.stretch.values(places)
        values = np.clip(np.rint(values) if column.whole else values, column.low, column.high) + 0.0  # no -0
        start, *ends = [plain_number(float(value), 3) for value in values]
        reached = [end for end in dict.fromkeys(ends) if end != start]
        if not reached:
            return f"at the median, {start}, too little to see"
        return f"at the median: from {start} to {' or '.join(reached)}{f' {unit}s' if unit else ''}"

    @property
    def stretched(self) -> bool:
        """Whether the same distance is another amount elsewhere on the scale, so that no one amount can be given."""
        return getattr(self.column, "breaks", None) is not None

    def sentence(self, sure: float | None) -> str:
        """Say what to expect, what is proved of this release and what was known before it, in one sentence."""
        said = [] if self.typical is None else [f"expect about {self.words(self.typical)}"]
        if self.certificate is not None and sure is not None and self.certificate <= min(self.guarantee, 0.999):
            said.append(f"proved for this release ({percent(sure)} sure): {self.words(self.certificate)}")
        before = "nothing" if self.guarantee >= 1 else self.words(self.guarantee)
        said.append(f"known before the data were opened: {before}")
        if self.moved:
            said.append(f"rows are moved from the released column by {self.words(self.moved)} more")
        return f"{short(self.name, 30)}: {'; '.join(said)}."

    @property
    def best(self) -> float:
        """The smaller of the two bounds of the error of the rows."""
        return min(self.guarantee + (self.moved or 0.0), 1.0 if self.certificate is None else self.certificate)


def column_promises(
    release: Any,
    certified: Any = None,
    typical: TypicalError | None = None,
    medians: Mapping[str, float] | None = None,
) -> list[ColumnPromise]:
    """Return what is guaranteed, certified and estimated of every column of a release.

    `medians` are those of the released values, on the axes of their columns.
    """
    schema = getattr(release, "schema", None)
    medians = medians or {}
    estimates = {} if typical is None else {name: spread.typical for name, spread in typical.columns.items()}
    found = []
    if schema is None:
        domain, plan = release.domain, release.plan
        bound = None if certified is None or not hasattr(certified, "value") else certified.value
        units = column_units(domain)
        sides = _cell_sides(release)
        for v in variables(domain):
            low, high = v.bounds[0]
            unit = units[v.places.start] / max(high - low, 1e-300)
            share = unit if math.isfinite(unit) else 1 / plan.diameter if plan.diameter else 0.0
            own = None if bound is None else min(1.0, bound * share)
            guarantee = min(1.0, plan.guarantee * share)
            text = f"about {sides[v.places.start]:.2g}" if v.scale == "number" else ""
            found.append(ColumnPromise(v.name, text, guarantee, own, estimates.get(v.name), None))
        return found
    rows = None if release.row_distances is None else list(release.row_distances.values())
    for c in resolutions(schema, release.plan):
        own = None
        if certified is not None:
            tree = certified if hasattr(certified, "value") else certified.certificates[c.node]
            own = 0.0 if tree is None or c.range <= 0 else min(1.0, float(tree.value) / c.range)
        guarantee = min(1.0, c.guarantee / c.range) if c.range > 0 else 0.0
        far = None if rows is None else rows[c.node] / c.range if c.range > 0 else 0.0
        found.append(
            ColumnPromise(c.name, c.text, guarantee, own, estimates.get(c.name), c.column, medians.get(c.name), far)
        )
    return found


def _cell_sides(release: Any) -> list[float]:
    """Return how wide a released cell is along each coordinate of a space of points: how finely it is told apart."""
    widths: list[float] = []
    for start in range(release.domain.width):
        part, at = release.part(start)
        low, high = part.domain.extent(part.cells[:1], part.level)
        widths.append(float(high[0, at] - low[0, at]))
    return widths


def errors(promises: Sequence[ColumnPromise], *, ax: Any = None) -> Any:
    """Draw for each column how far values move: guaranteed, certified and typical, as shares of its range."""
    shown = list(promises)[:MOST_LINES]
    ax = axes_for(ax, height=0.9 + 0.24 * len(shown))
    at = np.arange(len(shown))
    marks = [
        ("guaranteed on average", "guarantee", GREEN, "|", 90),
        ("certified for this release", "certificate", BLUE, "D", 16),
        ("typical, an estimate", "typical", ORANGE, "o", 16),
    ]
    with styled():
        best = [max(100 * p.best, 1e-4) for p in shown]
        ax.barh(at, best, color=GREEN, alpha=0.25, height=0.62)
        for label, name, colour, marker, size in marks:
            had = [
                (100 * value, i) for i, p in enumerate(shown) if (value := getattr(p, name)) is not None and value > 0
            ]
            if had:
                ax.scatter(*zip(*had, strict=True), color=colour, marker=marker, s=size, label=label, zorder=3)
        least = min([100 * v for p in shown for v in (p.guarantee, p.certificate, p.typical) if v] or [1.0])
        ax.set_xscale("log")
        ax.set_xlim(min(0.5, least / 2), 100)
        ticks = [t for t in (0.01, 0.1, 1, 10, 100) if ax.get_xlim()[0] <= t]
        ax.set_xticks(ticks, [f"{t:g} %" for t in ticks])
        ax.set_yticks(at, [short(p.name, 24) for p in shown])
        ax.tick_params(axis="y", length=0)
        ax.tick_params(which="minor", length=0)
        ax.invert_yaxis()
        ax.set_xlabel("how far values are moved, on average, as a share of the column's range")
        ax.grid(axis="x")
        if ax.get_legend_handles_labels()[0]:  # a column of a single value has no error
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    return ax


def distance_in_units(promise: ColumnPromise, low: str, high: str, *, ax: Any = None) -> Any:
    """Draw what distances mean in the units of a column: bars as long as they are, beside its whole range.

    They all begin at the left end: a bar further right would look as if it were about the values there.
    """
    bars = [
        ("guaranteed", promise.guarantee, GREEN),
        ("certified", promise.certificate, BLUE),
        ("typical", promise.typical, ORANGE),
    ]
    shown = [(what, share, colour) for what, share, colour in bars if share is not None]
    ax = axes_for(ax, height=0.75 + 0.27 * len(shown))
    with styled():
        for at, (what, share, colour) in enumerate(shown):
            end = min(1.0, share)
            ax.barh(at, end, color=colour, height=0.6, alpha=0.75)
            inside = end > 0.6
            ax.text(
                end - 0.01 if inside else end + 0.01,
                at,
                f"{what}: {promise.words(share)}",
                ha="right" if inside else "left",
                va="center",
                color="white" if inside else INK,
            )
        last = len(shown)
        ax.barh(last, 1, color=FAINT, height=0.22, alpha=0.45)
        ax.text(0.5, last + 0.75, f"the whole range of {short(promise.name, 30)}", ha="center", va="center")
        ax.text(0, last + 0.75, low, ha="left", va="center")
        ax.text(1, last + 0.75, high, ha="right", va="center")
        ax.set_xlim(-0.01, 1.01)
        ax.set_ylim(last + 1.1, -0.5)
        ax.axis("off")
    return ax


PRESENCE, VALUES = "whether they are in the table", "what their rows say"


def beliefs(privacy: Privacy, before: float) -> dict[str, tuple[float, float]]:
    """Return how sure anyone can be of a person after a release, at least and at most, who was so sure before it.

    Somebody may know the rows of everybody else. Of two possibilities that are neighbours, the odds change by a factor
    of e^epsilon at most. Under "replace" these are two things that the rows may say. Under "add-remove" they are that
    the person is there and that they are not; from one thing that their rows may say to another it takes two steps,
    and so twice epsilon.

    Examples:
        >>> beliefs(Privacy(1, "replace"), 0.5)
        {'what their rows say': (0.268..., 0.731...)}
        >>> {what: round(high, 2) for what, (low, high) in beliefs(Privacy(1, "add-remove"), 0.5).items()}
        {'whether they are in the table': 0.73, 'what their rows say': 0.88}
    """
    steps = {VALUES: 1} if privacy.neighbours == "replace" else {PRESENCE: 1, VALUES: 2}
    found = {}
    for what, count in steps.items():
        factor = math.exp(min(count * float(privacy.epsilon), 700.0))
        found[what] = before / (before + (1 - before) * factor), before / (before + (1 - before) / factor)
    return found


def odds(privacy: Privacy, *, ax: Any = None) -> Any:
    """Draw what a promise means: from what someone believes of a person before the release to after it (`beliefs`)."""
    ax = axes_for(ax, height=3.5, width=3.6)
    before = np.linspace(0, 1, 201)
    with styled():
        after = [beliefs(privacy, float(p)) for p in before]
        for what in reversed(after[0]):
            low, high = (100 * np.array([own[what][end] for own in after]) for end in (0, 1))
            strong = 0.3 if what == next(iter(after[0])) else 0.15
            ax.fill_between(100 * before, low, high, color=BLUE, alpha=strong, lw=0, label=what)
        ax.plot(100 * before, 100 * before, color=INK, lw=1, ls="--", label="nothing learned")
        ax.set_xlabel("belief before the release (%)")
        ax.set_ylabel("after it (%)")
        ax.set_xlim(0, 100)
        ax.set_ylim(0, 100)
        ax.set_aspect("equal")
        ax.grid()
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return ax


def spending(plan: Promise) -> list[tuple[str, float, str]]:
    """Return what epsilon was spent on: what, how much, and the noise that it bought."""
    if isinstance(plan, ColumnPlan):
        found = [("the number of rows", float(plan.size_budget), "")] if plan.size_budget else []
        own = [float(column.spent) for column in plan.columns if column.levels]
        if own:
            found.append((f"{len(own)} columns, each by itself", sum(own), f"{min(own):.3g} to {max(own):.3g} each"))
        if plan.rounds:
            found.append((f"choosing {plan.rounds} pairs", float(plan.rounds * plan.round_budget), ""))
        if plan.shape_budget:
            found.append(
                (f"choosing the resolution of {plan.tables} tables", float(plan.tables * plan.shape_budget), "")
            )
        for what, number, budget, scale in (
            ("pairs that join all columns", plan.tree_pairs, plan.tree_budget, plan.tree_scale),
            ("more pairs", plan.extra_pairs, plan.extra_budget, plan.extra_scale),
        ):
            if number:
                found.append(
                    (f"{number} {what}", float(number * budget), f"noise of scale {float(scale):.3g} on each count")
                )
        if plan.agreement_pairs:
            noise = f"noise of about {plan.agreement_noise:.3g} on each"
            found.append((f"agreements of {plan.agreement_pairs} pairs", float(plan.agreements_budget), noise))
        return found
    (tree,) = plan.trees
    if not tree.levels:
        return [("nothing: there is nothing to tell apart", 0.0, "")]
    return [
        (
            "the number of rows" if level == 0 else f"cells of level {level}: {2**level:,} parts at most",
            float(budget),
            f"noise of scale {float(scale):.3g} on each count",
        )
        for level, budget, scale in zip(tree.levels, tree.budgets, tree.scales, strict=True)
    ]


def budget(plan: Promise, *, ax: Any = None) -> Any:
    """Draw what epsilon was spent on."""
    parts = spending(plan)
    ax = axes_for(ax, height=0.7 + 0.26 * max(1, len(parts)))
    with styled():
        at = np.arange(len(parts))
        total = float(plan.privacy.budget)
        values = [value for _, value, _ in parts]
        ax.barh(at, values, color=BLUE, alpha=0.6, height=0.62)
        for i, value in enumerate(values):
            ax.text(value, i, f" {100 * value / total:.3g} %", va="center")
        ax.set_yticks(at, [name for name, _, _ in parts])
        ax.tick_params(axis="y", length=0)
        ax.invert_yaxis()
        ax.set_xlim(0, 1.15 * (max(values, default=0.0) or 1.0))
        ax.set_xlabel(f"{plan.privacy.unit}, of {total:g} in all")
        ax.grid(axis="x")
    return ax


def shares_of_columns(plan: Promise) -> list[float]:
    """Return the guarantee of every tree of a plan as a share of its diameter, 1 where it says nothing."""
    return [min(1.0, tree.guarantee / tree.diameter) for tree in plan.trees if tree.levels and tree.diameter]


def guarantees(
    plans: Sequence[Promise], *, against: str = "epsilon", chosen: Promise | None = None, ax: Any = None
) -> Any:
    """Draw guarantees against epsilon, rows or rows_per_person: of the space, or of the columns from best to worst."""
    ax = axes_for(ax, height=2.7)

    def place(plan: Promise) -> float:
        known = {"epsilon": float(plan.privacy.epsilon), "rows": float(plan.rows)}
        return known.get(against, float(plan.privacy.rows_per_person))

    with styled():
        x = [place(plan) for plan in plans]
        shares = [sorted(shares_of_columns(plan)) or [0.0] for plan in plans]
        low, middle, high = zip(*((100 * o[0], 100 * o[len(o) // 2], 100 * o[-1]) for o in shares), strict=True)
        if all(len(own) == 1 for own in shares):
            ax.plot(x, middle, color=GREEN, marker="o", ms=4, label="guaranteed on average")
        else:
            ax.fill_between(x, low, high, color=GREEN, alpha=0.22, lw=0, label="best to worst column")
            ax.plot(x, middle, color=GREEN, marker="o", ms=4, label="the column in the middle")
        if chosen is not None:
            ax.axvline(place(chosen), color=ORANGE, lw=1.4, label=f"asked for: {place(chosen):,g}")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(top=130)
        ticks = [t for t in (0.01, 0.1, 1, 10, 100) if t >= ax.get_ylim()[0]]
        if len(ticks) < 3:
            ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if t >= ax.get_ylim()[0]]
        ax.set_yticks(ticks, [f"{t:g} %" for t in ticks])
        shown = x if len(x) <= 9 else x[:: -(-len(x) // 8)]
        ax.set_xticks(shown, [f"{value:,g}" for value in shown])
        ax.minorticks_off()
        ax.set_xlabel(
            {"epsilon": "epsilon: weaker promise to the right", "rows": "rows"}.get(against, "rows per person")
        )
        ax.set_ylabel("of the range")
        ax.grid()
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    return ax

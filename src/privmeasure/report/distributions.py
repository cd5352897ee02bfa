"""Pictures of one column: of a release, or of whatever rows a caller has."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privmeasure.domains import Floats
from privmeasure.releases.bands import BinBands, TypicalError
from privmeasure.report.canvas import BLUE, FAINT, INK, ORANGE, axes_for, label_axis, percent, short, styled
from privmeasure.report.heat import MISSING_LABEL, place_map, points_of, variable_of
from privmeasure.tables.variables import Variable

MOST_BARS = 24
"""Values of a category that get a bar; the rest share one."""
LONGEST_LABEL = 28
"""Letters of a value beside its bar."""


def column(release: Any, name: str, *, typical: TypicalError | None = None, ax: Any = None) -> Any:
    """Draw a column of a release as the shares of its bins, with bands where `typical` gives them."""
    v = variable_of(release, name)
    return distribution(
        v, v.shares(points_of(release)[:, v.places]), None if typical is None else typical.bins[name], ax=ax
    )


def distribution(
    v: Variable,
    shares: Floats,
    bands: BinBands | None = None,
    *,
    other: Floats | None = None,
    names: tuple[str, str] = ("released", "real"),
    ax: Any = None,
) -> Any:
    """Draw the shares of the bins of a variable, a band around them, and those of another table beside them."""
    if v.scale == "place":
        return place_map(v, shares, ax=ax)
    errors = None if bands is None else bands.errors
    draw = _bars if v.scale == "values" else _steps
    return draw(v, shares, errors, other, names, ax)


def _steps(
    v: Variable, shares: Floats, errors: Floats | None, other: Floats | None, names: tuple[str, str], ax: Any
) -> Any:
    """Draw an axis of numbers, days or hours."""
    ax = axes_for(ax)
    size = v.shape[0]
    places = v.drawn(v.edges[0])
    with styled():
        ax.stairs(100 * shares[:size], places, fill=True, color=BLUE, alpha=0.35, lw=0)
        ax.stairs(100 * shares[:size], places, color=BLUE, lw=1.2, label=names[0])
        if errors is not None:
            middle = (places[1:] + places[:-1]) / 2 if v.scale != "log" else np.sqrt(places[1:] * places[:-1])
            low, high = np.maximum(shares - errors, 0)[:size], (shares + errors)[:size]
            ax.vlines(middle, 100 * low, 100 * high, color=INK, lw=1, label="where the data's is, by estimate")
        if other is not None:
            ax.stairs(100 * other[:size], places, color=ORANGE, lw=1.4, label=names[1])
        _legend(ax, errors is not None or other is not None)
        label_axis(ax, v)
        ax.set_xlim(places[0], places[-1])
        ax.set_ylim(bottom=0)
        ax.set_ylabel("% of rows")
        missing = "" if not v.nullable else f"; missing: {percent(shares[-1])}"
        if v.nullable and errors is not None:
            missing += f" ± {percent(errors[-1])}"
        if v.nullable and other is not None:
            missing += f" ({names[1]}: {percent(other[-1])})"
        ax.set_xlabel(ax.get_xlabel() + missing)
        ax.grid(axis="y")
    return ax


def _legend(ax: Any, wanted: bool) -> None:
    """Put the legend above the axes, where nothing is drawn."""
    if wanted:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)


def _bars(
    v: Variable, shares: Floats, errors: Floats | None, other: Floats | None, names: tuple[str, str], ax: Any
) -> Any:
    """Draw a bar for each value, the most frequent first where they have no order, in groups where there are some."""
    lines = rows_of_values(v, shares)
    ax = axes_for(ax, height=0.75 + 0.2 * len(lines) + (0.25 if other is not None else 0))
    with styled():
        at = np.arange(len(lines))
        value = 100 * np.array([shares[line.positions].sum() for line in lines])
        bars = ax.barh(at, value, color=BLUE, alpha=0.6, height=0.7, label=names[0])
        for bar, line in zip(bars, lines, strict=True):
            bar.set_alpha(0.25 if line.group else 0.6)
        if errors is not None:
            # of several values together, as if their errors were independent
            wide = 100 * np.array([math.sqrt(float((errors[line.positions] ** 2).sum())) for line in lines])
            low = np.minimum(wide, value)
            ax.errorbar(
                value,
                at,
                xerr=[low, wide],
                fmt="none",
                ecolor=INK,
                elinewidth=1,
                capsize=2,
                label="where the data's is, by estimate",
            )
        if other is not None:
            theirs = 100 * np.array([other[line.positions].sum() for line in lines])
            ax.scatter(theirs, at, color=ORANGE, marker="D", s=16, zorder=3, label=names[1])
        _legend(ax, errors is not None or other is not None)
        ax.tick_params(axis="y", length=0)
        ax.invert_yaxis()
        ax.set_xlim(left=0)
        (_tree_labels if any(line.group for line in lines) else _plain_labels)(ax, lines)
        ax.set_xlabel(f"% of rows, by {short(v.name, 40)}")
        ax.grid(axis="x")
    return ax


@dataclass(frozen=True)
class ValueLine:
    """A bar: its label, the positions of the values that it stands for, how deep it lies in a tree of groups."""

    label: str
    positions: list[int]
    deep: int = 0
    group: bool = False


def _plain_labels(ax: Any, lines: Sequence[ValueLine]) -> None:
    ax.set_yticks(range(len(lines)), [line.label for line in lines])


def _tree_labels(ax: Any, lines: Sequence[ValueLine]) -> None:
    """Write labels as a tree: what is in a group begins further to the right, with a line to its group."""
    step, wide = 0.03, 0.0135
    left = -0.02 - max(step * line.deep + wide * len(line.label) for line in lines)
    place = ax.get_yaxis_transform()  # across in parts of the axes, down in bars
    ax.set_yticks([])
    for i, line in enumerate(lines):
        x = left + step * line.deep
        ax.text(x, i, line.label, transform=place, va="center", weight="bold" if line.group else "normal")
        if line.deep:
            above = next(j for j in range(i - 1, -1, -1) if lines[j].deep < line.deep)
            bend = x - 0.7 * step
            ax.plot(
                [bend, bend, x - 0.2 * step], [above + 0.4, i, i], color=FAINT, lw=0.8, transform=place, clip_on=False
            )


def rows_of_values(v: Variable, shares: Floats) -> list[ValueLine]:
    """Return the bars of a variable with listed values: a tree of groups, ranks in order, else the largest first."""
    labels = [short(label or "(empty text)", LONGEST_LABEL) for label in v.labels]
    taxonomy = getattr(v.column, "taxonomy", None)
    if taxonomy:
        lines = _branches(taxonomy, {value: i for i, value in enumerate(v.column.values)}, labels, shares, 0)  # type: ignore[union-attr]
        grouped = {i for line in lines for i in line.positions}
        lines += [ValueLine(labels[i], [i]) for i in range(len(labels)) if i not in grouped]
    else:
        order = list(range(len(labels)))
        if not v.has_quantiles:
            order.sort(key=lambda i: -shares[i])
        if v.has_quantiles and len(order) > MOST_BARS:  # ranks: neighbours share a bar
            parts = np.array_split(order, MOST_BARS)
            lines = [ValueLine(f"{labels[part[0]]} to {labels[part[-1]]}", part.tolist()) for part in parts]
        else:
            lines = [ValueLine(labels[i], [i]) for i in order]
    if len(lines) > MOST_BARS + 8:
        rest = sorted({i for line in lines[MOST_BARS:] for i in line.positions if not line.group})
        lines = [*lines[:MOST_BARS], ValueLine(f"{len(rest)} other values", rest)]
    return lines + ([ValueLine(MISSING_LABEL, [v.count - 1])] if v.nullable else [])


def _branches(
    group: Any, where: Mapping[Any, int], labels: Sequence[str], shares: Floats, deep: int
) -> list[ValueLine]:
    """Return the bars of a taxonomy: each group before what is in it, the largest first."""
    if not isinstance(group, Mapping):
        values = sorted((where[value] for value in group if value in where), key=lambda i: -shares[i])
        return [ValueLine(labels[i], [i], deep) for i in values]
    parts = []
    for name, inner in group.items():
        below = _branches(inner, where, labels, shares, deep + 1)
        positions = [i for line in below if not line.group for i in line.positions]
        parts.append([ValueLine(short(str(name), LONGEST_LABEL), positions, deep, group=True), *below])
    parts.sort(key=lambda lines: -float(shares[lines[0].positions].sum()))
    return [line for lines in parts for line in lines]


def agreement(real: Floats, synthetic: Floats, *, ax: Any = None) -> Any:
    """Draw synthetic figures against real ones, both from -1 to 1."""
    ax = axes_for(ax, width=3.6, height=3.4)
    with styled():
        ax.plot([-1, 1], [-1, 1], color=FAINT, lw=1, ls="--")
        ax.scatter(real, synthetic, color=BLUE, s=18, alpha=0.8)
        ax.set_xlim(-1.05, 1.05)
        ax.set_ylim(-1.05, 1.05)
        ax.set_aspect("equal")
        ax.set_xlabel("real")
        ax.set_ylabel("synthetic")
        ax.grid()
    return ax

"""Pictures of columns and of pairs of them: of a release, or of whatever rows a caller has."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privmeasure.domains import Floats, Points
from privmeasure.errors import ArgumentError
from privmeasure.releases.bands import BinBands, TypicalError
from privmeasure.report.canvas import BLUE, FAINT, INK, ORANGE, axes_for, colour_map, date_axis, plain_numbers, styled
from privmeasure.tables.variables import Variable, variables

MOST_BARS = 24
"""Values of a category that get a bar; the rest share one."""
LONGEST_LABEL = 28
"""Letters of a value beside its bar."""
MISSING_LABEL = "(missing)"
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def variable_of(release: Any, name: str) -> Variable:
    """Return a column of a release by its name, or say which there are."""
    found = {v.name: v for v in variables(getattr(release, "schema", None) or release.domain)}
    if name not in found:
        raise ArgumentError(f"column must be one of {', '.join(map(repr, found))}, got {name!r}.")
    return found[name]


def points_of(release: Any, *, seed: int = 0) -> Points:
    """Return the rows of a sample as points."""
    rows = release.sample(seed=seed)
    schema = getattr(release, "schema", None)
    points: Points = rows if schema is None else schema.encode(rows.combine_chunks())
    return points


# ------------------------------------------------------------------------------------------------------- one column


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
            ax.vlines(middle, 100 * low, 100 * high, color=INK, lw=1, label="the data's, about 9 times in 10")
        if other is not None:
            ax.stairs(100 * other[:size], places, color=ORANGE, lw=1.4, label=names[1])
        _legend(ax, errors is not None or other is not None)
        _label(ax, v)
        ax.set_xlim(places[0], places[-1])
        ax.set_ylim(bottom=0)
        ax.set_ylabel("% of rows")
        missing = "" if not v.nullable else f"; missing: {_percent(shares[-1])}"
        if v.nullable and errors is not None:
            missing += f" ± {_percent(errors[-1])}"
        if v.nullable and other is not None:
            missing += f" ({names[1]}: {_percent(other[-1])})"
        ax.set_xlabel(ax.get_xlabel() + missing)
        ax.grid(axis="y")
    return ax


def _legend(ax: Any, wanted: bool) -> None:
    """Put the legend above the axes, where nothing is drawn."""
    if wanted:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)


def _label(ax: Any, v: Variable, *, along: str = "x") -> None:
    """Say on an axis what it is, in the column's own units."""
    axis, unit = getattr(ax, f"{along}axis"), f" ({v.unit})" if v.unit else ""
    getattr(ax, f"set_{along}label")(short(v.name, 40) + unit)
    if v.scale == "date":
        date_axis(axis)
    elif v.scale == "log":
        getattr(ax, f"set_{along}scale")("log")
        plain_numbers(axis)
    elif v.scale == "hour":
        axis.set_ticks(range(0, 25, 4), [f"{hour}:00" for hour in range(0, 25, 4)])
    elif v.scale == "uneven":
        low, high = v.bounds[0]
        ticks = np.arange(low, high + 1, max(1, round((high - low) / (6 if along == "x" else 4))))
        axis.set_ticks(ticks, [short(v.show(tick), 10) for tick in ticks])


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
                label="the data's, about 9 times in 10",
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


def place_map(v: Variable, shares: Floats, *, ax: Any = None) -> Any:
    """Draw places as a map without outlines: degrees of longitude and latitude, the darker the more rows."""
    (west, east), (south, north) = v.bounds
    middle = math.cos(math.radians(min(80.0, abs(south + north) / 2)))
    tall = (north - south) / max((east - west) * middle, 1e-9)
    ax = axes_for(ax, height=min(5.2, max(2.4, 5.4 * tall)))
    table = shares[: math.prod(v.shape)].reshape(v.shape).T
    with styled():
        _heat(ax, v.edges[0], v.edges[1], table, "% of rows")
        ax.set_aspect(1 / middle)
        ax.set_xlabel("longitude" + (f"; no place: {_percent(shares[-1])}" if v.nullable else ""))
        ax.set_ylabel("latitude")
        ax.grid()
    return ax


def calendar(v: Variable, points: Points, *, ax: Any = None) -> Any:
    """Draw dates as a calendar: a row for each year, a cell for each month; of up to two years week by week."""
    days = v.drawn(points[~np.isnan(points[:, 0]), 0])
    first, last = (float(x) for x in v.drawn(np.array(v.bounds[0])))
    dates = np.floor(days).astype("datetime64[D]")
    begin, end = np.floor([first, last]).astype("datetime64[D]")
    weekly = last - first <= 731
    if weekly:
        start = begin - (begin.astype(np.int64) + 3) % 7  # the Monday before
        across, down = (dates - start).astype(np.int64) // 7, (dates - start).astype(np.int64) % 7
        shape = (7, int((end - start).astype(np.int64)) // 7 + 1)
    else:
        months = dates.astype("datetime64[M]").astype(np.int64)
        year = int(begin.astype("datetime64[Y]").astype(np.int64))
        across, down = months % 12, months // 12 - year
        shape = (int(end.astype("datetime64[Y]").astype(np.int64)) - year + 1, 12)
    table = np.bincount(down * shape[1] + across, minlength=shape[0] * shape[1]).reshape(shape) / max(1, len(points))
    ax = axes_for(ax, height=min(6.0, 0.9 + 0.16 * max(7, shape[0])))
    with styled():
        _heat(ax, np.arange(shape[1] + 1), np.arange(shape[0] + 1), table, "% of rows")
        ax.invert_yaxis()
        if weekly:
            ax.set_yticks(np.arange(7) + 0.5, ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
            marks = range(0, shape[1], max(1, shape[1] // 6))
            ax.set_xticks([mark + 0.5 for mark in marks], [str(start + 7 * mark) for mark in marks])
            ax.set_xlabel(f"{short(v.name, 40)}, by week")
        else:
            every = max(1, shape[0] // 12)
            ax.set_yticks(
                np.arange(0, shape[0], every) + 0.5, [str(1970 + year + i) for i in range(0, shape[0], every)]
            )
            ax.set_xticks(np.arange(12) + 0.5, MONTHS)
            ax.set_xlabel(f"{short(v.name, 40)}, by month")
    return ax


def _heat(ax: Any, x: Any, y: Any, table: Floats, label: str, *, most: float | None = None) -> None:
    top = 100 * (most or float(table.max()) or 1.0)
    mesh = ax.pcolormesh(x, y, 100 * table, cmap=colour_map(), vmin=0, vmax=top, rasterized=True, lw=0)
    bar = ax.figure.colorbar(mesh, ax=ax, label=label, aspect=14)
    bar.outline.set_visible(False)
    bar.solids.set_rasterized(True)


# ------------------------------------------------------------------------------------------------------- two columns


def pair(release: Any, first: str, second: str, *, ax: Any = None) -> Any:
    """Draw two columns of a release together, as a heat map."""
    one, two = variable_of(release, first), variable_of(release, second)
    points = points_of(release)
    return heat_map(one, two, points, ax=ax)


def heat_map(
    one: Variable,
    two: Variable,
    points: Points,
    *,
    most: float | None = None,
    like: Points | None = None,
    title: str = "",
    ax: Any = None,
) -> Any:
    """Draw the shares of rows in the bins of two variables; `most` is the share of the darkest cell.

    Of many values those are shown that are most frequent in `like`, so that two pictures show the same.

    Values stand on the left, where their names can be read; of two lists of values the longer one does.
    """
    if bool(one.labels) > bool(two.labels) or (two.labels and len(one.labels) > len(two.labels)):
        one, two = two, one
    table, sides = pair_shares(one, two, points, like=like)
    below = max([len(short(label, 16)) for label in sides[0]], default=0)
    turned = sum(min(len(label), 16) for label in sides[0]) > 30
    height = (0.21 * len(sides[1]) if sides[1] else 2.0) + 0.75 + (0.075 * below if turned else 0) + 0.25 * bool(title)
    ax = axes_for(ax, width=4.6, height=max(1.6, height))
    with styled():
        x, y = (
            np.arange(len(side) + 1) if side else v.drawn(v.edges[0]) for v, side in ((one, sides[0]), (two, sides[1]))
        )
        _heat(ax, x, y, table.T, "% of rows", most=most)
        for v, side, along in ((one, sides[0], "x"), (two, sides[1], "y")):
            _label(ax, v, along=along)
            if side:
                axis = getattr(ax, f"{along}axis")
                axis.set_ticks(np.arange(len(side)) + 0.5, [short(label, 16) for label in side])
                axis.set_tick_params(length=0)
        if turned:
            ax.tick_params(axis="x", labelrotation=90)
        if sides[1]:
            ax.invert_yaxis()
        if title:
            ax.set_title(title)
    return ax


MOST_VALUES_OF_PAIR = 16
"""Values of a category on a side of a heat map; the rest share one row."""


def pair_shares(
    one: Variable, two: Variable, points: Points, *, like: Points | None = None
) -> tuple[Floats, tuple[list[str], list[str]]]:
    """Return the shares of rows in the bins of two variables, and the labels of those that are values."""
    codes, sizes, sides = [], [], []
    for v in (one, two):
        own = v.codes(points[:, v.places])
        side: list[str] = []
        size = math.prod(v.shape)
        if v.labels:
            seen = own if like is None else v.codes(like[:, v.places])
            kept = np.sort(
                np.argsort(-np.bincount(seen, minlength=v.count)[:size], kind="stable")[:MOST_VALUES_OF_PAIR]
            )
            number = np.full(v.count, len(kept))
            number[kept] = np.arange(len(kept))
            side = [v.labels[i] or "(empty text)" for i in kept]
            if len(kept) < size:
                side.append("others")
            if v.nullable:
                number[-1] = len(side)
                side.append(MISSING_LABEL)
            own, size = number[own], len(side)
        codes.append(own)
        sizes.append(size)
        sides.append(side)
    inside = (codes[0] < sizes[0]) & (codes[1] < sizes[1])  # a missing number has no place on its axis
    flat = codes[0][inside] * sizes[1] + codes[1][inside]
    table = np.bincount(flat, minlength=sizes[0] * sizes[1]).reshape(sizes) / max(1, len(points))
    return table, (sides[0], sides[1])


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


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def short(text: str, most: int) -> str:
    """Return a text that fits beside a picture, on one line.

    Examples:
        >>> short("a long name", 6)
        'a lon…'
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split(" "))
    return line if len(line) <= most else line[: most - 1] + "…"

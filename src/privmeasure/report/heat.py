"""Pictures in which colour is the share of rows: two columns together, maps of places, calendars of dates."""

import math
from typing import Any

import numpy as np

from privmeasure.domains import Floats, Points
from privmeasure.errors import ArgumentError
from privmeasure.report.canvas import axes_for, colour_map, label_axis, percent, short, styled
from privmeasure.tables.variables import Variable, variables

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
MISSING_LABEL = "(missing)"


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


def place_map(v: Variable, shares: Floats, *, ax: Any = None) -> Any:
    """Draw places as a map without outlines: degrees of longitude and latitude, the stronger, the more rows."""
    (west, east), (south, north) = v.bounds
    middle = math.cos(math.radians(min(80.0, abs(south + north) / 2)))
    tall = (north - south) / max((east - west) * middle, 1e-9)
    ax = axes_for(ax, height=min(5.2, max(2.4, 5.4 * tall)))
    table = shares[: math.prod(v.shape)].reshape(v.shape).T
    with styled():
        _heat(ax, v.edges[0], v.edges[1], table, "% of rows")
        ax.set_aspect(1 / middle)
        ax.set_xlabel("longitude" + (f"; no place: {percent(shares[-1])}" if v.nullable else ""))
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
            label_axis(ax, v, along=along)
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

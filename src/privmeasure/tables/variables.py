"""What can be drawn and compared of a table or of points: its variables, their bins and their scales. Public.

A variable is a column of a schema, or an axis of a space of points that has none. Its bins follow from what is
declared, never from rows: a bin for each value where values are listed, else even steps of its axis, or of a map.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import (
    Box,
    Categories,
    Circle,
    Domain,
    Finite,
    Floats,
    Integers,
    Nullable,
    Points,
    Product,
    Sphere,
    Steps,
)
from privmeasure.tables.arrow import numbers
from privmeasure.tables.columns.base import DataColumn
from privmeasure.tables.columns.dates import Date
from privmeasure.tables.columns.times import Datetime, Time
from privmeasure.tables.schema import Schema

AxisScale = Literal["number", "log", "date", "hour", "place", "values", "uneven"]
"""How an axis is drawn: by numbers, ratios, days, hours of the day, degrees, one value after the other, or by places on
an axis whose labels are not evenly spaced."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles that get bands, and that real and synthetic rows are compared by."""
MOST_STEPS_DRAWN = 48
"""Bins of an axis."""
MAP_SIDE = 36
"""Bins of a map from south to north; as many from west to east, or twice as many."""

DrawnBins = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Variable:
    """One thing to draw: its name, where it lies in a point, its space, and the column that says more, if there is one.

    Examples:
        >>> from privmeasure.tables import Category, Integer
        >>> schema = Schema({"age": Integer(0, 9), "sex": Category(["F", "M"], nullable=True)})
        >>> age, sex = variables(schema)
        >>> age.count, age.scale, sex.labels
        (10, 'number', ('F', 'M'))
        >>> sex.codes(np.array([[0.0], [np.nan]]))          # the last bin is for missing values
        array([0, 2])
    """

    name: str
    places: slice
    space: Domain
    column: DataColumn | None = None

    @property
    def nullable(self) -> bool:
        """Whether there is a bin of missing values, the last one."""
        return isinstance(self.space, Nullable)

    @property
    def present(self) -> Domain:
        """The space of values that are not missing."""
        return self.space.domain if isinstance(self.space, Nullable) else self.space

    @property
    def scale(self) -> AxisScale:
        """How its axis is drawn."""
        column = self.column
        if self.present.width == 2:
            return "place"
        if self.labels:
            return "values"
        if isinstance(column, Date | Datetime):
            return "date"
        if isinstance(column, Time):
            return "hour"
        if column is None or not column.curved:
            return "number"
        return "log" if getattr(column, "transform", None) == "log" else "uneven"

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The values, where they are listed."""
        if self.column is not None and self.column.listed is not None:
            return tuple(str(v).lower() if isinstance(v, bool) else str(v) for v in self.column.listed)
        if isinstance(self.present, Categories | Finite):
            return tuple(str(i) for i in range(self.present.count))
        return ()

    @property
    def unit(self) -> str:
        """What the numbers count, in the plural; nothing where that is not declared."""
        unit = getattr(self.column, "unit", None)
        return f"{unit}s" if unit else ""

    @cached_property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """The lowest and the highest point of each coordinate."""
        low, high = self.present.extent(np.zeros(1, np.uint64), 0)
        return tuple(zip(low[0].tolist(), high[0].tolist(), strict=True))

    @cached_property
    def edges(self) -> tuple[Floats, ...]:
        """Where bins begin and end, for each coordinate; whole numbers lie in the middle of theirs."""
        if isinstance(self.present, Integers | Steps) and not self.labels:
            return (_whole_edges(*self.bounds[0]),)
        if len(self.bounds) == 1:
            return (np.linspace(*self.bounds[0], MOST_STEPS_DRAWN + 1),)
        (west, east), (south, north) = self.bounds
        wide = 2 if east - west > 1.5 * (north - south) else 1  # all the Earth is twice as wide as high
        return np.linspace(west, east, wide * MAP_SIDE + 1), np.linspace(south, north, MAP_SIDE + 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many bins there are, but for the missing, along each coordinate."""
        return (len(self.labels),) if self.labels else tuple(len(edges) - 1 for edges in self.edges)

    @property
    def count(self) -> int:
        """How many bins there are."""
        return math.prod(self.shape) + self.nullable

    def codes(self, points: Points) -> DrawnBins:
        """Return the bin of each row of its own coordinates; NaN is missing, or the first."""
        code: Any = np.zeros(len(points), np.int64)
        missing = np.isnan(points).any(axis=1)
        for i, size in enumerate(self.shape):
            values = np.where(missing, self.bounds[i][0], points[:, i])
            if self.labels:
                at = np.rint(values)
            elif isinstance(self.present, Circle):
                low, period = self.present.low, self.present.period
                at = np.floor(np.mod(values - low, period) / period * size)
            else:
                at = np.searchsorted(self.edges[i], values, side="right") - 1
            code = code * size + np.clip(at, 0, size - 1).astype(np.int64)
        return np.where(missing, self.count - 1 if self.nullable else 0, code)

    def shares(self, points: Points) -> Floats:
        """Return the share of rows in each bin."""
        return np.bincount(self.codes(points), minlength=self.count) / max(1, len(points))

    def numbers(self, points: Points) -> Floats | None:
        """Return its values as numbers, NaN for missing; None where means make no sense."""
        if self.labels and self.column is None:
            return None
        if self.column is not None:
            return self.column.averages(points)
        return points[:, 0] if points.shape[1] == 1 and not isinstance(self.present, Circle) else None

    def amounts(self, places: Floats) -> Floats:
        """Return the numbers that places on its axis stand for; the places, if means make no sense."""
        found = self.numbers(places[:, None])
        return places if found is None else found

    def read(self, places: Floats) -> Floats:
        """Return what a reader sees of places on its axis, as numbers: as its type has them, of ranks the positions."""
        if self.column is None:
            return places
        if self.column.averages(places[:, None]) is None:
            return np.rint(places) if self.step else places
        return numbers(self.column.decode(places[:, None], [None])[0])

    @property
    def has_quantiles(self) -> bool:
        """Whether values follow each other as their points do, and may be drawn on one axis."""
        if self.present.width != 1 or isinstance(self.present, Circle):
            return False
        return not self.labels if self.column is None else self.column.has_quantiles

    @property
    def step(self) -> float:
        """By how much neighbouring places on its axis differ: 1 for whole numbers, days and ranks, 0 for all others."""
        return 1.0 if self.labels or isinstance(self.present, Integers | Steps) else 0.0

    def drawn(self, places: Floats) -> Floats:
        """Return where points of an axis lie in a picture: numbers, days since 1970, hours, ratios as they are."""
        if self.scale == "log" and self.column is not None:
            return np.asarray(self.column.stretch.values(places), np.float64)  # type: ignore[attr-defined]
        if self.scale == "hour":
            return places / self.bounds[0][1] * 24
        if isinstance(self.column, Datetime):
            first = self.column.low.replace(tzinfo=None)
            steps = max(self.bounds[0][1], 1.0)
            last = self.column.high.replace(tzinfo=None)
            days = (np.datetime64(first, "us") - np.datetime64("1970-01-01", "us")) / np.timedelta64(1, "D")
            return np.asarray(days + places / steps * ((last - first).total_seconds() / 86400), np.float64)
        return places

    def show(self, place: float) -> str:
        """Say a point of its axis as a value."""
        if self.column is None or len(self.bounds) > 1:
            return plain_number(place, 4)
        cell = self.column.decode(np.array([[place]]), [None])[0][0].as_py()
        if cell is None:
            return "missing"
        return plain_number(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else str(cell)


def plain_number(value: float, digits: int = 6) -> str:
    """Say a number as people write it; a year, which is a small whole number, has no comma.

    Examples:
        >>> plain_number(1e6), plain_number(2024), plain_number(0.25), plain_number(12345.678), plain_number(3418.0, 2)
        ('1,000,000', '2024', '0.25', '12,345.7', '3,400')
    """
    rounded = value if isinstance(value, int) else float(f"{value:.{digits}g}")
    if not 1e-4 <= abs(rounded) < 1e15:
        return f"{rounded:.{digits}g}"
    text = f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:,}"
    return text.replace(",", "") if isinstance(value, int) and abs(value) < 10_000 else text


def variables(space: Schema | Domain) -> list[Variable]:
    """Return what can be drawn of a schema, or of a space of points, whose axes are called x0, x1 and so on."""
    if isinstance(space, Schema):
        found, start = [], 0
        for name, column in space.data.items():
            width = column.domain.width
            found.append(Variable(name, slice(start, start + width), column.domain, column))
            start += width
        return found
    found, start = [], 0
    for part in _axes(space):
        found.append(Variable(f"x{start}" if part.width == 1 else "place", slice(start, start + part.width), part))
        start += part.width
    return found


def _axes(space: Domain) -> Iterator[Domain]:
    """Yield the parts of a space that are drawn one by one: numbers alone, places as two coordinates."""
    if isinstance(space, Product):
        for factor in space.factors:
            yield from _axes(factor)
    elif isinstance(space, Nullable) and space.width > 1 and not isinstance(space.domain, Sphere):
        yield from (Nullable(part) for part in _axes(space.domain))
    elif isinstance(space, Sphere) or space.width == 1:
        yield space
    else:
        low, high = space.extent(np.zeros(1, np.uint64), 0)
        yield from (Box([pair]) for pair in zip(low[0].tolist(), high[0].tolist(), strict=True))


def _whole_edges(low: float, high: float) -> Floats:
    """Return the edges of bins of equally many whole numbers, as far as possible."""
    count = int(high - low) + 1
    least = -(-count // MOST_STEPS_DRAWN)
    step = min(range(least, 2 * least + 1), key=lambda s: (-count % s) / s)
    return np.arange(low - 0.5, high + 0.5 + step, step)[: -(-count // step) + 1]

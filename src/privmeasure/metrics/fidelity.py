"""How close a synthetic table is to the real one, column by column and pair by pair. The result is confidential.

**Space.** Every column is brought to [0, 1] by its public bounds; a category sits at (code + 1/2) / k in the declared
order; a circle is cut open where it begins. Missing is an extra value: one more category, or a number that lies one
whole range below the lowest. Weights do not count here.

**Sampling baseline.** Even a table drawn from the real one, with replacement, is not at distance 0. With each figure
comes the score of such a resample (`floor` in code and JSON), so that noise is not read as error.

**Values.** Distances over bins cannot see that a common value is lost, so the values themselves are compared as well:
`metrics/values`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

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
)
from privmeasure.errors import ArgumentError
from privmeasure.metrics.values import Difference, compare_values, largest
from privmeasure.metrics.wasserstein import sliced_wasserstein
from privmeasure.notebook import html_table
from privmeasure.tables.schema import Schema
from privmeasure.tables.variables import variables
from privmeasure.transport.line import line_wasserstein

COLUMN_BINS = 32
"""Equal bins of a column of numbers, for total variation."""
DENSE_PAIRS = 1 << 22
"""Pairs of bins up to which a table of pairs is one array."""
MAX_LISTED = 10
"""Differences that a text lists; JSON and pages have all of them."""
NO_DIFFERENCE = "No value, mean or quantile differs by more than resamples of the real rows do."
"""What a text has where nothing is listed."""
REAL_TABLE_STAMP = "CONFIDENTIAL: computed from the real table, not differentially private. Do not publish."

BinCodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Figure:
    """A distance between real and synthetic, and the floor: the same between real and a resample of it."""

    value: float
    floor: float


@dataclass(frozen=True, slots=True)
class ColumnFidelity:
    """One column: exact W1 as a share of its range, and total variation."""

    name: str
    w1: Figure
    variation: Figure


@dataclass(frozen=True, slots=True)
class PairFidelity:
    """Two columns together: total variation."""

    first: str
    second: str
    variation: Figure


@dataclass(frozen=True, slots=True)
class Fidelity:
    """CONFIDENTIAL. How close a synthetic table is to the real one."""

    columns: tuple[ColumnFidelity, ...]
    pairs: tuple[PairFidelity, ...]
    sliced: Figure
    differences: tuple[Difference, ...]
    """All values, means, quantiles and so on that were compared, the largest difference first."""
    common_values: Figure | None = None
    """Half the sum of the differences of the shares of common values, mean over the columns that have any."""
    person: str | None = None
    """The column that says whose row it is, if the schema names one: guarantees are about other rows then."""

    @property
    def compared_with(self) -> str:
        """Which real rows the figures are about."""
        if self.person is None:
            return "all rows of the real table"
        return (
            f"all rows of the real table. Guarantees are about the kept ones, at most rows_per_person of each "
            f"{self.person!r}: who has many rows counts for more here"
        )

    @property
    def w1(self) -> Figure:
        """The mean W1 of the columns."""
        return _mean([column.w1 for column in self.columns])

    @property
    def one_way(self) -> Figure:
        """The mean total variation of the columns."""
        return _mean([column.variation for column in self.columns])

    @property
    def two_way(self) -> Figure | None:
        """The mean total variation of all pairs of columns, if there are two columns."""
        return _mean([pair.variation for pair in self.pairs]) if self.pairs else None

    def __str__(self) -> str:
        """Return the largest differences and the distances, with the stamp."""
        lines = [f"{name:<32} {figure.value:<8.4f} baseline {figure.floor:.4f}" for name, figure in self.figures]
        listed = [f"{one} (difference {one.shown[2]}, baseline {one.shown[3]})" for one in self.largest]
        listed = listed or [NO_DIFFERENCE]
        return "\n".join([REAL_TABLE_STAMP, *listed, *lines, f"Compared with {self.compared_with}."])

    @property
    def largest(self) -> list[Difference]:
        """The largest differences that are above the baseline, at most three of one column: what a text lists."""
        return largest(self.differences, MAX_LISTED)

    @property
    def figures(self) -> list[tuple[str, Figure]]:
        """The figures of the whole table, by name."""
        whole = [("mean W1 of the columns", self.w1), ("mean total variation, columns", self.one_way)]
        pairs = [] if self.two_way is None else [("mean total variation, pairs", self.two_way)]
        common = [] if self.common_values is None else [("common values", self.common_values)]
        return [*common, *whole, *pairs, ("sliced W1", self.sliced)]

    def _repr_html_(self) -> str:
        """Show the figures in a notebook, with the stamp."""
        whole = [[name, f"{figure.value:.4f}", f"{figure.floor:.4f}"] for name, figure in self.figures]
        columns = [
            [c.name, *(f"{v:.4f}" for v in (c.w1.value, c.w1.floor, c.variation.value, c.variation.floor))]
            for c in self.columns
        ]
        listed = [[str(one), *one.shown[2:]] for one in self.largest] or [[NO_DIFFERENCE, "", ""]]
        heads = ["column", "W1", "baseline", "total variation", "baseline"]
        return "".join([
            html_table(listed, heads=["what differs most", "difference", "baseline"], title=REAL_TABLE_STAMP),
            html_table(whole, heads=["figure", "value", "baseline"]),
            html_table(columns, heads=heads, title=f"Compared with {self.compared_with}."),
        ])  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value that begins with its stamp."""
        return {
            "confidential": REAL_TABLE_STAMP,
            "compared_with": self.compared_with,
            "w1": asdict(self.w1),
            "one_way": asdict(self.one_way),
            "two_way": asdict(self.two_way) if self.two_way else None,
            "sliced_w1": asdict(self.sliced),
            "common_values": asdict(self.common_values) if self.common_values else None,
            "differences": [difference.to_json() for difference in self.differences],
            "columns": [asdict(column) for column in self.columns],
            "pairs": [asdict(pair) for pair in self.pairs],
        }


def fidelity(
    real: Points,
    synthetic: Points,
    space: Schema | Domain,
    *,
    names: Sequence[str] | None = None,
    directions: int = 200,
    samples: int = 50_000,
    seed: int = 0,
) -> Fidelity:
    """Compare two tables as points of one schema or domain. CONFIDENTIAL: the result depends on the real rows.

    - W1 of each column: exact, on all rows.
    - Total variation: half the sum of |p - q| over 32 equal bins of a number, or over categories; of columns, of pairs.
    - Sliced W1: the mean over random directions, on up to `samples` rows.
    - Values, as they are written: see `metrics/values`. Columns of a schema have units; points of a domain are numbers.

    A schema brings the names of its columns, and the column of persons: then the result says that a release is about
    some of the real rows.

    Guarantee:  0 for equal tables; every figure but the sliced one is at most 2 (a missing value for a highest one)

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> real = rng.random((1000, 2))
        >>> result = fidelity(real, real, Box([(0, 1), (0, 1)]), names=["x", "y"])
        >>> result.w1.value, result.two_way.value, result.sliced.value
        (0.0, 0.0, 0.0)
        >>> round(fidelity(real, real / 2, Box([(0, 1), (0, 1)])).w1.value, 2)
        0.25
    """
    axes = _axes(space.domain if isinstance(space, Schema) else space)
    titles = list(names) if names is not None else _titles(space, len(axes))
    for name, points in (("real", real), ("synthetic", synthetic)):
        if points.ndim != 2 or points.shape[1] != len(axes) or len(points) == 0:
            raise ArgumentError(f"{name} must be at least one row of {len(axes)} columns, as the domain has.")
    if len(titles) != len(axes):
        raise ArgumentError(f"names must be {len(axes)} names, one per column, got {len(titles)}.")
    rng = np.random.default_rng(seed)
    tables = [real, synthetic, real[rng.integers(0, len(real), len(synthetic))]]  # the last: an i.i.d. resample
    places = [np.column_stack([axis.place(table[:, i]) for i, axis in enumerate(axes)]) for table in tables]
    bins = [[axis.bin(table[:, i]) for i, axis in enumerate(axes)] for table in tables]
    columns = tuple(
        ColumnFidelity(
            title,
            Figure(*(line_wasserstein(places[0][:, i], other[:, i]) for other in places[1:])),
            Figure(*(_variation(bins[0][i], other[i], axes[i].bins) for other in bins[1:])),
        )
        for i, title in enumerate(titles)
    )
    pairs = tuple(
        PairFidelity(titles[i], titles[j], Figure(*(_joint_variation(bins[0], o, i, j, axes) for o in bins[1:])))
        for i, j in combinations(range(len(axes)), 2)
    )
    sliced = _sliced(places, directions, samples, seed)
    known = variables(space)
    if not isinstance(space, Schema):
        known = [replace(v, name=titles[v.places.start]) for v in known]
    values = compare_values(real, synthetic, known, seed=seed)
    common = None if values.common is None else Figure(*values.common)
    person = space.person if isinstance(space, Schema) else None
    return Fidelity(columns, pairs, sliced, values.differences, common, person)


# ------------------------------------------------------------------------------------------------------------- parts


@dataclass(frozen=True)
class _Axis:
    """One column of points: where a value lies in [0, 1], and in which bin. NaN is missing, or else the first value."""

    low: float
    high: float
    categories: int = 0
    nullable: bool = False

    @property
    def bins(self) -> int:
        return (self.categories or COLUMN_BINS) + self.nullable  # the last is for missing values

    def place(self, values: Floats) -> Floats:
        if self.categories:
            return (self.bin(values) + 0.5) / self.bins
        missing = np.isnan(values)
        share = np.clip((np.where(missing, self.low, values) - self.low) / (self.high - self.low), 0, 1)
        return np.where(missing & self.nullable, -1.0, share)

    def bin(self, values: Floats) -> BinCodes:
        missing = np.isnan(values)
        if self.categories:
            code = np.clip(np.rint(np.where(missing, 0, values)), 0, self.categories - 1)
        else:
            share = (np.where(missing, self.low, values) - self.low) / (self.high - self.low)
            code = np.clip(np.floor(share * COLUMN_BINS), 0, COLUMN_BINS - 1)
        return np.where(missing & self.nullable, self.bins - 1, code).astype(np.int64)


def _titles(space: Schema | Domain, count: int) -> list[str]:
    """Return a name for every coordinate of points: a place has two."""
    if not isinstance(space, Schema):
        return [f"column {i}" for i in range(count)]
    return [name for title, column in space.data.items() for name in column.sources(title)[: column.domain.width]]


def _axes(domain: Domain) -> list[_Axis]:
    """Return the columns of a domain."""
    if isinstance(domain, Product):
        return [axis for factor in domain.factors for axis in _axes(factor)]
    if isinstance(domain, Nullable):
        return [replace(axis, nullable=True) for axis in _axes(domain.domain)]
    if isinstance(domain, Box):
        return [_Axis(low, high) for low, high in domain.bounds]
    if isinstance(domain, Integers):
        return [_Axis(domain.low, max(domain.high, domain.low + 1))]
    if isinstance(domain, Circle):
        return [_Axis(domain.low, domain.low + domain.period)]
    if isinstance(domain, Sphere):
        return [_Axis(-180, 180), _Axis(-90, 90)]
    if isinstance(domain, Categories | Finite):
        return [_Axis(0, 1, domain.count)]
    raise ArgumentError(f"fidelity does not know how to compare columns of {type(domain).__name__}.")


def _variation(x: BinCodes, y: BinCodes, bins: int) -> float:
    p, q = (np.bincount(codes, minlength=bins) / len(codes) for codes in (x, y))
    return min(1.0, float(np.abs(p - q).sum() / 2))  # floats may pass 1 by a hair


def _joint_variation(x: list[BinCodes], y: list[BinCodes], i: int, j: int, axes: list[_Axis]) -> float:
    a, b = (table[i] * axes[j].bins + table[j] for table in (x, y))
    size = axes[i].bins * axes[j].bins
    if size > DENSE_PAIRS:  # many categories: only the pairs that occur
        distinct, places = np.unique(np.concatenate((a, b)), return_inverse=True)
        a, b, size = places[: len(a)], places[len(a) :], len(distinct)
    return _variation(a, b, size)


def _sliced(places: list[Points], directions: int, samples: int, seed: int) -> Figure:
    rng = np.random.default_rng(seed)
    size = min(samples, *map(len, places))
    few = [points[rng.choice(len(points), size, replace=False)] if len(points) > size else points for points in places]
    values = [float(sliced_wasserstein(few[0], other, directions=directions, seed=seed)) for other in few[1:]]
    return Figure(*values)


def _mean(figures: Sequence[Figure]) -> Figure:
    return Figure(*(float(np.mean([getattr(figure, name) for figure in figures])) for name in ("value", "floor")))

"""What a person sees in each column: common values, missing values, mean, quantiles, distinct values. Confidential.

Distances over bins cannot see all of this: a column in which 60 % zeros all became small amounts has nearly the same
total variation and W1. Here the values themselves are compared, as they are written.

**Sampling baseline.** Each figure is also computed for resamples of the real rows, drawn with replacement, as many rows
as the synthetic table has. The laws of these figures are known, so that each is drawn by itself, without the rows. A
difference is called one only if it is well above the largest that these resamples show.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Floats, Points
from privmeasure.tables.arrow import numbers
from privmeasure.tables.columns.numbers import Numeric
from privmeasure.tables.variables import QUANTILES, Variable, plain_number

COMMON_SHARE = 0.01
"""Share of the real rows from which on a value is common."""
MAX_COMMON = 10
"""Common values of a column that are compared, the most frequent ones."""
RESAMPLES = 20
"""Resamples of the real rows: the baseline is the largest difference that one of them shows."""
ABOVE_BASELINE = 2.0
"""How many times the baseline a difference must exceed to be called one."""
MIN_SIZE = 0.001
"""Smallest size of a difference that is called one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """CONFIDENTIAL. A figure of one column in the real and in the synthetic rows, with its sampling baseline."""

    column: str
    figure: str
    """share, missing, mean, quantile or distinct."""
    of: str = ""
    """The value that has the share, or the number of the quantile; empty for other figures."""
    within: tuple[str, str] | None = None
    """A column of categories and one of its values, if only the rows with that value are compared."""
    real: float
    synthetic: float
    """Shares are from 0 to 1. A mean or quantile is in the units of the column; dates are days since 1970."""
    baseline: float
    """The largest difference between the real rows and a resample of them."""
    expected: float = 0.0
    """Within a category: the difference that the column has over all rows, which is no difference of the pair."""
    weight: float = 1.0
    """The size of a difference of 1, where sizes are at most 1."""
    unit: str = ""
    written: tuple[str, str] = ("", "")
    """A real and a synthetic mean or quantile, as a person reads them."""

    @property
    def size(self) -> float:
        """How large the difference is, from 0 to 1: in shares of all rows, or of the range of nine in ten values."""
        return min(1.0, self._apart * self.weight) if self._apart else 0.0

    @property
    def above_baseline(self) -> bool:
        """Whether the difference is larger than chance explains."""
        return self.size >= MIN_SIZE and self._apart > ABOVE_BASELINE * self.baseline

    @property
    def _apart(self) -> float:
        return abs(self.synthetic - self.real - self.expected)

    @property
    def name(self) -> str:
        """What is compared: "share of 0", "5 % quantile", "share of 0 where plan is basic"."""
        names = {"share": f"share of {self.of}", "missing": "share of missing values", "distinct": "distinct values"}
        averages = {"": "mean", "50 %": "median"}
        name = names.get(self.figure) or averages.get(self.of) or f"{self.of} quantile"
        return name if self.within is None else f"{name} where {' is '.join(self.within)}"

    @property
    def shown(self) -> tuple[str, str, str, str]:
        """The real and the synthetic figure, their difference, and the baseline, as a person reads them."""
        apart = self.synthetic - self.real
        if self.figure in ("share", "missing"):
            points = f"{100 * apart:+.1f} points", f"{100 * self.baseline:.1f} points"
            return (*_percents(self.real, self.synthetic), *points)
        if self.figure == "distinct":
            counts = [plain_number(number) for number in (self.real, self.synthetic, self.baseline)]
            return counts[0], counts[1], f"{'+' * (apart > 0)}{plain_number(apart)}", counts[2]
        unit = f" {self.unit}" if self.unit else ""
        return (
            *self.written,
            f"{'+' * (apart > 0)}{plain_number(apart, 3)}{unit}",
            f"{plain_number(self.baseline, 3)}{unit}",
        )

    def __str__(self) -> str:
        """Return one sentence."""
        real, synthetic, *_ = self.shown
        if self.figure in ("share", "missing"):
            where = "" if self.within is None else f" where {' is '.join(self.within)}"
            of = self.of if self.figure == "share" else "missing"
            return f"{self.column}: {of} in {real} of the real rows{where}, in {synthetic} of the synthetic ones"
        if self.figure == "distinct":
            return f"{self.column}: {real} distinct values in the real rows, {synthetic} in the synthetic ones"
        return f"{self.column}: the {self.name} is {real} in the real rows, {synthetic} in the synthetic ones"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        names = ("column", "figure", "of", "real", "synthetic", "baseline", "expected", "size", "above_baseline")
        within = None if self.within is None else {"column": self.within[0], "value": self.within[1]}
        more = {"within": within, "shown": list(self.shown), "sentence": str(self)}
        return {name: getattr(self, name) for name in names} | more


@dataclass(frozen=True, slots=True)
class ValuesCompared:
    """CONFIDENTIAL. All that was compared value by value, the largest differences first."""

    differences: tuple[Difference, ...]
    common: tuple[float, float] | None
    """Figure "common values" of the synthetic rows, and its mean over the resamples; None without common values."""


def common_values(real: NDArray[Any], synthetic: NDArray[Any]) -> float | None:
    """Return half the sum of |p - q| over the common values of one real column; NaN is missing. None if it has none.

    p and q are the shares of a value among all rows. Common are the values with p of at least 1 %, at most ten.

    Examples:
        >>> common_values(np.array([0.0, 0, 0, 7]), np.array([0.0, 0.5, 7, np.nan]))
        0.25
    """
    tallies = _tally(real), _tally(synthetic)
    common = tallies[0].common()
    return _half_sum(*(tally.shares(common) for tally in tallies)) if len(common) else None


def compare_values(real: Points, synthetic: Points, found: Sequence[Variable], *, seed: int = 0) -> ValuesCompared:
    """Compare the values of two tables, given as points, column by column and within categories. CONFIDENTIAL.

    Guarantee:  cost  one sort of each column; linear passes for each pair of a category and a column of numbers
    """
    rng = np.random.default_rng(seed)
    columns = [_Column(v, _values(v, real), _values(v, synthetic), rng) for v in found]
    differences = [difference for column in columns for difference in column.differences()]
    apart = [figures for column in columns if (figures := column.common_apart()) is not None]
    for category, column in product([c for c in columns if c.v.labels], [c for c in columns if not c.v.labels]):
        differences += _within(category, column, rng)
    differences.sort(key=lambda difference: (not difference.above_baseline, -difference.size))
    mean = np.mean(apart, axis=0) if apart else None
    return ValuesCompared(tuple(differences), None if mean is None else (float(mean[0]), float(mean[1])))


def largest(differences: Sequence[Difference], most: int, *, per_column: int = 3) -> list[Difference]:
    """Return the largest differences above the baseline: not too many of one column, so that others are seen."""
    chosen: list[Difference] = []
    for difference in differences:
        if len(chosen) == most or not difference.above_baseline:
            break
        if sum(other.column == difference.column for other in chosen) < per_column:
            chosen.append(difference)
    return chosen


# ------------------------------------------------------------------------------------------------------------- parts


AMOUNTS = ("mean", "quantile")
"""Figures in the units of the column."""
FigureName = tuple[str, Any]
"""A figure, and the value or the quantile that it is about."""


@dataclass(frozen=True)
class _Tally:
    """How often each value of a column occurs, in the order of the values, and how many are missing."""

    values: NDArray[Any]
    counts: NDArray[np.int64]
    missing: int

    @property
    def total(self) -> int:
        return int(self.counts.sum()) + self.missing

    def common(self) -> NDArray[Any]:
        """Return the common values, the most frequent ones first."""
        often = np.flatnonzero(self.counts / self.total >= COMMON_SHARE)
        return self.values[often[np.argsort(-self.counts[often], kind="stable")][:MAX_COMMON]]

    def shares(self, wanted: NDArray[Any]) -> Floats:
        """Return the shares of some values among all rows."""
        at = np.searchsorted(self.values, wanted)
        there = at < len(self.values)
        there[there] = self.values[at[there]] == wanted[there]
        return np.asarray(np.where(there, np.append(self.counts, 0)[at], 0) / self.total, np.float64)

    def figures(self, common: NDArray[Any], *, ordered: bool) -> "dict[FigureName, float]":
        """Return the shares of some values, of the missing, mean and quantiles of ordered values, distinct values."""
        found: dict[FigureName, float] = {
            ("share", value): share for value, share in zip(common.tolist(), self.shares(common).tolist(), strict=True)
        }
        found["missing", None] = self.missing / self.total
        present = int(self.counts.sum())
        if ordered and present:
            found["mean", None] = float(self.values @ self.counts / present)
            ranks = np.ceil(np.array(QUANTILES) * present - 1e-9)  # of the first value that enough rows do not exceed
            at = np.searchsorted(np.cumsum(self.counts), ranks)
            found |= {("quantile", q): value for q, value in zip(QUANTILES, self.values[at].tolist(), strict=True)}
        found["distinct", None] = float(np.count_nonzero(self.counts))
        return found

    def resampled(
        self, common: NDArray[Any], rows: int, rng: np.random.Generator, *, ordered: bool, times: int = RESAMPLES
    ) -> "dict[FigureName, Floats]":
        """Return what `figures` gives for tables of some number of rows drawn with replacement: a draw of each figure.

        Guarantee:  shares, missing and quantiles have the exact law of such a table, means the normal law of their
                    standard error, distinct values the exact mean and at least the variance
        """
        shares = np.append(self.shares(common), self.missing / self.total)
        drawn = rng.multinomial(rows, np.append(shares, max(0.0, 1 - shares.sum())), size=times)
        found: dict[FigureName, Floats] = {
            ("share", value): drawn[:, i] / rows for i, value in enumerate(common.tolist())
        }
        found["missing", None] = drawn[:, -2] / rows
        with np.errstate(divide="ignore"):
            absent = np.exp(rows * np.log1p(-self.counts / self.total))  # the chance that a value is not drawn
        found["distinct", None] = rng.normal((1 - absent).sum(), np.sqrt((absent * (1 - absent)).sum()), times)
        present = np.maximum(rows - drawn[:, -2], 1)
        if ordered and len(self.values):
            last = np.cumsum(self.counts)
            mean = self.values @ self.counts / last[-1]
            variance = (self.values - mean) ** 2 @ self.counts / last[-1]
            found["mean", None] = rng.normal(mean, np.sqrt(variance / present))
            for q in QUANTILES:
                rank = np.ceil(q * present - 1e-9)
                at = np.searchsorted(last, rng.beta(rank, present + 1 - rank) * last[-1])
                found["quantile", q] = self.values[at]
        return found


def _tally(values: NDArray[Any]) -> _Tally:
    present = values[~np.isnan(values)]
    return _Tally(*np.unique(present, return_counts=True), missing=len(values) - len(present))


def _values(v: Variable, points: Points) -> NDArray[Any]:
    """Return the values of a column as they are written, NaN for missing: numbers, positions, or two coordinates."""
    own = points[:, v.places]
    if v.present.width > 1:
        return own[:, 0] + 1j * own[:, 1]
    if v.labels:
        return np.clip(np.rint(own[:, 0]), 0, len(v.labels) - 1)
    return numbers(v.column.decode(own, [None])[0]) if isinstance(v.column, Numeric) else own[:, 0]


class _Column:
    """One column of both tables, and its common values."""

    def __init__(self, v: Variable, real: NDArray[Any], synthetic: NDArray[Any], rng: np.random.Generator) -> None:
        self.v, self.real, self.synthetic = v, real, synthetic
        self.tallies = _tally(real), _tally(synthetic)
        self.common = self.tallies[0].common()
        self.ordered = v.has_quantiles and not v.labels
        self.resampled = self.tallies[0].resampled(self.common, len(synthetic), rng, ordered=self.ordered)

    @cached_property
    def codes(self) -> tuple[NDArray[np.int64], ...]:
        """Which common value each row of the two tables has, by position; the last position is for all others."""
        place = np.full(len(self.v.labels) + 1, len(self.common))
        place[self.common.astype(np.int64)] = np.arange(len(self.common))
        last = len(self.v.labels)
        return tuple(place[np.where(np.isnan(x), last, x).astype(np.int64)] for x in (self.real, self.synthetic))

    @cached_property
    def commonest(self) -> tuple[NDArray[np.int64], ...]:
        """The rows of the two tables that have the most frequent value."""
        return tuple(np.flatnonzero(x == self.common[0]) for x in (self.real, self.synthetic))

    def text(self, value: Any) -> str:
        """Return a value as it is written."""
        if self.v.labels:
            return self.v.labels[int(value)]
        point = [value.real, value.imag] if isinstance(value, complex) else [value]
        if self.v.column is None or isinstance(self.v.column, Numeric):
            whole = getattr(self.v.column, "whole", False)
            return ", ".join(plain_number(int(x) if whole and x == int(x) else x) for x in point)
        cells = self.v.column.decode(np.array([point]), [None] * len(self.v.column.natural))
        return ", ".join(str(cell[0].as_py()) for cell in cells)

    def amount(self, value: float) -> float:
        """Return a value as a number whose differences have a unit: dates are days."""
        return float(self.v.drawn(np.array([value]))[0]) if self.v.scale == "date" else value

    def common_apart(self) -> tuple[float, float] | None:
        """Return the figure "common values", and its mean over resamples; None if there are none."""
        if not len(self.common):
            return None
        real, synthetic = (tally.shares(self.common) for tally in self.tallies)
        drawn = np.column_stack([self.resampled["share", value] for value in self.common.tolist()])
        return _half_sum(real, synthetic), float(np.abs(drawn - real).sum(axis=1).mean() / 2)

    def differences(self) -> Iterator[Difference]:
        """Yield every figure of the column."""
        real, synthetic = (tally.figures(self.common, ordered=self.ordered) for tally in self.tallies)
        for key in [key for key in real if key in synthetic]:
            figure, about = key
            if figure == "missing" and not self.v.nullable:
                continue
            amount = self.amount if figure in AMOUNTS else float
            ends = amount(real[key]), amount(synthetic[key])
            yield Difference(
                column=self.v.name,
                figure=figure,
                of=self.text(about) if figure == "share" else f"{100 * about:g} %" if figure == "quantile" else "",
                real=ends[0],
                synthetic=ends[1],
                baseline=max(abs(amount(again) - ends[0]) for again in self.resampled[key].tolist()),
                weight=1 / self.spread if figure in AMOUNTS else 1 / max(*ends, 1.0) if figure == "distinct" else 1.0,
                unit="days" if self.v.scale == "date" else self.v.unit,
                written=(self.written(real[key]), self.written(synthetic[key])) if figure in AMOUNTS else ("", ""),
            )

    def written(self, value: float) -> str:
        """Return a mean or a quantile with its unit."""
        return f"{self.text(value)} {self.v.unit}".rstrip()

    @property
    def spread(self) -> float:
        """The range of nine in ten real values, or of all of them; never 0."""
        values, counts = self.tallies[0].values, self.tallies[0].counts
        middle = values[np.searchsorted(np.cumsum(counts), np.array([0.05, 0.95]) * counts.sum())]
        ranges = [self.amount(high) - self.amount(low) for low, high in (middle, values[[0, -1]])]
        return next((float(wide) for wide in ranges if wide > 0), 1e-300)


def _within(category: _Column, column: _Column, rng: np.random.Generator) -> Iterator[Difference]:
    """Yield the share of the most frequent value of a column within each common value of a category."""
    if not len(category.common) or not len(column.common):
        return
    real, synthetic = (_hits(category, column, side) for side in (0, 1))
    expected = float(synthetic[:, 1].sum() / synthetic.sum() - real[:, 1].sum() / real.sum())
    drawn = rng.multinomial(synthetic.sum(), real.ravel() / real.sum(), size=RESAMPLES).reshape(-1, *real.shape)
    for i, value in enumerate(category.common):
        rows = real[i].sum()
        if not synthetic[i].sum():
            continue
        share = float(real[i, 1] / rows)
        sampled = drawn[:, i, 1] / np.maximum(drawn[:, i].sum(axis=1), 1)
        yield Difference(
            column=column.v.name,
            figure="share",
            of=column.text(column.common[0].item()),
            within=(category.v.name, category.text(value)),
            real=share,
            synthetic=float(synthetic[i, 1] / synthetic[i].sum()),
            baseline=float(np.abs(sampled - share).max()),
            expected=expected,
            weight=float(rows / real.sum()),
        )


def _hits(category: _Column, column: _Column, side: int) -> NDArray[np.int64]:
    """Return for each common value of a category, and for the rest, the rows without and with a column's commonest."""
    codes, hits = category.codes[side], column.commonest[side]
    size = len(category.common) + 1
    every, found = np.bincount(codes, minlength=size), np.bincount(codes[hits], minlength=size)
    return np.column_stack((every - found, found))


def _half_sum(p: Floats, q: Floats) -> float:
    return float(np.abs(p - q).sum() / 2)


def _percents(one: float, other: float) -> tuple[str, str]:
    """Return two shares with as many digits as tell them apart, up to three after the point."""
    for digits in (1, 2, 3):
        texts = f"{100 * one:.{digits}f} %", f"{100 * other:.{digits}f} %"
        if texts[0] != texts[1]:
            return texts
    return f"{100 * one:.1f} %", f"{100 * other:.1f} %"

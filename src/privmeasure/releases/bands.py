"""What a bootstrap from a release says: how far it typically is from its data, and bands around what it answers.

Estimates, not bounds: `typical_error` makes them. Public values alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privmeasure.domains import Floats
from privmeasure.notebook import html_table
from privmeasure.rounding import ROUNDING

MAX_LISTED_PAIRS = 45
"""Correlations up to which all are printed: those of ten columns."""
NOT_MEASURED = "not measured"
"""Stands for the band of the correlation of two columns that were not measured together."""
BLIND = (
    "An estimate, not a bound. Bands of means and quantiles follow from the noisy counts, and reach as far as rows may "
    "lie in their cells. For the rest the mechanism was run again on rows of the release, whose truth is known, which "
    "is blind to what the release has smoothed away already, such as spikes inside a cell."
)
"""What stands beside every figure."""


def covering_error(errors: ArrayLike, level: float) -> Any:
    """Return what the next error stays below with a chance of about `level`: the k-th of m, k = level (m + 1) or more.

    Exact for errors that are exchangeable; the largest one where there are too few for the level. Of a matrix, column
    by column.

    Examples:
        >>> covering_error(range(1, 21), 0.9)
        19.0
    """
    ordered = np.sort(np.asarray(errors, np.float64), axis=0)
    found = ordered[min(len(ordered), math.ceil(level * (len(ordered) + 1) - ROUNDING)) - 1]
    return found if found.ndim else float(found)


@dataclass(frozen=True, slots=True)
class Band:
    """What a release says of a number, and between which numbers that of the data lies, about 9 times in 10.

    The value need not lie in the middle, nor inside: noise lifts tails, and the band is where they were before.

    Examples:
        >>> print(Band(4.0, 2.5, 4.5), Band(4.0, 2.5, 4.5).error)
        4 (2.5 to 4.5) 1.5
    """

    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """By how much the value may be wrong, on the side on which that is more."""
        return max(self.value - self.low, self.high - self.value)

    @classmethod
    def of(cls, value: float, errors: ArrayLike, level: float, within: tuple[float, float]) -> "Band":
        """Return the band that errors of runs show, inside of bounds.

        It is as wide as the errors scatter, and moved by their mean. A release has lost some of that already, so that
        runs of it show less: it is moved by up to twice as much.
        """
        wrong = np.asarray(errors, np.float64)
        bias = float(wrong.mean())
        room = covering_error(np.abs(wrong - bias), level)
        ends = value - np.array([bias, 2 * bias])
        low, high = np.clip([ends.min() - room, ends.max() + room], *within)
        return cls(value, float(low), float(high))

    def __str__(self) -> str:
        """Say the value and the band."""
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True, slots=True)
class Spread:
    """A distance as it came out over the runs: on average, and what about 9 of 10 runs stay below.

    `floor` is the same between two samples of one distribution, where a distance of few rows cannot be near 0.
    """

    typical: float
    high: float
    floor: float | None = None

    @classmethod
    def of(cls, distances: Sequence[float], level: float, floors: Sequence[float] = ()) -> "Spread":
        """Return the spread of the distances of some runs."""
        floor = float(np.mean(floors)) if len(floors) else None
        return cls(float(np.mean(distances)), covering_error(distances, level), floor)


@dataclass(frozen=True, slots=True)
class BinBands:
    """The share of rows in every bin of a variable, as `tables.variables` has them, and the error of each."""

    shares: Floats
    errors: Floats


@dataclass(frozen=True, eq=False)
class TypicalError:
    """How wrong a release typically is, and bands around its answers. An estimate, not a bound; see `typical_error`.

    W1 distances are shares of the range of a column; of a pair or of whole rows, of the larger of the shares. `joint`
    has a floor where it was computed from few rows. `shares` are by value, with `missing` where cells may be. Quantiles
    are in the units of the column, of dates in days since 1970, of instants in steps of their resolution, of ranks in
    positions. `correlations` are None for columns that were not measured together.
    """

    runs: int
    level: float
    rows: int
    columns: Mapping[str, Spread]
    pairs: Mapping[tuple[str, str], Spread]
    joint: Spread
    means: Mapping[str, Band]
    quantiles: Mapping[str, Mapping[float, Band]]
    shares: Mapping[str, Mapping[str, Band]]
    correlations: Mapping[tuple[str, str], Band | None]
    functions: Mapping[str, Band]
    bins: Mapping[str, BinBands] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; pairs are lists of two names, values that are not finite are None."""
        return {
            "about": BLIND,
            "runs": self.runs,
            "level": self.level,
            "rows": self.rows,
            "columns": {name: _fields(spread) for name, spread in self.columns.items()},
            "pairs": [{"columns": list(names)} | _fields(spread) for names, spread in self.pairs.items()],
            "joint": _fields(self.joint),
            "means": {name: _fields(band) for name, band in self.means.items()},
            "quantiles": {n: {str(q): _fields(b) for q, b in own.items()} for n, own in self.quantiles.items()},
            "shares": {n: {value: _fields(b) for value, b in own.items()} for n, own in self.shares.items()},
            "correlations": [
                {"columns": list(n)} | ({"value": NOT_MEASURED} if band is None else _fields(band))
                for n, band in self.correlations.items()
            ],
            "functions": {name: _fields(band) for name, band in self.functions.items()},
        }

    def __str__(self) -> str:
        """Say the distances and the means."""
        wide = max(map(len, self.columns), default=0)
        lines = [
            f"typical    {self.runs} runs on {self.rows:,} rows of the release; bands are of about {self.level:.0%}"
        ]
        lines += [
            f"  {name:<{wide}}  W1 {spread.typical:.3g} of its range, seldom above {spread.high:.3g}"
            + (f"; mean {self.means[name]}" if name in self.means else "")
            for name, spread in self.columns.items()
        ]
        lines += [f"  {one} and {two}: correlation {band or NOT_MEASURED}" for (one, two), band in self._few_pairs]
        lines += [f"  {name}: {band}" for name, band in self.functions.items()]
        return "\n".join([*lines, BLIND])

    @property
    def _few_pairs(self) -> list[tuple[tuple[str, str], Band | None]]:
        """The correlations, if they are few enough to be listed."""
        return list(self.correlations.items()) if len(self.correlations) <= MAX_LISTED_PAIRS else []

    def _repr_html_(self) -> str:
        """Show the distances and the means in a notebook."""
        rows = [
            [name, f"{s.typical:.3g}", f"{s.high:.3g}", self.means.get(name, "")] for name, s in self.columns.items()
        ]
        rows += [[name, "", "", band] for name, band in self.functions.items()]
        heads = ["column", "W1 / range, typical", "seldom above", "mean"]
        return html_table(rows, heads=heads, title=f"Typical error: {self.runs} runs") + html_table([[BLIND]])


def _fields(value: Band | Spread) -> dict[str, float | None]:
    names = ("value", "low", "high", "error") if isinstance(value, Band) else ("typical", "high", "floor")
    found = {name: getattr(value, name) for name in names}
    return {name: item if item is None or math.isfinite(item) else None for name, item in found.items()}

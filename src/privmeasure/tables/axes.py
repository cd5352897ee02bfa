"""How numbers are stretched before they are cut: evenly, by ratio, or by declared stretches."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privmeasure.domains import Floats
from privmeasure.tables.base import plural


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A public, increasing map from [low, high] to the axis that is cut.

    Either the identity, or the logarithm, or (with `knots`, from low to high) piecewise linear with one unit of the
    axis a stretch.

    Examples:
        >>> axis = Axis(0, 1000, knots=np.array([0.0, 10, 100, 1000]))
        >>> axis.place(np.array([5.0, 55, 1000])), axis.values(np.array([0.5, 1.5, 3]))
        (array([0.5, 1.5, 3. ]), array([   5.,   55., 1000.]))
    """

    low: float
    high: float
    log: bool = False
    knots: Floats | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        low, high = self.place(np.array([self.low, self.high], np.float64))
        return float(low), float(high)

    def place(self, values: Floats) -> Floats:
        """Return the places of values of [low, high] on the axis; NaN stays."""
        if self.log:
            return np.log(values)
        if self.knots is not None:
            return np.asarray(np.interp(values, self.knots, np.arange(float(len(self.knots)))))
        return values

    def values(self, places: Floats) -> Floats:
        """Return the values at places of the axis."""
        if self.log:
            with np.errstate(over="ignore"):
                places = np.exp(places)
        elif self.knots is not None:
            places = np.interp(places, np.arange(float(len(self.knots))), self.knots)
        return np.clip(places, self.low, self.high)

    def cell_size(self, cuts: int, unit: str, *, whole: bool = False) -> str:
        """Say how wide cells are after some cuts, in the units of the values, which may be `whole` numbers.

        Examples:
            >>> axis = Axis(-0.5, 999.5, knots=np.array([-0.5, 0.5, 99.5, 999.5]))
            >>> axis.cell_size(7, ""), axis.cell_size(7, "year", whole=True), axis.cell_size(2, "year", whole=True)
            ('about 0.023 to 21', 'single values to about 21 years', 'single values to about 680 years')
        """
        if self.log:
            ratio = math.expm1(min((math.log(self.high) - math.log(self.low)) * 2.0**-cuts, 700.0))
            return f"within about {100 * ratio:.2g} %" if ratio < 1 else f"a factor of about {plural(1 + ratio, '')}"
        if self.knots is None:
            return f"about {plural((self.high - self.low) * 2.0**-cuts, unit)}"
        widths = np.diff(self.knots)
        share = len(widths) * 2.0**-cuts
        if share > 1:
            return f"{math.ceil(len(widths) / share)} groups of stretches"
        narrow, wide = share * float(widths.min()), share * float(widths.max())
        if not whole:
            return f"about {plural(narrow, '')} to {plural(wide, unit)}"
        least, most = round(narrow), max(2, round(wide))
        if least == most:
            return f"about {plural(float(most), unit)}"
        # a cell cannot hold less than one whole number
        return f"{'single values to about' if least <= 1 else f'about {least:,} to'} {plural(float(most), unit)}"

    def widest(self, cuts: int) -> Any:
        """Return the largest width of a cell after some cuts, in the units of the values."""
        if self.log:
            return -math.expm1((math.log(self.low) - math.log(self.high)) * 2.0**-cuts) * self.high
        if self.knots is None:
            return (self.high - self.low) * 2.0**-cuts
        return float(np.diff(self.knots).max()) * (len(self.knots) - 1) * 2.0**-cuts

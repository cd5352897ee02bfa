"""How numbers are stretched before they are cut: evenly, by ratio, or by declared stretches."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privmeasure.domains import Box, Floats, Knots
from privmeasure.domains.knots import log_knots
from privmeasure.domains.scales import find_edges
from privmeasure.tables.columns.fields import plural


@dataclass(frozen=True, eq=False)
class Stretch:
    """A public, increasing map from [low, high] to the axis that is cut.

    Either the identity, or (with `log`) equal ratios are equally long, or (with `breaks`, from low to high) each
    stretch between two breaks is. A stretched axis runs from 0 to K along its knots: see `Knots`, by which every
    machine places a value alike.

    Examples:
        >>> axis = Stretch(0, 1000, breaks=np.array([0.0, 10, 100, 1000]))
        >>> axis.place(np.array([5.0, 55, 1000])), axis.values(np.array([0.5, 1.5, 3]))
        (array([0.5, 1.5, 3. ]), array([   5.,   55., 1000.]))
        >>> Stretch(1, 16, log=True).edges(2)
        array([2., 4., 8.])
    """

    low: float
    high: float
    log: bool = False
    breaks: Floats | None = None

    @cached_property
    def knots(self) -> Knots | None:
        """The scale of a stretched axis."""
        if self.log:
            return log_knots(float(self.low), float(self.high))
        return None if self.breaks is None else Knots(self.breaks)

    @property
    def bounds(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        return (float(self.low), float(self.high)) if self.knots is None else (0.0, float(self.knots.count))

    @property
    def steepest(self) -> float:
        """By how much a value changes at most for a change of its place by 1."""
        return 1.0 if self.knots is None else self.knots.steepest

    def place(self, values: Floats) -> Floats:
        """Return the places of values of [low, high] on the axis; NaN stays."""
        return values if self.knots is None else self.knots.place(values)

    def values(self, places: Floats) -> Floats:
        """Return the values at places of the axis."""
        return np.clip(places if self.knots is None else self.knots.values(places), self.low, self.high)

    def edges(self, level: int) -> Floats:
        """Return the values at which the cells of a level begin, but for the first: public doubles, to compare with.

        The cell of a value x of [low, high] is the number of edges at or below x, for every double x.

        Guarantee:  cost  64 times placing 2^level values
        """
        box = Box([self.bounds])
        return find_edges(
            lambda values: box.locate(self.place(values)[:, None], level), 1 << level, self.low, self.high
        )

    def cell_size(self, cuts: int, unit: str, *, whole: bool = False) -> str:
        """Say how wide cells are after some cuts, in the units of the values, which may be `whole` numbers.

        Examples:
            >>> axis = Stretch(-0.5, 999.5, breaks=np.array([-0.5, 0.5, 99.5, 999.5]))
            >>> axis.cell_size(7, ""), axis.cell_size(7, "year", whole=True), axis.cell_size(2, "year", whole=True)
            ('about 0.023 to 21', 'single values to about 21 years', 'single values to about 680 years')
        """
        if self.log:
            ratio = math.expm1(min((math.log(self.high) - math.log(self.low)) * 2.0**-cuts, 700.0))
            return f"within about {100 * ratio:.2g} %" if ratio < 1 else f"a factor of about {plural(1 + ratio, '')}"
        if self.breaks is None:
            return f"about {plural((self.high - self.low) * 2.0**-cuts, unit)}"
        widths = np.diff(self.breaks)
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

    def distance(self, share: float, unit: str) -> str | None:
        """Say how long a share of the axis is in the units of the values; None where that differs from place to place.

        Examples:
            >>> Stretch(0, 200).distance(0.01, "year"), Stretch(1, 16, log=True).distance(0.01, "")
            ('2 years', '2.8 %')
        """
        if self.log:
            ratio = math.expm1(min((math.log(self.high) - math.log(self.low)) * share, 700.0))
            return f"{100 * ratio:.2g} %" if ratio < 1 else f"a factor of {plural(1 + ratio, '')}"
        return plural((self.high - self.low) * share, unit) if self.breaks is None else None

    def widest(self, cuts: int) -> Any:
        """Return the largest width of a cell after some cuts, in the units of the values."""
        if self.log:
            return -math.expm1((math.log(self.low) - math.log(self.high)) * 2.0**-cuts) * self.high
        if self.breaks is None:
            return (self.high - self.low) * 2.0**-cuts
        return float(np.diff(self.breaks).max()) * (len(self.breaks) - 1) * 2.0**-cuts

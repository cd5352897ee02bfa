"""What plans and bounds must know of the noise, without drawing any: what a law is, and which scales there are."""

from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Cells
from privmeasure.errors import ArgumentError

SMALLEST_SCALE, LARGEST_SCALE = Fraction(1, 50), Fraction(10**6)


def check_scale(scale: Fraction) -> None:
    """Raise where a scale is out of reach."""
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        shown = Decimal(scale.numerator) / scale.denominator  # a float might overflow
        raise ArgumentError(
            f"The noise scale must be from {SMALLEST_SCALE} to {LARGEST_SCALE}, got {shown:.4g}. "
            "The scale is sensitivity / budget: choose an epsilon, a depth or rows_per_person within reach."
        )


class Law(Protocol):
    """A law of integer noise, drawn by position. `DiscreteLaplace` is one."""

    @property
    def scale(self) -> Fraction:
        """The scale, an exact fraction."""
        ...

    @property
    def variance(self) -> float:
        """The variance of a draw."""
        ...

    def tail(self, size: int) -> float:
        """Return the chance that a draw is at least so large, on either side."""
        ...

    def draw(self, key: Any, *, part: int, level: int, cells: Cells) -> NDArray[np.int64]:
        """Return noise for some cells: a function of the key, the part, the level and the cell alone."""
        ...

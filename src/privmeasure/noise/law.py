"""What plans and bounds must know of the noise, without drawing any: which scales there are."""

from decimal import Decimal
from fractions import Fraction

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

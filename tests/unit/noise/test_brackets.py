"""Intervals of the noise on sign correlations: around the true value, and narrower with more digits."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from privmeasure.noise.entropy import Key
from privmeasure.noise.normal import UNIT, WORD
from privmeasure.noise.signs import ANYTHING, PLACES, RandomCorrelations

WORDS = 4
"""Words of digits from which the value is computed by hand: far more than the intervals have."""


def by_hand(draw: RandomCorrelations, columns: int, scale: Fraction) -> list[Decimal]:
    """scale t C from the definition, in units of 2^-PLACES, with 70 decimal digits."""
    unit = Decimal(UNIT << WORD * WORDS)
    deviates = [Decimal(int(digit)) / unit for digit in draw._deviates.digits(WORDS)]
    vectors = [deviates[i * (columns + 1) : (i + 1) * (columns + 1)] for i in range(columns)]
    t = sum((x * x for x in deviates[columns * (columns + 1) :]), Decimal(0)) / 2
    lengths = [sum(x * x for x in vector).sqrt() for vector in vectors]
    found = []
    for i, j in combinations(range(columns), 2):
        cosine = sum(x * y for x, y in zip(vectors[i], vectors[j], strict=True)) / (lengths[i] * lengths[j])
        found.append(t * cosine * scale.numerator / scale.denominator * (1 << PLACES))
    return found


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(10**5, 7)])
@pytest.mark.parametrize("columns", [2, 3, 6])
def test_intervals_are_narrow_and_hold_the_true_value(columns: int, scale: Fraction) -> None:
    with localcontext() as context:
        context.prec = 110
        for part in range(12):
            draw = RandomCorrelations(columns, Key.insecure(columns), part=part, level=1)
            values = by_hand(draw, columns, scale)
            one, two, three = ([*draw.brackets(scale, words)] for words in (1, 2, 3))
            for value, wide, narrow, finest in zip(values, one, two, three, strict=True):
                assert wide[0] <= narrow[0] <= finest[0] <= value <= finest[1] <= narrow[1] <= wide[1]
                assert narrow[1] - narrow[0] <= finest[1] - finest[0] + 2 <= 5, "two words give all places"
                size = abs(value) + Decimal(float(scale)) * (1 << PLACES)
                assert wide == ANYTHING or wide[1] - wide[0] <= size * Decimal(2) ** (14 - WORD) + 4


def test_a_vector_that_may_be_nothing_says_nothing() -> None:
    """Without any digit behind the point, short vectors are not distinguished from 0."""
    draw = RandomCorrelations(2, Key.insecure(1), part=0, level=1)
    draw._deviates._whole[:] = 0
    assert [*draw.brackets(Fraction(1), 0)] == [ANYTHING]


class Digits:
    """Deviates whose digits are given."""

    def __init__(self, *digits: int) -> None:
        self._digits = np.array(digits, object)

    def digits(self, words: int) -> np.ndarray:
        return self._digits


@pytest.mark.parametrize("cosine", [1, -1])
def test_what_is_cut_off_widens_the_size_of_a_draw_on_both_sides(cosine: int) -> None:
    """Two long vectors on one line, and t from (4 * 3^2) / 2 to (4 * 4^2) / 2 in units of the digits."""
    draw, far = RandomCorrelations(2, Key.insecure(1), part=0, level=1), 1 << 300
    draw._deviates = Digits(far, 0, 0, cosine * far, 0, 0, 3, -3, 3, 3)
    ((low, high),) = draw.brackets(Fraction((UNIT << WORD) ** 2), 1)
    ends = (low, high) if cosine > 0 else (-high, -low)
    assert [end / 2**PLACES for end in ends] == pytest.approx([18, 32])
    assert ends[0] <= 18 << PLACES
    assert ends[1] >= 32 << PLACES


@pytest.mark.parametrize("cosine", [1, -1])
@pytest.mark.parametrize("short", [0, 1])
def test_what_is_cut_off_widens_the_cosine_of_a_short_vector(short: int, cosine: int) -> None:
    """Two vectors on one line, one of them short, and t = 2: the cosine 1 or -1 is possible."""
    draw, far = RandomCorrelations(2, Key.insecure(1), part=0, level=1), 1 << 300
    lengths = [30, far] if short == 0 else [far, 30]
    draw._deviates = Digits(lengths[0], 0, 0, cosine * lengths[1], 0, 0, far, far, far, far)
    ((low, high),) = draw.brackets(Fraction((UNIT << WORD) ** 2, far * far), 1)
    assert low <= cosine * 2 << PLACES <= high
    assert max(-low, high) < 3 << PLACES

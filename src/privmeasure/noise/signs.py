"""Exact noise for the agreements of all pairs of columns at once: sums over rows of products of two signs.

A row is a vector v of signs, one for each of d columns, and adds v_i v_j to the agreement of the columns i and j. Noise
on each by itself would pay for every pair. This noise is made for such rows: the difference of two independent draws of

    t C,   C a correlation matrix, all of them being equally likely,   t ~ Gamma(p + 1), p = d (d - 1) / 2,

times the scale, rounded. One row then costs 1 / scale: docs/proofs/selection.md, Lemma 5. C holds the cosines of d
vectors of d + 1 normal deviates; t is half the sum of 2 (p + 1) squares of them. All is computed in whole numbers that
enclose the true ones, with as many digits as decide how each number is rounded.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, count
from math import comb, isqrt

import numpy as np
from numpy.typing import NDArray

from privmeasure.noise.entropy import Key
from privmeasure.noise.law import check_scale
from privmeasure.noise.normal import UNIT, WORD, Normals
from privmeasure.noise.tables import Bracket

PLACES = 64
"""Binary places of the numbers that are rounded."""
ANYTHING: Bracket = (-1 << 256, 1 << 256)
"""What is known of a cosine before the length of a vector is told from 0: no noise within reach is larger."""


def sign_noise(columns: int, scale: Fraction, key: Key, *, part: int) -> NDArray[np.int64]:
    """Return noise for the agreements of all pairs of columns: (0, 1), (0, 2), ..., (1, 2), ...

    Guarantee:  privacy   (rows that come or go) / scale, for all agreements together
                cost      about 20 microseconds a pair; the product of matrices takes columns^3 steps

    Examples:
        >>> sign_noise(4, Fraction(5), Key.insecure(1), part=0).shape
        (6,)
    """
    check_scale(scale)
    plus, minus = (RandomCorrelations(columns, key, part=part, level=level) for level in (1, 3))
    half = 1 << PLACES - 1
    for words in count(1):
        both = zip(plus.brackets(scale, words), minus.brackets(scale, words), strict=True)
        ends = [
            (first[0] - second[1] + half >> PLACES, first[1] - second[0] + half >> PLACES) for first, second in both
        ]
        if all(low == high for low, high in ends):
            return np.array([low for low, _ in ends], np.int64)
    raise AssertionError("unreachable")


class RandomCorrelations:
    """One draw of t C: the same whenever it is looked at, only more exactly. Positions of two levels of a part."""

    def __init__(self, columns: int, key: Key, *, part: int, level: int) -> None:
        """Draw the deviates: the vectors of the columns, then those of t."""
        self._columns, self._vectors = columns, columns * (columns + 1)
        number = self._vectors + 2 * (comb(columns, 2) + 1)
        self._deviates = Normals(key, part=part, level=level, count=number)

    def brackets(self, scale: Fraction, words: int) -> Iterator[Bracket]:
        """Yield an interval of scale t C for every pair of columns, in fixed point, from so many words of digits."""
        digits, d = self._deviates.digits(words), self._columns
        vectors, rest = digits[: self._vectors].reshape(d, d + 1), np.abs(digits[self._vectors :])
        least, most = int((rest * rest).sum()), int(((rest + 1) * (rest + 1)).sum())  # of 2 t, in units of its digits
        products, sizes = vectors @ vectors.T, np.abs(vectors).sum(axis=1)
        # each deviate is cut off by less than 1, so a product of two is off by less than their sizes and 1
        off = [[int(sizes[i] + sizes[j]) + d + 1 for j in range(d)] for i in range(d)]
        divisor = scale.denominator * 2 * UNIT**2 << 2 * WORD * words
        low_t, high_t = (scale.numerator * t << PLACES for t in (least, most))
        for i, j in combinations(range(d), 2):
            squares = [(int(products[k, k]) - off[k][k], int(products[k, k]) + off[k][k]) for k in (i, j)]
            if min(squares)[0] <= 0:
                yield ANYTHING
                continue
            low_root = isqrt(squares[0][0] * squares[1][0])
            high_root = isqrt(squares[0][1] * squares[1][1]) + 1
            low, high = int(products[i, j]) - off[i][j], int(products[i, j]) + off[i][j]
            yield (
                low * low_t // (divisor * high_root) if low >= 0 else low * high_t // (divisor * low_root),
                -(-high * high_t // (divisor * low_root) if high >= 0 else -high * low_t // (divisor * high_root)),
            )

"""Exact discrete Gaussian noise at any rational scale: no floating-point number decides a probability.

The law is P(Z = z) ~ exp(-z^2 / (2 s^2)), s the scale. A draw is a quotient and a remainder, Z = q H + R with
0 <= R < q, a power of two: R is random bits. H is looked up in a certified table (noise/tables.py), where its weight is
that of the value b of its block that is nearest to 0, exp(-b^2 / (2 s^2)), b = q H or, below 0, q H + q - 1. The draw
is kept with probability exp(-x), x = (Z^2 - b^2) / (2 s^2), so that what is kept has the weight exp(-Z^2 / (2 s^2)),
exactly. Else it is drawn again, at a position of its own: a block is at most 1/64 of the scale, so that one in a
hundred is. Up to scale 128, q = 1: R is 0, everything is kept, and H is Z.

To be kept is decided by a uniform U of which 32 binary digits are known at first. They nearly always decide: by a table
of the largest x of every block, then by 1 - x <= exp(-x) <= 1 - x + x^2 / 2 in whole numbers, rounded outwards. Else
exp(-x) is certified to more digits.

The time of a draw depends on its value in the rare branches: see the limits in SECURITY.md.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Cells
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import GaussianFacts, check_scale
from privmeasure.noise.tables import (
    LARGEST_TABLE_SCALE,
    Bracket,
    Draws,
    GuideTable,
    certified_floors,
    exp_minus,
    happens,
    in_blocks,
    product,
    words_of,
)

TRY = 1 << 16
"""Attempts are numbered from TRY t on in the t-th try at a cell: what refines one try is read by no other."""
SHORT = 32
"""Binary digits of U that are known at first."""


class DiscreteGaussian(GaussianFacts):
    """The law N_Z(0, scale^2), with its table.

    Notation:   s scale    q quotient base (a power of two)    H high digit    R remainder, 0 <= R < q
    Guarantee:  privacy   N_Z(0, s^2) added to integers of l_2 sensitivity D is D^2 / (2 s^2)-zCDP, exactly
                cost      nanoseconds a draw, milliseconds of set-up a scale: `make bench` prints both
    References: [CKS20] Definition 1, Theorem 4

    Examples:
        >>> cells = np.arange(5, dtype=np.uint64)
        >>> noise = discrete_gaussian(Fraction(2)).draw(Key.insecure(1), part=0, level=0, cells=cells)
        >>> noise.dtype, noise.shape
        (dtype('int64'), (5,))
    """

    def __init__(self, scale: Fraction) -> None:
        """Build the table; use `discrete_gaussian(scale)` to share it."""
        check_scale(scale)
        super().__init__(scale)
        self.q = 1
        while scale / self.q > LARGEST_TABLE_SCALE:
            self.q *= 2
        self.twice = 2 * scale * scale
        self.high = GuideTable(lambda bits: -reach(scale / self.q, bits), lambda bits: thresholds(scale, self.q, bits))
        if self.q > 1:
            a, b = self.twice.numerator, self.twice.denominator
            blocks = (self._nearest(h) for h in range(self.high.first, 1 - self.high.first))
            most = ((self.q - 1) * (2 * least + self.q - 1) for least in blocks)  # the largest Z^2 - b^2 of a block
            self.sure = np.array([(1 << SHORT) - 1 - (e * b << SHORT) // a for e in most], np.uint32)
            # x 2^32 is (Z^2 - b^2) factor / 2^shift, to a relative 2^-24 from below; no product passes 2^64
            self.shift = int(self.twice).bit_length() + 24 - SHORT
            self.factor = (b << self.shift + SHORT) // a

    def draw(self, key: Key, *, part: int, level: int, cells: Cells) -> Draws:
        """Return the noise of every cell: a function of the key, the part, the level and the cell alone."""
        return in_blocks(partial(self._draw_block, key, part, level), cells)

    def _draw_block(self, key: Key, part: int, level: int, cells: Cells) -> Draws:
        noise, waiting, unclear = self._look_up(key.words(part=part, level=level, cells=cells))
        t = 0
        while True:
            for i in unclear:
                noise[i] = self.settle(partial(_words, key, part, level, cells[i : i + 1]), t)
            if not len(waiting):
                return noise
            t += 1
            words = key.words(part=part, level=level, cells=cells[waiting], attempt=t * TRY)
            noise[waiting], again, unclear = self._look_up(words)
            waiting, unclear = waiting[again], waiting[unclear]

    def _look_up(self, words: NDArray[np.uint64]) -> tuple[Draws, NDArray[np.intp], NDArray[np.intp]]:
        """Return what the words of one try mean, where it is another try, and where they are too short to decide."""
        high, unclear = self.high.look_up(words, 0)
        noise = high.astype(np.int64)
        if self.q == 1:
            return noise, unclear[:0], unclear
        noise *= self.q
        noise += (words[:, 1] & np.uint64(self.q - 1)).view(np.int64)
        sure = self.sure.take(high - np.int16(self.high.first), mode="clip")
        doubtful = np.flatnonzero(words.view("<u4")[:, 3] >= sure)  # the first 32 digits of U
        dropped, close = self._compared(words[doubtful, 1], high[doubtful].astype(np.int64), noise[doubtful])
        again, near = doubtful[dropped], doubtful[close]
        if len(unclear):
            again, near = np.setdiff1d(again, unclear), np.union1d(near, unclear)
        return noise, again, near

    def _compared(self, words: NDArray[np.uint64], high: Draws, noise: Draws) -> tuple[NDArray[np.bool_], ...]:
        """Return which draws are not kept, and for which ones 32 digits are too few."""
        nearest = self.q * high + np.where(high < 0, self.q - 1, 0)
        excess = (noise * noise - nearest * nearest).view(np.uint64)
        least = excess * np.uint64(self.factor) >> np.uint64(self.shift)  # x 2^32, from below and from above
        most = least + (least >> np.uint64(22)) + np.uint64(2)
        u, one = words >> np.uint64(64 - SHORT), np.uint64(1 << SHORT)
        kept = u + most < one  # U < 1 - x
        above = one - least + (most**2 >> np.uint64(SHORT + 1)) + np.uint64(1)
        dropped = u >= above  # U >= 1 - x + x^2 / 2
        return dropped, ~(kept | dropped)

    def _nearest(self, high: int) -> int:
        """Return the magnitude of the value of a block that is nearest to 0."""
        return self.q * high if high >= 0 else -self.q * high - self.q + 1

    def settle(self, words: Callable[[int, int], Iterator[int]], first: int = 0) -> int:
        """Return one draw, reading as many words as it takes to decide it: the definition of the sampler.

        `words(column, t)` are those of the t-th try, the first of which is given.
        """
        t = first
        while True:
            high = self.high.settle(words(0, t))
            if self.q == 1:
                return high
            digits = words(1, t)
            word = next(digits)
            value = self.q * high + word % self.q
            if happens((value**2 - self._nearest(high) ** 2) / self.twice, word >> 64 - SHORT, SHORT, digits):
                return value
            t += 1


def _words(key: Key, part: int, level: int, cell: Cells, column: int, t: int) -> Iterator[int]:
    return words_of(key, part=part, level=level, cell=cell, column=column, first=t * TRY)


@lru_cache(maxsize=256)
def discrete_gaussian(scale: Fraction) -> DiscreteGaussian:
    """Return the law at a public scale; its table is kept for the next call."""
    return DiscreteGaussian(scale)


def reach(scale: Fraction, bits: int) -> int:
    """Return h with P(H >= h) and P(H <= -h) both below 2^-bits; `scale` is that of H.

    From h on, weights of at most 2^-(bits + 15) add up to less than 2^-bits: the scale is at most 128, h / scale is
    above 9, so that each weight is at most exp(-9 / 128) of the one before, while the weight of 0 is 1.
    """
    return isqrt(int(Fraction(14, 10) * (bits + 16) * scale * scale)) + 1  # 1.4 > 2 ln 2


def thresholds(scale: Fraction, q: int, bits: int) -> list[int]:
    """Return floor(2^bits P(H <= h)) for h = -reach, ..., reach - 1, certified."""
    most = reach(scale / q, bits)

    def intervals(work: int) -> list[Bracket]:
        one, count = 1 << work, reach(scale / q, work)
        right = tail_sums(_weights(scale, q, 0, count, work), work)
        left = tail_sums(_weights(scale, q, 1, count, work), work)
        total = right[0][0] + left[0][0], right[0][1] + left[0][1]

        def share(part: Bracket) -> Bracket:
            return (part[0] << work) // total[1], (part[1] << work) // total[0] + 1

        below = [share(left[h]) for h in range(most - 1, -1, -1)]  # P(H <= -1 - h) for h = most - 1, ..., 0
        above = [share(right[h]) for h in range(1, most + 1)]  # P(H >= h)
        return below + [(one - upper, one - lower) for lower, upper in above]

    return certified_floors(intervals, bits)


def _weights(scale: Fraction, q: int, offset: int, count: int, work: int) -> list[Bracket]:
    """Return intervals of exp(-(q h + offset)^2 / (2 scale^2)) for h = 0, ..., count: of each from the one before."""
    half = 1 / (2 * scale * scale)
    weight: Bracket = exp_minus(offset * offset * half, work) if offset else (1 << work, 1 << work)
    ratio, step = exp_minus((q * q + 2 * q * offset) * half, work), exp_minus(2 * q * q * half, work)
    found = [weight]
    for _ in range(count):
        weight, ratio = product(weight, ratio, work), product(ratio, step, work)
        found.append(weight)
    return found


def tail_sums(weights: list[Bracket], work: int) -> list[Bracket]:
    """Return the sums of the weights from each one on, those beyond the last included.

    What is beyond adds up to less than 2^-work (`reach`): one unit in the last place.
    """
    lower, upper, sums = 0, 1, []
    for low, high in reversed(weights):
        lower, upper = lower + low, upper + high
        sums.append((lower, upper))
    return sums[::-1]

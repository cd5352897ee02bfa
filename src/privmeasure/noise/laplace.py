"""Exact discrete Laplace noise at any rational scale: no floating-point number decides a probability.

The law is P(Z = z) = (1 - p) / (1 + p) * p^|z| with p = exp(-1 / scale). A draw is looked up in a certified table
(noise/tables.py: guide, thresholds, refinement). Beyond the table is the *tail*, where the law has no memory: the
excess is a fresh draw of the same law, given that it is >= 0.

Large scales use a quotient and a remainder: Z = q H + R. Given the sign of H the two are independent, R being a
truncated geometric variable counted upwards (H >= 0) or downwards (H < 0). So two small tables serve every scale.

The time of a draw depends on its value in the rare branches: see the limits in SECURITY.md.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from privmeasure.domains import Cells
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import LaplaceFacts, check_scale
from privmeasure.noise.tables import (
    LARGEST_TABLE_SCALE,
    Bracket,
    Draws,
    GuideTable,
    certified_floors,
    exp_minus,
    in_blocks,
    product,
    words_of,
)

TABLE_SCALES = 16
"""The table of H reaches this many scales on either side; beyond, with probability e^-16, is the tail."""


class DiscreteLaplace(LaplaceFacts):
    """The law Lap_Z(scale), with its tables.

    Notation:   p = exp(-1/scale)    q quotient base (a power of two)    H high digit    R remainder, 0 <= R < q
    Guarantee:  privacy   Lap_Z(D / epsilon) added to an integer of sensitivity D is epsilon-DP, exactly
                cost      nanoseconds a draw, milliseconds of set-up a scale: `make bench` prints both
    References: [HVZ23] appendix B (discrete Laplacian); [CKS20] Definition 3

    Examples:
        >>> cells = np.arange(5, dtype=np.uint64)
        >>> noise = discrete_laplace(Fraction(2)).draw(Key.insecure(1), part=0, level=0, cells=cells)
        >>> noise.dtype, noise.shape
        (dtype('int64'), (5,))
    """

    def __init__(self, scale: Fraction) -> None:
        """Build the tables; use `discrete_laplace(scale)` to share them."""
        check_scale(scale)
        super().__init__(scale)
        self.q = 1
        while scale / self.q > LARGEST_TABLE_SCALE:
            self.q *= 2
        self.reach = int(TABLE_SCALES * scale / self.q) + 2  # |H| = reach stands for "reach or beyond"
        self.high = GuideTable(lambda bits: -self.reach, lambda bits: high_thresholds(scale, self.q, self.reach, bits))
        self.low = GuideTable(lambda bits: 0, lambda bits: low_thresholds(scale, self.q, bits)) if self.q > 1 else None

    def draw(self, key: Key, *, part: int, level: int, cells: Cells) -> Draws:
        """Return the noise of every cell: a function of the key, the part, the level and the cell alone."""
        return in_blocks(partial(self._draw_block, key, part, level), cells)

    def _draw_block(self, key: Key, part: int, level: int, cells: Cells) -> Draws:
        words = key.words(part=part, level=level, cells=cells)
        high, undecided = self.high.look_up(words, 0)
        undecided = np.concatenate((undecided, np.flatnonzero(np.abs(high) >= self.reach)))
        noise = high.astype(np.int64)
        if self.low is not None:
            low, ties = self.low.look_up(words, 1)
            undecided = np.concatenate((undecided, ties))
            low = low.astype(np.int64)
            noise = noise * self.q + np.where(noise >= 0, low, self.q - 1 - low)
        for i in undecided:
            cell = cells[i : i + 1]
            columns = (words_of(key, part=part, level=level, cell=cell, column=column) for column in (0, 1))
            noise[i] = self.settle(*columns)
        return noise

    def settle(self, high_words: Iterator[int], low_words: Iterator[int]) -> int:
        """Return one draw, reading as many words as it takes to decide it: the definition of the sampler."""
        high = self._settle_high(high_words)
        if self.low is None:
            return high
        low = self.low.settle(low_words)
        return high * self.q + (low if high >= 0 else self.q - 1 - low)

    def _settle_high(self, words: Iterator[int]) -> int:
        high = self.high.settle(words)
        if abs(high) < self.reach:
            return high
        excess = -1
        while excess < 0:  # given that it is >= 0, a draw is geometric, as is the excess over any value
            excess = self._settle_high(words)
        return high + excess if high > 0 else high - excess


@lru_cache(maxsize=256)
def discrete_laplace(scale: Fraction) -> DiscreteLaplace:
    """Return the law at a public scale; its tables are kept for the next call."""
    return DiscreteLaplace(scale)


def high_thresholds(scale: Fraction, q: int, reach: int, bits: int) -> list[int]:
    """Return floor(2^bits P(H <= h)) for h = -reach, ..., reach - 1, certified.

    P(H <= -k) = p p^(q(k-1)) / (1 + p) for k >= 1, and P(H <= h) = 1 - p^(q(h+1)) / (1 + p) for h >= 0.
    """

    def intervals(work: int) -> list[Bracket]:
        one = 1 << work
        p, base = exp_minus(1 / scale, work), exp_minus(q / scale, work)
        tail = (one * one // (one + p[1]), one * one // (one + p[0]) + 1)  # 1 / (1 + p)
        tails = [tail]
        for _ in range(reach):
            tails.append(product(tails[-1], base, work))
        left = [product(p, tail, work) for tail in reversed(tails[:reach])]
        return left + [(one - tail[1], one - tail[0]) for tail in tails[1:]]

    return certified_floors(intervals, bits)


def low_thresholds(scale: Fraction, q: int, bits: int) -> list[int]:
    """Return floor(2^bits P(R <= r)) for r = 0, ..., q - 2, certified: P(R <= r) = (1 - p^(r+1)) / (1 - p^q)."""

    def intervals(work: int) -> list[Bracket]:
        one = 1 << work
        p, last = exp_minus(1 / scale, work), exp_minus(q / scale, work)
        inverse = (one * one // (one - last[0]), one * one // (one - last[1]) + 1)
        result, (lower, upper) = [], p
        for _ in range(q - 1):  # `product` written out: this loop is most of the set-up at large scales
            result.append(((one - upper) * inverse[0] >> work, ((one - lower) * inverse[1] >> work) + 1))
            lower, upper = lower * p[0] >> work, (upper * p[1] >> work) + 1
        return result

    return certified_floors(intervals, bits)

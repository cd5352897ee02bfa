"""Exact discrete Laplace noise at any rational scale: no floating-point number decides a probability.

The law is P(Z = z) = (1 - p) / (1 + p) * p^|z| with p = exp(-1 / scale). A draw compares a uniform U, of which 64
binary digits are known at first, with the exact values of the distribution function:

1. *Guide.* The top 16 bits of the word usually decide: a table of 65,536 answers, with a mark where they do not.
2. *Thresholds.* Marked words are compared with the first 64 binary digits of the distribution function, certified by
   integer interval arithmetic.
3. *Refinement.* A word that equals such a prefix (chance about 2^-64) takes 64 more random digits and compares them
   with 64 more digits of each threshold that shares the prefix, until all are decided.
4. *Tail.* Beyond the table the law has no memory: the excess is a fresh draw of the same law, given that it is >= 0.

Large scales use a quotient and a remainder: Z = q H + R. Given the sign of H the two are independent, R being a
truncated geometric variable counted upwards (H >= 0) or downwards (H < 0). So two small tables serve every scale.

The time of a draw depends on its value in the rare branches 2 to 4: see the limits in SECURITY.md.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import count, pairwise

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Cells
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import LaplaceFacts, check_scale
from privmeasure.threads import BLOCK

LARGEST_TABLE_SCALE = 128
"""The scale of H: above it, q doubles."""
TABLE_SCALES = 16
"""The table of H reaches this many scales on either side; beyond, with probability e^-16, is the tail."""
AMBIGUOUS = np.int16(-(2**15))

Draws = NDArray[np.int64]


class DiscreteLaplace(LaplaceFacts):
    """The law Lap_Z(scale), with its tables.

    Notation:   p = exp(-1/scale)    q quotient base (a power of two)    H high digit    R remainder, 0 <= R < q
    Guarantee:  privacy   Lap_Z(D / epsilon) added to an integer of sensitivity D is epsilon-DP, exactly
                cost      nanoseconds a draw, milliseconds of set-up a scale: `make bench` prints both
    References: [HVZ23] section 1.4 (discrete Laplacian); [CKS20] Definition 3

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
        self.high = GuideTable(-self.reach, lambda bits: high_thresholds(scale, self.q, self.reach, bits))
        self.low = GuideTable(0, lambda bits: low_thresholds(scale, self.q, bits)) if self.q > 1 else None

    def draw(self, key: Key, *, part: int, level: int, cells: Cells) -> Draws:
        """Return the noise of every cell: a function of the key, the part, the level and the cell alone."""
        noise = np.empty(len(cells), np.int64)
        for start in range(0, len(cells), BLOCK):
            block = cells[start : start + BLOCK]
            noise[start : start + BLOCK] = self._draw_block(key, part, level, block)
        return noise

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
            noise[i] = self.settle(*(_words_of(key, part, level, cell, column) for column in (0, 1)))
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


class GuideTable:
    """The inverse of a distribution function on consecutive integers, exact to any number of binary digits.

    U has the value first + #{i : t_i <= U}. `digits(bits)` returns floor(2^bits t_i), certified, for all i. The t_i are
    irrational, so that U equals none of them, and a prefix of U decides unless it is a prefix of some t_i.
    """

    def __init__(self, first: int, digits: Callable[[int], list[int]]) -> None:
        """Make the thresholds and the guide."""
        self.first = first
        self.digits = digits
        self.prefixes = digits(64)
        self.thresholds = np.array(self.prefixes, np.uint64)
        starts = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
        below = np.searchsorted(self.thresholds, starts, "left")
        within = np.searchsorted(self.thresholds, starts | np.uint64((1 << 48) - 1), "right")
        self.guide = np.where(below == within, first + below, AMBIGUOUS).astype(np.int16)

    def look_up(self, words: NDArray[np.uint64], column: int) -> tuple[NDArray[np.int16], NDArray[np.intp]]:
        """Return the values of one column of words, and the places of those words that are too short to decide."""
        top = words.view("<u2")[:, 4 * column + 3]  # the most significant 16 bits of each word
        values = self.guide.take(top, mode="wrap")
        marked = np.flatnonzero(values == AMBIGUOUS)
        word = words[marked, column]
        below = np.searchsorted(self.thresholds, word, "left")
        values[marked] = self.first + below
        return values, marked[below != np.searchsorted(self.thresholds, word, "right")]

    def settle(self, words: Iterator[int]) -> int:
        """Return the value of U, whose binary digits are the words, reading no more of them than needed."""
        u, bits, prefixes = next(words), 64, self.prefixes
        while True:
            below = bisect_left(prefixes, u)
            if below == bisect_right(prefixes, u):
                return self.first + below
            u, bits = u << 64 | next(words), bits + 64
            prefixes = self.digits(bits)


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


Bracket = tuple[int, int]
"""A real number x in fixed point: lower <= x 2^work <= upper."""


def certified_floors(intervals: Callable[[int], list[Bracket]], bits: int) -> list[int]:
    """Return floor(2^bits x) of every x, raising the working precision until both ends of each interval agree."""
    for work in (bits + 64 << i for i in count()):
        spare = work - bits
        bounds = intervals(work)
        result = [lower >> spare for lower, _ in bounds]
        if result == [upper >> spare for _, upper in bounds]:
            if any(a > b for a, b in pairwise(result)):
                raise AssertionError("a distribution function cannot fall")
            return result
    raise AssertionError("unreachable")


def exp_minus(x: Fraction, work: int) -> Bracket:
    """Return an interval of exp(-x), x > 0, in fixed point.

    The series is summed at y = x / 2^k <= 1/4 and the result is squared k times; every step rounds outwards.
    """
    k = max(0, (4 * x.numerator // x.denominator).bit_length())
    fine = work + k + 16
    y = (x.numerator << fine) // (x.denominator << k)
    term: Bracket = (1 << fine, 1 << fine)
    lower, upper = term
    for i in count(1):
        term = (term[0] * y // (i << fine), term[1] * (y + 1) // (i << fine) + 1)
        lower, upper = (lower - term[1], upper - term[0]) if i % 2 else (lower + term[0], upper + term[1])
        if term[1] <= 2:
            break
    lower, upper = lower - 2, upper + 2  # the remainder of an alternating series is at most its last term
    for _ in range(k):
        lower, upper = lower * lower >> fine, (upper * upper >> fine) + 1
    return max(0, lower >> fine - work), (upper >> fine - work) + 1


def product(a: Bracket, b: Bracket, work: int) -> Bracket:
    """Return the product of two intervals of non-negative numbers, rounded outwards."""
    return a[0] * b[0] >> work, (a[1] * b[1] >> work) + 1


def _words_of(key: Key, part: int, level: int, cell: Cells, column: int) -> Iterator[int]:
    for attempt in count():
        yield int(key.words(part=part, level=level, cells=cell, attempt=attempt)[0, column])

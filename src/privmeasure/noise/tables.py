"""Certified tables: the inverse of a distribution function, exact to any number of binary digits, integers alone.

A draw compares a uniform U, of which 64 binary digits are known at first, with values of a distribution function that
interval arithmetic certifies:

1. *Guide.* The top 16 bits of the word usually decide: a table of 65,536 answers, with a mark where they do not.
2. *Thresholds.* Marked words are compared with the first 64 binary digits of the distribution function.
3. *Refinement.* A word that equals such a prefix (chance about 2^-64) takes 64 more random digits and compares them
   with 64 more digits of each threshold that shares the prefix, until all are decided.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count, pairwise

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Cells
from privmeasure.noise.entropy import Key
from privmeasure.threads import BLOCK

AMBIGUOUS = np.int16(-(2**15))
LARGEST_TABLE_SCALE = 128
"""The largest scale of a quotient H that is looked up: above it, the remainder doubles."""

Draws = NDArray[np.int64]


class GuideTable:
    """The inverse of a distribution function on consecutive integers, exact to any number of binary digits.

    U has the value first + #{i : t_i <= U}. `digits(bits)` returns floor(2^bits t_i), certified, for all i. U equals
    none of them, or with no chance, and a prefix of U decides unless it is a prefix of some t_i. Where values have no
    end, more digits see more of them: `firsts(bits)` is then the first value that so many digits can tell apart, and
    prefixes of 0 and of ones alone stand for all values beyond.
    """

    def __init__(self, firsts: Callable[[int], int], digits: Callable[[int], list[int]]) -> None:
        """Make the thresholds and the guide."""
        self.firsts, self.digits = firsts, digits
        self.first = first = firsts(64)
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
                return self.firsts(bits) + below
            u, bits = u << 64 | next(words), bits + 64
            prefixes = self.digits(bits)


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


def in_blocks(draw: Callable[[Cells], Draws], cells: Cells) -> Draws:
    """Return the noise of all cells, drawn a block at a time: blocks stay in the cache, and change nothing."""
    noise = np.empty(len(cells), np.int64)
    for start in range(0, len(cells), BLOCK):
        noise[start : start + BLOCK] = draw(cells[start : start + BLOCK])
    return noise


def words_of(key: Key, *, part: int, level: int, cell: Cells, column: int, first: int = 0) -> Iterator[int]:
    """Yield the words of one column at the position of a cell, one an attempt."""
    for attempt in count(first):
        yield int(key.words(part=part, level=level, cells=cell, attempt=attempt)[0, column])


def happens(x: Fraction, u: int, bits: int, more: Iterator[int]) -> bool:
    """Return whether U < exp(-x), x >= 0: an event of that chance. `u` has the first bits of U, further words the rest.

    Examples:
        >>> happens(Fraction(1), 0, 32, iter([])), happens(Fraction(1), 2**32 - 1, 32, iter([]))
        (True, False)
    """
    if x == 0:
        return True
    while True:
        lower, upper = exp_minus(x, bits)
        if u < lower:  # U < (u + 1) / 2^bits <= exp(-x)
            return True
        if u >= upper:
            return False
        u, bits = u << 64 | next(more), bits + 64

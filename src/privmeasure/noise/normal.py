"""Exact normal deviates, of which more binary digits are read whenever they are needed: no float decides anything.

The size of a deviate, in units of 1/128, is a whole number K >= 0 and a fraction F. K is a draw of N_Z(0, 128^2) that
is not negative, so that its weight is exp(-K^2 / (2 128^2)). The digits of F are random words, and the two are kept
with probability exp(-x), x = (2 K F + F^2) / (2 128^2): what is kept has a density proportional to
exp(-(K + F)^2 / (2 128^2)), exactly. Else both are drawn again, at a position of their own. To be kept is decided by as
many digits of F as it takes, so that those that were not read are still evenly distributed.
"""

from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Cells
from privmeasure.noise.entropy import Key
from privmeasure.noise.gaussian import discrete_gaussian
from privmeasure.noise.tables import LARGEST_TABLE_SCALE, happens, words_of

UNIT = LARGEST_TABLE_SCALE
"""Deviates are told in units of 1/128: a power of two, and the largest scale whose draws are looked up."""
TRIES = 1 << 32
"""The cell of a draw is try * TRIES + place: tries never meet."""
WORD = 64
"""Binary digits of a word."""


class Normals:
    """Independent normal deviates at the positions of two levels of a part, as exactly as anyone asks.

    Examples:
        >>> deviates = Normals(Key.insecure(1), part=0, level=1, count=3)
        >>> rough, fine = deviates.digits(1), deviates.digits(2)
        >>> [int(abs(a)) == abs(b) >> 64 for a, b in zip(rough, fine)]
        [True, True, True]
    """

    def __init__(self, key: Key, *, part: int, level: int, count: int) -> None:
        """Draw what decides the deviates: their whole parts and signs, and which tries are kept."""
        self._key, self._part, self._level = key, part, level
        self._whole, self._sign = np.zeros(count, np.int64), np.ones(count, np.int64)
        self._cells = np.arange(count, dtype=np.uint64)
        waiting = np.arange(count)
        while len(waiting):
            cells = self._cells[waiting]
            whole = discrete_gaussian(Fraction(UNIT)).draw(key, part=part, level=level, cells=cells)
            coins = key.words(part=part, level=level + 1, cells=cells)[:, 1]
            kept = self._kept(whole, coins >> np.uint64(1), cells)
            self._whole[waiting], self._sign[waiting] = whole, 1 - 2 * (coins & np.uint64(1)).astype(np.int64)
            waiting = waiting[~kept]
            self._cells[waiting] += np.uint64(TRIES)

    def digits(self, words: int) -> NDArray[Any]:
        """Return the deviates in units of 1/128, with so many words of binary digits behind the point, as integers.

        They are cut off: the size of a deviate is from that of its integer to one more.
        """
        sizes = self._whole.astype(object)
        for attempt in range(words):
            word = self._key.words(part=self._part, level=self._level + 1, cells=self._cells, attempt=attempt)[:, 0]
            sizes = sizes * (1 << WORD) + word.astype(object)
        return np.asarray(sizes * self._sign)

    def _kept(self, whole: NDArray[np.int64], coins: NDArray[np.uint64], cells: Cells) -> NDArray[np.bool_]:
        """Say which tries are kept: those with U < exp(-x), 63 digits of U being given. Negative draws never are."""
        # x < (2 K + 1) / 2^15 and 1 - x <= exp(-x): this decides nearly always
        sure = coins < np.uint64(1 << 63) - (2 * np.abs(whole) + 1).astype(np.uint64) * np.uint64(
            (1 << 63) // (2 * UNIT**2)
        )
        kept = (whole >= 0) & sure
        for i in np.flatnonzero((whole >= 0) & ~sure):
            kept[i] = self._settled(int(whole[i]), int(coins[i]), cells[i : i + 1])
        return kept

    def _settled(self, whole: int, coin: int, cell: Cells) -> bool:
        """Say whether a try is kept, reading as many words as decide it: those of the fraction, and those of U."""

        def words(column: int, first: int) -> Any:
            return words_of(self._key, part=self._part, level=self._level + 1, cell=cell, column=column, first=first)

        fraction, digits = 0, words(0, 0)
        for one in (1 << WORD * number for number in count(1)):
            fraction = fraction << WORD | next(digits)
            ends = (Fraction(2 * whole * f * one + f * f, 2 * (UNIT * one) ** 2) for f in (fraction, fraction + 1))
            answers = {happens(x, coin, 63, words(1, 1)) for x in ends}
            if len(answers) == 1:
                return answers.pop()
        raise AssertionError("unreachable")

"""The exponential mechanism, exactly: one of several candidates, with chances ~ exp(score / scale).

A candidate is drawn uniformly and kept with probability exp(-gap / scale), its gap being the largest score less its
own; else another try begins. What is kept has the wanted law, as every try is alike and independent.

The gap is a whole number, a sum of powers of two, so that exp(-gap / scale) is the product of exp(-2^b / scale) over
its binary digits b: a candidate is kept if one event for each digit happens. Each compares a random word with 64
certified binary digits, and takes more where the word equals them. So no float decides, and many tries are made at
once.

The words of a try are at positions of their own. How many tries it takes, and so the time, depends on the scores, which
are private: they come in batches of at least `FIRST_TRIES`, of which the first nearly always suffices where there are
few candidates. See the limits in SECURITY.md.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privmeasure.noise.entropy import LEVELS, Key
from privmeasure.noise.tables import certified_floors, exp_minus, happens, words_of

FIRST_TRIES = 1 << 10
"""Tries that are made at once, at first; then four times as many ..."""
LARGEST_TRIES = 1 << 18
"""... up to so many."""
POSITIONS = 64
"""Positions of a try: one for the candidate, then one for each binary digit of its gap."""


def exponential_choice(scores: NDArray[np.int64], *, scale: Fraction, key: Key, round_: int, part: int) -> int:
    """Return the position of one score, with chances ~ exp(score / scale); the scores are PRIVATE.

    One person changes each score by at most D. `round_` numbers the choices of one release: each has words of its own.

    Notation:   D sensitivity    e = 2 D / scale
    Guarantee:  privacy   e^2 / 8-zCDP, that is D^2 / (2 scale^2): docs/proofs/gaussian.md
    References: McSherry and Talwar 2007; Cesar and Rogers 2021 (its range is bounded, hence the 8)

    Examples:
        >>> scores = np.array([0, 3, 1000])
        >>> exponential_choice(scores, scale=Fraction(2), key=Key.insecure(1), round_=0, part=0)
        2
    """
    gaps = (int(scores.max()) - scores.astype(np.int64)).astype(np.uint64)
    high, level = divmod(round_, LEVELS)
    first, batch = 0, FIRST_TRIES
    while True:
        place = np.uint64(high << 48) + np.arange(first, first + batch, dtype=np.uint64) * np.uint64(POSITIONS)
        kept, candidate = _tries(gaps, place, scale, key, part, level)
        if len(kept):
            return int(candidate[kept[0]])  # only the first leaves
        first, batch = first + batch, min(4 * batch, LARGEST_TRIES)


def _tries(
    gaps: NDArray[np.uint64], place: NDArray[np.uint64], scale: Fraction, key: Key, part: int, level: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which tries keep their candidate, and the candidates of all. PRIVATE."""
    words = key.words(part=part, level=level, cells=place)[:, 0]
    count = len(gaps)
    alive = np.flatnonzero(words <= np.uint64((1 << 64) // count * count - 1))  # else some would be likelier
    candidate = (words % np.uint64(count)).astype(np.intp)
    gap, chances = gaps[candidate], digit_chances(scale)
    for digit in range(len(chances) - 1, -1, -1):
        asked = gap[alive] >> np.uint64(digit) & np.uint64(1) == 1
        if not asked.any():
            continue
        tried = alive[asked]
        at = place[tried] + np.uint64(1 + digit)
        word = key.words(part=part, level=level, cells=at)[:, 0]
        happened = word < chances[digit]
        for i in np.flatnonzero(word == chances[digit]):
            more = words_of(key, part=part, level=level, cell=at[i : i + 1], column=0, first=1)
            happened[i] = happens(Fraction(1 << digit) / scale, int(word[i]), 64, more)
        alive = np.sort(np.concatenate((alive[~asked], tried[happened])))
    return alive, candidate


@lru_cache(maxsize=64)
def digit_chances(scale: Fraction) -> NDArray[np.uint64]:
    """Return the first 64 binary digits of exp(-2^b / scale) for b = 0, ..., 62, certified."""
    floors = certified_floors(lambda work: list(_descending(scale, work)), 64)
    return np.array(floors[::-1], np.uint64)


def _descending(scale: Fraction, work: int) -> Iterator[tuple[int, int]]:
    """Yield intervals of exp(-2^b / scale), the largest b first: they rise, as `certified_floors` wants it."""
    for digit in range(62, -1, -1):
        yield exp_minus(Fraction(1 << digit) / scale, work)

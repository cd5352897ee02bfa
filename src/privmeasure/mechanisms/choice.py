"""One choice among many: the largest whole-number score plus one-sided geometric noise, and scores of tables.

The noise of a candidate is Z >= 0 with P(Z >= z) = exp(-z epsilon / (2 D)): exactly Lap_Z(2 D / epsilon) given that it
is not negative. A draw below 0 is thrown away and the next position is read, so every candidate's noise is fresh, exact
and a function of the key and of positions alone. It has half the variance of Laplace noise of the same scale.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import LEVELS, Key
from privmeasure.noise.law import LAPLACE, Law
from privmeasure.privacy import Privacy

PART = (1 << 16) - 1
"""The part of the noise positions that belongs to selections: no column and no pair has it."""
CANDIDATES = 1 << 32
"""The cell of a draw is attempt * CANDIDATES + candidate: attempts never meet."""
USUAL = 0.8
"""E|Poisson(m) - m| / sqrt(m) for large m: what sampling alone adds to a cell. A public constant."""
FALSE_ALARM = 0.3
"""What a cell of noise alone adds to a table after all, over its part beyond what is clear: of empty cells few stay."""


def noisy_max(
    scores: NDArray[np.int64], *, privacy: Privacy, budget: Fraction, key: Key, round_: int, part: int = PART
) -> int:
    """Return the position of the largest score + noise, the first of several; the scores are PRIVATE.

    One person changes each score by at most D, possibly all of them, possibly in different directions. The noise is
    one-sided geometric whatever the law of the counts' noise is: the proof is about it.
    `round_` numbers the choices of one release: each has noise of its own.

    Notation:   D sensitivity    p = exp(-budget / (2 D))
    Guarantee:  privacy   budget-DP: docs/proofs/selection.md
    References: permute-and-flip (McKenna and Sheldon 2020), which breaks ties at random; here the first wins

    Examples:
        >>> scores = np.array([0, 3, 1000])
        >>> privacy = Privacy(1, "add-remove")
        >>> noisy_max(scores, privacy=privacy, budget=privacy.epsilon, key=Key.insecure(1), round_=0)
        2
    """
    if privacy.delta:
        raise AssertionError("with a delta the choice is that of the exponential mechanism")
    law = law_of(LAPLACE, 2 * privacy.scale(budget))
    noise = one_sided(law, len(scores), key=key, round_=round_, part=part)
    # PRIVATE + noise; only the position of the largest leaves. np.argmax takes the first of ties: a public order.
    return int(np.argmax(np.asarray(scores, np.int64) + noise))


def one_sided(law: Law, count: int, *, key: Key, round_: int, part: int = PART) -> NDArray[np.int64]:
    """Return `count` independent draws of the law given Z >= 0, by rejection: P(Z = z) = (1 - p) p^z for z >= 0.

    Each attempt reads positions that no other attempt, candidate or round reads. How long it takes depends on the noise
    alone, never on a score.
    """
    high, low = divmod(round_, LEVELS)
    cells = np.arange(count, dtype=np.uint64) + np.uint64(high << 48)
    noise = np.full(count, -1, np.int64)
    waiting, attempt = np.arange(count), 0
    while len(waiting):
        at = cells[waiting] + np.uint64(attempt * CANDIDATES)
        noise[waiting] = law.draw(key, part=part, level=low, cells=at)
        waiting = waiting[noise[waiting] < 0]
        attempt += 1
    return noise


def score(true: NDArray[np.int64], expected: NDArray[np.float64]) -> int:
    """Return how far a pair's true table is from what earlier releases expect of it: a whole number, PRIVATE.

    The l_1 distance from the expected table, rounded, less what sampling alone would add to it. `expected` must be a
    function of released values only; it is rounded before it meets a count.

    Notation:   c true counts, E expected counts
                score = sum |c - round(E)| - round(sum min(E, 0.8 sqrt(E)))
    Guarantee:  privacy   neighbouring tables change c by at most D in l_1, E and the second sum by nothing; so the
                          score changes by at most D, whatever E is (the triangle inequality)
    """
    public = np.rint(expected).astype(np.int64)
    usual = round(float(np.minimum(expected, USUAL * np.sqrt(expected)).sum()))
    return int(np.abs(true - public).sum()) - usual


def worth(true: NDArray[np.int64], expected: NDArray[np.float64], noise: float, *, clear: float) -> int:
    """Return what is clearly told by a table with noise, of what is not expected: a whole number, PRIVATE.

    Of every cell what it is off, beyond `clear` times the size of its noise and what sampling alone would add. Cells
    that are as expected count nothing, however many there are: a fine table of columns that nearly determine each other
    is worth more than a coarse one, a fine table of columns that hardly do is worth nothing.

    Notation:   c true counts, E expected counts
                worth = sum max(|c - round(E)| - round(clear noise + min(E, 0.8 sqrt(E))), 0) - a public number
    Guarantee:  privacy   each term changes by no more than its count does, so the sum by at most D, whatever E is
    """
    public = np.rint(expected).astype(np.int64)
    usual = np.rint(clear * noise + np.minimum(expected, USUAL * np.sqrt(expected))).astype(np.int64)
    alarms = round(FALSE_ALARM * math.exp(-clear) * noise * expected.size)
    return int(np.maximum(np.abs(true - public) - usual, 0).sum()) - alarms

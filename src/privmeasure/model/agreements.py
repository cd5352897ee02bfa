"""Agreements: one noisy number for every two columns, and what it says beyond the measured tables.

Each column is cut into two halves of about equal released mass. The agreement of two columns is the number of rows in
like halves of both less that of rows in unlike ones: their correlation, coarsely. Tables are bought for few pairs; with
agreements the model knows a little of all. Everything here is computed from released values.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Floats
from privmeasure.model.ranks import Groups
from privmeasure.noise.law import LAPLACE, LawName, agreement_variance
from privmeasure.rounding import TINY

CHANCE = 0.2
"""The share of the agreements that are followed which may differ from what the tables say by chance alone.

Less leaves dependences out, more follows noise. Fixed, as files do not hold it: see `privmeasure.model`.
"""
CLEAR = 2.0
"""Standard deviations that an agreement must differ by at least: enough among many that do, too little among few."""
MOST_FOLLOWED = 8
"""Agreements that are followed, for each column: those that differ most.

With more of them columns of wide tables have dozens of parents: rows take several times as long, and what parents say
together is no longer fitted well. Fixed, as above.
"""
NEARLY = 0.98
"""How far towards an impossible table an agreement may go: noise can ask for more rows than there are."""
LIKE = np.array([[1.0, -1.0], [-1.0, 1.0]])
"""What cells of two halves add to an agreement."""


@dataclass(frozen=True, eq=False)
class Agreements:
    """The noisy agreements of all pairs of some columns; `halves[j]` is the half of every rank cell of column j.

    Notation:   scale of the noise, and the law of the release: see `agreement_variance`
    """

    names: tuple[tuple[int, int], ...]
    halves: tuple[Groups, ...]
    noisy: NDArray[np.int64]
    scale: Fraction
    law: LawName = LAPLACE

    @property
    def variance(self) -> float:
        """The variance of the noise of each."""
        return agreement_variance(len(self.names), self.scale, self.law)


def two_halves(mass: Floats, *, ordered: bool) -> Groups:
    """Return a half, 0 or 1, for every rank cell: about equal masses, where cells are ordered the low and the high.

    Neither is empty where there are two cells.

    Examples:
        >>> two_halves(np.array([3.0, 1.0, 2.0]), ordered=True), two_halves(np.array([1.0, 9.0, 2.0]), ordered=False)
        (array([0, 1, 1]), array([1, 0, 1]))
    """
    order = np.arange(len(mass)) if ordered else np.argsort(-mass, kind="stable")
    middle = np.cumsum(mass[order]) - mass[order] / 2
    cut = int(np.searchsorted(middle, mass.sum() / 2, "right"))
    halves = np.zeros(len(mass), np.int64)
    halves[order[max(min(cut, len(mass) - 1), 1) :]] = 1
    return halves


def agreement_of(table: NDArray[np.int64], first: Groups, second: Groups) -> int:
    """Return the agreement of two columns whose halves are given, in a table of their rank cells.

    Examples:
        >>> agreement_of(np.array([[5, 1], [2, 9]]), np.array([0, 1]), np.array([0, 1]))
        11
    """
    return int((1 - 2 * first) @ table @ (1 - 2 * second))


def expected_agreements(
    names: Sequence[tuple[int, int]], halves: Sequence[Groups], drawn: Sequence[NDArray[np.int32]]
) -> Floats:
    """Return the agreements of pairs of columns in rows, over the number of rows.

    Examples:
        >>> rows = [np.array([0, 1, 1, 1], np.int32), np.array([0, 1, 1, 0], np.int32)]
        >>> expected_agreements([(0, 1)], [np.array([0, 1])] * 2, rows)
        array([0.5])
    """
    sides = [half.astype(np.int8).take(cells) for half, cells in zip(halves, drawn, strict=True)]
    return np.array([1 - 2 * np.count_nonzero(sides[i] != sides[j]) / len(sides[i]) for i, j in names])


def surprising_tables(
    agreements: Agreements,
    margins: Sequence[Floats],
    drawn: Sequence[NDArray[np.int32]],
    known: Collection[tuple[int, int]],
) -> dict[tuple[int, int], Floats]:
    """Return tables of halves for the pairs whose agreement is clearly not that of rows `drawn` from the model so far.

    `known` pairs have tables of their own, which say more. What differs is shrunk by what noise explains of it. Of very
    many, those that differ most are taken.
    """
    masses = [
        np.bincount(halves, weights=margin, minlength=2).astype(np.float64)
        for halves, margin in zip(agreements.halves, margins, strict=True)
    ]
    count, told = len(drawn[0]), dict[tuple[int, int], tuple[float, float, float]]()
    shares = expected_agreements(agreements.names, agreements.halves, drawn)
    for (i, j), noisy, share in zip(agreements.names, agreements.noisy.tolist(), shares.tolist(), strict=True):
        if (i, j) not in known:
            total = float(masses[i].sum())
            deviation = math.sqrt(agreements.variance + total**2 / count)
            told[i, j] = total * share, noisy - total * share, abs(noisy - total * share) / deviation
    clear = _clear([size for _, _, size in told.values()])
    tables, sizes = dict[tuple[int, int], Floats](), dict[tuple[int, int], float]()
    for (i, j), (expected, surprise, size) in told.items():
        table = _table(masses[i], masses[j], expected + surprise * (1 - 1 / size**2)) if size >= clear else None
        if table is not None:
            tables[i, j], sizes[i, j] = table, abs(surprise)
    followed = sorted(tables, key=lambda pair: -sizes[pair])[: MOST_FOLLOWED * len(margins)]
    return {pair: tables[pair] for pair in followed}


def _clear(sizes: Sequence[float]) -> float:
    """Return from which size on, in standard deviations, surprises are followed; infinite where none is.

    References: Benjamini and Hochberg 1995: of those that are followed, `CHANCE` at most are expected to be chance

    Examples:
        >>> _clear([0.1, 2.5, 0.7, 3.0, 2.4]), _clear([0.1, 2.0, 0.7, 0.3, 0.4])
        (2.4, inf)
    """
    ranked = enumerate(sorted(sizes, reverse=True), 1)
    likely = (size for k, size in ranked if math.erfc(size / math.sqrt(2)) <= CHANCE * k / len(sizes))
    return max(CLEAR, min(likely, default=math.inf))


def _table(first: Floats, second: Floats, wanted: float) -> Floats | None:
    """Return the masses of two by two halves with these margins and, as far as they allow, this agreement.

    None where a half is empty: there is nothing to say.
    """
    independent = np.outer(first, second) / max(float(first.sum()), TINY)
    if not independent.all():
        return None
    shift = (wanted - float((independent * LIKE).sum())) / 4
    least, most = -min(independent[0, 0], independent[1, 1]), min(independent[0, 1], independent[1, 0])
    table: Floats = independent + LIKE * float(np.clip(shift, NEARLY * least, NEARLY * most))
    return table if math.isfinite(shift) else None

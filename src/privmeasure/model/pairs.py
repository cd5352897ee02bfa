"""A measured pair of columns, and the best guess of its table: less noise, no negative cell, the released margins.

Everything here is computed from released values: it costs nothing and reveals nothing further.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Floats
from privmeasure.estimates.linear import noise_variance
from privmeasure.model.ranks import Groups
from privmeasure.noise.law import LAPLACE, LawName
from privmeasure.rounding import TINY

NOISE_SHARE = 0.7
"""The noise level that singular values are shrunk for, relative to the true one.

At 1 more noise vanishes, and with it many small dependences, where a table has them. On the ten tables of `make
bench-constants` no error changes by more than 3 % from 0.5 to 1, at epsilon = 1. Fixed, as files do not hold it: see
`privmeasure.model`.
"""
SUBSPACE, POWERS = 24, 4
"""Dimensions and steps of the power iteration that looks for large singular values: see `_leading`. For speed alone."""
POSSIBLE = 0.0002
"""The part of the independent table in every pair: a cell that noise made empty is not impossible.

Without it the margins may be out of reach; with much more dependences fade. On the ten tables of `make bench-constants`
no error changes by more than 3 % from 0 to 0.002, at epsilon = 1. Fixed, as files do not hold it: see
`privmeasure.model`.
"""
FEWEST_GROUPS = 4
"""Of either column, for a table to be looked at for being nearly empty: smaller ones hardly differ. Fixed, as above."""
CLEARLY_NEARER = 0.8
"""Times the estimated error of the one way to take off noise, which that of the other must be below. Fixed, as above.

The estimates scatter: at 1 pairs of one open table are 6 % worse at epsilon = 1.
"""
PROBE_STEP = 0.3
"""The step, in standard deviations of the noise, by which a table is moved to see how its estimate follows."""
ROUNDS = 15
"""Of raking: margins then agree to about a thousandth of a row."""

CLOSE, CLOSE_TRIES = 1e-7, 40
"""Of the mass, how far margins may be off in the end where some cells must stay empty, and how many times `ROUNDS`
rounds are made for that. Fixed, as files do not hold it: see `privmeasure.model`."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two columns and the noisy counts of their table; `first_groups[r]` is the row of rank cell r, and so on.

    Notation:   scale and law of the noise of every cell
    """

    first: int
    second: int
    first_groups: Groups
    second_groups: Groups
    noisy: NDArray[np.int64]
    scale: Fraction
    law: LawName = LAPLACE


def pair_table(pair: Pair, first_margin: Floats, second_margin: Floats, total: float) -> Floats:
    """Return masses on the cells of a pair's grid with the margins of the rank cells that are given.

    What differs from independence has no margins of its own: those of the noise are taken off, the columns know them
    better. The rest is stripped of noise, by its singular values where columns lean towards each other; where they
    nearly determine each other, only few cells have mass, as in the nearest masses of the total. The second way is
    taken where the table itself tells that it is clearly nearer to the truth (`_error`). Then it is raked to the
    margins.
    """
    rows, columns = (
        np.bincount(groups, weights=margin).astype(np.float64)
        for groups, margin in ((pair.first_groups, first_margin), (pair.second_groups, second_margin))
    )
    independent = np.outer(rows, columns) / max(total, TINY)
    off, deviation = pair.noisy - independent, math.sqrt(noise_variance(pair.scale, pair.law))

    def few_values(off: Floats) -> Floats:
        return possible(shrink_matrix(centre(off), NOISE_SHARE * deviation))

    def few_cells(off: Floats) -> Floats:
        return possible(centre(off))

    def possible(off: Floats) -> Floats:
        table = simplex((independent + off).ravel(), total).reshape(off.shape)
        table = np.where(table.sum(axis=1, keepdims=True) > 0, table, independent)
        table = np.where(table.sum(axis=0) > 0, table, independent)
        return rake((1 - POSSIBLE) * table + POSSIBLE * independent, rows, columns)

    table = few_values(off)
    if min(off.shape) < FEWEST_GROUPS or deviation <= 0:
        return table
    signs = np.random.default_rng(0).choice([-1.0, 1.0], off.shape)  # always the same: a function of what is released
    step = PROBE_STEP * deviation * signs

    def error(masses: Floats, moved: Floats) -> float:
        return _error(masses - independent, moved - masses, off, step, deviation)

    sparse = few_cells(off)
    nearer = error(sparse, few_cells(off + step)) < CLEARLY_NEARER * error(table, few_values(off + step))
    return sparse if nearer else table


def _error(estimate: Floats, moved: Floats, noisy: Floats, step: Floats, deviation: float) -> float:
    """Return about how far an estimate of a table is from the truth, squared and summed up, as the table itself tells.

    `moved` is how far the estimate moves when the noisy table makes a step of random directions.

    Notation:   y = table + noise, of variance s^2 in every cell    f(y) the estimate    div f: how f follows y, in all
                E|f(y) - table|^2 = E[ |f(y) - y|^2 + 2 s^2 div f(y) - cells s^2 ], for Gaussian noise exactly
    References: Stein 1981; div f by one step (Ramani, Blu and Unser 2008)
    """
    follows = float((moved / step).sum())
    return float(((estimate - noisy) ** 2).sum()) + deviation**2 * (2 * follows - noisy.size)


def mutual_information(table: Floats) -> float:
    """Return how many bits the row of a cell tells of its column, on average over masses.

    Examples:
        >>> mutual_information(np.array([[2.0, 0.0], [0.0, 2.0]])), mutual_information(np.ones((3, 2)))
        (1.0, 0.0)
    """
    joint = table / max(float(table.sum()), TINY)
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    there = joint > 0
    return max(0.0, float((joint[there] * np.log2(joint[there] / independent[there])).sum()))


def centre(matrix: Floats) -> Floats:
    """Return the nearest matrix whose rows and columns all sum to 0.

    Examples:
        >>> centre(np.array([[5.0, 1.0], [1.0, 1.0]]))
        array([[ 1., -1.],
               [-1.,  1.]])
    """
    return np.asarray(matrix - matrix.mean(axis=1, keepdims=True) - matrix.mean(axis=0) + matrix.mean(), np.float64)


def shrink_matrix(matrix: Floats, deviation: float) -> Floats:
    """Return the matrix less its noise, which is independent in every cell with this standard deviation.

    Singular values below the edge of the noise vanish, those above shrink by what the noise adds to them. Where more
    than `SUBSPACE` are above (columns that are nearly functions of each other) the matrix stays as it is.

    References: Gavish and Donoho 2017, the optimal rule for the Frobenius norm
    """
    few, many = sorted(matrix.shape)
    if few < 2 or deviation <= 0:
        return matrix
    wide = matrix if matrix.shape[0] == few else matrix.T
    unit, ratio = deviation * math.sqrt(many), few / many
    leading = _leading(wide @ wide.T, (unit * (1 + math.sqrt(ratio))) ** 2)
    if leading is None:
        return matrix
    squares, left = leading
    if not len(squares):
        return np.zeros_like(matrix)
    y2 = squares / unit**2
    factor = np.sqrt(np.maximum((y2 - ratio - 1) ** 2 - 4 * ratio, 0)) / y2
    clean: Floats = (left * factor) @ (left.T @ wide)
    return clean if wide is matrix else clean.T


def _leading(gram: Floats, least: float) -> tuple[Floats, Floats] | None:
    """Return the eigenvalues of a matrix that are above a number, and their vectors; None where there are too many.

    Beyond 25 rows the routine starts threads, which take a hundred times as long as the work. So a subspace of 24
    dimensions is looked at, by power iteration: what it misses lies near the edge, where little is left of it.
    """
    if len(gram) <= SUBSPACE:
        values, vectors = np.linalg.eigh(gram)
    else:
        basis = np.random.default_rng(0).standard_normal((len(gram), SUBSPACE))
        for _ in range(POWERS):
            basis, _ = np.linalg.qr(gram @ basis)
        values, inner = np.linalg.eigh(basis.T @ gram @ basis)
        if values[0] > least:
            return None
        vectors = basis @ inner
    keep = values > least
    return values[keep], vectors[:, keep]


def simplex(values: Floats, total: float) -> Floats:
    """Return the nearest masses of at least 0 that sum to the total (Euclidean projection).

    Examples:
        >>> simplex(np.array([3.0, 1.0, -1.0]), 3.0)
        array([2.5, 0.5, 0. ])
    """
    falling = -np.sort(-values)
    excess = np.cumsum(falling) - total
    count = np.arange(1, len(values) + 1)
    last = max(int(np.count_nonzero(falling * count > excess)) - 1, 0)
    return np.asarray(np.maximum(values - excess[last] / (last + 1), 0.0), np.float64)


def rake(table: Floats, rows: Floats, columns: Floats, *, rounds: int = ROUNDS) -> Floats:
    """Return the table scaled by rows and columns in turn until it has these margins (iterative proportional fitting).

    Examples:
        >>> rake(np.ones((2, 2)), np.array([1.0, 3.0]), np.array([2.0, 2.0]))
        array([[0.5, 0.5],
               [1.5, 1.5]])
    """
    table = table.copy()
    for _ in range(rounds):
        table *= _ratio(rows, table.sum(axis=1))[:, np.newaxis]
        table *= _ratio(columns, table.sum(axis=0))
    return table


def rake_closely(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the table raked until it has the margins to within `CLOSE`: for tables with zeros, which take longer.

    Examples:
        >>> rake_closely(np.triu(np.ones((2, 2))), np.array([2.0, 2.0]), np.array([1.0, 3.0])).round(4)
        array([[1., 1.],
               [0., 2.]])
    """
    for _ in range(CLOSE_TRIES):
        table = rake(table, rows, columns)
        if float(np.abs(table.sum(axis=1) - rows).max()) <= CLOSE * float(rows.sum()):
            break
    return table


def _ratio(wanted: Floats, have: Floats) -> Floats:
    """Return wanted / have, 0 where there is nothing to scale."""
    return np.divide(wanted, have, out=np.zeros_like(wanted), where=have > 0)

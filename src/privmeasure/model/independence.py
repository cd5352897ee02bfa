"""Columns that nothing joins: their measurements differ from independence by no more than noise explains.

A link is a measured table of two columns, or a sign correlation that the model follows. What it shows is compared with
links of independent columns: their rows scatter by chance, and the noise is that of the release. Such links are
simulated with a fixed seed. Everything here is computed from released values.
"""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from privmeasure.domains import Floats
from privmeasure.model.agreements import Agreements
from privmeasure.model.pairs import Pair
from privmeasure.noise.law import facts_of
from privmeasure.rounding import TINY

FALSE_LINKS = 0.05
"""The probability that an independent column with links is not recognized."""
SIMULATED_LINKS = 400
"""Simulated links for each measured one."""
DRAWN_CELLS, MIN_DRAWS = 1 << 18, 25
"""Cells that are simulated for each table. Large tables have fewer draws, each used several times."""
SEED = 0
"""Of the simulation: fixed and public, so that a release always names the same columns."""
INDEPENDENT_UP_TO = 1e-9
"""The share of rows in the wrong cells up to which a table of the model is independent: rounding."""
SINGULAR_STEPS = 12
"""Of the power iteration for the largest singular value."""
Link = tuple[int, int]
"""Two columns, by their numbers."""


def unlinked(count: int, links: Mapping[Link, Floats], joined: Collection[Link] = ()) -> tuple[int, ...]:
    """Return the columns of which no link shows more than the links of an independent column do.

    `links` have scores of the same scale: the measured one first, then `SIMULATED_LINKS` simulated ones. Those of one
    column are judged together, by their largest score. `joined` are columns that depend on each other whatever was
    measured.

    Guarantee:  accuracy  an independent column is named with probability about 1 - FALSE_LINKS

    Examples:
        >>> simulated = np.linspace(0, 1, SIMULATED_LINKS)
        >>> unlinked(4, {(0, 1): np.array([2.0, *simulated]), (1, 2): np.array([0.5, *simulated])})
        (2, 3)
    """
    bound, scores = {c for columns in joined for c in columns}, [list[Floats]() for _ in range(count)]
    for (i, j), score in links.items():
        scores[i].append(score)
        scores[j].append(score)
    return tuple(c for c in range(count) if c not in bound and not _is_linked(scores[c]))


def _is_linked(scores: Sequence[Floats]) -> bool:
    """Say whether the largest score of a column is larger than it would be by chance."""
    if not scores:
        return False
    largest = np.max(scores, axis=0)
    return bool(largest[0] > np.quantile(largest[1:], 1 - FALSE_LINKS, method="higher"))


def depends(table: Floats) -> bool:
    """Say whether a table of the model is more than its margins: it may have been shrunk to independence.

    Examples:
        >>> depends(np.outer([0.1, 0.3], [0.5, 0.7])), depends(np.eye(2))
        (False, True)
    """
    total = float(table.sum())
    independent = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(total, TINY)
    return float(np.abs(table - independent).sum()) > INDEPENDENT_UP_TO * total


def table_scores(pair: Pair, first_margin: Floats, second_margin: Floats) -> Floats:
    """Return the score of a measured table, and those of simulated tables of independent columns.

    The score is the larger of two standardized sizes of what differs from independence: the largest singular value,
    which shows that columns lean towards each other, and the root of the sum of squares, which shows any dependence.
    Margins are taken off, so that errors of the released columns do not count.

    Notation:   N rows, p and q shares of rows and columns, Y noisy table
                D = X - X1 q' - p 1'X + p q' 1'X1,  X = Y - N p q'
    """
    total = float(first_margin.sum())
    rows, columns = (
        np.bincount(groups, weights=margin) / max(float(margin.sum()), TINY)
        for groups, margin in ((pair.first_groups, first_margin), (pair.second_groups, second_margin))
    )
    rng, cells = np.random.default_rng((SEED, pair.first, pair.second)), pair.noisy.size  # links differ by chance
    draws = int(np.clip(DRAWN_CELLS // cells, MIN_DRAWS, SIMULATED_LINKS))
    noise = facts_of(pair.law, pair.scale).simulated(rng, draws * cells).reshape(draws, *pair.noisy.shape)
    independent = total * np.outer(rows, columns)
    off = np.concatenate([(pair.noisy - independent)[np.newaxis], noise + _scatter(rows, columns, total, draws, rng)])
    sides = off.sum(axis=2, keepdims=True), off.sum(axis=1, keepdims=True)
    whole = sides[0].sum(axis=1, keepdims=True)
    off -= sides[0] * columns + rows[:, np.newaxis] * sides[1] - independent / max(total, TINY) * whole
    sizes = np.stack([_largest_singular_value(off, rng), np.sqrt(np.square(off).sum(axis=(1, 2)))])
    middle, spread = sizes[:, 1:].mean(axis=1, keepdims=True), sizes[:, 1:].std(axis=1, keepdims=True)
    scores = ((sizes - middle) / np.maximum(spread, TINY)).max(axis=0)
    return np.concatenate([scores[:1], np.resize(scores[1:], SIMULATED_LINKS)])


def _scatter(rows: Floats, columns: Floats, total: float, draws: int, rng: np.random.Generator) -> Floats:
    """Return how tables of independent columns with given margins differ from their mean, for many rows.

    References: the residuals of Pearson's test are normal, apart from the directions of the margins
    """
    one, two = np.sqrt(rows), np.sqrt(columns)
    residuals = rng.standard_normal((draws, len(rows), len(columns)))
    residuals -= one[:, np.newaxis] * (one @ residuals)[:, np.newaxis, :]
    residuals -= (residuals @ two)[:, :, np.newaxis] * two
    return np.asarray(math.sqrt(max(total, 0.0)) * np.outer(one, two) * residuals, np.float64)


def _largest_singular_value(matrices: Floats, rng: np.random.Generator) -> Floats:
    """Return about the largest singular value of each matrix, by power iteration from one random start."""
    vectors = np.broadcast_to(rng.standard_normal(matrices.shape[2]), matrices.shape[::2])[:, :, np.newaxis]
    across = matrices.transpose(0, 2, 1)
    for _ in range(SINGULAR_STEPS):
        vectors = across @ (matrices @ vectors)
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), TINY)
    return np.asarray(np.linalg.norm(matrices @ vectors, axis=(1, 2)), np.float64)


def agreement_scores(
    agreements: Agreements, margins: Sequence[Floats], tables: Collection[Link], followed: Collection[Link]
) -> dict[Link, Floats]:
    """Return the scores of the sign correlations of columns without a table; those not followed show nothing."""
    rng, total = np.random.default_rng(SEED), float(margins[0].sum())
    leans = [
        float(np.bincount(halves, weights=margin, minlength=2)[:2] @ (1, -1)) / max(total, TINY)
        for halves, margin in zip(agreements.halves, margins, strict=True)
    ]
    middle, spread = math.sqrt(2 / math.pi), math.sqrt(1 - 2 / math.pi)  # of the size of a standard normal number
    found = {}
    for (i, j), noisy in zip(agreements.names, agreements.noisy.tolist(), strict=True):
        simulated = np.abs(rng.standard_normal(SIMULATED_LINKS))
        if (i, j) not in tables:
            chance = total * (1 - leans[i] ** 2) * (1 - leans[j] ** 2)
            size = abs(noisy - total * leans[i] * leans[j]) / math.sqrt(max(agreements.variance + chance, TINY))
            shown = (size - middle) / spread if (i, j) in followed else -math.inf
            found[i, j] = np.concatenate([[shown], (simulated - middle) / spread])
    return found

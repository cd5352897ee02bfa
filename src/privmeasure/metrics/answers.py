"""What people ask of a table: correlations, how well one column follows from the others.

The results are those of the rows that are given: where these are real data, they are confidential.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privmeasure.domains import Bools, Floats, Points
from privmeasure.tables.variables import Variable

MOST_INDICATORS = 40
"""Values of a column that a linear score tells apart; the rest count as one."""
RIDGE = 1e-3
"""Of the number of rows: what keeps a score from following columns that repeat each other."""
MOST_SCORED = 50_000
"""Rows that a score is fitted on."""


def correlations(matrix: Floats) -> Floats:
    """Return the correlation of every pair of columns over the rows where both are there; 0 where one does not vary.

    Examples:
        >>> correlations(np.array([[0.0, 1.0], [1.0, 3.0], [np.nan, 0.0], [2.0, 5.0]]))
        array([1.])
    """
    there = ~np.isnan(matrix)
    mean = np.where(there, matrix, 0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    values, weight = np.where(there, matrix - mean, 0.0), there.astype(np.float64)
    count = np.maximum(weight.T @ weight, 1)
    first = values.T @ weight / count  # [i, j]: the mean of i where j is there too
    spread = np.maximum((values**2).T @ weight / count - first**2, 0)
    product = values.T @ values / count - first * first.T
    scale = np.sqrt(spread * spread.T)
    with np.errstate(all="ignore"):
        found = np.where(scale > 0, product / scale, 0.0)
    return np.asarray(np.clip(found[np.triu_indices(matrix.shape[1], 1)], -1, 1), np.float64)


@dataclass(frozen=True, slots=True)
class Score:
    """How well a column is foretold from all others on real rows: by who learned from real rows, synthetic ones, none.

    Of values the share that is right; of numbers the share of their variance that is explained.
    """

    name: str
    kind: str
    real: float
    synthetic: float
    nothing: float


def linear_scores(real: Points, synthetic: Points, found: Sequence[Variable], *, seed: int = 0) -> list[Score]:
    """Fit each column linearly on the others, on half of the real rows and on synthetic ones; score on the other half.

    Least squares with a little ridge on indicators of values and on numbers: a plain model, the same everywhere, which
    needs no other library. CONFIDENTIAL.
    """
    order = np.random.default_rng(seed).permutation(len(real))
    half = len(real) // 2
    learned, judged = real[order[:half][:MOST_SCORED]], real[order[half:]]
    if not len(learned) or len(found) < 2:
        return []
    tables = [
        [_features(v, table[:, v.places], learned[:, v.places]) for v in found]
        for table in (learned, synthetic[:MOST_SCORED], judged)
    ]
    ends = np.cumsum([part.shape[1] for part in tables[0]])
    full = [np.column_stack([*parts, np.ones(len(parts[0]))]) for parts in tables]
    products = [rows.T @ rows for rows in full[:2]]
    ridges = [RIDGE * len(rows) * np.eye(rows.shape[1]) for rows in full[:2]]
    scores = []
    for v, end, part in zip(found, ends, tables[2], strict=True):
        if v.present.width > 1:
            continue
        own = np.arange(end - part.shape[1], end)
        rest = np.setdiff1d(np.arange(full[0].shape[1]), own)
        answers = [
            full[2][:, rest] @ np.linalg.solve((g + r)[np.ix_(rest, rest)], g[np.ix_(rest, own)])
            for g, r in zip(products, ridges, strict=True)
        ]
        if v.labels:
            truth = part.argmax(axis=1)
            known = [float((answer.argmax(axis=1) == truth).mean()) for answer in answers]
            usual = int(full[0][:, own].sum(axis=0).argmax())
            scores.append(Score(v.name, "share right", known[0], known[1], float((truth == usual).mean())))
        else:
            there = part[:, 1] == 0
            truth = part[there, 0]
            spread = float(truth.var()) if len(truth) else 0.0
            known = [1 - float(((a[there, 0] - truth) ** 2).mean()) / spread if spread > 0 else 0.0 for a in answers]
            scores.append(Score(v.name, "variance explained", known[0], known[1], 0.0))
    return scores


def _features(v: Variable, own: Points, learned: Points) -> Floats:
    """Return indicators of values, or a number in the scale of those learned from, and whether it is missing."""
    if v.labels:
        codes = np.minimum(v.codes(own), MOST_INDICATORS)
        return np.eye(min(v.count, MOST_INDICATORS + 1))[codes]
    missing: Bools = np.asarray(np.isnan(own).any(axis=1))
    known = learned[~np.isnan(learned).any(axis=1)]
    middle, wide = (known.mean(axis=0), known.std(axis=0)) if len(known) else (0.0, 1.0)
    scaled = np.where(missing[:, None], 0.0, (own - middle) / np.where(np.asarray(wide) > 0, wide, 1.0))
    return np.column_stack([scaled, missing])

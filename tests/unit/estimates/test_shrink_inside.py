"""Splits that are shrunk inside each cell of a level: the slow twin, with and without cells that do not exist."""

import math
from itertools import islice

import numpy as np
import pytest

from privmeasure.domains import Box, Domain, Integers
from privmeasure.estimates.linear import existing
from privmeasure.estimates.shrinkage import forecasts, shrink_inside

LEVEL, DEPTH = 2, 6


def by_hand(
    differences: list[np.ndarray], variances: list[np.ndarray], mass: np.ndarray, domain: Domain
) -> list[np.ndarray]:
    """Cell by cell: the factor of a level of splits is that of all splits down to the level below."""
    expected = [b for _, b in islice(forecasts(mass, LEVEL, domain, existing(domain, DEPTH)), DEPTH - LEVEL)]
    result = [each.copy() for each in differences]
    for cell in range(1 << LEVEL):
        for i in range(DEPTH - LEVEL):
            count, signal = 0, 0.0
            for k in range(min(i + 2, DEPTH - LEVEL)):
                for place in range(cell << k, (cell + 1) << k):
                    v = variances[LEVEL + k][place]
                    if v > 0:
                        count += 1
                        signal += (differences[LEVEL + k][place] - expected[k][place]) ** 2 / v
            noise = count + math.sqrt(2 * count)
            factor = 1 - noise / signal if signal > noise else 0.0
            for place in range(cell << i, (cell + 1) << i):
                if variances[LEVEL + i][place] > 0:
                    b = expected[i][place]
                    result[LEVEL + i][place] = b + factor * (differences[LEVEL + i][place] - b)
    return result


@pytest.mark.parametrize("domain", [Box([(0, 1)]), Box([(0, 1)] * 2), Integers(0, 49)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_it_equals_its_twin(domain: Domain, seed: int) -> None:
    rng, exists = np.random.default_rng(seed), existing(domain, DEPTH)
    mass = np.where(exists[LEVEL], rng.integers(0, 300, 1 << LEVEL), 0)
    differences = [rng.normal(0, 20, 1 << j) for j in range(DEPTH)]
    variances = [np.where(exists[j + 1].reshape(-1, 2).all(axis=1), rng.uniform(50, 150), 0.0) for j in range(DEPTH)]
    there = None if exists[DEPTH].all() else exists
    found = shrink_inside([(e,) for e in differences], variances, mass, domain, there)
    for (ours,), theirs in zip(found, by_hand(differences, variances, mass, domain), strict=True):
        assert ours == pytest.approx(theirs)

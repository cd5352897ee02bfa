"""The superregular random walk: noise whose sums stay small although its steps hide as much as independent ones.

Boedihardjo, Strohmer, Vershynin, "Private measures, random walks, and synthetic data", Probability Theory and Related
Fields 2024. There is a density proportional to exp(-V(z)) on R^m, V being 1-Lipschitz in the l_1 norm, under which
every sum z_1 + ... + z_k has mean absolute value at most C log^(3/2) m. Adding z / epsilon to the counts of m cells in
a row is therefore epsilon-private, and the distribution function is off by log^(3/2) m / (epsilon n) only.

The walk as it is made here: let h be the Haar functions, +1 on one half of a dyadic interval and -1 on the other, and
the constant 1. With V(z) = sum of |<z, h>| / L, where each cell is seen by L = log2 m + 1 of them, V is 1-Lipschitz and
the coefficients <z, h> are independent Laplace variables of scale L.

Choices: m is the power of two nearest to s / log2^(3/2) s, s = epsilon n / sensitivity, where the error of the walk and
the width of a cell are alike (on the open tables and the shapes W1 is 0.8 of that with m = s); where the number of rows
is public the sum of the walk is 0, which leaves out the constant function; the noisy sums become a distribution
function by isotonic regression, which is closest in l_2 and does not increase the l_1 distance to the truth.
"""

import numpy as np

from methods.cells import Cells, counts, monotone, nearest_level, released_total, sensitivity, whole_level


def release(points: np.ndarray, epsilon: float, relation: str, rng: np.random.Generator) -> Cells:
    """Release the counts of cells along a line with the steps of the walk added."""
    rows, sensitive = len(points), sensitivity(relation)
    signal = max(2.0, epsilon * rows / sensitive)
    level = nearest_level(signal / np.log2(signal) ** 1.5)
    noisy = counts(points, level) + sensitive / epsilon * steps(level, rng, closed=relation == "replace")
    return whole_level(monotone(noisy, released_total(noisy.sum(), rows, relation)), 1)


def steps(level: int, rng: np.random.Generator, *, closed: bool) -> np.ndarray:
    """Return 2^level steps of the walk, which ends where it began if it is closed."""
    functions = level + (not closed)
    found = np.zeros(1) if closed else rng.laplace(0, functions, 1)
    for _ in range(level):
        difference = rng.laplace(0, functions, len(found))
        found = np.stack((found + difference, found - difference), axis=1).ravel() / 2
    return found

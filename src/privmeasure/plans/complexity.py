"""How large Laplace noise is for Lipschitz functions: the Laplacian complexity of points of a metric space.

    L(X_1, ..., X_n) = E sup { |sum_i lambda_i f(X_i)| / n : f 1-Lipschitz, |f| <= D },   lambda_i independent Lap(1).

The supremum is the bounded-Lipschitz norm of the noise, so that an exact transport solver computes it draw by draw. The
paper's worst-case complexity L_n is the supremum over X, and L~_n that of discrete noise, Lap_Z(1). The paper states
for its flat mechanism with m cells that E W1 <= delta + (2 m / (epsilon n)) L~_m (add-remove). But discrete noise does
not scale: Lap_Z(1/epsilon) is not Lap_Z(1) / epsilon. It is below Lap(1/epsilon) in convex order, so that the bound
holds at every epsilon with the continuous complexity L_m.

Reads nothing private: points and scales are public, and the noise is simulated.

References: [HVZ23] section 3.1, Definition 3.1 and Theorem 3.6, corrected in docs/mathematics.md
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from privmeasure.domains import Finite, Floats
from privmeasure.errors import ArgumentError
from privmeasure.estimates.projection import Space
from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import LAPLACE, Law
from privmeasure.transport import Grid, Line, bounded_lipschitz

NOISE_UNITS = 1 << 20
"""Continuous noise is rounded to so many parts of its scale, for an exact flow: at most D / 2^21 off on average."""


def laplacian_complexity(
    space: Space | ArrayLike, *, scale: Fraction | None = None, draws: int = 20, seed: int | None = None
) -> tuple[float, float]:
    """Return the Laplacian complexity of the points of a space by simulation, and its standard error.

    `space` is a finite space, or a matrix of points (one per row) with the l_infinity distance. Without `scale` the
    noise is continuous; with it, Lap_Z(scale) / scale, as the flat mechanism draws it.

    Guarantee:  cost  an exact flow a draw; a grid of 4,096 cells takes about 0.1 s

    Examples:
        >>> value, error = laplacian_complexity(Line((0.0, 0.5, 1.0)), draws=200, seed=1)
        >>> bool(abs(value - 0.63) < 0.12)
        True
    """
    points = space if isinstance(space, Finite | Grid | Line) else Finite.from_points(space, metric="chebyshev")
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 2:
        raise ArgumentError(f"draws must be a whole number of at least 2, got {draws!r}.")
    if scale is None:
        norms = _continuous_norms(points, draws, seed)
    else:
        key = Key.fresh() if seed is None else Key.insecure(seed)
        norms = discrete_norms(points, law_of(LAPLACE, scale), draws, key)[0] / float(scale)
    norms = norms / _count(points)
    return float(norms.mean()), float(norms.std(ddof=1)) / math.sqrt(draws)


def discrete_norms(space: Space, law: Law, draws: int, key: Key) -> tuple[Floats, Floats]:
    """Return the bounded-Lipschitz norms of draws of a law on all points of a space, and their totals."""
    points = np.arange(_count(space), dtype=np.uint64)
    norms, totals = np.empty(draws), np.empty(draws)
    for draw in range(draws):
        noise = law.draw(key, part=draw, level=0, cells=points)
        norms[draw], totals[draw] = bounded_lipschitz(noise, np.zeros_like(noise), space), noise.sum()
    return norms, totals


def _continuous_norms(space: Space, draws: int, seed: int | None) -> Floats:
    rng, zero = np.random.default_rng(seed), np.zeros(_count(space), np.int64)
    noise = (np.rint(NOISE_UNITS * rng.laplace(size=len(zero))).astype(np.int64) for _ in range(draws))
    return np.array([bounded_lipschitz(each, zero, space) for each in noise]) / NOISE_UNITS


def lower_bound(space: Space) -> float:
    """Return half the least distance of two points: f = +-(that) by the sign of the noise is 1-Lipschitz.

    On a grid of n cubes in [0, 1]^d it is n^(-1/d) / 2: so the factor 1/d of Corollary 3.3 cannot be right.

    Examples:
        >>> lower_bound(Grid((4, 4, 4), (0.25, 0.25, 0.25)))
        0.125
    """
    if _count(space) == 1:
        return 0.0
    if isinstance(space, Grid):
        return space.unit / 2
    if isinstance(space, Line):
        return float(np.diff(space.positions).min()) / 2
    return float(space.distances[~np.eye(space.count, dtype=bool)].min()) / 2


def entropy_bound(space: Space) -> float:
    """Return Dudley's bound of the Laplacian complexity, with explicit constants.

        min over m >= 0 of  D 2^-m + sum_(j=1..m) 3 D 2^-j [ 2 sqrt(log(2 N_j) / n) + log(2 N_j) / n ],

    N_j the size of a net of the functions at distance D 2^-j. Sums of Laplace variables are sub-gamma, so the largest
    of N of them is at most the bracket times n times their largest coefficient. In [0, 1]^d the order is n^(-1/2) for
    d = 1, n^(-1/2) log n for d = 2, n^(-1/d) for d >= 3, without the paper's factor 1/d. Holds for discrete noise too.

    References: [HVZ23] Proposition 3.2 and Corollary 3.3; docs/mathematics.md
    """
    n, width = _count(space), diameter(space)
    if width == 0:
        return 0.0
    radii = _covering_radii(space)
    best, chain = width, 0.0
    for j in range(1, 48):
        entropy = math.log(2) + _log_net(space, radii, width, width * 2.0**-j)
        chain += 3 * width * 2.0**-j * (2 * math.sqrt(entropy / n) + entropy / n)
        best = min(best, width * 2.0**-j + chain)
        if chain >= best:
            break
    return best


def _log_net(space: Space, radii: Floats | None, width: float, u: float) -> float:
    """Return the logarithm of the size of a u-net of the 1-Lipschitz functions into [-D, D] on a space.

    Any space: N balls of radius u/2, the value at each centre to within u/2. Boxes and lines: cubes of side 2u/3; a
    value within 2u/3 at the first centre, and from each centre to the next up or down by 2u/3 keeps within 2u/3.
    """
    points = _count(space)
    best = points * math.log(max(1, math.ceil(width / u)))
    if radii is not None:
        balls = int(np.searchsorted(-radii, -u / 2)) + 1
        return min(best, balls * math.log(math.ceil(2 * width / u)))
    side = 2 * u / 3
    cubes = math.prod(max(1, math.ceil(length / side)) for length in _lengths(space))
    return min(best, math.log(max(1, math.ceil(width / side))) + (cubes - 1) * math.log(2))


def _covering_radii(space: Space) -> Floats | None:
    """Return how far points are from the nearest of the first 1, 2, ... of them, each taken where it is farthest."""
    if not isinstance(space, Finite):
        return None
    nearest, radii = space.distances[0].copy(), np.empty(space.count)
    for i in range(space.count):
        radii[i] = nearest.max()
        np.minimum(nearest, space.distances[int(nearest.argmax())], out=nearest)
    return radii


def _lengths(space: Space) -> list[float]:
    """Return the sides of the box of all points of a grid or a line."""
    if isinstance(space, Grid):
        return [space.unit * step * (n - 1) for step, n in zip(space.steps, space.shape, strict=True)]
    return [diameter(space)]


def _count(space: Space) -> int:
    return space.count if isinstance(space, Finite) else space.cells


def diameter(space: Space) -> float:
    """Return the largest distance of two points."""
    return float(space.distances.max()) if isinstance(space, Finite) else space.diameter

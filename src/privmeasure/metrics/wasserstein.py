"""W1 between weighted point sets: in closed form, by flow on a grid, by assignment or flow, sliced, subsampled.

The results depend on real data: they are confidential.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privmeasure.domains import Box, Categories, Circle, Domain, Floats, Integers, Points
from privmeasure.errors import ArgumentError
from privmeasure.rounding import ROUNDING
from privmeasure.transport.flow import COST_LEVELS, Grid, check_arcs, grid_arcs, min_cost_flow, whole_costs
from privmeasure.transport.line import (
    apportion,
    check_totals,
    circle_wasserstein,
    hierarchy_wasserstein,
    line_wasserstein,
    masses,
)

DistanceMethod = Literal["auto", "exact", "grid", "sliced", "subsample"]
WholeMasses = NDArray[np.int64]

AUTO_PAIRS = 1 << 20
"""Pairs of distinct points up to which "auto" takes all of them: a few seconds; four times as many where it is an
assignment (equally many points of equal weight)."""
AXIS_CELLS = {1: 4096, 2: 128, 3: 32}
"""Cells along the longest axis, by dimension."""
QUANTA = 1 << 40
"""Masses that are not whole numbers are apportioned as so many units."""
OTHER_METHODS = 'Use method="grid" (up to three dimensions) or method="subsample".'


@dataclass(frozen=True)
class Distance:
    """A distance, how it was computed and how far it can be from the truth.

    `error_bound` bounds |value - W1| for sure ("exact": rounding of masses and costs; "grid": moving points to the
    centres of their cells). Estimates have standard errors instead, and "subsample" a floor: the same quantity between
    two disjoint samples of x, which is what equal distributions would give.
    """

    value: float
    method: str
    error_bound: float = 0.0
    standard_error: float = 0.0
    floor: float | None = None
    floor_error: float | None = None

    @property
    def excess(self) -> float:
        """The value less the floor, where there is one."""
        return self.value - (self.floor or 0.0)

    def __float__(self) -> float:
        """Return the value."""
        return self.value


@dataclass(frozen=True)
class _Pair:
    """Two checked point sets with their masses; `even`: no weights were given."""

    x: Points
    y: Points
    mass_x: Floats
    mass_y: Floats
    even: bool
    domain: Domain | None

    @property
    def total(self) -> float:
        return float(self.mass_x.sum())


def wasserstein(
    x: ArrayLike,
    y: ArrayLike,
    *,
    domain: Domain | None = None,
    weights_x: ArrayLike | None = None,
    weights_y: ArrayLike | None = None,
    method: DistanceMethod = "auto",
    bins: int | None = None,
    directions: int = 200,
    samples: int = 2000,
    draws: int = 5,
    seed: int = 0,
) -> Distance:
    """Return W1, the least cost of moving the mass of the rows of x to the rows of y, in the domain's metric.

    Without a domain distances are l_infinity of the coordinates as they are. Weights are masses with equal totals;
    without them each row of a set weighs 1 / rows.

    - "exact": closed form on the line, the circle and categories; otherwise a flow between all pairs of points.
    - "grid": l_infinity only. Points go to the centres of cubes, `bins` along the longest axis of the Box (without a
      domain, of the smallest box that holds both sets; points beyond a Box are clamped); then exact, by a flow on the
      grid. With cubes of side h every point moves by at most h / 2, so the error is at most h.
    - "sliced": see `sliced_wasserstein`; not an estimate of W1 itself.
    - "subsample": mean of exact W1 over `draws` pairs of samples of `samples` points. W1 of samples is above W1 even of
      equal distributions, so it comes with its floor; it cannot see differences far below the floor.
    - "auto": "exact" where it has a closed form or up to 2^20 pairs of points (2^22 if the sets are equally large and
      without weights), "grid" up to three dimensions of l_infinity, else "subsample".

    Guarantee:  see `Distance`; "exact" and "grid" do not depend on the seed

    Examples:
        >>> wasserstein([[0.0], [1.0]], [[0.0], [3.0]])
        Distance(value=1.0, method='exact', error_bound=0.0, standard_error=0.0, floor=None, floor_error=None)
        >>> float(wasserstein([[0, 0], [4, 4]], [[1, 0], [4, 2]]))
        1.5
    """
    pair = _checked_pair(x, y, domain, weights_x, weights_y)
    if method not in get_args(DistanceMethod):
        raise ArgumentError(f"method must be one of {', '.join(get_args(DistanceMethod))}, got {method!r}.")
    if method == "auto":
        method = _best_method(pair)
    if method == "sliced":
        return _sliced(pair, directions, seed)
    if method == "subsample":
        return _subsampled(pair, samples, draws, seed)
    return _on_grid(pair, bins) if method == "grid" else _exact(pair)


def sliced_wasserstein(
    x: ArrayLike,
    y: ArrayLike,
    *,
    domain: Box | None = None,
    weights_x: ArrayLike | None = None,
    weights_y: ArrayLike | None = None,
    directions: int = 200,
    seed: int = 0,
) -> Distance:
    """Return the mean W1 of the projections on random unit directions: a metric, cheap on any number of points.

    A Box scales its axes to their weights first. The standard error is that of the choice of directions.

    Guarantee:  exact in each direction; cost O(n log n) a direction
    References: Rabin, Peyre, Delon, Bernot, Wasserstein barycenter and its application to texture mixing, 2011

    Examples:
        >>> round(float(sliced_wasserstein([[0.0, 0.0]], [[1.0, 0.0]], directions=5000)), 2)    # 2 / pi
        0.64
    """
    return _sliced(_checked_pair(x, y, domain, weights_x, weights_y), directions, seed)


# ---------------------------------------------------------------------------------------------------- methods


def _best_method(pair: _Pair) -> DistanceMethod:
    pairs = len(pair.x) * len(pair.y)
    if _closed_form(pair) is not None or pairs <= AUTO_PAIRS or (_is_assignment(pair) and pairs <= 4 * AUTO_PAIRS):
        return "exact"
    source, target, *_ = _net(pair)
    if len(source) * len(target) <= AUTO_PAIRS:
        return "exact"
    return "grid" if isinstance(pair.domain, Box | None) and pair.x.shape[1] in AXIS_CELLS else "subsample"


def _is_assignment(pair: _Pair) -> bool:
    return pair.even and len(pair.x) == len(pair.y)


def _exact(pair: _Pair) -> Distance:
    closed = _closed_form(pair)
    if closed is not None:
        return Distance(closed(), "exact")
    if _is_assignment(pair):
        check_arcs(len(pair.x) * len(pair.y), f"{len(pair.x)} by {len(pair.y)} points", OTHER_METHODS)
        return Distance(_assign(_distances(pair.domain, pair.x, pair.y)), "exact")
    source, target, signed, unit, misplaced = _net(pair)
    if not len(source) or not len(target):
        return Distance(0.0, "exact")
    check_arcs(len(source) * len(target), f"{len(source)} by {len(target)} distinct points", OTHER_METHODS)
    lengths = _distances(pair.domain, source, target)
    tails, heads = np.divmod(np.arange(lengths.size), len(target))
    flows, _ = min_cost_flow(tails, len(source) + heads, whole_costs(lengths.ravel()), None, signed)
    value = float(flows @ lengths.ravel()) * unit
    return Distance(value, "exact", error_bound=float(lengths.max()) * (pair.total / COST_LEVELS + misplaced))


def _closed_form(pair: _Pair) -> Callable[[], float] | None:
    """Return what computes W1 where the metric is that of a line, a circle or a taxonomy."""
    domain, x, y = pair.domain, pair.x[:, 0], pair.y[:, 0]
    if isinstance(domain, Circle):
        scale = 2 / domain.period
        return lambda: scale * circle_wasserstein(x, y, domain.period, weights_x=pair.mass_x, weights_y=pair.mass_y)
    if isinstance(domain, Categories):
        return lambda: _on_taxonomy(domain, pair)
    if isinstance(domain, Box | Integers | None) and pair.x.shape[1] == 1:
        a, b = _scaled(pair)
        weights = {} if pair.even else {"weights_x": pair.mass_x, "weights_y": pair.mass_y}
        return lambda: line_wasserstein(a[:, 0], b[:, 0], **weights)
    return None


def _on_taxonomy(domain: Categories, pair: _Pair) -> float:
    net = np.zeros(domain.count)
    for points, mass in ((pair.x, pair.mass_x), (pair.y, -pair.mass_y)):
        np.add.at(net, np.clip(np.rint(points[:, 0]), 0, domain.count - 1).astype(np.int64), mass)
    return hierarchy_wasserstein(net, [*domain.taxonomy, (1.0, np.zeros(domain.count))])


def _on_grid(pair: _Pair, bins: int | None) -> Distance:
    if not isinstance(pair.domain, Box | None):
        raise ArgumentError(f'method="grid" needs the l_infinity metric of a Box or no domain, got {pair.domain!r}.')
    d = pair.x.shape[1]
    bins = AXIS_CELLS.get(d) if bins is None else bins
    if bins is None or isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise ArgumentError(f"bins must be a whole number of at least 1 (and given beyond 3 dimensions), got {bins!r}.")
    x, y = _scaled(pair)
    if pair.domain is None:
        low = np.minimum(x.min(axis=0), y.min(axis=0))
        extent = np.maximum(x.max(axis=0), y.max(axis=0)) - low
    else:
        low, extent = np.zeros(d), np.asarray(pair.domain.weights)
    side = float(extent.max()) / bins
    if side == 0:
        return Distance(0.0, "grid")
    shape = tuple(max(1, math.ceil(length / side - ROUNDING)) for length in extent.tolist())
    grid = Grid(shape)
    whole_x, whole_y, unit, misplaced = _whole_masses(pair)
    supply = np.zeros(grid.cells, np.int64)
    for points, mass in ((x, whole_x), (y, -whole_y)):
        places = np.clip((points - low) / side, 0, np.array(shape) - 1).astype(np.int64)
        np.add.at(supply, np.ravel_multi_index(tuple(places.T), shape), mass)
    common = int(np.gcd.reduce(supply)) or 1
    tails, heads, costs = grid_arcs(shape)
    _, cost = min_cost_flow(tails, heads, costs, None, supply // common)
    bound = pair.total * side + misplaced * float(extent.max())
    return Distance(cost * common * unit * side, "grid", error_bound=bound)


def _sliced(pair: _Pair, directions: int, seed: int) -> Distance:
    if isinstance(directions, bool) or not isinstance(directions, int | np.integer) or directions < 2:
        raise ArgumentError(f"directions must be a whole number of at least 2, got {directions!r}.")
    x, y = _scaled(pair)
    rays = np.random.default_rng(seed).normal(size=(directions, x.shape[1]))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    a, b = (None, None) if pair.even else (pair.mass_x, pair.mass_y)
    values = np.array([line_wasserstein(x @ ray, y @ ray, weights_x=a, weights_y=b) for ray in rays])
    return Distance(float(values.mean()), "sliced", standard_error=_standard_error(values))


def _subsampled(pair: _Pair, samples: int, draws: int, seed: int) -> Distance:
    for name, value in (("samples", samples), ("draws", draws)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 2:
            raise ArgumentError(f"{name} must be a whole number of at least 2, got {value!r}.")
    size = min(samples, len(pair.x) // 2, len(pair.y))
    if size < 1:
        raise ArgumentError('x must have at least 2 rows for method="subsample". Use method="exact".')
    check_arcs(size * size, f"{size} by {size} points", "Use smaller samples.")
    rng = np.random.default_rng(seed)
    values, floors = np.empty(draws), np.empty(draws)
    for i in range(draws):
        first, second = _draw(pair.x, pair.mass_x, 2 * size, pair.even, rng).reshape(2, size, -1)
        other = _draw(pair.y, pair.mass_y, size, pair.even, rng)
        values[i] = _assign(_distances(pair.domain, first, other)) * pair.total
        floors[i] = _assign(_distances(pair.domain, first, second)) * pair.total
    return Distance(
        float(values.mean()),
        "subsample",
        standard_error=_standard_error(values),
        floor=float(floors.mean()),
        floor_error=_standard_error(floors),
    )


def _draw(points: Points, mass: Floats, size: int, even: bool, rng: np.random.Generator) -> Points:
    """Draw rows: without replacement where all weigh the same, else independently by weight."""
    p = None if even else mass / mass.sum()
    return points[rng.choice(len(points), size, replace=not even, p=p)]


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


# ----------------------------------------------------------------------------------------------- their parts


def _assign(lengths: Points) -> float:
    """Return W1 of two sets of equally many points of equal mass: the mean of the best assignment."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(lengths)
    return float(lengths[rows, columns].mean())


def _distances(domain: Domain | None, x: Points, y: Points) -> Points:
    """Return the matrix of distances, row by row."""
    matrix = np.empty((len(x), len(y)))
    for row, point in zip(matrix, x, strict=True):
        row[:] = np.abs(y - point).max(axis=1) if domain is None else domain.distance(point[np.newaxis], y)
    if not np.isfinite(matrix).all():
        raise ArgumentError("x and y must have finite distances in the domain. Declare missing values with Nullable.")
    return matrix


def _scaled(pair: _Pair) -> tuple[Points, Points]:
    """Return coordinates in which the distance is l_infinity, from 0 for a Box."""
    domain = pair.domain
    if domain is None:
        return pair.x, pair.y
    if isinstance(domain, Integers):
        return (pair.x - domain.low) / max(domain.count - 1, 1), (pair.y - domain.low) / max(domain.count - 1, 1)
    if not isinstance(domain, Box):
        raise ArgumentError(f'domain must be a Box or None for method="sliced", got {domain!r}.')
    low = np.array([low for low, _ in domain.bounds])
    scale = np.array([w / (high - low) for w, (low, high) in zip(domain.weights, domain.bounds, strict=True)])
    return (pair.x - low) * scale, (pair.y - low) * scale


def _whole_masses(pair: _Pair) -> tuple[WholeMasses, WholeMasses, float, float]:
    """Return the masses in whole numbers with equal totals, the mass of one unit, and how much rounding misplaces."""
    if pair.even:
        common = math.lcm(len(pair.x), len(pair.y))
        x, y = (np.full(len(points), common // len(points), np.int64) for points in (pair.x, pair.y))
        return x, y, 1 / common, 0.0
    both = np.concatenate((pair.mass_x, pair.mass_y))
    if np.array_equal(both, np.rint(both)) and pair.total == pair.mass_y.sum() < QUANTA:
        return pair.mass_x.astype(np.int64), pair.mass_y.astype(np.int64), 1.0, 0.0
    unit = pair.total / QUANTA
    return apportion(pair.mass_x, QUANTA), apportion(pair.mass_y, QUANTA), unit, len(both) * unit


def _net(pair: _Pair) -> tuple[Points, Points, WholeMasses, float, float]:
    """Return the distinct points with too much and too little mass, their signed masses, the unit, what is misplaced.

    What x and y have in common stays where it is: by the triangle inequality that costs nothing.
    """
    whole_x, whole_y, unit, misplaced = _whole_masses(pair)
    points, where = np.unique(np.concatenate((pair.x, pair.y)), axis=0, return_inverse=True)
    net = np.zeros(len(points), np.int64)
    np.add.at(net, where.ravel(), np.concatenate((whole_x, -whole_y)))
    common = int(np.gcd.reduce(net)) or 1
    more, less = net > 0, net < 0
    return points[more], points[less], np.concatenate((net[more], net[less])) // common, unit * common, misplaced


def _checked_pair(
    x: ArrayLike, y: ArrayLike, domain: Domain | None, weights_x: ArrayLike | None, weights_y: ArrayLike | None
) -> _Pair:
    first, second = _checked_points("x", x, domain), _checked_points("y", y, domain)
    if first.shape[1] != second.shape[1]:
        raise ArgumentError(f"x and y must have equally many columns, got {first.shape[1]} and {second.shape[1]}.")
    mass_x, mass_y = masses("weights_x", weights_x, len(first)), masses("weights_y", weights_y, len(second))
    check_totals(mass_x, mass_y)
    return _Pair(first, second, mass_x, mass_y, weights_x is None and weights_y is None, domain)


def _checked_points(name: str, points: ArrayLike, domain: Domain | None) -> Points:
    try:
        matrix = np.asarray(points, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a matrix of numbers, one row per point.") from None
    if matrix.ndim == 1:
        matrix = matrix[:, np.newaxis]
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ArgumentError(f"{name} must have at least one row and column, got shape {matrix.shape}.")
    if domain is not None and matrix.shape[1] != domain.width:
        raise ArgumentError(f"{name} must have {domain.width} columns for {domain!r}, got {matrix.shape[1]}.")
    if isinstance(domain, Box | Categories | Circle | Integers | None) and not np.isfinite(matrix).all():
        raise ArgumentError(f"{name} must be finite numbers. Declare missing values with a Nullable domain.")
    return matrix

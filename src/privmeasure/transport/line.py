"""Where optimal transport has a closed form: the line, the circle, trees and nested partitions.

On a tree all mass below an edge that has no partner there must cross the edge, and nothing else need cross it, so W1 is
the sum over edges of length times |net mass below|. The line is the tree without branches.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privmeasure.domains import Cells, Domain, Floats
from privmeasure.errors import ArgumentError
from privmeasure.rounding import ROUNDING, inner

CRUMBS = 1e-12
"""What may be left of a signed mass where everything cancels."""

AnyMass = NDArray[Any]
"""int64 or float64."""


@dataclass(frozen=True)
class Line:
    """Points of the line, in increasing order.

    Examples:
        >>> Line((0.0, 0.5, 2.0)).diameter
        2.0
    """

    positions: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check that the positions increase."""
        gaps = np.diff(np.asarray(self.positions, np.float64))
        if not len(self.positions) or not np.isfinite(gaps).all() or np.any(gaps <= 0):
            raise ArgumentError("positions must be finite numbers in increasing order, at least one.")

    @property
    def cells(self) -> int:
        """How many points there are."""
        return len(self.positions)

    @property
    def diameter(self) -> float:
        """The distance of the ends."""
        return float(self.positions[-1] - self.positions[0])


def line_wasserstein(
    x: ArrayLike, y: ArrayLike, *, weights_x: ArrayLike | None = None, weights_y: ArrayLike | None = None
) -> float:
    """Return W1 of two weighted samples of the line: the area between their distribution functions.

    Without weights every value of a sample weighs 1 / len.

    Guarantee:  exact up to rounding of floats; cost O(n log n)

    Examples:
        >>> line_wasserstein([0.0, 1.0], [0.0, 0.0, 2.0, 3.0])
        0.75
    """
    if weights_x is None and weights_y is None and np.shape(x) == np.shape(y):
        return float(np.abs(np.sort(vector("x", x)) - np.sort(vector("y", y))).mean())  # ten times faster
    ends, lead = _profile(x, y, weights_x, weights_y)
    return inner(np.abs(lead[:-1]), np.diff(ends))


def circle_wasserstein(
    x: ArrayLike,
    y: ArrayLike,
    period: float,
    *,
    weights_x: ArrayLike | None = None,
    weights_y: ArrayLike | None = None,
) -> float:
    """Return W1 of two weighted samples of a circle, distances along the shorter arc.

    min over c of the integral of |F - G - c| over one turn; the best c is a median of F - G, weighted by length.

    Guarantee:  exact up to rounding of floats; cost O(n log n)
    References: Rabin, Delon, Gousseau, Transportation distances on the circle, 2011

    Examples:
        >>> round(circle_wasserstein([23.0], [1.0], 24), 12)
        2.0
    """
    if not 0 < period < np.inf:
        raise ArgumentError(f"period must be a positive number, got {period}.")
    ends, lead = _profile(np.mod(vector("x", x), period), np.mod(vector("y", y), period), weights_x, weights_y)
    arcs = np.diff(ends, append=ends[0] + period)
    order = np.argsort(lead)
    middle = order[np.searchsorted(np.cumsum(arcs[order]), period / 2)]
    return inner(np.abs(lead - lead[middle]), arcs)


def _profile(
    x: ArrayLike, y: ArrayLike, weights_x: ArrayLike | None, weights_y: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Return all values in order and F - G just after each."""
    a, b = vector("x", x), vector("y", y)
    mass_a, mass_b = masses("weights_x", weights_x, len(a)), masses("weights_y", weights_y, len(b))
    check_totals(mass_a, mass_b)
    values, signed = np.concatenate((a, b)), np.concatenate((mass_a, -mass_b))
    order = np.argsort(values)
    return values[order], np.cumsum(signed[order])


def tree_wasserstein(mass: ArrayLike, parents: ArrayLike, lengths: ArrayLike) -> float:
    """Return W1 on a tree between the positive and the negative part of a mass on its nodes.

    `parents[i]` is the parent of node i, -1 for the root; `lengths[i]` is the length of the edge between them.

    Notation:   W1 = sum_i lengths_i |mass of the subtree of i|
    Guarantee:  exact up to rounding of floats; cost O(nodes log nodes)

    Examples:
        >>> tree_wasserstein([0, 1, -1], [-1, 0, 0], [0.0, 2.0, 3.0])
        5.0
    """
    below, edge = signed_masses("mass", mass).astype(np.float64), vector("lengths", lengths)
    parent = np.asarray(parents)
    if parent.shape != below.shape or edge.shape != below.shape or parent.dtype.kind not in "iu":
        raise ArgumentError("parents (integers) and lengths must have one entry for each node of mass.")
    if np.any(edge < 0):
        raise ArgumentError("lengths must be at least 0.")
    _check_balance(below)
    depth = _depths(parent)
    for level in range(int(depth.max()), 0, -1):
        at = np.flatnonzero(depth == level)
        np.add.at(below, parent[at], below[at])
    return inner(np.abs(below)[depth > 0], edge[depth > 0])


def _depths(parent: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of edges from each node to the root, by doubling the stride upwards."""
    count, roots = len(parent), np.flatnonzero(parent == -1)
    if len(roots) != 1 or np.any(parent < -1) or np.any(parent >= count):
        raise ArgumentError(f"parents must be nodes 0 to {count - 1}, and -1 for exactly one root.")
    above = np.where(parent < 0, roots[0], parent)
    depth = (parent >= 0).astype(np.int64)
    for _ in range(count.bit_length()):
        depth, above = depth + depth[above], above[above]
    if np.any(above != roots[0]):
        raise ArgumentError("parents must lead to the root from every node, but some go in a circle.")
    return depth


def hierarchy_wasserstein(mass: ArrayLike, partitions: Sequence[tuple[float, ArrayLike]]) -> float:
    """Return W1 between the positive and the negative part of a mass in the ultrametric of nested partitions.

    `partitions` go from fine to coarse: (diameter, the group of every point). Two points are as far apart as the
    diameter of the finest partition that has both in one group; the last one has everybody in one group.

    Notation:   W1 = sum_j (D_{j+1} - D_j) / 2 sum over groups g of partition j of |mass(g)|, D_0 = 0 for single points
    Guarantee:  exact up to rounding of floats; cost O(points) a partition

    Examples:
        >>> hierarchy_wasserstein([1, -1, 1, -1], [(0.25, [0, 0, 1, 2]), (1.0, [0, 0, 0, 0])])
        1.25
    """
    points = signed_masses("mass", mass).astype(np.float64)
    _check_balance(points)
    total, diameter, groups = 0.0, 0.0, np.arange(len(points))
    for wider, coarser in [*partitions]:
        if not diameter <= wider < np.inf:
            raise ArgumentError("partitions must go from fine to coarse: their diameters may not fall.")
        total += (wider - diameter) / 2 * float(np.abs(np.bincount(groups, points)).sum())
        diameter, groups = wider, np.unique(np.asarray(coarser), return_inverse=True)[1]
        if len(groups) != len(points):
            raise ArgumentError(f"partitions must name a group for each of {len(points)} points.")
    if len(points) and groups.any():
        raise ArgumentError("partitions must end with one that has all points in one group.")
    return total


def cell_wasserstein(domain: Domain, level: int, cells: Cells, mass: ArrayLike) -> float:
    """Return W1 of a signed mass on the cells of a level, in the ultrametric of the domain's tree.

    Two cells are as far apart as the diameter of the cells of the level at which they part. Centres are never farther
    apart in the domain itself, so this is an upper bound of W1 between masses on centres, in closed form.

    Guarantee:  cost  O(cells) a level

    Examples:
        >>> from privmeasure.domains import Box
        >>> cell_wasserstein(Box([(0, 1)]), 2, np.array([0, 1, 3], np.uint64), [2, -1, -1])
        1.5
    """
    codes = np.asarray(cells, np.uint64)
    levels = range(level - 1, -1, -1)
    return hierarchy_wasserstein(mass, [(domain.diameter(j), codes >> np.uint64(level - j)) for j in levels])


def apportion(weights: ArrayLike, total: int) -> NDArray[np.int64]:
    """Return whole numbers that sum to `total`, in proportion to the weights, by cumulative rounding.

    c_k = floor(total F_k + 1/2), m_k = c_k - c_{k-1}: every entry, and every run of entries, gets its share to within
    one. Where integer weights sum to at least `total`, no entry gets more than its weight.

    References: [HVZ23] section 3, whose common denominators this replaces

    Examples:
        >>> apportion([1, 1, 1], 4)
        array([1, 2, 1])
    """
    cumulative: AnyMass = np.cumsum(np.asarray(weights))
    if cumulative.dtype.kind == "f":
        edges = np.floor(cumulative * (total / cumulative[-1]) + 0.5)
    else:
        whole = int(cumulative[-1])
        if 2 * (total + 1) * whole >= 2**62:
            cumulative = cumulative.astype(object)  # whole numbers of any size
        edges = (2 * total * cumulative + whole) // (2 * whole)
    shares: NDArray[np.int64] = edges.astype(np.int64)
    shares[1:] -= shares[:-1].copy()
    return shares


# ------------------------------------------------------------------------------------------- covering on a line


def ship_along(positions: Floats, mass: AnyMass, amount: int | None = None) -> AnyMass:
    """Return how much leaves each positive point of a line when positive mass covers negative mass at the least cost.

    `amount` units are shipped (None: as much as the smaller side has); at negative points the result is minus what
    arrives. First all of the smaller side is covered (`_cover`), then the dearest units are taken back.
    """
    if amount is None and not mass.sum():
        return mass.copy()  # equal totals: everything moves
    gaps = np.diff(positions)
    sign = 1 if mass.sum() >= 0 else -1  # -1: what is negative covers what is positive
    moved: AnyMass = sign * (np.minimum(sign * mass, 0) + _cover(gaps, sign * mass))
    excess = 0 if amount is None else int(np.maximum(moved, 0).sum()) - amount
    while excess > 0:
        excess -= _take_back(gaps, moved, excess)
    return moved


def _cover(gaps: Floats, mass: AnyMass) -> AnyMass:
    """Return what leaves each positive point so that all negative mass is covered; the total must not be negative.

    Let F be the flow to the right across the gap after point i, and f(F) the least cost so far. f is convex, piecewise
    linear. A positive point may add any s in [0, mass] to F at no cost: a segment of slope 0 is inserted in f, where
    the slopes are in order. A negative point shifts f. The gap adds gap |F|: slopes fall left of F = 0 and rise right
    of it. So two heaps of segments, left and right of F = 0, nearest first, hold all there is to know; whose mass a
    segment is goes with it. In the end F = 0, and the mass of the segments on its left is what was shipped.

    Guarantee:  cost  O((m + B) log m) for m points and B units of negative mass, and never more than O(m^2 log m)
    """
    left: list[tuple[float, Any, int]] = []
    right: list[tuple[float, Any, int]] = []
    fall: float = 0  # what slopes have lost on the left and gained on the right; they are stored without it
    edge: Any = 0  # where the heaps meet
    for i, here in enumerate(mass.tolist()):
        if here > 0 and left and -left[0][0] - fall > 0:
            heapq.heappush(left, (-fall, here, i))
            edge += here
        elif here > 0:
            heapq.heappush(right, (-fall, here, i))
        else:
            edge += here
        while edge < 0 and right:
            slope, length, cell = heapq.heappop(right)
            step = min(length, -edge)
            edge += step
            heapq.heappush(left, (-(slope + 2 * fall), step, cell))
            if length > step:
                heapq.heappush(right, (slope, length - step, cell))
        while edge > 0 and left:
            negative, length, cell = heapq.heappop(left)
            step = min(length, edge)
            edge -= step
            heapq.heappush(right, (-negative - 2 * fall, step, cell))
            if length > step:
                heapq.heappush(left, (negative, length - step, cell))
        fall += float(gaps[i]) if i < len(gaps) else 0.0
    shipped = np.zeros_like(mass)
    for _, length, cell in left:
        shipped[cell] += length
    return shipped


def _take_back(gaps: Floats, moved: AnyMass, most: int) -> int:
    """Take back, in place, units along the path whose return saves most; return how many.

    In a cheapest flow of K units, the path of the residual graph from a covered point to a point that ships, with the
    least cost (negative: a saving), gives a cheapest flow of K - 1. On a line it is one stretch.
    """
    flow = np.cumsum(moved)[:-1]
    best, path = np.inf, (0, 0)
    for flip in (1, -1):  # back to the left, then to the right: the same after a reflection
        cost = np.where(flow[::flip] * flip > 0, -gaps[::flip], gaps[::flip])
        reach = np.concatenate(([0.0], np.cumsum(cost)))
        ends = np.where(moved[::flip] > 0, reach, -np.inf)
        change = np.where(moved[::flip] < 0, reach - np.maximum.accumulate(ends), np.inf)
        q = int(np.argmin(change))
        if change[q] < best:
            best, p = change[q], int(np.argmax(ends[: q + 1]))
            path = (p, q) if flip == 1 else (len(moved) - 1 - p, len(moved) - 1 - q)
    p, q = path
    along = flow[p:q] if p < q else -flow[q:p]
    step = int(min(most, moved[p], -moved[q], along[along > 0].min(initial=most)))
    moved[p] -= step
    moved[q] += step
    return step


# ----------------------------------------------------------------------------------------------------- checks


def vector(name: str, values: ArrayLike) -> Floats:
    """Return a vector of finite doubles, at least one; anything else is an ArgumentError."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be numbers.") from None
    if array.ndim != 1 or not len(array):
        raise ArgumentError(f"{name} must be a vector with at least one entry, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} must be finite numbers, without NaN.")
    return array


def signed_masses(name: str, values: ArrayLike) -> AnyMass:
    """Return a vector of masses of any sign: int64 where whole numbers were given, else finite doubles."""
    array = np.asarray(values)
    if array.ndim == 1 and len(array) and array.dtype.kind in "iu":
        return array.astype(np.int64)
    return vector(name, values)


def masses(name: str, weights: ArrayLike | None, count: int) -> Floats:
    """Return masses >= 0 that are not all 0, one per point; None gives every point 1 / count."""
    if weights is None:
        return np.full(count, 1 / count)
    array = vector(name, weights)
    if len(array) != count:
        raise ArgumentError(f"{name} must have one entry for each of {count} points, got {len(array)}.")
    if array.min() < 0 or not array.any():
        raise ArgumentError(f"{name} must be masses of at least 0 that are not all 0: an empty measure has no W1.")
    return array


def check_totals(a: Floats, b: Floats) -> None:
    """Refuse unequal masses."""
    first, second = float(a.sum()), float(b.sum())
    if abs(first - second) > ROUNDING * max(first, second):
        raise ArgumentError(
            f"weights_x and weights_y must have equal totals, got {first:.6g} and {second:.6g}. Divide each by its "
            "total, or use bounded_lipschitz, which compares any masses."
        )


def _check_balance(mass: Floats) -> None:
    """Refuse a signed mass with a total; differences of equal measures may leave crumbs of rounding."""
    total = float(mass.sum())
    if abs(total) > ROUNDING * float(np.abs(mass).sum()) + CRUMBS:
        raise ArgumentError(
            f"mass must sum to 0, got {total:.6g}. Compare measures of equal totals, or use bounded_lipschitz."
        )

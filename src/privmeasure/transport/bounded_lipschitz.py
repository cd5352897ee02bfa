"""The bounded-Lipschitz distance of signed measures on a finite metric space, and the closest measure in it.

    d_BL(mu, nu) = sup { integral of f d(mu - nu) : |f(x) - f(y)| <= d(x, y), |f| <= D },   D = diameter.

The dual moves mass at cost d and makes or destroys it at cost D:

    min sum_{i != j} d_ij u_ij + D sum_i (v_i + w_i)   with   sum_j (u_ij - u_ji) + v_i - w_i = mu_i - nu_i.

(The linear program printed in [HVZ23], Algorithm 2, lacks the terms u_ji, so that mass vanishes at the price of the
nearest neighbour.) By the triangle inequality mass goes straight from where there is too much to where there is too
little, and since d <= D < 2 D as much as possible goes: an optimum ships min(A, B) from P = {mu > nu} to Q = {mu < nu},
A and B being their masses, at the least cost, and pays D |A - B| for the rest.
"""

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privmeasure.domains import Finite, Floats
from privmeasure.errors import ArgumentError
from privmeasure.rounding import ROUNDING
from privmeasure.transport.flow import Grid, check_arcs, grid_arcs, linear_flow, min_cost_flow, whole_costs
from privmeasure.transport.line import AnyMass, Line, apportion, ship_along, signed_masses

AnySpace = ArrayLike | Finite | Grid | Line
"""A matrix of distances, a Finite domain (whose distances are checked already), a grid of cells or points of a line."""

MOST_TAKEN_BACK = 1 << 28
"""Units to be taken back on a line times its points, up to which that is done one by one: some seconds."""
USE_COARSER = "Use a coarser partition, or a Grid, which needs no pairs of cells."


def bounded_lipschitz(mu: ArrayLike, nu: ArrayLike, distance: AnySpace, *, diameter: float | None = None) -> float:
    """Return d_BL(mu, nu) of signed measures: masses of any sign, with any totals, on the points of a finite space.

    For equal totals it is W1. `diameter` is that of a space in which the points lie, by default their own.

    Notation:   |P|, |Q| numbers of points where mu > nu, mu < nu
    Guarantee:  exact for whole numbers on a grid; up to rounding of floats on a line; whole numbers in a matrix: at
                most 2^-30 diameters for each unit of mass too much; floats: the tolerance of HiGHS (1e-7)
                cost  a flow with |P||Q| arcs (matrix) or 3^d - 1 arcs per cell (grid); O(points log points) on a line
    References: [HVZ23] section 2; the corrected linear program of docs/mathematics.md

    Examples:
        >>> bounded_lipschitz([1, 0], [0, 3], [[0, 0.5], [0.5, 0]], diameter=1.0)
        2.5
    """
    space = _checked_space(distance)
    first, second = (_on(space, name, mass) for name, mass in (("mu", mu), ("nu", nu)))
    _, value = _ship(space, first - second, None)
    return value + _checked_diameter(space, diameter) * abs(float((first - second).sum()))


def closest_measure(
    nu: ArrayLike, total: int, distance: AnySpace, *, diameter: float | None = None
) -> tuple[NDArray[np.int64], float]:
    """Return the measure in whole numbers >= 0 of a given total that is closest to nu in d_BL, and its distance.

    Positive mass is shipped to cover negative mass. With A the positive mass of nu, N = nu(all) and D the diameter:

        A <= total:      what is positive stays, the rest of the total is added in proportion;   D (total - N)
        N >= total:      all negative mass is covered; the remainder is scaled down;             cost + D (N - total)
        N < total < A:   the A - total cheapest units are shipped; the remainder is the answer;  cost + D (total - N)

    Scaling is cumulative rounding along the cells and never raises a cell above its remainder, which keeps it optimal.

    Guarantee:  privacy   post-processing of nu
                accuracy  optimal (on a matrix: up to 2^-30 diameters per unit shipped)
                cost      256 x 256 cells with noise of scale 1: seconds and 150 MB; a line of 65,536: about a second
    References: [HVZ23] Algorithm 2, corrected (docs/mathematics.md)

    Examples:
        >>> closest_measure([5, 5, 5, -5], 10, Line((0.0, 0.01, 0.5, 1.0)))
        (array([5, 5, 0, 0]), 2.5)
    """
    space = _checked_space(distance)
    signed = _on(space, "nu", nu)
    goal = _checked_total(total)
    if signed.dtype.kind == "f":
        raise ArgumentError(f"nu must be whole numbers, got {signed.dtype}. Count in units of the smallest mass.")
    positive = np.maximum(signed, 0)
    most, net = int(positive.sum()), int(signed.sum())
    price = _checked_diameter(space, diameter) * abs(goal - net)
    if most <= goal:
        return positive + apportion(positive if most else positive + 1, goal - most), price
    moved, value = _ship(space, signed, None if net >= goal else most - goal)
    remainder = positive - np.maximum(moved, 0)
    return apportion(remainder, goal) if net > goal else remainder, value + price


def _ship(space: Finite | Grid | Line, mass: AnyMass, amount: int | None) -> tuple[AnyMass, float]:
    """Ship `amount` (None: all that the smaller side has) from positive to negative mass; return what moved, and cost.

    What leaves is positive, what arrives negative.
    """
    if mass.min() >= 0 or mass.max() <= 0:
        return np.zeros_like(mass), 0.0
    positions = _positions(space)
    if positions is not None and _is_short(mass, amount):
        moved = ship_along(positions, mass, amount)
        return moved, float(np.abs(np.cumsum(moved)[:-1]) @ np.diff(positions))
    if isinstance(space, Line):
        gaps, left = np.tile(np.diff(space.positions), 2), np.arange(space.cells - 1)
        ends = np.concatenate((left, left + 1)), np.concatenate((left + 1, left))
        moved, flows = _flow((*ends, whole_costs(gaps)), mass, amount)
        return moved, float(flows @ gaps)
    if isinstance(space, Grid):
        arcs = grid_arcs(space.shape, space.sides)
        moved, flows = _flow(arcs, mass, amount)
        return moved, float(flows @ arcs[2]) * space.unit
    source, target = np.flatnonzero(mass > 0), np.flatnonzero(mass < 0)
    check_arcs(len(source) * len(target), f"{len(source)} by {len(target)} points of the matrix", USE_COARSER)
    lengths = space.distances[np.ix_(source, target)].ravel()
    tails, heads = np.repeat(source, len(target)), np.tile(target, len(source))
    moved, flows = _flow((tails, heads, lengths if mass.dtype.kind == "f" else whole_costs(lengths)), mass, amount)
    return moved, float(flows @ lengths)


def _positions(space: Finite | Grid | Line) -> Floats | None:
    """Return where the points are if they lie on a line."""
    if isinstance(space, Line):
        return np.asarray(space.positions, np.float64)
    if isinstance(space, Grid) and sum(n > 1 for n in space.shape) <= 1:
        return np.arange(space.cells, dtype=np.float64) * space.unit
    return None


def _is_short(mass: AnyMass, amount: int | None) -> bool:
    """Say whether few enough units of the largest shipment must be taken back, one by one, on a line."""
    largest = min(np.maximum(mass, 0).sum(), np.maximum(-mass, 0).sum())
    return amount is None or (int(largest) - amount) * len(mass) <= MOST_TAKEN_BACK


def _flow(
    arcs: tuple[AnyMass, AnyMass, AnyMass], mass: AnyMass, amount: int | None
) -> tuple[AnyMass, NDArray[np.int64] | Floats]:
    """Solve the shipment as a flow: one more node takes what is not shipped, another gives what is not covered.

    Both hubs are reached at no cost. A shipment through a hub, or of mass that then stays at another point, would only
    cost more, so an optimal flow has none. Returns what moved and the flow on the arcs.
    """
    source, target = np.flatnonzero(mass > 0), np.flatnonzero(mass < 0)
    have, need = mass[source].sum(), -mass[target].sum()
    shipped = min(have, need) if amount is None else amount
    hubs = np.array([shipped - have, need - shipped], mass.dtype)
    count, kept = len(arcs[0]), have > shipped
    tails, heads, costs = ([part] for part in arcs)
    capacities: list[AnyMass] = [np.full(count, shipped, mass.dtype)]
    if kept:
        _join(tails, heads, costs, source, np.full(len(source), len(mass)))
        capacities.append(mass[source])
    if need > shipped:
        _join(tails, heads, costs, np.full(len(target), len(mass) + 1), target)
        capacities.append(-mass[target])
    tail, head, cost = np.concatenate(tails), np.concatenate(heads), np.concatenate(costs)
    capacity, supply = np.concatenate(capacities), np.concatenate((mass, hubs))
    flows: NDArray[np.int64] | Floats
    if mass.dtype.kind == "f":
        flows = linear_flow(tail, head, cost, None, supply)[0]
    else:
        flows = min_cost_flow(tail, head, cost, capacity, supply)[0]
    moved = mass.copy()
    moved[source] -= flows[count : count + len(source)] if kept else 0
    moved[target] += flows[len(flows) - len(target) :] if need > shipped else 0
    return moved, flows[:count]


def _join(tails: list[AnyMass], heads: list[AnyMass], costs: list[AnyMass], tail: AnyMass, head: AnyMass) -> None:
    tails.append(tail)
    heads.append(head)
    costs.append(np.zeros(len(tail), np.int64))


def _checked_space(distance: AnySpace) -> Finite | Grid | Line:
    return distance if isinstance(distance, Finite | Grid | Line) else Finite(distance)


def _size(space: Finite | Grid | Line) -> int:
    return space.count if isinstance(space, Finite) else space.cells


def _on(space: Finite | Grid | Line, name: str, values: ArrayLike) -> AnyMass:
    mass = signed_masses(name, values)
    if len(mass) != _size(space):
        raise ArgumentError(f"{name} must have a mass for each of {_size(space)} points of distance, got {len(mass)}.")
    return mass


def _checked_diameter(space: Finite | Grid | Line, diameter: float | None) -> float:
    own = float(space.distances.max()) if isinstance(space, Finite) else space.diameter
    if diameter is None:
        return own
    if not own * (1 - ROUNDING) <= diameter < np.inf:
        raise ArgumentError(f"diameter must be at least the largest distance, {own:.6g}, got {diameter}.")
    return float(diameter)


def _checked_total(total: int) -> int:
    try:
        goal = operator.index(total)
    except TypeError:
        goal = 0
    if isinstance(total, bool) or goal < 1:
        raise ArgumentError(
            f"total must be a whole number of at least 1, got {total!r}: an empty measure has no points."
        )
    return goal

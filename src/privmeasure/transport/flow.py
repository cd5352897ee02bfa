"""Minimum-cost flow in integers, and the graph on which a grid's l_infinity distance is a length of paths.

The solver is OR-Tools where it is installed (the extra "transport"), otherwise SciPy's HiGHS: the constraint matrix of
a flow is totally unimodular, so that a vertex of the linear program is a flow in integers. It is rounded and checked.
HiGHS is 3 to 100 times slower, never less exact.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privmeasure.domains import Floats
from privmeasure.errors import ArgumentError, PrivmeasureError
from privmeasure.extras import how_to_install
from privmeasure.rounding import ROUNDING

Wholes = NDArray[np.int64]
Arcs = tuple[Wholes, Wholes, Wholes]
"""Tails, heads and costs."""

MOST_ARCS = 1 << 24
"""Of one problem: at about 150 bytes an arc in the solver, 2.5 GB."""
LARGEST_SUPPLY = 1 << 62
"""What supplies, and costs times nodes, may reach in 64-bit words."""
COST_LEVELS = 1 << 30
"""Real lengths become so many whole numbers."""
SAFE_FLOAT = 1 << 53
"""Up to here every integer is a double."""


@dataclass(frozen=True)
class Grid:
    """A grid of equal cells with the l_infinity distance of their centres; cells are numbered as NumPy ravels them.

    The sides of the cells must be equal, or one side and its double: then the distance is a length of paths with few
    arcs (see `grid_arcs`). Every level of a Box with equal weights is of this form.

    Examples:
        >>> Grid((256, 256), (1 / 256, 1 / 256)).diameter
        0.99609375
    """

    shape: tuple[int, ...]
    sides: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Check shape and sides, and that the arcs fit in memory."""
        check_arcs(self.cells * sum(1 for _ in _moves(self.steps)), f"a grid of shape {self.shape}", GRID_ADVICE)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    @property
    def unit(self) -> float:
        """The shortest side: what a cost of 1 means."""
        return min(
            (s for s, n in zip(self.sides or [1.0] * len(self.shape), self.shape, strict=True) if n > 1), default=1.0
        )

    @property
    def steps(self) -> tuple[int, ...]:
        """The sides in units, 1 or 2 per axis."""
        return _steps(self.shape, self.sides)

    @property
    def diameter(self) -> float:
        """The largest distance of two centres."""
        return self.unit * max(s * (n - 1) for s, n in zip(self.steps, self.shape, strict=True))


GRID_ADVICE = "Use fewer cells per axis, or a sliced or subsampled estimate."


def check_arcs(arcs: int, what: str, advice: str) -> None:
    """Refuse a problem that would not fit in memory, before any is taken."""
    if arcs > MOST_ARCS:
        raise ArgumentError(
            f"The transport problem of {what} has {arcs:,} arcs, about {150 * arcs / 2**30:,.1f} GiB; "
            f"at most {MOST_ARCS:,} are allowed. {advice}"
        )


def grid_arcs(shape: Sequence[int], sides: Sequence[float] | None = None) -> Arcs:
    """Return arcs whose shortest paths have the l_infinity length between cells, in units of the shortest side.

    Cubes: the 3^d - 1 moves of a king, at cost 1. An offset k is walked in max |k_i| moves, each of which brings every
    coordinate that is not there yet one cell nearer, and no move gains more than its cost.

    Some axes twice as fine: let b and c be the offsets along fine (side 1) and coarse (side 2) axes, so that the
    distance is max(2 |c|, |b|), |.| the largest coordinate. The moves are those of a king along the fine axes, at cost
    1, and those that go -1, 0 or 1 along the coarse axes, not all 0, and -2..2 along the fine ones, at cost 2. |c|
    moves of the second kind walk c and bring each fine coordinate up to 2 |c| nearer; where |b| > 2 |c|, |b| - 2 |c|
    moves of the first kind do the rest: max(2 |c|, |b|) in all. No move is longer than its cost, so no path is
    shorter; and every coordinate goes straight to its goal, so the walk stays in the grid.

    Guarantee:  cost  (3^f - 1) + (3^c - 1) 5^f arcs per cell for f fine and c coarse axes; 3^d - 1 for cubes

    Examples:
        >>> tails, heads, costs = grid_arcs((2, 2))
        >>> len(tails), int(costs.max())
        (12, 1)
    """
    steps = _steps(shape, sides)
    check_arcs(math.prod(shape) * sum(1 for _ in _moves(steps)), f"a grid of shape {tuple(shape)}", GRID_ADVICE)
    nodes = np.arange(math.prod(shape), dtype=np.int64).reshape(tuple(shape))
    tails, heads, costs = [], [], []
    for move, cost in _moves(steps):
        if any(abs(s) >= n for s, n in zip(move, shape, strict=True)):
            continue
        start = tuple(slice(max(0, -s), n - max(0, s)) for s, n in zip(move, shape, strict=True))
        end = tuple(slice(max(0, s), n - max(0, -s)) for s, n in zip(move, shape, strict=True))
        tails.append(nodes[start].ravel())
        heads.append(nodes[end].ravel())
        costs.append(np.full(len(tails[-1]), cost, np.int64))
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *tails]), np.concatenate([none, *heads]), np.concatenate([none, *costs])


def _moves(steps: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the offset and the cost of every move."""
    for coarse in product(*((-1, 0, 1) if step == 2 else (0,) for step in steps)):
        reach = range(-2, 3) if any(coarse) else range(-1, 2)
        for fine in product(*((0,) if step == 2 else reach for step in steps)):
            move = tuple(a + b for a, b in zip(coarse, fine, strict=True))
            if any(move):
                yield move, 2 if any(coarse) else 1


def _steps(shape: Sequence[int], sides: Sequence[float] | None) -> tuple[int, ...]:
    """Return the sides in units of the shortest; an axis of one cell has no side."""
    if not len(shape) or any(isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1 for n in shape):
        raise ArgumentError(f"shape must be whole numbers of at least 1, one per axis, got {tuple(shape)}.")
    if sides is None:
        return (1,) * len(shape)
    if len(sides) != len(shape) or not all(0 < side < math.inf for side in sides):
        raise ArgumentError(f"sides must be a positive number for each of {len(shape)} axes, got {tuple(sides)}.")
    shortest = min((side for side, n in zip(sides, shape, strict=True) if n > 1), default=1.0)
    ratios = [side / shortest if n > 1 else 1.0 for side, n in zip(sides, shape, strict=True)]
    if not all(math.isclose(ratio, 1) or math.isclose(ratio, 2) for ratio in ratios):
        raise ArgumentError(
            f"sides must be equal, or one side and its double, got {tuple(sides)}. "
            "For other cells give a matrix of distances."
        )
    return tuple(round(ratio) for ratio in ratios)


def min_cost_flow(
    tails: ArrayLike, heads: ArrayLike, costs: ArrayLike, capacities: ArrayLike | None, supplies: ArrayLike
) -> tuple[Wholes, int]:
    """Return the cheapest flow that takes every supply to the demands (negative supplies), and its cost, in integers.

    Minimises sum c_a f_a over 0 <= f_a <= u_a with (flow out of v) - (flow into v) = b_v at every node v.

    Notation:   c costs >= 0    u capacities (None: no limit)    b supplies, which sum to 0
    Guarantee:  exact: an optimal flow in integers, whatever the solver
                cost   about 150 bytes an arc; refused beyond 2^24 arcs

    Examples:
        >>> flows, cost = min_cost_flow([0, 0, 1], [1, 2, 2], [1, 3, 1], None, [4, 0, -4])
        >>> flows, cost
        (array([4, 0, 4]), 8)
    """
    tail, head, cost = (whole_numbers(*pair) for pair in (("tails", tails), ("heads", heads), ("costs", costs)))
    supply = whole_numbers("supplies", supplies)
    check_arcs(len(tail), "tails and heads", "Use a coarser problem.")
    most = int(np.maximum(supply, 0).sum(dtype=object)) if len(supply) else 0
    capacity = np.full(len(tail), most, np.int64) if capacities is None else whole_numbers("capacities", capacities)
    _check_network(tail, head, cost, capacity, supply)
    if most == 0:
        return np.zeros(len(tail), np.int64), 0
    flows = _solve(tail, head, cost, np.minimum(capacity, most), supply)
    used = np.flatnonzero(flows)
    if most * float(cost.max(initial=0)) * len(supply) < LARGEST_SUPPLY:
        return flows, int(flows[used] @ cost[used])
    return flows, int(flows[used].astype(object) @ cost[used].astype(object))


def _check_network(tail: Wholes, head: Wholes, cost: Wholes, capacity: Wholes, supply: Wholes) -> None:
    for name, array in (("heads", head), ("costs", cost), ("capacities", capacity)):
        if len(array) != len(tail):
            raise ArgumentError(f"{name} must have one entry for each of {len(tail)} arcs, got {len(array)}.")
    for name, array in (("tails", tail), ("heads", head)):
        if len(array) and not 0 <= array.min() <= array.max() < len(supply):
            raise ArgumentError(f"{name} must be nodes 0 to {len(supply) - 1}, one for each of the supplies.")
    for name, array in (("costs", cost), ("capacities", capacity)):
        if array.min(initial=0) < 0:
            raise ArgumentError(f"{name} must be at least 0, got {array.min()}.")
    total = int(supply.sum(dtype=object)) if len(supply) else 0
    if total:
        raise ArgumentError(f"supplies must sum to 0, got {total}. What leaves must arrive: add a node for the rest.")
    if float(np.abs(supply.astype(np.float64)).sum()) >= LARGEST_SUPPLY:
        raise ArgumentError("supplies must stay below 2^62 in all. Divide them by a common factor.")
    if int(cost.max(initial=0)) * 4 * (len(supply) + 1) >= LARGEST_SUPPLY:
        raise ArgumentError(f"costs must stay below 2^60 over the number of nodes, got {cost.max()}. Scale them down.")


def _solve(tail: Wholes, head: Wholes, cost: Wholes, capacity: Wholes, supply: Wholes) -> Wholes:
    try:
        from ortools.graph.python import min_cost_flow as ortools
    except ImportError:
        flows = _by_linear_program(tail, head, cost, capacity, supply)
    else:
        solver: Any = ortools.SimpleMinCostFlow()
        arcs = solver.add_arcs_with_capacity_and_unit_cost(tail, head, capacity, cost)
        solver.set_nodes_supplies(np.arange(len(supply)), supply)
        status = solver.solve()
        if status == solver.INFEASIBLE:
            raise ArgumentError(INFEASIBLE)
        if status != solver.OPTIMAL:
            raise PrivmeasureError(f"The flow solver ended with {status}. Scale costs and supplies down.")
        flows = np.asarray(solver.flows(arcs), np.int64)
    balance = supply.copy()
    np.subtract.at(balance, tail, flows)
    np.add.at(balance, head, flows)
    if balance.any() or np.any(flows < 0) or np.any(flows > capacity):
        raise PrivmeasureError(UNSOUND)
    return flows


INFEASIBLE = "supplies cannot reach the demands along the arcs within capacities. Add arcs, or raise capacities."
UNSOUND = (
    f"The linear program has lost whole numbers to rounding. Install the exact solver: {how_to_install('transport')}."
)


def _by_linear_program(tail: Wholes, head: Wholes, cost: Wholes, capacity: Wholes, supply: Wholes) -> Wholes:
    """Return the whole numbers that a vertex of the linear program is up to rounding, if they cost the same.

    HiGHS works to 1e-7. So numbers are divided by powers of 2 until they are at most 2^20: then its errors stay below
    a unit of flow, and costs that differ are told apart, as long as there are at most 2^40 of either.
    """
    by, price = (2.0 ** -max(0, int(array.max(initial=0)).bit_length() - 20) for array in (np.abs(supply), cost))
    found, value = linear_flow(tail, head, cost * price, capacity * by, supply * by)
    whole = np.rint(found / by)
    if np.abs(whole).max(initial=0) >= SAFE_FLOAT or not math.isclose(
        whole @ cost, value / (by * price), rel_tol=ROUNDING, abs_tol=0.25
    ):
        raise PrivmeasureError(UNSOUND)
    return whole.astype(np.int64)


def linear_flow(
    tail: Wholes, head: Wholes, cost: NDArray[Any], capacity: NDArray[Any] | None, supply: NDArray[Any]
) -> tuple[Floats, float]:
    """Return the cheapest flow and its cost in doubles, a vertex of the linear program, by HiGHS.

    Supplies must sum to 0 up to rounding; the balance of the last node follows from the others and is left out.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    arcs = np.arange(len(tail))
    entries = np.concatenate((np.ones(len(tail)), -np.ones(len(tail))))
    where = np.concatenate((tail, head)), np.concatenate((arcs, arcs))
    incidence = csr_array((entries, where), shape=(len(supply), len(tail)))[:-1]
    upper = np.full(len(tail), np.inf) if capacity is None else np.asarray(capacity, np.float64)
    limits = np.column_stack((np.zeros(len(tail)), upper))
    found = linprog(cost, A_eq=incidence, b_eq=supply[:-1], bounds=limits, method="highs")
    if found.status == 2:
        raise ArgumentError(INFEASIBLE)
    if found.status != 0:
        raise PrivmeasureError(f"The linear program was not solved: {found.message} Scale costs and supplies down.")
    return np.asarray(found.x, np.float64), float(found.fun)


def whole_costs(lengths: Floats) -> Wholes:
    """Return lengths as whole numbers up to 2^30.

    A flow that is optimal for them costs at most 2^-30 of the greatest length more than an optimal one, for each unit
    that is moved along one arc: half of that in its own cost, half in that of the other.

    Examples:
        >>> whole_costs(np.array([0.0, 0.5, 2.0]))
        array([         0,  268435456, 1073741824])
    """
    return np.rint(lengths * (COST_LEVELS / (float(lengths.max(initial=0.0)) or 1.0))).astype(np.int64)


def whole_numbers(name: str, values: ArrayLike) -> Wholes:
    """Return a vector of 64-bit integers; anything that is not whole numbers is an ArgumentError."""
    array = np.asarray(values)
    if array.ndim == 1 and array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.dtype.kind == "u" and array.max() >= 1 << 63):
        raise ArgumentError(f"{name} must be a vector of 64-bit integers, got {array.dtype} of shape {array.shape}.")
    return array.astype(np.int64)

"""The distances of the benchmark: exact in one dimension, exact on a grid in two and three, sliced on all points."""

from itertools import product

import numpy as np


def line(x: np.ndarray, y: np.ndarray) -> float:
    """Return the exact W1 distance of two samples on the line: the area between their distribution functions."""
    x, y = np.sort(x.ravel()), np.sort(y.ravel())
    ends = np.sort(np.concatenate((x, y)))
    f = np.searchsorted(x, ends[:-1], "right") / len(x)
    g = np.searchsorted(y, ends[:-1], "right") / len(y)
    return float(np.abs(f - g) @ np.diff(ends))


def sliced(x: np.ndarray, y: np.ndarray, *, directions: int = 200, seed: int = 0) -> float:
    """Return the mean W1 distance of the projections on random unit directions."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(directions, x.shape[1]))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    return float(np.mean([line(x @ v, y @ v) for v in u]))


def grid(x: np.ndarray, y: np.ndarray, side: int, *, units: int | None = None) -> float:
    """Return the exact W1 distance in l_infinity of two samples of the unit cube, binned to side^d cubes.

    On a grid of cubes the l_infinity distance is the length of the shortest king's walk, so transport is a flow on the
    king graph with 3^d - 1 arcs a cell. The flow is solved in integers. With `units` the masses of both are rounded to
    so many, cumulatively along the cells, which is several times faster.
    """
    from ortools.graph.python import min_cost_flow

    d = x.shape[1]
    total = len(x) * len(y) if units is None else units
    supply = np.zeros((side,) * d, np.int64)
    for points, weight in ((x, len(y)), (y, -len(x))):
        index = tuple(np.clip((points * side).astype(int), 0, side - 1).T)
        if units is None:
            np.add.at(supply, index, weight)
        else:
            count = np.bincount(np.ravel_multi_index(index, supply.shape), minlength=supply.size)
            mass = np.diff((2 * np.cumsum(count) * units + len(points)) // (2 * len(points)), prepend=0)
            supply += int(np.sign(weight)) * mass.reshape(supply.shape)
    common = np.gcd.reduce(supply.ravel())
    nodes = np.arange(side**d).reshape((side,) * d)
    tails, heads = [], []
    for step in product((-1, 0, 1), repeat=d):
        if any(step):
            from_, to = [], []
            for s in step:
                from_.append(slice(max(0, -s), side - max(0, s)))
                to.append(slice(max(0, s), side - max(0, -s)))
            tails.append(nodes[tuple(from_)].ravel())
            heads.append(nodes[tuple(to)].ravel())
    tail, head = np.concatenate(tails), np.concatenate(heads)
    solver = min_cost_flow.SimpleMinCostFlow()
    scaled = supply.ravel() // max(common, 1)
    capacity = int(np.abs(scaled).sum() // 2)
    solver.add_arcs_with_capacity_and_unit_cost(tail, head, np.full(len(tail), capacity), np.ones(len(tail), np.int64))
    solver.set_nodes_supplies(nodes.ravel(), scaled)
    status = solver.solve()
    if status != solver.OPTIMAL:
        raise RuntimeError(f"the flow solver ended with {status}")
    return solver.optimal_cost() * float(common) / total / side


def exact(x: np.ndarray, y: np.ndarray) -> float:
    """Return the exact W1 distance in l_infinity of two small samples, by POT's network simplex."""
    import ot

    cost = np.max(np.abs(x[:, np.newaxis] - y[np.newaxis]), axis=2)
    return float(ot.emd2(np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)), cost, numItermax=10**7))

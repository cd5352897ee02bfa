"""Transport as dense linear programs, slow and obvious: every pair of points, one variable each way."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def kantorovich(a: Vector, b: Vector, cost: Matrix) -> float:
    """W1 as the cheapest coupling."""
    rows = np.kron(np.eye(len(a)), np.ones(len(b)))
    columns = np.kron(np.ones(len(a)), np.eye(len(b)))
    found = linprog(np.ravel(cost), A_eq=np.vstack((rows, columns))[:-1], b_eq=np.concatenate((a, b))[:-1])
    assert found.status == 0
    return float(found.fun)


def lipschitz(sigma: Vector, distance: Matrix, diameter: float) -> float:
    """sup of the integral of f over 1-Lipschitz f with |f| <= diameter: the definition of d_BL."""
    m = len(sigma)
    pairs = [(i, j) for i, j in product(range(m), repeat=2) if i != j]
    rows = np.zeros((len(pairs), m))
    for row, (i, j) in zip(rows, pairs, strict=True):
        row[i], row[j] = 1, -1
    found = linprog(-sigma, A_ub=rows, b_ub=[distance[i, j] for i, j in pairs], bounds=(-diameter, diameter))
    assert found.status == 0
    return float(-found.fun)


def corrected_program(nu: Vector, total: float, distance: Matrix, diameter: float) -> tuple[Vector, float]:
    """The closest measure tau >= 0 of a given total, and its distance.

    min sum d_ij u_ij + D sum (v_i + w_i)  with  sum_j (u_ij - u_ji) + v_i - w_i + tau_i = nu_i,  sum tau_i = total.
    """
    m = len(nu)
    moves, costs = _moves(distance)
    balance = np.hstack((moves, np.eye(m), -np.eye(m), np.eye(m)))
    sums = np.concatenate((np.zeros(len(costs) + 2 * m), np.ones(m)))
    price = np.concatenate((costs, np.full(2 * m, diameter), np.zeros(m)))
    found = linprog(price, A_eq=np.vstack((balance, sums)), b_eq=np.concatenate((nu, [total])))
    assert found.status == 0
    return np.asarray(found.x[-m:]), float(found.fun)


def printed_program(nu: Vector, total: float, distance: Matrix, diameter: float) -> tuple[Vector, float]:
    """The program as the paper prints it, over i != j: what leaves i for j arrives nowhere.

    min sum d_ij (u_ij + u'_ij) + 2 D sum v_i - D (nu(all) - total)
    with  sum_j (u_ij - u'_ij) + v_i + tau_i >= nu_i,  sum tau_i = total.
    """
    m = len(nu)
    moves, costs = _moves(distance)
    leaves = np.maximum(moves, 0)
    balance = np.hstack((leaves, -leaves, np.eye(m), np.eye(m)))
    sums = np.concatenate((np.zeros(2 * len(costs) + m), np.ones(m)))
    price = np.concatenate((costs, costs, np.full(m, 2 * diameter), np.zeros(m)))
    found = linprog(price, A_ub=-balance, b_ub=-nu, A_eq=sums[np.newaxis], b_eq=[total])
    assert found.status == 0
    return np.asarray(found.x[-m:]), float(found.fun) - diameter * (float(nu.sum()) - total)


def _moves(distance: Matrix) -> tuple[Matrix, Vector]:
    """What u_ij does to the balance of every point, and what it costs, for all i != j."""
    pairs = [(i, j) for i, j in product(range(len(distance)), repeat=2) if i != j]
    moves = np.zeros((len(distance), len(pairs)))
    for k, (i, j) in enumerate(pairs):
        moves[i, k], moves[j, k] = 1, -1
    return moves, np.array([distance[i, j] for i, j in pairs])


def shortest_paths(nodes: int, tails: Sequence[int], heads: Sequence[int], costs: Sequence[int]) -> Matrix:
    """All distances of a graph, by Floyd and Warshall."""
    length = np.full((nodes, nodes), np.inf)
    np.fill_diagonal(length, 0)
    for t, h, c in zip(tails, heads, costs, strict=True):
        length[t, h] = min(length[t, h], c)
    for k in range(nodes):
        length = np.minimum(length, length[:, k, None] + length[None, k])
    return length

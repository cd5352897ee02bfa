"""The rules that split a parent's mass, by brute force over small ranges, and the down pass."""

from fractions import Fraction
from itertools import product
from math import ceil, floor

import numpy as np
import pytest

from privmeasure.estimates.consistency import RULES, distribute, reconcile
from reference import pmm

NAMES = ["signed", "uniform", "proportional"]
PAPER = ["uniform", "proportional"]
GRID = np.array(list(product(range(14), range(-9, 13), range(-9, 13))))
"""Parents M and unclipped estimates (y0, y1)."""


def split(name, parent, left, right):
    rule = RULES[name]
    return rule.split(parent, *rule.prepare(left, right))


def is_comparable(m0, m1, x, y):
    return ((m0 >= x) & (m1 >= y)) | ((m0 <= x) & (m1 <= y))


def flux(n0, n1, m0, parent):
    """How far m0 is from the values that (n0, n1) reaches by adding only, or by removing only."""
    low, high = np.minimum(n0, parent - n1), np.maximum(n0, parent - n1)
    return np.maximum(0, np.maximum(low - m0, m0 - high))


@pytest.mark.parametrize("name", NAMES)
def test_rules_equal_their_twins(name):
    m0 = split(name, *GRID.T)
    assert m0.dtype == np.int64
    assert m0.tolist() == [pmm.RULES[name](*(int(v) for v in row)) for row in GRID]


@pytest.mark.parametrize("name", NAMES)
def test_masses_are_never_negative_and_nothing_is_lost(name):
    m0 = split(name, *GRID.T)
    assert (m0 >= 0).all()
    assert (m0 <= GRID[:, 0]).all()


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_rules_are_comparable_to_the_clipped_counts(name):
    parent, left, right = GRID.T
    m0 = split(name, parent, left, right)
    assert is_comparable(m0, parent - m0, np.maximum(left, 0), np.maximum(right, 0)).all()


def test_comparability_can_fail():
    """Halving, a split that is off by one, or rounding the children separately: found out by the same grid."""
    parent, left, right = GRID.T
    x, y = np.maximum(left, 0), np.maximum(right, 0)
    for wrong in (parent // 2, np.minimum(split("uniform", parent, left, right) + 1, parent)):
        assert not is_comparable(wrong, parent - wrong, x, y).all()
    children = [np.floor(parent * share / np.maximum(x + y, 1) + 0.5) for share in (x, y)]
    assert (sum(children) != parent)[x + y > 0].any()


@pytest.mark.parametrize("step", [1, 0.25])
def test_t2_bounds_the_flux_on_every_path(step):
    """T2: flux <= max(0, (|e - (n0 - n1)| - |M - n0 - n1| + 1) / 2), for whole and for real differences."""
    errors = np.arange(-12, 12 + step / 2, step)
    n0, n1, parent, error = (
        np.array(axis) for axis in zip(*product(range(7), range(7), range(13), errors), strict=True)
    )
    e = n0 - n1 + (error.astype(np.int64) if step == 1 else error)
    moved = flux(n0, n1, reconcile(parent, e), parent)
    assert (moved <= np.maximum(0, (np.abs(error) - np.abs(parent - n0 - n1) + 1) / 2)).all()
    assert (moved <= np.ceil(np.abs(error) / 2)).all()
    assert (moved == np.ceil(np.abs(error) / 2)).any()


def test_the_flux_bound_can_fail():
    """Rounding a real difference down (t = 0) loses a unit that the bound does not allow."""
    n0, n1, parent, error = 3, 2, 5, -0.25
    m0 = floor((parent + n0 - n1 + error) / 2)
    assert flux(n0, n1, m0, parent) > max(0, (abs(error) - abs(parent - n0 - n1) + 1) / 2)
    assert flux(n0, n1, int(reconcile(np.array([parent]), np.array([n0 - n1 + error]))[0]), parent) == 0


@pytest.mark.parametrize("name", PAPER)
def test_t1_bounds_the_flux_of_the_papers_rules(name):
    """A comparable rule moves at most the larger of the two errors (what T1 sums)."""
    rng = np.random.default_rng(1)
    n0, n1 = rng.integers(0, 12, (2, 200_000))
    l0, l1 = rng.integers(-9, 10, (2, 200_000))
    parent = rng.integers(0, 25, 200_000)
    moved = flux(n0, n1, split(name, parent, n0 + l0, n1 + l1), parent)
    assert (moved <= np.maximum(np.abs(l0), np.abs(l1))).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [2**31 - 1, 2**31, 2**32, 2**40, 2**45 + 1])
def test_huge_numbers_are_exact(name, size):
    rng = np.random.default_rng(size)
    parent, left, right = (rng.integers(0, size, 300) for _ in range(3))
    parent[0] = left[0] = right[0] = size
    left[1:40] *= -1
    m0 = split(name, parent, left, right)
    assert m0.tolist() == [pmm.RULES[name](int(m), int(x), int(y)) for m, x, y in zip(parent, left, right, strict=True)]


def test_reconcile_of_real_differences_is_the_floor():
    rng = np.random.default_rng(2)
    parent, e = rng.integers(0, 1000, 5000), rng.normal(0, 400, 5000)
    exact = [floor((int(m) + Fraction(float(x)) + 1) / 2) for m, x in zip(parent, e, strict=True)]
    assert reconcile(parent, e).tolist() == [min(max(x, 0), int(m)) for x, m in zip(exact, parent, strict=True)]


def test_reconcile_leaves_its_arguments_alone():
    parent, e = np.array([5, 6]), np.array([1, 2])
    reconcile(parent, e)
    assert parent.tolist() == [5, 6]
    assert e.tolist() == [1, 2]


def test_distribute_sends_everything_to_the_child_that_exists():
    exists = [np.array(level, bool) for level in ([1], [1, 1], [1, 1, 1, 0], [1, 0, 0, 1, 1, 1, 0, 0])]
    push = [(np.full(1 << j, 99),) for j in range(3)]  # every estimate asks for the left child
    leaves = distribute(np.array([10]), [(np.array([0]),), *push[1:]], RULES["signed"], exists)
    assert leaves.tolist() == [5, 0, 0, 0, 5, 0, 0, 0]
    pull = [(np.full(1 << j, -99),) for j in range(3)]
    leaves = distribute(np.array([10]), [(np.array([0]),), *pull[1:]], RULES["signed"], exists)
    assert leaves.tolist() == [0, 0, 0, 5, 0, 5, 0, 0]


def test_distribute_a_forest():
    leaves = distribute(np.array([3, 0, 8]), [(np.array([1, 5, -2]),)], RULES["signed"])
    assert leaves.tolist() == [2, 1, 0, 0, 3, 5]
    assert ceil(leaves.sum()) == 11

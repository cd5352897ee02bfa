"""A column given the columns before it: the distribution that agrees with every measured pair.

With one parent it is the row of the pair's table. With several it is log-linear,

    q(c | a_1, ..., a_m)  proportional to  base(c) lambda_1(a_1, c) ... lambda_m(a_m, c),

the factors being fitted by raking so that every pair (a_s, c) comes out as measured for the rows at hand, and c itself
as released. No junction tree, so any graph of pairs will do; its cost does not grow with the number of parents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Floats
from privmeasure.model.drawing import SortKey
from privmeasure.model.ranks import Groups
from privmeasure.rounding import TINY

FLOOR = 0.002
"""The part of the independent table in every target: a cell that noise made empty is not impossible.

A target of 0 would drive its factor towards 0, against other parents. Fixed, as files do not hold it: see
`privmeasure.model`.
"""
FIT_ROUNDS, BALANCE_ROUNDS = 8, 6
"""Rounds of raking all pairs and the column; then of the column alone, whose own margin matters most.

More take longer for targets that cannot all be met. Fixed, as files do not hold them: see `privmeasure.model`.
"""
FIT_ROWS = 15_000
"""Combinations of parents that factors are fitted on at most."""
BALANCED_TOGETHER = 1 << 14
"""Combinations whose weights are held at a time. Fixed, as sums depend on it in their last digits."""
DENSE_CODES = 1 << 20
"""Codes of combinations up to which they are counted by position."""
LARGEST_STEP, LARGEST_FACTOR = 1e3, 1e12
"""Of a factor in one round, and in all: targets may contradict each other."""
LEAST = 1e-6
"""The rows that a cell is taken to have at least, where its target is divided by what it has."""
LEAST_OF_GROUP = 1e-9
"""The same for a group of a parent, whose target is scaled to its rows: one without mass keeps none."""
LEAST_OF_COLUMN = 1e-3
"""The same for a cell of the column over all combinations: one that is hardly drawn is not blown up by its margin."""
LEAST_WEIGHT, LEAST_FACTOR = 1e-20, np.float32(1e-30)
"""The same for the weight of a combination and for the largest factor of a group, which are of single precision: its
least normal number is about 1e-38."""
TRACE = 1e-9
"""Of a column's own shares, added to weights: where tables leave a combination nothing, the column itself decides."""
IMPOSSIBLE = 1e-200
"""Weights below are those of combinations that cannot occur."""

Factor = NDArray[np.floating[Any]]
Weights = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Parent:
    """One pair, seen from the column that is drawn: its table, a row for each group of the parent.

    `key` is the parent's group in every row; `child_groups` takes the rank cells of the child to columns of the table;
    where `allowed` (a row for each group, a column for each rank cell of the child) is False, nothing may be drawn.
    """

    table: Floats
    key: SortKey
    child_groups: Groups
    allowed: Bools | None = None


@dataclass(frozen=True, eq=False)
class Combinations:
    """The combinations of the parents' groups that occur: which one every row has, and the groups of each."""

    of_row: SortKey
    groups: tuple[SortKey, ...]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, keys: Sequence[SortKey], sizes: Sequence[int]) -> "Combinations":
        """Find them among the rows."""
        code, radix = np.zeros(len(keys[0]), np.int64), 1
        for key, size in zip(keys, sizes, strict=True):
            code = code * size + key
            radix *= size
        if radix <= DENSE_CODES:
            seen = np.bincount(code, minlength=radix)
            occurring = np.flatnonzero(seen)
            of_row, counts = (np.cumsum(seen > 0) - 1).take(code), seen[occurring]
        else:
            occurring, of_row, counts = np.unique(code, return_inverse=True, return_counts=True)
        groups = []
        for size in reversed(sizes):
            groups.append(occurring % size)
            occurring = occurring // size
        return cls(of_row.reshape(-1), tuple(reversed(groups)), counts)


@dataclass(frozen=True, eq=False)
class Conditional:
    """base(c) times a factor for each parent: weights of the column's rank cells for any combination of parents."""

    base: Floats
    factors: tuple[Factor, ...]

    def weights(self, groups: Sequence[SortKey]) -> Weights:
        """Return a row of weights for each combination; none is without weight."""
        product = self.factors[0].take(groups[0], axis=0)
        for factor, group in zip(self.factors[1:], groups[1:], strict=True):
            product *= factor.take(group, axis=0)
        product *= self.base.astype(product.dtype)
        empty = ~(product.sum(axis=1) > 0)
        if empty.any():  # facts that leave nothing: drawn anyhow, and thrown away later
            product[empty] = self.base
        return product


def conditional(margin: Floats, parents: Sequence[Parent]) -> tuple[Conditional, Combinations]:
    """Return the distribution of a column given its parents, fitted to the rows whose keys the parents hold."""
    parents = sorted(parents, key=lambda parent: -parent.table.size)
    rows = Combinations.of([parent.key for parent in parents], [len(parent.table) for parent in parents])
    if len(parents) == 1:
        return Conditional(np.ones(len(margin)), (_single(margin, parents[0]),)), rows
    fit = _two if len(parents) == 2 else _several
    return fit(margin, parents, rows), rows


def _single(margin: Floats, parent: Parent) -> Factor:
    """Return the table of one parent, each column spread over its rank cells as the released column is."""
    groups = parent.child_groups
    share = margin / np.maximum(np.bincount(groups, weights=margin)[groups], TINY)
    spread = parent.table[:, groups] * share + TRACE * margin
    return spread if parent.allowed is None else spread * parent.allowed


def _target(parent: Parent, have: Floats) -> Floats:
    """Return what the pair's table should be: the parent as it is among the rows, the child given it as measured."""
    table = parent.table
    independent = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), TINY)
    table = (1 - FLOOR) * table + FLOOR * independent
    if parent.allowed is not None:
        table = table * parent.allowed
    scale = have / np.maximum(table.sum(axis=1), LEAST_OF_GROUP)
    return np.asarray(table * scale[:, np.newaxis], np.float64)


def _step(target: Floats, have: Floats) -> Floats:
    return np.asarray(np.clip(target / np.maximum(have, LEAST), 1 / LARGEST_STEP, LARGEST_STEP), np.float64)


def _over(count: Floats, weight: Floats) -> Floats:
    """Return count / weight, 0 where facts leave a combination no weight: it says nothing about the factors."""
    return np.divide(count, weight, out=np.zeros_like(count), where=weight > IMPOSSIBLE)


def _start(parent: Parent, cells: int) -> Floats:
    """Return a factor of ones, zeros where facts forbid, for every rank cell of the child."""
    return np.ones((len(parent.table), cells)) if parent.allowed is None else parent.allowed.astype(np.float64)


def _spread(values: Floats, parent: Parent) -> Floats:
    """Return a matrix over columns of the table as one over rank cells."""
    return values if values.shape[1] == len(parent.child_groups) else values[:, parent.child_groups]


def _gathered(values: Floats, parent: Parent) -> Floats:
    """Return a matrix over rank cells added up over columns of the table, which are groups of them."""
    groups, columns = parent.child_groups, parent.table.shape[1]
    if columns == len(groups):
        return values
    place = (np.arange(len(values)) * columns)[:, np.newaxis] + groups
    total = np.bincount(place.ravel(), weights=values.ravel(), minlength=len(values) * columns)
    return total.reshape(-1, columns).astype(np.float64)


def _two(margin: Floats, parents: Sequence[Parent], rows: Combinations) -> Conditional:
    """Fit two parents. Sums over combinations are products of small matrices: no combination is left out.

    Notation:   V[a, b] rows a combination / its weight    x[a, c], y[b, c] factors
    """
    one, two = parents
    count = np.zeros((len(one.table), len(two.table)))
    count[rows.groups] = rows.counts
    total, base = float(count.sum()), margin / margin.sum() + TRACE
    wanted = margin * (total / margin.sum())
    targets = _target(one, count.sum(axis=1)), _target(two, count.sum(axis=0))
    x, y = (_start(parent, len(margin)) for parent in parents)
    scale = count.copy()
    for round_ in range(FIT_ROUNDS + BALANCE_ROUNDS):
        if round_ < FIT_ROUNDS:
            have = _gathered(base * x * (scale @ y), one)
            x = np.minimum(x * _spread(_step(targets[0], have), one), LARGEST_FACTOR)
            have = _gathered(base * y * (scale.T @ x), two)
            y = np.minimum(y * _spread(_step(targets[1], have), two), LARGEST_FACTOR)
        scale = _over(count, (base * x) @ y.T)
        have = base * (x * (scale @ y)).sum(axis=0)
        base = base * (wanted / np.maximum(have, LEAST))
    return Conditional(base, (x, y))


def _several(margin: Floats, parents: Sequence[Parent], rows: Combinations) -> Conditional:
    """Fit three parents or more, on a matrix of combinations by cells."""
    chosen = _chosen(rows)
    groups = [group[chosen] for group in rows.groups]
    count = rows.counts[chosen].astype(np.float32)
    total, base = float(count.sum()), margin / margin.sum() + TRACE
    wanted = margin * (total / margin.sum())
    sums = [_Sums(group, len(parent.table)) for group, parent in zip(groups, parents, strict=True)]
    targets = [_target(parent, s.of(count[:, np.newaxis])[:, 0]) for parent, s in zip(parents, sums, strict=True)]
    factors = [_start(parent, len(margin)).astype(np.float32) for parent in parents]
    weights = Conditional(base, tuple(factors)).weights(groups) * count[:, np.newaxis]
    for round_ in range(FIT_ROUNDS + BALANCE_ROUNDS):
        for i, parent in enumerate(parents if round_ < FIT_ROUNDS else ()):
            step = _spread(_step(targets[i], _gathered(sums[i].of(weights), parent)), parent).astype(np.float32)
            factors[i] = np.minimum(factors[i] * step, np.float32(LARGEST_FACTOR))
            weights *= step.take(groups[i], axis=0)
        weights *= (count / np.maximum(weights.sum(axis=1), LEAST_WEIGHT))[:, np.newaxis]
        step = wanted / np.maximum(weights.sum(axis=0), LEAST)
        base, weights = base * step, np.multiply(weights, step.astype(np.float32), out=weights)
    # the scale of a row and of the base says nothing: with 1 as the largest, no product of them overflows
    factors = [factor / np.maximum(factor.max(axis=1, keepdims=True), LEAST_FACTOR) for factor in factors]
    fitted = Conditional(base / base.max(), tuple(factors))
    return fitted if len(chosen) == len(rows.counts) else _balanced(fitted, margin, rows)


def _chosen(rows: Combinations) -> NDArray[np.int64]:
    """Return which combinations are fitted on: all, or a fixed choice of them."""
    if len(rows.counts) <= FIT_ROWS:
        return np.arange(len(rows.counts))
    return np.sort(np.random.default_rng(0).choice(len(rows.counts), FIT_ROWS, replace=False))


def _balanced(fitted: Conditional, margin: Floats, rows: Combinations) -> Conditional:
    """Return the conditional whose column has its margin over all combinations, not only those it was fitted on."""
    have = np.zeros(len(margin))
    for start in range(0, len(rows.counts), BALANCED_TOGETHER):
        here = slice(start, start + BALANCED_TOGETHER)
        weights = fitted.weights([group[here] for group in rows.groups])
        have += np.einsum("r,rc->c", rows.counts[here] / weights.sum(axis=1), weights)
    step = margin * (have.sum() / margin.sum()) / np.maximum(have, LEAST_OF_COLUMN)
    return Conditional(fitted.base * step, fitted.factors)


class _Sums:
    """Adds up the rows of a matrix by group."""

    def __init__(self, groups: SortKey, size: int) -> None:
        self._order = np.argsort(groups.astype(np.uint16) if size <= 1 << 16 else groups, kind="stable")
        ordered = groups[self._order]
        self._starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        self._groups, self._size = ordered[self._starts], size

    def of(self, rows: Weights) -> Floats:
        total = np.zeros((self._size, rows.shape[1]))
        total[self._groups] = np.add.reduceat(rows.take(self._order, axis=0), self._starts, axis=0)
        return total

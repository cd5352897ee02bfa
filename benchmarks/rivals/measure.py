"""How a synthetic table is compared with the real one: the same code for every method, NumPy alone (and POT for W1).

A table is a float matrix with one column per column: numbers as they are, categories as their index in the declared
list, a missing category as the index after the last, a missing number as NaN. Bounds are those of the modules with the
tables. The space is the unit cube with the l_infinity metric: numbers scaled by their bounds, category i of k at
(i + 1/2)/k; a missing category is one more of them, a missing number lies one whole range below the lowest.

    column_w1   exact W1 of each column, mean over the columns
    tv1, tv2    total variation of the cells below: mean over the columns, and over all pairs
    tv3         the same, mean over 100 random triples of columns, or all where there are no more
    sliced      mean W1 over 200 random unit directions, on up to 50 000 rows of each table
    common_values  half the sum of the absolute differences of the shares of a column's common values: those of at least
                1 % of the real rows, at most ten, missing ones not among them; mean over the columns that have any
    w1          exact W1 of 2 000 real and 2 000 synthetic rows, mean of 5 draws
    w1_excess   the same minus W1 of two disjoint real samples of 2 000 rows, draw by draw, with its standard error

A numeric column has 32 equal cells over its bounds; integers with at most 32 values and categories have a cell a value.
The last cell of a column that may be missing is for missing values.
"""

from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

BINS = 32
DRAWS = 5
SAMPLE = 2_000
SLICED = 50_000
DIRECTIONS = 200
COMMON = 0.01
MOST_COMMON = 10
TRIPLES = 100

Bounds = dict[str, tuple[Any, ...]]


def coded(table: Any, bounds: Bounds) -> np.ndarray:
    """Return an Arrow table as a matrix."""
    columns = []
    for name, bound in bounds.items():
        column = table[name].combine_chunks()
        if bound[0] != "category":
            columns.append(column.to_numpy(zero_copy_only=False).astype(float))
            continue
        index = {value: float(i) for i, value in enumerate(bound[1])}
        encoded = column.dictionary_encode()
        # an undeclared value is a KeyError; null has no index, and becomes the one after the last
        codes = np.array([index[value] for value in encoded.dictionary.to_pylist()] + [float(len(index))])
        columns.append(codes[encoded.indices.fill_null(len(codes) - 1).to_numpy(zero_copy_only=False)])
    return np.column_stack(columns)


def count(bound: tuple[Any, ...]) -> int:
    """Return the number of cells of a column."""
    return present(bound) + (bound[-1] is True)


def present(bound: tuple[Any, ...]) -> int:
    """Return the number of cells for values that are not missing."""
    if bound[0] == "category":
        return len(bound[1])
    whole = bound[0] == "integer" and bound[2] - bound[1] < BINS
    return int(bound[2] - bound[1]) + 1 if whole else BINS


def cells(x: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Return the cell of every value."""
    out = np.empty(x.shape, np.int64)
    for j, bound in enumerate(bounds.values()):
        if bound[0] == "category":
            out[:, j] = x[:, j]
            continue
        missing = np.isnan(x[:, j])
        value = np.where(missing, bound[1], x[:, j])
        if bound[0] == "integer":
            # whole numbers in whole arithmetic, so that no value falls beside its cell
            step, wide = (1, 1) if bound[2] - bound[1] < BINS else (BINS, bound[2] - bound[1])
            cell = (np.rint(value).astype(np.int64) - bound[1]) * step // wide
        else:
            cell = np.floor((value - bound[1]) / (bound[2] - bound[1]) * BINS)
        out[:, j] = np.where(missing, present(bound), np.clip(cell, 0, present(bound) - 1))
    return out


def decoded(c: np.ndarray, bounds: Bounds, rng: np.random.Generator) -> np.ndarray:
    """Return a value for every cell, uniform inside the cell; whole numbers stay whole."""
    out = np.empty(c.shape)
    for j, bound in enumerate(bounds.values()):
        cell = c[:, j]
        if bound[0] == "category":
            out[:, j] = cell
            continue
        missing = cell == present(bound)
        cell = np.where(missing, 0, cell)
        if bound[0] == "number":
            out[:, j] = bound[1] + (cell + rng.random(len(cell))) / BINS * (bound[2] - bound[1])
        elif bound[2] - bound[1] < BINS:
            out[:, j] = bound[1] + cell
        else:
            wide = bound[2] - bound[1]
            first = bound[1] + -(-cell * wide // BINS)
            after = np.where(cell == BINS - 1, bound[2] + 1, bound[1] + -(-(cell + 1) * wide // BINS))
            out[:, j] = rng.integers(first, after)
        out[missing, j] = np.nan
    return out


def scaled(x: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Return the rows as points of the unit cube, or beside it where they are missing."""
    out = np.empty(x.shape)
    for j, bound in enumerate(bounds.values()):
        if bound[0] == "category":
            out[:, j] = (x[:, j] + 0.5) / count(bound)
        else:
            share = (x[:, j] - bound[1]) / (bound[2] - bound[1])
            out[:, j] = np.where(np.isnan(share), -1, share)
    return out


def line(x: np.ndarray, y: np.ndarray) -> float:
    """Return the exact W1 distance of two samples on the line."""
    return ordered(np.sort(x), np.sort(y))


def ordered(x: np.ndarray, y: np.ndarray) -> float:
    """Return the exact W1 distance of two samples on the line, each in order."""
    if len(x) == len(y):
        return float(np.mean(np.abs(x - y)))
    ends = np.concatenate((x, y))
    order = np.argsort(ends, kind="stable")  # merges what is in order already
    steps = np.where(order < len(x), 1 / len(x), -1 / len(y))
    return float(np.abs(np.cumsum(steps)[:-1]) @ np.diff(ends[order]))


def directions(width: int) -> np.ndarray:
    """Return random unit directions, the same ones at every call."""
    u = np.random.default_rng(0).normal(size=(DIRECTIONS, width))
    return u / np.linalg.norm(u, axis=1, keepdims=True)


def sliced(x: np.ndarray, y: np.ndarray) -> float:
    """Return the mean W1 distance of the projections on random unit directions."""
    return float(np.mean([line(x @ v, y @ v) for v in directions(x.shape[1])]))


def exact(x: np.ndarray, y: np.ndarray) -> float:
    """Return the exact W1 distance in l_infinity of two small samples."""
    import ot

    cost = np.zeros((len(x), len(y)))
    for a, b in zip(x.T, y.T, strict=True):
        np.maximum(cost, np.abs(a[:, np.newaxis] - b), out=cost)
    return float(ot.emd2(np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)), cost, numItermax=10**7))


def joint(cell: np.ndarray, sizes: list[int], columns: tuple[int, ...]) -> np.ndarray:
    """Return the share of the rows in each cell of some columns together."""
    code, size = np.zeros(len(cell), np.int64), 1
    for j in columns:
        code, size = code * sizes[j] + cell[:, j], size * sizes[j]
    return np.bincount(code, minlength=size) / len(cell)


def triples(width: int) -> list[tuple[int, ...]]:
    """Return random triples of columns, the same ones at every call."""
    every = list(combinations(range(width), 3))
    if len(every) <= TRIPLES:
        return every
    chosen = np.random.default_rng(0).choice(len(every), TRIPLES, replace=False)
    return [every[i] for i in np.sort(chosen)]


def variation(a: np.ndarray, b: np.ndarray, bounds: Bounds, groups: list[tuple[int, ...]]) -> float:
    """Return the mean total variation of two matrices of cells over groups of columns."""
    sizes = [count(bound) for bound in bounds.values()]
    return float(np.mean([np.abs(joint(a, sizes, g) - joint(b, sizes, g)).sum() / 2 for g in groups]))


def variations(a: np.ndarray, b: np.ndarray, bounds: Bounds) -> tuple[float, float]:
    """Return the 1-way and the 2-way total variation of two matrices of cells."""
    one, two = ([*combinations(range(len(bounds)), order)] for order in (1, 2))
    return variation(a, b, bounds, one), variation(a, b, bounds, two)


def common_values(x: np.ndarray, y: np.ndarray, bounds: Bounds) -> dict[str, float]:
    """Return by how much the shares of the common values of x differ in y; nothing if no column has any."""
    apart = []
    for real, other, bound in zip(x.T, y.T, bounds.values(), strict=True):
        missing = len(bound[1]) if bound[0] == "category" else np.nan
        values, counts = np.unique(real[~np.isnan(real) & (real != missing)], return_counts=True)
        common = [i for i in np.argsort(-counts, kind="stable")[:MOST_COMMON] if counts[i] / len(real) >= COMMON]
        if common:
            shares = [np.mean(other == values[i]) for i in common]
            apart.append(np.abs(counts[common] / len(real) - shares).sum() / 2)
    return {"common_values": float(np.mean(apart))} if apart else {}


def some(x: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return that many rows without repetition, or all of them."""
    return x if len(x) <= size else x[np.random.default_rng(seed).choice(len(x), size, replace=False)]


def real_pairs(x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return two disjoint samples of the scaled real rows for each draw."""
    size = min(SAMPLE, len(x) // 2)
    orders = [np.random.default_rng(100 + draw).permutation(len(x)) for draw in range(DRAWS)]
    return [(x[order[:size]], x[order[size : 2 * size]]) for order in orders]


def floors(x: np.ndarray, bounds: Bounds, real: "Real | None" = None) -> dict[str, Any]:
    """Return what no method is asked to beat: a resample of the rows, and disjoint samples for W1."""
    real = real or Real(x, bounds)
    result = real.compare(x[np.random.default_rng(1).integers(0, len(x), len(x))], with_w1=False)
    half = min(SLICED, len(x) // 2)
    order = np.random.default_rng(2).permutation(len(x))
    disjoint = sliced(real.points[order[:half]], real.points[order[half : 2 * half]])
    return {**result, "sliced_disjoint": disjoint, "w1": float(np.mean(real.draws)), "w1_draws": real.draws}


def columns_and_pairs(x: np.ndarray, y: np.ndarray, bounds: Bounds) -> dict[str, float]:
    """Return all measures but the exact W1 of the whole space."""
    return Real(x, bounds).compare(y, with_w1=False)


def compare(x: np.ndarray, y: np.ndarray, bounds: Bounds, floor: dict[str, Any]) -> dict[str, float]:
    """Return every measure of the synthetic table y against the real table x; `floor` is `floors(x, bounds)`."""
    return Real(x, bounds, floor["w1_draws"]).compare(y)


class Real:
    """Real rows, and what depends on them alone: computed once for all methods and runs.

    `draws` are the W1 distances of disjoint real samples, where they are known already.
    """

    def __init__(self, x: np.ndarray, bounds: Bounds, draws: list[float] | None = None) -> None:
        """Take the rows that a method sees."""
        self.rows, self.bounds = x, bounds
        self.cells = cells(x, bounds)
        self.points = scaled(x, bounds)
        self.directions = directions(x.shape[1])
        if draws is not None:
            self.draws = draws

    @cached_property
    def draws(self) -> list[float]:
        return [exact(a, b) for a, b in real_pairs(self.points)]

    @cached_property
    def slices(self) -> list[np.ndarray]:
        some_points = some(self.points, SLICED, 3)
        return [np.sort(some_points @ v) for v in self.directions]

    @cached_property
    def columns(self) -> list[np.ndarray]:
        return [np.sort(column) for column in self.points.T]

    def compare(self, y: np.ndarray, *, with_w1: bool = True) -> dict[str, float]:
        """Return every measure of a synthetic table; the exact W1 of the whole space takes longest."""
        synthetic, v = cells(y, self.bounds), scaled(y, self.bounds)
        one, two = variations(self.cells, synthetic, self.bounds)
        result = {"tv1": one, "tv2": two}
        result |= common_values(self.rows, y, self.bounds)
        result["tv3"] = variation(self.cells, synthetic, self.bounds, triples(len(self.bounds)))
        result["column_w1"] = float(np.mean([ordered(a, np.sort(b)) for a, b in zip(self.columns, v.T, strict=True)]))
        some_points = some(v, SLICED, 4)
        lines = zip(self.slices, self.directions, strict=True)
        result["sliced"] = float(np.mean([ordered(x, np.sort(some_points @ u)) for x, u in lines]))
        return result | (self.excess(v) if with_w1 else {})

    def excess(self, v: np.ndarray) -> dict[str, float]:
        """Return the exact W1 of samples, and by how much it is above that of disjoint real samples."""
        draws = [exact(a, some(v, len(a), 200 + draw)) for draw, (a, _) in enumerate(real_pairs(self.points))]
        excess = np.subtract(draws, self.draws)
        error = float(excess.std(ddof=1) / np.sqrt(DRAWS))
        return {"w1": float(np.mean(draws)), "w1_excess": float(excess.mean()), "w1_excess_error": error}

"""How a synthetic table is compared with the real one: the same code for every method, NumPy alone (and POT for W1).

A table is a float matrix with one column per column: numbers as they are, categories as their index in the declared
list, a missing category as the index after the last. Bounds are those of `wide_tables.BOUNDS`. The space is the unit
cube with the l_infinity metric: numbers scaled by their bounds, category i of k at (i + 1/2)/k.

    column_w1   exact W1 of each column, mean over the columns
    tv1, tv2    total variation of the cells below: mean over the columns, and over all pairs
    sliced      mean W1 over 200 random unit directions, on up to 50 000 rows of each table
    w1          exact W1 of 2 000 real and 2 000 synthetic rows, mean of 5 draws
    w1_excess   the same minus W1 of two disjoint real samples of 2 000 rows, draw by draw, with its standard error

A numeric column has 32 equal cells over its bounds; integers with at most 32 values and categories have a cell a value.
"""

from itertools import combinations
from typing import Any

import numpy as np

BINS = 32
DRAWS = 5
SAMPLE = 2_000
SLICED = 50_000
DIRECTIONS = 200

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
    if bound[0] == "category":
        return len(bound[1]) + (bound[-1] is True)
    whole = bound[0] == "integer" and bound[2] - bound[1] < BINS
    return int(bound[2] - bound[1]) + 1 if whole else BINS


def cells(x: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Return the cell of every value."""
    out = np.empty(x.shape, np.int64)
    for j, bound in enumerate(bounds.values()):
        if bound[0] == "category":
            out[:, j] = x[:, j]
        elif count(bound) < BINS or bound[0] == "integer":
            # whole numbers in whole arithmetic, so that no value falls beside its cell
            step, wide = (1, 1) if bound[2] - bound[1] < BINS else (BINS, bound[2] - bound[1])
            out[:, j] = (np.rint(x[:, j]).astype(np.int64) - bound[1]) * step // wide
        else:
            out[:, j] = np.floor((x[:, j] - bound[1]) / (bound[2] - bound[1]) * BINS)
        np.clip(out[:, j], 0, count(bound) - 1, out=out[:, j])
    return out


def decoded(c: np.ndarray, bounds: Bounds, rng: np.random.Generator) -> np.ndarray:
    """Return a value for every cell, uniform inside the cell; whole numbers stay whole."""
    out = np.empty(c.shape)
    for j, bound in enumerate(bounds.values()):
        cell = c[:, j]
        if bound[0] == "category":
            out[:, j] = cell
        elif bound[0] == "number":
            out[:, j] = bound[1] + (cell + rng.random(len(cell))) / BINS * (bound[2] - bound[1])
        elif bound[2] - bound[1] < BINS:
            out[:, j] = bound[1] + cell
        else:
            wide = bound[2] - bound[1]
            first = bound[1] + -(-cell * wide // BINS)
            after = np.where(cell == BINS - 1, bound[2] + 1, bound[1] + -(-(cell + 1) * wide // BINS))
            out[:, j] = rng.integers(first, after)
    return out


def scaled(x: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Return the rows as points of the unit cube."""
    out = np.empty(x.shape)
    for j, bound in enumerate(bounds.values()):
        if bound[0] == "category":
            out[:, j] = (x[:, j] + 0.5) / count(bound)
        else:
            out[:, j] = (x[:, j] - bound[1]) / (bound[2] - bound[1])
    return out


def line(x: np.ndarray, y: np.ndarray) -> float:
    """Return the exact W1 distance of two samples on the line."""
    x, y = np.sort(x), np.sort(y)
    if len(x) == len(y):
        return float(np.mean(np.abs(x - y)))
    ends = np.sort(np.concatenate((x, y)))
    f = np.searchsorted(x, ends[:-1], "right") / len(x)
    g = np.searchsorted(y, ends[:-1], "right") / len(y)
    return float(np.abs(f - g) @ np.diff(ends))


def sliced(x: np.ndarray, y: np.ndarray) -> float:
    """Return the mean W1 distance of the projections on random unit directions, the same ones at every call."""
    u = np.random.default_rng(0).normal(size=(DIRECTIONS, x.shape[1]))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    return float(np.mean([line(x @ v, y @ v) for v in u]))


def exact(x: np.ndarray, y: np.ndarray) -> float:
    """Return the exact W1 distance in l_infinity of two small samples."""
    import ot

    cost = np.zeros((len(x), len(y)))
    for a, b in zip(x.T, y.T, strict=True):
        np.maximum(cost, np.abs(a[:, np.newaxis] - b), out=cost)
    return float(ot.emd2(np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)), cost, numItermax=10**7))


def variations(a: np.ndarray, b: np.ndarray, bounds: Bounds) -> tuple[float, float]:
    """Return the 1-way and the 2-way total variation of two matrices of cells."""
    sizes = [count(bound) for bound in bounds.values()]

    def distance(x: np.ndarray, y: np.ndarray, size: int) -> float:
        f, g = (np.bincount(z, minlength=size) / len(z) for z in (x, y))
        return float(np.abs(f - g).sum() / 2)

    one = [distance(a[:, i], b[:, i], size) for i, size in enumerate(sizes)]
    two = [
        distance(a[:, i] * sizes[j] + a[:, j], b[:, i] * sizes[j] + b[:, j], sizes[i] * sizes[j])
        for i, j in combinations(range(len(sizes)), 2)
    ]
    return float(np.mean(one)), float(np.mean(two))


def some(x: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return that many rows without repetition, or all of them."""
    return x if len(x) <= size else x[np.random.default_rng(seed).choice(len(x), size, replace=False)]


def real_pairs(x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return two disjoint samples of the scaled real rows for each draw."""
    size = min(SAMPLE, len(x) // 2)
    orders = [np.random.default_rng(100 + draw).permutation(len(x)) for draw in range(DRAWS)]
    return [(x[order[:size]], x[order[size : 2 * size]]) for order in orders]


def floors(x: np.ndarray, bounds: Bounds) -> dict[str, Any]:
    """Return what no method is asked to beat: a resample of the rows, and disjoint samples for W1."""
    y = x[np.random.default_rng(1).integers(0, len(x), len(x))]
    result = columns_and_pairs(x, y, bounds)
    u = scaled(x, bounds)
    half = min(SLICED, len(u) // 2)
    order = np.random.default_rng(2).permutation(len(u))
    result["sliced_disjoint"] = sliced(u[order[:half]], u[order[half : 2 * half]])
    draws = [exact(a, b) for a, b in real_pairs(u)]
    return {**result, "w1": float(np.mean(draws)), "w1_draws": draws}


def columns_and_pairs(x: np.ndarray, y: np.ndarray, bounds: Bounds) -> dict[str, Any]:
    """Return all measures but the exact W1 of the whole space."""
    one, two = variations(cells(x, bounds), cells(y, bounds), bounds)
    u, v = scaled(x, bounds), scaled(y, bounds)
    column = float(np.mean([line(a, b) for a, b in zip(u.T, v.T, strict=True)]))
    return {"tv1": one, "tv2": two, "column_w1": column, "sliced": sliced(some(u, SLICED, 3), some(v, SLICED, 4))}


def compare(x: np.ndarray, y: np.ndarray, bounds: Bounds, floor: dict[str, Any]) -> dict[str, float]:
    """Return every measure of the synthetic table y against the real table x; `floor` is `floors(x, bounds)`."""
    result = columns_and_pairs(x, y, bounds)
    u, v = scaled(x, bounds), scaled(y, bounds)
    draws = [exact(a, some(v, len(a), 200 + draw)) for draw, (a, _) in enumerate(real_pairs(u))]
    excess = np.subtract(draws, floor["w1_draws"])
    error = float(excess.std(ddof=1) / np.sqrt(DRAWS))
    return {**result, "w1": float(np.mean(draws)), "w1_excess": float(excess.mean()), "w1_excess_error": error}

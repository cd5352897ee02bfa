"""Tables of pairs from noisy counts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import examples
from privmeasure.model.pairs import Pair, pair_table, rake, shrink_matrix, simplex


def margins(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return table.sum(axis=1), table.sum(axis=0)


@pytest.fixture
def dependent() -> np.ndarray:
    """A table with a strong dependence, of rank 3."""
    rng = np.random.default_rng(1)
    factors = rng.dirichlet(np.full(40, 0.6), 3), rng.dirichlet(np.full(30, 0.6), 3)
    return np.rint(100_000 * np.einsum("ki,kj->ij", *factors) / 3)


def test_less_noise_than_measured(dependent: np.ndarray) -> None:
    rng, scale = np.random.default_rng(2), 30
    noise = rng.geometric(-np.expm1(-1 / scale), (2, *dependent.shape))
    noisy = (dependent + noise[0] - noise[1]).astype(np.int64)
    pair = Pair(0, 1, np.arange(40), np.arange(30), noisy, Fraction(scale))
    table = pair_table(pair, *margins(dependent), dependent.sum())
    assert (table >= 0).all()
    for have, want in zip(margins(table), margins(dependent), strict=True):
        assert np.abs(have - want).max() < 1e-3 * dependent.sum()
    assert np.abs(table - dependent).sum() < 0.5 * np.abs(noisy - dependent).sum()
    independent = np.outer(*margins(dependent)) / dependent.sum()
    assert np.abs(table - dependent).sum() < 0.5 * np.abs(independent - dependent).sum()


def test_a_table_of_few_cells_is_taken_as_one() -> None:
    """A column that determines the other: singular values keep noise in every cell, the nearest masses do not."""
    rng, scale = np.random.default_rng(4), 8
    true = np.zeros((200, 30))
    true[np.arange(200), rng.integers(0, 30, 200)] = rng.geometric(0.01, 200)
    noise = rng.geometric(-np.expm1(-1 / scale), (2, *true.shape))
    noisy = (true + noise[0] - noise[1]).astype(np.int64)
    pair = Pair(0, 1, np.arange(200), np.arange(30), noisy, Fraction(scale))
    table = pair_table(pair, *margins(true), true.sum())
    independent = np.outer(*margins(true)) / true.sum()
    smooth = independent + shrink_matrix(noisy - independent, 0.7 * scale * np.sqrt(2))
    assert np.abs(table - true).sum() < 0.8 * np.abs(simplex(smooth.ravel(), true.sum()) - true.ravel()).sum()
    assert np.abs(table - true).sum() < 0.3 * true.sum()


def test_groups_of_rank_cells() -> None:
    pair = Pair(0, 1, np.array([0, 0, 1]), np.array([0, 1]), np.array([[40, 20], [0, 40]]), Fraction(1, 100))
    table = pair_table(pair, np.array([30.0, 30.0, 40.0]), np.array([40.0, 60.0]), 100.0)
    assert table.shape == (2, 2)
    assert np.allclose(table, [[40, 20], [0, 40]], atol=0.5)


def test_only_noise_is_independence() -> None:
    rng = np.random.default_rng(3)
    noisy = np.rint(rng.laplace(0, 50, (20, 20)) + 100).astype(np.int64)
    pair = Pair(0, 1, np.arange(20), np.arange(20), noisy, Fraction(80))
    flat = np.full(20, 2000.0)
    assert np.allclose(pair_table(pair, flat, flat, 40_000.0), 100)


def test_empty_rows_and_no_mass() -> None:
    pair = Pair(0, 1, np.arange(2), np.arange(2), np.array([[5, -900], [-900, -900]]), Fraction(1, 100))
    table = pair_table(pair, np.array([3.0, 7.0]), np.array([5.0, 5.0]), 10.0)
    assert np.isfinite(table).all()
    assert table.sum() == pytest.approx(10)


def test_margins_are_reached_where_noise_emptied_cells() -> None:
    """Two columns that look like one another, but have other margins: without the cells beside the diagonal, no way."""
    rows, columns = np.array([70.0, 3.0]), np.array([35.0, 38.0])
    pair = Pair(0, 1, np.arange(2), np.arange(2), np.array([[60, -9], [-9, 20]]), Fraction(1, 100))
    table = pair_table(pair, rows, columns, 73.0)
    assert np.abs(table.sum(axis=1) - rows).max() < 0.1
    assert np.abs(table.sum(axis=0) - columns).max() < 0.1


@pytest.mark.parametrize("shape", [(8, 20), (64, 64), (64, 40), (30, 64), (1, 9)])
def test_shrinkage_is_that_of_the_singular_values(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    matrix = 10 * rng.standard_normal(shape)
    for size in (900, 200, 90, 60):
        matrix += size * np.outer(rng.standard_normal(shape[0]), rng.standard_normal(shape[1])) / np.sqrt(min(shape))
    few, many = sorted(shape)
    if few == 1:
        assert np.array_equal(shrink_matrix(matrix, 10.0), matrix)
        return
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    ratio, unit = few / many, 10 * np.sqrt(many)
    y = s / unit
    new = np.where(y > 1 + np.sqrt(ratio), np.sqrt(np.maximum((y**2 - ratio - 1) ** 2 - 4 * ratio, 0)) / y, 0) * unit
    assert np.abs(shrink_matrix(matrix, 10.0) - (u * new) @ v).max() < 1e-3 * np.abs(matrix).max()


def test_many_dimensions_above_the_noise() -> None:
    """Columns that are nearly equal: more singular values stand out than the first look takes in."""
    table = np.diag(np.linspace(300.0, 1000.0, 64))[:, :40]
    table[:, 20] += 500
    assert np.abs(shrink_matrix(table, 0.1) - table).max() < 0.1


@examples(30, 100)
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20), st.floats(0.01, 100))
def test_simplex_is_the_nearest_point(values: list[float], total: float) -> None:
    y = np.array(values)
    x = simplex(y, total)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(total)
    rng = np.random.default_rng(0)
    for other in rng.dirichlet(np.ones(len(y)), 20) * total:  # (y - x).(z - x) <= 0 for every z
        assert (y - x) @ (other - x) <= 1e-6 * (1 + np.abs(y).max()) * total


def test_raking_keeps_zeros() -> None:
    table = rake(np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([3.0, 7.0]), np.array([5.0, 5.0]))
    assert table[0, 0] == 0
    assert np.allclose(table.sum(axis=0), 5, atol=1e-3)

"""One column from its own tree and the margins of tables: least squares, and its slow twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privmeasure.domains import Box
from privmeasure.estimates.consistency import distribute, signed
from privmeasure.estimates.joint import Margin, joint_leaves, splits
from privmeasure.estimates.linear import level_variances
from privmeasure.estimates.shrinkage import shrink_inside


def by_hand(noisy: dict, measured: dict, exists: np.ndarray, margins: list[Margin]) -> np.ndarray:
    """The same by one dense least-squares problem."""
    depth, leaves = max(noisy), np.flatnonzero(exists)
    rows, values = [], []
    for level, counts in noisy.items():
        for cell in np.unique(leaves >> (depth - level)):
            rows.append((leaves >> (depth - level) == cell) / np.sqrt(measured[level]))
            values.append(counts[cell] / np.sqrt(measured[level]))
    for margin in margins:
        for group, total in enumerate(margin.sums):
            rows.append((margin.groups[leaves] == group) / np.sqrt(margin.variance))
            values.append(total / np.sqrt(margin.variance))
    result = np.zeros(len(exists))
    result[leaves] = np.linalg.lstsq(np.array(rows, float), np.array(values), rcond=None)[0]
    return result


@given(st.integers(0, 2**32 - 1))
def test_it_is_the_least_squares_solution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    depth = int(rng.integers(1, 7))
    exists = rng.random(1 << depth) < 0.8
    exists[rng.integers(len(exists))] = True
    levels = {depth, *rng.integers(0, depth, 2).tolist()}
    noisy = {level: rng.normal(0, 50, 1 << level) for level in levels}
    measured = {level: float(rng.uniform(0.5, 400)) for level in levels}
    margins = []
    for _ in range(int(rng.integers(0, 4))):
        count = int(rng.integers(1, 9))
        groups = rng.integers(0, count, len(exists))
        margins.append(Margin(groups, rng.normal(0, 50, count), float(rng.uniform(0.5, 400))))
    found = joint_leaves(noisy, measured, exists, margins)
    assert found == pytest.approx(by_hand(noisy, measured, exists, margins), abs=1e-2)
    assert (found[~exists] == 0).all()


def test_splits_give_the_leaves_back() -> None:
    leaves = np.array([3.0, 5, 0, 2, 7, 1, 1, 1])
    assert distribute(np.array([20]), splits(leaves), signed).tolist() == leaves.tolist()


def line_w1(mass: np.ndarray, points: np.ndarray) -> float:
    grid = np.linspace(0, 1, 4097)
    released = np.interp(
        grid, np.arange(len(mass) + 1) / len(mass), np.concatenate([[0], np.cumsum(mass)]) / mass.sum()
    )
    return float(np.abs(released - np.searchsorted(np.sort(points), grid, "right") / len(points)).mean())


def noisy_column(points: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The released cells of a column without and with shrinkage: levels 5 and 9, scales 24 and 96."""
    rng, depth, scales = np.random.default_rng(seed), 9, {5: 24.0, 9: 96.0}
    true = np.bincount((points * 512).astype(int), minlength=512)
    noisy = {j: true.reshape(1 << j, -1).sum(axis=1) + rng.laplace(0, s, 1 << j) for j, s in scales.items()}
    measured = {j: 2 * s * s for j, s in scales.items()}
    total, prepared = np.array([len(points)]), splits(joint_leaves(noisy, measured, np.ones(512, bool), []))
    plain = distribute(total, list(prepared), signed)
    upper = distribute(total, list(prepared[:5]), signed)
    variances = [2.0 * float(v) for v in level_variances(measured, depth, blue=True)[1:]]
    shrunk = shrink_inside(prepared, variances, upper, Box([(0, 1)]))
    return plain, distribute(total, shrunk, signed)


@pytest.mark.parametrize(
    ("shape", "most"), [("spread", 0.6), ("two places", 1.1), ("prices", 0.95), ("round numbers", 1.15)]
)
def test_spread_columns_lose_the_noise_of_fine_cells_and_others_keep_their_places(shape: str, most: float) -> None:
    """Mean W1 over 8 seeds that are fixed: the numbers are always the same."""
    rng, n = np.random.default_rng(5), 52_000
    points = {
        "spread": rng.beta(2, 2, n),
        "two places": np.where(rng.random(n) < 0.5, rng.normal(0.6, 0.01, n), rng.normal(0.3, 0.003, n)),
        "prices": np.minimum(rng.lognormal(-3, 0.9, n), 0.999),
        "round numbers": np.round(np.minimum(rng.lognormal(-2.5, 0.6, n), 0.9) * 20) / 20,
    }[shape]
    errors = np.array([[line_w1(mass, points) for mass in noisy_column(points, seed)] for seed in range(8)])
    plain, shrunk = errors.mean(axis=0)
    assert shrunk < most * plain


def test_what_shrinks_inside_a_cell_leaves_coarse_cells_alone() -> None:
    rng = np.random.default_rng(1)
    prepared = splits(rng.normal(100, 30, 64))
    upper = distribute(np.array([6400]), list(prepared[:3]), signed)
    shrunk = shrink_inside(prepared, [900.0] * 6, upper, Box([(0, 1)]))
    assert all((a == b).all() for (a,), (b,) in zip(prepared[:3], shrunk[:3], strict=True))
    assert sum(float(np.abs(s).sum()) for (s,) in shrunk[3:]) < sum(float(np.abs(p).sum()) for (p,) in prepared[3:])

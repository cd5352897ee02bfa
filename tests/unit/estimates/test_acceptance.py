"""A release is kept near what was measured, else the closest measure takes its place."""

import numpy as np
import pytest

from privmeasure.domains import Box
from privmeasure.estimates.acceptance import (
    closest_rows,
    distance_from_raw,
    keep_or_replace,
    level_of_search,
    side_of_cut,
    winding_order,
)
from privmeasure.transport.cells import cell_norm
from privmeasure.transport.haar import haar_differences, haar_norm

CUBES = [(Box([(0, 1)]), 7), (Box([(0, 1)] * 2), 8), (Box([(0, 1)] * 3), 6), (Box([(0, 1), (0, 9)], [1, 0.5]), 7)]


def example(level: int, seed: int, scale: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.multinomial(3000, rng.dirichlet(np.full(1 << level, 0.2)))
    noise = rng.laplace(scale=scale, size=1 << level)
    return truth, truth + noise - noise.mean()


@pytest.mark.parametrize(("box", "level"), CUBES, ids=str)
def test_the_winding_order_goes_from_neighbour_to_neighbour(box: Box, level: int) -> None:
    order = winding_order(box, level)
    assert sorted(order) == list(range(1 << level))
    centres = box.centre(order.astype(np.uint64), level)
    assert box.distance(centres[1:], centres[:-1]).max() <= box.diameter(level) * (1 + 1e-12)


@pytest.mark.parametrize(("box", "level"), CUBES, ids=str)
def test_the_closest_rows_are_as_near_as_the_truth_but_for_rounding(box: Box, level: int) -> None:
    norm = cell_norm(box, level)
    for seed in range(3):
        truth, raw = example(level, seed)
        rows = closest_rows(box, raw, 3000, level)
        assert rows.min() >= 0
        assert rows.sum() == 3000
        rounding = (1 + 2 / 64) * ((1 << level) - 1) * box.diameter(level) / 2
        slack = len(raw) / 2 * box.diameter(0) / 2**20  # of the norm, which is an upper bound
        assert norm(rows - raw) <= norm(truth - raw) + rounding + slack


@pytest.mark.parametrize(("box", "level"), CUBES, ids=str)
def test_what_is_near_is_kept_and_what_is_far_is_replaced(box: Box, level: int) -> None:
    truth, raw = example(level, 5)
    differences = haar_differences(raw)
    corner = np.zeros_like(truth)
    corner[0] = 3000
    far, near = (distance_from_raw(box, mass, differences, level) for mass in (corner, truth))
    assert near == pytest.approx(haar_norm(box, haar_differences(truth - raw)))
    assert keep_or_replace(box, truth, 3000, differences, near * 1.001, level) is truth
    replaced = keep_or_replace(box, corner, 3000, differences, near, level)
    assert far > near
    assert replaced.min() >= 0
    assert replaced.sum() == 3000
    assert distance_from_raw(box, replaced, differences, level) < far / 2
    assert np.array_equal(replaced, closest_rows(box, raw, 3000, level))


def test_below_the_level_of_the_search_signed_differences_split() -> None:
    box, depth = Box([(0, 1), (0, 1)], [1, 0.3]), 13  # unequal axes: pairs of cells are looked at, at most 2^11
    level = level_of_search(box, depth)
    assert level == 11
    truth, raw = example(depth, 7, scale=0.5)
    differences = haar_differences(raw)
    corner = np.zeros_like(truth)
    corner[0] = 3000
    replaced = keep_or_replace(box, corner, 3000, differences, 1.0, depth)
    coarse = closest_rows(box, raw.reshape(-1, 4).sum(axis=1), 3000, level)
    assert np.array_equal(replaced.reshape(-1, 4).sum(axis=1), coarse)
    astray = [own - e for own, e in zip(haar_differences(replaced), differences, strict=True)]
    fine = sum(side_of_cut(box, j) / 4 * np.abs(astray[j - 1]).sum() for j in (12, 13))  # one by one
    assert distance_from_raw(box, replaced, differences, depth) == pytest.approx(haar_norm(box, astray[:11]) + fine)


def test_sides() -> None:
    box = Box([(0, 1)] * 2, [1, 0.3])
    assert [side_of_cut(box, level) for level in (1, 2, 3, 4)] == [1, 0.5, 0.3, 0.25]

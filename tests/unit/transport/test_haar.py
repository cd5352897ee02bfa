"""The flow of a signed mass along the cuts of a box."""

import numpy as np
import pytest

from privmeasure.domains import Box
from privmeasure.transport.haar import haar_differences, haar_leaves, haar_norm


def test_leaves_and_differences_are_inverse() -> None:
    mass = np.random.default_rng(0).normal(size=64)
    assert np.allclose(haar_leaves(mass.sum(), haar_differences(mass)), mass)


@pytest.mark.parametrize("level", [1, 2, 5])
def test_on_a_line_it_is_the_area_between_distribution_functions(level: int) -> None:
    rng = np.random.default_rng(level)
    for weight in (1.0, 3.0):
        mass = rng.normal(size=1 << level)
        mass -= mass.mean()
        area = np.abs(np.cumsum(mass)).sum() * weight / len(mass)
        assert haar_norm(Box([(0, 1)], [weight]), haar_differences(mass)) == pytest.approx(area)


@pytest.mark.parametrize(
    ("box", "level"),
    [(Box([(0, 1)] * 2), 6), (Box([(0, 1), (5, 7)], [1, 0.3]), 5), (Box([(0, 1)] * 3), 6), (Box([(0, 1)] * 7), 8)],
    ids=str,
)
def test_no_lipschitz_function_sees_more(box: Box, level: int) -> None:
    rng = np.random.default_rng(1)
    cells = np.arange(1 << level, dtype=np.uint64)
    points = box.centre(cells, level)
    largest = 0.0
    for _ in range(20):
        mass = rng.laplace(size=len(cells))
        mass -= mass.mean()
        norm = haar_norm(box, haar_differences(mass))
        assert norm == pytest.approx(haar_norm(box, haar_differences(-mass)))
        # functions that are near the potential of the mass: distances to where it is positive
        for centre in (*points[rng.integers(0, len(cells), 20)], *points[mass > 1.5]):
            integral = float(box.distance(points, np.tile(centre, (len(points), 1))) @ mass)
            assert abs(integral) <= norm * (1 + 1e-12)
            largest = max(largest, abs(integral) / norm)
    assert largest > 0.05  # the functions see something: a norm of a twentieth would be refused


def test_opposite_corners() -> None:
    box = Box([(0, 1)] * 2)
    mass = np.zeros(256)
    mass[0], mass[-1] = 1, -1
    assert 15 / 16 <= haar_norm(box, haar_differences(mass)) <= 2  # one row goes from corner to corner

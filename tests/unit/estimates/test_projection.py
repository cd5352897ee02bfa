"""The space of the cells that a noisy histogram is projected on, how many cells it may have, and the projection."""

from itertools import product

import numpy as np
import pytest

from privmeasure.domains import Box, Categories, Finite, Integers
from privmeasure.errors import ArgumentError
from privmeasure.estimates.acceptance import closest_rows
from privmeasure.estimates.projection import (
    MOST_GRID_CELLS,
    MOST_PAIRED_CELLS,
    _grid_arcs,
    can_project,
    cell_space,
    check_cells,
    most_cells,
    project,
)
from privmeasure.transport import Grid, Line, closest_measure

SPACES = [
    (Box([(0, 1)]), 5),
    (Box([(0, 3), (5, 6)]), 6),
    (Box([(0, 1)] * 2), 7),
    (Box([(0, 1)] * 3), 8),
    (Box([(0, 1), (0, 9)], [1, 0.5]), 5),
    (Integers(0, 20), 5),
    (Categories(11), 4),
]


class Crooked(Box):
    """A box with distances that break the triangle inequality."""

    def distance(self, x, y):
        return super().distance(x, y) ** 2


def distances(space: Finite | Grid | Line) -> np.ndarray:
    """All distances of the points of a space."""
    if isinstance(space, Finite):
        return np.asarray(space.distances)
    if isinstance(space, Line):
        return np.abs(np.subtract.outer(space.positions, space.positions))
    sides = np.ones(len(space.shape)) if space.sides is None else np.array(space.sides)
    points = np.array(list(np.ndindex(space.shape))) * sides
    return np.abs(points[:, np.newaxis] - points).max(axis=2)


def existing_cells(domain, level: int) -> np.ndarray:
    cells = np.arange(1 << level, dtype=np.uint64)
    return cells[domain.exists(cells, level)]


@pytest.mark.parametrize(("domain", "level"), SPACES, ids=str)
def test_the_points_of_the_space_are_as_far_apart_as_the_centres(domain, level: int) -> None:
    cells = existing_cells(domain, level)
    space, place = cell_space(domain, cells, level)
    centres = domain.centre(cells, level)
    true = np.array([domain.distance(np.repeat(one[np.newaxis], len(cells), axis=0), centres) for one in centres])
    assert distances(space)[np.ix_(place, place)] == pytest.approx(true)


def test_a_domain_of_ones_own_without_a_metric_is_refused() -> None:
    domain = Crooked([(0, 1), (0, 1)])
    with pytest.raises(ArgumentError, match="triangle"):
        cell_space(domain, existing_cells(domain, 3), 3)


@pytest.mark.parametrize(
    ("domain", "most"),
    [
        (Box([(0, 1)]), MOST_GRID_CELLS),
        (Integers(0, 10**6), MOST_GRID_CELLS),
        (Box([(0, 1)] * 2), MOST_GRID_CELLS),
        (Box([(0, 1)] * 6), 1 << 13),
        (Box([(0, 1)] * 7), MOST_PAIRED_CELLS),
        (Box([(0, 1), (0, 1)], [1, 0.5]), MOST_PAIRED_CELLS),
        (Categories(10**4), MOST_PAIRED_CELLS),
    ],
    ids=str,
)
def test_the_largest_level_that_can_be_projected(domain, most: int) -> None:
    assert most_cells(domain) == most
    level = most.bit_length() - 1
    check_cells(domain, level)
    assert not any(can_project(domain, beyond) for beyond in range(level + 1, 18) if domain.size(beyond) > most)
    with pytest.raises(ArgumentError, match=rf"level 17 has {domain.size(17)} cells.* at most {most} "):
        check_cells(domain, 17)


@pytest.mark.parametrize("width", [2, 3, 4])
def test_arcs_of_a_grid_are_as_many_as_moves(width: int) -> None:
    """A move goes one cell along fine axes, or one along some coarse axes and up to two along the fine ones."""
    box = Box([(0, 1)] * width)
    for level in range(1, 9):
        cuts = [k for k in box.cuts(level) if k]
        moves = 0
        for move in product(range(-2, 3), repeat=len(cuts)):
            coarse = [abs(s) for s, k in zip(move, cuts, strict=True) if k < max(cuts)]
            fine = [abs(s) for s, k in zip(move, cuts, strict=True) if k == max(cuts)]
            moves += any(move) and max(coarse, default=0) <= 1 and max(fine) <= (2 if any(coarse) else 1)
        assert _grid_arcs(box, level) == moves << level


@pytest.mark.parametrize(("domain", "level"), SPACES, ids=str)
def test_the_projection_is_the_closest_measure_cell_by_cell(domain, level: int) -> None:
    cells, rng = existing_cells(domain, level), np.random.default_rng(level)
    space, place = cell_space(domain, cells, level)
    measure = rng.integers(0, 9, len(cells))
    assert project(space, place, measure, int(measure.sum())).tolist() == measure.tolist()
    noisy = measure + np.rint(rng.laplace(0, 4, len(cells))).astype(np.int64)
    found = project(space, place, noisy, 100)
    assert found.min() >= 0
    assert found.sum() == 100
    on_space = np.zeros_like(noisy)
    on_space[place] = noisy
    assert found.tolist() == closest_measure(on_space, 100, space)[0][place].tolist()


@pytest.mark.parametrize(("box", "level"), [case for case in SPACES if isinstance(case[0], Box)], ids=str)
def test_whole_rows_are_the_closest_rows_to_themselves(box: Box, level: int) -> None:
    rows = np.random.default_rng(3).integers(1, 9, 1 << level)
    assert closest_rows(box, rows.astype(np.float64), int(rows.sum()), level).tolist() == rows.tolist()

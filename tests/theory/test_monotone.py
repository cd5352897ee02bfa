"""More epsilon and more rows never have a larger guarantee: for one tree on any space, and for every column.

On the paths below: where a place or a group beside it is cut one level deeper, the error of a private number of rows,
which every column's guarantee has, may rise (docs/mathematics.md).
"""

import itertools
from fractions import Fraction

import pytest

from privmeasure.domains import Box, Categories, Domain, Integers, Nullable, Product, Sphere
from privmeasure.mechanisms import PMM, ColumnTree
from privmeasure.privacy import Privacy

SPACES: dict[str, Domain] = {
    "a number and a list": Product([Box([(0, 1)]), Categories(5)]),
    "whole numbers": Product([Integers(0, 120), Integers(0, 1000)]),
    "a number or nothing": Nullable(Box([(0, 1)])),
    "places": Sphere(),
    "lists": Product([Categories(20), Categories(7), Categories(2)]),
}
COLUMNS = Product(
    [
        Box([(0, 1)]),
        Nullable(Box([(0, 1)])),
        Integers(0, 120),
        Integers(0, 5000),
        Categories(90),
        Box([(0, 1), (0, 1)]),
        Sphere(),
        Categories(2),
    ]
)
EPSILONS = [Fraction(round(1000 * 0.02 * 1.3**i), 1000) for i in range(22)]
ROWS = [int(300 * 1.5**i) for i in range(20)]
NOTHING = 1 + 1e-9


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("name", SPACES)
def test_the_guarantee_of_one_tree(name, neighbours):
    def guarantee(epsilon, rows):
        return PMM(SPACES[name], Privacy(epsilon, neighbours)).plan(rows).guarantee

    for path in ([guarantee(epsilon, 10_000) for epsilon in EPSILONS], [guarantee(1, rows) for rows in ROWS]):
        assert all(after <= before * NOTHING for before, after in itertools.pairwise(path))
        assert path[-1] < path[0] / 3


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_guarantees_of_columns(neighbours):
    def guarantees(epsilon, rows):
        return [column.guarantee for column in ColumnTree(COLUMNS, Privacy(epsilon, neighbours)).plan(rows).columns]

    for path in ([guarantees(epsilon, 30_000) for epsilon in EPSILONS], [guarantees(1, rows) for rows in ROWS]):
        for before, after in itertools.pairwise(path):
            assert all(b <= a * NOTHING for a, b in zip(before, after, strict=True))


def test_what_is_stated_is_not_below_what_is_proved():
    """T8 leaves the last estimate some room, whatever the number of rows that was released."""
    for rows in ROWS:
        for column in ColumnTree(COLUMNS, Privacy(Fraction(1, 3), "add-remove")).plan(rows).columns:
            values = {bound.name: bound.value for bound in column.bounds}
            assert values["T8"] > values["T2"]

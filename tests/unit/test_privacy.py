"""A privacy guarantee that is derived from another one keeps everything that was not asked to change."""

from dataclasses import asdict
from fractions import Fraction

import pytest

from privmeasure.privacy import Privacy

GIVEN = [
    Privacy(2, "replace", rows_per_person=5, delta=1e-6),
    Privacy("1/3", "add-remove", rows_per_person=3, delta=1e-6),
    Privacy(2, "add-remove", rows_per_person=5, person="id"),
]


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_without_its_delta_a_guarantee_protects_as_many_rows_of_a_person(given):
    assert asdict(given.pure) == asdict(given) | {"delta": 0}
    assert given.pure.sensitivity == given.sensitivity


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_at_another_epsilon_everything_else_is_the_same(given):
    assert asdict(given.at("1/7")) == asdict(given) | {"epsilon": Fraction(1, 7)}

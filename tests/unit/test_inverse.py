"""From a wanted accuracy back to epsilon or rows."""

from fractions import Fraction

import pytest

import privmeasure as pm
from privmeasure.errors import ArgumentError
from privmeasure.inverse import EPSILONS, ROWS, smallest


@pytest.mark.parametrize("candidates", [EPSILONS, ROWS])
def test_candidates_are_sorted_and_distinct(candidates):
    assert candidates == sorted(set(candidates))
    assert min(EPSILONS) == Fraction(1, 1000)
    assert max(EPSILONS) == 50


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("d", "w1", "rows"), [(1, 0.01, 50_000), (1, 0.001, 10**6), (2, 0.05, 50_000), (3, 0.1, 10**6)]
)
def test_epsilon_for_is_enough_and_less_is_not(neighbours, d, w1, rows):
    box = pm.Box([(0, 1)] * d)
    synth = pm.Synthesizer(box, epsilon=1, neighbours=neighbours)
    epsilon = synth.epsilon_for(w1=w1, rows=rows)
    plans = [
        pm.Synthesizer(box, epsilon=epsilon * f, neighbours=neighbours).plan(rows) for f in (1, 0.9, 0.7, 0.5, 0.2)
    ]
    assert plans[0].guarantee <= w1
    assert all(plan.guarantee > w1 for plan in plans[1:])


def test_rows_for_is_enough_and_fewer_are_not():
    synth = pm.Synthesizer(pm.Box([(0, 1)] * 2), epsilon=1, neighbours="replace")
    rows = synth.rows_for(w1=0.05)
    assert synth.plan(rows).guarantee <= 0.05
    assert all(synth.plan(rows * tenths // 10).guarantee > 0.05 for tenths in (9, 7, 5, 2))
    assert synth.rows_for(w1=0.05, epsilon=4) < rows


def test_a_public_number_of_rows_does_not_get_in_the_way():
    synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace", rows=100)
    assert synth.rows_for(w1=0.001) > 1000


def test_guarantees_fall_with_epsilon():
    synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace")
    plans = synth.guarantees(10_000)
    assert [float(plan.privacy.epsilon) for plan in plans] == [0.1, 0.2, 0.5, 1, 2, 5, 10]
    fixed = [
        plan.guarantee
        for plan in pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace", depth=9).guarantees(10_000)
    ]
    assert fixed == sorted(fixed, reverse=True)
    assert plans[-1].guarantee < plans[0].guarantee / 10
    assert synth.plan(10_000) in plans


def test_what_cannot_be_had_is_said():
    synth = pm.Synthesizer(pm.Box([(0, 1)] * 10), epsilon=1, neighbours="replace")
    with pytest.raises(ArgumentError, match="No epsilon up to 50"):
        synth.epsilon_for(w1=1e-6, rows=100)
    with pytest.raises(ArgumentError, match="No rows"):
        synth.rows_for(w1=1e-9)
    for wrong in (0, -1, float("nan"), "small", None, True):
        with pytest.raises(ArgumentError, match="w1 must be"):
            synth.epsilon_for(w1=wrong, rows=100)


def test_a_bumpy_guarantee_still_gives_one_that_is_enough():
    bumpy = {1: 9.0, 2: 1.0, 3: 9.0, 4: 9.0, 5: 1.0}
    assert smallest([1, 2, 3, 4, 5], bumpy.__getitem__, 2.0, "rows") == 2

"""From a wanted accuracy back to epsilon or rows."""

import math
from fractions import Fraction

import numpy as np
import pytest

import privmeasure as pm
from depth import some
from privmeasure.domains import column_units
from privmeasure.errors import ArgumentError
from privmeasure.plans.inverse import EPSILONS, ROWS, smallest


@pytest.mark.parametrize("candidates", [EPSILONS, ROWS])
def test_candidates_are_sorted_and_distinct(candidates):
    assert candidates == sorted(set(candidates))
    assert min(EPSILONS) == Fraction(1, 1000)
    assert max(EPSILONS) == 50


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@some(("d", "w1", "rows"), 1, [(2, 0.05, 50_000), (1, 0.01, 50_000), (1, 0.001, 10**6), (3, 0.1, 10**6)])
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


def test_error_bars_are_in_the_units_of_the_columns():
    x = np.random.default_rng(0).normal((30, 0.2), (5, 0.1), (5_000, 2))
    release = pm.Synthesizer(pm.Box([(0, 100), (0, 1)]), epsilon=1, neighbours="replace").fit(x).release_
    bars = [release.error_bar(column=i) for i in (0, 1)]
    assert bars == pytest.approx([100 * release.plan.guarantee, release.plan.guarantee])
    clipped = np.clip(x, 0, (100, 1))
    assert (np.abs(release.sample(seed=1).mean(axis=0) - clipped.mean(axis=0)) <= bars).all()
    assert release.error_bar(lipschitz=3) == pytest.approx(3 * release.plan.guarantee)


def test_columns_that_jump_have_no_error_bar():
    domain = pm.Product([pm.Integers(0, 10), pm.Circle(24.0), pm.Categories(3), pm.Nullable(pm.Box([(0, 1)]))])
    assert column_units(domain) == (10.0, math.inf, math.inf, math.inf)


@pytest.mark.parametrize(
    "wrong", [{}, {"lipschitz": 1, "column": 0}, {"lipschitz": -1}, {"lipschitz": "a"}, {"column": 5}]
)
def test_wrong_error_bars(wrong):
    release = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace").fit(np.zeros(9)).release_
    with pytest.raises(ArgumentError):
        release.error_bar(**wrong)


@pytest.mark.parametrize("domain", [pm.Box([(0, 5), (1, 2)], weights=[1, 3]), pm.Integers(-4, 9)])
def test_no_column_changes_faster_than_its_unit(domain):
    rng = np.random.default_rng(1)
    cells = np.zeros(4000, np.uint64)
    x, y = (domain.draw(cells, 0, rng) for _ in range(2))
    assert (np.abs(x - y) <= domain.distance(x, y)[:, None] * np.array(column_units(domain)) + 1e-9).all()

"""The flat mechanism: the simulated bound by hand, whole numbers, words of plans, and what a release carries."""

import math

import numpy as np
import pytest

from privmeasure.domains import Box, Categories
from privmeasure.mechanisms import PSMM
from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import GAUSSIAN
from privmeasure.plans.compare import flat_distance
from privmeasure.plans.complexity import diameter, discrete_norms
from privmeasure.plans.laws import REFERENCE_ROWS
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource

SQUARE = Box([(0, 1)] * 2)
RELATIONS = pytest.mark.parametrize("relation", ["replace", "add-remove"])


@RELATIONS
@pytest.mark.parametrize("options", [{"depth": 4}, {"rows": 2000}, {}])
def test_the_simulated_bound_is_twice_the_mean_norm_of_the_noise_and_the_cells(relation, options):
    """Where the total is not the sum of the noisy counts, what the noise adds to it moves half the diameter less."""
    rows, draws, mechanism = 2000, 12, PSMM(SQUARE, Privacy(1, relation), **options)
    plan = mechanism.plan(rows)
    space, _ = mechanism._space(plan.depth)
    norms, totals = discrete_norms(space, law_of(plan.law, plan.scales[-1]), draws, Key.insecure(4))
    root = 0.0
    if relation == "replace" or 0 in plan.levels:
        norms = norms - diameter(space) / 2 * np.abs(totals)
        root = SQUARE.diameter(0) / 2 * float(plan.scales[0]) if 0 in plan.levels else 0.0
    value, error = mechanism.simulated_bound(rows, draws=draws, seed=4)
    assert value == pytest.approx(2 * (norms.mean() + root) / rows + flat_distance(SQUARE, plan.depth, "uniform"))
    assert error == pytest.approx(2 * norms.std(ddof=1) / math.sqrt(draws) / rows)


def test_a_plan_with_simulated_noise_says_its_value_and_error():
    mechanism = PSMM(SQUARE, Privacy(1, "replace"), depth=3)
    value, error = mechanism.simulated_bound(500, draws=8, seed=0)
    bound = mechanism.plan(500, simulate=8).bounds[-1]
    assert (bound.name, bound.applies) == ("simulated", True)
    assert bound.value == value + 3 * error
    assert f"noise simulated 8 times: {value:.4g} and 3 standard errors of {error:.2g}" == bound.about


def test_a_number_of_rows_is_public_only_where_it_was_given():
    privacy = Privacy(1, "replace")
    assert PSMM(SQUARE, privacy).plan(50).rows_are == "assumed"
    assert PSMM(SQUARE, privacy, rows=50).plan().rows_are == "public"
    assert PSMM(SQUARE, privacy, rows=50).plan(51).rows_are == "assumed"


def test_whole_numbers_of_numpy_become_those_of_python():
    mechanism = PSMM(SQUARE, Privacy(1, "replace"), depth=np.int64(0), rows=np.int32(7))
    assert [type(value) for value in (mechanism.depth, mechanism.rows)] == [int] * 2


@RELATIONS
@pytest.mark.parametrize("options", [{"depth": 4}, {"rows": 300}, {}])
@pytest.mark.parametrize("domain", [SQUARE, Categories(11)], ids=repr)
def test_what_a_release_carries(domain, options, relation):
    told, points = [], np.random.default_rng(1).random((300, domain.width)) * 9
    mechanism = PSMM(domain, Privacy(1, relation), placement="centre", **options)
    key = Key.insecure(2)
    measure = mechanism.release(
        ArraySource(points, width=domain.width), key, lambda step, share: told.append((step, share))
    )
    level = measure.plan.depth
    assert measure.recipe == {"schedule": "flat", "inference": "none", "rule": "closest", "placement": "centre"}
    assert (measure.placement, measure.private) == ("centre", False)
    assert measure.plan.rows_are == ("public" if relation == "replace" else "released")
    assert measure.plan.memory_bytes == 64 * domain.size(level)
    assert measure.plan.bounds[0].about == "closest measure; noise bounded along axes or the tree"
    assert told[-1] == ("release", 1.0)
    assert [*measure.noisy] == [level]
    assert len(measure.noisy[level]) == 1 << level
    there = domain.exists(np.arange(1 << level, dtype=np.uint64), level)
    assert not measure.noisy[level][~there].any()
    if relation == "add-remove" and 0 not in measure.plan.levels:
        assert measure.total == max(1, int(measure.noisy[level].sum()))


@RELATIONS
def test_the_law_is_that_of_the_smaller_bound(relation):
    """One histogram gains by Gaussian noise only if a person changes many of its cells."""
    for people, depth in ((1, None), (50, None), (50, 6), (1, 6)):
        asked = Privacy(1, relation, people, delta=1e-6)
        chosen = PSMM(SQUARE, asked, depth=depth)
        pure = PSMM(SQUARE, asked.pure, depth=depth)
        assert (chosen.law == GAUSSIAN) == bool(chosen.privacy.delta) == chosen.why.startswith("Gaussian")
        assert chosen.plan(100_000).best.value <= pure.plan(100_000).best.value
        assert depth is None or pure._price(pure.privacy) == pure.plan(REFERENCE_ROWS).bounds[0].value

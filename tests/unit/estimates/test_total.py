"""The number of rows from all measured levels, and that what follows keeps it."""

import numpy as np
import pytest

from privmeasure.domains import Box, Integers
from privmeasure.estimates.acceptance import keep_or_replace
from privmeasure.estimates.consistency import signed
from privmeasure.estimates.linear import CELLS_TOGETHER, ancestors, existing, total_coefficients, total_estimate
from privmeasure.estimates.passes import up_pass
from privmeasure.estimates.shrinkage import shrunk_leaves


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_coefficients_weigh_counts_into_the_best_estimate_of_the_total(seed: int, even: bool) -> None:
    rng, depth = np.random.default_rng(seed), 5
    there = np.ones(1 << depth, bool) if even else rng.random(1 << depth) < 0.6
    there[0] = True
    exists = ancestors(there, depth)
    measured = {level: float(rng.uniform(0.5, 400)) for level in {*rng.integers(0, depth, 2).tolist(), depth}}
    noisy = {level: np.where(exists[level], rng.integers(-9, 99, 1 << level), 0) for level in measured}
    weights = total_coefficients(measured, depth, None if even else exists)
    assert set(weights) == set(measured)
    assert {len(weights[level]) for level in measured} == ({1} if even else {1 << level for level in measured})
    estimate = sum(float((weights[level] * noisy[level]).sum()) for level in measured)
    assert estimate == pytest.approx(total_estimate(noisy, measured, depth, there)[0])


def test_masses_sum_to_the_total_that_was_released_and_not_to_what_the_cells_say() -> None:
    """A total of 1 where the noisy counts are below 0."""
    noisy = {0: np.array([-40]), 3: np.full(8, -5)}
    for domain in (Box([(0, 1)]), Integers(0, 5)):
        mass = shrunk_leaves(domain, noisy, {0: 9.0, 3: 4.0}, 1, 3)
        assert mass.sum() == 1


def test_masses_that_are_too_far_from_what_was_measured_give_way() -> None:
    box, depth, rng = Box([(0, 1)] * 2), 6, np.random.default_rng(2)
    noisy = {depth: rng.integers(-20, 40, 1 << depth)}
    measured, total = {depth: 200.0}, int(noisy[depth].sum())
    shrunk = shrunk_leaves(box, noisy, measured, total, depth)
    differences = [e for (e,) in up_pass(dict(noisy), measured, depth, signed, blue=True)]
    closest = keep_or_replace(box, shrunk, total, differences, 0.0, depth)
    assert shrunk.tolist() != closest.tolist()
    assert shrunk_leaves(box, noisy, measured, total, depth, allowed=(0.0, depth)).tolist() == closest.tolist()
    assert shrunk_leaves(box, noisy, measured, total, depth, allowed=(1e9, depth)).tolist() == shrunk.tolist()


def test_cells_of_a_large_tree_exist_block_by_block() -> None:
    domain, depth = Integers(0, 99_999), 17
    assert 1 << depth > CELLS_TOGETHER
    there = existing(domain, depth)
    assert np.array_equal(there[depth], domain.exists(np.arange(1 << depth, dtype=np.uint64), depth))
    assert there[depth].sum() == 100_000

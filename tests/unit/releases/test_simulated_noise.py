"""The simulated law of the noise behind a certificate: which trees share one, how often it is drawn, and its limits."""

from dataclasses import replace

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.domains import Circle, Domain, Nullable, Product
from privmeasure.noise.law import GAUSSIAN, facts_of
from privmeasure.plans.plan import Plan
from privmeasure.releases import certify
from privmeasure.releases.certify import _Tree

DEPTH = 4


def plan_of(domain: Domain, depth: int = DEPTH) -> Plan:
    return pm.PMM(domain, pm.Privacy(1, "replace"), depth=depth).plan(500)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "_laws", {})


def test_laws_of_the_same_scales_are_not_confused() -> None:
    box = pm.Box([(0, 1)])
    plan = plan_of(box)
    laplace, gaussian = (_Tree(box, each).simulated(0.05) for each in (plan, replace(plan, law=GAUSSIAN)))
    assert len(certify._laws) == 2
    assert (gaussian.limits(0.05) < laplace.limits(0.05)).all()
    ratio = (facts_of(GAUSSIAN, plan.scales[-1]).variance / facts_of(plan.law, plan.scales[-1]).variance) ** 0.5
    assert gaussian.mean == pytest.approx(ratio * laplace.mean, rel=0.3)


def test_quick_certificates_of_boxes_of_one_shape_share_a_simulation() -> None:
    """Where a box lies does not matter; its weights, a place for missing values, and its depth do."""
    boxes = pm.Box([(0, 1)]), pm.Box([(5, 9)])
    one, other = (_Tree(box, plan_of(box), quick=True).simulated(0.05) for box in boxes)
    assert one is other
    missing = [_Tree(Nullable(box), plan_of(Nullable(box)), quick=True).simulated(0.05) for box in boxes]
    assert missing[0] is missing[1]
    half = pm.Box([(0, 1)], weights=[0.5])
    others = [
        _Tree(half, plan_of(half), quick=True).simulated(0.05),
        _Tree(boxes[0], plan_of(boxes[0], 5), quick=True).simulated(0.05),
        _Tree(boxes[0], plan_of(boxes[0])).simulated(0.05),
    ]
    assert len({id(law) for law in [one, missing[0], *others]}) == 5


def test_the_noise_is_drawn_as_often_as_beta_needs_and_more_often_where_it_is_cheap() -> None:
    line, square = pm.Box([(0, 1)]), pm.Box([(0, 1)] * 2)

    def draws(box: pm.Box, beta: float, *, quick: bool) -> int:
        return len(_Tree(box, plan_of(box), quick=quick).simulated(beta).worst)

    assert [draws(line, beta, quick=True) for beta in (0.5, 0.05, 0.01)] == [29, 29, 99]
    assert [draws(square, beta, quick=False) for beta in (0.5, 0.01, 0.004)] == [99, 99, 249]
    assert draws(line, 0.5, quick=False) == 999


def test_transport_above_the_tree_adds_the_tree_below_and_nothing_else() -> None:
    """If no point of a cell is farther from its centre than half the diameter."""
    domain = Product([Circle(6), Circle(5)])
    tree, rng = _Tree(domain, plan_of(domain, 5)), np.random.default_rng(5)
    noisy = {level: rng.integers(0, 30, 1 << level) * tree.exists[level] for level in tree.laws}
    limits = tree.simulated(0.05).limits(0.05)
    bounds = tree.bounds(noisy, np.full(32, 500 / domain.size(5)) * tree.exists[5], 500, limits)
    joined = [(k, leaf) for k, leaf in bounds if 0 < k < leaf and 2 * domain.radius(k) <= domain.diameter(k) + 1e-9]
    assert joined
    for k, leaf in joined:
        for whole, exact, along in zip(bounds[k, leaf], bounds[k, k], bounds[0, leaf], strict=True):
            assert whole <= exact + along + 1e-9


@pytest.mark.parametrize("domain", [pm.Box([(0, 1)] * 2), Product([Circle(6), Circle(5)])], ids=str)
def test_what_the_largest_errors_add_up_to(domain: Domain) -> None:
    """With limits that are those of one error: exact for 1, 2, 4, ... cells of a level, between them a bound."""
    tree, rng = _Tree(domain, plan_of(domain)), np.random.default_rng(2)
    leaves = np.where(tree.exists[DEPTH], rng.normal(0, 9, 1 << DEPTH), 0.0)
    limits = tree.statistics(leaves)
    for level in range(1, DEPTH + 1):
        errors = np.sort(np.maximum(leaves.reshape(1 << level, -1).sum(axis=1), 0.0))[::-1]
        for count in range(1, len(errors) + 1):
            true, found = errors[:count].sum(), tree._largest(limits, level, count)
            power = 1 << (count - 1).bit_length()
            assert found == pytest.approx(true) or true <= found <= errors[:power].sum() + 1e-9
            assert count < power or found == pytest.approx(true)

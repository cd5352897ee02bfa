"""The chance of failure that a certificate may have is handed out exactly: its shares never sum to more than beta.

The shares are recorded where they are used, in every part of a certificate, not where they are computed.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.domains import Box, Categories, Integers, Product
from privmeasure.mechanisms import ColumnTree
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import GAUSSIAN, LAPLACE, GaussianFacts, LaplaceFacts
from privmeasure.plans.recipe import Recipe
from privmeasure.releases import certify
from privmeasure.sources.arrays import ArraySource

BETAS = [0.5, 0.1, 0.05, 0.013, 1 / 3, 0.3, 0.007]
MECHANISMS = {
    "line": lambda p: pm.PMM(Box([(0, 1)]), p, depth=5),
    "estimated number of rows": lambda p: pm.PMM(Box([(0, 1)]), p),
    "centres": lambda p: pm.PMM(Box([(0, 1)]), p, Recipe(placement="centre"), depth=4),
    "categories": lambda p: pm.PMM(Categories(5), p),
    "flat": lambda p: pm.PSMM(Box([(0, 1)]), p, depth=3),
    "square": lambda p: pm.PMM(Box([(0, 1)] * 2), p, depth=4),
    "columns": lambda p: ColumnTree(Product([Box([(0, 1)]), Integers(0, 9), Categories(4), Categories(1)]), p),
}


class Shares:
    """Records every share of beta where it is used, for one tree after the other."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.trees: list[dict[str, Fraction]] = []
        real_tree, real_size, real_rows = certify._Tree, certify._leaf_size, certify._rows
        real_limits, real_log = certify._Law.limits, math.log

        def tree(*arguments, **named):
            self.trees.append({})
            return real_tree(*arguments, **named)

        def size(domain, level, placement, rows, beta):
            with pytest.MonkeyPatch.context() as inner:  # the share counts if it is used
                inner.setattr(certify.math, "log", lambda x: self._note("places", Fraction(beta)) or real_log(x))
                return real_size(domain, level, placement, rows, beta)

        def rows(plan, noisy, leaves, beta, exists=None):
            low, high = real_rows(plan, noisy, leaves, beta, exists)
            if not plan.privacy.rows_are_public:
                self._note("rows", Fraction(beta))
            return low, high

        def limits(law, beta):
            self._note("noise", Fraction(beta))
            return real_limits(law, beta)

        patch.setattr(certify, "_Tree", tree)
        patch.setattr(certify, "_leaf_size", size)
        patch.setattr(certify, "_rows", rows)
        patch.setattr(certify._Law, "limits", limits)

    def _note(self, use: str, share: Fraction) -> None:
        assert self.trees[-1].setdefault(use, share) == share, "one event has one share"


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_shares_of_a_certificate_sum_to_beta_at_most(name, relation, monkeypatch):
    seen = Shares(monkeypatch)
    for delta, beta in product((0, 1e-6), BETAS):
        mechanism = MECHANISMS[name](pm.Privacy(2, relation, delta=delta))
        points = np.tile(np.linspace(0, 1, 300)[:, np.newaxis], mechanism.domain.width)
        release = mechanism.release(ArraySource(points, width=mechanism.domain.width), Key.insecure(1))
        seen.trees.clear()
        release.certificate(beta)
        given = sum((share for tree in seen.trees for share in tree.values()), Fraction(0))
        assert given <= Fraction(beta), (delta, beta, [dict(tree) for tree in seen.trees])
        assert given > Fraction(beta) * (1 - Fraction(1, 10**12)), "nothing of beta is left over"
        assert len(seen.trees) == (3 if name == "columns" else 1)
        assert all("noise" in tree for tree in seen.trees)
        assert all(("rows" in tree) == (relation == "add-remove") for tree in seen.trees)


def test_a_share_that_is_not_subtracted_is_caught(monkeypatch):
    """The check can fail: here the interval for the number of rows has a share that nobody subtracted."""
    seen = Shares(monkeypatch)
    real = certify._rows
    monkeypatch.setattr(
        certify, "_rows", lambda plan, noisy, leaves, beta, exists=None: real(plan, noisy, leaves, 2 * beta, exists)
    )
    mechanism = MECHANISMS["line"](pm.Privacy(2, "add-remove"))
    release = mechanism.release(ArraySource(np.linspace(0, 1, 300)[:, np.newaxis], width=1), Key.insecure(1))
    release.certificate(0.05)
    assert sum(seen.trees[0].values()) > Fraction(0.05)


@pytest.mark.parametrize("share", [0.2, 0.05, 0.0125, 1e-3])
def test_the_tail_of_an_estimate_counts_both_sides(share):
    """Chernoff's bound by hand for one noisy count: each side has half of the share."""
    there, scale = [np.ones(1, bool)], 64
    reach = certify.estimate_tail({0: Fraction(scale)}, there, share, GAUSSIAN)
    assert reach == math.ceil(scale * math.sqrt(2 * math.log(2 / share)) + 0.5)
    rate = np.linspace(1e-6, 1 - 1e-6, 100_000) / scale  # log E exp(t X) of real Laplace noise is -log(1 - t^2 s^2)
    by_hand = ((math.log(2 / share) - np.log1p(-((rate * scale) ** 2))) / rate).min()
    assert certify.estimate_tail({0: Fraction(scale)}, there, share, LAPLACE) == pytest.approx(by_hand + 0.5, abs=1.01)


@pytest.mark.parametrize("share", [0.2, 0.05, 0.0125, 1e-3])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(300)])
def test_limits_of_a_draw_count_both_sides(scale, share):
    """Against the chances of single values, summed up on both sides."""
    reach = math.ceil(60 * scale) + 5
    values = np.arange(-reach, reach + 1)
    for facts, weights in (
        (LaplaceFacts(scale), np.exp(-np.abs(values) / float(scale))),
        (GaussianFacts(scale), np.exp(-(values**2) / (2 * float(scale) ** 2))),
    ):
        chances = weights / weights.sum()
        limit = facts.limit(share)
        assert chances[np.abs(values) > limit].sum() <= share * (1 + 1e-9)
        assert limit == 0 or chances[np.abs(values) > limit - 1].sum() > share * (1 - 1e-9)


def test_one_more_draw_is_larger_with_a_chance_of_at_most_beta():
    """Of S + 1 exchangeable draws, S + 1 - k are larger than the k-th smallest of S: at most beta of them."""
    for beta in (Fraction(1, 2), Fraction(1, 10), Fraction(1, 20), Fraction(7, 500)):
        for draws in range(math.ceil(1 / beta) - 1, 400):
            k = int(certify.order_statistic(np.arange(1.0, draws + 1), float(beta)))
            assert Fraction(draws + 1 - k, draws + 1) <= beta, (beta, draws)
            assert Fraction(draws + 2 - k, draws + 1) > beta, (beta, draws)

"""What an attack on deltas found: each of these failed once."""

import decimal
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.accounting import largest_rho, smallest_epsilon
from privmeasure.domains import Box, Categories, Product
from privmeasure.errors import ArgumentError
from privmeasure.mechanisms import PMM, PSMM, ColumnTree
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import GAUSSIAN, LAPLACE, GaussianFacts
from privmeasure.plans import laws
from privmeasure.privacy import Privacy
from privmeasure.releases import certify
from privmeasure.report.words import promise_words
from privmeasure.sources.arrays import ArraySource
from privmeasure.typical import same_mechanism

LARGE = "99/100000"
MILLION = Fraction(1, 10**6)


# --------------------------------------------------------------------------------------------- noise below scale 1


@pytest.mark.parametrize("depth", [1, 4])
def test_a_release_with_little_noise_can_be_read_again(tmp_path, monkeypatch, depth):
    """Its guarantee was infinite below scale 1, which no file may say: what epsilon had bought was lost."""
    monkeypatch.setattr(laws, "WORTH", 1e9)
    synth = pm.Synthesizer(Box([(0, 1)]), epsilon=8, neighbours="replace", delta=LARGE, depth=depth)
    assert synth.privacy.delta > 0
    synth.fit(np.linspace(0, 1, 200))
    assert max(synth.release_.plan.scales) < 1
    synth.save(tmp_path / "little.release")
    assert math.isfinite(pm.load(tmp_path / "little.release").plan.best.value)


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1, 3), Fraction(7, 10), Fraction(99, 100), Fraction(1)])
def test_the_real_law_is_above_in_convex_order(scale):
    """E(Z - k)+ for all k: of the discrete law, and of the normal law that takes its place."""
    facts = GaussianFacts(scale)
    values = np.arange(-60, 61)
    chances = np.exp(-(values**2) / (2 * float(scale) ** 2))
    chances /= chances.sum()
    wide = math.sqrt(facts.real_variance)
    for k in np.linspace(0, 5, 101):
        mean = (
            wide * math.exp(-((k / wide) ** 2) / 2) / math.sqrt(2 * math.pi)
            - k * math.erfc(k / wide / math.sqrt(2)) / 2
        )
        assert (np.maximum(values - k, 0) * chances).sum() <= mean


# ------------------------------------------------------------------------------------------------ the choice of law


@pytest.mark.parametrize("mechanism", [PMM, PSMM])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 8])
def test_the_law_is_chosen_for_the_depth_that_is_given(mechanism, neighbours, epsilon):
    """One level of two cells has less noise by Laplace's law, whatever another depth would have."""
    made = mechanism(Box([(0, 1)]), Privacy(epsilon, neighbours, delta=LARGE), depth=1)
    assert (made.privacy.delta, made.law) == (0, LAPLACE)


def test_many_levels_still_have_gaussian_noise():
    assert PMM(Box([(0, 1)]), Privacy(1, "replace", delta=LARGE), depth=14).law == GAUSSIAN
    assert PMM.paper(Box([(0, 1)]), Privacy(1, "replace", delta=MILLION), depth=14).law == GAUSSIAN


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("make", [PMM, PSMM, lambda domain, privacy: ColumnTree(Product([domain] * 3), privacy)])
def test_a_single_value_needs_no_delta(make, neighbours):
    """Neither law has an error there: the two were divided by each other."""
    made = make(Categories(1), Privacy(1, neighbours, delta=MILLION))
    assert (made.law, made.plan(10).guarantee) == (LAPLACE, 0)


WIDE = Product([Box([(0, 1)]), Categories(30)] * 4)


def test_a_plan_for_another_epsilon_is_the_plan_of_that_epsilon():
    """At epsilon 8 the noise is Laplace's: its tuning was still that of the Gaussian noise of epsilon 1."""
    one, other = (
        pm.Synthesizer(WIDE, epsilon=epsilon, neighbours="add-remove", delta=MILLION, mechanism="columns")
        for epsilon in (1, 8)
    )
    assert (one.privacy.law, other.privacy.law) == (GAUSSIAN, LAPLACE)
    assert one.guarantees(10**5, [8]) == [other.plan(10**5)]
    assert other.guarantees(10**5, [1]) == [one.plan(10**5)]


def test_typical_errors_run_the_law_of_the_release():
    """The law may follow a public number of rows, which a plan does not name."""
    privacy, rows = Privacy("1/10", "replace", delta=MILLION), 10**7
    domain = Product([Box([(0, 1)]), Categories(30), Categories(2)])
    made, unknown = ColumnTree(domain, privacy, rows=rows), ColumnTree(domain, privacy)
    assert (made.law, unknown.law) == (GAUSSIAN, LAPLACE)
    release = made.release(ArraySource(np.zeros((50, 3)), width=3, threads=1), Key.insecure(1))
    release = replace(release, plan=replace(release.plan, rows=rows))
    assert same_mechanism(release).law == GAUSSIAN


def test_a_synthesizer_shows_the_delta_that_it_spends():
    synth = pm.Synthesizer(WIDE, epsilon=1, neighbours="add-remove", delta=MILLION, mechanism="columns")
    assert "epsilon=1, delta=1e-06, " in repr(synth)


# ------------------------------------------------------------------------------------------------- certificates


def test_laws_of_the_same_scale_do_not_share_simulations(monkeypatch):
    """The second certificate took the noise of the first from memory, as scales were all that it looked at."""
    monkeypatch.setattr(certify, "_laws", {})
    monkeypatch.setattr(laws, "WORTH", 1e9)
    gaussian = PSMM(Box([(0, 1)]), Privacy(1, "replace", delta=MILLION), depth=4).plan(100)
    scale = gaussian.scales[0]
    laplace = PSMM(Box([(0, 1)]), Privacy(2 / scale, "replace"), depth=4).plan(100)
    assert (laplace.scales, laplace.law, gaussian.law) == ((scale,), LAPLACE, GAUSSIAN)
    limits = [certify._Tree(Box([(0, 1)]), plan).simulated(0.05).limits(0.05)[0] for plan in (gaussian, laplace)]
    assert limits[1] > 1.2 * limits[0]


def misfit(draw) -> float:
    """Return chi^2 of draws from the law of scale 1, of 10 degrees of freedom: above 55 with a chance below 1e-7."""
    values = np.arange(-5, 6)
    chances = np.exp(-(values**2) / 2)
    chances /= chances.sum()
    rng, counts = np.random.default_rng(1), np.zeros(11)
    for _ in range(16):
        counts += np.bincount(draw(rng, 1 << 21).clip(-5, 5) + 5, minlength=11)
    expected = counts.sum() * chances
    return float(((counts - expected) ** 2 / expected).sum())


def test_simulated_noise_has_the_law_of_the_noise():
    """A rounded normal law, which took its place, has 5 % less beyond 4 scales: certificates were a little small."""
    assert misfit(GaussianFacts(Fraction(1)).simulated) < 55
    assert misfit(lambda rng, n: np.rint(rng.normal(0, math.sqrt(11 / 12), n)).astype(np.int64)) > 55


# ------------------------------------------------------------------------------------------------------- words


def test_a_report_does_not_take_delta_for_the_chance_of_a_larger_loss():
    """At (1, 1e-6) Gaussian noise passes the factor e with a chance of 5e-6: delta bounds sums of what is beyond."""
    privacy = Privacy(1, "replace", delta=MILLION)
    rho = float(privacy.budget)
    assert math.erfc((1 - rho) / math.sqrt(2 * rho) / math.sqrt(2)) / 2 > 4 * MILLION
    said = " ".join(promise_words(privacy))
    assert "with a chance of at most 1e-06" not in said
    assert "times as large plus 1e-06" in said


# --------------------------------------------------------------------------------------------------- accounting


def test_accounting_has_a_context_of_its_own():
    """Few digits of the caller's decimals moved rho, so that a plan did not fit its own promise elsewhere."""
    expected = largest_rho(Fraction(1, 10), MILLION), smallest_epsilon(Fraction(10**4), MILLION)
    for cached in (largest_rho, smallest_epsilon):
        cached.cache_clear()
    with decimal.localcontext() as context:
        context.prec = 3
        context.traps[decimal.Inexact] = True
        assert (largest_rho(Fraction(1, 10), MILLION), smallest_epsilon(Fraction(10**4), MILLION)) == expected


def test_a_promise_that_leaves_no_rho_is_refused():
    with pytest.raises(ArgumentError, match="leaves nothing to spend"):
        pm.Synthesizer(Box([(0, 1)]), epsilon=1e-14, neighbours="replace", delta="1e-300")

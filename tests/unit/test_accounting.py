"""rho, epsilon and delta: certified by integer intervals that share nothing with the package's decimals."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmeasure.accounting import largest_rho, smallest_epsilon
from privmeasure.errors import ArgumentError
from privmeasure.privacy import GAUSSIAN, LAPLACE, Privacy, exact_delta, round_up_root

epsilons = st.fractions(Fraction(1, 1000), 50, max_denominator=10**6)
deltas = st.integers(4, 60).map(lambda digits: Fraction(1, 10**digits))


def implied(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether some order shows that rho-zCDP implies the promise: by a search of its own, with 80 digits."""
    with localcontext() as context:
        context.prec = 80
        r, e, log = (Decimal(x.numerator) / x.denominator for x in (rho, epsilon, delta)), None, None
        r, e, d = r
        log = d.ln()
        best, step = Decimal(0), Decimal("0.5")

        def value(power: Decimal) -> Decimal:
            u = Decimal(2) ** power
            a = 1 + u
            return u * (a * r - e) + a * (u / a).ln() - u.ln() - log

        power = min((Decimal(p) for p in range(-20, 45)), key=value)
        while step > Decimal("1e-6"):
            power = min((power - step, power, power + step), key=value)
            step /= 2
        best = value(power)
        return best <= 0


@settings(max_examples=60, deadline=None)
@given(epsilons, deltas)
def test_rho_implies_the_promise_and_a_little_more_does_not(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    assert rho > 0
    assert implied(rho, epsilon, delta)
    assert not implied(rho * Fraction(1001, 1000), epsilon, delta)


@settings(max_examples=60, deadline=None)
@given(epsilons, deltas)
def test_epsilon_is_the_inverse(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    found = smallest_epsilon(rho, delta)
    assert implied(rho, found, delta)
    assert found <= epsilon * Fraction(1001, 1000) + Fraction(1, 10**6)
    assert largest_rho(found, delta) >= rho  # so that a part of a release fits its own promise


def test_epsilon_is_rounded_up():
    """The rho that was added up stays within what the stated epsilon allows: never a last digit less."""
    for power in (3, 6, 9):
        for part in (1, 7, 40, 333):
            rho, delta = Fraction(1, part), Fraction(1, 10**power)
            epsilon = smallest_epsilon(rho, delta)
            assert largest_rho(epsilon, delta) >= rho, f"rho {rho} costs more than {epsilon} at delta {delta}"


def test_the_values_that_are_known():
    """Of [CKS20], as algorithms that use it state them."""
    million = Fraction(1, 10**6)
    assert [round(float(largest_rho(Fraction(e), million)), 6) for e in ("1/10", 1, 4)] == [
        0.000321,
        0.024356,
        0.311064,
    ]


def test_it_is_better_than_the_plain_conversion():
    """rho + 2 sqrt(rho log(1/delta)), which older text books have."""
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(8)):
        rho = float(largest_rho(epsilon, Fraction(1, 10**6)))
        assert rho + 2 * math.sqrt(rho * math.log(1e6)) > float(epsilon)


@given(st.fractions(Fraction(1, 10**12), 10**12))
def test_the_ladder_rounds_up_by_less_than_half_a_per_cent(square):
    root = round_up_root(square)
    assert square <= root * root <= square * (1 + Fraction(1, 256)) ** 2
    assert (root.numerator * 256 % root.denominator == 0) or root < 1


def test_many_budgets_share_few_scales():
    privacy = Privacy(1, "add-remove", delta=1e-6)
    scales = {privacy.scale(privacy.budget * Fraction(i, 10_000)) for i in range(5000, 10_000)}
    assert len(scales) <= 256


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("people", [1, 3])
def test_scales_cost_no_more_than_their_budget_and_little_less(relation, people):
    """D_2^2 / (2 s^2) of counts, and D^2 / (2 s^2) of a choice: both in exact fractions."""
    privacy = Privacy(1, relation, people, delta=1e-6)
    for part in (1, 7, 1000):
        budget = privacy.budget / part
        cost = Fraction(privacy.squared_sensitivity) / (2 * privacy.scale(budget) ** 2)
        assert budget * Fraction(99, 100) < cost <= budget
        cost = Fraction(privacy.sensitivity) ** 2 / (2 * privacy.choice_scale(budget) ** 2)
        assert budget * Fraction(99, 100) < cost <= budget
    assert privacy.squared_sensitivity == people**2 * (1 if relation == "add-remove" else 2)


def test_without_a_delta_nothing_changes():
    privacy = Privacy("1/3", "replace", 2)
    assert (privacy.law, privacy.budget, privacy.unit) == (LAPLACE, Fraction(1, 3), "epsilon")
    assert privacy.part(Fraction(1, 7)) == privacy.at(Fraction(1, 7))
    assert privacy.scale(Fraction(1, 7)) == 28
    assert privacy.to_json()["delta"] == 0


def test_a_promise_with_a_delta_is_read_back():
    privacy = Privacy(2, "add-remove", 3, "id", delta="1/3000000")
    assert Privacy.from_json(privacy.to_json()) == privacy
    assert privacy.pure == Privacy(2, "add-remove", 3, "id")
    assert (privacy.law, privacy.unit, privacy.at(1).delta) == (GAUSSIAN, "rho", privacy.delta)
    assert "delta 3.33333e-07" in privacy.short


@pytest.mark.parametrize(
    "delta", [-1e-9, 0.001, "1/1000", 1, float("nan"), float("inf"), "1e-5000", "x", None, True, "1e-301"]
)
def test_a_delta_that_promises_nothing_is_refused(delta):
    with pytest.raises(ArgumentError, match="delta must be"):
        Privacy(1, "replace", delta=delta)


@pytest.mark.parametrize("delta", [0, 0.0, "0", Fraction(0), 1e-6, "1e-9", Fraction(999, 10**6)])
def test_a_delta_is_taken_exactly(delta):
    assert exact_delta(delta) == Fraction(str(delta))

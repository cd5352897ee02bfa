"""The theorems as code, against the printed tables."""

import math
from fractions import Fraction

import pytest

from privmeasure import PMM, Box, Privacy, Recipe
from privmeasure.domains import Integers
from privmeasure.mechanisms.bounds import hvz, noise_variance, t1, t2
from privmeasure.mechanisms.inference import level_variances

TABLE = [  # d, n, r, the paper's bound with 2 sqrt2, T1: literal mechanism, add-remove, epsilon = 1
    (1, 1_000, 8, "0.233", "0.121"),
    (1, 10_000, 12, "0.0480", "0.0249"),
    (1, 100_000, 15, "0.0073", "0.0038"),
    (2, 500, 8, "2.00", "1.07"),
    (2, 2_000, 10, "1.15", "0.617"),
    (3, 2_000, 10, "2.38", "1.31"),
]
CONSTANTS = [  # d, r, bound * epsilon n of the noise alone under replace: the paper's, T1, the signed rule (3/4)
    (1, 10, 566, 300, 150),
    (2, 10, 4167, 2210, 1105),
    (3, 9, 5401, 2864, 1432),
]


def cube(dimension):
    return Box([(0, 1)] * dimension)


def as_printed(text):
    """The printed number to its last digit, or to 0.2 %: one entry has the exact E max, below (3/2) sigma."""
    return pytest.approx(float(text), rel=2e-3, abs=0.501 * 10 ** -len(text.split(".")[1]))


@pytest.mark.parametrize(("dimension", "rows", "depth", "paper", "sharp"), TABLE)
def test_the_table_of_the_literal_mechanism(dimension, rows, depth, paper, sharp):
    plan = PMM.paper(cube(dimension), Privacy(1, "add-remove"), rows=rows).plan()
    assert plan.depth == depth
    bounds = {bound.name: bound for bound in plan.bounds}
    assert bounds["HVZ23"].value == as_printed(paper)
    assert bounds["T1"].value == as_printed(sharp)
    assert bounds["HVZ23"].applies
    assert bounds["T1"].applies
    assert plan.best is bounds["T1"]
    assert plan.vacuous == (bounds["T1"].value >= 1)
    assert plan.guarantee == min(1, bounds["T1"].value)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize(("dimension", "depth", "paper", "sharp", "signed"), CONSTANTS)
def test_the_constants_of_replace(epsilon, dimension, depth, paper, sharp, signed):
    domain, rows = cube(dimension), 10**6
    plan = PMM.paper(domain, Privacy(epsilon, "replace"), rule="signed", depth=depth).plan(rows)
    scales, delta = dict(zip(plan.levels, plan.scales, strict=True)), domain.diameter(depth)
    size = float(epsilon) * rows
    rounding = sum(domain.total_diameter(level - 1) for level in range(1, depth + 1)) / (2 * rows)
    assert (hvz(domain, scales, depth, rows) - delta) * size == pytest.approx(paper, rel=1e-3)
    assert (t1(domain, scales, rows, delta) - delta) * size == pytest.approx(sharp, rel=1e-3)
    assert (t2(domain, scales, depth, rows, delta, blue=False) - delta - rounding) * size == pytest.approx(
        signed, rel=1e-3
    )
    assert {bound.name: bound.value for bound in plan.bounds} == {
        "HVZ23": hvz(domain, scales, depth, rows),
        "T1": t1(domain, scales, rows, delta),
        "T2": t2(domain, scales, depth, rows, delta, blue=False),
    }


def test_the_noise_terms_are_true():
    """E|Lap_Z| <= sigma, E max of two <= (3/2) sigma, E|difference| <= both terms of T2: by summing the law itself."""
    for scale in (Fraction(1, 5), Fraction(1), Fraction(7, 2), Fraction(20)):
        p = math.exp(-1 / scale)
        reach = int(45 * scale) + 5
        law = {z: (1 - p) / (1 + p) * p ** abs(z) for z in range(-reach, reach + 1)}
        assert sum(law.values()) == pytest.approx(1)
        assert noise_variance(scale) == pytest.approx(sum(z * z * q for z, q in law.items()), rel=1e-6)
        assert sum(abs(z) * q for z, q in law.items()) <= scale
        survival = {k: sum(q for z, q in law.items() if abs(z) >= k) for k in range(1, reach + 1)}
        largest = sum(1 - (1 - s) ** 2 for s in survival.values())  # E max = sum of P(max >= k)
        assert largest <= 1.5 * scale
        assert largest <= math.sqrt(2 / math.pi * 2 * noise_variance(scale))  # E|l0 - l1| = E max(|l0|, |l1|)


def test_t2_sums_the_variances_of_the_up_pass():
    domain, rows, depth = cube(2), 1000, 8
    scales = {0: Fraction(8), 4: Fraction(5), 8: Fraction(3)}
    variance = level_variances({j: noise_variance(s) for j, s in scales.items()}, depth, blue=True)
    expected = 8.0
    for level in range(1, depth + 1):
        expected += domain.total_diameter(level - 1) * (math.sqrt(2 / math.pi * 2 * variance[level]) + 1) / 2
    assert t2(domain, scales, depth, rows, 0.1, blue=True) == pytest.approx(expected / rows + 0.1)
    assert t2(domain, scales, depth, rows, 0.1, blue=True) < t2(domain, scales, depth, rows, 0.1, blue=False)


def test_a_tree_of_one_cell():
    domain = cube(2)
    assert t2(domain, {}, 0, 10, 1.0, blue=True) == 1.0
    assert t2(domain, {0: Fraction(2)}, 0, 10, 1.0, blue=True) == pytest.approx(1.2)
    assert t1(domain, {0: Fraction(2)}, 10, 1.0) == pytest.approx(1.2)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_bounds_of_the_default(relation):
    """The signed rule's bound applies; the paper's stand beside it for comparison, and say so."""
    plan = PMM(cube(2), Privacy(1, relation)).plan(10**5)
    bounds = {bound.name: bound for bound in plan.bounds}
    assert bounds["T2"].applies
    assert plan.best is bounds["T2"]
    for name in ("HVZ23", "T1"):
        assert not bounds[name].applies
        assert "PMM.paper" in bounds[name].about
    assert bounds["T2"].value < bounds["T1"].value < bounds["HVZ23"].value
    literal = PMM.paper(cube(2), Privacy(1, relation), rows=10**5).plan()
    assert {b.name: b.value for b in literal.bounds if b.name != "T2"} == {n: bounds[n].value for n in ("HVZ23", "T1")}


@pytest.mark.parametrize("domain", [cube(1), cube(2), Integers(0, 1000)], ids=repr)
def test_guarantees_improve_with_rows_and_epsilon_and_centres(domain):
    for recipe in (Recipe(), Recipe("every level", "none", "uniform"), Recipe("sparse", "none", "signed")):
        centred = Recipe(recipe.schedule, recipe.inference, recipe.rule, "centre")
        for relation in ("add-remove", "replace"):
            at = [PMM(domain, Privacy(1, relation), recipe).plan(n).guarantee for n in (10**3, 10**5, 10**7)]
            assert at[0] > at[1] > at[2] > 0
            better = PMM(domain, Privacy(1, relation), centred).plan(10**5)
            assert better.guarantee <= at[1]
            assert PMM(domain, Privacy(5, relation), recipe).plan(10**5).guarantee < at[1]


def test_nothing_is_promised_where_nothing_is_proved():
    """Unmeasured levels with a clipping rule: no theorem applies, and the plan says so."""
    plan = PMM(cube(2), Privacy(1, "replace"), Recipe("sparse", "none", "uniform")).plan(10**5)
    assert plan.best is None
    assert plan.guarantee == plan.diameter == 1
    assert plan.vacuous
    assert "none is proved" in str(plan)


def test_more_rows_a_person_cost_more():
    one, three = (PMM(cube(2), Privacy(1, "replace", k), depth=8).plan(10**5) for k in (1, 3))
    assert [3 * scale for scale in one.scales] == list(three.scales)
    assert three.guarantee > one.guarantee

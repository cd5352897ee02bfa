"""The theorems as code, against the printed tables."""

import math
from fractions import Fraction

import numpy as np
import pytest

from depth import some
from privmeasure import PMM, PSMM, Box, Plan, Privacy, Recipe
from privmeasure.domains import Finite, Integers
from privmeasure.estimates.linear import level_variances, noise_variance
from privmeasure.estimates.shrinkage import shrunk
from privmeasure.plans.bounds import (
    ANY_GROUPS,
    box_cuts,
    centre_norm,
    corner_distance,
    difference_variances,
    flat,
    hvz,
    spread_norm,
    t1,
    t2,
    t3,
    t5,
    t6,
)

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
    assert {bound.name: bound.value for bound in plan.bounds if bound.applies} == {
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
    assert t2(domain, scales, depth, rows, 0.1, blue=True, coarser=False) == pytest.approx(expected / rows + 0.1)
    assert t2(domain, scales, depth, rows, 0.1, blue=True) < t2(domain, scales, depth, rows, 0.1, blue=False)


def test_the_sum_of_t2_may_end_at_any_level():
    domain, rows, depth, scales = cube(2), 1000, 8, {4: Fraction(1), 8: Fraction(300)}
    variance = level_variances({j: noise_variance(s) for j, s in scales.items()}, depth, blue=True)
    terms = [domain.total_diameter(j - 1) * (math.sqrt(4 / math.pi * variance[j]) + 1) / 2 for j in range(1, depth + 1)]
    ends = [sum(terms[:level]) / rows + domain.diameter(level) for level in range(depth + 1)]
    found = t2(domain, scales, depth, rows, domain.diameter(depth), blue=True)
    assert found == pytest.approx(min(ends))
    assert ends.index(min(ends)) == 4 != depth  # what was measured with hardly any noise
    assert found < t2(domain, scales, depth, rows, domain.diameter(depth), blue=True, coarser=False) / 2


def test_a_tree_of_one_cell():
    domain = cube(2)
    assert t2(domain, {}, 0, 10, 1.0, blue=True) == 1.0
    assert t2(domain, {0: Fraction(2)}, 0, 10, 1.0, blue=True) == pytest.approx(1.2)
    assert t1(domain, {0: Fraction(2)}, 10, 1.0) == pytest.approx(1.2)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_bounds_of_the_default(relation):
    """That of what is kept applies; others, and the paper's stand beside it for comparison, and say so."""
    plan = PMM(cube(2), Privacy(1, relation)).plan(10**5)
    bounds = {bound.name: bound for bound in plan.bounds}
    assert not bounds["T6"].applies  # it speaks of masses that never give way
    assert bounds["T7"].applies
    assert plan.best is bounds["T7"]
    for name in ("HVZ23", "T1"):
        assert not bounds[name].applies
        assert "PMM.paper" in bounds[name].about
    assert bounds["T6"].value < bounds["T1"].value < bounds["HVZ23"].value
    literal = PMM.paper(cube(2), Privacy(1, relation), rows=10**5).plan()
    assert {b.name: b.value for b in literal.bounds if b.applies} == {n: bounds[n].value for n in ("HVZ23", "T1")}


@pytest.mark.parametrize("domain", [cube(1), cube(2), Integers(0, 1000)], ids=repr)
def test_guarantees_improve_with_rows_and_epsilon_and_centres(domain):
    for recipe in (Recipe(), Recipe("every level", "none", "uniform"), Recipe("sparse", "none", "signed")):
        centred = Recipe(recipe.schedule, recipe.inference, recipe.rule, "centre")
        for relation in ("add-remove", "replace"):
            at = [PMM(domain, Privacy(1, relation), recipe).plan(n).guarantee for n in (10**3, 10**5, 10**7)]
            assert at[0] > at[1] > at[2] > 0
            better = PMM(domain, Privacy(1, relation), centred).plan(10**5)
            # T7 is for rows that are spread: at centres they are half a corner's distance farther
            assert better.guarantee <= at[1] * (1.5 if recipe == Recipe() else 1)
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


# ------------------------------------------------------------------------------------------------------ T5


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_t5_is_the_formula(dimension):
    """(c/n) sqrt(sum_j V_j / (12 A_j^2)) + delta d / (d + 1), A_j the area of the cut of a cell of level j - 1."""
    domain, depth, rows = cube(dimension), 2 * dimension, 1000
    scales = {dimension: Fraction(5), depth: Fraction(3)}
    variance = level_variances({j: noise_variance(s) for j, s in scales.items()}, depth, blue=True)
    square = 0.0
    for level in range(1, depth + 1):
        sides = [2.0**-k for k in domain.cuts(level - 1)]
        area = math.prod(sides) / sides[(level - 1) % dimension]
        square += 2 * variance[level] / (12 * area**2)
    constant = 2 * math.sqrt(2 / (3 * math.pi)) if dimension == 3 else math.sqrt(2 / math.pi)
    expected = constant * math.sqrt(square) / rows + domain.diameter(depth) * dimension / (dimension + 1)
    assert t5(domain, scales, depth, rows, blue=True) == pytest.approx(expected)
    noisy_total = t5(domain, {0: Fraction(8), **scales}, depth, rows, blue=True)
    assert noisy_total == pytest.approx(expected + 8 / rows)


def test_at_centres_a_line_gives_the_noise_of_t3():
    scales, domain = {3: Fraction(4), 7: Fraction(9)}, Box([(0, 5)])
    variance = difference_variances(scales, 7, blue=True)
    assert centre_norm(domain, variance, 7) + 0.5 == pytest.approx(t3(domain, scales, 7, 1, 0.0))
    assert spread_norm(domain, variance, 7) < centre_norm(domain, variance, 7)


def test_units_do_not_matter_and_weights_scale():
    scales, depth = {5: Fraction(4)}, 5
    plain, wide = Box([(0, 1)] * 2), Box([(0, 1), (-3, 9)], weights=[7, 7])
    for bound in (spread_norm, centre_norm):
        variance = difference_variances(scales, depth, blue=True)
        assert bound(wide, variance, depth) == pytest.approx(7 * bound(plain, variance, depth))
    assert corner_distance(wide, 3) == pytest.approx(7 * corner_distance(plain, 3))
    assert corner_distance(Box([(0, 1)] * 2, weights=[1, 1e-9]), 0) == pytest.approx(0.5)


def test_the_cut_areas_of_a_box_with_weights():
    """R_j = volume / area of the cut: with W = w_1 w_2 and A_j the other side of a cell of level j - 1."""
    domain = Box([(0, 1)] * 2, weights=[4, 1])
    for level, axis, r, _ in box_cuts(domain, 6):
        other = domain.weights[1 - axis] * 2.0 ** -domain.cuts(level - 1)[1 - axis]
        assert r == pytest.approx(4 / other)


def test_t5_is_shown_where_its_estimate_exists_and_never_applies():
    for recipe, shown in (
        (Recipe(), True),
        (Recipe("sparse", "none", "signed"), True),
        (Recipe("every level", "none", "uniform"), False),
    ):
        bounds = {bound.name: bound for bound in PMM(cube(2), Privacy(1, "replace"), recipe).plan(10**5).bounds}
        assert ("T5" in bounds) == shown
        if shown:
            assert not bounds["T5"].applies
            assert bounds["T5"].value < min(bound.value for bound in bounds.values() if bound.applies)
            assert "raw estimate" in bounds["T5"].about
    assert "T5" not in {b.name for b in PMM(Integers(0, 9), Privacy(1, "replace")).plan(100).bounds}


# ------------------------------------------------------------------------------------------- the flat mechanism


def test_the_bound_of_the_flat_mechanism_is_the_formula():
    domain, level, rows = cube(2), 6, 1000
    v, constant = noise_variance(Fraction(2)), math.sqrt(2 / math.pi)
    norm = centre_norm(domain, [2 * 2.0 ** (level - j) * v for j in range(level + 1)], level)
    tree = constant * sum(domain.total_diameter(j - 1) * math.sqrt(2 * 2.0 ** (level - j) * v) / 2 for j in range(1, 7))
    assert norm < tree
    total = constant * math.sqrt(64 * v)
    assert flat(domain, {6: Fraction(2)}, 6, rows, 0.1, exact_total=True) == pytest.approx(
        (2 * norm + total) / rows + 0.1
    )
    summed = flat(domain, {6: Fraction(2)}, 6, rows, 0.1, exact_total=False)
    assert summed == pytest.approx((2 * norm + 2 * total) / rows + 0.1)
    bought = flat(domain, {0: Fraction(8), 6: Fraction(2)}, 6, rows, 0.1, exact_total=False)
    assert bought == pytest.approx((2 * norm + total + 8) / rows + 0.1)
    assert flat(domain, {0: Fraction(8)}, 0, rows, 0.1, exact_total=False) == 0.1


# ------------------------------------------------------------------------------------------ which is the best


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("options", [{}, {"rows": 50_000}, {"depth": 6}])
@pytest.mark.parametrize(
    "domain", [cube(1), cube(2), cube(3), Integers(0, 500), Finite([[0, 1, 5], [1, 0, 5], [5, 5, 0]])], ids=repr
)
def test_each_plan_shows_what_the_other_mechanism_would_guarantee(relation, options, domain):
    privacy, rows = Privacy(1, relation), 50_000
    tree, flat_ = PMM(domain, privacy, **options).plan(rows), PSMM(domain, privacy, **options).plan(rows)
    other = {"rows": options["rows"]} if "rows" in options else {}  # the rival chooses its own depth
    assert tree.rival.value == pytest.approx(PSMM(domain, privacy, **other).plan(rows).best.value)
    assert flat_.rival.value == pytest.approx(PMM(domain, privacy, **other).plan(rows).best.value)
    for plan, name in ((tree, "psmm"), (flat_, "pmm")):
        assert plan.rival.mechanism == name
        assert not plan.rival.applies
        assert f"of mechanism={name!r}" in plan.rival.about
        assert Plan.from_json(plan.to_json()) == plan
        better = plan.rival.value < plan.guarantee
        (line,) = [line for line in str(plan).splitlines() if line.startswith("best ")]
        assert (f"mechanism={name!r} guarantees" in line) == better
        assert ("this mechanism" in line) != better


def test_centres_are_compared_with_centres():
    domain, privacy = cube(2), Privacy(1, "replace")
    plan = PMM(domain, privacy, Recipe(placement="centre")).plan(10**5)
    assert plan.rival.value == pytest.approx(PSMM(domain, privacy, placement="centre").plan(10**5).best.value)
    plan = PSMM(domain, privacy, placement="centre").plan(10**5)
    assert plan.rival.value == pytest.approx(PMM(domain, privacy, Recipe(placement="centre")).plan(10**5).best.value)


def test_where_nothing_is_guaranteed_no_mechanism_is_praised():
    plan = PMM(cube(6), Privacy(Fraction(1, 100), "replace"), Recipe(shrinkage="none")).plan(100)
    assert "no mechanism guarantees anything" in str(plan)


def test_an_old_plan_without_rivals_is_read():
    plan = PMM(cube(2), Privacy(1, "replace")).plan(10**4)
    value = plan.to_json()
    value["bounds"] = [{k: v for k, v in b.items() if k != "mechanism"} for b in value["bounds"] if not b["mechanism"]]
    old = Plan.from_json(value)
    assert old.rival is None
    assert old.guarantee == plan.guarantee
    assert not any(line.startswith("best ") for line in str(old).splitlines())


# ----------------------------------------------------------------------------------------------------- shrinkage


@some("parents", 2, [8, 32, 64, 192, 1000])
@some("signal", 2, [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("places", [1, 8, None], ids=["one place", "few places", "everywhere"])
def test_shrunk_differences_are_as_near_as_the_factor_says(parents, signal, places):
    """The mean error of simulated groups, for noise of integers at scale 3 and data of several shapes."""
    rng, scale, runs = np.random.default_rng(parents), Fraction(3), 400
    v = noise_variance(scale)
    delta = np.zeros(parents)
    delta[:places] = signal * math.sqrt(2 * v * parents / len(delta[:places]))
    p, found = -math.expm1(-1 / 3), []
    for _ in range(runs):
        first, second = (rng.geometric(p, parents) - rng.geometric(p, parents) for _ in range(2))
        x = shrunk(delta + first - second, np.zeros(parents), np.full(parents, 9.0), 2 * v)
        found.append(np.abs(x - delta).mean())
    bound = math.sqrt(2 / math.pi * 2 * v) * ANY_GROUPS
    assert np.mean(found) + 4 * np.std(found) / runs**0.5 <= bound


def test_t6_is_t2_with_factors_and_the_law_of_the_estimated_total():
    domain, rows = cube(2), 1000
    scales = {0: Fraction(64), 4: Fraction(5), 8: Fraction(3)}
    exact = {4: Fraction(5), 8: Fraction(3)}
    estimated = level_variances({j: noise_variance(s) for j, s in scales.items()}, 8, blue=True)[0]
    error = math.sqrt(2 / math.pi * estimated) + 0.5
    assert error < 64
    assert t6(domain, scales, 8, rows, 0.1) - t6(domain, exact, 8, rows, 0.1) == pytest.approx(error / rows)
    ratio = t6(domain, exact, 8, rows, 0) / t2(domain, exact, 8, rows, 0, blue=True)
    assert 1 < ratio < ANY_GROUPS
    assert t6(domain, {}, 0, 10, 1.0) == 1.0

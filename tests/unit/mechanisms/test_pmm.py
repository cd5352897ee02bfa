"""The tree mechanism: what its plans say for its options, what it refuses, and what its release carries."""

from fractions import Fraction

import numpy as np
import pytest

from privmeasure.domains import Box, Categories, Integers
from privmeasure.errors import ArgumentError
from privmeasure.estimates.consistency import distribute, signed
from privmeasure.estimates.passes import up_pass
from privmeasure.estimates.shrinkage import shrunk_leaves
from privmeasure.mechanisms import PMM, base
from privmeasure.mechanisms.tree import MOST_KEPT, consistent_leaves
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import GAUSSIAN, LARGEST_SCALE
from privmeasure.plans.bounds import hvz, t1, t2, t3, t5, t6
from privmeasure.plans.laws import REFERENCE_ROWS
from privmeasure.plans.recipe import Recipe
from privmeasure.plans.schedule import paper_depth, tree_scales, useful_depth
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource

LINE, SQUARE, AGES = Box([(0, 1)]), Box([(0, 1)] * 2), Integers(0, 99)
PLAIN = Recipe(shrinkage="none")
LITERAL = Recipe("every level", "none", "uniform", shrinkage="none")
RELATIONS = pytest.mark.parametrize("relation", ["replace", "add-remove"])


def release(mechanism: PMM, rows: int = 300, progress=None):
    points = np.random.default_rng(1).random((rows, mechanism.domain.width))
    return mechanism.release(ArraySource(points, width=mechanism.domain.width), Key.insecure(3), progress)


def test_memory_grows_with_what_is_held():
    """16 bytes per cell, 56 where the tree is uneven or shrunk, and 8 for the counts that stay with the release."""
    privacy = Privacy(1, "replace")

    def memory(domain, recipe=PLAIN, **options):
        return PMM(domain, privacy, recipe, **options).plan(1000).memory_bytes

    assert memory(LINE, depth=5) == 24 << 5
    assert memory(LINE, Recipe(), depth=5) == 64 << 5
    assert memory(AGES, depth=7) == 64 << 7
    kept = MOST_KEPT.bit_length() - 1
    assert memory(LINE, depth=kept) == 24 << kept
    assert memory(LINE, depth=kept + 1) == 16 << kept + 1
    assert memory(LINE, depth=40) == 64 * 1000


def test_a_number_of_rows_is_public_only_where_it_was_given():
    privacy = Privacy(1, "replace")
    assert PMM(LINE, privacy).plan(50).rows_are == "assumed"
    assert PMM(LINE, privacy, rows=50).plan().rows_are == "public"
    assert PMM(LINE, privacy, rows=50).plan(51).rows_are == "assumed"


def test_whole_numbers_of_numpy_become_those_of_python():
    mechanism = PMM(LINE, Privacy(1, "replace"), depth=np.int64(0), rows=np.int32(7), max_cells=np.int64(64))
    assert [type(value) for value in (mechanism.depth, mechanism.rows, mechanism.max_cells)] == [int] * 3
    assert mechanism.plan().depth == 0


@RELATIONS
def test_a_tree_is_lazy_from_twice_the_limit_on(relation):
    full, lazy = (PMM(LINE, Privacy(1, relation), depth=depth, max_cells=16) for depth in (4, 5))
    assert [each.plan(10**5).evaluation for each in (full, lazy)] == ["whole tree", "lazy"]
    measure = release(lazy)
    assert measure.noisy is None
    assert (measure.recipe["inference"], measure.recipe["shrinkage"]) == ("none", "none")
    assert (measure.recipe["schedule"], measure.placement) == (lazy.recipe.schedule, "uniform")
    assert release(full).recipe == full.recipe.to_json()
    assert PMM(LINE, Privacy(1, relation), max_cells=16).plan(10**7).depth <= 4, "a depth that is chosen is held"


def test_isotonic_needs_a_line_that_is_held():
    recipe = Recipe(rule="isotonic", shrinkage="none")
    for domain in (LINE, AGES):
        assert PMM(domain, Privacy(1, "replace"), recipe, depth=4, max_cells=16).plan(100).depth == 4
    for domain, depth, words in ((LINE, 5, "whole tree"), (SQUARE, 4, "needs a line"), (Categories(9), 3, "a line")):
        with pytest.raises(ArgumentError, match=words):
            PMM(domain, Privacy(1, "replace"), recipe, depth=depth, max_cells=16)


@pytest.mark.parametrize(("relation", "depth"), [("replace", 9), ("add-remove", 13)])
def test_a_tiny_epsilon_takes_as_many_levels_as_scales_allow(relation, depth):
    """One level more has a scale out of reach: refused where it is asked for, left out where the depth is chosen."""
    privacy, recipe = Privacy(Fraction(1, 20_000), relation), Recipe("every level", "none", "uniform", shrinkage="none")
    plan = PMM(SQUARE, privacy, recipe, rows=10**12).plan()
    assert plan.depth == depth
    assert max(plan.scales) <= LARGEST_SCALE
    with pytest.raises(ArgumentError, match="scale"):
        PMM(SQUARE, privacy, recipe, rows=10**12, depth=depth + 1)


@RELATIONS
def test_scales_out_of_reach_are_refused_before_anything_is_spent(relation):
    with pytest.raises(ArgumentError, match="scale"):
        PMM(LINE, Privacy(Fraction(1, 10**8), relation), depth=3)
    with pytest.raises(ArgumentError, match="scale"):  # the number of rows is bought first, at a known price
        PMM(LINE, Privacy(Fraction(1, 10**6), "add-remove"))
    assert PMM(LINE, Privacy(Fraction(1, 125_000), "add-remove")).plan(10**9).scales[0] == LARGEST_SCALE


def bounds_of(plan):
    return {bound.name: bound.value for bound in plan.bounds}


@RELATIONS
@pytest.mark.parametrize("placement", ["uniform", "centre"])
@pytest.mark.parametrize(
    ("domain", "depth", "delta"),
    [(LINE, 6, 0), (SQUARE, 6, 0), (AGES, 6, 0), (SQUARE, 12, Fraction(1, 10**6)), (LINE, 24, Fraction(1, 10**6))],
    ids=str,
)
def test_the_bounds_are_the_formulas_at_its_scales(domain, depth, delta, placement, relation):
    """For every recipe; those of the paper are at the depth of its literal mechanism unless every level is measured."""
    privacy, rows = Privacy(Fraction(1, 2), relation, delta=delta), 5000
    recipes = [
        Recipe(placement=placement),
        Recipe("sparse", "blue", "signed", placement, shrinkage="none"),
        Recipe("every level", "none", "uniform", placement, shrinkage="none"),
        Recipe("every level", "none", "signed", placement, shrinkage="none"),
        *([Recipe("ladder", "blue", "isotonic", placement, "none")] if domain.width == 1 else []),
    ]
    for recipe in recipes:
        mechanism = PMM(domain, privacy, recipe, depth=depth)
        recipe, plan = mechanism.recipe, mechanism.plan(rows)
        found, scales = bounds_of(plan), dict(zip(plan.levels, plan.scales, strict=True))
        rho = domain.radius(depth) if placement == "centre" else domain.diameter(depth)
        blue = recipe.inference == "blue"
        estimated = recipe.schedule == "ladder" and relation == "add-remove"
        common = {"estimated": estimated, "law": plan.law}
        if recipe.schedule == "every level":
            assert found.get("HVZ23") == (None if plan.law == GAUSSIAN else hvz(domain, scales, depth, rows))
            assert found["T1"] == t1(domain, scales, rows, rho, law=plan.law)
        else:
            literal = useful_depth(domain, paper_depth(domain, mechanism.privacy, rows, domain.deepest))
            theirs = tree_scales("every level", domain, privacy.pure, literal, lazy=False, root_first=False)
            assert found["HVZ23"] == pytest.approx(hvz(domain, theirs, literal, rows))
            assert found["T1"] == pytest.approx(t1(domain, theirs, rows, domain.diameter(literal)))
        if recipe.shrinkage == "groups":
            assert found["T6"] == t6(domain, scales, depth, rows, rho, **common)
        elif recipe.rule == "signed":
            assert found["T2"] == t2(domain, scales, depth, rows, rho, blue=blue, **common)
        if recipe.rule == "isotonic" and isinstance(domain, Box):
            assert found["T3"] == t3(domain, scales, depth, rows, rho, **common)
        if isinstance(domain, Box) and recipe.rule in ("signed", "isotonic"):
            assert found["T5"] == t5(domain, scales, depth, rows, blue=blue, **common)
        assert {bound.name for bound in plan.bounds if bound.applies} == (
            {"HVZ23", "T1"} & set(found) if recipe.schedule == "every level" else set()
        ) | ({"T2"} & set(found)) | ({"T3", "T7"} & set(found)) | set()


@RELATIONS
def test_the_law_is_that_of_the_better_plan(relation):
    """With a delta: many measured levels gain by Gaussian noise, few do not."""
    for options in ({}, {"depth": 8}, {"rows": 3000}):
        for recipe in (Recipe(), PLAIN, Recipe("every level", "none", "uniform", shrinkage="none")):
            asked = Privacy(Fraction(1, 2), relation, delta=Fraction(1, 10**6))
            chosen = PMM(SQUARE, asked, recipe, **options)
            assert (chosen.privacy.delta > 0) == (chosen.law == GAUSSIAN) == chosen.why.startswith("Gaussian")
            assert chosen.why
            rows = options.get("rows", REFERENCE_ROWS)
            pure = PMM(SQUARE, asked.pure, recipe, **options).plan(rows).guarantee
            found = chosen.plan(rows).guarantee
            assert found <= pure if chosen.privacy.delta else found == pure


@RELATIONS
@pytest.mark.parametrize("recipe", [PLAIN, Recipe("sparse", "none", "signed", shrinkage="none"), LITERAL])
@pytest.mark.parametrize(("depth", "max_cells"), [(4, 64), (6, 64), (7, 64)])
def test_laws_are_compared_by_the_bound_at_a_given_depth(relation, recipe, depth, max_cells):
    """T1 of the paper's schedule, T2 of others: with inference if there is any, which a lazy tree has not."""
    asked = Privacy(1, relation, 3, delta=Fraction(1, 10**6))
    lazy = 1 << depth > max_cells
    blue, estimated = recipe.inference == "blue" and not lazy, relation == "add-remove" and recipe.schedule == "ladder"
    errors = []
    for privacy in (asked, asked.pure):
        scales = tree_scales(recipe.schedule, SQUARE, privacy, depth, lazy=lazy, root_first=False)
        rho, law = SQUARE.diameter(depth), privacy.law
        if recipe is LITERAL:
            errors.append(t1(SQUARE, scales, REFERENCE_ROWS, rho, law=law))
        else:
            estimated = estimated and not lazy
            errors.append(t2(SQUARE, scales, depth, REFERENCE_ROWS, rho, blue=blue, estimated=estimated, law=law))
    mechanism = PMM(SQUARE, asked, recipe, depth=depth, max_cells=max_cells)
    assert [mechanism._price(privacy) for privacy in (asked, asked.pure)] == errors
    why = mechanism.why
    assert f" {errors[0] / errors[1]:.2f} of" in why


@pytest.mark.parametrize("recipe", [Recipe(), PLAIN, LITERAL], ids=repr)
def test_the_number_of_rows_is_bought_at_the_price_of_the_plan(monkeypatch, recipe):
    drawn, real = [], base.law_of
    monkeypatch.setattr(base, "law_of", lambda name, scale: drawn.append(scale) or real(name, scale))
    plan = release(PMM(LINE, Privacy(1, "add-remove"), recipe)).plan
    assert plan.levels[0] == 0
    assert drawn == [plan.scales[0]]


def test_only_the_recipe_decides_whether_splits_are_shrunk():
    rng, depth, measured = np.random.default_rng(4), 6, {3: 40.0, 6: 90.0}
    noisy = {level: rng.integers(-20, 60, 1 << level) for level in measured}
    masses = [
        consistent_leaves(LINE, dict(noisy), measured, 900, depth, recipe).tolist() for recipe in (Recipe(), PLAIN)
    ]
    assert masses[0] == shrunk_leaves(LINE, noisy, measured, 900, depth).tolist()
    assert (
        masses[1]
        == distribute(np.array([900]), up_pass(dict(noisy), measured, depth, signed, blue=True), signed).tolist()
    )
    assert masses[0] != masses[1]


@pytest.mark.parametrize("max_cells", [16, 1 << 10])
def test_a_release_has_at_least_one_row(max_cells):
    """Of no rows, and a noisy number of rows that is below 1, in whole trees and lazy ones."""
    for seed in range(12):
        mechanism = PMM(LINE, Privacy(1, "add-remove"), depth=9, max_cells=max_cells)
        measure = mechanism.release(ArraySource(np.empty((0, 1)), width=1), Key.insecure(seed))
        assert measure.total == measure.plan.rows >= 1
        assert measure.mass.min() >= 1


def test_counts_of_cells_that_do_not_exist_are_0():
    measure = release(PMM(AGES, Privacy(1, "replace"), depth=7))
    for level, counts in measure.noisy.items():
        there = AGES.exists(np.arange(1 << level, dtype=np.uint64), level)
        assert not counts[~there].any()
    assert not there.all()


@RELATIONS
@pytest.mark.parametrize("options", [{}, {"depth": 5}, {"depth": 20, "max_cells": 16}])
def test_progress_ends_with_the_release(relation, options):
    told = []
    release(PMM(LINE, Privacy(1, relation), **options), progress=lambda step, share: told.append((step, share)))
    assert told[-1] == ("release", 1.0)
    assert any(step == "count" for step, _ in told[:-1])


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_bounds_of_the_paper_apply_only_if_every_level_is_measured(depth):
    for schedule in ("sparse", "every level"):
        recipe = Recipe(schedule, "none", "signed", shrinkage="none")
        plan = PMM(SQUARE, Privacy(1, "replace"), recipe, depth=depth).plan(1000)
        every = all(level in plan.levels for level in range(1, depth + 1))
        assert every or schedule == "sparse"
        assert {bound.applies for bound in plan.bounds if bound.name in ("HVZ23", "T1")} == {every}

"""Laws of the tree: what must hold for any data, domain, budget, rule, evaluation and number of threads."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmeasure import PMM, Box, Privacy, Recipe
from privmeasure.counts import CellCounts, Partition
from privmeasure.domains import Categories, Integers, Product
from privmeasure.errors import ArgumentError, SpentError
from privmeasure.estimates.consistency import RULES, distribute, reconcile
from privmeasure.estimates.passes import uneven_up_pass, up_pass
from privmeasure.mechanisms.lazy import ancestors
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import discrete_laplace
from privmeasure.plans.bounds import noise_variance
from privmeasure.sources import tally
from privmeasure.sources.arrays import ArraySource
from reference import pmm
from reference.gls import DenseGLS

LAW = settings(max_examples=60, deadline=None)
SLOW_LAW = settings(max_examples=25, deadline=None)

rules = st.sampled_from(["signed", "uniform", "proportional"])
schedules = st.sampled_from(["sparse", "every level"])
relations = st.sampled_from(["add-remove", "replace"])
epsilons = st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(7, 2)])
seeds = st.integers(0, 2**32)

DOMAINS = {
    "interval": Box([(-1, 3)]),
    "square": Box([(0, 1), (0, 2)]),
    "oblong": Box([(0, 1), (0, 1)], weights=[1, 5]),
    "ages": Integers(0, 20),
    "eleven categories": Categories(11),
    "product": Product([Integers(0, 4), Box([(0, 1)]), Categories(3)]),
    "taxonomy": Categories(7, taxonomy=[(0.25, "aabbbcc"), (0.5, "xxxxxyy")]),
}
UNEVEN = ["ages", "eleven categories", "taxonomy"]
domains = st.sampled_from(sorted(DOMAINS)).map(DOMAINS.__getitem__)


def points_of(domain, rng, rows):
    """Rows of many shapes: spread, in one cell, out of range, missing."""
    low, high = domain.extent(np.zeros(1, np.uint64), 0)
    spread = rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), (rows, domain.width))
    kind = rng.integers(4)
    if kind == 1:
        spread[:] = spread[:1]
    elif kind == 2:
        spread[rng.random(rows) < 0.7] = low[0]
    elif kind == 3:
        spread[rng.random(rows) < 0.1] = np.nan
    return spread


def release(domain, points, *, seed, recipe, privacy, threads=None, **options):
    mechanism = PMM(domain, privacy, recipe, threads=threads, **options)
    return mechanism.release(ArraySource(points, width=domain.width, threads=threads), Key.insecure(seed))


def masses(measure):
    return dict(zip(measure.cells.tolist(), measure.mass.tolist(), strict=True))


# ------------------------------------------------------------------------------------------------------------ splits


@LAW
@given(st.integers(0, 2**50), st.integers(-(2**50), 2**50), st.integers(-(2**50), 2**50), rules)
def test_a_split_is_whole_non_negative_exact_and_equals_its_twin(parent, left, right, name):
    rule = RULES[name]
    m0 = int(rule.split(np.array([parent]), *rule.prepare(np.array([left]), np.array([right])))[0])
    assert 0 <= m0 <= parent
    assert m0 == pmm.RULES[name](parent, left, right)


@LAW
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.floats(-(10**7), 10**7))
def test_t2_bounds_the_flux(n0, n1, parent, error):
    m0 = int(reconcile(np.array([parent]), np.array([n0 - n1 + error]))[0])
    low, high = sorted((n0, parent - n1))
    flux = max(0, low - m0, m0 - high)
    slack = 1e-8  # the sum n0 - n1 + error is rounded
    assert flux <= max(0, (abs(error) - abs(parent - n0 - n1) + 1) / 2) + slack
    assert flux <= np.ceil(abs(error) / 2 + slack)


@LAW
@given(seeds, rules, st.integers(1, 7), st.booleans())
def test_the_down_pass_keeps_every_subtree_and_no_structural_zero(seed, name, depth, uneven):
    rng, rule = np.random.default_rng(seed), RULES[name]
    levels = [j for j in range(1, depth) if rng.random() < 0.5] + [depth]
    noisy = {j: rng.integers(-20, 60, 1 << j) for j in levels}
    there = rng.random(1 << depth) < (0.5 if uneven else 2)
    there[rng.integers(1 << depth)] = True
    exists = ancestors(there, depth)
    total = int(rng.integers(0, 5000))
    if uneven:
        leaves = distribute(np.array([total]), uneven_up_pass(dict(noisy), depth, rule, exists), rule, exists)
    else:
        prepared = up_pass(dict(noisy), dict.fromkeys(noisy, 1.0), depth, rule, blue=False)
        leaves = distribute(np.array([total]), prepared, rule)
    assert leaves.dtype == np.int64
    assert (leaves >= 0).all()
    assert leaves.sum() == total
    assert not leaves[~there].any()
    twin = pmm.masses(
        total, {j: dict(enumerate(y.tolist())) for j, y in noisy.items()}, lambda j, c: bool(exists[j][c]), depth, name
    )
    assert {c: m for c, m in enumerate(leaves.tolist()) if m} == twin


# ---------------------------------------------------------------------------------------------------- whole pipeline


def noisy_counts(domain, points, plan, seed):
    """The noisy counts of every measured level, cell by cell, for the same key."""
    key, noisy = Key.insecure(seed), {}
    for level, scale in zip(plan.levels, plan.scales, strict=True):
        there = np.bincount(domain.locate(points, level).astype(np.int64), minlength=1 << level)
        law = discrete_laplace(scale)
        draws = [law.draw(key, part=0, level=level, cells=np.array([c], np.uint64))[0] for c in range(1 << level)]
        noisy[level] = {c: int(there[c] + draws[c]) for c in range(1 << level)}
    return noisy


def exists_in(domain):
    return lambda level, cell: bool(domain.exists(np.array([cell], np.uint64), level)[0])


@SLOW_LAW
@given(seeds, domains, rules, schedules, relations, epsilons, st.integers(0, 6), st.integers(1, 300))
def test_the_pipeline_equals_its_recursive_twin(seed, domain, rule, schedule, relation, epsilon, depth, rows):
    points = points_of(domain, np.random.default_rng(seed), rows)
    recipe, privacy = Recipe(schedule=schedule, inference="none", rule=rule), Privacy(epsilon, relation)
    measure = release(domain, points, seed=seed, recipe=recipe, privacy=privacy, depth=depth)
    noisy = noisy_counts(domain, points, measure.plan, seed)
    total = rows if relation == "replace" else max(1, noisy[0][0])
    assert measure.total == total == measure.plan.rows
    assert masses(measure) == pmm.masses(total, noisy, exists_in(domain), measure.plan.depth, rule)
    assert measure.plan.spent <= epsilon


@SLOW_LAW
@given(seeds, domains, schedules, relations, epsilons, st.integers(1, 6), st.integers(1, 300))
def test_the_pipeline_with_inference_follows_generalised_least_squares(
    seed, domain, schedule, relation, epsilon, depth, rows
):
    """At every pair of siblings, m0 = clip(floor((M + e + 1) / 2), 0, M) with e the dense estimate of n0 - n1."""
    points = points_of(domain, np.random.default_rng(seed), rows)
    recipe, privacy = Recipe(schedule=schedule), Privacy(epsilon, relation)
    measure = release(domain, points, seed=seed, recipe=recipe, privacy=privacy, depth=depth)
    plan, total, depth = measure.plan, measure.total, measure.plan.depth  # less than asked where cells are points
    noisy = {j: np.array(list(y.values())) for j, y in noisy_counts(domain, points, plan, seed).items()}
    if 0 in noisy:
        noisy[0] = np.maximum(noisy[0], 1)
        assert total == noisy[0][0]
    else:
        assert total == rows
    there = domain.exists(np.arange(1 << depth, dtype=np.uint64), depth)
    variances = {j: noise_variance(s) for j, s in zip(plan.levels, plan.scales, strict=True)}
    root = float(total) if relation == "replace" else None
    h = DenseGLS(variances, depth, there).estimates(noisy, root)
    leaves = np.zeros(1 << depth, np.int64)
    leaves[measure.cells.astype(np.int64)] = measure.mass
    assert not leaves[~there].any()
    exists = ancestors(there, depth)
    for level in range(1, depth + 1):
        mass = leaves.reshape(1 << level, -1).sum(axis=1)
        m0, parent, e = mass[0::2], mass[0::2] + mass[1::2], h[level][0::2] - h[level][1::2]
        both = exists[level][0::2] & exists[level][1::2]
        close = 1e-7 * (1 + np.abs(e))  # a tie may fall to either side of a rounded estimate
        low, high = (np.clip(np.floor((parent + e + 1 + shift) / 2), 0, parent) for shift in (-close, close))
        assert ((low <= m0) & (m0 <= high))[both].all()


@SLOW_LAW
@given(seeds, domains, rules, schedules, relations, st.integers(1, 9), st.integers(0, 300), st.integers(1, 3))
def test_lazy_evaluation_equals_the_whole_tree(seed, domain, rule, schedule, relation, depth, rows, log_cap):
    rows = max(rows, 1) if relation == "replace" else rows
    points = points_of(domain, np.random.default_rng(seed), rows)
    options = {
        "recipe": Recipe(schedule=schedule, inference="none", rule=rule),
        "privacy": Privacy(1, relation),
        "depth": depth,
        "seed": seed,
    }
    whole = release(domain, points, **options)
    lazy = release(domain, points, **options, max_cells=1 << log_cap)
    assert whole.plan.evaluation == "whole tree"
    assert (lazy.plan.evaluation == "lazy") == (whole.plan.depth > log_cap)
    assert (lazy.plan.depth, lazy.plan.levels) == (whole.plan.depth, whole.plan.levels)
    assert masses(lazy) == masses(whole)
    assert lazy.cells.dtype == whole.cells.dtype == np.uint64
    assert (np.diff(lazy.cells.astype(np.int64)) > 0).all()
    assert domain.exists(lazy.cells, lazy.plan.depth).all()


@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_lazy_forests_are_cut_into_pieces_without_a_trace(name, monkeypatch):
    domain, points = DOMAINS[name], points_of(DOMAINS[name], np.random.default_rng(3), 400)
    options = {
        "recipe": Recipe(inference="none"),
        "privacy": Privacy(2, "replace"),
        "depth": 10,
        "seed": 3,
        "max_cells": 2,
    }
    whole = release(domain, points, **options)
    monkeypatch.setattr("privmeasure.mechanisms.lazy.FOREST_CELLS", 64)
    assert masses(release(domain, points, **options)) == masses(whole)


@pytest.mark.parametrize("domain", [Box([(-1, 3)]), Box([(0, 1)] * 3), Integers(0, 10**9)], ids=repr)
def test_deep_trees_are_lazy_and_valid(domain):
    points = points_of(domain, np.random.default_rng(4), 50)
    measure = release(domain, points, seed=4, recipe=Recipe(), privacy=Privacy(1, "add-remove"), depth=40)
    assert measure.plan.evaluation == "lazy"
    assert measure.plan.depth == (30 if isinstance(domain, Integers) else 40)
    assert domain.exists(measure.cells, measure.plan.depth).all()
    assert (measure.mass > 0).all()
    assert measure.total == measure.plan.rows


@pytest.mark.parametrize("name", UNEVEN)
def test_the_tree_ends_where_cells_are_single_points(name):
    """Levels below would cost budget and tell nothing, whether the depth is given or chosen."""
    domain = DOMAINS[name]
    points = points_of(domain, np.random.default_rng(4), 50)
    for recipe in (Recipe(), Recipe("every level", "none", "uniform")):
        for options in ({"depth": 40}, {"rows": 10**6}):
            measure = release(domain, points, seed=4, recipe=recipe, privacy=Privacy(1, "replace"), **options)
            depth = measure.plan.depth
            assert domain.diameter(depth) == 0 < domain.diameter(depth - 1)
            assert measure.plan.spent == 1


@SLOW_LAW
@given(seeds, domains, relations, st.sampled_from([Recipe(), Recipe("every level", "none", "uniform")]))
def test_threads_change_nothing(seed, domain, relation, recipe):
    rng = np.random.default_rng(seed)
    points = points_of(domain, rng, int(rng.integers(1, 30_000)))
    privacy = Privacy(1, relation)
    one, two = (
        release(domain, points, seed=seed, recipe=recipe, privacy=privacy, threads=threads) for threads in (1, 2)
    )
    assert masses(one) == masses(two)
    assert one.header() == two.header()


def test_threads_change_nothing_in_a_large_tree():
    """Several chunks of noise and several blocks of rows per thread."""
    domain, rng = Box([(0, 1), (0, 1)]), np.random.default_rng(0)
    points = rng.normal(0.5, 0.2, (50_000, 2))
    options = {"seed": 9, "recipe": Recipe(), "privacy": Privacy(1, "replace"), "depth": 18}
    one, two = (release(domain, points, threads=threads, **options) for threads in (1, 2))
    assert masses(one) == masses(two)


@SLOW_LAW
@given(seeds, domains)
def test_the_order_of_rows_changes_nothing(seed, domain):
    rng = np.random.default_rng(seed)
    points = points_of(domain, rng, 500)
    options = {"seed": seed, "recipe": Recipe(), "privacy": Privacy(1, "add-remove")}
    assert masses(release(domain, points, **options)) == masses(release(domain, rng.permutation(points), **options))


# ------------------------------------------------------------------------------------------------------------- counts


def same(a, b):
    if a.size != b.size or (a.cells is None) != (b.cells is None):
        return False
    cells = a.cells is None or (a.cells.dtype == b.cells.dtype and a.cells.tolist() == b.cells.tolist())
    return cells and a.counts.dtype == b.counts.dtype == np.int64 and a.counts.tolist() == b.counts.tolist()


@pytest.fixture(params=["dense", "sparse"])
def form(request, monkeypatch):
    """Counts as one array, or as the list of occupied cells."""
    if request.param == "sparse":
        monkeypatch.setattr(tally, "DENSE_CELLS", 0)
    return request.param


@pytest.mark.parametrize("name", sorted(DOMAINS))
@pytest.mark.parametrize("threads", [1, 2])
def test_counts_are_a_commutative_monoid_and_counting_is_additive(form, name, threads):
    domain, level = DOMAINS[name], 5
    partitions = [Partition.of(domain, level), Partition(()), Partition.of(domain, 2)]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        points = points_of(domain, rng, int(rng.integers(0, 200)))

        def count(rows, threads=threads):
            return ArraySource(rows, width=domain.width, threads=threads).count(partitions)

        pieces = np.array_split(points, np.sort(rng.integers(0, len(points) + 1, 2)))
        whole, (a, b, c), nothing = count(points), (count(piece) for piece in pieces), count(points[:0])
        for i, partition in enumerate(partitions):
            assert (whole[i].cells is None) == (form == "dense")
            assert whole[i].total == len(points)
            assert same((a[i] + b[i]) + c[i], whole[i])
            assert same(a[i] + (b[i] + c[i]), whole[i])
            assert same(a[i] + b[i], b[i] + a[i])
            assert same(a[i] + nothing[i], a[i])
            assert same(nothing[i] + a[i], a[i])
            codes = domain.locate(points, [level, 0, 2][i]).astype(np.int64) if len(points) else np.zeros(0, np.int64)
            expected = np.bincount(codes, minlength=partition.size)
            dense = np.zeros(partition.size, np.int64)
            dense[slice(None) if whole[i].cells is None else whole[i].cells.astype(np.int64)] = whole[i].counts
            assert dense.tolist() == expected.tolist()


def test_counts_of_different_partitions_cannot_be_added():
    dense, sparse = CellCounts(4, np.zeros(4, np.int64)), CellCounts(4, np.zeros(0, np.int64), np.zeros(0, np.uint64))
    for other in (CellCounts(8, np.zeros(8, np.int64)), sparse):
        with pytest.raises(ArgumentError):
            dense + other


def test_counts_show_nothing_and_cannot_be_saved():
    import copy
    import pickle

    secret = CellCounts(1, np.array([123456789]))
    for shown in (repr(secret), str(secret), f"{secret}"):
        assert "123456789" not in shown
    with pytest.raises(SpentError):
        pickle.dumps(secret)
    with pytest.raises(SpentError):
        copy.copy(secret)
    assert not hasattr(secret, "__dict__")

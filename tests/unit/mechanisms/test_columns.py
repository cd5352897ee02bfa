"""The column tree as a whole: bad input, public facts about its noise, what it keeps and what it lets go of."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from depth import some
from privmeasure.conditions.sets import Condition
from privmeasure.counts import CellCounts
from privmeasure.domains import Box, Categories, Circle, Integers, Nullable, Product, Sphere, Steps
from privmeasure.domains.steps import FEWER_STEPS
from privmeasure.domains.traits import column_space
from privmeasure.errors import ArgumentError, DataError, ReleaseError, SpentError
from privmeasure.mechanisms import ColumnTree
from privmeasure.mechanisms import columns as column_tree
from privmeasure.noise.entropy import Key
from privmeasure.plans.tuning import TUNED
from privmeasure.privacy import Privacy
from privmeasure.releases import refining
from privmeasure.releases.load import load
from privmeasure.sources.arrays import ArraySource
from privmeasure.transport.cells import cells_apart

RELATIONS = ["add-remove", "replace"]


def release(points, factors, *, epsilon=1, neighbours="replace", seed=1, threads=None, **options):
    points = np.asarray(points, float).reshape(-1, sum(factor.width for factor in factors))
    tool = ColumnTree(Product(factors), Privacy(epsilon, neighbours), threads=threads, **options)
    return tool.release(ArraySource(points, width=points.shape[1], threads=threads), Key.insecure(seed))


def mixed(rows, seed=0):
    """A number, a whole number, categories that follow from it, and a category that may be missing."""
    rng = np.random.default_rng(seed)
    x = rng.beta(2, 5, rows)
    age = np.clip(np.rint(20 + 60 * x + rng.normal(0, 4, rows)), 0, 100)
    kind = np.minimum((age // 12).astype(int), 5)
    rare = np.where(rng.random(rows) < 0.2, np.nan, (kind + rng.integers(0, 2, rows)) % 3)
    return np.column_stack([x, age, kind, rare])


MIXED = [Box([(0, 1)]), Integers(0, 100), Categories(6), Nullable(Categories(3))]


def check(measure, rows=None):
    """Every release is consistent, whatever went in."""
    plan = measure.plan
    assert plan.spent <= plan.privacy.epsilon
    assert all(column.total == plan.rows for column in measure.columns)
    assert len(measure.pairs) == plan.tree_pairs + plan.extra_pairs
    assert len({(pair.first, pair.second) for pair in measure.pairs}) == len(measure.pairs)
    component = list(range(len(measure.columns)))
    for pair in measure.pairs[: plan.tree_pairs]:
        assert component[pair.first] != component[pair.second], "the tree has no circle"
        old, new = component[pair.first], component[pair.second]
        component = [new if c == old else c for c in component]
    sample = measure.sample(seed=1)
    assert len(sample) == plan.rows
    if rows is not None:
        assert plan.rows == rows
    return sample


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("rows", [1, 2, 3000])
def test_few_rows_and_many(neighbours, rows):
    check(release(mixed(rows), MIXED, neighbours=neighbours), rows if neighbours == "replace" else None)


def test_no_rows():
    check(release(np.empty((0, 4)), MIXED, neighbours="add-remove"))
    with pytest.raises(DataError, match="no rows"):
        release(np.empty((0, 4)), MIXED, neighbours="replace")


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_one_column_gets_everything(neighbours):
    measure = release(mixed(2000)[:, :1], MIXED[:1], neighbours=neighbours)
    check(measure)
    assert measure.pairs == ()
    assert measure.plan.rounds == 0


def test_two_columns_need_no_selection(monkeypatch):
    monkeypatch.setattr(column_tree.TruePairs, "_winner", None)
    measure = release(mixed(3000)[:, :2], MIXED[:2], neighbours="add-remove")
    check(measure)
    assert [(pair.first, pair.second) for pair in measure.pairs] == [(0, 1)]


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_constant_columns_cost_nothing(neighbours):
    factors = [Categories(1), *MIXED[:2], Integers(5, 5), MIXED[2]]
    x = mixed(2000)
    points = np.column_stack([np.zeros(2000), x[:, :2], np.full(2000, 5), x[:, 2]])
    measure = release(points, factors, neighbours=neighbours)
    sample = check(measure)
    assert measure.plan.columns[0].spent == measure.plan.columns[3].spent == 0
    assert measure.plan.tree_pairs == 2
    assert set(sample[:, 3]) == {5.0}
    assert not {0, 3} & {i for pair in measure.pairs for i in (pair.first, pair.second)}


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("rows", [None, 70])
def test_nothing_but_constants(neighbours, rows):
    measure = release(np.zeros((70, 2)), [Categories(1), Categories(1)], neighbours=neighbours, rows=rows)
    check(measure)
    assert abs(measure.plan.rows - 70) < 40


def test_a_column_that_holds_one_value_of_many():
    x = mixed(5000)
    x[:, 1] = 33
    sample = check(release(x, MIXED, epsilon=4))
    assert np.mean(sample[:, 1] == 33) > 0.95


def test_all_missing():
    x = mixed(3000)
    x[:, 3] = np.nan
    sample = check(release(x, MIXED, epsilon=4))
    assert np.isnan(sample[:, 3]).mean() > 0.95


def test_identical_columns_stay_so():
    x = mixed(20_000)
    x = np.column_stack([x[:, 2], x[:, 2], x[:, 1]])
    sample = check(release(x, [MIXED[2], MIXED[2], MIXED[1]], epsilon=4))
    assert np.mean(sample[:, 0] == sample[:, 1]) > 0.95


def test_a_category_that_is_never_seen_is_rare():
    x = mixed(20_000)
    sample = check(release(x, [*MIXED[:2], Categories(60), MIXED[3]], epsilon=4))
    assert np.mean(sample[:, 2] > 5) < 0.01


def test_values_beyond_the_bounds_are_clamped():
    x = mixed(1000)
    x[:300, 0], x[300:600, 1] = np.inf, -1e300
    check(release(x, MIXED, neighbours="add-remove"))


def test_places_and_circles_are_columns_too():
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.uniform(-180, 180, 4000), rng.uniform(-80, 80, 4000), rng.uniform(0, 24, 4000)])
    sample = check(release(points, [Sphere(), Circle(24), Categories(1)][:2], neighbours="add-remove"))
    assert sample.shape[1] == 3


@pytest.mark.parametrize(
    ("argument", "bad"),
    [("rows", 0), ("rows", True), ("rows", 2.5), ("threads", 0), ("domain", Categories(3)), ("tuning", None)],
)
def test_bad_arguments(argument, bad):
    good = {"domain": Product(MIXED), "privacy": Privacy(1, "replace")}
    with pytest.raises(ArgumentError, match=argument):
        ColumnTree(**(good | {argument: bad}))
    with pytest.raises(ArgumentError, match="rows"):
        ColumnTree(**good).plan()


# ------------------------------------------------------------------------------------------------- what is released


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_threads_do_not_change_a_release(neighbours):
    one, two = (release(mixed(4000), MIXED, neighbours=neighbours, threads=threads) for threads in (1, 3))
    assert one.plan == two.plan
    for a, b in zip(one.pairs, two.pairs, strict=True):
        assert np.array_equal(a.noisy, b.noisy)
    for a, b in zip(one.columns, two.columns, strict=True):
        assert np.array_equal(a.mass, b.mass)


def test_the_number_of_rows_is_what_all_columns_say_together():
    errors = [release(mixed(3000), MIXED, neighbours="add-remove", seed=s).plan.rows - 3000 for s in range(12)]
    alone = 64 * np.sqrt(2)  # the deviation of the noisy size that was bought first
    assert np.sqrt(np.mean(np.square(errors))) < 0.6 * alone


def test_with_public_rows_no_size_is_bought():
    measure = release(mixed(3000), MIXED, neighbours="add-remove", rows=3000)
    check(measure)
    assert measure.plan.size_budget == 0
    assert measure.plan.rows_are == "released"
    assert abs(measure.plan.rows - 3000) < 600


def test_missing_values_are_a_rank_cell_of_their_own():
    factors = [Nullable(Box([(0, 1)])), *MIXED[1:]]
    x = mixed(20_000)
    x[::3, 0] = np.nan
    measure = release(x, factors, epsilon=2)
    column, ranks = measure.columns[0], measure.ranks[0]
    cells = column.cells.view(np.int64)
    missing = 1 << (column.level - 1)
    assert missing in cells
    assert np.count_nonzero(ranks[cells] == ranks[missing]) == 1
    for pair in measure.pairs:
        for side, groups in ((pair.first, pair.first_groups), (pair.second, pair.second_groups)):
            if side == 0:
                assert np.count_nonzero(groups == groups[ranks[missing]]) == 1


@pytest.mark.parametrize("other", [Nullable(Categories(3)), Nullable(Integers(0, 9))])
def test_what_is_missing_together_is_missing_together(other):
    """Values are independent, and a third of the rows lacks both: the pair is chosen for that, and the rows show it."""
    rng, n = np.random.default_rng(0), 20_000
    x = np.column_stack([rng.random(n), rng.integers(0, 3, n), rng.integers(0, 5, n), rng.random(n)]).astype(float)
    gone = rng.random(n) < 1 / 3
    x[gone, :2] = np.nan
    measure = release(x, [Nullable(Box([(0, 1)])), other, Categories(5), Box([(0, 1)])], epsilon=2)
    rows = np.isnan(measure.sample(seed=0))
    assert (rows[:, 0] != rows[:, 1]).mean() < 0.02, "4/9 if they were independent"
    assert abs(rows[:, 0].mean() - 1 / 3) < 0.02
    assert (measure.pairs[0].first, measure.pairs[0].second) == (0, 1)


def test_cells_that_facts_tell_apart_stay_apart():
    """Nobody of the first category is 50 or more: no rank cell of the ages holds both sides of 50."""
    fact = (Condition(1, 0, ((50.0, 100.0),)), Condition(2, 0, ((0.0, 0.0),)))
    measure = release(mixed(20_000), MIXED, facts=(fact,))
    column, ranks = measure.columns[1], measure.ranks[1]
    low, high = (side[:, 0] for side in column.domain.extent(column.cells, column.level))
    inside = low >= 50
    assert ((high < 50) | inside).all()
    assert inside.any()
    assert not inside.all()
    cells = column.cells.view(np.int64)
    assert not set(ranks[cells[inside]]) & set(ranks[cells[~inside]])


@pytest.mark.parametrize("border", [13.0, 19.0, 37.0, 61.0])
def test_no_rank_cell_lies_on_both_sides_of_a_constraint(border):
    """With few groups, a border lies inside one of them, unless constraints are respected."""
    inside = Condition(1, 0, ((border, 100.0),))
    facts = ((inside, Condition(2, 0, ((0.0, 0.0),))),)
    measure = release(mixed(2_000), MIXED, facts=facts)
    column, ranks = measure.columns[1], measure.ranks[1]
    beyond = inside.cells(column.domain, column.level)[1]
    filled = column.cells.view(np.int64)
    assert beyond[filled].any()
    assert not beyond[filled].all()
    assert len(set(ranks[filled])) < len(filled), "groups of several cells"
    assert not set(ranks[filled[beyond[filled]]]) & set(ranks[filled[~beyond[filled]]])


def test_the_dependence_is_found():
    """The category follows from the age: their pair is chosen, and the sample shows it."""
    measure = release(mixed(20_000), MIXED, epsilon=2)
    assert (1, 2) in {(pair.first, pair.second) for pair in measure.pairs}
    sample = check(measure)
    assert np.mean(np.minimum(sample[:, 1] // 12, 5) == sample[:, 2]) > 0.8


def test_each_column_keeps_its_guarantee():
    """T2 bounds the expected W1 distance; the mean over some releases is far below."""
    x = mixed(3000)
    for j in (0, 1):
        low, high = ((0, 1), (0, 100))[j]
        distances = []
        for seed in range(5):
            measure = release(x, MIXED, neighbours="add-remove", seed=seed)
            ours = np.quantile(measure.columns[j].sample(seed=1)[:, 0], np.linspace(0, 1, 400))
            theirs = np.quantile(x[:, j], np.linspace(0, 1, 400))
            distances.append(np.abs(ours - theirs).mean() / (high - low))
        assert np.mean(distances) < measure.plan.columns[j].guarantee


@some("neighbours", 1, RELATIONS)
def test_tables_make_columns_better_and_a_far_estimate_is_not_taken(neighbours, monkeypatch):
    """T8: what tables say of a column is used while it is near the first estimate; without leeway that one stands."""
    x = mixed(20_000)

    def error(measure):
        column = measure.columns[1]
        cells = column.domain.locate(x[:, 1:2], column.level).view(np.int64)
        return np.abs(measure.masses[1] / measure.total - np.bincount(cells, minlength=128) / len(x)).sum()

    def releases():
        return [release(x, MIXED, neighbours=neighbours, epsilon=0.5, seed=seed) for seed in range(20)]

    refined = releases()
    monkeypatch.setattr(refining, "leeway", lambda plan: 0.0)
    first = releases()
    assert np.mean([error(r) for r in refined]) < 0.95 * np.mean([error(f) for f in first])
    assert any((a.columns[0].mass.tolist()) != b.columns[0].mass.tolist() for a, b in zip(refined, first, strict=True))
    bounds = {bound.name: bound for bound in refined[0].plan.columns[0].bounds}
    assert bounds["T8"].applies
    assert 1.1 * bounds["T2"].value < bounds["T8"].value < 1.45 * bounds["T2"].value


def test_an_estimate_that_is_too_far_is_approached_as_far_as_may_be(monkeypatch):
    """T8: the last estimate is no farther from the first than the leeway, and nearly so far where it wants to be."""
    x = mixed(2000)

    def masses(leeway):
        monkeypatch.setattr(refining, "leeway", lambda plan: leeway)
        measure = release(x, MIXED, epsilon=0.05, seed=4)
        j = next(j for j, column in enumerate(measure.columns) if isinstance(column.domain, Categories))
        return measure.columns[j].domain, measure.columns[j].level, measure.masses[j]

    space, depth, first = masses(0.0)
    last = masses(np.inf)[2]
    whole = cells_apart(space, depth, last - first)
    assert whole > 20
    moved = [cells_apart(space, depth, masses(share * whole)[2] - first) for share in (0.25, 0.5, 0.75)]
    assert all(share * 0.9 * whole < m <= share * whole for share, m in zip((0.25, 0.5, 0.75), moved, strict=True))


def test_many_rows_with_much_noise_are_not_lost_in_rounding(monkeypatch):
    """A public number of rows is exact, beside which doubles must not forget what noisy counts say of its parts.

    Of one column there are no tables, so that without shrinkage the last estimate is the first one, to the rows that
    are rounded.
    """
    true = np.arange(64) * 10**9 // 2016

    class Many:
        def count(self, partitions, progress=None):
            counts = (true.copy() if partition.axes else true.sum(keepdims=True) for partition in partitions)
            return [CellCounts(len(count), count) for count in counts]

    monkeypatch.setattr(refining, "shrink_list", lambda leaves, variance, alike: leaves)

    def mass(leeway):
        monkeypatch.setattr(refining, "leeway", lambda plan: leeway)
        tool = ColumnTree(Product([Categories(64)]), Privacy(Fraction(1, 10**5), "replace"))
        return tool.release(Many(), Key.insecure(1)).masses[0]

    first, last = mass(-1.0), mass(np.inf)
    assert np.abs(first - true).mean() > 10_000
    assert np.abs(last - first).max() <= 8


def test_cells_that_must_stay_apart_stay_empty_when_columns_are_estimated_anew():
    """A cell without mass beside the missing ones is in their group: mass there would be drawn as missing."""
    rng = np.random.default_rng(3)
    for seed in range(10):
        x = np.column_stack(
            [np.where(rng.random(300) < 0.4, np.nan, 70 + rng.random(300)), rng.integers(0, 3, (300, 3))]
        )
        factors = [Nullable(Box([(0, 100)])), *[Categories(3)] * 3]
        measure = release(x, factors, epsilon=0.3, neighbours="add-remove", seed=seed)
        column, ranks = measure.columns[0], measure.ranks[0]
        missing = 1 << (column.level - 1)
        cells = column.cells.view(np.int64)
        if missing in cells:
            assert [c for c in cells if ranks[c] == ranks[missing]] == [missing]


def test_a_list_takes_the_cells_that_its_partner_leaves():
    """A list of 87 values with a partner of 5: nearly a group a value, where 12 to 20 would share out 87."""
    rng, n = np.random.default_rng(0), 50_000
    long = rng.integers(0, 87, n)
    short = (long * 7 + (rng.random(n) < 0.1)) % 5
    x = np.column_stack([long, short, rng.integers(0, 2, (n, 3))])
    measure = release(x, [Categories(87), Categories(5), *[Categories(2)] * 3], neighbours="add-remove")
    (pair,) = [p for p in measure.pairs if (p.first, p.second) == (0, 1)]
    assert pair.noisy.shape == (87, 5)
    assert all(p.noisy.size <= max(measure.plan.pair_cells) for p in measure.pairs)
    drawn = measure.sample(seed=1)
    joint = np.bincount((drawn[:, 0] * 5 + drawn[:, 1]).astype(int), minlength=435) / len(drawn)
    assert np.abs(joint - np.bincount(long * 5 + short, minlength=435) / n).sum() / 2 < 0.06  # 0.43 in 16 groups


CODES = [Categories(300), Categories(20), Box([(0, 1)]), Categories(2)]


def codes(rows=30_000, *, telling=True, seed=0):
    """A code of 300, the chapter that it belongs to, or any, a number, and a flag."""
    rng = np.random.default_rng(seed)
    code = np.minimum(rng.geometric(0.02, rows) - 1, 299)
    chapter = code * 7 % 20 if telling else rng.integers(0, 20, rows)
    return np.column_stack([code, chapter, rng.beta(2, 5, rows), rng.integers(0, 2, rows)])


def apart(one, two, sizes=(300, 20)):
    tables = [
        np.bincount((x[:, 0] * sizes[1] + x[:, 1]).astype(int), minlength=sizes[0] * sizes[1]) for x in (one, two)
    ]
    return np.abs(tables[0] / len(one) - tables[1] / len(two)).sum() / 2


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
def test_a_finer_table_is_chosen_where_a_list_nearly_determines_its_partner(delta):
    x = codes()
    tool = ColumnTree(Product(CODES), Privacy(1, "add-remove", delta=delta))
    measure = tool.release(ArraySource(x, width=4), Key.insecure(2))
    plan, (pair,) = measure.plan, [p for p in measure.pairs if (p.first, p.second) == (0, 1)]
    assert plan.shape_budget > 0
    assert plan.pair_cells[0] < pair.noisy.size <= plan.finer_cells[0]
    drawn = check(measure)
    assert apart(drawn, x) < 0.2
    usual = ColumnTree(Product(CODES), tool.privacy, tuning=replace(tool.tuning, finer_clear=1e6))
    coarse = usual.release(ArraySource(x, width=4), Key.insecure(2))
    assert all(p.noisy.size <= plan.pair_cells[0] for p in coarse.pairs)
    assert apart(coarse.sample(seed=1), x) > 1.3 * apart(drawn, x)


def test_a_finer_table_is_not_chosen_where_it_has_nothing_to_tell():
    measure = release(codes(telling=False), CODES, neighbours="add-remove")
    assert measure.plan.shape_budget > 0
    assert all(pair.noisy.size <= max(measure.plan.pair_cells) for pair in measure.pairs)


def test_nothing_is_spent_on_resolutions_where_no_list_is_long():
    plan = ColumnTree(Product([Categories(16), *CODES[1:]]), Privacy(1, "replace")).plan(10_000)
    assert Fraction(0) == plan.shape_budget == plan.shape_scale
    assert plan.finer_cells == (0, 0)
    assert "resolutions" not in str(plan)


def test_two_columns_choose_a_resolution_alone():
    x, factors = codes(4000)[:, :2], CODES[:2]
    measure = release(x, factors, neighbours="add-remove")
    plan = measure.plan
    assert (plan.rounds, plan.round_budget) == (0, 0)
    assert plan.shape_budget > 0
    assert measure.pairs[0].noisy.size > plan.pair_cells[0]
    assert plan.privacy.epsilon - plan.spent < Fraction(1, 10**6)
    few = ColumnTree(Product([Categories(300), Categories(2)]), Privacy(1, "add-remove")).plan(10**6)
    assert few.shape_budget == 0, "a list whose partner leaves it all its values"
    assert few.privacy.epsilon - few.spent < Fraction(1, 10**6)


def test_finer_tables_are_read_again_and_keep_facts(tmp_path):
    never = ((Condition(0, 0, ((5.0, 39.0),)), Condition(1, 0, ((0.0, 2.0),))),)
    x = codes()
    x = x[~(np.isin(x[:, 0], range(5, 40)) & (x[:, 1] < 3))]
    measure = release(x, CODES, neighbours="add-remove", facts=never)
    assert max(pair.noisy.size for pair in measure.pairs) > measure.plan.pair_cells[0]
    groups, mass = measure.ranks[0], measure.masses[0]
    inside = np.isin(np.arange(len(mass)), range(5, 40)) & (mass > 0)
    outside = ~np.isin(np.arange(len(mass)), range(5, 40)) & (mass > 0)
    assert not set(groups[inside]) & set(groups[outside])
    measure = replace(measure, facts=never)
    drawn = measure.sample(seed=3)
    assert not (np.isin(drawn[:, 0], range(5, 40)) & (drawn[:, 1] < 3)).any()
    measure.save(tmp_path / "release.parquet")
    again = load(tmp_path / "release.parquet")
    assert again.plan == measure.plan
    assert np.array_equal(again.sample(seed=3), drawn)


def test_pairs_with_a_target_come_first_and_then_those_beside_it():
    """The last column is predicted: the weak pair (2, 5) is found, and then what its strongest companions say."""
    rng, n = np.random.default_rng(4), 20_000
    twins = rng.integers(0, 6, n)
    cause, weak = rng.integers(0, 8, n), rng.integers(0, 2, n)
    y = rng.random(n) < 0.1 + 0.1 * cause + 0.03 * weak
    x = np.column_stack([twins, twins, weak, cause, (cause + weak + rng.integers(0, 2, n)) % 8, y])
    factors = [Categories(6), Categories(6), Categories(2), Categories(8), Categories(8), Categories(2)]

    def pairs(targets, seed, epsilon=2):
        measure = release(x, factors, epsilon=epsilon, neighbours="add-remove", seed=seed, targets=targets)
        return measure, [(pair.first, pair.second) for pair in measure.pairs]

    for seed in range(3):
        measure, chosen = pairs((5,), seed)
        tree, extra = measure.plan.tree_pairs, measure.plan.extra_pairs
        assert all(5 in pair for pair in chosen[: -(-tree // 2)])
        assert sum(5 in pair for pair in chosen) == 5, "every pair with the target is bought"
        assert {3} & {j for pair in chosen[tree + -(-extra // 2) :] for j in pair}
        assert pairs((), seed)[0].plan == measure.plan, "a target costs nothing"
        few, both = pairs((5,), seed, epsilon=0.02)
        assert len(both) == 2, "where noise would hide more of them"
        assert all(5 in pair for pair in both)
        usual = pairs((), seed, epsilon=0.02)[0].plan
        assert usual.tree_pairs == 3
        assert few.plan.spent <= few.plan.privacy.epsilon
        assert few.plan.tree_budget > usual.tree_budget
    with pytest.raises(ArgumentError, match="targets must be"):
        ColumnTree(Product(factors), Privacy(1, "replace"), targets=(6,))


def test_targets_change_the_split_only_where_few_pairs_of_theirs_can_be_chosen():
    def planned(factors, targets, delta=0):
        promise = Privacy(Fraction(1, 10), "add-remove", delta=delta)
        return ColumnTree(Product(factors), promise, rows=3_000, targets=targets)

    ten = [Categories(10)] * 10
    usual, one = planned(ten, ()), planned(ten, (0,))
    assert (usual.plan().tree_pairs, one.plan().tree_pairs) == (4, 2)
    assert planned(ten, (0, 1, 2)).plan() == usual.plan(), "many targets need many pairs"
    still = [Categories(1), *ten]
    assert planned(still, (0,)).plan() == planned(still, ()).plan(), "a target that never varies is none"
    assert planned(ten[:2], (0,)).plan() == planned(ten[:2], ()).plan(), "of two columns there is nothing to choose"
    given = Fraction(1, 10**6)
    assert planned(ten, (0,), given).privacy == planned(ten, (), given).privacy, "targets decide on no delta"
    for tool in (usual, planned(ten, (), given)):
        aimed = replace(tool, targets=(0,))
        assert aimed.plan() != tool.plan()
        assert replace(aimed, targets=()) == tool


# ------------------------------------------------------------------------------------------------- what is let go of


class Spy:
    """A source that remembers what it gave away."""

    def __init__(self, source):
        self.source, self.given = source, []

    def count(self, partitions, progress=None):
        counts = self.source.count(partitions, progress)
        self.given += [(partition, count) for partition, count in zip(partitions, counts, strict=True)]
        return counts


@pytest.mark.parametrize("fails", [False, True])
def test_true_counts_die_in_the_mechanism(fails, monkeypatch):
    if fails:
        monkeypatch.setattr(column_tree.TruePairs, "_extra", lambda *_: 1 / 0)
    spy, key = Spy(ArraySource(mixed(20_000), width=4)), Key(b"k" * 32, private=True)
    tool = ColumnTree(Product(MIXED), Privacy(2, "add-remove"))
    if fails:
        with pytest.raises(ReleaseError, match="ZeroDivisionError"):
            tool.release(spy, key)
    else:
        tool.release(spy, key)
    assert len(spy.given) == 1 + 4 + 6
    for partition, counts in spy.given:
        assert isinstance(counts, CellCounts)
        assert len(counts.counts) == 0, partition
    with pytest.raises(SpentError):
        key.words(part=0, level=0, cells=np.zeros(1, np.uint64))


def test_progress_is_told_at_fixed_fractions():
    def steps(rows):
        told = []
        source = ArraySource(mixed(rows), width=4, threads=1)
        tool = ColumnTree(Product(MIXED), Privacy(1, "add-remove"))
        tool.release(source, Key.insecure(1), lambda stage, fraction: told.append((stage, fraction)))
        return told

    assert steps(10) == steps(3000)


# ------------------------------------------------------------------------------------------------- scale


@pytest.mark.deep
def test_many_columns_share_a_limit_of_cells():
    k, rows = 200, 400
    factors = [Box([(0, 1)]) if j % 2 else Categories(3 + j % 5) for j in range(k)]
    tool = ColumnTree(Product(factors), Privacy(50, "replace"))
    plan = tool.plan(10**9)
    assert plan.pair_sides[0] < TUNED.most_groups
    assert plan.memory_bytes < 1 << 28
    points = np.random.default_rng(0).random((rows, k))
    measure = tool.release(ArraySource(points, width=k), Key.insecure(1))
    assert k / 3 < len(measure.pairs) < k - 1, "few rows: not a whole tree"


def test_a_column_of_ten_thousand_categories():
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.integers(0, 10_000, 5000), rng.integers(0, 3, 5000), rng.random(5000)])
    check(release(points, [Categories(10_000), Categories(3), Box([(0, 1)])], neighbours="add-remove"))


def test_whole_numbers_of_a_wide_range_are_read_as_they_were_cut(tmp_path, monkeypatch):
    """A file says up to how many of them were cut at equal parts; one that does not say it is older."""
    factors = [Integers(0, 3_000_000), Categories(3)]
    rng = np.random.default_rng(5)
    x = np.column_stack([rng.integers(0, 1000, 5000) ** 2, rng.integers(0, 3, 5000)])
    new = release(x, factors)
    monkeypatch.setattr(column_tree, "column_space", partial(column_space, most_steps=FEWER_STEPS))
    monkeypatch.setattr(column_tree, "MOST_STEPS", FEWER_STEPS)
    old = release(x, factors)
    assert [type(measure.columns[0].domain) for measure in (new, old)] == [Steps, Integers]
    assert ["most_steps" in measure.plan.to_json() for measure in (new, old)] == [True, False]
    for name, measure in (("new", new), ("old", old)):
        measure.save(tmp_path / name)
        again = load(tmp_path / name)
        assert type(again.columns[0].domain) is type(measure.columns[0].domain)
        assert np.array_equal(again.sample(seed=2), measure.sample(seed=2))

"""What a plan promises for chosen pairs holds: the mean error of their noisy tables is at most `ColumnPlan.pair_error`.

The error is the total variation distance of (noisy table) / N from (true table) / n on the groups that the release
itself decided, which move from one release to the next.

False alarms. Means of 40 releases or more are compared with bounds that they miss by at least 4 standard errors (normal
tails: one in 30,000 for a comparison), and the test says so itself.
"""

import numpy as np
import pytest

from privmeasure.domains import Box, Categories, Integers, Nullable, Product
from privmeasure.mechanisms import ColumnTree
from privmeasure.model.pairs import pair_table
from privmeasure.noise.entropy import Key
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource

RELATIONS = ["add-remove", "replace"]
EPSILON = {"add-remove": 2, "replace": 4}
"""Noise of one scale: replacing changes two cells."""
RUNS, APART = 40, 4


def mixed(rows):
    """A number, whole numbers, categories that follow from them, and values that are missing."""
    rng = np.random.default_rng(rows)
    x = rng.beta(2, 5, rows)
    age = np.clip(np.rint(60 * x + rng.normal(0, 4, rows)), 0, 60)
    rare = np.where(rng.random(rows) < 0.2, np.nan, rng.integers(0, 3, rows))
    return np.column_stack([x, age, age // 12, rare])


MIXED = Product([Box([(0, 1)]), Integers(0, 60), Categories(6), Nullable(Categories(3))])


def crowded(rows):
    """Nearly all rows alike: an error of the number of rows falls on one cell, and does not hide in the noise."""
    x = np.zeros((rows, 2))
    x[: rows // 20] = 1
    return x


def true_table(release, pair, points):
    """The true counts of a pair on its groups, by way of the released ranks."""
    places = []
    for j, groups in ((pair.first, pair.first_groups), (pair.second, pair.second_groups)):
        column = release.columns[j]
        cells = column.domain.locate(points[:, release.domain.columns[j]], column.level).view(np.int64)
        places.append(groups[release.ranks[j][cells]])
    table = np.zeros(pair.noisy.shape, np.int64)
    np.add.at(table, tuple(places), 1)
    return table


def errors(tool, points, runs=RUNS):
    """For each release, of its tree pairs and of its extra pairs: distances, noise in rows, and what was promised."""
    found = []
    for seed in range(runs):
        release = tool.release(ArraySource(points, width=points.shape[1], threads=1), Key.insecure(seed))
        plan, n = release.plan, len(points)
        for place, pair in enumerate(release.pairs):
            true, kind = true_table(release, pair, points), int(place >= plan.tree_pairs)
            assert pair.noisy.size <= plan.pair_cells[kind]
            assert true.sum() == n
            distance = np.abs(pair.noisy / plan.rows - true / n).sum() / 2
            noise = np.abs(pair.noisy - true).sum() / 2
            assert distance <= (2 * noise + abs(plan.rows - n)) / (2 * plan.rows) + 1e-12
            found.append((seed, kind, distance, plan.pair_error[kind], noise, pair.noisy.size * float(pair.scale) / 2))
    return np.array(found)


def means(found, kind, *columns):
    """The mean of each release's own mean: pairs of one release share its number of rows."""
    rows = found[found[:, 1] == kind]
    return [np.array([rows[rows[:, 0] == seed, c].mean() for seed in np.unique(rows[:, 0])]) for c in columns]


def below(values, bound):
    return values.mean() + APART * values.std(ddof=1) / len(values) ** 0.5 <= bound


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("public", [False, True])
def test_chosen_pairs_err_as_little_as_promised(relation, public):
    points = mixed(4000)
    tool = ColumnTree(MIXED, Privacy(EPSILON[relation], relation), rows=4000 if public else None, threads=1)
    found, plan = errors(tool, points), tool.plan(4000)
    assert plan.extra_pairs
    for kind in (0, 1):
        distances, promised, noise, planned_noise = means(found, kind, 2, 3, 4, 5)
        assert below(distances, plan.pair_error[kind])
        assert below(distances - promised, 0), "what the release itself says holds on average as well"
        excess = noise - planned_noise  # its mean is just below 0: E|Lap_Z(s)| is 1 / sinh(1/s), nearly s
        assert not below(-excess, 0), "given the groups, half of m s rows are misplaced at most, ..."
        assert noise.mean() > 0.95 * planned_noise.mean(), "... and not much fewer"


@pytest.mark.parametrize("people", [1, 3])
def test_the_noise_alone_is_no_bound_where_the_number_of_rows_is_private(people):
    """The term of the number of rows is needed: without it the promise is broken."""
    points = crowded(4000)
    tool = ColumnTree(Product([Categories(2), Categories(2)]), Privacy(1, "add-remove", people), threads=1)
    plan, (distances,) = tool.plan(4000), means(errors(tool, points, 200), 0, 2)
    assert below(distances, plan.pair_error[0])
    alone = plan.pair_error[0] - plan.rows_error / (2 * plan.rows)
    assert alone == pytest.approx(4 * float(plan.tree_scale) / (2 * plan.rows))
    assert not below(distances, alone)
    assert distances.mean() > alone


def test_a_noisy_table_may_be_farther_than_any_two_distributions():
    """The promise is not cut off at 1: it is about counts with noise, of which some are negative."""
    tool = ColumnTree(MIXED, Privacy("1/20", "replace"), threads=1)
    assert tool.plan(20).pair_error[0] > 1
    assert means(errors(tool, mixed(20)), 0, 2)[0].mean() > 1


def test_a_consistent_table_is_bounded_by_the_promise_and_its_distance_from_the_noisy_one():
    """That distance is public. The triangle inequality is all that is known of tables that were made consistent."""
    points, tool = mixed(4000), ColumnTree(MIXED, Privacy(2, "replace"), threads=1)
    release = tool.release(ArraySource(points, width=4, threads=1), Key.insecure(1))
    for pair in release.pairs:
        margins = [np.bincount(release.ranks[j], weights=release.masses[j]) for j in (pair.first, pair.second)]
        table, true = pair_table(pair, *margins, float(release.total)), true_table(release, pair, points)
        moved, noise = np.abs(table - pair.noisy).sum() / 2, np.abs(pair.noisy - true).sum() / 2
        assert np.abs(table - true).sum() / 2 <= moved + noise

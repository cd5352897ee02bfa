"""Bands of quantiles and means: the errors of noisy counts, the intervals that cells make, and what rules them out."""

from dataclasses import replace

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.domains import Box, Integers, Nullable, Product, Steps
from privmeasure.releases.intervals import Intervals, measured, value_codes
from privmeasure.releases.witnesses import (
    CorrelationNoise,
    ShareNoise,
    Witness,
    counted_groups,
    mean_band,
    part_inside,
    quantile_bands,
)
from privmeasure.tables.variables import variables

LINE, WIDE = Box([(0, 1)]), Product([Box([(0, 1)]), Nullable(Integers(0, 9)), Box([(0, 5)]), Box([(0, 2)])])


def plain(places):
    return places


def points(space, rows=600, seed=0):
    rng = np.random.default_rng(seed)
    if space is LINE:
        return rng.beta(2, 5, (rows, 1))
    kids = np.where(rng.random(rows) < 0.2, np.nan, rng.poisson(2, rows).clip(0, 9))
    return np.column_stack([rng.random(rows), kids, rng.gamma(2, 0.4, rows).clip(0, 5), 2 * rng.random(rows)])


def fitted(space, seed=0, **options):
    rows = points(space)
    usual = {"epsilon": 1, "neighbours": "add-remove", "mechanism": "pmm" if space is LINE else "columns"}
    made = pm.Synthesizer(space, **(usual | options))
    return made.fit(rows, insecure_seed=seed).release_, rows


def axis_of(release, place=0, step=0.0):
    known, at = measured(release, place)
    return known, Intervals.of(known.measure, at, plain, step=step)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("noisy", [True, False])
def test_rows_lie_in_the_intervals_of_their_cells(place, noisy):
    release, rows = fitted(WIDE)
    step = 1.0 if place == 1 else 0.0
    known, axis = axis_of(release, place, step)
    assert (axis.starts[1:] > axis.starts[:-1]).all()
    assert (axis.high[:-1] + step <= axis.low[1:] + 1e-12).all()
    if noisy:
        domain, level = known.measure.domain, known.measure.level
        cells = domain.locate(rows[:, [place]], level).view(np.int64)
        counts = axis.sums(np.bincount(cells, minlength=1 << known.measure.level))
        assert counts.tolist() == axis.counts(rows[:, place]).tolist()
    else:
        bare = Intervals.of(replace(known.measure, noisy=None), 0, plain, step=step)
        assert bare.low[0] == axis.low[0]
        assert bare.high[-1] == axis.high[-1]
        assert bare.masses.sum() == axis.masses.sum()


@pytest.mark.parametrize(
    ("space", "options"),
    [(LINE, {}), (LINE, {"neighbours": "replace"}), (LINE, {"recipe": pm.Recipe(schedule="sparse")}), (WIDE, {})],
    ids=["line", "replace", "sparse", "wide"],
)
def test_simulated_errors_are_as_large_as_errors_are(space, options):
    """Root mean squares of 80 releases from fixed seeds, and of their simulations, differ by less than 0.7 or 1.3."""
    scores = []
    for seed in range(80):
        release, rows = fitted(space, seed, **options)
        known, axis = axis_of(release)
        counts = known.counts(15, np.random.default_rng(seed))
        ends = np.cumsum(axis.sums(next(counts)) - axis.counts(rows[:, 0]))
        errors = np.array([np.cumsum(axis.sums(errors)) for errors in counts])
        middle = int(np.searchsorted(np.cumsum(axis.masses), axis.masses.sum() / 2))
        scores.append((ends[middle], errors[:, middle].std()))
    wrong, simulated = np.array(scores).T
    ratio = np.sqrt((wrong**2).mean() / (simulated**2).mean())
    assert 1 / 1.3 < ratio < 1 / 0.7


def test_counts_that_were_not_kept_say_nothing():
    release, _ = fitted(LINE)
    known, _ = measured(replace(release, noisy=None), 0)
    assert list(known.counts(3, np.random.default_rng(0))) == []


def four(masses, step=0.0):
    starts = np.array([0.0, 1.0, 2.0, 3.0])
    high = starts + 1 - step
    return Intervals(starts, starts, (starts + high) / 2, high, np.array(masses, float), step, np.arange(4))


def witness(axis, *errors, biased=False, quantiles=(0.5,)):
    made = Witness(axis, axis.masses, quantiles, biased=biased)
    for error in errors:
        made.add_run(axis.masses, axis.masses + error)
    return made


NOTHING = ([0, 0, 0, 0], [0, 0, 0, 0])


def test_a_quantile_may_lie_anywhere_in_its_cell():
    assert quantile_bands([witness(four([60, 20, 10, 10]), *NOTHING)], 0.9) == [(0.0, 1.0)]
    assert quantile_bands([witness(four([60, 20, 10, 10], step=1.0), *NOTHING)], 0.9) == [(0.0, 0.0)]


def test_noise_that_may_move_a_quantile_over_an_end_widens_its_band():
    noise = [5, -5, 0, 0], [-5, 5, 0, 0]
    assert quantile_bands([witness(four([48, 42, 5, 5]), *NOTHING)], 0.9) == [(1.0, 2.0)]
    assert quantile_bands([witness(four([48, 42, 5, 5]), *noise)], 0.9) == [(0.0, 2.0)]


def test_a_bias_of_the_runs_moves_the_band():
    """The released tail is lifted by 30 rows in every run, so the median lies lower than it was released."""
    lifted = [-30, 0, 0, 30]
    axis = four([45, 10, 10, 35])
    assert quantile_bands([witness(axis, *NOTHING)], 0.9) == [(1.0, 2.0)]
    assert quantile_bands([witness(axis, lifted, lifted, biased=True)], 0.9) == [(0.0, 1.0)]
    low, high = mean_band([witness(axis, lifted, lifted, biased=True)], 0.9)
    assert low < high < mean_band([witness(axis, *NOTHING)], 0.9)[1]


def test_runs_narrow_what_noisy_counts_leave_open_and_never_contradict_them():
    axis = four([96, 2, 1, 1])
    unsure = [0, -9, 0, 9], [0, 9, 0, -9]
    noise = witness(axis, *unsure, quantiles=(0.95,))
    assert quantile_bands([noise], 0.9) == [(0.0, 4.0)]
    assert quantile_bands([noise, witness(axis, *NOTHING, biased=True, quantiles=(0.95,))], 0.9) == [(0.0, 2.0)]
    elsewhere = Witness(axis, np.array([0.0, 0, 0, 100]), (0.5,), biased=True)
    elsewhere.errors = witness(axis, *NOTHING).errors
    assert quantile_bands([witness(axis, *NOTHING), elsewhere], 0.9) == [(0.0, 1.0)]
    assert mean_band([witness(axis, *NOTHING), elsewhere], 0.9) == mean_band([witness(axis, *NOTHING)], 0.9)


def test_the_mean_has_room_for_the_places_of_rows_in_their_cells():
    """All rows in one cell may lie at either end; a density that grows steadily leaves less room, on one side."""
    assert four([0, 100, 0, 0]).room() == (0.5, 0.5)
    down, up = four([10, 20, 30, 40]).room()
    assert 0 < up - 0.5 * 0.4 < 0.1  # the last cell is heavier than both its neighbours: half of its width
    assert down == pytest.approx(0.5 * 0.4)
    assert four([1, 1, 1, 1], step=1.0).room() == (0.0, 0.0)


def test_values_that_are_all_missing_have_the_whole_range():
    axis = four([0, 0, 0, 0])
    assert quantile_bands([witness(axis, *NOTHING)], 0.9) == [(0.0, 4.0)]
    assert mean_band([witness(axis, *NOTHING)], 0.9) == (0.0, 4.0)


def test_groups_are_those_in_which_a_pair_was_counted():
    release, rows = fitted(WIDE, epsilon=8)
    found = {(i, j): counted_groups(release, i, j, rows) for i in range(4) for j in range(i)}
    known = {frozenset((pair.first, pair.second)) for pair in release.pairs}
    assert known
    assert {frozenset(pair) for pair, groups in found.items() if groups is not None} == known
    pair = release.pairs[0]
    one, two = counted_groups(release, pair.first, pair.second, rows)
    assert (one.max() < pair.noisy.shape[0], two.max() < pair.noisy.shape[1]) == (True, True)
    again = counted_groups(release, pair.second, pair.first, rows)
    assert [g.tolist() for g in again] == [two.tolist(), one.tolist()]
    assert counted_groups(fitted(LINE)[0], 0, 0, points(LINE)) is not None


def test_the_part_inside_of_groups_is_nothing_if_groups_hold_single_values():
    values = np.array([1.0, 1, 5, 5, np.nan])
    assert part_inside(values, np.array([0, 0, 1, 1, 1])) == 0
    assert part_inside(values, np.zeros(5, np.int64)) == 1
    assert part_inside(np.full(3, np.nan), np.zeros(3, np.int64)) == 0


def test_steps_and_integers_end_at_their_last_number():
    for space in (Integers(0, 120), Steps(0, 120)):
        release = pm.Synthesizer(space, epsilon=1, neighbours="replace").fit(
            np.arange(600.0)[:, None] % 121, insecure_seed=1
        )
        (v,) = variables(space)
        axis = Intervals.of(release.release_, 0, v.amounts, step=v.step)
        assert (axis.low[0], axis.high[-1]) == (0.0, 120.0)
        assert (axis.low[1:] == axis.high[:-1] + 1).all()


def test_shares_are_those_of_cells_that_hold_one_value():
    codes = np.array([0, 1, 1, -1])
    noise = ShareNoise(codes, 2, np.array([10.0, 20, 30, 40]))
    for error in ([5.0, 0, 0, -5], [-5.0, 0, 0, 5]):
        noise.add(np.array(error))
    low, high = noise.limits(0.9)
    assert (low + high) / 2 == pytest.approx([0.1, 0.5])
    assert high[0] - low[0] > 0.1 > high[1] - low[1] == 0


@pytest.mark.parametrize("space", [pm.Categories(5), Nullable(pm.Categories(3))], ids=str)
def test_codes_of_categories_are_their_positions(space):
    rows = np.arange(300.0)[:, None] % space.size(3)
    if isinstance(space, Nullable):
        rows[rows == 3] = np.nan
    made = pm.Synthesizer(space, epsilon=9, neighbours="replace", depth=3).fit(rows, insecure_seed=1).release_
    count = 5 if space.size(3) == 5 else 3
    codes = value_codes(made, 0, count)
    counts = np.bincount(space.locate(rows, 3).view(np.int64), minlength=8)
    for code in range(count):
        assert counts[codes == code].sum() == (rows == code).sum()
    assert counts[codes == count].sum() == np.isnan(rows).sum()


def test_a_correlation_by_noisy_counts_is_that_of_the_cells():
    x, y = np.array([0.0, 1, 2, np.nan]), np.array([1.0, 1, 4, 3])
    leaves = np.array([30.0, 20, 10, 5])
    noise = CorrelationNoise(x, y, leaves)
    rows = np.repeat([[0, 1], [1, 1], [2, 4]], [30, 20, 10], axis=0)
    assert noise.value == pytest.approx(np.corrcoef(rows.T)[0, 1])
    for error in ([3.0, -3, 0, 0], [-3.0, 3, 0, 0]):
        noise.add(np.array(error))
    low, high = noise.limits(0.9)
    assert low < noise.value < high < low + 0.2
    noise.add(np.array([30.0, 20, 0, 0]))  # without these rows nothing varies
    assert noise.limits(0.9) == (-1.0, 1.0)

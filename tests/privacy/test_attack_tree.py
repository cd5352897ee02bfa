"""Attacks on the default tree of points in a box: what is public, what is promised, what happens half-way."""

import json
import math
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from privmeasure import PMM, Box, Privacy, Recipe, Synthesizer
from privmeasure.errors import ReleaseError
from privmeasure.estimates import acceptance
from privmeasure.estimates.acceptance import keep_or_replace, level_of_search
from privmeasure.estimates.projection import can_project
from privmeasure.mechanisms import base, pmm, tree
from privmeasure.plans.bounds import t6, t7
from privmeasure.plans.schedule import anchor_of
from privmeasure.releases.files import HEADER_KEY
from privmeasure.transport.haar import haar_differences

# ------------------------------------------------------------------------------------------------- the fallback


@pytest.mark.parametrize("d", range(1, 13))
def test_a_closest_measure_can_be_searched_wherever_it_would_be(d):
    """Five axes at depth 14: finer and coarser levels have few enough arcs, this one has not, and spent for nothing."""
    for box in (Box([(0, 1)] * d), Box([(0, 1)] * d, [1.0] + [0.01] * (d - 1))):
        for depth in range(19):
            level = level_of_search(box, depth)
            assert can_project(box, level)
            assert level == depth or not can_project(box, level + 1)


@pytest.mark.deep
def test_the_fallback_of_five_axes_works_at_depth_14():
    box, rng = Box([(0, 1)] * 5), np.random.default_rng(0)
    raw = haar_differences(rng.normal(0, 1, 1 << 14) * (rng.random(1 << 14) < 0.01))
    mass = keep_or_replace(box, np.eye(1 << 14, dtype=np.int64)[0] * 300, 300, raw, 0.0, 14)
    assert mass.sum() == 300
    assert mass.min() >= 0


# ------------------------------------------------------------------------------------------------- the promise


@pytest.mark.parametrize("epsilon", ["1/10", "1", "50"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("d", [1, 2])
def test_the_guarantee_is_that_of_what_is_done(monkeypatch, d, relation, epsilon):
    """T6 is proved of shrunk masses and T7 of masses that may give way: the second is what is done, always."""
    given = []

    def spy(*arguments, allowed, **options):
        given.append(allowed)
        return tree.tree_masses(*arguments, allowed=allowed, **options)

    monkeypatch.setattr(pmm, "tree_masses", spy)
    for rows in (100, 3000):
        release = Synthesizer(Box([(0, 1)] * d), epsilon=epsilon, neighbours=relation).fit(np.full((rows, d), 0.3))
        assert [bound.name for bound in release.plan_.bounds if bound.applies] == ["T7"]
        assert given.pop() is not None


@pytest.mark.parametrize("schedule", ["ladder", "sparse", "every level"])
def test_the_error_of_the_number_of_rows_is_that_of_the_number_which_is_released(schedule):
    """Only the ladder estimates it from all levels; elsewhere level 0 alone is what is released, and errs more."""
    box = Box([(0, 1)] * 2)
    mechanism = PMM(box, Privacy(1, "add-remove"), Recipe(schedule=schedule, shrinkage="groups"), depth=6)
    plan = mechanism.plan(2000)
    scales = dict(zip(plan.levels, plan.scales, strict=True))
    bounds = {bound.name: bound for bound in plan.bounds}
    estimated = schedule == "ladder"
    assert bounds["T6"].value == t6(box, scales, 6, 2000, box.diameter(6), estimated=estimated)
    anchor = anchor_of(schedule, box, 6)
    assert bounds["T7"].value == t7(box, scales, anchor, 2000, estimated=estimated).guarantee
    if not estimated:
        assert bounds["T7"].value > t7(box, scales, anchor, 2000).guarantee


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("weights", [None, (1.0, 0.03)], ids=["square", "strip"])
def test_a_malicious_rule_stays_within_the_plan(monkeypatch, relation, weights):
    """Whatever the rule makes, what is released is near the data; and without acceptance it would not be."""

    def malicious(prepared, *_):
        return [(np.full_like(difference, -1e9),) for (difference,) in prepared]

    monkeypatch.setattr("privmeasure.estimates.shrinkage.shrink", malicious)
    box, data = Box([(0, 1)] * 2, weights), np.full((3000, 2), 0.2)
    found = []
    for seed in range(10):
        made = Synthesizer(box, epsilon=2, neighbours=relation, depth=8).fit(data, insecure_seed=seed)
        assert made.release_.total == made.plan_.rows
        rows = made.sample(seed=seed)
        found.append(box.distance(rows, np.full_like(rows, 0.2)).mean())  # the data are one point
    plan = Synthesizer(box, epsilon=2, neighbours=relation, depth=8).plan(rows=3000)
    assert np.mean(found) <= plan.guarantee < 0.5
    monkeypatch.setattr(acceptance, "distance_from_raw", lambda *_: 0.0)
    made = Synthesizer(box, epsilon=2, neighbours=relation, depth=8).fit(data, insecure_seed=1)
    rows = made.sample(seed=1)
    assert box.distance(rows, np.full_like(rows, 0.2)).mean() > plan.guarantee


# ------------------------------------------------------------------------------------------------- what is public


class Opposite:
    """Noise that makes every noisy count the same, whatever was counted: 0 for a cell, 50 for the number of rows."""

    def __init__(self, counts, rows):
        self.counts, self.rows = counts, rows

    def draw(self, key, *, part, level, cells):
        key.words(part=part, level=level, cells=cells)
        return np.full(1, 50 - self.rows) if level == 0 else -self.counts[level][cells.astype(np.int64)]


HOSTILE = [math.nan, math.inf, -math.inf, -0.0, 0.5, 0.25, 5e-324, 1e308, -1e308]


@pytest.mark.parametrize("rows_per_person", [1, 5])
def test_with_equal_noisy_counts_two_files_are_equal_in_every_byte(monkeypatch, tmp_path, rows_per_person):
    """Header, masses, noisy counts and the size of the file: no rows, one hostile row, many rows."""
    box, files = Box([(0, 1)] * 2), set()
    for data in (np.empty((0, 2)), *(np.full((1, 2), value) for value in HOSTILE), np.full((999, 2), 0.75)):
        cells = box.locate(data, 8).astype(np.int64)
        counts = {level: np.bincount(cells >> (8 - level), minlength=1 << level) for level in range(9)}
        law = Opposite(counts, len(data))
        for module in (base, tree):
            monkeypatch.setattr(module, "law_of", lambda name, scale, law=law: law)
        made = Synthesizer(box, epsilon=1, neighbours="add-remove", depth=8, rows_per_person=rows_per_person)
        made.fit(data)
        made.save(tmp_path / "release")
        found = pq.read_table(tmp_path / "release")
        header = json.loads(found.schema.metadata[HEADER_KEY])
        assert header.pop("id") == made.release_id
        files.add((json.dumps(header), str(found.to_pydict()), (tmp_path / "release").stat().st_size))
    assert len(files) == 1


# ------------------------------------------------------------------------------------------------- half-way


@pytest.mark.parametrize("error", [MemoryError("17 rows"), KeyboardInterrupt("17 rows"), ValueError("17 rows")])
def test_what_fails_after_the_noise_is_spent_and_shows_nothing(monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(tree, "shrunk_leaves", fail)
    made = Synthesizer(Box([(0, 1)] * 2), epsilon=1, neighbours="add-remove")
    with pytest.raises((ReleaseError, KeyboardInterrupt)) as caught:
        made.fit(np.full((100, 2), 0.5))
    assert made.spent
    assert "17" not in str(caught.value)


# ------------------------------------------------------------------------------------------------- extreme promises


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2, 1 << 40])
@pytest.mark.parametrize("epsilon", [Fraction(10**30 + 1, 10**30), Fraction(1, 9999), 50])
def test_plans_of_extreme_values_are_finite_and_add_up(epsilon, rows, relation):
    plan = PMM(Box([(0, 1), (0, 1e-280), (-8e307, 8e307)], [1, 1e-9, 1]), Privacy(epsilon, relation)).plan(rows)
    assert plan.spent <= epsilon
    assert all(math.isfinite(bound.value) for bound in plan.bounds)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_no_rows_and_one_row(rows):
    made = Synthesizer(Box([(0, 1)] * 2), epsilon=1, neighbours="add-remove").fit(np.full((rows, 2), math.nan))
    assert made.release_.total == made.plan_.rows >= 1
    assert 0 <= made.release_.certificate().value <= 1

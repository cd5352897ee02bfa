"""Nothing that is shown is a function of a private value: not the plan, not the questions, not an error, not a warning.

Under "add-remove" the number of rows is private. Most tests here force the noisy number of rows to a fixed value and
then change the data as much as they like: everything but the masses must stay the same.
"""

import copy
import logging
import math
import pickle
import random
import re
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure import PMM, Box, Privacy, PrivmeasureError, Recipe, Synthesizer
from privmeasure.counts import CellCounts, Partition
from privmeasure.errors import ArgumentError, DataError, SpentError
from privmeasure.mechanisms import base, tree
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import discrete_laplace
from privmeasure.releases.files import HEADER_KEY
from privmeasure.sources.arrays import ArraySource
from reference.reachable import reachable

RECIPES = [
    Recipe(),
    Recipe(placement="centre"),
    Recipe(inference="none", rule="uniform"),
    Recipe("every level", "blue"),
    Recipe("every level", "none", "proportional"),
]


class Forced:
    """The real noise, but for the root: its noise is what makes the noisy number of rows equal to `total`."""

    def __init__(self, scale, rows, total):
        self.law, self.noise = discrete_laplace(scale), total - rows

    def draw(self, key, *, part, level, cells):
        return np.full(1, self.noise) if level == 0 else self.law.draw(key, part=part, level=level, cells=cells)


@pytest.fixture
def force(monkeypatch):
    """Return a function that fixes the noisy number of rows of data with a known number of rows."""

    def force(rows, total):
        monkeypatch.setattr(base, "law_of", lambda name, scale: Forced(scale, rows, total))

    return force


class Spy:
    """A source that writes down which partitions it was asked for, call by call."""

    def __init__(self, source):
        self.source, self.asked = source, []

    def count(self, partitions, progress=None):
        self.asked.append([[(repr(axis.domain), axis.level) for axis in partition.axes] for partition in partitions])
        return self.source.count(partitions, progress)


def header(synthesizer, path):
    """Return the header of the file but for its id, which is drawn before the data are opened."""
    made = synthesizer.release_id
    synthesizer.save(path)
    text = pq.read_schema(path).metadata[HEADER_KEY]
    assert text.count(made.encode()) == 1
    return text.replace(made.encode(), b"id")


# ------------------------------------------------------------------------------------------------- (a) the plan


@pytest.mark.parametrize("options", [{}, {"rows": 1000}, {"depth": 6}], ids=str)
@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_1023_and_1024_rows_with_the_same_noisy_number_look_the_same(force, tmp_path, recipe, options):
    """log2(epsilon n) jumps between these two: a depth that read the true n would tell them apart for certain."""
    rng, shown = np.random.default_rng(3), []
    for rows in (1023, 1024, 0, 1, 10**5):
        force(rows, 1024)
        synthesizer = Synthesizer(Box([(0, 1)] * 2), epsilon=1, neighbours="add-remove", recipe=recipe, **options)
        synthesizer.fit(rng.random((rows, 2)))
        plan = synthesizer.plan_
        assert plan.rows == synthesizer.release_.total
        assert plan.rows_are == "released"
        text = header(synthesizer, tmp_path / "release")
        if recipe.schedule == "ladder":  # the total is estimated from all noisy counts, which no test forces
            plan, text = replace(plan, rows=1024, bounds=()), b""
        assert plan.rows == 1024
        shown.append(
            (
                plan,
                str(plan),
                text,
                repr(synthesizer.release_.recipe),
                synthesizer.release_.placement,
            )
        )
    assert all(one == shown[0] for one in shown)


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_release_is_a_function_of_the_noisy_counts_alone(force, monkeypatch, tmp_path, recipe, neighbours):
    """With all noisy counts forced nothing of the data is left: not in the masses, the total, the plan or the file."""

    def forced(counts, level, law, key, part, threads):
        return np.random.default_rng(level).poisson(1024 / len(counts), len(counts))

    monkeypatch.setattr(tree, "add_noise", forced)
    shown, rng = [], np.random.default_rng(0)
    for points in (
        rng.random((1000, 2)),
        np.full((1000, 2), 0.3),
        rng.random((1 if neighbours == "add-remove" else 1000, 2)),
    ):
        force(len(points), 900)
        synthesizer = Synthesizer(Box([(0, 1)] * 2), epsilon=1, neighbours=neighbours, recipe=recipe).fit(points)
        release = synthesizer.release_
        shown.append((header(synthesizer, tmp_path / "release"), release.cells.tolist(), release.mass.tolist()))
    assert shown[0] == shown[1] == shown[2]


def test_the_plan_is_that_of_the_released_number(force):
    depths = set()
    for total in (1, 100, 1023, 1024, 10**5):
        force(500, total)
        synthesizer = Synthesizer(Box([(0, 1)]), epsilon=1, neighbours="add-remove").fit(np.full(500, 0.3))
        expected = synthesizer.plan(rows=total)
        for field in ("depth", "levels", "budgets", "scales", "cells"):
            assert getattr(synthesizer.plan_, field) == getattr(expected, field)
        assert synthesizer.plan_.rows == synthesizer.release_.total
        depths.add(synthesizer.plan_.depth)
    assert len(depths) > 3
    for total in (1, 100, 10**5):  # where the number bought is the total, everything follows it
        force(500, total)
        synthesizer = Synthesizer(
            Box([(0, 1)]), epsilon=1, neighbours="add-remove", recipe=Recipe(shrinkage="none")
        ).fit(np.full(500, 0.3))
        assert replace(synthesizer.plan_, rows_are="assumed") == synthesizer.plan(rows=total)


def test_a_public_number_of_rows_is_not_changed_by_the_data(force):
    plans = []
    for rows in (0, 7, 4000):
        force(rows, 900)
        synthesizer = Synthesizer(Box([(0, 1)]), epsilon=1, neighbours="add-remove", rows=2000).fit(np.ones(rows))
        plans.append(replace(synthesizer.plan_, rows=900, bounds=()))  # the total is estimated from all noisy counts
    assert plans[0] == plans[1] == plans[2]
    assert plans[0].depth == synthesizer.plan(rows=2000).depth


# ------------------------------------------------------------------------------------------------- (b) the questions


def questions(mechanism, points):
    spy = Spy(ArraySource(points, width=mechanism.domain.width))
    mechanism.release(spy, Key.fresh())
    return spy.asked


def test_the_total_is_asked_first_and_then_what_the_released_number_says(force):
    box, rng = Box([(0, 1)]), np.random.default_rng(4)
    mechanism = PMM(box, Privacy(1, "add-remove"))
    for total in (1, 1000, 10**5):
        depth = mechanism.plan(total).depth
        for rows in (0, 3, 4096):
            force(rows, total)
            first, second = questions(mechanism, rng.random(rows))
            assert first == [[]]  # one cell: all rows
            assert second == [[(repr(box), depth)]]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("options", [{"depth": 5}, {"rows": 640}, {"rows": 640, "depth": 3}], ids=str)
def test_a_plan_that_is_known_asks_once(neighbours, options):
    mechanism = PMM(Box([(0, 1)]), Privacy(1, neighbours), **options)
    depth = mechanism.plan(640).depth
    for points in (np.zeros(1), np.linspace(0, 1, 3000)):
        assert questions(mechanism, points) == [[[(repr(mechanism.domain), depth)]]]


# ------------------------------------------------------------------------------------------------- (c) the behaviour

WILD = {
    "ordinary": [0.25, 0.5],
    "missing": [math.nan, math.nan],
    "infinite": [math.inf, -math.inf],
    "huge": [1e308, -1e308],
    "tiny": [5e-324, -5e-324],
    "outside": [-3.0, 17.0],
    "faces": [0.0, 1.0],
    "signalling": np.array([0x7FF0000000000001, 0xFFF0000000000001], np.uint64).view(np.float64).tolist(),
}


def behaviour(synthesizer, data, caplog):
    """Everything that an onlooker sees of a fit, but for the release itself."""
    calls, caught = [], None
    caplog.clear()
    with warnings.catch_warnings(record=True) as heard, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        try:
            synthesizer.fit(data, progress=lambda stage, fraction: calls.append((stage, fraction)))
        except Exception as error:
            caught = (type(error), str(error))
    return caught, calls, [str(one.message) for one in heard], caplog.messages


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_the_number_of_rows_changes_nothing_that_is_seen(force, caplog, recipe, threads):
    seen = []
    for rows in (0, 1, 2, 5000, 30_000):
        force(rows, 1000)
        synthesizer = Synthesizer(Box([(0, 1)]), epsilon=1, neighbours="add-remove", recipe=recipe, threads=threads)
        seen.append(behaviour(synthesizer, np.full(rows, 0.7), caplog))
    assert all(one == seen[0] for one in seen)
    error, calls, heard, logged = seen[0]
    assert (error, heard, logged) == (None, [], [])
    assert calls[-1] == ("release", 1.0)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.longdouble])
def test_no_value_changes_anything_that_is_seen(caplog, dtype, neighbours):
    """Nor do the caller's settings for floating-point errors turn a value into an exception."""
    seen = {}
    for name, values in WILD.items():
        with np.errstate(all="ignore"):
            column = np.array(values).astype(dtype)
            if name == "signalling" and dtype is np.float32:
                column = np.array([0x7F800001, 0xFF800001], np.uint32).view(np.float32)
            if name == "huge" and dtype is np.longdouble:
                column = column * np.longdouble(10) ** 100
        data = np.stack([column, column[::-1]], axis=1)
        for mode in ("warn", "raise"):
            with np.errstate(all=mode):
                synthesizer = Synthesizer(Box([(0, 1), (-5, 9)]), epsilon=1, neighbours=neighbours, depth=8, threads=1)
                seen[name, mode] = behaviour(synthesizer, data, caplog)
    assert all(one == seen["ordinary", "warn"] for one in seen.values()), seen
    assert seen["ordinary", "warn"][0] is None
    assert seen["ordinary", "warn"][2:] == ([], [])


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_shape_of_the_result_does_not_tell_whether_there_were_rows(force, width):
    for data in (np.empty((0, width)), np.full((1, width), 0.3), np.full((9, width), 0.3)):
        force(len(data), 4)
        rows, columns = pm.synthesize(data, epsilon=1, neighbours="add-remove", bounds=[(0, 1)] * width).shape
        assert columns == width
        assert rows >= 1  # an estimate from all noisy counts
    force(0, 4)
    empty = pm.synthesize([], epsilon=1, neighbours="add-remove", bounds=[(0, 1)] * width)
    assert len(empty) >= 1
    assert empty.shape[1:] == (() if width == 1 else (width,))


# ------------------------------------------------------------------------------------------------- (d) the budgets


def random_case(rng):
    dimension = rng.choice([1, 1, 2, 2, 3, 5, 10])
    weights = [rng.choice([0.25, 1.0, 3.0]) for _ in range(dimension)] if rng.random() < 0.3 else None
    options = {}
    if rng.random() < 0.5:
        options["rows"] = rng.choice([1, 2, 10, 1000, 10**6, 10**9])
    if rng.random() < 0.5:
        options["depth"] = rng.choice([0, 1, 2, 3, 7, 12, 20, 30])
    if rng.random() < 0.3:
        options["max_cells"] = rng.choice([2, 64, 2**15])
    epsilon = rng.choice([0.001, 0.1, 0.3, 1, 2.5, "1/3", "7/9", 10, 50])
    privacy = Privacy(epsilon, rng.choice(["add-remove", "replace"]), rows_per_person=rng.choice([1, 1, 2, 7, 100]))
    schedule, inference = rng.choice(["sparse", "every level"]), rng.choice(["blue", "none"])
    rule = "signed" if inference == "blue" else rng.choice(["signed", "uniform", "proportional"])
    return Box([(0, 1)] * dimension, weights), privacy, Recipe(schedule, inference, rule), options


def test_budgets_add_up_to_at_most_epsilon_exactly(monkeypatch):
    """As fractions, over a random grid; and the noise of a level is what its budget buys, exactly."""
    rng, made, refused = random.Random(5), 0, 0
    monkeypatch.setattr(base, "law_of", lambda name, scale: None)  # tables are not needed to plan
    for _ in range(1500):
        domain, privacy, recipe, options = random_case(rng)
        try:
            plan = PMM(domain, privacy, recipe, **options).plan(rng.choice([1, 2, 100, 1023, 1024, 10**6, 10**9]))
        except ArgumentError:
            refused += 1  # a depth beyond the domain
            continue
        made += 1
        assert all(type(value) is Fraction for value in (*plan.budgets, *plan.scales))
        assert all(budget > 0 for budget in plan.budgets)
        assert sum(plan.budgets, Fraction(0)) == plan.spent <= privacy.epsilon
        changed = privacy.rows_per_person * (2 if privacy.neighbours == "replace" else 1)
        assert all(scale * budget == changed for scale, budget in zip(plan.scales, plan.budgets, strict=True))
        assert list(plan.levels) == sorted(set(plan.levels))
        assert all(0 <= level <= plan.depth for level in plan.levels)
        assert (0 in plan.levels) == (privacy.neighbours == "add-remove")
        if plan.depth > 0:
            assert plan.levels[-1] == plan.depth
            assert plan.spent == privacy.epsilon  # nothing is wasted either
    assert made > 1000
    assert refused < 200


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_what_is_spent_is_what_was_planned(monkeypatch, recipe):
    """The scales that the release draws with, level by level, against the plan that it prints."""
    drawn = []

    class Recorder:
        def __init__(self, name, scale):
            self.scale = scale

        def draw(self, key, *, part, level, cells):
            drawn.extend((part, level, int(cell), self.scale) for cell in cells)
            return discrete_laplace(self.scale).draw(key, part=part, level=level, cells=cells)

    for module in (base, tree):
        monkeypatch.setattr(module, "law_of", Recorder)
    for neighbours in ("add-remove", "replace"):
        for options in ({}, {"rows": 700}, {"depth": 5}):
            drawn.clear()
            synthesizer = Synthesizer(
                Box([(0, 1)]), epsilon=2, neighbours=neighbours, recipe=recipe, rows_per_person=3, **options
            )
            plan = synthesizer.fit(np.linspace(0, 1, 500)).plan_
            expected = [
                (0, level, cell, scale)
                for level, scale in zip(plan.levels, plan.scales, strict=True)
                for cell in range(1 << level)
            ]
            assert sorted(drawn) == expected


def test_a_float_epsilon_is_the_decimal_that_it_prints_as():
    assert Privacy(0.1, "replace").epsilon == Fraction(1, 10)
    assert Privacy(np.float64(0.3), "replace").epsilon == Fraction(3, 10)


# ------------------------------------------------------------------------------------------------- (e) the words


def message(data, *, width=1, neighbours="add-remove"):
    with pytest.raises(PrivmeasureError) as caught:
        Synthesizer(Box([(0, 1)] * width), epsilon=1, neighbours=neighbours).fit(data)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize(
    ("width", "wrong"),
    [
        (1, [np.array(["a"]), np.array(["z"] * 77)]),
        (1, [np.array([None, 1.0]), np.array(["secret", 2], object), np.empty(0, object)]),
        (1, [np.array([1j]), np.full(9, 3 + 4j)]),
        (2, [np.zeros(3), np.full(41, 0.9), np.full(2, math.nan)]),
        (2, [np.zeros((3, 3)), np.full((41, 3), 0.9), np.empty((0, 3))]),
        (2, [np.zeros((3, 2, 2)), np.full((41, 2, 2), 7.0)]),
        (1, [np.float64(0.1), np.float64(0.9)]),
    ],
    ids=["text", "objects", "complex", "one column", "too wide", "three axes", "a number"],
)
def test_errors_of_the_data_path_do_not_depend_on_the_data(width, wrong):
    messages = {message(data, width=width) for data in wrong}
    assert len(messages) == 1
    ((kind, text),) = messages
    assert kind is DataError
    assert not re.search(r"41|77|30|31|secret|0\.\d", text)


def test_no_rows_under_replace_is_an_error_that_names_the_argument():
    empty = [np.empty((0, 1)), np.empty(0), []]
    ((kind, text),) = {message(data, neighbours="replace") for data in empty}
    assert kind is DataError
    assert "neighbours='replace'" in text


def test_private_things_show_nothing():
    few, many = np.array([0.125]), np.full(54_321, 0.875)
    sources = [ArraySource(points, width=1) for points in (few, many)]
    counts = [source.count([Partition.of(Box([(0, 1)]), 3)])[0] for source in sources]
    for private in (sources, counts):
        assert repr(private[0]) == repr(private[1]) == str(private[0])
        assert not re.search(r"\d", repr(private[0]))
    keys = [Key(bytes([i]) * 32, private=True) for i in (1, 2)]
    assert repr(keys[0]) == repr(keys[1])
    assert not re.search(r"\d", repr(keys[0]))
    unfitted = [Synthesizer(Box([(0, 1)]), epsilon=1, neighbours="add-remove") for _ in (0, 1)]
    for synthesizer, points in zip(unfitted, (few, many), strict=True):
        synthesizer.fit(points)
        assert not any(value is points for value in vars(synthesizer).values())


@pytest.mark.parametrize("save", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
def test_private_counts_and_keys_cannot_be_pickled_or_copied(save):
    for private in (CellCounts(2, np.array([3, 4])), Key.fresh()):
        with pytest.raises(SpentError) as caught:
            save(private)
        assert not re.search(r"\d", str(caught.value))


def test_the_key_is_destroyed_whatever_happens():
    class Broken:
        def count(self, partitions, progress=None):
            raise OSError("the disk is gone")

    for source, error in ((Broken(), DataError), (ArraySource(np.empty(0), width=1), DataError)):
        key = Key.fresh()
        with pytest.raises(error):
            PMM(Box([(0, 1)]), Privacy(1, "replace")).release(source, key)
        with pytest.raises(SpentError):
            key.words(part=0, level=0, cells=np.zeros(1, np.uint64))


def test_the_release_holds_no_private_object(force):
    """What the release refers to, directly or not, is public: no counts, no source, no key, no data."""
    force(300, 310)
    points = np.linspace(0, 1, 300)
    release = Synthesizer(Box([(0, 1)]), epsilon=1, neighbours="add-remove").fit(points).release_
    found = list(reachable(release))
    assert sum(isinstance(value, np.ndarray) for value in found) > 1
    for value in found:
        assert not isinstance(value, CellCounts | ArraySource | Key)
        assert not (isinstance(value, np.ndarray) and np.shares_memory(value, points))


# ------------------------------------------------------------------------------------------------- (f) before the data


class Untouchable:
    """Data that may not be looked at."""

    def __array__(self, *args, **kwargs):
        raise AssertionError("the data were touched")

    __len__ = __iter__ = __getitem__ = __array__


BAD_EPSILONS = [0, -1, 0.0, -0.5, math.nan, math.inf, -math.inf, 51, 50.000001, "abc", "nan", None, True, False, [], 1j]


@pytest.mark.parametrize("epsilon", BAD_EPSILONS, ids=repr)
def test_a_bad_epsilon_is_refused_before_the_data_are_touched(epsilon):
    with pytest.raises(ArgumentError, match="epsilon must be a number above 0 and at most 50"):
        pm.synthesize(Untouchable(), epsilon=epsilon, neighbours="replace", bounds=[(0, 1)])
    with pytest.raises(ArgumentError, match="epsilon"):
        Synthesizer(Box([(0, 1)]), epsilon=epsilon, neighbours="add-remove")


@pytest.mark.parametrize(
    ("argument", "bad"),
    [
        ("neighbours", None),
        ("neighbours", "bounded"),
        ("bounds", [(1, 0)]),
        ("bounds", [(0, math.inf)]),
        ("rows", 0),
        ("rows", 2.5),
        ("threads", 0),
    ],
)
def test_other_bad_arguments_too(argument, bad):
    good = {"epsilon": 1, "neighbours": "replace", "bounds": [(0, 1)]}
    with pytest.raises(ArgumentError, match=argument):
        pm.synthesize(Untouchable(), **(good | {argument: bad}))


def test_neighbours_has_no_default():
    with pytest.raises(TypeError, match="neighbours"):
        pm.synthesize(Untouchable(), epsilon=1, bounds=[(0, 1)])
    with pytest.raises(TypeError, match="neighbours"):
        Privacy(1)


def test_the_data_would_have_been_touched():
    with pytest.raises(AssertionError, match="touched"):
        pm.synthesize(Untouchable(), epsilon=1, neighbours="replace", bounds=[(0, 1)], insecure_seed=1)


def test_a_second_fit_is_refused_before_the_data_are_touched():
    synthesizer = Synthesizer(Box([(0, 1)]), epsilon=1, neighbours="replace").fit(np.ones(10))
    with pytest.raises(SpentError, match="spend epsilon again"):
        synthesizer.fit(Untouchable())

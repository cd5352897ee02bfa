"""The public interface: names, shapes, small inputs, and errors that name the problem and show no data."""

import inspect
import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest

import privmeasure as pm
from depth import some
from privmeasure.errors import ArgumentError, DataError, PrivmeasureError, SpentError

CORE = {
    "evaluate",
    "PMM",
    "PSMM",
    "Box",
    "CellMeasure",
    "Plan",
    "Privacy",
    "PrivmeasureError",
    "ProgressBar",
    "Recipe",
    "Schema",
    "Synthesizer",
    "TableRelease",
    "load",
    "sample_on_spark",
    "synthesize",
    "Ledger",
    "Query",
    "Union",
    "typical_error",
}
COLUMNS = {
    "Boolean",
    "Category",
    "Constant",
    "Date",
    "Datetime",
    "Derived",
    "Drop",
    "Integer",
    "Number",
    "Place",
    "Time",
}
DOMAINS = {"Categories", "Circle", "Finite", "Integers", "Nullable", "Product", "Sphere"}
RELATIONS = ["add-remove", "replace"]
UNIT = [(0, 1)]
SECRET = 7381.25
"""A value that no message may show."""


def synthesize(X, **options):
    return pm.synthesize(X, **({"epsilon": 1, "neighbours": "replace", "bounds": UNIT} | options))


def synthesizer(space=None, **options):
    return pm.Synthesizer(space or pm.Box(UNIT), **({"epsilon": 1, "neighbours": "replace"} | options))


# -------------------------------------------------------------------------------------------------------------- names


def test_exported_names():
    assert set(pm.__all__) == CORE | DOMAINS | COLUMNS
    assert {*dir(pm)} == {*pm.__all__, "__version__"}
    assert len(pm.__all__) == len(set(pm.__all__))
    order = [(not name.isupper(), name[0].islower(), name) for name in pm.__all__]  # constants, classes, functions
    assert order == sorted(order)
    for name in pm.__all__:
        documentation = inspect.getdoc(getattr(pm, name))
        assert documentation, name
        assert documentation.splitlines()[0].endswith("."), name


def test_names_are_loaded_when_the_first_is_asked_for():
    """Neither a room nor what Python asks of every module loads them: the command line starts at once."""
    lines = [
        "import sys",
        "from privmeasure import errors, version",
        "import privmeasure",
        "assert not hasattr(privmeasure, '__wrapped__')",
        "assert 'privmeasure.public' not in sys.modules",
        "from privmeasure import *",
        "assert Box is privmeasure.Box",
        "assert not hasattr(privmeasure, 'nothing')",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_public_methods_are_documented():
    for name in pm.__all__:
        thing = getattr(pm, name)
        if inspect.isclass(thing):
            for attribute, value in vars(thing).items():
                if not attribute.startswith("_") and (callable(value) or isinstance(value, property | classmethod)):
                    assert inspect.getdoc(value), f"{name}.{attribute}"


def test_neighbours_has_no_default():
    for callable_ in (pm.synthesize, pm.Synthesizer, pm.Privacy):
        assert inspect.signature(callable_).parameters["neighbours"].default is inspect.Parameter.empty
    with pytest.raises(TypeError, match="neighbours"):
        pm.synthesize([0.5], epsilon=1, bounds=UNIT)


# ------------------------------------------------------------------------------------------------------------- shapes

GOOD = np.random.default_rng(0).random((200, 2))


@pytest.mark.parametrize(
    "data",
    {
        "array": GOOD,
        "list": GOOD.tolist(),
        "float32": GOOD.astype(np.float32),
        "float16": GOOD.astype(np.float16),
        "long double": GOOD.astype(np.longdouble),
        "Fortran": np.asfortranarray(GOOD),
        "strided": np.repeat(GOOD, 3, axis=0)[::3],
        "reversed": GOOD[::-1, ::-1],
        "read only": np.broadcast_to(GOOD[:1], (200, 2)),
        "integers": (GOOD * 2).astype(np.int32),
        "unsigned": (GOOD * 2).astype(np.uint64),
        "bytes": (GOOD * 2).astype(np.int8),
        "booleans": GOOD > 0.5,
        "big-endian": GOOD.astype(">f8"),
    }.items(),
    ids=lambda item: item[0],
)
def test_all_kinds_of_arrays(data):
    points = data[1]
    before = np.array(points)
    result = synthesize(points, bounds=[(0, 1)] * 2, insecure_seed=1)
    assert result.shape == (200, 2)
    assert result.dtype == np.float64
    assert ((result >= 0) & (result <= 1)).all()
    assert np.array_equal(before, np.array(points))
    plain = np.ascontiguousarray(np.asarray(points, np.float64))
    assert np.array_equal(result, synthesize(plain, bounds=[(0, 1)] * 2, insecure_seed=1))


def test_one_column_in_one_column_out():
    flat = GOOD[:, 0]
    result = synthesize(flat, insecure_seed=1)
    assert result.shape == (200,)
    column = synthesize(flat[:, np.newaxis], insecure_seed=1)
    assert column.shape == (200, 1)
    assert np.array_equal(column[:, 0], result)
    assert synthesize(flat.tolist()).shape == (200,)
    assert synthesize(tuple(flat)).shape == (200,)


def test_values_beyond_the_bounds_are_clamped_and_odd_ones_kept():
    wild = np.array([np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -0.0, 2.0])
    result = synthesize(wild)
    assert result.shape == wild.shape
    assert ((result >= 0) & (result <= 1)).all()
    huge = np.full(5000, np.inf)
    assert np.median(synthesize(huge, insecure_seed=1)) > 0.9
    assert np.median(synthesize(-huge, insecure_seed=1)) < 0.1


# ------------------------------------------------------------------------------------------------------- small inputs


@pytest.mark.parametrize("data", [[], np.empty(0), np.empty((0, 1)), np.empty(0, np.int64)], ids=repr)
def test_nothing(data):
    for seed in range(30):  # the noisy number of rows is never below one
        result = synthesize(data, neighbours="add-remove", insecure_seed=seed)
        assert len(result) >= 1
        assert ((result >= 0) & (result <= 1)).all()
    for rows in (None, 100):
        with pytest.raises(DataError, match=r"no rows.*'replace'"):
            synthesize(data, rows=rows)


def test_nothing_in_two_columns():
    for data in ([], np.empty((0, 2))):
        assert synthesize(data, neighbours="add-remove", bounds=UNIT * 2).shape[0] >= 1
    with pytest.raises(DataError):
        synthesize(np.empty((0, 3)), neighbours="add-remove", bounds=UNIT * 2)


@pytest.mark.parametrize("rows", [1, 2, 3])
@some("epsilon", 2, [0.001, 0.1, 1, 50])
@pytest.mark.parametrize("relation", RELATIONS)
@some("dimension", 2, [1, 2, 64])
def test_tiny_inputs(rows, epsilon, relation, dimension):
    data = np.random.default_rng(rows).random((rows, dimension))
    for recipe in (
        pm.Recipe(),
        pm.Recipe("every level", "none", "uniform"),
        pm.Recipe("sparse", "none", "proportional"),
    ):
        for depth in (None, 0, 3):
            release = synthesizer(
                pm.Box([(0, 1)] * dimension), epsilon=epsilon, neighbours=relation, recipe=recipe, depth=depth
            ).fit(data)
            sample = release.sample(100)
            assert sample.shape == (100, dimension)
            assert ((sample >= 0) & (sample <= 1)).all()
            total = release.release_.total
            assert total == rows if relation == "replace" else total >= 1
            assert release.plan_.spent <= release.privacy.epsilon


@pytest.mark.parametrize("relation", RELATIONS)
def test_all_equal(relation):
    data = np.full((5000, 2), 0.3)
    result = synthesize(data, neighbours=relation, bounds=[(0, 1)] * 2)
    assert np.abs(np.median(result, axis=0) - 0.3).max() < 0.1
    assert len(result) == 5000 or relation == "add-remove"


def test_many_columns():
    data = np.random.default_rng(1).random((5000, 64))
    result = synthesize(data, bounds=[(0, 1)] * 64)
    assert result.shape == (5000, 64)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("depth", [0, 1, 40])
def test_given_depths(relation, depth):
    synth = synthesizer(neighbours=relation, depth=depth).fit(GOOD[:, 0])
    assert synth.plan_.depth == synth.release_.level == depth
    assert synth.plan_.evaluation == ("lazy" if depth == 40 else "whole tree")
    assert synth.plan_.cells == 2**depth
    sample = synth.sample()
    assert len(sample) == synth.release_.total
    assert np.array_equal(np.unique(pm.Box(UNIT).locate(sample, depth)), synth.release_.cells)


def test_a_tiny_epsilon_gives_a_shallow_tree_not_an_error():
    """Noise scales beyond reach are avoided by fewer levels, whatever the number of rows."""
    for relation in RELATIONS:
        for rows in (1, 10**6, 10**9, 10**12):
            plan = synthesizer(pm.Box([(0, 1)] * 2), epsilon="1/100000", neighbours=relation).plan(rows)
            assert max(plan.scales, default=0) <= 10**6
    with pytest.raises(ArgumentError, match="scale"):
        synthesizer(epsilon="1/100000000", neighbours="add-remove")


# ------------------------------------------------------------------------------------------------------------ fitting


def test_a_second_fit_is_refused():
    synth = synthesizer().fit(GOOD[:, 0])
    before = synth.sample(seed=1)
    with pytest.raises(SpentError, match="twice epsilon"):
        synth.fit(GOOD[:, 0])
    assert np.array_equal(synth.sample(seed=1), before)


def test_data_of_a_wrong_shape_spend_nothing():
    synth = synthesizer()
    with pytest.raises(DataError):
        synth.fit(GOOD)
    assert len(synth.fit(GOOD[:, 0]).sample()) == 200


def test_nothing_before_the_fit():
    synth = synthesizer()
    for ask in (synth.sample, lambda: synth.release_, lambda: synth.plan_, lambda: synth.save("nowhere")):
        with pytest.raises(SpentError, match="fit"):
            ask()


def test_insecure_seeds_are_reproducible_and_loud(tmp_path):
    a, b, c = (synthesizer().fit(GOOD[:, 0], insecure_seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(a.release_.mass, b.release_.mass)
    assert np.array_equal(a.sample(seed=1), b.sample(seed=1))
    assert not np.array_equal(a.sample(seed=1), c.sample(seed=1))
    assert not a.release_.private
    assert "NOT PRIVATE" in repr(a.release_)
    assert a.release_.header()["private"] is False
    a.save(tmp_path / "release")
    assert not pm.load(tmp_path / "release").private
    assert np.array_equal(synthesize(GOOD[:, 0], insecure_seed=5), synthesize(GOOD[:, 0], insecure_seed=5))


def test_without_a_seed_every_release_is_fresh_and_private():
    a, b = (synthesizer(depth=8).fit(GOOD[:, 0]) for _ in range(2))
    assert a.release_.private
    assert "NOT PRIVATE" not in repr(a.release_)
    assert not np.array_equal(a.sample(seed=1), b.sample(seed=1))


@pytest.mark.parametrize("seed", [1.5, "1", True, -1])
def test_wrong_insecure_seeds(seed):
    with pytest.raises(ArgumentError, match="seed"):
        synthesize(GOOD[:, 0], insecure_seed=seed)


def test_progress_tells_nothing_about_the_rows():
    calls = {}
    for rows in (1, 50, 30_000):
        seen = []
        synthesizer(depth=4).fit(
            np.linspace(0, 1, rows), progress=lambda stage, fraction, seen=seen: seen.append((stage, fraction))
        )
        calls[rows] = seen
    assert calls[1] == calls[50] == calls[30_000]
    assert calls[1][-1][1] == 1.0


# --------------------------------------------------------------------------------------------------------------- plan


class Untouchable:
    """Data that break when anyone looks."""

    def __array__(self, *args, **kwargs):
        raise AssertionError("the data were touched")

    def __len__(self):
        raise AssertionError("the data were counted")


@pytest.mark.parametrize("relation", RELATIONS)
def test_plan_changes_nothing(relation):
    synth = synthesizer(neighbours=relation)
    plans = [synth.plan(rows) for rows in (10, 1000, 10**6)]
    assert plans == [synth.plan(rows) for rows in (10, 1000, 10**6)]
    fitted, control = (s.fit(GOOD[:, 0], insecure_seed=3) for s in (synth, synthesizer(neighbours=relation)))
    assert fitted.release_.header() == control.release_.header()
    assert np.array_equal(fitted.release_.mass, control.release_.mass)
    assert synth.plan(1000) == plans[1]


def test_wrong_epsilons_are_refused_before_data_are_touched():
    for epsilon in (0, -1, float("nan"), float("inf"), 51, "a lot", None, True, 1j):
        with pytest.raises(ArgumentError, match="epsilon"):
            synthesize(Untouchable(), epsilon=epsilon)
    with pytest.raises(DataError, match="could not be read"):
        synthesize(Untouchable())
    with pytest.raises(AssertionError, match="touched"):
        synthesize(Untouchable(), insecure_seed=1)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("recipe", [pm.Recipe(), pm.Recipe("every level", "none", "proportional", "centre")], ids=repr)
def test_plans_survive_json(relation, recipe):
    for epsilon, rows, depth in ((0.1, 1, None), ("1/3", 12345, None), (2, 10**6, 40)):
        options = {"epsilon": epsilon, "neighbours": relation, "recipe": recipe, "depth": depth, "rows_per_person": 3}
        plan = synthesizer(pm.Box([(0, 1)] * 3), **options).plan(rows)
        text = json.dumps(plan.to_json(), allow_nan=False)
        again = pm.Plan.from_json(json.loads(text))
        assert again == plan
        assert hash(again) == hash(plan)
        assert json.dumps(again.to_json()) == json.dumps(plan.to_json())
        assert again.budgets == plan.budgets
        assert again.guarantee == plan.guarantee
        assert plan.spent <= plan.privacy.epsilon
        assert str(plan) == str(again)


def test_plans_are_frozen():
    plan = synthesizer().plan(100)
    with pytest.raises(AttributeError):
        plan.rows = 5


def test_the_plan_is_restated_at_the_released_number_of_rows():
    for rows in (None, 150):
        synth = synthesizer(neighbours="add-remove", rows=rows, epsilon=0.2).fit(GOOD[:, 0], insecure_seed=1)
        plan = synth.plan_
        assert plan.rows == synth.release_.total == plan.expected_rows
        assert plan.rows_are == "released"
        assert plan.rows != 200  # this seed's noise is not 0
        planned = synth.plan(plan.rows)
        assert (plan.depth, plan.levels, plan.budgets, plan.bounds) == (
            planned.depth,
            planned.levels,
            planned.budgets,
            planned.bounds,
        )
    public = synthesizer().fit(GOOD[:, 0]).plan_
    assert (public.rows, public.rows_are) == (200, "public")


def test_a_public_number_of_rows_fixes_depth_and_budgets():
    few, many = (
        synthesizer(neighbours="add-remove", rows=5000).fit(np.linspace(0, 1, rows)).plan_ for rows in (3, 50_000)
    )
    assert (few.depth, few.levels, few.budgets) == (many.depth, many.levels, many.budgets)


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.full((7, 3), SECRET), ["shape", "(rows, 2)", "(3,)"]),
        (np.full(7, SECRET), ["shape", "one-dimensional"]),
        (np.full((7, 2, 2), SECRET), ["shape", "(2, 2)"]),
        (np.float64(SECRET), ["shape"]),
        (np.array([[str(SECRET), "b"]]), ["numbers", "str"]),
        (np.array([[SECRET, None]], object), ["numbers", "object"]),
        (np.full((7, 2), SECRET, complex), ["numbers", "complex"]),
        (np.full((7, 2), "2020-01-01", "datetime64[D]"), ["numbers", "datetime64"]),
        ({"a": SECRET}, ["numbers", "dict"]),
        ("text", ["numbers"]),
        (None, ["numbers"]),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("relation", RELATIONS)
def test_wrong_data_are_named_and_never_shown(data, words, relation):
    synth = synthesizer(pm.Box([(0, 1)] * 2), neighbours=relation)
    with pytest.raises(DataError) as caught:
        synth.fit(data)
    message = str(caught.value)
    for word in words:
        assert word in message
    for secret in (SECRET, str(SECRET), "7381", "2020", "(7", "7 rows"):
        assert str(secret) not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_length_of_a_text_is_not_told():
    messages = set()
    for text in ("a", "a much longer secret"):
        with pytest.raises(DataError) as caught:
            synthesize(np.array([text]))
        messages.add(str(caught.value))
    assert len(messages) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 0}, "rows"),
        ({"rows": -5}, "rows"),
        ({"rows": 1.5}, "rows"),
        ({"rows": True}, "rows"),
        ({"rows": 2**60}, "rows"),
        ({"depth": 99}, "depth"),
        ({"depth": -1}, "depth"),
        ({"depth": 2.0}, "depth"),
        ({"threads": 0}, "threads"),
        ({"threads": 1.5}, "threads"),
        ({"epsilon": 0}, "epsilon"),
        ({"neighbours": "both"}, "neighbours"),
        ({"neighbours": None}, "neighbours"),
        ({"rows_per_person": 0}, "rows_per_person"),
        ({"rows_per_person": 1.5}, "rows_per_person"),
        ({"mechanism": "magic"}, "mechanism"),
        ({"space": [(0, 1)]}, "space"),
    ],
    ids=str,
)
def test_wrong_arguments_are_named(options, words):
    with pytest.raises(ArgumentError, match=words):
        synthesizer(**options)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([],), "bounds"),
        (([(1, 0)],), r"bounds\[0\].*low < high"),
        (([(0, 1), (2, 2)],), r"bounds\[1\].*low < high"),
        (([(0, float("nan"))],), r"bounds\[0\]"),
        (([(0, float("inf"))],), r"bounds\[0\]"),
        (([(-1.7e308, 1.7e308)],), r"bounds\[0\]"),
        (([(0, 1, 2)],), r"bounds\[0\].*pair"),
        (((0, 1),), r"bounds\[0\].*pair"),
        (([("a", "b")],), r"bounds\[0\].*pair"),
        (([(1, 1 + 2**-52)],), r"bounds\[0\].*narrow"),
        (([(0, 1)], [1, 1]), "weights"),
        (([(0, 1)], [0]), "weights"),
        (([(0, 1)], [-1]), "weights"),
        (([(0, 1)], [float("nan")]), "weights"),
        (([(0, 1)], []), "weights"),
    ],
    ids=str,
)
def test_wrong_boxes_are_named(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        pm.Box(*arguments)


def test_wrong_rows_of_a_plan():
    for rows in (None, 0, 1.5, "many", 2**60):
        with pytest.raises(ArgumentError, match="rows"):
            synthesizer().plan(rows)
    assert synthesizer(rows=100).plan() == synthesizer(rows=100).plan(100)


def test_wrong_recipes():
    with pytest.raises(ArgumentError, match="clips"):
        pm.Recipe(rule="uniform")
    for field in ("schedule", "inference", "rule", "placement"):
        with pytest.raises(ArgumentError, match=field):
            pm.Recipe(**{field: "other"})


def test_errors_are_of_one_family():
    for kind in (ArgumentError, DataError, SpentError):
        assert issubclass(kind, PrivmeasureError)
    assert issubclass(ArgumentError, ValueError)
    assert issubclass(DataError, ValueError)
    assert issubclass(SpentError, RuntimeError)


def test_representations_show_no_data():
    synth = synthesizer().fit(np.full(7, SECRET))
    assert "7381" not in repr(synth)
    assert "7381" not in repr(synth.release_)


def test_huge_exponents_are_refused_at_once():
    for epsilon in ("1e999999999", "1E+1000000", Decimal("1e-9999999")):
        with pytest.raises(ArgumentError, match="epsilon"):
            pm.Privacy(epsilon, "replace")

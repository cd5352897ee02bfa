"""No argument of a mechanism or a synthesizer is lost: not by a copy, a pickle, `set_params` or scikit-learn's `clone`.

Every argument is set to another value than its default, alone and with all the others.
"""

import copy
import inspect
import pickle
from dataclasses import fields, replace
from fractions import Fraction

import pytest

import privmeasure as pm
from privmeasure.conditions.sets import Condition
from privmeasure.errors import ArgumentError
from privmeasure.mechanisms import ColumnTree
from privmeasure.plans.tuning import TUNED, Tuning

SQUARE = pm.Box([(0, 1), (0, 2)], weights=[2, 1])
TABLE = pm.Product([pm.Integers(0, 99), pm.Integers(0, 4), pm.Integers(0, 2), pm.Integers(0, 1)])
FACT = Condition(0, 0, ((0.0, 17.0),)), Condition(1, 0, ((1.0, 1.0),))
PRIVACY = pm.Privacy("1/3", "add-remove", rows_per_person=3, delta=1e-6)
"""A promise whose delta does not pay with few levels, so that a mechanism leaves it out."""

TREE = {"domain": SQUARE, "privacy": PRIVACY, "depth": 9, "rows": 700, "max_cells": 64, "threads": 1}
CASES = {
    "PMM": (pm.PMM, TREE | {"recipe": pm.Recipe("sparse", "none", placement="centre")}),
    "PMM.paper": (pm.PMM.paper, TREE | {"rule": "proportional"}),
    "PSMM": (
        pm.PSMM,
        {"domain": SQUARE, "privacy": PRIVACY, "depth": 3, "rows": 700, "placement": "centre", "threads": 1},
    ),
    "ColumnTree": (
        ColumnTree,
        {
            "domain": TABLE,
            "privacy": PRIVACY,
            "rows": 700,
            "threads": 1,
            "facts": (FACT,),
            "targets": (1,),
            "tuning": replace(TUNED, most_extra=0.0),
        },
    ),
}
"""For each mechanism, what makes it and another value than the default for every argument."""
NEEDED = ("domain", "privacy")
NAMES = vars(pm) | {"Condition": Condition, "ColumnTree": ColumnTree, "Fraction": Fraction, "Tuning": Tuning}


def subsets(arguments):
    """Return each argument alone, and all of them."""
    needed = {name: arguments[name] for name in NEEDED}
    return [needed | {name: value} for name, value in arguments.items()] + [arguments]


MADE = [
    pytest.param(make, arguments, id=f"{name} {','.join(a for a in arguments if a not in NEEDED) or 'alone'}")
    for name, (make, every) in CASES.items()
    for arguments in subsets(every)[1:]
]
OF_POINTS = [case for case in MADE if not case.id.startswith("ColumnTree")]


def same(one, other):
    """Say whether two mechanisms are equal; some domains are equal to themselves alone, and are compared as text."""
    return type(one) is type(other) and all(
        getattr(one, name) == getattr(other, name) or repr(getattr(one, name)) == repr(getattr(other, name))
        for name in (field.name for field in fields(one) if field.compare)
    )


@pytest.mark.parametrize("name", CASES)
def test_every_argument_has_another_value_than_its_default(name):
    make, arguments = CASES[name]
    parameters = inspect.signature(type(make(**arguments))).parameters
    assert set(arguments) - {"rule"} == set(parameters) - ({"recipe"} if name == "PMM.paper" else set())
    assert all(arguments[name] != parameters[name].default for name in arguments if name != "rule")


@pytest.mark.parametrize(("make", "arguments"), MADE)
def test_a_copy_of_a_mechanism_has_its_arguments(make, arguments):
    made = make(**arguments)
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert same(made, other)
        assert repr(other.given) == repr(made.given)
        assert other.why == made.why
    assert all(made.given[name] == value for name, value in arguments.items() if name != "rule")


@pytest.mark.parametrize(("make", "arguments"), MADE)
def test_the_repr_of_a_mechanism_makes_an_equal_one(make, arguments):
    made = make(**arguments)
    assert same(made, eval(repr(made), NAMES))
    assert same(made, replace(made))


def test_a_mechanism_that_compared_cells_with_facts_can_be_pickled():
    made = ColumnTree(**CASES["ColumnTree"][1])
    inside = made._apart[0](3)
    assert [mask.tolist() for mask in pickle.loads(pickle.dumps(made))._apart[0](3)] == [m.tolist() for m in inside]


def clone(synthesizer):
    return pytest.importorskip("sklearn.base").clone(synthesizer)


COPIES = {
    "a deep copy": copy.deepcopy,
    "a pickle": lambda synthesizer: pickle.loads(pickle.dumps(synthesizer)),
    "a clone": clone,
    "parameters": lambda synthesizer: pm.Synthesizer(**synthesizer.get_params()),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize(("make", "arguments"), OF_POINTS)
def test_a_copy_of_a_synthesizer_has_the_arguments_of_its_mechanism(make, arguments, how):
    made = make(**arguments)
    synthesizer = pm.Synthesizer.of(made)
    assert same(synthesizer.mechanism, made)
    other = COPIES[how](synthesizer)
    assert same(other.mechanism, made)
    assert other.mechanism.given["privacy"] == PRIVACY


@pytest.mark.parametrize(("make", "arguments"), OF_POINTS)
def test_set_params_changes_what_it_names_and_nothing_else(make, arguments):
    others = {"rows": 900, "depth": 5, "threads": 2} | ({} if make is pm.PSMM else {"max_cells": 128})
    for name, value in others.items():
        synthesizer = pm.Synthesizer.of(make(**arguments)).set_params(**{name: value})
        assert same(synthesizer.mechanism, make(**(arguments | {name: value})))
    synthesizer = pm.Synthesizer.of(make(**arguments)).set_params(epsilon=1)
    assert same(synthesizer.mechanism, make(**(arguments | {"privacy": PRIVACY.at(1)})))
    assert synthesizer.mechanism.given["privacy"] == PRIVACY.at(1)


def test_a_delta_that_does_not_pay_is_kept_for_when_it_does():
    line = pm.Box([(0, 1)])
    made = pm.PMM(line, pm.Privacy(1, "replace", delta=1e-6), depth=2)
    assert made.privacy.delta == 0
    deep = pm.Synthesizer.of(made).set_params(depth=20, recipe=pm.PMM.paper(line, made.privacy).recipe)
    assert deep.privacy.delta == Fraction(1, 10**6)


def test_the_default_recipe_is_that_of_the_space():
    integers = pm.PMM(pm.Integers(0, 99), pm.Privacy(1, "replace"))
    assert integers.recipe != pm.Recipe()
    assert pm.Synthesizer.of(integers).set_params(space=SQUARE).mechanism.recipe == pm.Recipe()


SYNTHESIZER = {
    "space": SQUARE,
    "epsilon": Fraction(1, 3),
    "neighbours": "add-remove",
    "rows": 700,
    "rows_per_person": 3,
    "delta": Fraction(1, 10**6),
    "mechanism": "pmm",
    "recipe": pm.Recipe("sparse", "none"),
    "depth": 9,
    "max_cells": 64,
    "threads": 1,
}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_a_synthesizer_has_its_arguments(how):
    assert set(SYNTHESIZER) == set(inspect.signature(pm.Synthesizer).parameters)
    made = pm.Synthesizer(**SYNTHESIZER)
    assert made.get_params() == SYNTHESIZER
    other = COPIES[how](made)
    assert other.get_params() == SYNTHESIZER
    assert same(other.mechanism, made.mechanism)
    assert other.set_params(epsilon=1).get_params() == SYNTHESIZER | {"epsilon": 1}


def test_a_limit_of_cells_asks_for_one_tree_and_is_refused_elsewhere():
    promise = {"epsilon": 1, "neighbours": "replace", "max_cells": 64}
    ages = pm.Schema({name: pm.Integer(0, 120) for name in "abcde"})
    assert pm.Synthesizer(ages, **promise).mechanism.max_cells == 64
    for mechanism in ("psmm", "columns"):
        with pytest.raises(ArgumentError, match="max_cells is for mechanism='pmm'"):
            pm.Synthesizer(ages, **promise, mechanism=mechanism)


def test_points_have_no_column_that_names_a_person():
    for mechanism in (pm.PMM, pm.PSMM):
        with pytest.raises(ArgumentError, match="points have no column that names a person"):
            pm.Synthesizer.of(mechanism(SQUARE, pm.Privacy(1, "add-remove", person="id")))


def test_a_mechanism_of_another_class_is_refused_since_its_class_would_be_lost():
    class Mine(pm.PMM):
        pass

    with pytest.raises(ArgumentError, match="of takes a PMM or a PSMM, got Mine"):
        pm.Synthesizer.of(Mine(SQUARE, PRIVACY))

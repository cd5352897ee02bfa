"""What people will predict: declared in the schema, carried wherever it goes, and handed to the mechanism."""

import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.errors import SchemaError
from privmeasure.tables import Boolean, Category, Constant, Derived, Drop, Integer, Schema

COLUMNS = {
    "id": Drop(),
    "site": Constant("north"),
    "age": Integer(0, 120),
    "sex": Category(["F", "M"]),
    "height": Integer(40, 250),
    "mass": Integer(1, 400),
    "death": Boolean(),
    "decade": Derived("age // 10 * 10"),
}


def declared(**more):
    return Schema(COLUMNS, groups=[["height", "mass"]], **more)


@pytest.mark.parametrize("target", ["death", ["death", "mass"]])
def test_it_goes_wherever_the_schema_goes(target):
    schema = declared(target=target)
    names = (target,) if isinstance(target, str) else tuple(target)
    assert schema.target == names
    for same in (
        Schema.from_text(schema.to_toml()),
        Schema.from_json(schema.to_json()),
        copy.deepcopy(schema),
        pickle.loads(pickle.dumps(schema)),
        declared().aiming_at(target),
    ):
        assert same == schema
        assert same.target == names
    assert schema != declared()
    assert schema.to_json()["format"] == 2
    assert schema.to_toml().startswith("format = 2\ntarget = ")
    assert "target" not in declared().to_json()
    assert "death" in repr(schema)
    assert "target" in schema._repr_html_()


def test_a_part_of_the_columns_keeps_what_is_left():
    schema = declared(target=["death", "mass"])
    assert schema.only(["age", "death"]).target == ("death",)
    assert schema.only(["age", "sex"]).target == ()


def test_a_column_of_a_group_means_the_group():
    assert declared().nodes[2] == ("height", "mass")
    assert declared(target=["mass", "death"]).target_nodes == (2, 3)
    synth = pm.Synthesizer(declared(target="mass"), epsilon=1, neighbours="replace")
    assert synth.mechanism.targets == (2,)
    assert "pairs with 'mass' are chosen first" in synth.choice


def test_one_tree_says_that_nothing_changes():
    schema = Schema({"age": Integer(0, 120), "death": Boolean()}, target="death")
    assert "changes nothing" in pm.Synthesizer(schema, epsilon=1, neighbours="replace").choice


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("deaht", "no column of the schema. Did you mean 'death'"),
        ("id", "is dropped"),
        ("site", "is constant"),
        ("decade", "is derived"),
        (["death", "death"], "twice"),
        (7, "must be the name of a column, or a list of names"),
        ([7], "must be the name of a column, or a list of names"),
        ({"death": 1}, "must be the name of a column, or a list of names"),
    ],
)
def test_what_is_no_target_is_told(target, told):
    with pytest.raises(SchemaError, match="target") as error:
        declared(target=target)
    assert told in str(error.value)


def test_the_person_is_no_target():
    with pytest.raises(SchemaError, match="whose row it is"):
        declared(person="id", target="id")


def test_a_file_says_where_it_is_wrong():
    text = declared(target="death").to_toml()
    with pytest.raises(SchemaError, match="line 2: target names 'dead'"):
        Schema.from_text(text.replace('"death"', '"dead"', 1))
    with pytest.raises(SchemaError, match="line 1: the schema names a target, which is of format 2"):
        Schema.from_text(text.replace("format = 2", "format = 1"))


def test_editors_know_it():
    assert "target" in Schema.json_schema()["properties"]


def test_pairs_with_it_are_bought_first_and_the_release_keeps_it(tmp_path):
    rng = np.random.default_rng(0)
    names = list("abcdef")
    rows = rng.integers(0, 4, (4000, len(names)))
    rows[:, 1:5] = rows[:, :1]  # a to e say the same, f nothing: of itself, no pair would hold it
    frame = pa.table({name: rows[:, i] for i, name in enumerate(names)})
    schema = Schema({name: Category([0, 1, 2, 3]) for name in names}, target="f")
    release = pm.Synthesizer(schema, epsilon=1, neighbours="replace").fit(frame, insecure_seed=0).release_
    first = -(-release.plan.tree_pairs // 2)
    assert first >= 1
    assert all(5 in (pair.first, pair.second) for pair in release.measure.pairs[:first])
    aimless = pm.Synthesizer(schema.aiming_at([]), epsilon=1, neighbours="replace").fit(frame, insecure_seed=0)
    assert not any(5 in (pair.first, pair.second) for pair in aimless.release_.measure.pairs[:first])
    release.save(tmp_path / "a.release")
    assert pm.load(tmp_path / "a.release").schema.target == ("f",)

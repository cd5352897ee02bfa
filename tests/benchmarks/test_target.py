"""The benchmark of a target: its model of survival, and a small run of it."""

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
import target


def people(n, rng):
    """Return people of whom men die sooner, by a hazard that is known: twice that of women."""
    men, age = rng.random(n) < 0.5, rng.integers(50, 100, n)
    days = rng.exponential(3000 / np.exp(np.log(2) * men + 0.02 * (age - 75)))
    seen = rng.uniform(1000, 5000, n)
    return men, age, np.ceil(np.minimum(days, seen)), days <= seen


def test_the_coefficients_are_those_of_the_law():
    men, age, days, died = people(20_000, np.random.default_rng(0))
    found = target.cox(days, died, np.column_stack([men, age]).astype(float))
    # standard errors are about .02 and .001; five of them are beyond chance, and ties in whole days shift less
    assert found == pytest.approx([np.log(2), 0.02], abs=0.1)
    assert abs(target.cox(days, died, np.column_stack([np.roll(men, 1), age]).astype(float))[0]) < 0.1


def test_a_few_rows_by_hand():
    """Two die at 1 and 2, one is seen until 3: 1 / (2 + u) times u / (1 + u), u = e^b, is largest at u = 2^1/2."""
    found = target.cox(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]), np.array([[0.0], [1.0], [0.0]]))
    assert found[0] == pytest.approx(np.log(2) / 2, abs=1e-6)


def test_the_kept_schema_takes_the_target_and_a_small_release_is_judged():
    men, age, days, died = people(3000, np.random.default_rng(1))
    columns = {"age": pm.Integer(50, 105), "sex": pm.Category(["F", "M"]), "futime": pm.Integer(0, 5500)}
    columns |= {"death": pm.Boolean(), "flc.grp": pm.Integer(1, 10)}
    rows = pa.table(
        {
            "age": age,
            "sex": np.where(men, "M", "F"),
            "futime": days.astype(int),
            "death": died,
            "flc.grp": np.random.default_rng(2).integers(1, 11, 3000),
        }
    )
    assert target.schema(target=True).target == ("death",)
    assert target.schema(target=False).target == ()
    synth = pm.Synthesizer(pm.Schema(columns, target="death"), epsilon=4, neighbours="add-remove")
    found = target.hazards(synth.fit(rows, insecure_seed=0).sample(seed=0))
    assert set(found) == set(target.MODELS)
    assert all(0.15 < value < 1.2 for value in found.values())
    assert target.hazards(rows)["age"] == pytest.approx(np.log(2), abs=0.25)

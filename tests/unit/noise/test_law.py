"""What is known of the noise, by the name that a plan carries."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure.errors import ReleaseFileError
from privmeasure.noise.draws import LAWS, law_of
from privmeasure.noise.law import FACTS, LAPLACE, LawName, facts_of
from privmeasure.plans.columns import ColumnPlan
from privmeasure.releases.files import HEADER_KEY

SCHEMA = pm.Schema({name: pm.Integer(0, 9) for name in "abcd"})


def plans():
    one = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace").plan(1000)
    return [one, pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove").plan(1000)]


def test_every_law_is_known_and_can_be_drawn():
    assert set(FACTS) == set(LAWS) == set(get_args(LawName))
    for name in get_args(LawName):
        facts, law = facts_of(name, Fraction(5, 2)), law_of(name, Fraction(5, 2))
        assert (facts.scale, facts.variance, facts.tail(4)) == (law.scale, law.variance, law.tail(4))
        assert facts.tail(facts.limit(0.01) + 1) <= 0.01 < facts.tail(facts.limit(0.01))


@pytest.mark.parametrize("plan", plans(), ids=["tree", "columns"])
def test_a_plan_carries_its_law_and_files_name_only_another(plan):
    assert plan.law == LAPLACE
    value = plan.to_json()
    assert '"law"' not in json.dumps(value)
    read = ColumnPlan.from_json if "columns" in value else pm.Plan.from_json
    assert read(value | {"law": LAPLACE}) == plan
    assert replace(plan, law="gaussian").to_json()["law"] == "gaussian"
    with pytest.raises(ReleaseFileError, match=r"'gaussian'.*update"):
        read(value | {"law": "gaussian"})


def test_a_file_of_another_law_says_to_update(tmp_path):
    path = tmp_path / "r.release"
    pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace").fit(np.full(50, 0.5)).save(path)
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[HEADER_KEY])
    header["plan"]["law"] = "gaussian"
    pq.write_table(table.replace_schema_metadata({HEADER_KEY: json.dumps(header)}), path)
    with pytest.raises(ReleaseFileError, match=r"newer version.*'gaussian'.*update privmeasure"):
        pm.load(path)

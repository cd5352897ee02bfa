"""A target on the command line: plan, fit, inspect, and what is refused."""

import json

import pytest
from cli_shelf import PROMISE, SCHEMA

from privmeasure.tables import Schema

PLAN = ["plan", "--schema", "aimed.toml", *PROMISE, "--rows", "900", "--epsilons", "1"]


@pytest.fixture
def aimed(folder):
    (folder / "aimed.toml").write_text(SCHEMA.replace("format = 1", 'format = 2\ntarget = "sex"'))
    return folder


def test_plan_says_what_it_changes(call, aimed):
    assert "the target 'sex' changes nothing" in call(*PLAN)
    wide = [*PLAN, "--mechanism", "columns"]
    assert "pairs with 'sex' are chosen first" in call(*wide)
    chosen = json.loads(call(*wide, "--target", "income", "--target", "age", "--json"))["choice"]
    assert "pairs with 'income' and 'age' are chosen first" in chosen


def test_a_release_keeps_it(call, aimed):
    fit = ["fit", "people.csv", "--schema", "people.toml", *PROMISE, "--mechanism", "columns"]
    call(*fit, "--target", "age", "-o", "aimed.release")
    assert json.loads(call("inspect", "aimed.release", "--json"))["schema"]["target"] == ["age"]
    assert "target     age" in call("inspect", "aimed.release")
    assert Schema.from_toml("people.toml").target == ()


def test_what_is_no_target_is_refused(refused, aimed):
    refused([*PLAN, "--target", "incom"], 2, "no column of the schema", "income")
    refused([*PLAN, "--target", "name"], 2, "dropped")
    refused([*PLAN, "--columns", "age,income", "--target", "sex"], 2, "dropped")

"""Columns that stand alone are named wherever a release is made or shown, and `plan` says how many groups to expect."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure.app.commands import SpendOrder, Terms
from privmeasure.cli.serving import LocalCommands
from privmeasure.ledger import Ledger
from privmeasure.report.words import what_is_lost
from privmeasure.tables.texts import TextForm

NAMES = [f"answer{i}" for i in range(20)]
ROWS = 3000
SPEND = ["--schema", "answers.toml", "--epsilon", "1", "--neighbours", "add-remove"]
"""Too little to link all columns: some have no pair, and stand alone whatever the noise is."""


@pytest.fixture
def answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = "format = 1\n" + "".join(f'[columns.{name}]\ntype = "boolean"\nnullable = false\n' for name in NAMES)
    (tmp_path / "answers.toml").write_text(schema)
    coins = np.random.default_rng(0).random((len(NAMES), ROWS)) < 0.5
    pq.write_table(pa.table(dict(zip(NAMES, coins, strict=True))), tmp_path / "answers.parquet")
    return tmp_path


def check_words(text):
    (line,) = [line for line in text.splitlines() if line.startswith("These columns stand alone: 'answer")]
    for way in ("a target in the schema", "fewer columns", "more epsilon", "a delta of 1e-6"):
        assert way in line
    assert "predict" in line


def test_fit_inspect_and_the_report_name_them(call, answers):
    check_words(call("fit", "answers.parquet", *SPEND, "-o", "answers.release"))
    check_words(call("inspect", "answers.release", "--no-certificate"))
    alone = json.loads(call("inspect", "answers.release", "--no-certificate", "--json"))["standing_alone"]
    release = pm.load("answers.release")
    assert alone == release.standing_alone
    assert set(alone) <= set(NAMES)
    assert len(alone) >= release.plan.parts - 1 > 0
    check_words("\n".join(what_is_lost(release, [], None, None)))


def test_synthesize_names_them_in_words_and_in_json(call, answers):
    check_words(call("synthesize", "answers.parquet", *SPEND, "-o", "rows.csv"))
    found = json.loads(call("synthesize", "answers.parquet", *SPEND, "-o", "again.csv", "--json"))
    assert found["standing_alone"] == pm.load("again.csv.release").standing_alone != []


def test_the_local_page_names_them(answers):
    Ledger(answers / "book.sqlite").open_account("answers", cap=1, neighbours="add-remove")
    order = SpendOrder(
        answers / "answers.parquet",
        "answers.parquet",
        TextForm(),
        answers / "answers.toml",
        Terms("1", "add-remove", ROWS, 1),
        answers / "book.sqlite",
        "answers",
        "",
        answers / "answers.release",
        release_stays=True,
    )
    check_words(LocalCommands().spend(order).warnings[0])


def test_plan_says_how_many_groups_will_be_independent_and_how_many_with_a_delta(call, answers):
    plan = ["plan", *SPEND, "--rows", ROWS, "--epsilons", "1"]
    found = json.loads(call(*plan, "--json"))
    synthesizer = pm.Synthesizer(pm.Schema.from_toml("answers.toml"), epsilon="1", neighbours="add-remove")
    groups, fewer = (synthesizer.independent_groups(ROWS, delta=delta) for delta in (None, "1e-6"))
    assert groups == synthesizer.plan(ROWS).parts > fewer
    assert found["independent_groups"] == groups
    assert found["warnings"][0].startswith(f"{groups} groups of columns will be independent")
    assert f"With a delta of 1e-6 there are {fewer}." in found["warnings"][0]
    with_delta = json.loads(call(*plan, "--delta", "1e-6", "--json"))
    assert with_delta["independent_groups"] == fewer
    assert "With a delta" not in "".join(with_delta["warnings"])
    assert json.loads(call("plan", *SPEND[:2], "-e", "9", *SPEND[4:], "--rows", ROWS, "--json"))["warnings"] == []

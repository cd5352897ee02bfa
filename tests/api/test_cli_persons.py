"""Persons on the command line: plan, check, fit, inspect, the ledger, and what is refused."""

import csv
import io
import json
import os
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pytest
from cli_shelf import PROMISE, SCHEMA, SECRET, table

FIT = ["fit", "visits.csv", "--schema", "visits.toml", *PROMISE, "--rows-per-person", "2", "-o", "visits.release"]


@pytest.fixture
def visits(folder):
    """Three visits of each of some people, and rows that are nobody's."""
    once = table().slice(0, 200)
    nobody = once.slice(0, 20).set_column(3, "name", pa.nulls(20, pa.string()))
    pyarrow.csv.write_csv(pa.concat_tables([once, once, once, nobody]), folder / "visits.csv")
    (folder / "visits.toml").write_text(SCHEMA.replace("format = 1", 'format = 2\nperson = "name"'))
    return folder


def test_plan_compares_rows_per_person(call, visits):
    asked = ["plan", "--schema", "visits.toml", *PROMISE, "--rows", "400", "--rows-per-person", "4"]
    found = json.loads(call(*asked, "--json"))
    assert [other["k"] for other in found["rows_per_person"]] == [1, 2, 4, 8, 16]
    guarantees = [other["guarantee"] for other in found["rows_per_person"]]
    assert guarantees == sorted(guarantees)
    assert guarantees[2] == found["guarantee"]
    assert found["plan"]["privacy"]["person"] == "name"
    words = call(*asked)
    assert "What another number of rows per person would guarantee" in words
    assert "all rows of one 'name', at most 4 of which are kept" in words
    assert "kept rows  400" in words
    assert "about      the kept rows" in words
    wide = json.loads(call(*asked, "--mechanism", "columns", "--json"))["rows_per_person"]
    assert all(0 < other["best_column"] <= other["worst_column"] for other in wide)
    rowwise = json.loads(call("plan", "--schema", "people.toml", *PROMISE, "--rows", "400", "--json"))
    assert "rows_per_person" not in rowwise


def test_check_counts_in_confidence(call, visits):
    found = json.loads(call("schema", "check", "visits.toml", "--data", "visits.csv", "--json"))
    assert found["confidential"]
    assert found["person"]["persons"] == 200
    assert (found["person"]["rows_without_id"], found["person"]["most_rows"]) == (20, 3)
    kept = {1: 200, 2: 400, 4: 600, 8: 600, 16: 600}
    assert found["person"]["rows_per_person"] == [{"k": k, "kept": n, "dropped": 600 - n} for k, n in kept.items()]
    words = call("schema", "check", "visits.toml", "--data", "visits.csv")
    assert words.startswith("CONFIDENTIAL")
    assert "20 rows have no id" in words
    assert SECRET not in words


def test_evaluate_says_which_rows_it_compares_with(call, visits):
    call(*FIT)
    assert "at most rows_per_person of each 'name'" in call("evaluate", "visits.csv", "visits.release")
    found = json.loads(call("evaluate", "visits.csv", "visits.release", "--json"))
    assert found["compared_with"].startswith("all rows of the real table. Guarantees are about the kept ones")


def test_a_release_and_its_entry_state_the_person(call, visits):
    call("ledger", "open", "visits.sqlite", "visits", "--cap", "2", "--neighbours", "add-remove")
    fitted = json.loads(call(*FIT, "--ledger", "visits.sqlite", "--dataset", "visits", "--json"))
    promise = {"epsilon": "1", "delta": 0, "neighbours": "add-remove", "rows_per_person": 2, "person": "name"}
    assert fitted["plan"]["privacy"] == promise
    assert 300 < fitted["plan"]["rows"] < 500
    inspected = json.loads(call("inspect", "visits.release", "--no-certificate", "--json"))
    assert (inspected["plan"]["privacy"], inspected["schema"]["person"]) == (promise, "name")
    assert "at most 2 of which are kept" in call("inspect", "visits.release", "--no-certificate")
    call("sample", "visits.release", "-o", "out.csv")
    assert SECRET not in (visits / "out.csv").read_text()
    entry = json.loads(call("ledger", "show", "visits.sqlite", "visits", "--json"))["entries"][0]
    assert (entry["rows_per_person"], entry["person"]) == (2, "name")
    rows = list(csv.DictReader(io.StringIO(call("ledger", "export", "visits.sqlite"))))
    assert [(row["rows_per_person"], row["person"]) for row in rows] == [("1", ""), ("2", "name")]
    assert "2 by 'name'" in call("ledger", "show", "visits.sqlite", "visits")
    call("ledger", "close", "visits.sqlite", "visits.release")


def test_what_is_refused(refused, visits):
    plan = ["plan", "--schema", "visits.toml", "--epsilon", "1", "--neighbours", "replace", "--rows", "400"]
    refused(plan, 2, "person = 'name'", "add-remove")
    (visits / "old.toml").write_text(SCHEMA.replace("format = 1", 'format = 1\nperson = "name"'))
    refused(["schema", "check", "old.toml"], 2, "line 2", "format = 2")
    (visits / "age.toml").write_text(SCHEMA.replace("format = 1", 'format = 2\nperson = "age"'))
    refused(["schema", "check", "age.toml"], 2, "line 3", 'type = "drop"')


SLOW = """
import time
from privmeasure.sources import people
people.HELD_BYTES = 1000
people._digests = lambda *parts: (print("ready", flush=True), time.sleep(60))
from privmeasure.cli import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_run_that_is_told_to_end_leaves_no_rows_on_disk(visits, tmp_path_factory):
    aside = tmp_path_factory.mktemp("aside")
    run = subprocess.Popen(
        [sys.executable, "-c", SLOW, *FIT], env=os.environ | {"TMPDIR": str(aside)}, stdout=subprocess.PIPE
    )
    assert run.stdout.readline() == b"ready\n"
    assert list(aside.iterdir())
    run.send_signal(signal.SIGTERM)
    assert run.wait() == 143
    run.stdout.close()
    assert list(aside.iterdir()) == []
    assert not (visits / "visits.release").exists()

"""An order between columns on the command line: check, fit, sample, and what is refused."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from cli_shelf import PROMISE

import privmeasure as pm

STAYS = """format = 2
never = ["discharged < admitted"]
[columns.admitted]
type = "integer"
low = 0
high = 365
nullable = false
[columns.discharged]
type = "integer"
low = 0
high = 365
nullable = true
"""


@pytest.fixture
def stays(folder):
    rng = np.random.default_rng(0)
    came = rng.integers(0, 300, 800)
    left = pa.array(came + rng.integers(0, 60, 800), mask=rng.random(800) < 0.1)
    pa.csv.write_csv(pa.table({"admitted": came, "discharged": left}), folder / "stays.csv")
    (folder / "stays.toml").write_text(STAYS)
    return folder


def test_no_row_of_the_file_breaks_it(call, stays):
    call("synthesize", "stays.csv", "--schema", "stays.toml", *PROMISE, "-o", "rows.csv", "-n", "3000", "--seed", "1")
    rows = pa.csv.read_csv("rows.csv").drop_null()
    assert rows.num_rows > 2000
    assert (rows["discharged"].to_numpy() >= rows["admitted"].to_numpy()).all()
    words = call("inspect", "rows.csv.release")
    assert "never      discharged < admitted" in words
    assert "assumed: they were not checked against the data" in words


WIDE = STAYS + "".join(f'[columns.{name}]\ntype = "boolean"\nnullable = false\n' for name in ("old", "ill", "far"))


@pytest.fixture
def wide(folder):
    rng = np.random.default_rng(0)
    came = rng.integers(0, 300, 2000)
    flags = {name: rng.random(2000) < 0.4 for name in ("old", "ill", "far")}
    stays = {"admitted": came, "discharged": came + rng.integers(0, 60, 2000)}
    pa.csv.write_csv(pa.table(stays | flags), folder / "wide.csv")
    (folder / "wide.toml").write_text(WIDE)
    return folder


def test_a_plan_says_what_is_not_known_before_the_release(call, wide):
    plan = ("plan", "--schema", "wide.toml", *PROMISE, "--rows", "2000")
    (warning,) = [text for text in json.loads(call(*plan, "--json"))["warnings"] if "constraint" in text]
    assert "assumed, and not checked against the data" in warning
    assert "Guarantees are those of the released columns" in warning
    assert "not known before the release" in warning
    call(*plan, "--html", "plan.html")
    assert "not checked against the data" in (wide / "plan.html").read_text()


def test_inspect_and_the_report_show_how_far_rows_are_moved(call, wide):
    call("fit", "wide.csv", "--schema", "wide.toml", *PROMISE, "-o", "wide.release")
    release = pm.load("wide.release")
    found = json.loads(call("inspect", "wide.release", "--json"))
    for column in found["columns"]:
        assert column["row_distance"] == pytest.approx(release.row_distances[column["name"]])  # of ranges of length 1
    assert {tuple(pair["columns"]): pair["row_distance"] for pair in found["pairs"]} == {
        (one, two): far for one, two, far in release.row_pair_distances
    }
    words = call("inspect", "wide.release")
    assert "rows: distance (W1) between the default rows and the released column" in words
    assert "rows from noisy table" in words
    call("report", "wide.release", "-o", "wide.html", "--runs", "0")
    page = (wide / "wide.html").read_text()
    for said in (
        "rows moved",
        "rows from noisy table",
        "Constraints are assumed: they were not checked against the data",
    ):
        assert said in page


def test_rows_of_the_data_are_counted_in_confidence(call, stays):
    found = json.loads(call("schema", "check", "stays.toml", "--data", "stays.csv", "--json"))
    assert found["never"] == {"discharged < admitted": {"broken": 0}}
    (stays / "turned.toml").write_text(STAYS.replace("discharged < admitted", "admitted <= discharged"))
    words = call("schema", "check", "turned.toml", "--data", "stays.csv")
    assert words.startswith("CONFIDENTIAL")
    assert "rows have what can never be: admitted <= discharged" in words


def test_what_cannot_be_compared_is_told_by_line(refused, stays):
    check = ["schema", "check", "odd.toml"]
    for text, *told in (
        (STAYS.replace("< admitted", "< admited + 3"), "line 2", "'admited'", "Did you mean 'admitted'"),
        (STAYS.replace("< admitted", "< admitted + 3 days"), "line 2", "leave the unit out"),
        (STAYS.replace("format = 2", "format = 1"), "line 2", "format 2"),
    ):
        (stays / "odd.toml").write_text(text)
        refused(check, 2, *told)

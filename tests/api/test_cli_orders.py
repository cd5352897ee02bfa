"""An order between columns on the command line: check, fit, sample, and what is refused."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from cli_shelf import PROMISE

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
    assert "never      discharged < admitted" in call("inspect", "rows.csv.release")


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

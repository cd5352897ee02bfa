"""How bands are scored: by what a reader computes, without the code that makes the bands."""

import ast
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import band_shapes
import pages
import privmeasure as pm
import record
import typical

SCHEMA = pm.Schema({"kids": pm.Integer(0, 10), "fee": pm.Number(0, 100, nullable=True), "plan": band_shapes.PLAN})


def test_answers_are_those_of_numpy_after_values_are_clamped():
    rng = np.random.default_rng(0)
    values = {
        "kids": rng.poisson(3, 501) * 2,
        "fee": rng.lognormal(3, 1, 501),
        "plan": np.array(["basic", "none"] * 251),
    }
    values["plan"] = values["plan"][:501]
    values["fee"][:50] = np.nan
    found = band_shapes.answers(SCHEMA, values)
    kids, fee = np.minimum(values["kids"], 10), np.minimum(values["fee"][50:], 100)
    for percent in band_shapes.PERCENT:
        assert found["kids", f"{percent} %"] == np.quantile(kids, percent / 100, method="inverted_cdf")
        assert found["fee", f"{percent} %"] == np.quantile(fee, percent / 100, method="inverted_cdf")
    assert found["fee", "mean"] == pytest.approx(fee.mean())
    assert found["kids", "fee"] == pytest.approx(np.corrcoef(kids[50:], fee)[0, 1])
    assert found["plan", "share", "basic"] == 251 / 501
    assert found["plan", "share", "family"] == 0


@pytest.mark.parametrize("name", [*band_shapes.SHAPES])
def test_shapes_can_be_fitted_and_lie_within_their_bounds_but_for_tails(name):
    schema, values = band_shapes.draw((name,), 400, 1)
    low, high = band_shapes.bounds(schema.data[name])
    assert np.mean((values[name] >= low) & (values[name] <= high)) > 0.99
    points = schema.encode(band_shapes.table(values))
    assert len(points) == 400
    assert not np.isnan(points).any()


def test_shapes_have_what_makes_them_hard():
    _, values = band_shapes.draw(("fee", "seats", "cap"), 20_000, 1)
    assert np.mean(values["fee"] == 0) == pytest.approx(0.6, abs=0.02)
    assert np.mean(values["seats"] == 1) == pytest.approx(0.7, abs=0.02)
    assert np.mean(values["cap"] == 100) == pytest.approx(0.2, abs=0.02)
    assert np.corrcoef(values["fee"], values["seats"])[0, 1] > 0.2


@pytest.mark.parametrize("file", ["typical.py", "band_shapes.py"])
def test_the_scorer_shares_no_code_with_the_bands(file):
    tree = ast.parse((Path(typical.__file__).parent / file).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name.startswith("privmeasure")} == {"privmeasure"}


def test_widths_are_compared_with_errors_and_cells():
    """(held, width, error, cell) of ten fits: nine errors are at most 9, so that a width of 18 is needed."""
    fits = np.array([[1, 27, error, 5] for error in range(1, 11)], float)
    assert typical.summary(fits) == {"fits": 10, "held": 10, "width": 27, "needed": 18, "cell": 5, "ratio": 1.5}
    fits[:, 2] = 0
    assert typical.summary(fits)["ratio"] == 27 / 5
    fits[:, 3] = 0
    assert typical.summary(fits)["ratio"] is None


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "_run", record.Run())
    fits = []

    def case(key, *rest):
        fits.append(key)
        return {"age | mean": {"fits": 2, "held": 2, "width": 1.0, "needed": 1.0, "cell": 1.0, "ratio": 1.0}}

    monkeypatch.setattr(typical, "shape_case", case)
    asked = ["typical", "--scratch", str(tmp_path), "--fits", "2", "--rows", "100", "--epsilons", "1", "--cases"]
    for cases in ("tree 1", "tree 1,wide 1"):
        monkeypatch.setattr(sys, "argv", [*asked, cases])
        typical.main()
    assert fits == ["tree 1, 100 rows, epsilon 1", "wide 1, 100 rows, epsilon 1"]
    assert len(json.loads((tmp_path / "typical.json").read_text())["cases"]) == 2
    assert "2 of 2 bands hold" in capsys.readouterr().out


def test_the_page_begins_with_the_column_that_is_worst(monkeypatch):
    def score(held, ratio):
        return {"fits": 20, "held": held, "width": 1.0, "needed": 1.0, "cell": 1.0, "ratio": ratio}

    statistics = {
        "age | mean": score(20, 1.0),
        "fee | mean": score(12, 1.5),
        "fee | 5 %": score(20, 7.0),
        "plan | share | none": score(18, None),
        "age | fee": score(19, 2.0),
    }
    case = {"table": "wide 1", "rows": 2000, "epsilon": 1.0, "statistics": statistics}
    monkeypatch.setattr(pages, "load", lambda name: {"runs": 20, "level": 0.9, "cases": {"a": case}})
    lines = pages.typical().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:6]] == ["| fee", "| age", "| shares", "| correlations"]
    assert lines[2] == "| fee | 100% |  |  |  |  | **60%** | 20 | 7.0, at most 7.0 |"
    assert lines[0].count("|") == lines[4].count("|") == lines[5].count("|")
    assert "Of 3 statistics 1 are below 85% over all cases; of 3 single cases" in lines[-1]
    assert "which have 20 to 20 fits each, 1 are below 75%" in lines[-1]
    assert "1 cases are above 6" in lines[-1]


def test_real_tables_are_read_as_their_schemas_say():
    rows = pa.table({"kids": [1, 2, None], "fee": [0.5, None, 7.0], "plan": ["none", None, "basic"]})
    found = band_shapes.columns(SCHEMA, rows)
    assert found["plan"].tolist() == ["none", band_shapes.MISSING, "basic"]
    assert np.isnan(found["fee"][1])
    assert band_shapes.answers(SCHEMA, found)["kids", "50 %"] == 1

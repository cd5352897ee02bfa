"""Pages from the command line: report, fit --report, synthesize --report, plan --html, evaluate --html."""

import json
import sys

import pytest
from cli_shelf import FIT, PROMISE, SECRET, check_message

from privmeasure import cli, load
from privmeasure.metrics.fidelity import REAL_TABLE_STAMP
from privmeasure.report import public


def page(folder, name):
    text = (folder / name).read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert SECRET not in text
    assert not list(folder.glob("*.part"))
    return text


def test_report_writes_a_page_of_the_release_alone(call, folder):
    call(*FIT)
    for private in ("people.csv", "people.parquet", "people.toml"):
        (folder / private).unlink()
    made = json.loads(call("report", "new.release", "-o", "report.html", "--runs", 2, "--json"))
    assert made == {"report": "report.html", "private": True, "warnings": []}
    text = page(folder, "report.html")
    assert "9 times in 10" in text
    assert "9 times in 10" not in page(folder, _quick(call))
    told = json.loads(call("inspect", "new.release", "--json", "--no-certificate"))
    assert told["id"] in text
    assert f"{load('new.release').total:,} rows" in text  # as released: the true number is private under add-remove


def _quick(call):
    assert call("report", "new.release", "--runs", 0) == "new.release.html written\n"
    return "new.release.html"


def test_report_refuses_what_is_there(call, folder, capsys):
    call(*FIT)
    assert cli.run(["report", "new.release", "-o", "people.csv"]) == 3
    check_message(capsys.readouterr().err, "exists", "--overwrite")
    assert cli.run(["report", "new.release", "-o", "new.release", "--overwrite"]) == 2
    check_message(capsys.readouterr().err, "over another file")


def test_fit_and_synthesize_write_it_along_the_way(call, folder, monkeypatch):
    monkeypatch.setattr("privmeasure.cli.reporting.USUAL_RUNS", 2)
    made = json.loads(call(*FIT, "--report", "fit.html", "--json"))
    assert (made["release"], made["report"]) == ("new.release", "fit.html")
    assert made["id"] in page(folder, "fit.html")
    words = ["synthesize", "people.csv", "-s", "people.toml", *PROMISE, "-o", "s.csv", "--report", "s.html", "--json"]
    made = json.loads(call(*words))
    assert made["report"] == "s.html"
    assert made["id"] in page(folder, "s.html")
    assert "privmeasure sample s.csv.release" in page(folder, "s.html")


@pytest.mark.parametrize("command", ["fit", "synthesize"])
def test_a_page_that_fails_does_not_lose_the_release(call, folder, monkeypatch, capsys, command):
    def fail(*_, **__):
        raise OSError(28, "No space left")

    monkeypatch.setattr(public, "release_page", fail)
    monkeypatch.setattr("privmeasure.cli.reporting.USUAL_RUNS", 0)
    out = ["-o", "new.release"] if command == "fit" else ["-o", "s.csv", "--release", "new.release"]
    words = [command, "people.csv", "-s", "people.toml", *PROMISE, *out, "--report", "page.html"]
    made = json.loads(call(*words, "--json"))
    assert "report" not in made
    assert "page.html was not written" in made["warnings"][0]
    assert "privmeasure report new.release" in made["warnings"][0]
    assert not (folder / "page.html").exists()
    assert json.loads(call("inspect", "new.release", "--json", "--no-certificate"))["id"] == made["id"]
    assert cli.run([*words, "--overwrite"]) == 0
    assert "page.html was not written" in capsys.readouterr().err


def test_a_missing_library_is_said_before_anything_is_spent(call, folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert cli.run([*FIT, "--report", "page.html"]) == 2
    check_message(capsys.readouterr().err, "pip install jinja2 matplotlib", "report")
    assert not (folder / "new.release").exists()


def test_many_rows_get_no_bands_along_the_way(call, folder, monkeypatch):
    monkeypatch.setattr("privmeasure.cli.reporting.MOST_ALONG_THE_WAY", 100)
    made = json.loads(call(*FIT, "--report", "fit.html", "--json"))
    assert "no typical error" in made["warnings"][-1]
    assert "9 times in 10" not in page(folder, "fit.html")


def test_a_plan_as_a_page_opens_no_data(call, folder):
    (folder / "people.csv").unlink()
    asked = ["plan", "--schema", "people.toml", *PROMISE, "--rows", 5000]
    made = json.loads(call(*asked, "--html", "plan.html", "--json"))
    assert made["html"] == "plan.html"
    text = page(folder, "plan.html")
    assert "about" in text
    assert "year" in text
    assert "plan.html written" in call(*asked, "--html", "plan.html", "--overwrite")


def test_a_comparison_is_confidential_in_name_metadata_and_on_every_sheet(call, folder):
    call(*FIT)
    found = json.loads(call("evaluate", "people.csv", "new.release", "--html", "out.html", "--runs", 2, "--json"))
    assert found["html"] == "out.CONFIDENTIAL.html"
    assert not (folder / "out.html").exists()
    text = page(folder, "out.CONFIDENTIAL.html")
    assert text.count(REAL_TABLE_STAMP) >= 4
    said = call("evaluate", "people.csv", "new.release", "--html", "two.html", "--runs", 0)
    assert "two.CONFIDENTIAL.html written" in said
    assert "html" not in json.loads(call("evaluate", "people.csv", "new.release", "--json"))

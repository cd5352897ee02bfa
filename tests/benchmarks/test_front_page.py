"""The README's table beside rivals: which runs count, what is bold, which tables are held out."""

import json
from pathlib import Path

import pytest

import front_page
import pages
from privmeasure.synthesizer import MOST_JOINT_COLUMNS

METRICS = [*front_page.SHOWN, "cpu_seconds"]


def run(table, value, **more):
    return (
        {"table": table, "epsilon": 1, "neighbours": "add-remove", "w1_excess_error": 0.01}
        | dict.fromkeys(METRICS, value)
        | more
    )


def test_ratios_are_geometric_means_over_the_tables_that_a_rival_finished():
    ours = [run("a", 0.1), run("a", 0.3), run("b", 0.2), run("c", 9.0)]
    found = front_page.beside(ours, [run("a", 0.1), run("b", 0.1)])
    assert found["tv1"] == (pytest.approx(2.0), 2)
    found = front_page.beside(ours, [{k: v for k, v in run("a", 0.1).items() if k != "cpu_seconds"}])
    assert "cpu_seconds" not in found


def test_an_excess_is_at_least_its_standard_error():
    assert front_page.average([run("a", -1.0)], "w1_excess") == 0.01


def test_where_we_lose_is_bold_and_held_out_tables_are_named():
    wide = {
        "rows": [run("a", 0.2), run("a", 9.0, epsilon=4), run("a", 9.0, neighbours="replace")],
        "ratios": [{"table": name, "epsilon": 1} | dict.fromkeys(METRICS, 0.5) for name in ("a", front_page.MEAN)],
    }
    rivals = {
        "rows": [
            run("a", 0.1, rival="opendp", method="MST", status="complete"),
            run("a", 0.001, rival="opendp", method="MST", status="not finished"),
            run("a", 0.4, rival="dpmm", method="MST", status="complete"),
        ]
    }
    *_, first, second, best = front_page.table(wide, rivals, {"rows": []}, None, None).splitlines()
    assert "**2.00**" in first
    assert "0.50" in second
    assert "**" not in second + best
    assert "held-out" not in best
    held = front_page.table(wide, rivals, {"rows": []}, wide, None).splitlines()[-1]
    assert held.startswith("| best of MST and AIM, held-out tables | 1 | 1 |")


def test_the_number_of_columns_of_one_tree_is_that_of_the_run():
    found = json.loads((Path(front_page.__file__).parent / "results" / "crossover.json").read_text())
    assert front_page.joint_columns({int(columns): ratio for columns, ratio in found["means"].items()}) == 3
    assert MOST_JOINT_COLUMNS == 3
    assert "So up to 3 columns get one tree" in front_page.crossover(found)
    assert front_page.joint_columns({2: 1.01, 3: 0.5}) == 1
    assert front_page.joint_columns({2: 0.95, 3: 0.8, 4: 1.0, 5: 0.91}) == 3


def test_the_index_has_every_results_file_that_a_page_is_made_of():
    results = {path.stem for path in (Path(front_page.__file__).parent / "results").glob("*.json")}
    index = {name for *_, name in front_page.INDEX}
    kept_apart = {"against", "constants", "held-out", "held-out-delta", "held-out-rivals"}
    kept_apart |= {
        "held-out-aimed",
        "held-out-aimed-first",
        "held-out-first",
        "held-out-delta-first",
        "held-out-second",
        "held-out-delta-second",
        "held-out-third",
        "held-out-delta-third",
        "no-worse",
        "privpgd",
        "sentences",
        "wide-delta",
        "wide-rivals",
    }
    assert results - kept_apart == index, "add it to INDEX of benchmarks/front_page.py, or say here why not"
    text = pages.evidence()
    assert all(f"`{name}.json`" in text for name in index)
    assert json.dumps(pages.load("wide")["commit"])[1:-1] in text

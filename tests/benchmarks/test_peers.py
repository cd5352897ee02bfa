"""What `make bench-peers` runs again, what it counts, and what its page says."""

import numpy as np
import pytest

import distances
import narrow_tables
import peers
import peers_page

CASE = peers.Case(peers.Table("uniform", 2, real=False), "add-remove", 1)


class Memory(peers.Kept):
    """Runs that are in no file."""

    def __init__(self, values):
        self.runs = {method: {"digest": "", "CPU seconds": 1.0, "values": own} for method, own in values.items()}
        self.said = {}


def test_masses_in_units_hardly_change_the_distance():
    pytest.importorskip("ortools")
    rng = np.random.default_rng(0)
    x, y = rng.random((3000, 2)), rng.random((2500, 2)) ** 1.5
    assert distances.grid(x, y, 16, units=10**5) == pytest.approx(distances.grid(x, y, 16), rel=1e-3)


def test_half_of_the_tables_are_held_out_in_every_dimension():
    assert len(narrow_tables.HELD_OUT) == len(narrow_tables.OPEN) == 7
    assert {len(narrow_tables.BOUNDS[name]) for name in narrow_tables.HELD_OUT} == {1, 2, 3}


def test_a_stopped_run_goes_on_at_the_next_seed():
    assert [run.seed for run in peers.missing("PrivTree", {CASE.key: [0.1, 0.2]}, [CASE])] == [2, 3, 4]
    assert not list(peers.missing("random walk", {}, [CASE]))  # it needs a line


def test_the_first_seed_chooses_the_level_of_a_flat_histogram():
    levels = peers.histogram.levels(2)
    first = peers.missing(peers.HINDSIGHT, {}, [CASE])
    assert [(run.level, run.seed) for run in first] == [(level, 0) for level in levels]
    tried = {f"{CASE.key} | {level}": [0.01 * abs(level - 8) + 0.1] for level in levels}
    then = peers.missing(peers.HINDSIGHT, tried, [CASE])
    assert [(run.level, run.seed) for run in then] == [(8, seed) for seed in (1, 2, 3, 4)]


def test_code_that_changed_is_run_again_and_a_mechanism_of_the_paper_only_if_it_gives_other_numbers(monkeypatch):
    monkeypatch.setattr(peers, "CASES", [CASE])
    monkeypatch.setattr(peers, "execute", lambda run: 0.5)
    old = {"default": {CASE.key: [0.5]}, "paper": {CASE.key: [0.5]}, "PSMM": {CASE.key: [0.6]}}
    kept = Memory(old)
    assert [bool(kept.values(method)) for method in old] == [False, True, False]


def test_hindsight_is_shown_and_not_counted_and_tiny_distances_are_level():
    least = peers.floor(CASE)
    values = {"default": 3 * least, "paper": 4 * least, "PSMM": 2 * least, "PrivTree": 0.0}
    kept = Memory({method: {CASE.key: [value] * 5} for method, value in values.items()})
    kept.runs[peers.HINDSIGHT] = {"values": {f"{CASE.key} | 8": [least / 2] * 5, f"{CASE.key} | 6": [0.0]}}
    row = peers.compared(kept, CASE)
    assert row["lowest"] == "PrivTree"
    assert row["ratio"] == {"default": 3, "paper": 4, "PSMM": 2, "PrivTree": 1, "best flat": 1}
    assert row["default / paper"] == 0.75


def test_the_page_names_every_case_that_is_lost():
    values = {"default": 0.03, "paper": 0.04, "PSMM": 0.02, "PrivTree": 0.05, "hierarchy 16": 0.06}
    kept = Memory({method: {CASE.key: [w1] * 5} for method, w1 in values.items()})
    row = peers.compared(kept, CASE)
    result = {"rows": [row], "bars": {"everything": peers.summary([row])}, "methods": peers.METHODS}
    assert "| uniform 2 | 1 | add-remove | 0.03 | PSMM | 0.02 | 1.50 ± 0.00 |" in peers_page.losses(result)
    assert "| everything | 1 | **0.75** | 1 | **0.00** | 1.50 | **1.50** |" in peers_page.bars(result)
    assert "| uniform 2 | 1 | 0.02 | 1.50 | 2.00 | **1.00** | 2.50 | 3.00 |  |  |" in peers_page.everything(result)


def test_a_case_that_a_method_has_not_finished_is_compared_with_the_paper_only():
    values = {"default": [0.03] * 5, "paper": [0.04] * 5, "PSMM": [0.02] * 5, "PrivTree": [0.01] * 4}
    row = peers.compared(Memory({method: {CASE.key: own} for method, own in values.items()}), CASE)
    assert (row["lowest"], row["whole"]) == ("PSMM", False)
    assert peers.summary([row]) == {"cases": 1, "default / paper": 0.75}
    assert "of 0 cases" in peers_page.losses({"rows": [row]})

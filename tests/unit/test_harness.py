"""How a run of the tests reports: errors that the gate hid, first differences, missing engines, foreign warnings."""

import os
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import harness
from differences import assert_same, first_difference

ROOT = Path(__file__).parents[2]
TESTS = """
import numpy as np
import pytest
import privmeasure as pm
from privmeasure.mechanisms import pmm
from privmeasure.mechanisms.pmm import PMM
from privmeasure.noise.entropy import Key
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource
from servers import need

SPACE = pm.Box([(0, 1)])


def stub(*_):
    drawn = 41
    assert drawn == 42, "a stub was asked in another way"


def release():
    return PMM(SPACE, Privacy(1, "add-remove"), depth=3).release(ArraySource(np.zeros((9, 1)), width=1), Key.fresh())


def test_a_stub_fails_inside_the_gate(monkeypatch):
    monkeypatch.setattr(pmm, "public_total", stub)
    release()


def test_a_source_fails_on_the_way_to_the_gate():
    class Source:
        def count(self, partitions, *_):
            assert partitions == [], "a source was asked in another way"

    pm.Synthesizer(SPACE, epsilon=1, neighbours="add-remove", rows=9).fit(Source())


def test_an_error_that_is_expected(monkeypatch):
    monkeypatch.setattr(pmm, "public_total", stub)
    with pytest.raises(pm.PrivmeasureError):
        release()


def test_the_next_one_fails_for_itself():
    raise ValueError("nothing was hidden here")


@pytest.mark.parametrize("time", [1, 2])
def test_an_engine(time):
    need("Oracle is not installed")


def test_a_library_is_compiled():
    import library


def test_our_own_code_is_compiled():
    import ours


def test_long_bytes_differ():
    assert {"file": bytes(9999)} == {"file": bytes(5000) + b"!" + bytes(4998)}
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest prints of `TESTS`, with the settings of pyproject.toml."""
    folder = tmp_path_factory.mktemp("harness")
    (folder / "test_it.py").write_text(TESTS)
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "site-packages").mkdir()
    for path in (folder / "site-packages" / "library.py", folder / "ours.py"):
        path.write_text('PATTERN = "\\d"\n')
    paths = [ROOT / "tests", ROOT / "src", folder / "site-packages", folder, os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "COLUMNS": "200"}
    done = subprocess.run(
        [*command, "--rootdir", folder, "test_it.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def report_of(said: str, test: str) -> str:
    return said.split(f"_ {test} _")[1].split("\n____")[0].split("short test summary")[0]


def test_an_assertion_that_the_gate_hid_is_in_the_report_of_its_test(said: str) -> None:
    for test, line in (
        ("test_a_stub_fails_inside_the_gate", 'assert drawn == 42, "a stub was asked in another way"'),
        ("test_a_source_fails_on_the_way_to_the_gate", 'assert partitions == [], "a source was asked in another way"'),
    ):
        report = report_of(said, test)
        assert harness.HIDDEN in report
        assert line in report
        assert "AssertionError: a s" in report
    assert "assert 41 == 42" in said


def test_errors_that_were_hidden_in_another_test_are_not_in_a_report(said: str) -> None:
    report = report_of(said, "test_the_next_one_fails_for_itself")
    assert "nothing was hidden here" in report
    assert harness.HIDDEN not in report


def test_the_first_difference_of_a_failed_assertion_comes_before_the_dump(said: str) -> None:
    line = "first difference: left['file']: at 5000: expected b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00!"
    assert f"E       AssertionError: assert {line}" in report_of(said, "test_long_bytes_differ")
    assert f"FAILED test_it.py::test_long_bytes_differ - AssertionError: assert {line[:40]}" in said


def test_an_engine_that_is_missing_is_named_at_the_end_in_one_line(said: str) -> None:
    assert "\nNOT RUN: Oracle is not installed (skipped: 2)\n" in said


def test_a_warning_while_a_library_is_compiled_fails_no_test_and_one_of_ours_does(said: str) -> None:
    assert "FAILED test_it.py::test_our_own_code_is_compiled" in said
    assert "test_a_library_is_compiled" not in said
    assert "5 failed, 2 passed, 2 skipped" in said


# ------------------------------------------------------------------------------------------------ the first difference


@dataclass
class Release:
    counts: dict[int, np.ndarray]
    scale: Fraction


class Step(NamedTuple):
    part: int
    level: int


SAME = [
    [1, "a", b"b", None, float("nan"), Fraction(1, 3)],
    {"a": np.array([1.0, np.nan]), "b": (1, [2])},
    Release({2: np.arange(5)}, Fraction(1)),
    [Step(0, 3), Step(1, 4)],
]
DIFFERENT = [
    ([1, 2, 3], [1, 5, 3], "x[1]: expected 5, got 2"),
    ([1, 2], [1, 2, 3], "x: expected 3 entries, got 2"),
    (1, 1.0, "x: expected 1.0, got 1"),
    ({"a": 1}, {"a": 1, "b": 2}, "x['b']: is missing"),
    ({"a": 1, "b": 2}, {"a": 1}, "x['b']: was not expected"),
    ({"a": 1, "b": 2}, {"a": 0, "c": 2}, "x['a']: expected 0, got 1"),
    ([Step(0, 3), Step(1, 4)], [Step(0, 3), Step(1, 5)], "x[1].level: expected 5, got 4"),
    (Release({}, Fraction(1)), Release({}, Fraction(3, 2)), "x.scale: expected Fraction(3, 2), got Fraction(1, 1)"),
    (np.arange(4), np.array([0, 1, 7, 8]), "x[2]: expected 7, got 2; 2 of 4 entries differ"),
    (np.zeros((2, 2)), np.eye(2), "x[0, 0]: expected 1.0, got 0.0; 2 of 4 entries differ"),
    (np.zeros(3), np.zeros(4), "x: expected the shape (4,), got (3,)"),
    (
        b"0123456789abcdef",
        b"0123456789abcdeF",
        "x: at 15: expected b'0123456789abcdeF', got b'0123456789abcdef'; 16 expected, 16 found",
    ),
    ("one\ntwo", "one\ntwo\n", "x: at 7, line 2: expected 'one\\ntwo\\n', got 'one\\ntwo'; 8 expected, 7 found"),
    ("y" * 99, "y" * 50 + "z", "x: at 50: expected 'yyyyyyyyz', got 'yyyyyyyyyyyyyyyy'; 51 expected, 99 found"),
    (["y" * 999], ["z"], "x[0]: at 0: expected 'z', got 'yyyyyyyy'; 1 expected, 999 found"),
]


@pytest.mark.parametrize("thing", SAME, ids=["list", "dictionary", "dataclass", "tuples"])
def test_what_is_the_same_has_no_difference(thing: object) -> None:
    assert first_difference(thing, thing, "x") is None
    assert_same(thing, thing, "x")


@pytest.mark.parametrize(("got", "expected", "line"), DIFFERENT, ids=range(len(DIFFERENT)))
def test_the_first_difference_is_one_line(got: object, expected: object, line: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_same(got, expected, "x")
    assert str(caught.value) == line

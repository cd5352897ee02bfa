"""The lists of faults fit the code: each text to replace occurs once, and the named tests exist.

`make test-faults` plants the faults. Whoever moves code moves its faults.
"""

from pathlib import Path

from faults import Fault, problems, read_faults

ROOT = Path(__file__).parents[2]


def test_every_fault_can_be_planted_and_names_tests():
    faults = read_faults(ROOT)
    assert list(problems(ROOT, faults)) == []
    assert len(faults) >= 60
    assert {fault.file.split("/")[0] for fault in faults} == {"src"}


def test_a_fault_whose_code_has_moved_is_an_error(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\ny = 1\n")
    (tmp_path / "test_a.py").write_text("def test_x():\n    pass\n")
    good = {
        "room": "r",
        "file": "a.py",
        "claim": "x is 1.",
        "tests": ("test_a.py::test_x",),
        "old": "x = 1",
        "new": "x = 2",
    }
    wrong = {
        "occurs 2 times": {"old": "= 1", "new": "= 2"},
        "occurs 0 times": {"old": "z = 1"},
        "changes nothing": {"new": "x  =  1"},
        "is no Python": {"new": "x = ("},
        "there is no test": {"tests": ("test_a.py::test_y",)},
        "no tests are named": {"tests": ()},
    }
    faults = [Fault(name="good", **good), *(Fault(name=name, **(good | change)) for name, change in wrong.items())]
    found = list(problems(tmp_path, faults))
    assert len(found) == len(wrong)
    for name, problem in zip(wrong, found, strict=True):
        assert name in problem
    assert any("stands twice" in problem for problem in problems(tmp_path, [faults[0], faults[0]]))

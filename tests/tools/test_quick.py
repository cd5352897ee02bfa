"""`make quick` chooses the tests of a change by imports, and says what it did not run."""

import json
import subprocess
from pathlib import Path

import pytest
import quick
from quick import Choice, ImportsOfTests, choose

FILES = {
    "src/privmeasure/__init__.py": "",
    "src/privmeasure/public.py": "from privmeasure.rooms.box import Box\nfrom privmeasure.lone import Lone\n",
    "src/privmeasure/lone.py": "class Lone: ...\n",
    "src/privmeasure/unknown.py": "x = 1\n",
    "src/privmeasure/rooms/__init__.py": "from privmeasure.rooms.box import Box\n",
    "src/privmeasure/rooms/box.py": "class Box: ...\n",
    "src/privmeasure/rooms/other.py": "from privmeasure.rooms.box import Box\n",
    "src/privmeasure/cli/plan.py": "",
    "tests/unit/rooms/test_box.py": "from privmeasure.rooms.box import Box\n",
    "tests/unit/rooms/test_other.py": "from privmeasure.rooms import other\n",
    "tests/unit/test_rooms.py": "from privmeasure.rooms import Box\n",
    "tests/unit/test_names.py": "import privmeasure as pm\n\n\ndef test_it():\n    assert pm.Box\n",
    "tests/unit/test_lone.py": "from privmeasure import Lone\nfrom helper import things\n",
    "tests/helper.py": "things = 1\n",
    "tests/api/test_cli.py": "",
    "docs/page.md": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "own", "others"),
    [
        (
            "src/privmeasure/rooms/box.py",
            ["tests/unit/rooms/test_box.py"],
            ["tests/unit/test_names.py", "tests/unit/test_rooms.py"],
        ),
        ("src/privmeasure/rooms/other.py", ["tests/unit/rooms/test_other.py"], []),
        ("src/privmeasure/lone.py", ["tests/unit/test_lone.py"], []),
        ("tests/helper.py", [], ["tests/unit/test_lone.py"]),
        ("tests/unit/test_names.py", ["tests/unit/test_names.py"], []),
        ("docs/page.md", ["tests/api/test_pages.py"], []),
        ("src/privmeasure/cli/plan.py", [], ["tests/api/test_cli.py", "tests/api/test_cli_refusals.py"]),
    ],
)
def test_the_tests_of_a_change_are_those_that_import_it(root, changed, own, others):
    assert choose([changed], ImportsOfTests(root)) == Choice(own, others, [])


def test_a_source_file_that_no_test_imports_is_named(root):
    assert choose(["src/privmeasure/unknown.py"], ImportsOfTests(root)).untested == ["src/privmeasure/unknown.py"]


def test_own_tests_run_first_and_others_as_they_fit():
    choice = Choice(own=["slow"], others=["a", "b", "c", "new"])
    times = {"slow": 30.0, "a": 6.0, "b": 2.0, "c": 9.0}
    assert choice.within(40, times) == (["slow", "new", "b", "a"], ["c"])
    assert choice.within(10, times) == (["slow"], ["a", "b", "c", "new"])


@pytest.fixture
def checkout(root, monkeypatch):
    """A git checkout of the small tree, in which no static check and no test runs; what would run is written down."""
    ran: list[list[str]] = []
    monkeypatch.setattr(quick, "ROOT", root)
    monkeypatch.setattr(quick, "static_checks", lambda: True)
    monkeypatch.setattr(quick, "run_tests", lambda files, times: ran.append(sorted(files)) or True)
    monkeypatch.delenv("BASE", raising=False)

    def git(*words: str) -> None:
        name = ["-c", "user.name=x", "-c", "user.email=x@x"]
        subprocess.run(["git", *name, *words], cwd=root, check=True, capture_output=True)

    git("init", "-b", "main")
    git("add", "--all")
    git("commit", "-m", "first")
    return root, ran, git


def test_commits_and_uncommitted_and_untracked_files_count(checkout, capsys):
    root, ran, git = checkout
    assert quick.main() == 0
    assert "Nothing changed" in capsys.readouterr().out
    git("switch", "-c", "work")
    (root / "src/privmeasure/lone.py").write_text("class Lone:\n    x = 1\n")
    git("commit", "-am", "second")
    (root / "src/privmeasure/rooms/other.py").write_text("")
    (root / "tests/unit/test_new.py").write_text("def test_new(): ...\n")
    assert quick.main() == 0
    assert [file for file in ran[-1] if file.startswith("tests/")] == [
        "tests/unit/rooms/test_other.py",
        "tests/unit/test_lone.py",
        "tests/unit/test_new.py",
    ]


def test_what_is_not_run_is_said(checkout, capsys):
    root, _, _ = checkout
    (root / "tests/times.json").write_text(json.dumps({"tests/unit/test_rooms.py": 99.0}))
    (root / "Makefile").write_text("x:\n")
    (root / "src/privmeasure/rooms/box.py").write_text("class Box:\n    x = 1\n")
    assert quick.main() == 0
    said = capsys.readouterr().out
    assert "1 test files do not fit" in said
    assert "tests/unit/test_rooms.py" in said
    assert "run make test" in said
    (root / "src/privmeasure/unknown.py").write_text("x = 2\n")
    assert quick.main() == 1
    assert "no test imports src/privmeasure/unknown.py" in capsys.readouterr().out


def test_without_a_base_or_a_checkout_only_static_checks_run(checkout, capsys, monkeypatch):
    _, ran, _ = checkout
    monkeypatch.setenv("BASE", "nothing")
    assert quick.main() == 0
    assert "no commit in common" in capsys.readouterr().out
    monkeypatch.setattr(quick, "git", lambda *words: None)
    assert quick.main() == 0
    assert "no git checkout" in capsys.readouterr().out
    assert ran == []


def test_one_failing_test_fails_the_whole(checkout, monkeypatch):
    root, _, _ = checkout
    (root / "src/privmeasure/lone.py").write_text("")
    monkeypatch.setattr(quick, "run_tests", lambda files, times: False)
    assert quick.main() == 1
    monkeypatch.setattr(quick, "run_tests", lambda files, times: True)
    monkeypatch.setattr(quick, "static_checks", lambda: False)
    assert quick.main() == 1


def test_the_table_names_files_that_exist():
    here = Path(__file__).parents[2]
    for begin, tests in quick.TABLE.items():
        assert (here / begin).exists(), begin
        assert all((here / test).exists() for test in tests), begin


def test_every_source_file_of_the_package_has_tests():
    here = Path(__file__).parents[2]
    sources = [path.relative_to(here).as_posix() for path in sorted((here / "src").rglob("*.py"))]
    assert choose(sources, ImportsOfTests(here)).untested == []

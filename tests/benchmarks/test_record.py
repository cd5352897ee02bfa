"""Results come from commits: a script refuses a checkout that differs from its commit, and pages refuse its results."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pages
import record

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from pathlib import Path
import record
record.begin()
print("measuring", sys.argv[1:])
if "change" in sys.argv:
    Path("source.py").write_text("changed while it was measured")
record.save("speed", seconds=1, before=record.kept("speed"))
"""


@pytest.fixture
def checkout(tmp_path):
    """Return a repository with a script that keeps a result; its commit has all files."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path / "checkout"
    (root / "benchmarks").mkdir(parents=True)
    shutil.copy(record.__file__, root / "benchmarks")
    (root / "benchmarks" / "speed.py").write_text(SCRIPT)
    (root / "source.py").write_text("1 + 1\n")
    (root / "README.md").write_text("A page.\n")
    (root / ".gitignore").write_text("__pycache__\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=root, check=True, capture_output=True)
    return root


def run(root, *words):
    command = [sys.executable, "benchmarks/speed.py", *map(str, words)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def result(folder):
    return json.loads((folder / "speed.json").read_text())


def head(root):
    words = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def test_a_result_names_the_commit_that_gave_it(checkout):
    (checkout / "README.md").write_text("A page that `make pages` wrote.\n")
    assert run(checkout).returncode == 0
    results = checkout / "benchmarks" / "results"
    assert result(results)["commit"] == head(checkout)
    assert run(checkout).returncode == 0, "a result does not make the checkout differ"
    assert result(results)["before"]["seconds"] == 1


@pytest.mark.parametrize("name", ["source.py", "new.py"])
def test_a_checkout_that_differs_from_its_commit_is_refused_before_anything_is_measured(checkout, name):
    (checkout / name).write_text("2 + 2\n")
    refused = run(checkout)
    assert refused.returncode == 1
    assert "measuring" not in refused.stdout
    assert f"{head(checkout)}-dirty" in refused.stderr
    assert "--scratch PATH" in refused.stderr
    assert not (checkout / "benchmarks" / "results").exists()


def test_where_there_is_no_commit_a_result_is_refused(checkout):
    shutil.rmtree(checkout / ".git")
    refused = run(checkout)
    assert refused.returncode == 1
    assert "The checkout is unknown" in refused.stderr


def test_a_scratch_folder_takes_the_results_of_any_checkout(checkout, tmp_path):
    (checkout / "source.py").write_text("2 + 2\n")
    for before in (None, 1):
        done = run(checkout, "--rows", "5", "--scratch", tmp_path / "a" / "b", "-n")
        assert done.returncode == 0
        assert "measuring ['--rows', '5', '-n']" in done.stdout
        found = result(tmp_path / "a" / "b")
        assert found["commit"] == f"{head(checkout)}-dirty"
        assert (found["before"] or {}).get("seconds") == before
    assert not (checkout / "benchmarks" / "results").exists()


def test_a_scratch_folder_lies_elsewhere(checkout):
    refused = run(checkout, "--scratch", "benchmarks/results")
    assert refused.returncode == 1
    assert "must be a folder outside" in refused.stderr


def test_a_checkout_that_changes_meanwhile_leaves_the_results_as_they_are(checkout):
    assert run(checkout).returncode == 0
    before = result(checkout / "benchmarks" / "results")
    refused = run(checkout, "change")
    assert refused.returncode == 1
    assert result(checkout / "benchmarks" / "results") == before
    kept = Path(refused.stderr.split("see ")[-1].strip().removesuffix("."))
    assert result(kept.parent)["commit"] == f"{head(checkout)}-dirty"
    shutil.rmtree(kept.parent)


@pytest.mark.parametrize("commit", ["abc1234-dirty", "unknown"])
def test_no_page_reads_a_result_that_no_commit_gives(checkout, commit):
    results = checkout / "benchmarks" / "results"
    results.mkdir()
    command = [sys.executable, "-c", "import record; print(record.read('peers'), record.read('other'))"]
    for said, code in ((commit, 1), ("abc1234", 0), (record.MEASURED_DIRTY.get("peers", "abc1234"), 0)):
        (results / "peers.json").write_text(json.dumps({"commit": said}))
        done = subprocess.run(command, cwd=results.parent, capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert ("peers.json" in done.stderr) == bool(code)
        assert code or done.stdout.endswith("None\n")


def test_the_list_of_results_from_other_checkouts_names_those_that_exist_and_only_shrinks():
    results = {path.stem: json.loads(path.read_text()) for path in record.RESULTS.glob("*.json")}
    found = {name: result["commit"] for name, result in results.items() if record.is_dirty(result.get("commit", ""))}
    assert found == record.MEASURED_DIRTY
    assert len(found) <= 17, "no result is added: lower this number when one is measured again or deleted"


def test_pages_read_results_by_the_one_reader():
    assert pages.load is record.read
    assert set(pages.PAGES) == set(record.PAGES)
    for name in ("pages", "wide_page", "peers_page", "front_page"):
        source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
        assert "json" not in source.replace(".json", ""), f"{name}.py reads results by itself"


def test_every_script_that_saves_a_result_begins_by_looking_at_the_checkout():
    scripts = [*(ROOT / "benchmarks").glob("*.py"), ROOT / "tools" / "faults.py"]
    saving = [path for path in scripts if path.stem != "record" and "save(" in path.read_text(encoding="utf-8")]
    assert len(saving) > 20
    for path in saving:
        assert "begin()" in path.read_text(encoding="utf-8"), f"{path.name} saves without record.begin()"

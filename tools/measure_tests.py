"""Measure what the tests cost, and write benchmarks/results/test-costs.json.

    python tools/measure_tests.py                    measure the last commit: the entry "after"
    python tools/measure_tests.py test deep          measure these parts again, and keep the others
    python tools/measure_tests.py --before COMMIT    measure another commit: the entry "before"

Measured are the wall and CPU seconds of collecting, of `make test`, of `make test-deep` (`make test-slow` in older
commits) and, if it exists, of `make quick` for three typical changes; the numbers of test functions and of cases; and
which share of the lines of src `make test` runs. The results name the tests that only `make test-deep` runs, and those
that have more cases there. Nothing else should run on the machine meanwhile.
"""

import argparse
import ast
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "test-costs.json"
PYTHON = sys.executable
TYPICAL = {
    "a bound": "src/privmeasure/plans/bounds.py",
    "a kind of column": "src/privmeasure/tables/columns/times.py",
    "a command": "src/privmeasure/cli/inspect.py",
}
"""Changes that `make quick` is measured for: a comment is added to one file."""
ENGINES = ("*/sources/spark.py", "*/releases/spark.py", "*/cli/cluster.py", "*/sources/postgres.py")
"""Source files that need an engine: targets other than `make test` run their lines."""


def measured(command: Sequence[str], tree: Path, **environment: str) -> tuple[dict[str, float], str]:
    """Run a command in a tree; return its wall and CPU seconds, and what it printed. It must succeed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    settings = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": ""} | environment
    done = subprocess.run(command, cwd=tree, env=settings, capture_output=True, text=True, check=False)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_seconds": round(wall, 1), "cpu_seconds": round(cpu, 1)}, done.stdout


def test_functions(tree: Path) -> int:
    """Return how many functions of the tests begin with `test_`."""
    parsed = (ast.parse(path.read_text(encoding="utf-8")) for path in (tree / "tests").rglob("test_*.py"))
    functions = (node for module in parsed for node in ast.walk(module) if isinstance(node, ast.FunctionDef))
    return sum(node.name.startswith("test_") for node in functions)


def marked(tree: Path, marker: str) -> list[str]:
    """Return the test functions that have cases with a marker."""
    _, printed = measured([PYTHON, "-m", "pytest", "-q", "--collect-only", "-m", marker], tree, TEST_DEPTH="deep")
    return sorted({line.split("[")[0] for line in printed.splitlines() if "::" in line})


def quick(tree: Path) -> dict[str, dict[str, float]]:
    """Return the seconds of `make quick` for each typical change, the second of two runs."""
    found = {}
    for name, file in TYPICAL.items():
        path = tree / file
        text = path.read_text(encoding="utf-8")
        path.write_text(text.rstrip("\n") + "\n\n\n# A comment.\n", encoding="utf-8")
        try:
            for _ in range(2):
                found[name], _ = measured([PYTHON, "tools/quick.py"], tree, BASE="HEAD")
        finally:
            path.write_text(text, encoding="utf-8")
    return found


def coverage(tree: Path, marker: str) -> float:
    """Return the share of the lines of src that the tests of `make test` run, engines excepted."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "coverage.ini"
        settings.write_text(f"[run]\nsource = privmeasure\nomit = {','.join(ENGINES)}\n", encoding="utf-8")
        report = Path(folder) / "coverage.json"
        options = ["--dist", "loadfile", "--cov", f"--cov-config={settings}", f"--cov-report=json:{report}"]
        measured([PYTHON, "-m", "pytest", "-q", "-n", "2", "-m", f"not {marker}", *options], tree)
        return round(json.loads(report.read_text(encoding="utf-8"))["totals"]["percent_covered"], 1)


def collecting(tree: Path, marker: str) -> dict[str, Any]:
    """Measure collecting and the static checks, and count functions and cases."""
    collect = [PYTHON, "-m", "pytest", "-q", "--collect-only", "-m", f"not {marker}"]
    measured(collect, tree)  # the second run finds compiled files
    seconds, printed = measured(collect, tree)
    cases = re.search(r"(\d+)(?:/\d+)? tests collected", printed)
    return {
        "collecting": seconds,
        "test_functions": test_functions(tree),
        "cases_of_make_test": int(cases[1]) if cases else None,
        "only_in_make_test_deep": marked(tree, marker),
        "with_more_cases_in_make_test_deep": marked(tree, "deeper") if marker == "deep" else [],
    }


def make_test(tree: Path, marker: str) -> dict[str, Any]:
    """Measure what `make test` runs: static checks with their caches, and the tests."""
    lint = "ruff check . && ruff format --check . && mypy && mypy tests/typing"
    path = f"{Path(PYTHON).parent}:{os.environ['PATH']}"
    first, _ = measured(["sh", "-c", lint], tree, PATH=path)
    static, _ = measured(["sh", "-c", lint], tree, PATH=path)
    share = ["--dist", "loadfile"] if marker == "deep" else []
    tests, _ = measured([PYTHON, "-m", "pytest", "-q", "-n", "2", *share, "-m", f"not {marker}"], tree)
    whole = {name: round(tests[name] + static[name], 1) for name in tests}
    return {"static checks without a cache": first, "static checks": static, "make test": whole}


def make_test_deep(tree: Path, marker: str) -> dict[str, Any]:
    """Measure what `make test-deep` runs, or `make test-slow` in older commits."""
    options = ["--dist", "worksteal", "-m", "deep or deeper"] if marker == "deep" else ["-m", "slow"]
    return {"make test-deep": measured([PYTHON, "-m", "pytest", "-q", "-n", "2", *options], tree, TEST_DEPTH="deep")[0]}


PARTS: dict[str, Callable[[Path, str], dict[str, Any]]] = {
    "collecting": collecting,
    "test": make_test,
    "deep": make_test_deep,
    "quick": lambda tree, marker: {"make quick": quick(tree)} if marker == "deep" else {},
    "coverage": lambda tree, marker: {"coverage_percent": coverage(tree, marker)},
}
"""What is measured, in this order."""


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check a commit out beside this one."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), commit], cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def main() -> None:
    """Measure the parts that were asked for, and write the entry."""
    sys.path.append(str(ROOT / "benchmarks"))
    import record

    record.begin()
    parser = argparse.ArgumentParser(description="Measure what the tests cost.")
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; without any, all")
    parser.add_argument("--before", metavar="COMMIT", help="measure another commit, as the entry 'before'")
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    entries = {name: kept.get(name, {}) for name in ("before", "after")}
    entry = entries["before" if options.before else "after"]
    with worktree(options.before or "HEAD") as tree:
        marker = "deep" if "test-deep:" in (tree / "Makefile").read_text(encoding="utf-8") else "slow"
        for part in options.parts or PARTS:
            entry |= PARTS[part](tree, marker)
            record.save("test-costs", **entries)
    print(json.dumps(entry, indent=1))


if __name__ == "__main__":
    main()

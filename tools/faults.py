"""Plants the faults of tests/faults one at a time, in copies of the tree, and prints which test caught each.

    python tools/faults.py                     every fault
    python tools/faults.py noise ledger        the faults of these lists, or those whose names contain one of the words
    python tools/faults.py --write             also write benchmarks/results/faults.json

A fault is a replacement in one file, with the claim that it breaks and the tests that should notice. These tests run
first; if they pass, the rest of `make test` runs. The command fails if a fault survives, if a replacement no longer
fits its file, or if a named test fails without any fault.
"""

import argparse
import ast
import itertools
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LISTS = "tests/faults"
WORKERS = 2
NAMED_SECONDS, WHOLE_SECONDS = 300, 1800
"""The most seconds that the named tests of a fault, and all tests, may take: a fault may make a test run forever."""
PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
WHOLE = [
    [sys.executable, "-m", "ruff", "check", "--no-cache", "."],
    [sys.executable, "-m", "mypy"],
    [*PYTEST, "-n", "2", "-m", "not deep"],
]
"""What `make test` runs."""
FRESH_TIMES = itertools.count(1_000_000_000)
"""Times of change for planted files: Python takes compiled code for current if a file's time and size are the same."""


@dataclass(frozen=True)
class Fault:
    """One mistake: `old` becomes `new` in a file, which breaks the claim; the named tests should notice."""

    room: str
    name: str
    file: str
    claim: str
    tests: tuple[str, ...]
    old: str
    new: str


@dataclass(frozen=True)
class Found:
    """What happened to a fault: the test that caught it, None if it survived, and the seconds until then."""

    fault: Fault
    caught_by: str | None
    seconds: float
    by_a_named_test: bool


def read_faults(root: Path) -> list[Fault]:
    """Return the faults of every list, in the order of the files."""
    faults = []
    for path in sorted((root / LISTS).glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["fault"]:
            faults.append(Fault(path.stem, **(entry | {"tests": tuple(entry["tests"])})))
    return faults


def problems(root: Path, faults: Sequence[Fault]) -> Iterator[str]:
    """Yield what is wrong with the lists themselves: moved code, unknown tests, faults that change nothing."""
    names = [fault.name for fault in faults]
    for fault in faults:
        where = f"{LISTS}/{fault.room}.toml: {fault.name}:"
        if names.count(fault.name) > 1:
            yield f"{where} the name stands twice"
        path = root / fault.file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if text.count(fault.old) != 1:
            yield f"{where} its text occurs {text.count(fault.old)} times in {fault.file}, not once"
        elif path.suffix == ".py":
            try:
                if ast.dump(ast.parse(text.replace(fault.old, fault.new))) == ast.dump(ast.parse(text)):
                    yield f"{where} the replacement changes nothing"
            except SyntaxError:
                yield f"{where} the replacement is no Python"
        if not fault.tests:
            yield f"{where} no tests are named"
        for test in fault.tests:
            file, *inside = test.split("[")[0].split("::")
            code = (root / file).read_text(encoding="utf-8") if (root / file).is_file() else None
            if not (root / file).exists() or (inside and f"def {inside[-1]}(" not in (code or "")):
                yield f"{where} there is no test {test}"


@contextmanager
def copies(count: int) -> Iterator[list[Path]]:
    """Copy the files of the working tree, those that git ignores excepted."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        trees = [Path(folder) / str(i) for i in range(count)]
        for tree in trees:
            for name in names:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
            subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)  # some tests ask git which files there are
            subprocess.run(["git", "add", "--all"], cwd=tree, check=True)
        yield trees


def run(command: Sequence[str], tree: Path, limit: float) -> tuple[bool, str]:
    """Run a command in a copy; return whether it passed, and what it printed. A run beyond the limit has failed."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        try:
            printed, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that the tests have started
            return False, f"FAILED a test that did not end within {limit:g} seconds\n"
    return process.returncode == 0, printed.decode(errors="replace")


def first_failure(command: Sequence[str], printed: str) -> str:
    """Return the test that failed first, or the tool that is no test."""
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", printed, re.MULTILINE)
    return found[1] if found else " ".join(command[1:4])


def hunt(fault: Fault, tree: Path) -> Found:
    """Plant a fault in a copy, run its tests and, if they pass, all others, and take the fault out again."""
    path, start = tree / fault.file, time.monotonic()
    original, text = path.stat(), path.read_text(encoding="utf-8")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    os.utime(path, (original.st_atime, next(FRESH_TIMES)))
    try:
        for number, command in enumerate([[*PYTEST, *fault.tests], *WHOLE]):
            passed, printed = run(command, tree, WHOLE_SECONDS if number else NAMED_SECONDS)
            if not passed:
                return Found(fault, first_failure(command, printed), time.monotonic() - start, number == 0)
        return Found(fault, None, time.monotonic() - start, False)
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, (original.st_atime, original.st_mtime))


def hunt_all(faults: Sequence[Fault], trees: Sequence[Path]) -> list[Found]:
    """Hunt all faults, as many at a time as there are copies; print each as soon as it is known."""
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def one(fault: Fault) -> Found:
        tree = free.get()
        try:
            found = hunt(fault, tree)
        finally:
            free.put(tree)
        outcome = "SURVIVED" if found.caught_by is None else f"caught by {found.caught_by}"
        late = "" if found.by_a_named_test or found.caught_by is None else " (not by a named test)"
        print(f"{found.seconds:6.1f} s  {fault.room}/{fault.name}: {outcome}{late}", flush=True)
        return found

    with ThreadPoolExecutor(len(trees)) as pool:
        return list(pool.map(one, faults))


def results(found: Sequence[Found]) -> dict[str, Any]:
    """Return what the results file says: each fault, and for each list how many were caught and how soon."""
    rooms = {}
    for room in dict.fromkeys(one.fault.room for one in found):
        here = [one for one in found if one.fault.room == room]
        seconds = [one.seconds for one in here if one.caught_by is not None]
        rooms[room] = {
            "planted": len(here),
            "caught": len(seconds),
            "median_seconds": round(statistics.median(seconds), 1) if seconds else None,
            "most_seconds": round(max(seconds), 1) if seconds else None,
        }
    seconds = [one.seconds for one in found if one.caught_by is not None]
    return {
        "planted": len(found),
        "caught": len(seconds),
        "caught_by_a_named_test": sum(one.by_a_named_test for one in found),
        "median_seconds": round(statistics.median(seconds), 1) if seconds else None,
        "most_seconds": round(max(seconds), 1) if seconds else None,
        "rooms": rooms,
        "faults": [
            {
                "name": f"{one.fault.room}/{one.fault.name}",
                "file": one.fault.file,
                "claim": one.fault.claim,
                "caught_by": one.caught_by,
                "seconds": round(one.seconds, 1),
            }
            for one in found
        ],
    }


def main() -> int:
    """Plant the faults that were asked for, and say how it went."""
    sys.path.append(str(ROOT / "benchmarks"))
    import record

    if "--write" in sys.argv:
        record.begin()
    parser = argparse.ArgumentParser(description="Plant faults one at a time and see which test catches each.")
    parser.add_argument("words", nargs="*", help="lists, or parts of the names of faults; without any, every fault")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/faults.json")
    options = parser.parse_args()
    faults = read_faults(ROOT)
    if wrong := list(problems(ROOT, faults)):
        print("\n".join(wrong))
        return 1
    if options.words:
        faults = [f for f in faults if f.room in options.words or any(word in f.name for word in options.words)]
    with copies(WORKERS) as trees:
        named = sorted({test for fault in faults for test in fault.tests})
        without_x = [word for word in PYTEST if word != "-x"]
        passed, printed = run([*without_x, "-n", str(WORKERS), *named], trees[0], WHOLE_SECONDS)
        if not passed:
            print(printed[-8000:] + "\nA named test fails without any fault: nothing can be shown with it.")
            return 1
        found = hunt_all(faults, trees)
    summary = results(found)
    print(f"{summary['caught']} of {summary['planted']} faults were caught,", end=" ")
    print(f"{summary['caught_by_a_named_test']} of them by the tests that they name.", end=" ")
    print(f"Seconds until caught: median {summary['median_seconds']}, most {summary['most_seconds']}.")
    if options.write:
        record.save("faults", **summary)
    return 0 if summary["caught"] == summary["planted"] else 1


if __name__ == "__main__":
    sys.exit(main())

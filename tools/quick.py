"""Answer within a minute whether a change is sound so far: static checks, and the tests that import what changed.

    make quick              what changed since the last common commit with main, uncommitted changes included
    make quick BASE=v0.1    since the last common commit with another branch, tag or commit

Static checks are ruff, formatting, mypy and the import rules. A test belongs to a changed module if it imports the
module, directly or through the `__init__` of a package; a name of the package itself, such as `pm.Box`, belongs to the
module that defines it. If the recorded times of these tests exceed `BUDGET`, the tests that are named for the changed
modules run first, then as many others as fit; the rest is printed. `make test` runs everything.
"""

import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from import_graph import graph, imports, packages_of, read_tree, resolve

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "privmeasure"
SOURCE = f"src/{PACKAGE}/"
TIMES = "tests/times.json"
"""CPU seconds of every test file; `make times` writes them."""
BUDGET = 40.0
UNKNOWN_SECONDS = 1.0
FEW_SECONDS = 6.0
"""Below this, a second process would take longer to start than it saves."""
RULES = ["tests/privacy/test_imports.py", "tests/api/test_map.py", "tests/faults/test_lists.py"]
"""Tests that read the tree of files: they run after every change."""
TABLE: Mapping[str, Sequence[str]] = {
    "src/privmeasure/cli/": ["tests/api/test_cli.py", "tests/api/test_cli_refusals.py"],
    "src/privmeasure/report/": ["tests/unit/report/test_public.py", "tests/unit/report/test_pages.py"],
    "src/privmeasure/app/": ["tests/unit/app/test_visit.py", "tests/unit/app/test_server.py"],
    "src/privmeasure/tables/columns/": ["tests/unit/tables/columns/test_kinds.py", "tests/laws/test_columns.py"],
    "src/privmeasure/public.py": ["tests/api/test_public_api.py"],
    "src/privmeasure/__init__.py": ["tests/api/test_public_api.py"],
    "src/privmeasure/version.py": ["tests/unit/test_origin.py"],
    "src/privmeasure/conditions/possible.py": ["tests/unit/conditions/test_sets.py"],
    "src/privmeasure/domains/answers.py": ["tests/laws/test_scales.py"],
    "src/privmeasure/domains/bits.py": ["tests/laws/test_cells.py"],
    "src/privmeasure/hints.py": ["tests/api/test_public_api.py"],
    "src/privmeasure/ledger/names.py": ["tests/unit/ledger/test_book.py"],
    "src/privmeasure/model/conditional.py": ["tests/unit/model/test_graph.py"],
    "src/privmeasure/plans/compare.py": ["tests/unit/plans/test_bounds.py"],
    "src/privmeasure/plans/promise.py": ["tests/unit/plans/test_columns.py"],
    "src/privmeasure/releases/base.py": ["tests/unit/releases/test_cells.py"],
    "src/privmeasure/releases/choosing.py": ["tests/unit/conditions/test_sets.py"],
    "src/privmeasure/releases/drift.py": ["tests/unit/releases/test_columns.py"],
    "src/privmeasure/rounding.py": ["tests/unit/releases/test_certify.py"],
    "src/privmeasure/sources/disk.py": ["tests/unit/sources/test_tables.py"],
    "src/privmeasure/sources/duckdb.py": ["tests/unit/sources/test_databases.py"],
    "src/privmeasure/sources/engines.py": ["tests/unit/sources/test_databases.py"],
    "src/privmeasure/sources/feather.py": ["tests/laws/test_dictionaries.py"],
    "src/privmeasure/sources/postgres.py": ["tests/unit/sources/test_databases.py"],
    "src/privmeasure/sources/sqlite.py": ["tests/unit/sources/test_databases.py"],
    "src/privmeasure/tables/derived_values.py": ["tests/unit/tables/test_deriving.py"],
    "src/privmeasure/tables/editors.py": ["tests/unit/tables/test_schema.py"],
    "src/privmeasure/tables/orders.py": ["tests/unit/conditions/test_orders.py"],
    "docs/": ["tests/api/test_pages.py"],
    "README.md": ["tests/api/test_pages.py"],
    "examples/": ["tests/api/test_pages.py"],
    "tests/golden/": ["tests/golden/test_net.py", "tests/golden/test_golden.py"],
    "benchmarks/": ["tests/benchmarks/test_front_page.py"],
    "tools/": ["tests/tools/test_quick.py", "tests/faults/test_lists.py"],
    "ARCHITECTURE.md": ["tests/api/test_map.py"],
}
"""Tests of files that no test imports: commands, templates, pages, data, and modules behind others."""
WIDE = ("pyproject.toml", "Makefile", "conftest.py")
"""A change of these may concern every test."""


@dataclass
class Choice:
    """The test files for a change: those named for what changed, and the others that import it."""

    own: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)
    """Changed source files that no test belongs to."""

    def within(self, budget: float, times: Mapping[str, float]) -> tuple[list[str], list[str]]:
        """Return the files to run, and those that do not fit: own tests first, then the shortest others."""
        run, left = list(self.own), budget - sum(times.get(file, UNKNOWN_SECONDS) for file in self.own)
        for file in sorted(self.others, key=lambda file: (times.get(file, UNKNOWN_SECONDS), file)):
            if (seconds := times.get(file, UNKNOWN_SECONDS)) <= left:
                run.append(file)
                left -= seconds
        return run, sorted(set(self.others) - set(run))


def git(*words: str) -> str | None:
    """Return what git prints, or None if it fails or is not there."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def base_commit() -> str | None:
    """Return the last common commit with the base: BASE if it is given, else main, else origin/main."""
    named = os.environ.get("BASE")
    for base in [named] if named else ["main", "origin/main"]:
        if found := git("merge-base", "HEAD", base):
            return found.strip()
    return None


def changed_files(base: str) -> list[str]:
    """Return the files that differ from a commit: committed, uncommitted and untracked ones, deleted ones excepted."""
    tracked = git("diff", "--name-only", "--diff-filter=d", "-z", base) or ""
    untracked = git("ls-files", "--others", "--exclude-standard", "-z") or ""
    return sorted({name for name in (tracked + untracked).split("\0") if name})


def module_of(file: str) -> str:
    """Return the module of a source file."""
    parts = Path(file).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class ImportsOfTests:
    """Which modules of the package each test file imports."""

    def __init__(self, root: Path) -> None:
        """Read the package and its tests."""
        self.tree = read_tree(root / SOURCE)
        edges, packages = graph(self.tree), packages_of(self.tree)
        self._through = {name: edges[name] for name in packages - {PACKAGE} if name in edges}
        public = imports(self.tree.get(f"{PACKAGE}.public", ""))
        self._public = {name.rpartition(".")[2]: resolve(self.tree, name) for name, _ in public}
        self.texts = {
            path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted((root / "tests").rglob("*.py"))
        }
        self.files = [file for file in self.texts if Path(file).name.startswith("test_")]
        self._direct = {file: self._modules(text) for file, text in self.texts.items()}

    def of_module(self, module: str) -> set[str]:
        """Return the test files that import a module, directly or through the __init__ of a package."""
        return {file for file in self.files if module in self._direct[file]}

    def of_helper(self, helper: str) -> set[str]:
        """Return the test files that import a module of the tests."""
        name = ".".join(Path(helper).with_suffix("").parts[1:])
        return {
            file
            for file in self.files
            if any(n == name or n.startswith(name + ".") for n, _ in imports(self.texts[file]))
        }

    def named_for(self, module: str) -> set[str]:
        """Return the test files that are named for a module: the unit test at its place, and laws of its name."""
        *rooms, last = module.split(".")[1:] or [""]
        places = ["/".join(["tests/unit", *rooms, f"test_{last}.py"]), f"tests/laws/test_{last}.py"]
        return {place for place in places if place in self.texts}

    def _modules(self, text: str) -> set[str]:
        found = {target for name, _ in imports(text) if (target := resolve(self.tree, name))} - {PACKAGE}
        found |= {module for name in self._public_names(text) if (module := self._public.get(name))}
        around = {parent for module in found if (parent := module.rpartition(".")[0]) != PACKAGE}  # their __init__ runs
        return found | around | {module for package in found for module in self._through.get(package, ())}

    def _public_names(self, text: str) -> set[str]:
        """Return the names of the package itself that a test uses: from privmeasure import Box, or pm.Box."""
        aliases, names = set[str](), set[str]()
        parsed = ast.parse(text)
        for node in ast.walk(parsed):
            if isinstance(node, ast.Import):
                aliases |= {alias.asname or alias.name for alias in node.names if alias.name == PACKAGE}
            elif isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
                names |= {alias.name for alias in node.names}
        for node in ast.walk(parsed):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
                names.add(node.attr)
        return names


def choose(changed: Iterable[str], tests: ImportsOfTests) -> Choice:
    """Return the tests for some changed files."""
    own, others, untested = set[str](), set[str](), list[str]()
    for file in changed:
        from_table = {test for begin, listed in TABLE.items() if file.startswith(begin) for test in listed}
        if file.startswith(SOURCE) and file.endswith(".py"):
            named, importing = tests.named_for(module_of(file)), tests.of_module(module_of(file))
            own |= named
            others |= importing | from_table
            if not (named or importing or from_table):
                untested.append(file)
        elif file in tests.files:
            own.add(file)
        elif file in tests.texts:
            others |= tests.of_helper(file)
        own |= from_table if not file.endswith(".py") else set()
    return Choice(sorted(own), sorted(others - own), untested)


def run(*command: str) -> tuple[str, int, str, float]:
    """Run a command; return its name, exit status, output and seconds."""
    start = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return " ".join(Path(word).name for word in command[:3]), done.returncode, done.stdout, time.monotonic() - start


def static_checks() -> bool:
    """Run the checks that need no tests, at once; print what fails."""
    tool = Path(sys.executable).parent
    commands = [
        [str(tool / "ruff"), "check", "."],
        [str(tool / "ruff"), "format", "--check", "."],
        [str(tool / "mypy")],
        [sys.executable, "-m", "pytest", "-q", *(file for file in RULES if (ROOT / file).exists())],
    ]
    sound = True
    with ThreadPoolExecutor(2) as pool:
        for name, status, output, seconds in pool.map(lambda command: run(*command), commands):
            print(f"{'passed' if status == 0 else 'FAILED'} in {seconds:.1f} s: {name}", flush=True)
            if status:
                print(output)
                sound = False
    return sound


def run_tests(files: Collection[str], times: Mapping[str, float]) -> bool:
    """Run some test files, on two processes if that is faster."""
    if not files:
        return True
    several = sum(times.get(file, UNKNOWN_SECONDS) for file in files) > FEW_SECONDS
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not deep", *(["-n", "2"] if several else []), *files]
    return subprocess.run(command, cwd=ROOT, check=False).returncode in (0, 5)  # 5: every test of these is marked deep


def main() -> int:
    """Check the change, and say what was not checked."""
    sound, base = static_checks(), base_commit()
    if base is None:
        where = "no commit in common with BASE, main or origin/main" if git("rev-parse", "HEAD") else "no git checkout"
        print(f"Only the static checks ran: there is {where}, so it is not known what changed.")
        return 0 if sound else 1
    changed = changed_files(base)
    choice = choose(changed, ImportsOfTests(ROOT))
    times = json.loads((ROOT / TIMES).read_text(encoding="utf-8")) if (ROOT / TIMES).exists() else {}
    files, left = choice.within(BUDGET, times)
    if not changed:
        print("Nothing changed: only the static checks ran.")
    for file in choice.untested:
        print(f"ERROR: no test imports {file}. Write one, or name one in TABLE of tools/quick.py.")
    if left:
        print(f"{len(left)} test files do not fit into {BUDGET:g} seconds; make test runs them: {' '.join(left)}")
    if any(Path(file).name in WIDE for file in changed):
        print(f"One of {', '.join(WIDE)} changed, which may concern every test: run make test.")
    doctests = [file for file in changed if file.startswith(SOURCE) and file.endswith(".py")]
    sound = run_tests([*files, *doctests], times) and sound
    return 0 if sound and not choice.untested else 1


if __name__ == "__main__":
    sys.exit(main())

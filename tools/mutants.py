"""Changes the numeric kernels at random, one small change at a time, and sees which ones their unit tests notice.

    python tools/mutants.py             draw mutants, run the tests on each; about an hour on one core
    python tools/mutants.py --again     run the mutants that survived once more, after tests were added
    python tools/mutants.py --write     write benchmarks/results/mutants.json from both runs

mutmut makes the mutants: `+` becomes `-`, `<` becomes `<=`, an argument is left out, and so on; texts of errors stay as
they are. This script runs them: mutmut's runner would plant them in a process that has run the tests before, whose
caches (tables of noise) hide what a mutant does. Here the tests of a room are collected once. A fork of that process
runs them all, to see which ones execute which lines. A further fork for each mutant plants it, and runs the tests that
execute its statement: the first case of every test before the further ones, quick tests first, and tests of at most
`LIMIT` seconds in all. A mutant that takes three times as long, as endless loops do, is a timeout.

Outcomes are kept in out/mutants.jsonl, so that a run goes on where it was interrupted. tools/survivors.toml says why no
test has to notice a survivor.
"""

import argparse
import ast
import difflib
import functools
import gc
import json
import os
import pickle
import random
import resource
import signal
import sys
import textwrap
import tomllib
import traceback
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import coverage
import libcst
import libcst.matchers
import pytest
from _pytest.runner import runtestprotocol
from mutmut.mutation.file_mutation import create_mutations

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "out" / "mutants.jsonl"
REASONS = ROOT / "tools" / "survivors.toml"
SEED, DRAWN = 20, 1100
LIMIT = 8.0
"""Seconds of tests that are run on one mutant, as long as they take without any."""
SPARE = 5.0
"""Further CPU seconds that a mutant may take."""
MEMORY = 6 << 30
"""Bytes of address space: a mutant may ask for any size."""
SOURCES = {
    "noise": ["src/privmeasure/noise"],
    "mechanisms": ["src/privmeasure/mechanisms"],
    "estimates": ["src/privmeasure/estimates"],
    "certify": ["src/privmeasure/releases/certify.py"],
}
TESTS = {
    "noise": ["tests/unit/noise"],
    "mechanisms": [
        "tests/unit/mechanisms",
        "tests/unit/plans/test_bounds.py",
        "tests/unit/plans/test_columns.py",
        "tests/unit/releases/test_cells.py",
        "tests/laws/test_tree.py",
        "tests/privacy/test_column_tree_public.py",
        "tests/privacy/test_column_tree_transcripts.py",
        "tests/privacy/test_drawn_noise.py",
        "tests/privacy/test_failures.py",
        "tests/privacy/test_gaussian_transcripts.py",
        "tests/privacy/test_insecure_marks.py",
        "tests/privacy/test_isotonic_enumeration.py",
        "tests/privacy/test_keys.py",
        "tests/privacy/test_noisy_counts_alone.py",
        "tests/privacy/test_raised.py",
    ],
    "estimates": ["tests/unit/estimates"],
    "certify": ["tests/unit/releases/test_certify.py", "tests/theory/test_certificate_shares.py"],
}
"""The unit tests of each room, without its doctests; some of the gate are in tests/laws and tests/privacy."""


@dataclass(frozen=True)
class Mutant:
    """A change of one function: `old` lines become `new` ones. `code` is the function after it."""

    room: str
    file: str
    function: str
    line: int
    old: str
    new: str
    code: str

    @property
    def name(self) -> str:
        """Return a name that stays the same when the lines above the function change."""
        return f"{self.file.removeprefix('src/privmeasure/')}: {self.function}: {self.old} -> {self.new}"


# --------------------------------------------------------------------------------------------------- making mutants


def drawn() -> list[Mutant]:
    """Return the mutants that are run, drawn at random from all; a change that compiles to the same is none."""
    places = []
    for room, sources in SOURCES.items():
        for path in sorted(file for source in sources for file in files(ROOT / source)):
            module, mutations, _, _ = create_mutations(str(path), path.read_text(encoding="utf-8"))
            raised = libcst.matchers.findall(module, libcst.matchers.Raise())
            left_out = {id(node) for each in raised for node in within(each)}
            places += [(room, path, module, each) for each in mutations if id(each.original_node) not in left_out]
    random.Random(SEED).shuffle(places)
    made = (mutant for place in places if (mutant := planted(*place)))
    return [mutant for mutant, _ in zip(made, range(DRAWN), strict=False)]


def files(source: Path) -> Iterable[Path]:
    """Return the files of a folder, or a file by itself."""
    return source.glob("*.py") if source.is_dir() else (source,)


def within(node: libcst.CSTNode) -> Iterator[libcst.CSTNode]:
    """Yield a node and all that it is made of."""
    yield node
    for child in node.children:
        yield from within(child)


def planted(room: str, path: Path, module: libcst.Module, mutation: Any) -> Mutant | None:
    """Return a mutant; None if it is outside of functions, or if the function compiles to the same as before."""
    function = mutation.contained_by_top_level_function
    if not isinstance(function, libcst.FunctionDef):
        return None
    owners = [c.name.value for c in module.body if isinstance(c, libcst.ClassDef) and function in c.body.body]
    name = ".".join([*owners, function.name.value])
    bare = function.with_changes(leading_lines=())
    changed = bare.deep_replace(mutation.original_node, mutation.mutated_node)
    old, new = (libcst.Module([each]).code for each in (bare, changed))
    if code_of(old, name) == code_of(new, name):
        return None
    before, after = old.splitlines(), new.splitlines()
    changes = [c for c in difflib.SequenceMatcher(None, before, after, False).get_opcodes() if c[0] != "equal"]
    first, last = changes[0], changes[-1]
    return Mutant(
        room,
        str(path.relative_to(ROOT)),
        name,
        first_line(path, name) + first[1],
        " ".join(line.strip() for line in before[first[1] : last[2]]),
        " ".join(line.strip() for line in after[first[3] : last[4]]),
        new,
    )


@functools.cache
def first_line(path: Path, name: str) -> int:
    """Return the line on which a function begins, with its decorators."""
    node: Any = ast.parse(path.read_text(encoding="utf-8"))
    for word in name.split("."):
        node = next(each for each in node.body if getattr(each, "name", None) == word)
    return min(each.lineno for each in [node, *node.decorator_list])


def code_of(text: str, name: str) -> types.CodeType:
    """Return the compiled function of this text; `name` is that of a function or, after its class, of a method."""
    owner, _, own = name.rpartition(".")
    if owner:
        text = f"class {owner}:\n" + textwrap.indent(text, "    ")
    code = compile(text, name, "exec", dont_inherit=True)
    for wanted in filter(None, (owner, own)):
        code = next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == wanted)
    return code


def plant(mutant: Mutant) -> None:
    """Give every function object that has the old code the new one; what was computed before is forgotten."""
    path = str(ROOT / mutant.file)
    code = code_of(mutant.code, mutant.function).replace(co_filename=path)
    functions = [each for each in gc.get_objects() if isinstance(each, types.FunctionType)]
    for each in functions:
        if (each.__code__.co_filename, each.__code__.co_qualname) == (path, mutant.function):
            each.__code__ = code
    forget()


def forget() -> None:
    """Empty the caches of functions."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            each.cache_clear()


# -------------------------------------------------------------------------------------------------- running them


class Hunt:
    """A plugin of pytest that runs mutants in the place of its loop over the tests."""

    def __init__(self, room: str, mutants: Sequence[Mutant], run: str) -> None:
        """Take the mutants of a room; `run` names the run in which outcomes are kept."""
        self.room, self.mutants, self.run = room, mutants, run

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find out what each test executes, then run the tests of each mutant in a fork."""
        lines, seconds = in_fork(lambda: self.observed(session.items))
        tests = {item.nodeid: item for item in session.items}
        for number, mutant in enumerate(self.mutants, 1):
            chosen = self.chosen(mutant, lines, seconds)
            limit = 3 * sum(seconds[name] for name in chosen) + SPARE
            by = in_fork(lambda: self.first_failure(mutant, [tests[name] for name in chosen]), limit)  # noqa: B023
            outcome = "survived" if by is None else "timeout" if by == TIMEOUT else "killed"
            line = {"run": self.run, "outcome": outcome, "by": by, "tests": len(chosen), **asdict(mutant)}
            with KEPT.open("a", encoding="utf-8") as kept:
                kept.write(json.dumps(line) + "\n")
            print(f"{self.room} {number}/{len(self.mutants)} {outcome:8} {mutant.name}", file=sys.stderr, flush=True)
        return True

    def observed(self, items: Sequence[pytest.Item]) -> tuple[dict[str, dict[int, list[str]]], dict[str, float]]:
        """Return which tests execute each line of the sources, and their CPU seconds; all must pass."""
        files = sorted({str(ROOT / mutant.file) for mutant in self.mutants})
        meter = coverage.Coverage(data_file=None, include=files, config_file=False)
        seconds = {}
        meter.start()
        for item, following in zip(items, [*items[1:], None], strict=False):
            forget()
            meter.switch_context(item.nodeid)
            start = sum(os.times()[:2])
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
                raise AssertionError(f"{item.nodeid} fails without any mutant")
            seconds[item.nodeid] = sum(os.times()[:2]) - start
        meter.stop()
        return {file: meter.get_data().contexts_by_lineno(file) for file in files}, seconds

    def chosen(self, mutant: Mutant, lines: dict[str, dict[int, list[str]]], seconds: dict[str, float]) -> list[str]:
        """Return the tests that execute the statement of a mutant, in the order in which they are run."""
        file = str(ROOT / mutant.file)
        names = {name for line in statement(file, mutant.line) for name in lines[file].get(line, ())} - {""}
        cases: Counter[str] = Counter()
        order = []
        for name in sorted(names, key=lambda name: (seconds[name], name)):
            order.append((cases[name.split("[")[0]], len(order), name))
            cases[name.split("[")[0]] += 1
        chosen, total = [], 0.0
        for _, _, name in sorted(order):
            total += seconds[name]
            if total <= LIMIT or not chosen:
                chosen.append(name)
        return chosen

    def first_failure(self, mutant: Mutant, items: Sequence[pytest.Item]) -> str | None:
        """Return the first test that fails with a mutant."""
        plant(mutant)
        for item, following in zip(items, [*items[1:], None], strict=False):
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
                return item.nodeid
        return None


TIMEOUT, FAULTY = "a limit of time", "an end of the process"


def in_fork(work: Any, limit: float | None = None) -> Any:
    """Return what some work gives in a fork of this process; TIMEOUT beyond a limit of CPU seconds."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 1))
                signal.alarm(int(4 * limit) + 30)  # for a mutant that waits: machines have other work, too
                quiet = os.open(os.devnull, os.O_WRONLY)
                os.dup2(quiet, 1), os.dup2(quiet, 2)
            answer = pickle.dumps(work())
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(answer)
            os._exit(0)
        except BaseException:
            with KEPT.with_suffix(".errors").open("a", encoding="utf-8") as errors:
                traceback.print_exc(file=errors)
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        return pickle.loads(answer)
    if limit is None:
        raise SystemExit("The tests cannot be observed.")
    return TIMEOUT if -status in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM) else FAULTY


@functools.cache
def statement(file: str, line: int) -> range:
    """Return the lines of the innermost statement at a line; of a loop or the like, of its head."""
    best = range(line, line + 1)
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else node.end_lineno + 1
            if node.lineno <= line < end:
                best = range(node.lineno, end)
    return best


def hunt(run: str, mutants: Sequence[Mutant]) -> None:
    """Run mutants room by room, each room in a process of its own."""
    KEPT.parent.mkdir(exist_ok=True)
    for room, tests in TESTS.items():
        here = [mutant for mutant in mutants if mutant.room == room]
        if here:
            process = os.fork()
            if process == 0:
                arguments = ["-q", "-s", "-p", "no:cacheprovider", "-m", "not deep", *tests, *SOURCES[room]]
                os._exit(pytest.main(arguments, plugins=[Hunt(room, here, run)]))
            if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]):
                raise SystemExit(f"The tests of {room} could not be run.")


# ------------------------------------------------------------------------------------------------- what is written


def outcomes(run: str) -> dict[str, dict[str, Any]]:
    """Return the kept outcomes of a run, by the names of the mutants."""
    lines = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()] if KEPT.exists() else []
    return {Mutant(**{k: line[k] for k in Mutant.__annotations__}).name: line for line in lines if line["run"] == run}


def reasons() -> dict[str, str]:
    """Return why no test has to notice a mutant, by its name."""
    groups = tomllib.loads(REASONS.read_text(encoding="utf-8"))["reason"] if REASONS.exists() else []
    return {name: group["why"] for group in groups for name in group["mutants"]}


def results() -> dict[str, Any]:
    """Return what the results file says: numbers of each room, and every survivor with the reason."""
    before, again, why = outcomes("before"), outcomes("again"), reasons()
    after = {name: again.get(name, line) for name, line in before.items()}
    rooms = {}
    for room in SOURCES:
        first, last = ([line["outcome"] for line in run.values() if line["room"] == room] for run in (before, after))
        rooms[room] = {
            "drawn": len(first),
            "killed": first.count("killed"),
            "timeouts": first.count("timeout"),
            "survived_before": first.count("survived"),
            "survived_after": last.count("survived"),
        }
    survivors = [
        {key: line[key] for key in ("file", "line", "function", "old", "new")} | {"reason": why.get(name)}
        for name, line in sorted(after.items(), key=lambda item: (item[1]["file"], item[1]["line"]))
        if line["outcome"] == "survived"
    ]
    total = {key: sum(room[key] for room in rooms.values()) for key in rooms["noise"]}
    tool = {name: metadata.version(name) for name in ("mutmut", "libcst", "coverage", "pytest")}
    return {"tool": tool, "seed": SEED, "seconds_of_tests": LIMIT, **total, "rooms": rooms, "survivors": survivors}


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description="Run mutants of the numeric kernels against the unit tests.")
    parser.add_argument("--again", action="store_true", help="run those that survived once more")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/mutants.json")
    options = parser.parse_args()
    os.chdir(ROOT)
    if options.write:
        sys.path.append(str(ROOT / "benchmarks"))
        import record

        written = results()
        record.save("mutants", **written)
        return any(survivor["reason"] is None for survivor in written["survivors"])
    mutants = drawn()
    before = outcomes("before")
    if options.again:
        hunt("again", [mutant for mutant in mutants if before[mutant.name]["outcome"] == "survived"])
    else:
        hunt("before", [mutant for mutant in mutants if mutant.name not in before])
    return 0


if __name__ == "__main__":
    sys.exit(main())

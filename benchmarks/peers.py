"""The default beside its peers in one to three dimensions: mean W1 on four shapes and on fourteen real tables.

Peers: the paper's two mechanisms, PrivTree, a hierarchy of fan-out 16 with inference, the superregular random walk (on
a line), and the best flat histogram in hindsight, which is shown and not counted. See methods/ and narrow_tables.py.

W1 in l_infinity on the unit cube: exact on the line; exact flow after binning to 128 x 128 and 32 x 32 x 32, masses
rounded to UNITS parts. 10 seeds on the line, 5 above. Shapes have 10^5 rows. Every run is kept in results/peers.json
with a digest of the code that it depends on, so that a run that was stopped goes on, and that only ours is run again
when our code changes (the paper's mechanisms only if a few of their runs give other numbers than those kept).

    peers.py            runs what is missing, reports, and writes the results
    peers.py kept       reports what there is
    peers.py METHOD ... runs what is missing of some methods only
"""

import argparse
import hashlib
import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import distances
import narrow_tables
import record
from accuracy import SHAPES, geometric
from methods import cells, hierarchy, histogram, ours, privtree, walk
from peers_page import NEAR, PAPER, SHARE, WORST
from shapes import shape

EPSILONS = (0.1, 1, 4)
SEEDS = {1: 10, 2: 5, 3: 5}
ROWS = 10**5
UNITS = 2 * 10**5
SIDES = {2: 128, 3: 32}
RELATIONS = ("add-remove", "replace")
PROBES = 4
"""Runs of a mechanism of the paper that are made again when our code changes."""
HERE, SOURCE = Path(__file__).parent, Path(__file__).parents[1] / "src" / "privmeasure"

Values = dict[str, list[float]]
Release = Callable[[np.ndarray, float, str, np.random.Generator], cells.Cells]


@dataclass(frozen=True)
class Table:
    """Rows of the unit cube: a shape, drawn anew for every seed, or a real table."""

    name: str
    d: int
    real: bool

    def points(self, seed: int) -> np.ndarray:
        if self.real:
            return narrow_tables.load(self.name)
        return shape(self.name, ROWS, self.d, np.random.default_rng([seed, self.d]))

    @property
    def label(self) -> str:
        return self.name if self.real else f"{self.name} {self.d}"

    @property
    def held_out(self) -> bool:
        return self.name in narrow_tables.HELD_OUT


@dataclass(frozen=True)
class Case:
    """A table, a relation and an epsilon: what the methods are compared on."""

    table: Table
    relation: str
    epsilon: float

    @property
    def key(self) -> str:
        return f"{self.table.label} | {self.relation} | {self.epsilon}"

    @property
    def seeds(self) -> range:
        return range(SEEDS[self.table.d])


@dataclass(frozen=True)
class Run:
    """One release by one method; `level` is the level of a flat histogram."""

    method: str
    case: Case
    seed: int
    level: int | None = None


SHAPED = [Table(name, d, real=False) for d in SEEDS for name in SHAPES]
REAL = [Table(name, len(bounds), real=True) for name, bounds in narrow_tables.BOUNDS.items()]
CASES = [
    *(Case(*each) for each in product(REAL, RELATIONS[:1], EPSILONS)),
    *(Case(*each) for each in product(SHAPED, RELATIONS, EPSILONS)),
]
STAGES = ((True, "add-remove"), (False, "add-remove"), (False, "replace"))
OURS = {"default": ours.default, "paper": ours.paper, "PSMM": ours.psmm}
RIVALS: dict[str, Release] = {
    "PrivTree": privtree.release,
    "hierarchy 16": hierarchy.release,
    "random walk": walk.release,
}
HINDSIGHT = "best flat"
METHODS = (*OURS, *RIVALS, HINDSIGHT)
COUNTED = (*OURS, *RIVALS)


def applies(method: str, case: Case) -> bool:
    """Say whether a method is there for a case: the walk needs a line."""
    return method != "random walk" or case.table.d == 1


# --------------------------------------------------------------------------------------------------- one run


def w1(x: np.ndarray, y: np.ndarray) -> float:
    d = x.shape[1]
    return distances.line(x, y) if d == 1 else distances.grid(x, y, SIDES[d], units=UNITS)


def execute(run: Run) -> float:
    """Release, sample and measure."""
    points, relation, epsilon = run.case.table.points(run.seed), run.case.relation, run.case.epsilon
    if run.method in OURS:
        return w1(points, OURS[run.method](points, epsilon, relation, run.seed))
    rng = np.random.default_rng([run.seed, METHODS.index(run.method), run.level or 0])
    if run.level is None:
        found = RIVALS[run.method](points, epsilon, relation, rng)
    else:
        found = histogram.release(points, epsilon, relation, rng, level=run.level)
    return w1(points, found.points(max(1, round(float(found.mass.sum()))), rng))


def timed(run: Run) -> tuple[float, float]:
    """Return the distance of a run and its CPU seconds, those of the distance included."""
    start = time.process_time()
    return execute(run), time.process_time() - start


# ------------------------------------------------------------------------------------------------ what is kept


@cache
def digest(method: str) -> str:
    """Return a digest of all code that the runs of a method depend on."""
    content = hashlib.sha256(f"{EPSILONS} {ROWS} {UNITS} {SIDES} {inspect.getsource(shape)}".encode())
    content.update(inspect.getsource(execute).encode())
    files = [HERE / "narrow_tables.py", HERE / "distances.py"]
    if method in OURS:
        files += [HERE / "methods" / "ours.py", *sorted(SOURCE.rglob("*.py"))]
    else:
        module = histogram.__name__ if method == HINDSIGHT else RIVALS[method].__module__
        files += [HERE / "methods" / "cells.py", HERE / f"{module.replace('.', '/')}.py"]
    for file in files:
        content.update(file.read_bytes())
    return content.hexdigest()[:16]


class Kept:
    """The runs of results/peers.json: for every method a digest, and a list of distances, seed by seed, a case."""

    def __init__(self) -> None:
        old = record.kept("peers") or {}
        self.runs: dict[str, dict[str, Any]] = old.pop("runs", {})
        self.said = {name: value for name, value in old.items() if name not in ("machine", "versions", "commit")}

    def values(self, method: str) -> Values:
        """Return what is kept of a method and still holds."""
        found = self.runs.get(method, {})
        if found.get("digest") != digest(method):
            if found.get("values") and method in OURS and method != "default" and self.agrees(method, found["values"]):
                found["digest"] = digest(method)
            else:
                found = {"digest": digest(method), "CPU seconds": 0.0, "values": {}}
            self.runs[method] = found
        return found["values"]

    @staticmethod
    def agrees(method: str, values: Values) -> bool:
        """Say whether a few runs still give what is kept."""
        cases = [case for case in CASES if values.get(case.key)]
        probes = cases[:: max(1, len(cases) // PROBES)]
        return all(np.isclose(execute(Run(method, case, 0)), values[case.key][0], rtol=1e-4) for case in probes)

    def save(self) -> None:
        """Write the file, with what was said last."""
        record.save("peers", **self.said, runs=self.runs)


def rounded(value: float) -> float:
    return float(f"{value:.6g}")


def missing(method: str, values: Values, cases: list[Case]) -> Iterator[Run]:
    """Return the runs of a method that are not kept; a flat histogram has a list for each level that was tried."""
    for case in cases:
        if not applies(method, case):
            continue
        if method != HINDSIGHT:
            yield from (Run(method, case, seed) for seed in case.seeds[len(values.get(case.key, [])) :])
            continue
        tried = {level: values.get(f"{case.key} | {level}", []) for level in histogram.levels(case.table.d)}
        if case.table.d > 1 and all(tried.values()):  # the first seed chooses the level
            best = min(tried, key=lambda level: tried[level][0])
            yield from (Run(method, case, seed, best) for seed in case.seeds[len(tried[best]) :])
        else:
            seeds = case.seeds if case.table.d == 1 else range(1)
            yield from (Run(method, case, seed, level) for level in tried for seed in seeds[len(tried[level]) :])


def key_of(run: Run) -> str:
    return run.case.key if run.level is None else f"{run.case.key} | {run.level}"


def complete(kept: Kept, methods: Iterable[str], pool: ProcessPoolExecutor) -> None:
    """Make the runs that are missing, real tables first, and write the file every minute."""
    stages = [[case for case in CASES if (case.table.real, case.relation) == stage] for stage in STAGES]
    for cases, method in product(stages, methods):
        values = kept.values(method)
        while runs := list(missing(method, values, cases)):
            print(f"{method}: {len(runs)} runs", file=sys.stderr)
            written = time.monotonic()
            for run, (value, seconds) in zip(runs, pool.map(timed, runs, chunksize=1), strict=True):
                values.setdefault(key_of(run), []).append(rounded(value))
                kept.runs[method]["CPU seconds"] = round(kept.runs[method]["CPU seconds"] + seconds, 2)
                if time.monotonic() - written > 60:
                    written = time.monotonic()
                    kept.save()
            kept.save()


# ------------------------------------------------------------------------------------------------ what it says


def found(kept: Kept, method: str, case: Case) -> list[float]:
    """Return the distances of a method, of a flat histogram those of its best level; empty where there are none."""
    values: Values = kept.runs.get(method, {}).get("values", {})
    if method != HINDSIGHT:
        return values.get(case.key, [])
    lists = [values.get(f"{case.key} | {level}", []) for level in histogram.levels(case.table.d)]
    whole = [each for each in lists if len(each) == len(case.seeds)]
    return min(whole, key=np.mean, default=[])


def floor(case: Case) -> float:
    """Return the distance below which methods count as level: the noise of one count, moved by the diameter."""
    return 1 / (case.epsilon * len(case.table.points(0)))


def compared(kept: Kept, case: Case) -> dict[str, Any]:
    """Return mean and standard error of every method, and its ratio to the lowest of those that count."""
    lists = {method: found(kept, method, case) for method in METHODS}
    lists = {method: each for method, each in lists.items() if len(each) == len(case.seeds)}
    mean = {method: float(np.mean(each)) for method, each in lists.items()}
    error = {method: float(np.std(lists[method], ddof=1) / len(lists[method]) ** 0.5) for method in mean}
    least = floor(case)
    lowest = min((method for method in mean if method in COUNTED), key=mean.__getitem__)
    base = max(mean[lowest], least)
    ratio = {method: max(value, least) / base for method, value in mean.items()}
    chance = ratio["default"] * float(np.hypot(error["default"] / max(mean["default"], least), error[lowest] / base))
    return {
        "table": case.table.label,
        "d": case.table.d,
        "part": ("held out" if case.table.held_out else "open") if case.table.real else "shape",
        "relation": case.relation,
        "epsilon": case.epsilon,
        "lowest": lowest,
        "whole": all(method in mean for method in COUNTED if applies(method, case)),
        "mean": {method: rounded(value) for method, value in mean.items()},
        "error": {method: rounded(value) for method, value in error.items()},
        "ratio": {method: round(value, 4) for method, value in ratio.items()},
        "chance": 0.0 if lowest == "default" else round(chance, 4),
        "default / paper": round(max(mean["default"], least) / max(mean["paper"], least), 4),
    }


GROUPS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "held-out tables": lambda row: row["part"] == "held out",
    "open tables": lambda row: row["part"] == "open",
    "all tables": lambda row: row["part"] != "shape",
    "shapes, add-remove": lambda row: row["part"] == "shape" and row["relation"] == "add-remove",
    "shapes, replace": lambda row: row["part"] == "shape" and row["relation"] == "replace",
    "everything": lambda row: True,
}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the bars of some cases; those of ratios to the lowest where all methods were run."""
    found = {"cases": len(rows), "default / paper": round(geometric([row["default / paper"] for row in rows]), 3)}
    whole = [row for row in rows if row["whole"]]
    if not whole:
        return found
    ratios = [row["ratio"]["default"] for row in whole]
    worst = max(whole, key=lambda row: row["ratio"]["default"])
    return found | {
        "with all methods": len(whole),
        "within 5 %": round(float(np.mean([ratio <= NEAR for ratio in ratios])), 3),
        "mean ratio to the lowest": round(geometric(ratios), 3),
        "largest ratio": round(max(ratios), 3),
        "where": f"{worst['table']}, epsilon {worst['epsilon']}, {worst['relation']}",
    }


def report(kept: Kept) -> dict[str, Any]:
    """Print and return what the kept runs say."""
    both = [case for case in CASES if all(len(found(kept, m, case)) == len(case.seeds) for m in ("default", "paper"))]
    rows = [compared(kept, case) for case in both]
    shown = ["table", "part", "relation", "epsilon"]
    lines = [
        {
            **{name: row[name] for name in shown},
            "W1 default": row["mean"]["default"],
            **{method: f"{row['ratio'][method]:.2f}" if method in row["ratio"] else "" for method in METHODS},
            "lowest": row["lowest"],
        }
        for row in rows
        if row["whole"]
    ]
    print(f"W1 over the lowest of all but {HINDSIGHT!r}\n{record.table(lines)}\n")
    bars = {name: summary(chosen) for name, group in GROUPS.items() if (chosen := [row for row in rows if group(row)])}
    columns = dict.fromkeys(name for bar in bars.values() for name in bar)
    print(
        record.table(
            [{"group": name, **{column: bar.get(column, "") for column in columns}} for name, bar in bars.items()]
        )
    )
    print(f"{len(CASES)} cases, {sum(row['whole'] for row in rows)} of them with all methods that count")
    print(f"\nbars: default / paper at most {PAPER}; within 5 % of the lowest on at least {SHARE:.0%};")
    print(f"never above {WORST} of the lowest")
    return {"rows": rows, "bars": bars}


def main() -> None:
    record.begin()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="'kept', or methods")
    parser.add_argument("--workers", type=int, default=2)
    words = parser.parse_args()
    if unknown := {*words.words} - {*METHODS, "kept"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected 'kept' or one of {', '.join(METHODS)}")
    kept = Kept()
    if words.words != ["kept"]:
        with ProcessPoolExecutor(words.workers) as pool:
            complete(kept, words.words or METHODS, pool)
    kept.said = {
        "epsilons": EPSILONS,
        "seeds": SEEDS,
        "rows of shapes": ROWS,
        "counted": COUNTED,
        "methods": METHODS,
        **report(kept),
    }
    kept.save()


if __name__ == "__main__":
    main()

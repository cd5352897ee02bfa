"""Rivals on the tables of all groups: results are kept as a file, to be compared with ours.

The rivals, their environments and settings are those of wide_rivals.py: MST of OpenDP and of dpmm with three seeds, AIM
of OpenDP with one. A run that needs more than 30 CPU minutes is stopped, and its row says so. Seed s is split s of the
table: the rival gets four fifths of the rows, is measured against these (rivals/measure.py), and models that are
trained on its rows are tested on the other fifth (rivals/downstream.py).

Runs that are in `benchmarks/results/held-out-rivals.json` already are not made again: delete their rows to repeat them.
Words on the command line restrict the runs to halves (`open`, `held-out`, `large`), tables, rivals and methods:
`held_out_rivals.py MST adult`. `held_out_rivals.py show` prints the means over the seeds and runs nothing.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import held_out_tables as tables
import record
import wide_rivals
from rivals import downstream, measure
from wide import ONE_THREAD
from wide_rivals import DELTA, KEY

RESULT = record.RESULTS / "held-out-rivals.json"
LIMIT = 30 * 60
EPSILONS = (1, 0.1, 4)
HALVES = {"open": tables.OPEN, "held-out": tables.HELD_OUT, "large": tables.LARGE}
SHOWN = (
    "tv1",
    "tv2",
    "tv3",
    "column_w1",
    "common_values",
    "sliced",
    "w1_excess",
    *downstream.METHODS,
    "cpu_seconds",
    "peak_mb",
)


def plan() -> Iterator[dict[str, Any]]:
    """Yield the runs, the most telling first: held-out tables before open ones, AIM before more seeds of dpmm."""
    first = [("opendp", "MST", 0), ("opendp", "MST", 1), ("opendp", "MST", 2), ("dpmm", "MST", 0), ("opendp", "AIM", 0)]
    for names in (tables.HELD_OUT, tables.LARGE, tables.OPEN):
        for rival, method, seed in [*first, ("dpmm", "MST", 1), ("dpmm", "MST", 2)]:
            for epsilon in EPSILONS:
                for name in names:
                    yield dict(zip(KEY, (rival, method, name, epsilon, seed), strict=True))


def asked(run: dict[str, Any], words: set[str]) -> bool:
    """Say whether the words of the command line leave a run in."""
    names = {str(value) for value in run.values()} | {half for half, own in HALVES.items() if run["table"] in own}
    choices = ({*HALVES}, {*tables.NAMES}, {*wide_rivals.RIVALS}, {"MST", "AIM"})
    return all(words & choice & names or not words & choice for choice in choices)


class Split:
    """The rows that a method sees, those that it does not see, and what both say without any method."""

    def __init__(self, name: str, seed: int, floor: dict[str, Any] | None = None) -> None:
        """Take a table and a seed, and the floors if they are known already."""
        table, self.bounds = tables.load(name)
        self.target = tables.TARGET[name]
        rows = measure.coded(table, self.bounds)
        seen, unseen = tables.split(len(rows), seed)
        self.table, self.seen, self.unseen = table.take(seen), rows[seen], rows[unseen]
        self.real = measure.Real(self.seen, self.bounds, floor and floor["w1_draws"])

    def floor(self) -> dict[str, Any]:
        """Return what a resample of the seen rows gives, and what models learn from the seen rows themselves."""
        learnt = downstream.scores(self.seen, self.unseen, self.bounds, self.target)
        return {**measure.floors(self.seen, self.bounds, self.real), **learnt}

    def measures(self, synthetic: np.ndarray) -> dict[str, float]:
        """Return every measure of synthetic rows."""
        learnt = downstream.scores(synthetic, self.unseen, self.bounds, self.target)
        return {**self.real.compare(synthetic), **learnt}


def stored() -> dict[str, Any]:
    """Return the kept rows and floors."""
    return record.kept("held-out-rivals") or {"rows": [], "floors": {}}


def keep(row: dict[str, Any], floors: dict[str, Any]) -> None:
    """Add a run to the file, which another process may have added to meanwhile: a stop loses at most one run."""
    old = stored()
    settings = {
        "delta": DELTA,
        "bins": measure.BINS,
        "cpu_limit_seconds": LIMIT,
        "targets": tables.TARGET,
        "pot": metadata.version("pot"),
        "scikit-learn": metadata.version("scikit-learn"),
    }
    record.save("held-out-rivals", settings=settings, floors=old["floors"] | floors, rows=[*old["rows"], row])


def main() -> None:
    if sys.argv[1:] == ["show"]:
        print(wide_rivals.summary(stored()["rows"], SHOWN))
        return
    record.begin()
    words = set(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        for run in plan():
            old = stored()
            if not asked(run, words) or any(all(row[key] == run[key] for key in KEY) for row in old["rows"]):
                continue
            where = f"{run['table']} {run['seed']}"
            floor = old["floors"].get(where)
            split = Split(run["table"], run["seed"], floor)
            source = Path(folder) / "input.npz"
            sizes = [measure.count(bound) for bound in split.bounds.values()]
            np.savez_compressed(source, cells=split.real.cells, sizes=sizes)
            report, cells = wide_rivals.fitted(run, source, Path(folder), LIMIT)
            row = {**run, "delta": DELTA, "rows": len(split.seen), "columns": len(sizes), **report}
            if cells is not None:
                synthetic = measure.decoded(cells, split.bounds, np.random.default_rng(run["seed"]))
                row.update(split.measures(synthetic))
            row["date"] = time.strftime("%Y-%m-%d")
            keep(row, {where: floor or split.floor()})
            print({key: row.get(key) for key in (*KEY, "status", "cpu_seconds")}, file=sys.stderr, flush=True)
    print(wide_rivals.summary(stored()["rows"], SHOWN))


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):  # NumPy reads them when it starts
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    main()

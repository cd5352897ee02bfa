"""Other makers of private tables on the benchmark's wide tables: results are kept as a file, to be compared with ours.

Every rival runs in its own environment (`.venv-<rival>`, made here) at its best documented setting: MST and AIM of
OpenDP's extra `mbi` and of `dpmm`, at (epsilon, delta = 1e-6), on 32 equal bins over the public bounds, with their
default iterations, one thread. Bins are decoded here, uniformly inside the bin. CPU seconds are those of fit and
sample, imports excluded. A run that needs more than 20 CPU minutes is stopped, and its row says so.

Runs that are in `benchmarks/results/wide-rivals.json` already are not made again: delete their rows to repeat them.
Words on the command line restrict the runs: `wide_rivals.py dpmm adult` leaves out the other rivals and tables;
`wide_rivals.py show` prints the means over the seeds and runs nothing.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import record
import wide_tables
from rivals import measure

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent / "rivals"
RESULT = record.RESULTS / "wide-rivals.json"
DELTA = 1e-6
LIMIT = 20 * 60
MEMORY = 16 * 2**30

# rival -> its script, what is installed, and the first Python that it does not support
RIVALS: dict[str, tuple[str, list[str], tuple[int, int]]] = {
    "opendp": ("opendp_mbi.py", ["opendp[mbi]==0.16.0", "pandas", "numpy"], (3, 15)),
    "dpmm": ("dpmm_models.py", ["dpmm==0.1.9"], (3, 12)),
}
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
KEY = ("rival", "method", "table", "epsilon", "seed")


def plan() -> Iterator[dict[str, Any]]:
    """Yield the runs, the most telling first: MST with three seeds, then AIM, which takes up to 20 minutes."""
    tables = [*wide_tables.NAMES]

    def runs(rival: str, method: str, epsilon: float, seed: int) -> Iterator[dict[str, Any]]:
        for table in tables:
            yield dict(zip(KEY, (rival, method, table, epsilon, seed), strict=True))

    for seed in (0, 1, 2):
        for rival in RIVALS:
            yield from runs(rival, "MST", 1, seed)
    for seed in (0, 1, 2):
        for rival in RIVALS:
            for epsilon in (0.1, 4):
                yield from runs(rival, "MST", epsilon, seed)
    for rival in RIVALS:
        yield from runs(rival, "AIM", 1, 0)
    for epsilon in (0.1, 4):
        yield from runs("opendp", "AIM", epsilon, 0)  # dpmm's takes longer still
    for epsilon in (0.1, 1, 4):
        for seed in (1, 2):
            yield from runs("opendp", "AIM", epsilon, seed)


def environment(rival: str) -> Path:
    """Return the Python of a rival's environment, made on first use."""
    _, packages, above = RIVALS[rival]
    folder = ROOT / f".venv-{rival}-wide"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        names = [f"python3.{minor}" for minor in range(above[1] - 1, 9, -1)]
        base = sys.executable if sys.version_info[:2] < above else next(filter(None, map(shutil.which, names)), None)
        if base is None:
            raise SystemExit(f"{rival} needs a Python before {above[0]}.{above[1]}")
        subprocess.run([base, "-m", "venv", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        (folder / "ready").touch()
    return python


def stopped(limit: int) -> str:
    """Return the status of a run that took more CPU seconds than it may."""
    return f"not finished within {limit // 60} CPU minutes"


def fitted(
    run: dict[str, Any], source: Path, work: Path, limit: int = LIMIT
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Return a rival's report and its synthetic cells, or why there are none."""

    def limits() -> None:  # runs in the rival's process
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))

    output, report = work / "output.npz", work / "report.json"
    output.unlink(missing_ok=True)
    settings = {**run, "delta": DELTA, "input": str(source), "output": str(output), "report": str(report)}
    command = [environment(run["rival"]), HERE / RIVALS[run["rival"]][0], json.dumps(settings)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, env={**os.environ, **ONE_THREAD}, preexec_fn=limits, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode == 0:
        with np.load(output) as stored:
            return {"status": "complete", **json.loads(report.read_text())}, stored["cells"]
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(done.stderr[-2000:], file=sys.stderr)
    last = (done.stderr.strip().splitlines() or ["killed"])[-1]
    killed = done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    late = killed and spent > 0.9 * limit  # what the kernel counts for its limit is a little more
    reason = stopped(limit) if late else f"failed: {last[:200]}"
    return {"status": reason, "cpu_seconds": round(spent, 2)}, None


def keep(rows: list[dict[str, Any]], floors: dict[str, Any]) -> None:
    """Write the file after each run, so that a stop loses at most one."""
    settings = {
        "delta": DELTA,
        "bins": measure.BINS,
        "cpu_limit_seconds": LIMIT,
        "packages": wide_tables.PACKAGE,
        "pot": metadata.version("pot"),
    }
    record.save("wide-rivals", settings=settings, floors=floors, rows=rows)


SHOWN = ("tv1", "tv2", "column_w1", "common_values", "sliced", "w1", "w1_excess", "cpu_seconds", "peak_mb")


def summary(rows: list[dict[str, Any]], names: tuple[str, ...] = SHOWN) -> str:
    """Return the means over the seeds as a text table."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["status"] == "complete":
            groups.setdefault(tuple(row[key] for key in KEY[:4]), []).append(row)
    lines = [
        {
            **dict(zip(KEY[:4], group, strict=True)),
            "seeds": len(found),
            **{name: float(np.mean([row[name] for row in found])) for name in names if all(name in r for r in found)},
        }
        for group, found in sorted(groups.items(), key=lambda item: (item[0][3], item[0][2], item[0]))
    ]
    return record.table(lines) if lines else "no complete run"


def main() -> None:
    if sys.argv[1:] != ["show"]:
        record.begin()
    words = set(sys.argv[1:])
    old = record.kept("wide-rivals") or {"rows": [], "floors": {}}
    rows, floors = old["rows"], old["floors"]
    if words == {"show"}:
        print(summary(rows))
        return
    real: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for run in plan():
            names = {str(value) for value in run.values()}
            choices = ({*RIVALS}, {*wide_tables.NAMES}, {"MST", "AIM"})
            if any(words & choice and not words & choice & names for choice in choices):
                continue
            if any(all(row[key] == run[key] for key in KEY) for row in rows):
                continue
            if any(all(row[key] == run[key] for key in KEY[:-1]) and row["status"] == stopped(LIMIT) for row in rows):
                continue  # what one seed did not end in time, another will not
            name, bounds = run["table"], wide_tables.BOUNDS[run["table"]]
            if name not in real:
                real[name] = measure.coded(wide_tables.load(name)[0], bounds)
                sizes = [measure.count(bound) for bound in bounds.values()]
                np.savez_compressed(work / f"{name}.npz", cells=measure.cells(real[name], bounds), sizes=sizes)
            floors[name] = floors.get(name) or measure.floors(real[name], bounds)
            report, cells = fitted(run, work / f"{name}.npz", work)
            row = {**run, "delta": DELTA, "rows": len(real[name]), "columns": len(bounds), **report}
            if cells is not None:
                synthetic = measure.decoded(cells, bounds, np.random.default_rng(run["seed"]))
                row.update(measure.compare(real[name], synthetic, bounds, floors[name]))
            row["date"] = time.strftime("%Y-%m-%d")
            rows.append(row)
            keep(rows, floors)
            print({key: row.get(key) for key in (*KEY, "status", "cpu_seconds", "tv1", "tv2")}, file=sys.stderr)
    print(summary(rows))


if __name__ == "__main__":
    main()

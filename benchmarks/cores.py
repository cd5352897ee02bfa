"""Cores: the time of the same work on 1, 2, 4, 8 and 16 threads, as far as there are cores. Ratios of one process run.

- **arrays**: fit and sample of points in the square, on NumPy alone and, where numba is, with compiled loops;
- **tables**: from file to file, Parquet and CSV, one tree over the columns and a tree for each of them.

Wall seconds, medians of rounds that go through all numbers of threads by turns. Every first round has a seed, and its
rows must be the same for every path and number of threads. `--memory` measures peak memory instead, each size of a
table in a process of its own.
"""

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import privmeasure as pm
from privmeasure import compiled
from record import begin, kept, save, table

ROWS = 10**7
ROUNDS = 7
BARS = {"plain": {2: 1.6, 16: 4.0}, "compiled": {2: 1.8, 16: 8.0}}
SECONDS = {"arrays": 25.0, "parquet": 30.0, "csv": 45.0, "columns": 60.0}
"""After these no further round of a case begins: all together take less than four minutes."""
MEMORY_ROWS = (10**7, 3 * 10**7, 10**8)
MEMORY_BAR = 2.0
STAGES = ("fit", "sample", "fit + sample")


def thread_counts(most: int) -> list[int]:
    return [threads for threads in (1, 2, 4, 8, 16, 32, 64) if threads <= most]


def paths() -> list[str]:
    return ["plain", "compiled"] if find_spec("numba") else ["plain"]


@contextmanager
def on(path: str) -> Iterator[None]:
    """Work with or without compiled loops."""
    found, compiled.kernels = compiled.kernels, compiled.kernels if path == "compiled" else lambda: None
    try:
        yield
    finally:
        compiled.kernels = found


def digest(rows: np.ndarray) -> str:
    return hashlib.blake2b(rows.data.cast("B"), digest_size=16).hexdigest()


def arrays(count: int, most: int) -> list[dict[str, Any]]:
    X = np.random.default_rng(1).random((count, 2))
    cases = [(path, threads) for path in paths() for threads in thread_counts(most)]
    seconds: dict[tuple[str, int], list[tuple[float, float]]] = {case: [] for case in cases}
    begun = time.perf_counter()
    if "compiled" in paths():
        compiled.load_kernels(compiled.MANY_ROWS)
    loading, digests, begun = time.perf_counter() - begun, set(), time.perf_counter()
    for turn in range(ROUNDS + 1):
        if turn > 1 and time.perf_counter() - begun > SECONDS["arrays"] * len(paths()):
            break
        for path, threads in cases:
            seeds = {"insecure_seed": 7} if turn == 0 else {}
            with on(path):
                start = time.perf_counter()
                synth = pm.Synthesizer(pm.Box([(0, 1)] * 2), epsilon=1, neighbours="replace", threads=threads).fit(
                    X, **seeds
                )
                fitted = time.perf_counter()
                Y = synth.sample(seed=7 if turn == 0 else None)
                sampled = time.perf_counter()
            if turn == 0:
                digests.add(digest(Y))
            else:
                seconds[path, threads].append((fitted - start, sampled - fitted))
            del Y
    assert len(digests) == 1, "rows differ by path or threads"
    found = []
    for (path, threads), runs in seconds.items():
        fit, sample = (statistics.median(times) for times in zip(*runs, strict=True))
        whole = statistics.median(map(sum, runs))
        for stage, median in zip(STAGES, (fit, sample, whole), strict=True):
            found.append({"work": "arrays", "stage": stage, "path": path, "threads": threads, "seconds": median})
    for line in found:
        one = {r["path"]: r["seconds"] for r in found if r["threads"] == 1 and r["stage"] == line["stage"]}
        line["times one thread"] = one[line["path"]] / line["seconds"]
        line["times one plain thread"] = one["plain"] / line["seconds"]
        line["runs"] = len(seconds[line["path"], line["threads"]])
    print(f"loading compiled loops took {loading:.2f} s", flush=True)
    return found


# --------------------------------------------------------------------------------------------------------------- tables


def schema() -> "pm.Schema":
    return pm.Schema(
        {
            "east": pm.Number(0, 1),
            "north": pm.Number(0, 1),
            "kind": pm.Category(["a", "b", "c", "d", "e"]),
            "age": pm.Integer(0, 127),
            "paid": pm.Number(0, 1000, nullable=True),
        }
    )


def write_input(path: Path, count: int) -> None:
    """Write rows in pieces: memory stays small."""
    import pyarrow as pa

    from privmeasure.tables.writing import write_table

    def pieces() -> Iterator[pa.Table]:
        rng = np.random.default_rng(0)
        for start in range(0, count, 1 << 17):
            n = min(1 << 17, count - start)
            points = np.clip(rng.normal(0.5, 0.15, (n, 2)), -0.1, 1.1).round(6)
            kinds = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 5, n), pa.int8()), pa.array(list("abcde")))
            paid = pa.array(rng.gamma(2, 50, n).round(2), mask=rng.random(n) < 0.1)
            columns = {"east": points[:, 0], "north": points[:, 1], "kind": kinds.cast(pa.string())}
            yield pa.table(columns | {"age": rng.integers(0, 100, n).astype(np.int32), "paid": paid})

    write_table(path, pieces(), overwrite=True)


def file_to_file(path: Path, out: Path, mechanism: str, threads: int, seed: int | None = None) -> tuple[float, float]:
    """Return the seconds of the fit and of making and writing as many rows."""
    from privmeasure.tables.writing import write_table

    out.unlink(missing_ok=True)  # to let go of an old file takes the system longer than to write the new one's name
    start = time.perf_counter()
    synth = pm.Synthesizer(schema(), epsilon=1, neighbours="add-remove", mechanism=mechanism, threads=threads).fit(
        path, insecure_seed=seed
    )
    fitted = time.perf_counter()
    write_table(out, synth.release_.batches(seed=seed, threads=threads), overwrite=True, threads=threads)
    return fitted - start, time.perf_counter() - fitted


CASES = {  # work: ending, mechanism, budget
    "Parquet, one tree": ("parquet", "pmm", "parquet"),
    "CSV, one tree": ("csv", "pmm", "csv"),
    "Parquet, columns": ("parquet", "columns", "columns"),
}


def tables(count: int, most: int, folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for work, (ending, mechanism, budget) in CASES.items():
        path, out = folder / f"in.{ending}", folder / f"out.{ending}"
        if not path.exists():
            write_input(path, count)
        small = folder / f"small.{ending}"
        write_input(small, 10**6)
        cases = [(way, threads) for way in paths()[-1:] for threads in thread_counts(most)]
        digests = set()
        for way, threads in cases[:1] + cases[-1:]:  # also warms everything
            with on(way):
                file_to_file(small, out, mechanism, threads, seed=7)
            digests.add(hashlib.blake2b(out.read_bytes(), digest_size=16).hexdigest())
        assert len(digests) == 1, f"{work}: rows differ by threads"
        seconds: dict[tuple[str, int], list[tuple[float, float]]] = {case: [] for case in cases}
        begun, turns = time.perf_counter(), 0
        while turns < ROUNDS and (turns == 0 or time.perf_counter() - begun < SECONDS[budget] * turns / (turns + 1)):
            for way, threads in cases:
                with on(way):
                    seconds[way, threads].append(file_to_file(path, out, mechanism, threads))
            turns += 1
        for (way, threads), runs in seconds.items():
            fit, rows = (statistics.median(times) for times in zip(*runs, strict=True))
            whole = statistics.median(map(sum, runs))
            one = statistics.median(map(sum, seconds[way, 1]))
            found.append(
                {
                    "work": work,
                    "path": way,
                    "threads": threads,
                    "fit": fit,
                    "rows": rows,
                    "seconds": whole,
                    "times one thread": one / whole,
                    "runs": len(runs),
                }
            )
        print(table([line for line in found if line["work"] == work]), flush=True)
    return found


# --------------------------------------------------------------------------------------------------------------- memory


def peak(path: Path, out: Path, mechanism: str, threads: int) -> float:
    """Return the peak memory of one run from file to file in a process of its own, in GB."""
    words = [sys.executable, __file__, "--once", str(path), str(out), mechanism, str(threads)]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    return float(json.loads(run.stdout)["peak GB"])


def memory(sizes: list[int], works: list[str], most: int, folder: Path) -> None:
    name = f"cores-memory-{os.cpu_count()}"
    old = (kept(name) or {"rows": []})["rows"]
    found: list[dict[str, Any]] = [line for line in old if (line["work"], line["rows"]) not in product(works, sizes)]
    for count in sizes:
        for work in works:
            ending, mechanism, _ = CASES[work]
            path, out = folder / f"in.{ending}", folder / f"out.{ending}"
            write_input(path, count)
            line = {"work": work, "rows": count, "threads": most, "peak GB": peak(path, out, mechanism, most)}
            found.append(line)
            print(json.dumps(line), flush=True)
            path.unlink()
            out.unlink()
    print(table(found))
    save(name, rows=found, bar=MEMORY_BAR)


# ----------------------------------------------------------------------------------------------------------------- main


def show(found: list[dict[str, Any]]) -> None:
    for line in (line for line in found if line.get("stage", STAGES[-1]) == STAGES[-1]):
        bar = BARS[line["path"]].get(line["threads"])
        if bar is not None:
            ratio = line["times one thread"]
            met = "met" if ratio >= bar else "MISSED"
            print(f"{line['work']}, {line['path']}, {line['threads']} threads: {ratio:.2f} x, bar {bar:g}: {met}")


def main() -> None:
    if "--once" not in sys.argv:
        begin()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=ROWS)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="the most of them")
    parser.add_argument("--only", choices=["arrays", "tables"])
    parser.add_argument("--memory", nargs="*", type=lambda text: int(float(text)), metavar="ROWS")
    parser.add_argument("--work", action="append", choices=list(CASES), help="with --memory: these alone")
    parser.add_argument("--folder", default=None, help="where the tables lie meanwhile")
    parser.add_argument("--once", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        path, out, mechanism, threads = options.once
        file_to_file(Path(path), Path(out), mechanism, int(threads))
        print(json.dumps({"peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9}))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        if options.memory is not None:
            memory(options.memory or list(MEMORY_ROWS), options.work or list(CASES), options.threads, Path(name))
            return
        found: dict[str, Any] = {"rows": options.rows}
        if options.only != "tables":
            found["arrays"] = arrays(options.rows, options.threads)
            print(f"fit + sample of {options.rows:,} points in the square\n{table(found['arrays'])}\n", flush=True)
        if options.only != "arrays" and find_spec("pyarrow"):
            found["tables"] = tables(options.rows, options.threads, Path(name))
    cores = os.cpu_count()
    if options.only and (old := kept(f"cores-{cores}")):  # the other half stays
        found = {key: old[key] for key in ("arrays", "tables") if key in old} | found
    save(f"cores-{cores}", **found)
    show(found.get("arrays", []) + found.get("tables", []))


if __name__ == "__main__":
    main()

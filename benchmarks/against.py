"""The time of every line of `make bench`, and of `--help`, beside another commit: medians of alternating runs.

    make bench-against BASE=5e11b4b

Two processes, one per commit, run each line by turns, so that whatever else the machine does meets both alike. Times
are CPU seconds.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RUNS = 20
BAR = 1.05


def lines() -> dict[str, Callable[[], object]]:
    """Return what is timed, by name. Runs in a worker, whose package is that of its commit."""
    import numpy as np

    import privmeasure as pm
    from privmeasure.noise.entropy import Key
    from privmeasure.noise.laplace import DiscreteLaplace

    rng = np.random.default_rng(1)
    square = rng.random((10**7, 2))
    cubes = {d: rng.random((10**6, d)) for d in range(1, 11)}
    cells = np.arange(10**6, dtype=np.uint64)

    def release(points: Any, threads: int = 1, neighbours: str = "replace", order: str = "random") -> object:
        box = pm.Box([(0, 1)] * points.shape[1])
        return pm.Synthesizer(box, epsilon=1, neighbours=neighbours, threads=threads).fit(points).sample(order=order)

    def draw(scale: int) -> object:
        return DiscreteLaplace(Fraction(scale)).draw(Key.insecure(1), part=0, level=20, cells=cells)

    found: dict[str, Callable[[], object]] = {
        "10^7 x 2, 1 thread": lambda: release(square),
        "10^7 x 2, 2 threads": lambda: release(square, threads=2),
        "10^7 x 2, add-remove": lambda: release(square, neighbours="add-remove"),
        "10^7 x 2, cell order": lambda: release(square, order="cell"),
        "10^7 x 2, cell order, 2 threads": lambda: release(square, threads=2, order="cell"),
        "10^5 x 2": lambda: release(square[: 10**5]),
    }
    found |= {f"10^6 x {d}": lambda d=d: release(cubes[d]) for d in cubes}  # type: ignore[misc]
    found |= {f"noise of scale {scale}": lambda scale=scale: draw(scale) for scale in (1, 10, 100, 30_000)}  # type: ignore[misc]
    return found


def work() -> None:
    """Answer names of lines on stdin with CPU seconds on stdout."""
    known = lines()
    print(json.dumps(list(known)), flush=True)
    for name in sys.stdin:
        start = time.process_time()
        known[name.strip()]()
        print(time.process_time() - start, flush=True)


class Worker:
    """A process that times lines with the package of one checkout."""

    def __init__(self, source: Path) -> None:
        """Start it."""
        self.environment = {"PYTHONPATH": str(source), "PATH": "/usr/bin:/bin"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        self.names: list[str] = json.loads(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def time(self, name: str) -> float:
        """Return the CPU seconds of a line."""
        if name == "--help":
            return self._help()
        assert self.process.stdin is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self._answer())

    def _help(self) -> float:
        import os

        command = [sys.executable, "-c", "from privmeasure.cli import main; main()", "--help"]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=self.environment)
        _, _, usage = os.wait4(started.pid, 0)
        started.returncode = 0
        return usage.ru_utime + usage.ru_stime


def main(base: str) -> None:
    """Compare the working tree with a commit."""
    from record import save, table

    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "base"
        subprocess.run(
            ["git", "worktree", "add", "--detach", str(other), base], cwd=ROOT, check=True, capture_output=True
        )
        try:
            workers = [Worker(other / "src"), Worker(ROOT / "src")]
            rows = []
            for name in ["--help", *workers[1].names]:
                times = [[worker.time(name) for worker in workers] for _ in range(RUNS + 1)][1:]
                ratio = statistics.median(new / old for old, new in times)
                medians = [statistics.median(column) for column in zip(*times, strict=True)]
                rows.append({"line": name, "base s": medians[0], "now s": medians[1], "median ratio": ratio})
                print(f"{name}: {ratio:.3f}", file=sys.stderr, flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(other)], cwd=ROOT, check=True)
    print(f"CPU seconds beside {base}, medians of {RUNS} alternating runs, bar {BAR}\n{table(rows)}")
    save("against", base=base, runs=RUNS, lines=rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["work"]:
        work()
    else:
        import record

        record.begin()
        main(sys.argv[1])

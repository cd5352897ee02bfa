"""W1 of the default beside that of another commit, with the same points and seeds: is any case worse?

    make bench-no-worse BASE=5e11b4b

Exact on the line, sliced (40 directions) above, on all 10^5 points; 20 seeds. A case is worse if its mean is more than
3 % above the other's by more than two standard errors of the difference. Data in one place may lose through the cheaper
number of rows, as long as their W1 stays below a quarter of that of even data. Words after the commit restrict the runs
to dimensions: `no_worse.py 5e11b4b 1 2`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ROWS, SEEDS, DIRECTIONS, WORSE = 10**5, 20, 40, 0.03
SHAPES = ("uniform", "gaussian", "clusters", "atom")


def work(d: int) -> None:
    """Print W1 of every case of one dimension. Runs in a worker, whose package is that of its commit."""
    import numpy as np

    import distances
    import privmeasure as pm
    from shapes import shape

    for name in SHAPES:
        points = shape(name, ROWS, d, np.random.default_rng(0))
        for epsilon in ("0.1", "1"):
            for neighbours in ("replace", "add-remove"):
                box, found = pm.Box([(0, 1)] * d), []
                for seed in range(SEEDS):
                    synth = pm.Synthesizer(box, epsilon=epsilon, neighbours=neighbours, threads=1)
                    drawn = synth.fit(points, insecure_seed=seed).sample(seed=seed)
                    w1 = distances.line if d == 1 else distances.sliced
                    options = {} if d == 1 else {"directions": DIRECTIONS}
                    found.append(w1(points, drawn, **options))
                print(json.dumps([d, name, epsilon, neighbours, found]), flush=True)


def run(source: Path, d: int) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(source), str(Path(__file__).parent)])
    environment = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "work", str(d)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def compared(base: str, d: int) -> list[dict[str, Any]]:
    """Return a row for every case of one dimension."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "worktree", "add", "--detach", folder, base], check=True, cwd=ROOT, capture_output=True)
        try:
            workers = [run(source, d) for source in (ROOT / "src", Path(folder) / "src")]
            ours, theirs = ([json.loads(line) for line in worker.communicate()[0].splitlines()] for worker in workers)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], check=True, cwd=ROOT)
    rows = []
    for (*case, new), (*same, old) in zip(ours, theirs, strict=True):
        assert case == same
        difference = np.subtract(new, np.multiply(old, 1 + WORSE))
        error = float(difference.std(ddof=1) / np.sqrt(len(new)))
        rows.append(
            dict(zip(("d", "shape", "epsilon", "neighbours"), case, strict=True))
            | {"w1": float(np.mean(new)), "before": float(np.mean(old)), "ratio": float(np.mean(new) / np.mean(old))}
            | {"worse": bool(difference.mean() > 2 * error)}
        )
    return rows


def main() -> None:
    import record

    record.begin()
    base, *words = sys.argv[1:]
    rows = [row for d in (1, 2, 3) if not words or str(d) in words for row in compared(base, d)]
    even = {(r["d"], r["epsilon"], r["neighbours"]): r["w1"] for r in rows if r["shape"] == "uniform"}
    for row in rows:
        row["excused"] = row["shape"] == "atom" and row["w1"] < even[row["d"], row["epsilon"], row["neighbours"]] / 4
    print(record.table(rows))
    worse = [row for row in rows if row["worse"] and not row["excused"]]
    print(f"worse by more than {WORSE:.0%} beyond two standard errors: {len(worse)} of {len(rows)} cases")
    record.save("no-worse", base=base, seeds=SEEDS, directions=DIRECTIONS, rows=rows)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work(int(sys.argv[2]))
    else:
        main()

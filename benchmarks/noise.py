"""Noise: the time of an exact draw, beside OpenDP's exact samplers in an environment of its own, in the same run."""

import json
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from privmeasure.noise.entropy import Key
from privmeasure.noise.gaussian import DiscreteGaussian
from privmeasure.noise.laplace import DiscreteLaplace
from privmeasure.noise.law import Law
from record import begin, save, table

SCALES = (1, 2, 5, 10, 20, 50, 100, 1000, 30_000, 10**6)
DRAWS = 10**6
KINDS: dict[str, Callable[[Fraction], Law]] = {"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian}
RIVAL = Path(__file__).parents[1] / ".venv-opendp"
RIVAL_CODE = """
import json, time, opendp.prelude as dp
dp.enable_features("contrib")
results = {"laplace": {}, "gaussian": {}}
for scale in json.loads(input()):
    for law, metric in (("laplace", dp.l1_distance(T="i64")), ("gaussian", dp.l2_distance(T="i64"))):
        space = dp.vector_domain(dp.atom_domain(T="i64")), metric
        noise = (dp.m.make_laplace if law == "laplace" else dp.m.make_gaussian)(*space, scale=float(scale))
        values = [0] * 20000
        noise(values[:100])
        times = []
        for _ in range(3):
            start = time.perf_counter(); noise(values); times.append(time.perf_counter() - start)
        results[law][scale] = min(times) / len(values) * 1e9
import importlib.metadata
print(json.dumps({"version": importlib.metadata.version("opendp"), "nanoseconds": results}))
"""


def ours(kind: Callable[[Fraction], Law], scale: int) -> tuple[float, float]:
    start = time.perf_counter()
    law = kind(Fraction(scale))
    setup = time.perf_counter() - start
    cells, key, times = np.arange(DRAWS, dtype=np.uint64), Key.fresh(), []
    for _ in range(5):
        start = time.perf_counter()
        law.draw(key, part=0, level=20, cells=cells)
        times.append(time.perf_counter() - start)
    return min(times) / DRAWS * 1e9, setup * 1e3


def rival() -> dict:
    python = RIVAL / "bin" / "python"
    if not python.exists():
        venv.create(RIVAL, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "opendp"], check=True)
    run = subprocess.run(
        [python, "-c", RIVAL_CODE], input=json.dumps(SCALES), capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def main() -> None:
    begin()
    other, found = rival(), {}
    for name, kind in KINDS.items():
        rows = found[name] = []
        for scale in SCALES:
            nanoseconds, setup = ours(kind, scale)
            theirs = other["nanoseconds"][name][str(scale)]
            row = {"scale": scale, "ns a draw": nanoseconds, "set-up ms": setup, "OpenDP ns": theirs}
            rows.append(row | {"ratio": theirs / nanoseconds})
        print(f"exact discrete {name} noise, one thread, beside OpenDP {other['version']}\n{table(rows)}")
    rows = [row for row in found["laplace"] if row["scale"] <= 100]
    slowest, ratio = max(row["ns a draw"] for row in rows), min(row["ratio"] for row in rows)
    print(
        f"Laplace, scales 1 to 100: at most {slowest:.1f} ns a draw (bar 15), at least {ratio:.0f} x faster (bar 500)"
    )
    slowest = max(row["ns a draw"] for row in found["gaussian"])
    print(f"Gaussian, all scales: at most {slowest:.1f} ns a draw (bar 20)")
    setup = max(row["set-up ms"] for rows in found.values() for row in rows)
    print(f"set-up: at most {setup:.1f} ms a scale (bar 20: a hundred in 2 s)")
    save("noise", opendp=other["version"], rows=found["laplace"], gaussian=found["gaussian"])


if __name__ == "__main__":
    sys.exit(main())

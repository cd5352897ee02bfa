"""Noise: the time of an exact draw, beside OpenDP's exact sampler in an environment of its own, in the same run."""

import json
import subprocess
import sys
import time
import venv
from fractions import Fraction
from pathlib import Path

import numpy as np

from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import DiscreteLaplace
from record import save, table

SCALES = (1, 2, 5, 10, 20, 50, 100, 1000, 30_000, 10**6)
DRAWS = 10**6
RIVAL = Path(__file__).parents[1] / ".venv-opendp"
RIVAL_CODE = """
import json, time, opendp.prelude as dp
dp.enable_features("contrib")
results = {}
for scale in json.loads(input()):
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    noise = dp.m.make_laplace(*space, scale=float(scale))
    values = [0] * 20000
    noise(values[:100])
    times = []
    for _ in range(3):
        start = time.perf_counter(); noise(values); times.append(time.perf_counter() - start)
    results[scale] = min(times) / len(values) * 1e9
import importlib.metadata
print(json.dumps({"version": importlib.metadata.version("opendp"), "nanoseconds": results}))
"""


def ours(scale: int) -> tuple[float, float]:
    start = time.perf_counter()
    law = DiscreteLaplace(Fraction(scale))
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
    other = rival()
    rows = []
    for scale in SCALES:
        nanoseconds, setup = ours(scale)
        theirs = other["nanoseconds"][str(scale)]
        rows.append(
            {
                "scale": scale,
                "ns a draw": nanoseconds,
                "set-up ms": setup,
                "OpenDP ns": theirs,
                "ratio": theirs / nanoseconds,
            }
        )
    print(f"exact discrete Laplace noise, one thread, beside OpenDP {other['version']}\n{table(rows)}")
    slowest = max(row["ns a draw"] for row in rows if row["scale"] <= 100)
    ratio = min(row["ratio"] for row in rows if row["scale"] <= 100)
    print(f"scales 1 to 100: at most {slowest:.1f} ns a draw (bar 15), at least {ratio:.0f} x faster (bar 500)")
    print(f"set-up: at most {max(row['set-up ms'] for row in rows):.1f} ms a scale (bar 20)")
    save("noise", opendp=other["version"], rows=rows)


if __name__ == "__main__":
    sys.exit(main())

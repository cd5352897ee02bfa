"""Wide tables as they grow: many columns, many categories. Fit and sample of simulated tables, a process for each.

The columns depend on each other through eight hidden numbers. Half of them are numbers, the others categories.
"""

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from record import begin, save, table
from rivals.job import peak

# name -> rows, columns, categories of the largest column
CASES = {
    "50 columns": (100_000, 50, 20),
    "200 columns": (20_000, 200, 20),
    "10^4 categories": (100_000, 6, 10_000),
}


def simulated(rows: int, columns: int, most: int) -> tuple[np.ndarray, list[int]]:
    """Return rows of numbers from 0 to 1 and of codes, and the categories of each column, 0 for numbers."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(rows, 8))
    points, sizes = np.empty((rows, columns)), []
    for j in range(columns):
        shares = rng.dirichlet(np.full(8, 0.3))
        noisy = hidden @ np.sqrt(shares) + 0.5 * rng.normal(size=rows)
        uniform = np.argsort(np.argsort(noisy)) / rows
        sizes.append(0 if j % 2 else most if j == 0 else int(rng.integers(2, min(most, 20) + 1)))
        points[:, j] = np.floor(uniform**2 * sizes[j]) if sizes[j] else uniform
    return points, sizes


def one(name: str) -> None:
    """Measure one case and print it: the work of one process."""
    import privmeasure as pm

    points, sizes = simulated(*CASES[name])
    space = pm.Product([pm.Categories(size) if size else pm.Box([(0, 1)]) for size in sizes])
    before, began, start = peak(), time.perf_counter(), time.process_time()
    rows = pm.Synthesizer(space, epsilon=1, neighbours="add-remove", mechanism="columns").fit(points).sample()
    cost = {"CPU seconds": time.process_time() - start, "seconds": time.perf_counter() - began}
    print(json.dumps(cost | {"peak MB": peak(), "of which data": before, "rows out": len(rows)}))


def main() -> None:
    begin()
    lines: list[dict[str, Any]] = []
    for name, (rows, columns, most) in CASES.items():
        run = subprocess.run([sys.executable, __file__, "--one", name], check=True, capture_output=True, text=True)
        lines.append({"table": name, "rows": rows, "columns": columns, "categories": most, **json.loads(run.stdout)})
    print("many columns, epsilon = 1\n" + table(lines))
    save("many-columns", rows=lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2])
    else:
        main()

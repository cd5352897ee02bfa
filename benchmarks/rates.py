"""Rates: W1 against epsilon n, for both mechanisms and the naive ways that the paper argues against; fitted slopes.

Two shapes, uniform and 20 clusters, because one alone may mislead: what clipping adds to a histogram is spread evenly,
which is the truth for even data alone. epsilon = 1, neighbours = replace.
Estimators: exact on the line; exact flow on grids of 128^2 and 32^3 cells; sliced W1 on all points for d = 4.
Naive ways: noise on the location of each point; a flat noisy histogram, clipped at 0 and scaled back. The theorems are
for the worst data, so a slope may be steeper than its theorem's. Writes a table and a picture.
"""

import math
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np

import distances
import privmeasure as pm
from privmeasure.noise.entropy import Key
from privmeasure.sources.arrays import ArraySource
from privmeasure.transport import apportion
from record import begin, save, table

EXPONENTS = range(8, 19, 2)
SEEDS = {1: 10, 2: 5, 3: 5, 4: 5}
SHAPES = ("uniform", "clusters")
METHODS = {
    "PMM paper": (1, 2, 3, 4),
    "PMM default": (1, 2, 3, 4),
    "PSMM": (1, 2, 3),
    "histogram, clipped": (1, 2, 3),
    "noise on points": (1, 2, 3, 4),
}


def theory(method: str, d: int) -> float:
    """Return the exponent of epsilon n in the theorem, logarithms aside."""
    if method == "noise on points":
        return 0.0
    if method.startswith("PMM"):
        return -1.0 / d
    return -0.5 if d == 1 else -1.0 / d


def synthetic(method: str, x: np.ndarray, seed: int) -> np.ndarray:
    rows, d = x.shape
    box, privacy, source = pm.Box([(0, 1)] * d), pm.Privacy(1, "replace"), ArraySource(x, width=d, threads=1)
    rng = np.random.default_rng([seed, rows])
    if method == "noise on points":  # local privacy: each point hides itself
        return np.clip(x + rng.laplace(0, d, x.shape), 0, 1)
    if method == "histogram, clipped":
        level = pm.PSMM(box, privacy).plan(rows).depth
        cells = np.arange(1 << level, dtype=np.uint64)
        counts = np.bincount(box.locate(x, level).view(np.int64), minlength=1 << level)
        p = math.exp(-1 / 2)
        noisy = np.maximum(counts + rng.geometric(1 - p, len(cells)) - rng.geometric(1 - p, len(cells)), 0)
        return box.draw(np.repeat(cells, apportion(noisy, rows)), level, np.random.Generator(np.random.SFC64(seed)))
    mechanism = {
        "PMM paper": lambda: pm.PMM.paper(box, privacy, rows=rows),
        "PMM default": lambda: pm.PMM(box, privacy),
        "PSMM": lambda: pm.PSMM(box, privacy),
    }[method]()
    return mechanism.release(source, Key.insecure(seed)).sample(seed=seed, threads=1)


def points_of(shape: str, d: int, exponent: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, d, exponent])
    if shape == "uniform":
        return rng.random((2**exponent, d))
    centres, widths = rng.random((20, d)), rng.gamma(2, 0.01, 20)
    which = rng.integers(0, 20, 2**exponent)
    return np.clip(centres[which] + rng.normal(size=(2**exponent, d)) * widths[which, None], 0, 1)


def measure(case: tuple[str, str, int, int, int]) -> float:
    shape, method, d, exponent, seed = case
    x = points_of(shape, d, exponent, seed)
    y = synthetic(method, x, seed)
    match d:
        case 1:
            return distances.line(x, y)
        case 2:
            return distances.grid(x, y, 128)
        case 3:
            return distances.grid(x, y, 32)
    return distances.sliced(x, y, directions=25)


def summary(found: dict[tuple[str, str, int, int, int], float]) -> tuple[list[dict], list[dict]]:
    """Return the means with their standard errors, and the slopes that fit them beside the theorems'."""
    points, slopes = [], []
    for shape, (method, ds) in product(SHAPES, METHODS.items()):
        for d in ds:
            name, line = {"shape": shape, "method": method, "d": d}, []
            for e in EXPONENTS:
                runs = [found[shape, method, d, e, s] for s in range(SEEDS[d])]
                se = float(np.std(runs, ddof=1) / math.sqrt(len(runs)))
                line.append({**name, "epsilon n": 2**e, "W1": float(np.mean(runs)), "se": se})
            points += line
            logs = [[math.log2(point[key]) for point in line] for key in ("epsilon n", "W1")]
            slopes.append({**name, "slope": float(np.polyfit(*logs, 1)[0]), "theorem, logs aside": theory(method, d)})
    return points, slopes


def draw(points: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(SHAPES), 4, figsize=(16, 8.4), sharex=True, layout="constrained")
    for (row, shape), (column, d) in product(enumerate(SHAPES), enumerate((1, 2, 3, 4))):
        axis = axes[row][column]
        for colour, method in enumerate(METHODS):
            mine = [p for p in points if (p["shape"], p["d"], p["method"]) == (shape, d, method)]
            if mine:
                x, y, e = ([point[key] for point in mine] for key in ("epsilon n", "W1", "se"))
                axis.errorbar(x, y, yerr=e, marker="o", markersize=3, capsize=2, label=method, color=f"C{colour}")
        title = f"{shape}, d = {d}" + (", sliced" if d == 4 else "")
        axis.set(title=title, yscale="log")
        axis.set_xscale("log", base=2)
        axis.grid(alpha=0.3)
        if row == len(SHAPES) - 1:
            axis.set_xlabel("epsilon n")
        if column == 0:
            axis.set_ylabel("W1 to the data")
    axes[0][0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    begin()
    cases = [
        (shape, method, d, e, seed)
        for shape, (method, ds) in product(SHAPES, METHODS.items())
        for d in ds
        for e in EXPONENTS
        for seed in range(SEEDS[d])
    ]
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(cases, pool.map(measure, cases, chunksize=4), strict=True))
    points, slopes = summary(found)
    print(f"W1 against epsilon n\n{table(points)}\n\nfitted slopes\n{table(slopes)}")
    draw(points, save("rates", points=points, slopes=slopes) / "rates.png")


if __name__ == "__main__":
    main()

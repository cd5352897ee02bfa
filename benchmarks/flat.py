"""The flat mechanism: time and memory of its projection, of exact distances, and which mechanism to choose.

Projection: 32^2 to 256^2 cells, epsilon = 1, n = cells. Distances: two sets of 10^5 points on a 128 x 128 grid. Choice:
W1 of PSMM and of PMM (default and the paper's), neighbours = replace, epsilon = 1, four shapes, 5 seeds.
"""

import resource
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import privmeasure as pm
from accuracy import SHAPES, w1
from privmeasure.metrics import wasserstein
from privmeasure.noise.entropy import Key
from privmeasure.sources.arrays import ArraySource
from record import begin, save, table
from shapes import shape

ROWS = 10**4
SEEDS = 5


def projection(side: int) -> dict:
    level = 2 * (side.bit_length() - 1)
    x = np.random.default_rng(side).random((side * side, 2))
    mechanism = pm.PSMM(pm.Box([(0, 1)] * 2), pm.Privacy(1, "replace"), depth=level)
    start = time.process_time()
    mechanism.release(ArraySource(x, width=2, threads=1), Key.insecure(side))
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"cells": side * side, "CPU seconds": seconds, "peak GB": peak, "variables of the printed LP": 2 * side**4}


def distance() -> dict:
    rng = np.random.default_rng(1)
    x, y = rng.random((10**5, 2)), np.clip(rng.normal(0.4, 0.1, (10**5, 2)), 0, 1)
    start = time.perf_counter()
    found = wasserstein(x, y, domain=pm.Box([(0, 1)] * 2), method="grid", bins=128)
    return {"points": 10**5, "grid": "128 x 128", "seconds": time.perf_counter() - start, "W1": found.value}


def choice(case: tuple[int, str, int]) -> dict[str, float]:
    d, name, seed = case
    x = shape(name, ROWS, d, np.random.default_rng([seed, d]))
    box, privacy = pm.Box([(0, 1)] * d), pm.Privacy(1, "replace")
    mechanisms = {
        "PSMM": pm.PSMM(box, privacy),
        "PMM default": pm.PMM(box, privacy),
        "PMM paper": pm.PMM.paper(box, privacy, rows=ROWS),
    }
    source = ArraySource(x, width=d, threads=1)
    return {
        method: w1(x, mechanism.release(source, Key.insecure(seed)).sample(seed=seed, threads=1))
        for method, mechanism in mechanisms.items()
    }


def main() -> None:
    begin()
    growth = [projection(side) for side in (32, 64, 128, 256)]
    print(f"projection of a noisy histogram (bar: 65,536 cells in 20 s and 2 GB)\n{table(growth)}\n")
    flow = distance()
    print(f"exact W1 on a grid (bar 10 s)\n{table([flow])}\n")
    cases = [(d, name, seed) for d in (1, 2, 3) for name in SHAPES for seed in range(SEEDS)]
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(cases, pool.map(choice, cases), strict=True))
    rows = []
    for d in (1, 2, 3):
        for name in SHAPES:
            runs = [found[d, name, seed] for seed in range(SEEDS)]
            mean = {method: float(np.mean([run[method] for run in runs])) for method in runs[0]}
            rows.append({"d": d, "shape": name, **mean, "choose": min(mean, key=mean.__getitem__)})
    print(f"mean W1, n = {ROWS:,}, epsilon = 1, replace\n{table(rows)}")
    save("flat", projection=growth, distance=flow, choice=rows)


if __name__ == "__main__":
    main()

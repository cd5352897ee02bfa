"""Size: 10^8 points in the square, on one machine: time and peak memory."""

import resource
import time

import numpy as np

import privmeasure as pm
from record import begin, save

ROWS = 10**8


def main() -> None:
    begin()
    X = np.empty((ROWS, 2))
    rng = np.random.default_rng(1)
    for start in range(0, ROWS, 10**6):
        X[start : start + 10**6] = rng.random((10**6, 2))
    start = time.perf_counter()
    synth = pm.Synthesizer(pm.Box([(0, 1), (0, 1)]), epsilon=1, neighbours="add-remove").fit(X)
    fitted = time.perf_counter()
    Y = synth.sample()
    sampled = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    tree = synth.plan_.memory_bytes
    beyond = peak - X.nbytes - Y.nbytes - tree
    results = {
        "rows": ROWS,
        "depth": synth.plan_.depth,
        "levels": list(synth.plan_.levels),
        "order": "random",
        "fit seconds": fitted - start,
        "sample seconds": sampled - fitted,
        "peak GB": peak / 1e9,
        "input + output GB": (X.nbytes + Y.nbytes) / 1e9,
        "beyond input, output and tree GB": beyond / 1e9,
    }
    for name, value in results.items():
        print(f"{name:<36} {value:.3g}" if isinstance(value, float) else f"{name:<36} {value}")
    print(f"bar 1 GB: {'met' if beyond <= 1e9 else 'MISSED'}")
    save("large", **results)


if __name__ == "__main__":
    main()

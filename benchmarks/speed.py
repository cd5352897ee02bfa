"""Speed: the time of fit + sample, as a multiple of copying the data, and how it grows. Ratios of one process run.

Every line uses the default recipe, epsilon = 1 and rows in random order, unless it says otherwise.
"""

import time
from collections.abc import Callable

import numpy as np

import privmeasure as pm
from record import begin, save, table

ROWS = 10**7
REPEATS = 5
BARS = {1: 30.0, 2: 18.0}


def best(action: Callable[[], object], repeats: int = REPEATS) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def run(X: np.ndarray, *, threads: int, neighbours: str = "replace", order: str = "random") -> pm.Plan:
    box = pm.Box([(0, 1)] * X.shape[1])
    synth = pm.Synthesizer(box, epsilon=1, neighbours=neighbours, threads=threads).fit(X)
    synth.sample(order=order)
    return synth.plan_


def line(X: np.ndarray, **options) -> dict:
    plan = run(X, **options)
    seconds = best(lambda: run(X, **options))
    return {
        "rows": len(X),
        "d": X.shape[1],
        "neighbours": options.get("neighbours", "replace"),
        "order": options.get("order", "random"),
        "threads": options["threads"],
        "depth": plan.depth,
        "levels": " ".join(map(str, plan.levels)),
        "ns a row": seconds / len(X) * 1e9,
        "times copy": seconds / best(X.copy),
    }


def main() -> None:
    begin()
    rng = np.random.default_rng(1)
    X = rng.random((ROWS, 2))
    main_lines = [
        line(X, threads=1),
        line(X, threads=2),
        line(X, threads=1, neighbours="add-remove"),
        line(X, threads=1, order="cell"),
        line(X, threads=2, order="cell"),
    ]
    print(f"fit + sample of {ROWS:,} points in the square\n{table(main_lines)}\n")
    for threads, bar in BARS.items():
        ratio = next(row["times copy"] for row in main_lines if row["threads"] == threads and row["order"] == "random")
        print(f"{threads} thread(s): {ratio:.1f} x copy, bar {bar:g}: {'met' if ratio <= bar else 'MISSED'}")

    growth_n = [line(rng.random((rows, 2)), threads=1) for rows in (10**5, 10**6)] + [main_lines[0]]
    factor = growth_n[-1]["ns a row"] / growth_n[0]["ns a row"]
    print(f"\ngrowth with rows\n{table(growth_n)}\n10^5 to 10^7: {factor:.2f} x a row, bar 1.5")

    growth_d = [line(rng.random((10**6, d)), threads=1) for d in range(1, 11)]
    per_axis = [row["ns a row"] / row["d"] for row in growth_d]
    print(f"\ngrowth with dimension\n{table(growth_d)}\nns a row and axis: {per_axis[0]:.1f} to {per_axis[-1]:.1f}")
    save("speed", main=main_lines, growth_n=growth_n, growth_factor=factor, growth_d=growth_d)


if __name__ == "__main__":
    main()

"""Wide tables: the column tree on four real tables, beside the results of rivals that are kept as a file.

Ours is pure epsilon; the rivals (`make bench-wide-rivals`) have a delta of 1e-6. `wide.py --delta` gives ours the same
one, which it uses where that pays, and writes results/wide-delta.json. The same code measures all: see
rivals/measure.py. Each of our runs is a process of its own, one thread; CPU seconds are those of fit and sample,
imports and reading excluded, as for the rivals. `wide.py kept` only compares the kept runs with the rivals again. The
curves are drawn in results/wide.png. results/privpgd.json has the runs of a rival that needs a GPU; nothing here makes
them again. In ratios an excess W1 counts as its standard error where it is less.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import wide_tables
from record import RESULTS, begin, save, table
from rivals import measure
from rivals.job import peak

EPSILONS = (0.1, 1, 4)
SEEDS = (0, 1, 2)
METRICS = ("tv1", "tv2", "column_w1", "sliced", "w1_excess", "cpu_seconds")
SHOWN = (*METRICS, "common_values")
"""Means of runs. Common values have no ratio: they may be 0, and kept runs do not have them."""
DRAWN = {"tv2": "2-way total variation", "sliced": "sliced W1", "w1_excess": "excess W1"}
AT_EVERY_EPSILON = ("sliced", "w1_excess")
BARS = {"tv1": 2.0, "tv2": 1.25, "column_w1": 0.5, "sliced": 1.0, "w1_excess": 1.0, "cpu_seconds": 1 / 50}
MEMORY_BAR = 500
DELTA = "1e-6"
DELTA_BARS = {0.1: 0.95, 1: 0.85, 4: 0.85}
"""For every error, with the rivals' delta."""
PRIVPGD_BARS = {"0": 1.1, DELTA: 0.9}
"""For the excess W1 at epsilon = 1."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def schema_of(bounds: measure.Bounds) -> Any:
    """Return the declaration of a benchmark's table."""
    import privmeasure as pm

    columns: dict[str, Any] = {}
    for name, bound in bounds.items():
        missing = bound[-1] is True
        if bound[0] == "category":
            columns[name] = pm.Category(bound[1], nullable=missing)
        else:
            columns[name] = (pm.Number if bound[0] == "number" else pm.Integer)(bound[1], bound[2], nullable=missing)
    return pm.Schema(columns)


def one(name: str, epsilon: str, neighbours: str, delta: str, out: str) -> None:
    """Fit and sample once, and write rows and costs: the work of one process."""
    import privmeasure as pm

    real, bounds = wide_tables.load(name)
    schema = schema_of(bounds)
    small = real.slice(0, 500)  # loads what is loaded when it is first needed
    pm.Synthesizer(schema, epsilon=1, neighbours="replace", mechanism="columns", threads=1).fit(small).sample()
    promise = {"epsilon": epsilon, "neighbours": neighbours, "delta": delta}
    synth = pm.Synthesizer(schema, **promise, mechanism="columns", threads=1)
    start, began = time.process_time(), time.perf_counter()
    synthetic = synth.fit(real).sample()
    cost = {"cpu_seconds": time.process_time() - start, "wall_seconds": time.perf_counter() - began}
    cost |= {"peak_mb": peak(), "delta": float(synth.privacy.delta)}
    np.savez(out, rows=measure.coded(synthetic, bounds), cost=json.dumps(cost))


def run(
    name: str, epsilon: float, neighbours: str, delta: str, real: np.ndarray, floor: dict[str, Any]
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "rows.npz")
        command = [sys.executable, __file__, "--one", name, str(epsilon), neighbours, delta, out]
        subprocess.run(command, check=True, env={**os.environ, **ONE_THREAD})
        with np.load(out) as stored:
            rows, cost = stored["rows"], json.loads(str(stored["cost"]))
    return cost | measure.compare(real, rows, wide_tables.BOUNDS[name], floor)


def means(rows: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], dict[str, float]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return {
        group: {metric: mean(found, metric) for metric in SHOWN if all(metric in row for row in found)}
        for group, found in groups.items()
    }


def mean(rows: list[dict[str, Any]], metric: str) -> float:
    """Return what counts of some runs: the mean, but of an excess its standard error where the mean is less."""
    value = float(np.mean([row[metric] for row in rows]))
    return max(value, float(np.mean([row["w1_excess_error"] for row in rows]))) if metric == "w1_excess" else value


def best_rivals(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, float]]:
    """Return for each table and epsilon the best mean over seeds of any rival, metric by metric."""
    complete = means([row for row in rows if row["status"] == "complete"], "table", "epsilon", "rival", "method")
    best: dict[tuple[Any, ...], dict[str, float]] = {}
    for (name, epsilon, *_), found in complete.items():
        so_far = best.setdefault((name, epsilon), dict(found))
        for metric in METRICS:
            so_far[metric] = min(so_far[metric], found[metric])
    return best


def ratios(ours: list[dict[str, Any]], rivals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ours over the best rival's, by table and epsilon, and their geometric means."""
    best, lines = best_rivals(rivals), []
    for (name, epsilon), found in means(
        [r for r in ours if r["neighbours"] == "add-remove"], "table", "epsilon"
    ).items():
        if (name, epsilon) in best:
            ratio = {metric: max(found[metric], 1e-9) / best[name, epsilon][metric] for metric in METRICS}
            lines.append({"table": name, "epsilon": epsilon, **ratio})
    for epsilon in dict.fromkeys(line["epsilon"] for line in lines):
        here = [line for line in lines if line["epsilon"] == epsilon and line["table"] != "geometric mean"]
        mean = {metric: float(np.exp(np.mean([np.log(line[metric]) for line in here]))) for metric in METRICS}
        lines.append({"table": "geometric mean", "epsilon": epsilon, **mean})
    return lines


def beside_privpgd(ours: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the excess W1 of ours and of PrivPGD, which has a delta, and their ratio, with geometric means."""
    found = json.loads((RESULTS / "privpgd.json").read_text())["rows"]
    theirs = {(row["table"], row["epsilon"]): mean([row], "w1_excess") for row in found}
    lines = [
        {"table": name, "epsilon": epsilon, "ours": own["w1_excess"], "PrivPGD": theirs[name, epsilon]}
        for (name, epsilon), own in means(
            [r for r in ours if r["neighbours"] == "add-remove"], "table", "epsilon"
        ).items()
        if (name, epsilon) in theirs
    ]
    for epsilon in dict.fromkeys(line["epsilon"] for line in lines):
        own = [line for line in lines if line["epsilon"] == epsilon]
        middle = {who: float(np.exp(np.mean([np.log(line[who]) for line in own]))) for who in ("ours", "PrivPGD")}
        lines.append({"table": "geometric mean", "epsilon": epsilon, **middle})
    return [line | {"ratio": line["ours"] / line["PrivPGD"]} for line in lines]


def measured(floors: dict[str, Any], delta: str) -> list[dict[str, Any]]:
    """Return a row for each of our runs."""
    rows = []
    for name in wide_tables.NAMES:
        bounds = wide_tables.BOUNDS[name]
        real = measure.coded(wide_tables.load(name)[0], bounds)
        floor = floors.get(name) or measure.floors(real, bounds)
        for neighbours, epsilons in (("add-remove", EPSILONS), ("replace", (1,))):
            for epsilon in epsilons:
                for seed in SEEDS:
                    found = run(name, epsilon, neighbours, delta, real, floor)
                    rows.append({"table": name, "epsilon": epsilon, "neighbours": neighbours, "seed": seed, **found})
    return rows


def compared(rows: list[dict[str, Any]], rivals: list[dict[str, Any]], delta: str) -> dict[str, Any]:
    """Print how ours compares with the rivals, and return it."""
    shown = means(rows, "table", "epsilon", "neighbours")
    lines = [dict(zip(("table", "epsilon", "neighbours"), key, strict=True)) | found for key, found in shown.items()]
    print("ours, mean over the runs\n" + table(lines))
    found = ratios(rows, rivals)
    print("\nratio to the best rival, metric by metric\n" + table(found))
    for mean in [line for line in found if line["table"] == "geometric mean"]:
        for metric, bar in BARS.items():
            bar = DELTA_BARS[mean["epsilon"]] if delta != "0" and metric != "cpu_seconds" else bar
            if mean["epsilon"] == 1 or metric in AT_EVERY_EPSILON or delta != "0":
                verdict = "met" if mean[metric] <= bar else "MISSED"
                print(f"epsilon {mean['epsilon']:<4} {metric:12} {mean[metric]:.3f}  bar {bar:.3g}: {verdict}")
    beside = beside_privpgd(rows)
    print("\nexcess W1 beside PrivPGD\n" + table(beside))
    value = next(line["ratio"] for line in beside if line["table"] == "geometric mean" and line["epsilon"] == 1)
    print(f"epsilon 1    {value:.3f}  bar {PRIVPGD_BARS[delta]}: {'met' if value <= PRIVPGD_BARS[delta] else 'MISSED'}")
    most = max(row["peak_mb"] for row in rows)
    print(f"peak memory  {most:.0f} MB  bar {MEMORY_BAR}: {'met' if most <= MEMORY_BAR else 'MISSED'}")
    return {"rows": rows, "means": lines, "ratios": found, "privpgd": beside, "peak_mb": most}


def draw(ours: list[dict[str, Any]], rivals: list[dict[str, Any]], path: Path) -> None:
    """Draw errors over epsilon: a column a table, a line a maker, of each method the implementation that is better."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    curves: dict[tuple[str, str, str], dict[float, float]] = {}
    mine = means([row for row in ours if row["neighbours"] == "add-remove"], "table", "epsilon")
    theirs = means([row for row in rivals if row["status"] == "complete"], "table", "epsilon", "method", "rival")
    for (name, epsilon, *rest), found in (mine | theirs).items():
        maker = f"{rest[0]} (delta 1e-6)" if rest else "privmeasure (delta 0)"
        for metric in DRAWN:
            curve = curves.setdefault((name, metric, maker), {})
            curve[epsilon] = min(curve.get(epsilon, np.inf), found[metric])
    figure, axes = plt.subplots(
        len(DRAWN), len(wide_tables.NAMES), figsize=(15, 9), sharex=True, sharey="row", layout="constrained"
    )
    for (name, metric, maker), curve in curves.items():
        axis = axes[[*DRAWN].index(metric), [*wide_tables.NAMES].index(name)]
        style = {"p": ("C0", "o"), "M": ("C1", "s"), "A": ("C2", "^")}[maker[0]]
        axis.grid(visible=True, which="both", alpha=0.25)
        axis.loglog(sorted(curve), [curve[e] for e in sorted(curve)], color=style[0], marker=style[1], label=maker)
    for axis, name in zip(axes[0], wide_tables.NAMES, strict=True):
        axis.set_title(name)
    for axis, title in zip(axes[:, 0], DRAWN.values(), strict=True):
        axis.set_ylabel(title)
    for axis in axes[-1]:
        axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        axis.set_xlabel("epsilon")
    axes[0, 0].legend()
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main() -> None:
    folder = RESULTS
    if "kept" not in sys.argv:
        begin()
    rivals = json.loads((RESULTS / "wide-rivals.json").read_text())
    delta, name = (DELTA, "wide-delta") if "--delta" in sys.argv else ("0", "wide")
    if "kept" in sys.argv:  # our runs as they are in the file, beside rivals' that may be new
        path = RESULTS / f"{name}.json"
        old = json.loads(path.read_text())
        rows = old["rows"]
        path.write_text(json.dumps(old | compared(rows, rivals["rows"], delta), indent=1) + "\n")
    else:
        rows = measured(rivals["floors"], delta)
        folder = save(name, **compared(rows, rivals["rows"], delta))
    if delta == "0":
        draw(rows, rivals["rows"], folder / "wide.png")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
    else:
        main()

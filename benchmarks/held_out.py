"""Wide tables, open and held-out ones: ours beside the results of rivals that are kept as a file.

    held_out.py --open       what constants may be chosen on, in one process, with fixed seeds of noise: minutes
    held_out.py --held-out   what nothing is chosen on, each run a process of its own: once the work is done
    held_out.py --aimed      what models learn from held-out tables where the column that they predict is declared
    held_out.py --curve      errors of the open tables as epsilon grows, over those of a resample of the real rows
    held_out.py kept         the kept runs of held-out tables, compared with rivals' results that may be new

Ours is pure epsilon; the rivals (held_out_rivals.py) have a delta of 1e-6. With `--delta` ours may use the same one:
results/held-out-delta.json, with bars of their own. Seed s is split s of a table: a method gets
four fifths of the rows and is measured against these, models trained on its rows are tested on the other fifth. CPU
seconds are those of fit and sample on one thread, imports and reading excluded.

`--open` leaves out what takes longest: `--w1` adds the excess W1, `--downstream` the models, `--target` declares the
column that they predict. `--tables adult,movies`,
`--epsilons 1` and `--seeds 2` do less. `--keep FILE` writes the runs, `--against FILE` compares with runs that were
kept so: ratios of the same splits and seeds, with the standard error of their mean logarithm.

Ratios are to the best mean of MST and AIM, metric by metric; above 1 we lose. An excess W1 counts as its standard error
where it is less. R2 below 0 counts as 0, as one who predicts the mean would have it.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import held_out_tables as tables
from held_out_rivals import KEY, Split
from held_out_rivals import RESULT as RIVALS
from held_out_rivals import plan as planned_rivals
from record import RESULTS, begin, save, table
from rivals import downstream, measure
from rivals.job import peak
from wide import DELTA, DELTA_BARS, ONE_THREAD, schema_of

Row = dict[str, Any]
EPSILONS = (0.1, 1, 4)
SEEDS = (0, 1, 2)
CURVE = (0.1, 0.3, 1, 3, 10, 50)
"""From where noise hides nearly all to where there is hardly any: what is left then is what the model cannot say."""
ERRORS = ("tv1", "tv2", "tv3", "column_w1", "sliced", "w1_excess")
METRICS = (*ERRORS, "cpu_seconds")
SHOWN = (*METRICS, "common_values")
"""What tables of our runs show. Common values have no ratio: they may be 0, and kept runs of rivals lack them."""
BARS = {
    0.1: dict(zip(ERRORS, (1.12, 1.1, 1.1, 1.1, 1.05, 1.08), strict=True)),
    1: dict(zip(ERRORS, (1.0, 0.92, 0.95, 0.8, 0.7, 0.7), strict=True)),
    4: dict(zip(ERRORS, (1.0, 0.8, 0.85, 0.4, 0.68, 0.8), strict=True)),
}
CPU_BAR = 1 / 50
AUC_BAR = -0.02
MEMORY_BAR = 500
MEAN = "geometric mean"


def synthesizer(bounds: measure.Bounds, epsilon: Any, delta: str, target: str | None = None) -> Any:
    import privmeasure as pm

    promise = {"epsilon": str(epsilon), "neighbours": "add-remove", "delta": delta}
    schema = schema_of(bounds)
    schema = schema if target is None else schema.aiming_at(target)
    return pm.Synthesizer(schema, **promise, mechanism="columns", threads=1)


def one(name: str, epsilon: str, seed: str, delta: str, out: str) -> None:
    """Fit and sample once, and write rows and costs: the work of one process."""
    whole, bounds = tables.load(name)
    seen = whole.take(tables.split(whole.num_rows, int(seed))[0])
    synthesizer(bounds, 1, delta).fit(seen.slice(0, 500)).sample()  # loads what is loaded when it is first needed
    start = time.process_time()
    synth = synthesizer(bounds, epsilon, delta)
    synthetic = synth.fit(seen).sample()
    cost = {"cpu_seconds": time.process_time() - start, "peak_mb": peak(), "delta": float(synth.privacy.delta)}
    np.savez(out, rows=measure.coded(synthetic, bounds), cost=json.dumps(cost))


def apart(name: str, epsilon: float, seed: int, delta: str) -> tuple[np.ndarray, Row]:
    """Return synthetic rows and their costs from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "rows.npz")
        command = [sys.executable, __file__, "--one", name, str(epsilon), str(seed), delta, out]
        subprocess.run(command, check=True, env={**os.environ, **ONE_THREAD})
        with np.load(out) as stored:
            return stored["rows"], json.loads(str(stored["cost"]))


def here(split: Split, epsilon: float, seed: int, delta: str, *, aimed: bool = False) -> tuple[np.ndarray, Row]:
    """Return synthetic rows and their costs from this process; a fixed seed hides nobody, and the tables are public."""
    start = time.process_time()
    synth = synthesizer(split.bounds, epsilon, delta, split.target if aimed else None)
    fitted = synth.fit(split.table, insecure_seed=seed)
    synthetic = fitted.sample(seed=seed)
    return measure.coded(synthetic, split.bounds), {
        "cpu_seconds": time.process_time() - start,
        "delta": float(fitted.privacy.delta),
    }


def quick(
    names: list[str], epsilons: list[float], seeds: int, delta: str, *, with_w1: bool, learnt: bool, aimed: bool
) -> list[Row]:
    """Return a row for each run on open tables; what depends on real rows alone is computed once a split."""
    floors, rows = stored_floors(), []
    for name in names:
        for seed in range(seeds):
            split = Split(name, seed, floors.get(f"{name} {seed}"))
            if not rows:  # loads what is loaded when it is first needed
                here(split, 1, seed, delta)
            for epsilon in epsilons:
                synthetic, cost = here(split, epsilon, seed, delta, aimed=aimed)
                row = {"table": name, "epsilon": epsilon, "seed": seed, **cost}
                row |= split.real.compare(synthetic, with_w1=with_w1)
                if learnt:
                    row |= downstream.scores(synthetic, split.unseen, split.bounds, split.target)
                rows.append(row)
        print(f"{name} done", file=sys.stderr, flush=True)
    return rows


def final(delta: str) -> list[Row]:
    """Return a row for each run on held-out tables, with everything that is measured."""
    floors, rows = stored_floors(), []
    for name in (*tables.HELD_OUT, *tables.LARGE):
        for seed in SEEDS:
            split = Split(name, seed, floors.get(f"{name} {seed}"))
            for epsilon in EPSILONS:
                synthetic, cost = apart(name, epsilon, seed, delta)
                rows.append({"table": name, "epsilon": epsilon, "seed": seed, **cost, **split.measures(synthetic)})
    return rows


def aimed() -> list[Row]:
    """Return a row for each held-out table, epsilon, promise and seed: what models learn, their column declared."""
    floors, rows = stored_floors(), []
    for name in (*tables.HELD_OUT, *tables.LARGE):
        for seed in SEEDS:
            split = Split(name, seed, floors.get(f"{name} {seed}"))
            for delta in ("0", DELTA):
                for epsilon in EPSILONS:
                    synthetic, _ = here(split, epsilon, seed, delta, aimed=True)
                    found = downstream.scores(synthetic, split.unseen, split.bounds, split.target)
                    rows.append({"table": name, "epsilon": epsilon, "seed": seed, "delta": delta, **found})
        print(f"{name} done", file=sys.stderr, flush=True)
    return rows


def curve() -> list[Row]:
    """Return a row for each open table, epsilon and promise: our errors over those of a resample of the real rows."""
    rows = []
    for name in tables.OPEN:
        split = Split(name, 0)
        resampled = split.seen[np.random.default_rng(1).integers(0, len(split.seen), len(split.seen))]
        floor = split.real.compare(resampled, with_w1=False)
        for delta in ("0", DELTA):
            for epsilon in CURVE:
                found = split.real.compare(here(split, epsilon, 0, delta)[0], with_w1=False)
                ratio = {metric: found[metric] / floor[metric] for metric in ERRORS if metric in found}
                rows.append({"table": name, "delta": delta, "epsilon": epsilon, **ratio})
        print(f"{name} done", file=sys.stderr, flush=True)
    return rows


def stored_floors() -> Row:
    return json.loads(RIVALS.read_text())["floors"] if RIVALS.exists() else {}


def groups(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def mean(rows: list[Row], metric: str) -> float:
    """Return what counts of some runs: the mean, but of an excess its standard error where the mean is less."""
    value = float(np.mean([row[metric] for row in rows]))
    if metric == "w1_excess":
        return max(value, float(np.mean([row["w1_excess_error"] for row in rows])))
    return max(value, 1e-9) if metric in METRICS else value


def means(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], dict[str, float]]:
    """Return the means over the seeds of what all runs have."""
    names = [name for name in (*SHOWN, *downstream.METHODS) if all(name in row for row in rows)]
    return {key: {name: mean(found, name) for name in names} for key, found in groups(rows, *keys).items()}


def best_rivals(rows: list[Row]) -> dict[tuple[Any, ...], dict[str, float]]:
    """Return for each table and epsilon the best mean over the seeds of any rival, metric by metric."""
    best: dict[tuple[Any, ...], dict[str, float]] = {}
    complete = [row for row in rows if row["status"] == "complete"]
    for (name, epsilon, *_), found in means(complete, "table", "epsilon", "rival", "method").items():
        so_far = best.setdefault((name, epsilon), dict(found))
        for metric, value in found.items():
            so_far[metric] = (max if metric in downstream.METHODS else min)(so_far.get(metric, value), value)
    return best


def geometric(lines: list[Row]) -> list[Row]:
    """Return the geometric means of ratios over the tables, epsilon by epsilon."""
    found = []
    for (epsilon,), own in groups(lines, "epsilon").items():
        logs = {name: np.mean([math.log(line[name]) for line in own]) for name in METRICS if name in own[0]}
        found.append({"table": MEAN, "epsilon": epsilon, **{name: math.exp(value) for name, value in logs.items()}})
    return found


def ratios(ours: list[Row], rivals: list[Row]) -> list[Row]:
    """Return ours over the best rival's by table and epsilon, and their geometric means."""
    best, lines = best_rivals(rivals), []
    for (name, epsilon), found in means(ours, "table", "epsilon").items():
        if there := best.get((name, epsilon)):
            ratio = {metric: found[metric] / there[metric] for metric in METRICS if metric in found}
            lines.append({"table": name, "epsilon": epsilon, **ratio})
    return lines + geometric(lines)


def learnt(name: str, value: float) -> float:
    """Return a score as it counts: R2 from 0 on."""
    return value if is_class(name) else max(value, 0.0)


def is_class(name: str) -> bool:
    return bool(tables.BOUNDS[name][tables.TARGET[name]][0] == "category")


def differences(ours: list[Row], rivals: list[Row], floors: Row) -> list[Row]:
    """Return what models learn from our rows, from the best rival's and from real ones, table by table."""
    best, lines = best_rivals(rivals), []
    for (name, epsilon), found in means(ours, "table", "epsilon").items():
        there, seeds = best.get((name, epsilon)), [s for s in SEEDS if f"{name} {s}" in floors]
        for method in downstream.METHODS:
            if there and method in found and seeds:
                real = float(np.mean([floors[f"{name} {seed}"][method] for seed in seeds]))
                scores = {"ours": found[method], "best rival": there[method], "real": real}
                line: Row = {"table": name, "epsilon": epsilon, "model": method, "score": ("R2", "AUC")[is_class(name)]}
                line |= {who: learnt(name, value) for who, value in scores.items()}
                lines.append(line | {"difference": line["ours"] - line["best rival"]})
    return lines


def verdict(value: float, bar: float, *, least: bool = False) -> str:
    return f"bar {bar:.3g}: {'met' if (value >= bar if least else value <= bar) else 'MISSED'}"


def bars_of(delta: str) -> dict[float, dict[str, float]]:
    """Return what ratios are held to: with the rivals' delta the same for every error."""
    return BARS if delta == "0" else {epsilon: dict.fromkeys(ERRORS, bar) for epsilon, bar in DELTA_BARS.items()}


def compared(rows: list[Row], delta: str) -> Row:
    """Print how ours compares with the rivals, and return it."""
    stored = json.loads(RIVALS.read_text()) if RIVALS.exists() else {"rows": [], "floors": {}}
    rivals = stored["rows"]
    lines = [{"table": name, "epsilon": epsilon, **found} for (name, epsilon), found in own_means(rows)]
    print("ours, mean over the runs\n" + table(lines))
    result: Row = {"means": lines, "ratios": ratios(rows, rivals), "differences": []}
    if result["ratios"]:
        print("\nratio to the best of MST and AIM, metric by metric\n" + table(result["ratios"]))
        missing = sorted({row["table"] for row in rows} - {line["table"] for line in result["ratios"]})
        print(f"without a rival's result: {', '.join(missing) or 'none'}\n")
    for line in [line for line in result["ratios"] if line["table"] == MEAN]:
        bars = bars_of(delta)[line["epsilon"]] | {"cpu_seconds": CPU_BAR}
        for metric in [metric for metric in METRICS if metric in line]:
            print(f"epsilon {line['epsilon']:<4} {metric:12} {line[metric]:.3f}  {verdict(line[metric], bars[metric])}")
    if result["ratios"] and (found := differences(rows, rivals, stored["floors"])):
        result["differences"] = found
        print("\nwhat models learn\n" + table(found))
        for (epsilon, score, method), own in groups(found, "epsilon", "score", "model").items():
            value = float(np.mean([line["difference"] for line in own]))
            said = verdict(value, AUC_BAR, least=True) if score == "AUC" else ""
            print(f"epsilon {epsilon:<4} {score:3} {method:8} ours less the best rival's {value:+.3f}  {said}")
    if all("peak_mb" in row for row in rows):
        result["peak_mb"] = max(row["peak_mb"] for row in rows)
        print(f"\npeak memory  {result['peak_mb']:.0f} MB  {verdict(result['peak_mb'], MEMORY_BAR)}")
    theirs = [row for row in rivals if row["table"] in {own["table"] for own in rows}]
    done = groups([row for row in theirs if row["status"] == "complete"], "rival", "method")
    result["rivals"] = [{"rival": rival, "method": method, "runs": len(own)} for (rival, method), own in done.items()]
    result["bars"] = {str(epsilon): bars for epsilon, bars in bars_of(delta).items()}
    keys = ("rival", "method", "table", "epsilon", "seed", "status")
    result["not complete"] = [{key: row[key] for key in keys} for row in theirs if row["status"] != "complete"]
    made = {tuple(row[key] for key in KEY) for row in theirs}
    wanted = [run for run in planned_rivals() if run["table"] in {own["table"] for own in rows}]
    result["not run"] = [run for run in wanted if tuple(run[key] for key in KEY) not in made]
    return result


def compared_models(rows: list[Row]) -> Row:
    """Print what models learn beside the rivals, for either promise, and return it."""
    rivals, found = json.loads(RIVALS.read_text()), dict[str, list[Row]]()
    for (delta,), own in groups(rows, "delta").items():
        found["with_delta" if float(delta) else "differences"] = differences(own, rivals["rows"], rivals["floors"])
    for what, lines in found.items():
        print(f"\nwith a declared target, {what}\n{table(lines)}")
    return dict(found)


def own_means(rows: list[Row]) -> list[tuple[tuple[Any, ...], dict[str, float]]]:
    return sorted(
        means(rows, "table", "epsilon").items(), key=lambda item: (item[0][1], tables.NAMES.index(item[0][0]))
    )


def against(rows: list[Row], others: list[Row]) -> str:
    """Return ratios to other runs of the same splits and seeds: geometric means, and the standard error of chance."""
    key = ("table", "epsilon", "seed")
    theirs = {tuple(row[k] for k in key): row for row in others}
    pairs = [
        row | {"shown": row["table"], "other": theirs[at]}
        for row in rows
        if (at := tuple(row[k] for k in key)) in theirs
    ]
    both = sorted(pairs + [pair | {"shown": MEAN} for pair in pairs], key=lambda pair: pair["epsilon"])
    found = groups(both, "epsilon", "shown")
    return table([{"epsilon": epsilon, "table": name, **changes(own)} for (epsilon, name), own in found.items()])


def changes(pairs: list[Row]) -> Row:
    """Return how errors, common values and scores of some runs differ from those of the others."""
    line: Row = {"runs": len(pairs)}
    for name in (*ERRORS, "common_values", *downstream.METHODS):
        if not all(name in pair and name in pair["other"] for pair in pairs):
            continue
        if name in ERRORS:
            logs = [math.log(mean([pair], name) / mean([pair["other"]], name)) for pair in pairs]
            chance = np.std(logs, ddof=1) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
            line[name] = f"{math.exp(np.mean(logs)):.3f} +- {chance:.3f}"
        else:
            scores = [[learnt(pair["table"], row[name]) for row in (pair, pair["other"])] for pair in pairs]
            line[name] = f"{np.mean([ours - other for ours, other in scores]):+.3f}"
    return line


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    half = parser.add_mutually_exclusive_group(required=True)
    half.add_argument("--open", action="store_true", help="the open tables, quickly")
    half.add_argument("--held-out", action="store_true", help="the held-out tables: writes results/held-out.json")
    half.add_argument("--aimed", action="store_true", help="their models alone: writes results/held-out-aimed.json")
    half.add_argument(
        "--curve", action="store_true", help="the open tables as epsilon grows: writes results/curve.json"
    )
    parser.add_argument("--delta", action="store_const", const=DELTA, default="0", help="with the delta of the rivals")
    half.add_argument("kept", nargs="?", choices=["kept"], help="compare the kept runs again")
    parser.add_argument("--w1", action="store_true", help="with the excess W1 of the whole space")
    parser.add_argument("--downstream", action="store_true", help="with what models learn")
    parser.add_argument("--target", action="store_true", help="with the column that models predict declared")
    parser.add_argument("--tables", default=",".join(tables.OPEN), help="open tables, with commas between")
    parser.add_argument("--epsilons", default=",".join(map(str, EPSILONS)), help="of 0.1, 1 and 4, with commas between")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many splits of each table")
    parser.add_argument("--keep", type=Path, help="a file for the runs")
    parser.add_argument("--against", type=Path, help="a file with other runs")
    found = parser.parse_args()
    if unknown := set(found.tables.split(",")) - {*tables.OPEN}:
        parser.error(f"--tables: {', '.join(sorted(unknown))} is not an open table; these are {', '.join(tables.OPEN)}")
    return found


def main() -> None:
    if not {"--open", "kept"}.intersection(sys.argv):  # these measure nothing that is written into results
        begin()
    asked = options()
    kept = "held-out" if asked.delta == "0" else "held-out-delta"
    if asked.kept:
        path = RESULTS / f"{kept}.json"
        old = json.loads(path.read_text())
        path.write_text(json.dumps(old | compared(old["rows"], asked.delta), indent=1) + "\n")
        for path in RESULTS.glob("held-out-aimed*.json"):
            old = json.loads(path.read_text())
            path.write_text(json.dumps(old | compared_models(old["rows"]), indent=1) + "\n")
    elif asked.curve:
        rows = curve()
        save("curve", rows=rows)
        print(table(rows))
    elif asked.aimed:
        rows = aimed()
        save("held-out-aimed", rows=rows, **compared_models(rows))
    elif asked.held_out:
        rows = final(asked.delta)
        save(kept, **compared(rows, asked.delta), rows=rows)
    else:
        epsilons = [next(e for e in EPSILONS if e == float(word)) for word in asked.epsilons.split(",")]
        rows = quick(
            asked.tables.split(","),
            epsilons,
            asked.seeds,
            asked.delta,
            with_w1=asked.w1,
            learnt=asked.downstream,
            aimed=asked.target,
        )
        compared(rows, asked.delta)
        if asked.keep:
            asked.keep.write_text(json.dumps(rows, indent=1) + "\n")
        if asked.against:
            print(
                "\nratio to the other runs (models: difference)\n"
                + against(rows, json.loads(asked.against.read_text()))
            )


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):  # NumPy reads them when it starts
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
    else:
        main()

"""What other values of the column tree's constants would do: which of them matter, and whether any was fitted.

Every constant is changed by itself, on the four tables of the rivals' benchmark and on six further ones. If a constant
was fitted to the four, other values are worse there and better on the six. Releases are add-remove with fixed seeds,
compared by rivals/measure.py with 20 directions. Numbers are ratios to the default with the same seed: geometric means
over tables and seeds. `worst` is the error that is farthest from 1 on all ten tables, `chance` its standard error from
the scatter of seeds; `beyond` names what is more than 3 % from 1 by more than two standard errors.

Runs that are in `benchmarks/results/constants.json` already are not made again, unless a default has changed, or the
defaults no longer give the numbers kept there. Words on the command line restrict the runs: `constants.py 1 TREE_ROWS`
tries other values of one constant at epsilon = 1; `constants.py show` prints what there is. `seeds=8` takes more seeds.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

import more_tables
import record
import wide_tables
from privmeasure.domains import Box, Categories, Domain, Integers, Product
from privmeasure.mechanisms import ColumnTree
from privmeasure.model import pairs as tables_of_pairs
from privmeasure.noise.entropy import Key
from privmeasure.plans.tuning import TUNED, Tuning
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource
from rivals import measure
from wide import ONE_THREAD

EPSILONS = ("0.1", "1", "4")
SEEDS = 2
DIRECTIONS = 20
FLAT = 0.03
ERRORS = ("tv1", "tv2", "column_w1", "sliced")
SHORT = {"column_w1": "w1"}
GROUPS = {"4": wide_tables.NAMES, "6": more_tables.NAMES}
NAMES = wide_tables.NAMES + more_tables.NAMES
RESULT = record.RESULTS / "constants.json"
PROBE = "adult"
"""The table whose numbers say whether kept results are still those of this code."""
FIELDS = {
    "SPLIT": "split_power",
    "ROWS_A_CELL": "rows_per_cell",
    "FEWEST": "fewest_pairs",
    "blocks": "whole_blocks",
}
"""Fields of `Tuning` that kept results know by another name than their own in capitals."""


@dataclass(frozen=True)
class Setting:
    """A value of a constant: what is replaced in the tuning, or set for the model that rows are drawn from."""

    constant: str = "default"
    value: str = ""
    tuning: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)


def field_of(constant: str) -> str:
    return FIELDS.get(constant, constant.lower())


def tried(constant: str, *values: Any) -> list[Setting]:
    return [Setting(constant, shown(value), {constant: value}) for value in values]


def modelled(constant: str, *values: float) -> list[Setting]:
    return [Setting(constant, shown(value), model={constant: value}) for value in values]


def shown(value: Any) -> str:
    return " ".join(shown(v) for v in value) if isinstance(value, tuple) else f"{float(value):g}"


def settings() -> list[Setting]:
    """Return the defaults and all that is tried."""
    rows = [(1, 2), (4, 8)]
    return [
        Setting(),
        # least, usual and most are moved together: else the least would hold the usual share where it is
        *tried("COLUMNS_SHARE", (0.32, 0.4, 0.79), (0.52, 0.6, 0.94)),
        *tried("COLUMNS_SLOPE", 0.0, 0.4),
        *tried("SELECTION_SHARE", 0.025, 0.1),
        *tried("SPLIT", 0.3, 0.5),
        *tried("COARSE_SHARE", Fraction(1, 2), Fraction(9, 10)),
        *tried("ROWS_A_CELL", 4, 16),
        *(Setting("TREE_ROWS", shown(r), dict(zip(("TREE_ROWS", "EXTRA_ROWS"), r, strict=True))) for r in rows),
        *tried("EXTRA_WEIGHT", Fraction(1, 2), Fraction(1)),
        *tried("FEWEST", Fraction(1, 5), Fraction(1)),
        *tried("PAIR_ROWS", 70, 280),
        *tried("LEAST_ROWS", 225, 900),
        *tried("MOST_EXTRA", 0.75, 3.0),
        *tried("MOST_GROUPS", 40, 96),
        *tried("PAIR_POWER", 0.0, 0.6),
        *tried("CLEAR", 5.0, 20.0),
        Setting("blocks", "off", {"blocks": False}),
        *tried("SCORE_SIDE", 8, 32),
        *tried("NOISE_PRICE", 0.0, 0.15, 0.5),
        *modelled("NOISE_SHARE", 0.5, 1.0),
        *modelled("POSSIBLE", 0.0, 0.002),
        Setting("centred", "off", model={"centred": lambda matrix: matrix}),
    ]


@contextmanager
def changed(setting: Setting) -> Iterator[Tuning]:
    """Give the tuning of a setting; the model is the setting's for as long as it lasts.

    What acts on every release that is loaded is no argument of anything, so that a file gives the same rows everywhere:
    to try other values, its module is changed, here and nowhere else.
    """
    with ExitStack() as stack:
        for name, value in setting.model.items():
            stack.enter_context(patch.object(tables_of_pairs, name, value))
        yield replace(TUNED, **{field_of(constant): value for constant, value in setting.tuning.items()})


def defaults() -> dict[str, str]:
    """Return the values that ratios are taken to; what is only on or off has none."""
    found = {}
    for setting in settings():
        found |= {constant: getattr(TUNED, field_of(constant)) for constant in setting.tuning}
        found |= {constant: getattr(tables_of_pairs, constant) for constant in setting.model}
    return {name: shown(value) for name, value in found.items() if not isinstance(value, bool | Callable)}


@cache
def real(name: str) -> tuple[np.ndarray, measure.Bounds]:
    table, bounds = (wide_tables if name in wide_tables.NAMES else more_tables).load(name)
    return measure.coded(table, bounds), bounds


def space(bound: tuple[Any, ...]) -> Domain:
    """Return the domain of a column; a missing category is one value more."""
    if bound[0] == "category":
        return Categories(measure.count(bound))
    return Integers(bound[1], bound[2]) if bound[0] == "integer" else Box([(bound[1], bound[2])])


def run(name: str, epsilon: str, seed: int, tuning: Tuning = TUNED) -> dict[str, float]:
    """Release and sample a table once, and compare."""
    points, bounds = real(name)
    domain = Product([space(bound) for bound in bounds.values()])
    mechanism = ColumnTree(domain, Privacy(Fraction(epsilon), "add-remove"), threads=1, tuning=tuning)
    # a fixed key hides nobody: these tables are published as they are
    release = mechanism.release(ArraySource(points, width=domain.width, threads=1), Key.insecure(seed))
    synthetic = release.sample(seed=seed, threads=1)
    with patch.object(measure, "DIRECTIONS", DIRECTIONS):
        return measure.columns_and_pairs(points, synthetic, bounds)


def measured(setting: Setting, epsilon: str, seed: int) -> dict[str, Any]:
    """Return every measure of every table, with one constant changed."""
    with changed(setting) as tuning:
        found = {name: run(name, epsilon, seed, tuning) for name in NAMES}
    return {metric: {name: float(f"{result[metric]:.5g}") for name, result in found.items()} for metric in ERRORS}


def kept() -> list[dict[str, Any]]:
    """Return the rows of the results file, none if they are not of these constants and this code."""
    old = record.kept("constants") or {"rows": []}
    rows: list[dict[str, Any]] = old["rows"]
    if not rows:
        return rows
    if old["defaults"] != defaults() or old["directions"] != DIRECTIONS:
        print("a default has changed: starting anew", file=sys.stderr)
        return []
    base = next(row for row in rows if row["constant"] == "default")
    again = run(PROBE, base["epsilon"], base["seed"])
    if not all(math.isclose(again[metric], base[metric][PROBE], rel_tol=1e-3) for metric in ERRORS):
        print("the defaults give other numbers than those kept: starting anew", file=sys.stderr)
        return []
    return rows


def logarithms(rows: list[dict[str, Any]], bases: dict[int, dict[str, Any]], metric: str) -> np.ndarray:
    """Return the logarithm of the ratio to the default: a line a table, a column a seed."""
    return np.array(
        [[math.log(max(r[metric][t], 1e-9) / max(bases[r["seed"]][metric][t], 1e-9)) for r in rows] for t in NAMES]
    )


def chance(part: np.ndarray, log: np.ndarray) -> float:
    """Return the standard error of a part's mean, from the scatter of seeds; unknown for one seed.

    The scatter of few tables may be small by chance: it is taken to be at least that of all.
    """
    if log.shape[1] < 2:
        return math.inf
    return math.sqrt(max(x.var(axis=1, ddof=1).mean() for x in (part, log)) / part.size)


def compared(found: list[dict[str, Any]], bases: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Return the ratios of one value, the worst on all tables, and those that are beyond FLAT whatever chance does."""
    line: dict[str, Any] = {"seeds": len(found)}
    worst, sure = (0.0, 0.0), []
    for metric in ERRORS:
        log = logarithms(found, bases, metric)
        parts = {f"/{group}": log[[NAMES.index(name) for name in names]] for group, names in GROUPS.items()}
        line |= {SHORT.get(metric, metric) + group: math.exp(part.mean()) for group, part in parts.items()}
        worst = max(worst, (log.mean(), chance(log, log)), key=lambda pair: abs(pair[0]))
        parts[""] = log
        sure += [
            SHORT.get(metric, metric) + group
            for group, part in parts.items()
            if abs(part.mean()) > math.log1p(FLAT) + 2 * chance(part, log)
        ]
    line = {name: round(value, 3) for name, value in line.items()}
    return {**line, "worst": round(math.exp(worst[0]), 3), "chance": round(worst[1], 3), "beyond": " ".join(sure)}


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line for each value that was tried."""
    bases: dict[str, dict[int, dict[str, Any]]] = {}
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["constant"] == "default":
            bases.setdefault(row["epsilon"], {})[row["seed"]] = row
        else:
            groups.setdefault((row["epsilon"], row["constant"], row["value"]), []).append(row)
    return [
        {"epsilon": epsilon, "constant": constant, "value": value, **compared(found, bases[epsilon])}
        for (epsilon, constant, value), found in groups.items()
    ]


def verdict(lines: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Sort the constants: flat on all tables and not surely beyond it in a group, beyond by chance or not, beyond."""
    found: dict[str, list[str]] = {"flat": [], "unclear": [], "matter": []}
    for constant in dict.fromkeys(line["constant"] for line in lines):
        own = [line for line in lines if line["constant"] == constant]
        flat = all(abs(math.log(line["worst"])) < math.log1p(FLAT) for line in own)
        found["matter" if any(line["beyond"] for line in own) else "flat" if flat else "unclear"].append(constant)
    return found


def show(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Print the ratios and return what they say, epsilon by epsilon."""
    lines, verdicts = ratios(rows), dict[str, dict[str, list[str]]]()
    for epsilon in dict.fromkeys(line["epsilon"] for line in lines):
        here = [line for line in lines if line["epsilon"] == epsilon]
        print(f"\nepsilon {epsilon}: ratio to the default; /4 the tables of the rivals' benchmark, /6 further tables")
        print(record.table([{k: v for k, v in line.items() if k != "epsilon"} for line in here]))
        found = verdicts[epsilon] = verdict(here)
        print(f"flat, every value tried within {FLAT:.0%} in all of {', '.join(ERRORS)}: {', '.join(found['flat'])}")
        print(f"unclear, beyond that by less than two standard errors, or with one seed: {', '.join(found['unclear'])}")
        print(f"beyond that by more, on all tables or one of the groups: {', '.join(found['matter'])}")
    return verdicts


def keep(rows: list[dict[str, Any]], **results: Any) -> None:
    """Write the file after each setting, so that a stop loses at most one."""
    record.save("constants", defaults=defaults(), directions=DIRECTIONS, **results, rows=rows)


def main() -> None:
    if sys.argv[1:] == ["show"]:
        show(json.loads(RESULT.read_text())["rows"])
        return
    record.begin()
    words = set(sys.argv[1:])
    more = [word for word in words if word.startswith("seeds=")]
    seeds = int(more[0].removeprefix("seeds=")) if more else SEEDS
    everything, only = settings(), words - {*EPSILONS, *more}
    unknown = only - {setting.constant for setting in everything}
    if unknown:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; expected an epsilon, a constant, seeds=8 or show")
    chosen = [setting for setting in everything if not only or setting.constant in only | {"default"}]
    rows = kept()
    for epsilon in [epsilon for epsilon in EPSILONS if epsilon in words] or EPSILONS:
        for seed in range(seeds):
            for setting in chosen:
                key = {"epsilon": epsilon, "constant": setting.constant, "value": setting.value, "seed": seed}
                if not any(key.items() <= row.items() for row in rows):
                    rows.append(key | measured(setting, epsilon, seed))
                    keep(rows)
                    print(key, file=sys.stderr)
    keep(rows, verdicts=show(rows))


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):  # NumPy reads them when it starts
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    main()

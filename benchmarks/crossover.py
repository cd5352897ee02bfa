"""Where one tree over all columns stops being the better choice: the constant behind mechanism="auto", found again.

Simulated tables of k columns, epsilon = 1, add-remove, both mechanisms. Three measures: exact W1 on samples of 1,000
rows as excess over disjoint real samples, sliced W1, and total variation of pairs of columns.
The constant is the largest k up to which one tree has the smaller error, in geometric mean over shapes, sizes and
measures.
"""

import math
from itertools import product

import numpy as np

import privmeasure as pm
from front_page import joint_columns
from record import begin, save, table
from rivals import measure

COLUMNS = (2, 3, 4, 6)
ROWS = (2_000, 20_000, 200_000)
SEEDS = (0, 1)
SLICED = 20_000
MECHANISMS = ("pmm", "columns")


def copula(rng: np.random.Generator, rows: int, k: int) -> np.ndarray:
    """Normal columns with one common factor, of different shapes."""
    common = rng.normal(size=(rows, 1))
    z = 0.7 * common + math.sqrt(1 - 0.49) * rng.normal(size=(rows, k))
    return 1 / (1 + np.exp(-z * np.linspace(1, 3, k)))


def clusters(rng: np.random.Generator, rows: int, k: int) -> np.ndarray:
    centres, widths = rng.random((20, k)), rng.gamma(2, 0.01, 20)
    pick = rng.integers(0, 20, rows)
    return np.clip(centres[pick] + rng.normal(size=(rows, k)) * widths[pick, None], 0, 1)


def mixed(rng: np.random.Generator, rows: int, k: int) -> np.ndarray:
    """Every second column a category of five values that leans on the column before it."""
    x = copula(rng, rows, k)
    for j in range(1, k, 2):
        x[:, j] = np.clip(np.floor(5 * (0.6 * x[:, j - 1] + 0.4 * rng.random(rows))), 0, 4)
    return x


SHAPES = {"copula": copula, "clusters": clusters, "mixed": mixed}


def declaration(shape: str, k: int) -> tuple[pm.Schema, measure.Bounds]:
    category = [shape == "mixed" and j % 2 == 1 for j in range(k)]
    columns = {f"c{j}": pm.Category([0, 1, 2, 3, 4]) if category[j] else pm.Number(0, 1) for j in range(k)}
    bounds = {f"c{j}": ("category", [0, 1, 2, 3, 4]) if category[j] else ("number", 0.0, 1.0) for j in range(k)}
    return pm.Schema(columns), bounds


def run(shape: str, k: int, rows: int, seed: int) -> dict[str, object]:
    rng = np.random.default_rng([seed, rows, k])
    real = SHAPES[shape](rng, rows, k)
    schema, bounds = declaration(shape, k)
    here, cells = measure.scaled(real, bounds), measure.cells(real, bounds)
    found: dict[str, object] = {"shape": shape, "columns": k, "rows": rows, "seed": seed}
    for mechanism in MECHANISMS:
        domain = schema.domain if mechanism == "pmm" else schema.node_domain
        synth = pm.Synthesizer(domain, epsilon=1, neighbours="add-remove", mechanism=mechanism)
        rows_out = synth.fit(real, insecure_seed=seed).sample(seed=seed)
        there = measure.scaled(rows_out, bounds)
        found[f"{mechanism} sliced"] = measure.sliced(
            measure.some(here, SLICED, seed), measure.some(there, SLICED, seed)
        )
        found[f"{mechanism} TV"] = measure.variations(cells, measure.cells(rows_out, bounds), bounds)[1]
        half = min(1_000, rows // 2)
        first, second = (measure.some(here, 2 * half, seed)[i::2] for i in (0, 1))
        floor = measure.exact(first, second)
        excess = measure.exact(first, measure.some(there, half, seed)) - floor
        found[f"{mechanism} W1"] = max(excess, 0.0) + 0.1 * floor  # an excess near 0 is noise: do not divide by it
    return found


def main() -> None:
    begin()
    rows = [run(*case) for case in product(SHAPES, COLUMNS, ROWS, SEEDS)]
    lines = []
    for k, n in product(COLUMNS, ROWS):
        here = [row for row in rows if row["columns"] == k and row["rows"] == n]
        ratio = {
            name: math.exp(np.mean([math.log(row[f"pmm {name}"] / row[f"columns {name}"]) for row in here]))
            for name in ("sliced", "W1", "TV")
        }
        lines.append({"columns": k, "rows": n, **{f"pmm / columns, {name}": r for name, r in ratio.items()}})
    print(table(lines))
    means = {
        k: math.exp(np.mean([math.log(v) for line in lines if line["columns"] == k for v in list(line.values())[2:]]))
        for k in COLUMNS
    }
    for k, mean in means.items():
        print(f"{k} columns: one tree has {mean:.2f} times the error of the column tree")
    best = joint_columns(means)
    print(f"one tree up to {best} columns; the package has MOST_JOINT_COLUMNS = {constant()}")
    save("crossover", lines=lines, means=means, most_joint_columns=best)


def constant() -> int:
    from privmeasure.synthesizer import MOST_JOINT_COLUMNS

    return MOST_JOINT_COLUMNS


if __name__ == "__main__":
    main()

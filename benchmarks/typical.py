"""Does the typical error hold? The truth of simulated shapes and real tables against the 90 % bands of their releases.

Every case is released several times, from seeds, and `typical_error` looks at each release. A band holds if the data's
own value lies in it; a distance if the true W1 is at most what 9 of 10 runs stay below. Writes results/typical.json.

    make bench-typical
"""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privmeasure as pm
import record
from privmeasure.metrics.answers import correlations, smooth_quantiles
from privmeasure.metrics.nearness import joined, share_of_range
from privmeasure.tables.variables import variables

EXAMPLES = Path(__file__).parents[1] / "examples"
FITS = {"shape": 24, "wide": 6, "narrow": 24}
ROWS = 5000
WIDEST = 30_000
"""Rows of a real table."""


def shapes() -> dict[str, tuple[Any, Callable[[np.random.Generator], np.ndarray]]]:
    line, square = pm.Box([(0, 1)]), pm.Box([(0, 1), (0, 1)])

    def clusters(rng: np.random.Generator) -> np.ndarray:
        centres = np.array([[0.2, 0.3], [0.7, 0.8], [0.8, 0.2]])
        return np.clip(centres[rng.integers(0, 3, ROWS)] + rng.normal(0, 0.04, (ROWS, 2)), 0, 1)

    def tilted(rng: np.random.Generator) -> np.ndarray:
        x = rng.normal(0.5, 0.15, ROWS)
        return np.clip(np.column_stack([x, 0.6 * x + 0.2 + rng.normal(0, 0.06, ROWS)]), 0, 1)

    return {
        "uniform": (line, lambda rng: rng.random((ROWS, 1))),
        "bell": (line, lambda rng: np.clip(rng.normal(0.4, 0.1, (ROWS, 1)), 0, 1)),
        "two bells": (
            line,
            lambda rng: np.clip(rng.choice([0.2, 0.7], (ROWS, 1)) + rng.normal(0, 0.05, (ROWS, 1)), 0, 1),
        ),
        "heavy tail": (line, lambda rng: np.clip(rng.lognormal(-3.5, 1, (ROWS, 1)), 0, 1)),
        "spikes": (line, lambda rng: rng.choice([0.0, 0.1, 0.25, 0.5, 0.75], (ROWS, 1), p=[0.4, 0.1, 0.2, 0.2, 0.1])),
        "clusters": (square, clusters),
        "tilted": (square, tilted),
    }


def tables() -> Iterator[tuple[str, pm.Schema, pa.Table]]:
    for name in ("adult", "flights"):
        schema = pm.Schema.from_toml(EXAMPLES / name / f"{name}.toml")
        table = pq.read_table(EXAMPLES / name / f"{name}.parquet")
        few = np.random.default_rng(0).permutation(table.num_rows)[:WIDEST]
        yield name, schema, table.take(few)
    from pyarrow import csv

    yield (
        "people",
        pm.Schema.from_toml(EXAMPLES / "people" / "people.toml"),
        csv.read_csv(EXAMPLES / "people" / "people.csv"),
    )


def tally(release: Any, real: np.ndarray, counts: dict[str, list[int]], runs: int) -> float:
    """Count which bands of a release hold the data's values, and return the seconds that it took."""
    schema = getattr(release, "schema", None)
    start = time.process_time()
    found = pm.typical_error(release, runs=runs, seed=1)
    seconds = time.process_time() - start
    sample = release.sample(seed=2)
    rows = sample if schema is None else schema.encode(sample.combine_chunks())
    known = {v.name: v for v in variables(release.domain if schema is None else schema)}

    def add(kind: str, holds: Any) -> None:
        holds = np.atleast_1d(holds)
        had = counts.setdefault(kind, [0, 0])
        had[0], had[1] = had[0] + int(holds.sum()), had[1] + len(holds)

    for name, v in known.items():
        own = real[:, v.places]
        truth, bins = v.shares(own), found.bins[name]
        used = (truth > 0) | (bins.errors > 0)  # a bin that is empty here and there is no news
        add("shares" if v.labels else "bins", (np.abs(truth - bins.shares) <= bins.errors + 1e-12)[used])
        numbers = v.numbers(own)
        if name in found.means and numbers is not None:
            add("means", abs(np.nanmean(numbers) - found.means[name].value) <= found.means[name].error)
        if name in found.quantiles:
            true = smooth_quantiles(own[:, 0] if numbers is None else numbers, v.step)
            bands = found.quantiles[name].values()
            add("quantiles", [abs(q - b.value) <= b.error + 1e-12 for q, b in zip(true, bands, strict=True)])
        add("W1 of columns", share_of_range(own, rows[:, v.places], v.space) <= found.columns[name].high)
    for (a, b), spread in found.pairs.items():
        one, two = known[a], known[b]
        at = np.r_[one.places, two.places]
        add("W1 of pairs", share_of_range(real[:, at], rows[:, at], joined([one.space, two.space])) <= spread.high)
    if found.correlations:
        numeric = list(dict.fromkeys(name for pair in found.correlations for name in pair))
        matrix = np.column_stack([known[name].numbers(real[:, known[name].places]) for name in numeric])
        measured = {frozenset(pair) for pair in found.pairs}
        for (pair, band), true in zip(found.correlations.items(), correlations(matrix), strict=True):
            kind = "correlations, measured" if frozenset(pair) in measured else "correlations, other pairs"
            add(kind, abs(true - band.value) <= band.error)
    return seconds


def main(runs: int = 20) -> None:
    if len(sys.argv) < 2 or "--scratch" in sys.argv:
        record.begin()
    results: dict[str, Any] = {}
    for name, (space, draw) in shapes().items():
        counts: dict[str, list[int]] = {}
        for fit in range(FITS["shape"]):
            real = draw(np.random.default_rng(100 + fit))
            relation = ("replace", "add-remove")[fit % 2]
            synth = pm.Synthesizer(space, epsilon=1, neighbours=relation)  # type: ignore[arg-type]
            seconds = tally(synth.fit(real, insecure_seed=fit).release_, real, counts, runs)
        results[name] = {"kind": "shape", "rows": ROWS, "columns": space.width, "seconds": seconds, "holds": counts}
        print(name, {kind: f"{a}/{b}" for kind, (a, b) in counts.items()}, f"{seconds:.1f} s", flush=True)
    for name, schema, table in tables():
        counts = {}
        real = schema.encode(table.combine_chunks())
        for fit in range(FITS["wide" if real.shape[1] > 3 else "narrow"]):
            synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove").fit(table, insecure_seed=fit)
            seconds = tally(synth.release_, real, counts, runs)
        width = real.shape[1]
        results[name] = {"kind": "table", "rows": len(real), "columns": width, "seconds": seconds, "holds": counts}
        print(name, {kind: f"{a}/{b}" for kind, (a, b) in counts.items()}, f"{seconds:.1f} s", flush=True)
    if len(sys.argv) < 2:
        record.save("typical", runs=runs, level=0.9, cases=results)


if __name__ == "__main__":
    main()

"""Do the bands of the typical error hold? Twelve shapes and real tables, whose numbers are known, beside their bands.

Every case is released several times, from seeds. A band holds if the number that a reader computes from the real column
lies in it (`band_shapes.answers`, which shares no code with the bands). Its width is compared with the larger of two
others: the smallest symmetric one that covers 90 % of the errors of the released values, and that of a released cell,
or one step of the type. Cases that the results hold already, at the same commit and with as many fits, are not
repeated, so that a run can be stopped and goes on later. Writes results/typical.json.

    make bench-typical
    python benchmarks/typical.py --fits 12 --rows 2000 --epsilons 1 --cases "tree 1,wide 1"
"""

import argparse
import math
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pc
import pyarrow.parquet as pq

import band_shapes
import privmeasure as pm
import record

EXAMPLES = Path(__file__).parents[1] / "examples"
LEVEL, RUNS = 0.9, 20
LEAST_HELD = 0.75
"""A case of which fewer bands hold is repeated once with more fits, and these count alone."""
WIDEST = 30_000
"""Rows of a real table."""
TABLES = ("adult", "flights", "people")


def given(names: tuple[str, ...], rows: int, seed: int) -> tuple[pm.Schema, pa.Table, dict[tuple[str, ...], float]]:
    """Return the schema, the rows and the true answers of some shapes."""
    schema, values = band_shapes.draw(names, rows, seed)
    return schema, band_shapes.table(values), band_shapes.answers(schema, values)


def example(name: str) -> tuple[pm.Schema, pa.Table, dict[tuple[str, ...], float]]:
    """Return the schema, the rows and the true answers of a real table."""
    folder = EXAMPLES / name
    schema = pm.Schema.from_toml(folder / f"{name}.toml")
    parquet = folder / f"{name}.parquet"
    table = pq.read_table(parquet) if parquet.exists() else pc.read_csv(folder / f"{name}.csv")
    table = table.take(np.random.default_rng(0).permutation(table.num_rows)[:WIDEST])
    return schema, table, band_shapes.answers(schema, band_shapes.columns(schema, table))


def bands(found: Any) -> dict[tuple[str, ...], Any]:
    """Return all bands by the names that `band_shapes.answers` has."""
    named = {(n, f"{round(100 * q)} %"): band for n, own in found.quantiles.items() for q, band in own.items()}
    named |= {(n, "mean"): band for n, band in found.means.items()}
    named |= {(n, "share", value): band for n, own in found.shares.items() for value, band in own.items()}
    return named | {pair: band for pair, band in found.correlations.items() if band is not None}


class Cells:
    """The released cells of each column, as values, and how wide the one is in which a number lies."""

    def __init__(self, release: Any) -> None:
        """Read the cells of a release whose columns have one coordinate each."""
        frame, self.ends, self.steps = release.to_frame(), {}, {}
        for i, (name, column) in enumerate(release.schema.data.items()):
            if "column" in frame.column_names:
                own = frame.filter(pa.compute.equal(frame["column"], i))
                sides = own["low"].to_numpy(), own["high"].to_numpy()
            else:
                sides = frame[f"low_{i}"].to_numpy(), frame[f"high_{i}"].to_numpy()
            curved = column.tag() in ("integer", "number") and column.curved
            ends = [column.averages(side[:, None]) if curved else side for side in sides]
            self.ends[name] = [side[~np.isnan(side)] for side in ends]
            self.steps[name] = 1.0 if column.tag() in ("integer", "date") else 0.0

    def width(self, name: str, value: float) -> float:
        """Return the width of the narrowest cell that holds a value, or of most cells; at least one step."""
        low, high = self.ends[name]
        holds = (low <= value) & (value <= high)
        widths = (high - low)[holds] if holds.any() else high - low
        return max(self.steps[name], float(widths.min() if holds.any() else np.median(widths)) if len(widths) else 0.0)


def scored(key: str, cases: Iterator[tuple[int, Any]], epsilon: float) -> dict[str, dict[str, float]]:
    """Return for every statistic how many bands held, their median width, and what that is compared with."""
    seen: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
    for fit, (schema, table, truth) in cases:
        synth = pm.Synthesizer(schema, epsilon=epsilon, neighbours="add-remove")
        noise = zlib.crc32(f"{key}, fit {fit}".encode())  # cases that share their noise would err together
        release = synth.fit(table, insecure_seed=noise).release_
        cells = Cells(release) if schema.domain.width == len(schema.data) else None
        for name, band in bands(pm.typical_error(release, runs=RUNS, level=LEVEL, seed=noise)).items():
            if name not in truth:
                continue
            slack = 1e-9 * max(1.0, abs(truth[name]))  # of rounding
            holds = band.low - slack <= truth[name] <= band.high + slack
            placed = cells is not None and (name[-1] == "mean" or name[-1].endswith(" %"))
            cell = cells.width(name[0], truth[name]) if placed else 0.0
            seen.setdefault(name, []).append((holds, band.high - band.low, abs(band.value - truth[name]), cell))
    return {" | ".join(name): summary(np.array(found, np.float64)) for name, found in seen.items()}


def summary(found: np.ndarray) -> dict[str, float]:
    """Return what is kept of one statistic of one case; `ratio` is None where there is no error and no cell."""
    held, widths, errors, cells = found.T
    needed = 2 * np.sort(errors)[math.ceil(LEVEL * len(errors)) - 1]
    least, width = max(float(needed), float(np.median(cells))), float(np.median(widths))
    return {
        "fits": len(held),
        "held": int(held.sum()),
        "width": width,
        "needed": float(needed),
        "cell": float(np.median(cells)),
        "ratio": width / least if least > 0 else None,
    }


def shape_case(key: str, name: str, rows: int, epsilon: float, fits: int, more: int) -> dict[str, dict[str, float]]:
    """Return the scores of one table of shapes; those that too few bands cover are counted again in more fits."""
    names = (band_shapes.TREES | band_shapes.WIDE)[name]
    found = scored(key, ((fit, given(names, rows, 1000 + fit)) for fit in range(fits)), epsilon)
    if any(one["held"] < LEAST_HELD * one["fits"] for one in found.values()) and more:
        again = scored(key, ((fits + fit, given(names, rows, 10_000 + fit)) for fit in range(more)), epsilon)
        found |= {what: again[what] for what, one in found.items() if one["held"] < LEAST_HELD * one["fits"]}
    return found


def main() -> None:
    """Score the cases that are asked for, and write what is known after each."""
    record.begin()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [*band_shapes.TREES, *band_shapes.WIDE, *TABLES]
    parser.add_argument("--fits", type=int, default=40, help="releases of each table of shapes")
    parser.add_argument("--table-fits", type=int, default=6, help="releases of each real table")
    parser.add_argument("--more-fits", type=int, default=200, help="releases where bands hold too seldom; 0 for none")
    parser.add_argument("--rows", default="2000,50000", help="sizes of the tables of shapes")
    parser.add_argument("--epsilons", default="0.3,1,4")
    parser.add_argument("--cases", default=",".join(every), help="tables, with commas between")
    asked = parser.parse_args()
    wanted = [
        (name, rows, epsilon)
        for epsilon in map(float, asked.epsilons.split(","))
        for rows in map(int, asked.rows.split(","))
        for name in asked.cases.split(",")
        if name not in TABLES or (rows == int(asked.rows.split(",")[0]) and epsilon == 1)
    ]
    known = record.kept("typical") or {}
    cases = known.get("cases", {}) if known.get("commit") == record.commit() and known.get("runs") == RUNS else {}
    for name, rows, epsilon in wanted:
        fits = asked.table_fits if name in TABLES else asked.fits
        key = name if name in TABLES else f"{name}, {rows} rows, epsilon {epsilon:g}"
        if cases.get(key, {}).get("asked", 0) >= fits:
            continue
        start = time.process_time()
        if name in TABLES:
            real = example(name)
            rows, scores = real[1].num_rows, scored(key, ((fit, real) for fit in range(fits)), epsilon)
        else:
            scores = shape_case(key, name, rows, epsilon, fits, asked.more_fits)
        seconds = time.process_time() - start
        about = {"table": name, "rows": rows, "epsilon": epsilon, "asked": fits, "seconds": seconds}
        cases[key] = about | {"statistics": scores}
        held, of = (sum(one[what] for one in scores.values()) for what in ("held", "fits"))
        print(f"{key}: {held} of {of} bands hold, {seconds:.0f} CPU s", flush=True)
        record.save("typical", runs=RUNS, level=LEVEL, cases=cases)


if __name__ == "__main__":
    main()

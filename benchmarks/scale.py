"""Scale: beside what an engine needs for the same work by hand. Wall seconds by turns, medians; ratios in one run.

Three questions, each with a bar:

- **push-down**: the GROUP BY that we write, beside one that a person writes over the raw columns, on the same table of
  DuckDB and for cells of the same size;
- **files**: a fit from a Parquet file, beside DuckDB's GROUP BY of the same key over that file;
- **writing**: rows of a release into a Parquet file, beside pyarrow writing random rows of the same types.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privmeasure as pm
from privmeasure.counts import Axis, Partition
from privmeasure.tables.writing import write_table
from record import begin, save, table

ROWS = 10**7
RUNS = 5
THREADS = 2
BARS = {"push-down": 1.5, "files": 2.0, "writing": 2.0, "whole fit": None}
DEPTH = 18
"""Of the joint cells: six cuts of each column; three tell the five categories apart."""

SCHEMA = pm.Schema(
    {
        "east": pm.Number(0, 1),
        "north": pm.Number(0, 1),
        "kind": pm.Category(["a", "b", "c", "d", "e"]),
    }
)
WIDE = pm.Schema({**SCHEMA.columns, "age": pm.Integer(0, 127), "paid": pm.Number(0, 1000, nullable=True)})


def rows(count: int) -> pa.Table:
    rng = np.random.default_rng(0)
    points = np.clip(rng.normal(0.5, 0.15, (count, 2)), -0.1, 1.1)
    kinds = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 5, count), pa.int8()), pa.array(list("abcde")))
    paid = pa.array(rng.gamma(2, 50, count), mask=rng.random(count) < 0.1)
    columns = {"east": points[:, 0], "north": points[:, 1], "kind": kinds.cast(pa.string())}
    return pa.table(columns | {"age": rng.integers(0, 100, count).astype(np.int32), "paid": paid})


def by_turns(*works: Callable[[], object], runs: int = RUNS) -> list[float]:
    """Return the median wall seconds of each work; all are warmed first."""
    seconds: list[list[float]] = [[] for _ in works]
    for turn in range(runs + 1):
        for found, work in zip(seconds, works, strict=True):
            begun = time.perf_counter()
            work()
            if turn:
                found.append(time.perf_counter() - begun)
    return [statistics.median(found) for found in seconds]


def row(what: str, case: str, ours: float, theirs: float, beside: str) -> dict[str, object]:
    return {
        "what": what,
        "case": case,
        "seconds": ours,
        "beside": beside,
        "its seconds": theirs,
        "ratio": ours / theirs,
        "bar": BARS[what],
    }


def part(column: str, low: float, high: float, cells: int) -> str:
    """Return what a person writes for equal parts of a column."""
    scaled = f"floor(({column} - {low}) * {cells / (high - low)})"
    return f"CAST(greatest(least({scaled}, {cells - 1}), 0) AS INTEGER)"


def push_down(base: object, count: int) -> list[dict[str, object]]:
    joint = Partition.of(SCHEMA.domain, DEPTH)
    found = []
    source = pm.Query(base, "SELECT east, north, kind FROM visits").source(SCHEMA)
    total = source.count([Partition(())])[0].take().sum()
    assert total == count
    by_hand = (
        f"SELECT {part('east', 0, 1, 64)} AS a, {part('north', 0, 1, 64)} AS b, kind, count(*) FROM visits GROUP BY ALL"
    )
    ours, theirs = by_turns(lambda: source.count([joint]), lambda: base.execute(by_hand).fetchnumpy())
    source.close()
    found.append(row("push-down", f"{count:,} rows, 3 columns together", ours, theirs, "GROUP BY by hand"))

    wide, level = pm.Query(base, table="visits").source(WIDE), 7
    axes = [Axis(f, level, c) for f, c in zip(WIDE.domain.factors, WIDE.domain.columns, strict=True)]
    wide.count([Partition(())])
    names = ["a", "b", "kind", "age", "paid"]
    inner = (
        f"SELECT {part('east', 0, 1, 128)} AS a, {part('north', 0, 1, 128)} AS b, kind, "
        f"CAST(greatest(least(age, 127), 0) AS INTEGER) AS age, {part('paid', 0, 1000, 64)} AS paid FROM visits"
    )
    sets = ", ".join(f"({name})" for name in names)
    single = f"SELECT {', '.join(names)}, count(*) FROM ({inner}) GROUP BY GROUPING SETS ({sets})"
    ours, theirs = by_turns(
        lambda: wide.count([Partition((axis,)) for axis in axes]), lambda: base.execute(single).fetchnumpy()
    )
    found.append(row("push-down", f"{count:,} rows, 5 columns one by one", ours, theirs, "GROUPING SETS by hand"))
    wide.close()

    def fit() -> None:
        synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove", depth=DEPTH, threads=THREADS)
        synth.fit(base.sql("SELECT east, north, kind FROM visits"))

    ours, theirs = by_turns(fit, lambda: base.execute(by_hand).fetchnumpy(), runs=3)
    found.append(
        row(
            "whole fit",
            f"{count:,} rows in DuckDB: three statements, noise, estimates",
            ours,
            theirs,
            "GROUP BY by hand",
        )
    )
    return found


def files(base: object, path: Path, count: int) -> dict[str, object]:
    key = (
        f"SELECT {part('east', 0, 1, 64)} AS a, {part('north', 0, 1, 64)} AS b, kind, count(*) FROM "
        f"read_parquet('{path}') GROUP BY ALL"
    )
    schema = pm.Schema({**SCHEMA.columns, "age": pm.Drop(), "paid": pm.Drop()})

    def fit() -> None:
        pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", depth=DEPTH, rows=count, threads=THREADS).fit(path)

    ours, theirs = by_turns(fit, lambda: base.execute(key).fetchnumpy())
    return row("files", f"{count:,} rows of a Parquet file, a whole fit", ours, theirs, "DuckDB's GROUP BY of the file")


def writing(folder: Path, data: pa.Table) -> dict[str, object]:
    count, small = data.num_rows, data.slice(0, 10**5)
    synth = pm.Synthesizer(WIDE, epsilon=1, neighbours="add-remove", mechanism="pmm", depth=DEPTH, threads=THREADS)
    release = synth.fit(small).release_

    def ours() -> None:
        write_table(folder / "ours.parquet", release.batches(count, threads=THREADS), overwrite=True)

    def theirs() -> None:
        rng = np.random.default_rng(1)
        with pq.ParquetWriter(folder / "theirs.parquet", data.schema, compression="zstd") as writer:
            for start in range(0, count, 1 << 17):
                n = min(1 << 17, count - start)
                texts = pa.array(list("abcde")).take(pa.array(rng.integers(0, 5, n)))
                cells = [rng.random(n), rng.random(n), texts, rng.integers(0, 128, n, np.int32)]
                paid = pa.array(rng.random(n) * 1000, mask=rng.random(n) < 0.1)
                writer.write_table(
                    pa.table(dict(zip(data.column_names, [*cells, paid], strict=True)), schema=data.schema)
                )

    mine, other = by_turns(ours, theirs, runs=3)
    return row("writing", f"{count:,} rows x 5 into Parquet", mine, other, "pyarrow, random rows of the same types")


def main() -> None:
    begin()
    import duckdb

    with tempfile.TemporaryDirectory() as name:
        folder, data = Path(name), rows(ROWS)
        pq.write_table(data, folder / "visits.parquet")
        base = duckdb.connect(str(folder / "base.db"))
        base.execute(f"SET threads = {THREADS}")
        base.execute(f"CREATE TABLE visits AS SELECT * FROM read_parquet('{folder / 'visits.parquet'}')")
        found = [*push_down(base, ROWS), files(base, folder / "visits.parquet", ROWS), writing(folder, data)]
        base.close()
    print(table(found))
    tools = {name: metadata.version(name) for name in ("duckdb", "pyarrow")}
    save("scale", rows=found, threads=THREADS, tools=tools)
    late = [line for line in found if line["bar"] is not None and line["ratio"] > line["bar"]]
    for line in late:
        print(f"ABOVE THE BAR: {line['what']}, {line['case']}: {line['ratio']:.2f} > {line['bar']}")


if __name__ == "__main__":
    main()

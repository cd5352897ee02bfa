"""Scale on a cluster: Spark on this machine beside the file path, and what 10^11 rows would take, on paper.

Seconds are fitted to two sizes, so that what a session costs once (its start, tasks, Python workers) is told apart from
what a row costs: seconds of processors, which other work on the machine changes little. The paper part is nothing but
these costs, multiplied.
"""

import os
import statistics
import sys
import tempfile
import time
import tracemalloc
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privmeasure as pm
from privmeasure.counts import Axis, Partition
from privmeasure.sources.disk import pieces_of
from privmeasure.sources.files import open_table
from privmeasure.sources.spark import PIECES_PER_TASK, TASKS_PER_CORE, _counts
from record import begin, save, table
from scale import DEPTH, SCHEMA, rows

SMALL, LARGE = 10**5, int(os.environ.get("ROWS", 10**7))
RUNS = 2
MASTER, THREADS = "local[2]", 2
BAR = 3.0
PAPER = {"rows": 10**11, "executors": 100, "cores": 4, "cells": 1 << 21, "group": 1 << 20}
"""A cluster that people have, the cells of a tree over such a table, and the rows of a group of a Parquet file."""
GROUP_ROWS = 1 << 20


def session() -> object:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(MASTER).config("spark.driver.memory", "4g")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
    settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def shuffled(spark: object) -> int:
    """Return how many bytes were written for shuffles so far."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.length()))


def processor_seconds() -> float:
    """Return what this process and all below it, the JVM and its Python workers, have taken of processors so far."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        stats[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))  # parent, own and reaped ticks
    mine, found = {os.getpid()}, 0
    while mine:
        found += sum(stats[pid][1] for pid in mine if pid in stats)
        mine = {pid for pid, (parent, _) in stats.items() if parent in mine}
    return found / os.sysconf("SC_CLK_TCK")


def seconds(work: object) -> float:
    """Return the seconds that a work takes of processors: others on the machine change it little."""
    begun = processor_seconds()
    work()
    return processor_seconds() - begun


def counts_sent(place: Path, schema: pm.Schema) -> int:
    """Return how many counts the tasks send for the joint cells: the cells that each of them meets, added."""
    axis = Axis(schema.domain, DEPTH)
    pieces = pieces_of(open_table(place))
    tasks = min(len(pieces), TASKS_PER_CORE * THREADS)
    found = 0
    for i in range(tasks):
        mine = pieces[i * len(pieces) // tasks : (i + 1) * len(pieces) // tasks]
        batches = (batch for piece in mine for batch in piece.batches(list(SCHEMA.columns)))
        met = [np.unique(axis.index(schema.encode(batch))) for batch in batches]
        found += len(np.unique(np.concatenate(met)))
    return found


def driver_bytes(cells: int) -> float:
    """Return what the driver needs for the answer to a question, at its peak."""
    codes = pa.array(np.random.default_rng(0).permutation(cells))
    zeros, ones = pa.array(np.zeros(cells, np.int32)), pa.array(np.ones(cells, np.int64))
    answer = pa.table({"partition": zeros, "cell": codes, "rows": ones})
    box = Partition.of(pm.Box([(0, 1)]), cells.bit_length() - 1)
    tracemalloc.start()
    _counts(answer, [box])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return answer.nbytes + peak


def per_row(times: dict[int, list[float]]) -> tuple[float, float]:
    """Return what a run costs at all, and what a row costs: medians of two sizes."""
    small, large = (statistics.median(times[count]) for count in (SMALL, LARGE))
    cost = max(0.0, large - small) / (LARGE - SMALL)
    return max(0.0, small - cost * SMALL), cost


def main() -> None:
    begin()
    warnings.simplefilter("ignore")
    schema = pm.Schema({**SCHEMA.columns, "age": pm.Drop(), "paid": pm.Drop()})

    def fit(data: object, **options: object) -> pm.Synthesizer:
        made = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", depth=DEPTH, threads=THREADS)
        return made.fit(data, **options)

    with tempfile.TemporaryDirectory() as name:
        folder, data = Path(name), rows(LARGE)
        places = {count: folder / f"{count}.parquet" for count in (SMALL, LARGE)}
        for count, place in places.items():
            pq.write_table(data.slice(0, count), place, row_group_size=GROUP_ROWS)
        del data
        begun = time.perf_counter()
        spark = session()
        fit(places[SMALL], spark=spark)
        start = time.perf_counter() - begun
        works = {
            "one machine": lambda place: fit(place),
            "Spark, files": lambda place: fit(place, spark=spark),
            "Spark, a frame": lambda place: fit(spark.read.parquet(str(place))),
        }
        times: dict[str, dict[int, list[float]]] = {name: {SMALL: [], LARGE: []} for name in works}
        sent = dict.fromkeys(works, 0)
        for turn in range(RUNS + 1):  # by turns; the first warms all of them
            for name, work in works.items():
                for count, place in places.items():
                    before = shuffled(spark)
                    taken = seconds(lambda work=work, place=place: work(place))
                    if turn:
                        times[name][count].append(taken)
                        sent[name] = shuffled(spark) - before
        release = fit(places[LARGE]).release_
        out = {SMALL: [], LARGE: []}
        for turn in range(RUNS + 1):
            for count in out:
                frame = pm.sample_on_spark(release, count, session=spark)
                taken = seconds(lambda frame=frame, turn=turn: frame.write.parquet(f"{folder}/{id(frame)}-{turn}"))
                out[count] += [taken] if turn else []
        spark.stop()
        sent_counts = counts_sent(places[LARGE], schema)
    found = []
    base = per_row(times["one machine"])
    for name, measured in [*times.items(), ("Spark, rows written", out)]:
        once, cost = per_row(measured)
        found.append(
            {
                "what": name,
                "seconds": statistics.median(measured[LARGE]),
                "once": once,
                "ns per row": 1e9 * cost,
                "ratio": cost / base[1] if name in times else None,
                "bytes shuffled": sent.get(name),
            }
        )
    print(table([{k: "" if v is None else v for k, v in row.items()} for row in found]))
    files = next(row for row in found if row["what"] == "Spark, files")
    cores = PAPER["executors"] * PAPER["cores"]
    groups = PAPER["rows"] // PAPER["group"]
    tasks = max(TASKS_PER_CORE * cores, groups // PIECES_PER_TASK)
    bytes_each = files["bytes shuffled"] / sent_counts
    paper = PAPER | {
        "tasks": tasks,
        "bytes per count": bytes_each,
        "bytes shuffled": bytes_each * tasks * PAPER["cells"],  # as if every task met every cell
        "driver bytes": driver_bytes(PAPER["cells"]),
        "seconds": files["ns per row"] * 1e-9 * PAPER["rows"] / cores,
    }
    tools = {name: metadata.version(name) for name in ("pyspark", "pyarrow")}
    save("scale-spark", rows=found, size=LARGE, start=start, master=MASTER, bar=BAR, paper=paper, tools=tools)
    if files["ratio"] > BAR:
        print(f"ABOVE THE BAR: files on Spark take {files['ratio']:.2f} times as long per row > {BAR}")


if __name__ == "__main__":
    main()

"""Scale on a cluster: Spark on this machine beside the file path, and what 10^11 rows would take, on paper.

Seconds are fitted to two sizes, so that what a session costs once (its start, tasks, Python workers) is told apart from
what a row costs. On the page, the paper part is nothing but these costs, multiplied.
"""

import os
import statistics
import sys
import tempfile
import time
import warnings
from importlib import metadata
from pathlib import Path

import pyarrow.parquet as pq

import privmeasure as pm
from record import save, table
from scale import DEPTH, SCHEMA, rows

SMALL, LARGE = 10**5, int(os.environ.get("ROWS", 10**7))
RUNS = 3
MASTER, THREADS = "local[2]", 2
BAR = 3.0
PAPER = {"rows": 10**11, "executors": 100, "cores": 4, "cells": 1 << 21, "tasks": 1600}
"""A cluster that people have, and the cells of a tree over such a table."""
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


def seconds(work: object) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def per_row(times: dict[int, list[float]]) -> tuple[float, float]:
    """Return what a run costs at all, and what a row costs: medians of two sizes."""
    small, large = (statistics.median(times[count]) for count in (SMALL, LARGE))
    cost = max(0.0, large - small) / (LARGE - SMALL)
    return max(0.0, small - cost * SMALL), cost


def main() -> None:
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
    tasks = -(-LARGE // GROUP_ROWS)
    cells = 3 * (1 << DEPTH) // 4
    paper = PAPER | {
        "bytes per count": files["bytes shuffled"] / (min(tasks, 6) * cells),
        "files, seconds": files["ns per row"] * 1e-9 * THREADS * PAPER["rows"] / (PAPER["executors"] * PAPER["cores"]),
    }
    tools = {name: metadata.version(name) for name in ("pyspark", "pyarrow")}
    save("scale-spark", rows=found, size=LARGE, start=start, master=MASTER, bar=BAR, paper=paper, tools=tools)
    if files["ratio"] > BAR:
        print(f"ABOVE THE BAR: files on Spark take {files['ratio']:.2f} times as long per row > {BAR}")


if __name__ == "__main__":
    main()

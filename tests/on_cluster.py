"""What `unit/sources/test_cluster.py` runs in a process of its own, which has one session of Spark: the driver.

Prints what it found as JSON, and asserts nothing itself.
"""

import base64
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privmeasure as pm
from privmeasure.counts import Partition
from privmeasure.noise.entropy import Key
from privmeasure.releases import spark as drawing
from privmeasure.sources.spark import spark_source

SCHEMA = pm.Schema({"age": pm.Integer(0, 120), "ward": pm.Category(["A", "B", "it's", "C"], unknown="A")})
TABLE = pa.table({"age": [31, 52, None, 200] * 50, "ward": ["A", "it's", None, "nowhere"] * 50})
JOINT = Partition.of(SCHEMA.domain, 9)
SLOW_PART, SLOW_SECONDS = 1, 300
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "700m",
    "spark.sql.shuffle.partitions": "2",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.broadcast.compress": "false",
    "spark.shuffle.compress": "false",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.efficiency.enabled": "false",
}


def slow(marks: str, step: str):
    """Return a step of a plan that is very slow at one part, the first time that it is tried."""

    def work(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        for i, batch in enumerate(batches):
            yield batch  # some rows are handed over already
            if i == 0 and context.partitionId() == SLOW_PART:
                Path(marks, f"{step} {context.attemptNumber()}").touch()
                time.sleep(0 if context.attemptNumber() else SLOW_SECONDS)

    return work


def parent(batches):
    """Give the process that started this worker's daemon: the executor."""
    with open(f"/proc/{os.getppid()}/stat") as daemon:
        executor = int(daemon.read().rpartition(")")[2].split()[1])
    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([executor])], ["executor"])


def same_release(spark, marks: str) -> bool:
    """Fit a frame with a slow task; compare with memory."""
    frame = spark.createDataFrame(TABLE).repartition(4)
    slowed = frame.mapInArrow(slow(marks, "fit"), frame.schema)
    one, two = (pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove") for _ in range(2))
    found = one.fit(slowed, insecure_seed=3).release_.measure.mass
    return bool((found == two.fit(TABLE, insecure_seed=3).release_.measure.mass).all())


def same_rows(spark, marks: str, folder: Path) -> bool:
    """Write rows with a slow task; compare with those that were drawn without."""
    drawing.PART_ROWS = 100
    release = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove").fit(TABLE, insecure_seed=3).release_
    frame = drawing.sample_on_spark(release, 600, seed=1, session=spark)
    drawing.write_folder(frame.mapInArrow(slow(marks, "write"), frame.schema), folder / "rows.parquet")
    written, drawn = pq.read_table(folder / "rows.parquet").to_pylist(), frame.toArrow().to_pylist()
    return sorted(map(str, written)) == sorted(map(str, drawn)) and len(written) == 600


def same_counts_after_a_loss(spark) -> bool:
    """Kill an executor that holds rows of the frame, between two questions."""
    source = spark_source(spark.createDataFrame(TABLE).repartition(4), SCHEMA)
    source.count([Partition(())])
    executors = spark.range(0, 8, 1, 8).mapInArrow(parent, "executor long").toArrow().column(0).to_pylist()
    os.kill(executors[0], signal.SIGKILL)
    found = source.count([JOINT])[0].counts
    source.close()
    return bool((found == np.bincount(JOINT.axes[0].index(SCHEMA.encode(TABLE)), minlength=JOINT.size)).all())


def keyless(spark, folder: Path) -> list[bool]:
    """Fit with a key of the system's, and look for it in all that the cluster has written.

    Says whether there was one, whether the fit is in the log of events, and whether the key is nowhere.
    """
    secrets, made = [], Key.__init__

    def key(self, secret, **options):
        secrets.append(bytes(secret))
        made(self, secret, **options)

    Key.__init__ = key
    pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove").fit(spark.createDataFrame(TABLE).repartition(4))
    spark.stop()  # the log of events is whole then
    texts = [form for s in secrets for form in (s, s.hex().encode(), base64.b64encode(s), repr(s).encode())]
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    seen = any(b"privmeasure: counts of cells" in content for content in files)
    return [len(secrets) == 1, seen, not any(text in content for text in texts for content in files)]


def main(master: str, folder: Path) -> None:
    """Try all of it."""
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    marks, events = folder / "marks", folder / "events"
    marks.mkdir()
    events.mkdir()
    builder = SparkSession.builder.master(master).config("spark.eventLog.dir", f"file://{events}")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    found = {
        "release": same_release(spark, str(marks)),
        "rows": same_rows(spark, str(marks), folder),
        "loss": same_counts_after_a_loss(spark),
        "tries": sorted(path.name for path in marks.iterdir()),
        "keyless": keyless(spark, folder),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

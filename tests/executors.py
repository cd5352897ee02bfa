"""A stand-in for Spark, for tests of what its executors do: parts of Arrow batches, jobs, one GROUP BY, and no Java.

It does what `sources/spark.py` and `releases/spark.py` ask of a session and of a frame, and nothing else. What it takes
from Spark is what matters for the counts: the work that executors are sent is pickled and read back, as the closures of
PySpark are; batches cross a boundary as Arrow IPC, in pieces of few rows; each part is worked on by itself, in a random
order and, where a task is said to fail, twice; and a job may be asked for again, which does all of its work again. That
real Spark agrees is tested by `make test-spark`.
"""

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import CellType, FunctionType
from typing import Any

import numpy as np
import pyarrow as pa

from privmeasure.domains import Domain
from privmeasure.sources.spark import SparkSource, executor_steps
from privmeasure.tables import Schema

Work = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def sent(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return batches as they arrive in another process."""
    found = []
    for batch in batches:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        found += pa.ipc.open_stream(sink.getvalue())
    return found


def shipped(work: Any) -> Work:
    """Return a function as it arrives in another process: what it holds is pickled, and read back."""
    held = work.__closure__ or ()
    cells = tuple(CellType(pickle.loads(pickle.dumps(cell.cell_contents))) for cell in held)
    return FunctionType(work.__code__, work.__globals__, work.__name__, work.__defaults__, cells)


@dataclass
class Executors:
    """A session: what its jobs did is noted."""

    parts: int = 3
    batch: int = 7
    """Rows of a batch at most."""
    repeats: bool = False
    """Whether every task fails once, after all of its work, and is done again."""
    cores: int = 2
    notes: list[str] = field(default_factory=list)

    def frame(self, table: pa.Table, seed: int = 0) -> "Frame":
        """Deal the rows of a table to parts, one of which is empty."""
        dealt = np.random.default_rng(seed).integers(0, max(self.parts - 1, 1), table.num_rows)
        parts = [table.filter(pa.array(dealt == part)) for part in range(self.parts)]
        return Frame(self, [part.to_batches(max_chunksize=self.batch) for part in parts], table.schema)

    def source(self, table: pa.Table, space: Schema | Domain, *, persists: bool = False) -> SparkSource:
        """Return a table behind the counting interface, as `spark_source` makes it of a frame."""
        names, types = tuple(table.schema.names), list(table.schema.types)
        places, reads, encodes = executor_steps(space, names, types)
        chosen = table.select(places).rename_columns([f"c{place}" for place in places])
        return SparkSource(self, self.frame(chosen), reads, encodes, names=names, types=types, persists=persists)

    # what our code calls, by the names that Spark gives them

    @property
    def sparkContext(self) -> "Executors":
        return self

    @property
    def defaultParallelism(self) -> int:
        return self.cores

    _jsc = "alive"

    def setJobGroup(self, group: str, words: str, *, interruptOnCancel: bool) -> None:
        assert interruptOnCancel
        self.notes.append(words)

    def cancelJobGroup(self, group: str) -> None:
        raise AssertionError("no test interrupts a job here")

    def parallelize(self, rows: Sequence[tuple[Any, ...]], parts: int) -> "Dealt":
        return Dealt(self, list(rows), parts)

    def range(self, start: int, stop: int, step: int, parts: int) -> "Frame":
        return self.frame(pa.table({"id": pa.array(range(start, stop, step), pa.int64())}))


@dataclass
class Dealt:
    """Rows of Python that become a frame."""

    session: Executors
    rows: list[tuple[Any, ...]]
    parts: int

    def toDF(self, columns: str) -> "Frame":
        kinds = {"int": pa.int32(), "binary": pa.binary()}
        schema = pa.schema([(name, kinds[kind]) for name, kind in (c.split() for c in columns.split(", "))])
        parts: list[list[pa.RecordBatch]] = [[] for _ in range(self.parts)]
        for i, row in enumerate(self.rows):
            arrays = [pa.array([value], kind) for value, kind in zip(row, schema.types, strict=True)]
            parts[i * self.parts // len(self.rows)].append(pa.record_batch(arrays, schema=schema))
        return Frame(self.session, parts, schema)


@dataclass
class Frame:
    """Parts of batches, and the work that is still to be done on them."""

    session: Executors
    parts: list[list[pa.RecordBatch]]
    schema: pa.Schema
    work: tuple[Work, ...] = ()
    kept: bool = False

    def coalesce(self, parts: int) -> "Frame":
        assert parts > 0
        return self

    def mapInArrow(self, work: Work, schema: object) -> "Frame":
        return replace(self, work=(*self.work, work))

    def groupBy(self, *columns: str) -> "Groups":
        return Groups(self, columns)

    def persist(self) -> "Frame":
        self.session.notes.append("persisted")
        return replace(self, kept=True)

    def unpersist(self) -> None:
        assert self.kept
        self.session.notes.append("let go of")

    def toArrow(self) -> pa.Table:
        found: list[pa.RecordBatch] = []
        order = np.random.default_rng(len(self.session.notes)).permutation(len(self.parts))
        for part in order:
            for attempt in range(1 + self.session.repeats):
                made: Iterable[pa.RecordBatch] = sent(self.parts[part])
                for work in self.work:
                    made = sent(shipped(work)(iter(made)))
                if attempt == self.session.repeats:  # of tasks that are done twice, one result is taken
                    found += made
        return pa.Table.from_batches(found, found[0].schema if found else self.schema)


@dataclass
class Groups:
    """Rows by some columns."""

    frame: Frame
    columns: tuple[str, ...]

    def sum(self, name: str) -> "Groups":
        return replace(self, columns=(*self.columns, name))

    def count(self) -> "Groups":
        return self

    def toArrow(self) -> pa.Table:
        table = self.frame.toArrow()
        if not self.columns:
            return pa.table({"count": [table.num_rows]})
        *by, name = self.columns
        if not table.num_rows:
            return pa.table({column: pa.array([], pa.int64()) for column in self.columns})
        return table.group_by(by).aggregate([(name, "sum")])

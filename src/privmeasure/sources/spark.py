"""Rows on a Spark cluster, counted there: frames, and files that the executors read themselves. Private.

**Our own code counts.** Executors run `Schema.encode` and `Tally` on Arrow batches (`mapInArrow`), and one GROUP BY
adds up what they found: so each row gets the cell that it has in memory, whatever its kind. Expressions of Spark SQL
would have to be made to agree with NumPy in NaN, zeros, zones, casts and overflow, kind by kind, session setting by
session setting, and texts that must be parsed could not be said in them at all.

**Two ways in.** A frame's rows cross from the JVM to Python, which takes most of the time. Files need not: the driver
reads their headers and deals out the files (of Parquet, groups of rows), and executors open them with the readers of
`sources/files`. What a row becomes is what it becomes on one machine.

**One state.** A frame is computed anew by every action, so the columns that are needed are persisted by the first
question and let go of at the end. If a part of them is lost, Spark computes that part again: plans that are not
deterministic by Spark's own account are refused. Files are compared, at every pass, with those that were opened.

**Retries.** Executors count and draw no noise: the key stays on the driver. A task that is repeated gives the same
counts, and of two that do the same work Spark takes one.

**No words of the engine.** Its errors quote values. Of an error its class is told, and nothing else.
"""

import logging
import os
import pickle
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from privmeasure.counts import DENSE_CELLS, CellCounts, Partition
from privmeasure.domains import Domain, Points
from privmeasure.errors import DataError, SchemaError
from privmeasure.extras import how_to_install
from privmeasure.origin import new_id
from privmeasure.outputs import ADDRESS
from privmeasure.sources.arrays import check_points
from privmeasure.sources.disk import TableFile, portions_of
from privmeasure.sources.engines import engine_words, spending_told
from privmeasure.sources.tally import Tally, merge_tallies
from privmeasure.tables import Schema
from privmeasure.threads import BLOCK, Progress, interruptible
from privmeasure.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

ANSWER = "partition int, cell long, rows long"
"""What executors give for a question: how many rows of theirs lie in a cell of a partition."""
PIECE_COLUMNS = "piece binary"
HELD_ROWS = 1 << 24
"""Rows after which a task hands over the counts of huge partitions: its memory is bounded, and the GROUP BY adds."""
BLOCK_SIZE = 1 << 26
"""Bytes of a frame's rows that a task holds before it encodes them: texts may be long."""
MOST_TASKS = 4096
"""Tasks of a question at most: each sends a count for every cell that it met, so fewer tasks send less."""
TASKS_PER_CORE, PIECES_PER_TASK = 3, 64
"""How many tasks read files: a few for each core that is there, and none has too many pieces."""
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""What PySpark calls the loggers that write the text of an error, with the values in it, to stderr."""
PLAN_ADVICE = (
    "Its own logs have them. A plan must not fail because of a value: cast with try_cast, so that what cannot be cast "
    "is NULL. Files must stay as they are, where all executors see them, and memory must suffice."
)
NO_PERSONS = (
    "The schema has a person, and which rows of each are kept is not decided on a cluster. Fit the files without "
    "Spark, or keep to rows_per_person in the frame itself and give a schema without person: it is then your promise."
)

Found = TypeVar("Found")
Reads = Callable[["Iterator[pa.RecordBatch]"], "Iterator[pa.Table | pa.RecordBatch]"]
"""On an executor: from what Spark hands over to rows, in pieces of about a block."""


Encodes = Callable[["pa.Table | pa.RecordBatch"], Points]
"""On an executor: from rows to points, each row on its own."""


class SparkSource:
    """A `Source` on a cluster: one GROUP BY for each list of partitions.

    The first question reads every row, so that a plan or a file with a fault shows it before any noise is drawn.

    Guarantee:  privacy  what executors are sent is public: schema and partitions, no key. Our errors depend on public
                         values alone. What Spark itself keeps (plans, logs, metrics, blocks on the disks of executors)
                         is the affair of whoever runs the cluster
                cost     one job per question; here memory for the counts of the occupied cells, whatever the rows
    """

    def __init__(
        self,
        session: Any,
        frame: Any,
        reads: Reads,
        encodes: Encodes,
        *,
        names: Sequence[str],
        types: "Sequence[pa.DataType | None] | None",
        check: Callable[[], None] | None = None,
        persists: bool = False,
    ) -> None:
        """Take a frame of rows or of pieces of files; `check` is called before each question."""
        self.session, self.names, self.types = session, tuple(names), types
        self._frame, self._reads, self._encodes, self._check = frame, reads, encodes, check
        self._persists, self._persisted, self._begun, self._asked_once = persists, False, False, False

    def count(self, partitions: Sequence[Partition], progress: Progress | None = None) -> list[CellCounts]:
        """Return the counts of each partition, in one job."""
        with spending_told(first=not self._asked_once):
            if self._check is not None:
                self._check()
            if not self._begun:
                check_executors(self.session)
                self._begun = True
            with spark_words():
                if self._persists and not self._persisted:
                    self._frame, self._persisted = self._frame.persist(), True
                found = self._found(tuple(partitions))
        self._asked_once = True
        if progress is not None:
            progress("count", 1.0)
        return found

    def _found(self, partitions: tuple[Partition, ...]) -> list[CellCounts]:
        if self._persisted and not any(partition.axes for partition in partitions):
            total = self._frame.groupBy().count()  # every column is computed, to be kept, and none goes to Python
            rows = run_job(self.session, total.toArrow).column(0).to_numpy()
            return [CellCounts(1, rows.astype(np.int64)) for _ in partitions]
        work = _counting(self._reads, self._encodes, partitions)
        counted = self._frame.coalesce(MOST_TASKS).mapInArrow(work, ANSWER).groupBy("partition", "cell").sum("rows")
        return _counts(run_job(self.session, counted.toArrow), partitions)

    def close(self) -> None:
        """Let go of the persisted rows."""
        if self._persisted:
            self._persisted = False
            with suppress(Exception):  # a cluster that is gone has let go of them
                self._frame.unpersist()

    def __repr__(self) -> str:
        """Show nothing."""
        return "SparkSource(private)"


def _counting(reads: Reads, encodes: Encodes, partitions: tuple[Partition, ...]) -> Any:
    """Return what an executor does with its batches. It holds public values alone, and never the key of the noise."""

    def work(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        return count_rows(map(encodes, reads(batches)), partitions)

    return work


def count_rows(blocks: Iterator[Points], partitions: Sequence[Partition]) -> "Iterator[pa.RecordBatch]":
    """Yield how many rows of the blocks lie in each occupied cell of the partitions. PRIVATE: they go to a GROUP BY."""
    huge = any(partition.size > DENSE_CELLS for partition in partitions)
    tally, rows = Tally(partitions), 0
    for points in blocks:
        tally.add(points)  # private counts, which go to the driver, and die in the mechanism
        rows += len(points)
        if huge and rows >= HELD_ROWS:
            yield from _answers(tally)
            tally, rows = Tally(partitions), 0
    yield from _answers(tally)


def _answers(tally: Tally) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    for i, found in enumerate(merge_tallies([tally])):
        cells = np.flatnonzero(found.counts) if found.cells is None else found.cells.view(np.int64)
        counts = found.take()
        counts = counts[cells] if found.cells is None else counts
        for start in range(0, len(cells), BLOCK):
            here = slice(start, start + BLOCK)
            columns = [np.full(len(cells[here]), i, np.int32), cells[here], counts[here]]
            yield pa.RecordBatch.from_arrays(list(map(pa.array, columns)), ["partition", "cell", "rows"])


def _counts(answer: "pa.Table", partitions: Sequence[Partition]) -> list[CellCounts]:
    """Return the answer of the GROUP BY as counts of each partition."""
    which, cells, rows = (column.to_numpy() for column in answer.columns)
    order = np.lexsort((cells, which))
    which, cells, rows = which[order], cells[order], rows[order]
    edges = np.searchsorted(which, np.arange(len(partitions) + 1))
    found = []
    for partition, first, last in zip(partitions, edges[:-1], edges[1:], strict=True):
        if partition.size <= DENSE_CELLS:
            counts = np.zeros(partition.size, np.int64)
            counts[cells[first:last]] = rows[first:last]
            found.append(CellCounts(partition.size, counts))
        else:
            here = cells[first:last].astype(np.uint64)
            found.append(CellCounts(partition.size, rows[first:last].astype(np.int64), here))
    return found


@contextmanager
def spark_words() -> Iterator[None]:
    """Replace errors of Spark by one of ours, and keep PySpark from writing them to stderr."""
    loggers = _quiet_loggers()
    try:
        with warnings.catch_warnings(), engine_words("Spark", PLAN_ADVICE):
            warnings.simplefilter("ignore")  # of versions of pandas
            yield
    finally:
        for logger in loggers:
            logger.disabled = False


def run_job(session: Any, work: Callable[[], Found]) -> Found:
    """Return what a job finds; Ctrl-C cancels it at once. Plans are made before, where the session's settings are."""
    context, group = session.sparkContext, f"privmeasure {new_id()}"

    def run() -> Found:
        context.setJobGroup(group, "privmeasure: counts of cells", interruptOnCancel=True)
        return work()

    return interruptible(run, lambda: context.cancelJobGroup(group))


def _quiet_loggers() -> list[Any]:
    """Disable PySpark's own loggers of errors, and return those that were not."""
    with suppress(ImportError, AttributeError):
        from pyspark.logger import PySparkLogger

        for name in LOGGERS:
            PySparkLogger.getLogger(name)
    loggers = [logging.getLogger(name) for name in LOGGERS if name in logging.Logger.manager.loggerDict]
    loggers = [logger for logger in loggers if not logger.disabled]
    for logger in loggers:
        logger.disabled = True
    return loggers


def check_executors(session: Any) -> None:
    """Refuse executors that do not have our code, by a job without any data: its words are public, and few."""
    count = max(1, int(session.sparkContext.defaultParallelism))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            each = session.range(0, count, 1, count).mapInArrow(_version, "version string")
            found = run_job(session, each.toArrow)
    except KeyboardInterrupt:
        raise
    except Exception as error:
        missing = "ModuleNotFoundError" in str(error) or "ImportError" in str(error)
        why = (
            "privmeasure, or a library that it needs, is not installed for the Python of the executors"
            if missing
            else (f"a small job without any data failed on the executors ({type(error).__name__})")
        )
        raise DataError(
            f"{why}. Install the same version of privmeasure there as here, and name that Python in PYSPARK_PYTHON."
        ) from None
    others = sorted(set(found.column(0).to_pylist()) - {__version__})
    if others:
        raise DataError(
            f"The executors have privmeasure {', '.join(others)}, and the driver has {__version__}. Install one "
            "version everywhere: a row must lie in one cell, wherever it is counted."
        )


def _version(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([__version__])], ["version"])


# --------------------------------------------------------------------------------------------------------------- frames


def spark_source(data: Any, space: Schema | Domain) -> SparkSource | None:
    """Return a Spark frame, bare or in narwhals, behind the counting interface; None if data are none.

    Names and types are compared with the space, and no row is looked at.
    """
    if "pyspark" not in sys.modules:  # nobody has made a frame
        return None
    import narwhals as nw
    from pyspark.sql import DataFrame

    frame = nw.to_native(data, pass_through=True)
    if not isinstance(frame, DataFrame):
        return None
    if not hasattr(frame, "_jdf"):
        raise DataError(
            "The frame is one of Spark Connect, which is not counted on its cluster yet. Use a session of the classic "
            "kind (SparkSession.builder.master(...)), or fit df.toArrow() if it fits into memory."
        )
    if frame.isStreaming:
        raise DataError("The frame is a stream, which has no end. Fit a table that it was written to.")
    names = _own_names(frame.columns)
    types = _arrow_types(frame, space)
    places, reads, encodes = executor_steps(space, names, types)
    with spark_words():
        cached = frame.storageLevel
        numbered = frame.toDF(*(f"c{i}" for i in range(len(names))))  # names with dots, or that differ in their case
        chosen = numbered.select(*(f"c{i}" for i in places)).where(_our_own())
    ours = not (cached.useMemory or cached.useDisk)  # what somebody else has persisted stays so
    return SparkSource(
        frame.sparkSession,
        chosen,
        reads,
        encodes,
        names=names,
        types=types,
        check=lambda: _check_deterministic(chosen),
        persists=ours,
    )


def executor_steps(
    space: Schema | Domain, names: Sequence[str], types: "Sequence[pa.DataType | None]"
) -> tuple[list[int], Reads, Encodes]:
    """Return the places of the columns that are needed, and what executors do with their batches; no Spark is needed.

    Names and types are compared with the space first, and a schema with a person is refused.
    """
    if isinstance(space, Schema):
        if space.person is not None:
            raise SchemaError(NO_PERSONS)
        space.check(names, types)
        wanted, encodes = _needed(space), cast(Encodes, space.encode)
    else:
        check_points(_empty(names, types), space.width)
        wanted, encodes = list(names), _Points(space.width)
    return [names.index(name) for name in wanted], _Blocks(tuple(wanted)), encodes


def _our_own() -> Any:
    """Return a condition that always holds, and is no other fit's.

    Spark knows persisted rows by their plan: of two fits of one frame at once, the end of one would let go of the
    rows of the other.
    """
    from pyspark.sql.functions import lit

    return lit(new_id()).isNotNull()


def _check_deterministic(frame: Any) -> None:
    """Refuse a plan that may give other rows each time, by Spark's own account of it."""
    with spark_words():  # to look at a plan may compute what is constant in it
        same = frame._jdf.queryExecution().optimizedPlan().deterministic()
    if not same:
        raise DataError(
            "The plan of the frame is not deterministic (rand(), uuid(), monotonically_increasing_id() or the like), "
            "so that each pass of the fit could see other rows. Write the frame to Parquet, and fit that."
        )


def _needed(schema: Schema) -> list[str]:
    """Return the columns that rows are encoded from, each once."""
    return list(dict.fromkeys(source for name, column in schema.data.items() for source in column.sources(name)))


def _own_names(names: Sequence[str]) -> list[str]:
    twice = [repr(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"The frame has several columns named {', '.join(twice[:5])}. Every column needs its own name.")
    return list(names)


def _arrow_types(frame: Any, space: Schema | Domain) -> "list[pa.DataType | None]":
    """Return the types in which the columns reach Python; one that has none is refused, if it is needed."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    options = {"timezone": zone} if "timezone" in signature(to_arrow_type).parameters else {}  # not before 4.1
    needed = set(_needed(space)) if isinstance(space, Schema) else set(frame.columns)
    types: list[Any] = []
    for field in frame.schema.fields:
        try:
            kind = to_arrow_type(field.dataType, **options)
            types.append(pa.timestamp("us", zone) if pa.types.is_timestamp(kind) and kind.tz else kind)
        except Exception:  # a type that PySpark does not hand to Python
            if field.name in needed:
                raise SchemaError(
                    f"column {field.name!r} is {field.dataType.simpleString()} in Spark, which cannot be handed to "
                    "Python. Cast it to a plain type."
                ) from None
            types.append(None)
    return types


def _empty(names: Sequence[str], types: Sequence[Any]) -> "pa.Table":
    import pyarrow as pa

    return pa.table({name: pa.array([], type) for name, type in zip(names, types, strict=True)})


class _Points:
    """Rows of numbers as points."""

    def __init__(self, width: int) -> None:
        self._width = width

    def __call__(self, rows: "pa.Table | pa.RecordBatch", /) -> Points:
        import pyarrow as pa

        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        return np.asarray(check_points(table, self._width), np.float64)


class _Blocks:
    """Small batches of Spark together, under the names of the schema: nothing is copied."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = list(names)

    def __call__(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.Table]":
        held: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            held.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= BLOCK or size >= BLOCK_SIZE:
                yield self._table(held)
                held, rows, size = [], 0, 0
        if held:
            yield self._table(held)

    def _table(self, held: "list[pa.RecordBatch]") -> "pa.Table":
        import pyarrow as pa

        return pa.Table.from_batches(held).rename_columns(self._names)


# ---------------------------------------------------------------------------------------------------------------- files


def seen_by_executors(place: str | Path, filesystem: Any = None) -> str | Path:
    """Return the place of files as executors, which work in other folders, must be told of it."""
    if filesystem is not None or (isinstance(place, str) and ADDRESS.match(place)):
        return place
    return Path(place).absolute()


def spark_files(session: Any, table: TableFile, schema: Schema) -> SparkSource:
    """Return files that were opened, and checked against the schema, behind the counting interface.

    Executors must see them under the same path.
    """
    if schema.person is not None:
        raise SchemaError(NO_PERSONS)
    _check_session(session)
    pieces = [(pickle.dumps(piece),) for piece in portions_of(table)]
    cores = int(session.sparkContext.defaultParallelism)
    tasks = min(len(pieces), max(TASKS_PER_CORE * cores, -(-len(pieces) // PIECES_PER_TASK)))
    frame = session.sparkContext.parallelize(pieces, tasks).toDF(PIECE_COLUMNS)
    reads = _Pieces(tuple(_needed(schema)))
    return SparkSource(
        session, frame, reads, schema.encode, names=table.names, types=table.types, check=table.check_unchanged
    )


def _check_session(session: Any) -> None:
    """Refuse what is no session of Spark, or one that was stopped."""
    try:
        lives = session.sparkContext._jsc is not None
    except Exception:  # another object, or a session of Spark Connect
        lives = False
    if not lives:
        raise DataError(
            "spark= must be a SparkSession of the classic kind (SparkSession.builder.master(...)) that was not "
            f"stopped, got {type(session).__name__}. Nothing was spent."
        )


class _Pieces:
    """Pieces of files as rows, read by the readers of `sources/files`."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns

    def __call__(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for piece in batch.column(0):
                table: TableFile = pickle.loads(piece.as_py())  # made by the driver, of files that it opened
                for rows in table.batches(self._columns):
                    for start in range(0, rows.num_rows, BLOCK):
                        yield rows.slice(start, BLOCK)


# -------------------------------------------------------------------------------------------------------------- session


@contextmanager
def own_session(master: str) -> Iterator[Any]:
    """Give a session for one command, and stop it; it writes no log, for what Spark logs quotes values."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise DataError(f"--engine spark needs Java 17 and PySpark 4: {how_to_install('spark')}.") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("privmeasure").config("spark.log.level", "OFF")
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} if _is_local(master) else {}
    for name, value in {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", **local}.items():
        builder = builder.config(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session = builder.getOrCreate()
    except Exception as error:  # no Java, or no such master
        raise DataError(
            f"There is no Spark at the master that was given ({type(error).__name__}). It needs Java 17 "
            "(on Debian: apt-get install openjdk-17-jre-headless), and a master such as local[2] or spark://host:7077."
        ) from None
    try:
        yield session
    finally:
        session.stop()


def _is_local(master: str) -> bool:
    return master.partition("[")[0] == "local"

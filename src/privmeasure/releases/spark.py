"""Rows of a release on a Spark cluster: a frame whose parts are drawn by the executors. Public values only.

What travels is the released model, without noisy counts, and no key: there is none any more. Each part of the frame is
drawn from its own share of the release (of one tree, from its own cells) and from a stream of random numbers that its
number says. So a task that is repeated, or done twice at once, gives the same rows, and so does a frame that is
computed again. How many parts there are depends on the number of rows alone: a seed gives the same rows everywhere.
"""

import pickle
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from privmeasure.conditions.orders import AnyFact
from privmeasure.conditions.sets import Condition
from privmeasure.domains import Points, Product
from privmeasure.errors import ArgumentError, NoRowsError
from privmeasure.origin import new_id
from privmeasure.outputs import part_folder, put_folder
from privmeasure.releases.base import Measure, Release
from privmeasure.releases.choosing import NO_ROWS
from privmeasure.releases.sampling import Share, check_draw
from privmeasure.releases.table import TableRelease
from privmeasure.tables.arrow import unwrap
from privmeasure.tables.facts import Wanted, asked
from privmeasure.tables.writing import PART_NAME, check_parts
from privmeasure.threads import interruptible

if TYPE_CHECKING:
    import pyarrow as pa

SPARK = "spark"
"""What a frame of it is called."""
PART_ROWS = 1 << 21
"""Rows of a part of the frame, at most: a task of some seconds, and one file if they are written."""
SHARE = "part int, share binary"
CASE = "spark.sql.caseSensitive"
OF_SPARK = re.compile(r"\.?(part-.*\.parquet|_SUCCESS)(\.crc)?|_temporary|\.spark-staging.*")
"""What Spark writes into a folder of Parquet files, and what is left of that if it is killed."""


def sample_on_spark(
    release: Release,
    n: int | None = None,
    *,
    seed: int | None = None,
    where: str | None = None,
    session: Any = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Return synthetic rows of a release as a Spark frame, drawn by the executors whenever an action asks for them.

    Without `n` there are as many as were released. Rows have no order. `where` is a condition on the columns of a
    table: of all rows those that satisfy it; with `n`, filter the frame instead. `session` is the active one if it is
    left out; `names` are those of the columns of points, without them x0, x1, ...
    """
    check_draw(n, seed, "random", "rows")
    if where is not None and n is not None:
        raise ArgumentError(
            "On a cluster n and where exclude each other, for how many rows satisfy it is known only when all are "
            "drawn: leave n out, or sample n rows and filter the frame."
        )
    session = _active() if session is None else session
    drawing = _drawing(release, where, names)._replace(times=has_times(session))
    rows = release.total if n is None else int(n)
    parts = max(1, -(-rows // PART_ROWS))
    entropy = np.random.SeedSequence(seed).entropy  # settled now: a part that is computed again has the same rows
    measure = release.measure if isinstance(release, TableRelease) else cast(Measure, release)
    shares = [(i, pickle.dumps(share)) for i, share in enumerate(measure.shares(n, parts))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions of pandas
        dealt = session.sparkContext.parallelize(shares, parts).toDF(SHARE)
        return dealt.mapInArrow(_work(drawing, entropy), _spark_schema(drawing.empty().schema))


def _active() -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise ArgumentError("There is no active Spark session: make one, or draw the rows here by release_.sample().")
    return session


class _Drawing(NamedTuple):
    """What all parts need: who makes points, and how they become cells of the frame. All of it is public."""

    measure: Measure
    decode: Callable[[Points], "pa.Table"]
    where: tuple[Condition, ...] = ()
    facts: tuple[AnyFact, ...] = ()
    factors: Product | None = None
    times: bool = False

    def empty(self) -> "pa.Table":
        """Return no rows, for their types."""
        return plain_cells(self.decode(np.empty((0, self.measure.domain.width))), times=self.times)


class _Decoded:
    """Points of a table, or those that satisfy a condition, as cells of Spark."""

    def __init__(self, release: TableRelease, wanted: Wanted) -> None:
        self._schema, self._layout, self._wanted = release.schema, release.layout, wanted

    def __call__(self, points: Points) -> "pa.Table":
        if self._wanted.clauses:
            points = points[self._wanted.holds(self._schema, points)]
        return self._schema.decode(points, self._layout)


class _Named:
    """Points as columns of numbers."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)

    def __call__(self, points: Points) -> "pa.Table":
        import pyarrow as pa

        return pa.table({name: np.ascontiguousarray(points[:, i]) for i, name in enumerate(self._names)})


def _drawing(release: Any, where: str | None, names: Sequence[str] | None) -> _Drawing:
    if not isinstance(release, TableRelease):
        if where is not None:
            raise ArgumentError("where needs a table with named columns: give the synthesizer a Schema.")
        width = release.domain.width
        return _Drawing(release.lean(()), _Named(names or [f"x{i}" for i in range(width)]))
    wanted = asked(release.schema, where, types=release.storage_types)
    lean = release.measure.lean(release.facts)
    decode = _Decoded(release, wanted)
    return _Drawing(lean, decode, wanted.conditions, release.facts, release.schema.node_domain)


def _work(drawing: _Drawing, entropy: Any) -> Any:
    """Return what an executor does with the shares that it gets."""

    def work(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for part, share in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                yield from draw_part(drawing, pickle.loads(share), entropy, part)  # made by the driver

    return work


def draw_part(drawing: _Drawing, share: Share, entropy: Any, part: int) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of one part: a function of the release, the seed and the number of the part."""
    words = np.random.SeedSequence(entropy, spawn_key=(part,)).generate_state(4)
    rows = drawing.measure.made(
        share,
        seed=int.from_bytes(words.astype("<u4").tobytes(), "little"),
        then=drawing.decode,
        where=drawing.where,
        facts=drawing.facts,
        factors=cast(Product, drawing.factors),  # of points, of which nothing is asked, there are none
    )
    for table in rows:
        yield from plain_cells(table, times=drawing.times).to_batches()


# -------------------------------------------------------------------------------------------------------------- writing


def write_folder(frame: Any, folder: Path, *, overwrite: bool = False, rows_per_file: int | None = None) -> None:
    """Let executors write a frame into a folder of Parquet files that they share with the driver: whole or not at all.

    The folder is what `tables.writing.write_parts` makes of one machine: part-00000.parquet and so on.
    """
    check_parts(folder, overwrite=overwrite)
    with part_folder(folder) as beside:
        inner = beside.resolve() / "executors"
        write_address(frame, f"file://{inner}", rows_per_file=rows_per_file)  # as it is: Hadoop does not decode %20
        for i, part in enumerate(sorted(inner.glob("part-*.parquet"))):
            part.rename(beside / f"part-{i:05}.parquet")
        shutil.rmtree(inner)
        put_folder(beside, folder, PART_NAME)


def write_address(frame: Any, place: str, *, overwrite: bool = False, rows_per_file: int | None = None) -> None:
    """Let executors write a frame into a folder of Parquet files at an address that they know.

    Spark puts the files of a part in their place when its task is done, once, however often it was tried.
    """
    session, group = frame.sparkSession, f"privmeasure {new_id()}"
    check_address(session, place, overwrite=overwrite)
    writer = frame.write.mode("overwrite" if overwrite else "errorifexists").option("compression", "zstd")
    if rows_per_file is not None:
        writer = writer.option("maxRecordsPerFile", rows_per_file)

    def write() -> None:
        session.sparkContext.setJobGroup(group, "privmeasure: synthetic rows", interruptOnCancel=True)
        writer.parquet(place)

    try:
        with _case_matters(session):
            interruptible(write, lambda: session.sparkContext.cancelJobGroup(group))
    except KeyboardInterrupt:
        raise
    except Exception as error:  # of the place or of the cluster: there are public values alone
        if "NoRowsError" in str(error):
            raise NoRowsError(NO_ROWS) from None
        raise OSError(f"Spark could not write the rows ({type(error).__name__}): see its logs.") from None


@contextmanager
def _case_matters(session: Any) -> Iterator[None]:
    """Let columns that differ in their case alone be two, as they are everywhere else."""
    before = session.conf.get(CASE)
    session.conf.set(CASE, "true")
    try:
        yield
    finally:
        session.conf.set(CASE, before)


def check_address(session: Any, place: str, *, overwrite: bool) -> None:
    """Refuse an address where no rows can be written, as `check_folder` does with a path: before anything is spent.

    Spark replaces a folder with all that is in it, so one that holds anything else than rows stays. An address may hold
    a password, and is not shown.
    """
    try:
        path = session._jvm.org.apache.hadoop.fs.Path(place)
        system = path.getFileSystem(session._jsc.hadoopConfiguration())
        names = [found.getPath().getName() for found in system.listStatus(path)] if system.exists(path) else None
    except Exception as error:  # of the place or of its settings, which are public
        raise OSError(
            f"Spark does not reach the address of the rows ({type(error).__name__}). Check it, and its settings there."
        ) from None
    if names is None:
        return
    if not overwrite:
        raise FileExistsError(
            "The address of the rows exists already and is not overwritten. Choose another, or say so."
        )
    if not all(OF_SPARK.fullmatch(name) for name in names):
        raise FileExistsError(
            "The address of the rows is a folder that holds other files, and is not replaced. Choose another."
        )


# ---------------------------------------------------------------------------------------------------------------- types


def plain_cells(table: "pa.Table", *, times: bool) -> "pa.Table":
    """Return cells in types that Spark knows: no dictionaries, no runs, no unsigned integers, microseconds.

    Times of day become texts where Spark has no type for them.
    """
    import pyarrow as pa

    kinds = [_plain_type(field.type, times) for field in table.schema]
    columns = [unwrap(column).cast(kind, safe=False) for column, kind in zip(table.columns, kinds, strict=True)]
    return pa.table(columns, pa.schema(list(zip(table.column_names, kinds, strict=True))))


def _plain_type(kind: "pa.DataType", times: bool) -> "pa.DataType":
    import pyarrow as pa
    import pyarrow.types as pt

    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type, times)
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return _plain_type(kind.value_type, times)
    if pt.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pt.is_time(kind):
        return pa.time64("ns") if times else pa.string()
    if pt.is_duration(kind):
        return pa.duration("us")
    if pt.is_date(kind):
        return pa.date32()
    if pt.is_large_string(kind) or pt.is_string_view(kind) or pt.is_null(kind):
        return pa.string()
    if pt.is_float16(kind):
        return pa.float32()
    if pt.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else pa.float64()
    return wider.get(kind, kind)


def has_times(session: Any) -> bool:
    """Say whether a session has a type for times of day: not before Spark 4.1, and it may be switched off."""
    from pyspark.sql import types

    return hasattr(types, "TimeType") and str(session.conf.get("spark.sql.timeType.enabled", "false")) == "true"


def _spark_schema(schema: "pa.Schema") -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)

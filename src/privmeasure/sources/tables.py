"""Rows in a table, in a file or in memory: encoded by the schema, counted block by block, in threads."""

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

from privmeasure.counts import CellCounts, Partition
from privmeasure.domains import Points
from privmeasure.errors import DataError, ReleaseError
from privmeasure.sources.files import Quarters, TableFile
from privmeasure.sources.tally import Tally, merge_tallies
from privmeasure.tables import Schema
from privmeasure.threads import BLOCK, QUARTERS, Progress, in_threads, thread_count

if TYPE_CHECKING:
    import pyarrow as pa

FEW_BATCHES = 4
"""Batches up to which threads cost more than they bring."""
CACHE_BYTES = 1 << 29
"""Encoded points are kept up to this size; beyond it the table is read again for every question. A public limit."""


class TableSource:
    """A `Source` over a table: a `tables.io.TableFile` or a pyarrow Table.

    The first question reads the whole table, so a fault of its structure shows before any noise is drawn. A fault
    that shows later (the file changed meanwhile) is a ReleaseError: epsilon counts as spent by then.

    Guarantee:  privacy  no error depends on a value, only on the structure. Progress is told at fixed fractions, and
                         alike whether rows are kept or read again: their number decides which
                cost     one pass per question; memory for a few blocks per thread and the cache
    """

    def __init__(
        self,
        table: "TableFile | pa.Table",
        schema: Schema,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Take a table whose structure was checked; `progress` is told of the first reading, as ("read", fraction)."""
        self._table, self._schema = table, schema
        self._columns = list(dict.fromkeys(s for name, column in schema.data.items() for s in column.sources(name)))
        self._threads = thread_count(threads)
        self._progress = progress
        self._cache: list[Points] | None = []  # None when the points were too many
        self._cached_bytes = 0
        self._read_once = False

    def count(self, partitions: Sequence[Partition], progress: Progress | None = None) -> list[CellCounts]:
        """Return the counts of each partition, in one pass."""
        import pyarrow as pa

        tallies = [Tally(partitions) for _ in range(self._threads)]
        try:
            if not isinstance(self._table, pa.Table):
                self._table.check_unchanged()  # also where rows were kept: whether they are depends on their number
            if self._read_once and self._cache is not None:
                self._count_cache(self._cache, tallies, progress)
            else:
                self._count_batches(tallies, progress)
        except DataError:
            if not self._read_once:
                raise
            raise ReleaseError(
                "The table changed while it was read: it had no fault at first. Nothing was published, but count "
                "epsilon as spent. Work on a copy that nobody writes to."
            ) from None
        self._read_once = True
        return merge_tallies(tallies)

    def _count_batches(self, tallies: list[Tally], progress: Progress | None) -> None:
        """Let every thread take batches, encode and count them, until there are none left or one has failed."""

        first = not self._read_once

        def tell(fraction: float) -> None:
            if first and self._progress is not None:
                self._progress("read", fraction)
            if progress is not None:
                progress("count", fraction)

        self._cache = [] if first else None
        self._cached_bytes = 0
        batches, turn, stopped = self._batches(tell), threading.Lock(), threading.Event()

        def work(tally: Tally) -> None:
            try:
                while not stopped.is_set():
                    with turn:  # one thread reads while the others encode
                        batch = next(batches, None)
                    if batch is None:
                        return
                    self._count_batch(batch, tally, turn)
            finally:
                stopped.set()

        seen = 0
        for batch in islice(batches, FEW_BATCHES):
            seen += 1
            self._count_batch(batch, tallies[0], turn)
        if seen < FEW_BATCHES:
            return
        with ThreadPoolExecutor(self._threads) as pool:
            try:
                for done in [pool.submit(work, tally) for tally in tallies]:
                    done.result()
            finally:
                stopped.set()  # after an interruption no thread takes another batch

    def _count_batch(self, batch: "pa.RecordBatch", tally: Tally, turn: threading.Lock) -> None:
        for start in range(0, batch.num_rows, BLOCK):
            points = self._schema.encode(batch.slice(start, BLOCK))  # private rows, each on its own: nothing is shown
            tally.add(points)  # private counts, which die in the mechanism
            with turn:
                self._keep(points)

    def _keep(self, points: Points) -> None:
        """Keep points for the next question while they are below the public limit."""
        if self._cache is None:
            return
        self._cached_bytes += points.nbytes
        self._cache.append(points)
        if self._cached_bytes > CACHE_BYTES:
            self._cache = None

    def _batches(self, tell: Callable[[float], None]) -> "Generator[pa.RecordBatch, None, None]":
        import pyarrow as pa

        if not isinstance(self._table, pa.Table):
            yield from self._table.batches(self._columns, progress=tell)
            return
        pieces = self._table.select(self._columns).to_batches(max_chunksize=BLOCK)
        quarters = Quarters(tell)
        for i, piece in enumerate(pieces):
            yield piece
            quarters.passed(i + 1, len(pieces))
        quarters.passed(1, 1)

    def _count_cache(self, cache: list[Points], tallies: list[Tally], progress: Progress | None) -> None:
        edges = [len(cache) * i // QUARTERS for i in range(QUARTERS + 1)]
        for quarter in range(QUARTERS):

            def count_share(thread: int, quarter: int = quarter) -> None:
                for points in cache[edges[quarter] + thread : edges[quarter + 1] : self._threads]:
                    tallies[thread].add(points)

            in_threads(count_share, self._threads, self._threads if len(cache) > FEW_BATCHES else 1)
            if progress is not None:
                progress("count", (quarter + 1) / QUARTERS)

    def __repr__(self) -> str:
        """Show nothing: the number of rows may be private."""
        return "TableSource(private)"

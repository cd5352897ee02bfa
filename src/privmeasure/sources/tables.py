"""Rows in a table, in a file or in memory: encoded by the schema, counted block by block, in threads."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from privmeasure.compiled import MOST_PLAIN
from privmeasure.counts import CellCounts, Partition
from privmeasure.domains import Points
from privmeasure.errors import ArgumentError, DataError, ReleaseError
from privmeasure.sources.disk import Piece, Quarters, TableFile, pieces_of
from privmeasure.sources.people import KeptRows, People
from privmeasure.sources.tally import Tally, merge_tallies
from privmeasure.tables import Schema
from privmeasure.tables.persons import read_ids
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

    Where the schema says whose row it is, the first question also settles which rows of each person are kept. Every
    question is about these, and no other row is ever counted.

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
        people: People | None = None,
    ) -> None:
        """Take a table whose structure was checked; `progress` is told of the first reading, as ("read", fraction).

        `people` chooses the rows of each person; it is needed where the schema says whose row it is, and only there.
        """
        if (schema.person is None) != (people is None):
            raise ArgumentError("people goes with a schema that has a person, and with no other.")
        self._table, self._schema, self._people = table, schema, people
        columns = [source for name, column in schema.data.items() for source in column.sources(name)]
        self._columns = list(dict.fromkeys(columns + ([] if schema.person is None else [schema.person])))
        self._threads = min(thread_count(threads), MOST_PLAIN)
        self._progress = progress
        self._cache: list[KeptRows] | None = []  # None when the points were too many
        self._cached_bytes = 0
        self._read_once = False

    def count(self, partitions: Sequence[Partition], progress: Progress | None = None) -> list[CellCounts]:
        """Return the counts of each partition, in one pass."""
        import pyarrow as pa

        tallies = [Tally(partitions) for _ in range(self._threads)]
        try:
            if not isinstance(self._table, pa.Table):
                self._table.check_unchanged()  # also where rows were kept: whether they are depends on their number
            if self._people is not None and not self._read_once:
                self._cache = self._kept(self._people)
                self._count_cache(self._cache, tallies, progress)
            elif self._read_once and self._cache is not None:
                self._count_cache(self._cache, tallies, progress)
            else:
                self._count_batches(tallies, progress)
        except DataError as error:
            if not self._read_once:  # the first question comes before any noise
                raise DataError(f"{error} Nothing was spent.") from None
            raise ReleaseError(
                "The table changed while it was read: it had no fault at first. Nothing was published, but count "
                "epsilon as spent. Work on a copy that nobody writes to."
            ) from None
        self._read_once = True
        return merge_tallies(tallies)

    def _count_batches(self, tallies: list[Tally], progress: Progress | None) -> None:
        """Encode and count all batches, in threads."""

        first = not self._read_once

        def tell(fraction: float) -> None:
            if first and self._progress is not None:
                self._progress("read", fraction)
            if progress is not None:
                progress("count", fraction)

        self._cache = [] if first else None
        self._cached_bytes = 0
        turn = threading.Lock()
        self._share(self._pieces(tell), lambda batch, thread: self._count_batch(batch, tallies[thread], turn))

    def _share(self, pieces: Iterator[Piece], work: "Callable[[pa.RecordBatch, int], None]") -> None:
        """Let every thread read batches and work on them, until there are none left or one has failed.

        A thread goes on with a piece that was begun, if nobody reads it just now, or else begins the next one: few
        pieces are open at a time, and while one thread reads the only piece, the others encode.
        """
        few = list(islice(pieces, FEW_BATCHES))
        pieces = chain(few, pieces)
        if len(few) < FEW_BATCHES:
            batches = chain.from_iterable(read() for read in few)
            first = list(islice(batches, FEW_BATCHES))
            if len(first) < FEW_BATCHES:
                for batch in first:
                    work(batch, 0)
                return
            pieces = iter([lambda: chain(first, batches)])
        begun: list[Iterator[pa.RecordBatch]] = []  # and read by nobody at the moment
        reading, stopped = 0, False
        turn = threading.Condition()

        def begin() -> "Iterator[pa.RecordBatch] | None":
            read = next(pieces, None)
            return None if read is None else read()

        def take(thread: int) -> None:
            nonlocal reading
            try:
                while True:
                    with turn:
                        while not (piece := begun.pop() if begun else begin()) and reading and not stopped:
                            turn.wait()
                        if piece is None or stopped:
                            return
                        reading += 1
                    batch = None
                    try:
                        batch = next(piece, None)
                    finally:
                        with turn:
                            reading -= 1
                            begun.extend([] if batch is None else [piece])
                            turn.notify_all()
                    if batch is not None:
                        work(batch, thread)
            finally:
                stop()

        def stop() -> None:
            nonlocal stopped
            with turn:
                stopped = True
                turn.notify_all()

        with ThreadPoolExecutor(self._threads) as pool:
            try:
                for done in [pool.submit(take, thread) for thread in range(self._threads)]:
                    done.result()
            finally:
                stop()  # after an interruption no thread takes another batch

    def _kept(self, people: People) -> list[KeptRows]:
        """Read the table once, and return the rows of each person that are kept: for this question and all others."""
        turn = threading.Lock()

        def gather(batch: "pa.RecordBatch", thread: int) -> None:
            for start in range(0, batch.num_rows, BLOCK):
                rows = batch.slice(start, BLOCK)
                # private rows and ids, each on its own: what is kept of a person follows from that person's rows
                points, ids = self._schema.encode(rows), read_ids(rows.column(self._schema.person))
                with turn:
                    people.add(ids, points)

        def tell(fraction: float) -> None:
            if self._progress is not None:
                self._progress("read", fraction)

        people.prepare()
        self._share(self._pieces(tell), gather)
        return people.keep()

    def close(self) -> None:
        """Let go of all rows, and of what lies on disk."""
        self._cache = None
        if self._people is not None:
            self._people.close()

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

    def _pieces(self, tell: Callable[[float], None]) -> Iterator[Piece]:
        """Yield what reads each piece: most of the work, and left to the threads."""
        import pyarrow as pa

        if not isinstance(self._table, pa.Table):
            yield from pieces_of(self._table, self._columns, progress=tell)
            return
        batches = self._table.select(self._columns).to_batches(max_chunksize=BLOCK)
        quarters = Quarters(tell)
        for i, batch in enumerate(batches):
            yield partial(iter, [batch])
            quarters.passed(i + 1, len(batches))
        quarters.passed(1, 1)

    def _count_cache(self, cache: list[KeptRows], tallies: list[Tally], progress: Progress | None) -> None:
        quarters = 1 if progress is None else QUARTERS  # after each of them all threads wait for the last
        edges, idle = [len(cache) * i // quarters for i in range(quarters + 1)], list(tallies)
        for quarter in range(quarters):
            blocks = cache[edges[quarter] : edges[quarter + 1]]

            def count_block(i: int, blocks: list[KeptRows] = blocks) -> None:
                tally = idle.pop()
                tally.add(blocks[i][:])
                idle.append(tally)

            in_threads(count_block, len(blocks), self._threads if len(cache) > FEW_BATCHES else 1)
            if progress is not None:
                progress("count", (quarter + 1) / QUARTERS)

    def __repr__(self) -> str:
        """Show nothing: the number of rows may be private."""
        return "TableSource(private)"

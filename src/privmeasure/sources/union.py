"""The rows of several tables as one: counts of days are added before one release is made of them. Private."""

from collections.abc import Sequence
from typing import Any

from privmeasure.counts import CellCounts, Partition, Source
from privmeasure.errors import ArgumentError
from privmeasure.threads import Progress


class Union:
    """Several tables whose rows are released together, for `Synthesizer.fit`: files, frames, queries, in any mixture.

    A row that is in two of them counts twice, so the tables must not overlap; and a person has rows in all of them
    together, which is what `rows_per_person` is about.

    Examples:
        >>> import numpy as np, privmeasure as pm
        >>> monday, tuesday = np.random.default_rng(0).random((2, 500, 1))
        >>> synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace")
        >>> synth.fit(pm.Union(monday, tuesday)).sample().shape
        (1000, 1)
    """

    def __init__(self, *tables: Any) -> None:
        """Take the tables: whatever `fit` takes."""
        if not tables:
            raise ArgumentError("A Union needs at least one table.")
        self.tables = tables

    def __repr__(self) -> str:
        """Say how many there are, and nothing of what is in them."""
        return f"Union(of {len(self.tables)})"


class UnionSource:
    """A `Source` whose counts are the sums of others'.

    Guarantee:  privacy  counts of disjoint rows add up to the counts of all: a row of one table changes what it would
                         change alone. Nothing is released of a single table
                cost     one pass of each source per question
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        """Take the sources, at least one."""
        self._sources = tuple(sources)

    def count(self, partitions: Sequence[Partition], progress: Progress | None = None) -> list[CellCounts]:
        """Return the counts of each partition, over all sources."""
        total: list[CellCounts] = []
        for i, source in enumerate(self._sources):
            found = source.count(partitions)
            total = [one + other for one, other in zip(total, found, strict=True)] if total else found
            for counts in found if i else ():
                counts.take()  # added: nobody holds them any more
            if progress is not None:
                progress("count", (i + 1) / len(self._sources))
        return total

    def close(self) -> None:
        """Let go of all sources."""
        for source in self._sources:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    def __repr__(self) -> str:
        """Show nothing."""
        return "UnionSource(private)"

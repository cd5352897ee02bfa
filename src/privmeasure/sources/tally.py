"""Tallies: points become numbers of rows per cell, block by block. What the sources share. Private."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure import compiled
from privmeasure.counts import DENSE_CELLS, Axis, CellCounts, Counts, Partition
from privmeasure.domains import Points

SMALL = (1 << 32) - 1
"""Up to this many rows a tally has 32-bit integers: half the memory."""
NARROW = (1 << 16) - 1
"""Up to this many cells a code takes 16 bits, so that many small partitions of one block stay in the cache."""
CROWD = 8
"""Tallies at a time from which on codes are sorted to be counted.

Adding at places takes a third of the CPU time, but holds the lock of the interpreter, so that only one thread at a
time does it; sorting does not.
"""
PENDING = 1 << 22
"""Codes of a huge partition that are kept before they are counted."""


class Tally:
    """The counts of one thread, for several partitions. `merged` adds the tallies of all threads.

    Guarantee:  privacy  no error, no text: only time and memory depend on the rows
                cost     4 bytes per cell, or 16 for each occupied cell of a huge partition
    """

    def __init__(self, partitions: Sequence[Partition], *, among: int = 1) -> None:
        """Start with no rows, as one `among` so many tallies that are filled at the same time."""
        self._partitions = partitions
        self.parts: list[_Dense | _Sparse] = [
            _Dense(p.size, sort=among >= CROWD) if p.size <= DENSE_CELLS else _Sparse(p.size) for p in partitions
        ]

    def add(self, points: Points) -> None:
        """Count the rows of a block in every partition."""
        indices: dict[Axis, NDArray[Any]] = {}  # axes shared by several partitions are located once
        for partition, part in zip(self._partitions, self.parts, strict=True):
            codes: NDArray[Any] | None = None
            kind: Any = np.uint16 if partition.size <= NARROW else np.int64
            for axis in partition.axes:
                if axis not in indices:
                    index = axis.index(points)
                    indices[axis] = index.astype(np.uint16) if axis.size <= NARROW else index
                here = indices[axis].astype(kind, copy=False)
                codes = here if codes is None else codes * kind(axis.size) + here
            part.add(len(points), codes)


class _Dense:
    """One small integer per cell."""

    def __init__(self, size: int, *, sort: bool = False) -> None:
        self._rows, self._sort = 0, sort
        self._counts: NDArray[Any] = np.zeros(size, np.uint32)

    def add(self, rows: int, codes: NDArray[Any] | None) -> None:
        """Add rows; without codes they all lie in the only cell."""
        self._rows += rows
        if self._rows > SMALL and self._counts.dtype == np.uint32:
            self._counts = self._counts.astype(np.int64)
        one = self._counts.dtype.type(1)
        if codes is None:
            self._counts[0] += one * rows
        elif (loops := compiled.kernels()) is not None and loops.count(self._counts, np.ascontiguousarray(codes)):
            pass  # all were cells: else, of a domain of one's own, the error is that of `add.at`
        elif codes.dtype == np.uint16 and len(self._counts) <= rows:  # a third faster than adding one by one
            np.add(self._counts, np.bincount(codes, minlength=len(self._counts)), out=self._counts, casting="unsafe")
        elif self._sort and rows and codes.view(f"u{codes.itemsize}").max() < len(self._counts):  # as above
            cells, counts = _tallied(codes)
            self._counts[cells] += counts.astype(self._counts.dtype)
        else:
            np.add.at(self._counts, codes.astype(np.intp, copy=False), one)

    def merge_into(self, total: Counts) -> None:
        """Add to the counts of all threads, and let go of one's own."""
        total += self._counts
        self._counts = self._counts[:0]


def _tallied(codes: NDArray[Any]) -> tuple[NDArray[np.intp], Counts]:
    """Return the codes that occur, each once, and how often they do; all fit into 32 bits."""
    ordered = np.sort(codes.astype(np.uint32))
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)
    return ordered.take(ends).astype(np.intp), np.diff(ends, prepend=-1)


class _Sparse:
    """The codes of the rows, counted now and then."""

    def __init__(self, size: int) -> None:
        self._codes: list[Counts] = []
        self._pending = 0
        self.counted = CellCounts(size, np.empty(0, np.int64), np.empty(0, np.uint64))

    def add(self, rows: int, codes: Counts | None) -> None:
        """Add rows."""
        self._codes.append(np.zeros(rows, np.int64) if codes is None else codes)
        self._pending += rows
        if self._pending > PENDING:
            self.fold()

    def fold(self) -> None:
        """Count what is pending."""
        codes = np.concatenate([np.empty(0, np.int64), *self._codes])
        cells, counts = np.unique(codes, return_counts=True)
        self.counted += CellCounts(self.counted.size, counts.astype(np.int64), cells.view(np.uint64))
        self._codes, self._pending = [], 0


def merge_tallies(tallies: Sequence[Tally]) -> list[CellCounts]:
    """Return the counts of all rows, one for each partition. The tallies are used up."""
    result: list[CellCounts] = []
    for parts in zip(*(tally.parts for tally in tallies), strict=True):
        size = tallies[0]._partitions[len(result)].size
        if isinstance(parts[0], _Dense):
            total = np.zeros(size, np.int64)
            for part in parts:
                part.merge_into(total)
            result.append(CellCounts(size, total))
        else:
            for part in parts:
                part.fold()
            result.append(sum((part.counted for part in parts[1:]), parts[0].counted))
    return result

"""Private counts: what a mechanism may ask of data, and what it gets.

This room is private. A `CellCounts` holds true counts: it shows nothing of itself, cannot be saved, and dies inside the
mechanism that asked for it. A `Source` is the only way from rows to counts: arrays and files now, databases elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Cells, Domain, Points
from privmeasure.domains.scales import Grouped, Reading, Scale, describe
from privmeasure.errors import ArgumentError, SpentError
from privmeasure.threads import Progress

DENSE_CELLS = 1 << 26
"""Up to this many cells counts are one array, beyond it a list of the occupied cells: a public size decides."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Axis:
    """One public way to turn a row into a small number: its cell in a domain or, with `groups`, the group of that cell.

    `columns` are the columns of the row that the domain reads; None means all of them. `groups[cell]` must be public
    (it may come from an earlier release), so that a row's number depends on the row alone.
    """

    domain: Domain
    level: int
    columns: slice | None = None
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Refuse groups that a row could fall out of: the error would come from a private value."""
        groups = self.groups
        if groups is not None and not (
            groups.dtype == np.int64 and groups.shape == (1 << self.level,) and groups.min() >= 0
        ):
            raise ArgumentError(
                "groups must give every cell of the level a group: int64, 2**level of them, none below 0."
            )

    @cached_property
    def size(self) -> int:
        """How many numbers there are."""
        return 1 << self.level if self.groups is None else int(self.groups.max()) + 1

    @property
    def scale(self) -> Scale | None:
        """The same question as data, for other engines; None where only `index` knows the answer."""
        start = 0 if self.columns is None else self.columns.start
        scale = describe(self.domain, self.level, [Reading(start + i) for i in range(self.domain.width)])
        return scale if scale is None or self.groups is None else Grouped(scale, self.groups)

    def index(self, points: Points) -> Counts:
        """Return the number of every row."""
        rows = points if self.columns is None else points[:, self.columns]
        cells = self.domain.locate(rows, self.level).view(np.int64)
        return cells if self.groups is None else self.groups.take(cells)


@dataclass(frozen=True, eq=False)
class Partition:
    """A public partition of all possible rows: the mixed radix of one number per axis. No axes: one cell, all rows."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        """Refuse more cells than a 64-bit code can tell apart."""
        if self.size >= 1 << 63:
            raise ArgumentError(f"A partition must have fewer than 2**63 cells, got {self.size}. Use coarser axes.")

    @property
    def size(self) -> int:
        """How many cells there are, existing or not."""
        size = 1
        for axis in self.axes:
            size *= axis.size
        return size

    @classmethod
    def of(cls, domain: Domain, level: int) -> "Partition":
        """Return the cells of one level of a domain."""
        return cls((Axis(domain, level),))


class CellCounts:
    """How many rows lie in each cell of a partition. PRIVATE: blank repr, no save; `+` merges, in any order.

    With `cells` None the position is the cell; otherwise only the listed cells (sorted, distinct) are occupied.

    Examples:
        >>> a, b = CellCounts(3, np.array([1, 0, 2])), CellCounts(3, np.array([0, 5, 0]))
        >>> a + b
        CellCounts(private)
    """

    __slots__ = ("cells", "counts", "size")

    def __init__(self, size: int, counts: Counts, cells: Cells | None = None) -> None:
        """Hold counts of a partition of `size` cells."""
        self.size, self.counts, self.cells = size, counts, cells

    def take(self) -> Counts:
        """Hand the counts over, and keep nothing: whoever asked for them is the last to hold them."""
        taken, self.counts = self.counts, np.empty(0, np.int64)
        return taken

    @property
    def total(self) -> int:
        """The number of rows. PRIVATE under "add-remove"."""
        return int(self.counts.sum())

    def __add__(self, other: "CellCounts") -> "CellCounts":
        """Merge the counts of two disjoint sets of rows."""
        if self.size != other.size or (self.cells is None) != (other.cells is None):
            raise ArgumentError("Only counts of the same partition can be added.")
        if self.cells is None or other.cells is None:
            return CellCounts(self.size, self.counts + other.counts)
        cells, place = np.unique(np.concatenate((self.cells, other.cells)), return_inverse=True)
        counts = np.zeros(len(cells), np.int64)
        np.add.at(counts, place, np.concatenate((self.counts, other.counts)))
        return CellCounts(self.size, counts, cells)

    def __repr__(self) -> str:
        """Show nothing."""
        return "CellCounts(private)"

    def __reduce__(self) -> Any:
        """Refuse to be pickled."""
        raise SpentError("CellCounts are private and cannot be saved. Save the release instead.")


class Source(Protocol):
    """Private rows behind an engine: one pass over the data per call, for a list of public partitions."""

    def count(self, partitions: Sequence[Partition], progress: Progress | None = None) -> list[CellCounts]:
        """Return the counts of each partition."""
        ...


def is_source(data: object) -> bool:
    """Say whether data are a `Source`: lists, texts and frames have a `count` too, but not of partitions.

    Examples:
        >>> is_source([1, 2])
        False
    """
    try:
        return "partitions" in signature(type(data).count).parameters  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError):
        return False

"""Whether the rows of a release fit in memory: a question about public numbers, asked before any row is drawn."""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privmeasure.errors import ArgumentError

CELL_BYTES = 8
"""Bytes of one coordinate of a point."""
MIN_TEXT_BYTES = 4
"""The fewest bytes of a cell of varying length: where it ends."""


@dataclass(frozen=True)
class Memory:
    """The memory that this process could have at most, in bytes; None if it cannot be known, and then all rows pass.

    It is the memory of the machine, or of the container if that has less. How much of it is free is not asked: that
    changes from moment to moment, and a sample that other programs make room for must not be refused.

    Examples:
        >>> Memory(8_000).check_rows(1_000, 8)
        >>> Memory(8_000).check_rows(1_001, 8)
        Traceback (most recent call last):
        privmeasure.errors.ArgumentError: The release has 1,001 rows, which need at least 8.01e-06 GB, more than the
        8e-06 GB of memory here. Give n=, the number of rows that you want, or use blocks(), which yields them block
        by block.
    """

    size: int | None

    @classmethod
    def of_machine(cls) -> "Memory":
        """Return the memory of this machine, or of the container that this process runs in."""
        try:
            sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
        except (AttributeError, OSError, ValueError):  # Windows
            return cls(None)
        if sys.platform == "linux":
            for name in ("memory.max", "memory/memory.limit_in_bytes"):
                try:
                    sizes.append(int((Path("/sys/fs/cgroup") / name).read_text()))
                except (OSError, ValueError):  # there is no such limit
                    continue
        return cls(min(size for size in sizes if size > 0) if max(sizes) > 0 else None)

    def check_rows(self, rows: int, row_bytes: int) -> None:
        """Refuse a sample of all released rows that cannot fit, each of at least some bytes."""
        if self.size is not None and rows * row_bytes > self.size:
            raise ArgumentError(
                f"The release has {rows:,} rows, which need at least {rows * row_bytes / 1e9:.3g} GB, more than the "
                f"{self.size / 1e9:.3g} GB of memory here. Give n=, the number of rows that you want, or use blocks(), "
                "which yields them block by block."
            )


def row_bytes(types: Iterable[Any]) -> int:
    """Return the fewest bytes of a row of a table, by the storage types of its columns; None stands for any type.

    Examples:
        >>> import pyarrow as pa
        >>> row_bytes([pa.int64(), pa.string(), None])
        16
    """
    bits = 0
    for type in types:
        try:
            bits += 8 * MIN_TEXT_BYTES if type is None else type.bit_width
        except ValueError:  # of varying length
            bits += 8 * MIN_TEXT_BYTES
    return max(bits // 8, 1)

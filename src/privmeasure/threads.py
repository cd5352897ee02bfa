"""Work in blocks that stay in the cache, in threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from privmeasure.errors import ArgumentError

BLOCK = 1 << 17
"""Rows of a block: 1 MiB per column. Small enough for the cache, large enough that threads, which hold the lock of the
interpreter between two array operations, seldom wait for each other."""


Progress = Callable[[str, float], None]
"""Called as progress(stage, fraction) at fixed fractions, whatever the number of rows: it tells nothing about them."""

LOOK_SECONDS = 1.0
"""Seconds between two looks at whether an engine has answered, where signals do not end a wait."""
QUARTERS = 4
"""Progress is told after each quarter of the rows: four times whatever their number, which may be private."""


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use: as asked, or one for each core that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ArgumentError(f"threads must be a whole number of at least 1 or None (all cores), got {threads!r}.")
    return threads


def in_threads(work: Callable[[int], None], tasks: int, threads: int) -> None:
    """Call work(0), ..., work(tasks - 1), in any order, on at most `threads` threads."""
    _keep_memory()
    if threads <= 1 or tasks <= 1:
        for task in range(tasks):
            work(task)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, range(tasks)):
            pass


def _keep_memory() -> None:
    """Make the allocator keep the memory of blocks for the next block.

    The C library's allocator gives freed arrays of this size back to the system, and asks for them again page by page,
    until it has seen a larger one freed. This one is never touched, so it costs nothing.
    """
    np.empty(1 << 24, np.uint8)

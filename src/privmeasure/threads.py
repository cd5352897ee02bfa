"""Work in blocks that stay in the cache, in threads."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import TypeVar

import numpy as np

from privmeasure.errors import ArgumentError

BLOCK = 1 << 17
"""Rows of a block: 1 MiB per column. Small enough for the cache, large enough that threads, which hold the lock of the
interpreter between two array operations, seldom wait for each other."""

Item = TypeVar("Item")
Made = TypeVar("Made")

Progress = Callable[[str, float], None]
"""Called as progress(stage, fraction) at fixed fractions, whatever the number of rows: it tells nothing about them."""

LOOK_SECONDS = 1.0
"""Seconds between two looks at whether an engine has answered, where signals do not end a wait."""
MOST_THREADS = 1024
"""Each has counts of its own: memory would end long before the cores that help."""
QUARTERS = 4
"""Progress is told after each quarter of the rows: four times whatever their number, which may be private."""


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use: as asked, or one for each core that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise ArgumentError(
            f"threads must be a whole number from 1 to {MOST_THREADS} or None (all cores), got {threads!r}."
        )
    return threads


def in_threads(work: Callable[[int], None], tasks: int, threads: int) -> None:
    """Call work(0), ..., work(tasks - 1), in any order, on at most `threads` threads."""
    _keep_memory()
    if threads <= 1 or tasks <= 1:
        for task in range(tasks):
            work(task)
        return
    turn, left = Lock(), iter(range(tasks))

    def go_on() -> None:
        while (task := _next(turn, left)) is not None:
            try:
                work(task)
            except BaseException:
                while _next(turn, left) is not None:  # nobody begins another one
                    pass
                raise

    helpers = [_helpers().submit(go_on) for _ in range(min(threads, tasks) - 1)]
    try:
        go_on()  # whoever asks works too: helpers that never come, because others hold them, are not waited for
    finally:
        came = [helper for helper in helpers if not helper.cancel()]
        wait(came)
    for helper in came:
        helper.result()


def _next(turn: Lock, left: Iterator[int]) -> int | None:
    with turn:
        return next(left, None)


@cache
def _helpers() -> ThreadPoolExecutor:
    """Return the threads that help with tasks: they wait for the next ones, since to start one takes long."""
    return ThreadPoolExecutor(MOST_HELPERS, thread_name_prefix="privmeasure")


MOST_HELPERS = 256
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads do not live on in a fork


def ahead(work: Callable[[Item], Made], items: Iterable[Item], threads: int) -> Generator[Made, None, None]:
    """Yield work(item) for every item, in their order, made a little ahead on `threads` threads.

    Few are held at a time. Items are taken by whoever asks for the results, when there is room for them.

    Examples:
        >>> list(ahead(lambda item: item * item, range(6), threads=2))
        [0, 1, 4, 9, 16, 25]
    """
    if threads <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        held: deque[Future[Made]] = deque()
        try:
            for item in items:
                held.append(pool.submit(work, item))
                if len(held) > threads:
                    yield held.popleft().result()
            while held:
                yield held.popleft().result()
        finally:
            for future in held:  # whoever asked went away
                future.cancel()


def interruptible(work: Callable[[], Made], stop: Callable[[], None]) -> Made:
    """Return what an engine's work gives; Ctrl-C asks it to stop, again and again until it has, and is raised.

    In a thread of its own: engines do not look for signals in all of their work, and PySpark, in the thread that
    signals come to, asks to cancel a job over the connection on which it waits for that job. A second Ctrl-C does not
    wait.
    """
    pool = ThreadPoolExecutor(1)
    try:
        job = pool.submit(work)
        try:
            while not wait([job], LOOK_SECONDS).done:  # signals are looked at between two waits
                pass
        except KeyboardInterrupt:
            while not job.done():
                with suppress(Exception):  # it may be gone, or not have begun
                    stop()
                wait([job], LOOK_SECONDS)
            raise KeyboardInterrupt from None
        return job.result()
    finally:
        pool.shutdown(wait=False)


def _keep_memory() -> None:
    """Make the allocator keep the memory of blocks for the next block.

    The C library's allocator gives freed arrays of this size back to the system, and asks for them again page by page,
    until it has seen a larger one freed. This one is never touched, so it costs nothing.
    """
    np.empty(1 << 24, np.uint8)

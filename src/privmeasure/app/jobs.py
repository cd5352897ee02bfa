"""Long work, one piece after the other, on the main thread.

There Ctrl-C arrives, as in a command: what a fit does when it is interrupted, what it gives back to the ledger and what
counts as spent, is then the same by construction. Requests come on threads of their own, and only look.
"""

import queue
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from privmeasure.errors import ArgumentError
from privmeasure.threads import Progress

WAIT = 0.5
"""Seconds after which the main thread looks up: some systems deliver Ctrl-C only then."""
MOST_WAITING = 20
STAGES = {
    "reading": "opening the table",
    "read": "reading the table",
    "count": "counting",
    "release": "adding noise",
    "typical error": "estimating the typical error",
    "drawing": "drawing pictures",
    "write": "writing rows",
}
"""What a page says of what work tells."""


@dataclass
class Job:
    """A piece of work: what it is, how far it is, and where it leads. Nothing here tells how many rows there are."""

    number: int
    title: str
    work: Callable[[], str]
    """Does it, and returns the address of the page to show after it."""
    back: str
    """The page to return to if it fails."""
    gives_way: bool = False
    """Whether other work is done first, whenever it tells how far it is: a report takes a minute, a table a second."""
    stage: str = "waiting"
    fraction: float = 0.0
    done: bool = False
    leads_to: str = ""
    error: str = ""

    def advance(self, stage: str, fraction: float) -> None:
        """Note how far it is: at fixed fractions, as `threads.Progress` promises."""
        self.stage, self.fraction = STAGES.get(stage, stage), fraction


@dataclass
class Jobs:
    """All work of a visit."""

    watched: Callable[[Progress], AbstractContextManager[None]]
    explain: Callable[[BaseException], str]
    _queue: "queue.SimpleQueue[Job | None]" = field(default_factory=queue.SimpleQueue)
    _jobs: dict[int, Job] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def add(self, title: str, work: Callable[[], str], *, back: str, gives_way: bool = False) -> Job:
        """Put work into the queue."""
        with self._lock:
            job = Job(len(self._jobs) + 1, title, work, back, gives_way)
            self._jobs[job.number] = job
        self._queue.put(job)
        return job

    def get(self, number: int) -> Job | None:
        """Return a piece of work by its number."""
        return self._jobs.get(number)

    @property
    def full(self) -> bool:
        """Whether so much waits that no more is taken."""
        return self._queue.qsize() >= MOST_WAITING

    def stop(self) -> None:
        """End `run` after the work that is under way; what waits is not begun."""
        self._stopped = True
        self._queue.put(None)

    def run(self) -> None:
        """Do the work, on the thread that calls, until `stop` or an interruption; one of work goes through."""
        while not self._stopped:  # work that gives way may have taken the sign to stop out of the queue
            try:
                job = self._queue.get(timeout=WAIT)
            except queue.Empty:
                continue
            except KeyboardInterrupt:  # the usual way to stop a page
                return
            if job is None or self._stopped:
                return
            self._do(job)

    def _do_waiting(self) -> None:
        """Do what waits, in the middle of work that gives way."""
        while not self._stopped:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return
            if job is not None:
                self._do(job)

    def _do(self, job: Job) -> None:
        def advance(stage: str, fraction: float) -> None:
            job.advance(stage, fraction)
            if job.gives_way:
                self._do_waiting()
                if self._stopped:
                    raise ArgumentError("The page was stopped.")

        job.advance("starting", 0.0)
        try:
            with self.watched(advance):
                job.leads_to = job.work()
        except Exception as error:
            job.error = self.explain(error)
        finally:
            job.done = True

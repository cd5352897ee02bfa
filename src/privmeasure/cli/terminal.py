"""What commands print: words and tables for people, JSON for machines, progress on stderr."""

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from privmeasure.cli import options

if TYPE_CHECKING:
    from privmeasure.threads import Progress


BAR_DELAY = 1.0
"""Seconds before a bar appears."""


class Voice(NamedTuple):
    """How a command answers: in words, in JSON, or with errors alone."""

    json: options.Json = False
    quiet: options.Quiet = False

    @property
    def in_words(self) -> bool:
        """Whether people read it, who also want to see how far it is."""
        return not (self.json or self.quiet)

    def tell(self, text: str, *, to_stderr: bool = False) -> None:
        """Print words on stdout, or on stderr where stdout is for rows."""
        if self.in_words:
            print(text, file=sys.stderr if to_stderr else sys.stdout)

    def warn(self, *texts: str) -> None:
        """Print warnings on stderr; in JSON they are a field."""
        for text in texts if self.in_words else ():
            print(f"warning: {text}", file=sys.stderr)

    def answer(self, value: Any, words: str, *, to_stderr: bool = False) -> None:
        """Print the outcome: a value for machines, or words."""
        if self.json:
            emit(value)
        else:
            self.tell(words, to_stderr=to_stderr)


def emit(value: Any) -> None:
    """Print JSON on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, to_stderr: bool = False) -> None:
    """Print a table; numbers to the right. On stderr where stdout is for rows."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from privmeasure.cli.failures import printable

    if title:
        print(title, file=sys.stderr if to_stderr else sys.stdout)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, head in enumerate(heads):
        numeric = bool(rows) and all(row[i].replace(",", "")[:1].isdigit() for row in rows)
        grid.add_column(head, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(printable(cell)) for cell in row))  # a ledger of somebody else may hold anything
    console = Console(highlight=False, stderr=to_stderr)
    width = console.width if console.is_terminal else 120
    Console(highlight=False, stderr=to_stderr, width=width).print(grid)


_watcher: "ContextVar[Progress | None]" = ContextVar("watcher", default=None)


@contextmanager
def watched(advance: "Progress") -> "Iterator[None]":
    """Let somebody else than the terminal follow what is done inside: the local page."""
    token = _watcher.set(advance)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def progress(what: str, *, shown: bool) -> "Iterator[Progress | None]":
    """Give a function for progress: a bar on stderr after a second, none where stderr is not a terminal."""
    if (watcher := _watcher.get()) is not None:
        watcher(what, 0.0)
        yield watcher
        return
    if not shown or not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(what)
    timer = threading.Timer(BAR_DELAY, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield bar.advance
    finally:
        timer.cancel()
        bar.stop()


class _Bar:
    """A bar that may appear later than its progress begins."""

    def __init__(self, what: str) -> None:
        self._lock, self._stopped = threading.Lock(), False
        self._stage, self._fraction = what, 0.0
        self._live: Any = None

    def start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._stopped:
                return
            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._live = Progress(*columns, console=Console(stderr=True), transient=True)
            self._live.add_task(self._stage, total=1.0, completed=self._fraction)
            self._live.start()

    def advance(self, stage: str, fraction: float) -> None:
        with self._lock:
            self._stage, self._fraction = stage, fraction
            if self._live is not None:
                self._live.update(0, description=stage, completed=fraction)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._live is not None:
                self._live.stop()

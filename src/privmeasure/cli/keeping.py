"""A finished release is never lost: it is saved in its place, or elsewhere if that fails. No signal interrupts it."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from privmeasure.outputs import is_stream

if TYPE_CHECKING:
    from privmeasure.synthesizer import Synthesizer


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals that would end the command wait until the block is done."""
    if threading.current_thread() is not threading.main_thread():  # signals do not reach other threads
        yield
        return
    came: list[int] = []
    known = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    usual = {number: handler for number in known if callable(handler := signal.getsignal(number))}
    for number in usual:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
        for number in came[:1]:
            usual[number](number, None)


def save_in_place(synthesizer: "Synthesizer", place: Path, *, overwrite: bool) -> None:
    """Write the release to its place, unless another file has come there meanwhile."""
    if place.exists() and not overwrite and not is_stream(place):
        raise FileExistsError(f"{place} has come into being during the fit, and is not overwritten.")
    synthesizer.save(place)


def save_elsewhere(write: Callable[[Path], object], release_id: str) -> Path:
    """Write a release to the user's data folder, or else to the temporary folder, for its owner alone; say where.

    Nothing deletes it. Its name is its id, which says nothing about the data.
    """
    with suppress(OSError, RuntimeError):  # there is no home, or it is full
        folder = data_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _write_for_the_owner(write, folder / f"{release_id}.release")
    folder = Path(tempfile.mkdtemp(prefix="kept-by-privmeasure-"))  # mode 0700; not named as what is left of a run
    return _write_for_the_owner(write, folder / f"{release_id}.release")


def _write_for_the_owner(write: Callable[[Path], object], path: Path) -> Path:
    write(path)
    path.chmod(0o600)
    return path


def data_folder() -> Path:
    """Return the folder of this user for data of this package; it may not exist."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base).absolute() / "privmeasure"


def command_to_move(there: Path, place: Path) -> str:
    """Return the command that moves a file to its place; it asks before it replaces another file.

    A file for a pipe or a device is moved into the working folder.
    """
    target = Path() if is_stream(place) else place
    if sys.platform == "win32":
        return f"move /-Y {subprocess.list2cmdline([str(there), str(target)])}"
    return shlex.join(["mv", "-i", str(there), str(target)])

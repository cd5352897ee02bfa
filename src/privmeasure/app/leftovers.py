"""The folder of a visit, and what is left of a page that was killed.

A page that stops deletes its folder. One that is killed, by SIGKILL or a loss of power, cannot: the next one that is
started deletes what it left, the upload above all. Whether a page is gone is known by a lock that the system holds for
it as long as it lives. A release stays, because epsilon is spent for it.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "privmeasure-page-"
"""How the names of the folders begin, in the system's folder for temporary files."""
LOCK_FILE = "lock"
RELEASES = "*.release"

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def visit_folder() -> Iterator[Path]:
    """Give a folder that only its owner may enter (mode 0700), with a lock in it; both go at the end."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        new = folder / "new"
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _take(descriptor)
            new.rename(folder / LOCK_FILE)  # it is held from the moment it has this name
            yield folder
        finally:
            os.close(descriptor)


def delete_left() -> list[Path]:
    """Delete what killed pages left in the folder for temporary files, and return the releases, which stay."""
    kept: list[Path] = []
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        with suppress(OSError):  # another user's, or deleted meanwhile
            kept += _delete(folder)
    return kept


def _delete(folder: Path) -> list[Path]:
    """Delete a folder, unless its page lives or it is another user's; return the releases in it, which stay."""
    status = folder.lstat()
    if folder.is_symlink() or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
        return []
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        _take(descriptor)  # or raise OSError: the page lives
        kept = sorted(folder.glob(f"*/{RELEASES}"))
        for file in folder.glob("*/*"):
            if file not in kept:
                file.unlink()
    finally:
        os.close(descriptor)
    if not kept:
        shutil.rmtree(folder)
    return kept

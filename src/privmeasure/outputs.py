"""Where a file goes: one check of its place before any work is done, and no half file there after it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TAKEN = "{path} exists already and is not overwritten. Choose another name, or say so."
CLOSED = "There is no permission to write into the folder {path.parent}. Write elsewhere."


def check_place(path: Path, *, overwrite: bool, taken: str = TAKEN, closed: str = CLOSED) -> None:
    """Refuse a place where no file can be written; `taken` and `closed` are the words of whoever asks."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the path of a file.")
    if path.exists() and not overwrite:
        raise FileExistsError(taken.format(path=path))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: create it, or write elsewhere.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(closed.format(path=path))


@contextmanager
def part_beside(path: Path) -> Iterator[Path]:
    """Give a place beside a file's own, to write it there and rename it; what is left of it goes."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)

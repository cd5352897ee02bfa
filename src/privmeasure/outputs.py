"""Where a file goes: one check of its place before any work is done, and no half file there after it.

A file is written beside its place, under a name that cannot be guessed, synced to the disk and renamed; then its folder
is synced. A link in its place stays, and what it leads to is replaced; none is followed on the way. A pipe or a device
has no place to rename to: it gets the file as a whole.
"""

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.:-]+://", re.I)
"""How an address begins: s3://, gs://, abfs://, hdfs://, file://. One that no one knows may hold a password too."""
TAKEN = "{path} exists already and is not overwritten. Choose another name, or say so."
CLOSED = "There is no permission to write into the folder {path.parent}. Write elsewhere."


def path_here(place: str) -> Path | None:
    """Return the path of a place on this machine; None for an address elsewhere.

    Examples:
        >>> str(path_here("rows.parquet")), str(path_here("file:///data/my%20rows")), path_here("s3://bucket/rows")
        ('rows.parquet', '/data/my rows', None)
    """
    if not ADDRESS.match(place):
        return Path(place)
    store, _, rest = place.strip().partition("://")
    return Path("/", unquote(rest.partition("/")[2])) if store.lower() == "file" else None


def check_place(path: Path, *, overwrite: bool, taken: str = TAKEN, closed: str = CLOSED) -> None:
    """Refuse a place where no file can be written; `taken` and `closed` are the words of whoever asks."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the path of a file.")
    if is_stream(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(f"There is no permission to write to {path}. Write elsewhere.")
        return
    if path.exists() and not overwrite:
        raise FileExistsError(taken.format(path=path))
    place = _target(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(f"The folder {place.parent} does not exist: create it, or write elsewhere.")
    if not os.access(place.parent, os.W_OK):
        raise PermissionError(closed.format(path=place))
    _try_to_write(place, closed)


def _try_to_write(place: Path, closed: str) -> None:
    """Make an empty file beside a place and remove it: what cannot be written is known before any work is done."""
    probe = _unused(place, "part")
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except PermissionError:
        raise PermissionError(closed.format(path=place)) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(place)) from None
    finally:
        probe.unlink(missing_ok=True)


def is_stream(path: Path) -> bool:
    """Say whether a path is a pipe or a device, which takes bytes and keeps none."""
    return path.exists() and not path.is_file() and not path.is_dir()


class PartialFile:
    """A file that is being written beside its place. It did not exist before, and no link was followed to make it."""

    def __init__(self, path: Path) -> None:
        """Make the file, or raise FileExistsError."""
        self.path = path
        self._file = open(path, "xb", buffering=0, opener=_open_no_link)  # noqa: SIM115 - closed by `close`

    def open(self) -> BinaryIO:
        """Return the file to write into. Closing it leaves the part open, and does not end it."""
        return open(self._file.fileno(), "wb", closefd=False)

    def close(self, *, synced: bool = False) -> None:
        """Close the file, after its bytes have reached the disk if it is to last; a second time does nothing."""
        if synced:
            os.fsync(self._file.fileno())
        self._file.close()


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


@contextmanager
def part_beside(path: Path) -> Iterator[PartialFile]:
    """Give a new file beside a file's place, to write it there before `put`; what is left of it goes.

    Of a pipe or a device the part lies in a folder of its own that nobody else may read.
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory() as folder, closing(PartialFile(Path(folder) / path.name)) as part:
            yield part
        return
    place = _unused(_target(path), "part")
    try:
        with closing(PartialFile(place)) as part:
            yield part
    finally:
        place.unlink(missing_ok=True)


def put(part: PartialFile, path: Path) -> None:
    """Put a file that is complete in its place: renamed, so that there is the old one or the new one, never a half."""
    if is_stream(path):
        with part.path.open("rb") as file, path.open("wb") as stream:
            shutil.copyfileobj(file, stream)
        return
    part.close(synced=True)
    part.path.replace(_target(path))
    _sync_folder(part.path.parent)


def _sync_folder(path: Path) -> None:
    """Make the names in a folder survive a crash. Not every system can do that; the files are there all the same."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_folder(path: Path, ours: str, *, overwrite: bool, taken: str = TAKEN) -> None:
    """Refuse a place where no folder can be written; one that is there may hold only files with names like `ours`."""
    if path.is_dir():
        if not overwrite:
            raise FileExistsError(taken.format(path=path))
        if not _holds_only(path, ours):
            raise FileExistsError(
                f"{path} is a folder that holds other files, and is not replaced. Choose another name."
            )
    elif path.exists():
        raise FileExistsError(f"{path} is a file, where a folder is to be written. Choose another name.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: create it, or write elsewhere.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(CLOSED.format(path=path))


def _holds_only(path: Path, ours: str) -> bool:
    return all(child.is_file() and child.match(ours) for child in path.iterdir())


@contextmanager
def part_folder(path: Path) -> Iterator[Path]:
    """Give a folder beside another's place, to fill it before `put_folder`; what is left of it goes."""
    part = _unused(path, "part")
    part.mkdir()
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def put_folder(part: Path, path: Path, ours: str) -> None:
    """Put a folder that is complete in its place; an older one of the same kind goes."""
    old = _unused(path, "old")
    for child in part.iterdir():
        with child.open("rb+") as file:  # which other machines may have written
            os.fsync(file.fileno())
    _sync_folder(part)
    if path.is_dir():
        if not _holds_only(path, ours):  # they came into being while we wrote
            raise FileExistsError(
                f"{path} is a folder that holds other files, and is not replaced. Choose another name."
            )
        path.rename(old)
    part.rename(path)
    _sync_folder(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def _unused(path: Path, ending: str) -> Path:
    """Return a name beside another that cannot be guessed, so that no other user can put a link there."""
    return path.with_name(f"{path.name}.{secrets.token_hex(8)}.{ending}")


def _target(path: Path) -> Path:
    """Return where a link leads, or the path itself."""
    if not path.is_symlink():
        return path
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        raise OSError(f"{path} is a link that leads nowhere but to itself. Write elsewhere.") from None

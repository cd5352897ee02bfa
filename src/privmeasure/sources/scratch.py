"""Private rows on disk, while a fit needs more of them than memory should hold. Private.

The file lies in a folder that only its owner may enter (mode 0700), only its owner may read it (0600), and where the
system allows it, it has no name from the moment it exists: whatever happens to the process, nothing of it stays.
"""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.errors import DataError

FOLDER = "privmeasure-"
"""How the names of the folders begin, in the system's folder for temporary files."""


class Scratch:
    """One file that arrays are put into and read from again, in parts. It is gone once it is closed.

    Examples:
        >>> scratch = Scratch()
        >>> stored = scratch.put(np.arange(6.0).reshape(3, 2))
        >>> stored[1:].tolist(), len(stored)
        ([[2.0, 3.0], [4.0, 5.0]], 3)
        >>> scratch.close()
    """

    def __init__(self) -> None:
        """Make the folder and the file."""
        self._turn = threading.Lock()
        with _writable():
            self._folder = tempfile.TemporaryDirectory(prefix=FOLDER)
            try:
                self._file = tempfile.TemporaryFile(dir=self._folder.name)  # noqa: SIM115 - closed by `close`
            except BaseException:
                self._folder.cleanup()
                raise

    def put(self, array: NDArray[Any]) -> "Stored":
        """Write an array behind what is there."""
        whole = np.ascontiguousarray(array)
        with self._turn, _writable():
            start = self._file.seek(0, 2)
            self._file.write(whole.reshape(-1).view(np.uint8).data)
            self._file.flush()  # a full disk refuses here, not when something is read or closed
        return Stored(self, start, whole.dtype, whole.shape)

    def read(self, start: int, into: NDArray[Any]) -> None:
        """Fill an array with what stands at a place."""
        with self._turn:
            self._file.seek(start)
            if self._file.readinto(into.reshape(-1).view(np.uint8).data) != into.nbytes:
                raise OSError("a file for private rows is shorter than it was")  # what memory held is no row

    def close(self) -> None:
        """Delete everything, also where the disk takes no more; a second time does nothing."""
        try:
            with suppress(OSError):  # of what could not be written, which nobody will read
                self._file.close()
        finally:
            self._folder.cleanup()

    def __repr__(self) -> str:
        """Show nothing: the size may be private."""
        return "Scratch(private)"


@dataclass(frozen=True, eq=False, repr=False)
class Stored:
    """An array in a `Scratch`. A slice of it, or one number, is read when it is asked for."""

    scratch: Scratch
    start: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __len__(self) -> int:
        """Return the number of its rows."""
        return self.shape[0]

    def __getitem__(self, place: slice | int) -> Any:
        """Read some rows, or one."""
        if not isinstance(place, slice):
            return self[place : place + 1][0]
        first, last, _ = place.indices(len(self))
        rows = np.empty((max(last - first, 0), *self.shape[1:]), self.dtype)
        self.scratch.read(self.start + first * prod(self.shape[1:]) * self.dtype.itemsize, rows)
        return rows


@contextmanager
def _writable() -> Iterator[None]:
    """Replace the system's refusals: a private number of rows decides how much room is asked for, and none is told."""
    try:
        yield
    except OSError:
        raise DataError(
            "Rows that are set aside while persons are told apart could not be written to the folder for temporary "
            "files. Make room there, or name another folder by the environment variable TMPDIR."
        ) from None

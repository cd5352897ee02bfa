"""Files that do not lie on a disk of this machine: behind a file system of pyarrow, such as an object store.

The readers ask little of a path: its name, its size and time, its bytes. `StorePath` answers as `pathlib.Path` does.
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

from privmeasure.errors import ArgumentError, DataError
from privmeasure.outputs import ADDRESS


class StorePath:
    """A path in a file system of pyarrow.

    Examples:
        >>> import tempfile, pyarrow.fs as fs
        >>> folder = tempfile.mkdtemp()
        >>> store = fs.SubTreeFileSystem(folder, fs.LocalFileSystem())
        >>> _ = (Path(folder) / "a.csv").write_text("x")
        >>> StorePath(store, "a.csv").exists(), StorePath(store, "b.csv").exists(), StorePath(store, "").is_dir()
        (True, False, True)
    """

    def __init__(self, system: Any, path: str) -> None:
        """Take a file system and a path in it."""
        self._system, self._path = system, path.strip("/") if path != "/" else path
        if path.startswith("/"):  # of a local file system
            self._path = path.rstrip("/") or "/"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self._path).name

    @property
    def suffix(self) -> str:
        """The end of the name, with its dot."""
        return PurePosixPath(self._path).suffix

    @property
    def stem(self) -> str:
        """The name without its end."""
        return PurePosixPath(self._path).stem

    def _info(self) -> Any:
        return self._system.get_file_info(self._path)

    def exists(self) -> bool:
        """Say whether there is a file or a folder."""
        return bool(self._info().type != _types().NotFound)

    def is_file(self) -> bool:
        """Say whether it is a file."""
        return bool(self._info().type == _types().File)

    def is_dir(self) -> bool:
        """Say whether it is a folder."""
        return bool(self._info().type == _types().Directory)

    def stat(self) -> Any:
        """Return size and time of change."""
        info = self._info()
        if info.type == _types().NotFound:
            raise FileNotFoundError
        changed = info.mtime_ns or 0
        return SimpleNamespace(st_size=info.size, st_mtime_ns=changed, st_ctime_ns=0, st_ino=0, st_dev=0)

    def native(self) -> Any:
        """Open the file, as Arrow's readers want it."""
        return self._system.open_input_file(self._path)

    def open(self, mode: str = "rb") -> Any:
        """Open the file for reading bytes."""
        return self.native()

    def below(self) -> Iterator[tuple["StorePath", str]]:
        """Return all files below a folder, with their paths from there."""
        from pyarrow import fs

        selector = fs.FileSelector(self._path, recursive=True)
        for info in self._system.get_file_info(selector):
            if info.type == _types().File:
                yield StorePath(self._system, info.path), str(PurePosixPath(info.path).relative_to(self._path or "."))

    def beside(self, path: str) -> "StorePath":
        """Return another path of the same file system."""
        return StorePath(self._system, path)

    def __str__(self) -> str:
        """Return the path in its file system."""
        return self._path


FilePath = Path | StorePath


def _types() -> Any:
    from pyarrow.fs import FileType

    return FileType


def file_path(place: "str | Path", filesystem: Any = None) -> FilePath:
    """Return the path of a file or folder: on disk, in a file system of pyarrow, or at an address such as s3://."""
    import pyarrow as pa
    from pyarrow import fs

    if filesystem is not None:
        if not isinstance(filesystem, fs.FileSystem):
            raise ArgumentError(
                f"filesystem must be a file system of pyarrow, got {type(filesystem).__name__}. One of fsspec becomes "
                "one: pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(...))."
            )
        return _on_disk(filesystem, str(place)) or StorePath(filesystem, str(place))
    if isinstance(place, str) and ADDRESS.match(place):
        try:
            system, path = fs.FileSystem.from_uri(place)
        except (pa.ArrowException, OSError, ValueError):  # its words may repeat a key of the address
            raise DataError(
                f"The address {place.partition('://')[0]}://... is none that pyarrow knows or can reach. Check it, and "
                "the settings of the store."
            ) from None
        return _on_disk(system, path) or StorePath(system, path)
    return Path(place)


def _on_disk(system: Any, path: str) -> Path | None:
    """Return the path of a file system that is this machine's own, or a folder of it; None for others.

    There links are known as such. pyarrow follows them, so that rows behind one could be counted more than once.
    """
    from pyarrow import fs

    if isinstance(system, fs.SubTreeFileSystem):
        return _on_disk(system.base_fs, str(PurePosixPath(system.base_path, path.lstrip("/"))))
    if isinstance(system, fs.PyFileSystem) and isinstance(system.handler, fs.FSSpecHandler):
        protocol = getattr(system.handler.fs, "protocol", ())
        return Path(path) if "file" in ((protocol,) if isinstance(protocol, str) else protocol) else None
    return Path(path) if isinstance(system, fs.LocalFileSystem) else None


def native_file(path: FilePath) -> Any:
    """Open a file as Arrow's readers want it."""
    import pyarrow as pa

    return path.native() if isinstance(path, StorePath) else pa.OSFile(os.fsencode(path))  # names need not be UTF-8

"""Tables in many files: folders, patterns such as visits/*.parquet, and folders that name a column (hive).

Every file is read by its own header and types: **what a row becomes depends on that row and its own file's types**,
never on another file. So the first file has no say in how the others are read; what all of them must have is the
columns that the schema declares. A folder ward=A below the one that is given says that all rows in it have "A" in the
column ward: text, read as the schema declares, like a cell of a CSV file.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from privmeasure.errors import ArgumentError, DataError
from privmeasure.sources.disk import (
    Piece,
    Quarters,
    TableFile,
    Told,
    check_columns,
    pieces_of,
    portions_of,
    readable,
)
from privmeasure.sources.lines import UnreadRows
from privmeasure.sources.stores import FilePath, StorePath
from privmeasure.tables.suffixes import ENDINGS, kind_of

if TYPE_CHECKING:
    import pyarrow as pa

NOTHING_THERE = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder whose rows have no value in the column."""
WILD = re.compile(r"[*?\[]")


def is_pattern(path: FilePath) -> bool:
    """Say whether a path stands for many: it has a *, ? or [ and is no file itself."""
    return bool(WILD.search(str(path))) and not path.exists()


class TableFolder:
    """All tables below a folder, or those that match a pattern, as one table."""

    def __init__(self, path: FilePath, open_one: Callable[[FilePath], TableFile]) -> None:
        """Read all headers; `open_one` opens a file."""
        self.path = path
        self._paths = self._list()
        if not self._paths:
            what = f"{path} holds no table" if path.is_dir() else f"No table has a name like {path}"
            raise DataError(f"{what}: there is no such file that ends in {ENDINGS}. Check the path.")
        kinds = {kind_of(name) for name in self._paths}
        if len(kinds) > 1:
            raise DataError(f"{path} holds files of several kinds: {', '.join(sorted(kinds))}. Give a pattern for one.")
        self._check_once()
        self._files = []
        for name, place in self._paths.items():
            with without_values(name, place):
                self._files.append((open_one(place), folder_values(name)))
        self.kind = self._files[0][0].kind
        first, named = self._files[0]
        self.by_folders = tuple(named)
        self.names: tuple[str, ...] = (*first.names, *named)
        for file, values in self._files:
            self._check(file, values)
        self.types: tuple[Any, ...] | None = self._types()

    def _list(self) -> dict[str, FilePath]:
        """Return the files by their path from the folder, or from where the pattern begins to be one."""
        base, pattern = self.path, "**"
        if not self.path.is_dir():
            parts = PurePosixPath(str(self.path)).parts
            plain = next(i for i, part in enumerate(parts) if WILD.search(part))
            above = str(PurePosixPath(*parts[:plain])) if plain else ""
            base = self.path.beside(above) if isinstance(self.path, StorePath) else Path(above)
            pattern = "/".join(parts[plain:])
            if not base.is_dir():
                raise DataError(f"The folder {base} does not exist. Check the path.")
        wanted = pattern_of(pattern)
        found = base.below() if isinstance(base, StorePath) else self._below(base, pattern, wanted)
        named = {name: place for place, name in found if wanted.fullmatch(name)}
        for name, place in named.items():
            if isinstance(place, Path) and not place.is_file() and is_table(name):
                with without_values(name, place):
                    raise DataError(
                        f"{place} is a pipe, a device, or a link that leads nowhere, and no file. Remove it."
                    )
        kept = [name for name in named if is_table(name)]
        return {name: named[name] for name in sorted(kept)}

    def _below(self, base: Path, pattern: str, wanted: "re.Pattern[str]") -> Iterator[tuple[Path, str]]:
        """Yield all that lies in the folders that the pattern leads into, and is no folder.

        One that cannot be entered is refused: its rows would be left out, and nobody would know. Its name may say what
        its rows have, and is not shown.
        """

        def refuse(_: OSError) -> None:
            raise DataError(
                f"{self.path} holds a folder that cannot be opened. Change its permissions, or give a pattern that "
                "leaves it out."
            )

        for folder, folders, names in os.walk(base, onerror=refuse):
            inside = PurePosixPath(Path(folder).relative_to(base).as_posix())
            meant = [name for name in folders if wanted.fullmatch(str(inside / name)) and not is_hidden(name)]
            folders[:] = [name for name in folders if leads_into(pattern, str(inside / name))]
            if any(Path(folder, name).is_symlink() for name in {*meant, *folders}):
                raise DataError(
                    f"{self.path} holds a link to a folder, behind which nothing is read. Move the files there, or "
                    "give a pattern that leaves it out."
                )
            if any(is_table(name) and name not in folders for name in meant):
                raise DataError(
                    f"{self.path} means folders, in which nothing is read by this pattern. Add /* to it, or give one "
                    "of the folders by itself."
                )
            yield from ((Path(folder, name), str(inside / name)) for name in names)

    def _check_once(self) -> None:
        """Refuse a file that is there under two names: each of its rows would count twice."""
        places = [place for place in self._paths.values() if isinstance(place, Path)]
        with readable(self.path):
            if len({(place.stat().st_dev, place.stat().st_ino) for place in places}) < len(places):
                raise DataError(
                    f"{self.path} holds one file under several names, by links: its rows would count more than once. "
                    "Remove the links, or give a pattern that leaves them out."
                )

    def _check(self, file: TableFile, values: Mapping[str, str | None]) -> None:
        """Refuse a file whose columns are others: by names, which are public."""
        twice = [name for name in values if name in file.names]
        if twice:
            raise DataError(
                f"{self.path}: the column {twice[0]!r} is in the files and in the names of their folders. Drop one."
            )
        if {*file.names, *values} != set(self.names):
            raise DataError(
                f"{self.path} holds files whose columns differ. Give a pattern for those that belong together."
            )

    def _types(self) -> "tuple[pa.DataType | None, ...] | None":
        """Return the types that all files agree on, None where they do not; None for text, which has none."""
        if all(file.types is None for file, _ in self._files):
            return None
        each = [self._of_one(file) for file, _ in self._files]
        return tuple(each[0].get(n) if len({str(types.get(n)) for types in each}) == 1 else None for n in self.names)

    @staticmethod
    def _of_one(file: TableFile) -> "dict[str, pa.DataType | None]":
        return dict(zip(file.names, file.types or (None,) * len(file.names), strict=True))

    @property
    def headers(self) -> "Iterator[tuple[tuple[str, ...], tuple[pa.DataType | None, ...]]]":
        """The names and types of every file: each must be what the schema declares."""
        for file, _ in self._files:
            types = self._of_one(file)
            yield self.names, tuple(types.get(name) for name in self.names)

    def batches(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Yield columns, file by file. Nothing is kept."""
        for read in self.pieces(columns, progress=progress, unread=unread):
            yield from read()

    def pieces(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> Iterator[Piece]:
        """Yield what reads each file, or each part of it."""
        check_columns(self.path, self.names, columns)
        self.check_unchanged()
        quarters = Quarters(progress)
        for i, ((file, values), place) in enumerate(zip(self._files, self._paths.items(), strict=True)):
            yield from FileOfFolder(file, values, place).pieces(columns, unread=unread)
            quarters.passed(i + 1, len(self._files))

    def portions(self) -> list[TableFile]:
        """Return what can be read apart, on other machines too: the files, or pieces of them."""
        places = zip(self._files, self._paths.items(), strict=True)
        return [FileOfFolder(piece, values, place) for (file, values), place in places for piece in portions_of(file)]

    def check_unchanged(self) -> None:
        """Refuse a folder that has other files now, or one that was written to."""
        if list(self._list()) != list(self._paths):
            raise DataError(
                f"{self.path} has other files than when it was opened. Work on a copy that nobody writes to."
            )
        for (file, _), place in zip(self._files, self._paths.items(), strict=True):
            with without_values(*place):
                file.check_unchanged()


class FileOfFolder:
    """A file of a folder, or a piece of it, with what the folders on the way say of its rows."""

    def __init__(self, file: TableFile, values: Mapping[str, str | None], place: tuple[str, FilePath]) -> None:
        """Take a file that was opened, its values, and its path from the folder and as a whole."""
        self._file, self._values, self._place = file, values, place
        self.kind, self.names = file.kind, (*file.names, *values)
        self.types = None if file.types is None else (*file.types, *(None for _ in values))

    def batches(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Yield columns, of the file or of its folders. Nothing is kept."""
        for read in self.pieces(columns, progress=progress, unread=unread):
            yield from read()

    def pieces(
        self, columns: Sequence[str], *, progress: Told | None = None, unread: UnreadRows | None = None
    ) -> Iterator[Piece]:
        """Yield what reads each part of the file."""
        own = [name for name in columns if name not in self._values] or [self._any_column()]
        with without_values(*self._place):
            for read in pieces_of(self._file, own, progress=progress, unread=unread):
                yield partial(self._completed, read, own, columns)

    def _completed(self, read: Piece, own: Sequence[str], columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        with without_values(*self._place):
            for batch in read():
                cells = {name: batch.column(name) for name in own}  # private: whoever asked for them encodes them
                for name, value in self._values.items():
                    cells[name] = pa.repeat(_cell(value), batch.num_rows)
                yield pa.RecordBatch.from_arrays([cells[name] for name in columns], list(columns))

    def _any_column(self) -> str:
        """Return a column that can be read, where folders say all that is asked for: its cells only tell of rows."""
        from pyarrow.types import is_nested

        types = self._file.types or (None,) * len(self._file.names)
        plain = (name for name, kind in zip(self._file.names, types, strict=True) if not (kind and is_nested(kind)))
        return next(plain, self._file.names[0])

    def check_unchanged(self) -> None:
        """Refuse a file that is not the one that was opened."""
        with without_values(*self._place):
            self._file.check_unchanged()


def check_table(schema: Any, table: TableFile) -> None:
    """Compare the header of a table with a schema; of a folder, the header of every file."""
    for names, types in getattr(table, "headers", [(table.names, table.types)]):
        schema.check(names, types, by_folders=getattr(table, "by_folders", ()))


def leads_into(pattern: str, folder: str) -> bool:
    """Say whether files of a pattern may lie in a folder, or below it; none lie in a hidden one.

    Examples:
        >>> [leads_into("a*/*.csv", folder) for folder in ("ab", "b", "ab/c")], leads_into("a/**/*.csv", "a/b/c")
        ([True, False, False], True)
    """
    parts, depth = pattern.split("/"), len(PurePosixPath(folder).parts)
    open_from = next((i for i, part in enumerate(parts) if "**" in part), len(parts))
    above = "/".join(PurePosixPath(folder).parts[:open_from])
    return (
        not is_hidden(folder)
        and (depth < len(parts) or open_from < len(parts))
        and (not above or pattern_of("/".join(parts[: min(depth, open_from)])).fullmatch(above) is not None)
    )


def is_hidden(name: str) -> bool:
    """Say whether a path from a folder begins, or goes on, with a dot or an underscore; not _year=2020, as in Spark."""
    parts = PurePosixPath(name).parts
    return any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in parts)


def is_table(name: str) -> bool:
    """Say whether a file below a folder belongs to the table: not what begins with a dot or an underscore.

    Examples:
        >>> is_table("year=2020/part-0.parquet"), is_table("_metadata.parquet"), is_table("notes.md")
        (True, False, False)
    """
    if is_hidden(name):
        return False
    try:
        kind_of(name)
    except ArgumentError:
        return False
    return True


def folder_values(name: str) -> dict[str, str | None]:
    """Return what the folders on the way to a file say of its rows.

    Examples:
        >>> folder_values("ward=A%2FB/year=__HIVE_DEFAULT_PARTITION__/part-0.parquet")
        {'ward': 'A/B', 'year': None}
    """
    said = [part.partition("=") for part in PurePosixPath(name).parts[:-1] if "=" in part[1:]]
    values = {unquote(key): None if value == NOTHING_THERE else unquote(value) for key, _, value in said}
    if len(values) < len(said):
        raise DataError("A column is named by two folders on the way to one file. Rename one of them.")
    return values


@contextmanager
def without_values(name: str, place: FilePath) -> Iterator[None]:
    """Let errors about a file not show what its folders say: these are cells of its rows.

    Examples:
        >>> with without_values("ward=A/part-0.csv", Path("visits/ward=A/part-0.csv")):
        ...     raise DataError("visits/ward=A/part-0.csv is empty.")
        Traceback (most recent call last):
        privmeasure.errors.DataError: visits/ward=.../part-0.csv is empty.
    """
    try:
        yield
    except DataError as error:
        shown = str(place).removesuffix(name) + re.sub(r"=[^/]*(?=/)", "=...", name)
        raise DataError(str(error).replace(str(place), shown)) from None


def _cell(value: str | None) -> "pa.StringScalar":
    """Return a value of a folder as a cell of a text file: bytes as they are, which need not be UTF-8."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cell = pa.scalar(None if value is None else value.encode("utf-8", "surrogateescape"), pa.binary())
    return cast("pa.StringScalar", pc.cast(cell, options=pc.CastOptions(pa.string(), allow_invalid_utf8=True)))


def pattern_of(text: str) -> "re.Pattern[str]":
    """Return a pattern as a regular expression: ** is any number of folders, * and ? stay within one.

    Examples:
        >>> [bool(pattern_of("**/*.csv").fullmatch(name)) for name in ("a.csv", "b/c/a.csv", "a.tsv")]
        [True, True, False]
    """
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\])", text)
    try:
        if any("[" in part and not part.endswith("]") for part in parts):
            raise re.error("not closed")
        return re.compile(
            "".join(words.get(p, p.replace("[!", "[^") if p.startswith("[") else re.escape(p)) for p in parts),
            re.DOTALL,  # names may hold line ends
        )
    except re.error:
        raise DataError(
            f"The pattern {text!r} cannot be read: its brackets are not closed, or hold a range that runs backwards. "
            "Write [a-z] or [0-9]; a bracket itself is [[]."
        ) from None

"""The file of a release: one Parquet file that anyone can read without this package.

Columns `part` (uint16), `cell` (uint64) and `mass` (int64), sorted by part and cell, and one JSON header in the
metadata: format, the kind of release, the domain, what each part is, the plan with the privacy promise, the recipe,
whether the release is private, its random id and the version of the software. No timestamps, no names, nothing else
that was not released. Part numbers are labels of the file: part 0 is the released masses, further parts are the noisy
counts of one level each (`mass` may be negative).
A release of columns has such parts for each `column`, then perhaps one of the agreements of all pairs of columns, then
a part for each measured pair of columns: its noisy counts, `cell` being row * (number of columns) + column.
If the schema of a table has an order constraint, the header also states how far the default rows are from the release
(`row_distances`), and the format is 2.

Whatever is read is checked before memory is taken. A file that is damaged, edited or newer gives one clear error.
"""

import json
from collections.abc import Sequence
from itertools import pairwise
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Cells
from privmeasure.errors import ReleaseFileError
from privmeasure.outputs import part_beside, put

FILE_FORMAT, ROW_DISTANCES_FORMAT = 1, 2
"""Of most releases, and of those that state how far their rows are from them: a newer format is used only if needed."""
FILE_FORMATS = (FILE_FORMAT, ROW_DISTANCES_FORMAT)
HEADER_KEY = b"privmeasure"
MAX_HEADER_BYTES = 1 << 26
"""The largest header. A column takes about a thousand bytes, a measured pair up to forty thousand."""
MAX_HEADER_PARTS = 1 << 21
"""The most lists and objects in a header: empty ones take thirty times as much memory as in the file."""
LARGEST_ROWS = 1 << 28
"""Cells that a file may list."""
DEEPEST_NOISY = 22
"""The deepest level whose noisy counts a file may list."""
MOST_RANKS = 1 << 12
"""The most rows or columns of the table of a pair."""
FILE_COLUMNS = [("part", "uint16"), ("cell", "uint64"), ("mass", "int64")]

ENCODING: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": ["part"],
    "column_encoding": {"cell": "DELTA_BINARY_PACKED", "mass": "DELTA_BINARY_PACKED"},
    "write_page_checksum": True,
}
"""Runs of cells take next to nothing, noisy counts about a byte each. A damaged page does not fit its checksum."""

FileTable = tuple[NDArray[np.uint16], Cells, NDArray[np.int64]]
"""The three columns."""
Part = tuple[Cells, NDArray[np.int64]]
"""The cells of one part and their masses."""


def join_parts(parts: Sequence[tuple[Cells, NDArray[Any]]]) -> FileTable:
    """Return the columns of several parts, one after the other."""
    numbers = np.repeat(np.arange(len(parts), dtype=np.uint16), [len(cells) for cells, _ in parts])
    cells, masses = zip(*parts, strict=True)
    return numbers, np.concatenate(cells), np.concatenate(masses, dtype=np.int64)


def number_parts(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the header says of each part: its number, and what it is.

    Examples:
        >>> number_parts([{"kind": "cells", "level": 3}])
        [{'part': 0, 'kind': 'cells', 'level': 3}]
    """
    return [{"part": i} | part for i, part in enumerate(parts)]


def describe_parts(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what each part is, without its number, which must be its place."""
    rest = [{name: value for name, value in part.items() if name != "part"} for part in parts]
    if number_parts(rest) != list(parts):
        raise ReleaseFileError("the parts must be numbered from 0")
    return rest


def separate_parts(parts: Sequence[object], table: FileTable) -> list[Part]:
    """Return the cells and masses of each part that the header lists; nothing may be left over or out of order."""
    numbers, cells, masses = table
    if not 1 <= len(parts) <= 1 << 16 or (numbers[1:] < numbers[:-1]).any() or (numbers >= len(parts)).any():
        raise ReleaseFileError("the rows must be sorted by part, and every part be listed in the header")
    ends = np.searchsorted(numbers, np.arange(len(parts)), side="right").tolist()
    return [(cells[start:stop], masses[start:stop]) for start, stop in pairwise([0, *ends])]


def write_release(path: str | Path, header: dict[str, Any], table: FileTable) -> None:
    """Write a release: beside its place first, so that no half file is ever left there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: column for (name, _), column in zip(FILE_COLUMNS, table, strict=True)}
    metadata = {HEADER_KEY: json.dumps(header, sort_keys=True).encode()}
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: create it, or save elsewhere.")
    with part_beside(path) as part:
        with part.open() as file:
            pq.write_table(pa.table(columns, metadata=metadata), file, **ENCODING)
        put(part, path)


def read_release(path: str | Path) -> tuple[dict[str, Any], FileTable]:
    """Return the header and the columns of a release file, or say what is wrong with it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the path of a release file.")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            header = _header(path, file)
            table = file.read(columns=[name for name, _ in FILE_COLUMNS])
    except (OSError, UnicodeError, pa.ArrowException) as error:
        if isinstance(error, FileNotFoundError | IsADirectoryError | PermissionError):
            raise
        raise ReleaseFileError(
            f"{path} is not a complete Parquet file. It may be of another kind, or truncated: `save` writes releases "
            "as Parquet. Check the path, or copy the file again."
        ) from None
    if any(column.null_count for column in table.columns):
        raise ReleaseFileError(f"{path} is damaged or was edited: a value is missing. Get it again.")
    part, cell, mass = (table[name].to_numpy() for name, _ in FILE_COLUMNS)
    return header, (part.astype(np.uint16), cell.astype(np.uint64), mass.astype(np.int64))


def _header(path: str | Path, file: Any) -> dict[str, Any]:
    text = (file.schema_arrow.metadata or {}).get(HEADER_KEY)
    if text is None:
        raise ReleaseFileError(f"{path} is a Parquet file, but not a privmeasure release: it has no header of ours.")
    if len(text) > MAX_HEADER_BYTES or text.count(b"{") + text.count(b"[") > MAX_HEADER_PARTS:
        raise ReleaseFileError(
            f"{path} has a header that is larger than one can be ({MAX_HEADER_BYTES:,} bytes, {MAX_HEADER_PARTS:,} "
            "lists and objects). It was edited: get the file again."
        )
    if (file.metadata.metadata or {}).get(HEADER_KEY) != text:  # Arrow reads its own copy, in base64; people this one
        raise ReleaseFileError(f"{path} was edited: its header is there twice, and the two differ. Get the file again.")
    try:
        header: dict[str, Any] = json.loads(text)
        version = header["format"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ReleaseFileError(f"{path} has a header that cannot be read. Get the file again.") from None
    if type(version) is not int or version not in FILE_FORMATS:
        raise ReleaseFileError(
            f"{path} has format {version!r}, this version reads {FILE_FORMATS[0]} to {FILE_FORMATS[-1]}. Update "
            "privmeasure."
        )
    names = [(field.name, str(field.type)) for field in file.schema_arrow]
    if names != FILE_COLUMNS:
        raise ReleaseFileError(f"{path} must have the columns part (uint16), cell (uint64), mass (int64), got {names}.")
    listed, allowed = file.metadata.num_rows, _most_cells(header)
    if listed > allowed:
        raise ReleaseFileError(f"{path} lists {listed} cells, where its header allows {allowed}. Get the file again.")
    return header


def _most_cells(header: dict[str, Any]) -> int:
    """Return how many cells a file may list: those of its plan, or its rows, and all noisy numbers."""
    plan, parts = header.get("plan"), header.get("parts")
    columns = plan.get("columns", [plan]) if isinstance(plan, dict) else [plan]
    total = sum(map(_plan_cells, columns if isinstance(columns, list) else [plan]))
    listed = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    labels = [(part.get("column"), part.get("level")) for part in listed if part.get("kind") == "noisy"]
    noisy = {(str(column), level) for column, level in labels if type(level) is int and 0 <= level <= DEEPEST_NOISY}
    total += sum(1 << level for _, level in noisy)
    shapes = [part.get("shape") for part in listed if part.get("kind") == "pair"]
    total += sum(_pair_cells(shape) for shape in shapes)
    total += _agreed_pairs(plan)
    return min(total, LARGEST_ROWS + (1 << (DEEPEST_NOISY + 1)))


def _plan_cells(plan: Any) -> int:
    numbers = [plan.get(name) for name in ("cells", "rows")] if isinstance(plan, dict) else []
    return min([LARGEST_ROWS, *(number for number in numbers if isinstance(number, int) and number >= 0)])


def _agreed_pairs(plan: Any) -> int:
    """Return how many agreements a plan says that a file lists: no more than its columns have pairs."""
    match plan:
        case {"columns": list(columns), "agreement_pairs": int(pairs)}:
            return max(0, min(pairs, comb(len(columns), 2)))
    return 0


def _pair_cells(shape: Any) -> int:
    match shape:
        case [int(rows), int(columns)] if 0 < rows <= MOST_RANKS and 0 < columns <= MOST_RANKS:
            return rows * columns
    return 0

"""The file of a release: one Parquet file that anyone can read without this package.

Columns `part` (uint16), `cell` (uint64) and `mass` (int64), sorted by part and cell, and one JSON header in the
metadata: format, the kind of release, the domain, what each part is, the plan with the privacy promise, the recipe, and
whether the release is private. No timestamps, no names, nothing that was not released. Part numbers are labels of the
file: part 0 is the released masses, further parts are the noisy counts of one level each (`mass` may be negative).

Whatever is read is checked before memory is taken. A file that is damaged, edited or newer gives one clear error.
"""

import json
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Cells
from privmeasure.errors import ReleaseFileError

FORMAT = 1
HEADER_KEY = b"privmeasure"
LARGEST_HEADER = 1 << 28
LARGEST_ROWS = 1 << 28
"""Cells that a file may list."""
DEEPEST_NOISY = 22
"""The deepest level whose noisy counts a file may list."""
COLUMNS = [("part", "uint16"), ("cell", "uint64"), ("mass", "int64")]

ENCODING: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": ["part"],
    "column_encoding": {"cell": "DELTA_BINARY_PACKED", "mass": "DELTA_BINARY_PACKED"},
}
"""Runs of cells take next to nothing, noisy counts about a byte each."""

Table = tuple[NDArray[np.uint16], Cells, NDArray[np.int64]]
"""The three columns."""
Part = tuple[Cells, NDArray[np.int64]]
"""The cells of one part and their masses."""


def joined(parts: Sequence[tuple[Cells, NDArray[Any]]]) -> Table:
    """Return the columns of several parts, one after the other."""
    numbers = np.repeat(np.arange(len(parts), dtype=np.uint16), [len(cells) for cells, _ in parts])
    cells, masses = zip(*parts, strict=True)
    return numbers, np.concatenate(cells), np.concatenate(masses, dtype=np.int64)


def separated(parts: Sequence[object], table: Table) -> list[Part]:
    """Return the cells and masses of each part that the header lists; nothing may be left over or out of order."""
    numbers, cells, masses = table
    if not 1 <= len(parts) <= 1 << 16 or (numbers[1:] < numbers[:-1]).any() or (numbers >= len(parts)).any():
        raise ReleaseFileError("the rows must be sorted by part, and every part be listed in the header")
    ends = np.searchsorted(numbers, np.arange(len(parts)), side="right").tolist()
    return [(cells[start:stop], masses[start:stop]) for start, stop in pairwise([0, *ends])]


def write(path: str | Path, header: dict[str, Any], table: Table) -> None:
    """Write a release: beside its place first, so that no half file is ever left there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: column for (name, _), column in zip(COLUMNS, table, strict=True)}
    metadata = {HEADER_KEY: json.dumps(header, sort_keys=True).encode()}
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: create it, or save elsewhere.")
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        pq.write_table(pa.table(columns, metadata=metadata), beside, **ENCODING)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read(path: str | Path) -> tuple[dict[str, Any], Table]:
    """Return the header and the columns of a release file, or say what is wrong with it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the path of a release file.")
    try:
        with pq.ParquetFile(path) as file:
            header = _header(path, file)
            table = file.read(columns=[name for name, _ in COLUMNS])
    except (OSError, UnicodeError, pa.ArrowException) as error:
        if isinstance(error, FileNotFoundError | IsADirectoryError | PermissionError):
            raise
        raise ReleaseFileError(
            f"{path} is not a complete Parquet file. It may be of another kind, or truncated: `save` writes releases "
            "as Parquet. Check the path, or copy the file again."
        ) from None
    if any(column.null_count for column in table.columns):
        raise ReleaseFileError(f"{path} is damaged or was edited: a value is missing. Get it again.")
    part, cell, mass = (table[name].to_numpy() for name, _ in COLUMNS)
    return header, (part.astype(np.uint16), cell.astype(np.uint64), mass.astype(np.int64))


def _header(path: str | Path, file: Any) -> dict[str, Any]:
    text = (file.schema_arrow.metadata or {}).get(HEADER_KEY)
    if text is None or len(text) > LARGEST_HEADER:
        raise ReleaseFileError(f"{path} is a Parquet file, but not a privmeasure release: it has no header of ours.")
    try:
        header: dict[str, Any] = json.loads(text)
        version = header["format"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ReleaseFileError(f"{path} has a header that cannot be read. Get the file again.") from None
    if version != FORMAT:
        raise ReleaseFileError(f"{path} has format {version!r}, this version reads {FORMAT}. Update privmeasure.")
    names = [(field.name, str(field.type)) for field in file.schema_arrow]
    if names != COLUMNS:
        raise ReleaseFileError(f"{path} must have the columns part (uint16), cell (uint64), mass (int64), got {names}.")
    listed, allowed = file.metadata.num_rows, _most_cells(header)
    if listed > allowed:
        raise ReleaseFileError(f"{path} lists {listed} cells, where its header allows {allowed}. Get the file again.")
    return header


def _most_cells(header: dict[str, Any]) -> int:
    """Return how many cells a file may list: no more than its plan has cells or rows, and the noisy levels."""
    plan, parts = header.get("plan"), header.get("parts")
    numbers = [plan.get(name) for name in ("cells", "rows")] if isinstance(plan, dict) else []
    cells = min([LARGEST_ROWS, *(number for number in numbers if isinstance(number, int) and number >= 0)])
    listed = parts if isinstance(parts, list) else []
    levels = [part.get("level") for part in listed if isinstance(part, dict) and part.get("kind") == "noisy"]
    allowed = {level for level in levels if type(level) is int and 0 <= level <= DEEPEST_NOISY}
    return cells + sum(1 << level for level in allowed)

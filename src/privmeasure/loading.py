"""Reading a release file back: of points, or of a table. Public: it cannot reach counts, engines or the data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from privmeasure import files
from privmeasure.columns.measure import ColumnsMeasure
from privmeasure.domains import Domain
from privmeasure.errors import PrivmeasureError, ReleaseFileError
from privmeasure.release import CellMeasure
from privmeasure.table_release import TableRelease

KINDS: dict[str, Callable[[dict[str, Any], files.Table, Domain | None], CellMeasure | ColumnsMeasure]] = {
    "cells": CellMeasure.from_file,
    "columns": ColumnsMeasure.from_file,
}
"""How each kind of measure is read."""


def load(path: str | Path, *, domain: Domain | None = None) -> CellMeasure | ColumnsMeasure | TableRelease:
    """Read a release file; everything in it is checked before it is used.

    A domain of your own cannot be made from a file: give it as `domain`, equal to the one that was released.
    """
    header, table = files.read(path)
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ReleaseFileError(
            f"{path} holds a release of kind {kind!r}, which this version cannot read. It is damaged, or was written "
            "by a newer version: update privmeasure, or get it again."
        )
    try:
        measure = KINDS[kind](header, table, domain)
        return TableRelease.from_file(header, measure) if "schema" in header else measure
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        detail = f" ({error})" if isinstance(error, PrivmeasureError) else ""
        raise ReleaseFileError(
            f"{path} is damaged or was edited: its header and its cells do not fit together{detail}. Get it again."
        ) from None


def is_release(path: str | Path) -> bool:
    """Say whether a file calls itself a release: by its header, which `load` then checks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            return files.HEADER_KEY in (file.schema_arrow.metadata or {})
    except (OSError, ValueError, pa.ArrowException):
        return False

"""What the end of a file's name says: CSV (comma, tab, gzip), Parquet, Feather or a sheet (xlsx)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from privmeasure.errors import ArgumentError

DELIMITERS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}
OTHERS: dict[str, Literal["parquet", "feather", "xlsx"]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".xlsx": "xlsx",
}
ENDINGS = ".csv, .tsv, .csv.gz, .tsv.gz, .parquet, .feather or .xlsx"


def kind_of(path: str | Path) -> Literal["csv", "parquet", "feather", "xlsx"]:
    """Return what kind of file a name stands for, or refuse an ending that stands for none."""
    stem, suffix = suffixes(Path(path))
    if suffix in OTHERS:
        return OTHERS[suffix]
    if suffix in DELIMITERS:
        return "csv"
    raise ArgumentError(f"The file {path} has the ending {stem!r}, which is none of {ENDINGS}. Rename or convert it.")


def suffixes(path: Any) -> tuple[str, str]:
    """Return the ending, and the one that tells the kind: .csv for .csv.gz; compressed Parquet is no kind of ours."""
    last, before = path.suffix.lower(), Path(path.stem).suffix.lower()
    return (before + last, before if before in DELIMITERS else "") if last == ".gz" else (last, last)


def ask_for_delimiter(names: Sequence[str]) -> str:
    """Return the question whether a header with one name was read with the wrong delimiter; empty if there is none.

    Examples:
        >>> ask_for_delimiter(["id;year"]), ask_for_delimiter(["id", "a;b"])
        ("Is the delimiter ';'? Say so, with --delimiter or delimiter=.", '')
    """
    found = next((mark for mark in ",;\t|" if mark in names[0]), None) if len(names) == 1 else None
    return "" if found is None else f"Is the delimiter {found!r}? Say so, with --delimiter or delimiter=."

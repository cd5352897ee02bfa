"""What commands share, and `sample` and `inspect` too: schemas and releases, outputs, rows. No data are opened here."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privmeasure.cli.options import split_names
from privmeasure.cli.terminal import progress
from privmeasure.errors import ArgumentError, SchemaError
from privmeasure.outputs import check_place, part_beside, put

if TYPE_CHECKING:
    from privmeasure.tables.schema import Schema
    from privmeasure.tables.texts import TextForm

STDOUT = Path("-")
"""The output that is no file."""
SQLITE = ("-journal", "-wal", "-shm")
"""Files that SQLite makes beside a ledger, and removes."""
NOT_PRIVATE = "this release is NOT PRIVATE: its noise came from a seed. It protects no one."


def open_schema(path: Path, columns: str | None = None) -> "Schema":
    """Read a schema, or the part of it that `--columns` asks for; what can never occur is checked too."""
    from privmeasure.tables.schema import Schema

    schema = Schema.from_toml(path)
    names = split_names(columns)
    chosen = schema if names is None else schema.only(names)
    if chosen.never:  # now, before anything is spent
        _check_never(path, chosen)
    return chosen


def _check_never(path: Path, schema: "Schema") -> None:
    from privmeasure.tables.facts import forbidden_pairs
    from privmeasure.tables.toml import key_lines

    try:
        forbidden_pairs(schema)
    except SchemaError as error:
        line = key_lines(path.read_text(encoding="utf-8-sig")).get(("never",), 1)
        raise SchemaError(*(f"{path.name}, line {line}: {problem}" for problem in error.problems)) from None


def open_release(path: Path) -> Any:
    """Read a release of a table, or of points."""
    from privmeasure.releases.load import load

    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist. Check the path of the release.")
    return load(path)


def check_out(path: Path, *, overwrite: bool, beside: Sequence[Path | None] = (), option: str = "--out") -> None:
    """Refuse an output that exists, cannot be written or is one of the other files, before anything is spent on it."""
    others = [other.resolve() for other in beside if other is not None and not path.is_dir()]
    if any(path.resolve() in (other, *(Path(f"{other}{end}") for end in SQLITE)) for other in others):
        raise ArgumentError(f"{path} would be written over another file of this command. Give every file its own path.")
    check_place(
        path,
        overwrite=overwrite,
        taken=f"{{path}} exists already. Give another {option}, or --overwrite to replace it.",
        closed="The folder {path.parent} cannot be written: choose another, or ask for access.",
    )


def check_release_out(
    path: Path, *, overwrite: bool, beside: Sequence[Path | None] = (), option: str = "--out"
) -> None:
    """Refuse a place that cannot keep a release, before anything is spent: as `check_out`, and a pipe.

    A pipe waits until another program reads it, and then the release is not there any more.
    """
    if path.is_fifo():
        raise ArgumentError(f"{option} {path} is a pipe, which keeps no release. Give the path of a file.")
    check_out(path, overwrite=overwrite, beside=beside, option=option)


def check_table_out(
    path: Path, *, overwrite: bool, beside: Sequence[Path | None] = (), json: bool = False, parts: bool = False
) -> None:
    """Refuse an output that is no kind of table, exists, or cannot be written, before anything is spent on it."""
    from privmeasure.tables.writing import check_kind, check_parts

    if path == STDOUT:
        if parts:
            raise ArgumentError("--rows-per-file writes a folder of files: give -o its name, such as rows.parquet.")
        if json:
            raise ArgumentError(
                "-o - writes rows to stdout, and so does --json its value: give -o a file, or no --json."
            )
        return
    if parts:
        inside = [other for other in beside if other is not None and other.resolve().is_relative_to(path.resolve())]
        if inside:  # the folder of the data themselves, perhaps
            raise ArgumentError(f"{path} would be written over another file of this command. Give another --out.")
        check_parts(path, overwrite=overwrite)
        return
    check_out(path, overwrite=overwrite, beside=beside)
    check_kind(path)


def write_rows(
    path: Path,
    release: Any,
    number: int | None,
    seed: int | None,
    form: "TextForm",
    *,
    overwrite: bool,
    shown: bool,
    where: str | None = None,
    rows_per_file: int | None = None,
    threads: int | None = None,
) -> int:
    """Write synthetic rows of a release, batch by batch, and return how many there are in the file or the folder.

    For stdout they are made as a file first: an error leaves no half table there.
    """
    from privmeasure.tables.writing import write_parts, write_table

    if path == STDOUT:
        with tempfile.TemporaryDirectory() as folder:
            whole = Path(folder) / "rows.csv"
            made = write_rows(
                whole, release, number, seed, form, overwrite=False, shown=shown, where=where, threads=threads
            )
            with whole.open("rb") as rows:
                shutil.copyfileobj(rows, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return made
    expected: int = release.plan.rows if number is None else number  # at most: a condition may leave fewer
    tables = _tables(release, number, seed, where, threads)
    with progress("write", shown=shown) as advance:
        if rows_per_file is not None:
            return write_parts(
                path,
                tables,
                form,
                overwrite=overwrite,
                progress=advance,
                rows_per_file=rows_per_file,
                rows=expected,
                threads=threads,
            )
        return write_table(path, tables, form, overwrite=overwrite, progress=advance, rows=expected, threads=threads)


def dates_in_pandas(path: Path, release: Any) -> str:
    """Return how pandas reads the dates of a Parquet file as dates, as the end of a sentence; empty if it has none."""
    import pyarrow.types as pt

    from privmeasure.tables.suffixes import kind_of

    if path == STDOUT or kind_of(path) != "parquet" or not hasattr(release, "schema"):
        return ""
    natural, layout = release.schema.natural_types, release.layout
    if not any(pt.is_date(type or natural[name]) for name, type in zip(layout.names, layout.types, strict=True)):
        return ""
    return f'; pandas reads its dates as dates with pd.read_parquet("{path}", dtype_backend="pyarrow")'


def _tables(
    release: Any, number: int | None, seed: int | None, where: str | None, threads: int | None
) -> Iterator[Any]:
    """Return the rows of a release as tables; points, from Python, have the columns x0, x1, ..."""
    if hasattr(release, "batches"):
        return iter(release.batches(number, seed=seed, where=where, threads=threads))
    if where is not None:
        raise ArgumentError("--where needs a release of a table, with named columns; this one is of points.")
    import numpy as np
    import pyarrow as pa

    def table(points: Any) -> Any:
        return pa.table({f"x{i}": column for i, column in enumerate(points.T)})

    if number == 0:
        return iter([table(np.empty((0, release.domain.width)))])
    return iter(release.blocks(number, seed=seed, then=table))


def write_text(path: Path, text: str) -> None:
    """Write a text file: beside its place first, so that no half file is ever left there."""
    with part_beside(path) as part:
        with part.open() as file:
            file.write(text.encode())
        put(part, path)


def deliver(text: str, out: Path | None, *, overwrite: bool, beside: Sequence[Path | None] = ()) -> None:
    """Write a text to a file, which is checked first, or to stdout."""
    if out is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        check_out(out, overwrite=overwrite, beside=beside)
        write_text(out, text)


def read_public_text(path: Path) -> str:
    """Read a text file, which is public."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError(f"{path} is not a text in UTF-8. Save it so.") from None

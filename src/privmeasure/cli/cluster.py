"""`--engine spark`: the session that counts and draws, and the folder that its executors write. PRIVATE."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from privmeasure.cli import options
from privmeasure.errors import ArgumentError
from privmeasure.outputs import ADDRESS, path_here

if TYPE_CHECKING:
    from privmeasure.synthesizer import Synthesizer

EVERY_CORE = "local[*]"
"""The master where none is named: all cores of this machine."""


class Cluster(NamedTuple):
    """Who does the work: this process, or Spark."""

    engine: options.Engine = None
    master: options.Master = None

    def check(self, data: str, out: str, *, kept: bool) -> None:
        """Refuse what does not go together, before anything is begun; `kept` says that the release has a place."""
        from privmeasure.sources.databases import is_database
        from privmeasure.tables.suffixes import kind_of

        if self.engine is None:
            if self.master is not None:
                raise ArgumentError("--master is for Spark: give --engine spark as well.")
            if ADDRESS.match(out):
                raise ArgumentError("Rows are written to an address by Spark alone: give --engine spark, or a path.")
            return
        if self.engine != "spark":
            raise ArgumentError(f"--engine must be spark, or left out, got {self.engine[:40]!r}.")
        if data == "-" or is_database(data):
            raise ArgumentError("With --engine spark the table must be files that all executors can read.")
        if out == "-" or kind_of(out) != "parquet":
            raise ArgumentError("With --engine spark the rows are a folder of Parquet files: give -o rows.parquet.")
        if path_here(out) is None:
            _check_apart(data, out)
            if not kept:
                raise ArgumentError("The release is one file, on this machine: give --release PATH, or --no-release.")

    @contextmanager
    def session(self) -> Iterator[Any]:
        """Give a session of Spark; None without --engine."""
        if self.engine is None:
            yield None
            return
        from privmeasure.sources.spark import own_session

        with own_session(self.master or EVERY_CORE) as session:
            yield session

    @staticmethod
    def check_rows(session: Any, out: str, *, overwrite: bool) -> None:
        """Refuse an address where no rows can be written, before anything is spent."""
        from privmeasure.releases.spark import check_address

        if session is not None and path_here(out) is None:
            check_address(session, out, overwrite=overwrite)


STORES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
"""Words for one store: pyarrow, which reads, and Hadoop, which writes, have their own."""


def _check_apart(data: str, out: str) -> None:
    """Refuse an address that is the one of the sensitive table, or lies in it, or around it."""
    if path_here(data) is not None:
        return
    from privmeasure.sources.folders import pattern_of

    read, written = _in_store(data), _in_store(out)
    meant = pattern_of(str(read))
    if (
        read.is_relative_to(written)
        or written.is_relative_to(read)
        or any(meant.fullmatch(str(place)) for place in (written, written / "part-00000.parquet"))
    ):
        raise ArgumentError(
            "The rows would be written over the table that is read, or among its files. Give another --out."
        )


def _in_store(address: str) -> PurePosixPath:
    """Return where an address leads, whatever word for the store it begins with; a password is no part of it."""
    store, _, rest = address.strip().partition("://")
    bucket, _, inside = rest.partition("?")[0].partition("/")
    user, at, host = bucket.rpartition("@")
    store = STORES.get(store.lower(), store.lower())
    return PurePosixPath(store, host if ":" in user else user + at + host, normpath("/" + unquote(inside)).lstrip("/"))


def write_by_executors(
    out: str,
    synthesizer: "Synthesizer",
    number: int | None,
    seed: int | None,
    *,
    overwrite: bool,
    rows_per_file: int | None,
) -> int:
    """Write synthetic rows into a folder of Parquet files, and return how many there are."""
    from privmeasure.releases.spark import write_address, write_folder

    frame = synthesizer.sample(number, seed=seed)
    if (folder := path_here(out)) is None:
        write_address(frame, out, overwrite=overwrite, rows_per_file=rows_per_file)
    else:
        write_folder(frame, folder, overwrite=overwrite, rows_per_file=rows_per_file)
    return synthesizer.release_.total if number is None else number

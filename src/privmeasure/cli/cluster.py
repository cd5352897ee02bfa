"""`--engine spark`: the session that counts and draws, and the folder that its executors write. PRIVATE."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from privmeasure.cli import options
from privmeasure.errors import ArgumentError
from privmeasure.outputs import ADDRESS

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
        if ADDRESS.match(out) and not kept:
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
    if ADDRESS.match(out):
        write_address(frame, out, overwrite=overwrite, rows_per_file=rows_per_file)
    else:
        write_folder(frame, Path(out), overwrite=overwrite, rows_per_file=rows_per_file)
    return synthesizer.release_.total if number is None else number

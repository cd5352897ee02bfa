"""`privmeasure synthesize`: fit and sample in one go."""

from pathlib import Path
from typing import Annotated

import typer

from privmeasure.cli import options
from privmeasure.cli.booking import Booking, Cost, fit_booked
from privmeasure.cli.cluster import Cluster, write_by_executors
from privmeasure.cli.missing import undecided
from privmeasure.cli.opening import check_outside, file_behind, opened
from privmeasure.cli.outcome import rows_written, save, show_outcome, stated
from privmeasure.cli.preparing import STDOUT, check_release_out, check_table_out, dates_in_pandas, write_rows
from privmeasure.cli.promise import Asked, Chosen, promise
from privmeasure.cli.reporting import ReportFile, check_page, page_along_the_way
from privmeasure.cli.terminal import Voice
from privmeasure.errors import ArgumentError
from privmeasure.outputs import path_here


def synthesize(
    *,
    data: options.DataPlace,
    asked: Asked,
    out: options.OutPlace,
    release: Annotated[
        Path | None,
        typer.Option("--release", help="Where the release goes; without it beside the rows, as OUT.release."),
    ] = None,
    no_release: Annotated[
        bool, typer.Option("--no-release", help="Keep no release: more rows will then cost epsilon again.")
    ] = False,
    number: options.RowsOption = None,
    seed: options.Seed = None,
    rows: options.PublicRows = None,
    chosen: Chosen,
    written: options.Written,
    newlines_in_cells: options.NewlinesInCells = False,
    rows_per_file: options.RowsPerFile = None,
    booking: Booking,
    cluster: Cluster,
    report: ReportFile = None,
    overwrite: options.Overwrite = False,
    threads: options.Threads = None,
    voice: Voice,
) -> None:
    """Turn a sensitive table into a synthetic one: `fit` and `sample` in one go. Spends epsilon, once.

    Column names, their order and types come out as they went in. The release is written beside the rows, as
    OUT.release: from it more rows, later, cost nothing, while a second run spends epsilon again. With `-o -` the rows
    go to stdout, all words to stderr, and one of --release and --no-release must be given. With `--engine spark` a
    cluster counts the files and draws the rows, into a folder of Parquet files.

    Examples:

      privmeasure synthesize people.csv --schema people.toml --epsilon 1 --neighbours add-remove -o public.csv
      privmeasure synthesize people.csv -s people.toml -e 1 --neighbours replace -o s.parquet --release s.release -n 100
    """
    form = written.form(newlines_in_cells=newlines_in_cells)
    declared, synthesizer = promise(asked, chosen, rows=rows, threads=threads)
    form.check_letters(declared)  # before anything is spent
    cluster.check(data, out, kept=release is not None or no_release)
    rows_at = path_here(out)  # None: elsewhere, and no file of ours can be there
    place = _release_place(rows_at or Path(out), release, no_release=no_release)
    others = [file_behind(data), asked.schema, booking.ledger]
    check_outside(data, rows_at, place, report)
    if rows_at is not None:
        parts = rows_per_file is not None or cluster.engine is not None
        check_table_out(rows_at, overwrite=overwrite, beside=[*others, place], json=voice.json, parts=parts)
    if place is not None:
        check_release_out(place, overwrite=overwrite, beside=others, option="--release")
    check_page(report, overwrite=overwrite, beside=[*others, place, None if rows_at == STDOUT else rows_at])
    cost = Cost(synthesizer, booking, place, overwrite)
    with stated(cost), cluster.session() as session:
        cluster.check_rows(session, out, overwrite=overwrite)
        with opened(data) as table:
            fit_booked(cost, table, form, shown=voice.in_words, spark=session)
        # the release first: what epsilon bought is safe, whatever happens to the rows
        warnings = cost.unsettled() if place is None else save(cost)
        warnings += undecided(asked.schema, declared)
        with rows_written(Path(out)):
            if session is not None:
                made = write_by_executors(
                    out, synthesizer, number, seed, overwrite=overwrite, rows_per_file=rows_per_file
                )
            else:
                made = write_rows(
                    Path(out),
                    synthesizer.release_,
                    number,
                    seed,
                    form,
                    overwrite=overwrite,
                    shown=voice.in_words,
                    rows_per_file=rows_per_file,
                    threads=threads,
                )
        page, remarks = page_along_the_way(synthesizer.release_, report, place, shown=voice.in_words)
        files = {"out": out, "rows": made, "release": None if place is None else str(place)}
        files |= {} if page is None else {"report": str(page)}
        words = f"{out}: {made:,} synthetic rows{dates_in_pandas(Path(out), synthesizer.release_)}"
        words += "" if place is None else f"; the release, for more rows: {place}"
        words += "" if page is None else f"; a page about it: {page}"
        show_outcome(
            synthesizer, files, words, cost, voice, warnings=[*warnings, *remarks], to_stderr=rows_at == STDOUT
        )


def _release_place(out: Path, release: Path | None, *, no_release: bool) -> Path | None:
    """Return where the release goes: where it is told to, beside the rows, or nowhere."""
    if release is not None and no_release:
        raise ArgumentError(
            "--release and --no-release exclude each other: say where the release goes, or that none is."
        )
    if out == STDOUT and release is None and not no_release:
        raise ArgumentError(
            "With -o - there is no place beside the rows for the release, without which more rows cost epsilon again: "
            "give --release PATH, or --no-release."
        )
    if no_release:
        return None
    return release or out.with_name(f"{out.name}.release")

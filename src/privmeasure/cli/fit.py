"""`privmeasure fit`: spend epsilon once, write one release file."""

from pathlib import Path
from typing import Annotated

import typer

from privmeasure.cli import options
from privmeasure.cli.booking import Booking, Cost, fit_booked
from privmeasure.cli.missing import missing_cells, show_missing_cells, undecided
from privmeasure.cli.opening import check_columns_of, check_outside, file_behind, opened, told
from privmeasure.cli.outcome import save, show_outcome, stated
from privmeasure.cli.preparing import STDOUT, check_release_out
from privmeasure.cli.promise import Asked, Chosen, promise
from privmeasure.cli.reporting import ReportFile, check_page, page_along_the_way
from privmeasure.cli.terminal import Voice


def fit(
    *,
    data: options.DataPlace,
    asked: Asked,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The release file to write.")] = None,
    rows: options.PublicRows = None,
    chosen: Chosen,
    written: options.Written,
    newlines_in_cells: options.NewlinesInCells = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the schema and the header of the data, and stop: nothing is spent.")
    ] = False,
    booking: Booking,
    report: ReportFile = None,
    overwrite: options.Overwrite = False,
    threads: options.Threads = None,
    voice: Voice,
) -> None:
    """Spend epsilon on a table, once, and write a release that anyone may see.

    A release is one file; `privmeasure sample` makes rows of it, as many and as often as you like, at no further cost.
    Each run of fit spends epsilon again: two releases of the same data add up. A ledger keeps count of that; without
    one, the last line says what was spent and that it is not recorded. An error ends with what the run has cost.

    Examples:

      privmeasure fit people.csv --schema people.toml --epsilon 1 --neighbours add-remove --dry-run
      privmeasure fit people.csv --schema people.toml --epsilon 1 --neighbours add-remove -o people.release
      privmeasure fit 'sqlite:people.db?table=people' -s people.toml -e 1 --neighbours add-remove -o base.release
      privmeasure fit people.csv -s people.toml -e 1/2 --neighbours add-remove -o half.release \\
        --ledger book.sqlite --dataset people
    """
    form = written.form(newlines_in_cells=newlines_in_cells)
    declared, synthesizer = promise(asked, chosen, rows=rows, threads=threads)
    if dry_run:
        with opened(data) as table:
            check_columns_of(table, declared, form)
        words = f"{told(data)} has the columns that the schema declares. Nothing was read but the header."
        warnings = undecided(asked.schema, declared)
        value = {"dry_run": True, "fits": True, "columns": list(declared.data)}
        voice.answer(value | {"missing_cells": missing_cells(declared), "warnings": warnings}, words)
        show_missing_cells(declared, voice)
        voice.warn(*warnings)
        return
    if out is None:
        raise typer.BadParameter("a release needs a place: give --out, or --dry-run to check only", param_hint="--out")
    if out == STDOUT:
        raise typer.BadParameter("a release is kept: give --out the path of a file", param_hint="--out")
    others = [file_behind(data), asked.schema, booking.ledger]
    check_outside(data, out, report)
    check_release_out(out, overwrite=overwrite, beside=others)
    check_page(report, overwrite=overwrite, beside=[*others, out])
    cost = Cost(synthesizer, booking, out, overwrite)
    with stated(cost):
        with opened(data) as table:
            fit_booked(cost, table, form, shown=voice.in_words)
        warnings = [*save(cost), *undecided(asked.schema, declared)]
        page, remarks = page_along_the_way(synthesizer.release_, report, out, shown=voice.in_words)
        files = {"release": str(out)} | ({} if page is None else {"report": str(page)})
        show_outcome(synthesizer, files, " and ".join(files.values()), cost, voice, warnings=[*warnings, *remarks])

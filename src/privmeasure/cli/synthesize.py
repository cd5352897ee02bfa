"""`privmeasure synthesize`: fit and sample in one go."""

from pathlib import Path
from typing import Annotated

import typer

from privmeasure.cli import options
from privmeasure.cli.booking import fit_booked
from privmeasure.cli.outcome import kept, show_outcome
from privmeasure.cli.preparing import check_out, check_table_out, write_rows
from privmeasure.cli.promise import promised


def synthesize(
    data: options.Data,
    schema: options.SchemaFile,
    epsilon: options.Epsilon,
    neighbours: options.NeighboursOption,
    out: options.Out,
    release: Annotated[
        Path | None, typer.Option("--release", help="Keep the release as well: sampling from it again is free.")
    ] = None,
    number: options.Rows = None,
    seed: options.Seed = None,
    rows: options.PublicRows = None,
    rows_per_person: options.RowsPerPerson = 1,
    columns: options.Columns = None,
    mechanism: options.Mechanism = "auto",
    depth: options.Depth = None,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    note: options.Note = "",
    overwrite: options.Overwrite = False,
    threads: options.Threads = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Turn a sensitive table into a synthetic one: `fit` and `sample` in one go. Spends epsilon, once.

    Column names, their order and types come out as they went in. Keep the release with --release: more rows, later,
    cost nothing, while a second run spends epsilon again.

    Examples:

      privmeasure synthesize people.csv --schema people.toml --epsilon 1 --neighbours add-remove -o public.csv
      privmeasure synthesize people.csv -s people.toml -e 1 --neighbours replace -o s.parquet --release s.release -n 100
    """
    _, synthesizer = promised(
        schema,
        columns=columns,
        epsilon=epsilon,
        neighbours=neighbours,
        rows_per_person=rows_per_person,
        mechanism=mechanism,
        depth=depth,
        rows=rows,
        threads=threads,
    )
    check_table_out(out, overwrite=overwrite, beside=[data, schema, ledger, release])
    if release is not None:
        check_out(release, overwrite=overwrite, beside=[data, schema, ledger])
    shown = not (json or quiet)
    fit_booked(synthesizer, data, ledger=ledger, dataset=dataset, note=note, shown=shown)
    if release is not None:  # first: what epsilon bought is safe, whatever happens to the rows
        with kept(release, synthesizer, ledger=ledger):
            synthesizer.save(release)
    with kept(out, synthesizer, ledger=ledger, release=release):
        made = write_rows(out, synthesizer.release_, number, seed, overwrite=overwrite, shown=shown)
    written = {"out": str(out), "rows": made, "release": None if release is None else str(release)}
    show_outcome(synthesizer, written, f"{out}: {made:,} synthetic rows", json=json, quiet=quiet)

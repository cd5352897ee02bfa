"""`privmeasure fit`: spend epsilon once, write one release file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from privmeasure.cli import options, terminal
from privmeasure.cli.booking import fit_booked
from privmeasure.cli.opening import check_header
from privmeasure.cli.outcome import kept, show_outcome
from privmeasure.cli.preparing import check_out
from privmeasure.cli.promise import promised


def fit(
    data: options.Data,
    schema: options.SchemaFile,
    epsilon: options.Epsilon,
    neighbours: options.NeighboursOption,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The release file to write.")] = None,
    rows: options.PublicRows = None,
    rows_per_person: options.RowsPerPerson = 1,
    columns: options.Columns = None,
    mechanism: options.Mechanism = "auto",
    depth: options.Depth = None,
    newlines_in_cells: options.NewlinesInCells = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the schema and the header of the data, and stop: nothing is spent.")
    ] = False,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    note: options.Note = "",
    user: options.User = None,
    overwrite: options.Overwrite = False,
    threads: options.Threads = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Spend epsilon on a table, once, and write a release that anyone may see.

    A release is one file; `privmeasure sample` makes rows of it, as many and as often as you like, at no further cost.
    Each run of fit spends epsilon again: two releases of the same data add up. A ledger keeps count of that; without
    one, the last line says what was spent and that nobody counts it.

    Examples:

      privmeasure fit people.csv --schema people.toml --epsilon 1 --neighbours add-remove --dry-run
      privmeasure fit people.csv --schema people.toml --epsilon 1 --neighbours add-remove -o people.release
      privmeasure fit people.csv -s people.toml -e 1/2 --neighbours add-remove -o half.release \\
        --ledger book.sqlite --dataset people
    """
    declared, synthesizer = promised(
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
    if dry_run:
        _check(data, declared, newlines_in_cells, json=json, quiet=quiet)
        return
    if out is None:
        raise typer.BadParameter("a release needs a place: give --out, or --dry-run to check only", param_hint="--out")
    check_out(out, overwrite=overwrite, beside=[data, schema, ledger])
    cost = fit_booked(
        synthesizer,
        data,
        newlines_in_cells=newlines_in_cells,
        ledger=ledger,
        dataset=dataset,
        note=note,
        user=user,
        shown=not (json or quiet),
    )
    with kept(out, synthesizer, ledger=ledger):
        synthesizer.save(out)
    warnings = cost.record(out)
    show_outcome(synthesizer, {"release": str(out)}, str(out), cost, warnings=warnings, json=json, quiet=quiet)


def _check(data: Path, schema: Any, newlines_in_cells: bool, *, json: bool, quiet: bool) -> None:
    check_header(data, schema, newlines_in_cells=newlines_in_cells)
    if json:
        terminal.emit({"dry_run": True, "fits": True, "columns": list(schema.data)})
    else:
        terminal.tell(f"{data} has the columns that the schema declares. Nothing was read but the header.", quiet=quiet)

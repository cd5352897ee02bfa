"""`privmeasure evaluate`: compare a synthetic table with the real one. What it says is confidential."""

from pathlib import Path
from typing import Annotated, Any

import typer

from privmeasure.cli import options, terminal
from privmeasure.cli.opening import opened, read_points
from privmeasure.cli.preparing import NOT_PRIVATE, open_release, open_schema, write_text
from privmeasure.cli.reporting import USUAL_RUNS, HtmlFile, Runs, check_page, estimate
from privmeasure.errors import ArgumentError


def evaluate(
    *,
    data: options.Data,
    synthetic: Annotated[
        Path, typer.Argument(help="A synthetic table, or a release to sample from.", show_default=False)
    ],
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", help="The schema; a release brings its own.", show_default=False)
    ] = None,
    columns: options.Columns = None,
    written: options.Written,
    newlines_in_cells: options.NewlinesInCells = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="For the random directions and resamples.")] = 0,
    html: HtmlFile = None,
    runs: Runs = USUAL_RUNS,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Compare a synthetic table, or a release, with the real one. CONFIDENTIAL: the figures depend on the real rows.

    The largest differences come first, one sentence each: common values, missing values, mean, quantiles and
    distinct values of each column, and the most frequent number within each category. `--json` and `--html` have all.
    W1 is the mean distance that values must move, as a share of the column's range; total variation is the share of
    rows in a wrong bin, by column and by pair. Sampling baseline: the score of a resample of the real table; no table
    can be expected to be better, and only differences well above it are listed. `--html` adds a page with overlays,
    pairs side by side, W1 with what was guaranteed, certified and estimated (from --runs), correlations and scores;
    its name, too, says CONFIDENTIAL.

    Examples:

      privmeasure evaluate people.csv synthetic.csv --schema people.toml
      privmeasure evaluate people.csv people.release --json
      privmeasure evaluate people.csv people.release --html people.CONFIDENTIAL.html
    """
    from privmeasure.metrics.fidelity import REAL_TABLE_STAMP, fidelity
    from privmeasure.releases.load import is_release

    form = written.form(newlines_in_cells=newlines_in_cells)
    release: Any = open_release(synthetic) if is_release(synthetic) else None
    own = getattr(release, "schema", None)
    if release is not None and own is None:
        raise ArgumentError(f"{synthetic} is a release of points, not of a table: compare it in Python.")
    if schema is not None:
        declared = open_schema(schema, columns)
    elif own is not None:
        names = options.split_names(columns)
        declared = own if names is None else own.only(names)
    else:
        raise ArgumentError("--schema is needed to compare two tables: it says what the columns are.")
    page = None if html is None else _page_place(html, overwrite=overwrite, beside=[data, synthetic, schema])
    with terminal.progress("comparing", shown=not json), opened(data) as table:
        real = read_points(table, declared, form)
        other = (
            read_points(synthetic, declared, form)
            if release is None
            else declared.encode(release.sample(seed=seed).combine_chunks())
        )
        found = fidelity(real, other, declared, seed=seed)
    if page is not None:
        from privmeasure.report.confidential import comparison_page

        typical = None if release is None else estimate(release, runs, shown=not json)
        with terminal.progress("drawing", shown=not json):
            text = comparison_page(real, other, declared, found, release=release, typical=typical, seed=seed)
        write_text(page, text)
    warnings = [NOT_PRIVATE] if release is not None and not release.private else []
    if json:
        private = None if release is None else release.private  # of a table nobody can say
        where = {} if page is None else {"html": str(page)}
        terminal.emit(found.to_json() | {"private": private, "warnings": warnings} | where)
        return
    terminal.Voice().warn(*warnings)
    print(REAL_TABLE_STAMP)
    _show(found)
    print(f"Compared with {found.compared_with}.")
    if page is not None:
        print(f"{page} written: confidential, as its name says.\n")
    print(REAL_TABLE_STAMP)


def _page_place(html: Path, *, overwrite: bool, beside: list[Path | None]) -> Path:
    """Return where the page goes, with a name that says what it is, or refuse it before any work is done."""
    from privmeasure.report.confidential import confidential_name

    place = confidential_name(html)
    check_page(place, overwrite=overwrite, beside=beside, option="--html")
    return place


def _show(found: Any) -> None:
    from privmeasure.metrics.fidelity import NO_DIFFERENCE

    rows = [[str(one), *one.shown[2:]] for one in found.largest]
    left = sum(one.above_baseline for one in found.differences) - len(rows)
    if rows:
        terminal.table("\nWhat differs most", ["in words", "difference", "baseline"], rows)
    else:
        print(f"\n{NO_DIFFERENCE}")
    if left:
        print(f"{left:,} more differences are above the baseline: --json and --html list them.\n")
    rows = [[name, f"{figure.value:.4f}", f"{figure.floor:.4f}"] for name, figure in found.figures]
    terminal.table("The whole table", ["figure", "value", "baseline"], rows)
    heads = ["column", "W1", "baseline", "total variation", "baseline"]
    rows = [
        [c.name, *(f"{v:.4f}" for v in (c.w1.value, c.w1.floor, c.variation.value, c.variation.floor))]
        for c in found.columns
    ]
    terminal.table("Columns", heads, rows)
    worst = sorted(found.pairs, key=lambda pair: -pair.variation.value)[:10]
    rows = [[p.first, p.second, f"{p.variation.value:.4f}", f"{p.variation.floor:.4f}"] for p in worst]
    if rows:
        terminal.table("The pairs that differ most", ["column", "column", "total variation", "baseline"], rows)

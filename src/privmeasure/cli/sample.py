"""`privmeasure sample`: rows from a release. This file cannot reach data, counts or sources."""

from typing import Annotated

import typer

from privmeasure.cli import options
from privmeasure.cli.preparing import NOT_PRIVATE, STDOUT, check_table_out, dates_in_pandas, open_release, write_rows
from privmeasure.cli.terminal import Voice


def sample(
    *,
    release: options.ReleaseFile,
    out: options.Out,
    number: options.RowsOption = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="CONDITION", help="Only rows like \"sex = 'F' and age >= 30\"."),
    ] = None,
    seed: options.Seed = None,
    written: options.Written,
    rows_per_file: options.RowsPerFile = None,
    overwrite: options.Overwrite = False,
    voice: Voice,
) -> None:
    """Write synthetic rows from a release: free, any number, in bounded memory.

    The suffix of the output chooses the format: .csv, .tsv (also .gz), .parquet, .feather or .xlsx; `-o -` writes CSV
    to stdout. Without -n there are as many rows as the release stands for. --where asks for rows that meet a
    condition: they have the law of all rows given it.

    Examples:

      privmeasure sample people.release -o synthetic.csv
      privmeasure sample people.release -o thousand.parquet -n 1000 --seed 7
      privmeasure sample people.release -o parts.parquet -n 100000 --rows-per-file 25000
      privmeasure sample people.release -o women.csv -n 500 --where "sex = 'F'"
    """
    check_table_out(out, overwrite=overwrite, beside=[release], json=voice.json, parts=rows_per_file is not None)
    loaded = open_release(release)
    warnings = [] if loaded.private else [NOT_PRIVATE]
    voice.warn(*warnings)
    rows = write_rows(
        out,
        loaded,
        number,
        seed,
        written.form(),
        overwrite=overwrite,
        shown=voice.in_words,
        where=where,
        rows_per_file=rows_per_file,
    )
    value = {"out": str(out), "rows": rows, "private": loaded.private, "warnings": warnings}
    words = f"{rows:,} synthetic rows written to {out}{dates_in_pandas(out, loaded)}"
    voice.answer(value, words, to_stderr=out == STDOUT)

"""`privmeasure report`: a page about a release, safe to publish. It reads the release alone."""

from pathlib import Path
from typing import Annotated

import typer

from privmeasure.cli import options
from privmeasure.cli.preparing import NOT_PRIVATE, open_release
from privmeasure.cli.reporting import USUAL_RUNS, Runs, check_page, write_release_page
from privmeasure.cli.terminal import Voice


def write_report(
    *,
    release: options.ReleaseFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write; without it RELEASE.html.", show_default=False),
    ] = None,
    runs: Runs = USUAL_RUNS,
    overwrite: options.Overwrite = False,
    voice: Voice,
) -> None:
    """Write a page about a release: what is promised, how far it may be from the data, every column, pairs, budgets.

    One HTML file that opens from disk, prints, and needs no network and no script. It follows from the release alone,
    so it is as safe to publish. Bands come from running the mechanism again on released rows (--runs), which costs no
    epsilon: they are estimates, not bounds. Needs the extra `report` of the package.

    Examples:

      privmeasure report people.release -o report.html
      privmeasure report people.release -o quick.html --runs 0
    """
    loaded = open_release(release)
    place = out or release.with_name(f"{release.name}.html")
    check_page(place, overwrite=overwrite, beside=[release], option="--out")
    write_release_page(loaded, place, name=release.name, runs=runs, shown=voice.in_words)
    warnings = [] if loaded.private else [NOT_PRIVATE]
    voice.answer({"report": str(place), "private": loaded.private, "warnings": warnings}, f"{place} written")
    voice.warn(*warnings)

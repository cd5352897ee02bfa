"""Pages along the way: what `report`, `fit`, `synthesize`, `plan` and `evaluate` share that write one."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from privmeasure.cli.preparing import check_out, write_text
from privmeasure.cli.terminal import progress

ReportFile = Annotated[
    Path | None,
    typer.Option("--report", help="Write a page about the release, safe to publish, as HTML.", show_default=False),
]
HtmlFile = Annotated[Path | None, typer.Option("--html", help="Write it as a page as well.", show_default=False)]
Runs = Annotated[
    int,
    typer.Option("--runs", min=0, max=1000, help="Runs of the mechanism on released rows, for bands; 0 for none."),
]
USUAL_RUNS = 20
MOST_ALONG_THE_WAY = 1 << 24
"""Cells of a released table up to which `fit` and `synthesize` estimate its typical error: a minute or so."""


def check_page(
    path: Path | None, *, overwrite: bool, beside: Sequence[Path | None] = (), option: str = "--report"
) -> None:
    """Refuse a page that cannot be made or put in its place, before anything is spent."""
    if path is None:
        return
    from privmeasure.report.canvas import check_pictures

    check_pictures()
    check_out(path, overwrite=overwrite, beside=beside, option=option)


def write_release_page(release: Any, path: Path, *, name: str, runs: int, shown: bool) -> None:
    """Write the page of a release, with bands from so many runs."""
    from privmeasure.report.public import release_page

    typical = estimate(release, runs, shown=shown)
    with progress("drawing", shown=shown):
        page = release_page(release, typical=typical, name=name)
    write_text(path, page)


def estimate(release: Any, runs: int, *, shown: bool) -> Any:
    """Return the typical error of a release, or None without runs. It reads the release alone."""
    from privmeasure.typical import typical_error

    if runs < 2:
        return None
    with progress("typical error", shown=shown) as advance:
        return typical_error(release, runs, progress=advance)


def page_along_the_way(
    release: Any, path: Path | None, kept: Path | None, *, shown: bool
) -> tuple[Path | None, list[str]]:
    """Write the page of a release that was just made and kept; return where, and what there is to warn of.

    What goes wrong is a warning and no error: epsilon is spent, and the release is there.
    """
    if path is None:
        return None, []
    name = "the.release" if kept is None else kept.name
    width = len(release.layout.names) if hasattr(release, "layout") else release.domain.width
    runs = USUAL_RUNS if release.total * width <= MOST_ALONG_THE_WAY else 0
    again = "" if kept is None else f" Make it with `privmeasure report {shlex.quote(str(kept))}`, for free."
    try:
        write_release_page(release, path, name=name, runs=runs, shown=shown)
    except Exception as error:  # whatever it is: the release is public, and safe
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
        return None, [f"the report {path} was not written ({reason}); the release is not touched by that.{again}"]
    late = f"the report {path} has no typical error: there are many rows, and it takes minutes.{again}"
    return path, [] if runs else [late]

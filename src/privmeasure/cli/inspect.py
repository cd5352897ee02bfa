"""`privmeasure inspect`: what a release says about itself. This file cannot reach data, counts or engines."""

from typing import Annotated, Any

import typer

from privmeasure.cli import options, terminal
from privmeasure.cli.preparing import read_release
from privmeasure.errors import ArgumentError


def inspect(
    release: options.ReleaseFile,
    certificate: Annotated[
        bool,
        typer.Option(
            "--certificate/--no-certificate",
            help="How close this very release is, by what was released: takes a few seconds.",
        ),
    ] = True,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show what a release says about itself: its promise, what was measured, its columns, its guarantee.

    The guarantee was known before anything was measured. The certificate is computed from the released noisy counts,
    and is usually far below it. Everything shown is public: it was paid for when the release was made.

    Examples:

      privmeasure inspect people.release
      privmeasure inspect people.release --json --no-certificate
    """
    from privmeasure.resolution import resolutions

    loaded = read_release(release)
    schema = getattr(loaded, "schema", None)  # releases of points, made in Python, have none
    columns = [] if schema is None else resolutions(schema, loaded.plan)
    certified = _certificate(loaded, shown=not (json or quiet)) if certificate else None
    if json:
        terminal.emit(
            {
                "private": loaded.private,
                "plan": loaded.plan.to_json(),
                "guarantee": loaded.plan.guarantee,
                "certificate": None if certified is None else certified.to_json(),
                "columns": [column.to_json() for column in columns],
                "schema": None if schema is None else schema.to_json(),
            }
        )
        return
    if not loaded.private:
        terminal.warn("this release is NOT PRIVATE: its noise came from a seed. It protects no one.", quiet=quiet)
    terminal.tell(str(loaded.plan), quiet=quiet)
    if certified is not None:
        terminal.tell(str(certified), quiet=quiet)
    if columns and not quiet:
        lines = [[column.name, f"{column.cuts}", column.text] for column in columns]
        terminal.table("\nHow finely each column was told apart", ["column", "cuts", "resolved to"], lines)


def _certificate(release: Any, *, shown: bool) -> Any:
    """Return the certificate, or None for a release that does not hold what it needs.

    Many columns share the chance beta, and each needs a thousandth of it: beyond 49 columns it grows with them.
    """
    measured = sum(1 for column in getattr(release.plan, "columns", ()) if column.levels)
    beta = 0.05 if measured < 50 else (measured // 10 + 1) / 100
    with terminal.progress("certifying", shown=shown):
        try:
            return release.certificate(beta)
        except ArgumentError:
            return None

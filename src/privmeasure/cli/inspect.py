"""`privmeasure inspect`: what a release says about itself. This file cannot reach data, counts or sources."""

from typing import Annotated, Any

import typer

from privmeasure.cli import options, terminal
from privmeasure.cli.preparing import NOT_PRIVATE, open_release
from privmeasure.errors import ArgumentError


def inspect(
    *,
    release: options.ReleaseFile,
    certificate: Annotated[
        bool,
        typer.Option(
            "--certificate/--no-certificate",
            help="How close this very release is, by what was released: takes a few seconds.",
        ),
    ] = True,
    voice: terminal.Voice,
) -> None:
    """Show what a release says about itself: its promise, what was measured, its columns, its guarantee.

    The guarantee was known before anything was measured. The certificate is computed from the released noisy counts,
    and is usually far below it. Everything shown is public: it was paid for when the release was made.

    Examples:

      privmeasure inspect people.release
      privmeasure inspect people.release --json --no-certificate
    """
    from privmeasure.ledger import schema_digest
    from privmeasure.tables.advice import resolutions

    loaded = open_release(release)
    schema = getattr(loaded, "schema", None)  # releases of points, made in Python, have none
    columns = [] if schema is None else resolutions(schema, loaded.plan)
    certified = _certificate(loaded, shown=voice.in_words) if certificate else None
    digest = None if schema is None else schema_digest(schema.to_json())
    if voice.json:
        terminal.emit(
            {
                "private": loaded.private,
                "id": None if loaded.origin is None else loaded.origin.id,
                "version": None if loaded.origin is None else loaded.origin.version,
                "schema_digest": digest,
                "plan": loaded.plan.to_json(),
                "guarantee": loaded.plan.guarantee,
                "certificate": None if certified is None else certified.to_json(),
                "columns": [column.to_json() for column in columns],
                "schema": None if schema is None else schema.to_json(),
            }
        )
        return
    if not loaded.private:
        voice.warn(NOT_PRIVATE)
    voice.tell(str(loaded.plan))
    voice.tell(_identity(loaded.origin, digest))
    if certified is not None:
        voice.tell(str(certified))
    if columns and voice.in_words:
        lines = [[column.name, f"{column.cuts}", column.text] for column in columns]
        terminal.table("\nHow finely each column was told apart", ["column", "cuts", "resolved to"], lines)


def _identity(origin: Any, digest: str | None) -> str:
    """Say which release it is, what made it, and which schema it was made with: what a ledger's entry says of it."""
    id_, version = ("unknown: an older version made it",) * 2 if origin is None else (origin.id, origin.version)
    return f"id         {id_}\nversion    {version}" + ("" if digest is None else f"\nschema     {digest}")


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

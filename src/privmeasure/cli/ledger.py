"""`privmeasure ledger`: what was spent on which data set."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privmeasure.cli import options, terminal
from privmeasure.cli.exporting import to_csv, to_json
from privmeasure.cli.preparing import deliver
from privmeasure.errors import ArgumentError

if TYPE_CHECKING:
    from fractions import Fraction

    from privmeasure.ledger import Account, Entry, Raise

ledger_commands = typer.Typer(
    no_args_is_help=True,
    help="What was spent on which data set: an SQLite file that refuses to pass a cap.\n\n"
    "Whoever sees two releases of the same data can combine them, so their epsilons add up. A ledger adds them "
    "exactly, for every data set that you name, and `fit` asks it before the data are opened.",
)

Book = Annotated[Path, typer.Argument(help="The ledger file.", show_default=False)]
Name = Annotated[str, typer.Argument(help="The name of the data set: yours, not a path.", show_default=False)]


def open_account(
    *,
    book: Book,
    dataset: Name,
    cap: Annotated[str, typer.Option("--cap", help="The most epsilon that all releases together may spend.")],
    neighbours: options.NeighboursOption,
    rows_per_person: options.RowsPerPerson = 1,
    delta: Annotated[
        str,
        typer.Option("--delta", help="The most that the deltas of all releases may add up to. 0: all must be pure."),
    ] = "0",
    voice: terminal.Voice,
) -> None:
    """Open the account of a data set, with a cap. Makes the file if there is none.

    Names are compared without regard to case and spaces: "Survey 2024 " is the account "survey 2024".

    Examples:

      privmeasure ledger open book.sqlite people --cap 2 --neighbours add-remove
      privmeasure ledger open laptop.sqlite people --cap 2 --neighbours add-remove
    """
    from privmeasure.ledger import Ledger

    account = Ledger(book).open_account(
        dataset,
        cap=options.read_epsilon(cap, "cap"),
        neighbours=options.read_neighbours(neighbours),
        rows_per_person=rows_per_person,
        delta=options.read_delta(delta),
    )
    also = f", delta to {delta}" if account.delta else ""
    voice.answer(account.to_json(), f"{account.dataset!r} is open: epsilon may add up to {cap}{also}.")


def show(book: Book, dataset: Name, json: options.Json = False) -> None:
    """Show what was spent on a data set, what is left, every entry, and how its cap was raised.

    An entry that is "pending" belongs to a run that goes on or was killed: it counts. `privmeasure ledger close`
    settles it, if its release was saved.

    Examples:

      privmeasure ledger show book.sqlite people
    """
    from privmeasure.ledger import Ledger, fraction_text

    ledger = Ledger(book)
    account = ledger.account(dataset)
    entries, raises = ledger.history(account.dataset), ledger.raises(account.dataset)
    spent, left = ledger.spent(account.dataset), ledger.remaining(account.dataset)
    collisions, deltas = _collisions(ledger.collisions()), ledger.spent_delta(account.dataset)
    warnings = [*collisions, *_over(account, spent, deltas)]
    if json:
        value = account.to_json() | {"spent": str(spent), "remaining": str(left), "spent_delta": str(deltas)}
        value |= {"entries": [entry.to_json() for entry in entries], "raises": [one.to_json() for one in raises]}
        terminal.emit(value | {"warnings": warnings})
        return
    terminal.Voice().warn(*warnings)
    print(
        f"{account.dataset!r}: {fraction_text(spent)} of {fraction_text(account.cap)} is spent, {fraction_text(left)} "
        f"is left (neighbours: {account.neighbours}, up to {account.rows_per_person} rows per person"
        + (f"; delta: {fraction_text(deltas)} of {fraction_text(account.delta)}" if account.delta or deltas else "")
        + ").\n"
        "Whoever sees all releases below sees no more than one release at the sum of what counts."
    )
    _show_entries(entries)
    if raises:
        _show_raises(raises)


def list_accounts(book: Book, json: options.Json = False) -> None:
    """List the data sets of a ledger: cap, spent, left.

    Examples:

      privmeasure ledger list book.sqlite
    """
    from privmeasure.ledger import Ledger, fraction_text, names
    from privmeasure.ledger.records import total, total_delta

    contents = Ledger(book).contents()
    sums = [(a, total(entries, a.delta), total_delta(entries)) for a, entries, _ in contents.by_account()]
    collisions = names.collisions(contents.accounts)
    clashes = {name: [n for n in group if n != name] for group in collisions for name in group}
    if json:
        more = [
            {"spent": str(s), "remaining": str(a.cap - s), "collides_with": clashes.get(a.dataset, [])}
            for a, s, _ in sums
        ]
        terminal.emit([a.to_json() | extra for (a, *_), extra in zip(sums, more, strict=True)])
        return
    terminal.Voice().warn(*_collisions(collisions), *(line for found in sums for line in _over(*found)))
    lines = [[a.dataset, a.neighbours, *map(fraction_text, (a.cap, s, a.cap - s))] for a, s, _ in sums]
    terminal.table("", ["data set", "neighbours", "cap", "spent", "left"], lines)


def raise_cap(
    *,
    book: Book,
    dataset: Name,
    cap: Annotated[str, typer.Option("--cap", help="The new cap, above the present one.")],
    reason: Annotated[str, typer.Option("--reason", help="Why: it is kept, and shown to whoever asks.")],
    user: options.User = None,
    voice: terminal.Voice,
) -> None:
    """Raise the cap of a data set. Who did it, when, from what, to what and why is kept. A cap is never lowered.

    Examples:

      privmeasure ledger raise book.sqlite people --cap 3 --reason "approved by the board on 3 May"
    """
    from privmeasure.ledger import Ledger, fraction_text

    raised = Ledger(book).raise_cap(dataset, cap=options.read_epsilon(cap, "cap"), reason=reason, user=user)
    before, after = fraction_text(raised.before), fraction_text(raised.cap)
    voice.answer(raised.to_json(), f"The cap of {raised.dataset!r} was raised from {before} to {after}.")


def close(*, book: Book, release: options.ReleaseFile, voice: terminal.Voice) -> None:
    """Settle the pending entry of a release, given its file: it is spent, and the digest of the file is kept.

    For a run that was killed after it had saved. Nothing frees the entry of a run that is gone: nobody knows what was
    seen.

    Examples:

      privmeasure ledger close book.sqlite half.release
    """
    from privmeasure.ledger import Ledger

    entry = Ledger(book).close(release)
    voice.answer(entry.to_json(), f"Entry {entry.number} of {entry.dataset!r} is spent; {release} is its release.")


def merge(
    *,
    book: Book,
    other: Annotated[Path, typer.Argument(help="Another ledger, which is only read.", show_default=False)],
    voice: terminal.Voice,
) -> None:
    """Add what another ledger holds, so that releases of two machines are counted together.

    Entries are told apart by their ids: merging again changes nothing, and either direction gives the same. The smaller
    of two caps holds. What counts may pass it then; that is said, and no further release is allowed.

    Examples:

      privmeasure ledger merge book.sqlite laptop.sqlite
    """
    from privmeasure.ledger import Ledger

    ledger = Ledger(book)
    merged = ledger.merge(other)
    warnings = [
        line
        for name in merged.over
        for line in _over(ledger.account(name), ledger.spent(name), ledger.spent_delta(name))
    ]
    voice.answer(
        merged.to_json() | {"warnings": warnings},
        f"{book} has {merged.entries} new entries, {merged.accounts} new accounts and {merged.raises} new raises of "
        f"caps; {merged.settled} entries were settled.",
    )
    voice.warn(*warnings)


def migrate(book: Book, quiet: options.Quiet = False) -> None:
    """Bring a ledger of the first format to the present one; a copy is kept beside it. Booking does so by itself.

    Entries get their random ids then. So migrate a ledger before you copy it to another machine: copies that are
    migrated apart have different ids for the same entry, which counts twice when they are merged.

    Examples:

      privmeasure ledger migrate book.sqlite
    """
    from privmeasure.ledger import Ledger

    Ledger(book).migrate()
    terminal.Voice(quiet=quiet).tell(f"{book} is of the present format.")


def export(
    *,
    book: Book,
    out: options.TextOut = None,
    kind: Annotated[
        str | None,
        typer.Option("--format", metavar="csv|json", help="The format; without it by the suffix of --out, else CSV."),
    ] = None,
    overwrite: options.Overwrite = False,
    voice: terminal.Voice,
) -> None:
    """Write all accounts, entries and raises of caps, for people and programs that do not read SQLite.

    CSV has one line for each of them, told apart by its first column. Epsilons are exact: 1/3 is a third.

    Examples:

      privmeasure ledger export book.sqlite
      privmeasure ledger export book.sqlite -o book.json
    """
    from privmeasure.ledger import Ledger

    chosen = kind or ("json" if voice.json and out is None else "" if out is None else out.suffix.lower().lstrip("."))
    if chosen not in ("csv", "json", ""):
        raise ArgumentError(f"--format must be csv or json, or the suffix of --out one of them, got {chosen[:40]!r}.")
    contents = Ledger(book).contents()
    text = to_json(contents) if chosen == "json" else to_csv(contents)
    deliver(text, out, overwrite=overwrite, beside=[book])
    if out is not None:
        value = {"out": str(out), "accounts": len(contents.accounts), "entries": len(contents.entries)}
        voice.answer(value, f"{len(contents.entries)} entries written to {out}")


# ---------------------------------------------------------------------------------------------------------- words


def _show_entries(entries: "list[Entry]") -> None:
    from privmeasure.ledger import fraction_text

    heads = ["entry", "time", "user", "epsilon", "state", "rows per person", "schema", "release", "note"]
    lines = [
        [
            f"{e.number}",
            e.time,
            e.user,
            fraction_text(e.epsilon) + (f", delta {fraction_text(e.delta)}" if e.delta else ""),
            e.state,
            f"{e.rows_per_person} by {e.person!r}" if e.person else f"{e.rows_per_person}",
            e.schema[:12],
            e.release[:12],
            e.note,
        ]
        for e in entries
    ]
    terminal.table("", heads, lines)


def _show_raises(raises: "list[Raise]") -> None:
    from privmeasure.ledger import fraction_text

    lines = [[r.time, r.user, fraction_text(r.before), fraction_text(r.cap), r.reason] for r in raises]
    terminal.table("How the cap was raised", ["time", "user", "from", "to", "reason"], lines)


def _collisions(collisions: list[list[str]]) -> list[str]:
    return [
        f"{', '.join(map(repr, names))} mean the same data set but have accounts of their own: what was spent on it is "
        "their sum."
        for names in collisions
    ]


def _over(account: "Account", spent: "Fraction", deltas: "Fraction") -> list[str]:
    from privmeasure.ledger import fraction_text

    passed = [("CAP", account.cap, spent - account.cap), ("DELTA", account.delta, deltas - account.delta)]
    return [
        f"{account.dataset!r} is OVER ITS {what} of {fraction_text(cap)} by {fraction_text(by)}: no further release is "
        "allowed."
        for what, cap, by in passed
        if by > 0
    ]


options.add_commands(
    ledger_commands,
    {
        "open": open_account,
        "show": show,
        "list": list_accounts,
        "raise": raise_cap,
        "close": close,
        "merge": merge,
        "migrate": migrate,
        "export": export,
    },
)

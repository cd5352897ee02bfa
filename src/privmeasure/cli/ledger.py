"""`privmeasure ledger`: what was spent on which data set."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from privmeasure.cli import options, terminal

app = typer.Typer(
    no_args_is_help=True,
    help="What was spent on which data set: an SQLite file that refuses to pass a cap.\n\n"
    "Whoever sees two releases of the same data can combine them, so their epsilons add up. A ledger adds them "
    "exactly, for every data set that you name, and `fit` asks it before the data are opened.",
)

Book = Annotated[Path, typer.Argument(help="The ledger file.", show_default=False)]
Name = Annotated[str, typer.Argument(help="The name of the data set: yours, not a path.", show_default=False)]


def open_account(
    book: Book,
    dataset: Name,
    cap: Annotated[str, typer.Option("--cap", help="The most epsilon that all releases together may spend.")],
    neighbours: options.NeighboursOption,
    rows_per_person: options.RowsPerPerson = 1,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Open the account of a data set, with a cap that is set once. Makes the file if there is none.

    Examples:

      privmeasure ledger open book.sqlite people --cap 2 --neighbours add-remove
    """
    from privmeasure.ledger import Ledger

    account = Ledger(book).open_account(
        dataset,
        cap=options.read_epsilon(cap, "cap"),
        neighbours=options.read_neighbours(neighbours),
        rows_per_person=rows_per_person,
    )
    if json:
        terminal.emit(account.to_json())
    else:
        terminal.tell(f"{account.dataset!r} is open: epsilon may add up to {cap}.", quiet=quiet)


def show(book: Book, dataset: Name, json: options.Json = False) -> None:
    """Show what was spent on a data set, what is left, and every entry.

    An entry that is "pending" belongs to a run that goes on or was killed: it counts.

    Examples:

      privmeasure ledger show book.sqlite people
    """
    from privmeasure.ledger import Ledger, fraction_text

    ledger = Ledger(book)
    account, entries = ledger.account(dataset), ledger.history(dataset)
    spent, left = ledger.spent(dataset), ledger.remaining(dataset)
    if json:
        value = account.to_json() | {"spent": str(spent), "remaining": str(left)}
        terminal.emit(value | {"entries": [entry.to_json() for entry in entries]})
        return
    terminal.tell(
        f"{dataset!r}: {fraction_text(spent)} of {fraction_text(account.cap)} is spent, {fraction_text(left)} is left "
        f"(neighbours: {account.neighbours}, up to {account.rows_per_person} rows a person).\n"
        "Whoever sees all releases below sees no more than one release at the sum of what counts."
    )
    heads = ["entry", "day", "epsilon", "state", "rows a person", "schema", "note"]
    terminal.table(
        "",
        heads,
        [
            [f"{e.number}", e.day, fraction_text(e.epsilon), e.state, f"{e.rows_per_person}", e.schema[:12], e.note]
            for e in entries
        ],
    )


def list_accounts(book: Book, json: options.Json = False) -> None:
    """List the data sets of a ledger: cap, spent, left.

    Examples:

      privmeasure ledger list book.sqlite
    """
    from privmeasure.ledger import Ledger, fraction_text

    ledger = Ledger(book)
    sums = [(account, ledger.spent(account.dataset)) for account in ledger.accounts()]
    if json:
        terminal.emit([a.to_json() | {"spent": str(s), "remaining": str(a.cap - s)} for a, s in sums])
        return
    lines = [[a.dataset, a.neighbours, *map(fraction_text, (a.cap, s, a.cap - s))] for a, s in sums]
    terminal.table("", ["data set", "neighbours", "cap", "spent", "left"], lines)


COMMANDS: dict[str, Callable[..., None]] = {"open": open_account, "show": show, "list": list_accounts}
for name, command in COMMANDS.items():
    app.command(name, help=options.help_of(command))(command)

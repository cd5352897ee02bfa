"""`privmeasure schema edit`: fill in a template in the terminal, question by question."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from privmeasure.cli import options
from privmeasure.cli.preparing import check_out, open_schema, write_text
from privmeasure.errors import SchemaError

HOW = "Enter leaves a question open, back returns to the last one, quit stops. Every answer is saved at once."


def edit(
    schema: Annotated[Path, typer.Argument(help="A schema with gaps, as `schema init` writes it.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write; without it the file itself.", show_default=False)
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Fill in a template, question by question: every answer is checked and saved at once.

    It asks for every "?" of the file, keeps comments and order, and looks at no data. Answer from knowledge of the
    subject: a bound that is read off the data would be published with the schema.

    Examples:

      privmeasure schema edit people.toml
    """
    try:
        text = schema.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError(f"{schema} is not a text in UTF-8. Give the schema, a TOML file.") from None
    place = schema if out is None else out
    if out is not None:
        check_out(out, overwrite=overwrite, beside=[schema])
        write_text(out, text)
    left = ask_for_gaps(text, save=lambda answered: write_text(place, answered))
    if left:
        print(f"{place} has {left} more to fill in: run this again, or edit the file.")
        return
    open_schema(place)  # says by line what is wrong between columns
    print(f"{place} is complete. `privmeasure schema check {place}` has more to say of it.")


def ask_for_gaps(text: str, *, save: Callable[[str], None]) -> int:
    """Ask for every gap of a schema, save after every answer, and return how many gaps are left."""
    from privmeasure.tables.columns.fields import ColumnError
    from privmeasure.tables.completing import fill_gap, find_gaps, reopen_gap

    skipped: set[tuple[str, str]] = set()
    before: list[str] = []
    if find_gaps(text):
        print(HOW)
    while todo := [gap for gap in find_gaps(text) if (gap.column, gap.field) not in skipped]:
        gap = todo[0]
        reply = _ask(f"\n{len(todo)} to go. {gap.column}, {gap.field}: {gap.what}\n{gap.field} = ")
        if reply is None or reply == "quit":
            break
        if reply == "":
            skipped.add((gap.column, gap.field))
        elif reply == "back":
            text = before.pop() if before else text
            skipped.clear()
            save(text)
        else:
            try:
                text, older = fill_gap(text, gap, reply), text
            except ColumnError as fault:
                print(f"No: {gap.column} {fault.predicate}")
                text = reopen_gap(text, gap.column, fault.field) if fault.field != gap.field else text
                continue
            before.append(older)
            save(text)
    return len(find_gaps(text))


def _ask(question: str) -> str | None:
    """Return what a person replies, None where no more replies come."""
    try:
        return input(question).strip()
    except UnicodeDecodeError:
        return "\udcff"  # half a letter, which no field takes
    except (EOFError, KeyboardInterrupt, RuntimeError):  # the last where there is no stdin at all
        print()
        return None

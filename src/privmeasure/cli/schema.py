"""`privmeasure schema`: write, check, import and describe the public declaration of a table."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privmeasure.cli import options, terminal
from privmeasure.cli.editing import edit
from privmeasure.cli.missing import schema_remarks
from privmeasure.cli.opening import check_header, open_undeclared, opened
from privmeasure.cli.preparing import deliver, open_schema, read_public_text

if TYPE_CHECKING:
    from privmeasure.sources.changes import ConfidentialChanges
    from privmeasure.tables.schema import Schema
    from privmeasure.tables.texts import TextForm

schema_commands = typer.Typer(
    no_args_is_help=True,
    help="Declare the columns of a table: names, kinds, bounds, categories.\n\n"
    "A schema is public. It comes from knowledge of the subject, never from the data: a bound that was read off the "
    "data would reveal its largest value. So nothing here looks at values, but for `check --data`, which is stamped.",
)


def init(
    *,
    data: options.Data,
    guess: Annotated[
        bool,
        typer.Option(
            "--guess", help="Let names propose kinds and round bounds: age, sex, lat, date ... To be checked."
        ),
    ] = False,
    nullable: Annotated[
        bool, typer.Option("--nullable", help="Say of every column that cells may be missing, instead of asking.")
    ] = False,
    out: options.TextOut = None,
    written: options.Written,
    overwrite: options.Overwrite = False,
) -> None:
    """Write a template from the header and the storage types of a table: every bound is yours to fill in.

    It does not look at values: bounds and categories that were read off the data would be published with the schema,
    and the smallest or largest value of a table often belongs to one person.

    Examples:

      privmeasure schema init people.csv -o template.toml
      privmeasure schema init people.csv --guess --nullable -o guessed.toml
    """
    from privmeasure.tables.template import template

    with opened(data) as path:
        table = open_undeclared(path, written.form())
    deliver(template(table.names, table.types, guess=guess, nullable=nullable), out, overwrite=overwrite)
    print(
        "Now fill in every bound and category, from knowledge of the subject. Values were not looked at: a bound that "
        "is read off the data reveals it.",
        file=sys.stderr,
    )


def check(
    *,
    schema: Annotated[Path, typer.Argument(help="A schema, a TOML file.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Also count what would be clamped or not parsed in this table. CONFIDENTIAL."),
    ] = None,
    written: options.Written,
    newlines_in_cells: options.NewlinesInCells = False,
    voice: terminal.Voice,
) -> None:
    """Explain what is wrong with a schema, by line; with --data, count what would be changed on the way in.

    --data tells of each column which share of its cells is missing, cannot be read or is clamped, and what such cells
    would become: a missing cell that becomes a value is a wrong fact in every synthetic table. The counts depend on
    private values: they are for you, before anything is spent, and not to be published.

    Examples:

      privmeasure schema check people.toml
      privmeasure schema check people.toml --data people.csv
    """
    from privmeasure.ledger import schema_digest

    declared = open_schema(schema)
    if data is not None:
        _count(data, declared, written.form(newlines_in_cells=newlines_in_cells), voice)
        return
    remarks, digest = schema_remarks(schema, declared), schema_digest(declared.to_json())
    voice.answer(
        {"valid": True, "columns": list(declared.columns), "digest": digest, "warnings": remarks},
        f"{schema} is fine: {len(declared.columns)} columns, {len(declared.data)} with data.\n"
        f"digest {digest}, as in a ledger and in releases of all its columns",
    )
    voice.warn(*remarks)


def _count(data: Path, declared: "Schema", form: "TextForm", voice: terminal.Voice) -> None:
    """Show what a schema would change in a table. CONFIDENTIAL."""
    from privmeasure.sources.changes import COUNTS_STAMP

    with opened(data) as path:
        changes = changes_of(path, declared, form, shown=voice.in_words)
    if voice.json:
        terminal.emit(changes.to_json())
    if voice.in_words:  # otherwise the exit code says that schema, header and file are fine
        print(COUNTS_STAMP)
        _show_changes(declared, changes)
        print(COUNTS_STAMP)


def changes_of(path: Path, declared: "Schema", form: "TextForm", *, shown: bool) -> "ConfidentialChanges":
    """Count what a schema would change in a table. CONFIDENTIAL: values are read here, for their owner alone."""
    from privmeasure.sources.changes import columns_to_count, count_changes
    from privmeasure.sources.lines import UnreadRows

    with terminal.progress("counting", shown=shown):
        table, unread = check_header(path, declared, form), UnreadRows()
        columns = columns_to_count(declared, table.names)
        return count_changes(declared, table.batches(columns, unread=unread), unread)


CHANGED = ["column", "missing", "becomes", "not read or not declared", "becomes", "clamped"]
"""The heads of the table of what would be changed."""


def changed_cells(declared: "Schema", changes: "ConfidentialChanges") -> list[list[str]]:
    """Say of each column what is missing, not read or clamped, and what becomes of it. CONFIDENTIAL."""
    from privmeasure.tables.advice import lost_cells

    rows = []
    for gone in lost_cells(declared):
        t, share = changes.columns[gone.name], changes.shares(gone.name)
        empty, odd = _share(t.missing, share["missing"]), _share(t.unparsed + t.unknown, share["unread"])
        rows.append([gone.name, empty, gone.missing, odd, gone.unread, _share(t.clamped, share["clamped"])])
    return rows


def changed_rows(changes: "ConfidentialChanges") -> list[str]:
    """Say how many rows cannot be read, or contradict the schema. CONFIDENTIAL."""
    unread = changes.unread
    return [
        f"{unread.rows:,} rows cannot be read, and count as missing in every column; in {unread.open_quotes:,} of "
        "them a quote does not end.",
        "A word such as NA is not read as a number or date, and is a value that is not declared in a category.",
        *(
            f"{different:,} rows of {name!r} differ from what is derived for them."
            for name, different in changes.derived.items()
        ),
        *(f"{wrong:,} rows have what can never be: {rule}" for rule, wrong in changes.never.items()),
    ]


def _show_changes(declared: "Schema", changes: "ConfidentialChanges") -> None:
    """Print what would be changed. CONFIDENTIAL."""
    terminal.table(f"\nWhat would be changed, of {changes.rows:,} rows", CHANGED, changed_cells(declared, changes))
    print("\n".join(changed_rows(changes)))
    if changes.persons is not None:
        _show_persons(changes.persons.to_json())


def _show_persons(counted: dict[str, Any]) -> None:
    """Say how many rows of each person are there, and how many would be kept. CONFIDENTIAL."""
    print(
        f"\n{counted['persons']:,} persons have up to {counted['most_rows']:,} rows each. "
        f"{counted['rows_without_id']:,} rows have no id, and are not counted."
    )
    lines = [[f"{row['k']}", f"{row['kept']:,}", f"{row['dropped']:,}"] for row in counted["rows_per_person"]]
    terminal.table("What --rows-per-person would keep", ["rows per person", "kept", "dropped"], lines)
    print("The number that you choose is published: choose it from knowledge of the subject, not by this table.")


def _share(count: int, share: float) -> str:
    """Return a count of cells with its share of the column."""
    return f"{share:.1%} ({count:,})" if count else "0"


def import_schema(
    source: Annotated[
        Path,
        typer.Argument(
            help="A data dictionary (.csv, .tsv), CREATE TABLE (.sql), JSON Schema, Frictionless Table Schema or SDV "
            "metadata (.json).",
            show_default=False,
        ),
    ],
    table: Annotated[
        str | None, typer.Option("--table", help="Which table, where the file declares several.", show_default=False)
    ] = None,
    out: options.TextOut = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Turn what others say of a table into a schema of ours; what they leave open is left to fill in.

    A data dictionary is a CSV file with a row for each column: name, type, low, high, values, label.

    Examples:

      privmeasure schema import dictionary.csv -o imported.toml
      privmeasure schema import frictionless.json -o imported.toml --overwrite
    """
    from privmeasure.tables.completing import find_gaps
    from privmeasure.tables.foreign import from_file_text

    draft = from_file_text(read_public_text(source), source.name, table=table)
    text = draft.to_toml()
    deliver(text, out, overwrite=overwrite)
    for sentence in draft.losses():
        print(sentence, file=sys.stderr)
    if out is not None and (gaps := find_gaps(text)):
        print(f"{out} has {len(gaps)} to fill in: `privmeasure schema edit {out}` asks for them.", file=sys.stderr)


def export_json_schema(out: options.TextOut = None, overwrite: options.Overwrite = False) -> None:
    """Write the JSON Schema of our TOML format, so that editors complete and check it.

    Examples:

      privmeasure schema export-json-schema -o privmeasure.schema.json
    """
    from json import dumps

    from privmeasure.tables.schema import Schema

    deliver(dumps(Schema.json_schema(), indent=2), out, overwrite=overwrite)


options.add_commands(
    schema_commands,
    {"init": init, "edit": edit, "check": check, "import": import_schema, "export-json-schema": export_json_schema},
)

"""Where missing and unread cells go: said by every command that plans or spends, from the schema alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from privmeasure.cli import terminal

if TYPE_CHECKING:
    from privmeasure.tables.schema import Schema


def undecided(path: Path, schema: "Schema") -> list[str]:
    """Return a warning of the columns that do not say whether cells may be missing."""
    from privmeasure.tables.advice import undecided_advice
    from privmeasure.tables.toml import undecided_columns

    return undecided_advice(schema, undecided_columns(path))


def schema_remarks(path: Path, schema: "Schema") -> list[str]:
    """Return what a valid schema file leaves undecided, or what in it may not be what was meant."""
    from privmeasure.tables.advice import schema_advice, undecided_advice
    from privmeasure.tables.toml import undecided_columns

    open_ones = undecided_columns(path)
    return [*undecided_advice(schema, open_ones), *schema_advice(schema, decided=schema.data.keys() - open_ones)]


def missing_cells(schema: "Schema") -> list[dict[str, Any]]:
    """Return where such cells of each column go, for --json."""
    from privmeasure.tables.advice import lost_cells

    return [cells.to_json() for cells in lost_cells(schema)]


def show_missing_cells(schema: "Schema", voice: terminal.Voice, *, to_stderr: bool = False) -> None:
    """Print one short table: columns in which such cells become the same share a line, those that stay missing one."""
    from privmeasure.tables.advice import listed, lost_cells

    if not voice.in_words:
        return
    found = lost_cells(schema)
    if all(cells.stay for cells in found):
        voice.tell("\nMissing and unread cells stay missing, in every column.", to_stderr=to_stderr)
        return
    alike: dict[tuple[str, str], list[str]] = {}
    for cells in sorted(found, key=lambda cells: cells.stay):
        alike.setdefault(("stays missing",) * 2 if cells.stay else (cells.missing, cells.unread), []).append(cells.name)
    lines = [[listed(names, quoted=False), *fates] for fates, names in alike.items()]
    heads = ["column", "a missing cell becomes", "one that is not read or not declared becomes"]
    terminal.table("\nWhere cells without a value go", heads, lines, to_stderr=to_stderr)

"""What a schema would change in a table: CONFIDENTIAL counts, for its owner, before anything is spent."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from privmeasure.sources.lines import UnreadRows
from privmeasure.tables.columns.base import Changes

if TYPE_CHECKING:
    import pyarrow as pa

    from privmeasure.tables.schema import Schema

COUNTS_STAMP = (
    "CONFIDENTIAL: these counts depend on private values. Do not publish them, and do not fit bounds to them."
)


class ConfidentialChanges:
    """CONFIDENTIAL. How many cells of each column are missing, not parsed, clamped or unknown. Not private.

    `unread` are the rows of a text file that could not be read: all their cells count as missing. It is shown only
    when asked (`to_json`); its repr tells nothing.
    """

    def __init__(self, rows: int, columns: Mapping[str, Changes], unread: UnreadRows, cells: Mapping[str, int]) -> None:
        """Keep the counts; `cells` is how many cells of a row each column has."""
        self.rows, self.columns, self.unread, self.cells = rows, dict(columns), unread, dict(cells)

    def shares(self, name: str) -> dict[str, float]:
        """Return which share of a column's cells is missing, not read, clamped. A place has two cells for each row."""
        tally, cells = self.columns[name], max(self.rows * self.cells[name], 1)
        return {
            "missing": tally.missing / cells,
            "unread": (tally.unparsed + tally.unknown) / cells,
            "clamped": tally.clamped / cells,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the counts with their stamp."""
        return {
            "confidential": COUNTS_STAMP,
            "rows": self.rows,
            "unread_rows": self.unread.rows,
            "open_quotes": self.unread.open_quotes,
            "columns": {
                name: {"missing": t.missing, "unparsed": t.unparsed, "clamped": t.clamped, "unknown": t.unknown}
                for name, t in self.columns.items()
            },
            "shares": {name: self.shares(name) for name in self.columns},
        }

    def __repr__(self) -> str:
        """Show nothing of the counts."""
        return "ConfidentialChanges(...)"


def count_changes(
    schema: "Schema", batches: "Iterable[pa.RecordBatch | pa.Table]", unread: UnreadRows | None = None
) -> ConfidentialChanges:
    """Count what encoding a table would change. CONFIDENTIAL: the result is not private and not for publication.

    `unread` is where the file that gives the batches counts the rows that it cannot read.

    Examples:
        >>> import pyarrow as pa
        >>> from privmeasure.tables import Integer, Schema
        >>> changes = count_changes(Schema({"age": Integer(17, 90)}), [pa.table({"age": ["37", "200", "old", None]})])
        >>> changes
        ConfidentialChanges(...)
        >>> changes.columns["age"]
        Changes(missing=1, unparsed=1, clamped=1, unknown=0)
        >>> changes.shares("age")
        {'missing': 0.25, 'unread': 0.25, 'clamped': 0.25}
    """
    rows, tallies = 0, {name: Changes() for name in schema.data}
    for batch in batches:
        rows += batch.num_rows  # private counts: they leave only in a value that is stamped
        for name, column in schema.data.items():
            tallies[name] += column.count_changes([batch.column(source) for source in column.sources(name)])
    cells = {name: len(column.sources(name)) for name, column in schema.data.items()}
    return ConfidentialChanges(rows, tallies, UnreadRows() if unread is None else unread, cells)

"""What a schema would change in a table: CONFIDENTIAL counts, for its owner, before anything is spent."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privmeasure.conditions.orders import broken
from privmeasure.privacy import COMPARED_ROWS_PER_PERSON
from privmeasure.sources.lines import UnreadRows
from privmeasure.tables.columns.base import Changes
from privmeasure.tables.derived_values import differs
from privmeasure.tables.facts import facts_by_rule
from privmeasure.tables.persons import read_ids

if TYPE_CHECKING:
    import pyarrow as pa

    from privmeasure.tables.schema import Schema

COUNTS_STAMP = (
    "CONFIDENTIAL: these counts depend on private values. Do not publish them, and do not fit bounds to them."
)


class ConfidentialPersons:
    """CONFIDENTIAL. How many persons a table has, and how many of their rows would be kept. Not private.

    One number for every person is held: memory grows with them, not with the rows.
    """

    def __init__(self) -> None:
        """Begin with nobody."""
        self._rows: Counter[bytes] = Counter()
        self.without = 0
        """Rows without an id."""

    def add(self, cells: "pa.Array | pa.ChunkedArray") -> None:
        """Count the rows of the persons whose ids stand in some cells."""
        ids = read_ids(cells)
        self.without += ids.null_count
        counted = ids.drop_null().value_counts()
        for person, rows in zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True):
            self._rows[person] += rows

    def kept(self, most: int) -> int:
        """Return how many rows are kept if each person keeps at most so many."""
        return sum(min(rows, most) for rows in self._rows.values())

    def to_json(self) -> dict[str, Any]:
        """Return the counts."""
        rows = self._rows.total()
        kept = {most: self.kept(most) for most in COMPARED_ROWS_PER_PERSON}
        return {
            "persons": len(self._rows),
            "rows_without_id": self.without,
            "most_rows": max(self._rows.values(), default=0),
            "rows_per_person": [{"k": k, "kept": found, "dropped": rows - found} for k, found in kept.items()],
        }

    def __repr__(self) -> str:
        """Show nothing of the counts."""
        return "ConfidentialPersons(...)"


class ConfidentialChanges:
    """CONFIDENTIAL. How many cells of each column are missing, not parsed, clamped or unknown. Not private.

    `unread` are the rows of a text file that could not be read: all their cells count as missing. `persons` is there
    where the schema says whose row it is. It is shown only when asked (`to_json`); its repr tells nothing.
    """

    def __init__(
        self,
        rows: int,
        columns: Mapping[str, Changes],
        unread: UnreadRows,
        cells: Mapping[str, int],
        derived: Mapping[str, int] | None = None,
        persons: ConfidentialPersons | None = None,
        never: Mapping[str, int] | None = None,
    ) -> None:
        """Keep the counts.

        `cells` is how many cells of a row each column has, `derived` are the rows in which a derived column of the
        table has another value, `never` those that have what the schema says can never be.
        """
        self.rows, self.columns, self.unread, self.cells = rows, dict(columns), unread, dict(cells)
        self.derived, self.persons, self.never = dict(derived or {}), persons, dict(never or {})

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
            "derived": {name: {"different": rows} for name, rows in self.derived.items()},
            "never": {rule: {"broken": rows} for rule, rows in self.never.items()},
        } | ({} if self.persons is None else {"person": self.persons.to_json()})

    def __repr__(self) -> str:
        """Show nothing of the counts."""
        return "ConfidentialChanges(...)"


def columns_to_count(schema: "Schema", names: Sequence[str]) -> list[str]:
    """Return the columns of a table that `count_changes` looks at: with data, of ids, and derived ones that it has."""
    read = [source for name, column in schema.data.items() for source in column.sources(name)]
    ids = [] if schema.person is None else [schema.person]
    return list(dict.fromkeys([*read, *(name for name in schema.derived if name in names), *ids]))


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
    rows, tallies, derived = 0, {name: Changes() for name in schema.data}, dict.fromkeys(schema.derived, 0)
    persons = None if schema.person is None else ConfidentialPersons()
    facts = facts_by_rule(schema)
    never = dict.fromkeys(facts, 0)
    for batch in batches:
        derived = {name: rows for name, rows in derived.items() if name in batch.schema.names}
        rows += batch.num_rows  # private counts: they leave only in a value that is stamped
        if facts:
            points = schema.encode(batch)
            for rule, fact in facts.items():
                never[rule] += int(np.count_nonzero(broken([fact], points, schema.node_domain)))
        if present := [name for name in derived if name in batch.schema.names]:
            made = schema.derive(schema.encode(batch))
            for name in present:
                derived[name] += int(np.count_nonzero(differs(schema.derived[name], made[name], _whole(batch, name))))
        for name, column in schema.data.items():
            tallies[name] += column.count_changes([batch.column(source) for source in column.sources(name)])
        if persons is not None:
            persons.add(batch.column(schema.person))
    cells = {name: len(column.sources(name)) for name, column in schema.data.items()}
    return ConfidentialChanges(
        rows, tallies, UnreadRows() if unread is None else unread, cells, derived, persons, never
    )


def _whole(batch: "pa.RecordBatch | pa.Table", name: str) -> "pa.Array":
    """Return a column of a batch as one array."""
    column = batch.column(name)
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column

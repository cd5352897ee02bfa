"""Schemas with gaps: what is known of a table without looking at its values, and what only a person can fill in."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from privmeasure.errors import SchemaError
from privmeasure.tables.arrow import plain_type
from privmeasure.tables.columns.base import TO_FILL_IN, Sketch, Types
from privmeasure.tables.columns.fields import ColumnError
from privmeasure.tables.columns.fixed import Drop
from privmeasure.tables.columns.kinds import COLUMN_KINDS, Column, first_answer, from_fields, lacks_data
from privmeasure.tables.toml import table_text

if TYPE_CHECKING:
    import pyarrow as pa

    from privmeasure.tables.schema import Schema

GUIDE = """\
# A schema of privmeasure: what may occur in each column of a table. It is public and goes into every release.
#
# Replace every "?" from knowledge of the subject: a questionnaire, a code book, a law, common sense. Generous bounds
# are fine. Do not take them from the data: the smallest or largest value of a table often belongs to one person, and a
# schema is published. That is why {origin}
#
# type is one of
{kinds}
# nullable = true where cells may be missing; if it is false, a missing cell becomes a value.
# weight = 2 makes a column count twice as much as the others.
"""
FROM_HEADER = "this template was made from names and storage types alone, and no value was looked at."


@dataclass(frozen=True, slots=True)
class Draft:
    """The fields of each column as a schema file has them, with "?" where something has to be filled in."""

    columns: dict[str, dict[str, Any]]
    origin: str = FROM_HEADER
    notes: dict[str, str] = field(default_factory=dict)
    """A remark on a column, for the person who completes it."""

    def to_toml(self) -> str:
        """Return the text of a schema file to be completed."""
        kinds = "\n".join(f"#   {line}" for line in guide_lines())
        parts = [GUIDE.format(origin=self.origin, kinds=kinds), "\nformat = 1\n"]
        for name, fields in self.columns.items():
            note = f"# {self.notes[name]}\n" if name in self.notes else ""
            parts.append(f"\n{note}{table_text(name, fields)}")
        return "".join(parts)

    def schema(self) -> "Schema":
        """Return the schema, or a SchemaError that lists everything that is still to be filled in or wrong."""
        from privmeasure.tables.schema import Schema

        columns: dict[str, Column] = {}
        problems = []
        for name, fields in self.columns.items():
            try:
                columns[name] = from_fields(fields)
            except ColumnError as fault:
                problems.append(f"column {name!r} {fault.predicate}")
        if problems:
            raise SchemaError(*problems)
        return Schema(columns)


def template(names: Sequence[str], types: Types | None = None) -> str:
    """Return a schema file to be completed, from names and storage types alone (None: no types, as in CSV).

    Examples:
        >>> import pyarrow as pa
        >>> print(template(["age"], [pa.int64()])[-67:])
        [columns.age]
        type = "integer"
        low = "?"
        high = "?"
        nullable = "?"
        <BLANKLINE>
    """
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise SchemaError(f"More than one column is named {', '.join(map(repr, repeated))}. Rename them first.")
    given = [None] * len(names) if types is None else list(types)
    guesses = {name: _guess(name, t) for name, t in zip(names, given, strict=True)}
    for fields, _ in guesses.values():
        if not lacks_data(fields["type"]):  # whether cells may be missing is to be decided, never assumed
            fields.setdefault("nullable", TO_FILL_IN)
    notes = {name: note for name, (_, note) in guesses.items() if note}
    return Draft({name: fields for name, (fields, _) in guesses.items()}, notes=notes).to_toml()


def guide_lines() -> list[str]:
    """Return a line about each kind: its name, the fields that it needs, and what else there is to say."""
    return [f"{tag:<10} {kind.guide[0]:<29} {kind.guide[1]}" for tag, kind in COLUMN_KINDS.items()]


def _guess(name: str, storage: "pa.DataType | None") -> Sketch:
    """Return a draft of a column from its name and storage type alone, and a remark."""
    import pyarrow as pa

    plain = pa.null() if storage is None else plain_type(storage)
    return first_answer(lambda kind: kind.guess(name, plain)) or (
        ({"type": TO_FILL_IN}, "")
        if pa.types.is_null(plain)
        else (Drop.sketch(), "Columns of this storage type can only be dropped.")
    )

"""Schemas with gaps: what is known of a table without looking at its values, and what only a person can fill in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from privmeasure.errors import SchemaError
from privmeasure.tables.arrow import is_number, is_text, plain_type
from privmeasure.tables.columns.base import ColumnError, Types
from privmeasure.tables.columns.kinds import TO_FILL_IN, Column, from_fields
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
#   integer    low, high                     ages, counts; unit = "year" makes plans easier to read
#   number     low, high                     amounts; transform = "log" or breaks = [1e3, 1e4] for heavy tails, decimals
#   category   values = ["a", "b"]           ordered = true for ranks; unknown = "b" is where all other values go
#   boolean                                  true = "yes", false = "no" if it is written in another way
#   date       low, high                     format = "%d.%m.%Y" if it is not like 2020-01-31
#   datetime   low, high                     resolution = "15min", timezone = "Europe/Berlin", format
#   time                                     a time of day; resolution = "1min"
#   place      latitude, longitude           the names of two columns, in one table [columns.ANY_NAME]
#   constant   value                         the same in every row of the output
#   drop                                     identifiers, names, free text: neither read nor written
# nullable = true where cells may be missing. weight = 2 makes a column count twice as much as the others.
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
        parts = [GUIDE.format(origin=self.origin), "\nformat = 1\n"]
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
        >>> print(template(["age"], [pa.int64()])[-52:])
        [columns.age]
        type = "integer"
        low = "?"
        high = "?"
        <BLANKLINE>
    """
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise SchemaError(f"More than one column is named {', '.join(map(repr, repeated))}. Rename them first.")
    given = [None] * len(names) if types is None else list(types)
    guesses = {name: _guess(t) for name, t in zip(names, given, strict=True)}
    notes = {name: note for name, (_, note) in guesses.items() if note}
    return Draft({name: fields for name, (fields, _) in guesses.items()}, notes=notes).to_toml()


def blank(kind: str, *fields: str, **known: Any) -> dict[str, Any]:
    """Return a column of a kind whose fields are to be filled in, but for those that are known."""
    return {"type": kind} | {name: known.get(name, TO_FILL_IN) for name in fields} | known


def _guess(kind: "pa.DataType | None") -> tuple[dict[str, Any], str]:
    """Return a draft of a column from its storage type alone, and a remark."""
    import pyarrow.types as pt

    if kind is None:
        return {"type": TO_FILL_IN}, ""
    plain = plain_type(kind)
    if is_text(plain):
        return blank("category", "values"), 'Free text, names and identifiers: type = "drop".'
    if pt.is_boolean(plain):
        return {"type": "boolean"}, ""
    if pt.is_integer(plain):
        return blank("integer", "low", "high"), 'Codes: type = "category". Identifiers: type = "drop".'
    if is_number(plain):
        return blank("number", "low", "high"), ""
    if pt.is_date(plain):
        return blank("date", "low", "high"), ""
    if pt.is_timestamp(plain):
        zone: Mapping[str, Any] = {"timezone": plain.tz} if plain.tz else {}
        return blank("datetime", "low", "high", resolution="1s", **zone), ""
    if pt.is_time(plain):
        return {"type": "time", "resolution": "1s"}, ""
    if pt.is_null(plain):
        return {"type": TO_FILL_IN}, ""
    return {"type": "drop"}, "Columns of this storage type can only be dropped."

"""Schemas with gaps: what is known of a table without looking at its values, and what only a person can fill in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from privmeasure.errors import DataError, SchemaError
from privmeasure.tables.arrow import plain_type
from privmeasure.tables.columns.base import TO_FILL_IN, Sketch, Types
from privmeasure.tables.columns.categories import Category
from privmeasure.tables.columns.fields import ColumnError, UnfilledError, told_on_a_screen
from privmeasure.tables.columns.fixed import Drop
from privmeasure.tables.columns.kinds import COLUMN_KINDS, Column, first_answer, from_fields, lacks_data
from privmeasure.tables.frames import FrameKind, to_arrow
from privmeasure.tables.guessing import CHECK_IT, guess_by_name, places_by_name
from privmeasure.tables.toml import table_text, value_text

if TYPE_CHECKING:
    import pyarrow as pa

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
# If a person may have several rows: format = 2, person = "NAME" below it, and drop the column of that name.
"""
FROM_HEADER = "this template was made from names and storage types alone, and no value was looked at."


@dataclass(frozen=True, slots=True, repr=False)
class Draft:
    """The fields of each column as a schema file has them, with "?" where something has to be filled in."""

    columns: dict[str, dict[str, Any]]
    origin: str = FROM_HEADER
    notes: dict[str, str] = field(default_factory=dict)
    """A remark on a column, for the person who completes it."""
    person: str | None = None
    """The column that says whose row it is, where that is known."""

    def to_toml(self) -> str:
        """Return the text of a schema file to be completed."""
        kinds = "\n".join(f"#   {line}" for line in guide_lines())
        person = "format = 1\n" if self.person is None else f"format = 2\nperson = {value_text(self.person)}\n"
        parts = [GUIDE.format(origin=self.origin, kinds=kinds), f"\n{person}"]
        for name, fields in self.columns.items():
            note = f"# {_one_line(self.notes[name])}\n" if name in self.notes else ""
            parts.append(f"\n{note}{table_text(name, fields)}")
        return "".join(parts)

    def losses(self) -> list[str]:
        """Return sentences that name the columns without a type, and those that are dropped.

        Examples:
            >>> Draft({"id": {"type": "drop"}, "x": {"type": "?"}}, notes={"x": "Its unit is not known."}).losses()
            ["Column 'x' needs a type. Its unit is not known.", "Dropped: 'id'. Such a column is not in the release."]
        """
        types = {name: fields.get("type") for name, fields in self.columns.items()}
        found = [
            f"Column {name!r} needs a type. {_one_line(self.notes.get(name, ''))}".strip()
            for name, type in types.items()
            if type == TO_FILL_IN
        ]
        dropped = ", ".join(repr(name) for name, type in types.items() if type == Drop.tag() and name != self.person)
        return [*found, f"Dropped: {dropped}. Such a column is not in the release."] if dropped else found

    def __repr__(self) -> str:
        """Show the file: what it says is public."""
        return self.to_toml()

    def complete(self, filled: Mapping[str, Column | Mapping[str, Any]] = MappingProxyType({})) -> dict[str, Column]:
        """Return the columns of a schema, or a SchemaError that lists what is still to be filled in or wrong.

        `filled` has columns in the place of drafts, or fields to fill in: {"age": Integer(0, 120), "sex": {"values":
        ["F", "M"]}}. A column that is not in the draft is added.
        """
        columns: dict[str, Column] = {}
        problems: list[str] = []
        gaps: dict[str, str] = {}
        for name in dict.fromkeys([*self.columns, *filled]):
            known, given = self.columns.get(name, {}), filled.get(name, {})
            try:
                columns[name] = from_fields({**known, **given}) if isinstance(given, Mapping) else given
            except ColumnError as fault:
                problems.append(f"column {name!r} {fault.predicate}")
                gaps |= fault.gaps if isinstance(fault, UnfilledError) else {}
        if problems:
            raise SchemaError(*told_on_a_screen(problems, gaps))
        return columns


def template(names: Sequence[str], types: Types | None = None, *, guess: bool = False, nullable: bool = False) -> str:
    """Return a schema file to be completed, from names and storage types alone (None: no types, as in CSV).

    With `guess`, names propose kinds and round bounds: see guessing.py. With `nullable`, cells of every column may be
    missing; without it every column asks.

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
    return open_draft(names, types, guess=guess, nullable=nullable).to_toml()


def open_draft(
    names: Sequence[str], types: Types | None = None, *, guess: bool = False, nullable: bool = False
) -> Draft:
    """Return what `template` writes: a draft in which every column asks whether cells may be missing."""
    known = draft(names, types, guess=guess)
    for fields in known.columns.values():
        if not lacks_data(fields["type"]):  # whether cells may be missing is to be decided, never assumed
            fields.setdefault("nullable", nullable or TO_FILL_IN)
    return known


def draft(names: Sequence[str], types: Types | None = None, *, guess: bool = False) -> Draft:
    """Return what is known of a table by names and storage types alone."""
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise SchemaError(f"More than one column is named {', '.join(map(repr, repeated))}. Rename them first.")
    stored = dict(zip(names, [None] * len(names) if types is None else types, strict=True))
    places = places_by_name(names) if guess else {}
    parts = {place["longitude"] for place in places.values()}  # a place stands where its latitude stood
    sketches: dict[str, Sketch] = {}
    for name, type in stored.items():
        place = next((title for title, place in places.items() if place["latitude"] == name), None)
        if place is not None:
            sketches[place] = places[place], CHECK_IT
        elif name not in parts:
            sketches[name] = (guess_by_name(name, type) if guess else None) or _guess(name, type)
    notes = {name: note for name, (_, note) in sketches.items() if note}
    return Draft({name: fields for name, (fields, _) in sketches.items()}, notes=notes)


def frame_draft(frame: Any, *, guess: bool = False, declared_categories: bool = False) -> Draft:
    """Return what is known of a dataframe by the names and types of its columns.

    The categories of a polars Enum belong to its type, and are taken over. Those of a pandas column are taken over only
    if they are said to be declared: `astype("category")` makes a list of the values that occur, which is private.

    Guarantee:  privacy  the frame is cut to no rows at all before anything is asked of it
    """
    if isinstance(frame, str | Path):
        raise DataError("A template is made of a dataframe. For a file there is `privmeasure schema init`.")
    empty = _without_rows(frame)
    table, kind = to_arrow(empty)
    declared = _categories_of(empty, kind, pandas_too=declared_categories)
    plain = kind.library == "pandas"
    whole = {name for name, dtype in zip(kind.names, kind.dtypes, strict=False) if plain and dtype == "float64"}
    # the types that `to_arrow` keeps to itself, of these and of categories: without rows they tell nothing of values
    found = draft(kind.names, table.schema.types, guess=guess)
    for name, values in declared.items():
        found.columns[name] = Category.sketch(values=values)
        found.notes.pop(name, None)
    for name in whole & set(found.columns):
        found.notes.setdefault(name, 'pandas stores whole numbers so, too, where some are missing: type = "integer".')
    return found


def _without_rows(frame: Any) -> Any:
    """Return a frame with its columns and none of its rows; what is no frame is left to `to_arrow`, which says so."""
    import narwhals as nw
    import pyarrow as pa

    native = nw.to_native(frame, pass_through=True)
    if isinstance(native, pa.Table | pa.RecordBatch):
        return native.slice(0, 0)
    if nw.dependencies.is_pandas_dataframe(native):
        return native.iloc[:0]
    try:
        return nw.from_native(native).head(0).to_native()
    except TypeError:
        return native


def _categories_of(frame: Any, kind: FrameKind, *, pandas_too: bool) -> dict[str, list[Any]]:
    """Return the categories that belong to the types of a frame, by column."""
    if kind.library == "pandas" and pandas_too:
        dtypes = dict(zip(kind.names, frame.dtypes, strict=True))
        return {name: dtype.categories.tolist() for name, dtype in dtypes.items() if hasattr(dtype, "categories")}
    if kind.library == "polars":
        schema = (frame.collect() if hasattr(frame, "collect") else frame).schema
        return {name: dtype.categories.to_list() for name, dtype in schema.items() if type(dtype).__name__ == "Enum"}
    return {}


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


def _one_line(text: str) -> str:
    """Return a remark as a comment can hold it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())

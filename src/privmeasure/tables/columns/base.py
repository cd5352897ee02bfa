"""What a column is: a public declaration that turns the cells of a table into points of a domain, and back.

**Declared, never detected.** Bounds, categories and formats come from the person who knows the subject. A schema that
was read off the data would reveal them.

**A cell never raises.** `encode` maps every cell of every Arrow type to a point: what does not parse goes to the
missing branch or to the declared fallback, what is out of range is clamped. It looks at one row at a time, so tables
that differ in one row are encoded to points that differ in one row.

**Types come back.** `decode` gives the storage types that came in. Where there was none (the text of a CSV file) it
gives the column's natural type.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Domain, Floats, Nullable, Points
from privmeasure.domains.scales import Reading, Scale, describe
from privmeasure.tables.arrow import absent, by_distinct, cast
from privmeasure.tables.columns.fields import ColumnError, number_field, show_value

if TYPE_CHECKING:
    import pyarrow as pa

Types = Sequence["pa.DataType | None"]
"""Storage types; None stands for text without a type of its own, as in a CSV file."""
TO_FILL_IN = "?"
"""What a template has where only a person knows what to write."""
MISSING = "missing"
"""What a cell without a value is where a column may have such cells."""
Sketch = tuple[dict[str, Any], str]
"""The fields of a column as far as they are known, and a remark for the person who completes it."""
BOUNDS = (
    ("low", "the smallest value that may occur, from knowledge of the subject and not from the data"),
    ("high", "the largest value that may occur, from knowledge of the subject and not from the data"),
)
"""What to write for a bound."""
IDENTIFYING = ("email", "uri", "uuid", "binary")
"""Formats of Frictionless texts that name someone or something."""


class Changes(msgspec.Struct, frozen=True):
    """CONFIDENTIAL. How many cells of a column were changed on the way in; depends on private values."""

    missing: int = 0
    unparsed: int = 0
    clamped: int = 0
    unknown: int = 0

    def __add__(self, other: "Changes") -> "Changes":
        """Add two tallies of parts of a column."""
        return Changes(
            *(a + b for a, b in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True))
        )


class Foreign(msgspec.Struct, frozen=True):
    """What another tool says of a column, as far as possible in our words."""

    word: str
    """The tool, and its word for the type: "frictionless year", "sdv numerical"."""
    entry: Mapping[str, Any]
    """All that the tool says, in its own words."""
    bounds: dict[str, Any]
    """`low` and `high`, where it states them."""
    values: list[Any] | None
    """All that may occur, where it lists them."""
    format: dict[str, Any]
    """`format`, how texts are written, where it says so."""
    common: dict[str, Any]
    """The fields that all columns with data share, such as nullable."""

    @property
    def identifies(self) -> bool:
        """Whether the texts name someone or something."""
        return self.word == "frictionless string" and self.values is None and self.format.get("format") in IDENTIFYING


class AnyColumn(msgspec.Struct, frozen=True, tag_field="type", forbid_unknown_fields=True, omit_defaults=True):
    """What the house asks of every kind, with data or without: where it stands in files, and how one begins."""

    guide: ClassVar[tuple[str, str]] = ("", "")
    """For templates and the docs: the fields that a column needs, and what else there is to say."""
    needs: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The fields that only a person can fill in, and what to write there."""
    stored: ClassVar[tuple[str, ...]] = ()
    """The types of Arrow that speak for the kind, as `pyarrow.types` calls them."""
    caution: ClassVar[str] = ""
    """What to ask oneself where a storage type speaks for it."""
    exact: ClassVar[bool] = False
    """Whether 3.0 and 3 are different values of a field; elsewhere the field says that it is a float."""

    @property
    def since(self) -> int:
        """The first format of schemas that may say it."""
        return 1

    @property
    def optional(self) -> bool:
        """Whether a table need not have the column."""
        return False

    def sources(self, name: str) -> tuple[str, ...]:
        """Return the file columns that this column reads."""
        return (name,)

    def outputs(self, name: str) -> tuple[str, ...]:
        """Return the file columns that this column writes."""
        return self.sources(name)

    @classmethod
    def tag(cls) -> str:
        """Return what schema files call the kind."""
        return str(cls.__struct_config__.tag)

    @classmethod
    def sketch(cls, *fields: str, **known: Any) -> dict[str, Any]:
        """Return a column whose fields are to be filled in, but for those that are known."""
        return {"type": cls.tag()} | {name: known.get(name, TO_FILL_IN) for name in fields} | known

    @classmethod
    def prepared(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of a schema file in the types that the class declares."""
        return fields

    @classmethod
    def guess(cls, name: str, type: "pa.DataType") -> Sketch | None:
        """Begin a column by its name and plain storage type (null: unknown); None if it is not of this kind."""
        import pyarrow.types as pt

        speaks = any(getattr(pt, f"is_{stored}")(type) for stored in cls.stored)
        return (cls.sketch(*dict(cls.needs)), cls.caution) if speaks else None

    @classmethod
    def imported(cls, field: Foreign) -> Sketch | None:
        """Begin a column by what another tool says of it; None if it is not of this kind."""
        known = cls.recognized(field)
        return None if known is None else (cls.sketch(*dict(cls.needs), **known, **field.common), "")

    @classmethod
    def recognized(cls, field: Foreign) -> dict[str, Any] | None:
        """Return the fields of its own that another tool's column has; None if that is not of this kind."""
        return None

    @classmethod
    def joined(cls, relation: str, roles: Mapping[str, str]) -> dict[str, str] | None:
        """Return which of the file columns, given by their roles in a relation, are one column of this kind."""
        return None


class DataColumn(AnyColumn, frozen=True, kw_only=True, dict=True):  # room for cached properties
    """What all columns with a domain share. A kind says how to read cells (`read`), settle and restore them.

    Between a cell and a point lies its *reading*: one float per row and source, before clamping, NaN where there is
    nothing to read.
    """

    weight: Annotated[
        float, msgspec.Meta(description="How much this column counts in the distance between rows; 1 by default.")
    ] = 1.0
    nullable: Annotated[
        bool, msgspec.Meta(description="Whether cells may be missing. If not, missing cells become the first value.")
    ] = False

    @property
    def domain(self) -> Domain:
        """Where the points lie."""
        raise NotImplementedError

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """The types that `decode` gives where no storage type came in."""
        raise NotImplementedError

    @property
    def instants(self) -> "pa.DataType | None":
        """The timestamp type in which pandas holds the values; None if they are neither dates nor dates with times."""
        return None

    @property
    def decimal_marks(self) -> bool:
        """Whether texts of the column are numbers, which a file may write with a decimal comma."""
        return False

    def refuses(self, type: "pa.DataType") -> str | None:
        """Say why a typed file column contradicts this declaration, or return None."""
        raise NotImplementedError

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return the readings of the cells of one source, which is of a plain type (no dictionary)."""
        raise NotImplementedError

    def settle(self, readings: Sequence[Floats]) -> Points:
        """Return the points of the readings: clamped, and never NaN unless the column is nullable."""
        raise NotImplementedError

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Return the cells of some points, in about the types asked for; `decode` casts what remains."""
        raise NotImplementedError

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        """Count the readings that are clamped and those that are unknown values. CONFIDENTIAL."""
        raise NotImplementedError

    def fineness(self, level: int) -> str:
        """Say how finely `level` cuts tell values apart, in the column's own units: "about 12 years"."""
        if self.nullable:  # the first cut parts the missing from the present
            return self.cell_size(level - 1) if level > 1 else "missing or not" if level else "not at all"
        return self.cell_size(level) if level else "not at all"

    def cell_size(self, cuts: int) -> str:
        """Say how finely so many cuts of the present values tell them apart."""
        raise NotImplementedError

    def in_units(self, share: float) -> str:
        """Say a distance that is a share of the column's range in the column's own units: "1.2 years"."""
        return f"{share:.2g} of its range"

    # ------------------------------------------------------------------------ what engines that count themselves ask

    def readings(self, types: Types, first: int = 0) -> tuple[Reading, ...] | None:
        """Return how the coordinates of a point follow from stored values of some types, or None.

        None where the cells must be read by Arrow: text that is parsed, and types whose values engines round or order
        in ways of their own. `first` is the number of the first source among the columns that an engine hands over.
        """
        return None

    def scale(self, space: Domain, level: int, types: Types, first: int = 0) -> Scale | None:
        """Return how a stored row becomes a cell of a level of `space`, which has this column's points; or None.

        Guarantee:  the cells of ``space.locate(self.encode(...), level)``
        """
        readings = self.readings(types, first)
        return None if readings is None else describe(space, level, readings)

    # ------------------------------------------------------------------------ what the rest of the house asks of a kind

    @property
    def unordered(self) -> str:
        """Why values cannot be compared by < and >, as the end of a sentence; empty where they can."""
        return ""

    @property
    def has_quantiles(self) -> bool:
        """Whether values follow each other as their points do."""
        return True

    sort: ClassVar[str] = ""
    """What its values can be compared with, column by column: "number", "date", "datetime" or "time"; or nothing."""

    def written(self, points: Points, storage: "pa.DataType | None") -> "list[NDArray[Any]]":
        """Return the values of points as a storage type has them, as numbers that columns of its sort share.

        There is one array for each form in which they may be compared: what is rounded can be read in several ways. Of
        a missing value it may be anything.
        """
        raise NotImplementedError

    @property
    def steady(self) -> bool:
        """Whether what is written grows with the points."""
        return True

    @property
    def listed(self) -> tuple[Any, ...] | None:
        """The values by position, where there are few and points are positions; None where values are a range."""
        return None

    def position(self, name: str, value: Any) -> int:
        """Return the position among those listed of a value that a person wrote, or raise a ConditionError."""
        raise NotImplementedError

    def comparable(self, storage: "pa.DataType | None") -> "pa.DataType | None":
        """Return a type in which the values of a range can be compared with what a person wrote."""
        return self.natural[0] if storage is None else storage

    @property
    def value_types(self) -> "tuple[pa.DataType, ...]":
        """The types in which other columns are derived from this one, whatever its storage types are."""
        return self.natural if len(self.natural) > 1 else (self.comparable(None),)

    def averages(self, points: Points) -> Floats | None:
        """Return the values of points as numbers, NaN for missing; None where a mean makes no sense."""
        return None

    @property
    def curved(self) -> bool:
        """Whether values do not grow evenly with their points."""
        return False

    @property
    def steepness(self) -> float:
        """By how much a value changes at most, for a change of its point by 1."""
        return 1.0

    @property
    def older_bounds(self) -> tuple[float, float] | None:
        """Where the axis lay in files of older versions; None where it lies there still."""
        return None

    def remarks(self, *, decided: bool = False) -> list[str]:
        """Return what in a valid declaration may not be what was meant, each as a predicate.

        `decided` says that the schema file has `nullable` for the column, so that its false is meant.
        """
        return []

    def encode(self, arrays: "Sequence[pa.Array]") -> Points:
        """Return a point for every row of the source arrays. Never raises because of a value."""
        # Private cells pass through here. Row by row, and nothing is kept: it reveals nothing.
        return self.settle([self._reading(array, i) for i, array in enumerate(arrays)])

    def decode(self, points: Points, types: Types) -> "list[pa.Array]":
        """Return the cells of points, in the given storage types (None: the natural one)."""
        wanted = [natural if t is None else t for t, natural in zip(types, self.natural, strict=True)]
        return [cast(array, t) for array, t in zip(self.restore(points, types), wanted, strict=True)]

    stray: ClassVar[float] = math.nan
    """The reading of a cell that holds something, but nothing that may occur."""

    def becomes(self, reading: float = math.nan) -> str:
        """Say what a cell of such a reading comes out as, by the declaration alone: "17", "'F'" or "missing".

        Examples:
            >>> from privmeasure.tables import Category, Integer
            >>> sex = Category(["F", "M", "?"], unknown="?")
            >>> Integer(17, 90).becomes(), sex.becomes(sex.stray), Integer(0, 9, nullable=True).becomes()
            ('17', "'?'", 'missing')
        """
        points = self.settle([np.array([reading]) for _ in self.sources("")])
        if np.isnan(points).any():
            return MISSING
        cells = [array[0].as_py() for array in self.decode(points, [None] * len(self.natural))]
        return ", ".join(str(cell).lower() if isinstance(cell, bool) else show_value(cell) for cell in cells)

    def count_changes(self, arrays: "Sequence[pa.Array]") -> Changes:
        """Count what `encode` would change. CONFIDENTIAL: the result depends on private values."""
        total = Changes()
        for source, array in enumerate(arrays):
            reading = self._reading(array, source)
            empty = self.empty(array, reading)
            clamped, unknown = self.changed(reading, source)
            unparsed = int(np.count_nonzero(np.isnan(reading) & ~empty))
            total += Changes(int(np.count_nonzero(empty)), unparsed, clamped, unknown)
        return total

    def empty(self, array: "pa.Array", reading: Floats) -> Bools:
        """Say which cells hold nothing at all, so that they are missing and not merely unparsed."""
        return absent(array)

    def _reading(self, array: "pa.Array", source: int) -> Floats:
        return by_distinct(array, lambda plain: self.read(plain, source))

    def _or_missing(self, present: Domain) -> Domain:
        """Return the domain of the present values, with the missing branch where there is one."""
        return Nullable(present) if self.nullable else present

    def _check_common(self) -> None:
        """Check weight and nullable; every kind calls it when it is made."""
        weight = number_field(self, "weight")
        if not 1e-6 <= weight <= 1e6:
            raise ColumnError(
                f"has weight = {self.weight}; a weight lies between 1e-6 and 1e6. Use 1 if in doubt.", "weight"
            )
        if not isinstance(self.nullable, bool):
            raise ColumnError(f"has nullable = {self.nullable!r}; write true or false.", "nullable")

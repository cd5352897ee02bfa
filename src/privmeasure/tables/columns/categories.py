"""Categories: unordered, ordered or in a taxonomy."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import msgspec
import numpy as np
from msgspec import Meta

from privmeasure.conditions.language import ConditionError
from privmeasure.domains import Bools, Categories, Domain, Finite, Floats, Integers, Nullable, Points
from privmeasure.domains.line import LARGEST_INTEGER
from privmeasure.domains.scales import Listed, Reading
from privmeasure.errors import ArgumentError
from privmeasure.tables.arrow import (
    cast_each,
    describe_type,
    is_double,
    is_text,
    numbers,
    plain_type,
    recode,
    round_within,
)
from privmeasure.tables.columns.base import DataColumn, Foreign, Sketch, Types
from privmeasure.tables.columns.fields import ColumnError, did_you_mean, has_half_characters, plural

if TYPE_CHECKING:
    import pyarrow as pa

MOST_VALUES = 1 << 20
"""As many as the domain can hold; more are free text, or identifiers."""
FEW_VALUES = 4096
"""Up to so many, Arrow builds its table of them anew for each array; it takes microseconds."""

CategoryValue = str | int | float


class Category(DataColumn, frozen=True, tag="category"):
    """One of a list of values, all equally far from one another.

    With `ordered` the distance goes by rank (small, medium, large). With a `taxonomy`, nested groups, values of one
    group are nearer: {"fruit": ["apple", "pear"], "fish": {"white": ["cod"], "oily": ["eel"]}}; `diameters` are the
    distances inside groups, from coarse to fine (1/2, 1/4, ... by default).
    With `distances`, a symmetric matrix with a row for each value, any finite metric will do; the largest counts as 1.
    Values are all text or all numbers. Text is compared as it is; numbers by value, so 1 is "1" in a CSV file and 1.0
    in a column of floats. A cell with none of the values becomes `unknown`: one of the values, by default missing if
    the column is nullable and else the first value.

    Examples:
        >>> import pyarrow as pa
        >>> size = Category(["S", "M", "L"], ordered=True, unknown="M")
        >>> size.encode([pa.array(["L", "S", "huge", None])])[:, 0]
        array([2., 0., 1., 1.])
        >>> food = Category(["apple", "cod", "pear"], taxonomy={"fruit": ["apple", "pear"]})
        >>> [food.domain.diameter(level) for level in range(3)]
        [1.0, 0.5, 0.0]
    """

    guide = ('values = ["a", "b"]', 'ordered = true for ranks; unknown = "b" is where all other values go')
    needs = (("values", "the list of values that may occur, from knowledge of the subject and not from the data"),)
    stored = ("string", "large_string", "string_view")
    caution = 'Free text, names and identifiers: type = "drop".'
    exact = True

    values: Annotated[
        tuple[CategoryValue, ...],
        Meta(
            description="Every value that may occur, all text or all numbers. Public: not taken from the data.",
            min_length=1,
        ),
    ]
    ordered: Annotated[bool, Meta(description="Whether the values are ranks, so that neighbours are near.")] = False
    taxonomy: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Groups of values: a name for each group, with a list of values or a table of smaller groups."
        ),
    ] = None
    diameters: Annotated[
        tuple[float, ...] | None,
        Meta(description="The distance between values of one group, from coarse to fine; 0.5, 0.25, ... by default."),
    ] = None
    distances: Annotated[
        tuple[tuple[float, ...], ...] | None,
        Meta(description="How far values are from each other, a row for each value; the largest counts as 1."),
    ] = None
    unknown: Annotated[
        CategoryValue | None, Meta(description="The value that stands for all others that occur; one of the values.")
    ] = None

    def __post_init__(self) -> None:
        """Check everything that is declared, before any data are touched."""
        self._check_common()
        self._check_values()
        if not isinstance(self.ordered, bool):
            raise ColumnError(f"has ordered = {self.ordered!r}; write true or false.", "ordered")
        plain = isinstance(self.unknown, str | int | float) and not isinstance(self.unknown, bool)
        if self.unknown is not None and not (plain and self.unknown in self._positions):
            hint = did_you_mean(str(self.unknown), [str(v) for v in self.values[:1000]])
            raise ColumnError(
                f"has unknown = {self.unknown!r}, which is not one of its values.{hint} Add it to them, or choose one.",
                "unknown",
            )
        if self.distances is not None:
            self._check_distances()
        if self.taxonomy is None:
            if self.diameters is not None:
                raise ColumnError("has diameters but no taxonomy. Remove them, or add the groups.", "diameters")
            return
        if not isinstance(self.taxonomy, dict):
            raise ColumnError("has a taxonomy that is no table of groups. Give every group a name.", "taxonomy")
        if self.diameters is not None and not isinstance(self.diameters, list | tuple):
            raise ColumnError(f"has diameters = {self.diameters!r}; write a list, like [0.5].", "diameters")
        if self.ordered:
            raise ColumnError("has both ordered and a taxonomy. Keep one of them.", "taxonomy")
        try:
            self.domain  # noqa: B018
        except ArgumentError as error:
            raise ColumnError(f"has a taxonomy that cannot be used: {error}", "taxonomy") from None

    def _check_distances(self) -> None:
        if self.ordered or self.taxonomy is not None:
            other = "ordered" if self.ordered else "a taxonomy"
            raise ColumnError(f"has both distances and {other}. Keep one of them.", "distances")
        try:
            rows = tuple(tuple(float(x) for x in row) for row in cast(Any, self.distances))
            if {len(rows), *map(len, rows)} != {len(self.values)}:
                raise ArgumentError(f"There must be {len(self.values)} rows of {len(self.values)} numbers.")
            msgspec.structs.force_setattr(self, "distances", rows)
            self.domain  # noqa: B018
        except (TypeError, ValueError) as error:
            told = str(error) if isinstance(error, ArgumentError) else "Write a list of rows of numbers."
            raise ColumnError(f"has distances that cannot be used: {told}", "distances") from None

    @property
    def since(self) -> int:
        """The first format that may say it."""
        return 1 if self.distances is None else 2

    def _check_values(self) -> None:
        if isinstance(self.values, str | bytes) or not hasattr(self.values, "__iter__"):
            raise ColumnError(f'has values = {self.values!r}; write a list, like ["F", "M"].', "values")
        values = tuple(v.item() if isinstance(v, np.generic) else v for v in self.values)
        if not 1 <= len(values) <= MOST_VALUES:
            raise ColumnError(
                f"has {len(values):,} values; a category has from 1 to {MOST_VALUES:,}. Group the rare ones, or "
                'declare free text and identifiers as type = "drop".',
                "values",
            )
        kinds = set(map(type, values))
        if not (kinds == {str} or kinds <= {int, float}):
            hint = 'Use type = "boolean" for true and false.' if bool in kinds else "Put all of them in quotes."
            raise ColumnError(f"has values that are neither all text nor all numbers. {hint}", "values")
        if kinds != {str} and not all(abs(float(v)) <= LARGEST_INTEGER for v in values):  # also refuses NaN
            raise ColumnError("has numbers beyond 2^53 among its values. Put all of them in quotes.", "values")
        if has_half_characters(values):
            raise ColumnError("has values with half a character, which no text file can hold. Remove it.", "values")
        msgspec.structs.force_setattr(self, "values", values)
        if len(self._positions) != len(values):
            twice = Counter(values).most_common(1)[0][0]
            raise ColumnError(f"has the value {twice!r} twice. Remove one of them.", "values")

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {value: i for i, value in enumerate(self.values)}

    @cached_property
    def domain(self) -> Domain:
        """The positions of the values: ranks, or categories with their groups."""
        count = len(self.values)
        if self.distances is not None:
            matrix = np.asarray(self.distances, np.float64)
            return self._or_missing(Finite(matrix / max(float(matrix.max()), np.finfo(np.float64).tiny)))
        return self._or_missing(
            Integers(0, count - 1)
            if self.ordered
            else Categories(count, taxonomy=self._levels() if self.taxonomy else None)
        )

    def _levels(self) -> list[tuple[float, list[Any]]]:
        """Return the taxonomy as the domain wants it: from fine to coarse, the group of every value."""
        paths: dict[Any, tuple[str, ...]] = {}
        for value, path in _leaves(self.taxonomy, ()):
            if value not in self._positions:
                hint = did_you_mean(str(value), [str(v) for v in self.values[:1000]])
                raise ColumnError(f"has {value!r} in its taxonomy, which is not one of its values.{hint}", "taxonomy")
            if value in paths:
                raise ColumnError(f"has {value!r} in two groups of its taxonomy. Keep it in one.", "taxonomy")
            paths[value] = path
        depth = max(map(len, paths.values()), default=0)
        diameters = self.diameters or tuple(2.0**-i for i in range(1, depth + 1))
        if len(diameters) != depth:
            raise ColumnError(
                f"has {plural(len(diameters), 'diameter')} for a taxonomy of {plural(depth, 'level')}. Give one "
                "per level, from coarse to fine.",
                "diameters",
            )
        # a value that is in no group, or in none as fine as a level, is alone there
        return [
            (
                diameters[i],
                [p[: i + 1] if len(p := paths.get(value, ())) > i else (n,) for n, value in enumerate(self.values)],
            )
            for i in range(depth - 1, -1, -1)
        ]

    @property
    def textual(self) -> bool:
        """Whether the values are text."""
        return isinstance(self.values[0], str)

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """The type of the values as declared."""
        import pyarrow as pa

        if self.textual:
            return (pa.string(),)
        return (pa.int64(),) if all(isinstance(v, int) for v in self.values) else (pa.float64(),)

    def refuses(self, type: "pa.DataType") -> str | None:
        """Refuse types that cannot hold the declared values."""
        import pyarrow as pa
        import pyarrow.types as pt

        plain = plain_type(type)
        if pt.is_null(plain):
            return None
        if pt.is_nested(plain) or pt.is_binary(plain) or pt.is_large_binary(plain) or pt.is_fixed_size_binary(plain):
            return f"must hold text or numbers to be a category, got {describe_type(plain)}. Cast it, or drop it."
        if pt.is_temporal(plain) and not self.textual:
            return (
                f"is a category of numbers, got {describe_type(plain)}. Put the values in quotes, or cast the column."
            )
        try:
            self._stored(plain)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return (
                f"is a category with values that {describe_type(plain)} cannot hold, which is what the table stores. "
                "Correct the values, or cast the column."
            )
        return None

    def _stored(self, plain: "pa.DataType") -> "pa.Array":
        """Return the values as the storage type has them."""
        import pyarrow as pa
        import pyarrow.types as pt

        if plain == self.natural[0]:
            return self._array
        if self.textual:
            return self._array.cast(pa.float64()).cast(plain) if pt.is_floating(plain) else self._array.cast(plain)
        if is_text(plain):
            return pa.array([str(v) for v in self.values]).cast(plain)
        return self._array.cast(plain)

    @cached_property
    def _array(self) -> "pa.Array":
        import pyarrow as pa

        return pa.array(self.values, self.natural[0])

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return positions; -1 for what is not among the values, NaN for null."""
        import pyarrow as pa
        import pyarrow.types as pt

        kind = array.type
        if pt.is_null(kind):
            return np.full(len(array), np.nan)
        if not self.textual or pt.is_floating(kind) or pt.is_decimal(kind):
            return self._read_numbers(array)
        if pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_temporal(kind):
            reading = self._read_texts(cast_each(array, pa.string()))
            beyond = np.isnan(reading) & np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
            return np.where(beyond, -1.0, reading)  # a date that no calendar has is none of the values
        if not is_text(kind):
            return np.where(array.is_null().to_numpy(zero_copy_only=False), np.nan, -1.0)
        return self._read_texts(array)

    def _read_texts(self, texts: "pa.Array") -> Floats:
        import pyarrow.compute as pc

        if len(self.values) > FEW_VALUES and len(texts) > 1:
            distinct = texts.dictionary_encode()
            positions = [self._positions.get(text, -1) for text in distinct.dictionary.to_pylist()]
            table = np.append(np.array(positions, np.float64), np.nan)
            return np.asarray(table[pc.fill_null(distinct.indices, len(positions)).to_numpy(zero_copy_only=False)])
        found = pc.index_in(texts, value_set=self._array.cast(texts.type))
        reading = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.float64)
        if texts.null_count:
            reading[texts.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return np.asarray(reading, np.float64)

    def _read_numbers(self, array: "pa.Array") -> Floats:
        values, keys = numbers(array), self._numbers
        null = (
            np.isnan(values) if not is_text(array.type) else np.asarray(array.is_null().to_numpy(zero_copy_only=False))
        )
        if not len(keys[0]):
            return np.where(null, np.nan, -1.0)
        place = np.minimum(np.searchsorted(keys[0], values), len(keys[0]) - 1)
        return np.where(null, np.nan, np.where(keys[0][place] == values, keys[1][place], -1.0))

    @cached_property
    def _numbers(self) -> tuple[Floats, Floats]:
        """Return the values that are numbers, sorted, and their positions."""
        import pyarrow as pa

        array = self._array
        values = numbers(array if self.textual else array.cast(pa.float64()))
        number = np.flatnonzero(np.isfinite(values))
        keys, first = np.unique(values[number], return_index=True)
        return keys, number[first].astype(np.float64)

    stray: ClassVar[float] = -1.0

    def settle(self, readings: Sequence[Floats]) -> Points:
        """Send what is unknown where the declaration says."""
        positions = np.where(readings[0] < 0, self._other, readings[0])
        if not self.nullable:
            positions[np.isnan(positions)] = self._other
        return positions[:, None]

    @property
    def _other(self) -> float:
        """The position of what is none of the values; NaN for missing."""
        if self.unknown is not None:
            return float(self._positions[self.unknown])
        return np.nan if self.nullable else 0.0

    def readings(self, types: Types, first: int = 0) -> tuple[Reading, ...] | None:
        """Return the position of the text or the number among the values."""
        values: tuple[Any, ...] = self.values
        if self.textual and types[0] is not None and is_text(types[0]):
            stored = "text"
        elif not self.textual and is_double(types[0]):
            stored, values = "number", tuple(map(float, values))
        else:
            return None
        return (Reading(first, (Listed(values, self._other, np.nan if self.nullable else self._other),), stored),)

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        """Count the cells with none of the values."""
        return 0, int(np.count_nonzero(reading < 0))

    def empty(self, array: "pa.Array", reading: Floats) -> Bools:
        """Only null: an empty text is a value like any other."""
        return np.isnan(reading)

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Look the values up."""
        import pyarrow as pa
        import pyarrow.types as pt

        kind = self.natural[0] if types[0] is None or pt.is_null(types[0]) else types[0]
        missing = np.isnan(points[:, 0])
        positions = round_within(points[:, 0], 0, len(self.values) - 1).astype(np.int32)
        indices = pa.array(positions, mask=missing if missing.any() else None)
        plain = plain_type(kind)
        stored = self._stored(self.natural[0] if pt.is_string_view(plain) else plain)  # views cannot be taken from
        return [recode(indices, stored, kind) if pt.is_dictionary(kind) else stored.take(indices)]

    @property
    def unordered(self) -> str:
        """Only declared ranks have an order."""
        return "" if self.ordered else ", but its values have no order. Use = or in."

    @property
    def has_quantiles(self) -> bool:
        """Only declared ranks have quantiles."""
        return self.ordered

    @property
    def listed(self) -> tuple[CategoryValue, ...]:
        """The declared values."""
        return self.values

    def position(self, name: str, value: Any) -> int:
        """Return the position of a value; a number may stand for its text."""
        if not isinstance(value, bool):
            for candidate in (value, str(value)) if self.textual else (value,):
                if candidate in self._positions:
                    return self._positions[candidate]
        hint = did_you_mean(str(value), [str(v) for v in self.values[:1000]])
        raise ConditionError(f"compares {name!r} with {value!r}, which is not one of its values.{hint}")

    def remarks(self, *, decided: bool = False) -> list[str]:
        """Say what other values become, if that was not decided."""
        if decided or self.unknown is not None or self.nullable:
            return []
        gone = f"any other value, and a missing one, becomes {self.values[0]!r}"
        return [f"has no unknown: {gone}. Add unknown, or nullable."]

    @property
    def decimal_marks(self) -> bool:
        """Whether all values are numbers."""
        return all(isinstance(value, int | float) for value in self.values)

    def in_units(self, share: float) -> str:
        """Say by how many ranks, or for which share of the rows; groups of a taxonomy are nearer than that."""
        if self.ordered:
            return plural(share * (len(self.values) - 1), "rank")
        if self.taxonomy:
            return super().in_units(share)
        return f"{100 * share:.2g} % of rows" if share < 0.995 else f"{100 * share:.0f} % of rows"

    def cell_size(self, cuts: int) -> str:
        """Say how many groups of values there are."""
        inner = self.domain.domain if isinstance(self.domain, Nullable) else self.domain
        size = inner.size(cuts)
        if size == len(self.values):
            return "single values"
        if self.ordered:
            return f"about {plural(-(-len(self.values) // size), 'rank')}"
        return f"{plural(size, 'group')} of values"

    @classmethod
    def imported(cls, field: Foreign) -> Sketch | None:
        """Take over the values, where they are listed; other texts have them to fill in."""
        if field.values is not None:
            ordered = {"ordered": True} if field.entry.get("categoriesOrdered") is True else {}
            return cls.sketch(values=[v for v in field.values if v is not None], **ordered, **field.common), ""
        if field.word == "sdv ordinal":
            return cls.sketch("values", ordered=True, **field.common), 'Counts and scores: type = "integer".'
        if field.word not in ("frictionless string", "sdv categorical") or field.identifies:
            return None
        return cls.sketch("values", **field.common), cls.caution if field.word == "frictionless string" else ""


def _leaves(group: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield every value of a taxonomy with the groups that it is in, from the outside in."""
    if len(path) > 16:
        raise ColumnError("has a taxonomy of more than 16 levels.", "taxonomy")
    if isinstance(group, dict):
        for name, inner in group.items():
            yield from _leaves(inner, (*path, str(name)))
    elif isinstance(group, list | tuple):
        for value in group:
            if isinstance(value, dict | list | tuple):
                raise ColumnError(
                    "has a taxonomy with a table inside a list. Give the smaller groups names.", "taxonomy"
                )
            yield value, path
    else:
        raise ColumnError(
            f"has {group!r} in its taxonomy where a list of values, or a table of smaller groups, was expected.",
            "taxonomy",
        )

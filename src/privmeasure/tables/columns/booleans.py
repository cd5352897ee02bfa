"""True and false."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from privmeasure.conditions.language import ConditionError
from privmeasure.domains import Categories, Domain, Floats, Points
from privmeasure.domains.line import LARGEST_INTEGER
from privmeasure.domains.scales import Listed, Reading
from privmeasure.tables.arrow import describe_type, is_double, is_number, is_text, number_cells, numbers, plain_type
from privmeasure.tables.columns.base import DataColumn, Foreign, Types
from privmeasure.tables.columns.fields import ColumnError, has_half_characters

if TYPE_CHECKING:
    import pyarrow as pa

TRUE = ("true", "t", "yes", "y", "1", "1.0", "on")
FALSE = ("false", "f", "no", "n", "0", "0.0", "off")


class Boolean(DataColumn, frozen=True, tag="boolean"):
    """True or false.

    In text, any case of true, t, yes, y, 1, on and false, f, no, n, 0, off; or the texts declared, of which the first
    is the one that is written. In numbers 1 and 0, or the whole numbers declared, which are then written: true = 1,
    false = 0. Whatever else is missing or, where that is not allowed, false.

    Examples:
        >>> import pyarrow as pa
        >>> Boolean(nullable=True).encode([pa.array(["Yes", "no", "maybe"])])[:, 0]
        array([ 1.,  0., nan])
        >>> Boolean(true=1, false=2).decode(np.array([[1.0], [0.0]]), [None])[0].to_pylist()
        [1, 2]
    """

    guide = ("", 'true = "yes", false = "no", or 1 and 0, if it is written in another way')
    stored = ("boolean",)

    true: Annotated[
        str | int | tuple[str, ...] | None,
        Meta(description='The text or the number for true, or a list of texts, like ["yes", "y"].'),
    ] = None
    false: Annotated[
        str | int | tuple[str, ...] | None, Meta(description="The text or the number for false, or a list of texts.")
    ] = None

    def __post_init__(self) -> None:
        """Check everything that is declared, before any data are touched."""
        self._check_common()
        for field in ("true", "false"):
            value = getattr(self, field)
            if isinstance(value, int) and not isinstance(value, bool):
                if abs(value) >= LARGEST_INTEGER:
                    raise ColumnError(f"has {field} = {value}, which is too large. Put it in quotes.", field)
                continue
            texts = (value,) if isinstance(value, str) else value
            if texts is not None and not (
                isinstance(texts, list | tuple) and texts and all(isinstance(t, str) for t in texts)
            ):
                raise ColumnError(f"has {field} = {value!r}; write a text, or a list of texts.", field)
            if has_half_characters(texts or ()):
                raise ColumnError(f"has half a character in {field}, which no text file can hold. Remove it.", field)
            msgspec.structs.force_setattr(
                self, field, None if texts is None else value if texts == (value,) else tuple(texts)
            )
        if (self.true is None) != (self.false is None):
            given, other = ("true", "false") if self.false is None else ("false", "true")
            raise ColumnError(f"declares texts for {given} but none for {other}. Give both, or neither.", given)
        if isinstance(self.true, int) != isinstance(self.false, int):
            raise ColumnError("declares a number for one of true and false and a text for the other.", "true")
        if both := {t.strip().lower() for t in self._texts[0]} & {t.strip().lower() for t in self._texts[1]}:
            raise ColumnError(f"has the text {min(both)!r} for both true and false. Case does not matter.", "true")

    @property
    def _texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the texts for false and for true."""
        if self.true is None or self.false is None:
            return FALSE, TRUE
        false, true = (
            (t,) if isinstance(t, str) else (str(t), f"{t}.0") if isinstance(t, int) else t
            for t in (self.false, self.true)
        )
        return false, true

    @property
    def _numbers(self) -> tuple[float, float]:
        """Return the numbers for false and for true."""
        if isinstance(self.true, int) and isinstance(self.false, int):
            return float(self.false), float(self.true)
        return 0.0, 1.0

    @cached_property
    def domain(self) -> Domain:
        """Two points at distance 1: false is 0, true is 1."""
        return self._or_missing(Categories(2))

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """Booleans, or what is declared: texts or whole numbers."""
        import pyarrow as pa

        return (pa.bool_(),) if self.true is None else (pa.int64(),) if isinstance(self.true, int) else (pa.string(),)

    @property
    def value_types(self) -> "tuple[pa.DataType, ...]":
        """True and false, however they are written."""
        import pyarrow as pa

        return (pa.bool_(),)

    def refuses(self, type: "pa.DataType") -> str | None:
        """Refuse dates, times, lists and the like."""
        import pyarrow.types as pt

        plain = plain_type(type)
        if pt.is_boolean(plain) or is_number(plain) or is_text(plain) or pt.is_null(plain):
            return None
        return f"must be true or false, got {describe_type(plain)}. Cast it, or drop it."

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return 1 for true, 0 for false, NaN for whatever else."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not is_text(array.type):
            values = numbers(array)
            no, yes = (0.0, 1.0) if pa.types.is_boolean(array.type) else self._numbers
            return np.where(values == yes, 1.0, np.where(values == no, 0.0, np.nan))
        false, true = self._texts
        words, texts = (
            pc.utf8_lower(pc.utf8_trim_whitespace(a))
            for a in (pa.array([*false, *true]), array.cast(pa.large_string()))
        )
        found = pc.index_in(texts, value_set=words.cast(pa.large_string()))
        place = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
        return np.where(place < 0, np.nan, (place >= len(false)).astype(np.float64))

    def settle(self, readings: Sequence[Floats]) -> Points:
        """Let what is neither be missing, or false."""
        return (readings[0] if self.nullable else np.where(readings[0] == 1, 1.0, 0.0))[:, None]

    def readings(self, types: Types, first: int = 0) -> tuple[Reading, ...] | None:
        """Return 0 or 1."""
        import pyarrow.types as pt

        if types[0] is None or not (pt.is_boolean(types[0]) or is_double(types[0])):
            return None
        neither = np.nan if self.nullable else 0.0
        values = (0.0, 1.0) if pt.is_boolean(types[0]) else self._numbers
        return (Reading(first, (Listed(values, neither, neither),)),) if values[0] < values[1] else None

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        """Nothing is clamped or unknown: what is neither true nor false counts as unparsed."""
        return 0, 0

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Write booleans, 0 and 1, or texts."""
        import pyarrow as pa

        plain = self.natural[0] if types[0] is None else plain_type(types[0])
        if is_number(plain):
            no, yes = self._numbers
            cells = np.where(np.isnan(points[:, 0]), np.nan, np.where(points[:, 0] >= 0.5, yes, no))
            return [number_cells(cells, plain)]
        missing = np.isnan(points[:, 0])
        truth = points[:, 0] >= 0.5
        if is_text(plain):
            indices = pa.array(truth.astype(np.int32), mask=missing if missing.any() else None)
            return [pa.array([self._texts[0][0], self._texts[1][0]]).take(indices)]
        return [pa.array(truth, mask=missing if missing.any() else None)]

    @property
    def unordered(self) -> str:
        """There is nothing between the two."""
        return "; true and false have no order. Use =."

    @property
    def listed(self) -> tuple[bool, bool]:
        """False, then true."""
        return False, True

    def position(self, name: str, value: Any) -> int:
        """Return 0 or 1 for what stands for false or true."""
        words = {"true": 1, "yes": 1, "1": 1, "false": 0, "no": 0, "0": 0}
        if str(value).lower() not in words:
            raise ConditionError(f"compares {name!r} with {value!r}; write true or false.")
        return words[str(value).lower()]

    def averages(self, points: Points) -> Floats:
        """Return 1 for true: the mean is a share."""
        return np.where(np.isnan(points[:, 0]), np.nan, (points[:, 0] >= 0.5).astype(np.float64))

    def in_units(self, share: float) -> str:
        """Say for which share of the rows."""
        return f"{100 * share:.2g} % of rows"

    def cell_size(self, cuts: int) -> str:
        """One cut tells them apart."""
        return "true or false"

    @classmethod
    def recognized(cls, field: Foreign) -> dict[str, Any] | None:
        """Take over the texts for true and for false."""
        theirs = {"true": "trueValues", "false": "falseValues"}
        texts = {name: field.entry[word] for name, word in theirs.items() if word in field.entry}
        return texts if field.word in ("frictionless boolean", "sdv boolean") else None

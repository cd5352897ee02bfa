"""Columns without a domain: the same value in every row, or nothing at all."""

import math
from collections.abc import Mapping, Sequence
from datetime import date, time
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from privmeasure.domains import Points
from privmeasure.tables.arrow import cast, describe_type, plain_type
from privmeasure.tables.columns.base import AnyColumn, Changes, Types
from privmeasure.tables.columns.fields import ColumnError

if TYPE_CHECKING:
    import pyarrow as pa


class Fixed(AnyColumn, frozen=True):
    """What columns without a domain share: no cell of theirs is looked at."""

    @property
    def domain(self) -> None:
        """There is nothing to tell apart."""
        return None

    def encode(self, arrays: "Sequence[pa.Array]") -> Points:
        """Return points without columns: no cell is looked at."""
        return np.empty((len(arrays[0]), 0))

    def count_changes(self, arrays: "Sequence[pa.Array]") -> Changes:
        """Nothing is read, so nothing is changed."""
        return Changes()


class Constant(Fixed, frozen=True, tag="constant"):
    """A column with one public value in every row of the output, whatever the cells of the table hold.

    Examples:
        >>> import numpy as np
        >>> Constant("CH").decode(np.empty((2, 0)), [None])[0].to_pylist()
        ['CH', 'CH']
    """

    guide = ("value", "the same in every row of the output")
    needs = (("value", "the value of every row"),)
    exact = True

    value: Annotated[str | bool | int | float, Meta(description="The value of every row of the output.")]

    def __post_init__(self) -> None:
        """Check that the value is one that a cell can hold."""
        value: Any = self.value.item() if isinstance(self.value, np.generic) else self.value
        value = value.isoformat() if isinstance(value, date | time) else value
        if not isinstance(value, str | bool | int | float) or (isinstance(value, float) and not math.isfinite(value)):
            raise ColumnError(f"has value = {value!r}; write a text, a number, true, false or a date.", "value")
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise ColumnError("has a number as value that is too large for a cell. Put it in quotes.", "value")
        msgspec.structs.force_setattr(self, "value", value)

    @classmethod
    def prepared(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep a date of TOML as its text."""
        return {name: v.isoformat() if isinstance(v, date | time) else v for name, v in fields.items()}

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """The type of the value."""
        import pyarrow as pa

        return (pa.scalar(self.value).type,)

    def refuses(self, type: "pa.DataType") -> str | None:
        """Refuse types that cannot hold the value."""
        import pyarrow as pa

        if pa.types.is_null(plain_type(type)):
            return None
        try:
            pa.array([self.value]).cast(plain_type(type))
        except pa.ArrowException:
            kind = describe_type(type)
            return f"is declared constant with a value that {kind} cannot hold. Correct the value, or cast it."
        return None

    def decode(self, points: Points, types: Types) -> "list[pa.Array]":
        """Repeat the value."""
        import pyarrow as pa

        value = pa.array([self.value])
        wanted = value.type if types[0] is None else types[0]
        repeated = value.take(pa.array(np.zeros(len(points), np.int32)))
        return [cast(repeated, wanted)]

    def fineness(self, level: int) -> str:
        """There is nothing to resolve."""
        return "constant"


class Drop(Fixed, frozen=True, tag="drop", repr_omit_defaults=True):
    """A column that is neither read nor written: identifiers, names, free text. An `optional` one may be absent.

    Examples:
        >>> Drop().sources("name"), Drop().outputs("name")
        (('name',), ())
    """

    guide = ("", "identifiers, names, free text: neither read nor written")

    optional: Annotated[bool, Meta(description="Whether a table need not have the column.")] = False

    @property
    def since(self) -> int:
        """The first format that may say it."""
        return 2 if self.optional else 1

    def outputs(self, name: str) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """Nothing is written."""
        return ()

    def refuses(self, type: "pa.DataType") -> str | None:
        """Accept every type."""
        return None

    def decode(self, points: Points, types: Types) -> "list[pa.Array]":
        """Return nothing."""
        return []

    def fineness(self, level: int) -> str:
        """It is not in the output."""
        return "dropped"

"""The order, the names and the storage types in which the columns of a table came in, and go out again."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from privmeasure.errors import ReleaseFileError
from privmeasure.tables.arrow import plain_type
from privmeasure.tables.columns.base import Types

if TYPE_CHECKING:
    import pyarrow as pa


class Writes(Protocol):
    """What a layout needs of a schema."""

    @property
    def natural_types(self) -> "Mapping[str, pa.DataType]":
        """The file columns that are written, with the types that they have where no storage type came in."""
        ...

    def has_room(self, name: str, type: "pa.DataType") -> bool:
        """Say whether a storage type has room for every value of a file column."""
        ...


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of the output, in order: public, as a table's header and types are.

    A type is None where the table had none: the text of a CSV file, or a column of nulls alone, whose type would tell
    that nothing else was in it. A dictionary has indices of 32 bits: a narrower width would tell how many categories
    occur. So have runs. A dictionary of nulls (categories of pandas) becomes one of the column's natural type.
    """

    names: tuple[str, ...]
    types: "tuple[pa.DataType | None, ...]"

    @classmethod
    def of(cls, schema: Writes, names: Sequence[str], types: Types | None) -> "Layout":
        """Return the layout of a table that was checked against a schema; dropped columns are left out.

        Columns that the table does not have, but the schema writes (derived ones), come last.
        """
        import pyarrow as pa
        import pyarrow.types as pt

        natural = schema.natural_types

        def stored(name: str, type: "pa.DataType | None") -> "pa.DataType | None":
            if type is not None and pt.is_dictionary(type) and pt.is_null(type.value_type):
                return pa.dictionary(pa.int32(), natural[name], type.ordered)
            nothing = type is None or pt.is_null(plain_type(type)) or not schema.has_room(name, type)
            return None if nothing else roomy(type)

        given = [None] * len(names) if types is None else list(types)
        kept = [(name, stored(name, type)) for name, type in zip(names, given, strict=True) if name in natural]
        kept += [(name, None) for name in natural if name not in names]
        return cls(tuple(name for name, _ in kept), tuple(t for _, t in kept))

    @classmethod
    def natural(cls, schema: Writes) -> "Layout":
        """Return the layout where there was no table: the schema's order, natural types."""
        return cls(tuple(schema.natural_types), (None,) * len(schema.natural_types))

    @classmethod
    def shared(cls, layouts: "Sequence[Layout]") -> "Layout":
        """Return the layout of several tables of one schema: the order of the first, the types that all have.

        Examples:
            >>> import pyarrow as pa
            >>> Layout.shared([Layout(("a", "b"), (pa.int8(), None)), Layout(("b", "a"), (None, pa.int16()))])
            Layout(names=('a', 'b'), types=(None, None))
        """
        types = [dict(zip(layout.names, layout.types, strict=True)) for layout in layouts]
        names = layouts[0].names
        return cls(names, tuple(types[0][n] if all(t.get(n) == types[0][n] for t in types) else None for n in names))

    def to_json(self) -> dict[str, Any]:
        """Return names, and types as Arrow writes them; of an extension its storage, as only its owner can read it."""
        return {"names": list(self.names), "types": [None if t is None else str(_storage(t)) for t in self.types]}

    @classmethod
    def from_json(cls, value: Any) -> "Layout":
        """Read what `to_json` wrote; a ReleaseFileError says what does not fit.

        Examples:
            >>> Layout.from_json({"names": ["age"], "types": ["dictionary<values=string, indices=int8, ordered=0>"]})
            Layout(names=('age',), types=(DictionaryType(dictionary<values=string, indices=int8, ordered=0>),))
        """
        match value:
            case {"names": list(names), "types": list(types)} if len(names) == len(types) and _all_text(names):
                return cls(tuple(names), tuple(None if t is None else _type(t) for t in types))
        raise ReleaseFileError(
            "The layout of a release must have a list of names and one of as many types. The file was edited: write "
            "the release again."
        )


def roomy(type: "pa.DataType") -> "pa.DataType":
    """Return a type whose dictionary indices and ends of runs, if it has any, take 32 bits at least.

    A narrower width depends on the values, or on the number of rows, and may be too narrow for a sample. An extension
    of such a type cannot be widened: its storage is.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(type):
        index = type.index_type if type.index_type.bit_width >= 32 else pa.int32()
        return pa.dictionary(index, roomy(type.value_type), type.ordered)
    if pa.types.is_run_end_encoded(type):
        ends = type.run_end_type if type.run_end_type.bit_width >= 32 else pa.int32()
        return pa.run_end_encoded(ends, roomy(type.value_type))
    storage = _storage(type)
    return type if storage == type or roomy(storage) == storage else roomy(storage)


def _storage(type: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa

    while isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    return type


def _all_text(names: Iterable[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def _type(text: Any) -> "pa.DataType":
    """Return the Arrow type that a text stands for."""
    import pyarrow as pa

    try:
        if match := re.fullmatch(r"timestamp\[(\w+), tz=(.+)\]", text):
            return pa.timestamp(match[1], match[2])
        if match := re.fullmatch(r"decimal(32|64|128|256)\((\d+), (-?\d+)\)", text):
            return getattr(pa, f"decimal{match[1]}")(int(match[2]), int(match[3]))
        if match := re.fullmatch(r"dictionary<values=(.+), indices=(\w+), ordered=([01])>", text):
            return pa.dictionary(_type(match[2]), _type(match[1]), ordered=match[3] == "1")
        if match := re.fullmatch(r"run_end_encoded<run_ends: (\w+), values: (.+)>", text):
            return pa.run_end_encoded(_type(match[1]), _type(match[2]))
        return pa.type_for_alias(text)
    except (AttributeError, TypeError, ValueError, pa.ArrowException):
        raise ReleaseFileError(
            f"The layout of a release names the type {text!r}, which is unknown. The file was edited, or written by a "
            "newer version: update privmeasure, or write the release again."
        ) from None

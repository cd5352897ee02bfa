"""Columns that follow from others: computed on output, neither measured nor paid for."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from privmeasure.domains import Points
from privmeasure.tables.columns.base import Types
from privmeasure.tables.columns.fields import ColumnError, has_half_characters
from privmeasure.tables.columns.fixed import Fixed
from privmeasure.tables.expressions import Expression, ExpressionError, calls, parse_expression

MOST_LOOKED_UP = 1 << 20
"""Entries of a lookup."""

LookedUp = str | bool | int | float


class Derived(Fixed, frozen=True, tag="derived", dict=True):
    """A column that follows from others of the same row, by an expression: year(seen), floor(age / 10) * 10.

    It is not measured and costs nothing: every row of the output has what the expression gives for its other values.
    The table may have the column or not; its cells are not looked at. `lookup` is a table of texts (or numbers, or true
    and false) for the function of that name; what is not in it becomes `otherwise`, by default missing. Its contents
    are public and stored in the release.

    Examples:
        >>> Derived("year(seen)").derive
        'year(seen)'
        >>> Derived("lookup(city)", lookup={"Bern": "BE", "Basel": "BS"}, otherwise="abroad").lookup["Bern"]
        'BE'
    """

    guide = ('derive = "year(seen)"', "follows from other columns: arithmetic, parts of dates, lookups; costs nothing")
    needs = (("derive", 'how it follows from other columns, like "year(seen)"'),)
    exact = True

    derive: Annotated[str, Meta(description="How the value follows from other columns, like year(seen).")]
    lookup: Annotated[
        dict[str, Any] | str | None,
        Meta(description="What lookup() gives for each value: a table, or the name of a CSV file beside the schema."),
    ] = None
    otherwise: Annotated[
        LookedUp | None, Meta(description="What lookup() gives for all other values; missing if left out.")
    ] = None

    def __post_init__(self) -> None:
        """Check what can be checked without the other columns."""
        try:
            expression = self.tree
        except ExpressionError as fault:
            raise ColumnError(f"has derive = {str(self.derive)[:80]!r}, which {fault}", "derive") from None
        if calls(expression, "lookup") != (self.lookup is not None):
            told = "has a lookup that derive does not use" if self.lookup is not None else "uses lookup() without one"
            raise ColumnError(f'{told}. Write both: derive = "lookup(city)" and lookup = {{...}}.', "lookup")
        if self.otherwise is not None and self.lookup is None:
            raise ColumnError("has otherwise but no lookup. Remove it, or add the lookup.", "otherwise")
        if self.lookup is not None:
            self._check_lookup()

    def _check_lookup(self) -> None:
        if isinstance(self.lookup, str):
            raise ColumnError(
                f"has lookup = {self.lookup!r}: a file is read beside a schema file alone. Write the table itself.",
                "lookup",
            )
        if not isinstance(self.lookup, Mapping) or not 1 <= len(self.lookup) <= MOST_LOOKED_UP:
            raise ColumnError(f"has a lookup that is no table of 1 to {MOST_LOOKED_UP:,} entries.", "lookup")
        table = {_key(key): value for key, value in self.lookup.items()}
        values = [*table.values(), *([] if self.otherwise is None else [self.otherwise])]
        kinds = set(map(type, values))
        if not (kinds in ({str}, {bool}) or kinds <= {int, float}) or len(table) < len(self.lookup):
            raise ColumnError(
                "has a lookup whose values (and otherwise) must be all text, all numbers or all true and false, each "
                "for a key of its own.",
                "lookup",
            )
        if not all(abs(value) < 2**53 for value in values if isinstance(value, int | float)):  # also refuses NaN
            raise ColumnError("has numbers beyond 2^53 in its lookup. Put all of them in quotes.", "lookup")
        if has_half_characters([*table, *values]):
            raise ColumnError("has a lookup with half a character, which no text file can hold. Remove it.", "lookup")
        msgspec.structs.force_setattr(self, "lookup", table)

    @cached_property
    def tree(self) -> Expression:
        """The expression, read."""
        return parse_expression(self.derive)

    @property
    def since(self) -> int:
        """The format of schemas that may have it."""
        return 2

    @property
    def optional(self) -> bool:
        """A table may have the column, or not."""
        return True

    @property
    def natural(self) -> "tuple[Any, ...]":
        """The schema knows: it depends on other columns."""
        raise NotImplementedError

    def refuses(self, type: Any) -> str | None:
        """Accept every type here: the schema compares it with what the expression gives."""
        return None

    def decode(self, points: Points, types: Types) -> "list[Any]":
        """The schema does it: it depends on other columns."""
        raise NotImplementedError

    def fineness(self, level: int) -> str:
        """It follows from other columns."""
        return "derived"


def _key(key: Any) -> str:
    """Return a key of a lookup as the language writes values.

    Examples:
        >>> _key(True), _key(7), _key("a")
        ('true', '7', 'a')
    """
    return str(key).lower() if isinstance(key, bool) else str(key)

"""What every plan says before anything is spent, whatever the mechanism."""

from fractions import Fraction
from typing import Any, Protocol

from privmeasure.noise.law import LawName
from privmeasure.plans.plan import Bound, Plan, RowsAre
from privmeasure.privacy import Privacy


class Promise(Protocol):
    """What a mechanism will do and what it guarantees, from public numbers alone. `Plan` and `ColumnPlan` are ones."""

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        ...

    @property
    def privacy(self) -> Privacy:
        """What is promised to the people in the data."""
        ...

    @property
    def law(self) -> LawName:
        """The law of the noise."""
        ...

    @property
    def why(self) -> str:
        """Why it is that law, where a delta was offered; else empty."""
        ...

    @property
    def rows(self) -> int:
        """The number of rows that it was made for."""
        ...

    @property
    def rows_are(self) -> RowsAre:
        """Where that number comes from."""
        ...

    @property
    def expected_rows(self) -> int:
        """How many rows a release will have, about."""
        ...

    @property
    def spent(self) -> Fraction:
        """What all steps cost together, exactly; at most epsilon."""
        ...

    @property
    def trees(self) -> tuple[Plan, ...]:
        """The plans of its trees: of the one over all columns, or of each column by itself."""
        ...

    @property
    def joint(self) -> bool:
        """Whether one tree holds all columns, so that something is promised for the joint distribution."""
        ...

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """All bounds that are known."""
        ...

    @property
    def best(self) -> Bound | None:
        """The smallest bound that applies."""
        ...

    @property
    def guarantee(self) -> float:
        """What is guaranteed of the expected W1 distance; NaN where nothing is promised for the joint distribution."""
        ...

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee says nothing."""
        ...

    @property
    def memory_bytes(self) -> int:
        """What the release will need of memory, about."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        ...

"""What every release offers, whatever its kind. Asking it is free: the privacy was paid for already."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from privmeasure.conditions.orders import AnyFact
from privmeasure.conditions.sets import Condition
from privmeasure.domains import Domain, Points, Product
from privmeasure.origin import Origin, ledger_words
from privmeasure.plans.promise import Promise
from privmeasure.releases import files
from privmeasure.releases.sampling import Share

Order = Literal["random", "cell"]


class Release(Protocol):
    """What anyone may see: rows, answers, one file. `CellMeasure`, `ColumnsMeasure` and `TableRelease` are ones.

    Rows and answers are points and numbers by place in the releases of points, tables and values by name in those of
    tables.
    """

    @property
    def plan(self) -> Promise:
        """What was measured and what is guaranteed, restated at the released number of rows."""
        ...

    @property
    def private(self) -> bool:
        """False when the noise came from a seed: such a release protects no one."""
        ...

    @property
    def origin(self) -> Origin | None:
        """The id of the release and the version that made it; None in files of versions that did not keep them."""
        ...

    @property
    def total(self) -> int:
        """The released number of rows."""
        ...

    def sample(
        self, n: int | None = None, *, seed: int | None = None, order: Order = "random", threads: int | None = None
    ) -> Any:
        """Return synthetic rows."""
        ...

    def blocks(
        self, n: int | None = None, *, seed: int | None = None, order: Order = "random", threads: int | None = None
    ) -> Iterator[Any]:
        """Yield the rows of `sample` in pieces."""
        ...

    def mean(self) -> Any:
        """Return the mean of every column that has one."""
        ...

    def quantile(self, q: float, *, column: Any) -> Any:
        """Return a quantile of one column."""
        ...

    def error_bar(self, *, lipschitz: float | None = None, column: Any = None) -> float:
        """Return how far a statistic is from that of the data, in expectation."""
        ...

    def certificate(self, beta: float = 0.05, *, quick: bool = False) -> Any:
        """Return a bound of the distance between the data and the release, which holds but for a chance beta."""
        ...

    def to_frame(self) -> Any:
        """Return the measure as a table of cells."""
        ...

    def header(self) -> dict[str, Any]:
        """Return what the file says about the release."""
        ...

    def save(self, path: str | Path) -> None:
        """Write the release to one file."""
        ...


class Measure(Release, Protocol):
    """A release of points: what a mechanism makes, and what a `TableRelease` puts names and types on."""

    def blocks(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        order: Order = "random",
        threads: int | None = None,
        then: Callable[[Points], Any] | None = None,
    ) -> Iterator[Any]:
        """Yield the rows of `sample` in pieces; `then` is applied to each, in a thread."""
        ...

    def chosen(
        self,
        n: int | None = None,
        *,
        seed: int | None,
        order: Order,
        threads: int | None,
        then: Callable[[Points], Any],
        where: Sequence[Condition],
        facts: Sequence[AnyFact],
        factors: Product,
    ) -> Iterator[Any]:
        """Yield `then` of rows that satisfy conditions and break no fact, in pieces; both are about those factors."""
        ...

    def shares(self, n: int | None, parts: int) -> Iterator[Share]:
        """Yield a sample in so many shares, which `lean` measures make on other machines."""
        ...

    def lean(self, facts: Sequence[AnyFact]) -> "Measure":
        """Return what makes shares, and no more: no noisy counts; of one tree no cells, unless facts need them."""
        ...

    def made(
        self,
        share: Share,
        *,
        seed: int,
        then: Callable[[Points], Any],
        where: Sequence[Condition],
        facts: Sequence[AnyFact],
        factors: Product,
    ) -> Iterator[Any]:
        """Yield `then` of the rows of a share, in pieces, as `chosen` does: always the same for a seed."""
        ...

    def keeping(self, facts: tuple[AnyFact, ...], factors: Product) -> "Measure":
        """Return the measure that knows what of a table with such factors can never occur, if its rows follow from it.

        Else it returns itself.
        """
        ...

    def distances(self, rows: Points) -> tuple[float, ...]:
        """Return for each column of a release of columns how far rows are from it; of one tree, from the tree."""
        ...

    def pair_distances(self, rows: Points, *, noisy: bool = False) -> tuple[tuple[int, int, float], ...]:
        """Return the measured pairs of columns, with how far rows are from their released tables; one tree has none.

        From the tables made consistent, or the `noisy` ones.
        """
        ...

    def pair_information(self) -> tuple[tuple[int, int, float], ...]:
        """Return the measured pairs of columns, with what one tells of the other in bits; one tree has none."""
        ...

    @property
    def domain(self) -> Domain:
        """Where the points lie."""
        ...

    def columns_of_file(self) -> files.FileTable:
        """Return the columns of the file: part, cell and mass."""
        ...

    def part(self, column: int) -> tuple[Any, int]:
        """Return the `CellMeasure` that a column of points lies in, and its place there."""
        ...


def with_record(measure: Measure, recorded: bool | None) -> Measure:
    """Return a release of points that says whether a ledger recorded it: in its file, and in the words of its plan."""
    made, plan = cast(Any, measure), cast(Any, measure.plan)
    origin = measure.origin and replace(measure.origin, recorded=recorded)
    return cast(Measure, replace(made, origin=origin, plan=replace(plan, ledger=ledger_words(recorded))))

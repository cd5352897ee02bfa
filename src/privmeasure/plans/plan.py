"""What a mechanism will do and what it promises, as a value: made from public numbers alone."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Annotated, Any, Literal, get_args

import msgspec

from privmeasure.domains import Domain
from privmeasure.domains.steps import FEWER_STEPS
from privmeasure.errors import ReleaseFileError
from privmeasure.noise.law import LAPLACE, LawName
from privmeasure.notebook import html_words
from privmeasure.privacy import Privacy, read_fraction

RowsAre = Literal["public", "assumed", "released"]
Whole = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Real = Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]


@dataclass(frozen=True, slots=True)
class Bound:
    """One upper bound of the expected 1-Wasserstein distance between the data and the release.

    `applies` is False for a bound that is shown for comparison; `about` says of what it is. Where it is what another
    mechanism would guarantee at the same public values, `mechanism` is the name of that one.
    """

    name: str
    value: Real
    applies: bool
    about: str
    mechanism: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be measured, at what price, and what is guaranteed. Frozen; `to_json` and `from_json` are inverse.

    `rows` is the number of rows that the plan was made for: a public number, one assumed for planning, or the noisy
    number that the release bought (`rows_are`). Levels that are not listed in `levels` are not measured. `law` is what
    the noise is drawn from, at `scales`, which `Privacy.scale` makes of `budgets`; where a delta was offered, `why`
    says why it is that one. `ledger` says after a release whether it was recorded; a file keeps that in its header.
    """

    mechanism: str
    privacy: Privacy
    rows: Whole
    rows_are: RowsAre
    depth: Whole
    levels: tuple[Whole, ...]
    budgets: tuple[Fraction, ...]
    scales: tuple[Fraction, ...]
    cells: Whole
    diameter: Real
    leaf_diameter: Real
    evaluation: Literal["whole tree", "lazy"]
    bounds: tuple[Bound, ...]
    memory_bytes: Whole
    law: LawName = LAPLACE
    why: str = ""
    ledger: str = field(default="", compare=False)
    compared: bool = field(default=False, compare=False)
    """Whether a constraint of the schema compares two columns: said in words, and not written."""

    @property
    def best(self) -> Bound | None:
        """The smallest bound that applies, or None where nothing is proved for this recipe."""
        return min((bound for bound in self.bounds if bound.applies), key=lambda bound: bound.value, default=None)

    @property
    def guarantee(self) -> float:
        """An upper bound of the expected W1 distance: the best bound, or the diameter of the whole space."""
        return min(self.best.value, self.diameter) if self.best else self.diameter

    @property
    def rival(self) -> Bound | None:
        """The smallest bound of another mechanism at the same public values, or None where none was computed."""
        return min((bound for bound in self.bounds if bound.mechanism), key=lambda bound: bound.value, default=None)

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee says no more than that both measures live in the same space."""
        return self.guarantee >= self.diameter

    @property
    def spent(self) -> Fraction:
        """The sum of all budgets: at most epsilon, or with a delta rho, exactly."""
        return sum(self.budgets, Fraction(0))

    @property
    def trees(self) -> tuple["Plan", ...]:
        """The plans of its trees: itself."""
        return (self,)

    @property
    def joint(self) -> bool:
        """One tree holds all columns."""
        return True

    @property
    def expected_rows(self) -> int:
        """How many rows the release is expected to stand for."""
        return max(1, self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; fractions are written as "p/q"."""
        value = {f.name: getattr(self, f.name) for f in fields(self) if f.compare}
        value["privacy"] = self.privacy.to_json()
        value["levels"] = list(self.levels)
        value["budgets"] = [str(budget) for budget in self.budgets]
        value["scales"] = [str(scale) for scale in self.scales]
        value["bounds"] = [{f.name: getattr(bound, f.name) for f in fields(bound)} for bound in self.bounds]
        return without_usual_law(value)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Plan":
        """Read what `to_json` wrote; a file may have been edited, so everything is checked."""
        bounds = [read_fields(Bound, bound) for bound in value["bounds"]]
        plan: Plan = read_fields(cls, value, privacy=Privacy.from_json(value["privacy"]), bounds=bounds)
        plan._check()
        return plan

    def _check(self) -> None:
        """Refuse levels and budgets that are not what the promise allows."""
        if not (
            list(self.levels) == sorted({*self.levels})
            and max(self.levels, default=0) == self.depth
            and len(self.levels) == len(self.budgets) == len(self.scales)
            and all(b > 0 and s == self.privacy.scale(b) for b, s in zip(self.budgets, self.scales, strict=True))
            and self.law == self.privacy.law
            and self.spent <= self.privacy.budget
        ):
            raise ReleaseFileError("the levels, budgets and scales of the plan do not fit the privacy promise")

    def __str__(self) -> str:
        """Say it in words."""
        return "\n".join(
            [
                *self._spending(),
                *self._promises(),
                *about_rows(self.privacy, compared=self.compared),
                *about_ledger(self.ledger),
            ]
        )

    def __repr__(self) -> str:
        """Show the outline."""
        promise = f"{self.mechanism}, {self.privacy.short}, {self.privacy.neighbours}"
        return f"Plan({promise}, {self.rows:,} rows, depth {self.depth}, guarantee {self.guarantee:.4g})"

    def _repr_html_(self) -> str:
        """Show the words as a table, in a notebook."""
        return html_words(str(self), title="Plan")

    def _spending(self) -> list[str]:
        source = {"public": "public", "assumed": "assumed for this plan", "released": "released, with noise"}
        lines = [
            f"privacy    {self.privacy.stated}, neighbours: {self.privacy.neighbours}{self.privacy.owner}",
            f"{self.privacy.counted:<10} {self.rows:,} ({source[self.rows_are]})",
            f"tree       depth {self.depth}, {self.cells:,} cells of diameter at most {self.leaf_diameter:.4g}"
            f" ({self.evaluation}, about {_size(self.memory_bytes)})",
        ]
        lines += [f"noise      {self.why}"] if self.why else []
        for level, budget, scale in zip(self.levels, self.budgets, self.scales, strict=True):
            what = "the number of rows" if level == 0 else f"level {level}"
            lines.append(
                f"measured   {what:<18}  {self.privacy.unit} {float(budget):<7.4g} noise scale {float(scale):.3g}"
            )
        return lines

    def _promises(self) -> list[str]:
        lines = [f"{bound.name:<10} {bound.value:<8.4g} {bound.about}" for bound in self.bounds]
        if self.rival is not None:
            lines.append(self._comparison(self.rival))
        if self.best is None:
            return [*lines, "guarantee  none is proved for this recipe"]
        if self.vacuous:
            text = (
                "guarantee  at this number of rows, dimension and epsilon the bound says nothing: it reaches the\n"
                f"           diameter {self.diameter:.4g}. It takes more rows, more epsilon or fewer columns."
            )
            return [*lines, text]
        text = (
            f"guarantee  expected W1 distance at most {self.guarantee:.4g} at {self.rows:,} {self.privacy.counted}, "
            f"where the whole space has diameter {self.diameter:.4g} ({self.best.name})"
        )
        return [*lines, text]

    def _comparison(self, rival: Bound) -> str:
        """Say in one line which mechanism guarantees most."""
        if min(self.guarantee, rival.value) >= self.diameter:
            return "best       no mechanism guarantees anything at these values"
        if rival.value < self.guarantee:
            own = "nothing" if self.vacuous else f"{self.guarantee:.4g}"
            return f"best       mechanism={rival.mechanism!r} guarantees {rival.value:.4g} here, this one {own}"
        other = "nothing" if rival.value >= self.diameter else f"{rival.value:.4g}"
        return f"best       this mechanism, {self.mechanism!r}: {rival.mechanism!r} would guarantee {other}"


def about_rows(privacy: Privacy, *, compared: bool) -> list[str]:
    """Say what guarantees are about if not all rows are kept, or a constraint moves them; nothing otherwise."""
    lines = []
    if privacy.person is not None:
        lines.append(
            f"about      the kept rows: further rows of one {privacy.person!r}, and rows without any, are not counted"
        )
    if compared:
        lines.append(
            "about      the released columns: a constraint compares two columns and moves the rows. How far is not\n"
            "           known before the release, which states it (row_distances)"
        )
    return lines


def about_ledger(ledger: str) -> list[str]:
    """Say after a release whether it was recorded; nothing before."""
    return [f"ledger     {ledger}"] if ledger else []


def read_fields(kind: Any, value: dict[str, Any], **known: Any) -> Any:
    """Return a dataclass of what a file says, each field of its type and none unknown; `known` were read before."""
    if unknown := value.keys() - {f.name for f in fields(kind) if f.compare}:
        raise ReleaseFileError(f"the plan has an unknown field {min(unknown)!r}")
    check_law(value.get("law", LAPLACE))
    try:
        return msgspec.convert(value | known, kind, dec_hook=lambda _, text: read_fraction(text))
    except msgspec.ValidationError as error:
        raise ReleaseFileError(f"a field of the plan has a wrong type: {error}") from None


USUAL_FIELDS = (
    ("law", LAPLACE),
    ("why", ""),
    ("list_room", 1),
    ("pair_power", 0.0),
    ("most_steps", FEWER_STEPS),
    ("agreement_pairs", 0),
    ("agreements_budget", "0"),
)
"""What files leave out: older ones do not have it."""


def without_usual_law(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON value of a plan without its law where that is the usual one, which old files do not name."""
    return {name: item for name, item in plan.items() if (name, item) not in USUAL_FIELDS}


def check_law(law: Any) -> None:
    """Raise where a file names a law that this version does not know."""
    if law not in get_args(LawName):
        raise ReleaseFileError(
            f"the noise is of the law {law!r}, which this version does not know: update privmeasure to read it"
        )


def _size(count: int) -> str:
    """Return a number of bytes as people say it."""
    unit, value = "KiB", count / 1024
    if value >= 1024:
        unit, value = "MiB", value / 1024
    return f"{max(1, round(value)):,} {unit}"


def tree_plan(
    mechanism: str,
    domain: Domain,
    privacy: Privacy,
    budgets: Mapping[int, Fraction],
    *,
    rows: int,
    rows_are: RowsAre,
    depth: int,
    law: LawName,
    bounds: tuple[Bound, ...],
    memory_bytes: int,
    lazy: bool = False,
    why: str = "",
) -> Plan:
    """Return the plan of one tree: what its measured levels cost, and their noise, by the sensitivity of a level."""
    return Plan(
        mechanism=mechanism,
        privacy=privacy,
        rows=rows,
        rows_are=rows_are,
        depth=depth,
        levels=tuple(budgets),
        budgets=tuple(budgets.values()),
        scales=tuple(privacy.scale(budget) for budget in budgets.values()),
        cells=domain.size(depth),
        diameter=domain.diameter(0),
        leaf_diameter=domain.diameter(depth),
        evaluation="lazy" if lazy else "whole tree",
        bounds=bounds,
        memory_bytes=memory_bytes,
        law=law,
        why=why,
    )

"""A mechanism as one value: which levels are measured, how estimates are made, how mass is split and placed."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from privmeasure.errors import ArgumentError

ScheduleName = Literal["ladder", "sparse", "every level"]
InferenceName = Literal["blue", "none"]
RuleName = Literal["signed", "isotonic", "uniform", "proportional"]
PlacementName = Literal["uniform", "centre"]
ShrinkageName = Literal["none", "groups"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The choices of the tree mechanism, by the names of the functions that carry them out.

    - `schedule` (plans/schedule.py): ``ladder`` measures few levels and buys the number of rows cheaply; ``sparse`` was
      the default before it; ``every level`` is the paper's. Left out: ladder where shrinkage is, else sparse.
    - `inference` (estimates/linear.py): ``blue`` combines the measured levels, ``none`` does not.
    - `rule` (estimates/consistency.py): ``signed`` (T2); ``isotonic`` (T3), on a line only; or the paper's ``uniform``
      and ``proportional``, which clip first.
    - `placement` (releases/cells.py): points ``uniform`` in their cell, or at its ``centre``.
    - `shrinkage` (estimates/shrinkage.py): ``groups`` takes back what noise explains of the splits of like cells;
      ``none``. Left out: groups where a recipe is otherwise the default.

    Examples:
        >>> Recipe()
        Recipe(schedule='ladder', inference='blue', rule='signed', placement='uniform', shrinkage='groups')
        >>> Recipe(shrinkage="none")
        Recipe(schedule='sparse', inference='blue', rule='signed', placement='uniform', shrinkage='none')
        >>> Recipe(rule="uniform")
        Traceback (most recent call last):
        ...
        privmeasure.errors.ArgumentError: rule 'uniform' clips noisy counts, which would bias the estimates of ...
    """

    schedule: ScheduleName = None  # type: ignore[assignment]
    inference: InferenceName = "blue"
    rule: RuleName = "signed"
    placement: PlacementName = "uniform"
    shrinkage: ShrinkageName = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Fill in what was left out; refuse unknown names and combinations that nobody has justified."""
        plain = self.inference == "blue" and self.rule == "signed"
        if self.shrinkage is None:
            object.__setattr__(self, "shrinkage", "groups" if plain and self.schedule in (None, "ladder") else "none")
        if self.schedule is None:
            object.__setattr__(self, "schedule", "ladder" if self.shrinkage == "groups" else "sparse")
        for name, allowed in (
            ("schedule", ScheduleName),
            ("inference", InferenceName),
            ("rule", RuleName),
            ("placement", PlacementName),
            ("shrinkage", ShrinkageName),
        ):
            if getattr(self, name) not in get_args(allowed):
                raise ArgumentError(
                    f"{name} must be one of {', '.join(map(repr, get_args(allowed)))}, got {getattr(self, name)!r}."
                )
        if self.rule == "isotonic" and self.inference != "blue":
            raise ArgumentError("rule 'isotonic' projects the estimates of inference 'blue'. Use inference='blue'.")
        if self.inference == "blue" and self.rule not in ("signed", "isotonic"):
            raise ArgumentError(
                f"rule {self.rule!r} clips noisy counts, which would bias the estimates of inference 'blue'. "
                "Use rule='signed', or inference='none'."
            )

        if self.shrinkage == "groups" and not plain:
            raise ArgumentError(
                "shrinkage 'groups' weighs differences against their noise, which only inference='blue' with "
                "rule='signed' provides. Use these, or shrinkage='none'."
            )
        if self.schedule == "ladder" and self.inference != "blue":
            raise ArgumentError(
                "schedule 'ladder' buys the number of rows cheaply and takes it from all levels: it needs "
                "inference='blue'. Use schedule='sparse'."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the names."""
        return {
            "schedule": self.schedule,
            "inference": self.inference,
            "rule": self.rule,
            "placement": self.placement,
        } | ({} if self.shrinkage == "none" else {"shrinkage": self.shrinkage})  # as older files have it


DEFAULT = Recipe()
"""Few levels, best linear inference, signed rule, shrinkage. On spaces other than boxes it stands for `PLAIN`."""

PLAIN = Recipe(shrinkage="none")
"""Without shrinkage: what a column of a wide table has, and a tree on any space but a box, where T7 does not hold."""


def paper(rule: RuleName = "uniform") -> Recipe:
    """Return the recipe of the paper: every level measured, raw counts, and one of its two rules."""
    return Recipe(schedule="every level", inference="none", rule=rule)

"""A mechanism as one value: which levels are measured, how estimates are made, how mass is split and placed."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from privmeasure.errors import ArgumentError

ScheduleName = Literal["sparse", "every level"]
InferenceName = Literal["blue", "none"]
RuleName = Literal["signed", "isotonic", "uniform", "proportional"]
PlacementName = Literal["uniform", "centre"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The four choices of the tree mechanism, by the names of the functions that carry them out.

    - `schedule` (schedule.py): ``sparse`` measures few levels, ``every level`` is the paper's.
    - `inference` (inference.py): ``blue`` combines the measured levels, ``none`` does not.
    - `rule` (consistency.py): ``signed`` (T2); ``isotonic`` (T3), on a line only; or the paper's ``uniform`` and
      ``proportional``, which clip first.
    - `placement` (release.py): points ``uniform`` in their cell, or at its ``centre``.

    Examples:
        >>> Recipe()
        Recipe(schedule='sparse', inference='blue', rule='signed', placement='uniform')
        >>> Recipe(rule="uniform")
        Traceback (most recent call last):
        ...
        privmeasure.errors.ArgumentError: rule 'uniform' clips noisy counts, which would bias the estimates of ...
    """

    schedule: ScheduleName = "sparse"
    inference: InferenceName = "blue"
    rule: RuleName = "signed"
    placement: PlacementName = "uniform"

    def __post_init__(self) -> None:
        """Refuse unknown names and combinations that nobody has justified."""
        for name, allowed in (
            ("schedule", ScheduleName),
            ("inference", InferenceName),
            ("rule", RuleName),
            ("placement", PlacementName),
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

    def to_json(self) -> dict[str, Any]:
        """Return the four names."""
        return {
            "schedule": self.schedule,
            "inference": self.inference,
            "rule": self.rule,
            "placement": self.placement,
        }


DEFAULT = Recipe()
"""Sparse levels, best linear inference, signed rule: the choice of the accuracy benchmark."""


def paper(rule: RuleName = "uniform") -> Recipe:
    """Return the literal mechanism of the paper."""
    return Recipe(schedule="every level", inference="none", rule=rule)

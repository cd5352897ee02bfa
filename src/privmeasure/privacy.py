"""What is promised to each person: epsilon, and what counts as neighbouring tables."""

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from privmeasure.errors import ArgumentError

Neighbours = Literal["add-remove", "replace"]

LARGEST_EPSILON = 50
"""Above this a budget no longer protects anyone, and is far more often a mistake than a wish."""

COMPARED_ROWS_PER_PERSON = (1, 2, 4, 8, 16)
"""The numbers of rows per person that plans are compared at."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """A pure differential-privacy promise: exp(epsilon) bounds every probability ratio between neighbouring tables.

    `neighbours` has no default, because the two relations differ by a factor of two and by what is public:

    - ``"add-remove"``: one person's rows are added or removed. The number of rows is private.
    - ``"replace"``: one person's rows are replaced by others. The number of rows is public.

    A person may own up to `rows_per_person` rows; every sensitivity is multiplied by it. Without `person` that is
    trusted. With it, the name of the column that says whose row it is, it is made true: at most so many rows of each
    person are kept, and neighbouring tables differ in all rows of one person, however many they are.

    Notation:   D sensitivity: the largest change of the counts of one level of cells, summed over its cells
    Guarantee:  privacy  D = rows_per_person ("add-remove") or 2 * rows_per_person ("replace")
    References: [HVZ23] Definition 1.1 with the adjacency made explicit

    Examples:
        >>> Privacy(0.1, "replace")
        Privacy(epsilon=Fraction(1, 10), neighbours='replace', rows_per_person=1, person=None)
        >>> Privacy(1, "add-remove", rows_per_person=3).sensitivity
        3
    """

    epsilon: Fraction
    neighbours: Neighbours
    rows_per_person: int = 1
    person: str | None = None

    def __init__(
        self, epsilon: Any, neighbours: Neighbours, rows_per_person: int = 1, person: str | None = None
    ) -> None:
        """Check all four; a float epsilon is read as the decimal that it prints as (0.1 is 1/10)."""
        object.__setattr__(self, "epsilon", exact_epsilon(epsilon))
        if neighbours not in get_args(Neighbours):
            raise ArgumentError(
                f"neighbours must be 'add-remove' (the number of rows is private) or 'replace' (it is public), "
                f"got {neighbours!r}. There is no default: choose the promise that you make."
            )
        object.__setattr__(self, "neighbours", neighbours)
        if isinstance(rows_per_person, bool) or not isinstance(rows_per_person, int) or rows_per_person < 1:
            raise ArgumentError(
                f"rows_per_person must be a whole number of at least 1, got {rows_per_person!r}. "
                "It is the most rows that one person may own, known from outside the data."
            )
        object.__setattr__(self, "rows_per_person", rows_per_person)
        if person is not None and not isinstance(person, str):
            raise ArgumentError(f"person must be the name of a column or None, got {person!r}.")
        if person is not None and neighbours == "replace":
            # how many rows of a person are kept, and so the number of all, would change with the person's rows
            raise ArgumentError(
                f"person = {person!r} needs neighbours='add-remove', got 'replace', whose number of rows is public: a "
                "person who has fewer rows than another would change it. Use 'add-remove', or take person out of the "
                "schema and vouch for rows_per_person yourself."
            )
        object.__setattr__(self, "person", person)

    @property
    def sensitivity(self) -> int:
        """How much one person changes the counts of one level of cells, in sum."""
        return self.rows_per_person * (1 if self.neighbours == "add-remove" else 2)

    def at(self, epsilon: Any) -> "Privacy":
        """Return the same promise at another epsilon."""
        return Privacy(epsilon, self.neighbours, self.rows_per_person, self.person)

    @property
    def owner(self) -> str:
        """What belongs to one person, as the end of a sentence; empty where a person is a row."""
        most = self.rows_per_person
        if self.person is not None:
            kept = "one of which is kept" if most == 1 else f"at most {most} of which are kept"
            return f", all rows of one {self.person!r}, {kept}"
        return f", up to {most} rows per person (trusted, not counted)" if most > 1 else ""

    @property
    def counted(self) -> str:
        """What is counted, and what guarantees are about."""
        return "rows" if self.person is None else "kept rows"

    def scale(self, budget: Fraction) -> Fraction:
        """Return the scale of the noise that a budget buys for the counts of one level of cells.

        Guarantee:  privacy  discrete Laplace noise of this scale on every count costs the budget, exactly
        """
        return self.sensitivity / budget

    @property
    def rows_are_public(self) -> bool:
        """Whether the number of rows may be shown and used."""
        return self.neighbours == "replace"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value that `from_json` reads back exactly."""
        return {
            "epsilon": str(self.epsilon),
            "delta": 0,
            "neighbours": self.neighbours,
            "rows_per_person": self.rows_per_person,
        } | ({} if self.person is None else {"person": self.person})

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Privacy":
        """Read what `to_json` wrote."""
        if value["delta"] != 0:
            raise ArgumentError(f"delta must be 0, got {value['delta']!r}.")
        return cls(read_fraction(value["epsilon"]), value["neighbours"], value["rows_per_person"], value.get("person"))


def read_fraction(text: str) -> Fraction:
    """Read "p/q" or "p" from a file; exponents, which could ask for any amount of memory, are refused.

    Examples:
        >>> read_fraction("3/8")
        Fraction(3, 8)
    """
    if not re.fullmatch(r"[0-9]{1,1000}(/[0-9]{1,1000})?", text):
        raise ArgumentError('a fraction must be written as "p/q"')
    return Fraction(text)


def exact_epsilon(epsilon: Any) -> Fraction:
    """Return epsilon as an exact fraction, or explain why it cannot be one.

    Examples:
        >>> exact_epsilon(0.5), exact_epsilon("1/3")
        (Fraction(1, 2), Fraction(1, 3))
        >>> exact_epsilon(float("nan"))
        Traceback (most recent call last):
        ...
        privmeasure.errors.ArgumentError: epsilon must be a number above 0 and at most 50, got nan. Common choices ...
    """
    got = str(epsilon) if isinstance(epsilon, Fraction) else repr(epsilon)
    advice = f"epsilon must be a number above 0 and at most {LARGEST_EPSILON}, got {got}. " + (
        "Common choices are 0.1 (strong) to 4 (weak)."
    )
    epsilon = epsilon.item() if hasattr(epsilon, "item") else epsilon  # NumPy's numbers overflow; Python's do not
    if isinstance(epsilon, bool):
        raise ArgumentError(advice)
    try:
        if isinstance(epsilon, float):  # repr of a float is the shortest decimal that stands for it
            if not math.isfinite(epsilon):
                raise ArgumentError(advice)
            exact = Fraction(repr(float(epsilon)))
        elif re.search(r"[eE][+-]?\d{4}", str(epsilon)):  # written out, a huge exponent would fill the memory
            raise ArgumentError(advice)
        else:
            exact = Fraction(epsilon)
            exact = Fraction(int(exact.numerator), int(exact.denominator))
    except (TypeError, ValueError, ArithmeticError):
        raise ArgumentError(advice) from None
    if not 0 < exact <= LARGEST_EPSILON:
        raise ArgumentError(advice)
    return exact

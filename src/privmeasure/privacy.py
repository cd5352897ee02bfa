"""What is promised to each person: epsilon, perhaps a delta, and what counts as neighbouring tables."""

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from privmeasure.accounting import largest_rho, smallest_epsilon
from privmeasure.errors import ArgumentError

Neighbours = Literal["add-remove", "replace"]
LawName = Literal["discrete laplace", "discrete gaussian"]
LAPLACE: LawName = "discrete laplace"
GAUSSIAN: LawName = "discrete gaussian"

LARGEST_EPSILON = 50
"""Above this a budget no longer protects anyone, and is far more often a mistake than a wish."""

LARGEST_DELTA = Fraction(1, 1000)
"""From here on a delta is refused: it would allow a release to give away every thousandth person whole."""
SMALLEST_DELTA_DIGITS = 300
"""A delta has a denominator of at most so many digits."""
LADDER = 256
"""Scales of Gaussian noise are rounded up to so many steps an octave: many tables share one, at 0.4 % more noise."""

COMPARED_ROWS_PER_PERSON = (1, 2, 4, 8, 16)
"""The numbers of rows per person that plans are compared at."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """A differential-privacy promise: exp(epsilon) bounds every probability ratio between neighbouring tables.

    It is pure unless `delta` is above 0: then probabilities may exceed the bound by so much in sum, and the noise is
    Gaussian, which is smaller where much is measured. Without one, or for a part of a release that is better off so, it
    is Laplace noise.

    `neighbours` has no default, because the two relations differ by a factor of two and by what is public:

    - ``"add-remove"``: one person's rows are added or removed. The number of rows is private.
    - ``"replace"``: one person's rows are replaced by others. The number of rows is public.

    A person may own up to `rows_per_person` rows; every sensitivity is multiplied by it. Without `person` that is
    trusted. With it, the name of the column that says whose row it is, it is made true: at most so many rows of each
    person are kept, and neighbouring tables differ in all rows of one person, however many they are.

    Notation:   D sensitivity: the largest change of the counts of one level of cells, summed over its cells
                D_2 the same in l_2
    Guarantee:  privacy  D = k ("add-remove") or 2 k ("replace"), D_2^2 = k^2 or 2 k^2, k = rows_per_person
    References: [HVZ23] section 2 with the adjacency made explicit; [CKS20] for rho

    Examples:
        >>> Privacy(0.1, "replace")
        Privacy(epsilon=Fraction(1, 10), neighbours='replace', rows_per_person=1, person=None, delta=Fraction(0, 1))
        >>> Privacy(1, "add-remove", rows_per_person=3).sensitivity
        3
        >>> Privacy(1, "add-remove", delta=1e-6).budget
        Fraction(243559, 10000000)
    """

    epsilon: Fraction
    neighbours: Neighbours
    rows_per_person: int = 1
    person: str | None = None
    delta: Fraction = Fraction(0)

    def __init__(
        self,
        epsilon: Any,
        neighbours: Neighbours,
        rows_per_person: int = 1,
        person: str | None = None,
        delta: Any = 0,
    ) -> None:
        """Check all five; a float is read as the decimal that it prints as (0.1 is 1/10)."""
        object.__setattr__(self, "epsilon", exact_epsilon(epsilon))
        object.__setattr__(self, "delta", exact_delta(delta))
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
        return Privacy(epsilon, self.neighbours, self.rows_per_person, self.person, self.delta)

    @property
    def pure(self) -> "Privacy":
        """The same promise without a delta, which implies this one."""
        return Privacy(self.epsilon, self.neighbours, self.rows_per_person, self.person)

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

    @property
    def law(self) -> LawName:
        """The law of the noise that keeps the promise: Gaussian where there is a delta."""
        return GAUSSIAN if self.delta else LAPLACE

    @property
    def stated(self) -> str:
        """The promise as people write it."""
        return f"epsilon = {float(self.epsilon):g}, delta = {float(self.delta):g}"

    @property
    def told(self) -> str:
        """The same as a part of a sentence; a delta of 0 is left out."""
        return f"epsilon = {float(self.epsilon):g}" + (f" and delta = {float(self.delta):g}" if self.delta else "")

    @property
    def kind(self) -> str:
        """What it is called."""
        return "(epsilon, delta)-differential privacy" if self.delta else "pure differential privacy"

    @property
    def short(self) -> str:
        """The same in the fewest words."""
        return f"epsilon {float(self.epsilon):g}" + (f", delta {float(self.delta):g}" if self.delta else "")

    @property
    def unit(self) -> str:
        """What budgets are parts of: epsilon, or rho where there is a delta."""
        return "rho" if self.delta else "epsilon"

    @property
    def budget(self) -> Fraction:
        """What there is to spend, to be split exactly: epsilon; with a delta rho, as rho-zCDP implies the promise."""
        if not self.delta:
            return self.epsilon
        if not (rho := largest_rho(self.epsilon, self.delta)):
            raise ArgumentError(
                f"epsilon = {float(self.epsilon):g} with delta = {float(self.delta):g} leaves nothing to spend. Choose "
                "a larger epsilon, or leave delta out."
            )
        return rho

    def part(self, budget: Fraction) -> "Privacy":
        """Return what a part of a release promises by itself, which spends a part of the budget."""
        return self.at(min(smallest_epsilon(budget, self.delta), self.epsilon) if self.delta else budget)

    def scale(self, budget: Fraction) -> Fraction:
        """Return the scale of the noise that a budget buys for the counts of one level of cells.

        Guarantee:  privacy  discrete Laplace noise of scale D / budget on every count costs the budget, exactly;
                             discrete Gaussian noise of scale s costs D_2^2 / (2 s^2), s being rounded up to a ladder
        """
        if not self.delta:
            return self.sensitivity / budget
        return round_up_root(self.squared_sensitivity / (2 * budget))

    def sum_scale(self, budget: Fraction) -> Fraction:
        """Return the scale of the noise that a budget buys for a sum over rows of numbers from -1 to 1.

        Guarantee:  privacy  one person changes it by at most D: each row that comes or goes by 1, one that is replaced
                             by 2. So D / budget; with a delta, where squares add up, D^2 / (2 s^2)-zCDP
        """
        return round_up_root(self.sensitivity**2 / (2 * budget)) if self.delta else self.sensitivity / budget

    def choice_scale(self, budget: Fraction) -> Fraction:
        """Return the scale of scores in a choice that costs a budget: how far apart they are told from each other.

        Guarantee:  privacy  2 D / budget; with a delta, of an exponential mechanism exp(score / s) whose scores change
                             by at most D, D^2 / (2 s^2)-zCDP
        """
        return round_up_root(self.sensitivity**2 / (2 * budget)) if self.delta else 2 * self.sensitivity / budget

    def signal(self, budget: Fraction, rows: int) -> Fraction:
        """Return a number of rows in units of the noise that a budget buys: what can be told, for plans."""
        return rows / self.scale(budget) if self.delta else budget * rows / self.sensitivity

    def afford(self, budget: Fraction, rows: int, each: float) -> float | Fraction:
        """Return how many measurements a budget buys that have a signal of `each` or more, for plans."""
        if not self.delta:
            return self.signal(budget, rows) / each
        return 2 * float(budget) / self.squared_sensitivity * (rows / each) ** 2

    @property
    def squared_sensitivity(self) -> int:
        """How much one person changes the counts of one level of cells: the sum of squares.

        All rows of a person may lie in one cell, and under "replace" all may move to another one.
        """
        return self.rows_per_person**2 * (1 if self.neighbours == "add-remove" else 2)

    @property
    def rows_are_public(self) -> bool:
        """Whether the number of rows may be shown and used."""
        return self.neighbours == "replace"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value that `from_json` reads back exactly."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta) if self.delta else 0,
            "neighbours": self.neighbours,
            "rows_per_person": self.rows_per_person,
        } | ({} if self.person is None else {"person": self.person})

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Privacy":
        """Read what `to_json` wrote."""
        delta = 0 if value["delta"] == 0 else read_fraction(value["delta"])
        epsilon, most = read_fraction(value["epsilon"]), value["rows_per_person"]
        return cls(epsilon, value["neighbours"], most, value.get("person"), delta)


def read_fraction(text: str) -> Fraction:
    """Read "p/q" or "p" from a file; exponents, which could ask for any amount of memory, are refused.

    Examples:
        >>> read_fraction("3/8")
        Fraction(3, 8)
    """
    if not re.fullmatch(r"[0-9]{1,1000}(/[0-9]{1,1000})?", text):
        raise ArgumentError('a fraction must be written as "p/q"')
    return Fraction(text)


def round_up_root(square: Fraction) -> Fraction:
    """Return the least number on a ladder of `LADDER` steps an octave whose square is no smaller, exactly.

    Examples:
        >>> round_up_root(Fraction(2)), round_up_root(Fraction(1, 9)), round_up_root(Fraction(10**6))
        (Fraction(363, 256), Fraction(171, 512), Fraction(1000, 1))
    """
    octave = (square.numerator.bit_length() - square.denominator.bit_length()) // 2 - 1
    step = Fraction(2) ** octave / LADDER
    while (2 * LADDER * step) ** 2 <= square:
        step *= 2
    ratio = square / step**2
    root = math.isqrt(ratio.numerator // ratio.denominator)
    return step * (root if root * root >= ratio else root + 1)


def exact_delta(delta: Any) -> Fraction:
    """Return delta as an exact fraction, or explain why it cannot be one.

    Examples:
        >>> exact_delta(1e-6), exact_delta(0)
        (Fraction(1, 1000000), Fraction(0, 1))
        >>> exact_delta(0.01)
        Traceback (most recent call last):
        ...
        privmeasure.errors.ArgumentError: delta must be at least 0 and below 1/1000, got 0.01. A common choice is ...
    """
    got = str(delta) if isinstance(delta, Fraction) else repr(delta)
    advice = f"delta must be at least 0 and below {LARGEST_DELTA}, got {got}. " + (
        "A common choice is 1e-6, or one over ten times the number of people; 0 is the pure promise."
    )
    exact = _exact(delta)
    if exact is None or not 0 <= exact < LARGEST_DELTA or exact.denominator > 10**SMALLEST_DELTA_DIGITS:
        raise ArgumentError(advice)
    return exact


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
    exact = _exact(epsilon)
    if exact is None or not 0 < exact <= LARGEST_EPSILON:
        raise ArgumentError(advice)
    return exact


def _exact(number: Any) -> Fraction | None:
    """Return a number as an exact fraction, a float as the decimal that it prints as; None if it cannot be one."""
    number = number.item() if hasattr(number, "item") else number  # NumPy's numbers overflow; Python's do not
    if isinstance(number, bool):
        return None
    try:
        if isinstance(number, float):  # repr of a float is the shortest decimal that stands for it
            return Fraction(repr(float(number))) if math.isfinite(number) else None
        if re.search(r"[eE][+-]?\d{4}", str(number)):  # written out, a huge exponent would fill the memory
            return None
        exact = Fraction(number)
        return Fraction(int(exact.numerator), int(exact.denominator))
    except (TypeError, ValueError, ArithmeticError):
        return None

"""The laws that noise is drawn from, by the names that plans carry. For the gate alone: see noise/law.py for facts."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from privmeasure.noise.gaussian import discrete_gaussian
from privmeasure.noise.laplace import discrete_laplace
from privmeasure.noise.law import GAUSSIAN, LAPLACE, Law, LawName

LAWS: Mapping[LawName, Callable[[Fraction], Law]] = {LAPLACE: discrete_laplace, GAUSSIAN: discrete_gaussian}
"""How each law is made ready."""


def law_of(name: LawName, scale: Fraction) -> Law:
    """Return a law at a public scale, ready to draw from."""
    return LAWS[name](scale)

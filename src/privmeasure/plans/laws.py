"""Which law of noise a release has, where a delta allows Gaussian noise: chosen from public values, before anything.

Gaussian noise pays for many measurements with the square root of their number, Laplace noise with the number itself,
but a single measurement costs Gaussian noise far more. So a table of many columns gains by a delta, and a tree of few
levels does not: its release is then pure, which is more than was asked for.
"""

from collections.abc import Callable

from privmeasure.privacy import Privacy

REFERENCE_ROWS = 100_000
"""The number of rows at which laws are compared, where none is public: the comparison hardly depends on it."""

WORTH = 0.9
"""What the error of Gaussian noise may be of that of Laplace noise at most: a smaller gain is not worth a delta."""


def choose_law(privacy: Privacy, price: Callable[[Privacy], float]) -> tuple[Privacy, str]:
    """Return what is promised, perhaps without its delta, and why: by the error that `price` expects of either.

    Examples:
        >>> asked = Privacy(1, "replace", delta=1e-6)
        >>> choose_law(asked, lambda privacy: 2.0 if privacy.delta else 1.0)[0].delta
        Fraction(0, 1)
    """
    if not privacy.delta:
        return privacy, ""
    pure, normal = price(privacy.pure), price(privacy)
    share = normal / pure if pure else 1.0  # of a single point neither law gets anything wrong
    if share <= WORTH:
        return privacy, f"Gaussian noise: its error is about {share:.2f} of that of Laplace noise"
    return privacy.pure, (
        f"Laplace noise, so that delta = {float(privacy.delta):g} is not used: "
        f"Gaussian noise would have {share:.2f} of its error"
    )

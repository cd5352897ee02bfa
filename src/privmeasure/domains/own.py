"""Spaces of one's own: what a release says of a domain that is not one of this package's, and how it is read again.

A release file states its domain as JSON. Ours are made from that again; a third party's cannot be, and is given to
`load` beside the file, which then compares the two. So what such a domain says of itself must be JSON, and must be the
same each time. That is checked when a mechanism is made: once the budget is spent it would be too late.
"""

import json
import warnings
from collections.abc import Iterator
from typing import Any

from privmeasure.domains.base import Domain
from privmeasure.domains.box import Box
from privmeasure.domains.categories import Categories
from privmeasure.domains.finite import Finite
from privmeasure.domains.line import Circle, Integers
from privmeasure.domains.product import Nullable, Product
from privmeasure.domains.sphere import Sphere
from privmeasure.domains.steps import Steps
from privmeasure.errors import ArgumentError

DOMAIN_KINDS = frozenset(
    {"box", "categories", "circle", "finite", "integers", "nullable", "product", "sphere", "steps"}
)
"""What `from_json` reads."""
CHECKED_LEVELS = 8


def own_parts(domain: Domain) -> Iterator[Domain]:
    """Yield the parts of a domain that are not of this package's own classes; subclasses count as a third party's.

    Examples:
        >>> list(own_parts(Product([Box([(0, 1)]), Nullable(Integers(0, 9))])))
        []
    """
    if type(domain) is Product:
        for factor in domain.factors:
            yield from own_parts(factor)
    elif type(domain) is Nullable:
        yield from own_parts(domain.domain)
    elif type(domain) not in (Box, Categories, Circle, Finite, Integers, Sphere, Steps):
        yield domain


def is_ours(domain: Domain) -> bool:
    """Say whether a domain is made of this package's own classes alone, whose distances are metrics by construction."""
    return next(own_parts(domain), None) is None


def write_domain(domain: Domain) -> dict[str, Any]:
    """Return what a release says of a domain, as a file gives it back: a tuple is a list by then."""
    value: dict[str, Any] = domain.to_json()
    return value if is_ours(domain) else json.loads(json.dumps(value, allow_nan=False))


def check_own(domain: Domain) -> None:
    """Refuse a third party's domain of which a release could not be saved and read again. Nothing was spent yet."""
    for part in own_parts(domain):
        name = type(part).__name__
        try:
            value, again = write_domain(part), write_domain(part)
        except Exception as error:  # whatever a third party's code leads to; it is public
            raise ArgumentError(
                f"{name}.to_json() must return plain JSON, or the release could not be saved, got "
                f"{type(error).__name__}: {error}. Use texts, int, finite float, bool, None, and lists and dicts of "
                "them."
            ) from error
        if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or value != again:
            raise ArgumentError(
                f'{name}.to_json() must return an object with a "kind" of its own, the same each time, got '
                f"{_short(value)} and {_short(again)}. `load` compares it with that of the file."
            )
        _check_numbers(part, name)


def _check_numbers(domain: Domain, name: str) -> None:
    """Refuse sizes and diameters of types that do not go into a file, such as NumPy's integers."""
    for level in range(min(domain.deepest, CHECKED_LEVELS) + 1):
        numbers = [("size", domain.size(level), "int")]
        numbers += [(what, getattr(domain, what)(level), "float") for what in ("diameter", "total_diameter", "radius")]
        for what, number, wanted in numbers:
            if not isinstance(number, int if wanted == "int" else int | float):
                raise ArgumentError(
                    f"{name}.{what}({level}) must be a number of Python's type {wanted}, or the release could not be "
                    f"saved, got {type(number).__name__}. Return {wanted}(...) of it."
                )


def own_kinds(value: Any) -> list[str]:
    """Return the kinds in the JSON of a domain that `from_json` does not know.

    Examples:
        >>> own_kinds({"kind": "nullable", "domain": {"kind": "days of the week"}})
        ['days of the week']
    """
    found, left = set(), [value]
    while left:
        match left.pop():
            case {"kind": "product", "factors": list(factors)}:
                left += factors
            case {"kind": "nullable", "domain": inner}:
                left.append(inner)
            case {"kind": str(kind)} if kind not in DOMAIN_KINDS:
                found.add(kind)
    return sorted(found)


def tell_how_to_load(domain: Domain) -> None:
    """Warn that a file which was just saved is read with `load(path, domain=...)`, where that is so."""
    kinds = own_kinds(write_domain(domain))
    if kinds:
        warnings.warn(
            f"This release lives on a space of your own ({', '.join(map(repr, kinds))}), which a file cannot hold. "
            "Read it with load(path, domain=...), and keep the code of that domain: it must be equal to the one "
            "released.",
            UserWarning,
            stacklevel=3,
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."

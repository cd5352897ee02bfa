"""Geometry: bounded metric spaces with public binary partitions."""

from typing import Any

import numpy as np

from privmeasure.domains.base import Bools, Cells, Domain, Floats, Points
from privmeasure.domains.box import Box
from privmeasure.domains.categories import Categories
from privmeasure.domains.finite import MOST_POINTS, Finite
from privmeasure.domains.knots import Knots
from privmeasure.domains.line import Circle, Integers
from privmeasure.domains.own import DOMAIN_KINDS, check_own, is_ours, own_kinds, write_domain
from privmeasure.domains.product import Nullable, Product
from privmeasure.domains.sphere import Sphere
from privmeasure.domains.steps import Steps
from privmeasure.domains.units import column_units
from privmeasure.errors import ArgumentError, ReleaseFileError

__all__ = [
    "DOMAIN_KINDS",
    "Bools",
    "Box",
    "Categories",
    "Cells",
    "Circle",
    "Domain",
    "Finite",
    "Floats",
    "Integers",
    "Knots",
    "Nullable",
    "Points",
    "Product",
    "Sphere",
    "Steps",
    "check_own",
    "column_units",
    "from_json",
    "is_ours",
    "own_kinds",
    "write_domain",
]

DEEPEST_NESTING = 16
"""Of products in products; a file that goes deeper was not written by a person."""


def from_json(value: dict[str, Any]) -> Domain:
    """Read what a domain's `to_json` wrote. A file may have been edited: whatever does not fit is a ReleaseFileError.

    Examples:
        >>> from_json({"kind": "integers", "low": 0, "high": 120})
        Integers(0, 120)
    """
    try:
        return _read(value, DEEPEST_NESTING)
    except (ArgumentError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, ReleaseFileError):
            raise
        raise ReleaseFileError(
            f"The domain of a release cannot be read: {error} Write the release again; the file may have been edited."
        ) from error


def _read(value: Any, nesting: int) -> Domain:
    if nesting == 0:
        raise ReleaseFileError(f"The domain of a release is nested more than {DEEPEST_NESTING} deep: it was edited.")
    match value:
        case {"kind": "box", "bounds": list(bounds), "weights": list(weights)}:
            return Box(bounds, weights)
        case {"kind": "integers", "low": int(low), "high": int(high)}:
            return Integers(low, high)
        case {"kind": "steps", "low": int(low), "high": int(high)}:
            return Steps(low, high)
        case {"kind": "circle", "period": int(period) | float(period), "low": int(low) | float(low)}:
            return Circle(period, low=low)
        case {"kind": "categories", "categories": int(labels) | list(labels), "taxonomy": list(taxonomy)}:
            return Categories(labels, taxonomy=taxonomy)
        case {"kind": "sphere"}:
            return Sphere()
        case {"kind": "finite", "points": list(points), "metric": str(metric)}:
            return Finite.from_points(points, metric=metric)  # type: ignore[arg-type]
        case {"kind": "finite", "distances": list(upper), "points": points}:
            return Finite(_symmetric(upper), points=points)
        case {"kind": "product", "factors": list(factors), "weights": list(weights)}:
            return Product([_read(factor, nesting - 1) for factor in factors], weights=weights)
        case {"kind": "nullable", "domain": dict(domain)}:
            return Nullable(_read(domain, nesting - 1))
        case {"kind": str(kind)} if kind in DOMAIN_KINDS:
            raise ReleaseFileError(
                f"The domain of kind {kind!r} in a release lacks a field or has one of a wrong type."
            )
        case {"kind": kind}:
            raise ReleaseFileError(
                f"The domain of kind {kind!r} is unknown to this version of privmeasure. Give domain=..., equal to the "
                "one that was released, if it is one of your own; else update privmeasure."
            )
    raise ReleaseFileError("The domain of a release must be a JSON object with a 'kind'. Write the release again.")


def _symmetric(upper: list[Any]) -> Points:
    """Return the matrix whose upper triangle is given row by row; its size is checked before memory is taken."""
    if len(upper) > MOST_POINTS or any(len(row) != len(upper) - 1 - i for i, row in enumerate(upper)):
        raise ReleaseFileError(
            f"The distances of a finite domain must be the upper triangle of a matrix of at most {MOST_POINTS} rows."
        )
    matrix = np.zeros((len(upper), len(upper)))
    for i, row in enumerate(upper):
        matrix[i, i + 1 :] = matrix[i + 1 :, i] = row
    return matrix

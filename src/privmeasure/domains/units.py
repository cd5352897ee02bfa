"""What a distance means in the units of the columns."""

import math

from privmeasure.domains.base import Domain
from privmeasure.domains.box import Box
from privmeasure.domains.line import Integers
from privmeasure.domains.product import Product


def column_units(domain: Domain) -> tuple[float, ...]:
    """Return by how much each column can differ between two points at distance 1: its Lipschitz constant.

    Infinite where a column jumps although points are near: around a circle or a pole, between categories, to missing.

    Examples:
        >>> column_units(Box([(0, 10), (-1, 1)], weights=[1, 2]))
        (10.0, 1.0)
        >>> column_units(Product([Integers(0, 120), Box([(0, 1)])], weights=[2, 1]))
        (60.0, 1.0)
    """
    if isinstance(domain, Box):
        return tuple((high - low) / w for w, (low, high) in zip(domain.weights, domain.bounds, strict=True))
    if isinstance(domain, Integers):
        return (float(domain.high - domain.low),)
    if isinstance(domain, Product):
        pairs = zip(domain.factors, domain.weights, strict=True)
        return tuple(unit / weight for factor, weight in pairs for unit in column_units(factor))
    return (math.inf,) * domain.width

"""Products of domains, and the branch for missing values."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from privmeasure.domains.base import DEEPEST_LEVEL, Bools, Cells, Domain, Floats, Points, check_weights
from privmeasure.domains.bits import Interleaving
from privmeasure.domains.scales import Missing, Reading, Scale, deal, describe
from privmeasure.errors import ArgumentError


class Product:
    """The product of some domains, their columns side by side, with the distance max_i w_i d_i.

    Each cut goes to the factor whose weighted diameter at its own level is the largest (the first of them), as in a
    Box; when all are 0 it goes to the factor that was cut least. A factor is never cut below its own deepest level.

    Notation:   k_i number of cuts of factor i    w_i weights
    Guarantee:  diameter max_i w_i diameter_i(k_i), exact where those of the factors are; Delta_j <= size times diameter

    Examples:
        >>> from privmeasure.domains import Box, Categories
        >>> product = Product([Box([(0, 1)]), Categories(3)], weights=[1, 0.5])
        >>> product.size(3), product.diameter(3)        # cuts: box, box, categories
        (8, 0.5)
        >>> product.size(4), product.diameter(4)
        (12, 0.25)
    """

    def __init__(self, factors: Sequence[Domain], *, weights: Sequence[float] | None = None) -> None:
        """Take the factors and optional weights, one per factor."""
        self.factors = tuple(factors)
        if not self.factors or not all(isinstance(factor, Domain) for factor in self.factors):
            raise ArgumentError("factors must be a list of at least one domain, like [Box([(0, 1)]), Categories(3)].")
        self.weights = check_weights(weights, len(self.factors))
        ends = accumulate(factor.width for factor in self.factors)
        self.columns = [slice(end - factor.width, end) for end, factor in zip(ends, self.factors, strict=True)]
        self._axes = self._order()

    def _order(self) -> tuple[int, ...]:
        cuts, axes = [0] * len(self.factors), []
        deepest = [factor.deepest for factor in self.factors]
        sides = [w * factor.diameter(0) for w, factor in zip(self.weights, self.factors, strict=True)]
        for _ in range(DEEPEST_LEVEL):
            able = [i for i in range(len(cuts)) if cuts[i] < deepest[i]]
            if not able:
                break
            axis = max(able, key=lambda i: (sides[i], 0 if sides[i] > 0 else -cuts[i]))  # the first of the largest
            axes.append(axis)
            cuts[axis] += 1
            sides[axis] = self.weights[axis] * self.factors[axis].diameter(cuts[axis])
        return tuple(axes)

    @property
    def width(self) -> int:
        """The columns of all factors."""
        return sum(factor.width for factor in self.factors)

    @property
    def deepest(self) -> int:
        """The level at which no factor can be cut further."""
        return len(self._axes)

    def cuts(self, level: int) -> tuple[int, ...]:
        """Return how many of the first cuts each factor gets.

        Examples:
            >>> from privmeasure.domains import Box, Categories
            >>> Product([Box([(0, 1)]), Categories(5)]).cuts(5)     # categories stay at distance 1 until single
            (2, 3)
        """
        return self._deal(level).cuts

    def diameter(self, level: int) -> float:
        """Return the largest weighted diameter of the factors' cells."""
        parts = zip(self.weights, self.factors, self._deal(level).cuts, strict=True)
        return max(w * factor.diameter(cuts) for w, factor, cuts in parts)

    def radius(self, level: int) -> float:
        """Return the largest weighted radius of the factors' cells."""
        parts = zip(self.weights, self.factors, self._deal(level).cuts, strict=True)
        return max(w * factor.radius(cuts) for w, factor, cuts in parts)

    def total_diameter(self, level: int) -> float:
        """Return size times diameter, an upper bound."""
        return self.size(level) * self.diameter(level)

    def size(self, level: int) -> int:
        """Return the product of the factors' sizes."""
        parts = zip(self.factors, self._deal(level).cuts, strict=True)
        return math.prod(factor.size(cuts) for factor, cuts in parts)

    def exists(self, cells: Cells, level: int) -> Bools:
        """Say which cells exist in every factor."""
        exist = np.ones(len(cells), bool)
        for factor, part, cuts in self._split(cells, level):
            exist &= factor.exists(part, cuts)
        return exist

    def locate(self, points: Points, level: int) -> Cells:
        """Return the cell of every point, from those of its parts."""
        deal = self._deal(level)
        parts = zip(self.factors, self.columns, deal.cuts, strict=True)
        return deal.join([f.locate(points[:, columns], cuts).view(np.int64) for f, columns, cuts in parts]).view(
            np.uint64
        )

    def scale(self, level: int, readings: Sequence[Reading]) -> Scale | None:
        """Return the numbers of the factors, dealt out."""
        order = self._deal(level)
        parts = zip(self.factors, self.columns, order.cuts, strict=True)
        return deal([describe(f, cuts, readings[columns]) for f, columns, cuts in parts], order.positions)

    def extent(self, cells: Cells, level: int) -> tuple[Points, Points]:
        """Return the extents of the parts side by side."""
        lows, highs = zip(*(f.extent(part, cuts) for f, part, cuts in self._split(cells, level)), strict=True)
        return np.concatenate(lows, axis=1), np.concatenate(highs, axis=1)

    def centre(self, cells: Cells, level: int) -> Points:
        """Return the centres of the parts side by side."""
        return np.concatenate([f.centre(part, cuts) for f, part, cuts in self._split(cells, level)], axis=1)

    def draw(self, cells: Cells, level: int, rng: np.random.Generator) -> Points:
        """Draw the parts independently."""
        return np.concatenate([f.draw(part, cuts, rng) for f, part, cuts in self._split(cells, level)], axis=1)

    def distance(self, x: Points, y: Points) -> Floats:
        """Return max_i w_i d_i."""
        parts = zip(self.weights, self.factors, self.columns, strict=True)
        distances = [w * f.distance(x[..., columns], y[..., columns]) for w, f, columns in parts]
        return np.asarray(np.max(distances, axis=0), np.float64)

    def to_json(self) -> dict[str, Any]:
        """Return factors and weights."""
        factors = [factor.to_json() for factor in self.factors]
        return {"kind": "product", "factors": factors, "weights": list(self.weights)}

    def _deal(self, level: int) -> Interleaving:
        return _interleaving(self._axes[:level], len(self.factors))

    def _split(self, cells: Cells, level: int) -> list[tuple[Domain, Cells, int]]:
        deal = self._deal(level)
        parts = zip(self.factors, deal.split(cells.view(np.int64)), deal.cuts, strict=True)
        return [(factor, part.view(np.uint64), cuts) for factor, part, cuts in parts]

    def __repr__(self) -> str:
        """Show what was given."""
        return f"Product({list(self.factors)!r}, weights={list(self.weights)!r})"


class Nullable:
    """A domain whose points may be missing: level 1 cuts the present (0) from the missing (1).

    A row is missing if any of its columns is NaN; a missing point is a row of NaN. Missing is as far from every point
    as these are from one another at most (1 if the domain is a single point), and at distance 0 from missing.

    Guarantee:  diameters as in the domain, one level later; the missing branch adds one cell of diameter 0 a level

    Examples:
        >>> from privmeasure.domains import Box
        >>> income = Nullable(Box([(0, 1e5)]))
        >>> income.locate(np.array([[70_000.0], [np.nan]]), 2)
        array([1, 2], dtype=uint64)
        >>> income.size(2)
        3
    """

    def __init__(self, domain: Domain) -> None:
        """Take the domain of the values that are present."""
        if not isinstance(domain, Domain):
            raise ArgumentError(f"Nullable takes a domain, like Box([(0, 1)]), got {type(domain).__name__}.")
        if _has_missing_branch(domain):
            raise ArgumentError(
                "Nullable takes a domain without a missing branch of its own. Make either the factors or the product "
                "nullable, not both."
            )
        self.domain = domain
        self._gap = domain.diameter(0) or 1.0

    @property
    def width(self) -> int:
        """The columns of the domain."""
        return self.domain.width

    @property
    def deepest(self) -> int:
        """One more than the domain's, as far as codes allow."""
        return min(self.domain.deepest + 1, DEEPEST_LEVEL)

    def diameter(self, level: int) -> float:
        """Return the domain's diameter one level up; at level 0 the distance to missing."""
        return self.domain.diameter(level - 1) if level else self._gap

    def radius(self, level: int) -> float:
        """Return the domain's radius one level up; at level 0 the distance to missing."""
        return self.domain.radius(level - 1) if level else max(self._gap, self.domain.radius(0))

    def total_diameter(self, level: int) -> float:
        """Return the domain's total one level up: the missing cell adds 0."""
        return self.domain.total_diameter(level - 1) if level else self._gap

    def size(self, level: int) -> int:
        """Return one more than the domain has one level up."""
        return self.domain.size(level - 1) + 1 if level else 1

    def exists(self, cells: Cells, level: int) -> Bools:
        """Say which cells exist; of the missing ones only the chain of first children does."""
        if level == 0:
            return self.domain.exists(cells, 0)
        missing, inner = self._branches(cells, level)
        return np.where(missing, inner == 0, self.domain.exists(inner, level - 1))

    def locate(self, points: Points, level: int) -> Cells:
        """Return the cell of every point."""
        if level == 0:
            return np.zeros(len(points), np.uint64)
        missing = np.isnan(points).any(axis=1)
        return np.where(missing, np.uint64(1 << (level - 1)), self.domain.locate(points, level - 1))

    def scale(self, level: int, readings: Sequence[Reading]) -> Scale | None:
        """Return the branch for missing values beside the domain's own numbers."""
        present = describe(self.domain, level - 1, readings)
        return (
            None
            if present is None
            else Missing(tuple(reading.plain for reading in readings), 1 << (level - 1), present)
        )

    def extent(self, cells: Cells, level: int) -> tuple[Points, Points]:
        """Return the extents, NaN for missing; at level 0 that of the present."""
        missing, inner = self._branches(cells, level)
        low, high = self.domain.extent(inner, max(level - 1, 0))
        return np.where(missing[:, None], np.nan, low), np.where(missing[:, None], np.nan, high)

    def centre(self, cells: Cells, level: int) -> Points:
        """Return the centres, NaN for missing; at level 0 that of the present."""
        missing, inner = self._branches(cells, level)
        return np.where(missing[:, None], np.nan, self.domain.centre(inner, max(level - 1, 0)))

    def draw(self, cells: Cells, level: int, rng: np.random.Generator) -> Points:
        """Draw from each cell, NaN for missing; at level 0 from the present."""
        missing, inner = self._branches(cells, level)
        return np.where(missing[:, None], np.nan, self.domain.draw(inner, max(level - 1, 0), rng))

    def distance(self, x: Points, y: Points) -> Floats:
        """Return the domain's distance where both are present."""
        no_x, no_y = (np.asarray(np.isnan(points).any(axis=-1)) for points in (x, y))
        anchor = self.domain.centre(np.zeros(1, np.uint64), 0)[0]
        present = self.domain.distance(np.where(no_x[..., None], anchor, x), np.where(no_y[..., None], anchor, y))
        return np.where(no_x | no_y, np.where(no_x & no_y, 0.0, self._gap), present)

    def to_json(self) -> dict[str, Any]:
        """Return the domain."""
        return {"kind": "nullable", "domain": self.domain.to_json()}

    def _branches(self, cells: Cells, level: int) -> tuple[Bools, Cells]:
        """Return which cells are missing, and the codes inside their branches."""
        if level == 0:
            return np.zeros(len(cells), bool), cells
        top = np.uint64(1 << (level - 1))
        return cells >= top, cells & (top - np.uint64(1))

    def __repr__(self) -> str:
        """Show what was given."""
        return f"Nullable({self.domain!r})"


def _has_missing_branch(domain: Domain) -> bool:
    if isinstance(domain, Product):
        return any(map(_has_missing_branch, domain.factors))
    return isinstance(domain, Nullable)


@lru_cache(maxsize=128)
def _interleaving(axes: tuple[int, ...], count: int) -> Interleaving:
    return Interleaving(axes, count)

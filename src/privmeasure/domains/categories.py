"""Categories: the discrete metric, or a taxonomy."""

import math
import operator
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from privmeasure.domains.base import DEEPEST_LEVEL, Bools, Cells, Floats, Points
from privmeasure.domains.bits import Words
from privmeasure.domains.line import nearest_integers
from privmeasure.domains.scales import Reading, Scale
from privmeasure.domains.tree import PointTree, halve
from privmeasure.errors import ArgumentError

MOST_CATEGORIES = 1 << 20
"""More are a mistake, or a hand-edited file."""

Taxonomy = Sequence[tuple[float, Sequence[Hashable]]]


class Categories:
    """k categories, all at distance 1 of one another, or as near as the smallest group of a taxonomy that holds both.

    A point is the position 0..k-1 of a category in the declared order. Each cut halves the list of categories; with a
    taxonomy it first halves the list of the coarsest groups, then the groups inside each, and so on. A taxonomy is a
    list of (diameter, groups), from fine to coarse: `groups` names the group of every category, and two categories of
    one group are at that distance at most. All categories together have diameter 1.

    Notation:   k number of categories
    Guarantee:  the distance is an ultrametric; diameters and Delta_j are exact; n groups take ceil(log2 n) cuts

    Examples:
        >>> three = Categories(["red", "green", "blue"])
        >>> three.exists(np.arange(4, dtype=np.uint64), 2)
        array([ True,  True,  True, False])
        >>> food = Categories(["apple", "cod", "pear"], taxonomy=[(0.25, ["fruit", "fish", "fruit"])])
        >>> food.distance(np.array([[0.0], [0.0]]), np.array([[2.0], [1.0]]))
        array([0.25, 1.  ])
        >>> [food.diameter(level) for level in range(3)]
        [1.0, 0.25, 0.0]
    """

    def __init__(self, categories: int | Sequence[str], *, taxonomy: Taxonomy | None = None) -> None:
        """Take public labels, or only their number, and optional groups from fine to coarse."""
        self.count, self.labels = _checked_labels(categories)
        self.taxonomy = _checked_taxonomy(taxonomy or (), self.count)
        codes = lengths = parent = np.zeros(self.count, np.int64)
        everyone = np.arange(self.count)
        for groups in [*(groups for _, groups in reversed(self.taxonomy)), everyone]:
            codes, lengths = halve(codes, lengths, *_rank(groups, parent))
            parent = groups
        self._tree = PointTree(codes, lengths)
        self._diameters = [self._cell_diameters(level) for level in range(self._tree.depth + 1)]

    @property
    def width(self) -> int:
        """One column."""
        return 1

    @property
    def deepest(self) -> int:
        """No limit but that of the codes: below a single category the cells no longer change."""
        return DEEPEST_LEVEL

    def diameter(self, level: int) -> float:
        """Return the diameter of the widest cell; 0 when all are single categories."""
        return self._diameters[level][0] if level < len(self._diameters) else 0.0

    def radius(self, level: int) -> float:
        """Return the diameter: every point of an ultrametric ball is a centre of it."""
        return self.diameter(level)

    def total_diameter(self, level: int) -> float:
        """Return the sum of the diameters of the cells."""
        return self._diameters[level][1] if level < len(self._diameters) else 0.0

    def size(self, level: int) -> int:
        """Return the number of cells that hold a category."""
        return self._tree.size(level)

    def exists(self, cells: Cells, level: int) -> Bools:
        """Say which cells hold a category."""
        return self._tree.exists(cells, level)

    def locate(self, points: Points, level: int) -> Cells:
        """Return the cell of every point; positions are rounded and clamped, NaN goes to category 0."""
        return self._tree.locate(nearest_integers(points[:, 0], 0, self.count - 1), level)

    def scale(self, level: int, readings: Sequence[Reading]) -> Scale:
        """Return the table of the points' cells."""
        return self._tree.scale(level, readings)

    def extent(self, cells: Cells, level: int) -> tuple[Points, Points]:
        """Return the first and the last category of each cell in the declared order."""
        return self._tree.extent(cells, level)

    def centre(self, cells: Cells, level: int) -> Points:
        """Return the middle category of each cell in the order of the tree, the lower of two."""
        start, stop = self._tree.ranges(cells, level)
        middle: Words = (start + stop - 1) >> 1
        return self._tree.order[middle].astype(np.float64)[:, None]

    def draw(self, cells: Cells, level: int, rng: np.random.Generator) -> Points:
        """Draw one of the categories of each cell, all equally likely."""
        return self._tree.draw(cells, level, rng)

    def distance(self, x: Points, y: Points) -> Floats:
        """Return the diameter of the smallest group that holds both categories; 0 between equal ones."""
        a = nearest_integers(x[..., 0], 0, self.count - 1)
        b = nearest_integers(y[..., 0], 0, self.count - 1)
        distances: Floats = np.ones(np.broadcast_shapes(a.shape, b.shape))
        for diameter, groups in reversed(self.taxonomy):
            distances[groups[a] == groups[b]] = diameter
        distances[a == b] = 0.0
        return distances

    def to_json(self) -> dict[str, Any]:
        """Return labels (or their number) and taxonomy."""
        return {
            "kind": "categories",
            "categories": self.count if self.labels is None else list(self.labels),
            "taxonomy": [[diameter, groups.tolist()] for diameter, groups in self.taxonomy],
        }

    def _cell_diameters(self, level: int) -> tuple[float, float]:
        # In an ultrametric the diameter of a set is the largest distance from any one of its points, so from its first.
        starts, order = self._tree.starts(level), self._tree.order[:, None].astype(np.float64)
        first = np.repeat(order[starts], np.diff(starts, append=self.count), axis=0)
        diameters = np.maximum.reduceat(self.distance(first, order), starts)
        return float(diameters.max()), float(diameters.sum())

    def __repr__(self) -> str:
        """Show how many categories and levels of grouping there are."""
        return f"Categories(<{self.count}>, taxonomy=<{len(self.taxonomy)} levels>)"


def _rank(groups: Words, parent: Words) -> tuple[Words, Words]:
    """Return for every category the rank of its group among the groups of its parent, and how many these are.

    Groups are numbered by first appearance, so ranks follow the declared order. `groups` nests in `parent`.
    """
    _, first = np.unique(groups, return_index=True)
    by_parent = parent[first]
    order = np.argsort(by_parent, kind="stable")
    counts = np.bincount(by_parent)
    begin = np.cumsum(counts) - counts
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first)) - begin[by_parent[order]]
    return rank[groups], counts[parent]


def _checked_labels(categories: int | Sequence[str]) -> tuple[int, tuple[str, ...] | None]:
    labels: tuple[str, ...] | None = None
    if isinstance(categories, str):
        raise ArgumentError(f"categories must be a number or a list of labels, got the text {categories!r}.")
    try:
        count = operator.index(categories)  # type: ignore[arg-type]
    except TypeError:
        try:
            labels = tuple(categories)  # type: ignore[arg-type]
        except TypeError:
            raise ArgumentError(f"categories must be a number or a list of labels, got {categories!r}.") from None
        count = len(labels)
        if not all(isinstance(label, str) for label in labels):
            raise ArgumentError("categories must be labels of type str. Write numbers as text, like '1'.") from None
        if len(set(labels)) != count:
            twice = Counter(labels).most_common(1)[0][0]
            raise ArgumentError(f"categories must differ, got {twice!r} twice. Remove one of them.") from None
    if not 1 <= count <= MOST_CATEGORIES:
        raise ArgumentError(f"categories must be between 1 and {MOST_CATEGORIES}, got {count}. Group the rare ones.")
    return count, labels


def _checked_taxonomy(taxonomy: Taxonomy, count: int) -> tuple[tuple[float, Words], ...]:
    """Return the levels with their groups numbered by first appearance."""
    checked: list[tuple[float, Words]] = []
    for i, level in enumerate(taxonomy):
        try:
            diameter, names = float(level[0]), list(level[1])
            number = {name: n for n, name in enumerate(dict.fromkeys(names))}
        except (TypeError, ValueError, LookupError, OverflowError):
            raise ArgumentError(
                f"taxonomy[{i}] must be a pair (diameter, groups), where groups names the group of every category."
            ) from None
        previous = checked[-1][0] if checked else 0.0
        if not (math.isfinite(diameter) and previous < diameter < 1):
            raise ArgumentError(
                "The diameters of a taxonomy must increase from fine to coarse and lie between 0 and 1 (all categories "
                f"together have diameter 1), got {diameter} at taxonomy[{i}]."
            )
        if len(names) != count:
            raise ArgumentError(
                f"taxonomy[{i}] must name a group for each of the {count} categories, got {len(names)} names."
            )
        groups = np.array([number[name] for name in names], np.int64)
        if checked:
            finer = checked[-1][1]
            _, first = np.unique(finer, return_index=True)
            astray = np.flatnonzero(groups[first][finer] != groups)
            if len(astray):
                raise ArgumentError(
                    f"The groups of a taxonomy must nest: one group of taxonomy[{i - 1}] lies in two groups of "
                    f"taxonomy[{i}] ({names[first[finer[astray[0]]]]!r} and {names[astray[0]]!r})."
                )
        checked.append((diameter, groups))
    return tuple(checked)

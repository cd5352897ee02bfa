"""Any finite metric space: a matrix of distances between public points, and a partition built from it."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privmeasure.domains.base import DEEPEST_LEVEL, Bools, Cells, Floats, Points
from privmeasure.domains.bits import Words
from privmeasure.domains.line import nearest_integers
from privmeasure.domains.scales import Reading, Scale
from privmeasure.domains.tree import PointTree
from privmeasure.errors import ArgumentError
from privmeasure.rounding import ROUNDING

MOST_POINTS = 4096
"""The matrix of distances of so many points takes 128 MiB."""
LEAST_SHARE = 0.3
"""Of the points of a cell that either child must take: bounds the depth by log(m) / log(1 / 0.7) < 2 log2 m."""

Metric = Literal["euclidean", "manhattan", "chebyshev"]
Matrix = NDArray[np.float64]


class Finite:
    """m public points with any metric, given by the matrix of their distances.

    A point is the index 0..m-1 of a public point. The partition is built from the distances alone: a cell is cut
    between the two points that are farthest apart, every other one going to the nearer, except that neither child may
    take less than 30 % of the points.

    Notation:   m number of points
    Guarantee:  diameters, radii and Delta_j are exact; depth < 2 log2 m; the same matrix gives the same partition
                cost  O(m^2) memory and time; the check of the triangle inequality is O(m^3): about a second for
                1000 points, a minute or two for 4096 (`from_points` and `trusted` need none)

    Examples:
        >>> towns = Finite([[0, 1, 5], [1, 0, 5], [5, 5, 0]])      # hours of travel
        >>> towns.locate(np.array([[0.0], [1.0], [2.0]]), 1)
        array([0, 0, 1], dtype=uint64)
        >>> [towns.diameter(level) for level in range(3)]
        [5.0, 1.0, 0.0]
    """

    def __init__(self, distances: ArrayLike, *, points: ArrayLike | None = None) -> None:
        """Take the public distances; `points` are coordinates that are only kept beside them."""
        matrix = _checked_matrix("distances", distances)
        _check_distances(matrix)
        _check_triangles(matrix)
        self._build(matrix, None if points is None else _checked_matrix("points", points), None)

    @classmethod
    def from_points(cls, points: ArrayLike, *, metric: Metric = "euclidean") -> Self:
        """Take the rows of a matrix as public points, with the euclidean, manhattan or chebyshev distance.

        Examples:
            >>> Finite.from_points([[0, 0], [3, 4]]).diameter(0)
            5.0
        """
        if metric not in get_args(Metric):
            raise ArgumentError(f"metric must be one of {', '.join(get_args(Metric))}, got {metric!r}.")
        coordinates = _checked_matrix("points", points)
        _check_count(len(coordinates))
        with np.errstate(all="ignore"):
            distances = np.stack([_NORMS[metric](coordinates - point) for point in coordinates])
        _check_positive(distances)  # a norm is a metric: the rest needs no check
        domain = cls.__new__(cls)
        domain._build(distances, coordinates, metric)
        return domain

    @classmethod
    def trusted(cls, distances: ArrayLike) -> Self:
        """Take distances that obey the triangle inequality by construction, which is not checked; all else is.

        Examples:
            >>> Finite.trusted([[0, 2], [2, 0]]).diameter(0)
            2.0
        """
        matrix = _checked_matrix("distances", distances)
        _check_distances(matrix)
        domain = cls.__new__(cls)
        domain._build(matrix, None, None)
        return domain

    def _build(self, distances: Matrix, points: Matrix | None, metric: Metric | None) -> None:
        if points is not None and len(points) != len(distances):
            raise ArgumentError(f"points must have one row per point, got {len(points)} for {len(distances)} points.")
        self.distances, self.points, self.metric = distances, points, metric
        self.distances.flags.writeable = False
        self.count = len(distances)
        self._tree, self._nodes = _bisect(distances)

    @property
    def width(self) -> int:
        """One column, the index."""
        return 1

    @property
    def deepest(self) -> int:
        """No limit but that of the codes: below a single point the cells no longer change."""
        return DEEPEST_LEVEL

    def diameter(self, level: int) -> float:
        """Return the diameter of the widest cell."""
        return max((node.diameter for node in self._at(level)), default=0.0)

    def radius(self, level: int) -> float:
        """Return the largest distance of a point from the centre of its cell."""
        return max((node.radius for node in self._at(level)), default=0.0)

    def total_diameter(self, level: int) -> float:
        """Return the sum of the diameters of the cells."""
        return sum(node.diameter for node in self._at(level))

    def size(self, level: int) -> int:
        """Return the number of cells that hold a point."""
        return self._tree.size(level)

    def exists(self, cells: Cells, level: int) -> Bools:
        """Say which cells hold a point."""
        return self._tree.exists(cells, level)

    def locate(self, points: Points, level: int) -> Cells:
        """Return the cell of every point; indices are rounded and clamped, NaN goes to the first cell."""
        return self._tree.locate(self._positions(points), level)

    def scale(self, level: int, readings: Sequence[Reading]) -> Scale:
        """Return the table of the points' cells."""
        return self._tree.scale(level, readings)

    def extent(self, cells: Cells, level: int) -> tuple[Points, Points]:
        """Return the lowest and the highest index of each cell."""
        return self._tree.extent(cells, level)

    def centre(self, cells: Cells, level: int) -> Points:
        """Return the point of each cell whose largest distance to the others is least."""
        centres = self._tree.order.copy()  # a cell of one point is found by where it starts
        for node in self._at(level):
            centres[node.start] = node.centre
        return centres[self._tree.ranges(cells, level)[0]].astype(np.float64)[:, None]

    def draw(self, cells: Cells, level: int, rng: np.random.Generator) -> Points:
        """Draw one of the points of each cell, all equally likely."""
        return self._tree.draw(cells, level, rng)

    def distance(self, x: Points, y: Points) -> Floats:
        """Return the declared distances."""
        return np.asarray(self.distances[self._positions(x), self._positions(y)], np.float64)

    def to_json(self) -> dict[str, Any]:
        """Return points and metric where these say all, else the upper triangle of the matrix, row by row."""
        points = None if self.points is None else self.points.tolist()
        if self.metric is not None:
            return {"kind": "finite", "points": points, "metric": self.metric}
        upper = [self.distances[i, i + 1 :].tolist() for i in range(self.count)]
        return {"kind": "finite", "distances": upper, "points": points}

    def _positions(self, points: Points) -> Words:
        positions = nearest_integers(points[..., 0], 0, self.count - 1)
        return np.where(np.isnan(points[..., 0]), self._tree.order[0], positions)

    def _at(self, level: int) -> list["_Node"]:
        return self._nodes[level] if level < len(self._nodes) else []

    def __repr__(self) -> str:
        """Show how many points there are."""
        return f"Finite(<{self.count} points>)"


class _Node:
    """A cell of two points or more: where its points start in the order of the leaves, and its exact geometry."""

    __slots__ = ("centre", "diameter", "radius", "start")

    def __init__(self, start: int, members: Words, distances: Matrix) -> None:
        farthest = distances.max(axis=1)
        best = int(farthest.argmin())
        self.start, self.centre = start, int(members[best])
        self.radius, self.diameter = float(farthest[best]), float(farthest.max())


def _bisect(distances: Matrix) -> tuple[PointTree, list[list[_Node]]]:
    """Return the tree and, level by level, its cells of more than one point."""
    codes = np.zeros(len(distances), np.int64)
    lengths = np.zeros(len(distances), np.int64)
    nodes: list[list[_Node]] = []
    stack = [(0, np.arange(len(distances)), 0, 0)]
    while stack:
        start, members, code, level = stack.pop()
        if len(members) == 1:
            codes[members], lengths[members] = code, level
            continue
        within = distances[np.ix_(members, members)]
        if level == len(nodes):
            nodes.append([])
        nodes[level].append(_Node(start, members, within))
        left = _nearer_to_first(within)
        middle = start + int(left.sum())
        stack.append((middle, members[~left], code << 1 | 1, level + 1))
        stack.append((start, members[left], code << 1, level + 1))
    return PointTree(codes, lengths), nodes


def _nearer_to_first(distances: Matrix) -> Bools:
    """Return which points go with the first of the two that are farthest apart."""
    count = len(distances)
    a, b = np.unravel_index(distances.argmax(), distances.shape)
    lead = distances[a] - distances[b]
    least = int(np.ceil(LEAST_SHARE * count))
    share = min(max(int((lead < 0).sum()), least), count - least)
    left = np.zeros(count, bool)
    left[np.argsort(lead, kind="stable")[:share]] = True
    return left


_NORMS: dict[str, Callable[[Matrix], Floats]] = {
    "euclidean": lambda x: np.asarray(np.linalg.norm(x, axis=1)),
    "manhattan": lambda x: np.asarray(np.abs(x).sum(axis=1)),
    "chebyshev": lambda x: np.asarray(np.abs(x).max(axis=1)),
}


def _checked_matrix(name: str, value: ArrayLike) -> Matrix:
    try:
        matrix = np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} must be a matrix of numbers.") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ArgumentError(f"{name} must be a matrix with at least one row and column, got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise ArgumentError(f"{name} must be finite numbers.")
    return matrix


def _check_count(count: int) -> None:
    if count > MOST_POINTS:
        raise ArgumentError(f"Finite takes at most {MOST_POINTS} points, got {count}. Use a coarser set of points.")


def _check_distances(distances: Matrix) -> None:
    if distances.shape[0] != distances.shape[1]:
        raise ArgumentError(f"distances must be a square matrix, got shape {distances.shape}.")
    _check_count(len(distances))
    slack = ROUNDING * float(np.abs(distances).max())
    uneven = np.argwhere(np.abs(distances - distances.T) > slack)
    if len(uneven):
        i, j = uneven[0]
        raise ArgumentError(
            f"distances must be symmetric, but from {i} to {j} it is {distances[i, j]} and back {distances[j, i]}."
        )
    _check_positive(distances)
    distances[:] = np.maximum(distances, distances.T)


def _check_triangles(distances: Matrix) -> None:
    """Refuse a detour that is shorter than the way by more than rounding: O(m^3) in the worst case."""
    slack = ROUNDING * float(distances.max())
    for i, row in enumerate(distances):
        # A detour over k that is shorter than the way from i to j has a leg below half of it, from i or from j.
        near = np.flatnonzero(2 * row < row.max())
        for part in np.array_split(near[near != i], len(near) // 64 + 1):
            detours = distances[part]
            detours += row[part, None]
            shortest = detours.min(axis=0, initial=np.inf)
            j = int(np.argmax(row - shortest))
            if shortest[j] < row[j] - slack:
                k = part[detours[:, j].argmin()]
                raise ArgumentError(
                    f"distances must obey the triangle inequality, but from {i} to {j} it is {row[j]}, and over {k} "
                    f"only {shortest[j]}. Replace the distances by those of the shortest paths."
                )


def _check_positive(distances: Matrix) -> None:
    if np.diagonal(distances).any():
        i = int(np.flatnonzero(np.diagonal(distances))[0])
        raise ArgumentError(f"distances must be 0 on the diagonal, but from {i} to itself it is {distances[i, i]}.")
    others = distances + np.diag(np.ones(len(distances)))
    if not np.isfinite(others).all():
        raise ArgumentError("distances must be finite, but those of some points overflow. Rescale the points.")
    if others.min() <= 0:
        a, b = np.unravel_index(others.argmin(), others.shape)
        raise ArgumentError(
            f"distances between different points must be above 0, but from {a} to {b} it is {distances[a, b]}. "
            "Give every point once, at a scale at which doubles tell them apart."
        )

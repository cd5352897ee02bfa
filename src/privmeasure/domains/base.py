"""What a domain is: a bounded metric space with a public binary partition.

**Points.** Every domain speaks of points in one way: rows of a float64 matrix with `width` columns (a Box has one
column per axis, a Sphere has longitude and latitude, Categories have the position of the category). NaN means missing.

**Cells.** The whole space is the cell 0 of level 0. A cut splits a cell in two: the children of `code` are `code << 1`
and `code << 1 | 1`, one level deeper. So a cell is a plain integer whose bits are the answers to the cuts on the way
down, and its ancestor k levels up is `code >> k`. The level is passed beside the code, never inside it.

**Cells that do not exist.** 3 categories need 2 cuts but fill only 3 of the 4 cells. The fourth is a structural zero:
public, never counted, never given mass. A cell that is a single point has one child that exists, `code << 1`.

**Nothing raises, nothing vanishes.** `locate` maps every float to an existing cell: values beyond the bounds are
clamped, infinities too, NaN goes to the missing branch or, where none is declared, to the first cell, which always
exists. Whether an error is raised would otherwise depend on a private value.

Everything in this room is public: no function here remembers a point that it was given.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privmeasure.errors import ArgumentError

Points = NDArray[np.float64]
Cells = NDArray[np.uint64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

DEEPEST_LEVEL = 62
"""Cells are 64-bit integers that must also fit a signed word."""


@runtime_checkable
class Domain(Protocol):
    """A bounded metric space and its binary partition. `privmeasure.testing.check_domain` states the laws.

    Notation:   level j >= 0    cell: uint64 below 2**j    Delta_j sum of the diameters of the cells of level j
    References: [HVZ23] section 4.1 (binary hierarchical partition)
    """

    @property
    def width(self) -> int:
        """How many columns a point has."""
        ...

    @property
    def deepest(self) -> int:
        """The deepest level whose cells can be told apart in floating point; at most 62."""
        ...

    def diameter(self, level: int) -> float:
        """Return the diameter of the largest cell of a level, or an upper bound; never grows with the level."""
        ...

    def total_diameter(self, level: int) -> float:
        """Return Delta_j, the sum of the diameters of the cells of a level that exist, or an upper bound."""
        ...

    def size(self, level: int) -> int:
        """Return how many cells of a level exist."""
        ...

    def locate(self, points: Points, level: int) -> Cells:
        """Return the cell of every point. Prefix law: ``locate(x, k) == locate(x, r) >> (r - k)``."""
        ...

    def exists(self, cells: Cells, level: int) -> Bools:
        """Say which cells exist; the others are structural zeros."""
        ...

    def extent(self, cells: Cells, level: int) -> tuple[Points, Points]:
        """Return the lowest and the highest value that each cell allows in each column (NaN for a missing branch)."""
        ...

    def centre(self, cells: Cells, level: int) -> Points:
        """Return one fixed point of each cell, as central as the space allows."""
        ...

    def radius(self, level: int) -> float:
        """Return the largest distance of a point from the centre of its cell, or an upper bound."""
        ...

    def draw(self, cells: Cells, level: int, rng: np.random.Generator) -> Points:
        """Draw one point of each cell, uniformly in the cell's natural measure. Law: ``locate(draw(c)) == c``."""
        ...

    def distance(self, x: Points, y: Points) -> Floats:
        """Return the distances between the rows of x and the rows of y."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value with a "kind" that `domains.from_json` reads back; `load` compares other kinds."""
        ...


def check_weights(weights: Sequence[float] | None, count: int) -> tuple[float, ...]:
    """Return one weight per axis or factor, 1 by default, or say what is wrong with them."""
    try:
        checked = (1.0,) * count if weights is None else tuple(float(w) for w in weights)
    except (TypeError, ValueError, OverflowError):
        checked = ()
    if len(checked) != count or not all(1e-100 <= w <= 1e100 for w in checked):
        raise ArgumentError(
            f"weights must be {count} numbers from 1e-100 to 1e100, one for each part, got {weights!r}."
        )
    return checked

"""The flow of a signed mass along the cuts of a box: an upper bound of its norm, in linear time.

A mass of total 0 on the cells of a level is a sum of Haar components: for every cell above, +e/2 spread evenly over one
child and -e/2 over the other. Each component is the divergence of a flow along the axis of the cut, which rises evenly
to e / (2 A) in the middle of the cell and falls again, A being the area of the cut. The sum of all flows carries the
whole mass. What crosses the face between two cells may as well go from the centre of the one to that of the other.

References: T7 of docs/mathematics.md
"""

from collections.abc import Iterable, Sequence

import numpy as np

from privmeasure.domains import Box, Floats


def haar_norm(domain: Box, differences: Iterable[Floats]) -> float:
    """Return an upper bound of the norm of a mass of total 0 at the centres of the cells of a level of a box.

    `differences[j - 1]` has for every cell of level j - 1 the mass of its first child minus that of its second.

    Guarantee:  accuracy  at least the bounded-Lipschitz norm; on a line equal to it
                cost      O(d 2^depth)

    Examples:
        >>> haar_norm(Box([(0, 1)]), [np.array([2.0])])     # +1 on the left half, -1 on the right
        0.5
    """
    low = high = np.zeros((domain.width, 1))  # the flow along each axis, where the cell begins and ends on it
    sides = np.array(domain.weights)
    for level, difference in enumerate(differences, 1):
        axis = _cut(domain, level)
        step = difference / (2 * np.prod(np.delete(sides, axis)))
        middle = (low[axis] + high[axis]) / 2 + step
        low, high = np.repeat(low, 2, axis=1), np.repeat(high, 2, axis=1)
        high[axis, 0::2] = low[axis, 1::2] = middle
        sides[axis] /= 2
    return float(np.abs(low).sum() * np.prod(sides))  # a face is where a cell begins; its area times the way across


def haar_differences(mass: Floats) -> list[Floats]:
    """Return what `haar_norm` needs of the masses of all cells of a level: differences of siblings, from the top.

    Examples:
        >>> haar_differences(np.array([3.0, 1.0, 0.0, 2.0]))
        [array([2.]), array([ 2., -2.])]
    """
    levels = []
    while len(mass) > 1:
        levels.append(mass[0::2] - mass[1::2])
        mass = mass[0::2] + mass[1::2]
    return levels[::-1]


def haar_leaves(total: float, differences: Sequence[Floats]) -> Floats:
    """Return the masses of the cells of the last level, from their total and the differences of siblings.

    Examples:
        >>> haar_leaves(6.0, [np.array([2.0]), np.array([2.0, -2.0])])
        array([3., 1., 0., 2.])
    """
    mass = np.full(1, float(total))
    for difference in differences:
        children = np.empty(2 * len(mass))
        children[0::2], children[1::2] = (mass + difference) / 2, (mass - difference) / 2
        mass = children
    return mass


def _cut(domain: Box, level: int) -> int:
    before, after = domain.cuts(level - 1), domain.cuts(level)
    return next(axis for axis, (a, b) in enumerate(zip(before, after, strict=True)) if a < b)

"""The tree mechanism as a recursion over a dictionary of cells: slow, obvious, in whole numbers and fractions.

A tree is described by `exists(level, cell)`; noisy counts are given as {level: {cell: count}} for the measured levels.
Nothing here knows about arrays, blocks, threads or lazy evaluation.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import floor

Exists = Callable[[int, int], bool]
Noisy = Mapping[int, Mapping[int, int]]


def estimate(noisy: Noisy, exists: Exists, level: int, cell: int) -> int:
    """The noisy count of a cell or, where its level is not measured, the sum of its nearest measured descendants."""
    if not exists(level, cell):
        return 0
    if level in noisy:
        return noisy[level][cell]
    return estimate(noisy, exists, level + 1, 2 * cell) + estimate(noisy, exists, level + 1, 2 * cell + 1)


def clip(value: int, low: int, high: int) -> int:
    return low if value < low else high if value > high else value


def signed(parent: int, left: Fraction | int, right: Fraction | int) -> int:
    return clip(floor(Fraction(parent + left - right + 1) / 2), 0, parent)


def uniform(parent: int, left: int, right: int) -> int:
    return signed(parent, max(left, 0), max(right, 0))


def proportional(parent: int, left: int, right: int) -> int:
    left, right = max(left, 0), max(right, 0)
    if left + right == 0:
        return (parent + 1) // 2
    return floor(Fraction(parent * left, left + right) + Fraction(1, 2))


RULES = {"signed": signed, "uniform": uniform, "proportional": proportional}


def masses(total: int, noisy: Noisy, exists: Exists, depth: int, rule: str) -> dict[int, int]:
    """The leaves that receive mass, and how much: every parent's mass is split by the rule, from the root down."""
    leaves: dict[int, int] = {}

    def visit(level: int, cell: int, mass: int) -> None:
        assert mass >= 0
        if level == depth:
            if mass:
                leaves[cell] = mass
            return
        left, right = 2 * cell, 2 * cell + 1
        if not exists(level + 1, right):
            m0 = mass
        elif not exists(level + 1, left):
            m0 = 0
        else:
            m0 = RULES[rule](mass, *(estimate(noisy, exists, level + 1, child) for child in (left, right)))
        for child, share in ((left, m0), (right, mass - m0)):
            if exists(level + 1, child):
                visit(level + 1, child, share)
            else:
                assert share == 0

    visit(0, 0, total)
    return leaves

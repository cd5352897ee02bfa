"""Dealing the bits of a cell code to the axes that they cut, and back.

A cell code is a sequence of bits, one per cut; each cut belongs to one axis (of a box) or factor (of a product). The
bits of one axis, in order, are its own index. `Interleaving` converts between the two through small lookup tables: one
lookup per 11 bits, faster than shifting bit by bit and right for any order of cuts.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

CHUNK = 11
"""Bits per lookup: tables of 2048 words stay in the first-level cache."""

Words = NDArray[np.int64]


class Interleaving:
    """The fixed, public order in which the levels cut the axes: `axes[j]` is the axis that level j+1 cuts.

    Examples:
        >>> deal = Interleaving([0, 1, 0], 2)      # bits: axis 0, axis 1, axis 0
        >>> deal.split(np.array([0b101]), 0), deal.split(np.array([0b101]), 1)
        (array([3]), array([0]))
        >>> deal.join([np.array([3]), np.array([0])])
        array([5])
    """

    def __init__(self, axes: Sequence[int], count: int) -> None:
        """Remember the order; tables are made when first needed."""
        self.level = len(axes)
        self.positions = [[self.level - 1 - j for j, axis in enumerate(axes) if axis == a] for a in range(count)]
        self.cuts = tuple(len(positions) for positions in self.positions)
        """How many cuts each axis has received."""

    @cached_property
    def _joining(self) -> list[list[tuple[int, Words]]]:
        # Per axis: (shift, table); table[i] has the bits of a chunk i of the axis index at their places in the code.
        return [_tables(list(reversed(positions))) for positions in self.positions]

    @cached_property
    def _splitting(self) -> list[list[tuple[int, Words]]]:
        # Per axis: (shift, table); table[i] has those bits of a chunk i of the code that belong to the axis.
        tables: list[list[tuple[int, Words]]] = []
        for positions in self.positions:
            place = {position: len(positions) - 1 - i for i, position in enumerate(positions)}
            tables.append(_tables([place.get(bit, -1) for bit in range(self.level)]))
        return tables

    def join(self, indices: Sequence[Words]) -> Words:
        """Return the codes whose bits along each axis are the given indices."""
        code: Words | None = None
        for index, tables in zip(indices, self._joining, strict=True):
            part = _look_up(index, tables)
            if part is not None:
                code = part if code is None else np.bitwise_or(code, part, out=code)
        return np.zeros(len(indices[0]), np.int64) if code is None else code

    def split(self, codes: Words, axis: int) -> Words:
        """Return the index of each code along one axis."""
        part = _look_up(codes, self._splitting[axis])
        return np.zeros(len(codes), np.int64) if part is None else part


def _tables(places: list[int]) -> list[tuple[int, Words]]:
    """Return lookup tables that move bit i of a word to bit places[i], or drop it where places[i] is -1."""
    tables = []
    for shift in range(0, len(places), CHUNK):
        chunk = places[shift : shift + CHUNK]
        words = np.arange(1 << len(chunk), dtype=np.int64)
        table = np.zeros(1 << len(chunk), np.int64)
        for bit, place in enumerate(chunk):
            if place >= 0:
                table |= ((words >> bit) & 1) << place
        if table.any():
            tables.append((shift, table))
    return tables


def _look_up(words: Words, tables: list[tuple[int, Words]]) -> Words | None:
    """Return the words with their bits moved, or None where no bit survives."""
    result: Words | None = None
    for shift, table in tables:
        chunk = words >> shift
        np.bitwise_and(chunk, len(table) - 1, out=chunk)
        part = table.take(chunk, mode="wrap")  # all in range; "wrap" only spares a second check
        result = part if result is None else np.bitwise_or(result, part, out=result)
    return result

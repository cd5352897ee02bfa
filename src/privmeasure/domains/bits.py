"""Dealing the bits of a cell code to the axes that they cut, and back.

A cell code is a sequence of bits, one per cut; each cut belongs to one axis (of a box) or factor (of a product). The
bits of one axis, in order, are its own index. `Interleaving` converts between the two through small lookup tables: one
lookup per 11 bits, faster than shifting bit by bit and right for any order of cuts.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

LOOKUP_BITS = 11
"""Bits per lookup: tables of 2048 words stay in the first-level cache."""

Words = NDArray[np.int64]
BitTable = tuple[int, Words]
"""(shift, table): table[i] has the bits of the chunk i, which begins at bit `shift` of a word, at their new places."""


class Interleaving:
    """The fixed, public order in which the levels cut the axes: `axes[j]` is the axis that level j+1 cuts.

    Examples:
        >>> deal = Interleaving([0, 1, 0], 2)      # bits: axis 0, axis 1, axis 0
        >>> deal.split(np.array([0b101]))
        [array([3]), array([0])]
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
    def _joining(self) -> list[list[BitTable]]:
        return [_tables(list(reversed(positions))) for positions in self.positions]

    @cached_property
    def _splitting(self) -> list[BitTable]:
        # the code with the bits of each axis brought together: axis 0 on top, the last axis at the bottom
        gathered = [position for positions in self.positions for position in positions]
        return _tables([self.level - 1 - gathered.index(bit) for bit in range(self.level)])

    @cached_property
    def packed(self) -> tuple[Words, Words]:
        """The tables of `join`, by axis and chunk, and of `split`, by chunk, each in one array: for compiled loops."""
        chunks = max(1, -(-max(self.cuts) // LOOKUP_BITS))
        joining = np.zeros((len(self.cuts), chunks, 1 << LOOKUP_BITS), np.int64)
        for axis, tables in enumerate(self._joining):
            for chunk, (_, table) in enumerate(tables):
                joining[axis, chunk, : len(table)] = table
        splitting = np.zeros((max(1, len(self._splitting)), 1 << LOOKUP_BITS), np.int64)
        for chunk, (_, table) in enumerate(self._splitting):
            splitting[chunk, : len(table)] = table
        return joining, splitting

    def join(self, indices: Sequence[Words]) -> Words:
        """Return the codes whose bits along each axis are the given indices, each below 2^cuts."""
        code = np.zeros(len(indices[0]), np.int64)
        for index, tables, cuts in zip(indices, self._joining, self.cuts, strict=True):
            if cuts:
                np.bitwise_or(code, _look_up(index, tables), out=code)
        return code

    def split(self, codes: Words) -> list[Words]:
        """Return the index of each code along every axis."""
        if self.level == 0:
            return [np.zeros(len(codes), np.int64) for _ in self.cuts]
        gathered, below, indices = _look_up(codes, self._splitting), self.level, []
        for cuts in self.cuts:
            index = gathered >> (below := below - cuts)
            if below + cuts < self.level:  # nothing lies above the first axis
                np.bitwise_and(index, (1 << cuts) - 1, out=index)
            indices.append(index)
        return indices


def _tables(places: list[int]) -> list[BitTable]:
    """Return lookup tables that move bit i of a word to bit places[i]."""
    tables = []
    for shift in range(0, len(places), LOOKUP_BITS):
        chunk = places[shift : shift + LOOKUP_BITS]
        words = np.arange(1 << len(chunk), dtype=np.int64)
        table = np.zeros(1 << len(chunk), np.int64)
        for bit, place in enumerate(chunk):
            table |= ((words >> bit) & 1) << place
        tables.append((shift, table))
    return tables


def _look_up(words: Words, tables: list[BitTable]) -> Words:
    """Return the words, which have no bits beyond the tables', with their bits moved."""
    result: Words | None = None
    for shift, table in tables:
        chunk = words >> shift if shift else words
        if shift < tables[-1][0]:  # bits above this chunk remain
            chunk = chunk & (len(table) - 1)
        part = table.take(chunk, mode="wrap")  # all in range; "wrap" only spares a second check
        result = part if result is None else np.bitwise_or(result, part, out=result)
    return np.zeros(len(words), np.int64) if result is None else result

"""Normal deviates: tries whose first digits do not decide are settled, for the whole part 0 as for others."""

from itertools import chain, repeat

import numpy as np
import pytest

from privmeasure.noise.entropy import Key
from privmeasure.noise.normal import WORD, Normals


class Played(Key):
    """A key whose words are given for the two columns; 0 after their end."""

    def __init__(self, fraction: list[int], coin: list[int]) -> None:
        super().__init__(bytes(32), private=False)
        self.columns, self.read = ([*chain(each, repeat(0, 9))] for each in (fraction, coin)), 0
        self.columns = list(self.columns)

    def words(self, *, part, level, cells, attempt=0):
        self.read = max(self.read, attempt + 1)
        return np.array([[column[attempt] for column in self.columns]] * len(cells), np.uint64)


@pytest.mark.parametrize("whole", [0, 1, 900])
@pytest.mark.parametrize(("fraction", "kept"), [(0, True), ((1 << WORD) - 1, False)])
def test_a_coin_near_1_keeps_what_is_hardly_above_its_whole_part(whole: int, fraction: int, kept: bool) -> None:
    """At F = 0 everything is kept, even for U = 1 - 2^-63; at F near 1 hardly anything is dropped, but this U is."""
    deviates = object.__new__(Normals)
    deviates._key, deviates._part, deviates._level = Played([fraction], []), 0, 1
    coins, cells = np.array([(1 << 63) - 1], np.uint64), np.zeros(1, np.uint64)
    assert deviates._kept(np.array([whole]), coins, cells).tolist() == [kept]
    assert deviates._key.read >= 1
    assert deviates._kept(np.array([-1 - whole]), np.zeros(1, np.uint64), cells).tolist() == [False]

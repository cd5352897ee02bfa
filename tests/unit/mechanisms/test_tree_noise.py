"""Noise on the counts of a level: one draw for every cell, whatever the blocks and threads."""

from fractions import Fraction

import numpy as np
import pytest

from privmeasure.mechanisms import tree
from privmeasure.mechanisms.tree import add_noise
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import discrete_laplace


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block", [1, 5, 8, 23, 64])
def test_every_count_gets_the_noise_of_its_position_once(monkeypatch, block, threads):
    monkeypatch.setattr(tree, "TASK_CELLS", block)
    law, key, true = discrete_laplace(Fraction(9)), Key.insecure(1), np.arange(23) * 100
    found = add_noise(true.copy(), 4, law, key, 2, threads)
    noise = law.draw(key, part=2, level=4, cells=np.arange(23, dtype=np.uint64))
    assert (found - true).tolist() == noise.tolist()
    assert noise.any()

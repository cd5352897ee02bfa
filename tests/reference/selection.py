"""The law of the winner of a noisy maximum with one-sided geometric noise, by summation."""

import math
from fractions import Fraction

import numpy as np

REACH = 40
"""Scales of noise that are summed over: what is cut off is below e^-REACH."""


def winners(scores: tuple[int, ...], scale: Fraction) -> np.ndarray:
    """P(i wins) = sum over z of P(Z_i = z) P(all others stay below, or tie and come later); certified to e^-REACH."""
    a = float(1 / scale)
    z = np.arange(math.ceil(REACH * scale) + max(scores) - min(scores) + 1)
    law = []
    for i, own in enumerate(scores):
        chance = -math.expm1(-a) * np.exp(-a * z)
        for j, other in enumerate(scores):
            if j != i:
                most = own + z - other - (j < i)  # the largest noise of j with which i still wins
                chance = chance * np.where(most >= 0, -np.expm1(-a * (np.maximum(most, 0) + 1)), 0.0)
        law.append(chance.sum())
    assert abs(sum(law) - 1) < 1e-12
    return np.array(law)

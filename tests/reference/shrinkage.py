"""Shrinkage as a recursion over lists: slow, obvious, parent by parent. What `estimates/shrinkage.py` must equal."""

from collections.abc import Callable, Mapping, Sequence
from math import floor, log2

import numpy as np

from reference.gls import DenseGLS
from reference.pmm import clip

FEWEST = 8

Neighbours = Callable[[int, int], tuple[int, int]]
"""(level, cell) -> the cells below and above it along the axis that is cut next; itself where there is none."""


def split_variance(left: float, right: float) -> float:
    """The variance of the difference of two estimates that are known to sum to their parent."""
    return 0.0 if left + right == 0 else 4 * left * right / (left + right)


def up_variances(variances: Mapping[int, float], depth: int, exists: Sequence[Sequence[bool]]) -> list[list[float]]:
    """The variance of the best estimate of every cell from the levels at and below it."""
    levels = [[variances[depth] if there else 0.0 for there in exists[depth]]]
    for level in range(depth - 1, -1, -1):
        sums = [levels[0][2 * i] + levels[0][2 * i + 1] for i in range(1 << level)]
        own = variances.get(level)
        levels.insert(0, [s if own is None else own * s / (own + s) for s in sums])
    return levels


def shrunk(differences: list[float], forecast: list[float], expected: list[float], noise: list[float]) -> list[float]:
    """Parents of one octave of expected mass shrink together, if there are enough of them."""
    octave = [floor(log2(max(mass, 0.0) + 1)) for mass in expected]
    result = []
    for i, e in enumerate(differences):
        group = [k for k in range(len(octave)) if octave[k] == octave[i]]
        signal = sum((differences[k] - forecast[k]) ** 2 for k in group)
        variance = sum(noise[k] for k in group)
        few = sum(noise[k] > 0 for k in group) < FEWEST
        f = 1.0 if few else 0.0 if signal <= variance else 1 - variance / signal
        result.append(forecast[i] + f * (e - forecast[i]))
    return result


def stage(
    total: int,
    differences: list[list[float]],
    noise: list[list[float]],
    coarse: Mapping[int, list[int]],
    exists: Sequence[Sequence[bool]],
    neighbours: Neighbours | None,
) -> list[int]:
    """The masses of the deepest level of the stage: shrunk splits from the root down."""
    mass, expected = [total], [float(total)]
    for level in range(len(differences)):
        if level in coarse:
            expected = [float(m) for m in coarse[level]]
        forecast = [0.0] * len(mass)
        if neighbours is not None:
            for cell in range(len(mass)):
                below, above = neighbours(level, cell)
                forecast[cell] = clip((expected[below] - expected[above]) / 8, -expected[cell], expected[cell])
        e = shrunk(differences[level], forecast, expected, noise[level])
        masses, hopes = [], []
        for cell, parent in enumerate(mass):
            left, right = exists[level + 1][2 * cell], exists[level + 1][2 * cell + 1]
            m0 = clip(floor((parent + e[cell] + 1) / 2), 0, parent) if left and right else parent if left else 0
            masses += [m0, parent - m0]
            if left and right:
                hopes += [(expected[cell] + forecast[cell]) / 2, (expected[cell] - forecast[cell]) / 2]
            else:
                hopes += [expected[cell] if left else 0.0, expected[cell] if right else 0.0]
        mass, expected = masses, hopes
    return mass


def leaves(
    noisy: Mapping[int, np.ndarray],
    variances: Mapping[int, float],
    total: int,
    depth: int,
    exists: Sequence[Sequence[bool]],
    neighbours: Neighbours | None,
) -> list[int]:
    """All stages: each measured level from the levels down to it, by dense least squares."""
    coarse: dict[int, list[int]] = {0: [total]}
    for last in sorted(level for level in noisy if level > 0):
        measured = {level: variances[level] for level in noisy if level <= last}
        gls = DenseGLS(measured, last, exists[last])
        free = gls.estimates({level: noisy[level] for level in measured})
        root = total if 0 not in noisy or last == depth else max(0, round(float(free[0][0])))
        h = free if 0 in noisy else gls.estimates({level: noisy[level] for level in measured}, float(total))
        # rounded, because whole numbers decide ties, and dense least squares returns them only nearly
        differences = [np.round(h[j][0::2] - h[j][1::2], 7).tolist() for j in range(1, last + 1)]
        c = up_variances(measured, last, exists)
        noise = [
            [split_variance(c[j][2 * i], c[j][2 * i + 1]) for i in range(1 << (j - 1))] for j in range(1, last + 1)
        ]
        coarse[last] = stage(root, differences, noise, coarse, exists, neighbours)
    return coarse[depth]

"""Ours: the default, and the mechanisms of the paper. What users get is named here alone."""

import numpy as np

import privmeasure as pm
from privmeasure.noise.entropy import Key
from privmeasure.sources.arrays import ArraySource


def default(points: np.ndarray, epsilon: float, relation: str, seed: int) -> np.ndarray:
    """Release and sample by the default."""
    return released(pm.PMM(*promise(points, epsilon, relation)), points, seed)


def paper(points: np.ndarray, epsilon: float, relation: str, seed: int) -> np.ndarray:
    """Release and sample by the paper's tree mechanism, literally, at its depth for the true number of rows."""
    return released(pm.PMM.paper(*promise(points, epsilon, relation), rows=len(points)), points, seed)


def psmm(points: np.ndarray, epsilon: float, relation: str, seed: int) -> np.ndarray:
    """Release and sample by the paper's flat mechanism, its linear program corrected."""
    return released(pm.PSMM(*promise(points, epsilon, relation)), points, seed)


def promise(points: np.ndarray, epsilon: float, relation: str) -> tuple[pm.Box, pm.Privacy]:
    return pm.Box([(0, 1)] * points.shape[1]), pm.Privacy(epsilon, relation)


def released(mechanism: pm.PMM | pm.PSMM, points: np.ndarray, seed: int) -> np.ndarray:
    source = ArraySource(points, width=points.shape[1], threads=1)
    return mechanism.release(source, Key.insecure(seed)).sample(seed=seed, threads=1)

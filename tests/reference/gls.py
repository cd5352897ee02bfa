"""Generalised least squares on a tree, with dense matrices: what the two passes of inference must equal."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class DenseGLS:
    """The linear model: the unknowns are the leaves that exist, the data are noisy sums of leaves.

    `variances[level]` is the noise variance of a measured level; `exists` says which cells of the deepest level exist
    (the others are known to be 0); with `root` the sum of all leaves is known exactly.
    """

    def __init__(self, variances: Mapping[int, float], depth: int, exists: Sequence[bool] | None = None) -> None:
        self.depth = depth
        self.levels = sorted(variances)
        self.there = np.ones(1 << depth, bool) if exists is None else np.asarray(exists, bool)
        self.leaves = np.flatnonzero(self.there)
        self.rows = {level: self.sums(level) for level in range(depth + 1)}
        self.measured = {level: self.rows[level].any(axis=1) for level in self.levels}
        self.design = np.concatenate([self.rows[level][self.measured[level]] for level in self.levels])
        self.sd = np.concatenate(
            [np.full(self.measured[level].sum(), variances[level] ** 0.5) for level in self.levels]
        )

    def sums(self, level: int) -> Vector:
        """The matrix that adds up the existing leaves of each cell of a level."""
        cells = np.arange(1 << level)[:, np.newaxis]
        return (self.leaves[np.newaxis] >> (self.depth - level) == cells).astype(float)

    def basis(self, exact_root: bool) -> Vector:
        """The directions in which the leaves are unknown: all, or those that leave the sum as it is."""
        full = np.eye(len(self.leaves))
        return full[:, :-1] - full[:, -1:] if exact_root else full

    def estimates(self, noisy: Mapping[int, Vector], root: float | None = None) -> list[Vector]:
        """The best linear unbiased estimate of every cell of every level; 0 where a cell does not exist."""
        data = np.concatenate([np.asarray(noisy[level], float)[self.measured[level]] for level in self.levels])
        basis, start = self.basis(root is not None), np.zeros(len(self.leaves))
        if root is not None:
            start[-1] = root
        white = self.design / self.sd[:, np.newaxis]
        unknown = np.linalg.lstsq(white @ basis, data / self.sd - white @ start, rcond=None)[0]
        return [self.rows[level] @ (start + basis @ unknown) for level in range(self.depth + 1)]

    def covariance(self, level: int, *, exact_root: bool = False) -> Vector:
        """The covariance matrix of the estimates of the cells of a level."""
        basis = self.basis(exact_root)
        white = self.design / self.sd[:, np.newaxis] @ basis
        leaves = basis @ np.linalg.inv(white.T @ white) @ basis.T
        return self.rows[level] @ leaves @ self.rows[level].T

"""The up pass and the two passes of uneven trees against dense generalised least squares."""

import numpy as np
import pytest

from depth import some
from privmeasure.estimates import consistency, linear
from privmeasure.estimates.consistency import distribute, proportional, signed, uniform
from privmeasure.estimates.passes import level_variances, uneven_blue, uneven_up_pass, up_pass
from privmeasure.mechanisms.lazy import ancestors
from reference.gls import DenseGLS

CASES = range(40)


def random_tree(seed, *, root=False):
    """A depth, the variances of random measured levels (the deepest among them) and noisy counts for them."""
    rng = np.random.default_rng(seed)
    depth = int(rng.integers(1, 7))
    levels = [level for level in range(1, depth) if rng.random() < 0.6] + [depth]
    if root:
        levels = [0, *levels]
    variances = {level: float(10 ** rng.uniform(-1, 3)) for level in levels}
    noisy = {level: rng.integers(-50, 200, 1 << level) for level in levels}
    return rng, depth, variances, noisy


def assert_same(ours, theirs):
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9 * max(1.0, float(np.abs(theirs).max(initial=0))))


@some("seed", 6, CASES)
@pytest.mark.parametrize("root", [None, 1234.0])
def test_up_pass_gives_the_best_differences_of_an_even_tree(seed, root):
    _, depth, variances, noisy = random_tree(seed)
    h = DenseGLS(variances, depth).estimates(noisy, root)
    prepared = up_pass(dict(noisy), variances, depth, signed, blue=True)
    assert len(prepared) == depth
    for level, (difference,) in enumerate(prepared, start=1):
        assert_same(difference, h[level][0::2] - h[level][1::2])


@some("seed", 6, CASES)
@pytest.mark.parametrize("root", [None, 1234.0])
def test_uneven_blue_is_generalised_least_squares(seed, root):
    rng, depth, variances, noisy = random_tree(seed, root=root is None)
    there = rng.random(1 << depth) < rng.uniform(0.3, 1)
    there[rng.integers(1 << depth)] = True
    h = DenseGLS(variances, depth, there).estimates(noisy, root)
    floats = {level: counts.astype(float) for level, counts in noisy.items()}
    prepared = uneven_blue(floats, variances, depth, ancestors(there, depth), root)
    assert len(prepared) == depth
    for level, (difference,) in enumerate(prepared, start=1):
        assert_same(difference, h[level][0::2] - h[level][1::2])


@some("seed", 6, CASES)
def test_the_comparison_can_fail(seed):
    """Equal weights instead of the variances are not the best estimate, and the comparison above sees it."""
    _, depth, variances, noisy = random_tree(seed)
    if len(variances) == 1:
        return
    h = DenseGLS(variances, depth).estimates(noisy)
    prepared = up_pass(dict(noisy), dict.fromkeys(variances, 1.0), depth, signed, blue=True)
    gaps = [np.abs(e - (h[j][0::2] - h[j][1::2])).max() for j, (e,) in enumerate(prepared, start=1)]
    assert max(gaps) > 1e-6


@some("seed", 6, CASES)
def test_even_and_uneven_passes_agree_on_an_even_tree(seed):
    _, depth, variances, noisy = random_tree(seed)
    there = ancestors(np.ones(1 << depth, bool), depth)
    even = up_pass(dict(noisy), variances, depth, signed, blue=True)
    uneven = uneven_blue(dict(noisy), variances, depth, there, 1000.0)
    for (a,), (b,) in zip(even, uneven, strict=True):
        assert_same(b, a)


@some("seed", 6, CASES)
@pytest.mark.parametrize("exact_root", [False, True])
def test_level_variances_are_those_of_least_squares(seed, exact_root):
    _, depth, variances, _ = random_tree(seed)
    gls = DenseGLS(variances, depth)
    ours = level_variances(variances, depth, blue=True)
    assert len(ours) == depth + 1
    for level in range(1, depth + 1):  # the difference of two siblings has variance V_j = 2 C_j, root known or not
        contrast = np.zeros(1 << level)
        contrast[:2] = 1, -1
        variance = contrast @ gls.covariance(level, exact_root=exact_root) @ contrast
        assert 2 * ours[level] == pytest.approx(variance, rel=1e-9)
    assert_same(ours[0], gls.covariance(0)[0, 0])


@some("seed", 6, CASES)
def test_level_variances_are_those_of_a_subtree_alone(seed):
    """C_j, before the down pass, is the variance of the best estimate of a cell from its own subtree."""
    _, depth, variances, _ = random_tree(seed)
    ours = level_variances(variances, depth, blue=True)
    for level in range(depth):
        below = {j - level: v for j, v in variances.items() if j >= level}
        assert ours[level] == pytest.approx(DenseGLS(below, depth - level).covariance(0)[0, 0], rel=1e-9)


def test_level_variances_without_inference_are_those_of_the_nearest_measured_descendants():
    assert level_variances({2: 3.0, 5: 7.0}, 5, blue=False) == [12.0, 6.0, 3.0, 28.0, 14.0, 7.0]


@some("seed", 6, CASES)
@pytest.mark.parametrize("rule", [signed, uniform, proportional], ids=lambda rule: rule.name)
def test_without_inference_a_level_uses_its_nearest_measured_descendants(seed, rule):
    rng, depth, variances, noisy = random_tree(seed)
    there = rng.random(1 << depth) < 0.7
    there[0] = True
    exists = ancestors(there, depth)
    for uneven in (False, True):
        if uneven:
            prepared = uneven_up_pass(dict(noisy), depth, rule, exists)
        else:
            prepared = up_pass(dict(noisy), variances, depth, rule, blue=False)
        for level in range(1, depth + 1):
            source = min(j for j in noisy if j >= level)
            counts = np.where(exists[source], noisy[source], 0) if uneven else noisy[source]
            z = counts.reshape(1 << level, -1).sum(axis=1)
            expected = rule.prepare(z[0::2], z[1::2])
            for ours, theirs in zip(prepared[level - 1], expected, strict=True):
                assert ours.dtype == np.int64
                assert (ours == theirs).all()


def test_the_up_pass_works_on_forests():
    """A row of trees side by side gives what each tree gives alone."""
    rng = np.random.default_rng(5)
    variances = {2: 4.0, 4: 1.0}
    trees = [{j: rng.integers(-9, 99, 1 << j) for j in variances} for _ in range(3)]
    row = {j: np.concatenate([tree[j] for tree in trees]) for j in variances}
    together = up_pass(row, variances, 4, signed, blue=True)
    alone = [up_pass(dict(tree), variances, 4, signed, blue=True) for tree in trees]
    for level in range(4):
        assert (together[level][0] == np.concatenate([tree[level][0] for tree in alone])).all()


def test_stretches_and_threads_change_nothing(monkeypatch):
    rng, depth, trees = np.random.default_rng(4), 7, 3
    exists = [np.tile(level, trees) for level in ancestors(rng.random(1 << depth) < 0.7, depth)]
    noisy = {level: rng.integers(-3, 20, trees << level) for level in (3, depth)}

    def leaves(threads):
        for root in (None, 500.0):
            prepared = uneven_blue(dict(noisy), {3: 2.0, depth: 5.0}, depth, exists, root, threads=threads)
            yield b"".join(differences.tobytes() for (differences,) in prepared)
            yield distribute(np.full(trees, 500), prepared, signed, exists, threads=threads).tobytes()

    whole = list(leaves(1))
    monkeypatch.setattr(linear, "CELLS_TOGETHER", 5)
    monkeypatch.setattr(consistency, "PARENTS_TOGETHER", 5)
    assert list(leaves(1)) == whole
    assert list(leaves(3)) == whole

"""The audit that can fail: the law of the output, on neighbouring inputs, by enumeration.

For a tree of depth 2 the masses of the leaves are a function of a handful of noisy counts. This file sums, over a
finite box of noisy counts, the probability of every output under two neighbouring inputs, and compares the two.

*Real code.* Scales come from `PMM.plan`; masses from `up_pass` and `distribute`, which work on forests, so that every
point of the box is one tree of a forest. `test_the_release_is_the_function_that_is_enumerated` runs the whole
`PMM.release` on chosen noise and finds the same masses, the same scales, and each noise drawn once.

*Certified error.* Let B be the box. For an output o let p(o) = P(o, B) and q(o) = Q(o, B): sums of positive numbers,
exact to a relative `ROUNDING`. Then P(o) lies in [p, p + missing_p] with missing_p = 1 - sum p, and likewise Q(o). So

- `proved`, the largest log(p / (q + missing_q)), is a lower bound of the true privacy loss: above epsilon is a proof of
  a violation, whatever was cut off;
- `largest`, the largest log(p / q), is the loss of the mechanism on the event B. B is a set of noisy counts, the same
  for both inputs, so an epsilon-DP mechanism has largest <= epsilon, with no allowance for what was cut off;
- the hockey-stick sum over *all* outputs obeys sum max(0, P - e^eps Q) <= sum max(0, p - e^eps q) + missing_p.

Inputs are written as the counts of the leaves.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product

import numpy as np
import pytest

from depth import some
from privmeasure import PMM, Box, Privacy, Recipe
from privmeasure.estimates.consistency import RULES, distribute
from privmeasure.estimates.passes import up_pass
from privmeasure.mechanisms import base, lazy, tree
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import DiscreteLaplace, discrete_laplace
from privmeasure.plans.bounds import noise_variance
from privmeasure.sources.arrays import ArraySource

ROUNDING = 1e-9
PLAIN = Recipe(shrinkage="none")
LEAVES_ONLY = [PLAIN] + [Recipe(inference="none", rule=rule) for rule in RULES]
EVERY_LEVEL = [Recipe("every level", "none", rule) for rule in RULES]
EVERY_LEVEL_BLUE = Recipe("every level", "blue", "signed")
RECIPES = [*LEAVES_ONLY, *EVERY_LEVEL, EVERY_LEVEL_BLUE]

Counts = tuple[int, ...]
Pair = tuple[Counts, Counts]
PAIRS: dict[str, list[Pair]] = {
    "replace": [
        ((1, 0, 0, 0), (0, 0, 0, 1)),
        ((2, 0, 0, 0), (1, 1, 0, 0)),
        ((2, 1, 1, 1), (1, 1, 2, 1)),
        ((4, 4, 4, 4), (3, 4, 5, 4)),
        ((16, 0, 0, 0), (15, 0, 1, 0)),
        ((8, 0, 0, 8), (7, 0, 0, 9)),
    ],
    "add-remove": [
        ((0, 0, 0, 0), (1, 0, 0, 0)),
        ((0, 0, 0, 1), (0, 0, 1, 1)),
        ((3, 1, 0, 0), (3, 1, 1, 0)),
        ((4, 4, 3, 4), (4, 4, 4, 4)),
        ((15, 0, 0, 0), (16, 0, 0, 0)),
    ],
}


def name(recipe: Recipe) -> str:
    return f"{recipe.schedule}/{recipe.inference}/{recipe.rule}"


# ------------------------------------------------------------------------------------------------- the enumeration


@dataclass(frozen=True)
class Noise:
    """What the plan adds to which level, as hashable values, and how far the box of noisy counts reaches."""

    scales: tuple[tuple[int, Fraction], ...]
    reach: float = 20
    """The box reaches this many scales beyond the counts on either side."""

    def __getitem__(self, level: int) -> Fraction:
        return dict(self.scales)[level]

    def change(self, level: int, factor: Fraction) -> "Noise":
        return Noise(tuple((j, s * factor if j == level else s) for j, s in self.scales), self.reach)


def noise_of(mechanism: PMM, rows: int, reach: float) -> Noise:
    plan = mechanism.plan(rows)
    assert plan.evaluation == "whole tree"
    return Noise(tuple(zip(plan.levels, plan.scales, strict=True)), reach)


def pmf(scale: Fraction, z: np.ndarray) -> np.ndarray:
    """P(Z = z) = tanh(a/2) exp(-a |z|) with a = 1/scale."""
    a = float(1 / scale)
    return math.tanh(a / 2) * np.exp(-a * np.abs(z))


def root_law(scale: Fraction | None, rows: int, masses: np.ndarray) -> np.ndarray:
    """The law of the total: max(1, n + Z), or exactly n where n is public."""
    if scale is None:
        return (masses == rows).astype(float)
    law = pmf(scale, masses - rows)
    p = math.exp(-1 / scale)
    at_most = p ** (rows - 1) / (1 + p) if rows >= 1 else 1 - p**2 / (1 + p)  # P(Z <= 1 - n)
    return np.where(masses == 1, at_most, law)


def axis(a: int, b: int, scale: Fraction, reach: float) -> np.ndarray:
    """The noisy counts that are looked at, of a cell that holds a rows in one input and b in the other."""
    k = math.ceil(reach * scale)
    return np.arange(min(a, b) - k, max(a, b) + k + 1)


def parents(counts: Counts) -> Counts:
    return tuple(np.array(counts).reshape(-1, 2).sum(axis=1).tolist())


def forest(axes: Iterable[np.ndarray]) -> list[np.ndarray]:
    return [grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]


def together(arrays: list[np.ndarray]) -> np.ndarray:
    """Lay siblings side by side: tree after tree."""
    return np.stack(arrays, axis=1).ravel()


def weights(pair: Pair, scale: Fraction, axes: list[np.ndarray]) -> list[np.ndarray]:
    """The probability of each point of a box of noisy counts, under each input."""
    both = []
    for counts in pair:
        weight = np.ones(1)
        for y, count in zip(axes, counts, strict=True):
            weight = np.multiply.outer(weight, pmf(scale, y - count)).ravel()
        both.append(weight)
    return both


@lru_cache(maxsize=512)
def node_laws(rule: str, scale: Fraction, pair: Pair, largest: int, reach: float) -> list[list[np.ndarray]]:
    """The law of m0 given M = 0, ..., largest, for one parent with two noisy children, under each input."""
    axes = [axis(a, b, scale, reach) for a, b in zip(*pair, strict=True)]
    prepared = up_pass({1: together(forest(axes))}, {1: 1.0}, 1, RULES[rule], blue=False)
    both = weights(pair, scale, axes)
    laws: list[list[np.ndarray]] = [[], []]
    for mass in range(largest + 1):
        left = distribute(np.full(len(both[0]), mass), list(prepared), RULES[rule])[0::2]
        for law, weight in zip(laws, both, strict=True):
            law.append(np.bincount(left, weight, mass + 1))
    return laws


def factorised(rule: str, noise: Noise, pair: Pair, depth: int, largest: int) -> list[list[np.ndarray]]:
    """The law of the leaves given M, when every level is measured and nothing is inferred: node by node.

    P(leaves | M) = P(m0 | M) P(left leaves | m0) P(right leaves | M - m0), since each level has noise of its own.
    """

    def below(level: int, cell: int) -> list[list[np.ndarray]]:
        if level == depth:
            return [[np.ones(1)] * (largest + 1)] * 2
        half = (tuple(per_level[level + 1][side][2 * cell : 2 * cell + 2]) for side in (0, 1))
        nodes = node_laws(rule, noise[level + 1], tuple(half), largest, noise.reach)
        left, right = below(level + 1, 2 * cell), below(level + 1, 2 * cell + 1)
        return [
            [
                np.concatenate(
                    [
                        nodes[side][mass][m0] * np.multiply.outer(left[side][m0], right[side][mass - m0]).ravel()
                        for m0 in range(mass + 1)
                    ]
                )
                for mass in range(largest + 1)
            ]
            for side in (0, 1)
        ]

    per_level = {depth: pair}
    for level in range(depth - 1, 0, -1):
        per_level[level] = tuple(parents(counts) for counts in per_level[level + 1])
    return below(0, 0)


def leaves_only(rule: str, blue: bool, noise: Noise, pair: Pair, masses: np.ndarray) -> list[list[np.ndarray]]:
    """The law of the leaves given M, when only the leaves are measured: all four noisy counts together."""
    scale = noise[2]
    axes = [axis(a, b, scale, noise.reach) for a, b in zip(*pair, strict=True)]
    prepared = up_pass({2: together(forest(axes))}, {2: noise_variance(scale)}, 2, RULES[rule], blue=blue)
    both = weights(pair, scale, axes)
    laws: list[list[np.ndarray]] = [[], []]
    for mass in masses.tolist():
        leaf = distribute(np.full(len(both[0]), mass), list(prepared), RULES[rule]).reshape(-1, 4)
        code = (leaf[:, 0] * (mass + 1) + leaf[:, 1]) * (mass + 1) + leaf[:, 2]
        for law, weight in zip(laws, both, strict=True):
            law.append(np.bincount(code, weight, (mass + 1) ** 3))
    return laws


def every_level_blue(noise: Noise, pair: Pair, masses: np.ndarray) -> list[list[np.ndarray]]:
    """The law of the leaves given M, when two levels are measured and combined: six noisy counts.

    A child's estimate depends on its own noisy count y and on the sum s of its leaves, its split on their difference.
    So the sum over (y0, s0, y1, s1) gives the weight W[m0, s0, s1], and the leaves given s0 and s1 are independent.
    """
    rule = RULES["signed"]
    measured = {level: noise_variance(scale) for level, scale in noise.scales}
    upper = tuple(parents(counts) for counts in pair)
    ys = [axis(a, b, noise[1], noise.reach) for a, b in zip(*upper, strict=True)]
    leaf_axes = [axis(a, b, noise[2], noise.reach) for a, b in zip(*pair, strict=True)]
    sums, estimates, halves = [], [], []
    for side in (0, 1):
        first, second = leaf_axes[2 * side : 2 * side + 2]
        sums.append(np.arange(first[0] + second[0], first[-1] + second[-1] + 1))
        y, s = forest([ys[side], sums[side]])
        nought = np.zeros_like(s)
        # the sibling subtree is all 0, so that the difference which the up pass prepares is this child's estimate
        level1, level2 = ([y, nought], [s, nought, nought, nought])
        noisy = {1: together(level1), 2: together(level2)}
        estimates.append(up_pass(noisy, measured, 2, rule, blue=True)[0][0])
        l0, l1 = forest([first, second])
        half = tuple(counts[2 * side : 2 * side + 2] for counts in pair)
        prepared = up_pass({1: together([l0, l1])}, {1: measured[2]}, 1, rule, blue=True)
        halves.append((l0 + l1 - sums[side][0], prepared, weights(half, noise[2], [first, second])))
    difference = np.subtract.outer(estimates[0], estimates[1]).ravel()
    shape = (len(ys[0]), len(sums[0]), len(ys[1]), len(sums[1]))
    s0, s1 = np.arange(shape[1]), np.arange(shape[3])
    place = np.broadcast_to((s0[:, None, None] * shape[3] + s1)[None], shape).ravel()
    cells = shape[1] * shape[3]
    upper_weights = [
        np.broadcast_to(
            np.multiply.outer(pmf(noise[1], ys[0] - counts[0]), pmf(noise[1], ys[1] - counts[1]))[:, None, :, None],
            shape,
        ).ravel()
        for counts in upper
    ]
    largest = int(masses.max())
    given: list[list[list[np.ndarray]]] = []  # [child][input][m][s, m_left]
    for index, prepared, both in halves:
        rows = int(index.max()) + 1
        tables: list[list[np.ndarray]] = [[], []]
        for mass in range(largest + 1):
            left = distribute(np.full(len(index), mass), list(prepared), rule)[0::2]
            for table, weight in zip(tables, both, strict=True):
                table.append(np.bincount(index * (mass + 1) + left, weight, rows * (mass + 1)).reshape(rows, -1))
        given.append(tables)
    laws: list[list[np.ndarray]] = [[], []]
    for mass in masses.tolist():
        m0 = distribute(np.full(len(difference), mass), [(difference,)], rule)[0::2]
        for side in (0, 1):
            w = np.bincount(m0 * cells + place, upper_weights[side], (mass + 1) * cells).reshape(-1, shape[1], shape[3])
            law = [(given[0][side][m].T @ w[m] @ given[1][side][mass - m]).ravel() for m in range(mass + 1)]
            laws[side].append(np.concatenate(law))
    return laws


@lru_cache(maxsize=512)
def laws_given_mass(recipe: Recipe, noise: Noise, pair: Pair, masses: tuple[int, ...]) -> list[list[np.ndarray]]:
    """The law of the leaves given each total, under each input, on the same noisy counts."""
    wanted, depth = np.array(masses), int(math.log2(len(pair[0])))
    if recipe.schedule == "sparse":
        return leaves_only(recipe.rule, recipe.inference == "blue", noise, pair, wanted)
    if recipe.inference == "blue":
        return every_level_blue(noise, pair, wanted)
    everything = factorised(recipe.rule, noise, pair, depth, max(masses))
    return [[laws[mass] for mass in masses] for laws in everything]


# ------------------------------------------------------------------------------------------------- the audit


@dataclass(frozen=True)
class Finding:
    largest: float
    """The largest log-ratio, both ways, on the noisy counts that were enumerated."""
    proved: float
    """A lower bound of the largest log-ratio of the whole mechanism."""
    hockey: float
    """The larger of the two sums of max(0, p - e^eps q)."""
    missing: float
    """The probability, under either input, of what was not enumerated."""


def compare(p: np.ndarray, q: np.ndarray, epsilon: float) -> Finding:
    seen = (p > 1e-280) | (q > 1e-280)
    p, q = p[seen], q[seen]
    missing = [max(0.0, 1 - math.fsum(law)) + 1e-12 for law in (p, q)]
    with np.errstate(divide="ignore"):
        largest = float(np.abs(np.log(p) - np.log(q)).max())
        proved = max(float(np.log(a / (b + cut)).max()) for a, b, cut in ((p, q, missing[1]), (q, p, missing[0])))
    hockey = max(float(np.maximum(0, a - math.exp(epsilon) * b).sum()) for a, b in ((p, q), (q, p)))
    return Finding(largest, proved, hockey, max(missing))


def audit(recipe: Recipe, noise: Noise, pair: Pair, epsilon: float, masses: Iterable[int] | None = None) -> Finding:
    """Compare the two laws of the leaves; `masses` are the totals to look at, by default all that are likely."""
    scale = dict(noise.scales).get(0)
    rows = [sum(counts) for counts in pair]
    if scale is None:
        assert rows[0] == rows[1], "with a public number of rows neighbours have equally many"
        masses = [rows[0]]
    elif masses is None:
        masses = range(1, max(rows) + math.ceil(noise.reach * scale) + 1)
    masses = tuple(masses)
    given = laws_given_mass(recipe, Noise(tuple(s for s in noise.scales if s[0]), noise.reach), pair, masses)
    p, q = (
        np.concatenate([r * law for r, law in zip(root_law(scale, n, np.array(masses)), laws, strict=True)])
        for n, laws in zip(rows, given, strict=True)
    )
    return compare(p, q, epsilon)


def keeps(finding: Finding, epsilon: float, missing: float) -> bool:
    """Whether the audit passes: no output's probability grows by more than e^epsilon, and little was cut off."""
    assert finding.missing <= missing, "the enumeration is too small to say anything"
    return finding.largest <= epsilon + ROUNDING and finding.proved <= epsilon + ROUNDING and finding.hockey <= ROUNDING


def breaks(finding: Finding, epsilon: float, by: float) -> bool:
    """Whether a violation is proved, whatever was cut off."""
    return finding.proved > by * epsilon


# ------------------------------------------------------------------------------------------------- what it enumerates


class ScriptedLaw:
    """Noise that a test chose, with a record of what was asked for."""

    def __init__(self, name, scale, script, asked):
        self.scale, self.script, self.asked = scale, script, asked

    def draw(self, key, *, part, level, cells):
        self.asked.extend((level, self.scale, cell) for cell in cells.tolist())
        return np.array([self.script[level][int(cell)] for cell in cells], np.int64)


@pytest.mark.parametrize("max_cells", [1 << 26, 2], ids=["whole tree", "lazy"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("recipe", RECIPES, ids=name)
def test_the_release_is_the_function_that_is_enumerated(monkeypatch, recipe, neighbours, max_cells):
    """The whole `release` on chosen noise is `distribute(up_pass(...))`, with the plan's scales, no noise used twice.

    A lazy evaluation is the same function without inference; it does not draw the noise of cells that have no mass.
    """
    rng, whole = np.random.default_rng(1), max_cells > 2
    mechanism = PMM(Box([(0, 1)]), Privacy(2, neighbours), recipe, depth=2, max_cells=max_cells, threads=1)
    plan = mechanism.plan(5)
    assert plan.evaluation == ("whole tree" if whole else "lazy")
    scales = dict(zip(plan.levels, plan.scales, strict=True))
    variances = {level: noise_variance(scale) for level, scale in scales.items()}
    rule, blue = RULES[recipe.rule], recipe.inference == "blue" and whole
    for _ in range(60):
        counts = rng.integers(0, 5, 4) + np.array([1, 0, 0, 0])
        script = {level: rng.integers(-6, 7, 1 << level).tolist() for level in scales}
        asked: list = []
        for module in (base, tree, lazy):
            monkeypatch.setattr(module, "law_of", partial(ScriptedLaw, script=script, asked=asked))
        points = np.repeat((np.arange(4) + 0.5) / 4, counts)
        release = mechanism.release(ArraySource(points, width=1, threads=1), Key.fresh())
        total = int(counts.sum()) + (script[0][0] if 0 in scales else 0)
        noisy = {2: counts + script[2]}
        if 1 in scales:
            noisy[1] = counts.reshape(2, 2).sum(axis=1) + script[1]
        expected = distribute(np.full(1, max(1, total)), up_pass(noisy, variances, 2, rule, blue=blue), rule)
        leaves = np.zeros(4, np.int64)
        leaves[release.cells.astype(int)] = release.mass
        assert leaves.tolist() == expected.tolist()
        every = [(level, scale, cell) for level, scale in sorted(scales.items()) for cell in range(1 << level)]
        assert sorted(asked) == every if whole else len(set(asked)) == len(asked) and set(asked) <= set(every)


@pytest.mark.parametrize("rule", list(RULES))
def test_without_inference_the_splits_are_made_node_by_node(rule):
    """What lets the law factorise: a split reads its parent's mass and its own two noisy counts, nothing else."""
    rng, trees = np.random.default_rng(2), 5000
    noisy = {level: rng.integers(-8, 20, trees << level) for level in (1, 2, 3)}
    roots = rng.integers(0, 30, trees)
    whole = distribute(roots, up_pass(dict(noisy), {1: 1.0, 2: 2.0, 3: 3.0}, 3, RULES[rule], blue=False), RULES[rule])
    mass = roots
    for level in (1, 2, 3):
        mass = distribute(mass, up_pass({1: noisy[level]}, {1: 1.0}, 1, RULES[rule], blue=False), RULES[rule])
    assert (whole == mass).all()


@pytest.mark.parametrize(
    "small", [Recipe(inference="none"), EVERY_LEVEL[0], EVERY_LEVEL[2], EVERY_LEVEL_BLUE], ids=name
)
def test_the_laws_equal_brute_force(small):
    """The factorised sums against one sum over all noise of a tiny box, tree by tree through the real code."""
    pair: Pair = ((2, 0, 0, 1), (1, 0, 1, 1))
    levels = (2,) if small.schedule == "sparse" else (1, 2)
    noise = Noise(tuple((level, Fraction(1)) for level in levels), reach=1)
    variances, rule = {level: noise_variance(Fraction(1)) for level in levels}, RULES[small.rule]
    per_level = {2: pair, 1: tuple(parents(counts) for counts in pair)}
    axes = [axis(a, b, Fraction(1), 1) for j in levels for a, b in zip(*per_level[j], strict=True)]
    grid = forest(axes)
    arrays = {2: together(grid[-4:])} | ({1: together(grid[:2])} if 1 in levels else {})
    leaf = distribute(
        np.full(len(grid[0]), 3), up_pass(arrays, variances, 2, rule, blue=small.inference == "blue"), rule
    )
    code = leaf.reshape(-1, 4)[:, :3] @ np.array([16, 4, 1])
    for side in (0, 1):
        flat = tuple(count for j in levels for count in per_level[j][side])
        weight = weights((flat, flat), Fraction(1), axes)[0]
        brute = np.bincount(code, weight)
        law = laws_given_mass(small, noise, pair, (3,))[side][0]
        assert np.allclose(np.sort(law[law > 0]), np.sort(brute[brute > 0]), rtol=1e-12, atol=0)


@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(2), Fraction(131072, 27145), Fraction(8)])
def test_the_enumerated_noise_is_the_noise_that_is_drawn(scale):
    """The thresholds of the sampler are this very law, to the 64 binary digits of its table."""
    law = discrete_laplace(scale)
    assert isinstance(law, DiscreteLaplace)
    assert law.q == 1
    chances = np.diff([t / 2**64 for t in law.high.prefixes])
    z = np.arange(1 - law.reach, law.reach)
    assert np.abs(chances - pmf(scale, z)).max() < 1e-15
    assert abs(root_law(scale, 3, np.arange(1, 600)).sum() - 1) < 1e-12
    assert abs(root_law(scale, 0, np.arange(1, 600)).sum() - 1) < 1e-12


# ------------------------------------------------------------------------------------------------- it holds

# How far to enumerate: the reach in scales, and what may be missing. Few noisy counts can be enumerated far out.
REACH = {"leaves only": (18.0, 1e-6), "factorised": (28.0, 1e-9), "blue": (12.0, 1e-4)}


def reach_of(recipe: Recipe) -> tuple[float, float]:
    if recipe.schedule == "sparse":
        return REACH["leaves only"]
    return REACH["blue" if recipe.inference == "blue" else "factorised"]


@some("dimension", 1, [1, 2])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("recipe", RECIPES, ids=name)
def test_no_output_tells_neighbours_apart_by_more_than_epsilon(recipe, neighbours, dimension):
    epsilon = 3
    reach, missing = reach_of(recipe)
    mechanism = PMM(Box([(0, 1)] * dimension), Privacy(epsilon, neighbours), recipe, depth=2, rows=16)
    noise, worst = noise_of(mechanism, 16, reach), 0.0
    for pair in PAIRS[neighbours]:
        finding = audit(recipe, noise, pair, epsilon)
        assert keeps(finding, epsilon, missing), (pair, finding)
        worst = max(worst, finding.largest)
    assert worst > 0.6 * epsilon  # the inputs are bad ones: the promise is nearly used up


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("rule", list(RULES))
def test_the_papers_mechanism_with_scales_for_the_relation(rule, neighbours, dimension):
    mechanism = PMM.paper(Box([(0, 1)] * dimension), Privacy(1, neighbours), rule=rule, depth=2)
    assert mechanism.recipe == Recipe("every level", "none", rule)
    reach = 28 if neighbours == "replace" else 14
    noise = noise_of(mechanism, 5, reach)
    for pair in PAIRS[neighbours][:3]:
        assert keeps(audit(mechanism.recipe, noise, pair, 1), 1, 1e-5)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_default_at_epsilon_one(neighbours):
    """Wider noise. Under add-remove some totals stand for all: given the total, the laws are compared one by one."""
    noise = noise_of(PMM(Box([(0, 1)]), Privacy(1, neighbours), PLAIN, depth=2), 5, 9)
    pair = PAIRS[neighbours][0]
    finding = audit(PLAIN, noise, pair, 1, masses=None if neighbours == "replace" else (1, 2, 3, 5, 8))
    assert keeps(finding, 1, 1e-3 if neighbours == "replace" else 1)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("rule", ["signed", "uniform"])
def test_depth_three(rule, neighbours):
    mechanism = PMM.paper(Box([(0, 1)]), Privacy(3, neighbours), rule=rule, depth=3)
    noise = noise_of(mechanism, 5, 20)
    if neighbours == "replace":
        finding = audit(mechanism.recipe, noise, ((5, 0, 0, 0, 0, 0, 0, 1), (4, 0, 0, 0, 0, 0, 0, 2)), 3)
    else:
        pair = ((2, 0, 0, 0, 0, 0, 0, 1), (3, 0, 0, 0, 0, 0, 0, 1))
        finding = audit(mechanism.recipe, noise, pair, 3, masses=range(1, 15))
    assert keeps(finding, 3, 1e-6 if neighbours == "replace" else 1e-3)
    assert finding.proved > 1.5


# ------------------------------------------------------------------------------------------------- it can fail


def printed(rule: str, epsilon: int, dimension: int, depth: int = 2) -> Noise:
    """The scales that the paper prints, used as the paper uses them: n rows are kept and one coordinate is replaced.

    sigma_j = S / (epsilon sqrt(Delta_(j-1))) with S summed over all levels, the root included: these are the scales for
    add-remove. The root's share is spent on nothing, since n is public; the two changed cells a level are not counted.
    """
    paper = PMM.paper(Box([(0, 1)] * dimension), Privacy(epsilon, "add-remove"), rule=rule, depth=depth)
    noise = noise_of(paper, 16, 28)
    return Noise(tuple((level, scale) for level, scale in noise.scales if level > 0), noise.reach)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("rule", list(RULES))
def test_the_papers_printed_scales_break_the_promise_under_replace(rule, dimension):
    """The loss tends to 2 epsilon (1 - sqrt(Delta_0) / S): 4/3 for d = 1, sqrt 2 for d = 2, as the data grow."""
    recipe, noise = Recipe("every level", "none", rule), printed(rule, 1, dimension)
    found = {pair: audit(recipe, noise, pair, 1) for pair in BAD_PAIRS}
    assert all(finding.missing < 1e-9 for finding in found.values())
    assert any(breaks(finding, 1, 1.1) for finding in found.values())
    limit = (4 / 3, math.sqrt(2))[dimension - 1]
    assert all(finding.largest < limit + 1e-4 for finding in found.values())  # scales are multiples of 1/65536
    if rule == "proportional":  # it attains the limit
        assert max(finding.proved for finding in found.values()) > limit - 3e-4
    if rule == "uniform" and dimension == 1:
        assert found[(0, 8, 8, 0), (0, 7, 9, 0)].proved == pytest.approx(1.202, abs=5e-4)
    # the same audit passes the same mechanism with scales for the relation, on the same inputs
    right = noise_of(PMM.paper(Box([(0, 1)] * dimension), Privacy(1, "replace"), rule=rule, depth=2), 16, 28)
    assert all(keeps(audit(recipe, right, pair, 1), 1, 1e-9) for pair in BAD_PAIRS)


BAD_PAIRS: list[Pair] = [((16, 0, 0, 0), (15, 0, 0, 1)), ((12, 0, 0, 0), (11, 0, 0, 1)), ((0, 8, 8, 0), (0, 7, 9, 0))]


@pytest.mark.parametrize("recipe", [*EVERY_LEVEL, EVERY_LEVEL_BLUE], ids=name)
@pytest.mark.parametrize("level", [1, 2])
def test_half_a_scale_is_caught(recipe, level):
    reach, _ = reach_of(recipe)
    noise = noise_of(PMM(Box([(0, 1)]), Privacy(3, "replace"), recipe, depth=2), 5, reach)
    broken = noise.change(level, Fraction(1, 2))
    pairs = [((n, 0, 0, 0), (n - 1, 0, 0, 1)) for n in (2, 8)]
    assert all(audit(recipe, noise, pair, 3).largest <= 3 + ROUNDING for pair in pairs)
    assert any(breaks(audit(recipe, broken, pair, 3), 3, 1.05) for pair in pairs)


def test_forgotten_rows_per_person_are_caught():
    recipe = EVERY_LEVEL[0]
    for neighbours, pair in {
        "replace": ((4, 0, 0, 0), (2, 0, 0, 2)),
        "add-remove": ((2, 0, 0, 0), (4, 0, 0, 0)),
    }.items():
        right, wrong = (
            noise_of(PMM(Box([(0, 1)]), Privacy(3, neighbours, rows_per_person=k), recipe, depth=2), 5, 12)
            for k in (2, 1)
        )
        assert keeps(audit(recipe, right, pair, 3), 3, 1e-4)
        assert breaks(audit(recipe, wrong, pair, 3), 3, 1.2)


def test_all_pairs_of_a_tiny_table():
    """Every pair of neighbours with 2 rows in 4 cells, for the default."""
    noise = noise_of(PMM(Box([(0, 1)]), Privacy(3, "replace"), PLAIN, depth=2), 2, 8)
    tables = [counts for counts in product(range(3), repeat=4) if sum(counts) == 2]
    for p, q in product(tables, repeat=2):
        if p < q and sum(map(abs, np.subtract(p, q))) == 2:
            assert audit(PLAIN, noise, (p, q), 3).largest <= 3 + ROUNDING

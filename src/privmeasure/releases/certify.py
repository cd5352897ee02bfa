"""How far the data are from a release, after the fact: a bound from released values and the law of the noise (T4).

Let x be the true counts of the leaves, y the released masses, nu the best linear estimate from the noisy counts when
the total is n. Then nu = x + xi, where xi is a linear image of the noise: its law is known, and quantiles of what
matters about it are simulated. With ||.|| the transport norm of masses at centres,

    W1(data, rows) <= (||xi|| + ||nu - y||) / n + (size of the cells),

and on the tree, with A_j the cells of level j that hold released mass, w_j the drop in diameter,

    W1(data, rows) <= sum_j w_j [sum over A_j of (y - nu)+ + the |A_j| largest xi+] / n + (size of the cells),

since what is missing from A_j is all that can be elsewhere. The two are joined: transport above a level, the tree
below it. Every such bound holds at once, so the smallest is taken. docs/proofs/certificate.md has the proof.

This room is public. The simulated noise is a simulation: nothing that it is added to is private.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Box, Categories, Cells, Domain, Floats, Nullable
from privmeasure.errors import ArgumentError
from privmeasure.estimates.linear import blue_estimates, existing, noise_variance, total_coefficients
from privmeasure.noise.law import GAUSSIAN, LAPLACE, LawName, facts_of
from privmeasure.plans.plan import Plan
from privmeasure.releases.certificate import Certificate
from privmeasure.rounding import ROUNDING, TINY
from privmeasure.transport.cells import Norm, cell_norm, corner_distance, has_closed_form, most_exact

SMALLEST_BETA = 1e-3
"""The least chance of failure that may be asked for: the noise is simulated about 1 / beta times."""
MIN_BETA_SHARE = SMALLEST_BETA * (1 - ROUNDING)
"""The same for a share of beta, which is rounded down."""
DRAWN_SHARE, ROWS_SHARE = 0.05, 0.25
"""The shares of beta for where in their cells rows are drawn, and for a number of rows that is private."""
CHEAP_CELLS = 1 << 10
"""Cells of a grid whose norm takes a few hundredths of a second."""
LARGE_TREE = 1 << 16
FEW_DRAWS, SOME_DRAWS, MANY_DRAWS = 29, 99, 999
"""Of the noise, by the time that one takes."""
LARGE_SAMPLE = 9_999
"""Of a number that is cheap to draw."""
REMEMBERED = 32
"""Laws of noise whose simulation is kept."""


def certify(
    domain: Domain,
    plan: Plan,
    noisy: Mapping[int, NDArray[np.signedinteger[Any]]],
    cells: Cells,
    mass: NDArray[np.int64],
    *,
    placement: Literal["uniform", "centre"],
    beta: float,
    estimated: bool = False,
    quick: bool = False,
) -> Certificate:
    """Return the certificate of one tree: its plan, noisy counts, and the released masses of its deepest cells.

    Under "replace" the number of rows n is public. Under "add-remove" n is unknown: beta is split between an interval
    for n and the noise of the cells. The bound is convex in 1/n, so its ends suffice. Putting the noisy number for n
    would be wrong: what is uncertain is then not added. Where the number of rows of the release was `estimated` from
    all measured levels, the interval follows the law of that estimate. A `quick` certificate needs no flows and as few
    draws as beta allows: it is as sound, and often larger.

    Guarantee:  P(W1(data, rows) > value) <= beta over the noise, the places of the rows in their cells and the
                simulated draws, for data that are not empty
                privacy   reads released values alone
    References: T4 of docs/mathematics.md; docs/proofs/certificate.md
    """
    if isinstance(beta, bool) or not isinstance(beta, int | float) or not MIN_BETA_SHARE <= beta <= 0.5:
        raise ArgumentError(f"beta must be a number from {SMALLEST_BETA} to 0.5, got {beta!r}.")
    tree = _Tree(domain, plan, quick=quick)
    drawn = beta * DRAWN_SHARE if placement == "uniform" and isinstance(domain, Box) else 0.0
    unknown = 0.0 if plan.privacy.rows_are_public else beta * ROWS_SHARE
    share = rounded_down(Fraction(beta) - Fraction(drawn) - Fraction(unknown))
    law = tree.simulated(share)
    low, high = _rows(plan, noisy, domain.size(plan.depth), unknown, tree.exists if estimated else None)
    released = np.zeros(1 << plan.depth)
    released[cells.view(np.int64)] = mass
    total = float(released.sum())
    variants = [tree.bounds(noisy, released * (rows / total), rows, law.limits(share)) for rows in {low, high}]
    worst = {pair: max((variant[pair] for variant in variants), key=sum) for pair in variants[0]}
    sizes = {level: 2 * domain.radius(level) for _, level in worst}
    sizes[plan.depth] = _leaf_size(domain, plan.depth, placement, total, drawn)
    exact_level, level = min(worst, key=lambda pair: sum(worst[pair]) + sizes[pair[1]])
    noise, gap = worst[exact_level, level]
    return Certificate(
        value=min((noise + gap + sizes[level]) * (1 + ROUNDING), domain.diameter(0)),
        beta=float(beta),
        method="exact" if exact_level == level else "exact above tree" if exact_level else "tree",
        noise=noise,
        gap=gap,
        cell=sizes[level],
        level=level,
        exact_level=exact_level,
        rows_low=low,
        rows_high=high,
        draws=len(law.worst),
        diameter=domain.diameter(0),
    )


def rounded_down(exact: Fraction) -> float:
    """Return the largest double that is at most an exact number: shares of beta never sum to more than beta.

    Examples:
        >>> rounded_down(Fraction(1, 3)) <= Fraction(1, 3) < math.nextafter(rounded_down(Fraction(1, 3)), 1)
        True
    """
    nearest = float(exact)
    return nearest if nearest <= exact else math.nextafter(nearest, -math.inf)


def _leaf_size(domain: Domain, level: int, placement: str, rows: float, beta: float) -> float:
    """Return how far the points of the leaves are from one another, on average over the rows.

    A row of the data is at most a radius from the centre of its cell, and so is a released row. The cells of a box are
    translates of one another, so there a row that is drawn uniformly is on average no farther from a row of the data
    than a corner is, and the mean over all rows exceeds that by little (Hoeffding), but for a chance beta.
    """
    if placement == "centre":
        return domain.radius(level)
    widest = 2 * domain.radius(level)
    if not isinstance(domain, Box):
        return widest
    mean = corner_distance(domain, level)
    return min(widest, mean + domain.diameter(level) * math.sqrt(math.log(1 / beta) / (2 * rows)))


def _rows(
    plan: Plan,
    noisy: Mapping[int, NDArray[np.signedinteger[Any]]],
    leaves: int,
    beta: float,
    exists: Sequence[Bools] | None = None,
) -> tuple[int, int]:
    """Return an interval for the number of rows that misses it with a chance of at most beta; at least 1.

    The noisy number is the best linear estimate from all levels where `exists` says which cells there are; else level
    0, or, where that was not measured, the sum of the deepest level. Level 0 is kept as
    max(1, noisy number): where that is 1 the noisy number is at most 1, and the interval still reaches far enough up.
    """
    if plan.privacy.rows_are_public:
        return plan.rows, plan.rows
    if exists is not None:
        number, reach = (
            plan.rows,
            estimate_tail(dict(zip(plan.levels, plan.scales, strict=True)), exists, beta, plan.law),
        )
    elif 0 in plan.levels:
        number, reach = plan.rows, facts_of(plan.law, plan.scales[plan.levels.index(0)]).limit(beta)
    else:
        number = int(noisy[plan.depth].sum(dtype=np.int64))
        facts = facts_of(plan.law, plan.scales[-1])
        sums = facts.simulated(np.random.default_rng(leaves), LARGE_SAMPLE, terms=leaves)
        reach = math.ceil(order_statistic(np.abs(sums).astype(np.float64), beta))
    low = max(1, number - reach)
    return low, max(low, number + reach)


def estimate_tail(scales: Mapping[int, Fraction], exists: Sequence[Bools], share: float, law: LawName = LAPLACE) -> int:
    """Return q with P(|N - n| > q) <= share for the best linear estimate N of the number of rows, rounded.

    Its error is a weighted sum of Lap_Z, whose moments are known, so Chernoff's inequality bounds it: the least q over
    a grid of exponents t, each of which holds. N_Z(0, s^2) has at most the moments of a normal law [CKS20].

    Examples:
        >>> estimate_tail({0: Fraction(64), 1: Fraction(2)}, [np.ones(1, bool), np.ones(2, bool)], 0.0125)
        19
    """
    depth, even = len(exists) - 1, bool(exists[-1].all())
    variances = {level: noise_variance(scale, law) for level, scale in scales.items()}
    terms: list[tuple[float, float, float]] = []  # coefficient, scale, how many noisy counts have it
    for level, weights in total_coefficients(variances, depth, None if even else exists).items():
        values, counts = np.unique(weights[weights > 0], return_counts=True)
        pace = float(1 / scales[level])
        terms += [(w, pace, k) for w, k in zip(values, counts * (1 << level) if even else counts, strict=True)]
    if law == GAUSSIAN:
        square = sum(k * (w / pace) ** 2 for w, pace, k in terms)
        return math.ceil(math.sqrt(2 * square * math.log(2 / share)) + 0.5)
    w, rate, count = (np.array(column, float)[:, np.newaxis] for column in zip(*terms, strict=True))
    t = (rate / w).min() * np.arange(1, 400) / 400
    p = np.exp(-rate)
    moments = 2 * np.log1p(-p) - np.log1p(-p * np.exp(w * t)) - np.log1p(-p * np.exp(-w * t))
    reach = ((count * moments).sum(axis=0) + math.log(2 / share)) / t
    return math.ceil(float(reach.min()) + 0.5)


@dataclass(frozen=True, slots=True)
class _Law:
    """What was simulated: pilot means and spreads of all statistics, and the worst excess of each further draw.

    The pilot only sets the scale in which excesses are compared, so the k-th smallest excess of S draws, k = ceil((S+1)
    (1-beta)), is exceeded by that of the true noise with a chance of at most beta, whatever the pilot was.
    """

    mean: Floats
    spread: Floats
    worst: Floats

    def limits(self, beta: float) -> Floats:
        """Return limits that all statistics of the true noise obey at once, but for a chance beta."""
        return self.mean + order_statistic(self.worst, beta) * self.spread


def order_statistic(draws: Floats, beta: float) -> float:
    """Return the ceil((S+1)(1-beta))-th smallest of S draws: one more draw is larger with a chance of at most beta.

    Examples:
        >>> order_statistic(np.arange(1.0, 20.0), 0.05)
        19.0
    """
    return float(np.sort(draws)[math.ceil((len(draws) + 1) * (1 - beta) - ROUNDING) - 1])


_laws: dict[str, _Law] = {}


def _geometry(domain: Domain) -> Any:
    """Return what distances between cells depend on: where a box lies does not matter, so columns share simulations."""
    if isinstance(domain, Nullable):
        return ["missing", _geometry(domain.domain)]
    return ["box", list(domain.weights)] if type(domain) is Box else domain.to_json()


class _Tree:
    """The cells of a plan and how masses on them are compared: norms at a few levels, sums of largest at all levels."""

    def __init__(self, domain: Domain, plan: Plan, *, quick: bool = False) -> None:
        self.domain, self.depth, self.law, self.quick = domain, plan.depth, plan.law, quick
        scales = zip(plan.levels, plan.scales, strict=True)
        self.laws = {level: facts_of(plan.law, scale) for level, scale in scales if level > 0}
        self.variances = {level: law.variance for level, law in self.laws.items()}
        self.exists: list[Bools] = existing(domain, plan.depth)
        closed = has_closed_form(domain)
        present = domain.domain if isinstance(domain, Nullable) else domain
        self.along = not closed or isinstance(present, Categories)  # on a line the tree adds nothing
        self.drops = [j for j in range(1, self.depth) if domain.diameter(j) < domain.diameter(j - 1)]
        most = most_exact(domain)
        cheap = min(most, CHEAP_CELLS)
        levels = [] if closed or quick else [j for j in self.drops if domain.size(j) <= cheap]
        if self.depth > 0 and (closed or (not quick and domain.size(self.depth) <= most)):
            levels.append(self.depth)
        self.norms: dict[int, Norm] = {level: cell_norm(domain, level) for level in levels}
        self.costly = not closed and bool(levels) and domain.size(levels[-1]) > CHEAP_CELLS

    # --------------------------------------------------------------------------------------- the law of the noise

    def simulated(self, beta: float) -> _Law:
        """Return the simulated law of the noise, from memory where it was asked for before.

        The draws are fixed by the public values that they are for, so that the same release has the same certificate.
        """
        draws, pilot = SOME_DRAWS, 20
        if self.quick:
            draws, pilot = FEW_DRAWS, 20
        elif not self.along:
            draws = max(SOME_DRAWS, min(MANY_DRAWS, 1 << 22 >> self.depth))
        elif self.costly or 1 << self.depth > LARGE_TREE:
            draws, pilot = FEW_DRAWS, 6
        draws = max(draws, math.ceil(1 / beta - ROUNDING) - 1)
        scales = {level: str(law.scale) for level, law in self.laws.items()}
        space = ["quick", _geometry(self.domain)] if self.quick else self.domain.to_json()
        named = [] if self.law == LAPLACE else [self.law]  # the usual law has no name here: certificates stay the same
        text = json.dumps([space, self.depth, scales, [*self.norms], draws, *named])
        name = hashlib.sha256(text.encode()).hexdigest()
        if name not in _laws:
            while len(_laws) >= REMEMBERED:
                _laws.pop(next(iter(_laws)))
            _laws[name] = self._simulate(np.random.default_rng(int(name[:16], 16)), draws, pilot)
        return _laws[name]

    def _simulate(self, rng: np.random.Generator, draws: int, pilot: int) -> _Law:
        statistics = []
        for _ in range(pilot + draws):
            noise = {level: law.simulated(rng, 1 << level) for level, law in self.laws.items()}
            statistics.append(self.statistics(self.leaves(noise, 0.0)))
        first, rest = np.array(statistics[:pilot]), np.array(statistics[pilot:])
        mean = first.mean(axis=0)
        floor = np.maximum(0.02 * mean, 0.05 * self.domain.diameter(0))  # a pilot may not vary at all
        spread = np.maximum(first.std(axis=0), np.maximum(floor, TINY))
        worst = ((rest - mean) / spread).max(axis=1, initial=-math.inf)
        return _Law(mean, spread, np.maximum(worst, -1e300))  # finite where nothing is compared

    def leaves(self, noisy: Mapping[int, NDArray[Any]], rows: float) -> Floats:
        """Return the best linear estimate of the leaves when the total is known."""
        if self.depth == 0:
            return np.full(1, float(rows))
        *_, deepest = blue_estimates({**noisy}, self.variances, self.depth, self.exists, rows)
        return deepest

    def statistics(self, leaves: Floats) -> Floats:
        """Return the norms, then for each level the sums of the 1, 2, 4, ... largest positive masses."""
        levels = self._levels(leaves)
        found = [norm(levels[level]) for level, norm in self.norms.items()]
        for level in range(1, self.depth + 1) if self.along else ():
            largest = np.sort(np.maximum(levels[level], 0.0))[::-1]
            found += np.cumsum(largest)[(1 << np.arange(level + 1)) - 1].tolist()
        return np.array(found)

    def _levels(self, leaves: Floats) -> list[Floats]:
        levels = [leaves]
        for _ in range(self.depth):
            levels.append(levels[-1][0::2] + levels[-1][1::2])
        return levels[::-1]

    # ------------------------------------------------------------------------------------------------- the bounds

    def bounds(
        self, noisy: Mapping[int, NDArray[Any]], released: Floats, rows: int, limits: Floats
    ) -> dict[tuple[int, int], tuple[float, float]]:
        """Return (noise, gap) for each pair (level of exact transport, finest level), if there were so many rows.

        `released` is the released measure, scaled to that number of rows.
        """
        if self.depth == 0:
            return {(0, 0): (0.0, 0.0)}
        estimates, masses = self._levels(self.leaves(noisy, rows)), self._levels(released)
        exact = {
            level: (float(limit), norm(estimates[level] - masses[level]))
            for (level, norm), limit in zip(self.norms.items(), limits, strict=False)
        }
        lost = {}  # by level: how much may be missing from the cells that hold mass
        for level in range(1, self.depth + 1) if self.along else ():
            held = masses[level] > 0
            gap = float(np.maximum(masses[level] - estimates[level], 0.0)[held].sum())
            lost[level] = self._largest(limits, level, int(held.sum())), gap
        finest = [*(self.drops if self.along else ()), self.depth]
        pairs = [(k, leaf) for leaf in finest for k in (0, *exact) if k == leaf or (self.along and k < leaf)]
        return {(k, leaf): self._joined(k, leaf, exact, lost, rows) for k, leaf in pairs}

    def _largest(self, limits: Floats, level: int, count: int) -> float:
        """Return a limit of the sum of the `count` largest positive errors of a level: concave in the count."""
        start = len(self.norms) + level * (level + 1) // 2 - 1
        below = count.bit_length() - 1
        above = min(level, (count - 1).bit_length())
        return float(min(limits[start + above], limits[start + below] * count / (1 << below)))

    def _joined(
        self,
        k: int,
        leaf: int,
        exact: Mapping[int, tuple[float, float]],
        lost: Mapping[int, tuple[float, float]],
        rows: int,
    ) -> tuple[float, float]:
        """Return noise and gap of exact transport at level k (0: none) joined with the tree from there to `leaf`."""
        terms = [(1.0, *exact[k])] if k else []
        if k < leaf:
            widths = [centres_diameter(self.domain, level, leaf) for level in range(k, leaf + 1)]
            terms += [(widths[j - k - 1] - widths[j - k], *lost[j]) for j in range(k + 1, leaf + 1)]
            if k and not isinstance(self.domain, Box):  # from the cell's points to its centre may be more than half
                terms.append((max(0.0, 2 * self.domain.radius(k) - widths[0]), *lost[k]))
        return sum(w * noise for w, noise, _ in terms) / rows, sum(w * gap for w, _, gap in terms) / rows


def centres_diameter(domain: Domain, level: int, leaf: int) -> float:
    """Return how far apart the centres of two cells of level `leaf` can be inside one cell of a level, or a bound.

    Examples:
        >>> centres_diameter(Box([(0, 1)]), 1, 2)
        0.25
    """
    if isinstance(domain, Box):
        sides = zip(domain.weights, domain.cuts(level), domain.cuts(leaf), strict=True)
        return max(w * (2.0**-above - 2.0**-below) for w, above, below in sides)
    return domain.diameter(level) if level < leaf else 0.0

"""The theorems as code: upper bounds of the expected W1 distance between the data and the release.

Notation:   sigma_j noise scale of level j    Delta_j sum of the diameters of level j, Delta_-1 = Delta_0
            n rows    r depth    delta leaf diameter    rho largest distance of a point from its representative
            V_j variance of the estimated difference of two siblings of level j
            D diameter    R_j of a box: see `box_cuts`
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from privmeasure.domains import Box, Domain
from privmeasure.estimates.acceptance import ROW_UNITS, level_of_search, side_of_cut
from privmeasure.estimates.linear import level_variances, noise_variance
from privmeasure.estimates.shrinkage import FEWEST
from privmeasure.noise.law import LAPLACE, LawName, facts_of
from privmeasure.transport.cells import corner_distance

Scales = Mapping[int, Fraction]
"""The noise scale of every measured level."""


def hvz(domain: Domain, scales: Scales, depth: int, rows: int) -> float:
    """Return the paper's accuracy bound with its own constant: (2 sqrt2 / n) sum_j sigma_j Delta_(j-1) + delta.

    Needs every level measured. With the optimal scales the paper prints sqrt2, where its own bound gives 2 sqrt2.

    References: [HVZ23] Theorem 4.2; [HVZ23] Theorem 4.3, its constant corrected
    """
    noise = sum(float(scale) * domain.total_diameter(max(0, level - 1)) for level, scale in scales.items())
    return 2 * math.sqrt(2) * noise / rows + domain.diameter(depth)


def t1(domain: Domain, scales: Scales, rows: int, rho: float, *, law: LawName = LAPLACE) -> float:
    """Return T1: (1/n) [sigma_0 Delta_0 + (3/2) sum_(j>=1) sigma_j Delta_(j-1)] + rho, for any comparable rule.

    Needs every level measured and no inference. E max(|l0|, |l1|) <= (3/2) sigma for two independent Lap_Z(sigma); for
    Gaussian noise it is 2 / sqrt(pi), and E|l| <= sqrt(2/pi) sigma.

    References: T1 of docs/mathematics.md, sharpening [HVZ23] Theorem 4.2
    """
    root = facts_of(law, scales[0]).size * domain.diameter(0) if 0 in scales else 0.0
    noise = sum(float(scale) * domain.total_diameter(level - 1) for level, scale in scales.items() if level > 0)
    return (root + facts_of(law, Fraction(1)).larger * noise) / rows + rho


def t3(
    domain: Domain,
    scales: Scales,
    depth: int,
    rows: int,
    rho: float,
    *,
    estimated: bool = False,
    law: LawName = LAPLACE,
) -> float:
    """Return T3, the bound of the isotonic rule on an interval cut into equal cells.

        (1/n) [sqrt(2/pi) sqrt(sum_j V_j (1 + 2 4^-(r-j+1)) / 12) + sigma_0 / 2 + 1/2] + rho,  in diameters.

    The isotonic projection costs nothing, so this is the distance of the raw best linear estimate. A noisy number of
    rows stretches the distribution function and adds at most half its error.

    References: T3 of docs/mathematics.md
    """
    measured = {level: noise_variance(scale, law) for level, scale in scales.items()}
    noise = 0.0
    if depth > 0:
        variance = level_variances(measured, depth, blue=True)
        levels = range(1, depth + 1)
        noise = math.sqrt(sum(2 * variance[j] * (1 + 2 * 4.0 ** -(depth - j + 1)) / 12 for j in levels))
    total = math.sqrt(2 / math.pi) * noise + total_error(scales, depth, estimated=estimated, law=law) / 2 + 0.5
    return domain.diameter(0) * total / rows + rho


def t2(
    domain: Domain,
    scales: Scales,
    depth: int,
    rows: int,
    rho: float,
    *,
    blue: bool,
    estimated: bool = False,
    coarser: bool = True,
    law: LawName = LAPLACE,
) -> float:
    """Return T2: (1/n) [sigma_0 Delta_0 + sum_(j>=1) Delta_(j-1) (E_j + 1) / 2] + rho, for the signed rule.

    E_j bounds the expected error of the difference of two siblings: sqrt(2/pi) sqrt(V_j) for any sum of noise, and
    (3/2) sigma_j for two single noisy counts. The 1 is the rounding to integers. In trees with structural zeros the
    variances of the even tree are upper bounds. A number of rows that is `estimated` from all levels has the error of
    that estimate in the place of sigma_0. The sum may end at any `coarser` level, with the diameter of its cells for
    rho: the least of all is returned.

    References: T2 of docs/mathematics.md
    """
    measured = {level: noise_variance(scale, law) for level, scale in scales.items()}
    total = total_error(scales, depth, estimated=estimated, law=law) * domain.diameter(0)
    least = math.inf
    if depth > 0:
        variance = level_variances(measured, depth, blue=blue)
        for level in range(1, depth + 1):
            if coarser:
                least = min(least, total / rows + domain.diameter(level - 1))
            error = math.sqrt(2 / math.pi * 2 * variance[level])
            if not blue and level in scales:
                error = min(error, facts_of(law, scales[level]).larger)
            total += domain.total_diameter(level - 1) * (error + 1) / 2
    return min(least, total / rows + rho)


def t6(
    domain: Domain,
    scales: Scales,
    depth: int,
    rows: int,
    rho: float,
    *,
    estimated: bool = True,
    law: LawName = LAPLACE,
) -> float:
    """Return T6, the bound of shrunk differences: T2 with factors on the noise of its levels.

        (1/n) [E|N - n| D + sum_(j>=1) (Delta_(j-1) + K_j phi_j sqrt(2/pi) sqrt(V_j)) / 2] + rho

    K_j is the number of cells of level j - 1 times their largest diameter. phi_j is 1 where nothing is shrunk, else
    1 + sqrt(pi/2), which holds whatever the groups and the forecasts are. N is `estimated` from all levels, or that of
    level 0 alone. Of a release that may give way to the closest measure T6 says nothing.

    References: T6 of docs/mathematics.md
    """
    total = total_error(scales, depth, estimated=estimated, law=law) * domain.diameter(0)
    measured = {level: noise_variance(scale, law) for level, scale in scales.items()}
    if depth > 0:
        variance = level_variances(measured, depth, blue=True)
        for level in range(1, depth + 1):
            parents, error = domain.size(level - 1), math.sqrt(2 / math.pi * 2 * variance[level])
            if parents < FEWEST:
                total += domain.total_diameter(level - 1) * (error + 1) / 2
                continue
            moved = parents * domain.diameter(level - 1) * ANY_GROUPS * error
            total += (domain.total_diameter(level - 1) + moved) / 2
    return total / rows + rho


ANY_GROUPS = 1 + math.sqrt(math.pi / 2)
"""What shrinkage may do to the noise of T2, whatever the groups and the forecasts are."""


def total_error(scales: Scales, depth: int, *, estimated: bool, law: LawName = LAPLACE) -> float:
    """Return a bound of E|N - n| for a noisy number of rows: 0 if it is public.

    That of level 0 alone, sigma_0, or, for the best linear estimate from all levels, sqrt(2/pi) of its deviation; and
    1/2 for rounding it.
    """
    if 0 not in scales:
        return 0.0
    if not estimated or depth == 0:
        return facts_of(law, scales[0]).size
    measured = {level: noise_variance(scale, law) for level, scale in scales.items()}
    return math.sqrt(2 / math.pi * level_variances(measured, depth, blue=True)[0]) + 0.5


def t5(
    domain: Box,
    scales: Scales,
    depth: int,
    rows: int,
    *,
    blue: bool,
    estimated: bool = False,
    law: LawName = LAPLACE,
) -> float:
    """Return T5: (1/n) [sqrt(sum_j V_j R_j^2 / 12) + sigma_0 D] + s, for the raw estimate spread over its cells.

    It bounds the expected d_BL between the data and the signed measure that the estimates are before they are made
    consistent, the mass of each leaf spread evenly over its cell; s is the mean distance from a corner of a leaf to
    its points. Levels add in quadrature, so it is below T2, most on a line. It is not a bound of a release: the signed
    rule is no nearest-point projection, and for masses at centres the statement is false.

    References: T5 of docs/mathematics.md
    """
    root = total_error(scales, depth, estimated=estimated, law=law) * domain.diameter(0)
    norm = spread_norm(domain, difference_variances(scales, depth, blue=blue, law=law), depth)
    return (norm + root) / rows + corner_distance(domain, depth)


def difference_variances(scales: Scales, depth: int, *, blue: bool, law: LawName = LAPLACE) -> list[float]:
    """Return V_j = 2 C_j of the levels 1, ..., depth of an even tree, and 0 for level 0, which is known or apart."""
    if depth == 0:
        return [0.0]
    measured = {level: noise_variance(scale, law) for level, scale in scales.items()}
    return [0.0] + [2 * variance for variance in level_variances(measured, depth, blue=blue)[1:]]


@lru_cache(maxsize=256)  # plans ask for the same cuts again and again
def box_cuts(domain: Box, depth: int) -> tuple[tuple[int, int, float, int], ...]:
    """Return each level j with the axis that it cuts, R_j, and how often the axis is cut from j on.

    R_j is the volume of the box over the area of the cut, both in units of the metric: a unit of mass that crosses the
    cuts of level j, spread evenly, is a flow of density R_j over a unit of length. R_j = w 2^(cuts of other axes).

    Examples:
        >>> box_cuts(Box([(0, 1), (0, 1)]), 3)
        ((1, 0, 1.0, 2), (2, 1, 2.0, 1), (3, 0, 2.0, 1))
    """
    last, found = domain.cuts(depth), []
    for level in range(1, depth + 1):
        before, after = domain.cuts(level - 1), domain.cuts(level)
        axis = next(i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a < b)
        found.append((level, axis, domain.weights[axis] * 2.0 ** (level - 1 - before[axis]), last[axis] - before[axis]))
    return tuple(found)


def spread_norm(domain: Box, variance: Sequence[float], depth: int) -> float:
    """Return a bound of E||xi||_BL for an error xi of total 0, its leaf masses spread evenly: T5's noise term."""
    square = sum(variance[level] * r * r / 12 for level, _, r, _ in box_cuts(domain, depth))
    return flow_constant(domain.width) * math.sqrt(square)


def flow_constant(width: int) -> float:
    """Return c with E max_a |F_a| <= c sqrt(sum_a var F_a), for a flow whose components are sums of the noise.

    A sum X has E|X| <= sqrt(2/pi) sd(X). In two dimensions max(|a|, |b|) = (|a + b| + |a - b|) / 2, so the constant is
    the same. In more, |F|_2 is the mean of |u F| over all directions u, divided by k = E|u_1|: c = sqrt(2/(pi d)) / k.

    Examples:
        >>> [round(flow_constant(d), 3) for d in (1, 2, 3, 10)]
        [0.798, 0.798, 0.921, 0.975]
    """
    if width <= 2:
        return math.sqrt(2 / math.pi)
    k = math.gamma(width / 2) / (math.sqrt(math.pi) * math.gamma((width + 1) / 2))
    return math.sqrt(2 / (math.pi * width)) / k


def centre_norm(domain: Box, variance: Sequence[float], depth: int) -> float:
    """Return a bound of E||xi||_BL for an error xi of total 0, its leaf masses at the centres of the cells.

        sqrt(2/pi) sum over axes of sqrt( sum over the levels j that cut it of V_j R_j^2 (1 + 2 4^-c_j) / 12 )

    with c_j the cuts of the axis from j on: flows go from centre to centre, along one axis at a time. On a line it is
    the noise term of T3.
    """
    squares = [0.0] * domain.width
    for level, axis, r, cuts in box_cuts(domain, depth):
        squares[axis] += variance[level] * r * r * (1 + 2 * 4.0**-cuts) / 12
    return math.sqrt(2 / math.pi) * sum(map(math.sqrt, squares))


def weak_norm(domain: Box, variance: Sequence[float], depth: int) -> float:
    """Return a bound of the largest standard deviation of the integral of any 1-Lipschitz function against xi.

    The means of such a function over two siblings differ by at most half the side that was cut, so a component e of
    level j adds at most side^2 V_j / 16, and there are 2^(j-1) of them, uncorrelated.
    """
    levels = range(1, depth + 1)
    return math.sqrt(sum(2.0 ** (j - 1) * variance[j] * side_of_cut(domain, j) ** 2 / 16 for j in levels))


@dataclass(frozen=True, slots=True)
class Kept:
    """T7 for one tree: how far from the raw estimate a release is kept, in rows times distance, and the guarantee.

    The cells of a `level` are compared. Which level it is was chosen for a number of rows, before the noise;
    `replace(kept, rows=...)` states the same at another number.
    """

    allowed: float
    noise: float
    size: float
    rows: int
    level: int

    @property
    def guarantee(self) -> float:
        """The bound: what the noise may cost, and the size of the cells that are compared."""
        return self.noise / self.rows + self.size


def t7(domain: Box, scales: Scales, anchor: int, rows: int, *, estimated: bool = True, law: LawName = LAPLACE) -> Kept:
    """Return T7: a release within `allowed` of the raw estimate is kept, else the closest measure takes its place.

        (1/n) [m + A + w / sqrt2 + t / 2 + s] + delta,   A = m + R + s

    All on the cells of a level L, delta being their diameter: m and w bound the mean and the weak deviation of the
    noise at their centres; R is what rounding to whole rows costs; s the error of the total, times the mean distance
    from a corner of the box, t its deviation. Of the levels up to the `anchor` the one with the least bound is taken.
    The levels below the anchor are left out of account: they make the estimates better, and where in the cells of L
    rows lie costs delta at most. A total that is not `estimated` from all levels has the noise of level 0.

    References: T7 of docs/mathematics.md; docs/proofs/accuracy.md
    """
    return _t7(domain, tuple(sorted(scales.items())), anchor, rows, estimated, law)


@lru_cache(maxsize=128)
def _t7(
    domain: Box,
    measured_scales: tuple[tuple[int, Fraction], ...],
    anchor: int,
    rows: int,
    estimated: bool,
    law: LawName,
) -> Kept:
    noise = {level: facts_of(law, scale) for level, scale in measured_scales}
    measured = {level: facts.variance for level, facts in noise.items() if level <= anchor}
    corner = corner_distance(domain, 0)
    error = deviation = 0.0
    if 0 in measured:
        deviation = math.sqrt(level_variances(measured, anchor, blue=True)[0] if estimated else measured[0])
        error = math.sqrt(2 / math.pi) * deviation + 0.5
    if anchor == 0:  # a row, and one that is drawn anywhere
        return Kept(0.0, error * corner, corner, rows, 0)
    variance = [0.0] + [2 * value for value in level_variances(measured, anchor, blue=True)[1:]]
    # convex order carries the law of a maximum from whole numbers to real ones, whose variance is a little larger
    wider = math.sqrt(max(facts.real_variance / facts.variance for level, facts in noise.items() if level > 0))
    steadiness = facts_of(law, Fraction(1)).steadiness
    finest = level_of_search(domain, anchor)
    levels = [j for j in range(1, finest) if domain.diameter(j) < domain.diameter(j - 1)] + [finest]
    if finest < anchor:
        levels.append(anchor)
    found = [_kept_on(domain, variance, j, rows, (wider, steadiness), error, deviation) for j in levels]
    return min(found, key=lambda kept: kept.guarantee)


def _kept_on(
    domain: Box,
    variance: Sequence[float],
    level: int,
    rows: int,
    real: tuple[float, float],
    error: float,
    deviation: float,
) -> Kept:
    """Return T7 on the cells of a level; `real` noise is so many times wider than that of whole numbers, and so steady.

    On a level that is finer than the one of the search, differences split the cells of that one: T2's sum over the
    levels between joins A, half its deviation the bound, and the noise of these levels counts one by one.
    """
    (wider, steadiness), search, corner = real, level_of_search(domain, level), corner_distance(domain, 0)
    below = range(search + 1, level + 1)
    mean, weak = centre_norm(domain, variance, search), wider * weak_norm(domain, variance, search)
    rounding = (1 + 2 / ROW_UNITS) * (2.0**search - 1) * domain.diameter(search) / 2
    errors = {j: 2.0 ** (j - 1) * math.sqrt(2 / math.pi * variance[j]) for j in below}
    split = sum(domain.diameter(j - 1) * (errors[j] + 2.0 ** (j - 1)) / 2 for j in below)
    spread = sum(domain.diameter(j - 1) / 2 * math.sqrt(2.0 ** (j - 1) * variance[j]) for j in below)
    astray = corner + sum(domain.diameter(j - 1) / 2 for j in below)  # what a row too many costs in the fallback
    noise = mean + sum(side_of_cut(domain, j) / 4 * errors[j] for j in below)
    allowed = wider * mean + rounding + error * astray + split
    value = noise + allowed + weak / steadiness + (spread + deviation * astray) / 2 + error * corner
    return Kept(allowed, value, domain.diameter(level), rows, level)


def flat(
    domain: Domain,
    scales: Scales,
    level: int,
    rows: int,
    rho: float,
    *,
    exact_total: bool,
    law: LawName = LAPLACE,
) -> float:
    """Return the bound of PSMM: (2/n) E||xi|| + rho, the norm of the noise xi bounded along axes or the tree.

    The truth is among the measures that are searched, so the closest one is at most twice as far from it as the noisy
    histogram is. With T the sum of the noise, v its variance in a cell and m cells,

        E||xi|| <= N + (D/2) E|T|,    E|T| <= sqrt(2/pi) sqrt(m v),
        N = sqrt(2/pi) sum_(j>=1) Delta_(j-1) sqrt(2 2^(r-j) v) / 2,   or, on a box, `centre_norm` if that is less.

    Functions with values in [-D/2, D/2] tell measures of equal totals apart, hence D/2. A total that is noisy itself
    adds D/2 of its error to the norm.

    References: [HVZ23] Theorem 3.6, with the bound of docs/mathematics.md
    """
    if level == 0:
        return rho  # one cell: nothing can be in a wrong one
    v, constant, half = noise_variance(scales[level], law), math.sqrt(2 / math.pi), domain.diameter(0) / 2
    variance = [2 * 2.0 ** (level - j) * v for j in range(level + 1)]
    norm = constant * sum(domain.total_diameter(j - 1) * math.sqrt(variance[j]) / 2 for j in range(1, level + 1))
    if isinstance(domain, Box):
        norm = min(norm, centre_norm(domain, variance, level))
    total = constant * math.sqrt(domain.size(level) * v)
    norm += half * total
    if not exact_total:
        norm += half * (facts_of(law, scales[0]).size if 0 in scales else total)
    return 2 * norm / rows + rho

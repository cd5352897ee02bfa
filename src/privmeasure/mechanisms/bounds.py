"""The theorems as code: upper bounds of the expected W1 distance between the data and the release.

Notation:   sigma_j noise scale of level j    Delta_j sum of the diameters of level j, Delta_-1 = Delta_0
            n rows    r depth    delta leaf diameter    rho largest distance of a point from its representative
            V_j variance of the estimated difference of two siblings of level j
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from privmeasure.domains import Domain
from privmeasure.mechanisms.inference import level_variances

Scales = Mapping[int, Fraction]
"""The noise scale of every measured level."""


def noise_variance(scale: Fraction) -> float:
    """Return the variance of Lap_Z(scale): 2p / (1-p)^2 with p = exp(-1/scale).

    Examples:
        >>> round(noise_variance(Fraction(1)), 4)
        1.8413
    """
    x = float(1 / scale)
    if x < 1e-150:
        return math.inf
    return 2 * math.exp(-x) / math.expm1(-x) ** 2


def hvz(domain: Domain, scales: Scales, depth: int, rows: int) -> float:
    """Return the paper's accuracy bound with its own constant: (2 sqrt2 / n) sum_j sigma_j Delta_(j-1) + delta.

    Needs every level measured. The paper's optimised form prints sqrt2 where its proof gives 2 sqrt2.

    References: [HVZ23] accuracy theorem and its optimised form, constant corrected
    """
    noise = sum(float(scale) * domain.total_diameter(max(0, level - 1)) for level, scale in scales.items())
    return 2 * math.sqrt(2) * noise / rows + domain.diameter(depth)


def t1(domain: Domain, scales: Scales, rows: int, rho: float) -> float:
    """Return T1: (1/n) [sigma_0 Delta_0 + (3/2) sum_(j>=1) sigma_j Delta_(j-1)] + rho, for any comparable rule.

    Needs every level measured and no inference. E max(|l0|, |l1|) <= (3/2) sigma for two independent Lap_Z(sigma).

    References: T1 of docs/mathematics.md, sharpening [HVZ23]
    """
    root = float(scales.get(0, 0)) * domain.diameter(0)
    noise = sum(float(scale) * domain.total_diameter(level - 1) for level, scale in scales.items() if level > 0)
    return (root + 1.5 * noise) / rows + rho


def t3(domain: Domain, scales: Scales, depth: int, rows: int, rho: float) -> float:
    """Return T3, the bound of the isotonic rule on an interval cut into equal cells.

        (1/n) [sqrt(2/pi) sqrt(sum_j V_j (1 + 2 4^-(r-j+1)) / 12) + sigma_0 / 2 + 1/2] + rho,  in diameters.

    The isotonic projection costs nothing, so this is the distance of the raw best linear estimate. A noisy number of
    rows stretches the distribution function and adds at most half its error.

    References: T3 of docs/mathematics.md
    """
    measured = {level: noise_variance(scale) for level, scale in scales.items()}
    noise = 0.0
    if depth > 0:
        variance = level_variances(measured, depth, blue=True)
        levels = range(1, depth + 1)
        noise = math.sqrt(sum(2 * variance[j] * (1 + 2 * 4.0 ** -(depth - j + 1)) / 12 for j in levels))
    total = math.sqrt(2 / math.pi) * noise + float(scales.get(0, 0)) / 2 + 0.5
    return domain.diameter(0) * total / rows + rho


def t2(domain: Domain, scales: Scales, depth: int, rows: int, rho: float, *, blue: bool) -> float:
    """Return T2: (1/n) [sigma_0 Delta_0 + sum_(j>=1) Delta_(j-1) (E_j + 1) / 2] + rho, for the signed rule.

    E_j bounds the expected error of the difference of two siblings: sqrt(2/pi) sqrt(V_j) for any sum of noise, and
    (3/2) sigma_j for two single noisy counts. The 1 is the rounding to integers. In trees with structural zeros the
    variances of the even tree are upper bounds.

    References: T2 of docs/mathematics.md
    """
    measured = {level: noise_variance(scale) for level, scale in scales.items()}
    total = float(scales.get(0, 0)) * domain.diameter(0)
    if depth > 0:
        variance = level_variances(measured, depth, blue=blue)
        for level in range(1, depth + 1):
            error = math.sqrt(2 / math.pi * 2 * variance[level])
            if not blue and level in scales:
                error = min(error, 1.5 * float(scales[level]))
            total += domain.total_diameter(level - 1) * (error + 1) / 2
    return total / rows + rho


def flat(domain: Domain, scales: Scales, level: int, rows: int, rho: float, *, exact_total: bool) -> float:
    """Return the bound of PSMM: (2/n) E||xi||_BL + rho, the norm of the noise xi bounded along the tree of cells.

    The truth is among the measures that are searched, so the closest one is at most twice as far from it as the noisy
    histogram is. Sending noise from child to child, level by level, and making up for its sum costs at most

        E||xi||_BL <= sqrt(2/pi) [ sum_(j>=1) Delta_(j-1) sqrt(2 2^(r-j) v) / 2 + D sqrt(2^r v) ].

    A total that is noisy itself adds twice its error.

    References: [HVZ23] accuracy of Algorithm 1, with the bound of docs/mathematics.md
    """
    if level not in scales:
        return rho
    v, constant, diameter = noise_variance(scales[level]), math.sqrt(2 / math.pi), domain.diameter(0)
    tree = sum(domain.total_diameter(j - 1) * math.sqrt(2 * 2.0 ** (level - j) * v) / 2 for j in range(1, level + 1))
    total = diameter * math.sqrt(domain.size(level) * v)
    error = 2 * constant * (tree + total)
    if not exact_total:
        error += 2 * (diameter * float(scales[0]) if 0 in scales and level > 0 else constant * total)
    return error / rows + rho

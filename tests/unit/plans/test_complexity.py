"""The Laplacian complexity: simulated, between its lower bound and the entropy bound."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privmeasure.domains import Finite
from privmeasure.errors import ArgumentError
from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import LAPLACE
from privmeasure.plans.complexity import discrete_norms, entropy_bound, laplacian_complexity, lower_bound
from privmeasure.transport import Grid, Line, bounded_lipschitz


def grid(dimension, side):
    return Grid((side,) * dimension, (1 / side,) * dimension)


SPACES = {
    "line": Line(tuple((np.arange(64) + 0.5) / 64)),
    "d = 1": grid(1, 256),
    "d = 2": grid(2, 16),
    "d = 3": grid(3, 6),
    "d = 4": grid(4, 4),
    "uneven": Grid((16, 8), (1 / 16, 1 / 8)),
    "points": Finite.from_points(np.random.default_rng(0).random((60, 2))),
    "equally far": Finite(1.0 - np.eye(30)),
}


@pytest.mark.parametrize("name", SPACES)
def test_it_lies_between_its_bounds(name):
    """4 standard errors of room at each side: false alarms are rarer than one in 10,000."""
    space = SPACES[name]
    value, error = laplacian_complexity(space, draws=25, seed=1)
    assert lower_bound(space) <= value + 4 * error
    assert value - 4 * error <= entropy_bound(space)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_lower_bound_of_a_grid(dimension):
    """n^(-1/d) / 2: without the 1/d of the paper's corollary."""
    side = {1: 64, 2: 8, 3: 4}[dimension]
    assert lower_bound(grid(dimension, side)) == pytest.approx((side**dimension) ** (-1 / dimension) / 2)


def test_the_rate_has_no_factor_one_over_d():
    """On 2^d points of the cube's corners the complexity stays above 1/4 in every dimension."""
    for dimension in (2, 4, 6):
        value, error = laplacian_complexity(grid(dimension, 2), draws=20, seed=1)
        assert value - 4 * error > 0.2
        assert value * 2 > 0.4  # value / n^(-1/d), where C / d would have to fall


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1)])
def test_discrete_noise_is_below_continuous_noise(scale):
    """In convex order, by the coupling of floors: Lap_Z is the conditional mean of Lap. 4 standard errors apart."""
    space, rng, gaps = Line(tuple(np.linspace(0, 1, 12))), np.random.default_rng(2), []
    for _ in range(1500):
        first, second = rng.exponential(float(scale), (2, 12))
        whole = (np.floor(first) - np.floor(second)).astype(np.int64)
        zero = np.zeros(12)
        gaps.append(bounded_lipschitz(first - second, zero, space) - bounded_lipschitz(whole, zero, space))
    assert np.mean(gaps) > 4 * np.std(gaps, ddof=1) / math.sqrt(len(gaps))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(10)])
@pytest.mark.parametrize("name", ["d = 1", "d = 2", "d = 3", "points"])
def test_so_is_the_noise_that_is_drawn(name, scale):
    discrete, error = laplacian_complexity(SPACES[name], scale=scale, draws=25, seed=1)
    smooth, other = laplacian_complexity(SPACES[name], draws=25, seed=1)
    assert discrete <= smooth + 4 * math.hypot(error, other)


def test_discrete_noise_does_not_scale():
    """epsilon E|Lap_Z(1/epsilon)| = 0.998 at 0.1 and 0.851 at 1: the identity of the paper fails, the bound holds."""
    two = Line((0.0, 1.0))
    values = {}
    for scale in (1, 10):
        norms, totals = discrete_norms(two, law_of(LAPLACE, Fraction(scale)), 4000, Key.insecure(1))
        assert (norms >= np.abs(totals)).all()
        values[scale] = norms.mean() / scale
    assert values[1] < values[10] * 0.93


def test_one_point_and_two():
    assert laplacian_complexity([[0.3, 0.2]], draws=5)[0] == 0.0 == entropy_bound(Line((1.0,)))
    value, error = laplacian_complexity([[0.0], [2.0]], draws=2000, seed=1)
    # equal signs: D |a + b|, else D max(|a|, |b|) : E = 2 (1/2 * 2 + 1/2 * 3/2) / 2
    assert value == pytest.approx(1.75, abs=4 * error)


def test_the_entropy_bound_has_the_right_order():
    """n^(-1/2), n^(-1/2) log n, n^(-1/d): from 2^12 to 2^24 points."""
    for dimension, slope in ((1, -0.5), (3, -1 / 3), (4, -1 / 4)):
        small, large = (entropy_bound(_FakeGrid(dimension, 2 ** (exponent // dimension))) for exponent in (12, 24))
        assert math.log2(large / small) / 12 == pytest.approx(slope, abs=0.06)
    small, large = (entropy_bound(_FakeGrid(2, 2 ** (exponent // 2))) for exponent in (12, 24))
    assert large / small < 2**-6 * 2.5


class _FakeGrid(Grid):
    """A grid of any size: only its shape is used."""

    def __init__(self, dimension, side):
        object.__setattr__(self, "shape", (side,) * dimension)
        object.__setattr__(self, "sides", (1 / side,) * dimension)


@pytest.mark.parametrize("draws", [0, 1, 2.5, True])
def test_wrong_numbers_of_draws(draws):
    with pytest.raises(ArgumentError, match="draws"):
        laplacian_complexity(Line((0.0, 1.0)), draws=draws)

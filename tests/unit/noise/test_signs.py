"""Noise for rows of signs: its law, its rounding, and the lemma that it rests on, in numbers.

Statistical tests have a false-alarm rate of 1e-6.
"""

from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from scipy import signal, stats

from depth import some
from privmeasure.errors import ArgumentError
from privmeasure.noise import signs
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import GAUSSIAN, LAPLACE, agreement_variance
from privmeasure.noise.normal import UNIT, WORD
from privmeasure.noise.signs import ANYTHING, PLACES, RandomCorrelations, sign_noise

ALARM = 1e-6


def matrix(columns: int, entries: np.ndarray) -> np.ndarray:
    full = np.zeros((*entries.shape[:-1], columns, columns))
    first, second = np.triu_indices(columns, 1)
    full[..., first, second] = full[..., second, first] = entries
    return full


def drawn(columns: int, scale: Fraction, count: int, level: int = 1) -> np.ndarray:
    """Draws of scale t C."""
    key = Key.insecure(columns)
    found = []
    for part in range(count):
        draw = RandomCorrelations(columns, key, part=part, level=level)
        found.append([(low + high) / 2 / 2**PLACES for low, high in draw.brackets(scale, 1)])
    return np.array(found)


def smallest(columns: int, entries: np.ndarray) -> np.ndarray:
    """The least u with u + Z >= 0, as matrices: what the density falls off by."""
    return -np.linalg.eigvalsh(matrix(columns, entries))[:, 0]


@some("columns", 1, [3, 2, 5, 8])
def test_the_density_falls_off_by_the_smallest_eigenvalue(columns: int) -> None:
    """Z has a density ~ exp(-u(Z) / scale) exactly if u(Z) / scale ~ Gamma(p), and directions are those of a C."""
    scale, p = Fraction(7, 2), comb(columns, 2)
    found = smallest(columns, drawn(columns, scale, 3000)) / float(scale)
    assert stats.kstest(found, stats.gamma(p).cdf).pvalue > ALARM
    rng = np.random.default_rng(columns)
    vectors = rng.normal(size=(20_000, columns, columns))  # one deviate fewer: not all correlations are equally likely
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    first, second = np.triu_indices(columns, 1)
    wrong = (vectors @ vectors.transpose(0, 2, 1))[:, first, second] * rng.gamma(p + 1, size=(20_000, 1))
    assert stats.kstest(smallest(columns, wrong), stats.gamma(p).cdf).pvalue < ALARM


@pytest.mark.deep
def test_two_columns_have_the_difference_of_two_laplace_draws() -> None:
    scale, key = Fraction(100), Key.insecure(9)
    found = np.array([sign_noise(2, scale, key, part=part)[0] for part in range(4000)]) / 100
    grid = np.linspace(-40, 40, 80_001)
    density = (1 + np.abs(grid)) * np.exp(-np.abs(grid)) / 4
    cumulated = np.cumsum(density) * 1e-3
    assert stats.kstest(found, lambda x: np.interp(x, grid, cumulated)).pvalue > ALARM
    assert stats.kstest(found, stats.laplace(scale=np.sqrt(2)).cdf).pvalue < ALARM


@some("columns", 1, [3, 10])
def test_the_variance_is_what_plans_say(columns: int) -> None:
    key, scale, count = Key.insecure(8), Fraction(20), 1500
    found = np.array([sign_noise(columns, scale, key, part=part) for part in range(count)]).astype(float)
    z = np.abs(found.mean(axis=0)) / (found.std(axis=0) / np.sqrt(count))
    assert z.max() < stats.norm.isf(ALARM / found.size)
    squares = (found**2).mean(axis=1) / agreement_variance(comb(columns, 2), scale, LAPLACE)
    assert abs(squares.mean() - 1) < 5 * squares.std() / np.sqrt(count)
    assert agreement_variance(10, scale, GAUSSIAN) == 400
    assert agreement_variance(0, Fraction(0), LAPLACE) == 0


def test_two_draws_share_no_position() -> None:
    """Whole parts and fractions of either draw are at levels of their own: shared words would hardly be seen."""

    class Listed(Key):
        def words(self, *, part, level, cells, attempt=0):
            read.add((part, level))
            return super().words(part=part, level=level, cells=cells, attempt=attempt)

    for level in (1, 3):
        read = set[tuple[int, int]]()
        key = Listed(bytes(32), private=False)
        list(RandomCorrelations(4, key, part=6, level=level).brackets(Fraction(1), 2))
        assert read == {(6, level), (6, level + 1)}
    read = set()
    sign_noise(4, Fraction(1), Listed(bytes(32), private=False), part=6)
    assert read == {(6, level) for level in (1, 2, 3, 4)}


def test_intervals_hold_the_number_and_shrink_around_it() -> None:
    draw = RandomCorrelations(6, Key.insecure(7), part=0, level=1)
    scale = Fraction(12345, 7)
    short, long = list(draw.brackets(scale, 1)), list(draw.brackets(scale, 3))
    assert len(short) == 15
    for (low, high), (inner_low, inner_high) in zip(short, long, strict=True):
        assert low <= inner_low <= inner_high <= high
        assert 0 < high - low < 2 ** (PLACES - 30)
        assert inner_high - inner_low <= 2
    # and it is the number that doubles find, as far as they see
    digits = (draw._deviates.digits(1) / (UNIT << WORD)).astype(float)
    vectors, rest = digits[:42].reshape(6, 7), digits[42:]
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    doubles = float(scale) * (rest**2).sum() / 2 * (vectors @ vectors.T)[np.triu_indices(6, 1)]
    assert np.allclose([low / 2**PLACES for low, _ in short], doubles, rtol=1e-9)


def test_what_so_many_digits_leave_open_is_decided_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two draws that nearly meet a half: a first look must not round what it does not know."""
    asked = []

    class Close:
        def __init__(self, *_, level: int, **__) -> None:
            self.level = level

        def brackets(self, scale, words):
            asked.append(words)
            half, width = 1 << PLACES - 1, 8 >> 2 * (words - 1)
            yield (half - width, half - 1 + (words < 2) * width) if self.level == 1 else (0, 0)

    monkeypatch.setattr(signs, "RandomCorrelations", Close)
    assert sign_noise(2, Fraction(1), Key.insecure(1), part=0).tolist() == [0]
    assert asked == [1, 1, 2, 2]


def test_a_vector_that_may_be_zero_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = RandomCorrelations(2, Key.insecure(1), part=0, level=1)
    monkeypatch.setattr(draw._deviates, "digits", lambda words: np.array([0] * 6 + [1] * 4, object))
    assert list(draw.brackets(Fraction(1), 1)) == [ANYTHING]


def test_a_scale_out_of_reach_is_refused() -> None:
    with pytest.raises(ArgumentError, match="noise scale"):
        sign_noise(3, Fraction(10**7), Key.insecure(1), part=0)


# ------------------------------------------------------------------------------------------------- the lemma


def largest_loss(weights: np.ndarray, width: int) -> float:
    """The largest |log g(Z + V) - log g(Z)| of the difference g of two such draws, V a row of signs, Z within reach."""
    both = np.log(signal.fftconvolve(weights, weights[::-1, ::-1, ::-1], "same"))
    middle = weights.shape[0] // 2
    near = slice(middle - width, middle + width + 1)
    worst = 0.0
    for row in product((1, -1), repeat=3):
        moves = [row[i] * row[j] for i, j in combinations(range(3), 2)]
        shifted = np.roll(both, moves, axis=(0, 1, 2))
        worst = max(worst, float(np.abs(shifted - both)[near, near, near].max()))
    return worst


def test_a_row_of_signs_costs_one_over_the_scale_and_no_less() -> None:
    """Three columns on a grid of whole numbers: the proof of the lemma, summed up instead of integrated."""
    scale, reach = 2.0, 24
    axis = np.arange(-reach, reach + 1)
    entries = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    weights = np.exp(-smallest(3, entries.astype(float)) / scale).reshape((len(axis),) * 3)
    loss = largest_loss(weights, 6)
    assert 0.85 / scale < loss < 1.001 / scale
    sizes = np.abs(entries).sum(axis=1).reshape(weights.shape)
    assert largest_loss(np.exp(-sizes / scale), 6) > 1.5 / scale, "noise of this scale on each by itself is caught"

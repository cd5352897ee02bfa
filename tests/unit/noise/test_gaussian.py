"""The Gaussian noise: certified thresholds, and every rare branch entered by crafted words."""

import time
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from privmeasure.errors import ArgumentError
from privmeasure.noise.entropy import Key
from privmeasure.noise.gaussian import TRY, DiscreteGaussian, discrete_gaussian, reach, thresholds
from privmeasure.noise.law import GaussianFacts, facts_of
from privmeasure.noise.tables import exp_minus, happens
from privmeasure.threads import in_threads
from reference.gaussian import block_cdf
from reference.laplace import binary_floor

ONES = 2**64 - 1
SCALES = [
    Fraction(text) for text in ("1/50", "1/10", "3/7", "1", "22/7", "20", "128", "129", "1000", "12345/7", "1000000")
]
DIVIDED = [Fraction(129), Fraction(1000), Fraction(12345, 7), Fraction(10**6)]
"""Scales that need a quotient and a remainder."""

scales = pytest.mark.parametrize("scale", SCALES, ids=str)
divided = pytest.mark.parametrize("scale", DIVIDED, ids=str)


@lru_cache
def reference(scale: Fraction, bits: int = 64, digits: int = 120) -> list[int]:
    digits += 1500 if scale < Fraction(1, 5) else 0  # P(Z = 1) is about 1e-543 at scale 1/50
    law = discrete_gaussian(scale)
    return [binary_floor(x, bits, digits) for x in block_cdf(scale, law.q, reach(scale / law.q, bits), digits)]


class Script:
    """A key that gives prepared words: for a cell, the two words of an attempt. Others are not to be asked for."""

    def __init__(self, *lists: dict[int, tuple[int, int]]) -> None:
        self.lists, self.read = lists, set()

    def words(self, *, part: int, level: int, cells: np.ndarray, attempt: int = 0) -> np.ndarray:
        self.read |= {(int(cell), attempt) for cell in cells}
        return np.array([self.lists[int(cell)][attempt] for cell in cells], np.uint64).reshape(-1, 2)


def both_ways(law: DiscreteGaussian, words: dict[int, tuple[int, int]]) -> int:
    """The draw that the words mean, by `settle` and by `draw` among ordinary cells; all words must be read."""
    read = set()

    def of(column: int, t: int):
        for attempt in range(t * TRY, (t + 1) * TRY):
            read.add(attempt)
            yield words[attempt][column]

    settled = law.settle(of)
    assert read == set(words), "settled too early"
    ordinary = {0: (word_of(law, 0), 0)}
    key = Script(ordinary, words, ordinary)
    drawn = law.draw(key, part=0, level=0, cells=np.arange(3, dtype=np.uint64))
    assert drawn.tolist() == [0, settled, 0]
    assert {attempt for cell, attempt in key.read if cell == 1} == set(words)
    return settled


def word_of(law: DiscreteGaussian, high: int) -> int:
    """A word in the middle of those that mean a high digit."""
    edges = [0, *law.high.prefixes, 2**64]
    i = high - law.high.first
    assert edges[i + 1] - edges[i] > 2
    return (edges[i] + edges[i + 1]) // 2


# --- certified thresholds


@scales
def test_thresholds_are_the_first_64_digits_of_the_distribution_function(scale):
    law = discrete_gaussian(scale)
    assert law.high.prefixes == reference(scale)
    assert law.high.thresholds.tolist() == law.high.prefixes


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(22, 7), Fraction(520)], ids=str)
@pytest.mark.parametrize("bits", [128, 320])
def test_further_digits_are_certified_too(scale, bits):
    law = discrete_gaussian(scale)
    assert thresholds(scale, law.q, bits) == reference(scale, bits, bits * 302 // 1000 + 60)


@scales
@pytest.mark.parametrize("bits", [64, 128])
def test_what_is_beyond_the_table_has_prefixes_that_never_decide(scale, bits):
    """So a word of zeros or of ones alone, and no other, asks for more digits and for a longer table."""
    law = discrete_gaussian(scale)
    digits = law.high.digits(bits)
    assert digits[0] == 0
    assert digits[-1] == 2**bits - 1
    assert len(digits) == 2 * reach(scale / law.q, bits)


def test_tables_of_a_hundred_scales_are_built_in_two_seconds():
    began = time.process_time()
    for i in range(100):
        DiscreteGaussian(Fraction(130 + 7 * i))
    assert time.process_time() - began < 4  # 1 s on an idle core


@pytest.mark.parametrize("scale", [Fraction(1, 51), Fraction(10**6 + 1)], ids=str)
def test_a_scale_out_of_reach_is_refused(scale):
    with pytest.raises(ArgumentError, match="noise scale"):
        discrete_gaussian(scale)


# --- settle is the definition, draw is its fast form


@scales
def test_draw_agrees_with_settle_on_the_same_key(scale):
    law, key = discrete_gaussian(scale), Key.insecure(11)
    cells = np.arange(3000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)

    def of(i):
        def words(column, t):
            attempt = t * TRY
            while True:
                yield int(key.words(part=3, level=7, cells=cells[i : i + 1], attempt=attempt)[0, column])
                attempt += 1

        return words

    assert law.draw(key, part=3, level=7, cells=cells).tolist() == [law.settle(of(i)) for i in range(len(cells))]


@divided
def test_draw_agrees_with_settle_at_and_around_every_edge_of_acceptance(scale):
    """U just below and above exp(-x), to 32 digits and to more, for many blocks on both sides."""
    law, rng = discrete_gaussian(scale), np.random.default_rng(2)
    lists = []
    for high in (0, 1, 5, 70, 200, -1, -2, -70, -200):
        for low in (0, 1, law.q // 2, law.q - 1):
            value = law.q * high + low
            x = (value**2 - law._nearest(high) ** 2) / law.twice
            edge = exp_minus(x, 96)[0] if x else (1 << 96) - 1
            for u in (edge >> 64) - 1, edge >> 64, (edge >> 64) + 1:
                if 0 <= u < 1 << 32:
                    word = u << 32 | int(rng.integers(0, 1 << 31)) * law.q % (1 << 31) | low
                    again = {t * TRY: (word_of(law, 3), low) for t in (1, 2)}
                    more = {1: (0, (edge & ONES) - 1), 2: (0, 0)}
                    lists.append({0: (word_of(law, high), word)} | more | again)

    def of(words):
        return lambda column, t: (words[attempt][column] for attempt in sorted(words) if attempt >= t * TRY)

    settled = [law.settle(of(words)) for words in lists]
    drawn = law.draw(Script(*lists), part=0, level=0, cells=np.arange(len(lists), dtype=np.uint64))
    assert drawn.tolist() == settled
    assert len(set(settled)) > 15


# --- ties


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(355, 13), Fraction(1000)], ids=str)
@pytest.mark.parametrize("h", [-2, -1, 0, 1])
def test_a_tie_is_decided_by_the_next_words(scale, h):
    """U < P(H <= h) gives h and U > P(H <= h) gives h + 1, however late they differ."""
    law = discrete_gaussian(scale)
    exact = thresholds(scale, law.q, 192)[h + reach(scale / law.q, 192)]
    one, two, three = (exact >> 64 * i & ONES for i in (2, 1, 0))
    for words, value in (
        ([one, two - 1], h),
        ([one, two + 1], h + 1),
        ([one, two, three - 1], h),
        ([one, two, three + 1], h + 1),
    ):
        z = both_ways(law, {i: (word, 0) for i, word in enumerate(words)})
        assert z // law.q == value


def test_zeros_and_ones_alone_reach_the_far_tail():
    """Beyond 9 scales a value has a chance below 2^-64: only words of zeros or ones lead there, and more of them on."""
    law = discrete_gaussian(Fraction(3))
    far = [
        both_ways(law, {i: (word, 0) for i, word in enumerate(words)}) for words in ([0, 2**40], [ONES, ONES - 2**40])
    ]
    assert far[0] < -3 * 9
    assert far[1] > 3 * 9
    deeper = both_ways(law, dict.fromkeys(range(2), (0, 0)) | {2: (2**40, 0)})
    assert deeper < far[0] - 5


def test_a_draw_that_is_not_kept_is_drawn_again_at_a_position_of_its_own():
    law = discrete_gaussian(Fraction(1000))
    ones = (ONES >> 32) << 32 | law.q - 1  # U is nearly 1, R the largest
    zeros = 5
    words = {0: (word_of(law, 100), ones), TRY: (word_of(law, 7), zeros)}
    assert both_ways(law, words) == 7 * law.q + 5
    words = {0: (word_of(law, 100), ones), TRY: (word_of(law, 90), ones), 2 * TRY: (word_of(law, -3), zeros)}
    assert both_ways(law, words) == -3 * law.q + 5


def test_a_tie_of_acceptance_is_decided_by_further_words():
    law = discrete_gaussian(Fraction(1000))
    high, low = 100, law.q - 1
    value = law.q * high + low
    x = (value**2 - (law.q * high) ** 2) / law.twice
    edge = exp_minus(x, 160)[0] + 1
    word, second = (edge >> 128) << 32 | low, edge >> 64 & ONES
    kept = {0: (word_of(law, high), word), 1: (0, second - 1)}
    assert both_ways(law, kept) == value
    lost = {0: (word_of(law, high), word), 1: (0, second + 1), TRY: (word_of(law, 2), 0)}
    assert both_ways(law, lost) == 2 * law.q


@pytest.mark.parametrize("x", ["0", "1/1000", "1/3", "1", "20", "60"])
def test_an_event_happens_where_u_is_below_the_exponential(x):
    x = Fraction(x)
    if x == 0:
        assert happens(x, 2**32 - 1, 32, iter([]))
        return
    exact = exp_minus(x, 192)[0]
    for shift, expected in ((-(2**70), True), (2**70, False)):
        u = exact + shift
        assert happens(x, u >> 160, 32, iter([u >> 96 & ONES, u >> 32 & ONES, (u & 2**32 - 1) << 32])) is expected


# --- positions


def test_noise_depends_on_the_position_alone():
    law, key = discrete_gaussian(Fraction(700)), Key.insecure(5)
    cells = np.arange(200_000, dtype=np.uint64)
    whole = law.draw(key, part=1, level=2, cells=cells)
    order = np.random.default_rng(0).permutation(len(cells))
    np.testing.assert_array_equal(law.draw(key, part=1, level=2, cells=cells[order]), whole[order])
    pieces, drawn = np.array_split(cells, 7), np.empty((7, 0)).tolist()

    def draw(i: int) -> None:
        drawn[i] = law.draw(key, part=1, level=2, cells=pieces[i])

    in_threads(draw, 7, 3)
    np.testing.assert_array_equal(np.concatenate(drawn), whole)
    assert (law.draw(key, part=2, level=2, cells=cells) != whole).mean() > 0.9
    assert (law.draw(key, part=1, level=3, cells=cells) != whole).mean() > 0.9


# --- what is known of it


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(9, 2), Fraction(300)], ids=str)
def test_facts_are_those_of_the_law(scale):
    facts = GaussianFacts(scale)
    values = np.arange(-20 - int(30 * scale), 21 + int(30 * scale))
    weights = np.exp(-(values**2) / (2 * float(scale) ** 2))
    weights /= weights.sum()
    variance = (weights * values**2).sum()
    assert variance <= facts.variance * (1 + 1e-12)
    assert scale < 1 or variance > facts.variance * (1 - 1e-6)
    for size in (0, 1, 2, int(2 * scale) + 1, int(5 * scale)):
        assert facts.tail(size) == pytest.approx(weights[np.abs(values) >= size].sum(), rel=1e-9)
    for share in (0.3, 1e-3, 1e-9):
        assert facts.tail(facts.limit(share) + 1) <= share
        assert facts.limit(share) == 0 or share < facts.tail(facts.limit(share))


def test_a_large_scale_has_a_bound_of_its_tail():
    exact, bound = GaussianFacts(Fraction(4096)), GaussianFacts(Fraction(4097))
    for size in (1, 5000, 20_000):
        assert exact.tail(size) <= bound.tail(size) <= exact.tail(size) * 1.01 + 1e-4


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(3, 2), Fraction(40)], ids=str)
@pytest.mark.parametrize("terms", [1, 9])
def test_simulated_sums_have_the_variance_of_sums(scale, terms):
    facts = facts_of("discrete gaussian", scale)
    drawn = facts.simulated(np.random.default_rng(0), 200_000, terms=terms)
    one = discrete_gaussian(scale).draw(Key.insecure(1), part=0, level=0, cells=np.arange(200_000, dtype=np.uint64))
    assert drawn.var() == pytest.approx(terms * one.var(), rel=0.03)  # 6 standard errors
    assert drawn.dtype == np.int64

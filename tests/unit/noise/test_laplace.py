"""The noise: certified thresholds, a guide that never lies, and every rare branch entered by crafted words."""

import math
from bisect import bisect_left
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest

from privmeasure.errors import ArgumentError, SpentError
from privmeasure.noise import laplace
from privmeasure.noise import tables as certified
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import DiscreteLaplace, discrete_laplace
from privmeasure.noise.tables import GuideTable, certified_floors, exp_minus
from privmeasure.threads import in_threads
from reference.laplace import binary_floor, cdf, pmf, power, share

ONES = 2**64 - 1
WHOLE = [Fraction(n) for n in (1, 20, 100, 128, 520, 1000, 10**6)]
BROKEN = [Fraction(text) for text in ("1/50", "1/10", "3/7", "22/7", "355/13", "8193/64", "12345/7", "1000003/7")]
SCALES = WHOLE + BROKEN
DIVIDED = [Fraction(1000), Fraction(12345, 7), Fraction(10**6)]
"""Scales that need a quotient and a remainder."""

scales = pytest.mark.parametrize("scale", SCALES, ids=str)
divided = pytest.mark.parametrize("scale", DIVIDED, ids=str)


@lru_cache
def high_digits(scale: Fraction, bits: int = 64, digits: int = 120) -> list[int]:
    """H = floor(Z / q), so that P(H <= h) = P(Z <= q h + q - 1)."""
    law = discrete_laplace(scale)
    places = range(-law.reach, law.reach)
    return [binary_floor(cdf(scale, law.q * h + law.q - 1, digits), bits, digits) for h in places]


@lru_cache
def low_digits(scale: Fraction, bits: int = 64, digits: int = 120) -> list[int]:
    """P(R <= r) = P(Z <= r | 0 <= Z < q)."""
    q = discrete_laplace(scale).q
    return [binary_floor(share(scale, 0, r, q - 1, digits), bits, digits) for r in range(q - 1)]


def tables(scale: Fraction) -> list[tuple[GuideTable, list[int]]]:
    law = discrete_laplace(scale)
    found = [(law.high, high_digits(scale))]
    return found if law.low is None else [*found, (law.low, low_digits(scale))]


def split(number: int, count: int) -> list[int]:
    """The words of a number of 64 count bits."""
    return [number >> 64 * (count - 1 - i) & ONES for i in range(count)]


def word_of(table: GuideTable, value: int) -> int:
    """A word in the middle of those that mean a value."""
    edges = [0, *table.prefixes, 2**64]
    i = value - table.first
    assert edges[i + 1] - edges[i] > 2
    return (edges[i] + edges[i + 1]) // 2


class Script:
    """A key that gives prepared words: one list of (high, low) pairs a cell, each pair an attempt, and not one more."""

    def __init__(self, *lists: list[tuple[int, int]]) -> None:
        self.lists = lists

    def words(self, *, part: int, level: int, cells: np.ndarray, attempt: int = 0) -> np.ndarray:
        return np.array([self.lists[int(cell)][attempt] for cell in cells], np.uint64).reshape(-1, 2)


def both_ways(law: DiscreteLaplace, high: list[int], low: list[int] | None = None) -> int:
    """The draw that the words mean, by `settle` and by `draw` among ordinary cells; all words must be read."""
    low = [word_of(law.low, 0) if law.low else 0] if low is None else low
    high_words, low_words = iter(high), iter(low)
    settled = law.settle(high_words, low_words)
    assert list(high_words) == [], "settled too early"
    assert law.low is None or list(low_words) == [], "settled too early"
    attempts = max(len(high), len(low))
    pairs = list(zip(high + [0] * (attempts - len(high)), low + [0] * (attempts - len(low)), strict=True))
    ordinary = [(word_of(law.high, 0), word_of(law.low, 1) if law.low else 0)]
    drawn = law.draw(Script(ordinary, pairs, ordinary), part=0, level=0, cells=np.arange(3, dtype=np.uint64))
    usual = 1 if law.low else 0
    assert drawn.tolist() == [usual, settled, usual]
    return settled


# --- the law itself, as the reference has it


@scales
def test_the_reference_law_adds_up(scale):
    with localcontext() as context:
        context.prec = 120
        assert abs(cdf(scale, 5) - cdf(scale, -4) - sum(pmf(scale, z) for z in range(-3, 6))) < Decimal("1e-110")
        assert abs(cdf(scale, -3) + cdf(scale, 2) - 1) < Decimal("1e-110")
        assert abs(pmf(scale, -1) / pmf(scale, 0) - (Decimal(-1) * scale.denominator / scale.numerator).exp()) < 1e-100


# --- certified thresholds


@scales
def test_thresholds_are_the_first_64_digits_of_the_distribution_function(scale):
    law = discrete_laplace(scale)
    assert law.high.prefixes == high_digits(scale)
    assert law.high.thresholds.dtype == np.uint64
    assert law.high.thresholds.tolist() == law.high.prefixes
    if law.low is None:
        assert law.q == 1
    else:
        assert law.low.prefixes == low_digits(scale)
        assert law.low.thresholds.tolist() == law.low.prefixes


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(22, 7), Fraction(520)], ids=str)
@pytest.mark.parametrize("bits", [128, 320])
def test_further_digits_are_certified_too(scale, bits):
    digits = bits * 302 // 1000 + 60
    law = discrete_laplace(scale)
    assert law.high.digits(bits) == high_digits(scale, bits, digits)
    if law.low is not None:
        assert law.low.digits(bits) == low_digits(scale, bits, digits)


@scales
def test_the_tables_stay_small_and_the_tail_rare(scale):
    law = discrete_laplace(scale)
    assert law.q == 1 or 64 < scale / law.q <= 128
    assert len(law.high.prefixes) == 2 * law.reach <= 4100
    assert Fraction(law.high.prefixes[0], 2**64) < Fraction(1, 10**6)


@pytest.mark.parametrize("work", [64, 128, 777])
@pytest.mark.parametrize("x", ["1/1000000", "1/128", "1/4", "1/3", "1", "50", "7/1000003", "123456789/1000000007"])
def test_exp_minus_encloses_the_exponential_tightly(x, work):
    x = Fraction(x)
    with localcontext() as context:
        context.prec = 320
        exact = Fraction(power(1 / x, 1)) * 2**work
    lower, upper = exp_minus(x, work)
    assert lower <= exact <= upper
    assert upper - lower <= 3


@pytest.mark.parametrize(("x", "floor"), [(1, 2**63), (-1, 2**63 - 1)])
def test_precision_is_raised_until_the_floor_is_certain(x, floor):
    """1/2 + 2^-200 and 1/2 - 2^-200 differ in their first binary digit, and the first precision cannot see it."""
    asked = []

    def intervals(work: int) -> list[tuple[int, int]]:
        asked.append(work)
        value = (Fraction(1, 2) + x * Fraction(1, 2**200)) * 2**work
        return [(value.__floor__() - 1, value.__floor__() + 2)]

    assert certified_floors(intervals, 64) == [floor]
    assert asked == [128, 256]


def test_thresholds_that_fall_are_an_internal_error():
    with pytest.raises(AssertionError, match="cannot fall"):
        certified_floors(lambda work: [(2 << work, 2 << work), (1 << work, 1 << work)], 64)


# --- the guide


@scales
def test_the_guide_agrees_with_a_direct_search_for_every_interesting_word(scale):
    rng = np.random.default_rng(0)
    edges = [w for top in range(1 << 16) for w in (top << 48, (top << 48) + (1 << 48) - 1)]
    for column, (table, thresholds) in enumerate(tables(scale)):
        near = [w for t in thresholds for w in (t - 1, t, t + 1) if 0 <= w <= ONES]
        words = near + edges + rng.integers(0, 2**64, 10_000, np.uint64).tolist()
        pairs = rng.integers(0, 2**64, (len(words), 2), np.uint64)  # the other column must not matter
        pairs[:, column] = words
        values, ties = table.look_up(pairs, column)
        decided = np.ones(len(words), bool)
        decided[ties] = False
        known = set(thresholds)
        assert decided.tolist() == [word not in known for word in words]
        expected = np.array([table.first + bisect_left(thresholds, word) for word in words])
        np.testing.assert_array_equal(values[decided], expected[decided])


def test_the_guide_decides_most_words_alone():
    for scale in SCALES:
        for table, thresholds in tables(scale):
            assert np.count_nonzero(table.guide == certified.AMBIGUOUS) <= len(thresholds)


# --- settle is the definition, draw is its fast form


@scales
def test_draw_agrees_with_settle_on_the_same_key(scale):
    law, key = discrete_laplace(scale), Key.insecure(11)
    cells = np.arange(3000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = [key.words(part=3, level=7, cells=cells, attempt=a).tolist() for a in range(4)]
    settled = [law.settle(*(iter([w[i][c] for w in words]) for c in (0, 1))) for i in range(len(cells))]
    assert law.draw(key, part=3, level=7, cells=cells).tolist() == settled


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(22, 7), Fraction(1000)], ids=str)
def test_draw_agrees_with_settle_at_and_around_thresholds(scale):
    law, rng = discrete_laplace(scale), np.random.default_rng(1)
    lists = []
    for column, (_, thresholds) in enumerate(tables(scale)):
        chosen = thresholds if len(thresholds) < 200 else [*thresholds[::97], thresholds[-1]]
        for word in sorted({w for t in chosen for w in (t - 1, t, t + 1) if 0 <= w <= ONES}):
            pairs = rng.integers(0, 2**64, (12, 2), np.uint64).tolist()
            pairs[0][column] = word
            lists.append(pairs)
    settled = [law.settle(*(iter([pair[c] for pair in pairs]) for c in (0, 1))) for pairs in lists]
    drawn = law.draw(Script(*lists), part=0, level=0, cells=np.arange(len(lists), dtype=np.uint64))
    assert drawn.tolist() == settled


# --- ties: the first 64 digits of U are those of a threshold


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(355, 13), Fraction(1000)], ids=str)
@pytest.mark.parametrize("h", [-2, -1, 0, 1])
def test_a_tie_is_decided_by_the_next_words(scale, h):
    """U < P(H <= h) gives h and U > P(H <= h) gives h + 1, however late they differ."""
    law = discrete_laplace(scale)
    one, two, three = split(binary_floor(cdf(scale, law.q * h + law.q - 1), 192), 3)
    for low, high in ((one - 1, one + 1), (two - 1, two + 1), (three - 1, three + 1)):
        assert 0 <= low < high <= ONES
    for words, value in (
        ([one - 1], h),
        ([one + 1], h + 1),
        ([one, two - 1], h),
        ([one, two + 1], h + 1),
        ([one, 0], h),
        ([one, ONES], h + 1),
        ([one, two, three - 1], h),
        ([one, two, three + 1], h + 1),
    ):
        z = both_ways(law, words)
        assert z // law.q == value


@divided
def test_a_tie_of_the_remainder_is_decided_by_the_next_words(scale):
    law = discrete_laplace(scale)
    for r in (0, law.q - 2) if law.q < 1000 else (law.q // 2,):
        one, two, three = split(binary_floor(share(scale, 0, r, law.q - 1), 192), 3)
        for words, value in (
            ([one - 1], r),
            ([one + 1], r + 1),
            ([one, two - 1], r),
            ([one, two + 1], r + 1),
            ([one, two, three - 1], r),
            ([one, two, three + 1], r + 1),
        ):
            assert both_ways(law, [word_of(law.high, 5)], words) == 5 * law.q + value
            assert both_ways(law, [word_of(law.high, -5)], words) == -5 * law.q + law.q - 1 - value


def test_ties_of_both_digits_at_once_are_decided_separately():
    scale = Fraction(1000)
    law = discrete_laplace(scale)
    high = split(binary_floor(cdf(scale, 8 * 3 + 7), 128), 2)
    low = split(binary_floor(share(scale, 0, 4, 7), 192), 3)
    assert law.q == 8
    assert both_ways(law, [high[0], high[1] + 1], [*low[:2], low[2] - 1]) == 8 * 4 + 4
    assert both_ways(law, [high[0], high[1] - 1], [*low[:2], low[2] + 1]) == 8 * 3 + 5


# --- several thresholds with one prefix: at scale 1/50, P(Z <= -1) is about 2^-72 and P(Z <= -2) about 2^-144


def test_thresholds_that_share_a_prefix_are_told_apart():
    scale = Fraction(1, 50)
    law = discrete_laplace(scale)
    assert law.reach == 2
    assert law.high.prefixes == [0, 0, ONES, ONES]
    left, second_left = split(binary_floor(cdf(scale, -1), 128), 2), split(binary_floor(cdf(scale, -2), 192), 3)
    right, second_right = split(binary_floor(cdf(scale, 0), 128), 2), split(binary_floor(cdf(scale, 1), 192), 3)
    assert left[0] == second_left[0] == second_left[1] == 0
    assert right[0] == second_right[0] == second_right[1] == ONES
    zero = 2**63
    for words, value in (
        ([1], 0),
        ([0, ONES], 0),
        ([0, left[1] + 1], 0),
        ([0, left[1] - 1], -1),
        ([0, 1], -1),
        ([0, left[1], 0], -1),
        ([0, left[1], ONES], 0),
        ([0, 0, ONES], -1),
        ([0, 0, second_left[2] + 1], -1),
        ([0, 0, second_left[2] - 1, zero], -2),  # the tail begins: one more draw, 0
        ([0, 0, 0, zero], -2),
        ([ONES - 1], 0),
        ([ONES, 0], 0),
        ([ONES, right[1] - 1], 0),
        ([ONES, right[1] + 1], 1),
        ([ONES, ONES - 1], 1),
        ([ONES, right[1], 0], 0),
        ([ONES, right[1], ONES], 1),
        ([ONES, ONES, 0], 1),
        ([ONES, ONES, second_right[2] - 1], 1),
        ([ONES, ONES, second_right[2] + 1, zero], 2),
        ([ONES, ONES, ONES, zero], 2),
    ):
        assert both_ways(law, words) == value, words


# --- the tail


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(22, 7), Fraction(100), Fraction(1000)], ids=str)
def test_beyond_the_table_the_excess_is_a_fresh_draw_given_that_it_is_not_negative(scale):
    law = discrete_laplace(scale)
    q, reach = law.q, law.reach
    w = {value: word_of(law.high, value) for value in (-3, -1, 0, 1, 2, 5)}
    for words, excess in (
        ([w[0]], 0),
        ([w[5]], 5),
        ([w[-1], w[5]], 5),  # a negative excess is drawn again
        ([w[-3], w[-1], w[-1], w[0]], 0),
        ([ONES, w[2]], reach + 2),  # and an excess may have a tail
        ([ONES, w[-1], w[2]], reach + 2),
        ([ONES, ONES, ONES, w[1]], 3 * reach + 1),
        ([0, w[5], w[1]], 1),  # a far negative excess takes its own draw before it is drawn again
        ([w[-1], 0, w[-1], w[5], w[2]], 2),
    ):
        assert both_ways(law, [ONES, *words]) == q * (reach + excess)
        below = q - 1 if law.low else 0  # remainder 0 counts from the top of a negative cell
        assert both_ways(law, [0, *words]) == -q * (reach + excess) + below


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1000)], ids=str)
def test_the_last_words_before_the_tail_are_not_the_tail(scale):
    law = discrete_laplace(scale)
    first, last = law.high.prefixes[0], law.high.prefixes[-1]
    assert both_ways(law, [first + 1]) // law.q == 1 - law.reach
    assert both_ways(law, [last - 1]) // law.q == law.reach - 1
    zero = word_of(law.high, 0)
    assert both_ways(law, [first - 1, zero]) // law.q == -law.reach
    assert both_ways(law, [last + 1, zero]) // law.q == law.reach


def test_a_tie_at_the_edge_of_the_tail_may_enter_it():
    scale = Fraction(1)
    law = discrete_laplace(scale)
    zero = word_of(law.high, 0)
    right, left = (
        split(binary_floor(cdf(scale, law.reach - 1), 128), 2),
        split(binary_floor(cdf(scale, -law.reach), 128), 2),
    )
    assert both_ways(law, [right[0], right[1] - 1]) == law.reach - 1
    assert both_ways(law, [right[0], right[1] + 1, zero]) == law.reach
    assert both_ways(law, [left[0], left[1] + 1]) == 1 - law.reach
    assert both_ways(law, [left[0], left[1] - 1, zero]) == -law.reach


# --- quotient and remainder


@divided
def test_quotient_and_remainder_make_the_law_on_both_sides(scale):
    """The chance of a pair of digits is the chance of the value that they make, to 100 decimals."""
    law = discrete_laplace(scale)
    assert law.low is not None
    q, seen = law.q, set()
    remainders = sorted({0, 1, 2, q // 3, q // 2, q - 2, q - 1})
    with localcontext() as context:
        context.prec = 120
        chances = []
        for r in remainders:
            chance = share(scale, 0, r, q - 1) - (share(scale, 0, r - 1, q - 1) if r else 0)
            chances.append((r, word_of(law.low, r), chance))
        for h in (-30, -2, -1, 0, 1, 30):
            whole = cdf(scale, q * h + q - 1) - cdf(scale, q * h - 1)
            for r, word, chance in chances:
                z = both_ways(law, [word_of(law.high, h)], [word])
                assert z // q == h
                assert z % q == (r if h >= 0 else q - 1 - r)
                assert abs(whole * chance / pmf(scale, z) - 1) < Decimal("1e-100")
                seen.add(z)
    assert len(seen) == 6 * len(remainders)


@divided
def test_every_remainder_can_be_drawn(scale):
    law = discrete_laplace(scale)
    assert all(a < b for a, b in pairwise([0, *law.low.prefixes, 2**64]))


# --- limits


@pytest.mark.parametrize("scale", ["1/50", "1000000"])
def test_the_limits_themselves_are_allowed(scale):
    assert DiscreteLaplace(Fraction(scale)).scale == Fraction(scale)


@pytest.mark.parametrize(
    ("scale", "shown"),
    [
        (Fraction(1, 51), "0.01961"),
        (Fraction(10**9 + 1, 1000), r"1\.000e\+6"),
        (Fraction(0), "0"),
        (Fraction(-1), "-1"),
        (Fraction(10**400), r"1\.000e\+400"),
        (Fraction(1, 10**400), "1e-400"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_scale_out_of_reach_is_refused_with_advice(scale, shown):
    with pytest.raises(
        ArgumentError, match=rf"noise scale must be from 1/50 to 1000000, got {shown}\. .*sensitivity / budget.*epsilon"
    ):
        discrete_laplace(scale)


# --- noise by position


@pytest.fixture(params=["as shipped", "short tables"])
def law(request, monkeypatch):
    """Short tables send a third of all draws into the tail: rare branches must be positional too."""
    monkeypatch.setattr(certified, "BLOCK", BLOCK)
    if request.param == "short tables":
        monkeypatch.setattr(laplace, "TABLE_SCALES", 1)
    return DiscreteLaplace(Fraction(300))


BLOCK = 512
"""Rows of a block in these tests."""
CELLS = np.arange(2 * BLOCK + 3, dtype=np.uint64)


def test_noise_does_not_depend_on_order_chunks_or_subsets(law):
    key = Key.insecure(5)
    noise = law.draw(key, part=1, level=14, cells=CELLS)
    assert noise.dtype == np.int64
    shuffled = np.random.default_rng(0).permutation(CELLS)
    np.testing.assert_array_equal(law.draw(key, part=1, level=14, cells=shuffled), noise[shuffled])
    np.testing.assert_array_equal(law.draw(key, part=1, level=14, cells=CELLS[5::7]), noise[5::7])
    edges = [0, 1, 1, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, len(CELLS)]
    chunks = [law.draw(key, part=1, level=14, cells=CELLS[a:b]) for a, b in pairwise(edges)]
    np.testing.assert_array_equal(np.concatenate(chunks), noise)


def test_noise_does_not_depend_on_threads(law):
    key = Key.insecure(6)
    noise = law.draw(key, part=0, level=14, cells=CELLS)
    threaded = np.zeros_like(noise)

    def work(task: int) -> None:
        piece = slice(task * 100, (task + 1) * 100)
        threaded[piece] = law.draw(key, part=0, level=14, cells=CELLS[piece])

    in_threads(work, -(-len(CELLS) // 100), 4)
    np.testing.assert_array_equal(threaded, noise)


def test_another_part_level_cell_or_key_has_other_noise():
    law = discrete_laplace(Fraction(10**5))
    here = law.draw(Key.insecure(5), part=1, level=14, cells=CELLS[:500])
    for key, part, level, shift in ((5, 2, 14, 0), (5, 1, 15, 0), (5, 1, 14, 500), (6, 1, 14, 0)):
        there = law.draw(Key.insecure(key), part=part, level=level, cells=CELLS[shift : shift + 500])
        assert np.count_nonzero(here == there) < 5


def test_no_cells_have_no_noise():
    assert discrete_laplace(Fraction(2)).draw(Key.insecure(0), part=0, level=0, cells=CELLS[:0]).shape == (0,)


def test_a_spent_key_draws_nothing():
    key = Key.insecure(0)
    key.destroy()
    with pytest.raises(SpentError):
        discrete_laplace(Fraction(2)).draw(key, part=0, level=0, cells=CELLS[:1])


def test_tables_are_shared_between_calls():
    assert discrete_laplace(Fraction(7, 3)) is discrete_laplace(Fraction(14, 6))


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1, 2), Fraction(3), Fraction(1000)])
def test_variance_and_tails_are_those_of_the_law(scale):
    law = discrete_laplace(scale)
    p = math.exp(-1 / scale)
    z = np.arange(0, int(60 * scale) + 40)
    chance = (1 - p) / (1 + p) * np.exp(-z / float(scale))
    assert law.variance == pytest.approx(2 * float((chance * z**2).sum()), rel=1e-6)
    for size in (1, 2, 5):
        assert law.tail(size) == pytest.approx(2 * float(chance[size:].sum()), rel=1e-6)
    assert law.tail(0) == 1

"""Fidelity: against obvious twins, with missing values, and able to tell a good table from a bad one."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmeasure.domains import Box, Categories, Circle, Finite, Integers, Nullable, Product, Sphere
from privmeasure.errors import ArgumentError
from privmeasure.metrics import fidelity as room
from privmeasure.metrics.fidelity import REAL_TABLE_STAMP, fidelity

MIXED = Product([Nullable(Integers(17, 90)), Categories(["F", "M", "X"]), Nullable(Categories(4)), Box([(0, 10)])])
NAMES = ["age", "sex", "region", "income"]


def rows(seed, n):
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.integers(17, 91, n))
    region = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 4, n))
    return np.column_stack((age, rng.integers(0, 3, n), region, rng.random(n) * 10))


def twin_codes(points):
    """Say it with a loop: the bin of each cell."""
    codes = []
    for age, sex, region, income in points:
        codes.append((
            32 if np.isnan(age) else min(int((age - 17) / 73 * 32), 31),
            int(sex),
            4 if np.isnan(region) else int(region),
            min(int(income / 10 * 32), 31),
        ))  # fmt: skip
    return codes


def twin_variation(x, y, which):
    counts = {}
    for codes, share in ((x, 1 / len(x)), (y, -1 / len(y))):
        for code in codes:
            key = tuple(code[i] for i in which)
            counts[key] = counts.get(key, 0) + share
    return sum(map(abs, counts.values())) / 2


def test_against_a_loop(monkeypatch):
    real, synthetic = rows(1, 400), rows(2, 300)
    x, y = twin_codes(real), twin_codes(synthetic)
    for dense in (room.DENSE_PAIRS, 1):
        monkeypatch.setattr(room, "DENSE_PAIRS", dense)
        result = fidelity(real, synthetic, MIXED, names=NAMES)
        for i, column in enumerate(result.columns):
            assert column.name == NAMES[i]
            assert column.variation.value == pytest.approx(twin_variation(x, y, [i]))
        for (i, j), pair in zip(combinations(range(4), 2), result.pairs, strict=True):
            assert (pair.first, pair.second) == (NAMES[i], NAMES[j])
            assert pair.variation.value == pytest.approx(twin_variation(x, y, [i, j]))
        assert result.two_way.value == pytest.approx(np.mean([pair.variation.value for pair in result.pairs]))


def test_w1_of_a_column_in_shares_of_its_range():
    assert fidelity(np.array([[0.0]]), np.array([[5.0]]), Box([(0, 10)])).w1.value == pytest.approx(0.5)
    assert fidelity(np.array([[17.0]]), np.array([[90.0]]), Integers(17, 90)).w1.value == pytest.approx(1)
    missing = fidelity(np.array([[np.nan]]), np.array([[0.0]]), Nullable(Box([(0, 10)])))
    assert missing.w1.value == pytest.approx(1)
    assert missing.one_way.value == 1
    assert fidelity(np.array([[0.0]]), np.array([[1.0]]), Categories(3)).w1.value == pytest.approx(1 / 3)
    assert fidelity(np.array([[2.0]]), np.array([[np.nan]]), Nullable(Categories(3))).w1.value == pytest.approx(1 / 4)
    place = fidelity(np.array([[-180.0, -90.0]]), np.array([[0.0, 90.0]]), Sphere())
    assert [column.w1.value for column in place.columns] == [0.5, 1]
    assert fidelity(np.array([[6.0]]), np.array([[12.0]]), Circle(24)).w1.value == pytest.approx(0.25)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 60))
def test_laws(seed, n, m):
    x, y = rows(seed, n), rows(seed + 1, m)
    same, there, back = fidelity(x, x, MIXED), fidelity(x, y, MIXED), fidelity(y, x, MIXED)
    for result in (same, there, back):
        for column in result.columns:
            assert 0 <= column.w1.value <= 2
            assert 0 <= column.variation.value <= 1
    assert same.w1.value == same.one_way.value == same.two_way.value == same.sliced.value == 0
    assert there.w1.value == pytest.approx(back.w1.value)
    assert there.two_way.value == pytest.approx(back.two_way.value)
    assert there.two_way.value >= there.one_way.value - 1e-12  # a pair tells at least as much as its columns


def test_a_bad_table_is_above_its_floor_and_a_good_one_is_not():
    real, good, bad = rows(3, 5000), rows(4, 5000), rows(5, 5000)
    bad[:, 3] = bad[:, 3] ** 2 / 10
    near, far = (fidelity(real, table, MIXED, samples=2000) for table in (good, bad))
    assert near.two_way.value < 2 * near.two_way.floor
    assert far.columns[3].w1.value > 10 * far.columns[3].w1.floor
    assert far.sliced.value > 3 * far.sliced.floor
    assert far.to_json()["confidential"] == REAL_TABLE_STAMP


def test_lost_dependence_shows_in_pairs_only():
    x = np.random.default_rng(0).random((4000, 1))
    real, synthetic = np.hstack((x, x)), np.hstack((x, np.random.default_rng(1).permutation(x)))
    result = fidelity(real, synthetic, Box([(0, 1)] * 2))
    assert result.one_way.value == 0
    assert result.two_way.value > 0.9


@pytest.mark.parametrize(
    ("real", "names", "words"),
    [(np.zeros((0, 4)), NAMES, "real"), (np.zeros((2, 3)), NAMES, "4 columns"), (rows(0, 3), ["a"], "names")],
)
def test_what_cannot_be_compared(real, names, words):
    with pytest.raises(ArgumentError, match=words):
        fidelity(real, rows(1, 5), MIXED, names=names)
    with pytest.raises(ArgumentError, match="Own"):
        fidelity(real, real, type("Own", (), {})())


def test_a_finite_metric_is_compared_value_by_value():
    towns = Finite([[0, 1, 3], [1, 0, 2.5], [3, 2.5, 0]])
    real, other = np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([[0.0], [0.0], [1.0], [2.0]])
    assert fidelity(real, other, towns).one_way.value == 0.25

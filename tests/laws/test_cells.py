"""Arrow's casts, all at once and one by one: a text that is cast as it is means the same where it is prepared first."""

import random

import numpy as np
import pyarrow as pa
import pytest

from privmeasure.tables.arrow import DATE, NAIVE, NUMBER, ZONED, cast_each, cast_texts, join_texts
from privmeasure.tables.columns import clock
from privmeasure.testing.hostile import TEXTS

LETTERS = "0123456789.+-eEinfNaA()_ \t\n\x0b\x0c\r\u00a0\u2003xX:/TZ\x00"
SEEDS = (
    "1", "1.5", "-2e10", "inf", "nan", "Infinity", "-nan(ind)", "1e-300", "+3", "0x1F", "07", "7:30", "23:59:59.5",
    "2020-02-29", "-2020-01-01", "99999-01-01", "2020-02-29 10:30:05", "2020-02-29T10", "2020-02-29T10:30:05.123456",
    "2020-02-29T10:30:05Z", "2020-02-29 10:30:05+02:00", "2020-02-29T10:30-0500", "2020-02-29T10:30:05 +02",
)  # fmt: skip


def mutants(count=30_000):
    rnd = random.Random(0)
    for _ in range(count):
        text = list(rnd.choice(SEEDS))
        for _ in range(rnd.randint(0, 2)):
            place = rnd.randrange(len(text) + 1)
            text[place : place + rnd.randint(0, 1)] = rnd.choice(LETTERS) if rnd.random() < 0.7 else ""
        yield "".join(text)


CASES = sorted({*TEXTS, *mutants()})
GARBAGE = "neither number nor date"


@pytest.mark.parametrize(
    "parse",
    [
        lambda texts: cast_texts(texts, pa.float64(), NUMBER),
        lambda texts: cast_texts(texts, pa.date32(), DATE),
        lambda texts: cast_texts(texts, pa.timestamp("us"), NAIVE, mend=lambda t: clock._shorter(t, "us")),
        lambda texts: cast_texts(texts, pa.timestamp("ns", "UTC"), ZONED, mend=lambda t: clock._shorter(t, "ns")),
        lambda texts: clock.parse_instants(texts, None, "us", None),
        lambda texts: clock.parse_instants(texts, None, "s", "Europe/Berlin"),
        lambda texts: clock.parse_dates(texts, None),
        lambda texts: clock.parse_times(texts, None, "us"),
        lambda texts: clock.parse_times(texts, None, "ns"),
    ],
    ids=["float", "date", "naive", "zoned", "instants", "local", "dates", "times", "nanoseconds"],
)
def test_a_text_alone_beside_a_fine_one_and_beside_garbage(parse):
    together = parse(pa.array([*CASES, GARBAGE]))[:-1]
    assert together.null_count < len(CASES)
    kind = together.type
    for start in range(0, len(CASES), 7):  # alone: every fast way is taken that can be
        alone = parse(pa.array([CASES[start]]))
        assert same(alone, together[start : start + 1]), CASES[start]
    fine = np.flatnonzero(together.is_valid().to_numpy(zero_copy_only=False))
    parsed = parse(pa.array([CASES[i] for i in fine]))  # all parse: the first fast way, or the second
    assert parsed.type == kind
    assert same(parsed, together.take(pa.array(fine)))


def same(one, other):
    if pa.types.is_floating(one.type):
        sides = [array.to_numpy(zero_copy_only=False) for array in (one, other)]
        return one.is_null().equals(other.is_null()) and np.array_equal(*sides, equal_nan=True)
    return one.equals(other)


def test_a_cell_that_cannot_be_cast_is_null_alone():
    found = cast_each(pa.array(["1", "x", None, "2", "x", "9" * 30]), pa.int64())
    assert found.to_pylist() == [1, None, None, 2, None, None]


def test_parts_are_joined_in_the_type_of_the_texts():
    assert join_texts(["a", pa.array(["x", None], pa.large_string())]).to_pylist() == ["ax", None]

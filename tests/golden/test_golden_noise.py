"""A seed for the noise still gives the same release: digests of a few, made once.

They guard changes that must not change any number: a constant that gets another home or name, a function that is split.
Where a release is meant to change, `python tests/golden/test_golden_noise.py` prints the new digests. What is compared
are masses, ranks, noisy tables of pairs and the cells of sampled rows: no header, whose version may differ, and no last
digits of points.
"""

import hashlib
from fractions import Fraction

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.domains import Box, Categories, Integers, Nullable, Product
from privmeasure.mechanisms import PMM, ColumnTree
from privmeasure.noise.entropy import Key
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource

FACTORS = [
    Box([(0, 1)]),
    Integers(0, 100),
    Categories(6),
    Nullable(Categories(3)),
    Nullable(Box([(-5, 5)])),
    Categories(40),
    Box([(0, 24), (0, 24)]),
    Categories(1),
    Categories(2),
]
NARROW = 3


def simulated(rows):
    """Three hidden numbers, made of whole ones alone so that every machine has the same, and columns that follow."""
    rng = np.random.default_rng(30)
    one, two, three = rng.integers(0, 17, (4, 3, rows)).sum(axis=0)  # 0 to 64
    missing = rng.integers(0, 5, rows) == 0
    columns = [
        (one * 64 + rng.integers(0, 64, rows)) / 4160,
        one + two // 2,
        np.minimum(two // 11, 5),
        np.where(missing, np.nan, three // 22),
        np.where(two > 40, np.nan, (one - three) / 16),
        np.minimum(three * 5 // 8, 39),
        (one + three) / 8,
        two / 4,
        np.zeros(rows),
        (one + two) % 2,
    ]
    return np.column_stack(columns).astype(float)


CASES = {
    "few pairs": (ColumnTree, 3000, Privacy(Fraction(1, 2), "replace")),
    "extra pairs": (ColumnTree, 12_000, Privacy(2, "add-remove")),
    "one tree": (PMM, 3000, Privacy(1, "add-remove")),
}


def released(name):
    kind, rows, privacy = CASES[name]
    factors = FACTORS if kind is ColumnTree else FACTORS[:NARROW]
    domain, points = Product(factors), simulated(rows)
    return kind(domain, privacy).release(ArraySource(points[:, : domain.width], width=domain.width), Key.insecure(30))


def digest(*arrays):
    """The first digits of the SHA-256 of whole numbers."""
    text = hashlib.sha256()
    for array in arrays:
        text.update(str(np.shape(array)).encode() + np.ascontiguousarray(array, "<i8").tobytes())
    return text.hexdigest()[:16]


def digests(measure):
    """The parts of a release by name: where one differs, so do those that come after it."""
    sample = measure.sample(seed=0)
    if isinstance(measure.plan, pm.Plan):
        cells = measure.domain.locate(sample, measure.level)
        return {"masses": digest(measure.cells, measure.mass), "sample": digest(cells)}
    located = [
        column.domain.locate(sample[:, place], column.level)
        for column, place in zip(measure.columns, measure.domain.columns, strict=True)
    ]
    pairs = [
        part
        for pair in measure.pairs
        for part in ([pair.first, pair.second], pair.first_groups, pair.second_groups, pair.noisy)
    ]
    return {
        "masses": digest(*(part for column in measure.columns for part in (column.cells, column.mass))),
        "ranks": digest(*measure.ranks),
        "pairs": digest(*pairs),
        "sample": digest(*located),
    } | (
        {} if measure.agreements is None else {"agreements": digest(measure.agreements.names, measure.agreements.noisy)}
    )


@pytest.mark.parametrize("name", CASES)
def test_the_same_noise_gives_the_same_release(name):
    assert digests(released(name)) == DIGESTS[name]


@pytest.mark.parametrize("name", CASES)
def test_a_file_gives_the_same_rows(name, tmp_path):
    measure = released(name)
    measure.save(tmp_path / "release.parquet")
    again = pm.load(tmp_path / "release.parquet")
    assert digests(again) == DIGESTS[name]
    assert np.array_equal(again.sample(seed=1), measure.sample(seed=1), equal_nan=True)


def test_the_cases_have_what_they_are_called_after():
    few, extra = (released(name).plan for name in ("few pairs", "extra pairs"))
    assert (few.tree_pairs < few.active - 1, few.extra_pairs) == (True, 0)
    assert extra.extra_pairs > 0
    assert extra.agreement_pairs > 0
    assert any(len(column.levels) == 2 for column in extra.columns), "a number on coarse and on fine cells"


DIGESTS = {
    "few pairs": {
        "masses": "5cd256d97293edd8",
        "ranks": "c53b02b91c7fd180",
        "pairs": "f69061b423f818dd",
        "sample": "c7338f87826a9020",
    },
    "extra pairs": {
        "masses": "d5efc1b38e1100a3",
        "ranks": "24b5065e8ab8a3e7",
        "pairs": "65c0085047bececa",
        "sample": "5cede00c6e9aa67f",
        "agreements": "a6c27d9134b7c90d",
    },
    "one tree": {
        "masses": "17e0a6b708261eef",
        "sample": "843b98ae007b8fa8",
    },
}


if __name__ == "__main__":
    print({name: digests(released(name)) for name in CASES})

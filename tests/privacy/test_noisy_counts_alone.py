"""A release is a function of the noisy counts alone, for every mechanism.

Whatever has noise added to it is forced to fixed values, and private choices to fixed winners, where noise is drawn.
Then nothing is left of the data: 1 and 100,000 rows ask for the same partitions and give the same bytes.
"""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from privmeasure.domains import Box, Categories, Integers, Nullable, Product
from privmeasure.mechanisms import PMM, PSMM, ColumnTree, exponential
from privmeasure.mechanisms import pairs as true_pairs
from privmeasure.mechanisms.choice import PART
from privmeasure.noise.entropy import Key
from privmeasure.noise.gaussian import DiscreteGaussian
from privmeasure.noise.laplace import DiscreteLaplace
from privmeasure.plans import laws
from privmeasure.plans.recipe import Recipe
from privmeasure.plans.tuning import GAUSSIAN_TUNED, TUNED
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource

RELEASED = 5000
"""The forced number of rows."""
LINE, SQUARE = Box([(0, 1)]), Box([(0, 1), (0, 1)])
TABLE = Product([Box([(0, 1)]), Integers(0, 60), Categories(5), Nullable(Categories(3)), Categories(40), Categories(1)])


class Fixed(np.ndarray):
    """Noise that turns whatever it is added to into fixed values."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        assert (ufunc, method) == (np.add, "__call__"), "noise is added, and nothing else is done with it"
        values = np.asarray(self).view(np.ndarray)
        if out is None:
            return values.copy()
        out[0][...] = values
        return out[0]


def fixed(part: int, level: int, cells: np.ndarray) -> np.ndarray:
    """Fixed values, about as large as the counts of a table of `RELEASED` rows would be."""
    mean = max(0, RELEASED >> min(level, 40))
    mixed = (cells.astype(np.uint64) + np.uint64(1 + part * 64 + level)) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(40)) % np.uint64(2 * mean + 6)).astype(np.int64) - 3


@contextmanager
def forced(rows: int):
    """Force all noisy counts and choices of a release of `rows` true rows."""

    def draw(self, key, *, part, level, cells):
        if (part, level) == (0, 0):
            return np.full(len(cells), RELEASED - rows)
        values = fixed(part, level, cells)
        return 10**12 + 1000 * values if part == PART else values.view(Fixed)  # a choice: no score outweighs it

    def tries(gaps, place, *_):
        return np.zeros(1, np.intp), np.full(len(place), len(gaps) // 2, np.intp)

    def signs(columns, scale, key, *, part):
        return fixed(part, 0, np.arange(columns * (columns - 1) // 2)).view(Fixed)

    with pytest.MonkeyPatch.context() as patch:
        for kind in (DiscreteLaplace, DiscreteGaussian):
            patch.setattr(kind, "draw", draw)
        patch.setattr(exponential, "_tries", tries)
        patch.setattr(true_pairs, "sign_noise", signs)
        patch.setattr(laws, "WORTH", 1e9)  # a delta means Gaussian noise
        yield


class Asked:
    """A source that writes down which partitions it was asked for."""

    def __init__(self, points: np.ndarray) -> None:
        self.source, self.asked = ArraySource(points, width=points.shape[1], threads=1), []

    def count(self, partitions, progress=None):
        self.asked.append(
            [
                [(repr(a.domain), a.level, a.columns, None if a.groups is None else a.groups.tobytes()) for a in p.axes]
                for p in partitions
            ]
        )
        return self.source.count(partitions, progress)


def points(rows: int, width: int) -> np.ndarray:
    """A table whose columns depend on each other; a single row is nothing like the first of many."""
    rng = np.random.default_rng(rows)
    x = np.full(1, 0.9) if rows == 1 else rng.random(rows) ** 3
    age = np.rint(60 * x)
    columns = [
        x,
        age / 60 if width == 2 else age,
        age // 15,
        np.where(x < 0.1, np.nan, age % 3),
        np.rint(39 * x),
        0 * x,
    ]
    return np.column_stack(columns[:width])


def columns(privacy: Privacy, **options) -> ColumnTree:
    tuning = replace(GAUSSIAN_TUNED if privacy.delta else TUNED, agreement_rows=1e-6, least_rows=1e-6)
    return ColumnTree(TABLE, privacy, tuning=tuning, threads=1, **options)


MECHANISMS = {
    "tree": lambda p: PMM(SQUARE, p, threads=1),
    "tree of a given number of rows": lambda p: PMM(LINE, p, rows=900, threads=1),
    "tree of a given depth": lambda p: PMM(LINE, p, depth=7, threads=1),
    "paper": lambda p: PMM.paper(LINE, p, threads=1),
    "paper, proportional": lambda p: PMM.paper(SQUARE, p, rule="proportional", threads=1),
    "isotonic": lambda p: PMM(LINE, p, Recipe(rule="isotonic"), threads=1),
    "uneven": lambda p: PMM(Product([Integers(0, 60), Categories(5)]), p, threads=1),
    "lazy": lambda p: PMM(LINE, p, Recipe("sparse", "none"), depth=18, max_cells=64, threads=1),
    "lazy and uneven": lambda p: PMM(Integers(0, 60), p, Recipe("sparse", "none"), depth=6, max_cells=8, threads=1),
    "flat": lambda p: PSMM(LINE, p, threads=1),
    "flat of a given number of rows": lambda p: PSMM(SQUARE, p, rows=900, threads=1),
    "flat of a given depth": lambda p: PSMM(SQUARE, p, depth=6, threads=1),
    "columns": columns,
    "columns of a given number of rows": lambda p: columns(p, rows=900),
    "columns with a target": lambda p: columns(p, targets=(3,)),
}
MANY = 100_000


def outcome(make, privacy: Privacy, rows: int, path) -> tuple[bytes, list]:
    mechanism = make(privacy)
    source = Asked(points(rows, mechanism.domain.width))
    with forced(rows):
        mechanism.release(source, Key.insecure(1)).save(path)
    return path.read_bytes(), source.asked


@pytest.mark.parametrize("name", MECHANISMS)
def test_one_row_and_many_give_the_same_bytes_and_ask_the_same(name, tmp_path):
    for delta in (0, 1e-6):
        privacy = Privacy(2, "add-remove", delta=delta)
        one, many = (outcome(MECHANISMS[name], privacy, rows, tmp_path / "release") for rows in (1, MANY))
        assert one[1] == many[1], f"delta {delta}: other partitions are asked for"
        assert one[0] == many[0], f"delta {delta}: the file differs"


@pytest.mark.parametrize("name", MECHANISMS)
def test_under_replace_the_number_of_rows_is_all_that_is_not_noisy(name, tmp_path):
    for delta in (0, 1e-6):
        privacy, seen = Privacy(2, "replace", delta=delta), []
        for low in (True, False):
            mechanism = MECHANISMS[name](privacy)
            table = points(1000, mechanism.domain.width)
            source = Asked(table if low else np.full_like(table, 0.9))
            with forced(1000):
                mechanism.release(source, Key.insecure(1)).save(tmp_path / "release")
            seen.append(((tmp_path / "release").read_bytes(), source.asked))
        assert seen[0][1] == seen[1][1], f"delta {delta}: other partitions are asked for"
        assert seen[0][0] == seen[1][0], f"delta {delta}: the file differs"


def test_a_level_that_follows_the_true_number_of_rows_is_caught(monkeypatch, tmp_path):
    """The check can fail: here the flat mechanism takes its level from the data."""
    real = PSMM._plan

    def wrong(self, rows, rows_are):
        return real(self, self.true_rows if rows_are == "released" else rows, rows_are)

    seen = []
    monkeypatch.setattr(PSMM, "_plan", wrong)
    for rows in (1, MANY):
        monkeypatch.setattr(PSMM, "true_rows", rows, raising=False)
        seen.append(outcome(MECHANISMS["flat"], Privacy(2, "add-remove"), rows, tmp_path / "release"))
    assert seen[0][1] != seen[1][1]

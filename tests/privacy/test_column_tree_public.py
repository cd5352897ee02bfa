"""Nothing of the column tree reads private values but through the noise: not the number of rows, not a margin.

Every noisy value of a first release is recorded and forced upon a second one, of a table with other rows and another
number of them. If anything else were read, the second release would differ.
"""

from functools import partial

import numpy as np
import pytest

from differences import assert_same
from privmeasure.domains import Box, Categories, Integers, Nullable, Product
from privmeasure.mechanisms import ColumnTree, tree
from privmeasure.mechanisms import columns as column_tree
from privmeasure.mechanisms import pairs as true_pairs
from privmeasure.noise.entropy import Key
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource
from reference.reachable import reachable
from reference.total import noisy_total

DOMAIN = Product([Box([(0, 1)]), Integers(0, 60), Categories(5), Nullable(Categories(3)), Categories(1)])
ROWS = 20_000


def data(rows: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.random(rows) ** 2
    age = np.rint(60 * x)
    return np.column_stack([x, age, age // 15, np.where(x < 0.1, np.nan, age % 3), np.zeros(rows)])


class Tape:
    """Records what leaves the noise, or plays it again whatever the true counts are."""

    def __init__(self, monkeypatch):
        self.noisy, self.winners, self.playing = {}, {}, False
        self.add_noise, self.noisy_max = tree.add_noise, true_pairs.noisy_max
        for module in (tree, true_pairs):
            monkeypatch.setattr(module, "add_noise", self.noise)
        monkeypatch.setattr(column_tree, "public_total", partial(noisy_total, self.noise))
        monkeypatch.setattr(true_pairs, "noisy_max", self.winner)

    def noise(self, counts, level, law, key, part, threads):
        if not self.playing:
            self.noisy[part, level] = (law.scale, self.add_noise(counts.copy(), level, law, key, part, threads))
        planned, noisy = self.noisy[part, level]
        place = f"scale and number of cells of part {part}, level {level}, which are public"
        assert_same((law.scale, len(counts)), (planned, len(noisy)), place)
        return noisy.copy()

    def winner(self, scores, *, privacy, budget, key, round_):
        if not self.playing:
            found = self.noisy_max(scores, privacy=privacy, budget=budget, key=key, round_=round_)
            self.winners[round_] = (len(scores), privacy.scale(budget), found)
        count, planned, found = self.winners[round_]
        assert_same((len(scores), privacy.scale(budget)), (count, planned), f"candidates and scale of choice {round_}")
        return found


def questions(partitions):
    return [
        [(axis.level, axis.columns, None if axis.groups is None else axis.groups.tolist()) for axis in part.axes]
        for part in partitions
    ]


class Asked:
    """A source that remembers the questions."""

    def __init__(self, points):
        self.source, self.asked = ArraySource(points, width=5), []

    def count(self, partitions, progress=None):
        self.asked.append(questions(partitions))
        return self.source.count(partitions, progress)


def parts(release):
    """Return a release as parts with names: plan, header, masses, ranks, pairs and rows."""
    return {
        "plan": release.plan,
        "header": release.header(),
        "masses": [(column.cells, column.mass) for column in release.columns],
        "ranks": list(release.ranks),
        "pairs": [pair.noisy for pair in release.pairs],
        "rows": release.sample(50, seed=3),
    }


@pytest.fixture
def releases(monkeypatch):
    """Release a table, then others with the noisy values of the first."""

    def run(tool: ColumnTree, *tables: np.ndarray):
        tape, done = Tape(monkeypatch), []
        for table in tables:
            source = Asked(table)
            done.append((tool.release(source, Key.insecure(4)), source.asked))
            tape.playing = True
        return done

    return run


@pytest.mark.parametrize("rows", [None, ROWS], ids=["private", "public rows"])
def test_a_release_depends_on_the_data_through_the_noise_alone(rows, releases):
    tool = ColumnTree(DOMAIN, Privacy(2, "add-remove"), rows=rows)
    one_more = np.vstack([data(ROWS), [[0.3, 59, 0, np.nan, 0]]])
    (first, asked), *others = releases(tool, data(ROWS), one_more, data(777, seed=5), np.empty((0, 5)))
    assert first.plan.extra_pairs > 0, "both layers of the choice are looked at"
    for other, questions_of_other in others:
        assert_same(parts(other), parts(first), "release")
        assert questions_of_other == asked


def test_under_replace_only_the_number_of_rows_is_public(releases):
    tool = ColumnTree(DOMAIN, Privacy(4, "replace"))
    (first, asked), (other, asked_of_other) = releases(tool, data(ROWS), data(ROWS, seed=9))
    assert first.plan.rows == ROWS
    assert_same(parts(other), parts(first), "release")
    assert asked_of_other == asked


def test_a_mechanism_that_reads_the_number_of_rows_is_found(releases, monkeypatch):
    """The check can fail: here the true number of rows decides what is expected of a pair."""
    real, seen = true_pairs.TruePairs._expected, []

    def wrong(self, t, sides, sample):
        seen.append(real(self, t, sides, sample) * self._counts[t].total / self._plan.rows)
        return seen[-1]

    monkeypatch.setattr(true_pairs.TruePairs, "_expected", wrong)
    tool = ColumnTree(DOMAIN, Privacy(2, "add-remove"))
    releases(tool, data(ROWS), data(ROWS + 1))
    half = len(seen) // 2
    assert any(not np.array_equal(a, b) for a, b in zip(seen[:half], seen[half:], strict=True))


def test_what_is_expected_of_pairs_is_public(releases, monkeypatch):
    """The tables that scores subtract are the same for neighbours, in both layers, once the releases are."""
    seen, real = [], true_pairs.score
    monkeypatch.setattr(
        true_pairs, "score", lambda true, expected: seen.append(expected.copy()) or real(true, expected)
    )
    tool = ColumnTree(DOMAIN, Privacy(2, "add-remove"))
    releases(tool, data(ROWS), data(ROWS + 1, seed=2))
    half = len(seen) // 2
    assert half > 6
    assert all(np.array_equal(a, b) for a, b in zip(seen[:half], seen[half:], strict=True))


def test_the_release_holds_no_private_object():
    from privmeasure.counts import CellCounts

    points = data(ROWS)
    release = ColumnTree(DOMAIN, Privacy(2, "add-remove")).release(ArraySource(points, width=5), Key.fresh())
    found = list(reachable(release))
    assert sum(isinstance(value, np.ndarray) for value in found) > 1
    for value in found:
        assert not isinstance(value, CellCounts | ArraySource | Key | true_pairs.TruePairs)
        assert not (isinstance(value, np.ndarray) and np.shares_memory(value, points))
    assert repr(true_pairs.TruePairs([], [], [], None, None)) == "TruePairs(private)"

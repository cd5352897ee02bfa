"""The column tree on tiny tables: what every step can tell about one person, by enumeration.

The mechanism is a sequence of steps, each a function of the data and of what was released before. So its privacy loss
on one transcript is the sum of the losses of the steps, each given the earlier releases, and is checked step by step:

- *Counts.* Noise Lap_Z(s) on a histogram: the largest log-ratio over all outputs is exactly l_1 change / s, taken at
  any output beyond both histograms. The histograms come from the real partitions and the real engine.
- *Selection.* The law of the winner is summed over the winner's noise (`reference/selection.py`), so that log-ratios
  are certified to `ROUNDING`. The scores come from the real code, which is run with a script
  in place of the noisy maximum, on neighbouring tables, for released margins that are wrong as well as right.
- *The rule.* `noisy_max` is run on chosen noise, and it is the first largest of score + noise.
- *Whole transcripts*, the second layer of the choice and several rows per person: test_column_tree_transcripts.py.
- *The release* uses these scores, budgets, scales, each noise once: `test_the_release_is_what_is_enumerated`.

Tables are lists of cells of three columns with 2, 3 and 2 values.
"""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from privmeasure.counts import Axis, CellCounts, Partition
from privmeasure.domains import Box, Categories, Product
from privmeasure.mechanisms import ColumnTree, choice
from privmeasure.mechanisms import pairs as true_pairs
from privmeasure.mechanisms.pairs import RankedColumn, TruePairs
from privmeasure.noise.entropy import Key
from privmeasure.noise.laplace import discrete_laplace
from privmeasure.plans.tuning import TUNED
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource
from reference.selection import winners

SIDES = (2, 3, 2)
NAMES = list(combinations(range(3), 2))
ROWS = list(product(*map(range, SIDES)))
ROUNDING = 1e-9
RELATIONS = ["add-remove", "replace"]

Table = tuple[tuple[int, ...], ...]
Margins = tuple[tuple[int, ...], ...]


# ------------------------------------------------------------------------------------------------- tiny tables


def mechanism(neighbours: str, epsilon: int = 8) -> ColumnTree:
    return ColumnTree(Product([Categories(side) for side in SIDES]), Privacy(epsilon, neighbours))


def neighbours_of(table: Table, relation: str) -> Iterable[Table]:
    if relation == "add-remove":
        for row in ROWS:
            yield (*table, row)
        return
    for old in set(table):
        rest = list(table)
        rest.remove(old)
        for row in ROWS:
            if row != old:
                yield (*rest, row)


def tables(most: int, every: int = 1) -> list[Table]:
    """All tables of up to `most` rows, or every so many of them."""
    return [t for rows in range(1, most + 1) for t in combinations_with_replacement(ROWS, rows)][::every]


def counts_of(table: Table) -> list[CellCounts]:
    """The true tables of all pairs, by a plain loop."""
    result = []
    for i, j in NAMES:
        counts = np.zeros((SIDES[i], SIDES[j]), np.int64)
        for row in table:
            counts[row[i], row[j]] += 1
        result.append(CellCounts(counts.size, counts.ravel()))
    return result


def true_margins(table: Table) -> Margins:
    return tuple(tuple(sum(row[j] == value for row in table) for value in range(SIDES[j])) for j in range(3))


MARGINS: list[Margins] = [
    ((1, 1), (2, 0, 0), (2, 0)),
    ((2, 1), (1, 1, 1), (0, 3)),
    ((4, 0), (2, 1, 1), (1, 3)),
    ((9, 1), (2, 4, 4), (5, 5)),
    ((10, 10), (0, 19, 1), (13, 7)),
]
"""Margins that may have been released: selection must be private whatever they are."""


# ------------------------------------------------------------------------------------------------- selection


class TrueMargins(TruePairs):
    """A wrong mechanism: what is expected of a pair comes from its true margins."""

    def _expected(self, t, sides, sample):
        table = self._true(t, sides).astype(float)
        return np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)


def rounds_of(table: Table, margins: Margins, plan, path: tuple[int, ...], monkeypatch, kind=TruePairs):
    """The scores of every round of the real choice of a tree, when the winners are those of the path."""
    seen = []

    def scripted(scores, *, privacy, budget, key, round_):
        assert (privacy, budget, round_) == (plan.privacy, plan.round_budget, len(seen))
        assert scores.dtype == np.int64
        seen.append(tuple(scores.tolist()))
        return path[round_]

    columns = [RankedColumn(np.array(m, float), ordered=False, listed=False, blocks=None, alone=None) for m in margins]
    true = kind(NAMES, counts_of(table), columns, replace(plan, rows=sum(margins[0])), TUNED)
    with monkeypatch.context() as patch:
        patch.setattr(true_pairs, "noisy_max", scripted)
        true._tree([true._true(t, true._score_sides) for t in range(3)], None)
    return seen


def plan_for(relation: str):
    plan = mechanism(relation).plan(4)
    assert plan.rounds == 2 + plan.extra_pairs
    return replace(plan, pair_sides=(3, 3))  # no cells merged: the finest that there is to see


PATHS = [(0, 0), (0, 1), (1, 0), (2, 1)]


def worst_choice(relation, monkeypatch, *, scale_factor=Fraction(1), kind=TruePairs, most=2, every=1, margins=MARGINS):
    """The largest log-ratio of one round, over tables, neighbours, margins and paths."""
    plan, worst = plan_for(relation), 0.0
    scale = plan.selection_scale * scale_factor
    known: dict[tuple[int, ...], np.ndarray] = {}

    def law(scores):
        shifted = tuple(score - min(scores) for score in scores)
        if shifted not in known:
            known[shifted] = np.log(winners(shifted, scale))
        return known[shifted]

    cache: dict[tuple, list] = {}

    def rounds(table, released, path):
        name = (tuple(sorted(table)), released, path)
        if name not in cache:
            cache[name] = rounds_of(table, released, plan, path, monkeypatch, kind)
        return cache[name]

    for table in tables(most, every):
        for other in neighbours_of(table, relation):
            for released, path in product(margins, PATHS):
                for one, two in zip(rounds(table, released, path), rounds(other, released, path), strict=True):
                    worst = max(worst, float(np.abs(law(one) - law(two)).max()))
    return worst / float(plan.round_budget)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_round_costs_at_most_its_budget_and_nearly_all_of_it(relation, monkeypatch):
    worst = worst_choice(relation, monkeypatch, every=3)
    assert 0.7 < worst <= 1 + ROUNDING


@pytest.mark.parametrize("relation", RELATIONS)
def test_half_the_scale_is_a_violation(relation, monkeypatch):
    assert worst_choice(relation, monkeypatch, scale_factor=Fraction(1, 2), every=3) > 1.4


@pytest.mark.parametrize("relation", RELATIONS)
def test_true_margins_in_the_score_are_a_violation(relation, monkeypatch):
    assert worst_choice(relation, monkeypatch, kind=TrueMargins, most=3, every=17, margins=MARGINS[:1]) > 1.2


@pytest.mark.parametrize("sensitivity", [1, 2, 6])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_the_winner_for_all_scores_that_a_person_may_change(sensitivity, epsilon):
    """Every vector of scores in a box, moved by the sensitivity in every direction: at most epsilon, and no less."""
    scale, worst = 2 * sensitivity / epsilon, 0.0
    for scores in product((0, 1, 4), repeat=3):
        law = np.log(winners(scores, scale))
        for move in product((-sensitivity, 0, sensitivity), repeat=3):
            other = np.log(winners(tuple(map(sum, zip(scores, move, strict=True))), scale))
            worst = max(worst, float(np.abs(law - other).max()))
    assert 0.8 * float(epsilon) < worst <= float(epsilon) + ROUNDING


def test_the_winner_is_the_first_largest_sum(monkeypatch):
    """The rule that is enumerated is the rule of `noisy_max`: on chosen noise, rejected draws included."""

    class Chosen:
        def __init__(self, noise):
            self.noise = noise

        def draw(self, key, *, part, level, cells):
            return np.array([self.noise[int(cell) % (1 << 32)][int(cell) >> 32] for cell in cells], np.int64)

    scores = np.array([2, 0, 1])
    for noise in product((0, 1, 2, 3), repeat=3):
        rejected = [[-1] * i + [z] for i, z in enumerate(noise)]
        monkeypatch.setattr(choice, "law_of", lambda name, scale, rejected=rejected: Chosen(rejected))
        sums = [score + z for score, z in zip(scores.tolist(), noise, strict=True)]
        found = choice.noisy_max(scores, privacy=Privacy(1, "replace"), budget=Fraction(1), key=None, round_=0)
        assert found == sums.index(max(sums))


# ------------------------------------------------------------------------------------------------- counts


def change(one: np.ndarray, two: np.ndarray) -> int:
    return int(np.abs(one - two).sum())


@pytest.mark.parametrize("relation", RELATIONS)
def test_two_levels_of_a_number_share_its_budget(relation):
    """A number is counted on coarse and on fine cells: both change, and together cost what the column may cost."""
    tool = ColumnTree(Product([Box([(0, 1)]), Categories(2)]), Privacy(1, relation))
    own = tool.plan(10**6).columns[0]
    assert len(own.levels) == 2
    partitions = [Partition((Axis(tool.spaces[0], level, slice(0, 1)),)) for level in own.levels]
    data = np.array([[0.1, 0], [0.5, 1], [0.9, 0]])
    other = np.vstack([data, [[0.7, 1]]]) if relation == "add-remove" else np.vstack([data[:2], [[0.7, 1]]])
    both = [ArraySource(x, width=2, threads=1).count(partitions) for x in (data, other)]
    loss = sum(change(a.counts, b.counts) / s for a, b, s in zip(*both, own.scales, strict=True))
    assert loss == own.spent == own.privacy.epsilon


# ------------------------------------------------------------------------------------------------- the real release


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("people", [1, 3])
def test_the_release_is_what_is_enumerated(relation, people, monkeypatch):
    """Take the noise off a seeded release: what is left are the true counts, noised once, at the planned scales."""
    rng, seed, words = np.random.default_rng(5), 11, []
    x = rng.integers(0, [2, 3, 2, 4], (30_000, 4)).astype(float)
    x[:, 3] = (x[:, 0] + 2 * x[:, 2] + (rng.random(30_000) < 0.1)) % 4
    domain = Product([Categories(side) for side in (2, 3, 2, 4)])
    real = Key.words

    def recorded(self, *, part, level, cells, attempt=0):
        words.extend((part, level, int(cell), attempt) for cell in cells)
        return real(self, part=part, level=level, cells=cells, attempt=attempt)

    tool = ColumnTree(domain, Privacy(4, relation, people))
    with monkeypatch.context() as patch:
        patch.setattr(Key, "words", recorded)
        release = tool.release(ArraySource(x, width=4), Key.insecure(seed))
    assert len(words) == len(set(words)), "two draws shared a position"
    plan, key, d = release.plan, Key.insecure(seed), tool.privacy.sensitivity
    assert plan.extra_pairs == 3
    assert plan.spent <= plan.privacy.epsilon

    def noise(scale, part, level, size):
        return discrete_laplace(scale).draw(key, part=part, level=level, cells=np.arange(size, dtype=np.uint64))

    for j, column in enumerate(release.columns):
        cells = tool.spaces[j].locate(x[:, j : j + 1], column.level).view(np.int64)
        for level, scale in zip(column.plan.levels, column.plan.scales, strict=True):
            true = np.bincount(cells >> (column.level - level), minlength=1 << level)
            noisy = true + noise(scale, 1 + j, level, 1 << level)
            there = tool.spaces[j].exists(np.arange(1 << level, dtype=np.uint64), level)
            assert np.array_equal(column.noisy[level][there], noisy[there])
    rank_cells = [
        release.ranks[j][tool.spaces[j].locate(x[:, j : j + 1], release.columns[j].level).view(np.int64)]
        for j in range(4)
    ]
    spent = {kind: Fraction(0) for kind in ("tree", "extra")}
    for place, pair in enumerate(release.pairs):
        spent["tree" if place < plan.tree_pairs else "extra"] += d / pair.scale
        true = np.zeros(pair.noisy.shape, np.int64)
        one, two = pair.first_groups[rank_cells[pair.first]], pair.second_groups[rank_cells[pair.second]]
        np.add.at(true, (one, two), 1)
        assert np.array_equal(pair.noisy, true + noise(pair.scale, 5 + place, 0, true.size).reshape(true.shape))
    parts = {part for part, *_ in words}
    assert parts == {*range(1, 5 + len(release.pairs)), choice.PART} | ({0} if relation == "add-remove" else set())
    first = first_winner(release, rank_cells, key)
    assert (release.pairs[0].first, release.pairs[0].second) == first
    assert spent == {"tree": plan.tree_pairs * plan.tree_budget, "extra": plan.extra_pairs * plan.extra_budget}


def first_winner(release, rank_cells, key):
    """The first round by a plain loop: independent tables of released margins, one-sided noise by rejection."""
    plan, best = release.plan, []
    margins = [
        np.bincount(ranks[column.cells.view(np.int64)], weights=column.mass)
        for ranks, column in zip(release.ranks, release.columns, strict=True)
    ]
    law = discrete_laplace(plan.selection_scale)
    for t, (i, j) in enumerate(combinations(range(4), 2)):
        true = np.zeros((len(margins[i]), len(margins[j])), np.int64)
        np.add.at(true, (rank_cells[i], rank_cells[j]), 1)
        expected = np.outer(margins[i], margins[j]) / plan.rows
        score = int(np.abs(true - np.rint(expected)).sum())
        score -= round(float(np.minimum(expected, 0.8 * np.sqrt(expected)).sum()))
        attempt, z = 0, -1
        while z < 0:
            cell = np.array([attempt * choice.CANDIDATES + t], np.uint64)
            z, attempt = int(law.draw(key, part=choice.PART, level=0, cells=cell)[0]), attempt + 1
        best.append((score + z, -t, (i, j)))
    return max(best)[2]

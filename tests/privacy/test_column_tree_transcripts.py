"""Whole transcripts of the column tree on tiny tables: both layers of the choice, and people with several rows.

`ColumnTree.release` runs as it is, but for the noise: a script says what the noisy counts and the winners are, and the
same script is played to neighbouring tables. The recorder writes down what the noise would have been added to, and at
what scale. The probability of a transcript is the product of the probabilities of its steps given earlier ones,

    size, columns, tables    Lap_Z on counts c: the log-ratio of y is (|y - c'|_1 - |y - c|_1) / scale, exactly;
    winners                  the law of the noisy maximum of the recorded scores, certified to `ROUNDING`;
    agreements               1 / scale for every row of signs that two lists of sums are apart, at most,

so the loss of every scripted transcript is known. Scripts are a representative set: noisy values beyond all counts on
either side, where losses are largest, and random ones among the counts. The rule of the winner and the noise itself are
checked in test_column_tree_enumeration.py.

Four columns of two values: with three columns only one pair is left for the second layer, and nothing to choose. For
the choice of resolutions, three columns of three values, of which the usual tables pack two together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from depth import some
from differences import assert_same
from privmeasure.domains import Categories, Product
from privmeasure.mechanisms import ColumnTree, tree
from privmeasure.mechanisms import columns as column_tree
from privmeasure.mechanisms import pairs as true_pairs
from privmeasure.mechanisms.choice import noisy_max, worth
from privmeasure.model import graph as model
from privmeasure.model.agreements import agreement_of
from privmeasure.noise.entropy import Key
from privmeasure.plans import column_schedule
from privmeasure.plans.tuning import TUNED
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource
from reference.drawn import recorded
from reference.selection import winners
from reference.total import noisy_total

COLUMNS, EPSILON = 4, 8
ROWS = list(product(range(2), repeat=COLUMNS))
SHAPED_COLUMNS, SHAPED_ROWS = 3, list(product(range(3), repeat=3))
ROUNDING = 1e-9
RELATIONS = ["add-remove", "replace"]

Table = tuple[tuple[int, ...], ...]


# ------------------------------------------------------------------------------------------------- tiny tables


TABLES: list[Table] = [
    ((0, 0, 0, 0),),
    ((0, 1, 1, 0), (1, 0, 1, 1), (0, 0, 0, 0)),
    ((0, 0, 0, 0),) * 4 + ((1, 1, 1, 1),) * 2,
]


SHAPED_TABLES: list[Table] = [
    ((0, 0, 0),),
    ((0, 1, 2), (1, 0, 2), (2, 2, 0)),
    ((0, 0, 0),) * 4 + ((1, 1, 1),) * 3 + ((2, 2, 2),) * 2,
]


def neighbours_of(table: Table, relation: str, people: int, every: int = 1) -> Iterator[Table]:
    """All tables in which one person's rows are added, or replaced: the first ones. Of two new rows, every so many."""
    for rows in range(1, people + 1):
        rest = table if relation == "add-remove" else table[rows:]
        if relation == "add-remove" or rows <= len(table):
            possible = ROWS if len(table[0]) == COLUMNS else SHAPED_ROWS
            for new in list(combinations_with_replacement(possible, rows))[:: -every if rows > 1 else 1]:
                yield (*rest, *new)


# ------------------------------------------------------------------------------------------------- scripts


ACROSS = {2: (2, 4), 3: (2, 4, 1), 4: (9, 0, 0, -4), 9: (9, 0, 0, 0, -4, 0, 0, 0, 1)}
"""Noisy counts of a column and of a table that tell most about rows of zeros that become rows of ones.

The heavier value of a category is its first rank cell: here the ones."""


@dataclass(frozen=True)
class Script:
    """What is released: noisy counts by part and level, winners by round. It knows no data."""

    kind: str
    seed: int

    def noisy(self, part: int, level: int, size: int) -> np.ndarray:
        rng = np.random.default_rng([self.seed, part, level])
        if self.kind == "above":  # every count is smaller
            return rng.integers(5, 9, size)
        if self.kind == "across" and size in ACROSS:  # counts of zeros are larger, those of ones smaller
            return np.array(ACROSS[size])
        return rng.integers(-2, 7, size)

    def winner(self, round_: int, candidates: int) -> int:
        return int(np.random.default_rng([self.seed, 99, round_]).integers(candidates))


SCRIPTS = [Script("above", 0), Script("across", 0), Script("across", 6), Script("across", 5)]
SCRIPTS += [Script("among", seed) for seed in (0, 1, 3)]
FEW = [*SCRIPTS[:3], SCRIPTS[-1]]


@dataclass
class Transcript:
    """What a release of one table, played by a script, would have added noise to."""

    counts: list[tuple[np.ndarray, np.ndarray, Fraction]] = field(default_factory=list)
    """True counts, scripted noisy counts, scale."""
    rounds: list[tuple[tuple[int, ...], int, Fraction]] = field(default_factory=list)
    """Scores, scripted winner, scale."""
    layers: int = 0
    """Rounds of the first layer."""
    shapes: list[tuple[tuple[int, ...], int, Fraction]] = field(default_factory=list)
    """The same as `rounds` for the resolutions of tables."""
    signs: list[tuple[list[int], Fraction]] = field(default_factory=list)
    """Agreements of all pairs, and the scale of the noise for rows of signs."""
    steps: dict[str, tuple[Fraction, object]] = field(default_factory=dict)
    """Every step by its name, in order: the scale, and what the script released. No step may depend on the table."""

    def add(self, name: str, scale: Fraction, released: object) -> None:
        """Write a step down."""
        self.steps[f"step {len(self.steps)}: {name}"] = scale, released


class Stage:
    """Plays scripts to tables by the real release, and remembers what it saw."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        relation: str,
        people: int,
        *,
        true_model: bool,
        part: bool,
        agreed: bool,
        shaped: bool = False,
    ) -> None:
        # part of a tree is what few rows buy of five columns and more; pairs beyond a tree are what many rows buy
        few = {"fewest_pairs": Fraction(1, 2), "narrow_pairs": 1}
        many = {"least_rows": 1e-6, "selection_share": 0.03}
        some = {**many, "most_extra": 0.25, "agreement_share": 0.1, "agreement_rows": 1e-6}
        finer = {**many, "selection_share": 0.4, "columns_share": (0.2, 0.2, 0.2), "finer_clear": 1e-3}
        finer |= {"tree_rows": 1e6, "extra_rows": 1e6}
        tuning = replace(TUNED, **(few if part else some if agreed else finer if shaped else many))
        columns = [Categories(3)] * SHAPED_COLUMNS if shaped else [Categories(2)] * COLUMNS
        patch.setattr(column_schedule, "LONG_LIST", 2)
        self.tool = ColumnTree(Product(columns), Privacy(EPSILON, relation, people), tuning=tuning)
        self.seen: dict[tuple[Table, Script], Transcript] = {}
        for module in (tree, true_pairs):
            patch.setattr(module, "add_noise", self._noise)
        patch.setattr(column_tree, "public_total", partial(noisy_total, self._noise))
        patch.setattr(true_pairs, "noisy_max", self._winner)
        patch.setattr(true_pairs, "agreement_of", self._agreement)
        patch.setattr(true_pairs, "sign_noise", self._signs)
        self.pairs = (2, 0, 0) if part else (3, 1, 6) if agreed else (2, 1, 0) if shaped else (3, 3, 0)
        if true_model:
            patch.setattr(model, "pair_table", self._true_table)

    def _noise(self, counts, level, law, key, part, threads):
        noisy = self.script.noisy(part, level, len(counts))
        self.transcript.counts.append((counts.copy(), noisy, law.scale))
        self.transcript.add(f"counts of part {part}, level {level}", law.scale, noisy.tolist())
        return noisy.copy()

    def _winner(self, scores, *, privacy, budget, key, round_):
        won = self.script.winner(round_, len(scores))
        plan = self.tool.plan(3)
        chosen = self.transcript.shapes if round_ >= plan.rounds else self.transcript.rounds
        assert round_ >= plan.rounds + len(chosen) if chosen is self.transcript.shapes else round_ == len(chosen)
        with recorded() as drawn:  # the real choice, for the scale of its noise
            noisy_max(scores, privacy=privacy, budget=budget, key=key, round_=round_)
        ((scale,),) = drawn.choices().values()
        chosen.append((tuple(scores.tolist()), won, scale))
        self.transcript.add(f"choice {round_} of {len(scores)}", scale, won)
        return won

    def _agreement(self, table, first, second):
        self.products.append(agreement_of(table, first, second))
        return self.products[-1]

    def _signs(self, columns, scale, key, *, part):
        self.transcript.signs.append((self.products, scale))
        self.transcript.add(f"signs of part {part}", scale, len(self.products))
        return self.script.noisy(part, 0, len(self.products)) - self.products

    def _true_table(self, pair, *_):
        """A wrong mechanism: what is expected of further pairs comes from the true tables of the tree."""
        true = next(c for c, noisy, _ in self.transcript.counts if np.array_equal(noisy, pair.noisy.ravel()))
        return true.reshape(pair.noisy.shape) + 1e-3

    def play(self, table: Table, script: Script) -> Transcript:
        name = (tuple(sorted(table)), script)
        if name not in self.seen:
            self.script, self.transcript, self.products = script, Transcript(), []
            width = len(self.tool.domain.factors)
            points = np.array(table, float).reshape(-1, width)
            release = self.tool.release(ArraySource(points, width=width, threads=1), Key.insecure(1))
            self.transcript.layers = release.plan.tree_pairs
            plan = release.plan
            assert (plan.tree_pairs, plan.extra_pairs, plan.agreement_pairs) == self.pairs
            assert release.plan.spent <= EPSILON
            self.seen[name] = self.transcript
        return self.seen[name]


# ------------------------------------------------------------------------------------------------- losses


@cache
def log_law(scores: tuple[int, ...], scale: Fraction) -> np.ndarray:
    return np.log(winners(scores, scale))


def law_of(scores: tuple[int, ...], scale: Fraction) -> np.ndarray:
    """Log of P(i wins): it depends on differences of scores alone."""
    return log_law(tuple(score - min(scores) for score in scores), scale)


SIGNS = [np.array([a * b for a, b in combinations(row, 2)]) for row in product((1, -1), repeat=COLUMNS)]
"""What one row may add to the agreements of all pairs."""


@cache
def fewest_rows(difference: tuple[int, ...], most: int = 4) -> float:
    """The least number of rows of signs that come or go between two lists of agreements; infinite beyond `most`."""
    if not any(difference):
        return 0
    if most == 0 or max(map(abs, difference)) > most:
        return float("inf")
    steps = (tuple(int(x) for x in np.array(difference) + sign * row) for row in SIGNS for sign in (1, -1))
    return 1 + min(fewest_rows(step, most - 1) for step in steps)


def check_steps(one: Transcript, two: Transcript) -> None:
    """Fail with the first step that differs: given what was released, none may depend on the table."""
    if one.steps != two.steps:
        assert_same(two.steps, one.steps, "transcript")


def sign_loss(one: Transcript, two: Transcript, factor: Fraction = Fraction(1)) -> float:
    """The most that agreements tell one from the other: 1 / scale a row, by the lemma that tests/unit/noise checks."""
    total = 0.0
    check_steps(one, two)
    for (c, scale), (d, _) in zip(one.signs, two.signs, strict=True):
        total += fewest_rows(tuple(a - b for a, b in zip(c, d, strict=True))) / float(factor * scale)
    return total


def loss(one: Transcript, two: Transcript, factor: Fraction = Fraction(1)) -> float:
    """log P(transcript | one) / P(transcript | two), with all scales times a factor, without agreements."""
    exact = Fraction(0)
    check_steps(one, two)
    for (c, y, scale), (d, _, _) in zip(one.counts, two.counts, strict=True):
        exact += int(np.abs(y - d).sum() - np.abs(y - c).sum()) / (factor * scale)
    total = float(exact)
    for (s, won, scale), (t, _, _) in zip(one.rounds + one.shapes, two.rounds + two.shapes, strict=True):
        total += float(law_of(s, factor * scale)[won] - law_of(t, factor * scale)[won])
    return total


@cache
def played(
    relation: str,
    people: int = 1,
    *,
    differ: int | None = None,
    true_model: bool = False,
    part: bool = False,
    agreed: bool = False,
    shaped: bool = False,
    at_length: bool = False,
) -> list[tuple[Transcript, Transcript, int]]:
    """Transcripts of neighbouring tables by the same scripts, and the sensitivity that the mechanism counts with.

    `differ` is how many rows per person really has; without it, as many as were promised. With `part`, the pairs are
    those that few rows buy: part of a tree. With `agreed`, all pairs have agreements, with `shaped` resolutions are
    chosen.
    """
    few = people > 1 or true_model or differ or agreed
    scripts, base = FEW if few else SCRIPTS, SHAPED_TABLES if shaped else TABLES
    if at_length:
        base = [table for rows in (1, 2) for table in product(ROWS, repeat=rows)]
    result = []
    with pytest.MonkeyPatch.context() as patch:
        stage = Stage(patch, relation, people, true_model=true_model, part=part, agreed=agreed, shaped=shaped)
        for script, table in product(scripts, base):
            one = stage.play(table, script)
            for other in neighbours_of(table, relation, differ or people, every=9):
                result.append((one, stage.play(other, script), stage.tool.privacy.sensitivity))
    return result


def worst_round(found, *, layer: int, factor: Fraction = Fraction(1)) -> float:
    """The largest log-ratio of a winner in the rounds of a layer, given the earlier transcript, over their budget."""
    worst = 0.0
    for one, two, sensitivity in found:
        cut = slice(one.layers) if layer == 1 else slice(one.layers, None)
        for (s, _, scale), (t, _, _) in zip(one.rounds[cut], two.rounds[cut], strict=True):
            ratio = np.abs(law_of(s, factor * scale) - law_of(t, factor * scale)).max()
            worst = max(worst, float(ratio * scale / (2 * sensitivity)))
    return worst


def worst_shape(found, factor: Fraction = Fraction(1)) -> float:
    """The largest log-ratio of a resolution, given the earlier transcript, over the budget of its choice."""
    worst = 0.0
    for one, two, sensitivity in found:
        for (s, _, scale), (t, _, _) in zip(one.shapes, two.shapes, strict=True):
            ratio = np.abs(law_of(s, factor * scale) - law_of(t, factor * scale)).max()
            worst = max(worst, float(ratio * scale / (2 * sensitivity)))
    return worst


def worst_transcript(found, factor: Fraction = Fraction(1)) -> float:
    """The largest loss of a whole transcript, in either direction, over epsilon."""
    return max(abs(loss(one, two, factor)) + sign_loss(one, two, factor) for one, two, _ in found) / EPSILON


# ------------------------------------------------------------------------------------------------- what is found

CASES = list(product(RELATIONS, (1, 2)))
HARDEST_FIRST = CASES[::-1]
HALF = Fraction(1, 2)


@some(("relation", "people"), 2, CASES)
@pytest.mark.parametrize("layer", [1, 2])
def test_a_round_of_either_layer_costs_at_most_its_budget_and_nearly_all_of_it(relation, people, layer):
    found = played(relation, people)
    assert all(len(one.rounds) == 6 for one, _, _ in found)
    assert {len(scores) for one, _, _ in found for scores, _, _ in one.rounds[one.layers :]} == {1, 2, 3}
    assert 0.6 < worst_round(found, layer=layer) <= 1 + ROUNDING
    assert worst_round(found, layer=layer, factor=HALF) > 1.2, "half the scale is a violation"


@some(("relation", "people"), 2, CASES)
def test_a_whole_transcript_costs_at_most_epsilon_and_nearly_all_of_it(relation, people):
    """Size, columns, tree, tables of the tree, further pairs and their tables: for neighbours of up to two rows."""
    found = played(relation, people)
    assert 0.9 < worst_transcript(found) <= 1 + ROUNDING
    assert worst_transcript(found, HALF) > 1.8, "half of all scales is a violation"


@some(("relation", "people"), 1, HARDEST_FIRST)
def test_part_of_a_tree_costs_at_most_epsilon_and_nearly_all_of_it(relation, people):
    found = played(relation, people, part=True)
    assert all(len(one.rounds) == 2 for one, _, _ in found)
    assert 0.9 < worst_transcript(found) <= 1 + ROUNDING
    assert worst_transcript(found, HALF) > 1.8


@some(("relation", "people"), 1, HARDEST_FIRST)
def test_agreements_cost_at_most_what_is_left_of_epsilon(relation, people):
    found = played(relation, people, agreed=True)
    assert all(len(one.rounds) == 4 for one, _, _ in found)
    assert all([len(agreements) for agreements, _ in one.signs] == [6] for one, _, _ in found)
    assert 0.85 < worst_transcript(found) <= 1 + ROUNDING
    assert worst_transcript(found, HALF) > 1.7


@some(("relation", "people"), 1, HARDEST_FIRST)
def test_agreements_alone_cost_at_most_their_budget_and_all_of_it(relation, people):
    """A person's rows change the agreements as so many rows of signs do, which come or go: never more."""
    found = played(relation, people, agreed=True)
    rows = [(sign_loss(one, two) * float(one.signs[0][1]), sensitivity) for one, two, sensitivity in found]
    assert max(number / sensitivity for number, sensitivity in rows) == pytest.approx(1)


@some(("relation", "people"), 1, CASES)
def test_resolutions_cost_at_most_their_budget_and_a_whole_transcript_epsilon(relation, people):
    """Two usual tables and a finer one, or any other mixture, as scripts have it: 6 or 9 cells."""
    found = played(relation, people, shaped=True)
    assert max(len(one.shapes) for one, _, _ in found) == 3
    assert {won for one, _, _ in found for _, won, _ in one.shapes} == {0, 1}
    assert {len(c) for one, _, _ in found for c, _, _ in one.counts[-3:]} >= {6, 9}
    assert worst_shape(found) <= 1 + ROUNDING
    assert worst_transcript(found) <= 1 + ROUNDING
    if (relation, people) == ("add-remove", 1):
        assert worst_shape(found) == pytest.approx(1), "all of the budget of a choice"
        assert worst_transcript(found, HALF) > 1.2


@pytest.mark.deep
def test_what_is_worth_twice_as_much_for_every_row_is_a_violation():
    """A wrong mechanism: a row changes the worth of a finer table by two, and that of the usual one by as much less."""

    def twice(true, expected, noise, *, clear):
        return (2 if true.size == 9 else -2) * worth(true, expected, 0.1, clear=0.1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(true_pairs, "worth", twice)
        found = played.__wrapped__("add-remove", shaped=True)
    assert worst_shape(found) > 1.2


@pytest.mark.deep
@pytest.mark.parametrize("relation", RELATIONS)
def test_agreements_of_two_rows_of_a_person_who_was_promised_one_are_a_violation(relation):
    found = played(relation, differ=2, agreed=True)
    assert max(sign_loss(one, two) * float(one.signs[0][1]) / sensitivity for one, two, sensitivity in found) > 1.9


@some("relation", 1, RELATIONS)
def test_two_rows_of_a_person_who_was_promised_one_are_a_violation(relation):
    found = played(relation, differ=2)
    assert worst_transcript(found) > 1.8
    assert worst_round(found, layer=2) > 1.2


@some("relation", 1, RELATIONS)
def test_true_tables_behind_the_second_layer_are_a_violation(relation):
    """The tables of the tree without their noise decide what is expected: the first layer keeps its promise, alone."""
    found = played(relation, true_model=True)
    assert worst_round(found, layer=1) <= 1 + ROUNDING
    assert worst_round(found, layer=2) > 1.2


@pytest.mark.deep
@pytest.mark.parametrize("relation", RELATIONS)
def test_all_tables_of_up_to_two_rows_and_all_their_neighbours(relation):
    found = played(relation, at_length=True)
    assert max(worst_round(found, layer=1), worst_round(found, layer=2), worst_transcript(found)) <= 1 + ROUNDING

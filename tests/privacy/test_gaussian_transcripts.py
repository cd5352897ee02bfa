"""What releases with Gaussian noise spend, step by step, on neighbouring tables: never more than rho.

`release` runs as it is, but for the noise: a script says what the noisy counts and the winners are, and the same script
is played to neighbouring tables. The recorder writes down what the noise would have been added to, and at what scale.
Given a transcript, the Renyi divergence of order alpha of every step is known,

    size, columns, tables    N_Z(0, s^2) on counts c and c': alpha |c - c'|_2^2 / (2 s^2)
    winners                  the laws of the exponential mechanism on the recorded scores, directly

and by the filter of docs/proofs/gaussian.md their sum may not pass alpha rho on any transcript.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from differences import assert_same
from privmeasure.domains import Box, Categories, Product
from privmeasure.mechanisms import PMM, ColumnTree, pmm, tree
from privmeasure.mechanisms import columns as column_tree
from privmeasure.mechanisms import pairs as true_pairs
from privmeasure.mechanisms.exponential import exponential_choice
from privmeasure.noise.entropy import Key
from privmeasure.plans import laws
from privmeasure.plans.tuning import GAUSSIAN_TUNED
from privmeasure.privacy import GAUSSIAN, Privacy
from privmeasure.sources.arrays import ArraySource
from reference.drawn import recorded
from reference.total import noisy_total

COLUMNS, EPSILON = 5, 4
ROWS = list(product(range(2), repeat=COLUMNS))[::5]
ORDERS = (1.5, 4.0, 60.0)
RELATIONS = ["add-remove", "replace"]
TABLES = [
    ((0,) * COLUMNS,),
    ((0, 1, 1, 0, 1), (1, 0, 1, 1, 0), (0, 0, 0, 0, 0)),
    ((0,) * COLUMNS,) * 4 + ((1,) * COLUMNS,) * 2,
]


def neighbours_of(table, relation: str, people: int):
    for rows in range(1, people + 1):
        rest = table if relation == "add-remove" else table[rows:]
        if relation == "add-remove" or rows <= len(table):
            for new in combinations_with_replacement(ROWS, rows):
                yield (*rest, *new)


@dataclass
class Transcript:
    counts: list[tuple[np.ndarray, float]] = field(default_factory=list)
    rounds: list[tuple[np.ndarray, float]] = field(default_factory=list)
    steps: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Every step by its name, in order: its scale, and how many numbers it has. No step may depend on the table."""

    def add(self, name: str, scale: float, size: int) -> None:
        self.steps[f"step {len(self.steps)}: {name}"] = scale, size


class Stage:
    """Plays scripts to tables by the real release."""

    def __init__(self, patch: pytest.MonkeyPatch, factor: float = 1.0) -> None:
        self.factor = factor
        for module in (tree, true_pairs):
            patch.setattr(module, "add_noise", self._noise)
        for module in (column_tree, pmm):
            patch.setattr(module, "public_total", partial(noisy_total, self._noise))
        patch.setattr(true_pairs, "exponential_choice", self._winner)
        patch.setattr(laws, "WORTH", 1e9)  # whatever it costs: it is the law that is tried

    def play(self, mechanism, table, seed: int) -> Transcript:
        self.seed, self.transcript = seed, Transcript()
        mechanism.release(ArraySource(np.array(table, float), width=len(table[0]), threads=1), Key.insecure(0))
        return self.transcript

    def _noise(self, counts, level, law, key, part, threads):
        assert type(law).__name__ == "DiscreteGaussian"
        self.transcript.counts.append((np.array(counts, float), float(law.scale) * self.factor))
        self.transcript.add(f"counts of part {part}, level {level}", float(law.scale), len(counts))
        return np.random.default_rng([self.seed, part, level]).integers(-2, 7, len(counts))

    def _winner(self, scores, *, scale, key, round_, part):
        with recorded() as drawn:  # the real choice, for the scale of its scores
            exponential_choice(scores, scale=scale, key=key, round_=round_, part=part)
        ((scale,),) = drawn.choices().values()
        self.transcript.rounds.append((np.array(scores, float), float(scale) * self.factor))
        self.transcript.add(f"choice {round_}", float(scale), len(scores))
        return int(np.random.default_rng([self.seed, 99, round_]).integers(len(scores)))


def loss(one: Transcript, other: Transcript, alpha: float) -> float:
    """The Renyi divergence of the two, in units of alpha: at most rho."""
    total = 0.0
    if one.steps != other.steps:
        assert_same(other.steps, one.steps, "transcript")
    for (c, scale), (d, _) in zip(one.counts, other.counts, strict=True):
        total += ((c - d) ** 2).sum() / (2 * scale**2)
    for (c, scale), (d, _) in zip(one.rounds, other.rounds, strict=True):
        p, q = (np.exp((x - x.max()) / scale) / np.exp((x - x.max()) / scale).sum() for x in (c, d))
        total += math.log((p**alpha * q ** (1 - alpha)).sum()) / (alpha - 1) / alpha
    return total


def worst_loss(stage: Stage, mechanism, tables, relation: str, people: int) -> float:
    worst = 0.0
    for seed in (0, 1):
        for table in tables:
            one = stage.play(mechanism, table, seed)
            for other in neighbours_of(table, relation, people):
                seen = stage.play(mechanism, other, seed)
                for alpha in ORDERS:
                    worst = max(worst, loss(one, seen, alpha), loss(seen, one, alpha))
    return worst / float(mechanism.privacy.budget)


def column_mechanism(relation: str, people: int) -> ColumnTree:
    tuning = replace(GAUSSIAN_TUNED, agreement_rows=1e-6)  # however few the rows are
    domain, privacy = Product([Categories(2)] * COLUMNS), Privacy(EPSILON, relation, people, delta=1e-6)
    made = ColumnTree(domain, privacy, tuning=tuning)
    assert made.law == made.plan(3).law == GAUSSIAN
    assert made.plan(3).rounds > 0
    assert made.plan(3).agreement_pairs == 10
    return made


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("people", [1, 2])
def test_a_release_of_columns_spends_at_most_rho_and_most_of_it(relation, people, monkeypatch):
    stage = Stage(monkeypatch)
    tables = TABLES if people == 1 else [TABLES[0], TABLES[2]]
    assert 0.6 < worst_loss(stage, column_mechanism(relation, people), tables, relation, people) <= 1 + 1e-9


@pytest.mark.parametrize("relation", RELATIONS)
def test_half_the_noise_of_columns_is_caught(relation, monkeypatch):
    stage = Stage(monkeypatch, factor=0.5)
    assert worst_loss(stage, column_mechanism(relation, 1), TABLES[:1], relation, 1) > 1.5


def agreement_loss(monkeypatch, relation: str, people: int) -> float:
    """The largest divergence of the agreements alone, which come last, over their budget."""
    stage, mechanism, worst = Stage(monkeypatch), column_mechanism(relation, people), 0.0
    for table in TABLES:
        one = Transcript(counts=stage.play(mechanism, table, 0).counts[-1:])
        for other in neighbours_of(table, relation, people):
            worst = max(worst, loss(one, Transcript(counts=stage.play(mechanism, other, 0).counts[-1:]), 4.0))
    assert len(one.counts[0][0]) == 10
    return worst / float(mechanism.plan(3).agreements_budget)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("people", [1, 2])
def test_agreements_spend_at_most_their_part_and_most_of_it(relation, people, monkeypatch):
    assert 0.5 < agreement_loss(monkeypatch, relation, people) <= 1 + 1e-9


def test_agreements_with_the_noise_of_counts_are_caught(monkeypatch):
    """A row that is replaced moves a sum by 2, and two counts by 1 each: less, where squares add up."""
    monkeypatch.setattr(Privacy, "sum_scale", Privacy.scale)
    assert agreement_loss(monkeypatch, "replace", 1) > 1.1


def test_forgotten_rows_per_person_are_caught(monkeypatch):
    stage = Stage(monkeypatch)
    assert worst_loss(stage, column_mechanism("add-remove", 1), TABLES[:1], "add-remove", 2) > 1.5


def test_taking_the_sensitivity_of_adding_for_that_of_replacing_is_caught(monkeypatch):
    """Under "replace" the squared sensitivity is twice that of "add-remove"; the number of rows must stay the same."""
    stage = Stage(monkeypatch)
    made = column_mechanism("replace", 1)
    monkeypatch.setattr(Privacy, "squared_sensitivity", property(lambda self: self.rows_per_person**2))
    monkeypatch.setattr(Privacy, "sensitivity", property(lambda self: self.rows_per_person))
    assert worst_loss(stage, made, TABLES[:2], "replace", 1) > 1.2


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_one_tree_spends_at_most_rho_and_nearly_all_of_it(relation, factor, monkeypatch):
    stage = Stage(monkeypatch, factor)
    mechanism = PMM(Box([(0, 1)]), Privacy(EPSILON, relation, delta=1e-6), depth=6)
    assert mechanism.law == GAUSSIAN
    points = ((0.01,), (0.3,), (0.95,))
    worst = 0.0
    for seed in (0, 1):
        one = stage.play(mechanism, points, seed)
        for new in (0.0, 0.4, 0.97):
            other = (*points, (new,)) if relation == "add-remove" else (*points[1:], (new,))
            worst = max(worst, loss(one, stage.play(mechanism, other, seed), 2.0))
    worst /= float(mechanism.privacy.budget)
    assert 0.9 < worst <= 1 + 1e-9 if factor == 1 else worst > 1.5


def test_the_budgets_of_every_plan_stay_below_rho():
    """Exact fractions, for many sizes, relations and columns; the sum is checked where a file is read as well."""
    for relation in RELATIONS:
        for columns in (4, 12, 40):
            made = ColumnTree(Product([Categories(5)] * columns), Privacy(1, relation, delta=1e-6))
            for rows in (1, 100, 10**4, 10**6):
                plan = made.plan(rows)
                assert isinstance(plan.spent, Fraction)
                assert plan.spent <= made.privacy.budget
                assert type(plan).from_json(plan.to_json()) == plan

"""An audit from below, from the outside: does the whole public API keep its promise on real runs?

The API is run many times, with fresh keys, on two neighbouring tables that differ in one canary. An event of the
synthetic points (the canary's cell holds a point) happens k times in N runs on one table and l times on the other. With
exact (Clopper-Pearson) bounds of the two probabilities, log(lower / upper) is, but for a stated error, a lower bound of
the true privacy loss. Above epsilon it proves that the promise is broken; below it proves nothing, but a mistake that
only the enumeration of small trees could miss (a key used twice, noise that is not added) would show here.

`ALARM` is the chance that this file rejects a correct mechanism, all of its audits, events and directions together.
Each audit is also shown to reject noise of a quarter of its scale.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import beta

from depth import some
from privmeasure import Box, Recipe, Synthesizer
from privmeasure.mechanisms import base, tree
from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import Key

ALARM = 1e-6
CELLS = 4


@dataclass(frozen=True)
class Audit:
    """Two neighbouring tables, as counts of the four cells, and how they are protected."""

    neighbours: str
    recipe: Recipe
    tables: tuple[tuple[int, ...], tuple[int, ...]]
    epsilon: float = 1.0
    rows_per_person: int = 1

    def __str__(self) -> str:
        recipe = f"{self.recipe.schedule}/{self.recipe.inference}/{self.recipe.rule}"
        return f"{self.neighbours} {recipe} {self.tables}"


DEFAULT, PAPER = Recipe(), Recipe("every level", "none", "uniform")
AUDITS = [
    Audit("replace", DEFAULT, ((3, 0, 0, 1), (4, 0, 0, 0))),
    Audit("add-remove", DEFAULT, ((2, 0, 0, 1), (2, 0, 0, 0)), epsilon=2),
    Audit("add-remove", PAPER, ((2, 0, 0, 2), (2, 0, 0, 0)), epsilon=2, rows_per_person=2),
]
SLOW_AUDITS = [
    *AUDITS,
    Audit("replace", PAPER, ((6, 0, 0, 1), (7, 0, 0, 0)), epsilon=2),
    Audit("replace", Recipe("every level", "blue"), ((8, 0, 0, 1), (9, 0, 0, 0)), epsilon=2),
    Audit("replace", Recipe(inference="none", rule="proportional"), ((4, 0, 0, 1), (5, 0, 0, 0))),
    Audit("add-remove", Recipe("every level", "blue"), ((0, 0, 0, 1), (0, 0, 0, 0)), epsilon=2),
]

Event = Callable[[np.ndarray], np.ndarray]
EVENTS: list[Event] = [
    lambda held: held[:, 3] >= 1,
    lambda held: held[:, 3] >= 2,
    lambda held: (held[:, 3] >= 1) & (held[:, 2] == 0),
    lambda held: (held[:, 3] >= 1) & (held[:, 3] == held.sum(axis=1) - held[:, 0]),
    lambda held: held.sum(axis=1) >= 3,
    lambda held: held[:, 0] == held.sum(axis=1),
]


def run(audit: Audit, table: tuple[int, ...], runs: int) -> np.ndarray:
    """Return how many synthetic points each cell holds, run by run."""
    points = (np.repeat(np.arange(CELLS), table) + 0.5) / CELLS
    held = np.empty((runs, CELLS), np.int64)
    box = Box([(0, 1)])
    for i in range(runs):
        synthesizer = Synthesizer(
            box,
            epsilon=audit.epsilon,
            neighbours=audit.neighbours,
            rows_per_person=audit.rows_per_person,
            recipe=audit.recipe,
            depth=2,
            threads=1,
        )
        synthetic = synthesizer.fit(points).sample(order="cell")
        held[i] = np.bincount((synthetic[:, 0] * CELLS).astype(int), minlength=CELLS)
    return held


def proved_loss(audit: Audit, runs: int, alarm: float) -> float:
    """Return a lower bound of the privacy loss; it is too large with a chance of at most `alarm`."""
    each = alarm / (4 * len(EVENTS))  # two bounds, two directions, every event
    first, second = (run(audit, table, runs) for table in audit.tables)
    loss = -math.inf
    for event in EVENTS:
        hits = [int(event(held).sum()) for held in (first, second)]
        for k, other in (hits, hits[::-1]):
            lower = beta.ppf(each, k, runs - k + 1) if k > 0 else 0.0
            upper = beta.ppf(1 - each, other + 1, runs - other) if other < runs else 1.0
            loss = max(loss, math.log(lower / upper) if lower > 0 else -math.inf)
    return loss


@pytest.fixture
def quarter_noise(monkeypatch):
    for module in (base, tree):
        monkeypatch.setattr(module, "law_of", lambda name, scale: law_of(name, scale / 4))


@some("audit", 1, AUDITS, ids=str)
def test_no_canary_is_betrayed(audit):
    assert proved_loss(audit, 800, ALARM / (2 * len(AUDITS))) <= audit.epsilon


@some("audit", 1, AUDITS, ids=str)
@pytest.mark.usefixtures("quarter_noise")
def test_a_quarter_of_the_noise_betrays_the_canary(audit):
    assert proved_loss(audit, 800, ALARM) > audit.epsilon


@pytest.mark.deep
@pytest.mark.parametrize("audit", SLOW_AUDITS, ids=str)
def test_no_canary_is_betrayed_in_many_runs(audit):
    loss = proved_loss(audit, 6_000, ALARM / (2 * len(SLOW_AUDITS)))
    assert 0.15 * audit.epsilon < loss <= audit.epsilon  # and the audit is not blind


@pytest.mark.deep
@pytest.mark.parametrize("audit", SLOW_AUDITS, ids=str)
@pytest.mark.usefixtures("quarter_noise")
def test_a_quarter_of_the_noise_betrays_the_canary_in_many_runs(audit):
    assert proved_loss(audit, 1_500, ALARM) > 1.1 * audit.epsilon


def distinct_releases(runs: int) -> int:
    points = np.linspace(0, 1, 64)
    make = lambda: Synthesizer(Box([(0, 1)]), epsilon=1, neighbours="replace", depth=6, threads=1)  # noqa: E731
    return len({make().fit(points).release_.mass.tobytes() for _ in range(runs)})


def test_every_release_has_noise_of_its_own(monkeypatch):
    """64 cells with noise of scale 2: two equal releases in 50 have a chance far below `ALARM`."""
    assert distinct_releases(50) == 50
    monkeypatch.setattr(Key, "fresh", classmethod(lambda cls, release_id: cls(bytes(32), private=True)))
    assert distinct_releases(50) == 1

"""The noise of whole releases, written down where it is drawn: its positions, its scales, and what they cost together.

Every mechanism, both relations, one and three rows of a person, with and without a delta.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privmeasure.domains import Box, Categories, Integers, Nullable, Product
from privmeasure.mechanisms import PMM, PSMM, ColumnTree, tree
from privmeasure.mechanisms.choice import PART
from privmeasure.mechanisms.exponential import exponential_choice
from privmeasure.mechanisms.pairs import AGREEMENTS
from privmeasure.noise.entropy import Key
from privmeasure.plans import laws
from privmeasure.plans.recipe import Recipe
from privmeasure.plans.tuning import GAUSSIAN_TUNED, TUNED
from privmeasure.privacy import Privacy
from privmeasure.sources.arrays import ArraySource
from reference.drawn import CHOICE, COUNTS, SIGNS, Drawn, recorded

ROWS = 3000
LINE, SQUARE = Box([(0, 1)]), Box([(0, 1), (0, 1)])
TABLE = Product([Box([(0, 1)]), Integers(0, 60), Categories(5), Nullable(Categories(3)), Categories(40), Categories(1)])
PAIRS = {"selection_share": 0.03, "least_rows": 1e-6}
SIGN_SUMS = PAIRS | {"most_extra": 0.25, "agreement_share": 0.1, "agreement_rows": 1e-6}


def table(rows: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    x = rng.random(rows) ** 2
    age = np.rint(60 * x)
    missing = np.where(x < 0.1, np.nan, age % 3)
    return np.column_stack([x, age, age // 15, missing, np.rint(39 * x), np.zeros(rows)])


def columns(privacy: Privacy, tuned=SIGN_SUMS, **options) -> ColumnTree:
    tuning = replace(GAUSSIAN_TUNED if privacy.delta else TUNED, **tuned)
    return ColumnTree(TABLE, privacy, tuning=tuning, threads=1, **options)


@dataclass(frozen=True)
class Case:
    make: object
    domain: object

    def release(self, privacy: Privacy, *, rows: int = ROWS, words: bool = False, seed: int = 1):
        """Return the mechanism, its release and what was drawn for it."""
        mechanism = self.make(privacy)
        points = table(rows)[:, : self.domain.width]
        with recorded(words=words) as drawn:
            released = mechanism.release(ArraySource(points, width=self.domain.width, threads=1), Key.insecure(seed))
        return mechanism, released, drawn


CASES = {
    "tree": Case(lambda p: PMM(LINE, p, threads=1), LINE),
    "tree of a public number of rows": Case(lambda p: PMM(SQUARE, p, rows=ROWS, threads=1), SQUARE),
    "paper": Case(lambda p: PMM.paper(LINE, p, threads=1), LINE),
    "sparse": Case(lambda p: PMM(SQUARE, p, Recipe("sparse", "none", "uniform"), threads=1), SQUARE),
    "lazy": Case(lambda p: PMM(LINE, p, Recipe("sparse", "none"), depth=14, max_cells=64, threads=1), LINE),
    "lazy paper": Case(lambda p: PMM.paper(LINE, p, depth=9, max_cells=64, threads=1), LINE),
    "flat": Case(lambda p: PSMM(LINE, p, threads=1), LINE),
    "flat with a depth": Case(lambda p: PSMM(SQUARE, p, depth=6, threads=1), SQUARE),
    "columns": Case(columns, TABLE),
    "columns without sign correlations": Case(lambda p: columns(p, PAIRS), TABLE),
    "columns with targets": Case(lambda p: columns(p, targets=(3,)), TABLE),
}
PROMISES = [
    Privacy(2, relation, people, delta=delta)
    for relation, people, delta in product(("add-remove", "replace"), (1, 3), (0, 1e-6))
]


@pytest.fixture(autouse=True)
def gaussian(monkeypatch):
    """A delta means Gaussian noise here, whatever noise would be chosen: it is the noise that is looked at."""
    monkeypatch.setattr(laws, "WORTH", 1e9)


def levels_of(released, drawn: Drawn) -> dict[tuple[int, int], Fraction]:
    """Return the scales that the plan states, by part and level, and those of the pairs that were chosen."""
    plan = released.plan
    if hasattr(plan, "levels"):
        return {(0, level): scale for level, scale in zip(plan.levels, plan.scales, strict=True)}
    stated = {(0, 0): plan.privacy.scale(plan.size_budget)} if plan.size_budget else {}
    for j, column in enumerate(plan.columns):
        stated |= {(1 + j, level): scale for level, scale in zip(column.levels, column.scales, strict=True) if level}
    layers = (
        (released.pairs[: plan.tree_pairs], plan.tree_budget),
        (released.pairs[plan.tree_pairs :], plan.extra_budget),
    )
    place = 1 + len(plan.columns)
    for pairs, budget in layers:
        chosen = [len(drawn.cells(place + i, 0)) for i in range(len(pairs))]
        for pair, scale in zip(pairs, plan.pair_scales(budget, chosen) if pairs else [], strict=True):
            assert pair.scale == scale
            stated[place, 0] = scale
            place += 1
    if plan.agreement_pairs and plan.privacy.delta:
        stated[AGREEMENTS, 0] = plan.agreement_scale
    return stated


@pytest.mark.parametrize("name", CASES)
def test_drawn_scales_are_those_of_the_plan_and_cost_the_whole_budget_at_most(name):
    for privacy in PROMISES:
        mechanism, released, drawn = CASES[name].release(privacy)
        plan, budget = released.plan, mechanism.privacy.budget
        assert drawn.scales() == levels_of(released, drawn), (privacy, "scales")
        samplers = {draw.sampler for draw in drawn.draws} - {"exponential", "signs"}
        assert samplers == {"DiscreteGaussian" if privacy.delta else "DiscreteLaplace"}, privacy
        assert plan.spent == budget, (privacy, "nothing is left over")
        cost, planned = drawn.cost(mechanism.privacy), plan.spent
        if getattr(plan, "shape_budget", 0) and len(drawn.choices()) == plan.rounds:  # no table had a choice to make
            planned -= plan.shape_budget * len(released.pairs)
        if privacy.delta:  # scales are rounded up to a ladder of 256 steps an octave
            assert 0.97 < cost / planned <= 1, privacy
        else:
            assert cost == planned, privacy


def test_the_cases_draw_in_every_step_of_columns():
    """The size, columns, choices of pairs and of resolutions, tables, further tables and sign correlations."""
    for delta in (0, 1e-6):
        uses, further, shaped = set(), 0, 0
        for name in ("columns", "columns without sign correlations"):
            _, released, drawn = CASES[name].release(Privacy(2, "add-remove", delta=delta))
            uses |= {draw.use for draw in drawn.draws} | {AGREEMENTS for d in drawn.draws if d.part == AGREEMENTS}
            further += released.plan.extra_pairs
            shaped += len(drawn.choices()) - released.plan.rounds
            assert (0, 0) in drawn.scales()
        assert uses == {COUNTS, CHOICE, AGREEMENTS} | (set() if delta else {SIGNS})
        assert further > 0
        assert shaped > 0


def test_noise_of_half_the_scale_is_caught(monkeypatch):
    """The check can fail, wherever a scale is made."""
    real = Privacy.scale
    monkeypatch.setattr(Privacy, "scale", lambda self, budget: real(self, budget) / 2)
    mechanism, _, drawn = CASES["tree"].release(Privacy(2, "replace"))
    assert drawn.cost(mechanism.privacy) == 2 * mechanism.privacy.budget


def test_the_released_number_of_rows_is_far_better_than_the_first_noisy_one():
    """It is estimated from all measured levels: the first number alone errs by the scale of its noise, here 64."""
    points, errors = np.linspace(0, 1, 500)[:, np.newaxis], []
    for seed in range(60):
        source = ArraySource(points, width=1, threads=1)
        release = PMM(LINE, Privacy(1, "add-remove"), threads=1).release(source, Key.insecure(seed))
        errors.append(abs(release.total - 500))
    assert release.plan.scales[0] == 64
    assert np.mean(errors) < 0.3 * 64


# ------------------------------------------------------------------------------------------------------ positions

DEEP = {
    "a whole tree of 20 levels": (
        Case(lambda p: PMM(LINE, p, Recipe("every level", "none"), depth=20, threads=1), LINE),
        20,
    ),
    "a lazy tree of 30 levels": (Case(lambda p: PMM(LINE, p, Recipe("sparse", "none"), depth=30, threads=1), LINE), 30),
    "a flat release": (Case(lambda p: PSMM(SQUARE, p, depth=14, threads=1), SQUARE), 14),
    "deep columns": (Case(columns, TABLE), None),
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_two_draws_of_a_release_share_a_random_word(name, relation):
    case, depth = DEEP[name]
    _, released, drawn = case.release(Privacy(8, relation), rows=200 if depth else 10**5, words=True)
    assert drawn.shared_words() == []
    places = {(draw.part, draw.level) for draw in drawn.draws if draw.use == COUNTS}
    assert places == set(levels_of(released, drawn))
    if depth:
        plan = released.plan
        assert max(plan.levels) == depth
        assert {level for _, level in places} == set(plan.levels)
        if plan.evaluation != "lazy":
            assert all(len(drawn.cells(0, level)) == 1 << level for level in plan.levels)
    else:
        assert max(level for _, level in places) > 8


@pytest.mark.parametrize("people", [1, 3])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_no_two_draws_of_any_mechanism_share_a_random_word(delta, people):
    for name, case in CASES.items():
        _, _, drawn = case.release(Privacy(2, "add-remove", people, delta=delta), words=True)
        assert drawn.shared_words() == [], name


def test_no_two_tries_of_a_choice_share_a_random_word():
    """Scores far apart and a large scale: many binary digits of a gap are asked, each at a position of its own."""
    scores = np.array([0, 2**20 + 2**19 + 2**18 + 5, 2**20 + 77])
    with recorded(words=True) as drawn:
        exponential_choice(scores, scale=Fraction(10**6), key=Key.insecure(2), round_=0, part=PART)
    assert len(drawn.draws) == 1
    for (part, level, attempt), read in drawn.words.items():
        cells = np.concatenate([cells for _, cells in read])
        assert len(np.unique(cells)) == len(cells), (part, level, attempt)


def test_levels_that_share_their_noise_are_caught(monkeypatch):
    """The check can fail: here the levels 16 and 18 have the noise of the total and of level 2."""
    real = tree.add_noise
    monkeypatch.setattr(tree, "add_noise", lambda counts, level, *rest: real(counts, level % 16, *rest))
    case, _ = DEEP["a whole tree of 20 levels"]
    _, _, drawn = case.release(Privacy(8, "add-remove"), rows=10, words=True)
    assert drawn.shared_words()

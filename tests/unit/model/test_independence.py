"""Which columns stand alone: links of independent columns are recognized, and dependence is."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from privmeasure.model.agreements import Agreements
from privmeasure.model.independence import SIMULATED_LINKS, agreement_scores, depends, table_scores, unlinked
from privmeasure.model.pairs import Pair
from privmeasure.noise.law import GAUSSIAN, LAPLACE, LawName, facts_of

ALPHA = 1e-6
ROWS, RUNS = 3000, 300


def measured(
    shape: tuple[int, int], law: LawName, scale: int, run: int, *, lean: float = 0.0, wrong: float = 1.0, at: int = 1
) -> tuple[Pair, np.ndarray, np.ndarray]:
    """Return a noisy table of some rows, whose columns lean towards each other, and margins with errors."""
    rng = np.random.default_rng((run, *shape))
    p, q = (rng.dirichlet(np.full(side, 2.0)) for side in shape)
    shares = (1 - lean) * np.outer(p, q)
    shares[np.arange(min(shape)), np.arange(min(shape))] += lean / min(shape)
    table = rng.multinomial(ROWS, shares.ravel()).reshape(shape)
    noise = facts_of(law, Fraction(wrong) * scale).simulated(rng, table.size).reshape(shape)
    one, two = (np.maximum(table.sum(axis=a) + rng.normal(0, 5, shape[1 - a]), 0.0) for a in (1, 0))
    one, two = one * ROWS / one.sum(), two * ROWS / two.sum()
    return Pair(0, at, np.arange(shape[0]), np.arange(shape[1]), table + noise, Fraction(scale), law), one, two


def measured_links(count: int, *where: object, **how: float) -> int:
    """Return how many of some tables join their columns."""
    return sum(not unlinked(2, {(0, 1): table_scores(*measured(*where, run, **how))}) for run in range(count))  # type: ignore[arg-type]


def fits(linked: int) -> bool:
    """Say whether so many links among independent columns are likely, with 5 % expected."""
    return bool(binom.cdf(linked, RUNS, 0.05) > ALPHA / 2 and binom.sf(linked - 1, RUNS, 0.05) > ALPHA / 2)


@pytest.mark.parametrize(
    ("shape", "law", "scale"),
    [((2, 2), LAPLACE, 40), ((3, 8), GAUSSIAN, 30), ((6, 6), LAPLACE, 40), ((6, 6), LAPLACE, 2)],
)
def test_independent_columns_are_recognized_in_19_of_20_cases(shape: tuple[int, int], law: LawName, scale: int) -> None:
    """Also if the noise is so small that most of what differs is that rows scatter."""
    assert fits(measured_links(RUNS, shape, law, scale))


@pytest.mark.parametrize("wrong", [0.6, 1.5])
def test_another_noise_than_the_stated_one_is_noticed(wrong: float) -> None:
    assert not fits(measured_links(RUNS, (6, 6), LAPLACE, 40, wrong=wrong))


@pytest.mark.parametrize(("shape", "scale"), [((2, 2), 40), ((6, 6), 40), ((3, 8), 30), ((40, 40), 4)])
def test_strongly_dependent_columns_are_always_linked(shape: tuple[int, int], scale: int) -> None:
    assert measured_links(15, shape, LAPLACE, scale, lean=0.8) == 15


def test_a_column_with_many_links_is_recognized_as_often() -> None:
    """A target has a link to every column: with a test for each of 12, half of the targets would be called linked."""
    linked, runs = 0, 80
    for run in range(runs):
        links = {(0, j): table_scores(*measured((3, 3), LAPLACE, 40, 1000 * run + j, at=j)) for j in range(1, 13)}
        linked += 0 not in unlinked(13, links)
    assert linked < binom.ppf(1 - ALPHA, runs, 0.05)


def test_sign_correlations_link_columns_if_the_model_follows_them() -> None:
    margins = [np.array([500.0, 500.0])] * 3
    halves = (np.array([0, 1]),) * 3
    agreements = Agreements(((0, 1), (0, 2), (1, 2)), halves, np.array([900, 10, 800]), Fraction(20), GAUSSIAN)
    scores = agreement_scores(agreements, margins, tables={(1, 2)}, followed={(0, 1), (1, 2)})
    assert set(scores) == {(0, 1), (0, 2)}
    assert scores[0, 1][0] > 10
    assert scores[0, 2][0] == -np.inf
    assert scores[0, 1].shape == (SIMULATED_LINKS + 1,)
    assert unlinked(3, scores) == (2,)
    assert unlinked(3, agreement_scores(agreements, margins, tables=(), followed=())) == (0, 1, 2)


def test_columns_without_links_stand_alone_unless_something_else_joins_them() -> None:
    assert unlinked(4, {}) == (0, 1, 2, 3)
    assert unlinked(4, {}, joined=[(1, 3)]) == (0, 2)


def test_a_table_that_was_shrunk_to_independence_shows_nothing() -> None:
    assert not depends(np.outer([1.0, 2.0, 3.0], [0.1, 0.9]) * 1000)
    assert depends(np.outer([1.0, 2.0], [0.5, 0.5]) + np.array([[0.1, -0.1], [-0.1, 0.1]]))

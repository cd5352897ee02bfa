"""Tuning: what is refused, what no value can break, and what each field changes."""

from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

from depth import some
from privmeasure.domains import Box, Categories, Integers, Nullable, Product
from privmeasure.errors import ArgumentError
from privmeasure.mechanisms import ColumnTree
from privmeasure.noise.entropy import Key
from privmeasure.plans.tuning import TUNED, Tuning
from privmeasure.privacy import Privacy
from privmeasure.releases.load import load
from privmeasure.sources.arrays import ArraySource

HALF = Fraction(1, 2)
DOMAIN = Product(
    [Box([(0, 1)]), Integers(0, 500), Categories(5), Nullable(Categories(3)), Box([(0, 1), (0, 1)]), Categories(90)]
)
OTHER = {
    "size_share": HALF,
    "usual_rows": 10.0,
    "columns_share": (0.6, 0.7, 0.8),
    "columns_slope": 0.0,
    "selection_share": 0.1,
    "split_power": 1.0,
    "coarse_level": 2,
    "coarse_share": HALF,
    "rows_per_cell": 1,
    "deepest_level": 6,
    "deepest_joint_level": 2,
    "tree_rows": 50,
    "extra_rows": 50,
    "extra_weight": Fraction(1),
    "fewest_pairs": Fraction(4, 5),
    "narrow_pairs": 5,
    "pair_rows": 10**6,
    "least_rows": 10**6,
    "most_extra": 0.5,
    "most_groups": 8,
    "longest_list": 2,
    "list_room": 1,
    "pair_power": 0.0,
    "agreement_share": 0.2,
    "agreement_rows": 500,
    "whole_blocks": False,
    "clear": 1.0,
    "score_side": 4,
    "shape_share": HALF,
    "finer_clear": 0.1,
    "noise_price": 50.0,
}
"""A value for every field that changes the release of the table below, one at a time."""
BEYOND = {
    "fewest_pairs": replace(TUNED, pair_rows=10**6),
    "narrow_pairs": replace(TUNED, pair_rows=10**6),
    "pair_rows": replace(TUNED, fewest_pairs=Fraction(1, 5)),
    "agreement_rows": replace(TUNED, most_extra=0.5),
}
"""Where a field is without effect by itself: the tuning that it is changed in."""


def points(rows=20_000):
    rng = np.random.default_rng(7)
    x = rng.beta(2, 8, rows)
    whole = np.rint(500 * x * rng.random(rows))
    kind = np.minimum((8 * x).astype(int), 4)
    maybe = np.where(rng.random(rows) < 0.2, np.nan, (kind + rng.integers(0, 2, rows)) % 3)
    return np.column_stack(
        [x, whole, kind, maybe, rng.random(rows), x, (9 * x).astype(int) * 10 + rng.integers(0, 9, rows)]
    )


def release(tuning, epsilon=1):
    tool = ColumnTree(DOMAIN, Privacy(epsilon, "add-remove"), tuning=tuning)
    return tool.release(ArraySource(points(), width=DOMAIN.width), Key.insecure(3))


def content(measure):
    """All that a release says."""
    masses = [(column.cells.tolist(), column.mass.tolist()) for column in measure.columns]
    pairs = [(pair.first, pair.second, pair.noisy.tolist()) for pair in measure.pairs]
    agreements = measure.agreements and (measure.agreements.names, measure.agreements.noisy.tolist())
    return masses, [groups.tolist() for groups in measure.ranks], pairs, agreements


def test_every_field_has_another_value_here():
    assert list(OTHER) == [field.name for field in fields(Tuning)]


@some("name", 8, OTHER)
def test_every_field_reaches_the_release_which_spends_the_same(name):
    usual = BEYOND.get(name, TUNED)
    epsilon = 4 if name in ("most_groups", "clear", "whole_blocks") else 1
    measure = release(replace(usual, **{name: OTHER[name]}), epsilon)
    assert content(measure) != content(release(usual, epsilon))
    assert measure.plan.spent <= measure.plan.privacy.epsilon


def test_a_file_needs_no_tuning_to_give_the_same_rows(tmp_path):
    measure = release(replace(TUNED, **{name: value for name, value in OTHER.items() if "rows" not in name}), 4)
    assert measure.plan.extra_pairs > 0
    measure.save(tmp_path / "release.parquet")
    again = load(tmp_path / "release.parquet")
    assert np.array_equal(again.sample(seed=0), measure.sample(seed=0), equal_nan=True)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("size_share", Fraction(1)),
        ("size_share", 0.5),
        ("coarse_share", Fraction(0)),
        ("coarse_share", 0.5),
        ("extra_weight", Fraction(0)),
        ("fewest_pairs", Fraction(6, 5)),
        ("columns_share", (0.5, 0.4, 0.6)),
        ("columns_share", (0.5, 0.6, 0.95)),
        ("selection_share", 0.0),
        ("columns_slope", float("nan")),
        ("pair_power", 1.5),
        ("agreement_share", 1.0),
        ("agreement_rows", 0.0),
        ("most_extra", -1.0),
        ("most_extra", 14.0),
        ("clear", 0.0),
        ("least_rows", float("inf")),
        ("coarse_level", 2.5),
        ("most_groups", 1),
        ("score_side", 257),
    ],
)
def test_what_would_break_a_plan_is_refused(name, bad):
    with pytest.raises(ArgumentError, match=name):
        replace(TUNED, **{name: bad})

"""Conditions and facts about columns of one group: the law of the rows, and that no row breaks a fact.

Statistical tests have fixed seeds. Each rejects at 1e-6, and rejects a law that is nearly right.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import privmeasure as pm
from privmeasure.conditions.sets import Condition, Fact
from privmeasure.domains import Box, Categories, Domain, Floats, Integers, Nullable, Points, Product
from privmeasure.errors import NoRowsError, SchemaError
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.releases.table import TableRelease
from privmeasure.tables import Boolean, Category, Integer, Number, Schema
from privmeasure.tables.facts import forbidden_pairs

KINDS = ["a", "b", "c", "d", "e"]
COLUMNS: dict[str, Any] = {
    "age": Integer(0, 99, nullable=True),
    "kind": Category(KINDS),
    "smoker": Boolean(),
    "x": Number(0, 1),
}
GROUP = ("age", "kind")


def people(n: int = 4000) -> pa.Table:
    rng = np.random.default_rng(0)
    age = np.clip(rng.gamma(3, 10, n), 0, 99).astype(int)
    kind = np.array(KINDS)[rng.choice(5, n, p=[0.45, 0.3, 0.2, 0.045, 0.005])]
    smoker = rng.random(n) < np.where(kind == "a", 0.6, 0.2)
    return pa.table({
        "age": pa.array(age, mask=rng.random(n) < 0.1), "kind": kind, "smoker": smoker, "x": rng.random(n)
    })  # fmt: skip


def released(*, epsilon: float = 2, mechanism: Any = "columns", table: pa.Table | None = None, **schema: Any) -> Any:
    declared = Schema(COLUMNS, groups=[GROUP], **schema)
    synthesizer = pm.Synthesizer(declared, epsilon=epsilon, neighbours="add-remove", mechanism=mechanism)
    release = synthesizer.fit(people() if table is None else table, insecure_seed=1)._release
    assert isinstance(release, TableRelease)
    return release


@pytest.fixture(scope="module")
def measure() -> ColumnsMeasure:
    measure = released(epsilon=0.02).measure
    assert isinstance(measure, ColumnsMeasure)
    column = measure.columns[0]
    cells = np.unique(column.domain.locate(grid(), column.level))
    assert len(cells) < 250, "cells hold several ages"
    return measure


def grid() -> Points:
    """Return all points of the group, a row each: ages (NaN last) by kinds."""
    ages, kinds = np.meshgrid(np.append(np.arange(100.0), np.nan), np.arange(5.0), indexing="ij")
    return np.column_stack([ages.ravel(), kinds.ravel()])


def places(rows: Points) -> Floats:
    """Return how often each point of the grid occurs among rows."""
    age = np.where(np.isnan(rows[:, 0]), 100, rows[:, 0])
    return np.bincount((age * 5 + rows[:, 1]).astype(int), minlength=505).astype(float)


def law_of(measure: ColumnsMeasure, fine: Any = None, meant: Any = None, *, keep: bool = True) -> Floats:
    """Return the exact law on the grid, of released cells that are spread over their `fine` points, given `meant`.

    A cell keeps its mass if it has a fine point; else (or all the time, not `keep`) what is not fine is lost.
    """
    column, points = measure.columns[0], grid()
    fine = np.ones(len(points), bool) if fine is None else fine
    cells = column.domain.locate(points, column.level).view(np.int64)
    sizes = np.bincount(cells, weights=fine if keep else None, minlength=1 << column.level)
    law = measure.masses[0][cells] / np.maximum(sizes[cells], 1) * fine
    law = law if meant is None else law * meant
    return np.asarray(law / law.sum())


def fits(counts: Floats, law: Floats) -> float:
    """Return the p-value of a chi-square test; points that are expected less than 5 times are put together."""
    assert counts[law == 0].sum() == 0
    expected = law * counts.sum()
    few = (expected < 5) & (law > 0)
    have, want = counts[expected >= 5], expected[expected >= 5]
    if expected[few].sum() > 5:
        have, want = np.append(have, counts[few].sum()), np.append(want, expected[few].sum())
    return float(stats.chisquare(have, want * have.sum() / want.sum()).pvalue)


# ------------------------------------------------------------------------------------------------------- conditions

AGES, KIND = Condition(0, 0, ((3.0, 5.0), (20.0, 61.0))), Condition(0, 1, ((1.0, 2.0), (4.0, 4.0)))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("coordinate", [0, 1])
@pytest.mark.parametrize(
    "space",
    [
        Product([Integers(0, 9), Categories(7)]),
        Product([Nullable(Integers(0, 9)), Nullable(Box([(0, 10)]))], weights=[1, 0.7]),
        Product([Nullable(Categories(7)), Product([Nullable(Box([(0, 10)])), Categories(2)])]),
        Nullable(Product([Box([(0, 10)]), Categories(7)])),
        Box([(0, 10), (0, 10)]),
    ],
)
def test_cells_of_a_group_that_are_meant(space: Domain, coordinate: int, missing: bool) -> None:
    asked, rng = Condition(0, coordinate, ((3.0, 5.5),), missing), np.random.default_rng(0)
    for level in range(12):
        possible, certain = asked.cells(space, level)
        codes = np.arange(1 << level, dtype=np.uint64)
        codes = np.repeat(codes[space.exists(codes, level)], 20)
        held = asked.holds(space.draw(codes, level, rng))
        assert possible[codes[held].view(np.int64)].all()
        assert not certain[codes[~held].view(np.int64)].any()
    assert not possible.all()
    assert certain.any()


def test_missing_values_that_no_cut_told_apart_are_not_certain() -> None:
    space = Product([Box([(0, 1)]), Nullable(Box([(0, 1)]))], weights=[1, 1e-3])
    assert space.cuts(3)[1] == 0
    possible, certain = Condition(0, 1, ((0.0, 1.0),)).cells(space, 3)
    assert possible.all()
    assert not certain.any()


@pytest.mark.parametrize("where", [(AGES,), (KIND,), (AGES, KIND), (Condition(0, 0, (), missing=True),)])
def test_conditions_on_a_group_are_exact_in_law(measure: ColumnsMeasure, where: tuple[Condition, ...]) -> None:
    counts = places(measure.sample(60_000, seed=5, where=where)[:, :2])
    meant = np.all([c.holds(grid()) for c in where], axis=0)
    assert fits(counts, law_of(measure, meant=meant)) > 1e-6
    if AGES in where:  # the wrong way: cells that are meant in part keep all their mass
        wrong = law_of(measure, fine=meant)
        assert fits(counts, wrong) < 1e-6


def test_a_rare_value_of_a_group_needs_no_luck() -> None:
    release = released()
    share = np.mean(np.array(release.sample(100_000, seed=0)["kind"].to_pylist()) == "e")
    assert share < 0.01  # one in 100 rows was the limit of rejection
    rows = release.sample(3000, seed=0, where="kind = 'e'")
    assert set(rows["kind"].to_pylist()) == {"e"}
    rows = release.sample(3000, seed=0, where="kind = 'e' and age < 30 and smoker = true").to_pandas()
    assert ((rows.kind == "e") & (rows.age < 30) & rows.smoker).all()


# ------------------------------------------------------------------------------------------------------------ facts

NEVER = ["age < 27 and kind in ('a', 'd')", "age is null and kind = 'b'"]
FACTS: tuple[Fact, ...] = (
    (Condition(0, 0, ((0.0, 26.0),)), Condition(0, 1, ((0.0, 0.0), (3.0, 3.0)))),
    (Condition(0, 0, (), missing=True), Condition(0, 1, ((1.0, 1.0),))),
)


def allowed() -> Any:
    return ~np.any([one.holds(grid()) & two.holds(grid()) for one, two in FACTS], axis=0)


def test_facts_are_read() -> None:
    assert forbidden_pairs(Schema(COLUMNS, groups=[GROUP], never=NEVER)) == FACTS


@pytest.mark.parametrize("mechanism", ["columns", "pmm"])
def test_facts_in_a_group_hold_in_every_row(mechanism: str, tmp_path: Path) -> None:
    release = released(never=NEVER, mechanism=mechanism)
    release.save(tmp_path / "x")
    again = pm.load(tmp_path / "x")
    rows = again.sample(20_000, seed=0)
    assert rows.equals(release.sample(20_000, seed=0))
    frame = rows.to_pandas()
    assert not ((frame.age < 27) & frame.kind.isin(["a", "d"])).any()
    assert not (frame.age.isna() & (frame.kind == "b")).any()
    free = released(mechanism=mechanism).sample(20_000, seed=0).to_pandas()
    assert ((free.age < 27) & free.kind.isin(["a", "d"])).any()  # which happens otherwise


def test_facts_in_a_group_move_mass_in_proportion(measure: ColumnsMeasure) -> None:
    """Cells that are forbidden as a whole lose their mass to all others; those that are so in part keep theirs."""
    told = replace(measure, facts=FACTS)
    rows = told.sample(60_000, seed=3)
    assert fits(places(rows[:, :2]), law_of(measure, fine=allowed())) > 1e-6
    # the wrong ways: no redrawing inside cells; facts that are not kept at all
    assert fits(places(rows[:, :2]), law_of(measure, fine=allowed(), keep=False)) < 1e-6
    assert fits(places(measure.sample(60_000, seed=3)[:, :2]), law_of(measure)) > 1e-6
    share = float((rows[:, 2] == 1).mean())  # another column stays as it was released
    assert share == pytest.approx(measure.columns[1].mean()[0], abs=0.01)
    assert told.masses[0] is not None
    assert all(np.array_equal(a, b) for a, b in zip(told.masses, measure.masses, strict=True))


def test_conditions_and_facts_in_one_group(measure: ColumnsMeasure) -> None:
    rows = replace(measure, facts=FACTS).sample(60_000, seed=3, where=(AGES, KIND))
    meant = AGES.holds(grid()) & KIND.holds(grid())
    assert fits(places(rows[:, :2]), law_of(measure, fine=allowed(), meant=meant)) > 1e-6


def test_any_facts_in_a_group_are_kept(measure: ColumnsMeasure) -> None:
    """Also those that take whole rank cells, and most of what there is."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        low, kind = float(rng.integers(0, 50)), float(rng.integers(0, 5))
        one, two = Condition(0, 0, ((low, low + float(rng.integers(0, 50))),)), Condition(0, 1, ((0.0, kind),))
        across = Condition(1, 0, ((1.0, 1.0),)), one
        rows = replace(measure, facts=((one, two), across)).sample(2000, seed=seed)
        assert len(rows) == 2000
        assert not (one.holds(rows[:, :2]) & (two.holds(rows[:, :2]) | (rows[:, 2] == 1))).any()


def test_a_sliver_of_a_cell_is_not_waited_for() -> None:
    schema = Schema({"x": Number(0, 1), "y": Number(0, 1), "s": Boolean(), "t": Boolean()}, groups=[("x", "y")])
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.random(500), "y": rng.random(500), "s": [True] * 500, "t": [False] * 500})
    synthesizer = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", mechanism="columns")
    measure = synthesizer.fit(table, insecure_seed=1)._release.measure  # type: ignore[union-attr]
    assert isinstance(measure, ColumnsMeasure)
    cut = 0.5 - 1e-9  # the cells that end at one half are left a billionth
    fact = Condition(0, 0, ((0.0, cut),)), Condition(0, 1, ((0.0, 1.0),))
    rows = replace(measure, facts=(fact,)).sample(5000, seed=0)
    assert len(rows) == 5000
    assert (rows[:, 0] > cut).all()
    nothing = Condition(0, 0, ((0.0, cut), (0.5, 1.0))), fact[1]
    with pytest.raises(NoRowsError, match="almost no row"):
        replace(measure, facts=(nothing,)).sample(100, seed=0)


@pytest.mark.parametrize(
    ("never", "fine"),
    [
        (["age >= 0 and kind in ('a', 'b', 'c', 'd', 'e')"], True),  # missing ages are left
        (["age >= 0 and kind != 'a'", "age is null and kind != 'a'"], True),
        (["age >= 0 and kind != 'a'", "age is null and kind != 'a'", "kind = 'a' and age <= 50",
          "kind = 'a' and age > 50", "age is null and smoker = true"], True),
        (["age >= 0 and kind != 'a'", "age is null and kind != 'a'", "kind = 'a' and age <= 50",
          "kind = 'a' and age > 50", "age is null and kind = 'a'"], False),
        (["age >= 0 and smoker = true", "age >= 0 and smoker = false", "age is null and kind in ('a', 'b')",
          "age is null and kind not in ('a', 'b')"], False),
    ],
)  # fmt: skip
def test_facts_in_a_group_that_contradict_each_other(never: list[str], fine: bool) -> None:
    schema = Schema(COLUMNS, groups=[GROUP], never=never)
    if fine:
        assert len(forbidden_pairs(schema)) == len(never)
        return
    with pytest.raises(SchemaError, match="forbid every row"):  # before anything is spent
        pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", mechanism="columns")


@pytest.mark.deep
def test_a_release_that_contradicts_the_facts() -> None:
    """It is not known before the release, which is then told whenever rows are asked for."""
    table = people(500).set_column(1, "kind", pa.array(["a"] * 500))
    table = table.set_column(0, "age", pa.array([30] * 500))
    release = released(epsilon=30, table=table, never=["age >= 0 and kind = 'a'"])
    with pytest.raises(NoRowsError, match="only where the facts"):
        release.sample(seed=0)
    assert release.certificate() is not None

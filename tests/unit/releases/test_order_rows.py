"""Rows of releases whose schema has order constraints: no row breaks one, and all margins stay as released."""

from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import privmeasure as pm
from privmeasure.conditions.orders import ColumnOrder
from privmeasure.model.graph import Model
from privmeasure.releases.ordered import move_mass
from privmeasure.releases.table import TableRelease

ROWS, DAYS = 2843, ("1990-01-01", "1999-12-31")
COLUMNS: dict[str, Any] = {
    "came": pm.Date(*DAYS),
    "left": pm.Date(*DAYS),
    "age": pm.Integer(0, 110),
    "died": pm.Boolean(),
    "long": pm.Boolean(),
    "state": pm.Category(["north", "south", "east", "west"]),
}


@cache
def patients() -> pa.Table:
    """Return patients who leave after they came; whether they died depends on how long they stayed."""
    rng = np.random.default_rng(0)
    came = rng.integers(0, 2500, ROWS)
    stay = np.minimum(rng.exponential(400, ROWS).astype(int), 3600 - came)
    first = np.datetime64("1990-01-01")
    return pa.table(
        {
            "came": pa.array(first + came),
            "left": pa.array(first + came + stay),
            "age": np.clip(rng.normal(40, 12, ROWS), 0, 99).astype(int),
            "died": rng.random(ROWS) < np.where(stay < 250, 0.95, 0.2),
            "long": rng.random(ROWS) < np.where(stay > 500, 0.9, 0.05),
            "state": np.array(["north", "south", "east", "west"])[rng.choice(4, ROWS, p=[0.6, 0.2, 0.1, 0.1])],
        }
    )


def released(table: pa.Table, columns: dict[str, Any], never: Any, seed: int, epsilon: float = 1, **more: Any) -> Any:
    schema = pm.Schema(columns, never=never, **more)
    synth = pm.Synthesizer(schema, epsilon=epsilon, neighbours="add-remove", threads=1)
    return synth.fit(table, insecure_seed=seed).release_


def shares(rows: pa.Table, *names: str) -> list[float]:
    return [float(np.mean(rows[name].to_numpy())) for name in names]


def gaps(rows: pa.Table) -> Any:
    return rows["left"].cast(pa.int32()).to_numpy() - rows["came"].cast(pa.int32()).to_numpy()


@pytest.mark.parametrize(("epsilon", "bar"), [(1, 0.01), (4, 0.006)])
def test_columns_that_are_not_compared_are_not_biased(epsilon: float, bar: float) -> None:
    table, found = patients(), []
    for seed in range(8):
        rows = released(table, COLUMNS, "left < came", seed, epsilon).sample(20_000, seed=0)
        assert gaps(rows).min() >= 0
        found.append(shares(rows, "died", "long"))
    bias = np.mean(found, axis=0) - shares(table, "died", "long")
    assert np.abs(bias).max() < bar


NUMBERS: dict[str, Any] = {name: pm.Integer(0, 999) for name in "abcd"} | {"e": pm.Boolean(), "f": pm.Boolean()}


@cache
def steps() -> pa.Table:
    """Return four numbers that grow, and two flags that depend on how far."""
    rng = np.random.default_rng(0)
    start, by = rng.integers(0, 800, ROWS), rng.exponential(40, (ROWS, 3)).astype(int)
    grown = np.minimum(start[:, None] + np.cumsum(np.column_stack((np.zeros(ROWS, int), by)), axis=1), 999)
    far, near = grown[:, 3] - grown[:, 0] > 80, grown[:, 2] - grown[:, 1] < 30
    flags = {"e": rng.random(ROWS) < 0.1 + 0.8 * far, "f": rng.random(ROWS) < 0.1 + 0.8 * near}
    return pa.table({name: grown[:, i] for i, name in enumerate("abcd")} | flags)


@pytest.mark.parametrize(
    "never",
    [
        ["b < a", "c < b", "d < c"],
        ["b < a", "c < b", "c < a"],
        ["d < a", "d < b", "d < c"],
        ["d < a + 2"],
        ["b < a", "b > a + 500"],
    ],
)
def test_several_orders_leave_the_other_columns_as_they_are(never: list[str]) -> None:
    free = released(steps(), NUMBERS, (), 0)
    order = released(steps(), NUMBERS, never, 0)
    rows = order.sample(20_000, seed=0)
    values = {name: rows[name].to_numpy() for name in "abcd"}
    for rule in never:
        late, sign, early, *more = rule.split()
        difference = values[late] - values[early] - (int(more[-1]) if more else 0)
        assert (difference >= 0).all() if sign == "<" else (difference <= 0).all()
    assert shares(rows, "e", "f") == pytest.approx(shares(free.sample(20_000, seed=0), "e", "f"), abs=0.005)
    apart = order.distances(rows)
    assert max(apart[name] for name in "ef") < 0.005
    assert max(apart.values()) < 0.05


def test_few_more_rows_are_drawn_than_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    sample = Model.sample

    def counted(self: Model, count: int, rng: np.random.Generator, **options: int) -> list[Any]:
        drawn.append(count)
        return sample(self, count, rng, **options)

    release = released(patients(), COLUMNS, "left < came", 0)
    release.measure.model  # noqa: B018 - made once
    monkeypatch.setattr(Model, "sample", counted)
    release.sample(50_000, seed=0)
    assert sum(drawn) < 1.05 * 50_000


def test_data_that_contradict_an_order_move_as_little_as_they_must() -> None:
    rng = np.random.default_rng(0)
    low, high = rng.integers(0, 500, 4000), rng.integers(400, 900, 4000)
    table = pa.table({"a": high, "b": low} | {name: rng.random(4000) < 0.3 for name in "cdef"})
    columns = {"a": pm.Integer(0, 999), "b": pm.Integer(0, 999)} | {name: pm.Boolean() for name in "cdef"}
    release = released(table, columns, "b < a", 0, epsilon=4)  # true of a tenth of the rows at most
    rows = release.sample(20_000, seed=0)
    assert (rows["b"].to_numpy() >= rows["a"].to_numpy()).all()
    apart = release.distances(rows)
    # the means are 650 and 250 of 999: each moves by half of what lies between them
    assert [apart["a"], apart["b"]] == pytest.approx([0.2, 0.2], abs=0.03)
    assert max(apart[name] for name in "cdef") < 0.005


def test_conditions_on_compared_columns_choose_among_all_rows() -> None:
    release = released(patients(), COLUMNS, "left < came", 0)
    assert isinstance(release, TableRelease)
    asked = release.sample(4000, seed=1, where="left < '1992-06-01'")
    whole = release.sample(60_000, seed=2)
    expected = whole.filter(pc.less(whole["left"], date(1992, 6, 1)))
    assert gaps(asked).min() >= 0
    assert np.median(gaps(asked)) == pytest.approx(np.median(gaps(expected)), rel=0.08)
    assert shares(asked, "died", "long") == pytest.approx(shares(expected, "died", "long"), abs=0.04)


def of_kind(kind: str, never: Any) -> TableRelease:
    """Return a release in which the compared columns share one tree: of the whole table, or of a group."""
    names = ["came", "left", "died"] if kind == "one tree" else list(COLUMNS)
    more = {} if kind == "one tree" else {"groups": [["came", "left", "died"]]}
    found = released(patients().select(names), {name: COLUMNS[name] for name in names}, never, 0, **more)
    assert isinstance(found, TableRelease)
    assert found.plan.joint == (kind == "one tree")
    return found


@pytest.mark.parametrize("kind", ["one tree", "a group"])
def test_cells_of_a_tree_keep_their_rows(kind: str) -> None:
    free, order = of_kind(kind, ()), of_kind(kind, "left < came")
    rows, usual = order.sample(20_000, seed=0), free.sample(20_000, seed=0)
    assert gaps(rows).min() >= 0
    assert np.mean(gaps(usual) < 0) > 0.05
    assert shares(rows, "died") == pytest.approx(shares(usual, "died"), abs=0.003)
    given_order = usual.filter(pc.greater_equal(usual["left"], usual["came"]))
    assert abs(shares(given_order, "died")[0] - shares(usual, "died")[0]) > 0.01  # leaving out would move it


def test_one_tree_moves_only_rows_whose_cell_has_none_in_order() -> None:
    release = of_kind("one tree", "left < came")
    measure = release.measure
    points = measure.sample(seed=0)
    again = measure._in_order(points, np.random.default_rng(0))  # type: ignore[attr-defined]
    before, after = (measure.domain.locate(at, measure.level) for at in (points, again))  # type: ignore[attr-defined]
    (order,) = release.facts
    assert isinstance(order, ColumnOrder)
    never = order.in_cells(measure.domain, (1, 0), before, measure.level)  # type: ignore[attr-defined]
    assert not order.broken(again[:, 1], again[:, 0]).any()
    assert (before == after)[~never].all()
    unchanged = ~order.broken(points[:, 1], points[:, 0])
    assert (points[unchanged] == again[unchanged]).all()


@pytest.mark.parametrize("kind", ["one tree", "a group"])
def test_rows_of_a_tree_are_the_same_for_any_threads_and_conditions_hold(kind: str) -> None:
    release = of_kind(kind, "left < came")
    assert release.sample(5000, seed=3, threads=1).equals(release.sample(5000, seed=3, threads=3))
    asked = release.sample(1000, seed=1, where="died = true")
    assert asked.num_rows == 1000
    assert shares(asked, "died") == [1.0]
    assert gaps(asked).min() >= 0


def test_mass_without_a_place_goes_to_the_nearest_part_of_the_tree() -> None:
    rng = np.random.default_rng(0)
    mass, never = rng.integers(0, 5, 64).astype(float), rng.random(64) < 0.6
    moved = move_mass(mass, never)
    assert moved.sum() == pytest.approx(mass.sum())
    assert not moved[never].any()
    filled = (mass > 0) & ~never
    assert (moved[filled] >= mass[filled] - 1e-9).all()
    assert not moved[~filled].any()
    for size in (2, 4, 8, 16, 32):  # parts that can hold their rows keep them
        for start in range(0, 64, size):
            here = slice(start, start + size)
            if filled[here].any():
                assert moved[here].sum() >= mass[here].sum() - 1e-9

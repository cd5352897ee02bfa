"""The model: columns drawn one after the other from released margins and tables of pairs."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from depth import some
from privmeasure.model.drawing import draw, inside
from privmeasure.model.graph import Model
from privmeasure.model.pairs import Pair, rake

Tables = dict[tuple[int, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


def tables_of(joint: np.ndarray, pairs: list[tuple[int, int]]) -> tuple[list[np.ndarray], Tables]:
    """Return the margins of a joint distribution, and its tables of some pairs."""
    axes = range(joint.ndim)
    found: Tables = {}
    for i, j in pairs:
        table = joint.sum(axis=tuple(a for a in axes if a not in (i, j)))
        found[i, j] = (table if i < j else table.T, np.arange(joint.shape[i]), np.arange(joint.shape[j]))
    return [joint.sum(axis=tuple(a for a in axes if a != i)) for i in axes], found


def star(children: int = 3, cells: int = 8) -> tuple[list[np.ndarray], Tables]:
    rng = np.random.default_rng(5)
    root, size = rng.dirichlet(np.ones(4)) * 1e6, cells
    laws = rng.dirichlet(np.full(size, 1.0), (children, 4))
    tables = {(0, c + 1): (root[:, None] * laws[c], np.arange(4), np.arange(size)) for c in range(children)}
    return [root, *(root @ laws[c] for c in range(children))], tables


def partial_correlations(rows: list[np.ndarray]) -> np.ndarray:
    """Return correlations of two children among the rows of each root cell, in standard deviations."""
    return np.array(
        [
            np.corrcoef(rows[i][rows[0] == r], rows[j][rows[0] == r])[0, 1] * np.sqrt((rows[0] == r).sum())
            for r in range(4)
            for i in range(1, 4)
            for j in range(1, i)
        ]
    )


def test_children_are_independent_given_their_parent() -> None:
    rows = Model(*star()).sample(200_000, np.random.default_rng(0))
    assert np.abs(partial_correlations(rows)).max() < 5


def test_children_are_independent_where_a_parent_has_a_row_a_cell() -> None:
    """Then no order inside the groups tells the children apart: their starts must not follow the same steps."""
    cells = 64
    even, half = np.ones(cells), np.array([cells / 2, cells / 2])
    table = np.full((cells, 2), 0.5), np.arange(cells), np.arange(2)
    model = Model([even, half, half], {(0, 1): table, (0, 2): table})
    signs = [np.array(model.sample(cells, np.random.default_rng(seed))[1:]) * 2 - 1 for seed in range(200)]
    spread = np.std([np.mean(first * second) for first, second in signs])
    assert 0.7 < spread * np.sqrt(cells) < 1.3  # 1 for independent draws


def test_one_order_for_all_columns_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault to beware of: rows that keep their rank in the group from column to column."""

    def fixed(key: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
        return np.argsort(key, kind="stable")

    def even(
        key: np.ndarray, size: int, weights: Callable[[slice], np.ndarray], rng: object, *, threads: int = 1
    ) -> np.ndarray:
        order, counts = fixed(key, size, rng), np.bincount(key, minlength=size)  # type: ignore[arg-type]
        groups = key[order]
        share = (np.arange(len(key)) - (np.cumsum(counts) - counts)[groups] + 0.5) / counts[groups]
        ladder = np.cumsum(weights(slice(0, size)), axis=1)
        out = np.empty(len(key), np.int32)
        out[order] = (share[:, None] > (ladder / ladder[:, -1:])[groups, :-1]).sum(axis=1)
        return out

    monkeypatch.setattr("privmeasure.model.graph.draw", even)
    rows = Model(*star()).sample(200_000, np.random.default_rng(0))
    assert np.abs(partial_correlations(rows)).max() > 50


def test_margins_and_tables_of_a_tree_come_out_almost_exactly() -> None:
    margins, tables = star()
    n = 100_000
    rows = Model(margins, tables).sample(n, np.random.default_rng(1))
    for margin, column in zip(margins, rows, strict=True):
        have = np.bincount(column, minlength=len(margin)) / n
        assert np.abs(have - margin / margin.sum()).sum() / 2 < 5e-4  # 5e-3 for independent draws
    for (i, j), (table, _, _) in tables.items():
        have = np.bincount(rows[i] * table.shape[1] + rows[j], minlength=table.size) / n
        assert np.abs(have - table.ravel() / table.sum()).sum() / 2 < 2e-3


@pytest.mark.parametrize("pairs", [[(0, 1), (0, 2), (1, 2)], [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]])
def test_tables_with_cycles_come_out_as_measured(pairs: list[tuple[int, int]]) -> None:
    """Two parents, and three: a log-linear joint distribution is found again from its pairs."""
    rng = np.random.default_rng(6)
    logs = [0.7 * rng.standard_normal((5, 5)) for _ in pairs]
    k = max(j for _, j in pairs) + 1
    joint = np.zeros((5,) * k)
    for log, (i, j) in zip(logs, pairs, strict=True):
        joint += log.reshape([5 if a in (i, j) else 1 for a in range(k)])
    joint = np.exp(joint)
    joint *= 1e5 / joint.sum()
    margins, tables = tables_of(joint, pairs)
    n = 200_000
    rows = Model(margins, tables).sample(n, np.random.default_rng(2))
    for (i, j), (table, _, _) in tables.items():
        have = np.bincount(rows[i] * 5 + rows[j], minlength=25) / n
        assert np.abs(have - table.ravel() / 1e5).sum() / 2 < 0.01
    for margin, column in zip(margins, rows, strict=True):
        assert np.abs(np.bincount(column, minlength=5) / n - margin / 1e5).sum() / 2 < 1e-3


def test_tables_of_coarser_groups() -> None:
    """A pair that was measured on groups of rank cells: inside a group the margin decides."""
    groups = np.array([0, 0, 1, 1])
    margins = [np.array([10.0, 30.0, 30.0, 30.0]), np.array([25.0, 15.0, 50.0, 10.0])]
    model = Model(margins, {(0, 1): (np.diag([40.0, 60.0]), groups, groups)})
    rows = model.sample(10_000, np.random.default_rng(3))
    assert (groups[rows[0]] == groups[rows[1]]).all()
    for margin, column in zip(margins, rows, strict=True):
        assert np.abs(np.bincount(column, minlength=4) / 10_000 - margin / 100).max() < 1e-3


def test_forbidden_combinations_never_occur() -> None:
    rng = np.random.default_rng(7)
    margins, tables = tables_of(rng.dirichlet(np.ones(64)).reshape(4, 4, 4) * 1e5, [(0, 1), (1, 2), (0, 2)])
    never = {(0, 1): rng.random((4, 4)) < 0.3, (0, 2): np.zeros((4, 4), bool)}
    never[0, 2][3, :2] = True
    never[0, 1][:, 0] = False  # something is always allowed
    rows = Model(margins, tables, forbidden=never).sample(50_000, np.random.default_rng(4))
    for (i, j), mask in never.items():
        assert not mask[rows[i], rows[j]].any()
    assert Model(margins, tables).sample(50_000, np.random.default_rng(4))  # and without facts they do occur
    free = Model(margins, tables).sample(50_000, np.random.default_rng(4))
    assert never[0, 2][free[0], free[2]].any()


@pytest.mark.parametrize("columns", [4, 7])
def test_facts_that_leave_nothing_overflow_nowhere(columns: int) -> None:
    """Combinations of parents without any cell left, and tables that contradict each other: rows all the same."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(2, 4, columns)
        margins = [np.ceil(rng.dirichlet(np.full(size, 0.3)) * 1000) for size in sizes]
        tables = {
            (i, j): (
                rake(rng.dirichlet(np.full(sizes[i] * sizes[j], 0.1)).reshape(sizes[i], -1), margins[i], margins[j]),
                np.arange(sizes[i]),
                np.arange(sizes[j]),
            )
            for i in range(columns)
            for j in range(i + 1, columns)
        }
        never = {(i, j): rng.random((sizes[i], sizes[j])) < 0.5 for i, j in [(0, 1), (0, 2), (1, 2)]}
        model = Model(margins, tables, forbidden=never)
        for rows in (model.sample(2000, rng), model.given(1, np.zeros(500, np.int32), rng)):
            assert all((row >= 0).all() and (row < size).all() for row, size in zip(rows, sizes, strict=True))


def test_facts_about_a_pair_that_was_not_measured() -> None:
    margins = [np.array([50.0, 50.0]), np.array([30.0, 70.0])]
    mask = np.array([[True, False], [False, False]])
    rows = Model(margins, {}, forbidden={(0, 1): mask}).sample(10_000, np.random.default_rng(5))
    assert not ((rows[0] == 0) & (rows[1] == 0)).any()
    assert abs((rows[1] == 0).mean() - 0.3) < 1e-3
    assert abs((rows[0] == 0).mean() - 0.5) < 1e-3


def test_rows_given_one_column() -> None:
    margins, tables = star()
    cells = np.full(20_000, 2, np.int32)
    rows = Model(margins, tables).given(1, cells, np.random.default_rng(6))
    assert (rows[1] == 2).all()
    law = tables[0, 1][0][:, 2] / tables[0, 1][0][:, 2].sum()
    assert np.abs(np.bincount(rows[0], minlength=4) / 20_000 - law).sum() / 2 < 2e-3
    second = law @ (tables[0, 2][0] / tables[0, 2][0].sum(axis=1, keepdims=True))
    assert np.abs(np.bincount(rows[2], minlength=8) / 20_000 - second).sum() / 2 < 0.01


def test_one_column_and_columns_without_pairs() -> None:
    (rows,) = Model([np.array([1.0, 3.0])], {}).sample(400, np.random.default_rng(0))
    assert abs(rows.sum() - 300) <= 1
    a, b = Model([np.array([1.0, 1.0])] * 2, {}).sample(100_000, np.random.default_rng(0))
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(100_000)


def test_the_order_takes_the_most_connected_column() -> None:
    margins, tables = tables_of(
        np.random.default_rng(8).dirichlet(np.ones(81)).reshape(3, 3, 3, 3), [(0, 1), (1, 2), (0, 2)]
    )
    order = Model(margins, tables).order()
    assert order[-1] == 3
    assert Model(margins, tables).order(3)[0] == 3


def test_the_middle_of_a_path_is_never_drawn_after_both_its_ends() -> None:
    """0 - 1 - 2 is strong, and 0 and 2 are tied to 3 as well: most measured pairs first would put 1 last of all."""
    rng, n = np.random.default_rng(2), 200_000
    middle = rng.integers(0, 12, n)
    one, two = middle % 4, middle // 3
    other = np.where(rng.random(n) < 0.9, rng.integers(0, 4, n), (one + two) % 4)
    joint = np.zeros((4, 12, 4, 4))
    np.add.at(joint, (one, middle, two, other), 1.0)
    margins, tables = tables_of(joint, [(0, 1), (1, 2), (0, 3), (2, 3)])
    model = Model(margins, tables)
    for first in (None, 0, 1, 2, 3):
        order = model.order(first)
        assert order.index(1) < max(order.index(0), order.index(2))
    rows = model.sample(n, np.random.default_rng(0))
    for i, j in ((0, 1), (1, 2)):
        table = np.zeros(tables[i, j][0].shape)
        np.add.at(table, (rows[i], rows[j]), 1)
        assert np.abs(table - tables[i, j][0]).sum() / 2 / n < 0.01


@some("seed", 20, range(200))
def test_every_column_has_its_margin_whatever_the_pairs_say(seed: int) -> None:
    """Rings of random tables that contradict each other: columns come out as released, to a row a cell."""
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(3, 7)), int(rng.integers(200, 5000))
    sizes = rng.integers(2, 9, k)
    margins = [rng.dirichlet(np.ones(size)) * n for size in sizes]
    ring = [(i, (i + 1) % k) for i in range(k)]
    tables = {}
    for i, j in [(min(p), max(p)) for p in ring]:
        table = rake(rng.random((sizes[i], sizes[j])) ** 3, margins[i], margins[j])
        tables[i, j] = table, np.arange(sizes[i]), np.arange(sizes[j])
    for cells, margin in zip(Model(margins, tables).sample(n, rng), margins, strict=True):
        assert np.abs(np.bincount(cells, minlength=len(margin)) - margin).max() < 1


def ring(rng: np.random.Generator) -> tuple[list[np.ndarray], list[Pair]]:
    """A code of 200, its chapter and the chapter's part, measured with much, little and hardly any noise.

    The tables of the code contradict each other.
    """
    n, mass = 50_000, rng.dirichlet(np.full(200, 0.7))
    counts = rng.multinomial(n, mass)
    chapter = rng.integers(0, 20, 200)
    chapters = np.bincount(chapter, weights=counts, minlength=20)
    parts = np.bincount(np.arange(20) % 4, weights=chapters, minlength=4)
    true = {(0, 1): np.zeros((200, 20)), (0, 2): np.zeros((200, 4)), (1, 2): np.zeros((20, 4))}
    true[0, 1][np.arange(200), chapter] = counts
    true[0, 2][np.arange(200), chapter % 4] = counts
    true[1, 2][np.arange(20), np.arange(20) % 4] = chapters
    scales = {(0, 1): 30, (0, 2): 60, (1, 2): 3}
    pairs = []
    for (i, j), table in true.items():
        noise = rng.geometric(-np.expm1(-1 / scales[i, j]), (2, *table.shape))
        noisy = (table + noise[0] - noise[1]).astype(np.int64)
        groups = np.arange(len(table)), np.arange(table.shape[1])
        pairs.append(Pair(i, j, *groups, noisy, Fraction(scales[i, j])))
    return [counts.astype(float), chapters, parts], pairs


def test_another_order_is_taken_where_rows_drift_from_tables_with_little_noise() -> None:
    usual, better, taken = 0.0, 0.0, 0
    for seed in range(8):
        margins, pairs = ring(np.random.default_rng(seed))
        model = Model.of_pairs(margins, pairs, int(margins[0].sum()))
        drawn = model.sample(50_000, np.random.default_rng(1))
        better += model.misfit(pairs, drawn)
        taken += model.first is not None
        model.first = None
        drawn = model.sample(50_000, np.random.default_rng(1))
        usual += model.misfit(pairs, drawn)
    assert taken > 0
    assert better < 0.7 * usual


def test_facts_that_leave_nothing_are_no_drift() -> None:
    margins, pairs = ring(np.random.default_rng(0))
    never = {(0, 1): np.ones((200, 20), bool)}
    rows = Model.of_pairs(margins, pairs, int(margins[0].sum()), forbidden=never).sample(100, np.random.default_rng(0))
    assert [len(column) for column in rows] == [100, 100, 100]


def test_no_other_order_is_looked_for_where_tables_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "_best_first", None)  # would fail
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.full(4 * 5 * 3, 0.8)).reshape(4, 5, 3) * 20_000
    margins, tables = tables_of(joint, [(0, 1), (0, 2), (1, 2)])
    pairs = [
        Pair(i, j, rows, columns, np.rint(table).astype(np.int64), Fraction(5))
        for (i, j), (table, rows, columns) in tables.items()
    ]
    assert Model.of_pairs(margins, pairs, 20_000).first is None


def test_draws_follow_the_weights() -> None:
    weights = np.array([[1.0, 3.0], [5.0, 0.0]])
    key = np.repeat([0, 1], [4000, 1000])
    drawn = draw(key, 2, lambda here: weights[here], np.random.default_rng(0))
    assert abs(drawn[:4000].sum() - 3000) <= 2
    assert not drawn[4000:].any()


def test_cells_inside_rank_cells_follow_the_mass() -> None:
    ranks, mass = np.array([0, 0, 1, 1, 1]), np.array([10.0, 30.0, 0.0, 5.0, 5.0])
    cell = np.repeat([0, 1], [400, 100])
    cells = inside(ranks, mass, cell, np.random.default_rng(0))
    assert (ranks[cells] == cell).all()
    assert np.abs(np.bincount(cells, minlength=5) - [100, 300, 0, 50, 50]).max() <= 1

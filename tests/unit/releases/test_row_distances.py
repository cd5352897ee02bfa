"""How far the default rows are from a release that has an order constraint: measured, stored, added to certificates."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import wasserstein_distance

import privmeasure as pm
from privmeasure.conditions.orders import ColumnOrder
from privmeasure.domains import Box, Integers, Nullable, Product
from privmeasure.errors import ReleaseFileError
from privmeasure.releases.drift import cell_distance, inside_distance
from privmeasure.releases.table import TableRelease
from privmeasure.transport.cells import cells_apart

NUMBERS: dict[str, Any] = {"a": pm.Number(0, 10), "b": pm.Number(0, 10), "c": pm.Boolean(), "d": pm.Boolean()}


def made(*, joint: bool = False, never: Any = "b < a", overlap: float = 0.0) -> TableRelease:
    """Return a release of two numbers in order and some flags; with `overlap` data that contradict the order."""
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 8, 3000)
    b = np.minimum(a + rng.exponential(1, 3000), 10)
    a, b = (b, a) if overlap else (a, b)
    names = list(NUMBERS)[: 3 if joint else 4]
    table = pa.table(dict(zip("abcd", (a, b, rng.random(3000) < 0.3, b > 5), strict=True)))
    schema = pm.Schema({name: NUMBERS[name] for name in names}, never=never)
    synth = pm.Synthesizer(schema, epsilon=4, neighbours="add-remove", mechanism="auto" if joint else "columns")
    release = synth.fit(table.select(names), insecure_seed=1).release_
    assert isinstance(release, TableRelease)
    return release


@pytest.mark.parametrize("joint", [False, True])
def test_what_is_stored_is_what_is_measured(joint: bool, tmp_path: Path) -> None:
    release = made(joint=joint)
    rows = release.sample(seed=0)
    assert release.row_distances == release.distances(rows)
    assert release.row_pair_distances == release.pair_distances(rows, noisy=True)
    assert list(release.row_distances) == (["a and b and c"] if joint else list("abcd"))
    assert release.row_distances[next(iter(release.row_distances))] > 0
    release.save(tmp_path / "a.release")
    loaded = pm.load(tmp_path / "a.release")
    assert isinstance(loaded, TableRelease)
    assert loaded.header() == release.header()
    assert loaded.header()["format"] == 2
    assert (loaded.row_distances, loaded.row_pair_distances) == (release.row_distances, release.row_pair_distances)


@pytest.mark.parametrize("joint", [False, True])
def test_releases_without_a_comparison_have_none_and_the_older_format(joint: bool) -> None:
    for never in ((), "c = true and a > 9"):
        release = made(joint=joint, never=never)
        assert (release.row_distances, release.row_pair_distances) == (None, None)
        assert release.header()["format"] == 1


@pytest.mark.parametrize("joint", [False, True])
def test_a_plan_says_what_its_guarantees_are_about(joint: bool) -> None:
    columns = {name: NUMBERS[name] for name in list(NUMBERS)[: 3 if joint else 4]}
    for never, said in (("b < a", True), ((), False)):
        synth = pm.Synthesizer(pm.Schema(columns, never=never), epsilon=1, neighbours="replace")
        plan = synth.plan(3000)
        assert ("the released columns: a constraint compares two columns" in str(plan)) == said
        assert ("known before the release, which states it" in str(plan)) == said
        assert "compared" not in plan.to_json()
    release = made(joint=joint)
    assert "a constraint compares two columns" in str(release.plan)
    assert release.plan == release.measure.plan


def test_rows_of_one_tree_are_their_tree() -> None:
    release = made(joint=True, never=())
    assert release.distances(release.sample(seed=0)) == {"a and b and c": pytest.approx(0, abs=1e-12)}
    assert release.pair_distances(release.sample(seed=0)) == []
    far = release.sample(seed=0).set_column(0, "a", pa.array(np.zeros(release.total)))
    assert release.distances(far)["a and b and c"] > 0.2


def test_the_distance_from_a_noisy_table_is_half_the_differences_of_shares() -> None:
    release = made()
    rows, measure = release.sample(seed=0), release.measure
    points = release.schema.encode(rows)
    for (i, j, far), pair in zip(measure.pair_distances(points, noisy=True), measure.pairs, strict=True):  # type: ignore[attr-defined]
        table = np.zeros(pair.noisy.shape)
        for x, y in points[:, [i, j]]:
            places = []
            for column, value, groups in ((i, x, pair.first_groups), (j, y, pair.second_groups)):
                own = measure.columns[column]  # type: ignore[attr-defined]
                cell = int(own.domain.locate(np.array([[value]]), own.level)[0])
                places.append(groups[measure.ranks[column][cell]])  # type: ignore[attr-defined]
            table[tuple(places)] += 1 / len(points)
        assert far == pytest.approx(np.abs(table - pair.noisy / release.total).sum() / 2)


@pytest.mark.parametrize("joint", [False, True])
def test_the_certificate_is_about_the_rows(joint: bool) -> None:
    release = made(joint=joint)
    bare = release.measure.certificate(quick=True)
    found = release.certificate(quick=True)
    assert release.row_distances is not None
    pairs = [(bare, found)] if joint else list(zip(bare, found, strict=True))
    for (own, rows), moved in zip(pairs, release.row_distances.values(), strict=True):
        assert rows.moved == moved
        assert rows.value == pytest.approx(min(own.value + moved, own.diameter))


def test_a_certificate_holds_for_rows_of_data_that_contradict_the_order() -> None:
    release = made(overlap=1)
    rows, data = release.sample(seed=0), np.random.default_rng(0).uniform(0, 8, 3000)  # the values of b
    far = wasserstein_distance(rows["b"].to_numpy(), data) / 10
    assert release.row_distances is not None
    certified, bare = (found.certificates[1].value for found in (release.certificate(), release.measure.certificate()))
    assert release.row_distances["b"] > 0.02
    assert far <= certified
    assert certified == pytest.approx(bare + release.row_distances["b"])


def test_the_mean_of_error_minus_distance_is_at_most_the_guarantee() -> None:
    left, errors = [], []
    rng = np.random.default_rng(1)
    a, b = rng.uniform(4, 10, 3000), rng.uniform(0, 6, 3000)  # most rows break the rule
    table = pa.table({"a": a, "b": b, "c": a > 5, "d": b > 5})
    for seed in range(5):
        synth = pm.Synthesizer(pm.Schema(NUMBERS, never="b < a"), epsilon=4, neighbours="replace", mechanism="columns")
        release = synth.fit(table, insecure_seed=seed).release_
        rows = release.sample(seed=0)
        for j, (name, values) in enumerate((("a", a), ("b", b))):
            error = wasserstein_distance(rows[name].to_numpy(), values) / 10
            left.append(error - release.row_distances[name] - release.plan.columns[j].guarantee)
            errors.append(error - release.plan.columns[j].guarantee)
    assert np.mean(left) <= 0
    assert np.mean(errors) > 0.05  # the guarantee alone is not about these rows


def test_what_moves_inside_the_cells_of_a_line_is_exact() -> None:
    rng, line = np.random.default_rng(0), Box([(0, 4)])
    order = ColumnOrder((0, 0), (1, 0), "<", 0, (lambda x: [x], lambda x: [x]))
    rows = np.concatenate((rng.uniform(0, 1, 50), 1 + rng.beta(5, 1, 150), [3.5]))[:, None]
    expected = 0.0
    for cell in range(4):
        here = rows[(rows[:, 0] >= cell) & (rows[:, 0] < cell + 1), 0]
        if len(here):
            even = cell + (np.arange(20_000) + 0.5) / 20_000
            expected += len(here) / len(rows) * wasserstein_distance(here, even) / 4
    assert inside_distance(line, 2, rows, [(order, (0, 0))]) == pytest.approx(expected, rel=1e-3)
    assert inside_distance(line, 2, rows, []) == 0
    assert inside_distance(Integers(0, 3), 1, np.zeros((1, 1)), [(order, (0, 0))]) == 0


def test_in_a_plane_only_cells_that_the_order_cuts_count() -> None:
    plane = Box([(0, 1), (0, 1)])
    order = ColumnOrder((0, 0), (1, 0), "<", 0, (lambda x: [x], lambda x: [x]))
    rows = np.array([[0.9, 0.1], [0.1, 0.9], [0.3, 0.2], [0.6, 0.6]])  # the first coordinate is the late one
    cut = inside_distance(
        plane, 4, rows, [(order, (0, 1))]
    )  # of 16 squares of side 1/4: the diagonal, and one side of it
    assert cut == pytest.approx(2 / 4 * (1 / 4 - 2 / 3 / 4))


@pytest.mark.parametrize(
    "space", [Product([Box([(0, 1)]), Nullable(Integers(0, 9))]), Box([(0, 1), (0, 1)]), Box([(0, 1)])]
)
def test_distances_on_few_cells_are_those_on_all(space: Any) -> None:
    rng = np.random.default_rng(0)
    codes = np.arange(1 << 6, dtype=np.uint64)
    cells = codes[space.exists(codes, 6)][::3]
    mass = rng.integers(1, 9, len(cells))
    rows = space.draw(rng.choice(cells, 500), 6, rng)
    difference = np.bincount(space.locate(rows, 6).view(np.int64), minlength=64) / 500
    difference[cells.view(np.int64)] -= mass / mass.sum()
    assert cell_distance(space, 6, cells, mass, rows) == pytest.approx(cells_apart(space, 6, difference))


@pytest.mark.parametrize(
    "edit",
    [
        lambda value: value.update(columns=value["columns"][:-1]),
        lambda value: value.update(columns=[-1.0, *value["columns"][1:]]),
        lambda value: value.update(columns=[float("nan"), *value["columns"][1:]]),
        lambda value: value.update(columns=[True, *value["columns"][1:]]),
        lambda value: value.update(pairs=value["pairs"][:-1]),
        lambda value: value.update(pairs=[[0, 0, 0.1]] * len(value["pairs"])),
        lambda value: value.update(columns=[10**400, *value["columns"][1:]]),
        lambda value: value.update(pairs=[[float(i), float(j), far] for i, j, far in value["pairs"]]),
        lambda value: value.update(sampled=0),
        lambda value: value.update(sampled=10**9),
        lambda value: value.update(sampled="many"),
        lambda value: value.update(more=1),
        lambda value: value.clear(),
    ],
)
def test_edited_distances_are_refused(edit: Any, tmp_path: Path) -> None:
    release = made()
    header = json.loads(json.dumps(release.header()))
    edit(header["row_distances"])
    with pytest.raises(ReleaseFileError):
        pm.load(written(release, header, tmp_path))


def test_the_newer_format_is_needed_for_them(tmp_path: Path) -> None:
    release = made()
    with pytest.raises(ReleaseFileError, match="newer format"):
        pm.load(written(release, release.header() | {"format": 1}, tmp_path))
    with pytest.raises(ReleaseFileError, match="this version reads 1 to 2"):
        pm.load(written(release, release.header() | {"format": 3}, tmp_path))


def written(release: TableRelease, header: dict[str, Any], folder: Path) -> Path:
    """Write the file of a release with another header."""
    release.save(folder / "a.release")
    table = pq.read_table(folder / "a.release")
    pq.write_table(table.replace_schema_metadata({"privmeasure": json.dumps(header)}), folder / "b.release")
    return folder / "b.release"


def test_a_release_that_contradicts_the_constraint_is_kept_without_distances() -> None:
    table = pa.table({"a": np.full(3000, 9.5), "b": np.zeros(3000)})
    schema = pm.Schema({"a": pm.Number(0, 10), "b": pm.Number(0, 10)}, never="b < a")
    release = pm.Synthesizer(schema, epsilon=4, neighbours="replace").fit(table, insecure_seed=1).release_
    assert (release.row_distances, release.total) == (None, 3000)
    with pytest.raises(pm.errors.NoRowsError):
        release.sample()

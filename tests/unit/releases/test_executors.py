"""Rows that executors draw are those of the release, without Spark: parts, repeats, conditions, never, types.

`executors.py` plays the cluster. `test_spark.py` asks real Spark, where it is installed.
"""

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from executors import Executors
from privmeasure.errors import ArgumentError
from privmeasure.releases import spark as drawing
from privmeasure.releases.sampling import cut_shares, even_sizes
from unit.releases.test_spark import NEVER, TREE, WIDE, released

SCHEMAS = {"tree": TREE, "columns": WIDE, "never": NEVER}
RELEASES: dict[str, pm.TableRelease] = {}


@pytest.fixture(autouse=True)
def without_spark(monkeypatch):
    """Times of day are texts, types stay those of Arrow, and parts are small, so that there are several."""
    monkeypatch.setattr(drawing, "has_times", lambda session: False)
    monkeypatch.setattr(drawing, "_spark_schema", lambda schema: schema)
    monkeypatch.setattr(drawing, "PART_ROWS", 700)


def release_of(name: str) -> pm.TableRelease:
    if name not in RELEASES:
        RELEASES[name] = released(SCHEMAS[name])
    return RELEASES[name]


def frame_of(release, n=None, *, repeats=False, **options):
    return drawing.sample_on_spark(release, n, session=Executors(repeats=repeats), **options)


def drawn(release, n=None, *, repeats=False, **options) -> pa.Table:
    """Return the rows, by part and not by the order in which the parts came."""
    frame = frame_of(release, n, repeats=repeats, **options)
    tables = [replace(frame, parts=[part]).toArrow() for part in frame.parts]
    return pa.concat_tables([table for table in tables if table.num_rows] or tables[:1])


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_frame_has_as_many_rows_as_were_released(name: str) -> None:
    release = release_of(name)
    rows = drawn(release, seed=4)
    assert len(frame_of(release, seed=4).parts) == -(-release.total // 700) > 2
    assert rows.num_rows == release.total
    assert rows.equals(drawn(release, seed=4))  # an action computes it anew
    assert rows.equals(drawn(release, seed=4, repeats=True)), "a task that is done twice changes the rows"
    assert not rows.equals(drawn(release, seed=5))
    assert not drawn(release).equals(drawn(release)), "without a seed two samples are the same"
    frame = frame_of(release)
    assert frame.toArrow().num_rows == release.total
    twice = [replace(frame, parts=frame.parts[:1]).toArrow() for _ in range(2)]
    assert twice[0].equals(twice[1]), "a task that is repeated gives other rows where no seed was given"
    for n in (0, 1, 700, 701, 1234):
        assert drawn(release, n, seed=1).num_rows == n


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_part_repeats_another(name: str) -> None:
    """Each has a stream of random numbers of its own: equal shares do not give equal rows."""
    release = release_of(name)
    made = drawing._drawing(release, None, None)
    share = next(iter(release.measure.shares(None, 3)))
    parts = [pa.Table.from_batches(drawing.draw_part(made, share, 9, part)) for part in range(3)]
    assert all(part.num_rows == share.rows for part in parts)
    assert not parts[0].equals(parts[1])
    assert not parts[1].equals(parts[2])
    assert parts[1].equals(pa.Table.from_batches(drawing.draw_part(made, share, 9, 1)))


def test_a_tree_gives_every_cell_its_mass() -> None:
    release = release_of("tree")
    measure = release.measure
    for n, mass in ((None, measure.mass), (release.total * 2, measure.mass * 2)):
        cells = measure.domain.locate(TREE.encode(drawn(release, n, seed=4)), measure.level)
        found, counts = np.unique(cells, return_counts=True)
        assert found.tolist() == measure.cells[mass > 0].tolist()
        assert counts.tolist() == mass[mass > 0].tolist()


def test_columns_have_their_released_distributions() -> None:
    """The share of each category differs from the released one by what 3,000 draws explain, and by no more."""
    release = release_of("columns")
    rows, here = drawn(release, 20_000, seed=2), release.sample(20_000, seed=3)
    for name in ("ward", "sex"):
        for label in sorted(set(here.column(name).to_pylist())):
            shares = [np.mean(np.array(table.column(name).to_pylist()) == label) for table in (rows, here)]
            # two shares of 20,000 rows: 5 standard deviations are 0.025 at most, a false alarm of 6e-7 each
            assert abs(shares[0] - shares[1]) < 0.025


def test_what_can_never_be_is_not_drawn() -> None:
    """Rows that break a constraint are replaced by rows of all parts, not of their own part alone."""
    release = release_of("never")
    rows, here = drawn(release, 20_000, seed=2), release.sample(20_000, seed=3)
    assert rows.num_rows == 20_000
    age, ward = rows.column("age").to_numpy(), np.array(rows.column("ward").to_pylist())
    assert not ((age < 50) & (ward == "A")).any()
    for low in (25, 50, 75):
        shares = [np.mean(table.column("age").to_numpy() >= low) for table in (rows, here)]
        assert abs(shares[0] - shares[1]) < 0.025
    some = drawn(release, seed=2, where="age < 50")
    assert some.num_rows
    assert "A" not in set(some.column("ward").to_pylist())
    assert some.column("age").to_numpy().max() < 50


@pytest.mark.parametrize(
    ("name", "where", "holds"),
    [
        ("tree", "age >= 50", lambda row: row["age"] >= 50),
        ("tree", "paid > 100", lambda row: row["paid"] > 100),
        ("columns", "ward = 'A' and age < 30", lambda row: row["ward"] == "A" and row["age"] < 30),
        ("never", "ward = 'B'", lambda row: row["ward"] == "B"),
    ],
)
def test_conditions_keep_the_rows_that_satisfy_them(name, where, holds) -> None:
    """All of them and no others: of a tree and of columns these are rows of the sample without a condition."""
    release = release_of(name)
    some = drawn(release, seed=4, where=where).to_pylist()
    assert some
    assert all(map(holds, some))
    if name == "tree":
        assert len(some) == sum(map(holds, drawn(release, seed=4).to_pylist()))
    with pytest.raises(ArgumentError, match="exclude each other"):
        frame_of(release, 5, where=where)


def test_points_have_the_names_that_are_given() -> None:
    points = np.random.default_rng(0).random((900, 2))
    synth = pm.Synthesizer(pm.Box([(0, 1)] * 2), epsilon=9, neighbours="replace")
    measure = synth.fit(points, insecure_seed=2).release_
    assert drawn(measure, seed=1).column_names == ["x0", "x1"]
    rows = drawn(measure, seed=1, names=["east", "north"])
    assert rows.column_names == ["east", "north"]
    cells = measure.domain.locate(np.column_stack([column.to_numpy() for column in rows.columns]), measure.level)
    assert np.unique(cells, return_counts=True)[1].tolist() == measure.mass[measure.mass > 0].tolist()


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_travels_holds_no_noisy_count(name: str) -> None:
    """The drawing and the shares are made of what the release says, without what was measured for it."""
    release = release_of(name)
    sent = pickle.loads(pickle.dumps(drawing._drawing(release, None, None)))
    parts = getattr(sent.measure, "columns", (sent.measure,))
    assert all(part.noisy is None for part in parts)
    assert getattr(sent.measure, "pairs", ()) == ()
    assert getattr(sent.measure, "agreements", None) is None
    assert all(part.noisy is not None for part in getattr(release.measure, "columns", (release.measure,)))


def test_shares_add_up_to_the_whole() -> None:
    """Whatever the masses and the number of parts: no row is lost or doubled, and sizes differ by one at most."""
    rng = np.random.default_rng(0)
    for trial in range(200):
        mass = rng.integers(0, 5, rng.integers(1, 9)) * (rng.random() < 0.95)
        cells = np.sort(rng.choice(50, len(mass), replace=False)).astype(np.uint64)
        parts = int(rng.integers(1, 12))
        shares, whole = list(cut_shares(cells, mass, parts)), np.zeros(50, int)
        for share in shares:
            np.add.at(whole, share.cells.astype(int), share.mass)
            assert share.mass.sum() == share.rows
        assert [share.rows for share in shares] == even_sizes(int(mass.sum()), parts), trial
        assert whole[cells.astype(int)].tolist() == mass.tolist(), trial
        assert whole.sum() == mass.sum()

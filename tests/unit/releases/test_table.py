"""Releases of tables: rows, answers by column, the file, and files that must be refused."""

import copy
import datetime as dt
import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure import PMM, Box, Privacy
from privmeasure.errors import ArgumentError, ReleaseFileError
from privmeasure.noise.entropy import Key
from privmeasure.releases import files
from privmeasure.releases.cells import CellMeasure
from privmeasure.releases.load import is_release, load
from privmeasure.releases.table import TableRelease
from privmeasure.sources.arrays import ArraySource
from privmeasure.sources.tables import TableSource
from privmeasure.tables import Boolean, Category, Constant, Date, Drop, Integer, Layout, Number, Place, Schema
from privmeasure.threads import BLOCK

SCHEMA = Schema(
    {
        "who": Drop(),
        "age": Integer(0, 99, weight=2),
        "income": Number(1, 1e6, transform="log", nullable=True),
        "sex": Category(["F", "M"]),
        "size": Category(["S", "M", "L"], ordered=True),
        "smoker": Boolean(),
        "born": Date("2000-01-01", "2020-12-31"),
        "site": Constant("north"),
    }
)
RNG = np.random.default_rng(5)
ROWS = 3000
TABLE = pa.table(
    {
        "site": ["north"] * ROWS,
        "born": [dt.date(2005, 1, 1) + dt.timedelta(int(d)) for d in RNG.integers(0, 1000, ROWS)],
        "age": pa.array(RNG.integers(20, 40, ROWS), pa.int16()),
        "sex": pa.array(np.where(RNG.random(ROWS) < 0.25, "F", "M")).dictionary_encode(),
        "size": np.where(RNG.random(ROWS) < 0.9, "S", "L"),
        "income": pa.array(np.exp(RNG.normal(8, 1, ROWS)), mask=RNG.random(ROWS) < 0.1),
        "smoker": RNG.random(ROWS) < 0.8,
        "who": ["someone"] * ROWS,
    }
)


def make(table=TABLE, schema=SCHEMA, *, epsilon=50, depth=None, types=True):
    schema.check(table.column_names, table.schema.types)
    layout = Layout.of(schema, table.column_names, table.schema.types if types else None)
    mechanism = PMM(schema.domain, Privacy(epsilon, "replace"), depth=depth)
    return TableRelease(schema, layout, mechanism.release(TableSource(table, schema), Key.insecure(1)))


@pytest.fixture(scope="module")
def release():
    return make()


@pytest.fixture(scope="module")
def small():
    return make(depth=4)


# -------------------------------------------------------------------------------------------------------------- samples


def test_order_names_and_types_are_those_that_came_in(release):
    sample = release.sample(500, seed=1)
    assert sample.column_names == [name for name in TABLE.column_names if name != "who"]
    assert sample.schema.types == TABLE.drop_columns(["who"]).schema.types
    assert sample.num_rows == 500
    assert set(sample["site"].to_pylist()) == {"north"}
    assert release.sample(seed=1).num_rows == release.total == ROWS
    assert make(types=False).sample(5)["age"].type == pa.int64()


def test_rows_are_like_the_data(release):
    sample = release.sample(seed=1)
    assert abs(pc.mean(sample["age"]).as_py() - pc.mean(TABLE["age"]).as_py()) < 1
    assert abs(pc.mean(pc.equal(sample["sex"].cast(pa.string()), "F")).as_py() - 0.25) < 0.03
    assert abs(sample["income"].null_count / ROWS - 0.1) < 0.03


@pytest.mark.parametrize("order", ["random", "cell"])
@pytest.mark.parametrize("n", [None, 0, 1, 1000, BLOCK + 1, 5 * BLOCK])
def test_batches_together_are_the_sample_whatever_the_threads(release, n, order):
    sample = release.sample(n, seed=7, order=order, threads=1)
    for threads in (1, 3):
        batches = list(release.batches(n, seed=7, order=order, threads=threads))
        assert len(batches) >= 1
        assert max(batch.num_rows for batch in batches) <= BLOCK
        assert pa.concat_tables(batches).equals(sample)
    points = release.measure.sample(n, seed=7, order=order)
    assert SCHEMA.decode(points, release.layout).combine_chunks().equals(sample.combine_chunks())
    if n:
        assert not release.sample(n, seed=8, order=order).equals(sample)


@pytest.mark.parametrize("order", ["random", "cell"])
@pytest.mark.parametrize("n", [0, 5, BLOCK + 5, 6 * BLOCK])
def test_blocks_of_points_are_the_sample(order, n):
    measure = PMM(Box([(0, 1)]), Privacy(1, "replace")).release(ArraySource(RNG.random(99), width=1), Key.insecure(1))
    blocks = list(measure.blocks(n, seed=3, order=order, threads=2))
    assert np.array_equal(np.concatenate([np.empty((0, 1)), *blocks]), measure.sample(n, seed=3, order=order))
    assert list(measure.blocks(n, seed=3, order=order, then=len)) == [len(block) for block in blocks]


def test_batches_are_made_when_they_are_asked_for(release):
    made = []
    blocks = release.measure.blocks(20 * BLOCK, order="cell", threads=2, then=lambda points: made.append(len(points)))
    assert made == []
    next(blocks)
    assert len(made) <= 5
    blocks.close()
    assert len(made) <= 6


@pytest.mark.parametrize("n", [-1, 1.5, True, "9"])
def test_a_bad_number_is_refused_before_anything_is_drawn(release, n):
    for ask in (release.sample, release.batches, release.measure.blocks):
        with pytest.raises(ArgumentError, match="n must be a whole number"):
            ask(n)


@pytest.mark.parametrize(("frame", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)])
def test_any_kind_of_frame(release, frame, kind):
    sample = release.sample(10, frame=frame)
    assert isinstance(sample, kind)
    assert sample.shape == (10, 7)


# -------------------------------------------------------------------------------------------------------------- answers


def test_means_are_those_of_a_large_sample(release):
    means = release.mean()
    assert list(means) == ["age", "income", "smoker"]
    sample = release.sample(400_000, seed=1)
    for name, value in means.items():
        column = sample[name].cast(pa.float64()).to_numpy()
        column = column[~np.isnan(column)]
        assert abs(value - column.mean()) < 5 * column.std() / math.sqrt(len(column)) + 0.01 * abs(value), name


@pytest.mark.parametrize("missing", [False, True])
def test_the_mean_of_a_boolean_with_texts_is_the_share_of_true(missing):
    texts = {"true": ["yes", "y"], "false": ["no"], "nullable": missing}
    rows = pa.table({"a": ["yes"] * 30 + ["no"] * 50 + (["?"] * 20 if missing else ["y"] * 20)})
    found = make(rows, Schema({"a": Boolean(**texts)})).mean()
    plain = pa.table({"a": [True] * 30 + [False] * 50 + ([None] * 20 if missing else [True] * 20)})
    assert found == make(plain, Schema({"a": Boolean(nullable=missing)})).mean()
    assert found["a"] == pytest.approx(3 / 8 if missing else 1 / 2, abs=0.02)


def test_quantiles_come_in_the_columns_own_type(release):
    sample = release.sample(200_000, seed=1)
    assert abs(release.quantile(0.5, column="age") - np.median(sample["age"])) <= 2
    income = sample["income"].drop_null().to_numpy()
    assert abs(math.log(release.quantile(0.5, column="income") / np.median(income))) < 0.1
    born = release.quantile(0.5, column="born")
    assert isinstance(born, dt.date)
    assert (
        abs(
            (
                born - pc.quantile(sample["born"].cast(pa.int32()))[0].as_py() * dt.timedelta(1) - dt.date(1970, 1, 1)
            ).days
        )
        < 40
    )
    assert release.quantile(0.5, column="size") == "S"
    assert release.quantile(1, column="size") == "L"


def test_error_bars_are_in_the_columns_units(release):
    guarantee = release.plan.guarantee
    assert release.error_bar(lipschitz=2) == pytest.approx(2 * guarantee)
    assert release.error_bar(column="age") == pytest.approx(99 / 2 * guarantee)  # weight 2
    assert release.error_bar(column="sex") == math.inf
    plain = make(schema=SCHEMA.only(["age"]))
    assert plain.error_bar(column="age") == pytest.approx(99 / 2 * plain.plan.guarantee)
    for column, steepest in (
        (Number(1, 1e3, transform="log"), 1e3 * -math.expm1(-math.log(1e3) / 2**16) * 2**16),  # straight between knots
        (Number(0, 100, breaks=[10]), 90 * 2),
    ):
        schema = Schema({"x": column})
        found = make(pa.table({"x": [1.0, 50.0]}), schema)
        assert found.error_bar(column="x") == pytest.approx(steepest * found.plan.guarantee)


def test_questions_about_columns_that_have_no_answer(release):
    with pytest.raises(ArgumentError, match=r"got 'agee'\. Did you mean 'age'"):
        release.quantile(0.5, column="agee")
    with pytest.raises(ArgumentError, match="has no order"):
        release.quantile(0.5, column="sex")
    with pytest.raises(ArgumentError, match="one of lipschitz"):
        release.error_bar(column="age", lipschitz=1)
    place = Schema({"home": Place("lat", "lon")})
    found = make(pa.table({"lat": [1.0], "lon": [2.0]}), place)
    with pytest.raises(ArgumentError, match="two coordinates"):
        found.quantile(0.5, column="home")
    assert found.mean() == {}


def test_a_certificate_is_that_of_the_measure(small):
    assert small.certificate(0.1) == small.measure.certificate(0.1)
    assert small.certificate(0.1) != small.certificate(0.01)


def test_it_says_what_it_is(release):
    assert repr(release) == f"TableRelease(7 columns, {ROWS} rows, NOT PRIVATE)"
    assert release.plan == release.measure.plan
    assert release.to_frame().num_rows == len(release.measure.cells)


# ----------------------------------------------------------------------------------------------------------------- file


def test_a_saved_release_comes_back(release, tmp_path):
    path = tmp_path / "people.release"
    release.save(path)
    assert is_release(path)
    again = load(path)
    assert isinstance(again, TableRelease)
    assert again.schema == SCHEMA
    assert again.layout == release.layout
    assert again.sample(100, seed=1).equals(release.sample(100, seed=1))
    again.save(tmp_path / "again.release")
    assert (tmp_path / "again.release").read_bytes() == path.read_bytes()


def test_a_release_of_points_comes_back_as_one(release, tmp_path):
    release.measure.save(tmp_path / "points")
    assert isinstance(load(tmp_path / "points"), CellMeasure)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other")
    (tmp_path / "text").write_text("a\n1\n")
    assert not any(map(is_release, (tmp_path / "other", tmp_path / "text", tmp_path / "none", tmp_path)))


def places(value, here=()):
    """Yield the way to every value in a JSON value."""
    yield here
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*here, key))


def changed(header, way, new):
    header = copy.deepcopy(header)
    *above, last = way
    target = header
    for key in above:
        target = target[key]
    if new is ...:
        del target[last]
    else:
        target[last] = new
    return header


def test_every_edited_field_is_refused_or_harmless(small, tmp_path):
    """Whatever stands in any field of schema and layout: one ReleaseFileError, or a release that works."""
    path = tmp_path / "edited"
    header, columns = small.header(), small.measure.columns_of_file()
    files.write_release(path, header, columns)
    assert load(path).sample(3).num_rows == 3
    ways = [(key, *way) for key in ("schema", "layout") for way in places(header[key])]
    assert len(ways) > 60
    messages = []
    for way in ways:
        for new in (..., None, -1, "x", [], {"a": 1}, 1e308):
            files.write_release(path, changed(header, way, new), columns)
            try:
                found = load(path)
            except ReleaseFileError as error:
                messages.append(str(error))
                continue
            if isinstance(found, TableRelease):  # without a schema it is a release of points
                assert found.sample(3).num_rows == 3
    assert len(messages) > 3 * len(ways)
    assert all(str(path) in message and "\n" not in message for message in messages)


def test_a_schema_of_another_domain_is_refused(small, tmp_path):
    header = small.header()
    header["schema"]["columns"][1]["high"] = 98
    files.write_release(tmp_path / "x", header, small.measure.columns_of_file())
    with pytest.raises(ReleaseFileError, match="the schema is not the one that the domain was made of"):
        load(tmp_path / "x")


def test_a_truncated_file_is_refused(small, tmp_path):
    path = tmp_path / "people.release"
    small.save(path)
    whole = path.read_bytes()
    for size in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ReleaseFileError):
            load(path)


def test_a_flipped_bit_is_noticed(small, tmp_path):
    """In a page by its checksum, in the header by its second copy."""
    path = tmp_path / "people.release"
    small.save(path)
    whole = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    last = column.data_page_offset + column.total_compressed_size - 1
    for place in (last, last - 20, whole.index(b'"epsilon"') + 1, whole.index(b'"private"') + 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ReleaseFileError):
            load(path)
    path.write_bytes(whole)
    assert load(path).plan == small.plan


def test_a_flipped_bit_of_any_noisy_count_is_noticed(small, tmp_path):
    """Noisy counts need not sum to anything: a change of one is seen by the checksum of its page alone."""
    path = tmp_path / "people.release"
    small.save(path)
    whole = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    stop = column.data_page_offset + column.total_compressed_size
    for place in range(stop - 1, stop - column.total_compressed_size // 2, -7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ReleaseFileError, match="complete Parquet file"):
            load(path)


def test_the_file_holds_nothing_but_public_declarations(small, tmp_path):
    small.save(tmp_path / "x")
    metadata = json.loads(pq.ParquetFile(tmp_path / "x").schema_arrow.metadata[files.HEADER_KEY])
    assert set(metadata) == {*small.measure.header(), "schema", "layout"}
    assert "someone" not in json.dumps(metadata)


def test_sampling_a_loaded_release_never_loads_private_rooms(small, tmp_path):
    small.save(tmp_path / "x")
    code = (
        "import sys\n"
        "from privmeasure.releases.load import load\n"
        "from privmeasure.tables.writing import write_table\n"
        f"write_table({str(tmp_path / 'y.csv')!r}, load({str(tmp_path / 'x')!r}).batches(10))\n"
        "rooms = ('counts', 'sources', 'metrics', 'mechanisms', 'synthesizer')\n"
        "print([m for m in sys.modules if m.startswith(tuple('privmeasure.' + room for room in rooms))])\n"
        "print([m for m in ('scipy', 'ortools', 'narwhals', 'polars') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]


def test_a_sample_is_near_the_released_columns():
    rng = np.random.default_rng(0)
    table = pa.table(
        {"a": rng.random(4000), "b": rng.integers(0, 5, 4000), "c": rng.random(4000), "d": rng.random(4000)}
    )
    schema = pm.Schema({"a": pm.Number(0, 1), "b": pm.Integer(0, 4), "c": pm.Number(0, 1), "d": pm.Number(0, 1)})
    synthesizer = pm.Synthesizer(schema, epsilon=1, neighbours="replace").fit(table)
    release = synthesizer.release_
    near = release.distances(synthesizer.sample(seed=0))
    assert list(near) == ["a", "b", "c", "d"]
    assert max(near.values()) < 0.02
    assert release.distances(table.set_column(0, "a", pa.array(np.zeros(4000))))["a"] > 0.3
    assert pc.min(synthesizer.sample(200, where="a >= 0.5")["a"]).as_py() >= 0.5
    with pytest.raises(pm.PrivmeasureError, match="joint distribution"):
        synthesizer.epsilon_for(w1=0.1, rows=4000)


# ------------------------------------------------------------------------------------------ columns that stand alone

MOODS = ["good", "bad", "mixed"]


def _moods(n=3000):
    """Three columns that nearly agree, and three that have nothing to do with any other."""
    rng = np.random.default_rng(5)
    mood = rng.integers(0, 3, n)
    near = [np.where(rng.random(n) < 0.9, mood, rng.integers(0, 3, n)) for _ in range(3)]
    far = [rng.integers(0, 3, n) for _ in range(3)]
    names = ["near0", "near1", "near2", "far0", "far1", "far2"]
    return pa.table({name: np.array(MOODS)[cells] for name, cells in zip(names, near + far, strict=True)})


def _moods_release(seed=1, *, epsilon=4, **schema):
    columns = {name: Category(MOODS) for name in _moods(1).column_names}
    synthesizer = pm.Synthesizer(Schema(columns, **schema), epsilon=epsilon, neighbours="add-remove")
    return synthesizer.fit(_moods(), insecure_seed=seed).release_


def test_independent_columns_stand_alone_and_dependent_ones_never(tmp_path):
    found = [_moods_release(seed).standing_alone for seed in range(10)]
    assert not any(name.startswith("near") for names in found for name in names)
    assert sum(map(len, found)) >= 24  # of 30, most of them linked on paper
    release = _moods_release()
    release.save(tmp_path / "moods.release")
    assert load(tmp_path / "moods.release").standing_alone == release.standing_alone


def test_columns_that_a_rule_or_a_group_joins_do_not_stand_alone():
    assert {"far0", "far1"} <= set(_moods_release(3).standing_alone)
    ruled = _moods_release(3, never=["far0 = 'good' and far1 = 'bad'"]).standing_alone
    assert not {"far0", "far1"} & set(ruled)
    grouped = _moods_release(3, groups=[("far0", "far1")]).standing_alone
    assert not {"far0", "far1"} & set(grouped)


def test_little_epsilon_leaves_columns_alone_whatever_they_have_to_do_with_each_other():
    release = _moods_release(epsilon=0.01)
    assert len(release.standing_alone) >= release.plan.parts - 1 > 0


def test_a_release_of_one_tree_has_no_columns_that_stand_alone():
    schema = Schema({"a": Boolean(), "b": Boolean()})
    data = pa.table({"a": [True, False] * 200, "b": [True, True, False, False] * 100})
    assert pm.Synthesizer(schema, epsilon=1, neighbours="replace").fit(data).release_.standing_alone == []

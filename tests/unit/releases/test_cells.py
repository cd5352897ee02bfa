"""What anyone may see: rows from a release, answers about it, its file, and files that must be refused."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import privmeasure as pm
from depth import some
from privmeasure.domains import Categories, Integers
from privmeasure.errors import ArgumentError, ReleaseFileError
from privmeasure.mechanisms import tree
from privmeasure.plans.plan import Plan
from privmeasure.releases import files, sampling
from privmeasure.releases.cells import CellMeasure
from privmeasure.releases.sampling import BUCKETS, Rows
from privmeasure.threads import BLOCK
from privmeasure.transport import apportion

ALPHA = 1e-6
"""The chance that a statistical test of this file fails although nothing is wrong; all seeds are fixed besides."""

BOX = pm.Box([(0, 1), (-5, 5)])


DEFAULT = pm.Recipe()


def make(domain=BOX, rows=3000, *, recipe=DEFAULT, seed=1, **options):
    rng = np.random.default_rng(seed)
    low, high = domain.extent(np.zeros(1, np.uint64), 0)
    points = low + (high - low) * rng.beta(2, 5, (rows, domain.width))
    options = {"epsilon": 1, "neighbours": "replace"} | options
    return pm.Synthesizer(domain, recipe=recipe, **options).fit(points, insecure_seed=seed).release_


@pytest.fixture(scope="module")
def measure():
    return make()


def histogram(measure, points):
    cells, counts = np.unique(measure.domain.locate(points, measure.level), return_counts=True)
    return cells.tolist(), counts.tolist()


# ------------------------------------------------------------------------------------------------------------- sample


@pytest.mark.parametrize("placement", ["uniform", "centre"])
@pytest.mark.parametrize("domain", [BOX, pm.Box([(0, 1)]), Integers(0, 99), Categories(9)], ids=repr)
@pytest.mark.parametrize("order", ["random", "cell"])
def test_without_n_rows_have_exactly_the_released_masses(domain, placement, order):
    measure = make(domain, recipe=pm.Recipe(placement=placement))
    points = measure.sample(seed=3, order=order)
    assert points.shape == (measure.total, domain.width)
    assert points.dtype == np.float64
    assert histogram(measure, points) == (measure.cells.tolist(), measure.mass.tolist())


@pytest.mark.parametrize("n", [0, 1, 2, 17, 2999, 3000, 3001, 50_000])
def test_with_n_every_run_of_cells_gets_its_share_to_within_one_row(measure, n):
    points = measure.sample(n, seed=1)
    assert points.shape == (n, 2)
    counts = np.zeros(len(measure.cells), np.int64)
    cells, found = histogram(measure, points)
    counts[np.searchsorted(measure.cells, np.array(cells, np.uint64))] = found
    assert (counts == apportion(measure.mass, n)).all()


@some("seed", 6, range(30))
def test_cumulative_rounding(seed):
    rng = np.random.default_rng(seed)
    mass = rng.integers(1, 10 ** rng.integers(1, 12), rng.integers(1, 60))
    n = int(10 ** rng.uniform(0, 12))
    rows = apportion(mass, n)
    assert rows.dtype == np.int64
    assert rows.sum() == n
    assert (rows >= 0).all()
    total = int(mass.sum())
    share = [0, *(n * int(c) for c in np.cumsum(mass))]  # times total
    got = [0, *(total * int(c) for c in np.cumsum(rows))]
    for i in range(len(share)):
        for j in range(i):
            assert abs((got[i] - got[j]) - (share[i] - share[j])) <= total


def test_equal_masses_at_their_own_size_stay():
    mass = np.array([3, 1, 4, 1, 5])
    assert apportion(mass, 14).tolist() == mass.tolist()
    assert apportion(mass, 28).tolist() == (2 * mass).tolist()


@pytest.mark.parametrize("size", [2**31, 2**40, 2**53, 2**60])
def test_huge_products_do_not_overflow(size):
    mass = np.array([size, size // 3, 1, size - 7])
    for rows in (5, 2**31 + 1, 2**52 + 1):
        exact, edges = [int(m) for m in mass], [0]
        for i in range(len(exact)):
            edges.append((2 * rows * sum(exact[: i + 1]) + sum(exact)) // (2 * sum(exact)))
        assert apportion(mass, rows).tolist() == [b - a for a, b in pairwise(edges)]


@pytest.mark.parametrize("order", ["random", "cell"])
@pytest.mark.parametrize("n", [None, 40_000, 300_000])
def test_a_seed_makes_rows_reproducible_whatever_the_threads(measure, order, n):
    first = measure.sample(n, seed=5, order=order, threads=1)
    assert (first == measure.sample(n, seed=5, order=order, threads=2)).all()
    assert (first == measure.sample(n, seed=5, order=order)).all()
    assert not (first == measure.sample(n, seed=6, order=order)).all()
    assert not (measure.sample(n, order=order) == measure.sample(n, order=order)).all()


def test_orders_have_the_same_cells(measure):
    by_cell = measure.domain.locate(measure.sample(seed=1, order="cell"), measure.level)
    shuffled = measure.domain.locate(measure.sample(seed=1), measure.level)
    assert (by_cell == np.sort(by_cell)).all()
    assert (by_cell == np.sort(shuffled)).all()
    assert not (by_cell == shuffled).all()


def test_centres_need_no_randomness():
    measure = make(recipe=pm.Recipe(placement="centre"))
    a, b = measure.sample(order="cell"), measure.sample(order="cell")
    assert (a == b).all()
    assert (a == np.repeat(measure.domain.centre(measure.cells, measure.level), measure.mass, axis=0)).all()


WRONG = [{"n": -1}, {"n": 1.5}, {"n": True}, {"n": 2**70}, {"order": "sorted"}, {"seed": -1}, {"seed": "x"}]


@pytest.mark.parametrize("arguments", WRONG, ids=str)
def test_wrong_arguments_of_sample_are_named(measure, arguments):
    with pytest.raises(ArgumentError, match=next(iter(arguments))):
        measure.sample(**arguments)


# ------------------------------------------------------------------------------------------------------- random order


def p_value_of_positions(order, size, runs=60, bins=20):
    """Where the rows of the first tenth end up: their places must fill the bins of positions evenly."""
    cells = np.arange(size, dtype=np.uint64)
    counts = np.zeros(bins, np.int64)
    for seed in range(runs):
        place = np.flatnonzero(order(cells, seed) < size // 10)
        counts += np.bincount(place * bins // size, minlength=bins)
    return stats.chisquare(counts).pvalue


def ours(cells, seed, threads=2):
    """The rows of a sample in which every cell has one row, in random order."""
    rows = Rows(cells, np.ones(len(cells), np.int64), np.random.SeedSequence(seed), shuffled=True, threads=threads)
    return np.concatenate([rows.chunk(i, rows.stream(i)) for i in range(len(rows.edges) - 1)])


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of two blocks, so that few rows already go through the buckets."""
    monkeypatch.setattr(sampling, "ROW_CHUNK", 2 * BLOCK)


def weak(cells, seed):
    """Only half of the rows are exchanged with a random partner: far from uniform."""
    rng, cells = np.random.default_rng(seed), cells.copy()
    half = rng.random(len(cells)) < 0.5
    cells[half] = rng.permutation(cells[half])
    return cells


def slightly_weak(cells, seed):
    """One bucket of 256 keeps its place."""
    rng, cells = np.random.default_rng(seed), cells.copy()
    moved = rng.random(len(cells)) >= 1 / 64
    cells[moved] = rng.permutation(cells[moved])
    return cells


@pytest.mark.parametrize("size", [1000, 2 * BLOCK, 2 * BLOCK + 1, 20_000])
def test_positions_are_uniform(size, small_chunks):
    assert p_value_of_positions(ours, size) > ALPHA


def test_positions_are_uniform_in_full_chunks():
    assert p_value_of_positions(ours, sampling.ROW_CHUNK + 1000, runs=10) > ALPHA


@pytest.mark.parametrize("biased", [weak, slightly_weak])
def test_a_biased_order_is_rejected(biased):
    assert p_value_of_positions(biased, 20_000) < ALPHA


def p_value_of_neighbours(order, size, runs=60):
    """How often two rows of the same pair (2k, 2k + 1) stand next to each other: once a run on average, as Poisson."""
    together = 0
    for seed in range(runs):
        pairs = order(np.arange(size, dtype=np.uint64), seed) >> np.uint64(1)
        together += int((pairs[1:] == pairs[:-1]).sum())
    return 2 * min(stats.poisson.cdf(together, runs), stats.poisson.sf(together - 1, runs))


def test_neighbours_do_not_stay_together(small_chunks):
    assert p_value_of_neighbours(ours, 20_000) > ALPHA

    def only_buckets(cells, seed):
        bucket = np.random.default_rng(seed).integers(0, BUCKETS, len(cells))
        return cells[np.argsort(bucket, kind="stable")]  # scattered, but not mixed inside the buckets

    assert p_value_of_neighbours(only_buckets, 20_000) < ALPHA


@pytest.mark.parametrize("shuffled", [False, True])
@some("size", 4, [1, 2, 5, 8191, 8192, 8193, 16_384, 16_385, 24_576, 100_001])
@pytest.mark.parametrize("top", [0, 2**40])
def test_every_row_is_kept_whatever_the_threads(size, shuffled, top, small_chunks):
    rng = np.random.default_rng(size)
    cells = np.unique(rng.integers(0, 5000, 300)).astype(np.uint64) + np.uint64(top)
    mass = rng.multinomial(size, np.full(len(cells), 1 / len(cells)))  # some cells without a row
    made = []
    for threads in (1, 2):
        rows = Rows(cells, mass, np.random.SeedSequence(4), shuffled=shuffled, threads=threads)
        assert rows.count == rows.edges[-1] == size
        made.append(np.concatenate([rows.chunk(i, rows.stream(i)) for i in range(len(rows.edges) - 1)]))
    assert np.array_equal(made[0], made[1])
    assert made[0].dtype == np.uint64
    assert np.array_equal(np.sort(made[0]) if shuffled else made[0], np.repeat(cells, mass))


def test_small_permutations_are_all_equally_likely():
    draws = [tuple(ours(np.arange(4, dtype=np.uint64), seed).tolist()) for seed in range(2400)]
    counts = np.unique(draws, axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > ALPHA


def test_the_first_rows_look_like_the_table(measure):
    first, rest = np.split(measure.sample(seed=8), [500])
    assert stats.ks_2samp(first[:, 0], rest[:, 0]).pvalue > ALPHA
    sorted_rows = measure.sample(seed=8, order="cell")
    assert stats.ks_2samp(sorted_rows[:500, 0], sorted_rows[500:, 0]).pvalue < ALPHA


# ------------------------------------------------------------------------------------------------------------ answers


@pytest.mark.parametrize("domain", [BOX, pm.Box([(-1, 1)] * 3, weights=[1, 2, 3])], ids=repr)
def test_mean_and_quantile_against_brute_force(domain):
    measure = make(domain)
    many = measure.sample(400_000, seed=2)
    low, high = domain.extent(np.zeros(1, np.uint64), 0)
    for column in range(domain.width):
        span = float(high[0, column] - low[0, column])
        assert measure.mean()[column] == pytest.approx(many[:, column].mean(), abs=0.003 * span)
        for q in (0.01, 0.1, 0.25, 0.5, 0.9, 0.999):
            at = measure.quantile(q, column=column)
            assert (many[:, column] <= at).mean() == pytest.approx(q, abs=0.003)
        values = [measure.quantile(q, column=column) for q in np.linspace(0, 1, 21)]
        assert values == sorted(values)
        lowest, highest = measure.domain.extent(measure.cells, measure.level)
        assert values[0] == pytest.approx(lowest[:, column].min(), abs=1e-9)
        assert values[-1] == pytest.approx(highest[:, column].max(), abs=1e-9)


def test_mean_and_quantile_of_whole_numbers():
    """Where cells are single points, both are those of the list of points, in every position."""
    measure = make(Integers(0, 99), depth=7)
    points = measure.sample(seed=1)[:, 0]
    assert measure.mean()[0] == pytest.approx(points.mean())
    for k in range(1, 200):
        q = (k - 0.5) / 200
        assert measure.quantile(q) == np.quantile(points, q, method="inverted_cdf")


def test_quantile_of_a_measure_with_a_gap():
    measure = make(pm.Box([(0, 8)]), depth=3)
    cells, mass = np.array([1, 6], np.uint64), np.array([1, 3])
    gap = CellMeasure(measure.domain, cells, mass, measure.plan, measure.recipe, "uniform", False)
    assert [gap.quantile(q) for q in (0, 0.125, 0.25, 0.625, 1)] == [1, 1.5, 2, 6.5, 7]
    assert gap.mean() == pytest.approx([(1.5 + 3 * 6.5) / 4])


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan")])
def test_wrong_quantiles_are_named(measure, q):
    with pytest.raises(ArgumentError, match="q must"):
        measure.quantile(q)
    with pytest.raises(ArgumentError, match="column"):
        measure.quantile(0.5, column=2)


def test_to_frame(measure):
    frame = measure.to_frame()
    assert frame.column_names == ["cell", "mass", "low_0", "high_0", "low_1", "high_1"]
    assert frame["cell"].to_numpy().tolist() == measure.cells.tolist()
    assert frame["mass"].to_numpy().sum() == measure.total
    points = measure.domain.centre(measure.cells, measure.level)
    for i in range(2):
        assert (frame[f"low_{i}"].to_numpy() < points[:, i]).all()
        assert (frame[f"high_{i}"].to_numpy() > points[:, i]).all()


# --------------------------------------------------------------------------------------------------------------- file


def same(a, b):
    return (
        np.array_equal(a.cells, b.cells)
        and np.array_equal(a.mass, b.mass)
        and a.header() == b.header()
        and (a.noisy is None) == (b.noisy is None)
        and all(np.array_equal(a.noisy[j], b.noisy[j]) and a.noisy[j].dtype == b.noisy[j].dtype for j in a.noisy or ())
        and (a.plan, a.recipe, a.placement, a.private) == (b.plan, b.recipe, b.placement, b.private)
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("recipe", [pm.Recipe(), pm.Recipe("every level", "none", "proportional", "centre")], ids=repr)
@pytest.mark.parametrize(
    "domain",
    [BOX, pm.Box([(0.1, 0.3)] * 3, weights=[1, 2, 1 / 3]), Integers(-5, 40), Categories(list("abcde"))],
    ids=repr,
)
def test_round_trip(tmp_path, relation, recipe, domain):
    measure = make(domain, recipe=recipe, neighbours=relation, epsilon=0.3, rows_per_person=2)
    measure.save(tmp_path / "release.parquet")
    loaded = pm.load(tmp_path / "release.parquet")
    assert same(loaded, measure)
    assert loaded.plan.privacy == pm.Privacy(0.3, relation, 2)
    assert loaded.cells.dtype == np.uint64
    assert loaded.mass.dtype == np.int64
    assert loaded.domain.to_json() == domain.to_json()
    assert np.array_equal(loaded.sample(seed=3), measure.sample(seed=3))
    loaded.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "release.parquet").read_bytes()


@pytest.mark.parametrize("depth", [0, 40])
def test_round_trip_of_the_shallowest_and_the_deepest(tmp_path, depth):
    measure = make(rows=20, depth=depth)
    measure.save(tmp_path / "release.parquet")
    assert same(pm.load(tmp_path / "release.parquet"), measure)


def test_a_private_release_says_so(tmp_path):
    synthesizer = pm.Synthesizer(BOX, epsilon=1, neighbours="replace").fit(np.zeros((10, 2)))
    synthesizer.save(tmp_path / "release.parquet")
    loaded = pm.load(str(tmp_path / "release.parquet"))
    assert loaded.private
    assert loaded.header()["private"] is True
    assert "NOT PRIVATE" not in repr(loaded)


def test_the_header_holds_what_was_released_and_nothing_else(measure, tmp_path):
    path = tmp_path / "release.parquet"
    measure.save(path)
    file = pq.ParquetFile(path)
    metadata = dict(file.schema_arrow.metadata)
    assert set(metadata) == {b"privmeasure"}
    header = json.loads(metadata[b"privmeasure"])
    known = {"format", "kind", "private", "domain", "parts", "plan", "recipe", "id", "version", "recorded"}
    assert set(header) == known
    assert header["format"] == 1
    assert header["plan"]["privacy"] == {
        "epsilon": "1",
        "delta": 0,
        "neighbours": "replace",
        "rows_per_person": 1,
    }
    text = json.dumps(header).lower()
    for word in ("time", "date", "host", "user", "path", str(tmp_path).lower()):
        assert word not in text
    assert [(f.name, str(f.type)) for f in file.schema_arrow] == [
        ("part", "uint16"),
        ("cell", "uint64"),
        ("mass", "int64"),
    ]


def test_equal_releases_give_equal_bytes(tmp_path):
    for name in ("a", "b"):
        make().save(tmp_path / name)
    make(seed=2).save(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


def test_saving_over_a_file_replaces_it(measure, tmp_path):
    path = tmp_path / "release with a space.parquet"
    path.write_text("something else")
    measure.save(path)
    assert same(pm.load(path), measure)
    make(seed=2).save(path)
    assert not same(pm.load(path), measure)
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_behind_when_saving_fails(measure, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        measure.save(tmp_path / "missing" / "release.parquet")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        measure.save(tmp_path / "folder")
    old = tmp_path / "old.parquet"
    measure.save(old)
    before = old.read_bytes()

    def half(table, where, **options):
        where.write(b"PAR1 half a file")
        raise OSError("No space left on device")

    monkeypatch.setattr(pq, "write_table", half)
    with pytest.raises(OSError, match="No space"):
        measure.save(old)
    assert old.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "old.parquet"]


# ---------------------------------------------------------------------------------------------------------- bad files


def refused(path):
    """The file is refused with one readable paragraph that names it, and in no other way."""
    with pytest.raises(ReleaseFileError) as caught:
        pm.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert 20 < len(message) < 600 + len(str(path))
    assert message.endswith(".")
    return message


def write(
    path, header, *, part=None, cell=(0, 1, 2), mass=(1, 1, 1), types=("uint16", "uint64", "int64"), key="privmeasure"
):
    columns = {"part": [0] * len(cell) if part is None else part, "cell": cell, "mass": mass}
    arrays = {n: pa.array(list(v), t) for (n, v), t in zip(columns.items(), map(pa.type_for_alias, types), strict=True)}
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    pq.write_table(pa.table(arrays, metadata={key.encode(): text}), path)


def without_noisy_counts(measure):
    """The same release as a file of the first version had it: masses alone."""
    return replace(measure, noisy=None)


@pytest.fixture
def small(tmp_path):
    """A small release, its file and its header, without noisy counts."""
    measure = without_noisy_counts(make(pm.Box([(0, 1)]), rows=3, depth=2))
    path = tmp_path / "release.parquet"
    measure.save(path)
    return measure, path, measure.header()


def test_truncated_files(small):
    _, path, _ = small
    whole = path.read_bytes()
    for length in sorted({*range(40), *range(40, len(whole), 37), *range(len(whole) - 30, len(whole))}):
        path.write_bytes(whole[:length])
        refused(path)


def test_damaged_bytes_are_refused_or_harmless(small):
    """A file with a changed byte is refused, or gives a valid release: never another exception."""
    _, path, _ = small
    whole, rng, refusals = path.read_bytes(), np.random.default_rng(0), 0
    for offset in range(0, len(whole), 5):
        damaged = bytearray(whole)
        damaged[offset] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            measure = pm.load(path)
        except ReleaseFileError:
            refusals += 1
        else:
            assert len(measure.sample(10)) == 10
            assert str(measure.plan)
    assert refusals > 50


@pytest.mark.parametrize(
    "content",
    [b"", b"PAR1", b"PAR1PAR1", b"not a release\n" * 100, bytes(range(256)) * 10, b"PAR1" + b"\xff" * 100 + b"PAR1"],
)
def test_garbage(tmp_path, content):
    (tmp_path / "garbage").write_bytes(content)
    refused(tmp_path / "garbage")


def test_other_parquet_files(tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), path)
    assert "not a privmeasure release" in refused(path)
    write(path, make(rows=3).header(), key="pandas")
    assert "not a privmeasure release" in refused(path)


def test_missing_files_are_not_called_damaged(tmp_path):
    with pytest.raises(FileNotFoundError):
        pm.load(tmp_path / "missing")


@pytest.mark.parametrize("header", [b"", b"{", b"\xff\xfe\x00", b"[]", b"null", b"1", b'"x"', b"{}", b"[" * 100_000])
def test_unreadable_headers(tmp_path, header):
    write(tmp_path / "file", header)
    refused(tmp_path / "file")


def test_the_next_format_asks_for_an_update(small):
    _, path, header = small
    write(path, header | {"format": 3})
    message = refused(path)
    assert "format 3" in message
    assert "Update" in message


def test_wrong_types_and_columns(small):
    measure, path, header = small
    good = {"cell": measure.cells.tolist(), "mass": measure.mass.tolist()}
    write(path, header, **good)
    assert same(pm.load(path), measure)
    for types in (("int32", "uint64", "int64"), ("uint16", "int64", "int64"), ("uint16", "uint64", "float64")):
        write(path, header, **good, types=types)
        assert "columns" in refused(path)
    text = {b"privmeasure": json.dumps(header).encode()}
    table = pq.read_table(path)
    for changed in (table.drop(["part"]), table.append_column("more", table["mass"]), table.select([1, 0, 2])):
        pq.write_table(changed.replace_schema_metadata(text), path)
        refused(path)


@pytest.mark.parametrize(
    "columns",
    {
        "unsorted": {"cell": [1, 0, 2], "mass": [1, 1, 1]},
        "twice": {"cell": [0, 0, 2], "mass": [1, 1, 1]},
        "no mass": {"cell": [0, 1, 2], "mass": [3, 0, 0]},
        "negative": {"cell": [0, 1, 2], "mass": [5, -1, -1]},
        "huge": {"cell": [0, 1, 2], "mass": [2**62, 2**62, 2**62]},
        "too many": {"cell": [0, 1, 2], "mass": [1, 1, 2]},
        "beyond the level": {"cell": [0, 1, 4], "mass": [1, 1, 1]},
        "far beyond the level": {"cell": [0, 1, 2**64 - 1], "mass": [1, 1, 1]},
        "empty": {"cell": [], "mass": []},
        "other part": {"part": [0, 0, 1], "cell": [0, 1, 2], "mass": [1, 1, 1]},
        "missing cell": {"cell": [0, 1, None], "mass": [1, 1, 1]},
        "missing mass": {"cell": [0, 1, 2], "mass": [1, 2, None]},
        "missing part": {"part": [0, 0, None], "cell": [0, 1, 2], "mass": [1, 1, 1]},
    }.items(),
    ids=lambda case: case[0],
)
def test_masses_that_are_none(small, columns):
    _, path, header = small
    write(path, header)
    pm.load(path)
    write(path, header, **columns[1])
    refused(path)


def test_a_header_is_not_parsed_if_it_would_fill_the_memory(small):
    _, path, header = small
    text = json.dumps(header)[:-1].encode() + b', "more": [' + b"{}," * files.MAX_HEADER_PARTS + b"{}]}"
    write(path, text)
    assert "larger than one can be" in refused(path)


def test_masses_sum_to_fewer_than_two_to_the_53_rows(small):
    measure, path, header = small
    for rows in (2**53 - 1, 2**53):
        header["plan"] = measure.plan.to_json() | {"rows": rows}
        write(path, header, mass=[1, 1, rows - 2])
        if rows < 2**53:
            assert pm.load(path).total == rows
        else:
            assert "2^53" in refused(path)


def test_cells_that_do_not_exist(tmp_path):
    header = without_noisy_counts(make(Categories(3), rows=3, depth=2)).header()
    write(tmp_path / "good", header, cell=[0, 1, 2])
    pm.load(tmp_path / "good")
    write(tmp_path / "bad", header, cell=[0, 1, 3])
    refused(tmp_path / "bad")


# ------------------------------------------------------------------------------------------------------ noisy counts


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("domain", [BOX, Integers(0, 40), Categories(5)], ids=repr)
def test_noisy_counts_are_those_of_the_measured_levels(domain, relation):
    measure = make(domain, neighbours=relation)
    assert [*measure.noisy] == [level for level in measure.plan.levels if level > 0]
    for level, counts in measure.noisy.items():
        cells = np.arange(1 << level, dtype=np.uint64)
        assert counts.dtype == np.int32
        assert len(counts) == 1 << level
        assert not counts[~domain.exists(cells, level)].any()
        assert abs(int(counts.sum()) - 3000) < 60 * (1 << level) ** 0.5  # the true counts sum to 3000


def test_lazy_and_very_large_trees_keep_none(tmp_path, monkeypatch):
    assert make(rows=20, depth=40).noisy is None
    monkeypatch.setattr(tree, "MOST_KEPT", 1 << 5)
    assert make(rows=20, depth=5).noisy is not None
    measure = make(rows=20, depth=6)
    assert measure.noisy is None
    measure.save(tmp_path / "x")
    assert same(pm.load(tmp_path / "x"), measure)


def test_large_counts_take_wide_words():
    domain = pm.Box([(0, 1)])
    kept = tree.keep_counts(domain, {1: np.array([2**31 - 1, 0]), 2: np.array([2**31, 0, -5, 0])}, 2)
    assert (kept[1].dtype, kept[2].dtype) == (np.int32, np.int64)
    assert kept[2].tolist() == [2**31, 0, -5, 0]


def test_a_million_noisy_counts_take_about_a_byte_each(tmp_path):
    measure = make(rows=10_000, depth=20)
    measure.save(tmp_path / "x")
    assert (tmp_path / "x").stat().st_size < 1.5 * 2**20
    assert same(pm.load(tmp_path / "x"), measure)


NOISY = {"part": [0, 0, 0, 1, 1, 1, 1], "cell": [0, 1, 2, 0, 1, 2, 3], "mass": [1, 1, 1, 3, -2, 0, 1]}
BAD_NOISY = {
    "a cell is missing": {"cell": [0, 1, 2, 0, 1, 2], "part": [0, 0, 0, 1, 1, 1], "mass": [1] * 6},
    "a cell twice": {"cell": [0, 1, 2, 0, 1, 1, 3]},
    "unsorted cells": {"cell": [0, 1, 2, 1, 0, 2, 3]},
    "unsorted parts": {"part": [0, 0, 1, 0, 1, 1, 1]},
    "an unknown part": {"part": [0, 0, 0, 1, 1, 1, 2]},
    "all in one part": {"part": [0] * 7, "cell": list(range(7))},
    "huge": {"mass": [1, 1, 1, 2**62, 0, 0, 0]},
    "the lowest": {"mass": [1, 1, 1, -(2**63), 0, 0, 0]},
    "too many": {"cell": [0, 1, 2, 0, 1, 2, 3, 4], "part": [0] * 3 + [1] * 5, "mass": [1] * 8},
}


@pytest.mark.parametrize("case", BAD_NOISY)
def test_noisy_counts_that_are_none(tmp_path, case):
    path, header = tmp_path / "file", make(pm.Box([(0, 1)]), rows=3, depth=2).header()
    write(path, header, **NOISY)
    assert pm.load(path).noisy[2].tolist() == [3, -2, 0, 1]
    write(path, header, **(NOISY | BAD_NOISY[case]))
    refused(path)


@pytest.mark.parametrize("part", [{"part": 2}, {"level": 1}, {"level": 63}, {"level": [2]}, {"kind": "cells"}], ids=str)
def test_parts_that_are_not_those_of_the_plan(tmp_path, part):
    path, header = tmp_path / "file", make(pm.Box([(0, 1)]), rows=3, depth=2).header()
    cells, noisy = header["parts"]
    for parts in ([cells, noisy | part], [noisy, cells], [cells, noisy, noisy], [noisy], []):
        write(path, header | {"parts": parts}, **NOISY)
        refused(path)


def places(value, path=()):
    """Every place in a JSON value, the value itself included."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from places(child, (*path, key))


def edited(value, path, new):
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = edited(value[path[0]], path[1:], new)
    return copy


def removed(value, path):
    copy = value.copy()
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = removed(value[path[0]], path[1:])
    return copy


EDITS = [None, True, -1, 0, 2**70, 1.5, float("nan"), "", "text", "1/0", "1e999999999", [], [[]], {}, {"kind": "box"}]
OPTIONAL = {"bounds", "categories", "schedule", "inference", "rule", "shrinkage", "recorded"}
"""Lists that may be shorter, names that are only shown, and what older files do not say."""


@some("domain", 1, [pm.Box([(0, 1)]), Integers(0, 3), Categories(list("abc"))], ids=repr)
def test_every_edited_field_is_refused_or_harmless(tmp_path, domain):
    """Whatever stands in any field: ReleaseFileError, or a release that works. Wrong types are always refused."""
    path = tmp_path / "release.parquet"
    header = without_noisy_counts(make(domain, rows=3, depth=2)).header()
    write(path, header)
    pm.load(path)
    tried = 0
    for place in places(header):
        old = header
        for key in place:
            old = old[key]
        for new in EDITS:
            if new is old or (type(new) is type(old) and new == old):
                continue
            write(path, edited(header, place, new))
            tried += 1
            try:
                measure = pm.load(path)
            except ReleaseFileError:
                continue
            assert isinstance(old, int | float) == isinstance(new, int | float) or type(old) is type(new), (place, new)
            assert str(measure.plan), (place, new)
            assert len(measure.sample(5)) == 5
            assert Plan.from_json(measure.plan.to_json()) == measure.plan
            measure.save(path)
            pm.load(path)
        if place and not {*place[-2:]} & OPTIONAL and not (place[-1] == "mechanism" and "bounds" in place):
            write(path, removed(header, place))
            refused(path)
    assert tried > 500


@pytest.mark.parametrize(
    ("place", "new"),
    [
        (("plan", "depth"), 3),
        (("plan", "rows"), 4),
        (("plan", "cells"), 5),
        (("plan", "levels"), [1]),
        (("plan", "budgets", 0), "2"),
        (("plan", "scales", 0), "1/2"),
        (("plan", "privacy", "epsilon"), "1/2"),
        (("plan", "privacy", "delta"), 1e-6),
        (("plan", "privacy", "neighbours"), "add-remove"),
        (("plan", "privacy", "rows_per_person"), 2),
        (("parts", 0, "level"), 1),
        (("parts", 0, "part"), 1),
        (("parts", 0, "kind"), "columns"),
        (("domain", "kind"), "unheard of"),
        (("domain", "bounds"), [[1, 0]]),
        (("recipe", "placement"), "corner"),
        (("private",), "yes"),
    ],
    ids=str,
)
def test_edits_that_would_change_the_promise_or_the_cells_are_seen(small, place, new):
    _, path, header = small
    write(path, edited(header, place, new))
    refused(path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_sizes_are_checked_before_memory_is_taken(small):
    """A header that asks for the moon is dealt with in little time and memory."""
    _, path, header = small
    code = (
        "import resource, sys, privmeasure as pm\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n        pm.load(path)\n"
        "    except pm.PrivmeasureError:\n        print('refused')\n"
        "print([line for line in open('/proc/self/status') if line.startswith('VmHWM')][0].split()[1])"
    )
    edits = [
        (("plan", "budgets", 0), "1e999999999"),
        (("plan", "privacy", "epsilon"), "1e999999999"),
        (("domain",), {"kind": "categories", "categories": 10**15, "taxonomy": []}),
        (("plan", "depth"), 10**15),
    ]
    for i, (place, new) in enumerate(edits):
        write(path.with_name(f"edited-{i}"), edited(header, place, new))
    files = [str(path.with_name(f"edited-{i}")) for i in range(len(edits))]
    run = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    *refusals, peak = run.stdout.split()
    assert refusals == ["refused"] * len(edits)
    assert int(peak) < 1 << 19  # KiB: half a GiB

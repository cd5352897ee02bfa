"""What a failure shows, and what state it leaves: nothing private, nothing unclear."""

import json
import resource

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.errors import ArgumentError, DataError, PrivmeasureError, ReleaseError, ReleaseFileError, SpentError
from privmeasure.noise.entropy import Key
from privmeasure.sources.arrays import ArraySource

BOX = pm.Box([(0, 1)])
SECRET = "secretvalue"


@pytest.mark.parametrize(
    "data",
    [
        np.ma.array([SECRET, "1"]),
        np.ma.array([SECRET, 1.0], dtype=object),
        np.ma.array([1j, 2.0]),
        np.ma.array([SECRET.encode()]),
    ],
    ids=["text", "objects", "complex", "bytes"],
)
def test_a_masked_array_of_no_numbers_is_refused_by_its_type(data):
    with pytest.raises(DataError) as caught:
        pm.synthesize(data, epsilon=1, neighbours="add-remove", bounds=[(0, 1)])
    assert SECRET not in str(caught.value)
    assert "array of numbers" in str(caught.value)


def test_what_is_masked_is_missing():
    domain = pm.Nullable(BOX)
    data = np.ma.array([0.25] * 500 + [0.75] * 500, mask=[False] * 500 + [True] * 500)
    points = pm.Synthesizer(domain, epsilon=10, neighbours="replace").fit(data).sample()
    assert abs(np.isnan(points).sum() - 500) < 50


class Faulty(pm.Box):
    """A domain with a fault that shows what it was given."""

    def locate(self, points, level):
        raise ValueError(f"cannot place {points[0, 0]}")


@pytest.mark.parametrize("rows", [None, 7])
def test_an_error_that_is_not_ours_shows_its_type_at_most(rows):
    """Without a public number of rows, theirs is bought first: the fault then comes after noise."""
    synth = pm.Synthesizer(Faulty([(0, 1)]), epsilon=1, neighbours="add-remove", rows=rows)
    kind, words = (
        (ReleaseError, r"\(ValueError\).*count epsilon as spent") if rows is None else (DataError, "was spent")
    )
    with pytest.raises(kind, match=words) as caught:
        synth.fit(np.full(7, 0.123))
    assert "0.123" not in str(caught.value)
    assert synth.spent == (rows is None)


def test_with_an_insecure_key_the_fault_is_shown():
    synth = pm.Synthesizer(Faulty([(0, 1)]), epsilon=1, neighbours="add-remove")
    with pytest.raises(ValueError, match=r"cannot place 0\.123"):
        synth.fit(np.full(7, 0.123), insecure_seed=1)


def test_running_out_of_memory_shows_no_size():
    class Hungry:
        def count(self, partitions, progress=None):
            raise MemoryError("Unable to allocate an array with shape (5999989,)")

    with pytest.raises(DataError, match="could not be read") as caught:
        pm.PMM(BOX, pm.Privacy(1, "add-remove")).release(Hungry(), Key.fresh())
    assert "5999989" not in str(caught.value)


class Interrupted(pm.Box):
    def locate(self, points, level):
        raise KeyboardInterrupt


def test_an_interrupted_fit_says_so():
    synth = pm.Synthesizer(Interrupted([(0, 1)]), epsilon=1, neighbours="replace")
    with pytest.raises(KeyboardInterrupt):
        synth.fit(np.zeros(5))
    assert not synth.spent  # the number of rows is public, and no cell was measured
    with pytest.raises(SpentError, match="no release yet"):
        synth.sample()
    synth = pm.Synthesizer(Interrupted([(0, 1)]), epsilon=1, neighbours="add-remove")
    with pytest.raises(KeyboardInterrupt):
        synth.fit(np.zeros(5))
    assert synth.spent  # the noisy number of rows was drawn
    with pytest.raises(SpentError, match="spend epsilon again"):
        synth.fit(np.zeros(5))
    with pytest.raises(SpentError, match="did not finish"):
        synth.sample()


def test_no_rows_under_replace_spends_nothing():
    synth = pm.Synthesizer(BOX, epsilon=1, neighbours="replace")
    with pytest.raises(DataError):
        synth.fit(np.empty(0))
    assert len(synth.fit(np.full(20, 0.5)).sample()) == 20


def test_the_tree_in_memory_has_a_limit_and_beyond_it_is_lazy():
    with pytest.raises(ArgumentError, match="max_cells"):
        pm.PMM(BOX, pm.Privacy(1, "replace"), max_cells=1 << 27)
    plan = pm.PMM(pm.Box([(0, 1)] * 2), pm.Privacy(1, "replace"), depth=27).plan(1000)
    assert plan.evaluation == "lazy"


@pytest.mark.parametrize("number", [np.int64, np.int8, np.uint16])
def test_integers_of_numpy_are_integers(number, tmp_path):
    synth = pm.Synthesizer(BOX, epsilon=number(1), neighbours="replace", depth=number(5), rows=number(100))
    synth.fit(np.linspace(0, 1, 50)).save(tmp_path / "x.parquet")
    assert pm.load(tmp_path / "x.parquet").plan.depth == 5
    assert json.dumps(pm.PMM(BOX, pm.Privacy(1, "replace")).plan(number(100)).to_json())


@pytest.mark.parametrize("epsilon", [np.float64(0.5), np.float32(0.5), np.int64(3), np.uint8(7)])
def test_numbers_of_numpy_are_exact(epsilon):
    privacy = pm.Privacy(epsilon, "replace")
    assert privacy.epsilon == float(epsilon)
    assert type(privacy.epsilon.numerator) is int


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_tiny_epsilon_is_refused_at_once_or_works(neighbours):
    try:
        synth = pm.Synthesizer(BOX, epsilon=1e-170, neighbours=neighbours)
    except ArgumentError:
        return
    assert len(synth.fit(np.linspace(0, 1, 50)).sample()) == 50


@pytest.mark.parametrize(
    "domain", [pm.Box([(0, 1)] * 2), pm.Product([pm.Nullable(pm.Box([(0, 1)])), pm.Integers(0, 120)])]
)
def test_the_memory_of_a_tree_is_what_the_plan_says(domain):
    """At depth 22 the tree is large beside everything else: the peak grows as the plan says, and a little."""
    points = np.random.default_rng(0).random((1000, 2))
    mechanism = pm.PMM(domain, pm.Privacy(1, "replace"), depth=22, threads=1)
    planned = mechanism.plan(1000).memory_bytes
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    mechanism.release(ArraySource(points, width=2, threads=1), Key.fresh())
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert grown <= 1.25 * planned + 2**25


def test_a_file_that_lists_more_cells_than_its_plan_is_refused_before_it_is_read(tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    release = pm.Synthesizer(BOX, epsilon=1, neighbours="replace", depth=3).fit(np.linspace(0, 1, 50)).release_
    release.save(tmp_path / "x.parquet")
    table, many = pq.read_table(tmp_path / "x.parquet"), 10**6
    columns = {
        "part": np.zeros(many, np.uint16),
        "cell": np.arange(many, dtype=np.uint64),
        "mass": np.ones(many, np.int64),
    }
    pq.write_table(pa.table(columns, metadata=table.schema.metadata), tmp_path / "bomb.parquet")
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("the table was read"))
    with pytest.raises(ReleaseFileError, match="lists 1000000 cells"):
        pm.load(tmp_path / "bomb.parquet")


class Mine(pm.Box):
    """A domain of somebody else: a kind that this package does not know."""

    def to_json(self):
        return {**super().to_json(), "kind": "mine"}


def test_a_release_on_a_domain_of_your_own_comes_back(tmp_path):
    release = pm.Synthesizer(Mine([(0, 1)]), epsilon=1, neighbours="replace").fit(np.linspace(0, 1, 50)).release_
    with pytest.warns(UserWarning, match="space of your own"):
        release.save(tmp_path / "x.parquet")
    with pytest.raises(ReleaseFileError, match="give domain="):
        pm.load(tmp_path / "x.parquet")
    again = pm.load(tmp_path / "x.parquet", domain=Mine([(0, 1)]))
    assert (again.sample(seed=1) == release.sample(seed=1)).all()
    with pytest.raises(ReleaseFileError, match="domain"):
        pm.load(tmp_path / "x.parquet", domain=Mine([(0, 2)]))


@pytest.mark.parametrize(
    "call",
    [
        lambda path: pm.Box(None),
        lambda path: pm.Box(5),
        lambda path: pm.Box([(0, 1)] * 2, weights=[1e308, 1e308]),
        lambda path: pm.PMM(BOX, pm.Privacy(1, "replace"), rows=10**20),
        lambda path: pm.synthesize([1.0], epsilon=1, neighbours="replace", bounds=None),
    ],
)
def test_mistakes_get_an_error_of_ours(call, tmp_path):
    with pytest.raises(PrivmeasureError):
        call(tmp_path)


def test_mistakes_with_files_name_the_mistake(tmp_path):
    release = pm.Synthesizer(BOX, epsilon=1, neighbours="replace").fit(np.linspace(0, 1, 50)).release_
    with pytest.raises(FileNotFoundError, match=r"folder .*missing does not exist"):
        release.save(tmp_path / "missing" / "x.parquet")
    with pytest.raises(IsADirectoryError, match="folder"):
        pm.load(tmp_path)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ReleaseFileError, match="another kind"):
        pm.load(tmp_path / "x.csv")
    for wrong in ({"q": "a"}, {"q": 2}, {"q": 0.5, "column": 0.5}, {"q": 0.5, "column": 1}):
        with pytest.raises(ArgumentError):
            release.quantile(**wrong)

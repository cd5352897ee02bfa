"""Compiled loops change nothing but speed: bit by bit what NumPy's operations give, for any box, value and threads.

Where numba is not installed the loops run as they are written, in Python: the same arithmetic on fewer rows.
"""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privmeasure as pm
from privmeasure import compiled
from privmeasure.counts import Partition
from privmeasure.domains import Box
from privmeasure.releases import sampling
from privmeasure.releases.sampling import Rows
from privmeasure.sources import arrays
from privmeasure.sources.arrays import ArraySource
from privmeasure.sources.tally import Tally, merge_tallies

WRITTEN = compiled.Kernels(
    compiled._count, compiled._count_bytes, compiled._box_cells, compiled._box_points, compiled._scatter
)
HOSTILE = [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1e308, -1e308, 1.0, 0.5, 1 - 2**-53]
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in scalar:RuntimeWarning")  # of loops in Python
THREADS = (1, 2, 3, 16)


@pytest.fixture(params=["as written", "compiled"])
def loops(request, monkeypatch):
    """Return what turns loops on and off, and how many rows are worth it."""
    if request.param == "compiled" and not find_spec("numba"):
        pytest.skip("numba is not installed")
    found = WRITTEN if request.param == "as written" else compiled._compiled()

    def switch(on: bool) -> None:
        monkeypatch.setattr(compiled, "kernels", lambda: found if on else None)

    return switch, 100_000 if request.param == "compiled" else 300


@st.composite
def boxes(draw):
    bounds = draw(
        st.lists(
            st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda pair: (pair[0], pair[0] + pair[1])),
            min_size=1,
            max_size=4,
        )
    )
    weights = draw(st.lists(st.floats(0.01, 100), min_size=len(bounds), max_size=len(bounds)))
    box = Box(bounds, weights)
    return box, draw(st.integers(0, box.deepest))


def points_of(box: Box, rows: int, seed: int) -> np.ndarray:
    """Return points inside, on edges of cells, outside, and hostile ones."""
    rng = np.random.default_rng(seed)
    low, high = np.array(box.bounds).T
    points = low + (high - low) * rng.normal(0.5, 0.5, (rows, box.width))
    edges = low + (high - low) * rng.integers(-1, 18, (rows, box.width)) / 16
    points = np.where(rng.random((rows, box.width)) < 0.3, edges, points)
    odd = rng.choice(HOSTILE, (rows, box.width))
    return np.where(rng.random((rows, box.width)) < 0.2, odd, points)


@settings(deadline=None, max_examples=30)
@given(space=boxes(), seed=st.integers(0, 2**32))
def test_cells_and_points_of_boxes(space, seed):
    box, level = space
    points = points_of(box, 200, seed)
    cells = np.random.default_rng(seed).integers(0, 1 << level, 201, dtype=np.uint64)
    ways = [None, WRITTEN] + ([compiled._compiled()] if find_spec("numba") else [])
    found = []
    for way in ways:
        with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
            patch.setattr(compiled, "kernels", lambda way=way: way)
            located = [box.locate(p, level) for p in (points, np.asfortranarray(points), points[::-2])]
            drawn = box.draw(cells, level, np.random.Generator(np.random.SFC64(seed)))
        found.append(b"".join(array.tobytes() for array in (*located, drawn)))
    assert all(other == found[0] for other in found[1:])


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("size", [1, 5, 255, 70_000])
def test_counts(loops, threads, size):
    switch, rows = loops
    box, level = Box([(0, 1)]), (size - 1).bit_length()
    points = points_of(box, rows, size)

    def counted() -> np.ndarray:
        (counts,) = ArraySource(points, width=1, threads=threads).count([Partition.of(box, level)])
        return counts.take()

    switch(False)
    plain = counted()
    switch(True)
    assert plain.sum() == rows
    assert np.array_equal(counted(), plain)


@pytest.mark.parametrize("among", [1, 16])
def test_a_cell_that_does_not_exist_is_refused_and_nothing_is_counted_beyond(loops, among):
    class Wrong(Box):
        def locate(self, points, level):
            return np.full(len(points), 1 << 40, np.uint64)

    for on in (False, True):
        loops[0](on)
        tally = Tally([Partition.of(Wrong([(0, 1)]), 17)], among=among)
        with pytest.raises(IndexError):
            tally.add(np.zeros((3, 1)))


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("shuffled", [True, False])
def test_rows_of_a_sample(loops, threads, shuffled, monkeypatch):
    switch, rows = loops
    for room in (sampling, arrays):
        monkeypatch.setattr(room, "BLOCK", 1 << (14 if rows > 1000 else 6))
    monkeypatch.setattr(sampling, "ROW_CHUNK", sampling.BLOCK)
    rng = np.random.default_rng(threads)
    mass = rng.poisson(3, max(2, rows // 3))  # some have none
    for shift in (0, 40):  # cells of 32 and of 64 bits
        cells = np.arange(len(mass), dtype=np.uint64) << np.uint64(shift)

        def drawn(cells: np.ndarray = cells) -> list[bytes]:
            made = Rows(cells, mass, np.random.SeedSequence(3), shuffled=shuffled, threads=threads)
            return [made.chunk(i, made.stream(i)).tobytes() for i in range(len(made.edges) - 1)]

        switch(False)
        plain = drawn()
        assert sorted(np.frombuffer(b"".join(plain), np.uint64).tolist()) == np.repeat(cells, mass).tolist()
        switch(True)
        assert drawn() == plain


def test_a_release_and_its_rows(loops):
    switch, rows = loops
    points = points_of(Box([(0, 1)] * 2), rows, 1)

    def made(threads: int, neighbours: str) -> bytes:
        synth = pm.Synthesizer(pm.Box([(0, 1)] * 2), epsilon=1, neighbours=neighbours, threads=threads)
        return synth.fit(points, insecure_seed=5).sample(seed=6).tobytes()

    for neighbours in ("replace", "add-remove"):
        found = set()
        for on in (False, True):
            switch(on)
            found |= {made(threads, neighbours) for threads in THREADS}
        assert len(found) == 1


def test_another_loop_would_be_seen(monkeypatch):
    def careless(points, lows, factors, cuts, tables, bits, codes):
        compiled._box_cells(np.nan_to_num(points, nan=1.0), lows, factors, cuts, tables, bits, codes)

    points = points_of(Box([(0, 1)]), 300, 1)
    plain = Box([(0, 1)]).locate(points, 8)
    monkeypatch.setattr(compiled, "kernels", lambda: compiled.Kernels(careless, careless, careless, careless, careless))
    assert not np.array_equal(Box([(0, 1)]).locate(points, 8), plain)


def test_threads_that_would_wait_for_the_lock_are_not_used(loops):
    switch, _ = loops
    for on, most in ((False, compiled.MOST_PLAIN), (True, 99)):
        switch(on)
        assert [compiled.useful_threads(threads, 1000) for threads in (1, 99)] == [1, most]
        assert compiled.useful_threads(99, 10**8) == (99 if on else 10**8 // compiled.ROWS_OF_ONE)


def test_sorted_codes_are_counted_like_others():
    box = Box([(0, 1)])
    points = points_of(box, 70_000, 2)
    parts = [Partition.of(box, level) for level in (0, 3, 18, 21)]
    found = []
    for among in (1, 16):
        tally = Tally(parts, among=among)
        for start in range(0, len(points), 20_000):
            tally.add(points[start : start + 20_000])
        found.append([counts.counts for counts in merge_tallies([tally])])
    assert all(np.array_equal(one, two) for one, two in zip(*found, strict=True))


def test_few_rows_load_nothing(monkeypatch):
    monkeypatch.setattr(compiled, "_loaded", [])
    monkeypatch.setattr(compiled, "_seen", [])
    monkeypatch.setattr(compiled, "_compiled", lambda: WRITTEN)
    compiled.load_kernels(compiled.MANY_ROWS - 1)
    assert compiled.kernels() is None
    compiled.load_kernels(1)
    assert compiled.kernels() is WRITTEN


def test_without_numba_nothing_is_loaded(monkeypatch):
    import sys

    compiled._compiled.cache_clear()
    monkeypatch.setattr(compiled, "_seen", [])
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(compiled, "_loaded", [])
    compiled.load_kernels(1 << 30)
    assert compiled.kernels() is None
    compiled._compiled.cache_clear()

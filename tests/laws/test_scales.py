"""Scales are the same everywhere: on every processor, and at every place of an array. What a row becomes depends on it
alone."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import examples, some
from privmeasure.domains import Box, Nullable, Sphere
from privmeasure.tables import Integer, Number
from privmeasure.testing import check_domain

COLUMNS = {
    "log": Number(1e-3, 1e9, transform="log"),
    "narrow log": Number(1e6, 1.0001e6, transform="log", nullable=True),
    "vast log": Number(1e-300, 1e300, transform="log"),
    "subnormal log": Number(5e-324, 1e300, transform="log"),
    "hardly any log": Number(1, 1 + 2.0**-50, transform="log"),
    "log of integers": Integer(1, 10**9, transform="log"),
    "breaks": Number(0, 1e6, breaks=[1e3, 1e4, 1e5], nullable=True),
    "breaks below 0": Number(-1e6, 1e6, breaks=[-1e3, -1, 0, 1, 1e3]),
    "many breaks": Number(-7, 1e6, breaks=[i**3 / 7 for i in range(1, 150)]),
    "breaks of integers": Integer(-3, 1000, breaks=[0, 10, 12, 500], nullable=True),
}
DEEP = 40

PROGRAM = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])  # the folder of the tests
from laws.test_scales import results
np.savez(sys.argv[3], **results(np.load(sys.argv[2])))
"""


def spread(column, count, seed=0):
    """Return doubles all over a column, and a little beyond; no logarithm is taken, which may differ by machine."""
    rng = np.random.default_rng(seed)
    low, high = (np.array([bound], np.float64) for bound in (column.low, column.high))
    even = low + rng.random(count) * (high - low)
    near = low * (1 - 1e-3) + np.abs(low) * rng.random(count)
    ends = np.frexp(np.maximum(np.abs(np.concatenate([low, high])), 1e-300))[1]
    powers = np.ldexp(1 + rng.random(count), rng.integers(min(ends.min(), -3), ends.max() + 1, count))
    pick = rng.integers(0, 4, count)
    return np.choose(pick, [even, near, powers, np.where(powers < high, powers, even)])


def places(seed=0, count=1_000_000):
    """Return longitudes and latitudes, many of them near the poles."""
    rng = np.random.default_rng(seed)
    latitude = 180 * rng.random(count) - 90
    pole = np.copysign(90 - np.ldexp(45 * rng.random(count), -rng.integers(0, 30, count)), latitude)
    return np.column_stack([720 * rng.random(count) - 360, np.where(rng.random(count) < 0.5, latitude, pole)])


def results(inputs):
    """Return points and cells of the stored inputs, on this machine as it is set up."""
    found = {}
    for name, values in inputs.items():
        if name == "sphere":
            found |= {f"sphere {level}": Sphere().locate(values, level) for level in (9, 33, 62)}
            continue
        column = COLUMNS[name]
        found[name] = column.settle([values])
        found[f"{name} cells"] = column.domain.locate(found[name], min(DEEP, column.domain.deepest))
    return found


def disabled_sets():
    """Return the sets of features of this processor that NumPy can be told not to use."""
    umath = np._core._multiarray_umath
    there = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    return [there, [name for name in there if "512" in name or name == "X86_V4"]] if there else []


@pytest.mark.deep
def test_cells_do_not_depend_on_the_processor(tmp_path):
    sets = disabled_sets()
    if not sets:
        pytest.skip("NOT TESTED: this build of NumPy has nothing that can be disabled on this processor.")
    inputs = {name: spread(column, 1_000_000 // (1 if name == "log" else 10)) for name, column in COLUMNS.items()}
    inputs["sphere"] = places()
    np.savez(tmp_path / "inputs.npz", **inputs)
    here = results(inputs)
    root = os.path.join(os.path.dirname(__file__), "..")
    for i, names in enumerate(sets):
        out = tmp_path / f"{i}.npz"
        environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(names)}
        arguments = [sys.executable, "-c", PROGRAM, root, str(tmp_path / "inputs.npz"), str(out)]
        subprocess.run(arguments, env=environment, check=True)
        there = np.load(out)
        assert set(there) == set(here)
        for name, values in here.items():
            assert values.tobytes() == there[name].tobytes(), (name, names)


@pytest.mark.parametrize("name", COLUMNS)
@some("count", 2, [1, 7, 33, 257])
def test_a_row_is_placed_by_itself(name, count):
    column = COLUMNS[name]
    values = spread(column, count, seed=count)
    together = column.settle([values])
    for i in range(count):
        assert together[i].tobytes() == column.settle([values[i : i + 1]])[0].tobytes()
        assert together[i:].tobytes() == column.settle([values[i:]]).tobytes()
    strided = np.repeat(values, 3)[::3]
    assert together.tobytes() == column.settle([strided]).tobytes()


def test_a_point_of_the_sphere_is_located_by_itself():
    points = places(count=257)
    together = Sphere().locate(points, 61)
    assert together.tolist() == [int(Sphere().locate(points[i : i + 1], 61)[0]) for i in range(len(points))]


@pytest.mark.parametrize("name", COLUMNS)
def test_places_grow_with_values(name):
    column = COLUMNS[name]
    values = np.sort(spread(column, 100_000))
    values = np.sort(np.concatenate([values, np.nextafter(values, np.inf), column.stretch.knots.knots]))
    points = column.settle([values])[:, 0]
    assert (np.diff(points) >= 0).all()
    assert column.stretch.place(np.array([column.stretch.low, column.stretch.high])).tolist() == list(
        column.stretch.bounds
    )
    restored = column.stretch.values(np.sort(np.concatenate([points, np.arange(column.stretch.knots.count + 1.0)])))
    assert (np.diff(restored) >= 0).all()
    assert (restored >= column.stretch.low).all()
    assert (restored <= column.stretch.high).all()


@pytest.mark.parametrize("name", COLUMNS)
def test_values_come_back(name):
    """To within 2^-20 of the way to the next knot: cells of 36 cuts are kept, where doubles are as fine as that."""
    column = COLUMNS[name]
    values = np.clip(spread(column, 20_000), column.low, column.high)
    points = column.stretch.place(values)
    again = column.stretch.place(column.stretch.values(points))
    width = np.interp(values, column.stretch.knots.knots[:-1], np.diff(column.stretch.knots.knots))
    assert (np.abs(again - points) <= 2.0**-20 + 2 * np.spacing(values) / width * 2).all()
    knots = column.stretch.knots
    assert knots.values(np.arange(knots.count + 1.0)).tolist() == knots.knots.tolist()


@pytest.mark.parametrize("name", COLUMNS)
@some("level", 3, [0, 1, 5, 11, 17])
def test_edges_decide_the_cell(name, level):
    column, axis = COLUMNS[name], COLUMNS[name].stretch
    edges = axis.edges(level)
    assert len(edges) == (1 << level) - 1
    assert (np.diff(edges) >= 0).all()
    near = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    values = np.clip(np.concatenate([spread(column, 10_000), near]), axis.low, axis.high)
    cells = Box([axis.bounds]).locate(axis.place(values)[:, None], level)
    assert np.array_equal(np.searchsorted(edges, values, side="right"), cells.view(np.int64))


def test_cells_of_a_log_scale_begin_at_knots():
    axis = COLUMNS["log"].stretch
    for level in (1, 8, 16):
        assert axis.edges(level).tolist() == axis.knots.knots[:: 1 << 16 - level][1:-1].tolist()


def test_even_axes_have_edges_too():
    axis = Number(-3, 7).stretch
    edges, values = axis.edges(6), np.random.default_rng(0).uniform(-3, 7, 1000)
    cells = Number(-3, 7).domain.locate(values[:, None], 6)
    assert np.array_equal(np.searchsorted(edges, values, side="right"), cells.view(np.int64))


@pytest.mark.parametrize("name", COLUMNS)
def test_the_domains_keep_the_laws(name):
    column = COLUMNS[name]
    points = column.settle([spread(column, 300)])
    check_domain(column.domain, points=points, levels=[0, 1, 2, 9, 16, 17, 30, column.domain.deepest])


@examples(50, 200)
@given(st.floats(5e-324, 1e308), st.floats(1.0000001, 1e6), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_any_log_scale_is_a_logarithm(low, ratio, shares):
    column = Number(low, min(low * ratio, 1.7e308) if low * ratio > low else low * 2 + 5e-324, transform="log")
    knots, span = column.stretch.knots, np.log(column.high) - np.log(column.low)
    assert np.log2(knots.count) % 1 == 0
    values = np.clip(np.exp(np.log(column.low) + np.array(shares) * span), column.low, column.high)
    if knots.count == 1 << 16 and column.low > 1e-300:
        wanted = (np.log(values) - np.log(column.low)) / span
        assert np.allclose(column.stretch.place(values) / knots.count, wanted, atol=1e-7 + 1e-14 / span * 800)


def test_missing_values_stay_missing_and_odd_ones_raise_nothing():
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, -1e300, 1e308])
    signalling = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
    with np.errstate(all="raise"):
        for column in COLUMNS.values():
            points = column.settle([np.concatenate([odd, signalling])])[:, 0]
            low, high = column.stretch.bounds
            missing = np.isnan(points)
            assert missing.tolist() == [isinstance(column.domain, Nullable) and i in (0, 7) for i in range(8)]
            assert ((points[~missing] >= low) & (points[~missing] <= high)).all()

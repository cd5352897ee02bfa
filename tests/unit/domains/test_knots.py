"""Scales by knots: the last knot at or below a value, and straight lines between them."""

import math

import numpy as np
import pytest

from privmeasure.domains import Knots, Sphere
from privmeasure.domains.knots import MOST_BUCKETS, from_ordered_bits, log_knots, ordered_bits
from privmeasure.domains.sphere import RINGS, STEPS, _colatitude_at, _knots, _ring
from privmeasure.testing import check_domain

ODD = [0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0, 1e308, -1e308, np.inf, -np.inf, np.nan]
SCALES = {
    "two": Knots(np.array([0.0, 1.0])),
    "few": Knots(np.array([-1e300, -1.0, 0.0, 5e-324, 1e300])),
    "many": Knots(np.arange(100.0)),
    "many from below 0": Knots(np.concatenate([[-1.0], np.arange(100.0)])),
    "many below 0": Knots(np.arange(-50.0, 50)),
    "too uneven for a table": Knots(
        np.append(from_ordered_bits(ordered_bits(np.array([1.0])) + np.arange(99)), [2, 3])
    ),
    "neighbours": Knots(from_ordered_bits(ordered_bits(np.array([3.0])) + np.arange(200))),
    "log": log_knots(1e-3, 1e9),
    "near log": log_knots(3.0, 3.0000000000001),
    "vast log": log_knots(5e-324, 1.7e308),
    "colatitudes": _knots(),
}


@pytest.mark.parametrize("name", SCALES)
def test_the_index_is_that_of_a_search(name):
    scale = SCALES[name]
    knots = scale.knots
    assert (np.diff(knots) > 0).all()
    with np.errstate(over="ignore"):
        gaps = np.diff(knots)
        inside = knots[:-1] + np.random.default_rng(0).random(scale.count) * np.where(np.isfinite(gaps), gaps, 1)
    values = np.concatenate([knots, np.nextafter(knots, np.inf), np.nextafter(knots, -np.inf), inside, ODD[:-1]])
    wanted = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, scale.count - 1)
    assert np.array_equal(scale.index(values), wanted)
    places = scale.place(values)
    assert (np.floor(places) == wanted)[values < knots[-1]].all()
    assert (places[values >= knots[-1]] == scale.count).all()
    assert np.isnan(scale.place(np.array([np.nan]))).all()
    assert np.isnan(scale.values(np.array([np.nan]))).all()


def test_most_scales_have_a_table_of_guesses():
    tables = {name: scale._guesses is not None for name, scale in SCALES.items()}
    assert not any(tables[name] for name in ("two", "few", "many below 0", "too uneven for a table"))
    assert all(tables[name] for name in ("many", "many from below 0", "neighbours", "log", "near log", "colatitudes"))
    assert all(len(scale._guesses[2]) <= MOST_BUCKETS for scale in SCALES.values() if scale._guesses)


def test_places_just_before_a_knot_do_not_reach_it():
    scale = SCALES["log"]
    before = np.nextafter(scale.knots[1:], 0)
    assert (scale.place(before) < np.arange(1, scale.count + 1)).all()
    assert (scale.place(before) > np.arange(1, scale.count + 1) - 1e-4).all()


def test_no_rows_are_no_places():
    for scale in SCALES.values():
        assert scale.place(np.empty(0)).shape == scale.values(np.empty(0)).shape == (0,)


def test_log_knots_are_geometric():
    knots = log_knots(0.5, 2e7).knots
    assert (knots[0], knots[-1], len(knots)) == (0.5, 2e7, 65537)
    true = np.exp(np.linspace(math.log(0.5), math.log(2e7), 65537))
    assert np.allclose(knots, true, rtol=2.0**-46, atol=0)


def test_scales_between_near_ends_have_as_many_knots_as_there_are_doubles():
    assert [log_knots(1.0, 1.0 + k * 2.0**-52).count for k in (1, 2, 3, 4, 9)] == [1, 2, 2, 4, 8]


def test_bits_are_in_the_order_of_doubles():
    values = np.array([-np.inf, -1e300, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, np.inf])
    words = ordered_bits(values)
    assert (np.diff(words) > 0).all()
    assert from_ordered_bits(words).tobytes() == values.tobytes()


# -------------------------------------------------------------------------------------------------------- the sphere


def test_colatitudes_are_those_of_the_sine():
    knots = _knots().knots
    assert len(knots) == RINGS * STEPS + 2
    assert (knots[0], knots[-1]) == (0, 90)
    s = 2 * np.sin(np.radians(knots[1:-1]) / 2) ** 2
    step = np.arange(RINGS * STEPS)
    assert np.allclose(s, np.ldexp(1 + step % STEPS / STEPS, step // STEPS - RINGS), rtol=1e-14, atol=0)


def test_rings_and_colatitudes_undo_each_other():
    s = np.ldexp(1 + np.random.default_rng(1).random(10_000), -np.arange(10_000) % 58 - 58)
    ring, height = _ring(_colatitude_at(s))
    assert np.allclose((1 + height) * 2.0 ** (-ring - 1.0), s, rtol=1e-9)
    assert _colatitude_at(np.array([0.0, 1.0])).tolist() == [0, 90]
    assert _ring(np.array([0.0, 90.0, 60.1, 59.9]))[0].tolist() == [RINGS, 0, 0, 1]


@pytest.mark.parametrize("level", [12, 21, 24, 30])
def test_cells_of_the_sphere_have_equal_areas(level):
    sphere = Sphere()
    latitude = np.degrees(np.arcsin(np.random.default_rng(2).random(3000)))
    cells = np.unique(sphere.locate(np.column_stack([np.full(3000, -170.0), latitude]), level))
    low, high = (np.radians(side) for side in sphere.extent(cells, level))
    height = 2 * np.cos((low[:, 1] + high[:, 1]) / 2) * np.sin((high[:, 1] - low[:, 1]) / 2)
    share = (high[:, 0] - low[:, 0]) * height / (4 * np.pi) * 2.0**level
    assert np.abs(share - 1).max() < (1e-11 if level <= 21 else 2.0**-9)


def test_the_sphere_keeps_the_laws_at_every_level():
    poles = np.array([[0.0, 90], [10, -90], [20, np.nextafter(90, 0)], [30, 1e-12], [40, -1e-300], [50, 30], [60, 45]])
    for seed in range(3):
        check_domain(Sphere(), points=poles, levels=range(seed, 63, 3), seed=seed)

"""The typical error: free, by the release's own plan, about as large as errors are, with bands that hold as said."""

import datetime
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure import typical as room
from privmeasure.errors import ArgumentError
from privmeasure.metrics.nearness import share_of_range
from privmeasure.releases.bands import BLIND, Band, Spread
from privmeasure.tables.variables import QUANTILES
from privmeasure.typical import same_mechanism

from .report.releases import release, typical, wide_schema, wide_table

LINE = pm.Box([(0, 1)])


def bell(seed, rows=2000):
    return np.clip(np.random.default_rng(seed).normal(0.4, 0.1, (rows, 1)), 0, 1)


def fitted(points, *, epsilon=1, seed=0, space=LINE, neighbours="replace", **options):
    made = pm.Synthesizer(space, epsilon=epsilon, neighbours=neighbours, **options)
    return made.fit(points, insecure_seed=seed).release_


def truths(epsilon, runs=60):
    """Return the true errors of the mean, and true distances, of many releases."""
    rows = bell(0)
    found = [fitted(rows, epsilon=epsilon, seed=seed).sample(seed=seed) for seed in range(runs)]
    return np.array([abs(r.mean() - rows.mean()) for r in found]), np.array(
        [share_of_range(rows, r, LINE) for r in found]
    )


@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_it_is_about_as_large_as_errors_are(epsilon):
    means, distances = truths(epsilon)
    found = pm.typical_error(fitted(bell(0), epsilon=epsilon, seed=100), runs=60, seed=1)
    assert 0.7 < found.columns["x0"].typical / distances.mean() < 1.4
    assert 0.6 < found.means["x0"].error / np.quantile(means, 0.9) < 2.5


def test_that_would_reject_another_amount_of_noise():
    """The typical error at epsilon = 0.5 is not what releases at epsilon = 2 have."""
    _, distances = truths(2, runs=20)
    found = pm.typical_error(fitted(bell(0), epsilon=0.5, seed=100), runs=20, seed=1)
    assert found.columns["x0"].typical / distances.mean() > 1.8


@pytest.mark.deep
def test_bands_hold_about_nine_times_in_ten():
    """60 releases of 60 data sets, two relations; of bands a third as wide it would be seen."""
    held = {"whole": [], "a third": []}
    for seed in range(60):
        rows = bell(seed)
        relation = ("replace", "add-remove")[seed % 2]
        band = pm.typical_error(fitted(rows, seed=seed, neighbours=relation), runs=20, seed=seed).means["x0"]
        for name, part in (("whole", 1), ("a third", 3)):
            middle, half = (band.low + band.high) / 2, (band.high - band.low) / 2
            held[name].append(abs(middle - rows.mean()) <= half / part)
    assert 0.75 < np.mean(held["whole"]) <= 1
    assert np.mean(held["a third"]) < 0.75


def test_it_reads_nothing_but_the_release(monkeypatch):
    """Whatever is counted again was sampled from the release."""
    made, counted = fitted(bell(3)), []

    class Spy(room.ArraySource):
        def __init__(self, points, **options):
            counted.append(points)
            super().__init__(points, **options)

    monkeypatch.setattr(room, "ArraySource", Spy)
    pm.typical_error(made, runs=2, seed=5)
    real = set(bell(3).ravel().tolist())
    assert len(counted) == 2
    for points in counted:
        assert len(points) == made.total
        assert not real & set(points.ravel().tolist())


def test_keys_are_fresh_and_used_once(monkeypatch):
    keys = []

    def fresh(release_id=None):
        keys.append(original(release_id))
        return keys[-1]

    original = room.Key.fresh
    monkeypatch.setattr(room.Key, "fresh", fresh)
    pm.typical_error(fitted(bell(0)), runs=3)
    assert len(keys) == 3
    assert all(key.private and "destroyed" in repr(key) for key in keys)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"depth": 6},
        {"rows": 2000},
        {"recipe": pm.Recipe(shrinkage="none")},
        {"mechanism": "psmm"},
        {"rows_per_person": 3},
    ],
    ids=str,
)
def test_the_mechanism_is_the_one_that_made_the_release(neighbours, options):
    made = fitted(bell(0), neighbours=neighbours, **options)
    plan = same_mechanism(made).plan(made.plan.rows)
    assert (plan.mechanism, plan.levels, plan.budgets) == (made.plan.mechanism, made.plan.levels, made.plan.budgets)
    assert plan.privacy == made.plan.privacy


def test_the_mechanism_of_a_wide_table_keeps_its_facts():
    measure = release("wide table").measure
    mechanism = same_mechanism(measure)
    assert mechanism.facts == measure.facts != ()
    assert mechanism.plan(measure.plan.rows).tree_pairs == measure.plan.tree_pairs


def test_a_table_has_everything():
    made = release("wide table")
    functions = {"smokers": lambda rows: rows["smoker"].mean(), "old": lambda rows: (rows["age"] > 65).mean()}
    found = pm.typical_error(made, runs=3, seed=1, frame="polars", functions=functions)
    assert list(found.columns) == list(wide_schema().data)
    assert found.pairs.keys() == {(one, two) for one, two, _ in made.pair_information()}
    assert {"age", "income", "gain", "smoker"} <= found.means.keys()
    assert {"age", "born", "income", "size"} <= found.quantiles.keys()
    assert list(found.shares["food"]) == ["apple", "pear", "cod", "eel", "bread"]
    assert 0.2 < found.shares["smoker"]["true"].value < 0.4
    together = {frozenset(pair) for pair in found.pairs}
    for pair, band in found.correlations.items():
        assert (band is not None) == (frozenset(pair) in together)
    assert None in found.correlations.values()
    assert abs(found.functions["smokers"].value - found.shares["smoker"]["true"].value) < 0.01
    assert found.joint.floor is not None
    real = wide_schema().encode(wide_table().combine_chunks())
    assert abs(found.means["age"].value - np.nanmean(real[:, 7])) < 5
    assert found.bins["age"].shares.sum() == pytest.approx(1)
    said = found.to_json()
    json.dumps(said, allow_nan=False)
    assert said["about"] == BLIND
    assert BLIND in str(found)
    assert BLIND in found._repr_html_()


def test_a_seed_makes_it_reproducible():
    made = fitted(bell(0))
    one, two, other = (pm.typical_error(made, runs=2, seed=seed).to_json() for seed in (7, 7, 8))
    assert one == two != other


def test_progress_is_told():
    told = []
    pm.typical_error(fitted(bell(0)), runs=4, progress=lambda stage, fraction: told.append((stage, fraction)))
    assert told == [("typical error", share) for share in (0.25, 0.5, 0.75, 1.0)]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [({"runs": 1}, "runs"), ({"runs": 2.5}, "runs"), ({"level": 1.0}, "level"), ({"release": pa.table({})}, "release")],
)
def test_what_cannot_be_asked(arguments, word):
    with pytest.raises(ArgumentError, match=word):
        pm.typical_error(**({"release": fitted(bell(0))} | arguments))


def test_a_release_that_says_nothing_has_an_estimate_too():
    found = pm.typical_error(release("few rows"), runs=3, seed=1)
    assert 0 < found.joint.typical <= 1


def test_bands_and_spreads():
    assert Band(2.0, 1.5, 2.25).error == 0.5
    assert Band(2.0, 1.0, 1.5).error == 1.0
    assert str(Band(2.0, 1.0, 1.5)) == "2 (1 to 1.5)"
    assert Band.of(2.0, [-0.5, 0.0, 0.5], 0.9, (-9.0, 9.0)) == Band(2.0, 1.5, 2.5)
    assert Band.of(2.0, [1.0, 1.0], 0.9, (-9.0, 9.0)) == Band(2.0, 0.0, 1.0)
    assert Band.of(0.9, [-0.5, 0.0, 0.5], 0.9, (0.0, 1.0)) == Band(0.9, 0.4, 1.0)
    assert Spread.of([1.0, 3.0, 2.0], 0.9) == Spread(2.0, 3.0, None)
    assert Spread.of([1.0, 3.0], 0.5, [4.0, 6.0]).floor == 5.0


def test_functions_of_pandas_frames_see_dates_as_samples_have_them():
    """Also if the data wrote them as text."""
    schema = pm.Schema({"day": pm.Date("2020-01-01", "2020-12-31", format="%d.%m.%Y")})
    days = pa.table({"day": [f"{1 + i % 28:02}.0{1 + i % 9}.2020" for i in range(500)]})
    made = pm.Synthesizer(schema, epsilon=9, neighbours="replace").fit(days, insecure_seed=1).release_
    functions = {"month": lambda rows: rows["day"].dt.month.mean()}
    found = pm.typical_error(made, runs=2, seed=1, frame="pandas", functions=functions)
    assert 4 < found.functions["month"].value < 6


def zeros_and_children(rows=2000, seed=0):
    """Return a schema and rows of a fee that is mostly 0, and of a small whole number."""
    rng = np.random.default_rng(seed)
    schema = pm.Schema({"fee": pm.Number(0, 1000, decimals=2), "kids": pm.Integer(0, 10)})
    fee = np.where(rng.random(rows) < 0.6, 0, rng.gamma(2, 15, rows)).round(2)
    return schema, pa.table({"fee": fee, "kids": rng.poisson(1.2, rows)})


@pytest.mark.parametrize("mechanism", ["pmm", "columns"])
def test_quantiles_of_zeros_and_of_whole_numbers_lie_in_their_bands(mechanism):
    """12 releases from fixed seeds: spread over half a unit, or over its cell, a quantile lies in no band at all."""
    held = dict.fromkeys(QUANTILES, 0)
    for seed in range(12):
        schema, rows = zeros_and_children(seed=seed)
        made = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", mechanism=mechanism)
        found = pm.typical_error(made.fit(rows, insecure_seed=seed).release_, runs=5, seed=seed)
        for q in QUANTILES:
            true = {name: np.quantile(rows[name].to_numpy(), q, method="inverted_cdf") for name in ("fee", "kids")}
            bands = {name: found.quantiles[name][q] for name in true}
            held[q] += all(bands[name].low <= true[name] <= bands[name].high for name in true)
            assert bands["kids"].low >= 0
            assert {float(x).is_integer() for x in (bands["kids"].value, bands["kids"].low, bands["kids"].high)} == {
                True
            }
    assert min(held.values()) >= 9
    together = bool(found.pairs)  # in one tree always
    assert together or mechanism == "columns"
    assert (found.correlations["fee", "kids"] is not None) == together


@pytest.mark.parametrize("kind", ["wide table", "tree of a table", "line", "columns of points"])
def test_values_are_those_that_the_release_states(kind):
    made, found = release(kind), typical(kind)
    measure = getattr(made, "measure", made)
    means = made.mean() if measure is not made else {f"x{i}": mean for i, mean in enumerate(made.mean())}
    for name, band in found.means.items():
        assert band.value == pytest.approx(means[name], nan_ok=True)
    for name, bands in found.quantiles.items():
        for q, band in bands.items():
            if measure is made:
                assert band.value == made.quantile(q, column=int(name[1:]))
            elif isinstance(stated := made.quantile(q, column=name), int | float):
                assert band.value == stated
            elif isinstance(stated, datetime.date):
                assert band.value == (stated - datetime.date(1970, 1, 1)).days
            else:
                assert made.schema.data[name].values[int(band.value)] == stated


def test_pairs_that_were_not_measured_say_so():
    found = typical("wide table")
    one, two = next(pair for pair, band in found.correlations.items() if band is None)
    assert f"{one} and {two}: correlation not measured" in str(found)
    assert {"columns": [one, two], "value": "not measured"} in found.to_json()["correlations"]


def test_a_release_without_noisy_counts_has_bands_from_runs_alone():
    made = replace(fitted(bell(0)), noisy=None)
    found = pm.typical_error(made, runs=5, seed=1)
    band = found.quantiles["x0"][0.5]
    assert band.low < np.median(bell(0)) < band.high < band.low + 0.2
    assert 0 < found.means["x0"].high - found.means["x0"].low < 0.2

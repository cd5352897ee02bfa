"""Values as a person reads them: against slow twins, lost ones found and named, chance not called a loss."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.domains import Box, Categories, Nullable, Product, Sphere
from privmeasure.metrics import values as room
from privmeasure.metrics.fidelity import MAX_LISTED, NO_DIFFERENCE, fidelity
from privmeasure.metrics.values import common_values

SCHEMA = pm.Schema({
    "plan": pm.Category(["free", "basic", "gold"], nullable=True),
    "fee": pm.Number(0, 1000, decimals=2, unit="euro"),
    "income": pm.Number(0, 1e6, breaks=[1, 10_000], decimals=0),
    "day": pm.Date("2010-01-01", "2020-12-31"),
    "age": pm.Integer(0, 120, nullable=True, unit="year"),
    "seen": pm.Datetime("2020-01-01T00:00:00", "2021-01-01T00:00:00"),
    "ok": pm.Boolean(),
    "home": pm.Place("lat", "lon", low=(45, 5), high=(48, 11)),
})  # fmt: skip
FIRST = {"day": np.datetime64("2010-01-01"), "seen": np.datetime64("2020-01-01T00:00:00")}


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    plan = rng.choice(["free", "basic", "gold"], n, p=[0.5, 0.3, 0.2])
    at_home = rng.random(n) < 0.2
    return pd.DataFrame({
        "plan": np.where(rng.random(n) < 0.1, None, plan),
        "fee": np.where(rng.random(n) < np.where(plan == "free", 0.9, 0.3), 0, np.round(rng.gamma(2, 15, n), 2)),
        "income": np.where(np.arange(n) < round(0.597 * n), 0, np.round(rng.lognormal(9.2, 0.9, n)).clip(1, 1e6)),
        "day": FIRST["day"] + np.where(rng.random(n) < 0.1, 0, rng.integers(0, 3000, n)).astype("timedelta64[D]"),
        "age": np.where(rng.random(n) < 0.05, np.nan, rng.integers(18, 90, n)),
        "seen": FIRST["seen"] + rng.integers(0, 31_000_000, n).astype("timedelta64[s]"),
        "ok": rng.random(n) < 0.5,
        "lat": np.where(at_home, 46.5, rng.uniform(45, 48, n)),
        "lon": np.where(at_home, 7.25, rng.uniform(5, 11, n)),
    })  # fmt: skip


def found(real, synthetic, schema=SCHEMA, **options):
    points = (schema.encode(pa.Table.from_pandas(rows, preserve_index=False)) for rows in (real, synthetic))
    return fidelity(*points, schema, **options)


def one(result, column, figure, of="", within=None):
    (difference,) = [
        d for d in result.differences if (d.column, d.figure, d.of, d.within) == (column, figure, of, within)
    ]
    return difference


def test_a_lost_common_value_is_the_first_sentence():
    real = table(1000)
    moved = real["income"].where(real["income"] > 0, 1 + np.arange(1000) * 0.9)
    result = found(real, real.assign(income=moved))
    sentence = "income: 0 in 59.7 % of the real rows, in 0.0 % of the synthetic ones"
    assert str(result.largest[0]) == sentence
    assert result.largest[0].shown[2] == "-59.7 points"
    assert 0 < result.largest[0].baseline < 0.06
    assert str(result).splitlines()[1].startswith(f"{sentence} (difference -59.7 points, baseline ")
    assert sentence in result._repr_html_()
    assert result.columns[2].w1.value > 0  # bins see little of it


def test_equal_tables_have_no_difference():
    result = found(table(300), table(300))
    assert result.largest == []
    assert {d.synthetic - d.real for d in result.differences} == {0.0}
    assert result.common_values.value == 0.0
    assert NO_DIFFERENCE in str(result)


@pytest.mark.parametrize("name", ["fee", "income", "age"])
def test_figures_of_numbers_are_those_of_a_plain_count(name):
    real, synthetic = table(700), table(500, seed=1)
    result = found(real, synthetic)
    for side, rows in (("real", real), ("synthetic", synthetic)):
        column = rows[name]
        present = sorted(column.dropna())
        counts = Counter(real[name].dropna())
        common = [value for value, count in counts.items() if count >= 7]
        listed = [d for d in result.differences if (d.column, d.figure, d.within) == (name, "share", None)]
        assert len(listed) == min(10, len(common))
        for d in listed:
            assert float(d.of.replace(",", "")) in common
            assert getattr(d, side) == pytest.approx((column == float(d.of)).mean())
        assert getattr(one(result, name, "mean"), side) == pytest.approx(column.mean())
        for q in (5, 25, 50, 75, 95):  # the first value that q % of the values do not exceed
            first = next(x for i, x in enumerate(present, 1) if 100 * i >= q * len(present))
            assert getattr(one(result, name, "quantile", f"{q} %"), side) == first
        assert getattr(one(result, name, "distinct"), side) == column.nunique()
        if name == "age":
            assert getattr(one(result, name, "missing"), side) == pytest.approx(column.isna().mean())
    assert ("missing" in {d.figure for d in result.differences if d.column == name}) == (name == "age")


def test_every_kind_is_written_in_its_form():
    real, synthetic = table(2000), table(2000)
    synthetic["day"] = synthetic["day"] + pd.Timedelta(days=40)
    synthetic["lat"] += 0.001
    result = found(real, synthetic)
    assert str(one(result, "day", "share", "2010-01-01")).endswith("in 0.0 % of the synthetic ones")
    median = one(result, "day", "quantile", "50 %")
    assert str(median).startswith("day: the median is 201")
    assert median.shown[2].startswith("+")
    assert median.shown[2].endswith(" days")
    later = found(real, real.assign(seen=real["seen"] + pd.Timedelta(hours=36)))
    assert one(later, "seen", "mean").synthetic - one(later, "seen", "mean").real == pytest.approx(1.5, abs=1e-6)
    assert one(later, "seen", "mean").shown[2] == "+1.5 days"
    assert one(result, "home", "share", "46.5, 7.25").synthetic == 0
    assert one(result, "home", "share", "46.5, 7.25").real > 0.15
    assert "years" in str(one(result, "age", "mean"))
    assert one(result, "ok", "share", "true").real == pytest.approx(real["ok"].mean())
    assert not any(d.figure in ("mean", "quantile") for d in result.differences if d.column in ("ok", "plan", "home"))


def test_a_lost_dependence_is_named_within_its_category():
    real = table(3000)
    mixed = real.assign(fee=np.random.default_rng(1).permutation(real["fee"]))
    result = found(real, mixed)
    here = real[real["plan"] == "free"]
    lost = one(result, "fee", "share", "0", ("plan", "free"))
    assert lost.real == pytest.approx((here["fee"] == 0).mean())
    assert lost.synthetic == pytest.approx((mixed[real["plan"] == "free"]["fee"] == 0).mean())
    assert str(result.largest[0]).startswith("fee: 0 in 8")
    assert " of the real rows where plan is free, in " in str(result.largest[0])
    assert {d.column for d in result.largest} == {"fee"}
    assert all(d.within[0] == "plan" for d in result.largest)


def test_what_is_lost_in_all_rows_is_not_listed_again_by_category():
    real = table(1000)
    result = found(real, real.assign(income=real["income"].where(real["income"] > 0, 500)))
    again = [d for d in result.differences if d.column == "income" and d.within is not None]
    assert len(again) == 5  # three plans, true and false
    assert not any(d.above_baseline for d in again)
    assert all(d.synthetic == 0 for d in again)


def test_what_a_resample_shows_is_not_called_a_difference():
    """The seeds are fixed. Of independent tables of one law a few in a thousand figures are above the baseline."""
    called, figures = 0, 0
    real = table(1500)
    for seed in range(10):
        again = real.sample(1500, replace=True, random_state=seed)
        result = found(real, again, seed=seed, directions=2, samples=10)
        called += sum(d.above_baseline for d in result.differences)
        figures += len(result.differences)
    assert figures > 500
    assert called <= figures / 200


def test_a_small_loss_is_found_in_many_rows_and_not_in_few():
    for n, seen in ((20_000, True), (200, False)):
        real = np.zeros((n, 1))
        real[: n // 2, 0] = np.linspace(1, 9, n // 2)
        other = real.copy()
        other[-n // 50 :, 0] = 5.5
        result = fidelity(real, other, Box([(0, 10)]), names=["x"])
        assert one(result, "x", "share", "0").above_baseline == seen


def test_a_text_lists_ten_differences_and_three_of_a_column():
    names = [f"c{i}" for i in range(8)]
    real, other = np.zeros((200, 8)), np.ones((200, 8))
    result = fidelity(real, other, Box([(0, 2)] * 8), names=names)
    assert sum(d.above_baseline for d in result.differences) > MAX_LISTED
    assert len(result.largest) == MAX_LISTED
    assert max(Counter(d.column for d in result.largest).values()) == 3
    assert len(str(result).splitlines()) < MAX_LISTED + 10


def test_all_of_it_is_in_the_json():
    result = found(table(400), table(300, seed=1))
    said = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert len(said["differences"]) == len(result.differences)
    assert {d["column"] for d in said["differences"]} == {*SCHEMA.columns}
    assert said["common_values"] == {"value": result.common_values.value, "floor": result.common_values.floor}
    within = next(d for d in said["differences"] if d["within"])
    assert within["within"]["column"] in ("plan", "ok")
    assert within["sentence"].startswith(within["column"])


@pytest.mark.parametrize(
    ("real", "synthetic"),
    [([np.nan] * 5, [1.0, 2]), ([1.0, 2], [np.nan] * 5), ([np.nan], [np.nan]), ([3.0], [3.0]), ([3.0], [4.0])],
)
def test_tables_with_hardly_any_values(real, synthetic):
    sides = (np.array(rows)[:, None] for rows in (real, synthetic))
    result = fidelity(*sides, Nullable(Box([(0, 10)])), names=["x"])
    json.dumps(result.to_json(), allow_nan=False)
    assert one(result, "x", "missing").real == np.isnan(real).mean()
    assert one(result, "x", "distinct").synthetic == len({x for x in synthetic if x == x})


def test_points_of_a_domain_are_compared_as_numbers():
    domain = Product([Categories(3), Box([(0, 1)]), Sphere()])
    rng = np.random.default_rng(0)
    real = np.column_stack((rng.integers(0, 3, 300), rng.random(300) < 0.8, np.full(300, 7.5), np.full(300, 46.0)))
    result = fidelity(real, real, domain)
    assert one(result, "column 0", "share", "2").real == pytest.approx((real[:, 0] == 2).mean())
    assert one(result, "column 2", "share", "7.5, 46").real == 1
    assert one(result, "column 1", "share", "1", ("column 0", "0")).within == ("column 0", "0")


def test_the_figure_common_values_of_one_column():
    real = np.array([0.0] * 60 + [1] * 30 + [np.nan] * 10)
    assert common_values(real, real) == 0
    assert common_values(real, np.array([0.0, 0.3, 0.7, 2])) == pytest.approx((0.35 + 0.3) / 2)
    assert common_values(np.arange(1000.0), np.zeros(1000)) is None
    assert common_values(np.array([np.nan]), np.zeros(3)) is None
    everyday = np.repeat(np.arange(50.0), 2)  # 2 % each: ten of them count
    assert common_values(everyday, everyday + 100) == pytest.approx(0.1)
    rare = np.r_[np.zeros(99), np.arange(1.0, 10_000 - 98)]
    assert common_values(rare, rare) is None
    assert common_values(np.r_[rare[:-1], 0.0], rare) == pytest.approx(0.0001 / 2)


def test_figures_of_resamples_have_the_law_of_tables_that_are_drawn():
    """Means of 3,000 draws lie within 5.5 standard errors: chance breaks that once in 1e6. Half the rows break it."""
    rng = np.random.default_rng(0)
    rows = np.r_[np.zeros(30), rng.lognormal(0, 0.5, 60).round(1), np.full(10, np.nan)]
    tally = room._tally(rows)
    common = tally.common()
    real = tally.figures(common, ordered=True)
    tables = [room._tally(table).figures(common, ordered=True) for table in rng.choice(rows, (3000, 80))]
    for size, same in ((80, True), (40, False)):
        found = tally.resampled(common, size, rng, ordered=True, times=3000)
        assert found.keys() == real.keys()
        worst = 0.0
        for key, drawn in found.items():
            apart, other = (np.abs(x - real[key]) for x in (drawn, np.array([table[key] for table in tables])))
            error = np.sqrt((apart.var() + other.var()) / 3000)
            worst = max(worst, abs(apart.mean() - other.mean()) / max(error, 1e-9))
        assert (worst < 5.5) == same

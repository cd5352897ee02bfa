"""What is measured on wide tables: missing cells, triples, models, and how ours is compared with rivals."""

from itertools import combinations

import numpy as np
import pytest

import held_out
import held_out_rivals
import held_out_tables as tables
import wide_page
import wide_rivals
from privmeasure.metrics.values import common_values
from rivals import downstream, measure

BOUNDS = {
    "amount": ("number", 0.0, 8.0, True),
    "age": ("integer", 0, 99, True),
    "grade": ("integer", 1, 6),
    "sex": ("category", ["f", "m"]),
    "place": ("category", ["a", "b", "c"], True),
}


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        (
            rng.random(n) * 8,
            rng.integers(0, 100, n),
            rng.integers(1, 7, n),
            rng.integers(0, 2, n),
            rng.integers(0, 4, n),
        )
    )
    x[rng.random(n) < 0.3, 0] = np.nan
    x[rng.random(n) < 0.1, 1] = np.nan
    return x


def test_the_halves_share_no_table_and_every_table_has_a_target():
    assert len(tables.NAMES) == len({*tables.OPEN} | {*tables.HELD_OUT} | {*tables.LARGE}) == 19
    assert len(tables.OPEN) == len(tables.HELD_OUT) == 8
    assert {*tables.TARGET} == {*tables.BOUNDS} == {*tables.NAMES}
    for name, target in tables.TARGET.items():
        bound = tables.BOUNDS[name][target]
        assert bound[0] != "category" or len(bound[1]) == 2
        assert 6 <= len(tables.BOUNDS[name]) <= 30


def test_what_a_method_sees_is_four_fifths_and_differs_by_seed():
    (seen, unseen), (other, _) = tables.split(103, 0), tables.split(103, 1)
    assert sorted([*seen, *unseen]) == list(range(103))
    assert len(unseen) == 20
    assert not np.array_equal(seen, other)


def test_cells_of_missing_values_come_back_missing():
    x = rows(2000)
    cells = measure.cells(x, BOUNDS)
    assert [measure.count(bound) for bound in BOUNDS.values()] == [33, 33, 6, 2, 4]
    assert (cells[np.isnan(x[:, 0]), 0] == 32).all()
    again = measure.decoded(cells, BOUNDS, np.random.default_rng(1))
    assert np.array_equal(np.isnan(again), np.isnan(x))
    assert np.array_equal(measure.cells(again, BOUNDS), cells)


def test_a_missing_number_lies_one_range_below_the_lowest():
    x = np.array([[0.0, 99, 1, 0, 3], [np.nan, np.nan, 6, 1, 0]])
    assert measure.scaled(x, BOUNDS)[:, 0].tolist() == [0, -1]
    assert measure.scaled(x, BOUNDS)[:, 1].tolist() == [1, -1]
    full, empty = np.zeros((50, 5)), np.zeros((70, 5))
    empty[:, 0] = np.nan
    assert measure.Real(full, BOUNDS).compare(empty, with_w1=False)["column_w1"] == pytest.approx(1 / 5)


def test_distances_on_the_line_are_those_of_the_quantiles():
    rng = np.random.default_rng(3)
    x, y = rng.random(300), rng.random(450) ** 2
    quantiles = np.mean(np.abs(np.repeat(np.sort(x), 3) - np.repeat(np.sort(y), 2)))
    assert measure.line(x, y) == pytest.approx(quantiles)


def test_total_variation_of_triples_is_that_of_a_count_by_hand():
    x, y = (measure.cells(rows(400, seed), BOUNDS) for seed in (0, 1))
    total = []
    for columns in combinations(range(5), 3):
        triples = [[tuple(row[[*columns]]) for row in z] for z in (x, y)]
        total.append(sum(abs(triples[0].count(t) - triples[1].count(t)) for t in {*triples[0], *triples[1]}) / 800)
    assert measure.variation(x, y, BOUNDS, measure.triples(5)) == pytest.approx(np.mean(total))
    assert len(measure.triples(28)) == len({*measure.triples(28)}) == measure.TRIPLES
    assert measure.triples(28) == measure.triples(28)


def test_equal_tables_are_at_distance_zero_and_kept_draws_change_nothing():
    x = rows(600)
    real = measure.Real(x, BOUNDS)
    assert set(real.compare(x, with_w1=False).values()) == {0.0}
    y = rows(500, seed=5)
    assert real.compare(y) == measure.Real(x, BOUNDS, real.draws).compare(y)


def test_models_learn_what_is_there_and_nothing_from_noise():
    rng = np.random.default_rng(0)
    x, shuffled = rows(3000), rows(3000)
    for z in (x, shuffled):
        z[:, 3] = (np.nan_to_num(z[:, 0]) + z[:, 2] > 6) ^ (rng.random(3000) < 0.1)
        z[:, 1] = np.nan_to_num(z[:, 0]) * 10 + z[:, 2] + rng.normal(size=3000)
    shuffled[:, 1] = rng.permutation(shuffled[:, 1])
    test = x[:600]
    assert min(downstream.scores(x[600:], test, BOUNDS, "sex").values()) > 0.8
    good, bad = (downstream.scores(z[600:], test, BOUNDS, "age") for z in (x, shuffled))
    assert min(good.values()) > 0.9
    assert max(bad.values()) < 0.1
    one_class = x.copy()
    one_class[:, 3] = 0
    assert downstream.scores(one_class, test, BOUNDS, "sex") == {"boosting": 0.5, "linear": 0.5}


def run(table, epsilon, seed=0, **values):
    base = dict.fromkeys((*held_out.METRICS, *downstream.METHODS), 0.1) | {"w1_excess_error": 0.01}
    return {"table": table, "epsilon": epsilon, "seed": seed} | base | values


def rival(method, table, epsilon, seed=0, **values):
    return run(table, epsilon, seed, **values) | {"rival": "opendp", "method": method, "status": "complete"}


def test_ratios_are_to_the_best_rival_of_each_metric_and_runs_that_did_not_end_do_not_count():
    rivals = [
        rival("MST", "anger", 1, tv1=0.2, tv2=0.3, boosting=0.7),
        rival("AIM", "anger", 1, tv1=0.4, tv2=0.1, boosting=0.6),
        {"rival": "opendp", "method": "AIM", "table": "anger", "epsilon": 1, "seed": 1, "status": "not finished"},
    ]
    (line, mean) = held_out.ratios([run("anger", 1, tv1=0.1, tv2=0.1)], rivals)
    assert (line["tv1"], line["tv2"], mean["table"]) == (0.5, 1.0, "geometric mean")
    floors = {"anger 0": {"boosting": 0.8, "linear": 0.8}}
    found = held_out.differences([run("anger", 1, boosting=0.65)], rivals, floors)
    assert found[0]["difference"] == pytest.approx(-0.05)
    assert (found[0]["score"], found[0]["real"]) == ("AUC", 0.8)


def test_an_excess_below_its_standard_error_counts_as_that():
    ours = [run("anger", 1, w1_excess=-0.02, w1_excess_error=0.004)]
    (line, _) = held_out.ratios(ours, [rival("MST", "anger", 1, w1_excess=0.02)])
    assert line["w1_excess"] == pytest.approx(0.2)


def test_r2_below_zero_counts_as_zero():
    ours, theirs = run("football", 1, boosting=-3.0), rival("MST", "football", 1, boosting=-0.5)
    found = held_out.differences([ours], [theirs], {"football 0": {"boosting": 0.3, "linear": 0.3}})
    assert (found[0]["score"], found[0]["difference"]) == ("R2", 0)


def test_words_restrict_the_runs_of_rivals():
    runs = [run for run in held_out_rivals.plan() if held_out_rivals.asked(run, {"held-out", "AIM", "anger"})]
    assert {(run["rival"], run["method"], run["table"], run["seed"]) for run in runs} == {("opendp", "AIM", "anger", 0)}
    assert len(runs) == 3
    every = list(held_out_rivals.plan())
    assert len(every) == len({tuple(run.values()) for run in every}) == 19 * 3 * 7


def test_the_page_says_what_was_missed():
    ours = [run(name, epsilon, tv1=0.3, peak_mb=300) for name in ("anger", "football") for epsilon in (0.1, 1, 4)]
    rivals = [rival("MST", name, epsilon) for name in ("anger", "football") for epsilon in (0.1, 1, 4)]
    floors = {f"{name} 0": {"boosting": 0.8, "linear": 0.8} for name in ("anger", "football")}
    result = {
        "machine": {"cores": 2, "cpu": "a cpu"},
        "commit": "abc",
        "ratios": held_out.ratios(ours, rivals),
        "differences": held_out.differences(ours, rivals, floors),
        "bars": {str(epsilon): bars for epsilon, bars in held_out.BARS.items()},
        "rivals": [{"rival": "opendp", "method": "MST", "runs": 6}],
        "not complete": [{**rivals[0], "status": "not finished within 30 CPU minutes"}],
        "peak_mb": 300.0,
    }
    page = wide_page.numbers(result, None)
    assert "**3.00** (1.12)" in page
    assert "- epsilon 1: in 2 of 12 ratios, the largest being football 1-way 3.00; anger 1-way 3.00." in page
    assert "not finished within 30 CPU minutes" in page
    assert "declared target" not in page
    again = [{"commit": "now", "differences": result["differences"], "with_delta": result["differences"]}] * 2
    page = wide_page.numbers(result, None, targets=again)
    assert page.index("### With a declared target") < page.index("Scored before, at commit now:")
    assert "1-way total variation 3.00" in wide_page.line(result)
    assert "not been scored" in wide_page.numbers(None, None)


def test_the_page_shows_smaller_and_larger_tables_by_themselves():
    ours = [run(name, epsilon) for name in ("anger", "food") for epsilon in (0.1, 1, 4)]
    rivals = [rival("MST", name, epsilon) for name in ("anger", "food") for epsilon in (0.1, 1, 4)]
    ratios = held_out.ratios(ours, rivals)
    for row in ratios:
        row["tv2"] = {"anger": 0.5, "food": 2.0}.get(row["table"], 1.0)
    result = {"ratios": ratios, "bars": {str(epsilon): bars for epsilon, bars in held_out.BARS.items()}}
    said = wide_page.groups(result)
    small, large = said.split("larger")
    assert "The 1 smaller tables (anger)" in small
    assert " 0.50 (0.92)" in small
    assert "**2.00** (0.92)" in large
    assert wide_page.groups(wide_page.part(result, {"anger"})) == ""


def test_the_curve_has_a_line_for_each_epsilon_and_promise():
    rows = [
        {"table": name, "delta": delta, "epsilon": epsilon} | dict.fromkeys(held_out.ERRORS, value / epsilon)
        for name, value in (("adult", 1.0), ("movies", 4.0))
        for delta in ("0", "1e-6")
        for epsilon in held_out.CURVE
    ]
    said = wide_page.limits({"rows": rows, "commit": "abc"})
    assert said.count("| pure |") == said.count("| with a delta of 1e-6 |") == len(held_out.CURVE)
    assert "| pure | 1 | 2.00 | 2.00 | 2.00 | 2.00 | 1.0 | 4.0 |" in said


def test_common_values_are_those_that_evaluate_compares():
    bounds = {**BOUNDS, "zeros": ("number", 0.0, 8.0)}
    x, y = (np.column_stack((rows(900, seed), np.zeros(900))) for seed in (0, 1))
    x[:300, 5], y[:, 5] = np.linspace(1, 8, 300), np.linspace(0, 8, 900)
    values = [np.where(z == 3, np.nan, z) if j == 4 else z for z in (x, y) for j, z in enumerate(z.T)]
    apart = [common_values(a, b) for a, b in zip(values[:6], values[6:], strict=True)]
    assert apart[0] is None  # no amount occurs twice
    expected = np.mean([figure for figure in apart if figure is not None])
    assert measure.common_values(x, y, bounds)["common_values"] == pytest.approx(expected)
    assert measure.compare(x, y, bounds, measure.floors(x, bounds))["common_values"] == pytest.approx(expected)
    assert measure.common_values(x[:, :1], y[:, :1], {"amount": BOUNDS["amount"]}) == {}


def test_tables_of_runs_show_common_values_where_they_were_measured():
    rivals = [rival("MST", "anger", 1, common_values=0.2), rival("AIM", "anger", 1)]
    ours = [run("anger", 1, common_values=0.0)]
    assert held_out.means(ours, "table")["anger",]["common_values"] == 0.0
    assert "common_values" not in held_out.ratios(ours, rivals)[0]
    assert "common_values" in held_out.against(ours, [run("anger", 1, common_values=0.1)])
    shown = wide_rivals.summary(rivals, ("tv1", "common_values"))
    assert [line.split()[-1] for line in shown.splitlines()] == ["common_values", "-", "0.2"]

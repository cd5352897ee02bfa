"""Figures that pages state by hand are those of the code and of the results files."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure import compiled, counts
from privmeasure.cli.app import UPLOAD_MEGABYTES
from privmeasure.domains.finite import MOST_POINTS
from privmeasure.domains.line import LARGEST_INTEGER
from privmeasure.errors import ArgumentError
from privmeasure.estimates.projection import MOST_GRID_CELLS
from privmeasure.estimates.shrinkage import FEWEST
from privmeasure.mechanisms.tree import MOST_KEPT
from privmeasure.model import agreements
from privmeasure.plans import column_schedule, columns, schedule
from privmeasure.plans.tuning import GAUSSIAN_TUNED, TUNED
from privmeasure.releases.choosing import MOST_TRIES
from privmeasure.releases.rows import RAREST
from privmeasure.sources.lines import LONGEST_LINE
from privmeasure.sources.people import HELD_BYTES
from privmeasure.sources.tables import CACHE_BYTES
from privmeasure.synthesizer import MOST_JOINT_COLUMNS
from privmeasure.tables.columns.categories import MOST_VALUES
from privmeasure.tables.columns.kinds import LARGEST_GROUP

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"

STATED = {
    "docs/limits.md": [
        ("cells of a tree in memory | 2^26", counts.DENSE_CELLS == 1 << 26),
        ("chosen by itself | 2^18; 2^21 on spaces other than boxes, and where there are 32 rows to a cell",
         (schedule.LARGEST_LADDER_DEPTH, schedule.LARGEST_DEFAULT_DEPTH, schedule.ROWS_PER_DEEP_CELL) == (18, 21, 32)),
        ("give `depth=`, up to 40", schedule.DEEPEST_DEPTH == 40),
        ("for its certificate | 2^22", MOST_KEPT == 1 << 22),
        ("a closest measure is searched | 65,536", MOST_GRID_CELLS == 65_536),
        ("points of a `Finite` metric | 4,096", MOST_POINTS == 4096),
        ("conditions that fewer than one in 100 of the tried rows", MOST_TRIES == 100),
        ("Two to three columns in a group", LARGEST_GROUP == 3),
        ("exact up to 2^53", LARGEST_INTEGER == 1 << 53),
        ("a million rows tell each axis apart into about four cells", round(1e6**0.1) == 4),
    ],
    "docs/mathematics.md": [
        ("we buy a noisy n first (epsilon / 64)", Fraction(1, 64) == schedule.CHEAP_ROOT_SHARE == TUNED.size_share),
        ("epsilon / 8 for the number of rows", Fraction(1, 8) == schedule.ROOT_SHARE),
        ("A group is left as it is if it has fewer than 8 parents", FEWEST == 8),
        ("share of the budget (two fifths, on a line a tenth)",
         (Fraction(2, 5), Fraction(1, 10)) == (schedule.FINE_SHARE, schedule.LINE_FINE_SHARE)),
        ("at least 3 apart on a line and 4 elsewhere", (schedule.LINE_STEP, schedule.STEP) == (3, 4)),
        ("none of fewer than 8 cells", schedule.FEWEST_CELLS == 8),
        ("n min(1, epsilon / D) / 1.15", schedule.ROWS_PER_CELL == 1.15),
        ("n min(1, epsilon / D) / 0.6", schedule.SPACE_ROWS_PER_CELL == 0.6),
        ("is 1.4 T*", column_schedule.STATED == schedule.PATIENCE == 1.4),
        ("T2 <= 1.2 T*", column_schedule.COLUMN_PATIENCE == 1.2),
        ("it is 1.25 T2", column_schedule.LISTED_STATED == 1.25),
        ("p = 0.3 (0.5 with a delta)", (TUNED.pair_power, GAUSSIAN_TUNED.pair_power) == (0.3, 0.5)),
        ("a list of more than 16 values is packed, a third of the budget",
         (column_schedule.LONG_LIST, TUNED.shape_share) == (16, Fraction(1, 3))),
        ("up to 16 times its cells", columns.FINER**2 == 16),
        ("beyond three times their noise", TUNED.finer_clear == 3),
        ("ten standard deviations of its noise", TUNED.clear == 10),
        ("a quarter of the noise of fine cells", TUNED.coarse_share == 4 * (1 - TUNED.coarse_share)),
        ("each has 450 rows a noise scale", TUNED.least_rows == 450),
        ("one for each 140 rows a noise scale but at least 2 k / 5 (and three)",
         (TUNED.pair_rows, TUNED.fewest_pairs, TUNED.narrow_pairs) == (140, Fraction(2, 5), 3)),
        ("a tenth of epsilon (a twentieth of rho)",
         (TUNED.agreement_share, GAUSSIAN_TUNED.agreement_share) == (0.1, 0.05)),
        ("their noise is at most a sixth of the rows", TUNED.agreement_rows == 6),
        ("two standard deviations, and so that at most a fifth", (agreements.CLEAR, agreements.CHANCE) == (2, 0.2)),
        ("eight for each column", agreements.MOST_FOLLOWED == 8),
        ("half to the columns at 3,500 rows per column and noise scale, 0.7 at a tenth of it",
         (TUNED.usual_rows, *TUNED.columns_share[1:2], TUNED.columns_slope) == (3500, 0.5, 0.2)),
    ],
    "docs/scale.md": [
        ("up to 512 MiB of encoded points", CACHE_BYTES == 512 << 20),
        ("more than 8 threads wait", compiled.MOST_PLAIN == 8),
        ("when it has counted and sampled 3 * 10^7 rows", 3e7 < compiled.MANY_ROWS < 3.5e7),
    ],
    "docs/persons.md": [("gathered in memory up to 128 MiB", HELD_BYTES == 128 << 20)],
    "SECURITY.md": [("tables of more than 128 MiB", HELD_BYTES == 128 << 20)],
    "docs/app.md": [("512 MB at most", UPLOAD_MEGABYTES == 512)],
    "docs/cli.md": [
        ("fewer than one in 64 rows", RAREST == 64),
        ("fewer than one in 100 of the rows", MOST_TRIES == 100),
    ],
    "docs/schema.md": [
        ("of more than 16 MiB is a row", LONGEST_LINE == 16 << 20),
        ("at most 1,048,576", MOST_VALUES == 1_048_576),
        ("A group has two or three columns", LARGEST_GROUP == 3),
    ],
    "docs/choosing-epsilon.md": [("Up to three columns share the cuts of one tree", MOST_JOINT_COLUMNS == 3)],
    "docs/python.md": [("up to 40 levels deep", schedule.DEEPEST_DEPTH == 40)],
    "CONTRIBUTING.md": [
        ("what 351 configurations release", len(json.loads((ROOT / "tests/golden/net.json").read_text())) == 351)
    ],
}  # fmt: skip
"""What pages say, and whether it is so."""


def says(page, words):
    """Say whether a page has these words, however its lines end."""
    return words in " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("page", STATED)
def test_what_a_page_says_is_so(page):
    for words, so in STATED[page]:
        assert says(page, words), f"{page} no longer says {words!r}"
        assert so, f"{page} says {words!r}"


def test_words_that_a_page_does_not_have_are_found():
    assert not says("docs/limits.md", "cells of a tree in memory | 2^27")


@pytest.mark.parametrize(("rows", "deeper"), [(10**4, False), (10**8, True)])
def test_a_tree_that_is_chosen_by_itself_is_deeper_than_18_where_there_are_32_rows_to_a_cell(rows, deeper):
    depth = pm.PMM(pm.Box([(0, 1)]), pm.Privacy(16, "add-remove")).plan(rows).depth
    assert (depth > 18) == deeper
    assert depth <= 21


def test_what_is_said_of_finite_spaces_holds():
    distances = np.zeros((4097, 4097), np.float32)
    for make in (pm.Finite, pm.Finite.trusted):
        with pytest.raises(ArgumentError, match="at most 4096 points"):
            make(distances)


def test_a_schema_says_format_2_where_a_page_says_so():
    assert says("docs/schema.md", "`distances`, a person, a target or an order between columns says `format = 2`")
    towns = pm.Category(["a", "b", "c"], distances=[[0, 1, 2], [1, 0, 2], [2, 2, 0]])
    ages, other = pm.Integer(0, 120), pm.Integer(0, 120)
    later = [
        pm.Schema({"town": towns}),
        pm.Schema({"age": ages, "next": pm.Derived("age + 1")}),
        pm.Schema({"age": ages, "id": pm.Drop(optional=True)}),
        pm.Schema({"age": ages, "id": pm.Drop()}, person="id"),
        pm.Schema({"age": ages, "other": other}, target="age"),
        pm.Schema({"age": ages, "other": other}, never=["age < other"]),
    ]
    assert {schema.to_toml().splitlines()[0] for schema in later} == {"format = 2"}
    assert pm.Schema({"age": ages, "id": pm.Drop()}).to_toml().splitlines()[0] == "format = 1"


def test_on_the_unit_square_the_bound_of_the_flat_mechanism_is_below_t7():
    assert says("docs/mathematics.md", 'unit square at epsilon 1 ("replace", 10^3 to 10^6 rows) it is below T7')
    for rows in (10**3, 10**4, 10**5, 10**6):
        bounds = {
            bound.name: bound.value
            for bound in pm.PMM(pm.Box([(0, 1)] * 2), pm.Privacy(1, "replace")).plan(rows).bounds
        }
        assert bounds["PSMM"] < bounds["T7"]


def test_bounds_that_add_levels_in_quadrature_are_as_far_below_t2_as_is_said():
    assert says("docs/mathematics.md", "four to seven times below T2 at 10^4 to 10^6 rows and epsilon 1")
    assert says("docs/mathematics.md", "three to six times less on a line, one to four times less in two and three")
    for d, least, most in ((1, 3, 6.5), (2, 1, 4), (3, 1, 4)):
        for rows in (10**4, 10**5, 10**6):
            found = {}
            for recipe in [pm.Recipe(shrinkage="none"), *([pm.Recipe(rule="isotonic")] if d == 1 else [])]:
                plan = pm.PMM(pm.Box([(0, 1)] * d), pm.Privacy(1, "add-remove"), recipe=recipe).plan(rows)
                found |= {bound.name: bound.value for bound in plan.bounds}
            assert least < found["T2"] / found["T5"] < most
            assert d > 1 or 4 < found["T2"] / found["T3"] < 7


def test_what_is_said_of_noise_with_a_delta_holds():
    assert says("docs/mathematics.md", "For epsilon = 0.1, delta = 1e-6 and m = 27")
    assert says("docs/mathematics.md", "that is 382 rows against 205")
    rho = float(pm.Privacy(0.1, "add-remove", delta=1e-6).budget)
    assert round(math.sqrt(2) * 27 / 0.1) == 382
    assert round(math.sqrt(27 / (2 * rho))) == 205
    assert says("docs/choosing-epsilon.md", "1e-9 in the place of 1e-6 raises the noise by about a quarter")
    few, many = (float(pm.Privacy(1, "add-remove", delta=delta).budget) for delta in (1e-9, 1e-6))
    assert math.sqrt(many / few) == pytest.approx(1.25, abs=0.05)


def test_what_a_delta_brings_is_that_of_the_held_out_tables():
    assert says(
        "docs/choosing-epsilon.md", "eleven tables](wide-tables.md) of 6 to 28 columns errors were 12 to 31 % smaller"
    )
    pure, other = (
        json.loads((RESULTS / f"{name}.json").read_text())["rows"] for name in ("held-out", "held-out-delta")
    )
    means, ratios = [], []
    for metric in ("tv1", "tv2", "column_w1", "sliced", "w1_excess"):
        for epsilon in (0.1, 1, 4):
            tables = sorted({row["table"] for row in pure})
            assert len(tables) == 11
            each = [mean(other, table, epsilon, metric) / mean(pure, table, epsilon, metric) for table in tables]
            ratios += each
            means.append(math.exp(np.mean(np.log([ratio for ratio in each if ratio > 0]))))
    assert round(1 - max(means), 2) == 0.12
    assert round(1 - min(means), 2) == 0.31
    assert min(ratio for ratio in ratios if ratio > 0) < 0.5 < 1 < max(ratios)


def mean(rows, table, epsilon, metric):
    return np.mean([row[metric] for row in rows if (row["table"], row["epsilon"]) == (table, epsilon)])


def test_the_figures_of_the_tuned_values_are_of_runs_with_other_defaults():
    kept = json.loads((RESULTS / "constants.json").read_text())["defaults"]
    assert (kept["SPLIT"], kept["FEWEST"]) != (str(TUNED.split_power), str(float(TUNED.fewest_pairs)))


@pytest.mark.parametrize(
    ("declared", "zeros"),
    [({"breaks": [1, 10_000], "decimals": 0}, True), ({"breaks": [1, 10_000]}, False), ({"decimals": 0}, False)],
)
def test_many_zeros_need_breaks_and_decimals(declared, zeros):
    """What docs/choosing-columns.md recommends gives zeros back; either half of it alone does not."""
    assert says("docs/choosing-columns.md", "`breaks = [1, 10_000]` and `decimals = 0` for incomes with many zeros")
    rng = np.random.default_rng(0)
    incomes = np.where(rng.random(5_000) < 0.6, 0, np.rint(rng.lognormal(9.2, 0.9, 5_000)))
    schema = pm.Schema({"income": pm.Number(0, 1_000_000, **declared)})
    synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove").fit(
        pa.table({"income": incomes}), insecure_seed=1
    )
    share = np.mean(np.asarray(synth.sample(seed=1)["income"]) == 0)
    assert share == pytest.approx(np.mean(incomes == 0), abs=0.05) if zeros else share < 0.01

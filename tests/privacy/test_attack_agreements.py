"""Attacks on agreements: edited files, files that nobody could read again, and models that take ages to draw from."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.domains import Box, Categories, Product
from privmeasure.errors import ArgumentError, ReleaseFileError
from privmeasure.mechanisms import ColumnTree
from privmeasure.mechanisms.choice import PART
from privmeasure.mechanisms.pairs import AGREEMENTS
from privmeasure.model.agreements import MOST_FOLLOWED, Agreements, surprising_tables
from privmeasure.noise.entropy import Key
from privmeasure.plans.columns import MOST_AGREED, MOST_COLUMNS, ColumnPlan
from privmeasure.plans.tuning import EXTRA_LIMIT, TUNED
from privmeasure.privacy import Privacy
from privmeasure.releases import files
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.sources.arrays import ArraySource

SPACES = [Box([(0, 1)])] * 3 + [Categories(3), Categories(2), Categories(1)]


@pytest.fixture(scope="module")
def all_agree() -> ColumnsMeasure:
    rng = np.random.default_rng(0)
    first = rng.random(4000)
    points = [(first + 0.3 * rng.random(4000)).clip(0, 1) for _ in range(3)]
    table = np.column_stack([*points, rng.integers(0, 3, 4000), rng.integers(0, 2, 4000), np.zeros(4000)])
    tuning = replace(TUNED, most_extra=0.0, agreement_share=0.2, agreement_rows=1e-6)
    mechanism = ColumnTree(Product(SPACES), Privacy(2, "add-remove"), tuning=tuning)
    return mechanism.release(ArraySource(table, width=6, threads=1), Key.insecure(2))


def edited(release: ColumnsMeasure, path: Path, edit) -> None:
    header = json.loads(json.dumps(release.header()))
    edit(header, next(part for part in header["parts"] if part["kind"] == "agreements"))
    files.write_release(path, header, release.columns_of_file())


@pytest.mark.parametrize("zeros", [12, 160, 400, 900])
def test_noise_of_agreements_out_of_reach_is_refused(all_agree, tmp_path, zeros) -> None:
    """A sample once raised an OverflowError."""
    edited(all_agree, tmp_path / "x", lambda header, _: header["plan"].update(agreements_budget="1/1" + "0" * zeros))
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "x")


def test_files_do_not_list_pairs(all_agree, tmp_path) -> None:
    """Those of 4,000 columns were a header of more than Parquet's readers take: spent, saved, and lost."""
    (part,) = (part for part in all_agree.header()["parts"] if part["kind"] == "agreements")
    assert "pairs" not in part
    all_agree.save(tmp_path / "x")
    assert pm.load(tmp_path / "x").agreements.names == all_agree.agreements.names
    edited(all_agree, tmp_path / "y", lambda _, part: part.update(pairs=[[0, 1]] * 10))
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "y")


def test_agreements_of_columns_of_few_values_are_read_again(tmp_path) -> None:
    """There are more pairs of columns than cells of columns: they were not counted, and the file could not be read."""
    table = np.random.default_rng(1).integers(0, 2, (20_000, 20)).astype(float)
    mechanism = ColumnTree(Product([Categories(2)] * 20), Privacy(1, "replace"))
    release = mechanism.release(ArraySource(table, width=20, threads=1), Key.insecure(3))
    assert release.plan.agreement_pairs == 190, "the usual tuning buys them"
    release.save(tmp_path / "x")
    assert (pm.load(tmp_path / "x").agreements.noisy == release.agreements.noisy).all()


@pytest.mark.parametrize("pairs", [10**9, -1, "190", True, None, 2.5, []])
def test_numbers_of_agreements_that_nobody_has_are_refused(all_agree, tmp_path, pairs) -> None:
    edited(all_agree, tmp_path / "x", lambda header, _: header["plan"].update(agreement_pairs=pairs))
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "x")


def test_agreements_of_an_older_kind_are_refused(all_agree, tmp_path) -> None:
    """Their budget was that of each, with noise of its own: read as one for all it would be another promise."""
    edited(
        all_agree,
        tmp_path / "x",
        lambda header, _: header["plan"].update(agreement_budget=header["plan"].pop("agreements_budget")),
    )
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "x")


def test_very_wide_tables_have_no_agreements() -> None:
    """Their noise takes columns^3 steps."""
    for columns, agreed in ((MOST_AGREED, True), (MOST_AGREED + 1, False)):
        plan = ColumnTree(Product([Categories(2)] * columns), Privacy(10, "add-remove")).plan(10**9)
        assert (plan.agreement_pairs > 0) == agreed


def test_plans_of_very_wide_tables_with_agreements_are_refused() -> None:
    """All pairs of 4,096 columns, which a file of a few megabytes can list, took minutes and gigabytes to compare."""
    for columns in (MOST_AGREED, MOST_AGREED + 1):
        plan = ColumnTree(Product([Categories(2)] * columns), Privacy(10, "add-remove")).plan(100)
        agreed = replace(
            plan,
            tree_budget=plan.tree_budget / 2,
            agreement_pairs=plan.all_pairs,
            agreements_budget=plan.tree_budget / 2,
        )
        assert ColumnPlan.from_json(plan.to_json()) == plan
        if columns <= MOST_AGREED:
            assert ColumnPlan.from_json(agreed.to_json()) == agreed
        else:
            with pytest.raises(ReleaseFileError):
                ColumnPlan.from_json(agreed.to_json())


def test_wide_tables_follow_the_agreements_that_differ_most() -> None:
    """All of 4,950 once became tables: a column had up to 99 parents, and rows took eight times as long."""
    names = tuple(combinations(range(60), 2))
    noisy = np.random.default_rng(0).permutation(np.arange(1000, 1000 + len(names)))
    drawn = [np.random.default_rng(j).integers(0, 2, 1 << 15).astype(np.int32) for j in range(60)]
    agreements = Agreements(names, (np.arange(2),) * 60, noisy, Fraction(1))
    tables = surprising_tables(agreements, [np.full(2, 5000.0)] * 60, drawn, ())
    assert len(tables) == 60 * MOST_FOLLOWED < len(names)
    followed = [value for name, value in zip(names, noisy.tolist(), strict=True) if name in tables]
    assert np.mean(followed) > np.quantile(noisy, 0.75)


def test_no_table_shares_its_noise_with_agreements_or_choices() -> None:
    """The noise of a table is at part 1 + columns + place: with fourteen tables a column it met that of agreements."""
    tables = MOST_COLUMNS - 1 + EXTRA_LIMIT * MOST_COLUMNS
    assert 1 + MOST_COLUMNS + tables <= min(AGREEMENTS, PART)
    with pytest.raises(ArgumentError, match="most_extra"):
        replace(TUNED, most_extra=14.0)

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
from privmeasure.mechanisms.choice import AGREEMENTS, PART
from privmeasure.model.agreements import MOST_FOLLOWED, Agreements, surprising_tables
from privmeasure.noise.entropy import Key
from privmeasure.plans.columns import MOST_COLUMNS
from privmeasure.plans.tuning import EXTRA_LIMIT, TUNED
from privmeasure.privacy import Privacy
from privmeasure.releases import files
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.sources.arrays import ArraySource

SPACES = [Box([(0, 1)])] * 3 + [Categories(3), Categories(2), Categories(1)]


def released(agreement_rows: float) -> ColumnsMeasure:
    rng = np.random.default_rng(0)
    first = rng.random(4000)
    points = [(first + 0.3 * rng.random(4000)).clip(0, 1) for _ in range(3)]
    table = np.column_stack([*points, rng.integers(0, 3, 4000), rng.integers(0, 2, 4000), np.zeros(4000)])
    tuning = replace(TUNED, most_extra=0.0, agreement_share=0.2, agreement_rows=agreement_rows)
    mechanism = ColumnTree(Product(SPACES), Privacy(2, "add-remove"), tuning=tuning)
    return mechanism.release(ArraySource(table, width=6, threads=1), Key.insecure(2))


@pytest.fixture(scope="module")
def all_agree() -> ColumnsMeasure:
    return released(1e-6)


@pytest.fixture(scope="module")
def some_agree() -> ColumnsMeasure:
    return released(200)


def edited(release: ColumnsMeasure, path: Path, edit) -> None:
    header = json.loads(json.dumps(release.header()))
    edit(header, next(part for part in header["parts"] if part["kind"] == "agreements"))
    files.write_release(path, header, release.columns_of_file())


@pytest.mark.parametrize("like", [float, bool, str, lambda j: j + 2**70, lambda j: -j - 1, lambda j: [j]])
@pytest.mark.parametrize("side", [0, 1])
def test_a_column_of_an_agreement_is_a_whole_number(some_agree, tmp_path, like, side) -> None:
    """1.0 and True equal 1, and once were read as columns that no sample could find."""

    def edit(header, part) -> None:
        part["pairs"][0][side] = like(part["pairs"][0][side])

    edited(some_agree, tmp_path / "x", edit)
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "x")


def test_pairs_that_were_chosen_must_be_told(some_agree, tmp_path) -> None:
    edited(some_agree, tmp_path / "x", lambda _, part: part.pop("pairs"))
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "x")


@pytest.mark.parametrize("zeros", [12, 160, 400, 900])
def test_noise_of_agreements_out_of_reach_is_refused(all_agree, tmp_path, zeros) -> None:
    """A sample once raised an OverflowError."""
    edited(all_agree, tmp_path / "x", lambda header, _: header["plan"].update(agreement_budget="1/1" + "0" * zeros))
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "x")


def test_files_do_not_list_all_pairs(all_agree, some_agree, tmp_path) -> None:
    """Those of 4,000 columns were a header of more than Parquet's readers take: spent, saved, and lost."""
    for release, listed in ((all_agree, False), (some_agree, True)):
        (part,) = (part for part in release.header()["parts"] if part["kind"] == "agreements")
        assert ("pairs" in part) == listed
        release.save(tmp_path / "x")
        assert pm.load(tmp_path / "x").agreements.names == release.agreements.names


def test_files_that_list_all_pairs_are_read(all_agree, tmp_path) -> None:
    names = [[*pair] for pair in all_agree.agreements.names]
    edited(all_agree, tmp_path / "x", lambda _, part: part.update(pairs=names))
    again = pm.load(tmp_path / "x")
    assert np.array_equal(again.sample(seed=5), all_agree.sample(seed=5))


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

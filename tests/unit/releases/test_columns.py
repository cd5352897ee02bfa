"""The release of a wide table: rows, answers, files."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.conditions.sets import Condition
from privmeasure.domains import Box, Categories, Integers, Nullable, Product, Sphere
from privmeasure.errors import ArgumentError, ReleaseFileError
from privmeasure.mechanisms import ColumnTree
from privmeasure.noise.entropy import Key
from privmeasure.plans.tuning import TUNED
from privmeasure.privacy import Privacy
from privmeasure.releases import files
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.releases.storing import pair_parts, read_pairs
from privmeasure.sources.arrays import ArraySource
from privmeasure.transport.cells import cell_norm, tree_distance

DOMAIN = Product([Box([(0, 10)]), Categories(5), Nullable(Integers(0, 99)), Categories(2), Sphere(), Categories(1)])


def people(n: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(0)
    size = rng.gamma(4, 1, n)
    kind = np.minimum(size, 4).astype(int)
    age = np.where(rng.random(n) < 0.1, np.nan, np.clip(10 * size + rng.normal(0, 5, n), 0, 99).round())
    place = np.column_stack([rng.normal(8, 3, n), rng.normal(47, 1, n)])
    return np.column_stack([size, kind, age, rng.random(n) < 0.3, place, np.zeros(n)])


@pytest.fixture(scope="module")
def release() -> ColumnsMeasure:
    mechanism = ColumnTree(DOMAIN, Privacy(4, "add-remove"))
    return mechanism.release(ArraySource(people(), width=DOMAIN.width), Key.insecure(1), None)


def test_rows_have_the_released_columns(release: ColumnsMeasure) -> None:
    rows = release.sample(seed=1)
    assert rows.shape == (release.total, DOMAIN.width)
    for j, column in enumerate(release.columns):
        cells = column.domain.locate(rows[:, DOMAIN.columns[j]], column.level).view(np.int64)
        have = np.bincount(cells, minlength=1 << column.level)
        assert np.abs(have - release.masses[j]).sum() / 2 < 0.02 * release.total  # 0.06 for independent draws


def test_distances_of_rows_from_the_released_columns(release: ColumnsMeasure) -> None:
    distances = release.distances(release.sample(seed=1))
    assert len(distances) == 6
    assert distances[5] == 0
    assert max(distances[:4]) < 0.02
    far = release.sample(seed=1)
    far[:, 0] = 10.0  # the mean is about 4: everything moves by about 0.6 of the range
    assert release.distances(far)[0] == pytest.approx((10 - release.mean()[0]) / 10, abs=0.03)
    with pytest.raises(ArgumentError, match="empty"):
        release.distances(far[:0])


def test_distances_of_rows_from_the_released_tables(release: ColumnsMeasure) -> None:
    rows = release.sample(seed=1)
    found = release.pair_distances(rows)
    assert [(i, j) for i, j, _ in found] == [(pair.first, pair.second) for pair in release.pairs]
    assert max(distance for *_, distance in found) < 0.05
    mixed = rows.copy()
    i, j, _ = max(release.pair_information(), key=lambda pair: pair[2])
    mixed[:, DOMAIN.columns[j]] = np.roll(rows[:, DOMAIN.columns[j]], 1, axis=0)  # columns stay, the pair is lost
    assert release.distances(mixed) == release.distances(rows)
    assert {(a, b): d for a, b, d in release.pair_distances(mixed)}[i, j] > 0.2
    with pytest.raises(ArgumentError, match="empty"):
        release.pair_distances(rows[:0])


def test_the_bound_along_the_tree_is_above_the_distance() -> None:
    rng, line = np.random.default_rng(0), Box([(0, 1)])
    for level in (1, 3, 6):
        difference = rng.dirichlet(np.ones(1 << level)) - rng.dirichlet(np.ones(1 << level))
        assert tree_distance(line, difference) >= cell_norm(line, level)(difference)


def test_dependence_is_kept(release: ColumnsMeasure) -> None:
    rows, real = release.sample(seed=1), people()
    assert np.corrcoef(rows[:, 0], rows[:, 1])[0, 1] > 0.8 * np.corrcoef(real[:, 0], real[:, 1])[0, 1]
    shuffled = np.random.default_rng(0).permutation(rows[:, 0])
    assert np.corrcoef(shuffled, rows[:, 1])[0, 1] < 0.2


def test_seeds_threads_and_pieces(release: ColumnsMeasure) -> None:
    rows = release.sample(300_000, seed=3, threads=1)
    assert np.array_equal(rows, release.sample(300_000, seed=3, threads=3), equal_nan=True)
    assert not np.array_equal(rows, release.sample(300_000, seed=4), equal_nan=True)
    pieces = list(release.blocks(300_000, seed=3, then=len))
    assert sum(pieces) == 300_000
    assert max(pieces) <= 131_072
    assert release.sample(0).shape == (0, DOMAIN.width)
    assert len(release.sample(1)) == 1


def test_more_rows_than_one_batch(release: ColumnsMeasure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privmeasure.releases.columns.BATCH", 1000)
    for n in (2500, 7500):  # few batches, and so many that each has its thread
        rows = release.sample(n, seed=1, threads=1)
        assert len(rows) == n
        assert not np.array_equal(rows[:833], rows[834:1667], equal_nan=True)
        assert np.array_equal(rows, release.sample(n, seed=1, threads=3), equal_nan=True)


def test_answers(release: ColumnsMeasure) -> None:
    real = people()
    assert release.mean()[0] == pytest.approx(real[:, 0].mean(), abs=0.1)
    assert release.quantile(0.5, column=2) == pytest.approx(np.nanmedian(real[:, 2]), abs=2)
    assert release.error_bar(column=0) == pytest.approx(10 * release.plan.columns[0].guarantee)
    assert len(release.mean()) == DOMAIN.width
    assert release.factor(5) == (4, 1)
    with pytest.raises(ArgumentError, match="column="):
        release.error_bar(lipschitz=1.0)
    for bad in (-1, 7, True, "0"):
        with pytest.raises(ArgumentError, match="column must be from 0 to 6"):
            release.quantile(0.5, column=bad)  # type: ignore[arg-type]
    frame = release.to_frame()
    assert frame.column_names == ["column", "cell", "mass", "low", "high"]
    assert set(frame["column"].to_pylist()) == set(range(DOMAIN.width))


def test_certificates_hold_at_once() -> None:
    domain, data = Product([Box([(0, 10)]), Categories(5), Categories(1)]), people()[:, [0, 1, 6]]
    source = ArraySource(data, width=3)
    release = ColumnTree(domain, Privacy(4, "add-remove")).release(source, Key.insecure(1), None)
    certificates = release.certificate(0.1)
    first, second, constant = certificates
    assert constant is None  # one value
    assert first is not None
    assert second is not None
    assert first.beta == second.beta == pytest.approx(0.05)
    assert certificates["0"] is first
    column = release.columns[0]
    rows = np.repeat(column.domain.centre(column.cells, column.level)[:, 0], column.mass)
    grid = np.linspace(0, 1, 2000, endpoint=False)
    assert np.abs(np.quantile(data[:, 0], grid) - np.quantile(rows, grid)).mean() / 10 <= first.value
    assert "nothing is certified jointly" in str(certificates)
    json.dumps(certificates.to_json())
    for bad in (0.001, 0, True, "x"):
        with pytest.raises(ArgumentError, match="beta"):
            release.certificate(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [{"n": -1}, {"n": 1.5}, {"seed": -1}, {"seed": True}, {"order": "x"}])
def test_bad_arguments(release: ColumnsMeasure, arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(arguments))):
        release.sample(**arguments)


def test_bad_conditions(release: ColumnsMeasure) -> None:
    for bad in ("x = 3", [3], [Condition(9, 0, ())], [Condition(0, 1, ())]):
        with pytest.raises(ArgumentError, match="list of Condition"):
            release.sample(5, where=bad)  # type: ignore[arg-type]


def test_file(release: ColumnsMeasure, tmp_path: Path) -> None:
    path = tmp_path / "people.release"
    release.save(path)
    again = pm.load(path)
    assert isinstance(again, ColumnsMeasure)
    assert again.header() == release.header()
    assert again.plan == release.plan
    assert not again.private
    assert np.array_equal(again.sample(seed=5), release.sample(seed=5), equal_nan=True)
    for mine, yours in zip(again.columns, release.columns, strict=True):
        assert mine.noisy is not None
        assert yours.noisy is not None
        assert all(np.array_equal(mine.noisy[level], yours.noisy[level]) for level in yours.noisy)
    assert "NOT PRIVATE" in repr(again)


def test_facts_in_a_file(release: ColumnsMeasure, tmp_path: Path) -> None:
    from dataclasses import replace

    facts = ((Condition(1, 0, ((0.0, 1.0),)), Condition(3, 0, ((1.0, 1.0),))),)
    replace(release, facts=facts).save(tmp_path / "x")
    again = pm.load(tmp_path / "x")
    assert isinstance(again, ColumnsMeasure)
    assert again.facts == facts
    rows = again.sample(seed=1)
    assert not ((rows[:, 1] <= 1) & (rows[:, 3] == 1)).any()


Edit = Callable[[dict[str, Any]], Any]

EDITS: dict[str, Edit] = {
    "no pairs": lambda h: h["parts"].pop(),
    "another first column": lambda h: h["parts"][-1].update(first=0, second=0),
    "a column that is not there": lambda h: h["parts"][-1].update(first=99),
    "groups of a wrong size": lambda h: h["parts"][-1]["first_groups"].append(0),
    "groups with a gap": lambda h: h["parts"][-1].update(first_groups=[0] * len(h["parts"][-1]["first_groups"])),
    "a huge group": lambda h: h["parts"][-1]["first_groups"].__setitem__(0, 10**9),
    "a group that is no number": lambda h: h["parts"][-1]["first_groups"].__setitem__(0, 0.5),
    "another shape": lambda h: h["parts"][-1].update(shape=[1, 1]),
    "a huge shape": lambda h: h["parts"][-1].update(shape=[1 << 40, 1 << 40]),
    "less noise": lambda h: h["parts"][-1].update(scale=str(Fraction(h["parts"][-1]["scale"]) / 2)),
    "something more in a pair": lambda h: h["parts"][-1].update(extra=1),
    "a part number": lambda h: h["parts"][1].update(part=7),
    "columns in another order": lambda h: h["parts"][0].update(column=1),
    "a column as a text": lambda h: h["parts"][0].update(column="0"),
    "a noisy level": lambda h: h["parts"][1].update(level=1),
    "ranks too short": lambda h: h["ranks"][0]["lengths"].__setitem__(0, 1),
    "ranks of no length": lambda h: h["ranks"][0]["lengths"].__setitem__(0, 0),
    "huge ranks": lambda h: h["ranks"][0].update(groups=[0], lengths=[1 << 60]),
    "a rank below 0": lambda h: h["ranks"][0]["groups"].__setitem__(0, -1),
    "ranks missing": lambda h: h["ranks"].pop(),
    "no ranks": lambda h: h.pop("ranks"),
    "rows of the plan": lambda h: h["plan"].update(rows=h["plan"]["rows"] + 1),
    "columns of the plan": lambda h: h["plan"]["columns"].pop(),
    "another budget": lambda h: h["plan"].update(tree_budget="1/2"),
    "a domain that is no product": lambda h: h.update(domain={"kind": "sphere"}),
    "another domain": lambda h: h["domain"]["factors"].reverse(),
    "private": lambda h: h.update(private="yes"),
    "a recipe": lambda h: h.update(recipe=[]),
    "a fact": lambda h: h.update(facts=[[1, 2]]),
    "a fact of one condition": lambda h: h.update(facts=[[{}]]),
    "a fact about no column": lambda h: h.update(
        facts=[[{"column": 99, "coordinate": 0, "intervals": [], "missing": True}] * 2]
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_damaged_headers_are_refused(release: ColumnsMeasure, tmp_path: Path, name: str) -> None:
    header = json.loads(json.dumps(copy.deepcopy(release.header())))
    EDITS[name](header)
    assert header != release.header()
    files.write_release(tmp_path / "x", header, release.columns_of_file())
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "x")


@pytest.fixture(scope="module")
def agreeing() -> ColumnsMeasure:
    privacy, tuning = (
        Privacy(4, "add-remove"),
        replace(TUNED, most_extra=0.0, agreement_share=0.1, agreement_rows=1e-6),
    )
    mechanism = ColumnTree(DOMAIN, privacy, tuning=tuning)
    return mechanism.release(ArraySource(people(), width=DOMAIN.width), Key.insecure(1), None)


def test_agreements_in_a_file(agreeing: ColumnsMeasure, tmp_path: Path) -> None:
    agreeing.save(tmp_path / "x")
    again = pm.load(tmp_path / "x")
    assert isinstance(again, ColumnsMeasure)
    assert again.plan.agreement_pairs == 10  # of five columns; the sixth has a single value
    assert again.agreements is not None
    assert agreeing.agreements is not None
    assert again.agreements.names == agreeing.agreements.names
    assert np.array_equal(again.agreements.noisy, agreeing.agreements.noisy)
    assert np.array_equal(again.sample(seed=5), agreeing.sample(seed=5), equal_nan=True)
    assert "agreements: 10" in str(again.plan)


AGREEMENT_EDITS: dict[str, Edit] = {
    "none": lambda h: h["parts"].remove(_agreements(h)),
    "another kind": lambda h: _agreements(h).update(kind="pair"),
    "something more": lambda h: _agreements(h).update(extra=1),
    "a column without halves": lambda h: _agreements(h)["halves"].pop(),
    "three halves": lambda h: _agreements(h)["halves"][0].update(groups=[0, 1, 2], lengths=[1, 1, 1]),
    "halves of no cell": lambda h: _agreements(h)["halves"][0]["lengths"].__setitem__(0, 10**6),
    "not in the plan": lambda h: h["plan"].update(agreement_pairs=0, agreements_budget="0"),
    "more than epsilon": lambda h: h["plan"].update(agreements_budget="4"),
}


def _agreements(header: dict[str, Any]) -> dict[str, Any]:
    return next(part for part in header["parts"] if part["kind"] == "agreements")


@pytest.mark.parametrize("name", AGREEMENT_EDITS)
def test_damaged_agreements_are_refused(agreeing: ColumnsMeasure, tmp_path: Path, name: str) -> None:
    header = json.loads(json.dumps(copy.deepcopy(agreeing.header())))
    AGREEMENT_EDITS[name](header)
    files.write_release(tmp_path / "x", header, agreeing.columns_of_file())
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "x")


def test_pairs_that_the_plan_does_not_have_are_refused(release: ColumnsMeasure) -> None:
    parts = pair_parts(release.pairs)
    assert read_pairs(release.plan, release.ranks, parts)[-1].scale == release.pairs[-1].scale
    fewer = replace(release.plan, extra_pairs=0, extra_budget=Fraction(0))
    for plan, given in ((fewer, parts), (release.plan, parts[:-1]), (release.plan, parts[::-1])):
        with pytest.raises(ReleaseFileError, match="those of the plan"):
            read_pairs(plan, release.ranks, given)


@pytest.mark.parametrize("row", [0, 40, -1])
@pytest.mark.parametrize(("column", "change"), [(0, 1), (1, 1), (1, 1 << 40), (2, 1 << 61)])
def test_damaged_rows_are_refused(release: ColumnsMeasure, tmp_path: Path, row: int, column: int, change: int) -> None:
    table = [part.copy() for part in release.columns_of_file()]
    with np.errstate(over="ignore"):
        table[column][row] += np.array(change).astype(table[column].dtype)
        table[column][row] *= 3 if column == 2 else 1
    files.write_release(tmp_path / "x", release.header(), tuple(table))  # type: ignore[arg-type]
    if column == 2 and row == -1:
        table[column][row] = 1 << 62
        files.write_release(tmp_path / "x", release.header(), tuple(table))  # type: ignore[arg-type]
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "x")


def test_a_file_that_lists_too_much(release: ColumnsMeasure, tmp_path: Path) -> None:
    part, cell, mass = release.columns_of_file()
    longer = tuple(np.concatenate([side, np.repeat(side[-1:], 500_000)]) for side in (part, cell, mass))
    files.write_release(tmp_path / "x", release.header(), longer)  # type: ignore[arg-type]
    with pytest.raises(ReleaseFileError, match="allows"):
        pm.load(tmp_path / "x")


@pytest.mark.parametrize(
    ("domain", "points"),
    [
        (Product([Integers(0, 9)]), np.zeros((50, 1))),
        (Product([Integers(0, 9), Categories(3)]), np.zeros((1, 2))),
        (Product([Categories(1), Categories(1)]), np.zeros((20, 2))),
        (Product([Nullable(Box([(0, 1)])), Categories(2), Categories(2)]), np.full((100, 3), np.nan)),
        (Product([Categories(4)] * 3), np.repeat(np.arange(400) % 3, 3).reshape(-1, 3)),
    ],
    ids=["one column", "one row", "constant", "all missing", "equal columns"],
)
def test_odd_tables(domain: Product, points: np.ndarray, tmp_path: Path) -> None:
    source = ArraySource(points.astype(np.float64), width=domain.width)
    release = ColumnTree(domain, Privacy(1, "replace")).release(source, Key.insecure(3), None)
    rows = release.sample(seed=0)
    assert rows.shape == (len(points), domain.width)
    release.save(tmp_path / "x")
    again = pm.load(tmp_path / "x")
    assert np.array_equal(again.sample(seed=0), rows, equal_nan=True)


OTHER_KERNELS = {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"}
"""What a matrix product is computed with on an old processor: sums in another order."""
DIGEST = """
import hashlib, sys
import privmeasure as pm
print(hashlib.sha256(pm.load(sys.argv[1]).sample(20_000, seed=3).tobytes()).hexdigest())
"""


def test_a_seed_gives_the_same_rows_with_the_kernels_of_another_processor(tmp_path: Path) -> None:
    """Models are fitted in floats when a file is loaded. Their last digits differ, what is drawn with them does not."""
    rng, path = np.random.default_rng(3), tmp_path / "codes.privmeasure"
    code = np.minimum(rng.geometric(0.02, 20_000) - 1, 199)
    rows = np.column_stack(
        [code, code // 10 % 20, code * 7 % 12, np.clip(rng.normal(code / 20, 1), 0, 10), rng.random(20_000) * 10]
    )
    domain = Product([Categories(200), Categories(20), Categories(12), Box([(0, 10)]), Box([(0, 10)])])
    made = ColumnTree(domain, Privacy(8, "add-remove")).release(ArraySource(rows, width=5), Key.insecure(4), None)
    assert made.plan.extra_pairs
    assert made.plan.shape_budget
    made.save(path)
    here, there = (
        subprocess.run(
            [sys.executable, "-c", DIGEST, str(path)], env=os.environ | env, capture_output=True, text=True, check=True
        ).stdout.split()
        for env in ({}, OTHER_KERNELS)
    )
    assert here == there

"""Release files of every format still load, and still give the same rows for a seed.

The files were written once, with a seed for the noise, by `python tests/golden/test_golden.py`, and are not written
again: a format that changes gets a new number and a new file beside the old one. The files "box" and "product" have
the masses alone; "noisy" has the noisy counts as well, as further parts; "recorded" says that a ledger recorded it.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.domains import Categories, Integers, Product
from privmeasure.releases.base import with_record
from privmeasure.report.public import release_page

HERE = Path(__file__).parent
NAMES = ["box", "product", "noisy", "recorded"]


def path_of(name):
    return HERE / f"format-1-{name}.parquet"


def make(name):
    """Write a golden file: simulated points, a depth that is given, noise from a seed."""
    rng = np.random.default_rng(20)
    if name == "box":
        domain, points = pm.Box([(0, 1), (-10, 10)]), rng.normal((0.5, 2), (0.1, 3), (500, 2))
        synthesizer = pm.Synthesizer(domain, epsilon=1, neighbours="add-remove", depth=8)
    elif name == "recorded":  # a ledger takes no seeds: this one is said to be recorded
        synthesizer = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace", depth=3)
        release = synthesizer.fit(rng.random((90, 1)), insecure_seed=20).release_
        return with_record(release, True).save(path_of(name))
    elif name == "noisy":
        points = rng.normal((0.5, 2), (0.1, 3), (500, 2))
        synthesizer = pm.Synthesizer(pm.Box([(0, 1), (-10, 10)]), epsilon=2, neighbours="replace", depth=6)
    else:
        domain = Product([Integers(0, 120), Categories(["red", "green", "blue"])])
        points = np.column_stack([rng.integers(0, 121, 300), rng.integers(0, 3, 300)]).astype(float)
        recipe = pm.Recipe("every level", "none", "proportional", "centre")
        synthesizer = pm.Synthesizer(domain, epsilon="5/2", neighbours="replace", recipe=recipe, depth=5)
    return synthesizer.fit(points, insecure_seed=20).save(path_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_it_loads(name):
    measure = pm.load(path_of(name))
    assert not measure.private
    assert measure.total == measure.plan.rows == TOTAL[name]
    assert measure.plan.spent <= measure.plan.privacy.epsilon == EPSILON[name]
    assert (measure.cells[:4].tolist(), measure.mass[:4].tolist()) == CELLS[name]
    assert path_of(name).stat().st_size < 20_000


@pytest.mark.parametrize("name", NAMES)
def test_it_gives_the_same_rows(name):
    measure = pm.load(path_of(name))
    assert measure.sample(seed=7, order="cell")[:3].tolist() == ROWS[name]
    shuffled = measure.domain.locate(measure.sample(seed=7), measure.level)
    assert np.sort(shuffled).tolist() == np.repeat(measure.cells, measure.mass).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_written_as_it_was_read(name, tmp_path):
    measure = pm.load(path_of(name))
    measure.save(tmp_path / "again.parquet")
    again = pm.load(tmp_path / "again.parquet")
    assert again.header() == measure.header()
    assert again.cells.tolist() == measure.cells.tolist()
    assert again.mass.tolist() == measure.mass.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_of_an_older_file_it_is_not_known_whether_a_ledger_recorded_it(name):
    """The field did not raise the number of the format: an older version reads the file without it."""
    measure = pm.load(path_of(name))
    words = "recorded in a ledger" if name == "recorded" else "not known whether it was recorded in a ledger"
    assert measure.header()["format"] == 1
    assert measure.header().get("recorded") is (True if name == "recorded" else None)
    assert str(measure.plan).splitlines()[-1] == f"ledger     {words}"
    assert f">{words}<" in release_page(measure)


@pytest.mark.parametrize("name", ["box", "product"])
def test_the_first_files_have_no_noisy_counts(name):
    measure = pm.load(path_of(name))
    assert measure.noisy is None
    with pytest.raises(pm.PrivmeasureError, match="older version"):
        measure.certificate()


def test_noisy_counts_come_back_and_give_the_same_certificate():
    measure = pm.load(path_of("noisy"))
    assert {level: counts[:4].tolist() for level, counts in measure.noisy.items()} == NOISY
    assert measure.certificate().value == pytest.approx(CERTIFICATE, rel=1e-3)


EPSILON = {"box": Fraction(1), "product": Fraction(5, 2), "noisy": Fraction(2), "recorded": Fraction(1)}
TOTAL = {"box": 511, "product": 300, "noisy": 500, "recorded": 90}
CELLS = {
    "box": ([0, 44, 45, 47], [1, 2, 1, 5]),
    "product": ([0, 1, 2, 3], [18, 20, 13, 15]),
    "noisy": ([2, 7, 8, 9], [3, 1, 1, 5]),
    "recorded": ([0, 1, 2, 3], [15, 9, 14, 12]),
}
NOISY = {2: [85, 185, 70, 173], 6: [0, -3, 3, -1]}
CERTIFICATE = 0.13911
ROWS = {
    "box": [
        [0.023087671281246003, -9.018227199703688],
        [0.39747950506716734, -7.493416673241882],
        [0.40477931910572806, -6.86230162580614],
    ],
    "product": [[7.0, 0.0], [7.0, 0.0], [7.0, 0.0]],
    "noisy": [
        [0.171175342562492, -9.297521604166832],
        [0.16995901013433468, -8.851876480912324],
        [0.18455863821145613, -8.877548500022385],
    ],
    "recorded": [[0.046175342562492006], [0.044959010134334676], [0.05955863821145613]],
}

if __name__ == "__main__":
    for missing in NAMES:
        if not path_of(missing).exists():
            make(missing)

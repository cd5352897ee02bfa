"""Makes examples/people/people.csv: 5,000 simulated people, for docs/cli.md. No real person is in it.

It has what tables of people have: missing cells, an income with a heavy tail, a name. It gives the same file again.
"""

import csv
from pathlib import Path

import numpy as np

ROWS = 5_000


def main() -> None:
    rng = np.random.default_rng(0)
    age = np.clip(np.rint(rng.gamma(6, 7.5, ROWS) + 8), 17, 90).astype(int)
    woman = rng.random(ROWS) < 0.51
    income = np.rint(np.exp(rng.normal(9.6, 0.6, ROWS)) * np.where(age < 25, 0.4, 1) * np.where(woman, 0.85, 1))
    income[rng.random(ROWS) < 0.12] = 0
    unknown = {"age": rng.random(ROWS) < 0.02, "sex": rng.random(ROWS) < 0.01, "income": rng.random(ROWS) < 0.09}
    with (Path(__file__).parent / "people" / "people.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["age", "sex", "income", "name"])
        for i in range(ROWS):
            row = {"age": age[i], "sex": "F" if woman[i] else "M", "income": int(income[i])}
            writer.writerow([*("" if unknown[name][i] else cell for name, cell in row.items()), f"Person {i + 1:04}"])


if __name__ == "__main__":
    main()

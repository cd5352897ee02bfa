"""Columns that are made of others: simulated tables, as they are and as one who knows them would declare them.

    places   3,400 places in 52 states: how far a synthetic one is from the middle of its state, in degrees
    loans    30,000 loans, whose rate follows from amount, term and instalment: R2 of boosting that predicts it on
             fresh rows from these three
    codes    30,000 stays with one of 400 diagnoses, each of a chapter
    shop     80,000 sales of one of 1,000 articles, each with a price, of a category, of a department
    factors  six tables of 3,000 to 20,000 rows and 8 to 20 columns that a few factors decide, three of which say most
             of a last one with two values: AUC of models that predict it on fresh rows, with and without a target

Codes, shop and places are also released without finer tables (docs/mathematics.md): total variation of pairs, with
them over without. Means of five releases, of finer tables and of factors three; noise comes from seeds, so that the
numbers can be made again, and the tables hold nobody. Pure epsilon, and a tree for each column, as wider tables have.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import privmeasure as pm
from privmeasure.plans import column_schedule
from record import begin, save, table
from rivals import downstream, measure
from wide import schema_of
from wide_tables import category, integer, number

EPSILONS = (1, 4)
INSTALMENT = "round(amount * rate / 1200 / (1 - power(1 + rate / 1200, -term)), 2)"
Rows = tuple[pa.Table, measure.Bounds]
Floats = NDArray[np.float64]


def texts(codes: NDArray[Any]) -> list[str]:
    return [str(code) for code in codes.tolist()]


def names(count: int) -> tuple[Any, ...]:
    return category("|".join(map(str, range(count))))


def by_rank(rng: np.random.Generator, values: int, rows: int, power: float) -> NDArray[np.int64]:
    """Return draws of a list of values, the r-th most frequent of which has mass r^-power."""
    weights = rng.permutation(np.arange(1, values + 1) ** -power)
    return rng.choice(values, rows, p=weights / weights.sum())


def places() -> Rows:
    rng, rows = np.random.default_rng(12), 3_400
    lat, lon = rng.uniform(26, 48, 52), rng.uniform(-122, -70, 52)
    state = by_rank(rng, 52, rows, 0.5)
    return pa.table(
        {
            "state": texts(state),
            "lat": np.clip(rng.normal(lat[state], 1.2), 10, 72),
            "lon": np.clip(rng.normal(lon[state], 1.6), -180, -60),
        }
    ), {"state": names(52), "lat": number(10, 72), "lon": number(-180, -60)}


def codes() -> Rows:
    rng, rows = np.random.default_rng(11), 30_000
    chapters, wards = rng.integers(0, 20, 400), rng.integers(0, 25, 20)
    costs, ages = rng.normal(6, 1, 400), rng.uniform(20, 75, 20)
    diagnosis = by_rank(rng, 400, rows, 0.9)
    chapter = chapters[diagnosis]
    return pa.table(
        {
            "diagnosis": texts(diagnosis),
            "chapter": texts(chapter),
            "ward": texts(np.where(rng.random(rows) < 0.85, wards[chapter], rng.integers(0, 25, rows))),
            "age": np.clip(np.rint(rng.normal(ages[chapter], 12)), 0, 100).astype(int),
            "cost": np.clip(np.exp(rng.normal(costs[diagnosis], 0.25)), 0, 20_000),
            "sex": texts((rng.random(rows) < 0.3 + 0.4 * (chapter % 2)).astype(int)),
        }
    ), {
        "diagnosis": names(400),
        "chapter": names(20),
        "ward": names(25),
        "age": integer(0, 100),
        "cost": number(0, 20_000),
        "sex": names(2),
    }


def shop() -> Rows:
    rng, rows = np.random.default_rng(13), 80_000
    categories, departments = rng.integers(0, 40, 1000), rng.integers(0, 8, 40)
    suppliers, prices = rng.integers(0, 60, (40, 3)), np.exp(rng.normal(2.5, 0.8, 1000))
    article = by_rank(rng, 1000, rows, 0.9)
    kind = categories[article]
    return pa.table(
        {
            "article": texts(article),
            "category": texts(kind),
            "department": texts(departments[kind]),
            "supplier": texts(suppliers[kind, rng.integers(0, 3, rows)]),
            "price": np.clip(prices[article] * rng.normal(1, 0.05, rows), 0, 200),
            "quantity": np.clip(rng.poisson(2, rows) + 1, 1, 20),
        }
    ), {
        "article": names(1000),
        "category": names(40),
        "department": names(8),
        "supplier": names(60),
        "price": number(0, 200),
        "quantity": integer(1, 20),
    }


def loans(rows: int = 30_000, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    grade = rng.choice(7, rows, p=[0.18, 0.29, 0.27, 0.15, 0.07, 0.03, 0.01])
    income = rng.normal(11.1, 0.5, rows)
    amount = np.clip(np.rint(np.exp(rng.normal(9.2, 0.65, rows) + (income - 11.1) / 4) / 25) * 25, 1_000, 40_000)
    long = rng.random(rows) < 1 / (1 + np.exp(1.9 - 0.3 * grade - amount / 20_000))
    term = np.where(long, 60, 36)
    rate = np.clip(np.round(6.5 + 3.3 * grade + long + rng.normal(0, 0.9, rows), 2), 5, 31)
    return pa.table(
        {
            "amount": amount,
            "term": term,
            "rate": rate,
            "instalment": np.round(amount * rate / 1200 / (1 - (1 + rate / 1200) ** -term.astype(float)), 2),
            "grade": texts(grade),
            "income": np.clip(np.exp(income), 10_000, 300_000),
            "home": texts(rng.choice(3, rows, p=[0.5, 0.4, 0.1])),
            "purpose": texts(rng.choice(10, rows, p=[0.55, 0.2, *[0.25 / 8] * 8])),
        }
    )


def factors(seed: int) -> Rows:
    """Return a table of numbers, whole numbers and lists that hidden factors decide, and `y`, which follows three."""
    rng = np.random.default_rng(1_000 + seed)
    rows, width = int(np.exp(rng.uniform(np.log(3_000), np.log(20_000)))), int(rng.integers(8, 21))
    hidden = rng.normal(size=(rows, int(rng.integers(2, 5))))
    columns: dict[str, Any] = {}
    bounds: measure.Bounds = {}
    shown = list[Floats]()
    for j in range(width - 1):
        weights = rng.normal(size=hidden.shape[1]) * (rng.random(hidden.shape[1]) < 0.5)
        x = hidden @ weights + rng.normal(size=rows) * np.exp(rng.uniform(-1, 0.7))
        x = (x - x.mean()) / x.std()
        shown.append(x)
        kind, name = rng.choice(["number", "heavy", "integer", "list", "list", "flag"]), f"c{j}"
        if kind in ("number", "heavy"):
            columns[name] = x if kind == "number" else np.exp(x / 2)
            low, high = float(columns[name].min()), float(columns[name].max())
            bounds[name] = number(low - 0.05 * (high - low), high + 0.2 * (high - low))
        elif kind == "integer":
            most = int(rng.integers(5, 80))
            columns[name] = np.clip(np.rint(x * most / 6 + most / 2), 0, most).astype(int)
            bounds[name] = integer(0, most)
        else:
            values = 2 if kind == "flag" else int(rng.choice([3, 4, 5, 8, 12, 25]))
            cut = np.searchsorted(np.quantile(x, np.sort(rng.random(values - 1))), x)
            columns[name], bounds[name] = texts(rng.permutation(values)[cut]), names(values)
    causes = zip(rng.choice(width - 1, 3, replace=False), (1.5, 1.0, 0.6), strict=True)
    logit = sum(rng.choice([-1, 1]) * size * shown[cause] for cause, size in causes) + rng.uniform(-1.5, 1)
    columns["y"], bounds["y"] = texts((rng.random(rows) < 1 / (1 + np.exp(-logit))).astype(int)), names(2)
    return pa.table(columns), bounds


LOANS: measure.Bounds = {
    "amount": number(1_000, 40_000),
    "term": ("category", [36, 60], False),
    "rate": number(5, 31),
    "instalment": number(25, 1_700),
}


def loan_schema(**changed: Any) -> pm.Schema:
    """Return the declaration of loans; what is changed takes the place of a column."""
    columns: dict[str, Any] = {
        "amount": pm.Number(1_000, 40_000, decimals=0),
        "term": pm.Category([36, 60]),
        "rate": pm.Number(5, 31, decimals=2),
        "instalment": pm.Number(25, 1_700, decimals=2),
        "grade": pm.Category(list("0123456")),
        "income": pm.Number(10_000, 300_000),
        "home": pm.Category(list("012")),
        "purpose": pm.Category(list("0123456789")),
    }
    return pm.Schema(columns | changed)


def place_schemas() -> dict[str, pm.Schema]:
    state, lat, lon = pm.Category(texts(np.arange(52))), pm.Number(10, 72), pm.Number(-180, -60)
    numbers: dict[str, Any] = {"state": state, "lat": lat, "lon": lon}
    return {
        "two numbers": pm.Schema(numbers),
        "a place": pm.Schema({"state": state, "home": pm.Place("lat", "lon", low=(10, -180), high=(72, -60))}),
        "numbers in a group": pm.Schema(numbers, groups=[("state", "lat", "lon")]),
    }


def released(schema: pm.Schema, real: pa.Table, epsilon: float, seed: int) -> pa.Table:
    synth = pm.Synthesizer(schema, epsilon=epsilon, neighbours="add-remove", mechanism="columns")
    return synth.fit(real, insecure_seed=seed).sample(seed=seed)


def from_the_middle(real: pa.Table) -> Callable[[pa.Table], float]:
    """Return what tells how far rows are from the middles of their states in the real table, in degrees."""
    lat, lon, state = (real[name].to_numpy() for name in ("lat", "lon", "state"))
    middle = {s: (lat[state == s].mean(), lon[state == s].mean()) for s in set(state.tolist())}

    def distance(rows: pa.Table) -> float:
        middles = np.array([middle[s] for s in rows["state"].to_pylist()])
        return float(np.hypot(*(np.column_stack([rows["lat"], rows["lon"]]) - middles).T).mean())

    return distance


def explained(rows: pa.Table) -> float:
    """Return R2 of boosting that is trained on rows and predicts the rate of fresh loans."""
    train, test = (measure.coded(each, LOANS) for each in (rows, loans(8_000, 9)))
    return downstream.scores(train, test, LOANS, "rate")["boosting"]


def declared(
    what: str, real: pa.Table, schemas: Mapping[str, pm.Schema], score: Callable[[pa.Table], float]
) -> list[dict[str, Any]]:
    """Return what releases of a table score, by declaration and epsilon."""
    rows = [{"table": what, "declared": "real rows", "epsilon": "", "score": score(real)}]
    for name, schema in schemas.items():
        for epsilon in EPSILONS:
            found = [score(released(schema, real, epsilon, seed)) for seed in range(5)]
            rows.append({"table": what, "declared": name, "epsilon": epsilon, "score": float(np.mean(found))})
    print(f"{what} done", file=sys.stderr, flush=True)
    return rows


def finer(make: Callable[[], Rows]) -> list[dict[str, Any]]:
    """Return total variation of pairs with finer tables over that without, by epsilon."""
    (real, bounds), rows = make(), []
    truth = measure.cells(measure.coded(real, bounds), bounds)

    def pairs(epsilon: float) -> float:
        drawn = (released(schema_of(bounds), real, epsilon, seed) for seed in range(3))
        cells = (measure.cells(measure.coded(each, bounds), bounds) for each in drawn)
        return float(np.mean([measure.variations(truth, each, bounds)[1] for each in cells]))

    for epsilon in EPSILONS:
        found = pairs(epsilon)
        with mock.patch.object(column_schedule, "LONG_LIST", sys.maxsize):  # no list is long enough for them
            without = pairs(epsilon)
        rows.append(
            {"table": make.__name__, "epsilon": epsilon, "finer": found, "usual": without, "ratio": found / without}
        )
    print(f"finer tables of {make.__name__} done", file=sys.stderr, flush=True)
    return rows


def aimed() -> list[dict[str, Any]]:
    """Return the AUC of models on fresh rows, mean over six tables, where their column is declared and where not."""
    found: dict[tuple[Any, Any], list[list[float]]] = {}
    for each in range(6):
        whole, bounds = factors(each)
        fifth = whole.num_rows // 5  # rows are drawn alike: any of them will do
        seen, fresh = whole.slice(fifth), measure.coded(whole.slice(0, fifth), bounds)

        def learnt(rows: pa.Table, fresh: Any = fresh, bounds: measure.Bounds = bounds) -> list[float]:
            scores = downstream.scores(measure.coded(rows, bounds), fresh, bounds, "y")
            return [scores[method] for method in downstream.METHODS]

        found.setdefault(("real rows", ""), []).append(learnt(seen))
        for target, schema in ((False, schema_of(bounds)), (True, schema_of(bounds).aiming_at("y"))):
            for epsilon in (0.1, *EPSILONS):
                key = ("target" if target else "no target"), epsilon
                found.setdefault(key, []).extend(learnt(released(schema, seen, epsilon, seed)) for seed in range(3))
        print(f"table {each} of factors done", file=sys.stderr, flush=True)
    return [
        {"rows": rows, "epsilon": epsilon, **dict(zip(downstream.METHODS, np.mean(own, axis=0).tolist(), strict=True))}
        for (rows, epsilon), own in found.items()
    ]


def main() -> None:
    begin()
    real = places()[0]
    ways = declared("places", real, place_schemas(), from_the_middle(real))
    follows = {"as it is": loan_schema(), "instalment derived": loan_schema(instalment=pm.Derived(INSTALMENT))}
    ways += declared("loans", loans(), follows, explained)
    ratios = [row for make in (codes, places, shop) for row in finer(make)]
    learnt = aimed()
    save("simulated", declared=ways, finer=ratios, aimed=learnt)
    print(table(ways))
    print(table(ratios))
    print(table(learnt))


if __name__ == "__main__":
    main()

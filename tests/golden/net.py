"""What many configurations release, as a net under every rewrite: bins, masses, tables of pairs, rows and plans.

Stored are released values alone, and the numbers of plans: no wording, no class names, versions, file bytes or error
texts, so that a rewrite that keeps the releases keeps the net. `make golden` writes it again, for a change of releases
that is meant, in a commit that does nothing else and says why.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import privmeasure as pm
from privmeasure import PMM, PSMM, Box, Privacy, Recipe
from privmeasure.domains import Categories, Integers, Product
from privmeasure.mechanisms import ColumnTree
from privmeasure.noise.entropy import Key
from privmeasure.sources.arrays import ArraySource

NET = Path(__file__).with_name("net.json")
ROWS = 200
"""Rows that are sampled from each release."""
NOT_NUMBERS = ("memory_bytes", "about", "name", "mechanism")
"""Fields of a plan that say how it is worked out and worded, not what is planned."""
DIGITS = 9


@dataclass(frozen=True)
class Configuration:
    """A mechanism, or a table with its schema, that is released with a seed."""

    name: str
    release: Callable[[], Any]
    plans: Callable[[], list[Any]]
    """The plans for other numbers of rows."""


# ------------------------------------------------------------------------------------------------- trees and columns

LINE, SQUARE, CUBE = Box([(0, 1)]), Box([(0, 1), (0, 2)]), Box([(0, 1)] * 3)
DOMAINS = {
    "line": LINE,
    "square": SQUARE,
    "cube": CUBE,
    "strip": Box([(0, 1), (0, 1)], weights=[1, 5]),
    "ages": Integers(0, 120),
    "categories": Categories(11),
    "product": Product([Integers(0, 4), LINE, Categories(3)]),
}
WIDE = Product([LINE, Categories(5), Integers(0, 30), Categories(40), Box([(0, 9)])])
LISTS = Product([Categories(300), Categories(200), Integers(0, 30), Box([(0, 1), (0, 1)])])
CONSTANT = Product([Categories(1), Categories(1)])
SMALL = Fraction(1, 10)


def at(domain: Any, depth: int) -> int:
    return min(depth, domain.deepest)


def trees(relation: Any, domain: Any) -> Iterator[tuple[str, Any, int]]:
    """Yield the mechanisms of one tree on a domain, with the number of rows of their data."""
    one, two = Privacy(1, relation), Privacy(2, relation)
    groups = Recipe(schedule="sparse", shrinkage="groups")
    yield "default", PMM(domain, one), 3000
    yield "not shrunk", PMM(domain, one, Recipe(shrinkage="none")), 3000
    yield "paper", PMM.paper(domain, one), 3000
    yield "paper, proportional", PMM.paper(domain, one, rule="proportional"), 3000
    yield "depth 6", PMM(domain, two, depth=at(domain, 6)), 3000
    yield "rows given", PMM(domain, two, rows=3000), 3000
    yield "lazy", PMM(domain, two, depth=at(domain, 14), max_cells=64), 500
    yield "lazy, groups", PMM(domain, two, groups, depth=at(domain, 14), max_cells=64), 500
    yield "centres", PMM(domain, one, Recipe(placement="centre")), 3000
    yield "flat", PSMM(domain, one), 800
    yield "flat, depth 3, centres", PSMM(domain, one, depth=3, placement="centre"), 800
    yield "flat, rows given", PSMM(domain, one, rows=800), 800
    yield "flat, delta", PSMM(domain, Privacy(1, relation, delta=1e-6)), 800
    yield "delta", PMM(domain, Privacy(Fraction(1, 2), relation, delta=1e-4, rows_per_person=16)), 3000
    with_delta = Privacy(1, relation, delta=1e-4, rows_per_person=8)
    yield "delta, depth 9", PMM(domain, with_delta, groups, depth=at(domain, 9)), 3000
    yield "sparse, groups, depth 7", PMM(domain, one, groups, depth=at(domain, 7)), 3000
    every = Recipe(schedule="every level", shrinkage="groups")
    yield "every level, groups, depth 5", PMM(domain, one, every, depth=at(domain, 5)), 3000
    yield "sparse, no inference", PMM(domain, one, Recipe("sparse", "none", "signed", shrinkage="none")), 3000
    yield "ladder, not shrunk", PMM(domain, one, Recipe("ladder", shrinkage="none")), 3000
    yield "two rows", PMM(domain, Privacy(SMALL, relation)), 2
    yield "tiny epsilon", PMM(domain, Privacy(Fraction(1, 50000), relation)), 50


def columns(relation: Any) -> Iterator[tuple[str, Any, int]]:
    """Yield the mechanisms of columns, and those of one tree that are planned for another number of rows."""
    one = Privacy(1, relation)
    yield "columns, other rows", ColumnTree(WIDE, one, rows=777), 2000
    yield "default, other rows", PMM(SQUARE, one, rows=777), 2000
    yield "flat, other rows", PSMM(SQUARE, one, rows=777), 2000
    yield "two columns", ColumnTree(Product([Categories(5), Integers(0, 30)]), one), 2000
    yield "constant columns", ColumnTree(CONSTANT, one), 200
    yield "constant columns, rows given", ColumnTree(CONSTANT, one, rows=77), 200
    yield "one column", ColumnTree(Product([Integers(0, 30)]), one, rows=77), 200
    yield "long lists", ColumnTree(LISTS, Privacy(4, relation)), 20_000
    for delta in (0, 1e-5):
        privacy = Privacy(1, relation, delta=delta)
        yield f"columns, delta {delta}", ColumnTree(WIDE, privacy), 2000
        yield f"columns, delta {delta}, rows given", ColumnTree(WIDE, privacy, rows=2000), 2000
        yield f"columns, delta {delta}, target", ColumnTree(WIDE, privacy, targets=(1,)), 2000


def mechanisms() -> Iterator[tuple[str, Any, int]]:
    """Yield every mechanism with its name and the number of rows of its data."""
    for relation in ("add-remove", "replace"):
        for name, domain in DOMAINS.items():
            yield from ((f"{relation}: {name}: {what}", made, rows) for what, made, rows in trees(relation, domain))
        for name in ("line", "ages"):
            domain, recipe = DOMAINS[name], Recipe(rule="isotonic")
            yield f"{relation}: {name}: isotonic", PMM(domain, Privacy(1, relation), recipe), 3000
            yield f"{relation}: {name}: isotonic, depth 5", PMM(domain, Privacy(1, relation), recipe, depth=5), 3000
        yield from ((f"{relation}: {what}", made, rows) for what, made, rows in columns(relation))


def points(domain: Any, rows: int) -> Any:
    low, high = domain.extent(np.zeros(1, np.uint64), 0)
    return low + (high - low) * np.random.default_rng(0).beta(2, 5, (rows, domain.width))


# ------------------------------------------------------------------------------------------------------------ tables


def people(rows: int = 900) -> pa.Table:
    """Return a table with every kind of column: what is missing, odd or out of bounds included."""
    rng = np.random.default_rng(11)
    age = rng.integers(18, 95, rows)
    came = [date(2023, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 365, rows)]
    stay = rng.geometric(0.2, rows)
    seen = [datetime(2023, 1, 1) + timedelta(minutes=int(m)) for m in rng.integers(0, 500_000, rows)]
    return pa.table(
        {
            "id": [f"person {i // 2}" for i in range(rows)],
            "age": pa.array(age, mask=rng.random(rows) < 0.05),
            "income": np.where(rng.random(rows) < 0.3, 0.0, np.exp(rng.normal(9, 1, rows))).round(2),
            "hours": rng.choice([0.0, 20.0, 40.0], rows) + rng.random(rows),
            "work": rng.choice(["none", "part", "full", "other"], rows),
            "grade": rng.choice(["low", "middle", "high"], rows),
            "sex": rng.choice(["F", "M"], rows),
            "smoker": rng.random(rows) < 0.2,
            "came": came,
            "left": [day + timedelta(days=int(d)) for day, d in zip(came, stay, strict=True)],
            "seen": seen,
            "slept": [time(int(h), int(m)) for h, m in rng.integers(0, [24, 60], (rows, 2))],
            "lat": rng.normal(47, 1, rows).round(4),
            "lon": rng.normal(8, 1, rows).round(4),
            "land": ["CH"] * rows,
        }
    )


def table_of(space: pm.Schema) -> pa.Table:
    """Return the columns that a schema reads."""
    table, places = people(), [kind for kind in space.columns.values() if isinstance(kind, pm.Place)]
    read = {*space.columns}.union(*({place.latitude, place.longitude} for place in places))
    return table.select([name for name in table.column_names if name in read])


KINDS: dict[str, Any] = {
    "age": pm.Integer(0, 110, nullable=True),
    "income": pm.Number(0, 200_000, decimals=2),
    "hours": pm.Number(0, 60),
    "work": pm.Category(["none", "part", "full", "other"], unknown="other"),
    "grade": pm.Category(["low", "middle", "high"], ordered=True),
    "sex": pm.Category(["F", "M"]),
    "smoker": pm.Boolean(),
    "came": pm.Date("2023-01-01", "2023-12-31"),
    "left": pm.Date("2023-01-01", "2024-03-31"),
    "seen": pm.Datetime("2023-01-01", "2023-12-31", resolution="1min"),
    "slept": pm.Time(resolution="1min"),
    "land": pm.Constant("CH"),
}


def schema(names: str, changed: dict[str, Any] | None = None, **rules: Any) -> pm.Schema:
    """Return the schema of some columns; all others are dropped."""
    kinds = KINDS | (changed or {})
    wanted = names.split()
    chosen = {name: kinds[name] for name in wanted}
    ids = {"id": pm.Drop()} if "person" in rules else {}
    return pm.Schema(ids | chosen, **rules)


EVERYTHING = " ".join(KINDS)
CURVED = {
    "income": pm.Number(0, 200_000, decimals=0, breaks=[1, 10_000]),
    "hours": pm.Number(0.1, 100, transform="log"),
}
SCHEMAS: dict[str, tuple[pm.Schema, dict[str, Any]]] = {
    "integer": (schema("age"), {}),
    "number": (schema("income"), {"neighbours": "replace"}),
    "number, logarithm": (schema("hours", CURVED), {}),
    "number, breaks": (schema("income", CURVED), {}),
    "category": (schema("work"), {}),
    "ordered category and boolean": (schema("grade smoker"), {"neighbours": "replace"}),
    "dates": (schema("came"), {}),
    "datetime": (schema("seen"), {}),
    "time": (schema("slept"), {}),
    "place": (pm.Schema({"home": pm.Place("lat", "lon", low=(45, 5), high=(50, 11))}), {}),
    "constant and flat": (schema("age land"), {"mechanism": "psmm"}),
    "three columns": (schema("age sex hours"), {"epsilon": 2}),
    "three columns and a delta": (schema("age sex hours"), {"delta": 1e-5}),
    "wide": (schema(EVERYTHING), {"epsilon": 3}),
    "wide with a delta": (schema(EVERYTHING), {"epsilon": 3, "delta": 1e-6}),
    "wide with a target": (schema(EVERYTHING, target="smoker"), {"neighbours": "replace"}),
    "wide with a group": (schema("age sex hours work grade", groups=[["age", "hours"]]), {}),
    "a rule": (schema("age sex smoker work grade", never=["sex = 'M' and smoker = true"]), {"epsilon": 4}),
    "an order": (schema("came left sex work grade", never=["left < came"]), {"epsilon": 4}),
    "persons": (schema("age sex work hours", person="id"), {"rows_per_person": 2, "epsilon": 3}),
    "derived": (
        schema("age hours sex work paid", {"paid": pm.Derived("hours * 12 + age")}),
        {"epsilon": 2, "rows": 900},
    ),
}


def fitted(space: pm.Schema, options: dict[str, Any]) -> pm.Synthesizer:
    return pm.Synthesizer(space, **({"epsilon": 1, "neighbours": "add-remove"} | options))


def configurations() -> Iterator[Configuration]:
    """Yield every configuration of the net."""
    for name, made, rows in mechanisms():

        def release(made: Any = made, rows: int = rows) -> Any:
            source = ArraySource(points(made.domain, rows), width=made.domain.width, threads=1)
            return made.release(source, Key.insecure(5))

        yield Configuration(name, release, lambda made=made: [made.plan(rows) for rows in (37, 10**6)])
    for name, (space, options) in SCHEMAS.items():

        def release_table(space: pm.Schema = space, options: dict[str, Any] = options) -> Any:
            return fitted(space, options).fit(table_of(space), insecure_seed=5).release_

        def plans(space: pm.Schema = space, options: dict[str, Any] = options) -> list[Any]:
            return [fitted(space, {k: v for k, v in options.items() if k != "rows"}).plan(n) for n in (37, 10**6)]

        yield Configuration(f"table: {name}", release_table, plans)


# ---------------------------------------------------------------------------------------------------- what is stored


def digest(*arrays: Any) -> str:
    """Return a short digest of the values of arrays, whatever their types are called."""
    text = hashlib.sha256()
    for array in arrays:
        values = np.asarray(array)
        kind = np.float64 if values.dtype.kind == "f" else np.int64
        text.update(
            f"{values.shape}".encode() + values.astype(kind).astype("<i8" if kind is np.int64 else "<f8").tobytes()
        )
    return text.hexdigest()[:16]


def numbers_of(plan: Any) -> list[float]:
    """Return the numbers of a plan in the order of its file, to nine digits; fractions are numbers too."""
    found: list[float] = []

    def walk(value: Any) -> None:
        match value:
            case dict():
                for name in sorted(value):
                    if name not in NOT_NUMBERS:
                        walk(value[name])
            case list() | tuple():
                for item in value:
                    walk(item)
            case str() if re.fullmatch(r"\d+(/\d+)?", value):
                found.append(float(f"{float(Fraction(value)):.{DIGITS}g}"))
            case bool() | int() | float():
                found.append(float(f"{float(value):.{DIGITS}g}"))

    walk(plan.to_json())
    return found


def released(configuration: Configuration) -> dict[str, Any]:
    """Return what a configuration releases, as it is stored."""
    release = configuration.release()
    measure = getattr(release, "measure", release)
    parts = getattr(measure, "columns", (measure,))
    pairs, ranks = getattr(measure, "pairs", ()), getattr(measure, "ranks", ())
    rows = release.sample(ROWS, seed=3)
    first, *others = [release.plan, *configuration.plans()]
    return {
        "bins": digest(*(part.cells for part in parts)),
        "masses": digest(*(part.mass for part in parts)),
        "pairs": digest(*ranks, *(pair.noisy for pair in pairs)),
        "rows": digest(rows)
        if isinstance(rows, np.ndarray)
        else hashlib.sha256(repr([list(row.values()) for row in rows.to_pylist()]).encode()).hexdigest()[:16],
        "plan": numbers_of(first),
        "guarantees": [float(f"{value:.{DIGITS}g}") for plan in others for value in guarantees(plan)],
    }


def guarantees(plan: Any) -> list[float]:
    """Return the depth and the guarantee of every tree of a plan."""
    trees = getattr(plan, "columns", (plan,))
    return [number for tree in trees for number in (float(tree.depth), float(tree.guarantee))]


def write() -> None:
    """Write the net: one line for each configuration."""
    lines = [f"{json.dumps(c.name)}: {json.dumps(released(c))}" for c in configurations()]
    NET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write()

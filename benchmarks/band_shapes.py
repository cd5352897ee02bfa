"""Twelve shapes of columns, and what a reader computes from them: what `typical.py` scores bands with.

Nothing here is shared with the bands. A quantile is the value of the column that stands at its place among the sorted
values; means, shares and correlations are those of NumPy. Values beyond the declared bounds are clamped first.
"""

import datetime as dt
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

import privmeasure as pm

PERCENT = (5, 25, 50, 75, 95)
MISSING = "missing"
TIED = 0.5
"""Correlation of the normal numbers from which one column and the next are made."""
FIRST_DAY = dt.date(2015, 1, 1)
LAST_DAY = dt.date(2024, 12, 31)
WORKDAYS = np.array([d for d in range(16436, 20089) if (d + 3) % 7 < 5 and (d // 30) % 4 != 1])
"""Days since 1970 from FIRST_DAY to LAST_DAY, without Saturdays, Sundays and one month in four."""
PLANS = ("basic", "standard", "family", "none")
PLAN_SHARES = np.array([0.5, 0.3, 0.15, 0.05])

Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def normal_share(z: np.ndarray) -> np.ndarray:
    """Return the chance of a smaller standard normal number, of each."""
    return 0.5 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))


def ranked(z: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the values in the order of z: they keep their distribution, and follow z."""
    out = np.empty(len(z), values.dtype)
    out[np.argsort(z, kind="stable")] = np.sort(values)
    return out


def gamma_fee(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    free = rng.random(len(z)) < 0.6
    return ranked(z, np.where(free, 0.0, np.round(rng.gamma(2, 15, len(z)), 2)))


def few_seats(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    alone = rng.random(len(z)) < 0.7
    return ranked(z, np.where(alone, 1, 1 + rng.geometric(0.05, len(z))))


SHAPES: dict[str, tuple[Any, Draw]] = {
    "age": (pm.Integer(0, 120), lambda z, rng: np.rint(normal_share(z) * 60 + rng.gamma(4, 6, len(z)))),
    "income": (pm.Number(0, 1e6, decimals=0), lambda z, rng: np.round(np.exp(9.2 + 0.9 * z))),
    "fee": (pm.Number(0, 1000, decimals=2), gamma_fee),
    "seats": (pm.Integer(1, 500), few_seats),
    "kids": (pm.Integer(0, 10), lambda z, rng: ranked(z, rng.poisson(1.2, len(z)))),
    "uniform": (pm.Number(0, 100), lambda z, rng: 100 * normal_share(z)),
    "normal": (pm.Number(0, 100), lambda z, rng: 50 + 12 * z),
    "exponential": (pm.Number(0, 100), lambda z, rng: ranked(z, rng.exponential(8, len(z)))),
    "pareto": (pm.Number(0, 1e5), lambda z, rng: ranked(z, 10 * (1 + rng.pareto(1.4, len(z))))),
    "two peaks": (
        pm.Number(0, 100),
        lambda z, rng: ranked(z, np.where(rng.random(len(z)) < 0.4, 20.0, 70.0) + rng.normal(0, 4, len(z))),
    ),
    "cap": (pm.Number(0, 150, decimals=1), lambda z, rng: np.round(np.minimum(125 * normal_share(z), 100), 1)),
    "dates": (pm.Date(FIRST_DAY, LAST_DAY), lambda z, rng: ranked(z, rng.choice(WORKDAYS, len(z)))),
}
PLAN = pm.Category(list(PLANS))
TREES = {
    "tree 1": ("age", "income"),
    "tree 2": ("fee", "seats", "kids"),
    "tree 3": ("uniform", "normal", "exponential"),
    "tree 4": ("pareto", "two peaks"),
    "tree 5": ("cap", "dates"),
}
WIDE = {
    "wide 1": ("age", "income", "fee", "seats", "kids", "plan"),
    "wide 2": ("uniform", "normal", "exponential", "pareto", "two peaks", "cap", "dates"),
}


def draw(names: tuple[str, ...], rows: int, seed: int) -> tuple[pm.Schema, dict[str, np.ndarray]]:
    """Return the schema of some shapes and their values as arrays: a row's neighbours in a table are correlated."""
    rng = np.random.default_rng(seed)
    z, columns, values = rng.normal(size=rows), {}, {}
    for name in names:
        z = TIED * z + math.sqrt(1 - TIED**2) * rng.normal(size=rows)
        if name == "plan":
            columns[name], values[name] = PLAN, np.array(PLANS)[ranked(z, rng.choice(4, rows, p=PLAN_SHARES))]
        else:
            columns[name], make = SHAPES[name]
            values[name] = make(z, rng)
    return pm.Schema(columns), values


def table(values: Mapping[str, np.ndarray]) -> pa.Table:
    """Return the values as a table that is fitted."""
    kinds = {"dates": pa.date32(), "plan": pa.string()}
    return pa.table({n: pa.array(v.astype(np.int32) if n == "dates" else v, kinds.get(n)) for n, v in values.items()})


def bounds(column: Any) -> tuple[float, float]:
    """Return the declared bounds as numbers; of dates in days since 1970."""
    low, high = column.low, column.high
    if isinstance(low, dt.date):
        return float((low - dt.date(1970, 1, 1)).days), float((high - dt.date(1970, 1, 1)).days)
    return float(low), float(high)


def columns(schema: pm.Schema, rows: pa.Table) -> dict[str, np.ndarray]:
    """Return the columns of a real table as arrays of what is not missing, those that are numbers, dates or values."""
    found = {}
    for name, column in schema.data.items():
        if name not in rows.column_names or column.tag() not in ("integer", "number", "date", "category"):
            continue
        cells = rows[name].combine_chunks()
        if column.tag() == "category":
            found[name] = np.array(cells.cast(pa.string()).fill_null(MISSING).to_pylist())
        elif column.tag() == "date":
            found[name] = cells.cast(pa.date32()).cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.float64)
        elif pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type):
            found[name] = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def answers(schema: pm.Schema, values: Mapping[str, np.ndarray]) -> dict[tuple[str, ...], float]:
    """Return what a reader computes: by (column, "5 %"), (column, "mean"), (column, "share", value), (a, b)."""
    found: dict[tuple[str, ...], float] = {}
    numbers: dict[str, np.ndarray] = {}
    for name, own in values.items():
        column = schema.data[name]
        if column.tag() == "category":
            found |= {(name, "share", str(word)): float(np.mean(own == str(word))) for word in column.values}
            continue
        clamped = np.clip(own.astype(np.float64), *bounds(column))
        inside = np.sort(clamped[~np.isnan(clamped)])
        for percent in PERCENT:
            place = -(-percent * len(inside) // 100)  # the first value with at least so many rows up to it
            found[name, f"{percent} %"] = float(inside[max(place, 1) - 1])
        if column.tag() != "date":
            found[name, "mean"] = float(inside.mean())
            numbers[name] = clamped
    names = list(numbers)
    for i, one in enumerate(names):
        for two in names[i + 1 :]:
            both = ~np.isnan(numbers[one] + numbers[two])
            if both.sum() < 2:
                continue
            found[one, two] = float(np.corrcoef(numbers[one][both], numbers[two][both])[0, 1])
    return found

"""A question in SQL: the words of `domains/scales.py`, one after another, in SQLite or DuckDB.

Slow and obvious. Every word becomes a column of a subquery, so that nothing is written twice. Constants are columns of
a table with one row: an engine need not read decimal digits as Python does. NULL and NaN are one thing, mapped first.
"""

import math
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from privmeasure.domains import scales as words
from privmeasure.domains.knots import NEAR_ONE


class Question:
    """The SELECT that gives every row of the table `points` (columns x0, x1, ...) its number."""

    def __init__(self, scale: words.Scale, engine: str) -> None:
        """Translate the scale."""
        self.engine, self.constants, self.tables, self.lets = engine, [], [], []
        number = self._scale(scale)
        steps = ["q AS MATERIALIZED (SELECT * FROM points CROSS JOIN constants)"]
        for i, expression in enumerate(self.lets):
            steps.append(f"q{i} AS MATERIALIZED (SELECT *, {expression} AS v{i} FROM q{i - 1 if i else ''})")
        self.text = f"WITH {', '.join(steps)} SELECT {number} FROM q{len(self.lets) - 1} ORDER BY row"

    def _let(self, expression: str) -> str:
        self.lets.append(expression)
        return f"v{len(self.lets) - 1}"

    def _constant(self, value: float) -> str:
        self.constants.append(float(value))
        return f"c{len(self.constants) - 1}"

    def _table(self, keys: Sequence[Any], values: Sequence[Any]) -> str:
        self.tables.append((list(keys), list(values)))
        return f"t{len(self.tables) - 1}"

    # ----------------------------------------------------------------------------------------------------- values

    def _reading(self, reading: words.Reading) -> str:
        value = f"x{reading.column}"
        if self.engine == "duckdb" and reading.stored != "text":
            value = self._let(f"CASE WHEN isnan({value}) THEN NULL ELSE {value} END")
        for step in reading.steps:
            value = self._let(getattr(self, f"_{type(step).__name__.lower()}")(value, step))
        return value

    def _clamped(self, x: str, step: words.Clamped) -> str:
        low, high = self._constant(step.low), self._constant(step.high)
        return f"CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x} END"

    def _filled(self, x: str, step: words.Filled) -> str:
        return f"coalesce({x}, {self._constant(step.value)})"

    def _rounded(self, x: str, step: words.Rounded) -> str:
        below = self._let(f"floor({x})")
        rest, half = self._let(f"{x} - {below}"), self._constant(0.5)
        odd = self._let(f"{below} - 2 * floor({below} * {half})")
        return f"CASE WHEN {rest} > {half} OR ({rest} = {half} AND {odd} = 1) THEN {below} + 1 ELSE {below} END"

    def _turned(self, x: str, step: words.Turned) -> str:
        low, high, period = map(self._constant, (step.low, step.high, step.period))
        largest = self._constant(np.finfo(float).max)
        x = self._let(f"CASE WHEN {x} <= {largest} AND {x} >= -{largest} THEN {x} END")
        # DuckDB's fmod is not C's, its % is; SQLite's % is for integers alone
        shifted = self._let(f"{x} - {low}")
        rest = self._let(f"mod({shifted}, {period})" if self.engine == "sqlite" else f"{shifted} % {period}")
        turned = self._let(f"CASE WHEN {rest} < 0 THEN {rest} + {period} ELSE {rest} END + {low}")
        stays = f"({x} >= {low} AND {x} <= {high})"
        if step.top < math.inf:
            stays += f" OR {turned} > {self._constant(step.top)}"
        return f"CASE WHEN {stays} THEN {x} ELSE {turned} END"

    def _counted(self, x: str, step: words.Counted) -> str:
        low, width, offset = map(self._constant, (step.low, step.step, step.offset))
        return f"floor(({x} - {low}) / {width}) + {offset}"

    def _listed(self, x: str, step: words.Listed) -> str:
        table = self._table(step.values, map(float, range(len(step.values))))
        other, missing = (
            "NULL" if math.isnan(value) else self._constant(value) for value in (step.other, step.missing)
        )
        found = f"(SELECT value FROM {table} WHERE key = {x})"
        return f"CASE WHEN {x} IS NULL THEN {missing} ELSE coalesce({found}, {other}) END"

    def _together(self, x: str, step: words.Together) -> str:
        return f"CASE WHEN {self._reading(step.other)} IS NOT NULL THEN {x} END"

    def _stretched(self, x: str, step: words.Stretched) -> str:
        knots = step.knots.knots
        inner, near = self._table(knots[1:-1].tolist(), [0] * (len(knots) - 2)), self._constant(NEAR_ONE)
        i = self._let(f"(SELECT count(*) FROM {inner} WHERE key <= {x})")
        below, above = self._look_up(i, knots[:-1]), self._look_up(i, knots[1:])
        q = self._let(f"({x} - {below}) / ({above} - {below})")
        end = f"CASE WHEN {x} >= {self._constant(knots[-1])} THEN {self._constant(len(knots) - 1)}"
        return f"{end} WHEN {q} < 0 THEN {i} + 0.0 WHEN {q} > {near} THEN {i} + {near} ELSE {i} + {q} END"

    # ----------------------------------------------------------------------------------------------------- scales

    def _scale(self, scale: words.Scale) -> str:
        return getattr(self, f"_of_{type(scale).__name__.lower()}")(scale)

    def _whole(self, expression: str) -> str:
        return f"CAST(floor({expression}) AS BIGINT)"

    def _of_even(self, scale: words.Even) -> str:
        x, last = self._reading(scale.of), self._constant(2.0**scale.bits - 1)
        low, factor, divisor = map(self._constant, (scale.low, scale.factor, scale.divisor))
        u = self._let(f"({x} - {low}) * {factor} / {divisor}")
        inside = f"CASE WHEN {u} < 0 THEN 0 WHEN {u} > {last} THEN {last} ELSE {u} END"
        return self._let(f"coalesce({self._whole(inside)}, 0)")

    def _of_edges(self, scale: words.Edges) -> str:
        x, table = self._reading(scale.of), self._table(scale.edges.tolist(), [0] * len(scale.edges))
        return self._let(f"(SELECT count(*) FROM {table} WHERE key <= {x})")

    def _of_codes(self, scale: words.Codes) -> str:
        return self._look_up(f"coalesce({self._reading(scale.of)}, 0)", scale.codes)

    def _look_up(self, position: str, values: np.ndarray) -> str:
        table, position = self._table(map(float, range(len(values))), values.tolist()), self._let(position)
        return self._let(f"(SELECT value FROM {table} WHERE key = {position})")

    def _of_dealt(self, scale: words.Dealt) -> str:
        moved = []
        for part, places in zip(scale.parts, scale.places, strict=True):
            number = self._scale(part)
            for i, place in enumerate(places):
                if place >= 0:
                    half, unit = (self._constant(2.0 ** -(len(places) - 1 - i + more)) for more in (1, 0))
                    bit = f"floor({number} * {unit}) - 2 * floor({number} * {half})"
                    moved.append(f"CAST({bit} AS BIGINT) * CAST({1 << place} AS BIGINT)")
        return self._let(" + ".join(moved) or "0")

    def _of_missing(self, scale: words.Missing) -> str:
        missing = " OR ".join(f"{self._reading(reading)} IS NULL" for reading in scale.of)
        present = self._scale(scale.present)
        return self._let(f"CASE WHEN {missing} THEN CAST({scale.code} AS BIGINT) ELSE {present} END")

    def _of_rings(self, scale: words.Rings) -> str:
        ring = self._scale(scale.ring)
        code, share = self._look_up(ring, scale.codes), self._look_up(ring, scale.shares)
        outer, turn = self._scale(scale.outer), self._scale(scale.turn)
        return self._let(f"{code} + {outer} + {self._whole(f'{turn} * {share}')}")

    def _of_grouped(self, scale: words.Grouped) -> str:
        return self._look_up(self._scale(scale.of), scale.groups)

    # ----------------------------------------------------------------------------------------------------- running

    def ask(self, columns: Sequence[Sequence[Any]]) -> list[int]:
        """Return the number of every row of the columns, which are floats or texts."""
        run = {"sqlite": _run_sqlite, "duckdb": _run_duckdb}[self.engine]
        tables = {f"t{i}": {"key": keys, "value": values} for i, (keys, values) in enumerate(self.tables)}
        points = {"row": list(range(len(columns[0])))} | {f"x{i}": list(column) for i, column in enumerate(columns)}
        constants = {f"c{i}": [value] for i, value in enumerate(self.constants)}
        return run(self.text, tables | {"points": points, "constants": constants or {"c0": [0.0]}})


def _run_sqlite(query: str, tables: dict[str, dict[str, list[Any]]]) -> list[int]:
    with sqlite3.connect(":memory:") as base:
        for name, columns in tables.items():
            base.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            if "key" in columns:
                base.execute(f"CREATE INDEX {name}_key ON {name} (key)")
            marks = ", ".join("?" * len(columns))
            base.executemany(f"INSERT INTO {name} VALUES ({marks})", zip(*columns.values(), strict=True))
        return [number for (number,) in base.execute(query)]


def _run_duckdb(query: str, tables: dict[str, dict[str, list[Any]]]) -> list[int]:
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as base:
        for name, columns in tables.items():
            base.register(name, pa.table(columns))
        return [number for (number,) in base.execute(query).fetchall()]

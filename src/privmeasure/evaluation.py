"""Compare a synthetic table with the real one, from Python. PRIVATE: what comes out is confidential."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privmeasure.domains import Points
from privmeasure.errors import ArgumentError, DataError
from privmeasure.metrics.fidelity import Fidelity, fidelity
from privmeasure.releases.table import TableRelease
from privmeasure.sources.files import open_table
from privmeasure.sources.folders import check_table
from privmeasure.tables import Schema
from privmeasure.tables.frames import to_arrow
from privmeasure.tables.texts import UTF8, TextForm, with_decimals

if TYPE_CHECKING:
    import pyarrow as pa


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | None = None,
    *,
    seed: int = 0,
    newlines_in_cells: bool = False,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = UTF8,
) -> Fidelity:
    """Compare a synthetic table, or a release, with the real one. CONFIDENTIAL: the figures depend on the real rows.

    The result has common values, missing values, means, quantiles and distinct values of every column
    (`differences`, the largest first), and distances of columns, pairs and rows, each with its sampling baseline:
    the score of a resample of the real table. `print` shows the largest, `to_json` returns all of them.

    Tables are dataframes of pandas, polars or pyarrow, or paths of files; how text files are written is said as `fit`
    takes it. A release is sampled, and brings its schema; columns that have no data, or are derived, are not compared
    and need not be there. All real rows are compared, also where the schema names a person and a release is about at
    most so many rows of each; the result says it.

    Examples:
        >>> import pandas as pd, privmeasure as pm
        >>> people = pd.DataFrame({"age": [31, 52, 47] * 500})
        >>> found = pm.evaluate(people, people, pm.Schema({"age": pm.Integer(0, 120)}))
        >>> found.w1.value, found.columns[0].name
        (0.0, 'age')
        >>> other = people.replace(31, 33)
        >>> print(pm.evaluate(people, other, pm.Schema({"age": pm.Integer(0, 120)})).largest[0])
        age: 31 in 33.3 % of the real rows, in 0.0 % of the synthetic ones
    """
    if schema is None and isinstance(synthetic, TableRelease):
        schema = synthetic.schema
    if not isinstance(schema, Schema):
        raise ArgumentError("evaluate needs schema=, a Schema: it says what the columns are. A release brings its own.")
    if isinstance(synthetic, TableRelease):
        synthetic = synthetic.sample(seed=seed)
    form = TextForm(delimiter, decimal, encoding, newlines_in_cells)
    rows, others = _points(real, schema, form, "real"), _points(synthetic, schema, form, "synthetic")
    return fidelity(rows, others, schema, seed=seed)


def _points(data: Any, schema: Schema, form: TextForm, told: str) -> Points:
    """Return all rows of a table as points: PRIVATE where the table is."""
    table: Any
    if isinstance(data, str | Path):
        table = open_table(data, form, numbers=with_decimals(schema))
        check_table(schema.among(table.names), table)
    else:
        table, kind = to_arrow(data)
        names = tuple(table.schema.names)
        schema.among(names).check(names, kind.types)
    parts = [schema.encode(batch) for batch in _batches(table, schema)]
    if not sum(map(len, parts)):  # told to whoever has the table: no release is made here
        raise DataError(f"The {told} table has no rows: there is nothing to compare.")
    return np.concatenate(parts)


def _batches(table: Any, schema: Schema) -> "list[pa.Table]":
    columns = list(dict.fromkeys(source for name, column in schema.data.items() for source in column.sources(name)))
    return list(table.batches(columns)) if hasattr(table, "batches") else [table.combine_chunks()]

"""Days are added before one release is made of them."""

import sqlite3

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.errors import ArgumentError, SchemaError
from privmeasure.sources.tables import TableSource
from privmeasure.sources.union import UnionSource
from privmeasure.tables.writing import write_table
from privmeasure.testing import check_source

SCHEMA = pm.Schema({"age": pm.Integer(0, 120), "ward": pm.Category(["A", "B"], nullable=True), "x": pm.Number(0, 1)})


def rows(n, seed):
    rng = np.random.default_rng(seed)
    wards = np.array(["A", "B"])[rng.integers(0, 2, n)]
    return pa.table({"age": rng.integers(0, 120, n), "ward": wards, "x": rng.random(n)})


def test_a_union_is_the_table_of_all_rows(tmp_path):
    days = [rows(300, 1), rows(200, 2), rows(100, 3)]
    write_table(tmp_path / "tuesday.csv", [days[1]])
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE wednesday (age INTEGER, ward TEXT, x REAL)")
    cells = days[2].to_pydict().values()
    base.executemany("INSERT INTO wednesday VALUES (?, ?, ?)", zip(*cells, strict=True))
    base.commit()

    def released(data):
        synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove")
        return synth.fit(data, insecure_seed=5).sample(seed=1)

    one = released(pa.concat_tables(days))
    other = released(pm.Union(days[0], tmp_path / "tuesday.csv", pm.Query(base, table="wednesday")))
    assert one.to_pylist() == other.to_pylist()
    assert not base.in_transaction


def test_a_union_keeps_the_laws_of_sources():
    def halves(table):
        middle = table.num_rows // 3
        return UnionSource([TableSource(part, SCHEMA) for part in (table.slice(0, middle), table.slice(middle))])

    check_source(halves, SCHEMA)


def test_what_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="at least one"):
        pm.Union()
    person = pm.Schema({"age": pm.Integer(0, 9), "who": pm.Drop()}, person="who")
    synth = pm.Synthesizer(person, epsilon=1, neighbours="add-remove")
    with pytest.raises(ArgumentError, match="one folder"):
        synth.fit(pm.Union(pa.table({"age": [1], "who": ["a"]})))
    synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove")
    with pytest.raises(SchemaError):
        synth.fit(pm.Union(rows(5, 0), pa.table({"age": [1]})))
    assert not synth.spent
    assert repr(pm.Union(1, 2)) == "Union(of 2)"
    assert "private" in repr(UnionSource([]))

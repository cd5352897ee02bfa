"""Attacks on how tables come in: text forms, an index, ids of persons and what is set aside of their rows."""

import os
import resource
import tempfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.errors import ArgumentError, DataError, SchemaError
from privmeasure.ledger import Ledger
from privmeasure.sources import people
from privmeasure.sources.files import open_table
from privmeasure.tables.frames import to_arrow
from privmeasure.tables.persons import read_ids
from privmeasure.tables.texts import TextForm

# ---------------------------------------------------------------------------------------------------------- an index


def visits(codes, names=("ward", "day")):
    """Return a frame whose index has whole numbers, and none where a code is -1."""
    index = pd.MultiIndex(levels=[[10, 20], [1, 2, 3]], codes=[codes, [0, 1, 2][: len(codes)]], names=names)
    return pd.DataFrame({"x": np.linspace(0, 1, len(codes))}, index=index)


def test_a_row_without_a_value_in_an_index_changes_no_type():
    """Pandas makes float64 of a level's whole numbers as soon as one row has none: that one would be told."""
    (table, kind), (_, without) = to_arrow(visits([0, 1, -1])), to_arrow(visits([0, 1]))
    assert kind == without
    assert kind.types[0] == pa.int64()
    assert table.column("ward").to_pylist() == [10, 20, None]


@pytest.mark.filterwarnings("error")
def test_a_row_without_a_value_in_an_index_without_a_name_warns_of_nothing():
    to_arrow(visits([0, 1], (None, "day")))
    to_arrow(visits([0, 1, -1], (None, "day")))


def test_an_index_of_one_level_in_the_form_of_several_is_its_values():
    frame = pd.DataFrame({"x": [0.0, 0.5]}, index=pd.MultiIndex.from_arrays([["b", "a"]], names=["ward"]))
    assert to_arrow(frame)[0].column("ward").to_pylist() == ["b", "a"]


# --------------------------------------------------------------------------------------------------------------- ids


@pytest.mark.parametrize("encoding", ["cp1252", "cp1253", "iso8859-6", "latin-1", "koi8-r"])
def test_bytes_without_a_letter_do_not_make_two_persons_one(tmp_path, encoding):
    path = tmp_path / "visits.csv"
    cells = [b"a" + bytes([i]) for i in range(128, 256)]
    path.write_bytes(b"who;x\n" + b"".join(cell + b";0\n" for cell in cells))
    table = open_table(path, TextForm(delimiter=";", encoding=encoding))
    ids = [name for batch in table.batches(["who"]) for name in read_ids(batch.column("who")).to_pylist()]
    assert len(set(ids)) == len(cells)


# -------------------------------------------------------------------------------------------------- a disk that is full


def test_a_disk_that_is_full_at_any_place_gives_one_error_and_leaves_nothing(tmp_path, monkeypatch):
    """What is written waits in a buffer: the disk may refuse it later, when it is read again or closed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(people, "HELD_BYTES", 1 << 12)
    schema = pm.Schema({"who": pm.Drop(), "x": pm.Number(0, 1)}, person="who")
    frame = pd.DataFrame({"who": [str(i % 90) for i in range(600)], "x": np.linspace(0, 1, 600)})
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    found = []
    for limit in (*range(1_000, 36_000, 1_777), 10_000_000):
        synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", rows_per_person=2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
        try:
            synth.fit(frame)
            found.append("")
        except DataError as error:
            found.append(str(error))
            assert not synth.spent
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))
        assert os.listdir(tmp_path) == []
    assert found[-1] == ""
    assert "TMPDIR" in found[0]
    assert len(set(found)) == 2


# ------------------------------------------------------------------------------------- what is told before the noise


def test_a_table_without_the_column_of_persons_is_told_so_also_where_that_column_is_optional():
    schema = pm.Schema({"who": pm.Drop(optional=True), "x": pm.Number(0, 1)}, person="who")
    synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove")
    with pytest.raises(SchemaError, match="no column 'who'"):
        synth.fit(pa.table({"x": [0.5]}))
    assert not synth.spent


@pytest.mark.parametrize(("derive", "told"), [("+".join(["x"] * 900), "numbers, names and signs"),
                                              ("1e400", "too large"), ("9" * 400, "too large")])  # fmt: skip
def test_an_expression_too_deep_or_too_large_to_compute_is_refused_before_anything_is_spent(derive, told):
    with pytest.raises(SchemaError, match=told):
        pm.Schema({"x": pm.Integer(0, 9), "y": pm.Derived(derive)})


# ------------------------------------------------------------------------------- derived values where types are narrow


@pytest.mark.parametrize("type", [pa.int8(), pa.uint8(), pa.int64(), pa.float32(), pa.decimal128(3, 1)])
@pytest.mark.parametrize("pandas", [False, True])
def test_a_derived_number_is_written_as_it_is_and_as_conditions_see_it(type, pandas):
    """The narrow type of a column that the table has, and whose bounds nobody declared, clamped and cut values."""
    schema = pm.Schema({"x": pm.Integer(0, 9), "y": pm.Derived("x * 100 - 4.5")})
    real = pa.array([None] * 2_000 if pa.types.is_decimal(type) else [1] * 2_000, type)
    table = pa.table({"x": np.arange(2_000) % 10, "y": real})
    data = table.to_pandas() if pandas else table
    synth = pm.Synthesizer(schema, epsilon=50, neighbours="add-remove").fit(data)
    made = synth.sample(200, seed=1, where="y > 300")
    x, y = (np.asarray(made[name], float) for name in ("x", "y"))
    assert (y == x * 100 - 4.5).all()
    assert y.min() > 300


def test_a_derived_date_is_not_wrapped_around_by_nanoseconds():
    schema = pm.Schema({"x": pm.Date("1500-01-01", "1600-12-31"), "y": pm.Derived("coalesce(x, x)")})
    table = pa.table({"x": pa.array([-150_000] * 500, pa.int32()).cast(pa.date32()),
                      "y": pa.array([0] * 500, pa.timestamp("ns"))})  # fmt: skip
    made = pm.Synthesizer(schema, epsilon=50, neighbours="add-remove").fit(table).sample(50, seed=1)
    assert made["x"].to_pylist() == made["y"].to_pylist()


@pytest.mark.parametrize("wrong", [{"n": -1}, {"seed": -1}, {"where": "age > 3"}, {"where": "x >"}])
def test_fit_sample_refuses_what_cannot_be_sampled_before_it_spends(wrong):
    synth = pm.Synthesizer(pm.Schema({"x": pm.Number(0, 1)}), epsilon=1, neighbours="add-remove")
    with pytest.raises(ArgumentError):
        synth.fit_sample(pa.table({"x": [0.5] * 100}), **wrong)
    assert not synth.spent


# ------------------------------------------------------------------------------------- what is told along the way

HOSTILE_ROWS = [
    ["\ud800", 1e308, "\ud801"],
    ["x" * 100_000, float("nan"), object()],
    [None, None, None],
    ["7", -0.0, "a"],
    [10**400, float("inf"), ["a"]],
]


@pytest.mark.parametrize("row", HOSTILE_ROWS)
def test_one_hostile_row_changes_nothing_that_is_told_of_persons(tmp_path, row, recwarn):
    """Progress, warnings, the layout and the entry of the ledger: the same for neighbours, whatever the row holds."""
    schema = pm.Schema(
        {"who": pm.Drop(), "x": pm.Number(0, 1, nullable=True), "kind": pm.Category(["a", "b"], nullable=True)},
        person="who",
    )
    plain = [[str(i % 300), i / 900, "ab"[i % 2]] for i in range(900)]
    told = []
    for i, rows in enumerate((plain, [*plain, row])):
        frame = pd.DataFrame(rows, columns=["who", "x", "kind"], dtype=object)
        book = Ledger(tmp_path / f"{i}.sqlite")
        book.open_account("visits", cap=2, neighbours="add-remove", rows_per_person=2)
        synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", rows_per_person=2, rows=900)
        stages = []
        with book.reserve("visits", synth):
            synth.fit(frame, progress=lambda *stage, stages=stages: stages.append(stage))
        entry = book.history("visits")[0]
        known = entry.epsilon, entry.state, entry.rows_per_person, entry.person
        told.append((stages, known, synth.release_.layout, synth.release_.schema, len(recwarn)))
    assert told[0] == told[1]

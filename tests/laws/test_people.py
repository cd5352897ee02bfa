"""Of each person at most k rows, whatever the rows, their order, the reader, the blocks, the threads and the disk.

Everything is compared with the definition in `tests/reference/people.py`. The law on which the promise stands: removing
a person changes the kept rows by that person's rows alone.
"""

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import examples
from privmeasure.counts import Partition
from privmeasure.sources import files as reading
from privmeasure.sources import lines, people
from privmeasure.sources import tables as engine
from privmeasure.sources.files import open_table
from privmeasure.sources.people import People, canonical
from privmeasure.sources.tables import TableSource
from privmeasure.tables import Drop, Integer, Number, Schema
from privmeasure.tables.frames import to_arrow
from privmeasure.tables.persons import read_ids
from privmeasure.tables.writing import write_table
from reference.people import kept_rows

SCHEMA = Schema({"who": Drop(), "x": Number(0, 9, nullable=True), "k": Integer(0, 3)}, person="who")
SALT = b"grain by grain"

HOSTILE = ["", " ", "\u2003", "1", "01", "1.0", " 1", "1 ", "1e0", "+1", "NaN", "nan", "None", "null", "NA", "-0", "0"]
HOSTILE += [
    "é",
    "e\u0301",
    "И",
    "\u200b",
    "\U0001f9d1\u200d\u2695\ufe0f",
    "x" * 5_000,
    "x" * 5_000 + "y",
    'a"b,c',
    "a'b",
]
IDS = st.sampled_from(HOSTILE) | st.none() | st.sampled_from(["ann", "bob"])
ROWS = st.fixed_dictionaries(
    {
        "who": IDS,
        "x": st.none() | st.sampled_from([0.0, -0.0, 1.0, 2.5, 9.0, 100.0, np.nan]),
        "k": st.none() | st.integers(0, 3),
    }
)
TYPES = pa.schema({"who": pa.string(), "x": pa.float64(), "k": pa.int64()})
TABLES = st.lists(ROWS, max_size=60)


def table_of(rows):
    return pa.Table.from_pylist(rows, TYPES)


def gathered(table, most, *, salt=SALT, threads=1):
    """Return the rows that a source keeps, with how often, by way of everything that a fit does."""
    chooser = People(most, salt)
    source = TableSource(table, SCHEMA, threads=threads, people=chooser)
    kept = source._kept(chooser)
    rows = np.concatenate([np.empty((0, 2)), *(block[:] for block in kept)])
    source.close()
    return Counter(row.tobytes() for row in rows)


def expected(table, most, salt=SALT):
    """Return what the definition says."""
    points = canonical(SCHEMA.encode(table))
    persons = read_ids(table.column("who")).to_pylist()
    kept = kept_rows(zip(persons, (row.tobytes() for row in points), strict=True), most, salt)
    rows = Counter()
    for (_, row), times in kept.items():
        rows[row] += times
    return rows


@examples(40, 150)
@given(
    rows=TABLES,
    most=st.sampled_from([1, 2, 3, 16]),
    threads=st.integers(1, 3),
    pieces=st.lists(st.integers(0, 60), max_size=5),
    held=st.sampled_from([1 << 28, 400, 1]),
    few=st.integers(0, 4),
    hashed=st.sampled_from([1, 5, 1 << 16]),
)
def test_what_is_kept_is_the_definition(rows, most, threads, pieces, held, few, hashed):
    table = table_of(rows)
    edges = sorted({0, table.num_rows, *(piece for piece in pieces if piece <= table.num_rows)})
    parts = [table.slice(a, b - a) for a, b in pairwise(edges)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "HELD_BYTES", held)  # 1: every row is a run of its own, and no person fits into memory
        patch.setattr(people, "HASHED", hashed)
        patch.setattr(people, "BLOCK", 5)
        patch.setattr(engine, "BLOCK", 7)
        patch.setattr(engine, "FEW_BATCHES", few)
        assert gathered(pa.concat_tables(parts) if parts else table, most, threads=threads) == expected(table, most)


@examples(30, 100)
@given(rows=TABLES, most=st.sampled_from([1, 2, 16]), held=st.sampled_from([1 << 28, 300]), data=st.data())
def test_removing_a_person_changes_the_kept_rows_by_that_persons_alone(rows, most, held, data):
    table = table_of(rows)
    persons = read_ids(table.column("who")).to_pylist()
    gone = data.draw(st.sampled_from([*sorted({p for p in persons if p is not None}), b"nobody"]))
    rest = table.filter(pa.array([person != gone for person in persons], pa.bool_()))
    own = table.filter(pa.array([person == gone for person in persons], pa.bool_()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "HELD_BYTES", held)
        whole, without, alone = (gathered(each, most) for each in (table, rest, own))
    assert alone.total() <= most
    assert whole == without + alone  # so whole - without has at most `most` rows, and nobody else's changed


@examples(20, 60)
@given(rows=TABLES, most=st.sampled_from([1, 2, 16]), data=st.data())
def test_the_order_of_rows_does_not_matter(rows, most, data):
    shuffled = data.draw(st.permutations(rows))
    assert gathered(table_of(shuffled), most) == gathered(table_of(rows), most)


@examples(10, 25)
@given(
    rows=TABLES, threads=st.integers(1, 3), block=st.sampled_from([64, 1 << 20]), held=st.sampled_from([1 << 28, 300])
)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet"])
def test_a_file_keeps_what_the_table_keeps(tmp_path_factory, name, rows, threads, block, held):
    path = tmp_path_factory.mktemp("people") / name
    write_table(path, [table_of(rows)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        patch.setattr(reading, "BLOCK", 7)
        patch.setattr(people, "HELD_BYTES", held)
        assert gathered(open_table(path), 2, threads=threads) == expected(table_of(rows), 2)


@examples(10, 25)
@given(rows=TABLES)
def test_frames_keep_what_the_table_keeps(rows):
    table = table_of(rows)
    objects = pd.DataFrame({"who": pd.Series([row["who"] for row in rows], dtype=object)})
    objects["x"], objects["k"] = table.column("x").to_pandas(), pd.array([row["k"] for row in rows], "Int64")
    coded = table.set_column(0, "who", table.column("who").dictionary_encode())
    for frame in (objects, pl.DataFrame(table), coded):
        assert gathered(to_arrow(frame)[0], 2) == expected(table, 2)


@examples(15, 40)
@given(rows=TABLES, most=st.sampled_from([1, 2]), held=st.sampled_from([1 << 28, 300]))
def test_every_pass_keeps_the_same_rows(rows, most, held):
    table, partitions = table_of(rows), [Partition(()), Partition.of(SCHEMA.domain, 6)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "HELD_BYTES", held)
        source = TableSource(table, SCHEMA, threads=2, people=People(most, b"another salt for every fit"))
        passes = [[count.take().tolist() for count in source.count(partitions)] for _ in range(3)]
        source.close()
    assert passes[0] == passes[1] == passes[2]
    assert passes[0][0] == [expected(table, most, b"another salt for every fit").total()]


@pytest.mark.parametrize("held", [1 << 28, 2_000])
def test_equal_rows_of_one_person_are_kept_as_often_as_promised(held, monkeypatch):
    monkeypatch.setattr(people, "HELD_BYTES", held)
    same = table_of([{"who": "ann", "x": 1.0, "k": 1}] * 500)
    assert list(gathered(same, 3).values()) == [3]
    mixed = pa.concat_tables([same, table_of([{"who": "ann", "x": 2.0, "k": 1}] * 500)])
    assert gathered(mixed, 40) == expected(mixed, 40)
    assert len(gathered(mixed, 40)) == 2  # of many equals each has its chance


def test_one_person_with_more_rows_than_memory_holds(monkeypatch):
    monkeypatch.setattr(people, "HELD_BYTES", 4_000)
    rng = np.random.default_rng(5)
    rows = [{"who": "ann", "x": x, "k": i % 4} for i, x in enumerate(rng.uniform(0, 9, 900).tolist())]
    rows += [{"who": f"p{i % 40}", "x": float(i % 7), "k": i % 3} for i in range(300)]
    table = table_of(rows)
    assert gathered(table, 4) == expected(table, 4)


@pytest.mark.parametrize(
    ("cells", "persons"),
    [
        (pa.array(["1", "01", "1.0", " 1", "1 ", "+1"]), 6),  # a text is itself
        (pa.array([1.0, 1.0, 2.0, -0.0, 0.0]), 3),  # a number is the number
        (pa.array([2**53, 2**53 + 1, 2**63 - 1]), 3),  # and a whole one is never rounded
        (pa.array([2**64 - 1, 2**64 - 2], pa.uint64()), 2),
        (pa.array([1e16, 1e16 + 2, 9e18, 1e19, 1e300, np.inf, -np.inf]), 7),
        (pa.array([0.1, 0.1 + 2**-56, 5e-324]), 2 + (0.1 != 0.1 + 2**-56)),
        (pa.array([b"\xff", b"\xfe", b"\xef\xbf\xbd"]).view(pa.string()), 3),  # what is no UTF-8 is not replaced
        (pa.array(["a\0", "a", "a\0\0"]), 3),
        (pa.array([True, False, True]), 2),
    ],
)
def test_ids_are_compared_whole(cells, persons):
    assert len(set(read_ids(cells).to_pylist())) == persons
    assert read_ids(cells.dictionary_encode()).to_pylist() == read_ids(cells).to_pylist()
    assert read_ids(cells[1:]).to_pylist() == read_ids(cells).to_pylist()[1:]


@examples(50, 200)
@given(cells=st.lists(IDS | st.text(max_size=4), min_size=1, max_size=20), more=st.text(max_size=3) | IDS)
def test_an_id_depends_on_its_cell_alone(cells, more):
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        together = read_ids(pa.array([*cells, more], kind)).to_pylist()
        assert together == [read_ids(pa.array([cell], kind)).to_pylist()[0] for cell in [*cells, more]]
        assert together == [None if cell is None or not cell.strip() else cell.encode() for cell in [*cells, more]]


def test_a_number_that_is_stored_in_another_width_is_the_same_person():
    for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.float64()):
        assert read_ids(pa.array([7, None], kind)).to_pylist() == [b"7", None]


def test_a_row_without_an_id_is_not_counted():
    rows = [{"who": who, "x": 1.0, "k": 1} for who in (None, "", "  ", "\t", "\u3000")]
    assert gathered(table_of(rows), 16) == Counter()
    floats = pa.table({"who": pa.array([np.nan, None, 1.0]), "x": [1.0] * 3, "k": [1] * 3})
    assert gathered(floats, 16).total() == 1


def test_another_salt_keeps_other_rows_and_each_row_has_the_same_chance():
    """Of ten different rows one is kept: over 2,000 salts each about 200 times. False alarms: 1e-6 by Bonferroni."""
    table = table_of([{"who": "ann", "x": i * 0.9, "k": 0} for i in range(10)])
    seen = Counter()
    for salt in range(2_000):
        seen.update(gathered(table, 1, salt=salt.to_bytes(8, "little")))
    assert len(seen) == 10
    assert max(abs(count - 200) for count in seen.values()) < 5.4 * np.sqrt(2_000 * 0.1 * 0.9)


def test_the_law_rejects_a_choice_by_position(monkeypatch):
    """A choice of the first rows passes nothing: it depends on the order."""
    rows = [{"who": "ann", "x": i * 0.9, "k": 0} for i in range(10)]
    monkeypatch.setattr(people, "smallest_digests", lambda rows, most, salt: rows.at(np.arange(most)))
    monkeypatch.setattr(people.Owned, "merged", lambda self: self)
    assert gathered(table_of(rows), 1) != gathered(table_of(rows[::-1]), 1)


def test_the_law_rejects_a_choice_among_all_persons_together(monkeypatch):
    """The smallest digests of everybody: a person who leaves lets others in."""
    codes = people._codes

    def everybody(cells):
        found, distinct = codes(cells)
        return (found, distinct) if pa.types.is_fixed_size_binary(cells.type) else (0 * found, distinct[:1])

    monkeypatch.setattr(people, "_codes", everybody)
    rows = [{"who": who, "x": float(i), "k": 0} for i, who in enumerate(["ann", "bob", "cyd", "dan"])]
    whole = gathered(table_of(rows), 1)
    apart = [gathered(table_of(rows[:i] + rows[i + 1 :]), 1) for i in range(4)]
    alone = [gathered(table_of(rows[i : i + 1]), 1) for i in range(4)]
    assert any(whole != rest + own for rest, own in zip(apart, alone, strict=True))


def test_digests_that_begin_alike_are_told_apart():
    digests = np.array([[7, 0, 0, 9], [7, 0, 0, 3], [7, 0, 1, 0], [1, 0, 0, 0]], np.uint64)
    assert people._least(np.array([0, 0, 0, 1]), digests, 1).tolist() == [1, 3]
    assert people._least(np.array([0, 0, 0, 1]), digests, 2).tolist() == [1, 0, 3]


def test_parquet_keeps_the_types_of_ids(tmp_path):
    table = pa.table({"who": pa.array([1, 1, 2, None]), "x": [1.0, 2.0, 3.0, 4.0], "k": [0, 1, 2, 3]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert gathered(open_table(tmp_path / "t.parquet"), 1) == expected(table, 1)
    (tmp_path / "t.csv").write_text("who,x,k\n1,1.0,0\n1,2.0,1\n2,3.0,2\n,4.0,3\n")
    assert gathered(open_table(tmp_path / "t.csv"), 1) == expected(table, 1)  # the number 1 and the text "1"

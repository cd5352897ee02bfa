"""Persons, from the schema to the release: what is kept, what is said of it, what is refused."""

import json
import tempfile
from collections import Counter

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.counts import CellCounts
from privmeasure.errors import ArgumentError, DataError, ReleaseFileError, SchemaError
from privmeasure.noise.entropy import Key
from privmeasure.releases import files
from privmeasure.sources import people
from privmeasure.sources.changes import count_changes
from privmeasure.sources.people import People, canonical, insecure_salt
from privmeasure.sources.tables import TableSource
from privmeasure.tables.writing import write_table
from reference.people import kept_rows

NARROW = {"who": pm.Drop(), "age": pm.Integer(0, 99)}
WIDE = NARROW | {name: pm.Number(0, 1) for name in "abc"} | {"sex": pm.Category(["F", "M"])}


def visits(rows=4_000, persons=300, seed=1):
    rng = np.random.default_rng(seed)
    who = rng.integers(0, persons, rows)
    columns = {"who": pa.array([f"p{i}" for i in who]), "age": pa.array(rng.integers(0, 100, rows))}
    columns |= {name: pa.array(rng.random(rows)) for name in "abc"}
    return pa.table(columns | {"sex": pa.array(np.array(["F", "M"])[who % 2])})


def synthesizer(schema, k=1, epsilon=50, **more):
    return pm.Synthesizer(schema, epsilon=epsilon, neighbours="add-remove", rows_per_person=k, **more)


def masses(release):
    return [part.tolist() for part in release.measure.columns_of_file()]


def kept_of(ids, points, most, block, salt=b"salt"):
    """Return the rows that are kept of rows that come in blocks."""
    chooser = People(most, salt)
    for start in range(0, len(ids), block):
        chooser.add(pa.array(ids[start : start + block], pa.large_binary()), points[start : start + block])
    rows = [row.tobytes() for kept in chooser.keep() for row in kept[:]]
    chooser.close()
    return Counter(rows)


def defined(ids, points, most, salt=b"salt"):
    """Return what the definition keeps."""
    rows = Counter()
    for (_, row), times in kept_rows(zip(ids, (row.tobytes() for row in points), strict=True), most, salt).items():
        rows[row] += times
    return rows


def crowded(rng, rows=400, persons=12):
    """Return rows of few persons with many each, some of them equal, and the ids; some rows have none."""
    ids = [None if i == persons else b"p%d" % i for i in rng.integers(0, persons + 1, rows).tolist()]
    return ids, canonical(np.column_stack([rng.integers(0, 5, rows), rng.choice([0.0, 0.5, np.nan], rows)]))


HELD = {"in memory": 1 << 28, "runs": 4_000, "parts of a person": 1_500}


@pytest.mark.parametrize("held", HELD)
def test_the_limit_is_one_of_the_whole_table(held, monkeypatch):
    """Whatever the blocks, the runs on disk and the order of the rows: the same rows, by the definition."""
    monkeypatch.setattr(people, "HELD_BYTES", HELD[held])
    rng = np.random.default_rng(7)
    ids, points = crowded(rng)
    for most in (1, 3, 30):
        expected = defined(ids, points, most)
        for block in (400, 61, 23):
            order = rng.permutation(len(ids))
            shuffled = [ids[i] for i in order]
            assert kept_of(shuffled, points[order], most, block) == expected, f"{most} per person, blocks of {block}"


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("shared", ["rows", "persons", "both"])
def test_rows_and_persons_that_share_a_hash_stay_apart(held, shared, monkeypatch):
    """Hashes say where to look, and decide nothing: with the worst ones the same rows are kept."""
    monkeypatch.setattr(people, "HELD_BYTES", HELD[held])
    if shared != "persons":
        monkeypatch.setattr(people, "mixed_rows", lambda points, spread, last: np.zeros(len(points), np.uint64))
    if shared != "rows":
        monkeypatch.setattr(people, "hash", lambda name: 5, raising=False)
    ids, points = crowded(np.random.default_rng(8), rows=150, persons=5)
    for most in (1, 4):
        assert kept_of(ids, points, most, 40) == defined(ids, points, most)


def test_the_limit_is_kept_by_who_is_just_above_it():
    for most in (1, 2, 3, 16):
        for more in (-1, 0, 1, 2):
            ids = [b"ann"] * (most + more) + [b"bob"] * 40
            points = canonical(np.arange(len(ids), dtype=float)[:, None])
            own = {row.tobytes() for row in points[: most + more]}
            kept = kept_of(ids, points, most, 7)
            found = sum(times for row, times in kept.items() if row in own)
            assert found == min(most, most + more), f"{most + more} rows, of which {most} may be kept"
            assert kept.total() - found == most


def test_both_zeros_are_one_row():
    """And every NaN is one: what a row is does not depend on how a file or a machine writes it."""
    odd = np.array([0.0, np.nan]).view(np.uint64)
    other = np.array([0x8000_0000_0000_0000, 0xFFF8_0000_0000_0007], np.uint64)
    rows = np.stack([odd, other]).view(np.float64)
    one, two = (row.tobytes() for row in canonical(rows))
    assert one == two
    assert kept_of([b"ann"] * 2, canonical(rows), 2, 1) == {one: 2}


@pytest.mark.parametrize("columns", [NARROW, WIDE], ids=["one tree", "a tree of columns"])
@pytest.mark.parametrize("k", [1, 4])
def test_a_release_is_about_the_kept_rows(columns, k):
    table = visits().select(list(columns))
    release = synthesizer(pm.Schema(columns, person="who"), k).fit(table).release_
    kept = int(np.minimum(np.unique(table["who"].to_numpy(), return_counts=True)[1], k).sum())
    assert abs(release.total - kept) < 40
    assert "who" not in release.sample(10).column_names


@pytest.mark.parametrize("columns", [NARROW, WIDE], ids=["one tree", "a tree of columns"])
def test_every_form_of_a_table_gives_the_same_release(columns, tmp_path, monkeypatch):
    table = visits().select(list(columns))
    for name in ("t.csv", "t.parquet"):
        write_table(tmp_path / name, [table])
    forms = [table, table.to_pandas(), pl.DataFrame(table), tmp_path / "t.csv", tmp_path / "t.parquet"]
    forms.append(table.take(np.random.default_rng(0).permutation(len(table))))
    schema = pm.Schema(columns, person="who")
    first = masses(synthesizer(schema, 2).fit(table, insecure_seed=3).release_)
    for form in forms:
        for threads, held in ((1, 1 << 28), (2, 1 << 28), (2, 20_000)):
            monkeypatch.setattr(people, "HELD_BYTES", held)
            found = synthesizer(schema, 2, threads=threads).fit(form, insecure_seed=3).release_
            assert masses(found) == first
    assert masses(synthesizer(schema, 2).fit(table, insecure_seed=4).release_) != first


def test_who_has_few_rows_has_them_all():
    table = pa.table({"who": [1, 2, 3, 3], "age": [10, 20, 30, 40]})
    one = masses(synthesizer(pm.Schema(NARROW, person="who"), 2).fit(table, insecure_seed=1).release_)
    assert one == masses(synthesizer(pm.Schema(NARROW), 2).fit(table, insecure_seed=1).release_)


def test_the_salt_is_not_the_key(monkeypatch):
    assert insecure_salt(7) != bytes(Key.insecure(7)._secret)
    assert insecure_salt(7) == insecure_salt(7) != insecure_salt(8)
    used = []
    monkeypatch.setattr(
        "privmeasure.synthesizer.People", lambda most, salt: used.append(salt) or people.People(most, salt)
    )
    schema = pm.Schema(NARROW, person="who")
    for _ in range(2):
        synthesizer(schema).fit(visits().select(["who", "age"]))
    assert len(set(used)) == 2
    assert all(len(salt) == 32 for salt in used)


def test_rows_on_disk_are_deleted_whatever_happens(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(people, "HELD_BYTES", 10_000)
    seen = []
    count = TableSource.count

    def look(self, *args):
        found = count(self, *args)
        seen.extend(tmp_path.iterdir())
        return found

    monkeypatch.setattr(TableSource, "count", look)
    schema = pm.Schema(WIDE, person="who")
    synthesizer(schema).fit(visits())
    assert seen
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(CellCounts, "take", lambda self: 1 / 0)
    with pytest.raises(pm.errors.PrivmeasureError):
        synthesizer(schema).fit(visits())
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(people, "HELD_BYTES", 10_000)
    monkeypatch.setattr(people, "_least", lambda *args: 1 / 0)
    with pytest.raises(DataError, match="could not be read"):
        synthesizer(schema).fit(visits())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("held", [1 << 28, 10_000])
def test_the_folders_for_rows_are_there_whatever_the_number_of_rows(tmp_path, monkeypatch, held):
    """At every step that is seen: whoever may list the folder for temporary files must not learn that rows are many."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(people, "HELD_BYTES", held)
    seen = set()
    for rows in (0, 1, 3000):
        steps = []

        def look(*step, steps=steps):
            steps.append((*step, len(list(tmp_path.iterdir()))))

        synthesizer(pm.Schema(WIDE, person="who")).fit(visits().slice(0, rows), progress=look)
        assert list(tmp_path.iterdir()) == []
        assert {step[-1] for step in steps if step[0] == "read"} == {2}
        assert {step[-1] for step in steps if step[0] == "count"} == {1}
        seen.add(tuple(steps))
    assert len(seen) == 1


def test_no_room_on_disk_spends_nothing(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    monkeypatch.setattr(people, "HELD_BYTES", 10_000)
    synth = synthesizer(pm.Schema(WIDE, person="who"))
    with pytest.raises(DataError, match="TMPDIR"):
        synth.fit(visits())
    assert not synth.spent


def test_the_header_states_the_person_and_k(tmp_path):
    schema = pm.Schema(WIDE, person="who")
    synthesizer(schema, 4, 1).fit(visits()).save(tmp_path / "r")
    header, _ = files.read_release(tmp_path / "r")
    assert header["plan"]["privacy"] == {
        "epsilon": "1",
        "delta": 0,
        "neighbours": "add-remove",
        "rows_per_person": 4,
        "person": "who",
    }
    assert (header["schema"]["person"], header["schema"]["format"]) == ("who", 2)
    loaded = pm.load(tmp_path / "r")
    assert (loaded.schema, loaded.plan.privacy.person) == (schema, "who")
    assert "all rows of one 'who', at most 4 of which are kept" in str(loaded.plan)
    assert "about      the kept rows" in str(loaded.plan)


@pytest.mark.parametrize("place", ["schema", "plan"])
def test_a_header_that_contradicts_itself_is_refused(tmp_path, place):
    synthesizer(pm.Schema(NARROW, person="who"), 4, 1).fit(visits().select(["who", "age"])).save(tmp_path / "r")
    header, table = files.read_release(tmp_path / "r")
    del (header["schema"] if place == "schema" else header["plan"]["privacy"])["person"]
    files.write_release(tmp_path / "r", json.loads(json.dumps(header)), table)
    with pytest.raises(ReleaseFileError, match="person"):
        pm.load(tmp_path / "r")


def test_what_is_refused(tmp_path):
    schema = pm.Schema(NARROW, person="who")
    with pytest.raises(ArgumentError, match="needs neighbours='add-remove'"):
        pm.Synthesizer(schema, epsilon=1, neighbours="replace")
    with pytest.raises(SchemaError, match=r"no column of the schema\. Did you mean 'who'"):
        pm.Schema(NARROW, person="whoo")
    with pytest.raises(SchemaError, match='must have type = "drop"'):
        pm.Schema(NARROW, person="age")
    with pytest.raises(SchemaError, match="write the name of the column"):
        pm.Schema(NARROW, person=3)
    with pytest.raises(SchemaError, match="'who' says whose row it is, and holds lists"):
        synthesizer(schema).fit(pa.table({"who": [[1]], "age": [3]}))
    with pytest.raises(SchemaError, match="no column 'who'"):
        synthesizer(schema).fit(pa.table({"age": [3]}))

    class Own:
        def count(self, partitions, progress=None):
            return []

    with pytest.raises(ArgumentError, match="Source of one's own"):
        synthesizer(schema).fit(Own())
    with pytest.raises(ArgumentError, match="goes with a schema"):
        TableSource(pa.table({"who": ["a"], "age": [3]}), schema)


TOML = """format = 2
person = "who"

[columns.who]
type = "drop"

[columns.age]
type = "integer"
low = 0
high = 99
"""


def test_schema_files_with_a_person_are_of_format_2():
    schema = pm.Schema.from_text(TOML)
    assert schema == pm.Schema(NARROW, person="who") != pm.Schema(NARROW)
    assert schema.to_toml() == TOML
    assert pm.Schema.from_json(schema.to_json()) == schema
    assert pm.Schema(NARROW).to_json()["format"] == 1
    assert schema.only(["age"]).person == "who"
    assert repr(schema) == "Schema({'who': Drop, 'age': Integer}, person='who')"
    for text, problem in (
        (TOML.replace("format = 2", "format = 1"), r"line 1: the schema names a person.*Write format = 2"),
        (TOML.replace("format = 2", "format = 3"), "line 1: .*update privmeasure"),
        (TOML.replace('person = "who"', 'person = "whom"'), "line 2: person names 'whom'.*Did you mean 'who'"),
        (TOML.replace('person = "who"', "person = 7"), "line 2: person is a number"),
    ):
        with pytest.raises(SchemaError, match=problem):
            pm.Schema.from_text(text)
    with pytest.raises(SchemaError, match="names a person, which is of format 2"):
        pm.Schema.from_json(schema.to_json() | {"format": 1})


def test_plans_at_other_numbers_of_rows_per_person():
    synth = synthesizer(pm.Schema(WIDE, person="who"), 4, 1)
    plans = synth.guarantees_per_person(5_000)
    assert [plan.privacy.rows_per_person for plan in plans] == [1, 2, 4, 8, 16]
    assert plans[2] == synth.plan(5_000)
    worst = [max(column.guarantee for column in plan.trees) for plan in plans]
    assert worst == sorted(worst)
    assert {plan.privacy.person for plan in synth.guarantees(5_000)} == {"who"}


def test_confidential_counts_of_persons(tmp_path):
    schema = pm.Schema(NARROW, person="who")
    table = pa.table({"who": ["a"] * 5 + ["b"] * 2 + ["c", None, " "], "age": [1] * 10})
    changes = count_changes(schema, table.to_batches(max_chunksize=3))
    assert repr(changes.persons) == "ConfidentialPersons(...)"
    assert changes.to_json()["person"] == {
        "persons": 3,
        "rows_without_id": 2,
        "most_rows": 5,
        "rows_per_person": [
            {"k": k, "kept": kept, "dropped": 8 - kept} for k, kept in ((1, 3), (2, 5), (4, 7), (8, 8), (16, 8))
        ],
    }


def test_progress_is_the_same_whatever_the_rows():
    schema, told = pm.Schema(NARROW, person="who"), []
    for rows in (0, 5, 3_000):
        steps = []
        synthesizer(schema).fit(visits(rows).select(["who", "age"]), progress=lambda *step, s=steps: s.append(step))
        told.append(steps)
    assert told[0] == told[1] == told[2]

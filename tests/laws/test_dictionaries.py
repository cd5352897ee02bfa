"""The law of rows where a column comes with a dictionary: what an index becomes depends on that index alone.

An index may be null, negative or too large, and a dictionary may hold null. None of these may raise, and none may
change what the other rows become: not in tables, in Feather and Parquet files, in pandas, nor as the id of a person.
"""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from privmeasure.sources.files import open_table
from privmeasure.tables import Boolean, Category, Date, Datetime, Drop, Integer, Number, Place, Schema, Time
from privmeasure.tables.frames import to_arrow
from privmeasure.tables.persons import read_ids

from .test_rows import check_neighbours, frame, schema_of

DAYS = [dt.date(2020, 2, 29), None, dt.date(1999, 12, 31)]
KINDS = {
    "category": (Category(["F", "M", "x"], nullable=True), pa.array(["M", None, "F"])),
    "unknown": (Category(["F", "M", "x"], unknown="x"), pa.array(["F", "zz", "M"])),
    "number": (Number(0, 10, nullable=True), pa.array([2.5, None, 7.0])),
    "not nullable": (Number(0, 10), pa.array([2.5, None, 7.0])),
    "integer": (Integer(0, 9, nullable=True), pa.array([3, None, 7], pa.int16())),
    "boolean": (Boolean(nullable=True), pa.array(["yes", None, "no"])),
    "date": (Date("1900-01-01", "2030-12-31", nullable=True), pa.array(DAYS)),
    "text of a date": (Date("1900-01-01", "2030-12-31", nullable=True), pa.array(["2020-02-29", None, "x"])),
    "datetime": (Datetime("2020-01-01", "2021-01-01", nullable=True), pa.array([*DAYS]).cast(pa.timestamp("us"))),
    "time": (Time(resolution="1h", nullable=True), pa.array([dt.time(7), None, dt.time(23, 59)])),
}
"""A column, and the values of a dictionary; the one in the middle is null, or is not declared."""
USUAL = [0, 2, 1, 0, None, 2]
INDICES = {"int8": [3, -1, 127, -128], "int64": [3, -1, 2**63 - 1, -(2**63)], "uint64": [3, 255, 2**63, 2**64 - 1]}
"""Indices of which three values have none, by the type of the indices."""


def coded(indices, values, type="int8"):
    return pa.DictionaryArray.from_arrays(pa.array(indices, type), values, safe=False)


def beside(usual, odd):
    """Yield rows with an odd one first, in the middle, last and alone, and where it stands."""
    for place in (0, len(usual) // 2, len(usual)):
        yield [*usual[:place], odd, *usual[place:]], place
    yield [odd], 0


def without(points, place):
    return np.delete(points, place, axis=0)


def same(one, other):
    return np.array_equal(one, other, equal_nan=True)


def rows_of(table, column):
    """The points of a table that was opened: of all its batches, one after the other."""
    return np.concatenate([np.empty((0, column.domain.width)), *(column.encode([b.column(0)]) for b in table)])


def check_row(read, column, values, type, odd, usual=USUAL):
    """`read` gives the points of a dictionary array: an odd index is a missing value, and no other row changes."""
    wanted, missing = read(coded(usual, values, type))[0], column.encode([pa.nulls(1, values.type)])
    assert len(wanted) == len(usual)
    for indices, place in beside(usual, odd):
        found, seen = read(coded(indices, values, type))
        assert len(found) == len(indices), (odd, type, place)
        assert same(without(found, place), wanted[: len(found) - 1]), (odd, type, place)
        assert same(found[place : place + 1], missing), (odd, type, place, seen)


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_index_changes_no_other_row(kind):
    """In an array, in several chunks, in slices, and in a dictionary inside an extension or a dictionary."""
    column, values = KINDS[kind]

    def forms(array):
        yield array
        yield pa.chunked_array([array[:2], array[2:3], array[3:]], array.type)
        yield pa.concat_arrays([array, array])[len(array) :]
        yield pa.ExtensionArray.from_storage(pa.opaque(array.type, "a", "b"), array)
        yield pa.RecordBatch.from_arrays([array], ["x"]).column(0)

    for type, odds in INDICES.items():
        for odd in [None, *odds]:
            for i in range(5):
                check_row(lambda array, i=i: (column.encode([list(forms(array))[i]]), i), column, values, type, odd)


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_index_in_feather_changes_no_other_row(tmp_path, kind):
    """In one batch, in many whose dictionary is the same, and in many whose dictionary grows."""
    column, values = KINDS[kind]
    path = tmp_path / "t.feather"

    def one(array):
        feather.write_feather(pa.table({"x": array}), path, compression="uncompressed")

    def many(array):
        feather.write_feather(pa.table({"x": array}), path, compression="lz4", chunksize=2)

    def growing(array):
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        with pa.ipc.new_file(path, pa.schema({"x": array.type}), options=options) as file:
            whole = array.dictionary
            for size, part in ((2, array[:2]), (3, array[2:4]), (3, array[4:])):
                part = pa.DictionaryArray.from_arrays(part.indices, whole[:size], safe=False)
                file.write_batch(pa.RecordBatch.from_arrays([part], ["x"]))

    for type, odds in INDICES.items():
        for odd in [None, *odds]:
            for write in (one, many, growing):
                written = lambda array, write=write: (  # noqa: E731
                    write(array),
                    (rows_of(open_table(path).batches(["x"]), column), write.__name__),
                )[1]
                check_row(written, column, values, type, odd)


@pytest.mark.parametrize("odd", [None, 3, -1, 127])
def test_an_odd_index_changes_nothing_that_is_seen_of_a_fit(tmp_path, odd):
    """Counts of the whole fit, its progress and its warnings, from a table and from a Feather file."""
    column, values = KINDS["category"]
    paths = tmp_path / "one.feather", tmp_path / "other.feather"
    for rows, _ in beside(USUAL, odd):
        usual = USUAL if len(rows) > 1 else []
        tables = [pa.table({"x": coded(part, values), "id": pa.array(["i"] * len(part))}) for part in (usual, rows)]
        check_neighbours(schema_of(column), *tables)
        for path, table in zip(paths, tables, strict=True):
            feather.write_feather(table, path, chunksize=3)
        check_neighbours(schema_of(column), *paths)


def test_an_odd_index_of_one_column_changes_no_other_column(tmp_path):
    """Nor does a null: the rows of a batch stay side by side."""
    schema = Schema({"home": Place("a", "b", nullable=True), "c": Category(["F", "M"], nullable=True), "id": Drop()})
    usual = [0, 1, None, 0, 1]
    numbers, texts = pa.array([46.9, -33.0]), pa.array(["M", "F"])

    def table(a, b, c):
        return pa.table({"a": coded(a, numbers), "b": coded(b, numbers), "c": coded(c, texts), "id": ["i"] * len(a)})

    path = tmp_path / "t.feather"
    wanted = schema.encode(table(usual, usual, usual))
    for odd in (None, 2, -1, 127):
        for at in range(3):
            cells = [[*usual, 0, *usual] for _ in range(3)]
            cells[at][5] = odd
            feather.write_feather(table(*cells), path, chunksize=4)
            points = np.concatenate([schema.encode(batch) for batch in open_table(path).batches(["a", "b", "c"])])
            assert same(points[:5], wanted), (odd, at)
            assert same(points[6:], wanted), (odd, at)
            assert np.isnan(points[5]).tolist() == ([True, True, False] if at < 2 else [False, False, True])


# -------------------------------------------------------------------------------------------------------------- parquet

MANY = [f"v{i:03}" for i in range(200)]
CODES = Category([*MANY, "other"], nullable=True)


def parquet(path, codes, *, stored, groups=1):
    """Write texts with an index of one byte for each row, which can be changed, and return where these bytes are."""
    texts = pa.array(MANY)
    table = pa.table({"x": texts.take(pa.array(codes)) if stored == "text" else coded(codes, texts, "int16")})
    options = {"compression": "none", "write_statistics": False, "data_page_version": "1.0", "use_dictionary": True}
    pq.write_table(table, path, row_group_size=len(codes) // groups, **options)
    order = list(dict.fromkeys(codes)) if stored == "text" else list(range(200))
    raw, indices = path.read_bytes(), bytes(order.index(code) for code in codes)
    first = indices[: len(codes) // groups]
    assert raw.count(first) == 1
    return raw.index(first)


@pytest.mark.parametrize("stored", ["text", "dictionary"])
@pytest.mark.parametrize("odd", [200, 255])
def test_an_odd_index_in_parquet_changes_no_other_row(tmp_path, stored, odd):
    """Texts keep the indices of the file: one that is too large reaches us, and is a missing value."""
    path = tmp_path / "t.parquet"
    codes = [int(code) for code in np.random.default_rng(0).permutation(200)]
    start = parquet(path, codes, stored=stored)
    wanted = rows_of(open_table(path).batches(["x"]), CODES)
    assert wanted[:, 0].tolist() == codes
    whole = path.read_bytes()
    for place in (0, 99, 199):
        path.write_bytes(whole[: start + place] + bytes([odd]) + whole[start + place + 1 :])
        found = rows_of(open_table(path).batches(["x"]), CODES)
        assert same(without(found, place), without(wanted, place)), place
        assert np.isnan(found[place]).all(), place


@pytest.mark.parametrize("odd", [None, "undeclared", "v007", ""])
def test_dictionaries_of_many_row_groups_are_each_their_own(tmp_path, odd):
    """A cell that opens, closes or overfills the dictionary of its group changes no row of it."""
    rng, path = np.random.default_rng(1), tmp_path / "t.parquet"
    usual = [MANY[i] for i in rng.integers(0, 200, 60)]
    for stored in ("text", "dictionary"):
        for options in ({}, {"dictionary_pagesize_limit": 64}, {"use_dictionary": False}, {"data_page_size": 40}):

            def points(texts, stored=stored, options=options):
                column = pa.array(texts, pa.string())
                table = pa.table({"x": column if stored == "text" else column.dictionary_encode()})
                pq.write_table(table, path, row_group_size=17, **options)
                return rows_of(open_table(path).batches(["x"]), CODES)

            wanted, alone = points(usual), CODES.encode([pa.array([odd], pa.string())])
            for rows, place in beside(usual, odd):
                found = points(rows)
                assert len(found) == len(rows)
                assert same(without(found, place), wanted[: len(rows) - 1]), (stored, options, place)
                assert same(found[place : place + 1], alone), (stored, options, place)


# --------------------------------------------------------------------------------------------------------- pandas, ids


@pytest.mark.parametrize("odd", [-1, -128, 2, 127])
def test_an_odd_code_of_pandas_changes_no_other_row(odd):
    """pandas checks codes where it is asked to: it need not be."""
    kind = pd.CategoricalDtype(["M", "F"])
    make = lambda codes: pd.Series(pd.Categorical._simple_new(np.array(codes, np.int8), kind))  # noqa: E731
    column, usual = KINDS["category"][0], [0, 1, -1, 1]
    for codes, place in beside(usual, odd):
        check_neighbours(schema_of(column), frame(make(usual if len(codes) > 1 else [])), frame(make(codes)))
        points = column.encode([to_arrow(frame(make(codes)))[0].column("x")])
        assert np.isnan(points[place]).all()


@pytest.mark.parametrize("odd", [-1, -5, 2, 127])
def test_an_odd_code_of_an_index_changes_no_other_row(odd):
    column = KINDS["category"][0]

    def table(codes):
        index = pd.MultiIndex([["M", "F"], ["i"]], [codes, [0] * len(codes)], names=["x", "id"], verify_integrity=False)
        return pd.DataFrame(index=index)

    for codes, place in beside([0, 1, -1, 1], odd):
        check_neighbours(schema_of(column), table([0, 1, -1, 1] if len(codes) > 1 else []), table(codes))
        points = column.encode([to_arrow(table(codes))[0].column("x")])
        assert np.isnan(points[place]).all()


def test_an_odd_index_is_nobody_and_changes_no_other_person():
    for values in (pa.array(["anna", None, "carl"]), pa.array([1.5, None, 7.0]), pa.array([3, None, 7])):
        for type, odds in INDICES.items():
            wanted = read_ids(coded(USUAL, values, type)).to_pylist()
            for odd in [None, *odds]:
                for indices, place in beside(USUAL, odd):
                    found = read_ids(coded(indices, values, type)).to_pylist()
                    assert found.pop(place) is None, (odd, type)
                    assert found == wanted[: len(found)], (odd, type)

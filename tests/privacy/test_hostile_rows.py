"""Attacks on the law of rows: what one hostile row, or one row more, could change of others or let be seen.

Some of them worked once, and each of those has its reason beside it. The others never did: they are the strongest.
"""

import datetime as dt
import gzip
import io
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from laws.test_rows import check_neighbours, frame, observed, schema_of
from privmeasure import Box
from privmeasure.domains import Circle, Integers, Sphere
from privmeasure.errors import DataError, SchemaError
from privmeasure.sources import arrays as memory
from privmeasure.sources import files as reading
from privmeasure.sources import lines, tally
from privmeasure.sources import tables as table
from privmeasure.sources.files import open_table
from privmeasure.sources.lines import CellReader, Grammar, whole_records
from privmeasure.tables import Category, Date, Datetime, Drop, Integer, Number, Place, Schema, Time
from privmeasure.tables.arrow import sound_texts
from privmeasure.tables.columns.fields import ColumnError

SIGNALLING = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
SIGNALLING_SINGLE = np.array([0x7F800001], np.uint32).view(np.float32)
"""NaN that raises the flag of an invalid operation wherever it is computed with."""
CODE = Category(["F", "M", "1", "0.10000000149011612", "2020-02-29 00:00:00", "1 days 00:00:00"], nullable=True)
FINE = "%Y-%m-%d %H:%M:%S.%f"


LETTERS = [b"a", b",", b'"', b"\r", b"\n", b"\r\n", b'""', b',"', b'",', b'"\n', b"\xff", b"aaaa"]


def rows_of(data, grammar, block, longest, monkeypatch):
    """Return the rows of a text that is read in blocks of so many bytes."""
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    monkeypatch.setattr(lines, "LONGEST_LINE", longest)
    names = [str(i) for i in range(grammar.width)]
    reader = CellReader(grammar, names, names)
    batches = [reader.read(part) for part in whole_records(io.BytesIO(data).read, grammar)]
    return [
        row for batch in batches for row in zip(*(c.cast(pa.binary()).to_pylist() for c in batch.columns), strict=True)
    ]


# ---------------------------------------------------------------------------------------------------- those that worked


def test_a_long_line_is_the_same_row_wherever_it_stands(tmp_path):
    """A line of 16.5 MiB was read or missing, by where in a block it began: by the rows before it."""
    schema = Schema({"x": Integer(0, 9, nullable=True), "note": Drop()})
    long = b"2," + b"n" * ((1 << 24) + (1 << 19)) + b"\n"
    paths = [tmp_path / name for name in ("one.csv", "other.csv")]
    for path, before in zip(paths, (1, 150_001), strict=True):
        path.write_bytes(b"x,note\n" + b"1,a\n" * before + long)
    check_neighbours(schema, *paths, rows=150_000)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_longest_line_is_the_same_row_in_blocks_of_every_size(monkeypatch, end):
    """A line end that was cut in two counted as one more byte of its line."""
    for length in range(5, 12):
        data = end.join([b"1,a", b"2," + b"n" * (length - 2), b"3,b", b""])
        wanted = [(b"1", b"a"), (b"2", b"n" * (length - 2)) if length <= 8 else (None, None), (b"3", b"b")]
        for block in range(1, 30):
            assert rows_of(data, Grammar(",", 2), block, 8, monkeypatch) == wanted


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 130])
@pytest.mark.parametrize(
    "column", [Number(0, 10), Number(1, 9, transform="log"), Integer(0, 9), Integer(0, 9, nullable=True)]
)
def test_a_signalling_nan_does_not_depend_on_its_place_nor_warn(column, count):
    """It was the high bound in the last few rows of an array and the low one before them, and integers warned of it."""
    one, other = (pa.table({"x": np.repeat(SIGNALLING, rows), "id": ["i"] * rows}) for rows in (count, count + 1))
    check_neighbours(schema_of(column), one, other)


@pytest.mark.parametrize("odd", [np.longdouble("1e400"), SIGNALLING_SINGLE[0]], ids=["overflow", "nan"])
def test_a_masked_array_does_not_warn_of_a_value(odd):
    usual = np.array([0.5, 0.25], np.asarray(odd).dtype)
    check_neighbours(Box([(0, 1)]), np.ma.array(usual), np.ma.array(np.append(usual, odd)))


@pytest.mark.parametrize(
    "column",
    [
        Datetime("2020-01-01", "2020-01-02", resolution="100ns", format=FINE, nullable=True),
        Time(resolution="100ns", format=FINE, nullable=True),
    ],
    ids=["datetime", "time"],
)
@pytest.mark.parametrize("text", ["9999-12-31 00:00:00.5", "0001-01-01 00:00:00.5"])
def test_an_instant_beyond_64_bits_does_not_raise(column, text):
    usual = ["2020-01-01 10:00:00.5"]
    one, other = (pa.table({"x": cells, "id": ["i"] * len(cells)}) for cells in (usual, [*usual, text]))
    check_neighbours(schema_of(column), one, other)


class Encoding(str):
    """A text that encodes itself as it likes."""

    __slots__ = ()

    def __str__(self):
        return self

    def encode(self, *options):
        return type("Decoded", (), {"decode": lambda self: 5})()


class Floor(float):
    """A number that cannot be rounded."""

    def __floor__(self):
        raise RuntimeError("private")


def test_an_object_of_a_class_of_its_own_does_not_raise():
    one = frame(pd.Series(["1"], dtype=object))
    check_neighbours(schema_of(Integer(0, 9)), one, frame(pd.Series(["1", Encoding("2")], dtype=object)))
    for odd in (Floor(1.5), np.longdouble("1e4900")):
        one, other = (frame(pd.Series(pd.Categorical(cells))) for cells in (["a"], ["a", odd]))
        check_neighbours(schema_of(Integer(0, 9)), one, other)


@pytest.mark.parametrize("value", [np.float32(0.1), np.datetime64("2020-02-29"), dt.timedelta(1)], ids=str)
def test_a_category_of_pandas_is_the_same_text_whatever_the_others_are(value):
    """Beside a text it stays what it was, beside its kind pandas makes one of its own types of it."""
    one, other = (frame(pd.Series(pd.Categorical(cells))) for cells in ([value], [value, "a"]))
    check_neighbours(schema_of(CODE), one, other)


def test_an_index_that_points_nowhere_is_missing():
    """One below 0 was the first value of the dictionary, which is that of another row."""
    for index in (-1, -128, 7):
        for values in (["F", "M"], ["M", "F", "x"]):
            array = pa.DictionaryArray.from_arrays(pa.array([index, None], pa.int8()), pa.array(values), safe=False)
            assert np.isnan(CODE.encode([array])).all()


def encoded_runs(values):
    return pa.RunEndEncodedArray.from_arrays(pa.array([len(values)], pa.int32()), values[:1])


UNREADABLE = {
    "zone": lambda rows: pa.array([0] * rows).cast(pa.timestamp("s", "Mars/Olympus")),
    "views": lambda rows: encoded_runs(pa.array(["F"] * max(rows, 1), pa.string_view()))[:rows],
    "dictionary": lambda rows: encoded_runs(pa.array(["F"] * max(rows, 1)).dictionary_encode())[:rows],
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_type_that_cannot_be_read_is_refused_without_rows_too(kind):
    """The first row raised, with Arrow's words, and no rows at all did not."""
    schema = schema_of(Date("1900-01-01", "2030-12-31"))
    one, other = (pa.table({"x": UNREADABLE[kind](rows), "id": pa.array(["i"] * rows)}) for rows in (0, 1))
    check_neighbours(schema, one, other)
    with pytest.raises(SchemaError, match="cannot be read"):
        schema.check(one.column_names, one.schema.types)


@pytest.mark.parametrize("name", ["Factory", "posix/Europe/Berlin"])
def test_a_zone_that_only_python_knows_is_refused(name):
    """A file without rows was read, and its first row raised."""
    with pytest.raises(ColumnError, match="not known"):
        Datetime("2020-01-01", "2021-01-01", timezone=name)


def test_texts_of_more_than_two_gigabytes_are_read_without_their_dictionary(tmp_path, monkeypatch):
    """One cell of nearly 2 GiB and the rest of its column did not fit a dictionary: the file was called damaged."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": ["F", "M", None, "zz"] * 100_000}), path)
    wanted = observed(Schema({"x": CODE}), path)
    monkeypatch.setattr(pq, "ParquetFile", Full)
    found = observed(Schema({"x": CODE}), path)
    assert wanted[0] == found[0]
    assert np.array_equal(wanted[1], found[1])


class Full(pq.ParquetFile):
    """A file whose second batch does not fit a dictionary."""

    def __init__(self, path, read_dictionary=None, **options):
        super().__init__(path, read_dictionary=read_dictionary, **options)
        self.dictionary = read_dictionary

    def iter_batches(self, **options):
        for i, batch in enumerate(super().iter_batches(**options)):
            if i and self.dictionary:
                raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")
            yield batch


def test_replaced_bytes_have_room():
    """Each takes three bytes then: 0.75 GB of them did not fit the type that they came in."""
    odd = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    assert sound_texts(odd).type == pa.large_string()


@pytest.mark.parametrize(("value", "other"), [(pd.Interval(0, 1), pd.Interval(0.5, 2)), (1, 1j), (1.5, 1j)], ids=str)
def test_a_category_is_the_same_text_beside_one_of_a_wider_type(value, other):
    """Pandas gives all categories one type: (0, 1] became (0.0, 1.0] beside (0.5, 2], and 1 became (1+0j) beside 1j."""
    column = Category(["(0, 1]", "(0.0, 1.0]", "1", "(1+0j)", "1.5", "(1.5+0j)"], nullable=True)
    one, more = (frame(pd.Series(pd.Categorical(cells))) for cells in ([value], [value, other]))
    check_neighbours(schema_of(column), one, more)


def test_a_file_that_is_written_over_in_its_place_is_not_read_again(tmp_path):
    """With its size and its time of change set back it was taken for the same."""
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n")
    table, status = open_table(path), path.stat()
    path.write_text("x\n7\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(DataError, match="changed"):
        list(table.batches(["x"]))


# ------------------------------------------------------------------------------------------------- those that never did


def test_no_place_in_an_array_changes_what_a_double_becomes():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 64, 3000, np.uint64)
    bits[::3] |= np.uint64(0x7FF0000000000000)
    bits[1::5] &= np.uint64(0x800FFFFFFFFFFFFF)
    values = np.concatenate([bits.view(np.float64), rng.normal(0, 100, 1000)])
    spaces = [Box([(0, 1)]), Integers(0, 100), Circle(24), Sphere()]
    columns = [Number(0, 10), Number(0.5, 1e9, transform="log"), Number(0, 1e6, breaks=[10]), Place("a", "b")]
    for _ in range(40):
        some = rng.integers(0, len(values), rng.integers(1, 70))
        for space in spaces:
            points = np.repeat(values[:, None], space.width, axis=1)
            assert np.array_equal(space.locate(points, 20)[some], space.locate(points[some], 20))
        for column in columns:
            whole, part = (column.encode([pa.array(v)] * len(column.sources("x"))) for v in (values, values[some]))
            assert np.array_equal(whole[some], part, equal_nan=True)


def test_lines_in_blocks_of_every_size_are_the_same_rows(monkeypatch):
    rng = np.random.default_rng(0)
    letters = [b"a", b",", b'"', b"\r", b"\n", b"\r\n", b"\xff", b"\0", b'""', b"\xef\xbb\xbf"]
    for _ in range(150):
        data = b"".join(letters[i] for i in rng.integers(0, len(letters), 30))
        grammar = Grammar(",", int(rng.integers(1, 4)))
        found = [rows_of(data, grammar, block, 1 << 24, monkeypatch) for block in (1, 2, 7, 1 << 20)]
        assert found[0] == found[1] == found[2] == found[3]
        assert len(found[0]) == len([line for line in data.splitlines() if line or grammar.width == 1])


def test_a_zipped_file_in_many_members_is_the_same_rows(tmp_path):
    schema = Schema({"x": Integer(0, 9, nullable=True), "note": Drop()})
    text = b"x,note\n" + b'1,"a\n7,b\r\n' * 20_000
    one, other = tmp_path / "one.csv.gz", tmp_path / "other.csv.gz"
    one.write_bytes(gzip.compress(text))
    parts = [text[i : i + 9973] for i in range(0, len(text), 9973)]
    other.write_bytes(b"".join(gzip.compress(part) + gzip.compress(b"") * 50 for part in parts))
    check_neighbours(schema, one, other, rows=0)


def rows_by_letters(data, width, longest):
    """The rows of a text whose quoted cells may hold line ends: one letter after the other."""
    rows, cells, cell, state, length, text = [], [], b"", "start", 0, data.replace(b"\r\n", b"\0")
    for letter in (text[i : i + 1] for i in range(len(text) + 1)):
        if letter in b"\r\n\0" and (state != "quoted" or not letter):  # the last is none
            if (length or width == 1) and (letter or length):
                fine = state != "quoted" and length <= longest and len(cells) + 1 == width
                last = cell or (None if state in ("start", "plain") else b"")
                rows.append((*cells, last) if fine else (None,) * width)
            cells, cell, state, length = [], b"", "start", 0
            continue
        length += 2 if letter == b"\0" else 1
        if state == "quoted":
            cell, state = (cell, "after") if letter == b'"' else (cell + letter.replace(b"\0", b"\r\n"), state)
        elif letter == b'"' and state in ("start", "after"):
            cell, state = cell + letter * (state == "after"), "quoted"
        elif letter == b",":
            cells, cell, state = [*cells, cell or (b"" if state == "after" else None)], b"", "start"
        else:
            cell, state = cell + letter, "beside" if state == "after" else "plain"
    return rows


def test_quoted_line_ends_and_long_records_are_the_same_rows_in_every_block(monkeypatch):
    """Against a reading letter by letter: open quotes, ends that are cut in two, records about as long as allowed."""
    rng = np.random.default_rng(0)
    for _ in range(600):
        data = b"".join(LETTERS[i] for i in rng.integers(0, len(LETTERS), rng.integers(1, 25)))
        grammar, longest = Grammar(",", int(rng.integers(1, 4)), True), int(rng.choice([3, 5, 8, 12, 1 << 24]))
        monkeypatch.setattr(lines, "BLOCK_BYTES", int(rng.choice([1, 2, 3, 5, 7, 16, 1 << 20])))
        monkeypatch.setattr(lines, "LONGEST_LINE", longest)
        names = [str(i) for i in range(grammar.width)]
        batches = map(CellReader(grammar, names, names).read, whole_records(io.BytesIO(data).read, grammar))
        columns = [[c.cast(pa.binary()).to_pylist() for c in batch.columns] for batch in batches]
        found = [row for cells in columns for row in zip(*cells, strict=True)]
        assert found == rows_by_letters(data, grammar.width, longest), data


@pytest.mark.parametrize(("mechanism", "depth"), [("pmm", None), ("pmm", 30), ("psmm", 5), ("columns", None)])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_no_threshold_and_no_thread_shows(tmp_path, monkeypatch, mechanism, depth, neighbours):
    """With one seed the release is the same wherever blocks, caches and threads begin; so is all that is told."""
    schema, seen, told = Schema({"a": Number(0, 1), "b": Integer(0, 9, nullable=True)}), {}, []
    everyone = pa.table({"a": np.linspace(0, 1, 61), "b": np.arange(61) % 10})
    options = {"epsilon": 1, "neighbours": neighbours, "mechanism": mechanism, "depth": depth}
    for rows in (61, 60):
        pq.write_table(everyone[:rows], tmp_path / "t.parquet", row_group_size=20)
        for cache, few, block, pending in ((1 << 29, 4, 1 << 17, 1 << 22), (16 * 60, 1, 7, 3), (0, 0, 1, 0)):
            limits = {(table, "CACHE_BYTES"): cache, (table, "FEW_BATCHES"): few, (tally, "PENDING"): pending}
            for place, value in (limits | {(module, "BLOCK"): block for module in (table, memory, reading)}).items():
                monkeypatch.setattr(*place, value)
            for data, threads in ((everyone[:rows], 3), (tmp_path / "t.parquet", 1), (tmp_path / "t.parquet", 3)):
                made, steps = pm.Synthesizer(schema, threads=threads, **options), []
                made.fit(data, progress=lambda *step, steps=steps: steps.append(step), insecure_seed=2)
                told.append(steps)
                found = made.sample(50, seed=3).to_pydict(), str(made.plan_)
                assert seen.setdefault(rows, found) == found
    assert all(steps == told[0] for steps in told)


@pytest.mark.parametrize("at", [0, 1, 2, 5])
def test_texts_are_read_without_their_dictionary_from_any_batch_on(tmp_path, monkeypatch, at):
    schema, path = Schema({"x": Category(["F", "M"], nullable=True)}), tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": ["F", "M", None, "zz", "F"] * 21}), path, row_group_size=20)
    monkeypatch.setattr(reading, "BLOCK", 8)
    wanted, plain = observed(schema, path), pq.ParquetFile

    class Full(plain):
        def iter_batches(self, **options):
            for i, batch in enumerate(super().iter_batches(**options)):
                if i == at and pa.types.is_dictionary(batch.schema.types[0]):
                    raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")
                yield batch

    monkeypatch.setattr(pq, "ParquetFile", Full)
    found = observed(schema, path)
    assert wanted[0] == found[0]
    assert np.array_equal(wanted[1], found[1])

"""Content is not structure: what a Feather file may hold in one row, and what is wrong with the file as a whole.

Content that cannot be read is a missing value of its own row, and changes no other. A file in which a value would be
looked for in memory that is not its own, or that counts its nulls wrongly, is refused, whatever its values are.
"""

import datetime as dt
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from privmeasure.errors import DataError
from privmeasure.sources.files import open_table
from privmeasure.tables import Category, Date, Number, Time

from .test_rows import check_neighbours, schema_of

ID = ["an id"]


def bytes_as(cells, type):
    return pa.array(cells, pa.large_binary() if pa.types.is_large_string(type) else pa.binary()).view(type)


def texts_as(type):
    def make(cells):
        if not pa.types.is_string_view(type):
            return bytes_as(cells, type)
        words = [b"" if cell is None else cell.ljust(16, b" ") for cell in cells]  # too long to be in the view itself
        views = b"".join(
            (16).to_bytes(4, "little") + word[:4] + bytes(4) + (16 * i).to_bytes(4, "little") if word else bytes(16)
            for i, word in enumerate(words)
        )
        held = b"".join(word.ljust(16) for word in words)
        return pa.Array.from_buffers(type, len(cells), [None, pa.py_buffer(views), pa.py_buffer(held)])

    return make


def coded(cells):
    return pa.DictionaryArray.from_arrays(pa.array(cells, pa.int32()), pa.array(["F", "M"]), safe=False)


def letters_coded(cells):
    return pa.DictionaryArray.from_arrays(pa.array(range(len(cells)), pa.int8()), bytes_as(cells, pa.string()))


def runs(cells):
    children = [pa.array(range(1, len(cells) + 1), pa.int32()), bytes_as(cells, pa.string())]
    return pa.Array.from_buffers(pa.run_end_encoded(pa.int32(), pa.string()), len(cells), [None], 0, children=children)


def days(cells):
    return pa.array(cells, pa.int64()).view(pa.date64())


def times(cells):
    return pa.array(cells, pa.int32()).view(pa.time32("s"))


def decimals(cells):
    return pa.array([cell.to_bytes(16, "little") for cell in cells], pa.binary(16)).view(pa.decimal128(5, 1))


SEX = Category(["F", "M"], nullable=True)
CONTENT = {
    "text": (SEX, texts_as(pa.string()), [b"F", b"M"], [b"\xff\xfe", b"F\xff"]),
    "large text": (SEX, texts_as(pa.large_string()), [b"F", b"M"], [b"\xff\xfe", b"F\xff"]),
    "view": (SEX, texts_as(pa.string_view()), [b"F", b"M"], [b"\xff\xfe", b"F\xff"]),
    "text of a dictionary": (SEX, letters_coded, [b"F", b"M"], [b"\xff\xfe", b"F\xff"]),
    "text of a run": (SEX, runs, [b"F", b"M"], [b"\xff\xfe", b"F\xff"]),
    "index": (SEX, coded, [0, 1], [2, -1, 2**31 - 1]),
    "day with a time": (Date("1900-01-01", "2030-12-31", nullable=True), days, [0, 86_400_000], [1, 2**62]),
    "time beyond a day": (Time(resolution="1h", nullable=True), times, [0, 7200], [86_400, -1, 2**31 - 1]),
    "decimal beyond its digits": (Number(0, 10, nullable=True), decimals, [0, 75], [10**9, 2**126]),
}
"""A column, how its values are made, usual ones, and odd ones."""


def written(path, column):
    table = pa.table({"x": column, "id": pa.array(ID * len(column))})
    feather.write_feather(table, path, compression="uncompressed")
    return path


@pytest.mark.parametrize("kind", CONTENT)
def test_content_that_cannot_be_read_changes_nothing_but_its_row(tmp_path, kind):
    column, make, usual, odd = CONTENT[kind]
    one = written(tmp_path / "one.feather", make(usual * 3))
    for cell in odd:
        for place in (0, 3, 6):
            cells = usual * 3
            cells.insert(place, cell)
            check_neighbours(schema_of(column), one, written(tmp_path / "other.feather", make(cells)))


# ------------------------------------------------------------------------------------------------------------ structure

LETTERS = ["canary", None, "F", "M", "a longer text than a view holds"]


def replaced(content, old, new):
    """Return a file in which some words stand in the place of others; they stand there once."""
    assert content.count(old) == 1
    return content.replace(old, new)


def ends_moved(array, width, words):
    """Return what changes an end in the middle, to each of some words."""
    old = np.frombuffer(array.buffers()[1], width)[: len(array) + 1]
    for word in words:
        new = old.copy()
        new[len(new) // 2] = word
        yield partial(replaced, old=old.tobytes(), new=new.tobytes())


def views_moved(array, at, words):
    """Return what changes a word of one view, to each of some words."""
    old = bytes(array.buffers()[1])[: 16 * len(array)]
    for row, place, word in ((row, place, word) for row in at for place in (0, 8, 12) for word in words):
        new = bytearray(old)
        new[16 * row : 16 * row + 4] = (31).to_bytes(4, "little")
        new[16 * row + place : 16 * row + place + 4] = word.to_bytes(4, "little", signed=True)
        yield partial(replaced, old=old, new=bytes(new))


FAR = [2**31 - 1, -5, 10**6]


def structures():
    """Yield a name, a column, and what damages the file with it."""
    text, large, view = (pa.array(LETTERS * 3, type) for type in (pa.string(), pa.large_string(), pa.string_view()))
    few = pa.array(["canary", "F", "M"])
    codes = pa.array([0, 1, 2, None, 2] * 3, pa.int32())
    yield "text", text, ends_moved(text, np.int32, FAR)
    yield "large text", large, ends_moved(large, np.int64, [*FAR, 2**62])
    yield "text of a dictionary", pa.DictionaryArray.from_arrays(codes, few), ends_moved(few, np.int32, FAR)
    ends = pa.array([4, 9, 15], pa.int32())
    yield "text of a run", pa.RunEndEncodedArray.from_arrays(ends, few), ends_moved(few, np.int32, FAR)
    old = np.array([4, 9, 15], np.int32)
    wrong = [np.array(new, np.int32) for new in ([4, -9, 15], [4, 99, 15], [9, 9, 15], [0, 9, 15])]
    changes = [partial(replaced, old=old.tobytes(), new=new.tobytes()) for new in wrong]
    yield "end of a run", pa.RunEndEncodedArray.from_arrays(ends, few), changes
    yield "view", view, views_moved(view, [4], FAR)
    yield "view of a null", view, views_moved(view, [1], FAR)


STRUCTURE = {name: (column, changes) for name, column, changes in structures()}


@pytest.mark.parametrize("name", STRUCTURE)
def test_a_file_that_points_outside_of_itself_is_refused(tmp_path, name):
    column, changes = STRUCTURE[name]
    path = written(tmp_path / "t.feather", column)
    content, told = path.read_bytes(), set()
    for change in changes:
        path.write_bytes(change(content))
        with pytest.raises(DataError, match="not a complete Feather file") as refused:
            list(open_table(path).batches(["x"]))
        told.add(str(refused.value))
    assert len(told) == 1


COUNTED = {
    "text": pa.array(LETTERS * 3),
    "view": pa.array(LETTERS * 3, pa.string_view()),
    "number": pa.array([1.5, None] * 7),
    "truth": pa.array([True, None] * 7),
    "day": pa.array([dt.date(2020, 2, 29), None] * 7),
    "index": pa.array(LETTERS * 3).dictionary_encode(),
}


@pytest.mark.parametrize("kind", COUNTED)
def test_a_file_that_counts_its_nulls_wrongly_is_refused(tmp_path, kind):
    """Readers skip work where a count says that there are no values, or none that are missing."""
    column = COUNTED[kind]
    path = written(tmp_path / "t.feather", column)
    rows, nulls = len(column), column.null_count
    node = np.array([rows, nulls, rows, 0], np.int64).tobytes()  # of both columns
    for count in (1, nulls + 1, rows):
        wrong = np.array([rows, count, rows, 0], np.int64).tobytes()
        path.write_bytes(replaced(written(path, column).read_bytes(), node, wrong))
        with pytest.raises(DataError, match="not a complete Feather file"):
            list(open_table(path).batches(["x"]))


def test_a_decimal_type_with_more_places_than_digits_is_refused(tmp_path):
    """Arrow looks for the power of ten outside of its table, which ended the process."""
    kinds = [(pa.decimal128, scale) for scale in (39, 44_291, 738_197_507, -39, -(2**31))] + [(pa.decimal64, 19)]
    for decimal, scale in kinds:
        for odd in (decimal(18, scale), pa.dictionary(pa.int8(), decimal(18, scale))):
            with pytest.raises(DataError, match="not a complete Feather file"):
                open_table(written(tmp_path / "t.feather", pa.nulls(2, odd)))
    assert open_table(written(tmp_path / "t.feather", pa.nulls(2, pa.decimal128(22, 38)))).names == ("x", "id")


def test_names_that_are_not_utf_8_are_refused_with_the_file(tmp_path):
    for ending, write in (("feather", feather.write_feather), ("parquet", pq.write_table)):
        path = tmp_path / f"t.{ending}"
        write(pa.table({"canary": [1, 2]}), path, compression="none" if ending == "parquet" else "uncompressed")
        path.write_bytes(path.read_bytes().replace(b"canary", b"can\xffry"))
        with pytest.raises(DataError, match="not a complete"):
            open_table(path)

"""The law of rows, over every reader and every kind of column.

Two inputs of the same names and storage types that differ in one row, well-formed or not: everything that can be seen
before the noise is equal (errors, warnings, progress, types in the header), and the counts differ by that row alone.
"""

import datetime as dt
import gzip
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from depth import DEEP, examples, some
from privmeasure import Box, Synthesizer
from privmeasure.counts import Partition
from privmeasure.sources import tables as engine
from privmeasure.sources.files import open_table
from privmeasure.tables import Boolean, Category, Date, Datetime, Drop, Integer, Number, Place, Schema, Time
from privmeasure.tables.texts import TextForm, with_decimals
from privmeasure.testing import check_column
from privmeasure.testing.hostile import LINES, TEXTS, hostile_arrays, hostile_objects

from .test_columns import COLUMNS, ids

LEVEL = 10
ILLEGAL_CHARACTERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""That no xlsx file can hold."""
TEXT_COLUMNS = {
    "number": (Number(0, 10, nullable=True), ["2.5", "7"]),
    "log": (Number(1, 1e6, transform="log"), ["2.5", "1000"]),
    "breaks": (Number(0, 1e6, breaks=[10, 1000], nullable=True), ["2.5", "100"]),
    "integer": (Integer(0, 100, nullable=True), ["17", "99"]),
    "category": (Category(["F", "M", "1"], nullable=True), ["F", "M"]),
    "numbers": (Category([1, 2.5], nullable=True), ["1", "2.5"]),
    "long": (Category([str(i) for i in range(5000)], unknown="0"), ["17", "4999"]),
    "boolean": (Boolean(nullable=True), ["yes", "no"]),
    "date": (Date("1900-01-01", "2030-12-31", nullable=True), ["2020-02-29", "1999-12-31"]),
    "format": (Date("1900-01-01", "2030-12-31", format="%d.%m.%Y", nullable=True), ["29.02.2020", "01.01.1999"]),
    "datetime": (Datetime("2020-01-01", "2021-01-01", nullable=True), ["2020-02-29T10:30:05", "2020-06-01 00:00"]),
    "zone": (Datetime("2020-01-01", "2021-01-01", timezone="Europe/Berlin"), ["2020-02-29", "2020-03-29"]),
    "time": (Time(resolution="1h", nullable=True), ["07", "07"]),
    "minutes": (Time(resolution="1min", nullable=True), ["7:30", "23:59"]),
}  # fmt: skip

KEPT = {"Number-0", "Category-10", "Category-13", "Date-18", "Datetime-23", "Place-31"}
"""Columns that show planted faults: they are always tried."""


def schema_of(column):
    return Schema({"x": column, "id": Drop()})


def observed(schema, data, **options):
    """What can be seen of a fit before the noise, and the private counts."""
    told, outcome, header = [], None, None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        synthesizer = Synthesizer(schema, epsilon=1, neighbours="add-remove", threads=1)
        try:
            source, layout = synthesizer._open(data, lambda *step: told.append(step), TextForm(**options))
            header = None if layout is None else layout.to_json()
            domain = synthesizer.domain
            partition = Partition.of(domain, min(LEVEL, domain.deepest))
            counts = [source.count([partition], lambda *step: told.append(step))[0].counts for _ in range(2)]
            assert np.array_equal(*counts)
            outcome = counts[0]
        except Exception as error:
            outcome = (type(error).__name__, str(error))
    return {"told": told, "warned": [str(w.message) for w in warned], "header": header}, outcome


def check_neighbours(schema, one, other, rows=1, **options):
    """Nothing that is seen differs, and the counts by `rows` rows that the other input has more."""
    (seen, counts), (seen_other, counts_other) = observed(schema, one, **options), observed(schema, other, **options)
    assert seen == seen_other
    assert isinstance(counts, np.ndarray) == isinstance(counts_other, np.ndarray), (counts, counts_other)
    if not isinstance(counts, np.ndarray):
        assert counts == counts_other
        return
    change = counts_other - counts
    assert (change.sum(), np.abs(change).sum()) == (rows, rows)


# ------------------------------------------------------------------------------------------------------------- columns


@some("column", 4, COLUMNS, ids=ids, keep=KEPT)
def test_every_kind_of_column_keeps_the_laws(column):
    check_column(column)


@examples(30, 150)
@given(st.lists(st.none() | st.text(max_size=12) | st.sampled_from(TEXTS), min_size=1, max_size=8), st.data())
@pytest.mark.parametrize("kind", TEXT_COLUMNS)
def test_a_text_is_encoded_alone_whatever_stands_beside_it(kind, texts, data):
    column, usual = TEXT_COLUMNS[kind]
    rows = usual + texts
    whole = column.encode([pa.array(rows, pa.string())])
    some = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=4))
    part = column.encode([pa.array([rows[i] for i in some], pa.string())])
    assert np.array_equal(whole[some], part, equal_nan=True)


def test_the_law_rejects_a_column_that_looks_at_the_whole_array():
    class Hasty(Number, frozen=True, tag="hasty"):
        def read(self, array, source):
            try:
                return array.cast(pa.int64()).cast(pa.float64()).to_numpy(zero_copy_only=False)
            except pa.ArrowException:
                return Number.read(self, array, source) + 1

    with pytest.raises(AssertionError, match="depend on that row alone"):
        check_column(Hasty(0, 10, nullable=True))


def test_the_law_rejects_a_column_that_raises():
    class Loud(Number, frozen=True, tag="loud"):
        def read(self, array, source):
            return np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False))

    with pytest.raises(AssertionError, match="without exception or warning"):
        check_column(Loud(0, 1, nullable=True))


# ---------------------------------------------------------------------------------------------------------- text files

FILES = {
    "t.csv": lambda content: content,
    "t.tsv": lambda content: content.replace(b",", b"\t"),
    "t.csv.gz": gzip.compress,
}


def written(path, content):
    path.write_bytes(FILES[path.name](content) if path.name in FILES else content)
    return path


@pytest.mark.deeper
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_line_changes_nothing_but_itself(tmp_path, name, end):
    schema = Schema({"x": Number(0, 10, nullable=True), "y": Category(["F", "M"], nullable=True)})
    rows = [b"1.5,F", b"2.5,M"] * 20
    lines = [line for line in LINES if line] + [t.encode() for t in TEXTS[::4] if t and not set(t) & set("\n\r")]
    before = observed(schema, written(tmp_path / name, end.join([b"x,y", *rows]) + end))
    for i, line in enumerate(lines if DEEP else lines[::4]):
        place = (i * 7) % (len(rows) + 1)
        more = end.join([b"x,y", *rows[:place], line, *rows[place:]]) + (end if i % 3 else b"")
        after = observed(schema, written(tmp_path / name, more))
        assert before[0] == after[0], line
        change = after[1] - before[1]
        assert (change.sum(), np.abs(change).sum()) == (1, 1), (line, place)


FORMS = [
    {"delimiter": ";", "decimal": ","},
    {"delimiter": "|", "encoding": "latin-1"},
    {"delimiter": "tab", "decimal": ",", "encoding": "cp1252"},
    {"decimal": ","},  # numbers must then be quoted
    {"delimiter": " ", "encoding": "koi8-r"},
]


@pytest.mark.deeper
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", ["form.csv", "form.tsv"])
def test_a_line_of_any_form_changes_nothing_but_itself(tmp_path, form, name):
    schema = Schema({"x": Number(0, 10, nullable=True), "y": Category(["F", "ü", "a,b"], nullable=True)})
    mark = TextForm(**form).delimiter or {"form.csv": ",", "form.tsv": "\t"}[name]
    point, codec = form.get("decimal", "."), TextForm(**form).codec
    umlaut = "ü" if codec != "koi8-r" else "F"

    def line(*cells):
        return mark.join(f'"{cell}"' if mark in cell else cell for cell in cells).encode(codec)

    rows = [line(f"1{point}5", "F"), line(f"7{point}5", umlaut), line("9", "a,b")] * 14
    hostile = [other.replace(b",", mark.encode()) for other in LINES if other]
    hostile += [line("1.234", "F"), line("1,234", "F"), line("\xa0", "F") if codec == "cp1252" else b"\x81\xff"]
    before = observed(schema, written(tmp_path / name, b"\n".join([line("x", "y"), *rows, b""])), **form)
    assert isinstance(before[1], np.ndarray)
    points = encoded(schema, tmp_path / name, form)
    assert [tuple(point) for point in points[:3]] == [(1.5, 0.0), (7.5, 1.0 if umlaut == "ü" else 0.0), (9.0, 2.0)]
    for i, other in enumerate(hostile if DEEP else hostile[::3]):
        place = (i * 7) % (len(rows) + 1)
        more = b"\n".join([line("x", "y"), *rows[:place], other, *rows[place:], b""])
        after = observed(schema, written(tmp_path / name, more), **form)
        assert before[0] == after[0], other
        change = after[1] - before[1]
        assert (change.sum(), np.abs(change).sum()) == (1, 1), (other, place)


def encoded(schema, path, form):
    table = open_table(path, TextForm(**form), numbers=with_decimals(schema))
    return np.concatenate([schema.encode(batch) for batch in table.batches(list(schema.data))])


def test_with_a_decimal_comma_a_point_is_no_decimal_mark(tmp_path):
    """1.234 may be a thousand: it is rather not read."""
    schema = Schema({"x": Number(0, 5000, nullable=True), "y": Category([1.5, 2], nullable=True)})
    path = written(tmp_path / "d.csv", b"x;y\n1,25;1,5\n1.234;1.5\n7;2\n")
    found = encoded(schema, path, {"delimiter": ";", "decimal": ","})
    assert np.array_equal(found, [[1.25, 0], [np.nan, np.nan], [7, 1]], equal_nan=True)


@pytest.mark.parametrize("place", [0, 40, 400])
def test_a_letter_is_the_same_wherever_it_stands(tmp_path, place):
    """The first that an encoding has to change, or the only one, among rows that may stay as they are."""
    schema = Schema({"x": Number(0, 10), "y": Category(["F", "ü"], nullable=True)})
    rows = ["7;F"] * 400
    for odd, point in (("7;ü", (7, 1)), ("1,5;F", (1.5, 0)), ("7;\xdf", (7, np.nan))):
        path = written(tmp_path / "f.csv", "\n".join(["x;y", *rows[:place], odd, *rows[place:], ""]).encode("latin-1"))
        found = encoded(schema, path, {"delimiter": ";", "decimal": ",", "encoding": "latin-1"})
        assert np.array_equal(found[place], point, equal_nan=True)
        assert (np.delete(found, place, axis=0) == (7, 0)).all()


@some("kind", 5, TEXT_COLUMNS)
def test_a_cell_of_a_text_file_changes_nothing_but_its_row(tmp_path, kind):
    column, usual = TEXT_COLUMNS[kind]
    rows = "".join(f"{text},i\n" for text in usual * 3)
    for text in TEXTS if DEEP else TEXTS[::4]:
        quoted = text.replace('"', '""').replace("\n", " ").replace("\r", " ")
        one = written(tmp_path / "one.csv", f"x,id\n{rows}".encode())
        other = written(tmp_path / "other.csv", f'x,id\n{rows}"{quoted}",i\n'.encode())
        check_neighbours(schema_of(column), one, other)


@examples(40, 300)
@given(st.binary(max_size=30), st.integers(0, 6), st.booleans())
@example(b'"', 0, False)
@example(b'a,"b', 3, False)
def test_any_bytes_are_one_row_for_each_line(tmp_path_factory, line, place, quoted):
    schema = Schema({"x": Integer(0, 9, nullable=True), "y": Boolean(nullable=True)})
    folder = tmp_path_factory.mktemp("bytes")
    rows = [b'"1",yes' if quoted else b"1,yes"] * 6
    one = written(folder / "one.csv", b"\n".join([b"x,y", *rows, b""]))
    other = written(folder / "other.csv", b"\n".join([b"x,y", *rows[:place], line, *rows[place:], b""]))
    check_neighbours(schema, one, other, rows=sum(1 for part in line.splitlines() if part))


def test_long_rows_change_nothing_but_themselves(tmp_path):
    schema = Schema({"x": Integer(0, 9, nullable=True), "note": Drop()})
    rows = b"1,a\n" * 50
    one = written(tmp_path / "one.csv", b"x,note\n" + rows)
    for size in (1 << 20, 3 << 20, (1 << 24) + 5, 40 << 20):
        for long in (b"2," + b"n" * size, b'2,"' + b"n" * size, b'"' * size, b"2," + b"," * size):
            other = written(tmp_path / "other.csv", b"x,note\n" + rows + long + b"\n" + rows)
            check_neighbours(schema, one, other, rows=51)


def test_quoted_line_ends_where_they_are_declared(tmp_path):
    schema = Schema({"x": Integer(0, 9, nullable=True), "note": Drop()})
    rows = b'1,"a\nb"\n' * 50
    one = written(tmp_path / "one.csv", b"x,note\n" + rows)
    for line in (b'2,"\n\n\n"', b'2,"""\n"""', b"2,3,4", b"\xff", b'2,"' + b"n\n" * (12 << 20) + b'"'):
        other = written(tmp_path / "other.csv", b"x,note\n" + rows + line + b"\n" + rows)
        check_neighbours(schema, one, other, rows=51, newlines_in_cells=True)


# ------------------------------------------------------------------------------------------------------ pandas, polars

AS_TEXT = {
    "object": lambda cells: pd.Series(cells, dtype=object),
    "str": lambda cells: pd.Series(cells, dtype="str"),
    "string[python]": lambda cells: pd.Series(cells, dtype="string[python]"),
    "string[pyarrow]": lambda cells: pd.Series(cells, dtype="string[pyarrow]"),
    "category": lambda cells: pd.Series(pd.Categorical(cells)),
    "ArrowDtype": lambda cells: pd.Series(cells, dtype=pd.ArrowDtype(pa.string())),
}


def frame(column):
    return pd.DataFrame({"x": column, "id": pd.Series(["i"] * len(column), dtype="str")})


@some("form", 2, AS_TEXT)
@some("kind", 4, TEXT_COLUMNS)
def test_a_text_in_pandas_changes_nothing_but_its_row(kind, form):
    column, usual = TEXT_COLUMNS[kind]
    make = AS_TEXT[form]
    one = frame(make(usual))
    for text in [None, *TEXTS[::3]]:
        check_neighbours(schema_of(column), one, frame(make([*usual, text])))
        check_neighbours(schema_of(column), frame(make([text])), frame(make([text, usual[0]])))


@pytest.mark.parametrize("dtype", ["object", "category"])
@some("kind", 6, TEXT_COLUMNS)
def test_an_object_in_pandas_changes_nothing_but_its_row(kind, dtype):
    column, usual = TEXT_COLUMNS[kind]
    for cell in hostile_objects():
        try:
            cells = pd.Series([*usual, None], dtype=object)
            cells.iloc[2] = cell
            if dtype == "category":
                cells = pd.Series(pd.Categorical(cells))
        except Exception:  # pandas itself does not take it
            continue
        one = pd.Series(usual, dtype=object).astype(dtype)
        check_neighbours(schema_of(column), frame(one), frame(cells))


@some("kind", 4, TEXT_COLUMNS)
def test_a_cell_of_an_index_changes_nothing_but_its_row(kind):
    """With a name it is a column; without one it is left behind, and told of alike."""
    column, usual = TEXT_COLUMNS[kind]
    for cell in hostile_objects():
        cells = pd.Series([*usual, None], dtype=object)
        try:
            cells.iloc[2] = cell
            index = pd.Index(cells, dtype=object)
        except Exception:  # pandas itself does not take it
            continue
        one, other = (pd.DataFrame({"id": ["i"] * len(part)}, index=part) for part in (index[:2], index))
        check_neighbours(schema_of(column), one.rename_axis("x"), other.rename_axis("x"))
        one, other = (part.assign(x="5").astype({"x": object}) for part in (one, other))
        check_neighbours(schema_of(column), one, other)


def test_categories_are_read_alike_whatever_pandas_makes_of_them():
    """1 and 2 are whole numbers, floats or objects, as a third category will have it."""
    for column in (
        Category(["1", "2", "2.5", "01"], nullable=True),
        Category([1, 2, 2.5]),
        Integer(0, 9, nullable=True),
    ):
        one = frame(pd.Series(pd.Categorical([1, 2])))
        for third in (3, 2.5, "a", None, True, 2**70, dt.date(2020, 1, 1), (1, 2), float("inf")):
            other = frame(pd.Series(pd.Categorical([1, 2, third])))
            check_neighbours(schema_of(column), one, other)
        nothing, something = (frame(pd.Series(pd.Categorical(cells))) for cells in ([None], [None, 1]))
        check_neighbours(schema_of(column), nothing, something)


NULLABLE = {
    "Int64": ([1, 2], [None, 0, -1, 2**62]),
    "UInt8": ([1, 2], [None, 0, 255]),
    "Float64": ([1.5, 2], [None, np.inf, -np.inf, 1e308]),
    "boolean": ([True, False], [None]),
    "datetime64[ns]": (["2020-02-29", "2020-03-01"], [None, "1677-09-22", "2262-04-11"]),
    "datetime64[s, Europe/Berlin]": (["2020-02-29", "2020-03-01"], [None, "0001-01-03T00Z", "9999-12-30"]),
    "float64": ([1.5, 2], [None, np.nan, np.inf]),
    "float16": ([1.5, 2], [np.nan, np.inf]),
}


@pytest.mark.parametrize("dtype", NULLABLE)
@pytest.mark.parametrize("kind", TEXT_COLUMNS)
def test_a_typed_cell_in_pandas_changes_nothing_but_its_row(kind, dtype):
    column, _ = TEXT_COLUMNS[kind]
    usual, odd = NULLABLE[dtype]
    for cell in odd:
        one, other = (frame(pd.Series(cells, dtype=dtype)) for cells in (usual, [*usual, cell]))
        check_neighbours(schema_of(column), one, other)


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Object], ids=str)
@some("kind", 4, TEXT_COLUMNS)
def test_a_text_in_polars_changes_nothing_but_its_row(kind, dtype):
    column, usual = TEXT_COLUMNS[kind]
    for text in [None, *TEXTS[::3]]:
        one, other = (
            pl.DataFrame({"x": pl.Series(cells, dtype=dtype), "id": pl.Series(["i"] * len(cells))})
            for cells in (usual, [*usual, text])
        )
        check_neighbours(schema_of(column), one, other)
        check_neighbours(schema_of(column), one.lazy(), other.lazy())


# ---------------------------------------------------------------------------------------------------- arrow, parquet


@some("kind", 5, TEXT_COLUMNS)
def test_a_typed_cell_changes_nothing_but_its_row(tmp_path, kind):
    column, _ = TEXT_COLUMNS[kind]
    for array in hostile_arrays():
        if len(array) < 2:
            continue
        rows = [array[:-1], array] if len(array) < 20 else [array[5:15], array[5:16]]
        one, other = (pa.table({"x": part, "id": pa.array(["i"] * len(part))}) for part in rows)
        check_neighbours(schema_of(column), one, other)
        paths = [tmp_path / "one.parquet", tmp_path / "other.parquet"]
        try:
            for path, table in zip(paths, (one, other), strict=True):
                pq.write_table(table, path)
        except (pa.ArrowException, UnicodeError):  # not a type or a value of this format
            continue
        check_neighbours(schema_of(column), *paths)


@some("kind", 5, TEXT_COLUMNS)
def test_a_cell_of_a_feather_file_changes_nothing_but_its_row(tmp_path, kind):
    column, _ = TEXT_COLUMNS[kind]
    for array in hostile_arrays():
        if len(array) < 2:
            continue
        paths = [tmp_path / "one.feather", tmp_path / "other.feather"]
        try:
            for path, part in zip(paths, (array[:-1], array), strict=True):
                feather.write_feather(pa.table({"x": part, "id": pa.array(["i"] * len(part))}), path)
        except (pa.ArrowException, UnicodeError, ValueError):  # not a type or a value of this format
            continue
        check_neighbours(schema_of(column), *paths)


@some("kind", 3, TEXT_COLUMNS)
def test_a_cell_of_a_sheet_changes_nothing_but_its_row(tmp_path, kind):
    openpyxl = pytest.importorskip("openpyxl")
    column, usual = TEXT_COLUMNS[kind]
    texts = [text for text in TEXTS if not ILLEGAL_CHARACTERS.search(text)][::5]
    odd = [1, 2.5, -1e300, True, dt.datetime(2020, 2, 29), dt.datetime(1900, 1, 1, 3), dt.date(2020, 1, 1), dt.time(7)]
    odd += [dt.timedelta(hours=30), "=1/0", "#N/A", None]

    def written(name, rows):
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet()
        for row in [["x", "id"], *([cell, "i"] for cell in usual * 2), *rows]:
            sheet.append(row)
        book.save(tmp_path / name)
        return tmp_path / name

    one = written("one.xlsx", [])
    for row in [*([cell, "i"] for cell in [*texts, *odd]), ["1", "i", "beyond"], [None, "i"], ["1"]]:
        check_neighbours(schema_of(column), one, written("other.xlsx", [row]))
    check_neighbours(schema_of(column), one, written("other.xlsx", [[None, None], [None, None, None]]), rows=0)


def test_a_place_is_missing_alone():
    schema = Schema({"home": Place("a", "b", nullable=True), "id": Drop()})
    usual = {"a": ["46.9", "-33"], "b": ["7.4", "151"], "id": ["i", "i"]}
    for text in TEXTS:
        for name in ("a", "b"):
            other = {key: [*cells, text if key == name else "1"] for key, cells in usual.items()}
            kinds = {"a": pa.string(), "b": pa.string(), "id": pa.string()}
            with pytest.raises(Exception, match="degrees"):  # typed text is refused by its type
                Synthesizer(schema, epsilon=1, neighbours="add-remove").fit(pa.table(usual, pa.schema(kinds)))
            check_neighbours(schema, *(pd.DataFrame(cells, dtype=object) for cells in (usual, other)))


# ------------------------------------------------------------------------------------------------------ arrays, lists


class Evasive:
    """An object that does not even say what it is."""

    @property
    def ndim(self):
        raise RuntimeError("private")


class Endless(list):
    """A list that has no length."""

    def __len__(self):
        raise RuntimeError("private")


@pytest.mark.parametrize("width", [1, 2])
def test_a_row_of_a_list_changes_nothing_but_itself(width):
    box = Box([(0, 1)] * width)
    usual = [0.5, 0.25] if width == 1 else [[0.5, 0.25], (0.1, 0.2), np.array([0.3, 0.4])]
    for cell in (*hostile_objects(), Evasive(), Endless([1])):
        rows = [cell] if width == 1 else [cell, [0.5, cell]]
        for row in rows:
            for place in (0, 1, len(usual)):
                check_neighbours(box, usual, [*usual[:place], row, *usual[place:]])
            check_neighbours(box, [], [row])


ODD_NUMBERS = {
    "float64": [np.nan, np.inf, -np.inf, 1e308, 5e-324, -0.0],
    "float32": [np.uint32(0x7F800001).view(np.float32), np.inf],
    "float16": [np.nan, 6e4],
    "longdouble": [np.longdouble("1e400"), np.longdouble("-1e4900"), np.nan],
    "int64": [2**63 - 1, -(2**63)],
    "uint64": [2**64 - 1],
    "bool": [True],
}


@pytest.mark.parametrize("dtype", ODD_NUMBERS)
def test_an_odd_number_of_an_array_changes_nothing_but_its_row(dtype):
    box = Box([(0, 1)])
    usual = np.array([0, 1, 0], dtype)
    for odd in ODD_NUMBERS[dtype]:
        for place in (0, 1, 3):
            check_neighbours(box, usual, np.insert(usual, place, np.array([odd], dtype)))


@pytest.mark.parametrize("form", ["series", "frame", "index", "array", "polars", "polars frame", "arrow"])
def test_nulls_of_typed_columns_change_nothing_but_their_row(form):
    box = Box([(0, 1)])
    for dtype, odd in (("Int64", None), ("boolean", None), ("Float64", None), ("Int64", 2**62)):
        usual = [True, False] if dtype == "boolean" else [0, 1]

        def make(cells, dtype=dtype):
            series = pd.Series(cells, dtype=dtype)
            polars = pl.Series(
                "x", cells, dtype={"Int64": pl.Int64, "boolean": pl.Boolean, "Float64": pl.Float64}[dtype]
            )
            return {
                "series": series, "frame": series.to_frame(), "index": pd.Index(series), "array": series.array,
                "polars": polars, "polars frame": polars.to_frame(), "arrow": polars.to_arrow(),
            }[form]  # fmt: skip

        check_neighbours(box, make(usual), make([*usual, odd]))


def test_no_rows_and_one_row_look_alike():
    for width in (1, 2):
        box = Box([(0, 1)] * width)
        for one, other in (
            (np.empty((0, width)), np.zeros((1, width))),
            ([], [0.5] if width == 1 else [[0.5, 0.5]]),
            (np.empty(0), np.zeros(1)),
            (np.empty((0, 3)), np.zeros((1, 3))),
            (np.empty(0, object), np.array([None])),
        ):
            check_neighbours(box, one, other)
    schema = schema_of(Number(0, 1))
    for dtype in ("object", "float64", "category", "str"):
        empty = frame(pd.Series([], dtype=dtype))
        check_neighbours(schema, empty, frame(pd.Series([None], dtype=dtype)))


# ------------------------------------------------------------------------------------------------------------ progress


def test_progress_is_told_alike_on_both_sides_of_the_limit(tmp_path, monkeypatch):
    """Whether rows are kept or read again depends on their number, which nobody may see."""
    path = tmp_path / "t.parquet"
    tables = [pa.table({"x": np.linspace(0, 1, rows)}) for rows in (1000, 1001)]
    monkeypatch.setattr(engine, "CACHE_BYTES", 8 * 1000)
    told = []
    for data in (*tables, *(pq.write_table(table, path) or path for table in tables)):
        steps = []
        synthesizer = Synthesizer(Schema({"x": Number(0, 1)}), epsilon=1, neighbours="add-remove")
        synthesizer.fit(data, progress=lambda *step, steps=steps: steps.append(step))
        told.append(steps)
    assert told[0] == told[1] == told[2] == told[3]
    assert len(told[0]) > 4

"""Files of tables: what is read, what is refused and in which words, what is written and what is left behind."""

import datetime as dt
import gzip
import os
import random
import resource
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from depth import some
from privmeasure.errors import ArgumentError, DataError
from privmeasure.sources import lines
from privmeasure.sources.files import open_table
from privmeasure.tables import Category, sheets
from privmeasure.tables.suffixes import kind_of
from privmeasure.tables.texts import TextForm
from privmeasure.tables.writing import check_target, write_table

SECRET = "secretvalue"


def read(path, columns=None, **options):
    file = open_table(path, TextForm(**options))
    batches = list(file.batches(columns or file.names))
    return pa.Table.from_batches(batches).to_pydict() if batches else {name: [] for name in columns or file.names}


def refused(path, columns=None):
    """The file is refused in one paragraph that names it and shows nothing of its rows."""
    with pytest.raises(DataError) as caught:
        read(path, columns)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert SECRET not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert len(message) < 400 + len(str(path))
    return message.replace(str(path), "FILE")


# ----------------------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("a,b\n1,2\n", {"a": ["1"], "b": ["2"]}),
        ("a,b\n1,2", {"a": ["1"], "b": ["2"]}),
        ("a,b\r\n1,2\r\n", {"a": ["1"], "b": ["2"]}),
        ("\ufeffa,b\n1,2\n", {"a": ["1"], "b": ["2"]}),
        ('\ufeff"a","b"\n1,2\n', {"a": ["1"], "b": ["2"]}),
        ("\n\na,b\n\n1,2\n\n", {"a": ["1"], "b": ["2"]}),
        ('a,b\n,""\nNA,null\n', {"a": [None, "NA"], "b": ["", "null"]}),
        ('a,b\n"x,""y""", 2 \n', {"a": ['x,"y"'], "b": [" 2 "]}),
        ('a,b\n"x,\n""y""", 2 \n', {"a": [None, 'y"""'], "b": [None, " 2 "]}),
        ("a,b\n", {"a": [], "b": []}),
        ("a,b", {"a": [], "b": []}),
        ("a,b\n\n\n", {"a": [], "b": []}),
        ("a\n1\n\n3\n", {"a": ["1", None, "3"]}),
        ("a\n\n", {"a": [None]}),
        ("a,\n1,2\n", {"a": ["1"], "": ["2"]}),
        ("größe,名前\n5,愛\n", {"größe": ["5"], "名前": ["愛"]}),
        ('a,b\n1,"never closed\n3,4\n', {"a": [None, "3"], "b": [None, "4"]}),
        ('a,b\n3,4\n1,"never closed', {"a": ["3", None], "b": ["4", None]}),
        ("a,b\n1,\0\n", {"a": ["1"], "b": ["\0"]}),
        ("a,b\n1\n2,3\n4,5,6\n7,8\n", {"a": [None, "2", None, "7"], "b": [None, "3", None, "8"]}),
        ("a,b\r1,2\r3,4\r", {"a": ["1", "3"], "b": ["2", "4"]}),
        ("a,b\r1,2\n\r\n3,4\r\r\n", {"a": ["1", "3"], "b": ["2", "4"]}),
        ("a,b\n\ufeff1,2\n", {"a": ["\ufeff1"], "b": ["2"]}),
        ('a\n"\n""\n1\n', {"a": [None, "", "1"]}),
        ('a\n1\n\n"\n\n2\n', {"a": ["1", None, None, None, "2"]}),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_text_is_read_as_it_is(tmp_path, text, table, zipped):
    path = tmp_path / ("t.csv.gz" if zipped else "t.csv")
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    assert read(path) == table
    assert open_table(path).types is None
    assert open_table(path).kind == "csv"


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ('a,b\n"x,\n""y""", 2 \n', {"a": ['x,\n"y"'], "b": [" 2 "]}),
        ('"a\nc",b\n1,2\n', {"a\nc": ["1"], "b": ["2"]}),
        ('a,b\r\n1,"x\r\ny"\r\n\r\n3,"\r"\r\n', {"a": ["1", "3"], "b": ["x\r\ny", "\r"]}),
        ('a,b\n1,"x\ny",3\n4,5\n', {"a": [None, "4"], "b": [None, "5"]}),
        ('a,b\n1,"never closed\n3,4\n', {"a": [None], "b": [None]}),
    ],
)
@pytest.mark.parametrize("block", [3, 1 << 20])
def test_cells_may_hold_line_ends_where_that_is_declared(tmp_path, text, table, block, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert read(tmp_path / "t.csv", newlines_in_cells=True) == table


def test_bytes_that_are_no_utf_8_stay_in_their_cell(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,\xe9\n2,\xc3\xa9\n")
    (batch,) = open_table(tmp_path / "t.csv").batches(["a", "b"])
    assert batch["a"].to_pylist() == ["1", "2"]
    assert batch["b"].view(pa.binary()).to_pylist() == [b"\xe9", b"\xc3\xa9"]
    assert Category(["\xe9", "?"], nullable=True).encode([batch["b"]])[1] == 0


def test_columns_are_chosen_and_files_read_again(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("a\tb\tc\n1\t2\t3,4\n")
    file = open_table(path)
    for _ in range(2):
        (batch,) = file.batches(["c", "a"])
        assert batch.to_pydict() == {"c": ["3,4"], "a": ["1"]}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_column_that_is_not_there(tmp_path, name):
    write_table(tmp_path / name, [pa.table({"a": [1]})])
    assert "FILE has no column 'b'" in refused(tmp_path / name, ["a", "b"])


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_file_that_changed_after_it_was_opened(tmp_path, name):
    path = tmp_path / name
    write_table(path, [pa.table({"a": [1], "b": [2]})])
    file = open_table(path)
    write_table(path, [pa.table({"a": [SECRET], "b": [2]})], overwrite=True)
    with pytest.raises(DataError, match="changed after it was opened") as caught:
        list(file.batches(["a"]))
    assert SECRET not in str(caught.value)


def test_a_zip_of_several_members_and_one_without_its_ending(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"))
    assert read(path) == {"a": ["1", "3"], "b": ["2", "4"]}


RANDOM = random.Random(0)
ZIPPED = gzip.compress(
    b"a,b\n" + b"".join(b"%s,2\n" % RANDOM.randbytes(20).hex().encode() for _ in range(3000)), mtime=0
)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b"\n\r\n\n", "is empty"),
        ("bom.csv", b"\xef\xbb\xbf", "is empty"),
        ("twice.csv", b"a,b,a\n1,2,3\n", "gives several columns one name"),
        ("quote.csv", b'a,"b\n1,2\n', "a quote does not end"),
        ("latin-header.csv", b"a,\xe9\n1,2\n", "not UTF-8"),
        ("wide.csv", "a,b\nsecretvalue,2\n".encode("utf-16"), "UTF-16"),
        ("wide-le.csv", "a,b\nsecretvalue,2\n".encode("utf-16-le"), "UTF-16"),
        ("header.csv", b"a," + b"x" * (1 << 21) + b"\n", "too long"),
        ("cut.csv.gz", ZIPPED[:-2000], "truncated"),
        ("cut-early.csv.gz", ZIPPED[:12], "truncated"),
        ("cut-late.csv.gz", ZIPPED[:-3], "truncated"),
        ("damaged.csv.gz", ZIPPED[:30000] + b"????" + ZIPPED[30004:], "truncated or damaged"),
        ("parquet.csv", b"PAR1secretvalue", "Rename it to .parquet"),
        ("text.parquet", b"a,b\nsecretvalue,2\n", "rename it to .csv"),
        ("empty.parquet", b"", "is empty"),
        ("cut.parquet", b"PAR1secretvalue", "not a complete Parquet file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "content",
)  # fmt: skip
def test_broken_files_are_refused_in_clear_words(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    assert words in refused(path)


@some("newlines_in_cells", 1, [False, True])
@some("begin", 1, [b"1,", b'1,"'])
def test_a_line_that_is_too_long_is_a_missing_row_and_is_not_held(tmp_path, newlines_in_cells, begin):
    path = tmp_path / "line.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n3,4\n" + begin + b"secretvalue" * 10)
        file.truncate(1 << 29)  # a hole: half a gigabyte that takes no disk
        file.seek(0, os.SEEK_END)
        file.write(b'"\n5,6\n')
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read(path, newlines_in_cells=newlines_in_cells) == {"a": ["3", None, "5"], "b": ["4", None, "6"]}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # KiB


def test_a_row_of_some_mebibytes_is_read(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,2\n3," + b"x" * (5 << 20) + b"\n5,6\n")
    assert read(tmp_path / "t.csv", ["a"]) == {"a": ["1", "3", "5"]}


def test_what_is_not_a_file_is_refused(tmp_path):
    assert "holds no table" in refused(tmp_path)
    assert "does not exist" in refused(tmp_path / "nothing.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a regular file" in refused(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="does not exist"):
        open_table("a\0b.csv")
    (tmp_path / "table.xls").write_text("x")
    with pytest.raises(ArgumentError, match=r"'\.xls', which is none of \.csv"):
        open_table(tmp_path / "table.xls")
    (tmp_path / "table.xlsx").write_text("x")
    with pytest.raises(DataError, match=r"is not a spreadsheet \(xlsx\) file by its first bytes"):
        open_table(tmp_path / "table.xlsx")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_no_permission_is_said_so(tmp_path, name, monkeypatch):
    path = tmp_path / name
    path.write_text("a\n1\n")

    def forbid(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", forbid)  # the user who runs the tests may be allowed everything
    assert "no permission to read" in refused(path)


# -------------------------------------------------------------------------------------------------------------- parquet


def test_parquet_keeps_names_and_types(tmp_path):
    table = pa.table({"a.b": [1, None], "a": ["x", "y"], "t": pa.array([0, 1], pa.timestamp("ms", "UTC"))})
    pq.write_table(table, tmp_path / "t.parquet")
    file = open_table(tmp_path / "t.parquet")
    assert file.kind == "parquet"
    assert file.names == ("a.b", "a", "t")
    assert list(file.types) == table.schema.types
    for columns in (["a"], ["t", "a.b"], ["a.b", "a", "t"]):
        (batch,) = file.batches(columns)
        assert batch.to_pydict() == table.select(columns).to_pydict()
    assert pa.types.is_dictionary(next(file.batches(["a"])).column(0).type)  # read once per distinct text


def test_damaged_parquet_is_refused_wherever_the_damage_is(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [SECRET + str(i) for i in range(1000)]}), path, compression="none")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert "not a complete Parquet file" in refused(path)
    path.write_bytes(whole[:10] + b"\xff" * 40 + whole[50:])
    assert "not a complete Parquet file" in refused(path)


def test_a_nested_column_is_refused_only_where_it_is_asked_for(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1], "list": [[1, 2]]}), path)
    assert read(path, ["a"]) == {"a": [1]}
    assert "Column 'list' of FILE has the nested type list" in refused(path)


def test_the_same_name_twice_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), path)
    assert "several columns named 'a'" in refused(path)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("rows", [0, 1, 3, 400_000])
def test_progress_is_four_quarters_whatever_the_number_of_rows(tmp_path, name, rows):
    write_table(tmp_path / name, [pa.table({"a": range(rows), "b": range(rows)})])
    told = []
    assert sum(batch.num_rows for batch in open_table(tmp_path / name).batches(["a"], progress=told.append)) == rows
    assert told == [0.25, 0.5, 0.75, 1.0]


def test_text_comes_in_pieces_of_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1 << 12)
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i},x\n" for i in range(5000)))
    batches = list(open_table(tmp_path / "t.csv").batches(["a"]))
    assert len(batches) > 5
    assert pa.Table.from_batches(batches)["a"].to_pylist() == [str(i) for i in range(5000)]


# -------------------------------------------------------------------------------------------------------------- writing

TABLE = pa.table(
    {
        "x": [0.1 + 0.2, None, 1e300],
        "n": pa.array([1, None, -3], pa.int16()),
        "s": ["plain", None, "愛"],
        "c": pa.array(["u", "v", None]).dictionary_encode(),
        "b": [True, False, None],
        "d": [dt.date(2024, 2, 29), None, dt.date(1969, 12, 31)],
        "t": pa.array([0, None, 1], pa.timestamp("s")),
        "v": pa.array(["view", None, "w"], pa.string_view()),
    }
)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "T.CSV"])
def test_what_is_written_can_be_read(tmp_path, name):
    assert write_table(tmp_path / name, iter([TABLE, TABLE.slice(1)])) == 2 * TABLE.num_rows - 1
    found = read(tmp_path / name)
    if kind_of(name) == "parquet":
        assert found == pa.concat_tables([TABLE, TABLE.slice(1)]).to_pydict()
    else:
        assert found["x"] == ["0.30000000000000004", None, "1e+300", None, "1e+300"]
        assert found["n"] == ["1", None, "-3", None, "-3"]
        assert found["s"] == ["plain", None, "愛", None, "愛"]
        assert found["c"] == ["u", "v", None, "v", None]
        assert found["b"] == ["true", "false", None, "false", None]
        assert found["d"] == ["2024-02-29", None, "1969-12-31", None, "1969-12-31"]
        assert found["t"][0] == "1970-01-01 00:00:00"
        assert found["v"] == ["view", None, "w", None, "w"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("odd", ["a,b", 'say "x"', "two\nlines", "cr\r", "", "\t"])
@pytest.mark.parametrize("form", ["text", "category", "slice"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_text_is_quoted_where_it_must_be(tmp_path, name, odd, form):
    column = pa.array(["z", odd, None, "plain"])
    column = {"text": column, "category": column.dictionary_encode(), "slice": pa.concat_arrays([column, column])[4:]}[
        form
    ]
    write_table(tmp_path / name, [pa.table({"a,\t": ["k"] * 4, 'na"me': column})])
    found = read(tmp_path / name, newlines_in_cells="\n" in odd or "\r" in odd)
    assert found == {"a,\t": ["k"] * 4, 'na"me': ["z", odd, None, "plain"]}


def test_plain_text_is_not_quoted(tmp_path):
    write_table(tmp_path / "t.csv", [pa.table({"a": [1.5], "s": ["x"]})])
    assert (tmp_path / "t.csv").read_bytes() == b"a,s\n1.5,x\n"


def test_a_table_without_rows_has_a_header(tmp_path):
    write_table(tmp_path / "t.csv", [TABLE.slice(0, 0)])
    assert list(read(tmp_path / "t.csv")) == TABLE.column_names
    with pytest.raises(ArgumentError, match="at least one table"):
        write_table(tmp_path / "u.csv", [])


def test_progress_of_writing(tmp_path):
    told = []
    write_table(tmp_path / "t.csv", [TABLE] * 4, rows=12, progress=lambda *what: told.append(what))
    assert told == [("write", i / 4) for i in range(1, 5)]


@pytest.mark.parametrize("fault", [KeyboardInterrupt, RuntimeError, DataError])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_nothing_is_left_after_an_interruption(tmp_path, name, fault):
    (tmp_path / name).write_text("old")

    def tables():
        yield TABLE
        raise fault

    with pytest.raises(fault):
        write_table(tmp_path / name, tables(), overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "old"


def test_an_existing_file_is_kept_unless_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(FileExistsError, match="not overwritten"):
        write_table(path, [TABLE])
    assert path.read_text() == "old"

    def tables():
        yield TABLE
        (tmp_path / "new.csv").write_text("someone else's")

    with pytest.raises(FileExistsError, match="not overwritten"):  # it came while we wrote
        write_table(tmp_path / "new.csv", tables())
    assert (tmp_path / "new.csv").read_text() == "someone else's"
    write_table(path, [TABLE], overwrite=True)
    assert path.read_text() != "old"


def test_places_where_nothing_can_be_written(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="does not exist: create it"):
        write_table(tmp_path / "no" / "t.csv", [TABLE])
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_target(tmp_path / "folder.csv", overwrite=True)
    with pytest.raises(ArgumentError, match=r"'\.json', which is none of"):
        check_target(tmp_path / "t.json")
    with pytest.raises(ArgumentError, match=r"\.parquet\.gz"):
        check_target(tmp_path / "t.parquet.gz")
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(PermissionError, match="no permission to write into the folder"):
        check_target(tmp_path / "t.csv")


FULL = """
import resource, signal, sys, os
import pyarrow as pa
from privmeasure.tables.writing import write_table
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for name in ("t.csv", "t.csv.gz", "t.parquet"):
    try:
        write_table(os.path.join(sys.argv[1], name), [pa.table({"a": [os.urandom(1000).hex() for _ in range(500)]})])
    except OSError as error:
        print(error)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs a limit on the size of files")
def test_a_full_disk_is_said_so_and_leaves_nothing(tmp_path):
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.count("The disk is full") == 3
    assert list(tmp_path.iterdir()) == []


def test_files_are_read_and_written_without_pandas(tmp_path):
    code = (
        "import sys, pyarrow as pa\n"
        "from privmeasure.sources.files import open_table\nfrom privmeasure.tables.writing import write_table\n"
        "parts = [None, pa.py_buffer(bytes(4) + b'\\1\\0\\0\\0'), pa.py_buffer(b'x')]\n"
        "text = pa.Array.from_buffers(pa.string(), 1, parts)\n"
        "for name in ('t.csv', 't.parquet'):\n"
        "    write_table(sys.argv[1] + '/' + name, [pa.Table.from_arrays([text], names=['s'])])\n"
        "    file = open_table(sys.argv[1] + '/' + name)\n"
        "    list(file.batches(file.names))\n"
        "print(sorted({'pandas', 'polars', 'scipy', 'narwhals'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------------------------------ feather, sheets


def typed():
    return pa.table(
        {
            "a": pa.array([1, None, 3], pa.int32()),
            "b": pa.array(["x", None, "=1+1"]),
            "c": pa.array(["x", "y", None]).dictionary_encode(),
            "d": pa.array([dt.date(2020, 2, 29), None, dt.date(1999, 1, 1)]),
        }
    )


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.feather", "t.xlsx"])
def test_texts_that_look_like_formulas_are_written_as_they_are(tmp_path, name):
    pytest.importorskip("openpyxl")
    texts = ["=1+1", "+1", "-x", "@a", '=HYPERLINK("a")', "\t=1"]
    write_table(tmp_path / name, [pa.table({"=a": texts})])
    assert read(tmp_path / name, ["=a"]) == {"=a": texts}


def test_feather_keeps_types_and_is_refused_if_it_is_damaged(tmp_path):
    path = tmp_path / "t.feather"
    assert write_table(path, [typed(), typed()]) == 6
    file = open_table(path)
    assert (file.kind, file.names, list(file.types)) == ("feather", ("a", "b", "c", "d"), typed().schema.types)
    assert read(path, ["d", "a"]) == {name: typed()[name].to_pylist() * 2 for name in ("d", "a")}
    told = []
    list(file.batches(["a"], progress=told.append))
    assert told == [0.25, 0.5, 0.75, 1.0]
    whole = path.read_bytes()
    for part in (whole[: len(whole) // 2], whole[:-4] + b"xxxx"):
        path.write_bytes(part)
        refused(path)
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(DataError, match="is not a Feather file by its first bytes"):
        open_table(path)
    (tmp_path / "t.csv").write_bytes(whole)
    with pytest.raises(DataError, match=r"is a Feather file by its first bytes\. Rename it to \.feather"):
        open_table(tmp_path / "t.csv")


def test_sheets_are_read_as_text_and_written_as_what_cells_are(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    assert write_table(path, [typed(), typed()]) == 6
    file = open_table(path)
    assert (file.kind, file.names, file.types) == ("xlsx", ("a", "b", "c", "d"), None)
    assert read(path) == {
        "a": ["1", None, "3"] * 2,
        "b": ["x", None, "=1+1"] * 2,
        "c": ["x", "y", None] * 2,
        "d": ["2020-02-29", None, "1999-01-01"] * 2,
    }
    cell = openpyxl.load_workbook(path).worksheets[0]["B4"]
    assert (cell.value, cell.data_type) == ("=1+1", "s")  # a text, no formula
    told = []
    list(file.batches(["a"], progress=told.append))
    assert told == [0.25, 0.5, 0.75, 1.0]
    path.write_bytes(path.read_bytes()[:-500])
    refused(path)


def test_a_sheet_without_a_whole_header_is_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    for header in ([], ["a", None, "c"], [None, "b"]):
        book = openpyxl.Workbook()
        book.worksheets[0].append(header)
        book.worksheets[0].append(["1", "2", "3"])
        book.save(tmp_path / "t.xlsx")
        if header:
            with pytest.raises(DataError, match="must name the columns"):
                open_table(tmp_path / "t.xlsx")


def test_a_sheet_holds_so_many_rows(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    monkeypatch.setattr(sheets, "SHEET_ROWS", 5)
    with pytest.raises(ArgumentError, match="A sheet holds 5 rows at most"):
        write_table(tmp_path / "t.xlsx", [typed(), typed()])
    assert not list(tmp_path.iterdir())


def test_a_parquet_file_is_never_in_memory_as_a_whole(tmp_path):
    """Nor is a group of its rows: several threads read, each its own."""
    path, table = tmp_path / "t.parquet", pa.table({"a": np.random.default_rng(0).random(800_000)})
    for groups in (1, 40):
        pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=800_000 // groups)
        before = pa.total_allocated_bytes()
        most = max(pa.total_allocated_bytes() - before for _ in open_table(path).batches(["a"]))
        assert most < table.nbytes / 2
        assert sum(batch.num_rows for batch in open_table(path).batches(["a"])) == 800_000


@pytest.mark.parametrize("rows", [0, 3, 300_000])
def test_parquet_tells_of_rows_that_were_read(tmp_path, rows: int) -> None:
    """Not of pieces that were handed out: a file of one group would be said to be read at once."""
    pq.write_table(pa.table({"x": np.zeros(rows)}), tmp_path / "t.parquet", row_group_size=10**6)
    told: list[float] = []
    pieces = list(open_table(tmp_path / "t.parquet").pieces(["x"], progress=told.append))
    assert told == ([] if rows else [0.25, 0.5, 0.75, 1.0])
    batches = [batch for read in pieces for batch in read()]
    assert sum(batch.num_rows for batch in batches) == rows
    assert told == [0.25, 0.5, 0.75, 1.0]

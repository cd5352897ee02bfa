"""Every error of every reader: it shows no value, and is the same for other values and for every size of the data.

A fault writes a table of some rows whose cells hold a canary, and damages it; or it makes a frame that is refused. What
is raised must not differ between two canaries of different lengths, nor between few rows and many, in its kind, its
words or what hangs on it.
"""

import gzip
import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure import cli
from privmeasure.errors import DataError, PrivmeasureError
from privmeasure.sources.files import open_table
from sheets import DATE, cell, parts_of, row, write_parts

CANARIES = ("canary73819", "canary-of another length 4471", "canary<&>ü")
SIZES = (1, 2, 300, 5000)
SHEET_SIZES = (1, 700)
"""The larger ones are read in several pieces: what is wrong in the last is found after the header was."""
SCHEMA = pm.Schema(
    {
        "x": pm.Number(0, 1e9, nullable=True),
        "c": pm.Category(["F", "M"], nullable=True),
        "d": pm.Date("1900-01-01", "2030-12-31", nullable=True),
        "note": pm.Drop(),
    }
)
NAMES = ["x", "c", "d", "note"]


def cells(canary: str, rows: int) -> pa.Table:
    """Return rows in which the canary stands as text, in a dictionary, as a number and as a day."""
    secret = sum(map(ord, canary))
    rng = np.random.default_rng(secret)
    return pa.table(
        {
            "x": pa.array(rng.integers(0, 10**9, rows).astype(np.float64) + secret),
            "c": pa.array([f"{canary}{i % 7}" for i in range(rows)]).dictionary_encode(),
            "d": pa.array(rng.integers(0, 20_000, rows), pa.int32()).cast(pa.date32()),
            "note": pa.array([f"{canary}{value}" for value in rng.integers(0, 1 << 40, rows)]),
        }
    )


Fault = Callable[[Path, str, int], None]
FAULTS: dict[str, Fault] = {}
"""By the name of the file that they write."""


def fault(*names: str) -> Callable[[Fault], Fault]:
    def told(write: Fault) -> Fault:
        FAULTS.update({f"{write.__name__} in {name}": write for name in names})
        return write

    return told


def changed(path: Path, change: Callable[[bytearray], Any]) -> None:
    content = bytearray(path.read_bytes())
    kept = change(content)
    path.write_bytes(content if kept is None else kept)


# ----------------------------------------------------------------------------------------------------------------- text


def lines(canary: str, rows: int, header: str = "x,c,d,note") -> bytes:
    body = "".join(f'{i}.5,"{canary}",2020-02-29,{canary}{i}\n' for i in range(rows))
    return f"{header}\n{body}".encode()


def written(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


@fault("t.csv", "t.csv.gz")
def a_name_that_stands_twice(path: Path, canary: str, rows: int) -> None:
    written(path, lines(canary, rows, "x,c,d,c"))


@fault("t.csv", "t.csv.gz")
def a_header_that_is_no_utf_8(path: Path, canary: str, rows: int) -> None:
    written(path, b"x,c,d,note\xff\n" + lines(canary, rows))


@fault("t.csv", "t.csv.gz")
def a_quote_in_the_header_that_does_not_end(path: Path, canary: str, rows: int) -> None:
    written(path, lines(canary, rows, 'x,c,d,"note'))


@fault("t.csv", "t.csv.gz")
def another_header(path: Path, canary: str, rows: int) -> None:
    written(path, lines(canary, rows, "x,c,day,note"))


@fault("t.csv", "t.csv.gz")
def no_header(path: Path, canary: str, rows: int) -> None:
    written(path, lines(canary, rows).partition(b"\n")[2])


@fault("t.csv", "t.csv.gz")
def no_header_and_equal_cells(path: Path, canary: str, rows: int) -> None:
    written(path, f"{canary},{canary},{canary},1\n".encode() * rows)


@fault("t.csv", "t.csv.gz")
def no_header_and_another_delimiter(path: Path, canary: str, rows: int) -> None:
    written(path, lines(canary, rows).partition(b"\n")[2].replace(b",", b";"))


@fault("t.csv", "t.csv.gz")
def another_delimiter(path: Path, canary: str, rows: int) -> None:
    written(path, lines(canary, rows, "x;c;d;note"))


@fault("t.csv", "t.csv.gz")
def utf_16(path: Path, canary: str, rows: int) -> None:
    written(path, lines(canary, rows).decode().encode("utf-16"))


@fault("t.csv.gz")
def an_end_that_is_missing(path: Path, canary: str, rows: int) -> None:
    written(path, lines(canary, rows))
    changed(path, lambda content: content[:-3])


@fault("t.csv.gz")
def a_checksum_of_other_bytes(path: Path, canary: str, rows: int) -> None:
    written(path, lines(canary, rows))
    changed(path, lambda content: content[:-8] + bytes([content[-8] ^ 1]) + content[-7:])


@fault("t.csv.gz")
def bytes_that_are_no_gzip_after_it(path: Path, canary: str, rows: int) -> None:
    written(path, lines(canary, rows))
    changed(path, lambda content: content + b"\x1f\x8b\x08\x00" + canary.encode() * rows)


@fault("t.csv")
def a_parquet_file_by_its_first_bytes(path: Path, canary: str, rows: int) -> None:
    pq.write_table(cells(canary, rows), path)


@fault("t.parquet", "t.feather", "t.xlsx")
def a_text(path: Path, canary: str, rows: int) -> None:
    path.write_bytes(lines(canary, rows))


# ----------------------------------------------------------------------------------------------------- parquet, feather


def store(path: Path, table: pa.Table, **options: Any) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="none", row_group_size=4000, **options)
    else:
        feather.write_feather(table, path, compression="uncompressed", chunksize=4000)


@fault("t.parquet", "t.feather")
def half_a_file(path: Path, canary: str, rows: int) -> None:
    store(path, cells(canary, rows))
    changed(path, lambda content: content[: len(content) // 2])


@fault("t.parquet", "t.feather")
def a_footer_of_other_bytes(path: Path, canary: str, rows: int) -> None:
    store(path, cells(canary, rows))
    changed(path, lambda content: content[:-200] + (canary.encode() * 20)[:190] + content[-10:])


@fault("t.parquet", "t.feather")
def a_length_of_the_footer_that_is_too_large(path: Path, canary: str, rows: int) -> None:
    store(path, cells(canary, rows))
    end = 4 if path.suffix == ".parquet" else 6
    changed(path, lambda content: content[: -4 - end] + b"\xff\xff\xff\x7f" + content[-end:])


@fault("t.parquet")
def pages_of_other_bytes(path: Path, canary: str, rows: int) -> None:
    store(path, cells(canary, rows))

    def mixed(content: bytearray) -> None:
        content[4:44] = b"\xff" * 40

    changed(path, mixed)


@fault("t.parquet")
def an_index_without_a_value(path: Path, canary: str, rows: int) -> None:
    """Of numbers: Parquet's reader finds values by itself there."""
    many = 40 * min(rows, 500)
    table = cells(canary, many).set_column(0, "x", pa.array(np.arange(many) % 40 + float(len(canary))))
    pq.write_table(table, path, compression="none", write_statistics=False, data_page_version="1.0")
    indices = np.packbits((np.arange(40)[:, None] >> np.arange(6)) & 1, bitorder="little").tobytes()
    odd = np.packbits((np.full(40, 63)[:, None] >> np.arange(6)) & 1, bitorder="little").tobytes()
    changed(path, lambda content: content.replace(indices, odd, 1))


@fault("t.parquet", "t.feather")
def a_compressed_body_of_other_bytes(path: Path, canary: str, rows: int) -> None:
    if path.suffix == ".parquet":
        pq.write_table(cells(canary, rows), path, compression="zstd")
    else:
        feather.write_feather(cells(canary, rows), path, compression="zstd")
    begin = path.read_bytes().index(b"\x28\xb5\x2f\xfd")

    def mixed(content: bytearray) -> None:
        content[begin : begin + 12] = b"\xff" * 12

    changed(path, mixed)


def moved(path: Path, table: pa.Table, words: Any, place: int, word: int) -> None:
    """Change one of the words that say where the values of a column are; there is one batch."""
    feather.write_feather(table, path, compression="uncompressed")
    old = np.asarray(words, np.int32)
    odd = old.copy()
    odd[place] = word

    def mixed(content: bytearray) -> bytearray:
        assert old.tobytes() in content
        return content.replace(old.tobytes(), odd.tobytes())

    changed(path, mixed)


@fault("t.feather")
def an_offset_of_texts_beyond_the_end(path: Path, canary: str, rows: int) -> None:
    """Arrow looked for the text in memory that was not the file's, which ended the process."""
    table, ends = cells(canary, rows), np.arange(rows + 2) * len(canary.encode())
    texts = pa.array([canary] * (rows + 1))
    table = pa.concat_tables([table, table.slice(0, 1)]).combine_chunks().set_column(1, "c", texts)
    moved(path, table, ends, rows // 2 + 1, 2_000_000_000)


@fault("t.feather")
def an_offset_of_texts_before_the_one_before(path: Path, canary: str, rows: int) -> None:
    table = pa.concat_tables([cells(canary, rows)] * 2).combine_chunks()
    texts = pa.array([canary] * (2 * rows))
    moved(path, table.set_column(1, "c", texts), np.arange(2 * rows + 1) * len(canary.encode()), rows, -5)


@fault("t.feather")
def an_offset_of_a_dictionary_beyond_the_end(path: Path, canary: str, rows: int) -> None:
    table = cells(canary, rows).set_column(1, "c", pa.array([canary, "F", "M"]).dictionary_encode().take([0] * rows))
    size = len(canary.encode())
    moved(path, table, [0, size, size + 1, size + 2], 1, 2_000_000_000)


@fault("t.feather")
def an_end_of_a_run_before_the_one_before(path: Path, canary: str, rows: int) -> None:
    ends = [rows, rows + 1, rows + 2]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), pa.array([canary, "F", "M"]))
    table = pa.concat_tables([cells(canary, rows), cells(canary, 2)]).combine_chunks().unify_dictionaries()
    moved(path, table.set_column(1, "c", runs), ends, 1, -7)


@fault("t.feather")
def a_text_of_another_place(path: Path, canary: str, rows: int) -> None:
    views = pa.array([f"{canary} {canary}"] * rows, pa.string_view())
    feather.write_feather(cells(canary, rows).set_column(1, "c", views), path, compression="uncompressed")

    def mixed(content: bytearray) -> None:
        view = content.index(len(f"{canary} {canary}".encode()).to_bytes(4, "little") + canary.encode()[:4])
        content[view + 12 : view + 16] = b"\xff\xff\xff\x7f"

    changed(path, mixed)


@fault("t.parquet", "t.feather")
def a_column_of_lists(path: Path, canary: str, rows: int) -> None:
    store(path, cells(canary, rows).set_column(1, "c", pa.array([[canary]] * rows)))


@fault("t.parquet", "t.feather")
def a_column_of_another_type(path: Path, canary: str, rows: int) -> None:
    store(path, cells(canary, rows).set_column(0, "x", pa.array([canary] * rows)))


@fault("t.parquet", "t.feather")
def a_dictionary_of_another_type(path: Path, canary: str, rows: int) -> None:
    store(path, cells(canary, rows).set_column(0, "x", pa.array([canary] * rows).dictionary_encode()))


@fault("t.parquet")
def an_encrypted_footer(path: Path, canary: str, rows: int) -> None:
    store(path, cells(canary, rows))
    changed(path, lambda content: content[:-4] + b"PARE")


@fault("t.feather")
def the_first_version(path: Path, canary: str, rows: int) -> None:
    store(path, cells(canary, rows))
    changed(path, lambda content: b"FEA1" + content[4:])


# --------------------------------------------------------------------------------------------------------------- sheets


def sheet(path: Path, canary: str, rows: int, change: Callable[[dict[str, str]], Any]) -> None:
    escaped = canary.replace("&", "&amp;").replace("<", "&lt;")
    body = [row(cell(i + 0.5), cell(4, t="s"), cell(43890 + i, s=DATE), cell(5, t="s")) for i in range(rows)]
    parts = parts_of([row(*(cell(i, t="s") for i in range(4)), number=1), *body], [*NAMES, escaped, f"{escaped}!"])
    change(parts)
    write_parts(path, parts)


def replaced(name: str, old: str, new: str) -> Fault:
    def write(path: Path, canary: str, rows: int) -> None:
        def change(parts: dict[str, str]) -> None:
            assert old in parts[name]
            begin, _, end = parts[name].rpartition(old)
            parts[name] = begin + new.replace("CANARY", canary) + end

        sheet(path, canary, rows, change)

    return write


SHEET, SHARED, LOOKS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/styles.xml"
FAULTS |= {
    f"{name} in t.xlsx": replaced(*change)
    for name, change in {
        "a sheet that ends in a cell": (SHEET, "</c></row></sheetData></worksheet>", "<f>CANARY"),
        "a cell that is no XML": (SHEET, "<row><c>", "<row><c><v>CANARY</w>"),
        "an entity that is not known": (SHEET, "<row><c>", "<row><c><v>&CANARY73819;</v></c><c>"),
        "a letter that is none": (SHEET, "<row><c>", "<row><c><v>CANARY\x00</v></c><c>"),
        "texts that end": (SHARED, "</t></si></sst>", "CANARY"),
        "a text that is no XML": (SHARED, "<si><t>", "<si><t>CANARY</w>"),
        "a style with a word for a number": (LOOKS, '<xf numFmtId="14"/>', '<xf numFmtId="canary73819"/>'),
        "a style that is no XML": (LOOKS, "</styleSheet>", "CANARY</w>"),
        "no sheet": ("xl/workbook.xml", '<sheet name="rows" sheetId="1" r:id="rId1"/>', "<!-- canary73819 -->"),
        "a number of a sheet": ("xl/workbook.xml", 'sheetId="1"', 'sheetId="canary73819"'),
        "links that end": ("xl/_rels/workbook.xml.rels", "</Relationships>", "canary73819"),
        "a header with a gap": (SHEET, '<c t="s"><v>1</v></c>', '<c t="s"/>'),
        "a header of numbers": (SHEET, '<c t="s"><v>1</v></c>', "<c><v>word</v></c>"),
    }.items()
}


@fault("t.xlsx")
def no_header_of_a_sheet(path: Path, canary: str, rows: int) -> None:
    """The first row has a text, and the second cell a number, which depends on the canary as well."""
    first = row(cell(4, t="s"), cell(sum(map(ord, canary))), cell(43890, s=DATE), cell(5, t="s"), number=1)

    def change(parts: dict[str, str]) -> None:
        begin, _, end = parts[SHEET].partition('<row r="1">')
        parts[SHEET] = begin + first + end.partition("</row>")[2]

    sheet(path, canary, rows, change)


@fault("t.xlsx")
def no_header_of_a_sheet_and_equal_cells(path: Path, canary: str, rows: int) -> None:
    def change(parts: dict[str, str]) -> None:
        begin, _, end = parts[SHEET].partition('<row r="1">')
        parts[SHEET] = begin + row(cell(4, t="s"), cell(4, t="s"), number=1) + end.partition("</row>")[2]

    sheet(path, canary, rows, change)


@fault("t.xlsx")
def an_archive_that_ends(path: Path, canary: str, rows: int) -> None:
    sheet(path, canary, rows, lambda parts: None)
    changed(path, lambda content: content[:-30])


@fault("t.xlsx")
def an_archive_with_another_checksum(path: Path, canary: str, rows: int) -> None:
    sheet(path, canary, rows, lambda parts: None)

    def mixed(content: bytearray) -> None:
        entry = content.rindex(b"PK\x01\x02", 0, content.rindex(b"xl/worksheets/sheet1.xml"))
        content[entry + 16] ^= 1

    changed(path, mixed)


@fault("t.xlsx")
def an_archive_without_a_book(path: Path, canary: str, rows: int) -> None:
    sheet(path, canary, rows, lambda parts: parts.pop("xl/workbook.xml"))


# -------------------------------------------------------------------------------------------------------------- the law


def visible(error: BaseException) -> tuple[str, str, str]:
    """Return the kind and the words of an error, and all that Python would print of what hangs on it."""
    assert getattr(error, "__notes__", []) in ([], ["Nothing was spent."]), "a fit says what it has cost"
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    return type(error).__name__, str(error), repr(error.args)


def read_error(path: Any, **options: Any) -> BaseException:
    def read() -> None:
        table = open_table(path, **options)
        SCHEMA.check(table.names, table.types)
        for _ in table.batches([name for name in table.names if name in SCHEMA.data]):
            pass

    with pytest.raises(PrivmeasureError) as caught:
        read()
    printed = "".join(traceback.format_exception(caught.value))
    assert "canary" not in printed.replace(str(path), ""), printed
    return caught.value


def fit_error(data: Any, schema: pm.Schema = SCHEMA, **options: Any) -> BaseException:
    synthesizer = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove", threads=2)
    with pytest.raises(PrivmeasureError) as caught:
        synthesizer.fit(data, **options)
    assert not synthesizer.spent
    assert caught.value.__context__ is None
    return caught.value


def check_equal(errors: Iterator[tuple[object, BaseException]]) -> None:
    """All errors are one and the same, and none shows a canary."""
    first: tuple[str, str, str] | None = None
    for told, error in errors:
        seen = visible(error)
        assert "canary" not in seen[1], (told, seen)
        assert seen == (first := first or seen), told


@pytest.mark.parametrize("name", FAULTS)
def test_an_error_of_a_reader_is_the_same_for_all_values_and_sizes(tmp_path, name):
    """Read directly, and in a fit."""
    pytest.importorskip("openpyxl")
    path = tmp_path / name.rpartition(" ")[2]

    def errors(of: Callable[[Any], BaseException]) -> Iterator[tuple[object, BaseException]]:
        for rows in SIZES if path.suffix != ".xlsx" else SHEET_SIZES:
            for canary in CANARIES:
                FAULTS[name](path, canary, rows)
                yield (canary, rows), of(path)

    check_equal(errors(read_error))
    check_equal(errors(fit_error))


@pytest.mark.parametrize("name", ["a_checksum_of_other_bytes in t.csv.gz", "an_end_that_is_missing in t.csv.gz"])
def test_damage_is_told_alike_wherever_it_is_found(tmp_path, capsys, name):
    """In what is read to find the names of columns, which for a small file is all of it, or behind that."""
    path, schema = tmp_path / "t.csv.gz", tmp_path / "s.toml"
    schema.write_text(SCHEMA.to_toml())
    words = ["synthesize", str(path), "-s", str(schema), "-e", "1", "--neighbours", "add-remove", "-o", "out.csv"]
    told, printed = [], set()
    for rows in (1, 30_000):
        FAULTS[name](path, CANARIES[0], rows)
        told.append((rows, fit_error(path)))
        code = cli.run(words)
        printed.add((code, *capsys.readouterr()))
    check_equal(iter(told))
    assert len(printed) == 1


IN_FOLDERS = [
    *list(FAULTS)[::4],
    "an_end_that_is_missing in t.csv.gz",
    "pages_of_other_bytes in t.parquet",
    "an_index_without_a_value in t.parquet",
    "a_compressed_body_of_other_bytes in t.feather",
    "a cell that is no XML in t.xlsx",
]
"""Some that are found when a file is opened, and some when it is read."""


@pytest.mark.parametrize("name", dict.fromkeys(IN_FOLDERS))
def test_an_error_of_a_file_in_a_folder_does_not_show_what_the_folder_says(tmp_path, name):
    """The name of the folder is a value of its rows."""
    pytest.importorskip("openpyxl")
    schema = pm.Schema({**SCHEMA.columns, "ward": pm.Category(["A", "B"], nullable=True)})

    def errors() -> Iterator[tuple[object, BaseException]]:
        for canary in CANARIES[:2]:
            for rows in SIZES[:2]:
                folder = tmp_path / "visits" / f"ward={canary}"
                folder.mkdir(parents=True)
                FAULTS[name](folder / name.rpartition(" ")[2], canary, rows)
                yield (canary, rows), fit_error(tmp_path / "visits", schema)
                (folder / name.rpartition(" ")[2]).unlink()
                folder.rmdir()

    check_equal(errors())


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.feather", "t.xlsx"])
def test_a_file_that_changed_is_refused_alike(tmp_path, name):
    pytest.importorskip("openpyxl")
    path = tmp_path / name

    def fine(canary: str, rows: int) -> None:
        if path.suffix == ".xlsx":
            sheet(path, canary, rows, lambda parts: None)
        elif ".csv" in name:
            written(path, lines(canary, rows))
        else:
            store(path, cells(canary, rows))

    def errors(before: int) -> Iterator[tuple[object, BaseException]]:
        for canary in CANARIES:
            for rows in SIZES[:3]:
                fine(canary, before)
                table = open_table(path)
                fine(canary, rows)
                os.utime(path, ns=(rows, rows))
                with pytest.raises(DataError) as caught:
                    list(table.batches(["x"]))
                yield (canary, rows), caught.value

    check_equal(errors(5))


# --------------------------------------------------------------------------------------------------------------- stores


class Failing(pyarrow.fs.FileSystemHandler):
    """A store in a folder of this machine that fails at one thing, with words that show a canary and a size."""

    def __init__(self, folder: Path, at: str, words: str) -> None:
        self.inner, self.at, self.words = (
            pyarrow.fs.SubTreeFileSystem(str(folder), pyarrow.fs.LocalFileSystem()),
            at,
            words,
        )
        self.asked = self.read = 0

    def fail(self, at: str, kind: type[Exception] = OSError) -> None:
        if at == self.at:
            raise kind(self.words)

    def get_type_name(self) -> str:
        return "failing"

    def get_file_info(self, paths: list[str]) -> Any:
        self.asked += 1
        self.fail("status")
        if self.asked > 3:
            self.fail("later status")
        return self.inner.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        self.fail("list")
        return self.inner.get_file_info(selector)

    def open_input_file(self, path: str) -> Any:
        self.asked += 1
        self.fail("open")
        if self.asked > 5:
            self.fail("later open")
        if not self.at.endswith("read"):
            return self.inner.open_input_file(path)
        return pa.PythonFile(Ending(self.inner.open_input_file(path), self), "r")

    def check_read(self) -> None:
        self.read += 1
        self.fail("read")
        if self.read > 2:
            self.fail("later read")

    def normalize_path(self, path: str) -> str:
        return path

    def _written(self, *_: Any, **__: Any) -> None:
        raise AssertionError("readers write nothing")

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = _written
    move = open_append_stream = open_input_stream = open_output_stream = _written


class Ending:
    """A file of which a part cannot be read."""

    def __init__(self, inner: Any, store: Failing) -> None:
        self.inner, self.store, self.closed = inner, store, False

    def read(self, size: int = -1) -> bytes:
        if size is None or not 0 <= size <= 8:  # more than the first bytes, which tell of the format
            self.store.check_read()
        return bytes(self.inner.read() if size is None or size < 0 else self.inner.read(size))

    def seek(self, *place: int) -> int:
        return int(self.inner.seek(*place))

    def tell(self) -> int:
        return int(self.inner.tell())

    def size(self) -> int:
        return int(self.inner.size())

    def close(self) -> None:
        self.inner.close()

    def seekable(self) -> bool:
        return True


@pytest.mark.parametrize("at", ["status", "later status", "list", "open", "later open", "read", "later read"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.feather", "t.xlsx"])
def test_what_a_store_says_is_not_passed_on(tmp_path, name, at):
    pytest.importorskip("openpyxl")
    path = tmp_path / name

    def errors() -> Iterator[tuple[object, BaseException]]:
        for canary in CANARIES:
            for rows in SIZES[:3]:
                if path.suffix == ".xlsx":
                    sheet(path, canary, rows, lambda parts: None)
                elif ".csv" in name:
                    written(path, lines(canary, rows))
                else:
                    store(path, cells(canary, rows))
                store_of = pyarrow.fs.PyFileSystem(Failing(tmp_path, at, f"{canary}: {path.stat().st_size} bytes"))
                place = "" if at == "list" else name
                try:
                    yield (canary, rows), fit_error(place, filesystem=store_of)
                except pytest.fail.Exception:  # nothing was asked for so often
                    assert at.startswith("later")
                    return

    check_equal(errors())


# --------------------------------------------------------------------------------------------------------------- frames


def broken(frame: pl.DataFrame) -> pl.LazyFrame:
    return frame.lazy().with_columns(pl.col("note").cast(pl.Int64, strict=True))


FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "complex numbers": lambda frame: frame.assign(x=frame["x"] + 1j),
    "intervals": lambda frame: frame.assign(d=pd.arrays.IntervalArray.from_arrays(frame["x"] - 1, frame["x"])),
    "periods": lambda frame: frame.assign(d=pd.period_range("2020-01", periods=len(frame), freq="M")),
    "text for a number": lambda frame: frame.assign(x=frame["note"].astype("str")),
    "categories of lists": lambda frame: frame.assign(d=pd.Series([["a"]] * len(frame), dtype=pd.ArrowDtype(LISTS))),
    "names that stand twice": lambda frame: pd.concat([frame, frame[["c"]]], axis=1),
    "names of several levels": lambda frame: pd.concat({"a": frame}, axis=1),
    "another name": lambda frame: frame.rename(columns={"d": "day"}),
    "no table": lambda frame: frame["note"].tolist(),
    "a series": lambda frame: frame["note"],
    "a text": lambda frame: frame.to_csv(),
    "an array of objects": lambda frame: frame.to_numpy(dtype=object),
    "polars of 128 bits": lambda frame: pl.DataFrame(frame.to_dict("list")).with_columns(x=pl.lit(1, pl.Int128)),
    "a lazy frame that fails": lambda frame: broken(pl.DataFrame(frame.to_dict("list"))),
    "arrow lists": lambda frame: pa.table({name: [[value] for value in frame[name]] for name in frame}),
}
LISTS = pa.list_(pa.string())


@pytest.mark.parametrize("kind", FRAMES)
def test_an_error_about_a_frame_is_the_same_for_all_values_and_sizes(kind):
    def errors() -> Iterator[tuple[object, BaseException]]:
        for canary in CANARIES:
            for rows in SIZES:
                frame = cells(canary, rows).to_pandas()
                frame["note"] = frame["note"].astype(object)
                yield (canary, rows), fit_error(FRAMES[kind](frame.astype({"d": object, "c": object})))

    check_equal(errors())


ARRAYS: dict[str, Callable[[np.ndarray, str], Any]] = {
    "texts": lambda points, canary: np.full(len(points), canary),
    "bytes": lambda points, canary: np.full(len(points), canary.encode()),
    "objects": lambda points, canary: np.array([canary] * len(points), object),
    "dates": lambda points, canary: points[:, 0].astype("datetime64[s]"),
    "records": lambda points, canary: np.array([(canary, 1.0)] * len(points), [("name", "U40"), ("x", "f8")]),
    "complex numbers": lambda points, canary: points * 1j,
    "masked texts": lambda points, canary: np.ma.array([canary] * len(points)),
    "a third column": lambda points, canary: np.column_stack([points, points[:, 0]]),
    "one dimension": lambda points, canary: points[:, 0],
    "three dimensions": lambda points, canary: points[:, :, None],
    "a series of texts": lambda points, canary: pd.Series([canary] * len(points)),
    "a frame of texts": lambda points, canary: pl.DataFrame({"a": points[:, 0], "b": [canary] * len(points)}),
    "a dict": lambda points, canary: {canary: points},
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_an_error_about_an_array_is_the_same_for_all_values_and_sizes(kind):
    def errors() -> Iterator[tuple[object, BaseException]]:
        for canary in CANARIES:
            for rows in SIZES:
                points = np.random.default_rng(rows).random((rows, 2))
                synthesizer = pm.Synthesizer(pm.Box([(0, 1)] * 2), epsilon=1, neighbours="add-remove")
                with pytest.raises(DataError) as caught:
                    synthesizer.fit(ARRAYS[kind](points, canary))
                assert not synthesizer.spent
                yield (canary, rows), caught.value

    check_equal(errors())


# ---------------------------------------------------------------------------------------------------------- the command


WITHOUT_HEADER = [name for name in FAULTS if name.startswith("no_header")]


@pytest.mark.parametrize("name", WITHOUT_HEADER)
def test_a_comparison_shows_nothing_of_a_file_without_a_header(tmp_path, capsys, name):
    pytest.importorskip("openpyxl")
    path, rows = tmp_path / name.rpartition(" ")[2], cells(CANARIES[0], 5)
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml())
    pq.write_table(rows, tmp_path / "rows.parquet")

    def errors() -> Iterator[tuple[object, BaseException]]:
        for canary in CANARIES:
            FAULTS[name](path, canary, 5)
            for pair in ((path, rows), (rows, path)):
                with pytest.raises(PrivmeasureError) as caught:
                    pm.evaluate(*pair, SCHEMA)
                yield canary, caught.value
            for words in ([path, tmp_path / "rows.parquet"], [tmp_path / "rows.parquet", path]):
                assert cli.run(["evaluate", *map(str, words), "-s", str(tmp_path / "s.toml")]) in (2, 3)
                told = capsys.readouterr()
                assert "header" in told.err
                assert "canary" not in (told.out + told.err).replace(str(path), "")

    check_equal(errors())


@pytest.mark.parametrize("name", dict.fromkeys([*list(FAULTS)[4::9], *WITHOUT_HEADER]))
@pytest.mark.parametrize("command", ["synthesize", "check"])
def test_what_a_command_prints_is_the_same_for_all_values_and_sizes(tmp_path, capsys, name, command):
    """Its words, its progress and its exit code."""
    pytest.importorskip("openpyxl")
    path, out = tmp_path / name.rpartition(" ")[2], tmp_path / "out.csv"
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml())
    words = ["synthesize", str(path), "-s", str(tmp_path / "s.toml"), "-e", "1", "--neighbours", "add-remove"]
    if command == "check":
        words = ["schema", "check", str(tmp_path / "s.toml"), "--data", str(path)]
    else:
        words += ["-o", str(out)]
    seen = set()
    for rows in SIZES[1:3]:
        for canary in CANARIES[:2]:
            FAULTS[name](path, canary, rows)
            code = cli.run(words)
            told = capsys.readouterr()
            assert "canary" not in (told.out + told.err).replace(str(path), ""), told
            assert code in (2, 3)
            seen.add((code, told.out, told.err))
            assert not out.exists()
    assert len(seen) == 1
    if name in WITHOUT_HEADER:
        assert "header" in told.err

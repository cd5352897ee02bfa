"""The law of rows in xlsx files, cell by cell: XML as no library writes it, but as anyone can.

A cell that cannot be read is missing; if its column is not known, so is its row. Neither changes any other row. Only
what is not XML may raise.
"""

import pytest

from privmeasure.errors import DataError
from privmeasure.sources.files import open_table
from privmeasure.sources.lines import UnreadRows
from privmeasure.tables import Category, Date, Number, Schema
from sheets import DATE, DURATION, cell, parts_of, row, write_parts

from .test_rows import check_neighbours

pytest.importorskip("openpyxl")

NAMES = ("x", "y", "d")
TEXTS = [*NAMES, "F", "M", "last"]
HEADER = [cell(i, f"{letter}1", t="s") for i, letter in enumerate("ABC")]


def usual(number=""):
    """Rows of 2.5, "F" or "M", and a day; of each the number in the file, or none."""
    return [
        row(cell(2.5, f"A{i}"), cell(3 + i % 2, f"B{i}", t="s"), cell(43890, f"C{i}", s=DATE), number=number and i)
        for i in range(2, 8)
    ]


def written(path, rows, header=True):
    return write_parts(path, parts_of([row(*HEADER, number=1), *rows] if header else rows, TEXTS))


def read(path):
    return [
        values
        for batch in open_table(path).batches(NAMES)
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


FINE = cell(7, "A9")
READ = {
    "overflow": (cell("1e999", "A9"), "inf"),
    "digits": (cell("9" * 4000, "A9"), "9" * 4000),
    "grouped": (cell("1_0", "A9"), "10"),
    "error": (cell("#N/A", "A9", t="e"), "#N/A"),
    "another type": (cell("5", "A9", t="zz"), "5"),
    "boolean": (cell(7, "A9", t="b"), "true"),
    "iso": (cell("2020-02-29", "A9", t="d"), "2020-02-29"),
    "date beyond": (cell("1e18", "A9", s=DATE), "#VALUE!"),
    "date below": (cell("-1e9", "A9", s=DATE), "#VALUE!"),
    "date of infinity": (cell("1e999", "A9", s=DATE), "#VALUE!"),
    "duration beyond": (cell("1e18", "A9", s=DURATION), "#VALUE!"),
    "another style": (cell(5, "A9", s=99), "5"),
    "text": ('<c r="A9" t="inlineStr"><is><t>=1+1</t></is></c>', "=1+1"),
    "formula": ('<c r="A9"><f>1/0</f><v>5</v></c>', "5"),
}
"""Cells that are read, and as what."""
UNREADABLE = {
    "number": cell("secret", "A9"),
    "not a number": cell("nan", "A9"),
    "infinity": cell("inf", "A9"),
    "infinity in capitals": cell("INF", "A9"),
    "too many digits": cell("9" * 5000, "A9"),
    "date": cell("secret", "A9", s=DATE),
    "text beyond": cell(len(TEXTS), "A9", t="s"),
    "text below": cell(-1, "A9", t="s"),
    "text far below": cell(-99, "A9", t="s"),
    "text nowhere": cell("secret", "A9", t="s"),
    "boolean": cell("secret", "A9", t="b"),
    "boolean in letters": cell("true", "A9", t="b"),
    "iso": cell("2020-99-99", "A9", t="d"),
    "iso without such a day": cell("2020-02-30", "A9", t="d"),
    "iso of the year 0": cell("0000-01-01", "A9", t="d"),
    "style": cell(5, "A9", s="secret"),
}
"""Cells that are missing, and no other cell of their row."""
UNREAD = {
    "place": cell(5, "9A"),
    "no place": cell(5, "secret"),
    "beyond the last name": cell(5, "D9"),
    "unreadable beyond the last name": cell("secret", "D9"),
    "beyond the last column": cell(5, "XFE9"),
    "in no column": cell(5, "ZZZZ9"),
    "far beyond": cell(5, "ZZZZZZ9"),
}
"""Cells that make their whole row missing: any of its cells may stand in the wrong column."""
NUMBERS = [9, 1, 2, 0, -5, 10**6, 10**12, "secret", "1e3", ""]
"""What a row may say that its number is."""


@pytest.mark.parametrize("number", ["", "given"])
def test_a_cell_of_a_sheet_is_read_or_missing_and_no_other_cell_changes(tmp_path, number):
    path, rows = tmp_path / "t.xlsx", usual(number)
    before = read(written(path, rows))
    assert before[:2] == [("2.5", "F", "2020-02-29"), ("2.5", "M", "2020-02-29")]
    wanted = {name: (odd, (text, "F", "7")) for name, (odd, text) in READ.items()}
    wanted |= {f"unreadable {name}": (odd, (None, "F", "7")) for name, odd in UNREADABLE.items()}
    wanted |= {f"unread {name}": (odd, (None, None, None)) for name, odd in UNREAD.items()}
    others = cell(3, "B9", t="s"), cell(7)
    for i, (name, (odd, found)) in enumerate(wanted.items()):
        place = (0, 3, 6)[i % 3]
        after = read(written(path, [*rows[:place], row(odd, *others, number=number and 9), *rows[place:]]))
        assert after.pop(place) == found, name
        assert after == before, name


@pytest.mark.parametrize("at", [0, 3, 6])
def test_the_number_that_a_row_says_it_has_changes_no_other_row(tmp_path, at):
    """After one with a large number all rows with smaller ones were passed over."""
    path, rows = tmp_path / "t.xlsx", usual("given")
    before = read(written(path, rows))
    for number in NUMBERS:
        after = read(written(path, [*rows[:at], row(FINE, number=number), *rows[at:]]))
        assert after.pop(at) == ("7", None, None), number
        assert after == before, number


def test_a_row_of_a_sheet_changes_nothing_that_is_seen_of_a_fit(tmp_path):
    columns = Number(0, 10, nullable=True), Category(["F", "M"]), Date("1900-01-01", "2030-12-31")
    schema = Schema(dict(zip(NAMES, columns, strict=True)))
    one = written(tmp_path / "one.xlsx", usual())
    odd_rows = [row(FINE, number=10**6), row(UNREADABLE["number"]), row(UNREADABLE["text below"], FINE)]
    for odd in (*odd_rows, row(UNREAD["far beyond"])):
        check_neighbours(schema, one, written(tmp_path / "other.xlsx", [odd, *usual()]))
    empty = row('<c r="A9"/>', '<c r="ZZ9" s="1"/>', number=10**6)
    check_neighbours(schema, one, written(tmp_path / "other.xlsx", [row(), empty, *usual()]), rows=0)


def test_rows_of_a_sheet_that_cannot_be_read_are_counted(tmp_path):
    unread = UnreadRows()
    path = written(tmp_path / "t.xlsx", [*usual(), *map(row, UNREADABLE.values()), *map(row, UNREAD.values())])
    for _ in open_table(path).batches(["x"], unread=unread):
        pass
    assert unread.rows == len(UNREAD)


def test_the_header_of_a_sheet_is_its_first_row(tmp_path):
    path = tmp_path / "t.xlsx"
    for first in (row(*HEADER, number=3), row(), row('<c r="B1"/>', number=1)):
        with pytest.raises(DataError, match="must name the columns"):
            open_table(written(path, [first, *usual()], header=False))
    for odd in (cell("secret", "D1"), cell("secret", "C1"), cell("canary", "secret")):
        with pytest.raises(DataError, match="not a complete xlsx file"):
            open_table(written(path, [row(*HEADER, odd, number=1)], header=False))
    assert open_table(written(path, [row(*HEADER), *usual()], header=False)).names == NAMES

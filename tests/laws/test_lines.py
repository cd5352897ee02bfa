"""What a line of a text file is: the grammar, Arrow, a reference and blocks of any size agree."""

import io
from encodings.aliases import aliases
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import examples
from privmeasure.errors import ArgumentError
from privmeasure.sources import lines
from privmeasure.sources.lines import CellReader, Grammar, UnreadRows, whole_records
from privmeasure.tables.texts import TextForm

NAMES = ["a", "b", "c", "d"]


def reader(grammar):
    return CellReader(grammar, NAMES[: grammar.width], NAMES[: grammar.width])


def plain(batch):
    return list(zip(*(column.view(pa.binary()).to_pylist() for column in batch.columns), strict=True))


DELIMITERS = [",", ";", "\t", "|", " ", ".", "-", "^", "]", "\\", "'", "~", "\x1f"]


def reference(record, width, delimiter=b","):
    """The cells of one record, letter by letter, or None."""
    cells, cell, state, quoted, i = [], b"", "start", False, 0
    while i < len(record):
        letter = record[i : i + 1]
        if state == "start" and letter == b'"':
            state, quoted = "inside", True
        elif state == "inside" and letter == b'"' and record[i + 1 : i + 2] == b'"':
            cell, i = cell + letter, i + 1
        elif state == "inside" and letter == b'"':
            state = "plain"
        elif state == "inside" or letter != delimiter:
            cell, state = cell + letter, "plain" if state == "start" else state
        else:
            cells.append(cell if cell or quoted else None)
            cell, state, quoted = b"", "start", False
        i += 1
    cells.append(cell if cell or quoted else None)
    return None if state == "inside" or len(cells) != width else tuple(cells)


@pytest.mark.parametrize("delimiter", DELIMITERS)
@pytest.mark.parametrize("width", [1, 2, 3])
def test_all_short_lines_are_read_alike_by_the_grammar_arrow_and_a_reference(width, delimiter):
    grammar, mark = Grammar(delimiter, width), delimiter.encode()
    longest = 7 if delimiter == "," else 6
    every = [bytes(letters) for length in range(longest) for letters in product(b'"x' + mark, repeat=length)]
    rows = [record for record in every if record or width == 1]
    expected = [reference(record, width, mark) for record in rows]
    assert [grammar.row.fullmatch(record) is not None for record in rows] == [cells is not None for cells in expected]
    read = reader(grammar)
    for record, cells in zip(rows, expected, strict=True):
        try:
            alone = plain(read._cells(record + b"\n"))
        except pa.ArrowInvalid:
            alone = None
        assert (alone == [cells]) == (cells is not None), record  # Arrow by itself, the last line being ours
    missing = (None,) * width
    block = b"\n".join([*rows, b""])
    assert plain(read.read(block)) == [missing if cells is None else cells for cells in expected]


marks = st.sampled_from([b'"', b",", b"x", b"\n", b"\r", b"\xff", b"\xef\xbb\xbf", b"\0"])
texts = st.lists(marks, max_size=40).map(b"".join)


@examples(80, 400)
@given(
    texts,
    st.integers(1, 9),
    st.integers(1, 3),
    st.sampled_from([4, 1 << 24]),
    st.booleans(),
    st.sampled_from(DELIMITERS),
)
def test_blocks_of_any_size_give_the_same_rows(text, block, width, longest, newlines_in_cells, delimiter):
    """Also where long records are cut short as they are read; then all of them are missing."""
    grammar, mark = Grammar(delimiter, width, newlines_in_cells), delimiter.encode()
    text = text.replace(b",", mark)
    read = reader(grammar)
    ended = b"".join(whole_records(io.BytesIO(text).read, grammar))
    expected = []
    for record in grammar.records(ended):
        cells = reference(record, width, mark) if longest > 4 or len(record) <= 4 else None
        expected.append((None,) * width if cells is None else cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        patch.setattr(lines, "LONGEST_LINE", longest)
        found = [row for part in whole_records(io.BytesIO(text).read, grammar) for row in plain(read.read(part))]
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        assert row == wanted or (longest == 4 and wanted == (None,) * width)


@examples(50, 200)
@given(texts)
def test_rows_that_cannot_be_read_are_counted(text):
    grammar, unread = Grammar(",", 2), UnreadRows()
    if not text:
        return
    rows = plain(reader(grammar).read(text + b"\n", unread))
    records = [record for record in (text + b"\n").splitlines() if record]
    assert len(rows) == len(records)
    assert unread.rows == sum(reference(record, 2) is None for record in records)
    assert unread.open_quotes == sum(
        all(reference(record, width) is None for width in range(1, 42)) for record in records
    )


# ------------------------------------------------------------------------------------------------- letters and decimals

FORMS = {
    "latin-1": TextForm(encoding="latin-1"),
    "cp1252": TextForm(encoding="cp1252"),
    "koi8-r": TextForm(encoding="koi8-r"),
    "mac-roman": TextForm(encoding="mac-roman"),
    "comma": TextForm(decimal=","),
    "cp1252 comma": TextForm(encoding="cp1252", decimal=","),
}


def letters(form, cell, *, number):
    """A cell in UTF-8, letter by letter; a byte that is no letter stays apart from the others that are none."""
    read = [bytes([byte]).decode(form.codec, "replace") for byte in cell] if form.codec != "utf-8" else []
    own = "".join(
        chr(0x10FF00 | byte) if letter == "\ufffd" else letter for byte, letter in zip(cell, read, strict=False)
    )
    text = cell if form.codec == "utf-8" else own.encode()
    return text.translate(bytes.maketrans(b",.", b".,")) if number and form.decimal == "," else text


@examples(60, 300)
@given(st.lists(st.none() | st.binary(max_size=6), max_size=9), st.sampled_from(list(FORMS)), st.booleans(), st.data())
def test_letters_are_those_of_the_encoding_cell_by_cell(cells, name, number, data):
    """Whatever the bytes are, whatever stands beside them, and wherever an array begins."""
    form = FORMS[name]
    translation = form.translation(number=number)
    texts = pa.array(cells, pa.binary()).view(pa.string())
    start = data.draw(st.integers(0, len(cells)))
    found = texts[start:] if translation is None else translation.apply(texts[start:])
    found.validate()
    expected = [None if cell is None else letters(form, cell, number=number) for cell in cells[start:]]
    assert found.view(pa.binary()).to_pylist() == expected


def test_only_encodings_of_one_byte_for_each_letter_are_taken():
    """All that Python has: where ASCII stands for something else, or a letter takes two bytes, lines would move."""
    taken = set()
    for name in sorted(set(aliases.values())):
        try:
            taken.add(TextForm(encoding=name).codec)
        except ArgumentError:
            continue
    for codec in taken - {"utf-8"}:
        whole = bytes(range(256)) * 2
        assert whole.decode(codec, "replace") == "".join(bytes([i]).decode(codec, "replace") for i in whole)
        assert bytes(range(128)).decode(codec) == bytes(range(128)).decode("ascii")
    assert {"utf-8", "iso8859-1", "iso8859-15", "cp1252", "cp1251", "koi8-r", "cp437"} <= taken
    assert not taken & {"utf-16", "utf-16-le", "utf-32", "utf-7", "shift_jis", "gbk", "big5", "cp037", "euc_jp", "hz"}

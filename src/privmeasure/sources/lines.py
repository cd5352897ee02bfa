"""Lines of a text file, found before its cells, so that no line can change what another one becomes.

**A record is a line.** It ends at LF, CRLF or CR, whatever quotes it holds: quotes group characters inside a line and
never reach beyond it, so one person's lone quote cannot swallow the rows of others. With `newlines_in_cells`, a public
choice of a person who knows the file, quoted cells may hold line ends; then quoting must be sound.

**A row is a record of the grammar**: as many cells as the header has names, each plain, or quoted from its first
character on. Any other record, one of more than `LONGEST` bytes included, is a row whose cells are all missing. Lines
without a character are no rows, but in a file of one column they are a missing cell.

Arrow reads the cells, a block of lines at a time. The records that it takes for one line of cells are exactly those of
the grammar: `tests/laws/test_lines.py` tries all short ones. Every record takes at least one line, so a block that
gives as many records as it has lines gave one for each; other blocks are taken apart line by line.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from privmeasure.tables.texts import Translation

BLOCK_BYTES = 1 << 21
"""Bytes of text that are parsed at a time."""
LONGEST_LINE = 1 << 24
"""Bytes of the longest record that is read; a longer one is a row of missing cells. A public limit on memory."""


@dataclass
class UnreadRows:
    """CONFIDENTIAL. How many rows could not be read, and in how many of them a quote stayed open."""

    rows: int = 0
    open_quotes: int = 0


@dataclass(frozen=True)
class Grammar:
    """What a record of a text file is: its delimiter, its number of cells, and whether cells may hold line ends.

    Examples:
        >>> grammar = Grammar(",", 2)
        >>> [bool(grammar.row.fullmatch(line)) for line in (b'1,"a,b"', b"1,2,3", b'1,"a', b'5" pipe,"3"" wide"')]
        [True, False, False, True]
        >>> grammar.records(b'1,"a\\n2,b\\n'), Grammar(",", 2, newlines_in_cells=True).records(b'1,"a\\n2,b"\\n')
        ([b'1,"a', b'2,b'], [b'1,"a\\n2,b"'])
    """

    delimiter: str
    width: int
    newlines_in_cells: bool = False

    @cached_property
    def row(self) -> re.Pattern[bytes]:
        """A record that can be read, without its line end."""
        return re.compile(self._cells(b"{%d}" % (self.width - 1)))

    @cached_property
    def closed(self) -> re.Pattern[bytes]:
        """A record with any number of cells, in which no quote stays open."""
        return re.compile(self._cells(b"*+"))

    @cached_property
    def _ended(self) -> re.Pattern[bytes]:
        return re.compile(rb"(%b)(?:\r\n|\r|\n)" % self._cells(b"*+"))

    def _cells(self, more: bytes) -> bytes:
        # A cell that begins with a quote goes on to the quote that ends it, two in a row being one of its characters;
        # what follows up to the delimiter belongs to it too. Possessive repeats: nothing is tried twice.
        delimiter = re.escape(self.delimiter.encode())
        cell = rb'(?:"(?:[^"]++|"")*+"|(?!"))[^%b\r\n]*+' % delimiter
        return rb"%b(?:%b%b)%b" % (cell, delimiter, cell, more)

    def first(self, text: bytes) -> bytes:
        """Return the first record of a text without its line end, or its beginning where a quote stays open."""
        match = self.closed.match(text) if self.newlines_in_cells else re.match(rb"[^\r\n]*", text)
        return match[0] if match else b""

    def records(self, block: bytes) -> list[bytes]:
        """Return the records of a block, without their line ends. Lines that are no rows are left out."""
        records = list(self._quoted_records(block)) if self.newlines_in_cells else block.splitlines()
        return records if self.width == 1 else [record for record in records if record]

    def _quoted_records(self, block: bytes) -> Iterator[bytes]:
        end = 0
        while match := self._ended.match(block, end):
            end = match.end()
            yield match[1]
        if end < len(block):  # the file ends inside a quote
            yield block[end:]

    def lines(self, block: bytes) -> int:
        """Count the lines of a block, or what takes their place where cells may hold line ends."""
        if self.newlines_in_cells:
            return len(self.records(block))
        letters = np.frombuffer(block, np.uint8)
        feeds = np.count_nonzero(letters == ord("\n"))
        if b"\r" not in block:
            return int(feeds)
        returns = letters == ord("\r")
        both = np.count_nonzero(returns[:-1] & (letters[1:] == ord("\n")))
        return int(feeds + np.count_nonzero(returns) - both)

    def end(self, text: bytes) -> int:
        """Return where the last whole record of a text ends, 0 if none does.

        A CR at the very end may be the first half of a CRLF: it ends nothing yet.
        """
        if not self.newlines_in_cells:
            return max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1
        end = 0
        while (match := self._ended.match(text, end)) and not (match.end() == len(text) and text.endswith(b"\r")):
            end = match.end()
        return end

    def cut(self, held: bytes, chunk: bytes) -> tuple[bytes, bytes]:
        """Return the whole records of what is held and of a chunk after it, and what is left of the two."""
        if self.newlines_in_cells:
            text = held + chunk
            end = self.end(text)
            return text[:end], text[end:]
        end = self.end(chunk)
        if end:
            return b"".join((held, memoryview(chunk)[:end])), chunk[end:]  # copied once: reading is mostly copying
        if held.endswith(b"\r") and not chunk.startswith(b"\n"):  # it ended a record after all
            return held, chunk
        return b"", held + chunk

    def stand_in(self, text: bytes) -> bytes:
        """Return a short beginning of a record that is no row and goes on as `text`, the beginning of a long one."""
        short, tail = self.delimiter.encode() * self.width, text[-1:] if text.endswith(b"\r") else b""
        if not self.newlines_in_cells:
            return short + tail
        text = text.removesuffix(tail)
        if not self.closed.fullmatch(text):
            return short + b'"' + tail
        if text.endswith(b'"') and not self.closed.fullmatch(text[:-1]):  # it ends a cell, or is the first of two
            return short + b'""' + tail
        return short + (b"" if text.endswith(self.delimiter.encode()) else b"-") + tail


def whole_records(read: Callable[[int], bytes], grammar: Grammar, *, start: int = 0) -> Iterator[bytes]:
    """Yield what `read` reads, but for the first `start` bytes, in blocks of whole records with their line ends.

    Guarantee:  cost  memory for a block and the longest record, whatever the file
    """
    held = b""
    while start > 0 and (passed := read(start)):
        start -= len(passed)
    while chunk := read(BLOCK_BYTES):
        block, held = grammar.cut(held, chunk)
        if block:
            yield block
        if len(held.removesuffix(b"\r")) > LONGEST_LINE:  # which may be the first half of its line end
            held = grammar.stand_in(held)
    if held:
        yield held + b"\n"


class CellReader:
    """Turns blocks of whole records into columns of text: bytes as they are, which need not be UTF-8.

    An empty cell is null, a quoted empty one is "". A record that is no row becomes a row of nulls in its place.

    Guarantee:  privacy  what a record becomes depends on it alone; nothing raises because of what it holds

    Examples:
        >>> reader = CellReader(Grammar(",", 2), ["age", "sex"], ["sex"])
        >>> reader.read(b'31,F\\n7,"\\n52,M\\n').to_pydict()
        {'sex': ['F', None, 'M']}
    """

    def __init__(
        self,
        grammar: Grammar,
        names: Sequence[str],
        columns: Sequence[str],
        translations: "Mapping[str, Translation | None] | None" = None,
    ) -> None:
        """Take the names of all columns in order, those to read, and what is to be done to the letters of some."""
        import pyarrow as pa
        import pyarrow.csv as pc

        self._grammar, self._columns = grammar, list(columns)
        self._translations = [(translations or {}).get(name) for name in columns]
        numbers = [str(i) for i in range(grammar.width)]
        kept = [numbers[names.index(name)] for name in columns]
        delimiter = grammar.delimiter
        self._head = (delimiter.join(numbers) + "\n").encode()  # also keeps a BOM from being the first of a block
        self._tail = (delimiter * (grammar.width - 1) + "\n").encode()  # swallowed by a quote that is open at the end
        # no handler of invalid rows: Arrow decodes a row before it calls one, and prints what is no UTF-8
        self._parse = pc.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=grammar.width > 1
        )
        self._convert = pc.ConvertOptions(
            include_columns=kept,
            column_types=dict.fromkeys(kept, pa.string()),
            check_utf8=False,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        )

    def read(self, block: bytes, unread: UnreadRows | None = None) -> "pa.RecordBatch":
        """Return the columns of a block; what could not be read is also counted in `unread`, which is confidential."""
        import pyarrow as pa

        # private cells: each record on its own, in its own row
        cells = None
        if (
            len(block) <= LONGEST_LINE
        ):  # else one of its records may be longer: where blocks end must not decide what it is
            try:
                cells = self._cells(block)
                if cells.num_rows == self._grammar.lines(block):
                    return cells
            except pa.ArrowInvalid:  # a row with too many or too few cells; the message would show it
                pass
        records = self._grammar.records(block)
        if cells is not None and cells.num_rows == len(records):  # the other lines are no rows
            return cells
        row = self._grammar.row
        sound = np.array(
            [len(record) <= LONGEST_LINE and row.fullmatch(record) is not None for record in records], bool
        )
        if unread is not None:
            unread.rows += int(np.count_nonzero(~sound))
            unread.open_quotes += sum(self._grammar.closed.fullmatch(record) is None for record in records)
        rows = b"".join(record + b"\n" for record, fine in zip(records, sound, strict=True) if fine)
        return self._cells(rows).take(pa.array(np.cumsum(sound) - 1, pa.int64(), mask=~sound))

    def _cells(self, block: bytes) -> "pa.RecordBatch":
        """Return what Arrow makes of a block, without its last record, which is ours unless a quote swallowed it."""
        import pyarrow as pa
        import pyarrow.csv as pc

        text = b"".join((self._head, block, self._tail))
        options = pc.ReadOptions(block_size=len(text) + 1, use_threads=False)
        table = pc.read_csv(pa.py_buffer(text), options, self._parse, self._convert)
        rows = table.slice(0, max(table.num_rows - 1, 0))
        cells = [column.combine_chunks() for column in rows.columns]
        # private letters, byte by byte: no cell looks at another
        cells = [c if t is None else t.apply(c) for c, t in zip(cells, self._translations, strict=True)]
        return pa.RecordBatch.from_arrays(cells, self._columns)

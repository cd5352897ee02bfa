"""How the text of a table file is written: its delimiter, its decimal mark, its encoding. Public: a person says it.

Lines are found before anything is decoded, and cells before their letters. So only encodings will do in which the bytes
of ASCII stand for themselves and for nothing else: UTF-8, and those of one byte for each letter (latin-1, cp1252,
koi8-r, ...). Letters and decimal marks are changed cell by cell, byte by byte: no cell can change another.
"""

import codecs
import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privmeasure.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

    from privmeasure.tables.schema import Schema

UTF8 = "utf-8"
UNKNOWN_LETTER = "\N{REPLACEMENT CHARACTER}"
"""What stands in a header for a byte that an encoding has no letter for."""
UNKNOWN_LETTERS = 0x10FF00
"""In cells each such byte has a letter of its own, from here on, that means nothing: else two ids would be one."""
NAMED_DELIMITERS = {"\\t": "\t", "tab": "\t"}
"""Delimiters that are hard to type in a shell."""


@dataclass(frozen=True)
class TextForm:
    """How a text file is written. The end of its name tells the delimiter, unless one is given.

    With a decimal comma the point is no decimal mark any more: 1.234 is then not read as a number, rather than as one
    that is a thousand times too small.

    Examples:
        >>> TextForm(delimiter=";", decimal=",", encoding="latin-1").codec
        'iso8859-1'
        >>> TextForm(encoding="utf-16")
        Traceback (most recent call last):
        privmeasure.errors.ArgumentError: The encoding 'utf-16' is not one in which lines can be found before letters.
        Give utf-8, latin-1, cp1252 or another of one byte for each letter, or convert the file to UTF-8.
    """

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = UTF8
    newlines_in_cells: bool = False

    def __post_init__(self) -> None:
        """Check everything, before any data are touched."""
        given = self.delimiter
        if given is not None:
            object.__setattr__(self, "delimiter", NAMED_DELIMITERS.get(given, given))
            mark = self.delimiter or ""
            if len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in '"\r\n\0':
                raise ArgumentError(
                    f"The delimiter must be one character of ASCII, no letter, digit or quote, got {given!r}. Give one "
                    "like ';', '|' or 'tab'."
                )
        if self.decimal not in (".", ","):
            raise ArgumentError(f"The decimal mark must be '.' or ',', got {self.decimal!r}.")
        if not isinstance(self.encoding, str) or (self.codec != UTF8 and letters_of(self.codec) is None):
            raise ArgumentError(
                f"The encoding {self.encoding!r} is not one in which lines can be found before letters. Give utf-8, "
                "latin-1, cp1252 or another of one byte for each letter, or convert the file to UTF-8."
            )

    @cached_property
    def codec(self) -> str:
        """The encoding by the name that Python has for it."""
        try:
            name = codecs.lookup(self.encoding).name
        except (LookupError, ValueError):
            raise ArgumentError(
                f"The encoding {self.encoding!r} is unknown. Give one like utf-8, latin-1 or cp1252."
            ) from None
        return UTF8 if name in (UTF8, "utf-8-sig", "ascii") else name

    def check_letters(self, schema: "Schema") -> None:
        """Refuse an encoding that lacks a letter of a schema: a table of it could not be written."""
        try:
            json.dumps(schema.to_json(), ensure_ascii=False).encode(self.codec)
        except UnicodeEncodeError:
            raise ArgumentError(
                f"The schema has a letter that {self.encoding!r} does not have. Write the table as utf-8."
            ) from None

    def translation(self, *, number: bool) -> "Translation | None":
        """Return what is to be done to the cells of a column, which may hold numbers; None for nothing."""
        if self.codec == UTF8 and not (number and self.decimal == ","):
            return None
        letters = [chr(i) for i in range(128)] if self.codec == UTF8 else list(letters_of(self.codec) or "")
        if number and self.decimal == ",":
            letters[ord(",")], letters[ord(".")] = ".", ","
        return Translation([chr(UNKNOWN_LETTERS + i) if c == UNKNOWN_LETTER else c for i, c in enumerate(letters)])


@lru_cache(maxsize=32)
def letters_of(codec: str) -> str | None:
    """Return the letters of the 256 bytes of an encoding; None where bytes do not stand for letters one by one.

    Examples:
        >>> letters_of("cp1252")[0x80], letters_of("shift_jis"), letters_of("utf-7")
        ('€', None, None)
    """

    def read(text: bytes) -> str:
        return text.decode(codec, "replace")

    try:
        letters = [read(bytes([i])) for i in range(256)]
        alone = all(
            read(bytes([i, j])) == letters[i] + letters[j] for i in range(128, 256) for j in range(256)
        )  # no byte is the beginning of a letter of two
    except (LookupError, ValueError):  # a codec that is not of text
        return None
    plain = all(letter == chr(i) for i, letter in enumerate(letters[:128]))
    return "".join(letters) if plain and alone and all(len(letter) == 1 for letter in letters) else None


class Translation:
    """What each byte of a text becomes, as UTF-8: each cell by itself, each byte by itself.

    Bytes that have no letter in the list stay as they are.

    Examples:
        >>> import pyarrow as pa
        >>> Translation(letters_of("latin-1")).apply(pa.array([b"\\xfc", None, b"a"]).view(pa.string())).to_pylist()
        ['ü', None, 'a']
    """

    def __init__(self, letters: Collection[str]) -> None:
        """Take the letters of the first bytes, or of all."""
        written = [letter.encode() for letter in letters]
        written += [bytes([i]) for i in range(len(written), 256)]
        self._lengths = np.array([len(text) for text in written], np.int64)
        self._bytes = np.zeros((256, int(self._lengths.max())), np.uint8)
        for i, text in enumerate(written):
            self._bytes[i, : len(text)] = list(text)
        self._changed: NDArray[np.bool_] = np.array([text != bytes([i]) for i, text in enumerate(written)])

    def apply(self, texts: "pa.Array") -> "pa.Array":
        """Return texts, whose bytes may be anything, in UTF-8."""
        import pyarrow as pa

        ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
        if not len(texts) or ends[-1] == ends[0]:
            return texts
        letters = np.frombuffer(texts.buffers()[2], np.uint8)[ends[0] : ends[-1]]
        if not self._changed[letters].any():  # the usual case, and what the rest would give
            return texts
        lengths = self._lengths[letters]
        kept = np.arange(self._bytes.shape[1]) < lengths[:, None]
        written = np.ascontiguousarray(self._bytes[letters][kept])
        places = np.concatenate([[0], np.cumsum(lengths)])[ends - ends[0]].astype(np.int32)
        valid = np.asarray(texts.is_valid().to_numpy(zero_copy_only=False), bool)
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little")) if texts.null_count else None
        buffers = [bitmap, pa.py_buffer(places), pa.py_buffer(written)]
        return pa.Array.from_buffers(pa.string(), len(texts), buffers, texts.null_count)


def with_decimals(schema: "Schema") -> frozenset[str]:
    """Return the file columns of a schema whose texts are numbers, in which a decimal mark may stand."""
    columns = schema.data.items()
    return frozenset(source for name, column in columns if column.decimal_marks for source in column.sources(name))

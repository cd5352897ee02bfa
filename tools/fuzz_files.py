"""Read damaged files: every mutation of a Feather, Parquet or xlsx file is read, or refused by a DataError.

python tools/fuzz_files.py                    100,000 mutations, with a seed that is drawn and printed
python tools/fuzz_files.py 3000 --seed 1      as the test does it
python tools/fuzz_files.py --keep DIR feather 1 17      write mutation 17 of seed 1 into a folder, to look at it

A mutation changes a few bytes of a small file. It is read in another process, so that one that a signal ends, or that
needs more than a minute or 4 GiB for one file, is noticed; the next process goes on after that file.
"""

import argparse
import io
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from privmeasure import Boolean, Category, Date, Datetime, Drop, Integer, Number, Schema, Time
from privmeasure.errors import DataError, SchemaError
from privmeasure.sources.files import open_table
from privmeasure.tables.columns.base import AnyColumn
from privmeasure.tables.persons import read_ids

KINDS = ("feather", "parquet", "xlsx")
MUTATIONS = 100_000
PER_PROCESS = 1000
"""Mutations that one process reads."""
SECONDS, BYTES = 60, 4 << 30
"""What one file may take."""
READER = (sys.executable, __file__, "--worker")
ROWS = 23
WORDS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 1 << 63)
"""Numbers at which readers go wrong."""
COLUMNS: dict[str, AnyColumn] = {
    "number": Number(0, 10, nullable=True),
    "half": Number(0, 10, nullable=True),
    "decimal": Number(0, 10, nullable=True),
    "integer": Integer(0, 100, nullable=True),
    "small": Integer(0, 100, nullable=True),
    "text": Category(["F", "M"], nullable=True),
    "large": Category(["F", "M"], nullable=True),
    "view": Category(["F", "M"], nullable=True),
    "coded": Category(["F", "M"], nullable=True),
    "codes": Category([1, 2], nullable=True),
    "runs": Category(["F", "M"], nullable=True),
    "truth": Boolean(nullable=True),
    "day": Date("1900-01-01", "2030-12-31", nullable=True),
    "moment": Datetime("2020-01-01", "2021-01-01", nullable=True),
    "written": Datetime("2020-01-01", "2021-01-01", nullable=True),
    "time": Time(resolution="1h", nullable=True),
    "zoned": Datetime("2020-01-01", "2021-01-01", timezone="Europe/Berlin", nullable=True),
    "seconds": Number(0, 10, nullable=True),
    "views": Category(["F", "M"], nullable=True),
    "nothing": Category(["F"], nullable=True),
    "note": Drop(),
    "key": Drop(),
    "id": Drop(),
}


# ---------------------------------------------------------------------------------------------------------- whole files


def whole_table() -> pa.Table:
    """Return a small table of every type that the readers of Arrow know."""
    texts = ["F", "M", None, "a longer text than a view holds", ""] * 5
    numbers = [0.5, None, 7.0, float("nan"), -1.0] * 5
    columns = {
        "number": pa.array(numbers),
        "half": pa.array(np.linspace(0, 10, 25, dtype=np.float16)),
        "decimal": pa.array(range(25), pa.int64()).cast(pa.decimal128(22, 3)),
        "integer": pa.array([*range(24), None], pa.int32()),
        "small": pa.array(range(25), pa.uint8()),
        "text": pa.array(texts),
        "large": pa.array(texts, pa.large_string()),
        "view": pa.array(texts, pa.string_view()),
        "coded": pa.array(texts).dictionary_encode(),
        "codes": pa.array([1, 2, 2, None, 3] * 5, pa.int64()).dictionary_encode(),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([3, 20, 25], pa.int32()), pa.array(["F", "M", "long"])),
        "truth": pa.array([True, False, None, True, True] * 5),
        "day": pa.array([18_000, 0, None, 7, 9] * 5, pa.int32()).cast(pa.date32()),
        "moment": pa.array(range(25), pa.int64()).cast(pa.timestamp("us")),
        "written": pa.array(["2020-02-29T10:30:05", None, "", "x", "2020-06-01"] * 5),
        "time": pa.array(range(25), pa.int32()).cast(pa.time32("s")),
        "zoned": pa.array([0, None, 1, 2, 3] * 5, pa.int64()).cast(pa.timestamp("us", "Europe/Berlin")),
        "seconds": pa.array([0, None, 1, 2, 3] * 5, pa.int64()).cast(pa.duration("s")),
        "views": pa.array(texts, pa.string_view()).dictionary_encode(),
        "nothing": pa.nulls(25),
        "key": pa.array([bytes(range(i, i + 16)) for i in range(25)], pa.uuid()),
        "note": pa.array([b"bytes", None, b"", b"1", b"2"] * 5),
        "id": pa.array([f"person {i % 7}" for i in range(25)]),
    }
    return pa.table(columns).slice(0, ROWS).combine_chunks()


def whole_files(kind: str) -> list[bytes]:
    """Return files of one kind that are read without an error; the same ones at every call."""
    table = whole_table()
    if kind == "xlsx":
        return [sheet(table.drop_columns(["zoned"]))]
    found = []
    if kind == "feather":
        parts = [
            table.select(["text", "large", "coded", "id"]),
            table.drop_columns(["coded", "codes", "runs", "views"]),
            table,
        ]
        for part, options in zip(parts, ({}, {"chunksize": 8}, {"compression": "lz4"}), strict=True):
            found.append(_written(feather.write_feather, part, **{"compression": "uncompressed", **options}))
        return found
    table = table.drop_columns(["runs", "views"])
    plain: list[dict[str, Any]] = [
        {"compression": "none", "use_dictionary": False},
        {"compression": "none", "data_page_version": "2.0", "row_group_size": 9},
        {"compression": "snappy"},
    ]
    return [_written(pq.write_table, table, **options) for options in plain]


def _written(write: Callable[..., Any], table: pa.Table, **options: Any) -> bytes:
    content = io.BytesIO()
    write(table, content, **options)
    return content.getvalue()


def sheet(table: pa.Table) -> bytes:
    """Return a table as an xlsx file."""
    import openpyxl  # type: ignore[import-untyped, unused-ignore]

    book = openpyxl.Workbook()
    page = book.active
    page.append(table.column_names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        page.append([str(cell) if isinstance(cell, bytes | UUID) else cell for cell in row])
    content = io.BytesIO()
    book.save(content)
    parts = unzipped(content.getvalue())
    del parts["docProps/core.xml"]  # it says when the file was made
    return zipped(parts)


def unzipped(content: bytes) -> dict[str, bytes]:
    """Return the parts of an xlsx file."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(parts: dict[str, bytes]) -> bytes:
    """Return parts as an xlsx file, which depends on them alone."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as file:
        for name, part in parts.items():
            file.writestr(zipfile.ZipInfo(name), part, zipfile.ZIP_DEFLATED)
    return found.getvalue()


# ------------------------------------------------------------------------------------------------------------ mutations


def mutation(kind: str, files: list[bytes], seed: int, number: int) -> bytes:
    """Return one damaged file, which depends on the arguments alone."""
    rng = np.random.default_rng([seed, KINDS.index(kind), number])
    content = files[rng.integers(len(files))]
    if kind != "xlsx" or rng.random() < 0.3:
        return changed(content, rng)
    parts = unzipped(content)
    chances = np.array([8.0 if "sheet1.xml" in name or "sharedStrings" in name else 1.0 for name in parts])
    odd = str(rng.choice(list(parts), p=chances / chances.sum()))
    parts[odd] = changed(parts[odd], rng)
    return zipped(parts)


def changed(content: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes of which a few are others, or that are cut off, or of which a part stands twice."""
    odd = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        place, way = int(rng.integers(len(odd))), rng.random()
        if way < 0.35:
            odd[place] ^= 1 << int(rng.integers(8))
        elif way < 0.6:
            odd[place] = int(rng.integers(256))
        elif way < 0.93:
            size = int(rng.choice([1, 2, 4, 8]))
            word = int(rng.choice(np.array(WORDS, np.uint64))) & ((1 << 8 * size) - 1)
            odd[place : place + size] = word.to_bytes(size, "little")[: len(odd) - place]
        elif way < 0.97:
            size = int(rng.integers(1, 64))
            odd[place : place + size] = odd[place : place + size] * 2
        else:
            del odd[place : place + int(rng.integers(1, 64))]
    return bytes(odd)


# -------------------------------------------------------------------------------------------------------------- reading


def read(path: Path) -> str:
    """Return what comes of a file: "" if it was read, or the words of a DataError; any other error is raised."""
    try:
        table = open_table(path)
        schema = Schema({name: column for name, column in COLUMNS.items() if name in table.names})
        schema.check(table.names, table.types)
        for batch in table.batches(list(table.names)):
            schema.encode(batch)
            if "id" in table.names:
                read_ids(batch.column("id"))
    except SchemaError as error:  # about names and types of columns, which are public
        return type(error).__name__
    except DataError as error:
        return str(error).replace(str(path), "FILE")
    return ""


def work(kind: str, seed: int, numbers: range) -> None:
    """Read mutations, and write a line before and after each: the last line says at which one a process died."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    files = whole_files(kind)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"table.{kind}")
        for number in numbers:
            print(f"at {number}", flush=True)
            path.write_bytes(mutation(kind, files, seed, number))
            signal.alarm(SECONDS)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    print(f"said {read(path)!r}", flush=True)
            except Exception as error:
                print(f"raised {type(error).__name__}: {error}"[:300].replace("\n", " "), flush=True)
            signal.alarm(0)


@dataclass
class Found:
    """What was seen: how often each sentence was said, and what should not happen, with the mutation that led to it."""

    said: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def fuzz(kind: str, mutations: int, seed: int, reader: Sequence[str] = READER) -> Found:
    """Read mutations of one kind of file in other processes, of which `reader` is the command."""
    found, start, at = Found(), 0, 0
    while start < mutations:
        stop = min(start + PER_PROCESS, mutations)
        command = [*reader, kind, str(seed), str(start), str(stop)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                what, _, rest = line.strip().partition(" ")
                if what == "at":
                    at = int(rest)
                elif what == "said":
                    found.said[rest] += 1
                else:
                    found.faults.append(f"{kind} {seed} {at}: {rest}")
        start = stop
        if process.returncode:
            found.faults.append(f"{kind} {seed} {at}: ended with {process.returncode}, a signal if it is below 0")
            start = at + 1
    return found


def main() -> int:
    """Read mutations of all kinds, and print what was said how often; fail if anything else than that happened."""
    parser = argparse.ArgumentParser(description="Read damaged Feather, Parquet and xlsx files.")
    parser.add_argument("mutations", type=int, nargs="?", default=MUTATIONS)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = secrets.randbelow(1 << 31) if asked.seed is None else asked.seed
    print(f"{asked.mutations} mutations, seed {seed}", flush=True)
    faults = []
    for i, kind in enumerate(KINDS):
        found = fuzz(kind, (asked.mutations + i) // len(KINDS), seed)
        print(kind)
        for words, count in found.said.most_common(12):
            print(f"{count:8} {words if words != repr('') else 'read'}"[:150])
        faults += found.faults
    print(*(faults or ["no fault"]), sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], int(sys.argv[3]), range(int(sys.argv[4]), int(sys.argv[5])))
    elif sys.argv[1:2] == ["--keep"]:
        kept = Path(sys.argv[2], f"{sys.argv[5]}.{sys.argv[3]}")
        kept.write_bytes(mutation(sys.argv[3], whole_files(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])))
        print(kept)
    else:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        sys.exit(main())

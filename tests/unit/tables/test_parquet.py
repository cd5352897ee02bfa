"""Parquet files made of groups that threads encoded: byte by byte those of Arrow's own writer."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privmeasure.tables.parquet import GroupedParquet
from privmeasure.tables.writing import write_table

SCHEMA = pa.schema(
    {
        "double": pa.float64(),
        "text, with a.dot": pa.string(),
        "whole": pa.int32(),
        "flag": pa.bool_(),
        "time": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
        "nothing": pa.null(),
        "labels": pa.dictionary(pa.int32(), pa.string()),
        "price": pa.decimal128(10, 2),
        "bytes": pa.binary(),
        "how long": pa.duration("s"),
    }
)


def rows(count: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    texts = pa.array(rng.integers(0, 5, count)).cast(pa.string())
    columns = [
        pa.array(rng.random(count), mask=rng.random(count) < 0.3),
        texts,
        rng.integers(-99, 99, count).astype(np.int32),
        rng.random(count) < 0.5,
        pa.array(rng.integers(0, 10**15, count), pa.timestamp("us", "UTC")),
        pa.array(rng.integers(0, 9999, count).astype(np.int32)).cast(pa.date32()),
        pa.nulls(count),
        texts.dictionary_encode(),
        pa.nulls(count, pa.decimal128(10, 2)),
        texts.cast(pa.binary()),
        pa.array(rng.integers(0, 9, count), pa.duration("s")),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def by_arrow(tables: list[pa.Table], **options: object) -> bytes:
    whole = pa.BufferOutputStream()
    with pq.ParquetWriter(whole, SCHEMA, **options) as writer:
        for table in tables:
            writer.write_table(table)
    return whole.getvalue().to_pybytes()


def by_groups(tables: list[pa.Table], **options: object) -> bytes:
    whole = pa.BufferOutputStream()
    writer = GroupedParquet(whole, SCHEMA, **options)
    for groups, footer in [writer.encode(table) for table in reversed(tables)][::-1]:  # in whatever order they are made
        writer.write(groups, footer)
    writer.close()
    return whole.getvalue().to_pybytes()


@pytest.mark.parametrize("sizes", [[0], [1], [1000, 0, 7], [131_072, 131_072, 5], [1_200_000, 3]])
@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zstd", "use_dictionary": ["whole", "labels"]},
        {"compression": "snappy"},
        {"compression": "none", "write_page_index": False, "data_page_version": "2.0"},
    ],
)
def test_the_bytes_are_those_of_arrow(sizes, options):
    tables = [rows(size, seed) for seed, size in enumerate(sizes)]
    assert by_groups(tables, **options) == by_arrow(tables, **options)


def test_many_groups():
    tables = [rows(2, seed) for seed in range(200)]
    assert by_groups(tables) == by_arrow(tables)


def test_a_difference_would_be_seen():
    tables = [rows(100, seed) for seed in range(3)]
    assert by_groups(tables) != by_arrow([tables[0], tables[2], tables[1]])


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.feather", "a.tsv.gz"])
def test_files_do_not_depend_on_threads(tmp_path, name):
    def write(threads: int) -> bytes:
        path = tmp_path / str(threads) / name
        path.parent.mkdir()
        tables = [rows(500, seed).drop(["bytes", "labels"]) for seed in range(20)]
        assert write_table(path, iter(tables), threads=threads) == 10_000
        return path.read_bytes()

    one = write(1)
    assert all(write(threads) == one for threads in (2, 3, 16))


def test_doubles_that_hardly_repeat_have_no_dictionary(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({"fine": rng.random(10_000), "coarse": rng.integers(0, 10, 10_000) / 10})
    write_table(tmp_path / "a.parquet", [table])
    group = pq.read_metadata(tmp_path / "a.parquet").row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(2)] == [False, True]
    assert pq.read_table(tmp_path / "a.parquet").equals(table)

"""Schemas of strangers: files at a limit, beyond it, and texts that once took long or gave an undocumented error."""

import json
import os
import resource
import tomllib
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow.parquet as pq
import pytest

from privmeasure.errors import ArgumentError, SchemaError
from privmeasure.tables import Boolean, Derived, Integer, Schema
from privmeasure.tables.columns.fields import did_you_mean
from privmeasure.tables.facts import conditions, forbidden_pairs
from privmeasure.tables.limits import (
    MAX_COLUMNS,
    MAX_HINT_LENGTH,
    MAX_KEY_PARTS,
    MAX_LOOKUP_BYTES,
    MAX_RULES,
    MAX_SCHEMA_BYTES,
)

ROOT = Path(__file__).parents[3]
TWO = "".join(f'[columns.{name}]\ntype = "integer"\nlow = 0\nhigh = 99999\n' for name in "ab")
HUGE = "0x" + "F" * 5000


SECONDS = 5
"""Of one processor: loading takes at most 2 of them on a machine that does nothing else."""


def booleans(count: int) -> str:
    return "".join(f'[columns.c{i}]\ntype = "boolean"\n' for i in range(count))


def never(rules: list[str]) -> str:
    return f"never = {rules}\n"


def chain(count: int) -> str:
    links = (f'[columns.d{i}]\nderive = "{f"d{i - 1}" if i else "a"} + 1"\n' for i in reversed(range(count)))
    return 'format = 2\n[columns.a]\ntype = "integer"\nlow = 0\nhigh = 9\n' + "".join(links)


def keyed(parts: int) -> str:
    return "format = 1\n" + ".".join(["a"] * parts) + " = 1\n"


AT_THE_LIMIT: dict[str, Callable[[], str]] = {
    "columns": lambda: "format = 1\n" + booleans(MAX_COLUMNS),
    "groups": lambda: (
        "format = 1\n"
        + booleans(MAX_COLUMNS)
        + "".join(f'[[group]]\ncolumns = ["c{i}", "c{i + 1}"]\n' for i in range(0, MAX_COLUMNS, 2))
    ),
    "chained columns": lambda: chain(MAX_COLUMNS - 1),
    "rules": lambda: "format = 1\n" + never([f"a = {i} and b < {i}" for i in range(MAX_RULES)]) + TWO,
    "orders": lambda: "format = 2\n" + never([f"a < b - {i}" for i in range(MAX_RULES)]) + TWO,
    "rules on many columns": lambda: (
        "format = 1\n" + never([f"c{i} = true and c{i + 1} = true" for i in range(2000)]) + booleans(2001)
    ),
    "clauses": lambda: (
        "format = 1\n"
        + never([" and ".join([f"a != {3 * i + j}" for i in range(600)]) + f" and b = {j}" for j in range(90)])
        + TWO
    ),
    "bytes": lambda: f"format = 1\n{TWO}#".ljust(MAX_SCHEMA_BYTES, "#"),
    "parts of keys": lambda: "format = 1\n" + "".join(f"[columns.c{i}]\n{keyed(64)[11:]}" for i in range(3000)),
}


LONG = ("groups", "clauses", "parts of keys")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.deep) if case in LONG else case for case in AT_THE_LIMIT]
)
def test_a_schema_at_a_limit_is_read_in_bounded_time_and_memory(case: str) -> None:
    text = AT_THE_LIMIT[case]()
    assert len(text) <= MAX_SCHEMA_BYTES
    start, before = process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if case == "parts of keys":
        with pytest.raises(SchemaError, match="has no type"):
            Schema.from_text(text)
    else:
        schema = Schema.from_text(text)
        forbidden_pairs(schema)
        assert schema.domain.width >= 1
    assert process_time() - start < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KB


@pytest.mark.parametrize(
    ("text", "told"),
    {
        "bytes": ("#" * (MAX_SCHEMA_BYTES + 1), "1,000,000 bytes"),
        "columns": ("format = 1\n" + booleans(MAX_COLUMNS + 1), "10,001 columns"),
        "rules": ("format = 1\n" + never(["a = 1 and b = 2"] * (MAX_RULES + 1)) + TWO, "10,001 rules"),
        "parts": (keyed(MAX_KEY_PARTS + 1), "line 2: a key has more than 64 parts"),
        "many parts": (keyed(20_000), "line 2: a key has more than 64 parts"),
        "parts of a table": (f"format = 1\n[{keyed(20_000)[11:-5]}]\nx = 1", "line 2: a key has more than 64 parts"),
        "inline": (f"format = 1\nx = {{{keyed(20_000)[11:-1]}}}", "line 2: a key has more than 64 parts"),
        "a huge bound": (f'format = 1\n[columns.a]\ntype = "integer"\nlow = 0\nhigh = {HUGE}', "high with a whole"),
        "a huge format": (f"format = {HUGE}\n{TWO}", "as its format a number"),
        "a huge unit": (f'format = 1\n[columns.a]\ntype = "number"\nlow = 0\nhigh = 1\nunit = {HUGE}', "unit with a"),
        "a huge value": (f'format = 1\n[columns.a]\ntype = "category"\nvalues = [{HUGE}]', "values with a whole"),
        "an open quote": ('format = 1\nx = "' + '\\"' * 400_000 + "\n", "this is not TOML"),
        "open quotes": ('format = 1\nx = """' + '\\"""' * 200_000, "this is not TOML"),
        "unknown groups": (
            "format = 1\n" + booleans(5000) + '[[group]]\ncolumns = ["x", "y"]\n' * 10_000,
            "a group names 'x'",
        ),
        "unknown names": (
            "format = 1\n" + never([f"x{i} = 1 and y = 2" for i in range(9000)]) + booleans(5000),
            "names the column 'x0'",
        ),
        "unknown sources": (
            "format = 2\n" + booleans(3000) + "".join(f'[columns.d{i}]\nderive = "x{i}"\n' for i in range(5000)),
            "names 'x0'",
        ),
        "a circle": (
            chain(800) + '[columns.e]\nderive = "f"\n[columns.f]\nderive = "e"\n',
            "'e' is derived from itself",
        ),
    }.values(),
    ids=lambda value: value[:24],
)
def test_a_schema_beyond_a_limit_is_refused_with_what_and_where(text: str, told: str) -> None:
    start = process_time()
    with pytest.raises(SchemaError, match=told) as caught:
        forbidden_pairs(Schema.from_text(text))
    assert process_time() - start < SECONDS
    assert len(str(caught.value)) < 100_000


def test_limits_hold_for_schemas_that_come_from_no_file() -> None:
    columns = {f"c{i}": Boolean() for i in range(MAX_COLUMNS + 1)}
    with pytest.raises(SchemaError, match="10,001 columns"):
        Schema(columns)
    with pytest.raises(SchemaError, match="10,001 columns"):
        Schema.from_json({"format": 1, "columns": [{"name": name, "type": "boolean"} for name in columns]})
    with pytest.raises(SchemaError, match="10,001 rules"):
        Schema({"a": Boolean(), "b": Boolean()}, never=["a = true and b = true"] * (MAX_RULES + 1))
    with pytest.raises(SchemaError, match="lists of names"):
        Schema.from_json({"format": 1, "columns": [{"name": "a", "type": "boolean"}], "groups": [[["a"]]]})


def test_rules_over_a_thousand_columns_are_searched_without_recursion() -> None:
    text = "format = 1\n" + never([f"c{i} = true and c{i + 1} = true" for i in range(1500)]) + booleans(1501)
    assert len(forbidden_pairs(Schema.from_text(text))) == 1500


def test_many_values_of_one_column_turn_where_each_alone_does() -> None:
    schema = Schema({"a": Integer(1, 10**6, transform="log"), "b": Integer(-5, 5)})
    for name, values in (("a", [1, 2, 3.5, 77, 10**6, 10**7, -1]), ("b", [-6, -5, -0.5, 0, 5, 6])):
        together = conditions(schema, f"{name} in ({', '.join(map(str, values))})")[0].intervals
        apart = {i for value in values for c in conditions(schema, f"{name} = {value}") for i in c.intervals}
        assert set(together) == apart


def test_a_value_that_is_listed_twice_is_one_interval() -> None:
    (condition,) = conditions(Schema({"a": Integer(0, 9)}), "a in (1, 1, 3)")
    assert condition.intervals == ((1, 1), (3, 3))


def test_true_is_no_number_even_beside_a_one() -> None:
    with pytest.raises(ArgumentError, match="no value of that column"):
        conditions(Schema({"a": Integer(0, 9)}), "a = 1 and a = true")


def lookup(folder: Path, name: str) -> Schema:
    path = folder / "schema.toml"
    fields = f'derive = "lookup(a)"\nlookup = {name}\n'
    path.write_text(f'format = 2\n[columns.a]\ntype = "integer"\nlow = 0\nhigh = 9\n[columns.d]\n{fields}')
    return Schema.from_toml(path)


@pytest.mark.parametrize("name", ['"a\\u0000b"', '"missing.csv"', '"."', '"pipe"', '"link.csv"', f'"{"a" * 5000}"'])
def test_a_lookup_is_a_file_that_came_with_the_schema(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "schemas"
    folder.mkdir()
    (tmp_path / "outside.csv").write_text("a,b\n1,2\n")
    (folder / "inside.csv").write_text("a,b\n1,2\n")
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    os.mkfifo(folder / "pipe")
    assert isinstance(lookup(folder, '"inside.csv"').columns["d"], Derived)
    with pytest.raises(SchemaError, match="cannot be read beside the schema"):
        lookup(folder, name)


def test_a_lookup_has_at_most_so_many_bytes(tmp_path: Path) -> None:
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(MAX_LOOKUP_BYTES + 1)
    with pytest.raises(SchemaError, match="16,000,000 bytes"):
        lookup(tmp_path, '"large.csv"')


def test_long_names_get_no_hint() -> None:
    word = "ab" * (MAX_HINT_LENGTH // 2)
    assert did_you_mean(word, [word[:-1]])
    assert not did_you_mean(word + "a", [word])


def schemas_of_the_repository() -> list[Any]:
    """Return the bytes, columns, rules and parts of keys of every schema in the repository."""
    found = []
    for folder in ("examples", "benchmarks", "tests", "src", "docs"):
        for path in sorted((ROOT / folder).rglob("*.toml")):
            tree = tomllib.loads(path.read_text())
            if isinstance(tree.get("columns"), dict):
                rules = tree.get("never", [])
                found.append((path.name, path.stat().st_size, len(tree["columns"]), len(rules), 3))
    for path in sorted((ROOT / "tests" / "golden").glob("*.parquet")):
        text = (pq.read_schema(path).metadata or {})[b"privmeasure"]
        if b'"schema"' in text:
            schema = Schema.from_json(json.loads(text)["schema"])
            found.append((path.name, len(schema.to_toml()), len(schema.columns), len(schema.never), 3))
    return found


def test_no_file_of_the_repository_uses_more_than_a_tenth_of_a_limit() -> None:
    limits = (MAX_SCHEMA_BYTES, MAX_COLUMNS, MAX_RULES, MAX_KEY_PARTS)
    found = schemas_of_the_repository()
    assert len(found) > 10
    for name, *sizes in found:
        assert all(10 * size <= limit for size, limit in zip(sizes, limits, strict=True)), name

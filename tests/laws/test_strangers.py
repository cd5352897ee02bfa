"""Release, schema and ledger files of strangers: whatever they hold, they are read or refused by a documented error.

The files are mutated with a fixed seed, so that a failure can be repeated; `make test-deep` tries many more.
"""

import copy
import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import privmeasure as pm
from depth import DEEP
from privmeasure.cli.exporting import to_csv, to_json
from privmeasure.errors import PrivmeasureError, ReleaseFileError, SchemaError
from privmeasure.ledger import Ledger
from privmeasure.privacy import Privacy
from privmeasure.releases import files
from privmeasure.tables.facts import forbidden_pairs

pytestmark = pytest.mark.deeper
TRIED = 20_000 if DEEP else 250
"""Mutated files of each sort."""

SCHEMA = """format = 2
never = ["sex = 'M' and ill = true", "high < low", "age < 10 and ill = true", "low = 3 and share > 0.5"]
target = "ill"
[columns.age]
type = "integer"
low = 0
high = 90
nullable = true
[columns.low]
type = "integer"
low = 0
high = 9
[columns.high]
type = "integer"
low = 0
high = 9
[columns.sex]
type = "category"
values = ["F", "M"]
[columns.ill]
type = "boolean"
[columns.share]
type = "number"
low = 0
high = 1
[columns.seen]
type = "date"
low = 2020-01-01
high = 2024-12-31
[columns.word]
derive = "concat(lookup(sex), text(year(seen) + 1))"
lookup = {F = "x", M = "y"}
[[group]]
columns = ["low", "share"]
"""

HOSTILE: list[Any] = [
    True, False, None, -1, 0, 1, 2, 1.5, -0.0, 1e308, float("nan"), float("inf"), 2**31, 2**53, 2**63, 2**64, 10**400,
    "", "x", "1/0", "9" * 400, "1/" + "9" * 310, "\0", "\ud800", [], {}, [[]], [0], [True], ["x"], [None], {"a": 1},
]  # fmt: skip
"""What may stand in the place of any value of a header."""
MARKS = [
    "[",
    "]",
    "{",
    "}",
    "=",
    ".",
    ",",
    '"',
    "'",
    '"""',
    "\n",
    "\\",
    "#",
    "\0",
    "0x" + "F" * 5000,
    "1e999",
    "[[",
    "never",
]
"""What may be put into any place of a schema."""


def table(rows: int = 300) -> pa.Table:
    rng = random.Random(0)
    columns: dict[str, list[Any]] = {
        "age": [rng.randrange(91) for _ in range(rows)],
        "low": [rng.randrange(5) for _ in range(rows)],
        "high": [rng.randrange(5, 10) for _ in range(rows)],
        "sex": [rng.choice("FM") for _ in range(rows)],
        "ill": [False] * rows,
        "share": [rng.random() for _ in range(rows)],
        "seen": [f"202{rng.randrange(5)}-03-01" for _ in range(rows)],
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def releases() -> list[tuple[dict[str, Any], files.FileTable]]:
    """Headers and cells of a release of columns, with noise of both laws, and of one tree."""
    schema = pm.Schema.from_text(SCHEMA)
    small = pm.Schema.from_text(SCHEMA).only(["age", "sex", "ill"])
    found = []
    for space, options in ((schema, {}), (schema, {"delta": 1e-6}), (small, {})):
        synthesizer = pm.Synthesizer(space, epsilon=2, neighbours="add-remove", **options)  # type: ignore[arg-type]
        release = synthesizer.fit(table(), insecure_seed=0).release_
        found.append((release.header(), release.measure.columns_of_file()))  # type: ignore[union-attr]
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where values of a header stand; of a list, its first four."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:4]) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*path, key)
        yield from places(part, (*path, key))


def mutated(header: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a header in which one value or two are replaced or left out."""
    header = copy.deepcopy(header)
    for _ in range(rng.choice((1, 1, 2))):
        *path, last = rng.choice(list(places(header)))
        inside: Any = header
        for key in path:
            inside = inside[key]
        if rng.random() < 0.1:
            del inside[last]
        else:
            inside[last] = copy.deepcopy(rng.choice(HOSTILE))
    return header


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_release_file_is_read_or_refused(releases: list[Any], tmp_path: Path) -> None:
    rng, refused = random.Random(1), 0
    for i in range(TRIED):
        header, cells = releases[i % len(releases)]
        header = mutated(header, rng)
        files.write_release(tmp_path / "x", header, cells)
        try:
            release = pm.load(tmp_path / "x")
        except ReleaseFileError:
            refused += 1
            continue
        try:  # what is read can be used
            release.sample(5, seed=1)
            assert str(release.plan)
            assert repr(release)
        except PrivmeasureError:
            continue
    assert TRIED // 2 < refused < TRIED


def test_a_release_file_with_other_bytes_is_read_or_refused(releases: list[Any], tmp_path: Path) -> None:
    rng = random.Random(2)
    files.write_release(tmp_path / "x", *releases[2])
    whole = (tmp_path / "x").read_bytes()
    for _ in range(TRIED):
        content = bytearray(whole)
        for _ in range(rng.choice((1, 1, 8))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        (tmp_path / "x").write_bytes(content if rng.random() < 0.8 else content[: rng.randrange(len(content))])
        with suppress(ReleaseFileError):
            pm.load(tmp_path / "x")


def test_a_schema_file_is_read_or_refused(tmp_path: Path) -> None:
    rng, path = random.Random(3), tmp_path / "schema.toml"
    lines = SCHEMA.splitlines(keepends=True)
    for _ in range(TRIED):
        text = lines.copy()
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(len(text))
            kind = rng.randrange(5)
            if kind == 0:
                del text[at]
            elif kind == 1:
                text.insert(at, rng.choice(lines))
            elif kind == 2:
                key = text[at].split("=")[0]
                text[at] = (
                    f"{key} = {rng.choice(('true', '-1', '1e308', 'nan', '[]', '{}', '9' * 400, repr('x'), '0x1'))}\n"
                )
            else:
                inside = rng.randrange(len(text[at]) + 1)
                text[at] = text[at][:inside] + rng.choice(MARKS) + text[at][inside + rng.randrange(3) :]
        path.write_text("".join(text))
        try:
            schema = pm.Schema.from_toml(path)
            forbidden_pairs(schema)
            assert pm.Schema.from_text(schema.to_toml()) == schema
            assert pm.Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
        except SchemaError:
            continue


def edits(rng: random.Random) -> list[str]:
    """Return statements that change a ledger as no version of the package does."""
    columns = {
        "account": ["dataset", "cap", "neighbours", "rows_per_person", "day", "delta"],
        "entry": [
            "id",
            "dataset",
            "epsilon",
            "rows_per_person",
            "release",
            "files",
            "state",
            "person",
            "delta",
            "note",
        ],
        "raised": ["id", "dataset", "before", "cap", "time"],
    }
    name = rng.choice([*columns])
    values = [
        "x'ff00'",
        "CAST(x'61ff' AS TEXT)",
        "NULL",
        "-1",
        "0",
        "'0'",
        "'1/0'",
        "''",
        "'1e308'",
        "'nan'",
        "'other'",
    ]
    values += [
        "'" + "9" * 308 + "'",
        "'1/" + "9" * 308 + "'",
        "char(0)",
        "9223372036854775807",
        "'freed'",
        "zeroblob(9)",
    ]
    return [
        f"UPDATE {name} SET {rng.choice(columns[name])} = {rng.choice(values)}"
        if rng.random() < 0.8
        else rng.choice(
            [
                f"DELETE FROM {name}",
                f"DROP TABLE {name}",
                f"ALTER TABLE {name} DROP COLUMN {rng.choice(columns[name])}",
                f"PRAGMA user_version = {rng.randrange(7)}",
                f"CREATE TRIGGER t AFTER UPDATE ON {name} BEGIN DELETE FROM entry; END",
                f"CREATE TRIGGER t AFTER INSERT ON {name} BEGIN DELETE FROM entry; END",
            ]
        )
        for _ in range(rng.choice((1, 1, 2)))
    ]


def asked(ledger: Ledger, other: Ledger) -> list[Callable[[], Any]]:
    """Return everything that reads or writes a ledger."""
    return [
        lambda: (to_csv(ledger.contents()), to_json(ledger.contents())),
        lambda: [(ledger.remaining(a.dataset), ledger.raises(a.dataset)) for a in ledger.accounts()],
        lambda: ledger.open_account("more", cap=1, neighbours="replace"),
        lambda: ledger.raise_cap("people", cap=7, reason="approved"),
        lambda: ledger.merge(other),
        lambda: other.merge(ledger),
        ledger.migrate,
    ]


def test_a_ledger_is_read_or_refused_and_forgets_nothing(tmp_path: Path) -> None:
    rng, ledger, other = random.Random(4), Ledger(tmp_path / "book"), Ledger(tmp_path / "other")
    ledger.open_account("people", cap=4, neighbours="add-remove", delta="1e-6")
    ledger.reserve("people", Privacy("1/3", "add-remove"))
    ledger.raise_cap("people", cap=5, reason="approved")
    whole = ledger.path.read_bytes()
    other.path.write_bytes(whole)
    for _ in range(TRIED // 5):
        statements = edits(rng)
        ledger.path.write_bytes(whole)
        other.path.write_bytes(whole)
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA ignore_check_constraints = ON")
            for statement in statements:
                try:
                    connection.execute(statement)
                except sqlite3.Error:
                    continue
        with suppress(PrivmeasureError):
            rng.choice(asked(ledger, other))()
        try:  # what is booked is there afterwards
            booked = ledger.reserve("people", Privacy(Fraction(1, 7), "add-remove"))
        except PrivmeasureError:
            continue
        assert booked.entry.id in {entry.id for entry in ledger.history("people") if entry.counts}

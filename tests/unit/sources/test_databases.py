"""Tables in databases: what is refused, one snapshot, errors without values, places, connections as they were."""

import json
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.counts import Partition
from privmeasure.domains import Box
from privmeasure.errors import ArgumentError, DataError, ReleaseError, SchemaError
from privmeasure.sources import sql
from privmeasure.sources.databases import DatabaseSource, file_of, is_database, lazy_source, open_database
from privmeasure.sources.dialects import DUCKDB, POSTGRES, SQLITE_DIALECT
from privmeasure.sources.sql import subquery
from servers import Bases

SCHEMA = pm.Schema({"age": pm.Integer(0, 120), "ward": pm.Category(["A", "B", "it's", 'a"b', "C", "D"], unknown="A")})
TABLE = pa.table({"age": [31, 52, None, 200], "ward": ["A", "it's", None, "nowhere"]})
try:
    import psycopg
except ImportError:  # the tests that need it say so, and skip
    psycopg = None

ENGINES = ("duckdb", "sqlite", "postgres")
CANARY = "canary 8271"


def fitted(data, schema=SCHEMA, **options):
    return pm.Synthesizer(schema, epsilon=1, neighbours="add-remove").fit(data, **options)


def total(source):
    return int(source.count([Partition(())])[0].total)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_and_a_table_are_the_same_rows(bases: Bases, engine: str) -> None:
    bases.need(engine)
    by_table = bases.query(engine, TABLE)
    connection = getattr(bases, engine)
    by_query = pm.Query(connection, 'SELECT age, ward FROM "rows of a test" -- all of them')
    counts = []
    for query in (by_table, by_query):
        source = query.source(SCHEMA)
        counts.append(source.count([Partition.of(SCHEMA.domain, 9)])[0].counts.tolist())
        source.close()
    assert counts[0] == counts[1]
    assert sum(counts[0]) == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_all_questions_see_one_state(bases: Bases, engine: str, tmp_path, postgres_address) -> None:
    bases.need(engine)
    bases.query(engine, TABLE)
    insert = """INSERT INTO "rows of a test" VALUES (40, 'A')"""
    if engine == "sqlite":
        path = tmp_path / "base.db"
        mine, other = sqlite3.connect(path), sqlite3.connect(path, timeout=0.2)
        mine.execute("PRAGMA journal_mode=WAL")
        mine.execute('CREATE TABLE "rows of a test" (age INTEGER, ward TEXT)')
        mine.commit()
    elif engine == "duckdb":
        mine, other = bases.duckdb, bases.duckdb.cursor()
    else:
        mine, other = bases.postgres, bases.keep(psycopg.connect(postgres_address, autocommit=True))
    source = pm.Query(mine, table="rows of a test").source(SCHEMA)
    before = total(source)
    other.execute(insert)
    if engine == "sqlite":
        other.commit()
    assert total(source) == before
    source.close()
    again = pm.Query(mine, table="rows of a test").source(SCHEMA)
    assert total(again) == before + 1
    again.close()
    other.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_open_transaction_is_used_and_left_open(bases: Bases, engine: str) -> None:
    bases.need(engine)
    query, connection = bases.query(engine, TABLE), getattr(bases, engine)
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ" if engine == "postgres" else "BEGIN")
    connection.execute("""INSERT INTO "rows of a test" VALUES (40, 'A')""")
    source = query.source(SCHEMA)
    assert total(source) == 5
    source.close()
    connection.execute("ROLLBACK")
    again = query.source(SCHEMA)
    assert total(again) == 4
    again.close()


def test_a_transaction_that_sees_new_states_is_refused(bases: Bases) -> None:
    bases.need("postgres")
    query = bases.query("postgres", TABLE)
    bases.postgres.execute("BEGIN")
    source = query.source(SCHEMA)
    with pytest.raises(DataError, match="REPEATABLE READ"):
        source.count([Partition(())])
    bases.postgres.execute("ROLLBACK")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_of_the_engine_shows_no_value(bases: Bases, engine: str) -> None:
    bases.need(engine)
    bases.query(engine, pa.table({"age": [1], "ward": [CANARY]}))
    fails = {
        "duckdb": 'SELECT CAST(ward AS INTEGER) AS age, ward FROM "rows of a test"',
        "postgres": 'SELECT CAST(ward AS integer) AS age, ward FROM "rows of a test"',
        "sqlite": 'SELECT CAST(abs(-9223372036854775808) AS INTEGER) AS age, ward FROM "rows of a test"',
    }[engine]
    with pytest.raises(DataError, match="could not answer") as caught:
        fitted(pm.Query(getattr(bases, engine), fails))
    seen, error = "", caught.value
    assert error.__context__ is None
    assert error.__cause__ is None
    seen = str(error)
    assert CANARY not in seen
    assert "NULL" in seen
    if engine == "postgres":
        bases.postgres.rollback()


def test_an_error_after_the_first_question_says_what_was_spent(bases: Bases) -> None:
    query = bases.query("duckdb", TABLE)
    source = query.source(SCHEMA)
    total(source)
    source._driver.ask = lambda statement: (_ for _ in ()).throw(RuntimeError(CANARY))
    with pytest.raises(ReleaseError, match="count epsilon as spent") as caught:
        total(source)
    assert CANARY not in str(caught.value)
    del source._driver.ask
    source.close()


def test_what_cannot_be_counted_there_is_refused_by_its_type() -> None:
    duckdb = pytest.importorskip("duckdb")
    base = duckdb.connect()
    base.execute("CREATE TABLE t (day VARCHAR, price DECIMAL(9, 2), moment TIMESTAMP, code INTEGER)")
    schema = pm.Schema(
        {
            "day": pm.Date("2000-01-01", "2020-12-31"),
            "price": pm.Number(0, 100),
            "moment": pm.Datetime("2000-01-01", "2020-12-31", timezone="Europe/Berlin"),
            "code": pm.Category(["1", "2"]),
        }
    )
    with pytest.raises(SchemaError) as caught:
        pm.Query(base, table="t").source(schema)
    said = caught.value.problems
    for name, cast in (("day", "DATE"), ("price", "DOUBLE"), ("code", "VARCHAR")):
        assert any(f"column {name!r}" in line and f'CAST("{name}" AS {cast})' in line for line in said)
    assert any("TIMESTAMP WITH TIME ZONE" in line for line in said)
    cast = (
        "SELECT TRY_CAST(day AS DATE) AS day, CAST(price AS DOUBLE) AS price, "
        "moment AT TIME ZONE 'Europe/Berlin' AS moment, CAST(code AS VARCHAR) AS code FROM t"
    )
    pm.Query(base, cast).source(schema)


def test_a_number_that_is_text_is_refused_as_it_is_elsewhere(bases: Bases) -> None:
    for engine in bases.engines:
        query = bases.query(engine, pa.table({"age": ["31"]}))
        with pytest.raises(SchemaError, match="Cast it"):
            query.source(pm.Schema({"age": pm.Integer(0, 120)}))


def test_a_person_is_refused_with_a_way_out() -> None:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (age INTEGER, who TEXT)")
    schema = pm.Schema({"age": pm.Integer(0, 9), "who": pm.Drop()}, person="who")
    with pytest.raises(SchemaError, match="Parquet"):
        pm.Query(base, table="t").source(schema)


def test_a_space_that_does_not_describe_itself_is_refused() -> None:
    class Own(Box):
        scale = None

    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (x REAL)")
    with pytest.raises(DataError, match="Own"):
        pm.Query(base, table="t").source(Own([(0, 1)]))
    with pytest.raises(DataError, match="1 columns"):
        pm.Query(base, "SELECT x, x AS y FROM t").source(Box([(0, 1)]))
    base.execute("CREATE TABLE s (x TEXT)")
    with pytest.raises(DataError, match="CAST"):
        pm.Query(base, table="s").source(Box([(0, 1)]))


def test_points_in_a_database() -> None:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (x REAL, y REAL)")
    rows = np.random.default_rng(0).normal(0.5, 0.2, (3000, 2))
    base.executemany("INSERT INTO t VALUES (?, ?)", rows.tolist())
    base.commit()
    space = Box([(0, 1), (0, 1)])
    one, other = (
        pm.Synthesizer(space, epsilon=1, neighbours="replace").fit(data, insecure_seed=1).sample(seed=0)
        for data in (rows, pm.Query(base, table="t"))
    )
    assert (one == other).all()
    assert not base.in_transaction


def test_cells_of_sqlite_that_are_not_what_the_column_declares_are_missing() -> None:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (n INTEGER, d DATE, s TEXT, m DATETIME, c TEXT)")
    rows = [
        (5, "2020-02-29", "2020-03-01", "2020-01-01 12:30", "x"),
        ("five", "2021-02-29", "2020-3-1", "2020-01-01T12:30:59.5", b"x"),
        (b"5", 20200229, "", "2020-01-01 25:00", None),
        (None, "2020-13-01", "2020-03-01 ", "2020-01-01", "y"),
        (2.5, None, None, None, "X"),
    ]
    base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    schema = pm.Schema(
        {
            "n": pm.Integer(0, 7, nullable=True),
            "d": pm.Date("2020-01-01", "2020-12-31", nullable=True),
            "s": pm.Date("2020-01-01", "2020-12-31", nullable=True),
            "m": pm.Datetime("2020-01-01", "2020-01-02", resolution="1h", nullable=True),
            "c": pm.Category(["x", "y"], nullable=True),
        }
    )
    source = pm.Query(base, table="t").source(schema)
    twin = pa.table(
        {
            "n": pa.array([5, None, None, None, 2.5]),
            "d": pa.array(["2020-02-29", None, None, None, None]),
            "s": pa.array(["2020-03-01", None, None, None, None]),
            "m": pa.array(["2020-01-01 12:30:00", "2020-01-01 12:30:59.5", None, "2020-01-01 00:00:00", None]),
            "c": pa.array(["x", "x", None, "y", "X"]),
        }
    )
    from privmeasure.sources.arrays import ArraySource

    partition = Partition.of(schema.domain, 24)
    expected = ArraySource(schema.encode(twin), width=5).count([partition])[0]
    assert source.count([partition])[0].counts.tolist() == expected.counts.tolist()
    source.close()


def test_names_and_texts_are_quoted() -> None:
    assert DUCKDB.name('x"; DROP TABLE y; --') == '"x""; DROP TABLE y; --"'
    assert subquery(POSTGRES, None, 'a"b.c') == '"a""b"."c"'
    assert POSTGRES.unicode("it's \\ E'") == "E'it''s \\\\ E'''"
    assert POSTGRES.unicode("a\0b") is None
    assert SQLITE_DIALECT.unicode("a'\0") == "('a''' || char(0) || '')"


@pytest.mark.parametrize("engine", ENGINES)
def test_odd_texts_are_found(bases: Bases, engine: str) -> None:
    bases.need(engine)
    odd = ["it's", 'a"b', "back\\slash", "%s {0} $1 ?", "new\nline", "v1 x0", "Ünï", "\U0001f600", "--", "/* */", ""]
    if engine != "postgres":
        odd.append("nul\0byte")
    schema = pm.Schema({"c": pm.Category(odd, nullable=True)})
    table = pa.table({"c": pa.array([*odd, *odd[:3], None, "other"])})
    source = bases.query(engine, table).source(schema)
    (counts,) = source.count([Partition.of(schema.domain, 6)])
    source.close()
    cells = schema.domain.locate(schema.encode(table), 6).astype(np.int64)
    assert counts.counts.tolist() == np.bincount(cells, minlength=64).tolist()


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_texts_are_compared_byte_by_byte_whatever_the_collation(engine: str, many: bool) -> None:
    """A column that takes "a" for "A" in comparisons: in a list of cases, and in a join where there are many."""
    if engine == "sqlite":
        base = sqlite3.connect(":memory:")
    else:
        import duckdb

        base = duckdb.connect()
    base.execute("CREATE TABLE t (c VARCHAR COLLATE NOCASE)")
    values = ["A", "b", *(f"label {i}" for i in range(20 * many))]
    stored = ["a", "A", "b", "B", "B", "a ", None, "label 3", "LABEL 3", "Label 19"]
    base.executemany("INSERT INTO t VALUES (?)", [(text,) for text in stored])
    base.commit()
    schema = pm.Schema({"c": pm.Category(values, nullable=True)})
    source = pm.Query(base, table="t").source(schema)
    (counts,) = source.count([Partition.of(schema.domain, 6)])
    source.close()
    cells = schema.domain.locate(schema.encode(pa.table({"c": stored})), 6).astype(np.int64)
    assert counts.counts.tolist() == np.bincount(cells, minlength=64).tolist()


@pytest.mark.parametrize(
    "value", [0.0, 0.1, -1 / 3, 5e-324, 2.0**-1022, 1.7976931348623157e308, 1e22, 2.0**53, -(2.0**1023), 3e-308]
)
def test_doubles_are_read_back(bases: Bases, value: float) -> None:
    for engine in bases.engines:
        dialect = {"duckdb": DUCKDB, "sqlite": SQLITE_DIALECT, "postgres": POSTGRES}[engine]
        ((found,),) = getattr(bases, engine).execute(f"SELECT {dialect.number(value)}").fetchall()
        assert found == value, engine


def test_many_partitions_are_asked_in_few_statements(bases: Bases, monkeypatch) -> None:
    source = bases.query("duckdb", TABLE).source(SCHEMA)
    asked = []
    ask = source._driver.ask
    source._driver.ask = lambda statement: asked.append(statement) or ask(statement)
    partitions = [Partition.of(SCHEMA.domain, level) for level in range(1, 11)]
    whole = [c.counts.tolist() for c in source.count(partitions)]
    assert sum("GROUPING SETS" in statement for statement in asked) == 1
    monkeypatch.setattr(sql, "SETS", 3)
    assert [c.counts.tolist() for c in source.count(partitions)] == whole
    assert sum("GROUPING SETS" in statement for statement in asked) == 4
    del source._driver.ask
    source.close()


def test_places(tmp_path) -> None:
    path = tmp_path / "my base.db"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE visits (age INTEGER, ward TEXT)")
        base.executemany("INSERT INTO visits VALUES (?, ?)", [(i % 90, "AB"[i % 2]) for i in range(500)])
    base.close()
    assert fitted(f"sqlite:{path}?table=visits").sample(5).column_names == ["age", "ward"]
    assert fitted(f"sqlite:{path}?query=SELECT%20*%20FROM%20visits").spent
    assert is_database("postgresql://u@h/b?table=t")
    for place, words in (
        (f"sqlite:{path}", "table=NAME"),
        (f"sqlite:{path}?table=a&query=b", "table=NAME"),
        (f"sqlite:{path}?table=visits&mode=rw", "mode"),
        (f"sqlite:{tmp_path}/none.db?table=visits", "does not exist"),
        (f"duckdb:{path}?table=visits", "DuckDB"),
        (f"sqlite:{path}?table=nothing", "could not answer"),
    ):
        with pytest.raises(DataError, match=words):
            open_database(place, SCHEMA)
    with pytest.raises(ArgumentError, match="either"):
        pm.Query(sqlite3.connect(":memory:"))
    with pytest.raises(ArgumentError, match="connection"):
        pm.Query(object(), "SELECT 1")


def test_a_place_of_postgres(bases: Bases, postgres_address) -> None:
    bases.need("postgres")
    bases.query("postgres", TABLE)
    with closing(open_database(f"{postgres_address}&table=rows%20of%20a%20test", SCHEMA)) as source:
        assert total(source) == 4


def test_rows_of_dictionaries_are_no_matter(bases: Bases) -> None:
    bases.need("postgres")
    bases.query("postgres", TABLE)
    bases.postgres.row_factory = psycopg.rows.dict_row
    try:
        source = pm.Query(bases.postgres, table="rows of a test").source(SCHEMA)
        assert total(source) == 4
        source.close()
    finally:
        bases.postgres.row_factory = psycopg.rows.tuple_row


SLOW = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT CAST(i AS REAL) AS x FROM n",
    "postgres": "SELECT i::float8 AS x FROM generate_series(1, 2000000000) AS i",
    "duckdb": "SELECT CAST(a.range + b.range AS DOUBLE) AS x FROM range(10000000) AS a, range(10000000) AS b",
}


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_stops_the_engine(bases: Bases, engine: str) -> None:
    bases.need(engine)
    synth = pm.Synthesizer(Box([(0, 1)]), epsilon=1, neighbours="add-remove")
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            synth.fit(pm.Query(getattr(bases, engine), SLOW[engine]))
    finally:
        timer.cancel()
    assert time.monotonic() - begun < 60
    assert not synth.spent  # the first question: no noise was drawn
    if engine == "postgres":
        bases.postgres.rollback()


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_after_the_noise_counts_as_spent(bases: Bases, engine: str, monkeypatch) -> None:
    bases.need(engine)
    query = bases.query(engine, pa.concat_tables([TABLE] * 500))  # so many that cells are asked for, whatever the noise
    ask = query._driver.ask

    def interrupted(statement):
        if "GROUP BY" in statement:
            raise KeyboardInterrupt(CANARY)
        return ask(statement)

    monkeypatch.setattr(query._driver, "ask", interrupted)
    synth = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove")
    with pytest.raises(KeyboardInterrupt) as caught:
        synth.fit(query)
    assert caught.value.args == ()
    assert synth.spent
    monkeypatch.undo()
    again = bases.query(engine, TABLE).source(SCHEMA)  # the transaction was ended
    assert total(again) == 4
    again.close()


def test_a_source_shows_nothing() -> None:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (x REAL)")
    query = pm.Query(base, table="t")
    assert repr(query) == "Query(SQLite)"
    assert repr(query.source(Box([(0, 1)]))) == "DatabaseSource(SQLite, private)"
    assert isinstance(query.source(Box([(0, 1)])), DatabaseSource)


@pytest.mark.parametrize("hostile", ["", "x"])
@pytest.mark.parametrize("form", ["csv", "json", "view", "pandas", "relation"])
def test_types_that_duckdb_guesses_from_rows_are_refused(tmp_path, form: str, hostile: str) -> None:
    """One row "x" makes a column of numbers one of texts, which is refused: whether it is there could be seen."""
    import duckdb
    import pandas as pd

    base, cells = duckdb.connect(), ["1", "2", *([hostile] if hostile else [])]
    (tmp_path / "t.csv").write_text("\n".join(["c", *cells]))
    (tmp_path / "t.json").write_text(
        "\n".join(f'{{"c": {json.dumps(int(cell) if cell.isdigit() else cell)}}}' for cell in cells)
    )
    base.register("frame", pd.DataFrame({"c": [1, 2, *([hostile] if hostile else [])]}))
    base.execute(f"CREATE VIEW seen AS SELECT c FROM read_csv('{tmp_path / 't.csv'}')")
    query = {
        "csv": f"SELECT c FROM '{tmp_path / 't.csv'}' WHERE c IS NOT NULL",
        "json": f"SELECT c FROM '{tmp_path / 't.json'}'",
        "view": "WITH a AS (SELECT c FROM seen) SELECT a.c FROM a",
        "pandas": "SELECT c FROM frame",
        "relation": "",
    }[form]
    data = pm.Query(base, query) if query else base.read_csv(str(tmp_path / "t.csv"))
    for column in (pm.Category(["1", "2"], nullable=True), pm.Integer(0, 9, nullable=True)):
        with pytest.raises(DataError, match="one row would decide"):
            fitted(data, pm.Schema({"c": column}))


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_texts_of_sqlite_are_found_in_every_encoding(encoding: str) -> None:
    base = sqlite3.connect(":memory:")
    base.execute(f"PRAGMA encoding = '{encoding}'")
    base.execute("CREATE TABLE t (c TEXT)")
    for values in (["A", "é", "a'\0b"], [*map(str, range(40)), "é", "a'\0b"]):  # compared, and joined with
        base.execute("DELETE FROM t")
        base.executemany("INSERT INTO t VALUES (?)", [(value,) for value in [*values, "é", "é "]])
        base.commit()
        schema = pm.Schema({"c": pm.Category(values, nullable=True)})
        source = pm.Query(base, table="t").source(schema)
        (counts,) = source.count([Partition.of(schema.domain, 6)])
        source.close()
        cells = schema.domain.locate(schema.encode(pa.table({"c": [*values, "é", "é "]})), 6).astype(np.int64)
        assert counts.counts.tolist() == np.bincount(cells, minlength=64).tolist()


@pytest.mark.parametrize("name", ["layer0", "numbers", "given", "looked", "t", "t0", "x0", "n0"])
def test_tables_may_be_called_as_one_likes(bases: Bases, name: str) -> None:
    for engine in bases.engines:
        base = getattr(bases, engine)
        base.execute(f'CREATE TABLE "{name}" ("{name}" TEXT)')
        base.execute(f"INSERT INTO \"{name}\" VALUES ('k1'), ('k2')")
        schema = pm.Schema({name: pm.Category([f"k{i}" for i in range(40)], nullable=True)})
        for query in (pm.Query(base, table=name), pm.Query(base, f'SELECT * FROM "{name}"')):
            source = query.source(schema)
            assert source.count([Partition.of(schema.domain, 3)])[0].counts.sum() == 2
            source.close()
        base.execute(f'DROP TABLE "{name}"')


def test_the_cast_that_is_advised_does_not_fail_because_of_a_value() -> None:
    import duckdb

    base = duckdb.connect()
    base.execute("CREATE TABLE t (c HUGEINT)")
    with pytest.raises(SchemaError, match='Make it TRY_CAST\\("c" AS BIGINT\\)'):
        fitted(pm.Query(base, table="t"), pm.Schema({"c": pm.Integer(0, 9)}))


def test_the_file_of_a_place_is_the_one_that_is_opened() -> None:
    assert file_of("sqlite:my%20base.db?table=t") == Path("my base.db")  # which no output may replace


@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_is_one_statement(bases: Bases, engine: str) -> None:
    bases.need(engine)
    base = getattr(bases, engine)
    base.execute("CREATE TABLE kept (c INTEGER)")
    for end in ("", "COMMIT; "):
        query = f"SELECT 1 AS c) AS given; {end}DROP TABLE kept; SELECT * FROM (SELECT 1 AS c"
        with pytest.raises((ArgumentError, DataError)):
            fitted(pm.Query(base, query), pm.Schema({"c": pm.Integer(0, 9)}))
    assert base.execute("SELECT count(*) FROM kept").fetchall() == [(0,)]
    base.execute("DROP TABLE kept")


@pytest.mark.parametrize("letters", ["SQL_ASCII", "LATIN1", "UTF8"])
def test_the_letters_of_a_connection_change_nothing(bases: Bases, letters: str) -> None:
    """Under SQL_ASCII psycopg gives names of types as bytes, which were none that we know."""
    bases.need("postgres")
    query = bases.query("postgres", pa.table({"word": ["é", "a", None, "\U0001f600"] * 5}))
    schema = pm.Schema({"word": pm.Category(["a", "é", "\U0001f600"], nullable=True)})
    bases.postgres.execute(f"SET client_encoding TO '{letters}'")
    try:
        source = query.source(schema)
        assert sorted(source.count([Partition.of(schema.domain, 3)])[0].counts.tolist())[-4:] == [5, 5, 5, 5]
        source.close()
    finally:
        bases.postgres.execute("SET client_encoding TO 'UTF8'")


deprecated = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # in Ibis itself


def ibis_tables(tmp_path):
    """The same rows as tables of Ibis on two engines."""
    import ibis

    path = tmp_path / "base.db"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE visits (age INTEGER, ward TEXT)")
        base.executemany("INSERT INTO visits VALUES (?, ?)", zip(*TABLE.to_pydict().values(), strict=True))
    duck = ibis.duckdb.connect()
    duck.raw_sql("CREATE TABLE visits (age INTEGER, ward VARCHAR)")
    duck.con.executemany("INSERT INTO visits VALUES (?, ?)", zip(*TABLE.to_pydict().values(), strict=True))
    return {"duckdb": duck.table("visits"), "sqlite": ibis.sqlite.connect(path).table("visits")}


@deprecated
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_table_of_ibis_is_counted_in_its_engine(tmp_path, wrapped: bool) -> None:
    import narwhals as nw

    for table in ibis_tables(tmp_path).values():
        grown = table.filter((table.age > 40) | table.age.isnull()).select("ward", "age")  # becomes SQL
        source = lazy_source(nw.from_native(grown) if wrapped else grown, SCHEMA)
        assert isinstance(source, DatabaseSource)
        assert total(source) == 3
        source.close()


@deprecated
def test_a_table_of_ibis_gives_the_release_of_its_rows(tmp_path) -> None:
    wanted = fitted(TABLE, insecure_seed=3).release_
    for engine, table in ibis_tables(tmp_path).items():
        release = fitted(table, insecure_seed=3).release_
        assert release.plan == wanted.plan, engine
        for mine, theirs in zip(release.measure.parts(), wanted.measure.parts(), strict=True):
            assert mine[0] == theirs[0]
            assert all(np.array_equal(one, two) for one, two in zip(mine[1], theirs[1], strict=True))


@deprecated
def test_a_table_of_ibis_in_memory_is_collected() -> None:
    import ibis

    held = ibis.memtable(TABLE)
    assert lazy_source(held, SCHEMA) is None
    assert fitted(held, insecure_seed=3).release_.plan == fitted(TABLE, insecure_seed=3).release_.plan

"""A shelf with a table, a schema, a ledger and a release, and two ways to call the command line on it."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
from cli_shelf import DICTIONARY, FIT, FRICTIONLESS, SCHEMA, check_message, table

from privmeasure import cli


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder with a table, a schema, a ledger and a release, made once."""
    folder = tmp_path_factory.mktemp("shelf")
    pyarrow.csv.write_csv(table(), folder / "people.csv")
    pyarrow.parquet.write_table(table(), folder / "people.parquet")
    with closing(sqlite3.connect(folder / "people.db")) as base:
        base.execute("CREATE TABLE people (age INTEGER, sex TEXT, income REAL, name TEXT)")
        base.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", zip(*table().to_pydict().values(), strict=True))
        base.commit()
    (folder / "people.toml").write_text(SCHEMA)
    (folder / "frictionless.json").write_text(json.dumps(FRICTIONLESS))
    (folder / "dictionary.csv").write_text(DICTIONARY)
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert cli.run([*FIT[:-1], "people.release", "--quiet"]) == 0
        assert cli.run(["ledger", "open", "book.sqlite", "people", "--cap", "2", "--neighbours", "add-remove"]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def folder(shelf, tmp_path, monkeypatch):
    """A fresh copy of the shelf, as the working folder."""
    for path in shelf.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys):
    """Run a command that must work, and return what it prints."""

    def run(*arguments):
        capsys.readouterr()
        code = cli.run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert code == 0, err or out
        return out

    return run


@pytest.fixture
def refused(capsys, folder):
    """Run a command that must fail: the code, one paragraph, no value of the data, nothing left behind."""

    def run(arguments, code, *words):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for extra in ([], ["--json"]):
            capsys.readouterr()
            assert cli.run([*map(str, arguments), *extra]) == code
            out, err = capsys.readouterr()
            if extra:
                error = json.loads(out)["error"]
                assert error["exit"] == code
                message = error["message"]
            else:
                assert out == ""
                assert err.startswith("error: ")
                message = err
            assert err == "" or not extra
            check_message(message, *words)
        after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert after == before

    return run

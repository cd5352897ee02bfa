"""What an error or a page says to install exists: libraries by their names, privmeasure from its folder alone."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from privmeasure.errors import ArgumentError, DataError
from privmeasure.extras import LIBRARIES, how_to_install
from privmeasure.report.canvas import check_pictures
from privmeasure.sources.duckdb import connect_duckdb
from privmeasure.sources.postgres import connect_postgres
from privmeasure.sources.spark import own_session
from privmeasure.tables import sheets
from privmeasure.transport.flow import UNSOUND

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"pip install ([^`\n]+)")


def places():
    """Return the sources, pages and notebooks, with their words; the history of changes stays as it was."""
    kinds = {".py", ".md", ".ipynb", ".html"}
    found = [path for folder in ("src", "docs", "examples") for path in (ROOT / folder).rglob("*")]
    pages = [page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"]
    return [*pages, *(path for path in found if path.suffix in kinds and "_build" not in path.parts)]


def test_the_table_has_the_extras_and_libraries_of_pyproject():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {extra: {re.split("[<>=!~]", word)[0] for word in words} for extra, words in declared.items()} == {
        extra: set(libraries) for extra, libraries in LIBRARIES.items()
    }


def installs(words):
    """Say whether pip would install what is meant: this folder, perhaps with extras, or all libraries of one extra."""
    if len(words) == 1 and (here := re.fullmatch(r"\.(?:\[([\w,]+)\])?", words[0])):
        return set((here[1] or "").split(",")) - {""} <= set(LIBRARIES)
    return sorted(words) in [sorted(libraries) for libraries in LIBRARIES.values()]


def test_pages_and_messages_install_libraries_or_this_folder():
    found = 0
    for path in places():
        text = path.read_text(encoding="utf-8")
        assert "privmeasure[" not in text, f"{path.name}: the package is on no index"
        for said in COMMAND.findall(text):
            if "{" not in said:  # of code that makes the command
                found += 1
                assert installs(shlex.split(said, comments=True)), f"{path.name}: pip install {said}"
    assert found > 10


@pytest.mark.parametrize("words", ["privmeasure", "'privmeasure[report]'", "'.[tea]'", "jinja2", "numpy", ". jinja2"])
def test_other_commands_of_pip_are_noticed(words):
    assert not installs(shlex.split(words))


def spark():
    with own_session("local[1]"):
        pass


@pytest.mark.parametrize(
    ("extra", "library", "call", "kind"),
    [
        ("xlsx", "openpyxl", sheets.library, ArgumentError),
        ("report", "jinja2", check_pictures, ArgumentError),
        ("report", "matplotlib", check_pictures, ArgumentError),
        ("duckdb", "duckdb", lambda: connect_duckdb(Path("clinic.db")), DataError),
        ("postgres", "psycopg", lambda: connect_postgres("postgresql://host/clinic"), DataError),
        ("spark", "pyspark.sql", spark, DataError),
    ],
)
def test_the_error_of_a_missing_library_says_what_to_install(extra, library, call, kind, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(kind, match=re.escape(how_to_install(extra))):
        call()


def test_an_unsound_flow_names_the_exact_solver():
    assert how_to_install("transport") in UNSOUND

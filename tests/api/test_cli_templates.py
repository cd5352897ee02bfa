"""The way to a schema on the command line: guesses, imports, questions."""

import builtins
import datetime as dt
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_shelf import DICTIONARY, SECRET

from privmeasure import Synthesizer, cli
from privmeasure.tables import Date, Integer, Schema
from privmeasure.tables.completing import find_gaps
from privmeasure.tables.guessing import name_lines

SQL = "CREATE TABLE people (age INT CHECK (age BETWEEN 17 AND 90), sex CHAR(1) CHECK (sex IN ('F', 'M')));"


@pytest.fixture
def typed(monkeypatch):
    """Answer questions with what is given, then end."""

    def give(*replies):
        waiting = list(replies)

        def reply(question):
            if not waiting:
                raise EOFError
            return waiting.pop(0)

        monkeypatch.setattr(builtins, "input", reply)
        return waiting

    return give


def test_guess_reads_no_row(call, folder):
    call("schema", "init", "people.csv", "--guess", "-o", "guessed.toml")
    text = (folder / "guessed.toml").read_text()
    assert SECRET not in text
    (folder / "empty.csv").write_text("age,sex,income,name\n")
    call("schema", "init", "empty.csv", "--guess", "-o", "empty.toml")
    assert (folder / "empty.toml").read_text() == text
    declared = text.split("format = 1")[1]
    assert '[columns.age]\ntype = "integer"\nlow = 0\nhigh = 120' in declared
    assert '[columns.name]\ntype = "drop"' in declared
    assert declared.count('nullable = "?"') == 3


def test_nullable_everywhere_leaves_nothing_of_it_to_ask(call, folder):
    call("schema", "init", "people.csv", "--guess", "--nullable", "-o", "guessed.toml")
    text = (folder / "guessed.toml").read_text()
    assert not find_gaps(text)
    declared = Schema.from_toml(folder / "guessed.toml").data
    assert declared
    assert all(column.nullable for column in declared.values())


def test_what_is_dropped_has_nothing_to_decide(call, folder):
    call("schema", "init", "people.csv", "--nullable", "-o", "plain.toml")
    text = (folder / "plain.toml").read_text().replace('\ntype = "?"', '\ntype = "boolean"', 1)
    (folder / "plain.toml").write_text(text.replace('\ntype = "?"', '\ntype = "drop"'))
    assert list(Schema.from_toml(folder / "plain.toml").data) == ["age"]


def test_a_dictionary_says_whose_row_it_is(call, folder):
    (folder / "d.csv").write_text(DICTIONARY.replace("name,id,", "name,person,"))
    call("schema", "import", "d.csv", "-o", "imported.toml")
    assert Schema.from_toml(folder / "imported.toml").person == "name"


@pytest.mark.parametrize(("name", "text"), [("d.csv", DICTIONARY), ("d.sql", SQL)])
def test_import(call, folder, name, text):
    (folder / name).write_text(text)
    call("schema", "import", name, "-o", "imported.toml")
    assert Schema.from_toml(folder / "imported.toml").columns["age"].high == 90


def test_import_of_one_table_of_several(call, refused, folder):
    (folder / "two.sql").write_text(SQL + SQL.replace("people", "others"))
    assert "[columns.age]" in call("schema", "import", "two.sql", "--table", "others")
    (folder / "two.json").write_text(json.dumps({"tables": {"a": {"columns": {"x": {"sdtype": "boolean"}}}, "b": {}}}))
    assert "[columns.x]" in call("schema", "import", "two.json", "--table", "a")


def test_edit_asks_until_nothing_is_left(call, folder, typed):
    call("schema", "init", "people.csv", "-o", "new.toml")
    asked = len(find_gaps((folder / "new.toml").read_text()))
    assert asked >= 4
    kinds = {
        "age": ["integer", "90", "17", "17", "90", "no"],
        "sex": ["category", "F, M", "no"],
        "income": ["number", "0", "100000", "no"],
    }
    for column, given in {**kinds, "name": ["drop"]}.items():
        if any(gap.column == column for gap in find_gaps((folder / "new.toml").read_text())):
            typed(*given)
            call("schema", "edit", "new.toml")
    text = (folder / "new.toml").read_text()
    for _ in find_gaps(text):  # nullable, where a template asks for it
        typed("no")
        call("schema", "edit", "new.toml")
    assert call("schema", "check", "new.toml", "--quiet") == ""
    assert Schema.from_toml(folder / "new.toml").columns["age"].low == 17
    assert "is complete" in call("schema", "edit", "new.toml")


def test_edit_skips_goes_back_stops_and_writes_elsewhere(call, refused, folder, typed):
    (folder / "t.toml").write_text('format = 1\n[columns.a]\ntype = "?"\n[columns.b]\ntype = "?"\n')
    typed("", "boolean")
    assert "t2.toml has 1 more to fill in" in call("schema", "edit", "t.toml", "-o", "t2.toml")
    assert (folder / "t2.toml").read_text() == 'format = 1\n[columns.a]\ntype = "?"\n[columns.b]\ntype = "boolean"\n'
    assert '"boolean"' not in (folder / "t.toml").read_text()
    left = typed("boolean", "back", "drop", "quit", "never asked for")
    call("schema", "edit", "t.toml")
    assert left == ["never asked for"]
    assert (folder / "t.toml").read_text() == 'format = 1\n[columns.a]\ntype = "drop"\n[columns.b]\ntype = "?"\n'


def test_an_unfilled_template_fits_on_a_screen(folder, capsys):
    (folder / "wide.csv").write_text(",".join(f"x{i}" for i in range(300)) + "\n")
    assert cli.run(["schema", "init", "wide.csv", "-o", "wide.toml"]) == 0
    capsys.readouterr()
    assert cli.run(["schema", "check", "wide.toml"]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) <= 15
    assert sum(-(-len(line) // 100) for line in told.splitlines()) <= 24
    assert "And 288 more of the kind." in told
    assert "schema edit wide.toml" in told


def test_the_list_of_names_is_on_the_page():
    page = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
    assert f"```text\n{chr(10).join(name_lines())}\n```" in page


def test_an_import_says_what_is_left_to_fill_in(tmp_path, capsys):
    (tmp_path / "people.sql").write_text("CREATE TABLE people (age SMALLINT NOT NULL, sex CHAR(1));")
    out = tmp_path / "people.toml"
    assert cli.run(["schema", "import", str(tmp_path / "people.sql"), "-o", str(out)]) == 0
    told = capsys.readouterr().err
    assert "to fill in" in told
    assert f"schema edit {out}" in told


def test_an_import_names_the_columns_without_a_type_and_those_that_are_dropped(tmp_path, capsys):
    columns = {"pid": {"sdtype": "id"}, "mood": {"sdtype": "mood"}, "grade": {"sdtype": "ordinal"}}
    (tmp_path / "sdv.json").write_text(
        json.dumps({"METADATA_SPEC_VERSION": "V2", "tables": {"t": {"columns": columns}}})
    )
    assert cli.run(["schema", "import", str(tmp_path / "sdv.json")]) == 0
    out, err = capsys.readouterr()
    assert '[columns.mood]\ntype = "?"' in out
    assert "ordered = true" in out
    assert "'mood' needs a type. The sdtype 'mood'" in err
    assert "Dropped: 'pid'" in err


def test_a_written_nullable_is_a_decision_that_the_check_does_not_ask_for_again(tmp_path, capsys):
    text = 'format = 1\n[columns.sex]\ntype = "category"\nvalues = ["F", "M"]\n'

    def warnings(schema):
        (tmp_path / "people.toml").write_text(schema)
        assert cli.run(["schema", "check", str(tmp_path / "people.toml"), "--json"]) == 0
        return json.loads(capsys.readouterr().out)["warnings"]

    assert warnings(f"{text}nullable = false\n") == []
    open_ones = warnings(text)
    assert len(open_ones) == 2
    assert "has no unknown" in open_ones[1]


def test_the_message_after_writing_says_how_pandas_reads_dates_of_parquet(tmp_path, capsys):
    schema = Schema({"day": Date("2020-01-01", "2020-12-31"), "age": Integer(0, 9)})
    data = pa.table({"day": [dt.date(2020, 2, 3)] * 300, "age": [3] * 300})
    synthesizer = Synthesizer(schema, epsilon=9, neighbours="replace").fit(data)
    synthesizer.save(tmp_path / "d.release")
    for name, dated in [("d.parquet", True), ("d.csv", False)]:
        assert cli.run(["sample", str(tmp_path / "d.release"), "-o", str(tmp_path / name), "-n", "20"]) == 0
        hint = f'pd.read_parquet("{tmp_path / name}", dtype_backend="pyarrow")'
        assert (hint in capsys.readouterr().out) == dated
    assert pq.read_schema(tmp_path / "d.parquet").field("day").type == pa.date32()
    read = pd.read_parquet(tmp_path / "d.parquet", dtype_backend="pyarrow")
    assert read["day"].dt.year.eq(2020).all()

"""What is kept of a stranger's first hour: schemas that hold, and how their lines are counted."""

import first_hour
from privmeasure.tables import Schema
from privmeasure.tables.dictionaries import from_dictionary


def test_what_is_kept_is_a_schema():
    for stranger in first_hour.TABLES:
        text = (first_hour.KEPT / f"{stranger.name}.toml").read_text(encoding="utf-8")
        if stranger.dictionary:
            known = from_dictionary((first_hour.KEPT / f"{stranger.name}.csv").read_text(encoding="utf-8"))
            text = known.to_toml() + "\n" + text
        schema = Schema.from_text(text)
        assert len(schema.data) > 5
        assert "" in schema.columns  # the names of rows that R writes
        assert (schema.person is not None) == ("--rows-per-person" in stranger.promise)


def test_lines_that_were_not_there_are_written_by_hand(tmp_path):
    hour = first_hour.Hour(tmp_path)
    (tmp_path / "a.toml").write_text('# a template\n\ntype = "?"\nnullable = true\n')
    hour.write("a.toml", '\ntype = "integer"\nlow = 0\nhigh = 9\nnullable = true\n')
    assert hour.lines == 3
    hour.write("new.csv", "name,type\nage,integer\n")
    assert hour.lines == 5
    assert hour.steps == [{"step": "edit a.toml", "lines": 3}, {"step": "edit new.csv", "lines": 2}]

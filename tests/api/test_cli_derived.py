"""Derived columns on the command line: check, fit, sample with --where, evaluate."""

import json

import pyarrow.csv

SCHEMA = """\
format = 2
[columns.age]
type = "integer"
low = 17
high = 90
nullable = true
[columns.sex]
type = "category"
values = ["F", "M"]
[columns.income]
type = "number"
low = 0
high = 100000
decimals = 0
[columns.name]
type = "drop"
[columns.decade]
derive = "age // 10 * 10"
[columns.word]
derive = "lookup(sex)"
lookup = "words.csv"
"""
FIT = ["--schema", "derived.toml", "--epsilon", "1", "--neighbours", "add-remove"]


def test_the_whole_way(call, folder):
    (folder / "derived.toml").write_text(SCHEMA)
    (folder / "words.csv").write_text("sex,word\nF,woman\nM,man\n")
    rows = pyarrow.csv.read_csv(folder / "people.csv")
    decade = [None if age is None else age // 10 * 10 for age in rows["age"].to_pylist()]
    decade[:2] = [0, 0]
    pyarrow.csv.write_csv(rows.append_column("decade", pyarrow.array(decade)), folder / "more.csv")
    assert "6 columns" in call("schema", "check", "derived.toml")
    told = call("schema", "check", "derived.toml", "--data", "more.csv")
    assert "2 rows of 'decade' differ from what is derived for them." in told
    assert "'word'" not in told  # the table does not have it
    counted = json.loads(call("schema", "check", "derived.toml", "--data", "more.csv", "--json"))
    assert counted["derived"] == {"decade": {"different": 2}}
    call("fit", "more.csv", *FIT, "-o", "derived.release")
    (folder / "words.csv").unlink()  # the release holds what it said
    call("sample", "derived.release", "-o", "d.csv", "-n", "50", "--where", "decade = 30 and word = 'woman'")
    made = pyarrow.csv.read_csv(folder / "d.csv")
    assert made.column_names == ["age", "sex", "income", "decade", "word"]
    assert set(made["decade"].to_pylist()) == {30}
    assert set(made["word"].to_pylist()) == {"woman"}
    (folder / "words.csv").write_text("sex,word\nF,woman\nM,man\n")
    call("evaluate", "more.csv", "d.csv", "--schema", "derived.toml")
    call("fit", "people.csv", *FIT, "-o", "few.release", "--columns", "age,decade")

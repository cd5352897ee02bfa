"""The command line, tried as a new user would: one paragraph, an exit code, no value of the data, no file left."""

import errno
import json
import os
import sys
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_shelf import BOOKED, FIT, PROMISE, ROWS, SCHEMA, SECRET, check_message, table

from privmeasure import cli
from privmeasure.cli import failures
from privmeasure.cli.options import read_epsilon
from privmeasure.errors import ArgumentError
from privmeasure.ledger import Ledger
from privmeasure.mechanisms import PMM, ColumnTree
from privmeasure.privacy import Privacy

# ------------------------------------------------------------------------------------------------------ wrong commands


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["fitt"], 2, ["fitt", "did you mean", "fit"]),
        ([*FIT, "--epsilom", "1"], 2, ["--epsilom", "--epsilon", "privmeasure fit --help"]),
        (["fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "-o", "x"], 2, ["--neighbours"]),
        (["fit", "people.csv", "--schema", "people.toml", *PROMISE], 2, ["--out"]),
        ([*FIT[:-3], "both", "-o", "x"], 2, ["neighbours", "add-remove", "replace"]),
        ([*FIT, "--epsilon", "one"], 2, ["one", "1/3"]),
        ([*FIT, "--epsilon", "1e999999999"], 2, ["epsilon"]),
        ([*FIT, "--epsilon", "1e-3"], 2, ["1e-3", "Write it as 0.001."]),
        ([*FIT, "--epsilon", ".5E+1"], 2, ["Write it as 5."]),
        ([*FIT, "--epsilon", "1e9"], 2, ["1e9", "at most 50"]),
        ([*FIT, "--epsilon", "0e1"], 2, ["0e1", "above 0"]),
        (["ledger", "open", "new.sqlite", "d", "--cap", "1e9", "--neighbours", "replace"], 2, ["1e9", "at most 50"]),
        ([*FIT, "--epsilon", "0"], 2, ["epsilon", "got 0."]),
        ([*FIT, "--epsilon", "-1"], 2, ["epsilon"]),
        ([*FIT, "--epsilon", "1/0"], 2, ["epsilon"]),
        ([*FIT, "--epsilon", "51"], 2, ["epsilon", "50"]),
        ([*FIT, "--epsilon", "nan"], 2, ["epsilon"]),
        ([*FIT, "--rows", "many"], 2, ["--rows"]),
        ([*FIT, "--rows", "0"], 2, ["--rows"]),
        ([*FIT, "--depth", "999"], 2, ["depth"]),
        ([*FIT, "--columns", "agee"], 2, ["agee", "age"]),
        ([*FIT, "--columns", ""], 2, ["column"]),
        ([*FIT, "--rows-per-person", "0"], 2, ["--rows-per-person"]),
        ([*FIT, "--threads", "0"], 2, ["--threads"]),
        ([*FIT, "--ledger", "book.sqlite"], 2, ["--dataset"]),
        ([*FIT, "--note", "hello"], 2, ["--ledger"]),
        (["plan", "--schema", "people.toml", *PROMISE], 2, ["--rows"]),
        (["plan", "--schema", "people.toml", *PROMISE, "--rows", "10", "--epsilons", "1,two"], 2, ["two"]),
        (["sample", "people.release", "-o", "out.xls"], 2, ["out.xls", ".csv", ".parquet"]),
        (["sample", "people.release", "-o", "out.csv", "-n", "-5"], 2, ["-n"]),
        (["sample", "people.release", "-o", "out.csv", "--seed", "x"], 2, ["--seed"]),
        (["evaluate", "people.csv", "people.parquet"], 2, ["--schema"]),
        (["ledger", "open", "new.sqlite", "a/b.csv", "--cap", "1", "--neighbours", "replace"], 2, ["name"]),
        (["ledger", "open", "new.sqlite", "d", "--cap", "lots", "--neighbours", "replace"], 2, ["cap"]),
        (["ledger", "show", "book.sqlite", "nobody"], 2, ["nobody", "people"]),
    ],
    ids=lambda value: " ".join(value)[-60:] if isinstance(value, list) else str(value),
)  # fmt: skip
def test_wrong_usage(refused, arguments, code, words):
    refused(arguments, code, *words)


@pytest.mark.parametrize("text", ["1e-3", ".5E+1", "5e1", "1.25e-9", "51e0", "50.001e0", "1e9", "0e0", "1e-12", "9e99"])
def test_an_epsilon_with_an_exponent_gets_a_number_that_is_accepted_or_the_limit(text):
    with pytest.raises(ArgumentError) as caught:
        read_epsilon(text)
    said = str(caught.value)
    if "Write it as " in said:
        written = said.split("Write it as ")[1].removesuffix(".")
        assert Privacy(read_epsilon(written), "replace").epsilon == Fraction(text)
    else:
        assert "above 0 and at most 50" in said
        assert repr(text) in said


def test_the_largest_number_of_rows_is_told(folder, capsys):
    assert cli.run(["sample", "people.release", "-o", "out.csv", "-n", "9" * 20]) == 2
    err = capsys.readouterr().err
    assert "-n" in err
    assert str(2**53 - 1) in err  # versions of Typer word it differently


# --------------------------------------------------------------------------------------------------------- wrong files


def change(folder, old, new):
    path = folder / "people.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_wrong_and_a_missing_column(refused, folder):
    change(folder, "[columns.income]", "[columns.incone]")
    refused(FIT, 2, "incone", "income")
    change(folder, "[columns.incone]", "[columns.height]\ntype='number'\nlow=0\nhigh=9\n[columns.income]")
    refused(FIT, 2, "height")
    refused([*FIT, "--dry-run"], 2, "height")


def test_an_undeclared_column(refused, folder):
    change(folder, '[columns.name]\ntype = "drop"\n', "")
    refused(FIT, 2, "name", "drop")


@pytest.mark.parametrize(
    "arguments", [FIT, [*FIT, "--dry-run"], ["schema", "check", "people.toml", "--data", "people.csv"]]
)
def test_a_semicolon_is_no_delimiter_unless_it_is_said(refused, folder, arguments):
    (folder / "people.csv").write_text(f"age;sex;income;name\n20;F;5;{SECRET}\n")
    refused(arguments, 2, "Is the delimiter ';'?", "--delimiter")


@pytest.mark.parametrize("rows", ["", f"20;F;5;{SECRET}\n", f"20,F;5;{SECRET}\n"])
def test_a_template_is_refused_for_a_header_with_another_delimiter(folder, capsys, rows):
    (folder / "people.csv").write_text(f"age;sex;income;name\n{rows}")
    assert cli.run(["schema", "init", "people.csv", "-o", "new.toml"]) == 2
    check_message(capsys.readouterr().err, "Is the delimiter ';'?", "--delimiter")
    assert not (folder / "new.toml").exists()


def test_a_given_delimiter_accepts_a_file_with_one_column(call, folder):
    (folder / "one.csv").write_text("age;sex\n1\n")
    assert '[columns."age;sex"]' in call("schema", "init", "one.csv", "--delimiter", ",")
    assert "[columns.sex]" in call("schema", "init", "one.csv", "--delimiter", ";")
    (folder / "one.csv").write_text("age\n1;2\n")  # a row decides nothing
    assert "[columns.age]" in call("schema", "init", "one.csv")
    pq.write_table(pa.table({"age;sex": [1]}), folder / "one.parquet")
    assert '[columns."age;sex"]' in call("schema", "init", "one.parquet")


def test_a_rule_that_cannot_be_read_is_told_before_anything_is_spent(refused, folder):
    change(folder, "format = 1", "format = 1\nnever = [\"sex = 'M' andd age > 50\"]")
    booked = ["--ledger", "book.sqlite", "--dataset", "people"]
    for arguments in (["schema", "check", "people.toml"], [*FIT, *booked]):
        refused(arguments, 2, "people.toml, line 3: never", "andd")
    assert Ledger("book.sqlite").history("people") == []


def test_low_above_high(refused, folder):
    change(folder, "low = 17", "low = 91")
    refused(FIT, 2, "age", "low", "high")
    refused(["schema", "check", "people.toml"], 2, "age", "line", "low", "high")


def test_a_broken_schema(refused, folder):
    change(folder, 'type = "integer"', 'type = "integr"')
    refused(["schema", "check", "people.toml"], 2, "integr", "integer")
    (folder / "people.toml").write_text("format = 1\n[columns.age\n")
    refused(["plan", "--schema", "people.toml", *PROMISE, "--rows", "10"], 2, "people.toml")
    (folder / "people.toml").write_bytes(b"\xff\xfe\x00")
    refused(["schema", "check", "people.toml"], 2, "people.toml")
    (folder / "people.toml").unlink()
    refused(FIT, 3, "people.toml")


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.deep)])
def test_many_categories(call, folder, count):
    """As many categories as a schema file can hold mean little, but are no reason to fail: a plan says what to do."""
    values = ",".join(f'"{i:x}"' for i in range(count))
    change(folder, 'values = ["F", "M"]', f"values = [{values}]")
    arguments = ["plan", "--schema", "people.toml", *PROMISE, "--rows", "5000", "--json"]
    assert json.loads(call(*arguments, "--mechanism", "columns"))["plan"]["mechanism"] == "columns"
    warnings = json.loads(call(*arguments))["warnings"]
    assert any("weight" in warning for warning in warnings)


def test_an_empty_file(refused, folder):
    (folder / "people.csv").write_text("")
    refused(FIT, 3, "people.csv", "empty")


def test_a_header_alone_is_a_table(refused, call, folder):
    (folder / "people.csv").write_text("age,sex,income,name\n")
    assert json.loads(call(*FIT, "--json"))["plan"]["rows"] >= 1
    refused([*FIT[:-3], "replace", "-o", "x.release"], 3, "no rows", "add-remove")


def test_duplicate_headers(refused, folder):
    (folder / "people.csv").write_text(f"age,sex,income,age\n20,F,5,{SECRET}\n")
    refused(FIT, 3, "people.csv", "one name", "rename")


def test_what_could_not_be_written_is_told_before_anything_is_spent(refused, folder, monkeypatch):
    change(folder, 'values = ["F", "M"]', 'values = ["F", "M", "Ж"]')
    booked = ["--ledger", "book.sqlite", "--dataset", "people"]
    refused(["synthesize", *FIT[1:-1], "o.csv", "--encoding", "latin-1", *booked], 2, "latin-1", "utf-8")
    refused(["synthesize", *FIT[1:-1], "o.csv", "--encoding", "utf-16", *booked], 2, "utf-16", "one byte")
    refused(["synthesize", *FIT[1:-1], "o.csv", "--delimiter", "ab", *booked], 2, "delimiter", "one character")
    refused(["synthesize", *FIT[1:-1], "o.csv", "--decimal", ";", *booked], 2, "decimal mark")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    refused(["synthesize", *FIT[1:-1], "o.xlsx", *booked], 2, "pip install openpyxl", "xlsx")
    refused(["fit", *FIT[1:-1], "-", *booked], 2, "a release is kept")
    assert Ledger("book.sqlite").history("people") == []


def test_not_a_table(refused, folder):
    refused(["fit", "nowhere.csv", *FIT[2:]], 3, "nowhere.csv")
    refused(["fit", ".", *FIT[2:]], 3, "several kinds", "pattern")
    (folder / "table.xls").write_text("x")
    refused(["fit", "table.xls", *FIT[2:]], 2, "table.xls", ".csv")
    (folder / "table.xlsx").write_text("x")
    refused(["fit", "table.xlsx", *FIT[2:]], 3, "table.xlsx", "spreadsheet")


def test_truncated_and_mistyped_parquet(refused, folder):
    content = (folder / "people.parquet").read_bytes()
    (folder / "short.parquet").write_bytes(content[: len(content) // 2])
    refused(["fit", "short.parquet", *FIT[2:]], 3, "short.parquet")
    pq.write_table(table().set_column(0, "age", pa.array([SECRET] * ROWS)), folder / "typed.parquet")
    refused(["fit", "typed.parquet", *FIT[2:]], 2, "age", "text")


def test_truncated_and_edited_releases(refused, folder):
    content = (folder / "people.release").read_bytes()
    broken = {"short": content[: len(content) // 2], "empty": b"", "tail": content[100:]}
    for name, rest in broken.items():
        (folder / name).write_bytes(rest)
    cells = pq.read_table(folder / "people.release")
    header = cells.schema.metadata[b"privmeasure"]
    edits = {"relation": (b'"add-remove"', b'"replace"'), "cut": (b"}", b""), "newer": (b'"format": 1', b'"format": 9')}
    for name, (old, new) in edits.items():
        assert old in header
        metadata = {b"privmeasure": header.replace(old, new)}
        pq.write_table(cells.replace_schema_metadata(metadata), folder / name)
    pq.write_table(cells.slice(1), folder / "fewer")
    for name in [*broken, *edits, "fewer"]:
        for arguments in (["sample", name, "-o", "out.csv"], ["inspect", name]):
            refused(arguments, 3, name)
    refused(["inspect", "people.csv"], 3, "people.csv")
    refused(["inspect", "people.parquet"], 3, "people.parquet")
    refused(["sample", "nowhere", "-o", "out.csv"], 3, "nowhere")


def test_an_output_is_not_overwritten_unless_told(refused, call, folder):
    for arguments in (
        [*FIT[:-1], "people.release"],
        ["sample", "people.release", "-o", "people.csv"],
        ["synthesize", *FIT[1:-1], "people.parquet"],
        ["synthesize", *FIT[1:-1], "new.csv", "--release", "people.release"],
        ["schema", "init", "people.csv", "-o", "people.toml"],
        ["schema", "export-json-schema", "-o", "people.toml"],
    ):
        if arguments[0] == "schema":
            assert cli.run(arguments) == 3
            continue
        refused(arguments, 3, "exists", "--overwrite")
    assert (folder / "people.toml").read_text() == SCHEMA
    call(*FIT[:-1], "people.release", "--overwrite")
    (folder / "old.csv").write_text("old")
    call("sample", "people.release", "-o", "old.csv", "--overwrite")
    assert (folder / "old.csv").read_text() != "old"


def test_no_command_writes_over_its_own_files(refused):
    for arguments in (
        [*FIT[:-1], "people.csv"],
        [*FIT[:-1], "people.toml"],
        ["synthesize", *FIT[1:-1], "./people.csv"],
        ["synthesize", *FIT[1:-1], "x.csv", "--release", "x.csv"],
        [*FIT[:-1], "book.sqlite", "--ledger", "book.sqlite", "--dataset", "people"],
    ):
        refused([*arguments, "--overwrite"], 2, "its own path")


def test_a_folder_that_is_not_there(refused):
    refused([*FIT[:-1], "no/new.release"], 3, "folder no")
    refused(["sample", "people.release", "-o", "no/out.csv"], 3, "folder no")


# -------------------------------------------------------------------------------------------------------------- ledger


def test_a_release_is_booked(call, refused, folder):
    call(*BOOKED, "--note", "first", "--epsilon", "1.5")
    (entry,) = Ledger("book.sqlite").history("people")
    assert (entry.state, entry.epsilon, entry.note) == ("spent", Fraction(3, 2), "first")
    refused([*BOOKED[:-1], "people", "-o", "two.release"], 4, "cap", "1.5 of 2", "at most 0.5", "not opened")
    (folder / "people.csv").unlink()
    refused([*BOOKED, "-o", "three.release", "--epsilon", "1"], 4, "cap")  # the data are not even looked for
    shown = json.loads(call("ledger", "show", "book.sqlite", "people", "--json"))
    assert (shown["spent"], shown["remaining"], len(shown["entries"])) == ("3/2", "1/2", 1)
    assert "1.5 of 2 is spent, 0.5 is left" in call("ledger", "show", "book.sqlite", "people")
    assert json.loads(call("ledger", "list", "book.sqlite", "--json"))[0]["dataset"] == "people"
    assert "people" in call("ledger", "list", "book.sqlite")
    assert b"people.csv" not in (folder / "book.sqlite").read_bytes()


@pytest.mark.parametrize("command", ["fit", "synthesize"])
def test_an_error_before_noise_frees_the_reservation(folder, capsys, command):
    arguments = [command, *BOOKED[1:]]
    arguments[arguments.index("new.release")] = "new.csv"
    (folder / "people.csv").write_text(f"age,sex\n20,{SECRET}\n")
    assert cli.run(arguments) == 2
    assert capsys.readouterr().err.endswith(" Cost: nothing was spent, and entry 1 was freed.\n")
    (folder / "people.csv").unlink()
    assert cli.run(arguments) == 3
    assert capsys.readouterr().err.endswith(" Cost: nothing was spent, and entry 2 was freed.\n")
    assert [entry.state for entry in Ledger("book.sqlite").history("people")] == ["freed", "freed"]
    assert Ledger("book.sqlite").remaining("people") == 2


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError(SECRET), OSError(errno.EIO, SECRET)], ids=repr)
def test_any_other_error_counts_as_spent_if_noise_was_drawn(folder, capsys, monkeypatch, error, noise):
    def broken(self, source, key, progress=None):
        if noise:
            key.words(part=0, level=0, cells=np.zeros(1, np.uint64))
        raise error

    for mechanism in (PMM, ColumnTree):
        monkeypatch.setattr(mechanism, "release", broken)
    assert cli.run(BOOKED) == (130 if isinstance(error, KeyboardInterrupt) else 1 if noise else 3)
    spent = "epsilon 1 is spent; there is no release, and entry 1 counts it"
    err = capsys.readouterr().err
    check_message(err)
    assert err.endswith(f" Cost: {spent if noise else 'nothing was spent, and entry 1 was freed'}.\n")
    assert [entry.state for entry in Ledger("book.sqlite").history("people")] == ["spent" if noise else "freed"]
    assert Ledger("book.sqlite").spent("people") == noise


def test_promises_that_do_not_fit_the_account(refused):
    refused([*BOOKED, "--neighbours", "replace"], 4, "add-remove", "do not add up")
    refused([*BOOKED[:-3], "nowhere.sqlite", *BOOKED[-2:]], 3, "nowhere.sqlite", "ledger open")
    refused([*BOOKED[:-3], "people.csv", *BOOKED[-2:]], 3, "people.csv", "not a ledger")


@pytest.mark.parametrize("booked", [False, True])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, SECRET), "the disk is full"),
        (OSError(errno.EIO, SECRET), os.strerror(errno.EIO)),
        (OSError(SECRET), "a file error"),
    ],
)
def test_a_release_that_cannot_be_saved(folder, capsys, monkeypatch, booked, error, words):
    def broken(*args, **kwargs):
        raise error

    monkeypatch.setattr(pq, "write_table", broken)
    assert cli.run(BOOKED if booked else FIT) == 3
    err = capsys.readouterr().err
    check_message(err, f"new.release was not written: {words}.", "Cost: epsilon 1 is spent; the release could not be")
    assert err.endswith("entry 1 counts it.\n" if booked else "it is not recorded in a ledger.\n")
    assert not list(folder.glob("new.release*"))
    assert Ledger("book.sqlite").spent("people") == booked


@pytest.mark.parametrize("mechanism", ["pmm", "columns"])
@pytest.mark.parametrize("booked", [True, False])
def test_a_release_that_leaves_no_rows(refused, folder, capsys, mechanism, booked):
    """All rows of the data contradict the fact: epsilon is spent, and is said to be."""
    change(folder, "format = 1", "format = 1\nnever = [\"income < 100000 and sex in ('F', 'M')\"]")
    make = ["synthesize", *(BOOKED if booked else FIT)[1:], "--mechanism", mechanism]
    make[make.index("new.release")] = "new.csv"
    assert cli.run([*make, "--no-release"]) == 3
    err = capsys.readouterr().err
    check_message(
        err, "new.csv was not written", "almost no row", "never", "Cost: epsilon 1 is spent; the release is saved at"
    )
    check_message(err, "fewer facts", "larger epsilon", "single columns holds")
    assert "conditions" not in err
    assert err.endswith("entry 1 counts it.\n" if booked else "it is not recorded in a ledger.\n")
    assert Ledger("book.sqlite").spent("people") == booked
    assert not list(folder.glob("new.csv*"))
    if not booked:
        assert cli.run([*make, "--release", "kept.release", "--json"]) == 3
        error = json.loads(capsys.readouterr().out)["error"]
        assert (error["kind"], error["exit"]) == ("NoRowsError", 3)
        check_message(error["message"], "epsilon 1 is spent; the release is saved at kept.release, and it is")
        refused(["sample", "kept.release", "-o", "new.csv"], 3, "almost no row", "fewer facts")
        asked = ["sample", "kept.release", "-o", "new.csv", "-n", "9", "--where", "sex = 'F'"]
        code = cli.run(asked)  # the noise may have left rows that keep the fact: then there are nine, and all keep it
        assert code in (0, 2)
        if code == 2:
            check_message(capsys.readouterr().err, "more likely")
            return
        rows = [line.split(",") for line in (folder / "new.csv").read_text().splitlines()]
        assert len(rows) == 10
        assert all(float(row[rows[0].index("income")]) >= 100_000 for row in rows[1:])


def test_a_folder_that_may_only_be_read(refused, folder, monkeypatch):
    locked = folder / "locked"
    locked.mkdir(mode=0o555)
    if os.access(locked, os.W_OK):  # for root: nothing is locked
        monkeypatch.setattr(os, "access", lambda path, mode: os.fspath(path) != "locked")
    refused(["sample", "people.release", "-o", "locked/out.csv"], 3, "locked")
    refused([*FIT[:-1], "locked/new.release"], 3, "locked")
    refused(["synthesize", *FIT[1:-1], "locked/out.csv"], 3, "locked")


# --------------------------------------------------------------------------------------------------------------- terms


def test_an_unforeseen_error_shows_no_text():
    try:
        raise RuntimeError(SECRET)
    except RuntimeError as error:
        message, code = failures.explain(error)
    assert code == 1
    check_message(message, "RuntimeError")


def test_control_characters_do_not_reach_the_terminal(refused, folder):
    (folder / "people.csv").write_text("age,sex,income,na\x1b[31mme\n")
    refused(FIT, 2, "na")
    assert failures.printable("a\x1b[31mb\u202ec") == "a\ufffd[31mb\ufffdc"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, SECRET, "a.csv"), "disk is full"),
        (PermissionError(errno.EACCES, SECRET, "a.csv"), "may not"),
        (OSError(f"library text {SECRET}"), "could not be read"),
    ],
)
def test_file_errors_in_words(error, words):
    message, code = failures.explain(error)
    assert code == 3
    check_message(message, words)


def test_a_pipe_is_no_place_for_a_release(refused, folder):
    os.mkfifo("pipe")
    refused([*FIT[:-1], "pipe"], 2, "pipe", "path of a file")
    make = ["synthesize", *FIT[1:-1], "rows.csv", "--release", "pipe"]
    refused(make, 2, "--release pipe", "path of a file")

"""What runs cost and who counts it, releases beside rows, rows on stdout, and releases that are not private."""

import csv
import hashlib
import io
import json
import subprocess

import pyarrow.csv
import pytest
from cli_shelf import BOOKED, COMMAND, FIT, PROMISE, SECRET, check_message

import privmeasure as pm
from privmeasure import cli
from privmeasure.cli import failures
from privmeasure.errors import LedgerFileError
from privmeasure.ledger import Ledger, Reservation, schema_digest

MAKE = ["synthesize", "people.csv", "--schema", "people.toml", *PROMISE]
BOOK = ["--ledger", "book.sqlite", "--dataset", "people"]


@pytest.fixture
def ran(capsys):
    """Run a command that must work, and return both streams."""

    def run(*arguments):
        capsys.readouterr()
        assert cli.run([str(argument) for argument in arguments]) == 0
        return capsys.readouterr()

    return run


# --------------------------------------------------------------------------------------------------------------- costs


@pytest.mark.parametrize("command", [FIT, [*MAKE, "-o", "new.csv"]], ids=["fit", "synthesize"])
def test_the_last_line_says_what_was_spent(ran, folder, command):
    out, _ = ran(*command)
    assert out.splitlines()[-1].startswith("spent      epsilon = 1, not recorded in a ledger")
    assert "ledger     not recorded in a ledger" in out
    found = json.loads(ran(*command, "--overwrite", "--json").out)
    assert (found["spent"], found["booked"]) == ("1", None)
    assert ran(*command, "--overwrite", "--quiet") == ("", "")
    out, _ = ran(*command, "--overwrite", "--epsilon", "1/3", *BOOK)
    assert out.splitlines()[-1] == "spent      epsilon = 1/3: entry 1 of 'people' in book.sqlite"
    found = json.loads(ran(*command, "--overwrite", "--epsilon", "1/3", *BOOK, "--user", "ada", "--json").out)
    entry = Ledger("book.sqlite").history("people")[-1]
    assert found["booked"] == {"ledger": "book.sqlite", "dataset": "people", "number": 2, "id": entry.id}
    assert (entry.user, entry.release, entry.state) == ("ada", found["id"], "spent")
    digest = hashlib.sha256((folder / found["release"]).read_bytes()).hexdigest()
    assert entry.files == (digest,)
    inspected = json.loads(ran("inspect", found["release"], "--json", "--no-certificate").out)
    assert (inspected["id"], inspected["version"], inspected["recorded"]) == (entry.release, pm.__version__, True)
    assert inspected["schema_digest"] == entry.schema


def test_a_user_is_for_a_ledger(refused):
    refused([*FIT, "--user", "ada"], 2, "--user", "--ledger")


def test_a_digest_that_cannot_be_noted_is_no_failure(ran, folder, monkeypatch):
    def broken(self, path):
        raise LedgerFileError("x")

    monkeypatch.setattr(Reservation, "record", broken)
    found = json.loads(ran(*BOOKED, "--json").out)
    assert "privmeasure ledger close book.sqlite new.release" in found["warnings"][0]
    ran("ledger", "close", "book.sqlite", "new.release")
    (entry,) = Ledger("book.sqlite").history("people")
    assert entry.files == (hashlib.sha256((folder / "new.release").read_bytes()).hexdigest(),)


# ------------------------------------------------------------------------------------------------- releases and stdout


def test_synthesize_keeps_the_release_beside_the_rows(ran, refused, folder):
    out, _ = ran(*MAKE, "-o", "new.csv")
    assert "the release, for more rows: new.csv.release" in out
    ran("sample", "new.csv.release", "-o", "more.csv", "-n", "5000")
    refused([*MAKE, "-o", "new.csv"], 3, "new.csv exists", "--overwrite")
    (folder / "new.csv").unlink()
    refused([*MAKE, "-o", "new.csv"], 3, "new.csv.release exists", "--release", "--overwrite")
    ran(*MAKE, "-o", "new.csv", "--overwrite")
    found = json.loads(ran(*MAKE, "-o", "bare.csv", "--no-release", "--json").out)
    assert found["release"] is None
    assert sorted(path.name for path in folder.glob("bare*")) == ["bare.csv"]
    refused([*MAKE, "-o", "x.csv", "--no-release", "--release", "x"], 2, "--no-release")


def test_rows_on_stdout(folder):
    def run(*arguments):
        return subprocess.run([*COMMAND, *arguments], capture_output=True, cwd=folder, check=False)

    for extra in (["--no-release"], ["--release", "kept.release"]):
        done = run(*MAKE, "-o", "-", "-n", "50", *extra)
        assert done.returncode == 0, done.stderr
        rows = pyarrow.csv.read_csv(io.BytesIO(done.stdout))
        assert (rows.num_rows, rows.column_names) == (50, ["age", "sex", "income"])
        assert done.stderr.decode().splitlines()[-1].startswith("spent      epsilon = 1")
    done = run("sample", "kept.release", "-o", "-", "-n", "7", "--seed", "1")
    assert done.stdout.count(b"\n") == 8
    assert b"7 synthetic rows" in done.stderr
    assert run("sample", "kept.release", "-o", "-", "-n", "7", "--seed", "1", "--quiet").stdout == done.stdout
    assert not (folder / "-").exists()


def test_stdout_takes_one_thing(refused):
    refused([*MAKE, "-o", "-"], 2, "--release", "--no-release")


def test_stdout_and_json(folder, capsys):
    assert cli.run([*MAKE, "-o", "-", "--no-release", "--json"]) == 2
    check_message(json.loads(capsys.readouterr().out)["error"]["message"], "--json", "stdout")


# --------------------------------------------------------------------------------------------------------- not private


def test_a_release_that_is_not_private_is_told(ran, folder):
    schema = pm.Schema.from_toml("people.toml")
    synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove").fit("people.csv", insecure_seed=1)
    synth.save("seed.release")
    for arguments in (["sample", "seed.release", "-o", "out.csv"], ["evaluate", "people.csv", "seed.release"]):
        out, err = ran(*arguments)
        assert err.startswith("warning: this release is NOT PRIVATE")
        assert "NOT PRIVATE" not in out
        (folder / "out.csv").unlink(missing_ok=True)
        out, err = ran(*arguments, "--json")
        found = json.loads(out)
        assert found["private"] is False
        assert "NOT PRIVATE" in found["warnings"][0]
        (folder / "out.csv").unlink(missing_ok=True)
    for release, private in (("people.release", True), ("seed.release", False)):
        found = json.loads(ran("sample", release, "-o", "out.csv", "--overwrite", "--json").out)
        assert found["private"] is private
    assert json.loads(ran("evaluate", "people.csv", "people.release", "--json").out)["private"] is True
    table = ["evaluate", "people.csv", "out.csv", "--schema", "people.toml", "--json"]
    assert json.loads(ran(*table).out)["private"] is None


def test_digests_are_shown(ran, folder):
    digest = schema_digest(pm.Schema.from_toml("people.toml").to_json())
    assert digest in ran("schema", "check", "people.toml").out
    assert json.loads(ran("schema", "check", "people.toml", "--json").out)["digest"] == digest
    out, _ = ran("inspect", "people.release", "--no-certificate")
    assert f"schema     {digest}" in out
    assert pm.load("people.release").origin.id in out


def test_nothing_of_the_context_is_reported(capsys):
    for error in (ValueError("outer"), OSError("outer"), pm.PrivmeasureError("outer"), KeyboardInterrupt()):
        error.__context__ = error.__cause__ = RuntimeError(SECRET)
        error.add_note(SECRET)
        for as_json in (False, True):
            failures.report(error, as_json=as_json)
            assert SECRET not in "".join(capsys.readouterr())


# --------------------------------------------------------------------------------------------------------- the commands


def test_raise_close_merge_export(ran, refused, folder):
    ran(*BOOKED)
    refused(["ledger", "raise", "book.sqlite", "people", "--cap", "1", "--reason", "x"], 2, "only raised")
    refused(["ledger", "raise", "book.sqlite", "people", "--cap", "3", "--reason", " "], 2, "reason")
    raised = ["ledger", "raise", "book.sqlite", "PEOPLE ", "--cap", "3", "--reason", "board, 3 May", "--user", "ada"]
    assert json.loads(ran(*raised, "--json").out)["before"] == "2"
    out, _ = ran("ledger", "show", "book.sqlite", "People")
    assert "1 of 3 is spent, 2 is left" in out
    assert "board, 3 May" in out
    assert json.loads(ran("ledger", "show", "book.sqlite", "people", "--json").out)["raises"][0]["user"] == "ada"
    closed = json.loads(ran("ledger", "close", "book.sqlite", "new.release", "--json").out)
    assert closed["state"] == "spent"
    refused(["ledger", "close", "book.sqlite", "people.release"], 2, "no entry")
    refused(["ledger", "close", "book.sqlite", "nowhere"], 3, "nowhere")
    refused(["ledger", "close", "book.sqlite", "people.csv"], 3, "people.csv")
    merged = json.loads(ran("ledger", "merge", "book.sqlite", "book.sqlite", "--json").out)
    assert merged == {"accounts": 0, "entries": 0, "raises": 0, "settled": 0, "over_the_cap": [], "warnings": []}
    ran("ledger", "migrate", "book.sqlite")
    for kind in ("csv", "json"):
        text, _ = ran("ledger", "export", "book.sqlite", "--format", kind)
        ran("ledger", "export", "book.sqlite", "-o", f"out.{kind}")
        assert (folder / f"out.{kind}").read_text() == text
    (account,) = json.loads(text)["accounts"]
    assert (account["spent"], account["remaining"], len(account["raises"])) == ("1", "2", 1)
    assert json.loads(ran("ledger", "export", "book.sqlite", "--json").out) == json.loads(text)
    with (folder / "out.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["kind"] for row in rows] == ["account", "entry", "raise"]
    assert (rows[1]["release"], rows[1]["epsilon"]) == (closed["release"], "1")
    assert (rows[2]["cap_before"], rows[2]["cap"], rows[2]["note"]) == ("2", "3", "board, 3 May")
    refused(["ledger", "export", "book.sqlite", "-o", "out.csv"], 3, "exists")
    refused(["ledger", "export", "book.sqlite", "-o", "book.xlsx"], 2, "csv or json")
    assert json.loads(ran("ledger", "export", "book.sqlite", "-o", "o2.csv", "--json").out)["entries"] == 1


def test_a_merge_beyond_the_delta_is_loud(ran, folder):
    for name, delta in (("one.sqlite", "1e-6"), ("two.sqlite", "0")):
        Ledger(name).open_account("wide", cap=2, neighbours="replace", delta=delta)
    Ledger("one.sqlite").reserve("wide", pm.Privacy(1, "replace", delta="1e-6")).confirm()
    for arguments in (["merge", "one.sqlite", "two.sqlite"], ["list", "one.sqlite"], ["show", "one.sqlite", "wide"]):
        _, err = ran("ledger", *arguments)
        assert "'wide' is OVER ITS DELTA of 0 by 1e-06" in err
    shown = json.loads(ran("ledger", "show", "one.sqlite", "wide", "--json").out)
    assert (shown["spent_delta"], shown["delta"], len(shown["warnings"])) == ("1/1000000", "0", 1)


def test_a_merge_beyond_the_cap_is_loud(ran, refused, folder):
    (folder / "other.sqlite").write_bytes((folder / "book.sqlite").read_bytes())
    ran(*BOOKED[:-2], "--dataset", "people", "--epsilon", "3/2")
    Ledger("other.sqlite").reserve("people", pm.Privacy(1, "add-remove")).confirm()
    _, err = ran("ledger", "merge", "book.sqlite", "other.sqlite")
    assert "'people' is OVER ITS CAP of 2 by 0.5" in err
    for arguments in (["list", "book.sqlite"], ["show", "book.sqlite", "people"]):
        out, err = ran("ledger", *arguments)
        assert "OVER ITS CAP" in err
        assert "-0.5" in out
    refused([*BOOKED, "-o", "x.release", "--epsilon", "1/100"], 4, "Nothing is left")
    (folder / "third.sqlite").unlink(missing_ok=True)
    Ledger("third.sqlite").open_account("people", cap=1, neighbours="replace")
    refused(["ledger", "merge", "book.sqlite", "third.sqlite"], 3, "promise different things", "nothing was merged")


def test_names_that_collide_are_told(ran, folder):
    import sqlite3

    from unit.ledger.test_file import FIRST

    with sqlite3.connect(folder / "old.sqlite") as connection:
        connection.executescript(FIRST)
    connection.close()
    before = (folder / "old.sqlite").read_bytes()
    _, err = ran("ledger", "list", "old.sqlite")
    assert "'people', 'People ' mean the same data set" in err
    listed = json.loads(ran("ledger", "list", "old.sqlite", "--json").out)
    assert [account["collides_with"] for account in listed] == [["People "], ["people"], []]
    assert "mean the same" in ran("ledger", "show", "old.sqlite", "people").err
    ran("ledger", "export", "old.sqlite")
    assert (folder / "old.sqlite").read_bytes() == before
    ran("ledger", "migrate", "old.sqlite")
    assert (folder / "old.sqlite.format-1.backup").read_bytes()

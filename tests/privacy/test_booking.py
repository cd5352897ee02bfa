"""What is published is booked: forks, copies and full disks do not avoid the ledger, and failures show nothing."""

import copy
import hashlib
import json
import os
import pickle
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import privmeasure as pm
from privmeasure import cli
from privmeasure.app.commands import SpendOrder, Terms
from privmeasure.cli import failures
from privmeasure.cli.serving import LocalCommands
from privmeasure.errors import ArgumentError, DataError, LedgerFileError, ReleaseError
from privmeasure.ledger import Ledger
from privmeasure.releases import files
from privmeasure.tables.texts import TextForm

NAME = "people"
DATA = np.linspace(0, 1, 50)
COMMAND = [sys.executable, "-c", "from privmeasure.cli import main; main()"]
TOML = 'format = 1\n[columns]\nage = {type="integer", low=0, high=120}\nsex = {type="category", values=["F", "M"]}\n'
PROMISE = ["--schema", "t.toml", "--epsilon", "1", "--neighbours", "add-remove"]


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "book.sqlite")
    ledger.open_account(NAME, cap=1, neighbours="add-remove")
    return ledger


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.toml").write_text(TOML)
    (tmp_path / "d.csv").write_text("age,sex\n" + "".join(f"{i % 90},{'FM'[i % 2]}\n" for i in range(500)))
    Ledger("book.sqlite").open_account(NAME, cap=40, neighbours="add-remove")
    return tmp_path


def synthesizer(**options):
    return pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="add-remove", depth=3, **options)


def in_a_fork(work):
    """Do something in a forked process that then ends as if by `sys.exit`, without running the rest of pytest."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def leave(reservation):
    reservation.__exit__(SystemExit, SystemExit(0), None)  # what `sys.exit()` in the child does to the parent's block


@pytest.mark.parametrize("act", [leave, lambda r: r.cancel()], ids=["sys.exit", "cancel"])
def test_a_fork_does_not_free_what_its_parent_spends(ledger, act):
    """A child that ends inside the block saw no noise; its parent goes on and draws some."""
    synth = synthesizer()
    with suppress(ZeroDivisionError), ledger.reserve(NAME, synth) as reservation:
        in_a_fork(lambda: act(reservation))
        assert ledger.spent(NAME) == 1
        raise ZeroDivisionError(synth.fit(DATA))
    assert synth.spent
    assert ledger.spent(NAME) == 1


def test_a_parent_settles_after_its_fork_has_left(ledger):
    with ledger.reserve(NAME, synth := synthesizer()) as reservation:
        in_a_fork(lambda: reservation.__exit__(None, None, None))
        assert [entry.state for entry in ledger.history(NAME)] == ["pending"]
        synth.fit(DATA)


def test_a_fork_inside_a_fit_draws_nothing(ledger, tmp_path):
    """Parent and child would have one key: the parent frees the entry, and the child publishes."""
    synth, children = synthesizer(), []

    def progress(stage, fraction):
        if not children:
            children.append(os.fork())
            if children[0]:
                raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt), ledger.reserve(NAME, synth):
            synth.fit(DATA, progress=progress)
    finally:
        if children[0] == 0:
            (tmp_path / "published").write_text(str(synth._release is not None))
            os._exit(0)
    os.waitpid(children[0], 0)
    assert ledger.spent(NAME) == 0
    assert (tmp_path / "published").read_text() == "False"


def test_who_spent_knows_better_than_who_freed(ledger):
    """Whatever freed an entry meanwhile, the one that made its release settles it as spent."""
    with ledger.reserve(NAME, synth := synthesizer()) as reservation:
        ledger._settle(reservation.entry, "freed")
        synth.fit(DATA)
    assert ledger.spent(NAME) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))], ids=["copy", "pickle"])
def test_an_id_is_for_one_release(ledger, tmp_path, copied):
    """A copy that is fitted without the book does not pass for the release that is booked."""
    synth = synthesizer()
    other = copied(synth)
    assert other.release_id != synth.release_id
    ledger.reserve(NAME, synth)
    other.fit(DATA).save(tmp_path / "x.release")
    with pytest.raises(ArgumentError, match="no entry for the release"):
        ledger.close(tmp_path / "x.release")
    assert copied(other).release_id == other.release_id  # one that was fitted is the same release


# ---------------------------------------------------------------------------------------------- what a failure shows


class Asking(pm.Box):
    """A domain of somebody else that asks our code with a private value."""

    def locate(self, points, level):
        pm.Box([(float(points[0, 0]), 0.0)])
        return super().locate(points, level)


@pytest.mark.parametrize("rows", [None, 7])
def test_our_words_about_a_value_that_others_asked_with_are_not_shown(rows):
    synth = pm.Synthesizer(Asking([(0, 1)]), epsilon=1, neighbours="add-remove", rows=rows)
    with pytest.raises((DataError, ReleaseError)) as caught:
        synth.fit(np.full(7, 0.73819))
    assert "73819" not in str(caught.value)


@pytest.mark.parametrize("text", ["age,sex\n73819,F\n", "age,sex " + "73819 " * 2000], ids=["lines", "long"])
def test_a_table_in_the_place_of_its_path_is_not_shown(text):
    with pytest.raises(DataError) as caught:
        pm.Synthesizer(pm.Schema({"age": pm.Integer(0, 9)}), epsilon=1, neighbours="replace").fit(text)
    assert "73819" not in str(caught.value)


def test_a_huge_number_in_a_masked_array_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        synthesizer().fit(np.ma.array(np.full(3, 1e300, np.longdouble) ** 2))


# ---------------------------------------------------------------------------------------------------------- commands


def test_a_book_that_fails_after_the_fit_does_not_lose_the_release(folder, monkeypatch, capsys):
    """Nor does it say that nothing was booked: the entry is pending, and `close` settles it."""

    def fail(self, entry, state):
        raise LedgerFileError("book.sqlite could not be written. Nothing was booked.")

    monkeypatch.setattr(Ledger, "_settle", fail)
    booked = ["--ledger", "book.sqlite", "--dataset", NAME]
    assert cli.run(["fit", "d.csv", *PROMISE, "-o", "a.release", *booked]) == 0
    assert cli.run(["synthesize", "d.csv", *PROMISE, "-o", "b.csv", "--no-release", *booked]) == 0
    said = capsys.readouterr()
    assert "Nothing was booked" not in said.err
    assert "stays pending, and counts" in said.err
    assert [entry.state for entry in Ledger("book.sqlite").history(NAME)] == ["spent", "pending"]
    monkeypatch.setattr(Ledger, "_settle", lambda *_: Path("book.sqlite").unlink() or fail(*_))
    assert cli.run(["fit", "d.csv", *PROMISE, "-o", "c.release", *booked]) == 3  # gone: nothing counts it
    assert "is spent; the release is saved at c.release, and entry 3 could not be settled." in capsys.readouterr().err
    assert pm.load("c.release").origin.recorded is True


@pytest.mark.parametrize("out", ["-", "a.release"])
def test_a_reader_that_goes_away_does_not_hide_the_cost(folder, out):
    command = ["synthesize", "-n", "300000", "--no-release"] if out == "-" else ["fit"]
    command = [*COMMAND, command[0], "d.csv", *PROMISE, *command[1:], "-o", out]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        assert b"epsilon 1 is spent; the release is" in run.stderr.read()
    assert run.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_is_full_does_not_hide_the_cost(folder):
    with Path("/dev/full").open("w") as full:
        command = [*COMMAND, "fit", "d.csv", *PROMISE, "-o", "a.release"]
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert run.returncode == 3
    assert "a.release was written" in run.stderr
    assert run.stderr.endswith(
        "Cost: epsilon 1 is spent; the release is saved at a.release, and it is not recorded in a ledger.\n"
    )
    assert "Nothing was left" not in run.stderr


def test_a_release_does_not_take_the_place_of_the_journal(folder, capsys):
    """SQLite removes what lies there: epsilon would be spent, the exit code 0, and the release gone."""
    arguments = ["fit", "d.csv", *PROMISE, "-o", "book.sqlite-journal", "--ledger", "book.sqlite", "--dataset", NAME]
    assert cli.run(arguments) == 2
    assert Ledger("book.sqlite").spent(NAME) == 0


def test_a_book_of_somebody_else_does_not_write_to_the_terminal(folder, capsys):
    Ledger("book.sqlite").reserve(NAME, pm.Privacy(1, "add-remove"))
    with sqlite3.connect("book.sqlite") as connection:
        connection.execute("UPDATE entry SET note = ?", ("\x1b[2J\x1b]0;x\x07",))
    assert cli.run(["ledger", "show", "book.sqlite", NAME]) == 0
    assert "\x1b" not in capsys.readouterr().out


# --------------------------------------------------------------------------------------------- attacks without success


def test_killed_at_any_moment_what_is_published_is_booked(folder):
    """SIGKILL and SIGTERM at many moments: every release file has an entry that counts, and no part of one is left."""
    begun, whole = time.monotonic(), 0.0
    for i, number in enumerate([0] + [signal.SIGKILL, signal.SIGTERM] * 2):
        more = ["-o", f"{i}.csv", "--ledger", "book.sqlite", "--dataset", NAME, "--quiet"]
        run = subprocess.Popen([*COMMAND, "synthesize", "d.csv", *PROMISE, *more], stdout=subprocess.DEVNULL)
        if number:
            time.sleep(whole * (0.6 + 0.08 * i))
            run.send_signal(number)
        run.wait()
        whole = time.monotonic() - begun if not number else whole
    counted = {entry.release for entry in Ledger("book.sqlite").history(NAME) if entry.counts}
    found = {files.read_release(path)[0]["id"] for path in folder.glob("*.release")}
    assert found
    assert found <= counted
    assert all(path.with_name(path.name + ".release").exists() for path in folder.glob("[0-9].csv"))


def test_neighbouring_files_leave_the_same_traces(folder, capsys):
    """One row that is ragged, unquoted, no text at all or far too long: same codes, words, entries and files."""
    head, *rows = (folder / "d.csv").read_bytes().splitlines()
    seen = []
    for i, row in enumerate([rows[7], b"1,2,3", b'5,"F', b"\xff\xfe,\xe9", b"\x00", b"5," + b"x" * (20 << 20)]):
        (folder / "d.csv").write_bytes(b"\n".join([head, *rows[:7], row, *rows[8:]]) + b"\n")
        booked = ["--depth", "5", "--ledger", "book.sqlite", "--dataset", NAME, "--json"]
        code = cli.run(["fit", "d.csv", *PROMISE, "-o", f"{i}.release", *booked])
        said = capsys.readouterr()
        entry = Ledger("book.sqlite").history(NAME)[-1]
        seen.append((code, said.err, sorted(json.loads(said.out)), entry.state, len(entry.files)))
    assert seen == [seen[0]] * len(seen)


# ---------------------------------------------------------------------------------------- a finished release is kept


def cost_of(err):
    """Return the last sentence of an error, and the path in it, if any."""
    sentence = err.rpartition(" Cost: ")[2].strip()
    return sentence, next(iter(re.findall(r"saved at (\S+?)[, ]", sentence)), None)


def after_the_fit(monkeypatch, act):
    """Let something happen to the folder after the fit and before the release is saved."""
    fit = pm.Synthesizer.fit

    def fit_and_act(self, *arguments, **options):
        fit(self, *arguments, **options)
        act()
        return self

    monkeypatch.setattr(pm.Synthesizer, "fit", fit_and_act)


PLACES = {
    "full": ("/dev/full", lambda: None, "the disk is full"),
    "gone": ("there/a.release", lambda: shutil.rmtree("there"), "its folder is not there any more"),
    "taken": (
        "there/a.release",
        lambda: Path("there/a.release").write_text("x"),
        "another file has come into being there",
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("home", [True, False])
def test_a_release_is_kept_elsewhere_if_its_place_fails(folder, monkeypatch, capsys, tmp_path_factory, place, home):
    """In the data folder of the user or, failing that, in the temporary folder; the message says how to move it."""
    out, act, words = PLACES[place]
    Path("there").mkdir()
    after_the_fit(monkeypatch, act)
    data, temporary = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("XDG_DATA_HOME", str(data if home else "/dev/null/none"))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    booked = ["--ledger", "book.sqlite", "--dataset", NAME]
    assert cli.run(["fit", "d.csv", *PROMISE, "-o", out, *booked]) == 3
    err = capsys.readouterr().err
    assert f"{out} was not written: {words}." in err
    sentence, saved = cost_of(err)
    move = f"(`mv -i {saved} {'.' if place == 'full' else out}` moves it)"
    assert sentence == f"epsilon 1 is spent; the release is saved at {saved} {move}, and entry 1 counts it."
    assert (data if home else temporary) in Path(saved).parents
    assert stat.S_IMODE(Path(saved).stat().st_mode) == 0o600
    (entry,) = Ledger("book.sqlite").history(NAME)
    assert entry.release == pm.load(saved).origin.id
    assert entry.files == (hashlib.sha256(Path(saved).read_bytes()).hexdigest(),)
    assert out != "there/a.release" or not Path(out).exists() or Path(out).read_text() == "x"


@pytest.mark.parametrize("command", ["fit", "synthesize"])
def test_a_destination_that_cannot_be_opened_costs_nothing(folder, capsys, command):
    """Not even an entry: it is tried before the booking, and the mode of a folder is not believed."""
    booked = ["--ledger", "book.sqlite", "--dataset", NAME]
    for out in ("nowhere/a.csv", "/proc/a.csv", "/dev/null/a.csv"):
        assert cli.run([command, "d.csv", *PROMISE, "-o", out, *booked]) == 3
        assert cost_of(capsys.readouterr().err) == ("nothing was spent.", None)
    assert Ledger("book.sqlite").history(NAME) == []


@pytest.mark.parametrize("arguments", [["fit"], ["synthesize", "d.csv"], ["fit", "d.csv", *PROMISE], ["fit", "--odd"]])
def test_every_error_of_a_command_that_spends_ends_with_what_it_cost(folder, capsys, arguments):
    for extra in ([], ["--json"]):
        code = cli.run([*arguments, *extra])
        said = capsys.readouterr()
        message = json.loads(said.out)["error"]["message"] if extra else said.err
        assert code == 2
        assert cost_of(message)[0] == "nothing was spent."


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
def test_a_release_of_the_page_outlasts_the_visit(folder, monkeypatch, kind, stays):
    """The folder of a visit is deleted when the page stops, and an interruption stops it."""

    def fail():
        raise kind

    after_the_fit(monkeypatch, fail)
    terms = Terms("1", "add-remove", rows=500)
    visit = folder / "visit"
    visit.mkdir()
    order = SpendOrder(
        folder / "d.csv", "d.csv", TextForm(), folder / "t.toml", terms, folder / "book.sqlite", NAME, "",
        visit / "the.release", release_stays=stays,
    )  # fmt: skip
    with pytest.raises((failures.Interrupted, kind)) as caught:
        LocalCommands().spend(order)
    assert isinstance(caught.value, failures.Interrupted) == (kind is KeyboardInterrupt)
    sentence, saved = cost_of(LocalCommands().explain(caught.value))
    assert (visit in Path(saved).parents) == stays
    assert sentence == f"epsilon 1 is spent; the release is saved at {saved}, and entry 1 counts it."
    assert pm.load(saved).origin.id == Ledger("book.sqlite").history(NAME)[0].release


@pytest.mark.parametrize("when", ["before", "after"])
def test_signals_wait_until_a_release_is_saved(folder, monkeypatch, capsys, when):
    """Even several of them, before it is written and after: it is written once, whole; the first signal decides."""
    save = pm.Synthesizer.save

    def interrupted(self, path):
        if when == "after":
            save(self, path)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT):
            os.kill(os.getpid(), number)
        if when == "before":
            save(self, path)

    monkeypatch.setattr(pm.Synthesizer, "save", interrupted)
    before = signal.signal(signal.SIGTERM, cli._stop)
    try:
        assert cli.run(["fit", "d.csv", *PROMISE, "-o", "a.release"]) == 143
    finally:
        signal.signal(signal.SIGTERM, before)
    sentence, saved = cost_of(capsys.readouterr().err)
    assert sentence.startswith("epsilon 1 is spent; the release is saved at a.release, and ")
    assert pm.load(saved).origin.recorded is False
    assert [path.name for path in folder.glob("*release*")] == ["a.release"]

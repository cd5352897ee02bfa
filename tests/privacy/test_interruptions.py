"""Whatever ends a run, at whatever line between the booking and the saved file: the ledger counts what was drawn.

Every line of the code that books, begins, draws, ends, settles, saves and records is a step. A kill at a step leaves
the ledger file as it is at that step. So a second look at the file, at every step of one run, stands for all kills. An
interruption or an error is raised at every step, in a run of its own.

The claim, in both directions: an entry is free only if no noise was drawn and none can be drawn without a new entry;
and an error or an interruption of the fit before any noise does free it. One that hits the ledger while it writes
leaves the entry as it is in the file: pending, which counts.

A command is interrupted in the same way: what it says of its cost is true, and a finished release is never lost.
"""

import re
import sqlite3
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import privmeasure as pm
from depth import DEEP
from privmeasure import cli
from privmeasure.errors import PrivmeasureError, SpentError
from privmeasure.ledger import Ledger
from privmeasure.noise.entropy import Key

NAME = "d"
DATA = np.linspace(0, 1, 20)
PACKAGE = Path(pm.__file__).parent
STEPS = {
    "synthesizer.py": {"fit", "_booked", "_attempt", "_make", "_open", "hold", "give_back", "save", "release_"},
    "spending.py": {"hold", "holding", "check_free", "give_back", "begin", "end", "drawn"},
    "noise/entropy.py": {"fresh", "__init__", "words", "destroy"},
    "mechanisms/base.py": {"gate"},
    "mechanisms/pmm.py": {"release"},
    "ledger/book.py": {"reserve", "_reserved", "_settle", "settled", "_record", "_change"},
    "ledger/reservation.py": {"__init__", "__enter__", "__exit__", "confirm", "_settle", "record"},
    "ledger/file.py": {"writing", "put_entry"},
    "releases/files.py": {"write_release"},
    "outputs.py": {"put", "part_beside"},
}
"""Functions whose lines are steps, by file. The rest only computes, or works for these."""
COMMAND_STEPS = {name: STEPS[name] for name in ("ledger/reservation.py", "releases/files.py")} | {
    "synthesizer.py": {"fit", "_attempt", "_make", "save"},
    "cli/fit.py": {"fit"},
    "cli/booking.py": {"reserve", "fit_booked", "record"},
    "cli/outcome.py": {"stated", "save", "show_outcome"},
    "cli/keeping.py": {"save_in_place"},
}
"""The same for a command, without what was tried by then; a fit here takes longer."""
UNDECIDED = {"book.py", "reservation.py", "file.py", "entropy.py"}
"""Where an interruption may hit the ledger while it writes, or a draw that has said so and given no words yet."""

BOOKING = {"_reserved", "writing", "put_entry"}
"""What runs while a synthesizer waits for its entry."""


@contextmanager
def at_every_step(step, steps=STEPS):
    """Call step(file, function, line) before every line of the code above, in this thread."""
    places = {str(PACKAGE / name): functions for name, functions in steps.items()}

    def trace(frame, event, argument):
        functions = places.get(frame.f_code.co_filename)
        if functions is None or frame.f_code.co_name not in functions:
            return None
        if event == "line":
            step(Path(frame.f_code.co_filename).name, frame.f_code.co_name, frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.fixture
def drawn(monkeypatch):
    """The ids of the releases for which noise was drawn."""
    found, words = [], Key.words

    def watched(self, **options):
        result = words(self, **options)
        found.append(self.release_id)
        return result

    monkeypatch.setattr(Key, "words", watched)
    return found


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """A ledger whose file is not waited for on the disk: no machine fails here, and there are hundreds of entries."""
    connect = sqlite3.connect

    def hasty(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", hasty)
    ledger = Ledger(tmp_path / "book.sqlite")
    ledger.open_account(NAME, cap=50, neighbours="add-remove")
    return ledger


def synthesizer():
    return pm.Synthesizer(pm.Box([(0, 1)]), epsilon="1/100", neighbours="add-remove", depth=2, threads=1)


def publish(ledger, synth, path):
    """Do what a program does: book, fit, settle, save, record."""
    with ledger.reserve(NAME, synth) as reservation:
        synth.fit(DATA)
    synth.save(path)
    reservation.record(path)


def publish_by_one_argument(ledger, synth, path):
    """Do the same, as `fit` does it."""
    synth.fit(DATA, ledger=ledger, account=NAME)
    synth.save(path)
    ledger.close(path)


WAYS = pytest.mark.parametrize("publish", [publish, publish_by_one_argument])


@WAYS
def test_killed_at_any_step_the_ledger_counts_what_was_drawn(ledger, drawn, tmp_path, publish):
    """The file is looked at before every line: that is what a process which is killed there leaves."""
    path, seen, steps = tmp_path / "a.release", [], []

    def look(*place):
        steps.append(place)
        if steps.count(place) > 3:  # a loop
            return
        sys.settrace(None)
        counted = {entry.release for entry in ledger.history(NAME) if entry.counts}
        published = {pm.load(path).origin.id} if path.exists() else set()
        seen.append((bool(drawn), bool(published), sorted(entry.state for entry in ledger.history(NAME))))
        assert {*drawn, *published} <= counted, f"killed before line {place[2]} of {place[0]}, this is not counted"
        sys.settrace(tracing)

    with at_every_step(look):
        tracing = sys.gettrace()
        publish(ledger, synthesizer(), path)
    assert {states[0] for _, _, states in seen if states} == {"pending", "spent"}
    assert {(noise, file) for noise, file, _ in seen} == {(False, False), (True, False), (True, True)}
    assert {name for name, *_ in steps} == {Path(name).name for name in STEPS}


class InjectedError(Exception):
    """An error of somebody else."""


def first_steps(run, steps=STEPS):
    """Return each line of a run once, in the order in which it comes first."""
    found = []
    with at_every_step(lambda *place: found.append(place), steps):
        run()
    return list(dict.fromkeys(found))


def interrupting(place, kind, left):
    """Return a step that raises an error at a place, once; `left` is emptied by that."""

    def interrupt(*here):
        if left and here == place:
            left.clear()
            raise kind

    return interrupt


@WAYS
@pytest.mark.parametrize("kind", [KeyboardInterrupt, InjectedError])
def test_interrupted_at_any_step_an_entry_is_free_only_if_nothing_was_drawn(ledger, drawn, tmp_path, kind, publish):
    steps = first_steps(lambda: publish(ledger, synthesizer(), tmp_path / "first.release"))
    assert len(steps) > 120
    freed = spent = 0
    for place in steps:
        told = f"{kind.__name__} before line {place[2]} of {place[0]}"
        synth, path = synthesizer(), tmp_path / "a.release"
        drawn.clear()
        count, left = len(ledger.history(NAME)), [None]
        with at_every_step(interrupting(place, kind, left)), suppress(kind, PrivmeasureError):
            publish(ledger, synth, path)
        assert not left, f"{told} was never reached"
        entries = ledger.history(NAME)[count:]
        assert len(entries) <= 1, told
        counts = [entry for entry in entries if entry.counts]
        if drawn or path.exists():
            assert [entry.release for entry in counts] == [*dict.fromkeys(drawn)], f"{told}: noise is not counted"
            spent += 1
        elif place[0] not in UNDECIDED and entries:
            assert not counts, f"{told}: nothing was drawn, but it counts"
            with pytest.raises(SpentError):
                synth.fit(DATA)  # a new entry is needed first
            freed += 1
        elif place[1] in BOOKING and not counts:
            with pytest.raises(SpentError):
                synth.fit(DATA)  # it was about to be booked, and nothing would count it
        path.unlink(missing_ok=True)
    assert freed > 20, "too few interruptions before noise: were the steps renamed?"
    assert spent > 40, "too few interruptions after noise: were the steps renamed?"


SENTENCE = re.compile(
    r"Cost: (?:nothing was spent(?:, and entry \d+ was (?P<freed>freed)|, but .+)?"
    r"|epsilon 0\.01 is (?P<spent>spent); (?:there is (?P<none>no release)|the release is saved at (?P<path>\S+?))"
    r"(?: \(`mv .+)?, and entry \d+ (?P<settled>counts it|could not be settled))\.$"
)


@pytest.mark.deeper
def test_a_command_that_is_interrupted_at_any_step_says_what_it_cost(ledger, drawn, tmp_path, monkeypatch, capsys):
    """What it says is true, and a release that was finished lies where it says. `make test` tries every third."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.toml").write_text('format = 1\n[columns.age]\ntype = "integer"\nlow = 0\nhigh = 9\n')
    (tmp_path / "d.csv").write_text("age\n" + "5\n" * 20)
    asked = ["--epsilon", "1/100", "--neighbours", "add-remove", "--depth", "2", "--threads", "1"]
    command = ["fit", "d.csv", "--schema", "t.toml", *asked, "--ledger", "book.sqlite", "--dataset", NAME, "-o"]
    steps = first_steps(lambda: cli.run([*command, "first.release"]), COMMAND_STEPS)[:: 1 if DEEP else 3]
    seen = set()
    for i, place in enumerate(steps):
        told, out = f"interrupted before line {place[2]} of {place[0]}", Path(f"{i}.release")
        drawn.clear()
        count, left = len(ledger.history(NAME)), [None]
        capsys.readouterr()
        with at_every_step(interrupting(place, KeyboardInterrupt, left), COMMAND_STEPS):
            code = cli.run([*command, str(out)])
        assert not left, f"{told} was never reached"
        assert code == 130, told
        said = SENTENCE.search(capsys.readouterr().err.strip())
        assert said, f"{told}: it does not say what it cost"
        states = [entry.state for entry in ledger.history(NAME)[count:]]
        assert (said["spent"] is not None) == bool(drawn), f"{told}: {said[0]}"
        assert (said["freed"] is None) or states == ["freed"], f"{told}: {said[0]}"
        assert (said["settled"] != "counts it") or states == ["spent"], f"{told}: {said[0]}"
        if said["path"]:
            assert pm.load(said["path"]).origin.id in drawn, f"{told}: {said[0]}"
            assert not out.exists() or pm.load(out).origin.id in drawn, f"{told}: {said[0]}"
        else:
            assert not out.exists(), f"{told}: {said[0]}"
        seen.add((place[0], bool(drawn), bool(said["path"])))
    commands = {(noise, kept) for name, noise, kept in seen if name in ("fit.py", "booking.py", "outcome.py")}
    assert commands == {(False, False), (True, True)}, "too few interruptions: were the steps renamed?"
    assert {name for name, noise, kept in seen if noise and not kept} <= {"synthesizer.py"}, "a release was lost"

"""Whether epsilon was spent is decided once nothing can be drawn any more: interleavings of a fit and a ledger.

The other thread is played by the key itself: a method of the key does what that thread would do at this very moment. So
each order of steps is tried every time, and nothing waits.
"""

import os
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.errors import ReleaseError, SpentError
from privmeasure.ledger import Ledger
from privmeasure.noise.entropy import Key
from privmeasure.releases.cells import CellMeasure
from privmeasure.sources.tables import TableSource
from privmeasure.spending import Spending

PROMISE = pm.Privacy(1, "add-remove")
CELLS = np.arange(3, dtype=np.uint64)


def draw(key):
    """Draw noise as the fit in another thread would; return whether the words were given."""
    try:
        key.words(part=0, level=0, cells=CELLS)
    except SpentError:
        return False
    return True


class DrawsBefore(Key):
    """A key from which the other thread draws at the last moment: when it is about to be destroyed."""

    drawn = False

    def destroy(self):
        self.drawn = draw(self)
        super().destroy()


class DrawsAfter(Key):
    """A key from which the other thread tries to draw as soon as it is destroyed."""

    drawn = False

    def destroy(self):
        super().destroy()
        self.drawn = draw(self)


class DestroyedMeanwhile(Key):
    """A key that another thread destroys after a draw has begun, just before the draw says so."""

    seen = None

    @property
    def used(self):
        return vars(self).get("_used", False)

    @used.setter
    def used(self, value):
        if value and self.seen is None:
            self.destroy()
            self.seen = self.used  # what that thread decides by
        vars(self)["_used"] = value


def begun(key):
    spending = Spending()
    spending.hold(PROMISE)
    spending.begin(key, PROMISE)
    return spending


@pytest.mark.parametrize("kind", [DrawsBefore, DrawsAfter])
def test_a_release_is_given_back_only_if_nothing_was_drawn(kind):
    """What decides is whether words were given, before the key was destroyed or after."""
    key = kind(os.urandom(32), private=True)
    spending = begun(key)
    given_back = spending.give_back()
    assert key.drawn == (kind is DrawsBefore)
    assert given_back is not key.drawn
    assert spending.held is key.drawn  # what was drawn stays tied to its entry
    spending.end(finished=False)
    assert spending.drawn is key.drawn
    assert not draw(key)


def test_a_draw_that_began_before_the_key_was_destroyed_gives_no_words():
    """The thread that destroyed the key saw no use of it and frees the entry; the draw must fail then."""
    key = DestroyedMeanwhile(os.urandom(32), private=True)
    assert not draw(key)
    assert key.seen is False


@pytest.mark.parametrize("act", ["leave", "cancel"])
@pytest.mark.parametrize(("kind", "state"), [(DrawsBefore, "spent"), (DrawsAfter, "freed")])
def test_the_ledger_counts_what_another_thread_draws_at_the_last_moment(tmp_path, act, kind, state):
    ledger = Ledger(tmp_path / "book.sqlite")
    ledger.open_account("d", cap=1, neighbours="add-remove")
    synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="add-remove")
    reservation = ledger.reserve("d", synth)
    synth._spending.begin(kind(os.urandom(32), private=True), synth.privacy)  # a fit in another thread
    try:
        with reservation:
            if act == "cancel":
                reservation.cancel()
            raise KeyboardInterrupt
    except (KeyboardInterrupt, SpentError):
        pass
    assert [entry.state for entry in ledger.history("d")] == [state]
    assert ledger.spent("d") == (state == "spent")


class Notebook:
    """A third-party ledger: it knows no more of a synthesizer than whether it has spent."""

    def __init__(self):
        self.lines = []

    @contextmanager
    def reserve(self, account, synthesizer):
        self.lines.append(f"reserved for {account}")
        try:
            yield
        finally:
            self.lines.append("spent" if synthesizer.spent else "freed")


def synthesizer():
    return pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="add-remove", depth=2)


def test_any_object_with_a_method_reserve_is_a_ledger():
    book, synth = Notebook(), synthesizer()
    assert synth.fit(np.linspace(0, 1, 9), ledger=book, account="patients").recorded is True
    assert book.lines == ["reserved for patients", "spent"]
    with pytest.raises(SpentError, match="has begun a release already"):
        synth.fit(np.linspace(0, 1, 9), ledger=book, account="patients")
    assert len(book.lines) == 2  # the second fit was refused before it was booked


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_what_such_a_ledger_freed_is_not_fitted_without_a_new_entry(kind):
    def progress(stage, fraction):
        raise kind

    book, synth = Notebook(), pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace", depth=2)
    with pytest.raises((KeyboardInterrupt, pm.PrivmeasureError)) as caught:
        synth.fit(np.linspace(0, 1, 9), progress=progress, ledger=book, account="patients")
    assert caught.value.__notes__ == ["Nothing was spent."]
    assert book.lines == ["reserved for patients", "freed"]
    with pytest.raises(SpentError, match="given back"):
        synth.fit(np.linspace(0, 1, 9))


def test_while_such_a_ledger_has_an_entry_nothing_changes_and_no_other_is_made():
    class Curious(Notebook):
        def reserve(self, account, synthesizer):
            self.synthesizer = synthesizer
            return super().reserve(account, synthesizer)

    book, found = Curious(), []

    def progress(stage, fraction):
        found.append((book.synthesizer._spending.held, book.synthesizer.spent))
        with pytest.raises(SpentError):
            book.synthesizer.set_params(epsilon=2)

    synthesizer().fit(np.linspace(0, 1, 9), progress=progress, ledger=book, account="patients")
    assert found[0] == (True, False)


def test_a_release_that_is_finished_stays_whatever_fails_after_it(monkeypatch):
    """Closing the data is after it: the error says that epsilon is spent, and where the release is."""

    def fail(source):
        raise OSError("disk 73819")

    monkeypatch.setattr(TableSource, "close", fail)
    schema = pm.Schema({"age": pm.Integer(0, 120)})
    synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove")
    with pytest.raises(ReleaseError, match=r"after the release failed \(OSError\)") as caught:
        synth.fit(pa.table({"age": [1, 2, 3]}))
    assert "73819" not in str(caught.value)
    assert caught.value.__notes__ == ["Epsilon 1 is spent; the release is kept, as `release_`."]
    assert synth.sample(5).num_rows == 5


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt])
def test_a_sample_that_fails_after_the_fit_leaves_the_release(monkeypatch, kind):
    def fail(self, *arguments, **options):
        raise kind

    monkeypatch.setattr(CellMeasure, "sample", fail)
    synth = synthesizer()
    with pytest.raises(kind) as caught:
        synth.fit_sample(np.linspace(0, 1, 9))
    assert caught.value.__notes__ == ["Epsilon 1 is spent; the release is kept, as `release_`."]
    with pytest.raises(kind) as caught:
        pm.synthesize(np.linspace(0, 1, 9), epsilon=1, neighbours="replace", bounds=[(0, 1)])
    monkeypatch.undo()
    for made in (synth, caught.value.synthesizer):
        assert made.sample(5).shape == (5, 1)


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("used", [False, True])
def test_the_end_of_a_fit_forgets_nothing(finished, used):
    """A fit that finished has spent even if it drew nothing; one that drew has spent even if it failed."""
    key = Key.fresh()
    spending = begun(key)
    if used:
        assert draw(key)
    assert spending.drawn is used
    spending.end(finished=finished)
    assert spending.drawn is (used or finished)
    assert not spending.under_way
    if spending.drawn:
        with pytest.raises(SpentError, match="began a fit already"):
            spending.begin(Key.fresh(), PROMISE)
        assert not spending.give_back()


def test_a_fit_without_noise_counts_once_it_has_finished(tmp_path, monkeypatch):
    """The entry of a release that needed no noise is not freed by a later error: the release exists."""
    monkeypatch.setattr(Key, "words", lambda *args, **options: pytest.fail("there is no noise to draw"))
    ledger = Ledger(tmp_path / "book.sqlite")
    ledger.open_account("d", cap=1, neighbours="replace")
    synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace", depth=0)
    with pytest.raises(OSError, match="disk"), ledger.reserve("d", synth):  # noqa: PT012
        synth.fit(np.linspace(0, 1, 9))
        raise OSError("disk")
    assert synth.release_.total == 9
    assert [entry.state for entry in ledger.history("d")] == ["spent"]


def test_a_promise_that_is_held_is_given_back_in_the_same_process_only(monkeypatch):
    spending = Spending()
    spending.hold(PROMISE)
    process = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: process + 1)  # what a fork sees
    assert not spending.give_back()
    with pytest.raises(SpentError, match="another process"):
        spending.begin(Key.fresh(), PROMISE)
    monkeypatch.undo()
    assert spending.held
    assert spending.give_back()

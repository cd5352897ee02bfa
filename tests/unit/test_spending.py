"""Whether epsilon was spent is decided once nothing can be drawn any more: interleavings of a fit and a ledger.

The other thread is played by the key itself: a method of the key does what that thread would do at this very moment. So
each order of steps is tried every time, and nothing waits.
"""

import os

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.errors import SpentError
from privmeasure.ledger import Ledger
from privmeasure.noise.entropy import Key
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

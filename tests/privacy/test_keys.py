"""The key and the gate of a release: a key counts as used before its secret is read, and no error shows a value."""

import os
import traceback

import numpy as np
import pytest

from privmeasure.errors import ArgumentError, DataError, ReleaseError, SpentError
from privmeasure.mechanisms.base import gate, presentable
from privmeasure.noise.entropy import Key
from privmeasure.privacy import exact_epsilon

CELLS = np.arange(3, dtype=np.uint64)


class WatchedSecret:
    """A secret that remembers whether its key was marked as used when it was read."""

    def __init__(self, key: Key, secret: bytes) -> None:
        self.key, self.secret, self.used_when_read = key, secret, list[bool]()

    def __bytes__(self) -> bytes:
        self.used_when_read.append(self.key.used)
        return self.secret


def test_a_key_is_marked_as_used_before_its_secret_is_read():
    """What was reserved for a key that is destroyed and unused may be freed, so no word may come after that."""
    key = Key.fresh()
    key._secret = watched = WatchedSecret(key, bytes(32))
    key.words(part=0, level=0, cells=CELLS)
    assert watched.used_when_read == [True]


def test_a_key_that_is_refused_a_position_stays_unused():
    key = Key.fresh()
    with pytest.raises(ArgumentError, match="needs a part below"):
        key.words(part=-1, level=0, cells=CELLS)
    assert not key.used


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_draws_nothing():
    """It would draw the noise of its parent on other counts, and nobody would know that the key was used."""
    key = Key.fresh()
    child = os.fork()
    if child == 0:  # leave without the clean-up of the test runner
        try:
            key.words(part=0, level=0, cells=CELLS)
            os._exit(1)
        except SpentError:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert not key.used
    assert len(key.words(part=0, level=0, cells=CELLS)) == 3


def test_an_error_of_ours_after_the_noise_says_that_epsilon_is_spent():
    """Even one whose words are public: a reader would take a wrong argument for a release that never began."""
    for used in (False, True):
        key = Key.fresh()
        if used:
            key.words(part=0, level=0, cells=CELLS)
        with pytest.raises(ArgumentError) as caught:
            exact_epsilon("nothing")
        shown = presentable(caught.value, key)
        assert (shown is caught.value) == (not used)
        assert isinstance(shown, ReleaseError) == used
        assert "count epsilon as spent" in str(shown) or not used


@pytest.mark.parametrize("used", [False, True], ids=["before the noise", "after the noise"])
def test_what_is_printed_of_an_error_shows_nothing_of_its_cause(used):
    """Python prints the chain of causes: it ends at the error that may be shown."""
    key = Key.fresh()

    def fail() -> None:
        with gate(key):
            if used:
                key.words(part=0, level=0, cells=CELLS)
            raise ValueError("canary")

    with pytest.raises(ReleaseError if used else DataError) as caught:
        fail()
    assert caught.value.__cause__ is None
    assert "canary" not in "".join(traceback.format_exception(caught.value))

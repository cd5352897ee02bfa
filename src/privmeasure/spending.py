"""Whether a synthesizer has spent epsilon, and what a ledger holds it to. One object, one release."""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from privmeasure.errors import SpentError
from privmeasure.origin import new_id
from privmeasure.privacy import Privacy

LOCK = threading.Lock()
"""Held for a few instructions, while what is reserved or begun changes."""


class Used(Protocol):
    """What is asked of a key: whether noise was drawn with it, and that none can be drawn any more."""

    used: bool

    def destroy(self) -> None:
        """Make drawing impossible."""
        ...


class ReleaseLedger(Protocol):
    """Records releases before they are made. `Ledger` is one; any object with this method can take its place."""

    def reserve(self, account: str, synthesizer: Any, /) -> AbstractContextManager[Any]:
        """Record a release in an account, or raise an error; the fit happens inside the context that is returned.

        If the context is left with an error and `synthesizer.spent` is false, nothing was spent. It must not
        suppress errors.
        """
        ...


class Spending:
    """The state of one release: not begun, under way, spent; and free, held by a ledger or given back to it.

    What is booked must be what is spent. So a promise that is held cannot change, a fit in another process than the one
    that booked it is refused, and what was given back cannot be fitted before it is booked again.
    """

    def __init__(self) -> None:
        """Begin with nothing spent and nothing booked."""
        self.release_id = new_id()
        """The id that the release will have; unless its noise comes from a seed."""
        self._promise: Privacy | None = None
        self._process = 0
        self._given_back = False
        self._key: Used | None = None
        self._drawn = False

    @property
    def drawn(self) -> bool:
        """Whether noise was drawn: read off the key while a fit is under way, so that it is never too late."""
        key = self._key
        return self._drawn or (key is not None and key.used)

    @property
    def held(self) -> bool:
        """Whether a ledger has booked the release."""
        return self._promise is not None

    @property
    def under_way(self) -> bool:
        """Whether a fit has begun and not ended."""
        return self._key is not None

    def hold(self, promise: Privacy) -> None:
        """Tie the release to a promise that a ledger is about to book."""
        with LOCK:
            self.check_free()
            self.release_id = new_id()  # a copy or a fork of this object may have had the same one
            self._promise, self._process, self._given_back = promise, os.getpid(), False

    def check_free(self) -> None:
        """Refuse a release that has begun, or that a ledger has booked already."""
        if self.drawn or self.under_way:
            raise SpentError(
                "This synthesizer has begun a release already, and a ledger books a release before the data are "
                "opened. Make a new Synthesizer and reserve it first; book the old release under its epsilon alone."
            )
        if self.held:
            raise SpentError("This synthesizer is reserved already: one object, one release, one entry.")

    @contextmanager
    def holding(self, promise: Privacy) -> Iterator[None]:
        """Hold the release during a fit that a ledger has booked, whether the ledger did so or not; free it on errors.

        An error inside gives the release back if no noise was drawn, so that it is not fitted without a new entry.
        """
        try:
            if not self.held:
                self.hold(promise)
            yield
        except BaseException:
            self.give_back()
            raise

    def give_back(self) -> bool:
        """End what `hold` began if no noise was drawn, and make sure that none will be; False if some was.

        False in a fork as well: it sees a copy of this object, and cannot know what the process that booked it does.
        """
        with LOCK:
            if self.held and os.getpid() != self._process:
                return False
            key = self._key  # one look: a fit in another thread may end meanwhile
            if not self.drawn and key is not None:
                key.destroy()  # a fit in another thread can draw nothing from here on
            if self.drawn:
                return False
            self._promise, self._given_back, self.release_id = None, True, new_id()
            return True

    def begin(self, key: Used, promise: Privacy) -> None:
        """Begin a fit, unless one was begun already or it is not the one that was booked."""
        with LOCK:
            if self.drawn or self.under_way:
                raise SpentError(
                    "This synthesizer began a fit already, and another would spend epsilon again. "
                    "Make a new Synthesizer if you mean to; the two together then cost twice epsilon."
                )
            if self._given_back:
                raise SpentError(
                    "The reservation of this synthesizer was given back to its ledger: nothing counts what a fit would "
                    "spend. Reserve it again, or make a new Synthesizer."
                )
            if self._promise is not None and (promise != self._promise or os.getpid() != self._process):
                raise SpentError(
                    "This synthesizer was reserved with another promise or by another process, and what is booked must "
                    "be what is spent. Make a new Synthesizer, and reserve and fit it in one process."
                )
            self._key = key

    def end(self, *, finished: bool) -> None:
        """End a fit; one that finished has spent, whether it drew noise or had no need of any."""
        self._drawn = self.drawn or finished  # first: an interruption between the two forgets nothing
        self._key = None

    def __getstate__(self) -> Any:
        """Return the state of a copy, which has booked nothing; one of a release that was made stays spent."""
        with LOCK:
            if self.under_way:
                raise SpentError("A synthesizer in a fit cannot be copied: a release is made once. Wait for the fit.")
            return vars(self) | ({} if self._drawn else {"_promise": None, "_process": 0})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Give a copy that is still to be fitted an id of its own: an id stands for one release."""
        vars(self).update(state)
        if not self.drawn:
            self.release_id = new_id()

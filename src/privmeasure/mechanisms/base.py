"""What a mechanism is: the only door from private counts to public measures."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from fractions import Fraction
from typing import Any, Protocol, cast

import numpy as np

from privmeasure.counts import Source
from privmeasure.domains import Domain
from privmeasure.errors import ArgumentError, DataError, PrivmeasureError, ReleaseError, SpentError, is_whole
from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import Key
from privmeasure.noise.law import LawName
from privmeasure.plans.plan import RowsAre
from privmeasure.plans.promise import Promise
from privmeasure.privacy import Privacy
from privmeasure.releases.base import Measure
from privmeasure.threads import Progress

PACKAGE = "privmeasure"
NOT_READ = " Give the number of rows to plan for: a public one, or a guess. It is not read from data."
UNREADABLE = (
    "The data could not be read. The cause is not shown, because it may depend on the data. No noise was drawn, so "
    "nothing was spent. To find the cause, repeat it with insecure_seed= on data that are not private."
)


class Mechanism(Protocol):
    """Turns counts into a release of points. What it asks of the data, and what it spends, is in its plan."""

    @property
    def domain(self) -> Domain:
        """Where the points lie."""
        ...

    @property
    def privacy(self) -> Privacy:
        """What is promised."""
        ...

    def plan(self, rows: int | None = None) -> Promise:
        """Say what would be done and guaranteed, from public values alone; changes nothing."""
        ...

    def release(self, source: Source, key: Key, progress: Progress | None = None) -> Measure:
        """Spend the budget: count, add noise from the key, destroy the key, return what anyone may see."""
        ...


@contextmanager
def gate(key: Key) -> Iterator[None]:
    """Guard a release: the key is destroyed at the end, and no error shows more than its type; see `presentable`."""
    try:
        yield
    except BaseException as error:
        shown = presentable(error, key)
        if shown is error:
            raise
        raise shown from None
    finally:
        key.destroy()


def presentable(error: BaseException, key: Key) -> BaseException:
    """Return the error that may leave a release in the place of another: itself, or one that shows no value.

    An error that is not ours (memory runs out, a domain has a fault) may show sizes or values in its text, and so may
    what an interruption carries. One of ours that comes after the noise may not look as if nothing was spent. With an
    insecure key there is nothing to protect, and every error stays as it is.
    """
    if not key.private:
        return error
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt()
    if isinstance(error, GeneratorExit):
        return GeneratorExit()
    if isinstance(error, SystemExit):
        return SystemExit(error.code if isinstance(error.code, int) else 1)
    if key.used:
        return error if isinstance(error, ReleaseError | SpentError) and _is_ours(error) else _failed(error)
    return error if _is_ours(error) else DataError(UNREADABLE)


def _failed(error: BaseException) -> ReleaseError:
    return ReleaseError(
        f"The release failed ({type(error).__name__}), and its cause may depend on the data, so it is not "
        "shown. Nothing was published, but count epsilon as spent. To find the cause, repeat it with "
        "insecure_seed= on data that are not private."
    )


def _is_ours(error: BaseException) -> bool:
    """Say whether an error is of a kind of ours, and raised by our own code: its words are then public.

    Not if code of others is on the way from the release to it, a domain or an object in the place of data: it may have
    asked ours with a private value. The standard library (threads, contexts) only passes things on.
    """
    if not isinstance(error, PrivmeasureError) or type(error).__module__ != PrivmeasureError.__module__:
        return False
    trace, inside, packages = error.__traceback__, False, [PACKAGE]
    while trace is not None:
        package = str(trace.tb_frame.f_globals.get("__name__")).split(".")[0]
        inside = inside or package == PACKAGE  # what comes before called us
        packages += [package] if inside else []
        trace = trace.tb_next
    return packages[-1] == PACKAGE and all(p == PACKAGE or p in sys.stdlib_module_names for p in packages)


def constructor_arguments(mechanism: Any) -> dict[str, Any]:
    """Return the arguments that a mechanism is made with, by name.

    It is called first in `__post_init__`, which replaces some of them: it leaves out a delta that would not pay, and
    takes a recipe that fits the domain. The arguments are kept as `given`, to make the mechanism again.
    """
    return {argument.name: getattr(mechanism, argument.name) for argument in fields(mechanism) if argument.init}


def whole_rows(rows: object, what: str = "", advice: str = "") -> int:
    """Return a public number of rows as one of Python; `what` it is for and `advice` stand in the error of another."""
    if not (is_whole(rows) and 1 <= cast(int, rows) < 2**53):
        raise ArgumentError(f"rows must be a whole number from 1 to 2**53{what}, got {rows!r}.{advice}")
    return int(cast(int, rows))


def public_total(total: int, privacy: Privacy, budget: Fraction, law: LawName, key: Key) -> tuple[int, RowsAre]:
    """Return a number of rows that anyone may see: the exact one if that is public, else with noise, perhaps below 1.

    Whoever buys the size buys it here.

    Guarantee:  privacy   budget-DP under "add-remove"; under "replace" the number is public
    """
    if privacy.rows_are_public:
        if total == 0:
            raise DataError(
                "The data have no rows. With neighbours='replace' the number of rows is public and kept exactly, "
                "and there is no probability measure on nothing: give at least one row, or use 'add-remove'."
            )
        return total, "public"
    noise = law_of(law, privacy.scale(budget)).draw(key, part=0, level=0, cells=np.zeros(1, np.uint64))
    return total + int(noise[0]), "released"

"""What `fit` and `synthesize` say after epsilon was spent. All of it is public: the plan at the released rows."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privmeasure.cli import failures, keeping
from privmeasure.cli.booking import Cost
from privmeasure.cli.keeping import uninterrupted
from privmeasure.cli.missing import missing_cells, show_missing_cells
from privmeasure.cli.terminal import Voice, emit
from privmeasure.errors import NoRowsError

if TYPE_CHECKING:
    from privmeasure.synthesizer import Synthesizer

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def show_outcome(
    synthesizer: "Synthesizer",
    written: dict[str, Any],
    words: str,
    cost: Cost,
    voice: Voice,
    *,
    warnings: list[str],
    to_stderr: bool = False,
) -> None:
    """Show what was written, the plan, the mechanism and why, the warnings of `plan` at the released rows, the cost.

    And where missing cells went, which the schema alone tells.
    """
    from privmeasure.tables.advice import advice, standing_alone_advice

    with _said(written):
        plan, choice, schema = synthesizer.plan_, synthesizer.choice, synthesizer.schema
        if schema is not None:
            warnings = [*warnings, *advice(schema, plan)]
        alone = [] if schema is None else synthesizer.release_.standing_alone
        if voice.json:
            made = {"id": synthesizer.release_id, "plan": plan.to_json(), "choice": choice, "guarantee": plan.guarantee}
            gaps = {} if schema is None else {"missing_cells": missing_cells(schema), "standing_alone": alone}
            emit(written | made | cost.to_json() | gaps | {"warnings": warnings})
            return
        if schema is not None:
            show_missing_cells(schema, voice, to_stderr=to_stderr)
        voice.warn(*warnings)
        how = f"{plan}\nchosen     {plan.mechanism!r}: {choice}"
        voice.tell(f"{how}\nwritten    {words}\nspent      {cost.words()}", to_stderr=to_stderr)
        for sentence in [] if schema is None else standing_alone_advice(schema, plan, alone):
            voice.tell(sentence, to_stderr=to_stderr)


@contextmanager
def _said(written: dict[str, Any]) -> Iterator[None]:
    """Say what was written if stdout takes nothing: else it looks as if nothing had happened."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "a file error"
        files = " and ".join(str(value) for name, value in written.items() if name in ("out", "release") and value)
        what = f"{files} was written, but what there is to say of it could not be: {reason}."
        raise (BrokenPipeError if isinstance(error, BrokenPipeError) else OSError)(what) from None


@contextmanager
def stated(cost: Cost) -> Iterator[None]:
    """Let every error and interruption end with what the run has cost; a finished release is saved before that."""
    failures.known_cost[:] = [cost.sentence]
    try:
        yield
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        try:
            with uninterrupted():
                _save_what_is_left(cost, error)
        except KeyboardInterrupt:  # which came meanwhile
            interrupted = True
        if interrupted:
            raise failures.Interrupted(cost.sentence()) from None
        failures.state_cost(error, cost.sentence())
        raise


def _save_what_is_left(cost: Cost, error: BaseException) -> None:
    cost.settle()
    if not cost.stays:
        cost.place = cost.saved = None
    gone = cost.place is None and isinstance(error, BrokenPipeError)  # rows on stdout: as many as the reader wanted
    if cost.finished and cost.saved is None and not gone:
        with suppress(Exception):
            save(cost)


def save(cost: Cost) -> list[str]:
    """Write the release and note its SHA-256 in the ledger; return warnings. If its place fails, it goes elsewhere."""
    failure: Exception | None = None
    with uninterrupted():
        try:
            if cost.place is not None:
                keeping.save_in_place(cost.synthesizer, cost.place, overwrite=cost.overwrite)
                cost.saved = cost.place
        except Exception as error:  # whatever it is, the release is not lost
            failure = error
        if cost.saved is None:
            with suppress(Exception):
                cost.saved = keeping.save_elsewhere(cost.synthesizer.save, cost.synthesizer.release_id)
        warnings = cost.record()
    if failure is not None:
        raise OSError(f"{cost.place} was not written: {_reason(failure)}.") from None
    return warnings


@contextmanager
def rows_written(path: Path) -> Iterator[None]:
    """Say that rows cannot be written after the fit, and that they can be drawn again from the release."""
    try:
        yield
    except NoRowsError as error:
        raise NoRowsError(f"{path} was not written. {error} What the release says of single columns holds.") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(
            f"{path} was not written: {_reason(error)}. Make room, or choose another place, and draw rows from the "
            "release with `privmeasure sample`, for free."
        ) from None


def _reason(error: Exception) -> str:
    """Return why a file was not written: only the number of the error, or words of this package."""
    if isinstance(error, FileExistsError) and error.errno is None:
        return "another file has come into being there"
    if isinstance(error, FileNotFoundError):
        return "its folder is not there any more"
    if not isinstance(error, OSError):
        return type(error).__name__
    if error.errno in FULL or "disk is full" in str(error) or "No space left" in str(error):
        return "the disk is full"
    return os.strerror(error.errno) if error.errno else "a file error"

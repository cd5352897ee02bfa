"""What `fit` and `synthesize` say after epsilon was spent. All of it is public: the plan at the released rows."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privmeasure.cli.booking import Cost
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

    with _said(written, cost):
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
def _said(written: dict[str, Any], cost: Cost) -> Iterator[None]:
    """Say, where stdout takes nothing, what was written and what it cost: else it looks as if nothing had happened."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "a file error"
        files = " and ".join(str(value) for name, value in written.items() if name in ("out", "release") and value)
        what = f"{files} was written, but what there is to say of it could not be: {reason}. Spent: {cost.words()}."
        raise (BrokenPipeError if isinstance(error, BrokenPipeError) else OSError)(what) from None


@contextmanager
def keep_on_failure(path: Path, cost: Cost, *, release: Path | None = None) -> Iterator[None]:
    """Say, where a file cannot be written after the fit, that epsilon is gone all the same, and who counts it."""
    counted = f"the ledger {cost.ledger} counts it" if cost.ledger else "no ledger counts it: note it yourself"
    spent = f"The fit was finished, so epsilon = {float(cost.promise.epsilon):g} counts as spent; {counted}."
    try:
        yield
    except NoRowsError as error:
        again = (
            "Another run spends epsilon again."
            if release is None
            else f"The release {release} is kept: what it says of single columns holds all the same."
        )
        raise NoRowsError(f"{path} was not written. {error} {spent} {again}") from None
    except OSError as error:
        full = error.errno in FULL or "disk is full" in str(error) or "No space left" in str(error)
        reason = "the disk is full" if full else os.strerror(error.errno) if error.errno else "a file error"
        again = (
            "Make room or choose another place; another run spends epsilon again."
            if release is None
            else f"The release {release} is kept: make room, and draw from it with `privmeasure sample`, for free."
        )
        raise OSError(f"{path} was not written: {reason}. {spent} {again}") from None


def save(synthesizer: "Synthesizer", path: Path, cost: Cost) -> list[str]:
    """Write the release and note its digest in the book; return what there is to warn of."""
    with keep_on_failure(path, cost):
        synthesizer.save(path)
    return cost.record(path)

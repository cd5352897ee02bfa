"""From an error to one paragraph and an exit code: no traceback for a user's mistake, never a value of the data."""

import errno
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from signal import SIGINT

import typer

from privmeasure import errors

USAGE, FILE, BUDGET, BUG = 2, 3, 4, 1
INTERRUPTED = 128
"""What a shell says of a program that a signal has ended: 130 for Ctrl-C, 143 for SIGTERM. The signal is added."""
NO_READER = 141
"""What a shell says of a program whose reader went away (128 + SIGPIPE): `| head -1` is no fault."""

PACKAGE_FOLDER = Path(errors.__file__).parent

CODES: list[tuple[type[BaseException], int]] = [
    (errors.BudgetError, BUDGET),
    (errors.SpentError, BUDGET),
    (errors.DataError, FILE),
    (errors.ReleaseFileError, FILE),
    (errors.LedgerFileError, FILE),
    (errors.NoRowsError, FILE),
    (errors.ReleaseError, BUG),
    (errors.PrivmeasureError, USAGE),
    (OSError, FILE),
]
"""The first kind that fits decides. Errors of the command line itself carry their own code."""

stopped_by = [int(SIGINT)]
"""The signal that has interrupted this command, last: what `main` hears of others than Ctrl-C."""


SPENDING = ("fit", "synthesize")
"""The commands that can spend epsilon; the local page says what each of its releases has cost."""
known_cost: list[Callable[[], str]] = []
"""Says what this run of such a command has cost so far; empty until it begins to spend."""


class Interrupted(BaseException):
    """An interruption of a run, in the words of what it has cost. Typer swallows a KeyboardInterrupt."""


INTERRUPTIONS = (KeyboardInterrupt, Interrupted, typer.Abort)

SYSTEM_ADVICE = {
    "ENOSPC": "The disk is full: make room, or write elsewhere. No half-written file was left.",
    "EDQUOT": "Your share of the disk is full: make room, or write elsewhere. No half-written file was left.",
    "EACCES": "You may not read or write there: choose another place, or ask for access.",
    "EPERM": "You may not read or write there: choose another place, or ask for access.",
    "EROFS": "The place cannot be written: choose another.",
    "ENOENT": "It does not exist: check the path.",
    "EISDIR": "It is a folder: give the path of a file.",
    "ENOTDIR": "A part of the path is a file: check the path.",
}


def state_cost(error: BaseException, cost: str) -> None:
    """Note what a run has cost, which ends what is said of its error."""
    vars(error)["cost"] = cost


def report(error: BaseException, *, as_json: bool, command: str = "") -> int:
    """Say what is wrong and return the exit code; of `fit` and `synthesize`, and if interrupted, what it has cost."""
    if command in SPENDING and not _is_help(error):
        vars(error).setdefault("cost", known_cost[0]() if known_cost else "nothing was spent")
    elif isinstance(error, KeyboardInterrupt | typer.Abort) and command != "app":
        state_cost(error, "nothing was spent")
    if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
        _close_stdout()  # the reader went away
        ours = bool(error.args) and isinstance(error.args[0], str)
        words = str(error) if ours else "the reader of stdout went away."
        if ours or vars(error).get("cost"):  # what it cost is said where it can be
            print(f"error: {printable(_with_cost(words, error))}", file=sys.stderr)
        return NO_READER
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else BUG
    message, code = explain(error)
    kind = "KeyboardInterrupt" if isinstance(error, INTERRUPTIONS) else type(error).__name__
    words = json.dumps({"error": {"kind": kind, "message": message, "exit": code}}, indent=2)
    to_stdout = words if as_json else message if _is_help(error) else None
    try:
        print(to_stdout or "", end="\n" if to_stdout else "", flush=True)
    except OSError:  # stdout takes nothing, a full disk perhaps: stderr is left
        _close_stdout()
        to_stdout = None
    if to_stdout is None:
        colour, plain = ("\033[31m", "\033[0m") if sys.stderr.isatty() and "NO_COLOR" not in os.environ else ("", "")
        print(f"{colour}error:{plain} {message}", file=sys.stderr)
    return code


def _close_stdout() -> None:
    """Send what is still to be printed nowhere, so that the interpreter does not fail on it as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def explain(error: BaseException) -> tuple[str, int]:
    """Return the paragraph and the exit code of an error; it ends with what the run has cost, if that is stated."""
    words, code = _explained(error)
    return _with_cost(words, error), code


def _with_cost(words: str, error: BaseException) -> str:
    cost = str(error) if isinstance(error, Interrupted) else vars(error).get("cost")
    return f"{words} Cost: {printable(cost)}." if cost else words


def _explained(error: BaseException) -> tuple[str, int]:
    """Return what is wrong, and the exit code."""
    if isinstance(error, INTERRUPTIONS):
        return "interrupted; no half-written file was left.", INTERRUPTED + stopped_by[-1]
    code = next((code for kind, code in CODES if isinstance(error, kind)), None)
    if isinstance(error, errors.PrivmeasureError) and code is not None:
        return printable(str(error)), code
    if isinstance(error, OSError):
        return printable(explain_file(error)), FILE
    if hasattr(error, "format_message"):  # an error of the command line: a wrong option, a missing argument
        return printable(_usage(error)), USAGE
    return _bug(error), BUG


def explain_file(error: OSError) -> str:
    """Return what a file error says; only its number, its path and our own words, no text of a library."""
    where = f"{error.filename}: " if error.filename else ""
    if error.errno is not None:
        advice = SYSTEM_ADVICE.get(errno.errorcode.get(error.errno, ""), "Check the path and the disk.")
        return f"{where}{os.strerror(error.errno)}. {advice}"
    frames = traceback.extract_tb(error.__traceback__)
    if frames and Path(frames[-1].filename).is_relative_to(PACKAGE_FOLDER):  # raised by us, in our words
        return str(error)
    return f"{where}a file could not be read or written ({type(error).__name__}). Check the path and the disk."


def printable(text: str) -> str:
    """Return text without control characters: a header could hold some that change a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _is_help(error: BaseException) -> bool:
    return type(error).__name__ == "NoArgsIsHelpError"


def _usage(error: BaseException) -> str:
    message = " ".join(error.format_message().split())  # type: ignore[attr-defined]
    if _is_help(error):
        return str(error.format_message())  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "privmeasure"
    return f"{message if message.endswith(('.', '?')) else message + '.'} See `{where} --help`."


def _bug(error: BaseException) -> str:
    """Say where an unforeseen error happened; its text may hold a value of the data and is not shown."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(PACKAGE_FOLDER)]
    place = f"{Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else "an unknown place"
    return (
        f"privmeasure failed in a way that it should not ({type(error).__name__} at {place}). Its text is not shown, "
        "because it could hold a value of the data. Please report it."
    )

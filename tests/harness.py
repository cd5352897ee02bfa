"""What a run of the tests says beside pytest: errors that the gate hid, first differences, engines that are missing.

`gate` replaces an error that is not ours by one that shows no value, and so it hides a failed assertion of a stub, too.
Such errors are recorded here before they are replaced, and are added to the report of a test that fails. The gate has
no switch for this: what is wrapped is the function that it calls, and only in the process of the tests.
"""

import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator
from typing import Any

import pytest

import privmeasure.mechanisms.base
import privmeasure.synthesizer
from differences import first_difference
from servers import NOT_RUN

HIDDEN = "an error that the gate replaced by another one"
MAX_HIDDEN = 3
"""How many replaced errors a report shows: the last ones, for Hypothesis runs the example that failed once more."""


class Hidden:
    """The errors that were replaced during one test, as texts: an error would keep the objects of its frames alive."""

    def __init__(self) -> None:
        self.texts: deque[str] = deque(maxlen=MAX_HIDDEN)

    def recording(self, presentable: Callable[..., BaseException]) -> Callable[..., BaseException]:
        """Return `presentable`, which also writes down every error that it replaces."""

        def recorded(error: BaseException, key: Any) -> BaseException:
            shown = presentable(error, key)
            if shown is not error and isinstance(error, Exception):
                self.texts.append("".join(traceback.format_exception(error)))
            return shown

        return recorded


hidden = Hidden()
for module in (privmeasure.mechanisms.base, privmeasure.synthesizer):  # both look the name up in their own module
    module.presentable = hidden.recording(module.presentable)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forget the errors of the test before."""
    hidden.texts.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the errors that were hidden so far to the report of a failure."""
    report = yield
    if report.failed:
        report.sections += [(HIDDEN, text) for text in hidden.texts]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_assertrepr_compare(op: str, left: object, right: object) -> Generator[None, list[Any], list[Any]]:
    """Say where two sides of a failed `==` differ first, in one line before the dump of both."""
    explained = yield
    try:
        difference = first_difference(left, right, "left") if op == "==" else None
    except Exception:  # what has an `==` of its own kind is left to pytest
        difference = None
    if difference is None or difference.startswith("left: expected"):  # pytest says the same
        return explained
    return [[f"first difference: {difference}", *lines] for lines in explained if lines]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say at the end which engines are missing, in one line for each that begins "NOT RUN"."""
    skipped = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ())
    )
    for reason, count in skipped.items():
        if reason.startswith(NOT_RUN):
            terminalreporter.write_line(f"{reason} (skipped: {count})")

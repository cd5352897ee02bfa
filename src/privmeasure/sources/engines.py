"""What is said when an engine that counts for us fails: none of its own words, and what was spent. Private."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from privmeasure.errors import DataError, PrivmeasureError, ReleaseError


def _never(error: Exception) -> bool:
    return False


@contextmanager
def engine_words(title: str, advice: str, was_interrupted: Callable[[Exception], bool] = _never) -> Iterator[None]:
    """Replace errors of an engine, whose texts quote values, by one of ours; Ctrl-C stays what it is.

    Examples:
        >>> with engine_words("It", "Ask again."):
        ...     raise RuntimeError("'31' is no date")
        Traceback (most recent call last):
        privmeasure.errors.DataError: It could not answer (RuntimeError). Its words may quote values, and are not \
shown. Ask again.
    """
    try:
        yield
    except (PrivmeasureError, KeyboardInterrupt):
        raise
    except Exception as error:
        if was_interrupted(error):
            raise KeyboardInterrupt from None
        kind = type(error).__name__
        raise DataError(
            f"{title} could not answer ({kind}). Its words may quote values, and are not shown. {advice}"
        ) from None


@contextmanager
def spending_told(*, first: bool) -> Iterator[None]:
    """Let errors of a question say what was spent: the `first` one of a fit comes before any noise."""
    try:
        yield
    except DataError as error:
        if first:
            raise DataError(f"{error} Nothing was spent.") from None
        raise ReleaseError(
            f"{error} It was not the first question of the fit: nothing was published, but count epsilon as spent."
        ) from None

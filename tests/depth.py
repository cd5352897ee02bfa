"""How many cases a test tries: few in `make test`, many in `make test-deep`.

A test that is only worth its time in `make test-deep` is marked `deep`. A test that runs in both, with more cases in
`make test-deep`, takes their number from `examples` or from `cases`, and the second kind is marked `deeper`.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")
DEEP = os.environ.get("TEST_DEPTH") == "deep"
"""Whether `make test-deep` runs: it sets the variable, and selects what is marked `deep` or `deeper`."""


def examples(few: int, many: int, **options: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that sets how many examples a property test tries in `make test` and in `make test-deep`."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        return pytest.mark.deeper(settings(max_examples=many if DEEP else few, deadline=None, **options)(test))

    return decorate


def cases(few: int, all_of_them: Sequence[T]) -> list[T]:
    """Return evenly spaced cases in `make test`, with the first and the last, and all cases in `make test-deep`."""
    if DEEP or few >= len(all_of_them):
        return list(all_of_them)
    step = (len(all_of_them) - 1) / max(1, few - 1)
    return [all_of_them[round(i * step)] for i in range(few)]

"""How many cases a test tries: few in `make test`, many in `make test-deep`.

A test that is only worth its time in `make test-deep` is marked `deep`. A test that runs in both, with more cases in
`make test-deep`, takes its cases from `some` or `examples`, which also mark it `deeper`.
"""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import settings

DEEP = os.environ.get("TEST_DEPTH") == "deep"
"""Whether `make test-deep` runs: it sets the variable, and selects what is marked `deep` or `deeper`."""

Test = Callable[..., Any]


def examples(few: int, many: int, **options: Any) -> Callable[[Test], Test]:
    """Return a decorator that sets how many examples a property test tries in `make test` and in `make test-deep`."""

    def decorate(test: Test) -> Test:
        return pytest.mark.deeper(settings(max_examples=many if DEEP else few, deadline=None, **options)(test))

    return decorate


def some(
    names: str | Sequence[str], few: int, every: Iterable[Any], *, ids: Any = None, keep: Collection[str] = ()
) -> Callable[[Test], Test]:
    """Return `parametrize` with evenly spaced cases in `make test`, and with all of them in `make test-deep`.

    The cases whose ids are in `keep` are always tried.
    """
    cases = list(every)
    labels = [ids(case) for case in cases] if callable(ids) else list(ids) if ids is not None else [None] * len(cases)
    step = (len(cases) - 1) / max(1, few - 1)
    spaced = {round(i * step) for i in range(few)}
    chosen = [i for i in range(len(cases)) if DEEP or i in spaced or labels[i] in keep]

    def decorate(test: Test) -> Test:
        values, names_of = [cases[i] for i in chosen], [labels[i] for i in chosen] if ids is not None else None
        return pytest.mark.deeper(pytest.mark.parametrize(names, values, ids=names_of)(test))

    return decorate

"""Names of arguments that people bring from elsewhere, and what they are called here."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from privmeasure.errors import ArgumentError

Given = ParamSpec("Given")
Result = TypeVar("Result")

ELSEWHERE = {
    "neighbors": "neighbours",
    "neighboring": "neighbours",
    "adjacency": "neighbours",
    "eps": "epsilon",
    "num_rows": "n rows",
    "n_rows": "n rows",
    "num_samples": "n rows",
    "n_samples": "n rows",
    "size": "n rows",
    "random_state": "seed",
    "conditions": "where",
    "max_rows_per_person": "rows_per_person",
    "domain": "space",
    "metadata": "schema",
}
"""For each word the names that it may have here, by the function that is called."""


def hinted(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Return a function that says, of an argument that it does not have, what it is called here.

    Not for functions of private data: the frame of the call stays with an error.

    Examples:
        >>> @hinted
        ... def sample(n=None): ...
        >>> sample(num_rows=3)
        Traceback (most recent call last):
        ...
        privmeasure.errors.ArgumentError: sample() has no argument 'num_rows'. It is called n here.
    """
    parameters = inspect.signature(function).parameters
    name = function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]

    @wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        for word in kwargs:
            if word not in parameters:
                raise ArgumentError(f"{name}() has no argument {word!r}.{_hint(word, [*parameters])}")
        return function(*args, **kwargs)

    return call


def _hint(word: str, known: list[str]) -> str:
    ours = [name for name in ELSEWHERE.get(word, "").split() if name in known]
    if ours:
        return f" It is called {ours[0]} here."
    own = [name for name in known if name != "self"]
    close = get_close_matches(word, own, n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else f" There are: {', '.join(own)}."

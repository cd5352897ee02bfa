"""Where two things differ first: one line that names the place, what was expected and what was found.

A comparison with `==` of two transcripts, files or long lists fails with pages of both. `assert_same` fails with a line
such as

    transcript: counts[3].scale: expected Fraction(5, 2), got Fraction(3, 2)
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

WIDTH = 60
"""The most characters of a value that the line shows."""
SHORT = 32
"""Up to so many bytes or letters are shown whole."""
AROUND = 8
"""Of more, how many are shown on either side of the first that differs."""


def assert_same(got: object, expected: object, what: str) -> None:
    """Fail with one line that says where two things differ first; `what` names them."""
    __tracebackhide__ = True
    difference = first_difference(got, expected, what)
    if difference is not None:
        raise AssertionError(difference)


def first_difference(got: Any, expected: Any, place: str) -> str | None:
    """Return the line that `assert_same` shows, or None if two things are the same.

    Dictionaries, lists, tuples, dataclasses and arrays are entered. All else is compared by its type and by `==`; NaN
    is the same as NaN.
    """
    if isinstance(expected, np.ndarray) or isinstance(got, np.ndarray):
        return _of_arrays(np.asarray(got), np.asarray(expected), place)
    if type(got) is not type(expected):
        return f"{place}: expected {short(expected)}, got {short(got)}"
    if isinstance(expected, bytes | str):
        return _of_letters(got, expected, place)
    if isinstance(expected, Mapping):
        found = _first(
            first_difference(got[key], expected[key], f"{place}[{key!r}]")
            if key in got
            else f"{place}[{key!r}]: is missing"
            for key in expected
        )
        return found or _first(f"{place}[{key!r}]: was not expected" for key in got if key not in expected)
    if is_dataclass(expected):
        names = [field.name for field in fields(expected) if field.compare]
        return _first(first_difference(getattr(got, n), getattr(expected, n), f"{place}.{n}") for n in names)
    if isinstance(expected, Sequence):
        names = [f".{name}" for name in getattr(expected, "_fields", ())] or [f"[{i}]" for i in range(len(expected))]
        found = _first(
            first_difference(a, b, f"{place}{name}") for a, b, name in zip(got, expected, names, strict=False)
        )
        return found or _of_lengths(got, expected, place)
    same = got == expected or (got != got and expected != expected)
    return None if same else f"{place}: expected {short(expected)}, got {short(got)}"


def short(value: object) -> str:
    """Return what stands in the line for a value."""
    text = " ".join(repr(value).split())
    return text if len(text) <= WIDTH else text[: WIDTH - 4] + " ..."


def _first(differences: Any) -> str | None:
    return next((difference for difference in differences if difference is not None), None)


def _of_lengths(got: Any, expected: Any, place: str) -> str | None:
    return None if len(got) == len(expected) else f"{place}: expected {len(expected)} entries, got {len(got)}"


def _of_arrays(got: np.ndarray, expected: np.ndarray, place: str) -> str | None:
    if got.shape != expected.shape:
        return f"{place}: expected the shape {expected.shape}, got {got.shape}"
    differ = (got != expected) & ~((got != got) & (expected != expected))
    if not differ.any():
        return None
    first = tuple(int(i) for i in np.argwhere(differ)[0])
    where = ", ".join(map(str, first))
    count = f"{int(differ.sum())} of {differ.size} entries differ"
    return f"{place}[{where}]: expected {short(expected[first].item())}, got {short(got[first].item())}; {count}"


def _of_letters(got: Any, expected: Any, place: str) -> str | None:
    if got == expected:
        return None
    differ = (i for i, (one, other) in enumerate(zip(got, expected, strict=False)) if one != other)
    first = next(differ, min(len(got), len(expected)))
    whole = max(len(got), len(expected)) <= SHORT
    part = slice(None) if whole else slice(max(0, first - AROUND), first + AROUND)
    one, other = short(expected[part]), short(got[part])
    line = f", line {1 + expected.count(chr(10), 0, first)}" if isinstance(expected, str) and "\n" in expected else ""
    return f"{place}: at {first}{line}: expected {one}, got {other}; {len(expected)} expected, {len(got)} found"

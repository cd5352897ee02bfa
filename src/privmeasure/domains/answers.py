"""What a question of `scales` answers, in NumPy: for the few public values that a translation wants to know of.

An engine that asks a question need not compute what has few answers: which code a listed text has, at which double a
new cell begins. These are found here, once, from the same words that are translated.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import scales as words
from privmeasure.domains.base import Floats
from privmeasure.domains.bits import Words

Read = Callable[[words.Reading], Floats]
"""What a reading gives for every row."""


def follow(steps: Sequence[words.Step], values: Floats, read: Read) -> Floats:
    """Return values after some steps, none of which lists.

    Examples:
        >>> follow([words.Clamped(0, 9), words.Rounded()], np.array([-3.0, 2.5, np.nan]), lambda other: values)
        array([ 0.,  2., nan])
    """
    with np.errstate(all="ignore"):
        for step in steps:
            values = _after(step, values, read)
    return values


def _after(step: words.Step, x: Floats, read: Read) -> Floats:
    match step:
        case words.Clamped(low, high):
            return np.clip(x, low, high)
        case words.Filled(value):
            return np.where(np.isnan(x), value, x)
        case words.Rounded():
            return np.rint(x)
        case words.Turned(low, high, period, top):
            turned = np.mod(np.where(np.isinf(x), np.nan, x) - low, period) + low
            stays = ((x >= low) & (x <= high)) | (turned > top)
            return np.where(np.isinf(x), np.nan, np.where(stays, x, turned))
        case words.Counted(low, step_size, offset):
            return np.asarray(np.floor((x - low) / step_size) + offset)
        case words.Stretched():
            return step.knots.place(x)
        case words.Together():
            return np.where(np.isnan(read(step.other)), np.nan, x)
    raise TypeError(f"{type(step).__name__} is no step between numbers")


def answer(scale: words.Scale, read: Read) -> Words:
    """Return the number of every row."""
    match scale:
        case words.Even():
            with np.errstate(all="ignore"):
                u = (read(scale.of) - scale.low) * scale.factor / scale.divisor
                return _whole(np.clip(u, 0, 2.0**scale.bits - 1))
        case words.Edges():
            x = read(scale.of)
            return np.where(np.isnan(x), 0, np.searchsorted(scale.edges, x, side="right"))
        case words.Codes():
            return scale.codes[_whole(read(scale.of))]
        case words.Dealt():
            codes = [deal_bits(answer(part, read), at) for part, at in zip(scale.parts, scale.places, strict=True)]
            return np.sum(codes, axis=0, dtype=np.int64) if codes else np.zeros(1, np.int64)
        case words.Missing():
            missing = np.any([np.isnan(read(reading)) for reading in scale.of], axis=0)
            return np.where(missing, scale.code, answer(scale.present, read))
        case words.Grouped():
            return scale.groups[answer(scale.of, read)]
        case words.Rings():
            ring = answer(scale.ring, read)
            part = np.floor(answer(scale.turn, read) * scale.shares[ring]).astype(np.int64)
            return np.asarray(scale.codes[ring] + answer(scale.outer, read) + part)


def _whole(values: Floats) -> Words:
    """Return the floors of numbers that are not negative; 0 for NaN."""
    return np.where(np.isnan(values), 0, values).astype(np.int64)


def deal_bits(numbers: NDArray[Any], places: Sequence[int]) -> Words:
    """Return the i-th highest of the bits of each number at place `places[i]`; see `Dealt`.

    Examples:
        >>> deal_bits(np.array([0b10, 0b11]), (3, 1)).tolist()
        [8, 10]
    """
    code = np.zeros(len(numbers), np.int64)
    for i, place in enumerate(reversed(places)):
        if place >= 0:
            code |= (numbers >> i & 1) << place
    return code


def readings_of(scale: words.Scale) -> Iterator[words.Reading]:
    """Return all readings that a number follows from, those beside others too."""
    match scale:
        case words.Even() | words.Edges() | words.Codes():
            yield from _with_others(scale.of)
        case words.Dealt():
            for part in scale.parts:
                yield from readings_of(part)
        case words.Missing():
            for reading in scale.of:
                yield from _with_others(reading)
            yield from readings_of(scale.present)
        case words.Grouped():
            yield from readings_of(scale.of)
        case words.Rings():
            for part in (scale.ring, scale.outer, scale.turn):
                yield from readings_of(part)


def _with_others(reading: words.Reading) -> Iterator[words.Reading]:
    yield reading
    for step in reading.steps:
        if isinstance(step, words.Together):
            yield from _with_others(step.other)

"""What leaves `fit` when it fails: no value of the data in the error, in what hangs on it, or in its frames."""

import gc
import re
import threading
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure import synthesizer as room
from privmeasure.errors import ArgumentError, DataError, PrivmeasureError, ReleaseError, SchemaError, SpentError

CANARY = "canary73819"
COST = r"Nothing was spent\.|Epsilon 1 is spent; there is no release\."
"""The sentence at the end of every error of a fit."""
SCHEMA = pm.Schema({"age": pm.Integer(0, 120), "sex": pm.Category(["F", "M"])})
TABLE = pa.table({"age": [30, 40] * 50, "sex": ["F", "M"] * 50})


def reachable(value, depth=6):
    """Yield everything that hangs on a value: texts, members, errors, frames."""
    seen, todo = set(), [(value, depth)]
    while todo:
        thing, left = todo.pop()
        if id(thing) in seen or isinstance(thing, type | type(pytest)):
            continue
        seen.add(id(thing))
        yield thing
        if left and not callable(thing):
            todo += [(inner, left - 1) for inner in gc.get_referents(thing) if not isinstance(inner, type)]


def frames_below_fit(error):
    trace, found = error.__traceback__, []
    while trace is not None and trace.tb_frame.f_code is not room.Synthesizer.fit.__code__:
        trace = trace.tb_next
    assert trace is not None, "fit is not in the traceback"
    here = trace.tb_frame
    trace = trace.tb_next
    while trace is not None:
        found.append(trace.tb_frame)
        trace = trace.tb_next
    return here, found


def check_clean(error):
    assert error.__context__ is None
    assert error.__cause__ is None
    assert all(re.fullmatch(COST, note) for note in error.__notes__)
    here, below = frames_below_fit(error)
    assert below == []
    local = {name: value for name, value in here.f_locals.items() if name != "self"}
    assert not {"data", "source", "layout", "measure", "error", "failure", "progress"} & set(local)
    assert not [kind for kind in map(type, local.values()) if kind.__name__ in ("TableSource", "ArraySource")]
    for thing in reachable([str(error), repr(error), error.args, vars(error), local]):
        assert CANARY not in str(thing)[:2000] if isinstance(thing, str | bytes | BaseException) else True


def caught_from(synth, data, **options):
    try:
        synth.fit(data, **options)
    except BaseException as error:
        return error
    pytest.fail("nothing was raised")


class Cell:
    """A cell that shows itself when anyone looks."""

    def _fail(self, *args, **kwargs):
        error = ValueError(CANARY)
        error.add_note(CANARY)
        raise error

    __str__ = __repr__ = __float__ = __index__ = _fail


class Bad(Cell):
    """Data that do."""

    __array__ = __len__ = __arrow_c_stream__ = __iter__ = __getitem__ = Cell._fail


class Faulty(pm.Box):
    kind: type[BaseException] = ValueError

    def locate(self, points, level):
        secret = CANARY  # noqa: F841 - a local of a frame below
        try:
            raise RuntimeError(CANARY)
        except RuntimeError as first:
            error = self.kind(CANARY)
            error.add_note(CANARY)
            raise error from first


def made(space, neighbours="add-remove", **options):
    return pm.Synthesizer(space, epsilon=1, neighbours=neighbours, **options)


@pytest.mark.parametrize(
    ("space", "data"),
    [
        (pm.Box([(0, 1)]), Bad()),
        (pm.Box([(0, 1)]), np.array([Cell()], object)),
        (SCHEMA, Bad()),
        (SCHEMA, [Cell()]),
        (SCHEMA, {"age": [Cell()], "sex": ["F"]}),
        (SCHEMA, "nowhere.csv"),
        (SCHEMA, pa.table({"age": [1], "sax": [CANARY]})),
    ],
    ids=["object", "array", "for a schema", "list", "dict", "path", "header"],
)
def test_data_that_cannot_be_opened(space, data):
    synth = made(space)
    error = caught_from(synth, data)
    assert isinstance(error, PrivmeasureError)
    check_clean(error)
    assert not synth.spent
    good = TABLE if space is SCHEMA else np.linspace(0, 1, 50)
    assert len(synth.fit(good).sample(10)) == 10


@pytest.mark.parametrize(
    ("space", "data"),
    [
        (pm.Box([(0, 1)]), [Cell(), Cell()]),
        (pm.Box([(0, 1)]), [[Cell()]]),
        (SCHEMA, pd.DataFrame({"age": [30, Cell()], "sex": ["F", "M"]})),
        (SCHEMA, pd.DataFrame({"age": [30, 31], "sex": ["F", Cell()]})),
    ],
    ids=["list", "nested", "numbers", "text"],
)
def test_cells_that_fail(space, data):
    """They may be missing values, or refused; either way they are not shown."""
    synth = made(space)
    error = None
    try:
        synth.fit(data)
    except BaseException as caught:
        error = caught
    if error is None:
        assert synth.spent
        return
    check_clean(error)
    assert isinstance(error, PrivmeasureError)
    assert synth.spent == isinstance(error, ReleaseError)


class StrangeError(PrivmeasureError):
    """A kind of somebody else."""


@pytest.mark.parametrize(
    "kind", [ValueError, MemoryError, ArgumentError, DataError, SchemaError, StrangeError, OSError]
)
@pytest.mark.parametrize("noise", [False, True])
def test_a_domain_that_fails_before_and_after_noise(kind, noise):
    """Even in a kind of ours: its words are not ours."""
    space = type("Faulty", (Faulty,), {"kind": kind})([(0, 1)])
    synth = made(space, rows=None if noise else 7)  # without rows, their number is bought first
    error = caught_from(synth, np.full(7, 0.5))
    check_clean(error)
    assert type(error) is (ReleaseError if noise else DataError)
    assert ("count epsilon as spent" in str(error)) == noise
    assert ("nothing was spent" in str(error)) != noise
    assert synth.spent == noise
    assert room.Synthesizer.spent.fget(synth) == noise


class Onlooker:
    """A third-party ledger that looks at the error which leaves its context."""

    seen = None

    @contextmanager
    def reserve(self, account, synthesizer):
        try:
            yield
        except BaseException as error:
            trace, here = error.__traceback__, []
            while trace is not None:
                if trace.tb_frame.f_code is room.Synthesizer.fit.__code__:
                    here.append(dict(trace.tb_frame.f_locals))
                trace = trace.tb_next
            self.seen = here, error.__context__, error.__cause__
            raise


def test_a_ledger_finds_no_data_in_the_error_of_a_fit():
    """It is third-party code, which may write down what it gets."""
    onlooker, synth = Onlooker(), made(Faulty([(0, 1)]), rows=7)
    error = caught_from(synth, np.full(7, 0.73819), ledger=onlooker, account="patients")
    (local,), context, cause = onlooker.seen
    assert context is cause is None
    assert not [value for value in local.values() if isinstance(value, np.ndarray)]
    assert not any(CANARY in str(thing) for thing in reachable([local]) if isinstance(thing, str | BaseException))
    check_clean(error)


class Second(SystemExit):
    pass


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, Second])
@pytest.mark.parametrize("noise", [False, True])
def test_interruptions(kind, noise):
    stages = []

    def progress(stage, fraction):
        stages.append(stage)
        if (stage == "release") == noise:
            secret = CANARY  # noqa: F841
            raise kind(CANARY)

    synth = made(pm.Box([(0, 1)]), "replace", depth=4)
    error = caught_from(synth, np.full(7, 0.5), progress=progress)
    assert isinstance(error, kind.__mro__[0] if kind is not Second else SystemExit)
    check_clean(error)
    assert synth.spent == noise
    if noise:
        with pytest.raises(SpentError):
            synth.fit(np.full(7, 0.5))
    else:
        assert len(synth.fit(np.full(7, 0.5)).sample()) == 7


def test_other_exceptions_of_the_base_are_replaced():
    class Odd(BaseException):
        pass

    error = caught_from(made(type("F", (Faulty,), {"kind": Odd})([(0, 1)])), np.full(7, 0.5))
    assert type(error) is ReleaseError
    check_clean(error)


class Twice:
    """A source that is fine once."""

    def __init__(self, inner, kind):
        self.inner, self.kind, self.calls = inner, kind, 0

    def count(self, partitions, progress=None):
        self.calls += 1
        if self.calls > 1:
            raise self.kind(CANARY)
        return self.inner.count(partitions, progress)


@pytest.mark.parametrize("kind", [DataError, ArgumentError, SchemaError, OSError])
@pytest.mark.parametrize("mechanism", ["pmm", "columns"])
def test_a_source_that_fails_in_its_second_pass(monkeypatch, kind, mechanism):
    opened = room.Synthesizer._open

    def twice(self, data, progress, *options, **named):
        source, layout = opened(self, data, progress, *options, **named)
        return Twice(source, kind), layout

    monkeypatch.setattr(room.Synthesizer, "_open", twice)
    synth = made(SCHEMA, mechanism=mechanism)
    error = caught_from(synth, TABLE)
    assert type(error) is ReleaseError
    assert "count epsilon as spent" in str(error)
    assert synth.spent
    check_clean(error)


def test_the_caller_s_own_error_does_not_come_along():
    """Nor does ours hang on what the caller was handling."""
    try:
        raise ValueError(CANARY)
    except ValueError:
        error = caught_from(made(pm.Box([(0, 1)])), np.zeros((2, 2)))
    assert isinstance(error, DataError)
    assert "shape" in str(error)
    check_clean(error)


def test_with_an_insecure_key_everything_is_shown():
    synth = made(Faulty([(0, 1)]))
    with pytest.raises(ValueError, match=CANARY) as caught:
        synth.fit(np.full(7, 0.5), insecure_seed=1)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert frames_below_fit(caught.value)[1]
    assert synth.spent


def test_the_flag_is_set_before_noise_is(monkeypatch):
    """While noise is drawn, the synthesizer says so already."""
    seen = []
    words = room.Key.words

    def watched(self, **options):
        result = words(self, **options)
        seen.append(synth.spent)
        return result

    monkeypatch.setattr(room.Key, "words", watched)
    synth = made(pm.Box([(0, 1)]), depth=3)
    assert not synth.spent
    synth.fit(np.full(7, 0.5))
    assert seen
    assert all(seen)


def test_a_fit_is_not_begun_twice_at_once():
    synth, seen = made(pm.Box([(0, 1)]), "replace", depth=3), []

    def progress(stage, fraction):
        if not seen:
            seen.append(None)
            for ask in (lambda: synth.fit(np.zeros(5)), lambda: synth.set_params(epsilon=2), synth.hold):
                with pytest.raises(SpentError):
                    ask()

    synth.fit(np.zeros(5), progress=progress)
    assert seen


def test_a_refused_change_of_parameters_changes_nothing():
    synth = made(pm.Box([(0, 1)]))
    with pytest.raises(ArgumentError):
        synth.set_params(epsilon=2, depth=-1)
    assert (synth.privacy.epsilon, synth.mechanism.privacy.epsilon, synth.get_params()["epsilon"]) == (1, 1, 1)


def test_what_is_given_back_during_a_fit_draws_no_noise():
    """Another thread leaves its ledger with an error, while this one is counting."""
    synth = made(pm.Box([(0, 1)]), "replace", depth=3)
    synth.hold()
    found = []

    def progress(stage, fraction):
        thread = threading.Thread(target=lambda: found.append(synth.give_back()))
        thread.start()
        thread.join()

    error = caught_from(synth, np.zeros(5), progress=progress)
    assert isinstance(error, PrivmeasureError)
    assert found[0] is True
    assert not synth.spent

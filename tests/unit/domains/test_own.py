"""Spaces of one's own: fitted, saved, and read again with the same domain beside the file."""

import json
import warnings

import numpy as np
import pytest

import privmeasure as pm
from privmeasure.domains import (
    Box,
    Categories,
    Integers,
    Nullable,
    Product,
    check_own,
    is_ours,
    own_kinds,
    write_domain,
)
from privmeasure.errors import ArgumentError, ReleaseFileError
from privmeasure.mechanisms import PMM, PSMM, ColumnTree
from privmeasure.privacy import Privacy
from privmeasure.testing import check_domain


class Words:
    """Words of n bits with the Hamming distance over n; a cell is a prefix."""

    width, deepest = 1, 40

    def __init__(self, bits=5):
        self.bits = bits

    def diameter(self, level):
        return max(self.bits - level, 0) / self.bits

    radius = diameter

    def total_diameter(self, level):
        return self.size(level) * self.diameter(level)

    def size(self, level):
        return 1 << min(level, self.bits)

    def exists(self, cells, level):
        return cells & np.uint64((1 << max(level - self.bits, 0)) - 1) == 0

    def _shifts(self, level):
        return np.uint64(max(self.bits - level, 0)), np.uint64(max(level - self.bits, 0))

    def locate(self, points, level):
        up, down = self._shifts(level)
        with np.errstate(all="ignore"):
            words = np.fmin(np.fmax(np.rint(points[:, 0]), 0), (1 << self.bits) - 1).astype(np.uint64)
        return words >> up << down

    def extent(self, cells, level):
        up, down = self._shifts(level)
        first = cells >> down << up
        last = first | np.uint64((1 << int(up)) - 1)
        return first.astype(float)[:, None], last.astype(float)[:, None]

    def centre(self, cells, level):
        return self.extent(cells, level)[0]

    def draw(self, cells, level, rng):
        low, high = self.extent(cells, level)
        return np.floor(low + rng.random(low.shape) * (high - low + 1))

    def distance(self, x, y):
        differ = x[..., 0].astype(np.int64) ^ y[..., 0].astype(np.int64)
        return sum((differ >> bit & 1).astype(float) for bit in range(self.bits)) / self.bits

    def to_json(self):
        return {"kind": "words", "bits": self.bits, "alphabet": ("0", "1")}


class Streets:
    """A square town with the distance along its streets; two columns."""

    width = 2

    def __init__(self, side=1.0):
        self.side = side
        self.box = Box([(0, side), (0, side)])
        self.deepest = self.box.deepest

    def diameter(self, level):
        return sum(2.0**-cuts for cuts in self.box.cuts(level)) / 2

    def radius(self, level):
        return self.diameter(level) / 2

    def total_diameter(self, level):
        return 2.0**level * self.diameter(level)

    def distance(self, x, y):
        return np.abs(x - y).sum(axis=-1) / (2 * self.side)

    def to_json(self):
        return {"kind": "streets", "side": self.side}

    def __getattr__(self, name):  # the cells are those of a box
        if name in ("size", "exists", "locate", "extent", "centre", "draw"):
            return getattr(self.box, name)
        raise AttributeError(name)


class Other(Streets):
    """Says what it is told to say."""

    def __init__(self, says):
        super().__init__()
        self.says = says

    def to_json(self):
        return self.says()


SPACES = {
    "words": lambda: Words(),
    "streets": lambda: Streets(),
    "product": lambda: Product([Words(), Streets(2.0), Box([(0, 1)])], weights=[1, 2, 1]),
    "nullable": lambda: Nullable(Streets()),
    "nullable in a product": lambda: Product([Nullable(Words()), Nullable(Product([Streets(), Integers(0, 9)]))]),
    "four columns": lambda: Product([Words(), Streets(), Categories(3), Nullable(Words(3))]),
}
CASES = [(name, mechanism) for name in SPACES for mechanism in ("pmm", "psmm")]
CASES += [(name, "columns") for name in ("product", "nullable in a product", "four columns")]


def rows_of(domain, n=400):
    """Return rows all over a domain."""
    rng = np.random.default_rng(3)
    level = min(8, domain.deepest)
    codes = np.arange(1 << level, dtype=np.uint64)
    return domain.draw(rng.choice(codes[domain.exists(codes, level)], n), level, rng)


def fitted(domain, mechanism, seed=5):
    depth = 4 if mechanism == "psmm" else None  # few cells: pairs of them are looked at
    synthesizer = pm.Synthesizer(domain, epsilon=2, neighbours="add-remove", mechanism=mechanism, depth=depth)
    return synthesizer.fit(rows_of(domain), insecure_seed=seed)


def saved(release, path):
    with pytest.warns(UserWarning, match=r"space of your own.*load\(path, domain=\.\.\.\)"):
        release.save(path)
    return path


def test_they_keep_the_laws():
    check_domain(Words(), points=np.arange(32.0)[:, None])
    check_domain(Streets(3.0))
    check_domain(SPACES["nullable in a product"]())


@pytest.mark.parametrize(("name", "mechanism"), CASES)
def test_what_was_saved_is_read_with_the_domain(name, mechanism, tmp_path):
    synthesizer = fitted(SPACES[name](), mechanism)
    path = saved(synthesizer, tmp_path / "own.parquet")
    again = pm.load(path, domain=SPACES[name]())
    assert again.header() == synthesizer.release_.header()
    assert again.plan == synthesizer.plan_
    for n in (None, 57):
        assert np.array_equal(again.sample(n, seed=9), synthesizer.release_.sample(n, seed=9), equal_nan=True)
    saved(again, tmp_path / "twice.parquet")
    assert pm.load(tmp_path / "twice.parquet", domain=SPACES[name]()).header() == again.header()


@pytest.mark.parametrize(("name", "mechanism"), CASES)
def test_without_it_the_error_says_what_to_give(name, mechanism, tmp_path):
    path = saved(fitted(SPACES[name](), mechanism), tmp_path / "own.parquet")
    with pytest.raises(ReleaseFileError, match=r"give domain=\.\.\., equal to the one that was released") as caught:
        pm.load(path)
    assert "damaged" not in str(caught.value)
    assert "'words'" in str(caught.value) or "'streets'" in str(caught.value)


@pytest.mark.parametrize(("name", "mechanism"), [("words", "pmm"), ("product", "psmm"), ("four columns", "columns")])
def test_another_domain_is_refused(name, mechanism, tmp_path):
    path = saved(fitted(SPACES[name](), mechanism), tmp_path / "own.parquet")
    for other in (Words(6), Box([(0, 1)]), Product([Words(), Streets(2.5), Box([(0, 1)])], weights=[1, 2, 1])):
        with pytest.raises(ReleaseFileError, match=r"another space.*Give domain=\.\.\., equal to the one"):
            pm.load(path, domain=other)
    for wrong in ("words", Words, 5):
        with pytest.raises(ArgumentError, match="domain must be a Domain"):
            pm.load(path, domain=wrong)


def test_our_own_domains_need_no_help(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        synthesizer = fitted(Product([Box([(0, 1)]), Nullable(Integers(0, 9))]), "pmm")
        synthesizer.save(tmp_path / "ours.parquet")
    pm.load(tmp_path / "ours.parquet")
    pm.load(tmp_path / "ours.parquet", domain=Product([Box([(0, 1)]), Nullable(Integers(0, 9))]))
    with pytest.raises(ReleaseFileError, match="another space"):
        pm.load(tmp_path / "ours.parquet", domain=Box([(0, 1), (0, 9)]))


def counter():
    counter.calls = getattr(counter, "calls", 0) + 1
    return {"kind": "mine", "calls": counter.calls}


UNSAYABLE = {
    "NumPy integer": lambda: {"kind": "mine", "n": np.int64(3)},
    "NumPy array": lambda: {"kind": "mine", "n": np.zeros(3)},
    "NaN": lambda: {"kind": "mine", "n": float("nan")},
    "infinity": lambda: {"kind": "mine", "n": float("-inf")},
    "set": lambda: {"kind": "mine", "n": {1, 2}},
    "bytes": lambda: {"kind": "mine", "n": b"1"},
    "key": lambda: {"kind": "mine", (1, 2): 3},
    "object": lambda: {"kind": "mine", "n": object()},
    "error": lambda: 1 / 0,
    "no object": lambda: ["mine"],
    "nothing": lambda: None,
    "no kind": lambda: {"side": 1},
    "kind of another type": lambda: {"kind": 5},
    "never the same": counter,
}


@pytest.mark.parametrize("name", UNSAYABLE)
@pytest.mark.parametrize("wrap", [lambda d: d, Nullable, lambda d: Product([Box([(0, 1)]), Nullable(d)])])
def test_what_could_not_be_saved_is_refused_before_anything_is_spent(name, wrap):
    domain = wrap(Other(UNSAYABLE[name]))
    for mechanism in ("pmm", "psmm"):
        with pytest.raises(ArgumentError, match=r"Other\.to_json\(\) must return"):
            pm.Synthesizer(domain, epsilon=1, neighbours="replace", mechanism=mechanism)
    for make in (PMM, PSMM):
        with pytest.raises(ArgumentError, match=r"Other\.to_json\(\) must return"):
            make(domain, Privacy(1, "replace"))
    with pytest.raises(ArgumentError, match=r"Other\.to_json\(\) must return"):
        ColumnTree(Product([domain, Box([(0, 1)])]), Privacy(1, "replace"))


@pytest.mark.parametrize(
    "says",
    [
        lambda: {"kind": "mine", "sides": (1, (2, 3))},
        lambda: {"kind": "mine", "table": {1: 2, "b": None, "a": True}},
        lambda: {"kind": "mine", "n": np.float64(0.1), "big": 10**40},
    ],
)
def test_what_json_changes_is_compared_as_json(says, tmp_path):
    path = saved(fitted(Other(says), "pmm"), tmp_path / "own.parquet")
    assert pm.load(path, domain=Other(says)).header()["domain"] == json.loads(json.dumps(says()))


@pytest.mark.parametrize("name", ["size", "diameter", "total_diameter", "radius"])
def test_numbers_that_could_not_be_saved_are_refused(name):
    class Careless(Words):
        pass

    kind = np.int64 if name == "size" else np.float32
    setattr(Careless, name, lambda self, level: kind(getattr(Words, name)(self, level)))
    with pytest.raises(ArgumentError, match=rf"Careless\.{name}\(0\) must be a number of Python's type"):
        pm.Synthesizer(Product([Careless(), Box([(0, 1)])]), epsilon=1, neighbours="replace")


def test_kinds_are_found_wherever_they_are():
    space = SPACES["nullable in a product"]()
    assert own_kinds(write_domain(space)) == ["streets", "words"]
    assert own_kinds(Box([(0, 1)]).to_json()) == own_kinds(None) == own_kinds({"kind": 5}) == own_kinds([[]]) == []
    assert not is_ours(space)
    assert is_ours(Nullable(Box([(0, 1)])))
    check_own(space)

"""Of each person at most so many rows: what makes `rows_per_person` true instead of trusted. Private.

**The rule.** Of the rows of one person those with the smallest SHA-256 of (salt, person, encoded row, occurrence among
equals) are kept. An occurrence numbers equal rows of one person, 0, 1, ..., so that it does not matter which is which.
A row without an id is not kept.

**Why that is private.** For every salt, what is kept of a person is a function of that person's rows alone, as a set
with repetitions: not of their place, not of other persons, not of blocks, threads or files. So removing a person takes
away at most so many kept rows and changes no other: docs/proofs/persons.md. The salt is drawn for every fit, without
looking at the data, so nobody can arrange rows to be kept. It is not the key of the noise, which stays at the gate.

**How.** Rows are gathered in memory up to a public size. Beyond it they are written to disk as runs, sorted by a key
whose high half is a hash of the person and whose low half is a hash of the row. A range of keys is then read from all
runs at a time, as large as memory allows. Hashes only say where to look: persons and rows are compared whole. A range
holds all rows of its persons, unless one person has more rows than memory holds. Then it holds at least all equals of
its rows: the smallest of every such range are found first, and of these the smallest.
"""

import hashlib
import secrets
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privmeasure.domains import Bools, Points
from privmeasure.domains.bits import Words
from privmeasure.sources.scratch import Scratch, Stored
from privmeasure.threads import BLOCK

if TYPE_CHECKING:
    import pyarrow as pa

HELD_BYTES = 1 << 27
"""Rows are held in memory up to this size; beyond it they go to disk. A public limit."""
ROW_BYTES = 32
"""What a row takes beside its cells and the letters of its id."""
PERSON = 1 << 32
"""Keys of one hash of a person: the low half is that of the row."""
HASHED = 1 << 16
"""Digests that are made between two looks at which of them are the smallest."""

KeptRows = Points | Stored
"""A block of kept rows, in memory or on disk: `block[:]` gives its points."""


def fresh_salt() -> bytes:
    """Return a salt from the operating system, for one fit."""
    return secrets.token_bytes(32)


def insecure_salt(seed: int) -> bytes:
    """Return the salt of a seed, for tests; another value than the key of the noise that comes from the same seed."""
    return hashlib.sha256(f"privmeasure insecure salt {seed}".encode()).digest()


Gathered = tuple["pa.Array", Points, Words, Words]
"""Ids, points, first occurrences and numbers of copies: the records of an `Owned`, before persons are told apart."""


@dataclass(frozen=True, eq=False, repr=False)
class Owned:
    """Rows with their owners; a record stands for the occurrences first, ..., first + copies - 1 of its row.

    `persons` are places in `names`, the distinct ids: Arrow compares them whole.
    """

    names: "pa.Array"
    persons: Words
    points: Points
    first: Words
    copies: Words

    @classmethod
    def join(cls, parts: list[Gathered]) -> "Owned":
        """Return the records of several parts."""
        import pyarrow as pa

        ids, points, first, copies = zip(*parts, strict=True)
        persons, names = _codes(pa.concat_arrays(ids))
        return cls(names, persons, np.concatenate(points), np.concatenate(first), np.concatenate(copies))

    def gathered(self) -> Gathered:
        """Return the records as `join` takes them."""
        import pyarrow as pa

        return self.names.take(pa.array(self.persons)), self.points, self.first, self.copies

    def at(self, places: NDArray[Any], first: Words | None = None) -> "Owned":
        """Return some records; with `first`, that one occurrence of each alone."""
        persons, points = self.persons[places], self.points[places]
        if first is not None:
            return Owned(self.names, persons, points, first, np.ones(len(places), np.int64))
        return Owned(self.names, persons, points, self.first[places], self.copies[places])

    def rows(self) -> Points:
        """Return the points, each as often as it occurs."""
        return self.points if (self.copies == 1).all() else self.points.repeat(self.copies, axis=0)

    def merged(self) -> "Owned":
        """Return one record for all equal rows of a person, if all of them are here: their occurrences are known."""
        import pyarrow as pa

        alone = self._alone()  # most rows of most tables: only the others are compared whole
        shared = np.flatnonzero(~alone)
        points, size = self.points[shared], 8 * self.points.shape[1]
        cells = pa.Array.from_buffers(pa.binary(size), len(points), [None, pa.py_buffer(points)])
        rows, distinct = _codes(cells)
        code = self.persons[shared] * len(distinct) + rows
        _, first, group = np.unique(code, return_index=True, return_inverse=True)
        copies = np.zeros(len(first), np.int64)
        np.add.at(copies, group, self.copies[shared])
        places = np.concatenate((np.flatnonzero(alone), shared[first]))
        found = self.at(places, np.zeros(len(places), np.int64))
        np.copyto(found.copies, np.concatenate((self.copies[alone], copies)))
        return found

    def _alone(self) -> Bools:
        """Say which records have a hash of person and row that no other one has, and so no equal."""
        spread = np.frombuffer(secrets.token_bytes(8 * (self.points.shape[1] + 2)), np.uint64) | np.uint64(1)
        mixed = mixed_rows(self.points, spread[2:], spread[0]) + self.persons.view(np.uint64) * spread[1]
        ordered = np.sort(mixed)
        twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        return np.isin(mixed, twice, invert=True) if len(twice) else np.ones(len(mixed), bool)


def _codes(cells: "pa.Array") -> "tuple[Words, pa.Array]":
    """Return for each cell its place among the distinct ones, and these. Arrow compares cells whole."""
    coded = cells.dictionary_encode()
    codes: Words = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, coded.dictionary


def mixed_rows(points: Points, spread: NDArray[np.uint64], last: np.uint64) -> NDArray[np.uint64]:
    """Return a hash of each row of canonical points, by odd multipliers. It only says where to look."""
    mixed = (points.view(np.uint64) * spread).sum(axis=1, dtype=np.uint64)
    found: NDArray[np.uint64] = (mixed ^ (mixed >> np.uint64(29))) * last
    return found


def canonical(points: Points) -> Points:
    """Return points in which equal ones have equal bytes: one zero, one NaN, contiguous."""
    found = np.ascontiguousarray(points, "<f8") + 0.0  # -0.0 + 0.0 is 0.0
    found[np.isnan(found)] = np.nan
    return found


class People:
    """Gathers rows with their owners, and keeps at most `most` of each; see the module.

    Guarantee:  privacy  what is kept of a person depends on the salt and on that person's rows alone; no error, no
                         text; time, memory and room on disk depend on the number of rows
                cost     memory for `HELD_BYTES` of rows a few times over, whatever the table
    """

    def __init__(self, most: int, salt: bytes) -> None:
        """Take the most rows of a person, a public number, and a salt of its own for every fit."""
        self._most, self._salt = most, salt
        self._held: list[Gathered] = []
        self._held_bytes = 0
        self._runs: list[_Run] = []
        self._scratches: list[Scratch] = []  # for the runs, then for the kept rows
        self._spread = np.frombuffer(secrets.token_bytes(8 * 256), np.uint64) | np.uint64(1)

    def prepare(self) -> None:
        """Make the folders for rows on disk before any row is read: that they are there must not show how many come."""
        while len(self._scratches) < 2:
            self._scratches.append(Scratch())

    def add(self, ids: "pa.Array", points: Points) -> None:
        """Gather rows; those without an id are left out. One thread at a time."""
        known = np.asarray(ids.is_valid().to_numpy(zero_copy_only=False), bool)
        if not known.all():
            ids, points = ids.drop_null(), points[known]
        if not len(points):
            return
        self._held.append((ids, canonical(points), np.zeros(len(points), np.int64), np.ones(len(points), np.int64)))
        self._held_bytes += ids.nbytes + points.nbytes + ROW_BYTES * len(points)
        if self._held_bytes > HELD_BYTES:
            self._spill()

    def keep(self) -> list[KeptRows]:
        """Return the kept rows, in blocks; nothing is gathered any more."""
        self.prepare()
        found: list[KeptRows] = []
        if self._runs:
            if self._held:
                self._spill()
            found += [self._scratches[1].put(rows) for part in self._parts(0, 1 << 64) for rows in _blocks(part)]
            self._runs = []
        elif self._held:
            held, self._held = self._held, []
            found += _blocks(_kept(Owned.join(held), self._most, self._salt))
        self._scratches.pop(0).close()
        return found

    def close(self) -> None:
        """Forget everything, on disk too."""
        self._held, self._runs = [], []
        while self._scratches:
            self._scratches.pop().close()

    def __repr__(self) -> str:
        """Show nothing."""
        return "People(private)"

    # ------------------------------------------------------------------------------------------------------- on disk

    def _spill(self) -> None:
        """Write what is held as a run, equal rows as one record, in the order of the keys."""
        rows = Owned.join(self._held).merged()
        self._held, self._held_bytes = [], 0
        self.prepare()
        keys = self._keys(rows)
        order = np.argsort(keys, kind="stable")
        self._runs.append(_Run.written(self._scratches[0], keys[order], rows.at(order)))

    def _keys(self, rows: Owned) -> NDArray[np.uint64]:
        """Return where to look for each record: a hash of its person, then one of its row."""
        owners = np.empty(len(rows.names), np.int64)
        for start in range(0, len(owners), BLOCK):
            block = rows.names[start : start + BLOCK].to_pylist()
            owners[start : start + BLOCK] = [hash(name) for name in block]
        high = owners.view(np.uint64)[rows.persons] << np.uint64(32)
        spread = np.resize(self._spread, rows.points.shape[1])
        found: NDArray[np.uint64] = high | (mixed_rows(rows.points, spread, self._spread[0]) >> np.uint64(32))
        return found

    def _parts(self, low: int, high: int) -> Iterator[Points]:
        """Yield the kept rows of the persons whose keys are in [low, high), whole multiples of `PERSON`."""
        if self._fit(low, high):
            found = self._read(low, high)
            if found:
                yield _kept(Owned.join(found), self._most, self._salt)
        elif high - low > PERSON:
            middle = low + (high - low) // 2
            yield from self._parts(low, middle)
            yield from self._parts(middle, high)
        else:
            candidates = Owned.join(list(self._candidates(low, high)))
            yield smallest_digests(candidates, self._most, self._salt).rows()

    def _candidates(self, low: int, high: int) -> Iterator[Gathered]:
        """Yield what may be kept of persons with too many rows to be read at once; ranges hold all equals of a row."""
        if high - low == 1 or self._fit(low, high):
            found = self._read(low, high)
            if found:
                yield smallest_digests(Owned.join(found).merged(), self._most, self._salt).gathered()
        else:
            middle = low + (high - low) // 2
            yield from self._candidates(low, middle)
            yield from self._candidates(middle, high)

    def _fit(self, low: int, high: int) -> bool:
        return sum(run.size(*run.places(low, high)) for run in self._runs) <= HELD_BYTES

    def _read(self, low: int, high: int) -> list[Gathered]:
        places = [(run, *run.places(low, high)) for run in self._runs]
        return [run.read(start, stop) for run, start, stop in places if start < stop]


@dataclass(frozen=True, eq=False, repr=False)
class _Run:
    """Records on disk, sorted by their keys."""

    keys: Stored
    ends: Stored
    letters: Stored
    points: Stored
    copies: Stored

    @classmethod
    def written(cls, scratch: Scratch, keys: NDArray[np.uint64], rows: Owned) -> "_Run":
        """Write records to disk."""
        ids, points, _, copies = rows.gathered()
        _, offsets, letters = ids.buffers()
        ends = np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1]
        text = np.empty(0, np.uint8) if letters is None else np.frombuffer(letters, np.uint8)[ends[0] : ends[-1]]
        return cls(*map(scratch.put, (keys, ends - ends[0], text, points, copies)))

    def places(self, low: int, high: int) -> tuple[int, int]:
        """Return where the keys of a range begin and end."""
        start = bisect_left(self.keys, low, key=int)
        return start, bisect_left(self.keys, high, start, key=int)

    def size(self, start: int, stop: int) -> int:
        """Return how much memory some records take."""
        width = self.points.shape[1]
        return int(self.ends[stop]) - int(self.ends[start]) + (stop - start) * (8 * width + 8 + ROW_BYTES)

    def read(self, start: int, stop: int) -> Gathered:
        """Read some records."""
        import pyarrow as pa

        ends = self.ends[start : stop + 1]
        letters = self.letters[int(ends[0]) : int(ends[-1])]
        buffers = [None, pa.py_buffer(ends - ends[0]), pa.py_buffer(letters)]
        ids = pa.Array.from_buffers(pa.large_binary(), stop - start, buffers)
        return ids, self.points[start:stop], np.zeros(stop - start, np.int64), self.copies[start:stop]


# --------------------------------------------------------------------------------------------------------- the choice


def _kept(rows: Owned, most: int, salt: bytes) -> Points:
    """Return the kept rows of persons all of whose rows are here. Who has few keeps them all, and nothing is hashed."""
    totals = np.zeros(len(rows.names), np.int64)
    np.add.at(totals, rows.persons, rows.copies)
    crowded = totals[rows.persons] > most
    if not crowded.any():
        return rows.rows()
    few, many = rows.at(np.flatnonzero(~crowded)), rows.at(np.flatnonzero(crowded))
    return np.concatenate((few.rows(), smallest_digests(many.merged(), most, salt).rows()))


def smallest_digests(rows: Owned, most: int, salt: bytes) -> Owned:
    """Return of each person the occurrences with the `most` smallest digests; `rows` has one record for all equals."""
    import pyarrow as pa

    here = np.zeros(len(rows.names), bool)
    here[rows.persons] = True
    persons = (np.cumsum(here) - 1)[rows.persons]  # of those who have rows here
    begin = _framed(salt)
    heads = [begin + _framed(name) for name in rows.names.filter(pa.array(here)).to_pylist()]
    places, numbers, digests = np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 4), np.uint64)
    pieces = [(places, numbers, digests)]
    pending, patience = 0, 16 * HASHED

    def least() -> tuple[Words, Words, NDArray[np.uint64]]:
        places, numbers, digests = (np.concatenate(each) for each in zip(*pieces, strict=True))
        kept = _least(persons[places], digests, most)
        return places[kept], numbers[kept], digests[kept]

    for some, which in _copies(rows.copies):
        occurrences = rows.first[some] + which
        owners = [heads[person] for person in persons[some].tolist()]
        pieces.append((some, occurrences, _digests(owners, rows.points[some], occurrences)))
        pending += len(some)
        if pending > patience:  # memory for the smallest so far, and as much again
            pieces = [least()]
            pending, patience = 0, len(pieces[0][0]) + 16 * HASHED
    places, numbers, _ = least()
    return rows.at(places, numbers)


def _copies(copies: Words) -> Iterator[tuple[Words, Words]]:
    """Yield all (record, number of the copy), in pieces of bounded size."""
    ends = np.cumsum(copies)
    begins, total = ends - copies, int(copies.sum())
    for start in range(0, total, HASHED):
        numbers = np.arange(start, min(start + HASHED, total))
        records = np.searchsorted(ends, numbers, side="right")
        yield records, numbers - begins[records]


def _framed(part: bytes) -> bytes:
    """Return a part with its length before it: one after the other, no two lists of them look alike."""
    return len(part).to_bytes(8, "little") + part


def _digests(heads: list[bytes], points: Points, occurrences: Words) -> NDArray[np.uint64]:
    """Return the SHA-256 of (salt, person, row, occurrence), framed, as four words; `heads` are the first two parts."""
    bodies = np.empty((len(points), points.shape[1] + 3), "<i8")
    bodies[:, 0], bodies[:, 1:-2] = 8 * points.shape[1], points.view("<i8")
    bodies[:, -2], bodies[:, -1] = 8, occurrences
    tails = bodies.view(f"V{8 * bodies.shape[1]}")[:, 0].tolist()
    sha256 = hashlib.sha256
    found = [sha256(head + tail).digest() for head, tail in zip(heads, tails, strict=True)]
    return np.frombuffer(b"".join(found), ">u8").astype(np.uint64).reshape(-1, 4)


def _least(persons: NDArray[Any], digests: NDArray[np.uint64], most: int) -> NDArray[Any]:
    """Return the places of the `most` smallest digests of each person."""
    bits = np.uint64(max(1, int(persons.max(initial=0)).bit_length()))
    key = persons.astype(np.uint64) << (np.uint64(64) - bits) | digests[:, 0] >> bits
    order = np.argsort(key)
    if (np.diff(key[order]) == 0).any():  # the first bits are the same: the others decide
        order = np.lexsort((*digests.T[::-1], persons))
    owner = persons[order]
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    found: NDArray[Any] = order[rank < most]
    return found


def _blocks(rows: Points) -> Iterator[Points]:
    yield from (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))

"""The random words: a real cipher, addressed by position, under a key that lives once."""

import copy
import hashlib
import pickle
from itertools import product

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from privmeasure.errors import ArgumentError, SpentError
from privmeasure.noise.entropy import ATTEMPTS, LEVELS, PARTS, Key
from privmeasure.threads import in_threads

SECRET = bytes(range(32))


def cells(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def one_block(secret: bytes, part: int, level: int, cell: int, attempt: int) -> tuple[int, int]:
    """The documented layout, a field at a time, and a cipher call a block."""
    counter = b"".join(
        field.to_bytes(size, "little") for field, size in ((attempt, 5), (level, 1), (part, 2), (cell, 8))
    )
    encryptor = Cipher(algorithms.AES256(secret), modes.ECB()).encryptor()
    block = encryptor.update(counter) + encryptor.finalize()
    return int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")


def test_words_are_aes_256_by_the_published_example():
    """FIPS 197, appendix C.3: plaintext 00 11 22 ... ff."""
    words = Key(SECRET, private=False).words(
        part=0x7766, level=0x55, attempt=0x4433221100, cells=cells(0xFFEEDDCCBBAA9988)
    )
    assert words.astype("<u8").tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"


@pytest.mark.parametrize("part", [0, 1, PARTS - 1])
@pytest.mark.parametrize("level", [0, 1, 40, LEVELS - 1])
@pytest.mark.parametrize("attempt", [0, 1, ATTEMPTS - 1])
def test_words_are_aes_of_the_documented_counter(part, level, attempt):
    places = [0, 1, 255, 256, 2**40 + 3, 2**64 - 1]
    words = Key(SECRET, private=False).words(part=part, level=level, cells=cells(*places), attempt=attempt)
    assert words.dtype == np.uint64
    assert words.shape == (len(places), 2)
    assert [tuple(row) for row in words.tolist()] == [one_block(SECRET, part, level, c, attempt) for c in places]


def test_every_coordinate_of_the_position_changes_the_words():
    key = Key.insecure(0)
    seen = [
        word
        for part, level, attempt in product(range(4), range(4), range(4))
        for word in key.words(part=part, level=level, attempt=attempt, cells=np.arange(64, dtype=np.uint64))
        .ravel()
        .tolist()
    ]
    assert len(set(seen)) == len(seen)


def test_words_do_not_depend_on_order_chunks_subsets_or_repetition():
    key = Key.insecure(1)
    all_cells = np.arange(5000, dtype=np.uint64)
    words = key.words(part=2, level=9, cells=all_cells)
    shuffled = np.random.default_rng(0).permutation(all_cells)
    np.testing.assert_array_equal(key.words(part=2, level=9, cells=shuffled), words[shuffled])
    np.testing.assert_array_equal(key.words(part=2, level=9, cells=all_cells[7::13]), words[7::13])
    np.testing.assert_array_equal(key.words(part=2, level=9, cells=cells(3, 3, 3)), words[[3, 3, 3]])


def test_no_cells_need_no_words():
    assert Key.insecure(1).words(part=0, level=0, cells=cells()).shape == (0, 2)


def test_words_are_the_same_from_many_threads():
    key = Key.insecure(2)
    all_cells = np.arange(1 << 15, dtype=np.uint64)
    words = key.words(part=0, level=15, cells=all_cells)
    threaded = np.zeros_like(words)

    def work(task: int) -> None:
        piece = slice(task * 512, (task + 1) * 512)
        threaded[piece] = key.words(part=0, level=15, cells=all_cells[piece])

    in_threads(work, 64, 4)
    np.testing.assert_array_equal(threaded, words)


@pytest.mark.parametrize(
    "position",
    [
        {"part": PARTS},
        {"part": -1},
        {"level": LEVELS},
        {"level": -1},
        {"attempt": ATTEMPTS},
        {"attempt": -1},
    ],
    ids=str,
)
def test_a_position_that_would_share_the_words_of_another_is_refused(position):
    """Level 256 of part 0 would be level 0 of part 1."""
    with pytest.raises(ArgumentError, match="share their noise"):
        Key.insecure(0).words(**({"part": 0, "level": 0, "cells": cells(0)} | position))


def test_fresh_keys_are_private_and_differ():
    one, two = Key.fresh(), Key.fresh()
    assert one.private is True
    assert not np.any(one.words(part=0, level=0, cells=cells(0, 1)) == two.words(part=0, level=0, cells=cells(0, 1)))


def test_fresh_keys_come_from_the_operating_system(monkeypatch):
    asked = []
    monkeypatch.setattr("os.urandom", lambda size: asked.append(size) or SECRET)
    words = Key.fresh().words(part=1, level=2, cells=cells(3))
    assert asked == [32]
    assert tuple(words[0].tolist()) == one_block(SECRET, 1, 2, 3, 0)


def test_an_insecure_key_is_reproducible_and_says_so():
    words = [Key.insecure(seed).words(part=0, level=3, cells=cells(0, 1)).tolist() for seed in (7, 7, 8, -7)]
    assert Key.insecure(7).private is False
    assert words[0] == words[1]
    assert words[0] != words[2]
    assert words[0] != words[3]
    secret = hashlib.sha256(b"privmeasure insecure seed 7").digest()  # releases of tests stay the same over versions
    assert tuple(words[0][1]) == one_block(secret, 0, 3, 1, 0)


@pytest.mark.parametrize("seed", [True, 1.0, "7", None])
def test_an_insecure_seed_must_be_a_whole_number(seed):
    with pytest.raises(ArgumentError, match=r"insecure_seed must be a whole number"):
        Key.insecure(seed)


def test_a_destroyed_key_gives_no_more_words_and_its_secret_is_overwritten():
    key = Key(SECRET, private=True)
    secret = key._secret
    key.words(part=0, level=0, cells=cells(0))
    key.destroy()
    assert secret == bytes(32)
    assert key._secret is None
    with pytest.raises(SpentError, match="make a new key"):
        key.words(part=0, level=0, cells=cells(0))
    key.destroy()  # again is harmless


def test_a_key_cannot_be_saved_or_copied():
    key = Key(SECRET, private=True)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(SpentError, match="cannot be copied or saved"):
            pickle.dumps(key, protocol)
    for copier in (copy.copy, copy.deepcopy):
        with pytest.raises(SpentError, match="cannot be copied or saved"):
            copier(key)


def test_the_repr_shows_nothing_of_the_secret():
    one, two = Key(SECRET, private=True), Key(SECRET[::-1], private=True)
    assert repr(one) == repr(two) == str(one) == "Key(private=True, alive)"
    one.destroy()
    assert repr(one) == "Key(private=True, destroyed)"

"""Random words from a real cipher, addressed by position.

The random words of a draw are the AES-256 encryption of the counter (part, level, cell, attempt) under a key that the
operating system made for one release. So the noise of a cell does not depend on chunks, threads, order or on which
other cells are looked at, and yet nobody without the key can predict it.

Each 16-byte block gives two 64-bit words. Distinct counters give distinct blocks, where truly random blocks could
repeat: telling the difference takes about 2^64 blocks, and a release uses fewer than 2^40.
"""

import hashlib
import os
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from privmeasure.domains import Cells
from privmeasure.errors import ArgumentError, SpentError
from privmeasure.origin import derive_id, new_id

PARTS, LEVELS, ATTEMPTS = 1 << 16, 1 << 8, 1 << 40
"""How many of each a counter can tell apart."""
USED = "This key was used for a release already. Noise that is drawn twice protects no one: make a new key."


class Key:
    """The secret of one release: made for it, used by it alone, destroyed with it.

    Examples:
        >>> key = Key.insecure(7)
        >>> both = key.words(part=0, level=3, cells=np.array([4, 5], np.uint64))
        >>> one = key.words(part=0, level=3, cells=np.array([5], np.uint64))
        >>> bool((both[1] == one[0]).all())
        True
    """

    def __init__(self, secret: bytes, *, private: bool, release_id: str | None = None) -> None:
        """Use `Key.fresh()` or, in tests, `Key.insecure(seed)`."""
        self._secret: bytearray | None = bytearray(secret)
        self._process = os.getpid()
        self.private = private
        """False when the key came from a seed: whoever knows the seed can take the noise off."""
        self.used = False
        """Whether any noise was drawn: set before the first word is, and from then on epsilon counts as spent."""
        self.release_id = new_id() if release_id is None else release_id
        """The public id of the one release that this key is for."""

    @classmethod
    def fresh(cls, release_id: str | None = None) -> "Key":
        """Return a new key from the operating system, for a release whose id may be known already."""
        return cls(os.urandom(32), private=True, release_id=release_id)

    @classmethod
    def insecure(cls, seed: int) -> "Key":
        """Return a reproducible key for tests; what it protects is NOT private."""
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ArgumentError(f"insecure_seed must be a whole number, got {seed!r}.")
        secret = hashlib.sha256(f"privmeasure insecure seed {seed}".encode()).digest()
        return cls(secret, private=False, release_id=derive_id(secret))

    def words(self, *, part: int, level: int, cells: Cells, attempt: int = 0) -> NDArray[np.uint64]:
        """Return two random 64-bit words for every cell, as the rows of a matrix.

        The counter is attempt (5 bytes), level (1), part (2), cell (8), each with its least significant byte first.
        """
        secret = self._secret
        if secret is None:
            raise SpentError(USED)
        if os.getpid() != self._process:  # a fork, which would draw the same noise, and whose draws nobody counts
            raise SpentError("A key is for one process, and this one was forked: fit in the process that began.")
        if not (0 <= part < PARTS and 0 <= level < LEVELS and 0 <= attempt < ATTEMPTS):
            raise ArgumentError(
                f"A random word needs a part below {PARTS}, a level below {LEVELS} and an attempt below {ATTEMPTS}, "
                f"got {part}, {level} and {attempt}: beyond, two positions would share their noise."
            )
        self.used = True  # before the secret is read: whoever destroys the key and then sees False knows that none was
        copy = bytes(secret)
        if self._secret is None:  # destroyed meanwhile by another thread, and the copy may be half overwritten
            raise SpentError(USED)
        counters = np.empty((len(cells), 2), "<u8")
        counters[:, 0] = part << 48 | level << 40 | attempt
        counters[:, 1] = cells
        encryptor = Cipher(algorithms.AES(copy), modes.ECB()).encryptor()  # an encryptor a call: threads
        output = np.empty(16 * len(cells) + 15, np.uint8)  # the cipher asks for room for one more block
        encryptor.update_into(counters.view(np.uint8).ravel().data, output.data)
        return output[: 16 * len(cells)].view("<u8").reshape(-1, 2)

    def destroy(self) -> None:
        """Overwrite and forget the secret; copies inside the interpreter or the cipher may live a little longer."""
        secret, self._secret = self._secret, None
        if secret is not None:
            secret[:] = bytes(len(secret))

    def __repr__(self) -> str:
        """Show nothing of the secret."""
        return f"Key(private={self.private}, {'destroyed' if self._secret is None else 'alive'})"

    def __reduce__(self) -> Any:
        """Refuse to be pickled: a key must not leave its process."""
        raise SpentError("A key cannot be copied or saved: it exists for one release in one process.")

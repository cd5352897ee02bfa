"""Which rows of each person are kept, as the definition says it: dictionaries and sorting, one row at a time."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable


def digest(salt: bytes, person: bytes, row: bytes, occurrence: int) -> bytes:
    """Return SHA-256 of (salt, person, encoded row, occurrence among equals), each with its length before it."""
    parts = (salt, person, row, occurrence.to_bytes(8, "little"))
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()


def kept_rows(rows: Iterable[tuple[bytes | None, bytes]], most: int, salt: bytes) -> Counter[tuple[bytes, bytes]]:
    """Return how often each (person, encoded row) is kept: of each person the `most` smallest by their digests."""
    owned: dict[bytes, list[bytes]] = defaultdict(list)
    for person, row in rows:
        if person is not None:
            owned[person].append(row)
    kept: Counter[tuple[bytes, bytes]] = Counter()
    for person, own in owned.items():
        ranked = sorted(
            (digest(salt, person, row, occurrence), row)
            for row, copies in Counter(own).items()
            for occurrence in range(copies)
        )
        kept.update((person, row) for _, row in ranked[:most])
    return kept

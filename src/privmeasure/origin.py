"""Which release a file holds, and what made it: a random id and the version of the software. Both are public.

The id is drawn before the data are opened, so it can be booked before a release begins and says nothing about the data.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from privmeasure.errors import ReleaseFileError
from privmeasure.version import __version__

LONGEST_VERSION = 100


@dataclass(frozen=True, slots=True)
class Origin:
    """The id of a release, 32 hexadecimal digits, and the version that made it.

    Examples:
        >>> Origin.of("00" * 16).to_json()["id"]
        '00000000000000000000000000000000'
    """

    id: str
    version: str

    @classmethod
    def of(cls, release_id: str) -> "Origin":
        """Return the origin of a release that this version makes."""
        return cls(release_id, __version__)

    def to_json(self) -> dict[str, str]:
        """Return what the header of a file says."""
        return asdict(self)

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> "Origin | None":
        """Read the header of a file; None for files of versions that did not write it."""
        if "id" not in header and "version" not in header:
            return None
        release_id, version = header.get("id"), header.get("version")
        if not isinstance(release_id, str) or not re.fullmatch(r"[0-9a-f]{32}", release_id):
            raise ReleaseFileError("the id must be 32 hexadecimal digits")
        if not isinstance(version, str) or not version.isprintable() or not 1 <= len(version) <= LONGEST_VERSION:
            raise ReleaseFileError("the version must be a short text")
        return cls(release_id, version)


def new_id() -> str:
    """Return 128 random bits of the operating system as text."""
    return secrets.token_hex(16)


def derive_id(secret: bytes) -> str:
    """Return an id that follows from a key which is no secret, so that what is saved can be reproduced."""
    return hashlib.sha256(b"privmeasure release id " + secret).hexdigest()[:32]

"""Which release a file holds, what made it, and whether a ledger recorded it. All of it is public.

The id is random and drawn before the data are opened, so it can be booked before a release begins and says nothing
about the data. Of a ledger, a file says yes or no: never which one, nor the name of the account.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from privmeasure.errors import ReleaseFileError
from privmeasure.version import __version__

LONGEST_VERSION = 100


@dataclass(frozen=True, slots=True)
class Origin:
    """The id of a release, 32 hexadecimal digits, the version that made it, and whether a ledger recorded it.

    `recorded` is None if that is not known: in files of older versions, and if a mechanism ran without a synthesizer.

    Examples:
        >>> Origin.of("00" * 16).to_json()["id"]
        '00000000000000000000000000000000'
    """

    id: str
    version: str
    recorded: bool | None = field(default=None, compare=False)

    @classmethod
    def of(cls, release_id: str) -> "Origin":
        """Return the origin of a release that this version makes."""
        return cls(release_id, __version__)

    def to_json(self) -> dict[str, Any]:
        """Return what the header of a file says; what is not known is left out, as older files do."""
        return {name: value for name, value in asdict(self).items() if value is not None}

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
        if "recorded" in header and not isinstance(header["recorded"], bool):
            raise ReleaseFileError("recorded must be true or false")
        return cls(release_id, version, header.get("recorded"))


def ledger_words(recorded: bool | None) -> str:
    """Say whether a release was recorded.

    Examples:
        >>> ledger_words(False), ledger_words(None)
        ('not recorded in a ledger', 'not known whether it was recorded in a ledger')
    """
    if recorded is None:
        return "not known whether it was recorded in a ledger"
    return f"{'' if recorded else 'not '}recorded in a ledger"


def new_id() -> str:
    """Return 128 random bits of the operating system as text."""
    return secrets.token_hex(16)


def derive_id(secret: bytes) -> str:
    """Return an id that follows from a key which is no secret, so that what is saved can be reproduced."""
    return hashlib.sha256(b"privmeasure release id " + secret).hexdigest()[:32]
